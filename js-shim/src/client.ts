// createClient: the surface that hosts call. The first call loads what does the work (core.ts).
import { resolve } from "node:path";
import { ChatCompletions } from "./chat.js";
import { checkListener, checkOptions } from "./check-options.js";
import { Completions } from "./completions.js";
import type { Core } from "./core.js";
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
import type { CallOptions, Capabilities, JsonObject, Metrics, Operation, Pong, RequestOptions, Transport } from "./types.js";

/** Options of {@link createClient}. All of them have a default. */
export interface ClientOptions {
  /** The helper program. Default: `FM_PROXY_PATH`, the platform's package, or this repository's build. */
  helperPath?: string | undefined;
  /**
   * A folder of the host's own, such as VS Code's `globalStorageUri.fsPath`: the platform's package is copied there when
   * the helper can't be run where it is installed.
   */
  storageDir?: string | undefined;
  /**
   * The engine that answers: `"llama"`, `"apple"`, `"remote"`, or several in an array, in the order in which requests go to them;
   * `"auto"` is apple, llama, and remote if the option `remote` is given. Default: `"llama"`; `"auto"` with `remote`, and on
   * macOS if the option `model` is absent.
   */
  engine?: string | readonly string[] | undefined;
  /**
   * The configuration of the engine `remote`: an object, which is written to no file, or the path of a JSON file. Without
   * `engine`, a model on this machine comes first; `engine: "remote"` sends all requests to servers.
   */
  remote?: RemoteOptions | string | undefined;
  /** The folder with the engine programs, when they are not beside the helper. */
  engineDir?: string | undefined;
  /**
   * A model file's path, the id of a model in `modelsDir`, a name as `findModels` shows it (`ollama:gemma3`), or, of a model that
   * was downloaded, the name that `pullModel` took (`qwen3-0.6b`, `hf:OWNER/NAME`). A request to this client may have the same
   * name in `model`, for this model. Default: the one that `models use` chose, or the first.
   */
  model?: string | undefined;
  /**
   * Other names of models, for code that has a cloud model's name in it: `{ "gpt-4o": "default" }`. The name `*` is every
   * name that is neither a model's nor an alias. The default model has the names `default` and `local` anyway.
   */
  aliases?: Record<string, string> | undefined;
  /** The folder with the models. */
  modelsDir?: string | undefined;
  /** A projector's file (GGUF), with which the default model sees images. Default: one that fits, beside the model's. */
  mmproj?: string | undefined;
  /** A much smaller model's file (GGUF) with the default model's vocabulary: its guesses may make answers faster. */
  draftModel?: string | undefined;
  /** A file with a chat template in Jinja, in place of the model's own. */
  chatTemplate?: string | undefined;
  /**
   * What computes: `"auto"`, as many of the model's layers as fit on a GPU; a number of layers; or `"off"`, the CPU alone.
   * A GPU is used if the package `@node-llama-cpp/linux-x64-vulkan` is installed, in the version that docs/gpu.md names.
   * Default: `"auto"`.
   */
  gpu?: "auto" | "off" | number | undefined;
  /** The folder of `libggml-vulkan.so`. Default: that of the package, if it is installed. */
  gpuDir?: string | undefined;
  /**
   * The context of the engine llama in tokens, input and output together: 1 to 16,777,216. A model that embeds never has more
   * than it was trained for. Default: the model's own, at most 8,192.
   */
  contextLength?: number | undefined;
  /** Compute threads of the engine llama, 1 to 512, and no more than the processors that it may use. Default: one per core. */
  threads?: number | undefined;
  /** After this time without a request a model's engine ends, and the next request loads it anew; 0: never. Default: 600000. */
  idleUnloadMs?: number | undefined;
  /** How many models are loaded at once, each in its own engine process: 1 to 8. Default: 3. */
  maxEngines?: number | undefined;
  /**
   * How much memory the loaded models may take together: bytes, or a text such as `"512M"` or `"4G"`. A model that takes
   * more is refused. Default: half of the machine's memory, and one model alone may take more.
   */
  memoryBudget?: number | string | undefined;
  /**
   * The folder for what an engine has computed, prompts and answers included, so that the next one need not do it again.
   * Default: `fm-proxy/kv` in the user's folder for caches.
   */
  kvCacheDir?: string | undefined;
  /** How many bytes these files may have together; 0: there are none. Default: 536870912. */
  kvCacheBytes?: number | undefined;
  /** Whether there are such files. Default: true, but on Windows. */
  kvCacheFiles?: boolean | undefined;
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
  onLog?: ((text: string) => unknown) | undefined;
  /** More environment variables for the helper, which otherwise gets only a few harmless ones. */
  env?: Record<string, string> | undefined;
  /** The helper's working directory. */
  cwd?: string | undefined;
  /** How long a fresh helper may take to answer at all. Default: 5000. */
  handshakeTimeoutMs?: number | undefined;
  /** How long `close` waits before it ends the helper by force. Default: 2000. */
  shutdownTimeoutMs?: number | undefined;
  /**
   * After this time without a call the helper ends, and the next call starts it anew; 0: never. One that holds stored
   * responses in its memory stays. Default: 300000.
   */
  idleTimeoutMs?: number | undefined;
  /** What crashes of the helper lead to. */
  restart?: Partial<RestartPolicy> | undefined;
  /** Whether each request gets its own helper. Default, `"auto"`: only after crashes in a row. */
  spawnPerRequest?: boolean | "auto" | undefined;
  /** Whether a request first asks if this machine can answer at all. Default: true. */
  checkCompatibility?: boolean | undefined;
  /**
   * Who answers when the local model does not: a function, or any OpenAI client. It is asked wherever a request is made, and
   * such an answer has `fm.source` "fallback".
   */
  fallback?: Fallback | undefined;
  /** The model that a fallback client is asked for. Default: the one of the request. */
  fallbackModel?: string | undefined;
  /** What a rate limit of the model leads to. Default: `"fallback"`. */
  rateLimitPolicy?: RateLimitPolicy | undefined;
  /** Rate limits in a row after which no request is sent for `disableForMs`. Default: 3. */
  maxConsecutiveRateLimits?: number | undefined;
  /** Default: 1800000. */
  disableForMs?: number | undefined;
  /** With the policy `"retry"`: the longest pause before the next try. Default: 30000. */
  maxRetryDelayMs?: number | undefined;
  /** How a helper in an app bundle is started; `"direct-exec"` is the only way that there is. */
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
   * Whether this machine can answer requests. Looks without loading a model. Never throws. What it finds is remembered:
   * "compatible" as long as requests bear it out, that the model is not there for five minutes, and that no helper can be
   * started until `recheck`.
   */
  check(options?: CheckOptions): Promise<CompatibilityReport>;
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
  /** What the helper has done since it started, and what it does now. */
  readonly metrics: { get(): Promise<Metrics> };
  /** Whether the helper lives. */
  readonly health: { ping(): Promise<Pong> };
  /** A `fetch` for stock SDKs: any base URL will do, and nothing leaves the process. */
  readonly fetch: typeof globalThis.fetch;
  /** The same calls in a form that never throws and never rejects. */
  readonly safe: Safe;
  readonly #events = new Events();
  readonly #core: Later;

  /** @internal */
  constructor(options: ClientOptions) {
    checkOptions(options);
    const core = new Later(options, this.#events);
    this.#core = core;
    const { withFallback } = core;
    this.responses = new Responses(withFallback);
    this.chat = { completions: new ChatCompletions(withFallback) };
    this.completions = new Completions(withFallback);
    this.embeddings = new Embeddings(withFallback);
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
      generate: (params, more) => this.generate(params, more),
    });
  }

  /**
   * An answer that has passed checks: the host's schema, `sanitize` and `validate`. One that does not pass is asked for
   * once more, with the reason; after that comes `fallback`. Rejects with an FmError (NO_VALID_ANSWER) without one. Where the
   * parameters have no `fallback` of their own, the client's is asked in place of the model.
   */
  async generate<T = unknown>(params: GenerateParams<T>, options?: RequestOptions): Promise<Generated<T>> {
    const core = await this.#core.load().catch(toFmError);
    if (!(core instanceof FmError)) return core.generate(params, options);
    if (typeof params?.fallback !== "function") throw core;
    return { value: await params.fallback([]), source: "fallback", rejected: [] };
  }

  /**
   * Calls `listener` when something happens; what it returns ends that.
   *
   * @throws FmError (INVALID_REQUEST) for an event that does not exist, and a listener that is no function
   */
  on<Name extends keyof ClientEvents>(name: Name, listener: (value: ClientEvents[Name]) => unknown): () => void {
    checkListener(name, listener);
    return this.#events.on(name, listener);
  }

  /** Ends the helper, and resolves when it is gone. Calls under way are cancelled; later ones are rejected. */
  close(): Promise<void> {
    return this.#core.close();
  }

  /** The same without waiting, for a host's own `dispose`. */
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
 * Makes a client. The helper is started by its first call, not here.
 *
 * @throws FmError (INVALID_REQUEST) for an option that does not exist, or a value that it can't have.
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
 * The helper that a client with these options starts; its permission is repaired, or it is copied, if it has to be.
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
