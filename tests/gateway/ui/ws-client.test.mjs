// The connection and the outbox, against the stand-in and over a real socket.
import assert from "node:assert/strict";
import { once } from "node:events";
import { afterEach, beforeEach, test } from "node:test";
import { WebSocket } from "ws";
import { WAIT } from "./browser.mjs";
import { StandIn } from "./stand-in.mjs";
import { unit } from "./units.mjs";

const { WsClient, RpcError, ConnectionLost } = await unit("ws-client");
const { Outbox } = await unit("outbox");

let gateway;
let client;
let states;
let events;
let waiting;

beforeEach(async () => {
  gateway = await new StandIn().start();
  states = [];
  events = [];
  waiting = [];
});
afterEach(async () => {
  client?.close();
  await gateway.stop();
});

const later = globalThis.setTimeout; // the real timer, because a test below replaces it

/** Resolves when `holds()` is true; checks again at each state and event. */
function until(holds) {
  return new Promise((resolve, reject) => {
    const hangs = later(() => reject(new Error(`never: ${holds}`)), WAIT);
    waiting.push({ holds, resolve: () => (clearTimeout(hangs), resolve()) });
    look();
  });
}

/** Flushes until nothing is left, as the page does after each login. */
async function deliver(box) {
  for (let round = 0; round < 50 && box.letters.length; round++) {
    await until(online);
    await box.flush();
  }
}
function look() {
  waiting = waiting.filter(({ holds, resolve }) => !holds() || void resolve());
}

function connect(login = { token: gateway.token }, more = {}) {
  client = new WsClient({
    url: `ws://127.0.0.1:${gateway.port}/ws`,
    open: (url) => new WebSocket(url),
    onState: (state, reason) => (states.push([state, reason]), look()),
    onEvent: (event) => (events.push(event), look()),
    onToken: (token) => (states.push(["token", token]), look()),
    backoffMs: { first: 5, most: 20 },
    ...more,
  });
  client.connect(login);
  return client;
}
const online = () => client.state === "online";

test("logs in with the first frame, then calls", async () => {
  connect();
  await assert.rejects(client.call("agents.list"), { name: "ConnectionLost" });
  await until(online);
  assert.deepEqual(await client.call("agents.list"), { agents: gateway.agents });
  assert.deepEqual(
    states.map(([state]) => state),
    ["connecting", "online"],
  );
});

test("many calls at once: each gets its own answer", async () => {
  connect();
  await until(online);
  const keys = await Promise.all(Array.from({ length: 50 }, () => client.call("sessions.create")));
  assert.equal(new Set(keys.map(({ sessionKey }) => sessionKey)).size, 50);
  const answers = await Promise.all(keys.map(({ sessionKey }) => client.call("sessions.get", { sessionKey })));
  assert.deepEqual(
    answers.map(({ session }) => session.sessionKey),
    keys.map(({ sessionKey }) => sessionKey),
  );
});

test("an error has its code and message", async () => {
  connect();
  await until(online);
  await assert.rejects(
    client.call("nope"),
    (error) => error instanceof RpcError && error.code === -32601 && /nope/.test(error.message),
  );
  await assert.rejects(client.call("sessions.get", { sessionKey: "x" }), { code: -32602 });
});

test("a call without an answer fails at its limit, and only it", async () => {
  connect();
  await until(online);
  gateway.before = (method) => (method === "sessions.create" ? "silent" : undefined);
  await assert.rejects(
    client.call("sessions.create", {}, 30),
    (error) => error instanceof ConnectionLost && /sessions.create/.test(error.message),
  );
  assert.ok(await client.call("agents.list"));
});

test("a lost connection settles every call, and comes back by itself", async () => {
  connect();
  await until(online);
  gateway.before = () => "silent";
  const calls = [client.call("agents.list"), client.call("sessions.list")];
  const lost = Promise.all(calls.map((call) => assert.rejects(call, { name: "ConnectionLost" })));
  await once(gateway.sockets.clients.values().next().value, "message").catch(() => {});
  gateway.cut();
  await lost;
  gateway.before = () => {};
  await until(online);
  assert.ok(await client.call("agents.list"));
  assert.ok(states.some(([state]) => state === "offline"));
});

test("waits longer from try to try, up to a limit, and starts anew after a login", async () => {
  const waits = [];
  const real = globalThis.setTimeout;
  const { port } = gateway;
  await gateway.stop();
  globalThis.setTimeout = (work, ms, ...rest) => {
    if (ms < 1000) waits.push(ms);
    return real(work, Math.min(ms, 5), ...rest);
  };
  try {
    connect(
      { token: gateway.token },
      { backoffMs: { first: 100, most: 400 }, random: () => 0.5, url: `ws://127.0.0.1:${port}/ws` },
    );
    await until(() => states.filter(([state]) => state === "offline").length === 5);
  } finally {
    globalThis.setTimeout = real;
    client.close();
  }
  assert.deepEqual(waits.filter((ms) => ms >= 100).slice(0, 5), [100, 200, 400, 400, 400]);
  gateway = await new StandIn().start();
});

test("a link is good for one try: a gateway that goes away meanwhile is not one that refuses", async () => {
  gateway.logIn = () => gateway.cut();
  connect({ code: "a".repeat(64) });
  await until(() => client.state === "refused");
  assert.deepEqual(states.at(-1), ["refused", "The gateway did not answer. Open a new link."]);
});

test("a wrong token is refused, and not tried again", async () => {
  connect({ token: "wrong" });
  await until(() => client.state === "refused");
  assert.deepEqual(states.at(-1), ["refused", "the token is wrong"]);
  client.retryNow();
  assert.equal(client.state, "refused");
});

test("a one-time code logs in once and brings the token, with which the client comes back", async () => {
  const code = gateway.link().split("=")[1];
  connect({ code });
  await until(online);
  assert.deepEqual(states[1], ["token", gateway.token]);
  gateway.cut();
  await until(() => states.filter(([state]) => state === "online").length === 2);
  client.close();
  connect({ code });
  await until(() => client.state === "refused");
});

test("a new token sends everyone away", async () => {
  connect();
  await until(online);
  gateway.renew();
  await until(() => client.state === "refused");
  assert.match(states.at(-1)[1], /changed/);
});

test("a silent socket is asked, and left when it does not answer", async () => {
  connect(undefined, { quietMs: 20 });
  await until(online);
  await until(() => gateway.calls.some(({ method }) => method === "health.check") || void setTimeout(look, 10));
  assert.equal(client.state, "online");
});

test("events come as they are sent", async () => {
  connect();
  await until(online);
  const { sessionKey } = await client.call("sessions.create");
  const { runId } = await client.call("chat.send", { sessionKey, message: "hi" });
  await until(() => events.some(({ event }) => event === "chat.final"));
  const mine = events.filter(({ data }) => data.runId === runId);
  assert.deepEqual(
    mine.map(({ event }) => event),
    ["chat.message", "chat.start", "chat.delta", "chat.final"],
  );
  assert.ok(mine.every(({ data }, at) => at === 0 || data.seq > mine[at - 1].data.seq));
});

// --- outbox ---

function storage() {
  const values = new Map();
  return { getItem: (key) => values.get(key) ?? null, setItem: (key, value) => values.set(key, String(value)) };
}

function outbox(more = {}) {
  const log = { created: [], sent: [], refused: [] };
  const box = new Outbox({
    storage: storage(),
    call: (method, params) => client.call(method, params),
    onCreated: (letter) => log.created.push(letter.sessionKey),
    onSent: (letter, sent) => log.sent.push([letter.message, sent.runId]),
    onRefused: (letter) => log.refused.push([letter.message, letter.refused]),
    ...more,
  });
  return { box, log };
}
const messagesOf = (sessionKey) =>
  gateway
    .find(sessionKey)
    .messages.filter(({ role }) => role === "user")
    .map(({ content }) => content);
const sends = () => gateway.calls.filter(({ method }) => method === "chat.send").length;

test("a message whose answer is lost is sent again, and is there once", async () => {
  connect();
  await until(online);
  const key = gateway.add();
  const { box, log } = outbox();
  let cuts = 0;
  gateway.before = (method) => (method === "chat.send" && cuts++ < 3 ? "cut" : undefined);
  box.add({ sessionKey: key }, "one");
  await deliver(box);
  assert.equal(log.sent.length, 1);
  assert.deepEqual(messagesOf(key), ["one"]);
  assert.equal(sends(), 4);
  assert.deepEqual(box.letters, []);
});

test("messages of a session arrive in their order, however often the connection is lost", async () => {
  connect();
  await until(online);
  const key = gateway.add();
  const { box } = outbox();
  let calls = 0;
  gateway.before = (method) => (method === "chat.send" && calls++ % 3 === 1 ? "cut" : undefined);
  const texts = Array.from({ length: 12 }, (_, at) => `m${at}`);
  for (const text of texts) box.add({ sessionKey: key }, text);
  await deliver(box);
  assert.deepEqual(messagesOf(key), texts);
});

test("two messages of a new chat create one session", async () => {
  connect();
  await until(online);
  const { box, log } = outbox();
  box.add({ sessionKey: null, draft: "d" }, "a");
  box.add({ sessionKey: null, draft: "d" }, "b");
  await box.flush();
  assert.equal(log.created.length, 1);
  assert.deepEqual(messagesOf(log.created[0]), ["a", "b"]);
});

test("what the gateway does not take is kept with its reason, and the others go on", async () => {
  connect();
  await until(online);
  const key = gateway.add();
  const { box, log } = outbox();
  box.add({ sessionKey: "f".repeat(32) }, "to nobody");
  box.add({ sessionKey: key }, "to somebody");
  await box.flush();
  assert.deepEqual(messagesOf(key), ["to somebody"]);
  assert.match(log.refused[0][1], /no session/);
  assert.equal(box.letters.length, 1);
  await box.flush();
  assert.equal(sends(), 2, "it is not sent again by itself");
  box.letters[0].sessionKey = key;
  box.retry(box.letters[0].requestKey);
  await box.flush();
  assert.deepEqual(messagesOf(key), ["to somebody", "to nobody"]);
});

test("a reload keeps what was not sent", async () => {
  connect();
  await until(online);
  const key = gateway.add();
  const kept = storage();
  outbox({ storage: kept, call: () => Promise.reject(new ConnectionLost()) }).box.add({ sessionKey: key }, "kept");
  const { box } = outbox({ storage: kept });
  assert.equal(box.letters.length, 1);
  await box.flush();
  assert.deepEqual(messagesOf(key), ["kept"]);
  kept.setItem("jarvis.outbox", "{broken");
  assert.deepEqual(outbox({ storage: kept }).box.letters, []);
});
