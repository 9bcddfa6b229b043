// The paths of the helpers, and clients for them that are closed when the test ends.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import { createClient } from "../../../js-shim/dist/esm/index.js";
import { platformPackage } from "../../../js-shim/dist/esm/locate.js";
import { Audit, auditClient } from "./audit.mjs";
import { WAIT } from "./patience.mjs";

const here = dirname(fileURLToPath(import.meta.url));
export const root = join(here, "..", "..", "..");
export const stubPath = join(here, "..", "fixtures", "stub-helper.mjs");
export const helperPath = process.env.FM_PROXY_PATH || join(root, "build", "bin", "fm-proxy");

// No engine may find state that another test's engine has saved.
process.env.FM_PROXY_NO_KV_CACHE_FILES ??= "1";

/** A sanitizer's options must reach the helper, which otherwise gets little of the environment. */
export const sanitizerEnv = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => /^(A|T|UB|L)SAN_OPTIONS$/.test(name)),
);

/** Why the real model can't be used; null if it can. */
export function noModel() {
  const models = join(root, "build", "models");
  if (!existsSync(helperPath)) return `${helperPath} is not built`;
  if (!existsSync(join(dirname(helperPath), "fm-engine-llama"))) return "the llama engine is not built";
  if (!existsSync(models) || !readdirSync(models).some((name) => name.endsWith(".gguf")))
    return `no model in ${models}`;
  return null;
}

/** Ends a script that needs the fake engine if that is not built. */
export function needFakeEngine() {
  const path = join(dirname(helperPath), "fm-engine-fake");
  if (existsSync(helperPath) && existsSync(path)) return;
  console.error(`${path} is not built. Run sh packaging/setup.sh, then cmake --build build --target fm-engine-fake`);
  process.exit(2);
}

/** The projector of random weights, with which the real model accepts images. */
export const projectorPath = join(root, "build", "models-vision", "mmproj-random-576.F32.gguf");

/** Why the real model can't get an image; null if it can. */
export function noVision() {
  return noModel() ?? (existsSync(projectorPath) ? null : `no projector ${projectorPath}`);
}

/** Why the real model can't get a format or a tool; null if it can. */
export function noFormats() {
  const built = existsSync(join(root, "build", "tests-bin", "sample_schema"));
  return noModel() ?? (built ? null : "the llama engine was built without llguidance");
}

/** A client whose helper is gone at the end of the test. audit.mjs checks all its answers. */
export function clientFor(t, options) {
  const client = createClient(options);
  t.after(() => client.close());
  return auditClient(client, new Audit(t));
}

export const fakeOptions = { helperPath, engine: "fake", env: sanitizerEnv };

export const modelOptions = {
  helperPath,
  engine: "llama",
  env: {
    // Test files run at the same time: an engine with more threads than free processors would wait for them.
    FM_ENGINE_LLAMA_THREADS: process.env.FM_ENGINE_LLAMA_THREADS || "1",
    // The same request must give the same text, because tests compare texts.
    FM_ENGINE_LLAMA_REPEATABLE: "1",
    ...sanitizerEnv,
  },
  get modelsDir() {
    return shallowModels();
  },
};

/** The folder of the whole model, for a test in which an answer has to end. */
export const wholeModels = join(root, "build", "models");

/**
 * A folder with the first layers of each model (tests/e2e/gguf.py): they take a quarter of the time. Their texts mean nothing,
 * but tests may not expect more from the small model either.
 */
function shallowModels() {
  const folder = join(root, "build", "models-shallow");
  mkdirSync(folder, { recursive: true });
  const names = existsSync(wholeModels) ? readdirSync(wholeModels) : [];
  for (const name of names.filter((each) => each.endsWith(".gguf"))) {
    const [model, copy] = [join(wholeModels, name), join(folder, name)];
    if (existsSync(copy) && statSync(copy).mtimeMs >= statSync(model).mtimeMs) continue;
    const fresh = `${copy}.${process.pid}`; // other test files do the same at the same time
    execFileSync("python3", ["-B", join(root, "tests", "e2e", "gguf.py"), model, fresh]);
    renameSync(fresh, copy);
  }
  return folder;
}

/** The built helper with the fake engine. */
export const fakeClient = (t, options = {}) => clientFor(t, { ...fakeOptions, ...options });

/** The built helper with the llama engine and the model in the build folder. */
export const modelClient = (t, options = {}) => clientFor(t, { ...modelOptions, ...options });

/** The stand-in of Apple's library (tests/apple). */
export const standInPath = join(root, "build", "tests-bin", "libFoundationModels.so");

/** Why the apple engine can't be used, in front of the stand-in; null if it can. */
export function noApple() {
  return existsSync(join(dirname(helperPath), "fm-engine-apple")) && existsSync(standInPath)
    ? null
    : "the apple engine, or the stand-in of its library, is not built";
}

/**
 * The built helper with the apple engine in front of the stand-in. The engine has another name here, because for the name
 * "apple" the package requires a Mac, and a description that does not name platforms.
 */
export function appleClient(t, options = {}) {
  const engineDir = temporaryFolder(t);
  const { platforms: _, ...description } = JSON.parse(readFileSync(join(dirname(helperPath), "fm-engine-apple.json"), "utf8"));
  symlinkSync(join(dirname(helperPath), "fm-engine-apple"), join(engineDir, "fm-engine-standin"));
  writeFileSync(join(engineDir, "fm-engine-standin.json"), JSON.stringify(description));
  const env = { ...sanitizerEnv, FM_ENGINE_APPLE_LIBRARY: standInPath, ...options.env };
  return clientFor(t, { helperPath, engine: "standin", engineDir, ...options, env });
}

/** What the apple engine lacks, by patterns of test names. */
const LACKED_BY_APPLE = [
  [/logprobs/, "Apple's model tells no log probabilities"],
  [/penalties|logit_bias/, "Apple's model has neither penalties nor biases"],
  [/reasoning/, "Apple's model does not think"],
  [/json_object/, "Apple's model is held to schemas alone"],
  [/POST \/completions/, "Apple's model takes messages alone"],
  [/a schema that can't be enforced/, "another keyword is the first that Apple's model can't follow"],
];

/** What the remote engine lacks over chat completions, by patterns of test names. */
const LACKED_BY_CHAT = [[/a schema that can't be enforced/, "the server says it, not the engine"]];

/** The same over OpenAI's Responses API. */
const LACKED_BY_RESPONSES = [
  ...LACKED_BY_CHAT,
  [/completions: (n|seed|logit_bias)$/, "the Responses API has neither seeds nor biases"],
  [/json_object/, "the Responses API has no stop strings"],
];

/** What llama.cpp's own server lacks with this model. */
const LACKED_BY_LLAMA_SERVER = [
  ...LACKED_BY_CHAT,
  [/: (a function tool|tools|bindTools)/, "the server does not hold this model to a call"],
  [/POST \/embeddings/, "the server's model generates text; it embeds none"],
  [/a bias for no token/, "the server takes it"],
  [/schema report/, "the server lets white space be between the tokens"],
];

/** The test `t`, which skips subtests of features that an engine lacks, with the reason. */
function without(t, lacked) {
  const run = (name, ...more) => {
    const reason = lacked.find(([pattern]) => pattern.test(name))?.[1];
    const body = more.at(-1);
    const options = more.length > 1 ? more[0] : {};
    return t.test(name, { ...options, skip: reason ?? options.skip ?? false }, (inner) => body(without(inner, lacked)));
  };
  return new Proxy(t, {
    get: (target, key) => {
      const value = target[key];
      return key === "test" ? run : typeof value === "function" ? value.bind(target) : value;
    },
  });
}

export const ofApple = (t) => without(t, LACKED_BY_APPLE);
export const ofRemote = (t, dialect) => without(t, dialect === "chat" ? LACKED_BY_CHAT : LACKED_BY_RESPONSES);

export const ofLlamaServer = (t) => without(t, LACKED_BY_LLAMA_SERVER);

/** Why the remote engine can't be used; null if it can. */
export function noRemote() {
  return existsSync(join(dirname(helperPath), "fm-engine-remote")) ? null : "the remote engine is not built";
}

/** Starts an OpenAI server for the test, which answers by the fake engine; returns its base URL. */
export async function fakeServer(t) {
  const { fetch } = createClient(fakeOptions);
  const server = createHttpServer(async (request, reply) => {
    const gone = new AbortController();
    reply.on("close", () => gone.abort());
    const { method, url } = request;
    const body = method === "POST" ? await text(request) : undefined;
    const headers = { "content-type": "application/json", authorization: "Bearer x" };
    const answer = await fetch(`http://fm-proxy${url}`, { method, headers, body, signal: gone.signal });
    reply.writeHead(answer.status, Object.fromEntries(answer.headers));
    await pipeline(answer.body ?? [], reply).catch(() => {}); // the other side has closed the connection
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return `http://127.0.0.1:${server.address().port}/v1`;
}

/** The built helper with the remote engine, in front of a server that answers by the fake engine. */
export async function remoteClient(t, dialect, options = {}) {
  const remote = { endpoints: [{ url: await fakeServer(t), dialect }] };
  return clientFor(t, { helperPath, engine: "remote", remote, env: sanitizerEnv, ...options });
}

/** llama.cpp's own server, which tests/bench/server.sh builds. */
const llamaServerPath = join(root, "build", "deps", "llama-server", "bin", "llama-server");

/** Why llama.cpp's own server can't be used; null if it can. */
export function noLlamaServer() {
  const built = existsSync(llamaServerPath) ? null : "llama.cpp's server is not built (tests/bench/server.sh)";
  return noRemote() ?? noModel() ?? built;
}

/** Starts that server with the model in the build folder; returns its base URL. */
async function llamaServer(t) {
  const models = join(root, "build", "models");
  const model = join(models, readdirSync(models).find((name) => name.endsWith(".gguf")));
  const port = await freePort();
  const words = `--host 127.0.0.1 --port ${port} -c 16384 -np 2 -t 1 --jinja --no-webui`.split(" ");
  const server = spawn(llamaServerPath, ["-m", model, ...words], { stdio: "ignore" });
  const ended = once(server, "exit");
  t.after(async () => {
    server.kill("SIGKILL");
    await ended;
  });
  const url = `http://127.0.0.1:${port}`;
  await until(async () => {
    assert.equal(server.exitCode, null, "llama-server has ended");
    return await fetch(`${url}/health`).then(({ ok }) => ok, () => false);
  }, "llama-server is ready");
  return `${url}/v1`;
}

async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address();
  probe.close();
  await once(probe, "close");
  return port;
}

/** The built helper with the remote engine, in front of llama.cpp's own server. */
export async function llamaServerClient(t) {
  const remote = { endpoints: [{ url: await llamaServer(t), dialect: "chat" }] };
  return clientFor(t, { helperPath, engine: "remote", remote, env: sanitizerEnv });
}

/** The stub, with the log of what it got. */
export function stubClient(t, stub = {}, options = {}) {
  const folder = temporaryFolder(t);
  const logFile = join(folder, "log");
  const env = { FM_STUB: JSON.stringify(stub), FM_STUB_LOG: logFile, ...options.env };
  const client = clientFor(t, { helperPath: stubPath, ...options, env });
  const entries = () =>
    existsSync(logFile)
      ? // Whole lines only: the file may be read while it is being written.
        readFileSync(logFile, "utf8")
          .split("\n")
          .slice(0, -1)
          .map((line) => JSON.parse(line))
      : [];
  return Object.assign(client, {
    log: entries,
    starts: () => entries().filter((entry) => "started" in entry),
    received: (method) => entries().filter((entry) => entry.method === method),
  });
}

/** Puts the stub into a node_modules folder as the helper of the platform's package; returns the folder of the program. */
export function installStub(modules) {
  const bin = join(modules, platformPackage(), "bin");
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(modules, platformPackage(), "package.json"), "{}");
  copyFileSync(stubPath, join(bin, "stub.mjs"));
  if (!existsSync(join(bin, "fm-proxy"))) symlinkSync("stub.mjs", join(bin, "fm-proxy"));
  return bin;
}

export function temporaryFolder(t) {
  const folder = mkdtempSync(join(tmpdir(), "fm-js-"));
  t.after(() => removeFolder(folder));
  return folder;
}

/** A helper that is ending may write its log once more, between the removal of the files and that of the folder. */
function removeFolder(folder) {
  for (let tries = 20; ; tries--) {
    try {
      return rmSync(folder, { recursive: true, force: true });
    } catch (error) {
      if (error.code !== "ENOTEMPTY" || tries === 0) throw error;
    }
  }
}

/** A state that any write or chmod in a folder changes; even an undone chmod leaves a new ctime. */
export function snapshot(folder) {
  const names = ["", ...readdirSync(folder, { recursive: true })].sort();
  return names.map((name) => {
    const { mode, size, mtimeNs, ctimeNs } = lstatSync(join(folder, name), { bigint: true });
    return { name, mode: mode.toString(8), size, mtimeNs, ctimeNs };
  });
}

/** A socket for a stub's `life`; `death` resolves when the system closes the stub's end of it. */
export async function watchLife(t) {
  const path = join(temporaryFolder(t), "life");
  const server = createServer().listen(path);
  const death = once(server, "connection").then(async ([socket]) => {
    t.after(() => socket.destroy());
    await once(socket.resume(), "close");
  });
  t.after(() => server.close());
  await once(server, "listening");
  return { path, death };
}

/** The options for an OpenAI client that uses the helper of `client`. */
export const connection = (client) => ({ apiKey: "local", baseURL: "http://fm-proxy/v1", fetch: client.fetch });

/** Why a helper lacks a feature of `capabilities.get`; false if it has it. */
export async function lacking(client, feature) {
  const { features } = await client.capabilities.get();
  return features[feature] === true ? false : `this helper has no ${feature}`;
}

/** Why a client's model gives no vectors; false if it does. The tests' real model generates text. */
export async function noEmbeddings(client) {
  const { engine } = await client.capabilities.get();
  return engine.name === "llama" ? "the model generates text; it embeds none" : lacking(client, "embeddings");
}

/** Why a path does not exist; false if it does. */
export async function lackingPath(client, path) {
  const response = await client.fetch(`http://fm-proxy/v1/${path}`, { method: "POST", body: "{}" });
  const { error } = await response.json();
  return error?.code === "unknown_url" ? `this helper has no ${path}` : false;
}

/** Text of a script for the fake engine (and the stub). */
export const script = (...steps) => JSON.stringify(steps);

/** Reads a stream to its end; returns what it gave, and the error that it threw. */
export async function drain(stream, onEach = () => {}) {
  const events = [];
  let error = null;
  try {
    for await (const event of stream) {
      events.push(event);
      await onEach(event);
    }
  } catch (reason) {
    error = reason;
  }
  return { events, error };
}

export const deltas = (events) =>
  events
    .filter(({ type }) => type === "response.output_text.delta")
    .map(({ delta }) => delta)
    .join("");

/** Waits until a condition holds. This is the only function that polls, for changes without an event. */
export async function until(condition, what) {
  const end = performance.now() + WAIT;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`not within ${WAIT} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Whether a process exists and is not a zombie. */
export function alive(pid) {
  try {
    process.kill(pid, 0);
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

/** The pids of this process' children, including those whose end it has not noticed yet. */
export function children() {
  const pids = readFileSync(`/proc/self/task/${process.pid}/children`, "utf8").trim();
  return pids === "" ? [] : pids.split(" ").map(Number);
}
