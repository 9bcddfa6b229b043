/**
 * Shows a text exactly as it is: lines have numbers, invisible characters are signs (escape.ts), and no script's direction
 * reorders the text. Long texts scroll. The component that shows the text includes the styles.
 */
import { css, html, nothing } from "lit";
import { show } from "../escape.js";

export function exact(text: string, label: string) {
  const { lines } = show(text);
  return html`<div class="exact scroll" tabindex="0" role="group" aria-label=${label}>
    <ol>
      ${lines.map((line) => html`<li><code>${line.length ? line.map(({ text: part, kind }) => html`<span
        class=${kind}>${part}</span>`) : nothing}</code></li>`)}
    </ol>
  </div>`;
}

export const exactStyles = css`
  .exact {
    max-height: min(22rem, 40vh);
    border: 1px solid var(--border);
    border-radius: var(--radius-s);
    background: var(--code-bg);
  }
  .exact ol {
    margin: 0;
    padding: 0.5rem 0.75rem 0.5rem 0;
    list-style: none;
    counter-reset: line;
    font: var(--text-s) / 1.6 var(--mono);
  }
  .exact li {
    display: grid;
    grid-template-columns: 2.75rem minmax(0, 1fr);
    counter-increment: line;
  }
  .exact li::before {
    content: counter(line);
    padding-right: 0.875rem;
    color: var(--muted);
    text-align: right;
    user-select: none;
  }
  .exact code {
    font: inherit;
    white-space: pre-wrap;
    overflow-wrap: anywhere;
    direction: ltr;
    unicode-bidi: bidi-override;
  }
  .exact .hidden {
    margin: 0 1px;
    padding: 0 2px;
    border-radius: 3px;
    background: var(--warn-soft);
    color: var(--warn);
    font-size: 0.875em;
    font-weight: 600;
  }
  .exact .foreign {
    text-decoration: underline wavy var(--warn) 1px;
    text-underline-offset: 0.25em;
  }
`;
