#!/usr/bin/env node
// Asks a language model: OpenAI's, or one on this machine. Only the code for `--local` uses fm-proxy.
import { parseArgs } from "node:util";
import OpenAI from "openai";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { local: { type: "boolean" }, model: { type: "string", default: "gpt-5-mini" } },
});
const input = positionals.join(" ");
if (input === "") end(64, "usage: ask [--local] [--model NAME] QUESTION");
const local = values.local ? await startLocal() : null;
const stop = new AbortController();
process.once("SIGINT", () => stop.abort());
process.stdout.on("error", () => stop.abort()); // nobody reads the answer any more
try {
  const openai = new OpenAI(local === null ? {} : { apiKey: "local", baseURL: "http://fm-proxy/v1", fetch: local.fetch });
  const stream = await openai.responses.create({ model: values.model, input, stream: true }, { signal: stop.signal });
  for await (const event of stream) if (event.type === "response.output_text.delta") process.stdout.write(event.delta);
  process.stdout.write("\n");
} catch (error) {
  process.exitCode = 1;
  if (!stop.signal.aborted) console.error(error.message);
} finally {
  if (stop.signal.aborted) process.exitCode = 130; // as a shell reports Ctrl-C
  await local?.close();
}

/** The model on this machine. The alias `*` stands for every other name, so a `--model` that names a cloud model does no harm. */
async function startLocal() {
  const { createClient } = await import("fm-proxy");
  const client = createClient({ aliases: { "*": "default" } });
  const { compatible, detail } = await client.compatibility.check();
  return compatible ? client : end(69, `There is no local model. ${detail}`);
}

function end(status, message) {
  console.error(message);
  process.exit(status);
}
