// client.safe: calls that never throw and never reject. They use the host's fallback if there is one.
import { FmError } from "./errors.js";
import { sourceOf } from "./fallback.js";
import type { GenerateParams, Generated } from "./generate.js";
import { toFmError } from "./thrown.js";
import type {
  ChatCompletion,
  ChatCreateParams,
  Completion,
  CompletionCreateParams,
  Decision,
  DecisionCreateParams,
  EmbeddingCreateParams,
  EmbeddingList,
  JsonObject,
  RequestOptions,
  StreamRequestOptions,
  ResponseCreateParams,
  ResponseEvent,
  ResponseObject,
} from "./types.js";
import { isObject } from "./types.js";

/** The result of a call of `client.safe`: the answer under its name and its source, or the error. */
export type SafeResult<Name extends string, T> =
  | ({ ok: true; source: "local" | "fallback" } & { [Key in Name]: T })
  | { ok: false; error: FmError };

/** The result of `client.safe.generate`. */
export type SafeGenerated<T> = ({ ok: true } & Generated<T>) | { ok: false; error: FmError };

/** The calls that `client.safe` makes. */
export interface SafeCalls {
  responses(body: ResponseCreateParams, options: RequestOptions): Promise<ResponseObject>;
  events(body: ResponseCreateParams, options: RequestOptions): AsyncIterable<ResponseEvent>;
  chat(body: ChatCreateParams, options: RequestOptions): Promise<ChatCompletion>;
  completions(body: CompletionCreateParams, options: RequestOptions): Promise<Completion>;
  embeddings(body: EmbeddingCreateParams, options: RequestOptions): Promise<EmbeddingList>;
  decisions(body: DecisionCreateParams, options: RequestOptions): Promise<Decision>;
  generate<T>(params: GenerateParams<T>, options: RequestOptions): Promise<Generated<T>>;
}

/** Receives how a stream ended. Only the first call counts. */
type Tell = (result: SafeResult<"response", ResponseObject>) => void;

/** The events of one response, of the model or the fallback. The loop never throws; `outcome` reports how it ended. */
export class SafeResponseStream implements AsyncIterable<ResponseEvent> {
  /** Settles when the loop is over, and never rejects. */
  readonly outcome: Promise<SafeResult<"response", ResponseObject>>;
  readonly #events: AsyncGenerator<ResponseEvent, void>;
  #settle: Tell = () => {};

  /** @internal */
  constructor(open: (tell: Tell) => AsyncGenerator<ResponseEvent, void>) {
    this.outcome = new Promise((resolve) => (this.#settle = resolve));
    this.#events = open((result) => this.#settle(result));
    // If the loop has not begun, the generator's own code never runs.
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
    stream(body: ResponseCreateParams, options?: StreamRequestOptions): SafeResponseStream;
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
  /** OpenAI's Decisions API. */
  readonly decisions: {
    create(body: DecisionCreateParams, options?: RequestOptions): Promise<SafeResult<"decision", Decision>>;
  };
  readonly #calls: SafeCalls;

  /** @internal */
  constructor(calls: SafeCalls) {
    this.#calls = calls;
    this.responses = {
      create: (body, options) => ask("response", whole(calls.responses), body, options),
      stream: (body, options) => new SafeResponseStream((tell) => relay(calls.events, body, options ?? {}, tell)),
    };
    this.chat = { completions: { create: (body, options) => ask("completion", whole(calls.chat), body, options) } };
    this.completions = { create: (body, options) => ask("completion", whole(calls.completions), body, options) };
    this.embeddings = { create: (body, options) => ask("embeddings", calls.embeddings, body, options) };
    this.decisions = { create: (body, options) => ask("decision", calls.decisions, body, options) };
  }

  /** `client.generate`, with its own fallback. */
  async generate<T>(params: GenerateParams<T>, options?: RequestOptions): Promise<SafeGenerated<T>> {
    try {
      return { ok: true, ...(await this.#calls.generate(params, options ?? {})) };
    } catch (reason) {
      return { ok: false, error: errorOf(reason, options ?? {}) };
    }
  }
}

/** The call with an answer that comes as a whole, whatever `stream` the body has. */
const whole =
  <Body extends JsonObject, T>(call: (body: Body, options: RequestOptions) => Promise<T>) =>
  (body: Body, options: RequestOptions): Promise<T> =>
    call(isObject(body) ? { ...body, stream: false } : body, options);

async function ask<Name extends string, Body extends JsonObject, T>(
  name: Name,
  call: (body: Body, options: RequestOptions) => Promise<T>,
  body: Body,
  given: RequestOptions | null | undefined,
): Promise<SafeResult<Name, T>> {
  const options = given ?? {};
  try {
    const answer = await call(body, options);
    return { ok: true, source: sourceOf(answer), [name]: answer } as SafeResult<Name, T>;
  } catch (reason) {
    return { ok: false, error: errorOf(reason, options) };
  }
}

/** Passes events on and reports how they ended. */
async function* relay(
  open: SafeCalls["events"],
  body: ResponseCreateParams,
  options: RequestOptions,
  tell: Tell,
): AsyncGenerator<ResponseEvent, void> {
  let response: ResponseObject | null = null;
  try {
    for await (const event of open(body, options)) {
      if ("response" in event) response = event.response;
      yield event;
    }
    if (response === null) throw new FmError("INTERNAL", "The stream had no response.");
    tell({ ok: true, source: sourceOf(response), response });
  } catch (reason) {
    tell({ ok: false, error: errorOf(reason, options) });
  } finally {
    // This call has no effect if `tell` was called before.
    tell(leftEarly());
  }
}

function leftEarly(): { ok: false; error: FmError } {
  return { ok: false, error: new FmError("CANCELLED", "The stream was left before its end.") };
}

/** Makes an FmError of what was thrown. An abort becomes CANCELLED, whatever its reason is. */
function errorOf(reason: unknown, { signal }: Pick<RequestOptions, "signal">): FmError {
  if (reason instanceof FmError) return reason;
  if (signal?.aborted === true) return new FmError("CANCELLED", "The request was aborted.", { cause: reason });
  return toFmError(reason);
}
