// client.safe and the fallback; rate limits; every failure against every policy.
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai-7";
import { RATE_LIMIT_OPTIONS, RateLimiter } from "../../js-shim/dist/esm/ratelimit.js";
import { connection, deltas, drain, fakeClient, script, stubClient } from "./support/helper.mjs";
import { checkResponse, checkResponseStream } from "./support/invariants.mjs";
import { WAIT } from "./support/patience.mjs";
import { openingEvents } from "./support/transport.mjs";

const failing = (code, detail = "why", more = {}) => script({ fail: [code, detail, more] });
const limited = failing("RATE_LIMITED", "slow down", { status: 429, code: "rate_limit_exceeded" });
const messages = (content) => [{ role: "user", content }];

test("all calls, on the fake engine", async (t) => {
  const { safe } = fakeClient(t);
  const questions = [{ type: "predicate", instructions: "Is it?" }];
  for (const call of [
    safe.responses.create({ input: "one", stream: true }),
    safe.chat.completions.create({ messages: messages("one"), stream: true }),
    safe.completions.create({ prompt: "one", stream: true }),
    safe.embeddings.create({ input: "one" }),
    safe.decisions.create({ input: "one", questions }),
  ]) {
    const { ok, source, error } = await call;
    assert.deepEqual([ok, source], [true, "local"], error?.message);
  }
});

test("the answer and who gave it", async (t) => {
  const { safe } = stubClient(t);
  const { ok, source, response } = await safe.responses.create({ input: "one two" });
  assert.deepEqual([ok, source], [true, "local"]);
  checkResponse(response);
  assert.equal(response.output_text, "one two");
  const chat = await safe.chat.completions.create({ messages: messages("one two") });
  assert.equal(chat.completion.choices[0].message.content, "one two");
});

/** Errors that are not failures of the local model. The client asks no fallback for them. */
const FINAL = ["INVALID_REQUEST", "NOT_FOUND", "GUARDRAIL"];
for (const code of ["UNAVAILABLE", "TIMEOUT", "INTERNAL", "CONTEXT_OVERFLOW", "OVERLOADED", "RATE_LIMITED", ...FINAL]) {
  const outcome = FINAL.includes(code) ? "and with one" : "the fallback's answer with one";
  test(`${code}: an error without a fallback, ${outcome}`, async (t) => {
    const input = failing(code);
    const alone = await stubClient(t).safe.responses.create({ input });
    assert.equal(alone.ok, false);
    assert.equal(alone.error.code, code);
    assert.equal(alone.error.detail, "why");
    const asked = [];
    const fallback = (call) => {
      asked.push(call);
      return { output_text: "from elsewhere" };
    };
    const body = { input, metadata: { a: "b" } };
    const answer = await stubClient(t, {}, { fallback }).safe.responses.create(body);
    if (FINAL.includes(code)) {
      assert.equal(answer.error.code, code);
      return void assert.deepEqual(asked, []);
    }
    assert.equal(answer.source, "fallback");
    assert.equal(answer.response.output_text, "from elsewhere");
    assert.equal(asked[0].method, "responses.create");
    assert.deepEqual(asked[0].body, body);
    assert.equal(asked[0].error.code, code);
  });
}

for (const [name, stub, options] of [
  ["no helper", {}, { helperPath: "/nowhere/fm-proxy" }],
  ["a helper that exits", { start: "exit" }, {}],
  ["another version", { version: 2 }, {}],
  ["a model that is not there", { capabilities: { available: false, reason_code: "MODEL_NOT_READY", detail: "x" } }, {}],
  ["the apple engine elsewhere", {}, { engine: process.platform === "darwin" ? "stub" : "apple" }],
]) {
  test(`the fallback answers where there is ${name}: a function, any OpenAI client, streams too`, async (t) => {
    const cloud = stubClient(t);
    const openai = new OpenAI(connection(cloud));
    const client = stubClient(t, stub, { ...options, fallback: openai, fallbackModel: "gpt-x" });
    if (name.startsWith("the apple") && process.platform === "darwin") return;
    const body = { input: "one two", top_k: 3, fm: { timeout_ms: 5000 } };
    const { source, response } = await client.safe.responses.create(body);
    assert.equal(source, "fallback");
    assert.equal(response.output_text, "one two");
    const [{ params }] = cloud.received("responses.create");
    assert.deepEqual(params, { input: "one two", model: "gpt-x" });
    const stream = client.safe.responses.stream(body);
    const { events, error } = await drain(stream);
    assert.equal(error, null);
    checkResponseStream(events);
    assert.equal((await stream.outcome).source, "fallback");
    const chat = await client.safe.chat.completions.create({ messages: messages("three") });
    assert.equal(chat.completion.choices[0].message.content, "three");
  });
}

test("a stream that fails in the middle is told as it is, and no fallback begins it anew", async (t) => {
  let asked = 0;
  const client = stubClient(t, {}, { fallback: () => void asked++ });
  const stream = client.safe.responses.stream({ input: script("half", { error: "broken" }) });
  const { events, error } = await drain(stream);
  assert.equal(error, null);
  checkResponseStream(events);
  const { ok, error: told } = await stream.outcome;
  assert.deepEqual([ok, told.code, told.partialText, asked], [false, "INTERNAL", "half", 0]);
});

test("a stream that is left early stops the request, and its outcome settles", async (t) => {
  const client = stubClient(t);
  const stream = client.safe.responses.stream({ input: script("a", { hang: "soft" }) });
  for await (const { type } of stream) if (type.endsWith("delta")) break;
  assert.equal((await stream.outcome).error.code, "CANCELLED");
  await client.health.ping();
  assert.equal(client.received("$/cancelRequest").length, 1);
});

test("a stream that is left before its first event was asked for has an outcome, too", { timeout: WAIT }, async (t) => {
  const stream = stubClient(t).safe.responses.stream({ input: "one two" });
  assert.deepEqual(await stream[Symbol.asyncIterator]().return(), { done: true, value: undefined });
  assert.equal((await stream.outcome).error.code, "CANCELLED");
});

test("a fallback that fails: the local error, with what the fallback said", async (t) => {
  for (const fallback of [
    () => {
      throw new Error("no money left");
    },
    () => Promise.reject(new Error("no money left")),
    { responses: { create: () => Promise.reject(new Error("no money left")) } },
    {},
  ]) {
    const { ok, error } = await stubClient(t, {}, { fallback }).safe.responses.create({ input: failing("UNAVAILABLE") });
    assert.deepEqual([ok, error.code], [false, "UNAVAILABLE"]);
    assert.match(error.detail, /^why\. The fallback failed too: (no money left|the fallback has no responses.create)$/);
  }
});

test("nothing throws and nothing rejects, whatever comes", async (t) => {
  const { safe } = fakeClient(t);
  const circular = {};
  circular.self = circular;
  const nasty = { get input() { throw new Error("a getter"); } };
  for (const body of [undefined, null, 5, "text", [], circular, nasty, { input: 5n }, { input: "x".repeat(10_000_001) }]) {
    for (const call of [safe.responses.create, safe.chat.completions.create, safe.completions.create, safe.embeddings.create]) {
      assert.equal((await call(body)).ok, false);
    }
    const stream = safe.responses.stream(body);
    assert.equal((await drain(stream)).error, null);
    assert.equal((await stream.outcome).ok, false);
    assert.equal((await safe.generate(body)).ok, false);
  }
  const signal = AbortSignal.abort(new Error("my reason"));
  const { error } = await safe.responses.create({ input: "x" }, { signal });
  assert.deepEqual([error.code, error.cause.message], ["CANCELLED", "my reason"]);
});

test("what is thrown need not be an error, nor have a text", async (t) => {
  const bare = Object.create(null);
  const fallback = () => {
    throw bare;
  };
  const { safe } = stubClient(t, {}, { fallback });
  const { error } = await safe.responses.create({ input: failing("UNAVAILABLE") }, null);
  assert.equal(error.code, "UNAVAILABLE");
  assert.match(error.detail, /The fallback failed too: something was thrown that has no text$/);
  const nasty = { get input() { throw bare; } };
  assert.equal((await safe.responses.create(nasty)).error.cause, bare);
  assert.equal((await safe.generate(nasty, null)).ok, false);
});

test("a fallback that gives nothing has failed", async (t) => {
  for (const fallback of [() => undefined, async () => null]) {
    const { safe } = stubClient(t, {}, { fallback });
    const { ok, error } = await safe.responses.create({ input: failing("UNAVAILABLE") });
    assert.deepEqual([ok, error?.code], [false, "UNAVAILABLE"]);
    assert.match(error.detail, /^why\. The fallback failed too: it gave nothing$/);
    const stream = safe.responses.stream({ input: failing("UNAVAILABLE") });
    assert.deepEqual((await drain(stream)).events, []);
    assert.equal((await stream.outcome).ok, false);
  }
});

test("a fallback that hangs is left when the signal is aborted", { timeout: WAIT }, async (t) => {
  const controller = new AbortController();
  const fallback = () => {
    setImmediate(() => controller.abort());
    return new Promise(() => {});
  };
  const { safe } = stubClient(t, {}, { fallback });
  const { error } = await safe.responses.create({ input: failing("UNAVAILABLE") }, { signal: controller.signal });
  assert.equal(error.code, "CANCELLED");
});

test("a fallback's stream that hangs between its events is left when the signal is aborted", { timeout: WAIT }, async (t) => {
  const controller = new AbortController();
  const never = new Promise(() => {});
  let left = 0;
  const opening = openingEvents("a");
  const events = {
    [Symbol.asyncIterator]: () => events,
    async next() {
      if (opening.length > 0) return { done: false, value: opening.shift() };
      setImmediate(() => controller.abort());
      return never;
    },
    return() {
      left++;
      return never;
    },
  };
  const { safe } = stubClient(t, {}, { fallback: { responses: { create: async () => events } } });
  const stream = safe.responses.stream({ input: failing("UNAVAILABLE") }, { signal: controller.signal });
  assert.equal(deltas((await drain(stream)).events), "a");
  assert.equal((await stream.outcome).error.code, "CANCELLED");
  assert.equal(left, 1);
});

test("the numbers of a rate limit unless the caller says otherwise", () => {
  assert.deepEqual(RATE_LIMIT_OPTIONS, {
    rateLimitPolicy: "fallback",
    maxConsecutiveRateLimits: 3,
    disableForMs: 1_800_000,
    maxRetryDelayMs: 30_000,
  });
});

/** A limiter on the test's clock. */
function limiter(t, options) {
  let now = 1000;
  t.mock.method(performance, "now", () => now);
  t.mock.method(Math, "random", () => 0.5);
  const it = new RateLimiter({ ...RATE_LIMIT_OPTIONS, ...options });
  return { it, advance: (ms) => void (now += ms) };
}

test("policy fallback: closed for a minute, and for half an hour after the third limit in a row", (t) => {
  const { it, advance } = limiter(t, {});
  for (const pause of [60_000, 60_000, 1_800_000]) {
    assert.equal(it.refusal(), null);
    assert.equal(it.noteLimit(), null);
    assert.equal(it.refusal().code, "RATE_LIMITED");
    assert.equal(it.refusal().retryAfterMs, pause);
    advance(pause - 1);
    assert.ok(it.isClosed);
    advance(1);
  }
  assert.equal(it.refusal(), null);
  it.noteSuccess();
  it.noteLimit();
  assert.equal(it.refusal().retryAfterMs, 60_000, "a success clears the count");
});

test("policy retry: pauses that double, with chance, up to the longest; then closed", (t) => {
  const { it } = limiter(t, { rateLimitPolicy: "retry", maxConsecutiveRateLimits: 6, maxRetryDelayMs: 5000 });
  const pauses = [1250, 2250, 4250, 5000, 5000];
  for (const pause of pauses) assert.equal(it.noteLimit(), pause);
  assert.equal(it.isClosed, false);
  assert.equal(it.noteLimit(), null);
  assert.equal(it.refusal().retryAfterMs, 1_800_000);
});

test("policy disable: each limit fails, and after some in a row requests are refused for long", (t) => {
  const { it } = limiter(t, { rateLimitPolicy: "disable", maxConsecutiveRateLimits: 2, disableForMs: 500 });
  assert.equal(it.noteLimit(), null);
  assert.equal(it.isClosed, false);
  assert.equal(it.noteLimit(), null);
  assert.equal(it.refusal().retryAfterMs, 500);
});

test("the fallback policy never waits: the request fails at once, and later ones without the helper", async (t) => {
  const client = stubClient(t);
  await assert.rejects(client.responses.create({ input: limited }), { code: "RATE_LIMITED", status: 429 });
  await assert.rejects(client.responses.create({ input: "x" }), { code: "RATE_LIMITED" });
  assert.equal(client.received("responses.create").length, 1);
  const { status, headers } = await client.fetch("http://x/responses", { method: "POST", body: '{"input":"x"}' });
  assert.equal(status, 429);
  assert.ok(Number(headers.get("retry-after-ms")) > 50_000, headers.get("retry-after-ms"));
  await client.compatibility.check({ recheck: true });
  checkResponse(await client.responses.create({ input: "x" }));
});

test("the retry policy sends it again; an abort ends the wait", async (t) => {
  const client = stubClient(t, { limits: 2 }, { rateLimitPolicy: "retry", maxRetryDelayMs: 10 });
  checkResponse(await client.responses.create({ input: "x" }));
  assert.equal(client.received("responses.create").length, 3);
  const slow = stubClient(t, { limits: 1 }, { rateLimitPolicy: "retry" });
  const controller = new AbortController();
  const call = slow.responses.create({ input: "x" }, { signal: controller.signal });
  slow.on("state", () => {});
  setTimeout(() => controller.abort(), 300);
  await assert.rejects(call, { name: "AbortError" });
});

test("the helper's own limit, too many requests at once, is none of the model's", async (t) => {
  const client = stubClient(t);
  const full = failing("RATE_LIMITED", "64 requests are in flight", { status: 429, code: "too_many_requests" });
  await assert.rejects(client.responses.create({ input: full }), { code: "RATE_LIMITED" });
  checkResponse(await client.responses.create({ input: "x" }));
});

test("deltas of a safe stream", async (t) => {
  const stream = stubClient(t).safe.responses.stream({ input: "one two" });
  const { events } = await drain(stream);
  assert.equal(deltas(events), "one two");
  const { ok, source, response } = await stream.outcome;
  assert.deepEqual([ok, source, response.status], [true, "local", "completed"]);
});
