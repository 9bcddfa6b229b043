// Without a model, stock clients with their usual settings send one request: none repeats it, because its user would have to
// wait.
import { createOpenAI } from "@ai-sdk/openai";
import { ChatOpenAI } from "@langchain/openai";
import { embed, generateText, streamText } from "ai";
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI6 from "openai-6";
import OpenAI7 from "openai-7";
import { createFmProxy } from "../../js-shim/dist/esm/ai.js";
import { connection, fakeClient, stubClient } from "./support/helper.mjs";

const prompt = "Say hello.";
const sdk = (OpenAI) => (client) => new OpenAI(connection(client)).responses.create({ input: prompt });

/** Each client asks once for an answer. The rejection is what its user sees. */
const CLIENTS = {
  "openai 7": sdk(OpenAI7),
  "openai 6": sdk(OpenAI6),
  "openai 7, streamed": (client) => new OpenAI7(connection(client)).responses.create({ input: prompt, stream: true }),
  "AI SDK, generateText": (client) => generateText({ model: createFmProxy(client, createOpenAI)("default"), prompt }),
  "AI SDK, embed": (client) => embed({ model: createFmProxy(client, createOpenAI).embedding("default"), value: prompt }),
  "AI SDK, streamText": async (client) => {
    const stream = streamText({ model: createFmProxy(client, createOpenAI)("default"), prompt, onError() {} });
    for await (const part of stream.fullStream) if (part.type === "error") throw part.error;
  },
  "LangChain": (client) => {
    const { apiKey, ...configuration } = connection(client);
    return new ChatOpenAI({ model: "default", apiKey, configuration }).invoke(prompt);
  },
};

const unavailable = { capabilities: { available: false, reason_code: "MODEL_NOT_READY", detail: "There is no model." } };
const REASONS = {
  "no model": (t) => stubClient(t, unavailable),
  "a model that does not load": (t) => fakeClient(t, { env: { FM_ENGINE_FAKE_LOAD: "error" } }),
  "no helper": (t) => stubClient(t, {}, { helperPath: "/nowhere/fm-proxy" }),
  "a client that is closed": async (t) => {
    const client = stubClient(t);
    await client.close();
    return client;
  },
};

for (const [reason, make] of Object.entries(REASONS)) {
  for (const [name, ask] of Object.entries(CLIENTS)) {
    test(`${reason}: ${name} asks once`, async (t) => {
      const { fetch } = await make(t);
      const statuses = [];
      const counting = async (...call) => {
        const response = await fetch(...call);
        statuses.push(response.status);
        return response;
      };
      await assert.rejects(ask({ fetch: counting }), /no model|load|does not exist|closed/i);
      assert.deepEqual(statuses, [404]);
    });
  }
}

test("the AI SDK's adapter says what it lacks", () => {
  assert.throws(() => createFmProxy({ fetch }), /createFmProxy\(client, createOpenAI\)/);
});
