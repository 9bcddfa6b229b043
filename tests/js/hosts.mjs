// Installs the packed packages with each package manager, from a registry on this machine that has no other packages, and lets
// each runtime import, require and compile them, and stream an answer of the real model. Takes about ten minutes; the managers
// and runtimes come from the package registries.
//
// usage: node tests/js/hosts.mjs [MANAGER...]       (after sh packaging/setup.sh; prints the table of docs/embedding.md)
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { root } from "./support/helper.mjs";
import { fetchManagers, managerCommand } from "./support/managers.mjs";
import { fetchNode, NODES } from "./support/node.mjs";
import { packAll, serveTarballs } from "./support/registry.mjs";

const run = promisify(execFile);
/** The first answer; at temperature 0 all others must be the same. */
let expected;
const work = mkdtempSync(join(tmpdir(), "fm-hosts-"));

/** How each manager installs, in a project whose package.json names the package; REGISTRY is replaced. */
const MANAGERS = {
  npm: () => ["npm", "install", "--no-audit", "--no-fund", "--no-update-notifier", "--registry=REGISTRY"],
  "pnpm 10": () => [...managerCommand("pnpm-10", "pnpm"), "install", "--registry=REGISTRY"],
  "pnpm 12": () => [...managerCommand("pnpm-12", "pnpm"), "install", "--registry=REGISTRY"],
  "Yarn 1": () => [...managerCommand("yarn-1", "yarn"), "install", "--registry", "REGISTRY", "--non-interactive"],
  "Yarn 4": () => [...managerCommand("@yarnpkg/cli-dist", "yarn"), "install"],
  "Yarn 4, PnP": () => [...managerCommand("@yarnpkg/cli-dist", "yarn"), "install"],
  Bun: () => [...managerCommand("bun", "bun"), "install", "--registry=REGISTRY"],
  Deno: () => [...managerCommand("deno", "deno"), "install"],
};

const BODY = `
(async () => {
  const client = createClient({ modelsDir: ${JSON.stringify(join(root, "build", "models"))} });
  let text = "";
  const body = { input: "What is the capital of France?", temperature: 0, max_output_tokens: 12 };
  for await (const event of client.responses.stream(body)) if (event.type === "response.output_text.delta") text += event.delta;
  await client.close();
  console.log(text);
})();
`;
const FILES = {
  "import.mjs": `import { createClient } from "fm-proxy";${BODY}`,
  "require.cjs": `const { createClient } = require("fm-proxy");${BODY}`,
  "types.mts": `import { createClient, type ResponseObject } from "fm-proxy";
export const ask = async (): Promise<ResponseObject> => createClient().responses.create({ input: "x" });\n`,
};

async function main() {
  const wanted = process.argv.slice(2);
  const out = join(work, "packed");
  const tarballs = await packAll(out);
  const cleanups = [];
  const registry = await serveTarballs({ after: (it) => cleanups.push(it) }, tarballs);
  const nodes = {};
  for (const version of NODES) nodes[version] = await fetchNode(version);
  await fetchManagers();
  const columns = [...NODES.map((version) => `Node ${version}`), "own runtime", "TypeScript node16", "TypeScript bundler"];
  console.log(`| Installed by | ${columns.join(" | ")} |\n|---|${"---|".repeat(columns.length)}`);
  let failed = 0;
  for (const name of Object.keys(MANAGERS)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    const cells = await row(name, registry, nodes).catch((error) => [broken(error), ...columns.slice(1).map(() => "")]);
    failed += cells.filter((cell) => cell.startsWith("FAILED")).length;
    console.log(`| ${name} | ${cells.join(" | ")} |`);
  }
  cleanups.forEach((cleanup) => cleanup());
  rmSync(work, { recursive: true, force: true });
  process.exitCode = failed === 0 ? 0 : 1;
}

async function row(name, registry, nodes) {
  const project = join(work, name.replace(/\W+/g, "-"));
  mkdirSync(project);
  const manifest = { name: "host", private: true, dependencies: { "fm-proxy": "*" } };
  writeFileSync(join(project, "package.json"), JSON.stringify(manifest));
  for (const [file, text] of Object.entries(FILES)) writeFileSync(join(project, file), text);
  configure(name, project, registry);
  const [command, ...words] = MANAGERS[name]().map((word) => word.replace("REGISTRY", registry));
  const caches = { XDG_CACHE_HOME: join(project, ".cache"), npm_config_cache: join(project, ".npm") };
  const env = { ...process.env, HOME: project, ...caches, CI: "1" };
  await run(command, words, { cwd: project, env });
  const pnp = name.endsWith("PnP") ? ["--require", "./.pnp.cjs", "--loader", "./.pnp.loader.mjs"] : [];
  const cells = [];
  for (const version of NODES) cells.push(await answers(nodes[version], pnp, project));
  cells.push(name === "Bun" ? await answers(...runtime("bun"), project) : "");
  if (name === "Deno") cells[NODES.length] = await answers(...runtime("deno", "run", "-A"), project);
  for (const options of [["--module", "node16"], ["--module", "esnext", "--moduleResolution", "bundler"]]) {
    cells.push(pnp.length > 0 ? "" : await compiles(project, options));
  }
  return cells;
}

/** The command for a manager's program that runs JavaScript itself. */
function runtime(name, ...words) {
  const [program, ...more] = managerCommand(name, name);
  return [program, [...more, ...words]];
}

/** Writes the settings for a manager that can't get the registry by an option. */
function configure(name, project, registry) {
  writeFileSync(join(project, ".npmrc"), `registry=${registry}\n`);
  if (!name.startsWith("Yarn 4")) return;
  const linker = name.endsWith("PnP") ? "pnp" : "node-modules";
  const lines = [
    `npmRegistryServer: "${registry}"`,
    'unsafeHttpWhitelist: ["127.0.0.1"]',
    `nodeLinker: ${linker}`,
    "enableTelemetry: false",
    "enableImmutableInstalls: false",
  ];
  writeFileSync(join(project, ".yarnrc.yml"), `${lines.join("\n")}\n`);
}

async function answers(program, options, project) {
  const env = { PATH: process.env.PATH, HOME: project };
  try {
    for (const file of ["import.mjs", "require.cjs"]) {
      const { stdout } = await run(program, [...options, file], { cwd: project, env, timeout: 300_000 });
      expected ??= stdout;
      if (stdout.length < 10 || stdout !== expected) return `FAILED: ${file} answered ${JSON.stringify(stdout.slice(0, 80))}`;
    }
    return "yes";
  } catch (error) {
    return broken(error);
  }
}

async function compiles(project, options) {
  const tsc = createRequire(join(root, "js-shim", "package.json")).resolve("typescript/bin/tsc");
  const strict = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--target", "es2022", "--typeRoots", "none"];
  return run(process.execPath, [tsc, ...strict, ...options, "types.mts"], { cwd: project }).then(() => "yes", broken);
}

function broken(error) {
  const text = `${error.stdout ?? ""}${error.stderr ?? ""}${error.message}`;
  return `FAILED: ${text.replace(/\s+/g, " ").replaceAll("|", "/").slice(0, 400)}`;
}

await main();
