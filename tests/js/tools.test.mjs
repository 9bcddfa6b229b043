// Tools with the stock OpenAI SDKs, unmodified, on the fake engine: a call, its result, and the answer to the result.
import assert from "node:assert/strict";
import { test } from "node:test";
import { checkChatCalls, checkChatStream, checkResponse, checkResponseStream } from "./support/invariants.mjs";
import { drain, fakeClient, modelClient, noFormats, script } from "./support/helper.mjs";

const parameters = {
  $schema: "http://json-schema.org/draft-07/schema#",
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};
const weather = { name: "weather", description: "How it is outside", parameters, strict: true };
const TOOLS = [
  { type: "function", ...weather },
  { type: "function", name: "time", parameters: null, strict: false },
];
const CHAT_TOOLS = [
  { type: "function", function: weather },
  { type: "function", function: { name: "time" } },
];
const ARGUMENTS = '{"city": "Bad Ischl"}';
const call = (name, text) => ({ tool_call: { name, arguments: text } });
const CALLS = script(call("time", "{}"), call("weather", ARGUMENTS));

for (const name of ["openai-7", "openai-6"]) {
  const { default: OpenAI } = await import(name);
  const start = (t) => {
    const client = fakeClient(t);
    return new OpenAI({ apiKey: "local", baseURL: "http://fm-proxy/v1", fetch: client.fetch, maxRetries: 0 });
  };

  test(`${name}: a round trip of responses`, async (t) => {
    const openai = start(t);
    for (const way of ["create", "stream", "stream helper"]) {
      await t.test(way, async () => {
        const input = [{ role: "user", content: script("Let me see.", call("time", "{}"), call("weather", ARGUMENTS)) }];
        const ask = async () => {
          if (way === "create") return openai.responses.create({ input, tools: TOOLS });
          if (way === "stream helper") return openai.responses.stream({ input, tools: TOOLS }).finalResponse();
          const { events, error } = await drain(await openai.responses.create({ input, tools: TOOLS, stream: true }));
          assert.equal(error, null);
          return checkResponseStream(events);
        };
        const response = await ask();
        checkResponse(response);
        assert.equal(response.output[0].content[0].text, "Let me see.");
        const calls = response.output.filter(({ type }) => type === "function_call");
        assert.deepEqual(
          calls.map((item) => [item.name, item.arguments, item.status]),
          [
            ["time", "{}", "completed"],
            ["weather", ARGUMENTS, "completed"],
          ],
        );
        for (const { type, id, status, call_id, name, arguments: text } of calls)
          input.push({ type, id, status, call_id, name, arguments: text });
        for (const { call_id, name } of calls)
          input.push({ type: "function_call_output", call_id, output: [{ type: "input_text", text: `${name}: fine` }] });
        const answer = await ask();
        assert.equal(answer.output.length, 1);
        assert.equal(answer.output[0].content[0].text, "weather: fine");
      });
    }
  });

  test(`${name}: the output goes back as it is`, async (t) => {
    const openai = start(t);
    const input = [{ role: "user", content: CALLS }];
    const { output } = await openai.responses.create({ input, tools: TOOLS });
    input.push(...output);
    for (const { call_id } of output) input.push({ type: "function_call_output", call_id, output: "fine" });
    assert.equal((await openai.responses.create({ input, tools: TOOLS })).output_text, "fine");
  });

  test(`${name}: a round trip of chat completions`, async (t) => {
    const openai = start(t);
    for (const way of ["create", "stream", "stream helper"]) {
      await t.test(way, async () => {
        const messages = [{ role: "user", content: CALLS }];
        const ask = async () => {
          const body = { messages, tools: CHAT_TOOLS };
          if (way === "create") return (await openai.chat.completions.create(body)).choices[0];
          if (way === "stream helper")
            return (await openai.chat.completions.stream(body).finalChatCompletion()).choices[0];
          const { events, error } = await drain(await openai.chat.completions.create({ ...body, stream: true }));
          assert.equal(error, null);
          const content = checkChatStream(events) || null;
          const message = { role: "assistant", content, tool_calls: checkChatCalls(events) };
          return { message, finish_reason: events.at(-1).choices[0].finish_reason };
        };
        const { message, finish_reason } = await ask();
        assert.equal(finish_reason, "tool_calls");
        assert.equal(message.content, null);
        assert.deepEqual(
          message.tool_calls.map(({ function: { name, arguments: text } }) => [name, text]),
          [
            ["time", "{}"],
            ["weather", ARGUMENTS],
          ],
        );
        const tool_calls = message.tool_calls.map(({ id, type, function: { name, arguments: text } }) => ({
          id,
          type,
          function: { name, arguments: text },
        }));
        messages.push({ role: "assistant", content: null, tool_calls });
        for (const { id } of tool_calls) messages.push({ role: "tool", tool_call_id: id, content: "fine" });
        const answer = await ask();
        assert.equal(answer.finish_reason, "stop");
        assert.equal(answer.message.content, "fine");
      });
    }
  });

  test(`${name}: runTools runs the function and answers with its result`, async (t) => {
    const openai = start(t);
    const asked = [];
    const runner = openai.chat.completions.runTools({
      messages: [{ role: "user", content: script(call("weather", ARGUMENTS)) }],
      tools: [
        {
          type: "function",
          function: {
            ...weather,
            parse: JSON.parse,
            function: ({ city }) => {
              asked.push(city);
              return `dry in ${city}`;
            },
          },
        },
      ],
    });
    assert.equal(await runner.finalContent(), "dry in Bad Ischl");
    assert.deepEqual(asked, ["Bad Ischl"]);
  });

  test(`${name}: a choice`, async (t) => {
    const openai = start(t);
    const named = { type: "function", name: "time" };
    for (const [tool_choice, names] of [
      ["none", []],
      ["required", ["weather"]],
      [named, ["time"]],
      [{ type: "allowed_tools", mode: "required", tools: [named] }, ["time"]],
    ]) {
      const response = await openai.responses.create({ input: "hi", tools: TOOLS, tool_choice });
      checkResponse(response);
      assert.deepEqual(response.tool_choice, tool_choice);
      assert.deepEqual(response.tools, [TOOLS[0], { ...TOOLS[1], description: null }]);
      assert.deepEqual(
        response.output.flatMap((item) => item.name ?? []),
        names,
      );
    }
  });

  test(`${name}: what is refused`, async (t) => {
    const openai = start(t);
    const orphan = { type: "function_call_output", call_id: "call_x", output: "x" };
    for (const [body, param, code] of [
      [{ input: "x", tools: [{ type: "web_search" }] }, "tools[0].type", "unsupported_value"],
      [{ input: "x", tools: TOOLS, tool_choice: { type: "function", name: "no" } }, "tool_choice.name", "invalid_value"],
      [{ input: [orphan] }, "input", null],
    ]) {
      await assert.rejects(openai.responses.create(body), (error) => {
        assert.ok(error instanceof OpenAI.BadRequestError, String(error));
        assert.deepEqual([error.param, error.code], [param, code]);
        return true;
      });
    }
  });
}

// The real model calls if it must, and its arguments match the schema.
const OUTSIDE = {
  ...weather,
  parameters: {
    type: "object",
    properties: { city: { type: "string", maxLength: 20 }, days: { type: "integer", minimum: 1, maximum: 7 } },
    required: ["city", "days"],
    additionalProperties: false,
  },
};
const QUESTION = "What will the weather be like in Linz?";

function checkOutside({ name, arguments: text }) {
  assert.equal(name, "weather");
  const { city, days, ...rest } = JSON.parse(text);
  assert.ok(typeof city === "string" && [...city].length <= 20);
  assert.ok(Number.isInteger(days) && days >= 1 && days <= 7);
  assert.deepEqual(rest, {});
}

async function responsesOnModel(openai, way) {
  const body = { input: QUESTION, tools: [{ type: "function", ...OUTSIDE }], tool_choice: "required" };
  const settings = { parallel_tool_calls: false, temperature: 0, max_output_tokens: 100 };
  if (way === "create") return openai.responses.create({ ...body, ...settings });
  const { events, error } = await drain(await openai.responses.create({ ...body, ...settings, stream: true }));
  assert.equal(error, null);
  const pieces = events.filter(({ type }) => type === "response.function_call_arguments.delta");
  assert.ok(pieces.length > 0);
  return checkResponseStream(events);
}

async function chatOnModel(openai, way, messages, more = {}) {
  const body = { messages, tools: [{ type: "function", function: OUTSIDE }], ...more };
  const settings = { parallel_tool_calls: false, temperature: 0, max_completion_tokens: 100 };
  if (way === "create") return (await openai.chat.completions.create({ ...body, ...settings })).choices[0];
  const { events, error } = await drain(
    await openai.chat.completions.create({ ...body, ...settings, stream: true }),
  );
  assert.equal(error, null);
  const content = checkChatStream(events) || null;
  const message = { role: "assistant", content, tool_calls: checkChatCalls(events) };
  return { message, finish_reason: events.at(-1).choices[0].finish_reason };
}

for (const name of ["openai-7", "openai-6"])
  test(`${name}: a call of the real model`, { skip: noFormats() || false }, async (t) => {
    const { default: OpenAI } = await import(name);
    const { fetch } = modelClient(t);
    const openai = new OpenAI({ apiKey: "local", baseURL: "http://fm-proxy/v1", fetch, maxRetries: 0 });
    for (const way of ["create", "stream"]) {
      await t.test(`responses, ${way}`, async () => {
        const response = await responsesOnModel(openai, way);
        checkResponse(response);
        assert.equal(response.status, "completed");
        assert.equal(response.output.length, 1);
        checkOutside(response.output[0]);
      });

      await t.test(`chat completions, ${way}, and back`, async () => {
        const messages = [{ role: "user", content: QUESTION }];
        const { message, finish_reason } = await chatOnModel(openai, way, messages, { tool_choice: "required" });
        assert.equal(finish_reason, "tool_calls");
        assert.equal(message.tool_calls.length, 1);
        checkOutside(message.tool_calls[0].function);
        const [{ id }] = message.tool_calls;
        messages.push(message, { role: "tool", tool_call_id: id, content: "Rain, 12 degrees." });
        const answer = await chatOnModel(openai, way, messages, { tool_choice: "none" });
        assert.notEqual(answer.finish_reason, "tool_calls");
        assert.ok(answer.message.content);
      });
    }

    await t.test("a schema that can't be enforced", async () => {
      const tool = { ...OUTSIDE, parameters: { ...OUTSIDE.parameters, not: { required: ["x"] } } };
      const tools = [{ type: "function", function: tool }];
      const messages = [{ role: "user", content: QUESTION }];
      await assert.rejects(openai.chat.completions.create({ messages, tools }), (error) => {
        assert.equal(error.status, 400);
        assert.equal(error.param, "tools[0].function.parameters.not");
        return true;
      });
    });
  });
