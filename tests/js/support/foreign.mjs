// Tests a platform's package on a machine of another kind: it is packed, installed by npm as on that platform, and found. An
// emulator runs its programs. The helper answers a request, streams an answer of the real model, makes an answer that follows a
// schema, and ends.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmodSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { promisify } from "node:util";
import { alive, deltas, drain, root, temporaryFolder } from "./helper.mjs";
import { packAll, serveTarballs } from "./registry.mjs";

const run = promisify(execFile);
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
const say = (text) => console.log(`${((performance.now() - begun) / 1000).toFixed(1).padStart(6)} s  ${text}`);

/**
 * Tests the package of `platform` (`{ os, cpu, libc }`, with npm's names). `runner` is the command that runs its `programs`.
 * Prints the results. Returns the engine's sandbox, as capabilities.get reported it.
 */
export async function tryPackage({ platform, runner, programs }) {
  const cleanups = [];
  const scope = { after: (cleanup) => cleanups.unshift(cleanup) };
  try {
    return await use(scope, await install(scope, platform, runner, programs), platform);
  } finally {
    for (const cleanup of cleanups) await cleanup();
  }
}

async function use(scope, project, { os, cpu }) {
  // The package of js-shim asks Node for the platform.
  Object.defineProperty(process, "platform", { value: os });
  Object.defineProperty(process, "arch", { value: cpu });
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
  await client.close();
  if (os === "linux") assert.ok(!alive(pid));
  return engine.sandbox;
}

/** A project with the packages, installed by npm as on that platform. Only the programs are started differently. */
async function install(scope, platform, runner, programs) {
  const out = join(temporaryFolder(scope), "npm");
  const tarballs = await packAll(out);
  const project = temporaryFolder(scope);
  writeFileSync(join(project, "package.json"), "{}");
  const registry = await serveTarballs(scope, tarballs);
  const machine = Object.entries(platform).map(([key, value]) => `--${key}=${value}`);
  const options = [`--registry=${registry}`, `--cache=${join(project, ".npm")}`, "--no-audit", "--no-fund"];
  await run("npm", ["install", "fm-proxy", ...machine, ...options], { cwd: project });
  const platforms = join(project, "node_modules", "@fm-proxy");
  const name = `${platform.os}-${platform.cpu}`;
  assert.deepEqual(readdirSync(platforms), [name]);
  for (const program of programs) startBy(runner, join(platforms, name, "bin", program));
  say(`packed, and installed by npm as on ${name}`);
  return project;
}

/** Moves a program to another name, and puts a script in its place that starts it by `runner`. */
function startBy(runner, path) {
  const moved = path.replace(/(\.exe)?$/, ".moved$1");
  renameSync(path, moved);
  writeFileSync(path, `#!/bin/sh\nexec ${runner} '${moved}' "$@"\n`);
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
