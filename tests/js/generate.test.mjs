// client.generate: answers are checked, requested once more, and replaced. Also helpers for names, which hosts often generate.
import assert from "node:assert/strict";
import { test } from "node:test";
import { nameFromText, scoreName, slug } from "../../js-shim/dist/esm/index.js";
import { fakeClient, script, stubClient } from "./support/helper.mjs";

/** A stub that gives these answers one after the other, whatever the request. */
const answering = (t, ...answers) => stubClient(t, { answers: answers.map((answer) => [answer]) });
const schema = {
  type: "object",
  properties: { name: { type: "string", maxLength: 5 } },
  required: ["name"],
  additionalProperties: false,
};

test("text that passes is the value", async (t) => {
  const client = answering(t, "fine");
  assert.deepEqual(await client.generate({ input: "x" }), { value: "fine", source: "local", rejected: [] });
  const [{ params }] = client.received("responses.create");
  assert.deepEqual(params, { input: "x", temperature: 0, store: false });
});

test("one retry, with the answer and the reason in the prompt", async (t) => {
  const client = answering(t, '{"name":"much too long"}', '{"name":"ok"}');
  const { value, source, rejected } = await client.generate({ input: "x", instructions: "i", schema });
  assert.deepEqual([value, source], [{ name: "ok" }, "local"]);
  assert.equal(rejected.length, 1);
  assert.match(rejected[0].reason, /^The value at \/name does not fit the schema: String is too long \(13 > 5\)\.$/);
  const [, { params }] = client.received("responses.create");
  assert.equal(params.instructions, "i");
  assert.deepEqual(params.text.format, { type: "json_schema", name: "value", schema });
  assert.deepEqual(params.input, [
    { role: "user", content: "x" },
    { role: "assistant", content: '{"name":"much too long"}' },
    { role: "user", content: `That answer can't be used. ${rejected[0].reason} Give another one.` },
  ]);
});

test("no answer passes: the fallback, which sees them all; without one, an error with the last reason", async (t) => {
  const client = answering(t, "not JSON", '{"name":5}', "not JSON", '{"name":5}');
  const { value, source, rejected } = await client.generate({
    input: "x",
    schema,
    fallback: (all) => ({ name: `${all.length}` }),
  });
  assert.deepEqual([value, source], [{ name: "2" }, "fallback"]);
  assert.deepEqual(rejected.map(({ reason }) => reason), [
    "It is not JSON.",
    'The value at /name does not fit the schema: Instance type "number" is invalid. Expected "string".',
  ]);
  await assert.rejects(client.generate({ input: "x", schema }), (error) => {
    assert.equal(error.code, "NO_VALID_ANSWER");
    assert.match(error.detail, /Expected "string"/);
    return true;
  });
});

test("an answer that a limit cut off is rejected as such; tools are for other calls", async (t) => {
  const client = fakeClient(t);
  const body = { input: script("{ and no end"), schema: { type: "object" }, retries: 0 };
  const cut = { code: "NO_VALID_ANSWER", message: /It was cut off by the limit on its tokens/ };
  await assert.rejects(client.generate({ ...body, request: { max_output_tokens: 1 } }), cut);
  const wrong = { code: "INVALID_REQUEST", message: /Invalid 'request\.tools'/ };
  await assert.rejects(client.generate({ ...body, request: { tools: [] } }), wrong);
});

for (const [name, options, rejected] of [
  ["says false", { validate: () => false }, "It does not fit."],
  ["says why", { validate: () => "Too blue." }, "Too blue."],
  ["throws", { validate: () => { throw new Error("Too red."); } }, "Too red."],
  ["of sanitize throws", { sanitize: () => { throw new Error("Too green."); } }, "Too green."],
]) {
  test(`a check that ${name} rejects the answer`, async (t) => {
    const given = await answering(t, "a").generate({ input: "x", retries: 0, fallback: () => "b", ...options });
    assert.deepEqual(given, { value: "b", source: "fallback", rejected: [{ text: "a", reason: rejected }] });
  });
}

test("where no model can be asked, the fallback is the value; the host's own mistakes are errors", async (t) => {
  const nowhere = stubClient(t, {}, { helperPath: "/nowhere/fm-proxy" });
  assert.deepEqual(await nowhere.generate({ input: "x", fallback: () => 7 }), { value: 7, source: "fallback", rejected: [] });
  await assert.rejects(nowhere.generate({ input: "x" }), { code: "SPAWN_FAILED" });
  const client = stubClient(t);
  const fallback = () => 7;
  await assert.rejects(client.generate({ input: "x", schema: { type: "nonsense" }, fallback }), {
    code: "INVALID_REQUEST",
    message: /'schema' is not a JSON schema/,
  });
  await assert.rejects(client.generate({ input: "x", retries: -1, fallback }), { code: "INVALID_REQUEST" });
  const refused = script({ fail: ["INVALID_REQUEST", "no", { status: 400 }] });
  await assert.rejects(client.generate({ input: refused, fallback }), { code: "INVALID_REQUEST" });
  const signal = AbortSignal.abort();
  await assert.rejects(client.generate({ input: "x", fallback }, { signal }), { name: "AbortError" });
});

test("a schema of draft 7 is checked as one", async (t) => {
  const draft7 = { $schema: "http://json-schema.org/draft-07/schema#", type: "array", items: [{ type: "string" }] };
  const given = await answering(t, "[5]", '["a"]').generate({ input: "x", schema: draft7 });
  assert.deepEqual([given.value, given.rejected.length], [["a"], 1]);
});

for (const [name, schema] of [
  ["whose check would come later ($async)", { $async: true, type: "object" }],
  ["that is none", { type: "colour" }],
  ["that has one that is none in it", { properties: { a: { items: { minimum: "1" } } } }],
  ["with a reference to what is not there", { $ref: "#/$defs/a" }],
  ["with a pattern that is none", { properties: { a: { pattern: "(" } } }],
  ["whose references depend on the way to them", { $dynamicRef: "#a" }],
  ["that is no object", true],
  ["that is null", null],
  ["that goes round in a circle", (() => { const it = {}; it.not = it; return it; })()],
]) {
  test(`a schema ${name} is the host's mistake, with a fallback too`, async (t) => {
    const call = answering(t, '{"a":1}').generate({ input: "x", schema, fallback: () => "b" });
    await assert.rejects(call, { name: "FmError", code: "INVALID_REQUEST" });
  });
}

for (const [params, param, message] of [
  [{ validator: () => true }, "validator", /^generate has no parameter 'validator'\. Did you mean 'validate'\?$/],
  [{ temperature: 0 }, "temperature", /^generate has no parameter 'temperature'\. .* `request`\.$/],
  [{ validate: "short" }, "validate", /^Invalid 'validate': it must be a function, not string\.$/],
  [{ fallback: { name: "x" } }, "fallback", /^Invalid 'fallback': it must be a function, not object\.$/],
  [{ request: "short" }, "request", /^Invalid 'request': it must be an object\.$/],
  [{ request: ["short"] }, "request", /must be an object/],
  [{ request: { stream: true } }, "request.stream", /^Invalid 'request\.stream': .* Leave it out\.$/],
  [{ request: { background: true } }, "request.background", /Leave it out/],
  [{ request: { input: "y" } }, "request.input", /the parameter `input`/],
  [{ request: { instructions: "y" } }, "request.instructions", /the parameter `instructions`/],
  [{ request: { text: { format: { type: "json_object" } } } }, "request.text", /the parameter `schema`/],
  [{ request: { response_format: { type: "json_object" } } }, "request.response_format", /the parameter `schema`/],
]) {
  test(`generate with ${param} that it does not take is refused, with a fallback too: ${JSON.stringify(params)}`, async (t) => {
    const client = answering(t, "a");
    await assert.rejects(client.generate({ input: "x", fallback: () => "b", ...params }), (error) => {
      assert.deepEqual([error.code, error.openai.param], ["INVALID_REQUEST", param]);
      assert.match(error.message, message);
      return true;
    });
    assert.deepEqual(client.received("responses.create"), []);
  });
}

test("options of generate that it does not take are refused, and what the request may have is passed on", async (t) => {
  const client = answering(t, "a");
  for (const [options, param] of [[{ timeout: 5 }, "timeout"], [{ signals: 5 }, "signals"], ["x", "options"]]) {
    await assert.rejects(client.generate({ input: "x" }, options), (error) => {
      assert.deepEqual([error.code, error.openai.param ?? null], ["INVALID_REQUEST", param]);
      return true;
    });
  }
  const request = { stream: false, background: null, temperature: 1, fm: { timeout_ms: 60_000 } };
  assert.equal((await client.generate({ input: "x", request }, { signal: undefined })).value, "a");
  const [{ params }] = client.received("responses.create");
  assert.deepEqual(params, { store: false, ...request, input: "x" });
});

test("a check that promises a verdict, or gives none, is the host's mistake", async (t) => {
  const late = async () => Promise.reject(new Error("and nobody handles it"));
  const wrong = [{ validate: async () => true }, { sanitize: async () => "x" }, { validate: () => 0.7 }];
  const rejecting = [{ validate: late }, { sanitize: late }, { sanitize: late, validate: late }];
  for (const options of [...wrong, ...rejecting]) {
    const call = answering(t, "a").generate({ input: "x", fallback: () => "b", ...options });
    await assert.rejects(call, { name: "FmError", code: "INVALID_REQUEST" });
  }
});

test("a check that throws what has no text rejects the answer", async (t) => {
  const validate = () => {
    throw Object.create(null);
  };
  const { rejected } = await answering(t, "a").generate({ input: "x", retries: 0, fallback: () => "b", validate });
  assert.deepEqual(rejected, [{ text: "a", reason: "something was thrown that has no text" }]);
});

test("a schema that was changed since is checked as it is", async (t) => {
  const client = answering(t, "1", '"b"');
  const changing = { type: "number" };
  assert.equal((await client.generate({ input: "x", schema: changing })).value, 1);
  changing.type = "string";
  assert.equal((await client.generate({ input: "x", schema: changing, retries: 0 })).value, "b");
});

test("the same input, the same verdict: fifty times over the real helper", async (t) => {
  const client = fakeClient(t);
  const ask = () =>
    client.generate({
      input: "Rename the parser of dates",
      sanitize: slug,
      validate: (name) => scoreName(name, "dates").score >= 0.9 || "It is bad.",
      fallback: () => nameFromText("Rename the parser of dates"),
    });
  const first = await ask();
  for (let round = 0; round < 50; round++) assert.deepEqual(await ask(), first);
});

for (const [text, name] of [
  ["Date Parser", "date-parser"],
  ['"Date Parser"', "date-parser"],
  ["Sure! Here is a name:\n\n**Date Parser**", "date-parser"],
  ["Here's a suggestion: date_parser.ts", "date-parser-ts"],
  ["File name: date parser", "date-parser"],
  ["The suggested name is: Date Parser", "date-parser"],
  ["```\ndate-parser\n```", "date-parser"],
  ["- date parser\n- other", "date-parser"],
  ["Überprüfung der Straße", "uberprufung-der-strasse"],
  ["../../etc/passwd", "etc-passwd"],
  ["a\0b", "a-b"],
  ["con", "con-1"],
  ["COM1", "com1-1"],
  ["日本語", ""],
  ["", ""],
  [undefined, ""],
  ["the cat's pyjamas", "the-cats-pyjamas"],
  [`${"word ".repeat(30)}`, Array(12).fill("word").join("-")],
  ["x".repeat(100), "x".repeat(60)],
]) {
  test(`slug of ${JSON.stringify(text?.slice(0, 50))}`, () => {
    assert.equal(slug(text), name);
    assert.equal(slug(slug(text)), slug(text), "a name stays as it is");
  });
}

for (const [text, separator, name] of [
  ["con txt", ".", "con1.txt"],
  ["con", ".", "con1"],
  ["LPT9 log old", ".", "lpt91.log.old"],
  ["nul x", " .", "nul1 .x"],
  ["aux x", ":", "aux1:x"],
  ["a u x", "", "aux1"],
  ["con txt", "_", "con_txt"],
  ["console txt", ".", "console.txt"],
  ["x con", ".", "x.con"],
]) {
  test(`slug of ${JSON.stringify(text)} with ${JSON.stringify(separator)} is no device of Windows`, () => {
    assert.equal(slug(text, { separator }), name);
    assert.equal(slug(name, { separator }), name, "a name stays as it is");
  });
}

for (const [name, of, least, most] of [
  ["date-parser", "Parse a date", 1, 1],
  ["date-parser", undefined, 1, 1],
  ["", undefined, 0, 0],
  ["untitled", undefined, 0, 0.4],
  ["new-file-1", undefined, 0, 0.4],
  ["ab", undefined, 0, 0.6],
  ["date-date-parser", undefined, 0.5, 0.8],
  ["3f2a9c81d0", undefined, 0, 0.7],
  ["banana-boat", "Parse a date", 0.5, 0.8],
  ["a-b-c-d-e-f-g-h-i-j", undefined, 0.3, 0.7],
]) {
  test(`scoreName of ${JSON.stringify(name)} for ${of}: ${least} to ${most}`, () => {
    const { score, reasons } = scoreName(name, of);
    assert.ok(score >= least && score <= most, `${score}: ${reasons}`);
    assert.equal(score === 1, reasons.length === 0);
    assert.deepEqual(scoreName(name, of), { score, reasons });
  });
}

test("nameFromText takes the words that tell something", () => {
  assert.equal(nameFromText("Please rename the parser of the dates in this file"), "rename-parser-dates");
  assert.equal(nameFromText("the and of"), "the-and-of");
  assert.equal(nameFromText("!!!"), "");
});
