/**
 * Makes visible what a screen would hide, reorder or confuse, because in approvals the user must see a text as it is. With the
 * legend, every character of the text can be read from the shown lines.
 */
export interface Segment {
  text: string;
  /** plain: ASCII. foreign: a letter that may look like another. hidden: stands for a character that can't be seen. */
  kind: "plain" | "foreign" | "hidden";
}

export interface Shown {
  lines: Segment[][];
  /** How many characters can't be seen as they are. */
  hidden: number;
  foreign: number;
  bytes: number;
}

// Control, format, private and unassigned characters, separators other than the space, and all characters that renderers leave
// out.
const HIDDEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u115f\u1160\u2800\u3164\uffa0]|[^\P{Zs} ]/u;
const NAMES: Record<string, string> = { "\t": "→", "\r": "␍", "\0": "␀", "\x1b": "␛", "\x7f": "␡" };

/** Returns how a hidden character is shown: as its number, with a common sign if there is one. A tab is an arrow. */
function nameOf(character: string): string {
  const number = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
  const sign = NAMES[character];
  return character === "\t" ? "→" : sign ? `${sign}U+${number}` : `U+${number}`;
}

/**
 * `before`: the characters before this one. A mark is visible only on a letter beyond ASCII, as its first or second
 * mark.
 */
function kindOf(character: string, before: string): Segment["kind"] {
  if (HIDDEN.test(character)) return "hidden";
  if (/\p{M}/u.test(character)) return /[^\p{ASCII}\p{M}]\p{M}?$/u.test(before) ? "foreign" : "hidden";
  return character > "~" ? "foreign" : "plain";
}

function segmentsOf(line: string): Segment[] {
  const segments: Segment[] = [];
  const body = line.replace(/ +$/, "");
  let before = "";
  for (const character of body) {
    const kind = kindOf(character, before);
    const last = segments.at(-1);
    if (kind === "hidden") segments.push({ text: nameOf(character), kind });
    else if (last?.kind === kind) last.text += character;
    else segments.push({ text: character, kind });
    before = (before + character).slice(-6);
  }
  if (body.length < line.length) segments.push({ text: "·".repeat(line.length - body.length), kind: "hidden" });
  return segments;
}

/** Splits only at "\n". Spaces at a line's end become dots, and a tab becomes an arrow. */
export function show(text: string): Shown {
  const lines = text.split("\n").map(segmentsOf);
  const all = lines.flat();
  const hidden = all.filter(({ text: shown, kind }) => kind === "hidden" && !/^(→|·+)$/.test(shown)).length;
  const foreign = all.reduce((sum, each) => sum + (each.kind === "foreign" ? [...each.text].length : 0), 0);
  return { lines, hidden, foreign, bytes: new TextEncoder().encode(text).length };
}

/** Makes one line for headings and lists, where no colour tells a sign from text. */
export function showInline(text: string, limit = 200): string {
  const line = ({ text: shown, kind }: Segment) => (kind === "hidden" && !shown.startsWith("·") ? `⟨${shown}⟩` : shown);
  const whole = text
    .split("\n")
    .map((each) => segmentsOf(each).map(line).join(""))
    .join(" ↵ ");
  return whole.length > limit ? `${whole.slice(0, limit)}…` : whole;
}
