// A transport that a test controls: it holds each call until the test provides the answer.
import { ChatCompletions } from "../../../js-shim/dist/esm/chat.js";
import { createFetch } from "../../../js-shim/dist/esm/fetch.js";
import { FmError } from "../../../js-shim/dist/esm/index.js";
import { Responses } from "../../../js-shim/dist/esm/responses.js";
import { Audit, auditApi, auditFetch } from "./audit.mjs";

/** A fetch on such a transport. Its streams are checked, and its answers as far as a test gives them. */
export function stubFetch({ strict = false } = {}) {
  const transport = new StubTransport();
  return { transport, fetch: auditFetch(createFetch(transport, strict), new Audit(), { partial: true }) };
}

export const stubResponses = (transport) => auditApi(new Responses(transport), "responses", new Audit());
export const stubChat = (transport) => auditApi(new ChatCompletions(transport), "chat", new Audit());

export class StubTransport {
  calls = [];
  #waiting = [];

  call(method, params, options = {}) {
    const call = { method, params, cancels: 0 };
    call.notify = (more) => options.onNotification?.({ id: 1, ...more });
    call.event = (event) => call.notify({ event });
    call.chunk = (chunk) => call.notify({ chunk });
    const result = new Promise((resolve, reject) => {
      call.resolve = (value) => resolve({ ok: true, ...value });
      call.reject = (code, detail = code, fields = {}) => reject(new FmError(code, detail, fields));
    });
    result.catch(() => {});
    this.calls.push(call);
    this.#waiting.shift()?.(call);
    return { result, cancel: () => void call.cancels++ };
  }

  /** Resolves with the next call. */
  next() {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}

/** The first events of a response with one open text part, and `text` in it. */
export function openingEvents(text) {
  const response = {
    id: "resp_1",
    object: "response",
    created_at: 1,
    completed_at: null,
    status: "in_progress",
    error: null,
    incomplete_details: null,
    instructions: null,
    max_output_tokens: null,
    max_tool_calls: null,
    metadata: {},
    model: "m",
    output: [],
    parallel_tool_calls: true,
    previous_response_id: null,
    prompt_cache_key: null,
    reasoning: null,
    safety_identifier: null,
    service_tier: "default",
    access_programs: null,
    store: false,
    temperature: 1,
    text: { format: { type: "text" } },
    tool_choice: "auto",
    tools: [],
    top_logprobs: 0,
    top_p: 1,
    truncation: "disabled",
    usage: null,
    background: false,
    presence_penalty: 0,
    frequency_penalty: 0,
  };
  const at = { item_id: "msg_1", output_index: 0, content_index: 0 };
  const item = { id: "msg_1", type: "message", role: "assistant", status: "in_progress", content: [] };
  return [
    { type: "response.created", response },
    { type: "response.in_progress", response },
    { type: "response.output_item.added", output_index: 0, item },
    { type: "response.content_part.added", ...at, part: { type: "output_text", text: "", annotations: [] } },
    ...[...text].map((delta) => ({ type: "response.output_text.delta", ...at, delta, logprobs: [] })),
  ].map((event, sequence_number) => ({ ...event, sequence_number }));
}

/** The remaining events of that response. */
export function closingEvents(text) {
  const opening = openingEvents(text);
  const at = { item_id: "msg_1", output_index: 0, content_index: 0 };
  const part = { type: "output_text", text, annotations: [] };
  const item = { id: "msg_1", type: "message", role: "assistant", status: "completed", content: [part] };
  const usage = {
    input_tokens: 1,
    output_tokens: 1,
    total_tokens: 2,
    input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
    output_tokens_details: { reasoning_tokens: 0 },
  };
  const response = { ...opening[0].response, status: "completed", output: [item], usage };
  return [
    { type: "response.output_text.done", ...at, text, logprobs: [] },
    { type: "response.content_part.done", ...at, part },
    { type: "response.output_item.done", output_index: 0, item },
    { type: "response.completed", response },
  ].map((event, index) => ({ ...event, sequence_number: opening.length + index }));
}
