/** What the ledger answers an engine: plain frozen values, named as in the contract. Its 64-bit integers are bigint. */

import type { Failure } from "./failure.js";

/** Whether there is a block. `empty`: read, and nothing was there. `disabled`: switched off, nothing was read. */
export type HistoryState = "present" | "empty" | "disabled";

/** The frozen block: the same bytes for every round of its turn, on any sidecar. */
export interface History {
  readonly state: HistoryState;
  /** The block, heading included; empty unless `state` is `present`. */
  readonly text: string;
  /** SHA-256 of the UTF-8 of `text`, lower-case hex. */
  readonly digest: string;
  /** Size of `text` in bytes of UTF-8. */
  readonly bytes: bigint;
  /** Entries shown whole. */
  readonly shown: number;
  /** Entries that stand in the account. */
  readonly condensed: number;
  /** Entries without room in the account. */
  readonly leftOut: number;
  /** Earlier turns whose entry was trimmed or swept. */
  readonly noLongerKept: bigint;
  /** Entries that could not be read. */
  readonly unreadable: number;
}

/** The kind of round that a message is for. Only `execute` gets the block. */
export type Phase = "execute" | "review" | "other";

/**
 * What became of a turn's entry. `recorded`: written, committed and synced. `duplicate`: this seat, conversation and work
 * key is on disk already, by a redelivery or by an earlier try whose answer was lost. `skipped`: see the reason.
 */
export type Disposition = "recorded" | "duplicate" | "skipped";

/** Why nothing was written. */
export type SkipReason =
  | "disabled"
  | "run_crashed"
  | "run_suspended"
  | "not_reproducible"
  | "no_work_key"
  | "forgotten";

/** What became of a turn. Exactly one of `disposition` and `failure` is set. */
export interface Receipt {
  readonly disposition: Disposition | null;
  /** Goes with `skipped`; null then only where a newer sidecar gives a reason that this library does not know. */
  readonly skipReason: SkipReason | null;
  /** Empty unless the entry is in the ledger. */
  readonly entryId: string;
  /** The entry's place in its conversation, from 1; 0 unless it is in the ledger. */
  readonly ordinal: bigint;
  readonly failure: Failure | null;
  /** Calls made, retries among them. */
  readonly attempts: number;
  /** Whether the entry is known to be on disk: recorded, or a duplicate. */
  readonly inLedger: boolean;
}

/** What became of a settle. `no_longer_kept`: the turn was recorded, but its entry is trimmed or swept. */
export type SettleOutcome = "settled" | "already_reply" | "not_found" | "no_longer_kept";

/** Exactly one of `outcome` and `failure` is set; `entryId` is empty if nothing was found. */
export interface Settlement {
  readonly outcome: SettleOutcome | null;
  readonly entryId: string;
  readonly failure: Failure | null;
  /** Calls made, retries among them. */
  readonly attempts: number;
}

/** Whether forgotten text is gone from the store's files, or goes as soon as a reader lets go. Backups are not in it. */
export type Erasure = "complete" | "pending";

/** How many turns a forget erased. After a try whose answer was lost, those that it erased are not counted. */
export interface Forgotten {
  readonly forgotten: bigint;
  readonly erasure: Erasure;
}
