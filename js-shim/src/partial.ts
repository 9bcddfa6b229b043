// Collects the part of an answer that had arrived when its stream broke off.
import type { FmError } from "./errors.js";
import type { JsonObject, WireEvent, WireResponse } from "./types.js";
import { isObject } from "./types.js";

/** The events that end a response's stream. */
export const TERMINAL: ReadonlySet<unknown> = new Set(["response.completed", "response.incomplete", "response.failed"]);

/** Events, items and parts of all kinds, by the members that several of them have. */
export interface AnyEvent extends JsonObject {
  type: string;
  sequence_number: number;
}
interface AnyItem extends JsonObject {
  status?: string;
  content?: AnyPart[];
}
interface AnyPart extends JsonObject {
  text?: string;
}

/**
 * Collects the events of a response stream. If the helper dies in the middle, it can't end the stream as OpenAI's clients expect.
 * This class makes the missing events, with all output so far.
 */
export class PartialResponse {
  #response: WireResponse | null = null;
  #output: AnyItem[] = [];
  #sequence = 0;
  #begun = false;
  #over = false;

  /** Whether the stream has begun and has not ended. */
  get open(): boolean {
    return this.#begun && !this.#over;
  }

  /** The response as far as it has arrived; undefined before the stream has begun. */
  get response(): WireResponse | undefined {
    return this.#response ?? undefined;
  }

  /** Records an event. False: the stream is over already, and the event must not be passed on. */
  observe(event: AnyEvent): boolean {
    if (this.#over) return false;
    this.#begun = true;
    this.#sequence = event.sequence_number + 1;
    if (isObject(event["response"])) this.#response = event["response"] as unknown as WireResponse;
    if (TERMINAL.has(event.type)) this.#over = true;
    else this.#observeOutput(event);
    return true;
  }

  /**
   * Makes the events that end the stream: `error` and `response.failed`. A stream that was joined in the middle
   * (`starting_after`) has no response to report, so it gets `error` alone.
   */
  fail(error: FmError): WireEvent[] {
    if (!this.open) return [];
    this.#over = true;
    const { type, code, param, message } = error.openai;
    const shape = { type, code, message, param };
    const told: WireEvent = { type: "error", sequence_number: this.#sequence++, code, message, param, error: shape };
    if (this.#response === null) return [told];
    const failed: WireResponse = {
      ...this.#response,
      status: "failed",
      completed_at: null,
      error: { type, code: code ?? "server_error", message, param },
      output: this.#output.map(endedItem) as unknown as WireResponse["output"],
    };
    this.#response = failed;
    return [told, { type: "response.failed", sequence_number: this.#sequence++, response: failed }];
  }

  #observeOutput(event: AnyEvent): void {
    const index = event["output_index"];
    if (typeof index !== "number") return;
    if (event.type === "response.output_item.added" || event.type === "response.output_item.done") {
      const item = event["item"] as AnyItem;
      this.#output[index] = event.type.endsWith(".done") ? item : copyItem(item);
      return;
    }
    const item = this.#output[index];
    if (item === undefined) return;
    if (event.type === "response.function_call_arguments.delta") {
      item["arguments"] = String(item["arguments"] ?? "") + String(event["delta"]);
    } else if (event.type === "response.custom_tool_call_input.delta") {
      item["input"] = String(item["input"] ?? "") + String(event["delta"]);
    } else if (event.type.startsWith("response.reasoning_summary_")) {
      addTo((item["summary"] ??= []) as AnyPart[], event["summary_index"], event);
    } else {
      addTo((item.content ??= []), event["content_index"], event);
    }
  }
}

function endedItem(item: AnyItem): AnyItem {
  return item.status === "in_progress" ? { ...item, status: "incomplete" } : item;
}

function copyItem(item: AnyItem): AnyItem {
  const copy = { ...item };
  for (const list of ["content", "summary"]) {
    const parts = item[list];
    if (Array.isArray(parts)) copy[list] = parts.map((part: JsonObject) => ({ ...part }));
  }
  return copy;
}

function addTo(parts: AnyPart[], index: unknown, event: AnyEvent): void {
  if (typeof index !== "number") return;
  if (event.type.endsWith("part.added")) {
    parts[index] = { ...(event["part"] as AnyPart) };
    return;
  }
  const part = parts[index];
  if (part === undefined || !event.type.endsWith(".delta")) return;
  const field = event.type === "response.refusal.delta" ? "refusal" : "text";
  part[field] = String(part[field] ?? "") + String(event["delta"]);
}
