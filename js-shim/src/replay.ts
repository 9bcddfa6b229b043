// Converts a whole response to the events of a stream.
import type { JsonObject, WireEvent, WireResponse } from "./types.js";

/** The fields of an event, except its sequence number. */
type Fields = { type: string } & JsonObject;

/** All events of a response that has ended, from its creation to its end. */
export function* eventsOf(response: WireResponse): Generator<WireEvent> {
  let sequence_number = 0;
  for (const fields of fieldsOf(response)) yield { ...fields, sequence_number: sequence_number++ } as unknown as WireEvent;
}

function* fieldsOf(response: WireResponse): Generator<Fields> {
  const begun = { ...response, status: "in_progress", output: [], completed_at: null, usage: null };
  for (const type of ["response.created", "response.in_progress"]) yield { type, response: begun };
  for (const [output_index, item] of response.output.entries()) {
    yield* ofItem(output_index, item as unknown as JsonObject);
  }
  const ended = response.status === "failed" || response.status === "incomplete" ? response.status : "completed";
  yield { type: `response.${ended}`, response };
}

/** The member with what is streamed of a call, and its events. */
const CALLS: ReadonlyMap<unknown, { text: string; event: string }> = new Map([
  ["function_call", { text: "arguments", event: "response.function_call_arguments" }],
  ["custom_tool_call", { text: "input", event: "response.custom_tool_call_input" }],
]);

function* ofItem(output_index: number, item: JsonObject): Generator<Fields> {
  const at = { item_id: item["id"], output_index };
  const parts = item["type"] === "message" && Array.isArray(item["content"]) ? (item["content"] as JsonObject[]) : null;
  const call = CALLS.get(item["type"]);
  const empty = { ...(parts === null ? {} : { content: [] }), ...(call === undefined ? {} : { [call.text]: "" }) };
  const begun = { ...item, status: "in_progress", ...empty };
  yield { type: "response.output_item.added", output_index, item: begun };
  for (const [content_index, part] of (parts ?? []).entries()) yield* ofPart({ ...at, content_index }, part);
  if (call !== undefined) {
    const text = item[call.text];
    const name = call.text === "arguments" ? { name: item["name"] } : {};
    yield { type: `${call.event}.delta`, ...at, delta: text };
    yield { type: `${call.event}.done`, ...at, [call.text]: text, ...name };
  }
  yield { type: "response.output_item.done", output_index, item };
}

function* ofPart(at: JsonObject, part: JsonObject): Generator<Fields> {
  const isText = part["type"] === "output_text";
  const name = isText ? "text" : "refusal";
  const text = part[name];
  const { logprobs = [] } = part;
  const more = isText ? { logprobs } : {};
  yield { type: "response.content_part.added", ...at, part: { ...part, [name]: "" } };
  if (text !== "") yield { type: `response.${isText ? "output_text" : "refusal"}.delta`, ...at, delta: text, ...more };
  yield { type: `response.${isText ? "output_text" : "refusal"}.done`, ...at, [name]: text, ...more };
  yield { type: "response.content_part.done", ...at, part };
}
