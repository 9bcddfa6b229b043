// Checksums. They show whether a file has the right contents.
import type { Hash } from "node:crypto";
import { open } from "node:fs/promises";

/** The SHA-256 of a file, in hexadecimal. */
export async function hashFile(path: string): Promise<string> {
  const hash = await sha256();
  const handle = await open(path, "r");
  for await (const chunk of handle.createReadStream()) hash.update(chunk as Buffer);
  return hash.digest("hex");
}

/** The SHA-256 of a text, in hexadecimal. */
export async function hashText(text: string): Promise<string> {
  return (await sha256()).update(text).digest("hex");
}

/** Loads node:crypto on demand: loading takes some ms, and few hosts need it. */
async function sha256(): Promise<Hash> {
  return (await import("node:crypto")).createHash("sha256");
}
