// client.completions: the legacy text completions.
import { createWhole, streamChunks, type Chunks } from "./chunks.js";
import { EventStream, pending, withOptions, type Pending } from "./stream.js";
import type {
  Completion,
  CompletionChunk,
  CompletionCreateParams,
  Operation,
  RequestOptions,
  Transport,
  WireCompletion,
} from "./types.js";

/** The chunks of one streamed completion. Iterate it once; `break` stops the request. */
export class CompletionStream extends EventStream<CompletionChunk, Completion> {
  /** @internal */
  constructor(transport: Transport, body: CompletionCreateParams, options: RequestOptions) {
    super((push) => streamCompletion(transport, body, push), options);
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
  create(body: CompletionCreateParams & { stream: true }, options?: RequestOptions): Pending<CompletionStream>;
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

/** Collects the chunks of a stream. */
export class CompletionChunks implements Chunks<CompletionChunk> {
  #whole: WireCompletion | null = null;
  #usage: WireCompletion["usage"] = null;

  /** Takes the next chunk. */
  add(chunk: CompletionChunk): void {
    this.#usage = chunk.usage ?? this.#usage;
    const first = chunk.choices[0];
    if (first === undefined) return void (this.#whole ??= { ...chunk, usage: null });
    const before = this.#whole?.choices[0];
    const finish_reason = first.finish_reason ?? before?.finish_reason ?? null;
    const choice = { ...first, text: (before?.text ?? "") + first.text, finish_reason };
    this.#whole = { ...this.#whole, ...chunk, choices: [choice], usage: null };
  }

  /** The completion; null: there was no chunk. If the stream has not `ended`, the tokens are not counted. */
  whole(ended: boolean): WireCompletion | null {
    if (this.#whole === null || ended) return this.#whole && { ...this.#whole, usage: this.#usage };
    return { ...this.#whole, choices: this.#whole.choices.map((choice) => ({ ...choice, finish_reason: null })) };
  }
}
