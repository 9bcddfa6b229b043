import { spawn, type ChildProcess } from "node:child_process";
import { statSync } from "node:fs";
import { FmError } from "./errors.js";

/** Bytes that may wait for a helper that does not read. */
const MAX_UNWRITTEN_BYTES = 64 * 1024 * 1024;
/** How long the last output may still come after the exit was seen. */
const DRAIN_MS = 100;

/** How a helper process is started. */
export interface SpawnOptions {
  path: string;
  args: readonly string[];
  env: Record<string, string>;
  cwd: string | undefined;
  stderr: "ignore" | "inherit" | ((text: string) => void);
}

/** What a helper process tells its owner. */
export interface ProcessEvents {
  onBytes(bytes: Uint8Array): void;
  /** Comes exactly once: it could not be started, has ended, or cannot be written to any more. */
  onEnd(error: FmError): void;
}

/** One child process and its pipes. Nothing else in this package knows about child processes. */
export class HelperProcess {
  readonly #child: ChildProcess;
  readonly #events: ProcessEvents;
  readonly #path: string;
  /** Resolves when the process is gone. */
  readonly exited: Promise<void>;
  #ended = false;

  /** Starts the process. Throws an FmError (SPAWN_FAILED) for what the system refuses at once. */
  constructor(options: SpawnOptions, events: ProcessEvents) {
    this.#events = events;
    this.#path = options.path;
    const { path, args, env, cwd, stderr } = options;
    try {
      this.#child = spawn(path, args, {
        env,
        cwd,
        stdio: ["pipe", "pipe", typeof stderr === "string" ? stderr : "pipe"],
        windowsHide: true,
      });
    } catch (error) {
      throw spawnError(error, path, cwd);
    }
    this.exited = this.#listen(cwd, stderr);
  }

  /** Writes one whole frame. Throws an FmError (OVERLOADED) when the helper has stopped reading. */
  write(bytes: Uint8Array): void {
    const stdin = this.#child.stdin;
    if (this.#ended || stdin === null) return;
    if (stdin.writableLength + bytes.length > MAX_UNWRITTEN_BYTES) {
      throw new FmError("OVERLOADED", "The helper does not read its input; too much is waiting for it.");
    }
    stdin.write(bytes);
  }

  /** Ends the process at once. */
  kill(): void {
    this.#child.kill("SIGKILL");
  }

  /** Says whether the process keeps Node's event loop alive. */
  setBusy(busy: boolean): void {
    const verb = busy ? "ref" : "unref";
    this.#child[verb]();
    for (const stream of [this.#child.stdin, this.#child.stdout, this.#child.stderr]) {
      (stream as { ref?(): void; unref?(): void } | null)?.[verb]?.();
    }
  }

  #listen(cwd: string | undefined, stderr: SpawnOptions["stderr"]): Promise<void> {
    const child = this.#child;
    child.stdout?.on("data", (chunk: Uint8Array) => {
      if (!this.#ended) this.#events.onBytes(chunk);
    });
    child.stdout?.on("error", () => {});
    // A dead helper's stdin gives EPIPE; the exit follows and says more.
    child.stdin?.on("error", () => this.#endSoon("closed its input"));
    if (typeof stderr === "function") {
      child.stderr?.setEncoding("utf8").on("data", stderr);
      child.stderr?.on("error", () => {});
    }
    return new Promise((resolve) => {
      child.on("error", (error) => {
        if (child.pid !== undefined) return;
        this.#end(spawnError(error, this.#path, cwd));
        resolve();
      });
      child.on("exit", (code, signal) => {
        resolve();
        this.#endSoon(signal === null ? `ended with status ${code}` : `was ended by ${signal}`);
      });
      child.on("close", (code, signal) => {
        this.#endNow(signal === null ? `ended with status ${code}` : `was ended by ${signal}`);
      });
    });
  }

  /** Gives what is still in the pipe a moment; "close" comes when it is empty. */
  #endSoon(how: string): void {
    if (this.#ended) return;
    setTimeout(() => this.#endNow(how), DRAIN_MS).unref();
  }

  #endNow(how: string): void {
    this.#end(new FmError("HELPER_EXITED", `The helper ${how}.`));
  }

  #end(error: FmError): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#child.kill("SIGKILL");
    this.#child.stdin?.destroy();
    this.#child.stdout?.destroy();
    this.#child.stderr?.destroy();
    this.#events.onEnd(error);
  }
}

/** Says which file is to blame: the system reports a missing working directory as a missing program. */
function spawnError(error: unknown, path: string, cwd: string | undefined): FmError {
  const code = (error as NodeJS.ErrnoException).code ?? (error as Error).message;
  const fields = { cause: error };
  if (cwd !== undefined && !isDirectory(cwd)) {
    return new FmError("SPAWN_FAILED", `The helper's working directory ${cwd} is not a directory (${code}).`, fields);
  }
  const why: Record<string, string> = {
    ENOENT: "does not exist, or needs an interpreter or a library loader that does not exist",
    EACCES: isDirectory(path) ? "is a directory" : "is not executable",
    ENOEXEC: "is not a program for this machine",
    ETXTBSY: "is being written",
  };
  return new FmError("SPAWN_FAILED", `The helper ${path} ${why[code] ?? "could not be started"} (${code}).`, fields);
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}
