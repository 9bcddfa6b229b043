// Checks programs and libraries for macOS without a Mac: whether they run on each Mac with Apple silicon from the
// promised version on, in any folder.
//
// usage: node packaging/npm/macho.mjs FILE|FOLDER...
//   FILE    a program or a library
//   FOLDER  each of those in it; the others are left out
import { readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

/** The oldest macOS that the programs must run on. */
export const MACOS_FLOOR = "14.0";

// <mach-o/loader.h>. All numbers have 32 bits, unless a comment says otherwise.
const MAGIC = 0xfeedfacf;
const HEADER = 32;
const ARM64 = 0x0100000c;
const LOAD_DYLIB = 0xc;
const LOAD_WEAK_DYLIB = 0x80000018;
const REEXPORT_DYLIB = 0x8000001f;
const RPATH = 0x8000001c;
const CODE_SIGNATURE = 0x1d;
const BUILD_VERSION = 0x32;
const MACOS = 1;

/** Apple's C bindings of its own model, which only macOS 26 has: the engine loads them when it runs. */
const BINDINGS = "libFoundationModels.dylib";
const BINDINGS_FLOOR = "26.0";

/** Programs built with the SDK of macOS 27 get errors of Apple's model that the bindings can't distinguish. */
const SDK_LIMIT = 27;

/** The libraries that macOS itself has. */
const SYSTEM = /^(\/usr\/lib\/lib(System\.B|c\+\+\.1|objc\.A)\.dylib|\/usr\/lib\/swift\/.+|\/System\/Library\/Frameworks\/.+)$/;

/** Whether a file is a program or library for macOS, for one processor or for several. */
export function isMachO(bytes) {
  return bytes.length >= HEADER && (bytes.readUInt32LE(0) === MAGIC || bytes.readUInt32BE(0) === 0xcafebabe);
}

/** What the load commands of a program or library say. Throws where they can't be read. */
export function readMachO(bytes) {
  if (bytes.length < HEADER || bytes.readUInt32LE(0) !== MAGIC) throw new Error("is not for one 64-bit processor");
  const told = { cpu: bytes.readUInt32LE(4), libraries: [], rpaths: [], signed: false };
  let at = HEADER;
  for (let left = bytes.readUInt32LE(16); left > 0; left--) {
    const size = bytes.readUInt32LE(at + 4);
    if (size < 8 || at + size > bytes.length) throw new Error("is cut off in its load commands");
    takeCommand(told, bytes.readUInt32LE(at), bytes.subarray(at, at + size));
    at += size;
  }
  return told;
}

function takeCommand(told, kind, command) {
  if (kind === LOAD_DYLIB || kind === LOAD_WEAK_DYLIB || kind === REEXPORT_DYLIB) told.libraries.push(textOf(command));
  else if (kind === RPATH) told.rpaths.push(textOf(command));
  else if (kind === CODE_SIGNATURE) told.signed = true;
  else if (kind === BUILD_VERSION) {
    told.platform = command.readUInt32LE(8);
    const version = command.readUInt32LE(12);
    told.sdk = command.readUInt32LE(16) >>> 16;
    told.floor = `${version >>> 16}.${(version >>> 8) & 0xff}`;
  }
}

/** The text of a load command. The third number of the command is the offset of its text. */
function textOf(command) {
  const text = command.subarray(command.readUInt32LE(8));
  return text.toString("utf8", 0, text.includes(0) ? text.indexOf(0) : text.length);
}

/** What is wrong with a program or library, as a list. `has` says whether the package has a file at a path. */
export function faultsOf(path, bytes, has) {
  const { cpu, platform, floor, sdk, libraries, rpaths, signed } = readMachO(bytes);
  const promised = basename(path) === BINDINGS ? BINDINGS_FLOOR : MACOS_FLOOR;
  const faults = [];
  if (cpu !== ARM64) faults.push("is not for arm64");
  if (platform !== MACOS) faults.push("is not for macOS");
  else if (Number(floor) > Number(promised)) faults.push(`needs macOS ${floor}; the package promises ${promised}`);
  else if (sdk >= SDK_LIMIT) {
    faults.push(`is built with the SDK of macOS ${sdk}; Apple's C bindings want one before ${SDK_LIMIT}`);
  }
  if (!signed) faults.push("has no signature, not even one of the linker's: Apple silicon does not run it");
  const strangers = rpaths.filter((rpath) => !/^@loader_path(\/\.\.\/Frameworks)?$/.test(rpath));
  if (strangers.length > 0) faults.push(`looks for libraries in ${strangers.join(", ")}`);
  const folders = rpaths.map((rpath) => join(dirname(path), rpath.slice("@loader_path".length)));
  for (const library of libraries.filter((name) => !SYSTEM.test(name))) {
    const name = /^@rpath\/([^/]+)$/.exec(library)?.[1];
    const found = name !== undefined && folders.some((folder) => has(join(folder, name)));
    if (!found) faults.push(`needs ${library}, which is neither macOS's nor in the package`);
  }
  return faults;
}

/** The first fault, or the reason why the file can't be read; undefined: there is no fault. */
export function faultOf(...file) {
  try {
    return faultsOf(...file)[0];
  } catch (error) {
    return error.message;
  }
}

/** Checks a file, or all files in a folder. Returns the number of programs and libraries. Throws for the first fault. */
export function checkMachO(where) {
  const isFolder = statSync(where).isDirectory();
  const below = isFolder ? readdirSync(where, { recursive: true }).map((name) => join(where, String(name))) : [where];
  const paths = below.filter((path) => statSync(path).isFile()).sort();
  const code = paths.map((path) => [path, readFileSync(path)]).filter(([, bytes]) => isMachO(bytes));
  for (const [path, bytes] of code) {
    const fault = faultOf(path, bytes, (wanted) => paths.includes(wanted));
    if (fault !== undefined) throw new Error(`${path} ${fault}`);
  }
  return code.length;
}

if (import.meta.url === pathToFileURL(resolve(process.argv[1] ?? "")).href) {
  try {
    const counts = process.argv.slice(2).map(checkMachO);
    const count = counts.reduce((sum, each) => sum + each, 0);
    console.log(`macho: ${count} programs and libraries for macOS ${MACOS_FLOOR} and later, as they should be`);
  } catch (error) {
    console.error(`macho: ${error.message}`);
    process.exit(1);
  }
}
