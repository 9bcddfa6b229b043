// The command `fm-proxy` of the package, on the built helper with the fake engine.
import assert from "node:assert/strict";
import { execFile, spawn, spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, unlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { ProgressLine, timeOf } from "../../js-shim/dist/esm/cli/output.js";
import { TASKS } from "../../js-shim/dist/esm/cli/check.js";
import { COMMANDS } from "../../js-shim/dist/esm/cli/commands.js";
import { ggufHeader } from "./support/gguf.mjs";
import { helperPath, installStub, noModel, root, sanitizerEnv, script, stubPath, temporaryFolder } from "./support/helper.mjs";
import { serveHub } from "./support/hub.mjs";
import { WAIT } from "./support/patience.mjs";

const smol = join(root, "build", "models", "SmolLM2-135M-Instruct.Q4_1.gguf");

const cli = join(root, "js-shim", "dist", "cli.cjs");

/** The environment of a command line: the built helper, the fake engine and a separate home. */
const environment = (t, more = {}) => ({
  PATH: process.env.PATH,
  HOME: more.HOME ?? temporaryFolder(t),
  FM_PROXY_PATH: helperPath,
  FM_PROXY_ENGINE: "fake",
  ...sanitizerEnv,
  ...more,
});

/** Runs a command line to its end. */
function run(t, words, { input = "", env = {} } = {}) {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [cli, ...words], { env: environment(t, env) }, (error, stdout, stderr) =>
      resolve({ status: error === null ? 0 : error.code, stdout, stderr }),
    );
    child.stdin.end(input);
  });
}

const ownFile = (home, name) => join(home, ".local", "share", "fm-proxy", "models", name);
function putOwn(home, name, text = "GGUF") {
  mkdirSync(dirname(ownFile(home, name)), { recursive: true });
  writeFileSync(ownFile(home, name), text);
}

test("run: the prompt as a word, or on standard input", async (t) => {
  assert.deepEqual(await run(t, ["run", "one two"]), { status: 0, stdout: "one two\n", stderr: "" });
  assert.deepEqual(await run(t, ["run"], { input: "three four" }), { status: 0, stdout: "three four\n", stderr: "" });
});

test("run: options reach the request", async (t) => {
  const { stdout } = await run(t, ["run", "--max-output-tokens", "1", "one two three"]);
  assert.doesNotMatch(stdout, /three/);
});

test("run: what fails in the middle leaves what came, and a sentence", async (t) => {
  const { status, stdout, stderr } = await run(t, ["run", script("one ", { error: "INTERNAL" })]);
  assert.deepEqual([status, stdout], [1, "one \n"]);
  assert.match(stderr, /^fm-proxy: .+\n$/);
});

test("run: SIGINT ends the answer, with the status that shells know", { timeout: WAIT }, async (t) => {
  const child = spawn(process.execPath, [cli, "run", script("one", { hang: "soft" })], { env: environment(t) });
  child.stdout.once("data", () => child.kill("SIGINT"));
  assert.equal(await new Promise((resolve) => child.on("exit", resolve)), 130);
});

const noTerminal = spawnSync("script", ["--version"]).status !== 0 && "no script(1)";
/** A conversation on a terminal: types lines, and waits after each line for some texts and the next prompt. */
function terminal(t, env) {
  const child = spawn("script", ["-qec", `'${process.execPath}' '${cli}' run`, "/dev/null"], { env: environment(t, env) });
  let seen = "";
  const sees = async (...texts) => {
    for (const text of texts) {
      while (!seen.includes(text)) seen += await new Promise((resolve) => child.stdout.once("data", resolve));
      seen = seen.slice(seen.indexOf(text) + text.length);
    }
  };
  const says = async (line, ...texts) => {
    child.stdin.write(`${line}\n`);
    await sees(line, "\n", ...texts, "> ");
  };
  const exit = new Promise((resolve) => child.on("exit", resolve));
  return { sees, says, exit, type: (text) => child.stdin.write(text) };
}

test("run: a conversation on a terminal, and its commands", { timeout: WAIT, skip: noTerminal }, async (t) => {
  const home = temporaryFolder(t);
  putOwn(home, "own.gguf");
  const { sees, says, exit, type } = terminal(t, { HOME: home });
  await sees("own answers. /help lists the commands.\r\n", "> ");
  await says(script("one ", "two"), "one two\r\n");
  await says("/etc/hosts", "/etc/hosts\r\n");
  await says("/tmp is full", "/tmp is full\r\n");
  await says("/Help", "/model [NAME]", "/clear", "/exit", "/help");
  await says("/clear");
  await says("/nothing", "there is no command /nothing; /help lists them");
  await says("/model none-such", "there is no model and no file 'none-such'");
  await says("/model", "own  fm-proxy");
  await says("/model own", "own answers. A new conversation begins.");
  await says(script("three ", "four"), "three four\r\n");
  type("/exit\n");
  assert.equal(await exit, 0);
});

test("run: how long a model takes is shown; Ctrl-D ends a conversation", { timeout: WAIT, skip: noTerminal }, async (t) => {
  const home = temporaryFolder(t);
  for (const name of ["a", "b"]) putOwn(home, `${name}.gguf`);
  const { sees, says, exit, type } = terminal(t, { HOME: home, FM_PROXY_MODEL: "b" });
  await sees("b answers. /help lists the commands.\r\n", "> ");
  await says(script({ sleep_ms: 2500 }, "one ", "two"), "waiting for the model, 1 s", "\r\x1b[2Kone two\r\n");
  type("\x04");
  assert.equal(await exit, 0);
});

test("run: Ctrl-C ends an answer, and at the prompt the conversation", { timeout: WAIT, skip: noTerminal }, async (t) => {
  const { sees, says, exit, type } = terminal(t);
  const long = script("one ", { hang: "soft" });
  await sees("> ");
  type(`${long}\n`);
  await sees(long, "\n", "one ");
  type("\x03");
  await sees("> ");
  await says(script("two ", "three"), "two three\r\n");
  type("\x03");
  assert.equal(await exit, 0);
});

test("run: what a terminal would obey is left out of the answer there, and nowhere else", { skip: noTerminal }, async (t) => {
  const prompt = "red \x1b[31mtext \x9b2J";
  assert.equal((await run(t, ["run", prompt])).stdout, `${prompt}\n`);
  const { stdout } = spawnSync("script", ["-qec", `"$NODE" "$CLI" run "$PROMPT"`, "/dev/null"], {
    env: { ...environment(t), NODE: process.execPath, CLI: cli, PROMPT: prompt },
    encoding: "utf8",
  });
  assert.match(stdout, /^red \[31mtext 2J\r\n/);
});

const noFull = !existsSync("/dev/full") && "no /dev/full";
test("output that can't be written: a sentence, and the status says so", { skip: noFull }, (t) => {
  const options = { env: environment(t), encoding: "utf8" };
  const full = spawnSync("sh", ["-c", '"$0" "$1" --help > /dev/full', process.execPath, cli], options);
  assert.equal(full.status, 1);
  assert.match(full.stderr, /^fm-proxy: the output can't be written \(ENOSPC\)\n$/);
  const deaf = spawnSync("bash", ["-c", '"$0" "$1" rum 2> >(exit)', process.execPath, cli], options);
  assert.equal(deaf.status, 64);
});

test("models: listed, verified, deleted; those of others are not", async (t) => {
  const home = temporaryFolder(t);
  putOwn(home, "mine.gguf");
  const foreign = join(home, ".cache", "llama.cpp", "other.gguf");
  mkdirSync(dirname(foreign), { recursive: true });
  writeFileSync(foreign, "GGUF");
  const env = { HOME: home };
  const listed = JSON.parse((await run(t, ["models", "list", "--json"], { env })).stdout);
  const expected = [["mine", "fm-proxy", 4], ["other.gguf", "llama.cpp", 4]];
  assert.deepEqual(listed.map(({ name, source, size }) => [name, source, size]), expected);
  const { stdout } = await run(t, ["models", "list"], { env });
  const [head, mine, other] = stdout.split("\n");
  assert.match(head, /^ +NAME +SOURCE +SIZE +MEMORY +WEIGHTS +CONTEXT +DOES +FILE$/);
  assert.match(mine, /^\* +mine +fm-proxy +4 B +- +- +- +- /);
  assert.match(other, /^ +other/);
  const { stdout: named } = await run(t, ["models", "list"], { env: { ...env, FM_PROXY_MODEL: "other.gguf" } });
  assert.match(named, /^ +mine .*\n.*\n\nThe variable FM_PROXY_MODEL names the model that answers: other\.gguf\n$/m);
  assert.match((await run(t, ["models", "verify"], { env })).stdout, /^mine: not downloaded by fm-proxy/);
  writeFileSync(`${ownFile(home, "mine.gguf")}.json`, JSON.stringify({ sha256: "0".repeat(64) }));
  assert.equal((await run(t, ["models", "verify", "mine"], { env })).status, 1);
  for (const id of ["other", "../../../../.cache/llama.cpp/other", "other.gguf", ".."]) {
    assert.equal((await run(t, ["models", "rm", id], { env })).status, 64, id);
  }
  assert.equal(readFileSync(foreign, "utf8"), "GGUF");
  const lock = `${ownFile(home, "mine.gguf")}.lock`;
  writeFileSync(lock, String(process.pid));
  assert.match((await run(t, ["models", "rm", "mine"], { env })).stderr, /Process \d+ is downloading this file/);
  writeFileSync(lock, "999999999");
  putOwn(home, "next.gguf");
  const removed = await run(t, ["models", "rm", "mine"], { env });
  assert.match(removed.stdout, /^deleted .*mine\.gguf\nnext answers where no model is named: .*\n$/);
  assert.equal(removed.status, 0);
  assert.match((await run(t, ["models", "rm", "next"], { env })).stdout, /next\.gguf\nThere is no model yet/);
  assert.deepEqual(readdirSync(dirname(ownFile(home, "x"))), []);
});

test("names of files that a terminal would obey are shown, not obeyed", async (t) => {
  const home = temporaryFolder(t);
  putOwn(home, "a\x1b[2J\nb\u009b31m.gguf");
  const { stdout } = await run(t, ["models", "list"], { env: { HOME: home } });
  assert.match(stdout, /^\* +a\?\[2J\?b\?31m +fm-proxy/m);
  assert.doesNotMatch(stdout, /[\x00-\x09\x0b-\x1f\x7f-\x9f]/);
  assert.equal(stdout.split("\n").length, 5);
  const { stderr } = await run(t, ["run", "--model", "c\x1b[2J", "x"], { env: { HOME: home } });
  assert.doesNotMatch(stderr, /\x1b/);
  assert.equal(stderr.split("\n").length, 2);
});

test("no model: what to do", async (t) => {
  const { status, stderr } = await run(t, ["models", "list"]);
  assert.equal(status, 0);
  assert.equal(stderr, "fm-proxy: There is no model yet: npx fm-proxy models pull qwen3-0.6b\n");
  const named = await run(t, ["run", "--model", "nothing", "x"]);
  assert.equal(named.status, 64);
  assert.match(named.stderr, /no model and no file 'nothing'/);
});

test("models search: all, those that a word fits, or a sentence", async (t) => {
  const found = async (...words) => JSON.parse((await run(t, ["models", "search", "--json", ...words])).stdout);
  const names = async (...words) => (await found(...words)).map(({ name }) => name);
  assert.ok((await names()).length > 10);
  assert.deepEqual(await names("Embedding"), ["qwen3-embedding-0.6b"]);
  assert.deepEqual(await names("images"), ["qwen3-vl-4b", "gemma-3-4b"]);
  const { stdout } = await run(t, ["models", "search", "gemma"]);
  assert.match(stdout, /^NAME .*\ngemma-3-4b +seeing +3\.3 GB +~4\.6 GB +Gemma +images/);
  const { status, stderr } = await run(t, ["models", "search", "music"]);
  assert.deepEqual([status, /OWNER\/NAME/.test(stderr)], [1, true]);
});

test("progress: one line on a terminal, a line every ten seconds elsewhere, and the time that is left", () => {
  const shown = (isTerminal, until) => {
    let [clock, text] = [0, ""];
    const line = new ProgressLine({ isTerminal, now: () => clock, write: (more) => (text += more) });
    for (; clock <= until; clock += 50) line.update(String(clock));
    line.end();
    return text;
  };
  assert.equal(shown(false, 25_000), "10000\n20000\n");
  assert.equal(shown(true, 250), "0 100 200 ".split(" ").map((text) => `\r\x1b[2K${text}`).join(""));
  assert.deepEqual([0.2, 60, 91, 3000, 9000].map(timeOf), ["1 s", "60 s", "2 min", "50 min", "2.5 h"]);
});

test("models use: the model that answers where none is named, one of another program too", async (t) => {
  const home = temporaryFolder(t);
  for (const name of ["a", "b", "c"]) putOwn(home, `${name}.gguf`);
  const other = join(home, ".cache", "llama.cpp", "other.gguf");
  mkdirSync(dirname(other), { recursive: true });
  writeFileSync(other, "GGUF");
  const env = { HOME: home };
  const names = async () => {
    const models = JSON.parse((await run(t, ["models", "list", "--json"], { env })).stdout);
    return models.filter((model) => model.default).map(({ name }) => name);
  };
  assert.deepEqual(await names(), ["a"], "the first, as long as none is chosen");
  for (const name of ["b", "other.gguf", "c"]) {
    const { status, stdout } = await run(t, ["models", "use", name], { env });
    assert.deepEqual([status, await names()], [0, [name]]);
    assert.match(stdout, new RegExp(`${name.replace(".gguf", "")}.gguf\nanswers from now on`));
  }
  assert.equal((await run(t, ["models", "use", "d"], { env })).status, 64);
  assert.deepEqual(await names(), ["c"]);
  unlinkSync(ownFile(home, "c.gguf"));
  const { stdout } = await run(t, ["models", "list"], { env });
  const gone = /The model that was chosen is gone: \S+\/c\.gguf\. Choose another one: npx fm-proxy models use NAME\n/;
  assert.match(stdout, new RegExp(`\n${gone.source}\n\\* answers`));
  assert.match((await run(t, ["run", "x"], { env })).stderr, gone);
  assert.match((await run(t, ["doctor"], { env })).stdout, gone);
  const named = await run(t, ["models", "use", "B.gguf"], { env: { ...env, FM_PROXY_MODEL: "a" } });
  assert.match(named.stdout, /b\.gguf\nanswers .*\n\nThe variable FM_PROXY_MODEL names the model that answers: a\n$/);
  await run(t, ["models", "rm", "b.gguf"], { env });
  putOwn(home, "b.gguf");
  assert.deepEqual(await names(), ["a"]);
  await run(t, ["models", "use", "b"], { env });
  await run(t, ["models", "rm", "b"], { env });
  assert.deepEqual(await names(), ["a"]);
});

test("a downloaded model that can't be used is not the default, and the next one is", { skip: noModel() ?? false }, async (t) => {
  const whole = readFileSync(smol);
  await serveHub(t, new Map([["a/damaged-GGUF/a.gguf", whole.subarray(0, 3000)], ["b/good-GGUF/b.gguf", whole]]));
  const home = temporaryFolder(t);
  const env = { HOME: home, HF_ENDPOINT: process.env.HF_ENDPOINT, FM_PROXY_ENGINE: "llama" };
  const chosen = async () => JSON.parse((await run(t, ["models", "list", "--json"], { env })).stdout).filter((it) => it.default);
  const { status, stderr } = await run(t, ["models", "pull", "a/damaged-GGUF"], { env });
  assert.equal(status, 1);
  assert.match(stderr, /The model can't be used\. To delete it: npx fm-proxy models rm a\n$/);
  assert.deepEqual(await chosen(), []);
  const used = await run(t, ["models", "use", "a"], { env });
  assert.match(used.stderr, /'a' could not be used when it was tried\. To try it again: npx fm-proxy models check a\n/);
  const { stdout } = await run(t, ["models", "pull", "--no-check", "b/good-GGUF"], { env });
  assert.match(stdout, /It answers where no model is named:/);
  assert.deepEqual((await chosen()).map(({ name }) => name), ["b"]);
  putOwn(home, "c.gguf", whole);
  await run(t, ["models", "rm", "b"], { env });
  assert.deepEqual((await chosen()).map(({ name }) => name), ["c"]);
  assert.deepEqual(JSON.parse(readFileSync(ownFile(home, "default.json"), "utf8")), { model: "c.gguf" }, "as the helper takes a");
});

test("models use: no file that can't answer, and what to do for one that is not there", async (t) => {
  const home = temporaryFolder(t);
  const env = { HOME: home };
  const put = (folder, name) => {
    writeFileSync(join(folder, name), "GGUF");
    return join(folder, name);
  };
  putOwn(home, "a.gguf");
  putOwn(home, "vectors.gguf", ggufHeader({ "x.pooling_type": 1 }));
  const text = join(home, "text.txt");
  writeFileSync(text, "text");
  for (const [name, message] of [
    [text, /text\.txt is not a GGUF file/],
    [put(home, "s-00001-of-00002.gguf"), /needs all of its 2 files beside it/],
    [put(home, "t-00002-of-00002.gguf"), /is a part of a model: name t-00001-of-00002\.gguf/],
    ["vectors", /'vectors' makes vectors of texts, and no answers/],
    ["qwen3-4b", /'qwen3-4b' is not on this machine\. Download it: npx fm-proxy models pull qwen3-4b\n$/],
    ["hf:some/model-GGUF:Q8_0", /Download it: npx fm-proxy models pull hf:some\/model-GGUF:Q8_0\n$/],
  ]) {
    const { status, stderr } = await run(t, ["models", "use", name], { env });
    assert.deepEqual([status, message.test(stderr)], [64, true], stderr);
  }
  const folder = join(home, ".local", "share", "fm-proxy", "models");
  assert.deepEqual(readdirSync(folder).sort(), ["a.gguf", "vectors.gguf"]);
  mkdirSync(join(folder, "default.json"));
  assert.match((await run(t, ["models", "use", "a"], { env })).stderr, /The folder \S+ can't be written to \(EISDIR\)/);
  assert.deepEqual(readdirSync(folder).sort(), ["a.gguf", "default.json", "vectors.gguf"]);
});


test("a linked clone answers by the user's models, else by its own", { skip: noModel() ?? false }, async (t) => {
  const home = temporaryFolder(t);
  const env = { HOME: home, FM_PROXY_PATH: "", FM_PROXY_ENGINE: "" };
  const model = async () => {
    const { findings } = JSON.parse((await run(t, ["doctor", "--json"], { env })).stdout);
    const { detail, advice } = findings.find(({ check }) => check === "model");
    return [detail.split(";")[0], advice];
  };
  const better = "It is for a first try. A better one: npx fm-proxy models pull qwen3-4b";
  assert.deepEqual(await model(), ["SmolLM2-135M-Instruct.Q4_1", better]);
  putOwn(home, "a.gguf", readFileSync(smol));
  assert.deepEqual(await model(), ["a", undefined]);
  putOwn(home, "b.gguf", readFileSync(smol));
  await run(t, ["models", "use", "b"], { env });
  assert.deepEqual(await model(), ["b", undefined]);
  assert.equal((await run(t, ["run", "--max-output-tokens", "2", "Hello"], { env })).status, 0);
  const request = '{"jsonrpc":"2.0","id":1,"method":"models.list"}';
  const input = `Content-Length: ${request.length}\r\n\r\n${request}`;
  assert.match((await run(t, ["--stdio"], { env, input })).stdout, /"data":\[{"id":"b"/, "the helper's own command line too");
});

test("models check: what counts as right", () => {
  const text = (output_text) => ({ output_text, output: [] });
  const call = (name, city) => ({ output: [{ type: "function_call", name, arguments: JSON.stringify({ city }) }] });
  for (const [name, right, wrong] of [
    ["text", [text("Paris"), text("<b>PARIS</b>.")], [text("Lyon"), text("comparison"), text(undefined)]],
    ["JSON", [text('{"city":"Oslo","name":"Anna","age":34}')], [text('{"name":"Anna","age":43,"city":"Oslo"}'), text("Anna")]],
    ["tools", [call("get_weather", "Rome, Italy")], [call("get_weather", "Romeo"), text("It is sunny in Rome."), { output: [] }]],
  ]) {
    const { isRight } = TASKS.find((task) => task.name === name);
    for (const answer of right) assert.equal(isRight(answer), true, JSON.stringify(answer));
    for (const answer of wrong) assert.equal(isRight(answer), false, JSON.stringify(answer));
  }
});

test("models check: the fake engine repeats each question, so all is wrong", async (t) => {
  const { status, stdout, stderr } = await run(t, ["models", "check"]);
  assert.deepEqual([status, stderr], [1, ""]);
  const lines = stdout.split("\n");
  assert.match(lines[0], /^FAIL {2}text {3}What is the capital of France\?/);
  assert.match(lines[2], /^FAIL {2}tools {2}/);
  assert.ok(stdout.includes("It is too weak for tools: choose a larger one for them (npx fm-proxy models search).\n"), stdout);
  const { findings } = JSON.parse((await run(t, ["models", "check", "--json"])).stdout);
  assert.deepEqual(findings.map(({ name, right }) => [name, right]), [["text", false], ["JSON", false], ["tools", false]]);
});

test("models check: a request that failed says nothing of the model", async (t) => {
  const failing = { FM_ENGINE_FAKE_JOBS: "INTERNAL" };
  const { stdout } = await run(t, ["models", "check"], { env: failing });
  assert.match(stdout, /^FAIL {2}text/);
  assert.doesNotMatch(stdout, /often wrong|too weak/);
});

test("models check: what the helper was not built for is no fault of the model", async (t) => {
  const lacking = { FM_ENGINE_FAKE_JOBS: "INVALID_REQUEST" };
  const { status, stdout } = await run(t, ["models", "check"], { env: lacking });
  assert.match(stdout, /^- {5}text.*\n- {5}JSON.*\n- {5}tools/);
  assert.equal(status, 0);
});

test("a model that needs more memory than there is: a warning, and it is tried all the same", async (t) => {
  const home = temporaryFolder(t);
  const layers = { "x.block_count": 1e6, "x.attention.head_count": 1000, "x.embedding_length": 1e6, "x.context_length": 8192 };
  putOwn(home, "large.gguf", ggufHeader(layers));
  const { status, stdout, stderr } = await run(t, ["run", "one two"], { env: { HOME: home } });
  assert.deepEqual([status, stdout], [0, "one two\n"]);
  const warning = /^fm-proxy: the model takes about [\d.]+ TB of memory, and [\d.]+ [GM]B are free\. .* models search\n$/;
  if (process.platform !== "darwin") assert.match(stderr, warning);
  const { stdout: list } = await run(t, ["models", "list"], { env: { HOME: home } });
  assert.match(list, /^\* +large +fm-proxy +\d+ B +~[\d.]+ TB +- +8,192 +- /m);
});

test("the memory that is shown before a load is what is taken then", { skip: noModel() ?? false }, async (t) => {
  const home = temporaryFolder(t);
  const env = { HOME: home, FM_PROXY_PATH: "", FM_PROXY_ENGINE: "" };
  putOwn(home, "a.gguf", readFileSync(smol));
  const [{ memory }] = JSON.parse((await run(t, ["models", "list", "--json"], { env })).stdout);
  const { memory_bytes: taken } = JSON.parse((await run(t, ["models", "check", "--json"], { env })).stdout);
  assert.ok(Math.abs(memory - taken) < 0.1 * taken, `${memory} bytes, and then ${taken}`);
});

test("doctor: all is well, and what is not", { timeout: WAIT }, async (t) => {
  const well = await run(t, ["doctor", "--json"]);
  const { ok, findings } = JSON.parse(well.stdout);
  assert.deepEqual([well.status, ok], [0, true]);
  const checks = ["Node", "helper", "start", "model", "answer", "sandbox", "GPU", "models"];
  assert.deepEqual(findings.map(({ check }) => check), checks);
  const absent = await run(t, ["doctor"], { env: { FM_PROXY_PATH: "/nowhere/fm-proxy" } });
  assert.equal(absent.status, 1);
  assert.match(absent.stdout, /^FAIL {2}helper: \/nowhere\/fm-proxy, from the variable FM_PROXY_PATH, does not exist$/m);
  assert.match(absent.stdout, /^ +Correct the variable FM_PROXY_PATH, or unset it\.$/m);
  for (const [path, what] of [["/etc/passwd", "is not a program"], ["/etc", "is a directory"]]) {
    const { stdout } = await run(t, ["doctor"], { env: { FM_PROXY_PATH: path } });
    assert.match(stdout, new RegExp(`^FAIL {2}helper: ${path}, from the variable FM_PROXY_PATH, ${what}$`, "m"));
  }
});

test("bench: the helper's figures, and its status", { timeout: WAIT }, async (t) => {
  const { status, stdout, stderr } = await run(t, ["bench", "--json"]);
  assert.deepEqual([status, JSON.parse(stdout).engine], [0, "fake"], stderr);
  assert.match((await run(t, ["bench"])).stdout, /^fake \(engine fake\)\n/);
  const failed = await run(t, ["bench"], { env: { FM_ENGINE_FAKE_LOAD: "error" } });
  assert.deepEqual([failed.status, failed.stdout], [69, ""]);
  assert.match(failed.stderr, /^fm-proxy bench: .+/m);
  const unknown = await run(t, ["bench", "--model", "nobody"]);
  assert.equal(unknown.status, 64);
  assert.match(unknown.stderr, /nobody/);
});

test("doctor --json prints JSON, whatever is broken", { timeout: WAIT }, async (t) => {
  const stub = { FM_PROXY_PATH: stubPath, FM_STUB: JSON.stringify({ start: "die-at-create" }) };
  const dying = { FM_PROXY_PATH: stubPath, FM_STUB: JSON.stringify({ capabilities: { available: true, models: null } }) };
  for (const [words, env, failed] of [
    [["--model", "nothing"], {}, "model"],
    [[], stub, "model"],
    [[], dying, "model"],
    [[], { FM_PROXY_PATH: "/nowhere" }, "helper"],
  ]) {
    const { status, stdout } = await run(t, ["doctor", "--json", ...words], { env });
    const { ok, findings } = JSON.parse(stdout);
    assert.deepEqual([status, ok], [1, false]);
    assert.equal(findings.find((finding) => !finding.ok).check, failed);
    assert.equal(findings.at(-1).check, "models");
  }
});

test("help for a group of commands", async (t) => {
  for (const words of [["models", "--help"], ["help", "models"]]) {
    const { status, stdout } = await run(t, words);
    assert.equal(status, 0);
    assert.match(stdout, /^ {2}models pull MODEL .*$/m);
    assert.doesNotMatch(stdout, /doctor/);
  }
});

test("wrong command lines: what is wrong, and the status for it", async (t) => {
  for (const [words, error] of [
    [["rum"], /no command 'rum'/],
    [["models"], /'models' needs one of: models list, models search, models pull, .*, models rm, models verify/],
    [["models", "pull"], /'models pull' needs MODEL/],
    [["pull"], /no command 'pull'\. Did you mean 'models pull'\? See npx fm-proxy --help\n/],
    [["model", "list"], /Did you mean 'models list'\?/],
    [["chat"], /Did you mean 'run'\?/],
    [["constructor"], /no command 'constructor'\. See/],
    [["models", "pull", "a/b", "Q8_0"], /takes one MODEL at a time: 'Q8_0' is too many\. Did you mean 'a\/b:Q8_0'\?/],
    [["models", "pull", "qwen3", "4b"], /Did you mean 'qwen3-4b'\?/],
    [["models", "rm", "a", "b"], /takes one ID at a time: 'b' is too many\. See/],
    [["models", "use", "qwen3-8b.gguf"], /there is no model and no file 'qwen3-8b\.gguf'/],
    [["run", "--model", "no/such.gguf", "x"], /no model and no file '\/.*\/no\/such\.gguf'/],
    [["--model", "x", "run", "a b"], /options come after the command: npx fm-proxy run "a b" --model x\n/],
    [["models", "use", ""], /'models use' needs NAME\. See/],
    [["--json", "doctor"], /options come after the command: npx fm-proxy doctor --json\n/],
    [["run", "a", "b"], /put the prompt in quotes: npx fm-proxy run "a b"\n/],
    [["doctor", "b"], /'doctor' does not take 'b'/],
    [["run", "--modl", "x"], /--modl/],
    [["run", "--temperature", "hot", "x"], /--temperature must be a number from 0 to 2, not 'hot'/],
    [["run", "--temperature", "9", "x"], /--temperature must be a number from 0 to 2, not '9'/],
    [["run", "--max-output-tokens", "0", "x"], /--max-output-tokens must be an integer from 1 on, not '0'/],
    [["run"], /the prompt is empty/],
    [["completion", "csh"], /bash, zsh, fish, not for 'csh'/],
    [["completion", "constructor"], /bash, zsh, fish, not for 'constructor'/],
    [["completion", "__proto__"], /bash, zsh, fish, not for '__proto__'/],
  ]) {
    const { status, stdout, stderr } = await run(t, words);
    assert.deepEqual([status, stdout], [64, ""], words.join(" "));
    assert.match(stderr, error);
    assert.match(stderr, /^fm-proxy: .*\n$/);
  }
});

for (const [name, command] of [
  ["that was never there", `"${process.execPath}" "${cli}" --help | true`],
  ["that has seen enough", `"${process.execPath}" "${cli}" run '${script({ repeat: ["one ", 5000] })}' | head -c 1`],
]) {
  test(`a reader ${name} is no error`, (t) => {
    const options = { env: environment(t), encoding: "utf8" };
    const { stderr, status } = spawnSync("bash", ["-o", "pipefail", "-c", command], options);
    assert.deepEqual([stderr, status], ["", 0]);
  });
}

test("bench says where the path of a helper that is not there comes from", async (t) => {
  const { status, stderr } = await run(t, ["bench"], { env: { FM_PROXY_PATH: "/no/such" } });
  assert.equal(status, 1);
  assert.match(stderr, /\/no\/such does not exist \(ENOENT\)\. The path is from .*FM_PROXY_PATH/);
});

test("options before a command of the helper's are the helper's", async (t) => {
  for (const words of [["--models-dir", "/nowhere", "bench", "--json"], ["--engine-dir", "run", "--version"]]) {
    assert.doesNotMatch((await run(t, words)).stderr, /come after/, words.join(" "));
  }
});

test("the helper's own command line goes to the helper", async (t) => {
  assert.match((await run(t, ["--version"])).stdout, /^fm-proxy \d/);
  assert.match((await run(t, ["--help-helper"])).stdout, /--engine NAME/);
  const { stdout, status } = await run(t, ["sessions"], { input: '{"cmd":"open","id":"1"}\n' });
  assert.ok(stdout.length > 0 && status === 0, stdout);
});

test("the helper gets the file of the model that FM_PROXY_MODEL names", async (t) => {
  const HOME = temporaryFolder(t);
  putOwn(HOME, "Qwen3-0.6B-Q8_0.gguf");
  const helper = join(HOME, "helper");
  writeFileSync(helper, '#!/bin/sh\necho "$FM_PROXY_MODEL $FM_PROXY_ALIASES"\n', { mode: 0o755 });
  const env = { HOME, FM_PROXY_PATH: helper, FM_PROXY_ENGINE: "llama" };
  const path = ownFile(HOME, "Qwen3-0.6B-Q8_0.gguf");
  for (const [FM_PROXY_MODEL, told, ...words] of [
    ["fm-proxy:Qwen3-0.6B-Q8_0", `${path} fm-proxy:Qwen3-0.6B-Q8_0=default`],
    ["Qwen3-0.6B-Q8_0", `${path} `],
    ["Qwen3-0.6B-Q8_0", "Qwen3-0.6B-Q8_0 ", "--models-dir", "/elsewhere"],
    ["none-such", "none-such "],
  ]) {
    assert.equal((await run(t, ["--stdio", ...words], { env: { ...env, FM_PROXY_MODEL } })).stdout, `${told}\n`);
  }
  const missing = { ...env, FM_PROXY_MODEL: "qwen3-4b" };
  assert.match((await run(t, ["run", "x"], { env: missing })).stderr, /Download it: npx fm-proxy models pull qwen3-4b\n/);
});

test("the helper of an installed package gets the folder that models are pulled to", async (t) => {
  const modules = join(temporaryFolder(t), "node_modules");
  const dist = join(modules, "fm-proxy", "dist");
  mkdirSync(dist, { recursive: true });
  for (const name of ["cli", "errors", "index", "later"].map((each) => `${each}.cjs`)) {
    copyFileSync(join(root, "js-shim", "dist", name), join(dist, name));
  }
  installStub(modules);
  const log = join(temporaryFolder(t), "log");
  const env = { ...environment(t), FM_STUB_LOG: log };
  delete env.FM_PROXY_PATH;
  spawnSync(process.execPath, [join(dist, "cli.cjs"), "--stdio"], { env });
  assert.ok(JSON.parse(readFileSync(log, "utf8")).env.includes("FM_PROXY_MODELS_DIR"));
});

test("help and the manual page name each command and option", async (t) => {
  const page = readFileSync(join(root, "js-shim", "man", "fm-proxy.1"), "utf8");
  const { stdout } = await run(t, ["--help"]);
  for (const { words, options } of COMMANDS) {
    assert.ok(stdout.includes(words), words);
    assert.ok(page.includes(`.Cm ${words}\n`), words);
    const help = (await run(t, [...words.split(" "), "--help"])).stdout;
    for (const { name } of options) {
      assert.ok(help.includes(`--${name}`), name);
      assert.ok(page.includes(`Fl -${name}`), name);
    }
  }
});

test("completions", { skip: spawnSync("bash", ["--version"]).status !== 0 && "no bash" }, async (t) => {
  const { stdout } = await run(t, ["completion", "bash"]);
  const complete = (...words) => {
    const code = `eval "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _fm_proxy; echo "\${COMPREPLY[*]}"`;
    return spawnSync("bash", ["-c", code, "bash", stdout, "fm-proxy", ...words], { encoding: "utf8" }).stdout.trim();
  };
  assert.equal(complete(""), "run models doctor bench completion");
  assert.equal(complete("models", "p"), "pull");
  assert.equal(complete("models", "pull", "--s"), "--sha256");
  assert.equal(complete("run", "--m"), "--model --max-output-tokens");
  assert.equal(complete("completion", "f"), "fish");
  for (const shell of ["zsh", "fish"]) {
    const path = join(temporaryFolder(t), "script");
    writeFileSync(path, (await run(t, ["completion", shell])).stdout);
    const { status, stderr, error } = spawnSync(shell, ["-n", path], { encoding: "utf8" });
    if (error?.code === "ENOENT") t.diagnostic(`no ${shell} to read its completions`);
    else assert.deepEqual([status, stderr], [0, ""], shell);
  }
});
