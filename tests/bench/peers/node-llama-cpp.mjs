// node-llama-cpp as a program for compare.py: one request per line on stdin, one line for each token on stdout.
//
//     node node-llama-cpp.mjs MODEL SEQUENCES THREADS
//
// It uses evaluate(), the library's fastest function, and keeps a sequence's tokens for the next request.
import { createInterface } from "node:readline";
import { getLlama } from "node-llama-cpp";

const [modelPath, sequences, threads] = process.argv.slice(2);
const llama = await getLlama({ gpu: false, build: "never", skipDownload: true, progressLogs: false, logLevel: "error" });
const model = await llama.loadModel({ modelPath });
const context = await model.createContext({
  sequences: Number(sequences),
  contextSize: 2048,
  threads: Number(threads),
});
const free = Array.from({ length: Number(sequences) }, () => context.getSequence());

const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);

async function answer({ id, prompt, tokens }) {
  const sequence = free.pop();
  const input = model.tokenize(prompt);
  await sequence.adaptStateToTokens(input.slice(0, -1), false);
  const cached = sequence.nextTokenIndex;
  let output = 0;
  for await (const token of sequence.evaluate(input.slice(cached), { temperature: 0, yieldEogToken: true })) {
    say({ id, text: model.detokenize([token]) });
    output++;
    if (output === tokens) break;
  }
  free.push(sequence);
  say({ id, done: true, input: input.length, cached, output });
}

say({ ready: true });
for await (const line of createInterface({ input: process.stdin })) void answer(JSON.parse(line));
process.exit(0);
