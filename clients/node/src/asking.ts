/** How the sidecar is asked: once, or again as a rule allows, within one deadline. All times are milliseconds. */

import type { Channel } from "./channel.js";
import { type Deadlines, Patience } from "./deadlines.js";
import { BAD_ANSWER, CLOSED, DEADLINE_EXCEEDED, Failure, TOO_LARGE, UNREACHABLE } from "./failure.js";
import { MESSAGE_BYTES } from "./limits.js";
import { pause } from "./pause.js";
import { type Rule, waitMs } from "./retry.js";
import type { Counters } from "./stats.js";
import type { Call } from "./wire.js";

// With less left than this no further try is made: it could only end in the deadline.
const SHORTEST_TRY_MS = 10;

// A further try that had less than this and ran out of time says nothing new: the failure before it stands.
const TELLING_TRY_MS = 500;

/** The means of asking, shared by all turns of a ledger. */
export class Asker {
  readonly patience: Patience;

  constructor(
    readonly channel: Channel,
    readonly deadlines: Deadlines,
    readonly counters: Counters,
    /** Monotonic milliseconds. */
    readonly clock: () => number = () => performance.now(),
    /** 0 up to 1. */
    readonly random: () => number = Math.random,
  ) {
    this.patience = new Patience(deadlines.userMessageMs);
  }

  /** One try. What came of it tells how patient the next rounds may be. Throws the signal's reason when it is aborted. */
  async once<Answer>(call: Call<Answer>, ms: number, signal: AbortSignal | undefined): Promise<Answer | Failure> {
    const came = await this.#try(call, ms, signal);
    if (!(came instanceof Failure)) this.patience.answered();
    else if (came.reason === UNREACHABLE || came.reason === DEADLINE_EXCEEDED) this.patience.unanswered(this.clock());
    else if (came.reason !== TOO_LARGE && came.reason !== CLOSED) this.patience.answered();
    return came;
  }

  /** As many tries as `rule` allows within `ms` altogether; what came of them, and how many there were. */
  async persist<Answer>(
    call: Call<Answer>,
    ms: number,
    rule: Rule,
    signal: AbortSignal | undefined,
  ): Promise<{ readonly answer: Answer | Failure; readonly attempts: number }> {
    const until = this.clock() + ms;
    let before: Failure | null = null;
    for (let attempts = 1; ; attempts += 1) {
      const left = Math.max(until - this.clock(), 0);
      let answer = await this.once(call, left, signal);
      if (!(answer instanceof Failure) || !rule(answer)) return { answer, attempts };
      if (before !== null && answer.reason === DEADLINE_EXCEEDED && left < TELLING_TRY_MS) answer = before;
      before = answer;
      const wait = waitMs(answer, attempts, this.random());
      if (this.clock() + wait > until - SHORTEST_TRY_MS) return { answer, attempts };
      await pause(wait, { signals: [signal, this.channel.closing] });
      this.counters.add("retries");
    }
  }

  async #try<Answer>(call: Call<Answer>, ms: number, signal: AbortSignal | undefined): Promise<Answer | Failure> {
    const size = call.request.byteLength;
    if (size > MESSAGE_BYTES) {
      return new Failure("RESOURCE_EXHAUSTED", TOO_LARGE, `the request has ${size} bytes of at most ${MESSAGE_BYTES}`);
    }
    const came = await this.channel.call(call.path, call.request, ms, signal);
    if (came instanceof Failure) return came;
    try {
      return call.decode(came);
    } catch (error) {
      // The runtime throws plain errors at bytes that do not parse, and whatever it is, the answer was not one.
      return new Failure("OK", BAD_ANSWER, error instanceof Error ? error.message : "");
    }
  }
}
