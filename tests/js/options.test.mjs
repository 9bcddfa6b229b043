// The options of createClient: an unknown option or a wrong value is an error that names it.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, unlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { chooseModel } from "../../js-shim/dist/esm/default-model.js";
import { modelsFolder } from "../../js-shim/dist/esm/models-folder.js";
import { spawnOptions } from "../../js-shim/dist/esm/start.js";
import { clientFor, helperPath, stubClient, temporaryFolder } from "./support/helper.mjs";

for (const [options, param, message] of [
  [{ modle: "m" }, "modle", /has no option 'modle'\. Did you mean 'model'\?/],
  [{ idleTimeout: 5 }, "idleTimeout", /Did you mean 'idleTimeoutMs'\?/],
  [{ helperpath: "x" }, "helperpath", /Did you mean 'helperPath'\?/],
  [{ somethingElse: 1 }, "somethingElse", /has no option 'somethingElse'\. See ClientOptions\./],
  [{ abc: 1 }, "abc", /has no option 'abc'\. See ClientOptions\.$/],
  [{ gpus: 1 }, "gpus", /Did you mean 'gpu'\?/],
  [{ cpu: true }, "cpu", /^createClient has no option 'cpu'\. The CPU alone computes with { gpu: "off" }\.$/],
  [{ n_threads: 4 }, "n_threads", /Did you mean 'threads'\?/],
  ...[5, "", "cl\u00e9", "K 3 ", "K\r\nX: 1", "\0x", null].map((key) => [
    { remote: { endpoints: [{}, { url: "http://127.0.0.1", key }] } },
    "remote",
    /^Invalid option 'remote': endpoints\[1\]\.key must be a text of ASCII characters without white space\.$/,
  ]),
  [{ threads: NaN }, "threads", /must be an integer from 1 to 512, not NaN/],
  [{ gpu: 0 }, "gpu", /"off" or a number of layers from 1 to 100,000, not 0/],
  [{ threads: 0 }, "threads", /must be an integer from 1 to 512, not 0/],
  [{ contextLength: "4096" }, "contextLength", /must be an integer from 1 to 16,777,216, not "4096"/],
  [{ n_ctx: 4096 }, "n_ctx", /Did you mean 'contextLength'\?/],
  [{ timeout: 5 }, "timeout", /fm: { timeout_ms }/],
  [{ baseURL: "x" }, "baseURL", /an option of OpenAI's SDK/],
  [{ modelsDir: "" }, "modelsDir", /^Invalid option 'modelsDir': it must be a string that .* has no NUL, not ""\.$/],
  [{ handshakeTimeoutMs: "5000" }, "handshakeTimeoutMs", /must be an integer from 1 to 2147483647, in ms, not "5000"/],
  [{ handshakeTimeoutMs: 0 }, "handshakeTimeoutMs", /must be an integer from 1 .*, not 0/],
  [{ shutdownTimeoutMs: 1.5 }, "shutdownTimeoutMs", /must be an integer from 0 .*, not 1.5/],
  [{ restart: { maxCrash: 1 } }, "restart", /an object with numbers from 0 on: perRequestAfter, .*, not {"maxCrash":1}/],
  [{ restart: { maxCrashes: NaN } }, "restart", /an object with numbers from 0 on/],
  [{ fallback: null }, "fallback", /must be a function or an object, not null/],
  [{ aliases: { a: Object.create(null) } }, "aliases", /must be an object with names and models/],
  [{ handshakeTimeoutMs: -1 }, "handshakeTimeoutMs", /not -1/],
  [{ idleTimeoutMs: 2 ** 31 }, "idleTimeoutMs", /not 2147483648/],
  [{ rateLimitPolicy: "panic" }, "rateLimitPolicy", /must be "fallback" or "retry" or "disable", not "panic"/],
  [{ spawnPerRequest: "yes" }, "spawnPerRequest", /must be true or false or "auto"/],
  [{ appBundleLaunchMode: "launchservices-nonstdio" }, "appBundleLaunchMode", /must be "direct-exec"/],
  [{ onLog: "a file" }, "onLog", /must be a function/],
  [{ fallback: "cloud" }, "fallback", /must be a function or an object/],
  [{ model: 5n }, "model", /must be a string that is not empty and has no NUL, not bigint/],
  [{ model: "a\0b" }, "model", /has no NUL/],
  [{ env: { KEY: "secret\0" } }, "env", /an object of texts that have no NUL, .* no = and no NUL\.$/],
  [{ env: { "A=B": "x" } }, "env", /with names that are not empty and have no =/],
  [{ env: { "": "x" } }, "env", /with names that are not empty/],
  [[], "options", /^The options must be an object\.$/],
  [{ env: { "A\0": "x" } }, "env", /an object of texts that have no NUL/],
  [{ env: { A: Object.create(null) } }, "env", /an object of texts/],
  [{ aliases: { "a\0b": "default" } }, "aliases", /no comma and no NUL/],
  // Otherwise the helper would refuse them at its start, and a fallback would answer.
  [{ maxEngines: 9 }, "maxEngines", /must be an integer from 1 to 8, not 9/],
  [{ maxEngines: 0 }, "maxEngines", /from 1 to 8, not 0/],
  [{ logLevel: "verbose" }, "logLevel", /must be "off" or "error" or .*, not "verbose"/],
  [{ memoryBudget: "0K" }, "memoryBudget", /a number of bytes/],
  [{ idleUnloadMs: 86_400_001 }, "idleUnloadMs", /from 0 to 86400000/],
  [{ gpu: 1e9 }, "gpu", /to 100,000/],
  [{ engine: "" }, "engine", /must be the name of an engine/],
  [{ engine: ["llama", "llama"] }, "engine", /different ones/],
  [{ engine: "Llama" }, "engine", /of a-z, 0-9 and -/],
  [{ remote: "" }, "remote", /whose `endpoints` is an array, or the path of a file\.$/],
  [{ remote: {} }, "remote", /whose `endpoints` is an array/],
  [null, "options", /must be an object/],
  ["x", "options", /must be an object/],
]) {
  test(`a client with ${typeof options === "object" ? Object.keys(options ?? {}) : options} is refused`, (t) => {
    assert.throws(
      () => clientFor(t, options),
      (error) => {
        assert.equal(error.name, "FmError");
        assert.equal(error.code, "INVALID_REQUEST");
        assert.equal(error.openai.param, param);
        assert.match(error.message, message);
        return true;
      },
    );
  });
}

test("paths are told as a whole: those of options, of variables, and of the helper itself", async (t) => {
  const cwd = temporaryFolder(t);
  const options = { cwd, modelsDir: "models", model: "a.gguf", draftModel: "../d.gguf", remote: "servers.json", engineDir: "/e" };
  const { args, env } = await spawnOptions({ helperPath: "/h", ...options }, { FM_PROXY_MMPROJ: "m/m.gguf" });
  const given = (flag) => args[args.indexOf(flag) + 1];
  assert.equal(given("--models-dir"), join(cwd, "models"));
  assert.equal(given("--model"), join(cwd, "a.gguf"));
  assert.equal(given("--draft-model"), join(dirname(cwd), "d.gguf"));
  assert.equal(given("--remote"), join(cwd, "servers.json"));
  assert.equal(given("--engine-dir"), "/e");
  assert.equal(env.FM_PROXY_MMPROJ, join(cwd, "m", "m.gguf"));
  const byName = await spawnOptions({ helperPath: "/h", model: "an-id", remote: "env:SERVERS" }, {});
  assert.deepEqual(byName.args, ["--stdio", "--remote", "env:SERVERS", "--model", "an-id"]);
  const { detail } = await clientFor(t, { helperPath: "no/such" }).compatibility.check();
  assert.ok(detail.startsWith(`The helper ${join(process.cwd(), "no", "such")} does not exist (ENOENT).`), detail);
});

test("the chosen model is named, unless the host names one, a folder, or an engine without model files", async (t) => {
  const before = process.env.FM_PROXY_PATH;
  delete process.env.FM_PROXY_PATH;
  t.after(() => before !== undefined && (process.env.FM_PROXY_PATH = before));
  const data = temporaryFolder(t);
  const folder = join(data, "fm-proxy", "models");
  const args = async (options, env = {}) => {
    const { args } = await spawnOptions(options, { XDG_DATA_HOME: data, FM_PROXY_GPU: "off", ...env });
    return args.slice(1).join(" ");
  };
  assert.equal(await args({}), "", "a clone's own");
  mkdirSync(folder, { recursive: true });
  for (const name of ["a.gguf", "b.gguf"]) writeFileSync(join(folder, name), "GGUF");
  assert.equal(await args({}), `--models-dir ${folder}`);
  await chooseModel(join(folder, "b.gguf"), folder);
  const chosen = `--models-dir ${folder} --model ${join(folder, "b.gguf")}`;
  assert.equal(await args({}), chosen);
  assert.equal(await args({ engine: ["apple", "llama"] }), `${chosen} --engine apple,llama`);
  assert.equal(await args({ model: "a" }), `--models-dir ${folder} --model a`);
  assert.equal(await args({ engine: "fake" }), `--models-dir ${folder} --engine fake`);
  assert.equal(await args({}, { FM_PROXY_ENGINE: "apple" }), `--models-dir ${folder}`);
  assert.equal(await args({}, { FM_PROXY_MODEL: "a" }), `--models-dir ${folder}`);
  assert.equal(await args({ modelsDir: "/m" }), "--models-dir /m");
  assert.equal(await args({}, { FM_PROXY_MODELS_DIR: "/m" }), "");
  assert.equal(await args({}, { FM_PROXY_MODELS_DIR: folder }), `--model ${join(folder, "b.gguf")}`);
  assert.equal(await args({ helperPath: "/h" }), "", "a program that the host names has its models beside it");
  unlinkSync(join(folder, "b.gguf"));
  assert.equal(await args({}), `--models-dir ${folder}`);
});

test("without a model the error is a line to copy", async (t) => {
  const detail = `there is no model file (*.gguf) in the folder ${modelsFolder()}; put one there, or name one`;
  const client = stubClient(t, { capabilities: { available: false, reason_code: "MODEL_NOT_READY", detail } });
  assert.equal((await client.compatibility.check()).detail, "There is no model yet: npx fm-proxy models pull qwen3-0.6b");
});

test("a model is named as the list shows it, and as it was downloaded", async (t) => {
  const [data, ollama, hub] = [temporaryFolder(t), temporaryFolder(t), temporaryFolder(t)];
  for (const [name, value] of Object.entries({ XDG_DATA_HOME: data, OLLAMA_MODELS: ollama, HF_HUB_CACHE: hub })) {
    const before = process.env[name];
    process.env[name] = value;
    t.after(() => (before === undefined ? delete process.env[name] : (process.env[name] = before)));
  }
  const put = (path, text = "GGUF") => (mkdirSync(dirname(path), { recursive: true }), writeFileSync(path, text), path);
  const digest = `sha256:${"0".repeat(64)}`;
  const layers = [{ mediaType: "application/vnd.ollama.image.model", digest }];
  put(join(ollama, "manifests", "registry.ollama.ai", "library", "gemma3", "latest"), JSON.stringify({ layers }));
  const blob = put(join(ollama, "blobs", digest.replace(":", "-")));
  const own = put(join(data, "fm-proxy", "models", "Qwen3-0.6B-Q8_0.gguf"));
  put(`${own}.json`, JSON.stringify({ url: "https://huggingface.co/Qwen/Qwen3-0.6B-GGUF/resolve/main/Qwen3-0.6B-Q8_0.gguf" }));
  const cached = put(join(hub, "models--me--tiny-GGUF", "snapshots", "1", "tiny-Q4_0.gguf"));
  const given = async (model, more = {}, env = {}) => {
    const { args } = await spawnOptions({ helperPath: "/h", model, gpu: "off", ...more }, env);
    return args.slice(1).join(" ").replace(/ ?--gpu off/, "");
  };
  for (const [name, path] of [
    ["gemma3", blob],
    ["ollama:gemma3:latest", blob],
    ["qwen3-0.6b", own],
    ["hf:Qwen/Qwen3-0.6B-GGUF", own],
    ["Qwen/Qwen3-0.6B-GGUF:q8_0", own],
    ["hf:me/tiny-GGUF:Q4_0", cached],
    ["me/tiny-GGUF/tiny-Q4_0.gguf", cached],
  ]) {
    assert.equal(await given(name), `--model ${path} --aliases ${name}=default`, name);
    assert.equal(await given(undefined, {}, { FM_PROXY_MODEL: name }), await given(name), name);
  }
  assert.equal(await given("Qwen3-0.6B-Q8_0"), `--model ${own}`);
  assert.equal(await given("gemma3", { aliases: { gemma3: "other" } }), `--model ${blob} --aliases gemma3=other`);
  const cloud = { FM_PROXY_ALIASES: "gpt-5-mini=default,a=b=c" };
  assert.equal(await given("gemma3", {}, cloud), `--model ${blob} --aliases gemma3=default,gpt-5-mini=default,a=b=c`);
  assert.equal(await given("gemma3", {}, { FM_PROXY_ALIASES: "nonsense" }), `--model ${blob}`, "the helper says what is wrong");
  for (const name of ["none-such", "me/other-GGUF"]) assert.ok((await given(name)).endsWith(name), name);
  for (const name of ["hf:Qwen/Qwen3-0.6B-GGUF:Q4_0", "qwen3-4b"]) {
    const message = `The model ${name} is not on this machine. Download it: npx fm-proxy models pull ${name}`;
    await assert.rejects(given(name), { code: "UNAVAILABLE", reasonCode: "MODEL_NOT_READY", message });
  }
  const second = put(join(hub, "models--me--tiny-GGUF", "snapshots", "1", "tiny-Q8_0.gguf"));
  assert.ok((await given("me/tiny-GGUF")).startsWith(`--model ${cached} `), "the first of several");
  put(join(dirname(own), "default.json"), JSON.stringify({ model: second }));
  assert.ok((await given("me/tiny-GGUF")).startsWith(`--model ${second} `), "or the one that answers by default");
  assert.equal(await given("gemma3", { modelsDir: "/m" }), "--model gemma3 --models-dir /m");
  assert.equal(await given(own, {}, { FM_PROXY_MODEL: "gemma3" }), `--model ${own}`, "the option counts more");
  assert.equal(await given(undefined, {}, { FM_PROXY_MODEL: "none-such" }), "", "the helper says what is wrong");
  assert.equal(await given("gemma3", { engine: "apple" }), "--engine apple --model gemma3");
});

test("contextLength and threads reach the engine, before its variables", async () => {
  const { env, settings } = await spawnOptions({ helperPath: "/h", contextLength: 512 }, { FM_ENGINE_LLAMA_CTX: "64" });
  assert.deepEqual([env, settings], [{ FM_ENGINE_LLAMA_CTX: "512" }, ["contextLength 512"]]);
  assert.equal((await spawnOptions({ helperPath: "/h", threads: 2 }, {})).env.FM_ENGINE_LLAMA_THREADS, "2");
});

test("a helper that can't be run: what to do", async (t) => {
  const helperPath = join(temporaryFolder(t), "helper");
  writeFileSync(helperPath, "#!/bin/sh\n", { mode: 0o644 });
  const detail = async (path) => (await clientFor(t, { helperPath: path }).compatibility.check()).detail;
  assert.match(await detail(helperPath), /is not executable: run `chmod \+x` on it or, .* the option storageDir \(EACCES\)/);
  writeFileSync(`${helperPath}2`, "#!/no/such/shell\n", { mode: 0o755 });
  assert.match(await detail(`${helperPath}2`), /needs an interpreter/);
  assert.match(await detail("no-such-program"), /no-such-program is in no folder of PATH/);
});

/** The engine that the helper is started with, on a system. */
async function engineOn(t, platform, options) {
  const { value } = Object.getOwnPropertyDescriptor(process, "platform");
  const client = stubClient(t, {}, options);
  Object.defineProperty(process, "platform", { value: platform });
  try {
    assert.deepEqual(await client.compatibility.check(), { compatible: true });
  } finally {
    Object.defineProperty(process, "platform", { value });
  }
  const [{ args }] = client.starts();
  return args.includes("--engine") ? args[args.indexOf("--engine") + 1] : undefined;
}

test("on macOS the engine is auto, unless an engine, a model or servers are named", async (t) => {
  const remote = { endpoints: [] };
  for (const [platform, options, engine] of [
    ["darwin", {}, "auto"],
    ["darwin", { engine: undefined, model: undefined }, "auto"],
    ["darwin", { engine: "llama" }, "llama"],
    ["darwin", { engine: ["llama", "apple"] }, "llama,apple"],
    ["darwin", { model: "a.gguf" }, undefined],
    ["darwin", { remote }, undefined],
    ["darwin", { env: { FM_PROXY_ENGINE: "llama" } }, undefined],
    ["darwin", { env: { FM_PROXY_MODEL: "a.gguf" } }, undefined],
    ["darwin", { env: { FM_PROXY_ENGINE: "" } }, "auto"],
    ["linux", {}, undefined],
    ["win32", {}, undefined],
  ]) {
    assert.equal(await engineOn(t, platform, options), engine, `${platform} ${JSON.stringify(options)}`);
  }
});

for (const [name, listener, param, message] of [
  ["stat", () => {}, "name", /^The client has no event 'stat'\. Did you mean 'state'\?$/],
  ["Log", () => {}, "name", /Did you mean 'log'\?/],
  ["unknown", () => {}, "name", /^The client has no event 'unknown'\. It has 'state' and 'log'\.$/],
  ["constructor", () => {}, "name", /has no event 'constructor'\. It has/],
  [Object.create(null), () => {}, "name", /has no event '{}'\. It has/],
  ["state", "a function", "listener", /^The listener of 'state' must be a function, not "a function"\.$/],
]) {
  test(`a listener of ${typeof name === "string" ? name : "an object"} that can't be called is refused`, (t) => {
    const client = clientFor(t, {});
    assert.throws(
      () => client.on(name, listener),
      (error) => {
        assert.deepEqual([error.name, error.code, error.openai?.param], ["FmError", "INVALID_REQUEST", param]);
        assert.match(error.message, message);
        return true;
      },
    );
  });
}

test("undefined is the default", (t) => {
  clientFor(t, { model: undefined, handshakeTimeoutMs: undefined, fallback: undefined });
});

test("undefined is the default in what `restart` has, too", async (t) => {
  const restart = { maxCrashes: undefined, perRequestAfter: undefined, firstDelayMs: undefined };
  const client = stubClient(t, { start: "die-at-create" }, { restart });
  for (let time = 0; time < 2; time++) await assert.rejects(client.responses.create({ input: "x" }), { code: "HELPER_EXITED" });
});

test("the longest handshakeTimeoutMs that there is does not fire at once", async (t) => {
  const client = stubClient(t, {}, { handshakeTimeoutMs: 2_147_483_647 });
  const warned = [];
  const note = (warning) => warned.push(warning.name);
  process.on("warning", note);
  t.after(() => process.off("warning", note));
  assert.deepEqual(await client.compatibility.check(), { compatible: true });
  assert.deepEqual(warned, []);
});

test("a working directory that was removed: an option with a relative path is named; without one, all goes on", async (t) => {
  const code = `
    const { chdir } = require("node:process"), { mkdtempSync, rmdirSync } = require("node:fs");
    const gone = mkdtempSync(process.env.FOLDER + "/gone");
    chdir(gone);
    rmdirSync(gone);
    const { createClient } = require(process.env.PACKAGE);
    try { createClient({ modelsDir: "x" }); } catch (error) { console.log(error.code, error.message); }
    const client = createClient({ helperPath: process.env.HELPER, engine: "fake" });
    client.responses.create({ input: "one two" }).then((it) => console.log(it.output_text)).finally(() => client.close());`;
  const installed = fileURLToPath(new URL("../../js-shim/dist/index.cjs", import.meta.url));
  const env = { ...process.env, FOLDER: temporaryFolder(t), PACKAGE: installed, HELPER: helperPath };
  const { stdout, stderr } = spawnSync(process.execPath, ["-e", code], { env, encoding: "utf8" });
  const why = `the relative path "x" can't be found, because the working directory no longer exists. Name an absolute path.`;
  assert.equal(stdout, `INVALID_REQUEST Invalid option 'modelsDir': ${why}\none two\n`, stderr);
});
