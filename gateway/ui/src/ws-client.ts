/**
 * The connection to the gateway: logs in, carries calls and events, and connects again after a loss. Each call settles exactly
 * once: with the answer, an error of the gateway, or ConnectionLost. After ConnectionLost, it is not known whether the gateway
 * has executed the call.
 */
import type { GatewayEvent } from "./protocol.js";

/** refused: the gateway wants another token, and the client waits for `connect`. */
export type ConnectionState = "idle" | "connecting" | "online" | "offline" | "refused";

export type Login = { token: string } | { code: string };

/** What the client needs of a WebSocket: the browser's, or a test's. */
export interface Socket {
  onopen: ((event: never) => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onclose: ((event: { code: number; reason: string }) => void) | null;
  onerror: ((event: never) => void) | null;
  send(text: string): void;
  close(code?: number): void;
}

export interface ClientOptions {
  url: string;
  open?: (url: string) => Socket;
  onState: (state: ConnectionState, reason: string) => void;
  onEvent: (event: GatewayEvent) => void;
  /** The gateway gave the token for a one-time code. */
  onToken: (token: string) => void;
  callTimeoutMs?: number;
  quietMs?: number;
  backoffMs?: { first: number; most: number };
  random?: () => number;
}

export class RpcError extends Error {
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
    this.name = "RpcError";
  }
}

/** No answer came: the socket was lost, or the time was up. Repeat a call only if it does no harm when it is executed twice. */
export class ConnectionLost extends Error {
  constructor(message = "The connection was lost before the answer came.") {
    super(message);
    this.name = "ConnectionLost";
  }
}

interface Pending {
  resolve: (result: unknown) => void;
  reject: (error: Error) => void;
  timer: ReturnType<typeof setTimeout>;
}

type Timer = ReturnType<typeof setTimeout> | undefined;

const POLICY = 1008;
const LOGIN_MS = 8000;

export class WsClient {
  state: ConnectionState = "idle";
  private readonly options: Required<ClientOptions>;
  private login: Login | undefined;
  private socket: Socket | undefined;
  private pending = new Map<string, Pending>();
  private nextId = 1;
  private failures = 0;
  private retryTimer: Timer;
  private quietTimer: Timer;
  private loginTimer: Timer;

  constructor(options: ClientOptions) {
    this.options = {
      open: (url) => new WebSocket(url) as unknown as Socket,
      callTimeoutMs: 30_000,
      quietMs: 30_000,
      backoffMs: { first: 250, most: 10_000 },
      random: Math.random,
      ...options,
    };
  }

  /** Connects with this login; an existing connection is dropped. */
  connect(login: Login): void {
    this.login = login;
    this.failures = 0;
    this.drop();
    this.open();
  }

  close(): void {
    this.login = undefined;
    this.drop();
    this.setState("idle", "");
  }

  /** Tries to connect at once, if the client is waiting for its next try. */
  retryNow(): void {
    if (this.state !== "offline" || !this.login) return;
    clearTimeout(this.retryTimer);
    this.open();
  }

  call<Result>(method: string, params: Record<string, unknown> = {}, timeoutMs?: number): Promise<Result> {
    const socket = this.socket;
    if (this.state !== "online" || !socket) return Promise.reject(new ConnectionLost("Not connected to the gateway."));
    const id = String(this.nextId++);
    const limit = timeoutMs ?? this.options.callTimeoutMs;
    return new Promise<unknown>((resolve, reject) => {
      const late = () => {
        this.pending.delete(id);
        reject(new ConnectionLost(`The gateway did not answer ${method} within ${limit / 1000} s.`));
      };
      this.pending.set(id, { resolve, reject, timer: setTimeout(late, limit) });
      socket.send(JSON.stringify({ id, method, params }));
    }) as Promise<Result>;
  }

  private open(): void {
    const { login } = this;
    if (!login) return;
    this.setState("connecting", "");
    const socket = this.options.open(this.options.url);
    this.socket = socket;
    socket.onopen = () => socket.send(JSON.stringify({ type: "auth", ...login }));
    socket.onmessage = ({ data }) => {
      if (this.socket === socket && typeof data === "string") this.take(data);
    };
    socket.onclose = ({ code, reason }) => {
      if (this.socket === socket) this.lost(code, reason);
    };
    socket.onerror = () => {}; // a close follows
    this.loginTimer = setTimeout(() => {
      if (this.socket === socket) this.lost(1006, "The gateway did not answer the login.");
    }, LOGIN_MS);
  }

  private take(text: string): void {
    let frame: Record<string, unknown>;
    try {
      frame = JSON.parse(text) as Record<string, unknown>;
    } catch {
      return; // ignored: if it was an answer, its call reaches its time limit
    }
    this.watch();
    if (frame["type"] === "auth" && frame["ok"] === true) this.welcome(frame["token"]);
    else if (typeof frame["event"] === "string") this.options.onEvent(frame as unknown as GatewayEvent);
    else if (typeof frame["id"] === "string") this.settle(frame["id"], frame);
  }

  private welcome(token: unknown): void {
    clearTimeout(this.loginTimer);
    this.failures = 0;
    if (typeof token === "string") {
      this.login = { token };
      this.options.onToken(token);
    }
    this.setState("online", "");
    this.watch();
  }

  private settle(id: string, frame: Record<string, unknown>): void {
    const call = this.pending.get(id);
    if (!call) return;
    this.pending.delete(id);
    clearTimeout(call.timer);
    const error = frame["error"] as { code?: unknown; message?: unknown } | undefined;
    if (error)
      call.reject(new RpcError(Number(error.code ?? 0), String(error.message ?? "The gateway gave no reason.")));
    else call.resolve(frame["result"]);
  }

  /** A socket that is silent for a while may be dead (the machine slept): asks for a sign of life. */
  private watch(): void {
    clearTimeout(this.quietTimer);
    const { socket } = this;
    this.quietTimer = setTimeout(() => {
      this.call("health.check", {}, 10_000).catch((error: unknown) => {
        if (error instanceof ConnectionLost && this.socket === socket) this.lost(1006, "The gateway did not answer.");
      });
    }, this.options.quietMs);
  }

  private lost(code: number, reason: string): void {
    const wasLoggedIn = this.state === "online";
    const byCode = this.login !== undefined && "code" in this.login;
    this.drop();
    // Code 1008 after a login means that the token was changed. A one-time code is valid for one try.
    if (code === POLICY || (byCode && !wasLoggedIn)) {
      this.login = undefined;
      const otherwise = wasLoggedIn ? "The gateway has a new token." : "The gateway refused the login.";
      this.setState("refused", reason || (code === POLICY ? otherwise : "The gateway did not answer. Open a new link."));
      return;
    }
    this.setState("offline", reason);
    const { first, most } = this.options.backoffMs;
    const wait = Math.min(most, first * 2 ** this.failures++) * (0.75 + this.options.random() / 2);
    this.retryTimer = setTimeout(() => this.open(), wait);
  }

  /** Ends the connection in any state; open calls get ConnectionLost. */
  private drop(): void {
    for (const timer of [this.retryTimer, this.quietTimer, this.loginTimer]) clearTimeout(timer);
    const { socket, pending } = this;
    this.socket = undefined;
    this.pending = new Map();
    socket?.close();
    for (const call of pending.values()) {
      clearTimeout(call.timer);
      call.reject(new ConnectionLost());
    }
  }

  private setState(state: ConnectionState, reason: string): void {
    this.state = state;
    this.options.onState(state, reason);
  }
}
