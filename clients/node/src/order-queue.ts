/** The orders that wait and run: each at most once at a time, a few at once. */

import type { AsyncResource } from "node:async_hooks";
import type { OrderFilled } from "./events.js";
import type { TurnKeys } from "./keys.js";
import type { IssuedOrder } from "./order.js";

/**
 * Orders that may wait: 64 MiB of text at most. A crowd of this size is minutes of work for a few calls at a time, and most
 * would be past their deadline by then.
 */
const WAITING_ORDERS = 1_000;

/** Orders remembered as failed, so that not every later turn pays for the same failure again: hundreds of bytes each. */
const RESTING_ORDERS = 10_000;

/** An order on its way. */
export interface Job {
  readonly keys: TurnKeys;
  readonly order: IssuedOrder;
  /** When its time is over, in monotonic milliseconds. */
  readonly until: number;
  /** The orders of one answer, which end with the first of them that finds no budget. */
  readonly batch: { hasBudget: boolean };
  /** The async context of its turn. */
  readonly context: AsyncResource;
  /** What became of it. */
  readonly done: Promise<OrderFilled>;
  readonly settle: (filled: OrderFilled) => void;
}

/** First come, first served, but for orders that a turn waits for; `limit` workers at most take from it. */
export class OrderQueue {
  readonly #limit: number;
  #waiting: Job[] = [];
  readonly #open = new Map<string, Job>();
  readonly #resting = new Map<string, number>();
  #workers = 0;
  #closed = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /**
   * Those to wait for (an equal one stands for each that is open already), those without room, workers wanted. A closed
   * queue takes none, and an order that failed is not taken before its rest is over (`now` is monotonic milliseconds).
   */
  add(jobs: readonly Job[], now: number, urgent: boolean): { followed: Job[]; crowded: Job[]; wanted: number } {
    const followed: Job[] = [];
    const fresh: Job[] = [];
    const crowded: Job[] = [];
    for (const job of this.#closed ? [] : jobs) {
      const name = nameOf(job);
      const known = this.#open.get(name);
      if (known !== undefined) followed.push(known);
      else if (this.#waiting.length + fresh.length >= WAITING_ORDERS) crowded.push(job);
      else if ((this.#resting.get(name) ?? now) <= now) {
        this.#open.set(name, job);
        fresh.push(job);
      }
    }
    this.#waiting = urgent ? [...fresh, ...this.#waiting] : [...this.#waiting, ...fresh];
    const wanted = Math.min(this.#limit - this.#workers, fresh.length);
    this.#workers += wanted;
    return { followed: [...followed, ...fresh], crowded, wanted };
  }

  /** The next order for a worker; undefined, and one worker less, if there is none. */
  take(): Job | undefined {
    const job = this.#waiting.shift();
    if (job === undefined) this.#workers -= 1;
    return job;
  }

  /** The order is over: whoever waits for it goes on. It rests until then (monotonic milliseconds), if it failed. */
  end(job: Job, filled: OrderFilled, restsUntil: number | null): void {
    const name = nameOf(job);
    this.#open.delete(name);
    if (restsUntil !== null) {
      this.#resting.set(name, restsUntil);
      const [oldest] = this.#resting.keys();
      if (this.#resting.size > RESTING_ORDERS && oldest !== undefined) this.#resting.delete(oldest);
    }
    job.settle(filled);
  }

  /** Take no more. What waits may still be run. */
  close(): void {
    this.#closed = true;
  }

  /** Take what waits out of the queue. */
  strand(): Job[] {
    const waiting = this.#waiting;
    this.#waiting = [];
    return waiting;
  }
}

/** What makes it this order and no other. */
function nameOf({ keys, order }: Job): string {
  return JSON.stringify([keys.agentHandle, keys.conversationKey, order.orderId]);
}
