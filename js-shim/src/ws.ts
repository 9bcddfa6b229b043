// fm-proxy/ws: OpenAI's Responses API by WebSocket. Both ends are in this process, so nothing listens.
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import { Duplex } from "node:stream";
import type { FmError, OpenAIErrorShape } from "./errors.js";
import type { JsonObject, RequestOptions, ResponseCreateParams } from "./types.js";
import { isObject } from "./types.js";

/** The part of a client that is used. */
export interface ResponsesClient {
  readonly responses: { stream(body: ResponseCreateParams, options?: RequestOptions): AsyncIterable<unknown> };
}

/** The part of a `WebSocketServer` of the package `ws` that is used. */
export interface WebSocketServerClass {
  new (options: { noServer: true; maxPayload: number; clientTracking: boolean }): {
    handleUpgrade(request: any, socket: any, head: any, done: (socket: any) => void): void;
  };
}

/** The part of a `WebSocket` of the package `ws` that is used. */
interface Socket {
  readonly readyState: number;
  send(text: string): void;
  close(code: number, reason: string): void;
  on(event: "message", listener: (data: unknown, isBinary: boolean) => void): void;
  on(event: "close" | "error", listener: () => void): void;
}

const OPEN = 1; // WebSocket.OPEN
const UNSUPPORTED_DATA = 1003; // RFC 6455, section 7.4.1
const PAYLOAD_MAX = 64 << 20; // bytes of one message; the helper has its own limit for a body
const KEPT_MAX = 64; // responses with `store: false` that a connection can continue; OpenAI keeps one
const STEERS_MAX = 16; // steering inputs that wait for one response

/**
 * Makes the option `createConnection` of the class ResponsesWS of OpenAI's SDK: `new ResponsesWS(openai, { createConnection:
 * createConnection(client, WebSocketServer) })`. Each connection is one inside this process. `WebSocketServer` comes from the
 * application's own package `ws`, which that class needs too. The caller still has to close the client.
 *
 * @throws TypeError without a client or `WebSocketServer`
 */
export function createConnection(client: ResponsesClient, WebSocketServer: WebSocketServerClass): (...args: any[]) => any {
  if (typeof (client as Partial<ResponsesClient> | null | undefined)?.responses?.stream !== "function") {
    throw new TypeError("createConnection needs a client of createClient(): call createConnection(client, WebSocketServer).");
  }
  if (typeof WebSocketServer !== "function") {
    throw new TypeError('createConnection needs WebSocketServer of "ws": call createConnection(client, WebSocketServer).');
  }
  const sockets = new WebSocketServer({ noServer: true, maxPayload: PAYLOAD_MAX, clientTracking: false });
  return () => {
    const [near, far] = pair();
    const server = createServer((_, reply) => void reply.writeHead(426, { upgrade: "websocket" }).end());
    server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      const { pathname } = new URL(request.url ?? "/", "http://fm-proxy");
      if (/\/responses\/?$/.test(pathname)) sockets.handleUpgrade(request, socket, head, (each) => new Session(client, each));
      else socket.end("HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    });
    server.emit("connection", near);
    return far;
  };
}

/** Two ends of a connection: what is written to one is read from the other. */
function pair(): [Duplex, Duplex] {
  const waiting: [(() => void) | null, (() => void) | null] = [null, null];
  const release = (end: 0 | 1): void => {
    const done = waiting[end];
    waiting[end] = null;
    done?.();
  };
  const end = (own: 0 | 1, other: 0 | 1): Duplex =>
    new Duplex({
      read: () => release(own),
      // The writer waits until the other end reads on.
      write(bytes: Buffer, _, done) {
        waiting[other] = done;
        ends[other].push(bytes);
      },
      final(done) {
        ends[other].push(null);
        done();
      },
      destroy(error, done) {
        release(own);
        if (!ends[other].readableEnded && !ends[other].destroyed) ends[other].push(null);
        done(error);
      },
    });
  const ends: [Duplex, Duplex] = [end(0, 1), end(1, 0)];
  return ends;
}

/** A steering input that was accepted, in OpenAI's words. */
interface Steer {
  id: string;
  previous_response_id: unknown;
  input: unknown;
}

/** A response that is being made. */
interface Active {
  readonly body: JsonObject;
  readonly streamId: string | undefined;
  /** The response in the last event that had it; null: the response has not begun. */
  response: JsonObject | null;
  /** The next `sequence_number`; events about steering are counted too. */
  sequence: number;
  readonly steers: Steer[];
}

/** One connection: its lanes, and what it remembers of its responses. */
class Session {
  readonly #client: ResponsesClient;
  readonly #socket: Socket;
  readonly #closed = new AbortController();
  /** When the last response of each lane has ended: a lane makes one after the other. */
  readonly #lanes = new Map<string, Promise<void>>();
  readonly #active = new Map<unknown, Active>();
  readonly #ended = new Set<unknown>();
  /** The input and the output of each ended response that is not stored. */
  readonly #kept = new Map<unknown, unknown[]>();
  /** The steering inputs that wait until the application sends the outputs of a response's calls. */
  readonly #pending = new Map<unknown, Steer[]>();

  constructor(client: ResponsesClient, socket: Socket) {
    this.#client = client;
    this.#socket = socket;
    socket.on("message", (data, isBinary) => {
      if (isBinary) socket.close(UNSUPPORTED_DATA, "Send JSON in text frames.");
      else this.#take(String(data));
    });
    socket.on("close", () => this.#closed.abort());
    socket.on("error", () => {}); // after an invalid frame `ws` closes the connection
  }

  #send(event: JsonObject, streamId: string | undefined): void {
    if (this.#socket.readyState !== OPEN) return;
    this.#socket.send(JSON.stringify(streamId === undefined ? event : { ...event, stream_id: streamId }));
  }

  #report({ status, type, code, message, param }: OpenAIErrorShape, streamId?: string): void {
    const error = { type, code, message, param };
    this.#send({ type: "error", sequence_number: 0, status, code, message, param, error }, streamId);
  }

  #refuse(code: string, param: string | null, message: string, streamId?: string): void {
    this.#report({ status: 400, type: "invalid_request_error", code, message, param }, streamId);
  }

  #take(text: string): void {
    let event: unknown;
    try {
      event = JSON.parse(text);
    } catch {
      // refused below
    }
    if (!isObject(event)) this.#refuse("invalid_json", null, "A message must be one JSON object.");
    else if (event["type"] === "response.create") this.#create(event);
    else if (event["type"] === "response.steer") this.#steer(event);
    else this.#refuse("invalid_value", "type", "Invalid value for 'type': send 'response.create' or 'response.steer'.");
  }

  /** Queues a response in its lane. `stream` has no effect, because every response is streamed. */
  #create({ type: _, stream: __, stream_id: streamId, ...body }: JsonObject): void {
    if (streamId !== undefined && (typeof streamId !== "string" || streamId === "")) {
      return this.#refuse("invalid_type", "stream_id", "Invalid 'stream_id': it must be a text that is not empty.");
    }
    if (body["background"] === true) {
      const message = "Unsupported parameter: 'background'. A connection has no responses in the background: leave it out.";
      return this.#refuse("unsupported_parameter", "background", message, streamId);
    }
    const lane = streamId ?? "";
    const last = this.#lanes.get(lane) ?? Promise.resolve();
    const next = last.then(() => this.#run(body, streamId));
    this.#lanes.set(lane, next);
    void next.then(() => this.#lanes.get(lane) === next && this.#lanes.delete(lane));
  }

  /** Makes a response, and then those that continue it because it was steered. */
  async #run(body: JsonObject, streamId: string | undefined): Promise<void> {
    const parent = body["previous_response_id"];
    const waiting = this.#pending.get(parent) ?? [];
    const first: Active = { body, streamId, response: null, sequence: 0, steers: [] };
    const failure = await this.#respond(first, waiting);
    if (first.response !== null) this.#pending.delete(parent);
    else if (!this.#closed.signal.aborted) this.#report(failure.openai, streamId);
    let last = first;
    for (let next = this.#successor(last); next !== null; next = this.#successor(last)) {
      const why = await this.#respond(next, last.steers);
      if (next.response === null) this.#steersFailed(next, last.steers, "successor_creation_failed", why.message);
      last = next;
    }
  }

  /** Makes one response. Returns the error, which matters only if the response has not begun. */
  async #respond(active: Active, steers: readonly Steer[]): Promise<FmError> {
    const before = this.#kept.get(active.body["previous_response_id"]);
    const params = withInput(active.body, before, steers);
    let failure: unknown;
    try {
      for await (const event of this.#client.responses.stream(params, { signal: this.#closed.signal })) {
        this.#pass(active, event as JsonObject);
      }
    } catch (error) {
      failure = error;
    }
    this.#end(active, params);
    return failure as FmError;
  }

  #pass(active: Active, event: JsonObject): void {
    const passed: JsonObject = { ...event, sequence_number: active.sequence++ };
    if (isObject(event["response"])) {
      const previous_response_id = active.body["previous_response_id"] ?? null;
      passed["response"] = active.response = { ...event["response"], previous_response_id };
      this.#active.set(active.response["id"], active);
    }
    this.#send(passed, active.streamId);
  }

  #end({ response }: Active, params: JsonObject): void {
    if (response === null) return;
    const { id, status, store, output } = response;
    this.#active.delete(id);
    limit(this.#ended.add(id));
    if (store === false && (status === "completed" || status === "incomplete")) {
      limit(this.#kept.set(id, [...itemsOf(params["input"]), ...itemsOf(output)]));
    }
  }

  // ---- steering

  #steer({ type: _, previous_response_id: id, input, ...others }: JsonObject): void {
    const active = this.#active.get(id);
    const [unknown] = Object.keys(others);
    const steer = { id: `steer_${randomUUID().replaceAll("-", "")}`, previous_response_id: id, input };
    const failed = [{ ...steer, id: undefined }];
    const refuse = (code: string, message: string): void => this.#steersFailed(active, failed, code, message);
    if (unknown !== undefined) refuse("invalid_input", `Unknown parameter: '${unknown}'. Leave it out.`);
    else if (input === "" || itemsOf(input).length === 0) {
      refuse("invalid_input", "Invalid 'input': it must be a text or a list of messages, and not empty.");
    } else if (active === undefined) {
      const ended = this.#ended.has(id);
      if (ended) refuse("response_already_completed", "The response has ended: send the input in 'response.create'.");
      else refuse("response_not_found", "No such response is in progress on this connection: check 'previous_response_id'.");
    } else if (active.steers.length === STEERS_MAX) {
      refuse("too_many_pending_steers", `At most ${STEERS_MAX} inputs can wait for a response: send the input later.`);
    } else {
      active.steers.push(steer);
      this.#aboutSteer(active, "accepted", { id: steer.id, previous_response_id: id });
    }
  }

  #aboutSteer(active: Active | undefined, what: string, steer: JsonObject, more: JsonObject = {}): void {
    const sequence_number = active === undefined ? 0 : active.sequence++;
    this.#send({ type: `response.steer.${what}`, sequence_number, steer, ...more }, active?.streamId);
  }

  #steersFailed(active: Active | undefined, steers: readonly object[], code: string, message: string): void {
    const error = { type: "invalid_request_error", code, message };
    for (const steer of steers) this.#aboutSteer(active, "failed", { ...steer }, { error });
  }

  /**
   * The response that continues one that was steered. Null: it was not; it has failed; or its calls need the application, and the
   * steering inputs wait.
   */
  #successor(active: Active): Active | null {
    const { body, response, steers, streamId } = active;
    if (response === null || steers.length === 0) return null;
    const { id, status, output } = response;
    const calls = (itemsOf(output) as JsonObject[]).filter(({ type }) => CALLS.has(type));
    if (status !== "completed") {
      const message = "The response was not completed: send the input in 'response.create'.";
      this.#steersFailed(active, steers, "response_not_active", message);
      return null;
    }
    if (calls.length > 0) {
      const more = { reason: "waiting_for_required_input", required_input: calls.map(stubOf) };
      for (const { id: own } of steers) this.#aboutSteer(active, "pending", { id: own, previous_response_id: id }, more);
      limit(this.#pending.set(id, steers));
      return null;
    }
    return { body: { ...body, previous_response_id: id, input: [] }, streamId, response: null, sequence: 0, steers: [] };
  }
}

/** The calls that the application has to run. */
const CALLS: ReadonlySet<unknown> = new Set(["function_call", "custom_tool_call"]);

/** What the application has to send for a call, without the output. */
const stubOf = ({ type, call_id, name }: JsonObject): JsonObject => ({
  type: `${String(type)}_output`,
  call_id,
  ...(type === "function_call" ? { name } : {}),
});

/** The items of an input. */
function itemsOf(input: unknown): unknown[] {
  return typeof input === "string" ? [{ role: "user", content: input }] : Array.isArray(input) ? input : [];
}

/** The body with the items before its input: those of a response that is not stored, and what a steered response waits for. */
function withInput(body: JsonObject, before: readonly unknown[] | undefined, steers: readonly Steer[]): JsonObject {
  const { input: given } = body;
  const invalid = given !== undefined && given !== null && typeof given !== "string" && !Array.isArray(given);
  if (invalid || (before === undefined && steers.length === 0)) return body; // the helper refuses what is invalid
  const { previous_response_id, ...rest } = body;
  const input = [...(before ?? []), ...steers.flatMap((steer) => itemsOf(steer.input)), ...itemsOf(given)];
  return { ...rest, ...(before === undefined ? { previous_response_id } : {}), input };
}

/** Forgets what is oldest. */
function limit(all: Set<unknown> | Map<unknown, unknown>): void {
  if (all.size > KEPT_MAX) all.delete(all.keys().next().value);
}
