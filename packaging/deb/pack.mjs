// Packs Debian packages of fm-proxy, fm-gateway and fm-system for amd64. The programs come from build/, as
// `sh packaging/setup.sh --gateway` and `--system` left them.
//
// usage: node packaging/deb/pack.mjs [--maintainer "NAME <ADDRESS>"] [--out FOLDER]
//   --maintainer  the maintainer of the packages (default: DEBFULLNAME and DEBEMAIL, as with Debian's tools)
//   --out FOLDER  where they go (default: build/deb). What is there is replaced when all is packed
//
// SOURCE_DATE_EPOCH is the time of all files (default: that of the last commit). The same inputs give the same bytes.
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { lstatSync, lutimesSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { createHash } from "node:crypto";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { readArguments } from "../arguments.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const built = join(root, "build", "bin");

/** The folder where programs look for other programs and for libraries. The models' folder is ../models from here. */
const BIN = "usr/lib/fm-proxy/bin";
const MODELS = "var/lib/fm-proxy/models";
const DOCUMENTS = "usr/share/doc/fm-proxy";

const PACKAGES = [
  {
    name: "fm-proxy",
    setup: "sh packaging/setup.sh",
    does: "language model on this machine, for other programs",
    tells: `The helper of the fm-proxy library: it answers requests of the OpenAI
Responses API's form with a GGUF model, on the processor. The program
that needs an answer starts it and talks to it on its standard input and
output, so there is no server and no port. Models are not in the package.`,
    section: "utils",
    fill: installEngines,
    page: `The default folder of models is /${MODELS}, which root fills: a GGUF file there is a model.
With FM_PROXY_MODELS_DIR a user has a folder elsewhere, such as the one of the npm package's "models pull",
~/.local/share/fm\\-proxy/models.`,
  },
  {
    name: "fm-gateway",
    setup: "sh packaging/setup.sh --gateway",
    does: "assistant on this machine, with a page in the browser",
    tells: `It listens on 127.0.0.1 only. Its model is a local one by fm-proxy, or
that of a server for which there is a key. Its tools, such as commands
and a browser, ask before they run.`,
    section: "web",
    inner: ["fm-tool-run"],
    suggests: "chromium",
    fill: installPage,
    page: `The folder where it is started has its agent. The first time:
.PP
.nf
mkdir ~/jarvis && cd ~/jarvis
cp \\-R /usr/share/fm\\-gateway/workspace .
fm\\-gateway &
fm\\-gateway \\-\\-link
.fi`,
  },
  {
    name: "fm-system",
    setup: "sh packaging/setup.sh --system",
    does: "desktop's windows and Chrome's tabs for language models",
    tells: `A server of the Model Context Protocol for windows, applications and
Chrome's tabs on an X11 desktop, and a command that does what its words
say. Where code does not know what is meant, it asks fm-proxy.`,
    section: "utils",
    suggests: "chromium",
    page: 'An MCP client starts it by the command "fm\\-system" without arguments.',
  },
];

const USAGE = 'usage: node packaging/deb/pack.mjs [--maintainer "NAME <ADDRESS>"] [--out FOLDER]';
const { DEBFULLNAME: fullName, DEBEMAIL: address } = process.env;
const values = readArguments(
  {
    maintainer: { type: "string", default: fullName && address ? `${fullName} <${address}>` : "" },
    out: { type: "string", default: join(root, "build", "deb") },
  },
  USAGE,
);
const out = resolve(values.out);
/** The folder where the packages are made. A killed run may have left it. */
const making = `${out}.new`;

try {
  if (!/^[^<>\n]+ <[^<>@\s]+@[^<>@\s]+>$/.test(values.maintainer)) {
    throw new Error('a package names its maintainer. Add --maintainer "NAME <ADDRESS>", or set DEBFULLNAME and DEBEMAIL');
  }
  const version = /project\(fm-proxy VERSION ([0-9.]+)/.exec(readFileSync(join(root, "CMakeLists.txt"), "utf8"))[1];
  const epoch = Number(process.env.SOURCE_DATE_EPOCH ?? run("git", ["log", "-1", "--format=%ct"]));
  if (!Number.isSafeInteger(epoch)) throw new Error("SOURCE_DATE_EPOCH is a number of seconds");
  PACKAGES.forEach((it) => checkBuilt(it, version));
  rmSync(making, { recursive: true, force: true });
  const made = PACKAGES.map((it) => pack(it, { version, epoch }));
  rmSync(out, { recursive: true, force: true });
  renameSync(making, out);
  console.log(`${out} has:`);
  for (const name of made) console.log(`  ${name}, ${(statSync(join(out, name)).size / 1e6).toFixed(1)} MB`);
  console.log(`To install them: apt-get install ${made.map((name) => join(out, name)).join(" ")}`);
} catch (error) {
  console.error(`pack: ${error.stderr?.toString().trim() || error.message}`);
  process.exitCode = 1;
} finally {
  rmSync(making, { recursive: true, force: true });
}

function checkBuilt({ name, inner = [], setup }, version) {
  const missing = [name, ...inner].find((program) => !existsSync(join(built, program)));
  if (missing !== undefined) throw new Error(`${join(built, missing)} is missing. Run \`${setup}\` first`);
  const told = run(join(built, name), ["--version"]).trim();
  if (!told.split(/\s/).includes(version)) throw new Error(`${name} is "${told}", CMakeLists.txt says ${version}`);
}

/** Makes a package; returns the name of its file. */
function pack(it, { version, epoch }) {
  const { name, inner = [], fill } = it;
  const folder = join(making, name);
  mkdirSync(join(folder, BIN), { recursive: true });
  fill?.(folder);
  const others = [name, ...inner].filter((program) => !existsSync(join(folder, BIN, program)));
  for (const program of others) run("strip", ["-o", join(folder, BIN, program), join(built, program)]);
  link(folder, `usr/bin/${name}`, `${BIN}/${name}`);
  if (name === "fm-proxy") writeDocuments(folder, { version, epoch });
  else link(folder, `usr/share/doc/${name}`, DOCUMENTS);
  writeManual(it, folder, version);
  const binaries = filesBelow(folder).filter((file) => file.startsWith(BIN) && isElf(join(folder, file)));
  binaries.forEach((file) => checkPaths(folder, file));
  const control = controlOf(it, folder, { version, needs: libraries(folder, binaries) });
  write(folder, "DEBIAN/md5sums", md5sums(folder));
  write(folder, "DEBIAN/control", control);
  setModes(folder, epoch);
  const file = `${name}_${version}_amd64.deb`;
  // The number of threads must not change the bytes.
  const options = ["--root-owner-group", "--threads-max=1", "-Zxz", "--build"];
  run("dpkg-deb", [...options, folder, join(making, file)], { SOURCE_DATE_EPOCH: String(epoch) });
  rmSync(folder, { recursive: true });
  return file;
}

/** fm-proxy, the engines, and llama.cpp's libraries. */
function installEngines(folder) {
  run("cmake", ["--install", join(root, "build"), "--prefix", join(folder, dirname(BIN)), "--strip"]);
  const libraries = filesBelow(folder).filter((file) => file.endsWith(".so"));
  for (const file of libraries) run("strip", ["--strip-unneeded", join(folder, file)]);
  mkdirSync(join(folder, MODELS), { recursive: true });
  link(folder, join(dirname(BIN), "models"), MODELS);
}

/** The gateway's page, which is the same on each machine, and the agent to begin with. */
function installPage(folder) {
  const page = join(built, "gateway-ui");
  if (!existsSync(join(page, "index.html"))) throw new Error(`${page} is missing. Run \`sh packaging/setup.sh --gateway\` first`);
  cpSync(page, join(folder, "usr/share/fm-gateway/ui"), { recursive: true });
  link(folder, `${BIN}/gateway-ui`, "usr/share/fm-gateway/ui");
  cpSync(join(root, "gateway/workspace"), join(folder, "usr/share/fm-gateway/workspace"), { recursive: true });
}

/** The licences and the changelog, which Debian's policy requires. The other two packages show those of fm-proxy. */
function writeDocuments(folder, { version, epoch }) {
  const [license, notices] = ["LICENSE", "THIRD-PARTY-NOTICES"].map((file) => readFileSync(join(root, file), "utf8"));
  // The policy wants a pointer to this licence, which each Debian has.
  const apache = / *Apache License\s+Version 2\.0, January 2004[^]*?END OF TERMS AND CONDITIONS/g;
  const shorter = notices.replace(apache, "Apache License, Version 2.0: /usr/share/common-licenses/Apache-2.0");
  write(folder, `${DOCUMENTS}/copyright`, `${license}\n${"-".repeat(80)}\n\n${shorter}`);
  writeGzip(folder, `${DOCUMENTS}/changelog.gz`, changelog(version, epoch));
}

/** The newest section of CHANGELOG.md in Debian's form. */
function changelog(version, epoch) {
  const section = readFileSync(join(root, "CHANGELOG.md"), "utf8").split(/^## /m)[1] ?? "";
  const [title, ...lines] = section.trim().split("\n");
  if (title.split(",")[0] !== version) throw new Error(`CHANGELOG.md begins with "${title}", CMakeLists.txt says ${version}`);
  const entries = lines.join("\n").trim().split(/\n(?=- )|\n\n/).map((entry) => entry.replace(/^- /, "* ").split(/\s+/));
  const date = new Date(epoch * 1000).toUTCString().replace("GMT", "+0000");
  const head = `fm-proxy (${version}) unstable; urgency=medium`;
  return `${head}\n\n${entries.map(wrap).join("\n")}\n\n -- ${values.maintainer}  ${date}\n`;
}

/** Words as lines of at most 80 columns, indented as Debian's changelogs are. */
function wrap([first, ...rest]) {
  let line = `  ${first}`;
  const lines = [];
  for (const word of rest) {
    if (line.length + 1 + word.length > 80) {
      lines.push(line);
      line = first === "*" ? "   " : " ";
    }
    line += ` ${word}`;
  }
  return [...lines, line].join("\n");
}

function writeManual({ name, does, page }, folder, version) {
  const help = run(join(built, name), ["--help"]).trimEnd();
  const manual = `.TH ${name.toUpperCase()} 1 "" "${name} ${version}"
.SH NAME
${roff(name)} \\- ${roff(does)}
.SH DESCRIPTION
${page}
.SH OPTIONS
.nf
${roff(help)}
.fi
`;
  writeGzip(folder, `usr/share/man/man1/${name}.1.gz`, manual);
}

function roff(text) {
  return text.replaceAll("\\", "\\e").replaceAll("-", "\\-").replace(/^[.']/gm, "\\&$&");
}

/** The packages of the linked libraries, as dpkg-shlibdeps reports them. It must run inside a source package. */
function libraries(folder, binaries) {
  write(making, "source/debian/control", "Source: fm-proxy\n\nPackage: fm-proxy\nArchitecture: amd64\n");
  const words = binaries.flatMap((file) => ["-e", join(folder, file)]);
  const options = ["-O", `-l${join(folder, BIN)}`, `-S${folder}`, "--ignore-missing-info"];
  const told = run("dpkg-shlibdeps", [...options, ...words], {}, join(making, "source"));
  rmSync(join(making, "source"), { recursive: true });
  return /^shlibs:Depends=(.+)$/m.exec(told)[1];
}

function controlOf({ name, section, suggests, does, tells }, folder, { version, needs }) {
  const isFirst = name === "fm-proxy";
  const bytes = filesBelow(folder).reduce((sum, file) => sum + lstatSync(join(folder, file)).size, 0);
  return `Package: ${name}
${isFirst ? "" : "Source: fm-proxy\n"}Version: ${version}
Architecture: amd64
Maintainer: ${values.maintainer}
Installed-Size: ${Math.ceil(bytes / 1024)}
Depends: ${isFirst ? "" : `fm-proxy (= ${version}), `}${needs}
${suggests === undefined ? "" : `Suggests: ${suggests}\n`}Section: ${section}
Priority: optional
Description: ${does}
${tells.replace(/^/gm, " ")}
`;
}

function md5sums(folder) {
  const files = filesBelow(folder).filter((file) => lstatSync(join(folder, file)).isFile());
  const sum = (file) => createHash("md5").update(readFileSync(join(folder, file))).digest("hex");
  return files.map((file) => `${sum(file)}  ${file}\n`).join("");
}

/** Sets the permissions and times of everything in the folder, so that they do not depend on this machine. */
function setModes(folder, epoch) {
  for (const path of ["", ...allBelow(folder)].map((name) => join(folder, name))) {
    const info = lstatSync(path);
    const runs = info.isDirectory() || /\/bin\/fm-[a-z-]+$/.test(path);
    if (!info.isSymbolicLink()) chmodSync(path, runs ? 0o755 : 0o644);
    lutimesSync(path, epoch, epoch);
  }
}

function isElf(path) {
  return lstatSync(path).isFile() && readFileSync(path).subarray(1, 4).equals(Buffer.from("ELF"));
}

function checkPaths(folder, file) {
  if (readFileSync(join(folder, file)).includes(root)) throw new Error(`${file} has the path of this checkout in it`);
}

/** Makes a link. As the policy requires, a link to another top-level folder is absolute. */
function link(folder, path, target) {
  mkdirSync(join(folder, dirname(path)), { recursive: true });
  const isNear = path.split("/")[0] === target.split("/")[0];
  symlinkSync(isNear ? relative(dirname(path), target) : `/${target}`, join(folder, path));
}

function write(folder, file, text) {
  mkdirSync(join(folder, dirname(file)), { recursive: true });
  writeFileSync(join(folder, file), text);
}

/** Compresses like `gzip -9n`. */
function writeGzip(folder, file, text) {
  write(folder, file, gzipSync(text, { level: 9 }));
}

/** The files and links in a folder, sorted by name. */
function filesBelow(folder) {
  return allBelow(folder).filter((name) => !lstatSync(join(folder, name)).isDirectory());
}

/** All paths below a folder, sorted. The option `recursive` of readdirSync is not used, because it would follow links. */
function allBelow(folder, below = "") {
  const entries = readdirSync(join(folder, below), { withFileTypes: true });
  const names = entries.map((entry) => [join(below, entry.name), entry]);
  return names.flatMap(([name, entry]) => [name, ...(entry.isDirectory() ? allBelow(folder, name) : [])]).sort();
}

function run(command, args, env = {}, cwd = root) {
  const options = { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], maxBuffer: 1 << 26 };
  return execFileSync(command, args, { ...options, env: { ...process.env, ...env } });
}
