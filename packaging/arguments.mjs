// The command lines of the scripts that pack.
import { parseArgs } from "node:util";

/**
 * The values of `options` (parseArgs). --help prints `usage` and ends the program. A wrong option, or an error that
 * `check` throws, ends it with the status 2.
 */
export function readArguments(options, usage, check = () => {}) {
  let given;
  try {
    given = parseArgs({ options: { ...options, help: { type: "boolean" } } }).values;
    check(given);
  } catch (error) {
    console.error(`${error.message}\n${usage}`);
    process.exit(2);
  }
  if (!given.help) return given;
  console.log(usage);
  process.exit(0);
}
