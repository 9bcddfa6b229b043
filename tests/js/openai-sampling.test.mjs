// Parameters of the stock OpenAI SDKs for tokens, choices and thoughts: several choices, log probabilities, seeds, biases,
// penalties, and reasoning.
import assert from "node:assert/strict";
import { checkChatChoices, checkResponseStream } from "./support/invariants.mjs";
import { connection, deltas, drain, noModel } from "./support/helper.mjs";
import { onEngines, THINK, THOUGHT } from "./support/tasks.mjs";

const PROMPT = "Why is the sky blue? 😀";
const MESSAGES = [{ role: "user", content: PROMPT }];
const LIMIT = 16; // tokens
const TOPS = 3;
const PENALTIES = { presence_penalty: 2, frequency_penalty: 2 };
const LONG = 3 * LIMIT; // tokens after which a text without penalties repeats something, however the machine rounds
const INCLUDE = { include: ["message.output_text.logprobs"], top_logprobs: TOPS };

/** The tokens' bytes are the text. If a limit left half a character, the text may have U+FFFD there, or nothing. */
function checkTokens(entries, text) {
  assert.ok(entries.length > 0, "no log probabilities");
  for (const { top_logprobs: top, logprob } of entries) {
    assert.equal(top.length, TOPS);
    // Greedy: the drawn token is the best one.
    assert.equal(top[0].logprob, logprob);
  }
  const told = Buffer.from(entries.flatMap(({ bytes }) => bytes)).toString("utf8");
  assert.equal(told.replace(/\uFFFD+$/, ""), text.replace(/\uFFFD+$/, ""));
}

async function logprobs(t, openai) {
  await t.test("POST /responses: logprobs", async () => {
    const body = { input: PROMPT, max_output_tokens: LIMIT, temperature: 0, ...INCLUDE };
    const { output } = await openai.responses.create(body);
    const [part] = output[0].content;
    checkTokens(part.logprobs, part.text);
    const { events } = await drain(await openai.responses.create({ ...body, stream: true }));
    const told = events.filter(({ type }) => type === "response.output_text.delta").flatMap((event) => event.logprobs);
    checkTokens(told, deltas(events));
    const final = checkResponseStream(events);
    assert.deepEqual(final.output[0].content[0].logprobs, part.logprobs);
    const { _request_id: _, ...again } = await openai.responses.retrieve(final.id, { include: INCLUDE.include });
    assert.deepEqual(again.output, final.output);
    const replay = await drain(await openai.responses.retrieve(final.id, { stream: true }));
    assert.deepEqual(replay.events, events);
  });

  await t.test("POST /chat/completions: logprobs", async () => {
    const body = { messages: MESSAGES, max_completion_tokens: LIMIT, temperature: 0 };
    const asked = { ...body, logprobs: true, top_logprobs: TOPS };
    const [choice] = (await openai.chat.completions.create(asked)).choices;
    checkTokens(choice.logprobs.content, choice.message.content);
    const { events } = await drain(await openai.chat.completions.create({ ...asked, stream: true }));
    const told = events.flatMap(({ choices }) => choices[0].logprobs?.content ?? []);
    assert.deepEqual(told, choice.logprobs.content);
    checkTokens(told, checkChatChoices(events)[0].text);
    const helped = await openai.chat.completions.stream(asked).finalChatCompletion();
    assert.deepEqual(helped.choices[0].logprobs.content, told);
    assert.equal((await openai.chat.completions.create(body)).choices[0].logprobs, null);
  });
}

async function choices(t, openai, real) {
  await t.test("POST /chat/completions: n", async () => {
    const body = { messages: MESSAGES, max_completion_tokens: LIMIT, n: 3, seed: 7, temperature: 1 };
    const whole = await openai.chat.completions.create(body);
    const texts = whole.choices.map(({ message }) => message.content);
    assert.deepEqual(
      whole.choices.map(({ index }) => index),
      [0, 1, 2],
    );
    if (real) assert.equal(new Set(texts).size, 3, "choices that don't differ");
    else assert.deepEqual(texts, [PROMPT, PROMPT, PROMPT]);
    const options = { stream: true, stream_options: { include_usage: true } };
    const { events } = await drain(await openai.chat.completions.create({ ...body, ...options }));
    assert.deepEqual(
      checkChatChoices(events, { usage: true }).map(({ text }) => text),
      texts,
    );
    assert.equal(events.at(-1).usage.completion_tokens, whole.usage.completion_tokens);
    const helped = await openai.chat.completions.stream(body).finalChatCompletion();
    assert.deepEqual(
      helped.choices.map(({ message }) => message.content),
      texts,
    );
  });
}

/** Parameters that change which token is drawn. The fake engine draws none, so it only has to accept and echo them. */
async function drawing(t, openai, real) {
  const chat = async (more) => {
    const body = { messages: MESSAGES, max_completion_tokens: LIMIT, temperature: 0, ...more };
    return (await openai.chat.completions.create(body)).choices[0];
  };
  const respond = (more) =>
    openai.responses.create({ input: PROMPT, max_output_tokens: LIMIT, temperature: 0, ...more });

  await t.test("POST /chat/completions: seed", async () => {
    const text = async (seed) => (await chat({ seed, temperature: 1 })).message.content;
    const one = await text(1);
    assert.equal(await text(1), one);
    if (real) assert.notEqual(await text(2), one);
  });

  await t.test("POST /responses: penalties", async () => {
    const bare = await respond({ max_output_tokens: LONG });
    assert.deepEqual([bare.presence_penalty, bare.frequency_penalty], [0, 0]);
    const penalised = await respond({ ...PENALTIES, max_output_tokens: LONG });
    assert.deepEqual([penalised.presence_penalty, penalised.frequency_penalty], [2, 2]);
    if (real) assert.notEqual(penalised.output_text, bare.output_text);
  });

  await t.test("POST /chat/completions: penalties", async () => {
    const { content } = (await chat({ ...PENALTIES, max_completion_tokens: LONG })).message;
    assert.equal(content, (await respond({ ...PENALTIES, max_output_tokens: LONG })).output_text);
    if (real) assert.notEqual(content, (await chat({ max_completion_tokens: LONG })).message.content);
  });

  await t.test("POST /chat/completions: logit_bias", async () => {
    const tokensOf = async (more) => {
      const { logprobs: told } = await chat({ logprobs: true, top_logprobs: 0, ...more });
      return told.content.map(({ token }) => token);
    };
    const ban = (ids) => ({ logit_bias: Object.fromEntries(ids.map((id) => [id, -100])) });
    const tokens = await tokensOf({});
    if (!real) return assert.deepEqual(await tokensOf(ban([0])), tokens);
    const [first] = tokens;
    const isAmong = async (ids) => (await tokensOf({ ...ban(ids), max_completion_tokens: 1 }))[0] !== first;
    const id = banned.get(first) ?? (await find(isAmong));
    banned.set(first, id);
    assert.ok(!(await tokensOf(ban([id]))).includes(first), "a banned token came");
    return assert.deepEqual(await tokensOf({ logit_bias: { [id]: 0 } }), tokens);
  });

  await t.test("errors: a bias for no token", async () => {
    await assert.rejects(
      chat({ logit_bias: { 100000000: 1 } }),
      ({ status, param }) => status === 400 && param === "logit_bias",
    );
  });
}

/** The id of each model's first token: both SDKs need the same one. */
const banned = new Map();

/** The id of the token whose ban changes the answer. Answers have no ids, so the vocabulary is halved until one is left. */
async function find(isAmong) {
  const BIASES_MAX = 1024;
  const range = (begin, count) => Array.from({ length: count }, (_, index) => begin + index);
  let begin = 0;
  while (!(await isAmong(range(begin, BIASES_MAX)))) {
    begin += BIASES_MAX;
    assert.ok(begin < 2 ** 18, "no ban is seen");
  }
  for (let count = BIASES_MAX / 2; count >= 1; count /= 2) if (!(await isAmong(range(begin, count)))) begin += count;
  return begin;
}

async function thoughts(t, openai, real) {
  const input = THINK;
  const skip = real && "the model does not think";

  await t.test("POST /responses: reasoning", { skip }, async () => {
    const body = { input, reasoning: { effort: "high", summary: "auto" } };
    const stream = openai.responses.stream(body);
    let told = "";
    stream.on("response.reasoning_summary_text.delta", ({ delta }) => void (told += delta));
    const { output, output_text: text, reasoning, usage } = await stream.finalResponse();
    assert.deepEqual([told, text], [THOUGHT, "Yes."]);
    assert.deepEqual([reasoning.effort, reasoning.summary], ["high", "auto"]);
    assert.deepEqual(output[0].summary, [{ type: "summary_text", text: THOUGHT }]);
    assert.equal(usage.output_tokens_details.reasoning_tokens, 2);
    const whole = await openai.responses.create(body);
    assert.deepEqual(whole.output[0].summary, output[0].summary);
    // The reasoning is sent back with the other items.
    const next = await openai.responses.create({ input: [...output, { role: "user", content: "And now?" }] });
    assert.equal(next.output_text, "And now?");
  });

  await t.test("POST /chat/completions: reasoning_content", { skip }, async () => {
    const body = { messages: [{ role: "user", content: input }], reasoning_effort: "high" };
    const { choices, usage } = await openai.chat.completions.create(body);
    const [{ message }] = choices;
    assert.deepEqual([message.reasoning_content, message.content], [THOUGHT, "Yes."]);
    assert.equal(usage.completion_tokens_details.reasoning_tokens, 2);
    const { events } = await drain(await openai.chat.completions.create({ ...body, stream: true }));
    assert.equal(events.map((chunk) => chunk.choices[0].delta.reasoning_content ?? "").join(""), THOUGHT);
    assert.equal(checkChatChoices(events)[0].text, "Yes.");
    const messages = [...body.messages, message, { role: "user", content: "And now?" }];
    assert.equal((await openai.chat.completions.create({ messages })).choices[0].message.content, "And now?");
  });
}

for (const major of [7, 6]) {
  const { default: OpenAI } = await import(`openai-${major}`);
  onEngines(`openai-${major}`, noModel(), async (t, client, real) => {
    const openai = new OpenAI({ ...connection(client), maxRetries: 0 });
    await logprobs(t, openai);
    await choices(t, openai, real);
    await drawing(t, openai, real);
    await thoughts(t, openai, real);
  });
}
