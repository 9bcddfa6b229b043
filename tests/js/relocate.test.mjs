// A helper that can't be run where it is installed: it is repaired, or copied whole to a folder of the host.
import assert from "node:assert/strict";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  lutimesSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { test } from "node:test";
import { withAbsolutePaths } from "../../js-shim/dist/esm/check-options.js";
import { inPackage } from "../../js-shim/dist/esm/locate.js";
import { discardCopies, makeRunnable } from "../../js-shim/dist/esm/relocate.js";
import { spawnOptions } from "../../js-shim/dist/esm/start.js";
import { clientFor, fakeOptions, helperPath, snapshot, temporaryFolder } from "./support/helper.mjs";

/** A platform's package; it is read-only unless `writable`. */
function install(t, { mode = 0o644, writable = false } = {}) {
  const folder = join(temporaryFolder(t), "linux-x64");
  mkdirSync(join(folder, "bin", "lib"), { recursive: true });
  writeFileSync(join(folder, "package.json"), "{}");
  writeFileSync(join(folder, "bin", "lib", "libengine.so"), "a library");
  writeFileSync(join(folder, "bin", "fm-proxy"), "#!/bin/sh\n");
  chmodSync(join(folder, "bin", "fm-proxy"), mode);
  if (!writable) chmodSync(join(folder, "bin"), 0o555);
  return inPackage(folder, "the package");
}

const modeOf = (path) => statSync(path).mode & 0o777;

test("a helper that can be run is left where it is, and nothing is written", async (t) => {
  const found = install(t, { mode: 0o755 });
  const storageDir = join(temporaryFolder(t), "storage");
  const before = snapshot(found.packagePath);
  assert.deepEqual(await makeRunnable(found, storageDir), found);
  assert.deepEqual(snapshot(found.packagePath), before);
  assert.equal(existsSync(storageDir), false);
});

test("a permission that was lost is repaired", async (t) => {
  const found = install(t, { writable: true });
  assert.deepEqual(await makeRunnable(found, undefined), found);
  assert.equal(modeOf(found.executablePath), 0o755);
});

test("J9: a read-only installation is not touched; without a folder for a copy the start tells", async (t) => {
  const found = install(t);
  const before = snapshot(found.packagePath);
  assert.deepEqual(await makeRunnable(found, undefined), found);
  assert.deepEqual(snapshot(found.packagePath), before);
});

test("what a process that was killed left of a copy is removed, and what another one is making stays", async (t) => {
  const found = install(t);
  const storageDir = temporaryFolder(t);
  const { packagePath } = await makeRunnable(found, storageDir);
  await discardCopies(storageDir);
  // No process has this number: it is above Linux's highest.
  const left = `${packagePath}.4194305-12345678`;
  const begun = `${packagePath}.${process.ppid}-12345678`;
  for (const folder of [left, begun]) mkdirSync(join(folder, "bin"), { recursive: true });
  await makeRunnable(found, storageDir);
  assert.deepEqual(readdirSync(storageDir).sort(), [basename(packagePath), basename(begun)]);
});

test("with one, the whole package is copied, once", async (t) => {
  const found = install(t);
  const storageDir = join(temporaryFolder(t), "a", "storage folder");
  const before = snapshot(found.packagePath);
  const copy = await makeRunnable(found, storageDir);
  assert.deepEqual(snapshot(found.packagePath), before);
  assert.equal(modeOf(copy.executablePath), 0o755);
  assert.equal(copy.origin, `the package, copied to ${storageDir}`);
  assert.equal(readFileSync(join(copy.packagePath, "bin", "lib", "libengine.so"), "utf8"), "a library");
  const first = snapshot(storageDir);
  assert.deepEqual(await makeRunnable(found, storageDir), copy);
  assert.deepEqual(snapshot(storageDir), first, "copied again");
  assert.equal(readdirSync(storageDir).length, 1);
  await discardCopies(storageDir);
  assert.deepEqual(readdirSync(storageDir), []);
});

test("a broken copy is replaced, and one of another version is not taken", async (t) => {
  const found = install(t);
  const storageDir = temporaryFolder(t);
  const copy = await makeRunnable(found, storageDir);
  truncateSync(join(copy.packagePath, "bin", "lib", "libengine.so"), 3);
  await makeRunnable(found, storageDir);
  assert.equal(readFileSync(join(copy.packagePath, "bin", "lib", "libengine.so"), "utf8"), "a library");
  chmodSync(found.executablePath, 0o644);
  writeFileSync(found.executablePath, "#!/bin/sh\n# newer\n");
  const newer = await makeRunnable(found, storageDir);
  assert.notEqual(newer.packagePath, copy.packagePath);
  assert.match(readFileSync(newer.executablePath, "utf8"), /newer/);
});

const DAY_S = 24 * 3600;
const daysAgo = (days) => Date.now() / 1000 - days * DAY_S;
/** Makes something in a folder that was last used this many days ago. */
function used(path, days, make = (it) => mkdirSync(join(it, "bin"), { recursive: true })) {
  make(path);
  lutimesSync(path, daysAgo(days), daysAgo(days));
  return basename(path);
}

for (const mode of [0o644, 0o755]) {
  const where = mode === 0o755 ? "in place" : "copied";
  test(`copies of other versions go when unused for a month, the helper ${where}`, async (t) => {
    const found = install(t, { mode });
    const [storageDir, outside] = [temporaryFolder(t), temporaryFolder(t)];
    writeFileSync(join(outside, "file"), "the user's");
    const at = (name) => join(storageDir, name);
    used(at("fm-proxy-helper-linux-x64-1111"), 31, (it) => {
      mkdirSync(it);
      symlinkSync(outside, join(it, "bin"));
    });
    used(at("fm-proxy-helper-linux-x64-2222.4194305-12345678"), 31);
    const stay = [
      used(at("fm-proxy-helper-linux-x64-3333"), 29),
      used(at("fm-proxy-helper-linux-x64-4444"), 31, (it) => symlinkSync(outside, it)),
      used(at("fm-proxy-helper-linux-x64-5555"), 31, (it) => writeFileSync(it, "")),
      used(at("another folder"), 31),
    ];
    const { packagePath } = await makeRunnable(found, storageDir);
    const there = [...stay, ...(packagePath === found.packagePath ? [] : [basename(packagePath)])];
    assert.deepEqual(readdirSync(storageDir).sort(), there.sort());
    assert.equal(readFileSync(join(outside, "file"), "utf8"), "the user's");
  });
}

test("a copy that is used again counts from then on", async (t) => {
  const found = install(t);
  const storageDir = temporaryFolder(t);
  const { packagePath } = await makeRunnable(found, storageDir);
  lutimesSync(packagePath, daysAgo(40), daysAgo(40));
  await makeRunnable(found, storageDir);
  assert.ok(statSync(packagePath).mtimeMs / 1000 > daysAgo(1));
});

test("a copy is there as a whole, or not at all", async (t) => {
  const found = install(t, { mode: 0o644, writable: true });
  const folder = join(found.packagePath, "bin", "lib");
  for (let i = 0; i < 100; i++) writeFileSync(join(folder, `file${i}`), "");
  chmodSync(join(found.packagePath, "bin"), 0o555);
  const storageDir = temporaryFolder(t);
  let copy = null;
  const copying = makeRunnable(found, storageDir).then((it) => (copy = it));
  const seen = [];
  while (copy === null) {
    const [name] = readdirSync(storageDir).filter((each) => !each.includes("."));
    const place = join(storageDir, name ?? "none", "bin", "lib");
    if (name !== undefined) seen.push(existsSync(place) ? readdirSync(place).length : 0);
    await new Promise(setImmediate);
  }
  await copying;
  assert.ok(seen.every((count) => count === 101), seen.join());
});

test("eight at once: one whole copy, and nothing else is left", async (t) => {
  const found = install(t);
  const storageDir = temporaryFolder(t);
  const copies = await Promise.all(Array.from({ length: 8 }, () => makeRunnable(found, storageDir)));
  assert.equal(new Set(copies.map(({ packagePath }) => packagePath)).size, 1);
  assert.equal(readdirSync(storageDir).length, 1);
  for (const { executablePath } of copies) assert.equal(modeOf(executablePath), 0o755);
});

test("relative paths of options begin in cwd as it was when the client was made", () => {
  const options = { cwd: "work", storageDir: "copies", modelsDir: "/m", model: "a", helperPath: "bin/fm-proxy", store: "s" };
  const { cwd, storageDir, modelsDir, model, helperPath, store } = withAbsolutePaths(options);
  assert.deepEqual([cwd, storageDir], [resolve("work"), resolve("work", "copies")]);
  assert.deepEqual([modelsDir, model, helperPath, store], ["/m", "a", resolve("bin/fm-proxy"), "s"]);
  assert.equal(withAbsolutePaths({ helperPath: "fm-proxy" }).helperPath, "fm-proxy", "a name is looked up in PATH");
});

test("a folder that can't be written to is named in the error", async (t) => {
  const found = install(t);
  const file = join(temporaryFolder(t), "file");
  writeFileSync(file, "");
  await assert.rejects(makeRunnable(found, file), ({ code, detail }) => code === "SPAWN_FAILED" && detail.includes(file));
});

test("a path that names no program of the system is taken as it is", async (t) => {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, "script"), "#!/bin/sh\n");
  for (const executablePath of ["/nowhere/fm-proxy", join(folder, "script"), folder]) {
    const named = { type: "cli", executablePath, origin: "the option helperPath" };
    assert.deepEqual(await makeRunnable(named, "/nowhere"), named);
  }
  assert.equal(modeOf(join(folder, "script")), 0o644);
});

/** Takes all permissions from a copy of the built helper and fake engine. Returns its location, named in the way `how`. */
function loseAll(t, how) {
  const folder = temporaryFolder(t);
  const bin = how === "an app bundle" ? join(folder, "fm-proxy.app", "Contents", "MacOS") : join(folder, "linux-x64", "bin");
  mkdirSync(bin, { recursive: true });
  for (const name of ["fm-proxy", "fm-engine-fake", "fm-engine-fake.json"])
    copyFileSync(join(dirname(helperPath), name), join(bin, name));
  for (const name of ["fm-proxy", "fm-engine-fake"]) chmodSync(join(bin, name), 0o644);
  const link = join(folder, "link");
  symlinkSync(join(bin, "fm-proxy"), link);
  const origin = "the option helperPath";
  const found = {
    "a package": () => inPackage(join(folder, "linux-x64"), "the package"),
    "a path": () => ({ type: "cli", executablePath: join(bin, "fm-proxy"), origin }),
    "a link": () => ({ type: "cli", executablePath: link, origin }),
    "an app bundle": () => {
      const appBundlePath = join(folder, "fm-proxy.app");
      return { type: "app-bundle", executablePath: join(bin, "fm-proxy"), appBundlePath, origin };
    },
  }[how]();
  // If a path names the helper, other files beside it are not ours. A package or a bundle is ours as a whole.
  writeFileSync(join(bin, "other"), "");
  return { found, bin };
}

/** Sends a request to the fake engine by that helper. */
async function answers(t, executablePath) {
  const client = clientFor(t, { ...fakeOptions, helperPath: executablePath });
  assert.equal((await client.responses.create({ input: "one two" })).output_text, "one two");
}

for (const how of ["a package", "a path", "a link", "an app bundle"]) {
  test(`permissions that all programs lost are repaired: ${how}`, async (t) => {
    const { found, bin } = loseAll(t, how);
    assert.deepEqual(await makeRunnable(found, undefined), found);
    for (const name of ["fm-proxy", "fm-engine-fake"]) assert.equal(modeOf(join(bin, name)), 0o755);
    assert.deepEqual(["fm-engine-fake.json", "other"].map((name) => modeOf(join(bin, name)) & 0o111), [0, 0]);
    await answers(t, found.executablePath);
  });

  test(`where they can't be, a copy has them, again and again: ${how}`, async (t) => {
    const { found, bin } = loseAll(t, how);
    chmodSync(bin, 0o555);
    const before = snapshot(bin);
    const storageDir = temporaryFolder(t);
    const copy = await makeRunnable(found, storageDir);
    assert.ok(copy.executablePath.startsWith(storageDir), copy.executablePath);
    assert.equal(copy.type, found.type);
    const there = dirname(copy.executablePath);
    assert.equal(existsSync(join(there, "other")), how === "a package" || how === "an app bundle");
    if (how !== "a package") assert.equal(copy.copiedFrom, join(bin, "fm-proxy"));
    for (const lost of ["fm-proxy", "fm-engine-fake"]) {
      chmodSync(join(there, lost), 0o644);
      assert.deepEqual(await makeRunnable(found, storageDir), copy);
      assert.equal(modeOf(join(there, lost)), 0o755);
    }
    await answers(t, copy.executablePath);
    assert.deepEqual(snapshot(bin), before);
    assert.equal(readdirSync(storageDir).length, 1);
    chmodSync(bin, 0o755);
  });
}

test("permissions of engines in engineDir are repaired", async (t) => {
  const { bin } = loseAll(t, "a path");
  const client = clientFor(t, { ...fakeOptions, helperPath, engineDir: "bin", cwd: dirname(bin) });
  assert.equal((await client.responses.create({ input: "one two" })).output_text, "one two");
  const names = ["fm-proxy", "fm-engine-fake", "fm-engine-fake.json"]; // here the helper is another file
  assert.deepEqual(names.map((name) => modeOf(join(bin, name)) & 0o111), [0, 0o111, 0]);
});

test("a helper that PATH leads to is repaired; where it can't be, its path is told", async (t) => {
  const { bin } = loseAll(t, "a path");
  const path = `/nowhere:${bin}`;
  const options = { ...fakeOptions, helperPath: "fm-proxy", env: { ...fakeOptions.env, PATH: path } };
  chmodSync(bin, 0o555);
  const isNamed = ({ code, detail }) => code === "SPAWN_FAILED" && detail.includes(`${join(bin, "fm-proxy")} is not executable`);
  await assert.rejects(clientFor(t, options).health.ping(), isNamed);
  chmodSync(bin, 0o755);
  const client = clientFor(t, options);
  assert.equal((await client.responses.create({ input: "one two" })).output_text, "one two");
  assert.equal(modeOf(join(bin, "fm-proxy")), 0o755);
});

test("an engine alone that lost its permission is repaired, too", async (t) => {
  const { found, bin } = loseAll(t, "a path");
  chmodSync(found.executablePath, 0o755);
  await makeRunnable(found, undefined);
  assert.equal(modeOf(join(bin, "fm-engine-fake")), 0o755);
});

test("the copy of a program has its models where that had them, unless the host says otherwise", async (t) => {
  const { found, bin } = loseAll(t, "a path");
  chmodSync(bin, 0o555);
  const options = { helperPath: found.executablePath, storageDir: temporaryFolder(t) };
  const models = join(bin, "..", "models");
  assert.deepEqual((await spawnOptions(options, {})).args, ["--stdio", "--models-dir", models]);
  assert.deepEqual((await spawnOptions(options, { FM_PROXY_MODELS_DIR: "m" })).args, ["--stdio"]);
  assert.deepEqual((await spawnOptions({ ...options, modelsDir: "/n" }, {})).args, ["--stdio", "--models-dir", "/n"]);
  chmodSync(bin, 0o755);
});

test("what is missing is not copied", async (t) => {
  const storageDir = join(temporaryFolder(t), "storage");
  const missing = inPackage(join(temporaryFolder(t), "linux-x64"), "the package");
  const isLacking = ({ code, detail }) => code === "SPAWN_FAILED" && /lacks its program bin\/fm-proxy.*left it out/.test(detail);
  await assert.rejects(makeRunnable(missing, storageDir), isLacking);
  assert.equal(existsSync(storageDir), false);
});

test("a copy of a clone's programs has the libraries of their llama.cpp", async (t) => {
  const build = temporaryFolder(t);
  const library = join("deps", "llama", "lib", "libllama.so");
  for (const [path, text] of [["bin/fm-proxy", "\x7fELF"], [library, "a library"]]) {
    mkdirSync(dirname(join(build, path)), { recursive: true });
    writeFileSync(join(build, path), text, { mode: 0o644 });
  }
  chmodSync(join(build, "bin"), 0o555);
  const found = { type: "cli", executablePath: join(build, "bin", "fm-proxy"), origin: "a path" };
  const storageDir = temporaryFolder(t);
  for (const _ of ["new", "a file is lost"]) {
    const { executablePath } = await makeRunnable(found, storageDir);
    assert.ok(executablePath.startsWith(storageDir), executablePath);
    const copied = join(dirname(executablePath), "..", library);
    assert.equal(readFileSync(copied, "utf8"), "a library");
    writeFileSync(copied, "");
  }
  chmodSync(join(build, "bin"), 0o755);
});
