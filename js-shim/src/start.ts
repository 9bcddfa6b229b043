// Decides how a client's helper is started: the program, its arguments and its environment.
import { dirname, join, resolve } from "node:path";
import { catalogModel } from "./catalog.js";
import type { ClientOptions, RemoteOptions } from "./client.js";
import { chosenModel } from "./default-model.js";
import { FmError } from "./errors.js";
import { locateGpuLibrary, locateHelper, OWN_BUILD, type HelperLocation } from "./locate.js";
import { isFile } from "./file-kind.js";
import { findModel } from "./find-model.js";
import { defaultModel, idOf } from "./model-files.js";
import { modelsFolder, type Environment } from "./models-folder.js";
import { SWITCHES, VALUES } from "./options.js";
import type { SpawnOptions } from "./process.js";
import { makeRunnable } from "./relocate.js";
import { isObject } from "./types.js";

/** Finds the helper for `findHelper`. */
export async function findRunnable(
  { helperPath, storageDir, engineDir, cwd }: Pick<ClientOptions, "helperPath" | "storageDir" | "engineDir" | "cwd">,
  path?: string,
): Promise<HelperLocation> {
  const engines = engineDir === undefined ? undefined : resolve(cwd ?? "", engineDir);
  return makeRunnable(locateHelper({ option: helperPath, path }), storageDir, engines);
}

/**
 * Makes the spawn options for a helper, except for the receiver of its log. `env` is the helper's environment, and is changed.
 */
export async function spawnOptions(
  given: ClientOptions,
  env: Record<string, string>,
): Promise<Omit<SpawnOptions, "stderr">> {
  const options = await withModelFile(given, env);
  const location = await findRunnable(options, env["PATH"]);
  const { executablePath, origin } = location;
  // An error about a missing path must show where the helper looked.
  const whole = (path: string): string => resolve(options.cwd ?? "", path);
  const models = options.modelsDir === undefined ? await modelsFor(location, env) : null;
  const args = ["--stdio", ...(models === null ? [] : ["--models-dir", whole(models)])];
  const gpuFolder = wantsGpuFolder(options, env) ? locateGpuLibrary() : null;
  if (gpuFolder !== null) args.push("--gpu-dir", gpuFolder);
  const settings: string[] = [];
  const isNamed = options.modelsDir !== undefined || options.model !== undefined;
  const chosen = isNamed ? null : await chosenFor(location, options.engine, env);
  if (chosen !== null) args.push("--model", chosen);
  else if (asksAppleFirst(options, env)) args.push("--engine", "auto");
  const { FM_PROXY_REMOTE: remote = "" } = env;
  if (options.remote !== undefined) args.push("--remote", remoteArgument(options.remote, env, whole));
  else if (remote !== "") env["FM_PROXY_REMOTE"] = remoteArgument(remote, env, whole);
  for (const [name, flag, variable, given] of SWITCHES) {
    if (options[name] === given) args.push(flag);
    else if (options[name] !== undefined) delete env[variable];
  }
  const told = (value: string, kind: string): string => (isPath(value, kind) ? whole(value) : value);
  for (const [name, flag, variable, kind] of VALUES) {
    if (name === "remote") continue; // its value may have keys, and no error should show them
    const value = options[name];
    const fromEnv = env[variable];
    if (value !== undefined) args.push(flag, told(argumentOf(value), kind));
    if (given[name] !== undefined) settings.push(`${name} ${JSON.stringify(given[name])}`);
    else if (fromEnv !== undefined && fromEnv !== "") {
      env[variable] = told(fromEnv, kind);
      settings.push(`${variable} ${JSON.stringify(fromEnv)}`);
    }
  }
  for (const [name, variable] of OF_LLAMA) {
    const value = options[name];
    if (value === undefined) continue;
    env[variable] = String(value);
    settings.push(`${name} ${value}`);
  }
  return { path: executablePath, origin, args, settings, env, cwd: options.cwd };
}

/**
 * Replaces the name of a model by the path of its file, if `models list` shows this name or the model was downloaded by it.
 * Requests may use the same name as the option or the variable: it is added as an alias to those of the option or its variable.
 * Names that the helper finds itself stay as they are: paths, and ids of a folder that the host names.
 */
export async function withModelFile(options: ClientOptions, env: Environment): Promise<ClientOptions> {
  const { model = env["FM_PROXY_MODEL"] ?? "", modelsDir, engine, aliases, cwd } = options;
  const hasFolder = modelsDir !== undefined || (env["FM_PROXY_MODELS_DIR"] ?? "") !== "";
  if (model === "" || hasFolder || !takesFiles(engine, env)) return options;
  if (await isFile(resolve(cwd ?? "", model))) return options;
  const found = await findModel(model);
  if (found === undefined) {
    if (catalogModel(model) === undefined && !model.startsWith("hf:")) return options;
    const what = `The model ${model} is not on this machine. Download it: npx fm-proxy models pull ${model}`;
    throw new FmError("UNAVAILABLE", what, { reasonCode: "MODEL_NOT_READY" });
  }
  const isId = /[,=]/.test(model) || idOf(found.path) === model; // or the name can't be an alias
  const others = aliases ?? aliasesOf(env["FM_PROXY_ALIASES"] ?? "");
  return { ...options, model: found.path, aliases: isId || others === null ? aliases : { [model]: "default", ...others } };
}

/** The aliases in a list of NAME=VALUE. Null: the list is invalid. The helper reports that. */
function aliasesOf(list: string): Record<string, string> | null {
  if (list === "") return {};
  const pairs = list.split(",").map((pair) => /^([^=]+)=(.+)$/.exec(pair)?.slice(1) ?? []);
  return pairs.every((pair) => pair.length === 2) ? (Object.fromEntries(pairs) as Record<string, string>) : null;
}

/** Whether one of the named engines takes model files. */
const takesFiles = (engine: ClientOptions["engine"], env: Environment): boolean =>
  /^$|\b(auto|llama)\b/.test(String(engine ?? env["FM_PROXY_ENGINE"] ?? ""));

/** Options that the engine `llama` reads from its environment. */
const OF_LLAMA = [
  ["contextLength", "FM_ENGINE_LLAMA_CTX"],
  ["threads", "FM_ENGINE_LLAMA_THREADS"],
] as const;

/**
 * The models folder for a helper that must not use the one beside its own folder: an update of a package replaces all folders in
 * it.
 */
export async function modelsFor(location: HelperLocation, env: Environment): Promise<string | null> {
  const { packagePath, copiedFrom, origin } = location;
  // The helper reads the variable itself, relative to its own working directory.
  if ((env["FM_PROXY_MODELS_DIR"] ?? "") !== "") return null;
  if (packagePath !== undefined) return modelsFolder(env);
  // The folder of the build has a model for a first try.
  if (origin === OWN_BUILD) return (await defaultModel(modelsFolder(env))) === null ? null : modelsFolder(env);
  return copiedFrom === undefined ? null : join(dirname(copiedFrom), "..", "models");
}

/**
 * The model that `models use` chose. Null: none was chosen, the environment names a model, no engine for model files is used, or
 * the host named the program, which has its own models.
 */
export async function chosenFor(
  { packagePath, origin }: HelperLocation,
  engine: ClientOptions["engine"],
  env: Environment,
): Promise<string | null> {
  const isOurs = packagePath !== undefined || origin === OWN_BUILD;
  if (!isOurs || (env["FM_PROXY_MODEL"] ?? "") !== "" || !takesFiles(engine, env)) return null;
  const folder = modelsFolder(env);
  if (isForbidden(folder)) {
    const how = `Start Node with --allow-fs-read=${folder}, or name the folder or the file by the option modelsDir or model`;
    throw new FmError("SPAWN_FAILED", `Node's permission model forbids to read the models folder ${folder}. ${how}.`);
  }
  return chosenModel(folder);
}

/** Whether Node's permission model forbids this process to read the folder. */
function isForbidden(folder: string): boolean {
  const { permission } = process as { permission?: { has(scope: string, reference?: string): boolean } };
  return permission !== undefined && !permission.has("fs.read", folder);
}

/**
 * Whether this is macOS, and no engine, model or server is named. Our own fm-proxy asks Apple's model first in this case. A
 * program that the host named may be another build, which does not.
 */
function asksAppleFirst({ engine, model, remote }: ClientOptions, env: Record<string, string>): boolean {
  const variables = ["FM_PROXY_ENGINE", "FM_PROXY_MODEL", "FM_PROXY_REMOTE"].map((name) => env[name]);
  const isNamed = [engine, model, remote, ...variables].some((value) => value !== undefined && value !== "");
  return process.platform === "darwin" && !isNamed;
}

/** Whether to look for the folder of the GPU's library: it is not named, and the GPU is not switched off. */
function wantsGpuFolder({ gpu, gpuDir }: ClientOptions, env: Record<string, string>): boolean {
  const how = gpu ?? env["FM_PROXY_GPU"];
  return how !== "off" && gpuDir === undefined && (env["FM_PROXY_GPU_DIR"] ?? "") === "";
}

/** The variable with the configuration of the engine `remote`. The helper takes it out of its environment at once. */
const CONFIG = "FM_REMOTE_CONFIG";

/**
 * Makes the argument of --remote. A configuration object is passed only through the helper's environment, with each `key` in it,
 * and each variable of this process that it names as `key_env`. Nothing is written to a file.
 */
function remoteArgument(
  remote: RemoteOptions | string,
  env: Record<string, string>,
  whole: (path: string) => string,
): string {
  if (typeof remote === "string") return remote.startsWith("env:") ? remote : whole(remote);
  const endpoints = remote.endpoints.map((endpoint: unknown, index) => {
    if (!isObject(endpoint)) return endpoint;
    const { key, ...others } = endpoint;
    const named = others["key_env"];
    if (typeof named === "string" && process.env[named] !== undefined) env[named] ??= process.env[named];
    if (typeof key !== "string") return endpoint;
    const variable = `KEY_OF_ENDPOINT_${index + 1}`; // errors name this variable
    env[variable] = key;
    return { ...others, key_env: variable };
  });
  env[CONFIG] = JSON.stringify({ ...remote, endpoints });
  return `env:${CONFIG}`;
}

/** Whether the helper reads a value as a path. A model's name is a path if it has a separator or ends in .gguf. */
function isPath(value: string, kind: string): boolean {
  return kind === "DIR" || kind === "FILE" || (kind === "PATH_OR_ID" && /[\\/]|\.gguf$/.test(value));
}

/** Converts a value to the text that the helper reads. An array becomes a list, and an object becomes a list of NAME=VALUE. */
export function argumentOf(value: string | number | readonly string[] | Record<string, string>): string {
  if (Array.isArray(value)) return value.join(",");
  if (typeof value !== "object") return String(value);
  return Object.entries(value)
    .map(([name, meaning]) => `${name}=${meaning}`)
    .join(",");
}
