// Function tools with the clients people use, unmodified, over client.fetch: the tool runs with arguments of its schema,
// what came of it goes back, and another step answers. The fake engine answers with what the tool said; the real model
// calls because it has to, and says what it likes.
import { ChatOpenAI } from "@langchain/openai";
import { createOpenAI } from "@ai-sdk/openai";
import { tool as langChainTool } from "@langchain/core/tools";
import { generateText, isStepCount, streamText, tool } from "ai";
import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { connection, fakeClient, modelClient, noFormats, script } from "./support/helper.mjs";

const ARGUMENTS = { city: "Linz", days: 2 };
const Weather = z.object({ city: z.string().max(12), days: z.number().int().min(1).max(7) });
const description = "How the weather will be";
const outcome = ({ city, days }) => `dry in ${city} for ${days} days`;
const QUESTION = "What will the weather be like in Linz?";
const CALL = script({ tool_call: { name: "weather", arguments: JSON.stringify(ARGUMENTS) } });
const LIMIT = 80; // tokens: the default model does not come to an end by itself

/** A function to give to a client, and what it was called with. */
function recorder() {
  const seen = [];
  const run = (input) => {
    seen.push(Weather.parse(input));
    return outcome(input);
  };
  return { seen, run };
}

function checkRun(seen, text, real) {
  assert.equal(seen.length, 1);
  assert.equal(typeof text, "string");
  if (real) return;
  assert.deepEqual(seen, [ARGUMENTS]);
  assert.equal(text, outcome(ARGUMENTS));
}

async function openaiSuite(t, OpenAI, { zodFunction, zodResponsesFunction }, client, real) {
  const openai = new OpenAI({ ...connection(client), maxRetries: 0 });
  const content = real ? QUESTION : CALL;
  const named = { name: "weather", description, parameters: Weather };

  for (const way of ["parse", "stream"])
    await t.test(`zodResponsesFunction with responses.${way}, and back`, async () => {
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
    await t.test(`zodFunction with chat.completions.${way}, and back`, async () => {
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
      // The helpers throw at the token limit, which the real model's answer may meet.
      const answer = await ask(real ? "create" : way, { tool_choice: "none" });
      checkRun(seen, answer.content, real);
    });
}

// A model that has to call in each step never answers, so with the real one the first step alone has to.
async function aiSdkSuite(t, client, real) {
  const [{ id }] = (await client.models.list()).data;
  const openai = createOpenAI(connection(client));
  for (const [api, model] of [
    ["responses", openai.responses(id)],
    ["chat completions", openai.chat(id)],
  ]) {
    const setUp = () => {
      const { seen, run } = recorder();
      const tools = { weather: tool({ description, inputSchema: Weather, execute: run }) };
      const prepareStep = ({ stepNumber }) => ({ toolChoice: real && stepNumber === 0 ? "required" : real ? "none" : "auto" });
      const providerOptions = { openai: { parallelToolCalls: false, store: false } };
      const prompt = real ? QUESTION : CALL;
      return [seen, { model, tools, prompt, prepareStep, providerOptions, stopWhen: isStepCount(3), maxOutputTokens: LIMIT }];
    };

    await t.test(`generateText with several steps, ${api}`, async () => {
      const [seen, body] = setUp();
      const { text, steps } = await generateText(body);
      assert.equal(steps.length, 2);
      assert.equal(steps[0].finishReason, "tool-calls");
      checkRun(seen, text, real);
    });

    await t.test(`streamText with several steps, ${api}`, async () => {
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

async function langChainSuite(t, client, real) {
  const [{ id }] = (await client.models.list()).data;
  const { apiKey, baseURL, fetch } = connection(client);
  for (const useResponsesApi of [false, true])
    await t.test(`bindTools, ${useResponsesApi ? "responses" : "chat completions"}`, async () => {
      const { seen, run } = recorder();
      const weather = langChainTool(run, { name: "weather", description, schema: Weather });
      const llm = new ChatOpenAI({
        model: id,
        apiKey,
        useResponsesApi,
        temperature: 0,
        maxTokens: LIMIT,
        maxRetries: 0,
        configuration: { baseURL, fetch },
      });
      const messages = [{ role: "user", content: real ? QUESTION : CALL }];
      const options = { strict: true, parallel_tool_calls: false };
      const called = await llm.bindTools([weather], { ...options, tool_choice: "weather" }).invoke(messages);
      assert.equal(called.tool_calls.length, 1);
      messages.push(called, await weather.invoke(called.tool_calls[0]));
      const answer = await llm.bindTools([weather], { ...options, tool_choice: "none" }).invoke(messages);
      checkRun(seen, answer.text, real);
    });
}

async function agentsSuite(t, client, real) {
  const agents = await import("@openai/agents");
  const { default: OpenAI } = await import("openai-7");
  const [{ id }] = (await client.models.list()).data;
  agents.setTracingDisabled(true);
  const openai = new OpenAI({ ...connection(client), maxRetries: 0 });
  for (const [api, Model] of [
    ["responses", agents.OpenAIResponsesModel],
    ["chat completions", agents.OpenAIChatCompletionsModel],
  ])
    for (const stream of [false, true])
      await t.test(`a function tool, ${api}${stream ? ", streamed" : ""}`, async () => {
        const { seen, run } = recorder();
        const weather = agents.tool({ name: "weather", description, parameters: Weather, execute: run });
        const agent = new agents.Agent({
          name: "Forecaster",
          model: new Model(openai, id),
          tools: [weather],
          // The real model may go on to call, or talk beyond the limit, which is an error here.
          toolUseBehavior: real ? "stop_on_first_tool" : "run_llm_again",
          modelSettings: { toolChoice: real ? "required" : "auto", parallelToolCalls: false, temperature: 0, maxTokens: LIMIT },
        });
        const result = await agents.run(agent, real ? QUESTION : CALL, { stream, maxTurns: 4 });
        if (stream) {
          for await (const _ of result);
          await result.completed;
        }
        checkRun(seen, result.finalOutput, real);
        assert.equal(result.finalOutput, outcome(seen[0]));
      });
}

const engines = { "the fake engine": fakeClient, "the real model": modelClient };

for (const [name, make] of Object.entries(engines)) {
  const real = make === modelClient;
  const skip = (real && noFormats()) || false;
  for (const major of [6, 7])
    test(`openai-${major} on ${name}`, { skip }, async (t) => {
      const { default: OpenAI } = await import(`openai-${major}`);
      await openaiSuite(t, OpenAI, await import(`openai-${major}/helpers/zod`), make(t), real);
    });
  test(`AI SDK on ${name}`, { skip }, async (t) => aiSdkSuite(t, make(t), real));
  test(`LangChain on ${name}`, { skip }, async (t) => langChainSuite(t, make(t), real));
  test(`Agents SDK on ${name}`, { skip }, async (t) => agentsSuite(t, make(t), real));
}
