/** Counts of what a ledger did since it was made. */

import { type Failure, TOO_LARGE } from "./failure.js";

// Each counts calls of the engine, not tries on the wire, unless it says otherwise.
const ZERO = {
  /** Turns that began with an answer: a block, nothing there, or switched off. */
  reads: 0,
  /** Turns that began without one, since the history could not be read. */
  readFailures: 0,
  /** Messages that the sidecar composed. */
  composedBySidecar: 0,
  /** Messages that were composed here, since the sidecar did not answer. */
  composedLocally: 0,
  /** Turns written by this call, ... */
  recorded: 0,
  /** ... there already, ... */
  duplicates: 0,
  /** ... not for the ledger (crashed and suspended runs among them), ... */
  skipped: 0,
  /** ... and lost to a failure. */
  writeFailures: 0,
  /** Runs whose suspension or crash the sidecar did not hear of. Nothing was to be recorded. */
  runEndFailures: 0,
  settled: 0,
  settleFailures: 0,
  /** Turns that were erased. */
  forgotten: 0,
  forgetFailures: 0,
  /** Orders whose rewrite was stored, ... */
  ordersAccepted: 0,
  /** ... not taken by the sidecar, ... */
  ordersRejected: 0,
  /** ... lost to what the rewriter threw, ... */
  ordersError: 0,
  /** ... without budget, ... */
  ordersNoBudget: 0,
  /** ... out of time, ... */
  ordersDeadline: 0,
  /** ... rewritten, with a sidecar that could not be told, ... */
  ordersNotSent: 0,
  /** ... and given up by `close`, or in too large a crowd. */
  ordersAbandoned: 0,
  /** Calls of the rewriter, retries among them, and what they took as far as it said so. */
  rewriterCalls: 0,
  rewriterPromptTokens: 0,
  rewriterCompletionTokens: 0,
  /** Of all failures, those over the message limit. */
  tooLarge: 0,
  /** Tries on the wire after the first. */
  retries: 0,
  /** Lone surrogates that became U+FFFD. */
  repaired: 0,
  /** Times that a hook of the engine (`onEvent`, `logger`, `propagate`) threw. */
  hookFailures: 0,
};

/** A snapshot of a ledger's counts. */
export type Stats = Readonly<typeof ZERO>;

/** The live counts behind `Stats`. */
export class Counters {
  readonly #counts = { ...ZERO };

  /** Add to one count. */
  add(name: keyof Stats, count = 1): void {
    this.#counts[name] += count;
  }

  /** Add to one count, and to that of the failure's own reason. */
  failed(name: keyof Stats, failure: Failure): void {
    this.add(name);
    if (failure.reason === TOO_LARGE) this.add("tooLarge");
  }

  /** The counts as they stand. */
  snapshot(): Stats {
    return Object.freeze({ ...this.#counts });
  }
}
