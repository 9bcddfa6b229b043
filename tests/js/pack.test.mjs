// packaging/npm/pack.mjs on a small checkout, with a cmake that installs what a test says.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { root, temporaryFolder } from "./support/helper.mjs";

/** Packs a build for Windows that has both programs, of which `installed` is put into the package. */
function pack(t, installed, told = "9.9.9") {
  const folder = temporaryFolder(t);
  const bin = join(folder, "tools");
  const built = join(folder, "build", "windows", "bin");
  for (const path of [bin, built, join(folder, "js-shim")]) mkdirSync(path, { recursive: true });
  cpSync(join(root, "packaging", "npm"), join(folder, "packaging", "npm"), { recursive: true });
  writeFileSync(join(folder, "js-shim", "package.json"), JSON.stringify({ name: "fm-proxy", version: "1.2.3" }));
  for (const path of ["LICENSE", "THIRD-PARTY-NOTICES", "packaging/pins", "helper/engine/guide/guidance/Cargo.lock"]) {
    cpSync(join(root, path), join(folder, path));
  }
  for (const name of ["fm-proxy.exe", "fm-engine-llama.exe"]) writeFileSync(join(built, name), "");
  const tools = {
    cmake: `mkdir -p "$4/bin"; for name in ${installed.join(" ")}; do echo x >"$4/bin/$name"; done`,
    "x86_64-w64-mingw32-objdump": "",
    wine: `echo "$WINEPREFIX" >"${folder}/prefix"; echo 'fm-proxy ${told}'`,
    "pkg-config": 'echo "of-$2"',
    "dpkg-query": 'for last; do :; done; printf "of-$last"',
  };
  for (const [name, code] of Object.entries(tools)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${code}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  const env = { PATH: `${bin}:${process.env.PATH}`, HOME: folder };
  const script = join(folder, "packaging", "npm", "pack.mjs");
  const { status, stderr } = spawnSync(process.execPath, [script], { env, encoding: "utf8" });
  return { status, stderr, folder };
}

test("a package that the build puts no engine into is refused", (t) => {
  const { status, stderr, folder } = pack(t, ["fm-proxy.exe"]);
  assert.equal(status, 1);
  assert.equal(stderr, "pack: @fm-proxy/win32-x64 lacks bin/fm-engine-llama.exe. Run `sh packaging/windows.sh` first\n");
  assert.ok(!existsSync(join(folder, "prefix")));
});

test("so is a helper of another version; wine works in the build's folder, not in the user's", (t) => {
  const { status, stderr, folder } = pack(t, ["fm-proxy.exe", "fm-engine-llama.exe"]);
  assert.equal(status, 1);
  assert.equal(stderr, 'pack: the helper is "fm-proxy 9.9.9", js-shim/package.json says 1.2.3\n');
  assert.equal(readFileSync(join(folder, "prefix"), "utf8"), `${join(folder, "build", "windows", "wine")}\n`);
});

test("the bill of materials has the runtime that gcc links into programs for Windows", (t) => {
  const { status, stderr, folder } = pack(t, ["fm-proxy.exe", "fm-engine-llama.exe"], "1.2.3");
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
