// How a client's helper is started: which program, with which arguments.
import type { ClientOptions } from "./client.js";
import { locateGpuLibrary, locateHelper, type HelperLocation } from "./locate.js";
import { modelsFolder } from "./models-folder.js";
import { SWITCHES, VALUES } from "./options.js";
import type { SpawnOptions } from "./process.js";
import { makeRunnable } from "./relocate.js";

/** What `findHelper` finds. */
export async function findRunnable(options: Pick<ClientOptions, "helperPath" | "storageDir">): Promise<HelperLocation> {
  return makeRunnable(locateHelper({ option: options.helperPath }), options.storageDir);
}

/** What a helper with these options is started with, except for who gets its log. `env` is its environment, and is changed. */
export async function spawnOptions(
  options: ClientOptions,
  env: Record<string, string>,
): Promise<Omit<SpawnOptions, "stderr">> {
  const { executablePath, origin, packagePath } = await findRunnable(options);
  const args = ["--stdio"];
  // A package that is updated takes its folder with it, so models lie in the user's.
  if (packagePath !== undefined && options.modelsDir === undefined) args.push("--models-dir", modelsFolder(env));
  const gpuFolder = wantsGpuFolder(options, env) ? locateGpuLibrary() : null;
  if (gpuFolder !== null) args.push("--gpu-dir", gpuFolder);
  const settings: string[] = [];
  for (const [name, flag, variable, given] of SWITCHES) {
    if (options[name] === given) args.push(flag);
    else if (options[name] !== undefined) delete env[variable];
  }
  for (const [name, flag, variable] of VALUES) {
    const value = options[name];
    const fromEnv = env[variable];
    if (value !== undefined) args.push(flag, argumentOf(value));
    if (value !== undefined) settings.push(`${name} ${JSON.stringify(value)}`);
    else if (fromEnv !== undefined && fromEnv !== "") settings.push(`${variable} ${JSON.stringify(fromEnv)}`);
  }
  return { path: executablePath, origin, args, settings, env, cwd: options.cwd };
}

/** Whether nobody has named the folder of the GPU's library, nor wants none. */
function wantsGpuFolder({ gpu, gpuDir }: ClientOptions, env: Record<string, string>): boolean {
  const how = gpu ?? env["FM_PROXY_GPU"];
  return how !== "off" && gpuDir === undefined && (env["FM_PROXY_GPU_DIR"] ?? "") === "";
}

/** A value as the helper reads it; an object is a list NAME=VALUE. */
function argumentOf(value: string | number | Record<string, string>): string {
  if (typeof value !== "object") return String(value);
  return Object.entries(value)
    .map(([name, meaning]) => `${name}=${meaning}`)
    .join(",");
}
