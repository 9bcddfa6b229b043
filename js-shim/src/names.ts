// Names of files, branches and conversations: cleans and checks them, and makes a name from a text if no model gives a name.

/** Options of {@link slug}. */
export interface SlugOptions {
  /** The text between two words. Default: `-`. */
  separator?: string;
  /** The longest name, in characters. A longer one is cut, at the end of a word where possible. Default: 60. */
  maxLength?: number;
}

/** The result of {@link scoreName}. */
export interface NameScore {
  /** From 0 (of no use) to 1. */
  score: number;
  /** The faults of the name, each as a sentence. */
  reasons: string[];
}

/** File names that Windows reserves for devices, with any extension. */
const RESERVED = /^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?=\s*(?:[.:]|$))/;
/** Words that models write before the name. */
const PREAMBLES = [
  /^(?:sure|okay|ok|certainly|of course)\b[^:\n]*:\s*/i,
  /^here(?:'s| is| are)\b[^:\n]*:\s*/i,
  /^(?:the |a |my |suggested )*(?:file ?)?(?:name|title|slug)\b[^:\n]*:\s*/i,
];
/** Words that say nothing as a name. */
const GENERIC = new Set(
  "untitled new file document doc text note notes misc stuff data temp tmp test example sample thing item title name".split(
    " ",
  ),
);
/** Words that say little about the subject of a text. */
const SMALL = new Set(
  (
    "a an and are as at be but by can do for from had has have how i if in into is it its me my no not of on or our " +
    "please she so that the their them then there these they this to was we were what when which who why will with you your"
  ).split(" "),
);
const HEURISTIC_WORDS = 5;

/**
 * Makes a name from a text. Every file system accepts the name: it has only lower-case ASCII letters, digits and separators. If
 * the text is a model's answer, the name is made from its first line with words, without quotes and without "Here is a name:".
 * The same text gives the same name; a text without a letter or digit gives "".
 */
export function slug(text: string, { separator = "-", maxLength = 60 }: SlugOptions = {}): string {
  const words = wordsOf(firstLine(text));
  let name = "";
  for (const word of words) {
    const longer = name === "" ? word : name + separator + word;
    if (longer.length > maxLength) break;
    name = longer;
  }
  if (name === "") name = (words[0] ?? "").slice(0, Math.max(0, maxLength));
  if (!RESERVED.test(name)) return name;
  const longer = `${name}${separator}1`;
  return RESERVED.test(longer) ? name.replace(RESERVED, "$&1") : longer;
}

/**
 * Judges a name by rules, so that the same name is always judged the same.
 *
 * @param of - the text that the name is for; a name that shares no word with this text gets a lower score
 */
export function scoreName(name: string, of?: string): NameScore {
  const words = wordsOf(name);
  const losses: [boolean, number, string][] = [
    [words.join("").length < 3, 0.5, "It is too short."],
    [name.length > 60, 0.4, "It is longer than 60 characters."],
    [words.length > 8, 0.4, "It has more than 8 words."],
    [words.length > 0 && words.every((word) => GENERIC.has(word) || /^\d+$/.test(word)), 0.7, "It says nothing."],
    [new Set(words).size < words.length, 0.3, "It repeats a word."],
    [words.some((word) => /^(?=.*\d)[0-9a-f]{8,}$/.test(word)), 0.4, "It has a part that reads like a number."],
    [of !== undefined && !sharesWord(words, wordsOf(of)), 0.3, "It has no word of the text that it is for."],
  ];
  const wrong = words.length === 0 ? losses.slice(0, 1) : losses.filter(([holds]) => holds);
  const lost = words.length === 0 ? 1 : wrong.reduce((sum, [, loss]) => sum + loss, 0);
  return { score: Math.max(0, Math.round((1 - lost) * 100) / 100), reasons: wrong.map(([, , reason]) => reason) };
}

/**
 * Makes a name from a text, for the case that no model gives a name. It takes the first five words, and skips those that say
 * little, such as "the" or "file".
 */
export function nameFromText(text: string, options: SlugOptions = {}): string {
  const words = wordsOf(text);
  const telling = words.filter((word) => !SMALL.has(word) && !GENERIC.has(word));
  return slug([...new Set(telling.length > 0 ? telling : words)].slice(0, HEURISTIC_WORDS).join(" "), options);
}

function firstLine(text: string): string {
  // A model may have given nothing.
  const lines = String(text ?? "").split(/[\r\n]+/).map((line) => {
    const bare = line.replace(/^[\s>*#-]+/, "");
    return PREAMBLES.reduce((rest, preamble) => rest.replace(preamble, ""), bare);
  });
  return lines.find((line) => /[\p{L}\p{N}]/u.test(line) && !line.startsWith("```")) ?? "";
}

/** The words of a text, in ASCII letters and digits; all other characters separate words. */
function wordsOf(text: string): string[] {
  const ascii = String(text ?? "")
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .replace(/['\u2019]/g, "")
    .replace(/ß/g, "ss")
    .toLowerCase();
  return ascii.split(/[^a-z0-9]+/).filter((word) => word !== "");
}

/** Words count as the same when they begin alike: "rename" and "renaming". */
function sharesWord(some: string[], others: string[]): boolean {
  const begins = new Set(others.map((word) => word.slice(0, 4)));
  return some.some((word) => begins.has(word.slice(0, 4)));
}
