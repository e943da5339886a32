/** A turn as text: JSON in ASCII, versioned, the same form in every language and good on any sidecar. */

import type { History, HistoryState, Phase } from "./answers.js";
import { callKind, type ToolCall } from "./entry.js";
import { Failure } from "./failure.js";
import { parseExact, stringifyExact } from "./json-text.js";
import type { TurnKeys } from "./keys.js";
import { digestOf } from "./wire.js";
import { withheld } from "./withhold.js";

export const VERSION = 1;

/** Everything of a turn that outlives the process it ran in. */
export interface SavedTurn {
  readonly keys: TurnKeys;
  readonly history: History | null;
  readonly readFailure: Failure | null;
  readonly alreadyRecorded: boolean;
  /** The last round of each phase. */
  readonly iterations: ReadonlyMap<Phase, number>;
  readonly calls: readonly ToolCall[];
}

/** The text is no saved turn, was damaged, or comes from a later version of this library. */
export class InvalidSavedTurn extends Error {
  override readonly name = "InvalidSavedTurn";
}

/** The turn as text. Values of sensitive arguments are withheld. */
export function dump({ keys, history, readFailure, alreadyRecorded, iterations, calls }: SavedTurn): string {
  return stringifyExact({
    turnledger_saved_turn: VERSION,
    keys: {
      agent_handle: keys.agentHandle,
      conversation_key: keys.conversationKey,
      turn_id: keys.turnId,
      work_key: keys.workKey,
    },
    history: history && {
      state: history.state,
      text: history.text,
      digest: history.digest,
      bytes: history.bytes,
      shown: history.shown,
      condensed: history.condensed,
      left_out: history.leftOut,
      no_longer_kept: history.noLongerKept,
      unreadable: history.unreadable,
    },
    read_failure: readFailure && {
      code: readFailure.code,
      reason: readFailure.reason,
      message: readFailure.message,
      retry_after: readFailure.retryAfterMs === null ? null : readFailure.retryAfterMs / 1_000,
      violations: readFailure.violations,
    },
    already_recorded: alreadyRecorded,
    iterations: Object.fromEntries(iterations),
    calls: calls.map((call) => ({ ...call, arguments: withheld(call.arguments, call.sensitive) })),
  });
}

/** The turn that `dump` wrote, in whatever language. Throws InvalidSavedTurn. */
export function load(text: string): SavedTurn {
  const saved = parsed(text);
  const version = saved["turnledger_saved_turn"];
  if (version === undefined) throw new InvalidSavedTurn("this is no saved turn");
  if (version !== VERSION) {
    const said = stringifyExact(version);
    throw new InvalidSavedTurn(`the turn was saved in version ${said}, and this library reads version ${VERSION}`);
  }
  const keys = object(saved, "keys");
  return {
    keys: {
      agentHandle: string(keys, "agent_handle"),
      conversationKey: string(keys, "conversation_key"),
      turnId: string(keys, "turn_id"),
      workKey: string(keys, "work_key"),
    },
    history: saved["history"] === null ? null : historyOf(object(saved, "history")),
    readFailure: saved["read_failure"] === null ? null : failureOf(object(saved, "read_failure")),
    alreadyRecorded: boolean(saved, "already_recorded"),
    iterations: iterationsOf(object(saved, "iterations")),
    calls: objects(saved, "calls").map(callOf),
  };
}

type Json = { readonly [name: string]: unknown };

function parsed(text: string): Json {
  try {
    const value = parseExact(text);
    if (isObject(value)) return value;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new InvalidSavedTurn("this is no saved turn");
}

function historyOf(saved: Json): History {
  const history = {
    state: oneOf<HistoryState>(saved["state"], ["present", "empty", "disabled"]),
    text: string(saved, "text"),
    digest: string(saved, "digest"),
    bytes: bigint(saved, "bytes"),
    shown: integer(saved["shown"]),
    condensed: integer(saved["condensed"]),
    leftOut: integer(saved["left_out"]),
    noLongerKept: bigint(saved, "no_longer_kept"),
    unreadable: integer(saved["unreadable"]),
  };
  // The block is not the one that was frozen.
  if (digestOf(history.text) !== history.digest) throw damaged();
  return Object.freeze(history);
}

function failureOf(saved: Json): Failure {
  const seconds = saved["retry_after"];
  if (seconds !== null && typeof seconds !== "number") throw damaged();
  const violations = objects(saved, "violations").map((violation) => ({
    field: string(violation, "field"),
    description: string(violation, "description"),
  }));
  const retryAfterMs = seconds === null ? null : seconds * 1_000;
  return new Failure(
    string(saved, "code"),
    string(saved, "reason"),
    string(saved, "message"),
    retryAfterMs,
    violations,
  );
}

function iterationsOf(saved: Json): ReadonlyMap<Phase, number> {
  return new Map(
    Object.entries(saved).map(([phase, last]) => [oneOf<Phase>(phase, ["execute", "review", "other"]), integer(last)]),
  );
}

function callOf(saved: Json): ToolCall {
  const sensitive = saved["sensitive"];
  if (!Array.isArray(sensitive)) throw damaged();
  return {
    name: string(saved, "name"),
    arguments: string(saved, "arguments"),
    kind: oneOf(saved["kind"], ["write", "read", "meta"].map(callKind)),
    failed: boolean(saved, "failed"),
    error: string(saved, "error"),
    sensitive: sensitive.map((name) => text(name)),
  };
}

function damaged(): InvalidSavedTurn {
  return new InvalidSavedTurn("the saved turn is damaged");
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function object(of: Json, name: string): Json {
  const value = of[name];
  if (!isObject(value)) throw damaged();
  return value;
}

function objects(of: Json, name: string): readonly Json[] {
  const value = of[name];
  if (!Array.isArray(value) || !value.every(isObject)) throw damaged();
  return value;
}

function text(value: unknown): string {
  if (typeof value !== "string" || !value.isWellFormed()) throw damaged();
  return value;
}

function string(of: Json, name: string): string {
  return text(of[name]);
}

function boolean(of: Json, name: string): boolean {
  const value = of[name];
  if (typeof value !== "boolean") throw damaged();
  return value;
}

function integer(value: unknown): number {
  if (!Number.isSafeInteger(value)) throw damaged();
  return value as number;
}

/** A 64-bit integer: a number, or what `parseExact` gives in its place. */
function bigint(of: Json, name: string): bigint {
  const value = of[name];
  return Array.isArray(value) && value.length === 1 ? BigInt(text(value[0])) : BigInt(integer(value));
}

function oneOf<Name extends string>(value: unknown, names: readonly Name[]): Name {
  const name = names.find((each) => each === value);
  if (name === undefined) throw damaged();
  return name;
}
