// How often a model decides right: 200 labelled questions, answered by client.decide, by the same with a calibration, and by
// generating a constrained answer. The questions are made of BFCL's: whether a function can do what a request asks for. It can in
// the category simple_python, and can't in irrelevance.
//
//   node tests/models/decide.mjs MODEL BFCL [COUNT]
//
// BFCL is the folder of its package. COUNT questions of each category are asked; 100 if absent. Prints a table (Markdown).
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { createClient } from "../../js-shim/dist/esm/index.js";

const root = resolve(fileURLToPath(import.meta.url), "../../..");
const [model, folder, count = "100"] = process.argv.slice(2);
const QUESTION = "Can this function do what the request asks for?";
/** Every fourth question of each category is an example for the calibration. */
const isExample = (_, i) => i % 8 < 2;

function questionsOf(category, label) {
  const text = readFileSync(join(folder, "bfcl_eval", "data", `BFCL_v4_${category}.json`), "utf8");
  const all = text.trim().split("\n").map((line) => JSON.parse(line));
  return Array.from({ length: Number(count) }, (_, i) => {
    const { question, function: [tool] } = all[Math.floor((i * all.length) / Number(count))];
    const parameters = Object.entries(tool.parameters.properties).map(([name, { description }]) => `- ${name}: ${description}`);
    const lines = [`Request: ${question[0].at(-1).content}`, "", `Function: ${tool.name}`, tool.description, ...parameters];
    return { input: lines.join("\n"), label };
  });
}

const client = createClient({ helperPath: join(root, "build/bin/fm-proxy"), model, kvCacheFiles: false });
const [fitting, others] = [questionsOf("simple_python", true), questionsOf("irrelevance", false)];
const questions = fitting.flatMap((each, i) => [each, others[i]]);

const format = {
  type: "json_schema",
  name: "answer",
  schema: { type: "object", properties: { answer: { type: "boolean" } }, required: ["answer"], additionalProperties: false },
};
async function generated(input) {
  const text = `${input}\n\n${QUESTION} Answer true or false.`;
  const { output_text } = await client.responses.create({ input: text, text: { format }, temperature: 0, store: false });
  return JSON.parse(output_text).answer;
}

const rows = [];
for (const [i, { input, label }] of questions.entries()) {
  const answers = await client.decide({ input, questions: { fits: QUESTION } });
  rows.push({ input, label, answers, generated: await generated(input) });
  if (i % 20 === 19) console.error(`decide: ${i + 1} of ${questions.length}`);
}
const labelled = rows.filter(isExample).map(({ answers, label }) => ({ answers, labels: { fits: label } }));
const calibration = await client.calibrate(labelled);
const held = rows.filter((row, i) => !isExample(row, i));
for (const row of held) {
  row.calibrated = await client.decide({ input: row.input, questions: { fits: QUESTION }, calibration });
}
await client.close();

const percent = (all, of) => `${((100 * all.filter((row) => of(row) === row.label).length) / all.length).toFixed(1)}%`;
const right = (of) => `${percent(rows, of)} | ${percent(held, of)}`;
const probability = (of, row) => of(row).fits.probabilities[row.label ? 0 : 1].probability;
const logOf = (of, row) => Math.log(Math.max(1e-9, probability(of, row)));
const loss = (of) => (held.reduce((sum, row) => sum - logOf(of, row), 0) / held.length).toFixed(3);
const examples = rows.length - held.length;
console.log(`| | right, of ${rows.length} | right, of ${held.length} | log loss |`);
console.log("|---|---|---|---|");
console.log(`| decisions | ${right((row) => row.answers.fits.value)} | ${loss((row) => row.answers)} |`);
const calibrated = percent(held, (row) => row.calibrated.fits.value);
console.log(`| calibrated by the other ${examples} | - | ${calibrated} | ${loss((row) => row.calibrated)} |`);
console.log(`| a constrained answer | ${right((row) => row.generated)} | - |`);
console.log(JSON.stringify(calibration));
