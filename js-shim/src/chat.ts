// client.chat.completions: chat completions over the helper.
import { EventStream, pending, pick, withSignal, type Pending } from "./stream.js";
import { toFmError } from "./thrown.js";
import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatCreateParams,
  FmReport,
  Operation,
  RequestOptions,
  Transport,
  WireChatCompletion,
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

  /**
   * Answers with a stream of chunks, which throws when the request fails in the middle. Awaited, it resolves with the first
   * chunk, or rejects if the request fails before.
   */
  create(body: ChatCreateParams & { stream: true }, options?: RequestOptions): Pending<ChatStream>;
  /** Answers with the whole completion. Rejects with an FmError, which has what was produced in `completion`. */
  create(body: ChatCreateParams & { stream?: false | null }, options?: RequestOptions): Promise<ChatCompletion>;
  create(body: ChatCreateParams, options?: RequestOptions): Promise<ChatCompletion | ChatStream>;
  create(body: ChatCreateParams, options: RequestOptions = {}): Promise<ChatCompletion | ChatStream> {
    if (body?.stream !== true) return withSignal(() => createChat(this.#transport, body), options.signal);
    return pending(new ChatStream(this.#transport, body, options));
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
  const partial: Partial = { last: null, fm: undefined, choices: [] };
  const operation = completionOf(
    transport.call("chat.completions.create", body, {
      onNotification: (params) => {
        const chunk = params["chunk"] as ChatCompletionChunk;
        observe(partial, chunk);
        onChunk(chunk);
      },
    }),
  );
  const result = operation.result.catch((reason: unknown) => {
    const error = toFmError(reason);
    throw error.completion !== undefined || partial.last === null
      ? error
      : error.withPartial({ completion: completionSoFar(partial.last, partial) });
  });
  return { result, cancel: operation.cancel };
}

/** What a stream has said so far. */
interface Partial {
  last: ChatCompletionChunk | null;
  fm: FmReport | undefined;
  /** By their index. */
  choices: PartialChoice[];
}

type ChatToolCall = NonNullable<WireChatCompletion["choices"][number]["message"]["tool_calls"]>[number];
type ChatToolCallDelta = NonNullable<ChatCompletionChunk["choices"][number]["delta"]["tool_calls"]>[number];

interface PartialChoice {
  content: string;
  refusal: string | null;
  reasoning: string;
  calls: ChatToolCall[];
}

function observe(partial: Partial, chunk: ChatCompletionChunk): void {
  if (chunk.choices.length === 0) return;
  partial.last = chunk;
  if (chunk.fm !== undefined) partial.fm = { ...partial.fm, ...chunk.fm };
  for (const { index, delta } of chunk.choices) {
    const choice = (partial.choices[index] ??= { content: "", refusal: null, reasoning: "", calls: [] });
    choice.content += delta.content ?? "";
    choice.reasoning += delta.reasoning_content ?? "";
    if (typeof delta.refusal === "string") choice.refusal = (choice.refusal ?? "") + delta.refusal;
    for (const piece of delta.tool_calls ?? []) addToCall(choice.calls, piece);
  }
}

function addToCall(calls: ChatToolCall[], { index, id, function: piece }: ChatToolCallDelta): void {
  const call = calls[index];
  if (call !== undefined) call.function.arguments += piece.arguments;
  else calls.push({ id: id ?? "", type: "function", function: { name: "", ...piece } });
}

/** What was produced before the helper died, as the helper tells a failure; but nobody is left who has counted. */
function completionSoFar({ id, created, model }: ChatCompletionChunk, { fm, choices }: Partial): WireChatCompletion {
  return {
    id,
    object: "chat.completion",
    created,
    model,
    choices: Array.from(choices, (choice, index) => ({
      index,
      message: messageOf(choice),
      finish_reason: null,
      logprobs: null,
    })),
    usage: null,
    service_tier: "default",
    ...(fm === undefined ? {} : { fm }),
  };
}

/** A choice as a message; one that nothing had come of yet is undefined. */
function messageOf(choice: PartialChoice | undefined): WireChatCompletion["choices"][number]["message"] {
  const { content = "", refusal = null, reasoning = "", calls = [] } = choice ?? {};
  return {
    role: "assistant",
    content: content === "" && calls.length > 0 ? null : content,
    refusal,
    annotations: [],
    ...(reasoning === "" ? {} : { reasoning_content: reasoning }),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  };
}

function completionOf(operation: Operation): Operation<ChatCompletion> {
  return pick(operation, (answer) => answer["completion"] as unknown as ChatCompletion);
}
