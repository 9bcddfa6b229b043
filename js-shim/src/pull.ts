// Model files downloaded: what is there afterwards is whole and right, or absent.
import { mkdir, open, readFile, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { isAlive } from "./alive.js";
import {
  addressOf,
  checkProtocol,
  diskError,
  Download,
  hubEndpoint,
  isFrom,
  readJson,
  type Address,
  type Downloaded,
  type DownloadOptions,
  type Source,
} from "./download.js";
import { FmError } from "./errors.js";
import { hashFile } from "./hash.js";
import { idOf } from "./model-files.js";
import { modelsFolder } from "./models-folder.js";

/** Options of {@link pullModel}. */
export interface PullOptions extends DownloadOptions {
  /** The folder that it goes to. Default: `FM_PROXY_MODELS_DIR`, or the user's folder for fm-proxy's models. */
  folder?: string | undefined;
  /** The SHA-256 that the file must have, in hexadecimal. Hugging Face tells it by itself. */
  sha256?: string | undefined;
}

/** A model file that is there. */
export interface PulledModel extends Downloaded {
  /** Its name among the models of its folder. */
  id: string;
}

/** See files.ts. */
export async function pullModel(reference: string, options: PullOptions = {}): Promise<PulledModel> {
  const source = await parseReference(reference, options.sha256);
  const folder = options.folder ?? modelsFolder();
  const path = join(folder, source.file);
  await mkdir(folder, { recursive: true }).catch((error: unknown) => Promise.reject(diskError(error, folder)));
  const unlock = await lock(`${path}.lock`);
  try {
    const file = (await alreadyThere(path, source)) ?? (await new Download(source, path, options).run());
    return { id: idOf(path), ...file };
  } finally {
    await unlock();
  }
}

/** Names that every system and terminal takes, and `models rm` too. */
const FILE = /^(?!\.)[^\\/:\p{Cc}]+\.gguf$/iu;

/** The `hf:` form, or a URL. */
async function parseReference(reference: string, sha256: string | undefined): Promise<Source> {
  if (sha256 !== undefined && !/^[0-9a-f]{64}$/i.test(sha256)) {
    throw new FmError("INVALID_REQUEST", `Invalid sha256: it must have 64 hexadecimal digits, not ${JSON.stringify(sha256)}.`);
  }
  const url = urlOf(reference);
  const file = fileOf(url);
  if (!FILE.test(file)) {
    const rule = "it must end in .gguf, not begin with a dot, and have no slash, colon or control character";
    throw new FmError("INVALID_REQUEST", `${JSON.stringify(reference)} does not name a GGUF file. Of its name: ${rule}.`);
  }
  return { url, address: await addressOf(url), file, sha256: sha256?.toLowerCase() ?? null };
}

/** What the last part of an address names; "" where it is no percent-encoding. */
function fileOf(url: URL): string {
  try {
    return decodeURIComponent(basename(url.pathname));
  } catch {
    return "";
  }
}

function urlOf(reference: string): URL {
  const hub = /^hf:([^/]+\/[^/]+)\/(.+)$/.exec(reference);
  const text = hub === null ? reference : `${hubEndpoint()}/${hub[1]}/resolve/main/${hub[2]}`;
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new FmError(
      "INVALID_REQUEST",
      `${JSON.stringify(reference)} is not a model to download. Name a URL (https://...gguf), or a file on Hugging Face ` +
        "(hf:OWNER/NAME/FILE.gguf).",
    );
  }
  checkProtocol(url);
  if (url.username !== "" || url.password !== "") {
    throw new FmError("INVALID_REQUEST", `${url.host} is not asked with a name and a password in the address. Leave them out.`);
  }
  return url;
}

/** So long the owner of a lock may take to write its number into it, in ms. */
const UNSIGNED_MS = 10_000;

/** One process downloads a file at a time. A lock of a process that is gone is none. */
async function lock(path: string): Promise<() => Promise<void>> {
  for (let tries = 0; tries < 2; tries++) {
    try {
      const handle = await open(path, "wx");
      await handle.writeFile(String(process.pid)).finally(() => handle.close());
      return () => rm(path, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw diskError(error, dirname(path));
    }
    const owner = await ownerOf(path);
    if (owner !== null) throw inUse(owner, path);
    await removeLock(path);
  }
  throw inUse("", path);
}

function inUse(owner: string, path: string): FmError {
  const who = owner === "" ? "Another process" : `Process ${owner}`;
  return new FmError("UNAVAILABLE", `${who} is downloading this file. Wait until it is done, or delete ${path}.`);
}

/** Whose lock it is; "": of one that has not said so yet; null: of nobody who lives. */
async function ownerOf(path: string): Promise<string | null> {
  const owner = await readFile(path, "utf8").catch(() => "");
  if (owner !== "") return Number(owner) > 0 && isAlive(Number(owner)) ? owner : null;
  const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: 0 }));
  return Date.now() - mtimeMs < UNSIGNED_MS ? "" : null;
}

/** Removes the lock of a process that is gone, and of no other: somebody may have been faster and hold it by now. */
async function removeLock(path: string): Promise<void> {
  const aside = `${path}.${crypto.randomUUID()}`;
  await rename(path, aside).catch(() => {});
  if ((await ownerOf(aside)) === null) await rm(aside, { force: true });
  else await rename(aside, path);
}

/** The file, if it is there as wanted: with the hash that was asked for, or from the same address. */
async function alreadyThere(path: string, source: Source): Promise<Downloaded | null> {
  const there = await stat(path).catch(() => null);
  if (there === null) return null;
  if (!there.isFile()) throw new FmError("INVALID_REQUEST", `${path} is not a file. Move it away, and try again.`);
  const { size } = there;
  const told = await readRecord(path);
  const wanted = source.sha256 ?? (told !== null && isFrom(told, source.address) ? told.sha256 : null);
  if (wanted === null) {
    const what = `${path} exists, from elsewhere. Delete it (fm-proxy models rm ${idOf(path)}), or keep it.`;
    throw new FmError("INVALID_REQUEST", what);
  }
  const sha256 = await hashFile(path);
  return sha256 === wanted ? { path, size, sha256 } : null;
}

/** See files.ts. */
export async function verifyModel(path: string): Promise<{ state: "ok" | "damaged" | "unknown"; sha256: string }> {
  const told = (await readRecord(path))?.sha256;
  const sha256 = await hashFile(path);
  return { state: told === undefined ? "unknown" : told === sha256 ? "ok" : "damaged", sha256 };
}

/** What was written down of a model file when it was downloaded; null: nothing. */
function readRecord(path: string): Promise<(Address & { sha256: string; size: number }) | null> {
  return readJson(`${path}.json`);
}
