/**
 * <jarvis-chat-view>: one conversation, with its messages and the input bar. If there are no messages, it shows a
 * greeting and ideas.
 */
import { LitElement, css, html, nothing } from "lit";
import { queuedIn, runningIn, type Conversation } from "../conversation.js";
import { emit } from "../emit.js";
import type { Agent, Approval } from "../protocol.js";
import { shared } from "../shared-styles.js";
import type { JarvisInputBar } from "./input-bar.js";
import "./input-bar.js";
import "./message-list.js";
import type { LoadBlob } from "./tool-call.js";

const IDEAS: [string, string][] = [
  ["Tidy up", "Look at the files in my workspace folder and suggest how to organise them."],
  ["Explain", "Explain how DNS finds the address of a name, step by step, for a newcomer."],
  ["Write", "Draft a short, friendly reply that moves a meeting to next week."],
  ["Code", "Write a shell script that finds the ten largest files below a folder."],
];

export class JarvisChatView extends LitElement {
  static override properties = {
    conversation: { attribute: false },
    approvals: { attribute: false },
    agents: { attribute: false },
    agentId: { attribute: false },
    loadBlob: { attribute: false },
    offline: { type: Boolean },
    isNew: { type: Boolean },
  };
  declare conversation: Conversation;
  declare approvals: Approval[];
  declare agents: Agent[];
  declare agentId: string | undefined;
  declare loadBlob: LoadBlob | undefined;
  declare offline: boolean;
  declare isNew: boolean;

  get input(): JarvisInputBar | null {
    return this.renderRoot.querySelector("jarvis-input-bar");
  }

  override render() {
    const { conversation } = this;
    const { items, more, loaded } = conversation;
    const sessionKey = conversation.session.sessionKey;
    const blank = items.length === 0 && (this.isNew || loaded);
    return html`<div class="view ${blank ? "blank" : ""}">
      ${
        blank
          ? this.renderGreeting()
          : items.length || loaded
            ? html`<jarvis-message-list .items=${items} .approvals=${this.approvals} .loadBlob=${this.loadBlob}
              .more=${more} .sessionKey=${sessionKey}></jarvis-message-list>`
            : html`<div class="loading" role="status"><span class="spinner"></span><span
              class="sr-only">Loading the chat</span></div>`
      }
      <div class="dock">
        <jarvis-input-bar .sessionKey=${sessionKey} .runId=${runningIn(conversation)?.runId}
          .queued=${queuedIn(conversation).length} .offline=${this.offline}></jarvis-input-bar>
        ${blank ? this.renderIdeas() : html`<p class="fine">Answers can be wrong. Check what matters.</p>`}
      </div>
    </div>`;
  }

  private renderGreeting() {
    const hour = new Date().getHours();
    const greeting =
      hour < 5 ? "Good night" : hour < 12 ? "Good morning" : hour < 18 ? "Good afternoon" : "Good evening";
    const agent = this.agents.find((each) => each.id === this.agentId) ?? this.agents[0];
    return html`<div class="greeting">
      <h1>${greeting}</h1>
      <p>What can I do for you?</p>
      ${
        this.agents.length > 1
          ? html`<label class="agent"><span class="sr-only">Agent</span>
            <select @change=${(event: Event) => emit(this, "jarvis-agent", (event.target as HTMLSelectElement).value)}>
              ${this.agents.map((each) => html`<option value=${each.id}
                ?selected=${each.id === agent?.id}>${each.name} · ${each.model}</option>`)}
            </select></label>`
          : nothing
      }
    </div>`;
  }

  private renderIdeas() {
    return html`<ul class="ideas" aria-label="Ideas">
      ${IDEAS.map(
        ([name, text]) =>
          html`<li><button @click=${() => this.input?.edit(text)}><b>${name}</b><span>${text}</span></button></li>`,
      )}
    </ul>`;
  }

  static override styles = [
    shared,
    css`
      :host {
        display: block;
        min-height: 0;
      }
      .view {
        display: flex;
        flex-direction: column;
        height: 100%;
      }
      jarvis-message-list {
        flex: 1;
      }
      .loading {
        flex: 1;
        display: grid;
        place-items: center;
      }
      .dock {
        width: 100%;
        max-width: calc(var(--column) + 3rem);
        margin: 0 auto;
        padding: 0 1.5rem max(0.625rem, env(safe-area-inset-bottom));
      }
      .fine {
        margin-top: 0.5rem;
        color: var(--muted);
        font-size: var(--text-xs);
        text-align: center;
      }
      .view.blank {
        justify-content: center;
        overflow-y: auto;
        padding-bottom: 8dvh;
      }
      .greeting {
        width: 100%;
        max-width: calc(var(--column) + 3rem);
        margin: 0 auto 1.5rem;
        padding: 0 1.75rem;
        text-align: center;
      }
      h1 {
        font-size: var(--text-xl);
        font-weight: 600;
        letter-spacing: -0.02em;
        line-height: 1.25;
      }
      .greeting p {
        margin-top: 0.25rem;
        color: var(--muted);
        font-size: 1.0625rem;
      }
      .agent select {
        max-width: 100%;
        min-height: 2.25rem;
        margin-top: 1rem;
        padding: 0 0.75rem;
        border: 1px solid var(--border);
        border-radius: 999px;
        background: var(--surface);
        font-size: var(--text-s);
      }
      .agent select:hover {
        border-color: var(--border-strong);
      }
      .ideas {
        display: grid;
        grid-template-columns: 1fr 1fr;
        gap: 0.625rem;
        margin-top: 1rem;
        padding: 0;
        list-style: none;
      }
      .ideas button {
        display: flex;
        flex-direction: column;
        width: 100%;
        height: 100%;
        padding: 0.75rem 1rem;
        border: 1px solid var(--border);
        border-radius: var(--radius-m);
        background: none;
        text-align: left;
        font-size: var(--text-s);
        cursor: pointer;
        transition: background 0.12s var(--ease), border-color 0.12s var(--ease);
      }
      .ideas button:hover {
        background: var(--hover);
        border-color: var(--border-strong);
      }
      .ideas b {
        font-weight: 600;
      }
      .ideas span {
        color: var(--muted);
      }
      @media (max-width: 40rem) {
        .dock {
          padding: 0 0.75rem max(0.5rem, env(safe-area-inset-bottom));
        }
        .ideas {
          grid-template-columns: 1fr;
        }
        .ideas li:nth-child(n + 4) {
          display: none;
        }
      }
      @media (max-height: 34rem) {
        .ideas {
          display: none;
        }
      }
    `,
  ];
}

customElements.define("jarvis-chat-view", JarvisChatView);
