// client.on: what a host may follow.
import type { ReasonCode } from "./errors.js";

/**
 * The present state of the client:
 * - `unknown`: nothing has been asked yet
 * - `starting`, `ready`: the helper starts, or is ready
 * - `parked`: the helper had nothing to do and ended; the next request starts it
 * - `waiting`: the machine can't answer now, and is asked again after a while
 * - `limited`: the model's rate limit was reached
 * - `per-request`: after crashes, each request gets its own helper
 * - `refused`: nothing is started until `compatibility.check({ recheck: true })`
 * - `closed`
 */
export type ClientState =
  | "unknown"
  | "starting"
  | "ready"
  | "parked"
  | "waiting"
  | "limited"
  | "per-request"
  | "refused"
  | "closed";

/** The argument of a listener of `state`. */
export interface StateChange {
  state: ClientState;
  /** The reason for `waiting` and `refused`. */
  reason_code?: ReasonCode | undefined;
  detail?: string | undefined;
}

/** The events of a client, and the arguments of their listeners. */
export interface ClientEvents {
  state: StateChange;
  log: string;
}

/** The listeners of a client's events. If a listener throws, Node prints a warning, and everything else goes on. */
export class Events {
  readonly #listeners: { [Name in keyof ClientEvents]: Set<(value: ClientEvents[Name]) => unknown> } = {
    state: new Set(),
    log: new Set(),
  };
  #state: ClientState = "unknown";

  /** The last state that was reported. */
  get state(): ClientState {
    return this.#state;
  }

  /** Whether an event has listeners. */
  has(name: keyof ClientEvents): boolean {
    return this.#listeners[name].size > 0;
  }

  /** Calls `listener` with each event. The returned function removes the listener. */
  on<Name extends keyof ClientEvents>(name: Name, listener: (value: ClientEvents[Name]) => unknown): () => void {
    const listeners = this.#listeners[name];
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }

  /** Calls all listeners of an event. */
  emit<Name extends keyof ClientEvents>(name: Name, value: ClientEvents[Name]): void {
    for (const listener of [...this.#listeners[name]]) callBack(`A listener of "${name}"`, listener, value);
  }

  /** Reports a change of state to the listeners. The same state twice is not a change. */
  changeState(state: ClientState, reason: Omit<StateChange, "state"> = {}): void {
    if (state === this.#state || this.#state === "closed") return;
    this.#state = state;
    this.emit("state", { state, ...reason });
  }
}

/** Calls a function of the host. If it throws or rejects, Node prints a warning, and everything else goes on. */
export function callBack<T>(what: string, call: (value: T) => unknown, value: T, warn = warnOf): void {
  try {
    Promise.resolve(call(value)).catch((error: unknown) => warn(what, error));
  } catch (error) {
    warn(what, error);
  }
}

/** Warns the host that its function threw an error. */
export function warnOf(what: string, error: unknown): void {
  process.emitWarning(`${what} of fm-proxy's client threw: ${describe(error)}`);
}

/** The thrown value as text. It need not be an Error. */
function describe(error: unknown): string {
  try {
    return String(error);
  } catch {
    return "a value that can't be shown";
  }
}
