// The one item in the status bar: the model's name, or, quietly, why there is none.
import * as vscode from "vscode";
import type { LocalModel, Status } from "./local-model.js";

/** Shows the state of the local model. A click checks it again, or downloads a model if there is none. */
export class StatusItem implements vscode.Disposable {
  readonly #item = vscode.window.createStatusBarItem("fm-proxy.status", vscode.StatusBarAlignment.Right, 0);
  readonly #listener: vscode.Disposable;

  /** The item stays hidden until something is known. */
  constructor(local: LocalModel) {
    this.#item.name = "fm-proxy";
    this.#listener = local.onDidChange((status) => this.#show(status));
  }

  /** Takes the item away. */
  dispose(): void {
    this.#listener.dispose();
    this.#item.dispose();
  }

  #show(status: Status): void {
    if (status.kind === "unknown") return this.#item.hide();
    const getsOne = status.kind === "absent" && status.lacksFile === true;
    this.#item.command = getsOne ? "fm-proxy.downloadModel" : "fm-proxy.recheck";
    const { text, tooltip } = status.kind === "ready" ? ready(status.models[0]?.id) : absent(status);
    this.#item.text = text;
    this.#item.tooltip = tooltip;
    // Screen readers would spell out the icon.
    this.#item.accessibilityInformation = { label: `fm-proxy: ${tooltip}`, role: "button" };
    this.#item.show();
  }
}

function ready(id = "fm-proxy"): { text: string; tooltip: string } {
  return { text: `$(chip) ${id}`, tooltip: `Local model ${id}: ready. It runs on this machine. Click to check again.` };
}

function absent({ reasonCode, detail, lacksFile }: Status & { kind: "absent" }): { text: string; tooltip: string } {
  // Users of the extension have no command line of the package.
  const what = `No local model. ${reasonCode}: ${detail.replace(/: npx fm-proxy .*$/, ".")}`;
  if (lacksFile !== true) return { text: "$(circle-slash) fm-proxy", tooltip: `${what}\n\nClick to check again.` };
  // The helper names its own options.
  const tooltip = `${what}\n\nIn VS Code, the setting fm-proxy.model names a model file.\n\nClick to download a model.`;
  return { text: "$(cloud-download) No model: click to get one", tooltip };
}
