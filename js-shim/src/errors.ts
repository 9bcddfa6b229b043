// FmError, and its form as an error of the OpenAI API.
import type { JsonObject, ResponseObject, WireResponse } from "./types.js";
import { isObject } from "./types.js";
import { ERROR_SHAPES, type HelperErrorCode, type OpenAIErrorShape } from "./wire.js";

export type { HelperErrorCode, OpenAIErrorShape };

/** Why a machine cannot answer requests. */
export type ReasonCode =
  | "NOT_DARWIN"
  | "OS_TOO_OLD"
  | "UNSUPPORTED_HARDWARE"
  | "AI_DISABLED"
  | "MODEL_NOT_READY"
  | "NOT_CONFIGURED"
  | "AUTH_FAILED"
  | "QUOTA"
  | "OFFLINE"
  | "TLS_FAILED"
  | "RATE_LIMITED"
  | "SPAWN_FAILED"
  | "PROTOCOL_MISMATCH"
  | "HELPER_UNHEALTHY";

const REASONS: ReadonlySet<string> = new Set<ReasonCode>([
  "OS_TOO_OLD",
  "UNSUPPORTED_HARDWARE",
  "AI_DISABLED",
  "MODEL_NOT_READY",
  "NOT_CONFIGURED",
  "AUTH_FAILED",
  "QUOTA",
  "OFFLINE",
  "TLS_FAILED",
  "RATE_LIMITED",
]);

/** Converts a helper's reason_code; undefined: there is none. The only engine for another system is the one for Macs. */
export function reasonCodeOf(code: unknown): ReasonCode | undefined {
  if (typeof code !== "string") return undefined;
  if (code === "UNSUPPORTED_PLATFORM") return "NOT_DARWIN";
  return REASONS.has(code) ? (code as ReasonCode) : "HELPER_UNHEALTHY";
}

/** The codes of failures between this package and the helper. */
export type ClientErrorCode =
  /** The helper was not found, could not be started, or is not a helper. */
  | "SPAWN_FAILED"
  /** The helper speaks another version of the protocol. */
  | "PROTOCOL_MISMATCH"
  /** The helper does not answer, or has crashed too often. */
  | "HELPER_UNHEALTHY"
  /** The helper ended while the call was in progress. */
  | "HELPER_EXITED"
  /** The helper wrote something that is not the protocol. */
  | "PROTOCOL_ERROR"
  /** The helper refused the call itself. An older helper does so if it does not know the method. */
  | "RPC_ERROR"
  /** `client.generate` got no valid answer, and has no fallback. */
  | "NO_VALID_ANSWER"
  /** `client.close()` was called. */
  | "CLOSED";

/** Every `code` of an {@link FmError}. */
export type FmErrorCode = HelperErrorCode | ClientErrorCode;

/** The fields that an {@link FmError} may have besides its code and detail. */
export interface FmErrorFields {
  openai?: Partial<OpenAIErrorShape> | undefined;
  response?: WireResponse | ResponseObject | undefined;
  completion?: object | undefined;
  limit?: string | undefined;
  limitMs?: number | undefined;
  retryAfterMs?: number | undefined;
  reasonCode?: ReasonCode | undefined;
  tried?: readonly string[] | undefined;
  cause?: unknown;
}

/** Status, OpenAI type and OpenAI code of an error that does not bring its own. */
const SHAPES: Record<FmErrorCode, readonly [number, string, string]> = {
  ...ERROR_SHAPES,
  /** For an answer in which the helper does not say what was not found. */
  NOT_FOUND: [404, "invalid_request_error", "not_found"],
  /** The same request would fail again: after a 404, clients do not repeat it by themselves, as they do after 5xx. */
  SPAWN_FAILED: [404, "server_error", "spawn_failed"],
  PROTOCOL_MISMATCH: [404, "server_error", "protocol_mismatch"],
  HELPER_UNHEALTHY: [404, "server_error", "helper_unhealthy"],
  CLOSED: [404, "server_error", "client_closed"],
  HELPER_EXITED: [500, "server_error", "helper_exited"],
  PROTOCOL_ERROR: [500, "server_error", "protocol_error"],
  RPC_ERROR: [500, "server_error", "rpc_error"],
  NO_VALID_ANSWER: [500, "server_error", "no_valid_answer"],
};

/** The class of all errors with which this package rejects, except an abort signal's own reason. */
export class FmError extends Error {
  /** Set here because a host's bundler may shorten the name of the class, and Node shows the name. */
  static override readonly name = "FmError";
  override readonly name = "FmError";
  /** The kind of the failure. */
  readonly code: FmErrorCode;
  /** One English sentence; the same as `message`. */
  readonly detail: string;
  /** The HTTP status with which a server would have answered. */
  readonly status: number;
  /** The error in the form that OpenAI's clients know. */
  readonly openai: OpenAIErrorShape;
  /** The response as it was before it failed. */
  readonly response: ResponseObject | undefined;
  /** The completion as it was before it failed. */
  readonly completion: JsonObject | undefined;
  /** For TIMEOUT: the limit that was reached (`queue`, `first_token`, `no_progress` or `total`). */
  readonly limit: string | undefined;
  /** For TIMEOUT: the limit that was reached, in ms. */
  readonly limitMs: number | undefined;
  /** For RATE_LIMITED: the time after which the next request may succeed, in ms; undefined: unknown. */
  readonly retryAfterMs: number | undefined;
  /** Why the machine can't answer, as `client.compatibility.check()` reports it; undefined: the failure has another reason. */
  readonly reasonCode: ReasonCode | undefined;
  /** If no helper was found: the places that were searched, in order. */
  readonly tried: readonly string[] | undefined;

  constructor(code: FmErrorCode, detail: string, fields: FmErrorFields = {}) {
    super(detail, fields.cause === undefined ? undefined : { cause: fields.cause });
    const [status, type, openaiCode] = SHAPES[code] ?? SHAPES.INTERNAL;
    this.code = code;
    this.detail = detail;
    this.openai = { status, type, code: openaiCode, param: null, message: detail, ...fields.openai };
    this.status = this.openai.status;
    this.response = fields.response && withOutputText(fields.response);
    this.completion = fields.completion as JsonObject | undefined;
    this.limit = fields.limit;
    this.limitMs = fields.limitMs;
    this.retryAfterMs = fields.retryAfterMs;
    this.reasonCode = fields.reasonCode;
    this.tried = fields.tried;
  }

  /** Whether the same request may succeed a moment later. */
  get retryable(): boolean {
    return this.code === "RATE_LIMITED" || this.code === "OVERLOADED";
  }

  /** The text that was produced before the failure, or "". */
  get partialText(): string {
    if (this.response !== undefined) return textOfResponse(this.response);
    const choices = this.completion?.["choices"];
    const first: unknown = Array.isArray(choices) ? choices[0] : undefined;
    if (!isObject(first)) return "";
    const content = isObject(first["message"]) ? first["message"]["content"] : first["text"];
    return typeof content === "string" ? content : "";
  }

  /** The same error with the output that was produced before it. */
  withPartial(fields: Pick<FmErrorFields, "response" | "completion">): FmError {
    return new FmError(this.code, this.detail, {
      openai: this.openai,
      response: this.response,
      completion: this.completion,
      limit: this.limit,
      limitMs: this.limitMs,
      retryAfterMs: this.retryAfterMs,
      reasonCode: this.reasonCode,
      tried: this.tried,
      cause: this.cause ?? this,
      ...fields,
    });
  }

  /** Makes an error of the `{"ok":false, ...}` result of a call. */
  static fromResult(result: JsonObject): FmError {
    const error = isObject(result["error"]) ? result["error"] : {};
    const code = Object.hasOwn(SHAPES, String(error["code"])) ? (error["code"] as FmErrorCode) : "INTERNAL";
    const detail = typeof error["detail"] === "string" ? error["detail"] : "The helper gave no reason.";
    return new FmError(code, detail, {
      openai: isObject(error["openai"]) ? (error["openai"] as Partial<OpenAIErrorShape>) : undefined,
      response: isObject(result["response"]) ? (result["response"] as unknown as WireResponse) : undefined,
      completion: isObject(result["completion"]) ? result["completion"] : undefined,
      limit: typeof error["limit"] === "string" ? error["limit"] : undefined,
      limitMs: typeof error["limit_ms"] === "number" ? error["limit_ms"] : undefined,
      retryAfterMs: typeof error["retry_after_ms"] === "number" ? error["retry_after_ms"] : undefined,
      reasonCode: reasonCodeOf(error["reason_code"]),
    });
  }
}

/** All output text of a response, in order. */
export function textOfResponse(response: Pick<WireResponse, "output">): string {
  let text = "";
  for (const item of response.output ?? []) {
    if (!("content" in item)) continue;
    for (const part of item.content ?? []) if (part.type === "output_text") text += part.text ?? "";
  }
  return text;
}

/**
 * The response with `output_text`, as OpenAI's SDK has it. An object that is no Response, such as a completion, gets no
 * `output_text`.
 */
export function withOutputText(response: WireResponse | ResponseObject): ResponseObject {
  const text = Array.isArray(response.output) ? { output_text: textOfResponse(response) } : {};
  return { ...response, ...text } as ResponseObject;
}

/** Makes the error for a request or an option with an invalid field `param`. */
export function invalid(param: string, detail: string): FmError {
  return new FmError("INVALID_REQUEST", detail, { openai: { param } });
}
