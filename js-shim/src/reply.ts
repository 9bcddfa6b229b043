// Answers of client.fetch: JSON, event streams and errors as HTTP responses.
import type { FmError, OpenAIErrorShape } from "./errors.js";
import { DONE } from "./sse.js";
import { toFmError } from "./thrown.js";
import type { JsonObject, Operation } from "./types.js";

/** How long a client should wait before it repeats a request that was refused because of overload. */
const RETRY_AFTER_MS = 500;
/** No client is asked to wait longer than this and try again. */
const LONGEST_RETRY_MS = 1000;

/** The headers of each answer of `client.fetch`. Each answer has its own id. */
export function headers(contentType?: string): Record<string, string> {
  return {
    ...(contentType === undefined ? {} : { "content-type": contentType }),
    "cache-control": "no-store",
    "x-request-id": `req_${crypto.randomUUID().replaceAll("-", "")}`,
  };
}

/** Makes the response for a successful answer; `told`: more headers. */
export function jsonResponse(body: unknown, told: Record<string, string>): Response {
  return new Response(JSON.stringify(body), { status: 200, headers: { ...headers("application/json"), ...told } });
}

/** The form of an error in the body of an answer. */
export function errorBody({ message, type, param, code }: OpenAIErrorShape): JsonObject {
  return { message, type, param, code };
}

/**
 * A failure as a response. Its headers say whether to try again: by the status alone, clients would do that after every
 * 5xx and 408.
 */
export function errorResponse(error: FmError, more: Record<string, string> = {}): Response {
  const retry = error.retryable ? retryHeaders(error.retryAfterMs) : { "x-should-retry": "false" };
  const status = error.status >= 400 && error.status <= 599 ? error.status : 500;
  return new Response(JSON.stringify({ error: errorBody(error.openai) }), {
    status,
    headers: { ...headers("application/json"), ...retry, ...more },
  });
}

/**
 * The headers that say when to try again: a standard one in seconds, and one in ms. An SDK must not make its caller wait for
 * long.
 */
function retryHeaders(told: number | undefined): Record<string, string> {
  const ms = told ?? RETRY_AFTER_MS;
  return {
    "x-should-retry": String(ms <= LONGEST_RETRY_MS),
    "retry-after-ms": String(ms),
    "retry-after": String(Math.ceil(ms / 1000)),
  };
}

/** The source of the frames of a streaming answer. */
export interface StreamSource {
  /** Starts the call. With the first frame, `told` is called; it returns more headers. */
  start(push: (frame: Uint8Array, told?: () => Record<string, string>) => void): Operation<unknown>;
  /** Frames that report a failure in the middle of the stream. */
  failure(error: FmError): Uint8Array[];
}

/**
 * Resolves with a streaming response at the first frame. A failure before that rejects, so that it becomes an answer with the
 * right status. After an abort, the promise rejects or the body breaks at once, and the helper is asked to stop.
 */
export function streamBody(signal: AbortSignal | null, source: StreamSource): Promise<Response> {
  signal?.throwIfAborted();
  return new Promise<Response>((resolve, reject) => {
    let controller: ReadableStreamDefaultController<Uint8Array> | null = null;
    let over = false;
    const push = (frame: Uint8Array, told = (): Record<string, string> => ({})): void => {
      if (over) return;
      if (controller === null) resolve(open(told()));
      controller?.enqueue(frame);
    };
    const end = (): boolean => {
      if (over) return false;
      over = true;
      signal?.removeEventListener("abort", onAbort);
      return true;
    };
    const stop = (): void => {
      if (end()) operation.cancel();
    };
    const onAbort = (): void => {
      const wasOpen = controller;
      stop();
      if (wasOpen === null) reject(signal?.reason);
      else wasOpen.error(signal?.reason);
    };
    const open = (told: Record<string, string>): Response => {
      const body = new ReadableStream<Uint8Array>({ start: (it) => void (controller = it), cancel: stop });
      const all = { ...headers("text/event-stream; charset=utf-8"), ...told };
      return new Response(body, { status: 200, headers: all });
    };
    const close = (frames: Uint8Array[]): void => {
      for (const frame of [...frames, DONE]) push(frame);
      if (end()) controller?.close();
    };
    const operation = source.start(push);
    signal?.addEventListener("abort", onAbort, { once: true });
    operation.result.then(
      () => close([]),
      (reason: unknown) => {
        const error = toFmError(reason);
        if (controller !== null) close(source.failure(error));
        else if (end()) reject(error);
      },
    );
  });
}
