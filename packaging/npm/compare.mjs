// Compares the files of two releases byte by byte, and lists what differs: for an archive, the files in it that differ, and the
// first different byte of each. Use it for two builds of a commit (packaging/reproduce.sh), or for a registry's files and your
// own.
//
// usage: node packaging/npm/compare.mjs FOLDER FOLDER
//   FOLDER  has the tarballs (build/npm) or the VSIX files (build/vscode) of a release; other files are left out
//
// The exit status is 0 if all are the same, 1 if something differs or is missing.
import { execFileSync } from "node:child_process";
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const ARCHIVE = /\.(tgz|vsix)$/;

/** Lists what differs in the second folder: a line for each archive that differs, and lines for its files. */
export function compareReleases(one, other) {
  const [names, others] = [one, other].map((folder) => readdirSync(folder).filter((name) => ARCHIVE.test(name)));
  const all = [...new Set([...names, ...others])].sort();
  if (all.length === 0) throw new Error(`neither ${one} nor ${other} has a .tgz or .vsix file`);
  return all.map((name) => {
    if (!others.includes(name)) return { name, differences: [`is missing in ${other}`] };
    if (!names.includes(name)) return { name, differences: [`is missing in ${one}`] };
    const paths = [one, other].map((folder) => join(folder, name));
    const [bytes, otherBytes] = paths.map((path) => readFileSync(path));
    return { name, differences: bytes.equals(otherBytes) ? [] : differencesOf(...paths) };
  });
}

/** Lists what differs within two archives. */
function differencesOf(...archives) {
  const scratch = mkdtempSync(join(tmpdir(), "fm-compare-"));
  try {
    const [files, others] = archives.map((archive, index) => unpack(archive, join(scratch, String(index))));
    const found = [...new Set([...files.keys(), ...others.keys()])].sort().flatMap((path) => {
      return differencesOfFile(files.get(path), others.get(path)).map((difference) => `${path}: ${difference}`);
    });
    return found.length > 0 ? found : ["the files are the same; their order, times or permissions in the archive are not"];
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** The files of an archive, by their paths in it. */
function unpack(archive, folder) {
  mkdirSync(folder);
  const unzip = ["python3", "-m", "zipfile", "-e", archive, folder];
  const [command, ...words] = archive.endsWith(".vsix") ? unzip : ["tar", "-xpzf", archive, "-C", folder];
  execFileSync(command, words, { stdio: ["ignore", "ignore", "inherit"] });
  const names = readdirSync(folder, { recursive: true }).map(String);
  const entries = names.map((name) => [name, lstatSync(join(folder, name))]).filter(([, stat]) => !stat.isDirectory());
  return new Map(entries.map(([name, stat]) => [name, { path: join(folder, name), stat }]));
}

function differencesOfFile(file, other) {
  if (other === undefined) return ["is in the first alone"];
  if (file === undefined) return ["is in the second alone"];
  const [mode, otherMode] = [file, other].map(({ stat }) => stat.mode.toString(8));
  const modes = mode === otherMode ? [] : [`its mode is ${mode} and ${otherMode}`];
  const [bytes, otherBytes] = [file, other].map(contentOf);
  return bytes.equals(otherBytes) ? modes : [...modes, whereTheyDiffer(file, bytes, otherBytes)];
}

function whereTheyDiffer(file, bytes, otherBytes) {
  const most = Math.max(bytes.length, otherBytes.length);
  let [first, count] = [-1, 0];
  for (let at = 0; at < most; at++) {
    if (bytes[at] === otherBytes[at]) continue;
    if (first < 0) first = at;
    count++;
  }
  const sizes = bytes.length === otherBytes.length ? `${most}` : `${bytes.length} and ${otherBytes.length}`;
  const place = file.stat.isFile() ? placeOf(file.path, first) : "";
  return `${count} of ${sizes} bytes, the first at ${first}${place}`;
}

function contentOf({ path, stat }) {
  return stat.isSymbolicLink() ? Buffer.from(readlinkSync(path)) : readFileSync(path);
}

/** The section of a Linux program that contains a byte; nothing for another file. */
function placeOf(path, offset) {
  if (readFileSync(path).subarray(0, 4).toString("latin1") !== "\x7fELF") return "";
  const told = execFileSync("readelf", ["--wide", "--sections", path], { encoding: "utf8" });
  for (const [, name, kind, at, size] of told.matchAll(/\] (\S*)\s+(\S+)\s+[0-9a-f]+ ([0-9a-f]{6,}) ([0-9a-f]{6,}) /g)) {
    const begin = Number.parseInt(at, 16);
    if (kind !== "NOBITS" && offset >= begin && offset < begin + Number.parseInt(size, 16)) return `, in ${name}`;
  }
  return "";
}

if (import.meta.url === pathToFileURL(resolve(process.argv[1] ?? "")).href) {
  const folders = process.argv.slice(2);
  if (folders.length !== 2) {
    console.error("usage: node packaging/npm/compare.mjs FOLDER FOLDER");
    process.exit(64);
  }
  try {
    const releases = compareReleases(...folders);
    const same = releases.filter(({ differences }) => differences.length === 0);
    for (const { name, differences } of releases) {
      console.log(`${differences.length === 0 ? "same   " : "differs"}  ${name}`);
      for (const difference of differences) console.log(`         ${difference}`);
    }
    console.log(`${releases.length} archives, ${same.length} the same`);
    process.exitCode = same.length === releases.length ? 0 : 1;
  } catch (error) {
    console.error(`compare: ${error.message}`);
    process.exit(1);
  }
}
