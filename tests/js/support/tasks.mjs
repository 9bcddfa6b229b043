// The tasks for the clients, each in its own way: a structured answer, a call of a tool, and a thought.
import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import {
  appleClient,
  fakeClient,
  llamaServerClient,
  modelClient,
  noApple,
  noLlamaServer,
  noRemote,
  ofApple,
  ofLlamaServer,
  ofRemote,
  remoteClient,
  script,
} from "./helper.mjs";

export const PROMPT = "Describe a cat called Tom, who is three years old.";
export const Animal = z.object({
  name: z.string().max(24),
  kind: z.enum(["cat", "dog", "bird"]),
  age: z.number().int().min(0).max(30),
  tags: z.array(z.enum(["small", "large", "wild"])).max(3),
});

const ARGUMENTS = { city: "Linz", days: 2 };
export const Weather = z.object({ city: z.string().max(12), days: z.number().int().min(1).max(7) });
export const description = "How the weather will be";
export const outcome = ({ city, days }) => `dry in ${city} for ${days} days`;
export const QUESTION = "What will the weather be like in Linz?";
export const CALL = script({ tool_call: { name: "weather", arguments: JSON.stringify(ARGUMENTS) } });
export const THOUGHT = "Hm, so 😀.";
/** The real model of the tests does not think. */
export const THINK = script({ reasoning: "Hm, " }, { reasoning: "so 😀." }, "Yes", ".");
export const LIMIT = 48; // tokens: the default model does not stop by itself

/** A function to give to a client, and the arguments with which it was called. */
export function recorder() {
  const seen = [];
  const run = (input) => {
    seen.push(Weather.parse(input));
    return outcome(input);
  };
  return { seen, run };
}

export function checkRun(seen, text, real) {
  assert.equal(seen.length, 1);
  assert.equal(typeof text, "string");
  if (real) return;
  assert.deepEqual(seen, [ARGUMENTS]);
  assert.equal(text, outcome(ARGUMENTS));
}

/**
 * A test on the engines whose answers are exact (the fake one, the remote one in front of it, Apple's in front of the
 * stand-in), and on the real model, whose texts vary: in the llama engine, and in llama.cpp's own server behind the remote
 * engine.
 *
 * @param {string | null} missing why the real model can't be used
 */
export function onEngines(name, missing, suite) {
  test(`${name} on the fake engine`, async (t) => suite(t, fakeClient(t), false));
  test(`${name} on the apple engine`, { skip: noApple() ?? false }, async (t) => suite(ofApple(t), appleClient(t), false));
  for (const dialect of ["responses", "chat"]) {
    test(`${name} on the remote engine, ${dialect}`, { skip: noRemote() ?? false }, async (t) =>
      suite(ofRemote(t, dialect), await remoteClient(t, dialect), false));
  }
  test(`${name} on the remote engine, llama-server`, { skip: noLlamaServer() ?? false }, async (t) =>
    suite(ofLlamaServer(t), await llamaServerClient(t), true));
  test(`${name} on the real model`, { skip: missing ?? false }, async (t) => suite(t, modelClient(t), true));
}
