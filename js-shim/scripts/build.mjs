// Two passes of the compiler, one for each module format, side by side, and ajv bundled into the one file that uses it, so
// that the package depends on nothing. All goes to a fresh folder that then takes the place of dist, so a failed build
// leaves the last good one alone.
import { spawn } from "node:child_process";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const require = createRequire(import.meta.url);
const tsc = require.resolve("typescript/bin/tsc");
const fresh = join(root, `.dist-${process.pid}`);

/** `here` is the one line that the two formats cannot share (see src/here.ts). */
const formats = {
  esm: {
    type: "module",
    config: "tsconfig.json",
    // A bundler that makes CommonJS of it leaves no URL, but has __dirname.
    here:
      'import { fileURLToPath } from "node:url";\n' +
      'const url = import.meta.url;\n' +
      'export const here = url ? fileURLToPath(new URL(".", url)) : typeof __dirname === "string" ? __dirname : process.cwd();\n',
  },
  cjs: {
    type: "commonjs",
    config: "tsconfig.cjs.json",
    here: '"use strict";\nObject.defineProperty(exports, "__esModule", { value: true });\nexports.here = __dirname;\n',
  },
};

async function build(name, { type, config, here }) {
  const out = join(fresh, name);
  const child = spawn(process.execPath, [tsc, "-p", config, "--outDir", out], { cwd: root, stdio: "inherit" });
  const code = await new Promise((resolve) => child.on("close", resolve));
  if (code !== 0) throw new Error(`tsc -p ${config} ended with status ${code}`);
  await writeFile(join(out, "package.json"), `{"type":"${type}"}\n`);
  await writeFile(join(out, "here.js"), here);
  await bundleAjv(join(out, "validate.js"), name);
}

/** The file's own modules stay outside: there is one FmError. */
async function bundleAjv(file, format) {
  const options = { entryPoints: [file], outfile: file, allowOverwrite: true, bundle: true, minify: true };
  await esbuild.build({ ...options, format, platform: "node", target: "node20", external: ["./*.js"], logLevel: "warning" });
}

/** What the bundle has of others, which have to be named with it. */
const BUNDLED = ["ajv", "fast-deep-equal", "fast-uri", "json-schema-traverse"];

async function writeNotices() {
  const notices = BUNDLED.map(async (name) => {
    const folder = join(root, "node_modules", name);
    const { version } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    return `${name} ${version}\n\n${await readFile(join(folder, "LICENSE"), "utf8")}`;
  });
  const head = "dist/esm/validate.js and dist/cjs/validate.js have these in them:\n\n";
  await writeFile(join(fresh, "THIRD-PARTY-NOTICES"), head + (await Promise.all(notices)).join("\n\n"));
}

await mkdir(fresh, { recursive: true });
const builds = Object.entries(formats).map(([name, format]) => build(name, format));
const results = await Promise.allSettled([...builds, writeNotices()]);
const failed = results.find((result) => result.status === "rejected");
if (failed) {
  await rm(fresh, { recursive: true, force: true });
  console.error(failed.reason.message);
  process.exit(1);
}
await rm(join(root, "dist"), { recursive: true, force: true });
await rename(fresh, join(root, "dist"));
