// The time limits of a request, which its `fm` can set, and which limit passes next. The helper enforces them itself. This
// package enforces them if a helper hangs.
import { FmError } from "./errors.js";
import * as LIMITS from "./limits.js";
import type { JsonObject } from "./types.js";
import { isObject } from "./types.js";

/** The four limits, by their names in errors. */
type LimitName = "total" | "queue" | "first_token" | "no_progress";

/** A time limit. A call that is no request has only a limit without a name. */
export interface TimeLimit {
  name?: LimitName;
  ms: number;
}

/** The progress of a request, as far as this side knows it. All times are from one clock. */
export interface Progress {
  /** When the request was made. */
  since: number;
  /** When the helper got the request, or last showed that it works on it; null: the helper has not got the request. */
  heardAt: number | null;
  /** The helper was asked, and has answered that it works on the request. So the helper knows how far the request is. */
  known: boolean;
  stage: "queued" | "begun" | "produced";
}

/** The limit that passes next, and when. */
export interface NextLimit {
  limit: TimeLimit;
  at: number;
}

/** The limits: name, member of `fm`, default. */
const ROWS: readonly (readonly [LimitName, string, number])[] = [
  ["total", "timeout_ms", LIMITS.timeout_ms],
  ["queue", "queue_timeout_ms", LIMITS.queue_timeout_ms],
  ["first_token", "first_token_timeout_ms", LIMITS.first_token_timeout_ms],
  ["no_progress", "no_progress_timeout_ms", LIMITS.no_progress_timeout_ms],
];
/** A helper that works on a request is asked again after this many ms at the earliest. */
const AGAIN_MS = 100;

/** The limits of a request: those that it names, and the helper's defaults. The helper refuses invalid limits. */
export class TimeLimits {
  readonly #ms: Record<LimitName, number>;
  readonly #namesQueue: boolean;

  constructor(params: JsonObject) {
    const fm = isObject(params["fm"]) ? params["fm"] : {};
    const fits = (ms: unknown): ms is number => typeof ms === "number" && ms >= 1 && ms <= LIMITS.longest_timeout_ms;
    const limits = ROWS.map(([name, member, otherwise]) => [name, fits(fm[member]) ? fm[member] : otherwise]);
    this.#ms = Object.fromEntries(limits) as Record<LimitName, number>;
    this.#namesQueue = fits(fm["queue_timeout_ms"]);
  }

  /**
   * The limit that passes first. Before the helper has got the request, only the limits that begin with the request's arrival
   * count.
   */
  next({ since, heardAt, known, stage }: Progress): NextLimit {
    const all: NextLimit[] = [this.#limit("total", since)];
    const wait = (name: LimitName): number => (known ? Math.max(this.#ms[name], AGAIN_MS) : this.#ms[name]);
    if (stage === "queued" && (heardAt !== null || this.#namesQueue)) {
      all.push(this.#limit("queue", known && heardAt !== null ? heardAt : since, wait("queue")));
    }
    if (heardAt !== null && stage !== "produced") all.push(this.#limit("first_token", heardAt, wait("first_token")));
    if (heardAt !== null) all.push(this.#limit("no_progress", heardAt, wait("no_progress")));
    return all.reduce((first, other) => (other.at < first.at ? other : first));
  }

  #limit(name: LimitName, from: number, wait = this.#ms[name]): NextLimit {
    return { limit: { name, ms: this.#ms[name] }, at: from + wait };
  }
}

/** The stage of a request that a message of its stream shows. */
export function stageOf({ event, chunk }: JsonObject): "begun" | "produced" {
  if (isObject(event)) return OPENING.has(event["type"]) ? "begun" : "produced";
  const choices: unknown[] = isObject(chunk) && Array.isArray(chunk["choices"]) ? chunk["choices"] : [];
  return choices.some((choice) => isObject(choice) && hasOutput(choice)) ? "produced" : "begun";
}

/** Events that come before there is any output. */
const OPENING: ReadonlySet<unknown> = new Set(["response.created", "response.queued", "response.in_progress"]);

/** Whether a choice has output. The first chunk of a chat completion has the role and nothing else. */
function hasOutput({ text, delta, finish_reason }: JsonObject): boolean {
  const { role: _, ...rest } = isObject(delta) ? delta : { text };
  return finish_reason != null || Object.values(rest).some((value) => value != null && value !== "");
}

/** A call that was not answered in time. */
export function timeoutOf(method: string, { name, ms }: TimeLimit): FmError {
  const what = WHAT[name ?? "total"].replace("METHOD", method).replace("MS", `${ms} ms`);
  return new FmError("TIMEOUT", `The helper ${what}.`, name === undefined ? {} : { limit: name, limitMs: ms });
}

const WHAT: Readonly<Record<LimitName, string>> = {
  total: "did not answer METHOD within MS",
  queue: "did not begin METHOD within MS (queue_timeout_ms)",
  first_token: "gave no output of METHOD within MS (first_token_timeout_ms)",
  no_progress: "showed no progress of METHOD for MS (no_progress_timeout_ms)",
};
