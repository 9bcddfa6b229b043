// The part of the git extension's API (version 1) that this extension uses, and a function that finds the repository.
import * as vscode from "vscode";

/** A file that was changed. */
export interface GitChange {
  readonly uri: vscode.Uri;
  readonly status: number;
}

/** The status of a file that Git does not know yet. */
export const UNTRACKED = 7;

/** A repository that is open in the window. */
export interface GitRepository {
  readonly rootUri: vscode.Uri;
  readonly inputBox: { value: string };
  readonly state: {
    readonly indexChanges: readonly GitChange[];
    readonly workingTreeChanges: readonly GitChange[];
    readonly untrackedChanges?: readonly GitChange[];
  };
  readonly ui?: { readonly selected: boolean };
  /** The staged or the unstaged changes, as text. */
  diff(cached?: boolean): Promise<string>;
}

interface GitApi {
  readonly repositories: readonly GitRepository[];
  getRepository(uri: vscode.Uri): GitRepository | null;
}

interface GitExtension {
  readonly enabled: boolean;
  getAPI(version: 1): GitApi;
}

/**
 * The repository that a command is meant for: the repository whose menu was used, that of the editor, the selected one, or else
 * the one that the user picks; undefined if the user picked none.
 *
 * @param source - what VS Code passes from a menu of the Source Control view
 * @throws Error with what to do, if there is none
 */
export async function findRepository(source: unknown): Promise<GitRepository | undefined> {
  const { repositories, getRepository } = await gitApi();
  const of = (uri: vscode.Uri | undefined): GitRepository | null => (uri === undefined ? null : getRepository(uri));
  const named = of((source as { rootUri?: vscode.Uri } | null | undefined)?.rootUri);
  if (named !== null) return named;
  const [first, ...others] = repositories;
  if (first === undefined) {
    throw new Error("There is no Git repository here. Open a folder that has one, or run `git init`, then try again.");
  }
  if (others.length === 0) return first;
  const { activeTextEditor } = vscode.window;
  const likely = of(activeTextEditor?.document.uri) ?? repositories.find(({ ui }) => ui?.selected === true);
  return likely ?? (await pick(repositories));
}

async function gitApi(): Promise<GitApi> {
  const extension = vscode.extensions.getExtension<GitExtension>("vscode.git");
  if (extension === undefined) {
    throw new Error("VS Code's own extension Git is not running here. Enable it, or trust the workspace, then try again.");
  }
  const git = extension.isActive ? extension.exports : await extension.activate();
  if (!git.enabled) throw new Error("Git is switched off. Set git.enabled to true in the settings, then try again.");
  const api = git.getAPI(1);
  return { repositories: api.repositories, getRepository: (uri) => api.getRepository(uri) };
}

async function pick(repositories: readonly GitRepository[]): Promise<GitRepository | undefined> {
  const items = repositories.map((repository) => ({ label: vscode.workspace.asRelativePath(repository.rootUri), repository }));
  return (await vscode.window.showQuickPick(items, { title: "fm-proxy: Write a Commit Message for" }))?.repository;
}
