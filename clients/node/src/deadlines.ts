/** How long an engine waits for its sidecar. All times are milliseconds. */

/**
 * While the sidecar is known not to answer, a round waits this long at most. A sidecar that is well answers a message in a
 * few milliseconds, and 30 rounds against a hung one then cost two seconds, not fifteen.
 */
export const STRAINED_MESSAGE_MS = 50;

/** ... but once in this time a round waits in full again, so that a sidecar that is merely slow is found to be back. */
export const FULL_WAIT_EVERY_MS = 30_000;

/** The most that each call may take in milliseconds, retries and the waits between them included. */
export interface Deadlines {
  /** A person waits for the turn to start, and a turn without its history may repeat itself: worth a moment, not more. */
  readonly beginMs: number;
  /** Every round pays it, and a message composed here has the same bytes: only the sidecar's own event is lost. */
  readonly userMessageMs: number;
  /** The turn is over and nobody waits, while its entry has no other copy: long enough for a sidecar to restart. */
  readonly completeMs: number;
  /** Says only that a run was suspended or crashed; nothing is recorded either way. */
  readonly runEndMs: number;
  /** As `completeMs`: the entry would go on telling the next turn that nobody received its text. */
  readonly settleMs: number;
  /** Erasing may wait for the writer and for a checkpoint. */
  readonly forgetMs: number;
  /** From an answer to the last of its orders, waiting, retry and all. */
  readonly rewriteMs: number;
  /** What `close` gives the orders that are left. */
  readonly closeMs: number;
}

export const DEFAULT_DEADLINES: Deadlines = Object.freeze({
  beginMs: 2_000,
  userMessageMs: 500,
  completeMs: 10_000,
  runEndMs: 500,
  settleMs: 10_000,
  forgetMs: 10_000,
  rewriteMs: 30_000,
  closeMs: 3_000,
});

/** The default deadlines but for those given. Throws RangeError unless every one is a finite number above 0. */
export function checkedDeadlines(given: Partial<Deadlines>): Deadlines {
  const deadlines: Deadlines = { ...DEFAULT_DEADLINES, ...given };
  for (const [name, ms] of Object.entries(deadlines)) {
    if (!(name in DEFAULT_DEADLINES)) throw new RangeError(`there is no deadline ${name}`);
    if (!(Number.isFinite(ms) && ms > 0)) {
      throw new RangeError(`deadline ${name} must be a finite number of milliseconds above 0, not ${ms}`);
    }
  }
  return Object.freeze(deadlines);
}

/**
 * How long a round waits for its message: in full while the sidecar answers, briefly while it is known not to. All turns of
 * a ledger share one, so that what one turn learned spares the others. Times are monotonic milliseconds.
 */
export class Patience {
  readonly #fullMs: number;
  #fullWaitFrom: number | null = null;

  constructor(fullMs: number) {
    this.#fullMs = fullMs;
  }

  /** The sidecar answered something, if only an error. */
  answered(): void {
    this.#fullWaitFrom = null;
  }

  /** The sidecar did not answer at all, or not in time. */
  unanswered(now: number): void {
    this.#fullWaitFrom ??= now + FULL_WAIT_EVERY_MS;
  }

  /** How long the message that is asked for now may take. */
  milliseconds(now: number): number {
    if (this.#fullWaitFrom === null) return this.#fullMs;
    if (now >= this.#fullWaitFrom) {
      this.#fullWaitFrom = now + FULL_WAIT_EVERY_MS;
      return this.#fullMs;
    }
    return Math.min(this.#fullMs, STRAINED_MESSAGE_MS);
  }
}
