// createClient: options, the helper process, and the surface that hosts call.
import { ChatCompletions } from "./chat.js";
import { Compatibility } from "./compatibility.js";
import { Completions } from "./completions.js";
import { Embeddings } from "./embeddings.js";
import { createFetch } from "./fetch.js";
import { Helper, RESTART_POLICY, type RestartPolicy } from "./helper.js";
import { findHelper } from "./locate.js";
import { Models } from "./models.js";
import { SWITCHES, VALUES } from "./options.js";
import type { SpawnOptions } from "./process.js";
import { Responses } from "./responses.js";
import { withoutOk } from "./stream.js";
import type { Capabilities, JsonObject, Pong, Transport } from "./types.js";

/** Options of {@link createClient}. All of them have a default. */
export interface ClientOptions {
  /** The helper program. Default: `FM_PROXY_PATH`, the platform's package, or this repository's build. */
  helperPath?: string | undefined;
  /** The engine: `llama`, `apple`, `remote` or `fake`. */
  engine?: string | undefined;
  /** The folder with the engine programs, when they are not beside the helper. */
  engineDir?: string | undefined;
  /** A model file's path, or the id of a model in `modelsDir`. */
  model?: string | undefined;
  /** The folder with the models. */
  modelsDir?: string | undefined;
  /** A projector's file (GGUF), with which the default model sees images. Default: one that fits, beside the model's. */
  mmproj?: string | undefined;
  /** A file with a chat template in Jinja, in place of the model's own. */
  chatTemplate?: string | undefined;
  /** The file where responses are stored, for later helpers too. Default: memory, as long as the helper runs. */
  store?: string | undefined;
  /** How many bytes the store takes; 0: nothing is stored. */
  storeBytes?: number | undefined;
  /** Refuses requests with parameters that no one knows. Default: they are ignored and reported. */
  strictParameters?: boolean | undefined;
  /** What the helper and its engine log, to its standard error; default: nothing. */
  logLevel?: string | undefined;
  /**
   * Gets the log text. Default: it goes to this process's standard error when `logLevel` is set. What it throws, or
   * rejects with, is a warning of Node's, and ends nothing.
   */
  onLog?: ((text: string) => void | Promise<void>) | undefined;
  /** More environment variables for the helper, which otherwise gets only a few harmless ones. */
  env?: Record<string, string> | undefined;
  /** The helper's working directory. */
  cwd?: string | undefined;
  /** How long a fresh helper may take to answer at all. Default: 5000. */
  handshakeTimeoutMs?: number | undefined;
  /** How long `close` waits before it ends the helper by force. Default: 2000. */
  shutdownTimeoutMs?: number | undefined;
  /** When crashes end the patience with a helper. */
  restart?: Partial<RestartPolicy> | undefined;
}

/** A local language model with OpenAI's API. Made by {@link createClient}. */
export class Client {
  /** OpenAI's Responses API. */
  readonly responses: Responses;
  /** OpenAI's Chat Completions API. */
  readonly chat: { readonly completions: ChatCompletions };
  /** OpenAI's older Completions API: text that goes on from a prompt. */
  readonly completions: Completions;
  /** OpenAI's Embeddings API. */
  readonly embeddings: Embeddings;
  /** The models at hand. */
  readonly models: Models;
  /** Whether this machine can answer requests. */
  readonly compatibility: Compatibility;
  /** What the helper can do. Loads no model. */
  readonly capabilities: { get(): Promise<Capabilities> };
  /** Whether the helper lives. */
  readonly health: { ping(): Promise<Pong> };
  /** A `fetch` for stock SDKs: any base URL will do, and nothing leaves the process. */
  readonly fetch: typeof globalThis.fetch;
  readonly #helper: Helper;

  /** @internal */
  constructor(options: ClientOptions) {
    const helper = new Helper({
      spawnOptions: () => spawnOptions(options),
      handshakeTimeoutMs: options.handshakeTimeoutMs ?? 5000,
      shutdownTimeoutMs: options.shutdownTimeoutMs ?? 2000,
      restart: { ...RESTART_POLICY, ...options.restart },
    });
    this.#helper = helper;
    this.responses = new Responses(helper);
    this.chat = { completions: new ChatCompletions(helper) };
    this.completions = new Completions(helper);
    this.embeddings = new Embeddings(helper);
    this.models = new Models(helper);
    this.compatibility = new Compatibility(helper, options.engine ?? process.env["FM_PROXY_ENGINE"]);
    this.capabilities = { get: async () => (await control(helper, "capabilities.get")) as Capabilities };
    this.health = { ping: async () => (await control(helper, "health.ping")) as JsonObject as unknown as Pong };
    this.fetch = createFetch(helper, isStrict(options));
  }

  /** Ends the helper, and resolves when it is gone. Calls under way are cancelled; later ones are rejected. */
  close(): Promise<void> {
    return this.#helper.close();
  }

  /** For `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Makes a client. The helper is started by its first call, not here. */
export function createClient(options: ClientOptions = {}): Client {
  return new Client(options);
}

const CONTROL_TIMEOUT_MS = 10_000;

/** A call that a healthy helper answers at once. */
async function control(transport: Transport, method: string): Promise<JsonObject> {
  return withoutOk(await transport.call(method, {}, { timeoutMs: CONTROL_TIMEOUT_MS }).result);
}

/** What the helper sees of the host's environment, besides `FM_*`. Nothing in it is secret. The README lists it. */
export const ENVIRONMENT: ReadonlySet<string> = new Set([
  "PATH",
  "HOME",
  "TMPDIR",
  "TEMP",
  "TMP",
  "LANG",
  "LC_ALL",
  "LC_CTYPE",
  "TZ",
  "XDG_CACHE_HOME",
  "XDG_CONFIG_HOME",
  "XDG_DATA_HOME",
  "XDG_RUNTIME_DIR",
  "SYSTEMROOT",
  "SYSTEMDRIVE",
  "WINDIR",
  "COMSPEC",
  "PATHEXT",
  "USERPROFILE",
  "APPDATA",
  "LOCALAPPDATA",
  "NUMBER_OF_PROCESSORS",
  "PROCESSOR_ARCHITECTURE",
]);

/** The helper's environment: a few variables of the host's, and those that the caller adds. */
export function helperEnvironment(host: NodeJS.ProcessEnv, extra: Record<string, string> = {}): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(host)) {
    const upper = name.toUpperCase();
    if (value !== undefined && (ENVIRONMENT.has(upper) || upper.startsWith("FM_"))) env[name] = value;
  }
  return { ...env, ...extra };
}

/** Whether the helper refuses what it does not know: the option, or else the variable. */
function isStrict(options: ClientOptions): boolean {
  return options.strictParameters ?? helperEnvironment(process.env, options.env).FM_PROXY_STRICT_PARAMETERS === "1";
}

function spawnOptions(options: ClientOptions): SpawnOptions {
  const env = helperEnvironment(process.env, options.env);
  const args = ["--stdio"];
  const settings: string[] = [];
  for (const [name, flag, variable] of SWITCHES) {
    if (options[name] === true) args.push(flag);
    if (options[name] === false) delete env[variable];
  }
  for (const [name, flag, variable] of VALUES) {
    const value = options[name];
    const fromEnv = env[variable];
    if (value !== undefined) args.push(flag, String(value));
    if (value !== undefined) settings.push(`${name} ${JSON.stringify(value)}`);
    else if (fromEnv !== undefined && fromEnv !== "") settings.push(`${variable} ${JSON.stringify(fromEnv)}`);
  }
  return {
    ...findHelper({ option: options.helperPath }),
    args,
    settings,
    env,
    cwd: options.cwd,
    stderr: options.onLog ?? (options.logLevel === undefined ? "ignore" : "inherit"),
  };
}
