/**
 * Keeps the token in sessionStorage, so it is gone when the tab is closed. A tab without the token asks the other tabs; only
 * pages of the same origin can hear each other. A one-time code comes after the "#" and is removed from the address at once.
 */
const KEY = "jarvis.token";
const CHANNEL = "jarvis.auth";
const ASK_MS = 300;

export class AuthStore {
  private readonly channel = "BroadcastChannel" in globalThis ? new BroadcastChannel(CHANNEL) : undefined;

  constructor() {
    this.channel?.addEventListener("message", ({ data }: MessageEvent<{ ask?: boolean }>) => {
      const token = this.token;
      if (data.ask && token) this.channel?.postMessage({ token });
    });
  }

  get token(): string | null {
    return sessionStorage.getItem(KEY);
  }

  set token(token: string | null) {
    if (token === null) sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, token);
  }

  /** Removes the code from the address and returns it; null: the address has no code. */
  takeCode(): string | null {
    const code = /^#code=([0-9a-zA-Z_-]+)$/.exec(location.hash)?.[1] ?? null;
    if (code) history.replaceState(null, "", location.pathname);
    return code;
  }

  /** Gets the token from another tab; null: no tab has answered. */
  askTabs(): Promise<string | null> {
    const { channel } = this;
    if (!channel) return Promise.resolve(null);
    return new Promise((resolve) => {
      const done = (token: string | null) => {
        clearTimeout(timer);
        channel.removeEventListener("message", hear);
        resolve(token);
      };
      const hear = ({ data }: MessageEvent<{ token?: string }>) => {
        if (typeof data.token === "string") done(data.token);
      };
      const timer = setTimeout(() => done(null), ASK_MS);
      channel.addEventListener("message", hear);
      channel.postMessage({ ask: true });
    });
  }
}
