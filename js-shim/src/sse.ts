// Server-sent events, as the OpenAI API streams them.
import type { WireEvent } from "./types.js";

const encoder = new TextEncoder();

/** The frame that ends every event stream. */
export const DONE: Uint8Array = encoder.encode("data: [DONE]\n\n");

/** One event of the Responses API as one server-sent event. */
export function responseFrame(event: WireEvent): Uint8Array {
  return encoder.encode(`event: ${event.type}\ndata: ${oneLine(event)}\n\n`);
}

/** One chunk of a completion, or `{error}`, as one server-sent event. */
export function chunkFrame(chunk: object): Uint8Array {
  return encoder.encode(`data: ${oneLine(chunk)}\n\n`);
}

/** JSON without any kind of line break. Some parsers also break lines at U+2028. */
function oneLine(value: unknown): string {
  return JSON.stringify(value).replace(/[\u2028\u2029]/g, (char) => (char === "\u2028" ? "\\u2028" : "\\u2029"));
}
