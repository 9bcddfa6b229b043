/**
 * Messages on their way to the gateway. A message stays here, through reloads and lost connections, until the gateway says that
 * the message is on disk or is refused. A message is sent again with the same requestKey, so the gateway recognises it. No
 * message is lost, and none counts twice. The messages of a session go one after the other, in their order.
 */
import { ConnectionLost, RpcError } from "./ws-client.js";

export interface Letter {
  requestKey: string;
  /** null: the session is created before the message is sent. */
  sessionKey: string | null;
  /** Names a session that is not created yet; all of its messages have it. */
  draft?: string;
  agentId?: string;
  message: string;
  time: number;
  /** Why the gateway did not take it; it is not sent again unless the user asks. */
  refused?: string;
}

export interface Sent {
  runId: string;
  queued?: boolean;
}

export interface OutboxOptions {
  storage: Pick<Storage, "getItem" | "setItem">;
  call: <Result>(method: string, params: Record<string, unknown>) => Promise<Result>;
  onCreated: (letter: Letter) => void;
  onSent: (letter: Letter, sent: Sent) => void;
  onRefused: (letter: Letter) => void;
}

const KEY = "jarvis.outbox";

/** 128 random bits, as hexadecimal digits. */
export function newRequestKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export class Outbox {
  letters: Letter[];
  private flushing: Promise<void> | undefined;

  constructor(private readonly options: OutboxOptions) {
    this.letters = read(options.storage);
  }

  add(to: Pick<Letter, "sessionKey" | "draft" | "agentId">, message: string): Letter {
    const letter: Letter = { ...to, requestKey: newRequestKey(), message, time: Date.now() };
    this.letters.push(letter);
    this.save();
    return letter;
  }

  /** Sends a refused message again, because the user wants that. */
  retry(requestKey: string): void {
    const letter = this.letters.find((each) => each.requestKey === requestKey);
    if (!letter) return;
    delete letter.refused;
    this.save();
    void this.flush();
  }

  remove(requestKey: string): void {
    this.letters = this.letters.filter((each) => each.requestKey !== requestKey);
    this.save();
  }

  /**
   * Sends the messages that wait, until none is left or the connection is lost. Called after each login and each `add`;
   * never rejects.
   */
  flush(): Promise<void> {
    this.flushing ??= this.sendAll().finally(() => (this.flushing = undefined));
    return this.flushing;
  }

  private async sendAll(): Promise<void> {
    for (let next = this.next(); next; next = this.next()) {
      try {
        await this.send(next);
      } catch (error) {
        if (error instanceof ConnectionLost) return; // sent again after the next login
        next.refused = error instanceof RpcError ? error.message : String(error);
        this.save();
        this.options.onRefused(next);
      }
    }
  }

  private next(): Letter | undefined {
    return this.letters.find((letter) => letter.refused === undefined);
  }

  private async send(letter: Letter): Promise<void> {
    const { call } = this.options;
    if (letter.sessionKey === null) {
      const params = letter.agentId === undefined ? {} : { agentId: letter.agentId };
      const created = (await call<{ sessionKey: string }>("sessions.create", params)).sessionKey;
      for (const each of this.letters) {
        if (each === letter || (letter.draft !== undefined && each.draft === letter.draft)) each.sessionKey = created;
      }
      this.save();
      this.options.onCreated(letter);
    }
    const { sessionKey, message, requestKey } = letter;
    const sent = await call<Sent>("chat.send", { sessionKey, message, requestKey });
    this.remove(requestKey);
    this.options.onSent(letter, sent);
  }

  private save(): void {
    try {
      this.options.storage.setItem(KEY, JSON.stringify(this.letters));
    } catch {
      // If the storage is full, the message is lost only if the page is reloaded before it is sent.
    }
  }
}

function read(storage: OutboxOptions["storage"]): Letter[] {
  try {
    const value: unknown = JSON.parse(storage.getItem(KEY) ?? "[]");
    return Array.isArray(value) ? (value as Letter[]).filter((each) => typeof each?.message === "string") : [];
  } catch {
    return [];
  }
}
