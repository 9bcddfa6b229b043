// Makes two comparisons, which alternate (A B A B ...); medians count. See structured.sh.
import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { createClient } from "../../js-shim/dist/esm/index.js";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const models = join(root, "build/models");
const model = join(models, readdirSync(models).find((name) => name.endsWith(".gguf")));
const threads = String(availableParallelism());
const port = 18_000 + (process.pid % 2000);
const ROUNDS = 15;
const SETTLE_MS = 300; // after computing, a side's threads still spin for a while, waiting for more work

const schema = {
  type: "object",
  properties: {
    title: { type: "string", maxLength: 40 },
    category: { enum: ["science", "history", "sports", "music", "weather"] },
    priority: { enum: ["low", "medium", "high"] },
    status: { enum: ["open", "in_progress", "closed"] },
    count: { type: "integer", minimum: 0, maximum: 100 },
  },
  required: ["title", "category", "priority", "status", "count"],
  additionalProperties: false,
};
const user = (content) => [{ role: "user", content }];
const ask = (number) => user(`${number}Make a ticket about a thunderstorm that is coming to the harbour.`);
const asObject = {
  messages: ask(""),
  response_format: { type: "json_schema", json_schema: { name: "ticket", strict: true, schema } },
  temperature: 0,
  max_tokens: 200,
};
const story = { messages: user("Tell me a long story about a lighthouse."), temperature: 0, max_tokens: 128 };
const free = { ...story };
const guided = { ...story, fm: { grammar: { syntax: "regex", definition: "(?s:.*)" } } };

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

async function timed(run) {
  const start = performance.now();
  const completion = await run();
  return { ms: performance.now() - start, completion };
}

async function startServer() {
  const args = ["-m", model, "--port", String(port), "-t", threads, "-c", "8192", "-np", "1", "--log-disable"];
  const server = spawn(join(root, "build/deps/llama-server/bin/llama-server"), args, { stdio: "ignore" });
  for (let tries = 0; ; tries++) {
    const health = await fetch(`http://127.0.0.1:${port}/health`).catch(() => null);
    if (health?.ok) return server;
    if (tries > 300 || server.exitCode !== null) throw new Error("llama-server does not start");
    await new Promise((done) => setTimeout(done, 100));
  }
}

async function serverCompletion(body) {
  const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`llama-server: ${response.status} ${await response.text()}`);
  return response.json();
}

/** Median milliseconds of two functions that take turns, and their last answers. */
async function compare(first, second) {
  const times = [[], []];
  const last = [];
  for (let round = -1; round < ROUNDS; round++)
    for (const [index, run] of [first, second].entries()) {
      await new Promise((done) => setTimeout(done, SETTLE_MS));
      const { ms, completion } = await timed(run);
      if (round >= 0) times[index].push(ms); // the first round loads and caches
      last[index] = completion;
    }
  return { ms: times.map(median), last };
}

function print(name, ours, theirs, unit, ratio, bound) {
  const holds = bound === undefined || ratio <= bound;
  console.log(
    `${name.padEnd(46)} ${ours.toFixed(2).padStart(9)} ${theirs.toFixed(2).padStart(9)} ${unit.padEnd(9)} ` +
      `${ratio.toFixed(3).padStart(6)} ${bound ? `(at most ${bound})` : ""}${holds ? "" : "  DOES NOT HOLD"}`,
  );
  if (!holds) process.exitCode = 1;
}

const client = createClient({
  helperPath: join(root, "build/bin/fm-proxy"),
  kvCacheFiles: false,
  modelsDir: models,
  env: { FM_ENGINE_LLAMA_THREADS: threads },
});
const ours = (body) => () => client.chat.completions.create(body);
const server = await startServer();
try {
  console.log(`${"".padEnd(46)} ${"ours".padStart(9)} ${"other".padStart(9)}`);
  const object = await compare(ours(asObject), () => serverCompletion(asObject));
  for (const { choices } of object.last) {
    const ticket = JSON.parse(choices[0].message.content);
    if (Object.keys(ticket).join() !== schema.required.join()) throw new Error(choices[0].message.content);
  }
  print("an object of 5 fields, llama-server", ...object.ms, "ms", object.ms[0] / object.ms[1], 0.5);
  let number = 0; // both only have the beginning of the prompt from the earlier requests
  const numbered = () => ({ ...asObject, messages: ask(`${++number}: `) });
  const fresh = await compare(
    () => ours(numbered())(),
    () => serverCompletion(numbered()),
  );
  print("- with a prompt that is new each time", ...fresh.ms, "ms", fresh.ms[0] / fresh.ms[1]);
  const text = await compare(ours(guided), ours(free));
  const each = text.ms.map((ms, index) => ms / text.last[index].usage.completion_tokens);
  print("text by a grammar that allows all, free text", ...each, "ms/token", each[0] / each[1], 1.03);
  console.log(`our object: ${object.last[0].choices[0].message.content}`);
  console.log(`its object: ${object.last[1].choices[0].message.content}`);
  console.log(`tokens: ours ${object.last[0].usage.completion_tokens}, its ${object.last[1].usage.completion_tokens}`);
} finally {
  server.kill();
  await client.close();
}
