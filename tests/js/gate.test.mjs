// client.compatibility: every reason, how many helpers are started to find it, and how long it is remembered.
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { checkMachine } from "../../js-shim/dist/esm/gate.js";
import { script, stubClient, stubPath, temporaryFolder } from "./support/helper.mjs";
import { checkResponse } from "./support/invariants.mjs";

const oldLibrary = "fm-proxy: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found (required by fm-proxy)\n";
const unavailable = (reason_code) => ({ capabilities: { available: false, reason_code, detail: "why" } });

for (const [name, stub, options, reason, starts] of [
  ["all is well", {}, {}, undefined, 1],
  ["the model is not there", unavailable("MODEL_NOT_READY"), {}, "MODEL_NOT_READY", 1],
  ["the system's switch is off", unavailable("AI_DISABLED"), {}, "AI_DISABLED", 1],
  ["the helper finds the system too old", unavailable("OS_TOO_OLD"), {}, "OS_TOO_OLD", 1],
  ["the helper finds the hardware unfit", unavailable("UNSUPPORTED_HARDWARE"), {}, "UNSUPPORTED_HARDWARE", 1],
  ["a reason of a later helper", unavailable("SOMETHING_NEW"), {}, "HELPER_UNHEALTHY", 1],
  ["the helper exits", { start: "exit" }, {}, "SPAWN_FAILED", 1],
  ["the C library is too old for the helper", { stderr: oldLibrary, start: "exit" }, {}, "OS_TOO_OLD", 1],
  ["there is no helper", {}, { helperPath: "/nowhere/fm-proxy" }, "SPAWN_FAILED", 0],
  ["another version of the protocol", { version: 7 }, {}, "PROTOCOL_MISMATCH", 2],
  ["the helper is silent", { start: "silent" }, { handshakeTimeoutMs: 300 }, "HELPER_UNHEALTHY", 1],
]) {
  test(`${name}: ${reason ?? "compatible"}, with ${starts} started`, async (t) => {
    const client = stubClient(t, stub, options);
    const report = await client.compatibility.check();
    assert.equal(report.reason_code, reason);
    assert.equal(report.compatible, reason === undefined);
    assert.equal(report.detail === undefined, report.compatible);
    assert.equal("reason_code" in report, !report.compatible);
    assert.equal(client.starts().length, starts);
    // Another check, or a request, starts no further helper.
    assert.deepEqual(await client.compatibility.check(), report);
    const call = client.responses.create({ input: "x" });
    if (report.compatible) checkResponse(await call);
    else await assert.rejects(call, (error) => error.detail === report.detail && error.status === 404);
    const { error } = report.compatible ? {} : await client.safe.responses.create({ input: "x" });
    assert.equal(error?.detail, report.detail);
    assert.equal(client.starts().length, starts);
    assert.equal(client.received("capabilities.get").length, starts === 1 && !/silent|exits|too old for/.test(name) ? 1 : 0);
  });
}

test("a closed client is not compatible", async (t) => {
  const client = stubClient(t);
  await client.close();
  assert.equal((await client.compatibility.check()).reason_code, "HELPER_UNHEALTHY");
  assert.equal((await client.compatibility.check({ recheck: true })).reason_code, "HELPER_UNHEALTHY");
});

test("what the apple engine needs of a machine", () => {
  const check = (platform, arch, release) => checkMachine({ platform, arch, release })?.reason_code ?? null;
  assert.equal(check("linux", "x64", "6.1.0"), "NOT_DARWIN");
  assert.equal(check("win32", "arm64", "10.0"), "NOT_DARWIN");
  assert.equal(check("darwin", "x64", "25.0.0"), "UNSUPPORTED_HARDWARE");
  assert.equal(check("darwin", "arm64", "24.6.0"), "OS_TOO_OLD");
  assert.equal(check("darwin", "arm64", "rubbish"), "OS_TOO_OLD");
  assert.equal(check("darwin", "arm64", "25.0.0"), null);
  assert.equal(check("darwin", "arm64", "26.1.0"), null);
});

for (const [name, options] of [
  ["the option", { engine: "apple" }],
  ["a variable of the option env", { env: { FM_PROXY_ENGINE: "apple" } }],
]) {
  const skip = process.platform === "darwin";
  test(`the apple engine elsewhere is refused without a start: ${name}`, { skip }, async (t) => {
    const client = stubClient(t, {}, options);
    assert.equal((await client.compatibility.check()).reason_code, "NOT_DARWIN");
    await assert.rejects(client.responses.create({ input: "x" }), { code: "UNAVAILABLE", reasonCode: "NOT_DARWIN" });
    await assert.rejects(client.health.ping(), { reasonCode: "NOT_DARWIN" });
    assert.deepEqual(client.starts(), []);
  });
}

test("the apple engine elsewhere is refused without a start: the host's variable", async (t) => {
  process.env.FM_PROXY_ENGINE = "apple";
  t.after(() => delete process.env.FM_PROXY_ENGINE);
  const client = stubClient(t);
  assert.equal((await client.compatibility.check()).reason_code, process.platform === "darwin" ? undefined : "NOT_DARWIN");
});

/** A clock that stands still until the test moves it. */
function fakeClock(t) {
  let now = 1000;
  t.mock.method(performance, "now", () => now);
  return (ms) => void (now += ms);
}

test("that the model is not there is remembered for five minutes, without a question to the helper", async (t) => {
  const advance = fakeClock(t);
  const client = stubClient(t, unavailable("MODEL_NOT_READY"));
  const asked = () => client.received("capabilities.get").length;
  await client.compatibility.check();
  advance(299_999);
  await client.compatibility.check();
  await assert.rejects(client.responses.create({ input: "x" }), { reasonCode: "MODEL_NOT_READY", status: 404 });
  assert.equal(asked(), 1);
  advance(1);
  await client.compatibility.check();
  assert.equal(asked(), 2);
  await client.compatibility.check({ recheck: true });
  assert.equal(asked(), 3);
});

test("a request that names a model goes on where the default one is missing", async (t) => {
  const client = stubClient(t, unavailable("MODEL_NOT_READY"));
  checkResponse(await client.responses.create({ input: "x", model: "another" }));
  for (const model of [undefined, null, "", "default", "local"]) {
    await assert.rejects(client.responses.create({ input: "x", model }), { code: "UNAVAILABLE" });
  }
});

test("compatible is remembered for good, until a request is told that the model is unavailable", async (t) => {
  const advance = fakeClock(t);
  const client = stubClient(t);
  const asked = () => client.received("capabilities.get").length;
  await client.responses.create({ input: "x" });
  advance(1e9);
  await client.responses.create({ input: "x" });
  assert.equal(asked(), 1);
  await assert.rejects(client.responses.create({ input: script({ fail: ["UNAVAILABLE", "gone"] }) }), { code: "UNAVAILABLE" });
  assert.equal(asked(), 1);
  await client.responses.create({ input: "x" });
  assert.equal(asked(), 2);
});

test("many requests at once ask once", async (t) => {
  const client = stubClient(t);
  await Promise.all(Array.from({ length: 20 }, () => client.responses.create({ input: "x" })));
  assert.deepEqual(await client.compatibility.check(null), { compatible: true });
  assert.equal(client.received("capabilities.get").length, 1);
  assert.equal(client.starts().length, 1);
});

test("a request waits for no engine that is still being asked, if another one is available", async (t) => {
  const order = [
    { name: "a", available: true },
    { name: "b", available: false, reason_code: "CHECKING", detail: "the engine b is being asked" },
  ];
  const client = stubClient(t, { capabilities: { order } });
  checkResponse(await client.responses.create({ input: "x" }));
  assert.equal(client.received("capabilities.get").length, 1);
});

test("checkCompatibility false: nothing is asked", async (t) => {
  const client = stubClient(t, unavailable("MODEL_NOT_READY"), { checkCompatibility: false });
  checkResponse(await client.responses.create({ input: "x" }));
  assert.equal(client.received("capabilities.get").length, 0);
});

test("another version: the start is tried once more, with the helper that is there then", async (t) => {
  const folder = temporaryFolder(t);
  const helperPath = join(folder, "helper.mjs");
  const counter = join(folder, "count");
  mkdirSync(counter);
  // The first start gets an old helper, the next one gets the stub.
  const old = `if mkdir "${counter}/1" 2>/dev/null; then FM_STUB='{"version":2}'; export FM_STUB; fi`;
  writeFileSync(helperPath, `#!/bin/sh\n${old}\nexec "${stubPath}" "$@"\n`);
  chmodSync(helperPath, 0o755);
  symlinkSync(stubPath, join(folder, "stub"));
  const client = stubClient(t, {}, { helperPath });
  assert.deepEqual(await client.compatibility.check(), { compatible: true });
  assert.equal(client.starts().length, 2);
});

test("its limit is handshakeTimeoutMs: a helper that says hello and nothing more", async (t) => {
  const client = stubClient(t, { capabilities: "none" }, { handshakeTimeoutMs: 400 });
  const started = performance.now();
  const { reason_code } = await client.compatibility.check();
  assert.equal(reason_code, "HELPER_UNHEALTHY");
  assert.ok(performance.now() - started >= 390);
});

test("states: what a host that listens is told", async (t) => {
  const client = stubClient(t, unavailable("MODEL_NOT_READY"));
  const changes = [];
  const stop = client.on("state", (change) => changes.push(change));
  client.on("state", () => {
    throw new Error("the listener has a bug");
  });
  await client.compatibility.check();
  assert.deepEqual(
    changes.map(({ state, reason_code }) => [state, reason_code]),
    [
      ["starting", undefined],
      ["ready", undefined],
      ["waiting", "MODEL_NOT_READY"],
    ],
  );
  stop();
  await client.close();
  assert.equal(changes.length, 3);
});
