// Helpers that hang, with each of the four limits, many times: each request ends in time by the named limit, and no request
// that is sent after a passed deadline fails because of it. These are tests of hung.test.mjs. If a busy machine is late, a test
// begins again; the script prints how often, and why. On a quiet machine this never happens. 100 rounds take five minutes.
// usage: node tests/js/hangs.mjs [ROUNDS]
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const rounds = Number(process.argv[2] ?? 100);
if (!(rounds >= 1)) throw new Error("ROUNDS must be a number from 1 on");
const AT_ONCE = 6;
const TESTS = "a helper that hangs, |a deadline that passes|mute before it says";
const COUNT = 7;
const file = fileURLToPath(new URL("hung.test.mjs", import.meta.url));
const args = ["--test", "--test-reporter=tap", "--test-name-pattern", TESTS, file];
let [begun, failed, anew] = [0, 0, 0];

const workers = Array.from({ length: AT_ONCE }, async () => {
  while (begun < rounds) {
    begun++;
    const { code = 0, stdout } = await run(process.execPath, args).catch((error) => error);
    for (const [reason] of stdout.matchAll(/^.*; once more$/gm)) {
      anew++;
      console.log(reason);
    }
    const passed = stdout.match(/^ok (?!.*# SKIP)/gm)?.length;
    if (code === 0 && passed === COUNT) continue;
    failed++;
    console.error(stdout);
  }
});
await Promise.all(workers);
console.log(`hangs: ${rounds} rounds of ${COUNT} tests, ${failed} failed, ${anew} begun anew`);
process.exitCode = failed > 0 ? 1 : 0;
