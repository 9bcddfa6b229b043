// The Open Responses compliance suite (openresponses/openresponses), from a checkout, with client.fetch in place of fetch. The
// suite is TypeScript for a bundler, so the needed files are first compiled into a separate folder.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { fakeOptions } from "./helper.mjs";

/** Makes the fake engine call a tool whenever it may, because the suite expects this from a model. */
export const callingEnv = { ...fakeOptions.env, FM_ENGINE_FAKE_CALLS: "auto" };

const here = createRequire(import.meta.url);
const shim = createRequire(join(dirname(fileURLToPath(import.meta.url)), "../../../js-shim/package.json"));
const SOURCES = ["src/lib", "src/generated/kubb/zod"];

/** The path of the suite; null if it was not given. */
export const suiteFolder = (argument) => argument ?? process.env.FM_COMPLIANCE_SUITE ?? null;

/** The suite in a checkout, compiled into `target`. */
export function loadSuite(folder, target) {
  const ts = shim("typescript");
  const options = { compilerOptions: { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2022 } };
  rmSync(target, { recursive: true, force: true });
  for (const source of SOURCES) {
    mkdirSync(join(target, source), { recursive: true });
    for (const name of readdirSync(join(folder, source)).filter((each) => /^[^.]+(-[^.]+)*\.ts$/.test(each))) {
      const { outputText } = ts.transpileModule(readFileSync(join(folder, source, name), "utf8"), options);
      const code = outputText.replace(/(require\("\.[^"]*)\.ts"\)/g, '$1")');
      writeFileSync(join(target, source, name.replace(/ts$/, "js")), code);
    }
  }
  // The suite is written for version 3 of zod, which the later version contains.
  mkdirSync(join(target, "node_modules/zod"), { recursive: true });
  const zod = JSON.stringify(here.resolve("zod/v3"));
  writeFileSync(join(target, "node_modules/zod/index.js"), `module.exports = require(${zod});\n`);
  writeFileSync(join(target, "package.json"), '{"type":"commonjs"}\n');
  return here(join(target, "src/lib/compliance-tests.js"));
}

/** Runs all cases that need no socket; returns {id, name, status, errors} of each. */
export async function runSuite({ runAllTests, testTemplates }, client) {
  const [{ id: model }] = (await client.models.list()).data;
  const config = {
    baseUrl: "http://fm-proxy/v1",
    apiKey: "local",
    authHeaderName: "Authorization",
    useBearerPrefix: true,
    model,
    runtime: "browser",
  };
  const original = globalThis.fetch;
  globalThis.fetch = client.fetch;
  try {
    const cases = testTemplates.filter(({ transport }) => transport !== "websocket");
    return await runAllTests(config, () => {}, cases);
  } finally {
    globalThis.fetch = original;
  }
}
