// The body of a request to client.fetch: read whole, within its limit, as JSON.
import { FmError } from "./errors.js";
import { MAX_BODY_BYTES } from "./framing.js";
import type { JsonObject } from "./types.js";
import { isObject } from "./types.js";

/** The media types that a body may have. `fetch` sets `text/plain` for a string without a type. */
const JSON_TYPE = /^(?:application\/(?:[\w.+-]+\+)?json|text\/plain)[ \t]*(?:;|$)/i;

/** How long the rest of a refused body is read and dropped, in ms. See `discard`. */
const DRAIN_MS = 1000;
/** While a rest is dropped, a smaller chunk counts as this many bytes, because each chunk takes time. */
const DRAIN_CHUNK_BYTES = 1024;

/** A body that could not be read; as with the real `fetch`, that rejects the call. */
export class UnreadableBodyError extends TypeError {}

/** A request's body as `fetch` was given it. */
export interface Body {
  content: string | ReadableStream<Uint8Array> | null;
  /** The body's media type; null: nobody gave one. */
  type: string | null;
  /** Whether `content` is a stream that the caller made, not one that Node made of something else. */
  own: boolean;
}

/**
 * Takes the body of a call, of any kind that `fetch` takes, and its type as `fetch` would send it.
 *
 * @throws TypeError for a value that can't be a body
 */
export function takeBody(request: Request | null, init: RequestInit | undefined): Body {
  const given = init?.headers !== undefined ? new Headers(init.headers) : request?.headers;
  const type = given?.get("content-type") ?? null;
  const body = init?.body;
  if (typeof body === "string") return { content: body, type, own: false };
  if (body == null) return { content: request?.body ?? null, type, own: false };
  const carrier = new Response(body);
  const own = carrier.headers.get("content-type");
  // A form keeps its own type, whatever the headers say.
  const stated = body instanceof FormData ? null : type;
  const content = carrier.body as ReadableStream<Uint8Array>;
  return { content, type: stated ?? own, own: body instanceof ReadableStream };
}

/**
 * Reads the JSON object in a body, and no more of it than a frame may hold.
 *
 * @throws FmError for a body that is no JSON object, is too long, or is a form
 * @throws UnreadableBodyError if the body's own stream fails; an abort rejects with the signal's reason
 */
export async function readJson({ content, type, own }: Body, signal: AbortSignal | null): Promise<JsonObject> {
  if (type !== null && !JSON_TYPE.test(type)) {
    if (content instanceof ReadableStream) discard(content, own);
    throw refused(415, "unsupported_content_type", `The body has to be application/json; this one is '${type}'.`);
  }
  if (typeof content !== "string") return parse(content === null ? "" : await readText(content, own, signal));
  if (Buffer.byteLength(content) > MAX_BODY_BYTES) throw tooLarge();
  return parse(content);
}

/**
 * Releases a body that is no longer read. The caller's own stream is cancelled, so that its source is notified.
 * A stream that Node made of something else, such as a form, is not cancelled: Node may still write into it or close
 * it, and nothing can handle the resulting error, which ends the host. Such streams are byte streams, or streams that
 * a Request makes of them. They are read to their end instead.
 */
function discard(content: ReadableStream<Uint8Array>, own: boolean, reason?: unknown): void {
  const rest = own && !isOfBytes(content) ? content.cancel(reason) : drain(content);
  void rest.catch(() => {});
}

/** Whether a stream has `type: "bytes"`. Only such a stream has BYOB readers. */
function isOfBytes(content: ReadableStream<Uint8Array>): boolean {
  try {
    content.getReader({ mode: "byob" }).releaseLock();
    return true;
  } catch {
    return false;
  }
}

/** Reads and drops the rest, for a limited time and up to a limited size. After that, the rest is not read. */
async function drain(content: ReadableStream<Uint8Array>): Promise<void> {
  const reader = content.getReader();
  const end = performance.now() + DRAIN_MS;
  for (let length = 0; length <= MAX_BODY_BYTES && performance.now() < end; ) {
    const { done, value } = await reader.read();
    if (done) return;
    length += Math.max(value.length, DRAIN_CHUNK_BYTES);
  }
  reader.releaseLock();
}

async function readText(
  content: ReadableStream<Uint8Array>,
  own: boolean,
  signal: AbortSignal | null,
): Promise<string> {
  const reader = readerOf(content);
  // This also ends a read that is in progress, because a body may hang forever.
  const stop = (): void => {
    reader.releaseLock();
    discard(content, own, signal?.reason);
  };
  signal?.addEventListener("abort", stop, { once: true });
  try {
    return decode(await readAll(reader, stop));
  } finally {
    signal?.removeEventListener("abort", stop);
    signal?.throwIfAborted();
  }
}

function readerOf(content: ReadableStream<Uint8Array>): ReadableStreamDefaultReader<Uint8Array> {
  try {
    return content.getReader();
  } catch (cause) {
    throw new UnreadableBodyError("The request's body is in use.", { cause });
  }
}

/** Calls `stop` if the body is too large, because the rest is not read then. */
async function readAll(reader: ReadableStreamDefaultReader<Uint8Array>, stop: () => void): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const chunk = await read(reader);
    if (chunk === null) return chunks;
    length += chunk.length;
    if (length > MAX_BODY_BYTES) {
      stop();
      throw tooLarge();
    }
    chunks.push(chunk);
  }
}

async function read(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<Uint8Array | null> {
  try {
    const { done, value } = await reader.read();
    return done ? null : value;
  } catch (cause) {
    throw new UnreadableBodyError("The request's body could not be read.", { cause });
  }
}

function decode(chunks: Uint8Array[]): string {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  try {
    return chunks.map((chunk) => decoder.decode(chunk, { stream: true })).join("") + decoder.decode();
  } catch {
    throw badBody("The body is not UTF-8: send JSON as it is, not compressed.");
  }
}

function parse(text: string): JsonObject {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    throw badBody(`The body is not JSON: ${(error as Error).message}`);
  }
  if (!isObject(body)) throw badBody("The body is not a JSON object.");
  return body;
}

function tooLarge(): FmError {
  return refused(413, "request_too_large", `The body has more than ${MAX_BODY_BYTES} bytes.`);
}

function badBody(message: string): FmError {
  return refused(400, "invalid_body", message);
}

function refused(status: number, code: string, message: string): FmError {
  return new FmError("INVALID_REQUEST", message, { openai: { status, code } });
}
