// The life of the helper process, with a stub that misbehaves in all the ways that the real helper should not.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import {
  chmodSync,
  closeSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { getEventListeners, once } from "node:events";
import { dirname, join, relative } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { createClient } from "../../js-shim/dist/esm/index.js";
import { checkResponse, checkResponseStream } from "./support/invariants.mjs";
import {
  alive,
  children,
  clientFor,
  deltas,
  drain,
  fakeOptions,
  installStub,
  root,
  script,
  snapshot,
  stubClient,
  stubPath,
  temporaryFolder,
  until,
  watchLife,
} from "./support/helper.mjs";
import { WAIT, repeated, soon, undisturbed } from "./support/patience.mjs";

const here = import.meta.dirname ?? dirname(new URL(import.meta.url).pathname);
const isDelta = ({ type }) => type === "response.output_text.delta";
const hang = script("a", { hang: "soft" });

test("nothing is started before the first call; one helper serves all", async (t) => {
  const client = stubClient(t);
  assert.deepEqual(client.starts(), []);
  await Promise.all([client.health.ping(), client.models.list(), client.responses.create({ input: "x" })]);
  assert.equal(client.starts().length, 1);
  assert.equal(client.log()[1].method, "health.ping", "the handshake comes first");
});

test("options become arguments", async (t) => {
  const client = stubClient(
    t,
    {},
    {
      engine: "e",
      engineDir: "/d",
      model: "m",
      modelsDir: "/n",
      mmproj: "/p",
      draftModel: "/q",
      chatTemplate: "/t",
      logLevel: "debug",
      onLog() {},
    },
  );
  await client.health.ping();
  const [{ args }] = client.starts();
  assert.deepEqual(args, [
    "--stdio",
    "--engine",
    "e",
    "--engine-dir",
    "/d",
    "--model",
    "m",
    "--models-dir",
    "/n",
    "--mmproj",
    "/p",
    "--draft-model",
    "/q",
    "--chat-template",
    "/t",
    "--log-level",
    "debug",
  ]);
});

test("strictParameters is an argument; false has its variable cleared", async (t) => {
  const variable = { FM_PROXY_STRICT_PARAMETERS: "1" };
  for (const [options, url, status] of [
    [{ strictParameters: true }, "http://x/models?limit=1", 400],
    [{ strictParameters: false, env: variable }, "http://x/models?limit=1", 200],
    [{ env: variable }, "http://x/models?limit=1", 400],
    [{}, "http://x/models?limit=1", 200],
  ]) {
    const client = clientFor(t, { ...fakeOptions, ...options, env: { ...fakeOptions.env, ...options.env } });
    const body = { method: "POST", body: JSON.stringify({ input: "x", top_q: 1 }) };
    assert.equal((await client.fetch(url)).status, status, JSON.stringify(options));
    assert.equal((await client.fetch("http://x/responses", body)).status, status, JSON.stringify(options));
  }
});

test("kvCacheFiles: false keeps no files; true has its variable cleared", async (t) => {
  const off = { FM_PROXY_NO_KV_CACHE_FILES: "1" };
  for (const [options, env, files] of [
    [{ kvCacheFiles: true }, off, 1],
    [{ kvCacheFiles: false }, {}, 0],
    [{ kvCacheBytes: 0 }, { FM_PROXY_NO_KV_CACHE_FILES: "" }, 0],
    [{}, off, 0],
    [{}, { FM_PROXY_NO_KV_CACHE_FILES: "" }, 1],
  ]) {
    const kvCacheDir = join(temporaryFolder(t), "kv");
    const more = { ...fakeOptions.env, FM_ENGINE_FAKE_SAVE: "text:x", ...env };
    const client = clientFor(t, { ...fakeOptions, kvCacheDir, ...options, env: more });
    await client.responses.create({ input: "x" });
    await client.close();
    const found = existsSync(kvCacheDir) ? readdirSync(kvCacheDir).length : 0;
    assert.equal(found, files, JSON.stringify([options, env]));
  }
});

test("responses and chat, whole and streamed", async (t) => {
  const client = stubClient(t);
  const response = await client.responses.create({ input: "one two" });
  checkResponse(response);
  const { events } = await drain(client.responses.create({ input: "one two", stream: true }));
  assert.equal(deltas(events), "one two");
  checkResponseStream(events);
  const messages = [{ role: "user", content: "one two" }];
  assert.equal((await client.chat.completions.create({ messages })).choices[0].message.content, "one two");
  const stream = client.chat.completions.create({ messages, stream: true });
  const chunks = await drain(stream);
  assert.equal(chunks.events.at(-1).choices[0].finish_reason, "stop");
  assert.equal((await stream.finalCompletion()).choices[0].message.content, "one two");
});

for (const signal of ["SEGV", "ABRT", "KILL"]) {
  const name = `J1: SIG${signal} in mid-stream: a typed error at once, the text so far, no silent retry, the next works`;
  test(name, repeated(async (t) => {
    const client = stubClient(t);
    let last = 0;
    const stream = client.responses.stream({ input: script("half ", "an answer", { signal }) });
    const { events, error } = await drain(stream, () => void (last = performance.now()));
    soon(performance.now() - last, 500);
    assert.equal(error.code, "HELPER_EXITED");
    assert.match(error.detail, new RegExp(`SIG${signal}`));
    assert.equal(error.partialText, "half an answer");
    checkResponseStream(events);
    assert.equal(client.received("responses.create").length, 1);
    checkResponse(await client.responses.create({ input: "again" }));
    assert.equal(client.starts().length, 2);
  }));
}

test("J5: no signal for a helper that could not be started goes to the host and its process group", async () => {
  const code = `
import { HelperProcess } from ${JSON.stringify(join(root, "js-shim", "dist", "esm", "process.js"))};
const how = { path: "/nowhere/fm-proxy", origin: "a test", args: [], settings: [], env: {}, stderr: () => "ignore" };
const ended = new Promise((onEnd) => {
  const helper = new HelperProcess(how, { onBytes() {}, onEnd });
  helper.terminate();
  helper.kill();
});
console.log((await ended).code);
`;
  // A separate process group, so that a signal to it ends nothing else.
  const args = ["--input-type=module", "-e", code];
  const child = spawn(process.execPath, args, { detached: true, stdio: ["ignore", "pipe", "inherit"] });
  const [output, [status, signal]] = await Promise.all([text(child.stdout), once(child, "exit")]);
  assert.deepEqual([output, status, signal], ["SPAWN_FAILED\n", 0, null]);
});

test("J1: every call of a helper that dies is rejected, streamed or not", async (t) => {
  const client = stubClient(t);
  const calls = [
    client.responses.create({ input: hang }),
    client.chat.completions.create({ messages: [{ role: "user", content: hang }] }),
    client.responses.create({ input: script({ sleep_ms: 20 }, { exit: 0 }) }),
  ];
  for (const outcome of await Promise.allSettled(calls)) assert.equal(outcome.reason?.code, "HELPER_EXITED");
});

test("J1: a death is noticed while another process still holds the helper's pipes", { timeout: WAIT }, repeated(async (t) => {
  const client = stubClient(t);
  let last = 0;
  const stream = client.responses.stream({ input: script("half", { heir: true }, { signal: "KILL" }) });
  const { error } = await drain(stream, () => void (last = performance.now()));
  const late = performance.now() - last;
  process.kill(client.log().find((entry) => "heir" in entry).heir, "SIGKILL");
  assert.equal(error.code, "HELPER_EXITED");
  assert.equal(error.partialText, "half");
  soon(late, 500);
}));

test("a client that is closed says so, and gives no fault as the reason", async (t) => {
  const client = stubClient(t);
  await client.health.ping();
  const changes = [];
  client.on("state", (change) => changes.push(change));
  await client.close();
  assert.deepEqual(changes.at(-1), { state: "closed" });
});

test("J2, J17, J18: a crash loop: a helper for each request, then none until the host asks for it", repeated(async (t) => {
  const restart = { firstDelayMs: 20, maxDelayMs: 40 };
  const client = stubClient(t, {}, { restart });
  const states = [];
  client.on("state", ({ state }) => states.push(state));
  const crash = () => client.responses.create({ input: script({ exit: 1 }) });
  for (let crashes = 0; crashes < 4; crashes++) await assert.rejects(crash(), { code: "HELPER_EXITED" });
  const refused = (error) => {
    undisturbed(error.code === "HELPER_UNHEALTHY", error.code);
    assert.match(error.detail, /failed 4 times in a row.*recheck: true.*status 1/);
    return true;
  };
  await assert.rejects(client.responses.create({ input: "x" }), refused);
  await assert.rejects(client.health.ping(), refused);
  const report = await client.compatibility.check();
  assert.equal(report.reason_code, "HELPER_UNHEALTHY");
  assert.equal(client.starts().length, 4);
  assert.ok(states.includes("per-request"), states.join());
  assert.equal(states.at(-1), "refused");
  assert.deepEqual(await client.compatibility.check({ recheck: true }), { compatible: true });
  checkResponse(await client.responses.create({ input: "x" }));
  assert.equal(client.starts().length, 5);
}));

test("J2: what can't be started is not tried again until the host asks for it", async (t) => {
  const helperPath = join(temporaryFolder(t), "late.mjs");
  const client = stubClient(t, {}, { helperPath });
  for (let attempt = 0; attempt < 3; attempt++) await assert.rejects(client.health.ping(), { code: "SPAWN_FAILED" });
  symlinkSync(stubPath, helperPath);
  await assert.rejects(client.responses.create({ input: "x" }), { code: "SPAWN_FAILED" });
  assert.equal((await client.compatibility.check()).reason_code, "SPAWN_FAILED");
  assert.deepEqual(await client.compatibility.check({ recheck: true }), { compatible: true });
  checkResponse(await client.responses.create({ input: "x" }));
});

test("J18: crashes of a helper that had been healthy do not add up", async (t) => {
  const client = stubClient(t, {}, { restart: { maxCrashes: 2, healthyAfterMs: 0 } });
  for (let round = 0; round < 4; round++) {
    await assert.rejects(client.responses.create({ input: script({ exit: 1 }) }), { code: "HELPER_EXITED" });
  }
});

test("J3: a silent helper is given up in time, and killed", repeated(async (t) => {
  const client = stubClient(t, { start: "silent" }, { handshakeTimeoutMs: 3000 });
  const started = performance.now();
  await assert.rejects(client.responses.create({ input: "x" }), { code: "HELPER_UNHEALTHY", status: 404 });
  soon(performance.now() - started, 3800);
  const [{ started: pid }] = client.starts();
  await until(() => !alive(pid), "the silent helper's end");
}));

test("J4: another protocol version: both are named, nothing is asked of it, and it is ended", async (t) => {
  const client = stubClient(t, { version: 2 });
  await assert.rejects(client.responses.create({ input: "x" }), (error) => {
    assert.equal(error.code, "PROTOCOL_MISMATCH");
    assert.match(error.detail, /0\.0\.1-stub.*version 2.*version 1/);
    return true;
  });
  assert.equal(client.received("responses.create").length, 0);
  await until(() => !alive(client.starts()[0].started), "its end");
});

test("J5: few descriptors: the fallback answers, by fetch too, though no file can be opened", { timeout: WAIT }, async () => {
  const code = `
const { createClient } = require(${JSON.stringify(join(root, "js-shim", "dist", "index.cjs"))});
const { openSync } = require("node:fs");
const client = createClient({ helperPath: ${JSON.stringify(stubPath)}, fallback: () => "elsewhere" });
const body = JSON.stringify({ input: "x" });
setTimeout(async () => {
  try { for (;;) openSync("/dev/null"); } catch {}
  const response = await client.fetch("http://x/v1/responses", { method: "POST", body });
  const { output_text } = await client.responses.create({ input: "x" });
  console.log(response.status, response.headers.get("x-fm-source"), output_text);
}, 100);`;
  const args = ["-c", 'ulimit -n 64; exec "$0" -e "$1"', process.execPath, code];
  const child = spawn("/bin/sh", args, { stdio: ["ignore", "pipe", "inherit"] });
  assert.equal(await text(child.stdout), "200 fallback elsewhere\n");
});

test("J5: few descriptors: generate has its own fallback, fetch an answer, and both an FmError", { timeout: WAIT }, async () => {
  const code = `
const { createClient } = require(${JSON.stringify(join(root, "js-shim", "dist", "index.cjs"))});
const { openSync } = require("node:fs");
const make = () => createClient({ helperPath: ${JSON.stringify(stubPath)} });
const schema = { type: "object" };
(async () => {
  const loaded = make();
  await loaded.health.ping();
  try { for (;;) openSync("/dev/null"); } catch {}
  for (const client of [loaded, make()]) {
    const { source } = await client.generate({ input: "x", schema, fallback: () => ({}) });
    const { code } = await client.generate({ input: "x", schema }).catch((error) => error);
    console.log(source, code);
  }
  const response = await make().fetch("http://x/v1/responses", { method: "POST", body: "{}" });
  console.log(response.status, (await response.json()).error.code);
  await loaded.close();
})();`;
  const args = ["-c", 'ulimit -n 64; exec "$0" -e "$1"', process.execPath, code];
  const child = spawn("/bin/sh", args, { stdio: ["ignore", "pipe", "inherit"] });
  assert.equal(await text(child.stdout), "fallback SPAWN_FAILED\nfallback SPAWN_FAILED\n404 spawn_failed\n");
});

for (const loaded of [true, false]) {
  const name = loaded ? "the package's files are loaded" : "not even its files can be opened";
  test(`J5: few descriptors: the start fails by name, and later goes well: ${name}`, { timeout: WAIT }, async () => {
    const code = `
const { createClient } = require(${JSON.stringify(join(root, "js-shim", "dist", "index.cjs"))});
const { closeSync, openSync } = require("node:fs");
const make = () => createClient({ helperPath: ${JSON.stringify(stubPath)} });
const ask = (client) => client.responses.create({ input: "x" }).then(({ output_text }) => output_text, (error) => error);
(async () => {
  if (${loaded}) await using(make());
  const client = make();
  const taken = [];
  try { for (;;) taken.push(openSync("/dev/null")); } catch {}
  // Three pipes have two ends each.
  for (let free = 0; free < 6; free++) {
    if (free > 0) closeSync(taken.pop());
    const { code, detail, cause } = await ask(client);
    console.log(JSON.stringify({ free, code, detail, cause: cause?.code }));
  }
  for (const descriptor of taken) closeSync(descriptor);
  console.log(await using(client));
})();
async function using(client) {
  const answer = await ask(client);
  await client.close();
  return answer;
}`;
    const args = ["-c", 'ulimit -n 64; exec "$0" -e "$1"', process.execPath, code];
    const child = spawn("/bin/sh", args, { stdio: ["ignore", "pipe", "inherit"] });
    const lines = (await text(child.stdout)).trim().split("\n");
    assert.equal(lines.pop(), "x");
    assert.equal(lines.length, 6);
    for (const line of lines) {
      const { code, detail, cause } = JSON.parse(line);
      assert.deepEqual([code, cause], ["SPAWN_FAILED", "EMFILE"], line);
      assert.match(detail, /too many open files.*ulimit -n/);
    }
  });
}

/** Makes the files that are not helpers. */
function wrongHelpers(folder) {
  const file = (name, content, mode) => {
    writeFileSync(join(folder, name), content);
    chmodSync(join(folder, name), mode);
    return join(folder, name);
  };
  return [
    ["J5: missing", { helperPath: join(folder, "missing") }, /missing does not exist/],
    ["J5: not executable", { helperPath: file("plain", "#!/bin/sh\n", 0o644) }, /plain is not executable/],
    ["J5: a text", { helperPath: file("text", "root:x:0:0\n", 0o644) }, /text is not a program \(EACCES\)/],
    ["J5: a directory", { helperPath: folder }, /is a directory/],
    [
      "J5: a bad working directory",
      { helperPath: stubPath, cwd: relative(process.cwd(), join(folder, "nowhere")) },
      /working directory \/.*nowhere, from the option cwd/,
    ],
    ["J6: empty", { helperPath: file("empty", "", 0o755) }, /./],
    ["J6: garbage", { helperPath: file("garbage", "\x7fELF\0\x01\x02 nothing", 0o755) }, /./],
    ["J6: another program", { helperPath: "/bin/true" }, /ended with status 0/],
    ["J6: a program that prints something", { helperPath: "/bin/echo" }, /./],
    ["J6: a program that complains", { helperPath: "/bin/cat" }, /ended with status 1.*stdio/],
  ];
}

test("J5, J6: what is no helper is a spawn failure that says which file is to blame", async (t) => {
  const folder = temporaryFolder(t);
  for (const [name, options, message] of wrongHelpers(folder)) {
    await t.test(name, async () => {
      const client = createClient(options);
      for (const call of [client.health.ping(), client.responses.create({ input: "x" })]) {
        await assert.rejects(call, (error) => {
          assert.equal(error.code, "SPAWN_FAILED", error.detail);
          assert.match(error.detail, message);
          if (options.cwd === undefined) {
            assert.ok(error.detail.includes(options.helperPath), error.detail);
            assert.match(error.detail, /helperPath/);
          }
          return true;
        });
      }
      await client.close();
    });
  }
});

test("J6: a helper that greets is none", async (t) => {
  const client = stubClient(t, { start: "garbage" });
  await assert.rejects(client.health.ping(), { code: "SPAWN_FAILED" });
});

test("J7: ETXTBSY, which spawn throws, is a rejection all the same", async (t) => {
  const helperPath = join(temporaryFolder(t), "busy");
  copyFileSync("/bin/true", helperPath);
  chmodSync(helperPath, 0o755);
  const open = openSync(helperPath, "r+");
  const client = createClient({ helperPath });
  await assert.rejects(
    client.health.ping(),
    (error) => error.code === "SPAWN_FAILED" && /is being written/.test(error.detail),
  );
  const stream = client.responses.stream({ input: "x" });
  assert.equal((await drain(stream)).error.code, "SPAWN_FAILED");
  closeSync(open);
  await client.close();
});

test("J8: spaces, unicode and length in the path", async (t) => {
  const folder = join(temporaryFolder(t), "with space", "ünï-日本", "x".repeat(120), "y".repeat(120));
  mkdirSync(folder, { recursive: true });
  const helperPath = join(folder, "fm proxy.mjs");
  symlinkSync(stubPath, helperPath);
  await stubClient(t, {}, { helperPath }).health.ping();
});

/** This package and its platform's package, laid out as by npm, with the stub as helper; everything is read-only. */
function readOnlyInstallation(folder, helperMode) {
  const modules = join(folder, "node_modules");
  const bin = installStub(modules);
  cpSync(join(root, "js-shim", "dist"), join(modules, "fm-proxy", "dist"), { recursive: true });
  chmodAll(folder, { files: 0o444, folders: 0o555 });
  chmodSync(join(bin, "fm-proxy"), helperMode);
  return pathToFileURL(join(modules, "fm-proxy", "dist", "esm", "index.js")).href;
}

function chmodAll(folder, { files, folders }) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) chmodAll(path, { files, folders });
    else if (entry.isFile()) chmodSync(path, files);
  }
  chmodSync(folder, folders);
}

for (const [name, mode, outcome] of [
  ["a helper that may be run answers", 0o555, "one two"],
  ["one that lost its permission is refused, not repaired", 0o444, "SPAWN_FAILED"],
]) {
  test(`J9: nothing is written to a read-only installation, and no mode changed: ${name}`, async (t) => {
    const folder = temporaryFolder(t);
    const { FM_PROXY_PATH } = process.env;
    delete process.env.FM_PROXY_PATH;
    try {
      const installed = await import(readOnlyInstallation(folder, mode));
      // Root may write there anyway, so successful calls prove little; but an unchanged folder proves everything.
      const before = snapshot(folder);
      const client = installed.createClient();
      const answer = client.responses.create({ input: "one two" });
      assert.equal(await answer.then(installed.textOfResponse, ({ code }) => code), outcome);
      const report = await client.compatibility.check();
      assert.equal(report.reason_code, mode === 0o555 ? undefined : outcome);
      if (!report.compatible) assert.match(report.detail, /fm-proxy is not executable/);
      await client.close();
      assert.deepEqual(snapshot(folder), before);
    } finally {
      if (FM_PROXY_PATH !== undefined) process.env.FM_PROXY_PATH = FM_PROXY_PATH;
      chmodAll(folder, { files: 0o644, folders: 0o755 });
    }
  });
}

test("J10: stray text on stdout fails fast, and the next request gets a new helper", repeated(async (t) => {
  const client = stubClient(t);
  const started = performance.now();
  const { events, error } = await drain(
    client.responses.stream({ input: script("a", { stdout: "debug: here\n" }, { hang: "soft" }) }),
  );
  soon(performance.now() - started, 2000);
  assert.equal(error.code, "PROTOCOL_ERROR");
  assert.equal(error.partialText, "a");
  checkResponseStream(events);
  await until(() => !alive(client.starts()[0].started), "the end of the helper that wrote it");
  await client.responses.create({ input: "x" });
  assert.equal(client.starts().length, 2);
}));

test("J11: characters that are cut between two reads arrive whole", async (t) => {
  const client = stubClient(t, { split: true });
  const text = "é€😀".repeat(20);
  const { events } = await drain(client.responses.stream({ input: script(text, text) }));
  assert.equal(deltas(events), text + text);
});

test("J12: what a helper does not read is capped", async (t) => {
  const client = stubClient(t, { start: "deaf", shutdown: "ignore" }, { shutdownTimeoutMs: 50, checkCompatibility: false });
  const input = "x".repeat(9_000_000);
  const calls = Array.from({ length: 9 }, () => client.responses.create({ input }).catch(({ code }) => code));
  assert.equal(await Promise.race(calls), "OVERLOADED");
  await client.close();
  // Seven requests fit into 64 MiB.
  assert.deepEqual(await Promise.all(calls), [...Array(7).fill("CLOSED"), "OVERLOADED", "OVERLOADED"]);
});

const listeners = (signal) => getEventListeners(signal, "abort").length;

for (const kind of ["whole", "stream", "fetch", "chat"]) {
  test(`J13: an abort sends one cancel and leaves no listener: ${kind}`, async (t) => {
    const client = stubClient(t);
    const controller = new AbortController();
    const { signal } = controller;
    const messages = [{ role: "user", content: hang }];
    const body = JSON.stringify({ input: hang, stream: true });
    const outcome = {
      whole: () => client.responses.create({ input: hang }, { signal }).catch((error) => error),
      stream: () => drain(client.responses.stream({ input: hang }, { signal })).then(({ error }) => error),
      fetch: () =>
        client
          .fetch("http://x/responses", { method: "POST", body, signal })
          .then((response) => response.text())
          .catch((error) => error),
      chat: () =>
        drain(client.chat.completions.create({ messages, stream: true }, { signal })).then(({ error }) => error),
    }[kind]();
    await until(() => client.log().some(({ method }) => /create/.test(method)), "the request's arrival");
    controller.abort();
    controller.abort();
    assert.equal((await outcome).name, "AbortError");
    await client.health.ping();
    assert.equal(client.received("$/cancelRequest").length, 1);
    assert.equal(
      client.received("$/cancelRequest")[0].params.id,
      client.log().find(({ method }) => /create/.test(method)).id,
    );
    assert.equal(listeners(signal), 0);
  });
}

test("J13: an abort while the helper starts: rejected at once, the request is never sent", async (t) => {
  const client = stubClient(t);
  const controller = new AbortController();
  const call = client.responses.create({ input: "x" }, { signal: controller.signal });
  controller.abort();
  await assert.rejects(call, { name: "AbortError" });
  await client.health.ping();
  assert.equal(client.received("responses.create").length, 0);
  assert.equal(client.received("$/cancelRequest").length, 0);
});

test("J13: an abort in the same turn as the call, where the helper is ready: the request is never sent", async (t) => {
  const client = stubClient(t);
  await client.responses.create({ input: "first" });
  const controller = new AbortController();
  const call = client.responses.create({ input: "second" }, { signal: controller.signal });
  controller.abort(new Error("never mind"));
  client.responses.stream({ input: "third" }).abort();
  await assert.rejects(call, /never mind/);
  await client.models.list();
  assert.deepEqual(client.received("responses.create").map(({ params }) => params.input), ["first"]);
});

test("J13: break, abort() and the signal, all at once, send one cancel", async (t) => {
  const client = stubClient(t);
  const controller = new AbortController();
  const stream = client.responses.stream({ input: hang }, { signal: controller.signal });
  for await (const event of stream) if (isDelta(event)) break;
  stream.abort();
  controller.abort();
  await client.health.ping();
  assert.equal(client.received("$/cancelRequest").length, 1);
});

test("J13: break stops the request; the client goes on", async (t) => {
  const client = stubClient(t);
  for await (const event of client.responses.create({ input: hang, stream: true })) if (isDelta(event)) break;
  await client.health.ping();
  assert.equal(client.received("$/cancelRequest").length, 1);
  assert.equal((await client.responses.create({ input: "x" })).status, "completed");
});

test("responses.cancel ends the stream with its own last event", async (t) => {
  const client = stubClient(t);
  let id;
  const { events, error } = await drain(client.responses.stream({ input: hang }), async (event) => {
    id ??= event.response.id;
    if (isDelta(event)) await client.responses.cancel(id);
  });
  const final = checkResponseStream(events);
  assert.equal(final.status, "cancelled");
  assert.equal(error.code, "CANCELLED");
  assert.equal(error.partialText, "a");
  await assert.rejects(client.responses.cancel(id), { code: "NOT_FOUND", status: 404 });
});

test("J14: a helper that closes its stdin: a rejection, no uncaught EPIPE, a new helper", async (t) => {
  const client = stubClient(t, { start: "close-stdin" }, { checkCompatibility: false });
  // The handshake is answered; then the helper reads nothing more.
  await assert.rejects(client.responses.create({ input: "x".repeat(1_000_000) }), { code: "HELPER_EXITED" });
  await until(() => !alive(client.starts()[0].started), "its end");
});

/** Runs a host in a separate process; resolves with its output's lines, its status and the helper's pid. */
function runHost(t, mode, { onLine = () => {}, options = {} } = {}) {
  const json = JSON.stringify({ helperPath: stubPath, ...options });
  const child = spawn(process.execPath, [join(here, "fixtures", "host.mjs"), mode, json], {
    stdio: ["ignore", "pipe", "pipe"],
    // A shell does this for a command.
    detached: true,
  });
  t.after(() => child.kill("SIGKILL"));
  const lines = [];
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text) => void (stderr += text));
  createInterface({ input: child.stdout }).on("line", (line) => {
    lines.push(line);
    onLine(line, child);
  });
  return new Promise((resolve) => {
    child.on("close", (code, signal) => {
      resolve({ lines, stderr, code, signal, pid: Number(/pid (\d+)/.exec(lines[0])[1]) });
    });
  });
}

for (const mode of ["idle", "broken-off"]) {
  test(`J15: an idle helper does not keep Node alive: ${mode}`, { timeout: WAIT }, async (t) => {
    const { lines, code, pid } = await runHost(t, mode);
    assert.equal(lines.at(-1), "idle");
    assert.equal(code, 0);
    await until(() => !alive(pid), "the helper's end");
  });
}

test("J15: a busy helper keeps Node alive until it has answered", { timeout: WAIT }, async (t) => {
  const { lines, code, pid } = await runHost(t, "busy");
  assert.equal(lines.at(-1), "answered");
  assert.equal(code, 0);
  await until(() => !alive(pid), "the helper's end");
});

for (const [mode, how] of [["exit"], ["throw"], ["stuck", "SIGTERM"], ["stuck", "SIGKILL"]]) {
  test(`J15: no orphan after the host's end in mid-stream: ${how ?? mode}`, { timeout: WAIT }, async (t) => {
    const onLine = (line, child) => how && line === "streaming" && child.kill(how);
    const { lines, signal, code, pid } = await runHost(t, mode, { onLine });
    assert.equal(lines.at(-1), "streaming");
    if (how) assert.equal(signal, how);
    else assert.equal(code, mode === "exit" ? 0 : 1);
    await until(() => !alive(pid), "the helper's end");
  });
}

/** Like a terminal, which sends its signals to the host's whole process group. */
const signalGroup = (signal) => (line, { pid }) => line === "a" || line === "streaming" ? process.kill(-pid, signal) : undefined;

test("Ctrl-C in a terminal: a host that handles it itself gets its answer", { timeout: WAIT }, async (t) => {
  const { lines, code, pid } = await runHost(t, "interrupted", { onLine: signalGroup("SIGINT") });
  assert.deepEqual(lines.slice(1), ["a", "SIGINT", "b"]);
  assert.equal(code, 0);
  await until(() => !alive(pid), "the helper's end");
});

for (const how of ["SIGINT", "SIGHUP"]) {
  test(`J15: no orphan where a terminal ends the host: ${how}`, { timeout: WAIT }, async (t) => {
    const { signal, pid } = await runHost(t, "stuck", { onLine: signalGroup(how) });
    assert.equal(signal, how);
    await until(() => !alive(pid), "the helper's end");
  });
}

/** Runs the same host in a worker thread; `lines` has its output. */
function startWorker(t, mode, life) {
  const options = { helperPath: stubPath, env: { FM_STUB: JSON.stringify({ life }) } };
  const argv = [mode, JSON.stringify(options)];
  const worker = new Worker(join(here, "fixtures", "host.mjs"), { argv, stdout: true });
  t.after(() => worker.terminate());
  return { worker, lines: createInterface({ input: worker.stdout }) };
}

test("J16: in a worker thread: a streamed answer; idle, it lets the thread end", { timeout: WAIT }, async (t) => {
  const { path, death } = await watchLife(t);
  const { worker, lines } = startWorker(t, "streamed", path);
  const said = [];
  lines.on("line", (line) => said.push(line));
  const [[code]] = await Promise.all([once(worker, "exit"), once(lines, "close")]);
  assert.equal(code, 0);
  assert.deepEqual(said.slice(1), ["one ", "two"]);
  await death;
});

test("J16: a worker thread that is terminated in mid-stream leaves no helper", { timeout: WAIT }, async (t) => {
  const { path, death } = await watchLife(t);
  const { worker, lines } = startWorker(t, "stuck", path);
  for await (const line of lines) if (line === "streaming") break;
  await worker.terminate();
  await death;
});

test("J19: the helper does not see the host's secrets", async (t) => {
  process.env.MY_API_KEY = "secret";
  t.after(() => delete process.env.MY_API_KEY);
  const client = stubClient(t);
  await client.health.ping();
  const [{ env }] = client.starts();
  assert.ok(env.includes("PATH"));
  for (const name of env) assert.match(name, /^(PATH|HOME|TMPDIR|TEMP|TMP|LANG|LC_\w+|TZ|XDG_\w+|FM_\w+)$/);
});

test("J20: a hundred requests over crashes and cancels: each settles exactly once", async (t) => {
  const client = stubClient(t, {}, { restart: { maxCrashes: 1000, perRequestAfter: 1000, firstDelayMs: 1, maxDelayMs: 5 } });
  const inputs = [
    "x",
    script("a", { sleep_ms: 5 }, "b"),
    script({ error: "broken" }),
    script({ sleep_ms: 20 }, { exit: 1 }),
    hang,
  ];
  let settled = 0;
  const calls = Array.from({ length: 100 }, (_, index) => {
    const signal = index % 5 === 4 ? AbortSignal.timeout(30) : undefined;
    const body = { input: inputs[index % 5] };
    const call =
      index % 2 ? client.responses.create(body, { signal }) : client.responses.stream(body, { signal }).finalResponse();
    return call.finally(() => settled++);
  });
  const outcomes = await Promise.allSettled(calls);
  assert.equal(settled, 100);
  for (const { reason } of outcomes) {
    assert.ok(
      reason === undefined || reason.name === "TimeoutError" || ["HELPER_EXITED", "INTERNAL"].includes(reason.code),
      reason,
    );
  }
});

test("J21: twenty streams side by side: each in order, with one terminal event", async (t) => {
  const client = stubClient(t);
  const words = Array.from({ length: 30 }, (_, index) => [`w${index} `, { sleep_ms: 1 }]).flat();
  const streams = Array.from({ length: 20 }, (_, index) =>
    drain(client.responses.stream({ input: script(`${index}: `, ...words) })),
  );
  (await Promise.all(streams)).forEach(({ events, error }, index) => {
    assert.equal(error, null);
    checkResponseStream(events);
    assert.ok(deltas(events).startsWith(`${index}: w0 w1 `));
  });
});

test("an engine failure in mid-stream: the helper's own last events, then the error", async (t) => {
  const client = stubClient(t);
  const { events, error } = await drain(client.responses.stream({ input: script("a", { error: "broken" }) }));
  assert.equal(checkResponseStream(events).error.message, "broken");
  assert.equal(error.code, "INTERNAL");
  assert.equal(error.response.status, "failed");
});

const deep = (levels) => {
  let value = {};
  for (let level = 0; level < levels; level++) value = { a: value };
  return value;
};

test("what an object's toJSON makes is what is checked: that call fails by name, the others go on", async (t) => {
  const client = stubClient(t);
  const other = client.responses.create({ input: script("a", { sleep_ms: 200 }, "b") });
  const bad = (value) => ({ toJSON: () => value });
  for (const [body, param, message] of [
    [{ input: "x", metadata: bad(deep(80)) }, /^metadata\.a\.a/, /64 levels/],
    [{ input: [{ role: "user", content: bad(deep(80)) }] }, /^input\[0\]\.content\.a/, /64 levels/],
    [{ input: "x", metadata: bad({ "a\0b": "c" }) }, /^metadata\["a\\u0000b"\]$/, /NUL/],
    [{ input: "x", seed: bad(5n) }, /^seed$/, /BigInt/],
  ]) {
    const isFault = (error) => {
      assert.equal(error.code, "INVALID_REQUEST", error.detail);
      assert.equal(error.status, 400);
      assert.match(error.openai.param, param);
      assert.match(error.detail, message);
      assert.ok(error.detail.includes(error.openai.param));
      return true;
    };
    await assert.rejects(client.responses.create(body), isFault);
    await assert.rejects(client.responses.stream(body).finalResponse(), isFault);
  }
  // A deep object is accepted if its serialised form is not too deep.
  const flat = Object.assign(deep(80), { toJSON: () => ({ a: "b" }) });
  checkResponse(await client.responses.create({ input: "x", metadata: flat }));
  assert.equal((await other).status, "completed");
  assert.equal(client.starts().length, 1);
});

test("a request that cannot be sent is refused, and disturbs nobody", async (t) => {
  const client = stubClient(t);
  const other = client.responses.create({ input: script({ sleep_ms: 50 }, "a") });
  const input = "x".repeat(10_000_001);
  await assert.rejects(client.responses.create({ input }), { code: "INVALID_REQUEST", status: 413 });
  const response = await client.fetch("http://x/responses", { method: "POST", body: JSON.stringify({ input }) });
  assert.equal(response.status, 413);
  assert.equal((await other).status, "completed");
});

test("close: a goodbye, then the exit is awaited; calls under way are cancelled, later ones refused", async (t) => {
  const client = stubClient(t);
  const { pid } = await client.health.ping();
  const call = client.responses.create({ input: hang });
  const cancelled = assert.rejects(call, { code: "CANCELLED" });
  await until(() => client.received("responses.create").length === 1, "the request's arrival");
  await Promise.all([client.close(), client.close()]);
  assert.equal(alive(pid), false);
  assert.equal(client.received("process.shutdown").length, 1);
  await cancelled;
  await assert.rejects(client.health.ping(), { code: "CLOSED" });
  assert.equal((await drain(client.responses.stream({ input: "x" }))).error.code, "CLOSED");
  assert.equal((await client.fetch("http://x/models")).status, 404);
  assert.equal(client.starts().length, 1);
});

test("close: a helper that will not go is killed", async (t) => {
  const client = stubClient(t, { shutdown: "ignore" }, { shutdownTimeoutMs: 300 });
  const { pid } = await client.health.ping();
  const call = assert.rejects(client.responses.create({ input: hang }), { code: "CLOSED" });
  await client.close();
  assert.equal(alive(pid), false);
  await call;
});

test("close: before the start, while starting, while waiting to start again", async (t) => {
  await stubClient(t).close();

  const starting = stubClient(t, { start: "silent" });
  const first = assert.rejects(starting.health.ping(), { code: "CLOSED" });
  await until(() => starting.starts().length === 1, "its start");
  await starting.close();
  await first;
  assert.equal(alive(starting.starts()[0].started), false);

  const waiting = stubClient(t, {}, { restart: { firstDelayMs: 60_000, maxDelayMs: 60_000 } });
  for (let attempt = 0; attempt < 2; attempt++) {
    await assert.rejects(waiting.responses.create({ input: script({ exit: 1 }) }), { code: "HELPER_EXITED" });
  }
  const before = children();
  const second = assert.rejects(waiting.health.ping(), { code: "CLOSED" });
  await new Promise(setImmediate);
  assert.deepEqual(children(), before, "started without a pause");
  await waiting.close();
  await second;
});

test("close right after the first call: nothing is started any more, and each call fails once", async (t) => {
  const client = stubClient(t);
  let settled = 0;
  const count = () => void settled++;
  const calls = [client.health.ping(), client.responses.create({ input: "x" })];
  const stream = client.responses.stream({ input: "x" });
  const outcomes = [...calls, stream.finalResponse(), client.fetch("http://x/models")].map((call) => {
    call.then(count, count);
    return call.then(({ status }) => status, ({ code }) => code);
  });
  await client.close();
  assert.deepEqual(await Promise.all(outcomes), ["CLOSED", "CLOSED", "CLOSED", 404]);
  assert.equal((await drain(stream)).error.code, "CLOSED");
  assert.equal(settled, 4);
  await client.close();
  assert.deepEqual(client.starts(), []);
});

for (let pause = 1; pause <= 12; pause++) {
  test(`close ${pause} turns after the first call: nothing runs afterwards`, async (t) => {
    const before = children();
    const client = stubClient(t);
    const call = client.responses.create({ input: hang }).catch(({ code }) => code);
    // First within one turn of the event loop, then some turns later, before and after the handshake.
    for (let turn = 0; turn < pause; turn++) await (pause <= 6 ? null : new Promise(setImmediate));
    await client.close();
    assert.deepEqual(children(), before);
    assert.match(await call, /^(CLOSED|CANCELLED)$/);
    await new Promise(setImmediate);
    assert.deepEqual(children(), before, "started after close");
  });
}

test("close waits for a helper that was given up before, too", async (t) => {
  const client = stubClient(t, { start: "silent" }, { handshakeTimeoutMs: 3000 });
  const ping = assert.rejects(client.health.ping(), { code: "HELPER_UNHEALTHY" });
  await until(() => client.starts().length === 1, "its start");
  const [{ started: pid }] = client.starts();
  await ping;
  await client.close();
  // It is not even a zombie: its end was noticed.
  assert.throws(() => process.kill(pid, 0), { code: "ESRCH" });
});

for (const memory of ["ends", "lingers"]) {
  test(`a helper out of memory fails every call clearly and is replaced: ${memory}`, async (t) => {
    const client = stubClient(t);
    const first = drain(client.responses.stream({ input: hang }));
    await until(() => client.received("responses.create").length === 1, "the first request");
    const second = client.responses.create({ input: script("a", { memory }) });
    await assert.rejects(second, (error) => {
      assert.equal(error.code, "HELPER_EXITED");
      assert.match(error.detail, /out of memory/);
      return true;
    });
    const { events, error } = await first;
    assert.equal(error.code, "HELPER_EXITED");
    assert.equal(error.partialText, "a");
    checkResponseStream(events);
    await until(() => !alive(client.starts()[0].started), "its end");
    checkResponse(await client.responses.create({ input: "again" }));
    assert.equal(client.starts().length, 2);
  });
}

test("a chat completion that its helper's death cut off has no finish_reason and no usage", async (t) => {
  const client = stubClient(t);
  const messages = [{ role: "user", content: script("half ", "an answer", { signal: "KILL" }) }];
  const { error } = await drain(client.chat.completions.create({ messages, stream: true }));
  assert.equal(error.code, "HELPER_EXITED");
  assert.equal(error.partialText, "half an answer");
  assert.equal(error.completion.choices[0].finish_reason, null);
  assert.equal(error.completion.usage, null);
});

test("what a helper says before it has answered is in the error: the end of it, on one line", async (t) => {
  const noise = "noise \u00e9\n".repeat(2000);
  const client = stubClient(t, { start: "exit", stderr: `first\n${noise}the \x1b[31mreason\n\n` }, { store: "e\nx" });
  await assert.rejects(client.health.ping(), ({ code, detail }) => {
    assert.equal(code, "SPAWN_FAILED");
    assert.ok(detail.includes(stubPath), detail);
    assert.match(detail, /helperPath/);
    assert.match(detail, /store "e\\nx"/);
    assert.match(detail, /status 9/);
    assert.match(detail, /noise \u00e9.*reason$/);
    assert.doesNotMatch(detail, /first|\ufffd|[\x00-\x1f]/);
    assert.ok(Buffer.byteLength(detail) < 2048 + 512, `${detail.length} characters`);
    return true;
  });
  const silent = stubClient(t, { start: "silent", stderr: "I wait for something" }, { handshakeTimeoutMs: 3000 });
  await assert.rejects(silent.health.ping(), ({ code, detail }) => {
    assert.equal(code, "HELPER_UNHEALTHY");
    assert.ok(detail.includes(stubPath), detail);
    undisturbed(/I wait for something/.test(detail), detail);
    return true;
  });
});

test("onLog gets all of stderr, whole characters, before the handshake and after it", async (t) => {
  const log = [];
  const client = stubClient(t, { stderr: "start \u00e9\n", later: "later\n" }, { onLog: (text) => log.push(text) });
  await client.responses.create({ input: "x" });
  await until(() => log.join("") === "start \u00e9\nlater\n", "the log");
  const [first, ...rest] = Buffer.from("\u20ac\n");
  const pieces = [];
  const cut = stubClient(t, { stderr: [first], later: rest }, { onLog: (text) => pieces.push(text) });
  await cut.responses.create({ input: "x" });
  await until(() => pieces.join("").endsWith("\n"), "the rest of the character");
  assert.equal(pieces.join(""), "\u20ac\n");
});

for (const [name, onLog, said] of [
  ["throws", () => { throw new Error("my log is full"); }, "my log is full"],
  ["rejects", () => Promise.reject(new Error("my log is full")), "my log is full"],
  ["throws what has no text", () => { throw Object.create(null); }, "can't be shown"],
]) {
  test(`an onLog that ${name} ends nothing, and is one warning`, async (t) => {
    const warnings = [];
    const failures = [];
    const onWarning = ({ message }) => warnings.push(message);
    const onFailure = (error) => failures.push(error);
    process.on("warning", onWarning).on("uncaughtException", onFailure).on("unhandledRejection", onFailure);
    t.after(() => {
      process.off("warning", onWarning).off("uncaughtException", onFailure).off("unhandledRejection", onFailure);
    });
    const client = stubClient(t, { stderr: "start\n", later: "later\n" }, { onLog });
    await client.responses.create({ input: "x" });
    await until(() => warnings.length + failures.length > 0, "the warning");
    await client.responses.create({ input: "x" });
    await client.close();
    assert.deepEqual(failures, []);
    assert.equal(warnings.length, 1);
    assert.match(warnings[0], /onLog/);
    assert.ok(warnings[0].includes(said), warnings[0]);
  });
}

for (const [name, options, expected] of [
  ["with logLevel, stderr goes to the host's", { logLevel: "debug" }, "start later "],
  ["without it, stderr goes nowhere", {}, ""],
]) {
  test(name, async (t) => {
    const env = { FM_STUB: JSON.stringify({ stderr: "start ", later: "later " }) };
    const { stderr, lines, code } = await runHost(t, "idle", { options: { ...options, env } });
    assert.equal(code, 0);
    assert.equal(lines.at(-1), "idle");
    assert.equal(stderr, expected);
  });
}

test("a listener of the log that comes after the start hears what is logged from then on", async (t) => {
  const client = stubClient(t, { later: "later\n" });
  await client.responses.create({ input: "x" });
  const heard = new Promise((resolve) => client.on("log", resolve));
  await client.responses.create({ input: "x" });
  assert.match(await heard, /^(later\n)+$/, "what was written before may be read with it");
});

test("a helper that writes much to stderr is not held up by it", async (t) => {
  const client = stubClient(t, { later: "x".repeat(1000), times: 1000 });
  for (let round = 0; round < 3; round++) checkResponse(await client.responses.create({ input: "x" }));
  assert.equal(client.starts().length, 1);
});

test("await using closes", async (t) => {
  const client = stubClient(t);
  const { pid } = await client.health.ping();
  await client[Symbol.asyncDispose]();
  assert.equal(alive(pid), false);
});
