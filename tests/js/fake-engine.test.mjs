// The package's own calls on the built helper with the fake engine.
import assert from "node:assert/strict";
import { chmodSync, copyFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { checkChatStream, checkResponse, checkResponseStream } from "./support/invariants.mjs";
import {
  alive,
  children,
  deltas,
  drain,
  fakeClient,
  helperPath,
  sanitizerEnv,
  script,
  snapshot,
  temporaryFolder,
  until,
} from "./support/helper.mjs";
import { repeated, soon, undisturbed } from "./support/patience.mjs";

const user = (content) => [{ role: "user", content }];

test("models.load and models.unload", async (t) => {
  const client = fakeClient(t);
  const loaded = await client.models.load({ model: "fake", fm: { keep_alive_ms: -1 } });
  assert.equal(loaded.model, "fake");
  assert.equal(loaded.context_length, 4096);
  assert.deepEqual((await client.capabilities.get()).engines.map(({ model, state }) => [model, state]), [["fake", "ready"]]);
  assert.deepEqual(await client.models.load(), loaded, "it is loaded");
  const stream = client.responses.stream({ input: script("x", { hang: "soft" }) });
  for await (const event of stream) {
    if (event.type !== "response.output_text.delta") continue;
    await assert.rejects(client.models.unload(), { code: "OVERLOADED", message: /the model fake has 1 request;/ });
    break;
  }
  await until(async () => (await client.models.unload().catch(() => null))?.unloaded);
  assert.deepEqual(await client.models.unload({ model: "default" }), { model: "fake", unloaded: false });
  await assert.rejects(client.models.load({ model: "none" }), { code: "NOT_FOUND" });
});

test("models.load: a signal ends it", async (t) => {
  const client = fakeClient(t, { env: { FM_ENGINE_FAKE_LOAD: "hang" } });
  const aborting = new AbortController();
  const engines = async () => (await client.capabilities.get()).engines.length;
  const load = client.models.load({}, { signal: aborting.signal });
  load.catch(() => {});
  await until(async () => (await engines()) === 1);
  aborting.abort();
  await assert.rejects(load, { name: "AbortError" });
  await until(async () => (await engines()) === 0);
});

test("health, capabilities, models, compatibility", async (t) => {
  const client = fakeClient(t);
  const pong = await client.health.ping();
  assert.equal(pong.protocol_version, 1);
  assert.ok(alive(pong.pid));
  const { engines, requests } = await client.metrics.get();
  assert.deepEqual([engines.starts, requests.received], [0, 0]);
  const capabilities = await client.capabilities.get();
  assert.equal(capabilities.available, true);
  assert.equal(capabilities.engine.name, "fake");
  assert.equal(capabilities.engine.state, "idle", "looking has started the engine");
  assert.equal(capabilities.engine.sandbox, null, "no engine has told");
  assert.deepEqual(await client.compatibility.check(), { compatible: true });
  const { object, data } = await client.models.list();
  assert.equal(object, "list");
  assert.deepEqual(
    data.map(({ id }) => id),
    capabilities.models.map(({ id }) => id),
  );
});

test("compatibility of a helper without its engine, and without a model", async (t) => {
  const missing = await fakeClient(t, { engine: "no-such-engine" }).compatibility.check();
  assert.equal(missing.compatible, false);
  assert.equal(missing.reason_code, "HELPER_UNHEALTHY");
  const noFile = await fakeClient(t, { engine: "llama", model: "/nowhere/model.gguf" }).compatibility.check();
  assert.equal(noFile.compatible, false);
  assert.ok(["MODEL_NOT_READY", "HELPER_UNHEALTHY"].includes(noFile.reason_code), noFile.reason_code);
});

test("a GPU: what the options ask for, and what became of it", async (t) => {
  const used = async (options) => {
    const client = fakeClient(t, options);
    await client.responses.create({ input: "x" });
    return (await client.capabilities.get()).engine.gpu;
  };
  const gpu = { device: "fake GPU", layers: 12, total_layers: 12, detail: null };
  assert.deepEqual(await used({ gpuDir: "/usr/lib" }), gpu);
  assert.deepEqual(await used({ gpuDir: "/usr/lib", gpu: "auto" }), gpu);
  assert.deepEqual(await used({ gpuDir: "/usr/lib", gpu: 3 }), { ...gpu, layers: 3 });
  assert.equal(await used({ gpuDir: "/usr/lib", gpu: "off" }), null);
  for (const wrong of [0, -1, 1.5, "3", "all", true]) {
    assert.throws(() => fakeClient(t, { gpu: wrong }), { code: "INVALID_REQUEST", message: /'gpu'/ });
  }
});

test("a model that did not load is not compatible: the first failed request tells", async (t) => {
  const client = fakeClient(t, { env: { ...sanitizerEnv, FM_ENGINE_FAKE_LOAD: "error" } });
  assert.deepEqual(await client.compatibility.check(), { compatible: true });
  await assert.rejects(client.responses.create({ input: "x" }), { code: "UNAVAILABLE" });
  const { compatible, reason_code, detail } = await client.compatibility.check();
  assert.deepEqual([compatible, reason_code], [false, "MODEL_NOT_READY"]);
  await assert.rejects(client.responses.create({ input: "x" }), { code: "UNAVAILABLE", detail, reasonCode: reason_code });
});

test("responses and chat, whole and streamed, agree", async (t) => {
  const client = fakeClient(t);
  const input = script("Hé", "llo ", "😀 ", "wörld");
  const text = "Héllo 😀 wörld";
  const response = await client.responses.create({ input });
  checkResponse(response);
  assert.equal(response.output[0].content[0].text, text);
  const stream = client.responses.stream({ input });
  const { events, error } = await drain(stream);
  assert.equal(error, null);
  assert.deepEqual(await stream.finalResponse(), { ...checkResponseStream(events), output_text: text });
  assert.equal(deltas(events), text);
  const completion = await client.chat.completions.create({ messages: user(input) });
  assert.equal(completion.choices[0].message.content, text);
  const chat = client.chat.completions.create({ messages: user(input), stream: true });
  assert.equal(checkChatStream((await drain(chat)).events), text);
  assert.equal((await chat.finalCompletion()).choices[0].message.content, text);
  const told = await client.chat.completions.create({ messages: user(text), stream: true, top_q: 1, fm: { timings: true } });
  const { ignored, timings } = (await told.finalCompletion()).fm; // `ignored` is in the first chunk, `timings` in the last one
  assert.deepEqual([ignored, timings.cached_tokens, timings.queue_ms > 0], [["top_q"], 0, true]);
});

test("every way for a stream to end keeps the invariants", async (t) => {
  const client = fakeClient(t);
  const a = "a ".repeat(3);
  const tools = [{ type: "function", name: "f" }];
  const call = { tool_call: { name: "f", arguments: '{"a": 1}' } };
  for (const [name, body, status, code] of [
    ["done", { input: script(a) }, "completed", null],
    ["nothing said", { input: script({ finish: "stop" }) }, "completed", null],
    ["content filter", { input: script(a, { finish: "content_filter" }) }, "incomplete", null],
    ["token limit", { input: script({ repeat: ["b ", 9] }), max_output_tokens: 4 }, "incomplete", null],
    ["stop sequence", { input: script("one ", "STOP", " two"), stop: "STOP" }, "completed", null],
    ["engine failure", { input: script(a, { error: "broken" }) }, "failed", "INTERNAL"],
    ["engine crash", { input: script(a, { signal: "SEGV" }) }, "failed", "INTERNAL"],
    ["engine exit", { input: script(a, { exit: 0 }) }, "failed", "INTERNAL"],
    ["calls", { input: script(a, call, call), tools }, "completed", null],
    ["a cut call", { input: script(a, call), tools, max_output_tokens: 2 }, "incomplete", null],
    ["a failure in mid-call", { input: script(a, call, { error: "broken" }), tools }, "failed", "INTERNAL"],
    ["a crash in mid-call", { input: script(a, call, call, { signal: "SEGV" }), tools }, "failed", "INTERNAL"],
    ["total limit", { input: script(a, { hang: "soft" }), fm: { timeout_ms: 200 } }, "failed", "TIMEOUT"],
    ["no progress", { input: script(a, { hang: "hard" }), fm: { no_progress_timeout_ms: 200 } }, "failed", "TIMEOUT"],
  ]) {
    await t.test(name, repeated(async () => {
      const { events, error } = await drain(client.responses.stream(body));
      const final = checkResponseStream(events);
      assert.equal(final.status, status);
      assert.equal(error?.code ?? null, code);
      if (code !== null) {
        undisturbed(code !== "TIMEOUT" || error.partialText === a, "a token before the limit");
        assert.equal(error.partialText, a);
        assert.equal(error.response.status, "failed");
      }
      if (code === "TIMEOUT") {
        assert.equal(error.limit, name === "total limit" ? "total" : "no_progress");
        assert.equal(error.limitMs, 200);
      }
    }));
  }
});

test("what no one knows is ignored, and reported by the object, the stream and the header", async (t) => {
  const client = fakeClient(t);
  const ignored = { ignored: ["top_q", "metadata_"] };
  const more = { top_q: 1, metadata_: { "x y": 1 } };
  const messages = [{ role: "user", content: "one two" }];
  assert.deepEqual((await client.responses.create({ input: "one two", ...more })).fm, ignored);
  assert.deepEqual((await client.chat.completions.create({ messages, ...more })).fm, ignored);
  assert.deepEqual((await client.completions.create({ prompt: "one two", ...more })).fm, ignored);
  assert.deepEqual((await client.embeddings.create({ input: "x", ...more })).fm, ignored);
  for (const stream of [false, true]) {
    for (const [path, body] of [
      ["responses", { input: "one two" }],
      ["chat/completions", { messages }],
      ["completions", { prompt: "one two" }],
    ]) {
      const init = { method: "POST", body: JSON.stringify({ ...body, ...more, stream }) };
      const answer = await client.fetch(`http://x/${path}`, init);
      assert.equal(answer.headers.get("x-fm-ignored"), "top_q, metadata_", path);
      assert.match(await answer.text(), /"fm":\{"ignored":\["top_q","metadata_"\]\}/);
      const plain = await client.fetch(`http://x/${path}`, { ...init, body: JSON.stringify({ ...body, stream }) });
      assert.equal(plain.headers.get("x-fm-ignored"), null, path);
      await plain.text();
    }
  }
});

test("a failed completion keeps what was ignored", async (t) => {
  const client = fakeClient(t);
  const content = script("half ", { signal: "KILL" });
  const chat = client.chat.completions.create({ messages: [{ role: "user", content }], top_q: 1, stream: true });
  await assert.rejects(chat.finalCompletion(), (error) => error.completion.fm.ignored[0] === "top_q");
});

test("what the helper refuses is an FmError with code, param and status", async (t) => {
  const client = fakeClient(t, { strictParameters: true });
  for (const [body, code, param, openaiCode] of [
    [{}, "INVALID_REQUEST", "input", "missing_required_parameter"],
    [{ input: 7 }, "INVALID_REQUEST", "input", "invalid_type"],
    [{ input: "x", max_output_tokens: 0 }, "INVALID_REQUEST", "max_output_tokens", "integer_below_min_value"],
    [{ input: "x", nonsense: 1 }, "INVALID_REQUEST", "nonsense", "unknown_parameter"],
    [{ input: "x", background: true, store: false }, "INVALID_REQUEST", "background", "unsupported_value"],
    [{ input: "x", model: "none" }, "NOT_FOUND", "model", "model_not_found"],
  ]) {
    for (const stream of [false, true]) {
      const call = stream ? client.responses.stream(body).finalResponse() : client.responses.create(body);
      await assert.rejects(call, (error) => {
        assert.equal(error.name, "FmError");
        assert.deepEqual([error.code, error.openai.param, error.openai.code], [code, param, openaiCode]);
        return true;
      });
    }
  }
});

test("a cancel frees the engine: by break, by signal, by id, by abort()", async (t) => {
  const client = fakeClient(t);
  const input = script("a ", { hang: "soft" });
  for await (const event of client.responses.stream({ input })) if (deltas([event])) break;
  const controller = new AbortController();
  const { error } = await drain(client.responses.stream({ input }, { signal: controller.signal }), (event) => {
    if (deltas([event])) controller.abort();
  });
  assert.equal(error.name, "AbortError");
  let id;
  const byId = await drain(client.responses.stream({ input }), async (event) => {
    id ??= event.response.id;
    if (!deltas([event])) return;
    const cancelled = await client.responses.cancel(id);
    assert.equal(cancelled.status, "cancelled");
    assert.equal(cancelled.output[0].content[0].text, "a ");
  });
  assert.equal(checkResponseStream(byId.events).status, "cancelled");
  assert.equal(byId.error.code, "CANCELLED");
  const quiet = client.responses.stream({ input });
  assert.equal((await drain(quiet, (event) => deltas([event]) && quiet.abort())).error, null);
  assert.equal((await client.responses.create({ input: script("b") })).status, "completed");
});

test("a controller in the place of its signal: an error that names it, and nothing is sent", async (t) => {
  const client = fakeClient(t);
  const wrong = { code: "INVALID_REQUEST", message: /Invalid 'signal': it must be an AbortSignal/ };
  const options = { signal: new AbortController() };
  const messages = user("a");
  for (const ask of [
    () => client.responses.create({ input: "a" }, options),
    () => client.responses.create({ input: "a", stream: true }, options),
    () => client.responses.stream({ input: "a" }, options).finalResponse(),
    () => client.chat.completions.create({ messages, stream: true }, options),
    () => client.embeddings.create({ input: "a" }, options),
    () => client.generate({ input: "a", fallback: () => "b" }, options),
    () => client.models.pull("qwen3-0.6b", options),
  ]) {
    await assert.rejects(ask, wrong);
  }
  assert.equal((await client.safe.responses.create({ input: "a" }, options)).error.code, "INVALID_REQUEST");
  assert.equal((await drain(client.responses.stream({ input: "a" }, options))).error.code, "INVALID_REQUEST");
  assert.equal((await client.metrics.get()).requests.completed, 0);
});

test("SIGKILL to the helper in mid-stream: one terminal event, a typed error, and the next request works", repeated(async (t) => {
  const client = fakeClient(t);
  const { pid } = await client.health.ping();
  let killed = 0;
  const { events, error } = await drain(client.responses.stream({ input: script("a ", { hang: "hard" }) }), (event) => {
    if (!deltas([event])) return;
    process.kill(pid, "SIGKILL");
    killed = performance.now();
  });
  soon(performance.now() - killed, 500);
  assert.equal(checkResponseStream(events).status, "failed");
  assert.equal(error.code, "HELPER_EXITED");
  assert.equal(error.partialText, "a ");
  assert.equal((await client.responses.create({ input: script("b") })).status, "completed");
}));

test("close: the helper is gone, whatever its engine does", repeated(async (t) => {
  for (const hang of ["soft", "hard"]) {
    const client = fakeClient(t);
    const { pid } = await client.health.ping();
    let closing;
    const { events, error } = await drain(client.responses.stream({ input: script("a ", { hang }) }), (event) => {
      if (deltas([event])) closing = client.close();
    });
    checkResponseStream(events);
    assert.ok(["CANCELLED", "CLOSED"].includes(error.code), error.code);
    const started = performance.now();
    await closing;
    soon(performance.now() - started, 2500);
    await until(() => !alive(pid), "the helper's end");
  }
}));

test("SIGKILL to the helper in a chat stream: the partial completion is like the helper's own", async (t) => {
  const client = fakeClient(t);
  const { pid } = await client.health.ping();
  const stream = (step) => client.chat.completions.create({ messages: user(script("a ", step)), stream: true });
  const failed = await drain(stream({ error: "broken" }));
  const killed = await drain(stream({ hang: "hard" }), ({ choices }) => {
    if (choices[0].delta.content) process.kill(pid, "SIGKILL");
  });
  assert.equal(killed.error.code, "HELPER_EXITED");
  assert.equal(killed.error.partialText, "a ");
  const [own, made] = [failed.error.completion, killed.error.completion];
  assert.equal(own.choices[0].finish_reason, null);
  assert.equal(made.choices[0].finish_reason, null);
  assert.equal(made.usage, null);
  assert.deepEqual(Object.keys(made).sort(), Object.keys(own).sort());
  assert.deepEqual(made.choices, own.choices);
});

test("SIGKILL to the helper in mid-call: the partial answers are like the helper's own", async (t) => {
  const call = (name) => ({ tool_call: { name, arguments: '{"a": 1' } });
  const input = (step) => script(call("f"), call("g"), step);
  const functions = [{ name: "f" }, { name: "g" }];
  const tools = functions.map((tool) => ({ type: "function", ...tool }));
  const chatTools = functions.map((tool) => ({ type: "function", function: tool }));
  const gone = async (start, isLast) => {
    const client = fakeClient(t);
    const { pid } = await client.health.ping();
    const failed = await drain(start(client, { error: "broken" }));
    let there = true;
    const killed = await drain(start(client, { hang: "hard" }), (event) => {
      if (there && isLast(event)) there = !process.kill(pid, "SIGKILL");
    });
    assert.equal(killed.error.code, "HELPER_EXITED");
    return [failed.error, killed.error, killed.events];
  };
  const chat = (client, step) =>
    client.chat.completions.create({ messages: user(input(step)), tools: chatTools, stream: true });
  const all = '{"a": 1{"a": 1';
  let said = "";
  const [own, made] = await gone(chat, ({ choices }) => {
    said += choices[0].delta.tool_calls?.[0].function.arguments ?? "";
    return said === all;
  });
  const calls = ({ completion }) => completion.choices[0].message.tool_calls.map((one) => ({ ...one, id: null }));
  assert.deepEqual(calls(made), calls(own));
  assert.equal(made.completion.choices[0].message.content, null);
  assert.deepEqual(Object.keys(made.completion.choices[0].message), Object.keys(own.completion.choices[0].message));

  said = "";
  const [failed, killed, events] = await gone(
    (client, step) => client.responses.stream({ input: input(step), tools }),
    ({ type, delta }) => {
      said += type === "response.function_call_arguments.delta" ? delta : "";
      return said === all;
    },
  );
  checkResponseStream(events);
  const output = ({ response }) => response.output.map((item) => ({ ...item, id: null, call_id: null }));
  assert.deepEqual(output(killed), output(failed));
});

test("a deep object from toJSON fails alone on the real wire", async (t) => {
  const client = fakeClient(t);
  const { pid } = await client.health.ping();
  const other = client.responses.create({ input: script({ sleep_ms: 200 }, "b") });
  for (const levels of [60, 61, 62, 63, 64, 80]) {
    let value = {};
    for (let level = 0; level < levels; level++) value = { a: value };
    await assert.rejects(client.responses.create({ input: "x", metadata: { toJSON: () => value } }), (error) => {
      assert.equal(error.code, "INVALID_REQUEST", error.detail);
      assert.match(error.openai.param, /^metadata/);
      return true;
    });
  }
  assert.equal((await other).status, "completed");
  assert.equal((await client.health.ping()).pid, pid);
});

test("options that the helper refuses: the error names its program, the option and the reason", async (t) => {
  const long = "x".repeat(256);
  for (const [options, ...said] of [
    [{ aliases: { [long]: "default" } }, `aliases {"${long}":"default"}`, "(1 to 255 bytes each)"],
    [{ logLevel: undefined, env: { ...sanitizerEnv, FM_PROXY_LOG_LEVEL: "loud" } }, 'LEVEL "loud"', "must be off, error"],
    [{ engine: undefined, env: { ...sanitizerEnv, FM_PROXY_ENGINE: "a b" } }, 'FM_PROXY_ENGINE "a b"', "engine's name"],
    [{ helperPath: "/etc/hostname" }, "/etc/hostname", "helperPath"],
    [{ helperPath: "/bin/true" }, "/bin/true", "helperPath"],
  ]) {
    await t.test(JSON.stringify(options), async () => {
      const client = fakeClient(t, options);
      const report = await client.compatibility.check();
      assert.equal(report.reason_code, "SPAWN_FAILED");
      const error = await client.responses.create({ input: "x" }).catch((reason) => reason);
      assert.equal(error.code, "SPAWN_FAILED");
      for (const text of [options.helperPath ?? helperPath, ...said]) {
        assert.ok(error.detail.includes(text), `no ${text}: ${error.detail}`);
        assert.ok(report.detail.includes(text), `no ${text}: ${report.detail}`);
      }
    });
  }
});

test("close right after the first call leaves neither helper nor engine", async (t) => {
  const before = children();
  const client = fakeClient(t);
  const call = client.responses.create({ input: script("a", { hang: "soft" }) });
  await Promise.all([client.close(), assert.rejects(call, { code: "CLOSED" })]);
  assert.deepEqual(children(), before);
});

test("J9: helper and engine answer from a read-only folder, which stays as it was", async (t) => {
  const folder = temporaryFolder(t);
  for (const name of ["fm-proxy", "fm-engine-fake"]) {
    copyFileSync(join(dirname(helperPath), name), join(folder, name));
    chmodSync(join(folder, name), 0o555);
  }
  chmodSync(folder, 0o555);
  try {
    const before = snapshot(folder);
    const client = fakeClient(t, { helperPath: join(folder, "fm-proxy"), cwd: folder });
    await client.health.ping();
    const { events, error } = await drain(client.responses.stream({ input: script("one ", "two") }));
    assert.equal(error, null);
    assert.equal(deltas(events), "one two");
    await client.close();
    assert.deepEqual(snapshot(folder), before);
  } finally {
    chmodSync(folder, 0o755);
  }
});

test("ten thousand deltas: all there, in order", async (t) => {
  const client = fakeClient(t);
  const { events, error } = await drain(client.responses.stream({ input: script({ repeat: ["word ", 10_000] }) }));
  assert.equal(error, null);
  checkResponseStream(events);
  assert.equal(deltas(events), "word ".repeat(10_000));
});

test("64 streams at once", async (t) => {
  const client = fakeClient(t);
  const all = await Promise.all(
    Array.from({ length: 64 }, (_, index) =>
      drain(client.responses.stream({ input: script(`${index}`, { repeat: [" x", 50] }) })),
    ),
  );
  all.forEach(({ events, error }, index) => {
    assert.equal(error, null);
    checkResponseStream(events);
    assert.equal(deltas(events), `${index}${" x".repeat(50)}`);
  });
});
