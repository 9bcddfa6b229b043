// examples/cli as a user runs it. examples/electron is in install.test.mjs, where the packages are packed.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { root, script, temporaryFolder } from "./support/helper.mjs";
import { WAIT } from "./support/patience.mjs";

/** Runs the example, with the packages that it depends on, with these arguments; returns its status and its output. */
async function ask(t, words, env = {}, onText = () => {}) {
  const folder = temporaryFolder(t);
  cpSync(join(root, "examples", "cli"), folder, { recursive: true });
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(join(root, "js-shim"), join(folder, "node_modules", "fm-proxy"));
  symlinkSync(join(root, "tests", "js", "node_modules", "openai"), join(folder, "node_modules", "openai"));
  const child = spawn(process.execPath, [join(folder, "ask.mjs"), ...words], {
    env: { PATH: process.env.PATH, HOME: folder, ...env },
  });
  child.stdout.once("data", () => onText(child));
  const exit = new Promise((resolve) => child.on("close", resolve));
  const [out, error] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { status: await exit, out, error };
}

const FAKE = { FM_PROXY_ENGINE: "fake" };

test("examples/cli: a local answer, whatever model is named", { timeout: WAIT }, async (t) => {
  const { status, out, error } = await ask(t, ["--local", "--model", "gpt-4o", "one", "two"], FAKE);
  assert.deepEqual([status, out, error], [0, "one two\n", ""]);
});

test("examples/cli: Ctrl-C ends the answer and the helper", { timeout: WAIT }, async (t) => {
  const endless = script("a ", { sleep_ms: 3_600_000 });
  const { status, out, error } = await ask(t, ["--local", endless], FAKE, (child) => child.kill("SIGINT"));
  assert.deepEqual([status, out, error], [130, "a \n", ""]);
});

test("examples/cli: no model, no key, no question", { timeout: WAIT }, async (t) => {
  const none = await ask(t, ["--local", "x"], { FM_PROXY_MODELS_DIR: temporaryFolder(t) });
  assert.equal(none.status, 69, none.error);
  assert.match(none.error, /^There is no local model\. /);
  const cloud = await ask(t, ["x"]);
  assert.equal(cloud.status, 1);
  assert.match(cloud.error, /OPENAI_API_KEY/);
  assert.deepEqual(await ask(t, []), { status: 64, out: "", error: "usage: ask [--local] [--model NAME] QUESTION\n" });
});
