// Names for code: extracts words from code, and writes names in the style of a language. Does not use VS Code.

/** How the words of a name are joined. */
export type Style = "camel" | "pascal" | "snake" | "upper" | "kebab";

/** Keywords of programming languages. They do not say what code is about. */
const KEYWORDS = new Set(
  (
    "abstract and any as assert async await auto begin bool boolean break byte case catch char class const constructor " +
    "continue def default defer del delete do double elif else elsif end enum except export extends extern false final " +
    "finally float fn for foreach from func function go goto if implements import in include inline instanceof int " +
    "interface internal is lambda let long loop match mod module mut namespace native new nil none not null number object " +
    "of operator or override package pass print private protected pub public raise readonly register require return self " +
    "set short signed sizeof static str string struct super switch template then this throw throws trait true try type " +
    "typedef typeof undefined union unless unsafe unsigned until use using val var virtual void volatile when where while " +
    "with yield"
  ).split(" "),
);
/** The style of names of functions and variables, by language. Other languages use camel case. */
const STYLES: Record<string, Style> = {
  c: "snake",
  clojure: "kebab",
  csharp: "pascal",
  css: "kebab",
  elixir: "snake",
  html: "kebab",
  julia: "snake",
  less: "kebab",
  lua: "snake",
  makefile: "snake",
  markdown: "kebab",
  perl: "snake",
  php: "camel",
  plaintext: "kebab",
  python: "snake",
  r: "snake",
  ruby: "snake",
  rust: "snake",
  scss: "kebab",
  shellscript: "snake",
  sql: "snake",
};

/**
 * The words of code that may say what it is about, divided by spaces: `parseDates(text)` has `parse Dates text`. Numbers such as
 * `0xff` and `10px` are not identifiers.
 */
export function wordsOfCode(code: string): string {
  const words = code
    .replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, "$1 $2")
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word.length > 1 && !KEYWORDS.has(word.toLowerCase()) && !/^\p{N}/u.test(word));
  return words.join(" ");
}

/** The style of an existing name, or else of the language. */
export function styleOf(current: string | undefined, languageId: string): Style {
  if (current !== undefined) {
    if (/[\p{L}\p{N}]-[\p{L}\p{N}]/u.test(current)) return "kebab";
    if (/^[^\p{Ll}]*\p{Lu}[^\p{Ll}]*$/u.test(current) && current.length > 1) return "upper";
    if (/[\p{L}\p{N}]_[\p{L}\p{N}]/u.test(current)) return "snake";
    if (/^\p{Lu}/u.test(current)) return "pascal";
    if (/\p{Lu}/u.test(current)) return "camel";
  }
  return STYLES[languageId] ?? "camel";
}

/** Converts a name of words divided by `-` to another style. */
export function inStyle(name: string, style: Style): string {
  const words = name.split("-");
  const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);
  switch (style) {
    case "camel":
      return words.map((word, at) => (at === 0 ? word : capital(word))).join("");
    case "pascal":
      return words.map(capital).join("");
    case "snake":
      return words.join("_");
    case "upper":
      return words.join("_").toUpperCase();
    case "kebab":
      return name;
  }
}

/** Whether a text is one name and nothing else. */
export function isIdentifier(text: string): boolean {
  return /^[\p{L}_$][\p{L}\p{N}_$]*$/u.test(text);
}
