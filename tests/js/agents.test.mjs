// The OpenAI Agents SDK, unmodified, over client.fetch.
import * as agents from "@openai/agents";
import assert from "node:assert/strict";
import OpenAI from "openai-7";
import { connection, noFormats } from "./support/helper.mjs";
import { CALL, checkRun, description, LIMIT, onEngines, outcome } from "./support/tasks.mjs";
import { QUESTION, recorder, THINK, THOUGHT, Weather } from "./support/tasks.mjs";

onEngines("Agents SDK", noFormats(), async (t, client, real) => {
  const [{ id }] = (await client.models.list()).data;
  agents.setTracingDisabled(true);
  const openai = new OpenAI({ ...connection(client), maxRetries: 0 });
  for (const [api, Model] of [
    ["responses", agents.OpenAIResponsesModel],
    ["chat/completions", agents.OpenAIChatCompletionsModel],
  ])
    for (const stream of [false, true])
      await t.test(`POST /${api}: a function tool${stream ? ", streamed" : ""}`, async () => {
        const { seen, run } = recorder();
        const weather = agents.tool({ name: "weather", description, parameters: Weather, execute: run });
        const agent = new agents.Agent({
          name: "Forecaster",
          model: new Model(openai, id),
          tools: [weather],
          // The real model might make more calls, or exceed the token limit, which is an error here.
          toolUseBehavior: real ? "stop_on_first_tool" : "run_llm_again",
          modelSettings: {
            toolChoice: real ? "required" : "auto",
            parallelToolCalls: false,
            temperature: 0,
            maxTokens: LIMIT,
          },
        });
        const result = await agents.run(agent, real ? QUESTION : CALL, { stream, maxTurns: 4 });
        if (stream) {
          for await (const _ of result);
          await result.completed;
        }
        checkRun(seen, result.finalOutput, real);
        assert.equal(result.finalOutput, outcome(seen[0]));
      });

  await t.test("POST /responses: reasoning", { skip: real && "the model does not think" }, async () => {
    const agent = new agents.Agent({ name: "Thinker", model: new agents.OpenAIResponsesModel(openai, id) });
    const { finalOutput, newItems } = await agents.run(agent, THINK);
    assert.equal(finalOutput, "Yes.");
    const [{ rawItem }] = newItems.filter(({ type }) => type === "reasoning_item");
    assert.deepEqual(
      rawItem.content.map(({ text }) => text),
      [THOUGHT],
    );
  });
});
