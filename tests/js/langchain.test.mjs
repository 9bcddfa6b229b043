// LangChain, unmodified, over client.fetch.
import { tool as langChainTool } from "@langchain/core/tools";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import assert from "node:assert/strict";
import { connection, noEmbeddings, noFormats, noModel } from "./support/helper.mjs";
import { Animal, CALL, checkRun, description, LIMIT, onEngines } from "./support/tasks.mjs";
import { PROMPT, QUESTION, recorder, THINK, THOUGHT, Weather } from "./support/tasks.mjs";

onEngines("LangChain", noModel(), async (t, client, real) => {
  const [{ id: model }] = (await client.models.list()).data;
  const { apiKey, baseURL, fetch } = connection(client);
  const common = { model, apiKey, maxRetries: 0, configuration: { baseURL, fetch } };
  for (const useResponsesApi of [true, false])
    await chat(t, useResponsesApi ? "responses" : "chat/completions", real, (maxTokens) => {
      return new ChatOpenAI({ ...common, useResponsesApi, temperature: 0, maxTokens });
    });

  await t.test("POST /embeddings: embedDocuments", { skip: await noEmbeddings(client) }, async () => {
    const embeddings = new OpenAIEmbeddings(common);
    const [one, two] = await embeddings.embedDocuments(["a cat", "a dog"]);
    assert.equal(one.length, two.length);
    assert.equal((await embeddings.embedQuery("a cat")).length, one.length);
  });
});

async function chat(t, api, real, make) {
  await t.test(`POST /${api}: invoke`, async () => {
    const { text, usage_metadata: usage } = await make(12).invoke(QUESTION);
    assert.notEqual(text.trim(), "");
    assert.equal(usage.total_tokens, usage.input_tokens + usage.output_tokens);
    if (!real) assert.equal(text, QUESTION);
  });

  await t.test(`POST /${api}: stream`, async () => {
    let text = "";
    for await (const chunk of await make(12).stream(QUESTION)) text += chunk.text;
    assert.equal(text, (await make(12).invoke(QUESTION)).text);
  });

  await t.test(`POST /${api}: batch`, async () => {
    const questions = ["one", "two", "three"];
    const answers = await make(6).batch(questions);
    assert.equal(answers.length, questions.length);
    for (const [index, { text }] of answers.entries()) {
      assert.notEqual(text.trim(), "");
      if (!real) assert.equal(text, questions[index]);
    }
  });

  await t.test(`POST /${api}: reasoning`, { skip: real && "the model does not think" }, async () => {
    const thoughtOf = ({ contentBlocks, additional_kwargs: more }) =>
      more.reasoning_content ?? contentBlocks.find(({ type }) => type === "reasoning")?.reasoning;
    let chunks;
    for await (const chunk of await make(12).stream(THINK)) chunks = chunks?.concat(chunk) ?? chunk;
    for (const answer of [await make(12).invoke(THINK), chunks])
      assert.deepEqual([thoughtOf(answer), answer.text], [THOUGHT, "Yes."]);
  });

  const skip = (real && noFormats()) || false;
  await t.test(`POST /${api}: withStructuredOutput`, { skip }, async () => {
    const llm = make(200).withStructuredOutput(Animal, { method: "jsonSchema", strict: true });
    Animal.parse(await llm.invoke(PROMPT));
  });

  await t.test(`POST /${api}: bindTools`, { skip }, async () => {
    const { seen, run } = recorder();
    const weather = langChainTool(run, { name: "weather", description, schema: Weather });
    const llm = make(LIMIT);
    const messages = [{ role: "user", content: real ? QUESTION : CALL }];
    const options = { strict: true, parallel_tool_calls: false };
    const called = await llm.bindTools([weather], { ...options, tool_choice: "weather" }).invoke(messages);
    assert.equal(called.tool_calls.length, 1);
    messages.push(called, await weather.invoke(called.tool_calls[0]));
    const answer = await llm.bindTools([weather], { ...options, tool_choice: "none" }).invoke(messages);
    checkRun(seen, answer.text, real);
  });
}
