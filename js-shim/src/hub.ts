// Models on Hugging Face: parses references, and selects the files of a repository that a reference means.
import { basename } from "node:path";
import { fetchPages, hubEndpoint, type DownloadOptions } from "./download.js";
import { FmError } from "./errors.js";
import { idOf, isFirstPart, partsOf, quantOf } from "./model-files.js";

/** The parts of a reference. */
export interface HubReference {
  /** OWNER/NAME. */
  repository: string;
  /** A branch or a commit. */
  revision: string;
  /** A path in the repository; absent: the file with the quantisation `quant`, or the usual file. */
  file?: string;
  /** A quantisation, such as Q4_K_M. */
  quant?: string;
}

/** A file to download. */
export interface HubFile {
  url: URL;
  /** The file's name in the models folder. */
  name: string;
  size: number;
  /** Null: the hub does not list it, as for small files. */
  sha256: string | null;
}

/** A file as the hub lists it. */
type Listed = Pick<HubFile, "size" | "sha256"> & { path: string };

const GGUF = " Name one that has GGUF files: its name often ends in -GGUF.";
/** The default quantisation. */
const USUAL = "Q4_K_M";
/** If there are several projectors, the first one of these types is used. Most models lose no quality with them. */
const PROJECTORS = ["F16", "BF16", "Q8_0"];
const NAMES = /^(?:hf:)?(\w[\w.-]*\/\w[\w.-]*)(?::([\w.-]+)|\/(.+))?$/;
/** The forms in which Ollama names a model of the hub. */
const WITHOUT_PROTOCOL = /^(?:hf|huggingface)\.co\//;
/** First parts of the hub's paths that are not names of owners. */
const SECTIONS: ReadonlySet<string> = new Set(["collections", "datasets", "models", "organizations", "papers", "spaces"]);
const HOSTS: ReadonlySet<string> = new Set(["huggingface.co", "hf.co"]);

/** `hf:OWNER/NAME/FILE`, `OWNER/NAME:QUANT` and the like, or a link to one of the hub's pages; null: it is neither. */
export function parseHubReference(given: string): HubReference | null {
  const reference = WITHOUT_PROTOCOL.test(given) ? `https://${given}` : given.replace(/\/+$/, "");
  const [, repository = "", quant, file] = NAMES.exec(reference) ?? [];
  if (repository === "") return URL.canParse(reference) ? ofLink(new URL(reference)) : null;
  if (/\.gguf$/i.test(repository)) return null;
  return { repository, revision: "main", ...(quant === undefined ? {} : { quant }), ...(file === undefined ? {} : { file }) };
}

/** /OWNER/NAME, and after it /blob/REVISION/FILE, /resolve/REVISION/FILE or /tree/REVISION. */
function ofLink({ protocol, host, username, password, pathname, searchParams }: URL): HubReference | null {
  if (!/^https?:$/.test(protocol) || username + password !== "") return null;
  if (!HOSTS.has(host) && host !== new URL(hubEndpoint()).host) return null;
  let words: string[];
  try {
    words = pathname.split("/").filter((word) => word !== "").map(decodeURIComponent);
  } catch {
    return null;
  }
  const [owner, title, kind = "", revision = "main", ...path] = words;
  if (owner === undefined || title === undefined || SECTIONS.has(owner)) return null;
  const [name, quant] = title.split(":");
  const file = /^(blob|resolve|raw)$/.test(kind) ? path.join("/") : searchParams.get("show_file_info");
  const known = /^(blob|resolve|raw|tree)$/.test(kind);
  const more = { ...(file ? { file } : {}), ...(quant ? { quant } : {}) };
  return { repository: `${owner}/${name}`, revision: known ? revision : "main", ...more };
}

/** The files of a model in the order of their download. The file that names the model comes last. */
export async function filesOnHub(reference: HubReference, options: DownloadOptions): Promise<HubFile[]> {
  const all = await listFiles(reference, options);
  const chosen = choose(all, reference);
  const names = partsOf(chosen.path);
  const parts = all.filter(({ path }) => names.includes(path));
  if (parts.length < names.length) {
    const what = `${reference.repository} has ${parts.length} of the ${names.length} files of ${chosen.path}.`;
    throw new FmError("UNAVAILABLE", what);
  }
  const files = parts.map((file) => ({ ...file, name: basename(file.path) }));
  const projector = isProjector(chosen.path) ? undefined : projectorOf(all);
  // The helper uses the projector whose name is most similar to the model's name.
  if (projector !== undefined) files.push({ ...projector, name: `mmproj-${idOf(chosen.path)}.gguf` });
  return files.reverse().map(({ path, name, size, sha256 }) => ({ url: addressOn(reference, path), name, size, sha256 }));
}

async function listFiles({ repository, revision }: HubReference, options: DownloadOptions): Promise<Listed[]> {
  const url = new URL(`${hubEndpoint()}/api/models/${repository}/tree/${encodeURIComponent(revision)}?recursive=true`);
  const pages = await fetchPages(url, options).catch((error: FmError) => {
    if (error.code !== "NOT_FOUND") throw error;
    const where = revision === "main" ? "" : ` with a revision ${revision}`;
    const advice = `Check its spelling, capital letters too.${/-GGUF$/i.test(repository) ? "" : GGUF}`;
    throw new FmError("NOT_FOUND", `${url.host} has no repository ${repository}${where}. ${advice}`);
  });
  if (!pages.every(Array.isArray)) throw new FmError("UNAVAILABLE", `${url.host} does not list the files of ${repository}.`);
  return (pages.flat() as ({ path: unknown; size: unknown; lfs?: { oid: unknown } } | null)[])
    .filter((it) => it !== null)
    .map(({ path, size, lfs }) => ({ path: String(path), size: Number(size), sha256: hashOf(lfs?.oid) }))
    .filter(({ path }) => /\.gguf$/i.test(path));
}

const hashOf = (oid: unknown): string | null => (typeof oid === "string" && /^[0-9a-f]{64}$/.test(oid) ? oid : null);

function addressOn({ repository, revision }: HubReference, path: string): URL {
  const words = [revision, ...path.split("/")].map(encodeURIComponent);
  return new URL(`${hubEndpoint()}/${repository}/resolve/${words.join("/")}`);
}

const isModel = (path: string): boolean => isFirstPart(path) && !isProjector(path) && !/imatrix/i.test(path);
const isProjector = (path: string): boolean => /mmproj/i.test(basename(path));

function choose(all: readonly Listed[], { repository, file, quant }: HubReference): Listed {
  const named = file === undefined ? undefined : all.find(({ path }) => path === partsOf(file)[0]);
  if (named !== undefined) return named;
  const models = all.filter(({ path }) => isModel(path) && !isTwice(path, all));
  if (models.length === 0) {
    throw new FmError("NOT_FOUND", `The repository ${repository} has no model in GGUF files.${GGUF}`);
  }
  const wanted = quant?.toUpperCase() ?? USUAL;
  const fitting = file === undefined ? models.filter(({ path }) => quantOf(path) === wanted) : [];
  const candidates = fitting.length > 0 || quant !== undefined || file !== undefined ? fitting : models;
  const [only] = candidates;
  if (only !== undefined && candidates.length === 1) return only;
  const what = candidates.length > 0 ? "has several models" : `has no ${file ?? wanted}`;
  const names = choices(repository, candidates.length > 0 ? candidates : models);
  throw new FmError("INVALID_REQUEST", `${repository} ${what}. Pull one of these: ${names.join(", ")}`);
}

/** Whether the repository also has a split model as one file. */
function isTwice(path: string, all: readonly Listed[]): boolean {
  return partsOf(path).length > 1 && all.some((file) => basename(file.path) === `${idOf(path)}.gguf`);
}

/** Model names that users can type. */
function choices(repository: string, models: readonly Listed[]): string[] {
  const quants = models.map(({ path }) => quantOf(path));
  return models.map(({ path }, index) => {
    const quant = quants[index] ?? "";
    const isUnique = quant !== "" && quants.indexOf(quant) === quants.lastIndexOf(quant);
    return isUnique ? `${repository}:${quant}` : `${repository}/${path}`;
  });
}

function projectorOf(all: readonly Listed[]): Listed | undefined {
  const rank = ({ path }: Listed): number => (PROJECTORS.includes(quantOf(path)) ? PROJECTORS.indexOf(quantOf(path)) : Infinity);
  const found = all.filter(({ path }) => isProjector(path));
  return found.reduce<Listed | undefined>((best, it) => (best !== undefined && rank(best) <= rank(it) ? best : it), undefined);
}
