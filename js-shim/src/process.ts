// A child process and its pipes: the only file that knows child_process.
import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, statSync, writeSync } from "node:fs";
import { resolve } from "node:path";
import { StringDecoder } from "node:string_decoder";
import { FmError } from "./errors.js";
import { callBack, warnOf } from "./events.js";
import { kindOf, type FileKind } from "./file-kind.js";
import { whyNotStarted } from "./start-error.js";

/** Bytes that may wait for a helper that does not read. */
const MAX_UNWRITTEN_BYTES = 64 * 1024 * 1024;
/** How long to wait for the last output after the exit was seen. */
const DRAIN_MS = 100;
/** How many bytes of a helper's stderr are kept until its first answer. */
const MAX_LAST_WORDS_BYTES = 2048;

/** Signals that a process causes by its own fault. */
const CRASHES: ReadonlySet<string> = new Set(["SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE", "SIGSYS", "SIGTRAP"]);

/**
 * Whether a helper leads its own process group (setsid). A terminal sends Ctrl-C to the whole group of the host, which may
 * handle it and go on. The helper still ends with its host, because it sees the end of its input and of its parent. On
 * Windows the helper has its own console (windowsHide), and `detached` means something else.
 */
const OWN_GROUP = process.platform !== "win32";

/** How a helper process is started. */
export interface SpawnOptions {
  path: string;
  /** Who named the path; used in errors. */
  origin: string;
  args: readonly string[];
  /** The settings in the arguments and the environment, such as `engine "fake"`; used in errors. */
  settings: readonly string[];
  env: Record<string, string>;
  cwd: string | undefined;
  /** Returns the present receiver of the helper's standard error: nobody, this process's own, or a function. */
  stderr: () => "ignore" | "inherit" | ((text: string) => unknown);
}

/** The events that a helper process reports to its owner. */
export interface ProcessEvents {
  onBytes(bytes: Uint8Array): void;
  /** Called exactly once: the helper could not be started, has ended, or has closed its input. */
  onEnd(error: FmError): void;
}

/** One child process and its pipes. Nothing else in this package knows about child processes. */
export class HelperProcess {
  readonly #child: ChildProcess;
  readonly #events: ProcessEvents;
  readonly #options: SpawnOptions;
  /** Resolves when the process is gone. */
  readonly exited: Promise<void>;
  #ended = false;
  #crashed = false;
  /** The last bytes of its stderr until its first answer; null afterwards. */
  #lastWords: Buffer | null = Buffer.alloc(0);
  /** Whether the host was warned that its onLog throws. */
  #warned = false;

  /** Starts the process. Throws an FmError (SPAWN_FAILED) if the system refuses that at once. */
  constructor(options: SpawnOptions, events: ProcessEvents) {
    this.#events = events;
    this.#options = options;
    const { path, args, env, cwd } = options;
    try {
      this.#child = spawn(path, args, { env, cwd, stdio: "pipe", windowsHide: true, detached: OWN_GROUP });
    } catch (error) {
      throw spawnError(error, options);
    }
    this.#readStderr();
    this.exited = this.#listen();
  }

  /** Whether the process ended by its own fault, not because it was asked or forced to end. */
  get crashed(): boolean {
    return this.#crashed;
  }

  /** Notes that the helper has answered. Its stderr is not kept any more. */
  setReady(): void {
    this.#lastWords = null;
  }

  /** The program, its settings and its last output, for errors of a start. The text begins with a space. */
  describeStart(): string {
    const { path, origin, settings } = this.#options;
    const told = settings.length > 0 ? `, started with ${settings.join(", ")}` : "";
    const words = this.lastWords;
    return ` It is ${path}, from ${origin}${told}.${words === "" ? "" : ` It said: ${words}`}`;
  }

  /** The last output on stderr before its first answer, in one line; empty afterwards. */
  get lastWords(): string {
    return oneLine(this.#lastWords ?? Buffer.alloc(0));
  }

  /** Writes one whole frame. Throws an FmError (OVERLOADED) when the helper has stopped reading. */
  write(bytes: Uint8Array): void {
    // If no descriptor is free, Node makes a child without pipes. The event "error" follows.
    const stdin = this.#child.stdin as ChildProcess["stdin"] | undefined;
    if (this.#ended || stdin == null) return;
    if (stdin.writableLength + bytes.length > MAX_UNWRITTEN_BYTES) {
      throw new FmError("OVERLOADED", "The helper does not read its input; too much is waiting for it.");
    }
    stdin.write(bytes);
  }

  /** Asks the process to end. */
  terminate(): void {
    this.#signal("SIGTERM");
  }

  /** Ends the process at once. */
  kill(): void {
    this.#signal("SIGKILL");
  }

  /**
   * Sends a signal, but only to a process that has started. For Node, a process that could not be started has the number 0 until
   * the error is reported. A signal to 0 goes to the whole process group of the host (kill(2)).
   */
  #signal(signal: "SIGTERM" | "SIGKILL"): void {
    if (this.#child.pid !== undefined) this.#child.kill(signal);
  }

  /** Sets whether the process keeps Node's event loop alive. */
  setBusy(busy: boolean): void {
    const verb = busy ? "ref" : "unref";
    this.#child[verb]();
    for (const stream of [this.#child.stdin, this.#child.stdout, this.#child.stderr]) {
      (stream as { ref?(): void; unref?(): void } | null)?.[verb]?.();
    }
  }

  /** Reads stderr. It is always a pipe, because an error must have the last output of a helper that failed. */
  #readStderr(): void {
    const decoder = new StringDecoder("utf8");
    this.#child.stderr?.on("error", () => {});
    this.#child.stderr?.on("data", (chunk: Buffer) => {
      if (this.#lastWords !== null) {
        this.#lastWords = Buffer.concat([this.#lastWords, chunk]).subarray(-MAX_LAST_WORDS_BYTES);
      }
      const reader = this.#options.stderr();
      if (reader === "inherit") writeToStderr(chunk);
      else if (reader !== "ignore") this.#log(reader, decoder.write(chunk));
    });
  }

  /** Calls the host's onLog. If it throws, the host is warned once. */
  #log(onLog: (text: string) => unknown, text: string): void {
    callBack("onLog", onLog, text, (what, error) => {
      if (!this.#warned) warnOf(what, error);
      this.#warned = true;
    });
  }

  #listen(): Promise<void> {
    const child = this.#child;
    child.stdout?.on("data", (chunk: Uint8Array) => {
      if (!this.#ended) this.#events.onBytes(chunk);
    });
    child.stdout?.on("error", () => {});
    // Writing to a dead helper gives EPIPE. The event "exit" follows, and its error says more.
    child.stdin?.on("error", () => this.#endSoon("closed its input"));
    return new Promise((exited) => {
      child.on("error", (error) => {
        if (child.pid !== undefined) return;
        this.#end(spawnError(error, this.#options));
        exited();
      });
      child.on("exit", (code, signal) => {
        exited();
        this.#crashed = signal === null ? code !== 0 : CRASHES.has(signal);
        this.#endSoon(signal === null ? `ended with status ${code}` : `was ended by ${signal}`);
      });
      child.on("close", (code, signal) => {
        this.#endNow(signal === null ? `ended with status ${code}` : `was ended by ${signal}`);
      });
    });
  }

  /** Waits a moment for output that is still in the pipe. The event "close" comes when the pipe is empty. */
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
    this.kill();
    this.#child.stdin?.destroy();
    this.#child.stdout?.destroy();
    this.#child.stderr?.destroy();
    this.#events.onEnd(error);
  }
}

/** Says which file is to blame: the system reports a missing working directory as a missing program. */
export function spawnError(error: unknown, { path, origin, cwd }: Pick<SpawnOptions, "path" | "origin" | "cwd">): FmError {
  const code = (error as NodeJS.ErrnoException).code ?? (error as Error).message;
  const fields = { cause: error };
  if (cwd !== undefined && !isDirectory(cwd)) {
    const what = `The helper's working directory ${resolve(cwd)}, from the option cwd, is not a directory (${code}).`;
    return new FmError("SPAWN_FAILED", what, fields);
  }
  const what = `The helper ${path} ${whatIsWrong(path, error)} (${code}). The path is from ${origin}.`;
  return new FmError("SPAWN_FAILED", what, fields);
}

/** The reason why a file can't be run, by its kind. The system's error does not give it. */
const WHAT_IT_IS: Partial<Record<FileKind, string>> = {
  folder: "is a directory",
  other: "is not a program",
  closed: "may not be read or run by this user",
};

/**
 * Describes the fault of a program. The system reports the same error for a missing program and for one with a missing loader.
 */
function whatIsWrong(path: string, error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "EACCES") return WHAT_IT_IS[kindOf(path)] ?? whyNotStarted(error);
  if (code !== "ENOENT") return whyNotStarted(error);
  if (!/[\\/]/.test(path)) return "is in no folder of PATH";
  return existsSync(path) ? "needs an interpreter or a library loader that does not exist" : "does not exist";
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

/** Writes to standard error, as the child itself would. It does not use process.stderr, whose errors would go to the host. */
function writeToStderr(chunk: Uint8Array): void {
  try {
    for (let at = 0; at < chunk.length;) at += writeSync(2, chunk, at);
  } catch {
    // Standard error is closed or full: the log is lost, as it would be with the child.
  }
}

/** Turns a program's output into a part of a sentence, without half characters and control characters. */
function oneLine(words: Buffer): string {
  let start = 0;
  while (start < 3 && ((words[start] ?? 0) & 0xc0) === 0x80) start++;
  const lines = words
    .subarray(start)
    .toString("utf8")
    .split(/[\r\n]+/)
    .map((line) => line.replace(/\p{Cc}+/gu, " ").trim());
  return lines.filter((line) => line !== "").join("; ");
}
