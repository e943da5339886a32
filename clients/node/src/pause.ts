/**
 * Wait `ms`, until `done` settles, or until one of the signals is aborted, whichever comes first; says nothing of which.
 * `hold` keeps the process alive meanwhile.
 */
export function pause(
  ms: number,
  {
    done,
    signals = [],
    hold = true,
  }: { done?: Promise<unknown>; signals?: Iterable<AbortSignal | undefined>; hold?: boolean } = {},
): Promise<void> {
  return new Promise((resolve) => {
    const all = [...signals].filter((signal) => signal !== undefined);
    const end = () => {
      clearTimeout(timer);
      for (const signal of all) signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, Math.max(ms, 0));
    if (!hold) timer.unref();
    for (const signal of all) signal.addEventListener("abort", end, { once: true });
    if (all.some((signal) => signal.aborted)) end();
    done?.then(end, end);
  });
}
