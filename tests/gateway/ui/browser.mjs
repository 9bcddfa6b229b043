// Debian's Chromium without a screen, and what a page must never do: complain in its console, break its policy, or ask
// anyone but its own origin.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");
export const PICTURES = join(root, "build", "gateway-ui");
export const CHROMIUM = process.env.FM_CHROMIUM ?? "/usr/bin/chromium";
export const hasChromium = existsSync(CHROMIUM);
/** For what must come: far beyond what a slow machine needs. */
export const WAIT = Number(process.env.FM_TEST_WAIT ?? 120_000);

export class Browser {
  static async launch() {
    const self = new Browser();
    self.browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"], timeout: WAIT });
    return self;
  }

  /** A page in a context of its own (`options.context`: another tab of that one). `page.problems` has what went wrong. */
  async page({ context, ...options } = {}) {
    const owner =
      context ?? (await this.browser.newContext({ permissions: ["clipboard-read", "clipboard-write"], ...options }));
    const page = await owner.newPage();
    page.setDefaultTimeout(WAIT);
    page.problems = [];
    page.on("console", (message) => {
      const quiet = /WebSocket connection to 'ws:/.test(message.text()); // the network's own line when a server is away
      if (["error", "warning"].includes(message.type()) && !quiet) page.problems.push(message.text());
    });
    page.on("pageerror", (error) => page.problems.push(String(error)));
    page.on("request", (request) => {
      const { protocol, hostname } = new URL(request.url());
      if (!["data:", "blob:"].includes(protocol) && hostname !== "127.0.0.1")
        page.problems.push(`asked for ${request.url()}`);
    });
    return page;
  }

  async close() {
    await this.browser.close();
  }
}
