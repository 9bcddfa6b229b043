// Packs the npm packages: one for each platform, with the programs and everything that they load, and the main package, which
// depends on them. The programs come from build/, as `sh packaging/setup.sh` left them. A platform that was not built is left
// out.
//
// usage: node packaging/npm/pack.mjs [--all] [--only PLATFORM]... [--out FOLDER]
//   --all            a platform that was not built is an error
//   --only PLATFORM  such as linux-x64: packs this platform and no other; may be given more than once. The main package names
//                    what is packed. Packages of other platforms stay where they are
//   --out FOLDER     where the tarballs go, and beside them a folder with the files of each (default: build/npm). What is there
//                    is replaced when all is packed
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { readArguments } from "../arguments.mjs";
import { faultOf, MACOS_FLOOR } from "./macho.mjs";
import { billOfMaterials } from "./sbom.mjs";
import { tarballOf } from "./tarballs.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const build = join(root, "build");

/** The versions of the C and C++ libraries that users need at least: RHEL 9, Debian 12, Ubuntu 22.04. */
const FLOORS = { GLIBC: "2.34", GLIBCXX: "3.4.29", CXXABI: "1.3.13" };
/** The libraries that each system with the C library has, and libstdc++. */
const SYSTEM = /^(lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+)\.so\.\d+|ld-linux.*)$/;

/** The DLLs that Windows itself has: those that are linked by name, and the API sets of the newer C library. */
const WINDOWS = /^((advapi32|bcrypt|bcryptprimitives|kernel32|msvcrt|ntdll|shell32|userenv|ws2_32)|api-ms-win-[a-z0-9-]+)\.dll$/i;

/** The app for macOS, and Apple's files in the app of a release: packaging/macos.sh puts them there. */
const CONTENTS = join(build, "macos", "app", "fm-proxy.app", "Contents");
const APPLE = ["Frameworks/libFoundationModels.dylib", "Resources/FoundationModels-LICENSE.md"];
const lackingOfApple = APPLE.filter((file) => !existsSync(join(CONTENTS, file)));

/** The programs of each platform. */
const PROGRAMS = ["fm-proxy", "fm-engine-llama"];

/** The contents of each platform's package, and the most bytes that it may have. */
const PLATFORMS = [
  {
    // The platform, as npm names it.
    is: { os: "linux", cpu: "x64", libc: "glibc" },
    build,
    // llama.cpp's libraries in packaging/pins.
    pin: "llama-lib",
    // The command that runs its programs on this machine.
    runner: [],
    setup: "sh packaging/setup.sh",
    most: { unpacked: 42e6, packed: 16e6 },
  },
  {
    is: { os: "linux", cpu: "arm64", libc: "glibc" },
    build: join(build, "arm64"),
    pin: "llama-lib-arm64",
    runner: ["qemu-aarch64"],
    setup: "sh packaging/setup.sh --arm64",
    most: { unpacked: 34e6, packed: 14e6 },
  },
  {
    is: { os: "win32", cpu: "x64" },
    build: join(build, "windows"),
    // llama.cpp's libraries are built too.
    pin: "llama-src",
    archives: join(build, "deps", "static", "windows", "lib", "pkgconfig"),
    // The libraries that gcc links in: the C library with its threads, libgcc and libstdc++.
    runtime: ["mingw-w64-x86-64-dev", "gcc-mingw-w64-x86-64-posix", "g++-mingw-w64-x86-64-posix"],
    // Uses wine's folder that packaging/windows.sh made. Otherwise wine makes another one, of 700 MB, in the user's home.
    runner: ["env", `WINEPREFIX=${process.env.WINEPREFIX ?? join(build, "windows", "wine")}`, "WINEDEBUG=-all", "wine"],
    setup: "sh packaging/windows.sh",
    most: { unpacked: 55e6, packed: 15e6 },
    suffix: ".exe",
    floors: { Windows: "10.0" },
    isBinary: (file) => /\.(exe|dll)$/.test(file),
    check: checkPe,
  },
  {
    is: { os: "darwin", cpu: "arm64" },
    build: join(build, "macos"),
    pin: "llama-lib-macos",
    source: "llama-src-macos",
    // zig links its libc++ into the programs.
    compiler: "zig",
    archives: join(build, "deps", "static", "macos", "lib", "pkgconfig"),
    setup: "sh packaging/macos.sh",
    most: { unpacked: 34e6, packed: 13e6 },
    others: lackingOfApple.length === 0 ? [["apple/python-apple-fm-sdk", "0.2.1"]] : [],
    type: "app-bundle",
    floors: { macOS: MACOS_FLOOR },
    install: copyApp,
    checkBuild: checkApp,
    isBinary: (file) => /\/Contents\/(MacOS|Frameworks)\//.test(file),
    check: checkMacFile,
    tellVersion: versionOfApp,
    // The package can be signed only on a Mac. It is not published without a signature.
    mayLack: true,
    folder: "fm-proxy.app/Contents/MacOS",
    programs: [...PROGRAMS, "fm-engine-apple"],
  },
].map((platform) => ({
  suffix: "",
  programs: PROGRAMS,
  // The folder of the programs in the package.
  folder: "bin",
  type: "cli",
  source: "llama-src",
  install: installByCmake,
  // Called before any package is made.
  checkBuild: () => {},
  tellVersion: versionOfProgram,
  floors: FLOORS,
  isBinary: isElf,
  check: checkElf,
  ...platform,
  id: `${platform.is.os}-${platform.is.cpu}`,
  name: `@fm-proxy/${platform.is.os}-${platform.is.cpu}`,
}));

const USAGE = "usage: node packaging/npm/pack.mjs [--all] [--only PLATFORM]... [--out FOLDER]";
const OPTIONS = {
  all: { type: "boolean", default: false },
  only: { type: "string", multiple: true, default: [] },
  out: { type: "string", default: join(build, "npm") },
};
const values = readArguments(OPTIONS, USAGE, checkPlatforms);
const out = resolve(values.out);
/** The folder where the packages are made. A killed run may have left it. */
const making = `${out}.new`;
const { version, license, engines, repository, homepage, bugs, keywords } = readJson(join(root, "js-shim", "package.json"));

function checkPlatforms({ only }) {
  const unknown = only.find((id) => !PLATFORMS.some((platform) => platform.id === id));
  if (unknown === undefined) return;
  throw new Error(`there is no platform '${unknown}'. There are: ${PLATFORMS.map(({ id }) => id).join(", ")}`);
}

try {
  const built = PLATFORMS.filter(({ id }) => values.only.length === 0 || values.only.includes(id)).filter(isBuilt);
  if (built.length === 0) throw new Error("nothing is built. Run `sh packaging/setup.sh` first");
  built.forEach((platform) => platform.checkBuild(platform));
  rmSync(making, { recursive: true, force: true });
  const packed = [...built.map(packPlatform), packMain(built, join(making, "main"))];
  replace();
  tell(built, packed);
} catch (error) {
  console.error(`pack: ${error.stderr?.toString().trim() || error.message}`);
  process.exitCode = 1;
} finally {
  rmSync(making, { recursive: true, force: true });
}

/** Replaces the old packages with the new ones. Removes files that no longer fit the new ones. */
function replace() {
  mkdirSync(out, { recursive: true });
  const made = readdirSync(making);
  for (const name of made) {
    rmSync(join(out, name), { recursive: true, force: true });
    renameSync(join(making, name), join(out, name));
  }
  const isPackage = (name) => /^fm-proxy-.*\.tgz$/.test(name) || PLATFORMS.some(({ id }) => id === name);
  const isStale = (name) => /^(SHA256SUMS(\.sig)?|NOTES\.md)$/.test(name) || (values.only.length === 0 && isPackage(name));
  const stale = readdirSync(out).filter((name) => !made.includes(name) && isStale(name));
  for (const name of stale) rmSync(join(out, name), { recursive: true });
}

/** Prints what was written. If this machine's platform was packed, also prints the command that installs the packages. */
function tell(platforms, packed) {
  const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
  console.log(`${out} has:`);
  for (const { name, sizes } of packed) {
    console.log(`  ${tarballOf(name, version)}, ${megabytes(sizes.packed)}, installed ${megabytes(sizes.unpacked)}`);
  }
  const shown = platforms.find(({ id }) => id === `${process.platform}-${process.arch}`) ?? platforms[0];
  const paths = ["fm-proxy", shown.name].map((name) => join(out, tarballOf(name, version)));
  console.log(`To try them, run in an application's folder: npm install ${paths.join(" ")}`);
}

/**
 * Whether the platform's programs exist. If only some are missing, that is an error. If all are missing, that is an error with
 * --only, and with --all unless `mayLack` is true.
 */
function isBuilt({ name, build, programs, setup, suffix, mayLack }) {
  const missing = programs.map((program) => join(build, "bin", program + suffix)).filter((it) => !existsSync(it));
  if (missing.length === 0) return true;
  if (missing.length === programs.length && values.only.length === 0 && (mayLack || !values.all)) {
    if (values.all) console.log(`${name} is left out: it was not built`);
    return false;
  }
  throw new Error(`${name} lacks ${missing.join(" and ")}. Run \`${setup}\` first`);
}

function packPlatform(platform) {
  const { id, name, is, most } = platform;
  const folder = join(making, id);
  platform.install(platform, folder);
  checkPrograms(platform, folder);
  filesBelow(folder).filter(platform.isBinary).forEach((file) => platform.check(folder, file));
  checkVersion(platform, folder);
  for (const file of ["LICENSE", "THIRD-PARTY-NOTICES"]) cpSync(join(root, file), join(folder, file));
  cpSync(join(root, "packaging", "npm", "README.platform.md"), join(folder, "README.md"));
  writeJson(join(folder, "sbom.cdx.json"), billOfMaterials(root, { ...platform, version }));
  writeJson(join(folder, "package.json"), {
    name,
    version,
    description: `The programs of fm-proxy for ${is.os} on ${is.cpu}`,
    license,
    ...whereItIsFrom(),
    os: [is.os],
    cpu: [is.cpu],
    ...(is.libc === undefined ? {} : { libc: [is.libc] }),
    engines,
    preferUnplugged: true,
  });
  writeJson(join(folder, "manifest.json"), manifestOf(platform, folder));
  const sizes = pack(folder);
  checkSizes(name, most, sizes);
  return { name, sizes };
}

/** The fields for the package's page. A service that attests a build compares the repository's address with its own. */
function whereItIsFrom() {
  const { directory: _, ...rest } = repository ?? {};
  return { ...(repository && { repository: rest }), ...(homepage && { homepage }), ...(bugs && { bugs }), keywords };
}

/** Writes the list of files, against which a copy is checked, and the requirements of the programs. */
function manifestOf({ name, is, type, floors }, folder) {
  const files = filesBelow(folder).map((path) => {
    const bytes = readFileSync(join(folder, path));
    return { path, size: bytes.length, sha256: createHash("sha256").update(bytes).digest("hex") };
  });
  return { name, version, type, ...is, floors, files };
}

/** The package of js-shim, with the platforms' packages of exactly its version. */
function packMain(platforms, folder) {
  mkdirSync(folder, { recursive: true });
  run("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", folder], join(root, "js-shim"));
  const tarball = join(folder, tarballOf("fm-proxy", version));
  run("tar", ["-xzf", tarball, "--strip-components=1"], folder);
  rmSync(tarball);
  const path = join(folder, "package.json");
  const { scripts: _, devDependencies: __, ...rest } = readJson(path);
  writeJson(path, { ...rest, optionalDependencies: Object.fromEntries(platforms.map(({ name }) => [name, version])) });
  return { name: rest.name, sizes: pack(folder) };
}

/** Makes the tarball of a folder; returns its sizes, as npm counts them. Permissions do not depend on this machine. */
function pack(folder) {
  for (const file of filesBelow(folder).map((name) => join(folder, name))) {
    chmodSync(file, (statSync(file).mode & 0o111) === 0 ? 0o644 : 0o755);
  }
  const [told] = JSON.parse(run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", making], folder));
  return { unpacked: told.unpackedSize, packed: told.size };
}

function checkSizes(name, most, sizes) {
  for (const [what, bytes] of Object.entries(sizes)) {
    if (bytes > most[what]) throw new Error(`${name} has ${bytes} bytes ${what}; it may have ${most[what]}`);
  }
}

/** Checks that all programs were installed. A build that was set up again may have old programs, but not install them. */
function checkPrograms({ name, folder: place, programs, suffix, setup }, folder) {
  const missing = programs.map((program) => `${place}/${program}${suffix}`).filter((it) => !existsSync(join(folder, it)));
  if (missing.length > 0) throw new Error(`${name} lacks ${missing.join(" and ")}. Run \`${setup}\` first`);
}

/** Checks that a program or library runs on each system that the floors name, in any folder. */
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
  checkPaths(folder, file);
}

/** The same check for Windows. Windows first looks for a DLL beside the program. */
function checkPe(folder, file) {
  const path = join(folder, file);
  const told = run("x86_64-w64-mingw32-objdump", ["-p", path]);
  const names = [...told.matchAll(/DLL Name: (.*)/g)].map(([, name]) => name.trim());
  const strange = names.filter((name) => !WINDOWS.test(name) && !existsSync(join(dirname(path), name)));
  if (strange.length) throw new Error(`${file} needs ${strange.join(", ")}, which is not in the package`);
  checkPaths(folder, file);
}

function checkPaths(folder, file) {
  if (readFileSync(join(folder, file)).includes(root)) throw new Error(`${file} has the path of this checkout in it`);
}

function checkVersion(platform, folder) {
  const told = platform.tellVersion(platform, folder);
  if (!told.includes(version)) throw new Error(`the helper is "${told}", js-shim/package.json says ${version}`);
}

function versionOfProgram({ runner, suffix }, folder) {
  const [command, ...words] = [...runner, join(folder, "bin", `fm-proxy${suffix}`), "--version"];
  return run(command, words).trim();
}

function installByCmake({ build }, folder) {
  run("cmake", ["--install", build, "--prefix", folder, "--strip"]);
}

/** Copies the app that packaging/macos.sh has made, or its signed copy from a Mac. */
function copyApp(_, folder) {
  cpSync(dirname(CONTENTS), join(folder, "fm-proxy.app"), { recursive: true });
}

/** Checks for the files that only a release needs. An app for tests may lack them. */
function checkApp({ name, build }) {
  if (lackingOfApple.length > 0) {
    const what = `${name} lacks ${lackingOfApple.join(" and ")} in ${CONTENTS}, so that Apple's own model can't answer`;
    const advice = "Make Apple's library on a Mac (docs/apple.md), run `FM_APPLE_LIBRARY=PATH sh packaging/macos.sh`";
    if (values.all) throw new Error(`${what}. ${advice} and sign the app, or delete ${build} to release without macOS`);
    console.log(`${what}: it is not for a release`);
  }
  if (values.all && !existsSync(join(CONTENTS, "_CodeSignature", "CodeResources"))) {
    throw new Error(`${name} is not signed. Sign the app (packaging/README.md), or delete ${build} to release without macOS`);
  }
}

/** Reads the version from the app's files, because the app can't be run on this machine. */
function versionOfApp(_, folder) {
  const list = readFileSync(join(folder, "fm-proxy.app", "Contents", "Info.plist"), "utf8");
  return /<key>CFBundleShortVersionString<\/key>\s*<string>(.*)<\/string>/.exec(list)?.[1] ?? "";
}

function checkMacFile(folder, file) {
  const path = join(folder, file);
  const fault = faultOf(path, readFileSync(path), existsSync);
  if (fault !== undefined) throw new Error(`${file} ${fault}`);
  checkPaths(folder, file);
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
