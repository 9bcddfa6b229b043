// The packed tarball, installed as by a user: both module formats, the types, and no files that do not belong there.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
  symlinkSync,
} from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { before, after, test } from "node:test";
import { promisify } from "node:util";
import { isUpToDate as isReferenceUpToDate } from "../../js-shim/scripts/api.mjs";
import { isUpToDate } from "../../js-shim/scripts/options.mjs";
import { helperPath, installStub, root, stubPath, temporaryFolder } from "./support/helper.mjs";
import { repeated, undisturbed } from "./support/patience.mjs";

const run = promisify(execFile);
const shim = join(root, "js-shim");
const cleanups = [];
let folder;

before(async () => {
  folder = temporaryFolder({ after: (it) => cleanups.push(it) });
  const modules = join(folder, "node_modules");
  mkdirSync(modules);
  await run("npm", ["pack", "--ignore-scripts", "--pack-destination", folder], { cwd: shim });
  const [tarball] = readdirSync(folder).filter((name) => name.endsWith(".tgz"));
  await run("tar", ["-xzf", join(folder, tarball), "-C", modules]);
  await run("mv", [join(modules, "package"), join(modules, "fm-proxy")]);
});
after(() => cleanups.forEach((cleanup) => cleanup()));

const body = `
const client = createClient({ helperPath: ${JSON.stringify(stubPath)} });
const response = await client.responses.create({ input: "one two" });
console.log(textOfResponse(response), (await (await client.fetch("http://x/models")).json()).data.length);
await client.close();
`;

test("as an ES module", async () => {
  writeFileSync(join(folder, "a.mjs"), `import { createClient, textOfResponse } from "fm-proxy";${body}`);
  assert.equal((await run(process.execPath, [join(folder, "a.mjs")])).stdout, "one two 1\n");
});

test("as CommonJS", async () => {
  const code = `const { createClient, textOfResponse } = require("fm-proxy"); (async () => {${body}})();`;
  writeFileSync(join(folder, "a.cjs"), code);
  assert.equal((await run(process.execPath, [join(folder, "a.cjs")])).stdout, "one two 1\n");
});

test("a schema is checked in a host that makes no code from strings", async () => {
  const code = `require("fm-proxy").createClient({ helperPath: ${JSON.stringify(stubPath)} }).safe
  .generate({ input: "one", schema: { type: "number" }, retries: 0 }).then(({ error }) => console.log(error.code));`;
  const { stdout } = await run(process.execPath, ["--disallow-code-generation-from-strings", "-e", code], { cwd: folder });
  assert.equal(stdout, "NO_VALID_ANSWER\n");
});

test("the types, for both", async () => {
  const code = `
import { createClient, FmError, type ResponseEvent, type CompatibilityReport } from "fm-proxy";
export async function f(): Promise<string> {
  const client = createClient({ engine: "fake" });
  for await (const event of client.responses.create({ input: "x", stream: true })) { const it: ResponseEvent = event; void it; }
  const report: CompatibilityReport = await client.compatibility.check();
  const fetch: typeof globalThis.fetch = client.fetch; void fetch;
  // @ts-expect-error messages are required
  client.chat.completions.create({});
  void client.embeddings.create({ input: ["x", "y"] });
  // @ts-expect-error neither texts nor tokens
  void client.embeddings.create({ input: [{}] });
  try { return (await client.responses.create({ input: "x" })).id; }
  catch (error) { return error instanceof FmError ? error.code : String(report.reason_code); }
}
`;
  for (const name of ["t.mts", "t.cts"]) writeFileSync(join(folder, name), code);
  await compile("t.mts", "t.cts");
});

test("the types, in a host without Node's types and with the library of 2022 alone", async () => {
  const code = `
import { createClient, type ResponseObject } from "fm-proxy";
export const ask = async (): Promise<ResponseObject> => createClient().responses.create({ input: "x" });
`;
  writeFileSync(join(folder, "plain.mts"), code);
  const bundler = ["--module", "esnext", "--moduleResolution", "bundler"];
  for (const options of [[], bundler]) await compileAlone("plain.mts", "--typeRoots", "none", ...options);
});

const NODE_TYPES = ["--typeRoots", join(shim, "node_modules", "@types"), "--types", "node"];
/** Compiles files of the folder with TypeScript's strictest settings, with Node's types; `more` are arguments. */
const compile = (...more) => compileAlone(...NODE_TYPES, ...more);
const compileAlone = (...more) => compileWith(folder, ...more);
const compileIn = (app, ...more) => compileWith(app, ...NODE_TYPES, ...more);

async function compileWith(cwd, ...more) {
  const tsc = createRequire(join(shim, "package.json")).resolve("typescript/bin/tsc");
  const args = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--module", "nodenext", "--target", "es2022"];
  await run(process.execPath, [tsc, ...args, ...more], { cwd }).catch(({ stdout }) => assert.fail(stdout));
}

test("import and require give one FmError, and so do the files that are loaded later", async () => {
  const code = `
import { createRequire } from "node:module";
import * as esm from "fm-proxy";
const cjs = createRequire(import.meta.url)("fm-proxy");
const isOurs = (reason) => reason instanceof cjs.FmError;
const ofLater = await esm.pullModel("no reference").catch(isOurs);
const ofValidate = await esm.createClient().generate({ input: "x", schema: { $async: true } }).catch(isOurs);
const same = Object.keys(esm).sort().join() === Object.keys(cjs).sort().join();
console.log(same, esm.FmError === cjs.FmError, ofLater, ofValidate);
`;
  writeFileSync(join(folder, "one.mjs"), code);
  assert.equal((await run(process.execPath, [join(folder, "one.mjs")])).stdout, "true true true true\n");
});

test("before its first call a client loads neither the other files nor what starts programs", async () => {
  const code = `
const before = new Set(process.moduleLoadList);
require("fm-proxy").createClient();
const files = Object.keys(require.cache).map((path) => require("node:path").basename(path)).filter((name) => name !== "lazy.cjs");
const heavy = /NativeModule (child_process|crypto|http|stream|worker_threads|internal\\/fs\\/promises)$/;
console.log(files.join(), process.moduleLoadList.filter((name) => !before.has(name) && heavy.test(name)).join());
`;
  writeFileSync(join(folder, "lazy.cjs"), code);
  assert.equal((await run(process.execPath, [join(folder, "lazy.cjs")])).stdout, "index.cjs,errors.cjs \n");
});

test("what a client loads before its first call is less than two fifths of the package's code", () => {
  const dist = join(folder, "node_modules", "fm-proxy", "dist");
  const bytes = (...files) => files.reduce((sum, file) => sum + statSync(join(dist, `${file}.cjs`)).size, 0);
  const [first, rest] = [bytes("index", "errors"), bytes("later", "validate")];
  assert.ok(first * 5 < (first + rest) * 2, `${first} of ${first + rest} bytes`);
});

/** The processor time of a fresh Node with this code, in ms: the median of five. */
async function processorTime(...args) {
  const code = `${args.pop()}
const { user, system } = process.cpuUsage();
console.log((user + system) / 1000);`;
  const times = [];
  for (let i = 0; i < 5; i++) times.push(Number((await run(process.execPath, [...args, "-e", code], { cwd: folder })).stdout));
  return times.sort((one, other) => one - other)[2];
}

// They take about 3 ms and 8 ms, compared with 45 ms of Node 20 itself and 19 ms of Node 24, which keeps its own code compiled. A
// slow machine takes longer than these limits in ms, and then the part of Node's own time counts. tests/js/costs.mjs has more.
for (const [how, most, part, code, ...args] of [
  ["require", 8, 0.2, 'require("fm-proxy").createClient();'],
  ["import", 14, 0.35, 'import { createClient } from "fm-proxy"; createClient();', "--input-type=module"],
]) {
  const limit = `${most} ms or ${part} of the processor time that Node takes to start`;
  test(`${how} and createClient take less than ${limit}`, repeated(async () => {
    const node = await processorTime(...args, "");
    const ours = (await processorTime(...args, code)) - node;
    undisturbed(ours < Math.max(most, node * part), `${ours} ms beside ${node} ms`);
  }));
}

const builtin = (name) => name.startsWith("node:");
/** A host's file as bundlers write it: `from` is the host's program, `to` is the bundle. */
const BUNDLERS = {
  "esbuild, CommonJS": (from, to) => buildWithEsbuild(from, to, { format: "cjs" }),
  "esbuild, ES module": (from, to) => buildWithEsbuild(from, to, { format: "esm" }),
  // Then esbuild does not use the condition "module".
  "esbuild, conditions of the host, ES module": (from, to) =>
    buildWithEsbuild(from, to, { format: "esm", conditions: ["development"] }),
  "esbuild for no platform, ES module": (from, to) => buildWithEsbuild(from, to, { format: "esm", ...NEUTRAL }),
  "webpack": (from, to) => buildWithWebpack(from, to),
  "rollup, CommonJS": (from, to) => buildWithRollup(from, to, { format: "cjs" }),
  "rollup, ES module": (from, to) => buildWithRollup(from, to, { format: "es" }),
  "vite, ES module": (from, to) => buildWithVite(from, to),
};

const NEUTRAL = { platform: "neutral", mainFields: ["module", "main"], external: ["node:*"] };

function buildWithEsbuild(from, to, options) {
  const { build } = createRequire(join(shim, "package.json"))("esbuild");
  return build({ entryPoints: [from], outfile: to, bundle: true, platform: "node", logLevel: "error", ...options });
}

async function buildWithWebpack(from, to) {
  const { default: webpack } = await import("webpack");
  const output = { path: dirname(to), filename: basename(to) };
  const compiler = webpack({ mode: "production", target: "node20", entry: from, output });
  const stats = await promisify(compiler.run.bind(compiler))();
  await promisify(compiler.close.bind(compiler))();
  assert.ok(!stats.hasErrors() && !stats.hasWarnings(), stats.toString());
}

/** Rollup without a plugin for CommonJS: everything that is bundled must be an ES module. */
async function buildWithRollup(from, to, options) {
  const [{ rollup }, { default: resolve }] = await Promise.all([import("rollup"), import("@rollup/plugin-node-resolve")]);
  const plugins = [resolve({ preferBuiltins: true })];
  const bundle = await rollup({ input: from, external: builtin, plugins, onwarn: ({ message }) => assert.fail(message) });
  await bundle.write({ file: to, ...options });
}

/** Like electron-vite, for a main process that bundles its dependencies. */
async function buildWithVite(from, to) {
  const { build } = await import("vite");
  const output = { entryFileNames: basename(to) };
  const options = { ssr: from, outDir: dirname(to), rollupOptions: { output } };
  await build({ configFile: false, root: folder, logLevel: "error", ssr: { noExternal: true }, build: options });
}

for (const [name, bundle] of Object.entries(BUNDLERS)) {
  test(`in a host that a bundler makes one file of, in place and moved: ${name}`, async (t) => {
    const modules = join(folder, "node_modules");
    installStub(modules);
    const host = `
import { createClient, FmError, pullModel } from "fm-proxy";
(async () => {
  const error = await pullModel("no reference").catch((reason) => reason);
  if (!(error instanceof FmError)) throw error;
  const client = createClient();
  const schema = { type: "string" };
  const { value } = await client.generate({ input: "one two", schema, retries: 0, fallback: () => "checked" });
  console.log((await client.responses.create({ input: "one two" })).output_text, value);
  await client.close();
})();
`;
    writeFileSync(join(folder, "host.mjs"), host);
    const end = name.endsWith("ES module") ? "mjs" : "cjs";
    const out = join(folder, `bundle-${name.replace(/\W+/g, "-")}`, `host.${end}`);
    await bundle(join(folder, "host.mjs"), out);
    const env = { ...process.env };
    delete env.FM_PROXY_PATH;
    assert.equal((await run(process.execPath, [out], { env })).stdout, "one two checked\n");
    // Package managers put such links to commands into a folder.
    const link = join(temporaryFolder(t), "command");
    symlinkSync(out, link);
    assert.equal((await run(process.execPath, [link], { env, cwd: "/" })).stdout, "one two checked\n", "by a link");
    const moved = join(temporaryFolder(t), "elsewhere");
    cpSync(dirname(out), moved, { recursive: true });
    cpSync(join(modules, "@fm-proxy"), join(moved, "node_modules", "@fm-proxy"), { recursive: true, verbatimSymlinks: true });
    const program = join(moved, basename(out));
    assert.equal((await run(process.execPath, [program], { env, cwd: "/" })).stdout, "one two checked\n");
    // As a part of another program, in another place.
    const importer = join(temporaryFolder(t), "importer.mjs");
    writeFileSync(importer, `await import(${JSON.stringify(program)});`);
    assert.equal((await run(process.execPath, [importer], { env, cwd: "/" })).stdout, "one two checked\n", "as a part");
  });
}

for (const [name, more] of [["", {}], [" with conditions of the host", { conditions: ["development"] }]]) {
  test(`in a bundle${name}, import and require give one FmError`, async () => {
    writeFileSync(join(folder, "both.mjs"), `import { FmError } from "fm-proxy";
  import other from "./other.cjs";
  console.log(FmError === other.FmError, new FmError("CLOSED", "x").constructor.name);`);
    writeFileSync(join(folder, "other.cjs"), `module.exports = { FmError: require("fm-proxy").FmError };`);
    const out = join(folder, "bundle-both.mjs");
    await buildWithEsbuild(join(folder, "both.mjs"), out, { format: "esm", minify: true, ...more });
    assert.equal((await run(process.execPath, [out])).stdout, "true FmError\n");
  });
}

test("publint and attw find nothing wrong with the package", async () => {
  const { publint } = await import("publint");
  const { messages } = await publint({ pkgDir: join(folder, "node_modules", "fm-proxy"), level: "suggestion" });
  assert.deepEqual(messages, []);
  const [tarball] = readdirSync(folder).filter((name) => name.endsWith(".tgz"));
  const attw = join(root, "tests", "js", "node_modules", ".bin", "attw");
  await run(attw, [join(folder, tarball)]).catch(({ stdout }) => assert.fail(stdout));
});

test("the types need no types of Node's in what they say", () => {
  const declarations = join(folder, "node_modules", "fm-proxy", "dist");
  for (const name of readdirSync(declarations).filter((each) => /\.d\.[cm]ts$/.test(each))) {
    assert.doesNotMatch(readFileSync(join(declarations, name), "utf8"), /NodeJS\.|from "node:/, name);
  }
});

test("the README's examples are TypeScript in strict mode", async () => {
  linkSdks();
  const readme = readFileSync(join(shim, "README.md"), "utf8");
  const examples = [...readme.matchAll(/```js\n([^]*?)```/g)].map(([, code]) => code);
  assert.ok(examples.length >= 3);
  const names = examples.map((code, index) => {
    writeFileSync(join(folder, `readme${index}.mts`), `${code}\nexport {};\n`);
    return `readme${index}.mts`;
  });
  await compile("--skipLibCheck", ...names);
});

/** What an application with a stock SDK may write, and what it must not write. */
const SDK_CODE = `
import "fm-proxy/openai";
import { createClient, type CompactedResponse, type Completion, type EmbeddingList } from "fm-proxy";
import type { InputItem, Model } from "fm-proxy";
type Event = OpenAI.Responses.ResponseStreamEvent;
import OpenAI from "openai";
const client = createClient();
const { responses, chat } = client;
declare const whole: OpenAI.Responses.ResponseCreateParamsNonStreaming;
declare const streaming: OpenAI.Responses.ResponseCreateParamsStreaming;
declare const either: OpenAI.Responses.ResponseCreateParams;
declare const wholeChat: OpenAI.ChatCompletionCreateParamsNonStreaming;
declare const streamingChat: OpenAI.ChatCompletionCreateParamsStreaming;
declare const eitherChat: OpenAI.ChatCompletionCreateParams;
declare const wholeText: OpenAI.CompletionCreateParamsNonStreaming;
declare const streamingText: OpenAI.CompletionCreateParamsStreaming;
declare const eitherText: OpenAI.CompletionCreateParams;
declare const texts: OpenAI.EmbeddingCreateParams;
declare const counted: OpenAI.Responses.InputTokenCountParams;
declare const long: OpenAI.Responses.ResponseCompactParams;
export async function bodies(): Promise<OpenAI.Responses.Response | OpenAI.ChatCompletion> {
  for await (const it of responses.create(streaming)) { const event: Event = it; void event; }
  for await (const it of await responses.create(streaming)) { const event: Event = it; void event; }
  for await (const it of chat.completions.create(streamingChat)) { const chunk: OpenAI.ChatCompletionChunk = it; void chunk; }
  const safe = await client.safe.responses.create(whole);
  if (safe.ok) { const response: OpenAI.Responses.Response = safe.response; void response; }
  void responses.create(either);
  void chat.completions.create(eitherChat);
  void client.completions.create(eitherText);
  for await (const it of client.completions.create(streamingText)) { const chunk: string = it.id; void chunk; }
  const text: OpenAI.Completion = await client.completions.create(wholeText);
  const vectors: OpenAI.CreateEmbeddingResponse = await client.embeddings.create(texts);
  const count: OpenAI.Responses.InputTokenCountResponse = await responses.inputTokens.count(counted);
  const short: OpenAI.Responses.CompactedResponse = await responses.compact(long);
  void [text, vectors, count, short];
  const response: OpenAI.Responses.Response = await responses.create(whole);
  const final: OpenAI.Responses.Response = await responses.stream(whole).finalResponse();
  return Math.random() > 0.5 ? (await chat.completions.create(wholeChat)) : response ?? final;
}
export const embedding = (it: EmbeddingList): OpenAI.CreateEmbeddingResponse => it;
export const completion = (it: Completion): OpenAI.Completion => it;
export const model = (it: Model): OpenAI.Model => it;
export const item = (it: InputItem): OpenAI.Responses.ResponseItem => it;
export const compacted = (it: CompactedResponse): OpenAI.Responses.CompactedResponse => it;
export async function stock() {
  const openai = new OpenAI({ apiKey: "local", baseURL: "http://fm-proxy/v1", fetch: client.fetch });
  const response = await openai.responses.create({ input: "x", top_k: 5, fm: { timeout_ms: 5, timings: true } });
  const queue: number | undefined = response.fm?.timings?.queue_ms;
  const parsed = await openai.responses.parse({ input: "x", fm: { schema_report: true } });
  const stream = await openai.chat.completions.create({ model: "default", messages: [], stream: true, fm: { timings: true } });
  for await (const { fm } of stream) void fm?.timings;
  const { fm } = await openai.embeddings.create({ model: "default", input: "x", fm: { timeout_ms: 5 } });
  const counts = await openai.responses.inputTokens.count({ input: "x", top_k: 5, fm: { timings: true } });
  const compacted = await openai.responses.compact({ model: "default", input: "x", fm: { timings: true } });
  void [counts.fm?.timings, compacted.fm?.timings];
  // @ts-expect-error there is no such limit
  await openai.responses.create({ input: "x", fm: { timeout: 5 } });
  return [queue, parsed.fm?.schema, fm?.ignored];
}
`;

for (const [version, name] of [["7", "openai-7"], ["6", "openai-6"]]) {
  test(`bodies and answers are those of the types of OpenAI's SDK ${version}, which learn of ours by an import`, async (t) => {
    const app = temporaryFolder(t);
    mkdirSync(join(app, "node_modules"));
    cpSync(join(folder, "node_modules", "fm-proxy"), join(app, "node_modules", "fm-proxy"), { recursive: true });
    symlinkSync(join(root, "tests", "js", "node_modules", name), join(app, "node_modules", "openai"));
    writeFileSync(join(app, "sdk.mts"), SDK_CODE);
    writeFileSync(join(app, "sdk.cts"), SDK_CODE);
    await compileIn(app, "--skipLibCheck", "sdk.mts", "sdk.cts");
    writeFileSync(join(app, "run.mjs"), 'import "fm-proxy/openai";');
    writeFileSync(join(app, "run.cjs"), 'require("fm-proxy/openai");');
    for (const file of ["run.mjs", "run.cjs"]) await run(process.execPath, [join(app, file)]);
  });
}

function linkSdks() {
  const modules = join(folder, "node_modules");
  for (const [name, from] of [["openai", "openai-7"], ["openai-6", "openai-6"]]) {
    if (!existsSync(join(modules, name))) symlinkSync(join(root, "tests", "js", "node_modules", from), join(modules, name));
  }
}

test("what is in it", () => {
  const files = readdirSync(join(folder, "node_modules", "fm-proxy"), { recursive: true }).map(String);
  for (const name of [
    "README.md",
    "LICENSE",
    "dist/THIRD-PARTY-NOTICES",
    "dist/index.cjs",
    "dist/index.mjs",
    "dist/names.cjs",
    "dist/bundler.mjs",
    "dist/index.d.cts",
    "dist/index.d.mts",
    "dist/errors.cjs",
    "dist/later.cjs",
    "dist/validate.cjs",
    "dist/ai.mjs",
    "dist/ai.d.mts",
    "dist/openai.mjs",
    "dist/openai.d.cts",
  ]) {
    assert.ok(files.includes(name), `${name} is missing`);
  }
  const license = readFileSync(join(folder, "node_modules", "fm-proxy", "LICENSE"), "utf8");
  assert.equal(license, readFileSync(join(root, "LICENSE"), "utf8"));
  const manifest = JSON.parse(readFileSync(join(folder, "node_modules", "fm-proxy", "package.json"), "utf8"));
  assert.equal(manifest.dependencies, undefined);
  // import() would load Node's ES modules, which takes longer than the whole package; code that reads Electron's archives
  // can't use it.
  for (const name of files.filter((each) => each.endsWith(".cjs"))) {
    assert.doesNotMatch(readFileSync(join(folder, "node_modules", "fm-proxy", name), "utf8"), /\bimport\(/, name);
  }
  const sources = /^(src|scripts|node_modules|dist.esm)|\.ts$|\.tgz$/;
  assert.ok(!files.some((name) => sources.test(name)), files.join());
  const bytes = files.map((name) => statSync(join(folder, "node_modules", "fm-proxy", name)));
  const size = bytes.filter((it) => it.isFile()).reduce((sum, it) => sum + it.size, 0);
  assert.ok(size <= 530_000, `${size} bytes`);
});

test("the options are those of the helper", () => {
  assert.ok(isUpToDate(helperPath), "run node js-shim/scripts/options.mjs");
});

test("the API reference is that of the types", () => {
  assert.ok(isReferenceUpToDate(), "run node js-shim/scripts/api.mjs");
});
