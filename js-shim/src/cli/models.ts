// The commands for model files.
import { readdir, rm, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { findModels, modelsFolder, verifyModel, type CompatibilityReport } from "../index.js";
import { isFile } from "../file-kind.js";
import {
  catalogModel,
  checkIdle,
  chooseModel,
  defaultModel,
  findModel,
  idOf,
  isFirstPart,
  ownModels,
  parseHubReference,
  partsOf,
  readAbilities,
  readFacts,
  searchCatalog,
  sizeOf,
  whyNotGguf,
} from "../later.js";
import { NO_MODEL } from "../models-folder.js";
import { about } from "./memory.js";
import { bytes, fail, plain, say, sayJson, table, Usage } from "./output.js";
import type { Arguments } from "./parse.js";

export async function listModels({ options }: Arguments): Promise<number> {
  const models = [];
  for (const model of await findModels()) models.push({ ...model, ...(await readAbilities(model.path)) });
  if (options["json"] === true) sayJson(models);
  else if (models.length > 0) {
    const named = process.env["FM_PROXY_MODEL"] ?? "";
    const rows = models.map((it) => [
      it.default && named === "" ? "*" : "",
      it.name,
      it.source,
      bytes(it.size),
      about(it.memory) || "-",
      it.quantization ?? "-",
      it.contextLength?.toLocaleString("en") ?? "-",
      ABILITIES.filter((name) => it[name]).join(", ") || "-",
      it.path,
    ]);
    say(table([["", "NAME", "SOURCE", "SIZE", "MEMORY", "WEIGHTS", "CONTEXT", "DOES", "FILE"], ...rows]));
    if (named !== "") say(`\nThe variable FM_PROXY_MODEL is set: where no model is named, ${named} answers`);
    else if (models.some((it) => it.default)) say("\n* answers where no model is named: fm-proxy models use NAME chooses another one");
  } else fail(NO_MODEL);
  return 0;
}

/** What a model does besides answering, by the names of these members. */
const ABILITIES = ["tools", "thinks", "sees", "embeds"] as const;

/** What a user can do if `report` says that nothing can answer; undefined: a model would not help, or `detail` says it. */
export async function adviceFor({ reason_code, detail, engines = [] }: CompatibilityReport): Promise<string | undefined> {
  const lacksModel = [reason_code, ...engines.map((engine) => engine.reason_code)].includes("MODEL_NOT_READY");
  if (!lacksModel || detail === NO_MODEL) return undefined;
  return (await ownModels(modelsFolder())).length > 0 ? undefined : NO_MODEL;
}

/** What the option `model` of a client has to be for a model that a user names; undefined: the default one. */
export async function modelOption(option: string | undefined): Promise<string | undefined> {
  const name = option ?? process.env["FM_PROXY_MODEL"] ?? "";
  if (name === "") return undefined;
  const models = await findModels();
  const found = await findModel(name, models);
  if (found !== undefined) return found.path;
  if (await isFile(name)) return name;
  if (catalogModel(name) !== undefined || parseHubReference(name) !== null) {
    throw new Usage(`'${name}' is not on this machine: npx fm-proxy models pull ${name} downloads it`);
  }
  const known = models.map((model) => model.name).join(", ");
  const whose = option === undefined ? ", which the variable FM_PROXY_MODEL names" : "";
  throw new Usage(`there is no model and no file '${name}'${whose}. ${known === "" ? NO_MODEL : `There are: ${known}`}`);
}

export async function searchModels({ words, options }: Arguments): Promise<number> {
  const [word = ""] = words;
  const found = searchCatalog(word);
  const rows = found.map((it) => [it.name, it.kind, bytes(it.size), about(it.memory), it.licence, it.goodFor]);
  if (options["json"] === true) sayJson(found);
  else if (found.length > 0) say(table([["NAME", "KIND", "SIZE", "MEMORY", "LICENCE", "GOOD FOR"], ...rows]));
  else fail(`no model with a short name fits '${word}'. All others are pulled by the name of their repository, OWNER/NAME`);
  return found.length > 0 ? 0 : 1;
}

/** The file that answers where nobody names a model; undefined: none of this user's. */
export async function defaultPath(): Promise<string | undefined> {
  return (await findModels()).find((model) => model.default)?.path;
}

/** What is wrong with a file as one of several, or of one. */
async function whyNotWhole(path: string): Promise<string | null> {
  const parts = partsOf(path);
  if (!isFirstPart(path)) return `is a part of a model: name ${basename(parts[0] as string)}`;
  return (await sizeOf(path)) > 0 ? null : `needs all of its ${parts.length} files beside it`;
}

/** Chooses the model that answers where nobody names one, for all applications. */
export async function useOne({ words }: Arguments): Promise<number> {
  const name = words[0] ?? "";
  const path = resolve((await modelOption(name)) ?? "");
  const wrong = (await whyNotGguf(path)) ?? (await whyNotWhole(path));
  if (wrong !== null) throw new Usage(`${path} ${wrong}`);
  if ((await readFacts(path)).embeds) throw new Usage(`'${name}' makes vectors of texts, and no answers`);
  await chooseModel(path, modelsFolder());
  say(`${plain(path)}\nanswers from now on where no model is named, in each application that has no model of its own.`);
  return 0;
}

export async function removeOne({ words }: Arguments): Promise<number> {
  const named = words[0] ?? "";
  const folder = modelsFolder();
  const found = await findModel(named, await ownModels(folder));
  const id = found === undefined ? named : idOf(found.path); // a download that was cut off is no model
  const isOfModel = (file: string): boolean => /\.gguf$/i.test(file) && (idOf(file) === id || file === `mmproj-${id}.gguf`);
  const names = await readdir(folder).catch(() => []);
  const files = names.filter((name) => isOfModel(name.replace(/(\.part)?(\.json|\.lock)?$/, "")));
  if (files.length === 0) throw new Usage(`there is no model '${named}' in ${folder}`);
  await checkIdle(files.map((name) => join(folder, name)));
  const before = await defaultModel(folder);
  for (const name of files) {
    await rm(join(folder, name), { force: true });
    if (!/\.(json|lock)$/.test(name)) say(`deleted ${plain(join(folder, name))}`);
  }
  const now = await defaultModel(folder);
  const how = "answers now where no model is named: npx fm-proxy models use NAME chooses another one";
  if (now !== before) say(now === null ? NO_MODEL : `${plain(idOf(now))} ${how}`);
  return 0;
}

export async function verifyAll({ words, options }: Arguments): Promise<number> {
  const [only] = words;
  const own = await ownModels(modelsFolder());
  const wanted = only === undefined ? undefined : await findModel(only, own);
  const models = only === undefined ? own : own.filter((model) => model === wanted);
  if (only !== undefined && models.length === 0) throw new Usage(`there is no model '${only}' in ${modelsFolder()}`);
  const results = [];
  for (const { name, path } of models) {
    for (const file of await filesOf(path)) {
      const { state, sha256 } = await verifyModel(file);
      results.push({ name, state, sha256, path: file });
      if (options["json"] !== true) say(`${plain(file === path ? name : basename(file))}: ${VERDICTS[state]}`);
    }
  }
  if (options["json"] === true) sayJson(results);
  return results.some(({ state }) => state === "damaged") ? 1 : 0;
}

/** All files of a model in the own folder. */
async function filesOf(path: string): Promise<string[]> {
  const projector = join(dirname(path), `mmproj-${idOf(path)}.gguf`);
  return [...partsOf(path), ...((await stat(projector).catch(() => null)) === null ? [] : [projector])];
}

const VERDICTS = {
  ok: "as it was downloaded",
  unknown: "not downloaded by fm-proxy, so there is nothing to compare it with",
  damaged: "DAMAGED: it differs from what was downloaded. Delete it and download it again",
};
