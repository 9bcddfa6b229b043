// `generate: false` and client.prewarm: a prompt is read ahead, and nothing is generated.
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai-7";
import { connection, fakeClient, modelClient, noModel, stubClient } from "./support/helper.mjs";

/** Tokens: the engine of these tests is repeatable, so it uses whole chunks of this length again. */
const CHUNK = 128;
const instructions = "You name things. Answer with one short name. ".repeat(40);

test("a prompt that was read ahead is there for the next request", { skip: noModel() ?? false }, async (t) => {
  const client = modelClient(t);
  assert.deepEqual(await client.prewarm({ instructions, input: "Name a fox." }), { ok: true });
  const { usage } = await client.responses.create({ instructions, input: "Name a ship.", max_output_tokens: 1 });
  assert.ok(usage.input_tokens_details.cached_tokens > usage.input_tokens - CHUNK, JSON.stringify(usage));
  const messages = [{ role: "system", content: instructions }, { role: "user", content: "Name a cat." }];
  assert.deepEqual(await client.prewarm({ messages }), { ok: true });
  const chat = await client.chat.completions.create({ messages, max_completion_tokens: 1 });
  const { prompt_tokens, prompt_tokens_details } = chat.usage;
  assert.ok(prompt_tokens_details.cached_tokens >= prompt_tokens - CHUNK, JSON.stringify(chat.usage));
});

test("the stock SDK", async (t) => {
  const openai = new OpenAI(connection(fakeClient(t)));
  const read = await openai.responses.create({ model: "default", input: "one two", generate: false });
  assert.deepEqual([read.status, read.output, read.output_text], ["completed", [], ""]);
  const types = [];
  for await (const { type } of await openai.responses.create({ model: "default", input: "a", generate: false, stream: true })) {
    types.push(type);
  }
  assert.deepEqual(types, ["response.created", "response.in_progress", "response.completed"]);
  const next = await openai.responses.create({ model: "default", input: "three", previous_response_id: read.id });
  assert.equal(next.usage.input_tokens, 3);
});

test("no fallback is asked, and nothing is thrown", async (t) => {
  const asked = [];
  const fallback = ({ method }) => void asked.push(method);
  const gone = stubClient(t, {}, { helperPath: "/nowhere/fm-proxy", fallback });
  for (const body of [{ input: "x" }, { messages: [{ role: "user", content: "x" }] }]) {
    const { ok, error } = await gone.prewarm(body);
    assert.deepEqual([ok, error.code], [false, "SPAWN_FAILED"]);
  }
  const client = fakeClient(t, { fallback });
  for (const body of [undefined, null, 5, "x", {}, { messages: [] }, { input: 5 }]) {
    const { ok, error } = await client.prewarm(body);
    assert.deepEqual([ok, error?.code], [false, "INVALID_REQUEST"], JSON.stringify(body));
  }
  const thrown = await client.prewarm({
    get input() {
      throw new Error("a getter");
    },
  });
  assert.deepEqual([thrown.ok, thrown.error.detail], [false, "a getter"]);
  await client.close();
  assert.equal((await client.prewarm({ input: "x" })).error.code, "CLOSED");
  assert.deepEqual(asked, []);
});
