// client.chat.completions: chat completions over the helper.
import { createWhole, streamChunks, type Chunks } from "./chunks.js";
import { EventStream, pending, streamed, withOptions, type Pending } from "./stream.js";
import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatCreateParams,
  ChatToolCallDelta,
  FmReport,
  Operation,
  RequestOptions,
  StreamRequestOptions,
  Transport,
  WireChatCompletion,
} from "./types.js";

/** The chunks of one streamed chat completion. Iterate it once; `break` stops the request. */
export class ChatStream extends EventStream<ChatCompletionChunk, ChatCompletion> {
  /** @internal */
  constructor(transport: Transport, body: ChatCreateParams, options: StreamRequestOptions) {
    super((push) => streamChat(transport, streamed(body, options), push), options);
  }

  /** Resolves with the whole completion at the end; rejects as `create` does. It works with and without iterating. */
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
   * Answers with a stream of chunks. The stream throws if the request fails in the middle. An awaited call resolves at the first
   * chunk, or rejects if the request fails before that.
   */
  create(body: ChatCreateParams & { stream: true }, options?: StreamRequestOptions): Pending<ChatStream>;
  /** Answers with the whole completion. Rejects with an FmError. Its `completion` has the output before the failure. */
  create(body: ChatCreateParams & { stream?: false | null }, options?: RequestOptions): Promise<ChatCompletion>;
  create(body: ChatCreateParams, options?: RequestOptions): Promise<ChatCompletion | ChatStream>;
  create(body: ChatCreateParams, options: RequestOptions = {}): Promise<ChatCompletion | ChatStream> {
    if (body?.stream !== true) return withOptions(() => createChat(this.#transport, body), options);
    return pending(new ChatStream(this.#transport, body, options));
  }
}

/** Makes one completion, as a whole. */
export function createChat(transport: Transport, body: ChatCreateParams): Operation<ChatCompletion> {
  return createWhole(transport, "chat.completions.create", body);
}

/** Makes one completion, chunk by chunk. */
export function streamChat(
  transport: Transport,
  body: ChatCreateParams,
  onChunk: (chunk: ChatCompletionChunk) => void,
): Operation<ChatCompletion> {
  return streamChunks(transport, "chat.completions.create", body, new ChatChunks(), onChunk);
}

type ChatToolCall = NonNullable<WireChatCompletion["choices"][number]["message"]["tool_calls"]>[number];

interface PartialChoice {
  content: string;
  refusal: string | null;
  reasoning: string;
  calls: ChatToolCall[];
  finish: ChatCompletionChunk["choices"][number]["finish_reason"];
}

/** Collects the chunks of a stream. */
export class ChatChunks implements Chunks<ChatCompletionChunk> {
  #last: ChatCompletionChunk | null = null;
  #fm: FmReport | undefined;
  #usage: WireChatCompletion["usage"] = null;
  /** By their index. */
  readonly #choices: PartialChoice[] = [];

  /** Takes the next chunk. */
  add(chunk: ChatCompletionChunk): void {
    this.#usage = chunk.usage ?? this.#usage;
    if (chunk.choices.length === 0) return;
    this.#last = chunk;
    if (chunk.fm !== undefined) this.#fm = { ...this.#fm, ...chunk.fm };
    for (const { index, delta, finish_reason } of chunk.choices) {
      const choice = (this.#choices[index] ??= { content: "", refusal: null, reasoning: "", calls: [], finish: null });
      choice.content += delta.content ?? "";
      choice.reasoning += delta.reasoning_content ?? "";
      if (typeof delta.refusal === "string") choice.refusal = (choice.refusal ?? "") + delta.refusal;
      for (const piece of delta.tool_calls ?? []) addToCall(choice.calls, piece);
      choice.finish = finish_reason ?? choice.finish;
    }
  }

  /**
   * The completion; null: there was no chunk. If the stream has not `ended`, the completion looks like one that the helper
   * reports as failed, but has no counts of tokens, because nobody has counted them.
   */
  whole(ended: boolean): WireChatCompletion | null {
    if (this.#last === null) return null;
    const { id, created, model } = this.#last;
    return {
      id,
      object: "chat.completion",
      created,
      model,
      choices: Array.from(this.#choices, (choice, index) => ({
        index,
        message: messageOf(choice),
        finish_reason: ended ? (choice?.finish ?? null) : null,
        logprobs: null,
      })),
      usage: ended ? this.#usage : null,
      service_tier: "default",
      ...(this.#fm === undefined ? {} : { fm: this.#fm }),
    };
  }
}

function addToCall(calls: ChatToolCall[], { index, id = "", function: piece, custom }: ChatToolCallDelta): void {
  const call = calls[index];
  if (call?.type === "function") call.function.arguments += piece?.arguments ?? "";
  else if (call !== undefined) call.custom.input += custom?.input ?? "";
  else if (custom !== undefined) calls.push({ id, type: "custom", custom: { name: "", ...custom } });
  else calls.push({ id, type: "function", function: { name: "", arguments: "", ...piece } });
}

/** A choice as a message; undefined: no chunk of the choice has come yet. */
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
