// What works with which client, according to the tests: reads the output of `node --test --test-reporter=tap`.
//   node tests/js/conformance.mjs RESULTS.tap            prints the table
//   node tests/js/conformance.mjs --write RESULTS.tap    puts it into docs/conformance.md
//   node tests/js/conformance.mjs --check RESULTS.tap    exit status 1 if that page and the results differ
// A client's tests are named "CLIENT on the ENGINE", and its subtests "ENDPOINT: WHAT".
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const NAME = "docs/conformance.md";
/** The page with the table. */
export const PAGE = join(dirname(fileURLToPath(import.meta.url)), "..", "..", NAME);
const [BEGIN, END] = ["<!-- conformance: made by tests/js/conformance.mjs -->", "<!-- end of conformance -->"];
const CLIENTS = ["openai-7", "openai-6", "AI SDK", "LangChain", "Agents SDK"];
const ENDPOINT = /^((?:GET|POST|DELETE) \/\S+|errors|refused): (.+)$/;

/** Every test in a TAP file, with the names of the tests around it: {path, status}. */
export function readTap(text) {
  const open = [];
  const results = [];
  for (const line of text.split("\n")) {
    const [, indent, begun] = /^( *)# Subtest: (.*)$/.exec(line) ?? [];
    if (begun !== undefined) {
      open.length = indent.length / 4;
      open.push(unescape(begun));
      continue;
    }
    const [, at, not, directive] = /^( *)(not )?ok \d+ - .*?(?: # (SKIP|TODO)\b.*)?$/.exec(line) ?? [];
    if (at === undefined) continue;
    const path = open.slice(0, at.length / 4 + 1);
    results.push({ path, status: directive !== undefined ? "skipped" : not ? "failed" : "passed" });
  }
  return results;
}

/** TAP escapes its two special characters. */
const unescape = (name) => name.replace(/\\([\\#])/g, "$1");

/** The result of each feature with each client: a Map from "ENDPOINT|CLIENT|WHAT" to the worst result. */
export function summarise(results) {
  const found = new Map();
  const order = ["skipped", "passed", "failed"];
  for (const { path, status } of results) {
    const [, client] = /^(.+) on the (?:fake engine|real model)$/.exec(path[0]) ?? [];
    const [, endpoint, what] = ENDPOINT.exec(path.at(-1)) ?? [];
    if (!CLIENTS.includes(client) || endpoint === undefined) continue;
    const key = [endpoint, client, what].join("|");
    const before = found.get(key) ?? "skipped";
    found.set(key, order.indexOf(status) > order.indexOf(before) ? status : before);
  }
  return found;
}

/** The table in Markdown: a row for each endpoint, a column for each client; each cell lists what passed. */
export function toMarkdown(found) {
  const cells = new Map();
  for (const [key, status] of found) {
    const [endpoint, client, what] = key.split("|");
    const row = cells.get(endpoint) ?? {};
    cells.set(endpoint, row);
    if (status === "passed") (row[client] ??= []).push(what);
  }
  const rows = [...cells].filter(([, row]) => Object.keys(row).length > 0);
  rows.sort(([a], [b]) => rank(a) - rank(b) || (a < b ? -1 : 1));
  return [
    `| | ${CLIENTS.join(" | ")} |`,
    `|---|${CLIENTS.map(() => "---|").join("")}`,
    ...rows.map(([endpoint, row]) => {
      const name = /^[A-Z]/.test(endpoint) ? `\`${endpoint}\`` : endpoint;
      return `| ${name} | ${CLIENTS.map((client) => (row[client] ?? []).sort().join("; ") || "-").join(" | ")} |`;
    }),
  ].join("\n");
}

const rank = (endpoint) => ["errors", "refused"].indexOf(endpoint);

/** The claims of a table, as "ENDPOINT|CLIENT|WHAT". */
export function readTable(text) {
  const claims = [];
  for (const line of text.split("\n").slice(2)) {
    const [endpoint, ...row] = line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim().replaceAll("`", ""));
    row.forEach((cell, index) => {
      if (cell === "-") return;
      for (const what of cell.split("; ")) claims.push([endpoint, CLIENTS[index], what].join("|"));
    });
  }
  return claims;
}

/** The differences between a table and the results. A skipped test neither confirms a claim nor contradicts it. */
export function differences(claims, found) {
  const missing = claims.filter((claim) => !found.has(claim)).map((claim) => `no test says so: ${claim}`);
  const failed = claims.filter((claim) => found.get(claim) === "failed").map((claim) => `failed: ${claim}`);
  const untold = [...found]
    .filter(([key, status]) => status === "passed" && !claims.includes(key))
    .map(([key]) => `passed, and not in the table: ${key}`);
  return [...missing, ...failed, ...untold];
}

/** The beginning and end of the table in the page's text. */
export function section(page) {
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`${NAME} has no ${BEGIN}`);
  return { begin: begin + BEGIN.length, end };
}

function main(args) {
  const file = args.find((arg) => !arg.startsWith("--"));
  if (file === undefined) throw new Error("usage: node tests/js/conformance.mjs [--write | --check] RESULTS.tap");
  const found = summarise(readTap(readFileSync(file, "utf8")));
  if (found.size === 0) throw new Error(`${file} has no results of clients`);
  const page = readFileSync(PAGE, "utf8");
  if (args.includes("--check")) {
    const { begin, end } = section(page);
    const wrong = differences(readTable(page.slice(begin, end).trim()), found);
    for (const line of wrong) console.error(`${NAME}: ${line}`);
    return wrong.length === 0 ? 0 : 1;
  }
  const table = toMarkdown(found);
  if (args.includes("--write")) {
    const { begin, end } = section(page);
    writeFileSync(PAGE, `${page.slice(0, begin)}\n${table}\n${page.slice(end)}`);
  } else console.log(table);
  return 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    process.exitCode = main(process.argv.slice(2));
  } catch (error) {
    console.error(error.message);
    process.exitCode = 64;
  }
}
