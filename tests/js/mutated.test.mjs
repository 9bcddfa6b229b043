// Valid requests with one random error each, through client.fetch on the fake engine: each is answered in time, successfully
// or by a 4xx with type, code and param; never by a 5xx. FM_MUTATIONS and FM_MUTATIONS_SEED choose how many and which; a
// failure prints how to repeat it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fakeClient } from "./support/helper.mjs";
import { WAIT } from "./support/patience.mjs";

const COUNT = Number(process.env.FM_MUTATIONS || 1000);
const SEED = Number(process.env.FM_MUTATIONS_SEED || 1);
const AT_ONCE = 8;

const parameters = {
  type: "object",
  properties: { a: { type: "string", maxLength: 9 } },
  required: ["a"],
  additionalProperties: false,
};
const user = { type: "message", role: "user", content: [{ type: "input_text", text: "hello" }] };
const schema = { type: "json_schema", name: "n", strict: true, schema: parameters };
const VALID = [
  [
    "POST",
    "responses",
    {
      input: [user, { role: "assistant", content: "hm" }, { role: "user", content: "x" }],
      instructions: "Be short.",
      max_output_tokens: 9,
      temperature: 0.5,
      top_p: 0.9,
      seed: 1,
      stop: ["z"],
      store: true,
      metadata: { a: "b" },
      truncation: "disabled",
      include: [],
      top_logprobs: 0,
      presence_penalty: 0,
      frequency_penalty: 0,
      parallel_tool_calls: true,
      service_tier: "auto",
      user: "u",
      safety_identifier: "s",
      prompt_cache_key: "k",
      reasoning: { effort: null },
      text: { verbosity: "low" },
    },
  ],
  [
    "POST",
    "responses",
    {
      input: [
        user,
        { type: "function_call", call_id: "c", name: "f", arguments: "{}" },
        { type: "function_call_output", call_id: "c", output: "1" },
      ],
      tools: [{ type: "function", name: "f", description: "d", parameters, strict: true }],
      tool_choice: "auto",
      max_tool_calls: 3,
    },
  ],
  ["POST", "responses", { input: "hi", text: { format: schema }, fm: { timeout_ms: 5000, schema_report: true } }],
  [
    "POST",
    "responses",
    { input: "hi", stream: true, background: false, stream_options: { include_obfuscation: false } },
  ],
  [
    "POST",
    "responses",
    { input: "hi", tools: [{ type: "function", name: "f", parameters }], tool_choice: { type: "function", name: "f" } },
  ],
  [
    "POST",
    "chat/completions",
    {
      messages: [
        { role: "system", content: "s" },
        { role: "user", content: [{ type: "text", text: "hi" }], name: "n" },
      ],
      max_completion_tokens: 9,
      max_tokens: 9,
      temperature: 1,
      top_p: 1,
      seed: 3,
      stop: "z",
      n: 1,
      logprobs: false,
      logit_bias: {},
      presence_penalty: 0,
      frequency_penalty: 0,
      response_format: { type: "text" },
      modalities: ["text"],
      metadata: {},
      verbosity: "low",
    },
  ],
  [
    "POST",
    "chat/completions",
    {
      messages: [
        { role: "user", content: "x" },
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }],
        },
        { role: "tool", tool_call_id: "c", content: "1" },
      ],
      tools: [{ type: "function", function: { name: "f", parameters, strict: false } }],
      tool_choice: "none",
      parallel_tool_calls: false,
    },
  ],
  [
    "POST",
    "chat/completions",
    {
      messages: [{ role: "user", content: "x" }],
      stream: true,
      stream_options: { include_usage: true },
      response_format: { type: "json_schema", json_schema: { name: "n", schema: parameters } },
    },
  ],
  [
    "POST",
    "completions",
    { prompt: "once", suffix: null, max_tokens: 9, temperature: 0, stop: ["z"], stream: false, echo: false, n: 1 },
  ],
  ["POST", "embeddings", { input: ["a", "b"], encoding_format: "float", user: "u" }],
  ["POST", "responses/input_tokens", { input: [user], instructions: "x", tools: [] }],
  ["POST", "responses/compact", { model: "fake", input: [user, { role: "assistant", content: "hm" }] }],
  ["GET", "responses/STORED", { include: "message.output_text.logprobs", stream: false }],
  ["GET", "responses/STORED/input_items", { limit: 5, order: "asc", after: "msg_1" }],
];

/** A generator of numbers from 0 to 1; the same seed gives the same numbers. */
function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const mixed = Math.imul(state ^ (state >>> 15), 2246822519) >>> 0;
    return mixed / 2 ** 32;
  };
}

const ODD = [
  null,
  true,
  false,
  0,
  -1,
  1,
  0.5,
  2.5,
  1e308,
  -1e-300,
  2 ** 31,
  2 ** 53,
  9.3e18,
  "",
  "x",
  "\0",
  "\ud800",
  "null",
  "a".repeat(600),
  "function",
  "user",
  "json_schema",
  "required",
  [],
  [null],
  [[]],
  ["a", "b", "c", "d", "e"],
  {},
  { type: "function" },
  { type: 1 },
  { a: { a: { a: [] } } },
  [{ role: "user", content: "x" }],
  [{ type: "item_reference", id: "nope" }],
  { id: "x" },
  "resp_nope",
];

/** Every place in a value, as container and key. */
function places(value, found = []) {
  if (typeof value !== "object" || value === null) return found;
  for (const key of Object.keys(value)) {
    found.push([value, key]);
    places(value[key], found);
  }
  return found;
}

const KEYS = [
  "previous_response_id",
  "conversation",
  "background",
  "n",
  "logprobs",
  "top_logprobs",
  "suffix",
  "dimensions",
  "__proto__x",
  "type",
  "id",
];
const HOW = {
  drop: (holder, key) => (Array.isArray(holder) ? holder.splice(key, 1) : delete holder[key]),
  replace: (holder, key, pick) => void (holder[key] = pick(ODD)),
  wrap: (holder, key) => void (holder[key] = [holder[key]]),
  double: (holder, key) => (Array.isArray(holder) ? holder.push(holder[key]) : void (holder[`${key}_`] = holder[key])),
  scale: (holder, key, pick) =>
    void (holder[key] = typeof holder[key] === "number" ? holder[key] * pick([-1, 1000, 1e9, 0.1]) : pick(ODD)),
  text: (holder, key) => void (holder[key] = String(holder[key])),
  add: (holder, key, pick) => void (holder[Array.isArray(holder) ? holder.length : pick(KEYS)] = pick(ODD)),
};

function mutant(next) {
  const pick = (list) => list[Math.floor(next() * list.length)];
  const [method, path, valid] = pick(VALID);
  const body = structuredClone(valid);
  const names = [];
  for (let left = 1 + Math.floor(next() * 2); left > 0; left--) {
    const all = places(body);
    if (all.length === 0) break;
    const [holder, key] = pick(all);
    const name = pick(Object.keys(HOW));
    HOW[name](holder, key, pick);
    names.push(`${name} ${key}`);
  }
  return { method, path, body, names };
}

async function send(client, { method, path, body }, stored) {
  const url = `http://fm-proxy/v1/${path.replace("STORED", stored)}`;
  const signal = AbortSignal.timeout(WAIT);
  if (method !== "GET") return client.fetch(url, { method, body: JSON.stringify(body), signal });
  const query = new URLSearchParams(Object.entries(body).map(([key, value]) => [key, String(value)]));
  return client.fetch(`${url}?${query}`, { method, signal });
}

test(`${COUNT} mutated requests, seed ${SEED}`, async (t) => {
  const client = fakeClient(t);
  const next = random(SEED);
  const { id } = await client.responses.create({ input: "stored" });
  const mutants = Array.from({ length: COUNT }, () => mutant(next));
  const seen = {};
  const run = async (one) => {
    const response = await send(client, one, id);
    const text = await response.text();
    seen[response.status] = (seen[response.status] ?? 0) + 1;
    if (response.status < 300) return;
    assert.ok(response.status >= 400 && response.status < 500, `${response.status}: ${text}`);
    const { error } = JSON.parse(text);
    assert.ok(error.message && error.type, text);
    for (const key of ["code", "param"]) assert.ok(error[key] === null || typeof error[key] === "string", text);
    if (error.code === "invalid_type" || error.code === "unknown_parameter") assert.ok(error.param, text);
  };
  let index = 0;
  const worker = async () => {
    while (index < mutants.length) {
      const at = index++;
      await run(mutants[at]).catch((error) => {
        const { method, path, body, names } = mutants[at];
        const what = `${method} ${path}, ${names.join(", ")}: ${JSON.stringify(body)}`;
        throw new Error(`mutation ${at} of seed ${SEED}: ${what}\n${error.message}`, { cause: error });
      });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  t.diagnostic(`answers: ${JSON.stringify(seen)}`);
  assert.ok(seen[200] > 0 && seen[400] > 0, JSON.stringify(seen));
  // If a feature does not exist yet, its path is refused as a whole.
  assert.equal((await client.health.ping()).protocol_version, 1);
});
