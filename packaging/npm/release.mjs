// Makes a release out of a build: the tarballs, SHA256SUMS and the release's notes, in build/npm. packaging/RELEASE.md
// has the steps before and after that.
//
// usage: node packaging/npm/release.mjs [--only PLATFORM]... [--publish]
//        node packaging/npm/release.mjs --rehearse [--only PLATFORM]... [--nodes VERSIONS|all] [--managers NAMES] [--out FOLDER]
//   --only PLATFORM  such as linux-x64: makes only the package of this platform; may be given more than once
//   --publish        also publishes the packages: the platforms' first, and the main one when all of them can be had. Without
//                    it, the commands are printed
//   --rehearse       packs what is for this machine, publishes it to a registry that runs here for as long as that takes, and
//                    installs it from there as users do: rehearse.mjs. It changes nothing in build/npm
//   --nodes          with which Node it is used then, such as 22.20.0,24.19.0; all: 20, 22 and 24 (default: the present one)
//   --managers       by which package managers, such as npm,pnpm (default: all)
//   --out FOLDER     where the packages of a rehearsal stay (default: nowhere)
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { readArguments } from "../arguments.mjs";
import { publishAll, publishOptions } from "./publish.mjs";
import { writeSums } from "./sums.mjs";
import { tarballsOf } from "./tarballs.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const out = join(root, "build", "npm");
const text = { type: "string" };
const flag = { type: "boolean", default: false };
const only = { ...text, multiple: true, default: [] };
const USAGE = `usage: node packaging/npm/release.mjs [--only PLATFORM]... [--publish]
       node packaging/npm/release.mjs --rehearse [--only PLATFORM]... [--nodes VERSIONS|all] [--managers NAMES] [--out FOLDER]`;
const values = readArguments({ publish: flag, rehearse: flag, only, nodes: text, managers: text, out: text }, USAGE);
const main = JSON.parse(readFileSync(join(root, "js-shim", "package.json"), "utf8"));
const { version } = main;
/** The option for npm to publish a build service's attestation. Elsewhere npm refuses this option. */
const PROVENANCE = process.env.ACTIONS_ID_TOKEN_REQUEST_URL ? ["--provenance"] : [];
const ACCESS = [...publishOptions(version), ...PROVENANCE];

try {
  const notes = notesOf(version);
  checkTree();
  checkOrigin();
  checkPage();
  await (values.rehearse ? rehearse() : release(notes));
} catch (error) {
  console.error(`release: ${error.stderr?.toString().trim() || error.message}`);
  process.exit(1);
}

async function release(notes) {
  process.stdout.write(pack(["--all", ...platforms(values.only)]));
  const tarballs = tarballsOf(out, version);
  const sums = writeSums();
  writeFileSync(join(out, "NOTES.md"), notes);
  console.log(`${sums}\nbuild/npm has the tarballs, SHA256SUMS and NOTES.md of ${version}.`);
  if (values.publish) await publishAll(tarballs.map((name) => join(out, name)), ACCESS);
  else for (const name of tarballs) console.log(`npm publish ${ACCESS.join(" ")} build/npm/${name}`);
}

async function rehearse() {
  const { checkRehearsal, rehearseInstalls } = await import("./rehearse.mjs");
  const [nodes, managers] = [values.nodes, values.managers].map((list) => list?.split(","));
  checkRehearsal(managers);
  const work = mkdtempSync(join(tmpdir(), "fm-release-"));
  try {
    const folder = resolve(values.out ?? work);
    const wanted = values.only.length > 0 ? values.only : [`${process.platform}-${process.arch}`];
    const told = pack([...platforms(wanted), "--out", folder]);
    if (values.out !== undefined) process.stdout.write(told);
    const tarballs = tarballsOf(folder, version).map((name) => join(folder, name));
    const failed = await rehearseInstalls({ tarballs, nodes, managers });
    process.exitCode = failed > 0 ? 1 : 0;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function pack(options) {
  return run(process.execPath, [join(root, "packaging", "npm", "pack.mjs"), ...options]);
}

function platforms(ids) {
  return ids.flatMap((id) => ["--only", id]);
}

/** The part of CHANGELOG.md that is about the version. */
function notesOf(name) {
  const sections = readFileSync(join(root, "CHANGELOG.md"), "utf8").split(/^## /m).slice(1);
  const found = sections.find((section) => section.split(/[\s,]/)[0] === name);
  if (found === undefined) throw new Error(`CHANGELOG.md has no section "## ${name}": write what users should know`);
  const [heading] = found.split("\n", 1);
  if (/not released/i.test(heading)) refuse(`CHANGELOG.md still says "## ${heading}": write the date of the release there`);
  return found.slice(found.indexOf("\n")).trim() + "\n";
}

/** Refuses changes that are not committed: only what is committed is published. */
function checkTree() {
  const changed = run("git", ["status", "--porcelain"]).trim();
  if (changed !== "") refuse(`there are changes that are not committed:\n${changed}`);
}

/**
 * Checks the package's repository. npm's page of the package shows it, and `npm publish --provenance` compares it with the
 * repository of the build.
 */
function checkOrigin() {
  const missing = ["repository", "homepage", "bugs", "keywords"].filter((field) => main[field] === undefined);
  if (missing.length === 0) return;
  refuse(`js-shim/package.json has no ${missing.join(", ")}: packaging/RELEASE.md, "Once", has the command that sets it`);
}

/** The page that npm shows. */
function checkPage() {
  const page = readFileSync(join(root, "js-shim", "README.md"), "utf8");
  if (/in a registry\s+yet/.test(page)) {
    refuse(`js-shim/README.md says that there is no package in a registry: packaging/RELEASE.md, "Once", says what to write`);
  }
}

/** Stops a run with --publish. Without --publish, only prints a warning. */
function refuse(why) {
  if (values.publish) throw new Error(why);
  console.error(`release: --publish would refuse this: ${why}`);
}

function run(command, args) {
  return execFileSync(command, args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}
