// Which engine a client on macOS uses if it names none: Apple's model if available, else llama. The helper is
// tests-bin/fm-proxy-macos, which behaves as on macOS, with the apple engine in front of the stand-in of Apple's library
// (tests/apple) and the fake engine in place of llama.
import assert from "node:assert/strict";
import { execFile, execFileSync, spawn } from "node:child_process";
import { existsSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { promisify } from "node:util";
import { clientFor, helperPath, noApple, root, sanitizerEnv, standInPath, temporaryFolder } from "./support/helper.mjs";
import { WAIT } from "./support/patience.mjs";

const onMacos = join(root, "build", "tests-bin", "fm-proxy-macos");
const missing = noApple() ?? (existsSync(onMacos) ? false : `${onMacos} is not built`);
const cli = join(root, "js-shim", "dist", "cli.cjs");
const OFF = { FM_ENGINE_STANDIN: "reason=0" };
const NO_FILE = { FM_ENGINE_LLAMA_AVAILABLE: "MODEL_NOT_READY", FM_ENGINE_LLAMA_LOAD: "refuse:MODEL_NOT_READY" };

/** A folder with both engines, and the environment for them. */
function engines(t, more = {}) {
  const folder = temporaryFolder(t);
  const bin = dirname(helperPath);
  const env = { ...sanitizerEnv, FM_ENGINE_APPLE_LIBRARY: standInPath, ...more };
  const llama = join(folder, "fm-engine-llama");
  symlinkSync(join(bin, "fm-engine-fake"), llama);
  writeFileSync(`${llama}.json`, execFileSync(llama, ["--describe"], { env: { ...process.env, ...env } }));
  for (const name of ["fm-engine-apple", "fm-engine-apple.json"]) symlinkSync(join(bin, name), join(folder, name));
  return { folder, env };
}

/** A client that names no engine, on a Mac. */
function macClient(t, more, options = {}) {
  const { platform, arch } = process;
  t.after(() => Object.defineProperties(process, { platform: { value: platform }, arch: { value: arch } }));
  Object.defineProperties(process, { platform: { value: "darwin" }, arch: { value: "arm64" } });
  const { folder, env } = engines(t, more);
  return clientFor(t, { helperPath: onMacos, engineDir: folder, modelsDir: folder, env, ...options });
}

const ask = (client, more = {}) => client.responses.create({ input: "one two", ...more });
const reasons = ({ engines: told }) => told.map(({ name, reason_code }) => [name, reason_code]);

test("Apple's model answers where it is there, and llama what Apple's can't do", { skip: missing }, async (t) => {
  const client = macClient(t);
  const report = await client.compatibility.check();
  assert.equal(report.compatible, true);
  assert.deepEqual(reasons(report), [["apple", undefined], ["llama", undefined]]);
  const response = await ask(client);
  assert.deepEqual([response.fm.engine, response.output_text], ["apple", "one two"]);
  const other = await ask(client, { top_logprobs: 1, include: ["message.output_text.logprobs"] });
  assert.equal(other.fm.engine, "llama");
});

test("where Apple Intelligence is off, llama answers, and the report says why", { skip: missing }, async (t) => {
  const client = macClient(t, OFF);
  const report = await client.compatibility.check();
  assert.equal(report.compatible, true);
  assert.deepEqual(reasons(report), [["apple", "AI_DISABLED"], ["llama", undefined]]);
  assert.equal((await ask(client)).fm.engine, "llama");
});

test("where neither is there, the report and the error have both reasons", { skip: missing }, async (t) => {
  const client = macClient(t, { ...OFF, ...NO_FILE });
  const report = await client.compatibility.check();
  assert.deepEqual([report.compatible, report.reason_code], [false, "AI_DISABLED"]);
  assert.deepEqual(reasons(report), [["apple", "AI_DISABLED"], ["llama", "MODEL_NOT_READY"]]);
  assert.match(report.detail, /^no engine is available: apple: .*System Settings.*; llama: ./);
  await assert.rejects(ask(client), { code: "UNAVAILABLE", reasonCode: "AI_DISABLED", detail: report.detail });
});

test("a host that names a model, or an engine, gets that one", { skip: missing }, async (t) => {
  for (const options of [{ model: "a.gguf" }, { engine: "llama" }]) {
    const client = macClient(t, {}, options);
    const report = await client.compatibility.check();
    assert.deepEqual([report.compatible, report.engines], [true, undefined]);
    assert.equal((await client.capabilities.get()).engine.name, "llama");
  }
});

test("the command: run asks Apple's model, doctor tells of both engines", { skip: missing, timeout: WAIT }, async (t) => {
  const run = async (more, ...words) => {
    const { folder, env } = engines(t, more);
    const own = { FM_PROXY_PATH: onMacos, FM_PROXY_ENGINE_DIR: folder, FM_PROXY_MODELS_DIR: folder, HOME: folder };
    const begun = promisify(execFile)(process.execPath, [cli, ...words], { env: { PATH: process.env.PATH, ...own, ...env } });
    return begun.then(({ stdout }) => stdout, ({ stdout, stderr }) => stdout + stderr);
  };
  assert.equal(await run({}, "run", "one two"), "one two\n");
  const well = await run(NO_FILE, "doctor");
  assert.match(well, /^ok {4}model: apple; apple: available; llama: MODEL_NOT_READY: /m);
  assert.match(well, /^ok {4}answer: /m);
  const ill = { ...OFF, ...NO_FILE };
  const advice = "There is no model yet: npx fm-proxy models pull qwen3-0\\.6b\n";
  const two = "apple: .*; llama: .*\n";
  assert.match(await run(ill, "doctor"), new RegExp(`^FAIL {2}model: AI_DISABLED: .*${two} {6}${advice}`, "m"));
  assert.match(await run(ill, "run", "x"), new RegExp(`^fm-proxy: no engine is available: ${two}fm-proxy: ${advice}`, "m"));
});

test("session mode asks Apple's model too", { skip: missing, timeout: WAIT }, async (t) => {
  const { folder, env } = engines(t, NO_FILE);
  const words = ["sessions", "--engine-dir", folder, "--models-dir", folder, "--log-level", "off"];
  const gateway = spawn(onMacos, words, { env: { PATH: process.env.PATH, ...env }, stdio: ["pipe", "pipe", "inherit"] });
  t.after(() => gateway.kill());
  const answers = createInterface({ input: gateway.stdout })[Symbol.asyncIterator]();
  const tell = async (line) => {
    gateway.stdin.write(`${JSON.stringify(line)}\n`);
    return JSON.parse((await answers.next()).value);
  };
  const { session_id } = await tell({ command: "open-session" });
  const message = { command: "message", session_id, prompt: "say", content: "one two", output_format: "text" };
  assert.equal((await tell(message)).ok, true);
});
