// Converts what was thrown to an FmError, or to words.
import { FmError } from "./errors.js";

/** Makes an FmError of anything that was thrown. */
export function toFmError(error: unknown): FmError {
  if (error instanceof FmError) return error;
  return new FmError("INTERNAL", messageOf(error), { cause: error });
}

/** Describes what was thrown, in words. It need not be an Error, and need not have a text. */
export function messageOf(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message : error);
  } catch {
    return "something was thrown that has no text";
  }
}
