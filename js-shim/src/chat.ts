import { toFmError } from "./errors.js";
import { EventStream, withSignal } from "./stream.js";
import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatCreateParams,
  Operation,
  RequestOptions,
  Transport,
} from "./types.js";

/** The chunks of one streamed chat completion. Iterate it once; `break` stops the request. */
export class ChatStream extends EventStream<ChatCompletionChunk, ChatCompletion> {
  /** @internal */
  constructor(transport: Transport, body: ChatCreateParams, options: RequestOptions) {
    super((push) => streamChat(transport, body, push), options.signal);
  }

  /** The whole completion, once it is there; rejects as `create` does. It can be had with or without iterating. */
  finalCompletion(): Promise<ChatCompletion> {
    return this.final();
  }
}

/** `client.chat.completions`: OpenAI's Chat Completions API. */
export class ChatCompletions {
  readonly #transport: Transport;

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Answers with a stream of chunks, which throws when the request fails in the middle. */
  create(body: ChatCreateParams & { stream: true }, options?: RequestOptions): ChatStream;
  /** Answers with the whole completion. Rejects with an FmError, which has what was produced in `completion`. */
  create(body: ChatCreateParams & { stream?: false | null }, options?: RequestOptions): Promise<ChatCompletion>;
  create(body: ChatCreateParams, options?: RequestOptions): Promise<ChatCompletion> | ChatStream;
  create(body: ChatCreateParams, options: RequestOptions = {}): Promise<ChatCompletion> | ChatStream {
    if (body.stream !== true) return withSignal(() => createChat(this.#transport, body), options.signal);
    return new ChatStream(this.#transport, body, options);
  }
}

/** One completion, whole. */
export function createChat(transport: Transport, body: ChatCreateParams): Operation<ChatCompletion> {
  return completionOf(transport.call("chat.completions.create", body));
}

/** One completion, chunk by chunk. Chunks always come before the result settles. */
export function streamChat(
  transport: Transport,
  body: ChatCreateParams,
  onChunk: (chunk: ChatCompletionChunk) => void,
): Operation<ChatCompletion> {
  let text = "";
  let last: ChatCompletionChunk | null = null;
  const operation = completionOf(
    transport.call("chat.completions.create", body, {
      onNotification: (params) => {
        const chunk = params["chunk"] as ChatCompletionChunk;
        if (chunk.choices[0] !== undefined) last = chunk;
        text += chunk.choices[0]?.delta.content ?? "";
        onChunk(chunk);
      },
    }),
  );
  const result = operation.result.catch((reason: unknown) => {
    const error = toFmError(reason);
    throw error.completion !== undefined || last === null
      ? error
      : error.withPartial({ completion: partialOf(last, text) });
  });
  return { result, cancel: operation.cancel };
}

/** What was produced before the helper died, as the helper tells a failure; but nobody is left who has counted. */
function partialOf(chunk: ChatCompletionChunk, text: string): ChatCompletion {
  const { id, created, model } = chunk;
  const message = { role: "assistant" as const, content: text, refusal: null, annotations: [] };
  return {
    id,
    object: "chat.completion",
    created,
    model,
    choices: [{ index: 0, message, finish_reason: null, logprobs: null }],
    usage: null,
    service_tier: "default",
  };
}

function completionOf(operation: Operation): Operation<ChatCompletion> {
  return {
    result: operation.result.then((answer) => answer["completion"] as ChatCompletion),
    cancel: () => operation.cancel(),
  };
}
