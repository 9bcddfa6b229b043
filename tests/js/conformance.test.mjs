// How the table of docs/conformance.md is made from test results, and compared with them.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { differences, PAGE, readTable, readTap, section, summarise, toMarkdown } from "./conformance.mjs";
import { root } from "./support/helper.mjs";

const tap = (lines) => ["TAP version 13", ...lines].join("\n");
const RESULTS = tap([
  "# Subtest: AI SDK on the fake engine",
  "    # Subtest: POST /responses: generateText",
  "    ok 1 - POST /responses: generateText",
  "    # Subtest: tools",
  "        # Subtest: POST /responses: several steps, with a comma",
  "        ok 1 - POST /responses: several steps, with a comma",
  "    ok 2 - tools",
  "    # Subtest: POST /embeddings: embedMany",
  "    ok 3 - POST /embeddings: embedMany # SKIP this helper has no embeddings",
  "    # Subtest: errors: one",
  "    not ok 4 - errors: one",
  "not ok 1 - AI SDK on the fake engine",
  "# Subtest: AI SDK on the real model",
  "    # Subtest: POST /responses: generateText",
  "    not ok 1 - POST /responses: generateText",
  "not ok 2 - AI SDK on the real model",
  "# Subtest: POST /responses: of no client",
  "ok 3 - POST /responses: of no client",
]);

test("results: the worst on any engine counts, and tests of no client do not", () => {
  assert.deepEqual(
    [...summarise(readTap(RESULTS))],
    [
      ["POST /responses|AI SDK|generateText", "failed"],
      ["POST /responses|AI SDK|several steps, with a comma", "passed"],
      ["POST /embeddings|AI SDK|embedMany", "skipped"],
      ["errors|AI SDK|one", "failed"],
    ],
  );
});

test("the table says what passed, and reads back as that", () => {
  const found = summarise(readTap(RESULTS.replaceAll("not ok", "ok")));
  const table = toMarkdown(found);
  assert.ok(!table.includes("embedMany"));
  assert.deepEqual(differences(readTable(table), found), []);
});

test("a table that says too much, or too little, is seen", () => {
  const good = summarise(readTap(RESULTS.replaceAll("not ok", "ok")));
  const claims = readTable(toMarkdown(good));
  assert.match(differences([...claims, "POST /x|AI SDK|y"], good).join(), /no test says so/);
  assert.match(differences(claims.slice(1), good).join(), /passed, and not in the table/);
  assert.match(differences(claims, summarise(readTap(RESULTS))).join(), /^failed: .*generateText/);
  // Tests that are skipped here have run elsewhere.
  assert.deepEqual(differences([...claims, "POST /embeddings|AI SDK|embedMany"], good), []);
});

/** Results that agree with the claims, each in a separate test. */
const resultsOf = (claims) =>
  tap(
    claims.flatMap((claim, index) => {
      const [endpoint, client, what] = claim.split("|");
      const lines = [`# Subtest: ${endpoint}: ${what}`, `ok 1 - ${endpoint}: ${what}`].map((line) => `    ${line}`);
      return [`# Subtest: ${client} on the fake engine`, ...lines, `ok ${index + 1} - ${client} on the fake engine`];
    }),
  );

test("--check compares docs/conformance.md with the results", (t) => {
  const page = readFileSync(PAGE, "utf8");
  const { begin, end } = section(page);
  const claims = readTable(page.slice(begin, end).trim());
  assert.ok(claims.length >= 100, `${claims.length} claims`);
  const folder = mkdtempSync(join(tmpdir(), "fm-conformance-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const check = (results) => {
    const file = join(folder, "results.tap");
    writeFileSync(file, results);
    return spawnSync(process.execPath, [join(root, "tests/js/conformance.mjs"), "--check", file], { encoding: "utf8" });
  };
  const same = check(resultsOf(claims));
  assert.deepEqual([same.status, same.stderr], [0, ""]);
  const failed = check(resultsOf(claims).replace("    ok", "    not ok"));
  assert.deepEqual([failed.status, failed.stderr], [1, `docs/conformance.md: failed: ${claims[0]}\n`]);
  const fewer = check(resultsOf(claims.slice(1)));
  assert.deepEqual([fewer.status, fewer.stderr], [1, `docs/conformance.md: no test says so: ${claims[0]}\n`]);
});
