// JSON-RPC over frames: calls, their results, and the notifications of streams.
import { FmError } from "./errors.js";
import { encodeFrame, FrameParser, FramingError, UnencodableError } from "./framing.js";
import type { JsonObject } from "./types.js";
import { isObject } from "./types.js";
import { RPC_ERRORS, STREAM_NOTIFICATIONS } from "./wire.js";

interface Pending {
  resolve(result: JsonObject): void;
  reject(error: FmError): void;
  onNotification: ((params: JsonObject) => void) | undefined;
}

/** A call that has been written. */
export interface Sent {
  readonly id: number;
  readonly result: Promise<JsonObject>;
}

/** Methods of notifications. The `params.id` of such a notification names the call that it belongs to. */
const STREAMS: ReadonlySet<string> = new Set(STREAM_NOTIFICATIONS);

/**
 * JSON-RPC over one connection. It numbers the calls, and passes the notifications and the result to each call. It gets a
 * function for writing, and the bytes that were read. It knows nothing about processes.
 */
export class RpcConnection {
  readonly #write: (bytes: Uint8Array) => void;
  readonly #pending = new Map<number, Pending>();
  readonly #parser = new FrameParser((body) => this.#takeBody(body));
  readonly #decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  #nextId = 1;
  /** The latest call that the other side has read. It reads the calls in order. */
  #readUpTo = 0;
  #failure: FmError | null = null;

  /** @param write - writes one whole frame; if it throws an FmError, the call throws it too */
  constructor(write: (bytes: Uint8Array) => void) {
    this.#write = write;
  }

  /** How many calls wait for their result. */
  get pending(): number {
    return this.#pending.size;
  }

  /** Writes a call. Throws an FmError if that fails; then nothing was written. */
  call(method: string, params: JsonObject, onNotification?: (params: JsonObject) => void): Sent {
    if (this.#failure !== null) throw this.#failure;
    const id = this.#nextId++;
    this.#send({ jsonrpc: "2.0", id, method, params });
    const result = new Promise<JsonObject>((resolve, reject) => {
      this.#pending.set(id, { resolve, reject, onNotification });
    });
    return { id, result };
  }

  /** Whether a message has shown that the other side has read the call `id`. */
  hasRead(id: number): boolean {
    return id <= this.#readUpTo;
  }

  /** Cancels a call, and rejects it at once. A later answer is dropped. */
  abandon(id: number, error: FmError): void {
    this.cancel(id);
    const call = this.#pending.get(id);
    this.#pending.delete(id);
    call?.reject(error);
  }

  /** Asks the other side to end a call. Sends nothing for a call that is over. */
  cancel(id: number): void {
    if (this.#failure !== null || !this.#pending.has(id)) return;
    try {
      this.#send({ jsonrpc: "2.0", method: "$/cancelRequest", params: { id } });
    } catch {
      // The connection is broken. Its end settles the call.
    }
  }

  /**
   * Handles bytes that were read from the connection.
   *
   * @throws FmError when the bytes break the protocol (PROTOCOL_ERROR) or report the helper's end (HELPER_EXITED). The connection
   * can't be used after that.
   */
  receive(chunk: Uint8Array): void {
    if (this.#failure !== null) return;
    try {
      this.#parser.push(chunk);
    } catch (error) {
      if (!(error instanceof FramingError)) throw error;
      throw new FmError("PROTOCOL_ERROR", `The helper broke the protocol: ${error.message}.`, { cause: error });
    }
  }

  /** Rejects all waiting calls. All later calls fail with the same error. Only the first error counts. */
  fail(error: FmError): void {
    if (this.#failure !== null) return;
    this.#failure = error;
    const waiting = [...this.#pending.values()];
    this.#pending.clear();
    for (const call of waiting) call.reject(error);
  }

  #send(message: JsonObject): void {
    let frame: Uint8Array;
    try {
      frame = encodeFrame(message);
    } catch (error) {
      if (!(error instanceof UnencodableError)) throw error;
      const openai = error.tooLong ? { status: 413, code: "request_too_large" } : { param: error.param };
      throw new FmError("INVALID_REQUEST", error.message, { openai, cause: error });
    }
    this.#write(frame);
  }

  #takeBody(body: Uint8Array): void {
    let message: unknown;
    try {
      message = JSON.parse(this.#decoder.decode(body));
    } catch (error) {
      throw new FmError("PROTOCOL_ERROR", "The helper broke the protocol: a frame that is not JSON.", { cause: error });
    }
    if (!isObject(message) || message["jsonrpc"] !== "2.0") {
      throw new FmError("PROTOCOL_ERROR", "The helper broke the protocol: a message that is not JSON-RPC 2.0.");
    }
    if ("method" in message) this.#takeNotification(message);
    else this.#takeReply(message);
  }

  #takeNotification(message: JsonObject): void {
    const params = message["params"];
    if (!STREAMS.has(message["method"] as string) || !isObject(params)) return;
    const call = this.#pending.get(params["id"] as number);
    if (call === undefined) return;
    this.#noteRead(params["id"] as number);
    call.onNotification?.(params);
  }

  #noteRead(id: number): void {
    this.#readUpTo = Math.max(this.#readUpTo, id);
  }

  #takeReply(message: JsonObject): void {
    const failure = isObject(message["error"]) ? message["error"] : null;
    if (message["id"] === null) throw fatalError(failure);
    const id = message["id"] as number;
    const call = this.#pending.get(id);
    if (call === undefined) return;
    this.#pending.delete(id);
    this.#noteRead(id);
    const result = message["result"];
    if (failure !== null) {
      call.reject(refusal(failure));
    } else if (isObject(result) && result["ok"] === true) {
      call.resolve(result);
    } else if (isObject(result) && result["ok"] === false) {
      call.reject(FmError.fromResult(result));
    } else {
      call.reject(new FmError("PROTOCOL_ERROR", "The helper broke the protocol: a result without ok."));
    }
  }
}

/** The error for a call that the helper refused with a JSON-RPC error. A helper older than this package may lack the method. */
function refusal({ code, message }: JsonObject): FmError {
  const unknown = code === RPC_ERRORS.METHOD_NOT_FOUND;
  const openai = unknown ? { status: 404, type: "invalid_request_error", code: "unknown_url" } : undefined;
  return new FmError("RPC_ERROR", `${String(message)} (${String(code)})`, { openai });
}

/** The error for a JSON-RPC error without a call's id. After an internal error the helper exits, because it is out of memory. */
function fatalError(failure: JsonObject | null): FmError {
  const message = String(failure?.["message"] ?? "no reason given");
  return failure?.["code"] === RPC_ERRORS.INTERNAL_ERROR
    ? new FmError("HELPER_EXITED", `The helper is out of memory and ended: ${message}.`)
    : new FmError("PROTOCOL_ERROR", `The helper could not read a request: ${message}.`);
}
