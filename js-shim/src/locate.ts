// Finds the fm-proxy program.
import * as fs from "node:fs";
import Module from "node:module";
import { delimiter, dirname, isAbsolute, join, normalize, resolve } from "node:path";
import { FmError } from "./errors.js";
import { here, packageRoot, siblings } from "./here.js";
import { programFile } from "./program.js";

const NAME = process.platform === "win32" ? "fm-proxy.exe" : "fm-proxy";
/** The app bundle of macOS: a folder that contains the program. */
const APP = "fm-proxy.app";
const IN_APP = join("Contents", "MacOS", "fm-proxy");

/** The packages of all platforms. */
const PACKAGES = ["linux-x64", "linux-arm64", "darwin-arm64", "win32-x64"].map((platform) => `@fm-proxy/${platform}`);

/** The platforms that have a library for GPUs, and their names in the library's packages. */
const GPU_PLATFORMS: Readonly<Record<string, string>> = { "linux-x64": "linux-x64-vulkan" };

/** A path that may not be read (`node --permission`) counts as absent. */
function existsSync(path: string): boolean {
  try {
    return fs.existsSync(path);
  } catch {
    return false;
  }
}

/** The origin of a helper that was built in the clone which this package lies in. */
export const OWN_BUILD = "this repository's build";

/** The possible reason if everything was installed, but a package is missing. */
export const LEFT_OUT =
  "If it is there where the application was made, what bundles or deploys it has left it out (README of fm-proxy, Bundlers).";

/** A helper that was found. */
export interface HelperLocation {
  /** A program, or an app bundle of macOS. */
  type: "cli" | "app-bundle";
  /** The program that is started. */
  executablePath: string;
  /** The bundle that contains the program. */
  appBundlePath?: string;
  /** The platform's package that contains the program and all its files; absent if a path named the program. */
  packagePath?: string;
  /** If the program is a copy of a program that a path named: that path. */
  copiedFrom?: string;
  /** Who named the program, in words for users. */
  origin: string;
}

/** The places where a helper may be. All members except `option` have a default; tests give their own values. */
export interface LocateOptions {
  /** The `helperPath` option. */
  option: string | undefined;
  /** The host's environment. */
  env?: Record<string, string | undefined>;
  /** The PATH of the helper's environment, if that environment has its own. */
  path?: string | undefined;
  /** Resolves a module name to a file, or throws. */
  resolve?: (name: string) => string;
  /** The root of this package. */
  packageRoot?: string;
  /** Folders of the host, beside which its packager may have put the platform's package. */
  hostFolders?: readonly string[];
}

/**
 * Finds the helper. It tries the option, then `FM_PROXY_PATH`, then the platform's package where Node finds it, then that package
 * beside the host's own files, then the build folder of the repository that contains this package. The first two are used without
 * a check; the start reports if the file does not exist.
 *
 * @throws FmError (SPAWN_FAILED) that lists every place that was looked at.
 */
export function locateHelper(options: LocateOptions): HelperLocation {
  const { option, env = process.env, path = env["PATH"] } = options;
  if (option !== undefined && option !== "") return named(option, "the option helperPath", path);
  const fromEnv = env["FM_PROXY_PATH"];
  if (fromEnv !== undefined && fromEnv !== "") return named(fromEnv, "the variable FM_PROXY_PATH", path);
  const name = platformPackage();
  const tried = ["the option helperPath", "the variable FM_PROXY_PATH", `the package ${name}`];
  const installed = resolvePackage(name, options.resolve ?? resolverFor(join(here, "locate.js")));
  if (installed !== null) return inPackage(installed, `the package ${name}`);
  const sibling = siblings[`${process.platform}-${process.arch}`];
  if (sibling !== undefined && existsSync(join(sibling, "package.json"))) {
    return inPackage(normalize(sibling), `the package ${name}`);
  }
  for (const folder of besideHost(name, options.hostFolders ?? hostFolders())) {
    if (existsSync(join(folder, "package.json"))) return inPackage(folder, `the package ${name} in ${dirname(folder)}`);
    tried.push(folder);
  }
  const repository = join(options.packageRoot ?? packageRoot, "..");
  const built = join(repository, "build", "bin", NAME);
  // A `build/bin` in another project is not ours.
  if (existsSync(join(repository, "CMakeLists.txt")) && existsSync(join(repository, "protocol", "PROTOCOL.md"))) {
    if (existsSync(built)) return { type: "cli", executablePath: built, origin: OWN_BUILD };
    tried.push(built);
  }
  const how = tried.includes(built) ? `Build it: run \`sh packaging/setup.sh\` in ${repository}.` : howToGetOne(name);
  throw new FmError("SPAWN_FAILED", `No fm-proxy helper was found. ${how} Looked at: ${tried.join(", ")}.`, {
    tried,
    // An Intel Mac has neither Apple's model nor a package.
    ...(process.platform === "darwin" && process.arch !== "arm64" ? { reasonCode: "UNSUPPORTED_HARDWARE" } : {}),
  });
}

function howToGetOne(name: string): string {
  const install = `Install the package ${name}, or name the program with the option helperPath.`;
  if (PACKAGES.includes(name)) return `${install} ${LEFT_OUT}${hiddenBy(name)}`;
  const build = process.platform === "darwin" ? "On Apple silicon, use Node for arm64; on an Intel Mac, build" : "Build";
  return `There is no package ${name}. ${build} the program, and name it with the option helperPath.`;
}

/** A sentence about what may hide an installed package, with a space before it; "": nothing is known. */
function hiddenBy(name: string): string {
  // `process.permission` is absent without `node --permission`.
  const { permission } = process as { permission?: unknown };
  if (permission === undefined) return "";
  return ` Node's permission model hides files: start Node with --allow-fs-read for the folder of ${name}.`;
}

/** The optional package that carries the helper for this platform. */
export function platformPackage(): string {
  return `@fm-proxy/${process.platform}-${process.arch}`;
}

/** Where the GPU's library may be. Tests give their own. */
export type GpuOptions = Pick<LocateOptions, "resolve" | "hostFolders">;

/**
 * The folder of `libggml-vulkan.so` in the package that users install for their GPU. Node looks for the package from here and
 * from the host's main program; if that fails, it is looked for beside the host's own files. The engine checks whether the
 * library fits. Null: the package is not installed, or there is none for this platform.
 */
export function locateGpuLibrary(options: GpuOptions = {}): string | null {
  const platform = GPU_PLATFORMS[`${process.platform}-${process.arch}`];
  if (platform === undefined) return null;
  const name = `@node-llama-cpp/${platform}`;
  const main = process.argv[1];
  const from = [join(here, "locate.js"), ...(main === undefined ? [] : [main])];
  const resolvers = options.resolve === undefined ? from.map(resolverFor) : [options.resolve];
  const installed = resolvers.map((resolve) => resolveMain(name, resolve));
  const beside = besideHost(name, options.hostFolders ?? hostFolders());
  const folders = [...installed.filter((found) => found !== null), ...beside];
  return folders.map((folder) => join(folder, "bins", platform)).find((folder) => existsSync(folder)) ?? null;
}

/** A program inside an Electron archive cannot be run; packagers put it beside the archive, under the same path. */
export function unpacked(path: string): string {
  const beside = path.replace(/\.asar(?=[\\/])/, ".asar.unpacked");
  return beside !== path && existsSync(beside) ? beside : path;
}

/** Looks up a name without a folder in PATH. On Windows, and if the name is not found, the system does the look-up. */
function named(given: string, origin: string, folders = ""): HelperLocation {
  const path = /[\\/]/.test(given) ? resolve(given) : (inFolders(given, folders.split(delimiter)) ?? given);
  if (!path.endsWith(".app")) return { type: "cli", executablePath: path, origin };
  return { type: "app-bundle", executablePath: join(path, IN_APP), appBundlePath: path, origin };
}

/** The first file that can be run, as the system chooses it. Otherwise the first file, whose permission was lost. */
function inFolders(name: string, folders: readonly string[]): string | undefined {
  if (process.platform === "win32") return undefined;
  const paths = folders.filter((folder) => isAbsolute(folder)).map((folder) => join(folder, name));
  const files = paths.filter((path) => existsSync(path) && fs.statSync(path).isFile());
  return files.find(isExecutable) ?? files[0];
}

function isExecutable(path: string): boolean {
  try {
    fs.accessSync(path, fs.constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** The helper of a platform's package. */
export function inPackage(packagePath: string, origin: string): HelperLocation {
  const appBundlePath = join(packagePath, APP);
  if (existsSync(appBundlePath)) {
    return { type: "app-bundle", executablePath: join(appBundlePath, IN_APP), appBundlePath, packagePath, origin };
  }
  return { type: "cli", executablePath: join(packagePath, "bin", NAME), packagePath, origin };
}

/** Resolves modules from a file; also throws if the file's path is invalid. Webpack would replace an imported `createRequire`. */
const resolverFor = (file: string) => (name: string) => Module.createRequire(file).resolve(name);

function resolvePackage(name: string, resolve: (name: string) => string): string | null {
  try {
    return unpacked(dirname(resolve(`${name}/package.json`)));
  } catch {
    return null;
  }
}

/** The folder of a package that exports only its `dist/index.js`. */
function resolveMain(name: string, resolve: (name: string) => string): string | null {
  try {
    return unpacked(dirname(dirname(resolve(name))));
  } catch {
    return null;
  }
}

/** The folders where packagers put a package that a bundled host needs. */
function besideHost(name: string, folders: readonly string[]): string[] {
  const within = folders.flatMap((folder) => [
    join(folder, name),
    join(folder, "node_modules", name),
    join(folder, "app.asar.unpacked", "node_modules", name),
  ]);
  return [...new Set(within)];
}

/** The folders of this file, of the host's main program, and of Electron's resources. In a bundle, this file is the host's. */
function hostFolders(): string[] {
  const main = programFile();
  const resources = (process as { resourcesPath?: string }).resourcesPath;
  return [here, ...(main === undefined ? [] : [dirname(main)]), ...(resources === undefined ? [] : [resources])];
}
