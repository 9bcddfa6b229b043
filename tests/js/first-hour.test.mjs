// The first hour of a new user: what README and the npm page say, typed in their order, with each line that is printed. The
// packages come from a registry on this machine, in the place of a clone, and the models from a stand-in for Hugging Face, which
// has the small model in the place of each.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { CATALOG } from "../../js-shim/dist/esm/catalog.js";
import { blocksOf } from "./support/documents.mjs";
import { noModel, root, temporaryFolder } from "./support/helper.mjs";
import { serveHub } from "./support/hub.mjs";
import { packAll, serveTarballs } from "./support/registry.mjs";

const MODEL = join(root, "build", "models", "SmolLM2-135M-Instruct.Q4_1.gguf");
const SDK = join(root, "tests", "js", "node_modules", "openai");
/** README's program; it is saved by this name. */
const PROGRAM = "ask.mjs";

/** An empty folder, a home where nothing is yet, and a shell in it. */
function user(t, more) {
  const place = temporaryFolder(t);
  const [app, home] = [join(place, "app"), join(place, "home")];
  for (const folder of [app, home]) mkdirSync(folder);
  const env = { PATH: process.env.PATH, HOME: home, LANG: "C.UTF-8", ...more };
  const type = (command, npm = {}) =>
    new Promise((resolve) => {
      const child = execFile("sh", ["-c", `${command} 2>&1`], { cwd: app, env: { ...env, ...npm } }, (error, stdout) =>
        resolve({ status: error === null ? 0 : error.code, told: stdout.replaceAll(home, "~").trimEnd() }),
      );
      child.stdin.end();
    });
  /** Types a command. In the expected lines `…` stands for what differs from run to run, and `……` for lines that do. */
  const sees = async (command, lines, wanted = 0) => {
    const { status, told } = await type(command);
    const escaped = lines.join("\n").replace(/[\\^$.*+?()[\]{}|]/g, "\\$&").replaceAll("……", "[^]*").replaceAll("…", ".*");
    assert.match(told, new RegExp(`^${escaped}$`), command);
    assert.equal(status, wanted, `${command}\n${told}`);
  };
  return { app, home, type, sees };
}

test("the first hour", { skip: noModel() ?? false }, async (t) => {
  const bytes = readFileSync(MODEL);
  const names = ["qwen3-0.6b", "qwen3-4b"].map((name) => CATALOG.find((model) => model.name === name));
  await serveHub(t, new Map(names.map(({ repository, file }) => [`${repository}/${file}`, bytes])));
  const registry = await serveTarballs(t, await packAll(join(temporaryFolder(t), "npm")));
  // The small model may go on and on; a context that is full ends it.
  const { app, home, type, sees } = user(t, { HF_ENDPOINT: process.env.HF_ENDPOINT, FM_ENGINE_LLAMA_CTX: "1024" });
  const npm = { npm_config_registry: registry, npm_config_audit: "false", npm_config_fund: "false" };
  const readme = readFileSync(join(root, "README.md"), "utf8");

  await type("npm init -y");
  assert.equal((await type("npm install fm-proxy", npm)).status, 0);
  assert.equal((await type(`npm install --no-save ${SDK}`, npm)).status, 0);

  await sees("npx fm-proxy run 'Why is the sky blue?'", [
    "fm-proxy: There is no model yet: npx fm-proxy models pull qwen3-0.6b",
  ], 1);

  assert.ok(readme.includes("npx fm-proxy models pull qwen3-4b"), "the command of README");
  await sees("npx fm-proxy models pull qwen3-4b", [
    "Qwen3-4B-Q4_K_M  … MB",
    "~/.local/share/fm-proxy/models/Qwen3-4B-Q4_K_M.gguf",
    "  sha256 …, which matches that of 127.0.0.1:…",
    "",
    "It is tried now, with ~… MB of memory. Ctrl-C ends this; the model stays.",
    "…  text   …",
    "…  JSON   …",
    "…  tools  …",
    "It takes about … MB of memory with a full context, and loads in … s.",
    "It reads … tokens a second, and writes ….",
    "……", // what the model is too weak for
    "It answers where no model is named:",
    '  npx fm-proxy run "Why is the sky blue?"',
  ]);

  const [program] = blocksOf("README.md").filter(({ language }) => language === "js");
  assert.ok(readme.includes(`\`${PROGRAM}\``));
  writeFileSync(join(app, PROGRAM), program.code);
  await sees(`node ${PROGRAM} "Name a colour."`, ["……"]);

  await sees("npx fm-proxy models pull --no-check qwen3-0.6b", [
    "Qwen3-0.6B-Q8_0  … MB",
    "~/.local/share/fm-proxy/models/Qwen3-0.6B-Q8_0.gguf",
    "  sha256 …, which matches that of 127.0.0.1:…",
    "",
    "To use it where no model is named:",
    "  npx fm-proxy models use Qwen3-0.6B-Q8_0",
  ]);
  await sees("npx fm-proxy models use Qwen3-0.6B-Q8_0", [
    "~/.local/share/fm-proxy/models/Qwen3-0.6B-Q8_0.gguf",
    "answers from now on where no model is named, in each application that has no model of its own.",
  ]);
  await sees("npx fm-proxy models list", [
    "   NAME             SOURCE    SIZE …  MEMORY …  WEIGHTS  CONTEXT  DOES  FILE",
    "*  Qwen3-0.6B-Q8_0  fm-proxy  … MB  ~… MB  Q8_0 …  8,192 …  - …  ~/.local/share/fm-proxy/models/Qwen3-0.6B-Q8_0.gguf",
    "   Qwen3-4B-Q4_K_M  fm-proxy  … MB  ~… MB  Q4_K_M …  8,192 …  - …  ~/.local/share/fm-proxy/models/Qwen3-4B-Q4_K_M.gguf",
    "",
    "* answers where no model is named: npx fm-proxy models use NAME chooses another one",
  ]);
  await sees("npx fm-proxy doctor", [
    "ok    Node: v…",
    "ok    helper: …",
    "ok    start: version …",
    "ok    model: Qwen3-0.6B-Q8_0",
    "ok    answer: … tokens, … ms with the model's load",
    "ok    sandbox: …",
    "ok    GPU: none: …",
    "ok    models: 2 in ~/.local/share/fm-proxy/models, 0 of other programs (npx fm-proxy models list)",
  ]);

  const next = "Qwen3-4B-Q4_K_M answers where no model is named: npx fm-proxy models use NAME chooses another one";
  const none = "There is no model yet: npx fm-proxy models pull qwen3-0.6b";
  for (const [index, { file }] of names.entries()) {
    const lines = [`deleted ~/.local/share/fm-proxy/models/${file}`, [next, none][index]];
    await sees(`npx fm-proxy models rm ${file.replace(".gguf", "")}`, lines);
  }
  assert.equal((await type("npm uninstall fm-proxy", npm)).status, 0);
  assert.equal(existsSync(join(app, "node_modules", "fm-proxy")), false);
  assert.deepEqual(readdirSync(join(home, ".local", "share", "fm-proxy", "models")).filter((name) => name.endsWith(".gguf")), []);
});
