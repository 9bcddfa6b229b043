// The OpenAI Agents SDK, unmodified, with a scripted model: it lists the tools, converts their schemas, calls them, and gives
// the results to the model.
import { Agent, MCPServerStdio, run, setTracingDisabled, Usage } from "@openai/agents";
import assert from "node:assert/strict";
import test from "node:test";
import { objectsOf, say } from "./script.mjs";
import { fakeDesktop, program } from "./support.mjs";

setTracingDisabled(true);

// Each step is [tool, parameters], or a function that makes it from the last result; after the steps, the model ends.
class Scripted {
  constructor(steps) {
    this.steps = [...steps];
    this.results = [];
    this.tools = new Map();
  }

  async getResponse({ input, tools }) {
    for (const tool of tools) this.tools.set(tool.name, tool);
    const last = input.at(-1);
    if (last?.type === "function_call_result") {
      const [{ text }] = [last.output].flat();
      assert.equal(typeof text, "string", JSON.stringify(last));
      this.results.push(JSON.parse(text));
    }
    const step = this.steps.shift();
    if (step === undefined) return this.answer({ type: "message", role: "assistant", status: "completed",
      content: [{ type: "output_text", text: "done" }] });
    const [name, wanted] = typeof step === "function" ? step(this.results.at(-1)) : step;
    return this.answer({ type: "function_call", callId: `call ${this.steps.length}`, name, status: "completed",
      arguments: JSON.stringify(say(this.tools.get(name).parameters, wanted)) });
  }

  answer(item) {
    return { usage: new Usage(), output: [item] };
  }
}

const STEPS = [
  ["list_tabs", {}],
  ({ snapshot }) => ["close_tab", { tab_indices: [3, 1], snapshot }],
  ["focus_app", { app_name: "nobody" }],
  ["place_app", { app_name: "XTerm", bounds: [0, 0, 800, 600] }],
  ["undo", {}],
  ["run_commands", { commands: [{ type: "list_apps" }, { type: "focus_app", app_name: "XTerm" }] }],
];
const ACTIONS = ["tab.close t3", "tab.close t1", "place w1 0 0 800 600", "place w1 0 0 640 480", "focus w1"];

for (const convertSchemasToStrict of [false, true])
  test(`Agents SDK, ${convertSchemasToStrict ? "strict schemas" : "schemas as they are"}`, async (t) => {
    const desktop = fakeDesktop(t);
    const server = new MCPServerStdio({ command: program, args: desktop.args });
    await server.connect();
    t.after(() => server.close());
    const model = new Scripted(STEPS);
    const agent = new Agent({ name: "Desk", model, mcpServers: [server], mcpConfig: { convertSchemasToStrict } });
    const { finalOutput } = await run(agent, "close all reddit tabs");
    assert.equal(finalOutput, "done");

    for (const tool of model.tools.values()) {
      assert.equal(tool.strict, convertSchemasToStrict, tool.name);
      for (const schema of convertSchemasToStrict ? objectsOf(tool.parameters) : []) {
        assert.equal(schema.additionalProperties, false, tool.name);
        assert.deepEqual(schema.required, Object.keys(schema.properties), tool.name);
      }
    }
    const [tabs, closed, refused, placed, undone, request] = model.results;
    assert.deepEqual(tabs.tabs.map(({ domain }) => domain), ["reddit.com", "github.com", "old.reddit.com"]);
    assert.deepEqual(closed.closed, [1, 3]);
    assert.deepEqual([refused.ok, refused.error.code, refused.error.candidates[0]], [false, "unknown_app", "XTerm"]);
    assert.deepEqual(placed.bounds, [0, 0, 800, 600]);
    assert.deepEqual(undone.restored[0].bounds, [0, 0, 640, 480]);
    assert.deepEqual(request.results.map(({ type }) => type), ["list_apps", "focus_app"]);
    assert.deepEqual(desktop.actions(), ACTIONS);
  });
