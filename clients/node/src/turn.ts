import type { History, Phase, Receipt } from "./answers.js";
import type { Asker } from "./asking.js";
import { compose, type Parts, promptSize } from "./compose.js";
import { type CallKind, callKind, type Entry, type Outcome, type RunEnd, type ToolCall } from "./entry.js";
import { BAD_ANSWER, Failure } from "./failure.js";
import type { Filler } from "./filling.js";
import type { TurnKeys } from "./keys.js";
import { uint64 } from "./numbers.js";
import type { Reporter } from "./reporter.js";
import { asTheContractAllows, never } from "./retry.js";
import { dump, type SavedTurn } from "./saved.js";
import { Mender } from "./text.js";
import { appendCall, messageCall } from "./wire.js";

const LARGEST_ITERATION = 2 ** 32 - 1;

/** What every call takes: an aborted signal cancels it, and rejects it with the signal's reason. */
export interface Cancellable {
  readonly signal?: AbortSignal;
}

/** What an engine says of one tool call beside its name and arguments. */
export interface CallDetails {
  /** What the call could do. Whatever is not known is a `write`. */
  readonly kind?: CallKind | (string & {});
  /** What a failed call reported, which may be empty; left out for a call that succeeded. */
  readonly error?: string | null | undefined;
  /** Names of top-level arguments whose values are never stored nor shown. */
  readonly sensitive?: Iterable<string>;
}

/** What an engine gives for one round's message. Parts are taken verbatim, and left out if empty. */
export interface Round extends Cancellable {
  /** The kind of round. Only `execute` gets the block. */
  readonly phase: Phase;
  /** The ask. */
  readonly task: string;
  /** The engine's other blocks. */
  readonly context?: string;
  /** What was already done earlier in this turn, as the engine renders it. */
  readonly priorWork?: string;
  /** The round's number within its phase, from 1; left out: one more than the last. */
  readonly iteration?: number;
  /** Size of the system prompt in bytes of UTF-8 for the event `prompt.size`, if wanted there. */
  readonly systemBytes?: number | bigint;
  /** Size of the tool definitions in bytes of UTF-8, likewise. */
  readonly toolBytes?: number | bigint;
}

/** How a turn ended: the final text as `reply` or `unsent`, and what the next turn is told of it. */
export type Ending = Outcome &
  Cancellable & {
    /** What started the turn, verbatim; for a merged batch the whole digest. */
    readonly trigger: string;
    /** The executor's own summary of what it set out to do. */
    readonly intent?: string;
    /** How the turn ended, `[a-z_]{1,32}`; the next turn is told unless it is "done", which is the default. */
    readonly decision?: string;
    /** The reviewer's prose on what landed. */
    readonly completedWork?: string;
    /** The executor's evidence on a blocked turn. */
    readonly blockedOn?: string;
    /** When the turn ended; left out: now. */
    readonly completedAt?: Date;
    /**
     * Whether the seat's rewriter may be run for this turn, behind it; true by default. False for a turn that its budget
     * ended: only the engine knows which of its decisions say so.
     */
    readonly rewrite?: boolean;
  };

/** What a ledger's turns share. */
export interface Means {
  readonly asker: Asker;
  readonly reporter: Reporter;
  /** Null where the engine gave no rewriter. */
  readonly filler: Filler | null;
}

/** One turn, from its frozen history to its receipt. `Ledger.begin` and `Ledger.resume` make it. */
export class Turn {
  /** The turn's keys, as they are sent: valid Unicode. */
  readonly keys: TurnKeys;
  /** The frozen history; null if it could not be read, which `readFailure` then explains. */
  readonly history: History | null;
  /** Why the history could not be read; null if it was, also where nothing was there. */
  readonly readFailure: Failure | null;
  /**
   * Whether this work key was in the ledger when the turn began: a redelivery, which need not answer twice. False too if
   * the history could not be read.
   */
  readonly alreadyRecorded: boolean;

  readonly #means: Means;
  readonly #iterations: Map<Phase, number>;
  readonly #calls: ToolCall[];
  #composedOne = false;

  /** @internal */
  constructor(means: Means, opening: SavedTurn) {
    this.#means = means;
    this.keys = Object.freeze(opening.keys);
    this.history = opening.history;
    this.readFailure = opening.readFailure;
    this.alreadyRecorded = opening.alreadyRecorded;
    this.#iterations = new Map(opening.iterations);
    this.#calls = [...opening.calls];
  }

  /**
   * Collect one tool call for the turn's entry; nothing is sent before `complete`.
   *
   * @param name The tool's name, as the model gave it. Never empty.
   * @param args The JSON text that the model supplied, and no parsed value: parsing loses digits of numbers.
   * @throws TypeError if a text is no string, or `sensitive` is one string instead of several.
   */
  called(name: string, args: string, { kind, error, sensitive = [] }: CallDetails = {}): void {
    if (typeof sensitive === "string") throw new TypeError("sensitive takes several names, not one string");
    const mender = new Mender();
    const field = `entry.calls[${this.#calls.length}]`;
    this.#calls.push({
      name: mender.mend(`${field}.name`, name),
      arguments: mender.mend(`${field}.arguments`, args),
      kind: callKind(kind),
      failed: error !== undefined && error !== null,
      error: mender.mend(`${field}.error`, error ?? ""),
      sensitive: Array.from(sensitive, (secret) => mender.mend(`${field}.sensitive`, secret)),
    });
    this.#means.reporter.repaired(mender);
  }

  /**
   * One round's user message: the same bytes whether the sidecar answers or not, since they are composed here and who
   * answers decides only who accounts for them. Never asked for twice.
   *
   * @throws TypeError if a part is no string.
   * @throws RangeError if the phase is none, or a number is out of range.
   */
  async userMessage(round: Round): Promise<string> {
    const { asker, reporter } = this.#means;
    const began = asker.clock();
    const phase = checkedPhase(round.phase);
    const mender = new Mender();
    const history = phase === "execute" ? this.history : null;
    const parts: Parts = {
      context: mender.mend("context", round.context ?? ""),
      history: history?.text ?? "",
      task: mender.mend("task", round.task),
      priorWork: mender.mend("prior_work", round.priorWork ?? ""),
    };
    const systemBytes = uint64("systemBytes", round.systemBytes);
    const toolBytes = uint64("toolBytes", round.toolBytes);
    const iteration = this.#nextIteration(phase, round.iteration);
    const call = messageCall({ ...parts, keys: this.keys, phase, iteration, history, systemBytes, toolBytes });
    reporter.repaired(mender);
    const message = compose(parts);
    const answer = await asker.once(call, asker.patience.milliseconds(began), round.signal);
    const failure = disagreement(answer, message);
    const warn = failure !== null && !this.#composedOne;
    this.#composedOne ||= failure !== null;
    const size = promptSize(message, parts);
    const composer = failure === null ? "sidecar" : "client";
    const durationMs = asker.clock() - began;
    reporter.composed({ keys: this.keys, phase, iteration, composer, size, failure, durationMs }, warn);
    return message;
  }

  /**
   * Record the turn, with the calls collected. Call it before the trigger is acknowledged.
   *
   * Never rejects for a failure of the service: it is in `receipt.failure`, logged and counted. It may be called again
   * then; an entry that was written after all answers `duplicate`.
   *
   * @throws TypeError if a text is no string, or the outcome is neither `reply` nor `unsent`, or both.
   * @throws RangeError if `completedAt` is no date.
   */
  async complete(ending: Ending): Promise<Receipt> {
    const mender = new Mender();
    const entry: Entry = {
      turnId: this.keys.turnId,
      completedAt: checkedDate(ending.completedAt),
      trigger: mender.mend("entry.trigger", ending.trigger),
      intent: mender.mend("entry.intent", ending.intent ?? ""),
      calls: [...this.#calls],
      outcome: mendedOutcome(mender, ending),
      completedWork: mender.mend("entry.completed_work", ending.completedWork ?? ""),
      blockedOn: mender.mend("entry.blocked_on", ending.blockedOn ?? ""),
      decision: mender.mend("entry.decision", ending.decision ?? "done"),
    };
    this.#means.reporter.repaired(mender);
    return this.#append("completed", entry, ending.signal, ending.rewrite ?? true);
  }

  /** Say that the run is suspended: nothing is recorded, the resumed run (see `save`) completes the turn. Tried once. */
  async suspended({ signal }: Cancellable = {}): Promise<Receipt> {
    return this.#append("suspended", null, signal, false);
  }

  /** Say that the run crashed: nothing is recorded, whoever takes the turn up again completes it. Tried once. */
  async crashed({ signal }: Cancellable = {}): Promise<Receipt> {
    return this.#append("crashed", null, signal, false);
  }

  /**
   * The turn as text, for the engine's own persisted state: `Ledger.resume`, in any language, gives it back with the same
   * frozen bytes. JSON in ASCII with a version. It holds the block and the calls so far, so it is as confidential as the
   * conversation; values of sensitive arguments are withheld from it.
   */
  save(): string {
    const { keys, history, readFailure, alreadyRecorded } = this;
    return dump({ keys, history, readFailure, alreadyRecorded, iterations: this.#iterations, calls: this.#calls });
  }

  async #append(
    runEnd: RunEnd,
    entry: Entry | null,
    signal: AbortSignal | undefined,
    rewrite: boolean,
  ): Promise<Receipt> {
    const { asker, reporter, filler } = this.#means;
    const began = asker.clock();
    const [ms, rule] =
      entry === null ? [asker.deadlines.runEndMs, never] : [asker.deadlines.completeMs, asTheContractAllows];
    const { answer, attempts } = await asker.persist(appendCall(this.keys, runEnd, entry), ms, rule, signal);
    const receipt = receiptOf(answer, attempts);
    reporter.ended({ keys: this.keys, runEnd, receipt, durationMs: asker.clock() - began });
    if (rewrite && !(answer instanceof Failure)) filler?.start(this.keys, answer.orders);
    return receipt;
  }

  #nextIteration(phase: Phase, given: number | undefined): number {
    const iteration = given ?? (this.#iterations.get(phase) ?? 0) + 1;
    if (!Number.isInteger(iteration) || iteration < 1 || iteration > LARGEST_ITERATION) {
      throw new RangeError(`iteration must be 1 to ${LARGEST_ITERATION}, not ${iteration}`);
    }
    this.#iterations.set(phase, iteration);
    return iteration;
  }
}

function receiptOf(answer: Omit<Receipt, "failure" | "attempts" | "inLedger"> | Failure, attempts: number): Receipt {
  if (answer instanceof Failure) {
    const nothing = { disposition: null, skipReason: null, entryId: "", ordinal: 0n };
    return Object.freeze({ ...nothing, failure: answer, attempts, inLedger: false });
  }
  const { disposition, skipReason, entryId, ordinal } = answer;
  const inLedger = disposition !== "skipped";
  return Object.freeze({ disposition, skipReason, entryId, ordinal, failure: null, attempts, inLedger });
}

/** Why the sidecar's answer does not stand for `message`; null if it does, byte for byte. */
function disagreement(answer: string | Failure, message: string): Failure | null {
  if (answer instanceof Failure) return answer;
  return answer === message ? null : new Failure("OK", BAD_ANSWER, "the sidecar composed other bytes");
}

function mendedOutcome(mender: Mender, { reply, unsent }: Outcome): Outcome {
  if ((reply === undefined) === (unsent === undefined)) throw new TypeError("give reply or unsent, and not both");
  return reply === undefined
    ? { unsent: mender.mend("entry.unsent", unsent) }
    : { reply: mender.mend("entry.reply", reply) };
}

function checkedPhase(phase: Phase): Phase {
  if (phase === "execute" || phase === "review" || phase === "other") return phase;
  throw new RangeError(`the phase must be "execute", "review" or "other", not ${JSON.stringify(phase)}`);
}

function checkedDate(date: Date = new Date()): Date {
  if (!(date instanceof Date) || Number.isNaN(date.getTime())) throw new RangeError("completedAt must be a valid Date");
  return date;
}
