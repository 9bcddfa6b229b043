// What the command prints: results on stdout, everything else on stderr.
import { writeSync } from "node:fs";
import { FmError } from "../index.js";

/** A command line that is wrong. */
export class Usage extends Error {}

/** Prints a line of the result. */
export function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

export function sayJson(value: unknown): void {
  say(JSON.stringify(value, null, 2));
}

/** Prints an error. */
export function fail(text: string): void {
  process.stderr.write(`fm-proxy: ${plain(text)}\n`);
}

/** Makes foreign text, such as a file's name, safe for a terminal: one line, without control characters. */
export function plain(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, "?");
}

/** Prints a model's text. For a terminal, control characters are left out, except line breaks and tabs. */
export function sayText(text: string): void {
  process.stdout.write(process.stdout.isTTY ? text.replace(/[^\P{Cc}\n\t]/gu, "") : text);
}

/** The text of an error. */
export function errorText(error: unknown): string {
  return error instanceof FmError ? error.detail : error instanceof Error ? error.message : String(error);
}

/** Exits without an error if the reader of the output stops reading (`| head`). */
export function quietOnBrokenPipe(): void {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0);
    fail(`the output can't be written (${error.code ?? error.message})`);
    process.exit(1);
  });
  // If stderr can't be written, nobody can be informed; the exit status still shows the result.
  process.stderr.on("error", () => {});
}

/** Formats rows as columns. Each column is as wide as its longest cell. */
export function table(raw: readonly (readonly string[])[]): string {
  const rows = raw.map((row) => row.map(plain));
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ").trimEnd());
  return lines.join("\n");
}

/** A number of bytes in a form for people. */
export function bytes(count: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const power = Math.min(units.length - 1, count < 1000 ? 0 : Math.floor(Math.log10(count) / 3));
  return `${(count / 1000 ** power).toFixed(power === 0 ? 0 : 1)} ${units[power]}`;
}

/** A number of seconds in a form for people. */
export function timeOf(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 90 ? `${minutes} min` : `${(minutes / 60).toFixed(1)} h`;
}

/** Where progress is written, and the clock, in ms. */
interface ProgressPlace {
  isTerminal: boolean;
  now(): number;
  write(text: string): unknown;
}

const STDERR: ProgressPlace = {
  isTerminal: process.stderr.isTTY === true,
  now: () => performance.now(),
  write: (text) => writeSync(2, text),
};

/**
 * Shows progress. On a terminal, each line replaces the one before. Elsewhere, as in a log, there is a line every ten seconds.
 */
export class ProgressLine {
  readonly #place: ProgressPlace;
  readonly #pause: number;
  #last: number;
  #wrote = false;

  constructor(place = STDERR) {
    this.#place = place;
    this.#pause = place.isTerminal ? 100 : 10_000;
    this.#last = place.isTerminal ? -Infinity : place.now();
  }

  update(text: string): void {
    const now = this.#place.now();
    if (now - this.#last < this.#pause) return;
    this.#last = now;
    this.#write(this.#place.isTerminal ? `\r\x1b[2K${text}` : `${text}\n`);
    this.#wrote = true;
  }

  /** Prints a line at once. No later line replaces it. */
  tell(text: string): void {
    this.end();
    this.#write(`${text}\n`);
  }

  end(): void {
    if (this.#wrote && this.#place.isTerminal) this.#write("\r\x1b[2K");
    this.#wrote = false;
  }

  #write(text: string): void {
    try {
      this.#place.write(text);
    } catch {
      // If a terminal is busy or gone, a line is lost.
    }
  }
}
