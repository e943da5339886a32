/** A size that an engine gave, as 64 bits. Throws RangeError below 0, past 2^64 - 1, and at a number that is not whole and exact. */
export function uint64(name: string, value: number | bigint | undefined): bigint | undefined {
  if (value === undefined) return undefined;
  const whole = typeof value === "bigint" ? value : Number.isSafeInteger(value) ? BigInt(value) : -1n;
  if (whole < 0n || whole >= 2n ** 64n) {
    throw new RangeError(`${name} must be a whole number from 0 (past 2^53 - 1 a bigint), not ${value}`);
  }
  return whole;
}
