// Models that other programs have downloaded, in the layouts that those programs use: they are found, and never written to.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { findModels, modelsFolder } from "../../js-shim/dist/esm/index.js";
import { modelsFolder as folderOf } from "../../js-shim/dist/esm/models-folder.js";
import { chooseModel } from "../../js-shim/dist/esm/default-model.js";
import { findModel } from "../../js-shim/dist/esm/find-model.js";
import { defaultModel, readAbilities } from "../../js-shim/dist/esm/model-files.js";
import { ggufHeader } from "./support/gguf.mjs";
import { root, snapshot, temporaryFolder } from "./support/helper.mjs";

const put = (path, text) => {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
};
const names = async (env, home) => (await findModels(env, home)).map(({ source, name }) => `${source} ${name}`);

/** Makes nested folders, one at a time, so that no path is too long. */
const DIG = "import os, sys\nfor name in sys.argv[1].split('/'):\n    os.mkdir(name)\n    os.chdir(name)";

/** Writes a model as Ollama stores it. */
function putOllama(root, name, text) {
  const digest = createHash("sha256").update(text).digest("hex");
  const layer = (mediaType, hex) => ({ mediaType, digest: `sha256:${hex}`, size: text.length });
  const template = layer("application/vnd.ollama.image.template", "0".repeat(64));
  const layers = [layer("application/vnd.ollama.image.model", digest), template];
  put(join(root, "manifests", name), JSON.stringify({ schemaVersion: 2, config: {}, layers }));
  put(join(root, "blobs", `sha256-${digest}`), text);
  return join(root, "blobs", `sha256-${digest}`);
}

test("Ollama", async (t) => {
  const home = temporaryFolder(t);
  const path = putOllama(join(home, ".ollama", "models"), "registry.ollama.ai/library/qwen3/0.6b", "GGUF one");
  putOllama(join(home, ".ollama", "models"), "registry.ollama.ai/somebody/mistral/latest", "GGUF two");
  putOllama(join(home, "elsewhere"), "hf.co/owner/model/Q4_K_M", "GGUF three");
  put(join(home, ".ollama", "models", "manifests", "h", "library", "broken", "latest"), "{");
  put(join(home, ".ollama", "models", "manifests", "h", "library", "gone", "latest"), JSON.stringify({ layers: [] }));
  const expected = ["ollama hf.co/owner/model:Q4_K_M", "ollama qwen3:0.6b", "ollama somebody/mistral:latest"];
  const env = { OLLAMA_MODELS: join(home, "elsewhere") };
  assert.deepEqual(await names(env, home), expected);
  assert.equal((await findModels({}, home))[0].path, path);
  for (const name of ["hf.co/owner/model:Q4_K_M", "hf:owner/model", "HF.co/owner/model:q4_k_m.gguf"]) {
    assert.equal((await findModel(name, await findModels(env, home)))?.name, "hf.co/owner/model:Q4_K_M", name);
  }
});

test("Ollama: each of the names of one file", async (t) => {
  const home = temporaryFolder(t);
  const models = join(home, ".ollama", "models");
  const path = putOllama(models, "registry.ollama.ai/library/qwen3/latest", "GGUF one");
  putOllama(models, "registry.ollama.ai/library/qwen3/8b", "GGUF one");
  putOllama(models, "hf.co/me/x-GGUF/Q8_0", "GGUF one");
  const all = await findModels({}, home);
  assert.deepEqual(all.map(({ name }) => name), ["hf.co/me/x-GGUF:Q8_0", "qwen3:8b", "qwen3:latest"]);
  for (const name of ["qwen3", "qwen3:8b", "ollama:qwen3", "hf.co/me/x-GGUF:Q8_0"]) {
    assert.equal((await findModel(name, all))?.path, path, name);
  }
  await chooseModel(path, folderOf({}, home));
  assert.deepEqual((await findModels({}, home)).map((model) => model.default), [true, false, false]);
});

test("without a choice, the first of the folder that answers; a chosen file of any place is listed", async (t) => {
  const home = temporaryFolder(t);
  const folder = folderOf({}, home);
  put(join(folder, "a.gguf"), ggufHeader({ "x.pooling_type": 1 }));
  assert.equal(await defaultModel(folder), join(folder, "a.gguf"));
  put(join(folder, "b.gguf"), "GGUF");
  assert.equal(await defaultModel(folder), join(folder, "b.gguf"));
  put(join(folder, "ab.gguf"), "GGUF");
  put(join(folder, "ab.gguf.json"), JSON.stringify({ usable: false }));
  assert.equal(await defaultModel(folder), join(folder, "b.gguf"), "not one that was tried and can't be used");
  const elsewhere = join(home, "elsewhere.gguf");
  put(elsewhere, "GGUF");
  await chooseModel(elsewhere, folder);
  const shown = (await findModels({}, home)).map((model) => [model.name, model.default]);
  assert.deepEqual(shown, [[elsewhere, true], ["a", false], ["ab", false], ["b", false]]);
});

test("LM Studio, at its default place, at another one, and where its settings say", async (t) => {
  const home = temporaryFolder(t);
  put(join(home, ".lmstudio", "models", "pub", "repo", "a-Q4.gguf"), "GGUF");
  put(join(home, ".lmstudio", "models", "pub", "repo", "mmproj-a.gguf"), "GGUF");
  put(join(home, ".cache", "lm-studio", "models", "pub", "old", "b.gguf"), "GGUF");
  assert.deepEqual(await names({}, home), ["lm-studio pub/old/b.gguf", "lm-studio pub/repo/a-Q4.gguf"]);
  const moved = join(home, "a place with spaces");
  put(join(moved, "settings.json"), JSON.stringify({ downloadsFolder: join(moved, "down") }));
  put(join(moved, "down", "pub", "repo", "c.gguf"), "GGUF");
  put(join(home, ".lmstudio-home-pointer"), `${moved}\n`);
  assert.deepEqual(await names({}, home), ["lm-studio pub/repo/c.gguf"]);
});

test("the cache of Hugging Face, and llama.cpp's own", async (t) => {
  const home = temporaryFolder(t);
  const repository = join(home, ".cache", "huggingface", "hub", "models--owner--name");
  put(join(repository, "blobs", "abc"), "GGUF");
  mkdirSync(join(repository, "snapshots", "123"), { recursive: true });
  symlinkSync("../../blobs/abc", join(repository, "snapshots", "123", "m.gguf"));
  symlinkSync("../../blobs/gone", join(repository, "snapshots", "123", "broken.gguf"));
  put(join(repository, "snapshots", "123", "big-00001-of-00002.gguf"), "GGUF");
  put(join(home, ".cache", "llama.cpp", "owner_name_m.gguf"), "GGUF");
  put(join(home, ".cache", "llama.cpp", "owner_name_n.gguf.downloadInProgress"), "GGUF");
  const expected = ["huggingface owner/name/m.gguf", "llama.cpp owner_name_m.gguf"];
  assert.deepEqual(await names({}, home), expected);
  assert.deepEqual(await names({ HF_HOME: join(home, ".cache", "huggingface") }, home), expected);
  const shared = { FM_PROXY_MODELS_DIR: join(home, ".cache", "llama.cpp") };
  assert.deepEqual(await names(shared, home), ["fm-proxy owner_name_m", expected[0]], "each once");
  put(join(home, "hub", "models--o--n", "snapshots", "1", "x.gguf"), "GGUF");
  const elsewhere = { HF_HUB_CACHE: join(home, "hub"), XDG_CACHE_HOME: join(home, "none") };
  assert.deepEqual(await names(elsewhere, home), ["huggingface o/n/x.gguf"]);
});

test("what other programs have left in disorder hides nothing else", async (t) => {
  const home = temporaryFolder(t);
  put(join(home, ".local", "share", "fm-proxy", "models", "own.gguf"), "GGUF");
  mkdirSync(join(home, ".local", "share", "fm-proxy", "models", "folder.gguf"));
  // Settings that are not valid JSON, because the path has an unknown escape.
  put(join(home, ".lmstudio", "settings.json"), '{"downloadsFolder": "C:\\users\\me"}');
  const ollama = join(home, ".ollama", "models");
  putOllama(ollama, "registry.ollama.ai/library/good/latest", "GGUF");
  symlinkSync("/dev/zero", join(ollama, "manifests", "registry.ollama.ai", "library", "good", "endless"));
  put(join(ollama, "manifests", "registry.ollama.ai", "library", "long", "latest"), " ".repeat(2_000_000));
  // Not even root can read this folder: its path is longer than any path may be.
  const hub = join(home, ".cache", "huggingface", "hub");
  put(join(hub, "models--o--n", "snapshots", "1", "x.gguf"), "GGUF");
  const deep = Array.from({ length: 20 }, () => "d".repeat(250)).join("/");
  assert.equal(spawnSync("python3", ["-c", DIG, deep], { cwd: hub }).status, 0);
  const found = await names({}, home);
  // Node can't remove such a path.
  spawnSync("rm", ["-rf", "d".repeat(250)], { cwd: hub });
  assert.deepEqual(found, ["fm-proxy own", "huggingface o/n/x.gguf", "ollama good:latest"]);
});

test("what a model's name and header say of it; a header that ends too soon or is invalid says nothing", async (t) => {
  const folder = temporaryFolder(t);
  const pairs = { "general.architecture": "x", "general.tags": ["a", "b"], "x.context_length": 40_960, "general.file_type": 15 };
  const whole = ggufHeader({ ...pairs, "x.attention.context_length": 1 });
  const facts = async (name, bytes) => {
    put(join(folder, name), bytes);
    const found = (await findModels({ FM_PROXY_MODELS_DIR: folder }, folder)).find(({ path }) => path === join(folder, name));
    return [found.quantization, found.contextLength];
  };
  assert.deepEqual(await facts("a.gguf", whole), ["Q4_K_M", 40_960]);
  assert.deepEqual(await facts("a-Q8_0.gguf", whole), ["Q8_0", 40_960]);
  assert.deepEqual(await facts("none.gguf", "GGUF"), [null, null]);
  assert.deepEqual(await facts("other.gguf", "GGUX".repeat(100)), [null, null]);
  const [first, last] = [whole.indexOf("x.context_length"), whole.indexOf("general.file_type")];
  for (let end = 1; end < last; end++) {
    const told = end >= first + "x.context_length".length + 8 ? 40_960 : null;
    assert.deepEqual(await facts("cut.gguf", whole.subarray(0, end)), [null, told], `${end} bytes`);
  }
  const odd = Buffer.from(whole);
  odd.fill(0xff, 24, 32); // the length of the first key
  assert.deepEqual(await facts("odd.gguf", odd), [null, null]);
  const model = join(root, "build", "models", "SmolLM2-135M-Instruct.Q4_1.gguf");
  if (existsSync(model)) assert.deepEqual(await facts("real.gguf", readFileSync(model).subarray(0, 65_536)), ["Q4_1", 8192]);
});

test("about how much memory a model takes, and what it does, by its header and the files beside it", async (t) => {
  const folder = temporaryFolder(t);
  const MB = 1024 * 1024;
  const layers = { "x.block_count": 4, "x.attention.head_count": 8, "x.attention.head_count_kv": 2, "x.embedding_length": 1024 };
  const model = (name, pairs) => {
    const path = join(folder, `${name}.gguf`);
    put(path, ggufHeader({ "general.architecture": "x", ...pairs }));
    return path;
  };
  const words = { "tokenizer.ggml.tokens": ["a".repeat(70_000), "b"] };
  // 2 bytes x (128 + 128) numbers x 2 heads x 4 layers = 4 KiB per token. In addition, 7 more contexts, but at most 64 MiB.
  const long = { ...layers, "x.context_length": 40_960 };
  for (const [name, pairs, kv] of [
    ["long", long, 8192 * 4096 + 64 * MB],
    ["short", { ...layers, "x.context_length": 1024 }, 8 * 1024 * 4096],
    ["heads", { ...long, "x.attention.key_length": 64, "x.attention.value_length": 64 }, 8192 * 2048 + 64 * MB],
    ["embeds", { ...long, "x.pooling_type": 1 }, 2048 * 4096 + 64 * MB],
    ["a-layer-in-two", { ...long, "x.full_attention_interval": 2 }, 8192 * 2048 + 64 * MB],
    ["heads-by-layer", { ...long, "x.attention.head_count_kv": [0, 2, 0, 1] }, 8192 * 1536 + 64 * MB],
    ["unknown", { "x.context_length": 1024 }, null],
    ["words", { ...long, ...words }, 8192 * 4096 + 64 * MB + 2 * 200], // the words continue after the bytes that are read
  ]) {
    const path = model(name, pairs);
    const { memory, size } = (await findModels({ FM_PROXY_MODELS_DIR: folder }, folder)).find((it) => it.path === path);
    assert.equal(memory, kv === null ? null : size + kv, name);
  }
  const template = (text) => ({ ...long, ...words, "tokenizer.chat_template": text });
  const does = async (name, pairs) => {
    const abilities = await readAbilities(model(name, pairs));
    return Object.keys(abilities).filter((ability) => abilities[ability]);
  };
  assert.deepEqual(await does("plain", template("{{ messages }} {{ toolsmith }}")), []);
  assert.deepEqual(await does("calls", template("{% if tools %}")), ["tools"]);
  assert.deepEqual(await does("thinks", template("<think> {{ tools }}")), ["tools", "thinks"]);
  put(join(folder, "mmproj-other.gguf"), ggufHeader({ "general.architecture": "clip", "clip.vision.projection_dim": 512 }));
  assert.deepEqual(await does("plain", template("")), []);
  put(join(folder, "mmproj-plain.gguf"), ggufHeader({ "general.architecture": "clip", "clip.vision.projection_dim": 1024 }));
  assert.deepEqual(await does("plain", template("")), ["sees"]);
  assert.deepEqual(await does("embeds", { ...long, "x.pooling_type": 1 }), ["embeds"]);
  assert.deepEqual(await readAbilities(join(folder, "none.gguf")), { tools: false, thinks: false, embeds: false, sees: false });
});

const templates = join(root, "build", "deps", "llama", "src", "models", "templates");
test("which models think, by the templates that they have", { skip: !existsSync(templates) && `no ${templates}` }, async (t) => {
  const folder = temporaryFolder(t);
  const thinks = async (name) => {
    const path = join(folder, `${name}.gguf`);
    put(path, ggufHeader({ "tokenizer.chat_template": readFileSync(join(templates, `${name}.jinja`), "utf8") }));
    return (await readAbilities(path)).thinks;
  };
  for (const [wanted, names] of [
    [true, ["Qwen-Qwen3-0.6B", "Qwen3.5-4B", "deepseek-ai-DeepSeek-V3.2", "google-gemma-4-31B-it", "openai-gpt-oss-120b"]],
    [true, ["GLM-4.6", "MiniMax-M3", "mistralai-Ministral-3-14B-Reasoning-2512", "HuggingFaceTB-SmolLM3-3B"]],
    [false, ["Qwen3-Coder", "Qwen-Qwen2.5-7B-Instruct", "meta-llama-Llama-3.1-8B-Instruct", "google-gemma-2-2b-it"]],
    [false, ["unsloth-mistral-Devstral-Small-2507", "Mistral-Small-3.2-24B-Instruct-2506", "ibm-granite-granite-4.0"]],
    [false, ["meetkai-functionary-medium-v3.1", "GigaChat3-10B-A1.8B", "microsoft-Phi-3.5-mini-instruct"]],
  ]) {
    for (const name of names) assert.equal(await thinks(name), wanted, name);
  }
});

test("the own folder comes first, and nothing is ever written", async (t) => {
  const home = temporaryFolder(t);
  putOllama(join(home, ".ollama", "models"), "registry.ollama.ai/library/a/latest", "GGUF");
  put(join(home, ".local", "share", "fm-proxy", "models", "z.gguf"), "GGUF");
  put(join(home, ".local", "share", "fm-proxy", "models", "y.gguf.part"), "GGUF");
  const before = snapshot(home);
  assert.deepEqual(await names({}, home), ["fm-proxy z", "ollama a:latest"]);
  assert.deepEqual(snapshot(home), before);
});

const noUser = (process.getuid?.() !== 0 || spawnSync("setpriv", ["--version"]).status !== 0) && "needs root and setpriv(1)";
test("a user without a home, as in some containers, has no models, and no error", { skip: noUser }, (t) => {
  const folder = temporaryFolder(t); // that user may not be able to enter the folder of the checkout
  chmodSync(folder, 0o755);
  cpSync(new URL("../../js-shim/dist", import.meta.url), join(folder, "dist"), { recursive: true });
  const user = ["--reuid=54321", "--clear-groups"];
  const env = { PATH: process.env.PATH };
  let node = process.execPath;
  if (spawnSync("setpriv", [...user, node, "--version"]).status !== 0) {
    node = join(folder, "node");
    copyFileSync(process.execPath, node);
  }
  const code = `const { findModels, modelsFolder } = require("${folder}/dist/index.cjs");
    findModels().then((models) => console.log(modelsFolder(), models.length));`;
  const { stdout, stderr } = spawnSync("setpriv", [...user, node, "-e", code], { env, cwd: folder, encoding: "utf8" });
  assert.equal(stdout, "/.local/share/fm-proxy/models 0\n", stderr);
});

test("the own folder, on each system", () => {
  assert.equal(modelsFolder({ FM_PROXY_MODELS_DIR: "/x" }), "/x");
  assert.equal(modelsFolder({ FM_PROXY_MODELS_DIR: "x/y" }), join(process.cwd(), "x", "y"));
  assert.equal(folderOf({}, "/h", "linux"), "/h/.local/share/fm-proxy/models");
  assert.equal(folderOf({ XDG_DATA_HOME: "/d" }, "/h", "linux"), "/d/fm-proxy/models");
  assert.equal(folderOf({}, "/h", "darwin"), "/h/Library/Application Support/fm-proxy/models");
  assert.equal(folderOf({ LOCALAPPDATA: "/l" }, "/h", "win32"), "/l/fm-proxy/models");
});
