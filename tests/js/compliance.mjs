// The Open Responses compliance suite over client.fetch, on the fake engine and the real model:
//   node tests/js/compliance.mjs FOLDER
// FOLDER (or FM_COMPLIANCE_SUITE) is a checkout of openresponses/openresponses. Prints a table; the exit status is always 0.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "../../js-shim/dist/esm/index.js";
import { callingEnv, loadSuite, runSuite, suiteFolder } from "./support/compliance.mjs";
import { fakeOptions, modelOptions, noModel, noVision, projectorPath } from "./support/helper.mjs";

const folder = suiteFolder(process.argv[2]);
if (folder === null) {
  console.error("usage: node tests/js/compliance.mjs FOLDER (or FM_COMPLIANCE_SUITE): a checkout of the suite");
  process.exit(64);
}
// Sometimes a small model does not stop, and the cases wait for each other.
const seeing = noVision() === null ? { mmproj: projectorPath } : {};
const shortEnv = { ...modelOptions.env, FM_ENGINE_LLAMA_CTX: "1024" };
const target = mkdtempSync(join(tmpdir(), "fm-compliance-"));
try {
  const suite = loadSuite(folder, target);
  for (const [engine, options] of [
    ["fake engine", { ...fakeOptions, env: callingEnv, mmproj: "/fake" }],
    ["real model", noModel() === null ? { ...modelOptions, env: shortEnv, ...seeing } : null],
  ]) {
    console.log(`\n${engine}${options === null ? `: left out, ${noModel()}` : ""}`);
    if (options === null) continue;
    const client = createClient(options);
    for (const { id, status, duration, errors } of await runSuite(suite, client))
      console.log(
        `  ${status.padEnd(8)}${String(duration).padStart(6)} ms  ${id}  ${(errors ?? []).join("; ").slice(0, 300)}`,
      );
    await client.close();
  }
} finally {
  rmSync(target, { recursive: true, force: true });
}
