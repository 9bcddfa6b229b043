// Completions for shells, made from the table of commands.
import { say, Usage } from "./output.js";
import type { Command } from "./parse.js";

const SHELLS: Record<string, (commands: readonly Command[]) => string> = { bash, zsh, fish };

/** Prints the script for a shell. */
export async function completion(shell: string, commands: readonly Command[]): Promise<number> {
  const script = Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined;
  if (script === undefined) throw new Usage(`there are completions for ${Object.keys(SHELLS).join(", ")}, not for '${shell}'`);
  say(script(commands));
  return 0;
}

/** The words that may follow each beginning of a command, and the options of each complete command. */
function choices(commands: readonly Command[]): Map<string, Set<string>> {
  const map = new Map<string, Set<string>>();
  const add = (before: string, word: string): unknown => map.set(before, (map.get(before) ?? new Set()).add(word));
  for (const { words, options } of commands) {
    words.split(" ").forEach((word, index, all) => add(all.slice(0, index).join(" "), word));
    for (const { name } of [...options, { name: "help" }]) add(words, `--${name}`);
  }
  for (const shell of Object.keys(SHELLS)) add("completion", shell);
  return map;
}

function bash(commands: readonly Command[]): string {
  const cases = [...choices(commands)].map(([before, words]) => `    "${before}") choices="${[...words].join(" ")}" ;;`);
  return `# fm-proxy completion bash: add to ~/.bashrc
#   eval "$(fm-proxy completion bash)"
_fm_proxy() {
  local choices word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[1]}
  [ "$COMP_CWORD" -gt 1 ] || before=
  [ "$before" != models ] || [ "$COMP_CWORD" -le 2 ] || before="models \${COMP_WORDS[2]}"
  case $before in
${cases.join("\n")}
    *) choices= ;;
  esac
  COMPREPLY=($(compgen -W "$choices" -- "$word"))
}
complete -o default -F _fm_proxy fm-proxy`;
}

/** zsh runs bash's function. */
function zsh(commands: readonly Command[]): string {
  return `# fm-proxy completion zsh: add to ~/.zshrc, after compinit
#   eval "$(fm-proxy completion zsh)"
autoload -U +X bashcompinit && bashcompinit
${bash(commands).split("\n").slice(2).join("\n")}`;
}

function fish(commands: readonly Command[]): string {
  const all = choices(commands);
  const lines = [...all].flatMap(([before, words]) => {
    const [first, second] = before.split(" ");
    const known = [...(all.get(first ?? "") ?? [])].filter((word) => !word.startsWith("--")).join(" ");
    const seen = second !== undefined ? `; and __fish_seen_subcommand_from ${second}` : "";
    const open = first === "models" && second === undefined ? `; and not __fish_seen_subcommand_from ${known}` : "";
    const when = before === "" ? "__fish_use_subcommand" : `__fish_seen_subcommand_from ${first}${seen}${open}`;
    return [...words].map((word) =>
      word.startsWith("--")
        ? `complete -c fm-proxy -n "${when}" -l ${word.slice(2)}`
        : `complete -c fm-proxy -f -n "${when}" -a ${word}`,
    );
  });
  return `# fm-proxy completion fish: save as ~/.config/fish/completions/fm-proxy.fish\n${lines.join("\n")}`;
}
