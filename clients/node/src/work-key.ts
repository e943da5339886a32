import { createHash } from "node:crypto";
import { repaired } from "./text.js";

const WORK_KEY_CHARACTERS = 32;

// What the contract trims (tests/conformance/README.md). `trim` would leave U+001C to U+001F and U+0085, and would take the
// byte order mark.
const SPACE = "\\u0009-\\u000d\\u001c-\\u0020\\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const LEADING = new RegExp(`^[${SPACE}]+`, "u");
const ALL_SPACE = new RegExp(`[${SPACE}]`, "u");

/**
 * The digest of a turn's triggers: order, repeats and blanks do not matter.
 *
 * Ids are trimmed, empty ones and repeats dropped, the rest sorted by their UTF-8 bytes, joined with a newline and hashed:
 * the first 32 hex digits of SHA-256. No id gives the empty key, which the ledger does not record. One string is one id.
 */
export function workKey(triggerIds: Iterable<string> | string): string {
  const given = typeof triggerIds === "string" ? [triggerIds] : triggerIds;
  const ids = new Set<string>();
  for (const id of given) ids.add(trimmed(repaired(id)[0]));
  ids.delete("");
  if (ids.size === 0) return "";
  // UTF-16 units, by which strings compare, order U+FF01 after U+1F600; bytes do not.
  const sorted = [...ids].map((id) => Buffer.from(id)).sort(Buffer.compare);
  const hash = createHash("sha256");
  for (const [index, id] of sorted.entries()) hash.update(index === 0 ? "" : "\n").update(id);
  return hash.digest("hex").slice(0, WORK_KEY_CHARACTERS);
}

function trimmed(id: string): string {
  const start = id.replace(LEADING, "");
  // From the end by hand: an expression anchored there looks at every run of spaces inside too.
  let end = start.length;
  while (end > 0 && ALL_SPACE.test(start.charAt(end - 1))) end -= 1;
  return start.slice(0, end);
}
