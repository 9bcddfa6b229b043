// Tests the package for macOS on this machine: it is packed, installed by npm as on a Mac, and found by the package of
// js-shim. This machine can't run the programs.
//
// usage: node tests/js/macos.mjs       (after sh packaging/macos.sh)
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { promisify } from "node:util";
import { checkMachO, MACOS_FLOOR } from "../../packaging/npm/macho.mjs";
import { temporaryFolder } from "./support/helper.mjs";
import { packAll, serveTarballs } from "./support/registry.mjs";

const run = promisify(execFile);
const cleanups = [];
const scope = { after: (cleanup) => cleanups.unshift(cleanup) };
const ENGINES = ["apple", "llama", "remote"].map((name) => `fm-engine-${name}`);
const PROGRAMS = ["fm-proxy", ...ENGINES];
const FILES = ["Info.plist", ...PROGRAMS.map((name) => `MacOS/${name}`), ...ENGINES.map((name) => `Resources/${name}.json`)];
/** Apple's library and its licence: the app of a release has both (docs/apple.md). */
const LIBRARY = "Frameworks/libFoundationModels.dylib";
const LICENCE = "Resources/FoundationModels-LICENSE.md";

async function main() {
  const project = await install();
  const folder = join(project, "node_modules", "@fm-proxy", "darwin-arm64");
  const contents = join(folder, "fm-proxy.app", "Contents");
  checkFiles(folder, contents);
  console.log(`${checkMachO(contents)} programs and libraries`);
  for (const program of PROGRAMS) {
    assert.ok(statSync(join(contents, "MacOS", program)).mode & 0o100, `${program} has lost its permission`);
  }
  await isFound(project, join(contents, "MacOS", "fm-proxy"));
}

/** A project with the packages, installed by npm as on a Mac. */
async function install() {
  const tarballs = await packAll(join(temporaryFolder(scope), "npm"));
  const project = temporaryFolder(scope);
  writeFileSync(join(project, "package.json"), "{}");
  const registry = await serveTarballs(scope, tarballs);
  const options = [`--registry=${registry}`, `--cache=${join(project, ".npm")}`, "--no-audit", "--no-fund"];
  await run("npm", ["install", "fm-proxy", "--os=darwin", "--cpu=arm64", ...options], { cwd: project });
  assert.deepEqual(readdirSync(join(project, "node_modules", "@fm-proxy")), ["darwin-arm64"]);
  return project;
}

/** Checks that all required files are in their places, and that the manifest agrees with them. */
function checkFiles(folder, contents) {
  const names = readdirSync(contents, { recursive: true }).map(String);
  const files = names.filter((name) => statSync(join(contents, name)).isFile());
  const expected = files.includes(LIBRARY) ? [...FILES, LICENCE] : FILES;
  if (!files.includes(LIBRARY)) console.log("without Apple's library: not for a release");
  assert.deepEqual(files.filter((name) => !name.startsWith("Frameworks/")).sort(), expected.sort());
  assert.ok(files.some((name) => name.startsWith("Frameworks/libllama.")), files.join(" "));
  const manifest = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8"));
  assert.deepEqual([manifest.type, manifest.floors], ["app-bundle", { macOS: MACOS_FLOOR }]);
  for (const { path, size, sha256 } of manifest.files) {
    const bytes = readFileSync(join(folder, path));
    assert.deepEqual([path, size, sha256], [path, bytes.length, createHash("sha256").update(bytes).digest("hex")]);
  }
  const told = new Set(manifest.files.map(({ path }) => path));
  for (const name of files) assert.ok(told.has(`fm-proxy.app/Contents/${name}`), `the manifest lacks ${name}`);
}

/** The doctor tries to start the program that it finds; this machine refuses, and the error names the program. */
async function isFound(project, program) {
  Object.defineProperty(process, "platform", { value: "darwin" });
  Object.defineProperty(process, "arch", { value: "arm64" });
  const { createClient } = createRequire(join(project, "host.cjs"))("fm-proxy");
  const client = createClient();
  const { compatible, reason_code, detail } = await client.compatibility.check();
  await client.close();
  assert.deepEqual([compatible, reason_code], [false, "SPAWN_FAILED"]);
  assert.ok(detail.includes(program), detail);
  console.log(`found: ${detail}`);
}

try {
  await main();
  console.log("darwin-arm64 ok");
} finally {
  for (const cleanup of cleanups) await cleanup();
}
