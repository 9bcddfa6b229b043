// Sends the schemas of the JSON Schema Test Suite through the llama engine's own code. If a schema is accepted with strict,
// sample_schema samples texts with random logits, and ajv must accept every text. Every other schema must be refused with the
// path of a keyword.
//
// usage: node tests/schema/suite.mjs [--count N] [--suite FOLDER] [--table]
//   --count N  texts per schema (default 20)
//   --table    print the result for each keyword, for PROTOCOL.md

import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath, pathToFileURL } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const require = createRequire(path.join(ROOT, 'tests/js/package.json'));
const Ajv7 = require('ajv').default;
const Ajv2020 = require('ajv/dist/2020.js').default;
const addFormats = require('ajv-formats').default;

export const SAMPLER = process.env.FM_SAMPLER ?? path.join(ROOT, 'build/tests-bin/sample_schema');
const MODEL = process.env.FM_MODEL ?? path.join(ROOT, 'build/models/SmolLM2-135M-Instruct.Q4_1.gguf');
export const SUITE = process.env.FM_SCHEMA_SUITE ?? path.join(ROOT, 'build/deps/schema-suite/tests');
const DRAFTS = { 'draft2020-12': Ajv2020, draft7: Ajv7 };

/** Every schema of the suite: [{draft, file, name, schema, tests}]. */
export function schemas(suite = SUITE) {
  return Object.keys(DRAFTS).flatMap((draft) =>
    readdirSync(path.join(suite, draft), { recursive: true })
      .filter((file) => file.endsWith('.json'))
      .sort()
      .flatMap((file) =>
        JSON.parse(readFileSync(path.join(suite, draft, file), 'utf8')).map((group) => ({
          draft,
          file: file.replace(/\.json$/, ''),
          name: group.description,
          schema: group.schema,
          tests: group.tests,
        })),
      ),
  );
}

/** Sends each request to the sampler in turn; ends the sampler after the last one. */
export async function* sampled(requests) {
  const child = spawn(SAMPLER, [MODEL], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = new Promise((resolve) => child.on('close', (code, signal) => resolve(signal ?? code)));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  child.stdin.on('error', () => {});
  try {
    for (const request of requests) {
      child.stdin.write(`${JSON.stringify(request)}\n`);
      const { value, done } = await lines.next();
      if (done) throw new Error(`the sampler ended (${await ended}) at ${JSON.stringify(request).slice(0, 500)}`);
      yield JSON.parse(value);
    }
  } finally {
    child.stdin.end(); // this also runs if the caller stops early
  }
  const status = await ended;
  if (status !== 0) throw new Error(`the sampler ended with ${status}`);
}

function validator({ draft, schema }) {
  const ajv = new DRAFTS[draft]({ strict: false, allErrors: false, logger: false, ownProperties: true });
  addFormats(ajv);
  return ajv.compile(schema);
}

/** The numbers in a text that may be the beginning of an endless number: with too many digits, or too large for a double. */
function endless(text) {
  const numbers = text.replace(/"(?:[^"\\]|\\.)*"/g, '""').match(/[0-9.eE+-]*[0-9]/g) ?? [];
  const ends = /^-?\d{1,20}(\.\d{1,40})?([eE][+-]?\d{1,2})?$/;
  return numbers.filter((number) => !ends.test(number) || !Number.isFinite(Number(number)));
}

/** The faults of a schema's sampled texts, as a list of strings. Null if ajv can't read the schema. */
export function faults(entry, texts) {
  let validate;
  try {
    validate = validator(entry);
  } catch {
    return null;
  }
  return texts.flatMap((text) => {
    const [number] = endless(text);
    if (number) return [`${text}: ${number} is too long`];
    try {
      return validate(JSON.parse(text)) ? [] : [`${text}: ${ajvError(validate)}`];
    } catch (error) {
      return [`${text}: ${error.message}`];
    }
  });
}

const ajvError = (validate) => validate.errors.map((e) => `${e.schemaPath} ${e.message}`).join('; ');

function options(args) {
  const value = (name, fallback) => (args.includes(name) ? args[args.indexOf(name) + 1] : fallback);
  return { count: Number(value('--count', 20)), suite: value('--suite', SUITE), table: args.includes('--table') };
}

async function main() {
  const { count, suite, table } = options(process.argv.slice(2));
  const all = schemas(suite);
  const totals = { accepted: 0, refused: 0, texts: 0, none: [], unread: [], bad: [], pathless: [], slow: [] };
  const keywords = new Map();
  const masks = [];
  const answers = sampled(all.map(({ schema }, i) => ({ schema, strict: true, count, seed: i + 1 })));
  let index = 0;
  for await (const answer of answers) {
    const entry = all[index++];
    const label = `${entry.draft} ${entry.file}: ${entry.name}`;
    if (answer.error !== undefined) {
      totals.refused++;
      if (!answer.param) totals.pathless.push(`${label}: ${answer.error}`);
      note(keywords, entry, answer);
      continue;
    }
    totals.accepted++;
    totals.texts += answer.texts.length;
    for (const us of answer.masks_us) masks.push(us);
    if (answer.texts.length === 0) totals.none.push(label);
    if (answer.compile_us > 100_000) totals.slow.push(`${label}: ${answer.compile_us} us`);
    const found = faults(entry, answer.texts);
    if (!found) totals.unread.push(label);
    const schema = JSON.stringify(entry.schema).slice(0, 300);
    totals.bad.push(...(found ?? []).slice(0, 3).map((fault) => `${label}: ${schema} -> ${fault}`));
  }
  for (const key of ['none', 'unread', 'pathless', 'slow', 'bad']) {
    for (const line of totals[key]) console.log(`${key}: ${line}`);
  }
  if (table) for (const [key, n] of [...keywords].sort()) console.log(`${key}: refused ${n}`);
  console.log(
    `${all.length} schemas: ${totals.accepted} accepted, ${totals.refused} refused; ${totals.texts} texts, ` +
      `${totals.bad.length} not valid, ${totals.pathless.length} refused without a path, ${totals.none.length} without a text`,
  );
  masks.sort((a, b) => a - b);
  const at = (share) => masks[Math.min(masks.length - 1, Math.floor(masks.length * share))];
  console.log(`${masks.length} masks: p50 ${at(0.5)} us, p99 ${at(0.99)} us, most ${masks.at(-1)} us`);
  process.exitCode = totals.bad.length || totals.pathless.length ? 1 : 0;
}

/** Notes which keyword a refusal named. */
function note(keywords, entry, answer) {
  const key = `${answer.param?.split('.').at(-1)?.replace(/\[\d+\]$/, '')}  ${answer.error.slice(0, 80)}`;
  keywords.set(key, (keywords.get(key) ?? 0) + 1);
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) await main();
