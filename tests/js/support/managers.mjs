// The package managers with which the packages are installed, pinned in tests/js/managers; npm is Node's own.
import { execFile } from "node:child_process";
import { copyFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const folder = fileURLToPath(new URL("../managers", import.meta.url));
const modules = join(folder, "node_modules");
/** Without a network, npm tries even longer. */
const LIMIT_MS = 300_000;

/** Installs the managers, unless they are installed. One that the registry does not have for this machine is left out. */
export async function fetchManagers() {
  const [lock, installed] = [join(folder, "package-lock.json"), join(modules, ".fm-installed")];
  if (existsSync(installed) && readFileSync(lock).equals(readFileSync(installed))) return;
  const words = ["ci", "--prefix", folder, "--no-audit", "--no-fund", "--no-update-notifier"];
  await promisify(execFile)("npm", words, { timeout: LIMIT_MS });
  copyFileSync(lock, installed);
}

/**
 * The words of the command that runs a manager's program `command` with a Node; `alias` is its name in package.json. Throws if
 * the manager is not available, or needs a newer Node than `version`.
 */
export function managerCommand(alias, command, node = process.execPath, version = process.versions.node) {
  const path = join(modules, alias, "package.json");
  if (!existsSync(path)) throw new Error(`the registry does not have ${alias} for this machine`);
  const { bin, engines } = JSON.parse(readFileSync(path, "utf8"));
  const least = /\d+/.exec(engines?.node ?? "")?.[0] ?? "0";
  if (Number(least) > Number.parseInt(version, 10)) throw new Error(`it needs Node ${least}`);
  const program = join(modules, alias, typeof bin === "string" ? bin : bin[command]);
  return readFileSync(program).subarray(0, 2).toString("latin1") === "#!" ? [node, program] : [program];
}
