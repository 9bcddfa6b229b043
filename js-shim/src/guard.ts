// The checks that every request passes before the helper gets it: the gate and the rate limit. Both remember the outcomes.
import { setTimeout as sleep } from "node:timers/promises";
import { GRACE_MS, isWork } from "./call.js";
import { FmError } from "./errors.js";
import type { Events } from "./events.js";
import type { Compatibility } from "./gate.js";
import type { RateLimiter } from "./ratelimit.js";
import { toFmError } from "./thrown.js";
import { TimeLimits, timeoutOf } from "./time-limits.js";
import type { CallOptions, JsonObject, Operation, Transport } from "./types.js";
import { isObject } from "./types.js";
import { cancelledError, refused } from "./stream.js";
import { Watch } from "./watch.js";

/** The OpenAI code of the helper's own limit of requests at once, which is no rate limit of the model. */
const FULL = "too_many_requests";
/** Names of the default model. */
const DEFAULT_MODELS: ReadonlySet<unknown> = new Set([undefined, null, "", "default", "local"]);

/** The options of a {@link Guard}. */
export interface GuardOptions {
  helper: Transport;
  gate: Compatibility;
  limiter: RateLimiter;
  events: Events;
  /** Whether requests ask the gate first. */
  checks: boolean;
}

/** A transport that checks each request before it passes the request to the helper. */
export class Guard implements Transport {
  readonly #options: GuardOptions;

  constructor(options: GuardOptions) {
    this.#options = options;
  }

  /** {@inheritDoc Transport.call} */
  call(method: string, params: JsonObject, options: CallOptions = {}): Operation {
    const { helper } = this.#options;
    if (!isObject(params)) return refused(new FmError("INVALID_REQUEST", "The body of the request must be an object."));
    if (!isWork(method)) return this.#refuseWithoutHelper() ?? helper.call(method, params, options);
    return new GuardedCall(this.#options, method, params, options);
  }

  #refuseWithoutHelper(): Operation | null {
    const error = this.#options.checks ? this.#options.gate.lacksHelper() : null;
    return error === null ? null : refused(error);
  }
}

/** A request that needs a model. */
class GuardedCall implements Operation {
  readonly result: Promise<JsonObject>;
  readonly #guard: GuardOptions;
  readonly #method: string;
  readonly #params: JsonObject;
  readonly #cancelled = new AbortController();
  readonly #limits: TimeLimits;
  #since = performance.now();
  #sent: Operation | null = null;
  #produced = false;

  constructor(guard: GuardOptions, method: string, params: JsonObject, options: CallOptions) {
    this.#guard = guard;
    this.#method = method;
    this.#params = params;
    this.#limits = new TimeLimits(params);
    const onNotification = (message: JsonObject): void => {
      this.#produced = true;
      options.onNotification?.(message);
    };
    this.result = this.#run({ ...options, onNotification });
  }

  /** {@inheritDoc Operation.cancel} */
  cancel(): void {
    this.#cancelled.abort();
    this.#sent?.cancel();
  }

  async #run(options: CallOptions): Promise<JsonObject> {
    const { helper, limiter } = this.#guard;
    if (this.#guard.checks) await this.#passGate();
    for (;;) {
      // The caller may have cancelled while the gate was asked, even if that took only a moment.
      if (this.#cancelled.signal.aborted) throw cancelledError();
      const refusal = limiter.refusal();
      if (refusal !== null) throw refusal;
      this.#sent = helper.call(this.#method, this.#params, { ...options, since: this.#since });
      try {
        const result = await this.#sent.result;
        limiter.noteSuccess();
        return result;
      } catch (reason) {
        await this.#noteFailure(toFmError(reason));
      }
    }
  }

  async #passGate(): Promise<void> {
    const verdict = this.#guard.gate.refusal();
    const { gate } = this.#guard;
    const error = verdict instanceof Promise ? await this.#unlessOver(verdict, gate) : verdict;
    if (error !== null && concerns(error, this.#params["model"])) throw error;
  }

  /** Throws the error, unless the request is to be sent again. */
  async #noteFailure(error: FmError): Promise<void> {
    const { gate, limiter, events } = this.#guard;
    if (error.code === "UNAVAILABLE") gate.doubt();
    if (error.code !== "RATE_LIMITED" || error.openai.code === FULL) throw error;
    const delay = limiter.noteLimit();
    if (limiter.isClosed) events.changeState("limited", { detail: error.detail });
    if (delay === null || this.#produced) throw error;
    await this.#unlessOver(sleep(delay, undefined, { signal: this.#cancelled.signal }).catch(() => {}));
  }

  /** Waits for the gate or for a pause. The wait ends when the request times out or is cancelled. */
  #unlessOver<T>(wait: Promise<T>, gate: Compatibility | null = null): Promise<T> {
    const { signal } = this.#cancelled;
    if (signal.aborted) return Promise.reject(cancelledError());
    return new Promise<T>((resolve, reject) => {
      const settle = (how: () => void): void => {
        watch.stop();
        this.#since += watch.stood;
        signal.removeEventListener("abort", stop);
        how();
      };
      const stop = (): void => settle(() => reject(cancelledError()));
      const since = this.#since;
      const watch = new Watch((now) => {
        const { limit, at } = this.#limits.next({ since, heardAt: gate?.heardAt ?? null, known: false, stage: "queued" });
        if (now < at + GRACE_MS) return at + GRACE_MS;
        settle(() => reject(timeoutOf(this.#method, limit)));
        gate?.giveUp();
        return null;
      });
      watch.wake();
      signal.addEventListener("abort", stop, { once: true });
      wait.then(
        (value) => settle(() => resolve(value)),
        (error: unknown) => settle(() => reject(error)),
      );
    });
  }
}

/** Even if the default model is missing, the model that the request names may exist. */
function concerns({ reasonCode }: FmError, model: unknown): boolean {
  return reasonCode !== "MODEL_NOT_READY" || DEFAULT_MODELS.has(model);
}
