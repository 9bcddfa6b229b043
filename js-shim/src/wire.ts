// Made by scripts/types.mjs from protocol/host.schema.json: change that, then run `npm run types`.
import type { JsonObject } from "./types.js";

/** The version of this protocol. */
export const PROTOCOL_VERSION = 1;

/** Codes of JSON-RPC errors: the message is broken, and no method has seen it. */
export const RPC_ERRORS = {
  /** A broken frame, or a body that is not the JSON that this protocol takes. */
  PARSE_ERROR: -32700,
  /** The message is no request, or its id is still in flight. */
  INVALID_REQUEST: -32600,
  /** No such method. */
  METHOD_NOT_FOUND: -32601,
  /** `params` is missing although it is required, or is no object. */
  INVALID_PARAMS: -32602,
  /** Out of memory for the message. The helper then ends. */
  INTERNAL_ERROR: -32603,
} as const;

/** HTTP status, type and usual code that OpenAI's clients see for each code. */
export const ERROR_SHAPES = {
  UNAVAILABLE: [404, "server_error", "model_unavailable"],
  TIMEOUT: [408, "timeout_error", "timeout"],
  CANCELLED: [499, "cancelled", "cancelled"],
  INTERNAL: [500, "server_error", "server_error"],
  INVALID_REQUEST: [400, "invalid_request_error", "invalid_value"],
  NOT_FOUND: [404, "invalid_request_error", "model_not_found"],
  CONTEXT_OVERFLOW: [400, "invalid_request_error", "context_length_exceeded"],
  RATE_LIMITED: [429, "rate_limit_error", "rate_limit_exceeded"],
  OVERLOADED: [503, "server_error", "overloaded"],
  GUARDRAIL: [400, "invalid_request_error", "content_filter"],
} as const;

/** The notifications of a stream. `params.id` is the id of the call that each belongs to. */
export const STREAM_NOTIFICATIONS = ["responses.event", "chat.completions.chunk", "completions.chunk"] as const;

/** The methods of the helper. */
export type Method =
  | "health.ping"
  | "metrics.get"
  | "requests.get"
  | "capabilities.get"
  | "responses.create"
  | "responses.cancel"
  | "responses.retrieve"
  | "responses.delete"
  | "responses.input_items"
  | "responses.compact"
  | "responses.input_tokens"
  | "chat.completions.create"
  | "embeddings.create"
  | "decisions.create"
  | "completions.create"
  | "models.list"
  | "models.retrieve"
  | "models.load"
  | "models.unload"
  | "process.shutdown"
  | "$/cancelRequest";

/** The codes that the helper answers with (see "Errors" in PROTOCOL.md). */
export type HelperErrorCode =
  | "UNAVAILABLE"
  | "TIMEOUT"
  | "CANCELLED"
  | "INTERNAL"
  | "INVALID_REQUEST"
  | "NOT_FOUND"
  | "CONTEXT_OVERFLOW"
  | "RATE_LIMITED"
  | "OVERLOADED"
  | "GUARDRAIL";

/** Why an engine is not available (see "capabilities.get" in PROTOCOL.md). */
export type EngineReasonCode =
  | "MODEL_NOT_READY"
  | "AI_DISABLED"
  | "UNSUPPORTED_HARDWARE"
  | "UNSUPPORTED_PLATFORM"
  | "OS_TOO_OLD"
  | "NOT_CONFIGURED"
  | "AUTH_FAILED"
  | "QUOTA"
  | "OFFLINE"
  | "TLS_FAILED"
  | "RATE_LIMITED"
  | "HELPER_UNHEALTHY"
  | "CHECKING";

/** An error in the shape that OpenAI's clients know, with its HTTP status. */
export interface OpenAIErrorShape {
  /** The HTTP status that a server would answer with. */
  status: number;
  type: string;
  code: string | null;
  /** The path of the field that is wrong, such as `input[0].content[1].type`. */
  param: string | null;
  message: string;
}

/** How far a request's JSON schema was enforced; with `fm.schema_report`. */
export interface SchemaReport {
  /** Keywords that the answer can't break. */
  enforced: string[];
  /** Paths of the keywords that were checked when the answer was complete. */
  checked: string[];
  /** Null if there is no complete answer. */
  valid: boolean | null;
  error: string | null;
}

/** The members of an answer's `fm`; absent if there is nothing to report. */
export interface FmReport {
  /** With `fm.schema_report`; null if there was no schema. */
  schema?: SchemaReport | null;
  /** With `truncation` "auto": how many of the oldest messages were left out. */
  dropped_messages?: number;
  /**
   * Paths of the parameters that had no effect: those that neither the helper nor its engine knows, and `store` of
   * chat.
   */
  ignored?: string[];
  timings?: Timings;
  /** The engine that answered, if several are configured. */
  engine?: string;
  /** A tool that the answer calls in its text, although no tool of this name is allowed. */
  unknown_tool?: string;
  /** Counts that are not known: `usage` has 0. */
  uncounted?: ("cached_tokens" | "reasoning_tokens")[];
  /** The host's `fallback` gave the answer; absent: the local model. The npm package says it. */
  source?: "fallback";
}

/** The times and token counts of an answer, with `fm.timings`; sums over all choices (see "Timings" in PROTOCOL.md). */
export interface Timings {
  /** The time until the engine accepted the prompt, including the start of the engine and the load of the model. */
  queue_ms: number;
  /** The time from acceptance to the first token. Null: the engine does not report it. */
  prefill_ms: number | null;
  /** The time from the first token to the end. Null: the engine does not report it. */
  decode_ms: number | null;
  /** The rate of the prompt's tokens that were computed; null if there were none. */
  prompt_tokens_per_second: number | null;
  /** The rate of the tokens after the first one; null if there were none. */
  output_tokens_per_second: number | null;
  /** Tokens of the prompt that needed no work. Null: unknown. */
  cached_tokens: number | null;
  /** Tokens that the engine guessed ahead; absent if it does not guess. */
  drafted_tokens?: number;
  /** Guessed tokens that became part of the answer. */
  accepted_tokens?: number;
}

/** Time limits of one request, in milliseconds (see "Limits" in PROTOCOL.md). */
export interface RequestLimits {
  /**
   * How long the model stays loaded after the answer if no other request uses it; 0: it is unloaded at once; -1: it
   * stays until its place or its memory is needed. Default: the option `--idle-unload-ms`.
   */
  keep_alive_ms?: number | null;
  /** From arrival to the end, everything included. */
  timeout_ms?: number | null;
  /**
   * From arrival until the engine has accepted the prompt, including the load of the model. The default limits only the
   * time without progress.
   */
  queue_timeout_ms?: number | null;
  /** From acceptance until the first output. The default limits only the time without progress. */
  first_token_timeout_ms?: number | null;
  /** Since the last sign of progress. */
  no_progress_timeout_ms?: number | null;
}

/** The members that the `fm` of every call can have. */
export interface CommonFmParams extends RequestLimits {
  /** The request goes only to engines that do not send it to another machine. */
  local_only?: boolean | null;
  /**
   * The answer is bit for bit the same as in a new process, because the request runs alone (see "Repeatable answers" in
   * PROTOCOL.md).
   */
  repeatable?: boolean | null;
  /** The answer's `fm.timings` reports its times and token counts. */
  timings?: boolean | null;
}

/** The members that a request's `fm` can have. Any other member is refused. */
export interface FmParams extends CommonFmParams {
  grammar?: {
    syntax: "lark" | "regex";
    definition: string;
  } | null;
  /** The answer's `fm.schema` reports which parts of the JSON schema were enforced. */
  schema_report?: boolean | null;
  /** How a thought is reported (see "Reasoning" in PROTOCOL.md). Default: "summary". The Responses API only. */
  reasoning_dialect?: "summary" | "reasoning_text" | "reasoning" | null;
  /** The result of a stream repeats the response of its last event. The Responses API only. */
  full_result?: boolean | null;
}

/** Parameters that are not OpenAI's. An engine that lacks one ignores it, and the answer reports that. */
export interface ExtraParams {
  /** Only this many of the most likely tokens can be drawn; -1 or 0: all. */
  top_k?: number | null;
  /** Tokens that are less likely than this, relative to the best one, are never drawn. Default: 0.05. */
  min_p?: number | null;
  /** Above 1: tokens among the last 64 become less likely. Default: 1. */
  repeat_penalty?: number | null;
  /** The answer goes on to its token limit. */
  ignore_eos?: boolean | null;
}

export interface TokenLogprob {
  token: string;
  bytes: number[];
  logprob: number;
}

/** The log probability of a token. */
export interface LogprobEntry extends TokenLogprob {
  top_logprobs: TokenLogprob[];
}

export interface ResponseUsage {
  input_tokens: number;
  input_tokens_details: {
    /** 0 if `fm.uncounted` names it. */
    cached_tokens: number;
    cache_write_tokens: number;
  };
  output_tokens: number;
  output_tokens_details: {
    /** 0 if `fm.uncounted` names it. */
    reasoning_tokens: number;
  };
  total_tokens: number;
}

export interface OutputText {
  type: "output_text";
  text: string;
  annotations: never[];
  logprobs: LogprobEntry[];
}

/** What the model says instead of an answer. */
export interface OutputRefusal {
  type: "refusal";
  refusal: string;
}

export interface SummaryText {
  type: "summary_text";
  text: string;
}

export interface ReasoningText {
  type: "reasoning_text";
  text: string;
}

export type OutputItem =
  | {
    id: string;
    type: "reasoning";
    status: "in_progress" | "completed" | "incomplete";
    summary: {
      type: "summary_text";
      text: string;
    }[];
    content?: {
      type: "reasoning_text";
      text: string;
    }[];
    /** Data that the engine needs when this answer is sent back. */
    encrypted_content?: string;
  }
  | {
    id: string;
    type: "message";
    status: "in_progress" | "completed" | "incomplete";
    role: "assistant";
    content: (OutputText | OutputRefusal)[];
  }
  | {
    id: string;
    type: "function_call";
    status: "in_progress" | "completed" | "incomplete";
    call_id: string;
    name: string;
    arguments: string;
  }
  | {
    id: string;
    type: "custom_tool_call";
    status: "in_progress" | "completed" | "incomplete";
    call_id: string;
    name: string;
    input: string;
  };

export interface ResponseFailure {
  type: string;
  code: string | null;
  message: string;
  param: string | null;
}

/** An OpenAI Response. */
export interface WireResponse {
  id: string;
  object: "response";
  created_at: number;
  status: "queued" | "in_progress" | "completed" | "incomplete" | "failed" | "cancelled";
  completed_at: number | null;
  error: ResponseFailure | null;
  incomplete_details: {
    reason: "max_output_tokens" | "content_filter";
  } | null;
  model: string;
  output: OutputItem[];
  usage: ResponseUsage | null;
  store: boolean;
  instructions: string | null;
  metadata: Record<string, string>;
  temperature: number;
  top_p: number;
  max_output_tokens: number | null;
  max_tool_calls: number | null;
  tool_choice: "auto" | "none" | "required" | JsonObject | {
    type: "allowed_tools";
    mode: "auto" | "required";
    tools: JsonObject[];
  };
  parallel_tool_calls: boolean;
  safety_identifier: string | null;
  prompt_cache_key: string | null;
  background: boolean;
  previous_response_id: string | null;
  truncation: "auto" | "disabled";
  presence_penalty: number;
  frequency_penalty: number;
  top_logprobs: number;
  text: {
    format: {
      type: "text";
    } | {
      type: "json_object";
    } | {
      type: "json_schema";
      name: string;
      description: string | null;
      strict: boolean;
      schema: JsonObject;
    };
    verbosity: "low" | "medium" | "high";
  };
  tools: ({
    type: "function";
    name: string;
    description: string | null;
    parameters: JsonObject | null;
    strict: boolean | null;
  } | {
    type: "custom";
    name: string;
    description?: string;
    format: {
      type: "text";
    } | {
      type: "grammar";
      syntax: "regex";
      definition: string;
    };
  })[];
  reasoning: {
    effort: "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max" | null;
    summary: "auto" | "concise" | "detailed" | null;
  };
  service_tier: "default";
  access_programs: null;
  fm?: FmReport;
}

/** How much of a prompt is computed. */
export interface PromptProgress {
  /** The tokens of the prompt. */
  total: number;
  /** Those that were in the KV cache. */
  cache: number;
  /** Those that are done, with those from the cache. */
  processed: number;
  /** The time since the engine began with the prompt. */
  time_ms: number;
}

/** A streaming event of the Responses API. */
export type WireEvent =
  | {
    type: "keepalive";
    /** That of the event before it. */
    sequence_number: number;
    prompt_progress: PromptProgress;
  }
  | {
    type: "response.created";
    sequence_number: number;
    response: WireResponse;
  }
  | {
    type: "response.queued";
    sequence_number: number;
    response: WireResponse;
  }
  | {
    type: "response.in_progress";
    sequence_number: number;
    response: WireResponse;
  }
  | {
    type: "response.completed";
    sequence_number: number;
    response: WireResponse;
  }
  | {
    type: "response.incomplete";
    sequence_number: number;
    response: WireResponse;
  }
  | {
    type: "response.failed";
    sequence_number: number;
    response: WireResponse;
  }
  | {
    type: "response.output_item.added";
    sequence_number: number;
    output_index: number;
    item: OutputItem;
  }
  | {
    type: "response.output_item.done";
    sequence_number: number;
    output_index: number;
    item: OutputItem;
  }
  | {
    type: "response.content_part.added";
    sequence_number: number;
    item_id: string;
    output_index: number;
    content_index: number;
    part: OutputText | OutputRefusal | ReasoningText;
  }
  | {
    type: "response.content_part.done";
    sequence_number: number;
    item_id: string;
    output_index: number;
    content_index: number;
    part: OutputText | OutputRefusal | ReasoningText;
  }
  | {
    type: "response.output_text.delta";
    sequence_number: number;
    item_id: string;
    output_index: number;
    content_index: number;
    delta: string;
    logprobs: LogprobEntry[];
  }
  | {
    type: "response.output_text.done";
    sequence_number: number;
    item_id: string;
    output_index: number;
    content_index: number;
    text: string;
    logprobs: LogprobEntry[];
  }
  | {
    type: "response.refusal.delta";
    sequence_number: number;
    item_id: string;
    output_index: number;
    content_index: number;
    delta: string;
  }
  | {
    type: "response.refusal.done";
    sequence_number: number;
    item_id: string;
    output_index: number;
    content_index: number;
    refusal: string;
  }
  | {
    type: "response.reasoning_summary_part.added";
    sequence_number: number;
    item_id: string;
    output_index: number;
    summary_index: number;
    part: SummaryText;
  }
  | {
    type: "response.reasoning_summary_part.done";
    sequence_number: number;
    item_id: string;
    output_index: number;
    summary_index: number;
    part: SummaryText;
  }
  | {
    type: "response.reasoning_summary_text.delta";
    sequence_number: number;
    item_id: string;
    output_index: number;
    summary_index: number;
    delta: string;
  }
  | {
    type: "response.reasoning_summary_text.done";
    sequence_number: number;
    item_id: string;
    output_index: number;
    summary_index: number;
    text: string;
  }
  | {
    type: "response.reasoning_text.delta";
    sequence_number: number;
    item_id: string;
    output_index: number;
    content_index: number;
    delta: string;
  }
  | {
    type: "response.reasoning_text.done";
    sequence_number: number;
    item_id: string;
    output_index: number;
    content_index: number;
    text: string;
  }
  | {
    type: "response.reasoning.delta";
    sequence_number: number;
    item_id: string;
    output_index: number;
    content_index: number;
    delta: string;
  }
  | {
    type: "response.reasoning.done";
    sequence_number: number;
    item_id: string;
    output_index: number;
    content_index: number;
    text: string;
  }
  | {
    type: "response.function_call_arguments.delta";
    sequence_number: number;
    item_id: string;
    output_index: number;
    delta: string;
  }
  | {
    type: "response.function_call_arguments.done";
    sequence_number: number;
    item_id: string;
    output_index: number;
    name: string;
    arguments: string;
  }
  | {
    type: "response.custom_tool_call_input.delta";
    sequence_number: number;
    item_id: string;
    output_index: number;
    delta: string;
  }
  | {
    type: "response.custom_tool_call_input.done";
    sequence_number: number;
    item_id: string;
    output_index: number;
    input: string;
  }
  | {
    type: "error";
    sequence_number: number;
    code: string | null;
    message: string;
    param: string | null;
    error: ResponseFailure;
  };

/** The numbers of tokens of a completion, counted by the model's tokenizer. */
export interface ChatUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details: {
    /** Absent: unknown. */
    cached_tokens?: number;
  };
  completion_tokens_details: {
    /** Absent: unknown. */
    reasoning_tokens?: number;
  };
}

/** An OpenAI chat completion. */
export interface WireChatCompletion {
  id: string;
  object: "chat.completion";
  created: number;
  model: string;
  choices: {
    index: number;
    message: {
      role: "assistant";
      content: string | null;
      refusal: string | null;
      annotations: never[];
      reasoning_content?: string;
      tool_calls?: ({
        id: string;
        type: "function";
        function: {
          name: string;
          arguments: string;
        };
      } | {
        id: string;
        type: "custom";
        custom: {
          name: string;
          input: string;
        };
      })[];
    };
    logprobs: {
      content: LogprobEntry[];
      refusal: null;
    } | null;
    finish_reason: "stop" | "length" | "content_filter" | "tool_calls" | null;
  }[];
  usage: ChatUsage | null;
  service_tier: "default";
  fm?: FmReport;
}

/** One chunk of a streamed chat completion. */
export interface WireChatCompletionChunk {
  id: string;
  object: "chat.completion.chunk";
  created: number;
  model: string;
  choices: {
    index: number;
    delta: {
      role?: "assistant";
      content?: string | null;
      refusal?: string;
      reasoning_content?: string;
      tool_calls?: {
        index: number;
        id?: string;
        type?: "function" | "custom";
        function?: {
          name?: string;
          arguments: string;
        };
        custom?: {
          name?: string;
          input: string;
        };
      }[];
    };
    logprobs: {
      content: LogprobEntry[];
      refusal: null;
    } | null;
    finish_reason: "stop" | "length" | "content_filter" | "tool_calls" | null;
  }[];
  usage?: ChatUsage | null;
  prompt_progress?: PromptProgress;
  fm?: {
    /**
     * Paths of the parameters that had no effect: those that neither the helper nor its engine knows, and `store` of
     * chat.
     */
    ignored?: string[];
    timings?: Timings;
    /** The engine that answered, if several are configured. */
    engine?: string;
    /** A tool that the answer calls in its text, although no tool of this name is allowed. */
    unknown_tool?: string;
    /** The host's `fallback` gave the answer; absent: the local model. The npm package says it. */
    source?: "fallback";
  };
}

/** The log probabilities of a text's tokens. All arrays have the same length. */
export interface TextLogprobs {
  tokens: string[];
  token_logprobs: number[];
  top_logprobs: Record<string, number>[];
  text_offset: number[];
}

/** A legacy completion. */
export interface WireCompletion {
  id: string;
  object: "text_completion";
  created: number;
  model: string;
  choices: {
    index: number;
    text: string;
    logprobs: TextLogprobs | null;
    finish_reason: "stop" | "length" | "content_filter" | null;
  }[];
  usage: ChatUsage | null;
  fm?: FmReport;
}

/** One chunk of a streamed legacy completion. */
export interface CompletionChunk {
  id: string;
  object: "text_completion";
  created: number;
  model: string;
  choices: {
    index: number;
    text: string;
    logprobs: TextLogprobs | null;
    finish_reason: "stop" | "length" | "content_filter" | null;
  }[];
  usage?: ChatUsage | null;
  prompt_progress?: PromptProgress;
  fm?: {
    /**
     * Paths of the parameters that had no effect: those that neither the helper nor its engine knows, and `store` of
     * chat.
     */
    ignored?: string[];
    timings?: Timings;
    /** The engine that answered, if several are configured. */
    engine?: string;
    /** A tool that the answer calls in its text, although no tool of this name is allowed. */
    unknown_tool?: string;
    /** The host's `fallback` gave the answer; absent: the local model. The npm package says it. */
    source?: "fallback";
  };
}

/** A question of a request for decisions. */
export type DecisionQuestion =
  | {
    type: "predicate";
    name?: string | null;
    instructions: string | JsonObject[];
  }
  | {
    type: "choice";
    name?: string | null;
    instructions: string | JsonObject[];
    choices: {
      value: string | boolean;
      description?: string | null;
    }[];
  }
  | {
    type: "score";
    name?: string | null;
    instructions: string | JsonObject[];
    levels: {
      label: string;
      description?: string | null;
    }[];
  };

/** The answer to a question. `name` is the question's, or null. */
export type DecisionAnswer =
  | {
    type: "predicate";
    name: string | null;
    /** Of "yes". */
    probability: number;
  }
  | {
    type: "choice";
    name: string | null;
    /** The most likely one. */
    choice: string | boolean;
    /** Its probability. */
    confidence: number;
    /** In the order of the request; their sum is 1. */
    probabilities: {
      value: string | boolean;
      probability: number;
    }[];
  }
  | {
    type: "score";
    name: string | null;
    /** The mean of the levels' values. */
    score: number;
    /** The probability of the most likely level. */
    confidence: number;
    /** In the order of the request; their sum is 1. */
    probabilities: {
      label: string;
      /** The level's index. */
      value: number;
      probability: number;
    }[];
  };

/** The answers to the questions of a request, in their order. */
export interface WireDecision {
  answers: DecisionAnswer[];
  model: string;
  usage: ResponseUsage | null;
  fm?: FmReport;
}

/** An OpenAI list of embeddings. */
export interface WireEmbeddings {
  object: "list";
  data: {
    object: "embedding";
    index: number;
    embedding: number[] | string;
  }[];
  model: string;
  /** Null: unknown. */
  usage: {
    prompt_tokens: number;
    total_tokens: number;
  } | null;
  fm?: FmReport;
}

/** The answer of `health.ping`. */
export interface Pong {
  protocol_version: number;
  version: string;
  pid: number;
  uptime_ms: number;
}

/** The answer of `metrics.get`: what the helper has done since it started, and what it does now. */
export interface Metrics {
  uptime_ms: number;
  /** Requests for an answer: how many have ended, and how, and how many have not ended. */
  requests: {
    completed: number;
    /** Cut by a token limit, or by a content filter. */
    incomplete: number;
    /** Failed, but not by a time limit or a cancel. */
    failed: number;
    timed_out: number;
    cancelled: number;
    /** Refused before they were queued: a wrong parameter, an unknown model, too many at once. */
    refused: number;
    /** Requests that wait in the queue now. */
    queued: number;
    /** Requests that an engine works on now. */
    running: number;
    /** The sum of the other numbers. */
    received: number;
  };
  /** Tokens of answers that have ended; the prompt counts once for each choice. */
  tokens: {
    input: number;
    /** Input tokens that needed no work. */
    cached: number;
    output: number;
    /** Output tokens of thoughts. */
    reasoning: number;
    /** Tokens that engines guessed ahead. */
    drafted: number;
    /** Guessed tokens that became part of an answer. */
    accepted: number;
  };
  /** The sums of the times of answers that have ended; see `fm.timings`. */
  time_ms: {
    queue: number;
    prefill: number;
    decode: number;
  };
  engines: {
    /** Processes that were started. */
    starts: number;
    /** Started processes that failed. */
    deaths: number;
    /** Processes that run now. */
    now: {
      model: string | null;
      state: "starting" | "ready" | "stopping";
      /** Requests that it works on. */
      requests: number;
    }[];
  };
  /** Bytes of whole messages, their headers included. */
  bytes: {
    host: Traffic;
    engines: Traffic;
  };
}

export interface Traffic {
  /** Bytes that came from this side. */
  received: number;
  /** Bytes that went to this side. */
  sent: number;
}

/** What confines the engine process, as the last engine reported (see `capabilities.get` in PROTOCOL.md). */
export interface EngineSandbox {
  no_new_privs: boolean;
  /** The ABI version of Landlock that is in force; 0: none. */
  landlock: number;
  seccomp: boolean;
  network: "denied" | "allowed";
  /**
   * Whether the engine can read devices, terminals included, and the files of other processes in /proc; "gpus": only
   * the device nodes of GPUs.
   */
  devices: "denied" | "gpus" | "allowed";
  /** "none": the engine has none of root's special rights. */
  capabilities: "none" | "some";
}

/** What the engine computes with besides the CPU (see `capabilities.get` in PROTOCOL.md). */
export interface EngineGpu {
  /** The name of the GPU, or the names of several; null: no GPU is used. */
  device: string | null;
  /** Layers of the model that the GPU computes. */
  layers: number;
  /** Layers of the model. */
  total_layers: number;
  /** Why no GPU is used; null: a GPU is used. */
  detail: string | null;
}

/** Whether an engine could take a request now, and why not. */
export interface OrderedEngine {
  name: string;
  available: boolean;
  reason_code: EngineReasonCode | null;
  detail: string | null;
  /** Whether it sends requests to another machine. */
  remote: boolean;
  [key: string]: unknown;
}

/** An engine with its model (see `capabilities.get` in PROTOCOL.md). */
export interface RunningEngine {
  engine?: string;
  /** The model's id. */
  model: string;
  state: "starting" | "ready" | "stopping";
  /** How long the engine has been in that state, in ms. */
  state_ms: number;
  /** Requests that it works on. */
  requests: number;
  /** Memory that the model takes: an estimate until it is loaded. Null: unknown. */
  memory_bytes: number | null;
  [key: string]: unknown;
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
export interface Capabilities {
  /** Whether a request can be answered. */
  available: boolean;
  /** Why not; null if it can. */
  reason_code: EngineReasonCode | null;
  /** The reason as a sentence; null if there is none. */
  detail: string | null;
  engine: {
    name: string;
    state: "idle" | "starting" | "ready" | "stopping";
    sandbox: EngineSandbox | null;
    /** Null: no GPU was requested, or no model has been loaded. */
    gpu: EngineGpu | null;
    [key: string]: unknown;
  };
  /** The engines, in the order in which requests go to them. */
  order: OrderedEngine[];
  engines: RunningEngine[];
  models: {
    id: string;
    default: boolean;
    /** Whether the model sees images. */
    images: boolean;
    /** The file of the projector with which the model sees images. */
    mmproj: string | null;
    engine?: string;
    [key: string]: unknown;
  }[];
  store: StoreState;
  features: {
    responses: boolean;
    chat_completions: boolean;
    streaming: boolean;
    cancel: boolean;
    tools: boolean | null;
    structured_output: boolean | null;
    embeddings: boolean | null;
    stored_responses: boolean;
    input_tokens: boolean | null;
    truncation: boolean | null;
    completions: boolean | null;
    compaction: boolean;
    images: boolean | null;
    [key: string]: boolean | null;
  };
  limits: {
    max_requests: number;
    max_frame_bytes: number;
    queue_timeout_ms: number;
    first_token_timeout_ms: number;
    no_progress_timeout_ms: number;
    timeout_ms: number;
    grace_ms: number;
    [key: string]: number;
  };
  [key: string]: unknown;
}

/** The model that `models.load` loads, or that `models.unload` unloads. */
export interface ModelParams {
  /** Its id, or another name of it. Default: the default model. */
  model?: string | null;
  fm?: RequestLimits | null;
}

/** The answer of `models.load`. */
export interface LoadedModel {
  /** The model's id. */
  model: string;
  /** From the start of its engine until it was ready, in ms. */
  load_ms: number;
  /** Memory that the model takes. Null: unknown. */
  memory_bytes: number | null;
  /** Tokens, input and output together. Null: unknown. */
  context_length: number | null;
  /** Requests that are answered at once. */
  slots: number;
}

/** The answer of `models.unload`. */
export interface UnloadedModel {
  /** The model's id. */
  model: string;
  /** False: it was not loaded. */
  unloaded: boolean;
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

/** The answer of `responses.delete`. */
export interface DeletedResponse {
  id: string;
  object: "response";
  deleted: true;
  [key: string]: unknown;
}

/** One page of a stored response's input. */
export interface InputItemList {
  object: "list";
  data: JsonObject[];
  first_id: string | null;
  last_id: string | null;
  has_more: boolean;
  [key: string]: unknown;
}

/** The answer of `responses.input_tokens`. */
export interface InputTokenCount {
  object: "response.input_tokens";
  input_tokens: number;
  fm?: FmReport;
  [key: string]: unknown;
}

/** A shortened conversation; its `output` is input for the next request. */
export interface WireCompaction {
  id: string;
  object: "response.compaction";
  created_at: number;
  output: {
    id: string;
    type: "compaction";
    encrypted_content: string;
  }[];
  usage: ResponseUsage | null;
  fm?: FmReport;
}
