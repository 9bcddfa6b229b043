/**
 * <jarvis-markdown>: markdown as sanitised elements. While a text grows, only its last block is changed, and only the parts that
 * differ. So nothing flickers, and a selection stays. The HTML goes through DOMPurify, which returns a fragment and has its own
 * policy of Trusted Types, so this file never assigns HTML.
 */
import DOMPurify from "dompurify";
import { LitElement, css, html, type PropertyValues } from "lit";
import { copy } from "../clipboard.js";
import { BlockRenderer } from "../markdown.js";
import { morphChildren } from "../morph.js";
import { shared } from "../shared-styles.js";
import { codeColours } from "./code-colours.js";

const ALLOWED = {
  ALLOWED_TAGS:
    "a blockquote br code del em h1 h2 h3 h4 h5 h6 hr input li ol p pre span strong table tbody td th thead tr ul".split(
      " ",
    ),
  ALLOWED_ATTR: ["align", "checked", "class", "disabled", "href", "start", "title", "type"],
  ADD_URI_SAFE_ATTR: ["align", "checked", "disabled", "start", "type"], // no addresses: the next line does not apply to them
  ALLOWED_URI_REGEXP: /^(?:https?:\/\/|mailto:)/i,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
};

export function sanitized(text: string): DocumentFragment {
  const fragment = DOMPurify.sanitize(text, { ...ALLOWED, RETURN_DOM_FRAGMENT: true });
  for (const link of fragment.querySelectorAll("a")) {
    link.target = "_blank";
    link.rel = "noopener noreferrer";
  }
  for (const each of fragment.querySelectorAll("[class]")) {
    const names = [...each.classList].filter((name) => /^(hljs-|language-)[\w+#-]+$|^(class|function)_$/.test(name));
    each.className = names.join(" ");
  }
  for (const table of fragment.querySelectorAll("table")) table.tabIndex = 0;
  // Each block has the direction of its own first letter. Code always runs from left to right.
  for (const block of fragment.children) block.setAttribute("dir", "auto");
  for (const code of fragment.querySelectorAll("pre, code")) code.setAttribute("dir", "ltr");
  return fragment;
}

export class JarvisMarkdown extends LitElement {
  static override properties = { text: { attribute: false }, complete: { type: Boolean } };
  declare text: string;
  declare complete: boolean;
  private renderer = new BlockRenderer();
  private shown: { html: string; element: HTMLElement }[] = [];
  private frame = 0;

  constructor() {
    super();
    this.text = "";
    this.complete = true;
  }

  override render() {
    return html`<div class="blocks" @click=${this.clicked}></div>`;
  }

  override updated(changes: PropertyValues<this>): void {
    if (!changes.has("text") && !changes.has("complete")) return;
    // A stream may bring texts faster than the screen shows frames, so a frame draws at most once.
    if (this.complete || !this.shown.length) this.draw();
    else if (!this.frame) this.frame = requestAnimationFrame(() => this.draw());
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    cancelAnimationFrame(this.frame);
    this.frame = 0;
  }

  private draw(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    const root = this.renderRoot.querySelector(".blocks");
    if (!root) return;
    const blocks = this.renderer.render(this.text, this.complete);
    blocks.forEach((block, index) => {
      const old = this.shown[index];
      if (old?.html === block.html) return;
      const element = old?.element ?? root.appendChild(newBlock());
      morphChildren(element, sanitized(block.html));
      for (const pre of element.querySelectorAll("pre")) dress(pre);
      this.shown[index] = { html: block.html, element };
    });
    for (const old of this.shown.splice(blocks.length)) old.element.remove();
  }

  private async clicked(event: Event): Promise<void> {
    const button = event.target instanceof Element ? event.target.closest<HTMLButtonElement>("button.copy") : null;
    const code = button?.closest("pre")?.querySelector("code");
    if (!button || !code) return;
    button.textContent = (await copy(code.textContent ?? "")) ? "Copied" : "Copying failed";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  }

  static override styles = [
    shared,
    codeColours,
    css`
      :host {
        display: block;
        font-size: var(--text-l);
        line-height: 1.65;
        overflow-wrap: anywhere;
      }
      .block > * {
        margin: 0 0 0.85em;
      }
      .block:last-child > :last-child {
        margin-bottom: 0;
      }
      h1, h2, h3, h4, h5, h6 {
        margin-top: 1.4em !important;
        margin-bottom: 0.5em !important;
        line-height: 1.3;
        font-weight: 650;
        letter-spacing: -0.01em;
      }
      .block:first-child > :first-child {
        margin-top: 0 !important;
      }
      h1 { font-size: 1.4em; }
      h2 { font-size: 1.22em; }
      h3 { font-size: 1.08em; }
      h4, h5, h6 { font-size: 1em; }
      ul, ol {
        padding-inline-start: 1.6em;
      }
      li {
        margin: 0.25em 0;
      }
      li > p {
        margin: 0.4em 0;
      }
      li > ul, li > ol {
        margin: 0.2em 0;
      }
      li::marker {
        color: var(--muted);
      }
      li:has(> input) {
        list-style: none;
        margin-inline-start: -1.35em;
      }
      a {
        color: var(--accent);
        text-underline-offset: 0.18em;
        text-decoration-thickness: 1px;
      }
      a:hover {
        text-decoration-thickness: 2px;
      }
      blockquote {
        padding-inline-start: 1em;
        border-inline-start: 3px solid var(--border);
        color: var(--muted);
      }
      blockquote > * + * {
        margin-top: 0.6em;
      }
      hr {
        height: 1px;
        border: 0;
        background: var(--border);
        margin: 1.6em 0;
      }
      code {
        font-family: var(--mono);
        font-size: 0.875em;
      }
      :not(pre) > code {
        padding: 0.15em 0.35em;
        border-radius: 5px;
        background: var(--code-bg);
        border: 1px solid var(--border);
      }
      pre {
        border: 1px solid var(--border);
        border-radius: var(--radius-m);
        background: var(--code-bg);
        overflow: hidden;
      }
      pre > code {
        display: block;
        padding: 0.75rem 1rem 0.9rem;
        overflow-x: auto;
        line-height: 1.55;
        white-space: pre;
        tab-size: 4;
        scrollbar-width: thin;
        overflow-wrap: normal;
      }
      pre > code:focus-visible {
        outline-offset: -2px;
        border-radius: 0 0 var(--radius-m) var(--radius-m);
      }
      .bar {
        display: flex;
        align-items: center;
        justify-content: space-between;
        padding: 0.25rem 0.375rem 0.25rem 1rem;
        border-bottom: 1px solid var(--border);
        color: var(--muted);
        font: var(--text-xs) / 1.5 var(--font);
        white-space: normal;
      }
      .copy {
        min-height: 1.75rem;
        padding: 0 0.625rem;
        border: 0;
        border-radius: 6px;
        background: none;
        color: inherit;
        font: inherit;
        cursor: pointer;
      }
      .copy:hover {
        background: var(--hover);
        color: var(--text);
      }
      table {
        display: block;
        width: max-content;
        max-width: 100%;
        overflow-x: auto;
        border-collapse: collapse;
        font-size: 0.9375em;
      }
      th, td {
        padding: 0.45em 0.9em;
        border-bottom: 1px solid var(--border);
        text-align: start;
        overflow-wrap: normal;
        min-width: 4em;
      }
      th {
        font-weight: 600;
        border-bottom-color: var(--border-strong);
      }
      [align="right"] { text-align: right; }
      [align="center"] { text-align: center; }
    `,
  ];
}

function newBlock(): HTMLElement {
  const element = document.createElement("div");
  element.className = "block";
  return element;
}

/** The bar of a code block: its language, and a button that copies. */
function dress(pre: HTMLPreElement): void {
  const code = pre.querySelector("code");
  if (!code) return;
  code.tabIndex = 0;
  const language = /(?:^| )language-(\S+)/.exec(code.className)?.[1] ?? "text";
  let bar = pre.querySelector<HTMLElement>(".bar");
  if (!bar) {
    bar = document.createElement("span");
    bar.className = "bar";
    bar.dataset["own"] = "";
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    bar.append(document.createElement("span"), button);
    pre.prepend(bar);
  }
  const name = bar.firstElementChild;
  if (name && name.textContent !== language) name.textContent = language;
  bar.lastElementChild?.setAttribute("aria-label", `Copy the ${language} code`);
  code.setAttribute("role", "group"); // not "region": a landmark needs its own name
  code.setAttribute("aria-label", `${language} code`);
}

customElements.define("jarvis-markdown", JarvisMarkdown);
