// The configurations of docs/system.md: each has its client's format, and starts a server that lists tools and answers, with
// only the environment that MCP's SDKs pass on.
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { program } from "./support.mjs";

const page = readFileSync(new URL("../../../docs/system.md", import.meta.url), "utf8");
const INSTALLED = "/usr/local/bin/fm-system";

// From each client's documentation: the file, the place of servers in it, and the members of a stdio server (true: required).
const CLIENTS = {
  "Claude Desktop": {
    file: "claude_desktop_config.json",
    servers: "mcpServers",
    members: { command: true, args: false, env: false },
  },
  "VS Code": {
    file: ".vscode/mcp.json",
    servers: "servers",
    members: { type: true, command: true, args: false, env: false, envFile: false, cwd: false },
  },
  Cursor: {
    file: ".cursor/mcp.json",
    servers: "mcpServers",
    members: { type: true, command: true, args: false, env: false, envFile: false },
  },
};

const block = (client) => new RegExp(`^\\*\\*${client}\\*\\*: (.*)\\n\\n\`\`\`json\\n([^]*?)^\`\`\`$`, "m").exec(page);

// Replaces ${env:NAME}, like Cursor.
const own = { DISPLAY: ":0", XDG_RUNTIME_DIR: "/run/user/1000" };
const environment = (env = {}) =>
  Object.fromEntries(Object.entries(env).map(([name, value]) => [name, value.replace(/\$\{env:(\w+)\}/, (_, it) => own[it])]));

for (const [client, { file, servers, members }] of Object.entries(CLIENTS))
  test(`the configuration of ${client}`, async (t) => {
    const [, where, text] = block(client) ?? assert.fail("docs/system.md has none");
    assert.ok(where.includes(file), where);
    const config = JSON.parse(text);
    assert.deepEqual(Object.keys(config), [servers]);
    const [[, server]] = Object.entries(config[servers]);
    for (const name of Object.keys(server)) assert.ok(Object.hasOwn(members, name), `${client} knows no ${name}`);
    for (const name of Object.keys(members).filter((name) => members[name])) assert.ok(Object.hasOwn(server, name), name);
    assert.ok([undefined, "stdio"].includes(server.type));
    assert.equal(server.command, INSTALLED);

    // VS Code passes its own environment to a server. The other clients do not, so their files name the needed variables.
    const env = client === "VS Code" ? own : environment(server.env);
    const it = new Client({ name: "fm-system-tests", version: "0.0.0" });
    const transport = new StdioClientTransport({ command: program, args: server.args, env, stderr: "pipe" });
    const errors = [];
    transport.stderr.on("data", (data) => errors.push(String(data)));
    await it.connect(transport);
    t.after(() => it.close());
    const { tools } = await it.listTools();
    assert.equal(tools.length, 13);
    // This machine may have no display, but the server must have received DISPLAY.
    const { structuredContent } = await it.callTool({ name: "list_apps", arguments: {} });
    assert.ok(structuredContent.ok || structuredContent.error.code === "unavailable", JSON.stringify(structuredContent));
    assert.doesNotMatch(structuredContent.error?.detail ?? "", /DISPLAY names no X server/);
    assert.deepEqual(errors, []);
  });
