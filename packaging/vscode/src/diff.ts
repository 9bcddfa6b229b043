// Shortens a diff for a small model, and checks a model's commit message. Does not use VS Code.

const FILE = /^(?=diff --git )/m;
/** What models write before the message. */
const PREAMBLE = /^(?:here(?:'s| is)\b[^:\n]*:|(?:the )?(?:suggested )?(?:git )?(?:commit )?(?:message|subject|title)\s*:)\s*/i;
/** Lines of a model's Markdown that are not text. */
const NO_TEXT = /^(?:```.*)?$/;
/** The longest subject line. */
export const MAX_SUBJECT = 72;

/**
 * A diff of at most `limit` characters. Each file keeps its head and its first lines; a note says how much is left out, so that
 * the model does not take the rest for the whole.
 */
export function shortened(diff: string, limit: number): string {
  if (diff.length <= limit) return diff;
  const files = diff.split(FILE).filter((file) => file.trim() !== "");
  let left = limit;
  const parts: string[] = [];
  // Small files come first, so that large files get the room that they leave. The parts keep the old order.
  const order = files.map((_, at) => at).sort((one, other) => lengthOf(files, one) - lengthOf(files, other));
  order.forEach((at, done) => {
    const share = Math.floor(left / (files.length - done));
    parts[at] = cut(files[at] ?? "", share);
    left -= parts[at].length;
  });
  return parts.join("");
}

const lengthOf = (files: readonly string[], at: number): number => files[at]?.length ?? 0;

/** Cuts a file's diff to whole lines of at most `limit` characters in all, with a note of how many lines are missing. */
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

/** The subject line in a model's answer: the first line of text, without quotes, list signs and a final period. */
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

/** Whether a subject line can be used. If not, returns the reason, for the model's next try. */
export function judgeSubject(subject: string): true | string {
  if (!/\p{L}{2}/u.test(subject)) return "It has no words.";
  if (subject.length > MAX_SUBJECT) return `It is longer than ${MAX_SUBJECT} characters.`;
  if (!subject.includes(" ")) return "It is one word only.";
  if (/^(?:diff --git|index |new file|deleted file|@@|\+\+\+|---)/i.test(subject)) return "It repeats the diff.";
  if (/^(?:I |As an |Sorry|Sure|Certainly|That answer)/i.test(subject)) return "It is no commit message.";
  return true;
}

/** Makes a subject line without a model: the kind of change and the files. */
export function subjectFromFiles(names: readonly string[], verb = "Update"): string {
  const [first = "files", ...others] = names;
  const rest = others.length === 0 ? "" : ` and ${others.length} more file${others.length === 1 ? "" : "s"}`;
  const room = MAX_SUBJECT - verb.length - 1 - rest.length;
  const shown = first.length <= room ? first : first.slice(-room);
  return `${verb} ${shown}${rest}`;
}
