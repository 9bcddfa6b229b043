// The VSIX of packaging/vscode in a real VS Code (code-server) with a headless Chromium: what a user sees, from the
// installation to the end of the last process; and the same without the platform's package. tests/vscode/run.sh installs what
// this needs.
//
// usage: node tests/vscode/run.mjs [--model FILE] [--screenshots FOLDER] [WINDOW...]
//   WINDOW                only these: helper, absent, download, model
//   --model FILE          asks this model too; without it, only the fake engine answers
//   --screenshots FOLDER  where the pictures go (default: build/vscode/screenshots)
//
// build/bin has the helper (FM_BIN names another folder), FM_CHROMIUM the browser (default: /usr/bin/chromium).
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync } from "node:fs";
import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { build } from "../../packaging/vscode/build.mjs";
import { serveHub } from "../js/support/hub.mjs";
import { until, Window } from "./window.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "..", "..");
const bin = process.env.FM_BIN ?? join(root, "build", "bin");
const TARGET = "linux-x64";
const ID = "fm-proxy.fm-proxy";
const ITEM = `.statusbar-item[id^="${ID}"]`;
const TOAST = ".notification-toast";
const PICK = ".quick-input-list .monaco-list-row";
const CANCEL = `${TOAST} .notification-list-item-buttons-container .monaco-button`;

const string = { type: "string" };
const known = { model: string, screenshots: string };
const { values: options, positionals: wanted } = parseArgs({ options: known, allowPositionals: true });
const pictures = resolve(options.screenshots ?? join(root, "build", "vscode", "screenshots"));
const scratch = mkdtempSync(join(tmpdir(), "fm-vscode-"));
let passed = 0;
let failed = 0;

/** Checks one thing. If it fails, the others are still checked. */
async function check(name, look) {
  try {
    await look();
    passed++;
    console.log(`ok: ${name}`);
  } catch (error) {
    failed++;
    console.log(`FAILED: ${name}\n${error.stack}`);
  }
}

/** The platform's package as it is released. */
function released() {
  const out = join(scratch, "npm");
  execFileSync(process.execPath, [join(root, "packaging", "npm", "pack.mjs"), "--out", out]);
  return join(out, TARGET);
}

/** A stand-in for the platform's package, with the fake engine too. */
function platformPackage() {
  const folder = join(scratch, "package");
  mkdirSync(join(folder, "bin"), { recursive: true });
  const names = readdirSync(bin).filter((name) => /^fm-(proxy$|engine-(fake|llama)(\.json)?$)/.test(name));
  for (const name of names) copyFileSync(join(bin, name), join(folder, "bin", name));
  const manifest = { name: `@fm-proxy/${TARGET}`, version: "0.1.0", os: ["linux"], cpu: ["x64"] };
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
  return folder;
}

/** The driver as a VSIX. */
async function driver() {
  const packagePath = join(scratch, "driver.vsix");
  const { createVSIX } = createRequire(join(root, "packaging", "vscode", "package.json"))("@vscode/vsce");
  const more = { dependencies: false, allowMissingRepository: true, skipLicense: true };
  await createVSIX({ cwd: join(here, "driver"), packagePath, ...more });
  return packagePath;
}

const CODE = 'const f = ["parse dates"];\nconst slow = [{"hang":"soft"}];\n';

/** A repository with a file that was committed and then changed. */
function workspace(name) {
  const folder = join(scratch, name);
  mkdirSync(folder);
  const git = (...args) => execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@example.com", ...args], { cwd: folder });
  git("init", "-q", "-b", "main");
  writeFileSync(join(folder, "date.js"), "export const parse = (text) => text;\n");
  git("add", ".");
  git("commit", "-qm", "Begin");
  writeFileSync(join(folder, "date.js"), 'export const parse = (text) => text.split("-").map(Number);\n');
  writeFileSync(join(folder, "code.js"), CODE);
  return folder;
}

let number = 0;
async function picture(window, name) {
  const file = `${String(++number).padStart(2, "0")}-${name}.png`;
  await window.page.screenshot({ path: join(pictures, file), animations: "disabled" });
}

/** A window with these extensions installed; it is closed whatever happens. */
async function withWindow(name, vsixes, more, use) {
  if (wanted.length > 0 && !wanted.includes(name)) return;
  const window = new Window({ folder: join(scratch, `window-${name}`), workspace: workspace(`workspace-${name}`), ...more });
  try {
    for (const vsix of vsixes) await window.install(vsix);
    await window.open();
    await use(window);
  } catch (error) {
    failed++;
    console.log(`FAILED: ${name}\n${error.stack}\n${window.log.slice(-3000)}`);
    if (window.page !== undefined) await picture(window, `${name}-failed`).catch(() => {});
  } finally {
    await window.close();
  }
  await check(`${name}: after the server has ended, no helper is left`, () =>
    until(() => window.helpers().length === 0, `the end of ${window.helpers()}`),
  );
}

const statusItem = async ({ page }) => {
  const item = await page.waitForSelector(ITEM, { timeout: 120_000 });
  return { text: (await item.textContent()).trim(), label: await item.getAttribute("aria-label") };
};

/** Selects a text of code.js in the editor. */
async function select(window, text) {
  const content = readFileSync(join(window.workspace, "code.js"), "utf8");
  const from = content.indexOf(text);
  await window.ask("open", { path: join(window.workspace, "code.js"), from, to: from + text.length });
}

// With the platform's package and the fake engine

async function chat(window) {
  await check("the provider's models, as another extension sees them", async () => {
    const models = await until(async () => {
      const found = await window.ask("models");
      return found.length > 0 && found;
    }, "a model");
    console.log(`    ${JSON.stringify(models)}`);
  });
  await check("a chat streams: the pieces come one by one", async () => {
    const text = JSON.stringify(["one ", { sleep_ms: 300 }, "two ", { sleep_ms: 300 }, "three"]);
    const { pieces, error } = await window.ask("chat", { text });
    assert.equal(error, null);
    assert.equal(pieces.map(({ piece }) => piece).join(""), "one two three");
    assert.ok(pieces.length >= 3 && pieces.at(-1).ms - pieces[0].ms > 400, JSON.stringify(pieces));
    console.log(`    ${JSON.stringify(pieces)}`);
  });
  await check("a cancelled chat ends at once, and the next one is answered", async () => {
    const { pieces, ms } = await window.ask("chat", { text: JSON.stringify(["one ", { hang: "soft" }]), cancelAfter: 1 });
    assert.equal(pieces.map(({ piece }) => piece).join(""), "one ");
    assert.ok(ms < 20_000, `${ms} ms`);
    const next = await window.ask("chat", { text: "and now" });
    assert.equal(next.pieces.map(({ piece }) => piece).join(""), "and now");
  });
  await check("tokens are counted by the model", async () => {
    assert.equal(await window.ask("count", { text: "three words here" }), 3);
  });
}

async function names(window) {
  await check("Suggest a Name: progress with Cancel, and nothing after it", async () => {
    await select(window, '[{"hang":"soft"}]');
    const ended = await window.start("fm-proxy.suggestName");
    const button = await window.page.waitForSelector(CANCEL, { timeout: 60_000 });
    await picture(window, "name-progress");
    await button.click();
    await ended();
    assert.equal(await window.page.locator(PICK).count(), 0);
  });
  await check("Suggest a Name: the names to choose from, and the chosen one in the code", async () => {
    await select(window, '["parse dates"]');
    const ended = await window.start("fm-proxy.suggestName");
    await window.page.waitForSelector(PICK, { timeout: 60_000 });
    await picture(window, "name-pick");
    assert.deepEqual(await window.page.locator(`${PICK} .label-name`).allTextContents(), ["parseDates"]);
    await window.page.keyboard.press("Enter");
    await ended();
    assert.equal(await window.ask("text"), CODE.replace('["parse dates"]', 'parseDates ["parse dates"]'));
    await picture(window, "name-inserted");
  });
  await check("Suggest a Name: a name that is there is renamed wherever it is used", async () => {
    const path = join(window.workspace, "use.js");
    writeFileSync(path, "function f_1(dates) {\n  return dates.split(',');\n}\nconst x = f_1('1');\nf_1(x);\n");
    await window.ask("open", { path, from: 9, to: 12 });
    const ended = await window.start("fm-proxy.suggestName");
    await window.page.waitForSelector(PICK, { timeout: 60_000 });
    const [name] = await window.page.locator(`${PICK} .label-name`).allTextContents();
    await picture(window, "rename-pick");
    await window.page.keyboard.press("Enter");
    await ended();
    const text = await window.ask("text");
    // The fake engine repeats the question, which is not a valid name.
    assert.equal(name, "dates_split");
    assert.equal(text.split(name).length - 1, 3, text);
    await picture(window, "renamed");
  });
}

async function commit(window) {
  await check("Write a Commit Message: into the box of the Source Control view", async () => {
    await (await window.start("workbench.view.scm"))();
    await until(async () => ((await window.ask("box", {}))?.changed ?? 0) > 0, "the repository");
    await (await window.start("fm-proxy.writeCommitMessage"))();
    const { value } = await window.ask("box", {});
    console.log(`    ${JSON.stringify(value)}`);
    assert.equal(value, "Update date.js and 2 more files");
    const box = window.page.locator(".scm-input").first();
    // The box shows its spaces as another character.
    await until(async () => (await box.textContent()).replaceAll("\u00a0", " ").includes(value), "the box");
    await picture(window, "commit-message");
  });
}

async function withHelper(window) {
  const program = join(window.installed(ID), "node_modules", "@fm-proxy", TARGET, "bin", "fm-proxy");
  await check("the installed program is executable", () => assert.notEqual(statSync(program).mode & 0o111, 0));
  await check("the extension is active, and the status bar has the model's name", async () => {
    assert.equal(await window.ask("isActive", { id: ID }), true);
    const { text, label } = await statusItem(window);
    console.log(`    ${text} | ${label}`);
    assert.match(label, /ready/);
    await window.page.hover(ITEM);
    await window.page.waitForSelector(".workbench-hover:visible, .monaco-hover:visible");
    await picture(window, "ready");
    assert.equal(await window.page.locator(TOAST).count(), 0);
  });
  await chat(window);
  await names(window);
  await commit(window);
  await check("a re-check says so in the status bar", async () => {
    await (await window.start("fm-proxy.recheck"))();
    await until(async () => (await window.page.locator(".statusbar").textContent()).includes("Local model ready"), "the note");
    // VS Code shows progress slightly longer than it lasts.
    await until(async () => (await window.page.locator(TOAST).count()) === 0, "the end of the notifications");
  });
  await check("a reloaded window: the helper of the old extension host is gone, and a new one is ready", async () => {
    const before = window.helpers();
    assert.ok(before.length > 0);
    await window.ask("start", { id: "workbench.action.reloadWindow" });
    await until(() => before.every((pid) => !window.helpers().includes(pid)), `the end of ${before}`);
    await window.ready();
    const { label } = await statusItem(window);
    assert.match(label, /ready/);
  });
}

// Without it

async function withoutHelper(window) {
  await check("without the platform's package: one item with its reason, and nothing else", async () => {
    const { text, label } = await statusItem(window);
    console.log(`    ${text} | ${label}`);
    assert.match(label, /SPAWN_FAILED/);
    await window.page.hover(ITEM);
    await window.page.waitForSelector(".workbench-hover:visible, .monaco-hover:visible");
    await picture(window, "absent");
    assert.equal(await window.page.locator(ITEM).count(), 1);
    assert.equal(await window.page.locator(TOAST).count(), 0);
    assert.deepEqual(await window.ask("models"), []);
    assert.deepEqual(window.helpers(), []);
  });
  await check("without the platform's package: the palette has what needs no model", async () => {
    await window.page.keyboard.press("F1");
    await window.page.waitForSelector(".quick-input-widget:visible");
    await window.page.keyboard.type("fm-proxy");
    const rows = await until(async () => {
      const labels = await window.page.locator(`${PICK} .label-name`).allTextContents();
      const ours = labels.filter((label) => label.startsWith("fm-proxy:"));
      return ours.length > 0 && ours;
    }, "the palette");
    await picture(window, "absent-palette");
    assert.deepEqual(rows, ["fm-proxy: Download a Model", "fm-proxy: Re-check Compatibility"]);
    await window.page.keyboard.press("Escape");
    for (const id of ["suggestName", "writeCommitMessage", "recheck"]) await (await window.start(`fm-proxy.${id}`))();
    await picture(window, "absent-after-commands");
    assert.equal(await window.page.locator(TOAST).count(), 0);
  });
}

// A model of the list, from a stand-in of the hub

/** What python3 tests/models/fetch.py --size 1.5b fetches: a model of the list. */
const FILE = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf";
const WEATHER = {
  name: "get_weather",
  description: "The weather in a city now.",
  inputSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};

async function withDownload(window) {
  await check("without a model: the item offers one, and a click lists what there is", async () => {
    const { text, label } = await statusItem(window);
    console.log(`    ${text} | ${label}`);
    assert.match(label, /MODEL_NOT_READY/);
    await picture(window, "no-model");
    await window.page.click(ITEM);
    await window.page.mouse.move(600, 600); // under the mouse, a hover text would hide the notification
    await window.page.waitForSelector(PICK, { timeout: 60_000 });
    await picture(window, "models");
    assert.ok((await window.page.locator(`${PICK} .label-name`).allTextContents()).includes("qwen3-0.6b"));
  });
  await check("the chosen model is downloaded under a notification, and is ready", async () => {
    await window.page.keyboard.type("coder-1.5b");
    await until(async () => (await window.page.locator(PICK).count()) === 1, "the one model");
    await window.page.keyboard.press("Enter");
    await window.page.waitForSelector(`${TOAST}:has-text("%")`, { timeout: 60_000 });
    await picture(window, "download");
    const ready = async () => (await statusItem(window)).label.includes("ready");
    await until(ready, "the model");
    await until(async () => (await window.page.locator(TOAST).count()) === 0, "the end of the notifications");
    await picture(window, "downloaded");
  });
  await check("the model calls a tool, and answers with its result", async () => {
    const result = "22 degrees, light rain";
    const { calls, answer } = await window.ask("useTool", { text: "What is the weather in Rome?", tool: WEATHER, result });
    console.log(`    ${JSON.stringify({ calls, answer })}`);
    assert.deepEqual(calls, [{ name: "get_weather", input: { city: "Rome" } }]);
    assert.match(answer, /22/);
  });
}

// With a real model

async function withModel(window) {
  await check("the real model: its name, a chat, a name and a commit message", async () => {
    console.log(`    ${JSON.stringify(await statusItem(window))}`);
    const { pieces, error, ms } = await window.ask("chat", { text: "Why is the sky blue? One sentence." });
    assert.equal(error, null);
    assert.ok(pieces.length > 1, "the answer is not streamed");
    const answer = pieces.map(({ piece }) => piece).join("");
    console.log(`    ${pieces.length} pieces in ${ms} ms: ${JSON.stringify(answer.slice(0, 200))}`);
    const path = join(window.workspace, "date.js");
    const content = readFileSync(path, "utf8");
    await window.ask("open", { path, from: 0, to: content.length });
    const ended = await window.start("fm-proxy.suggestName");
    await window.page.waitForSelector(PICK, { timeout: 120_000 });
    await picture(window, "model-names");
    console.log(`    ${JSON.stringify(await window.page.locator(`${PICK} .label-name`).allTextContents())}`);
    await window.page.keyboard.press("Escape");
    await ended();
    await (await window.start("workbench.view.scm"))();
    await until(async () => ((await window.ask("box", {}))?.changed ?? 0) > 0, "the repository");
    await (await window.start("fm-proxy.writeCommitMessage"))();
    console.log(`    ${JSON.stringify((await window.ask("box", {})).value)}`);
    await picture(window, "model-commit-message");
  });
}

async function main() {
  rmSync(pictures, { recursive: true, force: true });
  mkdirSync(pictures, { recursive: true });
  const tools = await driver();
  const full = await build({ target: TARGET, platformPackage: platformPackage() });
  const universal = await build({});
  const fake = { env: { FM_PROXY_ENGINE: "fake" } };
  await withWindow("helper", [full, tools], fake, withHelper);
  await withWindow("absent", [universal, tools], {}, withoutHelper);
  const file = join(root, "build", "models-tools", FILE);
  const hasFile = existsSync(file);
  if (!hasFile) console.log(`left out: download. It needs ${file}: python3 tests/models/fetch.py --size 1.5b`);
  if (!hasFile && options.model === undefined) return;
  const real = await build({ target: TARGET, platformPackage: released() });
  if (hasFile) {
    const hub = { after: (work) => process.once("exit", work) };
    await serveHub(hub, new Map([[`Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/${FILE}`, readFileSync(file)]]));
    await withWindow("download", [real, tools], {}, withDownload);
  }
  if (options.model !== undefined) {
    const settings = { "fm-proxy.model": resolve(options.model) };
    await withWindow("model", [real, tools], { settings }, withModel);
  }
}

function report() {
  console.log(`\nscreenshots: ${pictures}\n${passed} passed, ${failed} failed`);
}

if (!existsSync(join(bin, "fm-proxy"))) {
  console.error(`${join(bin, "fm-proxy")} is missing. Run sh packaging/setup.sh, or name its folder in FM_BIN.`);
  process.exit(1);
}
try {
  await main();
  report();
} finally {
  rmSync(scratch, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
}
process.exit(failed === 0 ? 0 : 1);
