/** <jarvis-session-list>: the side bar: a new chat, search, and the conversations by age, each with a menu. */
import { LitElement, css, html, nothing } from "lit";
import { emit } from "../emit.js";
import { groups, titleOf } from "../format.js";
import { icon } from "../icons.js";
import { isComposing } from "../keys.js";
import type { SearchResult, Session } from "../protocol.js";
import { shared } from "../shared-styles.js";

const SEARCH_MS = 200;

export class JarvisSessionList extends LitElement {
  static override properties = {
    sessions: { attribute: false },
    current: { attribute: false },
    waiting: { attribute: false },
    loaded: { type: Boolean },
    search: { attribute: false },
    query: { state: true },
    results: { state: true },
    failed: { state: true },
    renaming: { state: true },
    removing: { state: true },
    menu: { state: true },
  };
  declare sessions: Session[];
  declare current: string | null;
  /** Sessions with an open approval. */
  declare waiting: Set<string>;
  declare loaded: boolean;
  declare search: (query: string) => Promise<SearchResult[]>;
  declare query: string;
  declare results: SearchResult[] | null;
  declare failed: string;
  declare renaming: string | null;
  declare removing: Session | null;
  declare menu: string | null;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    super();
    this.sessions = [];
    this.current = null;
    this.waiting = new Set();
    this.loaded = false;
    this.search = () => Promise.resolve([]);
    this.query = "";
    this.results = null;
    this.failed = "";
    this.renaming = null;
    this.removing = null;
    this.menu = null;
  }

  focusSearch(): void {
    this.renderRoot.querySelector<HTMLInputElement>(".search input")?.focus();
  }

  override render() {
    return html`
      <button class="new" @click=${() => emit(this, "jarvis-open", null)}>${icon("compose", 18)}New chat</button>
      <div class="search" role="search">
        ${icon("search", 16)}
        <input type="search" dir="auto" aria-label="Search all chats" placeholder="Search" .value=${this.query}
          @input=${this.typed} @keydown=${this.searchKeyed} />
        <kbd aria-hidden="true">Ctrl K</kbd>
      </div>
      <nav class="scroll" aria-label="Chats"
        @click=${this.navClicked}>${this.results ? this.renderResults(this.results) : this.renderGroups()}</nav>
      <dialog class="confirm" aria-labelledby="remove-title" @close=${() => (this.removing = null)}>
        <h2 id="remove-title">Delete this chat?</h2>
        <p>“<bdi>${titleOf(this.removing ?? {})}</bdi>” is deleted for good, with its messages and pictures.</p>
        <div class="buttons">
          <button class="button" autofocus @click=${this.closeConfirm}>Cancel</button>
          <button class="button danger" @click=${this.confirmed}>Delete</button>
        </div>
      </dialog>
    `;
  }

  private renderGroups() {
    if (!this.loaded) return html`<div class="blank" aria-hidden="true"><i></i><i></i><i></i></div>`;
    if (!this.sessions.length) return html`<p class="empty">Your chats appear here. They are kept on this machine.</p>`;
    return groups(this.sessions, Date.now()).map(
      (group) => html`<h2>${group.name}</h2>
        <ul>${group.sessions.map((session) => this.renderSession(session))}</ul>`,
    );
  }

  private renderResults(results: SearchResult[]) {
    if (this.failed) return html`<p class="empty" role="alert">The search failed: ${this.failed}</p>`;
    if (!results.length)
      return html`<p class="empty" role="status">Nothing found for “<bdi>${this.query.trim()}</bdi>”. Try fewer or other
        words.</p>`;
    return html`<h2><span role="status">${results.length === 1 ? "1 chat" : `${results.length} chats`}</span></h2>
      <ul>
        ${results.map(
          (result) => html`<li>
            <button class="result" aria-current=${result.sessionKey === this.current ? "true" : nothing}
              @click=${() => emit(this, "jarvis-open", result.sessionKey)}>
              <span class="title" dir="auto">${marked(titleOf(result), this.query)}</span>
              ${result.snippet ? html`<span class="snippet" dir="auto">${marked(result.snippet, this.query)}</span>` : nothing}
            </button>
          </li>`,
        )}
      </ul>`;
  }

  private renderSession(session: Session) {
    const { sessionKey } = session;
    const title = titleOf(session);
    if (this.renaming === sessionKey) {
      return html`<li><input class="field rename" dir="auto" aria-label="New title" maxlength="200" .value=${title}
        @keydown=${(event: KeyboardEvent) => this.renameKeyed(event, sessionKey)}
        @blur=${(event: Event) => this.renamed(event, sessionKey)} /></li>`;
    }
    const waits = this.waiting.has(sessionKey);
    return html`<li class=${this.menu === sessionKey ? "open" : ""}>
      <button class="session" title=${title} aria-current=${sessionKey === this.current ? "page" : nothing}
        @click=${() => emit(this, "jarvis-open", sessionKey)}>
        <span class="title" dir="auto">${title}</span>
        ${waits ? html`<span class="dot warn" title="Waits for your approval"></span><span
          class="sr-only">, waits for your approval</span>` : session.running ? html`<span class="spinner"
            title="Answering"></span><span class="sr-only">, answering</span>` : nothing}
      </button>
      <button class="icon-button small more" aria-label=${`Menu of ${title}`} aria-haspopup="menu"
        aria-expanded=${this.menu === sessionKey}
        @click=${(event: Event) => this.toggleMenu(event, sessionKey)}>${icon("more", 16)}</button>
      ${this.menu === sessionKey ? this.renderMenu(session) : nothing}
    </li>`;
  }

  private renderMenu(session: Session) {
    const { sessionKey } = session;
    const item = (name: "edit" | "save" | "trash", label: string, act: () => void, kind = "") =>
      html`<button role="menuitem" class=${kind} tabindex="-1"
        @click=${() => this.choose(act)}>${icon(name, 16)}${label}</button>`;
    return html`<div class="menu" role="menu" aria-label=${`Menu of ${titleOf(session)}`} @keydown=${this.menuKeyed}
      @focusout=${this.menuLeft}>
      ${item("edit", "Rename", () => this.rename(sessionKey))}
      ${item("save", "Export as Markdown", () => emit(this, "jarvis-export", { sessionKey, format: "markdown" }))}
      ${item("save", "Export as JSONL", () => emit(this, "jarvis-export", { sessionKey, format: "jsonl" }))}
      ${item("trash", "Delete", () => this.askRemove(session), "danger")}
    </div>`;
  }

  // --- search ---

  private typed(event: Event): void {
    this.query = (event.target as HTMLInputElement).value;
    clearTimeout(this.timer);
    const query = this.query.trim();
    if (!query) this.results = null;
    else this.timer = setTimeout(() => void this.find(query), SEARCH_MS);
  }

  private async find(query: string): Promise<void> {
    try {
      const results = await this.search(query);
      if (this.query.trim() !== query) return;
      this.failed = "";
      this.results = results;
    } catch (error) {
      this.failed = error instanceof Error ? error.message : String(error);
      this.results = [];
    }
  }

  private searchKeyed(event: KeyboardEvent): void {
    if (isComposing(event)) return;
    if (event.key === "Escape" && this.query) {
      event.preventDefault();
      event.stopPropagation();
      this.query = "";
      this.results = null;
    } else if (event.key === "ArrowDown") {
      event.preventDefault();
      this.renderRoot.querySelector<HTMLElement>(".session, .result")?.focus();
    }
  }

  // --- menu ---

  private toggleMenu(event: Event, sessionKey: string): void {
    event.stopPropagation();
    this.menu = this.menu === sessionKey ? null : sessionKey;
    if (this.menu) void this.updateComplete.then(() => this.placeMenu());
  }

  /** Opens the menu upwards if there is no room below. */
  private placeMenu(): void {
    const menu = this.renderRoot.querySelector<HTMLElement>(".menu");
    const nav = this.renderRoot.querySelector("nav");
    if (!menu || !nav) return;
    menu.classList.toggle("up", menu.getBoundingClientRect().bottom > nav.getBoundingClientRect().bottom);
    menu.querySelector<HTMLElement>("[role=menuitem]")?.focus();
  }

  private navClicked(): void {
    this.menu = null;
  }

  private menuLeft(event: FocusEvent): void {
    const to = event.relatedTarget;
    if (to instanceof Node && (event.currentTarget as Node).contains(to)) return;
    if (to instanceof Element && to.classList.contains("more")) return; // its click toggles
    this.menu = null;
  }

  private menuKeyed(event: KeyboardEvent): void {
    const items = [...(event.currentTarget as Element).querySelectorAll<HTMLElement>("[role=menuitem]")];
    const at = items.findIndex((each) => each === (this.renderRoot as ShadowRoot).activeElement);
    const steps: Record<string, number> = {
      ArrowDown: at + 1,
      ArrowUp: at - 1 + items.length,
      Home: 0,
      End: items.length - 1,
    };
    const next = steps[event.key];
    if (next !== undefined) {
      event.preventDefault();
      items[next % items.length]?.focus();
    } else if (event.key === "Escape" || event.key === "Tab") {
      event.preventDefault();
      event.stopPropagation();
      const button = (event.currentTarget as Element).parentElement?.querySelector<HTMLElement>(".more");
      this.menu = null;
      button?.focus();
    }
  }

  private choose(act: () => void): void {
    this.menu = null;
    act();
  }

  // --- rename, delete ---

  private rename(sessionKey: string): void {
    this.renaming = sessionKey;
    void this.updateComplete.then(() => {
      const field = this.renderRoot.querySelector<HTMLInputElement>(".rename");
      field?.focus();
      field?.select();
    });
  }

  private renameKeyed(event: KeyboardEvent, sessionKey: string): void {
    event.stopPropagation();
    if (isComposing(event)) return;
    if (event.key === "Escape") this.renaming = null;
    else if (event.key === "Enter") this.renamed(event, sessionKey);
  }

  private renamed(event: Event, sessionKey: string): void {
    if (this.renaming !== sessionKey) return;
    this.renaming = null;
    const title = (event.target as HTMLInputElement).value.trim();
    const before = this.sessions.find((each) => each.sessionKey === sessionKey);
    if (title && title !== titleOf(before ?? {})) emit(this, "jarvis-rename", { sessionKey, title });
  }

  private get confirm(): HTMLDialogElement | null {
    return this.renderRoot.querySelector(".confirm");
  }

  private askRemove(session: Session): void {
    this.removing = session;
    void this.updateComplete.then(() => this.confirm?.showModal());
  }

  private closeConfirm(): void {
    this.confirm?.close();
  }

  private confirmed(): void {
    const session = this.removing;
    this.closeConfirm();
    if (session) emit(this, "jarvis-remove", session.sessionKey);
  }

  static override styles = [
    shared,
    css`
      :host {
        display: flex;
        flex-direction: column;
        flex: 1;
        min-height: 0;
        gap: 0.5rem;
      }
      .new {
        display: flex;
        align-items: center;
        gap: 0.625rem;
        min-height: 2.5rem;
        margin: 0 0.5rem;
        padding: 0 0.75rem;
        border: 0;
        border-radius: var(--radius-s);
        background: none;
        font-weight: 550;
        font-size: var(--text-m);
        text-align: left;
        cursor: pointer;
        transition: background 0.12s var(--ease);
      }
      .new .icon {
        color: var(--accent);
      }
      .new:hover {
        background: var(--hover);
      }
      .search {
        position: relative;
        display: flex;
        align-items: center;
        margin: 0 0.75rem;
      }
      .search .icon {
        position: absolute;
        left: 0.75rem;
        color: var(--muted);
        pointer-events: none;
      }
      .search input {
        width: 100%;
        height: 2.25rem;
        padding: 0 0.75rem 0 2.25rem;
        border: 1px solid var(--border);
        border-radius: var(--radius-s);
        background: var(--surface);
        font-size: var(--text-s);
        transition: border-color 0.12s var(--ease);
      }
      .search input:focus-visible {
        outline-offset: -1px;
      }
      .search input:hover {
        border-color: var(--border-strong);
      }
      .search kbd {
        position: absolute;
        right: 0.625rem;
        color: var(--muted);
        font: var(--text-xs) / 1 var(--font);
        pointer-events: none;
      }
      .search input:not(:placeholder-shown) + kbd,
      .search input:focus + kbd {
        display: none;
      }
      @media (pointer: coarse) {
        .search kbd {
          display: none;
        }
      }
      nav {
        flex: 1;
        min-height: 0;
        padding: 0.25rem 0.5rem 1rem;
      }
      nav h2 {
        padding: 0.875rem 0.75rem 0.375rem;
        color: var(--muted);
        font-size: var(--text-xs);
        font-weight: 600;
      }
      ul {
        padding: 0;
        list-style: none;
      }
      li {
        position: relative;
      }
      .session, .result {
        display: flex;
        align-items: center;
        gap: 0.5rem;
        width: 100%;
        min-height: 2.25rem;
        padding: 0 0.75rem;
        border: 0;
        border-radius: var(--radius-s);
        background: none;
        text-align: left;
        font-size: var(--text-s);
        cursor: pointer;
        transition: background 0.1s var(--ease);
      }
      li:hover .session, li.open .session, .result:hover {
        background: var(--hover);
      }
      .session[aria-current], .result[aria-current], li:hover .session[aria-current] {
        background: var(--active);
        font-weight: 550;
      }
      .session:focus-visible, .result:focus-visible {
        outline-offset: -2px;
      }
      .title {
        flex: 1;
        min-width: 0;
        overflow: hidden;
        text-overflow: ellipsis;
        white-space: nowrap;
      }
      .session .spinner {
        width: 0.75rem;
        height: 0.75rem;
      }
      .dot {
        width: 0.5rem;
        height: 0.5rem;
        border-radius: 50%;
        background: var(--warn);
      }
      .more {
        position: absolute;
        right: 0.1875rem;
        top: 0.1875rem;
        opacity: 0;
      }
      li:hover .more, li:focus-within .more, li.open .more {
        opacity: 1;
      }
      li:hover .session, li:focus-within .session, li.open .session {
        padding-right: 2.25rem;
      }
      @media (hover: none) {
        .more {
          opacity: 1;
        }
        .session {
          padding-right: 2.75rem !important;
          min-height: 2.875rem;
        }
      }
      .menu {
        position: absolute;
        z-index: 2;
        top: calc(100% + 2px);
        right: 0;
        min-width: 12.5rem;
        padding: 0.3125rem;
        border: 1px solid var(--border);
        border-radius: var(--radius-m);
        background: var(--surface);
        box-shadow: var(--shadow-l);
      }
      .menu.up {
        top: auto;
        bottom: calc(100% + 2px);
      }
      .menu button {
        display: flex;
        align-items: center;
        gap: 0.625rem;
        width: 100%;
        min-height: 2.25rem;
        padding: 0 0.625rem;
        border: 0;
        border-radius: 7px;
        background: none;
        font-size: var(--text-s);
        text-align: left;
        cursor: pointer;
      }
      .menu button:hover, .menu button:focus-visible {
        background: var(--hover);
        outline-offset: -2px;
      }
      .menu .icon {
        color: var(--muted);
      }
      .menu .danger, .menu .danger .icon {
        color: var(--danger);
      }
      .rename {
        min-height: 2.25rem;
        font-size: var(--text-s);
      }
      .result {
        flex-direction: column;
        align-items: stretch;
        gap: 0.125rem;
        padding: 0.5rem 0.75rem;
      }
      .result .title {
        flex: none;
        font-weight: 550;
      }
      .snippet {
        display: -webkit-box;
        -webkit-box-orient: vertical;
        -webkit-line-clamp: 2;
        overflow: hidden;
        color: var(--muted);
        font-size: var(--text-xs);
        overflow-wrap: anywhere;
      }
      mark {
        border-radius: 3px;
        background: var(--accent-soft);
        color: var(--text);
        font-weight: 600;
      }
      .empty {
        padding: 0.75rem;
        color: var(--muted);
        font-size: var(--text-s);
      }
      .blank {
        display: grid;
        gap: 0.625rem;
        padding: 1rem 0.75rem;
      }
      .blank i {
        height: 1rem;
        border-radius: 6px;
        background: var(--hover);
      }
      .blank i:nth-child(2) { width: 70%; }
      .blank i:nth-child(3) { width: 85%; }
      .confirm {
        width: min(26rem, calc(100vw - 2rem));
        padding: 1.25rem;
        border: 1px solid var(--border);
        border-radius: 16px;
        background: var(--surface);
        color: var(--text);
        box-shadow: var(--shadow-l);
      }
      .confirm::backdrop {
        background: var(--scrim);
      }
      .confirm h2 {
        font-size: 1.0625rem;
        font-weight: 650;
      }
      .confirm p {
        margin-top: 0.5rem;
        color: var(--muted);
        overflow-wrap: anywhere;
      }
      .confirm .buttons {
        display: flex;
        justify-content: end;
        gap: 0.625rem;
        margin-top: 1.25rem;
      }
    `,
  ];
}

/** A text as the gateway's search compares it: without case, width, composition and accents. */
function folded(text: string): string {
  return text.normalize("NFKD").replace(/[\u0300-\u036f]/g, "").normalize("NFC").toLowerCase();
}

/** Marks the words of the query in the text. */
function marked(text: string, query: string) {
  const words = folded(query).trim().split(/\s+/).filter(Boolean);
  if (!words.length) return text;
  const characters = [...new Intl.Segmenter().segment(text)].map(({ segment }) => segment);
  const starts: number[] = []; // for each unit of the folded text, the character that it comes from
  let whole = "";
  characters.forEach((character, index) => {
    whole += folded(character);
    while (starts.length < whole.length) starts.push(index);
  });
  const hit = new Set<number>();
  for (const word of words)
    for (let at = whole.indexOf(word); at >= 0; at = whole.indexOf(word, at + word.length))
      for (let unit = at; unit < at + word.length; unit++) hit.add(starts[unit] ?? 0);
  const parts: unknown[] = [];
  for (let at = 0; at < characters.length; ) {
    let end = at + 1;
    while (end < characters.length && hit.has(end) === hit.has(at)) end++;
    const part = characters.slice(at, end).join("");
    parts.push(hit.has(at) ? html`<mark>${part}</mark>` : part);
    at = end;
  }
  return parts;
}

customElements.define("jarvis-session-list", JarvisSessionList);
