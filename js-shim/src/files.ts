// The functions for model files that hosts and the command line use. The first call loads their code.
import type { CatalogModel } from "./catalog.js";
import type { FoundModel } from "./model-files.js";
import type { Environment } from "./models-folder.js";
import type { PulledModel, PullOptions } from "./pull.js";

/** The models of this machine, fm-proxy's own first. A folder that can't be read has none. */
export async function findModels(env?: Environment, home?: string): Promise<FoundModel[]> {
  return (await import("./later.js")).findModels(env, home);
}

/**
 * Downloads a model. `reference` is a short name that `models search` of the command line lists, such as `qwen3-0.6b`; a model
 * on Hugging Face (or on the server that the variable `HF_ENDPOINT` names; `HF_TOKEN` is sent there): `OWNER/NAME`,
 * `OWNER/NAME:QUANT` or `OWNER/NAME/FILE.gguf`, also with `hf:` in front, or a link to its page or file; or the https URL of a
 * GGUF file elsewhere. Without QUANT it is Q4_K_M, or the only model that there is. From Hugging Face all files of a split model
 * come, and its projector, if it sees.
 *
 * @throws FmError: INVALID_REQUEST for an invalid reference, or if several models fit, which `detail` lists; NOT_FOUND;
 *   UNAVAILABLE for everything that a later try may get over; the reason of the signal
 */
export async function pullModel(reference: string, options: PullOptions = {}): Promise<PulledModel> {
  return (await import("./later.js")).pullModel(reference, options);
}

/** The models that `pullModel` knows by short names, or those with a word in their name, kind or use. Asks no server. */
export async function searchModels(word = ""): Promise<readonly CatalogModel[]> {
  return (await import("./later.js")).searchCatalog(word);
}

/** Compares a file with what was downloaded; `unknown`: another program brought it. */
export async function verifyModel(path: string): Promise<{ state: "ok" | "damaged" | "unknown"; sha256: string }> {
  return (await import("./later.js")).verifyModel(path);
}
