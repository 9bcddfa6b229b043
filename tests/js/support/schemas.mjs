// protocol/*.schema.json as validators, and readers for what a document or a C file says about the same things.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { root } from "./helper.mjs";

export const NAMES = ["host", "engine", "sessions"];
export const schemas = Object.fromEntries(
  NAMES.map((name) => [name, JSON.parse(readFileSync(join(root, "protocol", `${name}.schema.json`), "utf8"))]),
);
export const document = (name) => readFileSync(join(root, "protocol", name), "utf8");

/** Calls back for a value and all values in it. */
export function walk(value, visit, path = "") {
  if (typeof value !== "object" || value === null) return;
  visit(value, path);
  for (const [key, member] of Object.entries(value)) walk(member, visit, `${path}/${key}`);
}

const has = (schema, type) => [schema.type].flat().includes(type);
const isData = (key) => key === "const" || key === "enum" || key === "default";

/** A schema in which every object only has the named members: an undocumented member is an error. */
function closed(schema) {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== "object" || schema === null) return schema;
  const copy = {};
  for (const [key, value] of Object.entries(schema)) copy[key] = isData(key) ? value : closed(value);
  if (copy.properties !== undefined && copy.additionalProperties !== false) delete copy.additionalProperties;
  const named = copy.properties !== undefined || copy.allOf !== undefined;
  if (has(copy, "object") && named) copy.unevaluatedProperties = false;
  return copy;
}

/** The same schema for examples that leave out members. */
function partial(schema) {
  if (Array.isArray(schema)) return schema.map(partial);
  if (typeof schema !== "object" || schema === null) return schema;
  const rows = Object.entries(schema).filter(([key, value]) => !(key === "required" && Array.isArray(value)));
  return Object.fromEntries(rows.map(([key, value]) => [key, isData(key) ? value : partial(value)]));
}

function compile(change) {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  for (const name of NAMES) ajv.addSchema(change(schemas[name]));
  return ajv;
}

const strict = compile(closed);
const lenient = compile((schema) => partial(closed(schema)));

export const pointer = (name) => name.replaceAll("~", "~0").replaceAll("/", "~1");

/** The errors of a value against a definition ("host", "methods/health.ping/result"); null: none. */
export function faults(name, definition, value, { left = false } = {}) {
  const ajv = left ? lenient : strict;
  const $ref = `${name}.schema.json#/$defs/${definition}`;
  const validate = ajv.getSchema($ref);
  assert.ok(validate, `${name}.schema.json has no ${definition}`);
  // The definition does not forbid other members itself if it is only a part of other objects.
  if (validate.schema.properties !== undefined && validate.schema.type === undefined) {
    const whole = ajv.compile({ allOf: [{ $ref }], unevaluatedProperties: false });
    return whole(value) ? null : describe(whole);
  }
  if (validate(value)) return null;
  return describe(validate);
}

const describe = ({ errors }) =>
  errors.map((each) => `${each.instancePath} ${each.message} ${JSON.stringify(each.params)}`).join("\n");

export function assertValid(name, definition, value, options) {
  const found = faults(name, definition, value, options);
  if (found !== null) assert.fail(`not a ${definition} of ${name}: ${JSON.stringify(value).slice(0, 2000)}\n${found}`);
}

/** Checks the messages of one side, and of the other, as they come; knows which call each result belongs to. */
export class Wire {
  /** What has been seen: "METHOD ok", "METHOD failed", "NOTIFICATION", "EVENT". */
  seen = new Set();
  #name;
  #calls = new Map();

  constructor(name) {
    this.#name = name;
  }

  /** The errors in a message that was sent to the helper, or to the engine. */
  sent(message) {
    if (message.id !== undefined) this.#calls.set(message.id, message.method);
    if (!message.method.includes("/") && message.id === undefined) this.seen.add(message.method);
    return faults(this.#name, "call", message);
  }

  /** Checks a message that the helper, or the engine, sent. */
  received(message) {
    if (message.method !== undefined) return this.#notification(message);
    if (message.error !== undefined) {
      this.seen.add(`error ${message.error.code}`);
      return assertValid(this.#name, "refusal", message);
    }
    assertValid(this.#name, "result", message);
    const method = this.#calls.get(message.id);
    assert.ok(method, `a result of no call: ${JSON.stringify(message)}`);
    this.seen.add(`${method} ${message.result.ok ? "ok" : "failed"}`);
    if (!message.result.ok) this.seen.add(message.result.error.code);
    assertValid(this.#name, `methods/${pointer(method)}/result`, message.result);
  }

  #notification(message) {
    this.seen.add(message.method);
    if (message.method === "responses.event") this.seen.add(message.params.event.type);
    assertValid(this.#name, "notification", message);
  }
}

// ---- the documents

/** The rows of the first table after a text in a document, each a list of its cells. */
export function tableAfter(text, mark) {
  const at = text.indexOf(mark);
  assert.ok(at >= 0, `the document has no ${JSON.stringify(mark)}`);
  const lines = text.slice(at).split("\n");
  const begin = lines.findIndex((line) => line.startsWith("|---"));
  const rows = [];
  for (let i = begin + 1; lines[i]?.startsWith("|"); i++) {
    rows.push(
      lines[i]
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
  }
  assert.ok(rows.length > 0);
  return rows;
}

/** A text without its blocks of code. */
export const prose = (text) => text.replace(/^```[^]*?^```$/gm, "");

/** The names between backticks in a text. */
export const quoted = (text) => [...prose(text).matchAll(/`([^`]+)`/g)].map(([, name]) => name);

/**
 * The blocks of JSON in a document: {definitions, values: [{value, left}], line}. A comment before a block names the
 * definition of each value in the block. Without a comment, the values are messages, or the result of the method in the heading.
 */
export function examples(text) {
  const found = [];
  let heading = "";
  let comment = null;
  let block = null;
  text.split("\n").forEach((line, index) => {
    if (block === null && line === "```") block = { line: index + 1, lines: [], comment, heading };
    else if (block !== null && line === "```") {
      found.push(block);
      block = null;
    } else if (block !== null) block.lines.push(line);
    else if (line.startsWith("#")) heading = line.replace(/^#+ /, "");
    if (line.trim() !== "") comment = /^<!-- example: (.*) -->$/.exec(line)?.[1].split(", ") ?? null;
  });
  return found.map((each) => ({
    ...each,
    definitions: each.comment,
    values: values(each.lines.filter((line) => !line.endsWith("\\r\\n"))),
  }));
}

/** The values of a block that are JSON; `left`: it leaves out members, which it shows by "...". */
function values(lines) {
  const parsed = [];
  let text = "";
  for (const line of lines) {
    text += (text === "" ? "" : "\n") + line;
    const value = parse(text);
    if (value === undefined) continue;
    parsed.push(value);
    text = "";
  }
  assert.ok(text.trim() === "" || parsed.length === 0, `no JSON: ${text}`);
  return parsed;
}

function parse(text) {
  const strings = [];
  const bare = text.replace(/"(?:[^"\\]|\\.)*"/g, (string) => `"${strings.push(string) - 1}"`);
  const left = /\.\.\./.test(bare);
  const whole = bare.replace(/,? *\.\.\./g, "").replace(/"(\d+)"/g, (_, index) => strings[index]);
  for (const candidate of [whole, `{${whole}}`]) {
    try {
      return { value: JSON.parse(candidate), left };
    } catch {
      // The value continues in the next line, or this is not a value.
    }
  }
  return undefined;
}

// ---- the C code

/** All C files below some folders, with their text: Map of path to text without comments. */
export function cFiles(...folders) {
  const files = new Map();
  for (const folder of folders) {
    for (const name of readdirSync(join(root, folder), { recursive: true })) {
      if (!/\.[ch]$/.test(name)) continue;
      const text = readFileSync(join(root, folder, name), "utf8");
      files.set(join(folder, name), text.replace(/\/\*[^]*?\*\//g, " "));
    }
  }
  return files;
}

/**
 * The value in the C code of `NAME`, `NAME in FILE`, `NAME.MEMBER`, or `--OPTION.usual`, `.least` or `.most`: a number for
 * each definition.
 */
export function cValues(files, asked) {
  if (asked.startsWith("--")) return optionValues(files, ...asked.slice(2).split("."));
  const [, name, member, file] = /^(\w+)(?:\.(\w+))?(?: in ([\w.]+))?$/.exec(asked);
  const found = [];
  for (const [path, text] of files) {
    if (file !== undefined && !path.endsWith(`/${file}`)) continue;
    const one = text.replace(/\\\n/g, " ");
    for (const [, define, row] of one.matchAll(
      new RegExp(`^#define ${name}[ \\t]+(.*)$|^\\s+${name}\\s*=\\s*([^,}]*)[,}]`, "gm"),
    )) {
      const expression = define ?? row;
      found.push(member === undefined ? evaluate(files, expression) : memberOf(expression, member));
    }
  }
  return found;
}

/** A number in an option's row: {"NAME", ..., "USUAL", LEAST, MOST}. */
function optionValues(files, option, column) {
  const row = new RegExp(`\\{"${option}",[^{}]*?"(?<usual>\\d+)",(?<least>[^,{}]+),(?<most>[^,{}]+)\\}`, "g");
  return [...files.values()].flatMap((text) =>
    [...text.matchAll(row)].map(({ groups }) => evaluate(files, groups[column])),
  );
}

const memberOf = (text, member) => Number(new RegExp(`\\.${member} = (\\d+)`).exec(text)?.[1]);

function evaluate(files, expression) {
  const plain = expression
    .replace(/\((?:u?int\d+_t|size_t)\)/g, "")
    .replace(/\b(\d+)[uUlL]+\b/g, "$1")
    .replace(/\b[A-Z][A-Z0-9_]+\b/g, (name) => cValues(files, name)[0]);
  assert.match(plain, /^[\d\s()+*<-]+$/, `no number: ${expression}`);
  return Function(`"use strict"; return (${plain});`)();
}

/** The string literals of C files, except those of #include. */
export function cLiterals(files) {
  const found = new Set();
  for (const text of files.values()) {
    const code = text.replace(/^#include.*$/gm, "");
    for (const [, literal] of code.matchAll(/"((?:[^"\\\n]|\\.)*)"/g)) found.add(literal);
  }
  return found;
}
