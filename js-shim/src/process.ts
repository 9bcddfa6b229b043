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
/** How long the last output may still come after the exit was seen. */
const DRAIN_MS = 100;
/** How much is kept of what a helper says on stderr before it has answered. */
const MAX_LAST_WORDS_BYTES = 2048;

/** Signals that a process brings upon itself. */
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
  /** Where the path is from, for errors. */
  origin: string;
  args: readonly string[];
  /** What the arguments and the environment set, for errors: `engine "fake"`. */
  settings: readonly string[];
  env: Record<string, string>;
  cwd: string | undefined;
  /** Tells who gets its standard error at the moment: nobody, this process's own, or a function. */
  stderr: () => "ignore" | "inherit" | ((text: string) => unknown);
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
  readonly #options: SpawnOptions;
  /** Resolves when the process is gone. */
  readonly exited: Promise<void>;
  #ended = false;
  #crashed = false;
  /** The end of its stderr until it has answered; null from then on. */
  #lastWords: Buffer | null = Buffer.alloc(0);
  /** Whether the host was warned that its onLog throws. */
  #warned = false;

  /** Starts the process. Throws an FmError (SPAWN_FAILED) for what the system refuses at once. */
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

  /** Whether it came to its end by its own fault, rather than that somebody ended it. */
  get crashed(): boolean {
    return this.#crashed;
  }

  /** The helper has answered: from now on its stderr is not kept. */
  setReady(): void {
    this.#lastWords = null;
  }

  /** For errors of a start: the program, its settings, and its last words; with a space before the text. */
  describeStart(): string {
    const { path, origin, settings } = this.#options;
    const told = settings.length > 0 ? `, started with ${settings.join(", ")}` : "";
    const words = this.lastWords;
    return ` It is ${path}, from ${origin}${told}.${words === "" ? "" : ` It said: ${words}`}`;
  }

  /** What it has written to stderr until its first answer, in one line; empty from then on. */
  get lastWords(): string {
    return oneLine(this.#lastWords ?? Buffer.alloc(0));
  }

  /** Writes one whole frame. Throws an FmError (OVERLOADED) when the helper has stopped reading. */
  write(bytes: Uint8Array): void {
    // Without a free descriptor Node makes a child that has no pipes at all; "error" follows.
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
   * For Node, a process that could not be started has the number 0 until the error is reported. A signal to 0 goes to
   * every process of this one's group (kill(2)): the host, and what started it.
   */
  #signal(signal: "SIGTERM" | "SIGKILL"): void {
    if (this.#child.pid !== undefined) this.#child.kill(signal);
  }

  /** Says whether the process keeps Node's event loop alive. */
  setBusy(busy: boolean): void {
    const verb = busy ? "ref" : "unref";
    this.#child[verb]();
    for (const stream of [this.#child.stdin, this.#child.stdout, this.#child.stderr]) {
      (stream as { ref?(): void; unref?(): void } | null)?.[verb]?.();
    }
  }

  /** Always through a pipe: the last output of a helper that fails must be in the error too. */
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

  /** If the host's onLog throws, it is warned once. */
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
    // A dead helper's stdin gives EPIPE; the exit follows and says more.
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

  /** Waits a moment for what is still in the pipe; "close" comes when it is empty. */
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

/** Why a file may not be run, by its kind: the system's error does not say it. */
const WHAT_IT_IS: Partial<Record<FileKind, string>> = {
  folder: "is a directory",
  other: "is not a program",
  closed: "may not be read or run by this user",
};

/** The system reports the same error for a missing program and for one that nothing can load. */
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

/** Writes as the child itself would. It does not use process.stderr: errors of that would be the host's. */
function writeToStderr(chunk: Uint8Array): void {
  try {
    for (let at = 0; at < chunk.length;) at += writeSync(2, chunk, at);
  } catch {
    // Standard error is closed or full: the log is lost, as it would be with the child.
  }
}

/** Any program's words as part of a sentence: no half character at the cut, no control characters. */
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
