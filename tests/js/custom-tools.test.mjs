// Custom tools: calls with a text in place of arguments, with the stock clients.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs } from "ai";
import { createFmProxy } from "../../js-shim/dist/esm/ai.js";
import { connection, drain, fakeClient, modelClient, noFormats, noModel, script } from "./support/helper.mjs";
import { checkChatChoices, checkResponseStream } from "./support/invariants.mjs";

const TEXT = 'ls "a b"\n\tcd é 😀';
const call = script({ tool_call: { name: "shell", arguments: JSON.stringify({ input: TEXT }) } });
const shell = { type: "custom", name: "shell", description: "Runs commands." };
const chatShell = { type: "custom", custom: { name: "shell", description: "Runs commands." } };

for (const name of ["openai-7", "openai-6"]) {
  const { default: OpenAI } = await import(name);

  test(`${name}: calls of custom tools, whole and streamed, in both APIs`, async (t) => {
    const openai = new OpenAI({ ...connection(fakeClient(t)), maxRetries: 0 });

    await t.test("POST /responses", async () => {
      const body = { input: call, tools: [shell] };
      const { output, tools } = await openai.responses.create(body);
      assert.deepEqual([output[0].type, output[0].name, output[0].input], ["custom_tool_call", "shell", TEXT]);
      assert.deepEqual(tools, [{ ...shell, format: { type: "text" } }]);
      const { events } = await drain(await openai.responses.create({ ...body, stream: true }));
      assert.equal(checkResponseStream(events).output[0].input, TEXT);
      assert.ok(events.some(({ type }) => type === "response.custom_tool_call_input.delta"));
      const { call_id } = output[0];
      const result = { type: "custom_tool_call_output", call_id, output: "fine" };
      const next = await openai.responses.create({ input: [{ role: "user", content: "x" }, ...output, result], tools: [shell] });
      assert.equal(next.status, "completed");
    });

    await t.test("a stored response goes on, and its stream is read again", async () => {
      const response = await openai.responses.create({ input: call, tools: [shell] });
      const { events } = await drain(await openai.responses.retrieve(response.id, { stream: true }));
      assert.deepEqual(checkResponseStream(events).output, response.output);
      const output = { type: "custom_tool_call_output", call_id: response.output[0].call_id, output: "fine" };
      const next = await openai.responses.create({ input: [output], previous_response_id: response.id, tools: [shell] });
      assert.equal(next.status, "completed");
      const { data } = await openai.responses.inputItems.list(next.id);
      assert.equal(data[0].type, "custom_tool_call_output");
    });

    await t.test("POST /chat/completions", async () => {
      const body = { model: "default", messages: [{ role: "user", content: call }], tools: [chatShell] };
      const { choices } = await openai.chat.completions.create(body);
      const [made] = choices[0].message.tool_calls;
      assert.deepEqual([made.type, made.custom], ["custom", { name: "shell", input: TEXT }]);
      const { events } = await drain(await openai.chat.completions.create({ ...body, stream: true }));
      assert.deepEqual(checkChatChoices(events)[0].calls[0].custom, made.custom);
      const tool = { role: "tool", tool_call_id: made.id, content: "fine" };
      const next = await openai.chat.completions.create({ ...body, messages: [...body.messages, choices[0].message, tool] });
      assert.equal(next.choices[0].finish_reason, "stop");
    });

    await t.test("what is refused", async () => {
      const refused = async (tool, param) => {
        const error = await openai.responses.create({ input: "x", tools: [tool] }).catch((reason) => reason);
        assert.deepEqual([error.status, error.param], [400, param]);
      };
      const lark = { type: "grammar", syntax: "lark", definition: "start: /a/" };
      await refused({ ...shell, format: lark }, "tools[0].format.syntax");
      await refused({ ...shell, format: { type: "grammar", syntax: "regex" } }, "tools[0].format.definition");
      await refused({ type: "local_shell" }, "tools[0].type");
    });
  });
}

test("the AI SDK calls a custom tool, and hands its output back", async (t) => {
  const client = fakeClient(t);
  const { tools } = createOpenAI({ apiKey: "local" });
  const seen = [];
  const execute = (input) => {
    seen.push(input);
    return "fine";
  };
  const { steps } = await generateText({
    model: createFmProxy(client, createOpenAI)("default"),
    prompt: call,
    tools: { shell: { ...tools.customTool({ description: "Runs commands.", name: "shell" }), execute } },
    stopWhen: stepCountIs(2),
  });
  assert.deepEqual(seen, [TEXT]);
  assert.equal(steps.length, 2);
});

test("the package puts the chunks of a call together", async (t) => {
  const stream = fakeClient(t).chat.completions.create({
    messages: [{ role: "user", content: script({ tool_call: { name: "shell", arguments: '{"input":"a"}' } }, { hang: "soft" }) }],
    tools: [chatShell],
    stream: true,
    fm: { no_progress_timeout_ms: 300 },
  });
  const { error } = await drain(stream);
  assert.equal(error.code, "TIMEOUT");
  assert.deepEqual(error.completion.choices[0].message.tool_calls[0].custom, { name: "shell", input: "a" });
});

test("a regular expression holds for the whole text", { skip: noModel() ?? noFormats() ?? false }, async (t) => {
  const client = modelClient(t);
  const grammar = (definition) => ({ type: "grammar", syntax: "regex", definition });
  for (const [definition, whole] of [
    ["[A-Z]{3}-[0-9]{4}", /^[A-Z]{3}-[0-9]{4}$/],
    ["(?:left|right)(?: [1-9])?", /^(?:left|right)(?: [1-9])?$/],
    ['"[a-f]{1,8}"\\n', /^"[a-f]{1,8}"\n$/],
    ['[^"]{3,12}', /^[^"]{3,12}$/],
  ]) {
    for (const seed of [1, 2, 3]) {
      const body = { input: "Call the tool.", seed, temperature: 1, max_output_tokens: 128 };
      const tools = [{ ...shell, format: grammar(definition) }];
      const { output } = await client.responses.create({ ...body, tools, tool_choice: { type: "custom", name: "shell" } });
      assert.match(output.find(({ type }) => type === "custom_tool_call").input, whole);
    }
  }
  const reasonOf = (answer) => answer.catch((reason) => reason);
  const bad = await reasonOf(client.responses.create({ input: "x", tools: [{ ...shell, format: grammar("(") }] }));
  assert.deepEqual([bad.code, bad.openai.param], ["INVALID_REQUEST", "tools[0].format.definition"]);
  const format = { type: "grammar", grammar: { syntax: "regex", definition: "(" } };
  const tools = [{ type: "custom", custom: { name: "shell", format } }];
  const worse = await reasonOf(client.chat.completions.create({ messages: [{ role: "user", content: "x" }], tools }));
  assert.equal(worse.openai.param, "tools[0].custom.format.grammar.definition");
});
