import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { createFetch } from "../../js-shim/dist/esm/fetch.js";
import { checkResponseStream } from "./support/invariants.mjs";
import { closingEvents, openingEvents, StubTransport } from "./support/transport.mjs";

const post = (body, more) => ({
  method: "POST",
  body: typeof body === "string" ? body : JSON.stringify(body),
  ...more,
});

function setUp() {
  const transport = new StubTransport();
  return { transport, fetch: createFetch(transport) };
}

/** Starts a fetch and waits until its call has reached the transport. */
async function begin(input, init) {
  const { transport, fetch } = setUp();
  const arrived = transport.next();
  const response = fetch(input, init);
  response.catch(() => {});
  return { response, call: await arrived, transport };
}

/** The server-sent events in a body. Checks that each chunk is whole events, and the framing of each. */
async function readEvents(response) {
  const events = [];
  for await (const chunk of response.body) {
    const text = Buffer.from(chunk).toString("utf8");
    assert.ok(text.endsWith("\n\n"), "a chunk with part of an event");
    assert.ok(!text.includes("\r"));
    for (const frame of text.slice(0, -2).split("\n\n")) events.push(frame);
  }
  return events;
}

test("any prefix of the URL will do, and every kind of input", async () => {
  const body = JSON.stringify({ input: "x" });
  const stream = () => new Blob([body]).stream();
  for (const [input, init] of [
    ["http://fm-proxy/v1/responses", post(body)],
    ["https://api.openai.com/v1/responses?x=1", post(body, { headers: new Headers({ a: "b" }) })],
    ["/responses", post(body, { headers: [["a", "b"]] })],
    ["responses/", { method: "post", body, headers: { a: "b" } }],
    [new URL("http://x/a/b/c/responses"), { method: "POST", body: new TextEncoder().encode(body) }],
    ["http://x/responses", { method: "POST", body: new TextEncoder().encode(body).buffer }],
    ["http://x/responses", { method: "POST", body: new Blob([body]) }],
    ["http://x/responses", { method: "POST", body: stream(), duplex: "half" }],
    [new Request("http://x/responses", { method: "POST", body }), undefined],
    [new Request("http://x/responses", { method: "POST", body: "{}" }), { body }],
  ]) {
    const { response, call } = await begin(input, init);
    assert.equal(call.method, "responses.create");
    assert.deepEqual(call.params, { input: "x" });
    call.resolve({ response: { id: "resp_1" } });
    const answer = await response;
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get("content-type"), "application/json");
    assert.match(answer.headers.get("x-request-id"), /^req_/);
    assert.deepEqual(await answer.json(), { id: "resp_1" });
  }
});

const refused = [
  ["unknown path", "http://x/v1/embeddings", post({}), 404, "unknown_url"],
  ["no path", "http://x", {}, 404, "unknown_url"],
  ["a path that only ends alike", "http://x/myresponses", post({}), 404, "unknown_url"],
  ["wrong method", "http://x/v1/responses", { method: "GET" }, 405, "method_not_allowed"],
  ["wrong method of models", "http://x/models", post({}), 405, "method_not_allowed"],
  ["no JSON", "http://x/responses", post("{"), 400, "invalid_body"],
  ["no body", "http://x/responses", { method: "POST" }, 400, "invalid_body"],
  ["no object", "http://x/chat/completions", post("[1]"), 400, "invalid_body"],
];
for (const [name, url, init, status, code] of refused) {
  test(`refused without a call: ${name}`, async () => {
    const { transport, fetch } = setUp();
    const response = await fetch(url, init);
    assert.equal(response.status, status);
    assert.equal(response.headers.get("content-type"), "application/json");
    assert.equal(response.headers.get("x-should-retry"), "false");
    assert.match(response.headers.get("x-request-id"), /^req_/);
    const { error } = await response.json();
    assert.deepEqual(Object.keys(error).sort(), ["code", "message", "param", "type"]);
    assert.equal(error.code, code);
    assert.equal(transport.calls.length, 0);
  });
}

test("a Responses stream: one whole event a chunk, the headers with the first one, [DONE] at the end", async () => {
  const { response, call } = await begin("http://x/responses", post({ stream: true, input: "x" }));
  const all = [...openingEvents('a\n\u2028"é'), ...closingEvents('a\n\u2028"é')];
  let resolved = false;
  response.then(() => (resolved = true));
  await new Promise(setImmediate);
  assert.equal(resolved, false, "the headers came before the first event");
  call.event(all[0]);
  const answer = await response;
  assert.equal(answer.status, 200);
  assert.match(answer.headers.get("content-type"), /^text\/event-stream/);
  assert.match(answer.headers.get("x-request-id"), /^req_/);
  for (const event of all.slice(1)) call.event(event);
  call.resolve({ response: all.at(-1).response });
  const frames = await readEvents(answer);
  assert.equal(frames.pop(), "data: [DONE]");
  const events = frames.map((frame) => {
    const [, type, data] = /^event: (.+)\ndata: (.+)$/.exec(frame);
    assert.equal(JSON.parse(data).type, type);
    return JSON.parse(data);
  });
  assert.deepEqual(events, all);
  checkResponseStream(events);
});

test("each event can be read before the next one is there", async () => {
  const { response, call } = await begin("http://x/responses", post({ stream: true, input: "x" }));
  const all = openingEvents("abc");
  call.event(all[0]);
  const reader = (await response).body.getReader();
  await reader.read();
  for (const event of all.slice(1)) {
    call.event(event);
    const { value } = await reader.read();
    assert.ok(Buffer.from(value).toString().startsWith(`event: ${event.type}\n`));
  }
  await reader.cancel();
  assert.equal(call.cancels, 1);
});

for (const path of ["responses", "chat/completions"]) {
  for (const stream of [false, true]) {
    test(`${path}, stream ${stream}: what fails before the stream is an answer with its status`, async () => {
      const openai = {
        status: 400,
        type: "invalid_request_error",
        code: "integer_below_min_value",
        param: "max_output_tokens",
      };
      const { response, call } = await begin(`http://x/${path}`, post({ stream, input: "x" }));
      call.reject("INVALID_REQUEST", "too small", { openai });
      const answer = await response;
      assert.equal(answer.status, 400);
      assert.equal(answer.headers.get("content-type"), "application/json");
      assert.equal(answer.headers.get("x-should-retry"), "false");
      const { status: _, ...error } = openai;
      assert.deepEqual(await answer.json(), { error: { ...error, message: "too small" } });
    });
  }
}

test("only want of room asks to be tried again", async () => {
  const codes = {
    RATE_LIMITED: 429,
    OVERLOADED: 503,
    UNAVAILABLE: 503,
    TIMEOUT: 408,
    INTERNAL: 500,
    SPAWN_FAILED: 503,
    HELPER_EXITED: 500,
  };
  for (const [code, status] of Object.entries(codes)) {
    const { response, call } = await begin("http://x/responses", post({ input: "x" }));
    call.reject(code);
    const answer = await response;
    const again = code === "RATE_LIMITED" || code === "OVERLOADED";
    assert.equal(answer.status, status);
    assert.equal(answer.headers.get("x-should-retry"), String(again), code);
    assert.equal(answer.headers.has("retry-after-ms"), again, code);
  }
});

test("a helper that dies in mid-stream: error and response.failed, with the text so far, and one [DONE]", async () => {
  const { response, call } = await begin("http://x/responses", post({ stream: true, input: "x" }));
  for (const event of openingEvents("half an ans")) call.event(event);
  call.reject("HELPER_EXITED", "The helper was ended by SIGSEGV.");
  await new Promise(setImmediate);
  call.event(openingEvents("late").at(-1));
  const frames = await readEvents(await response);
  assert.equal(frames.filter((frame) => frame === "data: [DONE]").length, 1);
  assert.equal(frames.pop(), "data: [DONE]");
  const events = frames.map((frame) => JSON.parse(frame.split("\ndata: ")[1]));
  const final = checkResponseStream(events);
  assert.deepEqual(
    events.slice(-2).map(({ type }) => type),
    ["error", "response.failed"],
  );
  assert.equal(final.output[0].content[0].text, "half an ans");
  assert.match(final.error.message, /SIGSEGV/);
});

const chunkOf = (delta, finish_reason = null) => ({
  id: "chatcmpl_1",
  object: "chat.completion.chunk",
  created: 1,
  model: "m",
  choices: [{ index: 0, delta, finish_reason }],
});

test("a chat stream: data lines and [DONE]", async () => {
  const { response, call } = await begin("http://x/chat/completions", post({ stream: true, messages: [] }));
  const chunks = [chunkOf({ role: "assistant", content: null }), chunkOf({ content: "hi" }), chunkOf({}, "stop")];
  chunks.forEach(call.chunk);
  call.resolve({ completion: {} });
  assert.deepEqual(await readEvents(await response), [
    ...chunks.map((chunk) => `data: ${JSON.stringify(chunk)}`),
    "data: [DONE]",
  ]);
});

test("a chat stream that fails in the middle tells it in a frame", async () => {
  const { response, call } = await begin("http://x/chat/completions", post({ stream: true, messages: [] }));
  call.chunk(chunkOf({ role: "assistant", content: null }));
  call.reject("TIMEOUT", "The limit total of 5 ms is over.");
  const frames = await readEvents(await response);
  assert.equal(frames.at(-1), "data: [DONE]");
  const { error } = JSON.parse(frames.at(-2).slice("data: ".length));
  assert.deepEqual(error, {
    message: "The limit total of 5 ms is over.",
    type: "timeout_error",
    param: null,
    code: "timeout",
  });
});

test("models: the list, one of it by its percent-encoded id, and none", async () => {
  const data = [{ id: "org/a b", object: "model", created: 1, owned_by: "me" }];
  for (const [path, status, check] of [
    ["models", 200, (body) => assert.deepEqual(body, { object: "list", data })],
    ["models/org%2Fa%20b", 200, (body) => assert.deepEqual(body, data[0])],
    ["models/other", 404, ({ error }) => assert.equal(error.code, "model_not_found")],
    ["models/%zz", 404, ({ error }) => assert.match(error.message, /'%zz'/)],
  ]) {
    const { response, call } = await begin(`http://x/v1/${path}`);
    assert.equal(call.method, "models.list");
    call.resolve({ object: "list", data });
    const answer = await response;
    assert.equal(answer.status, status);
    check(await answer.json());
  }
});

test("cancel by id", async () => {
  const { response, call } = await begin("http://x/v1/responses/resp%5F1/cancel", { method: "POST" });
  assert.equal(call.method, "responses.cancel");
  assert.deepEqual(call.params, { id: "resp_1" });
  call.resolve({ response: { id: "resp_1", status: "cancelled" } });
  assert.equal((await (await response).json()).status, "cancelled");
});

const listeners = (signal) => getEventListeners(signal, "abort").length;

/** J13: the three moments of an abort, for both ways to give a signal, with and without stream. */
for (const stream of [false, true]) {
  test(`an abort before the call, stream ${stream}: rejected, nothing is called`, async () => {
    const { transport, fetch } = setUp();
    const signal = AbortSignal.abort();
    await assert.rejects(fetch("http://x/responses", post({ stream, input: "x" }, { signal })), { name: "AbortError" });
    assert.equal(transport.calls.length, 0);
  });

  for (const way of ["init", "Request"]) {
    test(`an abort before the headers, signal in ${way}, stream ${stream}: rejected, one cancel`, async () => {
      const controller = new AbortController();
      const init = post({ stream, input: "x" }, { signal: controller.signal });
      const { response, call } = await begin(
        ...(way === "init" ? ["http://x/responses", init] : [new Request("http://x/responses", init)]),
      );
      controller.abort();
      await assert.rejects(response, { name: "AbortError" });
      assert.equal(call.cancels, 1);
      call.reject("CANCELLED");
      await new Promise(setImmediate);
      if (way === "init") assert.equal(listeners(controller.signal), 0, "a listener is left");
    });
  }
}

test("an abort rejects with the signal's own reason", async () => {
  const controller = new AbortController();
  const { response } = await begin("http://x/responses", post({ input: "x" }, { signal: controller.signal }));
  const reason = new Error("enough");
  controller.abort(reason);
  await assert.rejects(response, (error) => error === reason);
});

test("an abort after the headers breaks the body, once, and late events are dropped", async () => {
  const controller = new AbortController();
  const { response, call } = await begin(
    "http://x/responses",
    post({ stream: true, input: "x" }, { signal: controller.signal }),
  );
  const events = openingEvents("ab");
  events.slice(0, -1).forEach(call.event);
  const answer = await response;
  controller.abort();
  call.event(events.at(-1));
  await assert.rejects(readEvents(answer), { name: "AbortError" });
  call.reject("CANCELLED");
  await new Promise(setImmediate);
  assert.equal(call.cancels, 1);
  assert.equal(listeners(controller.signal), 0);
});

test("cancelling the body stops the request, once", async () => {
  const controller = new AbortController();
  const { response, call } = await begin(
    "http://x/chat/completions",
    post({ stream: true, messages: [] }, { signal: controller.signal }),
  );
  call.chunk(chunkOf({ role: "assistant", content: null }));
  await (await response).body.cancel();
  controller.abort();
  call.chunk(chunkOf({ content: "late" }));
  call.reject("CANCELLED");
  await new Promise(setImmediate);
  assert.equal(call.cancels, 1);
  assert.equal(listeners(controller.signal), 0);
});

test("an abort after the end does nothing", async () => {
  for (const stream of [false, true]) {
    const controller = new AbortController();
    const { response, call } = await begin(
      "http://x/responses",
      post({ stream, input: "x" }, { signal: controller.signal }),
    );
    const events = [...openingEvents("a"), ...closingEvents("a")];
    if (stream) events.forEach(call.event);
    call.resolve({ response: events.at(-1).response });
    const answer = await response;
    await new Promise(setImmediate);
    assert.equal(listeners(controller.signal), 0, "a listener is left");
    controller.abort();
    assert.notEqual(await answer.text(), "");
    assert.equal(call.cancels, 0);
  }
});
