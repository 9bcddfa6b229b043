// A clock that stands still while this process is stopped.

/** In ms: if a timer fires this much too late, this process stood still, which says nothing about other processes. */
export const STOOD_STILL_MS = 1000;
/** The longest sleep of the watch, so that it notices when this process stood still. */
const SLICE_MS = 500;

/**
 * Checks the time repeatedly. Time in which this process stood still (SIGSTOP, a debugger, a machine that slept) does not count,
 * so nobody is blamed for it. Keeps Node alive until it stops.
 */
export class Watch {
  readonly #look: (now: number) => number | null;
  #stood = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #over = false;

  /** @param look - called with the present time of this clock; returns the time of the next call, or null: no more calls */
  constructor(look: (now: number) => number | null) {
    this.#look = look;
  }

  /** The present time: performance.now() minus the time in which this process stood still. */
  get now(): number {
    return performance.now() - this.#stood;
  }

  /** How long the process has stood still since the watch began, in ms. */
  get stood(): number {
    return this.#stood;
  }

  /** Calls `look` at once, because something may have changed. */
  wake(): void {
    if (this.#over) return;
    clearTimeout(this.#timer);
    this.#tick();
  }

  /** Stops the watch: `look` is not called any more. */
  stop(): void {
    this.#over = true;
    clearTimeout(this.#timer);
  }

  #tick(): void {
    if (this.#over) return;
    const next = this.#look(this.now);
    if (next === null) return this.stop();
    const sleep = Math.min(SLICE_MS, Math.max(0, next - this.now));
    const due = performance.now() + sleep;
    this.#timer = setTimeout(() => {
      const late = performance.now() - due;
      if (late >= STOOD_STILL_MS) this.#stood += late;
      // The event loop first reads input that has arrived, then runs immediates.
      setImmediate(() => this.#tick());
    }, sleep);
  }
}
