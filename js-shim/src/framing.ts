// Content-Length frames: converts bytes to message bodies, and messages to bytes.
import * as LIMITS from "./limits.js";
import { isObject } from "./types.js";
import { findFault } from "./wire-check.js";

/** The longest body that each side accepts. */
export const MAX_BODY_BYTES = LIMITS.frame_bytes;
const MAX_HEADER_BYTES = LIMITS.header_bytes;
const MAX_HEADER_LINES = LIMITS.header_lines;

const CR = 0x0d;
const LF = 0x0a;
const COLON = 0x3a;

/** The bytes break the protocol. After them, nothing more can be read reliably. */
export class FramingError extends Error {
  override readonly name = "FramingError";
}

/** A message that the helper would not accept as a frame. */
export class UnencodableError extends Error {
  override readonly name = "UnencodableError";

  /**
   * @param param - the invalid field, such as `input[0].content`; null: the whole message
   * @param tooLong - whether the message is too long
   */
  constructor(
    message: string,
    readonly param: string | null = null,
    readonly tooLong = false,
  ) {
    super(message);
  }
}

const encoder = new TextEncoder();

/**
 * Makes one frame of a message. Header and body are one piece, so that they are written at once.
 *
 * @throws UnencodableError for a message that is too long, or whose JSON the helper would refuse. The helper can't know which
 *   call such a frame belongs to, so the error is raised here.
 */
export function encodeFrame(message: unknown): Uint8Array {
  const json = serialise(message);
  const fault = findFault(json);
  if (fault !== null) throw unencodable(fault.path === "" ? null : fault.path, fault.what);
  const body = encoder.encode(replaceLoneSurrogates(json));
  if (body.length > MAX_BODY_BYTES) {
    throw new UnencodableError(`The request has ${body.length} bytes; the limit is ${MAX_BODY_BYTES}.`, null, true);
  }
  const header = encoder.encode(`Content-Length: ${body.length}\r\n\r\n`);
  const frame = new Uint8Array(header.length + body.length);
  frame.set(header);
  frame.set(body, header.length);
  return frame;
}

function serialise(message: unknown): string {
  try {
    return stringify(message);
  } catch (error) {
    throw unencodable(findUnserialisable(message), `it is not JSON (${describe(error)})`);
  }
}

/**
 * Like JSON.stringify, but throws for NaN and Infinity. Otherwise a wrongly computed limit would become null, which means no
 * limit.
 */
function stringify(value: unknown): string {
  const json = JSON.stringify(value);
  if (json?.includes("null")) {
    JSON.stringify(value, (_, each: unknown) => {
      if (typeof each === "number" && !Number.isFinite(each)) throw new RangeError(`${each} is no number of JSON`);
      return each;
    });
  }
  return json;
}

/** The first field of the message's params that can't be serialised. */
function findUnserialisable(message: unknown): string | null {
  const params = isObject(message) && isObject(message["params"]) ? message["params"] : message;
  if (!isObject(params)) return null;
  for (const key of Object.keys(params)) {
    try {
      stringify({ [key]: params[key] });
    } catch {
      return key;
    }
  }
  return null;
}

/** Puts the error message on one line. JavaScript describes a circular reference on several lines. */
function describe(error: unknown): string {
  if (error instanceof RangeError && /call stack/i.test(error.message)) return "it is nested too deeply";
  return (error instanceof Error ? error.message : String(error)).replace(/\s+/g, " ");
}

function unencodable(param: string | null, what: string): UnencodableError {
  return new UnencodableError(`${param === null ? "Invalid request" : `Invalid '${param}'`}: ${what}.`, param);
}

/**
 * Replaces lone surrogates by U+FFFD, as fetch does. JSON.stringify writes a lone surrogate as an escape, and this escape is not
 * valid text. Escapes of whole surrogate pairs come only from JSON.rawJSON.
 */
function replaceLoneSurrogates(json: string): string {
  if (!/\\ud[89a-f]/i.test(json)) return json;
  return json.replace(
    /\\(?:ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|(ud[89a-f][0-9a-f]{2})|.)/gi,
    (match, lone: string | undefined) => (lone ? "\ufffd" : match),
  );
}

/**
 * Cuts a byte stream into frame bodies. It takes bytes as they arrive, and returns whole bodies as bytes. So a character that
 * begins in one read and ends in the next is never cut. Each byte is read and copied at most once.
 */
export class FrameParser {
  readonly #onBody: (body: Uint8Array) => void;
  readonly #header = new Uint8Array(MAX_HEADER_BYTES);
  #headerLength = 0;
  #body: Uint8Array | null = null;
  #bodyLength = 0;
  #missing = 0;

  constructor(onBody: (body: Uint8Array) => void) {
    this.#onBody = onBody;
  }

  /** Whether the stream is between two frames, where it may end. */
  get atBoundary(): boolean {
    return this.#headerLength === 0 && this.#missing === 0;
  }

  /**
   * Takes the next bytes, and calls the callback for each body that is now complete.
   *
   * @throws FramingError when the bytes break the protocol. Do not push anything after that.
   */
  push(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length) at = this.#missing > 0 ? this.#takeBody(chunk, at) : this.#takeHeader(chunk, at);
  }

  #takeHeader(chunk: Uint8Array, start: number): number {
    const header = this.#header;
    let length = this.#headerLength;
    for (let at = start; at < chunk.length; at++) {
      const byte = chunk[at] as number;
      if (length === MAX_HEADER_BYTES) throw new FramingError(`a header of more than ${MAX_HEADER_BYTES} bytes`);
      if (byte === 0 || byte >= 0x80) throw new FramingError(`byte 0x${byte.toString(16)} in a header`);
      const afterCr = length > 0 && header[length - 1] === CR;
      if ((byte === LF) !== afterCr) throw new FramingError("a header line that does not end with CR LF");
      header[length++] = byte;
      if (byte === LF && length >= 4 && header[length - 3] === LF) {
        this.#headerLength = 0;
        this.#begin(parseHeader(header.subarray(0, length - 2)));
        return at + 1;
      }
      if (length === 1 && !isNameByte(byte)) throw new FramingError("something that is not a header");
    }
    this.#headerLength = length;
    return chunk.length;
  }

  #begin(length: number): void {
    if (length === 0) throw new FramingError("an empty body");
    this.#bodyLength = length;
    this.#missing = length;
    this.#body = null;
  }

  #takeBody(chunk: Uint8Array, start: number): number {
    const end = Math.min(chunk.length, start + this.#missing);
    if (this.#body === null && end - start === this.#bodyLength) {
      this.#missing = 0;
      this.#onBody(chunk.subarray(start, end));
      return end;
    }
    this.#body ??= new Uint8Array(this.#bodyLength);
    this.#body.set(chunk.subarray(start, end), this.#bodyLength - this.#missing);
    this.#missing -= end - start;
    if (this.#missing === 0) {
      const body = this.#body;
      this.#body = null;
      this.#onBody(body);
    }
    return end;
  }
}

function isNameByte(byte: number): boolean {
  return byte > 0x20 && byte < 0x7f && byte !== COLON;
}

/** Finds the length in complete header lines. Each line ends with CR LF. */
function parseHeader(bytes: Uint8Array): number {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  const lines = text.split("\r\n").slice(0, -1);
  if (lines.length > MAX_HEADER_LINES) throw new FramingError(`more than ${MAX_HEADER_LINES} header lines`);
  let length: number | null = null;
  for (const line of lines) {
    const match = /^([!-9;-~]+)[ \t]*:[ \t]*(.*?)[ \t]*$/.exec(line);
    if (match === null) throw new FramingError("a header line without a name and a colon");
    const [, name = "", value = ""] = match;
    if (name.toLowerCase() === "content-length") {
      if (length !== null) throw new FramingError("a second Content-Length");
      length = parseLength(value);
    } else if (name.toLowerCase() === "content-type") {
      const charset = /charset[ \t]*=[ \t]*"?([^";\s]*)/i.exec(value)?.[1] ?? "utf-8";
      if (!/^utf-?8$/i.test(charset)) throw new FramingError(`charset ${charset}`);
    }
  }
  if (length === null) throw new FramingError("no Content-Length");
  return length;
}

function parseLength(value: string): number {
  if (!/^(0|[1-9][0-9]*)$/.test(value)) throw new FramingError(`Content-Length "${value.slice(0, 40)}"`);
  const length = value.length > 15 ? Infinity : Number(value);
  if (length > MAX_BODY_BYTES) throw new FramingError(`a body of ${value} bytes; the limit is ${MAX_BODY_BYTES}`);
  return length;
}
