// The command "Suggest a Name": the user chooses from names for the selected code. If the code has a name already, it is renamed.
import * as vscode from "vscode";
import { nameFromText, scoreName, slug } from "fm-proxy";
import { inStyle, isIdentifier, styleOf, wordsOfCode } from "./identifiers.js";
import type { LocalModel } from "./local-model.js";
import { canAsk, withModel, type Report } from "./work.js";

/** How many answers the model gives; equal ones count once. */
const ANSWERS = 3;
/**
 * The temperature of the answers after the first one, which is the model's best. With a seed, the engine would process the code
 * again for each answer.
 */
const VARIED = 0.9;
/** How many characters of the code the model sees. On a small machine, more would take too long. */
const MAX_CODE = 4000;
/** How many lines above and below the model sees, if only a name is selected. */
const LINES_AROUND = 20;
const MAX_NAME = 40;
const MAX_WORDS = 5;
/** The least score of an accepted name. A name with this score shares no word with the code, but has no other fault. */
const MIN_SCORE = 0.7;
const CHANGED = "fm-proxy: The code has changed meanwhile, so nothing was named. Select it, then ask for a name again.";
const INSTRUCTIONS =
  "You name things in source code. Answer with one short English name of two to four words for what the user shows. " +
  "Answer with the name only: no explanation, no code, no quotes.";

/** The code that gets a name. */
interface Subject {
  editor: vscode.TextEditor;
  range: vscode.Range;
  /** The text in the range. */
  text: string;
  /** The code that the model sees, and the question about it. */
  code: string;
  question: string;
  /** The present name of the code, if it has one. */
  current?: { name: string; at: vscode.Position };
}

/** A name to choose. */
interface Suggestion extends vscode.QuickPickItem {
  name: string;
  description: string;
}

/** Asks for names and lets the user choose one. Then renames the selected code, or inserts the name before it. */
export async function suggestName(local: LocalModel): Promise<void> {
  if (!(await canAsk(local))) return;
  const subject = await findSubject();
  if (subject === undefined) {
    void vscode.window.showInformationMessage("fm-proxy: Select code in an editor, then ask for a name again.");
    return;
  }
  const names = await withModel(local, "fm-proxy: suggesting a name", (signal, report) =>
    askForNames(local, subject, signal, report),
  );
  if (names === undefined) return;
  const { current } = subject;
  const placeHolder = current === undefined ? "Insert before the selected code" : `A new name for ${current.name}`;
  const chosen = await vscode.window.showQuickPick(names, { title: "fm-proxy: Suggest a Name", placeHolder });
  if (chosen !== undefined) await apply(subject, chosen.name);
}

async function findSubject(): Promise<Subject | undefined> {
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined) return undefined;
  const { document, selection } = editor;
  const range = selection.isEmpty ? document.getWordRangeAtPosition(selection.active) : trimmed(document, selection);
  if (range === undefined || range.isEmpty) return undefined;
  const text = document.getText(range);
  if (isIdentifier(text)) {
    const around = new vscode.Range(Math.max(0, range.start.line - LINES_AROUND), 0, range.end.line + LINES_AROUND, 0);
    const shown = document.getText(document.validateRange(around)).slice(0, MAX_CODE);
    const current = { name: text, at: range.start };
    return { editor, range, text, code: shown, question: `A better name for \`${text}\` in this code:\n\n${shown}`, current };
  }
  const symbol = await firstSymbol(document, range);
  const shown = text.slice(0, MAX_CODE);
  const subject = { editor, range, text, code: shown, question: shown };
  return symbol === undefined ? subject : { ...subject, current: symbol };
}

/** A selection without the white space at its ends. */
function trimmed(document: vscode.TextDocument, range: vscode.Range): vscode.Range {
  const text = document.getText(range);
  const start = document.offsetAt(range.start) + (text.length - text.trimStart().length);
  const end = Math.max(start, document.offsetAt(range.end) - (text.length - text.trimEnd().length));
  return new vscode.Range(document.positionAt(start), document.positionAt(end));
}

/** The first thing that is declared within the range, as the language's extension reports it. */
async function firstSymbol(document: vscode.TextDocument, range: vscode.Range): Promise<Subject["current"]> {
  const command = "vscode.executeDocumentSymbolProvider";
  const symbols = await vscode.commands.executeCommand<vscode.DocumentSymbol[] | undefined>(command, document.uri).then(
    (found) => found ?? [],
    () => [],
  );
  const within: { name: string; at: vscode.Position }[] = [];
  const visit = (symbol: vscode.DocumentSymbol): void => {
    // Some extensions still give the older SymbolInformation, which does not say where the name is.
    const name = symbol.selectionRange === undefined ? "" : document.getText(symbol.selectionRange);
    if (isIdentifier(name) && range.contains(symbol.selectionRange)) within.push({ name, at: symbol.selectionRange.start });
    for (const child of symbol.children ?? []) visit(child);
  };
  for (const symbol of symbols) visit(symbol);
  return within.sort((one, other) => one.at.compareTo(other.at))[0];
}

async function askForNames(
  local: LocalModel,
  { editor, code, question, current }: Subject,
  signal: AbortSignal,
  report: Report,
): Promise<Suggestion[]> {
  const words = wordsOfCode(code);
  const style = styleOf(current?.name, editor.document.languageId);
  const found = new Map<string, Suggestion>();
  for (let answer = 0; answer < ANSWERS; answer++) {
    report(`${answer + 1} of ${ANSWERS}`);
    const { value, source } = await local.client.generate<string>(
      {
        instructions: INSTRUCTIONS,
        input: question,
        sanitize: (text) => slug(String(text)),
        validate: (name) => judge(name, words),
        fallback: () => nameFromText(words, { maxLength: MAX_NAME }) || "name",
        request: { max_output_tokens: 48, reasoning: { effort: "none" }, temperature: answer === 0 ? 0 : VARIED },
      },
      { signal },
    );
    const name = inStyle(value, style);
    const description = source === "local" ? "" : "made of the code's own words";
    if (name !== current?.name && !found.has(name)) found.set(name, { label: name, name, description });
  }
  // The model's own names come first.
  if (found.size > 0) return [...found.values()].sort((one, other) => one.description.length - other.description.length);
  throw new Error(`The model found no other name than ${current?.name ?? ""}. Select more code, then try again.`);
}

function judge(name: string, words: string): true | string {
  if (/^\d/.test(name)) return "It begins with a digit.";
  if (name.split("-").length > MAX_WORDS) return `It has more than ${MAX_WORDS} words.`;
  if (name.length > MAX_NAME) return `It is longer than ${MAX_NAME} characters.`;
  const { score, reasons } = scoreName(name, words);
  return score >= MIN_SCORE || reasons.join(" ");
}

async function apply({ editor, range, text, current }: Subject, name: string): Promise<void> {
  const { uri } = editor.document;
  // The code in the range may have changed while the model worked.
  if (editor.document.getText(range) !== text) {
    void vscode.window.showInformationMessage(CHANGED);
    return;
  }
  if (current !== undefined) {
    const edit = await renameEdit(uri, current.at, name);
    if (edit !== undefined && edit.size > 0) {
      await vscode.workspace.applyEdit(edit);
      return;
    }
  }
  // Without an extension that renames, only the name in this place is replaced.
  const edit = new vscode.WorkspaceEdit();
  if (current === undefined) edit.insert(uri, range.start, `${name} `);
  else edit.replace(uri, new vscode.Range(current.at, current.at.translate(0, current.name.length)), name);
  await vscode.workspace.applyEdit(edit);
}

/** All changes that the language's extension proposes; undefined if it can't rename this. */
async function renameEdit(uri: vscode.Uri, at: vscode.Position, name: string): Promise<vscode.WorkspaceEdit | undefined> {
  try {
    return await vscode.commands.executeCommand("vscode.executeDocumentRenameProvider", uri, at, name);
  } catch {
    return undefined;
  }
}
