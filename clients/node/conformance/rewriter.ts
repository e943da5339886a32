import { NoBudget, type Order, type Rewriter } from "@turnledger/client";
import { type Command, text } from "./values.js";

/** A rewriter that gives a case's answers in order, the last one from then on, and remembers what it was asked. */
export class ScriptedRewriter {
  readonly calls: Partial<Order>[] = [];
  mostAtOnce = 0;
  readonly #answers: readonly Command[];
  #running = 0;

  constructor(answers: readonly Command[]) {
    this.#answers = answers;
  }

  readonly rewrite: Rewriter = async (order, signal) => {
    const said = this.#answers[Math.min(this.calls.length, this.#answers.length - 1)] ?? {};
    const { kind, text: given, limitBytes, agentHandle, attempt, rejection, overByBytes } = order;
    this.calls.push({ kind, text: given, limitBytes, agentHandle, attempt, rejection, overByBytes });
    this.#running += 1;
    this.mostAtOnce = Math.max(this.mostAtOnce, this.#running);
    try {
      await waited(said["hang"] ? Number.POSITIVE_INFINITY : Number(said["after"] ?? 0) * 1_000, signal);
      if (said["no_budget"]) throw new NoBudget();
      if (said["error"]) throw new Error("the model failed");
      return text(said["text"]);
    } finally {
      this.#running -= 1;
    }
  };
}

/** Wait so long, or until the call is given up. */
function waited(ms: number, signal: AbortSignal): Promise<void> {
  if (ms <= 0) return Promise.resolve();
  return new Promise((resolve, reject) => {
    const timer = Number.isFinite(ms) ? setTimeout(resolve, ms) : undefined;
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        reject(signal.reason);
      },
      { once: true },
    );
  });
}
