// The AI SDK's MCP client, unmodified, in both eras of the protocol, with the SDK's own model for tests.
import { createMCPClient } from "@ai-sdk/mcp";
import { StdioMCPTransport } from "@ai-sdk/mcp/mcp-stdio";
import { generateText, isStepCount } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import assert from "node:assert/strict";
import test from "node:test";
import { z } from "zod";
import { say } from "./script.mjs";
import { fakeDesktop, program } from "./support.mjs";

const usage = { inputTokens: { total: 0 }, outputTokens: { total: 0 } };
const answer = (why, item) => ({ content: [item], finishReason: { unified: why }, usage, warnings: [] });

// Each step is [tool, parameters], or a function that makes it from the last result.
function scripted(steps) {
  const results = [];
  const left = [...steps];
  const model = new MockLanguageModelV4({
    doGenerate: async ({ prompt, tools }) => {
      const last = prompt.at(-1);
      if (last.role === "tool") results.push(last.content[0].output);
      const step = left.shift();
      if (step === undefined) return answer("stop", { type: "text", text: "done" });
      const [name, wanted] = typeof step === "function" ? step(results.at(-1)) : step;
      const { inputSchema } = tools.find((tool) => tool.name === name);
      const input = JSON.stringify(say(inputSchema, wanted));
      return answer("tool-calls", { type: "tool-call", toolCallId: `call ${left.length}`, toolName: name, input });
    },
  });
  return { model, results };
}

async function connect(t, options = {}) {
  const desktop = fakeDesktop(t);
  const errors = [];
  const client = await createMCPClient({
    transport: new StdioMCPTransport({ command: program, args: desktop.args }),
    onUncaughtError: (error) => errors.push(error),
    ...options,
  });
  t.after(() => client.close());
  return { client, errors, ...desktop };
}

const read = ({ type, value }) => {
  assert.equal(type, "content");
  return JSON.parse(value[0].text);
};

for (const [era, options, version] of [
  ["2026-07-28", {}, "2026-07-28"],
  ["initialize", { protocolVersionDiscovery: false }, "2025-11-25"],
])
  test(`AI SDK, ${era}: generateText`, async (t) => {
    const it = await connect(t, options);
    assert.equal(it.client.initializeResult.protocolVersion, version);
    assert.equal(it.client.serverInfo.name, "fm-system");
    const { model, results } = scripted([
      ["list_tabs", {}],
      (tabs) => ["close_tab", { tab_indices: [1, 3], snapshot: read(tabs).snapshot }],
      ["open_url", { url: "file:///etc/passwd" }],
      ["place_app", { app_name: "XTerm", monitor: "main" }],
    ]);
    const tools = await it.client.tools();
    const { text } = await generateText({ model, tools, prompt: "close all reddit tabs", stopWhen: isStepCount(9) });
    assert.equal(text, "done");
    const [tabs, closed, refused, placed] = results.map(read);
    assert.equal(tabs.tabs.length, 3);
    assert.deepEqual(closed.closed, [1, 3]);
    assert.equal(refused.error.code, "scheme_not_allowed");
    assert.equal(placed.ok, true);
    assert.deepEqual(it.actions().slice(0, 2), ["tab.close t3", "tab.close t1"]);
    assert.deepEqual(it.errors, []);
  });

// The application gives schemas in place of the server's: for parameters, and for results.
test("AI SDK: schemas both ways", async (t) => {
  const it = await connect(t);
  const tab = z.object({ index: z.number(), title: z.string(), content_summary: z.string().nullable(), is_active: z.boolean() });
  const tools = await it.client.tools({
    schemas: {
      list_tabs: { inputSchema: z.object({}), outputSchema: z.object({ snapshot: z.string(), tabs: z.array(tab) }) },
      focus_app: { inputSchema: z.object({ app_name: z.string() }), outputSchema: z.object({ launched: z.boolean() }) },
      list_apps: { inputSchema: z.object({}), outputSchema: z.object({ nothing: z.string() }) },
    },
  });
  assert.deepEqual(Object.keys(tools).sort(), ["focus_app", "list_apps", "list_tabs"]);
  const call = (name, args) => tools[name].execute(args, { toolCallId: "1", messages: [] });
  const listed = await call("list_tabs", {});
  assert.deepEqual(listed.tabs.map(({ title }) => title), ["Reddit", "GitHub", "r/c"]);
  assert.deepEqual(await call("focus_app", { app_name: "XTerm" }), { launched: false });
  const refused = await call("focus_app", { app_name: "nobody" });
  assert.deepEqual([refused.isError, refused.structuredContent.error.code], [true, "unknown_app"]);
  await assert.rejects(call("list_apps", {}), /does not match the expected outputSchema/);
  assert.deepEqual(it.errors, []);
});

test("AI SDK: resources and the prompt", async (t) => {
  const { client } = await connect(t);
  const { resources } = await client.listResources();
  const { contents } = await client.readResource({ uri: resources[0].uri });
  assert.equal(typeof JSON.parse(contents[0].text), "object");
  const { prompts } = await client.experimental_listPrompts();
  const { messages } = await client.experimental_getPrompt({ name: prompts[0].name, arguments: { words: "close all" } });
  assert.match(messages[0].content.text, /The user says: close all$/);
});
