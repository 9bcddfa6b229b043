// Verifies what other tests rely on: a late test is run again, five times at most; other failures are not.
import assert from "node:assert/strict";
import { test } from "node:test";
import { repeated, soon, undisturbed } from "./support/patience.mjs";

const FOREVER = 1e12;

/** How often a test runs, and how it ends. Its nth run is `run(n)`, on a machine that is `slowness` times slower. */
async function runs(run, slowness = 1) {
  let count = 0;
  const t = { diagnostic() {}, skip: (reason) => `skipped: ${reason}` };
  const outcome = await repeated(() => run(++count), () => slowness)(t).then(
    (skipped) => skipped ?? "passed",
    (error) => error.message,
  );
  return [count, outcome];
}

test("a test that is in time runs once", async () => {
  assert.deepEqual(await runs(() => soon(1, 100)), [1, "passed"]);
});

test("a test that is late runs again", async () => {
  assert.deepEqual(await runs((n) => soon(n === 1 ? FOREVER : 1, 100)), [2, "passed"]);
  assert.deepEqual(await runs(async (n) => undisturbed(n > 2, "a token")), [3, "passed"]);
});

test("a test that is late each time fails", async () => {
  const [count, outcome] = await runs(() => soon(FOREVER, 100));
  assert.equal(count, 5);
  assert.match(outcome, /^took 1000000000000 ms, not less than 100/);
});

test("... on a machine on which nothing could be in time it is skipped", async () => {
  const [count, outcome] = await runs(() => undisturbed(false, "a token"), 4);
  assert.equal(count, 5);
  assert.match(outcome, /^skipped: .*a token; on a machine 4.0 times as slow$/);
});

test("another failure is final", async () => {
  assert.deepEqual(await runs(() => assert.fail("a bug")), [1, "a bug"]);
});
