// The tool helpers of the stock OpenAI SDKs: the arguments match the schema, the tool's result goes back, and another request
// gets the answer.
import assert from "node:assert/strict";
import { connection, noFormats } from "./support/helper.mjs";
import { CALL, checkRun, description, LIMIT, onEngines, QUESTION, recorder, Weather } from "./support/tasks.mjs";

async function openaiSuite(t, OpenAI, { zodFunction, zodResponsesFunction }, client, real) {
  const openai = new OpenAI({ ...connection(client), maxRetries: 0 });
  const content = real ? QUESTION : CALL;
  const named = { name: "weather", description, parameters: Weather };

  for (const way of ["parse", "stream"])
    await t.test(`POST /responses: tools (zodResponsesFunction, ${way})`, async () => {
      const { seen, run } = recorder();
      const input = [{ role: "user", content }];
      const body = { tools: [zodResponsesFunction(named)], max_output_tokens: LIMIT, temperature: 0 };
      const ask = (more) =>
        way === "parse"
          ? openai.responses.parse({ ...body, input, ...more })
          : openai.responses.stream({ ...body, input, ...more }).finalResponse();
      const { output } = await ask({ tool_choice: "required", parallel_tool_calls: false });
      assert.equal(output.length, 1);
      const [call] = output;
      const outputText = run(call.parsed_arguments ?? JSON.parse(call.arguments));
      input.push(...output, { type: "function_call_output", call_id: call.call_id, output: outputText });
      const answer = await ask({ tool_choice: "none" });
      checkRun(seen, answer.output_text, real);
    });

  for (const way of ["parse", "stream"])
    await t.test(`POST /chat/completions: tools (zodFunction, ${way})`, async () => {
      const { seen, run } = recorder();
      const messages = [{ role: "user", content }];
      const body = { tools: [zodFunction(named)], max_completion_tokens: LIMIT, temperature: 0 };
      const ask = async (way, more) => {
        const made = { ...body, messages, ...more };
        if (way === "create") return (await openai.chat.completions.create(made)).choices[0].message;
        if (way === "parse") return (await openai.chat.completions.parse(made)).choices[0].message;
        return (await openai.chat.completions.stream(made).finalChatCompletion()).choices[0].message;
      };
      const message = await ask(way, { tool_choice: "required", parallel_tool_calls: false });
      assert.equal(message.tool_calls.length, 1);
      const [{ id, function: called }] = message.tool_calls;
      messages.push(message, { role: "tool", tool_call_id: id, content: run(called.parsed_arguments) });
      // The helpers throw at the token limit, which the real model's answer may reach.
      const answer = await ask(real ? "create" : way, { tool_choice: "none" });
      checkRun(seen, answer.content, real);
    });
}

for (const major of [7, 6]) {
  const { default: OpenAI } = await import(`openai-${major}`);
  const helpers = await import(`openai-${major}/helpers/zod`);
  onEngines(`openai-${major}`, noFormats(), (t, client, real) => openaiSuite(t, OpenAI, helpers, client, real));
}
