// The rehearsal of a release (packaging/npm/rehearse.mjs), only with npm: the packages of this build are published to a
// registry on this machine, and installed from there by a user who knows nothing of the checkout.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { tarballOf } from "../../packaging/npm/tarballs.mjs";
import { rehearseInstalls } from "../../packaging/npm/rehearse.mjs";
import { noModel, root, temporaryFolder } from "./support/helper.mjs";

const skip = noModel() ?? false;
const out = join(temporaryFolder({ after }), "npm");
const release = join(root, "packaging", "npm", "release.mjs");
const { version } = JSON.parse(readFileSync(join(root, "js-shim", "package.json"), "utf8"));

test("installed from a registry: doctor, an answer, and nothing is left of it", { skip }, async () => {
  // This variable would lead to the checkout; it does not reach the user.
  const env = { ...process.env, FM_PROXY_PATH: "/nowhere" };
  const words = [release, "--rehearse", "--managers", "npm", "--out", out];
  const { stdout } = await promisify(execFile)(process.execPath, words, { env });
  const lines = stdout.split("\n").filter((line) => line.startsWith("|"));
  const [head, , ...rows] = lines.map((line) => line.split("|").map((cell) => cell.trim()));
  assert.deepEqual(head.slice(1, -1), ["Installed by", "Node", "Size", "doctor", "Answer", "Uninstall"]);
  assert.equal(rows.length, 1, stdout);
  const [, manager, node, size, doctor, answer, uninstall] = rows[0];
  assert.match(manager, /^npm \d+\.\d+\.\d+$/);
  assert.equal(node, process.versions.node);
  assert.ok(Number.parseFloat(size) > 10 && Number.parseFloat(size) < 43, size);
  assert.deepEqual([doctor, uninstall], ["ok", "nothing left"]);
  assert.ok(answer.length > 10, answer);
  assert.match(stdout, /^publint and attw: nothing found$/m);
  assert.match(stdout, /^rehearsal: 0 failed, 0 left out$/m);
});

test("a platform's package that is not in the registry makes the row fail, with what doctor says", { skip }, async () => {
  const told = [];
  const tarballs = [join(out, tarballOf("fm-proxy", version))];
  const failed = await rehearseInstalls({ tarballs, managers: ["npm"], say: (line) => told.push(line) });
  assert.equal(failed, 1);
  assert.match(told.at(-3), /^\| npm [\d.]+ \| [\d.]+ \| \d\.\d MB \| FAILED \| {2}\| {2}\|$/);
  assert.match(told.at(-2), /^FAILED: npm on Node .*doctor.*No fm-proxy helper was found.*the package @fm-proxy\/linux-x64/s);
});
