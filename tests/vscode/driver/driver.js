// An extension that does in VS Code what the test asks for: a line of JSON on a socket, answered by a line of JSON.
"use strict";
const { writeFileSync } = require("node:fs");
const net = require("node:net");
const vscode = require("vscode");

/** Commands that were started, by their number. */
const started = new Map();

const actions = {
  /** The chat models that any extension would get. */
  async models() {
    const models = await vscode.lm.selectChatModels({ vendor: "fm-proxy" });
    return models.map(({ id, name, maxInputTokens }) => ({ id, name, maxInputTokens }));
  },

  /** Asks the model, and cancels after `cancelAfter` pieces; each piece has its time. */
  async chat({ text, cancelAfter }) {
    const [model] = await vscode.lm.selectChatModels({ vendor: "fm-proxy" });
    const source = new vscode.CancellationTokenSource();
    const pieces = [];
    const begun = Date.now();
    let error = null;
    try {
      const response = await model.sendRequest([vscode.LanguageModelChatMessage.User(text)], {}, source.token);
      for await (const piece of response.text) {
        pieces.push({ piece, ms: Date.now() - begun });
        if (pieces.length === cancelAfter) source.cancel();
      }
    } catch (reason) {
      error = String(reason);
    }
    return { pieces, error, ms: Date.now() - begun };
  },

  /** Asks the model with a tool. Then sends the call and its result, and asks for an answer without a call. */
  async useTool({ text, tool, result }) {
    const [model] = await vscode.lm.selectChatModels({ vendor: "fm-proxy" });
    const { LanguageModelChatMessage: Message, LanguageModelTextPart: Text, LanguageModelToolCallPart: Call } = vscode;
    const ask = async (messages, tools) => {
      const options = { tools, modelOptions: { temperature: 0 } };
      const response = await model.sendRequest(messages, options, new vscode.CancellationTokenSource().token);
      const parts = [];
      for await (const part of response.stream) parts.push(part);
      return parts;
    };
    const messages = [Message.User(text)];
    const parts = await ask(messages, [tool]);
    const calls = parts.filter((part) => part instanceof Call);
    const results = calls.map(({ callId }) => new vscode.LanguageModelToolResultPart(callId, [new Text(result)]));
    const answer = await ask([...messages, Message.Assistant(parts), Message.User(results)], []);
    return { calls: calls.map(({ name, input }) => ({ name, input })), answer: answer.map(({ value }) => value).join("") };
  },

  async count({ text }) {
    const [model] = await vscode.lm.selectChatModels({ vendor: "fm-proxy" });
    return model.countTokens(text);
  },

  async isActive({ id }) {
    return vscode.extensions.getExtension(id)?.isActive ?? null;
  },

  /** Shows a file with a part of it selected. */
  async open({ path, from, to }) {
    const document = await vscode.workspace.openTextDocument(path);
    const selection = new vscode.Range(document.positionAt(from), document.positionAt(to));
    await vscode.window.showTextDocument(document, { selection, preview: false });
  },

  async text() {
    return vscode.window.activeTextEditor?.document.getText() ?? null;
  },

  async set({ name, value }) {
    await vscode.workspace.getConfiguration().update(name, value, vscode.ConfigurationTarget.Global);
  },

  /** Starts a command; `ended` says whether it is over. */
  async start({ id, args = [] }) {
    const number = started.size + 1;
    const entry = { over: false };
    started.set(number, entry);
    vscode.commands.executeCommand(id, ...args).then(
      () => (entry.over = true),
      (reason) => Object.assign(entry, { over: true, error: String(reason) }),
    );
    return number;
  },

  async ended({ number }) {
    return started.get(number);
  },

  /** Returns the text in the box of the first repository, once there is a repository with changes. Puts `value` there first. */
  async box({ value }) {
    const git = vscode.extensions.getExtension("vscode.git");
    const api = (git.isActive ? git.exports : await git.activate()).getAPI(1);
    const [repository] = api.repositories;
    if (repository === undefined) return null;
    await repository.status();
    if (value !== undefined) repository.inputBox.value = value;
    const { indexChanges, workingTreeChanges } = repository.state;
    return { value: repository.inputBox.value, staged: indexChanges.length, changed: workingTreeChanges.length };
  },
};

async function answer(line) {
  try {
    const { action, ...params } = JSON.parse(line);
    return { ok: (await actions[action](params)) ?? null };
  } catch (error) {
    return { error: String(error?.stack ?? error) };
  }
}

exports.activate = (context) => {
  // Each extension host has its own socket, and the file has the name of the newest one. The extension host of a window that was
  // reloaded may end after the next one has begun, and takes only its own socket with it.
  const file = process.env.FM_TEST_DRIVER;
  const path = `${file}-${process.pid}`;
  const server = net.createServer((socket) => {
    let buffer = "";
    socket.on("error", () => {});
    socket.on("data", async (chunk) => {
      buffer += chunk;
      const lines = buffer.split("\n");
      buffer = lines.pop();
      for (const line of lines) socket.write(`${JSON.stringify(await answer(line))}\n`);
    });
  });
  server.listen(path, () => writeFileSync(file, path));
  context.subscriptions.push({ dispose: () => server.close() });
};
