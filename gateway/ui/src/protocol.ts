/**
 * The frames of the gateway, as types: ../../PROTOCOL.md in TypeScript. A gateway may leave out optional members; the page then
 * shows less.
 */
export interface Agent {
  id: string;
  name: string;
  model: string;
}

export interface Usage {
  inputTokens: number;
  outputTokens: number;
  /** What the provider charges. Missing: not known. 0: a local model. */
  costUsd?: number;
}

export interface Session {
  sessionKey: string;
  agentId?: string;
  title?: string;
  createdAt?: number;
  updatedAt?: number;
  messageCount?: number;
  running?: boolean;
  usage?: Usage;
}

export interface Attachment {
  type: "image" | "file";
  mimeType: string;
  name?: string;
  /** Base64. Missing: blobs.get has it under `blobId`. */
  data?: string;
  blobId?: string;
  bytes?: number;
}

export type ToolState = "waiting" | "running" | "done" | "failed" | "denied" | "expired" | "aborted" | "unknown";

export interface TextPart {
  type: "text";
  text: string;
}

export interface ToolPart {
  type: "tool";
  callId: string;
  toolName: string;
  summary: string;
  details?: Record<string, unknown>;
  state: ToolState;
  output?: string;
  exitCode?: number;
  truncated?: boolean;
  durationMs?: number;
  attachments?: Attachment[];
}

export type Part = TextPart | ToolPart;

export interface Message {
  role: "user" | "assistant";
  content: string;
  runId?: string;
  seq?: number;
  time?: number;
  parts?: Part[];
  usage?: Usage;
  model?: string;
  error?: string;
  aborted?: boolean;
}

export interface Approval {
  approvalId: string;
  toolName: string;
  summary: string;
  details: Record<string, unknown>;
  runId?: string;
  callId?: string;
  sessionKey?: string;
  expiresAt?: number;
  canRemember?: boolean;
}

/** A run that is not over, with everything that a page needs if it is opened during the run. */
export interface Run {
  runId: string;
  state: "queued" | "running";
  message: string;
  requestKey?: string;
  time?: number;
  model?: string;
  parts: Part[];
}

export interface Snapshot {
  seq: number;
  session: Session;
  messages: Message[];
  more?: boolean;
  runs: Run[];
  approvals: Approval[];
}

export interface SearchResult {
  sessionKey: string;
  title?: string;
  updatedAt?: number;
  snippet: string;
}

interface OfSession {
  sessionKey?: string;
  seq?: number;
}

/** The data of each event, by its name. */
export interface Events {
  "chat.message": OfSession & { runId: string; content: string; requestKey?: string; queued?: boolean; time?: number };
  "chat.start": OfSession & { runId: string; model?: string; time?: number };
  "chat.delta": OfSession & { runId: string; text: string };
  "chat.final": OfSession & { runId: string; usage: Usage };
  "chat.error": OfSession & { runId: string; message: string; aborted?: boolean };
  "tool.call": OfSession & Omit<ToolPart, "type" | "state"> & { runId: string; requiresApproval?: boolean };
  "tool.progress": OfSession & { runId: string; tool: string; message: string; callId?: string };
  "tool.result": OfSession & Omit<ToolPart, "type" | "toolName" | "summary" | "details"> & { runId: string };
  "exec.approval_request": OfSession & Approval;
  "exec.approval_resolved": OfSession & {
    approvalId: string;
    outcome: "approved" | "denied" | "expired" | "withdrawn";
  };
  "sessions.changed": OfSession & { session?: Session; deleted?: boolean };
}

export type EventName = keyof Events;
export type GatewayEvent = { [Name in EventName]: { event: Name; data: Events[Name] } }[EventName];

export const Code = {
  notFound: -32004,
  busy: -32029,
  unavailable: -32050,
  unknownMethod: -32601,
  invalidParams: -32602,
} as const;
