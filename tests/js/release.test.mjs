// packaging/npm/release.mjs on a small checkout, with an npm that only records its arguments, and a stand-in for pack.mjs:
// what is published, in which order, and what is refused before anything is published.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { root, temporaryFolder } from "./support/helper.mjs";

const PACK = `
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
const version = process.env.VERSION;
const platforms = ["@fm-proxy/linux-x64", "@fm-proxy/win32-x64"];
const optionalDependencies = Object.fromEntries(platforms.map((name) => [name, version]));
mkdirSync("build/npm/main", { recursive: true });
writeFileSync("build/npm/main/package.json", JSON.stringify({ name: "fm-proxy", version, optionalDependencies }));
mkdirSync("build/npm/package", { recursive: true });
for (const name of ["fm-proxy", ...platforms, "@fm-proxy/left-over"]) {
  writeFileSync("build/npm/package/package.json", JSON.stringify({ name, version }));
  const tarball = name.replace("@", "").replace("/", "-") + "-" + version + ".tgz";
  execFileSync("tar", ["-czf", tarball, "package"], { cwd: "build/npm" });
}
console.log("packed with " + process.argv.slice(2).join(" "));
`;
const NPM = `#!/bin/sh
echo "$*" >>"$LOG"
[ "$1" != view ] || echo "$VERSION"
`;

const ORIGIN = { repository: "x", homepage: "x", bugs: "x", keywords: ["x"] };
const PAGE = "npm install fm-proxy\n";

/** A checkout whose changes are committed, or not. */
function release(t, given = {}) {
  const { version = "1.2.3", isCommitted = true, options = [], more = ORIGIN, page = PAGE } = given;
  const { heading = `## ${version}` } = given;
  const folder = temporaryFolder(t);
  for (const path of ["packaging/npm", "js-shim", "bin"]) mkdirSync(join(folder, path), { recursive: true });
  for (const name of ["release.mjs", "publish.mjs", "sums.mjs", "tarballs.mjs"]) {
    copyFileSync(join(root, "packaging", "npm", name), join(folder, "packaging", "npm", name));
  }
  copyFileSync(join(root, "packaging", "arguments.mjs"), join(folder, "packaging", "arguments.mjs"));
  writeFileSync(join(folder, "packaging", "npm", "pack.mjs"), PACK);
  writeFileSync(join(folder, "js-shim", "package.json"), JSON.stringify({ version, ...more }));
  writeFileSync(join(folder, "js-shim", "README.md"), page);
  writeFileSync(join(folder, "CHANGELOG.md"), `# Changes\n\n${heading}\n\nNew things.\n\n## 1.2.2\n\nOld things.\n`);
  writeFileSync(join(folder, ".gitignore"), "/build/\n/log\n");
  writeFileSync(join(folder, "bin", "npm"), NPM);
  chmodSync(join(folder, "bin", "npm"), 0o755);
  const author = ["-c", "user.name=x", "-c", "user.email=x@example.org"];
  const git = (...words) => execFileSync("git", [...author, ...words], { cwd: folder });
  git("init", "-q");
  git("add", ".");
  git("commit", "-qm", "x");
  if (!isCommitted) writeFileSync(join(folder, "new"), "");
  const log = join(folder, "log");
  const env = { PATH: `${join(folder, "bin")}:${process.env.PATH}`, LOG: log, VERSION: version };
  const words = [join(folder, "packaging", "npm", "release.mjs"), ...options];
  const { status, stdout, stderr } = spawnSync(process.execPath, words, { cwd: folder, env, encoding: "utf8" });
  const calls = existsSync(log) ? readFileSync(log, "utf8").replaceAll(`${folder}/`, "").trim().split("\n") : [];
  const made = (name) => readFileSync(join(folder, "build", "npm", name), "utf8");
  return { status, stdout, stderr, calls, made, isPacked: existsSync(join(folder, "build")) };
}

test("without --publish: the files, the commands, and what was left out", (t) => {
  const { status, stdout, stderr, calls, made } = release(t);
  assert.deepEqual([status, stderr, calls], [0, "", []]);
  assert.equal(made("NOTES.md"), "New things.\n");
  assert.deepEqual(made("SHA256SUMS").match(/\S+\.tgz/g), [
    "fm-proxy-1.2.3.tgz", "fm-proxy-linux-x64-1.2.3.tgz", "fm-proxy-win32-x64-1.2.3.tgz",
  ]);
  assert.match(stdout, /^packed with --all$/m);
  assert.deepEqual(stdout.match(/^npm publish.*$/gm), [
    "npm publish --access public build/npm/fm-proxy-linux-x64-1.2.3.tgz",
    "npm publish --access public build/npm/fm-proxy-win32-x64-1.2.3.tgz",
    "npm publish --access public build/npm/fm-proxy-1.2.3.tgz",
  ]);
});

test("--publish: the platforms' packages first, the main one when the registry has them", (t) => {
  const { status, stderr, calls } = release(t, { heading: "## 1.2.3, 2026-01-31", options: ["--publish"] });
  assert.equal(status, 0, stderr);
  assert.deepEqual(calls, [
    "publish --access public build/npm/fm-proxy-linux-x64-1.2.3.tgz",
    "publish --access public build/npm/fm-proxy-win32-x64-1.2.3.tgz",
    "view @fm-proxy/linux-x64@1.2.3 version",
    "view @fm-proxy/win32-x64@1.2.3 version",
    "publish --access public build/npm/fm-proxy-1.2.3.tgz",
  ]);
});

test("--only is passed on: what was not built, or is not for a release, is an error", (t) => {
  const { status, stdout, stderr } = release(t, { options: ["--only", "linux-x64", "--only", "win32-x64"] });
  assert.equal(status, 0, stderr);
  assert.match(stdout, /^packed with --all --only linux-x64 --only win32-x64$/m);
});

test("a version before a release does not become the one that everybody gets", (t) => {
  const { status, stderr, calls } = release(t, { version: "2.0.0-rc.1", options: ["--publish"] });
  assert.equal(status, 0, stderr);
  const published = calls.filter((call) => call.startsWith("publish"));
  assert.equal(published.length, 3);
  for (const call of published) assert.match(call, /^publish --access public --tag next /);
});

for (const [what, more, told] of [
  ["what is not committed", { isCommitted: false }, /there are changes that are not committed/],
  ["a version without a section", { heading: "## 1.2.4" }, /CHANGELOG\.md has no section "## 1\.2\.3"/],
  ["a package that does not say where it is from", { more: {} }, /package\.json has no repository, homepage, bugs, keywords: /],
  ["a page that says there is no package", { page: "It is not in a registry\nyet." }, /README\.md says that there is no package/],
  ["notes that say it is not released", { heading: "## 1.2.3, not released yet" }, /"## 1\.2\.3, not released yet"/],
]) {
  test(`--publish refuses ${what}`, (t) => {
    const { status, stderr, calls, isPacked } = release(t, { ...more, options: ["--publish"] });
    assert.match(stderr, told);
    assert.deepEqual([status, calls, isPacked], [1, [], false]);
  });
}

test("a trial says what --publish would refuse, and goes on", (t) => {
  const { status, stderr, made } = release(t, { more: { keywords: ["x"] } });
  assert.equal(status, 0, stderr);
  assert.match(stderr, /^release: --publish would refuse this: js-shim\/package\.json has no repository, homepage, bugs: /);
  assert.equal(made("NOTES.md"), "New things.\n");
});

test("all parts of a release have the same version", () => {
  const read = (name) => readFileSync(join(root, name), "utf8");
  const { version } = JSON.parse(read("js-shim/package.json"));
  assert.equal(/^project\(fm-proxy VERSION (\S+)/m.exec(read("CMakeLists.txt"))?.[1], version, "CMakeLists.txt");
  for (const name of ["js-shim/package-lock.json", "packaging/vscode/package.json", "packaging/vscode/package-lock.json"]) {
    assert.equal(JSON.parse(read(name)).version, version, name);
  }
});
