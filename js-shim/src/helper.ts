// One helper process at a time: started when it is needed, replaced when it dies.
import { setTimeout as sleep } from "node:timers/promises";
import { FmError, toFmError, type FmErrorCode } from "./errors.js";
import { HelperProcess, type SpawnOptions } from "./process.js";
import { RpcConnection } from "./rpc.js";
import type { CallOptions, JsonObject, Operation, Transport } from "./types.js";
import { PROTOCOL_VERSION } from "./wire.js";

export { PROTOCOL_VERSION };

/** When crashes end the patience with a helper. */
export interface RestartPolicy {
  /** Crashes in a row after which requests fail at once. */
  maxCrashes: number;
  /** The pause before the second restart; it doubles with every further one. */
  firstDelayMs: number;
  maxDelayMs: number;
  /** How long requests then fail before one may try again. */
  coolDownMs: number;
  /** A helper that lived this long has been healthy: the count starts anew. */
  healthyAfterMs: number;
}

/** The policy unless a test says otherwise. */
export const RESTART_POLICY: RestartPolicy = {
  maxCrashes: 5,
  firstDelayMs: 100,
  maxDelayMs: 5000,
  coolDownMs: 30_000,
  healthyAfterMs: 60_000,
};

/** The pause before a start after two crashes or more. Chance keeps many hosts from starting in step. */
export function restartDelay(crashes: number, { firstDelayMs, maxDelayMs }: RestartPolicy): number {
  return Math.min(maxDelayMs, firstDelayMs * 2 ** (crashes - 2)) * (0.5 + Math.random() / 2);
}

/** How a {@link Helper} starts and ends its process. */
export interface HelperOptions {
  /** Makes the spawn options anew for every start; may throw an FmError. */
  spawnOptions: () => SpawnOptions;
  handshakeTimeoutMs: number;
  shutdownTimeoutMs: number;
  restart: RestartPolicy;
}

interface Live {
  process: HelperProcess;
  rpc: RpcConnection;
  /** When the handshake was done; null until then. */
  readySince: number | null;
}

/**
 * Keeps one helper process for all calls: starts it with the first one, checks its version before any other word, starts
 * a new one after a crash, and lets go of Node's event loop while no call waits.
 */
export class Helper implements Transport {
  readonly #options: HelperOptions;
  readonly #closing = new AbortController();
  #live: Live | null = null;
  /** All that were started and are not gone yet, those that were given up included. */
  readonly #processes = new Set<HelperProcess>();
  #starting: Promise<Live> | null = null;
  #closed: Promise<void> | null = null;
  #busy = 0;
  #crashes = 0;
  #lastCrash = "";
  #blockedUntil = 0;

  constructor(options: HelperOptions) {
    this.#options = options;
  }

  /** {@inheritDoc Transport.call} */
  call(method: string, params: JsonObject, options: CallOptions = {}): Operation {
    let sent: { rpc: RpcConnection; id: number } | null = null;
    let over = false;
    let cancelled = false;
    let reject: (error: FmError) => void = () => {};
    const result = new Promise<JsonObject>((resolve, fail) => {
      reject = fail;
      this.#connect()
        .then(({ rpc }) => {
          if (over) return;
          const call = rpc.call(method, params, options.onNotification);
          sent = { rpc, id: call.id };
          call.result.then(resolve, fail);
        })
        .catch((error: unknown) => fail(toFmError(error)));
    });
    const timer =
      options.timeoutMs === undefined
        ? undefined
        : setTimeout(() => {
            reject(new FmError("TIMEOUT", `The helper did not answer ${method} within ${options.timeoutMs} ms.`));
          }, options.timeoutMs);
    this.#setBusy(+1);
    const settle = () => {
      over = true;
      clearTimeout(timer);
      this.#setBusy(-1);
    };
    result.then(settle, settle);
    return {
      result,
      cancel() {
        if (over || cancelled) return;
        cancelled = true;
        if (sent !== null) sent.rpc.cancel(sent.id);
        else {
          over = true;
          reject(new FmError("CANCELLED", "The request was cancelled before it was sent."));
        }
      },
    };
  }

  /** Ends the helper and waits until it is gone. Every call after this is rejected. */
  close(): Promise<void> {
    this.#closed ??= this.#shutDown();
    return this.#closed;
  }

  /** True from the first moment of `close`. */
  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  async #connect(): Promise<Live> {
    if (this.#isClosed) throw closedError();
    if (this.#live?.readySince != null) return this.#live;
    this.#starting ??= this.#start().finally(() => {
      this.#starting = null;
    });
    return this.#starting;
  }

  async #start(): Promise<Live> {
    await this.#backOff();
    // The client may have been closed meanwhile, and nobody would end what is started then.
    if (this.#isClosed) throw closedError();
    const live = this.#spawn();
    try {
      await this.#shakeHands(live);
    } catch (error) {
      live.process.kill();
      throw this.#drop(live, toFmError(error));
    }
    live.readySince = performance.now();
    live.process.setReady();
    return live;
  }

  /** After a crash the next request tries again at once, then with growing pauses, then not for a while. */
  async #backOff(): Promise<void> {
    const { maxCrashes, coolDownMs } = this.#options.restart;
    if (this.#crashes >= maxCrashes) {
      const wait = this.#blockedUntil - performance.now();
      if (wait > 0) {
        throw new FmError(
          "HELPER_UNHEALTHY",
          `The helper failed ${this.#crashes} times in a row; it will be tried again in ${Math.ceil(wait / 1000)} s. ` +
            `The last time: ${this.#lastCrash}`,
        );
      }
      this.#blockedUntil = performance.now() + coolDownMs;
      return;
    }
    if (this.#crashes < 2) return;
    try {
      await sleep(restartDelay(this.#crashes, this.#options.restart), undefined, { signal: this.#closing.signal });
    } catch {
      throw closedError();
    }
  }

  #spawn(): Live {
    const process = new HelperProcess(this.#options.spawnOptions(), {
      onBytes: (bytes) => {
        try {
          live.rpc.receive(bytes);
        } catch (error) {
          live.process.kill();
          this.#drop(live, toFmError(error));
        }
      },
      onEnd: (error) => void this.#drop(live, error),
    });
    this.#processes.add(process);
    void process.exited.then(() => this.#processes.delete(process));
    const live: Live = { process, rpc: new RpcConnection((bytes) => process.write(bytes)), readySince: null };
    this.#live = live;
    process.setBusy(this.#busy > 0);
    return live;
  }

  async #shakeHands({ process, rpc }: Live): Promise<void> {
    const { handshakeTimeoutMs } = this.#options;
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        const what = `The helper did not answer within ${handshakeTimeoutMs} ms of its start.`;
        reject(new FmError("HELPER_UNHEALTHY", what + process.describeStart()));
      }, handshakeTimeoutMs);
      // While a call waits, the child keeps the loop alive; nothing else should.
      timer.unref();
    });
    try {
      const pong = await Promise.race([rpc.call("health.ping", {}).result, tooLate]);
      if (pong["protocol_version"] === PROTOCOL_VERSION) return;
      throw new FmError(
        "PROTOCOL_MISMATCH",
        `The helper ${String(pong["version"] ?? "")} speaks protocol version ${String(pong["protocol_version"])}; ` +
          `this package speaks version ${PROTOCOL_VERSION}. Update the older of the two.${process.describeStart()}`,
      );
    } finally {
      clearTimeout(timer);
    }
  }

  /** The one place where a helper is given up; only the first reason counts. Returns what its calls were told. */
  #drop(live: Live, reason: FmError): FmError {
    const error = this.#explain(live, reason);
    if (this.#live === live) {
      this.#live = null;
      if (!this.#isClosed) this.#countCrash(live, reason.code, error);
    }
    live.rpc.fail(error);
    return error;
  }

  #explain(live: Live, reason: FmError): FmError {
    if (this.#isClosed) return closedError();
    return live.readySince === null ? startError(reason, live.process) : reason;
  }

  #countCrash(live: Live, code: FmErrorCode, error: FmError): void {
    const { healthyAfterMs, coolDownMs, maxCrashes } = this.#options.restart;
    if (code === "PROTOCOL_MISMATCH" || code === "SPAWN_FAILED") return;
    const healthy = live.readySince !== null && performance.now() - live.readySince >= healthyAfterMs;
    this.#crashes = healthy ? 1 : this.#crashes + 1;
    this.#lastCrash = error.detail;
    if (this.#crashes >= maxCrashes) this.#blockedUntil = performance.now() + coolDownMs;
  }

  #setBusy(change: 1 | -1): void {
    this.#busy += change;
    if (this.#busy === (change === 1 ? 1 : 0)) this.#live?.process.setBusy(change === 1);
  }

  async #shutDown(): Promise<void> {
    this.#closing.abort();
    const live = this.#live;
    const starting = this.#starting;
    if (live !== null && live.readySince !== null) this.#sayGoodbye(live.rpc);
    else live?.process.kill();
    const leaving = [...this.#processes];
    for (const process of leaving) process.setBusy(true);
    const timer = setTimeout(() => {
      for (const process of leaving) process.kill();
    }, this.#options.shutdownTimeoutMs);
    await Promise.all(leaving.map(({ exited }) => exited));
    clearTimeout(timer);
    if (live !== null) this.#drop(live, closedError());
    await starting?.catch(() => {});
  }

  #sayGoodbye(rpc: RpcConnection): void {
    try {
      rpc.call("process.shutdown", {}).result.catch(() => {});
    } catch {
      // It is dead or deaf already; the time limit ends it.
    }
  }
}

function closedError(): FmError {
  return new FmError("CLOSED", "The client was closed.");
}

/** What goes wrong before the first pong says that this is no helper, rather than that a helper failed. */
function startError(failure: FmError, process: HelperProcess): FmError {
  const { code, detail } = failure;
  const told = (newCode: FmErrorCode, what: string): FmError =>
    new FmError(newCode, what + process.describeStart(), { cause: failure });
  if (code === "PROTOCOL_ERROR") return told("SPAWN_FAILED", `The program is not an fm-proxy helper. ${detail}`);
  if (code === "HELPER_EXITED") return told("SPAWN_FAILED", `${detail} It had not answered yet.`);
  if (code === "RPC_ERROR") return told("HELPER_UNHEALTHY", `The helper refused its first call: ${detail}.`);
  return failure;
}
