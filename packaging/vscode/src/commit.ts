// The command "Write a Commit Message": writes a message for the staged changes, or else for all changes, into the box of the
// Source Control view.
import * as vscode from "vscode";
import { judgeSubject, MAX_SUBJECT, shortened, subjectFromFiles, subjectOf } from "./diff.js";
import { findRepository, UNTRACKED, type GitChange, type GitRepository } from "./git.js";
import { asFmError, type LocalModel } from "./local-model.js";
import { canAsk, SHOWN_MS, withModel } from "./work.js";

/** How many characters of the changes the model sees. On a small machine, more would take too long. */
const MAX_DIFF = 6000;
/** How many names of new files the model sees. */
const MAX_NEW_FILES = 20;
const INSTRUCTIONS =
  `Write the subject line of a Git commit message for the user's changes: at most ${MAX_SUBJECT} characters, in the ` +
  'imperative ("Fix the parser of dates"). Say what the changes do. Answer with that line only.';

/** VS Code cuts a longer note. */
const FALLBACK_TOLD = "No usable answer: this message names the files";

/**
 * What this extension wrote into a repository's box, which it may replace, and the user's own text below. The key is
 * the repository's root, because the git extension gives another object each time.
 */
const written = new Map<string, { box: string; below: string }>();

/** The changes to commit. */
interface Changes {
  text: string;
  /** The files' names. */
  names: string[];
  /** Whether all of them are new. */
  isNew: boolean;
}

/**
 * Writes the message.
 *
 * @param source - what VS Code passes from the menu of a repository
 */
export async function writeCommitMessage(local: LocalModel, source: unknown): Promise<void> {
  if (!(await canAsk(local))) return;
  const found = await findChanges(source);
  if (found === undefined) return;
  const { repository, changes } = found;
  const subject = await withModel(local, "fm-proxy: writing a commit message", async (signal) => {
    const { value, source: from } = await local.client.generate<string>(
      {
        instructions: INSTRUCTIONS,
        input: changes.text,
        sanitize: (text) => subjectOf(String(text)),
        validate: judgeSubject,
        fallback: () => subjectFromFiles(changes.names, changes.isNew ? "Add" : "Update"),
        request: { max_output_tokens: 64, reasoning: { effort: "none" } },
      },
      { signal },
    );
    if (from === "fallback") vscode.window.setStatusBarMessage(FALLBACK_TOLD, SHOWN_MS);
    return value;
  });
  if (subject !== undefined) put(repository, subject);
}

/** The repository and its changes; undefined if there are none. The user has then been told the reason. */
async function findChanges(source: unknown): Promise<{ repository: GitRepository; changes: Changes } | undefined> {
  try {
    const repository = await findRepository(source);
    if (repository === undefined) return undefined;
    const changes = await changesOf(repository);
    if (changes !== undefined) return { repository, changes };
    void vscode.window.showInformationMessage("fm-proxy: There is nothing to commit. Change or stage a file, then try again.");
  } catch (error) {
    void vscode.window.showInformationMessage(`fm-proxy: ${asFmError(error).detail}`);
  }
  return undefined;
}

/** The staged changes; or else all changes, with the names of new files. */
async function changesOf(repository: GitRepository): Promise<Changes | undefined> {
  const { indexChanges, workingTreeChanges, untrackedChanges = [] } = repository.state;
  const staged = await repository.diff(true);
  if (staged.trim() !== "") return changes(staged, indexChanges, []);
  const isNew = ({ status }: GitChange): boolean => status === UNTRACKED;
  const newFiles = [...workingTreeChanges.filter(isNew), ...untrackedChanges];
  const diff = await repository.diff(false);
  if (diff.trim() === "" && newFiles.length === 0) return undefined;
  return changes(diff, workingTreeChanges.filter((change) => !isNew(change)), newFiles);
}

function changes(diff: string, changed: readonly GitChange[], added: readonly GitChange[]): Changes {
  const nameOf = ({ uri }: GitChange): string => vscode.workspace.asRelativePath(uri, false);
  const newNames = added.map(nameOf);
  const news = newNames.slice(0, MAX_NEW_FILES).map((name) => `new file: ${name}\n`);
  const text = `${news.join("")}${shortened(diff, MAX_DIFF)}`;
  return { text, names: [...changed.map(nameOf), ...newNames], isNew: changed.length === 0 };
}

/** Writes the message into the box. The user's own text stays below it. */
function put({ inputBox, rootUri }: GitRepository, subject: string): void {
  const last = written.get(rootUri.toString());
  const below = inputBox.value === last?.box ? last.below : inputBox.value.trim();
  const box = below === "" ? subject : `${subject}\n\n${below}`;
  inputBox.value = box;
  written.set(rootUri.toString(), { box, below });
}
