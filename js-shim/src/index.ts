/**
 * A local language model for desktop applications: the OpenAI API over a helper process, with no server and no port.
 *
 * @packageDocumentation
 */
export { Client, createClient, type ClientOptions, type Models } from "./client.js";
export { FmError, textOfResponse } from "./errors.js";
export type { ClientErrorCode, FmErrorCode, FmErrorFields, HelperErrorCode, OpenAIErrorShape } from "./errors.js";
export { PROTOCOL_VERSION, type RestartPolicy } from "./helper.js";
export type { ResponseStream, Responses } from "./responses.js";
export type { ChatCompletions, ChatStream } from "./chat.js";
export type { EventStream } from "./stream.js";
export type { Compatibility, CompatibilityReport, ReasonCode } from "./compatibility.js";
export type {
  Capabilities,
  ChatCompletion,
  ChatCompletionChunk,
  ChatCreateParams,
  ChatUsage,
  EngineSandbox,
  FmParams,
  JsonObject,
  Model,
  ModelList,
  OutputItem,
  OutputPart,
  Pong,
  RequestLimits,
  RequestOptions,
  ResponseCreateParams,
  ResponseEvent,
  ResponseObject,
  ResponseUsage,
  SchemaReport,
} from "./types.js";
