// Downloads of model files from a faulty server: afterwards the file is whole and right, or absent.
import assert from "node:assert/strict";
import { execFile, spawn, spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, unlinkSync, utimesSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { basename, dirname, join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { CATALOG, findInCatalog } from "../../js-shim/dist/esm/catalog.js";
import { parseHubReference } from "../../js-shim/dist/esm/hub.js";
import { chooseModel } from "../../js-shim/dist/esm/default-model.js";
import { defaultModel, quantOf } from "../../js-shim/dist/esm/model-files.js";
import { findModels, pullModel, verifyModel } from "../../js-shim/dist/esm/index.js";
import { ggufHeader } from "./support/gguf.mjs";
import { clientFor, helperPath, modelOptions, noModel, root, sanitizerEnv, temporaryFolder } from "./support/helper.mjs";
import { serveHub as serveFiles } from "./support/hub.mjs";
import { WAIT } from "./support/patience.mjs";

const cli = join(root, "js-shim", "dist", "cli.cjs");
const SIZE = 300_000;
const contents = () => Buffer.concat([Buffer.from("GGUF"), randomBytes(SIZE - 4)]);
const hash = (bytes) => createHash("sha256").update(bytes).digest("hex");

/** A server with one file; `faults` happen to the first requests, one each. */
async function serve(t, ...faults) {
  const it = { bytes: contents(), tag: '"one"', requests: [], onBytes: () => {} };
  const server = createServer((request, response) => {
    it.requests.push(request.headers);
    const fault = faults.shift() ?? {};
    if (fault.bytes) Object.assign(it, { bytes: fault.bytes, tag: '"two"' });
    if (fault.status) return response.writeHead(fault.status, fault.headers).end();
    const range = /^bytes=(\d+)-$/.exec(request.headers.range ?? "");
    const goesOn = range !== null && !fault.noRange && request.headers["if-range"] === it.tag;
    const from = goesOn ? Number(range[1]) : 0;
    const headers = { etag: it.tag, ...fault.headers };
    if (!fault.chunked) headers["content-length"] = String(it.bytes.length - from);
    if (goesOn) headers["content-range"] = `bytes ${from}-${it.bytes.length - 1}/${it.bytes.length}`;
    response.writeHead(goesOn ? 206 : 200, headers);
    const to = fault.after === undefined ? it.bytes.length : Math.min(from + fault.after, it.bytes.length);
    response.write(it.bytes.subarray(from, to), () => {
      it.onBytes(to);
      if (fault.stall || it.held) return;
      if (to === it.bytes.length || fault.end) response.end();
      else response.destroy();
    });
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  it.url = `http://127.0.0.1:${server.address().port}/some/model.gguf`;
  return it;
}

/** Pulls into a folder that only this test uses. */
function pull(t, server, options = {}) {
  const folder = options.folder ?? temporaryFolder(t);
  const result = pullModel(server.url, { folder, retryMs: 1, ...options });
  return { folder, path: join(folder, "model.gguf"), result };
}

test("a whole file, with progress; a second pull finds it", async (t) => {
  const server = await serve(t);
  const seen = [];
  const { folder, path, result } = pull(t, server, { onProgress: (it) => seen.push(it) });
  const file = { path, size: SIZE, sha256: hash(server.bytes), sha256From: null };
  assert.deepEqual(await result, { id: "model", ...file, files: [file], default: false });
  assert.deepEqual(seen.at(-1), { received: SIZE, total: SIZE });
  assert.deepEqual(readdirSync(folder).sort(), ["model.gguf", "model.gguf.json"]);
  assert.equal((await verifyModel(path)).state, "ok");
  assert.equal((await pull(t, server, { folder }).result).sha256From, "an earlier download");
  assert.equal(server.requests.length, 1);
  writeFileSync(path, "GGUF");
  assert.equal((await verifyModel(path)).state, "damaged");
  await assert.rejects(verifyModel(`${path}.gone`), { code: "NOT_FOUND", message: /gone can't be read/ });
});

const FAULTS = {
  "connections that are reset": [{ after: 1000 }, { after: 0 }, { after: 100_000 }, { after: 1 }],
  "a server without ranges": [{ after: 1000 }, { noRange: true, after: 200_000 }, { noRange: true }],
  "another file from the second connection on": [{ after: 1000 }, { bytes: contents() }],
  "a server that is overloaded": [{ status: 503 }, { status: 429 }, { after: 5 }, { status: 500 }],
  "a length that nobody tells": [{ chunked: true }],
};
for (const [name, faults] of Object.entries(FAULTS)) {
  test(`the whole file in spite of ${name}`, { timeout: WAIT }, async (t) => {
    const server = await serve(t, ...faults);
    const { path, result } = pull(t, server);
    assert.equal((await result).sha256, hash(server.bytes));
    assert.ok(readFileSync(path).equals(server.bytes));
  });
}

test("a file without a tag that is cut off begins anew", { timeout: WAIT }, async (t) => {
  const untagged = { headers: { etag: 'W/"weak"' } };
  const server = await serve(t, { ...untagged, after: 1000, stall: true }, untagged);
  assert.equal((await pull(t, server, { stallMs: 1000 }).result).sha256, hash(server.bytes));
  assert.equal(server.requests[1].range, undefined);
});

test("a progress function that throws ends nothing", async (t) => {
  const server = await serve(t);
  const warned = new Promise((resolve) => process.once("warning", resolve));
  const onProgress = () => {
    throw new Error("the host's own");
  };
  assert.equal((await pull(t, server, { onProgress }).result).size, SIZE);
  assert.match((await warned).message, /onProgress/);
});

test("client.models.pull: a client without a model has one then", { timeout: WAIT, skip: noModel() ?? false }, async (t) => {
  const server = await serve(t);
  const models = join(root, "build", "models");
  server.bytes = readFileSync(join(models, readdirSync(models).find((name) => name.endsWith(".gguf"))));
  const cwd = temporaryFolder(t);
  const client = clientFor(t, { ...modelOptions, cwd, modelsDir: "models" });
  const states = [];
  client.on("state", ({ state }) => states.push(state));
  assert.equal((await client.compatibility.check()).reason_code, "MODEL_NOT_READY");
  const stop = new AbortController();
  const stopped = client.models.pull(server.url, { signal: stop.signal, onProgress: () => stop.abort(new Error("enough")) });
  await assert.rejects(stopped, { message: "enough" });
  assert.equal((await client.compatibility.check()).compatible, false);
  const { path, size } = await client.models.pull(server.url);
  assert.deepEqual([path, size], [join(cwd, "models", "model.gguf"), server.bytes.length]);
  assert.ok(server.requests.at(-1).range !== undefined, "the second call goes on");
  assert.deepEqual(await client.compatibility.check(), { compatible: true });
  assert.equal((await client.models.list()).data[0].id, "model");
  assert.deepEqual(states, ["starting", "ready", "waiting", "ready"]);
});

test("client.models.pull: a client of a linked clone goes on with what it pulled", { skip: noModel() ?? false }, async (t) => {
  const server = await serve(t);
  const models = join(root, "build", "models");
  server.bytes = readFileSync(join(models, readdirSync(models).find((name) => name.endsWith(".gguf"))));
  const code = `
    import { createClient } from ${JSON.stringify(join(root, "js-shim", "dist", "esm", "index.js"))};
    const client = createClient();
    const ids = async () => (await client.models.list()).data.map(({ id }) => id);
    const before = await ids();
    await client.models.pull(${JSON.stringify(server.url)});
    console.log(JSON.stringify([before.includes("model"), (await ids())[0]]));
    await client.close();`;
  const env = { ...process.env, HOME: temporaryFolder(t), FM_PROXY_PATH: "", FM_PROXY_ENGINE: "", ...sanitizerEnv };
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", code], { env });
  assert.deepEqual(JSON.parse(stdout), [false, "model"]);
});

test("client.models.pull: the folder that the client's own environment names", async (t) => {
  const server = await serve(t);
  const folder = temporaryFolder(t);
  const client = clientFor(t, { env: { FM_PROXY_MODELS_DIR: folder } });
  assert.equal((await client.models.pull(server.url)).path, join(folder, "model.gguf"));
});

test("what was there is not sent again", async (t) => {
  const server = await serve(t, { after: 1000, stall: true });
  await pull(t, server, { stallMs: 1000 }).result;
  assert.equal(server.requests[1].range, "bytes=1000-");
});

test("a server that falls silent is left after the limit", { timeout: WAIT }, async (t) => {
  const server = await serve(t, { after: 1000, stall: true });
  assert.equal((await pull(t, server, { stallMs: 1000 }).result).size, SIZE);
  assert.equal(server.requests.length, 2);
});

test("a rest that ends too early, without a length, is asked for again", { timeout: WAIT }, async (t) => {
  const early = { chunked: true, after: 1000, end: true };
  const server = await serve(t, { after: 1000, stall: true }, early, early);
  assert.equal((await pull(t, server, { stallMs: 1000 }).result).sha256, hash(server.bytes));
  assert.equal(server.requests.length, 4);
});

test("five tries in a row without a byte are the end, and the next pull goes on", async (t) => {
  const server = await serve(t, { after: 1000, stall: true }, ...Array(4).fill({ status: 503 }));
  const { folder, path, result } = pull(t, server, { stallMs: 1000 });
  await assert.rejects(result, { code: "UNAVAILABLE", message: /503/ });
  assert.equal(server.requests.length, 5);
  assert.ok(!existsSync(path));
  await pull(t, server, { folder }).result;
  assert.equal(server.requests[5].range, "bytes=1000-");
});

test("pauses double while nothing comes, and begin anew once something has", async (t) => {
  const cut = { after: 100, stall: true };
  const server = await serve(t, { status: 503 }, { status: 503 }, cut, { status: 503 }, cut);
  const waited = [];
  const onRetry = ({ detail }, pauseMs) => waited.push([/503/.test(detail), pauseMs]);
  await pull(t, server, { stallMs: 2000, retryMs: 2, onRetry }).result;
  assert.deepEqual(waited, [[true, 2], [true, 4], [false, 2], [true, 4], [false, 2]]);
});

const foreignHash = { "x-linked-etag": `"${"1".repeat(64)}"` };
const plain = { status: 302, headers: { location: "http://example.com/x.gguf" } };
for (const [name, faults, options, error] of [
  ["a wrong hash", [], { sha256: "0".repeat(64) }, { code: "UNAVAILABLE", message: /SHA-256 .* not 0{64}.*deleted/ }],
  ["a hash of Hugging Face's that differs", [{ headers: foreignHash }], {}, { message: /not 1{64}/ }],
  ["a page in place of a model", [{ bytes: Buffer.from("<html>") }], {}, { message: /is not a GGUF file/ }],
  ["a file that is not there", [{ status: 404 }], {}, { code: "NOT_FOUND", message: /has no file \/some\/model.gguf/ }],
  ["a file that needs a token", [{ status: 401 }], {}, { code: "UNAVAILABLE", message: /HF_TOKEN/ }],
  ["a redirect to a server without https", [plain], {}, { message: /use https/ }],
]) {
  test(`${name}: an error, and nothing is left`, async (t) => {
    const server = await serve(t, ...faults);
    const { folder, result } = pull(t, server, options);
    await assert.rejects(result, error);
    assert.deepEqual(readdirSync(folder), []);
    assert.equal(server.requests.length, 1);
  });
}

test("a port that Node refuses is no reason to try again", async (t) => {
  const folder = temporaryFolder(t);
  const why = { code: "UNAVAILABLE", message: /Node refuses the port of 127\.0\.0\.1:6000/ };
  const onRetry = () => assert.fail("it is tried once");
  await assert.rejects(pullModel("http://127.0.0.1:6000/a.gguf", { folder, onRetry }), why);
});

test("a hash that is a number is refused by its name", async () => {
  const wrong = { code: "INVALID_REQUEST", message: /Invalid sha256: it must have 64 hexadecimal digits, not "5"/ };
  await assert.rejects(pullModel("qwen3-0.6b", { sha256: 5 }), wrong);
});

/** Repositories of the stand-in for Hugging Face, with the names of their files. */
const REPOSITORIES = {
  "one/tiny-GGUF": ["README.md", "tiny-Q8_0.gguf"],
  "two/many-GGUF": ["many-Q4_K_M.gguf", "many-Q8_0.gguf", "many-UD-IQ1_S.gguf", "imatrix_many.gguf"],
  "two/odd-GGUF": ["odd-q5_k_m.gguf", "odd-Q8_0.gguf", "sub/odd-2-Q8_0.gguf", "unknown.gguf"],
  "three/split-GGUF": [
    ...[1, 2, 3].map((part) => `Q4_K_M/split-Q4_K_M-0000${part}-of-00003.gguf`),
    "split-Q8_0-00001-of-00002.gguf",
  ],
  "four/sees-GGUF": ["mmproj-BF16.gguf", "mmproj-F16.gguf", "sees-Q4_K_M.gguf"],
  "five/weights": ["model.safetensors"],
  "six/embed-GGUF": ["embed-Q8_0.gguf"],
  "seven/both-GGUF": ["both-q4_k_m-00001-of-00002.gguf", "both-q4_k_m-00002-of-00002.gguf", "both-q4_k_m.gguf"],
  "Qwen/Qwen3-0.6B-GGUF": ["Qwen3-0.6B-Q8_0.gguf", "other.gguf"],
};

/** A hub with these repositories; a model's header says which one it is. */
function serveHub(t) {
  const files = new Map();
  for (const [repository, names] of Object.entries(REPOSITORIES)) {
    for (const name of names) {
      const pairs = { "general.name": `${repository}/${name}`, "x.pooling_type": repository === "six/embed-GGUF" ? 3 : 0 };
      files.set(`${repository}/${name}`, ggufHeader(pairs));
    }
  }
  return serveFiles(t, files);
}

test("what people type for a model on the hub: the file that comes", async (t) => {
  const { host } = await serveHub(t);
  const page = "https://huggingface.co";
  for (const [reference, file] of [
    ["qwen3-0.6b", "Qwen3-0.6B-Q8_0.gguf"],
    ["Qwen3-0.6B", "Qwen3-0.6B-Q8_0.gguf"],
    ["one/tiny-GGUF", "tiny-Q8_0.gguf"],
    ["hf:one/tiny-GGUF", "tiny-Q8_0.gguf"],
    ["hf:one/tiny-GGUF/tiny-Q8_0.gguf", "tiny-Q8_0.gguf"],
    ["two/many-GGUF", "many-Q4_K_M.gguf"],
    ["two/many-GGUF:Q8_0", "many-Q8_0.gguf"],
    ["hf:two/many-GGUF:q8_0", "many-Q8_0.gguf"],
    ["two/many-GGUF:ud-iq1_s", "many-UD-IQ1_S.gguf"],
    ["two/odd-GGUF:Q5_K_M", "odd-q5_k_m.gguf"],
    ["two/odd-GGUF/sub/odd-2-Q8_0.gguf", "odd-2-Q8_0.gguf"],
    ["seven/both-GGUF", "both-q4_k_m.gguf"],
    [`${page}/two/many-GGUF`, "many-Q4_K_M.gguf"],
    ["https://hf.co/two/many-GGUF/tree/main", "many-Q4_K_M.gguf"],
    [`${page}/two/many-GGUF?show_file_info=many-Q8_0.gguf`, "many-Q8_0.gguf"],
    [`${page}/two/many-GGUF/blob/main/many-Q8_0.gguf`, "many-Q8_0.gguf"],
    [`http://${host}/two/odd-GGUF/resolve/main/sub/odd-2-Q8_0.gguf?download=true`, "odd-2-Q8_0.gguf"],
    ["four/sees-GGUF/mmproj-F16.gguf", "mmproj-F16.gguf"],
    ["hf.co/two/many-GGUF:Q8_0", "many-Q8_0.gguf"],
    ["huggingface.co/two/many-GGUF/blob/main/many-Q8_0.gguf", "many-Q8_0.gguf"],
    [`${page}/two/many-GGUF:Q8_0`, "many-Q8_0.gguf"],
    ["two/many-GGUF/", "many-Q4_K_M.gguf"],
  ]) {
    const { path, files } = await pullModel(reference, { folder: temporaryFolder(t) });
    assert.deepEqual([basename(path), files.length], [file, 1], reference);
    assert.equal(files[0].sha256From, host);
  }
});

test("a short name that no model has: those that may be meant", async (t) => {
  const all = CATALOG.map(({ name }) => name).filter((name) => name.startsWith("qwen3-4b"));
  for (const [name, meant] of [
    ["qwen3-06b", "Did you mean 'qwen3-0.6b'?"],
    ["qwen3:8b", "Did you mean 'qwen3-8b'?"],
    ["gema-3-4b", "Did you mean 'gemma-3-4b'?"],
    ["qwen3-4", `Did you mean one of these: ${all.join(", ")}?`],
    ["llama", "npx fm-proxy models search lists"],
  ]) {
    const folder = temporaryFolder(t);
    const what = `No model has the short name '${name}'. ${meant}`;
    const isRight = ({ code, detail }) => code === "INVALID_REQUEST" && detail.startsWith(what);
    await assert.rejects(pullModel(name, { folder }), isRight, name);
  }
});

test("the models with short names: each can be pulled by it", () => {
  for (const { name, repository, file, size, memory } of CATALOG) {
    assert.equal(findInCatalog(name)?.file, file);
    assert.deepEqual(parseHubReference(`${repository}/${file}`), { repository, revision: "main", file });
    assert.ok(quantOf(file) !== "" && size > 1e8 && memory > size && memory < size * 3, name);
  }
});

test("a link's revision is the one that is asked", async (t) => {
  const hub = await serveHub(t);
  await pullModel("https://huggingface.co/one/tiny-GGUF/blob/refs%2Fpr%2F1/tiny-Q8_0.gguf", { folder: temporaryFolder(t) });
  const asked = ["/api/models/one/tiny-GGUF/tree/refs%2Fpr%2F1", "/one/tiny-GGUF/resolve/refs%2Fpr%2F1/tiny-Q8_0.gguf"];
  assert.deepEqual([...new Set(hub.asked)], asked);
});

test("where several files fit, or none, the error lists names that can be pulled", async (t) => {
  await serveHub(t);
  const folder = temporaryFolder(t);
  const files = ["odd-Q8_0.gguf", "sub/odd-2-Q8_0.gguf", "unknown.gguf"];
  const all = ["two/odd-GGUF:Q5_K_M", ...files.map((file) => `two/odd-GGUF/${file}`)];
  for (const [reference, what, names] of [
    ["two/odd-GGUF", "has several models", all],
    ["two/odd-GGUF:Q8_0", "has several models", all.slice(1, 3)],
    ["two/odd-GGUF:Q2_K", "has no Q2_K", all],
    ["two/odd-GGUF/other.gguf", "has no other.gguf", all],
    ["two/many-GGUF:Q6_K", "has no Q6_K", ["two/many-GGUF:Q4_K_M", "two/many-GGUF:Q8_0", "two/many-GGUF:UD-IQ1_S"]],
  ]) {
    const message = `${reference.split(/:|\/[a-z.]+$/)[0]} ${what}. Pull one of these: ${names.join(", ")}`;
    await assert.rejects(pullModel(reference, { folder }), { code: "INVALID_REQUEST", detail: message }, reference);
    for (const name of names) await pullModel(name, { folder: temporaryFolder(t) });
  }
  await assert.rejects(pullModel("five/weights", { folder }), { code: "NOT_FOUND", message: /no model in GGUF files.*-GGUF/ });
  await assert.rejects(pullModel("nobody/nothing", { folder }), { code: "UNAVAILABLE", message: /does not exist, or it needs/ });
  assert.deepEqual(readdirSync(folder), []);
});

test("a split model comes whole, its first file last; with one part missing on the hub nothing comes", async (t) => {
  const hub = await serveHub(t);
  const folder = temporaryFolder(t);
  const seen = [];
  const part = (number) => `split-Q4_K_M-0000${number}-of-00003.gguf`;
  const { id, path, size, files } = await pullModel("three/split-GGUF", { folder, onProgress: (it) => seen.push(it) });
  assert.deepEqual([id, basename(path)], ["split-Q4_K_M", part(1)]);
  assert.deepEqual(files.map((file) => basename(file.path)), [part(3), part(2), part(1)]);
  assert.deepEqual(seen.at(-1), { received: size, total: size });
  assert.deepEqual(new Set(seen.map(({ total }) => total)), new Set([size]));
  assert.equal((await pullModel(`three/split-GGUF/Q4_K_M/${part(2)}`, { folder })).id, id);
  assert.equal(hub.asked.filter((it) => it.includes("/resolve/")).length, 3);
  const options = { folder: temporaryFolder(t), sha256: "0".repeat(64) };
  await assert.rejects(pullModel("three/split-GGUF", options), { code: "INVALID_REQUEST", message: /several files/ });
  await assert.rejects(pullModel("three/split-GGUF:Q8_0", { folder }), { code: "UNAVAILABLE", message: /1 of the 2 files/ });
  const [found] = await findModels({ FM_PROXY_MODELS_DIR: folder }, folder);
  assert.deepEqual([found.name, found.path, found.size], [id, path, size]);
  unlinkSync(join(folder, part(3)));
  assert.deepEqual(await findModels({ FM_PROXY_MODELS_DIR: folder }, folder), []);
});

test("a model that sees comes with its projector, which has the model's name", async (t) => {
  const hub = await serveHub(t);
  const folder = temporaryFolder(t);
  const { id, files } = await pullModel("four/sees-GGUF", { folder });
  assert.deepEqual(files.map(({ path }) => basename(path)), ["mmproj-sees-Q4_K_M.gguf", "sees-Q4_K_M.gguf"]);
  assert.equal(id, "sees-Q4_K_M");
  assert.ok(readFileSync(files[0].path).equals(hub.files.get("four/sees-GGUF/mmproj-F16.gguf")));
});

test("the hub's hash counts, and a file of the user's own is not written over", async (t) => {
  const hub = await serveHub(t);
  const folder = temporaryFolder(t);
  hub.wrong = "many-Q8_0.gguf";
  await assert.rejects(pullModel("two/many-GGUF:Q8_0", { folder }), { message: /SHA-256 .* not 0{64}.*deleted/ });
  assert.deepEqual(readdirSync(folder), []);
  const path = join(folder, "many-Q4_K_M.gguf");
  writeFileSync(path, "the user's own");
  await assert.rejects(pullModel("two/many-GGUF", { folder }), { code: "INVALID_REQUEST", message: /exists, from elsewhere/ });
  assert.equal(readFileSync(path, "utf8"), "the user's own");
  writeFileSync(path, hub.files.get("two/many-GGUF/many-Q4_K_M.gguf"));
  assert.equal((await pullModel("two/many-GGUF", { folder })).sha256From, hub.host);
  writeFileSync(`${path}.json`, JSON.stringify({ url: `http://${hub.host}/two/many-GGUF/resolve/main/many-Q4_K_M.gguf` }));
  writeFileSync(path, "GGUF of last year");
  await pullModel("two/many-GGUF", { folder });
  assert.ok(readFileSync(path).equals(hub.files.get("two/many-GGUF/many-Q4_K_M.gguf")), "a newer file takes the place of ours");
});

test("models pull, verify and rm: all files of a model, and whose SHA-256 it was", async (t) => {
  const hub = await serveHub(t);
  const folder = temporaryFolder(t);
  const env = { ...process.env, FM_PROXY_MODELS_DIR: folder };
  const models = async (...words) => (await promisify(execFile)(process.execPath, [cli, "models", ...words], { env })).stdout;
  const pull = (name) => models("pull", "--no-check", name);
  const hashes = (await pull("four/sees-GGUF")).match(/^ {2}sha256 [0-9a-f]{64}, which matches that of .*$/gm);
  assert.deepEqual(hashes.map((line) => line.split(" that of ")[1]), [hub.host, hub.host]);
  await pull("three/split-GGUF");
  await pull("one/tiny-GGUF");
  assert.match(await models("verify", "hf:one/tiny-GGUF"), /^tiny-Q8_0: as it was downloaded\n$/);
  assert.equal((await models("verify", "split-Q4_K_M")).match(/: as it was downloaded$/gm).length, 3);
  writeFileSync(join(folder, "mmproj-sees-Q4_K_M.gguf"), "GGUF");
  await assert.rejects(models("verify", "sees-Q4_K_M"), { code: 1, stdout: /^mmproj-sees-Q4_K_M.gguf: DAMAGED/m });
  assert.equal((await models("rm", "split-Q4_K_M")).match(/^deleted /gm).length, 3);
  await models("rm", "four/sees-GGUF");
  await assert.rejects(models("rm", "four/sees-GGUF"), { code: 64 });
  assert.deepEqual(readdirSync(folder).sort(), ["tiny-Q8_0.gguf", "tiny-Q8_0.gguf.json"]);
});

test("the first model that is pulled is the default, no later one is, nor one that embeds", async (t) => {
  await serveHub(t);
  const folder = temporaryFolder(t);
  const { FM_PROXY_MODELS_DIR: before = "" } = process.env;
  process.env.FM_PROXY_MODELS_DIR = folder;
  t.after(() => (process.env.FM_PROXY_MODELS_DIR = before));
  const isDefault = async (reference) => (await pullModel(reference)).default;
  assert.equal(await isDefault("six/embed-GGUF"), false);
  assert.equal(await isDefault("one/tiny-GGUF"), true);
  assert.equal(await isDefault("two/many-GGUF"), false);
  assert.equal(await defaultModel(folder), join(folder, "tiny-Q8_0.gguf"), "though another one is the first by name");
  assert.equal(await isDefault("one/tiny-GGUF"), true);
  unlinkSync(join(folder, "default.json"));
  assert.equal(await isDefault("four/sees-GGUF"), false, "beside models that nobody chose");
});

test("models pull tries the model, except with --no-check, and ends with the next command to type", async (t) => {
  await serveHub(t);
  const fake = { FM_PROXY_PATH: helperPath, FM_PROXY_ENGINE: "fake", ...sanitizerEnv };
  const env = { ...process.env, ...fake, FM_PROXY_MODELS_DIR: temporaryFolder(t) };
  const pull = promisify(execFile);
  const pulled = async (...words) => (await pull(process.execPath, [cli, "models", "pull", ...words], { env })).stdout;
  const first = await pulled("one/tiny-GGUF");
  assert.match(first, /^It is tried now\. .*\nFAIL  text   What is the capital of France/m);
  assert.match(first, /^It is too weak for tools: /m);
  assert.match(first, /^ {2}npx fm-proxy run "[^"]+"\n$/m);
  const second = await pulled("--no-check", "two/many-GGUF");
  assert.doesNotMatch(second, /tried now|FAIL/);
  assert.match(second, /^ {2}npx fm-proxy models use many-Q4_K_M\n$/m);
});

test("models pull: a model that can't be loaded is not chosen, and the status says so", async (t) => {
  await serveHub(t);
  const fake = { FM_PROXY_PATH: helperPath, FM_PROXY_ENGINE: "fake", FM_ENGINE_FAKE_LOAD: "error", ...sanitizerEnv };
  const folder = temporaryFolder(t);
  const env = { ...process.env, ...fake, FM_PROXY_MODELS_DIR: folder };
  const pulled = promisify(execFile)(process.execPath, [cli, "models", "pull", "one/tiny-GGUF"], { env });
  await assert.rejects(pulled, ({ code, stderr }) => code === 1 && /npx fm-proxy models rm tiny-Q8_0\n$/.test(stderr));
  assert.deepEqual(readdirSync(folder).sort(), ["tiny-Q8_0.gguf", "tiny-Q8_0.gguf.json"]);
});

test("a chosen model that is gone: the first one answers", async (t) => {
  const folder = temporaryFolder(t);
  const path = (name) => join(folder, `${name}.gguf`);
  for (const name of ["a", "b"]) writeFileSync(path(name), "GGUF");
  await chooseModel(path("b"), folder);
  assert.equal(await defaultModel(folder), path("b"));
  unlinkSync(path("b"));
  assert.equal(await defaultModel(folder), path("a"));
  for (const odd of ["", "{", "[]", '{"model":5}', '{"model":"."}']) {
    writeFileSync(join(folder, "default.json"), odd);
    assert.equal(await defaultModel(folder), path("a"), odd);
  }
});

test("a hub that is overloaded for a moment is asked again", async (t) => {
  const hub = await serveHub(t);
  hub.overloads = 2;
  assert.equal((await pullModel("one/tiny-GGUF", { folder: temporaryFolder(t), retryMs: 1 })).id, "tiny-Q8_0");
  hub.overloads = Infinity;
  const options = { folder: temporaryFolder(t), retryMs: 1 };
  await assert.rejects(pullModel("one/tiny-GGUF", options), { code: "UNAVAILABLE", message: /status 503/ });
});

test("a hub that can't be reached: the error names proxies", async (t) => {
  await serveHub(t);
  process.env.HF_ENDPOINT = "https://hub.invalid";
  const message = /The download from hub\.invalid failed: E\w+\. Is this machine online\? .*HTTPS_PROXY and NODE_USE_ENV_PROXY=1/;
  const options = { folder: temporaryFolder(t), retryMs: 1 };
  await assert.rejects(pullModel("one/tiny-GGUF", options), { code: "UNAVAILABLE", message });
});

test("a hub that lists nonsense: an error that says so", async (t) => {
  const hub = await serveHub(t);
  hub.list = [null, 5, [], { path: null }, { path: 7, size: "x", lfs: 3 }];
  const wanted = { code: "NOT_FOUND", message: /has no model in GGUF files/ };
  await assert.rejects(pullModel("one/tiny-GGUF", { folder: temporaryFolder(t) }), wanted);
});

test("HF_ENDPOINT that is no address: an error that names it", async (t) => {
  await serveHub(t);
  const folder = temporaryFolder(t);
  process.env.HF_ENDPOINT = "hub.example";
  const message = /The variable HF_ENDPOINT is no address: "hub\.example"\. It must begin with https:\/\//;
  for (const reference of ["one/tiny-GGUF", "https://huggingface.co/one/tiny-GGUF"]) {
    await assert.rejects(pullModel(reference, { folder }), { code: "INVALID_REQUEST", message });
  }
});

test("references that are none are told before anything is asked", async (t) => {
  const wrong = [5, "qwen", "", "http://example.com/x.gguf", "https://example.com/x.bin", "hf:one/x.gguf", "file:///x.gguf"];
  // Names that are wrongly encoded, that a terminal would interpret, or that "models rm" would not accept.
  const names = ["%zz", "a%0ab", "a%1b%5b2Jb", "a%2fb", "%2e%2e%2f%2e%2e%2fb", ".hidden", "a%3ab"];
  wrong.push(...names.map((name) => `https://example.com/${name}.gguf`));
  wrong.push("../x/foo.gguf", "./x/y", "C:\\models\\x.gguf");
  wrong.push("https://user:secret@example.com/x.gguf");
  for (const reference of wrong) {
    await assert.rejects(pullModel(reference, { folder: temporaryFolder(t) }), { code: "INVALID_REQUEST" }, reference);
  }
  await assert.rejects(pullModel("https://example.com/x.gguf", { sha256: "12" }), { code: "INVALID_REQUEST" });
});

test("a file of another origin is not written over", async (t) => {
  const server = await serve(t);
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, "model.gguf"), "the user's own");
  await assert.rejects(pull(t, server, { folder }).result, { code: "INVALID_REQUEST", message: /exists, from elsewhere/ });
  assert.equal(readFileSync(join(folder, "model.gguf"), "utf8"), "the user's own");
});

test("a server elsewhere sends nobody to one on this machine", async (t) => {
  const server = await serve(t);
  const { fetch } = globalThis;
  t.after(() => (globalThis.fetch = fetch));
  const redirect = { status: 302, headers: { location: server.url } };
  globalThis.fetch = (url, options) => (url.protocol === "https:" ? new Response(null, redirect) : fetch(url, options));
  const call = pull(t, { url: "https://example.com/model.gguf" }).result;
  await assert.rejects(call, { code: "UNAVAILABLE", message: /redirects from https to http:\/\/127/ });
  assert.equal(server.requests.length, 0);
});

test("a folder of the file's name is not touched", async (t) => {
  const server = await serve(t);
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, "model.gguf"));
  const options = { folder, sha256: hash(server.bytes) };
  await assert.rejects(pull(t, server, options).result, { code: "INVALID_REQUEST", message: /is not a file/ });
  assert.equal(server.requests.length, 0);
});

test("a lock of a process that had this one's number is nobody's", async (t) => {
  const server = await serve(t);
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, "model.gguf.lock"), String(process.pid));
  assert.equal((await pull(t, server, { folder }).result).size, SIZE);
});

test("a lock without a number is that of one who just came; soon it is nobody's", async (t) => {
  const server = await serve(t);
  const folder = temporaryFolder(t);
  const path = join(folder, "model.gguf.lock");
  writeFileSync(path, "");
  await assert.rejects(pull(t, server, { folder }).result, { code: "UNAVAILABLE", message: /Another process is downloading/ });
  utimesSync(path, 1, 1);
  await pull(t, server, { folder }).result;
  assert.deepEqual(readdirSync(folder).sort(), ["model.gguf", "model.gguf.json"]);
});

test("an aborted pull goes on where it was", async (t) => {
  const server = await serve(t, { after: 1000, stall: true });
  const stop = new AbortController();
  const { folder, result } = pull(t, server, { signal: stop.signal, onProgress: () => stop.abort(new Error("enough")) });
  await assert.rejects(result, /enough/);
  await pull(t, server, { folder }).result;
  assert.equal(server.requests[1].range, "bytes=1000-");
});

test("what an address has in its query is written nowhere, and still tells it from another", async (t) => {
  const server = await serve(t, { after: 1000, stall: true });
  const signed = (signature) => ({ url: `${server.url}?X-Signature=${signature}#part` });
  const folder = temporaryFolder(t);
  const written = () => readdirSync(folder).filter((name) => name.endsWith(".json")).map((name) => join(folder, name));
  const texts = () => written().map((path) => readFileSync(path, "utf8"));
  const stop = new AbortController();
  const options = { folder, signal: stop.signal, onProgress: () => stop.abort(new Error("enough")) };
  await assert.rejects(pull(t, signed("secret"), options).result, /enough/);
  assert.equal(texts().length, 1);
  assert.doesNotMatch(texts().join(), /secret|Signature|part"/);
  await pull(t, signed("secret"), { folder }).result;
  assert.equal(server.requests[1].range, "bytes=1000-");
  assert.equal(texts().length, 1);
  assert.equal(JSON.parse(texts()[0]).url, server.url);
  assert.doesNotMatch(texts().join(), /secret|Signature|part"/);
  assert.equal((await pull(t, signed("secret"), { folder }).result).size, SIZE);
  assert.equal(server.requests.length, 2);
  await assert.rejects(pull(t, signed("other"), { folder }).result, { code: "INVALID_REQUEST", message: /from elsewhere/ });
  await assert.rejects(pull(t, server, { folder }).result, { code: "INVALID_REQUEST", message: /from elsewhere/ });
});

test("two at once: the second is told who downloads", async (t) => {
  const server = await serve(t, { after: 1000, stall: true });
  const stop = new AbortController();
  const folder = temporaryFolder(t);
  const begun = new Promise((resolve) => (server.onBytes = resolve));
  const first = pull(t, server, { folder, signal: stop.signal }).result;
  await begun;
  const busy = { code: "UNAVAILABLE", message: new RegExp(`Process ${process.pid} `) };
  await assert.rejects(pull(t, server, { folder }).result, busy);
  stop.abort(new Error("enough"));
  await assert.rejects(first, /enough/);
  assert.equal((await pull(t, server, { folder }).result).size, SIZE);
});

test("killed at 20 places: the file is absent, then whole", { timeout: WAIT }, async (t) => {
  const server = await serve(t);
  const folder = temporaryFolder(t);
  const path = join(folder, "model.gguf");
  const env = { ...process.env, FM_PROXY_MODELS_DIR: folder };
  for (let place = 0; place < 20; place++) {
    server.held = true;
    const child = spawn(process.execPath, [cli, "models", "pull", server.url], { env, stdio: "ignore" });
    const ended = new Promise((resolve) => child.on("exit", resolve));
    // The last child processes are killed while the file is checked and renamed.
    await new Promise((resolve) => (server.onBytes = resolve));
    server.held = place < 15;
    if (place >= 15) setTimeout(() => child.kill("SIGKILL"), place - 15);
    else child.kill("SIGKILL");
    await ended;
    if (existsSync(path)) assert.equal(hash(readFileSync(path)), hash(server.bytes));
    if (existsSync(path)) break;
  }
  server.held = false;
  const { stdout } = await promisify(execFile)(process.execPath, [cli, "models", "pull", "--json", server.url], { env });
  assert.equal(JSON.parse(stdout).sha256, hash(server.bytes));
  assert.equal(hash(readFileSync(path)), hash(server.bytes));
});

/** Whether a small disk can be made for a test. */
const canMount = spawnSync("unshare", ["-m", "true"]).status === 0;
for (const [name, fault] of [["told beforehand", {}], ["met on the way", { chunked: true }]]) {
  const skip = !canMount && "mounting a disk needs root";
  test(`a full disk, ${name}: an error that says so, and no file`, { skip }, async (t) => {
    const server = await serve(t, fault);
    const folder = join(temporaryFolder(t), "disk");
    mkdirSync(folder);
    const program = join(dirname(folder), "pull.mjs");
    const from = JSON.stringify(join(root, "js-shim", "dist", "esm", "index.js"));
    const call = `pullModel(${JSON.stringify(server.url)}, { folder: ${JSON.stringify(folder)} })`;
    writeFileSync(program, `import { pullModel } from ${from};\nawait ${call}.catch(({ detail }) => console.log(detail));`);
    const script = 'mount -t tmpfs -o size=128k none "$1" && "$2" "$3" && ls "$1"';
    const words = ["-m", "sh", "-c", script, "sh", folder, process.execPath, program];
    const { stdout } = await promisify(execFile)("unshare", words);
    assert.match(stdout, /not enough room/);
    assert.equal(/ for a file of \d\.\d MB\. /.test(stdout), name === "told beforehand");
    assert.doesNotMatch(stdout, /^model\.gguf$/m);
  });
}
