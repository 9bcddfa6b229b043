// Finds out what kind of file a path leads to.
import { closeSync, openSync, readSync, statSync } from "node:fs";
import { stat } from "node:fs/promises";

/** The first bytes of programs: for Linux, for macOS with one or several kinds of processors, and for Windows. */
const PROGRAMS = ["7f454c46", "cffaedfe", "cafebabe", "4d5a"];
const SCRIPT = "2321";

/**
 * What a file is. `closed`: this user may not read it; it may be a program. `absent`: there is no such file for
 * anybody.
 */
export type FileKind = "program" | "script" | "folder" | "other" | "closed" | "absent";

/** Whether a path leads to a file. Never rejects. */
export async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null))?.isFile() === true;
}

/** Finds out whether a path leads to a program, by the first bytes of the file. Never throws. */
export function kindOf(path: string): FileKind {
  let file: number | undefined;
  try {
    const it = statSync(path);
    // Opening a pipe or a device may take forever.
    if (!it.isFile()) return it.isDirectory() ? "folder" : "other";
    file = openSync(path, "r");
    const buffer = Buffer.alloc(4);
    readSync(file, buffer, 0, 4, 0);
    const start = buffer.toString("hex");
    if (start.startsWith(SCRIPT)) return "script";
    return PROGRAMS.some((each) => start.startsWith(each)) ? "program" : "other";
  } catch (error) {
    return ["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "") ? "absent" : "closed";
  } finally {
    if (file !== undefined) closeSync(file);
  }
}
