// What the documents show can be run: every ```js block, and the example, on the fake engine.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { promisify } from "node:util";
import { ENVIRONMENT, helperEnvironment } from "../../js-shim/dist/esm/client.js";
import { helperPath, root } from "./support/helper.mjs";
import { WAIT } from "./support/patience.mjs";

const run = promisify(execFile);
const shim = join(root, "js-shim");
const env = { ...process.env, FM_PROXY_PATH: helperPath, FM_PROXY_ENGINE: "fake" };

/** Runs code as a module of the package, so that it finds "fm-proxy" and "openai" as a user's code does. */
const evaluate = (code) =>
  run(process.execPath, ["--input-type=module", "--eval", code], { cwd: shim, env, timeout: WAIT });

for (const file of ["js-shim/README.md", "README.md"]) {
  const path = join(root, file);
  const blocks = existsSync(path)
    ? [...readFileSync(path, "utf8").matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => code)
    : [];
  if (file === "js-shim/README.md") test("the package's README has examples", () => assert.ok(blocks.length >= 2));
  blocks.forEach((code, index) => {
    test(`${file}, example ${index + 1}`, async () => {
      const { stdout, stderr } = await evaluate(code);
      assert.equal(stderr, "");
      assert.notEqual(stdout.trim(), "");
    });
  });
}

test("the package's README tells the whole environment that the helper gets", () => {
  const text = readFileSync(join(shim, "README.md"), "utf8");
  const [paragraph] = /^- The helper gets [^]*?(?=\n- |\n\n|(?![^]))/m.exec(text.slice(text.indexOf("## Limits")));
  const names = [...paragraph.matchAll(/`([A-Z_]+)(\*?)`/g)];
  const told = new Set(names.filter(([, , star]) => star === "").map(([, name]) => name));
  assert.deepEqual([...told].sort(), [...ENVIRONMENT].sort());
  assert.deepEqual(names.filter(([, , star]) => star).map(([, name]) => name), ["FM_"]);
  const host = Object.fromEntries([...told, "FM_X", "XDG_OTHER", "SECRET"].map((name) => [name, "1"]));
  assert.deepEqual(new Set(Object.keys(helperEnvironment(host))), new Set([...told, "FM_X"]));
});

const example = (args, more = {}) =>
  run(process.execPath, [join(shim, "examples", "openai-stream.mjs"), ...args], {
    env: { ...env, ...more },
    timeout: WAIT,
  });

test("the example streams an answer", async () => {
  const { stdout, stderr } = await example(["Why is", "the sky blue?"]);
  assert.equal(stdout, "Why is the sky blue?\n");
  assert.equal(stderr, "");
});

for (const [name, code] of [
  ["before the first word", ""],
  ["after it", JSON.stringify(Array(100).fill(["more ", { sleep_ms: 20 }]).flat())],
]) {
  test(`nobody reads the example's answer any more, ${name}: it ends as others do, and says nothing`, async () => {
    const child = spawn(process.execPath, [join(shim, "examples", "openai-stream.mjs"), code || "a b c"], {
      env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const stderr = text(child.stderr);
    if (code !== "") await once(child.stdout, "data");
    child.stdout.destroy();
    const [status, signal] = await once(child, "exit");
    assert.equal(await stderr, "");
    assert.deepEqual([status, signal], [128 + constants.signals.SIGPIPE, null]);
  });
}

test("the example says what went wrong", async () => {
  await assert.rejects(example([]), (error) => error.code === 64 && /^usage: /.test(error.stderr));
  await assert.rejects(example(["x"], { FM_PROXY_PATH: "/nowhere/fm-proxy" }), (error) => {
    assert.equal(error.code, 1);
    assert.match(error.stderr, /The request failed: .*\/nowhere\/fm-proxy does not exist/);
    return true;
  });
  await assert.rejects(example([JSON.stringify(["a ", { error: "out of luck" }])]), (error) => {
    assert.equal(error.code, 1);
    assert.equal(error.stdout, "a ");
    assert.match(error.stderr, /The request failed: .*out of luck/);
    return true;
  });
});
