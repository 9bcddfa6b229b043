// The TypeScript SDK, unmodified: version 1, and version 2 in both eras. It checks structured results by the tools' schemas.
import { Client as Client2 } from "@modelcontextprotocol/client";
import { StdioClientTransport as Transport2 } from "@modelcontextprotocol/client/stdio";
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as Transport1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import assert from "node:assert/strict";
import test from "node:test";
import { fakeDesktop, program } from "./support.mjs";

const info = { name: "fm-system-tests", version: "0.0.0" };
const CONTEXT = "fm-system://context/";

const clients = {
  "SDK 1": { Client: Client1, Transport: Transport1, options: {} },
  "SDK 2, legacy": { Client: Client2, Transport: Transport2, options: {} },
  "SDK 2, auto": { Client: Client2, Transport: Transport2, options: { versionNegotiation: { mode: "auto" } } },
  "SDK 2, 2026-07-28": {
    Client: Client2,
    Transport: Transport2,
    options: { versionNegotiation: { mode: { pin: "2026-07-28" } } },
  },
};

async function connect(t, { Client, Transport, options }, ...more) {
  const desktop = fakeDesktop(t);
  const client = new Client(info, options);
  const transport = new Transport({ command: program, args: [...desktop.args, ...more], stderr: "pipe" });
  const errors = [];
  client.onerror = (error) => errors.push(error);
  transport.stderr?.on("data", (data) => errors.push(String(data)));
  await client.connect(transport);
  t.after(() => client.close());
  return { client, transport, errors, ...desktop };
}

// Version 1 takes the schema of the result as its second argument; undefined means the usual schema.
const call = ({ client }, kind, params, options) =>
  kind.Client === Client1 ? client.callTool(params, undefined, options) : client.callTool(params, options);

for (const [name, kind] of Object.entries(clients)) {
  test(name, async (t) => {
    await t.test("lists, resources and the prompt", async (t) => {
      const { client, errors } = await connect(t, kind);
      assert.equal(client.getServerVersion().name, "fm-system");
      const { tools } = await client.listTools();
      assert.ok(tools.some((tool) => tool.name === "run_commands" && tool.annotations.destructiveHint));
      const { resources } = await client.listResources();
      for (const { uri } of resources) {
        const { contents } = await client.readResource({ uri });
        assert.equal(typeof JSON.parse(contents[0].text), "object");
      }
      await assert.rejects(client.readResource({ uri: `${CONTEXT}nothing` }), /not found/i);
      assert.deepEqual((await client.listResourceTemplates()).resourceTemplates, []);
      const { prompts } = await client.listPrompts();
      const { messages } = await client.getPrompt({ name: prompts[0].name, arguments: { words: "close all" } });
      assert.match(messages[0].content.text, /The user says: close all$/);
      await client.close();
      assert.deepEqual(errors, []);
    });

    await t.test("calls, and what they refuse", async (t) => {
      const it = await connect(t, kind);
      await it.client.listTools(); // lists the tools, so that the SDK knows the schemas
      const tabs = await call(it, kind, { name: "list_tabs", arguments: {} });
      assert.deepEqual(
        tabs.structuredContent.tabs.map((tab) => tab.domain),
        ["reddit.com", "github.com", "old.reddit.com"],
      );
      const { snapshot } = tabs.structuredContent;
      const closed = await call(it, kind, { name: "close_tab", arguments: { tab_indices: [1, 3], snapshot } });
      assert.deepEqual(closed.structuredContent.closed, [1, 3]);
      for (const [tool, args, code] of [
        ["focus_app", { app_name: "nobody" }, "unknown_app"],
        ["open_url", { url: "file:///etc/passwd" }, "scheme_not_allowed"],
        ["run_commands", { commands: [] }, "empty_commands"],
      ]) {
        const refused = await call(it, kind, { name: tool, arguments: args });
        assert.equal(refused.isError, true);
        assert.equal(refused.structuredContent.error.code, code);
        assert.deepEqual(JSON.parse(refused.content[0].text), refused.structuredContent);
      }
      await assert.rejects(call(it, kind, { name: "nonsense", arguments: {} }), /nonsense/);
      await it.client.close();
      assert.deepEqual(it.actions(), ["tab.close t3", "tab.close t1"]);
      assert.deepEqual(it.errors, []);
    });

    await t.test("progress of each step", async (t) => {
      const it = await connect(t, kind);
      const commands = [{ type: "list_apps" }, { type: "focus_app", app_name: "Slow" }, { type: "focus_app", app_name: "Notes" }];
      const run = { name: "run_commands", arguments: { commands, needs_clarification: false, clarification_reason: null } };
      let steps;
      // The SDK drops progress that it reads together with the answer. The last step takes 100 ms, and on a busy machine this
      // process may stand still for longer.
      for (let tries = 5; tries > 0 && steps?.length !== 3; tries--) {
        steps = [];
        const result = await call(it, kind, run, { onprogress: ({ progress, total }) => steps.push([progress, total]) });
        assert.equal(result.structuredContent.results.length, 3);
      }
      assert.deepEqual(steps, [[0, 3], [1, 3], [2, 3]]);
      await it.client.close();
      assert.deepEqual(it.errors, []);
    });

    await t.test("a call that is cancelled ends, and the next one runs", async (t) => {
      const it = await connect(t, kind);
      const controller = new AbortController();
      const begun = Date.now();
      const stuck = call(
        it,
        kind,
        { name: "focus_app", arguments: { app_name: "Stuck" } },
        { signal: controller.signal, onprogress: () => controller.abort("enough") },
      );
      await assert.rejects(stuck);
      const apps = await call(it, kind, { name: "list_apps", arguments: {} });
      assert.equal(apps.isError, false);
      assert.ok(Date.now() - begun < 15_000, "focus_app waits for 15 s if it is not cancelled");
      await it.client.close();
      assert.deepEqual(it.errors, []);
    });

    await t.test("only what is allowed", async (t) => {
      const it = await connect(t, kind, "--read-only");
      const { tools } = await it.client.listTools();
      assert.ok(tools.every((tool) => tool.annotations.readOnlyHint));
      const denied = await call(it, kind, { name: "close_app", arguments: { app_name: "XTerm" } });
      assert.equal(denied.structuredContent.error.code, "denied");
      await it.client.close();
      assert.deepEqual(it.actions(), [""]);
    });
  });
}

// Version 2 asks the user itself if the server requests this, and repeats the call with the answer.
test("SDK 2 asks the user before something is closed", async (t) => {
  for (const action of ["accept", "decline"]) {
    const kind = clients["SDK 2, auto"];
    const options = { ...kind.options, capabilities: { elicitation: { form: {} } } };
    const it = await connect(t, { ...kind, options });
    const asked = [];
    it.client.setRequestHandler("elicitation/create", ({ params }) => {
      asked.push(params.message);
      return action === "accept" ? { action, content: {} } : { action };
    });
    const result = await call(it, kind, { name: "close_tab", arguments: { tab_indices: [1, 2] } });
    assert.equal(asked.length, 1);
    assert.match(asked[0], /2 tabs/);
    assert.equal(result.isError, action !== "accept");
    assert.deepEqual(it.actions(), action === "accept" ? ["tab.close t2", "tab.close t1"] : [""]);
    await it.client.close();
    assert.deepEqual(it.errors, []);
  }
});
