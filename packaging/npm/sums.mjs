// Writes build/npm/SHA256SUMS, with the tarballs in build/npm, the VSIX files in build/vscode and the Debian packages in
// build/deb of this version, and signs it by ssh-keygen of OpenSSH 8.2 or later. release.mjs writes the file after packing. This
// program writes it again when all files of the release exist.
//
// usage: node packaging/npm/sums.mjs [--sign KEY]
//   --sign KEY  also writes SHA256SUMS.sig. KEY is the file of a private key of OpenSSH, or of the public one, if ssh-agent or a
//               security key has the other; packaging/npm/release-signers must have the public one
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { tarballsOf } from "./tarballs.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const out = join(root, "build", "npm");
const SUMS = join(out, "SHA256SUMS");
/** The keys whose signatures are accepted, one in each line, in ssh-keygen's form (ALLOWED SIGNERS). */
const SIGNERS = join(root, "packaging", "npm", "release-signers");
/** The purpose of the signature. A signature for another purpose is not accepted. */
const NAMESPACE = "file";

/** Writes the sums of all existing files of the release, and returns their text. */
export function writeSums() {
  const { version } = JSON.parse(readFileSync(join(root, "js-shim", "package.json"), "utf8"));
  const tarballs = tarballsOf(out, version).sort().map((name) => join(out, name));
  const paths = [...tarballs, ...filesOf("vscode", `-${version}.vsix`), ...filesOf("deb", `_${version}_amd64.deb`)];
  const lines = paths.map((path) => `${sha256(path)}  ${basename(path)}\n`);
  rmSync(`${SUMS}.sig`, { force: true });
  writeFileSync(SUMS, lines.join(""));
  return lines.join("");
}

function filesOf(part, end) {
  const folder = join(root, "build", part);
  if (!existsSync(folder)) return [];
  const names = readdirSync(folder).filter((name) => name.endsWith(end));
  return names.sort().map((name) => join(folder, name));
}

/** Signs the sums. If users could not check the signature, removes it and throws an error. */
function sign(key) {
  rmSync(`${SUMS}.sig`, { force: true });
  // ssh-keygen may ask for a passphrase, or for a touch of the security key.
  execFileSync("ssh-keygen", ["-Y", "sign", "-n", NAMESPACE, "-f", key, SUMS], { stdio: ["inherit", "inherit", "inherit"] });
  const signer = verify();
  if (signer !== undefined) return signer;
  rmSync(`${SUMS}.sig`);
  throw new Error(
    `packaging/npm/release-signers does not have the key ${key}, so nobody could check the signature. Add a line, commit it, ` +
      `and sign again: YOU@EXAMPLE.ORG namespaces="${NAMESPACE}" CONTENT OF THE KEY'S .pub FILE`,
  );
}

/** The signer of the sums; undefined: none of the known signers. */
function verify() {
  const signature = ["-s", `${SUMS}.sig`, "-f", SIGNERS];
  const find = spawnSync("ssh-keygen", ["-Y", "find-principals", ...signature], { encoding: "utf8" });
  const [signer] = find.status === 0 ? find.stdout.trim().split("\n") : [];
  if (signer === undefined) return undefined;
  const words = ["-Y", "verify", "-n", NAMESPACE, "-I", signer, ...signature];
  return spawnSync("ssh-keygen", words, { input: readFileSync(SUMS) }).status === 0 ? signer : undefined;
}

function sha256(path) {
  return createHash("sha256").update(readFileSync(path)).digest("hex");
}

if (import.meta.url === pathToFileURL(resolve(process.argv[1] ?? "")).href) {
  try {
    const { values } = parseArgs({ options: { sign: { type: "string" } } });
    process.stdout.write(writeSums());
    console.log(values.sign === undefined ? "build/npm has SHA256SUMS, without a signature" : `signed by ${sign(values.sign)}`);
  } catch (error) {
    console.error(`sums: ${error.message}`);
    process.exit(1);
  }
}
