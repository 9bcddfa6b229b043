import { FmError } from "./errors.js";
import { MAX_BODY_BYTES } from "./framing.js";
import type { JsonObject } from "./types.js";
import { isObject } from "./types.js";

/** What a body may call itself. `text/plain` is what `fetch` says of every string that nobody gave a type. */
const JSON_TYPE = /^(?:application\/(?:[\w.+-]+\+)?json|text\/plain)[ \t]*(?:;|$)/i;

/** A body that could not be read; as with the real `fetch`, that rejects the call. */
export class UnreadableBodyError extends TypeError {}

/** A request's body as `fetch` was given it. */
export interface Body {
  content: string | ReadableStream<Uint8Array> | null;
  /** Its media type, or null where nobody gave one. */
  type: string | null;
}

/**
 * Takes the body of a call, of any kind that `fetch` takes, and its type as `fetch` would send it.
 *
 * @throws TypeError for what is no body
 */
export function takeBody(request: Request | null, init: RequestInit | undefined): Body {
  const given = init?.headers !== undefined ? new Headers(init.headers) : request?.headers;
  const type = given?.get("content-type") ?? null;
  const body = init?.body;
  if (typeof body === "string") return { content: body, type };
  if (body == null) return { content: request?.body ?? null, type };
  const carrier = new Response(body);
  return { content: carrier.body as ReadableStream<Uint8Array>, type: type ?? carrier.headers.get("content-type") };
}

/**
 * Reads the JSON object in a body, and no more of it than a frame may hold.
 *
 * @throws FmError for what is no JSON object, is too long, or is a form
 * @throws UnreadableBodyError where the body's own stream fails; an abort rejects with the signal's reason
 */
export async function readJson({ content, type }: Body, signal: AbortSignal | null): Promise<JsonObject> {
  if (type !== null && !JSON_TYPE.test(type)) {
    if (content instanceof ReadableStream) void content.cancel().catch(() => {});
    throw refused(415, "unsupported_content_type", `The body has to be application/json; this one is '${type}'.`);
  }
  if (typeof content !== "string") return parse(content === null ? "" : await readText(content, signal));
  if (Buffer.byteLength(content) > MAX_BODY_BYTES) throw tooLarge();
  return parse(content);
}

async function readText(content: ReadableStream<Uint8Array>, signal: AbortSignal | null): Promise<string> {
  const reader = readerOf(content);
  // A body may hang for ever; the reader then sees its end.
  const onAbort = (): void => void reader.cancel(signal?.reason).catch(() => {});
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    return decode(await readAll(reader));
  } finally {
    signal?.removeEventListener("abort", onAbort);
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

async function readAll(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const chunk = await read(reader);
    if (chunk === null) return chunks;
    length += chunk.length;
    if (length > MAX_BODY_BYTES) {
      void reader.cancel().catch(() => {});
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
    throw badBody("The body is not UTF-8.");
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
