// Where the client looks for the helper, and the environment that the helper gets.
import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { helperEnvironment } from "../../js-shim/dist/esm/environment.js";
import { inPackage, locateGpuLibrary, locateHelper, platformPackage, unpacked } from "../../js-shim/dist/esm/locate.js";
import { temporaryFolder } from "./support/helper.mjs";

const noGpu = process.platform === "linux" && process.arch === "x64" ? false : "there is no GPU's library for this platform";

const nothing = () => {
  throw new Error("not installed");
};

test("a name without a folder is looked for in PATH: the first program, else what lost its permission", (t) => {
  const folder = temporaryFolder(t);
  const [dir, lost, runs] = ["dir", "lost", "runs"].map((name) => join(folder, name));
  for (const each of [join(dir, "fm-proxy"), lost, runs]) mkdirSync(each, { recursive: true });
  writeFileSync(join(lost, "fm-proxy"), "", { mode: 0o644 });
  writeFileSync(join(runs, "fm-proxy"), "", { mode: 0o755 });
  const find = (...folders) => locateHelper({ option: "fm-proxy", path: folders.join(":") }).executablePath;
  assert.equal(find("/nowhere", dir, lost, runs), join(runs, "fm-proxy"));
  assert.equal(find("/nowhere", dir, lost), join(lost, "fm-proxy"));
  for (const folders of [[], [dir], ["."]]) assert.equal(find(...folders), "fm-proxy");
});

test("the helper is looked for in order: option, environment, platform package, build folder", (t) => {
  const root = temporaryFolder(t);
  const packageRoot = join(root, "js-shim");
  const env = { FM_PROXY_PATH: "/from/env" };
  const resolve = (name) => {
    assert.equal(name, `${platformPackage()}/package.json`);
    return "/modules/platform/package.json";
  };
  const hostFolders = [join(root, "host")];
  const find = (options) => locateHelper({ packageRoot, hostFolders, env: {}, option: undefined, ...options });
  const found = { type: "cli", executablePath: "/given", origin: "the option helperPath" };
  assert.deepEqual(find({ option: "/given", env, resolve }), found);
  assert.equal(find({ env, resolve }).executablePath, "/from/env");
  const installed = find({ option: "", env: { FM_PROXY_PATH: "" }, resolve });
  assert.equal(installed.executablePath, "/modules/platform/bin/fm-proxy");
  assert.equal(installed.packagePath, "/modules/platform");
  const beside = join(root, "host", "node_modules", platformPackage());
  const built = join(root, "build", "bin", "fm-proxy");
  mkdirSync(join(root, "build", "bin"), { recursive: true });
  writeFileSync(built, "");
  assert.throws(
    () => find({ resolve: nothing }),
    (error) => {
      assert.equal(error.code, "SPAWN_FAILED");
      const places = ["helperPath", "FM_PROXY_PATH", platformPackage(), beside];
      for (const place of places) assert.ok(error.detail.includes(place), place);
      assert.equal(error.tried.length, 6);
      assert.ok(!error.detail.includes(built), "a build folder of a project that is not ours");
      return true;
    },
  );
  mkdirSync(join(root, "protocol"));
  for (const name of ["CMakeLists.txt", "protocol/PROTOCOL.md"]) writeFileSync(join(root, name), "");
  assert.equal(find({ resolve: nothing }).executablePath, built);
  rmSync(built);
  assert.throws(() => find({ resolve: nothing }), { message: /Build it: run `sh packaging\/setup\.sh` in / });
  mkdirSync(beside, { recursive: true });
  writeFileSync(join(beside, "package.json"), "{}");
  assert.equal(find({ resolve: nothing }).executablePath, join(beside, "bin", "fm-proxy"));
});

test("the GPU's library: where Node finds its package, else beside the host", { skip: noGpu }, (t) => {
  const root = temporaryFolder(t);
  const name = "@node-llama-cpp/linux-x64-vulkan";
  const installed = join(root, "modules", name);
  const beside = join(root, "host", "node_modules", name);
  const hostFolders = [join(root, "host")];
  const resolve = (asked) => {
    assert.equal(asked, name, "its package exports nothing else");
    return join(installed, "dist", "index.js");
  };
  assert.equal(locateGpuLibrary({ resolve, hostFolders }), null, "there is no such folder");
  mkdirSync(join(beside, "bins", "linux-x64-vulkan"), { recursive: true });
  assert.equal(locateGpuLibrary({ resolve: nothing, hostFolders }), join(beside, "bins", "linux-x64-vulkan"));
  mkdirSync(join(installed, "bins", "linux-x64-vulkan"), { recursive: true });
  assert.equal(locateGpuLibrary({ resolve, hostFolders }), join(installed, "bins", "linux-x64-vulkan"));
});

test("an app bundle: in the platform's package, or named", (t) => {
  const folder = temporaryFolder(t);
  const executable = join(folder, "fm-proxy.app", "Contents", "MacOS", "fm-proxy");
  mkdirSync(join(folder, "fm-proxy.app"));
  const bundle = { type: "app-bundle", executablePath: executable, appBundlePath: join(folder, "fm-proxy.app") };
  assert.deepEqual(inPackage(folder, "x"), { ...bundle, packagePath: folder, origin: "x" });
  const named = locateHelper({ option: join(folder, "fm-proxy.app") });
  assert.deepEqual(named, { ...bundle, origin: "the option helperPath" });
});

test("a program in an Electron archive is looked for beside it, where it was unpacked", (t) => {
  const folder = temporaryFolder(t);
  for (const archive of ["app.asar", "other.asar"]) {
    const beside = join(folder, `${archive}.unpacked`, "node_modules", "x");
    mkdirSync(beside, { recursive: true });
    assert.equal(unpacked(join(folder, archive, "node_modules", "x")), beside);
    assert.equal(unpacked(beside), beside);
    assert.equal(unpacked(join(folder, archive, "node_modules", "y")), join(folder, archive, "node_modules", "y"));
  }
  assert.equal(unpacked(join(folder, "app.asarx", "x")), join(folder, "app.asarx", "x"));
});

test("J19: the environment is an allow-list, and the caller's own additions", () => {
  const host = {
    PATH: "p",
    HOME: "h",
    LANG: "l",
    LC_ALL: "a",
    TZ: "z",
    TMPDIR: "t",
    FM_PROXY_MODEL: "m",
    SystemRoot: "s",
    OPENAI_API_KEY: "secret",
    AWS_SECRET_ACCESS_KEY: "secret",
    NODE_OPTIONS: "--x",
    LD_PRELOAD: "x",
    DYLD_INSERT_LIBRARIES: "x",
    GITHUB_TOKEN: "secret",
    npm_config_token: "secret",
    UNSET: undefined,
  };
  assert.deepEqual(helperEnvironment(host, { EXTRA: "1" }), {
    PATH: "p",
    HOME: "h",
    LANG: "l",
    LC_ALL: "a",
    TZ: "z",
    TMPDIR: "t",
    FM_PROXY_MODEL: "m",
    SystemRoot: "s",
    EXTRA: "1",
  });
});

test("no package is named that does not exist; on an Intel Mac the error says so", (t) => {
  const { platform, arch } = process;
  const pretend = (os, cpu) => Object.defineProperties(process, { platform: { value: os }, arch: { value: cpu } });
  t.after(() => pretend(platform, arch));
  const find = (option) =>
    locateHelper({ option, env: {}, resolve: nothing, packageRoot: temporaryFolder(t), hostFolders: [] });
  for (const [os, cpu, reasonCode, detail] of [
    ["darwin", "arm64", undefined, /Install the package @fm-proxy\/darwin-arm64, or/],
    ["darwin", "x64", "UNSUPPORTED_HARDWARE", /no package .*-x64\. On Apple silicon, use Node for arm64; .*helperPath/],
    ["win32", "arm64", undefined, /There is no package @fm-proxy\/win32-arm64\. Build the program/],
  ]) {
    pretend(os, cpu);
    assert.throws(() => find(), { code: "SPAWN_FAILED", reasonCode, detail });
    assert.equal(find("/mine").executablePath, "/mine");
  }
});

test("on Windows the program's name ends with .exe", async (t) => {
  const { platform } = process;
  t.after(() => Object.defineProperty(process, "platform", { value: platform }));
  Object.defineProperty(process, "platform", { value: "win32" });
  const there = await import("../../js-shim/dist/esm/locate.js?win32");
  const found = there.locateHelper({ option: undefined, env: {}, resolve: (name) => `/modules/${name}`, hostFolders: [] });
  const folder = `/modules/@fm-proxy/win32-${process.arch}`;
  assert.equal(found.packagePath, folder);
  assert.equal(found.executablePath, `${folder}/bin/fm-proxy.exe`);
});
