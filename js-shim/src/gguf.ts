// Reads facts about a model from the beginning of a GGUF file (docs/gguf.md of ggml). The bytes are untrusted.
import { open } from "node:fs/promises";

/** The facts in a model's header; null: the header lacks this fact. */
export interface ModelFacts {
  /** The format of the weights, such as Q4_K_M. */
  quantization: string | null;
  /** In tokens, as the model was trained. */
  contextLength: number | null;
  /** Whether it makes vectors of texts, and no answers. */
  embeds: boolean;
  /** About how many bytes a token takes in the KV memory; 0: unknown. */
  kvBytes: number;
  /** Tokens of the vocabulary; 0: unknown. */
  vocabulary: number;
  /** How many numbers the vector of a token has. The vectors of a fitting projector have as many. 0: unknown. */
  width: number;
}

/** The features that a chat template supports. */
export interface TemplateFacts {
  tools: boolean;
  thinks: boolean;
}

/** How many bytes are read for the facts. Their keys come before the vocabulary. */
const LOOK = 65_536;
/** How many bytes are read for the template. It comes after the vocabulary. */
const LOOK_FOR_TEMPLATE = 32 * 1024 * 1024;
const TEMPLATE = "tokenizer.chat_template";
/** The marks or the field of thoughts in the templates of Qwen, DeepSeek, Gemma, MiniMax, Mistral, gpt-oss and Command. */
const THOUGHTS = /<\|?\/?(\w+:)?think|\[THINK\]|<\|channel\|>|_THINKING\|>|reasoning_content/;
/** As in the helper (fm_model_estimate): the default tokens of a context, and the most tokens of a text to embed. */
const [TOKENS, TOKENS_EMBEDDED] = [8192, 2048];
/**
 * The most memory beside a context for parallel answers: in bytes, and in contexts. A text to embed is computed in one piece.
 * This takes the same number of bytes.
 */
const [BESIDE, CONTEXTS_BESIDE] = [64 * 1024 * 1024, 7];
/** About how many bytes a loaded vocabulary takes for each of its tokens. As in the helper (base/gguf.h). */
const TOKEN_BYTES = 200;
/** More layers than any model has. */
const LAYERS = 1024;
/** Types of values (`gguf_type`), and the bytes of each; 0: the length varies. */
const [STRING, ARRAY] = [8, 9];
const SIZES = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8];
/** `llama_ftype` of llama.h, as far as it is in use. */
const FILE_TYPES: Readonly<Record<number, string>> = {
  0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M",
  13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS", 21: "Q2_K_S",
  22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S", 29: "IQ2_M", 30: "IQ4_XS",
  31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4",
};

/** Reads the facts of a file. Never rejects: for a file that can't be read, all facts are unknown. */
export async function readFacts(path: string): Promise<ModelFacts> {
  const { numbers } = headerOf(await readStart(path, LOOK));
  const ofModel = (name: string): number | null => {
    const key = [...numbers.keys()].find((each) => each.slice(each.indexOf(".") + 1) === name);
    return key === undefined ? null : (numbers.get(key) ?? null);
  };
  return {
    quantization: FILE_TYPES[numbers.get("general.file_type") ?? -1] ?? null,
    contextLength: ofModel("context_length"),
    embeds: (ofModel("pooling_type") ?? 0) > 0,
    kvBytes: kvBytesOf((name) => ofModel(name) ?? 0),
    vocabulary: numbers.get("tokenizer.ggml.tokens.count") ?? 0,
    width: ofModel("embedding_length") ?? ofModel("vision.projection_dim") ?? 0,
  };
}

/** Reads much more than `readFacts`. Never rejects. */
export async function readTemplate(path: string): Promise<TemplateFacts> {
  const { template } = headerOf(await readStart(path, LOOK_FOR_TEMPLATE));
  return { tools: /\btools\b/.test(template), thinks: THOUGHTS.test(template) };
}

/** About how many bytes a loaded model takes, including its files of `size` bytes; null: unknown. */
export function memoryOf(size: number, { kvBytes, contextLength, embeds, vocabulary }: ModelFacts): number | null {
  const context = kvBytes * Math.min(contextLength || TOKENS, embeds ? TOKENS_EMBEDDED : TOKENS);
  const beside = embeds ? BESIDE : Math.min(CONTEXTS_BESIDE * context, BESIDE);
  return kvBytes === 0 ? null : Math.round(size + context + beside + vocabulary * TOKEN_BYTES);
}

/** The bytes of a token in the KV memory, computed as in the helper (base/gguf.c). */
function kvBytesOf(number: (name: string) => number): number {
  const heads = number("attention.head_count");
  const shared = heads === 0 ? 0 : number("embedding_length") / heads;
  const numbers = (number("attention.key_length") || shared) + (number("attention.value_length") || shared);
  // Some models have keys and values only in some layers: in every n-th layer, or the header has the number of heads of each
  // layer.
  const layers = Math.floor(number("block_count") / (number("full_attention_interval") || 1));
  return 2 * numbers * (number("attention.head_count_kv.sum") || (number("attention.head_count_kv") || heads) * layers);
}

/** The first `most` bytes of a file, or fewer if the file is shorter. */
async function readStart(path: string, most: number): Promise<Buffer> {
  try {
    const handle = await open(path, "r");
    try {
      const bytes = Buffer.alloc(Math.min(most, (await handle.stat()).size));
      return bytes.subarray(0, (await handle.read(bytes, 0, bytes.length, 0)).bytesRead);
    } finally {
      await handle.close();
    }
  } catch {
    return Buffer.alloc(0);
  }
}

/** Reads the chat template and the values of all keys with numbers, until the bytes end or are invalid. */
function headerOf(bytes: Buffer): { numbers: Map<string, number>; template: string } {
  const found = { numbers: new Map<string, number>(), template: "" };
  let at = 0;
  const number = (size: number): number => {
    const low = bytes.readUIntLE(at, Math.min(size, 4));
    const high = size > 4 ? bytes.readUInt32LE(at + 4) : 0;
    at += size;
    return high * 2 ** 32 + low;
  };
  const skipText = (): void => {
    const length = number(8);
    at += length;
  };
  const text = (): string => {
    const start = at + 8;
    skipText();
    return bytes.toString("utf8", start, at);
  };
  /**
   * Notes the number of items of an array. If it may have one item for each layer, also notes their sum. The bytes may end within
   * the array.
   */
  const readArray = (key: string): void => {
    const [type, count] = [number(4), number(8)];
    found.numbers.set(`${key}.count`, count);
    const size = SIZES[type] ?? 0;
    let sum = 0;
    if (type === STRING) for (let i = 0; i < count; i++) skipText();
    else if (size === 0) throw new RangeError("an array of no simple type");
    else if (count > LAYERS) at += size * count;
    else for (let i = 0; i < count; i++) sum += number(size);
    found.numbers.set(`${key}.sum`, sum);
  };
  try {
    if (bytes.toString("latin1", 0, 4) !== "GGUF") return found;
    at = 16; // skips the version and the number of tensors
    for (let pairs = number(8); pairs > 0; pairs--) {
      const key = text();
      const type = number(4);
      const size = SIZES[type] ?? 0;
      if (type === STRING && key === TEMPLATE) found.template = text();
      else if (type === STRING) skipText();
      else if (type === ARRAY) readArray(key);
      else if (size > 0) found.numbers.set(key, number(size));
      else break;
    }
  } catch {
    // The bytes end here; `Buffer` throws.
  }
  return found;
}
