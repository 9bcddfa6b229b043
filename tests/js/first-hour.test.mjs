// The first hour of a new user: the commands of README and the npm page, typed in their order, with each line of output. This
// is done with a clone, as in README, and with the packages from a registry on this machine. The models come from a stand-in
// for Hugging Face, which has the small model in place of each one.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { CATALOG } from "../../js-shim/dist/esm/catalog.js";
import { blocksOf } from "./support/documents.mjs";
import { noModel, root, temporaryFolder } from "./support/helper.mjs";
import { serveHub } from "./support/hub.mjs";
import { packAll, serveTarballs } from "./support/registry.mjs";

const MODEL = join(root, "build", "models", "SmolLM2-135M-Instruct.Q4_1.gguf");
/** The SDK from the tests' packages. If they are not installed, it comes from npm's registry. */
const SDK = join(root, "tests", "js", "node_modules", "openai");
/** README's program is saved under this name. */
const PROGRAM = "ask.mjs";
const ASK = `node ${PROGRAM} "Name a colour."`;
const LARGE = "Qwen3-4B-Q4_K_M";
const SMALL = "Qwen3-0.6B-Q8_0";
const NONE = "There is no model yet: npx fm-proxy models pull qwen3-0.6b";
const OWN = "SmolLM2-135M-Instruct";
const BETTER = "It is for a first try. A better one: npx fm-proxy models pull qwen3-4b";
const NEXT = "answers where no model is named: npx fm-proxy models use NAME chooses another one";
const README = readFileSync(join(root, "README.md"), "utf8");

/** An empty folder with an npm project, an empty home, and a shell in the folder. */
async function user(t, registry) {
  const place = temporaryFolder(t);
  const [app, home] = [join(place, "app"), join(place, "home")];
  for (const folder of [app, home]) mkdirSync(folder);
  // If the system has no Node, README uses the clone's Node. The small model may never stop by itself: a full context ends its
  // answer.
  const env = { PATH: `${dirname(process.execPath)}:${process.env.PATH}`, HOME: home, LANG: "C.UTF-8" };
  Object.assign(env, { HF_ENDPOINT: process.env.HF_ENDPOINT, FM_ENGINE_LLAMA_CTX: "1024" });
  // Once a day, npm prints a note about a newer npm after any command's output.
  Object.assign(env, { npm_config_update_notifier: "false", npm_config_audit: "false", npm_config_fund: "false" });
  if (registry !== undefined) env.npm_config_registry = registry;
  // This machine's environment may contain what npm needs to reach its registry.
  const npmEnv = existsSync(SDK) ? env : { ...process.env, ...env };
  const type = (command, cwd = app) =>
    new Promise((resolve) => {
      const options = { cwd, env: command.startsWith("npm ") ? npmEnv : env };
      const child = execFile("sh", ["-c", `${command} 2>&1`], options, (error, stdout) =>
        resolve({ status: error === null ? 0 : error.code, told: stdout.replaceAll(home, "~").trimEnd() }),
      );
      child.stdin.end();
    });
  /** Types a command. In the expected lines, `…` stands for text that varies, and `……` for lines that vary. */
  const sees = async (command, lines, wanted = 0) => {
    const { status, told } = await type(command);
    const escaped = lines.join("\n").replace(/[\\^$.*+?()[\]{}|]/g, "\\$&").replaceAll("……", "[^]*").replaceAll("…", ".*");
    assert.match(told, new RegExp(`^${escaped}$`), command);
    assert.equal(status, wanted, `${command}\n${told}`);
  };
  /** Types a command whose output is the model's text, or is not checked. */
  const works = async (command, cwd) => {
    const { status, told } = await type(command, cwd);
    assert.equal(status, 0, `${command}\n${told}`);
    assert.notEqual(told, "", command);
  };
  await works("npm init -y");
  return { app, home, type, sees, works };
}

async function serveModels(t) {
  const bytes = readFileSync(MODEL);
  const models = ["qwen3-0.6b", "qwen3-4b"].map((name) => CATALOG.find((model) => model.name === name));
  await serveHub(t, new Map(models.map(({ repository, file }) => [`${repository}/${file}`, bytes])));
}

/** README's program, unchanged, and one that prints which model answers. */
function savePrograms({ app }) {
  const [{ code }] = blocksOf("README.md").filter(({ language }) => language === "js");
  assert.ok(README.includes(`\`${ASK}\``));
  writeFileSync(join(app, PROGRAM), code);
  const loop = "for await (const event of stream) {\n";
  assert.ok(code.includes(loop));
  const tell = 'if (event.type === "response.created") console.log(event.response.model);\n';
  writeFileSync(join(app, "which.mjs"), code.replace(loop, loop + tell).replace("300", "9"));
}

const answers = ({ sees }, model) => sees("node which.mjs", [model, "……"]);

/** README's command for downloading a better model. */
async function pull({ sees }) {
  assert.ok(README.includes("npx fm-proxy models pull qwen3-4b"), "the command of README");
  await sees("npx fm-proxy models pull qwen3-4b", [
    `${LARGE}  … MB`,
    `~/.local/share/fm-proxy/models/${LARGE}.gguf`,
    "  sha256 …, which matches that of 127.0.0.1:…",
    "",
    "It is tried now, with ~… MB of memory. Ctrl-C ends this; the model stays.",
    "…  text   …",
    "…  JSON   …",
    "…  tools  …",
    "It takes about … MB of memory with a full context, and loads in … s.",
    "It reads … tokens a second, and writes ….",
    "……", // the list of what this model can't do
    "It answers where no model is named:",
    '  npx fm-proxy run "Why is the sky blue?"',
  ]);
}

/** Another model is chosen, and deleted again. */
async function choose(person) {
  const { sees } = person;
  await sees("npx fm-proxy models pull --no-check qwen3-0.6b", [
    `${SMALL}  … MB`,
    `~/.local/share/fm-proxy/models/${SMALL}.gguf`,
    "  sha256 …, which matches that of 127.0.0.1:…",
    "",
    "To use it where no model is named:",
    `  npx fm-proxy models use ${SMALL}`,
  ]);
  await answers(person, LARGE);
  await sees(`npx fm-proxy models use ${SMALL}`, [
    `~/.local/share/fm-proxy/models/${SMALL}.gguf`,
    "answers from now on where no model is named, in each application that has no model of its own.",
  ]);
  await answers(person, SMALL);
  await sees("npx fm-proxy models list", [
    "   NAME                        SOURCE    SIZE …  MEMORY …  WEIGHTS  CONTEXT  DOES  FILE",
    `*  ${SMALL.padEnd(28)}fm-proxy  … MB  ~… MB  Q8_0 …  8,192 …  - …  ~/.local/share/fm-proxy/models/${SMALL}.gguf`,
    `   ${LARGE.padEnd(28)}fm-proxy  … MB  ~… MB  Q4_K_M …  8,192 …  - …  ~/.local/share/fm-proxy/models/${LARGE}.gguf`,
    `   ${OWN}.Q4_1  fm-proxy  … MB  ~… MB  Q4_1 …  8,192 …  - …  …/build/models/${OWN}.Q4_1.gguf`,
    "",
    `* ${NEXT}`,
  ]);
  await sees(`npx fm-proxy models rm ${SMALL}`, [
    `deleted ~/.local/share/fm-proxy/models/${SMALL}.gguf`,
    `${LARGE} ${NEXT}`,
  ]);
}

/** The last model is deleted. */
const remove = ({ sees }, none) =>
  sees(`npx fm-proxy models rm ${LARGE}`, [`deleted ~/.local/share/fm-proxy/models/${LARGE}.gguf`, none]);

const doctor = (model, pulled, ...advice) => [
  "ok    Node: v…",
  "ok    helper: …",
  "ok    start: version …",
  `ok    model: ${model}`,
  ...advice.map((line) => `      ${line}`),
  "ok    answer: … tokens, … ms with the model's load",
  "ok    sandbox: …",
  "ok    GPU: none: …",
  `ok    models: ${pulled} in ~/.local/share/fm-proxy/models, 0 of other programs (npx fm-proxy models list)`,
];

async function uninstall({ app, home, sees }) {
  await sees("npm uninstall fm-proxy", ["……removed … package… in …s……"]);
  assert.equal(existsSync(join(app, "node_modules", "fm-proxy")), false);
  assert.deepEqual(readdirSync(join(home, ".local", "share", "fm-proxy", "models")).filter((name) => name.endsWith(".gguf")), []);
}

test("the first hour with a clone", { skip: noModel() ?? false }, async (t) => {
  await serveModels(t);
  const person = await user(t);
  const { sees, works } = person;
  const [{ code }] = blocksOf("README.md").filter(({ language }) => language === "sh");
  const [clone, ask] = code.trim().split("\n"); // packaging/bare-root.sh has typed both before
  assert.equal(clone, "git clone URL fm-proxy && cd fm-proxy");
  await works(ask, root);
  const install = "npm install PATH_OF_THE_CLONE/js-shim openai";
  assert.ok(README.includes(`\`${install}\``));
  const typed = install.replace("PATH_OF_THE_CLONE", root).replace(/openai$/, existsSync(SDK) ? SDK : "openai");
  await sees(typed, ["……added 2 packages in …s……"]); // npm may print a warning about an old Node
  savePrograms(person);
  await works(ASK);
  const own = `${OWN}.Q4_1`;
  await sees("npx fm-proxy doctor", doctor(own, 0, BETTER));
  await sees("npx fm-proxy models list", [
    "   NAME                        SOURCE    SIZE …  MEMORY …  WEIGHTS  CONTEXT  DOES  FILE",
    `*  ${own}  fm-proxy  98.4 MB  ~… MB  Q4_1     8,192    -     …/build/models/${own}.gguf`,
    "",
    `* ${NEXT}`,
    `  ${BETTER}`,
  ]);
  await pull(person);
  await answers(person, LARGE);
  await choose(person);
  await answers(person, LARGE);
  await remove(person, `${own} ${NEXT}`);
  await answers(person, own);
  await uninstall(person);
});

const built = existsSync(join(root, "build", "bin", "fm-engine-remote"));
const unpacked = built ? false : "only what an answer in text needs is built";
test("the first hour with a registry", { skip: noModel() ?? unpacked }, async (t) => {
  await serveModels(t);
  const person = await user(t, await serveTarballs(t, await packAll(join(temporaryFolder(t), "npm"))));
  const { sees, works } = person;
  await sees("npm install fm-proxy", ["……added 2 packages in …s……"]);
  await works(`npm install --no-save ${SDK}`);
  await sees("npx fm-proxy run 'Why is the sky blue?'", [`fm-proxy: ${NONE}`], 1);
  savePrograms(person);
  await pull(person);
  await works(ASK);
  await answers(person, LARGE);
  await sees("npx fm-proxy doctor", doctor(LARGE, 1));
  await remove(person, NONE);
  await uninstall(person);
});
