// A helper that can't be run where it lies: its permission is repaired, or it is copied to where it can.
import { constants } from "node:fs";
import { access, chmod, cp, lstat, lutimes, mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { isAlive } from "./alive.js";
import { inPackage, type HelperLocation } from "./locate.js";
import { FmError } from "./errors.js";
import { hashFile } from "./hash.js";
import { whatIsForbidden } from "./start-error.js";

/** Copies of the helper begin with this. */
const PREFIX = "fm-proxy-helper-";
/** A copy that no process has started a helper from for so long is in no one's way. */
const UNUSED_MS = 30 * 24 * 3600 * 1000;
/** A use is noted so often at most. */
const NOTED_MS = 24 * 3600 * 1000;
/** What the programs of the platform's package are loaded by; without it, this Linux has another C library than glibc. */
const LOADERS: Record<string, string> = {
  x64: "/lib64/ld-linux-x86-64.so.2",
  arm64: "/lib/ld-linux-aarch64.so.1",
};

/**
 * The helper, so that it can be run: in place, with its permission repaired, or as a copy in `storageDir` of the whole
 * package. A helper that a path named is taken as it is.
 *
 * @throws FmError (SPAWN_FAILED) for a copy that is not what was copied, and a system without glibc
 */
export async function makeRunnable(found: HelperLocation, storageDir: string | undefined): Promise<HelperLocation> {
  const { packagePath } = found;
  if (packagePath === undefined) return found;
  await checkLoader();
  const runnable = await runnableOf(found, packagePath, storageDir);
  if (storageDir !== undefined) await discardUnused(storageDir, runnable.packagePath);
  return runnable;
}

async function runnableOf(
  found: HelperLocation,
  packagePath: string,
  storageDir: string | undefined,
): Promise<HelperLocation> {
  const { executablePath } = found;
  if (await canRun(executablePath)) return found;
  await repair(executablePath);
  // Without a place for a copy, the start says what is wrong.
  if ((await canRun(executablePath)) || storageDir === undefined || !(await exists(executablePath))) return found;
  const copy = await copyPackage(packagePath, await hashFile(executablePath), storageDir);
  return inPackage(copy, `${found.origin}, copied to ${storageDir}`);
}

/** Removes all copies: they may be of another version. */
export async function discardCopies(storageDir: string): Promise<void> {
  const names = await readdir(storageDir).catch(() => []);
  const copies = names.filter((name) => name.startsWith(PREFIX));
  await Promise.all(copies.map((name) => rm(join(storageDir, name), { recursive: true, force: true }).catch(() => {})));
}

/** Removes the copies that are used no more, as those of older versions; `inUse` stays. Never throws. */
async function discardUnused(storageDir: string, inUse: string | undefined): Promise<void> {
  const names = await readdir(storageDir).catch(() => []);
  const copies = names.filter((name) => name.startsWith(PREFIX)).map((name) => join(storageDir, name));
  for (const path of copies) {
    if (path === inUse || !(await isUnused(path))) continue;
    // Another process may begin to use it right now. It has noted that first, and makes a new copy if this one is gone.
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

/** Whether it is a folder, and no link to one, that no process has noted its use of for long. */
async function isUnused(path: string): Promise<boolean> {
  const it = await lstat(path).catch(() => null);
  return it !== null && it.isDirectory() && Date.now() - it.mtimeMs > UNUSED_MS;
}

/** Notes in the time of its last change that a copy is used. */
async function noteUse(path: string): Promise<void> {
  const now = new Date();
  const it = await lstat(path).catch(() => null);
  if (it !== null && now.getTime() - it.mtimeMs > NOTED_MS) await lutimes(path, now, now).catch(() => {});
}

async function checkLoader(): Promise<void> {
  const loader = process.platform === "linux" ? LOADERS[process.arch] : undefined;
  if (loader === undefined || !(await isAbsent(loader))) return;
  const what = `The helper needs a Linux with glibc: ${loader} does not exist. Alpine and others with musl are not supported.`;
  throw new FmError("SPAWN_FAILED", what);
}

/** Whether it is executable, and lies where programs may be run. */
async function canRun(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** Where nobody may look, it is not known to be absent. */
async function isAbsent(path: string): Promise<boolean> {
  return access(path).then(
    () => false,
    ({ code }: NodeJS.ErrnoException) => code === "ENOENT",
  );
}

/** Packagers lose permissions. What nobody may write to is left as it is. */
async function repair(path: string): Promise<void> {
  try {
    const writable = ((await stat(dirname(path))).mode & 0o200) !== 0;
    if (writable) await chmod(path, 0o755);
  } catch {
    // It is another user's, or the disk can't be written to.
  }
}

/** Copies the whole package under another name and renames it at the end, so that a copy is whole or absent. */
async function copyPackage(from: string, hash: string, storageDir: string): Promise<string> {
  const to = join(storageDir, `${PREFIX}${basename(from)}-${hash.slice(0, 16)}`);
  await noteUse(to);
  if (await isCopyOf(from, to, sizeOf)) return to;
  const fresh = `${to}.${process.pid}-${crypto.randomUUID().slice(0, 8)}`;
  try {
    await mkdir(storageDir, { recursive: true });
    await cp(from, fresh, { recursive: true, dereference: false, verbatimSymlinks: true });
    await chmod(inPackage(fresh, "").executablePath, 0o755);
    if (!(await isCopyOf(from, fresh, hashFile))) throw new Error("the copy differs from what was copied");
    await removeLeftovers(to);
    await rename(fresh, to).catch(async (error: unknown) => {
      // Another process was first, or what is there is broken.
      if (await isCopyOf(from, to, hashFile)) return;
      await rm(to, { recursive: true, force: true });
      await rename(fresh, to).catch(() => Promise.reject(error));
    });
  } catch (error) {
    const why = whatIsForbidden(error) ?? (error as Error).message;
    const what = `The helper can't be run in ${from}, and can't be copied to ${storageDir}: ${why}.`;
    throw new FmError("SPAWN_FAILED", what, { cause: error });
  } finally {
    await rm(fresh, { recursive: true, force: true }).catch(() => {});
  }
  return to;
}

/** What processes left that were ended while they copied: their numbers are in the names. */
async function removeLeftovers(to: string): Promise<void> {
  for (const name of await readdir(dirname(to))) {
    const owner = name.startsWith(`${basename(to)}.`) ? Number(/\.(\d+)-[^.]*$/.exec(name)?.[1]) : NaN;
    if (owner > 0 && !isAlive(owner)) await rm(join(dirname(to), name), { recursive: true, force: true }).catch(() => {});
  }
}

/** Whether every file is there, and `tell` says the same of both. Modes and times do not count. */
async function isCopyOf(from: string, to: string, tell: (path: string) => Promise<unknown>): Promise<boolean> {
  try {
    const names = (await readdir(from, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
    for (const entry of names) {
      const path = join(entry.parentPath ?? entry.path, entry.name);
      if ((await tell(path)) !== (await tell(join(to, path.slice(from.length))))) return false;
    }
    return names.length > 0 && (await canRun(inPackage(to, "").executablePath));
  } catch {
    return false;
  }
}

const sizeOf = async (path: string): Promise<number> => (await stat(path)).size;
