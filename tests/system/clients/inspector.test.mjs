// The Inspector's command line, unmodified, in each era: it checks the tools' schemas, and calls them.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import test from "node:test";
import { fakeDesktop, program } from "./support.mjs";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";

const manifest = createRequire(import.meta.url).resolve("@modelcontextprotocol/inspector/package.json");
const inspector = join(dirname(manifest), "clients/launcher/build/index.js");

// Returns {status, out, errors}. The program's home is a folder of the test, because it writes there.
function inspect(home, config, ...args) {
  const env = { PATH: process.env.PATH, HOME: home, MCP_INSPECTOR_SECRET_STORE: "memory" };
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [inspector, "--cli", "--config", config, "--server", "fm", ...args],
      { env, timeout: 240_000 },
      (error, out, errors) => resolve({ status: error ? error.code : 0, out, errors }),
    );
  });
}

for (const era of ["legacy", "auto", "modern"]) {
  test(`Inspector, ${era}`, async (t) => {
    const desktop = fakeDesktop(t);
    const home = mkdtempSync(join(tmpdir(), "fm-inspector-"));
    t.after(() => rmSync(home, { recursive: true }));
    const config = join(home, "config.json");
    writeFileSync(config, JSON.stringify({ mcpServers: { fm: { command: program, args: desktop.args } } }));
    const run = (...args) => inspect(home, config, "--protocol-era", era, ...args);

    const list = await run("--method", "tools/list", "--strict");
    assert.equal(list.status, 0, list.errors);
    assert.match(list.errors, /0 errors, 0 warnings|^((?!Warning: tool)[^])*$/);
    assert.ok(JSON.parse(list.out).tools.length >= 9);

    const closed = await run("--method", "tools/call", "--tool-name", "close_tab", "--tool-args-json", '{"tab_indices":[2]}',
      "--format", "json");
    assert.deepEqual(JSON.parse(closed.out).result.structuredContent.closed, [2]);
    const refused = await run("--method", "tools/call", "--tool-name", "focus_app", "--tool-arg", "app_name=nobody",
      "--format", "json");
    assert.equal(refused.status, 5, "what the Inspector exits with at isError");
    assert.equal(JSON.parse(refused.out).result.structuredContent.error.code, "unknown_app");
    const read = await run("--method", "resources/read", "--uri", "fm-system://context/monitors", "--format", "json");
    assert.match(read.out, /main/);
    assert.deepEqual(desktop.actions(), ["tab.close t2"]);
  });
}
