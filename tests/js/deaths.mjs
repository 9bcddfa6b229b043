// Hosts that are killed at a random moment leave no process; calls to a stopped helper end at most a second after their
// limit. Prints the longest times. Takes about three minutes for 200 hosts and 100 stopped helpers.
// usage: node tests/js/deaths.mjs [HOSTS] [STOPS]
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { copyFileSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createClient } from "../../js-shim/dist/esm/index.js";
import { alive, fakeOptions, helperPath, needFakeEngine, script } from "./support/helper.mjs";

const LEFT_MS = 2000;
const LIMIT_MS = 300;
const MORE_MS = 1000;
const SILENCE_MS = 500;
const GONE_MS = 10_000;
const answer = script("a ", { sleep_ms: 30 }, "b ", { sleep_ms: 60 }, "c ", { sleep_ms: 200 }, "d");

/** A host that sends one request after another to a helper in `folder`. */
async function host(folder) {
  const client = createClient({ ...fakeOptions, helperPath: join(folder, "fm-proxy") });
  for (;;) await Promise.allSettled([1, 2, 3].map(() => client.responses.create({ input: answer })));
}

/** The processes whose program is in `folder`. */
function processesOf(folder) {
  return readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readlinkSync(`/proc/${pid}/exe`).startsWith(folder);
    } catch {
      return false; // the process has ended, or has no program
    }
  });
}

/** Kills `count` hosts; returns the longest time in ms for which one of their processes stayed. */
async function killHosts(count, folder) {
  let longest = 0;
  for (let i = 0; i < count; i++) {
    const child = spawn(process.execPath, [fileURLToPath(import.meta.url), "host", folder], { stdio: "ignore" });
    await sleep(Math.random() * 600);
    const killed = new Promise((resolve) => child.on("exit", resolve));
    child.kill("SIGKILL");
    await killed;
    const start = performance.now();
    while (processesOf(folder).length > 0 && performance.now() - start < LEFT_MS) await sleep(10);
    longest = Math.max(longest, performance.now() - start);
    assert.deepEqual(processesOf(folder), [], `after host ${i} a process is left`);
  }
  return longest;
}

/** Stops `count` helpers, each before a call; returns the longest time in ms that a call took. */
async function stopHelpers(count) {
  let longest = 0;
  const restart = { maxCrashes: 1e9, firstDelayMs: 1, maxDelayMs: 10 };
  const client = createClient({ ...fakeOptions, handshakeTimeoutMs: SILENCE_MS, restart });
  for (let i = 0; i < count; i++) {
    const { pid } = await client.health.ping();
    process.kill(pid, "SIGSTOP");
    const start = performance.now();
    const outcome = await client.responses.create({ input: "x", fm: { timeout_ms: LIMIT_MS } }).catch((error) => error);
    longest = Math.max(longest, performance.now() - start);
    // The next helper answers requests that the stopped one has not read, if there is enough time.
    if (outcome.output_text === undefined) assert.match(outcome.code, /^(TIMEOUT|HELPER_UNHEALTHY)$/, outcome.detail);
    while (alive(pid) && performance.now() - start < GONE_MS) await sleep(5);
    assert.ok(!alive(pid), `the stopped helper ${i} is still there`);
  }
  await client.close();
  return longest;
}

async function main(hosts, stops) {
  needFakeEngine();
  const folder = mkdtempSync(join(tmpdir(), "fm-deaths-"));
  try {
    for (const name of ["fm-proxy", "fm-engine-fake", "fm-engine-fake.json"])
      copyFileSync(join(dirname(helperPath), name), join(folder, name));
    const left = await killHosts(hosts, folder);
    console.log(`${hosts} hosts killed: no process of theirs after ${Math.round(left)} ms at most`);
    const took = await stopHelpers(stops);
    console.log(`${stops} helpers stopped: each call with a limit of ${LIMIT_MS} ms ended within ${Math.round(took)} ms`);
    assert.ok(took < LIMIT_MS + MORE_MS, "a call took longer than its limit and a second");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (process.argv[2] === "host") await host(process.argv[3]);
else await main(Number(process.argv[2] ?? 200), Number(process.argv[3] ?? 100));
