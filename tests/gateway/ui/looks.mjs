// The page in its states, at three widths, light and dark. As a program it takes pictures for a person to look at, in
// build/gateway-ui/*.png; axe.test.mjs checks the same states with axe-core.
//
// usage: node looks.mjs [NAME...]   only the states whose names contain one of these
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ANSWER, fill } from "./demo.mjs";
import { Browser, PICTURES } from "./browser.mjs";
import { StandIn } from "./stand-in.mjs";

/** The kinds of screen. A page is loaded once for each kind: at 832 px, the side bar covers the page or stands beside it. */
export const SCREENS = [
  {
    hasTouch: true,
    sizes: [
      [390, 844],
      [820, 1180],
    ],
  },
  { hasTouch: false, sizes: [[1440, 900]] },
];
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const COMMAND =
  'cd ~/photos && for f in *.jpg; do\n\techo "$f" \nrsync -a "$f" backup/\u202e#\u2066 done\n  ls -l аpt\ndone';

export const STATES = {
  async login(page) {
    await page.locator("jarvis-login input").waitFor();
  },
  async refused(page) {
    await page.locator("jarvis-login input").fill("wrong");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").waitFor();
  },
  async blank(page, gateway) {
    await page.goto(gateway.link());
    await page.getByText("How DNS finds").first().waitFor({ state: "attached" });
  },
  async chat(page, gateway, key) {
    await page.goto(`${gateway.link()}`);
    await page.locator("jarvis-chat-view h1").waitFor();
    await page.goto(`${gateway.origin}/#/s/${key}`);
    await page.locator("figure img").waitFor();
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  },
  async top(page, gateway, key) {
    await STATES.chat(page, gateway, key);
    await page
      .locator(".view")
      .first()
      .evaluate(() => 0)
      .catch(() => 0);
    await page.locator("jarvis-message-list .view").evaluate((view) => (view.scrollTop = 0));
  },
  async open(page, gateway, key) {
    await STATES.chat(page, gateway, key);
    await page.locator("jarvis-tool-call summary").first().click();
  },
  async streaming(page, gateway) {
    gateway.script = async (run) => {
      run.delta(ANSWER.slice(0, 700));
      await new Promise(() => {});
    };
    await page.goto(gateway.link());
    await page.getByRole("textbox", { name: "Message" }).fill("How does DNS work?");
    await page.keyboard.press("Enter");
    await page.getByText("each line is one step").waitFor();
    await page.getByRole("textbox", { name: "Message" }).fill("And what about IPv6?");
    await page.keyboard.press("Enter");
    await page.getByText("Queued:").waitFor();
  },
  async approval(page, gateway) {
    gateway.script = async (run) => {
      run.delta("I'll copy the pictures.");
      const id = run.call("bash", COMMAND, { command: COMMAND, workingDir: "/home/me/photos" });
      await run.approval(id, { canRemember: true });
    };
    await page.goto(gateway.link());
    await page.getByRole("textbox", { name: "Message" }).fill("Back up my photos");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Deny" }).waitFor();
  },
  async waiting(page, gateway) {
    await STATES.approval(page, gateway);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Review" }).waitFor();
  },
  async failed(page, gateway) {
    gateway.script = async (run) => {
      run.delta("The first half of");
      run.progress("browser", "Navigating to https://example.com …");
      throw new Error("the engine ended; it starts again with the next message");
    };
    await page.goto(gateway.link());
    await page.getByRole("textbox", { name: "Message" }).fill("Say something long");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Try again" }).waitFor();
  },
  async offline(page, gateway, key) {
    await STATES.chat(page, gateway, key);
    await gateway.stop();
    await page.getByRole("button", { name: "Try now" }).waitFor();
    await page.getByRole("textbox", { name: "Message" }).fill("Written without a connection");
    await page.keyboard.press("Enter");
  },
  async search(page, gateway) {
    await STATES.blank(page, gateway);
    await page.keyboard.press("Control+k");
    await page.keyboard.type("regular");
    await page.getByText("1 chat").waitFor();
  },
  async menu(page, gateway) {
    await STATES.blank(page, gateway);
    await page.keyboard.press("Control+k");
    await page.getByRole("button", { name: "Menu of Moving" }).click();
  },
  async help(page, gateway) {
    await STATES.blank(page, gateway);
    await page.locator("body").click({ position: { x: 380, y: 200 } });
    await page.evaluate(() => document.activeElement?.blur());
    await page.keyboard.press("?");
  },
};

/** Brings a page into a state, and lets `visit(page, { width, scheme })` inspect it at each size, light and dark. */
export async function look(browser, name, { hasTouch, sizes }, visit) {
  const gateway = await new StandIn().start();
  const key = fill(gateway);
  const [[width, height]] = sizes;
  const page = await browser.page({ viewport: { width, height }, reducedMotion: "reduce", hasTouch });
  try {
    await page.addInitScript(AXE);
    await page.goto(gateway.origin);
    await STATES[name](page, gateway, key);
    for (const [width, height] of sizes) {
      await page.setViewportSize({ width, height });
      for (const scheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
        await visit(page, { width, scheme });
      }
    }
  } finally {
    await page.context().close();
    await gateway.stop().catch(() => {}); // some states have stopped the gateway already
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const wanted = process.argv.slice(2);
  mkdirSync(PICTURES, { recursive: true });
  const browser = await Browser.launch();
  for (const name of Object.keys(STATES)) {
    if (wanted.length && !wanted.some((each) => name.includes(each))) continue;
    for (const screen of SCREENS)
      await look(browser, name, screen, (page, { width, scheme }) =>
        page.screenshot({ path: join(PICTURES, `${name}-${width}-${scheme}.png`) }),
      );
  }
  await browser.close();
}
