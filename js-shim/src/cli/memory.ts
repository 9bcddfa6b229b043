// The memory of a model, before it is loaded.
import { freemem } from "node:os";
import { memoryOf, readFacts, sizeOf } from "../later.js";
import { bytes, fail } from "./output.js";

/** About how many bytes the model of a file will take; null: unknown. */
export async function memoryAhead(path: string | undefined): Promise<number | null> {
  return path === undefined ? null : memoryOf(await sizeOf(path), await readFacts(path));
}

/** A memory size that is not measured; "": unknown. */
export const about = (memory: number | null): string => (memory === null ? "" : `~${bytes(memory)}`);

/** Warns of a model for which this machine has too little memory at the moment. Returns whether it warned. */
export async function warnOfMemory(path: string | undefined): Promise<boolean> {
  const needed = await memoryAhead(path);
  const free = freeMemory();
  if (needed === null || free === null || needed <= free) return false;
  const what = `the model takes about ${bytes(needed)} of memory, and ${bytes(free)} are free`;
  fail(`${what}. It may be slow, or fail. Choose a smaller one: npx fm-proxy models search`);
  return true;
}

/** Free bytes, in the container if there is one. Null on macOS, which can free memory that it counts as used. */
function freeMemory(): number | null {
  if (process.platform === "darwin") return null;
  const { availableMemory = freemem } = process as { availableMemory?: () => number };
  return availableMemory();
}
