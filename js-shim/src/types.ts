// The types that hosts see.
import type {
  ChatUsage,
  CommonFmParams,
  DecisionQuestion,
  ExtraParams,
  FmParams,
  OutputItem,
  PromptProgress,
  ResponseFailure,
  ResponseUsage,
  WireChatCompletion,
  WireChatCompletionChunk,
  WireCompaction,
  WireCompletion,
  WireDecision,
  WireEmbeddings,
  WireEvent,
  WireResponse,
} from "./wire.js";

export type {
  Capabilities,
  ChatUsage,
  CommonFmParams,
  CompletionChunk,
  DecisionAnswer,
  DecisionQuestion,
  DeletedResponse,
  EngineSandbox,
  ExtraParams,
  FmParams,
  FmReport,
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
  PromptProgress,
  ReasoningText,
  RequestLimits,
  ResponseFailure,
  ResponseUsage,
  RunningEngine,
  SchemaReport,
  StoreState,
  SummaryText,
  TextLogprobs,
  Timings,
  Traffic,
  TokenLogprob,
  UnloadedModel,
  WireChatCompletion,
  WireCompletion,
  WireEmbeddings,
  WireEvent,
  WireResponse,
} from "./wire.js";

/** A JSON object whose fields the package passes on without looking at them. */
export interface JsonObject {
  [key: string]: unknown;
}

/**
 * A body that the package passes on. Other members of OpenAI's API are allowed, so that bodies with the types of OpenAI's SDK
 * fit.
 */
export interface AnyBody {
  // `unknown` would refuse interfaces, which the SDK's types are.
  [key: string]: any;
}

/** The members of all bodies that ask for a generated text. */
export interface GenerationParams extends AnyBody, ExtraParams {
  /** Absent or null: the default model. */
  model?: string | null;
  temperature?: number | null;
  top_p?: number | null;
  seed?: number | null;
  stop?: string | readonly string[] | null;
  stream?: boolean | null;
  /** With `stream`: the stream reports how much of the prompt is computed. The call's option `onProgress` sets it. */
  return_progress?: boolean | null;
  fm?: FmParams;
}

/** The body of `POST /responses`, and `fm` with fm-proxy's own parameters. */
export interface ResponseCreateParams extends GenerationParams {
  /** What to answer: a text, or message items. */
  input?: string | readonly object[] | null;
  instructions?: string | null;
  max_output_tokens?: number | null;
  /** The Chat Completions API's name for `text.format`. It has the shape of either API. Send only one of the two members. */
  response_format?: object | null;
  /** Whether the response is stored, so that it can be retrieved by its id, and later requests can continue from it. */
  store?: boolean | null;
  /** The id of the response that this request continues. */
  previous_response_id?: string | null;
  /** Answers at once, before there is output. `retrieve` gets the response later. */
  background?: boolean | null;
  include?: readonly string[] | null;
  metadata?: Record<string, string> | null;
}

/** The parameters of `responses.retrieve` besides the id. */
export interface ResponseRetrieveParams extends AnyBody {
  include?: readonly string[];
  /** Repeats the events of the response, instead of answering with the whole response. */
  stream?: boolean;
  /** With `stream`: the `sequence_number` of the last event that is not repeated. */
  starting_after?: number;
}

/** The parameters of `responses.inputItems.list` besides the id. */
export interface InputItemListParams extends AnyBody {
  include?: readonly string[];
  limit?: number;
  order?: "asc" | "desc";
  /** The id of the item after which the page begins. */
  after?: string;
}

/** An item that a stored response was made from. */
export type InputItem =
  | {
      id: string;
      type: "message";
      role: "user" | "system" | "developer";
      status: "completed" | "in_progress" | "incomplete";
      content: InputPart[];
    }
  | {
      id: string;
      type: "function_call_output";
      status: "completed" | "in_progress" | "incomplete";
      call_id: string;
      output: string | InputPart[];
    }
  | OutputItem;

/** A part of a model's input. */
export type InputPart =
  | { type: "input_text"; text: string }
  | { type: "input_image"; image_url: string; detail: "low" | "high" | "auto" }
  | { type: "input_file"; file_data: string; filename?: string; detail?: "low" | "high" | "auto" };

/** One page of a stored response's input. */
export interface InputItemList {
  object: "list";
  data: InputItem[];
  first_id: string | null;
  last_id: string | null;
  has_more: boolean;
}

/** The body of `POST /responses/compact`. */
export interface ResponseCompactParams extends AnyBody {
  /** `"default"`: the default model. The helper refuses null, although OpenAI's type has it. */
  model: string | null;
  input?: string | readonly object[] | null;
  instructions?: string | null;
  previous_response_id?: string | null;
}

/** A shortened conversation; its `output` is input for the next request. */
export interface CompactedResponse extends Omit<WireCompaction, "usage"> {
  /** Null if the engine does not count; OpenAI's type has no null. */
  usage: ResponseUsage;
}

/** The body of `POST /completions`, and `fm` with fm-proxy's own parameters. */
export interface CompletionCreateParams extends GenerationParams {
  /** A text, or an array of texts. OpenAI's type has other forms too, which the helper refuses. */
  prompt: string | readonly string[] | readonly number[] | readonly (readonly number[])[] | null;
  /** The text after the requested text. */
  suffix?: string | null;
  max_tokens?: number | null;
  /** How many choices each prompt has. The choices of the first prompt come first. Default: 1. */
  n?: number | null;
  /** The number of `n`. The helper refuses others, because it ranks no choices. */
  best_of?: number | null;
  /** 0 to 5: how many alternatives to report for each token, with their log probabilities. */
  logprobs?: number | null;
  logit_bias?: Record<string, number> | null;
  /** Whether the text of a choice begins with its prompt. */
  echo?: boolean | null;
  stream_options?: { include_usage?: boolean } | null;
}

/** A completion of a text. */
export interface Completion extends Omit<WireCompletion, "choices" | "usage"> {
  choices: CompletionChoice[];
  /** Null if it was not counted; OpenAI's type has no null. */
  usage?: ChatUsage;
}

/** A choice of a completion that did not fail. */
export interface CompletionChoice extends Omit<WireCompletion["choices"][number], "finish_reason"> {
  finish_reason: "stop" | "length" | "content_filter";
}

/** The body of `POST /decisions`. */
export interface DecisionCreateParams extends AnyBody {
  /** The text that the questions are about, or a conversation. */
  input: string | readonly object[];
  questions: readonly DecisionQuestion[];
  model?: string | null;
  fm?: CommonFmParams;
}

/** The answer of `decisions.create`. */
export interface Decision extends Omit<WireDecision, "usage"> {
  /** Null if a server does not count; OpenAI's type has no null. */
  usage: ResponseUsage;
}

/** The body of `POST /embeddings`. */
export interface EmbeddingCreateParams extends AnyBody {
  /** A text or several. The helper refuses token ids, although OpenAI's type has them. */
  input: string | readonly string[] | readonly number[] | readonly (readonly number[])[];
  model?: string | null;
  dimensions?: number | null;
  /** `base64`: the vectors as little-endian floats of 32 bits. Default: `float`. */
  encoding_format?: "float" | "base64" | null;
  user?: string | null;
  fm?: CommonFmParams;
}

/** The answer of `embeddings.create`. With `encoding_format` "base64" the vectors are strings. */
export interface EmbeddingList<Vector = number[]> extends Omit<WireEmbeddings, "data" | "usage"> {
  data: { object: "embedding"; index: number; embedding: Vector }[];
  /** Null if a server does not count; OpenAI's type has no null. */
  usage: { prompt_tokens: number; total_tokens: number };
}

/** The body of `POST /chat/completions`, and `fm` with fm-proxy's own parameters. */
export interface ChatCreateParams extends GenerationParams {
  messages: readonly object[];
  max_tokens?: number | null;
  max_completion_tokens?: number | null;
  stream_options?: { include_usage?: boolean } | null;
}

/** An OpenAI Response. */
export interface ResponseObject extends Omit<WireResponse, "error" | "text" | "tool_choice" | "usage"> {
  /** All output text; the client adds it, as OpenAI's SDK does. */
  output_text: string;
  error: ResponseError | null;
  text: { format: ResponseFormat; verbosity: "low" | "medium" | "high" };
  tool_choice:
    | "auto"
    | "none"
    | "required"
    | { type: "function"; name: string }
    | { type: "allowed_tools"; mode: "auto" | "required"; tools: JsonObject[] };
  /** Null if it was not counted, or not yet; OpenAI's type has no null. */
  usage?: ResponseUsage;
}

/** The format of a response's text. */
export type ResponseFormat =
  | { type: "text" }
  | { type: "json_object" }
  | {
      type: "json_schema";
      name: string;
      /** Null if the request has none; OpenAI's type has no null. */
      description: string;
      strict: boolean;
      schema: JsonObject;
    };

/** Why a response failed. */
export interface ResponseError extends Omit<ResponseFailure, "code"> {
  /** A string: one of OpenAI's list, or another one (docs/troubleshooting.md). */
  code: any;
}

/** One streaming event of the Responses API; `type` says which fields it has. */
export type ResponseEvent = Exclude<WithText<WireEvent>, ReasoningEvent | ProgressEvent>;

/** With `fm.reasoning_dialect` "reasoning" a stream has these, too. OpenAI's API has no such events. */
export type ReasoningEvent = Extract<WireEvent, { type: "response.reasoning.delta" | "response.reasoning.done" }>;

/** With `return_progress` in the body a stream has these, too. OpenAI's SDK has no type for them, and ignores them. */
export type ProgressEvent = Extract<WireEvent, { type: "keepalive" }>;

/** The same event, with `output_text` in its response. */
type WithText<Event> = Event extends { response: WireResponse }
  ? Omit<Event, "response"> & { response: ResponseObject }
  : Event;

/** An OpenAI chat completion. */
export interface ChatCompletion extends Omit<WireChatCompletion, "choices" | "usage"> {
  choices: ChatChoice[];
  /** Null if it was not counted; OpenAI's type has no null. */
  usage?: ChatUsage;
}

type WireChunkChoice = WireChatCompletionChunk["choices"][number];

/** A piece of a call. */
export interface ChatToolCallDelta
  extends Omit<NonNullable<WireChunkChoice["delta"]["tool_calls"]>[number], "type"> {
  /** "function" or "custom". Version 6 of OpenAI's SDK has a type for the first one only. */
  type?: any;
}

/** One chunk of a streamed chat completion. */
export interface ChatCompletionChunk extends Omit<WireChatCompletionChunk, "choices"> {
  choices: (Omit<WireChunkChoice, "delta"> & {
    delta: Omit<WireChunkChoice["delta"], "tool_calls"> & { tool_calls?: ChatToolCallDelta[] };
  })[];
}

/** A choice of a chat completion that did not fail. */
export interface ChatChoice extends Omit<WireChatCompletion["choices"][number], "finish_reason"> {
  finish_reason: "stop" | "length" | "content_filter" | "tool_calls";
}

/** Options of one call. */
export interface RequestOptions {
  /** Stops the call: it rejects with the signal's reason, and the helper stops working on it. */
  signal?: AbortSignal | null | undefined;
}

/** Options of a call that answers with a stream. */
export interface StreamRequestOptions extends RequestOptions {
  /**
   * Called before the first output, with how much of the prompt is computed, once for each batch of tokens. If it throws, the
   * call ends with that error.
   */
  onProgress?: ((progress: PromptProgress) => void) | null | undefined;
}

/** A call that is in progress. */
export interface Operation<T = JsonObject> {
  /** Settles exactly once. */
  readonly result: Promise<T>;
  /** Asks the helper to stop the call. Only the first `cancel` has an effect, and only before `result` settles. */
  cancel(): void;
}

/** How one call is made. */
export interface CallOptions {
  /** Gets the params of every notification of this call, in order, before the result settles. */
  onNotification?: (params: JsonObject) => void;
  /** If there is no answer within this time, the call is rejected with TIMEOUT. */
  timeoutMs?: number;
  /**
   * When `timeoutMs` begins. Default: with the call. `send`: when the call is sent, so the start of a helper does not count. The
   * start has its own limit.
   */
  timeoutFrom?: "call" | "send";
  /** When the call's time began, by performance.now(). Default: now. */
  since?: number;
}

/** Carries calls to a helper. The API classes are built on this interface. */
export interface Transport {
  /** Never throws; whatever goes wrong rejects `result`. A result with `ok: false` rejects too. */
  call(method: string, params: JsonObject, options?: CallOptions): Operation;
}

/** Whether a JSON value is an object. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
