// protocol/*.schema.json is the single source for shapes and limits. This test compares the documents, the C code, the
// recorded exchanges and a running helper with it. In all of them, a member that the schemas do not have is an error.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, copyFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { encodeFrame, FrameParser } from "../../js-shim/dist/esm/framing.js";
import { made } from "../../js-shim/scripts/types.mjs";
import { helperPath, root, sanitizerEnv, script, temporaryFolder, until } from "./support/helper.mjs";
import {
  assertValid,
  cFiles,
  cLiterals,
  cValues,
  document,
  examples,
  faults,
  NAMES,
  pointer,
  prose,
  quoted,
  schemas,
  tableAfter,
  walk,
  Wire,
} from "./support/schemas.mjs";

const { host, engine, sessions } = Object.fromEntries(NAMES.map((name) => [name, schemas[name].$defs]));
const sorted = (names) => [...new Set(names)].sort();

// ---- the schemas themselves

for (const name of NAMES) {
  test(`${name}.schema.json: all of it compiles, and a number that is a limit's is that limit's`, () => {
    walk(schemas[name], (schema) => {
      if (typeof schema.$ref !== "string") return;
      const [file, path] = schema.$ref.split("#/$defs/");
      assert.notEqual(faults(file.split(".")[0] || name, path, Symbol.iterator), undefined);
    });
    const { limits } = schemas[name].$defs;
    walk(schemas[name], (schema, path) => {
      if (typeof schema.$comment !== "string") return;
      for (const [, keyword, limit] of schema.$comment.matchAll(/(\w+): limits\.(\w+)/g)) {
        assert.equal(schema[keyword], limits[limit].const, `${path}/${keyword}`);
      }
    });
  });
}

test("what is made from the schemas is current: run `npm run types --prefix js-shim`", () => {
  for (const { path, text } of made()) assert.equal(readFileSync(path, "utf8"), text, path);
});

// ---- recorded exchanges

for (const name of ["host", "engine"]) {
  test(`every line of golden/${name}.jsonl is valid, except requests that are refused`, () => {
    const lines = readFileSync(join(root, "protocol", "golden", `${name}.jsonl`), "utf8")
      .trim()
      .split("\n");
    const wire = new Wire(name);
    let wrong = null;
    for (const { to, from } of lines.map((line) => JSON.parse(line))) {
      if (to !== undefined) {
        wrong = wire.sent(to);
        continue;
      }
      wire.received(from);
      const code = from.error?.code ?? from.result?.error?.code ?? from.params?.error?.code;
      if (from.method === undefined || from.method === "job.finished") {
        assert.equal(wrong !== null, code === "INVALID_REQUEST" || code < 0, `${JSON.stringify(from)}\n${wrong}`);
      }
    }
  });
}

// ---- the documents

const DOCUMENTS = { host: "PROTOCOL.md", engine: "ENGINE.md", sessions: "SESSIONS.md" };

for (const [name, file] of Object.entries(DOCUMENTS).filter(([name]) => name !== "sessions")) {
  test(`every example in ${file} is valid`, () => {
    const { methods } = schemas[name].$defs;
    const blocks = examples(document(file));
    assert.ok(blocks.length >= 7);
    for (const { definitions, values, line, heading } of blocks) {
      assert.notEqual(values.length, 0, `${file}:${line} has no JSON`);
      values.forEach(({ value, left }, index) => {
        const result = heading in methods ? `methods/${pointer(heading)}/result` : "call";
        const definition = definitions?.[Math.min(index, definitions.length - 1)] ?? result;
        // An example with one member is not the whole object.
        const member = Object.keys(value).length === 1 || definition === "job_tools";
        assertValid(name, definition, value, { left: left || member });
      });
    }
  });
}

test("the frame in PROTOCOL.md has the length that its header says", () => {
  const [, length, body] = /Content-Length: (\d+)\\r\\n\n\\r\\n\n(.*)\n/.exec(document("PROTOCOL.md"));
  assert.equal(Buffer.byteLength(body), Number(length));
});

test("the conversation in SESSIONS.md is valid, except requests that are refused", () => {
  const lines = [...document("SESSIONS.md").matchAll(/^([<>]) (\{.*\})$/gm)];
  assert.ok(lines.length >= 10);
  let request = null;
  for (const [, direction, text] of lines) {
    const message = JSON.parse(text);
    if (direction === ">") {
      request = message;
      continue;
    }
    assertValid("sessions", `commands/${request.command}/answer`, message);
    const refused = !message.ok && message.error !== "session_not_found";
    const wrong = faults("sessions", `commands/${request.command}/request`, request);
    assert.equal(wrong !== null, refused, `${JSON.stringify(request)}\n${wrong}`);
  }
});

test("the methods in PROTOCOL.md are those of the schema, and so are the notifications", () => {
  const text = document("PROTOCOL.md");
  const rows = tableAfter(text, "\n## Methods");
  assert.deepEqual(sorted(rows.map(([name]) => quoted(name)[0])), sorted(Object.keys(host.methods)));
  for (const [name, params] of rows) {
    const { required = [] } = host.methods[quoted(name)[0]].params;
    for (const each of required.filter((param) => quoted(params).includes(`${param}?`))) {
      assert.fail(`${name}: ${each} is required`);
    }
  }
  const shown = [...text.matchAll(/"method":"([^"]+)"/g)].map(([, name]) => name);
  const notifications = shown.filter((name) => !(name in host.methods));
  assert.deepEqual(sorted(notifications), sorted(Object.keys(host.notifications)));
});

test("the methods and events in ENGINE.md are those of the schema, with their members", () => {
  const text = document("ENGINE.md");
  const calls = [...tableAfter(text, "\n## Calls of the front"), ...tableAfter(text, "\nNotifications of the front")];
  const events = tableAfter(text, "\n## Events of the engine");
  assert.deepEqual(sorted(calls.map(([name]) => quoted(name)[0])), sorted(Object.keys(engine.methods)));
  assert.deepEqual(sorted(events.map(([name]) => quoted(name)[0])), sorted(Object.keys(engine.notifications)));
  for (const [cell, members] of events) {
    const [name] = quoted(cell);
    const { properties, required } = engine.notifications[name].params;
    const listed = [...members.matchAll(/`(\w+)`(\??)/g)];
    assert.deepEqual(sorted(listed.map(([, member]) => member)), sorted(Object.keys(properties)), name);
    assert.deepEqual(
      sorted(listed.filter(([, , mark]) => mark === "").map(([, member]) => member)),
      sorted(required),
      name,
    );
  }
  const start = calls.filter(([name]) => name === "`job.start`").flatMap(([, members]) => quoted(members));
  assert.deepEqual(sorted(start), sorted(membersOf(engine, engine.methods["job.start"].params)));
});

/** The names of all members that an object can have. */
function membersOf(definitions, schema) {
  if (schema.$ref !== undefined) {
    const [file, path] = schema.$ref.split("#/$defs/");
    const from = file === "" ? definitions : schemas[file.split(".")[0]].$defs;
    return membersOf(
      from,
      path.split("/").reduce((at, key) => at[key.replaceAll("~1", "/")], from),
    );
  }
  const more = [...(schema.allOf ?? []), ...(schema.oneOf ?? []), ...(schema.anyOf ?? [])];
  return [...Object.keys(schema.properties ?? {}), ...more.flatMap((each) => membersOf(definitions, each))];
}

test("the parameters in PROTOCOL.md are those of the schema", () => {
  const text = document("PROTOCOL.md");
  const chapter = (name) => text.slice(text.indexOf(`\n### ${name}\n`)).split(/\n##/)[1];
  for (const name of ["responses.create", "decisions.create", "embeddings.create", "completions.create"]) {
    const known = membersOf(host, host.methods[name].params);
    const listed = tableAfter(text, `\n### ${name}\n`).flatMap(([cell]) =>
      quoted(cell).map((each) => each.split(/[. ]/)[0]),
    );
    assert.deepEqual(sorted(listed), sorted(known), name);
  }
  for (const name of ["chat.completions.create", "responses.input_tokens", "responses.compact"]) {
    const named = quoted(chapter(name)).map((each) => each.split(/[. ]/)[0]);
    const known = sorted(membersOf(host, host.methods[name].params)).filter((each) => !named.includes(each));
    const everywhere =
      name === "responses.compact"
        ? quoted(tableAfter(text, "\n## Methods").join()).map((each) => each.replace("?", ""))
        : [];
    assert.deepEqual(
      known.filter((each) => !everywhere.includes(each) && each !== "fm"),
      [],
      name,
    );
  }
});

test("the errors in PROTOCOL.md are those of the schema", () => {
  const text = document("PROTOCOL.md");
  const [, list] = /\nINVALID_REQUEST has one of these codes: ([^;]*);/.exec(text);
  for (const [code, , status, type, codes] of tableAfter(text, "\n### Errors")) {
    const shape = host.error_shapes[code].properties;
    const listed =
      code === "INVALID_REQUEST" ? [...quoted(list), ...(list.includes("null") ? [null] : [])] : codes.split("; ");
    assert.deepEqual([Number(status), type], [shape.status.const, shape.type.const], code);
    assert.deepEqual(sorted(listed), sorted(shape.code.enum), code);
  }
  const codes = tableAfter(text, "\n### Errors").map(([code]) => code);
  assert.deepEqual(sorted(codes), sorted(host.code.oneOf.map((each) => each.const)));
  assert.deepEqual(sorted(codes), sorted(Object.keys(host.error_shapes)));
  const rpc = tableAfter(text, "\n## Calls").map(([code]) => Number(code));
  assert.deepEqual(sorted(rpc), sorted(host.rpc_code.oneOf.map((each) => each.const)));
});

test("the commands and errors in SESSIONS.md are those of the schema", () => {
  const text = document("SESSIONS.md");
  const rows = tableAfter(text, "\n## Requests");
  assert.deepEqual(sorted(rows.map(([cell]) => /"([a-z-]+)"/.exec(cell)[1])), sorted(Object.keys(sessions.commands)));
  for (const [cell] of rows) {
    const { properties } = sessions.commands[/"([a-z-]+)"/.exec(cell)[1]].request;
    assert.deepEqual(sorted(quoted(cell).map((name) => name.replace("?", ""))), sorted(Object.keys(properties)));
  }
  const listed = tableAfter(text, "\n## Errors")
    .flatMap(([cell]) => quoted(cell))
    .map((code) => code.replace("DETAIL", ""));
  const known = sessions.error.anyOf.flatMap((each) => each.enum ?? [each.pattern.slice(1)]);
  assert.deepEqual(sorted(listed), sorted(known));
});

test("the events in PROTOCOL.md are those of the schema", () => {
  const text = document("PROTOCOL.md");
  const types = host.event.oneOf.map((each) => each.properties.type.const);
  const objects = ["response.compaction", "response.input_tokens"];
  const named = quoted(text).filter((name) => /^response(\.[a-z_]+)+$/.test(name) && !objects.includes(name));
  const short = (name) => name.endsWith(".done") && text.includes("`.done`");
  assert.deepEqual(
    sorted(named).filter((name) => !types.includes(name)),
    [],
  );
  assert.deepEqual(
    types.filter((name) => !quoted(text).includes(name) && !short(name)),
    [],
  );
});

test("the features in ENGINE.md are those of the schema", () => {
  const row = tableAfter(document("ENGINE.md"), "\n## Description").find(([member]) => member === "`features`");
  assert.deepEqual(sorted(quoted(row[1])), sorted(engine.feature.enum));
});

/** Large numbers in the documents that are not limits: examples, and facts about other software. */
const OTHER_NUMBERS = {
  host: { "1,608": "an example", "2,147,483,647": "INT32_MAX" },
  engine: {},
  sessions: {},
};
const UNITS = { "": 1, KiB: 2 ** 10, MiB: 2 ** 20 };

for (const [name, file] of Object.entries(DOCUMENTS)) {
  test(`every large number in ${file} is a limit, by the schemas`, () => {
    const text = prose(document(file)).replace(/<!-- limits: [^]*?<!-- end of limits -->/, "");
    const limits = NAMES.flatMap((each) =>
      Object.values(schemas[each].$defs.limits).map((limit) => Math.abs(limit.const)),
    );
    const unknown = [];
    for (const [, number, unit = ""] of text.matchAll(
      /(?<![\d.,])(\d{1,3}(?:,\d{3})+|\d+(?= [KM]iB))(?: ([KM]iB))?(?![\d])/g,
    )) {
      const value = Number(number.replaceAll(",", "")) * UNITS[unit];
      if (!limits.includes(value) && !(number in OTHER_NUMBERS[name])) unknown.push(`${number} ${unit}`.trim());
    }
    assert.deepEqual(unknown, []);
  });
}

// ---- the C code

const C_FILES = cFiles("helper", "protocol");

for (const name of NAMES) {
  test(`the limits of ${name}.schema.json are those of the C code`, () => {
    const { limits, protocol_version: version } = schemas[name].$defs;
    const numbers = { ...limits, ...(version === undefined ? {} : { version }) };
    for (const [limit, { const: value, $comment }] of Object.entries(numbers)) {
      assert.match($comment ?? "", /^C: ./, `${limit}: $comment does not say where the C code has it`);
      for (const asked of $comment.replace("C: ", "").split(", ")) {
        const found = cValues(C_FILES, asked);
        assert.notEqual(found.length, 0, `${limit}: the C code has no ${asked}`);
        assert.deepEqual(sorted(found), [value], `${limit}: ${asked}`);
      }
    }
  });
}

test("the names that the C code says on a wire are those of the schemas", () => {
  const known = [
    ...Object.keys(host.methods),
    ...Object.keys(host.notifications),
    ...host.event.oneOf.map((each) => each.properties.type.const).filter((type) => type !== "error"),
    ...Object.keys(engine.methods),
    ...Object.keys(engine.notifications),
    ...["chat.completion", "chat.completion.chunk", "response.compaction"], // names of object types
    "response.input_tokens",
  ];
  const words = "health|capabilities|metrics|requests|responses?|chat|completions|decisions|embeddings|models|process|engine|job";
  const name = new RegExp(`^(?:\\$/\\w+|keepalive|(?:${words})(?:\\.[a-z_]+)+)$`);
  const literals = [...cLiterals(C_FILES)].filter((literal) => name.test(literal));
  assert.deepEqual(sorted(literals), sorted(known));
});

test("the front has the methods of the schemas, and no other", () => {
  const name = /^(?:\$\/\w+|[a-z]+(?:\.[a-z_]+)+)$/;
  const of = (files) => sorted([...cLiterals(files)].filter((literal) => name.test(literal)));
  assert.deepEqual(of(cFiles("helper/front")), sorted(Object.keys(host.methods)));
  const shared = new Map([["engine.h", readFileSync(join(root, "protocol/engine.h"), "utf8")]]); // also with the kit
  assert.deepEqual(of(shared), sorted([...Object.keys(engine.methods), ...Object.keys(engine.notifications)]));
});

test("the codes of errors in the C code are those of the schemas", () => {
  const literals = cLiterals(C_FILES);
  const text = [...C_FILES.values()].join("\n");
  const codes = [...text.matchAll(/\[FM_[A-Z_]+\] = "([A-Z_]+)"/g)].map(([, code]) => code);
  assert.deepEqual(sorted(codes.filter((code) => code !== "OK")), sorted(Object.keys(host.error_shapes)));
  for (const shape of Object.values(host.error_shapes)) {
    const { status, type, code } = shape.properties;
    const row = `{${status.const}, "${type.const}", "${code.enum[0]}"}`;
    assert.ok(text.includes(row), row);
    for (const each of code.enum.filter((fine) => fine !== null)) assert.ok(literals.has(each), each);
  }
  for (const code of sessions.error.anyOf.flatMap((each) => each.enum ?? [each.pattern.slice(1, -2)])) {
    assert.ok(literals.has(code), code);
  }
});

test("the features in the C code are those of the schema", () => {
  const [, rows] = readFileSync(join(root, "protocol/engine.h"), "utf8").match(/#define FM_FEATURES\(ROW\)((?:.*\\\n)*.*)/);
  const names = [...rows.matchAll(/ROW\([A-Z_]+, "(\w+)"\)/g)].map(([, name]) => name);
  assert.deepEqual(sorted(names), sorted(engine.feature.enum));
});

for (const name of ["fake", "llama"]) {
  const program = join(dirname(helperPath), `fm-engine-${name}`);
  test(`the description file of the engine ${name} is valid`, { skip: !existsSync(program) }, () => {
    const text = execFileSync(program, ["--describe"], { encoding: "utf8" });
    assert.equal(readFileSync(`${program}.json`, "utf8"), text);
    assertValid("engine", "description_file", JSON.parse(text));
  });
}

test("what is no description", () => {
  for (const value of [[], "own", { models: "file" }, { features: ["toolz"] }, { features: "tools" }, { model: "own" }]) {
    assert.notEqual(faults("engine", "description_file", value), null, JSON.stringify(value));
  }
});

// ---- a helper that runs

/** An engine program that passes everything on to the fake engine, and records both directions. */
function recordingEngine(t) {
  const folder = temporaryFolder(t);
  const fake = join(dirname(helperPath), "fm-engine-fake");
  const program = `#!${process.execPath}
const { spawn } = require("node:child_process");
const { appendFileSync } = require("node:fs");
const child = spawn(${JSON.stringify(fake)}, { stdio: ["pipe", "pipe", "inherit", 3, 4] });
const pass = (from, to, file) => {
  from.on("data", (bytes) => { appendFileSync(file, bytes); to.write(bytes); });
  from.on("end", () => to.end());
};
pass(process.stdin, child.stdin, ${JSON.stringify(join(folder, "to"))});
pass(child.stdout, process.stdout, ${JSON.stringify(join(folder, "from"))});
child.on("exit", (code) => { process.exitCode = code ?? 1; });
child.stdin.on("error", () => {});
`;
  writeFileSync(join(folder, "fm-engine-fake"), program);
  chmodSync(join(folder, "fm-engine-fake"), 0o755);
  copyFileSync(`${fake}.json`, join(folder, "fm-engine-fake.json"));
  const read = (file) => {
    const messages = [];
    new FrameParser((body) => messages.push(JSON.parse(Buffer.from(body)))).push(readFileSync(join(folder, file)));
    return messages;
  };
  return { folder, read };
}

/** A helper that gets frames from the test. Each frame of the helper is checked when it comes. */
class Host {
  wire = new Wire("host");
  events = [];
  #waiting = new Map();
  #nextId = 1;
  #fault = null;

  constructor(t, args = [], more = {}) {
    const env = { PATH: process.env.PATH, ...sanitizerEnv, ...more };
    this.child = spawn(helperPath, ["--stdio", "--engine", "fake", ...args], {
      stdio: ["pipe", "pipe", "inherit"],
      env,
    });
    this.ended = once(this.child, "exit");
    t.after(() => this.child.kill("SIGKILL"));
    const parser = new FrameParser((body) => this.#take(JSON.parse(Buffer.from(body))));
    this.child.stdout.on("data", (bytes) => parser.push(bytes));
  }

  /** Makes a call. If `wrong`, the schema must find an error in the call. Resolves with the result, or the error. */
  call(method, params, { wrong = false, onEvent } = {}) {
    const id = this.#nextId++;
    const message = { jsonrpc: "2.0", id, method, ...(params === undefined ? {} : { params }) };
    const fault = this.wire.sent(message);
    assert.equal(fault !== null, wrong, `${JSON.stringify(message).slice(0, 500)}: ${fault}`);
    this.child.stdin.write(encodeFrame(message));
    const result = new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject, onEvent }));
    return Object.assign(result, { id });
  }

  /** Makes a call like `call`. The result must be ok. */
  async ok(method, params, options) {
    const result = await this.call(method, params, options);
    assert.equal(result.ok, true, JSON.stringify(result));
    return result;
  }

  async fails(code, method, params, options) {
    const result = await this.call(method, params, options);
    assert.equal(result.error?.code, code, JSON.stringify(result));
    return result;
  }

  notify(method, params) {
    const message = { jsonrpc: "2.0", method, params };
    assert.equal(this.wire.sent(message), null);
    this.child.stdin.write(encodeFrame(message));
  }

  #take(message) {
    const id = message.id ?? message.params?.id;
    const call = this.#waiting.get(id);
    try {
      this.wire.received(message);
      if (message.method !== undefined) return call.onEvent?.(message.params);
      this.#waiting.delete(id);
      call.resolve(message.result ?? { error: message.error });
    } catch (error) {
      if (call === undefined) throw error;
      call.reject(error);
    }
  }
}

const SCHEMA = { type: "object", properties: { a: { type: "string" } }, required: ["a"], additionalProperties: false };
const TOOL = { type: "function", name: "weather", description: "How it is", parameters: SCHEMA, strict: true };
const CALL = script("It is ", { tool_call: { name: "weather", arguments: '{"a":"x"}' } });
const THINK = script({ reasoning: "Hm." }, "Yes", ".");
const SLOW = script("a ", { sleep_ms: 60_000 });

async function driveResponses(host) {
  const create = (params, options) => host.ok("responses.create", params, options);
  const { response } = await create(
    { input: "a b c", instructions: "Be brief.", metadata: { a: "b" }, top_q: 1 },
    { wrong: true },
  );
  await create({ input: CALL, tools: [TOOL], tool_choice: "auto", stream: true, parallel_tool_calls: false });
  const refuse = JSON.stringify([{ piece: ["reasoning", "hm"] }, { state: "S" }, { refusal: "No." }]);
  await create({ input: refuse, stream: true });
  const custom = script({ tool_call: { name: "f", arguments: '{"input":"a"}' } });
  await create({ input: custom, tools: [{ type: "custom", name: "f" }], stream: true });
  const read = script({ prefill_ms: 1 }, "a");
  await create({ input: read, stream: true, return_progress: true });
  await host.ok("chat.completions.create", { messages: [{ role: "user", content: read }], stream: true, return_progress: true });
  await host.ok("completions.create", { prompt: read, stream: true, return_progress: true });
  await create({ input: JSON.stringify([{ piece: ["text", "a"] }]), fm: { local_only: true } });
  const messages = [{ role: "user", content: refuse }];
  await host.ok("chat.completions.create", { messages });
  await host.ok("chat.completions.create", { messages, stream: true, stream_options: { include_usage: true } });
  for (const reasoning_dialect of ["summary", "reasoning_text", "reasoning"]) {
    await create({
      input: THINK,
      stream: true,
      reasoning: { effort: "low", summary: "auto" },
      fm: { reasoning_dialect },
    });
  }
  await create({
    input: "a b",
    include: ["message.output_text.logprobs"],
    top_logprobs: 2,
    stream: true,
    temperature: 0,
    seed: 7,
    stop: ["zz"],
  });
  const format = { type: "json_schema", name: "x", description: "y", schema: SCHEMA, strict: true };
  await create({
    input: "word",
    text: { format, verbosity: "low" },
    fm: { schema_report: true, timeout_ms: 50_000 },
    top_k: 4,
    min_p: 0.1,
    repeat_penalty: 1.1,
    ignore_eos: false,
  });
  await create({ input: "word", text: { format: { type: "json_object" } }, fm: { schema_report: true } });
  await create({ input: "a b c", max_output_tokens: 1, stream: true });
  await create({ input: script("ab", "x"), stop: ["abc"] }); // the first text is held back, so the engine reports progress
  await create({ input: script("x", { finish: "content_filter" }) });
  await create({
    previous_response_id: response.id,
    input: [{ type: "message", role: "user", content: [{ type: "input_text", text: "more" }] }],
  });
  await create({ input: "later", background: true, stream: true });
  await create({ input: Array(400).fill({ role: "user", content: "word ".repeat(20) }), truncation: "auto" });
  await host.fails("CONTEXT_OVERFLOW", "responses.create", { input: "word ".repeat(5000) });
  await host.fails("INTERNAL", "responses.create", { input: script("part", { error: "it broke" }), stream: true });
  await host.fails("TIMEOUT", "responses.create", { input: SLOW, stream: true, fm: { timeout_ms: 100 } });
  await host.fails("INVALID_REQUEST", "responses.create", {
    input: [{ type: "function_call_output", call_id: "x", output: "y" }],
  });
  await host.fails("INVALID_REQUEST", "responses.create", { input: "x", fm: { unknown: 1 } }, { wrong: true });
  await host.fails("INVALID_REQUEST", "responses.create", { input: "x", previous_response_id: "resp_none" });
  await host.fails("NOT_FOUND", "responses.create", { input: "x", model: "none" });
  await driveCancels(host);
  await driveStored(host, response.id);
  await host.ok("responses.input_tokens", { input: "a b c", instructions: "d", tools: [TOOL] });
  await host.fails("INVALID_REQUEST", "responses.input_tokens", { input: 1 }, { wrong: true });
  await host.ok("responses.compact", { model: "fake", input: "a b c." });
  await host.fails("INVALID_REQUEST", "responses.compact", { input: "a" }, { wrong: true });
}

async function driveCancels(host) {
  let begun;
  const first = new Promise((resolve) => (begun = resolve));
  const slow = host.call("responses.create", { input: SLOW, stream: true }, { onEvent: begun });
  await first;
  await host.ok("requests.get", { request_id: slow.id });
  await host.ok("responses.cancel", { request_id: slow.id });
  assert.equal((await slow).error.code, "CANCELLED");
  const chat = host.call("chat.completions.create", { messages: [{ role: "user", content: SLOW }] });
  await host.ok("$/cancelRequest", { id: chat.id });
  assert.equal((await chat).error.code, "CANCELLED");
  const left = host.call("completions.create", { prompt: SLOW });
  host.notify("$/cancelRequest", { id: left.id });
  assert.equal((await left).error.code, "CANCELLED");
  await host.fails("NOT_FOUND", "$/cancelRequest", { id: "none" });
  await host.fails("NOT_FOUND", "requests.get", { request_id: "none" });
  await host.fails("NOT_FOUND", "responses.cancel", { id: "resp_none" });
}

async function driveStored(host, id) {
  await host.ok("responses.retrieve", { id, foo: 1 }, { wrong: true });
  await host.ok("responses.retrieve", { id, stream: true, starting_after: 2 });
  await host.ok("responses.input_items", { id, limit: 2, order: "asc" });
  const items = [
    { role: "user", content: "w" },
    { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "s" }] },
    { type: "function_call", call_id: "c", name: "weather", arguments: "{}" },
    { type: "function_call_output", call_id: "c", output: "dry" },
    { role: "assistant", content: [{ type: "output_text", text: "It is dry.", annotations: [] }] },
    { role: "user", content: "ok" },
  ];
  const { response } = await host.ok("responses.create", { input: items });
  await host.ok("responses.input_items", { id: response.id });
  await host.ok("responses.delete", { id });
  for (const method of ["responses.retrieve", "responses.input_items", "responses.delete"]) {
    await host.fails("NOT_FOUND", method, { id });
  }
}

async function driveOthers(host) {
  const user = (content) => [{ role: "user", content }];
  const chat = (params, options) => host.ok("chat.completions.create", params, options);
  const tools = [{ type: "function", function: { name: "weather", parameters: SCHEMA } }];
  for (const stream of [false, true]) {
    await chat({ messages: user(CALL), tools, stream, stream_options: { include_usage: true } });
    await chat({ messages: user(THINK), stream, foo: 1 }, { wrong: true });
    await chat({ messages: user("a b"), logprobs: true, top_logprobs: 1, n: 2, stream });
    await host.ok(
      "completions.create",
      { prompt: "a b", stream, max_tokens: 2, stream_options: { include_usage: stream }, foo: 1 },
      { wrong: true },
    );
    await host.fails("INTERNAL", "completions.create", { prompt: script("x", { error: "it broke" }), stream });
  }
  const json_schema = { name: "x", schema: SCHEMA };
  await chat({
    messages: user("word"),
    response_format: { type: "json_schema", json_schema },
    fm: { schema_report: true },
  });
  await chat({
    messages: [
      ...user("w"),
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c", type: "function", function: { name: "weather", arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: "c", content: "dry" },
    ],
    tools,
  });
  await host.fails("INTERNAL", "chat.completions.create", {
    messages: user(script("x", { error: "it broke" })),
    stream: true,
  });
  for (const encoding_format of ["float", "base64"]) {
    await host.ok("embeddings.create", { input: ["a b", "c"], encoding_format, dimensions: 2 });
  }
  await host.fails("INVALID_REQUEST", "embeddings.create", { input: "" }, { wrong: true });
  const instructions = [{ type: "input_text", text: "What?" }];
  const questions = [
    { type: "predicate", name: "yes", instructions: "Is it?" },
    { type: "choice", instructions, choices: [{ value: "a", description: "first" }, { value: true }] },
    { type: "score", instructions, levels: [{ label: "a" }, { label: "b", description: null }] },
  ];
  await host.ok("decisions.create", { input: "a b", questions });
  await host.fails("INVALID_REQUEST", "decisions.create", { input: "a", questions: [] }, { wrong: true });
  await host.ok("models.list");
  await host.ok("models.list", { foo: 1 }, { wrong: true });
  await host.ok("models.retrieve", { id: "fake" });
  await host.fails("NOT_FOUND", "models.retrieve", { id: "none" });
  await host.ok("models.load", { model: "fake", fm: { keep_alive_ms: -1 } });
  await host.ok("capabilities.get");
  await host.ok("models.unload", { model: "fake" });
  await host.ok("models.unload", {});
  for (const method of ["models.load", "models.unload"]) await host.fails("NOT_FOUND", method, { model: "none" });
  await host.ok("capabilities.get");
  const fm = { timings: true, repeatable: true };
  await host.ok("embeddings.create", { input: "x", fm });
  await host.ok("chat.completions.create", { messages: [{ role: "user", content: "x" }], stream: true, fm });
  await host.ok("completions.create", { prompt: "x", stream: true, fm });
  await host.ok("responses.create", { input: "x", fm });
  await host.ok("health.ping", [1]);
  await host.ok("metrics.get");
  for (const [code, method, params] of [
    [-32601, "no.method", {}],
    [-32602, "models.retrieve", undefined],
    [-32602, "models.list", []],
  ]) {
    assert.equal((await host.call(method, params, { wrong: true })).error.code, code);
  }
}

test("every method, notification and event of a helper that runs is as the schemas have it, its engine's too", async (t) => {
  const { folder, read } = recordingEngine(t);
  const args = ["--engine-dir", folder, "--kv-cache-dir", join(folder, "kv")];
  const helper = new Host(t, args, { FM_ENGINE_FAKE_SAVE: "text:x" });
  await driveOthers(helper);
  await driveResponses(helper);
  await helper.ok("process.shutdown");
  assert.deepEqual(await helper.ended, [0, null]);
  const next = new Host(t, args, { FM_ENGINE_FAKE_SAVE: "unusable", FM_ENGINE_FAKE_IS: "restarts" });
  await next.ok("responses.create", { input: "x" });
  await next.ok("responses.create", { input: script("a", { restart: "gone" }, "b") });
  await next.ok("process.shutdown");
  assert.deepEqual(await next.ended, [0, null]);

  const calls = Object.keys(host.methods).map((name) => `${name} ok`);
  const failing = Object.keys(host.methods).filter(
    (name) => !["health.ping", "capabilities.get", "metrics.get", "models.list", "process.shutdown"].includes(name),
  );
  const events = host.event.oneOf.map((each) => each.properties.type.const);
  const expected = [
    ...calls,
    ...failing.map((name) => `${name} failed`),
    ...Object.keys(host.notifications),
    ...events,
  ];
  assert.deepEqual(
    expected.filter((name) => !helper.wire.seen.has(name)),
    [],
  );

  const engineWire = new Wire("engine");
  for (const message of read("to"))
    assert.equal(engineWire.sent(message), null, JSON.stringify(message).slice(0, 1000));
  for (const message of read("from")) engineWire.received(message);
  const both = [
    // This engine restarts no answer. unit/test_kit.c and contract/test_remote_faults.py test restarts.
    ...Object.keys(engine.notifications).filter((name) => name !== "job.restarted"),
    "job.start",
    "job.abort",
    "engine.initialize ok",
    "engine.load ok",
  ];
  assert.deepEqual(
    both.filter((name) => !engineWire.seen.has(name)),
    [],
  );
});

/** Members of params that have a range, as [path, value in range, value out of range]. */
function* ranges(definitions, schema, path = []) {
  if (schema.$ref !== undefined) {
    yield* ranges(
      definitions,
      schema.$ref
        .split("/")
        .slice(2)
        .reduce((at, key) => at[key], definitions),
      path,
    );
  }
  for (const each of [...(schema.allOf ?? []), ...(schema.anyOf ?? [])]) yield* ranges(definitions, each, path);
  for (const [name, member] of Object.entries(schema.properties ?? {})) {
    const at = [...path, name];
    const { minimum, maximum, exclusiveMinimum, maxLength, maxItems } = member;
    if (minimum !== undefined && Number.isSafeInteger(minimum)) yield [at, minimum, minimum - 1];
    if (maximum !== undefined && Number.isSafeInteger(maximum)) yield [at, maximum, maximum + 1];
    if (exclusiveMinimum !== undefined) yield [at, exclusiveMinimum + 0.5, exclusiveMinimum];
    if (maxLength !== undefined) yield [at, "x".repeat(maxLength), "x".repeat(maxLength + 1)];
    if (maxItems !== undefined && member.items.type === "string")
      yield [at, Array(maxItems).fill("x"), Array(maxItems + 1).fill("x")];
    if (name !== "metadata" && name !== "tool_choice") yield* ranges(definitions, member, at);
    for (const each of member.anyOf ?? []) {
      if (each.maxItems !== undefined && each.items?.type === "string")
        yield [at, Array(each.maxItems).fill("x"), Array(each.maxItems + 1).fill("x")];
    }
  }
}

const BODIES = {
  "responses.create": { input: "x", max_output_tokens: 1 },
  "chat.completions.create": { messages: [{ role: "user", content: "x" }], max_completion_tokens: 1, logprobs: true },
  "completions.create": { prompt: "x", max_tokens: 1 },
  "decisions.create": { input: "x", questions: [{ type: "predicate", instructions: "?" }] },
  "embeddings.create": { input: "x" },
  "responses.input_items": { id: "resp_none" },
};

/** The other members that an object needs besides the tested one. */
const around = (body, path, depth) => (depth === 0 ? body : path[depth - 1] === "grammar" ? { syntax: "regex" } : {});

test("a helper that runs takes the least and the most that the schema has of each parameter, and no more", async (t) => {
  const helper = new Host(t);
  for (const [method, body] of Object.entries(BODIES)) {
    const seen = new Set();
    for (const [path, within, beyond] of ranges(host, host.methods[method].params)) {
      const put = (value) =>
        path.reduceRight((inner, name, depth) => ({ ...around(body, path, depth), [name]: inner }), value);
      const param = path.join(".");
      seen.add(param);
      const taken = await helper.call(method, put(within));
      const about = taken.error?.openai?.param ?? "";
      assert.ok(
        !(taken.error?.code === "INVALID_REQUEST" && about === param) || /model's/.test(taken.error.detail),
        `${method} ${param} ${JSON.stringify(within).slice(0, 80)}: ${JSON.stringify(taken.error)}`,
      );
      const refused = await helper.call(method, put(beyond), { wrong: true });
      assert.equal(refused.error?.code, "INVALID_REQUEST", `${method} ${param} ${JSON.stringify(beyond).slice(0, 80)}`);
      assert.ok(refused.error.openai.param.startsWith(param), JSON.stringify(refused.error));
    }
    assert.ok(seen.size > 0, method);
  }
});

test("every command of session mode is answered as the schema has it", async (t) => {
  const child = spawn(helperPath, ["sessions", "--engine", "fake", "--max-sessions", "1"], {
    stdio: ["pipe", "pipe", "ignore"],
    env: { PATH: process.env.PATH, ...sanitizerEnv },
  });
  t.after(() => child.kill("SIGKILL"));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const seen = new Set();
  const ask = async (request, wrong = false) => {
    const { command } = request;
    const fault = faults("sessions", `commands/${command}/request`, request);
    assert.equal(fault !== null, wrong, `${JSON.stringify(request)}: ${fault}`);
    child.stdin.write(`${JSON.stringify(request)}\n`);
    const answer = JSON.parse((await lines.next()).value);
    assertValid("sessions", `commands/${command}/answer`, answer);
    seen.add(`${command} ${answer.ok}`);
    return answer;
  };
  const { session_id } = await ask({ command: "open-session", instructions: "x" });
  assert.match((await ask({ command: "open-session" })).error, /^failed_to_open_session: /);
  const message = { command: "message", session_id, prompt: "a", content: "b" };
  for (const output_format of ["text", "string_list"]) await ask({ ...message, output_format });
  assert.match(
    (await ask({ ...message, content: script({ error: "x" }), output_format: "text" })).error,
    /^execution_failed: /,
  );
  assert.equal((await ask({ ...message, output_format: "html" }, true)).error, "unknown_output_format");
  assert.equal((await ask({ ...message, session_id: 1 }, true)).error, "session_id_required");
  await ask({ command: "check-availability" });
  await ask({ command: "close-session", session_id });
  assert.equal((await ask({ command: "close-session", session_id })).error, "session_not_found");
  await ask({ command: "shutdown" });
  assert.deepEqual(
    sorted([...seen]),
    sorted([
      ...Object.keys(sessions.commands).map((name) => `${name} true`),
      "close-session false",
      "message false",
      "open-session false",
    ]),
  );
});
