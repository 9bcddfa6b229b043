// The same request gives the same text: streamed or not, byte for byte, and again with the same seed. On the real model,
// with prompts whose characters are cut anywhere by a tokenizer.
import assert from "node:assert/strict";
import { test } from "node:test";
import { deltas, drain, modelClient, noModel } from "./support/helper.mjs";

const skip = noModel() ?? false;
const WORDS = ["漢字かな", "👩‍🚀🚀", "Ünïcödé", "🇦🇹", "안녕하세요", "e\u0301", "中文字符", "😀😀", "Привет", "ไทย"];
const ASKS = ["Repeat exactly: ", "Continue the list: ", "Say it twice: "];
const PROMPTS = ASKS.flatMap((ask) =>
  WORDS.map((word, index) => `${ask}${word} ${WORDS[(index * 3 + 1) % WORDS.length]}`),
);
const AT_ONCE = 4; // the engine takes one request after the other: see modelOptions
const TOKENS = 5;

/** Runs a function for each item, some at a time: the engine never waits for the next request. */
async function each(items, run) {
  const left = [...items];
  const worker = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await run(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

test(`${PROMPTS.length} greedy answers are the same, streamed and not, some in both APIs`, { skip }, async (t) => {
  const client = modelClient(t);
  assert.equal(PROMPTS.length, 30);
  let multibyte = 0;
  await each(PROMPTS, async (prompt) => {
    const body = { input: prompt, temperature: 0, max_output_tokens: TOKENS };
    const whole = (await client.responses.create(body)).output[0].content[0].text;
    const { events, error } = await drain(client.responses.stream(body));
    assert.equal(error, null);
    assert.deepEqual(Buffer.from(deltas(events)), Buffer.from(whole), prompt);
    if (/[^\0-\x7f]/.test(whole)) multibyte++;
    if (PROMPTS.indexOf(prompt) % 5 > 0) return;
    const chat = { messages: [{ role: "user", content: prompt }], temperature: 0, max_tokens: TOKENS, stream: true };
    const chunks = await drain(client.chat.completions.create(chat));
    const text = chunks.events.map(({ choices }) => choices[0].delta.content ?? "").join("");
    assert.deepEqual(Buffer.from(text), Buffer.from(whole), prompt);
  });
  assert.ok(multibyte > 5, `only ${multibyte} answers have more than ASCII`);
});

test("a seed repeats an answer; another one, or none, gives others", { skip }, async (t) => {
  const client = modelClient(t);
  const ask = async (seed, stream) => {
    const body = { input: "Tell me about 🚀 and 漢字.", temperature: 1.5, max_output_tokens: 12, ...seed };
    if (!stream) return (await client.responses.create(body)).output[0].content[0].text;
    return deltas((await drain(client.responses.stream(body))).events);
  };
  const texts = new Set();
  await each([1, 2, 3, 4, 5], async (seed) => {
    const text = await ask({ seed });
    assert.equal(await ask({ seed }, true), text);
    texts.add(text);
  });
  assert.ok(texts.size > 1, "all seeds give one text");
  const free = new Set(await Promise.all([1, 2, 3, 4].map(() => ask({}))));
  assert.ok(free.size > 1, "without a seed all answers are one");
});
