/**
 * `import "fm-proxy/openai"` adds only types. With them, calls of OpenAI's own SDK accept `fm` and the other parameters that are
 * not OpenAI's, and the SDK's answers have `fm`.
 *
 * @packageDocumentation
 */
import type {} from "openai";
import type { CommonFmParams, ExtraParams, FmParams, FmReport } from "./index.js";

/** What a request for a text may have. */
interface Asked extends ExtraParams {
  fm?: FmParams;
  return_progress?: boolean | null;
}

/** What a request for an answer may have. */
interface AnswerAsked extends Asked {
  generate?: boolean | null;
}

/** What answers have. */
interface Answered {
  fm?: FmReport;
}

declare module "openai/resources/responses/responses" {
  interface ResponseCreateParamsBase extends AnswerAsked {}
  interface Response extends Answered {}
  interface ResponseCompactParams {
    fm?: CommonFmParams;
  }
  interface CompactedResponse extends Answered {}
}

declare module "openai/resources/responses/input-tokens" {
  interface InputTokenCountParams extends Asked {}
  interface InputTokenCountResponse extends Answered {}
}

declare module "openai/resources/chat/completions/completions" {
  interface ChatCompletionCreateParamsBase extends AnswerAsked {}
  interface ChatCompletion extends Answered {}
  interface ChatCompletionChunk extends Answered {}
}

declare module "openai/resources/completions" {
  interface CompletionCreateParamsBase extends Asked {}
  interface Completion extends Answered {}
}

declare module "openai/resources/embeddings" {
  interface EmbeddingCreateParams {
    fm?: CommonFmParams;
  }
  interface CreateEmbeddingResponse extends Answered {}
}
