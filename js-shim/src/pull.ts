// Downloads model files. Afterwards a file is complete and correct, or absent.
import { mkdir, open, readFile, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { isAlive } from "./alive.js";
import { findInCatalog } from "./catalog.js";
import { chooseModel, chosenModel } from "./default-model.js";
import {
  addressOf,
  checkProtocol,
  diskError,
  Download,
  isFrom,
  readRecord,
  type Downloaded,
  type DownloadOptions,
  type PullProgress,
  type Source,
} from "./download.js";
import { FmError } from "./errors.js";
import { readFacts } from "./gguf.js";
import { hashFile } from "./hash.js";
import { filesOnHub, parseHubReference, type HubReference } from "./hub.js";
import { idOf, isUsable, ownModels, partsOf } from "./model-files.js";
import { modelsFolder } from "./models-folder.js";
import { signalOf } from "./stream.js";
import { messageOf } from "./thrown.js";

/** Options of {@link pullModel}. */
export interface PullOptions extends DownloadOptions {
  /** The folder for the model. Default: `FM_PROXY_MODELS_DIR`, or the user's folder for fm-proxy's models. */
  folder?: string | undefined;
  /** The SHA-256 that the file must have, in hexadecimal. Hugging Face reports it for its own files. */
  sha256?: string | undefined;
}

/** The options of a download besides a signal. */
const OPTIONS: readonly Exclude<keyof PullOptions, "signal">[] = [
  "onProgress", "folder", "sha256", "stallMs", "retryMs", "onRetry",
];

/** A downloaded model. `path` and `sha256` belong to the file that names the model; `size` counts all its files. */
export interface PulledModel extends Downloaded {
  /** The model's id in its folder. */
  id: string;
  /** All its files, including a projector for images and the parts of a split model. */
  files: Downloaded[];
  /** Whether it answers requests that name no model. The first model in fm-proxy's own folder does. */
  default: boolean;
}

/** See files.ts. */
export async function pullModel(reference: string, options: PullOptions = {}): Promise<PulledModel> {
  options ??= {};
  signalOf(options, OPTIONS);
  if (typeof reference !== "string") throw new FmError("INVALID_REQUEST", "A model to pull is named by a string.");
  const sources = await sourcesOf(reference, options);
  const folder = options.folder ?? modelsFolder();
  await mkdir(folder, { recursive: true }).catch((error: unknown) => Promise.reject(diskError(error, folder)));
  const sizes = sources.map(({ size }) => size);
  const files: Downloaded[] = [];
  let size = 0;
  for (const source of sources) {
    const before = size;
    const onProgress = options.onProgress && ((it: PullProgress): void => options.onProgress?.(ofAll(it, before, sizes)));
    const file = await pullFile(source, join(folder, source.file), { ...options, onProgress });
    size += file.size;
    files.push(file);
  }
  const last = files[files.length - 1] as Downloaded;
  const isDefault = options.folder === undefined && (await chooseFirst(last.path, folder));
  return { id: idOf(last.path), ...last, size, files, default: isDefault };
}

/**
 * Chooses the folder's first model that does not embed, so that no later download becomes the default. Returns whether the model
 * is the chosen one.
 */
async function chooseFirst(path: string, folder: string): Promise<boolean> {
  const chosen = await chosenModel(folder);
  if (chosen !== null) return chosen === path;
  const answers = async (file: string): Promise<boolean> => (await isUsable(file)) && !(await readFacts(file)).embeds;
  const others = (await ownModels(folder)).filter((model) => model.path !== path).map((model) => answers(model.path));
  if (!(await answers(path)) || (await Promise.all(others)).includes(true)) return false;
  await chooseModel(path, folder);
  return true;
}

/** The total progress of several downloads. The files before the present one have `before` bytes. */
function ofAll({ received, total }: PullProgress, before: number, sizes: readonly (number | null)[]): PullProgress {
  const whole = sizes.length === 1 ? total : sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0);
  return { received: before + received, ...(whole === undefined ? {} : { total: whole }) };
}

async function pullFile(source: Source, path: string, options: DownloadOptions): Promise<Downloaded> {
  const unlock = await lock(`${path}.lock`);
  try {
    return (await alreadyThere(path, source)) ?? (await new Download(source, path, options).run());
  } finally {
    await unlock();
  }
}

/** The origin of a hash that the caller gave. */
const OPTION = "the option sha256";

/** Valid file names. Every system and terminal accepts them, and `models rm` too. */
const FILE = /^(?!\.)[^\\/:\p{Cc}]+\.gguf$/iu;

/** The files to download. The file that names the model comes last, so that an incomplete model is not found. */
async function sourcesOf(reference: string, options: PullOptions): Promise<Source[]> {
  const sha256 = options.sha256 == null ? null : String(options.sha256).toLowerCase();
  if (sha256 !== null && !/^[0-9a-f]{64}$/.test(sha256)) {
    throw new FmError("INVALID_REQUEST", `Invalid sha256: it must have 64 hexadecimal digits, not ${JSON.stringify(sha256)}.`);
  }
  const known = findInCatalog(reference);
  const hub = known === null ? parseHubReference(reference) : { ...known, revision: "main" };
  const sources = hub === null ? [await sourceOf(reference)] : await sourcesOnHub(hub, options);
  const last = sources[sources.length - 1] as Source;
  if (sha256 !== null && partsOf(last.file).length > 1) {
    const what = `${reference} has several files, and one SHA-256 does not fit them all. Leave sha256 out.`;
    throw new FmError("INVALID_REQUEST", what);
  }
  if (sha256 !== null) Object.assign(last, { sha256, sha256From: OPTION });
  return sources;
}

async function sourcesOnHub(hub: HubReference, options: DownloadOptions): Promise<Source[]> {
  const files = await filesOnHub(hub, options);
  return Promise.all(files.map(async ({ url, name, size, sha256 }) => {
    checkName(name, hub.repository);
    return { url, address: await addressOf(url), file: name, size, sha256, sha256From: sha256 === null ? null : url.host };
  }));
}

/** The file at an address outside the hub. */
async function sourceOf(reference: string): Promise<Source> {
  const url = urlOf(reference);
  const file = fileOf(url);
  checkName(file, reference);
  return { url, address: await addressOf(url), file, size: null, sha256: null, sha256From: null };
}

function checkName(file: string, reference: string): void {
  if (FILE.test(file)) return;
  const rule = "The file's name must end in .gguf, and have no slash, colon or control character, nor a dot at its beginning.";
  const other = "On Hugging Face, open the page of one model whose name ends in -GGUF, and copy that link.";
  throw new FmError("INVALID_REQUEST", `${JSON.stringify(reference)} does not name a GGUF file. ${rule} ${other}`);
}

/** The last part of an address, percent-decoded; "" if the encoding is invalid. */
function fileOf(url: URL): string {
  try {
    return decodeURIComponent(basename(url.pathname));
  } catch {
    return "";
  }
}

function urlOf(reference: string): URL {
  if (!URL.canParse(reference)) {
    throw new FmError(
      "INVALID_REQUEST",
      `${JSON.stringify(reference)} is not a model to download. Name one of \`models search\`, one of Hugging Face ` +
        "(OWNER/NAME, OWNER/NAME:Q4_K_M or the link of its page), or a URL (https://...gguf).",
    );
  }
  const url = new URL(reference);
  checkProtocol(url);
  if (url.username !== "" || url.password !== "") {
    throw new FmError("INVALID_REQUEST", `${url.host} is not asked with a name and a password in the address. Leave them out.`);
  }
  return url;
}

/** How long the owner of a lock may take to write its process number into the lock, in ms. */
const UNSIGNED_MS = 10_000;

/** The locks that this process holds. */
const held = new Set<string>();

/** Takes the lock of a file, which only one process may download at a time. A lock whose process has ended does not count. */
async function lock(path: string): Promise<() => Promise<void>> {
  for (let tries = 0; tries < 2; tries++) {
    try {
      const handle = await open(path, "wx");
      held.add(path);
      await handle.writeFile(String(process.pid)).finally(() => handle.close());
      return async () => {
        await rm(path, { force: true });
        held.delete(path);
      };
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

/** The number of the process that owns a lock. "": the owner has not written it yet. Null: the owner no longer runs. */
async function ownerOf(path: string): Promise<string | null> {
  const owner = await readFile(path, "utf8").catch(() => "");
  // In a container, this process may have the same number as a process that was killed in an earlier container.
  if (owner === String(process.pid) && !held.has(path)) return null;
  if (owner !== "") return Number(owner) > 0 && isAlive(Number(owner)) ? owner : null;
  const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: 0 }));
  return Date.now() - mtimeMs < UNSIGNED_MS ? "" : null;
}

/** Throws if a process is downloading one of the files of a model into its folder. */
export async function checkIdle(files: readonly string[]): Promise<void> {
  for (const path of files.filter((file) => file.endsWith(".lock"))) {
    const owner = await ownerOf(path);
    if (owner !== null) throw inUse(owner, path);
  }
}

/** Removes a lock only if its process has ended. Another process may have taken the lock meanwhile. */
async function removeLock(path: string): Promise<void> {
  const aside = `${path}.${crypto.randomUUID()}`;
  await rename(path, aside).catch(() => {});
  if ((await ownerOf(aside)) === null) await rm(aside, { force: true });
  else await rename(aside, path);
}

/**
 * The file, if it exists already and is the wanted one. Null: it must be downloaded. The download may replace a file from the
 * same address or with another hash.
 */
async function alreadyThere(path: string, source: Source): Promise<Downloaded | null> {
  const there = await stat(path).catch(() => null);
  if (there === null) return null;
  if (!there.isFile()) throw new FmError("INVALID_REQUEST", `${path} is not a file. Move it away, and try again.`);
  const { size } = there;
  const told = await readRecord(path);
  const isOurs = told !== null && isFrom(told, source.address);
  const wanted = source.sha256 ?? (isOurs ? told.sha256 : null);
  const sha256 = wanted === null ? "" : await hashFile(path);
  if (sha256 === wanted) return { path, size, sha256, sha256From: source.sha256From ?? "an earlier download" };
  if (isOurs || source.sha256From === OPTION) return null;
  const what = `${path} exists, from elsewhere. Delete it (npx fm-proxy models rm ${idOf(path)}), or keep it.`;
  throw new FmError("INVALID_REQUEST", what);
}

/** See files.ts. */
export async function verifyModel(path: string): Promise<{ state: "ok" | "damaged" | "unknown"; sha256: string }> {
  const told = (await readRecord(path))?.sha256;
  const sha256 = await hashFile(path).catch((error: unknown) => {
    throw new FmError("NOT_FOUND", `The file ${resolve(path)} can't be read (${messageOf(error)}).`, { cause: error });
  });
  return { state: told === undefined ? "unknown" : told === sha256 ? "ok" : "damaged", sha256 };
}
