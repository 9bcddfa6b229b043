// What tells whether a file is the one that it should be.
import { open } from "node:fs/promises";

/** The SHA-256 of a file, in hexadecimal. */
export async function hashFile(path: string): Promise<string> {
  const { createHash } = await import("node:crypto"); // it takes Node some ms, and few hosts need it
  const hash = createHash("sha256");
  const handle = await open(path, "r");
  for await (const chunk of handle.createReadStream()) hash.update(chunk as Buffer);
  return hash.digest("hex");
}
