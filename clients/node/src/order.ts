/** Orders: texts that the sidecar would like shorter, from the seat's auxiliary model. Sizes are bytes of UTF-8. */

/** What is to be rewritten: one argument's value, one failed call's error, or the words of the account for one entry. */
export type OrderKind = "argument" | "error" | "note";

/** What the sidecar said of a rewrite. */
export type Verdict =
  /** Stored; the next block shows it. */
  | "accepted"
  /** The order is filled already, or its entry changed or went. */
  | "not_open"
  | "original_mismatch"
  | "too_long"
  | "empty"
  /** It repeats the instructions. */
  | "echo"
  /** It holds an identifier or a number that the text lacks. */
  | "invented"
  /** It holds control characters, or replacement characters that the text lacks. */
  | "invalid_text";

/** What became of an order. */
export type FillOutcome =
  /** The rewrite is stored, and the next block shows it. */
  | "accepted"
  /** The sidecar did not take what came, which the verdict explains. */
  | "rejected"
  /** The rewriter threw, or returned what is no rewrite. */
  | "error"
  /** The rewriter said that there is no budget, for this order or for one before it in its batch. */
  | "no_budget"
  /** There was no time, or none was left. */
  | "deadline"
  /** There was a rewrite, and the sidecar could not be told. */
  | "not_sent"
  /** The ledger was closed first, or too many orders waited already. */
  | "abandoned";

/** An order as the sidecar issued it. */
export interface IssuedOrder {
  /** Names the order. Opaque. */
  readonly orderId: string;
  readonly kind: OrderKind;
  /** What is to be rewritten, at most 64 KiB. */
  readonly text: string;
  /** The most that the rewrite may have. */
  readonly limitBytes: number;
  /** What stands before the text in the prompt. It fences the text: orders inside it are content. */
  readonly instructions: string;
  /** What stands after the text in the prompt. */
  readonly closing: string;
}

/** One call of the rewriter: a text that may become shorter, and everything that a model needs to be told. */
export interface Order extends IssuedOrder {
  /** The seat, whose auxiliary model and budget these are. */
  readonly agentHandle: string;
  /** The prompt for the model: instructions, text and closing, put together as they are. */
  readonly prompt: string;
  /** Why the first attempt was rejected, one sentence to follow the prompt; empty on the first. */
  readonly remark: string;
  /** 1, or 2 for the one retry after a rejection. */
  readonly attempt: 1 | 2;
  /** Why the first attempt was rejected; null on the first. */
  readonly rejection: Verdict | null;
  /** How much the first attempt was over the limit; 0 unless it was rejected as `too_long`. */
  readonly overByBytes: number;
  /** How long the ledger waits for this attempt, in milliseconds. */
  readonly timeoutMs: number;
}

/** What the model made of an order's text, and the tokens that it took. */
export interface Rewrite {
  readonly text: string;
  readonly promptTokens?: number;
  readonly completionTokens?: number;
}

/**
 * The one callable that an engine gives: from an order to a rewrite. It owns the model, the key and the budget.
 *
 * `signal` is aborted when its time is over or the ledger gives up: pass it to the model's client. A call that goes on all
 * the same keeps its place among those at once. It throws `NoBudget` to end its batch; whatever else it throws is reported
 * and never reaches a turn.
 */
export type Rewriter = (order: Order, signal: AbortSignal) => Promise<Rewrite | string> | Rewrite | string;

/** Thrown by a rewriter: the seat's budget or gate allows no more now. No further order of the batch is run. */
export class NoBudget extends Error {
  override readonly name = "NoBudget";
}

// What a second try may mend, and what it is told. Others say that the order is over.
const REMARKS: { readonly [verdict in Verdict]?: (overByBytes: number) => string } = {
  too_long: (over) => `The answer before this one was ${over} bytes too long. Write a shorter one.`,
  empty: () => "The answer before this one was empty.",
  echo: () => "The answer before this one repeated these instructions. Write the shorter text alone.",
  invented: () => "The answer before this one held an identifier, number, link or name that the text lacks.",
  invalid_text: () => "The answer before this one held characters that are not plain text.",
};

/** Whether another rewrite for the same order may be taken. */
export function worthARetry(verdict: Verdict): boolean {
  return verdict in REMARKS;
}

/** The order as the rewriter gets it: the first attempt, or the retry after a rejection. */
export function attemptAt(
  issued: IssuedOrder,
  agentHandle: string,
  timeoutMs: number,
  rejected: { readonly verdict: Verdict; readonly overByBytes: number } | null,
): Order {
  return Object.freeze({
    ...issued,
    agentHandle,
    prompt: issued.instructions + issued.text + issued.closing,
    remark: (rejected && REMARKS[rejected.verdict]?.(rejected.overByBytes)) ?? "",
    attempt: rejected ? 2 : 1,
    rejection: rejected?.verdict ?? null,
    overByBytes: rejected?.overByBytes ?? 0,
    timeoutMs,
  });
}
