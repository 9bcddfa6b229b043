// What to do when the model is rate-limited.
import { FmError } from "./errors.js";

/**
 * What happens if the model reports too many requests:
 * - `fallback`: the request fails at once, and other requests fail for a minute
 * - `retry`: the request waits and is sent again; only this policy makes a caller wait
 * - `disable`: the request fails; after several in a row, all requests fail for a long time
 */
export type RateLimitPolicy = "fallback" | "retry" | "disable";

/** The settings of a policy. */
export interface RateLimitOptions {
  rateLimitPolicy: RateLimitPolicy;
  /** Rate limits in a row after which no request is sent for `disableForMs`. */
  maxConsecutiveRateLimits: number;
  disableForMs: number;
  /** With `retry`: the longest pause before the next try, in ms. */
  maxRetryDelayMs: number;
}

/** The policy unless the caller says otherwise. */
export const RATE_LIMIT_OPTIONS: RateLimitOptions = {
  rateLimitPolicy: "fallback",
  maxConsecutiveRateLimits: 3,
  disableForMs: 30 * 60_000,
  maxRetryDelayMs: 30_000,
};

/** With `fallback`: how long no request is sent after a rate limit, in ms. */
const COOL_DOWN_MS = 60_000;
const FIRST_DELAY_MS = 1000;
/** A random time up to this is added to a pause, so that many hosts do not try again at the same time. */
const JITTER_MS = 500;

/** Counts a client's rate limits. */
export class RateLimiter {
  readonly #options: RateLimitOptions;
  #inARow = 0;
  #closedUntil = 0;
  #delayMs = FIRST_DELAY_MS;

  constructor(options: RateLimitOptions) {
    this.#options = options;
  }

  /** The error if no request may be sent at the moment; null: one may be sent. */
  refusal(): FmError | null {
    const wait = this.#closedUntil - performance.now();
    if (wait <= 0) return null;
    const what = `The model's rate limit was reached; requests are sent again in ${Math.ceil(wait / 1000)} s.`;
    return new FmError("RATE_LIMITED", what, { retryAfterMs: Math.ceil(wait) });
  }

  /** Records that a request succeeded. */
  noteSuccess(): void {
    this.#inARow = 0;
    this.#delayMs = FIRST_DELAY_MS;
    this.#closedUntil = 0;
  }

  /** Records that a request met the limit. Returns how long to wait before the request is sent again, in ms; null: it fails. */
  noteLimit(): number | null {
    const { rateLimitPolicy, maxConsecutiveRateLimits, disableForMs, maxRetryDelayMs } = this.#options;
    this.#inARow++;
    if (this.#inARow >= maxConsecutiveRateLimits) {
      this.#close(disableForMs);
      return null;
    }
    if (rateLimitPolicy === "fallback") this.#close(Math.min(COOL_DOWN_MS, disableForMs));
    if (rateLimitPolicy !== "retry") return null;
    const delay = Math.min(this.#delayMs + Math.random() * JITTER_MS, maxRetryDelayMs);
    this.#delayMs = Math.min(this.#delayMs * 2, maxRetryDelayMs);
    return delay;
  }

  /** Whether no request is sent at the moment. */
  get isClosed(): boolean {
    return performance.now() < this.#closedUntil;
  }

  /** Forgets all limits. */
  reset(): void {
    this.noteSuccess();
  }

  #close(ms: number): void {
    this.#closedUntil = performance.now() + ms;
  }
}
