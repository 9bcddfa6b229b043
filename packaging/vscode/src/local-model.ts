// The local model as this extension sees it: one client of the package fm-proxy, and what is known of it.
import { homedir } from "node:os";
import { join } from "node:path";
import * as vscode from "vscode";
import { createClient, FmError, type Client, type ClientOptions, type StateChange } from "fm-proxy";

/** A model that can be asked. */
export interface ModelEntry {
  id: string;
  /** Whether it is the default model, which answers requests that name no model. */
  isDefault: boolean;
  /** Whether it is Apple's own, which has a shorter context than the others. */
  isApple: boolean;
}

/** What is known of the local model. */
export type Status =
  | { kind: "unknown" }
  | { kind: "ready"; models: readonly ModelEntry[]; tools: boolean; countsTokens: boolean }
  | { kind: "absent"; reasonCode: string; detail: string; lacksFile?: boolean };

const NO_HELPER =
  `This build of the extension has no helper program for ${process.platform}-${process.arch}. Install the build for it, ` +
  "or name a program fm-proxy in the setting fm-proxy.helperPath.";

/** The client, its settings, and what is known of it. */
export class LocalModel implements vscode.Disposable {
  /** What the helper logs, and why there is no model. */
  readonly log = vscode.window.createOutputChannel("fm-proxy", { log: true });
  readonly #storageDir: string;
  readonly #changed = new vscode.EventEmitter<Status>();
  /** The closing of clients whose settings have changed since. */
  readonly #closing = new Set<Promise<void>>();
  #client: Client;
  #status: Status = { kind: "unknown" };
  #closed = false;

  /** Reports each change of what is known. */
  readonly onDidChange = this.#changed.event;

  /** Starts nothing yet. The helper is copied to `storageDir` if it can't be run where the extension lies. */
  constructor(storageDir: string) {
    this.#storageDir = storageDir;
    this.#client = this.#newClient();
  }

  /** The client for the present settings. */
  get client(): Client {
    return this.#client;
  }

  /** What is known already. Does not ask the helper. */
  get status(): Status {
    return this.#status;
  }

  /**
   * Finds out whether there is a model, and which; never throws. Loads no model.
   *
   * @param options - `recheck` checks again even if the last result is still valid
   */
  async check({ recheck = false } = {}): Promise<Status> {
    const client = this.#client;
    const status = await look(client, recheck);
    // If the settings changed meanwhile, another check is made for them.
    if (client === this.#client) this.#set(status);
    return this.#status;
  }

  /** Whether the model can be asked. Checks again, unless the last check found the model ready. */
  async isReady(): Promise<boolean> {
    return (this.#status.kind === "ready" ? this.#status : await this.check()).kind === "ready";
  }

  /** Restarts with the present settings. */
  restart(): void {
    if (this.#closed) return;
    this.#end(this.#client);
    this.#client = this.#newClient();
    this.#set({ kind: "unknown" });
    void this.check();
  }

  /** Closes the client. Resolves when no process is left. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#end(this.#client);
    await Promise.all(this.#closing);
  }

  /** Closes everything without waiting. */
  dispose(): void {
    void this.close();
    this.#changed.dispose();
    this.log.dispose();
  }

  #newClient(): Client {
    const client = createClient(clientOptions(this.#storageDir));
    client.on("state", (change) => {
      if (client === this.#client) this.#follow(change);
    });
    client.on("log", (text) => {
      if (!this.#closed) this.log.info(text.trimEnd());
    });
    return client;
  }

  /** Checks again if a new state of the helper contradicts the last check. */
  #follow({ state }: StateChange): void {
    const { kind } = this.#status;
    const lost = kind === "ready" && (state === "waiting" || state === "refused");
    const found = kind === "absent" && state === "ready";
    if (lost || found) void this.check();
  }

  #set(status: Status): void {
    if (this.#closed || JSON.stringify(status) === JSON.stringify(this.#status)) return;
    this.#status = status;
    if (status.kind === "ready") this.log.info(`Ready: ${status.models.map(({ id }) => id).join(", ")}`);
    if (status.kind === "absent") this.log.info(`No model: ${status.reasonCode}: ${status.detail}`);
    this.#changed.fire(status);
  }

  #end(client: Client): void {
    const closing = client.close().finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }
}

async function look(client: Client, recheck: boolean): Promise<Status> {
  const report = await client.compatibility.check({ recheck });
  if (!report.compatible) {
    const { reason_code: reasonCode = "HELPER_UNHEALTHY", engines, tried } = report;
    // If no helper was found, the package's text is for programmers.
    const detail = (tried === undefined ? report.detail : NO_HELPER) ?? "";
    const alone = [{ name: settingOf("engine"), reason_code: reasonCode }];
    const lacksFile = (engines ?? alone).some((it) => it.name !== "apple" && it.reason_code === "MODEL_NOT_READY");
    return { kind: "absent", reasonCode, detail, lacksFile };
  }
  try {
    const { engine, models, features } = await client.capabilities.get();
    const entries = models.map(({ id, default: isDefault, engine: name = engine.name }) => {
      return { id, isDefault, isApple: name === "apple" };
    });
    entries.sort((one, other) => Number(other.isDefault) - Number(one.isDefault));
    return { kind: "ready", models: entries, tools: features.tools === true, countsTokens: features.input_tokens !== false };
  } catch (error) {
    const { code, detail } = asFmError(error);
    return { kind: "absent", reasonCode: code, detail };
  }
}

/** Makes an FmError, with a code and a sentence, of anything that was thrown. */
export function asFmError(error: unknown): FmError {
  return error instanceof FmError ? error : new FmError("INTERNAL", error instanceof Error ? error.message : String(error));
}

function clientOptions(storageDir: string): ClientOptions {
  const engine = settingOf("engine");
  // Without an engine the helper does what "auto" means here. With "auto" it would ask Apple's model first.
  const engines = engine === "auto" ? {} : { engine };
  return { storageDir, ...engines, model: settingOf("model"), helperPath: settingOf("helperPath") };
}

/** The user's setting; undefined: none, or not a text. */
function settingOf(name: string): string | undefined {
  const value = vscode.workspace.getConfiguration("fm-proxy").get<unknown>(name);
  return typeof value === "string" && value.trim() !== "" ? withHome(value.trim()) : undefined;
}

/** Replaces `~/` by the home folder, as a shell does. */
function withHome(path: string): string {
  return path.startsWith("~/") ? join(homedir(), path.slice(2)) : path;
}
