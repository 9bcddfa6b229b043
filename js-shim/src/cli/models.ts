// The commands for model files.
import { rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { findModels, modelsFolder, pullModel, verifyModel, type CompatibilityReport } from "../index.js";
import { bytes, fail, plain, ProgressLine, say, sayJson, table, Usage } from "./output.js";
import type { Arguments } from "./parse.js";

export async function listModels({ options }: Arguments): Promise<number> {
  const models = await findModels();
  if (options["json"] === true) sayJson(models);
  else if (models.length > 0) {
    say(table([["NAME", "SOURCE", "SIZE", "FILE"], ...models.map((it) => [it.name, it.source, bytes(it.size), it.path])]));
  } else fail(`there is no model. ${HOW_TO_GET_ONE}`);
  return 0;
}

/** For who has no model. */
export const HOW_TO_GET_ONE =
  "Download one: fm-proxy models pull hf:OWNER/NAME/FILE.gguf, with the names of a page on huggingface.co.";

/** Whether a model file would help where `report` says that nothing can answer. */
export function lacksModel({ reason_code, engines = [] }: CompatibilityReport): boolean {
  return [reason_code, ...engines.map((engine) => engine.reason_code)].includes("MODEL_NOT_READY");
}

/** What the option `model` of a client has to be for a model that a user names; undefined: the default one. */
export async function modelOption(name: string | undefined): Promise<string | undefined> {
  if (name === undefined) return undefined;
  const models = await findModels();
  const found = models.find((model) => [model.name, `${model.source}:${model.name}`, model.path].includes(name));
  if (found !== undefined) return found.path;
  if ((await stat(name).catch(() => null))?.isFile() === true) return name;
  const known = models.map((model) => model.name).join(", ");
  throw new Usage(`there is no model and no file '${name}'. ${known === "" ? HOW_TO_GET_ONE : `There are: ${known}`}`);
}

export async function pullOne({ words, options }: Arguments): Promise<number> {
  const line = new ProgressLine();
  const stop = new AbortController();
  const interrupt = (): void => stop.abort(new Error("Stopped. The same command goes on from here."));
  process.once("SIGINT", interrupt);
  const begun = performance.now();
  let first = -1;
  try {
    const model = await pullModel(words[0] ?? "", {
      sha256: options["sha256"] as string | undefined,
      signal: stop.signal,
      onProgress: ({ received, total }) => {
        if (first < 0) first = received;
        const rate = (received - first) / Math.max(0.001, (performance.now() - begun) / 1000);
        const share = total === undefined ? "" : ` of ${bytes(total)} (${Math.floor((100 * received) / total)} %)`;
        line.update(`${bytes(received)}${share}, ${bytes(rate)}/s`);
      },
    });
    line.end();
    if (options["json"] === true) sayJson(model);
    else say(`${model.id}  ${bytes(model.size)}  sha256 ${model.sha256}\n${model.path}`);
    return 0;
  } finally {
    line.end();
    process.off("SIGINT", interrupt);
  }
}

export async function removeOne({ words }: Arguments): Promise<number> {
  const path = ownFile(words[0] ?? "");
  if ((await stat(path).catch(() => null)) === null) throw new Usage(`there is no model '${words[0]}' in ${modelsFolder()}`);
  for (const end of ["", ".json", ".part", ".part.json"]) await rm(`${path}${end}`, { force: true });
  say(`deleted ${plain(path)}`);
  return 0;
}

/** A file of the own folder, and of no other. */
function ownFile(id: string): string {
  if (id === "" || /[\\/]/.test(id) || id.startsWith(".")) throw new Usage(`'${id}' is not the id of a downloaded model`);
  return join(modelsFolder(), `${id}.gguf`);
}

export async function verifyAll({ words, options }: Arguments): Promise<number> {
  const [only] = words;
  const own = (await findModels()).filter(({ source }) => source === "fm-proxy");
  const models = own.filter(({ name }) => only === undefined || only === name);
  if (only !== undefined && models.length === 0) throw new Usage(`there is no model '${only}' in ${modelsFolder()}`);
  const results = [];
  for (const { name, path } of models) {
    const { state, sha256 } = await verifyModel(path);
    results.push({ name, state, sha256, path });
    if (options["json"] !== true) say(`${plain(name)}: ${VERDICTS[state]}`);
  }
  if (options["json"] === true) sayJson(results);
  return results.some(({ state }) => state === "damaged") ? 1 : 0;
}

const VERDICTS = {
  ok: "as it was downloaded",
  unknown: "not downloaded by fm-proxy, so there is nothing to compare it with",
  damaged: "DAMAGED: it differs from what was downloaded. Delete it and download it again",
};
