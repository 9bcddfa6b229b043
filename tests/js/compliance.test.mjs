// The Open Responses compliance suite, if there is a checkout of it; compliance.mjs shows its table.
import assert from "node:assert/strict";
import { test } from "node:test";
import { callingEnv, loadSuite, runSuite, suiteFolder } from "./support/compliance.mjs";
import { fakeClient, temporaryFolder } from "./support/helper.mjs";

const folder = suiteFolder();
const skip = folder === null && "FM_COMPLIANCE_SUITE names no checkout of openresponses/openresponses";

test("the compliance suite on the fake engine", { skip }, async (t) => {
  const client = fakeClient(t, { env: callingEnv, mmproj: "/fake" });
  const results = await runSuite(loadSuite(folder, temporaryFolder(t)), client);
  assert.ok(results.length > 0);
  for (const { id, status, errors } of results) {
    await t.test(id, () => assert.equal(status, "passed", errors?.join("; ")));
  }
});
