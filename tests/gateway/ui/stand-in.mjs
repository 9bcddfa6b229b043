// A stand-in for fm-gateway that speaks gateway/PROTOCOL.md: the page's files with the gateway's headers, and the WebSocket
// with its frames. Tests write its answers as scripts and cause its faults; nothing here is random, and nothing waits.
import { randomBytes, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { WebSocketServer } from "ws";

const here = dirname(fileURLToPath(import.meta.url));
export const UI = process.env.FM_GATEWAY_UI ?? join(here, "..", "..", "..", "build", "bin", "gateway-ui");

const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};
// The same as the gateway's: gateway/net/http.c.
const HEADERS = {
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; " +
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
    "require-trusted-types-for 'script'; trusted-types lit-html dompurify jarvis",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
};

class Fault extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}
const notFound = (what) => new Fault(-32004, `there is no ${what} of that name`);

const KEY = (value) => typeof value === "string" && /^[0-9a-f]{32}$/.test(value);
const TEXT = (value) => typeof value === "string" && value.length > 0;
const NUMBER = Number.isSafeInteger;
const TRUTH = (value) => typeof value === "boolean";
/** Parameters of each method: a name with "?" may be missing. */
const PARAMS = {
  "health.check": {},
  "agents.list": {},
  "sessions.create": { "agentId?": TEXT },
  "sessions.list": {},
  "sessions.get": { sessionKey: KEY },
  "sessions.subscribe": { sessionKey: KEY, "afterSeq?": NUMBER },
  "sessions.search": { query: TEXT, "limit?": NUMBER },
  "sessions.rename": { sessionKey: KEY, title: TEXT },
  "sessions.delete": { sessionKey: KEY },
  "chat.send": { sessionKey: KEY, message: TEXT, "requestKey?": KEY },
  "chat.history": { sessionKey: KEY, "limit?": NUMBER },
  "chat.abort": { runId: TEXT },
  "exec.approve": { approvalId: TEXT, "remember?": TRUTH },
  "exec.deny": { approvalId: TEXT, "reason?": TEXT },
  "blobs.get": { blobId: TEXT },
};

export class StandIn {
  token = randomBytes(32).toString("hex");
  codes = new Set();
  agents = [{ id: "assistant", name: "Jarvis", model: "local/default" }];
  sessions = new Map();
  blobs = new Map();
  approvals = new Map();
  /** What each answer does: `script(run)`; run has delta, call, approval, progress, result, and `aborted`. */
  script = async (run) => run.delta("Hello.");
  /** Methods that an older gateway does not have. */
  missing = new Set();
  /** Called before a method: may throw a Fault, or return "silent" (never answered) or "cut" (done, then disconnected). */
  before = () => {};
  calls = [];
  seq = 0;
  now = () => Date.now();

  async start(port = 0) {
    this.server = createServer((request, response) => this.serve(request, response));
    this.sockets = new WebSocketServer({ server: this.server, path: "/ws" });
    this.sockets.on("connection", (socket) => this.greet(socket));
    await new Promise((resolve) => this.server.listen(port, "127.0.0.1", resolve));
    this.port = this.server.address().port;
    this.origin = `http://127.0.0.1:${this.port}`;
    return this;
  }

  async stop() {
    this.cut();
    this.sockets.close();
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.server.closeAllConnections(); // also closes unused connections that Chromium has opened, because close() waits for them
    await closed;
  }

  /** Ends every socket at once, as when the process dies. */
  cut() {
    for (const socket of this.sockets.clients) socket.terminate();
  }

  /** Changes the token: users that are logged in are disconnected. */
  renew() {
    this.token = randomBytes(32).toString("hex");
    for (const socket of this.sockets.clients) socket.close(1008, "the token was changed");
  }

  link() {
    const code = randomBytes(32).toString("hex");
    this.codes.add(code);
    return `${this.origin}/#code=${code}`;
  }

  serve(request, response) {
    const path = request.url === "/" ? "/index.html" : request.url;
    if (!/^(\/[A-Za-z0-9_-][\w.-]*)+$/.test(path)) return response.writeHead(404, HEADERS).end();
    try {
      response
        .writeHead(200, { ...HEADERS, "Content-Type": TYPES[extname(path)] ?? "text/plain" })
        .end(readFileSync(join(UI, path)));
    } catch {
      response.writeHead(404, HEADERS).end();
    }
  }

  // --- frames ---

  greet(socket) {
    socket.on("error", () => {});
    socket.on("message", async (data) => {
      const frame = JSON.parse(String(data));
      if (frame.type === "auth") return this.logIn(socket, frame);
      if (!socket.loggedIn && frame.method !== "health.check")
        return socket.close(1008, "the first message must be auth");
      await this.answer(socket, frame);
    });
  }

  logIn(socket, frame) {
    const byCode = this.codes.delete(frame.code);
    if (!byCode && frame.token !== this.token) {
      return socket.close(1008, frame.code ? "the code is wrong, was used or is over" : "the token is wrong");
    }
    socket.loggedIn = true;
    socket.send(JSON.stringify(byCode ? { type: "auth", ok: true, token: this.token } : { type: "auth", ok: true }));
  }

  async answer(socket, frame) {
    const { id, method, params = {}, ...more } = frame;
    const reply = (body) => socket.readyState === 1 && socket.send(JSON.stringify({ id, ...body }));
    try {
      if (Object.keys(more).length || typeof id !== "string")
        throw new Fault(-32600, "a frame has id, method and params, and nothing else");
      this.check(method, params);
      this.calls.push({ method, params });
      const fault = this.before(method, params);
      if (fault === "silent") return;
      const result = await this[method.replace(".", "_")](params);
      if (fault === "cut") return socket.terminate();
      reply({ result });
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      reply({ error: { code: error.code, message: error.message } });
    }
  }

  check(method, params) {
    const rules = PARAMS[method];
    if (!rules || this.missing.has(method)) throw new Fault(-32601, `there is no method ${method}`);
    for (const [key, is] of Object.entries(rules)) {
      const name = key.replace("?", "");
      if (!(name in params ? is(params[name]) : key.endsWith("?")))
        throw new Fault(-32602, `${name} is missing or wrong`);
    }
    for (const name of Object.keys(params)) {
      if (!(name in rules) && !(`${name}?` in rules)) throw new Fault(-32602, `${name} is no parameter of ${method}`);
    }
  }

  emit(event, data, sessionKey) {
    const frame = JSON.stringify({ event, data: { ...data, ...(sessionKey ? { sessionKey } : {}), seq: ++this.seq } });
    for (const socket of this.sockets.clients) if (socket.loggedIn && socket.readyState === 1) socket.send(frame);
    return this.seq;
  }

  // --- methods ---

  health_check() {
    return { status: "ok", uptime: 1 };
  }
  agents_list() {
    return { agents: this.agents };
  }
  sessions_create({ agentId = "assistant" }) {
    const sessionKey = this.add({ agentId });
    return { sessionKey };
  }
  sessions_list() {
    const sessions = [...this.sessions.values()].map((session) => this.public(session));
    return { seq: this.seq, sessions, approvals: [...this.approvals.values()].map(({ data }) => data) };
  }
  sessions_get({ sessionKey }) {
    const session = this.find(sessionKey);
    return { session: this.public(session), messages: session.messages };
  }
  sessions_subscribe({ sessionKey, afterSeq = 0 }) {
    const session = this.find(sessionKey);
    const messages = session.messages.filter((message) => message.seq > afterSeq).slice(-100);
    const more = afterSeq === 0 && session.messages.length > 100;
    const runs = session.runs.map(({ runId, state, message, requestKey, parts, time }) => ({
      runId,
      state,
      message,
      requestKey,
      parts,
      time,
    }));
    const approvals = [...this.approvals.values()]
      .map(({ data }) => data)
      .filter((data) => data.sessionKey === sessionKey);
    return { seq: this.seq, session: this.public(session), messages, more, runs, approvals };
  }
  sessions_search({ query, limit = 50 }) {
    const results = [];
    for (const session of this.sessions.values()) {
      const all = [session.title ?? "", ...session.messages.map(({ content }) => content)];
      const found = all.find((text) => text.toLowerCase().includes(query.toLowerCase()));
      if (found === undefined) continue;
      const at = Math.max(0, found.toLowerCase().indexOf(query.toLowerCase()) - 40);
      results.push({
        sessionKey: session.sessionKey,
        title: session.title,
        updatedAt: session.updatedAt,
        snippet: found.slice(at, at + 160),
      });
    }
    return { results: results.slice(0, limit) };
  }
  sessions_rename({ sessionKey, title }) {
    const session = this.find(sessionKey);
    session.title = title;
    this.changed(session);
    return { session: this.public(session) };
  }
  sessions_delete({ sessionKey }) {
    const session = this.find(sessionKey);
    for (const run of [...session.runs]) run.abort();
    this.sessions.delete(sessionKey);
    this.emit("sessions.changed", { deleted: true }, sessionKey);
    return { ok: true };
  }
  chat_send({ sessionKey, message, requestKey }) {
    const session = this.find(sessionKey);
    const before = requestKey && session.requests.get(requestKey);
    if (before) return { runId: before };
    if (session.runs.length > 20) throw new Fault(-32029, "20 messages wait in this session already");
    const run = new Run(this, session, message, requestKey);
    const queued = session.runs.length > 0;
    run.state = queued ? "queued" : "running";
    session.runs.push(run);
    session.title ??= message.slice(0, 60);
    if (requestKey) session.requests.set(requestKey, run.runId);
    this.emit("chat.message", { runId: run.runId, content: message, requestKey, queued, time: run.time }, sessionKey);
    if (!queued) this.next(session);
    this.changed(session);
    return { runId: run.runId, queued };
  }
  chat_history({ sessionKey, limit = 10000 }) {
    return { messages: this.find(sessionKey).messages.slice(-limit) };
  }
  chat_abort({ runId }) {
    for (const session of this.sessions.values()) {
      const run = session.runs.find((each) => each.runId === runId);
      if (run) {
        run.abort();
        return { ok: true };
      }
    }
    throw notFound("run");
  }
  exec_approve({ approvalId }) {
    return { ok: this.settle(approvalId, "approved") };
  }
  exec_deny({ approvalId, reason }) {
    return { ok: this.settle(approvalId, "denied", reason) };
  }
  blobs_get({ blobId }) {
    if (!this.blobs.has(blobId)) throw notFound("blob");
    return { mimeType: "image/png", data: this.blobs.get(blobId) };
  }

  // --- sessions, runs, approvals ---

  /** Adds a session; `messages` are [role, content or parts] or whole messages. */
  add({ title, agentId = "assistant", messages = [], updatedAt = this.now(), usage } = {}) {
    const sessionKey = randomBytes(16).toString("hex");
    const whole = messages.map((each, at) => {
      const message = Array.isArray(each) ? { role: each[0], content: each[1] } : each;
      return { runId: `old-${sessionKey.slice(0, 8)}-${at >> 1}`, seq: ++this.seq, time: updatedAt, ...message };
    });
    const none = { inputTokens: 0, outputTokens: 0 };
    this.sessions.set(sessionKey, {
      sessionKey,
      agentId,
      title,
      createdAt: updatedAt,
      updatedAt,
      usage: usage ?? none,
      messages: whole,
      runs: [],
      requests: new Map(),
    });
    return sessionKey;
  }

  find(sessionKey) {
    const session = this.sessions.get(sessionKey);
    if (!session) throw notFound("session");
    return session;
  }

  public({ sessionKey, agentId, title, createdAt, updatedAt, usage, messages, runs }) {
    return {
      sessionKey,
      agentId,
      title,
      createdAt,
      updatedAt,
      messageCount: messages.length + runs.length,
      running: runs.length > 0,
      usage,
    };
  }

  changed(session) {
    session.updatedAt = this.now();
    this.emit("sessions.changed", { session: this.public(session) }, session.sessionKey);
  }

  next(session) {
    const run = session.runs[0];
    if (!run) return;
    run.state = "running";
    this.emit("chat.start", { runId: run.runId, model: "local/default", time: this.now() }, session.sessionKey);
    run.go(this.script);
  }

  settle(approvalId, outcome, reason = "") {
    const approval = this.approvals.get(approvalId);
    if (!approval) return false;
    this.approvals.delete(approvalId);
    this.emit("exec.approval_resolved", { approvalId, outcome }, approval.data.sessionKey);
    approval.resolve({ outcome, reason });
    return true;
  }
}

class Run {
  runId = randomUUID();
  parts = [];
  aborted = false;
  ended = false;
  usage = { inputTokens: 0, outputTokens: 0 };

  constructor(gateway, session, message, requestKey) {
    Object.assign(this, { gateway, session, message, requestKey, time: gateway.now() });
  }

  emit(event, data) {
    if (this.ended || this.aborted) throw new Stopped();
    this.gateway.emit(event, { runId: this.runId, ...data }, this.session.sessionKey);
  }

  async go(script) {
    try {
      await script(this);
      this.end("chat.final", { usage: this.usage });
    } catch (error) {
      if (!(error instanceof Stopped)) this.end("chat.error", { message: error.message });
    }
  }

  delta(text) {
    const last = this.parts.at(-1);
    if (last?.type === "text") last.text += text;
    else this.parts.push({ type: "text", text });
    this.emit("chat.delta", { text });
  }

  call(toolName, summary, details, requiresApproval = true) {
    const callId = randomUUID();
    this.parts.push({
      type: "tool",
      callId,
      toolName,
      summary,
      details,
      state: requiresApproval ? "waiting" : "running",
    });
    this.emit("tool.call", { callId, toolName, summary, details, requiresApproval });
    return callId;
  }

  /** Resolves with {outcome, reason} when the user has answered. */
  async approval(callId, more = {}) {
    const part = this.parts.find((each) => each.callId === callId);
    const { toolName, summary, details } = part;
    const data = {
      approvalId: randomUUID(),
      callId,
      toolName,
      summary,
      details,
      expiresAt: this.gateway.now() + 600_000,
      ...more,
    };
    const whole = { ...data, runId: this.runId, sessionKey: this.session.sessionKey };
    const answer = new Promise((resolve) => this.gateway.approvals.set(data.approvalId, { data: whole, resolve }));
    this.emit("exec.approval_request", data);
    const { outcome, reason } = await answer;
    if (this.aborted) throw new Stopped();
    part.state = { approved: "running", denied: "denied", expired: "expired", withdrawn: "aborted" }[outcome];
    return { outcome, reason };
  }

  progress(tool, message) {
    this.emit("tool.progress", { tool, message });
  }

  result(callId, result) {
    Object.assign(
      this.parts.find((each) => each.callId === callId),
      result,
    );
    this.emit("tool.result", { callId, ...result });
  }

  abort() {
    if (this.ended) return;
    this.end("chat.error", { message: "The user has stopped it.", aborted: true });
    this.aborted = true;
  }

  end(event, data) {
    const { gateway, session, runId } = this;
    const running = this.state === "running";
    for (const [id, { data: open }] of gateway.approvals) if (open.runId === runId) gateway.settle(id, "withdrawn");
    this.emit(event, data);
    this.ended = true;
    session.runs = session.runs.filter((each) => each !== this);
    const content = this.parts.map(({ text = "" }) => text).join("");
    const { seq } = gateway;
    if (running) {
      session.messages.push({ role: "user", content: this.message, runId, seq, time: this.time });
      const failure =
        event === "chat.final"
          ? { usage: data.usage }
          : { error: data.message, ...(data.aborted ? { aborted: true } : {}) };
      session.messages.push({
        role: "assistant",
        content,
        parts: this.parts,
        runId,
        seq,
        time: gateway.now(),
        ...failure,
      });
      session.usage = {
        inputTokens: session.usage.inputTokens + this.usage.inputTokens,
        outputTokens: session.usage.outputTokens + this.usage.outputTokens,
      };
    }
    gateway.changed(session);
    if (running) gateway.next(session);
  }
}

class Stopped extends Error {}
