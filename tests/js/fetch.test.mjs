// createFetch: requests by URL, the event streams that it writes, and what happens when a reader or the helper ends early.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { promisify } from "node:util";
import { ignoredHeader } from "../../js-shim/dist/esm/ignored.js";
import { checkResponseStream } from "./support/invariants.mjs";
import { closingEvents, openingEvents, stubFetch } from "./support/transport.mjs";

const post = (body, more) => ({
  method: "POST",
  body: typeof body === "string" ? body : JSON.stringify(body),
  ...more,
});

/** Starts a fetch and waits until its call has reached the transport. */
async function begin(input, init) {
  const { transport, fetch } = stubFetch();
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
    ["https://api.openai.com/v1/responses?api-version=1", post(body, { headers: new Headers({ a: "b" }) })],
    ["/responses", post(body, { headers: [["a", "b"]] })],
    ["responses/", { method: "post", body, headers: { a: "b" } }],
    [new URL("http://x/a/b/c/responses"), { method: "POST", body: new TextEncoder().encode(body) }],
    ["http://x/responses", { method: "POST", body: new TextEncoder().encode(body).buffer }],
    ["http://x/responses", { method: "POST", body: new DataView(new TextEncoder().encode(` ${body}`).buffer, 1) }],
    ["http://x/responses", { method: "POST", body: Buffer.from(`\ufeff${body}`) }],
    ["http://x/responses", post(body, { headers: { "Content-Type": "application/json; charset=utf-8" } })],
    ["http://x/responses", post(body, { headers: { "content-type": "application/vnd.api+json" } })],
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

const UNSUPPORTED = "unsupported_content_type";
const JSON_HEADERS = { "content-type": "application/json" };

function form() {
  const data = new FormData();
  data.set("input", "x");
  data.set("file", new Blob(["x".repeat(300_000)]), "file");
  return data;
}

const refused = [
  ["unknown path", "http://x/v1/files", post({}), 404, "unknown_url"],
  ["unknown path, HEAD", "http://x/v1/files", { method: "HEAD" }, 404, "unknown_url"],
  ["unknown path, OPTIONS", "http://x/v1/files", { method: "OPTIONS" }, 404, "unknown_url"],
  ["a path with too much", "http://x/responses/a/b/input_items", {}, 404, "unknown_url"],
  ["no path", "http://x", {}, 404, "unknown_url"],
  ["a path that only ends alike", "http://x/myresponses", post({}), 404, "unknown_url"],
  ["wrong method", "http://x/v1/responses", { method: "GET" }, 405, "method_not_allowed"],
  ["wrong method of models", "http://x/models", post({}), 405, "method_not_allowed"],
  ["wrong method of a stored response", "http://x/responses/resp_1", { method: "PUT" }, 405, "method_not_allowed"],
  ["a method that objects have", "http://x/models", { method: "constructor" }, 405, "method_not_allowed"],
  ["HEAD where only POST is", "http://x/responses", { method: "HEAD" }, 405, "method_not_allowed"],
  ["unknown query", "http://x/responses/resp_1?expand=1", {}, 400, "unknown_parameter"],
  ["a list of what is none", "http://x/responses/resp_1?stream[]=true", {}, 400, "unknown_parameter"],
  ["a name that objects have", "http://x/responses/resp_1?constructor=1", {}, 400, "unknown_parameter"],
  ["a query twice", "http://x/responses/r/input_items?limit=1&limit=2", {}, 400, "invalid_value"],
  ["a query where none is", "http://x/models?limit=1", {}, 400, "unknown_parameter"],
  ["a form", "http://x/responses", post("input=x", { body: new URLSearchParams({ input: "x" }) }), 415, UNSUPPORTED],
  ["form data", "http://x/responses", { method: "POST", body: new FormData() }, 415, UNSUPPORTED],
  ["form data that says it is JSON", "http://x/responses", post("", { body: form(), headers: JSON_HEADERS }), 415, UNSUPPORTED],
  ["form data where no body is", "http://x/responses/resp_1/cancel", { method: "POST", body: form() }, 415, UNSUPPORTED],
  [
    "a type that is no JSON",
    "http://x/responses",
    post({}, { headers: { "content-type": "text/html" } }),
    415,
    UNSUPPORTED,
  ],
  [
    "a blob of another type",
    "http://x/embeddings",
    { method: "POST", body: new Blob(["{}"], { type: "a/b" }) },
    415,
    UNSUPPORTED,
  ],
  [
    "no UTF-8",
    "http://x/completions",
    { method: "POST", body: new Uint8Array([0x7b, 0x22, 0xff, 0x22]) },
    400,
    "invalid_body",
  ],
  ["a long string", "http://x/responses", post(`{"input":"${"x".repeat(10_000_000)}"}`), 413, "request_too_large"],
  ["a long body", "http://x/responses", { method: "POST", body: new Uint8Array(10_000_001) }, 413, "request_too_large"],
  ["a query beside a body", "http://x/responses?seed=1", post("{}"), 400, "unknown_parameter"],
  ["a query beside a chat's body", "http://x/chat/completions?seed=1", post("{}"), 400, "unknown_parameter"],
  ["a body where none is", "http://x/responses/resp_1/cancel", post('{"force":true}'), 400, "unknown_parameter"],
  ["no JSON", "http://x/responses", post("{"), 400, "invalid_body"],
  ["no body", "http://x/responses", { method: "POST" }, 400, "invalid_body"],
  ["no object", "http://x/chat/completions", post("[1]"), 400, "invalid_body"],
];
for (const [name, url, init, status, code] of refused) {
  test(`refused without a call: ${name}`, async () => {
    const { transport, fetch } = stubFetch({ strict: code === "unknown_parameter" });
    const response = await fetch(url, init);
    assert.equal(response.headers.get("x-fm-ignored"), null);
    assert.equal(response.status, status);
    assert.equal(response.headers.get("content-type"), "application/json");
    assert.equal(response.headers.get("x-should-retry"), "false");
    assert.match(response.headers.get("x-request-id"), /^req_/);
    assert.equal(transport.calls.length, 0);
    if (init.method === "HEAD") return assert.equal(response.body, null);
    const { error } = await response.json();
    assert.deepEqual(Object.keys(error).sort(), ["code", "message", "param", "type"]);
    assert.equal(error.code, code);
    assert.equal(error.type, "invalid_request_error");
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
    UNAVAILABLE: 404,
    TIMEOUT: 408,
    INTERNAL: 500,
    SPAWN_FAILED: 404,
    PROTOCOL_MISMATCH: 404,
    HELPER_UNHEALTHY: 404,
    CLOSED: 404,
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
    assert.equal(answer.headers.has("retry-after"), again, code);
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

/** Calls with unknown members or parameters; what reaches the helper, and what the header says. */
const ignoring = [
  ["http://x/models?limit=1", {}, ["models.list", {}], "limit"],
  ["http://x/models/m?a=1&api-version=1&a=2&b%2Cc=%F0%9F%98%80", {}, ["models.retrieve", { id: "m" }], "a, b%2Cc"],
  ["http://x/responses/r?expand=1", {}, ["responses.retrieve", { id: "r" }], "expand"],
  ["http://x/responses/r?constructor=1&stream[]=true", {}, ["responses.retrieve", { id: "r" }], "constructor, stream[]"],
  ["http://x/responses/r/input_items?limit=5&x=1", {}, ["responses.input_items", { id: "r", limit: 5 }], "x"],
  ["http://x/responses/r", { method: "DELETE", body: '{"x y":1}' }, ["responses.delete", { id: "r" }], "x%20y"],
  ["http://x/responses/r/cancel", post('{"force":true,"%":1}'), ["responses.cancel", { id: "r" }], "force, %25"],
  ["http://x/models/m?\ud800=1", {}, ["models.retrieve", { id: "m" }], "%EF%BF%BD"],
];
for (const [url, init, made, header] of ignoring) {
  test(`ignored and reported: ${init.method ?? "GET"} ${new URL(url).pathname}, ${header}`, async () => {
    const { response, call } = await begin(url, init);
    assert.deepEqual([call.method, call.params], made);
    call.resolve({ ok: true, response: { id: "r", fm: { ignored: ["of the request that made it"] } } });
    const answer = await response;
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get("x-fm-ignored"), header);
  });
}

test("what the helper ignored of a body is in the header, after what was in the URL", async () => {
  const fm = { ignored: ["top_q", "input[0].a,b", "\u00e9"] };
  for (const [path, answer] of [
    ["responses", { response: { id: "r", fm } }],
    ["responses/compact", { object: "response.compaction", output: [], fm }],
    ["responses/input_tokens", { input_tokens: 1, fm }],
    ["chat/completions", { completion: { id: "c", fm } }],
    ["completions", { completion: { id: "c", fm } }],
    ["embeddings", { embeddings: { object: "list", data: [], fm } }],
  ]) {
    const { response, call } = await begin(`http://x/${path}?seed=1`, post({ model: "m" }));
    assert.deepEqual(call.params, { model: "m" });
    call.resolve({ ok: true, ...answer });
    assert.equal((await response).headers.get("x-fm-ignored"), "seed, top_q, input[0].a%2Cb, %C3%A9", path);
  }
});

test("64 names of a URL are reported", async () => {
  const names = Array.from({ length: 100 }, (_, index) => `n${index}`);
  const { response, call } = await begin(`http://x/models?${names.map((name) => `${name}=1`).join("&")}`, {});
  call.resolve({ ok: true, object: "list", data: [] });
  assert.equal((await response).headers.get("x-fm-ignored"), [...names.slice(0, 64), "..."].join(", "));
});

test("the header of what was ignored is bounded", () => {
  const header = (names) => ignoredHeader(names)["x-fm-ignored"];
  const many = (count) => Array.from({ length: count }, (_, index) => `n${index}`);
  assert.equal(header([]), undefined);
  assert.equal(header(["a", "", "b", "a", ""]), 'a, "", b');
  assert.equal(header(many(64)), many(64).join(", "));
  assert.equal(header(many(65)), [...many(64), "..."].join(", "));
  assert.equal(header(["x".repeat(255)]), "x".repeat(255));
  assert.equal(header(["x".repeat(256), "x".repeat(300), "y"]), `${"x".repeat(255)}, y`);
  assert.equal(header(["\u00e9".repeat(300)]), "%C3%A9".repeat(255));
  assert.equal(header([`${"x".repeat(254)}\u{1F600}`]), "x".repeat(254));
  const long = header(many(60).map((name) => name.padEnd(200, "x")));
  assert.match(long, /^n0x+, .*, n\d+x+, \.\.\.$/);
  assert.ok(long.length <= 4096 && long.length > 4096 - 202 - 5, `${long.length} bytes`);
});

const list = { object: "list", data: [] };
const response = { id: "resp_1", status: "completed" };
const json = { "content-type": "application/json; charset=utf-8" };
const compact = { object: "response.compaction", output: [] };
/** Request, the resulting call, the answer to it, and the expected result. */
const endpoints = [
  ["GET models", ["models.list", {}], list, list],
  ["GET models/org%2Fa%20b", ["models.retrieve", { id: "org/a b" }], { id: "org/a b" }, { id: "org/a b" }],
  ["GET models/%zz", ["models.retrieve", { id: "%zz" }], { id: "%zz" }, { id: "%zz" }],
  ["GET responses/resp%5F1", ["responses.retrieve", { id: "resp_1" }], { response }, response],
  [
    "GET responses/resp_1?include[]=a&include[]=b",
    ["responses.retrieve", { id: "resp_1", include: ["a", "b"] }],
    { response },
    response,
  ],
  [
    "GET responses/r?include=a&api-version=1",
    ["responses.retrieve", { id: "r", include: ["a"] }],
    { response },
    response,
  ],
  ["GET responses/r?stream=maybe", ["responses.retrieve", { id: "r", stream: "maybe" }], { response }, response],
  [
    "DELETE responses/resp_1",
    ["responses.delete", { id: "resp_1" }],
    { id: "resp_1", deleted: true },
    { id: "resp_1", deleted: true },
  ],
  ["POST responses/resp%5F1/cancel", ["responses.cancel", { id: "resp_1" }], { response }, response],
  ["POST responses/c/cancel", ["responses.cancel", { id: "c" }], { completion: { id: "c" } }, { id: "c" }],
  ["GET responses/r/input_items", ["responses.input_items", { id: "r" }], list, list],
  [
    "GET responses/r/input_items?limit=5&order=asc&after=7",
    ["responses.input_items", { id: "r", limit: 5, order: "asc", after: "7" }],
    list,
    list,
  ],
  ["GET responses/r/input_items?limit=many", ["responses.input_items", { id: "r", limit: "many" }], list, list],
  ["POST responses/input_tokens", ["responses.input_tokens", { a: 1 }], { input_tokens: 1 }, { input_tokens: 1 }],
  ["POST responses/compact", ["responses.compact", { a: 1 }], compact, compact],
  ["POST embeddings", ["embeddings.create", { a: 1 }], { embeddings: list }, list],
  ["POST completions", ["completions.create", { a: 1 }], { completion: { id: "cmpl" } }, { id: "cmpl" }],
  ["POST chat/completions/", ["chat.completions.create", { a: 1 }], { completion: { id: "chat" } }, { id: "chat" }],
];
for (const [request, [called, params], answer, expected] of endpoints)
  test(request, async () => {
    const [method, path] = request.split(" ");
    const init = { method, ...(params.a ? { body: JSON.stringify(params), headers: json } : {}) };
    const { response, call } = await begin(`http://x/v1/${path}`, init);
    assert.equal(call.method, called);
    assert.deepEqual(call.params, params);
    call.resolve(answer);
    const got = await response;
    assert.equal(got.status, 200);
    assert.deepEqual(await got.json(), expected);
  });

test("HEAD answers as GET does, without the body; OPTIONS tells the methods", async () => {
  const { response, call } = await begin("http://x/models", { method: "HEAD" });
  call.resolve({ object: "list", data: [] });
  const head = await response;
  assert.deepEqual([head.status, head.body, head.headers.get("content-type")], [200, null, "application/json"]);
  const { fetch, transport } = stubFetch();
  for (const [path, allow] of [
    ["models", "GET, HEAD, OPTIONS"],
    ["responses", "POST, OPTIONS"],
    ["responses/resp_1", "GET, DELETE, HEAD, OPTIONS"],
  ]) {
    const options = await fetch(`http://x/${path}`, { method: "OPTIONS" });
    assert.deepEqual([options.status, options.body, options.headers.get("allow")], [204, null, allow]);
    assert.equal((await fetch(`http://x/${path}`, { method: "PATCH" })).headers.get("allow"), allow);
  }
  assert.equal(transport.calls.length, 0);
});

test("a method that an older helper does not have is 404", async () => {
  const { response, call } = await begin("http://x/embeddings", post({ input: "x" }));
  call.reject("RPC_ERROR", "no such method", { openai: { status: 404, code: "unknown_url" } });
  assert.equal((await response).status, 404);
});

test("a stored response streamed once more, and joined in the middle", async () => {
  const all = [...openingEvents("abc"), ...closingEvents("abc")];
  for (const after of [null, 4, all.length - 1]) {
    const query = after === null ? "" : `&starting_after=${after}`;
    const { response, call } = await begin(`http://x/responses/resp_1?stream=true${query}`);
    assert.equal(call.method, "responses.retrieve");
    assert.deepEqual(call.params, { id: "resp_1", stream: true, ...(after === null ? {} : { starting_after: after }) });
    const rest = all.slice(after === null ? 0 : after + 1);
    rest.forEach(call.event);
    call.resolve({ response: all.at(-1).response });
    const frames = await readEvents(await response);
    assert.equal(frames.pop(), "data: [DONE]");
    assert.deepEqual(
      frames.map((frame) => JSON.parse(frame.split("\ndata: ")[1])),
      rest,
    );
  }
});

test("a stream that was joined in the middle and breaks ends with an error event", async () => {
  const { response, call } = await begin("http://x/responses/resp_1?stream=true&starting_after=3");
  call.event(openingEvents("a").at(-1));
  call.reject("HELPER_EXITED", "gone");
  const frames = await readEvents(await response);
  assert.deepEqual(
    frames.map((frame) => frame.split("\n")[0]),
    ["event: response.output_text.delta", "event: error", "data: [DONE]"],
  );
});

test("a body that is never whole: an abort rejects, the body is cancelled, nothing is called", async () => {
  const { transport, fetch } = stubFetch();
  const controller = new AbortController();
  let cancelled = false;
  const body = new ReadableStream({
    start: (it) => it.enqueue(Buffer.from("{")),
    cancel: () => void (cancelled = true),
  });
  const response = fetch("http://x/responses", { method: "POST", body, duplex: "half", signal: controller.signal });
  setImmediate(() => controller.abort());
  await assert.rejects(response, { name: "AbortError" });
  assert.ok(cancelled);
  assert.equal(listeners(controller.signal), 0);
  assert.equal(transport.calls.length, 0);
});

/** Every kind of body, and what must happen to its stream if the body is refused. */
const bodies = [
  ["form data", form, "left alone"],
  ["form data in a Request", () => new Request("http://x/", { method: "POST", body: form() }), "left alone"],
  ["a form", () => new URLSearchParams({ input: "x" }), "left alone"],
  ["a blob", () => new Blob(["x".repeat(300_000)], { type: "a/b" }), "left alone"],
  ["a stream", () => new ReadableStream({ pull: (it) => it.enqueue(new Uint8Array(10)) }), "cancelled"],
  [
    "a stream whose cancel fails",
    () => new ReadableStream({ cancel: () => Promise.reject(new Error("no")) }),
    "cancelled",
  ],
];
for (const [name, make, fate] of bodies) {
  test(`a refused body leaves no unhandled rejection: ${name}`, async (t) => {
    const unhandled = [];
    const note = (reason) => unhandled.push(reason);
    process.on("unhandledRejection", note);
    t.after(() => process.off("unhandledRejection", note));
    const cancel = t.mock.method(ReadableStream.prototype, "cancel");
    const { fetch } = stubFetch();
    const body = make();
    const type = { "content-type": "text/html" };
    const init = { method: "POST", body, duplex: "half", ...(body instanceof ReadableStream ? { headers: type } : {}) };
    const response = body instanceof Request ? fetch(new Request("http://x/responses", body)) : fetch("http://x/responses", init);
    assert.equal((await response).status, 415);
    assert.equal(cancel.mock.callCount(), fate === "cancelled" ? 1 : 0);
    for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
    assert.deepEqual(unhandled, []);
  });
}

/**
 * How a call is made, and the expected result. Each call runs in a separate program, because Node ends the process in the tested
 * cases. A form has blobs of 100 kB; `U`, `P` and `type` are below.
 */
const streamed = [
  [
    "a form in a Request with another type",
    'fetch(new Request(U, { ...P, ...type("application/octet-stream"), body: form(3) }))',
    "415",
  ],
  [
    "a form in a Request, another type beside it",
    'fetch(new Request(U, { ...P, body: form(3) }), type("application/octet-stream"))',
    "415",
  ],
  ["a form's stream", 'fetch(U, { ...P, ...type("image/png"), body: new Response(form(3)).body })', "415"],
  ["a form in a Request of a Request", 'fetch(new Request(new Request(U, { ...P, body: form(50) }), type("image/png")))', "415"],
  ["a long form that says it is JSON", 'fetch(new Request(U, { ...P, ...type("application/json"), body: form(300) }))', "413"],
  [
    "an aborted form",
    'fetch(new Request(U, { ...P, ...type("application/json"), body: form(50), signal: after(0) }))',
    "AbortError",
  ],
  ["an aborted generator that ends later", "fetch(U, { ...P, body: slow(), signal: after(10) })", "AbortError"],
];
const PROGRAM = `
  import { createFetch } from ${JSON.stringify(new URL("../../js-shim/dist/esm/fetch.js", import.meta.url).href)};
  const U = "http://x/responses";
  const P = { method: "POST", duplex: "half" };
  const type = (name) => ({ headers: { "content-type": name } });
  const form = (count) => {
    const data = new FormData();
    for (let index = 0; index < count; index++) data.append("file", new Blob(["x".repeat(100_000)]), "file");
    return data;
  };
  const after = (ms) => {
    const controller = new AbortController();
    // A form may be read before any timer fires.
    if (ms === 0) queueMicrotask(() => controller.abort());
    else setTimeout(() => controller.abort(), ms);
    return controller.signal;
  };
  async function* slow() {
    yield Buffer.from("{");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const fetch = createFetch({ call: () => { throw new Error("called"); } });
`;
for (const [name, call, outcome] of streamed) {
  test(`a refused body leaves no unhandled rejection: ${name}`, async () => {
    const program = `${PROGRAM}
      console.log(await ${call}.then((it) => it.status, (error) => error.name));
      await new Promise((resolve) => setTimeout(resolve, 300));
      console.log("alive");`;
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program]);
    assert.equal(stdout, `${outcome}\nalive\n`);
  });
}

test("what is left of a refused body is read to its end, within bounds", async () => {
  const { fetch } = stubFetch();
  const init = { method: "POST", duplex: "half", headers: { "content-type": "a/b" } };
  const refuse = (body) => fetch("http://x/responses", { ...init, body });
  let ended = false;
  async function* short() {
    yield Buffer.from("x");
    ended = true;
  }
  assert.equal((await refuse(short())).status, 415);
  for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
  assert.ok(ended);
  let reads = 0;
  const endless = new ReadableStream({ type: "bytes", pull: (it) => (reads++, it.enqueue(new Uint8Array(1_000_000))) });
  assert.equal((await refuse(endless)).status, 415);
  for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
  assert.ok(reads > 1 && reads < 20, `${reads} reads`);
  assert.ok(!endless.locked);
});

test("a body without end is cut at the limit", async () => {
  const { fetch } = stubFetch();
  let cancelled = false;
  const pull = (it) => it.enqueue(new Uint8Array(1_000_000));
  const body = new ReadableStream({ pull, cancel: () => void (cancelled = true) });
  assert.equal((await fetch("http://x/responses", { method: "POST", body, duplex: "half" })).status, 413);
  assert.ok(cancelled);
});

test("a body that breaks, or is in use, rejects as with the real fetch", async () => {
  const { transport, fetch } = stubFetch();
  const broken = new ReadableStream({ pull: () => Promise.reject(new Error("torn")) });
  await assert.rejects(fetch("http://x/responses", { method: "POST", body: broken, duplex: "half" }), (error) => {
    assert.ok(error instanceof TypeError);
    assert.match(error.cause.message, /torn/);
    return true;
  });
  const used = new Request("http://x/responses", { method: "POST", body: "{}" });
  used.body.getReader();
  await assert.rejects(fetch(used), TypeError);
  assert.equal(transport.calls.length, 0);
});

test("the older completions, streamed, and their failure in a frame", async () => {
  const chunk = (text, finish_reason = null) => ({
    id: "cmpl_1",
    object: "text_completion",
    created: 1,
    model: "m",
    choices: [{ index: 0, text, logprobs: null, finish_reason }],
  });
  for (const fails of [false, true]) {
    const { response, call } = await begin("http://x/v1/completions", post({ stream: true, prompt: "x" }));
    const chunks = [chunk("a"), chunk("b"), ...(fails ? [] : [chunk("", "stop")])];
    chunks.forEach(call.chunk);
    if (fails) call.reject("TIMEOUT", "over");
    else call.resolve({ completion: {} });
    const frames = await readEvents(await response);
    assert.equal(frames.pop(), "data: [DONE]");
    if (fails) assert.equal(JSON.parse(frames.pop().slice("data: ".length)).error.code, "timeout");
    assert.deepEqual(
      frames,
      chunks.map((each) => `data: ${JSON.stringify(each)}`),
    );
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

/** J13: three moments for an abort, with both ways to give a signal, with and without a stream. */
for (const stream of [false, true]) {
  test(`an abort before the call, stream ${stream}: rejected, nothing is called`, async () => {
    const { transport, fetch } = stubFetch();
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
