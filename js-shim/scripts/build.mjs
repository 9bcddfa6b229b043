// Makes dist/, all that the package consists of:
//
//   index.cjs      what a host loads with `require`: as little as a client needs before its first call
//   errors.cjs     the class FmError, which all files share
//   later.cjs      the rest: the path of requests, the code that starts helpers and speaks with them, model files; the first
//                  call loads it
//   index.mjs      the same for `import`: it exports index.cjs, so that a process has one state and one FmError. It imports
//                  names.cjs in between: Node would read all of index.cjs to find the names, which takes longer than the rest
//   bundler.mjs    all of these as one ES module, for bundlers. They take it for both `import` and `require` (the condition
//                  "module" in package.json), so a bundle too has one state and one FmError. Bundlers without that condition
//                  take the files above, so those files need neither `require` for Node's modules nor a __dirname
//   validate.cjs   the check of JSON schemas, with a library for it; loaded by the first `generate` with a schema
//   cli.cjs        the command fm-proxy
//   ai.mjs, ai.cjs  the adapter for the AI SDK
//   ws.mjs, ws.cjs  the WebSocket of OpenAI's SDK
//   openai.mjs, openai.cjs  empty: only their types matter, which add our parameters to those of OpenAI's SDK
//   *.d.cts, *.d.mts  their types
//   esm/           the compiler's output, file by file; tests use it, and it is not packed
//
// All files go to a fresh folder, which then replaces dist, so a failed build does not change the last good one.
import { spawn } from "node:child_process";
import { chmod, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";
import { rollup } from "rollup";
import { dts } from "rollup-plugin-dts";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const require = createRequire(import.meta.url);
const fresh = join(root, `.dist-${process.pid}`);
const esm = join(fresh, "esm");

/** The platforms that have a package, and where the package is beside this one. */
const PLATFORMS = ["linux-x64", "linux-arm64", "darwin-arm64", "win32-x64"];
const SIBLINGS = PLATFORMS.map((platform) => `"${platform}": \`\${__dirname}/../../@fm-proxy/${platform}\``).join(", ");

/** The code's folder and the package's folder: the lines that differ between the formats (see src/here.ts). */
const HERE = {
  esm:
    'import { fileURLToPath } from "node:url";\n' +
    'export const here = fileURLToPath(new URL(".", import.meta.url));\n' +
    'export const packageRoot = fileURLToPath(new URL("../..", import.meta.url));\n' +
    "export const siblings = {};\n",
  // A host that was bundled as an ES module has no __dirname. There the stack names the file, whatever source maps say.
  cjs:
    'import { dirname, resolve } from "node:path";\n' +
    'import { fileURLToPath } from "node:url";\n' +
    'import { programFile } from "./program.js";\n' +
    "const ofStack = () => { const { prepareStackTrace } = Error; Error.prepareStackTrace = (_, sites) => sites;\n" +
    "try { return dirname(fileURLToPath(new Error().stack[0].getFileName())); } catch { return undefined; }\n" +
    "finally { Error.prepareStackTrace = prepareStackTrace; } };\n" +
    'export const here = typeof __dirname === "string" ? __dirname : (ofStack() ?? dirname(programFile() ?? resolve(".")));\n' +
    "export const packageRoot = dirname(here);\n" +
    `export const siblings = typeof __dirname === "string" ? { ${SIBLINGS} } : {};\n`,
  // A bundler may turn this into either format. If neither gives this code's folder, the main program's folder is used.
  bundler:
    'import { dirname, resolve } from "node:path";\n' +
    'import { fileURLToPath } from "node:url";\n' +
    'import { programFile } from "./program.js";\n' +
    "const ofModule = () => { try { return dirname(fileURLToPath(import.meta.url)); } catch { return undefined; } };\n" +
    'const ofFile = () => (typeof __dirname === "string" ? __dirname : undefined);\n' +
    'export const here = ofFile() ?? ofModule() ?? dirname(programFile() ?? resolve("."));\n' +
    "export const packageRoot = dirname(here);\n" +
    "export const siblings = {};\n",
};

async function compile() {
  const args = [require.resolve("typescript/bin/tsc"), "-p", "tsconfig.json", "--outDir", esm];
  const child = spawn(process.execPath, args, { cwd: root, stdio: "inherit" });
  const code = await new Promise((resolve) => child.on("close", resolve));
  if (code !== 0) throw new Error(`the compiler ended with status ${code}`);
  await writeFile(join(esm, "here.js"), HERE.esm);
}

/** A plugin for esbuild: which files stay outside of a bundle, by the end of their path, and the text of here.js. */
const parts = (outside, here) => ({
  name: "parts",
  setup(build) {
    for (const [name, path] of Object.entries(outside))
      build.onResolve({ filter: new RegExp(`/${name}$`) }, () => ({ path, external: true }));
    build.onLoad({ filter: /here\.js$/ }, () => ({ contents: here, loader: "js" }));
    // The keyword `format` is not checked, so its code is left out.
    build.onLoad({ filter: /json-schema.dist.esm.format\.js$/ }, () => ({ contents: "export const format = {};", loader: "js" }));
  },
});

const OPTIONS = { bundle: true, platform: "node", target: "node20", logLevel: "warning" };
function bundle(entry, file, format, outside, more) {
  const plugins = [parts(outside, HERE[format === "cjs" ? "cjs" : "bundler"])];
  // In CommonJS, `import()` becomes `require`. Otherwise it would load Node's ES modules first. Also, only `require` can read
  // Electron's archives.
  const supported = format === "cjs" ? { "dynamic-import": false } : {};
  return esbuild.build({ ...OPTIONS, supported, entryPoints: [join(esm, entry)], outfile: file, format, plugins, ...more });
}

/**
 * A bundler that turns CommonJS into one ES module leaves no `require` for Node's own modules. Node 20.16 and later give these
 * modules without `require`. Bundlers that are given conditions of the host's own take these files, and not bundler.mjs.
 */
async function needNoRequire(file) {
  const text = await readFile(file, "utf8");
  const given = text.replace(/\brequire\("(node:[^"]+)"\)/g, '(process.getBuiltinModule?.("$1")??require("$1"))');
  await writeFile(file, given);
}

const withTabs = (text, width = 2) => text.replace(/^ +/gm, (spaces) => "\t".repeat(spaces.length / width));

/** Smaller code loads faster; a stack trace still has the line. */
const SMALL = { minifySyntax: true, minifyWhitespace: true, lineLimit: 200 };

async function bundleAll() {
  // The other files take FmError from errors.cjs, so that there is only one. No other file may need index.cjs, because index.cjs
  // loads them: that would be a circle.
  const own = { "errors.js": "./errors.cjs", "later.js": "./later.cjs", "validate.js": "./validate.cjs" };
  for (const name of ["errors", "index", "later"]) {
    const file = join(fresh, `${name}.cjs`);
    const { [`${name}.js`]: itself, ...others } = own;
    // A host sees the classes of index.cjs, and its functions in stack traces, so their names are kept.
    await bundle(`${name}.js`, file, "cjs", others, { ...SMALL, minifyIdentifiers: name === "later" });
    await needNoRequire(file);
  }
  await bundle("validate.js", join(fresh, "validate.cjs"), "cjs", { "errors.js": "./errors.cjs" }, { minify: true });
  await bundle("index.js", join(fresh, "bundler.mjs"), "esm", {}, { minify: true });
  const banner = { js: "#!/usr/bin/env node" };
  const loaded = { "index.js": "./index.cjs", "later.js": "./later.cjs" };
  await bundle("cli/main.js", join(fresh, "cli.cjs"), "cjs", loaded, { banner, minify: true });
  await chmod(join(fresh, "cli.cjs"), 0o755);
  const beside = { "errors.js": "./errors.js", "types.js": "./types.js" };
  await bundle("validate.js", join(esm, "validate.js"), "esm", beside, { minify: true, allowOverwrite: true });
  const names = Object.keys(require(join(fresh, "index.cjs"))).sort();
  // To find the names, Node reads the whole file that `import` names.
  const passed = names.map((name) => `exports.${name} = all.${name};\n`);
  await writeFile(join(fresh, "names.cjs"), `const all = require("./index.cjs");\n${passed.join("")}`);
  await writeFile(join(fresh, "index.mjs"), `export { ${names.join(", ")} } from "./names.cjs";\n`);
  for (const name of ["ai", "ws"]) {
    await bundle(`${name}.js`, join(fresh, `${name}.mjs`), "esm", {}, { minify: true });
    await bundle(`${name}.js`, join(fresh, `${name}.cjs`), "cjs", {}, { minify: true });
  }
}

/** Declares `Symbol.dispose`, because a host's own settings need not declare it. */
const LIBRARY = '/// <reference lib="esnext.disposable" />';

/** The types of a module, in one file. */
async function bundleTypes(entry, file) {
  const types = await rollup({ input: join(esm, entry), plugins: [dts()] });
  const { output } = await types.generate({ format: "es", banner: LIBRARY });
  await writeFile(join(fresh, file), withTabs(output[0].code, 4).replace(/^\t+(?=\*|\/\*\*)/gm, ""));
}

/** The types that extend those of OpenAI's SDK; each format has its own file. */
async function writeSdkTypes() {
  const declared = (await readFile(join(esm, "openai.d.ts"), "utf8")).replace("./index.js", "./index.cjs");
  // The compiler leaves this import out, but types can be added only to an imported module.
  const types = `import type {} from "openai";\n${declared}`;
  for (const format of ["c", "m"]) {
    await writeFile(join(fresh, `openai.d.${format}ts`), withTabs(types, 4));
    await writeFile(join(fresh, `openai.${format}js`), "");
  }
}

async function writeNotices() {
  const { version } = require("@cfworker/json-schema/package.json");
  const text = await readFile(join(root, "scripts", "notices.txt"), "utf8");
  await writeFile(join(fresh, "THIRD-PARTY-NOTICES"), text.replace("VERSION", version));
}

try {
  await mkdir(fresh, { recursive: true });
  await compile();
  await bundleAll();
  await bundleTypes("index.d.ts", "index.d.cts");
  await writeFile(join(fresh, "index.d.mts"), 'export * from "./index.cjs";\n');
  for (const name of ["ai", "ws"]) {
    for (const format of ["m", "c"]) await bundleTypes(`${name}.d.ts`, `${name}.d.${format}ts`);
  }
  await writeSdkTypes();
  await writeNotices();
} catch (error) {
  await rm(fresh, { recursive: true, force: true });
  console.error(error.message);
  process.exit(1);
}
await rm(join(root, "dist"), { recursive: true, force: true });
await rename(fresh, join(root, "dist"));
