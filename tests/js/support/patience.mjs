// How long tests wait, and how they may check how long something took. A machine may be slow, and busy with other work: see
// tests/e2e/patience.py. This file has the part that the tests of the package need.

/** Milliseconds after which something counts as hanging. */
export const WAIT = 120_000;
const RUNS = 5;
const BUSY = 4; // on a machine that is this many times slower, even what must happen within a second may take longer
const LOOP_MS = 400; // the time of pace()'s loop on the machine for which the bounds were written

/**
 * How many times slower a piece of work is now than on the machine of LOOP_MS, or than on this one without other work; at least
 * 1.
 */
function pace() {
  const started = performance.now();
  const before = process.cpuUsage();
  let text = "";
  for (let i = 0; i < 3_000_000; i++) text = `${i}${text.slice(0, 9)}`;
  const { user, system } = process.cpuUsage(before);
  const took = performance.now() - started;
  return Math.max(1, took / LOOP_MS, (took * 1000) / (user + system));
}

/** An error that a busy machine can cause as well as a bug. */
class Late extends Error {}

/** Asserts that `took` is less than `bound`, both in ms. If the machine is slow now, `bound` is raised. */
export function soon(took, bound) {
  if (took < bound) return;
  const factor = pace();
  if (took >= bound * factor) throw new Late(`took ${took} ms, not less than ${bound}, on a machine ${factor} times as slow`);
}

/** Asserts `holds`, which may be false if the machine stood still for longer than a limit that the test sets. */
export function undisturbed(holds, message) {
  if (!holds) throw new Late(`does not hold, or the machine stood still: ${message}`);
}

/** The result of `work`. Throws `Late` if a helper was not ready within its limit, because the machine may be busy. */
export async function inTime(work) {
  try {
    return await work;
  } catch (error) {
    if (error.code !== "TIMEOUT" && error.code !== "HELPER_UNHEALTHY") throw error;
    throw new Late(`a helper started too slowly, or hangs: ${error.message}`);
  }
}

/** A test that is run again if it was Late, up to five times in all: if each run is late, it is a bug, or a busy machine. */
export const repeated = (run, slowness = pace) => async (t) => {
  for (let left = RUNS - 1; ; left--) {
    try {
      return await run(t);
    } catch (error) {
      if (!(error instanceof Late)) throw error;
      const factor = left === 0 ? slowness() : 0;
      if (factor >= BUSY) return t.skip(`${error.message}; on a machine ${factor.toFixed(1)} times as slow`);
      if (left === 0) throw error;
      t.diagnostic(`${error.message}; once more`);
    }
  }
};
