// The extension's entry: what VS Code calls when it starts and ends.
import * as vscode from "vscode";
import { writeCommitMessage } from "./commit.js";
import { downloadModel } from "./download.js";
import { LocalModel } from "./local-model.js";
import { ChatProvider } from "./provider.js";
import { StatusItem } from "./status.js";
import { suggestName } from "./suggest.js";
import { tell } from "./work.js";

/** The name under which the models are registered, as in package.json. */
const VENDOR = "fm-proxy";

let local: LocalModel | undefined;

/** Registers everything and returns; whether the model can be used is found out afterwards. */
export function activate(context: vscode.ExtensionContext): void {
  const model = new LocalModel(context.globalStorageUri.fsPath);
  local = model;
  const provider = new ChatProvider(model);
  context.subscriptions.push(
    model,
    new StatusItem(model),
    provider,
    vscode.lm.registerLanguageModelChatProvider(VENDOR, provider),
    vscode.commands.registerCommand("fm-proxy.suggestName", () => suggestName(model)),
    vscode.commands.registerCommand("fm-proxy.writeCommitMessage", (source) => writeCommitMessage(model, source)),
    vscode.commands.registerCommand("fm-proxy.downloadModel", () => downloadModel(model)),
    vscode.commands.registerCommand("fm-proxy.recheck", async () => tell(await model.check({ recheck: true }))),
    model.onDidChange(({ kind }) => void vscode.commands.executeCommand("setContext", "fm-proxy.ready", kind === "ready")),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("fm-proxy")) model.restart();
    }),
  );
  void model.check();
}

/** VS Code waits for the returned promise: when it settles, no process of ours is left. */
export async function deactivate(): Promise<void> {
  await local?.close();
  local = undefined;
}
