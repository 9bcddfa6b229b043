#!/usr/bin/env node
// A conversation with the local model through session mode (protocol/SESSIONS.md). Needs no packages.
//
//     node client.mjs [FM_PROXY [OPTION...]]

import { spawn } from "node:child_process";
import { once } from "node:events";

const TEXT = "Apples and pears grew in the garden. The plums came later, from a neighbour.";

// Does not use node:readline, because that ends a line at U+2028 too. In JSON, U+2028 is an ordinary character.
async function* lines(stream) {
  let rest = "";
  for await (const chunk of stream.setEncoding("utf8")) {
    const pieces = chunk.split("\n");
    pieces[0] = rest + pieces[0];
    rest = pieces.pop();
    yield* pieces;
  }
}

// A running `fm-proxy sessions`.
class Gateway {
  static async start(program = "fm-proxy", ...options) {
    const child = spawn(program, ["sessions", ...options], { stdio: ["pipe", "pipe", "inherit"] });
    child.stdin.on("error", () => {}); // then no answer comes, and ask() throws
    await once(child, "spawn");
    return new Gateway(child);
  }

  constructor(child) {
    this.stdin = child.stdin;
    this.answers = lines(child.stdout);
    this.exit = once(child, "exit");
  }

  // Sends one request and waits for its answer; await it before the next.
  async ask(command, members) {
    this.stdin.write(JSON.stringify({ command, ...members }) + "\n");
    const { value, done } = await this.answers.next();
    if (done) throw new Error("the gateway has ended");
    const answer = JSON.parse(value);
    if (!answer.ok) throw new Error(answer.error);
    return answer;
  }

  // Returns an array of strings, or a string, as output_format says.
  async message(session_id, prompt, content, output_format) {
    return (await this.ask("message", { session_id, prompt, content, output_format })).result;
  }

  async shutDown() {
    await this.ask("shutdown");
    const [status] = await this.exit;
    if (status !== 0) throw new Error(`the gateway ended with status ${status}`);
  }

  // Ends the gateway by ending its input, whatever went wrong here.
  async close() {
    this.stdin.end();
    await this.exit;
  }
}

async function converse(gateway) {
  const { available, reason } = await gateway.ask("check-availability");
  if (!available) {
    console.log("not available:", reason);
    return;
  }
  const { session_id } = await gateway.ask("open-session", { instructions: "You answer in few words." });
  const fruits = await gateway.message(session_id, "List the fruits that the text names.", TEXT, "string_list");
  for (const fruit of fruits) console.log(`- ${fruit}`);
  // The session remembers the first answer.
  console.log(await gateway.message(session_id, "Write a sentence about the first of them.", TEXT, "text"));
  await gateway.ask("close-session", { session_id });
  await gateway.shutDown();
}

process.stdout.on("error", () => process.exit(1)); // the reader may stop, as `head` does
try {
  const gateway = await Gateway.start(...process.argv.slice(2));
  try {
    await converse(gateway);
  } finally {
    await gateway.close();
  }
} catch (error) {
  console.error(`error: ${error.message}`);
  process.exitCode = 1;
}
