/**
 * What a ledger tells its engine as it happens, for metrics. No event ever carries text of an entry or of a prompt.
 *
 * An event reaches the one `onEvent` hook, in the async context that caused it. Times are milliseconds, sizes are bytes of UTF-8.
 */

import type { Forgotten, HistoryState, Phase, Receipt, Settlement } from "./answers.js";
import type { PromptSize } from "./compose.js";
import type { RunEnd } from "./entry.js";
import type { Failure } from "./failure.js";
import type { TurnKeys } from "./keys.js";
import type { FillOutcome, OrderKind, Verdict } from "./order.js";

/** Who composed a message and so accounts for it: the sidecar emits `prompt.size` only for its own. */
export type Composer = "sidecar" | "client";

/** A turn began. Exactly one of `state` and `failure` is set; `bytes` is the block's size. */
export interface HistoryRead {
  readonly type: "history_read";
  readonly keys: TurnKeys;
  readonly state: HistoryState | null;
  readonly bytes: number;
  readonly alreadyRecorded: boolean;
  readonly failure: Failure | null;
  readonly durationMs: number;
}

/** A round has its message. `failure` says why the client composed it by itself. */
export interface MessageComposed {
  readonly type: "message_composed";
  readonly keys: TurnKeys;
  readonly phase: Phase;
  readonly iteration: number;
  readonly composer: Composer;
  readonly size: PromptSize;
  readonly failure: Failure | null;
  readonly durationMs: number;
}

/** A turn completed, or its run was suspended or crashed; the receipt says what became of it. */
export interface TurnEnded {
  readonly type: "turn_ended";
  readonly keys: TurnKeys;
  readonly runEnd: RunEnd;
  readonly receipt: Receipt;
  readonly durationMs: number;
}

/** A settle was asked for. */
export interface TurnSettled {
  readonly type: "turn_settled";
  readonly settlement: Settlement;
  readonly durationMs: number;
}

/** A forget was asked for. Exactly one of `forgotten` and `failure` is set. */
export interface TurnsForgotten {
  readonly type: "turns_forgotten";
  readonly forgotten: Forgotten | null;
  readonly failure: Failure | null;
  readonly durationMs: number;
}

/** Text was no valid Unicode: `replaced` lone surrogates became U+FFFD in the named fields. */
export interface TextRepaired {
  readonly type: "text_repaired";
  readonly fields: readonly string[];
  readonly replaced: number;
}

/**
 * An order is over, for the turn of these keys, whose answer named it. `verdict` is the sidecar's last one, null if it gave
 * none. `calls` of the rewriter were made (0 to 2), and took so many tokens. `error` is the name of what the rewriter threw,
 * if the outcome is `error`; `failure` says why a rewrite could not be handed in, if it is `not_sent`.
 */
export interface OrderFilled {
  readonly type: "order_filled";
  readonly keys: TurnKeys;
  readonly orderId: string;
  readonly kind: OrderKind;
  readonly outcome: FillOutcome;
  readonly verdict: Verdict | null;
  readonly calls: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly error: string;
  readonly failure: Failure | null;
  readonly durationMs: number;
}

export type LedgerEvent =
  | HistoryRead
  | MessageComposed
  | TurnEnded
  | TurnSettled
  | TurnsForgotten
  | TextRepaired
  | OrderFilled;
