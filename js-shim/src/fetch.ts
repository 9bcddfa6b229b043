import { readJson, takeBody, UnreadableBodyError, type Body } from "./body.js";
import { createChat, streamChat } from "./chat.js";
import { createCompletion, streamCompletion } from "./completions.js";
import { createEmbeddings } from "./embeddings.js";
import { FmError, toFmError } from "./errors.js";
import { listModels, retrieveModel } from "./models.js";
import { errorBody, errorResponse, headers, jsonResponse, streamBody } from "./reply.js";
import {
  cancelResponse,
  compactResponse,
  countInputTokens,
  createResponse,
  deleteResponse,
  listInputItems,
  retrieveResponse,
  streamResponse,
  streamRetrieved,
} from "./responses.js";
import { chunkFrame, responseFrame } from "./sse.js";
import { withSignal } from "./stream.js";
import type { JsonObject, Operation, ResponseCreateParams, ResponseEvent, Transport } from "./types.js";

/** One call as it comes in. */
interface Call {
  method: string;
  path: string;
  /** What the path names, decoded, or "". */
  id: string;
  query: URLSearchParams;
  body: Body;
  signal: AbortSignal | null;
}

type Handler = (transport: Transport, call: Call) => Promise<Response>;

interface Route {
  path: RegExp;
  methods: Readonly<Record<string, Handler>>;
}

/** The paths of OpenAI's API behind any base URL; no two fit the same. */
const ROUTES: readonly Route[] = [
  { path: /\/chat\/completions$/, methods: { POST: chunked(createChat, streamChat) } },
  { path: /(?<!\/chat)\/completions$/, methods: { POST: chunked(createCompletion, streamCompletion) } },
  { path: /\/embeddings$/, methods: { POST: withBody(createEmbeddings) } },
  { path: /\/responses$/, methods: { POST: responses } },
  { path: /\/responses\/input_tokens$/, methods: { POST: withBody(countInputTokens) } },
  { path: /\/responses\/compact$/, methods: { POST: withBody(compactResponse) } },
  {
    path: /\/responses\/(?!(?:input_tokens|compact)$)([^/]+)$/,
    methods: { GET: retrieve, DELETE: ofId(deleteResponse) },
  },
  { path: /\/responses\/([^/]+)\/cancel$/, methods: { POST: ofId(cancelResponse) } },
  { path: /\/responses\/([^/]+)\/input_items$/, methods: { GET: inputItems } },
  { path: /\/models$/, methods: { GET: allModels } },
  { path: /\/models\/([^/]+)$/, methods: { GET: ofId(retrieveModel) } },
];

/**
 * Makes a `fetch` that answers OpenAI's HTTP API from a helper. The host and any prefix of the URL do not matter, and
 * nothing leaves the process. As with the real one, a failure is a response; only an abort and a body that can't be read
 * reject.
 */
export function createFetch(transport: Transport): typeof globalThis.fetch {
  return async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const call = readCall(input, init);
    call.signal?.throwIfAborted();
    const response = await answer(transport, call);
    return call.method === "HEAD" ? withoutBody(response) : response;
  };
}

async function answer(transport: Transport, call: Call): Promise<Response> {
  try {
    return await dispatch(transport, call);
  } catch (error) {
    if (call.signal?.aborted) throw call.signal.reason;
    if (error instanceof UnreadableBodyError) throw error;
    return errorResponse(toFmError(error));
  }
}

async function withoutBody(response: Response): Promise<Response> {
  await response.body?.cancel();
  return new Response(null, { status: response.status, headers: response.headers });
}

function readCall(input: string | URL | Request, init: RequestInit | undefined): Call {
  const request = typeof input === "object" && "url" in input ? input : null;
  const url = new URL(request?.url ?? String(input), "http://fm-proxy/");
  return {
    method: (init?.method ?? request?.method ?? "GET").toUpperCase(),
    path: url.pathname.replace(/\/+$/, ""),
    id: "",
    query: url.searchParams,
    body: takeBody(request, init),
    signal: init?.signal !== undefined ? init.signal : (request?.signal ?? null),
  };
}

async function dispatch(transport: Transport, call: Call): Promise<Response> {
  const route = ROUTES.find(({ path }) => path.test(call.path));
  if (route === undefined) {
    const openai = { code: "unknown_url" };
    throw new FmError("NOT_FOUND", `Unknown request URL: ${call.method} ${call.path}.`, { openai });
  }
  const there = { ...call, id: decode(route.path.exec(call.path)?.[1] ?? "") };
  const method = call.method === "HEAD" && "GET" in route.methods ? "GET" : call.method;
  const handler = Object.hasOwn(route.methods, method) ? route.methods[method] : undefined;
  return handler === undefined ? notHere(route, call) : handler(transport, there);
}

/** What a path says to other methods than its own. */
function notHere({ methods }: Route, { method, path }: Call): Response {
  const allowed = [...Object.keys(methods), ...("GET" in methods ? ["HEAD"] : []), "OPTIONS"];
  const allow = { allow: allowed.join(", ") };
  if (method === "OPTIONS") return new Response(null, { status: 204, headers: { ...headers(), ...allow } });
  const message = `${method} is not allowed at ${path}; ${Object.keys(methods).join(" and ")} is.`;
  return errorResponse(
    new FmError("INVALID_REQUEST", message, { openai: { status: 405, code: "method_not_allowed" } }),
    allow,
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

/** An endpoint that takes an object and answers with another one. */
function withBody<P extends JsonObject>(start: (transport: Transport, body: P) => Operation<unknown>): Handler {
  return async (transport, call) => {
    const params = (await readParams(call)) as P;
    return jsonResponse(await withSignal(() => start(transport, params), call.signal));
  };
}

/** An endpoint that needs no more than the id in its path. */
function ofId(start: (transport: Transport, id: string) => Operation<unknown>): Handler {
  return async (transport, { id, query, body, signal }) => {
    readQuery(query, {});
    const params = body.content === null || body.content === "" ? {} : await readJson(body, signal);
    for (const name of Object.keys(params)) throw badQuery("unknown_parameter", name, "Unknown");
    return jsonResponse(await withSignal(() => start(transport, id), signal));
  };
}

/** What an endpoint that takes a body is asked for: all of it stands there, and nothing in the query. */
function readParams({ query, body, signal }: Call): Promise<JsonObject> {
  readQuery(query, {});
  return readJson(body, signal);
}

async function responses(transport: Transport, call: Call): Promise<Response> {
  const { signal } = call;
  const params = (await readParams(call)) as ResponseCreateParams;
  if (params.stream !== true) return jsonResponse(await withSignal(() => createResponse(transport, params), signal));
  return responseStream(signal, (onEvent) => streamResponse(transport, params, onEvent));
}

async function retrieve(transport: Transport, { id, query, signal }: Call): Promise<Response> {
  const params = readQuery(query, RETRIEVE_QUERY);
  if (params["stream"] !== true)
    return jsonResponse(await withSignal(() => retrieveResponse(transport, id, params), signal));
  return responseStream(signal, (onEvent) => streamRetrieved(transport, id, params, onEvent));
}

function responseStream(
  signal: AbortSignal | null,
  start: (onEvent: (event: ResponseEvent) => void) => Operation<unknown>,
): Promise<Response> {
  return streamBody(signal, {
    start: (push) => start((event) => push(responseFrame(event))),
    // The stream's own last events have told the failure.
    failure: () => [],
  });
}

async function inputItems(transport: Transport, { id, query, signal }: Call): Promise<Response> {
  const params = readQuery(query, LIST_QUERY);
  return jsonResponse(await withSignal(() => listInputItems(transport, id, params), signal));
}

/** An endpoint whose answer is one object, or chunks of it. */
function chunked<P extends JsonObject, C extends JsonObject>(
  create: (transport: Transport, body: P) => Operation<unknown>,
  stream: (transport: Transport, body: P, onChunk: (chunk: C) => void) => Operation<unknown>,
): Handler {
  return async (transport, call) => {
    const { signal } = call;
    const params = (await readParams(call)) as P;
    if (params["stream"] !== true) return jsonResponse(await withSignal(() => create(transport, params), signal));
    return streamBody(signal, {
      start: (push) => stream(transport, params, (chunk) => push(chunkFrame(chunk))),
      failure: (error) => [chunkFrame({ error: errorBody(error.openai) })],
    });
  };
}

async function allModels(transport: Transport, { query, signal }: Call): Promise<Response> {
  readQuery(query, {});
  return jsonResponse(await withSignal(() => listModels(transport), signal));
}

/** What some clients put behind every URL, and what means nothing here. */
const IGNORED = new Set(["api-version"]);

/** How a parameter of a query is written: text, or what is that in JSON; a list as `name[]=a&name[]=b` or `name=a`. */
type QueryType = "text" | "number" | "flag" | "list";

const RETRIEVE_QUERY = {
  include: "list",
  stream: "flag",
  starting_after: "number",
  include_obfuscation: "flag",
} as const;
const LIST_QUERY = { include: "list", limit: "number", order: "text", after: "text" } as const;

/** The parameters of a query as a call has them. The helper judges the values; a name that is unknown is told here. */
function readQuery(query: URLSearchParams, types: Readonly<Record<string, QueryType>>): JsonObject {
  const params: JsonObject = {};
  for (const [key, text] of query) {
    if (IGNORED.has(key)) continue;
    const name = key.replace(/\[\d*\]$/, "");
    const type = Object.hasOwn(types, name) ? types[name] : undefined;
    if (type === undefined || (name !== key && type !== "list")) throw badQuery("unknown_parameter", key, "Unknown");
    if (type === "list") params[name] = [...((params[name] as string[] | undefined) ?? []), text];
    else if (Object.hasOwn(params, name)) throw badQuery("invalid_value", key, "Repeated");
    else params[name] = readValue(text, type);
  }
  return params;
}

function badQuery(code: string, param: string, what: string): FmError {
  return new FmError("INVALID_REQUEST", `${what} parameter: '${param}'.`, { openai: { code, param } });
}

/** What is not of its type stays text, which the helper refuses. */
function readValue(text: string, type: QueryType): unknown {
  if (type === "flag" && (text === "true" || text === "false")) return text === "true";
  return type === "number" && /^-?\d{1,15}$/.test(text) ? Number(text) : text;
}
