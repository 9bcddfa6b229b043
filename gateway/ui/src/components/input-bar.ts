/**
 * <jarvis-input-bar>: where the user writes. Enter sends, Shift+Enter begins a line. While an answer runs, a message that is sent
 * waits its turn, and a button stops the answer. Each session's draft is kept until it is sent.
 */
import { LitElement, css, html, type PropertyValues } from "lit";
import { emit } from "../emit.js";
import { icon, stopIcon } from "../icons.js";
import { isComposing } from "../keys.js";
import { shared } from "../shared-styles.js";

const MOST = 1_048_576; // bytes of a message: PROTOCOL.md, chat.send

export class JarvisInputBar extends LitElement {
  static override properties = {
    sessionKey: { attribute: false },
    runId: { attribute: false },
    offline: { type: Boolean },
    queued: { type: Number },
    text: { state: true },
  };
  declare sessionKey: string;
  /** The run whose answer is being written. */
  declare runId: string | undefined;
  declare offline: boolean;
  declare queued: number;
  declare text: string;

  constructor() {
    super();
    this.sessionKey = "";
    this.offline = false;
    this.queued = 0;
    this.text = "";
  }

  override willUpdate(changes: PropertyValues<this>): void {
    if (changes.has("sessionKey")) this.text = sessionStorage.getItem(this.draftKey) ?? "";
  }

  override updated(changes: PropertyValues<this>): void {
    if (changes.has("text")) this.fit();
  }

  override focus(): void {
    this.area?.focus();
  }

  /** Puts a text into the box, to be changed and sent. */
  edit(text: string): void {
    this.write(text);
    void this.updateComplete.then(() => {
      this.focus();
      this.area?.setSelectionRange(text.length, text.length);
    });
  }

  override render() {
    const tooLong = this.text.length > MOST / 4 && new TextEncoder().encode(this.text).length > MOST;
    const canSend = this.text.trim() !== "" && !tooLong;
    return html`
      <form class="box" @submit=${this.submit} @click=${this.boxClicked}>
        <textarea rows="1" dir="auto" aria-label="Message" enterkeyhint="send" autocomplete="off"
          placeholder=${this.runId === undefined ? "Ask anything" : "Write the next message"}
          .value=${this.text} @input=${this.typed} @keydown=${this.keyed}></textarea>
        <div class="row">
          <span class="hint" role="status">${this.hint(tooLong)}</span>
          ${
            this.runId === undefined
              ? null
              : html`<button type="button" class="round stop" title="Stop (Esc)" aria-label="Stop the answer"
                @click=${this.stop}>${stopIcon()}</button>`
          }
          ${
            this.runId !== undefined && !canSend
              ? null
              : html`<button class="round" title="Send (Enter)"
                aria-label=${this.runId === undefined ? "Send" : "Send after this answer"}
                ?disabled=${!canSend}>${icon("send", 18)}</button>`
          }
        </div>
      </form>
    `;
  }

  private hint(tooLong: boolean): string {
    if (tooLong) return "Too long: a message has 1 MiB at most.";
    if (this.offline) return "Not connected. Messages are sent when the gateway is back.";
    if (this.queued) return `${this.queued} queued`;
    return "";
  }

  private get area(): HTMLTextAreaElement | null {
    return this.renderRoot.querySelector("textarea");
  }

  private get draftKey(): string {
    return `jarvis.draft.${this.sessionKey}`;
  }

  private write(text: string): void {
    this.text = text;
    try {
      if (text) sessionStorage.setItem(this.draftKey, text);
      else sessionStorage.removeItem(this.draftKey);
    } catch {
      // A draft that is too long for the storage is kept only until the page is closed.
    }
  }

  private fit(): void {
    const { area } = this;
    if (!area) return;
    area.style.height = "auto";
    area.style.height = `${area.scrollHeight}px`;
  }

  private typed(event: Event): void {
    this.write((event.target as HTMLTextAreaElement).value);
  }

  private keyed(event: KeyboardEvent): void {
    if (isComposing(event)) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.send();
    } else if (event.key === "Escape" && this.runId !== undefined) {
      event.preventDefault();
      this.stop();
    }
  }

  private submit(event: Event): void {
    event.preventDefault();
    this.send();
  }

  private boxClicked(event: Event): void {
    if (!(event.target instanceof Element && event.target.closest("button, textarea"))) this.focus();
  }

  private send(): void {
    const text = this.text.trim();
    if (!text || new TextEncoder().encode(text).length > MOST) return;
    this.write("");
    emit(this, "jarvis-send", text);
    this.focus();
  }

  private stop(): void {
    if (this.runId !== undefined) emit(this, "jarvis-stop", this.runId);
    this.focus();
  }

  static override styles = [
    shared,
    css`
      :host {
        display: block;
      }
      .box {
        padding: 0.875rem 0.625rem 0.625rem 1.125rem;
        border: 1px solid var(--border);
        border-radius: var(--radius-l);
        background: var(--surface);
        box-shadow: var(--shadow);
        cursor: text;
        transition: border-color 0.15s var(--ease), box-shadow 0.15s var(--ease);
      }
      .box:hover {
        border-color: var(--border-strong);
      }
      .box:focus-within {
        border-color: var(--accent);
        box-shadow: var(--shadow), 0 0 0 1px var(--accent);
      }
      textarea {
        display: block;
        width: 100%;
        min-height: 1.625rem;
        max-height: min(40dvh, 20rem);
        padding: 0 0.5rem 0 0;
        border: 0;
        background: none;
        resize: none;
        font-size: var(--text-l);
        line-height: 1.625rem;
        scrollbar-width: thin;
      }
      textarea:focus-visible {
        outline: none; /* the box shows it */
      }
      .row {
        display: flex;
        align-items: center;
        justify-content: end;
        gap: 0.5rem;
        min-height: 2.25rem;
        margin-top: 0.375rem;
      }
      .hint {
        flex: 1;
        color: var(--muted);
        font-size: var(--text-s);
      }
      .round {
        display: grid;
        place-items: center;
        width: 2.25rem;
        height: 2.25rem;
        padding: 0;
        border: 0;
        border-radius: 50%;
        background: var(--accent);
        color: var(--on-accent);
        cursor: pointer;
        transition: background 0.12s var(--ease), opacity 0.12s var(--ease), transform 0.1s var(--ease);
      }
      .round:hover {
        background: var(--accent-hover);
      }
      .round:active {
        transform: scale(0.94);
      }
      .round:disabled {
        background: var(--active);
        color: var(--muted);
        cursor: default;
        transform: none;
      }
      .round.stop {
        background: var(--text);
        color: var(--bg);
      }
      @media (pointer: coarse) {
        .round {
          width: 2.5rem;
          height: 2.5rem;
        }
      }
    `,
  ];
}

customElements.define("jarvis-input-bar", JarvisInputBar);
