// Retrieval as in the documents of LangChain and the AI SDK: a model that embeds finds the text that a question is about, and
// a chat model uses it for its answer. Both models stay loaded.
import { StringOutputParser } from "@langchain/core/output_parsers";
import { ChatPromptTemplate } from "@langchain/core/prompts";
import { RunnablePassthrough, RunnableSequence } from "@langchain/core/runnables";
// The vector store in memory of @langchain/core; MemoryVectorStore is the same in a separate package.
import { FakeVectorStore as MemoryVectorStore } from "@langchain/core/utils/testing";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { createOpenAI } from "@ai-sdk/openai";
import { cosineSimilarity, embed, embedMany, generateText } from "ai";
import assert from "node:assert/strict";
import { existsSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createFmProxy } from "../../js-shim/dist/esm/ai.js";
import { connection, modelClient, modelOptions, noModel, root, temporaryFolder } from "./support/helper.mjs";

const TEXTS = [
  "The Traunsee is a lake in Upper Austria. It is 191 metres deep.",
  "Bread rises because yeast turns sugar into carbon dioxide.",
  "The invoice must be paid within thirty days after delivery.",
  "A cat sleeps for up to sixteen hours a day.",
  "The train to Salzburg leaves at ten past eight from platform four.",
];
const QUESTIONS = [
  ["How deep is that lake?", 0],
  ["What makes dough grow?", 1],
  ["When do I have to transfer the money?", 2],
  ["How long do kittens rest?", 3],
  ["Where does the railway journey begin?", 4],
];

const embedders = join(root, "build", "models-embedding");
const firstModel = (folder) => readdirSync(folder).find((name) => name.endsWith(".gguf"));

/** Why retrieval is not possible; false if it is. */
function nothing() {
  if (noModel() !== null) return noModel();
  return existsSync(embedders) && firstModel(embedders) ? false : `no model that embeds in ${embedders}`;
}

/** A client with a chat model and one that embeds, the ids of both, and the bodies of all requests. */
function bothModels(t) {
  const modelsDir = temporaryFolder(t);
  const [chat, embedder] = [modelOptions.modelsDir, embedders].map((folder) => {
    const name = firstModel(folder);
    symlinkSync(join(folder, name), join(modelsDir, name));
    return name.slice(0, -".gguf".length);
  });
  const client = modelClient(t, { modelsDir });
  const sent = [];
  const fetch = (url, init) => {
    sent.push(JSON.parse(init.body));
    return client.fetch(url, init);
  };
  return { client, chat, embedder, sent, fetch };
}

/**
 * Checks that retrieval found the right text for each question, that the chat model read it, and that no engine was started
 * twice.
 */
async function checkAnswers({ client, chat, sent }, answer) {
  for (const [question, right] of QUESTIONS) {
    sent.length = 0;
    assert.notEqual((await answer(question)).trim(), "");
    const bodies = sent.filter(({ model }) => model === chat);
    assert.equal(bodies.length, 1);
    const read = JSON.stringify(bodies[0]);
    assert.deepEqual(
      TEXTS.filter((text) => read.includes(text)),
      [TEXTS[right]],
      question,
    );
  }
  const { engines } = await client.metrics.get();
  assert.deepEqual([engines.starts, engines.deaths], [2, 0]);
}

const SETTINGS = { temperature: 0, maxRetries: 0 };
const TOKENS = 12;
const SYSTEM = "Answer the question with this text alone:\n";

test("LangChain on the real model", { skip: nothing() }, async (t) => {
  const both = bothModels(t);
  const common = { apiKey: "local", configuration: { ...connection(both.client), fetch: both.fetch }, ...SETTINGS };
  for (const [api, useResponsesApi] of [
    ["responses", true],
    ["chat/completions", false],
  ])
    await t.test(`POST /embeddings: retrieval (${api})`, async () => {
      const embeddings = new OpenAIEmbeddings({ ...common, model: both.embedder });
      const metadatas = TEXTS.map((_, index) => ({ index }));
      const store = await MemoryVectorStore.fromTexts(TEXTS, metadatas, embeddings);
      for (const [question, right] of QUESTIONS) {
        const [[found, score], [, next]] = await store.similaritySearchWithScore(question, 2);
        assert.deepEqual([found.pageContent, found.metadata.index], [TEXTS[right], right], question);
        assert.ok(score > next && score <= 1.000001, `${score} > ${next}`);
      }
      const chain = RunnableSequence.from([
        {
          context: store.asRetriever(1).pipe((found) => found.map(({ pageContent }) => pageContent).join("\n")),
          question: new RunnablePassthrough(),
        },
        ChatPromptTemplate.fromMessages([
          ["system", `${SYSTEM}{context}`],
          ["human", "{question}"],
        ]),
        new ChatOpenAI({ ...common, model: both.chat, maxTokens: TOKENS, useResponsesApi }),
        new StringOutputParser(),
      ]);
      await checkAnswers(both, (question) => chain.invoke(question));
    });
});

test("AI SDK on the real model", { skip: nothing() }, async (t) => {
  const both = bothModels(t);
  const provider = createFmProxy({ fetch: both.fetch }, createOpenAI);
  const model = provider.embedding(both.embedder);
  for (const [api, language] of [
    ["responses", provider.responses(both.chat)],
    ["chat/completions", provider.chat(both.chat)],
  ])
    await t.test(`POST /embeddings: retrieval (${api})`, async () => {
      const { embeddings } = await embedMany({ model, values: TEXTS, maxRetries: 0 });
      const found = async (question) => {
        const { embedding } = await embed({ model, value: question, maxRetries: 0 });
        const near = embeddings.map((vector, index) => ({ index, score: cosineSimilarity(embedding, vector) }));
        return near.sort((a, b) => b.score - a.score)[0].index;
      };
      for (const [question, right] of QUESTIONS) assert.equal(await found(question), right, question);
      await checkAnswers(both, async (question) => {
        const system = SYSTEM + TEXTS[await found(question)];
        const settings = { system, prompt: question, maxOutputTokens: TOKENS, ...SETTINGS };
        return (await generateText({ model: language, ...settings })).text;
      });
    });
});
