// The stock OpenAI SDK on a local model: streams an answer to the terminal as it is produced.
//
//   node examples/openai-stream.mjs "Why is the sky blue?"
import { constants } from "node:os";
import { createClient } from "fm-proxy";
import OpenAI from "openai";

const prompt = process.argv.slice(2).join(" ").trim();
if (prompt === "") {
  console.error('usage: node openai-stream.mjs "a question"');
  process.exit(64);
}

// The reader of the output may stop early, as `head` does. Then this program ends with the exit status of a program that SIGPIPE
// ended.
process.stdout.on("error", ({ code }) => process.exit(code === "EPIPE" ? 128 + constants.signals.SIGPIPE : 1));

const client = createClient();
const openai = new OpenAI({ apiKey: "local", baseURL: "http://fm-proxy/v1", fetch: client.fetch });

try {
  const stream = await openai.responses.create({
    input: prompt,
    stream: true,
    temperature: 0.2,
    max_output_tokens: 300,
  });
  for await (const event of stream) {
    if (event.type === "response.output_text.delta") process.stdout.write(event.delta);
    if (event.type === "response.incomplete") process.stdout.write(" [...]");
  }
  process.stdout.write("\n");
} catch (error) {
  console.error(`\nThe request failed: ${error.message}`);
  process.exitCode = 1;
} finally {
  await client.close();
}
