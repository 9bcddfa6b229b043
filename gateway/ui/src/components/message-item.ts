/** <jarvis-message-item>: one message: the user's as a bubble of plain text, the assistant's as markdown and tool calls. */
import { LitElement, css, html, nothing } from "lit";
import { copy } from "../clipboard.js";
import { textOf, type Item } from "../conversation.js";
import { emit } from "../emit.js";
import { showInline } from "../escape.js";
import { clock, usageLine } from "../format.js";
import { icon } from "../icons.js";
import type { Approval, Part } from "../protocol.js";
import { shared } from "../shared-styles.js";
import "./markdown-renderer.js";
import type { LoadBlob } from "./tool-call.js";
import "./tool-call.js";

export class JarvisMessageItem extends LitElement {
  static override properties = {
    item: { attribute: false },
    approvals: { attribute: false },
    loadBlob: { attribute: false },
    last: { type: Boolean },
    copied: { state: true },
  };
  declare item: Item;
  declare approvals: Approval[];
  declare loadBlob: LoadBlob | undefined;
  declare last: boolean;
  declare copied: boolean;

  constructor() {
    super();
    this.approvals = [];
    this.last = false;
    this.copied = false;
  }

  override render() {
    const { role } = this.item;
    return html`<article class=${role} aria-label=${role === "user" ? "You" : "Assistant"}>
      ${role === "user" ? this.renderUser() : this.renderAssistant()}
    </article>`;
  }

  private renderUser() {
    const { item } = this;
    return html`
      <div class="bubble ${item.state}" dir="auto">${textOf(item)}</div>
      ${this.renderUserState()}
      ${
        item.state === "done"
          ? html`<div class="actions">
            ${item.time === undefined ? nothing : html`<span class="meta">${clock(item.time)}</span>`}
            ${this.renderCopy("Copy your message")}
            <button class="icon-button small" title="Edit and send as a new message" aria-label="Edit and send as a new message"
              @click=${() => emit(this, "jarvis-edit", textOf(item))}>${icon("edit", 16)}</button>
          </div>`
          : nothing
      }
    `;
  }

  private renderUserState() {
    const { item } = this;
    switch (item.state) {
      case "sending":
        return html`<p class="under"><span class="spinner"></span>Sending</p>`;
      case "queued":
        return html`<p class="under">${icon("clock", 14)}Queued: sent when the answer before it is complete
          <button class="link" @click=${() => emit(this, "jarvis-stop", item.runId ?? "")}>Take back</button></p>`;
      case "refused":
        return html`<p class="under bad" role="alert">${icon("warn", 14)}Not sent: ${item.note}
          <button class="link" @click=${() => emit(this, "jarvis-resend", item)}>Send again</button>
          <button class="link" @click=${() => emit(this, "jarvis-discard", item)}>Delete</button></p>`;
      case "aborted":
      case "error":
        return html`<p class="under">${item.state === "aborted" ? "Taken back" : item.note}</p>`;
      default:
        return nothing;
    }
  }

  private renderAssistant() {
    const { item } = this;
    const streaming = item.state === "streaming";
    return html`
      <div class="parts" aria-busy=${streaming}>
        ${item.parts.map((part, index) => this.renderPart(part, streaming && index === item.parts.length - 1))}
        ${streaming ? this.renderProgress() : nothing}
      </div>
      ${this.renderEnd()}
    `;
  }

  private renderPart(part: Part, growing: boolean) {
    if (part.type === "text") return html`<jarvis-markdown .text=${part.text} .complete=${!growing}></jarvis-markdown>`;
    const approval = this.approvals.find((each) => (each.callId ?? each.approvalId) === part.callId);
    return html`<jarvis-tool-call .call=${part} .approvalId=${approval?.approvalId}
      .loadBlob=${this.loadBlob}></jarvis-tool-call>`;
  }

  private renderProgress() {
    const { progress, parts } = this.item;
    const last = parts.at(-1);
    if (progress)
      return html`<p class="progress"><span
        class="spinner"></span><b>${progress.tool}</b> ${showInline(progress.message, 300)}</p>`;
    if (last?.type === "text") return nothing;
    if (last?.type === "tool" && (last.state === "waiting" || last.state === "running")) return nothing;
    return html`<p class="thinking" title="Thinking"><i></i><i></i><i></i><span class="sr-only">Thinking</span></p>`;
  }

  private renderEnd() {
    const { item } = this;
    if (item.state === "streaming") return nothing;
    return html`
      ${
        item.state === "error"
          ? html`<div class="failure" role="alert">
            ${icon("warn", 18)}
            <div><b>The answer failed</b><p>${item.note}</p></div>
            <button class="button small" @click=${() => emit(this, "jarvis-again", item)}>Try again</button>
          </div>`
          : nothing
      }
      ${item.state === "aborted" ? html`<p class="stopped">You stopped this answer.</p>` : nothing}
      <div class="actions">
        ${this.renderCopy("Copy the answer")}
        ${
          item.state === "error"
            ? nothing
            : html`<button class="icon-button small" title="Ask again" aria-label="Ask again"
              @click=${() => emit(this, "jarvis-again", item)}>${icon("retry", 16)}</button>`
        }
        <span class="meta">${[item.model, item.usage ? usageLine(item.usage) : ""].filter(Boolean).join(" · ")}</span>
      </div>
    `;
  }

  private renderCopy(label: string) {
    return html`<button class="icon-button small" title=${label} aria-label=${label} @click=${this.copyText}>
      ${icon(this.copied ? "check" : "copy", 16)}
    </button>`;
  }

  private async copyText(): Promise<void> {
    this.copied = await copy(textOf(this.item));
    setTimeout(() => (this.copied = false), 2000);
  }

  static override styles = [
    shared,
    css`
      :host {
        display: block;
      }
      article.user {
        display: flex;
        flex-direction: column;
        align-items: flex-end;
      }
      .bubble {
        max-width: min(85%, 36rem);
        padding: 0.625rem 1rem;
        border-radius: 18px 18px 4px 18px;
        background: var(--bubble);
        font-size: var(--text-l);
        line-height: 1.55;
        white-space: pre-wrap;
        unicode-bidi: plaintext; /* each line has the direction of its first letter */
        overflow-wrap: anywhere;
        transition: opacity 0.2s var(--ease);
      }
      .bubble.sending, .bubble.queued, .bubble.aborted {
        background: none;
        box-shadow: inset 0 0 0 1px var(--border-strong);
      }
      .bubble.refused {
        background: var(--danger-soft);
      }
      .under {
        display: flex;
        align-items: center;
        flex-wrap: wrap;
        justify-content: end;
        gap: 0.375rem;
        margin-top: 0.375rem;
        color: var(--muted);
        font-size: var(--text-s);
      }
      .under .spinner {
        width: 0.75rem;
        height: 0.75rem;
      }
      .under.bad {
        color: var(--danger);
      }
      .link {
        padding: 0.25rem;
        border: 0;
        border-radius: 4px;
        background: none;
        font-weight: 600;
        text-decoration: underline;
        text-underline-offset: 0.2em;
        cursor: pointer;
      }
      .actions {
        display: flex;
        align-items: center;
        gap: 0.125rem;
        min-height: 2rem;
        margin-top: 0.25rem;
      }
      .assistant .actions {
        margin-left: -0.375rem;
      }
      @media (hover: hover) {
        article.user {
          position: relative;
        }
        .user .actions {
          position: absolute;
          z-index: 1;
          top: 100%;
          min-height: 1.75rem;
          margin: 0;
          opacity: 0;
          transition: opacity 0.15s var(--ease);
        }
      }
      .user:hover .actions, .user:focus-within .actions {
        opacity: 1;
      }
      .meta {
        margin: 0 0.375rem;
        color: var(--muted);
        font-size: var(--text-xs);
        font-variant-numeric: tabular-nums;
      }
      jarvis-markdown + jarvis-markdown {
        margin-top: 0.85rem;
      }
      .progress, .stopped {
        display: flex;
        align-items: baseline;
        gap: 0.5rem;
        margin-top: 0.5rem;
        color: var(--muted);
        font-size: var(--text-s);
        overflow-wrap: anywhere;
      }
      .progress .spinner {
        align-self: center;
        width: 0.875rem;
        height: 0.875rem;
      }
      .progress b {
        font-weight: 600;
      }
      .thinking {
        display: flex;
        gap: 0.3rem;
        align-items: center;
        height: 1.65rem;
      }
      .thinking i {
        width: 0.4rem;
        height: 0.4rem;
        border-radius: 50%;
        background: var(--muted);
        animation: pulse 1.2s var(--ease) infinite;
      }
      .thinking i:nth-child(2) { animation-delay: 0.15s; }
      .thinking i:nth-child(3) { animation-delay: 0.3s; }
      @keyframes pulse {
        0%, 60%, 100% { opacity: 0.3; transform: none; }
        30% { opacity: 1; transform: translateY(-2px); }
      }
      .failure {
        display: flex;
        align-items: center;
        gap: 0.75rem;
        margin-top: 0.75rem;
        padding: 0.75rem 0.875rem;
        border-radius: var(--radius-m);
        background: var(--danger-soft);
        color: var(--danger);
        font-size: var(--text-s);
      }
      .failure div {
        flex: 1;
        min-width: 0;
        overflow-wrap: anywhere;
      }
      .failure .button {
        color: var(--text);
        flex: none;
      }
    `,
  ];
}

customElements.define("jarvis-message-item", JarvisMessageItem);
