// One call as its caller sees it: it settles once, in time, over one helper or two.
import type { Connection } from "./connection.js";
import { FmError } from "./errors.js";
import * as LIMITS from "./limits.js";
import type { CallOptions, JsonObject, Operation } from "./types.js";
import { isObject } from "./types.js";

/** Calls of the engine: the helper ends them itself after `fm.timeout_ms`. */
const TIMED: ReadonlySet<string> = new Set([
  "responses.create",
  "responses.compact",
  "responses.input_tokens",
  "chat.completions.create",
  "completions.create",
  "embeddings.create",
  "models.load",
  "models.unload",
]);
/** How long after that limit the helper may still say so: an engine that has to be ended takes LIMITS.grace_ms. */
export const GRACE_MS = LIMITS.grace_ms + 150;
/** A helper that has not settled a call so long after its limit hangs. */
const HANGS_MS = 2000;

/** The longest time that Node's timers take, in ms; a longer one would be over at once. */
export const LONGEST_MS = 2_147_483_647;

/** Whether a call is work of the engine. */
export const isWork = (method: string): boolean => TIMED.has(method);

/** How long the engine may work for a call, in ms. */
export function workLimit(params: JsonObject): number {
  const limit = isObject(params["fm"]) ? params["fm"]["timeout_ms"] : undefined;
  // What can't be a limit, the helper refuses.
  const fits = typeof limit === "number" && limit >= 0 && limit <= LIMITS.longest_timeout_ms;
  return fits ? limit : LIMITS.timeout_ms;
}

/** Calls `expire` when a limit that began at `since` and its grace are over. The timer keeps Node alive. */
export function startDeadline(limit: number, grace: number, since: number, expire: () => void): ReturnType<typeof setTimeout> {
  // The loop reads what has come before it runs what was set to be immediate.
  const left = Math.max(0, since + limit + grace - performance.now());
  return setTimeout(() => setImmediate(expire), Math.min(left, LONGEST_MS));
}

/** A call that was not answered in time. */
export function timeoutOf(method: string, limit: number): FmError {
  const what = `The helper did not answer ${method} within ${limit} ms.`;
  return new FmError("TIMEOUT", what, isWork(method) ? { limit: "total", limitMs: limit } : {});
}

/** A call that was cancelled before it was sent. */
export function cancelledError(): FmError {
  return new FmError("CANCELLED", "The request was cancelled before it was sent.");
}

/** A call, from the moment when it is made until it is settled. */
export class Call implements Operation {
  readonly method: string;
  readonly params: JsonObject;
  readonly result: Promise<JsonObject>;
  readonly #options: CallOptions;
  #resolve: (result: JsonObject) => void = () => {};
  #reject: (error: FmError) => void = () => {};
  #timer: ReturnType<typeof setTimeout> | undefined;
  #observe: (message: JsonObject) => void = () => {};
  #sent: { connection: Connection; id: number; settled: boolean } | null = null;
  #over = false;
  #cancelled = false;

  constructor(method: string, params: JsonObject, options: CallOptions) {
    this.method = method;
    this.params = params;
    this.#options = options;
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    if (options.timeoutFrom !== "send") this.#startTimer();
  }

  /** Whether it is settled. */
  get isOver(): boolean {
    return this.#over;
  }

  /** Sends it and waits for what comes of it. Throws what the connection does. */
  async sendOn(connection: Connection): Promise<JsonObject> {
    if (this.#options.timeoutFrom === "send") this.#startTimer();
    const { id, result } = connection.call(this.method, this.params, (message) => this.#notify(message));
    const sent = { connection, id, settled: false };
    this.#sent = sent;
    try {
      return await result;
    } finally {
      sent.settled = true;
    }
  }

  /** Whether it may be sent once more after its connection failed: nobody has read it. */
  get wasUnread(): boolean {
    return !this.#over && !this.#cancelled && this.#sent !== null && !this.#sent.connection.mayHaveRead(this.#sent.id);
  }

  /** Has every notification looked at before it is passed on. */
  watch(observe: (message: JsonObject) => void): void {
    this.#observe = observe;
  }

  resolve(result: JsonObject): void {
    if (this.#over) return;
    this.#settle();
    this.#resolve(result);
  }

  reject(error: FmError): void {
    if (this.#over) return;
    this.#settle();
    this.#reject(error);
  }

  /** {@inheritDoc Operation.cancel} */
  cancel(): void {
    if (this.#over || this.#cancelled) return;
    this.#cancelled = true;
    if (this.#sent !== null && !this.#sent.settled) this.#sent.connection.cancel(this.#sent.id);
    else this.reject(cancelledError());
  }

  #settle(): void {
    this.#over = true;
    clearTimeout(this.#timer);
  }

  #notify(message: JsonObject): void {
    this.#observe(message);
    if (!this.#over) this.#options.onNotification?.(message);
  }

  #startTimer(): void {
    const { method, params } = this;
    const limit = this.#options.timeoutMs ?? (isWork(method) ? workLimit(params) : undefined);
    if (limit === undefined) return;
    clearTimeout(this.#timer);
    const since = this.#options.since ?? performance.now();
    this.#timer = startDeadline(limit, isWork(method) ? GRACE_MS : 0, since, () => this.#expire(limit));
  }

  #expire(limit: number): void {
    if (this.#over) return;
    const sent = this.#sent;
    const error = timeoutOf(this.method, limit);
    this.reject(error);
    if (sent === null || sent.settled) return;
    sent.connection.cancel(sent.id);
    const hangs = new FmError("HELPER_UNHEALTHY", `${error.detail} It was ended.`);
    setTimeout(() => {
      if (!sent.settled) sent.connection.fail(hangs);
    }, HANGS_MS).unref();
  }
}
