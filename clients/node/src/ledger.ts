import { Metadata } from "@grpc/grpc-js";
import type { Forgotten, Settlement } from "./answers.js";
import { Asker } from "./asking.js";
import { Channel } from "./channel.js";
import { checkedDeadlines, type Deadlines } from "./deadlines.js";
import type { LedgerEvent } from "./events.js";
import { Failure, LedgerError } from "./failure.js";
import { changedTheBlock, Filler, REWRITES_AT_ONCE } from "./filling.js";
import type { Scope, TurnKeys } from "./keys.js";
import { uint64 } from "./numbers.js";
import type { Rewriter } from "./order.js";
import { pause } from "./pause.js";
import { type Logger, Reporter } from "./reporter.js";
import { asTheContractAllows, whileItAnswers } from "./retry.js";
import { load, type SavedTurn } from "./saved.js";
import type { Stats } from "./stats.js";
import { Mender } from "./text.js";
import { type Cancellable, type Means, Turn } from "./turn.js";
import { type Call, forgetCall, type HistoryAnswer, historyCall, settleCall } from "./wire.js";

// The share of the begin deadline that is kept for reading the history again: a read takes milliseconds.
const SECOND_READ_SHARE = 0.1;

/** How a ledger is made. */
export interface LedgerOptions {
  /** The most that each call may take; what is left out keeps its default. */
  readonly deadlines?: Partial<Deadlines>;
  /** Called, without await, with each event as it happens; what it throws is logged and counted. */
  readonly onEvent?: (event: LedgerEvent) => unknown;
  /** Where log lines go, none of them with content. Default: warnings to `console.warn`. `{}` is silent. */
  readonly logger?: Logger;
  /**
   * Puts what continues the engine's trace into the headers of each call. With OpenTelemetry:
   * `(headers) => propagation.inject(context.active(), headers)`.
   */
  readonly propagate?: (headers: Record<string, string>) => void;
  /**
   * Fills the sidecar's orders with the seat's auxiliary model. Left out: no order is filled, and arguments, errors and
   * older turns stand by size and digest, or by their facts alone.
   */
  readonly rewriter?: Rewriter;
  /** The most calls of the rewriter at a time, 1 or more; default 3. */
  readonly rewritesAtOnce?: number;
}

/** What begins a turn. */
export interface Beginning extends TurnKeys, Cancellable {
  /** The most bytes of UTF-8 that the model can take as a block, at least 4096; 0, the default, for no limit. */
  readonly hardLimitBytes?: number | bigint;
  /**
   * Whether to wait, within `deadlines.beginMs`, for the notes of older turns that the block lacks, and to read it once more
   * then. Else, by default, they are made behind the turn, for the next one.
   */
  readonly waitForNotes?: boolean;
}

/**
 * A node's sidecar, as an engine sees it. One serves all seats of a process.
 *
 * Nothing is dialled before the first call, so making one neither waits for the sidecar nor fails without it. `close` it, or
 * say `await using ledger = new Ledger(target)`. Nothing here rejects because of the sidecar, but `forget`.
 */
export class Ledger implements AsyncDisposable {
  readonly #channel: Channel;
  readonly #means: Means;

  /**
   * @param target "unix:///path", "unix:path" or "host:port".
   * @throws RangeError if the target has another form, or a deadline or `rewritesAtOnce` is out of range.
   */
  constructor(target: string, options: LedgerOptions = {}) {
    const logger = options.logger ?? { warn: (line) => console.warn(line) };
    const reporter = new Reporter(logger, options.onEvent);
    const deadlines = checkedDeadlines(options.deadlines ?? {});
    this.#channel = new Channel(target, () => metadataOf(options.propagate, reporter));
    const asker = new Asker(this.#channel, deadlines, reporter.counters);
    const { rewriter, rewritesAtOnce = REWRITES_AT_ONCE } = options;
    const filler = rewriter ? new Filler(asker, reporter, rewriter, rewritesAtOnce) : null;
    this.#means = { asker, reporter, filler };
  }

  /** What this ledger did so far. */
  get stats(): Stats {
    return this.#means.reporter.counters.snapshot();
  }

  /**
   * Begin a turn: read its conversation's history, once, and freeze it. Call it when the turn starts, not before.
   *
   * It fails open: a history that cannot be read leaves `turn.history` null and the reason in `turn.readFailure`.
   *
   * @throws TypeError if a key is no string.
   * @throws RangeError if `hardLimitBytes` is out of range.
   */
  async begin(beginning: Beginning): Promise<Turn> {
    const { asker, reporter, filler } = this.#means;
    const { signal, waitForNotes = false } = beginning;
    const began = asker.clock();
    const hardLimitBytes = uint64("hardLimitBytes", beginning.hardLimitBytes) ?? 0n;
    const keys = this.#mended(beginning);
    const call = historyCall(keys, hardLimitBytes);
    const { answer: first } = await asker.persist(call, asker.deadlines.beginMs, whileItAnswers, signal);
    let answer = first;
    if (filler && !(answer instanceof Failure) && answer.orders.length > 0) {
      const jobs = filler.start(keys, answer.orders, waitForNotes);
      if (waitForNotes) {
        const dones = jobs.map((job) => job.done.then(changedTheBlock));
        answer = await this.#withNotes(call, answer, dones, began + asker.deadlines.beginMs, signal);
      }
    }
    const failed = answer instanceof Failure;
    const opening: SavedTurn = {
      keys,
      history: answer instanceof Failure ? null : answer.history,
      readFailure: answer instanceof Failure ? answer : null,
      alreadyRecorded: answer instanceof Failure ? false : answer.alreadyRecorded,
      iterations: new Map(),
      calls: [],
    };
    reporter.read({
      keys,
      state: opening.history?.state ?? null,
      bytes: failed ? 0 : Number(opening.history?.bytes ?? 0n),
      alreadyRecorded: opening.alreadyRecorded,
      failure: opening.readFailure,
      durationMs: asker.clock() - began,
    });
    return new Turn(this.#means, opening);
  }

  /**
   * The turn that `Turn.save` wrote, in whatever language, on this ledger's sidecar: same keys, same frozen block, rounds
   * counted on.
   *
   * @throws InvalidSavedTurn if the text is damaged, or of a later version.
   */
  resume(saved: string): Turn {
    return new Turn(this.#means, load(saved));
  }

  /**
   * Record that a turn's unsent text reached its party after all. One way and idempotent.
   *
   * Never rejects for a failure of the service; it is in the settlement, after the retries that the contract allows.
   *
   * @throws TypeError if a key is no string.
   */
  async settle(turn: Omit<TurnKeys, "turnId"> & Cancellable): Promise<Settlement> {
    const { asker, reporter } = this.#means;
    const began = asker.clock();
    const { agentHandle, conversationKey, workKey } = this.#mended({ ...turn, turnId: "" });
    const call = settleCall(agentHandle, conversationKey, workKey);
    const { answer, attempts } = await asker.persist(call, asker.deadlines.settleMs, asTheContractAllows, turn.signal);
    const settlement: Settlement = Object.freeze(
      answer instanceof Failure
        ? { outcome: null, entryId: "", failure: answer, attempts }
        : { ...answer, failure: null, attempts },
    );
    reporter.settled({ settlement, durationMs: asker.clock() - began });
    return settlement;
  }

  /**
   * Erase one turn, a seat's conversation, or all of a seat.
   *
   * @throws LedgerError if the sidecar did not say that it is done, after the retries that the contract allows: an erasure
   * that silently did not happen is the worst of all answers.
   * @throws TypeError if a key is no string, or the scope is none.
   */
  async forget(scope: Scope, { signal }: Cancellable = {}): Promise<Forgotten> {
    const { asker, reporter } = this.#means;
    const began = asker.clock();
    const call = forgetCall(this.#mendedScope(scope));
    const { answer } = await asker.persist(call, asker.deadlines.forgetMs, asTheContractAllows, signal);
    const durationMs = asker.clock() - began;
    if (answer instanceof Failure) {
      reporter.forgotten({ forgotten: null, failure: answer, durationMs });
      throw new LedgerError(answer);
    }
    reporter.forgotten({ forgotten: answer, failure: null, durationMs });
    return answer;
  }

  /** Wait until no order waits or runs, `ms` at most; whether that came. Nobody needs to: see `close`. */
  async drain(ms: number): Promise<boolean> {
    return this.#means.filler?.finish(ms) ?? true;
  }

  /**
   * Let the orders end, then the connection go. Calls that are in flight then, and later ones, fail as CLOSED.
   *
   * Orders go on for `deadlines.closeMs` at most; what is left is given up and reported as abandoned, with half a second
   * more to notice. Nothing of the ledger keeps the process alive afterwards.
   */
  async close(): Promise<void> {
    await this.#means.filler?.close();
    this.#channel.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** The history with the notes that were made in time; the first one where there are none, or none can be had. */
  async #withNotes(
    call: Call<HistoryAnswer>,
    first: HistoryAnswer,
    dones: readonly Promise<boolean>[],
    until: number,
    signal: AbortSignal | undefined,
  ): Promise<HistoryAnswer> {
    const { asker } = this.#means;
    const lastLook = until - asker.deadlines.beginMs * SECOND_READ_SHARE;
    let changed = false;
    for (const done of dones) void done.then((did) => (changed ||= did));
    await pause(lastLook - asker.clock(), { done: Promise.all(dones), signals: [signal] });
    signal?.throwIfAborted();
    if (!changed) return first;
    const again = await asker.once(call, Math.max(until - asker.clock(), 0), signal);
    return again instanceof Failure ? first : again;
  }

  #mended(keys: TurnKeys): TurnKeys {
    const mender = new Mender();
    const mended = {
      agentHandle: mender.mend("agent_handle", keys.agentHandle),
      conversationKey: mender.mend("conversation_key", keys.conversationKey),
      turnId: mender.mend("turn_id", keys.turnId),
      workKey: mender.mend("work_key", keys.workKey),
    };
    this.#means.reporter.repaired(mender);
    return mended;
  }

  #mendedScope(scope: Scope): Scope {
    const mender = new Mender();
    const mended = mendedScope(mender, scope);
    this.#means.reporter.repaired(mender);
    return mended;
  }
}

/** The keys that the scope needs, and no other. */
function mendedScope(mender: Mender, scope: Scope): Scope {
  const agentHandle = mender.mend("agent_handle", scope.agentHandle);
  if (scope.scope === "seat") return { scope: "seat", agentHandle };
  const conversationKey = mender.mend("conversation_key", scope.conversationKey);
  if (scope.scope === "conversation") return { scope: "conversation", agentHandle, conversationKey };
  if (scope.scope === "turn") {
    return { scope: "turn", agentHandle, conversationKey, workKey: mender.mend("work_key", scope.workKey) };
  }
  throw new TypeError('the scope must be "turn", "conversation" or "seat"');
}

/** What each call sends beside its request: what the engine's hook gives, and nothing where it throws. */
function metadataOf(propagate: LedgerOptions["propagate"], reporter: Reporter): Metadata {
  let metadata = new Metadata();
  reporter.guarded("propagate", () => {
    const headers: Record<string, string> = {};
    const came: unknown = propagate?.(headers);
    const given = new Metadata();
    for (const [name, value] of Object.entries(headers)) given.set(name, value);
    metadata = given;
    return came;
  });
  return metadata;
}
