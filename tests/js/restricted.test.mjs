// Hosts that may not do everything that Node can: the error says what is forbidden and how to allow it, and the fallback
// answers.
import assert from "node:assert/strict";
import { nodeFileTrace } from "@vercel/nft";
import { execFile } from "node:child_process";
import { copyFileSync, cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { helperPath, root, sanitizerEnv, temporaryFolder } from "./support/helper.mjs";
import { platformPackage } from "../../js-shim/dist/esm/locate.js";
import { WAIT } from "./support/patience.mjs";

const run = promisify(execFile);
const PERMISSION = Number(process.versions.node.split(".")[0]) < 22 ? "--experimental-permission" : "--permission";

/** An application with both packages installed, which sends a request to the fake engine, and prints the result. */
function installApp(t) {
  const folder = temporaryFolder(t);
  const modules = join(folder, "node_modules");
  const bin = join(modules, platformPackage(), "bin");
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, "..", "package.json"), "{}");
  for (const name of ["fm-proxy", "fm-engine-fake", "fm-engine-fake.json"])
    copyFileSync(join(dirname(helperPath), name), join(bin, name));
  cpSync(join(root, "js-shim", "package.json"), join(modules, "fm-proxy", "package.json"), { recursive: true });
  cpSync(join(root, "js-shim", "dist"), join(modules, "fm-proxy", "dist"), { recursive: true });
  const program = join(folder, "app.cjs");
  writeFileSync(
    program,
    `
const { createClient } = require("fm-proxy");
(async () => {
  const fallback = () => ({ output_text: "elsewhere" });
  const client = createClient({ engine: "fake", env: ${JSON.stringify(sanitizerEnv)}, fallback });
  const error = await client.health.ping().then(() => null, (error) => error);
  const { source, response } = await client.safe.responses.create({ input: "x" });
  console.log(JSON.stringify({ code: error?.code, detail: error?.detail, source, text: response?.output_text }));
  await client.close();
})();`,
  );
  return { folder, program, fmProxy: join(modules, "fm-proxy"), platform: dirname(bin) };
}

/** The application's output, when it is started with these arguments of Node. */
async function startApp({ program }, ...args) {
  const { FM_PROXY_PATH: _, ...env } = process.env;
  const { stdout } = await run(process.execPath, ["--no-warnings", ...args, program], { env });
  return JSON.parse(stdout);
}

const reading = (...paths) => paths.map((path) => `--allow-fs-read=${path}`);
const whole = (folder) => join(folder, "*");

test("node --permission: the application's folder and child processes are enough", { timeout: WAIT }, async (t) => {
  const app = installApp(t);
  const said = await startApp(app, PERMISSION, "--allow-child-process", ...reading(whole(app.folder)));
  assert.deepEqual(said, { source: "local", text: "x" });
});

for (const [name, args, told] of [
  ["no child process", () => reading("*"), /--allow-child-process/],
  [
    "the platform's package may not be read",
    ({ program, fmProxy }) => ["--allow-child-process", ...reading(program, whole(fmProxy))],
    /No fm-proxy helper was found.*--allow-fs-read for the folder of @fm-proxy/,
  ],
  [
    "the package itself may not be read as a whole",
    ({ program, fmProxy, platform }) => {
      const files = ["package.json", "dist/index.cjs", "dist/errors.cjs"].map((file) => join(fmProxy, file));
      return ["--allow-child-process", ...reading(program, whole(platform), ...files)];
    },
    /--allow-fs-read=.*later\.cjs/,
  ],
]) {
  test(`node --permission: ${name}: the error says what to allow, and the fallback answers`, { timeout: WAIT }, async (t) => {
    const app = installApp(t);
    const { code, detail, source, text } = await startApp(app, PERMISSION, ...args(app));
    // Node 20 still finds packages that it may not read.
    if (code === undefined && PERMISSION === "--experimental-permission") return assert.equal(text, "x");
    assert.equal(code, "SPAWN_FAILED");
    assert.match(detail, told);
    assert.deepEqual([source, text], ["fallback", "elsewhere"]);
  });
}

test("a tool that collects an application's files finds all of the package, and the programs", { timeout: WAIT }, async (t) => {
  const app = installApp(t);
  const { fileList } = await nodeFileTrace([app.program], { base: app.folder, log: false });
  const folder = temporaryFolder(t);
  for (const name of fileList) cpSync(join(app.folder, name), join(folder, name), { recursive: true });
  const program = join(folder, "app.cjs");
  assert.deepEqual(await startApp({ program }), { source: "local", text: "x" });
});

for (const [name, left, told] of [
  ["the platform's package", ({ platform }) => platform, /No fm-proxy helper was found.*has left it out/],
  ["its programs", ({ platform }) => join(platform, "bin"), /lacks its program bin.fm-proxy.*has left it out/],
]) {
  test(`a tool that leaves out ${name}: the error says so, and the fallback answers`, { timeout: WAIT }, async (t) => {
    const app = installApp(t);
    rmSync(left(app), { recursive: true });
    const { code, detail, source } = await startApp(app);
    assert.deepEqual([code, source], ["SPAWN_FAILED", "fallback"]);
    assert.match(detail, told);
  });
}
