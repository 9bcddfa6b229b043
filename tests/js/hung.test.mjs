// A helper that hangs: its calls end in time, it is killed and replaced, and requests that it has not read go to the next one.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { alive, deltas, drain, fakeClient, script, stubClient, until } from "./support/helper.mjs";
import { checkResponse, checkResponseStream } from "./support/invariants.mjs";
import { WAIT, inTime, repeated, soon } from "./support/patience.mjs";

const hang = script("a", { hang: "soft" });
const stop = async (client) => {
  const { pid } = await client.health.ping();
  process.kill(pid, "SIGSTOP");
  return pid;
};

test("a stopped helper: a call ends within its limit and a second, it is replaced", { timeout: WAIT }, repeated(async (t) => {
  const client = stubClient(t);
  const pid = await stop(client);
  const started = performance.now();
  await assert.rejects(client.responses.create({ input: "x", fm: { timeout_ms: 1000 } }), (error) => {
    assert.equal(error.code, "TIMEOUT");
    assert.equal(error.limit, "total");
    assert.equal(error.limitMs, 1000);
    return true;
  });
  soon(performance.now() - started, 2000);
  await until(() => !alive(pid), "its end");
  checkResponse(await client.responses.create({ input: "x" }));
  assert.equal(client.starts().length, 2);
}));

test("a stopped helper that read nothing: the next one answers, once", { timeout: WAIT }, repeated(async (t) => {
  const client = stubClient(t, {}, { handshakeTimeoutMs: 2000 });
  const pid = await inTime(stop(client));
  const calls = [client.responses.create({ input: "one two" }), drain(client.responses.stream({ input: "three four" }))];
  const [whole, { events, error }] = await inTime(Promise.all(calls));
  checkResponse(whole);
  if (error) await inTime(Promise.reject(error));
  checkResponseStream(events);
  assert.equal(deltas(events), "three four");
  assert.equal(client.received("responses.create").length, 2);
  assert.equal(client.starts().length, 2);
  await until(() => !alive(pid), "the end of the stopped one");
}));

test("a helper stopped in mid-stream: it is ended, and the request is not sent again", { timeout: WAIT }, repeated(async (t) => {
  const client = stubClient(t, {}, { handshakeTimeoutMs: 1000 });
  const { pid } = await inTime(client.health.ping());
  const { events, error } = await drain(client.responses.stream({ input: hang }), ({ type }) => {
    if (type.endsWith("delta")) process.kill(pid, "SIGSTOP");
  });
  assert.equal(error.code, "HELPER_UNHEALTHY");
  assert.match(error.detail, /no sign of life for 1000 ms/);
  assert.equal(error.partialText, "a");
  checkResponseStream(events);
  assert.equal(client.received("responses.create").length, 1);
  await until(() => !alive(pid), "its end");
  checkResponse(await inTime(client.responses.create({ input: "x" })));
}));

/** The pid of the only child of a process, which any of its threads may have started. */
function childOf(pid) {
  const tasks = readdirSync(`/proc/${pid}/task`);
  const text = tasks.map((task) => readFileSync(`/proc/${pid}/task/${task}/children`, "utf8")).join("");
  assert.match(text, /^\d+ $/);
  return Number(text);
}

test("a helper stopped after it said that it has the request: later ones go to the next", { timeout: WAIT }, async (t) => {
  const client = fakeClient(t);
  const { pid } = await client.health.ping();
  checkResponse(await client.responses.create({ input: "x" }));
  const engine = childOf(pid);
  t.after(() => alive(engine) && process.kill(engine, "SIGKILL"));
  const late = client.responses.create({ input: script("a", { sleep_ms: 60000 }), fm: { timeout_ms: 600 } });
  process.kill(engine, "SIGSTOP");
  // The limit passes after 600 ms, and the call is given up 900 ms later. In between, the helper answers that it has the request.
  setTimeout(() => process.kill(pid, "SIGSTOP"), 1000);
  await assert.rejects(late, { code: "TIMEOUT" });
  const later = [{ input: "one", fm: { timeout_ms: WAIT } }, { input: "two" }].map((body) => client.responses.create(body));
  const started = performance.now();
  for (const answer of await inTime(Promise.all(later))) checkResponse(answer);
  soon(performance.now() - started, 1500);
  assert.notEqual((await client.health.ping()).pid, pid);
});

const LIMIT_MS = 400;
const LIMITS = {
  total: "timeout_ms",
  queue: "queue_timeout_ms",
  first_token: "first_token_timeout_ms",
  no_progress: "no_progress_timeout_ms",
};
const MUTE = script({ hang: "hard" });

/** A request ends by a limit, in time; then the next helper answers the next request. */
async function endsByLimit(client, limit, ask) {
  const { pid } = await inTime(client.health.ping());
  const started = performance.now();
  const error = await ask(client, { [LIMITS[limit]]: LIMIT_MS }, pid);
  soon(performance.now() - started, LIMIT_MS + 1000);
  assert.equal(error?.code, "TIMEOUT", error?.detail);
  assert.deepEqual([error.limit, error.limitMs], [limit, LIMIT_MS]);
  if (limit !== "total") assert.ok(error.detail.includes(LIMITS[limit]), error.detail);
  checkResponse(await inTime(client.responses.create({ input: "x" })));
  await until(() => !alive(pid), "its end");
  assert.equal(client.starts().length, 2);
}

/** Ways to hang, with the limits that can then end a request: each function returns the request's error. */
const HANGS = {
  mute: [Object.keys(LIMITS), (client, fm) => client.responses.create({ input: MUTE, fm }).catch((error) => error)],
  "mute once it has begun": [["total", "first_token", "no_progress"], async (client, fm) => {
    const messages = [{ role: "user", content: MUTE }];
    const { events, error } = await drain(client.chat.completions.create({ messages, stream: true, fm }));
    assert.equal(events.length, 1);
    return error;
  }],
  "mute in mid-stream": [["total", "no_progress"], async (client, fm) => {
    const { events, error } = await drain(client.responses.stream({ input: script("a", { hang: "hard" }), fm }));
    checkResponseStream(events);
    assert.equal(error.partialText, "a");
    return error;
  }],
  "stopped": [Object.keys(LIMITS), (client, fm, pid) => {
    process.kill(pid, "SIGSTOP");
    return client.responses.create({ input: "x", fm }).catch((error) => error);
  }],
  "stopped in mid-stream": [["total", "no_progress"], async (client, fm, pid) => {
    const stopIt = ({ type }) => type.endsWith("delta") && process.kill(pid, "SIGSTOP");
    const { events, error } = await drain(client.responses.stream({ input: hang, fm }), stopIt);
    checkResponseStream(events);
    return error;
  }],
};

for (const [how, [limits, ask]] of Object.entries(HANGS)) {
  test(`a helper that hangs, ${how}: its requests end by each limit`, { timeout: WAIT }, repeated(async (t) => {
    await Promise.all(limits.map((limit) => endsByLimit(stubClient(t), limit, ask)));
  }));
}

test("a helper that is mute before it says what it can do: the next request is answered", { timeout: WAIT }, async (t) => {
  const client = stubClient(t, { mute: "first" });
  const fm = { timeout_ms: LIMIT_MS };
  await assert.rejects(client.responses.create({ input: "x", fm }), { code: "TIMEOUT", limit: "total" });
  checkResponse(await client.responses.create({ input: "x" }));
  assert.equal(client.starts().length, 2);
});

test("a deadline that passes costs other requests nothing, before and after it", { timeout: WAIT }, repeated(async (t) => {
  const client = stubClient(t);
  await client.health.ping();
  const words = Array.from({ length: 25 }, (_, index) => [`${index} `, { sleep_ms: 100 }]).flat();
  // The stream continues in time, but its total takes longer than the limit.
  const going = drain(client.responses.stream({ input: script(...words), fm: { no_progress_timeout_ms: 1000 } }));
  await assert.rejects(client.responses.create({ input: MUTE, fm: { timeout_ms: LIMIT_MS } }), { code: "TIMEOUT" });
  checkResponse(await client.responses.create({ input: "x" }));
  assert.equal(client.starts().length, 2);
  const { events, error } = await going;
  if (error) await inTime(Promise.reject(error));
  assert.equal(deltas(events).split(" ").length, 26);
  await until(() => !alive(client.starts()[0].started), "the end of the first helper, once it has no more to do");
}));

test("a helper that hangs is replaced, though its host asks it other things without a pause", { timeout: WAIT }, async (t) => {
  const client = stubClient(t);
  let asks = true;
  const asking = Array.from({ length: 4 }, async () => {
    while (asks) await client.health.ping();
  });
  t.after(() => (asks = false));
  await assert.rejects(client.responses.create({ input: MUTE, fm: { timeout_ms: LIMIT_MS } }), { code: "TIMEOUT" });
  await until(() => client.starts().length === 2, "the next helper");
  asks = false;
  await Promise.all(asking);
});

test("a host that reads slowly is not taken for a helper that hangs", { timeout: WAIT }, async (t) => {
  const client = stubClient(t, { drip: 50 });
  await client.health.ping();
  // The whole answer is sent at once. The answers to the next requests are sent at once too, and wait in the pipe.
  const going = drain(client.responses.stream({ input: "x ".repeat(60) }));
  await assert.rejects(client.responses.create({ input: "x", fm: { timeout_ms: LIMIT_MS } }), { code: "TIMEOUT" });
  const next = client.responses.create({ input: "x" });
  const { events, error } = await going;
  assert.equal(error, null);
  checkResponseStream(events);
  checkResponse(await next);
  assert.equal(client.starts().length, 1);
});

test("a cancel by id reaches a stream of a helper that gets no other call any more", { timeout: WAIT }, async (t) => {
  const client = stubClient(t);
  const words = Array.from({ length: 200 }, (_, index) => [`${index} `, { sleep_ms: 100 }]).flat();
  let id;
  const going = drain(client.responses.stream({ input: script(...words) }), (event) => (id ??= event.response?.id));
  await until(() => id !== undefined, "its first event");
  await assert.rejects(client.responses.create({ input: MUTE, fm: { timeout_ms: LIMIT_MS } }), { code: "TIMEOUT" });
  checkResponse(await client.responses.create({ input: "x" }));
  assert.equal(client.starts().length, 2);
  assert.equal((await client.responses.cancel(id)).status, "cancelled");
  assert.equal((await going).error.code, "CANCELLED");
});

test("a call that has no limit does not keep a helper that hangs", { timeout: WAIT }, async (t) => {
  const client = stubClient(t);
  const { pid } = await client.health.ping();
  // The stub never answers this call.
  const waits = drain(client.responses.retrieve("resp_1", { stream: true }));
  await assert.rejects(client.responses.create({ input: MUTE, fm: { timeout_ms: LIMIT_MS } }), { code: "TIMEOUT" });
  assert.equal((await inTime(waits)).error.code, "HELPER_UNHEALTHY");
  await until(() => !alive(pid), "its end");
});

test("a helper answers the calls that take a moment within ten seconds", { timeout: WAIT }, async (t) => {
  const client = stubClient(t);
  const { pid } = await client.health.ping();
  // The stub answers neither of these calls.
  const calls = ["retrieve", "delete"].map((name) => client.responses[name]("resp_1").catch((error) => error));
  assert.deepEqual((await Promise.all(calls)).map(({ code }) => code), ["TIMEOUT", "TIMEOUT"]);
  await until(() => !alive(pid), "its end");
});

test("a helper that has requests in hand keeps their limits: what waits or runs goes on", { timeout: WAIT }, async (t) => {
  const client = fakeClient(t);
  const { pid } = await client.health.ping();
  const words = Array.from({ length: 12 }, () => ["x", { sleep_ms: 150 }]).flat();
  // All eight places of the engine are taken for longer than the limits of the waiting request.
  const body = { input: script(...words), fm: { no_progress_timeout_ms: 1000 } };
  const busy = Array.from({ length: 8 }, () => client.responses.create(body));
  const fm = { first_token_timeout_ms: 500, no_progress_timeout_ms: 500 };
  const waits = client.responses.create({ input: "one two", fm });
  assert.equal((await waits).output_text, "one two");
  for (const response of await Promise.all(busy)) assert.equal(response.output_text, "x".repeat(12));
  assert.equal((await client.health.ping()).pid, pid);
});

test("a call that the helper itself ends in time costs no helper", { timeout: WAIT }, async (t) => {
  const client = fakeClient(t);
  const { pid } = await client.health.ping();
  const hanging = client.responses.create({ input: script({ hang: "soft" }), fm: { timeout_ms: 200 } });
  await assert.rejects(hanging, { code: "TIMEOUT", limit: "total" });
  checkResponse(await client.responses.create({ input: "x" }));
  assert.equal((await client.health.ping()).pid, pid);
});

test("a limit that the helper refuses is no limit of the package's either", { timeout: WAIT }, async (t) => {
  const client = fakeClient(t);
  for (const timeout_ms of [1e12, 2 ** 31, -1, 1.5, "5"]) {
    const call = client.responses.create({ input: script({ sleep_ms: 50 }, "x"), fm: { timeout_ms } });
    await assert.rejects(call, { code: "INVALID_REQUEST" });
  }
});

test("a request right after the death of an idle helper is answered by the next one", async (t) => {
  const client = stubClient(t);
  const { pid } = await client.health.ping();
  await client.responses.create({ input: "x" });
  // The death is not noticed before this turn of the event loop is over.
  process.kill(pid, "SIGKILL");
  const until = performance.now() + 20;
  while (performance.now() < until);
  checkResponse(await client.responses.create({ input: "one two" }));
  assert.equal(client.starts().length, 2);
});

test("a request that was read is not sent again, though nothing had come of it", async (t) => {
  const client = stubClient(t);
  await assert.rejects(client.responses.create({ input: script({ sleep_ms: 50 }, { signal: "KILL" }) }), {
    code: "HELPER_EXITED",
  });
  assert.equal(client.received("responses.create").length, 1);
});

test("a request on which two helpers die unread fails", async (t) => {
  const client = stubClient(t, { start: "die-at-create" });
  await assert.rejects(client.responses.create({ input: "x" }), { code: "HELPER_EXITED" });
  assert.equal(client.starts().length, 2);
});

test("spawnPerRequest: the same results, a helper for each call, two at once at most", { timeout: WAIT }, async (t) => {
  const client = stubClient(t, {}, { spawnPerRequest: true });
  const input = script("one ", { sleep_ms: 20 }, "two");
  const most = { children: 0 };
  const calls = Array.from({ length: 8 }, async (_, index) => {
    if (index % 2) return (await client.responses.create({ input })).output_text;
    const { events, error } = await drain(client.responses.stream({ input }), () => {
      const living = client.starts().filter(({ started }) => alive(started)).length;
      most.children = Math.max(most.children, living);
    });
    assert.equal(error, null);
    checkResponseStream(events);
    return deltas(events);
  });
  assert.deepEqual(await Promise.all(calls), Array(8).fill("one two"));
  assert.ok(most.children <= 2, `${most.children} at once`);
  assert.equal(client.starts().length, 9, "eight and one for the gate");
  await until(() => client.starts().every(({ started }) => !alive(started)), "the end of all");
});

test("spawnPerRequest: a cancel by id reaches the helper that makes the response", async (t) => {
  const client = stubClient(t, {}, { spawnPerRequest: true });
  let id;
  const { events, error } = await drain(client.responses.stream({ input: hang }), async (event) => {
    id ??= event.response.id;
    if (event.type.endsWith("delta")) await client.responses.cancel(id);
  });
  assert.equal(error.code, "CANCELLED");
  assert.equal(checkResponseStream(events).status, "cancelled");
  await assert.rejects(client.responses.create({ input: "x", background: true }), { code: "UNAVAILABLE" });
});

test("after crashes each request gets a helper, and an hour later one helper serves all again", async (t) => {
  let now = 1000;
  t.mock.method(performance, "now", () => now);
  const client = stubClient(t, {}, { restart: { firstDelayMs: 1, maxDelayMs: 1 } });
  for (let crash = 0; crash < 2; crash++) {
    await assert.rejects(client.responses.create({ input: script({ exit: 1 }) }), { code: "HELPER_EXITED" });
  }
  for (let request = 0; request < 3; request++) checkResponse(await client.responses.create({ input: "x" }));
  assert.equal(client.starts().length, 5);
  now += 3_600_000;
  for (let request = 0; request < 3; request++) checkResponse(await client.responses.create({ input: "x" }));
  assert.equal(client.starts().length, 6);
});

test("an idle helper ends after idleTimeoutMs, unless it holds responses", { timeout: WAIT }, async (t) => {
  const client = stubClient(t, {}, { idleTimeoutMs: 50 });
  const states = [];
  client.on("state", ({ state }) => states.push(state));
  const messages = [{ role: "user", content: "x" }];
  await client.chat.completions.create({ messages });
  await until(() => states.includes("parked"), "its end");
  await until(() => !alive(client.starts()[0].started), "its end");
  await client.chat.completions.create({ messages });
  assert.equal(client.starts().length, 2);
  const kept = stubClient(t, {}, { idleTimeoutMs: 1 });
  await kept.responses.create({ input: "x" });
  await new Promise((resolve) => setTimeout(resolve, 100));
  await kept.health.ping();
  assert.equal(kept.starts().length, 1);
});

test("close: a goodbye, then SIGTERM, then SIGKILL", async (t) => {
  const client = stubClient(t, { shutdown: "ignore", term: "log" }, { shutdownTimeoutMs: 1000 });
  const { pid } = await client.health.ping();
  await client.close();
  assert.equal(alive(pid), false);
  assert.deepEqual(
    client
      .log()
      .map(({ signal, method }) => signal ?? method)
      .filter((what) => what === "SIGTERM" || what === "process.shutdown"),
    ["process.shutdown", "SIGTERM"],
  );
});
