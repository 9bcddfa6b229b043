// client.compatibility: finds out whether this machine can answer requests, and remembers the result.
import { release } from "node:os";
import type { Call } from "./call.js";
import { FmError, reasonCodeOf, type ReasonCode } from "./errors.js";
import type { Helper } from "./helper.js";
import type { Events } from "./events.js";
import { modelsFolder, NO_MODEL } from "./models-folder.js";
import type { RateLimiter } from "./ratelimit.js";
import { toFmError } from "./thrown.js";
import { isObject, type JsonObject } from "./types.js";

/** The result of `client.compatibility.check()`. */
export interface CompatibilityReport {
  compatible: boolean;
  /** Absent when compatible. */
  reason_code?: ReasonCode;
  /** One English sentence or two; absent when compatible. */
  detail?: string;
  /** If no helper was found: the places that were searched, in order. */
  tried?: readonly string[];
  /** All engines, in their order; absent if there is only one. */
  engines?: readonly EngineReport[];
}

/** Whether one of several engines can answer requests. */
export interface EngineReport {
  name: string;
  available: boolean;
  /** Absent when available. */
  reason_code?: ReasonCode;
  detail?: string;
}

/** Options of `client.compatibility.check`. */
export interface CheckOptions {
  /** Checks again, and forgets earlier results: for a command "Re-check compatibility". */
  recheck?: boolean | undefined;
}

/** The facts about a machine that decide whether the `apple` engine can run. */
export interface Machine {
  platform: string;
  arch: string;
  /** The kernel's release. */
  release: string;
}

/** How long the result "there is no model" stays valid, in ms. */
const WAIT_MS = 5 * 60_000;
/**
 * Extra time for the helper's answer, in ms. A helper that does not read its input is noticed before that, and another helper is
 * asked.
 */
const MARGIN_MS = 500;
/** How long the result "no server can be reached" stays valid, in ms. The network may come back at any moment. */
const OFFLINE_MS = 5000;
/** How long `check` waits for engines, in ms. An engine that is asked must report something within 7 s. */
const CHECKING_MS = 8000;
const CHECK_AGAIN_MS = 50;
const START_FAILURES: ReadonlySet<string> = new Set(["SPAWN_FAILED", "PROTOCOL_MISMATCH"]);
/** The Darwin kernel of macOS 26. */
const DARWIN_OF_MACOS_26 = 25;

/** What is known of the machine. Refusals by the class Helper are not part of it. */
type Knowledge =
  | { state: "unknown" }
  | { state: "ready"; verdict: Verdict }
  | { state: "waiting"; verdict: Refusal; until: number };

/** The report for `check`, and the error for requests. */
interface Verdict {
  report: CompatibilityReport;
  error: FmError | null;
  /** One of several engines is still being asked; the others suffice for requests. */
  checking?: boolean;
}
interface Refusal extends Verdict {
  error: FmError;
}


/** The options of the class Compatibility. */
interface GateOptions {
  engine: string | undefined;
  /** How long a helper may take to report its capabilities. */
  timeoutMs: number;
  limiter: RateLimiter;
}

/** `client.compatibility`: whether this machine can answer requests. */
export class Compatibility {
  readonly #helper: Helper;
  readonly #events: Events;
  readonly #limiter: RateLimiter;
  readonly #timeoutMs: number;
  /**
   * The refusal if the machine lacks something that the engine needs. No helper is asked about that. Null: nothing is missing.
   */
  readonly #lacking: Refusal | null;
  #known: Knowledge = { state: "unknown" };
  #asking: Promise<Verdict> | null = null;
  /** The call that asks the helper. */
  #call: Call | null = null;
  #gaveUp = false;

  /** @internal */
  constructor(helper: Helper, events: Events, options: GateOptions) {
    this.#helper = helper;
    this.#events = events;
    this.#limiter = options.limiter;
    this.#timeoutMs = options.timeoutMs;
    const machine = { platform: process.platform, arch: process.arch, release: release() };
    const lacking = options.engine === "apple" ? checkMachine(machine) : null;
    this.#lacking = lacking && refusalOf(lacking);
  }

  /**
   * Checks the machine, and loads no model. Never throws. The result is remembered. "Compatible" stays valid until a request
   * fails because an engine or a model is missing. A reason that the helper reports stays valid for five minutes, `OFFLINE` for
   * five seconds. The result that no helper can be started stays valid until `recheck`.
   */
  async check(options: CheckOptions = {}): Promise<CompatibilityReport> {
    // This must not throw, even if it is given null.
    if (options?.recheck === true) this.#forget();
    let verdict = this.#remembered() ?? (await this.#ask());
    for (const until = performance.now() + CHECKING_MS; verdict.checking === true && performance.now() < until; ) {
      await pause();
      verdict = await this.#ask();
    }
    return verdict.report;
  }

  /**
   * The reason why a request can't be answered; null: there is none. Returns a promise only if nothing is remembered and the
   * helper must be asked.
   */
  refusal(): FmError | null | Promise<FmError | null> {
    const remembered = this.#remembered();
    return remembered === null ? this.#ask().then(({ error }) => error) : remembered.error;
  }

  /** The reason why no helper will be started; null: a helper may be started. */
  lacksHelper(): FmError | null {
    return this.#refused()?.error ?? null;
  }

  /**
   * The time when the helper got the question, or last reported that it is still checking. Null: no helper is asked, or the
   * helper is starting.
   */
  get heardAt(): number | null {
    return this.#call?.heardAt ?? null;
  }

  /**
   * Gives the helper up because a request timed out while the helper was asked. Another helper is asked next, so that later
   * requests do not wait too.
   */
  giveUp(): void {
    this.#gaveUp = true;
    this.#call?.giveUp();
  }

  /** Reports that a request failed because an engine or a model is missing. The next request asks the helper for the reason. */
  doubt(): void {
    if (this.#known.state === "ready") this.#known = { state: "unknown" };
  }

  /** Forgets all results, including crashes of the helper and rate limits. */
  #forget(): void {
    this.#known = { state: "unknown" };
    this.#helper.reset();
    this.#limiter.reset();
  }

  #remembered(): Verdict | null {
    const refused = this.#refused();
    if (refused !== null) return refused;
    if (this.#known.state === "ready") return this.#known.verdict;
    if (this.#known.state === "waiting" && performance.now() < this.#known.until) return this.#known.verdict;
    return null;
  }

  #refused(): Verdict | null {
    if (this.#lacking !== null) return this.#lacking;
    const error = this.#helper.refusal;
    return error === null ? null : { report: reportOf(error), error };
  }

  #ask(): Promise<Verdict> {
    this.#asking ??= this.#askHelper().finally(() => {
      this.#asking = null;
    });
    return this.#asking;
  }

  async #askHelper(): Promise<Verdict> {
    for (;;) {
      this.#gaveUp = false;
      try {
        return await this.#askOne();
      } catch (reason) {
        const error = toFmError(reason);
        if (!this.#gaveUp || error.code !== "TIMEOUT") return { report: reportOf(error), error };
      }
    }
  }

  async #askOne(): Promise<Verdict> {
    const options = { timeoutMs: this.#timeoutMs + MARGIN_MS, timeoutFrom: "send" } as const;
    const until = performance.now() + CHECKING_MS;
    for (;;) {
      this.#call = this.#helper.call("capabilities.get", {}, options);
      const capabilities = await this.#call.result;
      if (capabilities["reason_code"] !== "CHECKING" || performance.now() > until) return this.#learn(capabilities);
      await pause();
    }
  }

  #learn(capabilities: JsonObject): Verdict {
    const engines = enginesOf(capabilities["order"]);
    if (capabilities["available"] === true) {
      const verdict = { report: { compatible: true, ...engines }, error: null, checking: isChecking(capabilities["order"]) };
      this.#known = { state: "ready", verdict };
      if (this.#events.state === "waiting") this.#events.changeState("ready");
      return verdict;
    }
    const reason = reasonCodeOf(capabilities["reason_code"]) ?? "HELPER_UNHEALTHY";
    const detail = adviceFor(String(capabilities["detail"] ?? capabilities["reason_code"]));
    const verdict = refusalOf({ ...no(reason, detail), ...engines });
    this.#known = { state: "waiting", verdict, until: performance.now() + (reason === "OFFLINE" ? OFFLINE_MS : WAIT_MS) };
    this.#events.changeState("waiting", { reason_code: reason, detail: verdict.error.detail });
    return verdict;
  }
}

/** If the folder that `models pull` fills has no model, replaces the helper's text by advice. */
function adviceFor(detail: string): string {
  return detail.includes(`no model file (*.gguf) in the folder ${modelsFolder()};`) ? NO_MODEL : detail;
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, CHECK_AGAIN_MS));
}

function isChecking(order: unknown): boolean {
  return Array.isArray(order) && order.some((engine) => isObject(engine) && engine["reason_code"] === "CHECKING");
}

/** The report about several engines. */
function enginesOf(order: unknown): Pick<CompatibilityReport, "engines"> {
  if (!Array.isArray(order) || order.length < 2) return {};
  const engines = order.filter(isObject).map((engine): EngineReport => {
    const name = String(engine["name"]);
    if (engine["available"] === true) return { name, available: true };
    const reason_code = reasonCodeOf(engine["reason_code"]) ?? "HELPER_UNHEALTHY";
    return { name, available: false, reason_code, detail: String(engine["detail"]) };
  });
  return { engines };
}

/** The requirement of the `apple` engine that the machine does not meet; null: it meets all of them. */
export function checkMachine(machine: Machine): CompatibilityReport | null {
  if (machine.platform !== "darwin")
    return no("NOT_DARWIN", `The apple engine needs macOS; this is ${machine.platform}.`);
  if (machine.arch !== "arm64") return no("UNSUPPORTED_HARDWARE", "The apple engine needs Apple silicon.");
  if (!(Number.parseInt(machine.release, 10) >= DARWIN_OF_MACOS_26)) {
    return no("OS_TOO_OLD", `The apple engine needs macOS 26; this is Darwin ${machine.release}.`);
  }
  return null;
}

/** Makes a refusal that is caused by the machine, or reported by a helper that works. */
function refusalOf(report: CompatibilityReport): Refusal {
  return { report, error: new FmError("UNAVAILABLE", report.detail ?? "", { reasonCode: report.reason_code }) };
}

/** The reason code that an error gives about the machine. */
export function reasonOf({ code, reasonCode }: FmError): ReasonCode {
  return reasonCode ?? (START_FAILURES.has(code) ? (code as ReasonCode) : "HELPER_UNHEALTHY");
}

function reportOf(error: FmError): CompatibilityReport {
  const report = no(reasonOf(error), error.detail);
  return error.tried === undefined ? report : { ...report, tried: error.tried };
}

function no(reasonCode: ReasonCode, detail: string): CompatibilityReport {
  return { compatible: false, reason_code: reasonCode, detail };
}
