// Images, as the stock clients send them: on the fake engine, which reports what it got, and on the real model with a
// projector of random weights. This model recognises nothing, but the images go through the whole path.
import { createOpenAI } from "@ai-sdk/openai";
import { ChatOpenAI } from "@langchain/openai";
import { generateText, streamText } from "ai";
import assert from "node:assert/strict";
import { readdirSync, realpathSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { deflateSync } from "node:zlib";
import {
  connection,
  drain,
  fakeClient,
  modelClient,
  modelOptions,
  noVision,
  projectorPath,
  temporaryFolder,
} from "./support/helper.mjs";
import { checkChatStream, checkResponse, checkResponseStream } from "./support/invariants.mjs";

const QUESTION = "What is in this picture?";
const LIMIT = 24;

/** A PNG of one colour, 64 by 64. */
function png(...rgb) {
  const crcOf = (bytes) => {
    let crc = ~0;
    for (const byte of bytes) {
      crc ^= byte;
      for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc >>> 0;
  };
  const chunk = (kind, data) => {
    const body = Buffer.concat([Buffer.from(kind), data]);
    const ends = [Buffer.alloc(4), Buffer.alloc(4)];
    ends[0].writeUInt32BE(data.length);
    ends[1].writeUInt32BE(crcOf(body));
    return Buffer.concat([ends[0], body, ends[1]]);
  };
  const row = [0, ...Array(64).fill(rgb).flat()];
  const header = Buffer.from([0, 0, 0, 64, 0, 0, 0, 64, 8, 2, 0, 0, 0]);
  const pixels = deflateSync(Buffer.from(Array(64).fill(row).flat()));
  const chunks = [chunk("IHDR", header), chunk("IDAT", pixels), chunk("IEND", Buffer.alloc(0))];
  return Buffer.concat([Buffer.from("89504e470d0a1a0a", "hex"), ...chunks]);
}

const RED = png(255, 0, 0);
const url = (image) => `data:image/png;base64,${image.toString("base64")}`;
const seen = (image) => `${QUESTION} [png of ${image.length} bytes]`;

const input = (...images) => [
  {
    role: "user",
    content: [
      { type: "input_text", text: QUESTION },
      ...images.map((image) => ({ type: "input_image", image_url: url(image), detail: "auto" })),
    ],
  },
];

const messages = (...images) => [
  {
    role: "user",
    content: [
      { type: "text", text: QUESTION },
      ...images.map((image) => ({ type: "image_url", image_url: { url: url(image), detail: "low" } })),
    ],
  },
];

/** Checks a text: exact for the fake engine, not empty for a real model. */
function checkText(text, real, expected = seen(RED)) {
  if (real) assert.notEqual(text.trim(), "");
  else assert.equal(text, expected);
}

function onBoth(name, suite) {
  test(`${name} on the fake engine`, async (t) => suite(t, fakeClient(t, { mmproj: "/fake" }), false));
  test(`${name} on the real model`, { skip: noVision() ?? false }, async (t) =>
    suite(t, modelClient(t, { mmproj: projectorPath }), true),
  );
}

for (const name of ["openai-7", "openai-6"]) {
  const { default: OpenAI } = await import(name);

  onBoth(name, async (t, client, real) => {
    const openai = new OpenAI({ ...connection(client), maxRetries: 0 });
    const short = { temperature: 0, max_output_tokens: LIMIT };

    await t.test("POST /responses: images", async () => {
      const response = await openai.responses.create({ input: input(RED), ...short });
      checkResponse(response);
      checkText(response.output_text, real);
      const { events, error } = await drain(await openai.responses.create({ input: input(RED), stream: true, ...short }));
      assert.equal(error, null);
      assert.equal(checkResponseStream(events).output[0].content[0].text, response.output_text);
      const { input_tokens: without } = await openai.responses.inputTokens.count({ input: input() });
      assert.equal(response.usage.input_tokens - without, 16);
      const items = await openai.responses.inputItems.list(response.id);
      assert.equal(items.data[0].content[1].image_url, url(RED));
      const next = await openai.responses.create({ input: "And?", previous_response_id: response.id, ...short });
      assert.ok(next.usage.input_tokens > response.usage.input_tokens);
    });

    await t.test("POST /chat/completions: images", async () => {
      const body = { messages: messages(RED), temperature: 0, max_tokens: LIMIT };
      checkText((await openai.chat.completions.create(body)).choices[0].message.content, real);
      const { events, error } = await drain(await openai.chat.completions.create({ ...body, stream: true }));
      assert.equal(error, null);
      checkText(checkChatStream(events), real);
    });

    await t.test("errors: a broken image", async () => {
      for (const [call, param] of [
        [() => openai.responses.create({ input: input(RED, Buffer.from("no image")) }), "input[0].content[2].image_url"],
        [
          () => openai.chat.completions.create({ messages: messages(Buffer.from("no image")) }),
          "messages[0].content[1].image_url",
        ],
      ])
        await assert.rejects(call(), (error) => {
          assert.ok(error instanceof OpenAI.BadRequestError, String(error));
          assert.deepEqual([error.code, error.param], ["invalid_image", param]);
          return true;
        });
    });

    await t.test("refused: images on the net", async () => {
      const part = { type: "input_image", image_url: "https://example.com/a.png" };
      await assert.rejects(openai.responses.create({ input: [{ role: "user", content: [part] }] }), (error) => {
        assert.ok(error instanceof OpenAI.BadRequestError, String(error));
        assert.deepEqual([error.code, error.param], ["unsupported_value", "input[0].content[0].image_url"]);
        return true;
      });
    });
  });
}

onBoth("AI SDK", async (t, client, real) => {
  const [{ id }] = (await client.models.list()).data;
  const openai = createOpenAI(connection(client));
  const content = [
    { type: "text", text: QUESTION },
    { type: "file", mediaType: "image/png", data: RED },
  ];
  const settings = { messages: [{ role: "user", content }], temperature: 0, maxOutputTokens: LIMIT, maxRetries: 0 };
  for (const [api, model] of [
    ["responses", openai.responses(id)],
    ["chat/completions", openai.chat(id)],
  ])
    await t.test(`POST /${api}: images`, async () => {
      checkText((await generateText({ model, ...settings })).text, real);
      checkText(await streamText({ model, ...settings }).text, real);
    });
});

onBoth("LangChain", async (t, client, real) => {
  const [{ id: model }] = (await client.models.list()).data;
  const { apiKey, baseURL, fetch } = connection(client);
  for (const useResponsesApi of [true, false]) {
    const api = useResponsesApi ? "responses" : "chat/completions";
    await t.test(`POST /${api}: images`, async () => {
      const options = { model, apiKey, maxRetries: 0, useResponsesApi, temperature: 0, maxTokens: LIMIT };
      const chat = new ChatOpenAI({ ...options, configuration: { baseURL, fetch } });
      checkText((await chat.invoke(messages(RED))).text, real);
    });
  }
});

test("a projector beside the real model is found, and loaded for the first image", { skip: noVision() ?? false }, async (t) => {
  const folder = temporaryFolder(t);
  const { modelsDir } = modelOptions;
  const file = readdirSync(modelsDir).find((name) => name.endsWith(".gguf"));
  symlinkSync(join(modelsDir, file), join(folder, file));
  symlinkSync(projectorPath, join(folder, "mmproj.gguf"));
  const client = modelClient(t, { modelsDir: folder });
  const { models } = await client.capabilities.get();
  const mmproj = realpathSync(projectorPath);
  assert.deepEqual(models, [{ id: file.replace(".gguf", ""), default: true, images: true, mmproj }]);
  const ask = async (content) => {
    const input = [{ role: "user", content }];
    const { status, usage } = await client.responses.create({ input, temperature: 0, max_output_tokens: 4 });
    return { status, tokens: usage.input_tokens };
  };
  const text = { type: "input_text", text: QUESTION };
  const without = await ask([text]);
  const seen = await ask([text, { type: "input_image", image_url: url(RED) }]);
  assert.ok(seen.tokens > without.tokens, `${seen.tokens} tokens with an image, ${without.tokens} without`);
  assert.deepEqual(await ask([text]), without);
});

test("capabilities tell which model sees", async (t) => {
  for (const [options, images] of [
    [{}, false],
    [{ mmproj: "/fake" }, true],
  ]) {
    const { models, features } = await fakeClient(t, options).capabilities.get();
    assert.deepEqual([models[0].images, features.images], [images, true]);
  }
});
