// Model files on this machine: in fm-proxy's own folder, and those of other programs, which are only read.
import { readdir, readFile, stat } from "node:fs/promises";
import { basename, dirname, join, sep } from "node:path";
import { chosenModel } from "./default-model.js";
import { readRecord } from "./download.js";
import { memoryOf, readFacts, readTemplate, type TemplateFacts } from "./gguf.js";
import { modelsFolder, userHome, type Environment } from "./models-folder.js";

/** A model file. */
export interface FoundModel {
  /** The program that owns the file. */
  source: "fm-proxy" | "ollama" | "lm-studio" | "huggingface" | "llama.cpp";
  /** The name that the owning program uses. For fm-proxy's own models, it is their id. */
  name: string;
  /** The path for the option `model` of a client; for a model in several files, the path of the first file. */
  path: string;
  /** The size of all its files, in bytes. */
  size: number;
  /** The format of its weights, such as Q4_K_M; null: neither its name nor its header gives it. */
  quantization: string | null;
  /** The longest context that it was trained for, in tokens; null: its header does not give it. */
  contextLength: number | null;
  /**
   * About how many bytes the model takes when it is loaded with its default context of at most 8,192 tokens. Null: its header
   * does not give enough facts.
   */
  memory: number | null;
  /** Whether it answers requests that name no model: see `models use` of the command line. */
  default: boolean;
}

/** The longest settings and manifests that are read, in bytes. */
const LONGEST_TEXT = 1_000_000;

/** The models of this machine, fm-proxy's own first. A folder that can't be read has none. */
export async function findModels(env: Environment = process.env, home = userHome()): Promise<FoundModel[]> {
  const folder = modelsFolder(env, home);
  const own = await ownModels(folder);
  const others = await Promise.all([ofOllama(env, home), ofLmStudio(home), ofHuggingFace(env, home), ofLlamaCpp(env, home)]);
  const sorted = others.flat().sort((one, other) => compare(one.source, other.source) || compare(one.name, other.name));
  const seen = new Set<string>();
  const chosen = await defaultModel(folder, own);
  const all = [...own, ...sorted];
  const elsewhere = chosen === null || all.some(({ path }) => path === chosen) ? [] : await entry("fm-proxy", chosen, chosen);
  // Ollama may have several names for a file. Each name is listed. Files from elsewhere are listed once.
  const keyOf = ({ source, name, path }: FoundModel): string => (source === "ollama" ? `${name}\0${path}` : path);
  const found = [...elsewhere, ...all].filter((model) => !seen.has(keyOf(model)) && seen.add(keyOf(model)));
  const first = found.findIndex(({ path }) => path === chosen);
  return found.map((model, index) => ({ ...model, default: index === first }));
}

/** The models of a folder, in the order of the helper. */
export async function ownModels(folder: string): Promise<FoundModel[]> {
  const names = (await readdir(folder).catch(() => [])).filter(isModelFile).sort((one, other) => compare(idOf(one), idOf(other)));
  return (await Promise.all(names.map((name) => entry("fm-proxy", idOf(name), join(folder, name))))).flat();
}

/** The part of a file's name that gives its number, if a model is split into several files. */
const PART = /-(\d{5})-of-(\d{5})(?=\.gguf$)/i;

/**
 * The model that answers if no model is named. It is the chosen one, or else the folder's first model that does not embed, or
 * else the first one. The order is the helper's. Models that were tried and can't be used are left out.
 */
export async function defaultModel(folder: string, models?: readonly FoundModel[]): Promise<string | null> {
  const chosen = await chosenModel(folder);
  if (chosen !== null) return chosen;
  const own = models ?? (await ownModels(folder));
  let first: string | null = null;
  for (const { path } of own) {
    if (!(await isUsable(path))) continue;
    if (!(await readFacts(path)).embeds) return path;
    first ??= path;
  }
  return first;
}

/** False: the model was tried after its download, and can't be used. */
export const isUsable = async (path: string): Promise<boolean> => (await readRecord(path))?.usable !== false;

/** The id of a file among the models of its folder. The id of a split model is the common beginning of its files' names. */
export function idOf(path: string): string {
  return basename(path).replace(PART, "").replace(/\.gguf$/i, "");
}

/** The files of the model that this one belongs to, the first one first: it names the model. */
export function partsOf(path: string): string[] {
  const count = Number(PART.exec(path)?.[2] ?? 0);
  if (count === 0) return [path];
  const number = (index: number): string => String(index + 1).padStart(5, "0");
  return Array.from({ length: count }, (_, index) => path.replace(PART, `-${number(index)}-of-$2`));
}

/** The format of the weights that a file's name gives, in capitals; "": it gives none. */
export function quantOf(path: string): string {
  return /(?:^|[-._])((?:UD-)?(?:I?Q\d|TQ\d|MXFP4|B?FP?(?:16|32))\w*)$/i.exec(idOf(path))?.[1]?.toUpperCase() ?? "";
}

/** Whether a file alone is a model, or is the one that names a split model. */
export function isFirstPart(path: string): boolean {
  return Number(PART.exec(path)?.[1] ?? 1) === 1;
}

/** Finds Ollama's models. Each file manifests/HOST/NAMESPACE/MODEL/TAG names a blob by its hash. */
async function ofOllama(env: Environment, home: string): Promise<FoundModel[]> {
  const roots = [env["OLLAMA_MODELS"], join(home, ".ollama", "models"), "/usr/share/ollama/.ollama/models"];
  const found = await Promise.all(given(roots).map(async (root) => {
    const manifests = join(root, "manifests");
    const models = (await filesBelow(manifests)).map(async (path) => {
      const digest = modelDigest(await readText(path));
      const name = path.slice(manifests.length + 1).split(sep);
      const blob = join(root, "blobs", digest.replace(":", "-"));
      return digest === "" ? [] : entry("ollama", ollamaName(name), blob);
    });
    return (await Promise.all(models)).flat();
  }));
  return found.flat();
}

function modelDigest(manifest: string): string {
  try {
    const { layers } = JSON.parse(manifest) as { layers: { mediaType: string; digest: string }[] };
    const digest = layers.find(({ mediaType }) => mediaType === "application/vnd.ollama.image.model")?.digest;
    return digest !== undefined && /^sha256:[0-9a-f]{64}$/.test(digest) ? digest : "";
  } catch {
    return ""; // not a manifest of Ollama
  }
}

/** The name of a model, such as `qwen3:0.6b`. The host and the namespace come first, unless they are Ollama's defaults. */
function ollamaName([host = "", ...parts]: readonly string[]): string {
  const path = parts[0] === "library" ? parts.slice(1) : parts;
  const named = host === "registry.ollama.ai" ? path : [host, ...parts];
  return `${named.slice(0, -1).join("/")}:${named[named.length - 1] ?? ""}`;
}

/** Finds LM Studio's models: PUBLISHER/REPOSITORY/FILE in a folder that its settings name. */
async function ofLmStudio(home: string): Promise<FoundModel[]> {
  const pointed = (await readText(join(home, ".lmstudio-home-pointer"))).trim();
  const homes = pointed === "" ? [join(home, ".cache", "lm-studio"), join(home, ".lmstudio")] : [pointed];
  const found = await Promise.all(homes.map(async (folder) => {
    const models = downloadsFolder(await readText(join(folder, "settings.json"))) ?? join(folder, "models");
    return ggufsBelow("lm-studio", models, (path) => path.slice(models.length + 1).split(sep).join("/"));
  }));
  return found.flat();
}

function downloadsFolder(settings: string): string | undefined {
  try {
    // The file may have comments, so it is not parsed as JSON.
    const named = /"downloadsFolder"\s*:\s*("(?:[^"\\]|\\.)*")/.exec(settings)?.[1];
    return named === undefined ? undefined : (JSON.parse(named) as string);
  } catch {
    return undefined;
  }
}

/** Finds models in the cache of huggingface_hub: models--OWNER--NAME/snapshots/REVISION/FILE. llama.cpp uses the same cache. */
async function ofHuggingFace(env: Environment, home: string): Promise<FoundModel[]> {
  const cache = env["XDG_CACHE_HOME"] || join(home, ".cache");
  const hfHome = env["HF_HOME"];
  const roots = [
    env["HF_HUB_CACHE"],
    env["HUGGINGFACE_HUB_CACHE"],
    hfHome && join(hfHome, "hub"),
    join(cache, "huggingface", "hub"),
    env["LLAMA_CACHE"],
  ];
  const found = await Promise.all(given(roots).map((root) => ggufsBelow("huggingface", root, hubName)));
  return found.flat().filter(({ name }) => name !== "");
}

function hubName(path: string): string {
  const match = /[\\/]models--([^\\/]+)[\\/]snapshots[\\/][^\\/]+[\\/](.+)$/.exec(path);
  return match === null ? "" : `${match[1]?.replaceAll("--", "/")}/${match[2]?.split(sep).join("/")}`;
}

/** Finds models in llama.cpp's older cache, a folder without subfolders. */
async function ofLlamaCpp(env: Environment, home: string): Promise<FoundModel[]> {
  const roots = [env["LLAMA_CACHE"], join(env["XDG_CACHE_HOME"] || join(home, ".cache"), "llama.cpp")];
  const found = await Promise.all(given(roots).map((root) => ggufsBelow("llama.cpp", root, (path) => basename(path))));
  return found.flat().filter(({ path }) => hubName(path) === "");
}

async function ggufsBelow(source: FoundModel["source"], folder: string, nameOf: (path: string) => string): Promise<FoundModel[]> {
  const files = (await filesBelow(folder)).filter((path) => isModelFile(basename(path)));
  return (await Promise.all(files.map((path) => entry(source, nameOf(path), path)))).flat();
}

/** Whether a file is a model, or the first part of one. A projector is not a model. */
function isModelFile(name: string): boolean {
  return /\.gguf$/i.test(name) && !/mmproj/i.test(name) && isFirstPart(name);
}

/** The bytes of all files of a model; 0: one of them is missing. */
export async function sizeOf(path: string): Promise<number> {
  const sizes = await Promise.all(partsOf(path).map((part) => stat(part).then((it) => (it.isFile() ? it.size : 0), () => 0)));
  return sizes.includes(0) ? 0 : sizes.reduce((sum, each) => sum + each, 0);
}

/** The entry of a model. It is left out if a file is missing. */
async function entry(source: FoundModel["source"], name: string, path: string): Promise<FoundModel[]> {
  const size = await sizeOf(path);
  if (size === 0) return [];
  const facts = await readFacts(path);
  const { contextLength } = facts;
  const quantization = quantOf(path) || facts.quantization;
  return [{ source, name, path, size, quantization, contextLength, memory: memoryOf(size, facts), default: false }];
}

/** The abilities of a model. They depend on its chat template, on whether it embeds, and on a fitting projector beside it. */
export interface Abilities extends TemplateFacts {
  embeds: boolean;
  sees: boolean;
}

/** Reads up to 32 MiB of the file. Never rejects. */
export async function readAbilities(path: string): Promise<Abilities> {
  const { embeds, width } = await readFacts(path);
  const folder = dirname(path);
  const projectors = (await readdir(folder).catch(() => [])).filter((name) => /mmproj.*\.gguf$/i.test(name));
  const widths = projectors.map(async (name) => (await readFacts(join(folder, name))).width);
  const sees = width > 0 && !embeds && (await Promise.all(widths)).includes(width);
  return { ...(await readTemplate(path)), embeds, sees };
}

/**
 * Reads a small file of another program; "" if it can't be read. It must be a plain file, because a link may lead to a device
 * that never ends.
 */
async function readText(path: string): Promise<string> {
  try {
    const it = await stat(path);
    return it.isFile() && it.size <= LONGEST_TEXT ? await readFile(path, "utf8") : "";
  } catch {
    return "";
  }
}

/**
 * All files and links to files in a folder and its subfolders. Links to folders are not followed. A folder that can't be read
 * counts as empty.
 */
async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const found: string[] = [];
  for (const it of entries) {
    const path = join(folder, it.name);
    if (it.isDirectory()) found.push(...(await filesBelow(path)));
    else if (it.isFile() || it.isSymbolicLink()) found.push(path);
  }
  return found;
}

function given(values: readonly (string | undefined)[]): string[] {
  return [...new Set(values.filter((value): value is string => value !== undefined && value !== ""))];
}

const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);
