// The programs that the documents show, as a user would save them.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./helper.mjs";

/** The pages for users of the npm package. */
export const USER_PAGES = [
  "README.md",
  ...readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md")).map((name) => join("docs", name)),
  "js-shim/README.md",
  "packaging/vscode/README.md",
];

/** The code blocks of a page: [{ name, language, code }]; the name has the page and the line. */
export function blocksOf(page) {
  const text = readFileSync(join(root, page), "utf8");
  return [...text.matchAll(/^ *```(\w*)\n([^]*?)^ *```$/gm)].map(({ index, 1: language, 2: code }) => {
    const line = text.slice(0, index).split("\n").length;
    return { name: `${page.replace(/\W+/g, "-")}-${line}`, language, code };
  });
}

const PROGRAMS = ["js", "mjs", "ts", "mts", "javascript", "typescript"];

/** The blocks that are programs. */
export const programsOf = (page) => blocksOf(page).filter(({ language }) => PROGRAMS.includes(language));

/** Options for `tsc`: as strict as possible. */
export const STRICT = ["--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess", "--skipLibCheck"].concat(
  ["--module", "nodenext", "--target", "es2022", "--types", "node"],
);
