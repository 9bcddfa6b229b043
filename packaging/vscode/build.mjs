#!/usr/bin/env node
// Makes a VSIX of the extension: for one platform, with the platform's package, or for all platforms, without any package.
//
// usage: node packaging/vscode/build.mjs [--target TARGET --platform-package FOLDER] [--out FOLDER]
//   --target TARGET            the platform, as VS Code names it: linux-x64, linux-arm64, darwin-arm64, win32-x64
//   --platform-package FOLDER  the npm package @fm-proxy/TARGET: package.json, and bin/ with fm-proxy, fm-engine-llama,
//                              its description fm-engine-llama.json and the libraries. packaging/npm makes it
//   --out FOLDER               where the VSIX goes (default: build/vscode)
//
// Needs `npm ci` in this folder, and `npm ci` and `npm run build` in js-shim. With the same inputs, two VSIX of the same commit
// are the same to the last byte.
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { bundle, here, jsShim, typeCheck } from "./bundle.mjs";

const root = join(here, "..", "..");
/** The program of a platform's package: the package has one of these files. */
const PROGRAMS = ["bin/fm-proxy", "bin/fm-proxy.exe", "fm-proxy.app/Contents/MacOS/fm-proxy"];
const RUNS = 0o111;

/** Makes the VSIX, and returns its path. */
export async function build({ target, platformPackage, out = join(root, "build", "vscode") }) {
  if ((target === undefined) !== (platformPackage === undefined)) {
    throw new Error("--target and --platform-package belong together. Give both, or none for a VSIX without a helper.");
  }
  const wrong = typeCheck();
  if (wrong !== "") throw new Error(`The code does not compile:\n${wrong}`);
  const { createVSIX } = vsce();
  const manifest = JSON.parse(readFileSync(join(here, "package.json"), "utf8"));
  const stage = join(out, `stage-${target ?? "universal"}`);
  rmSync(stage, { recursive: true, force: true });
  mkdirSync(join(stage, "dist"), { recursive: true });
  writeFileSync(join(stage, "dist", "extension.js"), bundle());
  cpSync(join(jsShim, "dist", "THIRD-PARTY-NOTICES"), join(stage, "THIRD-PARTY-NOTICES"));
  cpSync(join(here, "icon.png"), join(stage, "icon.png"));
  writeFileSync(join(stage, "README.md"), withoutPictures(readFileSync(join(here, "README.md"), "utf8")));
  cpSync(join(root, "LICENSE"), join(stage, "LICENSE"));
  const brought = target === undefined ? {} : addPlatform(stage, target, resolve(platformPackage));
  const { devDependencies, private: _, ...published } = manifest;
  writeFileSync(join(stage, "package.json"), `${JSON.stringify({ ...published, dependencies: brought }, null, 2)}\n`);
  const packagePath = join(out, `fm-proxy-${target === undefined ? "" : `${target}-`}${manifest.version}.vsix`);
  // Sets the files' permissions and times in the archive, so that the archive depends only on the commit.
  for (const path of filesOf(stage)) chmodSync(path, (statSync(path).mode & RUNS) === 0 ? 0o644 : 0o755);
  process.env.SOURCE_DATE_EPOCH ??= commitTime();
  const dependencies = target !== undefined;
  const more = target === undefined ? {} : { target };
  await createVSIX({ cwd: stage, packagePath, dependencies, allowMissingRepository: true, ...more });
  checkModes(stage, packagePath);
  return packagePath;
}

/** Removes pictures from the README. VS Code shows only pictures with a web address, and the repository has none yet. */
const withoutPictures = (markdown) => markdown.replace(/^!\[.*\n\n/gm, "");

/** Copies the platform's package to where the bundle finds it; returns it as a dependency of the extension. */
function addPlatform(stage, target, folder) {
  const file = join(folder, "package.json");
  const wanted = `@fm-proxy/${target}`;
  if (!existsSync(file)) throw new Error(`${file} is missing. --platform-package must be the folder of the package ${wanted}.`);
  const { name, version } = JSON.parse(readFileSync(file, "utf8"));
  if (name !== wanted) throw new Error(`${file} is of ${name}, not of ${wanted}. Give the package of the target.`);
  const program = PROGRAMS.find((path) => existsSync(join(folder, path)));
  if (program === undefined) throw new Error(`${folder} has none of ${PROGRAMS.join(", ")}. Build the platform's package again.`);
  if (!program.endsWith(".exe") && (statSync(join(folder, program)).mode & RUNS) === 0) {
    throw new Error(`${join(folder, program)} is not executable. Build the platform's package again, or chmod +x it.`);
  }
  const copy = join(stage, "node_modules", name);
  // A VSIX can't have links.
  cpSync(folder, copy, { recursive: true, dereference: true });
  return { [name]: version };
}

/** Checks the programs' permissions in the archive. A program without its permission would not start. */
function checkModes(stage, archive) {
  const modes = modesOf(archive);
  for (const path of filesOf(join(stage, "node_modules"))) {
    const name = `extension${path.slice(stage.length).replaceAll("\\", "/")}`;
    const mode = modes.get(name);
    if (mode === undefined) throw new Error(`${archive} has no ${name}. Look at the ignore list of vsce.`);
    if ((mode & RUNS) !== (statSync(path).mode & RUNS)) throw new Error(`${name} lost its permission to run in ${archive}.`);
  }
}

/** The permissions of each file in a ZIP archive, from its central directory. */
export function modesOf(archive) {
  const bytes = readFileSync(archive);
  const end = bytes.lastIndexOf(Buffer.from("PK\x05\x06"));
  const modes = new Map();
  let at = bytes.readUInt32LE(end + 16);
  for (let left = bytes.readUInt16LE(end + 10); left > 0; left--) {
    const [name, extra, comment] = [28, 30, 32].map((offset) => bytes.readUInt16LE(at + offset));
    modes.set(bytes.toString("utf8", at + 46, at + 46 + name), bytes.readUInt32LE(at + 38) >>> 16);
    at += 46 + name + extra + comment;
  }
  return modes;
}

function filesOf(folder) {
  if (!existsSync(folder)) return [];
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath ?? entry.path, entry.name));
}

function vsce() {
  try {
    return createRequire(join(here, "package.json"))("@vscode/vsce");
  } catch (error) {
    throw new Error(`The packager is missing. Run npm ci in ${here}, then try again.`, { cause: error });
  }
}

function commitTime() {
  return execFileSync("git", ["log", "-1", "--format=%ct"], { cwd: root, encoding: "utf8" }).trim();
}

async function main() {
  const string = { type: "string" };
  const { values } = parseArgs({ options: { target: string, "platform-package": string, out: string } });
  const { target, "platform-package": platformPackage, out } = values;
  const path = await build({ target, platformPackage, ...(out === undefined ? {} : { out: resolve(out) }) });
  console.log(`${path}: ${statSync(path).size} bytes`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  main().catch((error) => {
    console.error(error.message);
    process.exitCode = 1;
  });
}
