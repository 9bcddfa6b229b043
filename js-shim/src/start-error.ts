// Explains why a helper could not be started, from the error code of the system or of Node, and says what to do.
import { FmError } from "./errors.js";
import { messageOf } from "./thrown.js";

/** What the system's error codes mean for a program, or for this process. */
const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "is not there",
  EACCES:
    "is not executable: run `chmod +x` on it or, if its disk runs no programs, name a folder for a copy of it with the option " +
    "storageDir",
  ENOEXEC: "is not a program for this machine",
  ETXTBSY: "is being written",
  EMFILE: "could not be started: this process has too many open files. Close some, or raise the limit (ulimit -n)",
  E2BIG: "could not be started: its options and its environment are too large together",
  ENFILE: "could not be started: the system has too many open files. Close some",
  EAGAIN: "could not be started: the user has too many processes. End some, or raise the limit (ulimit -u)",
  ENOMEM: "could not be started: there is not enough memory",
};

/**
 * The flags that allow what Node's permission model (`node --permission`) forbids. The key is the permission's name in Node's
 * errors.
 */
const FLAGS: Readonly<Record<string, string>> = {
  ChildProcess: "--allow-child-process",
  FileSystemRead: "--allow-fs-read",
  FileSystemWrite: "--allow-fs-write",
};

/** Describes the fault of a program by its error, as the end of a sentence about the program. */
export function whyNotStarted(error: unknown): string {
  const forbidden = whatIsForbidden(error);
  if (forbidden !== null) return `could not be started: ${forbidden}`;
  return REASONS[(error as { code?: string }).code ?? ""] ?? "could not be started";
}

/** Says what to do about an error of Node's permission model. Null: it is another error. */
export function whatIsForbidden(error: unknown): string | null {
  const { code, permission = "", resource } = error as { code?: string; permission?: string; resource?: string };
  if (code !== "ERR_ACCESS_DENIED") return null;
  const path = permission.startsWith("FileSystem") && resource ? `=${resource}` : "";
  return `Node's permission model forbids it. Start Node with ${FLAGS[permission] ?? `the permission ${permission}`}${path}`;
}

/** Makes the error for a failure before the process was started, such as a file of this package that can't be opened. */
export function toStartError(reason: unknown): FmError {
  if (reason instanceof FmError) return reason;
  const what = `The helper ${whyNotStarted(reason)} (${messageOf(reason).replace(/\.$/, "")}).`;
  return new FmError("SPAWN_FAILED", what, { cause: reason });
}
