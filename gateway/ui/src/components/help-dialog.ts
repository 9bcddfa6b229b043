/** <jarvis-help-dialog>: the keyboard shortcuts. */
import { LitElement, css, html } from "lit";
import { emit } from "../emit.js";
import { icon } from "../icons.js";
import { shared } from "../shared-styles.js";

const KEYS: [string, string][] = [
  ["Enter", "Send"],
  ["Shift Enter", "New line"],
  ["Esc", "Stop the answer; put an approval aside"],
  ["/", "Write a message"],
  ["Ctrl K", "Search all chats"],
  ["Ctrl Shift O", "New chat"],
  ["Ctrl Shift S", "Show or hide the side bar"],
  ["?", "This list"],
];

export class JarvisHelpDialog extends LitElement {
  show(): void {
    this.renderRoot.querySelector("dialog")?.showModal();
  }

  override render() {
    return html`<dialog aria-labelledby="title" @close=${() => emit(this, "jarvis-close", null)}>
      <div class="head">
        <h2 id="title">Keyboard</h2>
        <button class="icon-button" aria-label="Close" autofocus @click=${this.close}>${icon("close")}</button>
      </div>
      <dl>
        ${KEYS.map(
          ([keys, what]) => html`<div>
            <dt>${keys.split(" ").map((key) => html`<kbd>${key}</kbd>`)}</dt>
            <dd>${what}</dd>
          </div>`,
        )}
      </dl>
      <p>On a Mac, use ⌘ for Ctrl.</p>
    </dialog>`;
  }

  private close(): void {
    this.renderRoot.querySelector("dialog")?.close();
  }

  static override styles = [
    shared,
    css`
      dialog {
        width: min(26rem, calc(100vw - 2rem));
        padding: 1rem 1.25rem 1.25rem;
        border: 1px solid var(--border);
        border-radius: 16px;
        background: var(--surface);
        color: var(--text);
        box-shadow: var(--shadow-l);
      }
      dialog::backdrop {
        background: var(--scrim);
      }
      .head {
        display: flex;
        align-items: center;
        justify-content: space-between;
        margin-bottom: 0.5rem;
      }
      h2 {
        font-size: 1.0625rem;
        font-weight: 650;
      }
      dl div {
        display: flex;
        align-items: center;
        justify-content: space-between;
        gap: 1rem;
        min-height: 2.375rem;
        border-top: 1px solid var(--border);
        font-size: var(--text-s);
      }
      dl div:first-child {
        border: 0;
      }
      dt {
        order: 2;
        display: flex;
        gap: 0.25rem;
      }
      kbd {
        padding: 0.125rem 0.4375rem;
        border: 1px solid var(--border);
        border-radius: 6px;
        background: var(--code-bg);
        font: var(--text-xs) / 1.5 var(--font);
      }
      p {
        margin-top: 0.75rem;
        color: var(--muted);
        font-size: var(--text-xs);
      }
    `,
  ];
}

customElements.define("jarvis-help-dialog", JarvisHelpDialog);
