/** What one turn leaves behind, as an engine says it. Named as in `turnledger/v1/entry.proto`, whose rules hold. */

/**
 * What a tool call could do; it decides what the next turn is told. `write`: changed, or may have changed, something
 * outside; always shown. `read`: positively known to change nothing; the first 12 are shown. `meta`: never shown.
 */
export type CallKind = "write" | "read" | "meta";

/** How a run ended. Only a completed run leaves an entry. */
export type RunEnd = "completed" | "crashed" | "suspended";

/** One tool call, its text valid Unicode. */
export interface ToolCall {
  readonly name: string;
  /** The JSON text as the model gave it. */
  readonly arguments: string;
  readonly kind: CallKind;
  readonly failed: boolean;
  /** Empty unless `failed`. */
  readonly error: string;
  /** Names of top-level arguments whose values are withheld. */
  readonly sensitive: readonly string[];
}

/** The final text, and by its name whether anybody received it. It may be empty. */
export type Outcome =
  | { readonly reply: string; readonly unsent?: never }
  | { readonly unsent: string; readonly reply?: never };

/** The material of one completed turn. */
export interface Entry {
  readonly turnId: string;
  readonly completedAt: Date;
  readonly trigger: string;
  readonly intent: string;
  readonly calls: readonly ToolCall[];
  readonly outcome: Outcome;
  readonly completedWork: string;
  readonly blockedOn: string;
  readonly decision: string;
}

/** The kind named; `write` for whatever is not known, since a write that passes for a read would be run twice. */
export function callKind(kind: unknown): CallKind {
  return kind === "read" || kind === "meta" ? kind : "write";
}
