// Makes a release out of a build: the tarballs, SHA256SUMS and the release's notes, in build/npm. packaging/RELEASE.md tells
// what comes before and after.
//
// usage: node packaging/npm/release.mjs [--publish]
//   --publish  also publishes the packages: the platforms' first, and the main one when all of them can be had. Without it,
//              the commands are printed
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { writeSums } from "./sums.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const out = join(root, "build", "npm");
const { values } = parseArgs({ options: { publish: { type: "boolean", default: false } } });
const { version } = JSON.parse(readFileSync(join(root, "js-shim", "package.json"), "utf8"));
/** Where a build service vouches for what it builds, npm passes that on; elsewhere it refuses to. */
const PROVENANCE = process.env.ACTIONS_ID_TOKEN_REQUEST_URL ? ["--provenance"] : [];
/** A version such as 2.0.0-rc.1 is for those who ask for it. */
const TAG = version.includes("-") ? ["--tag", "next"] : [];
const ACCESS = ["--access", "public", ...TAG, ...PROVENANCE];
/** How long a package may take until the registry has it: 60 times 5 s. */
const TRIES = 60;
const PAUSE_MS = 5000;

try {
  const notes = notesOf(version);
  checkTree();
  process.stdout.write(run(process.execPath, [join(root, "packaging", "npm", "pack.mjs"), "--all"]));
  const tarballs = readdirSync(out).filter((name) => name.endsWith(".tgz")).sort();
  const sums = writeSums();
  writeFileSync(join(out, "NOTES.md"), notes);
  console.log(`${sums}\nbuild/npm has the tarballs, SHA256SUMS and NOTES.md of ${version}.`);
  await publish(tarballs);
} catch (error) {
  console.error(`release: ${error.stderr?.toString().trim() || error.message}`);
  process.exit(1);
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

/** What is published is what is committed. */
function checkTree() {
  const changed = run("git", ["status", "--porcelain"]).trim();
  if (changed !== "") refuse(`there are changes that are not committed:\n${changed}`);
}

/** Ends what would be published; a trial goes on. */
function refuse(why) {
  if (values.publish) throw new Error(why);
  console.error(`release: --publish would refuse this: ${why}`);
}

async function publish(tarballs) {
  const isMain = (name) => /^fm-proxy-\d/.test(name);
  const platforms = tarballs.filter((name) => !isMain(name));
  const main = tarballs.filter(isMain);
  if (!values.publish) {
    for (const name of [...platforms, ...main]) console.log(`npm publish ${ACCESS.join(" ")} build/npm/${name}`);
    return;
  }
  platforms.forEach(publishOne);
  for (const name of platforms) await waitFor(packageOf(name));
  main.forEach(publishOne);
}

function publishOne(name) {
  run("npm", ["publish", ...ACCESS, join(out, name)], "inherit");
}

/** Some package managers fail on an optional package that is not there yet. */
async function waitFor(name) {
  for (let tries = 0; tries < TRIES; tries++) {
    try {
      if (run("npm", ["view", `${name}@${version}`, "version"]).trim() === version) return;
    } catch {
      // Not there yet.
    }
    await sleep(PAUSE_MS);
  }
  throw new Error(`the registry does not have ${name} ${version} yet. When it does, publish the main package by hand`);
}

function packageOf(tarball) {
  return JSON.parse(run("tar", ["-xzOf", join(out, tarball), "package/package.json"])).name;
}

function run(command, args, stdio = ["ignore", "pipe", "pipe"]) {
  return execFileSync(command, args, { cwd: root, encoding: "utf8", stdio }) ?? "";
}
