// The public conformance suite, unmodified, on fm-system behind bridge.mjs, at each version of the protocol that the suite knows.
// Tests that do not apply are in the tables below, with the reason, and are printed. A check that fails without a reason is a
// failure. So is a reason that no check needs, and an unknown scenario.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { bridge } from "./bridge.mjs";
import { PROMPTS, rename, RESOURCES, TOOLS } from "./suite-names.mjs";
import { fakeDesktop, program } from "./support.mjs";

const manifest = createRequire(import.meta.url).resolve("@modelcontextprotocol/conformance/package.json");
const suite = join(dirname(manifest), JSON.parse(readFileSync(manifest)).bin.conformance);
const patch = fileURLToPath(new URL("node20.mjs", import.meta.url));
const VERSIONS = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

const KINDS = "results of tools are JSON as text";
const PROMPT = "the prompt is one text";
const ASKS = "the user is asked for a yes or no alone, and only in 2026-07-28";
const HTTP = "about HTTP, which fm-system does not speak: the bridge does";
const REPORTS = "no such capability is declared: lists of tools, prompts and resources never change, nothing is logged";

// Scenarios that do not apply at all.
const NOT_HERE = {
  "completion-complete": "no completion: the capability is not declared",
  "dns-rebinding-protection": HTTP,
  "elicitation-sep1034-defaults": ASKS,
  "elicitation-sep1330-enums": ASKS,
  "http-custom-header-server-validation": HTTP,
  "http-header-validation": HTTP,
  "input-required-result-basic-list-roots": "the client's roots are of no use here",
  "input-required-result-basic-sampling": "nothing is asked of the client's model",
  "input-required-result-capability-check": "a client that can't ask its user is not asked: then its hints must do",
  "input-required-result-ignore-extra-params": "it brings no requestState, and without that of its question an answer is none",
  "input-required-result-multi-round": "one question is enough for a request",
  "input-required-result-multiple-input-requests": "one question is enough for a request",
  "input-required-result-non-tool-request": "the prompt asks nothing",
  "json-schema-2020-12": "no tool's parameters have $schema, $defs or $anchor",
  "logging-set-level": REPORTS,
  "prompts-get-embedded-resource": PROMPT,
  "prompts-get-with-image": PROMPT,
  "resources-read-binary": "resources are JSON as text",
  "resources-subscribe": REPORTS,
  "resources-templates-read": "there are no resource templates",
  "resources-unsubscribe": REPORTS,
  "server-sse-polling": HTTP,
  "tools-call-audio": KINDS,
  "tools-call-elicitation": ASKS,
  "tools-call-embedded-resource": KINDS,
  "tools-call-image": KINDS,
  "tools-call-mixed-content": KINDS,
  "tools-call-sampling": "nothing is asked of the client's model",
  "tools-call-with-logging": REPORTS,
};
// The checks of a scenario that do not apply. The other checks of the scenario apply.
const NOT_CHECKED = {
  "server-stateless:sep-2575-http-server-header-mismatch-400": HTTP,
  "server-stateless:sep-2575-missing-capability-http-400": "no tool needs a capability of the client",
  "server-stateless:sep-2575-server-rejects-undeclared-capability": "no tool needs a capability of the client",
  "server-stateless:sep-2575-server-sends-prompts-list-changed-on-subscription": REPORTS,
  "server-stateless:sep-2575-server-sends-tools-list-changed-on-subscription": REPORTS,
};
// These scenarios pass, but they test the bridge more than fm-system.
const OF_HTTP = ["server-session-lifecycle", "server-sse-multiple-streams"];
const EXTENSIONS = { tasks: "no tasks: calls take seconds at most", "sep-2640-skills": "no skills" };

const page = readFileSync(new URL("../../../docs/requirements-system.md", import.meta.url), "utf8");

const text = (...args) =>
  new Promise((resolve) => {
    execFile(process.execPath, ["--import", patch, suite, ...args], { timeout: 240_000 }, (error, out, errors) =>
      resolve({ out, errors, status: error ? error.code : 0 }),
    );
  });

// Scenarios by version; those of extensions have no version.
async function list() {
  const { out, errors } = await text("list", "--server");
  const lines = [...out.matchAll(/^ +- (\S+) \[(.*)\]$/gm)];
  assert.ok(lines.length > 50, out + errors);
  return new Map(lines.map(([, name, versions]) => [name, versions === "extension" ? [] : versions.split(",")]));
}

// The checks of each scenario that has run at this version.
async function run(t, version) {
  const desktop = fakeDesktop(t, { rules: [{ on: "tab.close", do: "refuse" }] }); // so that there is always a tab to close
  const folder = mkdtempSync(join(tmpdir(), "fm-conformance-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const { url, close } = await bridge(program, desktop.args, rename);
  t.after(close);
  const ended = await text("server", "--url", url, "--suite", "all", "--spec-version", version, "--output-dir", folder);
  const found = readdirSync(folder).map((name) => [
    /^server-(.*)-\d{4}-\d\d-\d\dT[^-]*-\d\d-\d\d-\d+Z$/.exec(name)[1],
    JSON.parse(readFileSync(join(folder, name, "checks.json"))),
  ]);
  assert.ok(found.length > 0, ended.out + ended.errors);
  return new Map(found);
}

// The result of a scenario, as a line. `used` gets the reasons that were needed.
function judge(name, checks, used) {
  const lines = [];
  for (const { id, status, errorMessage, details } of checks.filter(({ status }) => !["SUCCESS", "INFO"].includes(status))) {
    const key = Object.hasOwn(NOT_HERE, name) && !id.startsWith("wire-schema") ? name : `${name}:${id}`;
    const reason = NOT_HERE[key] ?? NOT_CHECKED[key];
    assert.ok(reason, `${name}, ${id}: ${status}: ${errorMessage} ${JSON.stringify(details)}`);
    used.add(key);
    if (key !== name) lines.push(`      not ${id}: ${reason}`);
  }
  const passed = checks.filter(({ status }) => status === "SUCCESS").length;
  const of = OF_HTTP.includes(name) ? ", most of them the bridge's" : "";
  return [used.has(name) ? `  -   ${name}: ${NOT_HERE[name]}` : `  ok  ${name}: ${passed} checks${of}`, ...lines];
}

test("the conformance suite", async (t) => {
  const known = await list();
  const used = new Set();
  await Promise.all(
    VERSIONS.map((version) =>
      t.test(version, async (t) => {
        const ran = await run(t, version);
        const wanted = [...known].filter(([, versions]) => versions.includes(version)).map(([name]) => name);
        assert.deepEqual([...ran.keys()].sort(), wanted.sort());
        for (const line of wanted.flatMap((name) => judge(name, ran.get(name), used))) t.diagnostic(line);
        const here = wanted.filter((name) => !Object.hasOwn(NOT_HERE, name)).length;
        const row = `| ${version} | ${here} | ${wanted.length - here} |`;
        assert.ok(page.includes(row), `docs/requirements-system.md has not: ${row}`);
      }),
    ),
  );
  for (const [name] of [...known].filter(([, versions]) => versions.length === 0)) {
    const extension = Object.keys(EXTENSIONS).find((each) => name.startsWith(each));
    assert.ok(extension, `${name} is of an extension that nobody heard of`);
    t.diagnostic(`  -   ${name}: an extension: ${EXTENSIONS[extension]}`);
  }
  t.diagnostic("what the suite calls otherwise:");
  const names = Object.entries({ ...TOOLS, ...PROMPTS, ...RESOURCES });
  for (const [name, own] of names) t.diagnostic(`  ${name} is ${own.name ?? own}`);
  assert.deepEqual([...Object.keys(NOT_HERE), ...Object.keys(NOT_CHECKED)].filter((key) => !used.has(key)), []);
});
