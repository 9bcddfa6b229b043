// Snapshots and events, in every order that a connection can cause.
import assert from "node:assert/strict";
import { test } from "node:test";
import { unit } from "./units.mjs";

const chat = await unit("conversation");
const KEY = "0".repeat(32);
const start = { ...chat.empty(KEY), loaded: true };
const play = (conversation, ...events) =>
  events.reduce((before, [event, data]) => chat.withEvent(before, { event, data }), conversation);
const shape = ({ items }) =>
  items.map(
    ({ role, state, parts }) =>
      `${role} ${state} ${parts.map((part) => part.text ?? `${part.toolName}:${part.state}`).join("|")}`,
  );
const deltas = (runId, ...texts) => texts.map((text) => ["chat.delta", { runId, text }]);

test("a run from message to end", () => {
  const end = play(
    start,
    ["chat.message", { runId: "r", content: "hi" }],
    ["chat.start", { runId: "r", model: "m" }],
    ...deltas("r", "a", "b"),
    ["chat.final", { runId: "r", usage: { inputTokens: 1, outputTokens: 2 } }],
  );
  assert.deepEqual(shape(end), ["user done hi", "assistant done ab"]);
  assert.equal(end.items[1].model, "m");
  assert.equal(end.items[1].usage.outputTokens, 2);
  assert.equal(chat.runningIn(end), undefined);
});

test("nothing comes after the end of a run", () => {
  const end = play(start, ...deltas("r", "a"), ["chat.error", { runId: "r", message: "no" }], ...deltas("r", "late"), [
    "chat.final",
    { runId: "r", usage: {} },
  ]);
  assert.deepEqual(shape(end), ["assistant error a"]);
});

test("our own message is not doubled, whichever comes first: the answer of chat.send or the event", () => {
  const local = chat.withItem(start, chat.localItem("k1", "hi", 1));
  const event = ["chat.message", { runId: "r", content: "hi", requestKey: "k1" }];
  const answerFirst = play(chat.withSent(local, "k1", "r", false), event, ...deltas("r", "a"));
  const eventFirst = chat.withSent(play(local, event, ...deltas("r", "a")), "k1", "r", false);
  for (const each of [answerFirst, eventFirst]) {
    assert.deepEqual(shape(each), ["user done hi", "assistant streaming a"]);
    assert.equal(each.items[0].key, "local:k1", "the element stays");
  }
});

test("queued messages: in their order; one that starts is no longer queued; one that is taken back says so", () => {
  const queued = play(
    start,
    ["chat.message", { runId: "1", content: "a" }],
    ["chat.start", { runId: "1" }],
    ["chat.message", { runId: "2", content: "b", queued: true }],
    ["chat.message", { runId: "3", content: "c", queued: true }],
  );
  assert.equal(chat.queuedIn(queued).length, 2);
  const next = play(
    queued,
    ["chat.error", { runId: "3", message: "x", aborted: true }],
    ["chat.final", { runId: "1", usage: {} }],
    ["chat.start", { runId: "2" }],
  );
  assert.deepEqual(shape(next), [
    "user done a",
    "assistant done ",
    "user done b",
    "assistant streaming ",
    "user aborted c",
  ]);
});

test("events that a snapshot has are left out", () => {
  const snapshot = {
    seq: 5,
    session: { sessionKey: KEY },
    messages: [],
    runs: [{ runId: "r", state: "running", message: "hi", parts: [{ type: "text", text: "abc" }] }],
    approvals: [],
  };
  const joined = chat.withSnapshot(start, snapshot, true);
  const after = play(
    joined,
    ["chat.delta", { runId: "r", text: "c", seq: 5 }],
    ["chat.delta", { runId: "r", text: "d", seq: 6 }],
  );
  assert.deepEqual(shape(after), ["user done hi", "assistant streaming abcd"]);
  assert.equal(after.seq, 6);
});

test("after a lost connection: the new messages, the text so far, and what is still on its way", () => {
  const before = play(
    chat.withItem(
      play(
        start,
        ["chat.message", { runId: "1", content: "a", seq: 1 }],
        ["chat.delta", { runId: "1", text: "half", seq: 2 }],
      ),
      chat.localItem("k", "unsent", 1),
    ),
  );
  const messages = [
    { role: "user", content: "a", runId: "1", seq: 4 },
    { role: "assistant", content: "half and half", runId: "1", seq: 4, usage: {} },
  ];
  const runs = [{ runId: "2", state: "running", message: "b", parts: [] }];
  const after = chat.withSnapshot(
    before,
    { seq: 9, session: { sessionKey: KEY }, messages, runs, approvals: [] },
    false,
  );
  assert.deepEqual(shape(after), [
    "user done a",
    "assistant done half and half",
    "user done b",
    "assistant streaming ",
    "user sending unsent",
  ]);
  const known = chat.withSnapshot(
    before,
    {
      seq: 9,
      session: { sessionKey: KEY },
      messages,
      runs: [{ ...runs[0], message: "unsent", requestKey: "k" }],
      approvals: [],
    },
    false,
  );
  assert.deepEqual(shape(known).slice(2), ["user done unsent", "assistant streaming "]);
});

test("after a lost connection a message of ours is there once, whether its run goes on or is over", () => {
  const sent = chat.withSent(chat.withItem(start, chat.localItem("k1", "hi", 1)), "k1", "r", false);
  const before = play(sent, ["chat.start", { runId: "r" }], ...deltas("r", "a"));
  const run = { runId: "r", state: "running", message: "hi", parts: [{ type: "text", text: "ab" }], time: 1 };
  const messages = [
    { role: "user", runId: "r", seq: 9, content: "hi" },
    { role: "assistant", runId: "r", seq: 9, content: "abc" },
  ];
  const still = { seq: 8, session: {}, messages: [], runs: [{ ...run, requestKey: "k1" }], approvals: [] };
  const over = { seq: 9, session: {}, messages, runs: [], approvals: [] };
  for (const complete of [false, true]) {
    const going = chat.withSnapshot(before, still, complete);
    assert.deepEqual(shape(going), ["user done hi", "assistant streaming ab"]);
    assert.equal(going.items[0].key, "local:k1", "the element stays");
    assert.deepEqual(shape(chat.withSnapshot(before, over, complete)), ["user done hi", "assistant done abc"]);
  }
});

test("tools: call, approval, progress, result", () => {
  const details = { command: "ls", workingDir: "/" };
  const asked = play(
    start,
    ["tool.call", { runId: "r", callId: "c", toolName: "bash", summary: "ls", details, requiresApproval: true }],
    ["exec.approval_request", { approvalId: "a", callId: "c", runId: "r", toolName: "bash", summary: "ls", details }],
  );
  assert.deepEqual(shape(asked), ["assistant streaming bash:waiting"]);
  assert.equal(asked.approvals.length, 1);
  const run = play(
    asked,
    ["exec.approval_resolved", { approvalId: "a", outcome: "approved" }],
    ["tool.progress", { runId: "r", tool: "bash", message: "line" }],
  );
  assert.deepEqual(shape(run), ["assistant streaming bash:running"]);
  assert.equal(run.approvals.length, 0);
  assert.deepEqual(run.items[0].progress, { tool: "bash", message: "line" });
  const done = play(
    run,
    ["tool.result", { runId: "r", callId: "c", state: "done", output: "x", exitCode: 0 }],
    ...deltas("r", "so"),
  );
  assert.deepEqual(shape(done), ["assistant streaming bash:done|so"]);
  assert.equal(done.items[0].progress, undefined);
  assert.equal(done.items[0].parts[0].output, "x");
});

test("an approval of a gateway that sends no tool.call is shown too; one that is not ours changes nothing", () => {
  const asked = play(start, [
    "exec.approval_request",
    { approvalId: "a", runId: "r", toolName: "bash", summary: "ls", details: {} },
  ]);
  assert.deepEqual(shape(asked), ["assistant streaming bash:waiting"]);
  assert.equal(play(asked, ["exec.approval_resolved", { approvalId: "other", outcome: "denied" }]), asked);
  assert.deepEqual(shape(play(asked, ["exec.approval_resolved", { approvalId: "a", outcome: "expired" }])), [
    "assistant streaming bash:expired",
  ]);
});

test("an answer that ends takes its approvals along", () => {
  const asked = play(
    start,
    ["exec.approval_request", { approvalId: "a", runId: "r", toolName: "bash", summary: "", details: {} }],
    ["chat.error", { runId: "r", message: "x", aborted: true }],
  );
  assert.equal(asked.approvals.length, 0);
  assert.equal(asked.items[0].state, "aborted");
});

test("what did not change is the same object", () => {
  const one = play(start, ["chat.message", { runId: "1", content: "a" }], ...deltas("1", "x"), [
    "chat.final",
    { runId: "1", usage: {} },
  ]);
  const two = play(one, ...deltas("2", "y"));
  assert.equal(two.items[0], one.items[0]);
  assert.equal(two.items[1], one.items[1]);
});

test("earlier messages come in front, once", () => {
  const shown = chat.withSnapshot(
    start,
    {
      seq: 1,
      session: { sessionKey: KEY },
      messages: [{ role: "user", content: "b", runId: "2" }],
      runs: [],
      approvals: [],
      more: true,
    },
    true,
  );
  const all = chat.withEarlier(
    shown,
    [
      { role: "user", content: "a", runId: "1" },
      { role: "user", content: "b", runId: "2" },
    ],
    false,
  );
  assert.deepEqual(shape(all), ["user done a", "user done b"]);
  assert.equal(all.more, false);
});

test("refused, sent again, discarded", () => {
  const local = chat.withItem(start, chat.localItem("k", "hi", 1));
  const refused = chat.withRefused(local, "k", "full");
  assert.equal(refused.items[0].note, "full");
  assert.equal(chat.withSending(refused, "k").items[0].state, "sending");
  assert.equal(chat.withoutItem(refused, refused.items[0].key).items.length, 0);
});
