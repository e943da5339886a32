/**
 * The client of turnledger, the conversation session ledger: what did I already say and do here?
 *
 * `Ledger` is the sidecar as an engine sees it, `Turn` one turn. All else are the plain values that they take and give. Every
 * time is milliseconds, every size bytes of UTF-8.
 *
 * @packageDocumentation
 */

export type {
  Disposition,
  Erasure,
  Forgotten,
  History,
  HistoryState,
  Phase,
  Receipt,
  Settlement,
  SettleOutcome,
  SkipReason,
} from "./answers.js";
export { compose, type Parts, type PromptSize } from "./compose.js";
export { DEFAULT_DEADLINES, type Deadlines } from "./deadlines.js";
export type { CallKind, Outcome, RunEnd } from "./entry.js";
export type {
  Composer,
  HistoryRead,
  LedgerEvent,
  MessageComposed,
  OrderFilled,
  TextRepaired,
  TurnEnded,
  TurnSettled,
  TurnsForgotten,
} from "./events.js";
export { Failure, LedgerError, type Violation } from "./failure.js";
export type { Scope, TurnKeys } from "./keys.js";
export { type Beginning, Ledger, type LedgerOptions } from "./ledger.js";
export {
  type FillOutcome,
  type IssuedOrder,
  NoBudget,
  type Order,
  type OrderKind,
  type Rewrite,
  type Rewriter,
  type Verdict,
} from "./order.js";
export type { Logger } from "./reporter.js";
export { InvalidSavedTurn } from "./saved.js";
export type { Stats } from "./stats.js";
export type { CallDetails, Cancellable, Ending, Round, Turn } from "./turn.js";
export { workKey } from "./work-key.js";
