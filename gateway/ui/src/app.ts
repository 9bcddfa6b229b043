/**
 * <jarvis-app>: the page. It holds the controller, gives its state to the components, and turns their events into calls
 * of the controller. Shortcuts, the side bar and the theme are here too.
 */
import { LitElement, css, html, nothing } from "lit";
import "./components/approval-dialog.js";
import "./components/chat-view.js";
import "./components/help-dialog.js";
import "./components/login.js";
import "./components/session-list.js";
import type { JarvisChatView } from "./components/chat-view.js";
import type { JarvisHelpDialog } from "./components/help-dialog.js";
import type { JarvisSessionList } from "./components/session-list.js";
import { Controller } from "./controller.js";
import { textOf, type Item } from "./conversation.js";
import { on, type ComponentEvents } from "./emit.js";
import { titleOf, usageLine } from "./format.js";
import { icon } from "./icons.js";
import type { Approval } from "./protocol.js";
import { shared } from "./shared-styles.js";
import { followTheme, setTheme, theme, type Theme } from "./theme.js";

const THEMES: Record<Theme, { next: Theme; icon: "system" | "sun" | "moon"; label: string }> = {
  system: { next: "light", icon: "system", label: "Theme: the system's" },
  light: { next: "dark", icon: "sun", label: "Theme: light" },
  dark: { next: "system", icon: "moon", label: "Theme: dark" },
};
const NARROW = "(max-width: 52rem)";

export class JarvisApp extends LitElement {
  static override properties = {
    barOpen: { state: true },
    narrow: { state: true },
    setAside: { state: true },
    answering: { state: true },
  };
  declare barOpen: boolean;
  declare narrow: boolean;
  /** Approvals that the user will decide later. */
  declare setAside: Set<string>;
  declare answering: string | null;
  private readonly controller: Controller;
  private readonly media = matchMedia(NARROW);

  constructor() {
    super();
    this.narrow = this.media.matches;
    this.barOpen = !this.narrow;
    this.setAside = new Set();
    this.answering = null;
    const url = `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws`;
    this.controller = new Controller(() => this.requestUpdate(), url);
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.media.addEventListener("change", () => {
      this.narrow = this.media.matches;
      this.barOpen = !this.narrow;
    });
    addEventListener("keydown", (event) => this.keyed(event));
    followTheme(() => this.requestUpdate());
    void this.controller.start();
  }

  override updated(): void {
    const { conversation, current, approvals } = this.controller;
    const title = current === null ? "Jarvis" : `${titleOf(conversation.session)} · Jarvis`;
    document.title = approvals.length ? `(${approvals.length}) ${title}` : title;
  }

  private get chat(): JarvisChatView | null {
    return this.renderRoot.querySelector("jarvis-chat-view");
  }

  private get list(): JarvisSessionList | null {
    return this.renderRoot.querySelector("jarvis-session-list");
  }

  // --- what is shown ---

  override render() {
    const { controller } = this;
    if (controller.needsLogin) {
      return html`<jarvis-login .reason=${controller.reason} .busy=${controller.connection === "connecting"}
        @jarvis-login=${on("jarvis-login", (token) => controller.login(token))}></jarvis-login>`;
    }
    return html`
      <nav aria-label="Skip"><a class="skip" href="#" @click=${this.skip}>Skip to the message field</a></nav>
      <div class="layout ${this.barOpen ? "with-bar" : ""}">
        ${this.renderBar()}
        ${this.narrow && this.barOpen ? html`<div class="scrim" @click=${this.toggleBar}></div>` : nothing}
        <div class="main" ?inert=${this.narrow && this.barOpen}>
          ${this.renderHead()} ${this.renderBanner()} ${this.renderNotice()}
          <main>${this.renderChat()}</main>
        </div>
      </div>
      ${this.renderApproval()}
      <jarvis-help-dialog @jarvis-close=${on("jarvis-close", () => this.chat?.input?.focus())}></jarvis-help-dialog>
    `;
  }

  private renderBar() {
    const { controller } = this;
    const waiting = new Set(controller.approvals.map((each) => each.sessionKey ?? ""));
    const modal = this.narrow && this.barOpen;
    return html`<div class="bar" ?inert=${!this.barOpen} role=${modal ? "dialog" : "complementary"}
      aria-modal=${modal ? "true" : nothing} aria-label="Side bar">
      <div class="brand">
        <img src="./icon.svg" alt="" width="26" height="26" /><b>Jarvis</b>
        <button class="icon-button" title="Hide the side bar (Ctrl Shift S)" aria-label="Hide the side bar"
          @click=${this.toggleBar}>${icon("sidebar")}</button>
      </div>
      <jarvis-session-list
        .sessions=${controller.listed}
        .current=${controller.current}
        .waiting=${waiting}
        .loaded=${controller.sessionsLoaded}
        .search=${this.search}
        @jarvis-open=${on("jarvis-open", (key) => this.open(key))}
        @jarvis-rename=${on("jarvis-rename", ({ sessionKey, title }) => void controller.rename(sessionKey, title))}
        @jarvis-remove=${on("jarvis-remove", (key) => void controller.remove(key))}
        @jarvis-export=${on("jarvis-export", ({ sessionKey, format }) => void controller.save(sessionKey, format))}
      ></jarvis-session-list>
      <div class="foot">
        ${this.renderTheme()}
        <button class="icon-button" title="Keyboard (?)" aria-label="Keyboard shortcuts"
          @click=${this.help}>${icon("help")}</button>
        <span class="gap"></span>
        <button class="icon-button" title="Log out" aria-label="Log out"
          @click=${() => controller.logout()}>${icon("logout")}</button>
      </div>
    </div>`;
  }

  private readonly search = (query: string) => this.controller.search(query);
  private readonly loadBlob = (attachment: Parameters<Controller["blob"]>[0]) => this.controller.blob(attachment);

  private renderTheme() {
    const { next, icon: name, label } = THEMES[theme()];
    return html`<button class="icon-button" title="${label}. Change to ${next}" aria-label="${label}. Change to ${next}"
      @click=${() => this.changeTheme(next)}>${icon(name)}</button>`;
  }

  private renderHead() {
    const { conversation, current, agent } = this.controller;
    const { usage } = conversation.session;
    return html`<header class="head">
      ${
        this.barOpen && !this.narrow
          ? nothing
          : html`<button class="icon-button" title="Show the side bar (Ctrl Shift S)" aria-label="Show the side bar"
            aria-expanded=${this.barOpen} @click=${this.toggleBar}>
            ${icon(this.narrow ? "menu" : "sidebar")}</button>`
      }
      <h1 class="name" dir="auto">${current === null ? "New chat" : titleOf(conversation.session)}</h1>
      ${agent ? html`<span class="model"
        title="The agent ${agent.name} and its model">${agent.name}<i>${agent.model}</i></span>` : nothing}
      ${usage && usage.inputTokens + usage.outputTokens > 0 ? html`<span class="usage"
        title="Tokens of this chat">${usageLine(usage)}</span>` : nothing}
      ${
        this.barOpen && !this.narrow
          ? nothing
          : html`<button class="icon-button" title="New chat (Ctrl Shift O)" aria-label="New chat"
            @click=${() => this.open(null)}>${icon("compose")}</button>`
      }
    </header>`;
  }

  private renderBanner() {
    const { connection, wasOnline, reason } = this.controller;
    if (connection === "online" || (connection === "connecting" && !wasOnline && !reason)) return nothing;
    return html`<div class="banner" role="status">
      <span class="spinner"></span>
      <span>${wasOnline ? "The connection to the gateway is lost." : "The gateway does not answer. Is fm-gateway running?"}
        Trying again …</span>
      <button class="button small" @click=${() => this.controller.retryNow()}>Try now</button>
    </div>`;
  }

  private renderNotice() {
    const { notice } = this.controller;
    if (!notice) return nothing;
    return html`<div class="banner ${notice.kind}" role="alert">
      ${icon("warn")}<span>${notice.text}</span>
      <button class="icon-button small" aria-label="Dismiss"
        @click=${() => this.controller.dismiss()}>${icon("close", 16)}</button>
    </div>`;
  }

  private renderChat() {
    const { controller } = this;
    return html`<jarvis-chat-view
      .conversation=${controller.conversation}
      .approvals=${controller.approvals}
      .agents=${controller.agents}
      .agentId=${controller.agentId}
      .loadBlob=${this.loadBlob}
      .offline=${controller.connection !== "online"}
      .isNew=${controller.current === null}
      @jarvis-send=${on("jarvis-send", (text) => controller.send(text))}
      @jarvis-stop=${on("jarvis-stop", (runId) => void controller.abort(runId))}
      @jarvis-resend=${on("jarvis-resend", (item) => controller.resend(item))}
      @jarvis-discard=${on("jarvis-discard", (item) => controller.discard(item))}
      @jarvis-edit=${on("jarvis-edit", (text) => this.chat?.input?.edit(text))}
      @jarvis-again=${on("jarvis-again", (item) => this.again(item))}
      @jarvis-review=${on("jarvis-review", (id) => this.review(id))}
      @jarvis-earlier=${on("jarvis-earlier", () => void controller.loadEarlier())}
      @jarvis-agent=${on("jarvis-agent", (id) => this.chooseAgent(id))}
    ></jarvis-chat-view>`;
  }

  /** The approval that the dialog shows: the oldest one that was not put aside. */
  private get approval(): Approval | null {
    return this.controller.approvals.find((each) => !this.setAside.has(each.approvalId)) ?? null;
  }

  private renderApproval() {
    const { controller, approval } = this;
    const session = controller.sessions.get(approval?.sessionKey ?? controller.current ?? "");
    return html`<jarvis-approval-dialog
      .approval=${approval}
      .others=${controller.approvals.length - 1}
      .sessionTitle=${titleOf(session ?? {})}
      .offline=${controller.connection !== "online"}
      .busy=${this.answering !== null && this.answering === approval?.approvalId}
      @jarvis-answer=${on("jarvis-answer", (answer) => void this.answer(answer))}
      @jarvis-close=${on("jarvis-close", () => approval && (this.setAside = new Set(this.setAside).add(approval.approvalId)))}
    ></jarvis-approval-dialog>`;
  }

  // --- what the user does ---

  private open(sessionKey: string | null): void {
    this.controller.open(sessionKey);
    if (this.narrow) this.barOpen = false;
    void this.updateComplete.then(() => this.chat?.input?.focus());
  }

  private again(item: Item): void {
    const { items } = this.controller.conversation;
    const asked = items.slice(0, items.indexOf(item)).findLast((each) => each.role === "user");
    if (asked) this.controller.send(textOf(asked));
  }

  private chooseAgent(id: string): void {
    this.controller.agentId = id;
    this.requestUpdate();
  }

  private review(approvalId: string): void {
    this.setAside = new Set([...this.setAside].filter((each) => each !== approvalId));
  }

  private async answer({ approvalId, approve, ...more }: ComponentEvents["jarvis-answer"]): Promise<void> {
    const approval = this.controller.approvals.find((each) => each.approvalId === approvalId);
    if (!approval || this.answering) return;
    this.answering = approvalId;
    await this.controller.answer(approval, approve, more);
    this.answering = null;
    if (!this.approval) this.chat?.input?.focus();
  }

  private changeTheme(next: Theme): void {
    setTheme(next);
    this.requestUpdate();
  }

  private toggleBar(): void {
    this.barOpen = !this.barOpen;
    const next = this.barOpen ? ".brand button" : ".head button";
    void this.updateComplete.then(() => this.renderRoot.querySelector<HTMLElement>(next)?.focus());
  }

  private help(): void {
    this.renderRoot.querySelector<JarvisHelpDialog>("jarvis-help-dialog")?.show();
  }

  private skip(event: Event): void {
    event.preventDefault();
    this.chat?.input?.focus();
  }

  private keyed(event: KeyboardEvent): void {
    if (this.controller.needsLogin || this.approval) return;
    const control = (event.ctrlKey || event.metaKey) && !event.altKey;
    const key = event.key.toLowerCase();
    const writing = event
      .composedPath()
      .some((each) => each instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT|DIALOG)$/.test(each.tagName));
    const plain = !control && !event.altKey && !writing;
    const act =
      control && !event.shiftKey && key === "k"
        ? () => this.find()
        : control && event.shiftKey && key === "o"
          ? () => this.open(null)
          : control && event.shiftKey && key === "s"
            ? () => this.toggleBar()
            : plain && key === "/"
              ? () => this.chat?.input?.focus()
              : plain && key === "?"
                ? () => this.help()
                : key === "escape" && this.narrow && this.barOpen
                  ? () => this.toggleBar()
                  : null;
    if (!act) return;
    event.preventDefault();
    act();
  }

  private find(): void {
    this.barOpen = true;
    void this.updateComplete.then(() => this.list?.focusSearch());
  }

  static override styles = [
    shared,
    css`
      :host {
        display: block;
        height: 100%;
        overflow: hidden;
      }
      .skip {
        position: absolute;
        z-index: 10;
        top: 0.5rem;
        left: 0.5rem;
        padding: 0.5rem 1rem;
        border-radius: var(--radius-s);
        background: var(--surface);
        color: var(--text);
        transform: translateY(-200%);
      }
      .skip:focus-visible {
        transform: none;
      }
      .layout {
        display: flex;
        height: 100%;
      }
      .bar {
        display: flex;
        flex-direction: column;
        flex: none;
        width: var(--sidebar);
        margin-left: calc(-1 * var(--sidebar));
        border-right: 1px solid var(--border);
        background: var(--sidebar-bg);
        visibility: hidden;
        transition: margin-left 0.2s var(--ease), visibility 0.2s;
      }
      .with-bar .bar {
        margin-left: 0;
        visibility: visible;
        transition: margin-left 0.2s var(--ease); /* visible at once, because a hidden element takes no focus */
      }
      .brand {
        display: flex;
        align-items: center;
        gap: 0.625rem;
        height: 3.5rem;
        padding: 0 0.625rem 0 1.125rem;
      }
      .brand b {
        flex: 1;
        font-size: 1.0625rem;
        font-weight: 650;
        letter-spacing: -0.01em;
      }
      .foot {
        display: flex;
        align-items: center;
        gap: 0.25rem;
        padding: 0.5rem 0.625rem max(0.5rem, env(safe-area-inset-bottom));
        border-top: 1px solid var(--border);
      }
      .gap {
        flex: 1;
      }
      .main {
        display: flex;
        flex-direction: column;
        flex: 1;
        min-width: 0;
      }
      main {
        flex: 1;
        min-height: 0;
      }
      jarvis-chat-view {
        height: 100%;
      }
      .head {
        display: flex;
        align-items: center;
        gap: 0.75rem;
        height: 3.5rem;
        padding: 0 1rem;
      }
      .head .icon-button:first-child {
        margin-left: -0.375rem;
      }
      .name {
        flex: 1;
        min-width: 0;
        overflow: hidden;
        text-overflow: ellipsis;
        white-space: nowrap;
        font-size: var(--text-m);
        font-weight: 600;
      }
      .model, .usage {
        flex: none;
        color: var(--muted);
        font-size: var(--text-xs);
        white-space: nowrap;
        font-variant-numeric: tabular-nums;
      }
      .model {
        max-width: 45%;
        padding: 0.1875rem 0.625rem;
        overflow: hidden;
        text-overflow: ellipsis;
        border: 1px solid var(--border);
        border-radius: 999px;
        color: var(--text);
      }
      .model i {
        margin-left: 0.375rem;
        color: var(--muted);
        font-style: normal;
      }
      .banner {
        display: flex;
        align-items: center;
        gap: 0.75rem;
        width: min(calc(var(--column) + 1rem), calc(100% - 1.5rem));
        margin: 0 auto 0.5rem;
        padding: 0.5rem 0.5rem 0.5rem 0.875rem;
        border-radius: var(--radius-m);
        background: var(--warn-soft);
        color: var(--warn);
        font-size: var(--text-s);
      }
      .banner span:nth-child(2) {
        flex: 1;
        min-width: 0;
        overflow-wrap: anywhere;
      }
      .banner .button {
        color: var(--text);
      }
      .banner.error {
        background: var(--danger-soft);
        color: var(--danger);
      }
      .banner.info {
        background: var(--accent-soft);
        color: var(--text);
      }
      .banner .icon-button {
        color: inherit;
      }
      @media (max-width: 52rem) {
        .bar {
          position: fixed;
          z-index: 3;
          inset: 0 auto 0 0;
          width: min(20rem, 85vw);
          margin-left: 0;
          box-shadow: var(--shadow-l);
          transform: translateX(-105%);
          transition: transform 0.22s var(--ease), visibility 0.22s;
        }
        .with-bar .bar {
          transform: none;
          transition: transform 0.22s var(--ease);
        }
        .scrim {
          position: fixed;
          z-index: 2;
          inset: 0;
          background: var(--scrim);
        }
        .head {
          gap: 0.5rem;
          padding: 0 0.75rem;
        }
        .usage {
          display: none;
        }
      }
      @media (max-width: 30rem) {
        .model i {
          display: none;
        }
      }
    `,
  ];
}

customElements.define("jarvis-app", JarvisApp);
