// packaging/npm/macho.mjs on made-up programs, and on those of packaging/macos.sh if that has run.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { checkMachO, faultsOf, isMachO } from "../../packaging/npm/macho.mjs";
import { root, temporaryFolder } from "./support/helper.mjs";
import { program, SYSTEM } from "./support/macho.mjs";

const PATH = "/a/fm-proxy.app/Contents/MacOS/fm-engine-llama";

const faults = (options, has = () => false) => faultsOf(PATH, program(options), has);

test("a program with libraries of macOS and of the package has no fault", () => {
  const framework = "/System/Library/Frameworks/Accelerate.framework/Versions/A/Accelerate";
  const libraries = [SYSTEM, "/usr/lib/libc++.1.dylib", framework, "@rpath/libllama.dylib"];
  const has = (path) => path === "/a/fm-proxy.app/Contents/Frameworks/libllama.dylib";
  assert.deepEqual(faults({ libraries, rpaths: ["@loader_path/../Frameworks"] }, has), []);
});

test("Apple's C bindings may need macOS 26, and Swift", () => {
  const bytes = program({ floor: 26 << 16, libraries: [SYSTEM, "/usr/lib/swift/libswiftCore.dylib"] });
  assert.deepEqual(faultsOf("/a/Frameworks/libFoundationModels.dylib", bytes, () => false), []);
  assert.equal(faultsOf("/a/Frameworks/libother.dylib", bytes, () => false).length, 1);
});

for (const [name, options, fault] of [
  ["another processor", { cpu: 0x01000007 }, /^is not for arm64$/],
  ["another system", { platform: 2 }, /^is not for macOS$/],
  ["a later macOS", { floor: (15 << 16) | (3 << 8) }, /^needs macOS 15\.3; the package promises 14\.0$/],
  ["a later SDK", { sdk: 27 << 16 }, /^is built with the SDK of macOS 27; Apple's C bindings/],
  ["no signature", { signed: false }, /^has no signature/],
  ["a folder of the build machine", { rpaths: ["/build/lib"] }, /^looks for libraries in \/build\/lib$/],
  ["an absolute path", { libraries: ["/opt/homebrew/lib/libjson-c.5.dylib"] }, /^needs \/opt.*, which is neither macOS's/],
  ["a library that is not there", { libraries: ["@rpath/libllama.dylib"], rpaths: ["@loader_path"] }, /^needs @rpath\/libllama/],
]) {
  test(`${name} is a fault, and the only one`, () => {
    const found = faults(options);
    assert.equal(found.length, 1, found.join("; "));
    assert.match(found[0], fault);
  });
}

test("what is no program is left out, and a damaged one is a fault", (t) => {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, "Info.plist"), "<plist/>");
  writeFileSync(join(folder, "fm-proxy"), program({}));
  assert.equal(checkMachO(folder), 1);
  assert.ok(!isMachO(Buffer.from("#!/bin/sh")));
  const path = join(folder, "libcut.dylib");
  writeFileSync(path, program({}).subarray(0, 50));
  assert.throws(() => checkMachO(folder), { message: `${path} is cut off in its load commands` });
  writeFileSync(path, Buffer.concat([Buffer.from("cafebabe", "hex"), Buffer.alloc(60)]));
  assert.throws(() => checkMachO(folder), { message: `${path} is not for one 64-bit processor` });
});

test("libraries are looked for where the program says", (t) => {
  const contents = join(temporaryFolder(t), "fm-proxy.app", "Contents");
  const file = (path, bytes) => {
    mkdirSync(dirname(join(contents, path)), { recursive: true });
    writeFileSync(join(contents, path), bytes);
  };
  file("MacOS/fm-engine-llama", program({ libraries: ["@rpath/liba.dylib"], rpaths: ["@loader_path/../Frameworks"] }));
  file("MacOS/liba.dylib", program({}));
  assert.throws(() => checkMachO(contents), /fm-engine-llama needs @rpath\/liba\.dylib/);
  file("Frameworks/liba.dylib", program({}));
  assert.equal(checkMachO(contents), 3);
});

test("the app that packaging/macos.sh has built", (t) => {
  const app = join(root, "build", "macos", "app", "fm-proxy.app");
  if (!existsSync(app)) return t.skip("packaging/macos.sh has not run");
  assert.ok(checkMachO(app) >= 2);
});
