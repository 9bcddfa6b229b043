// fm-proxy/ws: OpenAI's Responses API by WebSocket, with the stock SDK and no socket.
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { WebSocket, WebSocketServer } from "ws";
import { createConnection } from "../../js-shim/dist/esm/ws.js";
import { connection, fakeClient, modelClient, noModel, script, until } from "./support/helper.mjs";
import { checkResponseStream } from "./support/invariants.mjs";

const SDKS = [];
for (const name of ["openai-7", "openai-6"]) {
  const { default: OpenAI } = await import(name);
  const { ResponsesWS } = await import(`${name}/resources/responses/ws`);
  const options = (client) => ({ createConnection: createConnection(client, WebSocketServer) });
  SDKS.push([name, (client) => new ResponsesWS(new OpenAI(connection(client)), options(client))]);
}
const [[, connect]] = SDKS;

/** A connection of the SDK, and what it has received. */
async function open(t, client, make = connect) {
  const socket = make(client);
  const events = [];
  socket.on("event", (event) => events.push(event));
  socket.on("error", () => {});
  t.after(() => socket.close());
  const next = async (type, from = 0) => {
    await until(() => events.slice(from).some((event) => event.type === type), type);
    return events.slice(from).find((event) => event.type === type);
  };
  const create = async (body) => {
    const from = events.length;
    socket.send({ type: "response.create", ...body });
    await until(() => events.slice(from).some(({ type }) => /completed|incomplete|failed|^error$/.test(type)), "the end");
    const own = events.slice(from);
    return own.at(-1).response ?? own.at(-1);
  };
  return { socket, events, create, next };
}

const textOf = (response) => response.output.map(({ content }) => (content ?? []).map(({ text }) => text).join("")).join("");

for (const [name, make] of SDKS) {
  test(`${name}: responses by WebSocket, and a conversation of them`, async (t) => {
    const { create, events } = await open(t, fakeClient(t), make);
    const first = await create({ input: script("Hello", " there"), instructions: "Be brief." });
    assert.equal(textOf(first), "Hello there");
    checkResponseStream(events);
    const second = await create({ input: "And?", previous_response_id: first.id });
    assert.equal(second.previous_response_id, first.id);
    assert.ok(second.usage.input_tokens > first.usage.input_tokens);
    const prepared = await create({ input: "Read this.", generate: false });
    assert.deepEqual(prepared.output, []);
    const third = await create({ input: "Now.", previous_response_id: prepared.id });
    assert.equal(third.status, "completed");
  });
}

test("what is not stored goes on on its connection alone", async (t) => {
  const client = fakeClient(t);
  const one = await open(t, client);
  const first = await one.create({ input: "one two three", store: false });
  const second = await one.create({ input: "four", previous_response_id: first.id, store: false });
  assert.deepEqual([second.store, second.previous_response_id], [false, first.id]);
  const third = await one.create({ input: "five", previous_response_id: second.id, store: false });
  assert.ok(third.usage.input_tokens > second.usage.input_tokens && second.usage.input_tokens > first.usage.input_tokens);
  const again = await one.create({ input: "six", previous_response_id: first.id, store: false });
  assert.equal(again.usage.input_tokens, second.usage.input_tokens, "a fork");
  const invalid = await one.create({ input: 5, previous_response_id: first.id, store: false });
  assert.deepEqual([invalid.type, invalid.status, invalid.error.param], ["error", 400, "input"]);
  const other = await open(t, client);
  const unknown = await other.create({ input: "four", previous_response_id: first.id });
  assert.deepEqual([unknown.type, unknown.status, unknown.error.code], ["error", 400, "previous_response_not_found"]);
});

test("lanes run side by side, and a lane in its order", async (t) => {
  const { socket, events } = await open(t, fakeClient(t));
  const slow = script("a", { sleep_ms: 300 }, "b");
  socket.send({ type: "response.create", stream_id: "slow", input: slow });
  socket.send({ type: "response.create", stream_id: "slow", input: script("second") });
  socket.send({ type: "response.create", stream_id: "quick", input: script("c") });
  const ends = () => events.filter(({ type }) => type === "response.completed");
  await until(() => ends().length === 3, "three ends");
  const inOrder = ends().map((event) => [event.stream_id, textOf(event.response)]);
  assert.deepEqual(inOrder, [["quick", "c"], ["slow", "ab"], ["slow", "second"]]);
  const lanes = new Map();
  for (const { stream_id, ...event } of events) lanes.set(stream_id, [...(lanes.get(stream_id) ?? []), event]);
  checkResponseStream(lanes.get("quick"));
  const begin = lanes.get("slow").findLastIndex(({ type }) => type === "response.created");
  for (const part of [lanes.get("slow").slice(0, begin), lanes.get("slow").slice(begin)]) checkResponseStream(part);
});

test("steering: the input goes into a response that follows by itself", async (t) => {
  const { socket, events, next } = await open(t, fakeClient(t));
  const body = { stream_id: "a", instructions: "Be brief.", store: false };
  socket.send({ type: "response.create", ...body, input: script("x", { sleep_ms: 300 }, "y") });
  const { response } = await next("response.created");
  socket.send({ type: "response.steer", previous_response_id: response.id, input: "More." });
  const { steer, stream_id } = await next("response.steer.accepted");
  assert.deepEqual([steer.previous_response_id, stream_id], [response.id, "a"]);
  await until(() => events.filter(({ type }) => type === "response.completed").length === 2, "both ends");
  const [first, second] = events.filter(({ type }) => type === "response.completed");
  assert.deepEqual([textOf(first.response), second.response.previous_response_id], ["xy", first.response.id]);
  assert.equal(second.response.instructions, "Be brief.");
  assert.deepEqual(events.slice(0, events.indexOf(second)).filter(({ type }) => type === "response.created").length, 2);
  const numbers = events.slice(0, events.indexOf(first) + 1).map(({ sequence_number }) => sequence_number);
  assert.deepEqual(numbers, numbers.map((_, index) => index));
  socket.send({ type: "response.steer", previous_response_id: response.id, input: "Late." });
  assert.equal((await next("response.steer.failed")).error.code, "response_already_completed");
});

const TOOLS = [{ type: "function", name: "look", parameters: { type: "object", properties: {} } }];

test("steering beside a call: the input waits for the outputs of tools", async (t) => {
  const { socket, events, next, create } = await open(t, fakeClient(t));
  const call = script({ sleep_ms: 200 }, { tool_call: { name: "look", arguments: "{}" } });
  socket.send({ type: "response.create", input: call, tools: TOOLS, store: false });
  const { response } = await next("response.created");
  socket.send({ type: "response.steer", previous_response_id: response.id, input: [{ role: "user", content: "Faster." }] });
  const { required_input, reason, steer } = await next("response.steer.pending");
  assert.equal(reason, "waiting_for_required_input");
  const [{ type, name, call_id }] = required_input;
  assert.deepEqual([type, name], ["function_call_output", "look"]);
  const accepted = events.find((event) => event.type === "response.steer.accepted");
  assert.equal(steer.id, accepted.steer.id);
  const output = [{ type: "function_call_output", call_id, output: "seen" }];
  const bare = await create({ input: output, previous_response_id: response.id, tools: TOOLS, store: false });
  assert.equal(bare.status, "completed");
  const without = await create({ input: output, previous_response_id: response.id, tools: TOOLS, store: false });
  assert.ok(bare.usage.input_tokens > without.usage.input_tokens, "the input that waited was read once");
});

test("what is wrong is an error event that names the field, and the connection goes on", async (t) => {
  const { socket, events, create, next } = await open(t, fakeClient(t));
  const refused = async (text, code, param) => {
    const from = events.length;
    socket.sendRaw(text);
    const event = await next("error", from);
    assert.deepEqual([event.status, event.code, event.param, event.error.code], [400, code, param, code], text);
    assert.match(event.message, /\.$/);
  };
  await refused("{", "invalid_json", null);
  await refused("[1]", "invalid_json", null);
  await refused("{}", "invalid_value", "type");
  await refused('{"type":"response.stop"}', "invalid_value", "type");
  await refused('{"type":"response.create","input":"x","stream_id":7}', "invalid_type", "stream_id");
  await refused('{"type":"response.create","input":"x","background":true}', "unsupported_parameter", "background");
  await refused('{"type":"response.create","input":"x","temperature":9}', "decimal_above_max_value", "temperature");
  for (const [steer, code] of [
    [{ previous_response_id: "resp_1", input: "x" }, "response_not_found"],
    [{ previous_response_id: "resp_1", input: "" }, "invalid_input"],
    [{ previous_response_id: "resp_1", input: [] }, "invalid_input"],
    [{ previous_response_id: "resp_1", input: "x", stream_id: "a" }, "invalid_input"],
  ]) {
    const from = events.length;
    socket.send({ type: "response.steer", ...steer });
    const failed = await next("response.steer.failed", from);
    assert.deepEqual([failed.error.code, failed.steer], [code, { previous_response_id: "resp_1", input: steer.input }]);
  }
  assert.equal(textOf(await create({ input: script("still here"), stream: true })), "still here");
});

/** A bare connection, without the SDK. */
async function bare(client, path = "/v1/responses") {
  const socket = new WebSocket(`ws://fm-proxy${path}`, { createConnection: createConnection(client, WebSocketServer) });
  socket.on("error", () => {});
  await once(socket, "open");
  return socket;
}

test("an invalid frame, binary data, or a path that is not there ends one connection only", async (t) => {
  const client = fakeClient(t);
  const { create } = await open(t, client);
  const broken = await bare(client);
  broken._socket.write(Buffer.from([0xff, 0xff, 0xff]));
  assert.equal((await once(broken, "close"))[0], 1002);
  const binary = await bare(client);
  binary.send(Buffer.from("{}"));
  assert.equal((await once(binary, "close"))[0], 1003);
  await assert.rejects(bare(client, "/v1/nothing"), /404/);
  assert.equal(textOf(await create({ input: script("still here") })), "still here");
});

test("a connection that ends stops its responses, and those that wait", async (t) => {
  const client = fakeClient(t);
  for (const end of ["close", "terminate"]) {
    const socket = await bare(client);
    const hang = JSON.stringify({ type: "response.create", input: script("a", { hang: "soft" }) });
    socket.send(hang);
    socket.send(hang);
    await once(socket, "message");
    assert.equal((await client.metrics.get()).requests.running, 1, "the other one waits in its lane");
    socket[end]();
    await until(async () => (await client.metrics.get()).requests.running === 0, "the end of the request");
    assert.equal((await client.metrics.get()).requests.queued, 0);
  }
});

test("large messages pass in both directions", async (t) => {
  const { create } = await open(t, fakeClient(t));
  const long = await create({ input: script({ repeat: ["word ", 200_000] }), store: false });
  assert.equal(textOf(long).length, 1_000_000);
  const refused = await create({ input: "x".repeat(11_000_000) });
  assert.deepEqual([refused.type, refused.status], ["error", 413]);
});

test("without a client or WebSocketServer: an error", () => {
  assert.throws(() => createConnection({}, WebSocketServer), /needs a client/);
  assert.throws(() => createConnection(undefined, WebSocketServer), TypeError);
  assert.throws(() => createConnection({ responses: { stream() {} } }), /needs WebSocketServer/);
});

test("the real model answers by WebSocket", { skip: noModel() ?? false }, async (t) => {
  const { create, events } = await open(t, modelClient(t));
  const first = await create({ input: `Say hello. ${"The fox is quick. ".repeat(30)}`, max_output_tokens: 16, store: false });
  checkResponseStream(events);
  const second = await create({ input: "Again.", previous_response_id: first.id, max_output_tokens: 16, store: false });
  assert.ok(second.usage.input_tokens_details.cached_tokens > 0);
});
