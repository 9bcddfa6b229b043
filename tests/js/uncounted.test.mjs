// How the stock clients handle counts that an engine does not have: no count at all, and totals without their details. Servers
// behind the remote engine report less than OpenAI's.
import { createOpenAI } from "@ai-sdk/openai";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import * as agents from "@openai/agents";
import { embedMany, generateText, streamText } from "ai";
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import OpenAI7 from "openai-7";
import OpenAI6 from "openai-6";
import { createClient } from "../../js-shim/dist/esm/index.js";
import {
  clientFor,
  connection,
  fakeOptions,
  helperPath,
  needFakeEngine,
  noRemote,
  sanitizerEnv,
  script,
} from "./support/helper.mjs";

needFakeEngine();
agents.setTracingDisabled(true);

const DETAILS = ["cached_tokens", "reasoning_tokens"];
const piece = { piece: ["text", "Yes."] };
const CASES = {
  "no counts": { input: script(piece), totals: [undefined, undefined] },
  "totals alone": { input: script(piece, { usage: { input: 7, output: 3 } }), totals: [7, 3], uncounted: DETAILS },
};

/** Each client's way to get a text and its totals: [text, input tokens, output tokens]. */
const CLIENTS = {
  ...Object.fromEntries([["openai-7", OpenAI7], ["openai-6", OpenAI6]].flatMap(([name, OpenAI]) => openaiWays(name, OpenAI))),
  ...Object.fromEntries(["responses", "chat"].flatMap(aiWays)),
  ...Object.fromEntries([true, false].flatMap(langChainWays)),
  ...Object.fromEntries([agents.OpenAIResponsesModel, agents.OpenAIChatCompletionsModel].flatMap(agentsWays)),
};

function openaiWays(name, OpenAI) {
  const make = (client) => new OpenAI({ ...connection(client), maxRetries: 0 });
  const ofResponse = ({ output_text, usage }) => [output_text, usage?.input_tokens, usage?.output_tokens];
  const ofChat = ({ choices, usage }) => [choices[0].message.content, usage?.prompt_tokens, usage?.completion_tokens];
  const messages = (content) => [{ role: "user", content }];
  return [
    [`${name}, responses`, async (client, input) => ofResponse(await make(client).responses.create({ input }))],
    [`${name}, responses, streamed`, async (client, input) =>
      ofResponse(await make(client).responses.stream({ input }).finalResponse())],
    [`${name}, chat`, async (client, input) =>
      ofChat(await make(client).chat.completions.create({ messages: messages(input) }))],
    [`${name}, chat, streamed`, async (client, input) => {
      const options = { messages: messages(input), stream_options: { include_usage: true } };
      return ofChat(await make(client).chat.completions.stream(options).finalChatCompletion());
    }],
  ];
}

function aiWays(api) {
  const settings = (client, prompt) => ({ model: createOpenAI(connection(client))[api]("fake"), prompt, maxRetries: 0 });
  const told = async ({ text, usage }) => [await text, (await usage).inputTokens, (await usage).outputTokens];
  return [
    [`AI SDK, ${api}`, async (client, input) => told(await generateText(settings(client, input)))],
    [`AI SDK, ${api}, streamed`, async (client, input) => {
      let failure;
      const result = streamText({ ...settings(client, input), onError: ({ error }) => (failure = error) });
      for await (const _ of result.fullStream);
      if (failure !== undefined) throw failure;
      return told(result);
    }],
  ];
}

function langChainWays(useResponsesApi) {
  const name = `LangChain, ${useResponsesApi ? "responses" : "chat"}`;
  const make = (client) => {
    const { apiKey, baseURL, fetch } = connection(client);
    return new ChatOpenAI({ model: "fake", apiKey, useResponsesApi, maxRetries: 0, configuration: { baseURL, fetch } });
  };
  const told = ({ text, usage_metadata: usage }) => [text, usage?.input_tokens, usage?.output_tokens];
  return [
    [name, async (client, input) => told(await make(client).invoke(input))],
    [`${name}, streamed`, async (client, input) => {
      let all;
      for await (const chunk of await make(client).stream(input)) all = all?.concat(chunk) ?? chunk;
      return told(all);
    }],
  ];
}

function agentsWays(Model) {
  const run = async (client, input, stream) => {
    const openai = new OpenAI7({ ...connection(client), maxRetries: 0 });
    const agent = new agents.Agent({ name: "A", model: new Model(openai, "fake") });
    const result = await agents.run(agent, input, { stream });
    if (stream) {
      for await (const _ of result);
      await result.completed;
    }
    const { usage } = result.rawResponses.at(-1);
    return [result.finalOutput, usage.inputTokens, usage.outputTokens];
  };
  return [
    [`Agents SDK, ${Model.name}`, (client, input) => run(client, input, false)],
    [`Agents SDK, ${Model.name}, streamed`, (client, input) => run(client, input, true)],
  ];
}

/** The answers are not audited: the audit demands all counts. */
function uncounted(t) {
  const client = createClient({ ...fakeOptions, env: { ...sanitizerEnv, FM_ENGINE_FAKE_IS: "uncounted" } });
  t.after(() => client.close());
  return client;
}

for (const [what, { input, totals, uncounted: names }] of Object.entries(CASES)) {
  test(what, async (t) => {
    const client = uncounted(t);
    assert.deepEqual((await client.responses.create({ input })).fm?.uncounted, names);
    for (const [name, ask] of Object.entries(CLIENTS)) {
      await t.test(name, async () => {
        const [text, ...told] = await ask(client, input);
        assert.equal(text, "Yes.");
        // Some clients turn a missing count into 0.
        assert.deepEqual(told.map((count) => count || undefined), totals);
      });
    }
  });
}

/** The remote engine with a server that answers with vectors and reports no usage. */
async function silentVectors(t) {
  const server = createServer((_, reply) => {
    reply.setHeader("content-type", "application/json");
    reply.end(JSON.stringify({ object: "list", data: [{ object: "embedding", index: 0, embedding: [1, 0] }] }));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const remote = { endpoints: [{ url: `http://127.0.0.1:${server.address().port}/v1`, dialect: "chat" }] };
  return clientFor(t, { helperPath, engine: "remote", remote, env: sanitizerEnv });
}

test("vectors whose texts are not counted", { skip: noRemote() ?? false }, async (t) => {
  const client = await silentVectors(t);
  const { apiKey, baseURL, fetch } = connection(client);
  for (const [name, OpenAI] of [["openai-7", OpenAI7], ["openai-6", OpenAI6]])
    await t.test(name, async () => {
      const openai = new OpenAI({ apiKey, baseURL, fetch, maxRetries: 0 });
      const { data, usage } = await openai.embeddings.create({ model: "a", input: "b" });
      assert.deepEqual([data[0].embedding, usage], [[1, 0], null]);
    });
  await t.test("AI SDK", async () => {
    const model = createOpenAI({ apiKey, baseURL, fetch }).embedding("a");
    assert.deepEqual((await embedMany({ model, values: ["b"], maxRetries: 0 })).embeddings, [[1, 0]]);
  });
  await t.test("LangChain", async () => {
    const embeddings = new OpenAIEmbeddings({ model: "a", apiKey, maxRetries: 0, configuration: { baseURL, fetch } });
    assert.deepEqual(await embeddings.embedQuery("b"), [1, 0]);
  });
});
