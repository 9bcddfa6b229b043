// packaging/npm/sums.mjs: the checksums of all files of a release, signed with a test key, and checked as by a user.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { root, temporaryFolder } from "./support/helper.mjs";

const noKeys = spawnSync("ssh-keygen", ["-Y", "sign"]).error === undefined ? false : "there is no ssh-keygen (openssh-client)";

/** A checkout with the files of release 1.2.3, and of an earlier one. */
function checkout(t) {
  const folder = temporaryFolder(t);
  const put = (path, text) => {
    mkdirSync(join(folder, path, ".."), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  put("js-shim/package.json", JSON.stringify({ version: "1.2.3" }));
  const optionalDependencies = { "@fm-proxy/linux-x64": "1.2.3" };
  put("build/npm/main/package.json", JSON.stringify({ name: "fm-proxy", version: "1.2.3", optionalDependencies }));
  put("build/npm/fm-proxy-linux-x64-1.2.3.tgz", "b");
  put("build/npm/fm-proxy-linux-arm64-1.2.3.tgz", "that this main package does not name");
  put("build/npm/fm-proxy-1.2.3.tgz", "a");
  put("build/npm/fm-proxy-11.2.3.tgz", "of another release");
  put("build/vscode/fm-proxy-linux-x64-1.2.3.vsix", "c");
  put("build/vscode/fm-proxy-1.2.2.vsix", "of another release");
  put("build/deb/fm-proxy_1.2.3_amd64.deb", "d");
  put("build/deb/fm-proxy_1.2.2_amd64.deb", "of another release");
  put("packaging/npm/release-signers", "# nobody\n");
  for (const name of ["sums.mjs", "tarballs.mjs"]) {
    copyFileSync(join(root, "packaging", "npm", name), join(folder, "packaging", "npm", name));
  }
  const run = (...words) => spawnSync(process.execPath, ["packaging/npm/sums.mjs", ...words], { cwd: folder, encoding: "utf8" });
  return { folder, put, run, made: join(folder, "build", "npm") };
}

/** Makes a key and its line for the list of signers. */
function makeKey(folder, name) {
  const key = join(folder, name);
  assert.equal(spawnSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", key]).status, 0);
  return { key, line: `${name}@example.org namespaces="file" ${readFileSync(`${key}.pub`, "utf8")}` };
}

test("each file of the release is in the sums, and no other", (t) => {
  const { run, made, folder } = checkout(t);
  const { status, stdout, stderr } = run();
  assert.equal(status, 0, stderr);
  const sums = readFileSync(join(made, "SHA256SUMS"), "utf8");
  assert.equal(stdout, `${sums}build/npm has SHA256SUMS, without a signature\n`);
  const others = { vscode: "fm-proxy-linux-x64-1.2.3.vsix", deb: "fm-proxy_1.2.3_amd64.deb" };
  const tarballs = ["fm-proxy-1.2.3.tgz", "fm-proxy-linux-x64-1.2.3.tgz"];
  assert.deepEqual(sums.match(/\S+$/gm), [...tarballs, ...Object.values(others)]);
  // A user has all files in one folder.
  for (const [part, name] of Object.entries(others)) copyFileSync(join(folder, "build", part, name), join(made, name));
  const checked = spawnSync("sha256sum", ["--check", "--quiet", "SHA256SUMS"], { cwd: made, encoding: "utf8" });
  assert.deepEqual([checked.status, checked.stdout], [0, ""]);
});

test("a signature of a maintainer's key, which a user can check; not of changed sums", { skip: noKeys }, (t) => {
  const { folder, put, run, made } = checkout(t);
  const { key, line } = makeKey(folder, "ann");
  put("packaging/npm/release-signers", `# the maintainers\n${makeKey(folder, "bob").line}${line}`);
  const { status, stdout, stderr } = run("--sign", key);
  assert.equal(status, 0, stderr);
  assert.match(stdout, /^signed by ann@example\.org$/m);
  const words = ["-Y", "verify", "-n", "file", "-I", "ann@example.org", "-s", "SHA256SUMS.sig"];
  const check = (input) =>
    spawnSync("ssh-keygen", [...words, "-f", join(folder, "packaging", "npm", "release-signers")], { cwd: made, input }).status;
  const sums = readFileSync(join(made, "SHA256SUMS"), "utf8");
  assert.equal(check(sums), 0);
  assert.notEqual(check(sums.replace(/^./, (digit) => (digit === "0" ? "1" : "0"))), 0);
  // The old signature does not stay beside new sums.
  assert.equal(run().status, 0);
  assert.ok(!existsSync(join(made, "SHA256SUMS.sig")));
});

test("a key that is not among the signers: no signature, and what to do", { skip: noKeys }, (t) => {
  const { folder, put, run, made } = checkout(t);
  const { key } = makeKey(folder, "eve");
  for (const signers of ["# nobody\n", makeKey(folder, "ann").line, readLineFor(folder, "eve", "git")]) {
    put("packaging/npm/release-signers", signers);
    const { status, stderr } = run("--sign", key);
    assert.equal(status, 1);
    assert.match(stderr, /release-signers does not have the key .*eve.*Add a line.*namespaces="file"/);
    assert.ok(!existsSync(join(made, "SHA256SUMS.sig")));
  }
  const { status, stderr } = run("--sign", join(folder, "nobody"));
  assert.equal(status, 1);
  assert.match(stderr, /^sums: /m);
});

/** The line of a key that may only sign something else. */
function readLineFor(folder, name, namespace) {
  return `${name}@example.org namespaces="${namespace}" ${readFileSync(join(folder, `${name}.pub`), "utf8")}`;
}

test("without a tarball: what to do", (t) => {
  const { put, run } = checkout(t);
  put("js-shim/package.json", JSON.stringify({ version: "3.0.0" }));
  const { status, stderr } = run();
  assert.equal(status, 1);
  assert.match(stderr, /has no packages of 3\.0\.0\. Run `node packaging\/npm\/release\.mjs` first/);
});
