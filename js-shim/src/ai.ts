// fm-proxy/ai: the local model in the Vercel AI SDK.
import { createOpenAI, type OpenAIProvider } from "@ai-sdk/openai";

/**
 * A provider of the AI SDK: `createFmProxy(client)("default")` is a language model, `.embedding("default")` one that
 * embeds. It is the provider of `@ai-sdk/openai`, which has to be installed, over `client.fetch`. The client stays the
 * caller's to close.
 */
export function createFmProxy(client: { readonly fetch: typeof globalThis.fetch }): OpenAIProvider {
  return createOpenAI({ name: "fm-proxy", apiKey: "local", baseURL: "http://fm-proxy/v1", fetch: client.fetch });
}
