// Pages of other sites attack the real gateway, in Chromium. One page knows the gateway's port and even its token. The name of
// another page leads to 127.0.0.1 after its load (DNS rebinding). The gateway's own page makes each attack too, and succeeds.
// This proves that the gateway stops the attacks, and that they do not fail by a mistake.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { chromium } from "playwright-core";
import { CHROMIUM, WAIT, hasChromium } from "./browser.mjs";
import { RealGateway, hasGateway } from "./real-gateway.mjs";

const skip = !hasChromium
  ? "Chromium is missing: apt-get install chromium, or name one in FM_CHROMIUM"
  : !hasGateway && "fm-gateway is missing: sh packaging/setup.sh --gateway";
const it = (name, run) => test(name, { skip }, run);
let browser;
let gateway;
let site;
let page;
let token;

before(async () => {
  if (skip) return;
  browser = await chromium.launch({
    executablePath: CHROMIUM,
    // switches off Chromium's own barrier between public and local addresses, because not every browser has one
    args: ["--no-sandbox", "--host-resolver-rules=MAP *.example 127.0.0.1", "--disable-features=LocalNetworkAccessChecks"],
    timeout: WAIT,
  });
  site = createServer((_, answer) => answer.writeHead(200, { "content-type": "text/html" }).end("<title>evil</title><body>"));
  site.listen(0, "127.0.0.1");
  await once(site, "listening");
});
after(async () => {
  await browser?.close();
  site?.close();
});
beforeEach(async () => {
  if (skip) return;
  gateway = await new RealGateway().start();
  token = readFileSync(join(gateway.home, "token"), "utf8").trim();
  page = await (await browser.newContext({ bypassCSP: true })).newPage();
  page.setDefaultTimeout(WAIT);
});
afterEach(async () => {
  if (skip) return;
  await page.context().close();
  assert.equal(await gateway.remove(), 0, gateway.log);
});

/** Runs in the page. Returns what a script gets from a WebSocket, even if it knows the token, and from HTTP. */
async function attack({ sockets, addresses, token }) {
  const socket = (url) =>
    new Promise((resolve) => {
      const opened = new WebSocket(url);
      const said = [];
      opened.onopen = () => {
        said.push("open");
        opened.send(JSON.stringify({ type: "auth", token }));
      };
      opened.onmessage = ({ data }) => {
        said.push(data);
        opened.close();
      };
      opened.onclose = () => resolve(said.join(" "));
    });
  const read = (url, options) =>
    fetch(url, options).then(
      async (answer) => `${answer.status} ${(await answer.text()).slice(0, 40)}`,
      () => "failed",
    );
  const load = (element, url) =>
    new Promise((resolve) => {
      element.onload = () => resolve("loaded");
      element.onerror = () => resolve("failed");
      element.src = url;
      document.body.append(element);
    });
  const frame = (url) =>
    new Promise((resolve) => {
      const element = document.createElement("iframe");
      element.onload = () => {
        try {
          resolve(element.contentDocument?.body ? `seen: ${element.contentDocument.title}` : "closed");
        } catch {
          resolve("closed");
        }
      };
      element.src = url;
      document.body.append(element);
    });
  const results = {};
  for (const url of sockets) results[url] = await socket(url);
  for (const url of addresses) {
    results[`fetch ${url}`] = await read(url);
    results[`no-cors ${url}`] = await read(url, { mode: "no-cors" });
    results[`post ${url}`] = await read(url, { method: "POST", body: "{}", headers: { "content-type": "text/plain" } });
    results[`script ${url}`] = await load(document.createElement("script"), url);
    results[`frame ${url}`] = await frame(url);
  }
  return results;
}

const script = () => /assets\/[\w.-]+\.js/.exec(readFileSync(join(gateway.ui, "index.html"), "utf8"))[0];
const targets = (host) => ({
  sockets: [`ws://${host}/`, `ws://${host}/ws`],
  addresses: [`http://${host}/health`, `http://${host}/`, `http://${host}/${script()}`],
  token,
});

it("its own page gets in by all of them", async () => {
  await page.goto(`${gateway.origin}/`);
  const host = `127.0.0.1:${gateway.port}`;
  const results = await page.evaluate(attack, targets(host));
  for (const path of ["/", "/ws"]) assert.equal(results[`ws://${host}${path}`], 'open {"type":"auth","ok":true}');
  assert.match(results[`fetch http://${host}/health`], /^200 {"status":"ok"/);
  assert.equal(results[`script http://${host}/${script()}`], "loaded");
});

it("a page of another site, on this machine or elsewhere, opens no socket and reads nothing", async () => {
  for (const origin of [`http://127.0.0.1:${site.address().port}`, `http://evil.example:${site.address().port}`]) {
    for (const name of ["127.0.0.1", "localhost"]) {
      const host = `${name}:${gateway.port}`;
      await page.goto(`${origin}/`);
      const results = await page.evaluate(attack, targets(host));
      for (const [what, result] of Object.entries(results)) {
        if (what.startsWith("ws:")) assert.equal(result, "", `${origin}: ${what}`);
        else assert.ok(["failed", "closed"].includes(result), `${origin}: ${what}: ${result}`);
      }
      const frames = page.frames().map((frame) => frame.url());
      assert.equal(frames.length, 4);
      assert.deepEqual(
        frames.filter((url) => url.includes(String(gateway.port))),
        [],
        "in no frame, where its buttons could be clicked unseen",
      );
    }
  }
});

it("a page without an origin does not either", async () => {
  await page.goto(`http://evil.example:${site.address().port}/`);
  const host = `127.0.0.1:${gateway.port}`;
  const said = await page.evaluate(
    ({ url, token }) =>
      new Promise((resolve) => {
        addEventListener("message", ({ data }) => resolve(data));
        const frame = document.createElement("iframe");
        frame.sandbox = "allow-scripts";
        frame.srcdoc = `<script>const s = new WebSocket(${JSON.stringify(url)}); let said = "";
          s.onopen = () => s.send('{"type":"auth","token":"${token}"}'); s.onmessage = (e) => { said += e.data; s.close(); };
          s.onclose = () => parent.postMessage("closed " + said, "*");</script>`;
        document.body.append(frame);
      }),
    { url: `ws://${host}/`, token },
  );
  assert.equal(said, "closed ");
});

it("a name that leads here by now gets nothing", async () => {
  const host = `evil.example:${gateway.port}`;
  // the page came from the attacker's server, before the name got another address
  await page.route(`http://${host}/begin`, (route) =>
    route.fulfill({ contentType: "text/html", body: "<title>evil</title><body>" }),
  );
  await page.goto(`http://${host}/begin`);
  const results = await page.evaluate(attack, targets(host));
  for (const [what, result] of Object.entries(results)) {
    if (what.startsWith("ws:")) assert.equal(result, "", what);
    else if (what.startsWith("script")) assert.equal(result, "failed", what);
    else if (what.startsWith("frame")) assert.ok(["closed", "seen: "].includes(result), `${what}: ${result}`);
    else assert.match(result, /^421 This server answers as/, what);
  }
});

it("the window of the gateway can not be steered by who opened it", async () => {
  await page.goto(`http://evil.example:${site.address().port}/`);
  const [popup] = await Promise.all([
    page.context().waitForEvent("page"),
    page.evaluate((url) => void (globalThis.opened = globalThis.open(url)), `${gateway.origin}/`),
  ]);
  await popup.getByRole("textbox").first().waitFor();
  assert.equal(await popup.evaluate(() => globalThis.opener), null);
  assert.equal(await page.evaluate(() => globalThis.opened.closed), true, "it is another group of windows");
});
