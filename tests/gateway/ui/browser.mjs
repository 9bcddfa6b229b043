// Debian's Chromium without a screen, and a check that a page never prints errors, breaks its policy, or sends requests to
// other origins.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");
export const PICTURES = join(root, "build", "gateway-ui");
export const CHROMIUM = process.env.FM_CHROMIUM ?? "/usr/bin/chromium";
export const hasChromium = existsSync(CHROMIUM);
/** The time limit for events that must come. It is far longer than a slow machine needs. */
export const WAIT = Number(process.env.FM_TEST_WAIT ?? 120_000);

export class Browser {
  static async launch() {
    const self = new Browser();
    self.browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"], timeout: WAIT });
    return self;
  }

  /** A page in a new context (`options.context`: a tab of an existing one). `page.problems` has the faults found. */
  async page({ context, ...options } = {}) {
    const owner =
      context ?? (await this.browser.newContext({ permissions: ["clipboard-read", "clipboard-write"], ...options }));
    const page = await owner.newPage();
    page.setDefaultTimeout(WAIT);
    page.problems = [];
    page.on("console", (message) => {
      const quiet = /WebSocket connection to 'ws:/.test(message.text()); // the network's message about an absent server
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
