// Measures four figures, each with its bound from the project's own claims. Comparisons alternate (A B A B ...); medians count.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { createClient } from "../../js-shim/dist/esm/index.js";

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, "../..");
const bin = join(root, "build/bin");
const helper = [join(bin, "fm-proxy"), "--engine", "fake"];
// The tests of the package have installed this library.
const nodePath = join(root, "tests/js/node_modules");
createRequire(join(root, "tests/js/package.json")).resolve("vscode-jsonrpc/node");
const nodeServer = [process.execPath, join(here, "ping-server.cjs")];

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

function frame(message) {
  const body = Buffer.from(JSON.stringify(message));
  return Buffer.concat([Buffer.from(`Content-Length: ${body.length}\r\n\r\n`), body]);
}

function start(command) {
  return spawn(command[0], command.slice(1), {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, NODE_PATH: nodePath },
  });
}

/** Resolves when `count` frames have come out. Only searches the bytes and parses nothing, so that the client costs little. */
function frames(child, count) {
  return new Promise((done, failed) => {
    let seen = 0;
    let tail = Buffer.alloc(0);
    const word = Buffer.from("Content-Length");
    child.on("exit", () => failed(new Error(`the server ended after ${seen} of ${count} replies`)));
    child.stdout.on("data", (chunk) => {
      const data = tail.length ? Buffer.concat([tail, chunk]) : chunk;
      let at = 0;
      for (let next = data.indexOf(word); next >= 0; next = data.indexOf(word, at)) {
        seen++;
        at = next + word.length;
      }
      tail = data.subarray(Math.max(at, data.length - word.length + 1));
      if (seen >= count) done();
    });
  });
}

function stop(child) {
  return new Promise((done) => {
    child.removeAllListeners("exit");
    child.on("exit", done);
    child.kill();
  });
}

async function pingsPerSecond(command, count) {
  const child = start(command);
  const first = frames(child, 1);
  child.stdin.write(frame({ jsonrpc: "2.0", id: 0, method: "health.ping" }));
  await first;
  child.stdout.removeAllListeners("data");
  child.removeAllListeners("exit");
  const all = Buffer.concat(
    Array.from({ length: count }, (_, i) => frame({ jsonrpc: "2.0", id: i + 1, method: "health.ping" })),
  );
  const before = performance.now();
  const replies = frames(child, count);
  child.stdin.write(all);
  await replies;
  const seconds = (performance.now() - before) / 1000;
  await stop(child);
  return count / seconds;
}

async function spawnToPong(command) {
  const before = performance.now();
  const child = start(command);
  const pong = frames(child, 1);
  child.stdin.write(frame({ jsonrpc: "2.0", id: 1, method: "health.ping" }));
  await pong;
  const ms = performance.now() - before;
  await stop(child);
  return ms;
}

async function sideBySide(rounds, ours, theirs) {
  const results = { ours: [], theirs: [] };
  for (let i = 0; i < rounds; i++) {
    results.ours.push(await ours());
    results.theirs.push(await theirs());
  }
  return { ours: median(results.ours), theirs: median(results.theirs) };
}

const rows = [];
function row(what, value, bound, holds, detail) {
  rows.push({ what, value, bound, holds, detail });
  console.log(`${holds ? "ok  " : "FAIL"}  ${what}: ${value} (bound ${bound})  ${detail}`);
}

async function benchPings() {
  const count = 100_000;
  const r = await sideBySide(
    5,
    () => pingsPerSecond(helper, count),
    () => pingsPerSecond(nodeServer, count),
  );
  const ratio = r.ours / r.theirs;
  row(
    "pings/s, pipelined, over the Node server's",
    ratio.toFixed(1),
    ">= 5",
    ratio >= 5,
    `${Math.round(r.ours)} against ${Math.round(r.theirs)}, ${count} a round`,
  );
}

async function benchSpawn() {
  const r = await sideBySide(
    15,
    () => spawnToPong(helper),
    () => spawnToPong(nodeServer),
  );
  const ratio = r.ours / r.theirs;
  row(
    "spawn to first pong, over the Node server's",
    ratio.toFixed(3),
    "<= 0.1",
    ratio <= 0.1,
    `${r.ours.toFixed(2)} ms against ${r.theirs.toFixed(2)} ms`,
  );
}

const PROMPT = "Write a long story about a lighthouse keeper and the sea.";
const TOKENS = 256;

/** Decode speed: tokens after the first one, divided by the time since the first one. */
async function packageTokensPerSecond(client) {
  let first = 0;
  let last = 0;
  let usage;
  const stream = await client.responses.create({
    input: PROMPT,
    temperature: 0,
    max_output_tokens: TOKENS,
    stream: true,
  });
  for await (const event of stream) {
    if (event.type === "response.output_text.delta") {
      last = performance.now();
      first ||= last;
    }
    if (event.response?.usage) usage = event.response.usage;
  }
  return { tokensPerSecond: (usage.output_tokens - 1) / ((last - first) / 1000), tokens: usage.output_tokens };
}

function bareTokensPerSecond(model) {
  const out = execFileSync(join(root, "build/tests-bin/bare_llama"), [model, PROMPT, String(TOKENS)], { encoding: "utf8" });
  return JSON.parse(out.trim().split("\n").at(-1));
}

function residentKiB(pid) {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]);
}

async function benchModel() {
  const models = join(root, "build/models");
  const file = existsSync(models) && readdirSync(models).find((name) => name.endsWith(".gguf"));
  if (!file) throw new Error("no model in build/models: run packaging/setup.sh");
  const client = createClient({ helperPath: join(bin, "fm-proxy"), kvCacheFiles: false });
  await packageTokensPerSecond(client);
  const ours = [];
  const bare = [];
  let tokens;
  for (let i = 0; i < 9; i++) {
    const run = await packageTokensPerSecond(client);
    ours.push(run.tokensPerSecond);
    tokens = run.tokens;
    bare.push(bareTokensPerSecond(join(models, file)).decode_tokens_per_second);
  }
  const ratio = median(ours.map((value, i) => value / bare[i]));
  row(
    "tokens/s through the package, over the bare engine loop's",
    ratio.toFixed(3),
    ">= 0.95",
    ratio >= 0.95,
    `${median(ours).toFixed(1)} against ${median(bare).toFixed(1)}, ${tokens} tokens a round`,
  );
  const { pid } = await client.health.ping();
  const kib = residentKiB(pid);
  row(
    "the front's resident memory with a model loaded",
    `${(kib / 1024).toFixed(2)} MiB`,
    "<= 6 MiB",
    kib <= 6 * 1024,
    "VmRSS",
  );
  await client.close();
}

const parts = { pings: benchPings, spawn: benchSpawn, model: benchModel };
for (const name of process.argv.length > 2 ? process.argv.slice(2) : Object.keys(parts)) await parts[name]();
process.exitCode = rows.every((r) => r.holds) ? 0 : 1;
