// The page in Chromium, with keyboard and mouse, on the stand-in: what users do, and the faults that they may meet.
import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { Browser, hasChromium } from "./browser.mjs";
import { ANSWER, fill, picture } from "./demo.mjs";
import { StandIn } from "./stand-in.mjs";

const skip = hasChromium ? false : "Chromium is missing: apt-get install chromium, or name one in FM_CHROMIUM";
let browser;
let gateway;
let page;

before(async () => {
  if (!skip) browser = await Browser.launch();
});
after(() => browser?.close());
beforeEach(async () => {
  if (skip) return;
  gateway = await new StandIn().start();
  page = await browser.page({ viewport: { width: 1200, height: 800 } });
});
afterEach(async () => {
  if (skip) return;
  const { problems } = page;
  await page.context().close();
  await gateway.stop();
  assert.deepEqual(problems, [], "no complaints, no requests elsewhere");
});

const it = (name, run) => test(name, { skip }, run);
const field = (where = page) => where.getByRole("textbox", { name: "Message" });
const item = (role, where = page) => where.locator(`jarvis-message-item.${role}`);
const button = (name, where = page) => where.getByRole("button", { name, exact: true });
/** Waits until the page is logged in. The field alone does not prove this: the page already shows it while it connects. */
async function loggedIn(where = page) {
  await until(() => sessionStorage.getItem("jarvis.token") !== null, undefined, where);
  await field(where).waitFor();
}
async function enter(link = gateway.link()) {
  await page.goto(link);
  await loggedIn();
}
/** The label, or else the text, of the element with the focus. Runs in the page. */
function focusedLabel() {
  let at = document.activeElement;
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  return at?.getAttribute("aria-label") ?? at?.textContent?.trim() ?? "";
}
/** Waits until `holds` is true in the page. */
const until = (holds, argument, where = page) => where.waitForFunction(holds, argument);
/** Waits until the element with this label has the focus: the page moves it after drawing, or after a dialog has closed. */
async function focusComesTo(label) {
  const found = await page.evaluateHandle(`(${focusedLabel})`);
  await until(([find, wanted]) => find() === wanted, [found, label]).catch(async () => {
    assert.equal(await page.evaluate(focusedLabel), label);
  });
}

async function say(text, where = page) {
  await field(where).fill(text);
  await where.keyboard.press("Enter");
}

/** A promise that a test resolves. */
function gate() {
  let open;
  const opened = new Promise((resolve) => (open = resolve));
  return { open, opened };
}

// --- login ---

it("logs in by a link once; the code leaves the address", async () => {
  const link = gateway.link();
  await enter(link);
  assert.equal(page.url(), `${gateway.origin}/`);
  assert.equal(await page.evaluate(() => sessionStorage.getItem("jarvis.token")), gateway.token);
  const stranger = await browser.page();
  await stranger.goto(link);
  await stranger.getByText("the code is wrong, was used or is over").waitFor();
  await stranger.context().close();
});

it("logs in by the token, says why not, and remembers it for the tab alone", async () => {
  await page.goto(gateway.origin);
  await page.getByLabel("Token", { exact: true }).fill("wrong");
  await page.keyboard.press("Enter");
  await page.getByText("Not logged in: the token is wrong").waitFor();
  await page.getByLabel("Token", { exact: true }).fill(gateway.token);
  await page.keyboard.press("Enter");
  await loggedIn();
  await page.reload();
  await loggedIn();
  assert.equal(
    await page.evaluate(() => JSON.stringify(localStorage).includes(sessionStorage.getItem("jarvis.token"))),
    false,
  );
});

it("a new token sends to the login, with the reason", async () => {
  await enter();
  gateway.renew();
  await page.getByText("the token was changed").waitFor();
});

it("a second tab of the same browser logs in through the first, until that logs out", async () => {
  await enter();
  const tab = await browser.page({ context: page.context() });
  await tab.goto(gateway.origin);
  await loggedIn(tab);
  await button("Log out").click();
  await page.getByText("Log in to Jarvis").waitFor();
});

// --- chat ---

it("streams an answer; its code can be copied; the run's usage is shown", async () => {
  const more = gate();
  gateway.script = async (run) => {
    run.usage = { inputTokens: 1234, outputTokens: 56, costUsd: 0.02 };
    run.delta(ANSWER.slice(0, 500));
    await more.opened;
    run.delta(ANSWER.slice(500));
  };
  await enter();
  await say("How does DNS work?");
  await item("assistant").getByText("stub resolver").waitFor();
  await button("Stop the answer").waitFor();
  await page.evaluate(() => {
    const list = document
      .querySelector("jarvis-app")
      .shadowRoot.querySelector("jarvis-chat-view")
      .shadowRoot.querySelector("jarvis-message-list");
    const markdown = list.shadowRoot
      .querySelector("jarvis-message-item.assistant")
      .shadowRoot.querySelector("jarvis-markdown");
    globalThis.first = markdown.shadowRoot.querySelector(".block");
    getSelection().selectAllChildren(globalThis.first);
  });
  more.open();
  await item("assistant").getByText("1,234 in · 56 out · $0.02").waitFor();
  assert.equal(await page.evaluate(() => globalThis.first.isConnected), true, "what was there stays");
  assert.equal(await item("assistant").locator("th").nth(2).getAttribute("align"), "right");
  await item("assistant").locator("button.copy").first().click();
  await until(() => navigator.clipboard.readText().then((text) => text.startsWith("# each line is one step")));
  assert.equal(await page.title(), "How does DNS work? · Jarvis");
  assert.match(page.url(), /#\/s\/[0-9a-f]{32}$/);
});

it("each text runs in its own direction; code runs from left to right in all", async () => {
  const direction = (where) => where.evaluate((element) => getComputedStyle(element).direction);
  gateway.script = async (run) => run.delta("مرحبا بالعالم\n\n- أولا `ls`\n- ثانيا\n\nIn English.\n\n```sh\nls\n```\n");
  await enter();
  await field().fill("hello");
  assert.equal(await direction(field()), "ltr");
  await field().fill("שלום עולם");
  assert.equal(await direction(field()), "rtl");
  await page.keyboard.press("Enter");
  await item("assistant").locator("pre").waitFor();
  await item("assistant").getByRole("button", { name: "Ask again" }).waitFor();
  const parts = { ".bubble": item("user"), p: item("assistant"), ul: item("assistant"), pre: item("assistant") };
  const found = {};
  for (const [part, where] of Object.entries(parts)) found[part] = await direction(where.locator(part).first());
  assert.deepEqual(found, { ".bubble": "rtl", p: "rtl", ul: "rtl", pre: "ltr" });
  assert.equal(await direction(item("assistant").locator("li code")), "ltr");
  assert.equal(await direction(item("assistant").getByText("In English.")), "ltr");
  assert.equal(await direction(page.locator("jarvis-session-list .title").first()), "rtl");
});

it("Enter sends, Shift+Enter does not, an empty message is not sent", async () => {
  await enter();
  await page.keyboard.press("Enter");
  await field().pressSequentially("one");
  await page.keyboard.press("Shift+Enter");
  await field().pressSequentially("two");
  await page.keyboard.press("Enter");
  await item("assistant").getByText("Hello.").waitFor();
  assert.equal([...gateway.sessions.values()][0].messages[0].content, "one\ntwo");
  assert.equal(gateway.calls.filter(({ method }) => method === "chat.send").length, 1);
});

it("keys of an input method send, stop and rename nothing", async () => {
  await enter();
  await field().fill("にほんご");
  for (const init of [{ isComposing: true }, { keyCode: 229 }])
    for (const key of ["Enter", "Escape"])
      await field().evaluate(
        (element, event) =>
          element.dispatchEvent(new KeyboardEvent("keydown", { ...event, bubbles: true, composed: true, cancelable: true })),
        { key, ...init },
      );
  assert.equal(await field().inputValue(), "にほんご");
  assert.deepEqual(
    gateway.calls.filter(({ method }) => method === "chat.send"),
    [],
  );
  await page.keyboard.press("Enter");
  await item("assistant").getByText("Hello.").waitFor();
});

it("stops with the button and with Escape; the text stays", async () => {
  gateway.script = async (run) => {
    run.delta("Half an");
    await gate().opened;
  };
  await enter();
  await say("go");
  await item("assistant").getByText("Half an").waitFor();
  await button("Stop the answer").click();
  await page.getByText("You stopped this answer.").waitFor();
  await say("again");
  await button("Stop the answer").waitFor();
  await field().press("Escape");
  await page.getByText("You stopped this answer.").nth(1).waitFor();
});

it("messages queue up while an answer runs; one can be taken back", async () => {
  const first = gate();
  const seen = [];
  gateway.script = async (run) => {
    seen.push(run.message);
    if (seen.length === 1) await first.opened;
    run.delta(`answer to ${run.message}`);
  };
  await enter();
  await say("one");
  await button("Stop the answer").waitFor();
  await say("two");
  await say("three");
  await page.getByText("2 queued").waitFor();
  await item("user").nth(1).getByText("Take back").click();
  await page.getByText("Taken back").waitFor();
  first.open();
  await item("assistant").getByText("answer to three").waitFor();
  assert.deepEqual(seen, ["one", "three"]);
});

it("a failed answer says why and can be asked again", async () => {
  let tries = 0;
  gateway.script = async (run) => {
    run.delta("x");
    if (tries++ === 0) throw new Error("the engine ended; it starts again with the next message");
  };
  await enter();
  await say("go");
  await page.getByText("the engine ended; it starts again").waitFor();
  await button("Try again").click();
  await item("assistant").nth(1).waitFor();
  assert.deepEqual(
    [...gateway.sessions.values()][0].messages.filter(({ role }) => role === "user").map(({ content }) => content),
    ["go", "go"],
  );
});

it("follows the end of an answer, unless the user has scrolled away", async () => {
  const steps = [gate(), gate()];
  gateway.script = async (run) => {
    run.delta("line\n\n".repeat(60));
    await steps[0].opened;
    run.delta("more\n\n".repeat(60));
    await steps[1].opened;
  };
  const rest = () =>
    page
      .locator("jarvis-message-list .view")
      .evaluate((view) => view.scrollHeight - view.scrollTop - view.clientHeight);
  await enter();
  await say("go");
  await page.getByText("line").nth(59).waitFor();
  await page
    .locator("jarvis-message-list .view")
    .evaluate(
      (view) => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(view.scrollTop)))),
    );
  assert.ok((await rest()) < 5, "at the end");
  await page.locator("jarvis-message-list .view").evaluate((view) => (view.scrollTop = 0));
  await button("Jump to the latest message").waitFor();
  steps[0].open();
  await page.getByText("more").nth(59).waitFor({ state: "attached" });
  assert.ok((await rest()) > 500, "stays where the user is");
  await button("Jump to the latest message").click();
  await button("Jump to the latest message").waitFor({ state: "detached" });
  steps[1].open();
});

it("the button that jumps to the end covers no text", async () => {
  gateway.script = async (run) => run.delta("line\n\n".repeat(60));
  await enter();
  await say("go");
  await button("Ask again").waitFor();
  const view = page.locator("jarvis-message-list .view");
  await view.evaluate((element) => (element.scrollTop = 0));
  const jump = button("Jump to the latest message");
  await jump.waitFor();
  const [list, over] = [await view.boundingBox(), await jump.boundingBox()];
  assert.ok(over.y >= list.y + list.height, `${over.y} is in the list, which ends at ${list.y + list.height}`);
  await jump.click();
  await jump.waitFor({ state: "detached" });
});

it("drafts are kept for each chat, over a reload too", async () => {
  const key = gateway.add({
    title: "Old chat",
    messages: [
      ["user", "a"],
      ["assistant", "b"],
    ],
  });
  await enter();
  await field().fill("a draft");
  await page.getByRole("button", { name: "Old chat", exact: true }).click();
  await page.getByText("b", { exact: true }).waitFor();
  assert.equal(await field().inputValue(), "");
  assert.match(page.url(), new RegExp(key));
  await page.goBack();
  await until((text) => document.title === text, "Jarvis");
  assert.equal(await field().inputValue(), "a draft");
  await page.reload();
  await field().waitFor();
  assert.equal(await field().inputValue(), "a draft");
});

// --- connection ---

it("a connection that is lost in mid-answer: the text goes on where it was, once", async () => {
  const more = gate();
  gateway.script = async (run) => {
    run.delta("one two ");
    await more.opened;
    run.delta("three four");
  };
  await enter();
  await say("count");
  await item("assistant").getByText("one two").waitFor();
  gateway.cut();
  more.open();
  await item("assistant").getByText("one two three four", { exact: true }).waitFor();
  await button("Send").waitFor();
  assert.equal(await item("assistant").count(), 1);
  assert.equal(await item("user").count(), 1);
});

it("what is written without a connection is sent when there is one, also after a reload", async () => {
  const { port } = gateway;
  const key = gateway.add({
    title: "Kept",
    messages: [
      ["user", "a"],
      ["assistant", "b"],
    ],
  });
  await enter();
  await page.getByRole("button", { name: "Kept", exact: true }).click();
  await page.getByText("b", { exact: true }).waitFor();
  gateway.before = () => "silent";
  await say("important");
  await page.getByText("Sending").waitFor();
  gateway.before = () => {};
  await page.reload();
  await item("assistant").getByText("Hello.").waitFor();
  assert.equal(gateway.port, port);
  assert.deepEqual(
    gateway
      .find(key)
      .messages.filter(({ role }) => role === "user")
      .map(({ content }) => content),
    ["a", "important"],
  );
});

it("says that the gateway is away, and is back by itself when it is", async () => {
  await enter();
  const { port, token } = gateway;
  await gateway.stop();
  await page.getByText("The connection to the gateway is lost").waitFor();
  await say("still there?");
  gateway = new StandIn();
  gateway.token = token;
  await gateway.start(port);
  await button("Try now")
    .click({ timeout: 5000 })
    .catch(() => {}); // the connection may be back already
  await item("assistant").getByText("Hello.").waitFor();
  await page.getByText("The connection to the gateway is lost").waitFor({ state: "detached" });
});

it("a message that the gateway refuses says so; it can be sent again or deleted", async () => {
  let full = true;
  const key = gateway.add({
    title: "Full",
    messages: [
      ["user", "a"],
      ["assistant", "b"],
    ],
  });
  gateway.before = (method) => {
    if (method === "chat.send" && full) throw Object.assign(new (refusal())(-32029, "20 messages wait already"), {});
  };
  await enter();
  await page.getByRole("button", { name: "Full", exact: true }).click();
  await say("too much");
  await page.getByText("Not sent: 20 messages wait already").waitFor();
  full = false;
  await button("Send again").click();
  await item("assistant").getByText("Hello.").waitFor();
  assert.equal(gateway.find(key).messages.length, 4);
});

/** The stand-in's own class of errors. */
function refusal() {
  try {
    gateway.find("none");
  } catch (error) {
    return error.constructor;
  }
}

// --- approvals ---

const COMMAND = 'echo "hi"\n\trm -r \u202egpj.x\u2066 /tmp/аbc ';

/** Asks for COMMAND, and puts the outcome into `log`. */
function asking(log, more = {}) {
  return async (run) => {
    const id = run.call("bash", "echo", { command: COMMAND, workingDir: "/home/me" });
    const { outcome, reason } = await run.approval(id, more);
    log.push([outcome, reason]);
    run.result(
      id,
      outcome === "approved"
        ? { state: "done", output: "hi\n", exitCode: 0 }
        : { state: "denied", output: `Denied: ${reason}` },
    );
    run.delta("Over.");
  };
}

it("an approval shows every byte; the focus is on Deny; Enter denies, with the reason", async () => {
  const log = [];
  gateway.script = asking(log);
  await enter();
  await say("go");
  const dialog = page.getByRole("dialog", { name: "Run this command?" });
  await dialog.waitFor();
  await focusComesTo("Deny");
  const shown = await dialog.getByRole("group", { name: "Command" }).locator("li").allTextContents();
  assert.deepEqual(
    shown.map((line) => line.trim()),
    ['echo "hi"', "→rm -r U+202Egpj.xU+2066 /tmp/аbc·"],
  );
  assert.equal(await dialog.getByText("characters that can't be seen").count(), 1);
  assert.equal(await dialog.getByText("letters beyond ASCII").count(), 1);
  assert.equal(await page.title(), "(1) go · Jarvis");
  await dialog.getByLabel("Reason for denying").fill("not there");
  await dialog.getByLabel("Reason for denying").press("Tab");
  await focusComesTo("Deny");
  await armed();
  await page.keyboard.press("Enter");
  await item("assistant").getByText("Over.").waitFor();
  assert.deepEqual(log, [["denied", "not there"]]);
  assert.equal(
    await page
      .locator("jarvis-tool-call .state")
      .textContent()
      .then((text) => text.trim()),
    "Denied",
  );
});

/** Waits until the dialog accepts an answer. */
const armed = () => page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 650)));

it("who was typing answers nothing by accident", async () => {
  const log = [];
  gateway.script = asking(log);
  await enter();
  await page.evaluate(() => {
    // clicks while the dialog opens, because a later click is too late on a slow machine
    const { showModal } = HTMLDialogElement.prototype;
    HTMLDialogElement.prototype.showModal = function () {
      showModal.call(this);
      globalThis.clicked = [".approve", ".deny"].map((name) => this.querySelector(name).click());
    };
  });
  await say("go");
  await page.getByRole("dialog").waitFor();
  assert.equal(await page.evaluate(() => globalThis.clicked.length), 2);
  await armed();
  await page
    .locator(".deny")
    .evaluate((deny) =>
      deny.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", repeat: true, bubbles: true, cancelable: true })),
    );
  assert.deepEqual(log, []);
  await button("Approve").click();
  await item("assistant").getByText("Over.").waitFor();
  assert.deepEqual(log, [["approved", ""]]);
});

it("Escape puts it aside and answers nothing; it can be looked at again; the result is folded", async () => {
  const log = [];
  gateway.script = asking(log, { canRemember: true });
  await enter();
  await say("go");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  await button("Review").click();
  await page.getByRole("dialog").waitFor();
  await focusComesTo("Deny");
  await page.getByLabel("Don't ask again for exactly this command in this folder").check();
  await armed();
  await button("Approve").click();
  await item("assistant").getByText("Over.").waitFor();
  assert.deepEqual(log, [["approved", ""]]);
  assert.deepEqual(gateway.calls.find(({ method }) => method === "exec.approve").params.remember, true);
  const output = page.locator("jarvis-tool-call pre");
  assert.equal(await output.isVisible(), false);
  await page.locator("jarvis-tool-call summary").click();
  assert.equal(await output.textContent(), "hi\n");
});

it("four tabs: each has the dialog, one answer counts, the others close", async () => {
  const log = [];
  gateway.script = asking(log);
  await enter();
  const tabs = [page];
  while (tabs.length < 4) {
    const tab = await browser.page({ context: page.context() });
    await tab.goto(gateway.origin);
    await field(tab).waitFor();
    tabs.push(tab);
  }
  await page.bringToFront();
  await say("go");
  for (const tab of tabs) await tab.getByRole("dialog").waitFor();
  await armed();
  await button("Approve", tabs[2]).click();
  for (const tab of tabs) await tab.getByRole("dialog").waitFor({ state: "hidden" });
  assert.deepEqual(log, [["approved", ""]]);
  for (const tab of tabs) assert.deepEqual(tab.problems, []);
});

it("an approval that expires or whose run ends closes its dialog", async () => {
  const log = [];
  gateway.script = asking(log);
  await enter();
  await say("go");
  await page.getByRole("dialog").waitFor();
  gateway.settle([...gateway.approvals.keys()][0], "expired");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  await item("assistant").getByText("Over.").waitFor();
  await say("go");
  await page.getByRole("dialog").waitFor();
  const { runId } = [...gateway.approvals.values()][0].data;
  gateway.chat_abort({ runId });
  await page.getByRole("dialog").waitFor({ state: "hidden" });
});

it("an open approval is there after a reload, from another chat too", async () => {
  gateway.script = asking([]);
  await enter();
  await say("go");
  await page.getByRole("dialog").waitFor();
  await page.goto(gateway.origin);
  await page.getByRole("dialog", { name: "Run this command?" }).waitFor();
  assert.equal(await page.getByText("Asked for in “go”").count(), 1);
});

it("a long command scrolls inside the dialog, and its buttons stay in sight", async () => {
  const command = `${"x".repeat(69)}\n`.repeat(234) + "last line";
  gateway.script = async (run) => run.approval(run.call("bash", "x", { command, workingDir: "/" }));
  await enter();
  await page.setViewportSize({ width: 390, height: 600 });
  await say("go");
  await page.getByRole("dialog").waitFor();
  const region = page.getByRole("group", { name: "Command" });
  assert.equal(await region.locator("li").count(), 235);
  assert.ok(await region.evaluate((each) => each.scrollHeight > each.clientHeight));
  for (const name of ["Deny", "Approve"]) {
    const box = await button(name).boundingBox();
    assert.ok(box.y + box.height <= 600 && box.x + box.width <= 390, name);
  }
});

it("the browser tool: actions in their order, progress, a picture in the chat", async () => {
  const more = gate();
  gateway.blobs.set("shot", picture(80, 45));
  gateway.script = async (run) => {
    const actions = [{ type: "navigate", url: "https://www.example.org/\u202e" }, { type: "screenshot" }];
    const id = run.call("browser", "Navigate to www.example.org", { actions });
    await run.approval(id);
    run.progress("browser", "Navigating to https://www.example.org …");
    await more.opened;
    const attachments = [{ type: "image", mimeType: "image/png", name: "page.png", blobId: "shot", bytes: 100 }];
    run.result(id, { state: "done", output: "Example", attachments });
  };
  await enter();
  await say("look");
  const dialog = page.getByRole("dialog", { name: "Let the browser do this?" });
  await dialog.getByText("2 actions, in this order").waitFor();
  assert.match(await dialog.getByRole("group", { name: "Action 1" }).textContent(), /U\+202E/);
  await armed();
  await button("Approve").click();
  await page.getByText("Navigating to https://www.example.org").waitFor();
  more.open();
  const image = page.getByRole("img", { name: "page.png" });
  await image.waitFor();
  await until((each) => each.complete && each.naturalWidth === 80, await image.elementHandle());
});

// --- sessions ---

it("search, open, rename, delete", async () => {
  fill(gateway);
  await enter();
  await page.keyboard.press("Control+k");
  await page.keyboard.type("landlock");
  await page.getByText("1 chat").waitFor();
  await page.locator("button.result").click();
  await page.getByText("Here is what I know about Notes on Landlock.").waitFor();
  await page.getByRole("searchbox").fill("");
  await button("Menu of Notes on Landlock").click();
  await page.getByRole("menuitem", { name: "Rename" }).click();
  await page.getByLabel("New title").fill("Kernel notes");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Kernel notes" }).waitFor();
  await button("Menu of Kernel notes").click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  const sure = page.getByRole("dialog", { name: "Delete this chat?" });
  await sure.waitFor();
  await focusComesTo("Cancel");
  await button("Delete", sure).click();
  await page.getByRole("button", { name: "Kernel notes", exact: true }).waitFor({ state: "detached" });
  assert.equal(
    [...gateway.sessions.values()].some(({ title }) => title === "Kernel notes"),
    false,
  );
  await field().waitFor();
});

it("the menu by keyboard", async () => {
  fill(gateway);
  await enter();
  await button("Menu of Moving the meeting").focus();
  await page.keyboard.press("Enter");
  await page.getByRole("menu").waitFor();
  await focusComesTo("Rename");
  await page.keyboard.press("ArrowUp");
  await focusComesTo("Delete");
  await page.keyboard.press("Escape");
  await focusComesTo("Menu of Moving the meeting");
});

it("exports a chat as a file", async () => {
  fill(gateway);
  await enter();
  for (const [kind, name, text] of [
    ["Markdown", "how-dns-finds-an-address.md", /^# How DNS finds an address\n\n## You/],
    ["JSONL", "how-dns-finds-an-address.jsonl", /^\{"sessionKey"/],
  ]) {
    await button("Menu of How DNS finds an address").click();
    const [saved] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("menuitem", { name: `Export as ${kind}` }).click(),
    ]);
    assert.equal(saved.suggestedFilename(), name);
    const chunks = [];
    for await (const chunk of await saved.createReadStream()) chunks.push(chunk);
    assert.match(Buffer.concat(chunks).toString(), text);
  }
});

it("two tabs are in step: messages, titles, deletion", async () => {
  const key = gateway.add({
    title: "Shared",
    messages: [
      ["user", "a"],
      ["assistant", "b"],
    ],
  });
  await enter();
  const tab = await browser.page({ context: page.context() });
  for (const each of [page, tab]) {
    await each.goto(`${gateway.origin}/#/s/${key}`);
    await each.getByText("b", { exact: true }).waitFor();
  }
  await page.bringToFront();
  await say("from one");
  await item("assistant", tab).getByText("Hello.").waitFor();
  assert.equal(await item("user", tab).count(), 2);
  gateway.sessions_rename({ sessionKey: key, title: "Renamed" });
  await tab.getByRole("heading", { name: "Renamed" }).waitFor();
  gateway.sessions_delete({ sessionKey: key });
  await until(() => document.title === "Jarvis", null, tab);
  assert.deepEqual(tab.problems, []);
});

it("a chat that is gone says so", async () => {
  await enter();
  await page.goto(`${gateway.origin}/#/s/${"e".repeat(32)}`);
  await page.getByText("That conversation does not exist any more").waitFor();
  await button("Dismiss").click();
});

it("a long chat: the last messages first, earlier ones on demand", async () => {
  const messages = Array.from({ length: 130 }, (_, at) => [
    [`user`, `question ${at}`],
    ["assistant", `answer ${at}`],
  ]).flat();
  const key = gateway.add({ title: "Long", messages });
  await enter();
  await page.goto(`${gateway.origin}/#/s/${key}`);
  await page.getByText("answer 129").waitFor();
  assert.equal(await item("user").count(), 50);
  await button("Show earlier messages").click();
  await page.getByText("question 0", { exact: true }).waitFor({ state: "attached" });
  assert.equal(await item("user").count(), 130);
});

it("works with a gateway that has the ten methods alone", async () => {
  gateway.missing = new Set([
    "sessions.subscribe",
    "sessions.search",
    "sessions.rename",
    "sessions.delete",
    "blobs.get",
  ]);
  const key = gateway.add({
    title: "Plain",
    messages: [
      ["user", "a"],
      ["assistant", "b"],
    ],
  });
  await enter();
  await page.goto(`${gateway.origin}/#/s/${key}`);
  await page.getByText("b", { exact: true }).waitFor();
  await say("more");
  await item("assistant").getByText("Hello.").waitFor();
  await page.keyboard.press("Control+k");
  await page.keyboard.type("plai");
  await page.getByText("1 chat").waitFor();
});

it("agents: where there are several, a new chat begins with the chosen one", async () => {
  gateway.agents.push({ id: "coder", name: "Coder", model: "anthropic/claude" });
  await enter();
  await page.getByLabel("Agent").selectOption("coder");
  await say("hi");
  await item("assistant").getByText("Hello.").waitFor();
  assert.equal([...gateway.sessions.values()][0].agentId, "coder");
  await page.getByText("anthropic/claude").waitFor();
});

// --- looks and keys ---

it("the theme: the system's, light, dark; all tabs follow, and a reload keeps it", async () => {
  const background = (where = page) => where.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.emulateMedia({ colorScheme: "dark" });
  await enter();
  const dark = await background();
  await page.emulateMedia({ colorScheme: "light" });
  const light = await background();
  assert.notEqual(dark, light);
  const tab = await browser.page({ context: page.context() });
  await tab.emulateMedia({ colorScheme: "light" });
  await tab.goto(gateway.origin);
  await field(tab).waitFor();
  await page.getByRole("button", { name: /^Theme: the system's/ }).click();
  await page.getByRole("button", { name: /^Theme: light/ }).click();
  assert.equal(await background(), dark);
  await until((wanted) => getComputedStyle(document.body).backgroundColor === wanted, dark, tab);
  await page.reload();
  assert.equal(await background(), dark);
});

const blur = () =>
  page.evaluate(() => {
    let at = document.activeElement;
    while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
    at?.blur();
  });

it("shortcuts", async () => {
  fill(gateway);
  await enter();
  await page.getByRole("button", { name: "Trip to Ghent", exact: true }).click();
  await page.getByText("Here is what I know about Trip to Ghent.").waitFor();
  await page.keyboard.press("Control+Shift+O");
  await until(() => document.title === "Jarvis");
  await focusComesTo("Message");
  await page.keyboard.press("Control+Shift+S");
  await button("Show the side bar").waitFor();
  await page.keyboard.press("Control+Shift+S");
  await blur();
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog", { name: "Keyboard" }).waitFor({ state: "hidden" });
  await focusComesTo("Message");
  await blur();
  await page.keyboard.press("/");
  await focusComesTo("Message");
  await page.keyboard.type("/?");
  assert.equal(await field().inputValue(), "/?");
});

it("a screen reader hears the answer in sentences, once, and nothing of an old one", async () => {
  const more = gate();
  const key = gateway.add({
    title: "Old",
    messages: [
      ["user", "a"],
      ["assistant", "An old answer."],
    ],
  });
  gateway.script = async (run) => {
    run.delta("First sentence. Second");
    await more.opened;
    run.delta(" sentence. End");
  };
  await enter();
  await page.goto(`${gateway.origin}/#/s/${key}`);
  await page.getByText("An old answer.").waitFor();
  await say("go");
  const log = page.getByRole("log");
  await log.getByText("First sentence.").waitFor({ state: "attached" });
  more.open();
  await log.getByText("Second sentence. End").waitFor({ state: "attached" });
  assert.deepEqual(await log.locator("p").allTextContents(), ["First sentence.", "Second sentence. End"]);
});
