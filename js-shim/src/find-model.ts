// Finds the model of this machine that a user names.
import { catalogModel } from "./catalog.js";
import { readRecord } from "./download.js";
import { parseHubReference, type HubReference } from "./hub.js";
import { findModels, type FoundModel } from "./model-files.js";

/**
 * Finds a model of this machine. `name` is a name that `findModels` shows, alone or after its source (`ollama:qwen3:0.6b`), the
 * name with which `pullModel` downloaded the model (`qwen3-0.6b`, `hf:OWNER/NAME:QUANT`), or the path of the file. A name may end
 * in .gguf. Capital and small letters count as equal. Undefined: there is no such model.
 */
export async function findModel(name: string, models?: readonly FoundModel[]): Promise<FoundModel | undefined> {
  const all = models ?? (await findModels());
  const exact = all.find((model) => namesOf(model).includes(name));
  const typed = name.replace(/\.gguf$/i, "").toLowerCase();
  const found = exact ?? all.find((model) => namesOf(model).some((each) => each.toLowerCase() === typed));
  const hub = catalogModel(name) ?? parseHubReference(name);
  if (found !== undefined || hub === null) return found;
  const places = await Promise.all(all.map(placeOf));
  const fitting = all.filter((model, index) => fits(places[index] as string, model, hub));
  return fitting.find((model) => model.default) ?? fitting[0];
}

/** Ollama itself omits the tag `latest`. */
function namesOf({ source, name, path }: FoundModel): string[] {
  const short = source === "ollama" ? name.replace(/:latest$/, "") : name;
  return [name, short, `${source}:${name}`, `${source}:${short}`, path];
}

/** The origin of a downloaded model, as OWNER/NAME/FILE; "": the origin is another server, or it is unknown. */
async function placeOf({ source, name, path }: FoundModel): Promise<string> {
  if (source === "huggingface") return name;
  if (source === "ollama") return /^(?:hf\.co|huggingface\.co)\/([^/]+\/[^/:]+):/.exec(name)?.[1]?.concat("/") ?? "";
  const url = source === "fm-proxy" ? (await readRecord(path))?.url : undefined;
  const pathname = typeof url === "string" && URL.canParse(url) ? new URL(url).pathname : "";
  const [, repository = "", file = ""] = /\/([^/]+\/[^/]+)\/resolve\/[^/]+\/(.+)$/.exec(pathname) ?? [];
  try {
    return repository === "" ? "" : `${repository}/${decodeURIComponent(file)}`;
  } catch {
    return ""; // this package did not write the file
  }
}

function fits(place: string, { quantization }: FoundModel, { repository, file, quant }: Partial<HubReference>): boolean {
  const isThere = file === undefined ? place.startsWith(`${repository}/`) : place === `${repository}/${file}`;
  return isThere && (quant === undefined || quant.toUpperCase() === quantization);
}
