// Modules of the page, for tests in Node: `const { show } = await unit("escape")`. They are bundled unchanged, without types.
import { createRequire } from "node:module";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

export const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");
const ui = join(ROOT, "gateway", "ui");
const { rolldown } = await import(pathToFileURL(createRequire(join(ui, "package.json")).resolve("rolldown")).href);
const folder = mkdtempSync(join(tmpdir(), "fm-gateway-ui-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

const NAMES = ["conversation", "escape", "export", "format", "markdown", "outbox", "ws-client"];
const input = Object.fromEntries(NAMES.map((name) => [name, join(ui, "src", `${name}.ts`)]));
const bundle = await rolldown({ input, platform: "browser", logLevel: "silent" });
await bundle.write({ dir: folder, format: "esm", entryFileNames: "[name].mjs", chunkFileNames: "[name]-[hash].mjs" });

export function unit(name) {
  return import(pathToFileURL(join(folder, `${name}.mjs`)).href);
}
