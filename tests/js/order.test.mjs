// Several engines in an order, and the engine `remote`: what a client reports about each, and where a key may be. The engines
// are copies of the fake one, each with separate variables (fake.c).
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import OpenAI from "openai-7";
import {
  clientFor,
  fakeServer,
  helperPath,
  modelOptions,
  needFakeEngine,
  noModel,
  noRemote,
  script,
  sanitizerEnv,
  temporaryFolder,
} from "./support/helper.mjs";

needFakeEngine();
const KEY = "sk-canary-9876543210";

/** A folder with these engines, as {name: {VARIABLE: value}}, and the environment with these variables. */
function engines(t, wanted) {
  const folder = temporaryFolder(t);
  const env = { ...sanitizerEnv };
  for (const [name, variables] of Object.entries(wanted)) {
    const path = join(folder, `fm-engine-${name}`);
    const own = Object.entries(variables).map(([key, value]) => [`FM_ENGINE_${name.toUpperCase()}_${key}`, value]);
    Object.assign(env, Object.fromEntries(own));
    symlinkSync(join(dirname(helperPath), "fm-engine-fake"), path);
    writeFileSync(`${path}.json`, execFileSync(path, ["--describe"], { env: { ...process.env, ...env } }));
  }
  return { helperPath, engineDir: folder, modelsDir: folder, env };
}

const content = (completion) => completion.choices[0].message.content;

test("each engine's reason is told, and the next one answers", async (t) => {
  const options = engines(t, { alpha: { AVAILABLE: "AI_DISABLED", LOAD: "refuse:AI_DISABLED" }, beta: {} });
  const client = clientFor(t, { ...options, engine: ["alpha", "beta"] });
  const report = await client.compatibility.check();
  assert.equal(report.compatible, true);
  assert.deepEqual(
    report.engines.map(({ name, available }) => [name, available]),
    [["alpha", false], ["beta", true]],
  );
  const response = await client.responses.create({ input: "hello" });
  assert.equal(response.fm.engine, "beta");
});

test("with none there is a reason for each", async (t) => {
  const options = engines(t, { alpha: { AVAILABLE: "AI_DISABLED" }, beta: { IS: "config" } });
  const client = clientFor(t, { ...options, engine: ["alpha", "beta"] });
  const report = await client.compatibility.check();
  assert.equal(report.compatible, false);
  assert.deepEqual(
    report.engines.map(({ reason_code }) => reason_code),
    ["AI_DISABLED", "NOT_CONFIGURED"],
  );
});

test("auto: an engine for another system is passed over", { skip: process.platform === "darwin" }, async (t) => {
  const client = clientFor(t, { ...engines(t, { llama: {} }), engine: "auto" });
  const { engines: told } = await client.compatibility.check();
  assert.deepEqual(
    told.map(({ name, reason_code }) => [name, reason_code]),
    [["apple", "NOT_DARWIN"], ["llama", undefined]],
  );
});

test("check waits for an engine that is still being asked", async (t) => {
  const options = engines(t, { alpha: {}, beta: { AVAILABLE: "slow" } });
  const client = clientFor(t, { ...options, engine: ["alpha", "beta"] });
  const report = await client.compatibility.check();
  assert.deepEqual(report, {
    compatible: true,
    engines: [{ name: "alpha", available: true }, { name: "beta", available: true }],
  });
  assert.deepEqual(await client.compatibility.check(), report);
});

test("auto with the real engines: the model, without its file a server, without that reasons", {
  skip: noModel() ?? noRemote() ?? process.platform === "darwin",
}, async (t) => {
  const modelsDir = temporaryFolder(t);
  const client = (more) => clientFor(t, { ...modelOptions, engine: "auto", modelsDir, ...more });
  const remote = { endpoints: [{ url: await fakeServer(t), dialect: "responses" }] };
  const ask = async (asked) => (await asked.responses.create({ input: "hello", max_output_tokens: 4 })).fm.engine;
  const reasons = async (asked) => (await asked.compatibility.check()).engines.map((engine) => engine.reason_code);

  assert.equal(await ask(client({ modelsDir: modelOptions.modelsDir, remote })), "llama");
  assert.equal(await ask(client({ remote })), "remote");
  assert.deepEqual(await reasons(client({})), ["NOT_DARWIN", "MODEL_NOT_READY"]);
});

test("a rate limit's Retry-After reaches stock clients", async (t) => {
  const client = clientFor(t, { ...engines(t, { alpha: { JOBS: "RATE_LIMITED:7000" } }), engine: "alpha" });
  const response = await client.fetch("http://x/v1/responses", {
    method: "POST",
    body: JSON.stringify({ input: "x" }),
  });
  assert.equal(response.status, 429);
  assert.equal(response.headers.get("retry-after"), "7");
  assert.equal(response.headers.get("retry-after-ms"), "7000");
  const openai = new OpenAI({ apiKey: "x", baseURL: "http://x/v1", fetch: client.fetch, maxRetries: 0 });
  await assert.rejects(openai.responses.create({ input: "x" }), { status: 429 });
});

for (const [name, endpoint] of [
  ["a key", { key: KEY }],
  ["a variable of this process", { key_env: "A_TEST_CANARY" }],
]) {
  test(`${name} of remote reaches its engine, and stays nowhere`, { skip: process.platform !== "linux" }, async (t) => {
    if (endpoint.key_env !== undefined) process.env.A_TEST_CANARY = KEY;
    t.after(() => delete process.env.A_TEST_CANARY);
    const logs = [];
    const options = engines(t, { remote: { IS: "config,remote" } });
    const remote = { endpoints: [{ url: "https://example.com/v1", ...endpoint }] };
    const client = clientFor(t, { ...options, remote, engine: "remote", logLevel: "debug", onLog: (text) => logs.push(text) });
    const ask = (name) =>
      client.chat.completions.create({ messages: [{ role: "user", content: script({ parameter: name }) }] });
    const config = JSON.parse(content(await ask("config")));
    const { key_env, ...rest } = config.endpoints[0];
    assert.deepEqual(rest, { url: "https://example.com/v1" });
    assert.equal(content(await ask(`key:${key_env}`)), KEY);
    for (const pid of descendants(process.pid)) {
      for (const file of ["environ", "cmdline"]) {
        assert.ok(!readFileSync(`/proc/${pid}/${file}`, "latin1").includes(KEY), `${pid} ${file}`);
      }
    }
    assert.ok(!logs.join("").includes(KEY));
  });
}

test("an error about a key says of which endpoint it is, and holds no key", (t) => {
  const remote = { endpoints: [{ url: "http://127.0.0.1:9/v1" }, { url: "http://127.0.0.1:9/v1", key: "has spaces in it" }] };
  const told = { message: /^Invalid option 'remote': endpoints\[1\]\.key must be (?!.*has spaces in it)/ };
  assert.throws(() => clientFor(t, { engine: "remote", remote }), told);
});

test("a key is in no error of an option", (t) => {
  assert.throws(
    () => clientFor(t, { remote: 7 }),
    (error) => /must be an object whose `endpoints` is an array, or the path of a file\.$/.test(error.message),
  );
});

/** All processes below this one. */
function descendants(pid) {
  const kids = readdirSync(`/proc/${pid}/task`).flatMap((task) => {
    try {
      return readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").split(" ").filter(Boolean);
    } catch {
      return [];
    }
  });
  return kids.flatMap((kid) => [kid, ...descendants(kid)]);
}
