// The stock OpenAI SDKs, unmodified, over client.fetch: on the fake engine for what must be exact, on a real model for
// what must be real.
import assert from "node:assert/strict";
import { test } from "node:test";
import { checkChatStream, checkResponse, checkResponseStream } from "./support/invariants.mjs";
import { deltas, drain, fakeClient, modelClient, noModel, script } from "./support/helper.mjs";

const PROMPT = "Why is the sky blue?";
const SHORT = { temperature: 0, max_output_tokens: 24 };
const SHORT_CHAT = { temperature: 0, max_tokens: 24 };
const user = (content) => [{ role: "user", content }];

function sdk(OpenAI, client, options = {}) {
  return new OpenAI({ apiKey: "local", baseURL: "http://fm-proxy/v1", fetch: client.fetch, maxRetries: 0, ...options });
}

/** Tests that hold on any engine. `long` is an input whose answer takes longer than the test needs. */
async function common(t, OpenAI, client, long) {
  const openai = sdk(OpenAI, client);

  await t.test("responses.create", async () => {
    const response = await openai.responses.create({ input: PROMPT, ...SHORT });
    checkResponse(response);
    assert.notEqual(response.output_text.trim(), "");
    assert.match(response._request_id, /^req_/);
  });

  await t.test("responses.create with stream", async () => {
    const { events, error } = await drain(await openai.responses.create({ input: PROMPT, stream: true, ...SHORT }));
    assert.equal(error, null);
    const final = checkResponseStream(events);
    assert.equal(deltas(events), final.output[0].content[0].text);
  });

  await t.test("responses.stream().finalResponse()", async () => {
    const stream = openai.responses.stream({ input: PROMPT, ...SHORT });
    const events = [];
    stream.on("event", (event) => events.push(event));
    const final = await stream.finalResponse();
    checkResponse(final);
    assert.notEqual(final.output_text.trim(), "");
  });

  await t.test("chat.completions", async () => {
    const { choices, usage } = await openai.chat.completions.create({ messages: user(PROMPT), ...SHORT_CHAT });
    assert.notEqual(choices[0].message.content.trim(), "");
    assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens);
  });

  await t.test("chat.completions with stream", async () => {
    const body = { messages: user(PROMPT), stream: true, stream_options: { include_usage: true }, ...SHORT_CHAT };
    const { events, error } = await drain(await openai.chat.completions.create(body));
    assert.equal(error, null);
    assert.notEqual(checkChatStream(events, { usage: true }).trim(), "");
  });

  await t.test("chat.completions.stream() helper", async () => {
    const stream = openai.chat.completions.stream({ messages: user(PROMPT), ...SHORT_CHAT });
    const { choices } = await stream.finalChatCompletion();
    assert.notEqual(choices[0].message.content.trim(), "");
  });

  await t.test("models.list and models.retrieve", async () => {
    const models = [];
    for await (const model of openai.models.list()) models.push(model);
    assert.ok(models.length > 0);
    assert.deepEqual(await openai.models.retrieve(models[0].id), models[0]);
    await assert.rejects(openai.models.retrieve("org/none"), OpenAI.NotFoundError);
  });

  await t.test("abort before the first token", async () => {
    const controller = new AbortController();
    const call = openai.responses.create({ input: long, stream: true }, { signal: controller.signal });
    setImmediate(() => controller.abort());
    await assert.rejects(
      call.then(drain).then(({ error }) => error && Promise.reject(error)),
      OpenAI.APIUserAbortError,
    );
    checkResponse(await openai.responses.create({ input: PROMPT, ...SHORT }));
  });

  await t.test("abort after the first token", async () => {
    const stream = await openai.responses.create({ input: long, stream: true });
    const { events, error } = await drain(stream, (event) => deltas([event]) !== "" && stream.controller.abort());
    assert.equal(error, null);
    assert.equal(checkResponseStream(events, { aborted: true }), null, "the stream was over before the abort");
    checkResponse(await openai.responses.create({ input: PROMPT, ...SHORT }));
  });

  await t.test("break out of a chat stream", async () => {
    for await (const chunk of await openai.chat.completions.create({ messages: user(long), stream: true })) {
      if (chunk.choices[0].delta.content) break;
    }
    checkResponse(await openai.responses.create({ input: PROMPT, ...SHORT }));
  });

  await t.test("a bad parameter", async () => {
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

  await t.test("an unknown model", async () => {
    await assert.rejects(openai.responses.create({ model: "no-such-model", input: PROMPT }), (error) => {
      assert.ok(error instanceof OpenAI.NotFoundError, String(error));
      assert.equal(error.code, "model_not_found");
      return true;
    });
  });

  await t.test("an input beyond the context", async () => {
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

for (const name of ["openai-7", "openai-6"]) {
  const { default: OpenAI } = await import(name);

  test(`${name} on the fake engine`, async (t) => {
    const client = fakeClient(t);
    const openai = sdk(OpenAI, client);
    await common(t, OpenAI, client, script("first ", { hang: "soft" }));

    await t.test("the text is exact, in every way to ask for it", async () => {
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

    await t.test("the token limit makes it incomplete", async () => {
      const input = script({ repeat: ["a ", 20] });
      const { events } = await drain(await openai.responses.create({ input, max_output_tokens: 5, stream: true }));
      const final = checkResponseStream(events);
      assert.equal(final.status, "incomplete");
      assert.equal(final.incomplete_details.reason, "max_output_tokens");
      assert.equal(final.usage.output_tokens, 5);
    });

    await t.test("an engine that fails in mid-stream: the SDK throws", async () => {
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

    await t.test("a time limit is an error that is not retried", async () => {
      const retrying = sdk(OpenAI, client, { maxRetries: 2 });
      const started = performance.now();
      const body = { input: script({ sleep_ms: 5000 }), fm: { timeout_ms: 100 } };
      await assert.rejects(
        retrying.responses.create(body),
        (error) => error.status === 408 && error.code === "timeout",
      );
      assert.ok(performance.now() - started < 1000);
    });

    await t.test("the SDK's own time limit", async () => {
      await assert.rejects(
        openai.responses.create({ input: script({ hang: "soft" }) }, { timeout: 100 }),
        OpenAI.APIConnectionTimeoutError,
      );
    });

    await t.test("a stream that somebody else cancels", async () => {
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

  test(`${name} on a real model`, { skip: noModel() ?? false }, async (t) => {
    await common(t, OpenAI, modelClient(t), "Write a very long story about a lighthouse, with many chapters.");
  });
}
