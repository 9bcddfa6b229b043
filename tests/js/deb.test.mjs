// packaging/deb/pack.mjs on a small checkout, with scripts in place of the programs, and of the tools that inspect them. `sh
// packaging/bare-root.sh --deb` tests the real packages.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import { root, temporaryFolder } from "./support/helper.mjs";

const skip = spawnSync("dpkg-deb", ["--version"]).error ? "there is no dpkg-deb: the packages are made on Debian" : false;
const VERSION = /project\(fm-proxy VERSION (\S+)/.exec(readFileSync(join(root, "CMakeLists.txt"), "utf8"))[1];
const NAMES = ["fm-gateway", "fm-proxy", "fm-system"];
const FILES = NAMES.map((name) => `${name}_${VERSION}_amd64.deb`);
const A_PERSON = ["--maintainer", "A Person <a.person@example.org>"];

/** Packs a build in which every program reports the version `told`. Before that, `spoil` gets the folder that has all files. */
function pack(t, { told = VERSION, options = A_PERSON, umask = 0o077, spoil = () => {}, env = {} } = {}) {
  const folder = temporaryFolder(t);
  const packaging = ["packaging/arguments.mjs", "packaging/deb"];
  const copied = [...packaging, "gateway/workspace", "CMakeLists.txt", "CHANGELOG.md", "LICENSE", "THIRD-PARTY-NOTICES"];
  for (const path of copied) cpSync(join(root, path), join(folder, path), { recursive: true });
  const put = (path, text) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
    chmodSync(join(folder, path), 0o755);
  };
  const program = (name) => `#!/bin/sh\n[ "$1" = --help ] && printf '.odd -- \\\\ line\\n' || echo ${name} ${told}\n`;
  for (const name of [...NAMES, "fm-tool-run"]) put(`build/bin/${name}`, program(name));
  put("build/bin/gateway-ui/index.html", "<jarvis-app>");
  put("tools/cmake", `#!/bin/sh
    mkdir -p "$4/bin"
    cp -p "$2/bin/fm-proxy" "$4/bin/fm-proxy"
    cp "$2/bin/fm-proxy" "$4/bin/fm-engine-llama"
    echo {} >"$4/bin/fm-engine-llama.json"
    echo >"$4/bin/libllama.so"`);
  put("tools/strip", '#!/bin/sh\n[ "$1" = --strip-unneeded ] || cp "$3" "$2"');
  put("tools/dpkg-shlibdeps", '#!/bin/sh\n[ -f debian/control ] && echo "shlibs:Depends=libc6 (>= 2.34)"');
  spoil(folder);
  const script = join(folder, "packaging", "deb", "pack.mjs");
  const before = process.umask(umask);
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...options], {
    env: { PATH: `${join(folder, "tools")}:${process.env.PATH}`, HOME: folder, SOURCE_DATE_EPOCH: "1700000000", ...env },
    encoding: "utf8",
  });
  process.umask(before);
  const out = join(folder, "build", "deb");
  return { status, stdout, stderr, out, made: existsSync(out) ? readdirSync(out).sort() : [] };
}

function dpkg(option, ...words) {
  const { status, stdout, stderr } = spawnSync("dpkg-deb", [option, ...words], { env: { ...process.env, TZ: "UTC" } });
  assert.equal(status, 0, String(stderr));
  return stdout;
}

/** The content of a package: "MODE OWNER PATH", with the target of a link. */
function listed(file) {
  const lines = dpkg("--contents", file).toString().trim().split("\n").map((line) => line.split(/\s+/));
  assert.deepEqual([...new Set(lines.map(([, , , day, time]) => `${day} ${time}`))], ["2023-11-14 22:13"]);
  return lines.map(([mode, owner, , , , ...path]) => `${mode} ${owner} ${path.join(" ")}`);
}

test("three packages of CMake's version: programs that run, links to them, pages, modes", { skip }, (t) => {
  const { status, stdout, stderr, out, made } = pack(t);
  assert.equal(status, 0, stderr);
  assert.deepEqual(made, FILES);
  const paths = ["fm-proxy", "fm-gateway", "fm-system"].map((name) => join(out, `${name}_${VERSION}_amd64.deb`));
  assert.ok(stdout.endsWith(`To install them: apt-get install ${paths.join(" ")}\n`), stdout);
  const all = paths.map(listed);
  for (const line of all.flat()) {
    assert.match(line, /^(drwxr-xr-x|lrwxrwxrwx|-rw-r--r--|-rwxr-xr-x) root\/root /);
    assert.equal(line.startsWith("-rwx"), /\/bin\/fm-[a-z-]+$/.test(line) && !line.startsWith("l"), line);
  }
  const files = (lines) => lines.filter((line) => !line.startsWith("d")).map((line) => line.slice(line.indexOf("./") + 2)).sort();
  const [proxy, gateway, system] = all.map(files);
  assert.deepEqual(proxy, [
    "usr/bin/fm-proxy -> ../lib/fm-proxy/bin/fm-proxy",
    "usr/lib/fm-proxy/bin/fm-engine-llama",
    "usr/lib/fm-proxy/bin/fm-engine-llama.json",
    "usr/lib/fm-proxy/bin/fm-proxy",
    "usr/lib/fm-proxy/bin/libllama.so",
    "usr/lib/fm-proxy/models -> /var/lib/fm-proxy/models",
    "usr/share/doc/fm-proxy/changelog.gz",
    "usr/share/doc/fm-proxy/copyright",
    "usr/share/man/man1/fm-proxy.1.gz",
  ]);
  assert.ok(all[0].includes("drwxr-xr-x root/root ./var/lib/fm-proxy/models/"));
  assert.deepEqual(gateway, [
    "usr/bin/fm-gateway -> ../lib/fm-proxy/bin/fm-gateway",
    "usr/lib/fm-proxy/bin/fm-gateway",
    "usr/lib/fm-proxy/bin/fm-tool-run",
    "usr/lib/fm-proxy/bin/gateway-ui -> ../../../share/fm-gateway/ui",
    "usr/share/doc/fm-gateway -> fm-proxy",
    "usr/share/fm-gateway/ui/index.html",
    ...["AGENTS", "SOUL", "TOOLS"].map((name) => `usr/share/fm-gateway/workspace/${name}.md`),
    "usr/share/man/man1/fm-gateway.1.gz",
  ]);
  assert.deepEqual(system, [
    "usr/bin/fm-system -> ../lib/fm-proxy/bin/fm-system",
    "usr/lib/fm-proxy/bin/fm-system",
    "usr/share/doc/fm-system -> fm-proxy",
    "usr/share/man/man1/fm-system.1.gz",
  ]);
});

test("what apt reads of them, and no script of a maintainer", { skip }, (t) => {
  const { out } = pack(t);
  for (const name of NAMES) {
    const file = join(out, `${name}_${VERSION}_amd64.deb`);
    const field = (it) => dpkg("--field", file, it).toString().trim();
    assert.equal(field("Package"), name);
    assert.equal(field("Version"), VERSION);
    assert.equal(field("Architecture"), "amd64");
    assert.equal(field("Maintainer"), A_PERSON[1]);
    assert.equal(field("Priority"), "optional");
    assert.equal(field("Depends"), `${name === "fm-proxy" ? "" : `fm-proxy (= ${VERSION}), `}libc6 (>= 2.34)`);
    const control = join(temporaryFolder(t), "control");
    dpkg("--control", file, control);
    assert.deepEqual(readdirSync(control).sort(), ["control", "md5sums"]);
    const unpacked = join(temporaryFolder(t), "all");
    dpkg("--extract", file, unpacked);
    const { status, stderr } = spawnSync("md5sum", ["--check", "--quiet", join(control, "md5sums")], { cwd: unpacked });
    assert.equal(status, 0, String(stderr));
    const manual = gunzipSync(readFileSync(join(unpacked, `usr/share/man/man1/${name}.1.gz`))).toString();
    assert.ok(manual.includes("\n\\&.odd \\-\\- \\e line\n"), manual);
    if (name !== "fm-proxy") continue;
    const [changelog, copyright] = ["changelog.gz", "copyright"].map((it) =>
      readFileSync(join(unpacked, "usr/share/doc/fm-proxy", it)),
    );
    const lines = gunzipSync(changelog).toString().split("\n");
    assert.equal(lines[0], `fm-proxy (${VERSION}) unstable; urgency=medium`);
    assert.equal(lines.at(-2), ` -- ${A_PERSON[1]}  Tue, 14 Nov 2023 22:13:20 +0000`);
    assert.deepEqual(lines.filter((line) => line.length > 80), []);
    assert.match(copyright.toString(), /^MIT License\n[^]*\nThird-party notices[^]*common-licenses\/Apache-2\.0\n/);
    assert.doesNotMatch(copyright.toString(), /END OF TERMS AND CONDITIONS/);
  }
});

test("the same inputs give the same bytes, whatever files are here: permissions, times", { skip }, (t) => {
  const spoil = (folder) => utimesSync(join(folder, "build", "bin", "fm-proxy"), 1e9, 1e9);
  const [first, second] = [pack(t), pack(t, { umask: 0o002, spoil })];
  for (const file of FILES) assert.ok(readFileSync(join(first.out, file)).equals(readFileSync(join(second.out, file))), file);
});

test("what lacks a maintainer, a program, a page or CMake's version is refused, and what was there stays", { skip }, (t) => {
  const remove = (path) => ({ spoil: (folder) => rmSync(join(folder, path), { recursive: true }) });
  const lacks = [
    [{ options: [] }, /^pack: a package names its maintainer\. Add --maintainer "NAME <ADDRESS>", or set DEBFULLNAME and/],
    [{ options: ["--maintainer", "A Person"] }, /^pack: a package names its maintainer\. /],
    [{ told: "9.9.9" }, /^pack: fm-proxy is "fm-proxy 9\.9\.9", CMakeLists\.txt says /],
    [remove("build/bin/fm-tool-run"), /^pack: .*\/fm-tool-run is missing\. Run `sh packaging\/setup\.sh --gateway` first\n$/],
    [remove("build/bin/gateway-ui"), /^pack: .*\/gateway-ui is missing\. Run `sh packaging\/setup\.sh --gateway` first\n$/],
    [remove("build/bin/fm-system"), /^pack: .*\/fm-system is missing\. Run `sh packaging\/setup\.sh --system` first\n$/],
    [{ env: { SOURCE_DATE_EPOCH: "today" } }, /^pack: SOURCE_DATE_EPOCH is a number of seconds\n$/],
  ];
  for (const [how, message] of lacks) {
    const spoil = (folder) => {
      how.spoil?.(folder);
      mkdirSync(join(folder, "build", "deb"));
      writeFileSync(join(folder, "build", "deb", "old.deb"), "");
    };
    const { status, stderr, made } = pack(t, { ...how, spoil });
    assert.equal(status, 1);
    assert.match(stderr, message);
    assert.deepEqual(made, ["old.deb"]);
  }
  const { status, made } = pack(t, { options: [], env: { DEBFULLNAME: "A Person", DEBEMAIL: "a.person@example.org" } });
  assert.equal(status, 0);
  assert.deepEqual(made, FILES);
});
