// Downloads of model files from a server with faults: what is there afterwards is whole and right, or absent.
import assert from "node:assert/strict";
import { execFile, spawn, spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { pullModel, verifyModel } from "../../js-shim/dist/esm/index.js";
import { root, temporaryFolder } from "./support/helper.mjs";
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

/** Pulls into a folder of the test's own. */
function pull(t, server, options = {}) {
  const folder = options.folder ?? temporaryFolder(t);
  const result = pullModel(server.url, { folder, retryMs: 1, ...options });
  return { folder, path: join(folder, "model.gguf"), result };
}

test("a whole file, with progress; a second pull finds it", async (t) => {
  const server = await serve(t);
  const seen = [];
  const { folder, path, result } = pull(t, server, { onProgress: (it) => seen.push(it) });
  assert.deepEqual(await result, { id: "model", path, size: SIZE, sha256: hash(server.bytes) });
  assert.deepEqual(seen.at(-1), { received: SIZE, total: SIZE });
  assert.deepEqual(readdirSync(folder).sort(), ["model.gguf", "model.gguf.json"]);
  assert.equal((await verifyModel(path)).state, "ok");
  assert.equal((await pull(t, server, { folder }).result).size, SIZE);
  assert.equal(server.requests.length, 1);
  writeFileSync(path, "GGUF");
  assert.equal((await verifyModel(path)).state, "damaged");
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
  assert.equal((await pull(t, server, { stallMs: 200 }).result).sha256, hash(server.bytes));
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

test("what was there is not sent again", async (t) => {
  const server = await serve(t, { after: 1000, stall: true });
  await pull(t, server, { stallMs: 200 }).result;
  assert.equal(server.requests[1].range, "bytes=1000-");
});

test("a server that falls silent is left after the limit", { timeout: WAIT }, async (t) => {
  const server = await serve(t, { after: 1000, stall: true });
  assert.equal((await pull(t, server, { stallMs: 200 }).result).size, SIZE);
  assert.equal(server.requests.length, 2);
});

test("a rest that ends too early, without a length, is asked for again", { timeout: WAIT }, async (t) => {
  const early = { chunked: true, after: 1000, end: true };
  const server = await serve(t, { after: 1000, stall: true }, early, early);
  assert.equal((await pull(t, server, { stallMs: 200 }).result).sha256, hash(server.bytes));
  assert.equal(server.requests.length, 4);
});

test("five tries in a row without a byte are the end, and the next pull goes on", async (t) => {
  const server = await serve(t, { after: 1000, stall: true }, ...Array(4).fill({ status: 503 }));
  const { folder, path, result } = pull(t, server, { stallMs: 200 });
  await assert.rejects(result, { code: "UNAVAILABLE", message: /503/ });
  assert.equal(server.requests.length, 5);
  assert.ok(!existsSync(path));
  await pull(t, server, { folder }).result;
  assert.equal(server.requests[5].range, "bytes=1000-");
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

test("references that are none are told before anything is asked", async (t) => {
  const wrong = ["qwen", "", "http://example.com/x.gguf", "https://example.com/x.bin", "hf:one/x.gguf", "file:///x.gguf"];
  // Names that are no encoding, that a terminal would obey, or that "models rm" would not take.
  const names = ["%zz", "a%0ab", "a%1b%5b2Jb", "a%2fb", "%2e%2e%2f%2e%2e%2fb", ".hidden", "a%3ab"];
  wrong.push(...names.map((name) => `https://example.com/${name}.gguf`));
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
    // The last ones die while the file is checked and renamed.
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
    assert.equal(/bytes/.test(stdout), name === "told beforehand");
    assert.doesNotMatch(stdout, /^model\.gguf$/m);
  });
}
