// The packages as a user gets them: packed from this build, installed by npm from a registry that has no other packages.
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { cpSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { before, after, test } from "node:test";
import { promisify } from "node:util";
import { createPackageWithOptions } from "@electron/asar";
import { noModel, root, temporaryFolder } from "./support/helper.mjs";
import { packAll, serveTarballs } from "./support/registry.mjs";

const run = promisify(execFile);
const require = createRequire(import.meta.url);
const skip = noModel() ?? false;
const PLATFORM = join("node_modules", "@fm-proxy", "linux-x64");
const cleanups = [];
const scope = { after: (it) => cleanups.push(it) };
let tarballs;
let folder;

before(async () => {
  if (skip) return;
  const out = join(temporaryFolder(scope), "npm");
  tarballs = await packAll(out);
  folder = await install();
});
after(() => cleanups.forEach((cleanup) => cleanup()));

/** A new project with the package in it. */
async function install(...more) {
  const project = temporaryFolder(scope);
  writeFileSync(join(project, "package.json"), "{}");
  const registry = await serveTarballs(scope, tarballs);
  const options = ["--no-audit", "--no-fund", "--no-update-notifier", `--cache=${join(project, ".npm")}`];
  await run("npm", ["install", "fm-proxy", `--registry=${registry}`, ...options, ...more], { cwd: project });
  return project;
}

/** The output of a program in the project. */
async function output(project, code) {
  const path = join(project, "host.mjs");
  writeFileSync(path, code);
  return outputOf([path], project);
}

/** Node's output, in the environment of a user who knows nothing of fm-proxy. */
async function outputOf(words, home) {
  return (await run(process.execPath, words, { env: { PATH: process.env.PATH, HOME: home }, cwd: "/" })).stdout;
}

const use = `
const modelsDir = ${JSON.stringify(join(root, "build", "models"))};
const client = createClient({ modelsDir, env: { FM_ENGINE_LLAMA_THREADS: "1" } });
const body = { input: "What is the capital of France?", temperature: 0, max_output_tokens: 12 };
const { compatible } = await client.compatibility.check();
const program = readlinkSync("/proc/" + (await client.health.ping()).pid + "/exe");
let streamed = "";
for await (const event of client.responses.stream(body)) if (event.type === "response.output_text.delta") streamed += event.delta;
const whole = (await client.responses.create(body)).output_text;
await client.close();
console.log(JSON.stringify({ compatible, program, streamed, whole }));
`;
const answer = `
import { readlinkSync } from "node:fs";
import { createClient } from "fm-proxy";
${use}`;

test("a streamed answer of the real model, in place and moved", { skip }, async () => {
  const moved = temporaryFolder(scope);
  cpSync(folder, moved, { recursive: true });
  for (const project of [folder, moved]) {
    const { compatible, program, streamed, whole } = JSON.parse(await output(project, answer));
    assert.equal(compatible, true);
    assert.equal(program, join(project, PLATFORM, "bin", "fm-proxy"));
    assert.ok(streamed.length > 10, streamed);
    assert.equal(streamed, whole);
  }
});

// Electron is not available here. asar-node makes Node read these archives as Electron does.
test("nothing runs at the installation, and nothing else comes with it", { skip }, () => {
  for (const name of ["fm-proxy", PLATFORM.split("node_modules/")[1]]) {
    const { scripts, dependencies } = JSON.parse(readFileSync(join(folder, "node_modules", name, "package.json"), "utf8"));
    assert.deepEqual({ scripts, dependencies }, { scripts: undefined, dependencies: undefined }, name);
  }
  assert.deepEqual(readdirSync(join(folder, "node_modules")).sort(), [".bin", ".package-lock.json", "@fm-proxy", "fm-proxy"]);
});

test("in an archive of Electron, with the programs unpacked beside it", { skip }, async () => {
  const resources = join(temporaryFolder(scope), "resources");
  const source = temporaryFolder(scope);
  cpSync(join(folder, "node_modules"), join(source, "node_modules"), { recursive: true });
  const main = `const { readlinkSync } = require("node:fs");
const { createClient } = require("fm-proxy");
(async () => {${use}})();
`;
  writeFileSync(join(source, "main.cjs"), main);
  const archive = join(resources, "app.asar");
  await createPackageWithOptions(source, archive, { unpackDir: "node_modules/@fm-proxy" });
  const reader = require.resolve("asar-node");
  const start = `require(${JSON.stringify(reader)}).register(); require(${JSON.stringify(join(archive, "main.cjs"))});`;
  const { compatible, program, streamed, whole } = JSON.parse(await outputOf(["-e", start], source));
  assert.equal(compatible, true);
  assert.equal(program, join(`${archive}.unpacked`, PLATFORM, "bin", "fm-proxy"));
  assert.ok(streamed.length > 10, streamed);
  assert.equal(streamed, whole);
});

/** A stand-in for Electron: the main process that Electron would run, and a request from a window. */
const electron = `
const { EventEmitter, once } = require("node:events");
const { execFileSync } = require("node:child_process");
const app = new EventEmitter();
Object.assign(app, { getPath: () => process.env.HOME, whenReady: async () => {}, quit: () => app.emit("quit") });
const handlers = {};
const ipcMain = Object.assign(new EventEmitter(), { handle: (name, handler) => (handlers[name] = handler) });
class BrowserWindow { async loadFile() {} }
const load = require("node:module")._load;
require("node:module")._load = (name, ...rest) => (name === "electron" ? { app, BrowserWindow, ipcMain } : load(name, ...rest));
const children = () => execFileSync("ps", ["--no-headers", "-o", "pid", "--ppid", process.pid], { encoding: "utf8" });
const window = () => Object.assign(new EventEmitter(), { id: 1, isDestroyed: () => false, send() { this.emit("text"); } });
const ask = async (onText) => {
  const sender = window();
  sender.once("text", () => onText(sender));
  return handlers["model:ask"]({ sender }, "Count from one to one thousand.");
};
/** How an answer ends that is interrupted at its first text. An answer that happens to be short is asked for again. */
const interrupt = async (how) => {
  let end;
  do end = await ask(how);
  while (end.ok);
  return end;
};
const helper = () => children().trim().split("\\n").map(Number).find((pid) => {
  try { return require("node:fs").readlinkSync("/proc/" + pid + "/exe").endsWith("fm-proxy"); } catch { return false; }
});
const drive = async () => {
  const { compatible } = await handlers["model:check"]();
  const killed = await interrupt(() => process.kill(helper(), "SIGKILL"));
  const stopped = await interrupt((sender) => ipcMain.emit("model:stop", { sender }));
  const closed = await interrupt((sender) => sender.emit("destroyed"));
  const quit = once(app, "quit");
  app.emit("will-quit", { preventDefault() {} });
  await quit;
  console.log(JSON.stringify({ compatible, ends: [killed, stopped, closed].map(({ code }) => code), left: helper() ?? null }));
};
`;

test("examples/electron in its archive: a helper dies, the window stops and closes, the application ends", { skip }, async () => {
  const source = temporaryFolder(scope);
  cpSync(join(folder, "node_modules"), join(source, "node_modules"), { recursive: true });
  cpSync(join(root, "examples", "electron"), source, { recursive: true });
  const { build, main } = JSON.parse(readFileSync(join(source, "package.json"), "utf8"));
  for (const file of [main, ...build.files]) assert.ok(existsSync(join(source, file)), file);
  const archive = join(temporaryFolder(scope), "resources", "app.asar");
  await createPackageWithOptions(source, archive, { unpackDir: build.asarUnpack[0].replace("/**", "") });
  const reader = `require(${JSON.stringify(require.resolve("asar-node"))}).register();`;
  const start = `${reader}${electron}require(${JSON.stringify(join(archive, main))}); drive();`;
  const env = { PATH: process.env.PATH, HOME: temporaryFolder(scope), FM_PROXY_MODELS_DIR: join(root, "build", "models") };
  const { stdout } = await run(process.execPath, ["-e", start], { env, cwd: "/" });
  assert.deepEqual(JSON.parse(stdout), { compatible: true, ends: ["HELPER_EXITED", "CANCELLED", "CANCELLED"], left: null });
});

test("without the platform's package the feature is absent, and says what is missing", { skip }, async () => {
  const project = await install("--omit=optional");
  const code = `
import { createClient } from "fm-proxy";
const client = createClient();
const { compatible, reason_code, detail } = await client.compatibility.check();
const { ok, error } = await client.safe.responses.create({ input: "x" });
console.log(JSON.stringify({ compatible, reason_code, detail, ok, code: error.code }));
await client.close();
`;
  const { detail, ...rest } = JSON.parse(await output(project, code));
  assert.deepEqual(rest, { compatible: false, reason_code: "SPAWN_FAILED", ok: false, code: "SPAWN_FAILED" });
  assert.match(detail, /Install the package @fm-proxy\/linux-x64/);
});

test("sizes", { skip }, () => {
  const unpacked = (path) => execFileSync("du", ["-s", "--apparent-size", "-B1", path], { encoding: "utf8" }).split("\t")[0];
  const packed = (name) => statSync(tarballs.find((path) => path.includes(name))).size;
  assert.ok(Number(unpacked(join(folder, PLATFORM))) <= 42e6, unpacked(join(folder, PLATFORM)));
  assert.ok(packed("fm-proxy-linux-x64") <= 16e6, String(packed("fm-proxy-linux-x64")));
  assert.ok(packed("/fm-proxy-0") <= 180e3, String(packed("/fm-proxy-0")));
});

test("the manifest has the hash of each file", { skip }, async () => {
  const installed = join(folder, PLATFORM);
  const { files, version } = JSON.parse(readFileSync(join(installed, "manifest.json"), "utf8"));
  assert.equal(version, JSON.parse(readFileSync(join(root, "js-shim", "package.json"), "utf8")).version);
  const names = readdirSync(installed, { recursive: true }).map(String);
  const there = names.filter((name) => statSync(join(installed, name)).isFile() && name !== "manifest.json");
  assert.deepEqual(files.map(({ path }) => path), there.sort());
  const lines = files.map(({ path, sha256 }) => `${sha256}  ${join(installed, path)}\n`).join("");
  execFileSync("sha256sum", ["--check", "--quiet"], { input: lines });
});
