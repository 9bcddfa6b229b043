// The tarballs of a release: their names, and which belong together.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The name that npm gives to the tarball of a package. */
export function tarballOf(name, version) {
  return `${name.replace("@", "").replace("/", "-")}-${version}.tgz`;
}

/**
 * The tarballs of `version` in a folder of pack.mjs. The main package's tarball comes last, and names the platforms' packages.
 * The folder may have other tarballs: of another version, or of a platform that the main package leaves out.
 */
export function tarballsOf(folder, version) {
  const path = join(folder, "main", "package.json");
  const main = existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : {};
  if (main.version !== version) {
    throw new Error(`${folder} has no packages of ${version}. Run \`node packaging/npm/release.mjs\` first`);
  }
  return [...Object.keys(main.optionalDependencies), main.name].map((name) => tarballOf(name, version));
}
