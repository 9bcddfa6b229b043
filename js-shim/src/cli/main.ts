// The command `fm-proxy` of the npm package.
import { COMMANDS } from "./commands.js";
import { runHelper } from "./helper.js";
import { errorText, fail, quietOnBrokenPipe, say, Usage } from "./output.js";
import { helpOf, overview, parse, type Command } from "./parse.js";

/** Exit status of a command line that is wrong, as in sysexits.h. */
const USAGE = 64;

/** Runs a command line, without the program's name; resolves to the exit status. */
async function main(words: readonly string[]): Promise<number> {
  const [first] = words;
  if (first === undefined || first === "--help" || first === "-h" || first === "help") return help(words.slice(1));
  // The helper's own command line: what an application starts.
  if (first === "--help-helper") return runHelper(["--help"]);
  if (first === "sessions" || (first.startsWith("--") && first !== "--")) return runHelper(words);
  const command = find(words);
  const rest = words.slice(command.words.split(" ").length);
  if (rest.includes("--help") || rest.includes("-h")) return help(command.words.split(" "));
  return command.run(parse(command, rest));
}

function help(words: readonly string[]): number {
  say(words.length === 0 ? overview(COMMANDS) : helpOf(find(words)));
  return 0;
}

function find(words: readonly string[]): Command {
  const found = COMMANDS.find((command) => command.words.split(" ").every((word, index) => word === words[index]));
  if (found !== undefined) return found;
  const group = COMMANDS.filter((command) => command.words.startsWith(`${words[0]} `)).map((command) => command.words);
  throw new Usage(group.length > 0 ? `'${words[0]}' needs one of: ${group.join(", ")}` : `there is no command '${words[0]}'`);
}

quietOnBrokenPipe();
main(process.argv.slice(2)).then(
  (status) => {
    process.exitCode = status;
  },
  (error: unknown) => {
    const text = errorText(error);
    // A command to copy ends its line.
    fail(error instanceof Usage && !text.includes("npx fm-proxy ") ? `${text}. See npx fm-proxy --help` : text);
    process.exitCode = error instanceof Usage ? USAGE : 1;
  },
);
