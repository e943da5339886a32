import { pause } from "./pause.js";

/** A few places, each for one at a time; who finds none waits its turn. */
export class Places {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  /** Take a place, waiting no longer than `ms` or until `signal`; whether there was one. */
  async take(ms: number, signal: AbortSignal): Promise<boolean> {
    if (this.#free > 0) {
      this.#free -= 1;
      return true;
    }
    let given = false;
    let called = () => {};
    const turn = new Promise<void>((resolve) => {
      called = () => {
        given = true;
        resolve();
      };
    });
    this.#waiting.push(called);
    await pause(ms, { done: turn, signals: [signal], hold: false });
    if (!given) this.#waiting.splice(this.#waiting.indexOf(called), 1);
    return given;
  }

  /** Give a place back, to whoever waits first. */
  leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}
