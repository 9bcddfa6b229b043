/**
 * <jarvis-approval-dialog>: shows every byte of what a tool wants to do, and takes the user's answer. The focus is on Deny. For a
 * moment after it opens, and while a key is held down, no button acts, so a user who was typing does not answer by accident.
 * Escape puts the question aside, without an answer.
 */
import { LitElement, css, html, nothing, type PropertyValues } from "lit";
import { emit } from "../emit.js";
import { show, showInline } from "../escape.js";
import { bytes, countdown } from "../format.js";
import { icon } from "../icons.js";
import type { Approval } from "../protocol.js";
import { shared } from "../shared-styles.js";
import { exact, exactStyles } from "./exact.js";

const ARMING_MS = 600;

export class JarvisApprovalDialog extends LitElement {
  static override properties = {
    approval: { attribute: false },
    others: { type: Number },
    sessionTitle: { attribute: false },
    offline: { type: Boolean },
    busy: { type: Boolean },
    now: { state: true },
    remember: { state: true },
  };
  /** null: the dialog is closed. */
  declare approval: Approval | null;
  declare others: number;
  declare sessionTitle: string;
  declare offline: boolean;
  declare busy: boolean;
  declare now: number;
  declare remember: boolean;
  private shownAt = 0;
  private clock: ReturnType<typeof setInterval> | undefined;

  constructor() {
    super();
    this.approval = null;
    this.others = 0;
    this.sessionTitle = "";
    this.offline = false;
    this.busy = false;
    this.now = Date.now();
    this.remember = false;
  }

  override willUpdate(changes: PropertyValues<this>): void {
    const before = changes.get("approval");
    if (!changes.has("approval") || before?.approvalId === this.approval?.approvalId) return;
    this.remember = false;
    this.now = Date.now();
    this.shownAt = performance.now();
  }

  override updated(changes: PropertyValues<this>): void {
    const dialog = this.renderRoot.querySelector("dialog");
    if (!changes.has("approval") || !dialog) return;
    clearInterval(this.clock);
    if (!this.approval) {
      dialog.close();
      return;
    }
    this.clock = setInterval(() => (this.now = Date.now()), 1000);
    if (!dialog.open) dialog.showModal();
    if (changes.get("approval")?.approvalId !== this.approval.approvalId) {
      this.renderRoot.querySelector<HTMLElement>(".deny")?.focus();
    }
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    clearInterval(this.clock);
  }

  override render() {
    return html`<dialog aria-labelledby="title" aria-describedby="where" @cancel=${this.aside} @close=${this.closed}>
      ${this.approval ? this.renderApproval(this.approval) : nothing}
    </dialog>`;
  }

  private renderApproval(approval: Approval) {
    const { toolName } = approval;
    const left = approval.expiresAt === undefined ? undefined : approval.expiresAt - this.now;
    return html`
      <div class="head">
        <span class="badge">${icon("shield", 20)}</span>
        <div>
          <h2 id="title">${question(toolName)}</h2>
          <p id="where">Asked for in “${showInline(this.sessionTitle, 80)}”</p>
        </div>
        <button class="icon-button" title="Decide later (Esc)" aria-label="Decide later"
          @click=${this.later}>${icon("close")}</button>
      </div>
      <div class="content scroll" tabindex="-1">${this.renderDetails(approval)}</div>
      <div class="foot">
        ${
          approval.canRemember
            ? html`<label class="remember"><input type="checkbox" .checked=${this.remember} @change=${this.rememberChanged} />
              Don't ask again for exactly this command in this folder</label>`
            : nothing
        }
        <label class="sr-only" for="reason">Reason for denying (optional)</label>
        <input class="field" id="reason" maxlength="500" autocomplete="off"
          placeholder="Reason for denying (optional, the assistant sees it)" />
        <div class="buttons">
          <span class="left" role="timer">${this.renderLeft(left)}</span>
          <button class="button deny" ?disabled=${this.offline || this.busy} @keydown=${noRepeat}
            @click=${() => this.answer(false)}>Deny</button>
          <button class="button primary approve" ?disabled=${this.offline || this.busy} @keydown=${noRepeat}
            @click=${() => this.answer(true)}>Approve</button>
        </div>
      </div>
    `;
  }

  private renderLeft(left: number | undefined) {
    if (this.offline) return "Not connected: you can answer when the gateway is back.";
    const more = this.others > 0 ? ` · ${this.others} more waiting` : "";
    return left === undefined ? more.slice(3) : html`${left > 0 ? `Expires in ${countdown(left)}` : "Expired"}${more}`;
  }

  private renderDetails({ toolName, summary, details }: Approval) {
    const { command, workingDir, actions, ...rest } = details;
    const texts: string[] = [];
    const text = (value: unknown): string => {
      const whole = typeof value === "string" ? value : (JSON.stringify(value, null, 1) ?? "");
      texts.push(whole);
      return whole;
    };
    const list = Array.isArray(actions) ? actions : actions === undefined ? [] : [actions];
    const parts = [
      workingDir === undefined ? nothing : html`<h3>Folder</h3>${exact(text(workingDir), "Folder")}`,
      command === undefined
        ? nothing
        : html`<h3>Command <span>${measure(command)}</span></h3>${exact(text(command), "Command")}`,
      list.length
        ? html`<h3>${list.length === 1 ? "Action" : `${list.length} actions, in this order`}</h3>
            ${list.map((each, at) => exact(text(each), `Action ${at + 1}`))}`
        : nothing,
      Object.keys(rest).length ? html`<h3>Details</h3>${exact(text(rest), "Details")}` : nothing,
      command === undefined && list.length === 0 && Object.keys(rest).length === 0
        ? html`<h3>Summary</h3>${exact(text(summary), "Summary")}`
        : nothing,
    ];
    return html`${parts}${this.renderWarnings(texts, toolName)}`;
  }

  private renderWarnings(texts: string[], toolName: string) {
    const shown = texts.map(show);
    const hidden = shown.reduce((sum, each) => sum + each.hidden, 0);
    const foreign = shown.reduce((sum, each) => sum + each.foreign, 0);
    return html`
      ${
        hidden
          ? html`<p class="warning" role="note">${icon("warn", 18)}
            <span><b>It has characters that can't be seen</b>, or that change the order of others. They
              are shown as <code class="sign">U+…</code>. Approve only if you know why they are there.</span></p>`
          : nothing
      }
      ${
        foreign
          ? html`<p class="warning" role="note">
            ${icon("warn", 18)}<span>It has letters beyond ASCII (underlined). Some look like others.</span></p>`
          : nothing
      }
      ${toolName === "bash" ? html`<p
        class="note">It runs with your rights. Files that it uses may change before it runs.</p>` : nothing}
    `;
  }

  private rememberChanged(event: Event): void {
    this.remember = (event.target as HTMLInputElement).checked;
  }

  private answer(approve: boolean): void {
    const { approval } = this;
    if (!approval || performance.now() - this.shownAt < ARMING_MS) return;
    const reason = this.renderRoot.querySelector<HTMLInputElement>("#reason")?.value.trim() ?? "";
    emit(this, "jarvis-answer", {
      approvalId: approval.approvalId,
      approve,
      ...(!approve && reason ? { reason } : {}),
      ...(approve && this.remember && approval.canRemember ? { remember: true } : {}),
    });
  }

  private aside(event: Event): void {
    event.preventDefault();
    this.later();
  }

  /** The browser closes it by itself on a second Escape. */
  private closed(): void {
    if (this.approval) this.later();
  }

  private later(): void {
    emit(this, "jarvis-close", null);
  }

  static override styles = [
    shared,
    exactStyles,
    css`
      dialog {
        width: min(40rem, calc(100vw - 2rem));
        max-height: min(46rem, calc(100dvh - 2rem));
        padding: 0;
        border: 1px solid var(--border);
        border-radius: 16px;
        background: var(--surface);
        color: var(--text);
        box-shadow: var(--shadow-l);
        overflow: hidden;
      }
      dialog[open] {
        display: flex;
        flex-direction: column;
        animation: rise 0.18s var(--ease);
      }
      dialog::backdrop {
        background: var(--scrim);
      }
      @keyframes rise {
        from { opacity: 0; transform: translateY(8px) scale(0.99); }
      }
      .head {
        display: flex;
        align-items: center;
        gap: 0.875rem;
        padding: 1rem 1rem 0.875rem 1.25rem;
      }
      .head > div {
        flex: 1;
        min-width: 0;
      }
      h2 {
        font-size: 1.0625rem;
        font-weight: 650;
        line-height: 1.3;
      }
      .head p {
        color: var(--muted);
        font-size: var(--text-s);
        overflow: hidden;
        text-overflow: ellipsis;
        white-space: nowrap;
      }
      .badge {
        display: grid;
        place-items: center;
        width: 2.375rem;
        height: 2.375rem;
        border-radius: 50%;
        background: var(--warn-soft);
        color: var(--warn);
      }
      .content {
        flex: 1;
        min-height: 0;
        padding: 0.125rem 1.25rem 1rem;
      }
      h3 {
        display: flex;
        justify-content: space-between;
        margin: 0.875rem 0 0.375rem;
        color: var(--muted);
        font-size: var(--text-xs);
        font-weight: 600;
      }
      h3:first-child {
        margin-top: 0;
      }
      h3 span {
        font-weight: 400;
      }
      .exact + .exact {
        margin-top: 0.5rem;
      }
      .warning, .note {
        margin-top: 0.875rem;
        font-size: var(--text-s);
      }
      .warning {
        display: flex;
        gap: 0.625rem;
        padding: 0.625rem 0.75rem;
        border-radius: var(--radius-s);
        background: var(--warn-soft);
        color: var(--warn);
      }
      .sign {
        font-family: var(--mono);
        font-weight: 600;
      }
      .note {
        color: var(--muted);
      }
      .foot {
        padding: 0.875rem 1.25rem 1rem;
        border-top: 1px solid var(--border);
      }
      .remember {
        display: flex;
        align-items: center;
        gap: 0.625rem;
        margin-bottom: 0.75rem;
        font-size: var(--text-s);
        cursor: pointer;
      }
      .remember input {
        width: 1.125rem;
        height: 1.125rem;
        margin: 0;
        accent-color: var(--accent);
      }
      #reason {
        font-size: var(--text-s);
      }
      .buttons {
        display: flex;
        align-items: center;
        gap: 0.625rem;
        margin-top: 0.75rem;
      }
      .buttons .button {
        min-width: 6.5rem;
      }
      .left {
        flex: 1;
        color: var(--muted);
        font-size: var(--text-s);
        font-variant-numeric: tabular-nums;
      }
      @media (max-width: 30rem) {
        .buttons {
          flex-wrap: wrap;
        }
        .left {
          flex-basis: 100%;
        }
        .buttons .button {
          flex: 1;
          min-height: 2.75rem;
        }
        dialog {
          width: 100vw;
          max-width: none;
          margin: auto 0 0;
          border-radius: 16px 16px 0 0;
          border-width: 1px 0 0;
        }
      }
    `,
  ];
}

function question(toolName: string): string {
  if (toolName === "bash") return "Run this command?";
  return toolName === "browser" ? "Let the browser do this?" : `Run ${showInline(toolName, 60)}?`;
}

function measure(command: unknown): string {
  const text = String(command);
  const lines = text.split("\n").length;
  return `${lines === 1 ? "1 line" : `${lines} lines`}, ${bytes(show(text).bytes)}`;
}

function noRepeat(event: KeyboardEvent): void {
  if (event.repeat) event.preventDefault();
}

customElements.define("jarvis-approval-dialog", JarvisApprovalDialog);
