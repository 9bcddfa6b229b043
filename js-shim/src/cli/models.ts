// The commands for model files.
import { readdir, rm, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import {
  findHelper,
  findModels,
  modelsFolder,
  verifyModel,
  type CompatibilityReport,
  type FoundModel,
} from "../index.js";
import { nearest } from "../check-options.js";
import { isFile } from "../file-kind.js";
import {
  catalogModel,
  checkIdle,
  chooseModel,
  defaultModel,
  findModel,
  forgetChoice,
  idOf,
  isFirstPart,
  isUsable,
  lostModel,
  ownModels,
  parseHubReference,
  partsOf,
  readAbilities,
  readFacts,
  searchCatalog,
  sizeOf,
  whyNotGguf,
} from "../later.js";
import { OWN_BUILD } from "../locate.js";
import { NO_MODEL } from "../models-folder.js";
import { about } from "./memory.js";
import { bytes, fail, plain, say, sayJson, table, Usage } from "./output.js";
import type { Arguments } from "./parse.js";

/** The model that a clone is built with. */
const FIRST_TRY = "SmolLM2-135M-Instruct";

/** The advice for a model that is only for a first try; undefined: the model is another one. */
export function betterThan(name: string): string | undefined {
  return name.startsWith(FIRST_TRY) ? "It is for a first try. A better one: npx fm-proxy models pull qwen3-4b" : undefined;
}

/** The models of this machine. In a clone of the repository, they include the models that the clone was built with. */
export async function knownModels(): Promise<FoundModel[]> {
  const models = await findModels();
  const helper = await findHelper().catch(() => null);
  if (helper?.origin !== OWN_BUILD || process.env["FM_PROXY_MODELS_DIR"]) return models;
  const built = await ownModels(join(dirname(helper.executablePath), "..", "models"));
  const others = models.filter(({ path }) => built.every((model) => model.path !== path));
  const chosen = models.find((model) => model.default)?.path ?? built[0]?.path;
  return [...others, ...built.map((model) => ({ ...model, default: model.path === chosen }))];
}

export async function listModels({ options }: Arguments): Promise<number> {
  const models = [];
  for (const model of await knownModels()) models.push({ ...model, ...(await readAbilities(model.path)) });
  const wrong = await whyNotChosen();
  if (options["json"] === true) sayJson(models);
  else if (models.length > 0) {
    const rows = models.map((it) => [
      it.default && modelVariable() === undefined ? "*" : "",
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
    if (wrong !== null) say(`\n${wrong}`);
    const first = models.find((it) => it.default);
    if (!sayVariable() && first !== undefined) {
      say(`\n* ${ANSWERS}`);
      const better = betterThan(first.name);
      if (better !== undefined) say(`  ${better}`);
    }
  } else fail(wrong ?? NO_MODEL);
  return 0;
}

const ANSWERS = "answers where no model is named: npx fm-proxy models use NAME chooses another one";

/** The model that this command's environment names. */
export const modelVariable = (): string | undefined => process.env["FM_PROXY_MODEL"] || undefined;

/**
 * Prints a note if the environment names a model. That model takes precedence over a chosen one. Returns whether the environment
 * names one.
 */
export function sayVariable(): boolean {
  const named = modelVariable();
  if (named !== undefined) say(`\nThe variable FM_PROXY_MODEL names the model that answers: ${plain(named)}`);
  return named !== undefined;
}

/**
 * The reason why the model that a user has chosen or downloaded does not answer, but another one; null: there is no such reason.
 */
export async function whyNotChosen(): Promise<string | null> {
  const folder = modelsFolder();
  const error = await readdir(folder).then(() => null, ({ code }: NodeJS.ErrnoException) => code ?? "");
  if (error !== null && error !== "ENOENT") return `The folder ${plain(folder)} ${unread(error)}.`;
  const lost = await lostModel(folder);
  const advice = "Choose another one: npx fm-proxy models use NAME";
  return lost === null ? null : `The model that was chosen is gone: ${plain(lost)}. ${advice}`;
}

const unread = (code: string): string =>
  `can't be read (${code})${/^E(ACCES|PERM)$/.test(code) ? ". Correct its permissions" : ""}`;

/** What a model does besides answering, by the names of these members. */
const ABILITIES = ["tools", "thinks", "sees", "embeds"] as const;

/** What a user can do if a report says that nothing can answer. undefined: no model is missing, or `detail` says it. */
export async function adviceFor({ reason_code, detail, engines = [] }: CompatibilityReport): Promise<string | undefined> {
  const lacksModel = [reason_code, ...engines.map((engine) => engine.reason_code)].includes("MODEL_NOT_READY");
  if (!lacksModel || detail === NO_MODEL) return undefined;
  return (await ownModels(modelsFolder())).length > 0 ? undefined : NO_MODEL;
}

/** Converts a model name that a user gave to the value of a client's option `model`; undefined: the default model. */
export async function modelOption(option: string | undefined): Promise<string | undefined> {
  const name = option ?? modelVariable();
  if (name === undefined || name === "") return undefined;
  const models = await knownModels();
  const isName = models.some((model) => model.name === name);
  if (!isName && (await isFile(name))) return name;
  const found = await findModel(name, models);
  if (found !== undefined) return found.path;
  if (catalogModel(name) !== undefined || parseHubReference(name) !== null) {
    throw new Usage(`'${name}' is not on this machine. Download it: npx fm-proxy models pull ${name}`);
  }
  const known = models.map((model) => model.name).join(", ");
  const whose = option === undefined ? ", which the variable FM_PROXY_MODEL names" : "";
  const meant = nearest(name, models.map((model) => model.name), 4) ?? "";
  const shown = /[\\/]/.test(name) ? resolve(name) : name;
  throw new Usage(`there is no model and no file '${shown}'${whose}.${meant} ${known === "" ? NO_MODEL : `There are: ${known}`}`);
}

export async function searchModels({ words, options }: Arguments): Promise<number> {
  const [word = ""] = words;
  const found = searchCatalog(word);
  const rows = found.map((it) => [it.name, it.kind, bytes(it.size), about(it.memory), it.licence, it.goodFor]);
  if (options["json"] === true) sayJson(found);
  else if (found.length > 0) say(table([["NAME", "KIND", "SIZE", "MEMORY", "LICENCE", "GOOD FOR"], ...rows]));
  else fail(`no model with a short name fits '${word}' (npx fm-proxy models search lists all). Others are pulled as OWNER/NAME`);
  return found.length > 0 ? 0 : 1;
}

/** The file of the model that answers if no model is named; undefined: this user has none. */
export async function defaultPath(): Promise<string | undefined> {
  return (await knownModels()).find((model) => model.default)?.path;
}

/**
 * Why a file is no whole model: it is a later part of a split model, or other parts of the model are missing. null: the file is
 * whole.
 */
async function whyNotWhole(path: string): Promise<string | null> {
  const parts = partsOf(path);
  if (!isFirstPart(path)) return `is a part of a model: name ${basename(parts[0] as string)}`;
  return (await sizeOf(path)) > 0 ? null : `needs all of its ${parts.length} files beside it`;
}

/** Chooses the model that answers if no model is named, for all applications. */
export async function useOne({ words }: Arguments): Promise<number> {
  const name = words[0] ?? "";
  if (name === "") throw new Usage("'models use' needs NAME");
  const path = resolve((await modelOption(name)) ?? "");
  const read = whyNotGguf(path).catch(({ code }: NodeJS.ErrnoException) => unread(code ?? ""));
  const wrong = (await read) ?? (await whyNotWhole(path));
  if (wrong !== null) throw new Usage(`${path} ${wrong}`);
  if ((await readFacts(path)).embeds) {
    throw new Usage(`'${name}' makes vectors of texts, and no answers. For others: npx fm-proxy models list`);
  }
  if (!(await isUsable(path))) {
    throw new Usage(`'${name}' could not be used when it was tried. To try it again: npx fm-proxy models check ${name}`);
  }
  await chooseModel(path, modelsFolder());
  say(`${plain(path)}\nanswers from now on where no model is named, in each application that has no model of its own.`);
  sayVariable();
  return 0;
}

/** Chooses the first usable model of the folder, if the helper would otherwise take a model that can't be used. */
export async function chooseUsable(folder: string): Promise<void> {
  const usable = await Promise.all((await ownModels(folder)).map(({ path }) => isUsable(path)));
  const path = await defaultModel(folder);
  if (usable.includes(false) && path !== null) await chooseModel(path, folder);
}

export async function removeOne({ words }: Arguments): Promise<number> {
  const named = words[0] ?? "";
  const folder = modelsFolder();
  const found = await findModel(named, await ownModels(folder));
  const id = found === undefined ? named : idOf(found.path); // no model is found for a download that was cut off
  const isOfModel = (file: string): boolean => /\.gguf$/i.test(file) && (idOf(file) === id || file === `mmproj-${id}.gguf`);
  const names = await readdir(folder).catch(() => []);
  const files = names.filter((name) => isOfModel(name.replace(/(\.part)?(\.json|\.lock)?$/, "")));
  if (files.length === 0) throw await notOwn(named, folder);
  await checkIdle(files.map((name) => join(folder, name)));
  const before = await defaultPath();
  for (const name of files) {
    await forgetChoice(join(folder, name), folder);
    await rm(join(folder, name), { force: true });
    if (!/\.(json|lock)$/.test(name)) say(`deleted ${plain(join(folder, name))}`);
  }
  const now = await defaultPath();
  if (now !== before) await chooseUsable(folder);
  if (now !== before) say(now === undefined ? NO_MODEL : `${plain(idOf(now))} ${ANSWERS}`);
  return 0;
}

/** Makes the error for a model that belongs to another program, such as Ollama. */
async function notOwn(named: string, folder: string): Promise<Usage> {
  const own = (await ownModels(folder)).map(({ name }) => name).join(", ");
  return new Usage(`there is no model '${named}' in ${folder}${own === "" ? "" : `. There are: ${own}`}`);
}

export async function verifyAll({ words, options }: Arguments): Promise<number> {
  const [only] = words;
  const own = await ownModels(modelsFolder());
  const wanted = only === undefined ? undefined : await findModel(only, own);
  const models = only === undefined ? own : own.filter((model) => model === wanted);
  if (only !== undefined && models.length === 0) throw await notOwn(only, modelsFolder());
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

/** All files of a model in the user's own folder. */
async function filesOf(path: string): Promise<string[]> {
  const projector = join(dirname(path), `mmproj-${idOf(path)}.gguf`);
  return [...partsOf(path), ...((await stat(projector).catch(() => null)) === null ? [] : [projector])];
}

const VERDICTS = {
  ok: "as it was downloaded",
  unknown: "not downloaded by fm-proxy, so there is nothing to compare it with",
  damaged: "DAMAGED: it differs from what was downloaded. Delete it (npx fm-proxy models rm NAME) and pull it again",
};
