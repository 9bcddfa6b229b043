// Measures what the package costs its host, and compares it with limits: time to load it, time of compatibility.check(), and
// memory over many requests. Needs the fake engine and no other work on the machine; takes about a minute.
//
// usage: node --expose-gc tests/js/costs.mjs [REQUESTS]       (after sh packaging/setup.sh; 10,000 requests)
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { createClient } from "../../js-shim/dist/esm/index.js";
import { helperPath, root } from "./support/helper.mjs";

const REQUESTS = Number(process.argv[2] ?? 10_000);
const FAKE = { helperPath, engine: "fake" };
const dist = (file) => JSON.stringify(join(root, "js-shim", "dist", file));
const LOADS = {
  nothing: [[], ""],
  require: [[], `require(${dist("index.cjs")}).createClient();`],
  import: [["--input-type=module"], `(await import(${dist("index.mjs")})).createClient();`],
};
let failed = 0;

await main();

async function main() {
  if (!(REQUESTS >= 1000)) throw new Error("REQUESTS must be a number from 1,000 on");
  if (globalThis.gc === undefined) throw new Error("start it with node --expose-gc");
  console.log("| What | Median | 99th percentile | Limit |\n|---|---|---|---|");
  report("nothing, processor time", times(30, () => load("nothing")), { median: 1 });
  report("require and createClient, processor time", times(30, () => load("require")), { median: 10 });
  report("import and createClient, processor time", times(30, () => load("import")), { median: 10 });
  report("check(), refused without a helper", await timesOf(1000, checkElsewhere), { p99: 1 });
  report("check(), remembered", await remembered(), { p99: 1 });
  report("check() with a start", await timesOf(100, checkWithStart), { p99: 100 });
  await heap();
  console.log(`costs: ${failed} failed`);
  process.exitCode = failed > 0 ? 1 : 0;
}

/** Loads the package in a fresh Node, as a host would. */
function load(how) {
  const [args, code] = LOADS[how];
  const timed = `
const begun = process.cpuUsage();
${code}
const { user, system } = process.cpuUsage(begun);
console.log((user + system) / 1000);`;
  return Number(execFileSync(process.execPath, [...args, "-e", timed], { encoding: "utf8" }));
}

/** Checks an engine that this machine does not support. */
async function checkElsewhere() {
  return checked(createClient({ engine: "apple" }), false);
}

async function checkWithStart() {
  return checked(createClient(FAKE), true);
}

/** How long the first check of a client takes, in ms. */
async function checked(client, expected) {
  const begun = performance.now();
  const { compatible } = await client.compatibility.check();
  const took = performance.now() - begun;
  if (compatible !== expected) throw new Error(`the check says ${compatible}`);
  await client.close();
  return took;
}

async function remembered() {
  const client = createClient(FAKE);
  await client.compatibility.check();
  const found = await timesOf(1000, async () => {
    const begun = performance.now();
    await client.compatibility.check();
    return performance.now() - begun;
  });
  await client.close();
  return found;
}

/** The heap after a tenth of the requests, and after all: memory that is kept for each request would show. */
async function heap() {
  const client = createClient(FAKE);
  const used = async (count) => {
    for (let i = 0; i < count; i++) {
      if (i % 2 === 0) await client.responses.create({ input: "one two three" });
      else for await (const event of client.responses.stream({ input: "one two three" })) void event;
    }
    globalThis.gc();
    return process.memoryUsage().heapUsed;
  };
  const early = await used(REQUESTS / 10);
  const late = await used((REQUESTS / 10) * 9);
  await client.close();
  const grown = Math.round((late - early) / 1024);
  const right = grown < 512;
  if (!right) failed++;
  const verdict = `limit 512 KiB${right ? "" : ": FAILED"}`;
  console.log(`\nHeap: ${Math.round(early / 1024)} KiB after ${REQUESTS / 10} requests, ${grown} more after all; ${verdict}`);
}

function times(count, measure) {
  return Array.from({ length: count }, measure);
}

async function timesOf(count, measure) {
  const found = [];
  for (let i = 0; i < count; i++) found.push(await measure());
  return found;
}

function report(what, found, { median = Infinity, p99 = Infinity }) {
  const sorted = found.toSorted((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
  const right = at(0.5) <= median && at(0.99) <= p99;
  if (!right) failed++;
  const limit = median < Infinity ? `median ${median} ms` : `99th percentile ${p99} ms`;
  console.log(`| ${what} | ${at(0.5).toFixed(3)} ms | ${at(0.99).toFixed(3)} ms | ${limit}${right ? "" : ": FAILED"} |`);
}
