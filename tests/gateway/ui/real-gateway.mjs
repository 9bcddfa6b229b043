// A real fm-gateway in a separate folder, for tests: with the fake engine, whose answers are scripts in the user's message
// (helper/engine/fake), or with the model from the set-up.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { CHROMIUM } from "./browser.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");
const BIN = process.env.FM_BIN ?? join(root, "build", "bin");
const PROGRAM = join(BIN, "fm-gateway");
export const MODELS = join(root, "build", "models");
export const hasGateway = existsSync(PROGRAM) && existsSync(join(BIN, "gateway-ui", "index.html"));
export const hasModel = existsSync(join(BIN, "fm-engine-llama")) && existsSync(MODELS);

/** A message that makes the fake engine answer with these steps: texts, and the steps of helper/engine/fake/script.c. */
export const script = (...steps) => JSON.stringify(steps);
export const call = (name, input) => ({ tool_call: { name, arguments: JSON.stringify(input) } });

export class RealGateway {
  /** `real`: with the model from the set-up. */
  constructor({ real = false } = {}) {
    this.ui = join(BIN, "gateway-ui");
    this.folder = mkdtempSync(join(tmpdir(), "fm-gateway-"));
    this.home = join(this.folder, "state");
    mkdirSync(this.home, { mode: 0o700 });
    cpSync(join(root, "gateway", "workspace"), join(this.folder, "workspace"), { recursive: true });
    writeFileSync(join(this.home, "config.json"), JSON.stringify({ memory: { enabled: false } }));
    this.options = ["--browser", CHROMIUM];
    const helper = real ? ["--models-dir", MODELS] : ["--engine", "fake"];
    for (const each of helper) this.options.push("--helper-arg", each);
    this.port = 0;
    this.log = "";
  }

  get environment() {
    const { PATH, HOME } = process.env;
    return { PATH, HOME, PROJ_JARVIS_HOME: this.home, PROJ_JARVIS_PORT: String(this.port) };
  }

  get origin() {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Starts the gateway. Each start uses the same port. */
  async start() {
    this.process = spawn(PROGRAM, this.options, {
      cwd: this.folder,
      env: this.environment,
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.process.stderr.setEncoding("utf8").on("data", (text) => (this.log += text));
    this.ended = once(this.process, "exit");
    const lines = createInterface({ input: this.process.stdout });
    const first = await Promise.race([once(lines, "line").then(([line]) => line), this.ended.then(() => "")]);
    const match = /^http:\/\/127\.0\.0\.1:(\d+)\/$/.exec(first);
    if (!match) throw new Error(`fm-gateway printed no address but "${first}": ${this.log}`);
    this.port = Number(match[1]);
    return this;
  }

  /** A link that logs in once. */
  async link() {
    const { stdout } = await promisify(execFile)(PROGRAM, ["--link"], { env: this.environment });
    return stdout.trim();
  }

  /** Ends the gateway. Returns its exit status, or the signal that ended it. */
  async end(signal = "SIGTERM") {
    if (this.process.exitCode === null && this.process.signalCode === null) this.process.kill(signal);
    const [status, by] = await this.ended;
    return status ?? by;
  }

  async remove() {
    const status = await this.end();
    rmSync(this.folder, { recursive: true, force: true });
    return status;
  }
}
