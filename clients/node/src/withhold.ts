/** Arguments without their sensitive values, for what leaves the engine's memory. */

import { endOfString } from "./json-text.js";

export const WITHHELD = "(withheld)";

// What JSON counts as white space.
const SPACE = " \t\n\r";

interface Member {
  readonly name: string;
  /** Where its value stands in the text. */
  readonly start: number;
  readonly end: number;
}

/**
 * `text`, a call's arguments, with the value of each sensitive top-level name replaced by "(withheld)", all else digit for
 * digit. Text that is no JSON object, or that repeats a key, is withheld as a whole, as it is in the block.
 */
export function withheld(text: string, sensitive: readonly string[]): string {
  if (sensitive.length === 0) return text;
  const members = topLevelMembers(text);
  if (members === null) return WITHHELD;
  let kept = "";
  let at = 0;
  for (const { name, start, end } of members) {
    if (!sensitive.includes(name)) continue;
    kept += `${text.slice(at, start)}"${WITHHELD}"`;
    at = end;
  }
  return kept + text.slice(at);
}

/** The top-level names of a JSON object with the places of their values; null for no object, or a key that repeats. */
function topLevelMembers(text: string): Member[] | null {
  if (!isJsonObject(text)) return null;
  const members: Member[] = [];
  // One set of names for each open object, null for an open array: no recursion, so depth costs memory alone.
  const open: (Set<string> | null)[] = [];
  let name = "";
  let start = -1;
  let end = -1;
  const close = () => {
    if (start >= 0) members.push({ name, start, end });
    start = -1;
  };
  for (let at = 0; at < text.length; at += 1) {
    const sign = text.charAt(at);
    if (SPACE.includes(sign)) continue;
    const began = at;
    if (open.length === 1 && (sign === "," || sign === "}")) close();
    if (sign === "{") open.push(new Set());
    else if (sign === "[") open.push(null);
    else if (sign === "}" || sign === "]") open.pop();
    else if (sign === '"') {
      at = endOfString(text, at);
      const after = skipSpace(text, at + 1);
      if (text.charAt(after) === ":") {
        const key = JSON.parse(text.slice(began, at + 1)) as string;
        const names = open.at(-1);
        if (names?.has(key)) return null;
        names?.add(key);
        at = after;
        if (open.length === 1) [name, start] = [key, skipSpace(text, after + 1)];
        continue;
      }
    }
    end = at + 1;
  }
  return members;
}

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof RangeError) return false;
    throw error;
  }
}

function skipSpace(text: string, at: number): number {
  let next = at;
  while (next < text.length && SPACE.includes(text.charAt(next))) next += 1;
  return next;
}
