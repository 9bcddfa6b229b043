// Where the helper is looked for, the environment that it gets, and the machines that it refuses.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { helperEnvironment } from "../../js-shim/dist/esm/client.js";
import { checkMachine } from "../../js-shim/dist/esm/gate.js";
import { locateHelper, platformPackage, unpacked } from "../../js-shim/dist/esm/locate.js";
import { temporaryFolder } from "./support/helper.mjs";

const nothing = () => {
  throw new Error("not installed");
};

test("the helper is looked for in order: option, environment, platform package, build folder", (t) => {
  const root = temporaryFolder(t);
  const packageRoot = join(root, "js-shim");
  const env = { FM_PROXY_PATH: "/from/env" };
  const resolve = (name) => {
    assert.equal(name, `${platformPackage()}/package.json`);
    return "/modules/platform/package.json";
  };
  assert.equal(locateHelper({ option: "/given", env, resolve, packageRoot }), "/given");
  assert.equal(locateHelper({ option: undefined, env, resolve, packageRoot }), "/from/env");
  assert.equal(
    locateHelper({ option: "", env: { FM_PROXY_PATH: "" }, resolve, packageRoot }),
    "/modules/platform/bin/fm-proxy",
  );
  const built = join(root, "build", "bin", "fm-proxy");
  assert.throws(
    () => locateHelper({ option: undefined, env: {}, resolve: nothing, packageRoot }),
    (error) => {
      assert.equal(error.code, "SPAWN_FAILED");
      for (const place of ["helperPath", "FM_PROXY_PATH", platformPackage(), built])
        assert.ok(error.detail.includes(place));
      return true;
    },
  );
  mkdirSync(join(root, "build", "bin"), { recursive: true });
  writeFileSync(built, "");
  assert.equal(locateHelper({ option: undefined, env: {}, resolve: nothing, packageRoot }), built);
});

test("a program in an Electron archive is looked for beside it", () => {
  assert.equal(unpacked("/a/app.asar/node_modules/x/bin/fm-proxy"), "/a/app.asar.unpacked/node_modules/x/bin/fm-proxy");
  assert.equal(unpacked("/a/app.asar.unpacked/x"), "/a/app.asar.unpacked/x");
  assert.equal(unpacked("/a/app.asarx/x"), "/a/app.asarx/x");
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

test("what the apple engine needs of a machine", () => {
  const check = (platform, arch, release) => checkMachine({ platform, arch, release })?.reason_code ?? null;
  assert.equal(check("linux", "x64", "6.1.0"), "NOT_DARWIN");
  assert.equal(check("win32", "arm64", "10.0"), "NOT_DARWIN");
  assert.equal(check("darwin", "x64", "25.0.0"), "UNSUPPORTED_HARDWARE");
  assert.equal(check("darwin", "arm64", "24.6.0"), "OS_TOO_OLD");
  assert.equal(check("darwin", "arm64", "rubbish"), "OS_TOO_OLD");
  assert.equal(check("darwin", "arm64", "25.0.0"), null);
  assert.equal(check("darwin", "arm64", "26.1.0"), null);
});
