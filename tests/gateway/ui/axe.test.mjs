// Checks each state of the page with axe-core at three widths. In dark mode it only checks the contrast, because nothing else
// differs. Also checks that nothing is wider than the page, and that touch targets are large enough. looks.mjs takes pictures of
// the same states.
import assert from "node:assert/strict";
import { test } from "node:test";
import { hasChromium } from "./browser.mjs";
import { SCREENS, STATES, look } from "./looks.mjs";
import { Browser } from "./browser.mjs";

const skip = hasChromium ? false : "Chromium is missing: apt-get install chromium, or name one in FM_CHROMIUM";

test("every state, every width, light and dark", { skip }, async (t) => {
  const browser = await Browser.launch();
  try {
    for (const name of Object.keys(STATES)) {
      await t.test(name, async () => {
        const faults = [];
        const add = async (page, { width, scheme }) =>
          faults.push(...(await check(page, `${name}, ${width} wide, ${scheme}`, scheme === "dark")));
        await Promise.all(SCREENS.map((screen) => look(browser, name, screen, add)));
        assert.deepEqual(faults, []);
      });
    }
  } finally {
    await browser.close();
  }
});

/** The faults of the page, in words. */
async function check(page, what, dark) {
  const { violations } = await page.evaluate((dark) => {
    // An open side bar over the page hides the main part and the heading from axe-core.
    const covered = document.querySelector("jarvis-app").shadowRoot.querySelector(".bar[aria-modal=true]") !== null;
    const rules = Object.fromEntries(
      ["landmark-one-main", "page-has-heading-one"].map((name) => [name, { enabled: !covered }]),
    );
    const which = dark ? { runOnly: { type: "rule", values: ["color-contrast"] } } : { rules };
    return globalThis.axe.run({ resultTypes: ["violations"], ...which });
  }, dark);
  const found = violations.map(
    ({ id, impact, nodes }) => `${impact} ${id}: ${nodes.map(({ target }) => target.flat().join(" > ")).join("; ")}`,
  );
  const wide = await page.evaluate(() => document.scrollingElement.scrollWidth - innerWidth);
  if (wide > 0) found.push(`${wide} px too wide`);
  return [...page.problems, ...found].map((fault) => `${what}: ${fault}`);
}
