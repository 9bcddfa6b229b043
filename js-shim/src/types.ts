// The types that hosts see.
import type { CommonFmParams, ExtraParams, FmParams, FmReport, ResponseUsage, WireEvent, WireResponse } from "./wire.js";

export type {
  Capabilities,
  CommonFmParams,
  DeletedResponse,
  EngineSandbox,
  ExtraParams,
  FmParams,
  FmReport,
  InputItemList,
  InputTokenCount,
  LoadedModel,
  LogprobEntry,
  Metrics,
  Model,
  ModelList,
  ModelParams,
  OutputItem,
  OutputText,
  Pong,
  ReasoningText,
  RequestLimits,
  ResponseFailure,
  ResponseUsage,
  RunningEngine,
  SchemaReport,
  StoreState,
  SummaryText,
  Timings,
  Traffic,
  TokenLogprob,
  UnloadedModel,
  WireEvent,
  WireResponse,
} from "./wire.js";

/** A JSON object whose fields the package passes on without looking at them. */
export interface JsonObject {
  [key: string]: unknown;
}

/** What all bodies that ask for a generated text have in common. */
export interface GenerationParams extends JsonObject, ExtraParams {
  /** Absent or null: the default model. */
  model?: string | null;
  temperature?: number | null;
  top_p?: number | null;
  seed?: number | null;
  stop?: string | readonly string[] | null;
  stream?: boolean | null;
  fm?: FmParams;
}

/** The body of `POST /responses`, and `fm` with what is our own. */
export interface ResponseCreateParams extends GenerationParams {
  /** What to answer: a text, or message items. */
  input?: string | readonly JsonObject[];
  instructions?: string | null;
  max_output_tokens?: number | null;
  /** Chat's name for `text.format`, in the shape of either API; send one of them. */
  response_format?: JsonObject | null;
  /** Whether it can be had again by its id, and gone on from. */
  store?: boolean | null;
  /** The response that this one goes on from. */
  previous_response_id?: string | null;
  /** Answers at once; the response is then looked at with `retrieve`. */
  background?: boolean | null;
  include?: readonly string[] | null;
  metadata?: Record<string, string> | null;
}

/** What `responses.retrieve` takes besides the id. */
export interface ResponseRetrieveParams extends JsonObject {
  include?: readonly string[];
  /** Its events once more, rather than the whole. */
  stream?: boolean;
  /** With `stream`: the `sequence_number` of the last event that need not come again. */
  starting_after?: number;
}

/** What `responses.inputItems.list` takes besides the id. */
export interface InputItemListParams extends JsonObject {
  include?: readonly string[];
  limit?: number;
  order?: "asc" | "desc";
  /** The id of the item after which the page begins. */
  after?: string;
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
  /** Null: its engine does not count. */
  usage: ResponseUsage | null;
  fm?: FmReport;
}

/** The body of `POST /completions`, and `fm` with what is our own. */
export interface CompletionCreateParams extends GenerationParams {
  prompt: string;
  /** What comes after the text that is asked for. */
  suffix?: string | null;
  max_tokens?: number | null;
  stream_options?: { include_usage?: boolean } | null;
}

/** A completion of a text, or with `stream` one chunk of it. */
export interface Completion extends JsonObject {
  id: string;
  object: "text_completion";
  created: number;
  model: string;
  choices: { index: number; text: string; finish_reason: string | null; [key: string]: unknown }[];
  /** Of a chunk, the first one may have it, and with `fm.timings` the one that has a `finish_reason`. */
  fm?: FmReport;
  /** Null in all chunks but the last, and in what an error carries when the helper died before it could tell. */
  usage?: ChatUsage | null;
}

/** The body of `POST /embeddings`. */
export interface EmbeddingCreateParams extends JsonObject {
  /** A text or several. */
  input: string | readonly string[];
  model?: string | null;
  dimensions?: number | null;
  /** `base64`: the vectors as little-endian floats of 32 bits. Default: `float`. */
  encoding_format?: "float" | "base64" | null;
  user?: string | null;
  fm?: CommonFmParams;
}

/** The answer of `embeddings.create`. */
export interface EmbeddingList extends JsonObject {
  object: "list";
  model: string;
  data: { object: "embedding"; index: number; embedding: number[] | string; [key: string]: unknown }[];
  /** Null: not counted. */
  usage: { prompt_tokens: number; total_tokens: number; [key: string]: unknown } | null;
  fm?: FmReport;
}

/** The body of `POST /chat/completions`, and `fm` with what is our own. */
export interface ChatCreateParams extends GenerationParams {
  messages: readonly JsonObject[];
  max_tokens?: number | null;
  max_completion_tokens?: number | null;
  stream_options?: { include_usage?: boolean } | null;
}

/** An OpenAI Response. */
export interface ResponseObject extends WireResponse {
  /** All output text; the client adds it, as OpenAI's SDK does. */
  output_text: string;
}

/** One streaming event of the Responses API; `type` says which fields it has. */
export type ResponseEvent = WithText<WireEvent>;

/** The same event, with `output_text` in its response. */
type WithText<Event> = Event extends { response: WireResponse }
  ? Omit<Event, "response"> & { response: ResponseObject }
  : Event;

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
    message: {
      role: "assistant";
      content: string | null;
      refusal?: string | null;
      /** What the model thought before it answered. */
      reasoning_content?: string | null;
      tool_calls?: ChatToolCall[];
      [key: string]: unknown;
    };
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
    delta: {
      role?: string;
      content?: string | null;
      refusal?: string | null;
      /** What the model thinks before it answers. */
      reasoning_content?: string | null;
      tool_calls?: ChatToolCallDelta[];
      [key: string]: unknown;
    };
    finish_reason: string | null;
    [key: string]: unknown;
  }[];
  /** Of the last chunk, with `stream_options.include_usage`; null in the others then. */
  usage?: ChatUsage | null;
  /** The first chunk may have it, and with `fm.timings` the last one that has a `finish_reason`. */
  fm?: FmReport;
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
  /** When that time begins. Default: with the call. `send`: the start of a helper, which has a limit itself, is not in it. */
  timeoutFrom?: "call" | "send";
  /** When the call's time began, as performance.now() told it. Default: now. */
  since?: number;
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
