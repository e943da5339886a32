/** JSON as text, for what `JSON` alone would lose: digits past 2^53, and where a value stands. The text must be valid JSON. */

/** The place of the closing quote of the string that opens at `at`. */
export function endOfString(text: string, at: number): number {
  let end = at + 1;
  while (end < text.length && text.charAt(end) !== '"') end += text.charAt(end) === "\\" ? 2 : 1;
  return end;
}

/** An integer that a number cannot hold, as `parseExact` gives it. */
export type LargeInteger = readonly [digits: string];

/** As `JSON.parse`, but integers of 16 digits and more come as a `LargeInteger`. Throws SyntaxError. */
export function parseExact(text: string): unknown {
  const parsed: unknown = JSON.parse(text);
  if (!/\d{16}/.test(text)) return parsed;
  const pieces: string[] = [];
  let from = 0;
  for (let at = 0; at < text.length; at += 1) {
    if (text.charAt(at) === '"') {
      at = endOfString(text, at);
      continue;
    }
    const number = /-?[\d.eE+-]+/y;
    number.lastIndex = at;
    const found = number.exec(text)?.[0];
    if (found === undefined) continue;
    if (/^\d{16,}$/.test(found)) {
      pieces.push(text.slice(from, at), `["${found}"]`);
      from = at + found.length;
    }
    at += found.length - 1;
  }
  return JSON.parse(pieces.join("") + text.slice(from));
}

/** Compact JSON in ASCII; a bigint as its digits. */
export function stringifyExact(value: unknown): string {
  if (typeof value === "bigint") return value.toString();
  if (Array.isArray(value)) return `[${value.map(stringifyExact).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    return `{${Object.entries(value)
      .map(([name, member]) => `${stringifyExact(name)}:${stringifyExact(member)}`)
      .join(",")}}`;
  }
  return JSON.stringify(value).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
