// Structured output with the stock OpenAI SDKs: the answer always has the requested shape.
import assert from "node:assert/strict";
import { z } from "zod";
import { checkChatStream, checkResponse, checkResponseStream } from "./support/invariants.mjs";
import { connection, deltas, drain, noFormats } from "./support/helper.mjs";
import { Animal, onEngines, PROMPT } from "./support/tasks.mjs";

const schema = z.toJSONSchema(Animal);
const format = { type: "json_schema", name: "animal", strict: true, schema };
const settings = { temperature: 0, max_output_tokens: 200 };
const short = { ...settings, max_output_tokens: 40 };
const user = [{ role: "user", content: PROMPT }];

async function openaiSuite(t, OpenAI, { zodTextFormat, zodResponseFormat }, client, real) {
  const openai = new OpenAI({ ...connection(client), maxRetries: 0 });

  await t.test("POST /responses: parse (zodTextFormat)", async () => {
    const text = { format: zodTextFormat(Animal, "animal") };
    const response = await openai.responses.parse({ input: PROMPT, text, ...settings });
    Animal.parse(response.output_parsed);
    assert.equal(response.text.format.type, "json_schema");
  });

  await t.test("POST /responses: structured stream", async () => {
    const text = { format };
    const { events, error } = await drain(
      await openai.responses.create({ input: PROMPT, text, stream: true, ...settings }),
    );
    assert.equal(error, null);
    const final = checkResponseStream(events);
    assert.equal(final.status, "completed");
    Animal.parse(JSON.parse(deltas(events)));
  });

  // The fake engine's answer is one token, and it does not check the result.
  const skip = !real && "the fake engine has nothing of it";
  await t.test("POST /responses: structured, cut at the token limit", { skip }, async () => {
    const response = await openai.responses.create({
      input: PROMPT,
      text: { format },
      temperature: 0,
      max_output_tokens: 5,
    });
    checkResponse(response);
    assert.equal(response.status, "incomplete");
    assert.equal(response.incomplete_details.reason, "max_output_tokens");
    assert.throws(() => JSON.parse(response.output_text));
  });

  await t.test("POST /responses: json_object", async () => {
    const response = await openai.responses.create({
      input: PROMPT,
      text: { format: { type: "json_object" } },
      ...short,
    });
    if (response.status === "completed") assert.equal(typeof JSON.parse(response.output_text), "object");
    else assert.equal(response.status, "incomplete");
    assert.equal(response.output_text[0], "{");
    const response_format = { type: "json_object" };
    const cut = await openai.responses.create({ input: PROMPT, response_format, stop: ["}"], ...short });
    checkResponse(cut);
    assert.deepEqual(cut.text.format, response_format);
    assert.ok(cut.output_text.startsWith("{") && !cut.output_text.includes("}"), cut.output_text);
  });

  await t.test("POST /chat/completions: parse (zodResponseFormat)", async () => {
    const response_format = zodResponseFormat(Animal, "animal");
    const body = { messages: user, response_format, temperature: 0, max_tokens: 200 };
    const { choices } = await openai.chat.completions.parse(body);
    Animal.parse(choices[0].message.parsed);
    assert.equal(choices[0].finish_reason, "stop");
  });

  await t.test("POST /chat/completions: structured stream", async () => {
    const response_format = { type: "json_schema", json_schema: { name: "animal", strict: true, schema } };
    const body = { messages: user, response_format, stream: true, temperature: 0, max_tokens: 200 };
    const { events, error } = await drain(await openai.chat.completions.create(body));
    assert.equal(error, null);
    Animal.parse(JSON.parse(checkChatStream(events)));
  });

  await t.test("errors: a schema that can't be enforced", async () => {
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
    await assert.rejects(
      openai.responses.create({ input: PROMPT, response_format, ...settings }),
      (error) => error.status === 400 && error.param === "response_format.json_schema.schema.properties.a.uniqueItems",
    );
    await assert.rejects(
      openai.responses.create({ input: PROMPT, response_format, text: { format }, ...settings }),
      (error) => error.status === 400 && error.param === "response_format",
    );
  });

  await t.test("POST /responses: schema report", { skip }, async () => {
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

for (const major of [7, 6]) {
  const { default: OpenAI } = await import(`openai-${major}`);
  const helpers = await import(`openai-${major}/helpers/zod`);
  onEngines(`openai-${major}`, noFormats(), (t, client, real) => openaiSuite(t, OpenAI, helpers, client, real));
}
