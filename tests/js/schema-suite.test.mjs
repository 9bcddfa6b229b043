// A part of tests/schema/suite.mjs: a few texts for each schema, all of which must be valid.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { validatorOf } from "../../js-shim/dist/esm/validate.js";
import { noModel } from "./support/helper.mjs";
import { faults, sampled, SAMPLER, schemas, SUITE } from "../schema/suite.mjs";

const missing = [SAMPLER, SUITE].find((file) => !existsSync(file));
const skip = noModel() || (missing ? `${missing} is not there` : false);

test("the JSON Schema Test Suite: what is accepted is valid, what is not is told by its path", { skip }, async () => {
  const all = schemas();
  assert.ok(all.length > 700, `${all.length} schemas`);
  const counts = { accepted: 0, refused: 0, texts: 0 };
  const requests = all.map(({ schema }, index) => ({ schema, strict: true, count: 1, seed: index }));
  let index = 0;
  for await (const answer of sampled(requests)) {
    const entry = all[index++];
    const label = `${entry.draft} ${entry.file}: ${entry.name}`;
    if (answer.error === undefined) {
      counts.accepted++;
      counts.texts += answer.texts.length; // a few do not end within the sampler's limit
      assert.deepEqual(faults(entry, answer.texts) ?? [], [], label);
    } else {
      counts.refused++;
      assert.match(answer.param, /^format\.schema/, label);
    }
  }
  assert.equal(index, all.length);
  assert.ok(counts.accepted >= 400 && counts.texts >= 390, JSON.stringify(counts));
});

/** Features that a host's schema can't have, or that are never checked: other documents, dynamic references, formats. */
const BEYOND = /^(refRemote|dynamicRef|vocabulary|optional\/)|\$dynamicRef|\$id|\$ref to|metaschema|remote ref/;

const noSuite = existsSync(SUITE) ? false : `${SUITE} is not there`;

test("the JSON Schema Test Suite: client.generate's check has its verdicts", { skip: noSuite }, () => {
  const wrong = [];
  let right = 0;
  for (const { draft, file, name, schema, tests } of schemas()) {
    if (BEYOND.test(file) || BEYOND.test(name) || typeof schema === "boolean") continue;
    const $schema = `http://json-schema.org/${draft === "draft7" ? "draft-07" : draft}/schema#`;
    for (const { description, data, valid } of tests) {
      let verdict;
      try {
        verdict = validatorOf({ $schema, ...schema })(data) === null;
      } catch (error) {
        verdict = error.message;
      }
      if (verdict === valid) right++;
      else wrong.push(`${draft} ${file}: ${name}: ${description}: ${verdict}`);
    }
  }
  assert.deepEqual(wrong, []);
  assert.ok(right > 1500, `${right}`);
});
