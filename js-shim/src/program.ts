// The host's main program.
import { realpathSync } from "node:fs";
import { resolve } from "node:path";

/**
 * The file of the main program, with links resolved: programs are often started by a link in a folder of commands. Undefined:
 * there is no file.
 */
export function programFile(): string | undefined {
  const [, main] = process.argv;
  if (main === undefined) return undefined;
  try {
    return realpathSync(main);
  } catch {
    return resolve(main);
  }
}
