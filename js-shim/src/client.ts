// createClient: the surface that hosts call. The first call loads what does the work (core.ts).
import { resolve } from "node:path";
import { ChatCompletions } from "./chat.js";
import { checkListener, checkOptions, withAbsolutePaths } from "./check-options.js";
import { Completions } from "./completions.js";
import type { Core } from "./core.js";
import type { Calibration, CalibrationExample, DecidedAll, DecideParams, DecideQuestion } from "./decide.js";
import { Decisions } from "./decisions.js";
import { Embeddings } from "./embeddings.js";
import { FmError } from "./errors.js";
import { Events, type ClientEvents } from "./events.js";
import { FallbackTransport, type Fallback } from "./fallback.js";
import { pullModel } from "./files.js";
import type { CheckOptions, CompatibilityReport } from "./gate.js";
import type { Generated, GenerateParams } from "./generate.js";
import type { HelperLocation } from "./locate.js";
import { Models } from "./models.js";
import type { RateLimitPolicy } from "./ratelimit.js";
import { errorResponse } from "./reply.js";
import { Responses } from "./responses.js";
import type { RestartPolicy } from "./restart.js";
import { Safe } from "./safe.js";
import { toStartError } from "./start-error.js";
import { cancelledError, closedError, withoutOk } from "./stream.js";
import { toFmError } from "./thrown.js";
import type {
  CallOptions,
  Capabilities,
  ChatCreateParams,
  JsonObject,
  Metrics,
  Operation,
  Pong,
  RequestOptions,
  ResponseCreateParams,
  Transport,
} from "./types.js";
import { isObject } from "./types.js";

/** Options of {@link createClient}. All of them have a default. */
export interface ClientOptions {
  /** The helper program. Default: `FM_PROXY_PATH`, the platform's package, or this repository's build. */
  helperPath?: string | undefined;
  /**
   * A folder that belongs to the host, such as VS Code's `globalStorageUri.fsPath`. The platform's package is copied there if the
   * helper can't be run in the place where it is installed.
   */
  storageDir?: string | undefined;
  /**
   * The engine that answers: `"llama"`, `"apple"` or `"remote"`. An array names several engines, in the order in which requests
   * go to them. `"auto"` stands for apple, llama, and remote if the option `remote` is given. Default: `"llama"`; but `"auto"`
   * with `remote`, and on macOS if the option `model` is absent.
   */
  engine?: string | readonly string[] | undefined;
  /**
   * The configuration of the engine `remote`: an object, or the path of a JSON file. An object is not written to a file. Without
   * `engine`, requests go first to a model on this machine; `engine: "remote"` sends all requests to servers.
   */
  remote?: RemoteOptions | string | undefined;
  /** The folder with the engine programs, when they are not beside the helper. */
  engineDir?: string | undefined;
  /**
   * The model: the path of a model file, the id of a model in `modelsDir`, a name that `findModels` shows (`ollama:gemma3`), or
   * the name with which `pullModel` downloaded the model (`qwen3-0.6b`, `hf:OWNER/NAME`). A request to this client may use the
   * same name in its `model`. Default: the model that `models use` chose, or the first one.
   */
  model?: string | undefined;
  /**
   * Other names of models, for code that contains the name of a cloud model: `{ "gpt-4o": "default" }`. The name `*` stands for
   * every name that is neither a model's nor an alias. The default model always has the names `default` and `local`.
   */
  aliases?: Record<string, string> | undefined;
  /** The folder with the models. */
  modelsDir?: string | undefined;
  /**
   * The file of a projector (GGUF), with which the default model sees images. Default: a fitting projector beside the model's
   * file.
   */
  mmproj?: string | undefined;
  /** The file (GGUF) of a much smaller model with the default model's vocabulary. Its guesses may make answers faster. */
  draftModel?: string | undefined;
  /** A file with a chat template in Jinja, in place of the model's own. */
  chatTemplate?: string | undefined;
  /**
   * How much of the model a GPU computes: `"auto"`, as many of its layers as fit; a number of layers; or `"off"`: the CPU
   * computes all layers. A GPU is used if the package `@node-llama-cpp/linux-x64-vulkan` is installed, in the version that
   * docs/gpu.md names. Default: `"auto"`.
   */
  gpu?: "auto" | "off" | number | undefined;
  /** The folder of `libggml-vulkan.so`. Default: the folder in the package, if the package is installed. */
  gpuDir?: string | undefined;
  /**
   * The context of the engine llama in tokens, input and output together: 1 to 16,777,216. An embedding model never has a longer
   * context than the one that it was trained for. Default: the model's own context, at most 8,192.
   */
  contextLength?: number | undefined;
  /**
   * Compute threads of the engine llama: 1 to 512, but at most as many as the processors that the engine may use. Default: one
   * per core.
   */
  threads?: number | undefined;
  /**
   * After this time without a request, a model's engine ends, and the next request loads the model again; 0: never. Default:
   * 600000.
   */
  idleUnloadMs?: number | undefined;
  /** How many models may be loaded at once, each in its own engine process: 1 to 8. Default: 3. */
  maxEngines?: number | undefined;
  /**
   * How much memory the loaded models may take together: bytes, or a text such as `"512M"` or `"4G"`. A model that takes more is
   * refused. Default: half of the machine's memory; but a single model may take more.
   */
  memoryBudget?: number | string | undefined;
  /**
   * The folder for files with results of an engine, prompts and answers included. A later engine need not compute them again.
   * Default: `fm-proxy/kv` in the user's folder for caches.
   */
  kvCacheDir?: string | undefined;
  /** How many bytes the files in `kvCacheDir` may have together; 0: no files are written. Default: 536870912. */
  kvCacheBytes?: number | undefined;
  /** Whether files are written to `kvCacheDir`. Default: true, except on Windows. */
  kvCacheFiles?: boolean | undefined;
  /** The file where responses are stored, also for later helpers. Default: they are stored in memory, while the helper runs. */
  store?: string | undefined;
  /** How many bytes the store takes; 0: nothing is stored. */
  storeBytes?: number | undefined;
  /** Refuses requests with unknown parameters. Default: such parameters are ignored and reported. */
  strictParameters?: boolean | undefined;
  /** How much the helper and its engine write to the log, which is the helper's standard error. Default: nothing. */
  logLevel?: string | undefined;
  /**
   * Gets the log text. Default: the text goes to this process's standard error if `logLevel` is set. If this function throws or
   * rejects, Node prints a warning, and everything else goes on.
   */
  onLog?: ((text: string) => unknown) | undefined;
  /** More environment variables for the helper. Without this option, it gets only a few harmless ones. */
  env?: Record<string, string> | undefined;
  /** The helper's working directory. */
  cwd?: string | undefined;
  /** How long a new helper may take to answer for the first time. Default: 5000. */
  handshakeTimeoutMs?: number | undefined;
  /** How long `close` waits before it ends the helper by force. Default: 2000. */
  shutdownTimeoutMs?: number | undefined;
  /**
   * After this time without a call, the helper ends, and the next call starts a new one; 0: never. A helper that stores responses
   * in its memory does not end. Default: 300000.
   */
  idleTimeoutMs?: number | undefined;
  /** The reactions to crashes of the helper. */
  restart?: Partial<RestartPolicy> | undefined;
  /** Whether each request gets its own helper. Default, `"auto"`: only after crashes in a row. */
  spawnPerRequest?: boolean | "auto" | undefined;
  /** Whether the client checks that this machine can answer before it sends a request. Default: true. */
  checkCompatibility?: boolean | undefined;
  /**
   * Answers requests if the local model does not: a function, or any OpenAI client. All requests of this client can use it. Its
   * answers have `fm.source` "fallback".
   */
  fallback?: Fallback | undefined;
  /** The model that is requested from a fallback client. Default: the model of the request. */
  fallbackModel?: string | undefined;
  /** What happens after a rate limit of the model. Default: `"fallback"`. */
  rateLimitPolicy?: RateLimitPolicy | undefined;
  /** Rate limits in a row after which no request is sent for `disableForMs`. Default: 3. */
  maxConsecutiveRateLimits?: number | undefined;
  /** Default: 1800000. */
  disableForMs?: number | undefined;
  /** With the policy `"retry"`: the longest pause before the next try. Default: 30000. */
  maxRetryDelayMs?: number | undefined;
  /** How a helper in an app bundle is started. `"direct-exec"` is the only way. */
  appBundleLaunchMode?: "direct-exec" | undefined;
}

/** The configuration of the engine `remote` (docs/remote.md). */
export interface RemoteOptions {
  endpoints: readonly RemoteEndpoint[];
  [member: string]: unknown;
}

/** A server. */
export interface RemoteEndpoint {
  url: string;
  /** The key: only the helper and that engine get it. */
  key?: string | undefined;
  /** The environment variable that has the key. */
  key_env?: string | undefined;
  [member: string]: unknown;
}

/** `client.compatibility`. */
export interface Compatibility {
  /**
   * Whether this machine can answer requests. Loads no model. Never throws. The result is remembered. "Compatible" stays valid
   * until a request fails because an engine or a model is missing. A reason that the helper reports stays valid for five minutes,
   * `OFFLINE` for five seconds. The result that no helper can be started stays valid until `recheck`.
   */
  check(options?: CheckOptions): Promise<CompatibilityReport>;
}

/** A local language model with OpenAI's API. Made by {@link createClient}. */
export class Client {
  /** OpenAI's Responses API. */
  readonly responses: Responses;
  /** OpenAI's Chat Completions API. */
  readonly chat: { readonly completions: ChatCompletions };
  /** OpenAI's older Completions API: text that continues a prompt. */
  readonly completions: Completions;
  /** OpenAI's Embeddings API. */
  readonly embeddings: Embeddings;
  /** OpenAI's Decisions API: questions about a text, answered by likelihoods. */
  readonly decisions: Decisions;
  /** The models that the helper can use. */
  readonly models: Models;
  /** Whether this machine can answer requests. */
  readonly compatibility: Compatibility;
  /** What the helper can do. Loads no model. */
  readonly capabilities: { get(): Promise<Capabilities> };
  /** What the helper has done since it started, and what it does now. */
  readonly metrics: { get(): Promise<Metrics> };
  /** Checks whether the helper is alive. */
  readonly health: { ping(): Promise<Pong> };
  /** A `fetch` for unchanged SDKs. Any base URL works, and nothing leaves the process. */
  readonly fetch: typeof globalThis.fetch;
  /** The same calls in a form that never throws and never rejects. */
  readonly safe: Safe;
  readonly #events = new Events();
  readonly #core: Later;

  /** @internal */
  constructor(given: ClientOptions) {
    checkOptions(given);
    const options = withAbsolutePaths(given);
    const core = new Later(options, this.#events);
    this.#core = core;
    const { withFallback } = core;
    this.responses = new Responses(withFallback);
    this.chat = { completions: new ChatCompletions(withFallback) };
    this.completions = new Completions(withFallback);
    this.embeddings = new Embeddings(withFallback);
    this.decisions = new Decisions(withFallback);
    this.models = new Models(core, async (reference, more) => {
      const { modelsDir = options.env?.["FM_PROXY_MODELS_DIR"] || undefined, cwd } = options;
      const folder = modelsDir === undefined ? undefined : resolve(cwd ?? "", modelsDir);
      const model = await pullModel(reference, { folder, ...more });
      if (model.default) (await core.load()).renew(); // a helper of a clone has the models of the clone
      await core.check({ recheck: true });
      return model;
    });
    this.compatibility = { check: (more) => core.check(more) };
    this.capabilities = { get: async () => (await control(core, "capabilities.get")) as Capabilities };
    this.metrics = { get: async () => (await control(core, "metrics.get")) as JsonObject as unknown as Metrics };
    this.health = { ping: async () => (await control(core, "health.ping")) as JsonObject as unknown as Pong };
    this.fetch = async (input, init) => {
      const loaded = await core.load().catch(toFmError);
      return loaded instanceof FmError ? errorResponse(loaded) : loaded.fetch(input, init);
    };
    this.safe = new Safe({
      responses: (body, more) => this.responses.create(body as Whole<typeof body>, more),
      events: (body, more) => this.responses.stream(body, more),
      chat: (body, more) => this.chat.completions.create(body as Whole<typeof body>, more),
      completions: (body, more) => this.completions.create(body as Whole<typeof body>, more),
      embeddings: (body, more) => this.embeddings.create(body, more),
      decisions: (body, more) => this.decisions.create(body, more),
      generate: (params, more) => this.generate(params, more),
    });
  }

  /**
   * Asks for an answer, and checks it with the host's schema, `sanitize` and `validate`. If the answer is rejected, the model is
   * asked again, with the reason. If no answer passes, `fallback` of the parameters gives the value; without it, the call rejects
   * with an FmError (NO_VALID_ANSWER). Without `fallback` in the parameters, the client's fallback answers if the model can't.
   */
  async generate<T = unknown>(params: GenerateParams<T>, options?: RequestOptions): Promise<Generated<T>> {
    const core = await this.#core.load().catch(toFmError);
    if (!(core instanceof FmError)) return core.generate(params, options);
    if (typeof params?.fallback !== "function") throw core;
    return { value: await params.fallback([]), source: "fallback", rejected: [] };
  }

  /**
   * Answers questions about a text by how likely the model finds each possible answer; generates nothing. This is
   * `decisions.create` with names in place of lists. Without `calibration` the probabilities are the model's own: their order
   * says more than their size.
   */
  async decide<const Questions extends Record<string, DecideQuestion>>(
    params: DecideParams<Questions>,
    options?: RequestOptions,
  ): Promise<DecidedAll<Questions>> {
    return (await this.#core.load()).decide(params, options);
  }

  /**
   * Finds out how the model's probabilities have to be corrected, from answers of `decide` whose right values are known: one
   * factor for each question, and one summand for each answer (vector scaling, a form of logistic regression). About 50 examples
   * are enough; each question needs at least 10. The host keeps the result, and gives it to `decide`. Starts no helper.
   */
  async calibrate(examples: readonly CalibrationExample[]): Promise<Calibration> {
    return (await this.#core.load()).calibrate(examples);
  }

  /**
   * Loads the model and reads the prompt of a request, but generates nothing. The next request that begins with the same prompt
   * is answered sooner. A body with `messages` is a request to Chat Completions, any other one to Responses. Never throws, never
   * rejects, and never asks the fallback: without a local model, or with an engine that can't read ahead, `ok` is false.
   */
  async prewarm(
    body: ResponseCreateParams | ChatCreateParams,
    options?: RequestOptions,
  ): Promise<{ ok: true } | { ok: false; error: FmError }> {
    try {
      const chat = isObject(body) && "messages" in body;
      const params = isObject(body) ? { ...body, generate: false, ...(chat ? {} : { store: false }) } : body;
      const create = chat ? this.safe.chat.completions.create : this.safe.responses.create;
      const result = await create(params as ResponseCreateParams & ChatCreateParams, options);
      return result.ok ? { ok: true } : result;
    } catch (reason) {
      return { ok: false, error: toFmError(reason) }; // a getter of the body threw it
    }
  }

  /**
   * Calls `listener` with each event of this name. The returned function removes the listener.
   *
   * @throws FmError (INVALID_REQUEST) for an event that does not exist, or a listener that is no function
   */
  on<Name extends keyof ClientEvents>(name: Name, listener: (value: ClientEvents[Name]) => unknown): () => void {
    checkListener(name, listener);
    return this.#events.on(name, listener);
  }

  /** Ends the helper, and resolves when the helper has ended. Calls in progress are cancelled; later calls are rejected. */
  close(): Promise<void> {
    return this.#core.close();
  }

  /** Does the same as `close`, but does not wait. For a host's own `dispose`. */
  dispose(): void {
    void this.close();
  }

  /** For `using`. */
  [Symbol.dispose](): void {
    this.dispose();
  }

  /** For `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/**
 * Makes a client. The first call of the client starts the helper.
 *
 * @throws FmError (INVALID_REQUEST) for an option that does not exist, or for an invalid value of an option.
 */
export function createClient(options: ClientOptions = {}): Client {
  return new Client(options);
}

/** The body of a request that is not streamed. */
type Whole<Body> = Body & { stream?: false };

/** The working part of a client. The first call loads it, so a host that never makes a call does not wait for it. */
class Later implements Transport {
  /** This transport with the host's fallback, which answers even if the file can't be loaded. */
  readonly withFallback: Transport;
  readonly #options: ClientOptions;
  readonly #events: Events;
  readonly #closing = new AbortController();
  #core: Core | null = null;
  #loading: Promise<Core> | null = null;
  #closed: Promise<void> | null = null;

  constructor(options: ClientOptions, events: Events) {
    this.#options = options;
    this.#events = events;
    const { fallback, fallbackModel } = options;
    const { signal } = this.#closing;
    this.withFallback = fallback === undefined ? this : new FallbackTransport(this, { fallback, fallbackModel }, signal);
    // `fetch` and `generate` need the file for the fallback too, so it is loaded while files can still be opened.
    if (fallback !== undefined) setImmediate(() => void this.load().catch(() => {})).unref();
  }

  /** {@inheritDoc Transport.call} */
  call(method: string, params: JsonObject, options?: CallOptions): Operation {
    if (this.#core !== null) return this.#core.transport.call(method, params, options);
    let operation: Operation | null = null;
    let cancelled = false;
    const start = (core: Core): Promise<JsonObject> => {
      if (cancelled) throw cancelledError();
      operation = core.transport.call(method, params, options);
      return operation.result;
    };
    const cancel = (): void => {
      cancelled = true;
      operation?.cancel();
    };
    return { result: this.load().then(start), cancel };
  }

  /** Never rejects. */
  async check(options?: CheckOptions): Promise<CompatibilityReport> {
    try {
      return await (await this.load()).check(options);
    } catch (reason) {
      return { compatible: false, reason_code: "SPAWN_FAILED", detail: toFmError(reason).detail };
    }
  }

  /** Rejects with an FmError (SPAWN_FAILED) if the file can't be loaded now. */
  load(): Promise<Core> {
    if (this.#loading !== null) return this.#loading;
    this.#loading = this.#load();
    // `#core` is set only when the load ends: otherwise a new call would overtake the waiting ones.
    this.#loading.then((core) => (this.#core = core)).catch(() => {});
    return this.#loading;
  }

  async #load(): Promise<Core> {
    try {
      const { Core } = await import("./later.js");
      const core = new Core(this.#options, this.#events, this.withFallback);
      if (this.#closed !== null) void core.close();
      return core;
    } catch (reason) {
      this.#loading = null;
      throw toStartError(reason);
    }
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#closing.abort(closedError());
    if (this.#loading === null) return this.#events.changeState("closed");
    const core = await this.#loading.catch(() => null);
    await core?.close();
  }
}

/** A call that a healthy helper answers at once. */
async function control(transport: Transport, method: string): Promise<JsonObject> {
  return withoutOk(await transport.call(method, {}).result);
}

/**
 * Finds the helper that a client with these options starts. If the helper can't be run, its permission is repaired, or it is
 * copied to `storageDir`.
 *
 * @throws FmError (SPAWN_FAILED) with every place that was looked at
 */
export async function findHelper(options: Pick<ClientOptions, "helperPath" | "storageDir"> = {}): Promise<HelperLocation> {
  try {
    return await (await import("./later.js")).findRunnable(options);
  } catch (reason) {
    throw toStartError(reason);
  }
}
