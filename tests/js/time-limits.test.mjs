// The time limits from the package's side: which one passes next, and a clock that does not count pauses of the host.
import assert from "node:assert/strict";
import { test } from "node:test";
import { TimeLimits, stageOf, timeoutOf } from "../../js-shim/dist/esm/time-limits.js";
import { Watch } from "../../js-shim/dist/esm/watch.js";

const QUEUED = { since: 1000, heardAt: null, known: false, stage: "queued" };
const HEARD = { ...QUEUED, heardAt: 1500 };
const BEGUN = { ...HEARD, stage: "begun" };
const PRODUCED = { ...HEARD, stage: "produced" };
for (const [what, fm, progress, name, at] of [
  ["nothing is named, and nobody has it", {}, QUEUED, "total", 601_000],
  ["nothing is named, and a helper has it", {}, HEARD, "no_progress", 61_500],
  ["the queue's default counts from the arrival, too", { no_progress_timeout_ms: 500_000 }, HEARD, "queue", 121_000],
  ["before a helper has it, the queue counts if it is named", { queue_timeout_ms: 300 }, QUEUED, "queue", 1300],
  ["and from the arrival", { queue_timeout_ms: 700 }, HEARD, "queue", 1700],
  ["the helper says that it waits", { queue_timeout_ms: 700 }, { ...HEARD, known: true }, "queue", 2200],
  ["nor is it asked again at once", { queue_timeout_ms: 1 }, { ...HEARD, known: true }, "queue", 1600],
  ["the first token, before a helper has it", { first_token_timeout_ms: 10 }, QUEUED, "total", 601_000],
  ["the first token", { first_token_timeout_ms: 10 }, HEARD, "first_token", 1510],
  ["the first token, once it has begun", { queue_timeout_ms: 1, first_token_timeout_ms: 10 }, BEGUN, "first_token", 1510],
  ["once there is output", { queue_timeout_ms: 1, first_token_timeout_ms: 1 }, PRODUCED, "no_progress", 61_500],
  ["no progress", { no_progress_timeout_ms: 20 }, PRODUCED, "no_progress", 1520],
  ["the total does not wait for what is heard", { timeout_ms: 600 }, { ...HEARD, known: true }, "total", 1600],
  ["what the helper refuses is no limit", { timeout_ms: 0, queue_timeout_ms: 1e12 }, QUEUED, "total", 601_000],
  ["nor is what is no number", { no_progress_timeout_ms: "5" }, HEARD, "no_progress", 61_500],
]) {
  test(`the limit that passes next: ${what}`, () => {
    const next = new TimeLimits({ fm }).next(progress);
    assert.deepEqual([next.limit.name, next.at], [name, at]);
  });
}

test("a body without fm has the limits of the helper", () => {
  for (const fm of [undefined, null, 5, []]) assert.equal(new TimeLimits({ fm }).next(QUEUED).at, 601_000);
});

const chunk = (...choices) => ({ chunk: { choices } });
for (const [message, stage] of [
  [{ event: { type: "response.created" } }, "begun"],
  [{ event: { type: "response.queued" } }, "begun"],
  [{ event: { type: "response.in_progress" } }, "begun"],
  [{ event: { type: "response.output_item.added" } }, "produced"],
  [chunk({ delta: { role: "assistant", content: "" }, finish_reason: null }), "begun"],
  [chunk({ delta: { content: "x" }, finish_reason: null }), "produced"],
  [chunk({ delta: { tool_calls: [{}] }, finish_reason: null }), "produced"],
  [chunk({ delta: { reasoning_content: "x" } }), "produced"],
  [chunk({ delta: {}, finish_reason: "stop" }), "produced"],
  [chunk({ text: "", finish_reason: null }), "begun"],
  [chunk({ text: "x", finish_reason: null }), "produced"],
  [{ chunk: { choices: [] } }, "begun"],
  [{}, "begun"],
]) {
  test(`how far a request is: ${JSON.stringify(message)}`, () => assert.equal(stageOf(message), stage));
}

test("the error says which limit it was; a call that is no request has none", () => {
  const { limit, limitMs, detail } = timeoutOf("responses.create", { name: "first_token", ms: 5 });
  assert.deepEqual([limit, limitMs], ["first_token", 5]);
  assert.match(detail, /no output of responses\.create within 5 ms \(first_token_timeout_ms\)/);
  assert.equal(timeoutOf("models.list", { ms: 5 }).limit, undefined);
});

/** A Watch that ends at `end` on the test's clock. `run` lets some time pass, and then a pause of the host. */
function watchUntil(t, end) {
  let real = 0;
  let timer = null;
  t.mock.method(performance, "now", () => real);
  t.mock.method(globalThis, "setTimeout", (call, ms) => (timer = { call, at: real + ms }));
  t.mock.method(globalThis, "clearTimeout", (it) => void (timer = it === timer ? null : timer));
  t.mock.method(globalThis, "setImmediate", (call) => call());
  const looks = [];
  const watch = new Watch((now) => {
    looks.push(now);
    return now >= end ? null : end;
  });
  watch.wake();
  const run = (ms, pause = 0) => {
    real += ms + pause;
    if (timer === null || real < timer.at) return;
    const { call } = timer;
    timer = null;
    call();
  };
  return { watch, looks, run };
}

test("a watch looks in time, and no more after its end", (t) => {
  const { looks, run } = watchUntil(t, 1200);
  for (let i = 0; i < 10; i++) run(400);
  assert.ok(looks.at(-1) >= 1200 && looks.at(-1) <= 1700, looks.join());
});

test("time in which the process stood still does not count", (t) => {
  const { watch, looks, run } = watchUntil(t, 1200);
  run(500, 3_600_000);
  assert.equal(watch.stood, 3_600_000);
  assert.equal(watch.now, 500);
  run(500);
  assert.ok(looks.at(-1) < 1200, looks.join());
  run(500);
  assert.ok(looks.at(-1) >= 1200, looks.join());
});

test("a busy machine is no pause", (t) => {
  const { watch, run } = watchUntil(t, 5000);
  run(500, 900);
  assert.equal(watch.stood, 0);
});

test("a watch that is stopped looks no more", (t) => {
  const { watch, looks, run } = watchUntil(t, 1200);
  watch.stop();
  watch.wake();
  run(2000);
  assert.equal(looks.length, 1);
});
