// Requests under random kills and stops of the helper and its engine: each settles once, in time, with its own answer or an
// error. No rejection is unhandled, and no process is left. Takes about two minutes for 1,000 requests.
// usage: node tests/js/chaos.mjs [REQUESTS] [SEED]
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "../../js-shim/dist/esm/index.js";
import { children, deltas, drain, fakeOptions, needFakeEngine, script } from "./support/helper.mjs";
import { checkResponseStream } from "./support/invariants.mjs";

const requests = Number(process.argv[2] ?? 1000);
const seed = Number(process.argv[3] ?? Date.now() % 100_000);
const AT_ONCE = 8;
const LIMIT_MS = 3000;
/** Time after a request's limit, because a busy machine is late. */
const LATE_MS = 3000;
const EXPECTED = /^(HELPER_EXITED|HELPER_UNHEALTHY|TIMEOUT|INTERNAL|UNAVAILABLE|CANCELLED|SPAWN_FAILED)$/;

needFakeEngine();
let state = seed;
/** A number from 0 up to 1: Lehmer's generator, so that the same seed repeats a run, apart from timing. */
const random = () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
const oneOf = (list) => list[Math.floor(random() * list.length)];

/** The processes that the threads of a helper have started. */
const engines = (pid) => {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    const lists = threads.map((thread) => readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8"));
    return lists.join(" ").split(" ").filter(Boolean).map(Number);
  } catch {
    return [];
  }
};

const counts = {};
const count = (what) => (counts[what] = (counts[what] ?? 0) + 1);
process.on("unhandledRejection", (reason) => {
  console.error("an unhandled rejection:", reason);
  process.exit(1);
});

async function ask(client, number) {
  const pieces = [`<${number}> `, { sleep_ms: Math.floor(random() * 40) }, "and ", { sleep_ms: 5 }, `again <${number}>`];
  const text = pieces.filter((piece) => typeof piece === "string").join("");
  const body = { input: script(...pieces), store: false, fm: { timeout_ms: LIMIT_MS } };
  const started = performance.now();
  let outcome;
  if (number % 2 === 0) {
    outcome = await client.responses.create(body).catch((error) => error);
    if (outcome.code === undefined) assert.equal(outcome.output_text, text);
  } else {
    const { events, error } = await drain(client.responses.stream(body));
    if (events.length > 0) checkResponseStream(events);
    assert.ok(text.startsWith(deltas(events)), "another request's text");
    if (error === null) assert.equal(deltas(events), text);
    outcome = error ?? {};
  }
  const took = performance.now() - started;
  assert.ok(took < LIMIT_MS + 1000 + LATE_MS, `request ${number} took ${Math.round(took)} ms`);
  if (outcome.code !== undefined) assert.match(outcome.code, EXPECTED, outcome.detail);
  count(outcome.code ?? "answered");
  return outcome.code;
}

async function sabotage(over) {
  while (!over()) {
    await sleep(20 + random() * 130);
    const helper = oneOf(children());
    if (helper === undefined) continue;
    const victim = random() < 0.5 ? helper : (oneOf(engines(helper)) ?? helper);
    const signal = oneOf(["SIGKILL", "SIGSTOP", "SIGTERM", "SIGSEGV"]);
    try {
      process.kill(victim, signal);
      count(`${signal} to ${victim === helper ? "a helper" : "an engine"}`);
    } catch {
      // The process has ended already.
    }
  }
}

const restart = { maxCrashes: 1e9, firstDelayMs: 1, maxDelayMs: 10 };
const client = createClient({ ...fakeOptions, handshakeTimeoutMs: 1500, restart });
// If the first helper dies before any answer, the client counts it as one that can't be started, until `recheck`.
await client.health.ping();
let next = 0;
let left = AT_ONCE;
const workers = Array.from({ length: AT_ONCE }, async () => {
  while (next < requests) {
    const number = next++;
    const code = await ask(client, number);
    // Without this check, all later requests would get UNAVAILABLE at once after one killed check or load.
    if (code === "UNAVAILABLE") {
      await sleep(100); // A helper remembers the failed load for a minute; a new helper does not.
      await client.compatibility.check({ recheck: true });
    }
  }
  left--;
});
await Promise.all([...workers, sabotage(() => left === 0)]);
await client.close();
console.log(`seed ${seed}: ${requests} requests`, counts);
const settled = Object.entries(counts).filter(([what]) => !what.startsWith("SIG"));
assert.equal(settled.reduce((sum, [, times]) => sum + times, 0), requests, "each settles once");
assert.ok(counts.answered > requests / 3, `only ${counts.answered ?? 0} of ${requests} were answered`);
assert.deepEqual(children(), [], "a process is left");
