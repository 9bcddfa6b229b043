// Character classes with control characters: makes 600 texts for each pattern. Each text must match its pattern.
//
// usage: node tests/schema/patterns.mjs

import { faults, sampled } from './suite.mjs';

const COUNT = 600;
const PATTERNS = [
  '^[^"]$',
  '^[^\\\\]$',
  '^[^"\\\\]+$',
  '^[^"\\n]$',
  '^[^\\\\/:*?"<>|]+$',
  '^[\\x00-\\x1f]$',
  '^.$',
  '^[^\\S]+$',
  '^\\P{L}$',
];
const draft = 'draft2020-12';
const schemas = [
  ...PATTERNS.map((pattern) => ({ type: 'string', pattern, maxLength: 2 })),
  ...['^[^"]$', '^[^\\\\]$'].map((pattern) => ({
    type: 'object',
    patternProperties: { [pattern]: { const: 1 } },
    additionalProperties: false,
    minProperties: 1,
    maxProperties: 1,
  })),
];

let bad = 0;
let index = 0;
for await (const answer of sampled(schemas.map((schema, i) => ({ schema, strict: true, count: COUNT, seed: i + 1 })))) {
  const schema = schemas[index++];
  const found = answer.error ? [answer.error] : faults({ draft, schema }, answer.texts);
  if (!answer.error && answer.texts.length === 0) found.push('no text');
  bad += found.length;
  console.log(`${JSON.stringify(schema)}: ${answer.texts?.length ?? 0} texts, ${found.length} not valid`);
  for (const fault of found.slice(0, 3)) console.log(`  ${fault}`);
}
process.exitCode = bad ? 1 : 0;
