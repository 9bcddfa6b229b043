// The command `fm-proxy` of the npm package.
import { nearest } from "../check-options.js";
import { COMMANDS } from "./commands.js";
import { runHelper } from "./helper.js";
import { errorText, fail, quietOnBrokenPipe, say, Usage } from "./output.js";
import { helpOf, overview, parse, type Command } from "./parse.js";

/** The exit status for a wrong command line, as in sysexits.h. */
const USAGE = 64;

/** Runs a command line, without the program's name; resolves to the exit status. */
async function main(words: readonly string[]): Promise<number> {
  const [first] = words;
  if (first === undefined || first === "--help" || first === "-h" || first === "help") return help(words.slice(1));
  // This is the helper's own command line, as an application starts it.
  if (first === "--help-helper") return runHelper(["--help"]);
  const late = words.findIndex((word, index) => hasOption(word, first) && !takesValue(words[index - 1]));
  if (late > 0) {
    const right = [...words.slice(late), ...words.slice(0, late)].map((word) => (/\s/.test(word) ? `"${word}"` : word));
    throw new Usage(`options come after the command: npx fm-proxy ${right.join(" ")}`);
  }
  if (first === "sessions" || (first.startsWith("--") && first !== "--")) return runHelper(words);
  if (words.length === 2 && isHelp(words[1]) && groupOf(first).length > 0) return help([first]);
  const command = find(words);
  const rest = words.slice(command.words.split(" ").length);
  if (rest.some(isHelp)) return help(command.words.split(" "));
  return command.run(parse(command, rest));
}

function help(words: readonly string[]): number {
  const [first = ""] = words;
  const group = words.length > 1 ? [] : first === "" ? COMMANDS : groupOf(first);
  say(group.length > 0 ? overview(group) : helpOf(find(words)));
  return 0;
}

/** The commands of a group: for `models`, they are `models list` and so on. */
const groupOf = (word: string): Command[] => COMMANDS.filter((command) => command.words.startsWith(`${word} `));
const isHelp = (word: string | undefined): boolean => word === "--help" || word === "-h";
/** Whether a command that begins with this word has this option. The helper itself has a `bench`, with other options. */
const hasOption = (word: string, option: string): boolean =>
  COMMANDS.some(({ words, options }) => {
    return words !== "bench" && words.split(" ")[0] === word && options.some(({ name }) => `--${name}` === option.split("=")[0]);
  });
/** Whether what follows this word may be an option's value. */
const takesValue = (word: string | undefined): boolean => word !== undefined && /^-[^=]*$/.test(word) && word !== "--json";

function find(words: readonly string[]): Command {
  const found = COMMANDS.find((command) => command.words.split(" ").every((word, index) => word === words[index]));
  if (found !== undefined) return found;
  const [first = ""] = words;
  const group = groupOf(first).map((command) => command.words);
  if (group.length > 0) throw new Usage(`'${first}' needs one of: ${group.join(", ")}`);
  throw new Usage(`there is no command '${first}'.${meantBy(first) ?? ""}`);
}

/** Commands that have another name elsewhere: llama.cpp and Ollama have most of these words. */
const ELSEWHERE: ReadonlyMap<string, string> = new Map([
  ["ask", "run"],
  ["chat", "run"],
  ["delete", "models rm"],
  ["ls", "models list"],
  ["remove", "models rm"],
]);

function meantBy(word: string): string | undefined {
  const all = COMMANDS.map((command) => command.words);
  const found = ELSEWHERE.get(word) ?? all.find((words) => words.endsWith(` ${word}`) || words.startsWith(`${word}s `));
  return found === undefined ? nearest(word, all, 2) : ` Did you mean '${found}'?`;
}

quietOnBrokenPipe();
main(process.argv.slice(2)).then(
  (status) => {
    process.exitCode = status;
  },
  (error: unknown) => {
    const text = errorText(error);
    // A command that the user may copy is at the end of its line.
    const isEnough = !(error instanceof Usage) || text.includes("npx fm-proxy ");
    fail(isEnough ? text : `${text.replace(/[^.?]$/, "$&.")} See npx fm-proxy --help`);
    process.exitCode = error instanceof Usage ? USAGE : 1;
  },
);
