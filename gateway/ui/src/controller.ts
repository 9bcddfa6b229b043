/**
 * What the page knows and does: the connection, the sessions, the open conversation, the approvals of all sessions, the
 * outbox. Components show its state and call its methods; `changed` is called after each change.
 */
import { AuthStore } from "./auth-store.js";
import * as chat from "./conversation.js";
import { type ExportFormat, download, fileName, toJsonl, toMarkdown } from "./export.js";
import { Outbox, newRequestKey, type Letter, type Sent } from "./outbox.js";
import { Code, type Agent, type Approval, type GatewayEvent, type Message, type SearchResult } from "./protocol.js";
import type { Attachment, Session, Snapshot } from "./protocol.js";
import { ConnectionLost, RpcError, WsClient, type ConnectionState } from "./ws-client.js";

export interface Notice {
  kind: "info" | "error";
  text: string;
}

const PAGE = 200; // messages that "earlier messages" adds
const ALL = 10_000; // the most that chat.history gives

export class Controller {
  connection: ConnectionState = "idle";
  reason = "";
  wasOnline = false;
  needsLogin = false;
  agents: Agent[] = [];
  agentId: string | undefined;
  sessions = new Map<string, Session>();
  sessionsLoaded = false;
  approvals: Approval[] = [];
  conversation: chat.Conversation = chat.empty("");
  notice: Notice | null = null;
  /** The session that is open; null: a new one, which is created with its first message. */
  current: string | null = null;
  private draft = newRequestKey();
  private readonly auth = new AuthStore();
  private readonly client: WsClient;
  private readonly outbox: Outbox;
  /** Lists that collect the events which come while an answer is on its way. */
  private readonly watching = new Set<GatewayEvent[]>();
  private readonly blobs = new Map<string, Promise<string>>();
  private lastBlob: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly changed: () => void,
    url: string,
  ) {
    this.client = new WsClient({
      url,
      onState: (state, reason) => this.takeState(state, reason),
      onEvent: (event) => this.takeEvent(event),
      onToken: (token) => (this.auth.token = token),
    });
    this.outbox = new Outbox({
      storage: sessionStorage,
      call: (method, params) => this.client.call(method, params),
      onCreated: (letter) => this.takeCreated(letter),
      onSent: (letter, sent) => this.takeSent(letter, sent),
      onRefused: (letter) => this.takeRefused(letter),
    });
  }

  // --- connection ---

  async start(): Promise<void> {
    const code = this.auth.takeCode();
    this.current = sessionOf(location.hash);
    this.reset();
    addEventListener("online", () => this.client.retryNow());
    document.addEventListener(
      "visibilitychange",
      () => document.visibilityState === "visible" && this.client.retryNow(),
    );
    addEventListener("hashchange", () => this.followAddress());
    const token = this.auth.token ?? (code ? null : await this.auth.askTabs());
    if (this.connection !== "idle") return; // a link was opened meanwhile
    if (code) this.client.connect({ code });
    else if (token) this.login(token);
    else this.update(() => (this.needsLogin = true));
  }

  login(token: string): void {
    this.auth.token = token;
    this.client.connect({ token });
  }

  logout(): void {
    this.auth.token = null;
    this.client.close();
    this.update(() => {
      this.needsLogin = true;
      this.wasOnline = false;
      this.reason = "";
      this.sessions = new Map();
      this.sessionsLoaded = false;
      this.approvals = [];
    });
    this.open(null);
  }

  retryNow(): void {
    this.client.retryNow();
  }

  private takeState(state: ConnectionState, reason: string): void {
    this.connection = state;
    if (reason || state === "online") this.reason = reason;
    if (state === "refused") {
      this.auth.token = null;
      this.needsLogin = true;
    }
    if (state === "online") {
      this.needsLogin = false;
      this.wasOnline = true;
      void this.catchUp();
    }
    this.changed();
  }

  /** Called after each login: loads what happened meanwhile. */
  private async catchUp(): Promise<void> {
    await Promise.all([
      this.attempt(async () => {
        const { agents } = await this.client.call<{ agents: Agent[] }>("agents.list");
        this.update(() => (this.agents = agents));
      }),
      this.loadSessions(),
      this.subscribe(),
    ]);
    void this.outbox.flush();
  }

  private loadSessions(): Promise<void> {
    return this.attempt(async () => {
      type List = { sessions: Session[]; approvals?: Approval[]; seq?: number };
      const [{ sessions, approvals }, newer] = await this.withEvents(() => this.client.call<List>("sessions.list"));
      this.update(() => {
        this.sessions = new Map(sessions.map((session) => [session.sessionKey, session]));
        this.sessionsLoaded = true;
        if (approvals) this.approvals = approvals;
        newer.forEach((frame) => this.takeForAll(frame));
      });
    });
  }

  /** Gets an answer, and the events that came before the answer but are newer than the state in it. */
  private async withEvents<T extends { seq?: number }>(ask: () => Promise<T>): Promise<[T, GatewayEvent[]]> {
    const events: GatewayEvent[] = [];
    this.watching.add(events);
    try {
      const answer = await ask();
      const { seq = 0 } = answer;
      return [answer, events.filter((frame) => (frame.data.seq ?? Infinity) > seq)];
    } finally {
      this.watching.delete(events);
    }
  }

  // --- conversations ---

  /** The sessions that the list shows: those with messages, and the open one. */
  get listed(): Session[] {
    return [...this.sessions.values()].filter((each) => each.messageCount !== 0 || each.sessionKey === this.current);
  }

  get agent(): Agent | undefined {
    const id = this.conversation.session.agentId ?? this.agentId;
    return this.agents.find((agent) => agent.id === id) ?? this.agents[0];
  }

  open(sessionKey: string | null): void {
    if (sessionKey === this.current && (sessionKey !== null || this.conversation.items.length === 0)) return;
    this.current = sessionKey;
    if (sessionKey === null) this.draft = newRequestKey();
    const hash = sessionKey === null ? "" : `#/s/${sessionKey}`;
    if (location.hash !== hash) history.pushState(null, "", hash || location.pathname);
    this.update(() => this.reset());
    if (this.connection === "online") void this.subscribe();
  }

  private followAddress(): void {
    const code = this.auth.takeCode();
    if (code) this.client.connect({ code });
    else this.open(sessionOf(location.hash));
  }

  private reset(): void {
    const { current } = this;
    this.conversation = chat.empty(current ?? "");
    const known = current === null ? undefined : this.sessions.get(current);
    if (known) this.conversation = { ...this.conversation, session: known };
    for (const letter of this.outbox.letters) {
      const mine =
        current === null ? letter.sessionKey === null && letter.draft === this.draft : letter.sessionKey === current;
      if (mine) this.conversation = chat.withItem(this.conversation, itemOf(letter));
    }
  }

  private subscribe(): Promise<void> {
    const sessionKey = this.current;
    if (sessionKey === null) return Promise.resolve();
    const { loaded, seq } = this.conversation;
    return this.attempt(
      async () => {
        const [snapshot, newer] = await this.withEvents(() => this.snapshot(sessionKey, loaded ? seq : undefined));
        if (this.current !== sessionKey) return;
        this.update(() => {
          this.conversation = chat.withSnapshot(this.conversation, snapshot, !loaded || snapshot.seq === 0);
          this.approvals = [...this.approvals.filter((each) => each.sessionKey !== sessionKey), ...snapshot.approvals];
          newer.forEach((frame) => this.apply(frame));
        });
      },
      (error) => this.openFailed(error),
    );
  }

  /** If the gateway has only the first ten methods, chat.history is used instead. */
  private async snapshot(sessionKey: string, afterSeq: number | undefined): Promise<Snapshot> {
    try {
      return await this.client.call<Snapshot>(
        "sessions.subscribe",
        afterSeq === undefined ? { sessionKey } : { sessionKey, afterSeq },
      );
    } catch (error) {
      if (!isMissing(error)) throw error;
      const { session, messages } = await this.client.call<{ session: Session; messages: Message[] }>("sessions.get", {
        sessionKey,
      });
      return { seq: 0, session: { ...session, sessionKey }, messages, runs: [], approvals: [] };
    }
  }

  private openFailed(error: unknown): boolean {
    if (!(error instanceof RpcError) || error.code !== Code.notFound) return false;
    this.open(null);
    this.say("error", "That conversation does not exist any more. It may have been deleted in another tab.");
    return true;
  }

  loadEarlier(): Promise<void> {
    const { sessionKey } = this.conversation.session;
    const settled = this.conversation.items.filter(
      (item) => item.state === "done" || item.state === "error" || item.state === "aborted",
    );
    const limit = Math.min(ALL, settled.length + PAGE);
    return this.attempt(async () => {
      const { messages } = await this.client.call<{ messages: Message[] }>("chat.history", { sessionKey, limit });
      if (this.current !== sessionKey) return;
      this.update(
        () =>
          (this.conversation = chat.withEarlier(this.conversation, messages, messages.length === limit && limit < ALL)),
      );
    });
  }

  // --- messages ---

  send(message: string): void {
    const to = this.current === null ? { sessionKey: null, draft: this.draft } : { sessionKey: this.current };
    const letter = this.outbox.add(this.agentId === undefined ? to : { ...to, agentId: this.agentId }, message);
    this.update(() => (this.conversation = chat.withItem(this.conversation, itemOf(letter))));
    void this.outbox.flush();
  }

  resend(item: chat.Item): void {
    if (item.state !== "refused" || item.requestKey === undefined) return;
    const { requestKey } = item;
    this.update(() => (this.conversation = chat.withSending(this.conversation, requestKey)));
    this.outbox.retry(requestKey);
  }

  discard(item: chat.Item): void {
    if (item.requestKey !== undefined) this.outbox.remove(item.requestKey);
    this.update(() => (this.conversation = chat.withoutItem(this.conversation, item.key)));
  }

  /** Stops a run, or takes a queued message back. */
  abort(runId: string): Promise<void> {
    return this.attempt(() => this.client.call("chat.abort", { runId }));
  }

  private takeCreated(letter: Letter): void {
    const sessionKey = letter.sessionKey;
    if (sessionKey === null || this.current !== null || letter.draft !== this.draft) return;
    this.current = sessionKey;
    history.replaceState(null, "", `#/s/${sessionKey}`);
    const now = Date.now();
    const session: Session = { sessionKey, createdAt: now, updatedAt: now, title: letter.message.slice(0, 60) };
    this.update(() => {
      this.sessions = new Map(this.sessions).set(sessionKey, session);
      this.conversation = { ...this.conversation, session };
    });
    void this.subscribe();
  }

  private takeSent(letter: Letter, { runId, queued }: Sent): void {
    if (letter.sessionKey !== this.current) return;
    this.update(
      () => (this.conversation = chat.withSent(this.conversation, letter.requestKey, runId, queued === true)),
    );
  }

  private takeRefused(letter: Letter): void {
    if (letter.sessionKey !== this.current && letter.draft !== this.draft) return;
    this.update(
      () => (this.conversation = chat.withRefused(this.conversation, letter.requestKey, letter.refused ?? "")),
    );
  }

  // --- approvals ---

  /** Answers an approval. True once the gateway has settled it, by this answer or by another one. */
  async answer(
    approval: Approval,
    approve: boolean,
    more: { reason?: string; remember?: boolean } = {},
  ): Promise<boolean> {
    const { approvalId } = approval;
    const params = { approvalId, ...more };
    try {
      const { ok } = await this.client.call<{ ok: boolean }>(approve ? "exec.approve" : "exec.deny", params);
      this.update(() => (this.approvals = this.approvals.filter((each) => each.approvalId !== approvalId)));
      if (!ok)
        this.say(
          "info",
          "That request was already settled: in another tab, by the time limit, or because its run has ended.",
        );
      return true;
    } catch (error) {
      this.say(
        "error",
        `The answer did not arrive: ${messageOf(error)} Nothing was ${approve ? "run by it" : "lost"}; answer again.`,
      );
      return false;
    }
  }

  // --- sessions ---

  async search(query: string): Promise<SearchResult[]> {
    try {
      return (await this.client.call<{ results: SearchResult[] }>("sessions.search", { query, limit: 50 })).results;
    } catch (error) {
      if (!isMissing(error)) throw error;
      const words = query.toLowerCase();
      return this.listed
        .filter((each) => each.title?.toLowerCase().includes(words))
        .map((each) => ({ ...each, snippet: "" }));
    }
  }

  rename(sessionKey: string, title: string): Promise<void> {
    return this.attempt(async () => {
      const { session } = await this.client.call<{ session: Session }>("sessions.rename", { sessionKey, title });
      this.update(() => this.keepSession({ ...session, sessionKey }));
    });
  }

  remove(sessionKey: string): Promise<void> {
    return this.attempt(async () => {
      await this.client.call("sessions.delete", { sessionKey });
      this.update(() => this.forgetSession(sessionKey));
    });
  }

  save(sessionKey: string, format: ExportFormat): Promise<void> {
    return this.attempt(async () => {
      const { messages } = await this.client.call<{ messages: Message[] }>("chat.history", { sessionKey, limit: ALL });
      const session = this.sessions.get(sessionKey) ?? { sessionKey };
      download(fileName(session, format), (format === "markdown" ? toMarkdown : toJsonl)(session, messages));
    });
  }

  /** Returns an attachment as an address for an image. */
  blob(attachment: Attachment): Promise<string> {
    const { data, blobId, mimeType } = attachment;
    if (!/^image\/(png|jpeg|webp|gif)$/.test(mimeType))
      return Promise.reject(new Error("not a picture that is shown here"));
    if (data !== undefined) return Promise.resolve(`data:${mimeType};base64,${data}`);
    if (blobId === undefined) return Promise.reject(new Error("the gateway did not keep it"));
    let address = this.blobs.get(blobId);
    if (!address) {
      // Loads one after the other, because the gateway ends a connection on which too much waits to be read.
      address = this.lastBlob
        .then(() => this.client.call<{ data: string }>("blobs.get", { blobId }))
        .then((found) => `data:${mimeType};base64,${found.data}`);
      this.lastBlob = address.catch(() => undefined);
      address.catch(() => this.blobs.delete(blobId));
      this.blobs.set(blobId, address);
    }
    return address;
  }

  private keepSession(session: Session): void {
    const { sessionKey } = session;
    const whole = { ...this.sessions.get(sessionKey), ...session };
    this.sessions = new Map(this.sessions).set(sessionKey, whole);
    if (sessionKey === this.current)
      this.conversation = { ...this.conversation, session: { ...this.conversation.session, ...session } };
  }

  private forgetSession(sessionKey: string): void {
    const sessions = new Map(this.sessions);
    sessions.delete(sessionKey);
    this.sessions = sessions;
    this.approvals = this.approvals.filter((each) => each.sessionKey !== sessionKey);
    if (this.current === sessionKey) this.open(null);
  }

  // --- events ---

  private takeEvent(frame: GatewayEvent): void {
    this.watching.forEach((events) => events.push(frame));
    this.update(() => this.apply(frame));
  }

  private apply(frame: GatewayEvent): void {
    this.takeForAll(frame);
    const { sessionKey } = frame.data;
    const mine = sessionKey === undefined || sessionKey === this.current;
    if (mine && this.current !== null) this.conversation = chat.withEvent(this.conversation, frame);
  }

  /** Handles the events that the list and the dialog show, of every session. */
  private takeForAll(frame: GatewayEvent): void {
    const { sessionKey } = frame.data;
    switch (frame.event) {
      case "sessions.changed":
        if (frame.data.deleted && sessionKey !== undefined) this.forgetSession(sessionKey);
        else if (frame.data.session) this.keepSession(frame.data.session);
        break;
      case "exec.approval_request":
        if (!this.approvals.some((each) => each.approvalId === frame.data.approvalId))
          this.approvals = [...this.approvals, frame.data];
        break;
      case "exec.approval_resolved":
        this.approvals = this.approvals.filter((each) => each.approvalId !== frame.data.approvalId);
        break;
      case "chat.start":
        this.mark(sessionKey, true);
        break;
      case "chat.final":
      case "chat.error":
        this.approvals = this.approvals.filter((each) => each.runId === undefined || each.runId !== frame.data.runId);
        this.mark(sessionKey, false);
        break;
      default:
    }
  }

  private mark(sessionKey: string | undefined, running: boolean): void {
    const session = sessionKey === undefined ? undefined : this.sessions.get(sessionKey);
    if (session) this.keepSession({ ...session, running, updatedAt: Date.now() });
  }

  // --- notices ---

  say(kind: Notice["kind"], text: string): void {
    this.update(() => (this.notice = { kind, text }));
  }

  dismiss(): void {
    this.update(() => (this.notice = null));
  }

  /** Does the work, and shows a notice if it fails. A lost connection has its own banner instead. */
  private async attempt(work: () => Promise<unknown>, handled?: (error: unknown) => boolean): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (error instanceof ConnectionLost && this.connection !== "online") return;
      if (!handled?.(error)) this.say("error", messageOf(error));
    }
  }

  private update(change: () => void): void {
    change();
    this.changed();
  }
}

function sessionOf(hash: string): string | null {
  return /^#\/s\/([0-9a-f]{32})$/.exec(hash)?.[1] ?? null;
}

function itemOf({ requestKey, message, time, refused }: Letter): chat.Item {
  return chat.localItem(requestKey, message, time, refused);
}

function isMissing(error: unknown): boolean {
  return error instanceof RpcError && (error.code === Code.unknownMethod || error.code === Code.unavailable);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
