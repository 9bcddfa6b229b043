// Files of text, as the stock clients send them: on the fake engine, which repeats what the model would read.
import { createOpenAI } from "@ai-sdk/openai";
import { generateText } from "ai";
import assert from "node:assert/strict";
import { test } from "node:test";
import { connection, fakeClient } from "./support/helper.mjs";

const QUESTION = "Which one costs more?";
const CSV = "name,price\nbread,3\nhoney,7\n";
const base64 = (bytes) => Buffer.from(bytes).toString("base64");
const url = (bytes, type = "text/csv") => `data:${type};base64,${base64(bytes)}`;
const READ = `${QUESTION}\n<file name="prices.csv">\n${CSV}</file>\n`;

const input = (file) => [
  { role: "user", content: [{ type: "input_text", text: QUESTION }, { type: "input_file", filename: "prices.csv", ...file }] },
];
const messages = (file) => [
  { role: "user", content: [{ type: "text", text: QUESTION }, { type: "file", file: { filename: "prices.csv", ...file } }] },
];

for (const name of ["openai-7", "openai-6"]) {
  const { default: OpenAI } = await import(name);

  test(`${name} sends files`, async (t) => {
    const openai = new OpenAI({ ...connection(fakeClient(t)), maxRetries: 0 });

    await t.test("POST /responses", async () => {
      for (const file_data of [url(CSV), base64(CSV), url(`\uFEFF${CSV}`, "text/plain;charset=utf-8")]) {
        const response = await openai.responses.create({ input: input({ file_data }) });
        assert.equal(response.output_text, READ);
        const { data } = await openai.responses.inputItems.list(response.id);
        assert.deepEqual(data[0].content[1], { type: "input_file", filename: "prices.csv", file_data });
        const next = await openai.responses.create({ input: "And?", previous_response_id: response.id });
        assert.ok(next.usage.input_tokens > response.usage.input_tokens);
      }
    });

    await t.test("POST /chat/completions", async () => {
      for (const file_data of [url(CSV), base64(CSV)]) {
        const { choices } = await openai.chat.completions.create({ messages: messages({ file_data }) });
        assert.equal(choices[0].message.content, READ);
      }
    });

    await t.test("what is no text is refused", async () => {
      const refusal = (answer) =>
        answer.then(
          () => assert.fail("not refused"),
          ({ status, code, param, message }) => ({ status, code, param, message }),
        );
      for (const [file, text] of [
        [Buffer.from("%PDF-1.7\n"), /PDF/],
        [Buffer.from("caf\xe9", "latin1"), /UTF-8/],
        [Buffer.from([0x89, 0x50, 0x4e, 0x47]), /UTF-8/],
      ]) {
        const file_data = url(file, "application/pdf");
        const { message, ...rest } = await refusal(openai.responses.create({ input: input({ file_data }) }));
        assert.deepEqual(rest, { status: 400, code: "unsupported_value", param: "input[0].content[1].file_data" });
        assert.match(message, text);
        const { param } = await refusal(openai.chat.completions.create({ messages: messages({ file_data }) }));
        assert.equal(param, "messages[0].content[1].file.file_data");
      }
    });
  });
}

test("the AI SDK sends files that it does not know", async (t) => {
  const client = fakeClient(t);
  const [{ id }] = (await client.models.list()).data;
  const { text } = await generateText({
    model: createOpenAI(connection(client)).responses(id),
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: QUESTION },
          { type: "file", mediaType: "text/csv", filename: "prices.csv", data: Buffer.from(CSV) },
        ],
      },
    ],
    providerOptions: { openai: { passThroughUnsupportedFiles: true } },
    maxRetries: 0,
  });
  assert.equal(text, READ);
});
