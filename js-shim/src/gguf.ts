// What the beginning of a GGUF file says of a model (docs/gguf.md of ggml). The bytes are untrusted.
import { open } from "node:fs/promises";

/** What a header tells; null: it does not. */
export interface ModelFacts {
  /** How the weights are stored: Q4_K_M. */
  quantization: string | null;
  /** In tokens, as the model was trained. */
  contextLength: number | null;
  /** Whether it makes vectors of texts, and no answers. */
  embeds: boolean;
}

/** Bytes that are read: the keys that matter come before the vocabulary. */
const LOOK = 65_536;
/** Types of values (`gguf_type`), and the bytes of each; 0: it has a length of its own. */
const [STRING, ARRAY] = [8, 9];
const SIZES = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8];
/** `llama_ftype` of llama.h, as far as it is in use. */
const FILE_TYPES: Readonly<Record<number, string>> = {
  0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M",
  13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS", 21: "Q2_K_S",
  22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S", 29: "IQ2_M", 30: "IQ4_XS",
  31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4",
};

/** Never rejects: nothing is known of a file that can't be read. */
export async function readFacts(path: string): Promise<ModelFacts> {
  const bytes = await readStart(path).catch(() => Buffer.alloc(0));
  const values = numbersOf(bytes);
  const ofModel = (name: string): number | null => {
    const key = [...values.keys()].find((each) => each.split(".").length === 2 && each.endsWith(`.${name}`));
    return key === undefined ? null : (values.get(key) ?? null);
  };
  return {
    quantization: FILE_TYPES[values.get("general.file_type") ?? -1] ?? null,
    contextLength: ofModel("context_length"),
    embeds: (ofModel("pooling_type") ?? 0) > 0,
  };
}

async function readStart(path: string): Promise<Buffer> {
  const handle = await open(path, "r");
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(LOOK), 0, LOOK, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

/** The keys whose values are numbers, up to where the bytes end or are not what they should be. */
function numbersOf(bytes: Buffer): Map<string, number> {
  const values = new Map<string, number>();
  let at = 0;
  const number = (size: number): number => {
    const low = bytes.readUIntLE(at, Math.min(size, 4));
    const high = size > 4 ? bytes.readUInt32LE(at + 4) : 0;
    at += size;
    return high * 2 ** 32 + low;
  };
  const text = (): string => {
    const length = number(8);
    at += length;
    return bytes.toString("utf8", at - length, at);
  };
  const skipArray = (): void => {
    const [type, count] = [number(4), number(8)];
    const size = SIZES[type] ?? 0;
    if (type === STRING) for (let i = 0; i < count; i++) text();
    else if (size > 0) at += size * count;
    else throw new RangeError("an array of no simple type");
  };
  try {
    if (bytes.toString("latin1", 0, 4) !== "GGUF") return values;
    at = 16; // after the version, and how many tensors there are
    for (let pairs = number(8); pairs > 0; pairs--) {
      const key = text();
      const type = number(4);
      const size = SIZES[type] ?? 0;
      if (type === STRING) text();
      else if (type === ARRAY) skipArray();
      else if (size > 0) values.set(key, number(size));
      else break;
    }
  } catch {
    // The bytes end here; `Buffer` throws.
  }
  return values;
}
