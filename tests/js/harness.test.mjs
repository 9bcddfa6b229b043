// The checks that all other tests rely on: whole streams pass, and each way to break one is noticed.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Audit, auditFetch, takeChunk } from "./support/audit.mjs";
import {
  checkChatStream,
  checkCompletionStream,
  checkErrorBody,
  checkResponse,
  checkResponseStream,
  RESPONSE_KEYS,
} from "./support/invariants.mjs";
import { closingEvents, openingEvents } from "./support/transport.mjs";

const [{ response: RESPONSE }] = openingEvents("");
const USAGE = closingEvents("").at(-1).response.usage;
const LOGPROB = { token: "a", logprob: -0.5, bytes: [97], top_logprobs: [] };

const message = (text, status = "completed", part = { type: "output_text", text, annotations: [] }) => ({
  id: "msg_1",
  type: "message",
  role: "assistant",
  status,
  content: [part],
});

const numbered = (events, first = 0) => events.map((event, index) => ({ ...event, sequence_number: index + first }));
const opening = [
  { type: "response.created", response: RESPONSE },
  { type: "response.in_progress", response: RESPONSE },
];
const terminal = (output, status = "completed", more = {}) => ({
  type: `response.${status === "cancelled" ? "incomplete" : status}`,
  response: { ...RESPONSE, status, output, usage: USAGE, ...more },
});

/** The events of an item: its beginning, the events inside, its end. */
const item = (output_index, begun, inside, done) => [
  { type: "response.output_item.added", output_index, item: begun },
  ...inside.map((event) => ({ ...event, item_id: begun.id, output_index })),
  { type: "response.output_item.done", output_index, item: done },
];

function reasoningItem(index, dialect) {
  const id = "rs_1";
  const summary = { type: "summary_text", text: "ab" };
  const inside = [
    { type: "response.reasoning_summary_part.added", summary_index: 0, part: { ...summary, text: "" } },
    { type: "response.reasoning_summary_text.delta", summary_index: 0, delta: "a" },
    { type: "response.reasoning_summary_text.delta", summary_index: 0, delta: "b" },
    { type: "response.reasoning_summary_text.done", summary_index: 0, text: "ab" },
    { type: "response.reasoning_summary_part.done", summary_index: 0, part: summary },
  ];
  const raw = [
    { type: `response.${dialect}.delta`, content_index: 0, delta: "c" },
    { type: `response.${dialect}.done`, content_index: 0, text: "c" },
  ];
  const content = dialect === undefined ? {} : { content: [{ type: "reasoning_text", text: "c" }] };
  const done = { id, type: "reasoning", summary: [summary], ...content };
  return item(index, { id, type: "reasoning", summary: [] }, [...(dialect ? raw : []), ...inside], done);
}

function messageItem(index, { refusal = false, logprobs = [] } = {}) {
  const [name, field] = refusal ? ["refusal", "refusal"] : ["output_text", "text"];
  const lists = refusal ? {} : { logprobs };
  const part = (text) => (refusal ? { type: "refusal", refusal: text } : { type: name, text, annotations: [] });
  const whole = { ...part("a"), ...(logprobs.length > 0 ? { logprobs } : {}) };
  const at = { content_index: 0 };
  const inside = [
    { type: "response.content_part.added", ...at, part: part("") },
    { type: `response.${name}.delta`, ...at, delta: "a", ...lists },
    { type: `response.${name}.done`, ...at, [field]: "a", ...lists },
    { type: "response.content_part.done", ...at, part: whole },
  ];
  const done = message("a", "completed", whole);
  return item(index, { ...done, status: "in_progress", content: [] }, inside, done);
}

function callItem(index) {
  const begun = {
    id: "fc_1",
    type: "function_call",
    call_id: "call_1",
    name: "f",
    arguments: "",
    status: "in_progress",
  };
  const inside = [
    { type: "response.function_call_arguments.delta", delta: "{" },
    { type: "response.function_call_arguments.delta", delta: "}" },
    { type: "response.function_call_arguments.done", arguments: "{}", name: "f" },
  ];
  return item(index, begun, inside, { ...begun, arguments: "{}", status: "completed" });
}

const doneItems = (events) =>
  events.filter(({ type }) => type === "response.output_item.done").map((event) => event.item);
const streamOf = (...items) => numbered([...opening, ...items.flat(), terminal(doneItems(items.flat()))]);
const copy = (value) => JSON.parse(JSON.stringify(value));
const full = () => copy(streamOf(reasoningItem(0), messageItem(1, { logprobs: [LOGPROB] }), callItem(2)));
const failure = { code: "c", message: "m", param: null, error: { type: "t", code: "c", message: "m", param: null } };
const failedResponse = { error: { type: "t", code: "c", message: "m", param: null } };
const incomplete = { incomplete_details: { reason: "max_output_tokens" } };

test("whole streams of every kind pass", () => {
  checkResponseStream(full());
  checkResponseStream(streamOf(messageItem(0)));
  checkResponseStream(streamOf(messageItem(0, { refusal: true })));
  for (const dialect of ["reasoning_text", "reasoning"]) checkResponseStream(streamOf(reasoningItem(0, dialect)));
  const queued = { ...RESPONSE, status: "queued" };
  const background = [
    { type: "response.created", response: queued },
    { type: "response.queued", response: queued },
    opening[1],
    ...messageItem(0),
  ];
  checkResponseStream(numbered([...background, terminal(doneItems(background))]));
  checkResponseStream(numbered([...background.slice(0, 2), terminal([], "cancelled")]));
  checkResponseStream(numbered([...opening, terminal([], "incomplete", incomplete)]));
  checkResponseStream(numbered([...opening, { type: "error", ...failure }, terminal([], "failed", failedResponse)]));
  const cut = messageItem(0).slice(0, 3);
  const half = [message("a", "incomplete")];
  checkResponseStream(
    numbered([...opening, ...cut, { type: "error", ...failure }, terminal(half, "failed", failedResponse)]),
  );
  const events = full();
  checkResponseStream(events.slice(0, 9), { aborted: true });
  for (const after of [0, 7, events.length - 1]) checkResponseStream(events.slice(after + 1), { after });
  assert.equal(checkResponseStream([], { failed: true }), null);
});

/** The first event of a type for which a condition holds. */
const find = (events, type, holds = () => true) =>
  events.find((event) => event.type === `response.${type}` && holds(event));
const drop = (events, type) => numbered(events.filter((event) => event.type !== `response.${type}`));
const swap = (events, a, b) => {
  const [i, j] = [a, b].map((type) => events.findIndex((event) => event.type === `response.${type}`));
  [events[i], events[j]] = [events[j], events[i]];
  return numbered(events);
};

/** What is broken, how (the function changes the stream, or returns a new one), and the check's message. */
const broken = [
  ["a hole in the numbers", (e) => void (e[5].sequence_number = 6), /sequence_number/],
  ["numbers from 1", (e) => numbered(e, 1), /sequence_number/],
  ["no number", (e) => void delete e[3].sequence_number, /sequence_number/],
  ["no created", (e) => numbered(e.slice(1)), /out of order/],
  ["no in_progress", (e) => drop(e, "in_progress"), /before response.in_progress/],
  ["created twice", (e) => numbered([e[0], ...e]), /out of order/],
  ["in_progress first", (e) => swap(e, "created", "in_progress"), /out of order/],
  [
    "queued after in_progress",
    (e) =>
      numbered([
        ...e.slice(0, 2),
        { type: "response.queued", response: { ...RESPONSE, status: "queued" } },
        ...e.slice(2),
      ]),
    /out of order/,
  ],
  ["no output_item.added", (e) => drop(e, "output_item.added"), /not open/],
  ["no content_part.added", (e) => drop(e, "content_part.added"), /not open/],
  ["no output_text.done", (e) => drop(e, "output_text.done"), /before its text's done/],
  ["no content_part.done", (e) => drop(e, "content_part.done"), /before its parts/],
  ["no output_item.done", (e) => drop(e, "output_item.done"), /before the one before it ends/],
  ["no summary part", (e) => drop(e, "reasoning_summary_part.added"), /not open/],
  ["no summary done", (e) => drop(e, "reasoning_summary_text.done"), /before its text's done/],
  ["no arguments.done", (e) => drop(e, "function_call_arguments.done"), /before its arguments/],
  ["no arguments.delta", (e) => drop(e, "function_call_arguments.delta"), /differs from its deltas/],
  [
    "delta after done",
    (e) => swap(e, "output_text.delta", "output_text.done"),
    /differs from its deltas|a delta after done/,
  ],
  ["part.done before text.done", (e) => swap(e, "output_text.done", "content_part.done"), /before its text's done/],
  [
    "output_index with a hole",
    (e) => e.forEach((event) => event.output_index > 0 && event.output_index++),
    /not dense/,
  ],
  ["output_index missing", (e) => void delete find(e, "output_text.delta").output_index, /no output_index/],
  ["content_index missing", (e) => void delete find(e, "output_text.delta").content_index, /no index/],
  [
    "content_index from 1",
    (e) => e.forEach((event) => "content_index" in event && event.content_index++),
    /not appended/,
  ],
  ["summary_index missing", (e) => void delete find(e, "reasoning_summary_text.delta").summary_index, /no index/],
  [
    "summary_index of another part",
    (e) => void (find(e, "reasoning_summary_text.delta").summary_index = 1),
    /not open/,
  ],
  ["item_id changes", (e) => void (find(e, "output_text.delta").item_id = "msg_2"), /item_id/],
  ["item.id changes", (e) => void (find(e, "output_item.done").item.id = "x"), /item.id changed/],
  ["item.type changes", (e) => void (find(e, "output_item.done").item.type = "message"), /item.type changed/],
  ["call_id changes", (e) => void (e.findLast(({ item }) => item).item.call_id = "x"), /call_id or name changed/],
  ["a name changes", (e) => void (find(e, "function_call_arguments.done").name = "g"), /strictly equal/],
  ["response.id changes", (e) => void (e.at(-1).response.id = "resp_2"), /response.id changed/],
  ["an echo changes", (e) => void (e.at(-1).response.temperature = 0), /response.temperature changed/],
  ["text.done differs", (e) => void (find(e, "output_text.done").text = "b"), /done differs/],
  ["part.done differs", (e) => void (find(e, "content_part.done").part.text = "b"), /part.done differs/],
  ["part.done of another type", (e) => void (find(e, "content_part.done").part.type = "refusal"), /type of a part/],
  [
    "item.done differs",
    (e) => void (find(e, "output_item.done", ({ item }) => item.content).item.content[0].text = "b"),
    /differs from its deltas/,
  ],
  [
    "a summary differs",
    (e) => void (find(e, "output_item.done").item.summary[0].text = "b"),
    /differs from its deltas/,
  ],
  [
    "arguments.done differs",
    (e) => void (find(e, "function_call_arguments.done").arguments = "[]"),
    /differs from its deltas/,
  ],
  [
    "arguments of item.done differ",
    (e) => void (e.findLast(({ item }) => item).item.arguments = "[]"),
    /differ from their deltas/,
  ],
  ["log probabilities only at the end", (e) => void (find(e, "output_text.delta").logprobs = []), /log probabilities/],
  [
    "log probabilities of part.done differ",
    (e) => void (find(e, "output_item.done", ({ item }) => item.content).item.content[0].logprobs = []),
    /not streamed/,
  ],
  ["a delta without logprobs", (e) => void delete find(e, "output_text.delta").logprobs, /without logprobs/],
  ["a log probability above 0", (e) => void (find(e, "output_text.delta").logprobs[0].logprob = 1), /logprob 1/],
  ["half a character", (e) => void (find(e, "output_text.delta").delta = "\ud83d"), /half a character/],
  ["the final output lacks an item", (e) => void e.at(-1).response.output.pop(), /other items/],
  ["an empty final output", (e) => void (e.at(-1).response.output = []), /other items/],
  ["the final output differs", (e) => void (e.at(-1).response.output[1].content[0].text = "b"), /final output differs/],
  ["two items with one id", (e) => void (e.at(-1).response.output[1].id = "rs_1"), /one id/],
  ["an item without an id", (e) => void (find(e, "output_item.added").item.id = ""), /without an id/],
  ["no annotations", (e) => void delete e.at(-1).response.output[1].content[0].annotations, /annotations/],
  ["null rather than absent", (e) => void (e.at(-1).response.output[0].content = null), /null rather than absent/],
  [
    "a message that begins with text",
    (e) => void (find(e, "output_item.added", ({ item }) => item.role).item.content = message("a").content),
    /begins with content/,
  ],
  [
    "a call that begins with arguments",
    (e) => void (e.findLast((event) => event.type === "response.output_item.added").item.arguments = "{"),
    /begins with arguments/,
  ],
  ["a part that begins with text", (e) => void (find(e, "content_part.added").part.text = "a"), /begins with text/],
  ["an incomplete item in the middle", (e) => void (e.at(-1).response.output[1].status = "incomplete"), /not the last/],
  ["no terminal event", (e) => e.slice(0, -1), /no terminal event/],
  ["two terminal events", (e) => numbered([...e, e.at(-1)]), /after the terminal event/],
  ["an event after the end", (e) => numbered([...e, e[4]]), /after the terminal event/],
  ["another status than the event", (e) => void (e.at(-1).response.status = "incomplete"), /with status|reason/],
  ["no usage", (e) => void (e.at(-1).response.usage = null), /no usage/],
  ["usage without details", (e) => void delete e.at(-1).response.usage.input_tokens_details, /cached_tokens/],
  ["usage that does not add up", (e) => void e.at(-1).response.usage.total_tokens++, /no sum/],
  ["an error key", (e) => void (e[4].error = null), /top-level error key/],
  ["an event of one's own", (e) => void (e[4].type = "response.fm.progress"), /does not have/],
  ["a type of no API", (e) => numbered([...e.slice(0, 2), { type: "ping" }, ...e.slice(2)]), /does not have/],
  ["a counted keepalive", (e) => numbered([...e.slice(0, 2), { type: "keepalive" }, ...e.slice(2)]), /number of a keepalive/],
  [
    "failed without error",
    () => numbered([...opening, terminal([], "failed", failedResponse)]),
    /without error before it/,
  ],
  ["error without failed", () => numbered([...opening, { type: "error", ...failure }]), /no terminal event/],
  [
    "completed after error",
    () => numbered([...opening, { type: "error", ...failure }, terminal([])]),
    /only response.failed/,
  ],
  [
    "an error whose parts differ",
    () => numbered([...opening, { type: "error", ...failure, code: "d" }, terminal([], "failed", failedResponse)]),
    /code of an error event/,
  ],
  [
    "an error without its own object",
    () =>
      numbered([
        ...opening,
        { type: "error", ...failure, error: { type: "t" } },
        terminal([], "failed", failedResponse),
      ]),
    /without code/,
  ],
  [
    "a failed response without its text",
    () =>
      numbered([
        ...opening,
        ...messageItem(0).slice(0, 3),
        { type: "error", ...failure },
        terminal([], "failed", failedResponse),
      ]),
    /other items/,
  ],
  [
    "incomplete without a reason",
    () => numbered([...opening, terminal([], "incomplete", { incomplete_details: { reason: "x" } })]),
    /max_output_tokens/,
  ],
  ...RESPONSE_KEYS.map((key) => [
    `created without ${key}`,
    (e) => void delete (e[0].response = { ...e[0].response })[key],
    /no (key )?\w+/,
  ]),
];
for (const [name, spoil, said] of broken)
  test(`a broken stream is seen: ${name}`, () => {
    const events = full();
    assert.throws(
      () => checkResponseStream(spoil(events) ?? events),
      (error) => {
        assert.match(error.message, said);
        return true;
      },
    );
  });

test("a stream joined in the middle is held to its numbers and its one end", () => {
  const events = full().slice(8);
  assert.throws(() => checkResponseStream(events, { after: 6 }), /sequence_number/);
  assert.throws(() => checkResponseStream(events.slice(0, -1), { after: 7 }), /no terminal event/);
});

test("nothing that must not be null is, in a response", () => {
  for (const key of ["tools", "metadata", "temperature", "service_tier"])
    assert.throws(() => checkResponse({ ...RESPONSE, [key]: null }), new RegExp(`no ${key}`));
  assert.throws(() => checkResponse({ ...RESPONSE, tools: [{ type: "function", name: "f" }] }), /a tool without/);
});

const chunk = (choices, more = {}) => ({
  id: "chatcmpl_1",
  object: "chat.completion.chunk",
  created: 1,
  model: "m",
  choices: choices.map(([index, delta, finish_reason = null]) => ({ index, delta, logprobs: null, finish_reason })),
  ...more,
});
const first = { role: "assistant", content: null };
const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
const called = { index: 0, id: "call_1", type: "function", function: { name: "f", arguments: "" } };
const piece = { index: 0, function: { arguments: "{}" } };
const chat = () => copy([chunk([[0, first]]), chunk([[0, { content: "a" }]]), chunk([[0, {}, "stop"]])]);
const calls = () =>
  copy([
    chunk([[0, first]]),
    chunk([[0, { tool_calls: [called] }]]),
    chunk([[0, { tool_calls: [piece] }]]),
    chunk([[0, {}, "tool_calls"]]),
  ]);
const counted = (chunks) => [...chunks.map((each) => ({ ...each, usage: null })), chunk([], { usage })];

test("whole chat streams pass", () => {
  assert.equal(checkChatStream(chat()), "a");
  checkChatStream(calls());
  checkChatStream(counted(chat()), { usage: true });
  checkChatStream([
    chunk([
      [0, first],
      [1, first],
    ]),
    chunk([[1, {}, "stop"]]),
    chunk([[0, {}, "length"]]),
  ]);
  checkChatStream(chat().slice(0, 2), { aborted: true });
  checkChatStream(chat().slice(0, 2), { failed: true });
});

const delta = (chunks, index) => chunks[index].choices[0].delta;
const brokenChats = [
  ["another id", (c) => void (c[1].id = "x"), /ids changed/],
  ["another object", (c) => void (c[1].object = "chat.completion"), /strictly equal/],
  ["no role", (c) => void delete delta(c, 0).role, /no role/],
  ["a first delta with text", (c) => void (delta(c, 0).content = ""), /has content/],
  ["a second role", (c) => void (delta(c, 1).role = "assistant"), /second role/],
  ["no finish_reason", (c) => c.slice(0, -1), /no finish_reason/],
  ["no finish_reason key", (c) => void delete c[1].choices[0].finish_reason, /without finish_reason/],
  ["two finish_reasons", (c) => [...c, c.at(-1)], /after finish_reason/],
  ["a finish_reason that nobody knows", (c) => void (c.at(-1).choices[0].finish_reason = "eos"), /finish_reason eos/],
  ["finish_reason with text", (c) => void (delta(c, 2).content = "b"), /with a delta/],
  ["usage that nobody asked for", (c) => counted(c), /nobody asked/, { usage: false }],
  ["no usage", (c) => c.map((each) => ({ ...each, usage: null })), /no usage/, { usage: true }],
  [
    "usage early",
    (c) => [...c.map((each) => ({ ...each, usage })), chunk([], { usage })],
    /before the last/,
    { usage: true },
  ],
  ["usage that does not add up", (c) => [...c, chunk([], { usage: { ...usage, total_tokens: 4 } })], /strictly equal/],
  ["a chunk after the usage", (c) => [...counted(c), c[1]], /after the usage|in the middle/],
  ["an error key", (c) => void (c[1].error = {}), /error key/],
  ["choices with a hole", (c) => c.forEach(({ choices }) => choices[0].index++), /not dense/],
  ["half a character", (c) => void (delta(c, 1).content = "\ude00"), /half a character/],
  ["a call and stop", () => [...calls().slice(0, 3), chunk([[0, {}, "stop"]])], /finish_reason stop/],
  ["tool_calls without a call", (c) => void (c.at(-1).choices[0].finish_reason = "tool_calls"), /without a call/],
  [
    "a call without an id",
    () => [chunk([[0, first]]), chunk([[0, { tool_calls: [{ ...called, id: "" }] }]])],
    /without id/,
  ],
  [
    "a call that begins with arguments",
    () => [chunk([[0, first]]), chunk([[0, { tool_calls: [{ ...called, function: { name: "f", arguments: "{" } }] }]])],
    /has arguments/,
  ],
  [
    "a call from index 1",
    () => [chunk([[0, first]]), chunk([[0, { tool_calls: [{ ...called, index: 1 }] }]])],
    /not dense/,
  ],
  [
    "a piece with a type",
    () => [...calls().slice(0, 2), chunk([[0, { tool_calls: [{ ...piece, type: "function" }] }]])],
    /piece of a call/,
  ],
  ["text after a call", () => [...calls().slice(0, 3), chunk([[0, { content: "a" }]])], /text after a call/],
];
for (const [name, spoil, said, options] of brokenChats)
  test(`a broken chat stream is seen: ${name}`, () => {
    const chunks = chat();
    assert.throws(
      () => checkChatStream(spoil(chunks) ?? chunks, options),
      (error) => {
        assert.match(error.message, said);
        return true;
      },
    );
  });

test("streams of the older completions", () => {
  const text = (piece, finish_reason = null) => ({
    ...chunk([]),
    object: "text_completion",
    choices: [{ index: 0, text: piece, logprobs: null, finish_reason }],
  });
  assert.equal(checkCompletionStream([text("a"), text("b"), text("", "stop")]), "ab");
  for (const [chunks, said] of [
    [[text("a")], /no finish_reason/],
    [[text("", "tool_calls")], /finish_reason tool_calls/],
    [[text(null), text("", "stop")], /without text/],
    [[text("", "stop"), text("a")], /after finish_reason/],
  ])
    assert.throws(
      () => checkCompletionStream(chunks),
      (error) => said.test(error.message),
    );
});

test("frames", () => {
  const take = (...chunks) => {
    const frames = { done: false, failed: false };
    for (const each of chunks) takeChunk(frames, { push() {} }, each);
    return frames;
  };
  const event = 'event: a\ndata: {"type":"a"}\n\n';
  const error = 'data: {"error":{"message":"m","type":"t","param":null,"code":null}}\n\n';
  assert.deepEqual(take(event, "data: {}\n\n", "data: [DONE]\n\n"), { done: true, failed: false });
  assert.deepEqual(take(error, "data: [DONE]\n\n"), { done: true, failed: true });
  for (const [said, ...chunks] of [
    [/no LF/, "data: {}\r\n\r\n"],
    [/no LF/, 'data: {"a":"\u2028"}\n\n'],
    [/one whole event/, event + event],
    [/one whole event/, "data: {}\n"],
    [/one whole event/, `id: 1\n${event}`],
    [/one whole event/, `: comment\n\n`],
    [/its type/, 'event: b\ndata: {"type":"a"}\n\n'],
    [/its type/, 'data: {"type":"a"}\n\n'],
    [/after \[DONE\]/, "data: [DONE]\n\n", event],
    [/after an error/, error, event],
    [/keys of an error/, 'data: {"error":{}}\n\n'],
  ])
    assert.throws(
      () => take(...chunks),
      (reason) => said.test(reason.message),
      String(said),
    );
});

test("answers: request id, content type, the shape of errors", async () => {
  const id = { "x-request-id": `req_${"0".repeat(32)}` };
  const json = { ...id, "content-type": "application/json" };
  const error = { message: "m", type: "t", param: null, code: null };
  const refused = { status: 400, headers: { ...json, "x-should-retry": "false" } };
  const ask = (body, init) => auditFetch(async () => new Response(body, init), new Audit())("http://x/responses");
  await ask("{}", { headers: json });
  await ask(JSON.stringify({ error }), refused);
  checkErrorBody({ error });
  for (const [said, body, init] of [
    [/no x-request-id/, "{}", { headers: { "content-type": "application/json" } }],
    [/application/, "{}", { headers: { ...id, "content-type": "text/html" } }],
    [/x-should-retry/, JSON.stringify({ error }), { status: 400, headers: json }],
    [/retry/, JSON.stringify({ error }), { status: 400, headers: { ...refused.headers, "retry-after-ms": "1" } }],
    [/keys of an error/, JSON.stringify({ error: { message: "m" } }), refused],
    [/error.code/, JSON.stringify({ error: { ...error, code: 1 } }), refused],
    [/the response has no id/, JSON.stringify({ object: "response" }), { headers: json }],
  ])
    await assert.rejects(ask(body, init), (reason) => said.test(reason.message), String(said));
});

test("a violation that no reader looks at fails the test in its end", () => {
  let end;
  const audit = new Audit({ after: (hook) => (end = hook) });
  audit.watch((events) => checkResponseStream(events)).push({ type: "response.created", sequence_number: 1 });
  assert.throws(end, /sequence_number/);
});

test("every test makes its clients by the harness", () => {
  const folder = dirname(fileURLToPath(import.meta.url));
  // These files have a reason: the client is in the text of another program, the helper's start itself is tested, or answers
  // lack the counts that the harness demands.
  const exempt = ["fetch", "install", "lifecycle", "options", "package", "pull", "restricted", "uncounted"];
  const clients = /\bcreateClient\(|\bcreateFetch\(|\bnew (Responses|ChatCompletions|Completions)\(/;
  const files = readdirSync(folder).filter((each) => each.endsWith(".test.mjs"));
  const made = files.filter((each) => clients.test(readFileSync(join(folder, each), "utf8")));
  assert.deepEqual(made.sort(), exempt.map((each) => `${each}.test.mjs`));
});
