import { randomUUID } from "node:crypto";
import { createChat, streamChat } from "./chat.js";
import { FmError, toFmError, type OpenAIErrorShape } from "./errors.js";
import { createResponse, streamResponse } from "./responses.js";
import { chatFrame, DONE, responseFrame } from "./sse.js";
import { withSignal } from "./stream.js";
import type { ChatCreateParams, JsonObject, Operation, ResponseCreateParams, Transport } from "./types.js";
import { isObject } from "./types.js";

/** How long a client should wait before it tries again what was refused for want of room. */
const RETRY_AFTER_MS = 500;

/** One call as it comes in, apart from its body. */
interface Call {
  method: string;
  path: string;
  signal: AbortSignal | null;
  /** Reads the body; only routes that take one do. */
  json(): Promise<JsonObject>;
}

interface Route {
  method: string;
  path: RegExp;
  handle(transport: Transport, call: Call, parameter: string): Promise<Response>;
}

const ROUTES: readonly Route[] = [
  { method: "POST", path: /\/chat\/completions$/, handle: chat },
  { method: "POST", path: /\/responses$/, handle: responses },
  { method: "POST", path: /\/responses\/([^/]+)\/cancel$/, handle: cancelResponse },
  { method: "GET", path: /\/models$/, handle: listModels },
  { method: "GET", path: /\/models\/([^/]+)$/, handle: retrieveModel },
];

/**
 * Makes a `fetch` that answers OpenAI's HTTP API from a helper. The host and any prefix of the URL do not matter, and
 * nothing leaves the process. As with the real one, a failure is a response; only an abort rejects.
 */
export function createFetch(transport: Transport): typeof globalThis.fetch {
  return async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const call = readCall(input, init);
    call.signal?.throwIfAborted();
    try {
      return await dispatch(transport, call);
    } catch (error) {
      if (call.signal?.aborted) throw call.signal.reason;
      return errorResponse(toFmError(error));
    }
  };
}

function readCall(input: string | URL | Request, init: RequestInit | undefined): Call {
  const request = typeof input === "object" && "url" in input ? input : null;
  const url = new URL(request?.url ?? String(input), "http://fm-proxy/");
  const signal = init?.signal !== undefined ? init.signal : (request?.signal ?? null);
  return {
    method: (init?.method ?? request?.method ?? "GET").toUpperCase(),
    path: url.pathname.replace(/\/+$/, ""),
    signal,
    json: async () => parseBody(init?.body != null ? await readBody(init.body) : ((await request?.text()) ?? "")),
  };
}

async function readBody(body: NonNullable<RequestInit["body"]>): Promise<string> {
  return typeof body === "string" ? body : new Response(body).text();
}

function parseBody(text: string): JsonObject {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    throw badRequest(`The body is not JSON: ${(error as Error).message}`);
  }
  if (!isObject(body)) throw badRequest("The body is not a JSON object.");
  return body;
}

function badRequest(message: string): FmError {
  return new FmError("INVALID_REQUEST", message, { openai: { code: "invalid_body" } });
}

async function dispatch(transport: Transport, call: Call): Promise<Response> {
  const there = ROUTES.filter((route) => route.path.test(call.path));
  const route = there.find(({ method }) => method === call.method);
  if (route !== undefined) {
    const parameter = route.path.exec(call.path)?.[1] ?? "";
    return route.handle(transport, call, decode(parameter));
  }
  const [status, message] =
    there.length > 0
      ? [405, `${call.method} is not allowed here; ${there.map(({ method }) => method).join(" and ")} is.`]
      : [404, `There is nothing at ${call.method} ${call.path}.`];
  const code = status === 405 ? "method_not_allowed" : "unknown_url";
  return errorResponse(
    new FmError(status === 404 ? "NOT_FOUND" : "INVALID_REQUEST", message, { openai: { status, code } }),
  );
}

/** The parameter of a path, percent-decoded; as it came where it is no such encoding. */
function decode(parameter: string): string {
  try {
    return decodeURIComponent(parameter);
  } catch {
    return parameter;
  }
}

async function responses(transport: Transport, call: Call): Promise<Response> {
  const body = (await call.json()) as ResponseCreateParams;
  if (body.stream !== true) return jsonResponse(await withSignal(() => createResponse(transport, body), call.signal));
  return streamBody(call.signal, {
    start: (push) => streamResponse(transport, body, (event) => push(responseFrame(event))),
    // The stream's own last events have told the failure.
    failure: () => [],
  });
}

async function chat(transport: Transport, call: Call): Promise<Response> {
  const body = (await call.json()) as unknown as ChatCreateParams;
  if (body.stream !== true) return jsonResponse(await withSignal(() => createChat(transport, body), call.signal));
  return streamBody(call.signal, {
    start: (push) => streamChat(transport, body, (chunk) => push(chatFrame(chunk))),
    failure: (error) => [chatFrame({ error: errorBody(error.openai) })],
  });
}

async function cancelResponse(transport: Transport, call: Call, id: string): Promise<Response> {
  const result = await withSignal(() => transport.call("responses.cancel", { id }), call.signal);
  return jsonResponse(result["response"] ?? result["completion"]);
}

async function listModels(transport: Transport, call: Call): Promise<Response> {
  const { ok: _, ...list } = await withSignal(() => transport.call("models.list", {}), call.signal);
  return jsonResponse(list);
}

async function retrieveModel(transport: Transport, call: Call, id: string): Promise<Response> {
  const { data } = await withSignal(() => transport.call("models.list", {}), call.signal);
  const model: unknown = Array.isArray(data) ? data.find((entry) => isObject(entry) && entry["id"] === id) : undefined;
  if (model !== undefined) return jsonResponse(model);
  const openai = { param: "model", code: "model_not_found" };
  throw new FmError("NOT_FOUND", `The model '${id}' does not exist.`, { openai });
}

interface StreamSource {
  start(push: (frame: Uint8Array) => void): Operation<unknown>;
  /** Frames that tell a failure in the middle. */
  failure(error: FmError): Uint8Array[];
}

/**
 * Resolves with a streaming response at the first frame. What fails before that rejects, so that it becomes an answer
 * with the right status. An abort rejects, or breaks the body, at once, and the helper is told.
 */
function streamBody(signal: AbortSignal | null, source: StreamSource): Promise<Response> {
  signal?.throwIfAborted();
  return new Promise<Response>((resolve, reject) => {
    let controller: ReadableStreamDefaultController<Uint8Array> | null = null;
    let over = false;
    const push = (frame: Uint8Array): void => {
      if (over) return;
      if (controller === null) resolve(open());
      controller?.enqueue(frame);
    };
    const end = (): boolean => {
      if (over) return false;
      over = true;
      signal?.removeEventListener("abort", onAbort);
      return true;
    };
    const stop = (): void => {
      if (end()) operation.cancel();
    };
    const onAbort = (): void => {
      const wasOpen = controller;
      stop();
      if (wasOpen === null) reject(signal?.reason);
      else wasOpen.error(signal?.reason);
    };
    const open = (): Response => {
      const body = new ReadableStream<Uint8Array>({ start: (it) => void (controller = it), cancel: stop });
      return new Response(body, { status: 200, headers: headers("text/event-stream; charset=utf-8") });
    };
    const close = (frames: Uint8Array[]): void => {
      for (const frame of [...frames, DONE]) push(frame);
      if (end()) controller?.close();
    };
    const operation = source.start(push);
    signal?.addEventListener("abort", onAbort, { once: true });
    operation.result.then(
      () => close([]),
      (reason: unknown) => {
        const error = toFmError(reason);
        if (controller !== null) close(source.failure(error));
        else if (end()) reject(error);
      },
    );
  });
}

function headers(contentType: string): Record<string, string> {
  return {
    "content-type": contentType,
    "cache-control": "no-store",
    "x-request-id": `req_${randomUUID().replaceAll("-", "")}`,
  };
}

function jsonResponse(body: unknown): Response {
  return new Response(JSON.stringify(body), { status: 200, headers: headers("application/json") });
}

function errorBody({ message, type, param, code }: OpenAIErrorShape): JsonObject {
  return { message, type, param, code };
}

function errorResponse(error: FmError): Response {
  const retry: Record<string, string> = error.retryable
    ? { "x-should-retry": "true", "retry-after-ms": String(RETRY_AFTER_MS) }
    : { "x-should-retry": "false" };
  const status = error.status >= 400 && error.status <= 599 ? error.status : 500;
  return new Response(JSON.stringify({ error: errorBody(error.openai) }), {
    status,
    headers: { ...headers("application/json"), ...retry },
  });
}
