/** The one place that logs, counts and calls the engine's hook, and never with text of an entry or of a prompt. */

import type {
  HistoryRead,
  LedgerEvent,
  MessageComposed,
  OrderFilled,
  TurnEnded,
  TurnSettled,
  TurnsForgotten,
} from "./events.js";
import type { FillOutcome } from "./order.js";
import { Counters, type Stats } from "./stats.js";
import type { Mender } from "./text.js";

/** Where lines go: `console` fits, and so do most loggers. A level that is left out is silent. */
export interface Logger {
  debug?(line: string): void;
  info?(line: string): void;
  warn?(line: string): void;
}

type Level = keyof Logger;

const ORDER_COUNTS: { readonly [outcome in FillOutcome]: keyof Stats } = {
  accepted: "ordersAccepted",
  rejected: "ordersRejected",
  error: "ordersError",
  no_budget: "ordersNoBudget",
  deadline: "ordersDeadline",
  not_sent: "ordersNotSent",
  abandoned: "ordersAbandoned",
};

const DISPOSITION_COUNTS = { recorded: "recorded", duplicate: "duplicates", skipped: "skipped" } as const;

/** Reports what happened, by log, count and hook. */
export class Reporter {
  readonly counters = new Counters();
  readonly #logger: Logger;
  readonly #onEvent: ((event: LedgerEvent) => unknown) | undefined;

  constructor(logger: Logger, onEvent: ((event: LedgerEvent) => unknown) | undefined) {
    this.#logger = logger;
    this.#onEvent = onEvent;
  }

  /** A turn began. */
  read(event: Omit<HistoryRead, "type">): void {
    if (event.failure === null) {
      this.counters.add("reads");
    } else {
      this.counters.failed("readFailures", event.failure);
      this.#log("warn", `history could not be read, ${turnOf(event)} runs without it: ${event.failure}`);
    }
    this.#tell({ type: "history_read", ...event });
  }

  /** A round has its message; `warn` if this is the first of its turn that the sidecar did not compose. */
  composed(event: Omit<MessageComposed, "type">, warn: boolean): void {
    if (event.failure === null) {
      this.counters.add("composedBySidecar");
    } else {
      this.counters.failed("composedLocally", event.failure);
      this.#log(warn ? "warn" : "debug", `messages of ${turnOf(event)} are composed by the client: ${event.failure}`);
    }
    this.#tell({ type: "message_composed", ...event });
  }

  /** A turn ended. */
  ended(event: Omit<TurnEnded, "type">): void {
    const { disposition, failure, attempts } = event.receipt;
    if (disposition !== null) this.counters.add(DISPOSITION_COUNTS[disposition]);
    if (failure !== null && event.runEnd === "completed") {
      this.counters.failed("writeFailures", failure);
      this.#log("warn", `${turnOf(event)} is not known to be recorded, attempts ${attempts}: ${failure}`);
    } else if (failure !== null) {
      this.counters.failed("runEndFailures", failure);
      this.#log("info", `${turnOf(event)} ended ${event.runEnd}, which the sidecar did not hear: ${failure}`);
    }
    this.#tell({ type: "turn_ended", ...event });
  }

  /** A settle was asked for. */
  settled(event: Omit<TurnSettled, "type">): void {
    const { failure } = event.settlement;
    if (failure === null) {
      this.counters.add("settled");
    } else {
      this.counters.failed("settleFailures", failure);
      this.#log("warn", `a turn could not be settled: ${failure}`);
    }
    this.#tell({ type: "turn_settled", ...event });
  }

  /** A forget was asked for. Its failure is thrown to the caller, who logs it as it likes. */
  forgotten(event: Omit<TurnsForgotten, "type">): void {
    if (event.forgotten !== null) this.counters.add("forgotten", Number(event.forgotten.forgotten));
    if (event.failure !== null) this.counters.failed("forgetFailures", event.failure);
    this.#tell({ type: "turns_forgotten", ...event });
  }

  /** An order is over. Nothing of it ever reaches a turn, so this is all that anybody hears. */
  filled(event: OrderFilled): void {
    this.counters.add("rewriterCalls", event.calls);
    this.counters.add("rewriterPromptTokens", event.promptTokens);
    this.counters.add("rewriterCompletionTokens", event.completionTokens);
    if (event.failure === null) this.counters.add(ORDER_COUNTS[event.outcome]);
    else this.counters.failed(ORDER_COUNTS[event.outcome], event.failure);
    const why = event.error || event.failure || event.verdict || "no verdict";
    this.#log(
      event.outcome === "error" || event.outcome === "not_sent" ? "warn" : "debug",
      `a rewrite (${event.kind}) for ${quoted(event.keys.agentHandle)} ended ${event.outcome} after ${event.calls} calls: ${why}`,
    );
    this.#tell(event);
  }

  /** A request's texts went through `mender`. */
  repaired({ fields, replaced }: Mender): void {
    if (replaced === 0) return;
    this.counters.add("repaired", replaced);
    this.#log("warn", `${replaced} lone surrogates became U+FFFD in ${fields.join(", ")}`);
    this.#tell({ type: "text_repaired", fields, replaced });
  }

  /** Call a hook of the engine: what it throws, now or later, is reported by name, since its text may hold anything. */
  guarded(hook: string, run: () => unknown): void {
    const failed = (error: unknown) => {
      this.counters.add("hookFailures");
      this.#log("warn", `the ${hook} hook failed: ${nameOf(error)}`);
    };
    try {
      const came = run();
      // An async hook fits too, and nobody else would look at its rejection.
      if (came instanceof Promise) came.catch(failed);
    } catch (error) {
      failed(error);
    }
  }

  #tell(event: LedgerEvent): void {
    this.guarded(`onEvent (on ${event.type})`, () => this.#onEvent?.(Object.freeze(event)));
  }

  #log(level: Level, line: string): void {
    try {
      this.#logger[level]?.(`turnledger: ${line}`);
    } catch {
      // Nobody is left to tell: a logger that throws must not cost a turn.
      this.counters.add("hookFailures");
    }
  }
}

/** The name of what was thrown, and never its text. */
export function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error;
}

function turnOf({ keys }: { readonly keys: { readonly turnId: string; readonly agentHandle: string } }): string {
  return `turn ${quoted(keys.turnId)} of ${quoted(keys.agentHandle)}`;
}

// An identifier is quoted, so that one with a line break writes no line of its own.
function quoted(text: string): string {
  return JSON.stringify(text);
}
