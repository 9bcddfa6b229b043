// Every program and command that the documents show users of the npm package, unchanged: in an application made by `npm init`,
// with the package linked and packed, under three versions of Node. The programs are compiled by tsc in strict mode, and the
// result runs with the real model. Takes about fifteen minutes; SDKs and compiler come from the npm registry.
//
// usage: node tests/js/documents.mjs [NODE...]       (after sh packaging/setup.sh; NODE is a version such as 22.20.0)
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { blocksOf, programsOf, STRICT, USER_PAGES } from "./support/documents.mjs";
import { root } from "./support/helper.mjs";
import { fetchNode, NODES } from "./support/node.mjs";

const run = promisify(execFile);
const CLONE = "PATH_OF_THE_CLONE";
const work = mkdtempSync(join(tmpdir(), "fm-documents-"));
/** Commands that can't run here, and why. */
const SKIPPED = { "fm-proxy models pull": "it needs huggingface.co" };

/** The commands of the package's README, by section. */
function commands() {
  const [install, first] = blocksOf("js-shim/README.md").filter(({ language }) => language === "sh");
  const [linked, packed] = install.code.trim().split("\n\n");
  return { linked: linked.split("\n"), packed: packed.split("\n"), first: first.code.trim().split("\n") };
}

async function main() {
  const wanted = process.argv.slice(2);
  let failed = 0;
  console.log("| Node | Package | SDKs | Compiled | Ran |\n|---|---|---|---|---|");
  for (const version of wanted.length > 0 ? wanted : NODES) {
    const node = await fetchNode(version);
    for (const how of ["linked", "packed"]) {
      const { faults, ...row } = await tryAll(node, version, how);
      console.log(`| ${version} | ${how} | ${row.sdks} | ${row.compiled} | ${row.ran} |`);
      for (const fault of faults) console.log(`FAILED: Node ${version}, ${how}: ${fault}`);
      failed += faults.length;
    }
  }
  for (const [command, reason] of Object.entries(SKIPPED)) console.log(`not run: ${command} (${reason})`);
  rmSync(work, { recursive: true, force: true });
  process.exitCode = failed === 0 ? 0 : 1;
}

async function tryAll(node, version, how) {
  const app = join(work, `${version}-${how}`);
  const home = join(work, `home-${version}-${how}`);
  // For a packed package, the user has put a model into the folder that the documents name.
  mkdirSync(join(home, ".local", "share", "fm-proxy"), { recursive: true });
  if (how === "packed") cpSync(join(root, "build", "models"), join(home, ".local/share/fm-proxy/models"), { recursive: true });
  mkdirSync(app);
  const user = { PATH: `${dirname(node)}:${process.env.PATH}`, HOME: home };
  const shellOf = (env) => (command) => run("sh", ["-c", command], { cwd: app, env, timeout: 600_000, maxBuffer: 1e8 });
  const shell = shellOf(user);
  // This machine's environment may contain what npm needs to reach the registry.
  const npm = shellOf({ ...process.env, PATH: user.PATH, npm_config_fund: "false", npm_config_audit: "false" });
  const faults = [];
  const attempt = async (what, action) => {
    try {
      await action();
      return 1;
    } catch ({ stdout = "", stderr = "", message }) {
      faults.push(`${what}: ${`${stdout}${stderr}` || message}`);
      return 0;
    }
  };
  const texts = commands();
  await shell("npm init -y");
  for (const command of texts[how]) await attempt(command, () => npm(command.replaceAll(CLONE, root)));
  await npm("npm install openai ai @ai-sdk/openai ws");
  await npm("npm install -D typescript @types/node @types/ws");
  const programs = USER_PAGES.flatMap(programsOf);
  for (const { name, code } of programs) writeFileSync(join(app, `${name}.mts`), code);
  const files = programs.map(({ name }) => `${name}.mts`);
  const compiled = await attempt("tsc", () => shell(`npx tsc ${STRICT.join(" ")} ${files.join(" ")}`));
  let ran = 0;
  for (const { name } of programs) ran += await attempt(name, () => answers(shell, `node ${name}.mjs`));
  const skipped = (command) => Object.keys(SKIPPED).some((each) => command.includes(each));
  const wanted = texts.first.filter((command) => !skipped(command));
  for (const command of wanted) ran += await attempt(command, () => answers(shell, command));
  const installed = (name) => JSON.parse(readFileSync(join(app, "node_modules", name, "package.json"), "utf8")).version;
  const sdks = ["openai", "ai", "@ai-sdk/openai", "typescript"].map((name) => `${name} ${installed(name)}`).join(", ");
  const all = programs.length + wanted.length;
  return { faults, sdks, compiled: compiled ? `${files.length} of ${files.length}` : "FAILED", ran: `${ran} of ${all}` };
}

async function answers(shell, command) {
  const { stdout, stderr } = await shell(command);
  if (stderr !== "" || stdout.trim() === "") throw new Error(`it said ${JSON.stringify(stdout)}, and ${JSON.stringify(stderr)}`);
}

await main();
