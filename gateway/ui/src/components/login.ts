/** <jarvis-login>: asks for the token, and says where it is. */
import { LitElement, css, html, nothing } from "lit";
import { emit } from "../emit.js";
import { shared } from "../shared-styles.js";

export class JarvisLogin extends LitElement {
  static override properties = { reason: { attribute: false }, busy: { type: Boolean }, shown: { state: true } };
  declare reason: string;
  declare busy: boolean;
  declare shown: boolean;

  constructor() {
    super();
    this.reason = "";
    this.busy = false;
    this.shown = false;
  }

  override firstUpdated(): void {
    this.renderRoot.querySelector("input")?.focus();
  }

  override render() {
    return html`<main>
      <form class="card" @submit=${this.submit}>
        <img src="./icon.svg" alt="" width="44" height="44" />
        <h1>Log in to Jarvis</h1>
        <p>Run <code>sh packaging/run-gateway.sh</code> or <code>fm-gateway --link</code> in a terminal: the link that it
          prints logs you in.</p>
        <p class="or"><span>or enter the token</span></p>
        <label for="token">Token</label>
        <div class="entry">
          <input class="field" id="token" name="token" type=${this.shown ? "text" : "password"}
            autocomplete="current-password" spellcheck="false"
            aria-describedby="where ${this.reason ? "reason" : ""}" aria-invalid=${this.reason ? "true" : "false"} required />
          <button type="button" class="button" aria-pressed=${this.shown}
            @click=${() => (this.shown = !this.shown)}>${this.shown ? "Hide" : "Show"}</button>
        </div>
        ${this.reason ? html`<p class="bad" id="reason" role="alert">Not logged in: ${this.reason}</p>` : nothing}
        <p class="fine" id="where">It is in the file <code>~/.proj-jarvis/token</code>, or in
          <code>PROJ_JARVIS_TOKEN</code> if you have set that.</p>
        <button class="button primary" ?disabled=${this.busy}>${this.busy ? "Connecting …" : "Log in"}</button>
      </form>
    </main>`;
  }

  private submit(event: Event): void {
    event.preventDefault();
    const token = this.renderRoot.querySelector("input")?.value.trim();
    if (token) emit(this, "jarvis-login", token);
  }

  static override styles = [
    shared,
    css`
      :host {
        display: block;
        height: 100%;
        overflow-y: auto;
      }
      main {
        display: grid;
        place-items: center;
        min-height: 100%;
        padding: 1rem;
      }
      .card {
        width: min(25rem, 100%);
        padding: 2rem;
        border: 1px solid var(--border);
        border-radius: 20px;
        background: var(--surface);
        box-shadow: var(--shadow);
      }
      h1 {
        margin: 1rem 0 0.375rem;
        font-size: 1.375rem;
        font-weight: 650;
        letter-spacing: -0.015em;
      }
      p {
        color: var(--muted);
        font-size: var(--text-s);
      }
      code {
        font: 0.9375em var(--mono);
        color: var(--text);
        overflow-wrap: anywhere;
      }
      .or {
        display: flex;
        align-items: center;
        gap: 0.75rem;
        margin: 1.25rem 0;
      }
      .or::before, .or::after {
        content: "";
        flex: 1;
        height: 1px;
        background: var(--border);
      }
      label {
        display: block;
        margin-bottom: 0.375rem;
        font-size: var(--text-s);
        font-weight: 600;
      }
      .entry {
        display: flex;
        gap: 0.5rem;
      }
      .fine, .bad {
        margin-top: 0.5rem;
      }
      .bad {
        color: var(--danger);
        font-weight: 550;
      }
      .primary {
        width: 100%;
        margin-top: 1.25rem;
      }
    `,
  ];
}

customElements.define("jarvis-login", JarvisLogin);
