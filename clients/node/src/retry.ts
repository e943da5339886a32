/** When a call is made again, and after how long: the table of the contract's errors as one rule. */

import { type Failure, UNREACHABLE } from "./failure.js";

/** The first wait where the sidecar names none, doubled each time: a sidecar restarts in well under a second. */
export const FIRST_WAIT_MS = 50;
/** The longest such wait, so that a sidecar that comes back is found within a second. */
export const LONGEST_WAIT_MS = 1_000;

/** Decides whether a call that failed may be made again. */
export type Rule = (failure: Failure) => boolean;

/** For what is over with the first failure. */
export const never: Rule = () => false;

/**
 * For writes: unavailable, shed, or out of time. All are idempotent, so a lost answer is safe to ask for again. A full disk,
 * a message over the limit, a refused field, a damaged store and a bug stay as they are: never again.
 */
export const asTheContractAllows: Rule = (failure) =>
  failure.code === "UNAVAILABLE" || failure.code === "DEADLINE_EXCEEDED" || failure.reason === "OVERLOADED";

/** For the read at turn start: as for writes, but somebody waits, so an address where nobody is fails at once. */
export const whileItAnswers: Rule = (failure) => asTheContractAllows(failure) && failure.reason !== UNREACHABLE;

/**
 * How long to wait after the `attempt`-th failure (from 1), in milliseconds, jittered by `random` (0 up to 1).
 *
 * The sidecar's own time is a floor, up to half as much again is added; else half to all of a doubling wait is taken.
 * Jitter keeps engines that were shed together from coming back together.
 */
export function waitMs(failure: Failure, attempt: number, random: number): number {
  if (failure.retryAfterMs !== null && failure.retryAfterMs > 0) return failure.retryAfterMs * (1 + random / 2);
  const doubled = FIRST_WAIT_MS * 2 ** Math.min(attempt - 1, 16);
  return Math.min(doubled, LONGEST_WAIT_MS) * (0.5 + random / 2);
}
