/** <jarvis-tool-call>: one tool call in an answer. It is a line that opens and shows what was run and what the result was. */
import { LitElement, css, html, nothing, type PropertyValues } from "lit";
import { copy } from "../clipboard.js";
import { emit } from "../emit.js";
import { showInline } from "../escape.js";
import { bytes, duration } from "../format.js";
import { icon, type IconName } from "../icons.js";
import type { Attachment, ToolPart, ToolState } from "../protocol.js";
import { shared } from "../shared-styles.js";
import { exact, exactStyles } from "./exact.js";

const ICONS: Record<string, IconName> = { bash: "terminal", browser: "globe" };
const WORDS: Record<ToolState, string> = {
  waiting: "Waits for your approval",
  running: "Running",
  done: "Done",
  failed: "Failed",
  denied: "Denied",
  expired: "Expired: nobody answered in time",
  aborted: "Stopped",
  unknown: "Outcome unknown: the gateway ended while it ran",
};

export type LoadBlob = (attachment: Attachment) => Promise<string>;

export class JarvisToolCall extends LitElement {
  static override properties = {
    call: { attribute: false },
    approvalId: { attribute: false },
    loadBlob: { attribute: false },
    pictures: { state: true },
    copied: { state: true },
  };
  declare call: ToolPart;
  declare approvalId: string | undefined;
  declare loadBlob: LoadBlob | undefined;
  declare pictures: Map<Attachment, string | Error>;
  declare copied: boolean;

  constructor() {
    super();
    this.pictures = new Map();
    this.copied = false;
  }

  override willUpdate(changes: PropertyValues<this>): void {
    if (!changes.has("call")) return;
    for (const attachment of this.call.attachments ?? []) {
      if (attachment.type === "image" && !this.pictures.has(attachment)) void this.load(attachment);
    }
  }

  private async load(attachment: Attachment): Promise<void> {
    const found = await this.loadBlob?.(attachment).catch((error: unknown) => new Error(String(error)));
    if (found !== undefined) this.pictures = new Map(this.pictures).set(attachment, found);
  }

  override render() {
    const { toolName, summary, state, attachments = [] } = this.call;
    return html`
      <details>
        <summary>
          <span class="chevron">${icon("chevron", 14)}</span>
          <span class="tool">${icon(ICONS[toolName] ?? "tool", 16)}</span>
          <span class="what"><b>${showInline(toolName, 40)}</b><code>${showInline(summary, 300)}</code></span>
          <span class="state ${state}">${this.renderState()}</span>
        </summary>
        <div class="body">${this.renderBody()}</div>
      </details>
      ${state === "waiting" && this.approvalId !== undefined ? this.renderWaiting(this.approvalId) : nothing}
      ${attachments.map((each) => this.renderAttachment(each))}
    `;
  }

  private renderState() {
    const { state, durationMs, exitCode } = this.call;
    const time = durationMs === undefined ? "" : ` · ${duration(durationMs)}`;
    switch (state) {
      case "running":
        return html`<span class="spinner"></span><span class="sr-only">${WORDS.running}</span>`;
      case "waiting":
        return html`${icon("clock", 14)}<span class="words">Waiting</span>`;
      case "done":
        return html`${icon("check", 14)}<span class="words"><span class="sr-only">Done</span>${time.slice(3)}</span>`;
      case "failed":
        return html`<span class="words">${exitCode === undefined ? "Failed" : `Exit ${exitCode}`}${time}</span>`;
      default:
        return html`<span class="words">${WORDS[state].split(":")[0]}</span>`;
    }
  }

  private renderWaiting(approvalId: string) {
    return html`<p class="ask">
      <span>This needs your approval.</span>
      <button class="button small" @click=${() => emit(this, "jarvis-review", approvalId)}>Review</button>
    </p>`;
  }

  private renderBody() {
    const { details, summary, output, truncated, state, exitCode } = this.call;
    const command = typeof details?.["command"] === "string" ? details["command"] : undefined;
    const folder = typeof details?.["workingDir"] === "string" ? details["workingDir"] : undefined;
    const rest = command === undefined && details ? JSON.stringify(details, null, 2) : undefined;
    return html`
      ${folder === undefined ? nothing : html`<p class="label">In <code>${showInline(folder, 500)}</code></p>`}
      ${exact(command ?? rest ?? summary, "What was asked for")}
      <p class="label">
        <span>${WORDS[state]}${exitCode === undefined ? "" : `, exit code ${exitCode}`}</span>
        ${output ? html`<button class="copy"
          @click=${this.copyOutput}>${this.copied ? "Copied" : "Copy output"}</button>` : nothing}
      </p>
      ${output === undefined ? nothing : html`<pre class="scroll" tabindex="0" role="group"
        aria-label="Output">${output || "(no output)"}</pre>`}
      ${truncated ? html`<p class="label">The output was longer; its middle was left out.</p>` : nothing}
    `;
  }

  private async copyOutput(): Promise<void> {
    this.copied = await copy(this.call.output ?? "");
    setTimeout(() => (this.copied = false), 2000);
  }

  private renderAttachment(attachment: Attachment) {
    const name = attachment.name ?? (attachment.type === "image" ? "Screenshot" : "File");
    if (attachment.type !== "image") {
      return html`<p
        class="file">${icon("save", 16)} ${name} <span>${attachment.mimeType}, ${bytes(attachment.bytes ?? 0)}</span></p>`;
    }
    const picture = this.pictures.get(attachment);
    if (picture instanceof Error) return html`<p class="file">${icon("warn", 16)} ${name} could not be loaded.</p>`;
    return html`<figure>
      ${picture ? html`<a href=${picture} download=${name} title="Save ${name}"><img src=${picture}
        alt=${name} /></a>` : html`<div class="blank"></div>`}
    </figure>`;
  }

  static override styles = [
    shared,
    exactStyles,
    css`
      :host {
        display: block;
        margin: 0.75rem 0;
      }
      details {
        border: 1px solid var(--border);
        border-radius: var(--radius-m);
        background: var(--surface);
        overflow: hidden;
      }
      summary {
        display: flex;
        align-items: center;
        gap: 0.5rem;
        min-height: 2.5rem;
        padding: 0 0.75rem;
        font-size: var(--text-s);
        cursor: pointer;
        list-style: none;
        transition: background 0.12s var(--ease);
      }
      summary::-webkit-details-marker {
        display: none;
      }
      summary:hover {
        background: var(--hover);
      }
      summary:focus-visible {
        outline-offset: -2px;
        border-radius: var(--radius-m);
      }
      .chevron, .tool {
        color: var(--muted);
      }
      .chevron {
        transition: transform 0.15s var(--ease);
      }
      details[open] .chevron {
        transform: rotate(90deg);
      }
      .what {
        flex: 1;
        min-width: 0;
        display: flex;
        align-items: baseline;
        gap: 0.5rem;
      }
      .what b {
        font-weight: 600;
      }
      .what code {
        flex: 1;
        min-width: 0;
        overflow: hidden;
        text-overflow: ellipsis;
        white-space: nowrap;
        font: var(--text-xs) / 1.5 var(--mono);
        color: var(--muted);
      }
      .state {
        display: inline-flex;
        align-items: center;
        gap: 0.3rem;
        color: var(--muted);
        font-size: var(--text-xs);
        white-space: nowrap;
        font-variant-numeric: tabular-nums;
      }
      .state.failed, .state.denied, .state.expired, .state.unknown {
        color: var(--danger);
      }
      .state.done .icon {
        color: var(--accent);
      }
      .state.waiting {
        color: var(--warn);
      }
      .body {
        padding: 0.25rem 0.75rem 0.75rem;
        border-top: 1px solid var(--border);
      }
      .label {
        display: flex;
        align-items: center;
        justify-content: space-between;
        gap: 0.35rem;
        min-height: 2rem;
        margin-top: 0.25rem;
        color: var(--muted);
        font-size: var(--text-xs);
      }
      .label:first-child {
        justify-content: start;
      }
      .label code {
        font-family: var(--mono);
        color: var(--text);
        overflow-wrap: anywhere;
      }
      pre {
        max-height: 22rem;
        margin: 0;
        padding: 0.75rem;
        border: 1px solid var(--border);
        border-radius: var(--radius-s);
        background: var(--code-bg);
        font: var(--text-s) / 1.5 var(--mono);
        white-space: pre-wrap;
        overflow-wrap: anywhere;
      }
      .copy {
        padding: 0.25rem 0.5rem;
        border: 0;
        border-radius: 6px;
        background: none;
        font-size: var(--text-xs);
        cursor: pointer;
      }
      .copy:hover {
        background: var(--hover);
        color: var(--text);
      }
      .ask {
        display: flex;
        align-items: center;
        justify-content: space-between;
        gap: 0.75rem;
        margin-top: 0.5rem;
        padding: 0.5rem 0.5rem 0.5rem 0.875rem;
        border-radius: var(--radius-m);
        background: var(--warn-soft);
        color: var(--warn);
        font-size: var(--text-s);
      }
      .ask .button {
        color: var(--text);
      }
      figure {
        margin: 0.625rem 0 0;
      }
      figure a {
        display: inline-block;
        border-radius: var(--radius-m);
      }
      img, .blank {
        display: block;
        max-width: 100%;
        max-height: 28rem;
        border: 1px solid var(--border);
        border-radius: var(--radius-m);
        background: var(--code-bg);
      }
      .blank {
        width: 20rem;
        height: 12rem;
      }
      .file {
        display: flex;
        align-items: center;
        gap: 0.5rem;
        margin-top: 0.5rem;
        font-size: var(--text-s);
      }
      .file span {
        color: var(--muted);
      }
    `,
  ];
}

customElements.define("jarvis-tool-call", JarvisToolCall);
