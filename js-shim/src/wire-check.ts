// Checks the JSON of a message before it is parsed: depth and number of values.
import * as LIMITS from "./limits.js";

const MAX_DEPTH = LIMITS.json_depth;
const MAX_VALUES = LIMITS.json_values;
/** Shorter numbers without an exponent are within a double's range. */
const MAX_PLAIN_DIGITS = 300;
const MAX_PATH = 120;

const [QUOTE, BACKSLASH, COMMA, MINUS, ZERO, NINE] = [0x22, 0x5c, 0x2c, 0x2d, 0x30, 0x39];
const [FALSE, NULL, TRUE] = [0x66, 0x6e, 0x74];
const [OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = [0x5b, 0x5d, 0x7b, 0x7d];

/** A fault in a message, and its place. */
export interface Fault {
  what: string;
  /** The field, as in `input[0].content`. */
  path: string;
}

/** An open container: where its latest key is in the text, or the index of the current element. */
interface Level {
  object: boolean;
  keyNext: boolean;
  keyStart: number;
  keyEnd: number;
  index: number;
}

/**
 * Checks the text of a message before it is sent. It finds faults for which the helper would refuse the message without knowing
 * its call. The text is checked, not the object, because `toJSON` may change the object's values.
 *
 * @param json - made by JSON.stringify, so its grammar is right
 */
export function findFault(json: string): Fault | null {
  return new Scan(json).run();
}

class Scan {
  readonly #json: string;
  readonly #levels: Level[] = [];
  #at = 0;
  #values = 0;

  constructor(json: string) {
    this.#json = json;
  }

  run(): Fault | null {
    for (; this.#at < this.#json.length; this.#at++) {
      const what = this.#take(this.#json.charCodeAt(this.#at));
      if (what !== null) return { what, path: this.#path() };
    }
    return null;
  }

  /** Takes the token that begins with `char`; leaves `at` on its last character. */
  #take(char: number): string | null {
    const level = this.#levels.at(-1);
    switch (char) {
      case QUOTE:
        return this.#takeString(level);
      case OPEN_BRACE:
      case OPEN_BRACKET:
        return this.#open(char === OPEN_BRACE);
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        this.#levels.pop();
        return null;
      case COMMA:
        if (level !== undefined) {
          level.index++;
          level.keyNext = level.object;
        }
        return null;
      case FALSE:
      case NULL:
      case TRUE:
        return this.#count();
      default:
        return char === MINUS || isDigit(char) ? this.#takeNumber() : null;
    }
  }

  #count(): string | null {
    this.#values++;
    return this.#values > MAX_VALUES ? `the request has more than ${MAX_VALUES} values` : null;
  }

  #open(object: boolean): string | null {
    if (this.#levels.length === MAX_DEPTH) return `the request is nested more than ${MAX_DEPTH} levels deep`;
    this.#levels.push({ object, keyNext: object, keyStart: 0, keyEnd: 0, index: 0 });
    return this.#count();
  }

  #takeString(level: Level | undefined): string | null {
    const start = this.#at;
    let end = start;
    do end = this.#json.indexOf('"', end + 1);
    while (this.#isEscaped(end));
    this.#at = end;
    if (!level?.keyNext) return this.#count();
    level.keyNext = false;
    level.keyStart = start;
    level.keyEnd = end + 1;
    return this.#key(level).includes("\0") ? "a key contains a NUL" : null;
  }

  /** Whether the character is escaped: an odd number of backslashes comes before it. */
  #isEscaped(at: number): boolean {
    let before = at;
    while (this.#json.charCodeAt(before - 1) === BACKSLASH) before--;
    return (at - before) % 2 === 1;
  }

  #takeNumber(): string | null {
    const number = /[-+.\deE]+/y;
    number.lastIndex = this.#at;
    const text = number.exec(this.#json)?.[0] ?? "";
    this.#at += text.length - 1;
    const plain = text.length <= MAX_PLAIN_DIGITS && !/[eE]/.test(text);
    return plain || Number.isFinite(Number(text)) ? this.#count() : "a number is beyond a double's range";
  }

  #key(level: Level): string {
    const text = this.#json.slice(level.keyStart, level.keyEnd);
    return text.includes("\\") ? (JSON.parse(text) as string) : text.slice(1, -1);
  }

  /** The path from the call's params to the present value. */
  #path(): string {
    let path = "";
    this.#levels.forEach((level, depth) => {
      if (!level.object) path += `[${level.index}]`;
      else if (level.keyEnd > 0 && path.length <= MAX_PATH) path += step(this.#key(level), depth);
    });
    path = path.replace(/^params(?:\.|(?=\[)|$)/, "");
    return path.length > MAX_PATH ? `${path.slice(0, MAX_PATH)}...` : path;
  }
}

function step(key: string, depth: number): string {
  if (!/^[\w$-]+$/.test(key)) return `[${JSON.stringify(key)}]`;
  return depth === 0 ? key : `.${key}`;
}

function isDigit(char: number): boolean {
  return char >= ZERO && char <= NINE;
}
