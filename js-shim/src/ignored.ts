// The header x-fm-ignored: the unknown parameters of a request.
import * as LIMITS from "./limits.js";
import { isObject } from "./types.js";

/** The most names in the header. The helper reports at most this many for a request. */
const MAX_NAMES = LIMITS.ignored_paths;
/** The longest name, before it is encoded. */
const MAX_NAME_CHARS = LIMITS.ignored_path_bytes;
/** The longest header, with the mark for further names. */
const MAX_HEADER_BYTES = 4096;
const MORE = "...";

/** The ignored parameters that an answer or a chunk reports. */
export function ignoredOf(answer: unknown): string[] {
  const report = isObject(answer) ? answer["fm"] : undefined;
  const paths = isObject(report) ? report["ignored"] : undefined;
  return Array.isArray(paths) ? paths.filter((path) => typeof path === "string") : [];
}

/**
 * Adds a name, if the list lacks it. The list may have one name more than the header, so that the header can report that names
 * are missing.
 */
export function addIgnored(ignored: string[], path: string): void {
  const name = cut(path);
  if (ignored.length <= MAX_NAMES && !ignored.includes(name)) ignored.push(name);
}

/** The header that reports ignored parameters, if there are any. */
export function ignoredHeader(paths: readonly string[]): Record<string, string> {
  const names: string[] = [];
  let room = MAX_HEADER_BYTES - MORE.length;
  for (const name of new Set(paths.map((path) => encode(cut(path))))) {
    room -= name.length + ", ".length;
    if (names.length === MAX_NAMES || room < 0) {
      names.push(MORE);
      break;
    }
    names.push(name);
  }
  return names.length === 0 ? {} : { "x-fm-ignored": names.join(", ") };
}

/** The part of a name that is reported, without half a surrogate pair at the end. */
function cut(path: string): string {
  return path.length <= MAX_NAME_CHARS ? path : path.slice(0, MAX_NAME_CHARS).replace(/[\ud800-\udbff]$/, "");
}

/**
 * Percent-encodes, as UTF-8, characters that a header can't have and those that would look like another entry. "" becomes two
 * quotes.
 */
function encode(path: string): string {
  if (path === "") return '""';
  return path.replace(/[^!-$&-+\--~]+/g, (text) =>
    Array.from(Buffer.from(text), (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join(""),
  );
}
