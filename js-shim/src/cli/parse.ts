// Command lines: what each command takes, read and shown from one table.
import { parseArgs, type ParseArgsConfig } from "node:util";
import { table, Usage } from "./output.js";

/** An option of a command. */
export interface Option {
  name: string;
  /** The name of its value in the help; absent: the option has no value. */
  value?: string;
  help: string;
}

/** The contents of a command line. */
export interface Arguments {
  words: string[];
  options: Record<string, string | boolean | undefined>;
}

/** A command: `models list`. */
export interface Command {
  words: string;
  /** The words after the command, as the help shows them. */
  takes: string;
  /** How many words may follow: the fewest and the most. */
  count: readonly [number, number];
  summary: string;
  options: readonly Option[];
  run(given: Arguments): Promise<number>;
}

/** Throws a {@link Usage} that names what is wrong. */
export function parse(command: Command, rest: readonly string[]): Arguments {
  const options: NonNullable<ParseArgsConfig["options"]> = {};
  for (const { name, value } of command.options) options[name] = { type: value === undefined ? "boolean" : "string" };
  let parsed;
  try {
    parsed = parseArgs({ args: [...rest], options, allowPositionals: true, strict: true });
  } catch (error) {
    const [what = ""] = (error as Error).message.split(". ");
    throw new Usage(what.replace(/\.$/, ""));
  }
  const [fewest, most] = command.count;
  const words = parsed.positionals;
  if (words.length < fewest) throw new Usage(`'${command.words}' needs ${command.takes}`);
  if (words.length > most) throw new Usage(tooMany(command, words));
  return { words, options: parsed.values as Arguments["options"] };
}

function tooMany({ words: command, count: [, most], takes }: Command, words: readonly string[]): string {
  const [first = "", next = ""] = words;
  if (/PROMPT/.test(takes)) return `put the prompt in quotes: npx fm-proxy ${command} "${words.join(" ")}"`;
  if (most === 0) return `'${command}' does not take '${first}'`;
  const joined = first.includes("/") ? `${first}:${next}` : `${first}-${next}`;
  const meant = /^I?Q\d|^\d+(\.\d+)?b$/i.test(next) ? `. Did you mean '${joined}'?` : "";
  return `'${command}' takes one ${takes.replace(/[[\]]/g, "")} at a time: '${next}' is too many${meant}`;
}

/** All commands, a line each. */
export function overview(commands: readonly Command[]): string {
  const rows = commands.map(({ words, takes, summary }) => [`  ${`${words} ${takes}`.trim()}`, summary]);
  return [
    "Usage: fm-proxy COMMAND [ARGUMENT]...",
    "",
    "A language model on this machine.",
    "",
    table(rows),
    "",
    "In a project that has the package: npx fm-proxy COMMAND. COMMAND --help shows its options. fm-proxy sessions and",
    "command lines that begin with an option are passed to the helper program; fm-proxy --help-helper shows them.",
  ].join("\n");
}

/** One command with its options. */
export function helpOf({ words, takes, summary, options }: Command): string {
  const rows = [...options, { name: "help", help: "shows this" } as Option].map(
    ({ name, value, help }) => [`  --${name}${value === undefined ? "" : ` ${value}`}`, help],
  );
  return `Usage: fm-proxy ${`${words} [OPTION]... ${takes}`.trim()}\n\n${summary}.\n\n${table(rows)}`;
}
