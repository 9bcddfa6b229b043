// What must be true of every answer and every stream, from every source. audit.mjs applies it to everything that a test
// receives.
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
  "access_programs",
  "max_tool_calls",
  "safety_identifier",
  "prompt_cache_key",
];
/** Every key that a Response object always has. */
export const RESPONSE_KEYS = [...REQUIRED, ...NULLABLE];
// If a response can't be stored, `store` changes at the end.
const CHANGING = ["store", "status", "output", "completed_at", "incomplete_details", "error", "usage"];
const ECHOED = RESPONSE_KEYS.filter((key) => !CHANGING.includes(key));

const OPENING = { "response.created": 0, "response.queued": 1, "response.in_progress": 2 };
const TERMINAL = ["response.completed", "response.incomplete", "response.failed"];
const STATUS = {
  "response.created": ["in_progress", "queued"],
  "response.queued": ["queued"],
  "response.in_progress": ["in_progress"],
  "response.completed": ["completed"],
  "response.incomplete": ["incomplete", "cancelled"],
  "response.failed": ["failed"],
};
const TOLD = ["completed", "incomplete", "cancelled"];

/** The events of a part: the list of the item that has the part, what happens, and the type of the part. */
const PART_EVENTS = {
  "response.content_part.added": ["content", "added"],
  "response.content_part.done": ["content", "done"],
  "response.output_text.delta": ["content", "delta", "output_text"],
  "response.output_text.done": ["content", "text", "output_text"],
  "response.refusal.delta": ["content", "delta", "refusal"],
  "response.refusal.done": ["content", "text", "refusal"],
  "response.reasoning_text.delta": ["content", "delta", "reasoning_text"],
  "response.reasoning_text.done": ["content", "text", "reasoning_text"],
  "response.reasoning.delta": ["content", "delta", "reasoning_text"],
  "response.reasoning.done": ["content", "text", "reasoning_text"],
  "response.reasoning_summary_part.added": ["summary", "added"],
  "response.reasoning_summary_part.done": ["summary", "done"],
  "response.reasoning_summary_text.delta": ["summary", "delta", "summary_text"],
  "response.reasoning_summary_text.done": ["summary", "text", "summary_text"],
};
/** The member of each kind of call that is streamed, and the kind of call of each event. */
const CALL_TEXT = { function_call: "arguments", custom_tool_call: "input" };
const ARGUMENT_EVENTS = {
  "response.function_call_arguments.delta": "function_call",
  "response.function_call_arguments.done": "function_call",
  "response.custom_tool_call_input.delta": "custom_tool_call",
  "response.custom_tool_call_input.done": "custom_tool_call",
};
const ITEM_EVENTS = ["response.output_item.added", "response.output_item.done"];

/** Checks a Response object in any place: all 32 keys, and nothing null that must not be. */
export function checkResponse(response) {
  for (const key of REQUIRED)
    assert.ok(response[key] != null, `the response has no ${key}: ${JSON.stringify(response)}`);
  for (const key of NULLABLE) assert.ok(key in response, `the response has no key ${key}`);
  assert.equal(RESPONSE_KEYS.length, 32);
  assert.equal(response.object, "response");
  assert.ok(Number.isInteger(response.created_at), "created_at is no integer");
  // An engine may not know the number of tokens of an answer that was cut off, and a host's fallback counts none.
  const mayBeUnknown = response.status === "cancelled" || response.fm?.source === "fallback";
  const unknown = mayBeUnknown && response.usage === null;
  if (TOLD.includes(response.status) && !unknown) checkUsage(response.usage);
  if (response.status === "completed") assert.equal(response.error, null);
  for (const tool of response.tools)
    for (const key of ["type", "name", ...(tool.type === "custom" ? ["format"] : ["description", "parameters", "strict"])])
      assert.ok(key in tool, `a tool without ${key}`);
  if (response.status === "incomplete")
    assert.match(response.incomplete_details.reason, /^(max_output_tokens|content_filter)$/);
  if (response.status === "failed")
    for (const key of ["code", "type", "message"]) assert.equal(typeof response.error[key], "string", `error.${key}`);
  checkOutput(response);
}

function checkOutput({ status, output }) {
  const ids = output.map((item) => item.id);
  assert.equal(new Set(ids).size, ids.length, "two output items have one id");
  assert.ok(
    ids.every((id) => typeof id === "string" && id !== ""),
    "an output item without an id",
  );
  output.forEach(checkItem);
  const incomplete = output.findIndex((item) => item.status === "incomplete");
  if (incomplete < 0) return;
  assert.equal(incomplete, output.length - 1, "an incomplete item is not the last");
  assert.notEqual(status, "completed", "a completed response with an incomplete item");
}

function checkItem(item) {
  for (const key of ["phase", "encrypted_content", "content"])
    assert.notEqual(item[key], null, `${key} of a ${item.type} is null rather than absent`);
  if (item.type === "message") {
    assert.equal(item.role, "assistant");
    item.content.forEach(checkOutputPart);
  }
  if (item.type in CALL_TEXT) {
    assert.ok(item.call_id && item.name, "a call without call_id or name");
    assert.equal(typeof item[CALL_TEXT[item.type]], "string", "a call without arguments");
  }
  if (item.type === "reasoning") assert.ok(Array.isArray(item.summary), "reasoning without a summary");
}

function checkOutputPart(part) {
  if (part.type === "refusal") return assert.equal(typeof part.refusal, "string");
  assert.equal(part.type, "output_text");
  assert.equal(typeof part.text, "string");
  assert.ok(Array.isArray(part.annotations), "output_text without annotations");
  return part.logprobs?.forEach(checkLogprob);
}

function checkLogprob({ token, logprob, bytes, top_logprobs: top }) {
  assert.equal(typeof token, "string", "a log probability without its token");
  assert.ok(logprob <= 0, `logprob ${logprob}`);
  assert.ok(Array.isArray(bytes) && bytes.every((byte) => byte >= 0 && byte <= 255), "bytes of a token");
  assert.ok(Array.isArray(top), "a log probability without top_logprobs");
}

function checkUsage(usage) {
  assert.ok(usage != null, "no usage");
  assert.equal(usage.total_tokens, usage.input_tokens + usage.output_tokens, "total_tokens is no sum");
  assert.ok(Number.isInteger(usage.input_tokens_details.cached_tokens), "no cached_tokens");
  assert.ok(Number.isInteger(usage.input_tokens_details.cache_write_tokens), "no cache_write_tokens");
  assert.ok(Number.isInteger(usage.output_tokens_details.reasoning_tokens), "no reasoning_tokens");
}

/**
 * Checks all events of one stream; returns its final response.
 *
 * @param {object} [options]
 * @param {boolean} [options.aborted] the reader stopped: the stream may break off anywhere
 * @param {boolean} [options.failed] the reader got an error: a stream that had not begun has no events
 * @param {number} [options.after] `starting_after`: the stream was joined after that event
 */
export function checkResponseStream(all, { aborted = false, failed = false, after } = {}) {
  const events = withoutProgress(all);
  const state = { phase: -1, first: null, items: [], terminal: null, failed: false, joined: after !== undefined };
  events.forEach((event, index) => {
    assert.equal(event.sequence_number, index + (after ?? -1) + 1, `sequence_number of event ${index} (${event.type})`);
    assert.equal(state.terminal, null, `${event.type} after the terminal event`);
    assert.equal("error" in event, event.type === "error", `a top-level error key on ${event.type}`);
    if (state.failed) assert.equal(event.type, "response.failed", "only response.failed follows error");
    checkEvent(state, event);
  });
  if (aborted || (failed && events.length === 0)) return state.terminal;
  // A reader that joins after the end gets no more events.
  if (state.joined) return events.length === 0 ? null : checkJoined(state);
  assert.ok(state.terminal !== null, "no terminal event");
  if (state.terminal.status === "failed") assert.ok(state.failed, "response.failed without error before it");
  checkFinal(state);
  return state.terminal;
}

/** The events without reports about the prompt. These come before the output, and repeat the number of the event before them. */
function withoutProgress(events) {
  return events.filter((event, index) => {
    if (event.type !== "keepalive") return true;
    const before = events[index - 1];
    assert.ok(["response.in_progress", "keepalive"].includes(before?.type), `a keepalive event after ${before?.type}`);
    assert.equal(event.sequence_number, before.sequence_number, "the number of a keepalive event");
    return false;
  });
}

function checkJoined({ terminal, failed }) {
  assert.ok(terminal !== null || failed, "no terminal event");
  return terminal;
}

function checkEvent(state, event) {
  const { type } = event;
  if (type in STATUS) return checkLifecycle(state, event);
  assert.ok(state.phase >= 0 || state.joined, `${type} before response.created`);
  if (type === "error") return checkErrorEvent(state, event);
  assert.ok(
    type in PART_EVENTS || type in ARGUMENT_EVENTS || ITEM_EVENTS.includes(type),
    `an event that the API does not have: ${type}`,
  );
  if (state.joined) return undefined;
  assert.equal(state.phase, 2, `${type} before response.in_progress`);
  assert.equal(typeof event.output_index, "number", `${type} has no output_index`);
  if (type === "response.output_item.added") return addItem(state, event);
  const item = state.items[event.output_index];
  assert.ok(item && !item.done, `${type} for an item that is not open`);
  if (type === "response.output_item.done") return endItem(item, event);
  assert.equal(event.item_id, item.id, `${type}: item_id`);
  return type in ARGUMENT_EVENTS ? checkArguments(item, event) : checkPart(item, event);
}

function checkErrorEvent(state, event) {
  state.failed = true;
  for (const key of ["code", "message", "param"]) {
    assert.ok(key in event && key in event.error, `an error event without ${key}`);
    assert.deepEqual(event.error[key], event[key], `${key} of an error event`);
  }
  assert.equal(typeof event.message, "string");
  assert.equal(typeof event.error.type, "string");
}

function checkLifecycle(state, { type, response }) {
  checkResponse(response);
  assert.ok(STATUS[type].includes(response.status), `${type} with status ${response.status}`);
  if (type in OPENING) {
    const phase = OPENING[type];
    const inOrder = phase === 0 ? state.phase === -1 : state.phase >= 0 && state.phase < phase;
    assert.ok(inOrder || state.joined, `${type} out of order`);
    state.phase = phase;
    assert.deepEqual(response.output, [], `${type} with output`);
  } else {
    const early = ["failed", "cancelled"].includes(response.status) ? 0 : 2;
    assert.ok(state.joined || state.phase >= early, `${type} too early`);
    state.terminal = response;
  }
  state.first ??= response;
  for (const key of ECHOED) assert.deepEqual(response[key], state.first[key], `response.${key} changed`);
}

function addItem(state, { output_index, item }) {
  assert.ok(
    state.items.every((other) => other.done),
    "an item begins before the one before it ends",
  );
  assert.equal(output_index, state.items.length, "output_index is not dense");
  assert.ok(item.id, "an item without an id");
  if (item.type === "message") assert.deepEqual(item.content, [], "a message begins with content");
  if (item.type === "reasoning") assert.deepEqual(item.summary, [], "reasoning begins with a summary");
  if (item.type in CALL_TEXT) assert.equal(item[CALL_TEXT[item.type]], "", "a call begins with arguments");
  if (item.type !== "reasoning") assert.equal(item.status, "in_progress", "an item begins with another status");
  checkItem(item);
  const parts = { content: [], summary: [] };
  state.items.push({ begun: item, id: item.id, parts, arguments: null, argumentsDone: null, done: null });
}

const isClosed = (part) => part.done || (part.implied && part.textDone);
const allParts = ({ parts }) => [...parts.content, ...parts.summary];
const textOf = (part) => part.text ?? part.refusal;

function endItem(item, { item: done }) {
  assert.equal(done.id, item.id, "item.id changed");
  assert.equal(done.type, item.begun.type, "item.type changed");
  assert.notEqual(done.status, "in_progress", "item.done of an item in progress");
  checkItem(done);
  assert.ok(allParts(item).every(isClosed), "an item ended before its parts");
  checkTexts(item, done);
  if (done.type in CALL_TEXT) {
    assert.ok(item.argumentsDone !== null, "a call ended before its arguments");
    assert.deepEqual([done.call_id, done.name], [item.begun.call_id, item.begun.name], "call_id or name changed");
  }
  item.done = done;
}

/** The texts of an item equal its deltas. */
function checkTexts(item, said) {
  for (const list of ["content", "summary"]) {
    const parts = said[list] ?? [];
    assert.equal(parts.length, item.parts[list].length, `${list} of an item that was not streamed`);
    parts.forEach((part, index) => {
      const { type, text, logprobs } = item.parts[list][index];
      assert.equal(part.type, type, "the type of a part changed");
      assert.equal(textOf(part), text, "an item differs from its deltas");
      if (part.logprobs !== undefined) assert.deepEqual(part.logprobs, logprobs, "log probabilities were not streamed");
    });
  }
  if (item.begun.type in CALL_TEXT)
    assert.equal(said[CALL_TEXT[item.begun.type]], item.arguments ?? "", "arguments differ from their deltas");
}

function checkPart(item, event) {
  const [list, what, partType] = PART_EVENTS[event.type];
  const parts = item.parts[list];
  const index = list === "summary" ? event.summary_index : event.content_index;
  assert.equal(typeof index, "number", `${event.type} has no index`);
  const implied = partType === "reasoning_text" && index === parts.length;
  if (what === "added" || implied) {
    assert.ok(allParts(item).every(isClosed), "a part begins before the one before it ends");
    assert.equal(index, parts.length, "parts are not appended in order");
    if (!implied) assert.equal(textOf(event.part), "", "a part begins with text");
    const type = event.part?.type ?? partType;
    parts.push({ type, text: "", logprobs: [], textDone: false, done: false, implied });
    if (what === "added") return;
  }
  const part = parts[index];
  assert.ok(part && !part.done, `${event.type} for a part that is not open`);
  if (partType !== undefined) assert.equal(part.type, partType, `${event.type} in a ${part.type}`);
  if (partType === "output_text") assert.ok(Array.isArray(event.logprobs), `${event.type} without logprobs`);
  if (what === "delta") addDelta(part, event);
  else if (what === "text") endText(part, event);
  else endPart(part, event);
}

function addDelta(part, { delta, logprobs = [] }) {
  assert.ok(!part.textDone, "a delta after done");
  assert.ok(delta.isWellFormed(), "a delta with half a character");
  part.text += delta;
  logprobs.forEach(checkLogprob);
  part.logprobs.push(...logprobs);
}

function endText(part, event) {
  assert.ok(!part.textDone, "a second done");
  assert.equal(textOf(event), part.text, "done differs from its deltas");
  if (event.logprobs !== undefined) assert.deepEqual(event.logprobs, part.logprobs, "done's log probabilities differ");
  part.textDone = true;
}

function endPart(part, event) {
  assert.ok(part.textDone, "part.done before its text's done");
  assert.equal(event.part.type, part.type, "the type of a part changed");
  assert.equal(textOf(event.part), part.text, "part.done differs from its deltas");
  part.done = true;
}

function checkArguments(item, event) {
  const kind = ARGUMENT_EVENTS[event.type];
  const text = CALL_TEXT[kind];
  assert.equal(item.begun.type, kind, `${event.type} of a ${item.begun.type}`);
  assert.equal(item.argumentsDone, null, `${event.type} after done`);
  if (event.type.endsWith(".delta")) {
    assert.ok(event.delta.isWellFormed(), "a delta with half a character");
    item.arguments = (item.arguments ?? "") + event.delta;
    return;
  }
  assert.equal(event[text], item.arguments, "arguments.done differs from its deltas, or there was none");
  assert.equal(event.name, kind === "function_call" ? item.begun.name : undefined);
  item.argumentsDone = event[text];
}

/** The final response equals what was streamed. A failed response may have stopped in the middle of an item. */
function checkFinal({ items, terminal }) {
  assert.equal(terminal.output.length, items.length, "the final output has other items than were streamed");
  items.forEach((item, index) => {
    const final = terminal.output[index];
    if (item.done !== null)
      return assert.deepEqual(final, item.done, "the final output differs from what was streamed");
    assert.equal(terminal.status, "failed", "the stream ended before an item");
    assert.equal(final.id, item.id, "the final output has another item");
    return checkTexts(item, final);
  });
}

const FINISH = { chat: ["stop", "length", "tool_calls", "content_filter"], text: ["stop", "length", "content_filter"] };

/**
 * Checks that are common to both kinds of chunks: constants, the order in which choices end, usage; passes each choice's
 * pieces to `take`.
 */
function readChunks(chunks, object, { usage, aborted = false, failed = false }, take) {
  const begun = new Map();
  const [first] = chunks;
  let counted = false;
  chunks.forEach((chunk, index) => {
    const { id, created, model } = first;
    assert.ok(!("error" in chunk), "an error key in a chunk");
    assert.ok(!counted, "a chunk after the usage");
    assert.equal(chunk.object, object);
    assert.deepEqual(
      { id: chunk.id, created: chunk.created, model: chunk.model },
      { id, created, model },
      "ids changed",
    );
    if (chunk.prompt_progress !== undefined) {
      assert.deepEqual(chunk.choices, [], "a report about the prompt with a choice");
      return;
    }
    if (chunk.choices.length === 0) {
      counted = true;
      assert.equal(index, chunks.length - 1, "a chunk without choices in the middle");
      assert.equal(chunk.usage.total_tokens, chunk.usage.prompt_tokens + chunk.usage.completion_tokens);
      return;
    }
    if (usage) assert.equal(chunk.usage, null, "usage before the last chunk");
    for (const choice of chunk.choices) {
      const state = begun.get(choice.index) ?? { text: "", calls: [], reason: null, first: true };
      begun.set(choice.index, state);
      assert.equal(state.reason, null, "a chunk after finish_reason");
      assert.ok("finish_reason" in choice, "a choice without finish_reason");
      assert.ok(choice.logprobs == null || typeof choice.logprobs === "object", "logprobs");
      take(state, choice);
      state.first = false;
      state.reason = choice.finish_reason;
    }
  });
  const choices = [...begun.entries()].sort(([a], [b]) => a - b);
  choices.forEach(([index], place) => assert.equal(index, place, "the choices' indexes are not dense"));
  if (!aborted && !failed) {
    assert.ok(choices.length > 0, "a stream without choices");
    for (const [, { reason }] of choices) assert.notEqual(reason, null, "no finish_reason");
    if (usage !== undefined) assert.equal(counted, usage, usage ? "no usage" : "usage that nobody asked for");
  }
  return choices.map(([, state]) => state);
}

function takeDelta(state, { delta, finish_reason: reason, logprobs }) {
  if (state.first) {
    assert.equal(delta.role, "assistant", "the first delta has no role");
    assert.equal(delta.content, null, "the first delta has content");
  } else assert.ok(!("role" in delta), "a second role");
  if (state.calls.length > 0) assert.equal(delta.content ?? null, null, "text after a call");
  if (delta.content != null) assert.ok(delta.content.isWellFormed(), "a delta with half a character");
  state.text += delta.content ?? "";
  logprobs?.content?.forEach(checkLogprob);
  for (const piece of delta.tool_calls ?? []) takeCall(state.calls, piece);
  if (reason === null) return;
  assert.ok(FINISH.chat.includes(reason), `finish_reason ${reason}`);
  assert.deepEqual(delta, {}, "finish_reason with a delta");
  assert.ok(reason !== "tool_calls" || state.calls.length > 0, "tool_calls without a call");
  assert.ok(reason !== "stop" || state.calls.length === 0, "a call, and finish_reason stop");
}

function takeCall(calls, { index, function: named, custom, ...rest }) {
  const [type, text, piece] = custom === undefined ? ["function", "arguments", named] : ["custom", "input", custom];
  if ("id" in rest) {
    assert.equal(index, calls.length, "index of a call is not dense");
    assert.ok(rest.id && piece.name, "a call without id or name");
    assert.equal(rest.type, type);
    assert.equal(piece[text], "", "the first delta of a call has arguments");
    calls.push({ id: rest.id, type, [type]: { name: piece.name, [text]: "" } });
  } else {
    assert.deepEqual([index, rest, Object.keys(piece)], [calls.length - 1, {}, [text]], "a piece of a call");
    calls[index][type][text] += piece[text];
  }
}

/**
 * Checks all chunks of one chat stream; returns its choices as {text, calls, reason}.
 *
 * @param {object} [options]
 * @param {boolean} [options.usage] whether `stream_options.include_usage` was asked for; undefined: unknown
 * @param {boolean} [options.aborted] the reader stopped
 * @param {boolean} [options.failed] an error followed
 */
export function checkChatChoices(chunks, options = {}) {
  return readChunks(chunks, "chat.completion.chunk", options, takeDelta);
}

/** The same; returns the text of the first choice. */
export function checkChatStream(chunks, options = {}) {
  return checkChatChoices(chunks, options)[0].text;
}

/** The same; returns the calls of the first choice, as a message has them. */
export function checkChatCalls(chunks) {
  return checkChatChoices(chunks)[0].calls;
}

/** Checks all chunks of one stream of the older Completions API; returns the text of the first choice. */
export function checkCompletionStream(chunks, options = {}) {
  const choices = readChunks(chunks, "text_completion", options, (state, { text, finish_reason: reason }) => {
    assert.equal(typeof text, "string", "a choice without text");
    assert.ok(text.isWellFormed(), "a delta with half a character");
    state.text += text;
    if (reason !== null) assert.ok(FINISH.text.includes(reason), `finish_reason ${reason}`);
  });
  return choices[0]?.text ?? "";
}

const ERROR_KEYS = ["code", "message", "param", "type"];

/** The body of an error, in an answer or a chat stream. */
export function checkErrorBody({ error }) {
  assert.deepEqual(Object.keys(error).sort(), ERROR_KEYS, "the keys of an error");
  assert.equal(typeof error.message, "string");
  assert.equal(typeof error.type, "string");
  for (const key of ["code", "param"]) assert.ok(error[key] === null || typeof error[key] === "string", `error.${key}`);
}
