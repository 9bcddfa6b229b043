// Makes one CommonJS file of the extension and of the npm package fm-proxy, with the bundler of js-shim.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const here = dirname(fileURLToPath(import.meta.url));
export const jsShim = join(here, "..", "..", "js-shim");

/** The text of the file. */
export function bundle() {
  const fmProxy = join(jsShim, "dist", "index.cjs");
  if (!existsSync(fmProxy)) throw new Error(`${fmProxy} is missing. Run npm ci and npm run build in js-shim, then try again.`);
  const { buildSync } = createRequire(join(jsShim, "package.json"))("esbuild");
  const { outputFiles } = buildSync({
    entryPoints: [join(here, "src", "extension.ts")],
    bundle: true,
    platform: "node",
    // VS Code 1.104 has Node 22.
    target: "node22",
    format: "cjs",
    external: ["vscode"],
    alias: { "fm-proxy": fmProxy },
    minifySyntax: true,
    // The comments must not have the build's folder. Otherwise two builds would differ.
    absWorkingDir: here,
    tsconfig: join(here, "tsconfig.json"),
    logLevel: "warning",
    write: false,
  });
  return outputFiles[0].text;
}

/** The compiler's errors about the code; "" if there are none. Needs `npm ci` here. */
export function typeCheck() {
  const tsc = createRequire(join(jsShim, "package.json")).resolve("typescript/bin/tsc");
  const { status, stdout, error } = spawnSync(process.execPath, [tsc, "-p", here], { encoding: "utf8" });
  if (error !== undefined) throw error;
  return status === 0 ? "" : stdout;
}
