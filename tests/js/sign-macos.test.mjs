// packaging/npm/sign-macos.sh with tools that only record their arguments: Apple's tools exist only on a Mac.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { root, temporaryFolder } from "./support/helper.mjs";

const script = join(root, "packaging", "npm", "sign-macos.sh");
const IDENTITY = "Developer ID Application: O'Neil (A1B2C3)";
const OPTIONS = ["--identity", IDENTITY, "--profile", "release"];
const MACHO = Buffer.from("cffaedfe0c000001", "hex");

/** A folder with a complete app: programs, libraries, and other files. */
function makeApp(t) {
  const folder = temporaryFolder(t);
  const app = join(folder, "with space", "fm-proxy.app");
  for (const name of ["MacOS", "Frameworks", "Resources"]) mkdirSync(join(app, "Contents", name), { recursive: true });
  for (const name of ["MacOS/fm-proxy", "MacOS/fm-engine-llama", "Frameworks/libb.dylib", "Frameworks/liba.dylib"]) {
    writeFileSync(join(app, "Contents", name), MACHO);
  }
  writeFileSync(join(app, "Contents", "Info.plist"), "<plist/>");
  writeFileSync(join(app, "Contents", "Resources", "fm-engine-llama.json"), "{}");
  return { folder, app };
}

/**
 * Runs the script. Each of Apple's tools is replaced by one that records its arguments, and fails if they contain `failing`.
 */
function sign({ folder, app }, { dryRun = false, failing = "nothing" } = {}) {
  const bin = join(folder, "bin");
  const log = join(folder, "log");
  const scratch = join(folder, "tmp");
  for (const path of [bin, scratch]) mkdirSync(path, { recursive: true });
  rmSync(log, { force: true });
  const code = `#!/bin/sh
{ printf '%s' "\${0##*/}"; printf '|%s' "$@"; echo; } >>"$LOG"
case "$*" in *"$FAILING"*) exit 3 ;; esac\n`;
  for (const tool of ["codesign", "ditto", "spctl", "xcrun"]) {
    writeFileSync(join(bin, tool), code);
    chmodSync(join(bin, tool), 0o755);
  }
  const env = { PATH: `${bin}:${process.env.PATH}`, LOG: log, FAILING: failing, TMPDIR: scratch };
  const args = [script, ...(dryRun ? ["--dry-run"] : []), ...OPTIONS, app];
  const { status, stdout, stderr } = spawnSync("sh", args, { env, encoding: "utf8" });
  assert.deepEqual(readdirSync(scratch), []);
  const calls = existsSync(log) ? readFileSync(log, "utf8").trim().split("\n").map((line) => line.split("|")) : [];
  return { status, stdout, stderr, calls };
}

test("parts before the app, then the notary, the ticket and Gatekeeper", (t) => {
  const made = makeApp(t);
  const { status, stderr, calls } = sign(made);
  assert.equal(status, 0, stderr);
  const zip = calls[5].at(-1);
  const contents = join(made.app, "Contents");
  const signing = ["codesign", "--force", "--options", "runtime", "--timestamp", "--sign", IDENTITY];
  assert.deepEqual(calls, [
    [...signing, join(contents, "Frameworks", "liba.dylib")],
    [...signing, join(contents, "Frameworks", "libb.dylib")],
    [...signing, join(contents, "MacOS", "fm-engine-llama")],
    [...signing, made.app],
    ["codesign", "--verify", "--deep", "--strict", "--verbose=2", made.app],
    ["ditto", "-c", "-k", "--keepParent", made.app, zip],
    ["xcrun", "notarytool", "submit", zip, "--keychain-profile", "release", "--wait"],
    ["xcrun", "stapler", "staple", made.app],
    ["xcrun", "stapler", "validate", made.app],
    ["spctl", "--assess", "--type", "execute", "--verbose", made.app],
  ]);
});

test("a dry run prints commands that a shell can run, and runs none", (t) => {
  const made = makeApp(t);
  const { status, stdout, stderr, calls } = sign(made, { dryRun: true });
  assert.equal(status, 0, stderr);
  assert.deepEqual(calls, []);
  const words = (line) => spawnSync("sh", ["-c", `printf '%s|' ${line}`], { encoding: "utf8" }).stdout.split("|").slice(0, -1);
  const printed = stdout.trim().split("\n").map(words);
  const real = sign(made).calls;
  const zip = (word) => word.replace(/^.*\/fm-proxy\.zip$/, "ZIP");
  assert.deepEqual(printed.map((it) => it.map(zip)), real.map((it) => it.map(zip)));
});

for (const failing of ["liba.dylib", "--verify", "notarytool", "staple", "--assess"]) {
  test(`nothing after a failure (${failing})`, (t) => {
    const { status, calls, stderr } = sign(makeApp(t), { failing });
    assert.equal(status, 1);
    assert.ok(calls.at(-1).join(" ").includes(failing), stderr);
    assert.match(stderr, /^sign-macos: .+/m);
  });
}

const REFUSED = {
  "a file beside the programs, whose signature npm would lose": [
    (contents) => writeFileSync(join(contents, "MacOS", "fm-engine-llama.json"), "{}"),
    /fm-engine-llama\.json is no program or library\..*Move it to Contents\/Resources/,
  ],
  "a program that would not be signed": [
    (contents) => writeFileSync(join(contents, "Resources", "tool"), MACHO),
    /tool would not be signed\. Move it to/,
  ],
  "a link, which npm leaves out": [
    (contents) => symlinkSync("liba.dylib", join(contents, "Frameworks", "libc.dylib")),
    /npm packages have no symbolic links.*libc\.dylib/,
  ],
  "no Info.plist": [(contents) => rmSync(join(contents, "Info.plist")), /has no Contents\/Info\.plist/],
};
for (const [what, [spoil, message]] of Object.entries(REFUSED)) {
  test(`refused before anything is signed: ${what}`, (t) => {
    const made = makeApp(t);
    spoil(join(made.app, "Contents"));
    const { status, stderr, calls } = sign(made);
    assert.equal(status, 1);
    assert.match(stderr, message);
    assert.deepEqual(calls, []);
  });
}

test("options that are missing", () => {
  const { status, stderr } = spawnSync("sh", [script, "--identity", "x"], { encoding: "utf8" });
  assert.equal(status, 64);
  assert.match(stderr, /--identity, --profile and the app are needed/);
});
