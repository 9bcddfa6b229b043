// What every stream of Responses events must be, whoever made it. Used on each stream that a test reads.
import assert from "node:assert/strict";

const REQUIRED = [
  "id",
  "object",
  "created_at",
  "status",
  "model",
  "output",
  "tools",
  "tool_choice",
  "truncation",
  "parallel_tool_calls",
  "text",
  "top_p",
  "presence_penalty",
  "frequency_penalty",
  "top_logprobs",
  "temperature",
  "store",
  "background",
  "service_tier",
  "metadata",
];
const NULLABLE = [
  "completed_at",
  "incomplete_details",
  "previous_response_id",
  "instructions",
  "error",
  "reasoning",
  "usage",
  "max_output_tokens",
  "max_tool_calls",
  "safety_identifier",
  "prompt_cache_key",
];
const TERMINAL = ["response.completed", "response.incomplete", "response.failed"];
const STATUS = {
  "response.created": ["in_progress", "queued"],
  "response.queued": ["queued"],
  "response.in_progress": ["in_progress"],
  "response.completed": ["completed"],
  "response.incomplete": ["incomplete", "cancelled"],
  "response.failed": ["failed"],
};

/** A Response object, wherever it stands: all 31 keys, and nothing null that must not be. */
export function checkResponse(response) {
  for (const key of REQUIRED)
    assert.ok(response[key] != null, `the response has no ${key}: ${JSON.stringify(response)}`);
  for (const key of NULLABLE) assert.ok(key in response, `the response has no key ${key}`);
  assert.equal(REQUIRED.length + NULLABLE.length, 31);
  assert.equal(response.object, "response");
  assert.ok(Number.isInteger(response.created_at));
  if (response.status === "completed" || response.status === "incomplete") checkUsage(response.usage);
  if (response.status === "completed") assert.equal(response.error, null);
  for (const tool of response.tools)
    for (const key of ["type", "name", "description", "parameters", "strict"])
      assert.ok(key in tool, `a tool without ${key}`);
  if (response.status === "incomplete")
    assert.match(response.incomplete_details.reason, /^(max_output_tokens|content_filter)$/);
  if (response.status === "failed") {
    assert.equal(typeof response.error.code, "string");
    assert.equal(typeof response.error.type, "string");
    assert.equal(typeof response.error.message, "string");
  }
  const ids = response.output.map((item) => item.id);
  assert.equal(new Set(ids).size, ids.length, "two output items have one id");
  assert.ok(ids.every((id) => typeof id === "string" && id !== ""));
  const incomplete = response.output.findIndex((item) => item.status === "incomplete");
  if (incomplete >= 0) {
    assert.equal(incomplete, response.output.length - 1, "an incomplete item is not the last");
    assert.notEqual(response.status, "completed");
  }
}

function checkUsage(usage) {
  assert.ok(usage !== null, "no usage");
  assert.equal(usage.total_tokens, usage.input_tokens + usage.output_tokens);
  assert.ok(Number.isInteger(usage.input_tokens_details.cached_tokens));
  assert.ok(Number.isInteger(usage.input_tokens_details.cache_write_tokens));
  assert.ok(Number.isInteger(usage.output_tokens_details.reasoning_tokens));
}

/**
 * Checks all events of one stream; returns its final response.
 *
 * @param {object} [options]
 * @param {boolean} [options.aborted] the reader stopped: the stream may break off anywhere
 */
export function checkResponseStream(events, { aborted = false } = {}) {
  const state = { items: [], responseId: null, terminal: null, failed: false };
  events.forEach((event, index) => {
    assert.equal(event.sequence_number, index, `sequence_number of event ${index} (${event.type})`);
    assert.equal(state.terminal, null, `${event.type} after the terminal event`);
    assert.equal("error" in event, event.type === "error", `a top-level error key on ${event.type}`);
    if (state.failed) assert.equal(event.type, "response.failed", "only response.failed follows error");
    checkEvent(state, event);
  });
  if (events.length > 0) assert.equal(events[0].type, "response.created");
  if (events.length > 1)
    assert.ok(["response.queued", "response.in_progress"].includes(events[1].type), events[1].type);
  if (aborted) return state.terminal;
  assert.ok(state.terminal !== null, "no terminal event");
  if (state.terminal.status === "failed") assert.ok(state.failed, "response.failed without error before it");
  else checkFinal(state);
  return state.terminal;
}

function checkEvent(state, event) {
  const { type } = event;
  if (type in STATUS) return checkLifecycle(state, event);
  if (type === "error") {
    state.failed = true;
    assert.equal(typeof event.message, "string");
    for (const key of ["code", "message", "param"]) assert.deepEqual(event.error[key], event[key]);
    assert.equal(typeof event.error.type, "string");
    return undefined;
  }
  assert.equal(typeof event.output_index, "number", `${type} has no output_index`);
  if (type === "response.output_item.added") {
    assert.ok(
      state.items.every((other) => other.done),
      "an item begins before the one before it ends",
    );
    return addItem(state, event);
  }
  const item = state.items[event.output_index];
  assert.ok(item && !item.done, `${type} for an item that is not open`);
  if (type === "response.output_item.done") return endItem(item, event);
  assert.equal(event.item_id, item.id, `${type}: item_id`);
  return checkPart(item, event);
}

function checkLifecycle(state, { type, response }) {
  checkResponse(response);
  assert.ok(STATUS[type].includes(response.status), `${type} with status ${response.status}`);
  state.responseId ??= response.id;
  assert.equal(response.id, state.responseId, "response.id changed");
  if (TERMINAL.includes(type)) state.terminal = response;
}

function addItem(state, { output_index, item }) {
  assert.equal(output_index, state.items.length, "output_index is not dense");
  assert.ok(item.id, "an item without an id");
  if (item.type === "message") assert.deepEqual(item.content, []);
  if (item.type === "reasoning") assert.deepEqual(item.summary, []);
  if (item.type === "function_call") {
    assert.equal(item.arguments, "");
    assert.equal(item.status, "in_progress");
    assert.ok(item.call_id && item.name, "a call without call_id or name");
  }
  state.items.push({ begun: item, id: item.id, parts: [], arguments: null, argumentsDone: null, done: null });
}

function endItem(item, { item: done }) {
  assert.equal(done.id, item.id, "item.id changed");
  assert.ok(
    item.parts.every((part) => part.done),
    "an item ended before its parts",
  );
  const parts = (done.type === "reasoning" ? done.summary : done.content) ?? [];
  assert.equal(parts.length, item.parts.length);
  parts.forEach((part, index) => {
    assert.equal(part.text ?? part.refusal, item.parts[index].text, "item.done differs from its deltas");
    if (part.type === "output_text") assert.ok(Array.isArray(part.annotations), "output_text without annotations");
  });
  assert.equal(done.type, item.begun.type, "item.type changed");
  if (done.type === "function_call") {
    assert.ok(item.argumentsDone !== null, "a call ended before its arguments");
    assert.equal(done.arguments, item.argumentsDone, "item.done differs from its deltas");
    assert.deepEqual([done.call_id, done.name], [item.begun.call_id, item.begun.name], "call_id or name changed");
  }
  item.done = done;
}

function checkPart(item, event) {
  const { type } = event;
  if (type.startsWith("response.function_call_arguments.")) return checkArguments(item, event);
  const index = type.includes("reasoning_summary") ? event.summary_index : event.content_index;
  assert.equal(typeof index, "number", `${type} has no index`);
  if (/_part\.added$/.test(type)) {
    assert.equal(index, item.parts.length, "parts are not appended in order");
    assert.equal(event.part.text ?? event.part.refusal, "");
    item.parts.push({ text: "", textDone: false, done: false });
    return;
  }
  const part = item.parts[index];
  assert.ok(part && !part.done, `${type} for a part that is not open`);
  if (type === "response.output_text.delta" || type === "response.output_text.done") {
    assert.ok(Array.isArray(event.logprobs), `${type} without logprobs`);
  }
  if (type.endsWith(".delta")) {
    assert.ok(!part.textDone, "a delta after done");
    assert.equal(Buffer.from(event.delta, "utf8").toString("utf8"), event.delta, "a delta with half a character");
    part.text += event.delta;
  } else if (/_part\.done$/.test(type)) {
    assert.ok(part.textDone, "part.done before its text's done");
    assert.equal(event.part.text ?? event.part.refusal, part.text, "part.done differs from its deltas");
    part.done = true;
  } else {
    assert.equal(event.text ?? event.refusal, part.text, "done differs from its deltas");
    part.textDone = true;
  }
}

function checkArguments(item, event) {
  assert.equal(item.begun.type, "function_call", `${event.type} of a ${item.begun.type}`);
  assert.equal(item.argumentsDone, null, `${event.type} after done`);
  if (event.type.endsWith(".delta")) {
    item.arguments = (item.arguments ?? "") + event.delta;
    return;
  }
  assert.equal(event.arguments, item.arguments, "done differs from its deltas, or there was none");
  assert.equal(event.name, item.begun.name);
  item.argumentsDone = event.arguments;
}

function checkFinal(state) {
  const done = state.items.map((item) => item.done);
  assert.ok(
    done.every((item) => item !== null),
    "the stream ended before an item",
  );
  assert.deepEqual(state.terminal.output, done, "the final output differs from what was streamed");
}

/** Checks the calls in the deltas of a chat stream; returns them as a message has them. */
export function checkChatCalls(chunks) {
  const calls = [];
  for (const { delta } of chunks.flatMap(({ choices }) => choices)) {
    if (calls.length > 0) assert.equal(delta.content ?? null, null, "text behind a call");
    for (const { index, function: piece, ...rest } of delta.tool_calls ?? []) {
      if ("id" in rest) {
        assert.equal(index, calls.length, "index is not dense");
        assert.ok(rest.id && piece.name, "a call without id or name");
        assert.equal(rest.type, "function");
        assert.equal(piece.arguments, "", "the first delta of a call has arguments");
        calls.push({ id: rest.id, type: "function", function: { name: piece.name, arguments: "" } });
      } else {
        assert.deepEqual([index, rest, Object.keys(piece)], [calls.length - 1, {}, ["arguments"]]);
        calls[index].function.arguments += piece.arguments;
      }
    }
  }
  return calls;
}

/** Checks all chunks of one chat stream that ended well; returns its text. */
export function checkChatStream(chunks, { usage = false } = {}) {
  assert.ok(chunks.length >= 2, "a chat stream has at least a first and a last chunk");
  const { id, created, model } = chunks[0];
  for (const chunk of chunks) {
    assert.equal(chunk.object, "chat.completion.chunk");
    assert.deepEqual({ id: chunk.id, created: chunk.created, model: chunk.model }, { id, created, model });
  }
  if (usage) {
    const last = chunks.at(-1);
    assert.deepEqual(last.choices, []);
    assert.equal(last.usage.total_tokens, last.usage.prompt_tokens + last.usage.completion_tokens);
    chunks = chunks.slice(0, -1);
  }
  assert.equal(chunks[0].choices[0].delta.role, "assistant");
  chunks.forEach(({ choices }, index) => {
    assert.equal(choices.length, 1);
    assert.equal(choices[0].finish_reason !== null, index === chunks.length - 1, `finish_reason of chunk ${index}`);
  });
  const reason = chunks.at(-1).choices[0].finish_reason;
  const called = checkChatCalls(chunks).length > 0;
  assert.ok(reason !== "tool_calls" || called, "tool_calls without a call");
  assert.ok(reason !== "stop" || !called, "a call, and finish_reason stop");
  return chunks.map(({ choices }) => choices[0].delta.content ?? "").join("");
}
