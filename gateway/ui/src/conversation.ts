/**
 * What a conversation looks like, computed from snapshots and events. Pure: each function returns a new conversation, in which
 * only changed parts are new objects, so a component can compare by identity. An event that a snapshot already contains (by its
 * seq) changes nothing.
 */
import type {
  Approval,
  GatewayEvent,
  Message,
  Part,
  Run,
  Session,
  Snapshot,
  ToolPart,
  ToolState,
  Usage,
} from "./protocol.js";

/**
 * sending: on its way to the gateway. queued: waits for the run before it. refused: the gateway did not take it.
 * streaming: the answer is being written. aborted: the user has stopped it.
 */
export type ItemState = "sending" | "queued" | "refused" | "streaming" | "done" | "error" | "aborted";

export interface Item {
  /** Never changes, from the item's first moment on. */
  key: string;
  role: "user" | "assistant";
  state: ItemState;
  parts: Part[];
  runId?: string;
  requestKey?: string;
  time?: number;
  usage?: Usage;
  model?: string;
  /** Why it failed. */
  note?: string;
  progress?: { tool: string; message: string };
}

export interface Conversation {
  session: Session;
  items: Item[];
  approvals: Approval[];
  seq: number;
  /** There are earlier messages that are not loaded. */
  more: boolean;
  loaded: boolean;
}

export function empty(sessionKey: string): Conversation {
  return { session: { sessionKey }, items: [], approvals: [], seq: 0, more: false, loaded: false };
}

/** The text of an item, without its tools. */
export function textOf(item: Item): string {
  return item.parts
    .map((part) => (part.type === "text" ? part.text : ""))
    .filter(Boolean)
    .join("\n\n");
}

export function runningIn({ items }: Conversation): Item | undefined {
  return items.find((item) => item.role === "assistant" && item.state === "streaming");
}

export function queuedIn({ items }: Conversation): Item[] {
  return items.filter((item) => item.role === "user" && item.state === "queued");
}

function textParts(text: string): Part[] {
  return text === "" ? [] : [{ type: "text", text }];
}

type Known<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** Removes members whose value is undefined, because an optional member must have a value or be absent. */
function known<T extends object>(values: T): Known<T> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Known<T>;
}

export function itemOf(message: Message, index = 0): Item {
  const { role, content, runId, time, usage, model, error, aborted } = message;
  return {
    key: `${role}:${runId ?? `#${index}`}`,
    role,
    state: aborted ? "aborted" : error === undefined ? "done" : "error",
    parts: message.parts ?? textParts(content),
    ...known({ runId, time, usage, model, note: error }),
  };
}

export function localItem(requestKey: string, message: string, time: number, refused?: string): Item {
  const item: Item = {
    key: `local:${requestKey}`,
    role: "user",
    state: "sending",
    parts: textParts(message),
    requestKey,
    time,
  };
  return refused === undefined ? item : { ...item, state: "refused", note: refused };
}

function userItem(run: Pick<Run, "runId" | "message" | "requestKey" | "time">, state: ItemState): Item {
  const { runId, message, requestKey, time } = run;
  return {
    key: `user:${runId}`,
    role: "user",
    state,
    parts: textParts(message),
    runId,
    ...known({ requestKey, time }),
  };
}

function answerItem(runId: string, parts: Part[] = [], more: Partial<Item> = {}): Item {
  return { key: `assistant:${runId}`, role: "assistant", state: "streaming", parts, runId, ...more };
}

/**
 * Replaces our state by the gateway's, except for messages that are still on their way. `complete`: the snapshot has all
 * messages; otherwise it has only the messages after ours.
 */
export function withSnapshot(conversation: Conversation, snapshot: Snapshot, complete: boolean): Conversation {
  const old = new Map(conversation.items.map((item) => [item.key, item]));
  const settled = complete ? [] : conversation.items.filter((item) => isSettled(item));
  const items = new Map(settled.map((item) => [item.key, item]));
  const add = (item: Item) => {
    const kept = keepKey(item, old, conversation.items);
    items.set(kept.key, kept);
  };
  snapshot.messages.forEach((message, index) => add(itemOf(message, index)));
  for (const run of snapshot.runs) {
    add(userItem(run, run.state === "queued" ? "queued" : "done"));
    if (run.state === "running") add(answerItem(run.runId, run.parts, known({ model: run.model, time: run.time })));
  }
  const sent = new Set([...items.values()].map((item) => item.requestKey).filter(Boolean));
  const waiting = conversation.items.filter((item) => isLocal(item) && !sent.has(item.requestKey));
  return {
    session: { ...conversation.session, ...snapshot.session },
    items: [...items.values(), ...waiting],
    approvals: snapshot.approvals,
    seq: snapshot.seq,
    more: complete ? snapshot.more === true : conversation.more,
    loaded: true,
  };
}

function isLocal(item: Item): boolean {
  return item.state === "sending" || item.state === "refused";
}

function isSettled(item: Item): boolean {
  return item.runId !== undefined && (item.state === "done" || item.state === "error" || item.state === "aborted");
}

/** An item that began here under another key keeps that key, so that its element stays. */
function keepKey(item: Item, old: Map<string, Item>, items: Item[]): Item {
  if (old.has(item.key) || item.role === "assistant") return item;
  const before = items.find((each) => each.role === "user" && (sameRequest(each, item) || each.runId === item.runId));
  return before ? { ...item, key: before.key } : item;
}

function sameRequest(item: Item, other: Item): boolean {
  return item.requestKey !== undefined && item.requestKey === other.requestKey;
}

export function withItem(conversation: Conversation, item: Item): Conversation {
  return { ...conversation, items: [...conversation.items, item] };
}

export function withoutItem(conversation: Conversation, key: string): Conversation {
  return { ...conversation, items: conversation.items.filter((item) => item.key !== key) };
}

/** The gateway has taken the message of `requestKey`. */
export function withSent(conversation: Conversation, requestKey: string, runId: string, queued: boolean): Conversation {
  const there = conversation.items.some((item) => item.role === "user" && item.runId === runId);
  if (there)
    return {
      ...conversation,
      items: conversation.items.filter((item) => item.requestKey !== requestKey || item.runId === runId),
    };
  return changeItem(
    conversation,
    (item) => item.requestKey === requestKey,
    (item) => {
      const { note: _, ...rest } = item;
      return { ...rest, runId, state: queued ? "queued" : "done" };
    },
  );
}

/** The user has asked for a refused message to be sent again. */
export function withSending(conversation: Conversation, requestKey: string): Conversation {
  return changeItem(
    conversation,
    (item) => item.requestKey === requestKey,
    (item) => {
      const { note: _, ...rest } = item;
      return { ...rest, state: "sending" };
    },
  );
}

/** `messages` are the last messages of the transcript, which include the shown ones. */
export function withEarlier(conversation: Conversation, messages: Message[], more: boolean): Conversation {
  const there = new Set(conversation.items.map((item) => `${item.role}:${item.runId}`));
  const earlier = messages
    .map(itemOf)
    .filter((item) => item.runId === undefined || !there.has(`${item.role}:${item.runId}`));
  return { ...conversation, items: [...earlier, ...conversation.items], more };
}

export function withRefused(conversation: Conversation, requestKey: string, reason: string): Conversation {
  return changeItem(
    conversation,
    (item) => item.requestKey === requestKey,
    (item) => ({ ...item, state: "refused", note: reason }),
  );
}

function changeItem(
  conversation: Conversation,
  is: (item: Item) => boolean,
  change: (item: Item) => Item,
): Conversation {
  let changed = false;
  const items = conversation.items.map((item) => {
    if (!is(item)) return item;
    changed = true;
    return change(item);
  });
  return changed ? { ...conversation, items } : conversation;
}

/** Changes the answer of a run; begins one if the run has none yet. An answer that is over stays as it is. */
function changeAnswer(conversation: Conversation, runId: string, change: (item: Item) => Item): Conversation {
  const at = conversation.items.findIndex((item) => item.role === "assistant" && item.runId === runId);
  const found = conversation.items[at];
  if (found) {
    if (found.state !== "streaming") return conversation;
    return { ...conversation, items: conversation.items.with(at, change(found)) };
  }
  const items = conversation.items.map((item) =>
    item.runId === runId && item.state !== "done" ? { ...item, state: "done" as const } : item,
  );
  const after = items.findIndex((item) => item.runId === runId);
  items.splice(after < 0 ? items.length : after + 1, 0, change(answerItem(runId)));
  return { ...conversation, items };
}

function changeTool(item: Item, callId: string, change: (part: ToolPart) => ToolPart, otherwise?: ToolPart): Item {
  let found = false;
  const parts = item.parts.map((part) => {
    if (part.type !== "tool" || part.callId !== callId) return part;
    found = true;
    return change(part);
  });
  return found ? { ...item, parts } : otherwise ? { ...item, parts: [...parts, otherwise] } : item;
}

function appended(parts: Part[], text: string): Part[] {
  const last = parts.at(-1);
  return last?.type === "text"
    ? parts.with(-1, { type: "text", text: last.text + text })
    : [...parts, { type: "text", text }];
}

/** Applies an event of this conversation's session. */
export function withEvent(conversation: Conversation, frame: GatewayEvent): Conversation {
  const { seq } = frame.data;
  if (seq !== undefined && seq <= conversation.seq) return conversation;
  const next = apply(conversation, frame);
  return seq === undefined ? next : { ...next, seq };
}

function apply(conversation: Conversation, frame: GatewayEvent): Conversation {
  switch (frame.event) {
    case "chat.message": {
      const { runId, content, requestKey, queued, time } = frame.data;
      const item = userItem({ runId, message: content, ...known({ requestKey, time }) }, queued ? "queued" : "done");
      const mine = (each: Item) => each.role === "user" && (each.runId === runId || sameRequest(each, item));
      if (!conversation.items.some(mine)) return withItem(conversation, item);
      return changeItem(conversation, mine, (each) => ({ ...item, key: each.key }));
    }
    case "chat.start":
      return changeAnswer(conversation, frame.data.runId, (item) => {
        const { model, time } = frame.data;
        return { ...item, ...known({ model, time }) };
      });
    case "chat.delta":
      return changeAnswer(conversation, frame.data.runId, (item) => ({
        ...item,
        parts: appended(item.parts, frame.data.text),
      }));
    case "chat.final":
      return ended(conversation, frame.data.runId, { state: "done", usage: frame.data.usage });
    case "chat.error": {
      const { runId, message, aborted } = frame.data;
      return ended(conversation, runId, { state: aborted ? "aborted" : "error", note: message });
    }
    case "tool.call":
      return withCall(conversation, frame.data);
    case "tool.progress": {
      const { runId, tool, message } = frame.data;
      return changeAnswer(conversation, runId, (item) => ({ ...item, progress: { tool, message } }));
    }
    case "tool.result":
      return withResult(conversation, frame.data);
    case "exec.approval_request":
      return withApproval(conversation, frame.data);
    case "exec.approval_resolved":
      return withResolved(conversation, frame.data.approvalId, frame.data.outcome);
    case "sessions.changed":
      return frame.data.session
        ? { ...conversation, session: { ...conversation.session, ...frame.data.session } }
        : conversation;
  }
}

function ended(conversation: Conversation, runId: string, end: Partial<Item>): Conversation {
  const queued = conversation.items.find(
    (item) => item.role === "user" && item.runId === runId && item.state === "queued",
  );
  if (queued)
    return changeItem(
      conversation,
      (item) => item === queued,
      (item) => ({ ...item, ...end }),
    );
  return changeAnswer(
    { ...conversation, approvals: conversation.approvals.filter((each) => each.runId !== runId) },
    runId,
    (item) => {
      const { progress: _, ...rest } = item;
      return { ...rest, ...end };
    },
  );
}

type Data<Name extends GatewayEvent["event"]> = Extract<GatewayEvent, { event: Name }>["data"];

function withCall(conversation: Conversation, call: Data<"tool.call">): Conversation {
  const { runId, callId, toolName, summary, details, requiresApproval } = call;
  const state: ToolState = requiresApproval ? "waiting" : "running";
  const part: ToolPart = { type: "tool", callId, toolName, summary, state, ...known({ details }) };
  return changeAnswer(conversation, runId, (item) =>
    changeTool(item, callId, (old) => ({ ...part, state: old.state }), part),
  );
}

function withResult(conversation: Conversation, result: Data<"tool.result">): Conversation {
  const { runId, callId, state, output, exitCode, truncated, durationMs, attachments } = result;
  const end = { state, ...known({ output, exitCode, truncated, durationMs, attachments }) };
  return changeAnswer(conversation, runId, (item) => {
    const { progress: _, ...rest } = item;
    return changeTool(rest, callId, (part) => ({ ...part, ...end }));
  });
}

function withApproval(conversation: Conversation, request: Approval): Conversation {
  const { approvalId, runId, toolName, summary, details } = request;
  if (conversation.approvals.some((each) => each.approvalId === approvalId)) return conversation;
  const next = { ...conversation, approvals: [...conversation.approvals, request] };
  if (runId === undefined) return next;
  const callId = request.callId ?? approvalId;
  const part: ToolPart = { type: "tool", callId, toolName, summary, details, state: "waiting" };
  return changeAnswer(next, runId, (item) => changeTool(item, callId, (old) => ({ ...old, state: "waiting" }), part));
}

const AFTER: Record<Data<"exec.approval_resolved">["outcome"], ToolState> = {
  approved: "running",
  denied: "denied",
  expired: "expired",
  withdrawn: "aborted",
};

export function withResolved(
  conversation: Conversation,
  approvalId: string,
  outcome: keyof typeof AFTER,
): Conversation {
  const request = conversation.approvals.find((each) => each.approvalId === approvalId);
  if (!request) return conversation;
  const next = { ...conversation, approvals: conversation.approvals.filter((each) => each !== request) };
  const callId = request.callId ?? approvalId;
  return changeItem(
    next,
    (item) => item.parts.some((part) => part.type === "tool" && part.callId === callId && part.state === "waiting"),
    (item) => changeTool(item, callId, (part) => ({ ...part, state: AFTER[outcome] })),
  );
}
