// The stock OpenAI SDKs, unmodified, over client.fetch: on the fake engine for exact results, on a real model for realistic
// ones.
import assert from "node:assert/strict";
import { test } from "node:test";
import { checkChatStream, checkResponse, checkResponseStream } from "./support/invariants.mjs";
import {
  appleClient,
  connection,
  deltas,
  drain,
  fakeClient,
  lacking,
  lackingPath,
  modelClient,
  noApple,
  noEmbeddings,
  noModel,
  ofApple,
  script,
  until,
  wholeModels,
} from "./support/helper.mjs";
import { repeated, soon } from "./support/patience.mjs";

const PROMPT = "Why is the sky blue?";
const SHORT = { temperature: 0, max_output_tokens: 24 };
const SHORT_CHAT = { temperature: 0, max_tokens: 24 };
const user = (content) => [{ role: "user", content }];

function sdk(OpenAI, client, options = {}) {
  return new OpenAI({ ...connection(client), maxRetries: 0, ...options });
}

/** Tests that hold on any engine. `long` is an input whose answer takes longer than the test needs. */
async function common(t, OpenAI, client, long) {
  const openai = sdk(OpenAI, client);

  await t.test("POST /responses: create", async () => {
    const response = await openai.responses.create({ input: PROMPT, ...SHORT });
    checkResponse(response);
    assert.notEqual(response.output_text.trim(), "");
    assert.match(response._request_id, /^req_/);
  });

  await t.test("POST /responses: stream", async () => {
    const { events, error } = await drain(await openai.responses.create({ input: PROMPT, stream: true, ...SHORT }));
    assert.equal(error, null);
    const final = checkResponseStream(events);
    assert.equal(deltas(events), final.output[0].content[0].text);
  });

  await t.test("POST /responses: stream helper", async () => {
    const stream = openai.responses.stream({ input: PROMPT, ...SHORT });
    const events = [];
    stream.on("event", (event) => events.push(event));
    const final = await stream.finalResponse();
    checkResponse(final);
    assert.notEqual(final.output_text.trim(), "");
  });

  await t.test("POST /chat/completions: create", async () => {
    const { choices, usage } = await openai.chat.completions.create({ messages: user(PROMPT), ...SHORT_CHAT });
    assert.notEqual(choices[0].message.content.trim(), "");
    assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens);
  });

  await t.test("POST /chat/completions: stream", async () => {
    const body = { messages: user(PROMPT), stream: true, stream_options: { include_usage: true }, ...SHORT_CHAT };
    const { events, error } = await drain(await openai.chat.completions.create(body));
    assert.equal(error, null);
    assert.notEqual(checkChatStream(events, { usage: true }).trim(), "");
  });

  await t.test("POST /chat/completions: stream helper", async () => {
    const stream = openai.chat.completions.stream({ messages: user(PROMPT), ...SHORT_CHAT });
    const { choices } = await stream.finalChatCompletion();
    assert.notEqual(choices[0].message.content.trim(), "");
  });

  await t.test("GET /models: list", async () => {
    const models = [];
    for await (const model of openai.models.list()) models.push(model);
    assert.ok(models.length > 0);
    for (const { id, object, created, owned_by } of models) {
      assert.ok(id && owned_by);
      assert.deepEqual([object, Number.isInteger(created)], ["model", true]);
    }
  });

  await t.test("GET /models/{id}: retrieve", async () => {
    const [model] = (await openai.models.list()).data;
    assert.deepEqual(await openai.models.retrieve(model.id), model);
    await assert.rejects(openai.models.retrieve("org/none"), OpenAI.NotFoundError);
  });

  await stored(t, OpenAI, openai, client, long);
  await others(t, OpenAI, openai, client);

  await t.test("POST /responses: abort before the first token", async () => {
    const controller = new AbortController();
    const call = openai.responses.create({ input: long, stream: true }, { signal: controller.signal });
    setImmediate(() => controller.abort());
    await assert.rejects(
      call.then(drain).then(({ error }) => error && Promise.reject(error)),
      OpenAI.APIUserAbortError,
    );
    checkResponse(await openai.responses.create({ input: PROMPT, ...SHORT }));
  });

  await t.test("POST /responses: abort after the first token", async () => {
    const stream = await openai.responses.create({ input: long, stream: true });
    const { events, error } = await drain(stream, (event) => deltas([event]) !== "" && stream.controller.abort());
    assert.equal(error, null);
    assert.equal(checkResponseStream(events, { aborted: true }), null, "the stream was over before the abort");
    checkResponse(await openai.responses.create({ input: PROMPT, ...SHORT }));
  });

  await t.test("POST /chat/completions: break", async () => {
    for await (const chunk of await openai.chat.completions.create({ messages: user(long), stream: true })) {
      if (chunk.choices[0].delta.content) break;
    }
    checkResponse(await openai.responses.create({ input: PROMPT, ...SHORT }));
  });

  await t.test("errors: a bad parameter", async () => {
    for (const stream of [false, true]) {
      await assert.rejects(openai.responses.create({ input: PROMPT, temperature: 3, stream }), (error) => {
        assert.ok(error instanceof OpenAI.BadRequestError, String(error));
        assert.equal(error.param, "temperature");
        assert.equal(error.code, "decimal_above_max_value");
        assert.equal(error.type, "invalid_request_error");
        return true;
      });
      await assert.rejects(
        openai.chat.completions.create({ messages: [{ role: "nobody", content: "x" }], stream }),
        (error) => {
          assert.ok(error instanceof OpenAI.BadRequestError, String(error));
          assert.equal(error.param, "messages[0].role");
          return true;
        },
      );
    }
  });

  await t.test("errors: an unknown model", async () => {
    await assert.rejects(openai.responses.create({ model: "no-such-model", input: PROMPT }), (error) => {
      assert.ok(error instanceof OpenAI.NotFoundError, String(error));
      assert.equal(error.code, "model_not_found");
      return true;
    });
  });

  await t.test("errors: an input beyond the context", async () => {
    for (const stream of [false, true]) {
      await assert.rejects(openai.responses.create({ input: "word ".repeat(200_000), stream }), (error) => {
        assert.ok(error instanceof OpenAI.BadRequestError, String(error));
        assert.equal(error.code, "context_length_exceeded");
        assert.match(error.message, /maximum context length/);
        return true;
      });
    }
  });
}

/** How responses are stored and continued. */
async function stored(t, OpenAI, openai, client, long) {
  const skip = await lacking(client, "stored_responses");
  const gone = (call) =>
    assert.rejects(call, (error) => error instanceof OpenAI.NotFoundError && error.code === "response_not_found");

  await t.test("POST /responses: previous_response_id", { skip }, async () => {
    const first = await openai.responses.create({ input: PROMPT, instructions: "Be short.", ...SHORT });
    const next = await openai.responses.create({ input: "And red?", previous_response_id: first.id, ...SHORT });
    assert.equal(next.previous_response_id, first.id);
    assert.equal(next.instructions, null);
    assert.ok(next.usage.input_tokens > first.usage.input_tokens, "the first turn is not part of the second");
    const again = await openai.responses.create({ input: "And red?", ...SHORT });
    assert.ok(next.usage.input_tokens > again.usage.input_tokens);
    await assert.rejects(openai.responses.create({ input: "x", previous_response_id: "resp_none" }), (error) => {
      assert.ok(error instanceof OpenAI.BadRequestError, String(error));
      assert.deepEqual([error.code, error.param], ["previous_response_not_found", "previous_response_id"]);
      return true;
    });
  });

  await t.test("GET /responses/{id}: retrieve", { skip }, async () => {
    const made = await openai.responses.create({ input: PROMPT, ...SHORT });
    const { _request_id: _, ...again } = await openai.responses.retrieve(made.id);
    assert.deepEqual(again.output, made.output);
    assert.equal(again.output_text, made.output_text);
    const unstored = await openai.responses.create({ input: PROMPT, store: false, ...SHORT });
    await gone(openai.responses.retrieve(unstored.id));
  });

  await replayed(t, openai, { long, gone, skip });

  await t.test("GET /responses/{id}/input_items: list", { skip }, async () => {
    const texts = ["one", "two", "three"];
    const input = texts.map((content) => ({ role: "user", content }));
    const { id } = await openai.responses.create({ input, ...SHORT });
    const seen = [];
    // In pages, so that the SDK requests the next ones by itself.
    for await (const item of openai.responses.inputItems.list(id, { limit: 1, order: "asc" })) seen.push(item);
    assert.deepEqual(
      seen.map(({ content }) => content[0].text),
      texts,
    );
    await gone(openai.responses.inputItems.list("resp_none"));
  });

  await t.test("DELETE /responses/{id}: delete", { skip }, async () => {
    const { id } = await openai.responses.create({ input: PROMPT, ...SHORT });
    await openai.responses.delete(id);
    await gone(openai.responses.retrieve(id));
    await gone(openai.responses.delete(id));
  });

  await t.test("POST /responses: background", { skip }, async () => {
    const { id, status } = await openai.responses.create({ input: PROMPT, background: true, ...SHORT });
    assert.ok(["queued", "in_progress"].includes(status), status);
    let response;
    const over = async () => {
      response = await openai.responses.retrieve(id);
      return !["queued", "in_progress"].includes(response.status);
    };
    await until(over, "the response is over");
    assert.notEqual(response.output_text.trim(), "");
  });

  await t.test("POST /responses/{id}/cancel: background", { skip }, async () => {
    const { id } = await openai.responses.create({ input: long, background: true });
    assert.equal((await openai.responses.cancel(id)).status, "cancelled");
    assert.equal((await openai.responses.retrieve(id)).status, "cancelled");
    await gone(openai.responses.cancel("resp_none"));
  });
}

/** The events of a stored response, for a client that comes later. */
async function replayed(t, openai, { long, gone, skip }) {
  const streamed = { input: PROMPT, stream: true, ...SHORT };
  const read = async (id, query = {}, onEach = undefined) => {
    const { events, error } = await drain(await openai.responses.retrieve(id, { stream: true, ...query }), onEach);
    assert.equal(error, null);
    return events;
  };
  const statusOf = async (id) => (await openai.responses.retrieve(id)).status;

  await t.test("GET /responses/{id}: stream", { skip }, async () => {
    const { events } = await drain(await openai.responses.create(streamed));
    const { id } = checkResponseStream(events);
    assert.notEqual(deltas(events), "");
    assert.deepEqual(await read(id), events);
    const whole = await openai.responses.create({ ...streamed, stream: false });
    const { output_text: _, _request_id: __, ...told } = whole;
    assert.deepEqual(checkResponseStream(await read(whole.id)), told, "one that nobody streamed has events too");
    await gone(openai.responses.retrieve("resp_none", { stream: true }));
  });

  await t.test("GET /responses/{id}: stream from starting_after", { skip }, async () => {
    const { events } = await drain(await openai.responses.create(streamed));
    const { id } = events[0].response;
    for (const after of [0, 5, events.length - 2, events.length - 1, events.length + 5])
      assert.deepEqual(await read(id, { starting_after: after }), events.slice(after + 1), `after ${after}`);
  });

  await t.test("GET /responses/{id}: stream helper", { skip }, async () => {
    const { events } = await drain(await openai.responses.create(streamed));
    const { id } = events[0].response;
    const stream = openai.responses.stream({ response_id: id, starting_after: 3 });
    const { events: again } = await drain(stream);
    assert.deepEqual(
      again.map((event) => event.sequence_number),
      events.slice(4).map((event) => event.sequence_number),
    );
    assert.equal((await stream.finalResponse()).output_text, deltas(events));
  });

  await t.test("GET /responses/{id}: stream of one in the background", { skip }, async () => {
    const short = await openai.responses.create({ input: PROMPT, background: true, ...SHORT });
    const events = await read(short.id);
    assert.equal(checkResponseStream(events).id, short.id);
    assert.deepEqual(await read(short.id), events);

    const { id } = await openai.responses.create({ input: long, background: true });
    const seen = await read(id, {}, async (event) => {
      if (deltas([event]) !== "") assert.equal((await openai.responses.cancel(id)).status, "cancelled");
    });
    assert.equal(checkResponseStream(seen).status, "cancelled");
    assert.notEqual(deltas(seen), "");
    assert.deepEqual(await read(id), seen);
  });

  await t.test("GET /responses/{id}: break", { skip }, async () => {
    const { id } = await openai.responses.create({ input: long, background: true });
    let last = -1;
    for await (const event of await openai.responses.retrieve(id, { stream: true })) {
      last = event.sequence_number;
      if (deltas([event]) !== "") break;
    }
    assert.equal(await statusOf(id), "in_progress");
    const cancelled = openai.responses.cancel(id);
    const rest = await read(id, { starting_after: last });
    assert.equal((await cancelled).status, "cancelled");
    assert.equal(rest[0].sequence_number, last + 1);
    assert.equal(rest.at(-1).response.status, "cancelled");
  });
}

/** The endpoints besides generation. */
async function others(t, OpenAI, openai, client) {
  await t.test("POST /embeddings: create", { skip: await noEmbeddings(client) }, async () => {
    const input = ["a cat", "a small cat", "the stock market"];
    const bare = await openai.embeddings.create({ input });
    const floats = await openai.embeddings.create({ input, encoding_format: "float" });
    assert.equal(bare.data.length, 3);
    // The SDK requests base64 by itself; the vectors are the same to the last bit of a float.
    for (const [index, { embedding }] of bare.data.entries())
      assert.deepEqual(Float32Array.from(embedding), Float32Array.from(floats.data[index].embedding));
    assert.ok(bare.usage.prompt_tokens > 0);
  });

  await t.test("POST /completions: create", { skip: await lackingPath(client, "completions") }, async () => {
    const body = { prompt: "Once upon a time", max_tokens: 6, temperature: 0 };
    const { choices, object } = await openai.completions.create(body);
    assert.equal(object, "text_completion");
    const { events, error } = await drain(await openai.completions.create({ ...body, stream: true }));
    assert.equal(error, null);
    assert.equal(events.map((chunk) => chunk.choices[0]?.text ?? "").join(""), choices[0].text);
  });

  await t.test("POST /completions: several prompts", { skip: await lackingPath(client, "completions") }, async () => {
    const prompts = ["Once upon a time", "The sea"];
    const one = (prompt) => ({ prompt, max_tokens: 6, temperature: 0, logprobs: 2 });
    const single = [];
    for (const prompt of prompts) single.push(await openai.completions.create(one(prompt)));
    const { choices, usage } = await openai.completions.create({ ...one(prompts), n: 2, best_of: 2 });
    assert.deepEqual(
      choices.map(({ index, text }) => [index, text]),
      [0, 0, 1, 1].map((prompt, index) => [index, single[prompt].choices[0].text]),
    );
    assert.equal(usage.prompt_tokens, single[0].usage.prompt_tokens + single[1].usage.prompt_tokens);
    for (const { text, logprobs } of choices) {
      const { tokens, token_logprobs, top_logprobs, text_offset } = logprobs;
      assert.equal(tokens.join(""), text);
      assert.deepEqual(text_offset, [...tokens.keys()].map((index) => [...tokens.slice(0, index).join("")].length));
      for (const [index, token] of tokens.entries()) {
        assert.equal(top_logprobs[index][token], token_logprobs[index]);
        assert.ok(Object.keys(top_logprobs[index]).length <= 3);
      }
    }
    const { events, error } = await drain(await openai.completions.create({ ...one(prompts), n: 2, stream: true }));
    assert.equal(error, null);
    for (const { index, text, logprobs } of choices) {
      const chunks = events.map((chunk) => chunk.choices[0]).filter((choice) => choice.index === index);
      assert.equal(chunks.map((chunk) => chunk.text).join(""), text);
      assert.deepEqual(chunks.flatMap((chunk) => chunk.logprobs?.text_offset ?? []), logprobs.text_offset);
      assert.equal(chunks.filter((chunk) => chunk.finish_reason).length, 1);
    }
  });

  const noCount = await lackingPath(client, "responses/input_tokens");
  await t.test("POST /responses/input_tokens: count", { skip: noCount }, async () => {
    const { input_tokens: counted, object } = await openai.responses.inputTokens.count({ input: PROMPT });
    assert.equal(object, "response.input_tokens");
    assert.equal(counted, (await openai.responses.create({ input: PROMPT, ...SHORT })).usage.input_tokens);
  });

  const noCompact = await lackingPath(client, "responses/compact");
  const questions = [{ type: "predicate", name: "cat", instructions: "Is it a cat?" }];
  const { ok, error } = await client.safe.decisions.create({ input: "a cat", questions });
  const skip = openai.decisions === undefined ? "this SDK is older" : ok ? false : error.detail;
  await t.test("POST /decisions: create", { skip }, async () => {
    const { answers } = await openai.decisions.create({ model: "default", input: "a cat", questions });
    assert.deepEqual([answers.length, answers[0].type, answers[0].name], [1, "predicate", "cat"]);
    assert.ok(answers[0].probability >= 0 && answers[0].probability <= 1);
  });

  await t.test("POST /responses: generate false", { skip: ok ? false : "this engine reads no prompt ahead" }, async () => {
    const { status, output } = await openai.responses.create({ model: "default", input: "a cat", generate: false });
    assert.deepEqual([status, output], ["completed", []]);
  });

  await t.test("POST /responses/compact: compact", { skip: noCompact }, async () => {
    const [{ id: model }] = (await openai.models.list()).data;
    const input = [
      { role: "user", content: "My name is Alice." },
      { role: "assistant", content: "Hello Alice." },
    ];
    const { object, output, usage } = await openai.responses.compact({ model, input });
    assert.equal(object, "response.compaction");
    assert.equal(output.filter(({ type }) => type === "compaction").length, 1);
    assert.ok(usage.total_tokens >= 0);
    checkResponse(await openai.responses.create({ input: [...output, { role: "user", content: "Go on." }], ...SHORT }));
  });

  await t.test("refused: images, files, hosted tools, prompts, conversations", async () => {
    const part = (content) => ({ input: [{ role: "user", content: [content] }] });
    for (const [body, param] of [
      [part({ type: "input_image", image_url: "data:image/png;base64,AA==" }), "input[0].content[0].type"],
      [part({ type: "input_file", file_id: "file_1" }), "input[0].content[0].file_id"],
      [{ input: "x", tools: [{ type: "web_search" }] }, "tools[0].type"],
      [{ input: "x", prompt: { id: "pmpt_1" } }, "prompt"],
      [{ input: "x", conversation: "conv_1" }, "conversation"],
    ])
      await assert.rejects(openai.responses.create(body), (error) => {
        assert.ok(error instanceof OpenAI.BadRequestError, String(error));
        assert.equal(error.param, param);
        assert.match(error.code, /^unsupported_(parameter|value)$/);
        return true;
      });
  });
}

for (const name of ["openai-7", "openai-6"]) {
  const { default: OpenAI } = await import(name);

  test(`${name} on the fake engine`, async (t) => {
    const client = fakeClient(t);
    const openai = sdk(OpenAI, client);
    await common(t, OpenAI, client, script("first ", { hang: "soft" }));

    await t.test("POST /responses: exact text", async () => {
      const input = script("Hé", "llo ", "😀", "\n\u2028 wörld");
      const text = "Héllo 😀\n\u2028 wörld";
      assert.equal((await openai.responses.create({ input })).output_text, text);
      const { events } = await drain(await openai.responses.create({ input, stream: true }));
      assert.equal(deltas(events), text);
      checkResponseStream(events);
      assert.equal((await openai.responses.stream({ input }).finalResponse()).output_text, text);
      const chunks = await drain(await openai.chat.completions.create({ messages: user(input), stream: true }));
      assert.equal(checkChatStream(chunks.events), text);
    });

    await t.test("POST /responses: token limit", async () => {
      const input = script({ repeat: ["a ", 20] });
      const { events } = await drain(await openai.responses.create({ input, max_output_tokens: 5, stream: true }));
      const final = checkResponseStream(events);
      assert.equal(final.status, "incomplete");
      assert.equal(final.incomplete_details.reason, "max_output_tokens");
      assert.equal(final.usage.output_tokens, 5);
    });

    await t.test("errors: a failure in mid-stream", async () => {
      for (const step of [{ error: "out of luck" }, { signal: "SEGV" }]) {
        const { events, error } = await drain(
          await openai.responses.create({ input: script("a ", step), stream: true }),
        );
        assert.ok(error instanceof OpenAI.APIError, String(error));
        assert.equal(deltas(events), "a ");
        const chat = await drain(
          await openai.chat.completions.create({ messages: user(script("a ", step)), stream: true }),
        );
        assert.ok(chat.error instanceof OpenAI.APIError, String(chat.error));
        // An engine that dies three times in a row, with no good answer between, is not started for a while.
        assert.equal((await openai.responses.create({ input: script("b") })).output_text, "b");
        await assert.rejects(openai.responses.create({ input: script("a ", step) }), OpenAI.InternalServerError);
      }
      assert.equal((await openai.responses.create({ input: script("b") })).output_text, "b");
    });

    await t.test("errors: a time limit, not retried", repeated(async () => {
      const retrying = sdk(OpenAI, client, { maxRetries: 2 });
      const started = performance.now();
      const body = { input: script({ sleep_ms: 60_000 }), fm: { timeout_ms: 100 } };
      await assert.rejects(
        retrying.responses.create(body),
        (error) => error.status === 408 && error.code === "timeout",
      );
      soon(performance.now() - started, 1000);
    }));

    await t.test("errors: the client's own time limit", async () => {
      await assert.rejects(
        openai.responses.create({ input: script({ hang: "soft" }) }, { timeout: 100 }),
        OpenAI.APIConnectionTimeoutError,
      );
    });

    await t.test("POST /responses/{id}/cancel: a stream", async () => {
      const stream = await openai.responses.create({ input: script("a ", { hang: "soft" }), stream: true });
      let id;
      const { events } = await drain(stream, async (event) => {
        id ??= event.response.id;
        if (deltas([event]) !== "") assert.equal((await openai.responses.cancel(id)).status, "cancelled");
      });
      const final = checkResponseStream(events);
      assert.equal(final.status, "cancelled");
    });
  });

  test(`${name} on the apple engine`, { skip: noApple() ?? false }, async (t) => {
    await common(ofApple(t), OpenAI, appleClient(t), script("first ", { hang: "soft" }));
  });

  test(`${name} on the real model`, { skip: noModel() ?? false }, async (t) => {
    // the whole model, because a request can't limit the length of a summary
    const client = modelClient(t, { modelsDir: wholeModels });
    await common(t, OpenAI, client, "Write a very long story about a lighthouse, with many chapters.");
  });
}
