// The helper program itself, for hosts that find it by the name `fm-proxy`.
import { spawn } from "node:child_process";
import { constants } from "node:os";
import { findHelper } from "../index.js";
import { argumentOf, chosenFor, modelsFor, spawnError, withModelFile } from "../later.js";
import { modelOption } from "./models.js";
import type { Arguments } from "./parse.js";

/** Runs the helper with these arguments, in this process's place; resolves to its exit status. */
export async function runHelper(args: readonly string[]): Promise<number> {
  const location = await findHelper();
  // Like a client, it uses the user's models. For the helper, an option counts more than a variable.
  const option = (name: string): string | undefined => (args.includes(name) ? args[args.indexOf(name) + 1] : undefined);
  const [engine, modelsDir] = [option("--engine"), option("--models-dir")];
  const env = { ...process.env };
  const folder = await modelsFor(location, env);
  const { model, aliases } = await withModelFile({ engine, modelsDir }, env);
  const chosen = model ?? (modelsDir === undefined ? await chosenFor(location, engine, env) : null);
  if (folder !== null) env["FM_PROXY_MODELS_DIR"] = folder;
  if (chosen !== null) env["FM_PROXY_MODEL"] = chosen;
  if (aliases !== undefined) env["FM_PROXY_ALIASES"] = argumentOf(aliases);
  const child = spawn(location.executablePath, args, { stdio: "inherit", env });
  // A terminal sends SIGINT to this process and to the helper; this process waits for the helper's end.
  process.on("SIGINT", () => {});
  for (const signal of ["SIGTERM", "SIGHUP"] as const) process.on(signal, () => child.pid !== undefined && child.kill(signal));
  return new Promise((resolve, reject) => {
    const { executablePath: path, origin } = location;
    child.on("error", (error) => reject(spawnError(error, { path, origin, cwd: undefined })));
    child.on("exit", (code, signal) => resolve(code ?? 128 + constants.signals[signal ?? "SIGKILL"]));
  });
}

/** `fm-proxy bench`: the helper measures itself. */
export async function bench({ options }: Arguments): Promise<number> {
  const model = await modelOption(options["model"] as string | undefined);
  const named = model === undefined ? [] : ["--model", model];
  return runHelper(["bench", ...named, ...(options["json"] === true ? ["--json"] : [])]);
}
