// Every program in the documents, and the example, compiles and runs with the fake engine. The lists in the documents (error
// codes, options, environment variables) agree with the code. Their links lead somewhere.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { promisify } from "node:util";
import { CATALOG } from "../../js-shim/dist/esm/catalog.js";
import { ENVIRONMENT, helperEnvironment } from "../../js-shim/dist/esm/environment.js";
import { programsOf, STRICT, USER_PAGES } from "./support/documents.mjs";
import { helperPath, root, temporaryFolder } from "./support/helper.mjs";
import { WAIT } from "./support/patience.mjs";

const run = promisify(execFile);
const shim = join(root, "js-shim");
const env = { ...process.env, FM_PROXY_PATH: helperPath, FM_PROXY_ENGINE: "fake" };

const read = (file) => readFileSync(join(root, file), "utf8");
const markdown = (folder) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith(".md"))
    .map((name) => join(folder, name));
const FOLDERS = [".", "docs", "protocol", "protocol/client", "helper", "js-shim", "gateway", "gateway/tools", "system"].concat(
  ["tests", "tests/system/match", "packaging", "packaging/vscode", "examples/sessions"],
);
const PAGES = FOLDERS.flatMap(markdown);

/** An application with the package packed or linked, and everything that the programs of the documents import. */
async function application(t, linked) {
  const app = temporaryFolder(t);
  const modules = join(app, "node_modules");
  const link = (name, from) => symlinkSync(from, join(modules, name));
  for (const folder of ["", "@ai-sdk", "@types"]) mkdirSync(join(modules, folder));
  if (linked) link("fm-proxy", shim);
  else {
    await run("npm", ["pack", "--ignore-scripts", "--pack-destination", app], { cwd: shim });
    await run("tar", ["-xzf", join(app, readdirSync(app).find((name) => name.endsWith(".tgz"))), "-C", modules]);
    renameSync(join(modules, "package"), join(modules, "fm-proxy"));
  }
  link("openai", join(root, "tests", "js", "node_modules", "openai-7"));
  for (const name of ["ai", "@ai-sdk/openai", "ws", "@types/ws"]) link(name, join(root, "tests", "js", "node_modules", name));
  link("@types/node", join(shim, "node_modules", "@types", "node"));
  return app;
}

const PROGRAMS = USER_PAGES.flatMap(programsOf);

for (const [how, linked] of [["packed", false], ["linked", true]]) {
  test(`the programs of the documents, with the package ${how}`, async (t) => {
    assert.ok(PROGRAMS.length >= 10, `${PROGRAMS.length} programs`);
    const app = await application(t, linked);
    for (const { name, code } of PROGRAMS) writeFileSync(join(app, `${name}.mts`), code);
    await t.test("compile in strict TypeScript", async () => {
      const tsc = join(shim, "node_modules", "typescript", "bin", "tsc");
      const files = PROGRAMS.map(({ name }) => `${name}.mts`);
      await run(process.execPath, [tsc, ...STRICT, ...files], { cwd: app }).catch(({ stdout }) => assert.fail(stdout));
    });
    for (const { name } of PROGRAMS) {
      await t.test(`${name} runs`, async () => {
        const { stdout, stderr } = await run(process.execPath, [`${name}.mjs`], { cwd: app, env, timeout: WAIT });
        assert.equal(stderr, "");
        assert.notEqual(stdout.trim(), "");
      });
    }
  });
}

test("what packaging/pins says that npm checks, it checks: each package has its checksum in the lock file", () => {
  const [told] = /What npm installs for [^]*?package-lock/.exec(read("packaging/pins").replaceAll("\n# ", " "));
  const folders = [...told.matchAll(/(\S+)\/(?=,| )/g)].map(([, folder]) => folder);
  assert.ok(folders.length >= 6 && folders.includes("tests/system/clients"), String(folders));
  for (const folder of folders) {
    const packages = Object.entries(JSON.parse(read(join(folder, "package-lock.json"))).packages).slice(1);
    assert.deepEqual(packages.filter(([, { integrity }]) => integrity === undefined).map(([name]) => name), [], folder);
  }
});

test("docs/models.md has each model with a short name", () => {
  const gigabytes = (count) => `${(count / 1e9).toFixed(1)} GB`;
  const rows = CATALOG.map(({ name, kind, repository, file, size, memory, licence, goodFor }) => {
    const link = `[${file}](https://huggingface.co/${repository})`;
    return `| \`${name}\` | ${kind} | ${link} | ${gigabytes(size)} | ${gigabytes(memory)} | ${licence} | ${goodFor} |`;
  });
  const [, table] = /^\| Name \| Kind .*\n\|[-|]+\n([^]*?)\n\n/m.exec(read("docs/models.md"));
  assert.equal(table, rows.join("\n"));
});

/** The most lines that a page for users may have; the rest belongs in docs/. */
const PAGE_LINES = { "README.md": 120, "js-shim/README.md": 175, "gateway/README.md": 60, "system/README.md": 60 };

test("README.md is a front page", () => {
  for (const [page, most] of Object.entries(PAGE_LINES)) {
    const lines = read(page).trimEnd().split("\n").length;
    assert.ok(lines <= most, `${page} has ${lines} lines, and may have ${most}`);
  }
});

/** GitHub's anchor for a heading. */
const anchor = (heading) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");

for (const file of PAGES) {
  test(`the links of ${file} lead somewhere`, () => {
    const links = [...read(file).replaceAll(/^```.*?^```$/gms, "").matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link);
    for (const link of links.filter((link) => !/^https?:/.test(link))) {
      const [path, heading] = link.split("#");
      const target = path === "" ? file : join(dirname(file), path);
      assert.ok(existsSync(join(root, target)), `${link}: there is no ${target}`);
      if (heading === undefined) continue;
      const headings = [...read(target).matchAll(/^#+ (.*)$/gm)].map(([, text]) => anchor(text));
      assert.ok(headings.includes(heading), `${link}: ${target} has no such heading`);
    }
  });
}

const TROUBLE = "docs/troubleshooting.md";
const sorted = (names) => [...names].sort();
const found = (text, pattern) => sorted(new Set([...text.matchAll(pattern)].map(([, name]) => name)));

test(`${TROUBLE} has a section for each error code, and for no other`, () => {
  const helper = found(read("helper/base/error.c"), /^ *\[FM_\w+\] = "([A-Z_]+)"/gm).filter((code) => code !== "OK");
  assert.ok(helper.includes("UNAVAILABLE") && helper.length >= 10, String(helper));
  const shapes = read("js-shim/src/wire.ts") + /const SHAPES: [^]*?^};/m.exec(read("js-shim/src/errors.ts"))[0];
  const all = found(shapes, /^ {2}([A-Z_]+): \[/gm);
  const sections = [...read(TROUBLE).matchAll(/^### ([A-Z_]+)\n+([^]*?)(?=^#|(?![^]))/gm)];
  assert.deepEqual(sorted(sections.map(([, code]) => code)), sorted(new Set([...helper, ...all])));
  assert.deepEqual(helper.filter((code) => !all.includes(code)), []);
  for (const [, code, section] of sections) assert.ok(section.trim().length > 100, `${code} says nothing`);
});

test(`${TROUBLE} has each error of session mode, and no other`, () => {
  const codes = found(read("helper/sessions/command.c"), /^ *\[FM_FAULT_\w+\] = "([a-z_]+)"/gm);
  assert.ok(codes.includes("session_not_found"), String(codes));
  const section = /^## Session mode\n([^]*?)^## /m.exec(read(TROUBLE))[1];
  const rows = [...section.matchAll(/^\| (`.*?) \|/gm)].map(([, cell]) => cell).join();
  assert.deepEqual(found(rows.replace("`error`", ""), /`([a-z_]+)`/g), codes);
});

test("docs/options.md has each option and variable of --help, and no other", async () => {
  const { stdout } = await run(helperPath, ["--help"], { timeout: WAIT });
  const page = read("docs/options.md");
  const cells = [...page.matchAll(/^\| (`-.*?) \|/gm)].map(([, cell]) => cell).join();
  const lines = stdout.split("\n").filter((line) => /^ +--/.test(line));
  for (const line of lines) assert.match(line, /^ +--\S+( [A-Z_]+)? +[^- ]/, "--help explains each option in its line");
  const listed = lines.map((line) => line.replace(/ {2,}[^- ].*/, ""));
  assert.deepEqual(found(cells, /(--[a-z-]+)/g), found(listed.join("\n"), /(--[a-z-]+)/g));
  const { stdout: list } = await run(helperPath, ["--list-options"], { timeout: WAIT });
  assert.deepEqual(found(page, /(FM_PROXY_[A-Z_]+)/g), sorted(JSON.parse(list).map(({ variable }) => variable)));
});

test("docs/options.md tells the whole environment that the helper gets", () => {
  const text = read("docs/options.md");
  const [paragraph] = /^The helper of the npm package gets [^]*?(?=\n\n)/m.exec(text);
  const names = [...paragraph.matchAll(/`([A-Z_]+)(\*?)`/g)];
  const told = new Set(names.filter(([, , star]) => star === "").map(([, name]) => name));
  assert.deepEqual([...told].sort(), [...ENVIRONMENT].sort());
  assert.deepEqual(names.filter(([, , star]) => star).map(([, name]) => name), ["FM_"]);
  const [list] = /(?<=allowed\[\] = \{)[^]*?(?=#ifdef FM_SANITIZE)/.exec(read("protocol/client/client.c"));
  assert.deepEqual(found(list, /"([A-Z_]+)"/g), sorted(["FM_", ...ENVIRONMENT]), "the client in C lets the same through");
  const host = Object.fromEntries([...told, "FM_X", "XDG_OTHER", "SECRET"].map((name) => [name, "1"]));
  assert.deepEqual(new Set(Object.keys(helperEnvironment(host))), new Set([...told, "FM_X"]));
});

const example = (args, more = {}) =>
  run(process.execPath, [join(shim, "examples", "openai-stream.mjs"), ...args], {
    env: { ...env, ...more },
    timeout: WAIT,
  });

test("the example streams an answer", async () => {
  const { stdout, stderr } = await example(["Why is", "the sky blue?"]);
  assert.equal(stdout, "Why is the sky blue?\n");
  assert.equal(stderr, "");
});

for (const [name, code] of [
  ["before the first word", ""],
  ["after it", JSON.stringify(Array(100).fill(["more ", { sleep_ms: 20 }]).flat())],
]) {
  test(`nobody reads the example's answer any more, ${name}: it ends as others do, and says nothing`, async () => {
    const child = spawn(process.execPath, [join(shim, "examples", "openai-stream.mjs"), code || "a b c"], {
      env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const stderr = text(child.stderr);
    if (code !== "") await once(child.stdout, "data");
    child.stdout.destroy();
    const [status, signal] = await once(child, "exit");
    assert.equal(await stderr, "");
    assert.deepEqual([status, signal], [128 + constants.signals.SIGPIPE, null]);
  });
}

test("the example says what went wrong", async () => {
  await assert.rejects(example([]), (error) => error.code === 64 && /^usage: /.test(error.stderr));
  await assert.rejects(example(["x"], { FM_PROXY_PATH: "/nowhere/fm-proxy" }), (error) => {
    assert.equal(error.code, 1);
    assert.match(error.stderr, /The request failed: .*\/nowhere\/fm-proxy does not exist/);
    return true;
  });
  await assert.rejects(example([JSON.stringify(["a ", { error: "out of luck" }])]), (error) => {
    assert.equal(error.code, 1);
    assert.equal(error.stdout, "a ");
    assert.match(error.stderr, /The request failed: .*out of luck/);
    return true;
  });
});

test("the GPU's library is named, and tested, in the release of the engine's own", () => {
  const version = (name) => read("packaging/pins").match(new RegExp(`^${name} +npm +\\S+ +(\\S+)`, "m"))[1];
  const install = read("docs/gpu.md").match(/@node-llama-cpp\/linux-x64-vulkan@([\d.]+)/);
  assert.equal(install[1], version("llama-lib"));
  assert.equal(version("llama-vulkan"), version("llama-lib"));
});
