// Where the fm-proxy program is.
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, sep } from "node:path";
import { FmError } from "./errors.js";
import { here } from "./here.js";

const NAME = process.platform === "win32" ? "fm-proxy.exe" : "fm-proxy";

/** Where a helper may be. Everything but `option` has a default; tests give their own. */
export interface LocateOptions {
  /** The `helperPath` option. */
  option: string | undefined;
  /** The host's environment. */
  env?: NodeJS.ProcessEnv;
  /** Resolves a module name to a file, or throws. */
  resolve?: (name: string) => string;
  /** The root of this package. */
  packageRoot?: string;
}

/**
 * Finds the helper: the option, then `FM_PROXY_PATH`, then the platform's own package, then the build folder of the
 * repository that this package lies in. The first two are taken at their word; whether they exist, the start will tell.
 *
 * @throws FmError (SPAWN_FAILED) that lists every place that was looked at.
 */
export function locateHelper(options: LocateOptions): string {
  return findHelper(options).path;
}

/** The same, and who said so, as a user knows it. */
export function findHelper(options: LocateOptions): { path: string; origin: string } {
  const { option, env = process.env } = options;
  if (option !== undefined && option !== "") return { path: option, origin: "the option helperPath" };
  const fromEnv = env["FM_PROXY_PATH"];
  if (fromEnv !== undefined && fromEnv !== "") return { path: fromEnv, origin: "the variable FM_PROXY_PATH" };
  const name = platformPackage();
  const fromPackage = resolvePackage(name, options.resolve ?? createRequire(join(here, "locate.js")).resolve);
  if (fromPackage !== null) return { path: fromPackage, origin: `the package ${name}` };
  const built = join(options.packageRoot ?? join(here, "..", ".."), "..", "build", "bin", NAME);
  if (existsSync(built)) return { path: built, origin: "this repository's build" };
  throw new FmError(
    "SPAWN_FAILED",
    `No fm-proxy helper was found: the option helperPath and FM_PROXY_PATH are not set, the package ${name} is not ` +
      `installed, and ${built} does not exist.`,
    { tried: ["the option helperPath", "the variable FM_PROXY_PATH", `the package ${name}`, built] },
  );
}

/** The optional package that carries the helper for this platform. */
export function platformPackage(): string {
  return `@fm-proxy/${process.platform}-${process.arch}`;
}

function resolvePackage(name: string, resolve: (name: string) => string): string | null {
  try {
    return unpacked(join(dirname(resolve(`${name}/package.json`)), "bin", NAME));
  } catch {
    return null;
  }
}

/** A program inside an Electron archive cannot be run; packagers put it beside the archive. */
export function unpacked(path: string): string {
  return path
    .replace(/app\.asar(?=[\\/])/, `app.asar.unpacked`)
    .split("/")
    .join(sep);
}
