// Work that the user asked for and may cancel.
import * as vscode from "vscode";
import { asFmError, type LocalModel, type Status } from "./local-model.js";

/** How long a note in the status bar stays. */
export const SHOWN_MS = 5000;
/** VS Code cuts a longer note. */
const ABSENT = 'No local model: point at "fm-proxy" on the right';

/** Runs a function with a signal that the token aborts. If it was cancelled, rejects with a CancellationError. */
export async function cancellable<T>(
  token: vscode.CancellationToken,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const abort = (): void => controller.abort(new vscode.CancellationError());
  if (token.isCancellationRequested) abort();
  const listener = token.onCancellationRequested(abort);
  try {
    return await run(controller.signal);
  } finally {
    listener.dispose();
  }
}

/** Reports the progress of the work. */
export type Report = (message: string) => void;

/** Whether the model can be asked. If not, the status bar says so for a moment; nothing pops up. */
export async function canAsk(local: LocalModel): Promise<boolean> {
  const ready = await local.isReady();
  if (!ready) tell(local.status);
  return ready;
}

/** Shows in the status bar, for a moment, what is known of the model. */
export function tell(status: Status): void {
  const { kind } = status;
  if (kind === "unknown") return;
  const text = kind === "ready" ? `Local model ready: ${status.models[0]?.id ?? ""}` : ABSENT;
  vscode.window.setStatusBarMessage(text, SHOWN_MS);
}

/**
 * Runs a command's work with the model, under a notification with a Cancel button.
 *
 * @returns the result; undefined if the user cancelled, or if the work failed; an error message has then reported that
 */
export async function withModel<T>(
  local: LocalModel,
  title: string,
  run: (signal: AbortSignal, report: Report) => Promise<T>,
): Promise<T | undefined> {
  const options = { location: vscode.ProgressLocation.Notification, title, cancellable: true };
  try {
    return await vscode.window.withProgress(options, (progress, token) =>
      cancellable(token, (signal) => run(signal, (message) => progress.report({ message }))),
    );
  } catch (error) {
    if (error instanceof vscode.CancellationError) return undefined;
    const { code, detail } = asFmError(error);
    local.log.error(`${title}: ${code}: ${detail}`);
    void vscode.window.showErrorMessage(`fm-proxy: ${detail}`);
    return undefined;
  }
}
