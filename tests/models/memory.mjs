// Compares the memory that is shown before a load with what the engine then takes with a full context, for each of the models.
// Only for Linux. A large model reads its context for minutes. Run sh packaging/setup.sh first.
//
// usage: node tests/models/memory.mjs FILE...
import { readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { readFacts, memoryOf } from "../../js-shim/dist/esm/gguf.js";
import { createClient } from "../../js-shim/dist/esm/index.js";
import { sizeOf } from "../../js-shim/dist/esm/model-files.js";

/** The number of tokens in a prompt. A context has 8,192 tokens by default, and a word is one or two tokens. */
const TOKENS = 8000;
const EMBEDDED = [10, 100, 400]; // words
const MB = 1e6;

const read = (pid, name) => readFileSync(`/proc/${pid}/${name}`, "utf8");
const parentOf = (pid) => Number(/^PPid:\s+(\d+)$/m.exec(read(pid, "status"))[1]);

/** The resident bytes of the engine that this process' helper has started. */
function residentBytes() {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      if (!read(pid, "comm").startsWith("fm-engine-llam") || parentOf(parentOf(pid)) !== process.pid) continue;
      return 1024 * Number(/^VmRSS:\s+(\d+)/m.exec(read(pid, "status"))[1]);
    } catch {
      // the process has ended meanwhile
    }
  }
  throw new Error("there is no engine");
}

async function fill(client, embeds) {
  if (embeds) {
    for (const words of EMBEDDED) await client.embeddings.create({ input: "word ".repeat(words) });
    return;
  }
  const input = "word ".repeat(1000);
  const { input_tokens: some } = await client.responses.inputTokens.count({ input });
  const words = Math.floor((1000 * TOKENS) / some);
  await client.responses.create({ input: "word ".repeat(words), max_output_tokens: 8, store: false });
}

const files = process.argv.slice(2);
if (files.length === 0) {
  console.error("usage: node tests/models/memory.mjs FILE...");
  process.exit(64);
}
console.log("| Model | Shown before the load, MB | Resident, MB | Difference |\n|---|---|---|---|");
for (const file of files) {
  const facts = await readFacts(file);
  const shown = memoryOf(await sizeOf(file), facts);
  const client = createClient({ model: file, kvCacheFiles: false });
  try {
    await fill(client, facts.embeds);
    const taken = residentBytes();
    const percent = (100 * (shown - taken)) / taken;
    console.log(`| ${basename(file)} | ${Math.round(shown / MB)} | ${Math.round(taken / MB)} | ${percent.toFixed(1)} % |`);
    if (Math.abs(percent) > 10) process.exitCode = 1;
  } finally {
    await client.close();
  }
}
