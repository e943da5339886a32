/** How orders are filled: a few at a time, within one deadline, a rejected one once more, and never at a turn's cost. */

import { AsyncResource } from "node:async_hooks";
import type { Asker } from "./asking.js";
import type { OrderFilled } from "./events.js";
import { Failure } from "./failure.js";
import type { TurnKeys } from "./keys.js";
import {
  attemptAt,
  type FillOutcome,
  type IssuedOrder,
  NoBudget,
  type Order,
  type Rewrite,
  type Rewriter,
  type Verdict,
  worthARetry,
} from "./order.js";
import { type Job, OrderQueue } from "./order-queue.js";
import { pause } from "./pause.js";
import { Places } from "./places.js";
import { nameOf, type Reporter } from "./reporter.js";
import { asTheContractAllows } from "./retry.js";
import { repaired } from "./text.js";
import { type FitAnswer, fitCall } from "./wire.js";

/**
 * Calls of the rewriter at once: a turn's handful of orders is done in two or three rounds, and a provider's limit on a
 * seat's small model is not met by its bookkeeping.
 */
export const REWRITES_AT_ONCE = 3;

// A rewrite that came in time is paid for: handing it in gets at least this long.
const FIT_MS = 1_000;

// With less left than this no model answers.
const SHORTEST_CALL_MS = 50;

// An order whose call failed is let be for so long: History names a missing note at each turn, and a model that fails on it
// again and again would be paid, and waited for, each time.
const REST_MS = 600_000;

// What is given up gets this long to notice.
const NOTICE_MS = 500;

/** What became of an order so far, and what it took. It was abandoned unless something else is said. */
class Progress {
  outcome: FillOutcome = "abandoned";
  verdict: Verdict | null = null;
  calls = 0;
  promptTokens = 0;
  completionTokens = 0;
  error = "";
  failure: Failure | null = null;
  /** Rejected twice. */
  hopeless = false;
}

/** Fills the orders of one ledger through its rewriter, `atOnce` at a time. */
export class Filler {
  readonly #asker: Asker;
  readonly #reporter: Reporter;
  readonly #rewriter: Rewriter;
  readonly #queue: OrderQueue;
  readonly #places: Places;
  readonly #workers = new Set<Promise<void>>();
  readonly #givenUp = new AbortController();

  constructor(asker: Asker, reporter: Reporter, rewriter: Rewriter, atOnce: number) {
    if (!Number.isSafeInteger(atOnce) || atOnce < 1)
      throw new RangeError(`rewritesAtOnce must be 1 or more, not ${atOnce}`);
    if (typeof rewriter !== "function") throw new TypeError(`the rewriter must be a function, not ${typeof rewriter}`);
    this.#asker = asker;
    this.#reporter = reporter;
    this.#rewriter = rewriter;
    this.#queue = new OrderQueue(atOnce);
    this.#places = new Places(atOnce);
  }

  /** Have the orders filled in the background; the jobs to wait for. `urgent`: before others, a turn waits. */
  start(keys: TurnKeys, orders: readonly IssuedOrder[], urgent = false): readonly Job[] {
    const batch = { hasBudget: true };
    const now = this.#asker.clock();
    const until = now + this.#asker.deadlines.rewriteMs;
    const jobs = orders.map((order) => newJob(keys, order, until, batch));
    const { followed, crowded, wanted } = this.#queue.add(jobs, now, urgent);
    this.#abandon(crowded);
    for (let started = 0; started < wanted; started += 1) {
      const worker = this.#work().finally(() => this.#workers.delete(worker));
      this.#workers.add(worker);
    }
    return followed;
  }

  /** Wait until no order waits or runs, `ms` at most; whether that came. */
  async finish(ms: number): Promise<boolean> {
    await pause(ms, { done: Promise.all(this.#workers) });
    return this.#workers.size === 0;
  }

  /** Take no further orders, let the others end within `closeMs`, then give up what is left. */
  async close(): Promise<void> {
    this.#queue.close();
    await this.finish(this.#asker.deadlines.closeMs);
    this.#abandon(this.#queue.strand());
    this.#givenUp.abort();
    await this.finish(NOTICE_MS);
  }

  /** One worker: order after order until none waits. */
  async #work(): Promise<void> {
    for (let job = this.#queue.take(); job !== undefined; job = this.#queue.take()) {
      const taken = job;
      await taken.context.runInAsyncScope(() => this.#fill(taken));
    }
  }

  /** One order to its end, whatever happens: nothing of it may reach a turn or the process. */
  async #fill(job: Job): Promise<void> {
    const began = this.#asker.clock();
    const progress = new Progress();
    try {
      await this.#tries(job, progress);
    } catch (error) {
      if (this.#givenUp.signal.aborted) progress.outcome = "abandoned";
      else [progress.outcome, progress.error] = ["error", nameOf(error)];
    }
    this.#end(job, progress, this.#asker.clock() - began);
  }

  /** The first try and, after a rejection that it may mend, the one retry. */
  async #tries(job: Job, progress: Progress): Promise<void> {
    const rejected = await this.#try(job, null, progress);
    if (rejected !== null && job.batch.hasBudget && this.#left(job) > SHORTEST_CALL_MS) {
      progress.hopeless = (await this.#try(job, rejected, progress)) !== null;
    }
  }

  /** One call of the rewriter, handed in. What the sidecar said, if that is worth a retry. */
  async #try(job: Job, rejected: FitAnswer | null, progress: Progress): Promise<FitAnswer | null> {
    const came = await this.#rewrite(job, rejected, progress);
    if (came === null) return null;
    const { kind, orderId, text } = job.order;
    // A note's original is the entry, which the sidecar has.
    const call = fitCall(job.keys, orderId, kind === "note" ? "" : text, repaired(came.text)[0]);
    const ms = Math.max(this.#left(job), FIT_MS);
    const { answer } = await this.#asker.persist(call, ms, asTheContractAllows, this.#givenUp.signal);
    if (answer instanceof Failure) {
      [progress.outcome, progress.failure] = ["not_sent", answer];
      return null;
    }
    progress.verdict = answer.verdict;
    progress.outcome = answer.verdict === "accepted" ? "accepted" : "rejected";
    return worthARetry(answer.verdict) ? answer : null;
  }

  /** What the rewriter made of the order within what is left of its time, if its batch has budget. */
  async #rewrite(job: Job, rejected: FitAnswer | null, progress: Progress): Promise<Rewrite | null> {
    const left = this.#left(job);
    if (!job.batch.hasBudget || left <= SHORTEST_CALL_MS || !(await this.#places.take(left, this.#givenUp.signal))) {
      progress.outcome = job.batch.hasBudget ? "deadline" : "no_budget";
      this.#givenUp.signal.throwIfAborted();
      return null;
    }
    progress.calls += 1;
    try {
      const timeoutMs = Math.max(this.#left(job), 0);
      const came = await this.#consult(attemptAt(job.order, job.keys.agentHandle, timeoutMs, rejected));
      if (came === undefined) {
        progress.outcome = "deadline";
        return null;
      }
      const rewrite = checkedRewrite(came);
      progress.promptTokens += rewrite.promptTokens ?? 0;
      progress.completionTokens += rewrite.completionTokens ?? 0;
      return rewrite;
    } catch (error) {
      if (!(error instanceof NoBudget)) throw error;
      job.batch.hasBudget = false;
      progress.outcome = "no_budget";
      return null;
    }
  }

  /** Call the rewriter, which holds its place until it ends. Undefined if its time was over first. */
  async #consult(order: Order): Promise<Rewrite | string | undefined> {
    const stop = new AbortController();
    let came: { readonly value: Rewrite | string } | undefined;
    let thrown: { readonly error: unknown } | undefined;
    const call = (async () => this.#rewriter(order, stop.signal))()
      .then(
        (value) => {
          came = { value };
        },
        (error: unknown) => {
          thrown = { error };
        },
      )
      .finally(() => this.#places.leave());
    await pause(order.timeoutMs, { done: call, signals: [this.#givenUp.signal], hold: false });
    stop.abort();
    this.#givenUp.signal.throwIfAborted();
    if (thrown !== undefined) throw thrown.error;
    return came?.value;
  }

  #left(job: Job): number {
    return job.until - this.#asker.clock();
  }

  #abandon(jobs: readonly Job[]): void {
    for (const job of jobs) this.#end(job, new Progress(), 0);
  }

  #end(job: Job, { hopeless, ...progress }: Progress, durationMs: number): void {
    const { orderId, kind } = job.order;
    const filled: OrderFilled = { type: "order_filled", keys: job.keys, orderId, kind, ...progress, durationMs };
    this.#reporter.filled(filled);
    const failed = progress.calls > 0 && (progress.outcome === "error" || progress.outcome === "deadline");
    const rests = hopeless ? Number.POSITIVE_INFINITY : failed ? this.#asker.clock() + REST_MS : null;
    this.#queue.end(job, filled, rests);
  }
}

/** Whether a rewrite of the order stands in the next block: this one, or one that came before. */
export function changedTheBlock({ verdict }: OrderFilled): boolean {
  return verdict === "accepted" || verdict === "not_open";
}

function newJob(keys: TurnKeys, order: IssuedOrder, until: number, batch: Job["batch"]): Job {
  let settle: Job["settle"] = () => {};
  const done = new Promise<OrderFilled>((resolve) => {
    settle = resolve;
  });
  return { keys, order, until, batch, context: new AsyncResource("turnledger.order"), done, settle };
}

/** What the rewriter returned, as a rewrite. Throws TypeError where it is none. */
function checkedRewrite(came: Rewrite | string): Rewrite {
  const rewrite = typeof came === "string" ? { text: came } : came;
  const counts = [rewrite?.promptTokens ?? 0, rewrite?.completionTokens ?? 0];
  if (typeof rewrite?.text !== "string" || !counts.every((count) => Number.isSafeInteger(count) && count >= 0)) {
    throw new TypeError("a rewriter returns a string, or a text with counts of tokens");
  }
  return rewrite;
}
