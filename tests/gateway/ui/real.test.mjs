// The page on the real gateway, in Chromium: a user's actions from the first link to a restart in the middle of an answer. The
// fake engine gives the answers (it repeats the output of a tool), and the model from the set-up gives one. The pictures are
// in build/gateway-ui/real-*.png.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { Browser, PICTURES, hasChromium } from "./browser.mjs";
import { RealGateway, call, hasGateway, hasModel, script } from "./real-gateway.mjs";

const skip = !hasChromium
  ? "Chromium is missing: apt-get install chromium, or name one in FM_CHROMIUM"
  : !hasGateway && "fm-gateway is missing: sh packaging/setup.sh --gateway";
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const HANG = { hang: "soft" };
let browser;
let gateway;
let page;

before(async () => {
  if (!skip) browser = await Browser.launch();
  mkdirSync(PICTURES, { recursive: true });
});
after(() => browser?.close());
beforeEach(async () => {
  if (skip) return;
  gateway = await new RealGateway().start();
  page = await open();
});
afterEach(async ({ name }) => {
  if (skip) return;
  const { problems } = page;
  await page.screenshot({ path: join(PICTURES, `real-end-${name.replaceAll(/\W+/g, "-").slice(0, 50)}.png`) });
  await page.context().close();
  const status = await gateway.remove();
  assert.deepEqual(problems, [], "no complaints, no requests elsewhere");
  assert.equal(status, 0, gateway.log);
});

const it = (name, run) => test(name, { skip }, run);
const field = (where = page) => where.getByRole("textbox", { name: "Message" });
const item = (role, where = page) => where.locator(`jarvis-message-item.${role}`);
const text = (where = page) => item("assistant", where).locator("jarvis-markdown");
const button = (name, where = page) => where.getByRole("button", { name, exact: true });
const dialog = (where = page) => where.getByRole("dialog");
const ready = (where = page) => button("Send", where).waitFor();

/** A page with axe-core, whose sockets a test can cut. */
async function open(options = { viewport: { width: 1200, height: 800 } }) {
  const opened = await browser.page(options);
  await opened.addInitScript(AXE);
  await opened.addInitScript(() => {
    const Real = globalThis.WebSocket;
    globalThis.sockets = [];
    globalThis.WebSocket = class extends Real {
      constructor(...args) {
        super(...args);
        globalThis.sockets.push(this);
      }
    };
  });
  return opened;
}

/** Waits until the page is logged in. The field alone does not prove this: the page already shows it while it connects. */
async function enter(link) {
  await page.goto(link ?? (await gateway.link()));
  await page.waitForFunction(() => sessionStorage.getItem("jarvis.token") !== null);
  await field().waitFor();
}

async function say(text, where = page) {
  await field(where).fill(text);
  await where.keyboard.press("Enter");
}

/** Takes a picture for people; axe-core must find nothing. */
async function look(name) {
  await page.screenshot({ path: join(PICTURES, `real-${name}.png`) });
  const { violations } = await page.evaluate(() => globalThis.axe.run({ resultTypes: ["violations"] }));
  assert.deepEqual(
    violations.map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes.map(({ target }) => target.flat().join(" > "))}`),
    [],
    name,
  );
}

/** Presses a button of the open approval. Tries again until the dialog accepts the answer and closes. */
async function answer(name, where = page) {
  await dialog(where).waitFor();
  while (await dialog(where).isVisible()) {
    await button(name, where)
      .click({ timeout: 500 })
      .catch(() => {}); // the dialog has closed, or does not accept answers yet
  }
}

const cut = () => page.evaluate(() => globalThis.sockets.at(-1).close());
const transcript = (key) => readFileSync(join(gateway.home, "sessions", `${key}.jsonl`), "utf8");
const key = () => new URL(page.url()).hash.replace("#/s/", "");

it("logs in by a link once, and shows the agent", async () => {
  const link = await gateway.link();
  await enter(link);
  assert.equal(page.url(), `${gateway.origin}/`);
  await page.getByText("Jarvis").first().waitFor();
  await page.getByText("local/default").first().waitFor();
  await look("blank");
  const stranger = await browser.page();
  await stranger.goto(link);
  await stranger.getByRole("alert").waitFor();
  await stranger.context().close();
});

it("an answer streams, is shown as markdown, and is there after a reload", async () => {
  await enter();
  await say(script("# Streams\n\n", "one ", { sleep_ms: 100 }, "**two** ", { sleep_ms: 100 }, "three\n\n```c\nint x;\n```\n"));
  await item("assistant").getByRole("heading", { name: "Streams" }).waitFor();
  await item("assistant").locator("strong").getByText("two").waitFor();
  await ready();
  await item("assistant").getByText(/\d+ in · \d+ out/).waitFor();
  await look("answer");
  await page.reload();
  await item("assistant").locator("strong").getByText("two").waitFor();
  assert.equal(await item("assistant").count(), 1);
  assert.equal(await item("user").count(), 1);
});

it("an answer is stopped; its text stays, and the next message is answered", async () => {
  await enter();
  await say(script("Half an", HANG));
  await item("assistant").getByText("Half an").waitFor();
  await button("Stop the answer").click();
  await page.getByText("You stopped this answer.").waitFor();
  await say("and then");
  await item("assistant").nth(1).getByText("and then").waitFor();
  await page.reload();
  await page.getByText("You stopped this answer.").waitFor();
  await item("assistant").first().getByText("Half an").waitFor();
});

it("a command is shown, approved and run; its output is shown", async () => {
  await enter();
  const mark = join(gateway.folder, "mark");
  const command = `touch ${mark} && printf 'It is done.'`;
  await say(script("Let me do that.", call("bash", { command })));
  await dialog().getByRole("group", { name: "Command" }).getByText("touch").waitFor();
  assert.equal((await dialog().getByRole("group", { name: "Command" }).locator("li").allTextContents()).join(""), command);
  assert.match(await dialog().getByRole("group", { name: "Folder" }).textContent(), new RegExp(gateway.folder));
  await look("approval");
  assert.equal(existsSync(mark), false, "nothing runs before the answer");
  await answer("Approve");
  await text().getByText("It is done.").waitFor();
  await ready();
  assert.equal(existsSync(mark), true);
  await page.locator("jarvis-tool-call summary").first().click();
  await look("command");
});

it("a command is denied with a reason: it does not run, and the model hears of it", async () => {
  await enter();
  const mark = join(gateway.folder, "mark");
  await say(script(call("bash", { command: `touch ${mark}` })));
  await dialog().waitFor();
  await page.getByLabel("Reason for denying (optional)").fill("not on a Wednesday");
  await answer("Deny");
  await text().getByText("Denied: not on a Wednesday").waitFor();
  await ready();
  assert.equal(existsSync(mark), false);
  await look("denied");
});

it("the browser tool: a picture of a page is in the chat, also after a reload", async () => {
  await enter();
  await say(script(call("browser", { actions: [{ action: "screenshot" }] })));
  await page.getByRole("dialog", { name: "Let the browser do this?" }).waitFor();
  await answer("Approve");
  const image = item("assistant").locator("figure img");
  await image.waitFor();
  await page.waitForFunction((each) => each.complete && each.naturalWidth > 100, await image.elementHandle());
  await ready();
  await look("browser");
  await page.reload();
  await item("assistant").locator("figure img").waitFor();
});

it("a page of this machine is opened if the user agrees, the gateway's own never; the chat says so", async () => {
  const mine = createServer((_request, response) => response.setHeader("Content-Type", "text/html").end("a page of mine"));
  await new Promise((listens) => mine.listen(0, "127.0.0.1", listens));
  try {
    await enter();
    const look = (url) => say(script(call("browser", { actions: [{ action: "navigate", url }, { action: "text" }] })));
    await look(`localhost:${mine.address().port}`);
    await dialog()
      .getByText(/pages are on this machine/)
      .waitFor();
    await answer("Approve");
    await ready();
    await page.locator("jarvis-tool-call summary").first().click();
    await page
      .getByText(/a page of mine/)
      .first()
      .waitFor();
    await look(`${gateway.origin}/`);
    await ready();
    await page.locator("jarvis-tool-call summary").nth(1).click();
    await page
      .getByText(/the gateway's own address/)
      .first()
      .waitFor();
  } finally {
    mine.close();
  }
});

it("a missing Chromium makes the tool unavailable, with what to do", async () => {
  await gateway.end();
  gateway.options.splice(gateway.options.indexOf("--browser"), 2, "--browser", "/nowhere/chromium");
  await gateway.start();
  await enter();
  await say(script(call("browser", { actions: [{ action: "screenshot" }] })));
  await answer("Approve");
  await ready();
  await page.locator("jarvis-tool-call summary").first().click();
  await page.getByText(/Chromium|chromium/).first().waitFor();
  await say("and on");
  await item("assistant").nth(1).getByText("and on").waitFor();
});

it("two tabs are in step: text, approvals and their answers", async () => {
  await enter();
  const tab = await browser.page({ context: page.context() });
  await say(script("begun ", call("bash", { command: "printf ended" })));
  await dialog().waitFor();
  await tab.goto(page.url());
  await dialog(tab).waitFor();
  await item("assistant", tab).getByText("begun").waitFor();
  await answer("Approve", tab);
  await dialog().waitFor({ state: "hidden" });
  for (const each of [page, tab]) await text(each).getByText("ended").waitFor();
  await say("from the second", tab);
  await item("assistant").nth(1).getByText("from the second").waitFor();
  assert.deepEqual(tab.problems, []);
});

it("a connection that is lost in mid-answer: the text goes on where it was, once", async () => {
  await enter();
  const words = Array.from({ length: 40 }, (_, at) => `w${at} `);
  await say(script(...words.flatMap((word) => [word, { sleep_ms: 50 }])));
  await item("assistant").getByText("w3 ").waitFor();
  await cut();
  await item("assistant").getByText(words.join("").trim(), { exact: true }).waitFor();
  await ready();
  assert.equal(await item("assistant").count(), 1);
  assert.equal(await item("user").count(), 1);
  assert.ok((await page.evaluate(() => globalThis.sockets.length)) > 1, "it connected again");
});

for (const signal of ["SIGTERM", "SIGKILL"]) {
  it(`${signal} in mid-answer: the page says what happened, and goes on with the gateway's next life`, async () => {
    await enter();
    await say(script("Half an answer", HANG));
    await item("assistant").getByText("Half an answer").waitFor();
    const session = key();
    await gateway.end(signal);
    await page.getByText("The connection to the gateway is lost").waitFor();
    await gateway.start();
    await page.getByText("The connection to the gateway is lost").waitFor({ state: "detached" });
    await button("Try again").waitFor();
    assert.equal(await item("assistant").count(), 1);
    assert.equal(await item("user").count(), 1);
    await look(`restart-${signal}`);
    await say("and on");
    await item("assistant").nth(1).getByText("and on").waitFor();
    await ready();
    assert.equal(transcript(session).split("Half an answer").length > 1, true, "the message is kept");
  });
}

it("what is written while the gateway is away is answered when it is back", async () => {
  await enter();
  await say("first");
  await item("assistant").getByText("first").waitFor();
  await ready();
  await gateway.end("SIGKILL");
  await page.getByText("The connection to the gateway is lost").waitFor();
  await say("second");
  await gateway.start();
  await item("assistant").nth(1).getByText("second").waitFor();
  assert.equal(await item("user").count(), 2);
});

it("an open approval at a kill: it is over, and nothing has run", async () => {
  await enter();
  const mark = join(gateway.folder, "mark");
  await say(script(call("bash", { command: `touch ${mark}` })));
  await dialog().waitFor();
  await gateway.end("SIGKILL");
  await gateway.start();
  await dialog().waitFor({ state: "hidden" });
  await button("Try again").waitFor();
  assert.equal(existsSync(mark), false);
});

it("chats are found, renamed and deleted; the file is gone", async () => {
  await enter();
  await say("where are the brown foxes");
  await item("assistant").getByText("brown foxes").waitFor();
  await ready();
  const session = key();
  await page.keyboard.press("Control+k");
  await page.keyboard.type("foxes");
  await page.getByText("1 chat").waitFor();
  await page.getByRole("searchbox").fill("");
  await button("Menu of where are the brown foxes").click();
  await page.getByRole("menuitem", { name: "Rename" }).click();
  await page.getByLabel("New title").fill("Animals");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Animals" }).waitFor();
  await button("Menu of Animals").click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await button("Delete", page.getByRole("dialog", { name: "Delete this chat?" })).click();
  await page.getByRole("button", { name: "Animals", exact: true }).waitFor({ state: "detached" });
  assert.equal(existsSync(join(gateway.home, "sessions", `${session}.jsonl`)), false);
});

test("the model of the set-up answers", { skip: skip || (!hasModel && "there is no model") }, async () => {
  await gateway.remove();
  gateway = await new RealGateway({ real: true }).start();
  await enter();
  await say("Say hello in one short sentence.");
  await item("assistant").getByText(/\w{2,}/).first().waitFor();
  await button("Stop the answer")
    .click({ timeout: 5000 })
    .catch(() => {}); // the answer has ended, or waits for an approval
  await Promise.race([ready(), dialog().waitFor()]);
  await look("model");
  if (await dialog().isVisible()) await answer("Deny");
});
