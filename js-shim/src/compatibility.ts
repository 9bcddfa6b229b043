// Whether this machine can serve requests, asked once and remembered.
import { release } from "node:os";
import { toFmError } from "./errors.js";
import type { Transport } from "./types.js";

/** Why a machine cannot answer requests. */
export type ReasonCode =
  | "NOT_DARWIN"
  | "OS_TOO_OLD"
  | "UNSUPPORTED_HARDWARE"
  | "AI_DISABLED"
  | "MODEL_NOT_READY"
  | "SPAWN_FAILED"
  | "PROTOCOL_MISMATCH"
  | "HELPER_UNHEALTHY";

/** What `client.compatibility.check()` finds. */
export interface CompatibilityReport {
  compatible: boolean;
  /** Null when compatible. */
  reasonCode: ReasonCode | null;
  /** One English sentence, or null when compatible. */
  detail: string | null;
}

/** The machine, as far as the `apple` engine asks for it. */
export interface Machine {
  platform: string;
  arch: string;
  /** The kernel's release. */
  release: string;
}

const REASONS = new Set<string>(["AI_DISABLED", "MODEL_NOT_READY", "OS_TOO_OLD", "UNSUPPORTED_HARDWARE"]);
const START_FAILURES = new Set<string>(["SPAWN_FAILED", "PROTOCOL_MISMATCH"]);
/** The Darwin kernel of macOS 26. */
const DARWIN_OF_MACOS_26 = 25;
const TIMEOUT_MS = 5000;

/** `client.compatibility`: whether this machine can answer requests. */
export class Compatibility {
  readonly #transport: Transport;
  readonly #engine: string | undefined;

  /** @internal */
  constructor(transport: Transport, engine: string | undefined) {
    this.#transport = transport;
    this.#engine = engine;
  }

  /** Looks without loading a model. Never throws. */
  async check(): Promise<CompatibilityReport> {
    if (this.#engine === "apple") {
      const report = checkMachine({ platform: process.platform, arch: process.arch, release: release() });
      if (report !== null) return report;
    }
    try {
      const result = await this.#transport.call("capabilities.get", {}, { timeoutMs: TIMEOUT_MS }).result;
      if (result["available"] === true) return { compatible: true, reasonCode: null, detail: null };
      const code = String(result["reason_code"]);
      return no(REASONS.has(code) ? (code as ReasonCode) : "HELPER_UNHEALTHY", String(result["detail"] ?? code));
    } catch (error) {
      const { code, detail } = toFmError(error);
      return no(START_FAILURES.has(code) ? (code as ReasonCode) : "HELPER_UNHEALTHY", detail);
    }
  }
}

/** What the `apple` engine needs of the machine; null when it has all of it. */
export function checkMachine(machine: Machine): CompatibilityReport | null {
  if (machine.platform !== "darwin")
    return no("NOT_DARWIN", `The apple engine needs macOS; this is ${machine.platform}.`);
  if (machine.arch !== "arm64") return no("UNSUPPORTED_HARDWARE", "The apple engine needs Apple silicon.");
  if (!(Number.parseInt(machine.release, 10) >= DARWIN_OF_MACOS_26)) {
    return no("OS_TOO_OLD", `The apple engine needs macOS 26; this is Darwin ${machine.release}.`);
  }
  return null;
}

function no(reasonCode: ReasonCode, detail: string): CompatibilityReport {
  return { compatible: false, reasonCode, detail };
}
