// The folder of fm-proxy's own models.
import { homedir } from "node:os";
import { join, resolve, sep } from "node:path";

/** The text for users who have no model. */
export const NO_MODEL = "There is no model yet: npx fm-proxy models pull qwen3-0.6b";

/** The part of a host's environment that says where files are. */
export type Environment = Record<string, string | undefined>;

/** The user's home folder. If the system does not know the user, it is the root folder, where such a user can't write. */
export function userHome(): string {
  try {
    return homedir();
  } catch {
    return sep;
  }
}

/**
 * The absolute path of the folder that `fm-proxy models pull` fills. A client uses this folder unless its options name another
 * one.
 */
export function modelsFolder(env: Environment = process.env, home = userHome(), platform: string = process.platform): string {
  const named = env["FM_PROXY_MODELS_DIR"];
  if (named !== undefined && named !== "") return resolve(named);
  if (platform === "darwin") return join(home, "Library", "Application Support", "fm-proxy", "models");
  if (platform === "win32") return join(env["LOCALAPPDATA"] || join(home, "AppData", "Local"), "fm-proxy", "models");
  return join(env["XDG_DATA_HOME"] || join(home, ".local", "share"), "fm-proxy", "models");
}
