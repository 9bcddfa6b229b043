// Measures what the engine `remote` costs. Compares the stock SDK that talks to llama-server directly with the same SDK through
// fm-proxy and the engine, in turns. Also measures how long a cancel takes to close the connection to the server.
//
//   node tests/bench/remote.mjs [ROUNDS [first|streams|cancel]]
//
// Run packaging/setup.sh --tests first; tests/bench/remote.sh builds the rest.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { createServer as createListener } from "node:net";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { createClient } from "../../js-shim/dist/esm/index.js";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const rounds = Number(process.argv[2] ?? 100);
const part = process.argv[3];
const model = join(root, "build/models/SmolLM2-135M-Instruct.Q4_1.gguf");
const STREAMS = 64;
const sdk = createRequire(join(root, "tests/js/package.json")).resolve("openai");
const { default: OpenAI } = await import(pathToFileURL(sdk).href);

function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

async function freePort() {
  const listener = createListener().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address();
  listener.close();
  await once(listener, "close");
  return port;
}

async function startServer() {
  const port = await freePort();
  const program = join(root, "build/deps/llama-server/bin/llama-server");
  const options = ["-m", model, "--port", `${port}`, "-c", `${STREAMS * 256}`, "-np", `${STREAMS}`, "-t", "1", "--no-webui"];
  const child = spawn(program, options, { stdio: "ignore" });
  const url = `http://127.0.0.1:${port}`;
  for (;;) {
    const answer = await fetch(`${url}/health`).catch(() => undefined);
    if (answer?.ok) return { url: `${url}/v1`, stop: () => child.kill("SIGKILL") };
    if (child.exitCode !== null) throw new Error("llama-server has ended");
    await new Promise((done) => setTimeout(done, 50));
  }
}

function helperFor(url) {
  const client = createClient({
    helperPath: join(root, "build/bin/fm-proxy"),
    engine: "remote",
    remote: { endpoints: [{ url, dialect: "chat", key: "sk-bench" }] },
  });
  const fetch = client.fetch;
  return { client, openai: new OpenAI({ apiKey: "x", baseURL: "http://fm-proxy/v1", fetch, maxRetries: 0 }) };
}

async function answer(openai, maxTokens, signal) {
  const begun = performance.now();
  let first;
  let pieces = 0;
  const messages = [{ role: "user", content: "Please count from one to twenty in words." }];
  const stream = await openai.chat.completions.create(
    { model: "any", messages, stream: true, max_tokens: maxTokens, temperature: 0 }, { signal });
  for await (const chunk of stream) {
    if (!chunk.choices[0]?.delta?.content) continue;
    first ??= performance.now() - begun;
    pieces++;
  }
  return { first, pieces, all: performance.now() - begun };
}

async function firstTokens(ways) {
  const times = ways.map(() => []);
  for (const way of ways) await answer(way, 4);
  for (let round = 0; round < rounds; round++) {
    for (const [i, way] of ways.entries()) times[i].push((await answer(way, 4)).first);
  }
  const [direct, ours] = times;
  for (const [name, share, most] of [["p50", 0.5, 3], ["p99", 0.99, 10]]) {
    const [a, b] = [quantile(direct, share), quantile(ours, share)];
    report(`first token, ${name}`, `${a.toFixed(2)} ms, ours ${b.toFixed(2)} ms: +${(b - a).toFixed(2)}`, `at most +${most}`,
      b - a <= most);
  }
}

async function streams(ways) {
  const rates = ways.map(() => []);
  for (let round = 0; round < Math.max(3, Math.floor(rounds / 20)); round++) {
    for (const [i, way] of ways.entries()) {
      const begun = performance.now();
      const answers = await Promise.all(Array.from({ length: STREAMS }, () => answer(way, 24)));
      const pieces = answers.reduce((sum, one) => sum + one.pieces, 0);
      rates[i].push((pieces * 1000) / (performance.now() - begun));
    }
  }
  const [a, b] = rates.map((values) => quantile(values, 0.5));
  const told = `${a.toFixed(0)} pieces/s, ours ${b.toFixed(0)}: ${(b / a).toFixed(3)}x`;
  report(`${STREAMS} streams`, told, "at least 0.98x", b / a >= 0.98);
}

async function cancels() {
  let closed;
  const server = createServer((request, response) => {
    request.resume();
    if (request.method !== "POST") return void response.writeHead(404).end(); // the request that checks whether there is a server
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write('data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n');
    response.on("close", () => closed?.(performance.now()));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { client, openai } = helperFor(`http://127.0.0.1:${server.address().port}/v1`);
  const times = [];
  for (let round = 0; round < rounds; round++) {
    const controller = new AbortController();
    const end = new Promise((done) => (closed = done));
    const stream = await openai.chat.completions.create(
      { model: "any", messages: [{ role: "user", content: "hi" }], stream: true }, { signal: controller.signal });
    let begun;
    for await (const chunk of stream) {
      if (!chunk.choices[0]?.delta?.content) continue;
      begun = performance.now(); // leaving the loop also cancels
      controller.abort();
      break;
    }
    times.push((await end) - begun);
  }
  await client.close();
  server.closeAllConnections();
  server.close();
  const p99 = quantile(times, 0.99);
  report("cancel to close, p99", `${p99.toFixed(2)} ms (p50 ${quantile(times, 0.5).toFixed(2)})`, "at most 50", p99 <= 50);
}

let missed = 0;

function report(name, got, wanted, kept) {
  missed += kept ? 0 : 1;
  console.log(`${name.padEnd(22)} ${got.padEnd(48)} ${wanted.padEnd(16)} ${kept ? "ok" : "MISSED"}`);
}

async function compare() {
  const server = await startServer();
  try {
    const { client, openai } = helperFor(server.url);
    const ways = [new OpenAI({ apiKey: "x", baseURL: server.url, maxRetries: 0 }), openai];
    if (part !== "streams") await firstTokens(ways);
    if (part !== "first") await streams(ways);
    await client.close();
  } finally {
    server.stop();
  }
}

if (part !== "cancel") await compare();
if (part === undefined || part === "cancel") await cancels();
process.exitCode = missed > 0 ? 1 : 0;
