// Streams of the client: events in order, the final response, and the ways to end one early; without a process.
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { PartialResponse } from "../../js-shim/dist/esm/partial.js";
import { drain } from "./support/helper.mjs";
import { checkResponseStream } from "./support/invariants.mjs";
import { closingEvents, openingEvents, stubChat, stubResponses, StubTransport } from "./support/transport.mjs";

function begin(options) {
  const transport = new StubTransport();
  const stream = stubResponses(transport).stream({ input: "x" }, options);
  return { stream, call: transport.calls[0] };
}

const whole = (text) => [...openingEvents(text), ...closingEvents(text)];
/** The same events as the client returns them: with the whole output text in each response. */
const given = (text) =>
  whole(text).map((event) => {
    const output_text = event.type === "response.completed" ? text : "";
    return event.response === undefined ? event : { ...event, response: { ...event.response, output_text } };
  });

test("a stream gives every event in order, then its final response", async () => {
  const { stream, call } = begin();
  whole("abc").forEach(call.event);
  call.resolve({ response: whole("abc").at(-1).response });
  const { events, error } = await drain(stream);
  assert.equal(error, null);
  assert.deepEqual(events, given("abc"));
  assert.equal((await stream.finalResponse()).output[0].content[0].text, "abc");
  assert.equal(call.cancels, 0);
});

/** The calls that answer with a stream, each with the notification for its events or chunks. */
const CREATES = [
  ["responses", (transport) => stubResponses(transport).create({ input: "x", stream: true }), "event"],
  ["retrieved responses", (transport) => stubResponses(transport).retrieve("resp_1", { stream: true }), "event"],
  ["chat completions", (transport) => stubChat(transport).create({ messages: [], stream: true }), "chunk"],
];
for (const [name, create, kind] of CREATES) {
  const piece = kind === "event" ? openingEvents("a")[0] : { choices: [{ index: 0, delta: { content: "a" } }] };

  test(`${name}: a stream is a promise of itself, which the first event resolves`, async () => {
    const transport = new StubTransport();
    const stream = create(transport);
    let opened = false;
    const waits = stream.then((it) => {
      opened = true;
      return it;
    });
    await new Promise(setImmediate);
    assert.equal(opened, false);
    transport.calls[0][kind](piece);
    const awaited = await waits;
    assert.equal(awaited.then, undefined);
    for await (const it of awaited) {
      assert.equal(it.type ?? it.choices[0].delta.content, kind === "event" ? "response.created" : "a");
      break;
    }
    assert.equal(transport.calls[0].cancels, 1);
  });

  test(`${name}: a request that is refused rejects it; in a loop that did not wait, the loop throws`, async () => {
    const transport = new StubTransport();
    const streams = [create(transport), create(transport), create(transport)];
    for (const call of transport.calls) call.reject("INVALID_REQUEST");
    await assert.rejects(streams[0], { code: "INVALID_REQUEST" });
    assert.equal((await drain(streams[1])).error.code, "INVALID_REQUEST");
    // Nobody reads the third stream. It must leave no unhandled rejection, which would end this process.
    await new Promise(setImmediate);
    await streams[2].catch(({ code }) => assert.equal(code, "INVALID_REQUEST"));
  });
}

test("a stream that is aborted or left before its first event", async () => {
  const transport = new StubTransport();
  const reason = new Error("stop");
  const options = { signal: AbortSignal.abort(reason) };
  await assert.rejects(stubResponses(transport).create({ input: "x", stream: true }, options), reason);
  const stream = stubResponses(transport).create({ input: "x", stream: true });
  stream.abort();
  assert.deepEqual((await drain(await stream)).events, []);
});

test("the final response can be had without iterating", async () => {
  const { stream, call } = begin();
  whole("abc").forEach(call.event);
  call.resolve({ response: whole("abc").at(-1).response });
  assert.equal((await stream.finalResponse()).status, "completed");
});

test("a second iteration throws", async () => {
  const { stream, call } = begin();
  whole("a").forEach(call.event);
  call.resolve({ response: {} });
  await drain(stream);
  assert.throws(() => stream[Symbol.asyncIterator](), { name: "FmError", message: /iterated already/ });
});

test("break stops the request; its late result bothers nobody", async () => {
  const { stream, call } = begin();
  openingEvents("abc").forEach(call.event);
  for await (const _ of stream) break;
  assert.equal(call.cancels, 1);
  call.reject("CANCELLED");
  await assert.rejects(stream.finalResponse(), { code: "CANCELLED" });
});

test("abort() ends the loop quietly", async () => {
  const { stream, call } = begin();
  openingEvents("abc").forEach(call.event);
  const { events, error } = await drain(stream, () => stream.abort());
  assert.equal(events.length, 1);
  assert.equal(error, null);
  assert.equal(call.cancels, 1);
});

test("a signal ends the loop with its reason, one cancel, no further event and no listener left", async () => {
  const controller = new AbortController();
  const { stream, call } = begin({ signal: controller.signal });
  openingEvents("abc").forEach(call.event);
  const { events, error } = await drain(stream, () => controller.abort());
  assert.equal(error.name, "AbortError");
  assert.equal(events.length, 1, "what waited was not dropped");
  call.event(closingEvents("abc")[0]);
  assert.deepEqual(await stream.next(), { done: true, value: undefined });
  call.reject("CANCELLED");
  await assert.rejects(stream.finalResponse(), { name: "AbortError" });
  assert.equal(call.cancels, 1);
  assert.equal(getEventListeners(controller.signal, "abort").length, 0);
});

test("a signal that never came has no listener left either: streams and whole answers, done and failed", async () => {
  const { signal } = new AbortController();
  const listeners = () => getEventListeners(signal, "abort").length;
  for (const end of [(call) => call.resolve({ response: {} }), (call) => call.reject("INTERNAL")]) {
    const { stream, call } = begin({ signal });
    assert.equal(listeners(), 1);
    whole("abc").forEach(call.event);
    end(call);
    await drain(stream);
    assert.equal(listeners(), 0);
    const transport = new StubTransport();
    const answer = stubResponses(transport).create({ input: "x" }, { signal });
    assert.equal(listeners(), 1);
    end(transport.calls[0]);
    await Promise.allSettled([answer]);
    assert.equal(listeners(), 0);
  }
});

test("options of a call that it can't have, and a controller in the place of its signal: nothing is sent", async () => {
  const transport = new StubTransport();
  const responses = stubResponses(transport);
  for (const [options, param, message] of [
    [{ signal: new AbortController() }, "signal", /it must be an AbortSignal/],
    [{ timeout: 5000 }, "timeout", /has no option 'timeout'.*fm: { timeout_ms }/],
    [{ headers: {} }, "headers", /client\.fetch/],
    [{ singal: null }, "singal", /Did you mean 'signal'/],
    ["fast", "options", /must be an object/],
  ]) {
    const wrong = (error) => {
      assert.deepEqual([error.code, error.openai.param], ["INVALID_REQUEST", param]);
      assert.match(error.message, message);
      return true;
    };
    await assert.rejects(responses.create({ input: "x" }, options), wrong);
    const stream = responses.stream({ input: "x" }, options);
    wrong((await drain(stream)).error);
    await assert.rejects(stream.finalResponse(), wrong);
  }
  assert.deepEqual(transport.calls, []);
  for (const options of [null, undefined, {}, { signal: null }]) void responses.create({ input: "x" }, options);
  assert.equal(transport.calls.length, 4);
});

test("a signal that is aborted already: the loop throws its reason, as does who waits first; nothing is sent", async () => {
  const transport = new StubTransport();
  const responses = stubResponses(transport);
  const chat = stubChat(transport);
  const reason = new Error("the user left");
  const options = { signal: AbortSignal.abort(reason) };
  for (const [stream, final] of [
    [responses.stream({ input: "x" }, options), "finalResponse"],
    [responses.create({ input: "x", stream: true }, options), "finalResponse"],
    [chat.create({ messages: [], stream: true }, options), "finalCompletion"],
  ]) {
    if ("then" in stream) await assert.rejects(stream, (error) => error === reason);
    const { events, error } = await drain(stream);
    assert.deepEqual(events, []);
    assert.equal(error, reason);
    await assert.rejects(stream[final](), (error) => error === reason);
    assert.deepEqual(await stream.next(), { done: true, value: undefined });
    stream.abort();
  }
  await assert.rejects(responses.create({ input: "x" }, options), (error) => error === reason);
  await assert.rejects(chat.create({ messages: [] }, options), (error) => error === reason);
  assert.equal(transport.calls.length, 0);
  assert.equal(getEventListeners(options.signal, "abort").length, 0);
});

test("a failure: the events first, then the error with the partial response, and one terminal event", async () => {
  const { stream, call } = begin();
  openingEvents("half").forEach(call.event);
  call.reject("HELPER_EXITED", "gone");
  const { events, error } = await drain(stream);
  checkResponseStream(events);
  assert.equal(error.code, "HELPER_EXITED");
  assert.equal(error.partialText, "half");
  assert.equal(error.response.status, "failed");
  await assert.rejects(stream.finalResponse(), { code: "HELPER_EXITED" });
});

test("a stream without an end is ended as a failure; one with two ends has one", async () => {
  const endless = begin();
  openingEvents("half").forEach(endless.call.event);
  endless.call.resolve({ response: {} });
  const first = await drain(endless.stream);
  checkResponseStream(first.events);
  assert.equal(first.error.code, "PROTOCOL_ERROR");

  const twice = begin();
  const events = whole("a");
  [...events, events.at(-1), events.at(-2)].forEach(twice.call.event);
  twice.call.resolve({ response: {} });
  assert.deepEqual((await drain(twice.stream)).events, given("a"));
});

test("two readers of one iterator both go on", async () => {
  const { stream, call } = begin();
  const both = Promise.all([stream.next(), stream.next()]);
  openingEvents("").slice(0, 2).forEach(call.event);
  assert.deepEqual(
    (await both).map(({ value }) => value.sequence_number),
    [0, 1],
  );
});

test("partial output of every kind is kept", () => {
  const partial = new PartialResponse();
  const [created] = openingEvents("");
  const say = (type, fields) => partial.observe({ type, sequence_number: 1, ...fields });
  partial.observe(created);
  const reasoning = { output_index: 0, item_id: "rs_1", summary_index: 0 };
  say("response.output_item.added", { output_index: 0, item: { id: "rs_1", type: "reasoning", summary: [] } });
  say("response.reasoning_summary_part.added", { ...reasoning, part: { type: "summary_text", text: "" } });
  say("response.reasoning_summary_text.delta", { ...reasoning, delta: "because" });
  const item = { id: "fc_1", type: "function_call", call_id: "c", name: "f", arguments: "", status: "in_progress" };
  say("response.output_item.added", { output_index: 1, item });
  say("response.function_call_arguments.delta", { output_index: 1, item_id: "fc_1", delta: '{"a":' });
  const refusal = { output_index: 2, item_id: "msg_1", content_index: 0 };
  say("response.output_item.added", {
    output_index: 2,
    item: { id: "msg_1", type: "message", status: "in_progress", content: [] },
  });
  say("response.content_part.added", { ...refusal, part: { type: "refusal", refusal: "" } });
  say("response.refusal.delta", { ...refusal, delta: "no" });
  const openai = { type: "server_error", code: "x", param: null, message: "gone" };
  const [, failed] = partial.fail({ openai });
  assert.equal(failed.response.output[0].summary[0].text, "because");
  assert.equal(failed.response.output[1].arguments, '{"a":');
  assert.equal(failed.response.output[1].status, "incomplete");
  assert.equal(failed.response.output[2].content[0].refusal, "no");
  assert.equal(item.arguments, "", "the host's own event was changed");
});

test("chat: the text so far is in the error", async () => {
  const transport = new StubTransport();
  const stream = stubChat(transport).create({ messages: [], stream: true });
  const [call] = transport.calls;
  const base = { id: "c", object: "chat.completion.chunk", created: 1, model: "m" };
  for (const delta of [{ role: "assistant", content: null }, { content: "half " }, { content: "a word" }]) {
    call.chunk({ ...base, choices: [{ index: 0, delta, finish_reason: null }] });
  }
  call.reject("HELPER_EXITED", "gone");
  const { events, error } = await drain(stream);
  assert.equal(events.length, 3);
  assert.equal(error.partialText, "half a word");
  assert.equal(error.completion.id, "c");
  assert.equal(error.completion.choices[0].finish_reason, null);
  assert.equal(error.completion.usage, null);
});
