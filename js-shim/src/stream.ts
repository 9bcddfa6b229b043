// Streams of events: async iteration, abort, and the last result.
import { setMaxListeners } from "node:events";
import { nearest } from "./check-options.js";
import { FmError, invalid } from "./errors.js";
import type { JsonObject, Operation, PromptProgress, RequestOptions, StreamRequestOptions } from "./types.js";
import { isObject } from "./types.js";

/**
 * The events of one call, for one `for await`. Leaving the loop early stops the call. The call starts at once; events that arrive
 * before the loop are kept for it.
 */
export class EventStream<E, F> implements AsyncIterableIterator<E> {
  readonly #operation: Operation<F>;
  readonly #signal: AbortSignal | null;
  readonly #final: Promise<F>;
  /** @internal Settles with the first event or the end; rejects if the call failed before. */
  readonly opened: Promise<void>;
  #open: (failure: { reason: unknown } | null) => void = () => {};
  #onProgress: StreamRequestOptions["onProgress"];
  #events: E[] = [];
  #next = 0;
  #iterated = false;
  #over = false;
  #failure: { reason: unknown } | null = null;
  #thrown = false;
  #waiting: (() => void)[] = [];

  /**
   * @param start - starts the call and passes its events on
   * @param options - their signal stops the call; if it is aborted already, nothing is started, and the loop throws its reason
   */
  protected constructor(start: (push: (event: E) => void) => Operation<F>, options: StreamRequestOptions) {
    let signal: AbortSignal | null = null;
    let failure: { reason: unknown } | null = null;
    try {
      signal = signalOf(options, STREAM_OPTIONS);
      this.#onProgress = onProgressOf(options);
      if (signal?.aborted === true) failure = { reason: signal.reason };
    } catch (reason) {
      failure = { reason };
    }
    this.#signal = signal;
    this.opened = new Promise((resolve, reject) => {
      this.#open = (failure) => (failure === null ? resolve() : reject(failure.reason));
    });
    this.opened.catch(() => {});
    this.#operation = failure === null ? start((event) => this.#take(event)) : refused(failure.reason);
    if (failure !== null) this.#end(failure);
    this.#final = new Promise<F>((resolve, reject) => {
      this.#operation.result.then(
        (final) => {
          this.#end(null);
          resolve(final);
        },
        (error: unknown) => {
          this.#end({ reason: error });
          reject(this.#failure?.reason ?? error);
        },
      );
    });
    this.#final.catch(() => {});
    if (!this.#over) this.#signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  /** Stops the call. The loop ends as if the stream were over. */
  abort(): void {
    this.#stop(null);
  }

  /** Starts the only iteration that a stream allows. */
  [Symbol.asyncIterator](): this {
    if (this.#iterated) {
      throw new FmError("INVALID_REQUEST", "This stream has been iterated already; make a new request for another one.");
    }
    this.#iterated = true;
    return this;
  }

  /** The next event. */
  async next(): Promise<IteratorResult<E, undefined>> {
    for (;;) {
      const event = this.#shift();
      if (event !== undefined) return { done: false, value: event };
      if (this.#failure !== null && !this.#thrown) {
        this.#thrown = true;
        throw this.#failure.reason;
      }
      if (this.#over) return { done: true, value: undefined };
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  /** Stops the call. `break` calls this method. */
  async return(): Promise<IteratorResult<E, undefined>> {
    this.abort();
    return { done: true, value: undefined };
  }

  /** The result of the call. It settles whether the events are read or not. */
  protected final(): Promise<F> {
    return this.#final;
  }

  readonly #onAbort = (): void => this.#stop({ reason: this.#signal?.reason });

  #stop(failure: { reason: unknown } | null): void {
    this.#events = [];
    this.#next = 0;
    this.#end(failure);
    this.#operation.cancel();
  }

  #take(event: E): void {
    if (!this.#onProgress || !isProgress(event)) return this.#push(event);
    if (this.#over) return;
    try {
      this.#onProgress(event.prompt_progress);
    } catch (reason) {
      this.#stop({ reason });
    }
  }

  #push(event: E): void {
    if (this.#over) return;
    this.#events.push(event);
    this.#open(null);
    this.#wakeUp();
  }

  #shift(): E | undefined {
    if (this.#next === this.#events.length) return undefined;
    const event = this.#events[this.#next++];
    if (this.#next === this.#events.length) {
      this.#events = [];
      this.#next = 0;
    }
    return event;
  }

  #end(failure: { reason: unknown } | null): void {
    if (this.#over) return;
    this.#over = true;
    this.#failure = failure;
    this.#open(failure);
    this.#signal?.removeEventListener("abort", this.#onAbort);
    this.#wakeUp();
  }

  #wakeUp(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }
}

const STREAM_OPTIONS: readonly string[] = ["onProgress"];

/** Whether an event or chunk is about the prompt. */
export function isProgress(event: unknown): event is { prompt_progress: PromptProgress } {
  return isObject(event) && event["prompt_progress"] !== undefined;
}

function onProgressOf(options: StreamRequestOptions): StreamRequestOptions["onProgress"] {
  const onProgress = options?.onProgress;
  if (onProgress !== undefined && onProgress !== null && typeof onProgress !== "function") {
    throw invalid("onProgress", "Invalid 'onProgress': it must be a function.");
  }
  return onProgress;
}

/** The body of a call that answers with a stream, and reports the progress if the options have a function for it. */
export function streamed<Body extends JsonObject>(body: Body, options: StreamRequestOptions): Body {
  return { ...body, stream: true, ...(options?.onProgress ? { return_progress: true } : {}) };
}

/**
 * A requested stream. It is a promise of the stream, as in OpenAI's SDK, and also the stream itself, for loops that do not await
 * it.
 */
export type Pending<Stream> = Promise<Stream> & Stream;

/** Resolves with the stream at its first event; rejects if the call fails before that. */
export function pending<Stream extends EventStream<unknown, unknown>>(stream: Stream): Pending<Stream> {
  const promise = stream.opened.then(() => stream);
  // A caller that does not await this promise gets the error in the loop.
  promise.catch(() => {});
  const get = (_: unknown, name: string | symbol): unknown => {
    const owner = name in stream ? stream : promise;
    const member: unknown = Reflect.get(owner, name);
    return typeof member === "function" ? member.bind(owner) : member;
  };
  return new Proxy(promise, { get }) as Pending<Stream>;
}

/** A call that was cancelled before it was sent. */
export function cancelledError(): FmError {
  return new FmError("CANCELLED", "The request was cancelled before it was sent.");
}

/** The error of the calls of a client that was closed. */
export function closedError(): FmError {
  return new FmError("CLOSED", "The client was closed.");
}

/** A call that fails without being sent. */
export function refused(reason: unknown): Operation<never> {
  return { result: Promise.reject(reason), cancel() {} };
}

/** The part of a call's result that its caller wants. */
export function pick<T, R>(operation: Operation<T>, part: (result: T) => R): Operation<R> {
  return { result: operation.result.then(part), cancel: () => operation.cancel() };
}

/** The result without its member `ok`. */
export function withoutOk({ ok: _, ...rest }: JsonObject): JsonObject {
  return rest;
}

/** What to use here instead of options of OpenAI's SDK. */
const ELSEWHERE =
  " A call has the option `signal`, and one with `stream: true` also `onProgress`. Time limits are in the request:" +
  " `fm: { timeout_ms }`. Headers and retries belong to a server; for code that gives them, use OpenAI's SDK with" +
  " `client.fetch`.";

/**
 * The signal of the options that a caller gave; null: none.
 *
 * @param others - the names of other options that are allowed
 * @throws FmError (INVALID_REQUEST): the options are not an object, have an unknown name, or their signal is invalid
 */
export function signalOf(options: unknown, others: readonly string[] = []): AbortSignal | null {
  if (options === undefined || options === null) return null;
  if (!isObject(options)) throw invalid("options", "The options of a call must be an object.");
  const names = ["signal", ...others];
  const ofRequest = others.length === 0 || others === STREAM_OPTIONS;
  const unknown = Object.keys(options).find((name) => !names.includes(name));
  if (unknown !== undefined) {
    const meant = nearest(unknown, names, 3) ?? (ofRequest ? ELSEWHERE : ` It has: ${names.join(", ")}.`);
    throw invalid(unknown, `A call has no option '${unknown}'.${meant}`);
  }
  const signal = (options as RequestOptions).signal ?? null;
  if (signal === null) return null;
  // Callers often pass the controller instead of its signal.
  const { aborted, addEventListener, removeEventListener } = signal as Partial<AbortSignal>;
  if (typeof aborted !== "boolean" || addEventListener === undefined || removeEventListener === undefined) {
    throw invalid("signal", "Invalid 'signal': it must be an AbortSignal, such as the `signal` of an AbortController.");
  }
  // Otherwise Node would warn of a leak when many calls share one signal.
  if (signal instanceof EventTarget) setMaxListeners(0, signal);
  return signal;
}

/**
 * Makes a call that the options' signal may stop, and returns its result. Rejects with an FmError (INVALID_REQUEST) for invalid
 * options.
 */
export async function withOptions<T>(start: () => Operation<T>, options: RequestOptions): Promise<T> {
  return withSignal(start, signalOf(options));
}

/** Makes a call that a signal may stop, and returns its result. After an abort, it rejects with the signal's reason. */
export function withSignal<T>(start: () => Operation<T>, signal: AbortSignal | null | undefined): Promise<T> {
  if (!signal) return start().result;
  if (signal.aborted) return Promise.reject(signal.reason);
  const operation = start();
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => {
      reject(signal.reason);
      operation.cancel();
    };
    const over = () => signal.removeEventListener("abort", onAbort);
    signal.addEventListener("abort", onAbort, { once: true });
    operation.result.finally(over).then(resolve, reject);
  });
}
