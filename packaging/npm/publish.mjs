// Publishes packages to a registry: first the platforms' packages, and the main package when the registry has those.
import { execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

/** How long a package may take until the registry has it: 60 times 5 s. */
const TRIES = 60;
const PAUSE_MS = 5000;

/** The options of `npm publish`. A version such as 2.0.0-rc.1 is only for users who ask for it. */
export function publishOptions(version) {
  return ["--access", "public", ...(version.includes("-") ? ["--tag", "next"] : [])];
}

/** Publishes the tarballs by npm in the environment `env`. The last tarball is the main package's. */
export async function publishAll(paths, options, env = process.env) {
  const platforms = paths.slice(0, -1);
  for (const path of platforms) await publish(path, options, env);
  for (const path of platforms) await waitFor(manifestOf(path), env);
  await publish(paths.at(-1), options, env);
}

/** npm may ask for a second factor. */
async function publish(path, options, env) {
  const npm = spawn("npm", ["publish", ...options, path], { env, stdio: "inherit" });
  const [status] = await once(npm, "exit");
  if (status !== 0) throw new Error(`npm publish of ${path} failed; see above`);
}

/** Waits for the platforms' packages. Some package managers fail if an optional package does not exist yet. */
async function waitFor({ name, version }, env) {
  for (let tries = 0; tries < TRIES; tries++) {
    const view = promisify(execFile)("npm", ["view", `${name}@${version}`, "version"], { env });
    const told = await view.catch(() => ({ stdout: "" }));
    if (told.stdout.trim() === version) return;
    await sleep(PAUSE_MS);
  }
  throw new Error(`the registry does not have ${name} ${version} yet. When it does, publish the main package by hand`);
}

export function manifestOf(path) {
  return JSON.parse(execFileSync("tar", ["-xzOf", path, "package/package.json"], { encoding: "utf8" }));
}
