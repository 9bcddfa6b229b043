// What other tests rely on: a test that is late is run again, five times at most; no other failure is.
import assert from "node:assert/strict";
import { test } from "node:test";
import { repeated, soon, undisturbed } from "./support/patience.mjs";

const FOREVER = 1e12;

/** How often a test runs, and how it ends, whose nth run is `run(n)`. */
async function runs(run) {
  let count = 0;
  const outcome = await repeated(() => run(++count))({ diagnostic() {} }).then(
    () => "passed",
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

test("another failure is final", async () => {
  assert.deepEqual(await runs(() => assert.fail("a bug")), [1, "a bug"]);
});
