/**
 * Turns markdown into HTML, block by block, so that only the end of a growing text is rendered again. HTML in the text is shown
 * as text, and an image as a link; no image is loaded. Pure; its result still goes through DOMPurify
 * (components/markdown-renderer.ts).
 */
import { Marked, Tokenizer, type Token, type Tokens } from "marked";
import { highlight } from "./highlight.js";

export interface Block {
  /** The source; equal sources have equal HTML, unless `links` changed. */
  raw: string;
  html: string;
}

const ENTITIES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
}

/** Returns the address if a link may have it; otherwise null. */
export function safeHref(href: string): string | null {
  return /^(https?:\/\/|mailto:)[^\s]+$/i.test(href) ? href : null;
}

function anchor(href: string, title: string | null | undefined, inner: string): string {
  const safe = safeHref(href);
  if (safe === null) return inner;
  return `<a href="${escapeHtml(safe)}" title="${escapeHtml(title ? `${title} (${safe})` : safe)}">${inner}</a>`;
}

/**
 * Matches where an address in a text ends. In languages without spaces, text follows an address directly. So punctuation outside
 * of ASCII ends an address (addresses from a browser have it encoded). The exceptions are signs that occur inside of names: `·`,
 * `・` and short dashes.
 */
const AFTER_ADDRESS = /(?![\0-\x7f·・‐‑–])\p{P}/u;

/** Letters of languages that have no spaces between words, or that write particles directly after a word. */
const UNSPACED = "[\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Hangul}\\p{Script=Thai}\\u30fc]";
const SIGN = "(?![*~])[\\p{P}\\p{S}]";
/**
 * Such a letter beside a run of `*` or `~` that has punctuation on its other side. In CommonMark, the run can then only begin
 * or only end something, unless a space or more punctuation is there. These languages write neither, so the letter counts as
 * punctuation (as in the proposal github.com/tats-u/markdown-cjk-friendly).
 */
const BESIDE_RUN = new RegExp(`(?<=${SIGN}[*~]+)${UNSPACED}|${UNSPACED}(?=[*~]+${SIGN})`, "gu");
const LAST_UNSPACED = new RegExp(`${UNSPACED}$`, "u");

/** Replaces each UTF-16 unit of these letters by a punctuation sign, so that positions stay the same. */
function asPunctuation(text: string): string {
  return text.replace(BESIDE_RUN, (letter) => "、".repeat(letter.length));
}

/** The same for the character before a run: it only counts if punctuation follows the run. */
function charBefore(before: string): string {
  return LAST_UNSPACED.test(before) ? "、" : before;
}

const marked = new Marked({
  gfm: true,
  breaks: true,
  tokenizer: {
    emStrong(source, masked, before = "") {
      // Underscores occur inside of names, so CommonMark's rule stays for them.
      if (!source.startsWith("*")) return Tokenizer.prototype.emStrong.call(this as Tokenizer, source, masked, before);
      return Tokenizer.prototype.emStrong.call(this as Tokenizer, source, asPunctuation(masked), charBefore(before));
    },
    del(source, masked, before = "") {
      if (!source.startsWith("~")) return undefined;
      return Tokenizer.prototype.del.call(this as Tokenizer, source, asPunctuation(masked), charBefore(before));
    },
    url(source) {
      const whole = Tokenizer.prototype.url.call(this as Tokenizer, source);
      const end = whole ? AFTER_ADDRESS.exec(whole.raw)?.index : undefined;
      return end === undefined ? whole : Tokenizer.prototype.url.call(this as Tokenizer, source.slice(0, end));
    },
  },
  renderer: {
    html: ({ text }) => (/^<br\s*\/?>$/i.test(text.trim()) ? "<br>" : escapeHtml(text)),
    image: ({ href, title, text }) => anchor(href, title, escapeHtml(`Image: ${text || href}`)),
    link({ href, title, tokens }) {
      return anchor(href, title, this.parser.parseInline(tokens));
    },
    code({ text, lang }) {
      const language = /^[\w+#-]+/.exec(lang ?? "")?.[0].toLowerCase() ?? "";
      const named = language ? ` class="language-${escapeHtml(language)}"` : "";
      return `<pre><code${named}>${highlight(text, language) ?? escapeHtml(text)}</code></pre>\n`;
    },
    checkbox: ({ checked }) => `<input type="checkbox" disabled${checked ? " checked" : ""}> `,
  },
});

/**
 * Renders a text that grows. Keeps all blocks but the last one, because more text can't change them any more. A link that is
 * defined further down is found when the text is complete.
 */
export class BlockRenderer {
  private blocks: Block[] = [];

  /** The blocks of `text`. `complete`: no more text comes. */
  render(text: string, complete: boolean): Block[] {
    const source = text.replace(/\r\n?/g, "\n");
    const before = complete ? [] : this.blocks.slice(0, -1);
    const kept = source.startsWith(before.map(({ raw }) => raw).join("")) ? before : [];
    const from = kept.reduce((sum, block) => sum + block.raw.length, 0);
    const tokens = marked.lexer(complete ? source : heal(source.slice(from)));
    const fresh = merged(tokens).map((token): Block => ({ raw: token.raw, html: marked.parser([token]) }));
    // The last block has its healed source. The length of that source is not used, because the next text is lexed from the
    // block's start.
    this.blocks = [...kept, ...fresh];
    return this.blocks;
  }
}

/** Adds white space to the block before it, so that the sources of all blocks together are the text. */
function merged(tokens: Token[]): Token[] {
  const found: Token[] = [];
  for (const token of tokens) {
    const last = found.at(-1);
    if (token.type === "space" && last)
      found[found.length - 1] = { ...last, raw: last.raw + token.raw } as Tokens.Generic;
    else found.push(token);
  }
  return found;
}

const FENCE = /^ {0,3}(`{3,}|~{3,})/;

/**
 * Closes markup that is still open at the end of a growing text, so that the text does not change its look when the
 * rest comes.
 */
export function heal(text: string): string {
  if (openFence(text)) return text;
  const start = text.lastIndexOf("\n\n") + 1;
  const head = text.slice(0, start);
  let tail = text.slice(start);
  const ticks = tail.match(/(?<!`)`(?!`)/g)?.length ?? 0;
  if (ticks % 2 === 1) return head + (tail.endsWith("`") ? tail.slice(0, -1) : `${tail}\``);
  const bare = tail.replace(/`[^`]*`/g, (code) => " ".repeat(code.length));
  // If a link's address is not complete yet, only the link's text is shown.
  const link = /!?\[([^\]\n]*)(\]\([^)\s]*)?$/.exec(bare);
  if (link && link.index !== undefined && !/^\s*\[[ x]?$/i.test(bare.slice(link.index))) {
    const inner = tail
      .slice(link.index)
      .replace(/^!?\[/, "")
      .replace(/\]\([^)]*$/, "");
    tail = tail.slice(0, link.index) + inner;
  }
  for (const mark of ["**", "~~"]) {
    const count = tail.replace(/`[^`]*`/g, "").split(mark).length - 1;
    if (count % 2 === 0) continue;
    tail = tail.endsWith(mark) ? tail.slice(0, -mark.length) : `${tail.replace(/\s*\*?$/, "")}${mark}`;
  }
  return head + tail;
}

function openFence(text: string): boolean {
  let open: string | undefined;
  for (const line of text.split("\n")) {
    const fence = FENCE.exec(line)?.[1];
    if (!fence) continue;
    if (open === undefined) open = fence;
    else if (fence[0] === open[0] && fence.length >= open.length) open = undefined;
  }
  return open !== undefined;
}

/**
 * Returns how far a screen reader can read a growing text from `from` on: up to the end of a sentence, a line or a block. Returns
 * `from` if nothing new is complete.
 */
export function spokenEnd(text: string, from: number): number {
  let end = from;
  for (const match of text.slice(from).matchAll(/[.!?:؟।](?=\s)|[。！？]|\n/g)) end = from + match.index + 1;
  return end;
}
