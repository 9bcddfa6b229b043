/** Events of the components. Each event has a name and a detail, and is visible outside of the shadow root that it comes from. */
import type { Item } from "./conversation.js";
import type { ExportFormat } from "./export.js";

export interface ComponentEvents {
  "jarvis-send": string;
  "jarvis-stop": string;
  "jarvis-resend": Item;
  "jarvis-discard": Item;
  "jarvis-edit": string;
  "jarvis-again": Item;
  "jarvis-review": string;
  "jarvis-earlier": null;
  "jarvis-agent": string;
  "jarvis-open": string | null;
  "jarvis-rename": { sessionKey: string; title: string };
  "jarvis-remove": string;
  "jarvis-export": { sessionKey: string; format: ExportFormat };
  "jarvis-login": string;
  "jarvis-close": null;
  "jarvis-answer": { approvalId: string; approve: boolean; reason?: string; remember?: boolean };
}

export function emit<Name extends keyof ComponentEvents>(
  from: EventTarget,
  name: Name,
  detail: ComponentEvents[Name],
): void {
  from.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true }));
}

/** The listener of an event, for a template: `@jarvis-send=${on("jarvis-send", (text) => ...)}`. */
export function on<Name extends keyof ComponentEvents>(_name: Name, listener: (detail: ComponentEvents[Name]) => void) {
  return (event: CustomEvent<ComponentEvents[Name]>): void => {
    event.stopPropagation();
    listener(event.detail);
  };
}
