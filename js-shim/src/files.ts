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
 * Downloads a model. `reference` may be a short name that `models search` of the command line lists, such as `qwen3-0.6b`. It may
 * name a model on Hugging Face: `OWNER/NAME`, `OWNER/NAME:QUANT` or `OWNER/NAME/FILE.gguf`, also with `hf:` in front, or a link
 * to its page or file. It may also be the https URL of a GGUF file elsewhere. If the variable `HF_ENDPOINT` names a server, that
 * server is used instead of Hugging Face. The server gets the token in `HF_TOKEN`. Without QUANT, Q4_K_M is downloaded, or the
 * only model in the repository. From Hugging Face, all files of a split model are downloaded, and the projector of a model that
 * sees images.
 *
 * @throws FmError: INVALID_REQUEST for an invalid reference, or if several models fit (`detail` lists them); NOT_FOUND;
 *   UNAVAILABLE if a later try may succeed; the reason of the signal
 */
export async function pullModel(reference: string, options: PullOptions = {}): Promise<PulledModel> {
  return (await import("./later.js")).pullModel(reference, options);
}

/**
 * The models that have short names for `pullModel`. With `word`: only those that have this word in their name, kind or use. Asks
 * no server.
 */
export async function searchModels(word = ""): Promise<readonly CatalogModel[]> {
  return (await import("./later.js")).searchCatalog(word);
}

/** Compares a file with the record of its download; `unknown`: there is no record, as for files of other programs. */
export async function verifyModel(path: string): Promise<{ state: "ok" | "damaged" | "unknown"; sha256: string }> {
  return (await import("./later.js")).verifyModel(path);
}
