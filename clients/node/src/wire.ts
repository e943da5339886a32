/** Between plain values and the contract's messages: the one place, beside the status, with generated code. */

import { createHash } from "node:crypto";
import { create, type DescMessage, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type {
  Disposition,
  Erasure,
  Forgotten,
  History,
  HistoryState,
  Phase,
  Settlement,
  SettleOutcome,
  SkipReason,
} from "./answers.js";
import type { CallKind, Entry, RunEnd } from "./entry.js";
import * as entry from "./gen/turnledger/v1/entry_pb.js";
import * as record from "./gen/turnledger/v1/record_pb.js";
import * as render from "./gen/turnledger/v1/render_pb.js";
import type { Scope, TurnKeys } from "./keys.js";
import type { IssuedOrder, OrderKind, Verdict } from "./order.js";

/** One call, ready to be made as often as a rule allows. `decode` throws at what the contract does not allow. */
export interface Call<Answer> {
  readonly path: string;
  readonly request: Uint8Array;
  decode(answer: Uint8Array): Answer;
}

/** What Render.History said. The orders are for the notes that its account lacks. */
export interface HistoryAnswer {
  readonly history: History;
  readonly alreadyRecorded: boolean;
  readonly orders: readonly IssuedOrder[];
}

/** What Record.Append said. The orders are the rewrites that are open. */
export interface AppendAnswer {
  readonly disposition: Disposition;
  readonly skipReason: SkipReason | null;
  readonly entryId: string;
  readonly ordinal: bigint;
  readonly orders: readonly IssuedOrder[];
}

/** What Record.Fit said of one rewrite. `overByBytes` is 0 unless it was too long. */
export interface FitAnswer {
  readonly verdict: Verdict;
  readonly overByBytes: number;
}

/** What Render.UserMessage is asked: parts verbatim, and no history where the phase or a failed read leaves none. */
export interface MessageAsk {
  readonly keys: TurnKeys;
  readonly phase: Phase;
  readonly iteration: number;
  readonly context: string;
  readonly history: History | null;
  readonly task: string;
  readonly priorWork: string;
  readonly systemBytes: bigint | undefined;
  readonly toolBytes: bigint | undefined;
}

/** Render.History. `hardLimitBytes` is 0 for none. */
export function historyCall(
  { agentHandle, conversationKey, workKey }: TurnKeys,
  hardLimitBytes: bigint,
): Call<HistoryAnswer> {
  const ask = { agentHandle, conversationKey, workKey, hardLimitBytes };
  return call(render.Render.method.history, ask, ({ history, alreadyRecorded, orders }) => ({
    history: readHistory(history ?? create(render.HistorySchema)),
    alreadyRecorded,
    orders: readOrders(orders),
  }));
}

/** Render.UserMessage; the answer is the message's text. */
export function messageCall({ keys, phase, history, systemBytes, toolBytes, ...parts }: MessageAsk): Call<string> {
  const { agentHandle, conversationKey, turnId } = keys;
  const ask: MessageInitShape<typeof render.UserMessageRequestSchema> = {
    agentHandle,
    conversationKey,
    turnId,
    phase: PHASES[phase],
    ...parts,
  };
  if (history !== null) ask.history = { ...history, state: HISTORY_STATES[history.state] };
  if (systemBytes !== undefined) ask.systemBytes = systemBytes;
  if (toolBytes !== undefined) ask.toolBytes = toolBytes;
  return call(render.Render.method.userMessage, ask, ({ text }) => text);
}

/** Record.Append. `material` is null unless the run completed. */
export function appendCall(keys: TurnKeys, runEnd: RunEnd, material: Entry | null): Call<AppendAnswer> {
  const { agentHandle, conversationKey, workKey } = keys;
  const ask: MessageInitShape<typeof record.AppendRequestSchema> = {
    agentHandle,
    conversationKey,
    workKey,
    runEnd: RUN_ENDS[runEnd],
  };
  if (material !== null) ask.entry = entryMessage(material);
  return call(record.Record.method.append, ask, ({ disposition, skipReason, entryId, ordinal, orders }) => {
    const said = named(DISPOSITIONS, disposition);
    if ((said === "skipped") === (entryId !== ""))
      throw new RangeError("the entry's id does not go with the disposition");
    return {
      disposition: said,
      // None, or one of a newer sidecar: skipped is skipped.
      skipReason: find(SKIP_REASONS, skipReason) ?? null,
      entryId,
      ordinal,
      orders: readOrders(orders),
    };
  });
}

/** Record.Fit, for one order of the turn's conversation. `original` is empty for a note. */
export function fitCall(keys: TurnKeys, orderId: string, original: string, rewrite: string): Call<FitAnswer> {
  const { agentHandle, conversationKey } = keys;
  const ask = { agentHandle, conversationKey, fits: [{ orderId, original, rewrite }] };
  return call(record.Record.method.fit, ask, ({ results }) => {
    const [result] = results;
    if (result === undefined || results.length > 1) throw new RangeError("one fit has one result");
    return { verdict: named(VERDICTS, result.verdict), overByBytes: result.overByBytes };
  });
}

/** Record.Settle. */
export function settleCall(
  agentHandle: string,
  conversationKey: string,
  workKey: string,
): Call<Pick<Settlement, "entryId"> & { readonly outcome: SettleOutcome }> {
  const ask = { agentHandle, conversationKey, workKey };
  return call(record.Record.method.settle, ask, ({ outcome, entryId }) => ({
    outcome: named(SETTLE_OUTCOMES, outcome),
    entryId,
  }));
}

/** Record.Forget. */
export function forgetCall({ scope, ...value }: Scope): Call<Forgotten> {
  const ask = { scope: { case: scope, value } } as MessageInitShape<typeof record.ForgetRequestSchema>;
  return call(record.Record.method.forget, ask, ({ forgotten, erasure }) =>
    Object.freeze({ forgotten, erasure: named(ERASURES, erasure) }),
  );
}

function call<Input extends DescMessage, Output extends DescMessage, Answer>(
  method: {
    readonly parent: { readonly typeName: string };
    readonly name: string;
    readonly input: Input;
    readonly output: Output;
  },
  ask: MessageInitShape<Input>,
  read: (answer: ReturnType<typeof fromBinary<Output>>) => Answer,
): Call<Answer> {
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    request: toBinary(method.input, create(method.input, ask)),
    decode: (answer) => read(fromBinary(method.output, answer)),
  };
}

function readHistory({ $typeName: _, $unknown: __, ...said }: render.History): History {
  const history = { ...said, state: named(HISTORY_STATES, said.state) };
  if ((history.text !== "") !== (history.state === "present")) {
    throw new RangeError("the history's text does not go with its state");
  }
  if (history.digest !== digestOf(history.text)) throw new RangeError("the history's text does not go with its digest");
  return Object.freeze(history);
}

/** SHA-256 of the UTF-8 of `text`, lower-case hex. */
export function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function entryMessage({ completedAt, calls, outcome, ...texts }: Entry): MessageInitShape<typeof entry.EntrySchema> {
  return {
    ...texts,
    completedAt: timestampFromDate(completedAt),
    calls: calls.map((made) => ({ ...made, kind: CALL_KINDS[made.kind], sensitive: [...made.sensitive] })),
    outcome:
      outcome.reply === undefined ? { case: "unsent", value: outcome.unsent } : { case: "reply", value: outcome.reply },
  };
}

/** The orders of a kind that this library knows: no other may cost the answer that carries it. */
function readOrders(messages: readonly entry.Order[]): readonly IssuedOrder[] {
  return messages.flatMap(({ orderId, kind, text, limitBytes, instructions, closing }) => {
    const known = find(ORDER_KINDS, kind);
    return known === undefined ? [] : [{ orderId, kind: known, text, limitBytes, instructions, closing }];
  });
}

type Numbers<Name extends string, Value extends number> = { readonly [name in Name]: Value };

/** An enum's value as this library names it; undefined for a number that is not in the table. */
function find<Name extends string>(numbers: Numbers<Name, number>, value: number): Name | undefined {
  return (Object.keys(numbers) as Name[]).find((name) => numbers[name] === value);
}

/** As `find`; throws RangeError for what is not in the table. */
function named<Name extends string>(numbers: Numbers<Name, number>, value: number): Name {
  const name = find(numbers, value);
  if (name === undefined) throw new RangeError(`an enum has the unknown value ${value}`);
  return name;
}

const PHASES: Numbers<Phase, render.Phase> = {
  execute: render.Phase.EXECUTE,
  review: render.Phase.REVIEW,
  other: render.Phase.OTHER,
};

const HISTORY_STATES: Numbers<HistoryState, render.HistoryState> = {
  present: render.HistoryState.PRESENT,
  empty: render.HistoryState.EMPTY,
  disabled: render.HistoryState.DISABLED,
};

const RUN_ENDS: Numbers<RunEnd, record.RunEnd> = {
  completed: record.RunEnd.COMPLETED,
  crashed: record.RunEnd.CRASHED,
  suspended: record.RunEnd.SUSPENDED,
};

const CALL_KINDS: Numbers<CallKind, entry.CallKind> = {
  write: entry.CallKind.WRITE,
  read: entry.CallKind.READ,
  meta: entry.CallKind.META,
};

const ORDER_KINDS: Numbers<OrderKind, entry.OrderKind> = {
  argument: entry.OrderKind.ARGUMENT,
  error: entry.OrderKind.ERROR,
  note: entry.OrderKind.NOTE,
};

const DISPOSITIONS: Numbers<Disposition, record.Disposition> = {
  recorded: record.Disposition.RECORDED,
  duplicate: record.Disposition.DUPLICATE,
  skipped: record.Disposition.SKIPPED,
};

const SKIP_REASONS: Numbers<SkipReason, record.SkipReason> = {
  disabled: record.SkipReason.DISABLED,
  run_crashed: record.SkipReason.RUN_CRASHED,
  run_suspended: record.SkipReason.RUN_SUSPENDED,
  not_reproducible: record.SkipReason.NOT_REPRODUCIBLE,
  no_work_key: record.SkipReason.NO_WORK_KEY,
  forgotten: record.SkipReason.FORGOTTEN,
};

const VERDICTS: Numbers<Verdict, record.Verdict> = {
  accepted: record.Verdict.ACCEPTED,
  not_open: record.Verdict.NOT_OPEN,
  original_mismatch: record.Verdict.ORIGINAL_MISMATCH,
  too_long: record.Verdict.TOO_LONG,
  empty: record.Verdict.EMPTY,
  echo: record.Verdict.ECHO,
  invented: record.Verdict.INVENTED,
  invalid_text: record.Verdict.INVALID_TEXT,
};

const SETTLE_OUTCOMES: Numbers<SettleOutcome, record.SettleOutcome> = {
  settled: record.SettleOutcome.SETTLED,
  already_reply: record.SettleOutcome.ALREADY_REPLY,
  not_found: record.SettleOutcome.NOT_FOUND,
  no_longer_kept: record.SettleOutcome.NO_LONGER_KEPT,
};

const ERASURES: Numbers<Erasure, record.Erasure> = {
  complete: record.Erasure.COMPLETE,
  pending: record.Erasure.PENDING,
};
