// The rehearsal of a release. The packages are published to an empty registry on this machine. Each package manager then installs
// them from this registry, in an empty folder of a user who has no checkout. `release.mjs --rehearse` runs it.
import { execFile } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { readlinkSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { fetchManagers, managerCommand } from "../../tests/js/support/managers.mjs";
import { fetchNode, NODES } from "../../tests/js/support/node.mjs";
import { publishAll, publishOptions, manifestOf } from "./publish.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const tests = join(root, "tests", "js");
const require = createRequire(join(tests, "package.json"));
const run = promisify(execFile);
/** The time limit of a command: only a command that hangs takes this long. */
const LIMIT_MS = 600_000;
/** The age that packages get in the registry. Some package managers refuse packages that were published less than a day ago. */
const LONG_AGO = "2020-01-01T00:00:00.000Z";

/** What a user types, in an empty folder. `alias` and `command` are those of managers.mjs. */
const MANAGERS = {
  npm: { add: "npm install fm-proxy", exec: "npx fm-proxy", remove: "npm uninstall fm-proxy" },
  "pnpm 10": { alias: "pnpm-10", command: "pnpm", ...ofPnpm() },
  "pnpm 12": { alias: "pnpm-12", command: "pnpm", ...ofPnpm() },
  "Yarn 1": { alias: "yarn-1", command: "yarn", ...ofYarn("yarn --silent fm-proxy") },
  "Yarn 4": { alias: "@yarnpkg/cli-dist", command: "yarn", ...ofYarn("yarn fm-proxy"), linker: "node-modules" },
  "Yarn 4 PnP": { alias: "@yarnpkg/cli-dist", command: "yarn", ...ofYarn("yarn fm-proxy"), linker: "pnp" },
  Bun: { alias: "bun", command: "bun", add: "bun add fm-proxy", exec: "bun x fm-proxy", remove: "bun remove fm-proxy" },
};

function ofPnpm() {
  return { add: "pnpm add fm-proxy", exec: "pnpm exec fm-proxy", remove: "pnpm remove fm-proxy" };
}

function ofYarn(exec) {
  return { add: "yarn init -y && yarn add fm-proxy", exec, remove: "yarn remove fm-proxy" };
}

const COLUMNS = ["Installed by", "Node", "Size", "doctor", "Answer", "Uninstall"];

/** Throws an error with the reason if no rehearsal is possible. */
export function checkRehearsal(managers = []) {
  const unknown = managers.find((name) => !(name in MANAGERS));
  if (unknown !== undefined) throw new Error(`there is no manager '${unknown}'. There are: ${Object.keys(MANAGERS).join(", ")}`);
  if (existsSync(join(tests, "node_modules", "verdaccio"))) return;
  throw new Error("what a rehearsal needs is not installed. Run `sh packaging/setup.sh --tests` first");
}

/**
 * Publishes the tarballs, and installs them by the `managers`, each with the `nodes` (versions, or "all"). The last tarball is
 * the main package's. Prints a table. Returns how many of its rows failed.
 */
export async function rehearseInstalls({ tarballs, nodes, managers = Object.keys(MANAGERS), say = console.log }) {
  const work = realpathSync(mkdtempSync(join(tmpdir(), "fm-rehearsal-")));
  const registry = await startRegistry(join(work, "registry"));
  try {
    for (const tarball of tarballs) await lint(tarball);
    say("publint and attw: nothing found");
    await publishAll(tarballs, publishOptions(manifestOf(tarballs.at(-1)).version), registry.publisher);
    registry.age();
    const isWithout = ({ stderr, message }) => say(`the package managers can't be installed: ${stderr?.trim() || message}`);
    if (managers.some((name) => name !== "npm")) await fetchManagers().catch(isWithout);
    const programs = await programsOf(nodes);
    say(`| ${COLUMNS.join(" | ")} |\n|${"---|".repeat(COLUMNS.length)}`);
    const notes = [];
    let [failed, leftOut] = [0, 0];
    for (const node of programs) {
      for (const name of managers) {
        const { cells, note, isFailed } = await row(name, node, registry.url, mkdtempSync(join(work, "user-")));
        if (cells === undefined) leftOut++;
        else say(`| ${cells.join(" | ")} |`);
        if (note !== undefined) notes.push(note);
        if (isFailed) failed++;
      }
    }
    notes.forEach((note) => say(note));
    say(`rehearsal: ${failed} failed, ${leftOut} left out`);
    return failed;
  } finally {
    await registry.close();
    rmSync(work, { recursive: true, force: true });
  }
}

async function programsOf(versions = []) {
  const wanted = versions.flatMap((version) => (version === "all" ? NODES : [version]));
  return wanted.length === 0 ? [process.execPath] : Promise.all(wanted.map(fetchNode));
}

/** The table's row for one user. A row without cells: this case can't be tested, and the note says why. */
async function row(name, node, registry, place) {
  const version = (await run(node, ["--version"])).stdout.trim().slice(1);
  const [app, home, tools] = ["app", "home", "tools"].map((each) => join(place, each));
  for (const folder of [app, home, tools]) mkdirSync(folder);
  const manager = MANAGERS[name];
  try {
    furnish(tools, node, version, manager);
  } catch (error) {
    return { note: `left out: ${name} on Node ${version}: ${error.message}`, isFailed: false };
  }
  configure(home, registry, manager);
  const env = { PATH: `${tools}:/usr/local/bin:/usr/bin:/bin`, HOME: home, LANG: "C.UTF-8" };
  const shell = (command) => typed(command, app, env);
  const cells = [name, version];
  try {
    cells[0] = name.replace(/( \d+|$)/, ` ${(await shell(`${manager.command ?? "npm"} --version`)).trim()}`);
    for (const step of [install, doctor, answer, uninstall]) cells.push(await step(manager, shell, { app, home }));
    return { cells, isFailed: false };
  } catch (error) {
    const note = `FAILED: ${name} on Node ${version}: ${error.message}`;
    cells.push("FAILED");
    return { cells: COLUMNS.map((_, index) => cells[index] ?? ""), note, isFailed: true };
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

/** The folders in the user's PATH besides the system's: those of a Node with its npm, and of the manager. */
function furnish(tools, node, version, { alias, command }) {
  const put = (name, words) => {
    writeFileSync(join(tools, name), `#!/bin/sh\nexec ${words.map((word) => `'${word}'`).join(" ")} "$@"\n`);
    chmodSync(join(tools, name), 0o755);
  };
  symlinkSync(node, join(tools, "node"));
  for (const name of ["npm", "npx"]) put(name, [node, join(npmOf(node), `${name}-cli.js`)]);
  if (alias !== undefined) put(command, managerCommand(alias, command, node, version));
}

/** The folder of npm's programs: beside a Node, or the system's folder. */
function npmOf(node) {
  const beside = join(dirname(node), "..", "lib", "node_modules", "npm", "bin");
  if (existsSync(beside)) return beside;
  const places = process.env.PATH.split(":").map((folder) => join(folder, "npm"));
  return dirname(realpathSync(places.find((path) => existsSync(path))));
}

/** The user's own settings: the registry, and no calls elsewhere. */
function configure(home, registry, { linker = "node-modules" }) {
  const files = {
    ".npmrc": [`registry=${registry}`, "audit=false", "fund=false", "update-notifier=false"],
    ".bunfig.toml": ["telemetry = false", "[install]", `registry = "${registry}"`],
    ".yarnrc": [`registry "${registry}"`],
    ".yarnrc.yml": [
      `npmRegistryServer: "${registry}"`,
      'unsafeHttpWhitelist: ["127.0.0.1"]',
      `nodeLinker: ${linker}`,
      "enableTelemetry: false",
    ],
  };
  for (const [name, lines] of Object.entries(files)) writeFileSync(join(home, name), `${lines.join("\n")}\n`);
}

/** Runs a command, and returns its stdout. If it fails, the error has all of its output. */
async function typed(command, cwd, env) {
  const ran = run("sh", ["-c", command], { cwd, env, timeout: LIMIT_MS, maxBuffer: 1 << 26 });
  ran.child.stdin.end();
  try {
    return (await ran).stdout;
  } catch ({ stdout, stderr, message }) {
    throw new Error(`${command}: ${`${stdout ?? ""}${stderr ?? ""}`.trim() || message}`);
  }
}

async function install({ add }, shell, { app }) {
  await shell(add);
  const sizes = filesBelow(app).map((name) => lstatSync(join(app, name)).size);
  return `${(sizes.reduce((sum, size) => sum + size, 0) / 1e6).toFixed(1)} MB`;
}

/** Runs doctor as the documents say. With Plug'n'Play, npx finds nothing. */
async function doctor({ exec, linker }, shell, { app }) {
  const told = await shell(`${linker === "pnp" ? exec : "npx fm-proxy"} doctor --model '${model()}'`);
  const [, program] = /^ok +helper: (.*), from the package /m.exec(told) ?? [];
  if (program?.startsWith(app) !== true) throw new Error(`doctor names another program than the installed one:\n${told}`);
  return "ok";
}

async function answer({ exec }, shell) {
  const question = "What is the capital of France?";
  const told = await shell(`${exec} run '${question}' --model '${model()}' --temperature 0 --max-output-tokens 12`);
  if (told.trim().length < 10) throw new Error(`the answer is ${JSON.stringify(told)}`);
  return told.trim().replace(/\s+/g, " ").replaceAll("|", "/");
}

async function uninstall({ remove }, shell, { app, home }) {
  await shell(remove);
  const left = [...leftIn(app), ...leftIn(home), ...runningIn(app)];
  if (left.length > 0) throw new Error(`${remove} has left ${left.length} files and processes: ${left.slice(0, 5).join(", ")}`);
  return "nothing left";
}

/** Files of the package, except downloads that the managers keep; pnpm 10 keeps some in the project for a week. */
function leftIn(folder) {
  const isKept = (path) => /^(\.npm|\.yarn|\.bun|(.*\/)?(\.?pnpm|yarn))\//.test(path);
  return filesBelow(folder).filter((path) => path.includes("fm-proxy") && !isKept(path)).map((path) => join(folder, path));
}

/** Programs of the package that are still running. */
function runningIn(folder) {
  if (!existsSync("/proc/self/exe")) return [];
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name)).filter((pid) => {
    try {
      return readlinkSync(`/proc/${pid}/exe`).startsWith(folder);
    } catch {
      return false; // the process has ended, or belongs to another user
    }
  });
}

/** The paths of everything in a folder except folders; links are not followed. */
function filesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    return entry.isDirectory() ? filesBelow(join(folder, entry.name)).map((name) => join(entry.name, name)) : [entry.name];
  });
}

/** The small model of the tests. */
function model() {
  const folder = join(root, "build", "models");
  const name = existsSync(folder) ? readdirSync(folder).find((each) => each.endsWith(".gguf")) : undefined;
  if (name === undefined) throw new Error(`there is no model in ${folder}. Run \`sh packaging/setup.sh\` first`);
  return join(folder, name);
}

/**
 * Throws for the faults that these tools find. The platforms' packages have no types, and no modules that the tools could check.
 */
async function lint(tarball) {
  const { publint } = await import(require.resolve("publint"));
  const hasModules = manifestOf(tarball).exports !== undefined;
  const level = hasModules ? "suggestion" : "warning";
  const { messages } = await publint({ pack: { tarball: new Uint8Array(readFileSync(tarball)).buffer }, level });
  if (messages.length > 0) throw new Error(`publint on ${tarball}: ${JSON.stringify(messages)}`);
  if (!hasModules) return;
  const attw = join(tests, "node_modules", ".bin", "attw");
  await run(attw, [tarball]).catch(({ stdout }) => {
    throw new Error(`attw on ${tarball}: ${stdout}`);
  });
}

/** Starts verdaccio, with an account that may publish. It asks no other registry. */
async function startRegistry(folder) {
  const storage = join(folder, "storage");
  mkdirSync(storage, { recursive: true });
  const server = await require("verdaccio").runServer({
    self_path: join(folder, "config.yaml"),
    storage,
    auth: { htpasswd: { file: join(folder, "htpasswd") } },
    uplinks: {},
    packages: { "**": { access: "$all", publish: "$authenticated" } },
    web: { enable: false },
    max_body_size: "100mb",
    log: { type: "file", path: join(folder, "log"), level: "warn" },
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const host = `127.0.0.1:${server.address().port}/`;
  const token = await addUser(`http://${host}`);
  writeFileSync(join(folder, ".npmrc"), `registry=http://${host}\n//${host}:_authToken=${token}\nloglevel=error\n`);
  return {
    url: `http://${host}`,
    publisher: { PATH: process.env.PATH, HOME: folder },
    age: () => filesBelow(storage).filter((name) => name.endsWith("package.json")).forEach((name) => age(join(storage, name))),
    close: () => {
      server.closeAllConnections();
      return new Promise((closed) => server.close(closed));
    },
  };
}

async function addUser(url) {
  const name = "rehearsal";
  const response = await fetch(`${url}-/user/org.couchdb.user:${name}`, {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name, password: "of a registry that is gone in a minute" }),
  });
  const { token, error } = await response.json();
  if (token === undefined) throw new Error(`the registry made no account: ${error}`);
  return token;
}

/** Makes the registry report an old date for a package. */
function age(path) {
  const { time, ...rest } = JSON.parse(readFileSync(path, "utf8"));
  const old = Object.fromEntries(Object.keys(time).map((name) => [name, LONG_AGO]));
  writeFileSync(path, JSON.stringify({ ...rest, time: old }));
}
