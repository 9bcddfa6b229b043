// The working parts of a client: the helper, and what each request passes on its way to it.
import type { ClientOptions } from "./client.js";
import {
  calibrate,
  decide,
  type Calibration,
  type CalibrationExample,
  type DecidedAll,
  type DecideParams,
  type DecideQuestion,
} from "./decide.js";
import { helperEnvironment } from "./environment.js";
import type { Events, StateChange } from "./events.js";
import { createFetch } from "./fetch.js";
import { Compatibility, reasonOf, type CheckOptions, type CompatibilityReport } from "./gate.js";
import { generate, type Generated, type GenerateParams } from "./generate.js";
import { Guard } from "./guard.js";
import { Helper } from "./helper.js";
import type { SpawnOptions } from "./process.js";
import { RATE_LIMIT_OPTIONS, RateLimiter } from "./ratelimit.js";
import { discardCopies } from "./relocate.js";
import { RESTART_POLICY } from "./restart.js";
import { spawnOptions } from "./start.js";
import type { RequestOptions, Transport } from "./types.js";

/** The working part of a client; made by the first call that needs it. */
export class Core {
  /** The transport to the helper, without the host's fallback. */
  readonly transport: Transport;
  /** The result of {@link createFetch}. */
  readonly fetch: typeof globalThis.fetch;
  readonly #helper: Helper;
  readonly #gate: Compatibility;
  readonly #withFallback: Transport;

  /** Makes the working part of a client. `withFallback` is this object's transport with the host's fallback, if there is one. */
  constructor(options: ClientOptions, events: Events, withFallback: Transport) {
    const limiter = new RateLimiter({ ...RATE_LIMIT_OPTIONS, ...given(options, Object.keys(RATE_LIMIT_OPTIONS)) });
    const handshakeTimeoutMs = options.handshakeTimeoutMs ?? 5000;
    this.#helper = new Helper({
      spawnOptions: async () => {
        const made = await spawnOptions(options, helperEnvironment(process.env, options.env));
        return { ...made, stderr: stderrOf(options, events) };
      },
      discardCopy: async () => {
        if (options.storageDir !== undefined) await discardCopies(options.storageDir);
      },
      handshakeTimeoutMs,
      shutdownTimeoutMs: options.shutdownTimeoutMs ?? 2000,
      idleTimeoutMs: options.idleTimeoutMs ?? 300_000,
      storesInMemory: () => options.storeBytes !== 0 && settingOf(options, "store", "FM_PROXY_STORE") === undefined,
      restart: { ...RESTART_POLICY, ...given(options.restart ?? {}, Object.keys(RESTART_POLICY)) },
      spawnPerRequest: options.spawnPerRequest ?? "auto",
      onState: (state) => events.changeState(state, this.#reason()),
    });
    const engine = settingOf(options, "engine", "FM_PROXY_ENGINE");
    this.#gate = new Compatibility(this.#helper, events, { engine, timeoutMs: handshakeTimeoutMs, limiter });
    const checks = options.checkCompatibility ?? true;
    this.transport = new Guard({ helper: this.#helper, gate: this.#gate, limiter, events, checks });
    this.#withFallback = withFallback;
    this.fetch = createFetch(withFallback, isStrict(options));
  }

  /** {@inheritDoc Helper.renew} */
  renew(): void {
    this.#helper.renew();
  }

  /** {@inheritDoc Client.generate} */
  generate<T>(params: GenerateParams<T>, options?: RequestOptions): Promise<Generated<T>> {
    return generate(params?.fallback === undefined ? this.#withFallback : this.transport, params, options);
  }

  /** {@inheritDoc Client.decide} */
  decide<const Questions extends Record<string, DecideQuestion>>(
    params: DecideParams<Questions>,
    options?: RequestOptions,
  ): Promise<DecidedAll<Questions>> {
    return decide(this.#withFallback, params, options);
  }

  /** {@inheritDoc Client.calibrate} */
  calibrate(examples: readonly CalibrationExample[]): Calibration {
    return calibrate(examples);
  }

  /** {@inheritDoc Compatibility.check} */
  check(options?: CheckOptions): Promise<CompatibilityReport> {
    return this.#gate.check(options);
  }

  /** {@inheritDoc Client.close} */
  close(): Promise<void> {
    return this.#helper.close();
  }

  /** The reason for the present state; empty if there is none. */
  #reason(): Omit<StateChange, "state"> {
    const error = this.#gate.lacksHelper();
    return error === null || error.code === "CLOSED" ? {} : { reason_code: reasonOf(error), detail: error.detail };
  }
}

/** Whether the helper refuses unknown parameters. The option decides, or else the variable. */
function isStrict(options: ClientOptions): boolean {
  return options.strictParameters ?? variableOf(options, "FM_PROXY_STRICT_PARAMETERS") === "1";
}

/** The value of an option that the helper gets: the caller's, or else the variable's. */
function settingOf(options: ClientOptions, name: "engine" | "store", variable: `FM_PROXY_${string}`): string | undefined {
  const value = options[name] ?? variableOf(options, variable);
  return value === "" || value === undefined ? undefined : String(value);
}

/** The value of one of the helper's own variables in its environment. */
function variableOf({ env }: ClientOptions, name: `FM_PROXY_${string}`): string | undefined {
  return env?.[name] ?? process.env[name];
}

/** The named options that have a value. */
function given(options: object, names: readonly string[]): Record<string, never> {
  const entries = Object.entries(options).filter(([name, value]) => names.includes(name) && value !== undefined);
  return Object.fromEntries(entries) as Record<string, never>;
}

/** The receiver of the log: `onLog` and the listeners, or else standard error. Listeners may be added and removed at any time. */
function stderrOf({ onLog, logLevel }: ClientOptions, events: Events): SpawnOptions["stderr"] {
  const tell = (text: string): unknown => {
    events.emit("log", text);
    return onLog?.(text);
  };
  const unheard = logLevel === undefined ? "ignore" : "inherit";
  return () => (onLog === undefined && !events.has("log") ? unheard : tell);
}
