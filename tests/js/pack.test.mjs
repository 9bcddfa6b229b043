// packaging/npm/pack.mjs on a small checkout, with a cmake that installs what a test specifies.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { root, temporaryFolder } from "./support/helper.mjs";
import { program } from "./support/macho.mjs";

const BOTH = ["fm-proxy", "fm-engine-llama"];
const APPLE = ["Frameworks/libFoundationModels.dylib", "Resources/FoundationModels-LICENSE.md"];

/**
 * Packs builds that have both programs: by default one for Windows. Only `installed` is put into the package. Before that,
 * `spoil` gets the folder that has all files.
 */
function pack(t, { builds = ["windows"], installed = BOTH, told = "1.2.3", options = [], spoil = () => {} } = {}) {
  const folder = temporaryFolder(t);
  const bin = join(folder, "tools");
  for (const path of [bin, join(folder, "js-shim")]) mkdirSync(path, { recursive: true });
  cpSync(join(root, "packaging", "npm"), join(folder, "packaging", "npm"), { recursive: true });
  writeFileSync(join(folder, "js-shim", "package.json"), JSON.stringify({ name: "fm-proxy", version: "1.2.3" }));
  const packaging = ["packaging/arguments.mjs", "packaging/pins"];
  for (const path of ["LICENSE", "THIRD-PARTY-NOTICES", ...packaging, "helper/engine/guide/guidance/Cargo.lock"]) {
    cpSync(join(root, path), join(folder, path));
  }
  for (const build of builds) makeBuild(join(folder, "build", build));
  const tools = {
    cmake: `case $2 in */windows) end=.exe ;; *) end= ;; esac
      mkdir -p "$4/bin"
      for name in ${installed.join(" ")}; do
        printf '#!/bin/sh\necho ${told}\n' >"$4/bin/$name$end"
        chmod +x "$4/bin/$name$end"
      done`,
    "x86_64-w64-mingw32-objdump": "",
    readelf: "",
    wine: `echo "$WINEPREFIX" >"${folder}/prefix"; echo 'fm-proxy ${told}'`,
    "qemu-aarch64": "echo 1.2.3",
    "pkg-config": 'echo "of-$2"',
    "dpkg-query": 'for last; do :; done; printf "of-$last"',
  };
  for (const [name, code] of Object.entries(tools)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${code}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  spoil(folder);
  const env = { PATH: `${bin}:${process.env.PATH}`, HOME: folder };
  const script = join(folder, "packaging", "npm", "pack.mjs");
  // Other users can't read new files of this user.
  const before = process.umask(0o077);
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...options], { env, encoding: "utf8" });
  process.umask(before);
  return { status, stdout, stderr, folder };
}

/** A build folder with the programs, and on macOS with the app, as a Mac returns it. */
function makeBuild(folder) {
  mkdirSync(join(folder, "bin"), { recursive: true });
  const suffix = folder.endsWith("windows") ? ".exe" : "";
  const isMacos = folder.endsWith("macos");
  for (const name of [...BOTH, ...(isMacos ? ["fm-engine-apple"] : [])]) writeFileSync(join(folder, "bin", name + suffix), "");
  if (!isMacos) return;
  const put = (path, bytes) => {
    const file = join(folder, "app", "fm-proxy.app", "Contents", path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, bytes);
  };
  for (const name of [...BOTH, "fm-engine-apple"]) put(`MacOS/${name}`, program());
  put("Info.plist", "<key>CFBundleShortVersionString</key><string>1.2.3</string>");
  put("_CodeSignature/CodeResources", "");
  put(APPLE[0], program({ floor: 26 << 16 }));
  put(APPLE[1], "Apache License");
}

test("--help prints the usage, and so does a mistake: nothing is packed", (t) => {
  const mistakes = [["--al"], ["all"], ["--only", "linux-riscv64"]].map((options) => [options, 2, "stderr"]);
  for (const [options, status, usage] of [[["--help"], 0, "stdout"], ...mistakes]) {
    const packed = pack(t, { options });
    assert.equal(packed.status, status);
    assert.match(packed[usage], /^(.+\n)?usage: node packaging\/npm\/pack\.mjs (\[--[a-z]+( [A-Z]+)?\](\.{3})? ?){3}\n$/);
    assert.ok(!existsSync(join(packed.folder, "build", "npm")));
  }
});

test("a package that the build puts no engine into is refused", (t) => {
  const { status, stderr, folder } = pack(t, { installed: ["fm-proxy"] });
  assert.equal(status, 1);
  assert.equal(stderr, "pack: @fm-proxy/win32-x64 lacks bin/fm-engine-llama.exe. Run `sh packaging/windows.sh` first\n");
  assert.ok(!existsSync(join(folder, "prefix")));
});

test("so is a helper of another version; wine works in the build's folder, not in the user's", (t) => {
  const { status, stderr, folder } = pack(t, { told: "9.9.9" });
  assert.equal(status, 1);
  assert.equal(stderr, 'pack: the helper is "fm-proxy 9.9.9", js-shim/package.json says 1.2.3\n');
  assert.equal(readFileSync(join(folder, "prefix"), "utf8"), `${join(folder, "build", "windows", "wine")}\n`);
});

test("the bill of materials has the runtime that gcc links into programs for Windows", (t) => {
  const { status, stderr, folder } = pack(t);
  assert.equal(status, 0, stderr);
  const { components } = JSON.parse(readFileSync(join(folder, "build", "npm", "win32-x64", "sbom.cdx.json"), "utf8"));
  const purls = components.map(({ purl }) => purl);
  for (const name of ["mingw-w64-x86-64-dev", "gcc-mingw-w64-x86-64-posix", "g++-mingw-w64-x86-64-posix"]) {
    assert.ok(purls.includes(`pkg:deb/debian/${encodeURIComponent(name)}@of-${encodeURIComponent(name)}`), name);
  }
  assert.deepEqual(purls.filter((purl) => /llama-cpp|sqlite|json-c/.test(purl)).map((purl) => purl.replace(/@[^@]*$/, "")), [
    "pkg:npm/node-llama-cpp", "pkg:generic/json-c", "pkg:generic/sqlite3",
  ]);
});

test("each user can read what is packed, and run the programs", (t) => {
  const { status, stderr, folder } = pack(t);
  assert.equal(status, 0, stderr);
  for (const [name, programs] of [["fm-proxy-1.2.3.tgz", 0], ["fm-proxy-win32-x64-1.2.3.tgz", 2]]) {
    const { stdout } = spawnSync("tar", ["-tvzf", join(folder, "build", "npm", name)], { encoding: "utf8" });
    const modes = stdout.trim().split("\n").map((line) => line.slice(0, 10));
    assert.deepEqual(modes.filter((mode) => mode !== "-rw-r--r--"), Array(programs).fill("-rwxr-xr-x"), stdout);
  }
});

const ALL = { builds: [".", "arm64", "windows", "macos"], options: ["--all"] };
const inApp = (folder, path) => join(folder, "build", "macos", "app", "fm-proxy.app", "Contents", path);

test("an app with Apple's library and its licence is packed with them", (t) => {
  const { status, stdout, stderr, folder } = pack(t, { builds: ["macos"] });
  assert.equal(status, 0, stderr);
  assert.doesNotMatch(stdout, /not for a release/);
  const { files } = JSON.parse(readFileSync(join(folder, "build", "npm", "darwin-arm64", "manifest.json"), "utf8"));
  const paths = files.map(({ path }) => path);
  for (const path of APPLE) assert.ok(paths.includes(`fm-proxy.app/Contents/${path}`), path);
  const { components } = JSON.parse(readFileSync(join(folder, "build", "npm", "darwin-arm64", "sbom.cdx.json"), "utf8"));
  assert.ok(components.some(({ purl }) => purl === "pkg:github/apple/python-apple-fm-sdk@0.2.1"));
});

for (const path of APPLE) {
  test(`a release without ${path} is refused`, (t) => {
    const { status, stderr } = pack(t, { ...ALL, spoil: (folder) => rmSync(inApp(folder, path)) });
    assert.equal(status, 1);
    assert.match(stderr, /^pack: @fm-proxy\/darwin-arm64 lacks .*\. Make Apple's library on a Mac \(docs\/apple\.md\), run `FM/);
    assert.ok(stderr.includes(` ${path} `), stderr);
  });
}

test("without --all, an app without Apple's library can be tried, which is said", (t) => {
  const spoil = (folder) => rmSync(inApp(folder, APPLE[0]));
  const { status, stdout, stderr } = pack(t, { builds: ["macos"], spoil });
  assert.equal(status, 0, stderr);
  assert.match(stdout, /Apple's own model can't answer: it is not for a release$/m);
});

const made = (folder) => readdirSync(join(folder, "build", "npm")).sort();
const putOld = (folder, ...names) => {
  mkdirSync(join(folder, "build", "npm"), { recursive: true });
  for (const name of names) writeFileSync(join(folder, "build", "npm", name), "old");
};
const WINDOWS = ["fm-proxy-1.2.3.tgz", "fm-proxy-win32-x64-1.2.3.tgz", "main", "win32-x64"];

test("what was written, and the command that installs it", (t) => {
  const { stdout, folder } = pack(t);
  const out = join(folder, "build", "npm");
  const size = "0\\.\\d MB, installed 0\\.\\d MB";
  assert.match(stdout, new RegExp(`^${out} has:\n  fm-proxy-win32-x64-1.2.3.tgz, ${size}\n  fm-proxy-1.2.3.tgz, ${size}\n`));
  const command = `npm install ${join(out, "fm-proxy-1.2.3.tgz")} ${join(out, "fm-proxy-win32-x64-1.2.3.tgz")}`;
  assert.ok(stdout.endsWith(`To try them, run in an application's folder: ${command}\n`), stdout);
});

test("what was packed before stays until all is packed, then it goes; what is not ours stays", (t) => {
  const old = ["fm-proxy-1.2.3.tgz", "fm-proxy-1.2.2.tgz", "fm-proxy-linux-x64-1.2.2.tgz", "SHA256SUMS", "a note"];
  const spoil = (folder) => putOld(folder, ...old);
  const failed = pack(t, { spoil, told: "9.9.9" });
  assert.equal(failed.status, 1);
  assert.deepEqual(made(failed.folder), old.sort());
  assert.ok(!existsSync(join(failed.folder, "build", "npm.new")));
  const { status, stderr, folder } = pack(t, { spoil });
  assert.equal(status, 0, stderr);
  assert.deepEqual(made(folder), ["a note", ...WINDOWS].sort());
  assert.notEqual(readFileSync(join(folder, "build", "npm", "fm-proxy-1.2.3.tgz"), "latin1"), "old");
});

test("--only: one platform, which the main package names; packages of others stay, sums of other bytes don't", (t) => {
  const spoil = (folder) => putOld(folder, "fm-proxy-linux-x64-1.2.3.tgz", "SHA256SUMS", "SHA256SUMS.sig", "NOTES.md");
  const { status, stderr, folder } = pack(t, { builds: ["arm64", "windows"], options: ["--only", "win32-x64"], spoil });
  assert.equal(status, 0, stderr);
  assert.deepEqual(made(folder), ["fm-proxy-linux-x64-1.2.3.tgz", ...WINDOWS].sort());
  const { optionalDependencies } = JSON.parse(readFileSync(join(folder, "build", "npm", "main", "package.json"), "utf8"));
  assert.deepEqual(optionalDependencies, { "@fm-proxy/win32-x64": "1.2.3" });
});

test("--only of a platform that was not built is refused", (t) => {
  const { status, stderr } = pack(t, { options: ["--only", "darwin-arm64"] });
  assert.equal(status, 1);
  assert.match(stderr, /^pack: @fm-proxy\/darwin-arm64 lacks .*Run `sh packaging\/macos\.sh` first$/m);
});

test("a platform's package shows where it is from, as the main one does", (t) => {
  const from = {
    repository: { type: "git", url: "git+https://example.org/a/b.git", directory: "js-shim" },
    homepage: "https://example.org/a/b",
    bugs: { url: "https://example.org/a/b/issues" },
    keywords: ["llm"],
  };
  const spoil = (folder) =>
    writeFileSync(join(folder, "js-shim", "package.json"), JSON.stringify({ name: "fm-proxy", version: "1.2.3", ...from }));
  const { status, stderr, folder } = pack(t, { spoil });
  assert.equal(status, 0, stderr);
  const read = (name) => JSON.parse(readFileSync(join(folder, "build", "npm", name, "package.json"), "utf8"));
  const { directory: _, ...repository } = from.repository;
  for (const [field, value] of Object.entries({ ...from, repository })) assert.deepEqual(read("win32-x64")[field], value, field);
});

test("a release whose app is not signed is refused", (t) => {
  const spoil = (folder) => rmSync(inApp(folder, "_CodeSignature"), { recursive: true });
  const { status, stderr } = pack(t, { ...ALL, spoil });
  assert.equal(status, 1);
  assert.match(stderr, /darwin-arm64 is not signed\. Sign /);
});

test("an app without the engine for Apple's model is refused", (t) => {
  const { status, stderr } = pack(t, { builds: ["macos"], spoil: (folder) => rmSync(inApp(folder, "MacOS/fm-engine-apple")) });
  assert.equal(status, 1);
  assert.match(stderr, /lacks fm-proxy\.app\/Contents\/MacOS\/fm-engine-apple\. Run `sh packaging\/macos\.sh` first/);
});
