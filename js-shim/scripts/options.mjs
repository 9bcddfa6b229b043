// Makes src/options.ts from the helper's own list of its options. With --check it only compares.
// usage: node scripts/options.mjs [--check] [PATH_OF_FM_PROXY]
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const file = join(root, "src/options.ts");

/** The name of an option in createClient: `models-dir` becomes `modelsDir`. */
const camelCase = (name) => name.replace(/-(.)/g, (_, letter) => letter.toUpperCase());

/** The text of src/options.ts for a list of options, as fm-proxy --list-options prints it. */
function optionsModule(list) {
  const row = ({ name, variable }, ...more) => {
    const option = more[0] === false ? name.slice("no-".length) : name;
    return `  [${[camelCase(option), `--${name}`, variable, ...more].map((value) => JSON.stringify(value)).join(", ")}],\n`;
  };
  const values = list.filter(({ argument }) => argument !== null).map((option) => row(option, option.argument));
  const switches = list
    .filter(({ argument }) => argument === null)
    .map((option) => row(option, !option.name.startsWith("no-")));
  return (
    "// Made by scripts/options.mjs of what fm-proxy --list-options prints: change helper/front/options.c and run that.\n\n" +
    "/** Options of createClient that become arguments of the helper, the variable of each, and what the value is. */\n" +
    `export const VALUES = [\n${values.join("")}] as const;\n\n` +
    "/** The same for those without a value, and with which value of the option they are given. */\n" +
    `export const SWITCHES = [\n${switches.join("")}] as const;\n`
  );
}

const moduleOf = (helper) => optionsModule(JSON.parse(execFileSync(helper, ["--list-options"], { encoding: "utf8" })));

/** Whether src/options.ts matches the options of this helper. */
export const isUpToDate = (helper) => readFileSync(file, "utf8") === moduleOf(helper);

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const args = process.argv.slice(2).filter((arg) => arg !== "--check");
  const helper = args[0] ?? join(root, "../build/bin/fm-proxy");
  if (process.argv.includes("--check")) {
    process.exitCode = isUpToDate(helper) ? 0 : 1;
  } else {
    writeFileSync(file, moduleOf(helper));
  }
}
