import type { ChatCompletionChunk, JsonObject, ResponseEvent } from "./types.js";

const encoder = new TextEncoder();

/** The frame that ends every event stream. */
export const DONE: Uint8Array = encoder.encode("data: [DONE]\n\n");

/** One event of the Responses API as one server-sent event. JSON.stringify leaves no line break in it. */
export function responseFrame(event: ResponseEvent): Uint8Array {
  return encoder.encode(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
}

/** One chunk of a chat completion, or `{error}`, as one server-sent event. */
export function chatFrame(chunk: ChatCompletionChunk | { error: JsonObject }): Uint8Array {
  return encoder.encode(`data: ${JSON.stringify(chunk)}\n\n`);
}
