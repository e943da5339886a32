/** Repair of text that is not valid Unicode, so that one lone surrogate can never poison a turn or its conversation. */

/** What stands for a lone surrogate. */
export const REPLACEMENT = "\ufffd";

// By code points, so that the halves of a pair are no match.
const LONE_SURROGATES = /\p{Surrogate}/gu;

/** The text as valid Unicode, and how many lone surrogates were replaced. Valid text comes back as it is. */
export function repaired(text: string): [text: string, replaced: number] {
  if (text.isWellFormed()) return [text, 0];
  let replaced = 0;
  const mended = text.replace(LONE_SURROGATES, () => {
    replaced += 1;
    return REPLACEMENT;
  });
  return [mended, replaced];
}

/** Repairs the fields of one request, and remembers which it had to touch and how often: names, never content. */
export class Mender {
  readonly fields: string[] = [];
  replaced = 0;

  /** `text` with each lone surrogate as U+FFFD. Throws TypeError if it is no string. */
  mend(field: string, text: string): string {
    if (typeof text !== "string") throw new TypeError(`${field} must be a string, not ${typeName(text)}`);
    const [mended, replaced] = repaired(text);
    if (replaced > 0) {
      this.fields.push(field);
      this.replaced += replaced;
    }
    return mended;
  }
}

function typeName(value: unknown): string {
  return value === null ? "null" : typeof value;
}
