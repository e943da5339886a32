/** Why a call did not answer: one value, whatever went wrong between the engine and the sidecar. */

/** Nobody answered at the address, or the connection broke. */
export const UNREACHABLE = "UNREACHABLE";
/** No answer in time; what was asked may have happened all the same. */
export const DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED";
/** Over the message limit; the sidecar gives the same reason. */
export const TOO_LARGE = "TOO_LARGE";
/** An answer that the contract does not allow. */
export const BAD_ANSWER = "BAD_ANSWER";
/** The ledger was closed before the call was over. */
export const CLOSED = "CLOSED";

/** One field of a request that was refused, and the rule that it broke. */
export interface Violation {
  readonly field: string;
  readonly description: string;
}

/**
 * Why there is no answer.
 *
 * `code` is a gRPC status name and `reason` the machine-readable cause, to branch on: one of the constants of this
 * library, one of the sidecar's own, or, where whoever answered gave none, the name of the status.
 */
export class Failure {
  /** For a person. Left out where a failure is inspected or made JSON, since a foreign server may have written it. */
  declare readonly message: string;

  constructor(
    readonly code: string,
    readonly reason: string,
    message = "",
    /** How long the sidecar asks to wait, in milliseconds; null if it named no time. */
    readonly retryAfterMs: number | null = null,
    readonly violations: readonly Violation[] = [],
  ) {
    Object.defineProperty(this, "message", { value: message, enumerable: false });
    Object.freeze(this);
  }

  /** Fit for a log: code, reason and the refused fields, with the message only where the transport wrote it. */
  toString(): string {
    const named = this.code === this.reason ? this.code : `${this.code} ${this.reason}`;
    const fields = this.violations.map((violation) => violation.field).join(", ");
    const line = fields ? `${named} (${fields})` : named;
    return this.reason === UNREACHABLE && this.message ? `${line}: ${this.message.trim()}` : line;
  }
}

/** A call whose failure the caller must see: nothing was forgotten, as far as anybody knows. */
export class LedgerError extends Error {
  override readonly name = "LedgerError";

  constructor(readonly failure: Failure) {
    super(failure.toString());
  }
}
