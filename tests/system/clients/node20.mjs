// The conformance suite says that it runs on Node 20, but imports a function that Node has from version 22 on, and that its
// part for servers never calls: on Node 20 it gets one that fails.
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
