// The components of the programs in a platform's package, in CycloneDX 1.6 (https://cyclonedx.org/docs/1.6/json/).
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * The bill of materials of the package `name`, from packaging/pins, the Rust library's Cargo.lock, pkg-config and dpkg. These
 * parameters name lines of packaging/pins: `pin` the libraries of the platform, `source` their source, `compiler` a compiler
 * whose own libraries are linked in. `archives` is the folder in which pkg-config finds the static libraries; undefined: the
 * system's. `runtime` are the system's packages with the other libraries that are linked in. `others` are components of another
 * origin: each has its repository on GitHub and its version.
 */
export function billOfMaterials(root, { name, version, pin, source, compiler, archives, runtime = [], others = [] }) {
  const known = [...pinned(root, [pin, source, compiler]), ...crates(root), ...linkedIn(archives), ...runtime.map(ofSystem)];
  const components = [...known, ...others.map(([repository, release]) => ofGithub(repository, release))];
  const whole = { ...component(name, version, `pkg:npm/${encode(name)}@${version}`), type: "application" };
  return { bomFormat: "CycloneDX", specVersion: "1.6", version: 1, metadata: { component: whole }, components };
}

/**
 * The components in packaging/pins: llama.cpp's libraries; its source, from which libmtmd and the chat files are built; the
 * compiler.
 */
function pinned(root, names) {
  const lines = readFileSync(join(root, "packaging", "pins"), "utf8").split("\n");
  const rows = lines.map((line) => line.split(/\s+/)).filter(([key]) => names.includes(key));
  return rows.map(([, kind, name, version, , sha256]) => ({
    ...component(name, version, `pkg:${kind}/${encode(name)}@${version}`),
    hashes: [{ alg: "SHA-256", content: sha256 }],
  }));
}

function crates(root) {
  const lock = readFileSync(join(root, "helper/engine/guide/guidance/Cargo.lock"), "utf8");
  const found = lock.matchAll(/name = "([^"]+)"\nversion = "([^"]+)"\nsource = .*\nchecksum = "([^"]+)"/g);
  return [...found].map(([, name, version, sha256]) => ({
    ...component(name, version, `pkg:cargo/${name}@${version}`),
    hashes: [{ alg: "SHA-256", content: sha256 }],
  }));
}

/** The components that are linked in from static libraries. For the system's own, dpkg keeps all architectures at one version. */
function linkedIn(folder) {
  const env = folder === undefined ? process.env : { ...process.env, PKG_CONFIG_LIBDIR: folder };
  return ["json-c", "sqlite3"].map((name) => {
    const version = execFileSync("pkg-config", ["--modversion", name], { encoding: "utf8", env }).trim();
    return component(name, version, `pkg:generic/${name}@${version}`);
  });
}

/** A package of the system on which this runs. */
function ofSystem(name) {
  const version = execFileSync("dpkg-query", ["--show", "--showformat", "${Version}", name], { encoding: "utf8" });
  return component(name, version, `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}`);
}

function ofGithub(repository, version) {
  return component(repository, version, `pkg:github/${repository}@${version}`);
}

function component(name, version, purl) {
  return { type: "library", "bom-ref": purl, name, version, purl };
}

function encode(name) {
  return name.replace("@", "%40");
}
