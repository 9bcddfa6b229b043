// The host's fallback. It answers when the local model does not, whichever method made the request.
import { AsyncLocalStorage } from "node:async_hooks";
import { setMaxListeners } from "node:events";
import { UNSTORED, wholeAnswer, type Whole } from "./fallback-answer.js";
import { FmError, invalid, type FmErrorCode } from "./errors.js";
import { refused, withSignal } from "./stream.js";
import { toFmError } from "./thrown.js";
import type { CallOptions, JsonObject, Operation, Transport } from "./types.js";
import { isObject } from "./types.js";

/** The calls that can have a fallback. */
export type FallbackMethod =
  | "responses.create"
  | "chat.completions.create"
  | "completions.create"
  | "decisions.create"
  | "embeddings.create";

/** The argument of a fallback function. */
export interface FallbackCall {
  method: FallbackMethod;
  /** The request's body, as the host gave it. With `stream` true the function may give the API's stream, or an answer. */
  body: JsonObject;
  /** Why the local model did not answer. */
  error: FmError;
  /** Aborted when the request is aborted, and when the client is closed. */
  signal: AbortSignal;
}

/** The methods of an OpenAI client that may be called. */
export interface FallbackClient {
  responses?: { create(body: never, options?: never): unknown };
  chat?: { completions: { create(body: never, options?: never): unknown } };
  completions?: { create(body: never, options?: never): unknown };
  decisions?: { create(body: never, options?: never): unknown };
  embeddings?: { create(body: never, options?: never): unknown };
}

/**
 * Answers if the local model does not: an OpenAI client, or a function. The function returns the API's object, or a part of it
 * that has the answer. If the answer is a text, it may return the text alone.
 */
export type Fallback = ((call: FallbackCall) => unknown) | FallbackClient;

/** The fallback, and the model that is requested from it. */
export interface FallbackOptions {
  fallback: Fallback;
  fallbackModel: string | undefined;
}

/** Whether another model may be asked after a failure, because it could succeed. */
const FALLS_BACK: Readonly<Record<FmErrorCode, boolean>> = {
  // There is no model, or none can be asked.
  UNAVAILABLE: true,
  SPAWN_FAILED: true,
  PROTOCOL_MISMATCH: true,
  HELPER_UNHEALTHY: true,
  HELPER_EXITED: true,
  PROTOCOL_ERROR: true,
  RPC_ERROR: true,
  // The model can't answer this request, or can't answer now.
  TIMEOUT: true,
  INTERNAL: true,
  CONTEXT_OVERFLOW: true,
  OVERLOADED: true,
  RATE_LIMITED: true,
  // The host caused these errors itself, or they are refusals that must not be bypassed.
  INVALID_REQUEST: false,
  NOT_FOUND: false,
  CANCELLED: false,
  CLOSED: false,
  GUARDRAIL: false,
  NO_VALID_ANSWER: false,
};

const METHODS: ReadonlySet<string> = new Set<FallbackMethod>([
  "responses.create",
  "chat.completions.create",
  "completions.create",
  "decisions.create",
  "embeddings.create",
]);
/** Members of a body that only this package's helper knows. */
const OURS: ReadonlySet<string> = new Set(["fm", "top_k", "min_p", "repeat_penalty", "ignore_eos", "return_progress"]);

/** Who produced an answer of the client, or an event of one of its streams. */
export function sourceOf(answer: unknown): "local" | "fallback" {
  const report = isObject(answer) ? answer["fm"] : undefined;
  return isObject(report) && report["source"] === "fallback" ? "fallback" : "local";
}

/** A fallback call that is in progress. */
interface Asking {
  of: FallbackOptions;
  /** The outer fallback call, if its function made this request. */
  within: Asking | undefined;
  over: boolean;
}

/** The fallback call in which the present code runs, if any. */
const asking = new AsyncLocalStorage<Asking>();

/**
 * A transport that asks the fallback if a request fails. The answer has the helper's form, and its `fm` says that it is the
 * fallback's.
 */
export class FallbackTransport implements Transport {
  readonly #transport: Transport;
  readonly #options: FallbackOptions;
  readonly #closed: AbortSignal;

  /**
   * Makes the transport. When `closed` is aborted, its reason is the error of every request that waits for the fallback or comes
   * later.
   */
  constructor(transport: Transport, options: FallbackOptions, closed: AbortSignal) {
    this.#transport = transport;
    this.#options = options;
    this.#closed = closed;
    setMaxListeners(0, closed); // each request whose fallback is asked adds a listener
  }

  /** {@inheritDoc Transport.call} */
  call(method: string, params: JsonObject, options: CallOptions = {}): Operation {
    if (!METHODS.has(method) || staysHere(params)) return this.#transport.call(method, params, options);
    const before = isObject(params) ? params["previous_response_id"] : undefined;
    if (typeof before === "string" && before.startsWith(UNSTORED)) return refused(unstored(before));
    // Without this check, a fallback that calls this client would be called again without end.
    if (this.#isAsking()) return this.#transport.call(method, params, options);
    return new Attempt(this.#transport, this.#options, this.#closed, method as FallbackMethod, params, options);
  }

  #isAsking(): boolean {
    for (let each = asking.getStore(); each !== undefined; each = each.within) {
      if (each.of === this.#options && !each.over) return true;
    }
    return false;
  }
}

/**
 * A request that must not leave this machine has no fallback, because the fallback may be elsewhere. A request that only prewarms
 * the local model has none either: the fallback would generate an answer.
 */
const staysHere = (params: JsonObject): boolean =>
  isObject(params) &&
  ((isObject(params["fm"]) && params["fm"]["local_only"] === true) || params["generate"] === false);

function unstored(id: string): FmError {
  const why = `the fallback answered ${id}, which is not stored. Send the conversation in \`input\``;
  return invalid("previous_response_id", `Invalid 'previous_response_id': ${why}.`);
}

/** One request: it goes to the local model, and after a failure to the fallback. */
class Attempt implements Operation {
  readonly result: Promise<JsonObject>;
  readonly #fallback: FallbackOptions;
  readonly #closed: AbortSignal;
  readonly #method: FallbackMethod;
  readonly #params: JsonObject;
  readonly #local: Operation;
  readonly #notify: (message: JsonObject) => void;
  readonly #cancelled = new AbortController();
  #begun = false;

  constructor(
    transport: Transport,
    fallback: FallbackOptions,
    closed: AbortSignal,
    method: FallbackMethod,
    params: JsonObject,
    options: CallOptions,
  ) {
    this.#fallback = fallback;
    this.#closed = closed;
    this.#method = method;
    this.#params = params;
    this.#notify = (message) => {
      this.#begun = true;
      options.onNotification?.(message);
    };
    this.#local = transport.call(method, params, { ...options, onNotification: this.#notify });
    this.result = this.#local.result.catch((reason: unknown) => this.#fallBack(toFmError(reason)));
  }

  /** {@inheritDoc Operation.cancel} */
  cancel(): void {
    this.#cancelled.abort();
    this.#local.cancel();
  }

  async #fallBack(error: FmError): Promise<JsonObject> {
    const { signal } = this.#cancelled;
    const closed = this.#closed;
    if (this.#begun || !FALLS_BACK[error.code]) throw error;
    const close = (): void => this.#cancelled.abort(closed.reason);
    closed.addEventListener("abort", close, { once: true });
    if (closed.aborted) close();
    try {
      // A fallback may ignore the signal.
      return await withSignal(() => ({ result: this.#askOnce(error), cancel() {} }), signal);
    } catch (reason) {
      if (signal.aborted && signal.reason === closed.reason) throw closed.reason;
      if (signal.aborted) throw new FmError("CANCELLED", "The request was cancelled.", { cause: reason });
      const failed = toFmError(reason);
      if (this.#begun) throw withDetail(failed, `The fallback failed: ${failed.detail}`);
      const local = /[.!?]$/.test(error.detail) ? error.detail : `${error.detail}.`;
      const what = `${local} The fallback failed too: ${failed.detail}`;
      throw withDetail(error, what, reason);
    } finally {
      closed.removeEventListener("abort", close);
    }
  }

  async #askOnce(error: FmError): Promise<JsonObject> {
    const call: Asking = { of: this.#fallback, within: asking.getStore(), over: false };
    try {
      return await asking.run(call, () => this.#ask(error));
    } finally {
      call.over = true; // the host's function may have started work that goes on after this call
    }
  }

  async #ask(error: FmError): Promise<JsonObject> {
    const { stream, ...rest } = this.#params;
    const body = stream === true ? { ...rest, stream } : rest;
    const call: FallbackCall = { method: this.#method, body, error, signal: this.#cancelled.signal };
    const { fallback, fallbackModel } = this.#fallback;
    const value = await (typeof fallback === "function" ? fallback(call) : askClient(fallback, fallbackModel, call));
    const whole = wholeAnswer(this.#method, this.#params, fallbackModel);
    if (stream === true && isStream(value)) return this.#relay(value, whole);
    const answer = asJson(whole.of(value));
    if (stream === true) for (const message of whole.messages(answer)) this.#notify(message);
    return { ok: true, [whole.name]: answer };
  }

  async #relay(stream: AsyncIterable<unknown>, whole: Whole): Promise<JsonObject> {
    for await (const each of untilAborted(stream, this.#cancelled.signal)) {
      if (isObject(each)) this.#notify(asJson(whole.observe(each)));
    }
    return { ok: true, [whole.name]: whole.observed() };
  }
}

/** The same error with another detail. */
function withDetail(error: FmError, detail: string, cause: unknown = error.cause): FmError {
  return new FmError(error.code, detail, { ...error, openai: { ...error.openai, message: detail }, cause });
}

/** The answer itself. Throws an Error if it can't be sent as JSON: it contains a BigInt or a cycle, for example. */
function asJson(answer: JsonObject): JsonObject {
  try {
    JSON.stringify(answer);
  } catch (reason) {
    throw new Error(`its answer can't be written as JSON (${String(reason).split("\n")[0]})`, { cause: reason });
  }
  return answer;
}

const isStream = (value: unknown): value is AsyncIterable<unknown> =>
  typeof value === "object" && value !== null && Symbol.asyncIterator in value;

/** The events of a fallback's stream. The stream may ignore the signal or hang, so nothing waits for it after an abort. */
async function* untilAborted(stream: AsyncIterable<unknown>, signal: AbortSignal): AsyncGenerator<unknown, void> {
  const iterator = stream[Symbol.asyncIterator]();
  const next = async (): Promise<IteratorResult<unknown>> => iterator.next();
  const leave = async (): Promise<unknown> => iterator.return?.();
  let over = false;
  try {
    for (;;) {
      const { done, value } = await withSignal(() => ({ result: next(), cancel() {} }), signal);
      over = done === true;
      if (over) return;
      yield value;
    }
  } finally {
    if (!over) leave().catch(() => {});
  }
}

/** Sends the same request to another OpenAI client, without the parameters that only our helper knows. */
function askClient(client: FallbackClient, model: string | undefined, call: FallbackCall): unknown {
  const path = call.method.split(".");
  const create = path.pop() as string;
  let api: unknown = client;
  for (const name of path) api = (api as JsonObject | undefined)?.[name];
  const method = (api as JsonObject | undefined)?.[create];
  if (typeof method !== "function") throw new Error(`the fallback has no ${call.method}`);
  const body = Object.fromEntries(Object.entries(call.body).filter(([name]) => !OURS.has(name)));
  return method.call(api, { ...body, ...(model === undefined ? {} : { model }) }, { signal: call.signal });
}
