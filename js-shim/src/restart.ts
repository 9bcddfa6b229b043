// What happens after failures of the helper: another start, a helper for each request, or no helper any more.
import type { FmError } from "./errors.js";

/** The reactions to crashes of the helper. */
export interface RestartPolicy {
  /** Crashes in a row after which each request gets its own helper. */
  perRequestAfter: number;
  /** Crashes in a row after which requests are refused, until `compatibility.check({ recheck: true })`. */
  maxCrashes: number;
  /** The pause before the start after the second crash. It doubles after each further crash. */
  firstDelayMs: number;
  /** The longest pause. */
  maxDelayMs: number;
  /** If a helper was ready for this time before it crashed, its crash counts as the first one again. */
  healthyAfterMs: number;
  /** After this time without a crash, one helper serves all requests again. */
  persistentAfterMs: number;
}

/** The policy unless the caller says otherwise. */
export const RESTART_POLICY: RestartPolicy = {
  perRequestAfter: 2,
  maxCrashes: 4,
  firstDelayMs: 100,
  maxDelayMs: 5000,
  healthyAfterMs: 60_000,
  persistentAfterMs: 3_600_000,
};

/** The pause before a start after two or more crashes. A random part keeps many hosts from starting at the same time. */
export function restartDelay(crashes: number, { firstDelayMs, maxDelayMs }: RestartPolicy): number {
  return Math.min(maxDelayMs, firstDelayMs * 2 ** (crashes - 2)) * (0.5 + Math.random() / 2);
}

/** How many helpers there are: one for all requests, or one for each request. */
export type SpawnMode = "persistent" | "per-request";

/** Counts the crashes of a client's helpers. */
export class Crashes {
  readonly #policy: RestartPolicy;
  /** The `spawnPerRequest` option. */
  readonly #wanted: boolean | "auto";
  #count = 0;
  #last: { error: FmError; at: number } | null = null;

  constructor(policy: RestartPolicy, wanted: boolean | "auto") {
    this.#policy = policy;
    this.#wanted = wanted;
  }

  /** Which kind of helper serves the next request. */
  get mode(): SpawnMode {
    if (this.#wanted !== "auto") return this.#wanted ? "per-request" : "persistent";
    return this.#count >= this.#policy.perRequestAfter && !this.#isLongAgo ? "per-request" : "persistent";
  }

  /** The reason why no helper is started any more, as a sentence; null: one may be started. */
  get refusal(): string | null {
    if (this.#last === null || this.#count < this.#policy.maxCrashes) return null;
    return (
      `The helper failed ${this.#count} times in a row. It is not started again until ` +
      `compatibility.check({ recheck: true }). The last time: ${this.#last.error.detail}`
    );
  }

  /** How long to wait before the next start, in ms. */
  get delay(): number {
    return this.#count < 2 || this.#isLongAgo ? 0 : restartDelay(this.#count, this.#policy);
  }

  /** Records a crash. `since`: the time since which the helper had been ready; null: it never was. */
  note(error: FmError, since: number | null): void {
    const now = performance.now();
    const healthy = this.#isLongAgo || (since !== null && now - since >= this.#policy.healthyAfterMs);
    this.#count = healthy ? 1 : this.#count + 1;
    this.#last = { error, at: now };
  }

  /** Records that a helper that was started for one request has served it. */
  noteServed(): void {
    this.#count = this.#wanted === "auto" ? Math.min(this.#count, this.#policy.perRequestAfter) : 0;
  }

  /** Forgets all crashes. */
  reset(): void {
    this.#count = 0;
    this.#last = null;
  }

  get #isLongAgo(): boolean {
    return this.#last !== null && performance.now() - this.#last.at >= this.#policy.persistentAfterMs;
  }
}
