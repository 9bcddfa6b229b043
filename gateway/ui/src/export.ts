/** A conversation as a file for the user: Markdown to read, JSONL to process. Pure except for `download`. */
import { titleOf } from "./format.js";
import type { Message, Session } from "./protocol.js";

export type ExportFormat = "markdown" | "jsonl";

/** Surrounds text with a fence that is longer than any run of backticks in it. */
function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${text}\n${fence}`;
}

function body(message: Message): string {
  if (!message.parts) return message.content;
  return message.parts
    .map((part) => {
      if (part.type === "text") return part.text;
      const result = part.output === undefined ? "" : `\n\n${fenced(part.output)}`;
      return `**${part.toolName}** (${part.state})\n\n${fenced(part.summary)}${result}`;
    })
    .join("\n\n");
}

export function toMarkdown(session: Session, messages: Message[]): string {
  const parts = messages.map((message) => {
    const who = message.role === "user" ? "You" : "Assistant";
    const when = message.time === undefined ? "" : ` (${new Date(message.time).toISOString()})`;
    const failed = message.error === undefined ? "" : `\n\n> ${message.error}`;
    return `## ${who}${when}\n\n${body(message)}${failed}\n`;
  });
  return [`# ${titleOf(session)}\n`, ...parts].join("\n");
}

export function toJsonl(session: Session, messages: Message[]): string {
  return [session, ...messages].map((each) => `${JSON.stringify(each)}\n`).join("");
}

export function fileName(session: Session, format: ExportFormat): string {
  const name = titleOf(session)
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 60);
  return `${name || "chat"}.${format === "markdown" ? "md" : "jsonl"}`;
}

export function download(name: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
