/**
 * <jarvis-message-list>: the messages in their order. It follows the end of the list while the user is at the end; otherwise it
 * offers a button to go there. A log beside it, for screen readers, gets the answer sentence by sentence.
 */
import { LitElement, css, html, nothing, type PropertyValues } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { textOf, type Item } from "../conversation.js";
import { emit } from "../emit.js";
import { icon } from "../icons.js";
import { spokenEnd } from "../markdown.js";
import type { Approval } from "../protocol.js";
import { shared } from "../shared-styles.js";
import "./message-item.js";
import type { LoadBlob } from "./tool-call.js";

const NEAR = 80; // px from the end; if the user is nearer, that counts as at the end
const SPEAK_MS = 1200;

export class JarvisMessageList extends LitElement {
  static override properties = {
    items: { attribute: false },
    approvals: { attribute: false },
    loadBlob: { attribute: false },
    more: { type: Boolean },
    sessionKey: { attribute: false },
    away: { state: true },
  };
  declare items: Item[];
  declare approvals: Approval[];
  declare loadBlob: LoadBlob | undefined;
  declare more: boolean;
  declare sessionKey: string;
  declare away: boolean;
  private follow = true;
  private spoken = { key: "", end: 0 };
  private speakTimer: ReturnType<typeof setTimeout> | undefined;
  private readonly observer = new ResizeObserver(() => this.followEnd());

  constructor() {
    super();
    this.items = [];
    this.approvals = [];
    this.more = false;
    this.sessionKey = "";
    this.away = false;
  }

  override firstUpdated(): void {
    for (const each of this.renderRoot.querySelectorAll(".view, .column")) this.observer.observe(each);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.observer.disconnect();
    clearTimeout(this.speakTimer);
  }

  override willUpdate(changes: PropertyValues<this>): void {
    const before = changes.get("items");
    const sent = before && this.items.length > before.length && this.items.at(-1)?.role === "user";
    if (changes.has("sessionKey") || sent) this.follow = true;
  }

  override updated(changes: PropertyValues<this>): void {
    if (changes.has("sessionKey")) this.spoken = { key: "", end: 0 };
    if (changes.has("items")) {
      this.followEnd();
      this.speakSoon(changes.get("items"));
    }
  }

  override render() {
    return html`
      <div class="view scroll" @scroll=${this.scrolled} tabindex="-1">
        <div class="column">
          ${this.more ? html`<button class="button small earlier"
            @click=${() => emit(this, "jarvis-earlier", null)}>Show earlier messages</button>` : nothing}
          ${repeat(
            this.items,
            (item) => item.key,
            (item) =>
              html`<jarvis-message-item class=${item.role} .item=${item} .approvals=${this.approvals}
                .loadBlob=${this.loadBlob}></jarvis-message-item>`,
          )}
        </div>
      </div>
      ${this.away ? html`<button class="latest" title="Jump to the latest message" aria-label="Jump to the latest message"
        @click=${this.jump}>${icon("down", 18)}</button>` : nothing}
      <div class="sr-only" role="log" aria-live="polite" aria-label="The answer as it arrives"></div>
    `;
  }

  private get view(): Element | null {
    return this.renderRoot.querySelector(".view");
  }

  private scrolled(): void {
    const { view } = this;
    if (!view) return;
    this.follow = view.scrollHeight - view.scrollTop - view.clientHeight < NEAR;
    this.away = !this.follow;
  }

  private followEnd(): void {
    const { view } = this;
    if (view && this.follow) view.scrollTop = view.scrollHeight;
  }

  private jump(): void {
    this.follow = true;
    this.away = false;
    const { view } = this;
    view?.scrollTo({
      top: view.scrollHeight,
      behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth",
    });
  }

  /** Adds the text that is new since `before` to the log, in whole sentences. An answer that was there before is not read out. */
  private speakSoon(before: Item[] | undefined): void {
    const item = this.items.findLast((each) => each.role === "assistant");
    if (!item) return;
    if (this.spoken.key !== item.key) {
      const isNew = item.state === "streaming" || before?.some((each) => each.key === item.key) === true;
      this.spoken = { key: item.key, end: isNew ? 0 : textOf(item).length };
    }
    this.speakTimer ??= setTimeout(() => this.speak(), SPEAK_MS);
  }

  private speak(): void {
    this.speakTimer = undefined;
    const item = this.items.find((each) => each.key === this.spoken.key);
    const log = this.renderRoot.querySelector("[role=log]");
    if (!item || !log) return;
    const text = textOf(item);
    const end = item.state === "streaming" ? spokenEnd(text, this.spoken.end) : text.length;
    const words = text.slice(this.spoken.end, end).trim();
    this.spoken.end = Math.max(end, this.spoken.end);
    if (!words) return;
    const line = document.createElement("p");
    line.textContent = words;
    log.append(line);
    while (log.childElementCount > 20) log.firstElementChild?.remove();
  }

  static override styles = [
    shared,
    css`
      :host {
        position: relative;
        display: flex;
        flex-direction: column;
        min-height: 0;
      }
      .view {
        flex: 1;
        min-height: 0;
        overflow-anchor: none;
        mask-image: linear-gradient(to bottom, transparent, black 0.5rem, black calc(100% - 1.5rem), transparent);
      }
      .column {
        display: flex;
        flex-direction: column;
        max-width: calc(var(--column) + 3rem);
        margin: 0 auto;
        padding: 1.5rem 1.5rem 2rem;
      }
      jarvis-message-item.user {
        margin-top: 1.25rem;
      }
      jarvis-message-item.assistant {
        margin-top: 1.5rem;
      }
      jarvis-message-item:first-child {
        margin-top: 0;
      }
      .earlier {
        align-self: center;
        margin-bottom: 1rem;
      }
      .latest {
        display: grid;
        flex: none;
        place-items: center;
        align-self: center;
        width: 2.25rem;
        height: 2.25rem;
        margin: 0.375rem 0;
        border: 1px solid var(--border);
        border-radius: 50%;
        background: var(--surface);
        box-shadow: var(--shadow);
        cursor: pointer;
        animation: appear 0.15s var(--ease);
      }
      .latest:hover {
        border-color: var(--border-strong);
      }
      @keyframes appear {
        from { opacity: 0; transform: translateY(6px); }
      }
      @media (max-width: 40rem) {
        .column {
          padding: 1rem 1rem 1.5rem;
        }
      }
    `,
  ];
}

customElements.define("jarvis-message-list", JarvisMessageList);
