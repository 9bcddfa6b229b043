// client.completions: the legacy text completions.
import { createWhole, streamChunks, type Chunks } from "./chunks.js";
import { EventStream, isProgress, pending, streamed, withOptions, type Pending } from "./stream.js";
import type {
  Completion,
  CompletionChunk,
  CompletionCreateParams,
  Operation,
  RequestOptions,
  StreamRequestOptions,
  TextLogprobs,
  Transport,
  WireCompletion,
} from "./types.js";

/** The chunks of one streamed completion. Iterate it once; `break` stops the request. */
export class CompletionStream extends EventStream<CompletionChunk, Completion> {
  /** @internal */
  constructor(transport: Transport, body: CompletionCreateParams, options: StreamRequestOptions) {
    super((push) => streamCompletion(transport, streamed(body, options), push), options);
  }

  /** Resolves with the whole completion at the end; rejects as `create` does. It works with and without iterating. */
  finalCompletion(): Promise<Completion> {
    return this.final();
  }
}

/** `client.completions`: OpenAI's older Completions API. */
export class Completions {
  readonly #transport: Transport;

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Answers with a stream of chunks. The stream throws if the request fails in the middle. An awaited call resolves at the first
   * chunk, or rejects if the request fails before that.
   */
  create(body: CompletionCreateParams & { stream: true }, options?: StreamRequestOptions): Pending<CompletionStream>;
  /** Answers with the whole completion. Rejects with an FmError. Its `completion` has the output before the failure. */
  create(body: CompletionCreateParams & { stream?: false | null }, options?: RequestOptions): Promise<Completion>;
  create(body: CompletionCreateParams, options?: RequestOptions): Promise<Completion | CompletionStream>;
  create(body: CompletionCreateParams, options: RequestOptions = {}): Promise<Completion | CompletionStream> {
    if (body?.stream !== true) return withOptions(() => createCompletion(this.#transport, body), options);
    return pending(new CompletionStream(this.#transport, body, options));
  }
}

/** Makes one completion, as a whole. */
export function createCompletion(transport: Transport, body: CompletionCreateParams): Operation<Completion> {
  return createWhole(transport, "completions.create", body);
}

/** Makes one completion, chunk by chunk. */
export function streamCompletion(
  transport: Transport,
  body: CompletionCreateParams,
  onChunk: (chunk: CompletionChunk) => void,
): Operation<Completion> {
  return streamChunks(transport, "completions.create", body, new CompletionChunks(), onChunk);
}

const noLogprobs = (): TextLogprobs => ({ tokens: [], token_logprobs: [], top_logprobs: [], text_offset: [] });

/** Adds the log probabilities of the next piece of a text. */
function append(to: TextLogprobs, more: TextLogprobs): TextLogprobs {
  for (const key of ["tokens", "token_logprobs", "top_logprobs", "text_offset"] as const)
    for (const each of more[key]) (to[key] as unknown[]).push(each); // a spread of so many arguments could fail
  return to;
}

/** Collects the chunks of a stream. */
export class CompletionChunks implements Chunks<CompletionChunk> {
  readonly #choices = new Map<number, WireCompletion["choices"][number]>();
  #whole: WireCompletion | null = null;
  #usage: WireCompletion["usage"] = null;

  /** Takes the next chunk. */
  add(chunk: CompletionChunk): void {
    if (isProgress(chunk)) return;
    this.#usage = chunk.usage ?? this.#usage;
    for (const choice of chunk.choices) {
      const { index, text, finish_reason, logprobs } = choice;
      const whole = this.#choices.get(index) ?? { ...choice, text: "", logprobs: null };
      this.#choices.set(index, whole);
      whole.text += text;
      whole.finish_reason = finish_reason ?? whole.finish_reason;
      if (logprobs) whole.logprobs = append(whole.logprobs ?? noLogprobs(), logprobs);
    }
    this.#whole = { ...this.#whole, ...chunk, usage: null };
  }

  /** The completion; null: there was no chunk. If the stream has not `ended`, the tokens are not counted. */
  whole(ended: boolean): WireCompletion | null {
    if (this.#whole === null) return null;
    const choices = [...this.#choices.values()];
    if (ended) return { ...this.#whole, choices, usage: this.#usage };
    return { ...this.#whole, choices: choices.map((choice) => ({ ...choice, finish_reason: null })) };
  }
}
