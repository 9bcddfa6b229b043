// The conformance suite claims to run on Node 20, but imports a function that only exists from Node 22 on. Its part for
// servers never calls the function. So on Node 20 this file provides a function that throws.
import fs from "node:fs";
import { register } from "node:module";

const module = (text) => `data:text/javascript,${encodeURIComponent(text)}`;
const WHOLE = `import fs from "node:fs"; export * from "node:fs"; export default fs;
  export function globSync() { throw new Error("this Node has no globSync"); }`;

if (!fs.globSync) {
  register(
    module(`export async function resolve(name, context, next) {
      if (name !== "fs" || !context.parentURL?.includes("/conformance/dist/")) return next(name, context);
      return { url: ${JSON.stringify(module(WHOLE))}, shortCircuit: true };
    }`),
  );
}
