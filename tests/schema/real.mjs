// Schemas written by people: how many are accepted, and how long they take to compile. Makes no texts.
//
// usage: node tests/schema/real.mjs FOLDER...
//
// A JSON file below a folder counts as a schema if its root is an object with `properties`, `$ref`, `definitions` or a similar
// member, it names JSON Schema in `$schema`, and it refers to nothing outside of itself. Equal texts count once.

import { readdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { sampled } from "./suite.mjs";

const KEYWORDS = ["properties", "$ref", "definitions", "$defs", "anyOf", "oneOf", "allOf"];

function* files(folder) {
  for (const name of readdirSync(folder).sort()) {
    const file = path.join(folder, name);
    const stat = statSync(file);
    if (stat.isDirectory()) yield* files(file);
    else if (name.endsWith(".json")) yield file;
  }
}

/** Whether a schema refers to nothing outside of itself. */
function isWhole(schema) {
  const refs = JSON.stringify(schema).matchAll(/"\$ref":"([^"]*)"/g);
  return [...refs].every(([, ref]) => ref.startsWith("#"));
}

function read(file) {
  try {
    const schema = JSON.parse(readFileSync(file, "utf8"));
    const named = typeof schema.$schema === "string" && /json-schema\.org/.test(schema.$schema);
    return named && KEYWORDS.some((key) => key in schema) && isWhole(schema) ? schema : null;
  } catch {
    return null;
  }
}

/** All schemas, without repeated texts: [file, schema]. */
function collect(folders) {
  const seen = new Map();
  for (const folder of folders)
    for (const file of files(folder)) {
      const schema = read(file);
      if (schema && !seen.has(JSON.stringify(schema))) seen.set(JSON.stringify(schema), [file, schema]);
    }
  return [...seen.values()];
}

const percentile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
const ms = (us) => (us / 1000).toFixed(1);

async function run(schemas, strict) {
  const times = [];
  const refusals = new Map();
  let exact = 0;
  let index = 0;
  for await (const answer of sampled(schemas.map(([, schema]) => ({ schema, strict, count: 0, seed: 1 })))) {
    const [file] = schemas[index++];
    if (answer.error === undefined) {
      times.push(answer.compile_us);
      exact += answer.report.checked.length === 0;
      continue;
    }
    const reason = answer.error.replace(answer.param, "").replace(/\d+/g, "N").slice(0, 100);
    refusals.set(reason, [...(refusals.get(reason) ?? []), `${file} ${answer.param}`]);
    times.push(answer.refused_us);
  }
  times.sort((a, b) => a - b);
  const refused = [...refusals.values()].reduce((sum, list) => sum + list.length, 0);
  console.log(
    `strict ${strict}: ${schemas.length} schemas, ${schemas.length - refused} accepted (${exact} of them enforced whole), ` +
      `${refused} refused; p50 ${ms(percentile(times, 0.5))} ms, p99 ${ms(percentile(times, 0.99))} ms, ` +
      `most ${ms(times.at(-1))} ms`,
  );
  for (const [reason, list] of [...refusals].sort((a, b) => b[1].length - a[1].length))
    console.log(`  ${list.length} x ${reason}  (${list[0].slice(-120)})`);
}

const folders = process.argv.slice(2);
if (folders.length === 0) {
  console.error("usage: node tests/schema/real.mjs FOLDER...");
  process.exit(64);
}
const schemas = collect(folders);
await run(schemas, false);
await run(schemas, true);
