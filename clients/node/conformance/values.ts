/** The values of the driver's protocol (tests/conformance/README.md): recipes in, neutral terms out. */

import { createHash } from "node:crypto";
import type { Failure, History, Receipt, Turn } from "@turnledger/client";

export type Command = { readonly [member: string]: unknown };

// Texts over so many bytes of UTF-8 are answered by digest and size.
const SHOWN_BYTES = 65_536;

/** A TEXT; the empty one where there is none. */
export function text(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "string") return value;
  const recipe = value as Command;
  if ("repeat" in recipe) return text(recipe["repeat"]).repeat(Number(recipe["times"]));
  if (Array.isArray(recipe["join"])) return recipe["join"].map(text).join("");
  if (Array.isArray(recipe["utf16"])) {
    return String.fromCharCode(...recipe["utf16"].map((unit) => Number.parseInt(String(unit), 16)));
  }
  throw new Error("a recipe for a text is repeat, join or utf16");
}

/** The texts of a list; none where there is no list. */
export function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.map(text) : [];
}

/** A NUMBER of 64 bits; undefined where there is none. */
export function wide(value: unknown): number | bigint | undefined {
  return typeof value === "string" ? BigInt(value) : plain(value);
}

/** A NUMBER that is no wider than a double; undefined where there is none. */
export function plain(value: unknown): number | undefined {
  return value === undefined || value === null ? undefined : Number(value);
}

/** The members that are there: the library's defaults stand for the others. */
export function given<Members extends object>(
  members: Members,
): { [Name in keyof Members]: NonNullable<Members[Name]> } {
  const there = Object.entries(members).filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(there) as { [Name in keyof Members]: NonNullable<Members[Name]> };
}

/** `agentHandle` as the contract names it: `agent_handle`. */
export function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** `agent_handle` as this library names it: `agentHandle`. */
export function camel(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** An answer's value: names in snake_case, large texts by digest, large integers as digits. */
export function neutral(value: unknown): unknown {
  if (typeof value === "bigint") return value <= Number.MAX_SAFE_INTEGER ? Number(value) : value.toString();
  if (typeof value === "string") return shown(value);
  if (Array.isArray(value)) return value.map(neutral);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [snake(name), neutral(member)]));
}

function shown(value: string): unknown {
  const bytes = Buffer.byteLength(value);
  return bytes <= SHOWN_BYTES ? value : { sha256: createHash("sha256").update(value).digest("hex"), bytes };
}

export function failure(value: Failure | null): unknown {
  if (value === null) return null;
  const { code, reason, retryAfterMs, violations } = value;
  const retryAfter = retryAfterMs === null ? null : retryAfterMs / 1_000;
  return { code, reason, retryAfter, fields: violations.map(({ field }) => field) };
}

export function receipt({ inLedger: _, ...value }: Receipt): unknown {
  return { ...value, failure: failure(value.failure) };
}

export function turn(value: Turn): { history: History | null; readFailure: unknown; alreadyRecorded: boolean } {
  const { history, readFailure, alreadyRecorded } = value;
  return { history, readFailure: failure(readFailure), alreadyRecorded };
}
