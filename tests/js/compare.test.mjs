// packaging/npm/compare.mjs on small releases: what is the same, and where files begin to differ.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { root, temporaryFolder } from "./support/helper.mjs";

const script = join(root, "packaging", "npm", "compare.mjs");

/** Two folders, each with its archives: {ARCHIVE: {PATH: text, or [text, mode]}}. */
function folders(t, ...releases) {
  const folder = temporaryFolder(t);
  return releases.map((release, index) => {
    const out = join(folder, String(index));
    mkdirSync(out);
    for (const [name, files] of Object.entries(release)) {
      const content = join(folder, `${index}-${name}`);
      mkdirSync(join(content, "package"), { recursive: true });
      for (const [path, value] of Object.entries(files)) {
        const [text, mode] = Array.isArray(value) ? value : [value, 0o644];
        writeFileSync(join(content, "package", path), text);
        chmodSync(join(content, "package", path), mode);
      }
      const paths = Object.keys(files).map((path) => `package/${path}`);
      const tar = ["tar", "--mtime=@0", "--owner=0", "--group=0", "-cf", "-", ...paths];
      const zip = ["python3", "-m", "zipfile", "-c", join(out, name), "package"];
      const [command, ...words] = name.endsWith(".vsix") ? zip : tar;
      const made = execFileSync(command, words, { cwd: content });
      if (command === "tar") writeFileSync(join(out, name), execFileSync("gzip", ["-n"], { input: made }));
    }
    return out;
  });
}

function compare(...words) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...words], { encoding: "utf8" });
  return { status, lines: stdout.split("\n").slice(0, -1), stderr };
}

test("releases that are the same", (t) => {
  const release = { "a.tgz": { one: "1", two: "2" }, "notes.md": { x: "" } };
  const { status, lines, stderr } = compare(...folders(t, release, release));
  assert.deepEqual([status, lines, stderr], [0, ["same     a.tgz", "1 archives, 1 the same"], ""]);
});

test("what differs, by archive and by file", (t) => {
  const one = { "a.tgz": { one: "12345", two: "2", gone: "" }, "b.tgz": { x: "x" }, "c.vsix": { x: "left" }, "d.tgz": { x: "" } };
  const other = { "a.tgz": { one: "12x4y6", two: ["3", 0o755], new: "" }, "b.tgz": { x: "x" }, "c.vsix": { x: "lift" } };
  const [first, second] = folders(t, one, other);
  const { status, lines } = compare(first, second);
  assert.equal(status, 1);
  assert.deepEqual(lines, [
    "differs  a.tgz",
    "         package/gone: is in the first alone",
    "         package/new: is in the second alone",
    "         package/one: 3 of 5 and 6 bytes, the first at 2",
    "         package/two: its mode is 100644 and 100755",
    "         package/two: 1 of 1 bytes, the first at 0",
    "same     b.tgz",
    "differs  c.vsix",
    "         package/x: 1 of 4 bytes, the first at 1",
    "differs  d.tgz",
    `         is missing in ${second}`,
    "4 archives, 1 the same",
  ]);
});

test("the same files in another order", (t) => {
  const { lines } = compare(...folders(t, { "a.tgz": { one: "1", two: "2" } }, { "a.tgz": { two: "2", one: "1" } }));
  assert.deepEqual(lines.slice(0, 2), [
    "differs  a.tgz", "         the files are the same; their order, times or permissions in the archive are not",
  ]);
});

const program = "/bin/true";
const noElf = process.platform === "linux" && existsSync(program) ? false : `${program} is no program of Linux`;
test("of a program, the section is named", { skip: noElf }, (t) => {
  const bytes = readFileSync(program);
  const changed = Buffer.from(bytes);
  const at = bytes.indexOf("GNU\0"); // this text is in a note section; a program has several kinds of them
  changed[at]++;
  const { lines } = compare(...folders(t, { "a.tgz": { true: bytes } }, { "a.tgz": { true: changed } }));
  assert.match(lines[1], new RegExp(`^ {9}package/true: 1 of ${bytes.length} bytes, the first at ${at}, in \\.note\\.`));
});

test("what can't be compared", (t) => {
  const [empty, other] = folders(t, {}, {});
  assert.match(compare(empty, other).stderr, /^compare: neither .* has a \.tgz or \.vsix file\n$/);
  assert.equal(compare(empty).status, 64);
  assert.match(compare(empty, "/nowhere").stderr, /^compare: .*\/nowhere/);
});
