// Installs the packed packages and runs them in systems that only have Debian's smallest set of packages and Node, without a
// network: one that is older than the packages promise, the one that they are built on, and a newer one. The suite "floor"
// only has Node and the oldest libraries that the packages promise. No Debian has glibc 2.34: --glibc names the folder lib64
// of a system that has it, such as RHEL 9. Without it, that suite has Debian 12's glibc, and only the C++ library is the
// oldest one. Needs root, debootstrap, gcc and a network; takes some minutes and 3 GB of disk.
//
// usage: node tests/js/roots.mjs [--glibc FOLDER] [SUITE...]       (on Debian 12, after sh packaging/setup.sh)
import { execFile } from "node:child_process";
import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync } from "node:fs";
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { makeFloor } from "./support/floor.mjs";
import { root } from "./support/helper.mjs";
import { fetchNode } from "./support/node.mjs";
import { packAll, serveTarballs } from "./support/registry.mjs";

const run = promisify(execFile);
const work = mkdtempSync(join(tmpdir(), "fm-roots-"));
const NODE = "24.19.0";
/** The expected result in each system: an answer, or the reason why there is none. */
const SUITES = { bullseye: "OS_TOO_OLD", floor: "answer", bookworm: "answer", trixie: "answer" };
const FLOOR = "2.34";
const LIBRARIES = "usr/lib/x86_64-linux-gnu";

const HOST = `
import { createClient } from "fm-proxy";
const client = createClient({ modelsDir: "/models" });
const { compatible, reason_code, detail } = await client.compatibility.check();
let text = "";
if (compatible) {
  const body = { input: "What is the capital of France?", temperature: 0, max_output_tokens: 12 };
  for await (const event of client.responses.stream(body)) if (event.type === "response.output_text.delta") text += event.delta;
}
await client.close();
const glibc = process.report.getReport().header.glibcVersionRuntime;
console.log(JSON.stringify({ outcome: reason_code ?? "answer", detail, text, glibc }));
`;

async function main() {
  const { values, positionals: wanted } = parseArgs({ allowPositionals: true, options: { glibc: { type: "string" } } });
  const unknown = wanted.find((suite) => !(suite in SUITES));
  if (unknown !== undefined) throw new Error(`${unknown} is none of ${Object.keys(SUITES).join(", ")}`);
  if (process.getuid() !== 0) throw new Error("needs root, for debootstrap and chroot: run it with sudo");
  const node = await fetchNode(NODE);
  const project = await installed();
  let failed = 0;
  let first;
  console.log("| System | glibc | Outcome |\n|---|---|---|");
  for (const suite of wanted.length > 0 ? wanted : Object.keys(SUITES)) {
    const folder = join(work, suite);
    await (suite === "floor" ? makeFloorOf(folder, values.glibc) : unpackRoot(suite, folder));
    furnish(folder, node, project);
    const { outcome, detail, text, glibc } = JSON.parse((await inRoot(folder, "/node", "/app/host.mjs")).stdout);
    if (outcome === "answer") first ??= text;
    const isAsked = suite !== "floor" || values.glibc === undefined || glibc === FLOOR;
    const right = isAsked && outcome === SUITES[suite] && (outcome !== "answer" || (text.length > 10 && text === first));
    if (!right) failed++;
    console.log(`| ${suite} | ${glibc} | ${right ? "" : "FAILED: "}${outcome}: ${JSON.stringify(detail ?? text)} |`);
    if (suite === "floor" && values.glibc === undefined) console.log(`| | | not tried with glibc ${FLOOR}: that needs --glibc |`);
    rmSync(folder, { recursive: true });
  }
  console.log(`roots: ${failed} failed`);
  process.exitCode = failed > 0 ? 1 : 0;
}

/** A project with the packages, installed by npm. */
async function installed() {
  const out = join(work, "packed");
  const tarballs = await packAll(out);
  const cleanups = [];
  const registry = await serveTarballs({ after: (it) => cleanups.push(it) }, tarballs);
  const project = join(work, "app");
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), "{}");
  writeFileSync(join(project, "host.mjs"), HOST);
  const options = [`--registry=${registry}`, `--cache=${join(work, "cache")}`, "--no-audit", "--no-fund"];
  await run("npm", ["install", "fm-proxy", ...options], { cwd: project });
  cleanups.forEach((cleanup) => cleanup());
  return project;
}

/** Unpacks Debian's smallest system, which is made once and kept: all of it, or only the folder `part`. */
async function unpackRoot(suite, folder, part = "") {
  const kept = join(root, "build", "deps", "roots", `${suite}.tar`);
  if (!existsSync(kept)) {
    const made = join(work, `made-${suite}`);
    mkdirSync(join(root, "build", "deps", "roots"), { recursive: true });
    await run("debootstrap", ["--variant=minbase", suite, made, await mirror()], { maxBuffer: 1 << 26 });
    await run("tar", ["-C", made, "-cf", `${kept}.new`, "."]);
    renameSync(`${kept}.new`, kept);
    rmSync(made, { recursive: true });
  }
  mkdirSync(folder);
  await run("tar", ["-C", folder, "-xf", kept, `./${part}`]);
}

/** No Debian system has the libraries of the floor, so one is put together. */
async function makeFloorOf(folder, glibc) {
  const [older, newer, scratch] = ["floor-older", "floor-newer", "floor-scratch"].map((name) => join(work, name));
  await unpackRoot("bullseye", older, LIBRARIES);
  if (glibc === undefined) await unpackRoot("bookworm", newer, LIBRARIES);
  mkdirSync(scratch);
  const gcc = join(older, LIBRARIES, "libgcc_s.so.1");
  await makeFloor(folder, { glibc: glibc ?? join(newer, LIBRARIES), gcc, scratch });
  for (const each of [older, newer, scratch]) rmSync(each, { recursive: true, force: true });
}

/** Puts Node, a model and the project into a system, which must have no compiler. */
function furnish(folder, node, project) {
  for (const tool of ["gcc", "node", "cmake"]) {
    if (existsSync(join(folder, "usr", "bin", tool))) throw new Error(`${folder} is not bare: it has ${tool}`);
  }
  copyFileSync(node, join(folder, "node"));
  cpSync(project, join(folder, "app"), { recursive: true });
  cpSync(join(root, "build", "models"), join(folder, "models"), { recursive: true });
}

/** The Debian mirror that this machine uses. */
async function mirror() {
  const { stdout } = await run("apt-get", ["indextargets", "--format", "$(REPO_URI)", "Codename: bookworm", "Origin: Debian"]);
  const [first] = stdout.split("\n");
  if (!first) throw new Error("apt knows no mirror of Debian 12. Run apt-get update first");
  return first;
}

/** Runs a command there, with separate processes, mounts and network; the network is empty. */
async function inRoot(folder, ...command) {
  const script = 'mount -t proc proc "$1/proc"; mount --rbind /dev "$1/dev"; exec env -i HOME=/root "$(command -v chroot)" "$@"';
  const own = ["--mount", "--pid", "--net", "--fork", "--kill-child", "--propagation", "private"];
  return run("unshare", [...own, "sh", "-euc", script, "sh", folder, ...command], { timeout: 300_000 });
}

try {
  await main();
} catch (error) {
  console.error(`roots: ${error.stderr?.trim() || error.message}`);
  process.exitCode = 1;
} finally {
  rmSync(work, { recursive: true, force: true });
}
