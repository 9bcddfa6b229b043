// The helpers of a client: one for all calls, or one for each call. They are started on demand, and replaced when they die.
import { setTimeout as sleep } from "node:timers/promises";
import { Call } from "./call.js";
import { Connection } from "./connection.js";
import { FmError } from "./errors.js";
import type { ClientState } from "./events.js";
import type { SpawnOptions } from "./process.js";
import { Crashes, type RestartPolicy, type SpawnMode } from "./restart.js";
import { toStartError } from "./start-error.js";
import { closedError } from "./stream.js";
import { toFmError } from "./thrown.js";
import type { CallOptions, JsonObject, Transport } from "./types.js";
import { isObject } from "./types.js";

/** How many helpers there are at once when each request has its own. */
const CHILDREN_MAX = 2;
/** How often a call that no helper has read is sent to another one. */
const RESENDS_MAX = 1;
/** Errors of the system that may disappear a moment later. */
const PASSING: ReadonlySet<unknown> = new Set(["EAGAIN", "ENOMEM", "EMFILE", "ENFILE", "ETXTBSY"]);
/** Error codes that mean that the helper has ended. */
const ENDS: ReadonlySet<string> = new Set(["HELPER_EXITED", "HELPER_UNHEALTHY", "PROTOCOL_ERROR", "SPAWN_FAILED"]);

/** How a {@link Helper} starts and ends its processes. */
export interface HelperOptions {
  /** Makes new spawn options for every start; may reject with an FmError. */
  spawnOptions: () => Promise<SpawnOptions>;
  /** Called when the helper speaks another version of the protocol: a copy of the helper may be out of date. */
  discardCopy: () => Promise<void>;
  handshakeTimeoutMs: number;
  shutdownTimeoutMs: number;
  /** A helper that gets no call for this time is ended; 0: never. */
  idleTimeoutMs: number;
  /** Whether responses are stored in the helper's memory, so that its end loses them. */
  storesInMemory: () => boolean;
  restart: RestartPolicy;
  spawnPerRequest: boolean | "auto";
  onState: (state: HelperState) => void;
}

/** The states of the client that come from the helper. */
type HelperState = Exclude<ClientState, "unknown" | "waiting" | "limited">;

/** A call in progress: the helper that works on it, and the ids of the responses in its events. */
interface Maker {
  connection: Connection;
  responses: Set<string>;
}

/**
 * Manages a client's helpers. Starts one with the first call, checks its version first, and starts a new one after a crash. While
 * no call waits, Node may exit. After several crashes in a row, each call gets its own helper. After more crashes, no helper is
 * started any more.
 */
export class Helper implements Transport {
  readonly #options: HelperOptions;
  readonly #closing = new AbortController();
  readonly #crashes: Crashes;
  #live: Connection | null = null;
  #starting: Promise<Connection> | null = null;
  /** All helpers that were started and are not gone yet. */
  readonly #processes = new Set<Connection>();
  /** Helpers that were asked to end. Their end does not count as a crash. */
  readonly #leaving = new WeakSet<Connection>();
  readonly #makers = new Set<Maker>();
  /** How many more helpers for a single call may be started now. `#waiting`: the calls that wait for such a place. */
  #places = CHILDREN_MAX;
  readonly #waiting: (() => void)[] = [];
  #closed: Promise<void> | null = null;
  #busy = 0;
  #everReady = false;
  #refusal: FmError | null = null;
  #holdsResponses = false;
  #idle: NodeJS.Timeout | undefined;

  constructor(options: HelperOptions) {
    this.#options = options;
    this.#crashes = new Crashes(options.restart, options.spawnPerRequest);
  }

  /** The error if no helper will be started; null: a helper runs or may be started. */
  get refusal(): FmError | null {
    if (this.#isClosed) return closedError();
    const refusal = this.#crashes.refusal;
    return this.#refusal ?? (refusal === null ? null : new FmError("HELPER_UNHEALTHY", refusal));
  }

  /** Forgets all failures, so that the next call starts a helper. */
  reset(): void {
    this.#refusal = null;
    this.#crashes.reset();
  }

  /** Ends the helper if it has no calls. The next call starts a new helper, which may find other models. */
  renew(): void {
    if (this.#busy === 0) this.#park();
  }

  /** {@inheritDoc Transport.call} */
  call(method: string, params: JsonObject, options: CallOptions = {}): Call {
    const call = new Call(method, params, options);
    this.#setBusy(+1);
    const settled = (): void => this.#setBusy(-1);
    call.result.then(settled, settled);
    void this.#serve(call);
    return call;
  }

  /** Ends the helper and waits until it is gone. Every call after this is rejected. */
  close(): Promise<void> {
    this.#closed ??= this.#shutDown();
    return this.#closed;
  }

  /** True as soon as `close` was called. */
  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  async #serve(call: Call): Promise<void> {
    try {
      for (let resends = 0; ; resends++) {
        try {
          const result = await this.#ask(call);
          if (result !== null) call.resolve(result);
          return;
        } catch (error) {
          if (resends >= RESENDS_MAX || !call.wasUnread || this.#isClosed) throw error;
        }
      }
    } catch (error) {
      call.reject(this.#explain(toFmError(error)));
    }
  }

  /** After `close`, replaces errors about the helper's end by the error of a closed client. */
  #explain(error: FmError): FmError {
    return this.#isClosed && ENDS.has(error.code) ? closedError() : error;
  }

  get #mode(): SpawnMode {
    return this.#live !== null || this.#starting !== null ? "persistent" : this.#crashes.mode;
  }

  /**
   * Sends the call to a helper. A cancel goes to the helper that makes the response, even if that helper gets no other calls.
   * Null: the call is settled.
   */
  #ask(call: Call): Promise<JsonObject | null> {
    const maker = this.#makerOf(call);
    if (maker !== undefined) return call.sendOn(maker.connection);
    return this.#mode === "persistent" ? this.#askOne(call) : this.#askOwn(call);
  }

  /** Sends the call to the helper that serves all calls. Null: the call was settled meanwhile. */
  async #askOne(call: Call): Promise<JsonObject | null> {
    const connection = await this.#connected();
    if (call.isOver) return null;
    if (call.method === "responses.create" && call.params["store"] !== false) this.#holdsResponses = true;
    return this.#send(call, connection);
  }

  /** The helper that serves all calls; a new one, if it takes no calls. */
  async #connected(): Promise<Connection> {
    const live = this.#live;
    if (live?.readySince == null) return this.#connect();
    return !live.isSuspect || (await live.takesCalls()) ? live : this.#connect();
  }

  #connect(): Promise<Connection> {
    this.#starting ??= this.#start().finally(() => {
      this.#starting = null;
    });
    return this.#starting;
  }

  async #start(): Promise<Connection> {
    this.#holdsResponses = false;
    const connection = await this.#startAny((started) => {
      this.#live = started;
      started.setBusy(this.#busy > 0);
    });
    this.#options.onState("ready");
    return connection;
  }

  /** Starts a helper. If it speaks another version of the protocol, starts a helper once more. */
  async #startAny(onStarted: (connection: Connection) => void): Promise<Connection> {
    for (let again = true; ; again = false) {
      try {
        return await this.#tryStart(onStarted);
      } catch (reason) {
        const error = toFmError(reason);
        if (error.code !== "PROTOCOL_MISMATCH" || !again || this.#isClosed) throw this.#noteFailedStart(error);
        await this.#options.discardCopy();
      }
    }
  }

  async #tryStart(onStarted: (connection: Connection) => void): Promise<Connection> {
    const refusal = this.refusal;
    if (refusal !== null) throw refusal;
    await this.#pause(this.#crashes.delay);
    if (this.#isClosed) throw closedError();
    this.#options.onState("starting");
    const spawn = await this.#prepare();
    // The client may have been closed meanwhile. Without this check, nothing would end the new helper.
    if (this.#isClosed) throw closedError();
    const connection = new Connection({
      spawn,
      patienceMs: this.#options.handshakeTimeoutMs,
      onDown: (down, error) => this.#noteDown(down, error),
    });
    this.#processes.add(connection);
    void connection.exited.then(() => this.#processes.delete(connection));
    onStarted(connection);
    await connection.ready;
    this.#everReady = true;
    return connection;
  }

  /** Makes the spawn options; this includes finding the program. */
  async #prepare(): Promise<SpawnOptions> {
    try {
      return await this.#options.spawnOptions();
    } catch (reason) {
      throw toStartError(reason);
    }
  }

  /**
   * Records a failed start. If no helper was ever ready, none is started again. If one was ready before, the failure counts as a
   * crash.
   */
  #noteFailedStart(error: FmError): FmError {
    if (this.#isClosed) return closedError();
    if (this.#refusal !== null || this.#crashes.refusal !== null) return error;
    if (PASSING.has((error.cause as { code?: unknown } | undefined)?.code)) return error;
    if (this.#everReady) this.#crashes.note(error, null);
    else this.#refusal = error;
    if (this.refusal !== null) this.#options.onState("refused");
    return error;
  }

  async #pause(ms: number): Promise<void> {
    if (ms === 0) return;
    try {
      await sleep(ms, undefined, { signal: this.#closing.signal });
    } catch {
      throw closedError();
    }
  }

  #noteDown(connection: Connection, error: FmError): void {
    if (this.#live === connection) this.#live = null;
    if (this.#isClosed || this.#leaving.has(connection) || connection.readySince === null) return;
    this.#crashes.note(error, connection.readySince);
    const refused = this.#crashes.refusal !== null;
    if (refused) this.#options.onState("refused");
    else if (this.#crashes.mode === "per-request") this.#options.onState("per-request");
  }

  /** Starts a helper only for this call, and sends the call to it. */
  async #askOwn(call: Call): Promise<JsonObject | null> {
    if (call.params["background"] === true) throw notInBackground();
    await this.#takePlace();
    let connection: Connection | null = null;
    try {
      if (call.isOver) return null;
      connection = await this.#startAny((started) => started.setBusy(true));
      if (call.isOver) return null;
      const result = await this.#send(call, connection);
      this.#crashes.noteServed();
      return result;
    } finally {
      void this.#clearPlace(connection);
    }
  }

  /** Frees the place after its helper has ended. */
  async #clearPlace(connection: Connection | null): Promise<void> {
    if (connection !== null) await this.#retire(connection);
    this.#leavePlace();
  }

  async #send(call: Call, connection: Connection): Promise<JsonObject> {
    const maker: Maker = { connection, responses: new Set() };
    this.#makers.add(maker);
    call.watch(({ event, chunk }) => {
      const told = isObject(event) ? event["response"] : chunk;
      if (isObject(told)) maker.responses.add(String(told["id"]));
    });
    try {
      return await call.sendOn(connection);
    } finally {
      this.#makers.delete(maker);
    }
  }

  #makerOf({ method, params }: Call): Maker | undefined {
    if (method !== "responses.cancel") return undefined;
    return [...this.#makers].find(({ responses }) => responses.has(String(params["id"])));
  }

  async #takePlace(): Promise<void> {
    if (this.#places > 0) this.#places--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  #leavePlace(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#places++;
    else next();
  }

  #setBusy(change: 1 | -1): void {
    this.#busy += change;
    clearTimeout(this.#idle);
    if (this.#busy === (change === 1 ? 1 : 0)) this.#live?.setBusy(change === 1);
    const { idleTimeoutMs } = this.#options;
    if (this.#busy > 0 || idleTimeoutMs === 0) return;
    this.#idle = setTimeout(() => this.#park(), idleTimeoutMs);
    this.#idle.unref();
  }

  /** Ends the helper, unless it holds responses that would be lost. */
  #park(): void {
    const connection = this.#live;
    if (connection === null || connection.readySince === null) return;
    if (this.#holdsResponses && this.#options.storesInMemory()) return;
    this.#live = null;
    this.#options.onState("parked");
    void this.#retire(connection);
  }

  /** Asks a helper to end, then terminates it, then kills it. Resolves when it is gone. Keeps Node alive in `close`. */
  async #retire(connection: Connection): Promise<void> {
    const { shutdownTimeoutMs } = this.#options;
    this.#leaving.add(connection);
    connection.shutDown();
    const press = setTimeout(() => connection.terminate(), shutdownTimeoutMs / 2);
    const end = setTimeout(() => connection.kill(), shutdownTimeoutMs);
    if (!this.#isClosed) for (const timer of [press, end]) timer.unref();
    await connection.exited;
    clearTimeout(press);
    clearTimeout(end);
  }

  async #shutDown(): Promise<void> {
    this.#closing.abort();
    clearTimeout(this.#idle);
    this.#options.onState("closed");
    const starting = this.#starting;
    const leaving = [...this.#processes];
    for (const connection of leaving) connection.setBusy(true);
    await Promise.all(leaving.map((connection) => this.#retire(connection)));
    for (const connection of leaving) connection.fail(closedError());
    await starting?.catch(() => {});
  }
}

function notInBackground(): FmError {
  return new FmError(
    "UNAVAILABLE",
    "A response in the background needs a helper that stays, and at the moment each request has one of its own. " +
      "Leave out `background`.",
  );
}
