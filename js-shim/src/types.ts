/** A JSON object whose fields the package passes on without looking at them. */
export interface JsonObject {
  [key: string]: unknown;
}

/** Time limits of one request, in milliseconds (see "Limits" in PROTOCOL.md). */
export interface RequestLimits {
  /** From arrival to the end, all included. */
  timeout_ms?: number;
  /** From arrival until the engine has accepted the prompt, loading the model included. The default counts without progress. */
  queue_timeout_ms?: number;
  /** From acceptance until the first output. The default counts without progress. */
  first_token_timeout_ms?: number;
  /** Since the last sign of progress. */
  no_progress_timeout_ms?: number;
}

/** What a body's `fm` can hold. */
export interface FmParams extends RequestLimits {
  /** Text that is not JSON, as this grammar describes it (see "Formats" in PROTOCOL.md). */
  grammar?: { syntax: "lark" | "regex"; definition: string };
  /** The answer's `fm.schema` tells what of the JSON schema was enforced. */
  schema_report?: boolean;
}

/** What became of a request's JSON schema; with `fm.schema_report`. */
export interface SchemaReport {
  /** Keywords that the answer can't break. */
  enforced: string[];
  /** Paths of those that were looked at when it was whole. */
  checked: string[];
  /** Null where there is no whole answer. */
  valid: boolean | null;
  error: string | null;
}

/** What an answer's `fm` has; absent where there is nothing to report. */
export interface FmReport {
  /** With `fm.schema_report`; null where there was no schema. */
  schema?: SchemaReport | null;
  /** With `truncation` "auto": how many of the oldest messages were left out. */
  dropped_messages?: number;
  /** Paths of the parameters that neither the helper nor its engine knows, and that had no effect. */
  ignored?: string[];
}

/** Parameters that are not OpenAI's. An engine that lacks one ignores it, and the answer says so. */
export interface ExtraParams {
  /** As many of the most likely tokens are drawn from; -1 or 0: all. */
  top_k?: number | null;
  /** Tokens that are less likely than this, relative to the best one, are never drawn. Default: 0.05. */
  min_p?: number | null;
  /** Above 1: tokens among the last 64 get less likely. Default: 1. */
  repeat_penalty?: number | null;
  /** The answer goes on to its token limit. */
  ignore_eos?: boolean | null;
}

/** The body of `POST /responses`, and `fm` with what is our own. */
export interface ResponseCreateParams extends JsonObject, ExtraParams {
  /** What to answer: a text, or message items. */
  input?: string | readonly JsonObject[];
  /** Absent or null: the default model. */
  model?: string | null;
  instructions?: string | null;
  max_output_tokens?: number | null;
  temperature?: number | null;
  top_p?: number | null;
  seed?: number | null;
  stop?: string | readonly string[] | null;
  /** Chat's name for `text.format`, in the shape of either API; send one of them. */
  response_format?: JsonObject | null;
  stream?: boolean | null;
  /** Whether it can be had again by its id, and gone on from. */
  store?: boolean | null;
  /** The response that this one goes on from. */
  previous_response_id?: string | null;
  /** Answers at once; the response is then looked at with `retrieve`. */
  background?: boolean | null;
  include?: readonly string[] | null;
  metadata?: Record<string, string> | null;
  fm?: FmParams;
}

/** What `responses.retrieve` takes besides the id. */
export interface ResponseRetrieveParams extends JsonObject {
  include?: readonly string[];
  /** Its events once more, rather than the whole. */
  stream?: boolean;
  /** With `stream`: the `sequence_number` of the last event that need not come again. */
  starting_after?: number;
}

/** The answer of `responses.delete`. */
export interface DeletedResponse extends JsonObject {
  id: string;
  object: "response";
  deleted: true;
}

/** What `responses.inputItems.list` takes besides the id. */
export interface InputItemListParams extends JsonObject {
  include?: readonly string[];
  limit?: number;
  order?: "asc" | "desc";
  /** The id of the item behind which the page begins. */
  after?: string;
}

/** One page of a stored response's input. */
export interface InputItemList extends JsonObject {
  object: "list";
  data: JsonObject[];
  first_id: string | null;
  last_id: string | null;
  has_more: boolean;
}

/** The answer of `responses.inputTokens.count`. */
export interface InputTokenCount extends JsonObject {
  object: "response.input_tokens";
  input_tokens: number;
  fm?: FmReport;
}

/** The body of `POST /responses/compact`. */
export interface ResponseCompactParams extends JsonObject {
  model: string;
  input?: string | readonly JsonObject[] | null;
  instructions?: string | null;
  previous_response_id?: string | null;
}

/** A conversation made short; its `output` is input for the next request. */
export interface CompactedResponse extends JsonObject {
  id: string;
  object: "response.compaction";
  created_at: number;
  output: JsonObject[];
  usage: ResponseUsage;
  fm?: FmReport;
}

/** The body of `POST /completions`, and `fm` with what is our own. */
export interface CompletionCreateParams extends JsonObject, ExtraParams {
  prompt: string;
  /** What comes behind the text that is asked for. */
  suffix?: string | null;
  model?: string | null;
  max_tokens?: number | null;
  temperature?: number | null;
  top_p?: number | null;
  seed?: number | null;
  stop?: string | readonly string[] | null;
  stream?: boolean | null;
  stream_options?: { include_usage?: boolean } | null;
  fm?: FmParams;
}

/** A completion of a text, or with `stream` one chunk of it. */
export interface Completion extends JsonObject {
  id: string;
  object: "text_completion";
  created: number;
  model: string;
  choices: { index: number; text: string; finish_reason: string | null; [key: string]: unknown }[];
  /** Of a chunk, the first one may have it. */
  fm?: FmReport;
  /** Null in all chunks but the last, and in what an error carries when the helper died before it could tell. */
  usage?: ChatUsage | null;
}

/** The body of `POST /embeddings`. */
export interface EmbeddingCreateParams extends JsonObject {
  /** A text or several, or their tokens. */
  input: string | readonly string[] | readonly number[] | readonly (readonly number[])[];
  model?: string | null;
  dimensions?: number | null;
  /** `base64`: the vectors as little-endian floats of 32 bits. Default: `float`. */
  encoding_format?: "float" | "base64" | null;
  user?: string | null;
}

/** The answer of `embeddings.create`. */
export interface EmbeddingList extends JsonObject {
  object: "list";
  model: string;
  data: { object: "embedding"; index: number; embedding: number[] | string; [key: string]: unknown }[];
  usage: { prompt_tokens: number; total_tokens: number; [key: string]: unknown };
  fm?: FmReport;
}

/** The body of `POST /chat/completions`, and `fm` with what is our own. */
export interface ChatCreateParams extends JsonObject, ExtraParams {
  messages: readonly JsonObject[];
  model?: string | null;
  max_tokens?: number | null;
  max_completion_tokens?: number | null;
  temperature?: number | null;
  top_p?: number | null;
  seed?: number | null;
  stop?: string | readonly string[] | null;
  stream?: boolean | null;
  stream_options?: { include_usage?: boolean } | null;
  fm?: FmParams;
}

/** What a response cost, counted by the model's tokenizer. */
export interface ResponseUsage {
  input_tokens: number;
  input_tokens_details: { cached_tokens: number; [key: string]: unknown };
  output_tokens: number;
  output_tokens_details: { reasoning_tokens: number; [key: string]: unknown };
  total_tokens: number;
}

/** An OpenAI Response. The fields that are not named here are there too. */
export interface ResponseObject extends JsonObject {
  id: string;
  object: "response";
  created_at: number;
  status: "queued" | "in_progress" | "completed" | "incomplete" | "failed" | "cancelled";
  model: string;
  output: OutputItem[];
  error: { code: string; message: string; [key: string]: unknown } | null;
  incomplete_details: { reason: string } | null;
  usage: ResponseUsage | null;
  fm?: FmReport;
}

/** One item of a response's `output`. */
export interface OutputItem extends JsonObject {
  id: string;
  type: string;
  status?: string;
  content?: OutputPart[];
}

/** One part of a message item. */
export interface OutputPart extends JsonObject {
  type: string;
  text?: string;
  refusal?: string;
}

/** One streaming event of the Responses API; `type` says which fields it has. */
export interface ResponseEvent extends JsonObject {
  type: string;
  sequence_number: number;
}

/** What a chat completion cost, counted by the model's tokenizer. */
export interface ChatUsage extends JsonObject {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
}

/** A call of a tool in a chat completion, as far as it came. */
export interface ChatToolCall extends JsonObject {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
}

/** What a chunk says of a call: the first one has its id, type and name, later ones more of its arguments. */
export interface ChatToolCallDelta extends JsonObject {
  index: number;
  id?: string;
  type?: "function";
  function: { name?: string; arguments: string };
}

/** An OpenAI chat completion. */
export interface ChatCompletion extends JsonObject {
  id: string;
  object: "chat.completion";
  created: number;
  model: string;
  choices: {
    index: number;
    message: { role: "assistant"; content: string | null; tool_calls?: ChatToolCall[]; [key: string]: unknown };
    /** Null in what an error carries: it failed or was cancelled. */
    finish_reason: string | null;
    [key: string]: unknown;
  }[];
  /** Null in what an error carries when the helper died before it could tell. */
  usage?: ChatUsage | null;
  fm?: FmReport;
}

/** One chunk of a streamed chat completion. */
export interface ChatCompletionChunk extends JsonObject {
  id: string;
  object: "chat.completion.chunk";
  created: number;
  model: string;
  choices: {
    index: number;
    delta: { role?: string; content?: string | null; tool_calls?: ChatToolCallDelta[]; [key: string]: unknown };
    finish_reason: string | null;
    [key: string]: unknown;
  }[];
  /** Of the last chunk, with `stream_options.include_usage`; null in the others then. */
  usage?: ChatUsage | null;
  /** The first chunk may have it. */
  fm?: FmReport;
}

/** One model that the helper can answer with. */
export interface Model {
  id: string;
  object: "model";
  created: number;
  owned_by: string;
}

/** The answer of `models.list`. */
export interface ModelList {
  object: "list";
  data: Model[];
}

/** The answer of `health.ping`. */
export interface Pong {
  protocol_version: number;
  version: string;
  pid: number;
  uptime_ms: number;
}

/** What confines the engine process, as the last engine told (see `capabilities.get` in PROTOCOL.md). */
export interface EngineSandbox {
  no_new_privs: boolean;
  /** The version of Landlock that is in force; 0: none. */
  landlock: number;
  seccomp: boolean;
  network: "denied" | "allowed";
  /** Whether it can read devices, terminals included, and what other processes have in /proc. */
  devices: "denied" | "allowed";
  /** "none": root's special rights are gone, as other users have none. */
  capabilities: "none" | "some";
}

/** Where responses are stored (see `capabilities.get` in PROTOCOL.md). */
export interface StoreState {
  kind: "memory" | "file" | "none";
  /** Null: not known yet. */
  usable: boolean | null;
  /** Why it can't be used, and what to do. */
  detail: string | null;
}

/** The answer of `capabilities.get`. */
export interface Capabilities extends JsonObject {
  available: boolean;
  reason_code: string | null;
  detail: string | null;
  engine: { name: string; state: string; sandbox: EngineSandbox | null; [key: string]: unknown };
  models: { id: string; default: boolean; images: boolean; mmproj?: string | null; [key: string]: unknown }[];
  store: StoreState;
  features: Record<string, boolean>;
  limits: Record<string, number>;
}

/** Options of one call. */
export interface RequestOptions {
  /** Stops the call: it rejects with the signal's reason, and the helper stops working on it. */
  signal?: AbortSignal | null | undefined;
}

/** A call that is under way. */
export interface Operation<T = JsonObject> {
  /** Settles exactly once. */
  readonly result: Promise<T>;
  /** Asks the helper to stop; only the first call has an effect, and none once the result is there. */
  cancel(): void;
}

/** How one call is made. */
export interface CallOptions {
  /** Gets the params of every notification of this call, in order, before the result settles. */
  onNotification?: (params: JsonObject) => void;
  /** Without an answer within this time the call is rejected with TIMEOUT. */
  timeoutMs?: number;
}

/** What the API classes are built on: something that carries calls to a helper. */
export interface Transport {
  /** Never throws; whatever goes wrong rejects `result`. A result with `ok: false` rejects too. */
  call(method: string, params: JsonObject, options?: CallOptions): Operation;
}

/** Tells whether a JSON value is an object. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
