// The host's main program.
import { realpathSync } from "node:fs";
import { resolve } from "node:path";

/** Its file itself: what started it may be a link, such as those in a folder of commands. Undefined where it has none. */
export function programFile(): string | undefined {
  const [, main] = process.argv;
  if (main === undefined) return undefined;
  try {
    return realpathSync(main);
  } catch {
    return resolve(main);
  }
}
