// `return_progress` and `onProgress`: a stream reports how much of its prompt is computed.
import assert from "node:assert/strict";
import { test } from "node:test";
import { connection, drain, fakeClient, modelClient, noModel, script } from "./support/helper.mjs";

const body = script({ prefill_ms: 1 }, "Hello", " there");
const APIS = {
  responses: (client, more, options) => client.responses.create({ input: more.text ?? body, ...more.body }, options),
  chat: (client, more, options) =>
    client.chat.completions.create({ messages: [{ role: "user", content: more.text ?? body }], ...more.body }, options),
  completions: (client, more, options) => client.completions.create({ prompt: more.text ?? body, ...more.body }, options),
};
const text = (events) =>
  events.map(({ type, delta, choices }) =>
    type === "response.output_text.delta" ? delta : (choices?.[0]?.delta?.content ?? choices?.[0]?.text ?? "")).join("");

for (const [api, create] of Object.entries(APIS)) {
  test(`${api}: a function is called, and the events stay as they were`, async (t) => {
    const client = fakeClient(t);
    const seen = [];
    const options = { onProgress: (progress) => seen.push(progress) };
    const events = [];
    await drain(await create(client, { body: { stream: true } }, options), (event) => events.push(event));
    assert.equal(seen.length, 1);
    const [{ total, cache, processed, time_ms }] = seen;
    assert.deepEqual({ cache, processed }, { cache: 0, processed: total });
    assert.ok(total > 0 && time_ms >= 0);
    assert.equal(text(events), "Hello there");
    assert.ok(events.every((event) => event.type !== "keepalive" && event.prompt_progress === undefined));
  });

  test(`${api}: without a function the reports are in the stream, before the output`, async (t) => {
    const events = [];
    const stream = await create(fakeClient(t), { body: { stream: true, return_progress: true } });
    await drain(stream, (event) => events.push(event));
    const at = events.findIndex((event) => event.prompt_progress !== undefined);
    assert.ok(at >= 0 && text(events.slice(0, at)) === "");
    assert.equal(text(events), "Hello there");
    const final = await (stream.finalResponse?.() ?? stream.finalCompletion());
    assert.equal(final.prompt_progress, undefined);
  });

  test(`${api}: what is wrong is refused`, async (t) => {
    const client = fakeClient(t);
    const refused = (param) => (error) => error.code === "INVALID_REQUEST" && error.openai.param === param;
    const whole = create(client, { body: { return_progress: true } });
    await assert.rejects(whole, refused("return_progress"));
    await assert.rejects(create(client, { body: {} }, { onProgress() {} }), refused("onProgress"));
    assert.ok(refused("onProgress")((await drain(create(client, { body: { stream: true } }, { onProgress: 7 }))).error));
    const failure = new Error("of the function");
    const onProgress = () => {
      throw failure;
    };
    assert.equal((await drain(create(client, { body: { stream: true } }, { onProgress }))).error, failure);
  });
}

for (const name of ["openai-7", "openai-6"]) {
  const { default: OpenAI } = await import(name);
  test(`${name}: its streams and their helpers take the reports`, async (t) => {
    const openai = new OpenAI({ ...connection(fakeClient(t)), maxRetries: 0 });
    const types = [];
    const response = openai.responses.stream({ model: "default", input: body, return_progress: true });
    response.on("event", ({ type }) => types.push(type));
    assert.equal((await response.finalResponse()).output_text, "Hello there");
    const stream = await openai.responses.create({ input: body, stream: true, return_progress: true });
    for await (const { type, prompt_progress } of stream) if (prompt_progress) types.push(type);
    assert.ok(types.includes("keepalive"));
    const messages = [{ role: "user", content: body }];
    const chat = openai.chat.completions.stream({ model: "default", messages, return_progress: true });
    assert.equal(await chat.finalContent(), "Hello there");
  });
}

test("a long prompt of a real model is reported batch by batch", { skip: noModel() ?? false }, async (t) => {
  const client = modelClient(t);
  const seen = [];
  const more = { text: "The fox is quick. ".repeat(150), body: { stream: true, max_output_tokens: 4 } };
  const stream = await APIS.responses(client, more, { onProgress: (progress) => seen.push(progress) });
  await drain(stream);
  const { usage } = await stream.finalResponse();
  assert.ok(seen.length > 0);
  for (const [i, { total, processed }] of seen.entries()) {
    assert.equal(total, usage.input_tokens);
    assert.ok(processed <= total && processed > (seen[i - 1]?.processed ?? 0));
  }
  assert.equal(seen.at(-1).processed, usage.input_tokens);
});
