// The extension of packaging/vscode, bundled as in its VSIX, on a stand-in for the module `vscode`: what it shows, requests
// and leaves behind. tests/vscode/run.mjs does the same in a real VS Code.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { ggufHeader } from "./support/gguf.mjs";
import {
  alive,
  helperPath,
  installStub,
  root,
  sanitizerEnv,
  script,
  stubPath,
  temporaryFolder,
  until,
} from "./support/helper.mjs";
import {
  CancellationError,
  CancellationTokenSource,
  editorOf,
  loadExtension,
  loadModule,
  Position,
  Range,
  TextDocument,
  Uri,
} from "./support/vscode.mjs";

const manifest = JSON.parse(readFileSync(join(root, "packaging", "vscode", "package.json"), "utf8"));
const READY = {
  engine: { name: "llama", state: "idle", sandbox: null, gpu: null },
  models: [{ id: "tiny", default: false }, { id: "small", default: true }],
  features: { tools: true, input_tokens: false },
};
const UNAVAILABLE = { available: false, reason_code: "MODEL_NOT_READY", detail: "There is no model file in /models." };
/** VS Code shows 50 characters of a note. */
const NO_MODEL = 'No local model: point at "fm-proxy" on the right';
const never = new CancellationTokenSource().token;

/** Variables of the environment for one test. */
function setEnv(t, values) {
  for (const [name, value] of Object.entries(values)) {
    const before = process.env[name];
    t.after(() => (before === undefined ? delete process.env[name] : (process.env[name] = before)));
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
}

/** The extension with the stub as its helper, activated; the test knows whether it is ready. */
async function withStub(t, stub = {}, options = {}) {
  const logFile = join(temporaryFolder(t), "log");
  setEnv(t, { FM_STUB: JSON.stringify({ capabilities: READY, ...stub }), FM_STUB_LOG: logFile, FM_PROXY_PATH: undefined });
  const settings = { "fm-proxy.helperPath": stubPath, ...options.settings };
  const extension = loadExtension(t, { ...options, settings });
  extension.activate();
  await until(() => extension.seen.items[0].shown, "the item in the status bar");
  const log = () => {
    const text = existsSync(logFile) ? readFileSync(logFile, "utf8") : "";
    return text.split("\n").slice(0, -1).map((line) => JSON.parse(line));
  };
  return Object.assign(extension, {
    item: extension.seen.items[0],
    provider: extension.seen.providers["fm-proxy"],
    received: (method) => log().filter((entry) => entry.method === method).map(({ params }) => params),
    starts: () => log().filter((entry) => "started" in entry),
  });
}

/** The same with the built helper and the fake engine. */
async function withFake(t) {
  setEnv(t, { FM_PROXY_ENGINE: "fake", FM_PROXY_PATH: helperPath, ...sanitizerEnv });
  const extension = loadExtension(t);
  extension.activate();
  await until(() => extension.seen.items[0].shown, "the item in the status bar");
  return Object.assign(extension, { provider: extension.seen.providers["fm-proxy"] });
}

/** Sends a request to the provider's first model; collects the parts. */
async function ask({ api, provider }, text, { token = never, onPart = () => {}, ...options } = {}) {
  const [model] = await provider.provideLanguageModelChatInformation({ silent: true }, never);
  const content = [new api.LanguageModelTextPart(text)];
  const parts = [];
  const progress = { report: (part) => void onPart(parts[parts.push(part) - 1]) };
  const more = { toolMode: api.LanguageModelChatToolMode.Auto, ...options };
  await provider.provideLanguageModelChatResponse(model, [{ role: 1, content }], more, progress, token);
  return parts;
}

// The extension's manifest

test("the manifest names what the code registers, and only the user may set what runs", async (t) => {
  const { api, seen, activate } = loadExtension(t, { settings: { "fm-proxy.helperPath": "/nowhere/fm-proxy" } });
  const registered = [];
  const register = api.commands.registerCommand;
  api.commands.registerCommand = (id, run) => (registered.push(id), register(id, run));
  activate();
  const { contributes, engines, devDependencies, capabilities, extensionKind } = manifest;
  assert.deepEqual(contributes.commands.map(({ command }) => command).sort(), registered.sort());
  assert.deepEqual(contributes.languageModelChatProviders.map(({ vendor }) => vendor), Object.keys(seen.providers));
  for (const [name, { scope }] of Object.entries(contributes.configuration.properties)) assert.equal(scope, "machine", name);
  assert.equal(engines.vscode, `^${devDependencies["@types/vscode"]}`);
  // If the extension's own packages are not installed, those of the tests are used.
  const { devDependencies: ours } = JSON.parse(readFileSync(join(root, "tests", "js", "package.json"), "utf8"));
  assert.equal(ours["@types/vscode"], devDependencies["@types/vscode"]);
  assert.equal(capabilities.untrustedWorkspaces.supported, true);
  assert.deepEqual(extensionKind, ["workspace", "ui"]);
});

// The item in the status bar

test("with a model: the item has its name, and the commands are there", async (t) => {
  const { seen, item } = await withStub(t);
  assert.equal(item.text, "$(chip) small");
  assert.match(item.tooltip, /^Local model small: ready\./);
  assert.equal(item.command, "fm-proxy.recheck");
  assert.deepEqual(seen.contexts, { "fm-proxy.ready": true });
  assert.deepEqual([seen.items.length, seen.popUps, seen.notes], [1, [], []]);
});

test("without a helper: one quiet item with the reason, no command, no model, nothing to click away", async (t) => {
  setEnv(t, { FM_PROXY_PATH: undefined });
  const git = { isActive: true, exports: { enabled: false } };
  const { activate, seen, run } = loadExtension(t, { folder: join(temporaryFolder(t), "dist"), git });
  activate();
  await until(() => seen.items[0].shown, "the item in the status bar");
  const [item] = seen.items;
  assert.equal(item.text, "$(circle-slash) fm-proxy");
  assert.match(item.tooltip, /^No local model\. SPAWN_FAILED: This build of the extension has no helper program for /);
  assert.match(item.tooltip, /setting fm-proxy\.helperPath/);
  assert.notEqual(seen.contexts["fm-proxy.ready"], true);
  const provider = seen.providers["fm-proxy"];
  assert.deepEqual(await provider.provideLanguageModelChatInformation({ silent: false }, never), []);
  for (const id of ["suggestName", "writeCommitMessage", "recheck"]) await run(`fm-proxy.${id}`);
  assert.equal(seen.notes.length, 3);
  for (const note of seen.notes) assert.equal(note, NO_MODEL);
  assert.deepEqual([seen.items.length, seen.popUps, seen.picks, seen.progress], [1, [], [], []]);
});

test("the platform's package beside the bundle is found without a setting", async (t) => {
  setEnv(t, { FM_STUB: JSON.stringify({ capabilities: READY }), FM_PROXY_PATH: undefined });
  const folder = temporaryFolder(t);
  installStub(join(folder, "node_modules"));
  const { activate, seen } = loadExtension(t, { folder: join(folder, "dist") });
  activate();
  await until(() => seen.items[0].shown, "the item in the status bar");
  assert.equal(seen.items[0].text, "$(chip) small");
});

test("without a model: no command of the npm package, which a user of the extension does not have", async (t) => {
  const detail = "There is no model yet: npx fm-proxy models pull qwen3-0.6b";
  const { item } = await withStub(t, { capabilities: { ...UNAVAILABLE, detail } });
  assert.match(item.tooltip, /^No local model\. MODEL_NOT_READY: There is no model yet\.\n\n.*\n\nClick to download a model\.$/);
});

test("without a model: the helper's reason; after a re-check that finds one, its name", async (t) => {
  const { seen, item, run, change, received } = await withStub(t, { capabilities: UNAVAILABLE });
  assert.match(item.tooltip, /^No local model\. MODEL_NOT_READY: There is no model file in \/models\./);
  assert.match(item.tooltip, /setting fm-proxy\.model/);
  assert.equal(seen.contexts["fm-proxy.ready"], false);
  const asked = received("capabilities.get").length;
  await run("fm-proxy.recheck");
  assert.equal(received("capabilities.get").length, asked + 1);
  assert.deepEqual(seen.notes, [NO_MODEL]);
  process.env.FM_STUB = JSON.stringify({ capabilities: READY });
  change({ "fm-proxy.model": "/models/small.gguf" });
  await until(() => item.text === "$(chip) small", "the model's name");
  await run("fm-proxy.recheck");
  assert.equal(seen.notes[1], "Local model ready: small");
  assert.deepEqual(seen.popUps, []);
});

/** A stand-in of the hub, with one repository of the catalog. */
async function serveHub(t, bytes, { held = false } = {}) {
  const oid = createHash("sha256").update(bytes).digest("hex");
  const server = createServer(({ url }, response) => {
    if (url.startsWith("/api/models/Qwen/Qwen3-0.6B-GGUF/tree/main")) {
      const file = { type: "file", path: "Qwen3-0.6B-Q8_0.gguf", size: bytes.length, lfs: { oid } };
      return response.end(JSON.stringify([file]));
    }
    response.setHeader("content-length", bytes.length);
    response.write(bytes.subarray(0, 1000), () => !held && response.end(bytes.subarray(1000)));
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  t.after(() => (server.closeAllConnections(), server.close()));
  const data = temporaryFolder(t);
  setEnv(t, { HF_ENDPOINT: `http://127.0.0.1:${server.address().port}`, XDG_DATA_HOME: data, FM_PROXY_MODELS_DIR: undefined });
  return join(data, "fm-proxy", "models");
}

const take = (name) => (items) => items.find(({ label }) => label === name);

test("no model: a click gets one, with progress, and it is there", async (t) => {
  const folder = await serveHub(t, ggufHeader({ "general.name": "x" }));
  const { seen, item, run } = await withStub(t, { capabilities: UNAVAILABLE }, { choose: take("qwen3-0.6b") });
  assert.equal(item.text, "$(cloud-download) No model: click to get one");
  assert.match(item.tooltip, /Click to download a model\.$/);
  process.env.FM_STUB = JSON.stringify({ capabilities: READY });
  await run(item.command);
  const [{ items }] = seen.picks;
  assert.match(items[0].description, /^0\.6 GB, about 1\.7 GB of memory, Apache-2\.0$/);
  assert.ok(!items.some(({ label }) => label.includes("embedding")));
  assert.equal(seen.progress[0].title, "Downloading qwen3-0.6b");
  assert.equal(seen.progress[0].messages.at(-1), "100 % of 0.0 GB");
  assert.ok(existsSync(join(folder, "Qwen3-0.6B-Q8_0.gguf")));
  assert.deepEqual(seen.popUps, []);
  assert.equal(seen.notes.length, 1);
});

test("a model that is downloaded beside others becomes the one of the setting", async (t) => {
  const folder = await serveHub(t, ggufHeader({ "general.name": "x" }));
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "another.gguf"), "GGUF");
  const settings = {};
  const { run, starts } = await withStub(t, {}, { choose: take("qwen3-0.6b"), settings });
  await run("fm-proxy.downloadModel");
  await until(() => starts().length === 2, "a helper with the new setting");
  assert.ok(starts()[1].args.join(" ").includes("Qwen3-0.6B-Q8_0"), starts()[1].args.join(" "));
});

test("a download that is cancelled leaves no model and no message; nothing chosen, nothing done", async (t) => {
  const folder = await serveHub(t, Buffer.concat([ggufHeader({}), Buffer.alloc(5000)]), { held: true });
  const onProgress = ({ cancel }) => setTimeout(cancel, 300);
  const { seen, run } = await withStub(t, { capabilities: UNAVAILABLE }, { choose: take("qwen3-0.6b"), onProgress });
  await run("fm-proxy.downloadModel");
  assert.deepEqual(seen.popUps, []);
  assert.ok(!existsSync(join(folder, "Qwen3-0.6B-Q8_0.gguf")));
  const none = await withStub(t, { capabilities: UNAVAILABLE });
  await none.run("fm-proxy.downloadModel");
  assert.deepEqual([none.seen.picks.length, none.seen.progress.length], [1, 0]);
});

test("a changed setting replaces the helper, and the old one ends", async (t) => {
  const { starts, change, provider } = await withStub(t);
  let told = 0;
  provider.onDidChangeLanguageModelChatInformation(() => told++);
  change({ "editor.fontSize": 12 });
  change({ "fm-proxy.model": "~/m.gguf" });
  await until(() => starts().length === 2, "another helper");
  const [old, fresh] = starts();
  await until(() => !alive(old.started), "the end of the old helper");
  assert.ok(!old.args.includes("--model"));
  assert.equal(fresh.args[fresh.args.indexOf("--model") + 1], join(process.env.HOME, "m.gguf"));
  assert.ok(told > 0);
});

test("the engine: by itself the helper's own choice, else the one of the setting", async (t) => {
  const { contributes } = manifest;
  const { default: usual, enum: known, enumDescriptions } = contributes.configuration.properties["fm-proxy.engine"];
  assert.deepEqual([known.includes(usual), known.length], [true, enumDescriptions.length]);
  const { starts, change } = await withStub(t, {}, { settings: { "fm-proxy.engine": usual } });
  change({ "fm-proxy.engine": "llama" });
  await until(() => starts().length === 2, "another helper");
  const [first, second] = starts();
  assert.ok(!first.args.includes("--engine"));
  assert.equal(second.args[second.args.indexOf("--engine") + 1], "llama");
});

test("with several engines: why each is not there, and what helps; Apple's model has a short context", async (t) => {
  const off = { name: "apple", available: false, reason_code: "AI_DISABLED", detail: "Turn it on." };
  const none = { name: "llama", available: false, reason_code: "MODEL_NOT_READY", detail: "There is no file." };
  const capabilities = { available: false, reason_code: "AI_DISABLED", detail: "apple: off; llama: no file", order: [off, none] };
  const { item, provider, change } = await withStub(t, { capabilities });
  assert.match(item.tooltip, /^No local model\. AI_DISABLED: apple: off; llama: no file\n\n.*setting fm-proxy\.model/);
  const models = [{ id: "apple", default: true, engine: "apple" }, { id: "small", default: false, engine: "llama" }];
  process.env.FM_STUB = JSON.stringify({ capabilities: { ...READY, models } });
  change({ "fm-proxy.model": "" });
  await until(() => item.text === "$(chip) apple", "the model's name");
  const told = await provider.provideLanguageModelChatInformation({ silent: true }, never);
  assert.deepEqual(told.map(({ maxInputTokens, maxOutputTokens }) => maxInputTokens + maxOutputTokens), [4096, 8192]);
});

test("Apple's model alone that is not ready: no file helps", async (t) => {
  const settings = { "fm-proxy.engine": "apple" };
  const { item } = await withStub(t, { capabilities: { ...UNAVAILABLE, detail: "macOS is downloading it." } }, { settings });
  if (process.platform !== "darwin") return assert.match(item.tooltip, /^No local model\. NOT_DARWIN: /);
  assert.match(item.tooltip, /^No local model\. MODEL_NOT_READY: macOS is downloading it\.\n\nClick/);
});

test("a helper that fails for good takes the name from the status bar, without a pop-up", async (t) => {
  const extension = await withStub(t, { start: "die-at-create" });
  for (let time = 0; time < 6; time++) await ask(extension, "hello").catch(() => {});
  await until(() => extension.item.text === "$(circle-slash) fm-proxy", "the reason in the status bar");
  assert.match(extension.item.tooltip, /HELPER_UNHEALTHY/);
  assert.deepEqual(extension.seen.popUps, []);
});

// The chat provider

test("the provider lists the helper's models, the default one first", async (t) => {
  const { provider } = await withStub(t);
  const models = await provider.provideLanguageModelChatInformation({ silent: true }, never);
  assert.deepEqual(models.map(({ id }) => id), ["small", "tiny"]);
  for (const model of models) {
    assert.ok(model.maxInputTokens > 0 && model.maxOutputTokens > 0 && model.version !== "" && model.family !== "");
    assert.deepEqual(model.capabilities, { imageInput: false, toolCalling: true });
  }
});

test("the text is streamed: parts come while the model still answers, and cancelling stops it", async (t) => {
  const extension = await withStub(t, { answers: [["one ", "two ", { hang: "soft" }, "three"], ["all ", "of ", "it"]] });
  const source = new CancellationTokenSource();
  const seen = [];
  const onPart = ({ value }) => {
    seen.push(value);
    if (seen.length === 2) source.cancel();
  };
  const answer = ask(extension, "count", { token: source.token, onPart });
  await assert.rejects(answer, CancellationError);
  assert.deepEqual(seen, ["one ", "two "]);
  await until(() => extension.received("$/cancelRequest").length === 1, "the cancel");
  assert.deepEqual((await ask(extension, "again")).map(({ value }) => value), ["all ", "of ", "it"]);
});

test("a request that was cancelled before it began is not sent", async (t) => {
  const extension = await withStub(t);
  const source = new CancellationTokenSource();
  source.cancel();
  await assert.rejects(ask(extension, "hello", { token: source.token }), CancellationError);
  assert.deepEqual(extension.received("responses.create"), []);
});

test("messages, tools and options as the helper takes them", async (t) => {
  const { api, provider, received } = await withStub(t, answers("It is noon."));
  const text = (value) => new api.LanguageModelTextPart(value);
  const [model] = await provider.provideLanguageModelChatInformation({ silent: true }, never);
  const messages = [
    { role: 3, content: [text("Be brief.")] },
    { role: 1, content: [text("What is "), { mimeType: "cache_control", data: "" }, text("the time?")] },
    { role: 2, content: [text("I look."), new api.LanguageModelToolCallPart("c1", "clock", { zone: "UTC" })] },
    { role: 1, content: [new api.LanguageModelToolResultPart("c1", [text("12:00"), { a: 1 }]), text("Well?")] },
  ];
  const options = {
    modelOptions: { temperature: 0.5, max_tokens: 7, unknown: 1 },
    tools: [
      { name: "clock", description: "tells the time", inputSchema: { type: "object" } },
      { name: "bell", description: "d" },
    ],
    toolMode: 2,
  };
  await provider.provideLanguageModelChatResponse(model, messages, options, { report() {} }, never);
  assert.deepEqual(received("responses.create"), [
    {
      model: "small",
      input: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "What is the time?" },
        { role: "assistant", content: "I look." },
        { type: "function_call", call_id: "c1", name: "clock", arguments: '{"zone":"UTC"}' },
        { type: "function_call_output", call_id: "c1", output: '12:00{"a":1}' },
        { role: "user", content: "Well?" },
      ],
      store: false,
      max_output_tokens: 7,
      temperature: 0.5,
      tools: [
        { type: "function", name: "clock", description: "tells the time", parameters: { type: "object" }, strict: false },
        { type: "function", name: "bell", description: "d", parameters: { type: "object", properties: {} }, strict: false },
      ],
      tool_choice: "required",
      stream: true,
    },
  ]);
});

test("failures are the errors that VS Code knows, with the helper's sentence", async (t) => {
  const failures = [["NOT_FOUND", "No such model."], ["GUARDRAIL", "Refused."], ["CONTEXT_OVERFLOW", "Too long: shorten it."]];
  const extension = await withStub(t, { answers: failures.map((fail) => [{ fail }]) });
  await assert.rejects(ask(extension, "one"), { code: "NotFound", message: "No such model." });
  await assert.rejects(ask(extension, "two"), { code: "Blocked", message: "Refused." });
  await assert.rejects(ask(extension, "three"), { message: "Too long: shorten it." });
});

const unbuilt = !existsSync(helperPath) && `${helperPath} is not built`;
test("the real helper with the fake engine: text, calls of tools, tokens", { skip: unbuilt }, async (t) => {
  const extension = await withFake(t);
  const { api, provider } = extension;
  assert.deepEqual((await ask(extension, "Why is the sky blue?")).map(({ value }) => value).join(""), "Why is the sky blue?");
  const tools = [{ name: "clock", description: "tells the time", inputSchema: { type: "object" } }];
  const parts = await ask(extension, script({ tool_call: { name: "clock", arguments: '{"zone":"UTC"}' } }), { tools });
  assert.equal(parts.length, 1);
  assert.ok(parts[0] instanceof api.LanguageModelToolCallPart);
  assert.deepEqual([parts[0].name, parts[0].input], ["clock", { zone: "UTC" }]);
  const cut = ask(extension, script({ tool_call: { name: "clock", arguments: '{"zone":' } }), { tools });
  await assert.rejects(cut, /call of the tool clock is not complete/);
  const [model] = await provider.provideLanguageModelChatInformation({ silent: true }, never);
  const count = (text) => provider.provideTokenCount(model, text, never);
  assert.equal(await count(""), 0);
  const [one, three] = [await count("word"), await count("three words here")];
  assert.equal(three - one, 2);
  assert.equal(one, 1);
  const message = { role: 1, content: [new api.LanguageModelTextPart("three words here")] };
  assert.ok((await count(message)) >= three);
});

test("a text has its own tokens, without those of the chat template; a message has them all", async (t) => {
  const capabilities = { ...READY, features: { ...READY.features, input_tokens: true } };
  const { api, provider, received } = await withStub(t, { capabilities, frame: 30 });
  const [model] = await provider.provideLanguageModelChatInformation({ silent: true }, never);
  const count = (text) => provider.provideTokenCount(model, text, never);
  assert.equal(await count("three words here"), 3);
  assert.equal(await count("and two"), 2);
  assert.equal(await count({ role: 1, content: [new api.LanguageModelTextPart("three words here")] }), 33);
  const inputs = received("responses.input_tokens").map(({ input }) => input);
  assert.deepEqual(inputs, ["three words here", "a", "and two", [{ role: "user", content: "three words here" }]]);
});

test("where the helper can't count tokens, an estimate by length", async (t) => {
  const { provider, received } = await withStub(t);
  const [model] = await provider.provideLanguageModelChatInformation({ silent: true }, never);
  assert.equal(await provider.provideTokenCount(model, "12345678", never), 2);
  assert.deepEqual(received("responses.input_tokens"), []);
});

// Suggest a Name

const CODE = "function f(text) {\n  return parse(text.split('-'));\n}\n";
const rangeOfName = new Range(0, 9, 0, 10);
const answers = (...texts) => ({ answers: texts.map((text) => [text]) });

test("a name: asked three times, each name offered once, and what is declared is renamed by the language", async (t) => {
  const document = new TextDocument(CODE);
  const renamed = [];
  const { seen, run, received, item, api } = await withStub(
    t,
    answers("Sure: parse-dates", "parse dates\nbecause it does", "`Split text`"),
    {
      editor: editorOf(document, CODE.trim()),
      choose: (items) => items[1],
      executes: {
        "vscode.executeDocumentSymbolProvider": () => [{ name: "f", selectionRange: rangeOfName, children: [] }],
        "vscode.executeDocumentRenameProvider": (uri, at, name) => {
          renamed.push([uri, at, name]);
          const edit = new api.WorkspaceEdit();
          edit.replace(uri, rangeOfName, name);
          return edit;
        },
      },
    },
  );
  assert.equal(item.text, "$(chip) small");
  await run("fm-proxy.suggestName");
  assert.deepEqual(seen.picks[0].items.map(({ label }) => label), ["parseDates", "splitText"]);
  assert.equal(seen.picks[0].options.placeHolder, "A new name for f");
  assert.deepEqual(renamed, [[document.uri, new Position(0, 9), "splitText"]]);
  assert.equal(document.content, CODE.replace("function f(", "function splitText("));
  const [progress] = seen.progress;
  assert.deepEqual([progress.location, progress.cancellable, progress.messages], [15, true, ["1 of 3", "2 of 3", "3 of 3"]]);
  const requests = received("responses.create");
  assert.deepEqual(requests.map(({ input }) => input), Array(3).fill(CODE.trim()));
  assert.deepEqual(requests.map(({ temperature }) => temperature), [0, 0.9, 0.9]);
  assert.ok(requests.every(({ seed }) => seed === undefined));
  assert.deepEqual(seen.popUps, []);
});

test("a name that stands alone is replaced where no extension renames; code without a name gets one before it", async (t) => {
  const document = new TextDocument("total_sum = 1\nprint(total_sum)\n", "python");
  const editor = editorOf(document, "total_sum");
  const said = ["total count", "total count", "total count", "the total", "the total", "the total"];
  const extension = await withStub(t, answers(...said), { editor, choose: (items) => items[0] });
  await extension.run("fm-proxy.suggestName");
  assert.equal(document.content, "total_count = 1\nprint(total_sum)\n");
  const [{ input }] = extension.received("responses.create");
  assert.match(input, /^A better name for `total_sum` in this code:\n\ntotal_sum = 1\n/);
  editor.selection = document.find("print(total_sum)");
  await extension.run("fm-proxy.suggestName");
  assert.equal(document.content, "total_count = 1\nthe_total print(total_sum)\n");
});

test("no selection: the word at the cursor; nothing there: a sentence that says what to do", async (t) => {
  const document = new TextDocument("let oldName = 1;\n\n");
  const editor = editorOf(document, new Range(0, 6, 0, 6));
  const stub = answers("user age", "user age", "user age");
  const extension = await withStub(t, stub, { editor, choose: (items) => items[0] });
  await extension.run("fm-proxy.suggestName");
  assert.equal(document.content, "let userAge = 1;\n\n");
  editor.selection = new Range(1, 0, 1, 0);
  await extension.run("fm-proxy.suggestName");
  assert.deepEqual(extension.seen.popUps, [
    { kind: "information", message: "fm-proxy: Select code in an editor, then ask for a name again." },
  ]);
});

test("code that has changed while the model thought is left alone, and the user is told", async (t) => {
  for (const selected of ["oldName", "oldName + 1"]) {
    const document = new TextDocument("let oldName = oldName + 1;\n");
    const onProgress = () => (document.content = `// typed meanwhile\n${document.content}`);
    const editor = editorOf(document, selected);
    const stub = answers("user age", "user age", "user age");
    const { run, seen } = await withStub(t, stub, { editor, onProgress, choose: (items) => items[0] });
    await run("fm-proxy.suggestName");
    assert.equal(document.content, "// typed meanwhile\nlet oldName = oldName + 1;\n");
    const message = "fm-proxy: The code has changed meanwhile, so nothing was named. Select it, then ask for a name again.";
    assert.deepEqual(seen.popUps, [{ kind: "information", message }]);
  }
});

const LONG = ["the user wants to parse dates", `parse-${"x".repeat(40)}`, "It is far too big to name."];
const NAMELESS = ["42 dates", "untitled", "", ...LONG];
test("answers that name nothing are not offered: the code's own words are", async (t) => {
  const editor = editorOf(new TextDocument(CODE), CODE.trim());
  const { run, seen, received } = await withStub(t, answers(...NAMELESS), { editor });
  await run("fm-proxy.suggestName");
  assert.equal(received("responses.create").length, 6);
  assert.deepEqual(seen.picks[0].items, [
    { label: "parseSplit", name: "parseSplit", description: "made of the code's own words" },
  ]);
});

test("a name of the code's own words can stand in code: no number begins it", async (t) => {
  const editor = editorOf(new TextDocument("0xff & mask\n"), "0xff & mask");
  const { run, seen } = await withStub(t, answers(...NAMELESS), { editor });
  await run("fm-proxy.suggestName");
  assert.deepEqual(seen.picks[0].items.map(({ name }) => name), ["mask"]);
});

test("the model's own names come before the one of the code's words", async (t) => {
  const editor = editorOf(new TextDocument(CODE), CODE.trim());
  const { run, seen } = await withStub(t, answers("untitled", "untitled", "split dates", "split dates"), { editor });
  await run("fm-proxy.suggestName");
  assert.deepEqual(seen.picks[0].items.map(({ name }) => name), ["splitDates", "parseSplit"]);
});

test("a name that both give is the model's", async (t) => {
  const editor = editorOf(new TextDocument(CODE), CODE.trim());
  const { run, seen } = await withStub(t, answers("parse split", "parse split", "untitled", "untitled"), { editor });
  await run("fm-proxy.suggestName");
  assert.deepEqual(seen.picks[0].items, [{ label: "parseSplit", name: "parseSplit", description: "" }]);
});

test("cancelling a name stops the model and shows nothing", async (t) => {
  const editor = editorOf(new TextDocument(CODE), CODE.trim());
  let cancel;
  const extension = await withStub(t, { answers: [[{ hang: "soft" }]] }, { editor, onProgress: (it) => (cancel = it.cancel) });
  const running = extension.run("fm-proxy.suggestName");
  await until(() => extension.received("responses.create").length === 1, "the request");
  cancel();
  await running;
  await until(() => extension.received("$/cancelRequest").length === 1, "the cancel");
  assert.deepEqual([extension.seen.picks, extension.seen.popUps], [[], []]);
});

// Write a Commit Message

/** The git extension with repositories that have these changes. */
function gitWith(...repositories) {
  const made = repositories.map(({ staged = "", unstaged = "", changed = [], added = [], name = "repo" }) => ({
    rootUri: Uri.file(`/work/${name}`),
    inputBox: { value: "" },
    state: {
      indexChanges: staged === "" ? [] : changed.map((path) => ({ uri: Uri.file(`/work/${path}`), status: 0 })),
      workingTreeChanges: [
        ...changed.map((path) => ({ uri: Uri.file(`/work/${path}`), status: 5 })),
        ...added.map((path) => ({ uri: Uri.file(`/work/${path}`), status: 7 })),
      ],
    },
    diff: async (cached) => (cached ? staged : unstaged),
  }));
  const of = (uri) => made.find(({ rootUri }) => uri.path.startsWith(rootUri.path));
  // The extension returns a new object each time.
  const api = {
    get repositories() {
      return made.map((repository) => ({ ...repository }));
    },
    getRepository: (uri) => (of(uri) === undefined ? null : { ...of(uri) }),
  };
  return { git: { isActive: false, activate: async () => ({ enabled: true, getAPI: () => api }) }, repositories: made };
}
const STAGED = "diff --git a/date.js b/date.js\n+staged\n";

test("a commit message from the staged changes, into the box; what the user wrote stays", async (t) => {
  const unstaged = "diff --git a/x b/x\n+not this\n";
  const { git, repositories: [repository] } = gitWith({ staged: STAGED, unstaged, changed: ["date.js"] });
  const texts = ['Here is the message:\n"Fix the parser of dates."', "Parse dates with a zone", "Parse all dates", "Parse dates"];
  const stub = answers(...texts);
  const { run, received, seen } = await withStub(t, stub, { git });
  await run("fm-proxy.writeCommitMessage");
  assert.equal(repository.inputBox.value, "Fix the parser of dates");
  assert.equal(received("responses.create")[0].input, STAGED);
  await run("fm-proxy.writeCommitMessage");
  assert.equal(repository.inputBox.value, "Parse dates with a zone");
  repository.inputBox.value = "Closes 7";
  await run("fm-proxy.writeCommitMessage");
  assert.equal(repository.inputBox.value, "Parse all dates\n\nCloses 7");
  await run("fm-proxy.writeCommitMessage");
  assert.equal(repository.inputBox.value, "Parse dates\n\nCloses 7");
  assert.deepEqual([seen.progress.length, seen.progress[0].cancellable, seen.popUps], [4, true, []]);
});

test("nothing staged: all changes, with the names of new files", async (t) => {
  const { git } = gitWith({ unstaged: "diff --git a/x b/x\n+x\n", changed: ["x"], added: ["new.js"] });
  const { run, received } = await withStub(t, answers("Add new things"), { git });
  await run("fm-proxy.writeCommitMessage");
  assert.equal(received("responses.create")[0].input, "new file: new.js\ndiff --git a/x b/x\n+x\n");
});

test("a model without a usable message: one that names the files, and a note that says so", async (t) => {
  const { git, repositories: [repository] } = gitWith({ added: ["a.js", "b.js", "c.js"] });
  const { run, seen } = await withStub(t, answers("word", "y".repeat(90)), { git });
  await run("fm-proxy.writeCommitMessage");
  assert.equal(repository.inputBox.value, "Add a.js and 2 more files");
  assert.deepEqual(seen.notes, ["No usable answer: this message names the files"]);
});

test("cancelling a commit message leaves the box alone; a failure is one error message", async (t) => {
  const { git, repositories: [repository] } = gitWith({ staged: STAGED });
  let cancel;
  const stub = { answers: [[{ hang: "soft" }], [{ fail: ["INVALID_REQUEST", "The prompt is wrong.", { status: 400 }] }]] };
  const extension = await withStub(t, stub, { git, onProgress: (it) => (cancel = it.cancel) });
  repository.inputBox.value = "mine";
  const running = extension.run("fm-proxy.writeCommitMessage");
  await until(() => extension.received("responses.create").length === 1, "the request");
  cancel();
  await running;
  assert.deepEqual(extension.seen.popUps, []);
  await extension.run("fm-proxy.writeCommitMessage");
  assert.deepEqual(extension.seen.popUps, [{ kind: "error", message: "fm-proxy: The prompt is wrong." }]);
  assert.equal(repository.inputBox.value, "mine");
});

test("several repositories: the one whose menu was used, else the one of the editor, else the user's choice", async (t) => {
  const { git, repositories: [one, other] } = gitWith({ name: "one", staged: STAGED }, { name: "other", staged: STAGED });
  const editor = editorOf(new TextDocument("", "javascript", Uri.file("/work/other/a.js")), new Range(0, 0, 0, 0));
  const options = { git, editor, choose: (items) => items[1] };
  const { run, seen } = await withStub(t, answers("First message", "Second message", "Third message"), options);
  await run("fm-proxy.writeCommitMessage", { rootUri: one.rootUri });
  assert.deepEqual([one.inputBox.value, other.inputBox.value], ["First message", ""]);
  await run("fm-proxy.writeCommitMessage");
  assert.deepEqual([one.inputBox.value, other.inputBox.value], ["First message", "Second message"]);
  assert.deepEqual(seen.picks, []);
  editor.document.uri = Uri.file("/elsewhere/a.js");
  await run("fm-proxy.writeCommitMessage");
  assert.equal(other.inputBox.value, "Third message");
  assert.deepEqual(seen.picks[0].items.map(({ label }) => label), ["one", "other"]);
});

for (const [name, git, message] of [
  ["no changes", gitWith({}).git, "There is nothing to commit. Change or stage a file, then try again."],
  [
    "no repository",
    gitWith().git,
    "There is no Git repository here. Open a folder that has one, or run `git init`, then try again.",
  ],
  [
    "Git switched off",
    { isActive: true, exports: { enabled: false } },
    "Git is switched off. Set git.enabled to true in the settings, then try again.",
  ],
  [
    "no git extension",
    undefined,
    "VS Code's own extension Git is not running here. Enable it, or trust the workspace, then try again.",
  ],
]) {
  test(`${name}: a sentence that says what to do`, async (t) => {
    const { run, seen, received } = await withStub(t, {}, { git });
    await run("fm-proxy.writeCommitMessage");
    assert.deepEqual(seen.popUps, [{ kind: "information", message: `fm-proxy: ${message}` }]);
    assert.deepEqual(received("responses.create"), []);
  });
}

// The end

test("deactivation waits until no process is left, whatever is under way", async (t) => {
  const extension = await withStub(t, { shutdown: "ignore", answers: [["one ", { hang: "hard" }]] });
  const pids = extension.starts().map(({ started }) => started);
  assert.equal(pids.length, 1);
  const answer = assert.rejects(ask(extension, "count"));
  await until(() => extension.received("responses.create").length === 1, "the request");
  await extension.deactivate();
  assert.deepEqual(pids.map(alive), [false]);
  await answer;
  assert.equal(extension.seen.items[0].shown, false);
});

test("deactivation also waits for the helper of earlier settings", async (t) => {
  const extension = await withStub(t, { shutdown: "ignore" });
  const [{ started }] = extension.starts();
  extension.change({ "fm-proxy.model": "other" });
  await extension.deactivate();
  assert.equal(alive(started), false);
  assert.deepEqual(extension.starts().map(({ started: pid }) => alive(pid)).includes(true), false);
});

// Names and diffs

test("names in the style of the code", async () => {
  const { inStyle, styleOf, wordsOfCode } = await loadModule("identifiers");
  for (const [current, language, style] of [
    [undefined, "javascript", "camel"], [undefined, "python", "snake"], [undefined, "plaintext", "kebab"],
    ["Parser", "javascript", "pascal"], ["MAX_SIZE", "rust", "upper"], ["is_on", "javascript", "snake"],
    ["isOn", "python", "camel"], ["a-b", "css", "kebab"], ["f", "python", "snake"], ["T", "typescript", "pascal"],
  ]) {
    assert.equal(styleOf(current, language), style, `${current} in ${language}`);
  }
  const styles = ["camel", "pascal", "snake", "upper", "kebab"];
  assert.deepEqual(
    styles.map((style) => inStyle("parse-all-dates", style)),
    ["parseAllDates", "ParseAllDates", "parse_all_dates", "PARSE_ALL_DATES", "parse-all-dates"],
  );
  assert.equal(wordsOfCode("export const parseDates = (text) => text.split(2);"), "parse Dates text text split");
});

test("a long diff keeps the head of each file and says what is missing", async () => {
  const { shortened } = await loadModule("diff");
  const file = (name, lines) => `diff --git a/${name} b/${name}\n${"+a line of text\n".repeat(lines)}`;
  const small = file("small", 2);
  assert.equal(shortened(small, 1000), small);
  const short = shortened(file("big", 500) + small + file("huge", 5000), 3000);
  assert.ok(short.length <= 3000 && short.length > 2800, `${short.length}`);
  assert.deepEqual(short.match(/^diff --git a\/\w+/gm), ["diff --git a/big", "diff --git a/small", "diff --git a/huge"]);
  assert.ok(short.includes(small));
  assert.deepEqual(short.match(/^\[\d+ more lines\]$/gm).length, 2);
  const many = shortened(Array.from({ length: 900 }, (_, at) => file(`f${at}`, 40)).join(""), 2000);
  assert.ok(many.length <= 2000, `${many.length}`);
});

test("a subject line from what models say", async () => {
  const { subjectOf, judgeSubject, subjectFromFiles } = await loadModule("diff");
  for (const [said, subject] of [
    ["fix the parser", "Fix the parser"],
    ["```\nFix the parser.\n```", "Fix the parser"],
    ["Commit message: `Fix the parser`\n\nIt was broken.", "Fix the parser"],
    ["Sure, here:\nFix", "Sure, here:"],
    ["- **Fix the parser**", "Fix the parser"],
    ['Message: "Fix the parser"', "Fix the parser"],
    ["\u201cFix  the\tparser...\u201d", "Fix the parser..."],
    ["", ""],
  ]) {
    assert.equal(subjectOf(said), subject);
  }
  assert.equal(judgeSubject("Fix the parser"), true);
  const none = ["", "Fix", "Sure, here:", "That answer can't be used", "x y".repeat(30)];
  for (const bad of [...none, "new file: a b", "diff --git a b", "@@ -1 +1 @@"]) {
    assert.notEqual(judgeSubject(bad), true, bad);
  }
  assert.equal(subjectFromFiles(["a.js"]), "Update a.js");
  assert.equal(subjectFromFiles(["a.js", "b.js"]), "Update a.js and 1 more file");
  assert.ok(subjectFromFiles([`${"long/".repeat(40)}a.js`]).length <= 72);
});

// What is packed

test("the types hold", async () => {
  const { typeCheck } = await import("../../packaging/vscode/bundle.mjs");
  assert.equal(typeCheck(), "");
});

const unpacked = !existsSync(join(root, "packaging", "vscode", "node_modules")) && "npm ci in packaging/vscode was not run";
const packed = "the VSIX: of a platform with its package, programs executable; of all without; the same each time";
test(packed, { skip: unpacked }, async (t) => {
  const { build, modesOf } = await import("../../packaging/vscode/build.mjs");
  const folder = temporaryFolder(t);
  const platformPackage = join(folder, "package");
  cpSync(join(installStub(join(folder, "node_modules")), ".."), platformPackage, { recursive: true, dereference: true });
  const file = join(platformPackage, "package.json");
  writeFileSync(file, JSON.stringify({ name: "@fm-proxy/linux-x64", version: "0.1.0" }));
  writeFileSync(join(platformPackage, "bin", "fm-engine-llama.json"), "{}");
  const platform = { target: "linux-x64", platformPackage };
  const [full, universal] = [await build({ ...platform, out: join(folder, "one") }), await build({ out: join(folder, "one") })];
  // Other users can't read new files of this user.
  const before = process.umask(0o077);
  t.after(() => process.umask(before));
  const again = await build({ ...platform, out: join(folder, "two") });
  assert.ok(full.endsWith(`fm-proxy-linux-x64-${manifest.version}.vsix`), full);
  const modes = modesOf(full);
  assert.equal(modes.get("extension/node_modules/@fm-proxy/linux-x64/bin/fm-proxy") & 0o777, 0o755);
  assert.equal(modes.get("extension/node_modules/@fm-proxy/linux-x64/bin/fm-engine-llama.json") & 0o777, 0o644);
  for (const name of ["dist/extension.js", "package.json", "readme.md", "LICENSE.txt", "THIRD-PARTY-NOTICES"]) {
    assert.ok([modes, modesOf(universal)].every((each) => each.has(`extension/${name}`)), name);
  }
  assert.deepEqual([...modesOf(universal).keys()].filter((name) => name.includes("node_modules")), []);
  assert.ok(readFileSync(full).equals(readFileSync(again)));
  await assert.rejects(build({ target: "linux-x64" }), /belong together/);
  await assert.rejects(build({ target: "linux-arm64", platformPackage }), /not of @fm-proxy\/linux-arm64/);
  chmodSync(join(platformPackage, "bin", "fm-proxy"), 0o644);
  await assert.rejects(build({ ...platform, out: join(folder, "three") }), /is not executable/);
});
