// The fallback answers for every way to make a request: plain calls, OpenAI's SDK by client.fetch, streams. The answer names the
// fallback as its source.
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI6 from "openai-6";
import OpenAI7 from "openai-7";
import { eventsOf } from "../../js-shim/dist/esm/replay.js";
import { alive, connection, deltas, drain, fakeClient, script, stubClient, until } from "./support/helper.mjs";
import { checkResponse, checkResponseStream } from "./support/invariants.mjs";
import { WAIT } from "./support/patience.mjs";

const NO_MODEL = { capabilities: { available: false, reason_code: "MODEL_NOT_READY", detail: "there is no model" } };
const messages = [{ role: "user", content: "x" }];
const vector = [0.5, -1, 2];

/** What fallback functions return: OpenAI's objects, with the members of the answer; or only the text. */
const FALLBACKS = {
  "the API's own objects": ({ method }) =>
    ({
      "responses.create": { output: [MESSAGE] },
      "chat.completions.create": { choices: [{ index: 0, message: SAID, finish_reason: "stop" }] },
      "completions.create": { choices: [{ index: 0, text: "elsewhere", finish_reason: "stop", logprobs: null }] },
      "embeddings.create": { data: [{ embedding: vector }] },
    })[method],
  "a text": ({ method }) => (method === "embeddings.create" ? { data: [{ embedding: vector }] } : "elsewhere"),
  "a part of a Response": async ({ method }) =>
    method === "embeddings.create" ? { data: [{ embedding: vector }] } : { output_text: "elsewhere" },
};
const SAID = { role: "assistant", content: "elsewhere" };
const TEXT = { type: "output_text", text: "elsewhere", annotations: [], logprobs: [] };
const MESSAGE = { id: "msg_1", type: "message", role: "assistant", status: "completed", content: [TEXT] };

test("a request that must stay on this machine has no fallback", async (t) => {
  const asked = [];
  const client = stubClient(t, NO_MODEL, { fallback: ({ method }) => asked.push(method) && "elsewhere" });
  const fm = { local_only: true };
  const calls = [
    client.responses.create({ input: "x", fm }),
    client.chat.completions.create({ messages, fm }),
    client.completions.create({ prompt: "x", fm }),
    client.embeddings.create({ input: "x", fm }),
    client.responses.stream({ input: "x", fm }).finalResponse(),
    client.generate({ input: "x", request: { fm } }),
  ];
  for (const call of calls) await assert.rejects(call, { code: "UNAVAILABLE" });
  const body = JSON.stringify({ input: "x", fm });
  const response = await client.fetch("http://x/v1/responses", { method: "POST", body });
  assert.equal(response.status, 404);
  assert.equal((await client.safe.responses.create({ input: "x", fm })).source, undefined);
  assert.deepEqual(asked, []);
});

for (const [what, fallback] of Object.entries(FALLBACKS)) {
  test(`plain calls: a fallback that gives ${what}`, async (t) => {
    const client = stubClient(t, NO_MODEL, { fallback });
    const response = await client.responses.create({ input: "x", metadata: { a: "b" } });
    checkResponse(response);
    assert.deepEqual([response.output_text, response.fm.source, response.metadata], ["elsewhere", "fallback", { a: "b" }]);
    const chat = await client.chat.completions.create({ messages, model: "default" });
    assert.deepEqual([chat.choices[0].message.content, chat.fm.source, chat.model], ["elsewhere", "fallback", "default"]);
    const completion = await client.completions.create({ prompt: "x" });
    assert.deepEqual([completion.choices[0].text, completion.fm.source], ["elsewhere", "fallback"]);
    const { data, fm } = await client.embeddings.create({ input: "x" });
    assert.deepEqual([data[0].embedding, fm.source], [vector, "fallback"]);
    assert.deepEqual(client.received("responses.create"), []);
  });

  test(`plain streams: a fallback that gives ${what}`, async (t) => {
    const client = stubClient(t, NO_MODEL, { fallback });
    const stream = client.responses.stream({ input: "x" });
    const { events, error } = await drain(stream);
    assert.equal(error, null);
    assert.equal(checkResponseStream(events).fm.source, "fallback");
    assert.equal(deltas(events), "elsewhere");
    assert.equal((await stream.finalResponse()).output_text, "elsewhere");
    const chat = client.chat.completions.create({ messages, stream: true, stream_options: { include_usage: false } });
    const chunks = (await drain(chat)).events;
    assert.equal(chunks.map(({ choices }) => choices[0].delta.content ?? "").join(""), "elsewhere");
    assert.equal(chunks[0].fm.source, "fallback");
    assert.equal(chunks.at(-1).choices[0].finish_reason, "stop");
    assert.equal((await chat.finalCompletion()).choices[0].message.content, "elsewhere");
    const pieces = await drain(client.completions.create({ prompt: "x", stream: true }));
    assert.equal(pieces.events.map(({ choices }) => choices[0].text).join(""), "elsewhere");
  });
}

for (const OpenAI of [OpenAI6, OpenAI7]) {
  const version = OpenAI === OpenAI6 ? 6 : 7;
  for (const kind of ["a function", "a client"]) {
    test(`OpenAI's SDK ${version} by client.fetch: the fallback is ${kind}`, { timeout: WAIT }, async (t) => {
      const cloud = fakeClient(t);
      const fallback = kind === "a client" ? new OpenAI(connection(cloud)) : FALLBACKS["a part of a Response"];
      const client = stubClient(t, NO_MODEL, { fallback, fallbackModel: "fake" });
      const openai = new OpenAI(connection(client));
      const text = kind === "a client" ? "one two" : "elsewhere";
      const asked = await openai.responses.create({ input: "one two" }).withResponse();
      assert.equal(asked.data.output_text, text);
      assert.equal(asked.response.headers.get("x-fm-source"), "fallback");
      const stream = openai.responses.stream({ input: "one two" });
      const { events } = await drain(stream);
      checkResponseStream(events);
      assert.equal((await stream.finalResponse()).output_text, text);
      const chat = openai.chat.completions.stream({ model: "default", messages: [{ role: "user", content: "one two" }] });
      assert.equal((await chat.finalChatCompletion()).choices[0].message.content, text);
      const raw = await openai.completions.create({ model: "default", prompt: "one two", stream: true }).asResponse();
      assert.equal(raw.headers.get("x-fm-source"), "fallback");
      await raw.text();
      const { data } = await openai.embeddings.create({ model: "default", input: "one two" });
      if (kind === "a function") assert.deepEqual([...data[0].embedding], vector);
      else assert.ok(data[0].embedding.length > 1 && data[0].embedding.every(Number.isFinite));
    });
  }
}

test("an answer of the local model says so in a header, and has no source in fm", async (t) => {
  const client = stubClient(t, {}, { fallback: () => "elsewhere" });
  const body = JSON.stringify({ input: "one two" });
  for (const more of [{}, { stream: true }]) {
    const all = JSON.stringify({ ...JSON.parse(body), ...more });
    const response = await client.fetch("http://x/responses", { method: "POST", body: all });
    assert.equal(response.headers.get("x-fm-source"), "local");
    await response.text();
  }
  assert.equal((await client.responses.create({ input: "x" })).fm, undefined);
});

for (const code of ["INVALID_REQUEST", "NOT_FOUND", "GUARDRAIL"]) {
  test(`${code} is no failure that a fallback answers: plain, streamed, by fetch`, async (t) => {
    let asked = 0;
    const client = stubClient(t, {}, { fallback: () => void asked++ });
    const input = script({ fail: [code, "why", { status: 400 }] });
    await assert.rejects(client.responses.create({ input }), { code });
    assert.equal((await drain(client.responses.stream({ input }))).error.code, code);
    const { status } = await client.fetch("http://x/responses", { method: "POST", body: JSON.stringify({ input }) });
    assert.equal(status, 400);
    assert.equal(asked, 0);
  });
}

test("a fallback that fails too: the local error, with what both said; a stock client sees its status", async (t) => {
  for (const [fallback, said] of [
    [() => Promise.reject(new Error("no money left")), /no model\. The fallback failed too: no money left/],
    [() => undefined, /no model\. The .*it gave nothing/],
    [() => ({ answer: "x" }), /it gave no Response, which has the member 'output'/],
    [{}, /the fallback has no responses\.create/],
  ]) {
    const client = stubClient(t, NO_MODEL, { fallback });
    const isBoth = ({ code, detail, reasonCode }) => {
      assert.deepEqual([code, reasonCode], ["UNAVAILABLE", "MODEL_NOT_READY"]);
      assert.match(detail, said);
      return true;
    };
    await assert.rejects(client.responses.create({ input: "x" }), isBoth);
    await assert.rejects(client.responses.stream({ input: "x" }).finalResponse(), isBoth);
    const response = await client.fetch("http://x/responses", { method: "POST", body: '{"input":"x"}' });
    const { error } = await response.json();
    assert.match(error.message, said);
    assert.equal(response.headers.get("x-fm-source"), null);
  }
  const client = stubClient(t, NO_MODEL, { fallback: () => ({ choices: [] }) });
  await assert.rejects(client.chat.completions.create({ messages: [] }), /it gave no [a-z ]+, which has the member 'choices'/);
});

test("a conversation does not go on after a text of a fallback", async (t) => {
  const client = stubClient(t, NO_MODEL, { fallback: () => "elsewhere" });
  const { id } = await client.responses.create({ input: "My name is Bob." });
  const wrong = { code: "INVALID_REQUEST", message: /Invalid 'previous_response_id': the fallback answered resp_.* in `input`/ };
  await assert.rejects(client.responses.create({ input: "Who am I?", previous_response_id: id }), wrong);
  assert.equal((await drain(client.responses.stream({ input: "x", previous_response_id: id }))).error.code, wrong.code);
});

test("a fallback that asks its own client fails, once; another client's may", { timeout: WAIT }, async (t) => {
  let asked = 0;
  const clients = [0, 1].map((at) => {
    const fallback = ({ body }) => (asked++, clients[1 - at].responses.create(body));
    return stubClient(t, NO_MODEL, { fallback });
  });
  const own = stubClient(t, NO_MODEL, { fallback: ({ body }) => (asked++, own.fetch("http://x/responses", post(body))) });
  const post = (body) => ({ method: "POST", body: JSON.stringify(body) });
  await assert.rejects(own.responses.create({ input: "x" }), { code: "UNAVAILABLE" });
  assert.equal(asked, 1);
  await assert.rejects(clients[0].responses.create({ input: "x" }), { code: "UNAVAILABLE" });
  assert.equal(asked, 3);
  const later = stubClient(t, NO_MODEL, {
    fallback: ({ body }) => {
      if (body.input === "first") setTimeout(() => resolve(later.responses.create({ input: "second" })), 5);
      return body.input;
    },
  });
  let resolve;
  const second = new Promise((it) => (resolve = it));
  await later.responses.create({ input: "first" });
  assert.equal((await second).output_text, "second", "what a fallback has begun may ask when it is over");
});

test("many requests at once that fall back, or have one signal: Node has no warning", { timeout: WAIT }, async (t) => {
  const warnings = [];
  const onWarning = (warning) => warnings.push(warning.name);
  process.on("warning", onWarning);
  t.after(() => process.off("warning", onWarning));
  const client = stubClient(t, NO_MODEL, { fallback: () => new Promise((resolve) => setTimeout(resolve, 20, "elsewhere")) });
  const { signal } = new AbortController();
  await Promise.all(Array.from({ length: 12 }, () => client.responses.create({ input: "x" }, { signal })));
  await new Promise(setImmediate); // warnings would come now
  assert.deepEqual(warnings, []);
});

test("a fallback gets the body as the host gave it, and a signal that follows the request's", { timeout: WAIT }, async (t) => {
  const calls = [];
  const fallback = (call) => (calls.push(call), call.body.input === "hang" ? new Promise(() => {}) : "elsewhere");
  const client = stubClient(t, NO_MODEL, { fallback });
  await client.responses.create({ input: "x", top_k: 3 });
  await client.safe.responses.create({ input: "x" });
  await drain(client.responses.stream({ input: "x" }));
  assert.deepEqual(calls.map(({ body }) => body), [{ input: "x", top_k: 3 }, { input: "x" }, { input: "x", stream: true }]);
  const controller = new AbortController();
  const hanging = client.responses.create({ input: "hang" }, { signal: controller.signal });
  setTimeout(() => controller.abort(new Error("never mind")), 50);
  await assert.rejects(hanging, /never mind/);
  assert.equal(calls.at(-1)?.signal.aborted, calls.length === 4);
});

test("close ends the requests whose fallback is being asked, and aborts its signal", { timeout: WAIT }, async (t) => {
  const calls = [];
  // A fallback that ignores the signal, and a stream that hangs after its first event.
  const hung = (call) => (calls.push(call), call.body.stream ? stream() : new Promise(() => {}));
  const stream = async function* () {
    yield { choices: [{ index: 0, delta: { content: "a" } }] };
    await new Promise(() => {});
  };
  const client = stubClient(t, NO_MODEL, { fallback: hung });
  const chat = client.chat.completions.create({ messages, stream: true });
  const closed = Promise.all([
    assert.rejects(client.responses.create({ input: "x" }), { code: "CLOSED" }),
    assert.rejects(client.generate({ input: "x" }), { code: "CLOSED" }),
    drain(chat).then(({ error }) => assert.equal(error.code, "CLOSED")),
    client.safe.responses.create({ input: "x" }).then(({ error }) => assert.equal(error.code, "CLOSED")),
  ]);
  await until(() => calls.length === 4, "all four to be asked");
  await chat; // now the stream's first event has come
  await client.close();
  await closed;
  assert.ok(calls.every(({ signal }) => signal.aborted));
  await assert.rejects(client.responses.create({ input: "x" }), { code: "CLOSED" });
  assert.equal(calls.length, 4);
});

test("an aborted request asks no fallback, whatever becomes of it", { timeout: WAIT }, async (t) => {
  let asked = 0;
  const client = stubClient(t, {}, { fallback: () => void asked++ });
  const { pid } = await client.health.ping();
  const controller = new AbortController();
  const call = client.responses.create({ input: script({ hang: "hard" }) }, { signal: controller.signal });
  await until(() => client.received("responses.create").length === 1, "the request's arrival");
  controller.abort();
  await assert.rejects(call, { name: "AbortError" });
  process.kill(pid, "SIGKILL");
  await until(() => !alive(pid), "its end");
  await client.health.ping();
  assert.equal(asked, 0);
});

test("vectors are in the form that was asked for", async (t) => {
  const client = stubClient(t, NO_MODEL, { fallback: FALLBACKS["a text"] });
  const { data } = await client.embeddings.create({ input: "x", encoding_format: "base64" });
  assert.deepEqual([...new Float32Array(new Uint8Array(Buffer.from(data[0].embedding, "base64")).buffer)], vector);
});

test("a stream that has begun stays the local model's", async (t) => {
  let asked = 0;
  const client = stubClient(t, {}, { fallback: () => void asked++ });
  const { events, error } = await drain(client.responses.stream({ input: script("half", { error: "broken" }) }));
  checkResponseStream(events);
  assert.deepEqual([error.code, error.partialText, asked], ["INTERNAL", "half", 0]);
});

test("a fallback's stream that breaks: what came, and its error", async (t) => {
  const [created, progress] = eventsOf({ ...(await stubClient(t).responses.create({ input: "x" })) });
  const fallback = async function* () {
    yield created;
    yield progress;
    throw new Error("the line is cut");
  };
  const client = stubClient(t, NO_MODEL, { fallback });
  const { events, error } = await drain(client.responses.stream({ input: "x" }));
  assert.equal(checkResponseStream(events).status, "failed");
  assert.match(error.detail, /the line is cut/);
  const cut = stubClient(t, NO_MODEL, { fallback: async function* () { yield created; } });
  assert.match((await drain(cut.responses.stream({ input: "x" }))).error.detail, /^The fallback failed: its stream broke off/);
});

test("an invalid answer of a fallback: the error has both reasons, in each kind of request", async (t) => {
  const cycle = { output_text: "x" };
  cycle.self = cycle;
  const event = { type: "response.output_text.delta", delta: "x" };
  const rows = [
    [() => ({ output_text: "x", n: 10n }), /its answer can't be written as JSON \(.*BigInt\)$/],
    [() => cycle, /its answer can't be written as JSON \(.*circular.*\)$/],
    [async function* () { yield event; }, /its stream begins without a Response \(an event response\.created\)$/, true],
  ];
  for (const [fallback, why, onlyStream] of rows) {
    const client = stubClient(t, NO_MODEL, { fallback });
    const sdk = new OpenAI7({ apiKey: "x", baseURL: "http://x/v1", fetch: client.fetch, maxRetries: 0 });
    for (const stream of onlyStream ? [true] : [false, true]) {
      const expected = { status: 404, code: "model_unavailable", message: why };
      await assert.rejects(sdk.responses.create({ input: "x", stream }), expected);
    }
    const { error } = await drain(client.responses.stream({ input: "x" }));
    assert.match(error.detail, /^there is no model\. The fallback failed too: /);
    assert.match(error.detail, why);
  }
  const wrongApi = stubClient(t, NO_MODEL, { fallback: async function* () { yield event; } });
  const noChunk = { message: /The fallback failed too: its stream has an event that is no chunk: 'choices' is missing$/ };
  for (const body of [{ messages }, { prompt: "x" }]) {
    const api = body.prompt ? wrongApi.completions : wrongApi.chat.completions;
    await assert.rejects(async () => { for await (const _ of api.create({ ...body, stream: true })); }, noChunk);
  }
});

test("generate asks the client's fallback in place of the model, and its own where it has one", async (t) => {
  const client = stubClient(t, NO_MODEL, { fallback: () => '{"a":1}' });
  const schema = { type: "object", properties: { a: { type: "integer" } }, required: ["a"] };
  assert.deepEqual(await client.generate({ input: "x", schema }), { value: { a: 1 }, source: "fallback", rejected: [] });
  const own = await client.generate({ input: "x", schema, fallback: () => ({ a: 2 }) });
  assert.deepEqual([own.value, own.source], [{ a: 2 }, "fallback"]);
});

test("a whole response as a stream: texts, refusals, calls, reasoning", () => {
  const base = { id: "x", status: "completed" };
  const output = [
    { ...base, id: "rs_1", type: "reasoning", summary: [] },
    { ...base, type: "message", role: "assistant", content: [TEXT, { type: "refusal", refusal: "no" }] },
    { ...base, id: "fc_1", type: "function_call", call_id: "call_1", name: "f", arguments: '{"a":1}' },
  ];
  const types = [...eventsOf({ id: "resp_1", status: "incomplete", output })].map(({ type }) => type.slice("response.".length));
  assert.deepEqual(types, [
    ...["created", "in_progress", "output_item.added", "output_item.done"],
    ...["output_item.added", "content_part.added", "output_text.delta", "output_text.done", "content_part.done"],
    ...["content_part.added", "refusal.delta", "refusal.done", "content_part.done", "output_item.done"],
    ...["output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"],
    "incomplete",
  ]);
});

test("a whole chat completion as a stream: reasoning, calls, usage", async (t) => {
  const call = { id: "call_1", type: "function", function: { name: "f", arguments: "{}" } };
  const message = { role: "assistant", content: null, reasoning_content: "hm", tool_calls: [call] };
  const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
  const fallback = () => ({ choices: [{ index: 0, message, finish_reason: "tool_calls" }], usage });
  const client = stubClient(t, NO_MODEL, { fallback });
  const stream = client.chat.completions.create({ messages, stream: true, stream_options: { include_usage: true } });
  const { events } = await drain(stream);
  assert.deepEqual(events.at(-1).usage, usage);
  const whole = await stream.finalCompletion();
  assert.deepEqual(whole.choices[0].message.tool_calls, [call]);
  assert.equal(whole.choices[0].finish_reason, "tool_calls");
});

test("a completion with several choices as a stream, and what the stream collects", async (t) => {
  const logprobs = (token, offset) => ({
    tokens: [token],
    token_logprobs: [-1],
    top_logprobs: [{ [token]: -1 }],
    text_offset: [offset],
  });
  const chunk = (index, text, finish_reason, probabilities = null) => ({
    choices: [{ index, text, finish_reason, logprobs: probabilities }],
  });
  const chunks = [
    chunk(0, "a", null, logprobs("a", 0)),
    chunk(0, "b", null, logprobs("b", 1)),
    chunk(0, "", "length"),
    chunk(1, "c", "stop", logprobs("c", 0)),
  ];
  const want = [
    {
      index: 0,
      text: "ab",
      finish_reason: "length",
      logprobs: { tokens: ["a", "b"], token_logprobs: [-1, -1], top_logprobs: [{ a: -1 }, { b: -1 }], text_offset: [0, 1] },
    },
    { index: 1, text: "c", finish_reason: "stop", logprobs: logprobs("c", 0) },
  ];
  const body = { prompt: ["x", "y"], logprobs: 0, stream: true };
  for (const fallback of [async function* () { yield* chunks; }, () => ({ choices: want })]) {
    const stream = stubClient(t, NO_MODEL, { fallback }).completions.create(body);
    const { events, error } = await drain(stream);
    assert.equal(error, null);
    const said = (index) => events.filter(({ choices }) => choices[0]?.index === index).map(({ choices }) => choices[0].text);
    assert.deepEqual([said(0).join(""), said(1).join("")], ["ab", "c"]);
    assert.deepEqual((await stream.finalCompletion()).choices, want);
  }
});
