// The command that downloads a model.
import * as vscode from "vscode";
import { searchModels, type CatalogModel } from "fm-proxy";
import type { LocalModel } from "./local-model.js";
import { tell, withModel } from "./work.js";

/** Lets the user choose a model, and downloads it with a notification that shows the progress. Afterwards this model answers. */
export async function downloadModel(local: LocalModel): Promise<void> {
  const items = (await searchModels()).filter(({ kind }) => kind !== "embedding").map(itemOf);
  const placeHolder = "From huggingface.co, into the folder that all applications share. A download that was cut off goes on.";
  const chosen = await vscode.window.showQuickPick(items, { title: "Download a Model", placeHolder, matchOnDetail: true });
  if (chosen === undefined) return;
  const pulled = await withModel(local, `Downloading ${chosen.label}`, (signal, report) => {
    let last = -1;
    const onProgress = ({ received, total = chosen.size }: { received: number; total?: number }): void => {
      const percent = Math.floor((100 * received) / total);
      if (percent > last) report(`${(last = percent)} % of ${gigabytes(total)}`);
    };
    return local.client.models.pull(chosen.label, { signal, onProgress });
  });
  if (pulled === undefined) return;
  // A change of the setting restarts the client.
  if (!pulled.default) await vscode.workspace.getConfiguration("fm-proxy").update("model", pulled.id, GLOBAL);
  else tell(await local.check());
}

/** The user's settings. */
const GLOBAL = true;

function itemOf({ name, size, memory, licence, goodFor }: CatalogModel): vscode.QuickPickItem & { size: number } {
  const description = `${gigabytes(size)}, about ${gigabytes(memory)} of memory, ${licence}`;
  return { label: name, description, detail: goodFor, size };
}

const gigabytes = (bytes: number): string => `${(bytes / 1e9).toFixed(1)} GB`;
