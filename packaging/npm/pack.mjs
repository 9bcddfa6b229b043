// Packs the npm packages: the one of this platform, with the programs and all that they load, and the main one, which names
// it. The programs come from build/, as `sh packaging/setup.sh` left them.
//
// usage: node packaging/npm/pack.mjs [--out FOLDER]
//   --out FOLDER  where the two tarballs go (default: build/npm); it is emptied first
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { billOfMaterials } from "./sbom.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const build = join(root, "build");

/** The versions of the C and C++ libraries that users need at least: Debian 12, Ubuntu 22.04, Fedora 36. */
const FLOORS = { GLIBC: "2.34", GLIBCXX: "3.4.30", CXXABI: "1.3.13" };
/** Those that each system with the C library has, apart from libstdc++. */
const SYSTEM = /^(lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+)\.so\.\d+|ld-linux.*)$/;

const PLATFORM = { os: "linux", cpu: "x64", libc: "glibc" };
const NAME = `@fm-proxy/${PLATFORM.os}-${PLATFORM.cpu}`;

const { values } = parseArgs({ options: { out: { type: "string", default: join(build, "npm") } } });
const out = resolve(values.out);
const { version, license, engines } = readJson(join(root, "js-shim", "package.json"));

try {
  rmSync(out, { recursive: true, force: true });
  packPlatform(join(out, "platform"));
  packMain(join(out, "main"));
} catch (error) {
  console.error(`pack: ${error.stderr?.toString().trim() || error.message}`);
  process.exit(1);
}

function packPlatform(folder) {
  for (const program of ["fm-proxy", "fm-engine-llama"]) {
    if (!existsSync(join(build, "bin", program))) {
      throw new Error(`build/bin/${program} is missing. Run \`sh packaging/setup.sh\` first`);
    }
  }
  run("cmake", ["--install", build, "--prefix", folder, "--strip"]);
  const files = filesBelow(folder);
  files.filter(isElf).forEach((file) => checkElf(folder, file));
  checkVersion(folder);
  for (const name of ["LICENSE", "THIRD-PARTY-NOTICES"]) cpSync(join(root, name), join(folder, name));
  cpSync(join(root, "packaging", "npm", "README.platform.md"), join(folder, "README.md"));
  writeJson(join(folder, "sbom.cdx.json"), billOfMaterials(root, NAME, version));
  writeJson(join(folder, "package.json"), {
    name: NAME,
    version,
    description: `The programs of fm-proxy for ${PLATFORM.os} on ${PLATFORM.cpu}`,
    license,
    os: [PLATFORM.os],
    cpu: [PLATFORM.cpu],
    libc: [PLATFORM.libc],
    engines,
    preferUnplugged: true,
  });
  writeJson(join(folder, "manifest.json"), manifestOf(folder));
  pack(folder);
}

/** What a copy is checked against, and what the programs need. */
function manifestOf(folder) {
  const files = filesBelow(folder).map((path) => {
    const bytes = readFileSync(join(folder, path));
    return { path, size: bytes.length, sha256: createHash("sha256").update(bytes).digest("hex") };
  });
  return { name: NAME, version, type: "cli", ...PLATFORM, floors: FLOORS, files };
}

/** The package of js-shim, with the platforms' packages of exactly its version. */
function packMain(folder) {
  mkdirSync(folder, { recursive: true });
  run("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", folder], join(root, "js-shim"));
  const tarball = join(folder, `fm-proxy-${version}.tgz`);
  run("tar", ["-xzf", tarball, "--strip-components=1"], folder);
  rmSync(tarball);
  const path = join(folder, "package.json");
  const { scripts: _, devDependencies: __, ...rest } = readJson(path);
  writeJson(path, { ...rest, optionalDependencies: { [NAME]: version } });
  pack(folder);
}

function pack(folder) {
  run("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", out], folder);
}

/** A program or library must run on each system that the floors name, wherever it lies. */
function checkElf(folder, file) {
  const path = join(folder, file);
  const dynamic = run("readelf", ["-d", path]);
  const names = [...dynamic.matchAll(/\(NEEDED\).*\[(.*)\]/g)].map(([, name]) => name);
  const strange = names.filter((name) => !SYSTEM.test(name) && !existsSync(join(dirname(path), name)));
  if (strange.length) throw new Error(`${file} needs ${strange.join(", ")}, which is not in the package`);
  const paths = [...dynamic.matchAll(/\((?:RUNPATH|RPATH)\).*\[(.*)\]/g)].map(([, value]) => value);
  if (paths.some((value) => value !== "$ORIGIN")) throw new Error(`${file} looks for libraries in ${paths.join(", ")}`);
  for (const [, symbol, found] of run("readelf", ["-V", path]).matchAll(/Name: ([A-Z]+)_([0-9.]+)/g)) {
    const floor = FLOORS[symbol];
    if (floor !== undefined && compare(found, floor) > 0) {
      throw new Error(`${file} needs ${symbol} ${found}; the packages promise ${floor}`);
    }
  }
  if (readFileSync(path).includes(root)) throw new Error(`${file} has the path of this checkout in it`);
}

function checkVersion(folder) {
  const told = run(join(folder, "bin", "fm-proxy"), ["--version"]).trim();
  if (!told.includes(version)) throw new Error(`the helper is "${told}", js-shim/package.json says ${version}`);
}

function compare(a, b) {
  const [left, right] = [a, b].map((text) => text.split(".").map(Number));
  for (let i = 0; i < Math.max(left.length, right.length); i++) {
    if ((left[i] ?? 0) !== (right[i] ?? 0)) return (left[i] ?? 0) - (right[i] ?? 0);
  }
  return 0;
}

function isElf(file) {
  return /(^|\/)(fm-[a-z-]+|.*\.so[.0-9v]*)$/.test(file);
}

function filesBelow(folder) {
  const names = readdirSync(folder, { recursive: true }).map(String);
  return names.filter((name) => statSync(join(folder, name)).isFile()).sort();
}

function readJson(path) {
  return JSON.parse(readFileSync(path, "utf8"));
}

function writeJson(path, value) {
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`);
}

function run(command, args, cwd = root) {
  return execFileSync(command, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], maxBuffer: 1 << 26 });
}
