// The Vercel AI SDK, unmodified, over client.fetch.
import { createOpenAI } from "@ai-sdk/openai";
import { experimental_decide as decide, embedMany, generateObject, generateText, isStepCount } from "ai";
import { streamObject, streamText, tool } from "ai";
import assert from "node:assert/strict";
import { test } from "node:test";
import { createFmProxy } from "../../js-shim/dist/esm/ai.js";
import { connection, lacking, noEmbeddings, noFormats, noModel, script } from "./support/helper.mjs";
import { Animal, CALL, checkRun, description, LIMIT, onEngines } from "./support/tasks.mjs";
import { PROMPT, QUESTION, recorder, THINK, THOUGHT, Weather } from "./support/tasks.mjs";

test("createFmProxy without a client or createOpenAI: an error, and nothing is sent", () => {
  for (const client of [undefined, null, {}, createFmProxy, { fetch: 5 }]) {
    assert.throws(() => createFmProxy(client, createOpenAI), { name: "TypeError", message: /needs a client of createClient/ });
  }
  assert.throws(() => createFmProxy({ fetch }), { name: "TypeError", message: /needs createOpenAI/ });
});

async function texts(t, client, real) {
  const [{ id }] = (await client.models.list()).data;
  const openai = createFmProxy(client, createOpenAI);
  const settings = { temperature: 0, maxOutputTokens: 12, maxRetries: 0 };
  for (const [api, model] of [
    ["responses", openai.responses(id)],
    ["chat/completions", openai.chat(id)],
  ]) {
    await t.test(`POST /${api}: generateText`, async () => {
      const { text, usage } = await generateText({ model, prompt: QUESTION, ...settings });
      assert.notEqual(text.trim(), "");
      assert.equal(usage.totalTokens, usage.inputTokens + usage.outputTokens);
      if (!real) assert.equal(text, QUESTION);
    });

    await t.test(`POST /${api}: streamText`, async () => {
      const result = streamText({ model, prompt: QUESTION, ...settings });
      let text = "";
      for await (const piece of result.textStream) text += piece;
      assert.equal(text, await result.text);
      assert.notEqual(text.trim(), "");
      assert.ok(["stop", "length"].includes(await result.finishReason));
    });

    await t.test(`POST /${api}: abort`, async () => {
      const controller = new AbortController();
      const prompt = real ? "Write a very long story." : script("a ", { hang: "soft" });
      const result = streamText({ model, prompt, temperature: 0, abortSignal: controller.signal, onError() {} });
      const kinds = [];
      for await (const part of result.fullStream) {
        kinds.push(part.type);
        if (part.type === "text-delta") controller.abort();
      }
      assert.ok(kinds.includes("abort"), kinds.join(" "));
    });
  }

  const skip = await lacking(client, "stored_responses");
  await t.test("POST /responses: two turns with the default store", { skip }, async () => {
    const model = openai.responses(id);
    const bodies = [];
    const watched = createOpenAI({
      ...connection(client),
      fetch: (url, init) => {
        bodies.push(JSON.parse(init.body));
        return client.fetch(url, init);
      },
    });
    const messages = [{ role: "user", content: "My name is Alice." }];
    const first = await generateText({ model, messages, ...settings });
    messages.push(...first.response.messages, { role: "user", content: "What is my name?" });
    const second = await generateText({ model: watched.responses(id), messages, ...settings });
    assert.notEqual(second.text.trim(), "");
    // If the SDK knows that an item is stored, it only sends the item's id.
    assert.ok(
      bodies[0].input.some(({ type }) => type === "item_reference"),
      JSON.stringify(bodies[0].input),
    );
    assert.ok(second.usage.inputTokens > first.usage.inputTokens);
  });

  await t.test("POST /responses: reasoning", { skip: real && "the model does not think" }, async () => {
    const result = streamText({ model: openai.responses(id), prompt: THINK, maxRetries: 0 });
    let told = "";
    for await (const part of result.fullStream) if (part.type === "reasoning-delta") told += part.text;
    assert.deepEqual([told, await result.reasoningText, await result.text], [THOUGHT, THOUGHT, "Yes."]);
    assert.equal((await result.usage).outputTokenDetails.reasoningTokens, 2);
  });

  await t.test("POST /embeddings: embedMany", { skip: await noEmbeddings(client) }, async () => {
    const { embeddings } = await embedMany({ model: openai.embedding(id), values: ["a cat", "a dog"], maxRetries: 0 });
    assert.equal(embeddings.length, 2);
    assert.ok(embeddings[0].length > 0);
  });

  const questions = { cat: { type: "boolean", instructions: "Is it a cat?" } };
  const asked = [{ type: "predicate", instructions: "Is it?" }];
  const { ok, error } = await client.safe.decisions.create({ input: "a cat", questions: asked });
  await t.test("POST /decisions: decide", { skip: ok ? false : error.detail }, async () => {
    const state = [{ type: "text", text: "a cat" }];
    const { answers } = await decide({ model: openai.decisionModel(id), state, questions, maxRetries: 0 });
    assert.ok(answers.cat.probability >= 0 && answers.cat.probability <= 1);
  });
}

async function objects(t, client) {
  const [{ id }] = (await client.models.list()).data;
  const openai = createOpenAI(connection(client));
  const settings = { schema: Animal, prompt: PROMPT, maxOutputTokens: 200 };
  for (const [api, model] of [
    ["responses", openai.responses(id)],
    ["chat/completions", openai.chat(id)],
  ])
    await t.test(`POST /${api}: generateObject`, async () => {
      const { object, finishReason } = await generateObject({ model, ...settings });
      Animal.parse(object);
      assert.equal(finishReason, "stop");
    });

  await t.test("POST /responses: streamObject", async () => {
    const result = streamObject({ model: openai.responses(id), ...settings });
    let partial;
    for await (partial of result.partialObjectStream);
    Animal.parse(partial);
    Animal.parse(await result.object);
  });
}

// A model that must call a tool in each step never answers, so the real one must only call in the first step.
async function tools(t, client, real) {
  const [{ id }] = (await client.models.list()).data;
  const openai = createOpenAI(connection(client));
  for (const [api, model] of [
    ["responses", openai.responses(id)],
    ["chat/completions", openai.chat(id)],
  ]) {
    const setUp = () => {
      const { seen, run } = recorder();
      const tools = { weather: tool({ description, inputSchema: Weather, execute: run }) };
      const prepareStep = ({ stepNumber }) => ({
        toolChoice: real && stepNumber === 0 ? "required" : real ? "none" : "auto",
      });
      const providerOptions = { openai: { parallelToolCalls: false, store: false } };
      const prompt = real ? QUESTION : CALL;
      return [
        seen,
        { model, tools, prompt, prepareStep, providerOptions, stopWhen: isStepCount(3), maxOutputTokens: LIMIT },
      ];
    };

    await t.test(`POST /${api}: tools in several steps (generateText)`, async () => {
      const [seen, body] = setUp();
      const { text, steps } = await generateText(body);
      assert.equal(steps.length, 2);
      assert.equal(steps[0].finishReason, "tool-calls");
      checkRun(seen, text, real);
    });

    await t.test(`POST /${api}: tools in several steps (streamText)`, async () => {
      const [seen, body] = setUp();
      const kinds = new Set();
      let pieces = "";
      const result = streamText(body);
      for await (const part of result.fullStream) {
        kinds.add(part.type);
        if (part.type === "tool-input-delta") pieces += part.delta ?? part.inputTextDelta;
        assert.notEqual(part.type, "error", String(part.error));
      }
      for (const kind of ["tool-input-start", "tool-call", "tool-result"]) assert.ok(kinds.has(kind), kind);
      assert.deepEqual(JSON.parse(pieces), seen[0]);
      checkRun(seen, await result.text, real);
    });
  }
}

onEngines("AI SDK", noModel(), async (t, client, real) => {
  await texts(t, client, real);
  const skip = (real && noFormats()) || false;
  await t.test("structured output", { skip }, async (t) => objects(t, client));
  await t.test("tools", { skip }, async (t) => tools(t, client, real));
});
