// Makes a helper runnable that can't be run where it is: repairs its permissions, or copies it to another folder.
import { constants } from "node:fs";
import {
  access,
  chmod,
  cp,
  lstat,
  lutimes,
  mkdir,
  readdir,
  realpath,
  rename,
  rm,
  stat,
} from "node:fs/promises";
import { basename, dirname, join, relative, sep } from "node:path";
import { isAlive } from "./alive.js";
import { kindOf } from "./file-kind.js";
import { inPackage, LEFT_OUT, type HelperLocation } from "./locate.js";
import { FmError } from "./errors.js";
import { hashFile } from "./hash.js";
import { whatIsForbidden } from "./start-error.js";

/** Names of copies begin with this. */
const PREFIX = "fm-proxy-helper-";
/** A copy is removed if no process has started a helper from it for this many ms. */
const UNUSED_MS = 30 * 24 * 3600 * 1000;
/** A use is noted at most once in this many ms. */
const NOTED_MS = 24 * 3600 * 1000;
/** The loaders of the programs in the platform's package. A Linux without this file has another C library than glibc. */
const LOADERS: Record<string, string> = {
  x64: "/lib64/ld-linux-x86-64.so.2",
  arm64: "/lib/ld-linux-aarch64.so.1",
};

/** The names of engines, their descriptions and their libraries. */
const OURS = /^fm-|\.(?:so(?:\.[\d.]+)?|dylib|dll)$/;
const ENGINE = /^fm-engine-[^.]+$/;
/** Where the libraries of the engine llama are in a clone, seen from the folder above its programs (CMakeLists.txt, RPATH). */
const CLONE_LIBRARIES = join("deps", "llama", "lib");
/** The original of a copy. */
interface Original {
  from: string;
  /** True: the whole folder is copied. False: only our files in it. */
  whole: boolean;
  /** Where the original is placed in the copy. `helper`: the helper's path in it. */
  to: string;
  helper: string;
}

/**
 * Makes sure that the helper and the engines beside it can be run. Repairs their permissions in place, or else makes a copy in
 * `storageDir`. The copy has the whole package or app bundle; if there is none, it has the programs and libraries in the helper's
 * folder, and those of a clone's llama.cpp. The engines in `engineDir` are repaired in place.
 *
 * @throws FmError (SPAWN_FAILED) for a copy that differs from its original, and for a system without glibc
 */
export async function makeRunnable(
  found: HelperLocation,
  storageDir: string | undefined,
  engineDir: string | undefined,
): Promise<HelperLocation> {
  if (engineDir !== undefined) await Promise.all((await thoseThatDoNotRun(await enginesIn(engineDir))).map(repair));
  if (found.packagePath !== undefined) await checkPackage(found.packagePath, found.executablePath);
  const { executablePath } = found.type === "cli" ? await resolved(found) : found;
  // A path may name anything. Only programs are changed.
  if (found.packagePath === undefined && kindOf(executablePath) !== "program") return found;
  await Promise.all((await lackingPermission(executablePath)).map(repair));
  const isRunnable = (await lackingPermission(executablePath)).length === 0;
  // There is no folder for a copy. The start then reports what is wrong.
  const runnable = !isRunnable && storageDir !== undefined ? await copyOf({ ...found, executablePath }, storageDir) : found;
  if (storageDir !== undefined) await discardUnused(storageDir, runnable.executablePath);
  return runnable;
}

/** Resolves links. The engines are in the folder of the real file. */
async function resolved(found: HelperLocation): Promise<HelperLocation> {
  return { ...found, executablePath: await realpath(found.executablePath).catch(() => found.executablePath) };
}

async function copyOf(found: HelperLocation, storageDir: string): Promise<HelperLocation> {
  const original = originalOf(found);
  const copy = await makeCopy(original, await hashFile(found.executablePath), storageDir);
  const origin = `${found.origin}, copied to ${storageDir}`;
  if (found.packagePath !== undefined) return inPackage(copy, origin);
  const { appBundlePath } = found;
  const bundle = appBundlePath === undefined ? {} : { appBundlePath: join(copy, original.to) };
  const executablePath = join(copy, original.helper);
  return { type: found.type, executablePath, ...bundle, origin, copiedFrom: found.executablePath };
}

function originalOf({ packagePath, appBundlePath, executablePath }: HelperLocation): Original {
  const folder = packagePath ?? appBundlePath;
  const from = folder ?? dirname(executablePath);
  const to = packagePath !== undefined ? "." : appBundlePath !== undefined ? "fm-proxy.app" : "bin";
  return { from, whole: folder !== undefined, to, helper: join(to, relative(from, executablePath)) };
}

function isPart({ from, whole, helper }: Original, path: string): boolean {
  return whole || path === from || basename(path) === basename(helper) || OURS.test(basename(path));
}

/** Lists the programs that can't be run, of the helper and the engines beside it. */
async function lackingPermission(executablePath: string): Promise<string[]> {
  return thoseThatDoNotRun([executablePath, ...(await enginesIn(dirname(executablePath)))]);
}

async function enginesIn(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch(() => []);
  return names.filter((name) => ENGINE.test(name)).map((name) => join(folder, name));
}

async function thoseThatDoNotRun(programs: string[]): Promise<string[]> {
  const runs = await Promise.all(programs.map(canRun));
  return programs.filter((_, index) => !runs[index]);
}

/** Removes all copies, because they may have another version. */
export async function discardCopies(storageDir: string): Promise<void> {
  const names = await readdir(storageDir).catch(() => []);
  const copies = names.filter((name) => name.startsWith(PREFIX));
  await Promise.all(copies.map((name) => rm(join(storageDir, name), { recursive: true, force: true }).catch(() => {})));
}

/** Removes copies that are no longer used, such as those of older versions; the one in use stays. Never throws. */
async function discardUnused(storageDir: string, helper: string): Promise<void> {
  const names = await readdir(storageDir).catch(() => []);
  const copies = names.filter((name) => name.startsWith(PREFIX)).map((name) => join(storageDir, name));
  for (const path of copies) {
    if (helper.startsWith(path + sep) || !(await isUnused(path))) continue;
    // Another process may begin to use this copy now. A process first notes the use, and makes a new copy if this one is gone.
    const aside = `${path}.${process.pid}-${crypto.randomUUID().slice(0, 8)}`;
    const moved = await rename(path, aside).then(
      () => true,
      () => false,
    );
    if (!moved) continue;
    if (await isUnused(aside)) await rm(aside, { recursive: true, force: true }).catch(() => {});
    else await rename(aside, path).catch(() => {});
  }
}

/** Whether this is a folder and not a link, and no process has noted a use of it for UNUSED_MS. */
async function isUnused(path: string): Promise<boolean> {
  const it = await lstat(path).catch(() => null);
  return it !== null && it.isDirectory() && Date.now() - it.mtimeMs > UNUSED_MS;
}

/** Notes the use of a copy in the time of its last change. */
async function noteUse(path: string): Promise<void> {
  const now = new Date();
  const it = await lstat(path).catch(() => null);
  if (it !== null && now.getTime() - it.mtimeMs > NOTED_MS) await lutimes(path, now, now).catch(() => {});
}

/** Throws if the package lacks its programs, or if the system can't run them. */
async function checkPackage(packagePath: string, program: string): Promise<void> {
  if (await isAbsent(program)) {
    const name = relative(packagePath, program);
    const what = `The helper's package ${packagePath} lacks its program ${name}. Install it again. ${LEFT_OUT}`;
    throw new FmError("SPAWN_FAILED", what);
  }
  const loader = process.platform === "linux" ? LOADERS[process.arch] : undefined;
  if (loader === undefined || !(await isAbsent(loader))) return;
  const what = `The helper needs a Linux with glibc: ${loader} does not exist. Alpine and others with musl are not supported.`;
  throw new FmError("SPAWN_FAILED", what);
}

/** Whether the program is executable, and its file system allows running programs. */
async function canRun(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** Whether the path is surely absent. A path that may not be read may exist. */
async function isAbsent(path: string): Promise<boolean> {
  return access(path).then(
    () => false,
    ({ code }: NodeJS.ErrnoException) => code === "ENOENT",
  );
}

/**
 * Restores the permission to run the program, which packagers may lose. In a folder without write permission, nothing is changed.
 */
async function repair(path: string): Promise<void> {
  try {
    const writable = ((await stat(dirname(path))).mode & 0o200) !== 0;
    if (writable) await chmod(path, 0o755);
  } catch {
    // The file belongs to another user, or the disk is read-only.
  }
}

/** Makes a copy under a temporary name and renames it at the end, so that a copy is complete or absent. */
async function makeCopy(original: Original, hash: string, storageDir: string): Promise<string> {
  const { from, to: place, helper } = original;
  const to = join(storageDir, `${PREFIX}${basename(from)}-${hash.slice(0, 16)}`);
  await noteUse(to);
  if (await isCopyOf(original, to, sizeOf)) return to;
  const fresh = `${to}.${process.pid}-${crypto.randomUUID().slice(0, 8)}`;
  try {
    await mkdir(storageDir, { recursive: true });
    const filter = (path: string): boolean => isPart(original, path);
    const options = { recursive: true, dereference: false, verbatimSymlinks: true };
    await cp(from, join(fresh, place), { ...options, filter });
    const libraries = await cloneLibraries(original);
    if (libraries !== undefined) await cp(libraries, join(fresh, CLONE_LIBRARIES), options);
    await Promise.all((await lackingPermission(join(fresh, helper))).map((path) => chmod(path, 0o755)));
    if (!(await isCopyOf(original, fresh, hashFile))) throw new Error("the copy differs from what was copied");
    await removeLeftovers(to);
    await rename(fresh, to).catch(async (error: unknown) => {
      // Another process was faster, or the existing copy is broken.
      if (await isCopyOf(original, to, hashFile)) return;
      await rm(to, { recursive: true, force: true });
      await rename(fresh, to).catch(() => Promise.reject(error));
    });
  } catch (error) {
    const why = whatIsForbidden(error) ?? (error as Error).message;
    const what = `The helper can't be run in ${from}, and can't be copied to ${storageDir} (the option storageDir): ${why}.`;
    throw new FmError("SPAWN_FAILED", what, { cause: error });
  } finally {
    await rm(fresh, { recursive: true, force: true }).catch(() => {});
  }
  return to;
}

/** Removes incomplete copies of processes that ended while they copied. The names contain the process numbers. */
async function removeLeftovers(to: string): Promise<void> {
  for (const name of await readdir(dirname(to))) {
    const owner = name.startsWith(`${basename(to)}.`) ? Number(/\.(\d+)-[^.]*$/.exec(name)?.[1]) : NaN;
    if (owner > 0 && !isAlive(owner)) await rm(join(dirname(to), name), { recursive: true, force: true }).catch(() => {});
  }
}

/**
 * Whether the copy has all files, and `tell` gives equal results for both. Modes and times do not count, but programs must be
 * runnable.
 */
async function isCopyOf(original: Original, copy: string, tell: (path: string) => Promise<unknown>): Promise<boolean> {
  const { from, whole, to, helper } = original;
  try {
    const paths = await filesIn(from, whole);
    const libraries = await cloneLibraries(original);
    const pairs = paths.filter((each) => isPart(original, each)).map((path) => [path, join(copy, to, relative(from, path))]);
    for (const path of libraries === undefined ? [] : await filesIn(libraries, true)) {
      pairs.push([path, join(copy, CLONE_LIBRARIES, relative(libraries as string, path))]);
    }
    for (const [path, copied] of pairs as [string, string][]) if ((await tell(path)) !== (await tell(copied))) return false;
    return paths.length > 0 && (await lackingPermission(join(copy, helper))).length === 0;
  } catch {
    return false;
  }
}

/** The paths of the files in a folder, without links. */
async function filesIn(folder: string, recursive: boolean): Promise<string[]> {
  const entries = (await readdir(folder, { recursive, withFileTypes: true })).filter((entry) => entry.isFile());
  return entries.map((entry) => join(entry.parentPath ?? entry.path, entry.name));
}

/** The folder of the engine's libraries, if the programs are in a clone. A package and an app have them beside the programs. */
async function cloneLibraries({ from, whole }: Original): Promise<string | undefined> {
  const folder = join(from, "..", CLONE_LIBRARIES);
  return whole || (await isAbsent(folder)) ? undefined : folder;
}

const sizeOf = async (path: string): Promise<number> => (await stat(path)).size;
