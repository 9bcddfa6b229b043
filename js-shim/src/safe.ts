// client.safe: calls that never throw and never reject, and the fallback of a host that has one.
import { FmError } from "./errors.js";
import type { GenerateParams, Generated } from "./generate.js";
import { toFmError } from "./thrown.js";
import type {
  ChatCompletion,
  ChatCreateParams,
  Completion,
  CompletionCreateParams,
  EmbeddingCreateParams,
  EmbeddingList,
  JsonObject,
  RequestOptions,
  ResponseCreateParams,
  ResponseEvent,
  ResponseObject,
} from "./types.js";
import { withSignal } from "./stream.js";
import { isObject } from "./types.js";

/** The calls that can have a fallback. */
export type FallbackMethod =
  | "responses.create"
  | "chat.completions.create"
  | "completions.create"
  | "embeddings.create";

/** What a fallback function gets. */
export interface FallbackCall {
  method: FallbackMethod;
  /** The request's body, as the host gave it. */
  body: JsonObject;
  /** Why the local model did not answer. */
  error: FmError;
  signal?: AbortSignal | undefined;
}

/** Any OpenAI client, as far as it is called. */
export interface FallbackClient {
  responses?: { create(body: never, options?: never): unknown };
  chat?: { completions: { create(body: never, options?: never): unknown } };
  completions?: { create(body: never, options?: never): unknown };
  embeddings?: { create(body: never, options?: never): unknown };
}

/** Who answers when the local model does not: a function, which returns what the call does, or an OpenAI client. */
export type Fallback = ((call: FallbackCall) => unknown) | FallbackClient;

/** What a call of `client.safe` gives: the answer under its name and who gave it, or why there is none. */
export type SafeResult<Name extends string, T> =
  | ({ ok: true; source: "local" | "fallback" } & { [Key in Name]: T })
  | { ok: false; error: FmError };

/** What `client.safe.generate` gives. */
export type SafeGenerated<T> = ({ ok: true } & Generated<T>) | { ok: false; error: FmError };

/** The calls that `client.safe` makes. */
export interface SafeCalls {
  responses(body: ResponseCreateParams, options: RequestOptions): Promise<ResponseObject>;
  events(body: ResponseCreateParams, options: RequestOptions): AsyncIterable<ResponseEvent>;
  chat(body: ChatCreateParams, options: RequestOptions): Promise<ChatCompletion>;
  completions(body: CompletionCreateParams, options: RequestOptions): Promise<Completion>;
  embeddings(body: EmbeddingCreateParams, options: RequestOptions): Promise<EmbeddingList>;
  generate<T>(params: GenerateParams<T>, options: RequestOptions): Promise<Generated<T>>;
}

/** The fallback, and the model that it is asked for. */
export interface FallbackOptions {
  fallback: Fallback | undefined;
  fallbackModel: string | undefined;
}

/** Failures that another model would not meet, or must not get round. */
const FINAL: ReadonlySet<string> = new Set(["INVALID_REQUEST", "NOT_FOUND", "CANCELLED", "GUARDRAIL", "CLOSED"]);
/** Members of a body that only this package's helper knows. */
const OURS: ReadonlySet<string> = new Set(["fm", "top_k", "min_p", "repeat_penalty", "ignore_eos"]);

/** Takes how a stream ended; the first word counts. */
type Tell = (result: SafeResult<"response", ResponseObject>) => void;

/** The events of one response, of the model or the fallback. The loop never throws; `outcome` tells how it ended. */
export class SafeResponseStream implements AsyncIterable<ResponseEvent> {
  /** Settles when the loop is over, and never rejects. */
  readonly outcome: Promise<SafeResult<"response", ResponseObject>>;
  readonly #events: AsyncGenerator<ResponseEvent, void>;
  #settle: Tell = () => {};

  /** @internal */
  constructor(open: (tell: Tell) => AsyncGenerator<ResponseEvent, void>) {
    this.outcome = new Promise((resolve) => (this.#settle = resolve));
    this.#events = open((result) => this.#settle(result));
    // Of a loop that has not begun, the generator runs nothing at all.
    const leave = this.#events.return.bind(this.#events);
    this.#events.return = (value) => {
      this.#settle(leftEarly());
      return leave(value);
    };
  }

  [Symbol.asyncIterator](): AsyncIterator<ResponseEvent, void> {
    return this.#events;
  }
}

/** `client.safe`: the calls of the client that never throw and never reject. */
export class Safe {
  /** OpenAI's Responses API. */
  readonly responses: {
    create(body: ResponseCreateParams, options?: RequestOptions): Promise<SafeResult<"response", ResponseObject>>;
    stream(body: ResponseCreateParams, options?: RequestOptions): SafeResponseStream;
  };
  /** OpenAI's Chat Completions API. */
  readonly chat: {
    readonly completions: {
      create(body: ChatCreateParams, options?: RequestOptions): Promise<SafeResult<"completion", ChatCompletion>>;
    };
  };
  /** OpenAI's older Completions API. */
  readonly completions: {
    create(body: CompletionCreateParams, options?: RequestOptions): Promise<SafeResult<"completion", Completion>>;
  };
  /** OpenAI's Embeddings API. */
  readonly embeddings: {
    create(body: EmbeddingCreateParams, options?: RequestOptions): Promise<SafeResult<"embeddings", EmbeddingList>>;
  };
  readonly #calls: SafeCalls;
  readonly #fallback: FallbackOptions;

  /** @internal */
  constructor(calls: SafeCalls, fallback: FallbackOptions) {
    this.#calls = calls;
    this.#fallback = fallback;
    this.responses = {
      create: (body, options) => this.#ask("response", "responses.create", calls.responses, body, options),
      stream: (body, options) => new SafeResponseStream((tell) => this.#stream(body, options ?? {}, tell)),
    };
    this.chat = {
      completions: { create: (body, options) => this.#ask("completion", "chat.completions.create", calls.chat, body, options) },
    };
    this.completions = {
      create: (body, options) => this.#ask("completion", "completions.create", calls.completions, body, options),
    };
    this.embeddings = {
      create: (body, options) => this.#ask("embeddings", "embeddings.create", calls.embeddings, body, options),
    };
  }

  /** `client.generate`, with its own fallback. */
  async generate<T>(params: GenerateParams<T>, options?: RequestOptions): Promise<SafeGenerated<T>> {
    try {
      return { ok: true, ...(await this.#calls.generate(params, options ?? {})) };
    } catch (reason) {
      return { ok: false, error: errorOf(reason, options ?? {}) };
    }
  }

  async #ask<Name extends string, Body extends JsonObject, T>(
    name: Name,
    method: FallbackMethod,
    call: (body: Body, options: RequestOptions) => Promise<T>,
    body: Body,
    given: RequestOptions | null | undefined,
  ): Promise<SafeResult<Name, T>> {
    const options = given ?? {};
    const told = (source: "local" | "fallback", answer: unknown) =>
      ({ ok: true, source, [name]: answer }) as SafeResult<Name, T>;
    let error: FmError;
    try {
      return told("local", await call(isObject(body) ? { ...body, stream: false } : body, options));
    } catch (reason) {
      error = errorOf(reason, options);
    }
    const answer = await this.#fallBack({ method, body, error, signal: options.signal ?? undefined });
    return "error" in answer ? { ok: false, error: answer.error } : told("fallback", answer.value);
  }

  /** What the fallback says; where there is none, or it fails, the error. Never rejects. */
  async #fallBack(call: FallbackCall, stream = false): Promise<{ value: unknown } | { error: FmError }> {
    const { fallback, fallbackModel } = this.#fallback;
    if (fallback === undefined || FINAL.has(call.error.code)) return { error: call.error };
    try {
      const ask = async (): Promise<unknown> =>
        typeof fallback === "function" ? fallback(call) : askClient(fallback, fallbackModel, call, stream);
      // A fallback need not look at the signal itself.
      const value = await withSignal(() => ({ result: ask(), cancel() {} }), call.signal);
      if (value === undefined || value === null) throw new Error("it gave nothing");
      return { value };
    } catch (reason) {
      if (call.signal?.aborted === true) return { error: errorOf(reason, call) };
      const failed = toFmError(reason);
      const what = `${call.error.detail} The fallback failed too: ${failed.detail}`;
      return { error: new FmError(call.error.code, what, { openai: { ...call.error.openai, message: what }, cause: reason }) };
    }
  }

  async *#stream(
    body: ResponseCreateParams,
    options: RequestOptions,
    tell: Tell,
  ): AsyncGenerator<ResponseEvent, void> {
    const local = yield* relay(() => this.#calls.events(body, options), "local", options, tell);
    if (local === null) return;
    const call: FallbackCall = { method: "responses.create", body, error: local, signal: options.signal ?? undefined };
    const answer = await this.#fallBack(call, true);
    if ("error" in answer) return tell({ ok: false, error: answer.error });
    const failed = yield* relay(() => untilAborted(eventsOf(answer.value), options.signal), "fallback", options, tell);
    if (failed !== null) tell({ ok: false, error: failed });
  }
}

/** Passes events on and tells how they ended. Returns the error of a stream that failed before its first event. */
async function* relay(
  open: () => AsyncIterable<ResponseEvent>,
  source: "local" | "fallback",
  options: RequestOptions,
  tell: Tell,
): AsyncGenerator<ResponseEvent, FmError | null> {
  let response: ResponseObject | null = null;
  let begun = false;
  try {
    for await (const event of open()) {
      begun = true;
      if ("response" in event) response = event.response;
      yield event;
    }
    if (response === null) throw new FmError("INTERNAL", "The stream had no response.");
    tell({ ok: true, source, response });
    return null;
  } catch (reason) {
    const error = errorOf(reason, options);
    if (!begun) return error;
    tell({ ok: false, error });
    return null;
  } finally {
    // After another word this changes nothing.
    if (begun) tell(leftEarly());
  }
}

function leftEarly(): { ok: false; error: FmError } {
  return { ok: false, error: new FmError("CANCELLED", "The stream was left before its end.") };
}

/** The events of a fallback, which need not look at the signal itself. One that hangs is not waited for. */
async function* untilAborted(
  events: AsyncIterable<ResponseEvent>,
  signal: AbortSignal | null | undefined,
): AsyncGenerator<ResponseEvent, void> {
  const iterator = events[Symbol.asyncIterator]();
  const next = async (): Promise<IteratorResult<ResponseEvent>> => iterator.next();
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

/** What a fallback gave for a stream: events, or a whole response, which then is the last event. */
function eventsOf(value: unknown): AsyncIterable<ResponseEvent> {
  if (typeof value === "object" && value !== null && Symbol.asyncIterator in value)
    return value as AsyncIterable<ResponseEvent>;
  return (async function* () {
    yield { type: "response.completed", sequence_number: 0, response: value as ResponseObject } as const;
  })();
}

/** Asks another OpenAI client the same, without what is our own. */
function askClient(client: FallbackClient, model: string | undefined, call: FallbackCall, stream: boolean): unknown {
  const path = call.method.split(".");
  const create = path.pop() as string;
  let api: unknown = client;
  for (const name of path) api = (api as JsonObject | undefined)?.[name];
  const method = (api as JsonObject | undefined)?.[create];
  if (typeof method !== "function") throw new Error(`the fallback has no ${call.method}`);
  const body = Object.fromEntries(Object.entries(call.body).filter(([name]) => !OURS.has(name)));
  return method.call(api, { ...body, ...(model === undefined ? {} : { model }), stream }, { signal: call.signal });
}

/** What was thrown as an FmError; an abort, whatever its reason, is CANCELLED. */
function errorOf(reason: unknown, { signal }: Pick<RequestOptions, "signal">): FmError {
  if (reason instanceof FmError) return reason;
  if (signal?.aborted === true) return new FmError("CANCELLED", "The request was aborted.", { cause: reason });
  return toFmError(reason);
}
