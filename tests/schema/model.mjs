// Sends the schemas of the JSON Schema Test Suite to the whole helper with the real model. If a schema is accepted with strict,
// the model answers at temperature 1.5, and ajv must accept every complete answer.
//
// usage: node tests/schema/model.mjs [ANSWERS]     ANSWERS: how many for each schema (default 1)

import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { createClient } from '../../js-shim/dist/esm/index.js';
import { faults, schemas } from './suite.mjs';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const answers = Number(process.argv[2] ?? 1);

function ask(client, schema, seed) {
  const format = { type: 'json_schema', name: 'n', strict: true, schema };
  const settings = { temperature: 1.5, max_output_tokens: 100, seed };
  return client.responses.create({ input: 'Write some JSON.', text: { format }, ...settings });
}

const totals = { refused: 0, pathless: 0, whole: 0, cut: 0, unread: 0, bad: [] };
const client = createClient({
  helperPath: path.join(ROOT, 'build/bin/fm-proxy'),
  modelsDir: path.join(ROOT, 'build/models'),
});
const entries = schemas().filter(({ schema }) => typeof schema === 'object');
try {
  for (const entry of entries)
    for (let seed = 0; seed < answers; seed++) {
      let response;
      try {
        response = await ask(client, entry.schema, seed);
      } catch (error) {
        if (error.status !== 400) throw error;
        totals.refused++;
        totals.pathless += !error.openai?.param?.startsWith('text.format');
        break;
      }
      if (response.status !== 'completed') {
        totals.cut++;
        continue;
      }
      const text = response.output.map(({ content }) => content.map((part) => part.text).join('')).join('');
      const found = faults(entry, [text]);
      totals.whole++;
      totals.unread += found === null;
      totals.bad.push(...(found ?? []).map((fault) => `${entry.draft} ${entry.file}: ${entry.name}: ${fault}`));
    }
} finally {
  await client.close();
}
for (const line of totals.bad) console.log(`bad: ${line}`);
console.log(
  `${entries.length} schemas: ${totals.refused} refused, ${totals.pathless} of them without a path; ${totals.whole} whole ` +
    `answers, ${totals.bad.length} not valid, ${totals.unread} by schemas that ajv can't read; ${totals.cut} were cut`,
);
process.exitCode = totals.bad.length || totals.pathless || !totals.whole ? 1 : 0;
