// Structured output with stock clients, unmodified, over client.fetch: the answer always has the asked shape.
import { ChatOpenAI } from "@langchain/openai";
import { createOpenAI } from "@ai-sdk/openai";
import { generateObject, streamObject } from "ai";
import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { checkChatStream, checkResponse, checkResponseStream } from "./support/invariants.mjs";
import { connection, deltas, drain, fakeClient, modelClient, noFormats } from "./support/helper.mjs";

const PROMPT = "Describe a cat called Tom, who is three years old.";
const Animal = z.object({
  name: z.string().max(24),
  kind: z.enum(["cat", "dog", "bird"]),
  age: z.number().int().min(0).max(30),
  tags: z.array(z.enum(["small", "large", "wild"])).max(3),
});
const schema = z.toJSONSchema(Animal);
const format = { type: "json_schema", name: "animal", strict: true, schema };
const settings = { temperature: 0, max_output_tokens: 200 };
const user = [{ role: "user", content: PROMPT }];

async function openaiSuite(t, OpenAI, { zodTextFormat, zodResponseFormat }, client, real) {
  const openai = new OpenAI({ ...connection(client), maxRetries: 0 });

  await t.test("responses.parse with zodTextFormat", async () => {
    const text = { format: zodTextFormat(Animal, "animal") };
    const response = await openai.responses.parse({ input: PROMPT, text, ...settings });
    Animal.parse(response.output_parsed);
    assert.equal(response.text.format.type, "json_schema");
  });

  await t.test("responses.stream with a schema", async () => {
    const text = { format };
    const { events, error } = await drain(await openai.responses.create({ input: PROMPT, text, stream: true, ...settings }));
    assert.equal(error, null);
    const final = checkResponseStream(events);
    assert.equal(final.status, "completed");
    Animal.parse(JSON.parse(deltas(events)));
  });

  // The fake engine's answer is one token, and it checks nothing afterwards.
  const skip = !real && "the fake engine has nothing of it";
  await t.test("the token limit is told, never a completed half object", { skip }, async () => {
    const response = await openai.responses.create({ input: PROMPT, text: { format }, temperature: 0, max_output_tokens: 5 });
    checkResponse(response);
    assert.equal(response.status, "incomplete");
    assert.equal(response.incomplete_details.reason, "max_output_tokens");
    assert.throws(() => JSON.parse(response.output_text));
  });

  await t.test("json_object", async () => {
    const response = await openai.responses.create({
      input: PROMPT,
      text: { format: { type: "json_object" } },
      ...settings,
    });
    if (response.status === "completed") assert.equal(typeof JSON.parse(response.output_text), "object");
    else assert.equal(response.status, "incomplete");
    assert.equal(response.output_text[0], "{");
  });

  await t.test("chat.completions.parse with zodResponseFormat", async () => {
    const response_format = zodResponseFormat(Animal, "animal");
    const body = { messages: user, response_format, temperature: 0, max_tokens: 200 };
    const { choices } = await openai.chat.completions.parse(body);
    Animal.parse(choices[0].message.parsed);
    assert.equal(choices[0].finish_reason, "stop");
  });

  await t.test("chat.completions with stream", async () => {
    const response_format = { type: "json_schema", json_schema: { name: "animal", strict: true, schema } };
    const body = { messages: user, response_format, stream: true, temperature: 0, max_tokens: 200 };
    const { events, error } = await drain(await openai.chat.completions.create(body));
    assert.equal(error, null);
    Animal.parse(JSON.parse(checkChatStream(events)));
  });

  await t.test("a schema that can't be enforced is a 400 with its path", async () => {
    const bad = { type: "object", properties: { a: { type: "array", uniqueItems: true } } };
    await assert.rejects(
      openai.responses.create({ input: PROMPT, text: { format: { ...format, schema: bad } }, ...settings }),
      (error) => error.status === 400 && error.param === "text.format.schema.properties.a.uniqueItems",
    );
    const response_format = { type: "json_schema", json_schema: { name: "animal", strict: true, schema: bad } };
    await assert.rejects(
      openai.chat.completions.create({ messages: user, response_format, max_tokens: 200 }),
      (error) => error.status === 400 && error.param === "response_format.json_schema.schema.properties.a.uniqueItems",
    );
  });

  await t.test("without strict it is checked afterwards, and reported", { skip }, async () => {
    const loose = { type: "array", items: { enum: ["a"] }, minItems: 2, maxItems: 2, uniqueItems: true };
    const response = await openai.responses.create({
      input: PROMPT,
      text: { format: { ...format, strict: false, schema: loose } },
      fm: { schema_report: true },
      ...settings,
    });
    assert.equal(response.output_text, '["a","a"]');
    const report = response.fm.schema;
    assert.deepEqual(report.checked, ["uniqueItems"]);
    assert.ok(report.enforced.includes("minItems"));
    assert.equal(report.valid, false);
    assert.match(report.error, /uniqueItems/);
  });
}

async function othersSuite(t, client) {
  const [{ id }] = (await client.models.list()).data;
  await t.test("AI SDK: generateObject", async () => {
    const model = createOpenAI(connection(client))(id);
    const { object, finishReason } = await generateObject({ model, schema: Animal, prompt: PROMPT, maxOutputTokens: 200 });
    Animal.parse(object);
    assert.equal(finishReason, "stop");
  });

  await t.test("AI SDK: streamObject", async () => {
    const model = createOpenAI(connection(client))(id);
    const result = streamObject({ model, schema: Animal, prompt: PROMPT, maxOutputTokens: 200 });
    let partial;
    for await (partial of result.partialObjectStream);
    Animal.parse(partial);
    Animal.parse(await result.object);
  });

  await t.test("AI SDK: generateObject on chat completions", async () => {
    const model = createOpenAI(connection(client)).chat(id);
    const { object } = await generateObject({ model, schema: Animal, prompt: PROMPT, maxOutputTokens: 200 });
    Animal.parse(object);
  });

  for (const useResponsesApi of [false, true])
    await t.test(`LangChain: withStructuredOutput, ${useResponsesApi ? "responses" : "chat completions"}`, async () => {
      const { apiKey, baseURL, fetch } = connection(client);
      const llm = new ChatOpenAI({
        model: id,
        apiKey,
        useResponsesApi,
        temperature: 0,
        maxTokens: 200,
        maxRetries: 0,
        configuration: { baseURL, fetch },
      });
      Animal.parse(await llm.withStructuredOutput(Animal, { method: "jsonSchema", strict: true }).invoke(PROMPT));
    });
}

const engines = { "the fake engine": fakeClient, "the real model": modelClient };

for (const [name, make] of Object.entries(engines)) {
  const skip = (make === modelClient && noFormats()) || false;
  for (const major of [6, 7])
    test(`openai-${major} on ${name}`, { skip }, async (t) => {
      const { default: OpenAI } = await import(`openai-${major}`);
      const helpers = await import(`openai-${major}/helpers/zod`);
      await openaiSuite(t, OpenAI, helpers, make(t), make === modelClient);
    });
  test(`other clients on ${name}`, { skip }, async (t) => othersSuite(t, make(t)));
}
