// Models that `models pull` knows by short names. Publishers' own repositories where these have GGUF files.
import { nearest } from "./check-options.js";
import { FmError } from "./errors.js";

/** A model with a short name. */
export interface CatalogModel {
  name: string;
  kind: "chat" | "code" | "thinking" | "seeing" | "embedding";
  /** The repository on Hugging Face. */
  repository: string;
  file: string;
  /** In bytes: the size of all files that are downloaded, including a projector. */
  size: number;
  /**
   * About how many bytes the model takes: its files, and the KV memory of 8,192 tokens, as the helper's memory budget counts
   * them.
   */
  memory: number;
  licence: string;
  goodFor: string;
}

const GB = 1e9;
const APACHE = "Apache-2.0";

export const CATALOG: readonly CatalogModel[] = [
  {
    name: "qwen3-0.6b",
    kind: "chat",
    repository: "Qwen/Qwen3-0.6B-GGUF",
    file: "Qwen3-0.6B-Q8_0.gguf",
    size: 639_446_688,
    memory: 1.7 * GB,
    licence: APACHE,
    goodFor: "a first model: short answers, JSON, one tool; can think before it answers",
  },
  {
    name: "qwen3-1.7b",
    kind: "chat",
    repository: "Qwen/Qwen3-1.7B-GGUF",
    file: "Qwen3-1.7B-Q8_0.gguf",
    size: 1_834_426_016,
    memory: 2.9 * GB,
    licence: APACHE,
    goodFor: "small machines: summaries, JSON, tools; can think before it answers",
  },
  {
    name: "qwen3-4b",
    kind: "chat",
    repository: "Qwen/Qwen3-4B-GGUF",
    file: "Qwen3-4B-Q4_K_M.gguf",
    size: 2_497_280_256,
    memory: 3.8 * GB,
    licence: APACHE,
    goodFor: "most tasks on a laptop: text, JSON, several tools; can think before it answers",
  },
  {
    name: "qwen3-8b",
    kind: "chat",
    repository: "Qwen/Qwen3-8B-GGUF",
    file: "Qwen3-8B-Q4_K_M.gguf",
    size: 5_027_783_488,
    memory: 6.4 * GB,
    licence: APACHE,
    goodFor: "better texts and tool calls, with 16 GB of memory; can think before it answers",
  },
  {
    name: "qwen2.5-coder-1.5b",
    kind: "code",
    repository: "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
    file: "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size: 1_117_320_768,
    memory: 1.5 * GB,
    licence: APACHE,
    goodFor: "completing code, small functions, tools",
  },
  {
    name: "qwen2.5-coder-7b",
    kind: "code",
    repository: "Qwen/Qwen2.5-Coder-7B-Instruct-GGUF",
    file: "qwen2.5-coder-7b-instruct-q4_k_m.gguf",
    size: 4_683_073_536,
    memory: 5.3 * GB,
    licence: APACHE,
    goodFor: "writing and explaining code",
  },
  {
    name: "qwen3-4b-thinking",
    kind: "thinking",
    repository: "unsloth/Qwen3-4B-Thinking-2507-GGUF",
    file: "Qwen3-4B-Thinking-2507-Q4_K_M.gguf",
    size: 2_497_281_152,
    memory: 3.8 * GB,
    licence: APACHE,
    goodFor: "mathematics and logic: thinks before each answer, so it takes long",
  },
  {
    name: "gpt-oss-20b",
    kind: "thinking",
    repository: "ggml-org/gpt-oss-20b-GGUF",
    file: "gpt-oss-20b-mxfp4.gguf",
    size: 12_109_566_560,
    memory: 12.6 * GB,
    licence: APACHE,
    goodFor: "hard questions and agents, with 24 GB of memory or more",
  },
  {
    name: "qwen3-vl-4b",
    kind: "seeing",
    repository: "Qwen/Qwen3-VL-4B-Instruct-GGUF",
    file: "Qwen3VL-4B-Instruct-Q4_K_M.gguf",
    size: 3_333_461_920,
    memory: 4.7 * GB,
    licence: APACHE,
    goodFor: "images: texts in them, screens, descriptions",
  },
  {
    name: "gemma-3-4b",
    kind: "seeing",
    repository: "ggml-org/gemma-3-4b-it-GGUF",
    file: "gemma-3-4b-it-Q4_K_M.gguf",
    size: 3_341_008_960,
    memory: 4.6 * GB,
    licence: "Gemma",
    goodFor: "images, and texts in many languages",
  },
  {
    name: "qwen3-embedding-0.6b",
    kind: "embedding",
    repository: "Qwen/Qwen3-Embedding-0.6B-GGUF",
    file: "Qwen3-Embedding-0.6B-Q8_0.gguf",
    size: 639_150_592,
    memory: 0.9 * GB,
    licence: APACHE,
    goodFor: "search and similarity: vectors of texts in many languages",
  },
];

/** The models that have a word in their name, kind or use. */
export function searchCatalog(word: string): readonly CatalogModel[] {
  const wanted = String(word).toLowerCase();
  return CATALOG.filter(({ name, kind, goodFor }) => `${name} ${kind} ${goodFor}`.toLowerCase().includes(wanted));
}

/** The model with this short name, in capital or small letters. */
export function catalogModel(name: string): CatalogModel | undefined {
  return CATALOG.find((model) => model.name === name.toLowerCase());
}

/**
 * The model with a short name; null: `reference` has another form.
 *
 * @throws FmError (INVALID_REQUEST) for a name that no model has; the error suggests names that may be meant
 */
export function findInCatalog(reference: string): CatalogModel | null {
  if (!/^[\w.:-]+$/.test(reference) || /\.gguf$|^\w+:$/i.test(reference)) return null;
  const found = catalogModel(reference);
  if (found !== undefined) return found;
  const name = reference.toLowerCase();
  const names = CATALOG.map((model) => model.name);
  const longer = names.filter((each) => each.includes(name));
  const meant = longer.length > 0 ? ` Did you mean one of these: ${longer.join(", ")}?` : (nearest(name, names, 4) ?? "");
  const advice = "npx fm-proxy models search lists those that have one. All others are pulled as OWNER/NAME.";
  throw new FmError("INVALID_REQUEST", `No model has the short name '${reference}'.${meant} ${advice}`);
}
