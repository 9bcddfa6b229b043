/**
 * A local language model for desktop applications: the OpenAI API over a helper process, with no server and no port.
 *
 * @packageDocumentation
 */
export { Client, createClient, findHelper } from "./client.js";
export type { ClientOptions, Compatibility, RemoteEndpoint, RemoteOptions } from "./client.js";
export { FmError, textOfResponse } from "./errors.js";
export type {
  ClientErrorCode,
  FmErrorCode,
  FmErrorFields,
  HelperErrorCode,
  OpenAIErrorShape,
  ReasonCode,
} from "./errors.js";
export type { ClientEvents, ClientState, StateChange } from "./events.js";
export type { CheckOptions, CompatibilityReport, EngineReport } from "./gate.js";
export type { Generated, GenerateParams, Rejection } from "./generate.js";
export type { HelperLocation } from "./locate.js";
export type { CatalogModel } from "./catalog.js";
export { findModels, pullModel, searchModels, verifyModel } from "./files.js";
export type { FoundModel } from "./model-files.js";
export { modelsFolder } from "./models-folder.js";
export { nameFromText, scoreName, slug, type NameScore, type SlugOptions } from "./names.js";
export type { PullProgress } from "./download.js";
export type { PulledModel, PullOptions } from "./pull.js";
export type { RateLimitPolicy } from "./ratelimit.js";
export type { RestartPolicy } from "./restart.js";
export type { Fallback, FallbackCall, FallbackClient, FallbackMethod } from "./fallback.js";
export type {
  Safe,
  SafeGenerated,
  SafeResponseStream,
  SafeResult,
} from "./safe.js";
export { PROTOCOL_VERSION } from "./wire.js";
export type { InputItems, InputTokens, ResponseStream, Responses } from "./responses.js";
export type { Completions, CompletionStream } from "./completions.js";
export type { Decisions } from "./decisions.js";
export type {
  Calibration,
  CalibrationExample,
  Decided,
  DecidedAll,
  DecideChoice,
  DecideLevel,
  DecideParams,
  DecideQuestion,
} from "./decide.js";
export type { Embeddings } from "./embeddings.js";
export type { Models } from "./models.js";
export type { ChatCompletions, ChatStream } from "./chat.js";
export type { EventStream, Pending } from "./stream.js";
export type {
  AnyBody,
  Capabilities,
  ChatChoice,
  ChatCompletion,
  ChatCompletionChunk,
  ChatCreateParams,
  ChatToolCallDelta,
  ChatUsage,
  CommonFmParams,
  CompactedResponse,
  Completion,
  CompletionChoice,
  CompletionChunk,
  CompletionCreateParams,
  Decision,
  DecisionAnswer,
  DecisionCreateParams,
  DecisionQuestion,
  DeletedResponse,
  EmbeddingCreateParams,
  EmbeddingList,
  EngineSandbox,
  ExtraParams,
  FmParams,
  FmReport,
  GenerationParams,
  InputItem,
  InputItemList,
  InputItemListParams,
  InputPart,
  InputTokenCount,
  JsonObject,
  LoadedModel,
  LogprobEntry,
  Metrics,
  Model,
  ModelList,
  ModelParams,
  OutputItem,
  OutputText,
  Pong,
  ProgressEvent,
  PromptProgress,
  ReasoningEvent,
  ReasoningText,
  RequestLimits,
  RequestOptions,
  ResponseCompactParams,
  ResponseCreateParams,
  ResponseError,
  ResponseEvent,
  ResponseFailure,
  ResponseFormat,
  ResponseObject,
  ResponseRetrieveParams,
  ResponseUsage,
  RunningEngine,
  SchemaReport,
  StreamRequestOptions,
  SummaryText,
  Timings,
  Traffic,
  TokenLogprob,
  UnloadedModel,
  WireEvent,
  WireResponse,
} from "./types.js";
