// The header x-fm-ignored: which parameters of a request nobody knew.
import * as LIMITS from "./limits.js";
import { isObject } from "./types.js";

/** As many as the helper reports of a request. */
const MAX_NAMES = LIMITS.ignored_paths;
/** Of a name before it is encoded. */
const MAX_NAME_CHARS = LIMITS.ignored_path_bytes;
/** Of the header, with what says that there is more. */
const MAX_HEADER_BYTES = 4096;
const MORE = "...";

/** The parameters that an answer says were ignored: of an object, or of a chunk. */
export function ignoredOf(answer: unknown): string[] {
  const report = isObject(answer) ? answer["fm"] : undefined;
  const paths = isObject(report) ? report["ignored"] : undefined;
  return Array.isArray(paths) ? paths.filter((path) => typeof path === "string") : [];
}

/** Adds a name once, up to the first one that is too many, so that the header can tell. */
export function addIgnored(ignored: string[], path: string): void {
  const name = cut(path);
  if (ignored.length <= MAX_NAMES && !ignored.includes(name)) ignored.push(name);
}

/** The header that reports them, where there are some. */
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

/** As much of a name as is reported, without half a surrogate pair at the end. */
function cut(path: string): string {
  return path.length <= MAX_NAME_CHARS ? path : path.slice(0, MAX_NAME_CHARS).replace(/[\ud800-\udbff]$/, "");
}

/** Percent-encodes the UTF-8 of what a header can't carry, or what would look like another entry; "" is no name. */
function encode(path: string): string {
  if (path === "") return '""';
  return path.replace(/[^!-$&-+\--~]+/g, (text) =>
    Array.from(Buffer.from(text), (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join(""),
  );
}
