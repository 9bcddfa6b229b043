// A diff made short enough for a small model, and what a model's commit message may look like. No VS Code here.

const FILE = /^(?=diff --git )/m;
/** What models write before the message. */
const PREAMBLE = /^(?:here(?:'s| is)\b[^:\n]*:|(?:the )?(?:suggested )?(?:git )?(?:commit )?(?:message|subject|title)\s*:)\s*/i;
/** Lines of a model's Markdown that are not text. */
const NO_TEXT = /^(?:```.*)?$/;
/** The longest subject line. */
export const MAX_SUBJECT = 72;

/**
 * A diff of at most `limit` characters. Each file keeps its head and its first lines; what is left out is said, so that
 * the model does not take it for the whole.
 */
export function shortened(diff: string, limit: number): string {
  if (diff.length <= limit) return diff;
  const files = diff.split(FILE).filter((file) => file.trim() !== "");
  let left = limit;
  const parts: string[] = [];
  // The small ones first, so that what they leave goes to the large ones; then in the old order again.
  const order = files.map((_, at) => at).sort((one, other) => lengthOf(files, one) - lengthOf(files, other));
  order.forEach((at, done) => {
    const share = Math.floor(left / (files.length - done));
    parts[at] = cut(files[at] ?? "", share);
    left -= parts[at].length;
  });
  return parts.join("");
}

const lengthOf = (files: readonly string[], at: number): number => files[at]?.length ?? 0;

/** Whole lines of at most `limit` characters, and how many are missing. */
function cut(file: string, limit: number): string {
  if (file.length <= limit) return file;
  const lines = file.split("\n");
  const kept: string[] = [];
  let length = NOTE_LENGTH;
  for (const line of lines) {
    if (length + line.length + 1 > limit) break;
    kept.push(line);
    length += line.length + 1;
  }
  const note = `[${lines.length - kept.length} more lines]\n`;
  return limit < NOTE_LENGTH ? "" : `${kept.map((line) => `${line}\n`).join("")}${note}`;
}

const NOTE_LENGTH = "[1234567 more lines]\n".length;

/** The subject line in what a model answered: its first line of text, without quotes, list signs and a final period. */
export function subjectOf(answer: string): string {
  const lines = answer.split(/[\r\n]+/).map((line) => line.replaceAll("**", "").replace(/^[\s>#*-]+/, "").trim());
  const texts = lines.filter((line) => !NO_TEXT.test(line)).map((line) => unquoted(line.replace(PREAMBLE, "")));
  const first = texts.find((line) => line !== "") ?? "";
  const plain = first.replace(/\s+/g, " ").replace(/(?<!\.)\.$/, "").trim();
  return plain.charAt(0).toUpperCase() + plain.slice(1);
}

function unquoted(line: string): string {
  return line.replace(/^["'`\u201c](.*)["'`\u201d]$/, "$1").trim();
}

/** Whether a subject line can be used; if not, why, for the model's next try. */
export function judgeSubject(subject: string): true | string {
  if (!/\p{L}{2}/u.test(subject)) return "It has no words.";
  if (subject.length > MAX_SUBJECT) return `It is longer than ${MAX_SUBJECT} characters.`;
  if (!subject.includes(" ")) return "It is one word only.";
  if (/^(?:diff --git|index |new file|deleted file|@@|\+\+\+|---)/i.test(subject)) return "It repeats the diff.";
  if (/^(?:I |As an |Sorry|Sure|Certainly|That answer)/i.test(subject)) return "It is no commit message.";
  return true;
}

/** A subject line without a model: what happened to which files. */
export function subjectFromFiles(names: readonly string[], verb = "Update"): string {
  const [first = "files", ...others] = names;
  const rest = others.length === 0 ? "" : ` and ${others.length} more file${others.length === 1 ? "" : "s"}`;
  const room = MAX_SUBJECT - verb.length - 1 - rest.length;
  const shown = first.length <= room ? first : first.slice(-room);
  return `${verb} ${shown}${rest}`;
}
