// decisions.create: questions about a text, answered by likelihoods.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createOpenAI } from "@ai-sdk/openai";
import { experimental_decide as decide } from "ai";
import OpenAI from "openai-7";
import { createFmProxy } from "../../js-shim/dist/esm/ai.js";
import { connection, fakeClient, modelClient, noModel, stubClient } from "./support/helper.mjs";

const input = "The fox is red. Yes, it is very fast.";
const questions = [
  { type: "predicate", name: "fast", instructions: "Is the fox fast?" },
  {
    type: "choice",
    name: "colour",
    instructions: [{ type: "input_text", text: "Which colour? " }, { type: "input_json", data: { of: "fox" } }],
    choices: [{ value: "green", description: "like grass" }, { value: "red" }, { value: true }],
  },
  { type: "score", instructions: "How fast?", levels: [{ label: "slow" }, { label: "fast" }, { label: "very fast" }] },
];

const sum = (list) => list.reduce((total, { probability }) => total + probability, 0);

function check(decision) {
  const [fast, colour, speed] = decision.answers;
  assert.deepEqual([fast.type, fast.name, colour.name, speed.name], ["predicate", "fast", "colour", null]);
  assert.ok(fast.probability >= 0 && fast.probability <= 1);
  assert.deepEqual(colour.probabilities.map(({ value }) => value), ["green", "red", true]);
  assert.deepEqual(speed.probabilities.map(({ label, value }) => [label, value]), [["slow", 0], ["fast", 1], ["very fast", 2]]);
  for (const { probabilities, confidence } of [colour, speed]) {
    assert.ok(Math.abs(sum(probabilities) - 1) < 1e-9);
    assert.equal(confidence, Math.max(...probabilities.map(({ probability }) => probability)));
  }
  assert.equal(colour.choice, colour.probabilities.find(({ probability }) => probability === colour.confidence).value);
  const mean = speed.probabilities.reduce((total, { value, probability }) => total + value * probability, 0);
  assert.ok(Math.abs(speed.score - mean) < 1e-9);
  assert.equal(decision.usage.output_tokens, 0);
}

for (const [engine, client, skip] of [
  ["fake", fakeClient, false],
  ["llama", modelClient, noModel() ?? false],
]) {
  test(`decisions on the engine ${engine}: the package, the stock SDK, the AI SDK`, { skip }, async (t) => {
    const ours = client(t);
    const decision = await ours.decisions.create({ input, questions });
    check(decision);
    const openai = new OpenAI(connection(ours));
    const { answers } = await openai.decisions.create({ model: "default", input, questions });
    assert.deepEqual(answers, decision.answers, "the same to the bit");
    const sorted = { ...questions[1], choices: questions[1].choices.toReversed() };
    const [one] = (await ours.decisions.create({ input, questions: [sorted] })).answers;
    assert.deepEqual(one.probabilities.toReversed(), decision.answers[1].probabilities, "neither order nor company matters");
    const model = createFmProxy(ours, createOpenAI).decisionModel("default");
    const answer = await decide({
      model,
      state: [{ type: "text", text: input }, { type: "json", value: { fox: 1 } }],
      questions: {
        fast: { type: "boolean", instructions: "Is it fast?" },
        colour: { type: "choice", instructions: "Which colour?", criteria: { red: "like a fox", green: null } },
        speed: { type: "score", instructions: "How fast?", criteria: ["slow", "fast"] },
      },
    });
    assert.deepEqual(Object.keys(answer.answers), ["fast", "colour", "speed"]);
    assert.ok(Math.abs(answer.answers.colour.probabilities.red + answer.answers.colour.probabilities.green - 1) < 1e-6);
  });
}

test("the fake engine finds what the text has", async (t) => {
  const { answers } = await fakeClient(t).decisions.create({ input, questions });
  assert.ok(answers[0].probability > 0.9);
  assert.equal(answers[1].choice, "red");
});

const PNG = "data:image/png;base64,AA==";
/** A body, and the field that its error names. */
const choices = [{ value: "a" }, { value: "b" }];
const choice = (more) => ({ input: "x", questions: [{ type: "choice", instructions: "?", choices, ...more }] });
const INVALID = [
  [{ questions }, "input"],
  [{ input: "x" }, "questions"],
  [{ input: "x", questions: [] }, "questions"],
  [{ input: "x", questions: {} }, "questions"],
  [{ input: "x", questions: Array(401).fill(questions[0]) }, "questions"],
  [{ input: "x", questions: [{ instructions: "?" }] }, "questions[0].type"],
  [{ input: "x", questions: [{ type: "rank", instructions: "?" }] }, "questions[0].type"],
  [{ input: "x", questions: [{ type: "predicate" }] }, "questions[0].instructions"],
  [{ input: "x", questions: [{ type: "predicate", instructions: "" }] }, "questions[0].instructions"],
  [{ input: "x", questions: [{ type: "predicate", instructions: [] }] }, "questions[0].instructions"],
  [
    { input: "x", questions: [{ type: "predicate", instructions: [{ type: "input_image", image_url: "data:," }] }] },
    "questions[0].instructions[0].type",
  ],
  [
    { input: "x", questions: [{ type: "predicate", instructions: [{ type: "input_json", data: 5 }] }] },
    "questions[0].instructions[0].data",
  ],
  [choice({ choices: [{ value: "a" }] }), "questions[0].choices"],
  [choice({ choices: undefined }), "questions[0].choices"],
  [choice({ choices: Array.from({ length: 256 }, (_, i) => ({ value: `${i}` })) }), "questions[0].choices"],
  [choice({ choices: [{ value: "a" }, { value: 5 }] }), "questions[0].choices[1].value"],
  [choice({ choices: [{ value: "a" }, { value: "" }] }), "questions[0].choices[1].value"],
  [choice({ choices: [{ value: "a" }, { value: "x".repeat(513) }] }), "questions[0].choices[1].value"],
  [choice({ choices: [{ value: "a" }, { value: "b" }, { value: "a" }] }), "questions[0].choices[2].value"],
  [choice({ choices: [{ value: true }, { value: true }] }), "questions[0].choices[1].value"],
  [{ input: "x", questions: [{ type: "score", instructions: "?", levels: [{ label: "a" }] }] }, "questions[0].levels"],
  [{ input: [{ role: "user", content: [{ type: "input_json", data: "x" }] }], questions }, "input[0].content[0].data"],
  [{ input: [{ role: "user", content: [{ type: "input_image", image_url: PNG }] }], questions }, "input"],
  [{ input: [{ type: "item_reference", id: "msg_1" }], questions }, "input"],
  [{ input: [], questions }, "input"],
  [{ input: "x", questions, messages: [] }, "messages"],
  [{ input: "x", questions, temperature: 1 }, "temperature"],
  [{ input: "x", questions, fm: { grammar: {} } }, "fm.grammar"],
];

test("what is invalid is named", async (t) => {
  const client = fakeClient(t);
  for (const [body, param] of INVALID) {
    const { ok, error } = await client.safe.decisions.create(body);
    const sent = JSON.stringify(body).slice(0, 200);
    assert.deepEqual([ok, error?.code, error?.openai?.param], [false, "INVALID_REQUEST", param], sent);
    assert.ok(error.detail.includes(param), error.detail);
  }
  const { answers, fm } = await client.decisions.create({ input, questions: [{ ...questions[0], colour: 1 }], other: 2 });
  assert.deepEqual([answers.length, fm.ignored], [1, ["questions[0].colour", "other"]]);
  const both = choice({ choices: [{ value: "true" }, { value: true }] });
  assert.equal((await client.decisions.create(both)).answers[0].probabilities.length, 2);
});

test("a fallback decides where there is no model", async (t) => {
  const answers = [{ type: "predicate", name: "fast", probability: 0.5 }];
  const gone = stubClient(t, {}, { helperPath: "/nowhere/fm-proxy", fallback: ({ method }) => ({ answers, method }) });
  const { source, decision } = await gone.safe.decisions.create({ input, questions });
  assert.deepEqual([source, decision.answers, decision.method], ["fallback", answers, "decisions.create"]);
});

// ---- client.decide

const ASKED = {
  fast: "Is the fox fast?",
  colour: { instructions: "Which colour?", choices: ["green", { value: "red", description: "like a fox" }] },
  speed: { instructions: "How fast?", levels: ["slow", "fast", { label: "very fast" }] },
};

for (const [engine, client, skip] of [
  ["fake", fakeClient, false],
  ["llama", modelClient, noModel() ?? false],
]) {
  test(`client.decide on the engine ${engine}: what decisions.create says, by name`, { skip }, async (t) => {
    const ours = client(t);
    const { fast, colour, speed } = await ours.decide({ input, questions: ASKED });
    const { answers } = await ours.decisions.create({
      input,
      questions: [
        { type: "predicate", name: "fast", instructions: ASKED.fast },
        { type: "choice", instructions: "Which colour?", choices: [{ value: "green" }, ASKED.colour.choices[1]] },
        { type: "score", instructions: "How fast?", levels: ["slow", "fast", "very fast"].map((label) => ({ label })) },
      ],
    });
    assert.equal(fast.probabilities[0].probability, answers[0].probability);
    assert.equal(fast.value, answers[0].probability >= 0.5);
    const { choice: value, confidence, probabilities } = answers[1];
    assert.deepEqual(colour, { value, confidence, probabilities });
    assert.equal(speed.value, answers[2].score);
    assert.deepEqual(speed.probabilities.map(({ value }) => value), ["slow", "fast", "very fast"]);
  });
}

test("client.decide refuses what it can't ask, and names the question", async (t) => {
  const client = fakeClient(t);
  const refused = (questions, param) =>
    assert.rejects(client.decide({ input, questions }), ({ code, openai, message }) => {
      assert.deepEqual([code, openai.param], ["INVALID_REQUEST", param]);
      assert.ok(message.includes(param), message);
      return true;
    });
  await refused(undefined, "questions");
  await refused([], "questions");
  await refused({}, "questions");
  await refused({ a: 5 }, "questions.a");
  await refused({ a: { instructions: "x", choices: ["a", "b"], levels: ["c", "d"] } }, "questions.a");
  await refused({ fine: "x", a: { instructions: "x", choices: ["a"] } }, "questions.a.choices");
  await refused({ fine: "x", a: { instructions: "" } }, "questions.a.instructions");
  await assert.rejects(client.decide(), { code: "INVALID_REQUEST" });
});

/** Answers whose probability of `true` is off by a known curve, and labels that follow the true probability. */
function biased(count, curve) {
  return Array.from({ length: count }, (_, i) => {
    const truth = (i + 0.5) / count;
    const said = curve(truth);
    const probabilities = [{ value: true, probability: said }, { value: false, probability: 1 - said }];
    const answers = { q: { value: said >= 0.5, confidence: Math.max(said, 1 - said), probabilities } };
    return { answers, labels: { q: (i * 0.618) % 1 < truth } }; // each probability has its share of true labels
  });
}

test("calibration takes an error out that all answers have", async (t) => {
  const client = fakeClient(t);
  const logit = (p) => Math.log(p / (1 - p));
  const curve = (p) => 1 / (1 + Math.exp(-(4 * logit(p) + 3))); // too sure, and too often yes
  const calibration = await client.calibrate(biased(50, curve));
  const { scale, shifts } = JSON.parse(JSON.stringify(calibration)).q;
  assert.ok(Math.abs(scale - 0.25) < 0.12, `scale ${scale}`);
  const shift = shifts.find(({ value }) => value).shift - shifts.find(({ value }) => !value).shift;
  assert.ok(shift < 0 && shift > -2, `shift ${shift}`);
  const questions = { q: "Is the fox fast?" };
  const raw = (await client.decide({ input, questions })).q;
  const right = (await client.decide({ input, questions, calibration })).q;
  assert.ok(right.confidence < raw.confidence);
  assert.ok(Math.abs(right.probabilities[0].probability + right.probabilities[1].probability - 1) < 1e-9);
  const other = (await client.decide({ input, questions: { other: "Is the fox fast?" }, calibration })).other;
  assert.deepEqual(other, raw, "a question without a calibration");
});

test("calibration refuses examples that do not fit", async (t) => {
  const client = fakeClient(t);
  const refused = (examples, text) => assert.rejects(client.calibrate(examples), ({ code, message }) => {
    assert.equal(code, "INVALID_REQUEST");
    assert.match(message, text);
    return true;
  });
  const good = biased(12, (p) => p);
  await refused({}, /needs a list/);
  await refused(good.slice(3), /'q' has 9 labels, and needs at least 10/);
  await refused(good.with(2, { ...good[2], labels: { q: "maybe" } }), /examples\[2\]\.labels\.q.*"maybe"/);
  await refused(good.with(3, { answers: {}, labels: { q: true } }), /examples\[3\]\.labels\.q/);
  await refused([null], /examples\[0\]/);
});
