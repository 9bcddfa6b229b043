// fm-proxy/ai: the local model in the Vercel AI SDK.

/** What `createOpenAI` of `@ai-sdk/openai` is called with. */
export interface OpenAISettings {
  name: string;
  apiKey: string;
  baseURL: string;
  fetch: typeof globalThis.fetch;
}

/**
 * A provider of the AI SDK: with `const fm = createFmProxy(client, createOpenAI)`, `fm("default")` is a language model, and
 * `fm.embedding("default")` one that embeds. `createOpenAI` is that of the application's own `@ai-sdk/openai`, so the provider
 * fits its version of `ai`. The caller still has to close the client.
 *
 * @throws TypeError without `createOpenAI`
 */
export function createFmProxy<Provider>(
  client: { readonly fetch: typeof globalThis.fetch },
  createOpenAI: (settings: OpenAISettings) => Provider,
): Provider {
  if (typeof createOpenAI !== "function") {
    throw new TypeError('createFmProxy needs createOpenAI of "@ai-sdk/openai": call createFmProxy(client, createOpenAI).');
  }
  return createOpenAI({ name: "fm-proxy", apiKey: "local", baseURL: "http://fm-proxy/v1", fetch: client.fetch });
}
