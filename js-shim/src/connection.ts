// One helper process from its start to its end: the handshake, the calls, and whether it still listens.
import { FmError, type FmErrorCode, type ReasonCode } from "./errors.js";
import { HelperProcess, type SpawnOptions } from "./process.js";
import { RpcConnection, type Sent } from "./rpc.js";
import { toFmError } from "./thrown.js";
import type { JsonObject } from "./types.js";
import { STOOD_STILL_MS } from "./watch.js";
import { PROTOCOL_VERSION } from "./wire.js";

/**
 * A helper hangs if it said that it has a call, but has not settled it this long after the call's limit. The helper's calls
 * without a limit then wait this long for it.
 */
const HANGS_MS = 2000;
/**
 * If no byte comes for this long, the host has read all that the helper wrote. In that case the helper failed to send the pong.
 */
const ANSWER_MS = 250;

/** The options of a connection. */
export interface ConnectionOptions {
  spawn: SpawnOptions;
  /** How long the helper may take to answer its first call, and later to show a sign of life, in ms. */
  patienceMs: number;
  /** Called exactly once, with the reason, when no further call can be made. Calls in progress may still succeed. */
  onDown(connection: Connection, error: FmError): void;
}

/**
 * One helper process. The first message checks its version. A ping follows each call. The helper reads calls in order, so the
 * pong shows that it has read the call, and that it is alive.
 */
export class Connection {
  /** Settles when the handshake has ended. */
  readonly ready: Promise<void>;
  readonly #options: ConnectionOptions;
  readonly #process: HelperProcess;
  readonly #rpc: RpcConnection;
  #readySince: number | null = null;
  /** Whether it refuses further calls. */
  #down = false;
  /** The calls that the helper has not settled although their limits have passed, and the error for one that hangs. */
  readonly #expired = new Map<number, FmError>();
  #failure: FmError | null = null;
  /** Why it hangs, and is ended when it has no call in progress; null: it does not. */
  #hangs: FmError | null = null;
  /** Calls in progress that a caller waits for, and whether a limit ends them. */
  readonly #calls = new Map<number, boolean>();
  #brokeProtocol = false;
  /** When the last byte came, or the first call after a silence was made. */
  #heardAt = 0;
  /** How often bytes came. */
  #reads = 0;
  /** How many pings were sent. `#pongs`: how many of them were answered. */
  #pings = 0;
  #pongs = 0;
  /** When the oldest waiting ping was sent, or when the last pong came, if later; null: no ping waits. */
  #pingedAt: number | null = null;
  #asking: Promise<boolean> | null = null;
  #onPong = (): void => {};
  #watch: NodeJS.Timeout | null = null;

  /** Starts a helper. Throws an FmError (SPAWN_FAILED) if the system refuses that at once. */
  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#process = new HelperProcess(options.spawn, {
      onBytes: (bytes) => this.#receive(bytes),
      onEnd: (error) => void this.fail(error),
    });
    this.#rpc = new RpcConnection((bytes) => this.#process.write(bytes));
    this.ready = this.#shakeHands();
    this.ready.catch(() => {});
  }

  /** Resolves when the process is gone. */
  get exited(): Promise<void> {
    return this.#process.exited;
  }

  /** The time, by performance.now(), since which the helper has been ready; null: it is not ready yet. */
  get readySince(): number | null {
    return this.#readySince;
  }

  /** Makes a call. It has a time limit, or it is `isEndless`. If the call can't be made, throws an FmError and writes nothing. */
  call(method: string, params: JsonObject, isEndless: boolean, onNotification?: (params: JsonObject) => void): Sent {
    if (this.#rpc.pending === 0) this.#heardAt = performance.now();
    const sent = this.#rpc.call(method, params, onNotification);
    this.#calls.set(sent.id, !isEndless);
    const over = (): void => this.#leave(sent.id);
    sent.result.then(over, over);
    this.#tryPing();
    this.#keepWatch();
    return sent;
  }

  /** Asks the helper to end a call. Sends nothing for a call that is over. */
  cancel(id: number): void {
    this.#rpc.cancel(id);
  }

  /** Whether the helper reports that it works on a call. Never rejects. */
  async hasInHand(id: number): Promise<boolean> {
    try {
      const { result } = this.#rpc.call("requests.get", { request_id: id });
      this.#tryPing();
      await result;
      return true;
    } catch {
      return false;
    }
  }

  /**
   * A call's limit has passed, and the helper has not reported it. The helper hangs, unless it has the call `inHand`:
   * then it has a moment to end the call. A helper that hangs takes no further call, and the calls that it has not read
   * go to another helper. It is ended when its other calls that it has read are over, each by its answer or its own
   * limits. Its calls without a limit end with it.
   */
  giveUpOn(id: number, hangs: FmError, inHand: boolean): void {
    this.cancel(id);
    if (!inHand) return this.#blame(id, hangs);
    this.#expired.set(id, hangs);
    setTimeout(() => {
      if (this.#calls.has(id)) this.#tryPing();
      this.#blame(id, hangs);
    }, HANGS_MS).unref();
  }

  /** Whether it has a call whose limit has passed. Before such a helper gets another call, see `takesCalls`. */
  get isSuspect(): boolean {
    return this.#expired.size > 0;
  }

  /** Asks the helper whether it still reads, once for all who ask. If it says nothing, it hangs, and takes no further call. */
  takesCalls(): Promise<boolean> {
    this.#asking ??= this.#askIt().finally(() => (this.#asking = null));
    return this.#asking;
  }

  async #askIt(): Promise<boolean> {
    this.#tryPing();
    const ping = this.#pings;
    for (let reads = -1; reads !== this.#reads && this.#pongs < ping; ) {
      reads = this.#reads;
      await this.#pongWithin(ANSWER_MS);
    }
    if (this.#pongs >= ping) return !this.#down;
    for (const [id, hangs] of this.#expired) this.#drain(id, hangs);
    return !this.#down;
  }

  /** Resolves at the next pong, or after this time. */
  #pongWithin(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const late = setTimeout(() => setImmediate(resolve), ms).unref();
      this.#onPong = () => {
        clearTimeout(late);
        resolve();
      };
    });
  }

  /** If other bytes come before the pong, the host reads slowly: the call's answer may be among the unread bytes. */
  #blame(id: number, hangs: FmError, ping = this.#pings): void {
    if (!this.#calls.has(id)) return;
    if (this.#pongs >= ping) return this.#drain(id, hangs);
    const reads = this.#reads;
    const again = (): void => (this.#reads === reads ? this.#drain(id, hangs) : this.#blame(id, hangs, ping));
    setTimeout(() => setImmediate(again), ANSWER_MS).unref();
  }

  #drain(id: number, hangs: FmError): void {
    this.#hangs ??= hangs;
    this.#refuseMore(hangs);
    for (const call of this.#calls.keys()) if (call === id || !this.#rpc.hasRead(call)) this.#rpc.abandon(call, hangs);
    this.#leave(id);
  }

  #leave(id: number): void {
    this.#calls.delete(id);
    this.#expired.delete(id);
    const hangs = this.#hangs;
    if (hangs === null || [...this.#calls.values()].includes(true)) return;
    if (this.#calls.size === 0) this.fail(hangs);
    else setTimeout(() => this.fail(hangs), HANGS_MS).unref();
  }

  /** Whether the helper may have read the call, so that its effects would come twice if it were sent again. */
  mayHaveRead(id: number): boolean {
    return this.#brokeProtocol || this.#process.crashed || this.#rpc.hasRead(id);
  }

  /** Says whether the process keeps Node's event loop alive. */
  setBusy(busy: boolean): void {
    this.#process.setBusy(busy);
  }

  /** The one place where a helper is given up; only the first reason counts. Returns the error that its calls got. */
  fail(reason: FmError): FmError {
    if (this.#failure !== null) return this.#failure;
    this.#failure = this.#readySince === null ? startError(reason, this.#process) : reason;
    if (this.#watch !== null) clearTimeout(this.#watch);
    // A caller that gets the failure may make a new call at once, which must not use this connection any more.
    this.#refuseMore(this.#failure);
    this.#rpc.fail(this.#failure);
    this.#process.kill();
    return this.#failure;
  }

  #refuseMore(reason: FmError): void {
    if (this.#down) return;
    this.#down = true;
    this.#options.onDown(this, reason);
  }

  /** Asks the helper to end; it gets no further call. One that is not ready yet is killed. */
  shutDown(): void {
    if (this.#readySince === null) return this.kill();
    try {
      this.#rpc.call("process.shutdown", {}).result.catch(() => {});
    } catch {
      // The helper is gone or no longer reads; its owner kills it in time.
    }
  }

  /** Asks the process to end in the system's way. */
  terminate(): void {
    this.#process.terminate();
  }

  /** Ends the process at once. */
  kill(): void {
    this.#process.kill();
  }

  async #shakeHands(): Promise<void> {
    const { patienceMs } = this.#options;
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        const what = `The helper did not answer within ${patienceMs} ms of its start (the option handshakeTimeoutMs).`;
        reject(new FmError("HELPER_UNHEALTHY", what + this.#process.describeStart()));
      }, patienceMs);
      // Only the child keeps the event loop alive, while a call waits. This timer must not.
      timer.unref();
    });
    try {
      const pong = await Promise.race([this.#rpc.call("health.ping", {}).result, tooLate]);
      this.#checkVersion(pong);
      this.#readySince = performance.now();
      this.#process.setReady();
    } catch (error) {
      throw this.fail(toFmError(error));
    } finally {
      clearTimeout(timer);
    }
  }

  #checkVersion(pong: JsonObject): void {
    if (pong["protocol_version"] === PROTOCOL_VERSION) return;
    throw new FmError(
      "PROTOCOL_MISMATCH",
      `The helper ${String(pong["version"] ?? "")} speaks protocol version ${String(pong["protocol_version"])}; ` +
        `this package speaks version ${PROTOCOL_VERSION}. Update the older of the two.${this.#process.describeStart()}`,
    );
  }

  #receive(bytes: Uint8Array): void {
    this.#heardAt = performance.now();
    this.#reads++;
    try {
      this.#rpc.receive(bytes);
    } catch (error) {
      this.#brokeProtocol = true;
      this.fail(toFmError(error));
    }
  }

  #ping(): void {
    const { result } = this.#rpc.call("health.ping", {});
    this.#pings++;
    this.#pingedAt ??= performance.now();
    const answered = (): void => {
      this.#pongs++;
      this.#onPong();
      this.#pingedAt = this.#pings > this.#pongs ? performance.now() : null;
    };
    result.then(answered, () => {});
  }

  /** While a call waits, the helper must show a sign of life now and then. */
  #keepWatch(): void {
    if (this.#watch !== null || this.#failure !== null) return;
    // A ping that was sent after the last sign of life has the full time for its pong.
    const since = Math.max(this.#heardAt, this.#pingedAt ?? 0);
    const delay = Math.max(1, since + this.#options.patienceMs - performance.now());
    const due = performance.now() + delay;
    this.#watch = setTimeout(() => {
      this.#watch = null;
      this.#look(performance.now() - due >= STOOD_STILL_MS);
    }, delay);
    this.#watch.unref();
  }

  #look(stoodStill: boolean): void {
    if (this.#rpc.pending === 0) return;
    const now = performance.now();
    if (stoodStill) {
      this.#heardAt = now;
      if (this.#pingedAt !== null) this.#pingedAt = now;
    }
    const { patienceMs } = this.#options;
    const isQuiet = now - this.#heardAt >= patienceMs;
    if (isQuiet && this.#pingedAt !== null && now - this.#pingedAt >= patienceMs) {
      // Output of the helper may still be in the pipe. The event loop reads the pipe before it runs this.
      setImmediate(() => this.#giveUp());
      return;
    }
    if (isQuiet && this.#pingedAt === null) this.#tryPing();
    this.#keepWatch();
  }

  #tryPing(): void {
    try {
      this.#ping();
    } catch {
      // The helper has stopped reading. The ping counts as sent, so that the watch continues.
      this.#pingedAt = performance.now();
    }
  }

  #giveUp(): void {
    const { patienceMs } = this.#options;
    if (performance.now() - this.#heardAt < patienceMs) return this.#keepWatch();
    this.fail(new FmError("HELPER_UNHEALTHY", `The helper gave no sign of life for ${patienceMs} ms and was ended.`));
  }
}

/** What Linux's program loader reports if a library is too old for the helper (glibc, elf/dl-version.c). */
const OLD_LIBRARY = /version `(?:GLIBC|GLIBCXX|CXXABI)_[\d.]+' not found/;

/**
 * Makes the error for a failed start. An error before the first pong means that the program is not a helper, rather than that a
 * helper failed.
 */
function startError(failure: FmError, process: HelperProcess): FmError {
  const { code, detail } = failure;
  const told = (newCode: FmErrorCode, what: string, reasonCode?: ReasonCode): FmError =>
    new FmError(newCode, what + process.describeStart(), { cause: failure, reasonCode });
  if (code === "PROTOCOL_ERROR") return told("SPAWN_FAILED", `The program is not an fm-proxy helper. ${detail}`);
  if (code === "HELPER_EXITED" && OLD_LIBRARY.test(process.lastWords)) {
    return told("SPAWN_FAILED", "This system's C or C++ library is too old for the helper.", "OS_TOO_OLD");
  }
  if (code === "HELPER_EXITED") return told("SPAWN_FAILED", `${detail} It had not answered yet.`);
  if (code === "RPC_ERROR") return told("HELPER_UNHEALTHY", `The helper refused its first call: ${detail}.`);
  return failure;
}
