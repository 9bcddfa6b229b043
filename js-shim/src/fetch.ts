// client.fetch: a fetch function that answers OpenAI HTTP requests in this process.
import { readJson, takeBody, UnreadableBodyError, type Body } from "./body.js";
import { createChat, streamChat } from "./chat.js";
import { createCompletion, streamCompletion } from "./completions.js";
import { createDecision } from "./decisions.js";
import { createEmbeddings } from "./embeddings.js";
import { FmError } from "./errors.js";
import { sourceOf } from "./fallback.js";
import { addIgnored, ignoredHeader, ignoredOf } from "./ignored.js";
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
import { toFmError } from "./thrown.js";
import type { JsonObject, Operation, ResponseCreateParams, WireEvent, Transport } from "./types.js";

/** One call as it comes in. */
interface Call {
  method: string;
  path: string;
  /** The id in the path, decoded, or "". */
  id: string;
  query: URLSearchParams;
  body: Body;
  signal: AbortSignal | null;
  /** Whether unknown parameters are refused. */
  strict: boolean;
  /** If unknown parameters are not refused: those that are not sent to the helper. */
  ignored: string[];
}

type Handler = (transport: Transport, call: Call) => Promise<Response>;

interface Route {
  path: RegExp;
  methods: Readonly<Record<string, Handler>>;
}

/** The paths of OpenAI's API under any base URL; a path fits only one. */
const ROUTES: readonly Route[] = [
  { path: /\/chat\/completions$/, methods: { POST: chunked(createChat, streamChat) } },
  { path: /(?<!\/chat)\/completions$/, methods: { POST: chunked(createCompletion, streamCompletion) } },
  { path: /\/embeddings$/, methods: { POST: withBody(createEmbeddings) } },
  { path: /\/decisions$/, methods: { POST: withBody(createDecision) } },
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
 * Makes a `fetch` that answers OpenAI's HTTP API from a helper. The host and any prefix of the URL do not matter, and nothing
 * leaves the process. As with the real `fetch`, a failure is a response; only an abort and a body that can't be read reject.
 *
 * @param strict - whether unknown parameters in a URL are refused; the helper has the same option for those of a body
 */
export function createFetch(transport: Transport, strict = false): typeof globalThis.fetch {
  return async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const call = { ...readCall(input, init), strict };
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

function readCall(input: string | URL | Request, init: RequestInit | undefined): Omit<Call, "strict"> {
  const request = typeof input === "object" && "url" in input ? input : null;
  const url = new URL(request?.url ?? String(input), "http://fm-proxy/");
  return {
    method: (init?.method ?? request?.method ?? "GET").toUpperCase(),
    path: url.pathname.replace(/\/+$/, ""),
    id: "",
    query: url.searchParams,
    body: takeBody(request, init),
    signal: init?.signal !== undefined ? init.signal : (request?.signal ?? null),
    ignored: [],
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

/** The answer to an HTTP method that the path does not have. */
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

/** The parameter of a path, percent-decoded; unchanged if the encoding is invalid. */
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
    return created(call, await withSignal(() => start(transport, params), call.signal));
  };
}

/** The HTTP response to a request that created an answer. */
function created(call: Call, answer: unknown): Response {
  return jsonResponse(answer, told(call, answer));
}

/**
 * The headers for an answer that a request created. They name the parameters that had no effect, and say whether the model or the
 * fallback answered.
 */
function told(call: Call, answer: unknown): Record<string, string> {
  return { ...ignoredHeader([...call.ignored, ...ignoredOf(answer)]), "x-fm-source": sourceOf(answer) };
}

/** An endpoint that needs only the id in its path. */
function ofId(start: (transport: Transport, id: string) => Operation<unknown>): Handler {
  return async (transport, call) => {
    const { id, body, signal } = call;
    readQuery(call, {});
    const params = body.content === null || body.content === "" ? {} : await readJson(body, signal);
    for (const name of Object.keys(params)) ignore(call, name);
    return jsonResponse(await withSignal(() => start(transport, id), signal), ignoredHeader(call.ignored));
  };
}

/** Reads the parameters of an endpoint that takes a body. All are in the body, and the query has none. */
function readParams(call: Call): Promise<JsonObject> {
  readQuery(call, {});
  return readJson(call.body, call.signal);
}

/** Refuses a parameter that has no meaning for this endpoint, or adds it to the ignored ones. */
function ignore(call: Call, name: string): void {
  if (call.strict) throw badQuery("unknown_parameter", name, "Unknown");
  addIgnored(call.ignored, name);
}

async function responses(transport: Transport, call: Call): Promise<Response> {
  const { signal } = call;
  const params = (await readParams(call)) as ResponseCreateParams;
  if (params.stream !== true) return created(call, await withSignal(() => createResponse(transport, params), signal));
  const ofEvent = (event: WireEvent) => told(call, "response" in event ? event.response : undefined);
  return responseStream(signal, ofEvent, (onEvent) => streamResponse(transport, params, onEvent));
}

async function retrieve(transport: Transport, call: Call): Promise<Response> {
  const { id, signal } = call;
  const params = readQuery(call, RETRIEVE_QUERY);
  if (params["stream"] !== true)
    return jsonResponse(await withSignal(() => retrieveResponse(transport, id, params), signal), ignoredHeader(call.ignored));
  // A stored response lists the ignored parameters of the request that created it, not those of this request.
  const ignored = () => ignoredHeader(call.ignored);
  return responseStream(signal, ignored, (onEvent) => streamRetrieved(transport, id, params, onEvent));
}

function responseStream(
  signal: AbortSignal | null,
  headersOf: (event: WireEvent) => Record<string, string>,
  start: (onEvent: (event: WireEvent) => void) => Operation<unknown>,
): Promise<Response> {
  return streamBody(signal, {
    start: (push) => start((event) => push(responseFrame(event), () => headersOf(event))),
    // The stream's own last events have already reported the failure.
    failure: () => [],
  });
}

async function inputItems(transport: Transport, call: Call): Promise<Response> {
  const params = readQuery(call, LIST_QUERY);
  const page = await withSignal(() => listInputItems(transport, call.id, params), call.signal);
  return jsonResponse(page, ignoredHeader(call.ignored));
}

/** An endpoint whose answer is one object, or chunks of it. */
function chunked<P extends JsonObject, C extends object>(
  create: (transport: Transport, body: P) => Operation<unknown>,
  stream: (transport: Transport, body: P, onChunk: (chunk: C) => void) => Operation<unknown>,
): Handler {
  return async (transport, call) => {
    const { signal } = call;
    const params = (await readParams(call)) as P;
    if (params["stream"] !== true) return created(call, await withSignal(() => create(transport, params), signal));
    return streamBody(signal, {
      start: (push) => stream(transport, params, (chunk) => push(chunkFrame(chunk), () => told(call, chunk))),
      failure: (error) => [chunkFrame({ error: errorBody(error.openai) })],
    });
  };
}

async function allModels(transport: Transport, call: Call): Promise<Response> {
  readQuery(call, {});
  return jsonResponse(await withSignal(() => listModels(transport), call.signal), ignoredHeader(call.ignored));
}

/** Parameters that some clients append to every URL. They have no meaning here, and are not reported. */
const ALWAYS = new Set(["api-version"]);

/** How a parameter of a query is written: numbers and flags as in JSON, a list as `name[]=a&name[]=b` or `name=a`. */
type QueryType = "text" | "number" | "flag" | "list";

const RETRIEVE_QUERY = {
  include: "list",
  stream: "flag",
  starting_after: "number",
  include_obfuscation: "flag",
} as const;
const LIST_QUERY = { include: "list", limit: "number", order: "text", after: "text" } as const;

/**
 * Converts the parameters of a URL's query to the form of a call's params. The helper checks the values; this function finds
 * unknown names.
 */
function readQuery(call: Call, types: Readonly<Record<string, QueryType>>): JsonObject {
  const params: JsonObject = {};
  for (const [key, text] of call.query) {
    if (ALWAYS.has(key)) continue;
    const name = key.replace(/\[\d*\]$/, "");
    const type = Object.hasOwn(types, name) ? types[name] : undefined;
    if (type === undefined || (name !== key && type !== "list")) ignore(call, key);
    else if (type === "list") params[name] = [...((params[name] as string[] | undefined) ?? []), text];
    else if (Object.hasOwn(params, name)) throw badQuery("invalid_value", key, "Repeated");
    else params[name] = readValue(text, type);
  }
  return params;
}

function badQuery(code: string, param: string, what: string): FmError {
  return new FmError("INVALID_REQUEST", `${what} parameter: '${param}'.`, { openai: { code, param } });
}

/** Converts a value to its type. A value that does not have this type stays a text, and the helper refuses it. */
function readValue(text: string, type: QueryType): unknown {
  if (type === "flag" && (text === "true" || text === "false")) return text === "true";
  return type === "number" && /^-?\d{1,15}$/.test(text) ? Number(text) : text;
}
