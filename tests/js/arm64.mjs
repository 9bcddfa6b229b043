// The package for Linux on arm64, on this machine: packed, installed by npm as on arm64, found, and run by qemu-user, which
// translates each instruction. The helper answers, streams an answer of the real model, keeps one to a schema, and ends.
//
// usage: node tests/js/arm64.mjs       (after sh packaging/setup.sh --arm64; takes some minutes)
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmodSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { promisify } from "node:util";
import { alive, deltas, drain, root, temporaryFolder } from "./support/helper.mjs";
import { packAll, serveTarballs } from "./support/registry.mjs";

const run = promisify(execFile);
const QEMU = "qemu-aarch64";
const MINUTE = 60_000;
const BODY = {
  input: "What is the capital of France?",
  temperature: 0,
  max_output_tokens: 12,
  fm: { timeout_ms: 30 * MINUTE, first_token_timeout_ms: 20 * MINUTE, no_progress_timeout_ms: 10 * MINUTE },
};
const SCHEMA = {
  type: "object",
  properties: { city: { enum: ["Paris", "Rome"] }, big: { type: "boolean" } },
  required: ["city", "big"],
  additionalProperties: false,
};

const begun = performance.now();
const cleanups = [];
const scope = { after: (cleanup) => cleanups.unshift(cleanup) };
const say = (text) => console.log(`${((performance.now() - begun) / 1000).toFixed(1).padStart(6)} s  ${text}`);

async function main() {
  const project = await install();
  // The package of js-shim asks Node for the machine that it runs on.
  Object.defineProperty(process, "arch", { value: "arm64" });
  const { createClient } = createRequire(join(project, "host.cjs"))("fm-proxy");
  const env = { FM_ENGINE_LLAMA_THREADS: "1" };
  const client = createClient({ modelsDir: join(root, "build", "models"), env, handshakeTimeoutMs: MINUTE });
  scope.after(() => client.close());
  const { version, pid } = await client.health.ping();
  say(`health.ping: version ${version}`);
  await streams(client);
  await fitsSchema(client);
  const { engine, features } = await client.capabilities.get();
  assert.equal(features.structured_output, true);
  say(`capabilities.get: engine ${engine.name}, sandbox ${JSON.stringify(engine.sandbox)}`);
  tellUnseen(engine.sandbox);
  await client.close();
  assert.ok(!alive(pid));
}

/** A project with the packages, as npm installs them on arm64. Only the programs are started in another way. */
async function install() {
  const out = join(temporaryFolder(scope), "npm");
  const tarballs = await packAll(out);
  const project = temporaryFolder(scope);
  writeFileSync(join(project, "package.json"), "{}");
  const registry = await serveTarballs(scope, tarballs);
  const machine = ["--os=linux", "--cpu=arm64", "--libc=glibc"];
  const options = [`--registry=${registry}`, `--cache=${join(project, ".npm")}`, "--no-audit", "--no-fund"];
  await run("npm", ["install", "fm-proxy", ...machine, ...options], { cwd: project });
  const platforms = join(project, "node_modules", "@fm-proxy");
  assert.deepEqual(readdirSync(platforms), ["linux-arm64"]);
  const bin = join(platforms, "linux-arm64", "bin");
  for (const name of ["fm-proxy", "fm-engine-llama"]) startByQemu(join(bin, name));
  say("packed, and installed by npm as on arm64");
  return project;
}

/** Puts a script in a program's place, and the program beside it. */
function startByQemu(path) {
  renameSync(path, `${path}.arm64`);
  writeFileSync(path, `#!/bin/sh\nexec ${QEMU} '${path}.arm64' "$@"\n`);
  chmodSync(path, 0o755);
}

async function streams(client) {
  const { events, error } = await drain(client.responses.stream(BODY));
  assert.equal(error, null);
  const text = deltas(events);
  assert.ok(text.length > 10, text);
  assert.ok(events.filter(({ type }) => type === "response.output_text.delta").length > 3);
  say(`a streamed answer: ${JSON.stringify(text)}`);
}

async function fitsSchema(client) {
  const format = { type: "json_schema", name: "capital", schema: SCHEMA, strict: true };
  const { output_text } = await client.responses.create({ ...BODY, max_output_tokens: 60, text: { format } });
  const value = JSON.parse(output_text);
  assert.deepEqual(Object.keys(value), ["city", "big"]);
  assert.ok(SCHEMA.properties.city.enum.includes(value.city) && typeof value.big === "boolean", output_text);
  say(`an answer to a schema: ${output_text}`);
}

/** qemu-user passes few of the sandbox's calls on. */
function tellUnseen(sandbox) {
  const names = ["no_new_privs", "seccomp", "landlock"].filter((name) => !sandbox[name]);
  if (names.length > 0) console.log(`NOT TESTED: ${names.join(", ")}: qemu-user lacks these calls. They need an arm64 machine.`);
}

try {
  await main();
  console.log("linux-arm64 ok");
} finally {
  for (const cleanup of cleanups) await cleanup();
}
