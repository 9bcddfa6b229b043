// fm-proxy/ai: the local model in the Vercel AI SDK.

/** The settings that are passed to `createOpenAI` of `@ai-sdk/openai`. */
export interface OpenAISettings {
  name: string;
  apiKey: string;
  baseURL: string;
  fetch: typeof globalThis.fetch;
}

/**
 * Makes a provider of the AI SDK. After `const fm = createFmProxy(client, createOpenAI)`, `fm("default")` is a language model,
 * and `fm.embedding("default")` is an embedding model. `createOpenAI` comes from the application's own `@ai-sdk/openai`, so that
 * the provider fits the application's version of `ai`. The caller still has to close the client.
 *
 * @throws TypeError without a client or `createOpenAI`
 */
export function createFmProxy<Provider>(
  client: { readonly fetch: typeof globalThis.fetch },
  createOpenAI: (settings: OpenAISettings) => Provider,
): Provider {
  // With any other fetch, the AI SDK would send the prompt to the network.
  if (typeof (client as { fetch?: unknown } | null | undefined)?.fetch !== "function") {
    throw new TypeError("createFmProxy needs a client of createClient(): call createFmProxy(client, createOpenAI).");
  }
  if (typeof createOpenAI !== "function") {
    throw new TypeError('createFmProxy needs createOpenAI of "@ai-sdk/openai": call createFmProxy(client, createOpenAI).');
  }
  return createOpenAI({ name: "fm-proxy", apiKey: "local", baseURL: "http://fm-proxy/v1", fetch: client.fetch });
}
