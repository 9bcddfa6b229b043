// One call as its caller sees it: it settles once, in time, over one helper or two.
import type { Connection } from "./connection.js";
import { FmError } from "./errors.js";
import { cancelledError } from "./stream.js";
import * as LIMITS from "./limits.js";
import { stageOf, TimeLimits, timeoutOf, type NextLimit, type Progress, type TimeLimit } from "./time-limits.js";
import type { CallOptions, JsonObject, Operation } from "./types.js";
import { Watch } from "./watch.js";
import type { Method } from "./wire.js";

/** Calls that need the engine. The helper itself ends them after the limits in their `fm`. */
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
/**
 * How long after a limit has passed the helper may still report it: an engine that has to be ended takes
 * LIMITS.grace_ms.
 */
export const GRACE_MS = LIMITS.grace_ms + 150;
/** Whether a call is work of the engine. */
export const isWork = (method: string): boolean => TIMED.has(method);

/** Calls that a healthy helper answers in a moment, unless they are streamed. */
const SHORT: ReadonlySet<string> = new Set<Method>([
  "health.ping",
  "metrics.get",
  "capabilities.get",
  "models.list",
  "models.retrieve",
  "responses.retrieve",
  "responses.delete",
  "responses.input_items",
  "responses.cancel",
]);
const SHORT_MS = 10_000;

/** Which limit of a call passes next. */
type Next = (progress: Progress) => NextLimit;

/** A call, from the moment when it is made until it is settled. */
export class Call implements Operation {
  readonly method: string;
  readonly params: JsonObject;
  readonly result: Promise<JsonObject>;
  readonly #options: CallOptions;
  #resolve: (result: JsonObject) => void = () => {};
  #reject: (error: FmError) => void = () => {};
  readonly #watch = new Watch((now) => this.#look(now));
  readonly #next: Next | null;
  readonly #progress: Progress;
  /**
   * The time of a limit's end for which the helper was last asked whether it has the request. `#vouchedFor`: the time
   * for which it last said yes.
   */
  #askedFor = 0;
  #vouchedFor = 0;
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
    this.#progress = { since: options.since ?? performance.now(), heardAt: null, known: false, stage: "queued" };
    this.#next = limitsOf(method, params, options);
    if (this.#next !== null && options.timeoutFrom !== "send") this.#watch.wake();
  }

  /**
   * The time, by performance.now(), when the helper got the call or last reported something about it. Null: the helper has not
   * got the call.
   */
  get heardAt(): number | null {
    return this.#progress.heardAt;
  }

  /** Whether the call is settled. */
  get isOver(): boolean {
    return this.#over;
  }

  /** Sends the call and waits for its result. Throws what the connection throws. */
  async sendOn(connection: Connection): Promise<JsonObject> {
    const isEndless = this.#next === null;
    const { id, result } = connection.call(this.method, this.params, isEndless, (message) => this.#notify(message));
    const sent = { connection, id, settled: false };
    this.#sent = sent;
    const { now } = this.#watch;
    Object.assign(this.#progress, { heardAt: now, ...(this.#options.timeoutFrom === "send" ? { since: now } : {}) });
    if (this.#next !== null) this.#watch.wake();
    try {
      return await result;
    } finally {
      sent.settled = true;
    }
  }

  /** Whether the call may be sent once more after its connection failed, because no helper has read it. */
  get wasUnread(): boolean {
    return !this.#over && !this.#cancelled && this.#sent !== null && !this.#sent.connection.mayHaveRead(this.#sent.id);
  }

  /** Makes `observe` get every notification before it is passed on. */
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

  /** Gives the call up. Nobody waits for it any more, and the helper that has the call did not settle it in time. */
  giveUp(): void {
    if (!this.#over && this.#sent !== null && !this.#sent.settled) this.#expire(this.#watch.now, { ms: Math.round(this.#age) });
  }

  get #age(): number {
    return this.#watch.now - this.#progress.since;
  }

  #settle(): void {
    this.#over = true;
    this.#watch.stop();
  }

  #notify(message: JsonObject): void {
    this.#progress.heardAt = this.#watch.now;
    if (this.#progress.stage !== "produced") this.#progress.stage = stageOf(message);
    this.#observe(message);
    if (!this.#over) this.#options.onNotification?.(message);
  }

  /** Ends the call some time after a limit has passed. In that time the helper may still report the limit. */
  #look(now: number): number | null {
    if (this.#over || this.#next === null) return null;
    const { limit, at } = this.#next(this.#progress);
    const end = at + (isWork(this.method) ? GRACE_MS : 0);
    if (now >= end) this.#expire(at, limit);
    else if (now >= at) this.#ask(at);
    return this.#over ? null : now >= at ? end : at;
  }

  /**
   * Asks the helper whether it has this request. The helper may be slow, or serve other requests first. If the helper has the
   * request, it enforces the limits itself.
   */
  #ask(at: number): void {
    const sent = this.#sent;
    if (sent === null || sent.settled || this.#askedFor === at) return;
    this.#askedFor = at;
    void sent.connection.hasInHand(sent.id).then((has) => {
      if (!has || this.#sent !== sent) return;
      this.#vouchedFor = at;
      Object.assign(this.#progress, { heardAt: this.#watch.now, known: true });
    });
  }

  #expire(at: number, limit: TimeLimit): void {
    const sent = this.#sent;
    const error = timeoutOf(this.method, limit);
    this.reject(error);
    if (sent === null || sent.settled) return;
    const hangs = new FmError("HELPER_UNHEALTHY", `${error.detail} It was ended.`);
    sent.connection.giveUpOn(sent.id, hangs, this.#vouchedFor === at);
  }
}

/** Null: the call has no limit. */
function limitsOf(method: string, params: JsonObject, { timeoutMs }: CallOptions): Next | null {
  const isShort = SHORT.has(method) && params["stream"] !== true;
  const ms = timeoutMs ?? (isShort ? SHORT_MS : undefined);
  if (ms !== undefined) return ({ since }) => ({ limit: { ms }, at: since + ms });
  if (!isWork(method)) return null;
  const limits = new TimeLimits(params);
  return (progress) => limits.next(progress);
}
