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

/** Tells what went wrong. */
export function fail(text: string): void {
  process.stderr.write(`fm-proxy: ${plain(text)}\n`);
}

/** Text of others, such as a file's name, on one line and with nothing in it that a terminal obeys. */
export function plain(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, "?");
}

/** A model's text; on a terminal without what it would obey. */
export function sayText(text: string): void {
  process.stdout.write(process.stdout.isTTY ? text.replace(/[^\P{Cc}\n\t]/gu, "") : text);
}

/** An error in a sentence. */
export function errorText(error: unknown): string {
  return error instanceof FmError ? error.detail : error instanceof Error ? error.message : String(error);
}

/** A reader that has seen enough (`| head`) is no error. */
export function quietOnBrokenPipe(): void {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0);
    fail(`the output can't be written (${error.code ?? error.message})`);
    process.exit(1);
  });
  // Nobody is left to be told; the status still says how it went.
  process.stderr.on("error", () => {});
}

/** Rows in columns as wide as they have to be. */
export function table(raw: readonly (readonly string[])[]): string {
  const rows = raw.map((row) => row.map(plain));
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ").trimEnd());
  return lines.join("\n");
}

/** Bytes as a person reads them. */
export function bytes(count: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const power = Math.min(units.length - 1, count < 1000 ? 0 : Math.floor(Math.log10(count) / 3));
  return `${(count / 1000 ** power).toFixed(power === 0 ? 0 : 1)} ${units[power]}`;
}

/** One line of progress on a terminal, written over by the next; elsewhere nothing. */
export class ProgressLine {
  readonly #enabled = process.stderr.isTTY === true;
  #last = 0;

  update(text: string): void {
    const now = performance.now();
    if (!this.#enabled || now - this.#last < 100) return;
    this.#last = now;
    this.#write(`\r\x1b[2K${text}`);
  }

  end(): void {
    if (this.#last > 0) this.#write("\r\x1b[2K");
  }

  #write(text: string): void {
    try {
      writeSync(2, text);
    } catch {
      // A terminal that is busy or gone misses a line.
    }
  }
}
