// A stand-in for the parts of the module `vscode` that the extension in packaging/vscode uses, and the extension loaded on it.
// It records what the user would see; functions of the test do what the user would do.
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { compileFunction } from "node:vm";
import { bundle } from "../../../packaging/vscode/bundle.mjs";
import { temporaryFolder } from "./helper.mjs";

const here = dirname(fileURLToPath(import.meta.url));
/** The folder that the bundle has in a VSIX, as the extension sees it. */
const dist = join(here, "..", "..", "..", "packaging", "vscode", "dist");
let text;

/** The extension's module with a separate `vscode`. A test that has activated it need not deactivate it. */
export function loadExtension(t, options = {}) {
  text ??= bundle();
  const vscode = standIn(options);
  const file = join(options.folder ?? dist, "extension.js");
  const node = createRequire(file);
  const module = { exports: {} };
  const wrapper = compileFunction(text, ["require", "module", "exports", "__filename", "__dirname"], { filename: file });
  wrapper((name) => (name === "vscode" ? vscode.api : node(name)), module, module.exports, file, dirname(file));
  const context = { subscriptions: [], globalStorageUri: Uri.file(temporaryFolder(t)) };
  let active = false;
  const extension = {
    ...vscode,
    context,
    activate() {
      active = true;
      module.exports.activate(context);
    },
    async deactivate() {
      if (!active) return;
      active = false;
      await module.exports.deactivate();
      for (const subscription of context.subscriptions) subscription.dispose();
    },
  };
  t.after(() => extension.deactivate());
  return extension;
}

class EventEmitter {
  #listeners = new Set();
  event = (listener) => {
    this.#listeners.add(listener);
    return { dispose: () => this.#listeners.delete(listener) };
  };
  fire(value) {
    for (const listener of [...this.#listeners]) listener(value);
  }
  dispose() {
    this.#listeners.clear();
  }
}

export class CancellationTokenSource {
  #emitter = new EventEmitter();
  token = { isCancellationRequested: false, onCancellationRequested: this.#emitter.event };
  cancel() {
    this.token.isCancellationRequested = true;
    this.#emitter.fire();
  }
}

export class CancellationError extends Error {
  constructor() {
    super("Canceled");
    this.name = "Canceled";
  }
}

export class Position {
  constructor(line, character) {
    Object.assign(this, { line, character });
  }
  compareTo(other) {
    return this.line - other.line || this.character - other.character;
  }
  translate(lines, characters) {
    return new Position(this.line + lines, this.character + characters);
  }
}

export class Range {
  constructor(...numbers) {
    const [start, end] =
      numbers.length === 4 ? [new Position(numbers[0], numbers[1]), new Position(numbers[2], numbers[3])] : numbers;
    Object.assign(this, { start, end, active: end });
  }
  get isEmpty() {
    return this.start.compareTo(this.end) === 0;
  }
  contains(range) {
    return this.start.compareTo(range.start) <= 0 && this.end.compareTo(range.end) >= 0;
  }
}

export class Uri {
  static file = (path) => Object.assign(new Uri(), { fsPath: path, path });
  toString() {
    return `file://${this.path}`;
  }
}

class WorkspaceEdit {
  changes = [];
  get size() {
    return this.changes.length;
  }
  insert(uri, position, newText) {
    this.replace(uri, new Range(position, position), newText);
  }
  replace(uri, range, newText) {
    this.changes.push({ uri, range, newText });
  }
}

class LanguageModelTextPart {
  constructor(value) {
    this.value = value;
  }
}
class LanguageModelToolCallPart {
  constructor(callId, name, input) {
    Object.assign(this, { callId, name, input });
  }
}
class LanguageModelToolResultPart {
  constructor(callId, content) {
    Object.assign(this, { callId, content });
  }
}
class LanguageModelError extends Error {
  static NotFound = (message) => Object.assign(new LanguageModelError(message), { code: "NotFound" });
  static Blocked = (message) => Object.assign(new LanguageModelError(message), { code: "Blocked" });
}

/** A document with one text, which edits change. */
export class TextDocument {
  constructor(content, languageId = "javascript", uri = Uri.file("/work/file.js")) {
    Object.assign(this, { content, languageId, uri });
  }
  getText(range) {
    return range === undefined ? this.content : this.content.slice(this.offsetAt(range.start), this.offsetAt(range.end));
  }
  offsetAt({ line, character }) {
    const before = this.content.split("\n").slice(0, line);
    return before.reduce((sum, each) => sum + each.length + 1, 0) + character;
  }
  positionAt(offset) {
    const before = this.content.slice(0, offset).split("\n");
    return new Position(before.length - 1, before.at(-1).length);
  }
  validateRange({ start, end }) {
    const last = this.positionAt(this.content.length);
    return new Range(start, end.compareTo(last) > 0 ? last : end);
  }
  getWordRangeAtPosition(position) {
    const offset = this.offsetAt(position);
    const before = /\w*$/.exec(this.content.slice(0, offset))[0].length;
    const after = /^\w*/.exec(this.content.slice(offset))[0].length;
    return before + after === 0 ? undefined : new Range(this.positionAt(offset - before), this.positionAt(offset + after));
  }
  /** The range of a text within it. */
  find(part) {
    const offset = this.content.indexOf(part);
    return new Range(this.positionAt(offset), this.positionAt(offset + part.length));
  }
}

/** An editor with a part of its document selected. */
export function editorOf(document, selected) {
  return { document, selection: typeof selected === "string" ? document.find(selected) : selected };
}

/**
 * The module, and records of its use:
 *   popUps    each message that the user would have to read
 *   notes     the short messages of the status bar
 *   items     the items of the status bar
 *   picks     the lists that were offered
 *   progress  the notifications with progress
 */
function standIn({ settings = {}, editor, git, choose = () => undefined, onProgress = () => {}, executes = {} }) {
  const seen = { popUps: [], notes: [], items: [], picks: [], progress: [], logged: [], contexts: {}, providers: {} };
  const commands = new Map();
  const configuration = new EventEmitter();
  const pop = (kind) => async (message) => void seen.popUps.push({ kind, message });
  const log = (message) => void seen.logged.push(message);
  const api = {
    EventEmitter, CancellationError, CancellationTokenSource, Position, Range, Uri, WorkspaceEdit,
    LanguageModelTextPart, LanguageModelToolCallPart, LanguageModelToolResultPart, LanguageModelError,
    StatusBarAlignment: { Left: 1, Right: 2 },
    ProgressLocation: { SourceControl: 1, Window: 10, Notification: 15 },
    LanguageModelChatMessageRole: { User: 1, Assistant: 2 },
    LanguageModelChatToolMode: { Auto: 1, Required: 2 },
    window: {
      get activeTextEditor() {
        return editor;
      },
      createStatusBarItem(id) {
        const item = { id, shown: false, show: () => void (item.shown = true), hide: () => void (item.shown = false) };
        item.dispose = item.hide;
        seen.items.push(item);
        return item;
      },
      createOutputChannel: () => ({ info: log, warn: log, error: log, dispose() {} }),
      setStatusBarMessage: (message) => void seen.notes.push(message),
      showInformationMessage: pop("information"),
      showWarningMessage: pop("warning"),
      showErrorMessage: pop("error"),
      async showQuickPick(items, options) {
        seen.picks.push({ items, options });
        return choose(items);
      },
      async withProgress(options, run) {
        const source = new CancellationTokenSource();
        const entry = { ...options, messages: [] };
        seen.progress.push(entry);
        const report = ({ message }) => entry.messages.push(message);
        onProgress({ cancel: () => source.cancel() });
        return run({ report }, source.token);
      },
    },
    commands: {
      registerCommand(id, run) {
        commands.set(id, run);
        return { dispose: () => commands.delete(id) };
      },
      async executeCommand(id, ...args) {
        if (id === "setContext") return void (seen.contexts[args[0]] = args[1]);
        if (commands.has(id)) return commands.get(id)(...args);
        return executes[id]?.(...args);
      },
    },
    workspace: {
      getConfiguration: (section) => ({
        get: (name) => settings[`${section}.${name}`],
        update: async (name, value) => change({ [`${section}.${name}`]: value }),
      }),
      onDidChangeConfiguration: configuration.event,
      asRelativePath: (uri) => uri.path.replace(/^\/work\//, ""),
      async applyEdit(edit) {
        const { document } = editor;
        const changes = [...edit.changes].sort((one, other) => other.range.start.compareTo(one.range.start));
        for (const { range, newText } of changes) {
          const [start, end] = [document.offsetAt(range.start), document.offsetAt(range.end)];
          document.content = document.content.slice(0, start) + newText + document.content.slice(end);
        }
        return true;
      },
    },
    lm: {
      registerLanguageModelChatProvider(vendor, provider) {
        seen.providers[vendor] = provider;
        return { dispose: () => delete seen.providers[vendor] };
      },
    },
    extensions: { getExtension: (id) => (id === "vscode.git" ? git : undefined) },
  };
  function change(changed) {
    Object.assign(settings, changed);
    configuration.fire({ affectsConfiguration: (section) => Object.keys(changed).some((name) => name.startsWith(section)) });
  }
  return { api, seen, change, run: (id, ...args) => api.commands.executeCommand(id, ...args) };
}

/** One of the extension's modules that do not use VS Code. */
export function loadModule(name) {
  const require = createRequire(join(here, "..", "..", "..", "js-shim", "package.json"));
  const entryPoints = [join(here, "..", "..", "..", "packaging", "vscode", "src", `${name}.ts`)];
  const { outputFiles } = require("esbuild").buildSync({ entryPoints, bundle: true, format: "esm", write: false });
  return import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);
}
