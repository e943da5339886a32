/**
 * Composition of one round's user message: plain concatenation, and normative. Every client composes the same bytes by
 * itself when the sidecar does not answer, so that no round loses its block.
 */

export const HISTORY_HEADING = "## Earlier in this conversation";
export const TASK_HEADING = "## Task";
export const PRIOR_WORK_HEADING = "## Already done earlier in this turn";

/** What one user message is made of, each part verbatim; an empty part is left out. */
export interface Parts {
  readonly context: string;
  /** The finished block, heading included; empty where the phase or a failed read leaves none. */
  readonly history: string;
  readonly task: string;
  readonly priorWork: string;
}

/** Sizes of a finished message and of its parts without what composition adds, in bytes of UTF-8. */
export interface PromptSize {
  readonly userBytes: number;
  readonly historyBytes: number;
  readonly taskBytes: number;
  readonly contextBytes: number;
  readonly priorWorkBytes: number;
  /** A quarter of `userBytes`, rounded up. No tokenizer's count. */
  readonly approximateTokens: number;
}

/** The finished user message: the parts in their order, joined by one blank line. */
export function compose(parts: Parts): string {
  return [parts.context, parts.history, under(TASK_HEADING, parts.task), under(PRIOR_WORK_HEADING, parts.priorWork)]
    .filter((piece) => piece !== "")
    .join("\n\n");
}

/** The sizes of `message`, which was composed of `parts`. */
export function promptSize(message: string, parts: Parts): PromptSize {
  const userBytes = Buffer.byteLength(message);
  return {
    userBytes,
    historyBytes: Buffer.byteLength(parts.history),
    taskBytes: Buffer.byteLength(parts.task),
    contextBytes: Buffer.byteLength(parts.context),
    priorWorkBytes: Buffer.byteLength(parts.priorWork),
    approximateTokens: Math.ceil(userBytes / 4),
  };
}

function under(heading: string, text: string): string {
  return text === "" ? "" : `${heading}\n\n${text}`;
}
