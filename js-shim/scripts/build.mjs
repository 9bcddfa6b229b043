// Two passes of the compiler, one for each module format, side by side. Both go to a fresh folder that then takes the
// place of dist, so a failed build leaves the last good one alone.
import { spawn } from "node:child_process";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");
const fresh = join(root, `.dist-${process.pid}`);

/** `here` is the one line that the two formats cannot share (see src/here.ts). */
const formats = {
  esm: {
    type: "module",
    config: "tsconfig.json",
    here: 'import { fileURLToPath } from "node:url";\nexport const here = fileURLToPath(new URL(".", import.meta.url));\n',
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
}

await mkdir(fresh, { recursive: true });
const results = await Promise.allSettled(Object.entries(formats).map(([name, format]) => build(name, format)));
const failed = results.find((result) => result.status === "rejected");
if (failed) {
  await rm(fresh, { recursive: true, force: true });
  console.error(failed.reason.message);
  process.exit(1);
}
await rm(join(root, "dist"), { recursive: true, force: true });
await rename(fresh, join(root, "dist"));
