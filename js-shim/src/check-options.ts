// What createClient and client.on are given: names and types are checked, so that a mistake does not go unnoticed.
import { resolve } from "node:path";
import type { ClientOptions } from "./client.js";
import { invalid } from "./errors.js";
import type { ClientEvents } from "./events.js";
import { RESTART_POLICY } from "./restart.js";
import { isObject } from "./types.js";

/** The kinds of values: `ms` and `count` are integers that are not negative. */
type Kind =
  | "text"
  | "path"
  | "engine"
  | "remote"
  | "flag"
  | "aliases"
  | "ms"
  | "someMs"
  | "dayMs"
  | "count"
  | "threads"
  | "context"
  | "engines"
  | "bytes"
  | "gpu"
  | "restart"
  | "function"
  | "env"
  | "functionOrObject"
  | readonly unknown[];

/** The longest time that Node's timers accept, in ms. With a longer one, a timer fires at once. */
const LONGEST_MS = 2_147_483_647;
/** The longest time that an engine without requests is kept. */
const DAY_MS = 86_400_000;

const KINDS: { readonly [Name in keyof Required<ClientOptions>]: Kind } = {
  helperPath: "text",
  storageDir: "path",
  engine: "engine",
  remote: "remote",
  engineDir: "path",
  model: "path",
  aliases: "aliases",
  modelsDir: "path",
  mmproj: "path",
  draftModel: "path",
  chatTemplate: "path",
  gpu: "gpu",
  gpuDir: "path",
  contextLength: "context",
  threads: "threads",
  idleUnloadMs: "dayMs",
  maxEngines: "engines",
  memoryBudget: "bytes",
  kvCacheDir: "path",
  kvCacheBytes: "count",
  kvCacheFiles: "flag",
  store: "text",
  storeBytes: "count",
  strictParameters: "flag",
  logLevel: ["off", "error", "warn", "info", "debug"],
  onLog: "function",
  env: "env",
  cwd: "path",
  handshakeTimeoutMs: "someMs",
  shutdownTimeoutMs: "ms",
  idleTimeoutMs: "ms",
  restart: "restart",
  spawnPerRequest: [true, false, "auto"],
  checkCompatibility: "flag",
  fallback: "functionOrObject",
  fallbackModel: "text",
  rateLimitPolicy: ["fallback", "retry", "disable"],
  maxConsecutiveRateLimits: "count",
  disableForMs: "ms",
  maxRetryDelayMs: "ms",
  appBundleLaunchMode: ["direct-exec"],
};

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
const isMs = (value: unknown): boolean => isCount(value) && (value as number) <= LONGEST_MS;
const isAliases = (value: unknown): boolean =>
  isObject(value) &&
  Object.entries(value).every(
    ([name, model]) => /^[^,=\0]+$/.test(name) && typeof model === "string" && /^[^,\0]+$/.test(model),
  );
/** Infinity is accepted as a number of crashes. */
const isRestart = (value: unknown): boolean =>
  isObject(value) &&
  Object.entries(value).every(
    ([name, number]) =>
      Object.hasOwn(RESTART_POLICY, name) && (number === undefined || (typeof number === "number" && number >= 0)),
  );
/** An array of different names, or a text with commas between them, as the helper reads it (front/options.c). */
const isEngine = (value: unknown): boolean => {
  const names: unknown[] = Array.isArray(value) ? value : typeof value === "string" ? value.split(",") : [null];
  const fits = names.every((name) => typeof name === "string" && /^[a-z0-9-]{1,32}$/.test(name));
  return fits && names.length > 0 && names.length <= 8 && new Set(names).size === names.length;
};
/** The engine checks the contents. An object that contains itself can't be sent. */
const isRemote = (value: unknown): boolean => {
  try {
    return isObject(value) ? Array.isArray(value["endpoints"]) && JSON.stringify(value) !== "" : isText(value) && value !== "";
  } catch {
    return false;
  }
};
/** A text with a NUL can't be passed to a program. */
const isText = (value: unknown): boolean => typeof value === "string" && !value.includes("\0");
const isEnv = (value: unknown): boolean =>
  isObject(value) &&
  Object.entries(value).every(
    ([name, text]) => /^[^=\0]+$/.test(name) && typeof text !== "object" && isText(String(text)),
  );
const isAtMost = (value: unknown, most: number): boolean => isCount(value) && value !== 0 && (value as number) <= most;
/** The bounds are those of front/options.h. */
const isGpu = (value: unknown): boolean => value === "auto" || value === "off" || isAtMost(value, 100_000);
const isBytes = (value: unknown): boolean =>
  (isCount(value) && value !== 0) || (typeof value === "string" && /^0*[1-9][0-9]{0,9}[KMG]?$/.test(value));
const CHECKS: Record<Exclude<Kind, readonly unknown[]>, [(value: unknown) => boolean, string]> = {
  text: [isText, "a string that has no NUL"],
  engine: [isEngine, "the name of an engine, or an array of up to 8 different ones, of a-z, 0-9 and -"],
  remote: [isRemote, "an object whose `endpoints` is an array, or the path of a file"],
  flag: [(value) => typeof value === "boolean", "true or false"],
  ms: [isMs, `an integer from 0 to ${LONGEST_MS}, in ms`],
  someMs: [(value) => isMs(value) && value !== 0, `an integer from 1 to ${LONGEST_MS}, in ms`],
  dayMs: [(value) => isMs(value) && (value as number) <= DAY_MS, `an integer from 0 to ${DAY_MS}, in ms`],
  path: [(value) => isText(value) && value !== "", "a string that is not empty and has no NUL"],
  restart: [isRestart, `an object with numbers from 0 on: ${Object.keys(RESTART_POLICY).join(", ")}`],
  count: [isCount, "an integer that is not negative"],
  threads: [(value) => isAtMost(value, 512), "an integer from 1 to 512"], // GGML_MAX_N_THREADS of llama.cpp
  context: [(value) => isAtMost(value, 16_777_216), "an integer from 1 to 16,777,216"], // FM_MODEL_CONTEXT_MAX, model.h
  engines: [(value) => isAtMost(value, 8), "an integer from 1 to 8"],
  bytes: [isBytes, 'a number of bytes, or a text such as "512M" or "4G"'],
  gpu: [isGpu, '"auto", "off" or a number of layers from 1 to 100,000'],
  function: [(value) => typeof value === "function", "a function"],
  aliases: [isAliases, "an object with names and models: no comma and no NUL in either, and no = in a name"],
  env: [isEnv, "an object of texts that have no NUL, with names that are not empty and have no = and no NUL"],
  functionOrObject: [
    (value) => typeof value === "function" || (typeof value === "object" && value !== null),
    "a function or an object",
  ],
};

/** Throws an FmError (INVALID_REQUEST) that names the option. `undefined` is the default, as if it were absent. */
export function checkOptions(options: unknown): void {
  if (!isObject(options)) throw invalid("options", "The options must be an object.");
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(KINDS, name)) {
      const meant = elsewhere(name) ?? nearest(name, Object.keys(KINDS), 3) ?? " See ClientOptions.";
      throw invalid(name, `createClient has no option '${name}'.${meant}`);
    }
    if (value === undefined) continue;
    const [fits, what] = checkOf(KINDS[name as keyof ClientOptions]);
    const told = name === "remote" || name === "env" ? "" : `, not ${shown(value)}`; // these options may hold keys
    if (!fits(value)) throw invalid(name, `Invalid option '${name}': it must be ${what}${told}.`);
    if (name === "remote") checkKeys(value);
  }
}

/** Checks the keys in the option `remote`: the helper gets them in variables, and would name those. Errors hold no key. */
function checkKeys(remote: unknown): void {
  const endpoints = isObject(remote) ? (remote["endpoints"] as unknown[]) : [];
  for (const [index, endpoint] of endpoints.entries()) {
    const key = isObject(endpoint) ? endpoint["key"] : undefined;
    if (key === undefined || (typeof key === "string" && /^[!-~]+$/.test(key.trim()))) continue;
    const where = `endpoints[${index}].key`;
    throw invalid("remote", `Invalid option 'remote': ${where} must be a text of ASCII characters without white space.`);
  }
}

/** `path`, seen from the folder `base`, which begins in the working directory. A working directory can be removed. */
function absolutePath(option: string, path: string, base = ""): string {
  try {
    return resolve(base, path);
  } catch {
    const why = `the relative path ${shown(path)} can't be found, because the working directory no longer exists`;
    throw invalid(option, `Invalid option '${option}': ${why}. Name an absolute path.`);
  }
}

/**
 * The options with absolute paths, as they are now: the process may change its working directory later. Relative paths begin in
 * `cwd`; `cwd` and `helperPath` begin in the working directory. A `helperPath` without a slash is a name.
 */
export function withAbsolutePaths(options: ClientOptions): ClientOptions {
  const absolute = ([name, value]: [string, unknown]): [string, unknown] => {
    if (typeof value !== "string" || value === "") return [name, value];
    if (name === "helperPath") return [name, /[/\\]/.test(value) ? absolutePath(name, value) : value];
    // A model may be named by its id.
    const isPath = KINDS[name as keyof ClientOptions] === "path" && name !== "model";
    if (name !== "cwd" && !isPath) return [name, value];
    return [name, absolutePath(name, value, name === "cwd" ? "" : options.cwd)];
  };
  return Object.fromEntries(Object.entries(options).map(absolute)) as ClientOptions;
}

const isCalled = (name: keyof ClientOptions): string => ` Did you mean '${name}'?`;
const ofBody = (member: string): string => ` It is a member of each request's body: ${member}.`;
/** Options of other packages, reduced to lower-case letters, and where each is set here. */
const ELSEWHERE: readonly (readonly [RegExp, string])[] = [
  [/^(n|num)?threads$/, isCalled("threads")],
  [/^(n|num|max)?(ctx|context)(length|size|window)?$/, isCalled("contextLength")],
  [/^cpu(only)?$/, ' The CPU alone computes with { gpu: "off" }.'],
  [/^timeout(ms)?$/, ofBody("fm: { timeout_ms }")],
  [/^max(output|completion)?tokens$/, ofBody("max_output_tokens, or max_completion_tokens in chat")],
  [/^(temperature|instructions|seed)$/, ofBody("the same name")],
  [/^(apikey|baseurl|maxretries)$/, " It is an option of OpenAI's SDK: new OpenAI({ apiKey, baseURL, fetch: client.fetch })."],
];

/** Where to set an option that createClient does not have. */
function elsewhere(name: string): string | undefined {
  const key = name.toLowerCase().replace(/[^a-z]/g, "");
  return ELSEWHERE.find(([pattern]) => pattern.test(key))?.[1];
}

const EVENTS: { readonly [Name in keyof ClientEvents]: true } = { state: true, log: true };

/** Throws an FmError (INVALID_REQUEST) for an event that does not exist, and for a listener that is no function. */
export function checkListener(name: unknown, listener: unknown): void {
  const told = typeof name === "string" ? name : shown(name);
  if (!Object.hasOwn(EVENTS, told)) {
    const known = Object.keys(EVENTS);
    const all = ` It has ${known.map((each) => `'${each}'`).join(" and ")}.`;
    throw invalid("name", `The client has no event '${told}'.${nearest(told, known, 2) ?? all}`);
  }
  if (typeof listener === "function") return;
  throw invalid("listener", `The listener of '${told}' must be a function, not ${shown(listener)}.`);
}

function checkOf(kind: Kind): [(value: unknown) => boolean, string] {
  if (typeof kind === "string") return CHECKS[kind];
  return [(value) => kind.includes(value), kind.map((each) => JSON.stringify(each)).join(" or ")];
}

function shown(value: unknown): string {
  if (typeof value === "number") return String(value); // JSON has neither NaN nor Infinity
  try {
    return JSON.stringify(value)?.slice(0, 100) ?? typeof value;
  } catch {
    return typeof value;
  }
}

/**
 * Asks whether the most similar name was meant, which differs in the fewest letters. Undefined: all names differ in more than
 * `most` letters.
 */
export function nearest(name: string, all: readonly string[], most: number): string | undefined {
  const [best] = all
    .map((known) => ({ known, far: distance(name.toLowerCase(), known.toLowerCase()) }))
    .sort((one, other) => one.far - other.far);
  // In a short name only few letters may differ, because otherwise it would match any other name.
  return best !== undefined && best.far <= Math.min(most, name.length * 0.4) ? ` Did you mean '${best.known}'?` : undefined;
}

/** The number of letters that have to be added, left out or changed (Levenshtein). */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const change = (row[j - 1] as number) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[to.length] as number;
}
