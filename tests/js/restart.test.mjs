// When a helper is started again, and the limits that apply unless the caller sets others.
import assert from "node:assert/strict";
import { test } from "node:test";
import { RESTART_POLICY, restartDelay } from "../../js-shim/dist/esm/restart.js";
import { script, stubClient } from "./support/helper.mjs";
import { WAIT } from "./support/patience.mjs";

test("J2, J18: the policy unless a caller says otherwise", () => {
  assert.deepEqual(RESTART_POLICY, {
    perRequestAfter: 2,
    maxCrashes: 4,
    firstDelayMs: 100,
    maxDelayMs: 5000,
    healthyAfterMs: 60_000,
    persistentAfterMs: 3_600_000,
  });
});

test("J18: pauses double up to their maximum, and chance takes at most half of one", (t) => {
  const random = t.mock.method(Math, "random");
  const delays = (chance) => {
    random.mock.mockImplementation(() => chance);
    return Array.from({ length: 9 }, (_, index) => restartDelay(index + 2, RESTART_POLICY));
  };
  const longest = [100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000];
  assert.deepEqual(delays(0), longest.map((delay) => delay / 2));
  assert.deepEqual(delays(0.5), longest.map((delay) => delay * 0.75));
  // Math.random never returns exactly 1.
  delays(1 - Number.EPSILON).forEach((delay, index) => {
    assert.ok(delay <= longest[index] && delay > longest[index] * 0.999, `${delay} of ${longest[index]}`);
  });
});

/** Makes all timers of this length fire at once, and counts them. */
function shorten(t, length) {
  const { setTimeout } = globalThis;
  let count = 0;
  t.mock.method(globalThis, "setTimeout", (callback, ms, ...more) => {
    if (ms === length) count++;
    return setTimeout(callback, ms === length ? 0 : ms, ...more);
  });
  return () => count;
}

test("J3: a silent helper has 5 s unless the caller says otherwise", { timeout: WAIT }, async (t) => {
  const shortened = shorten(t, 5000);
  const client = stubClient(t, { start: "silent" });
  await assert.rejects(
    client.health.ping(),
    ({ code, detail }) => code === "HELPER_UNHEALTHY" && /within 5000 ms/.test(detail),
  );
  assert.equal(shortened(), 1);
});

test("close waits 2 s unless the caller says otherwise", { timeout: WAIT }, async (t) => {
  const client = stubClient(t, { shutdown: "ignore" });
  await client.health.ping();
  const shortened = shorten(t, 2000);
  await client.close();
  assert.equal(shortened(), 1);
});

for (const [lived, count, code] of [
  [59_999, "goes on", "HELPER_UNHEALTHY"],
  [60_000, "starts anew", "HELPER_EXITED"],
]) {
  test(`J18: a crash after ${lived} ms of health: the count of crashes ${count}`, async (t) => {
    const client = stubClient(t, {}, { restart: { maxCrashes: 2 } });
    let now = 0;
    t.mock.method(performance, "now", () => now);
    const crash = () => client.responses.create({ input: script({ exit: 1 }) });
    await assert.rejects(crash(), { code: "HELPER_EXITED" });
    await client.health.ping();
    now += lived;
    await assert.rejects(crash(), { code: "HELPER_EXITED" });
    await assert.rejects(crash(), { code });
  });
}
