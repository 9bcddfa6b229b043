// Makes what is generated from protocol/*.schema.json and checked in: src/wire.ts (constants, and types of the helper's own
// messages), src/limits.ts, and the tables of limits in the documents. `npm run types` writes them; a test checks that they are
// current.
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const shim = dirname(dirname(fileURLToPath(import.meta.url)));
const protocol = join(shim, "..", "protocol");
const WIDTH = 120;

/** The documents, and the schema of each. */
const DOCUMENTS = { "PROTOCOL.md": "host", "ENGINE.md": "engine", "SESSIONS.md": "sessions" };
const [BEGIN, END] = ["<!-- limits: made by js-shim/scripts/types.mjs -->", "<!-- end of limits -->"];

export const readSchema = (name) => JSON.parse(readFileSync(join(protocol, `${name}.schema.json`), "utf8"));

// ---- TypeScript

const MADE = "// Made by scripts/types.mjs from protocol/host.schema.json: change that, then run `npm run types`.\n";
const HEAD = `${MADE}import type { JsonObject } from "./types.js";\n`;

const STREAMS = "The notifications of a stream. `params.id` is the id of the call that each belongs to.";

const pad = (depth) => "  ".repeat(depth);

/** A comment, on one line where it fits. */
function comment(text, depth = 0) {
  if (text === undefined) return "";
  const one = `${pad(depth)}/** ${text} */`;
  if (one.length <= WIDTH) return `${one}\n`;
  const lines = [];
  for (const word of text.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`;
    if (lines.length > 0 && depth * 2 + 3 + longer.length <= WIDTH) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return `${pad(depth)}/**\n${lines.map((line) => `${pad(depth)} * ${line}\n`).join("")}${pad(depth)} */\n`;
}

const number = (value) => {
  const digits = String(Math.abs(value)).replace(/\B(?=(\d{3})+$)/g, "_");
  const grouped = Math.abs(value) >= 10_000 ? digits : String(Math.abs(value));
  return value < 0 ? `-${grouped}` : grouped;
};
const literal = (value) => (typeof value === "number" ? number(value) : JSON.stringify(value));
const unique = (types) => [...new Set(types)];
const union = (types) =>
  unique(types)
    .sort((a, b) => (a === "null") - (b === "null"))
    .join(" | ");
const PLAIN = { string: "string", number: "number", integer: "number", boolean: "boolean", null: "null" };

/**
 * Makes types from schemas. A title is a type's name. If a schema without a title is an object that others refer to, its type is
 * OpenAI's.
 */
class Types {
  constructor(schema) {
    this.definitions = schema.$defs;
  }

  /** The definition that a reference names. */
  find(ref) {
    return this.definitions[ref.slice("#/$defs/".length)] ?? fail(`no definition ${ref}`);
  }

  type(schema, depth = 0) {
    if (schema.$ref !== undefined) return this.reference(schema.$ref, depth);
    if ("const" in schema) return typeof schema.const === "number" ? "number" : literal(schema.const);
    if (schema.enum !== undefined) return union(schema.enum.map(literal));
    const choices = schema.anyOf ?? schema.oneOf;
    if (choices !== undefined) return union(choices.map((each) => this.type(each, depth)));
    if (schema.properties === undefined && schema.allOf?.length === 1) return this.type(schema.allOf[0], depth);
    return union([schema.type].flat().map((name) => this.plain(name, schema, depth)));
  }

  /** The types of which a declared type is the union. */
  choices(schema) {
    const choices = schema.anyOf ?? schema.oneOf;
    return choices === undefined ? this.type(schema).split(" | ") : unique(choices.map((each) => this.type(each, 1)));
  }

  reference(ref, depth) {
    const found = this.find(ref);
    if (found.title !== undefined) return found.title;
    const isObject = found.type === "object" || found.properties !== undefined || found.allOf !== undefined;
    return isObject ? "JsonObject" : this.type(found, depth);
  }

  plain(name, schema, depth) {
    if (name === "array") {
      if (schema.items === undefined) return schema.maxItems === 0 ? "never[]" : "unknown[]";
      const item = this.type(schema.items, depth);
      return schema.items.oneOf !== undefined || (item.includes(" | ") && !item.startsWith("{")) ? `(${item})[]` : `${item}[]`;
    }
    if (name !== "object") return PLAIN[name] ?? fail(`no type for ${JSON.stringify(schema)}`);
    if (schema.properties === undefined && typeof schema.additionalProperties === "object")
      return `Record<string, ${this.type(schema.additionalProperties, depth)}>`;
    return schema.properties === undefined ? "JsonObject" : `{\n${this.members(schema, depth + 1)}${pad(depth)}}`;
  }

  members(schema, depth) {
    const rows = Object.entries(schema.properties).map(([name, member]) => {
      const optional = schema.required?.includes(name) ? "" : "?";
      const type = this.type(member, depth);
      return `${comment(this.description(member), depth)}${pad(depth)}${name}${optional}: ${type};\n`;
    });
    // The npm package adds this member to the reports of answers.
    if ("engine" in schema.properties && "ignored" in schema.properties) {
      const what = "The host's `fallback` gave the answer; absent: the local model. The npm package says it.";
      rows.push(`${comment(what, depth)}${pad(depth)}source?: "fallback";\n`);
    }
    if (schema.additionalProperties !== undefined && schema.additionalProperties !== false) {
      const more = schema.additionalProperties === true ? "unknown" : this.type(schema.additionalProperties, depth);
      rows.push(`${pad(depth)}[key: string]: ${more};\n`);
    }
    return rows.join("");
  }

  /** The description of a member. If the member's type has its own name, the description is at that type. */
  description({ description, $ref }) {
    const found = $ref === undefined ? undefined : this.find($ref);
    return description ?? (found?.title === undefined ? found?.description : undefined);
  }

  /** The declaration of a definition that has a title. */
  declaration({ title, description, ...schema }) {
    const bases = (schema.allOf ?? []).map((each) => this.reference(each.$ref, 0));
    const from = bases.length === 0 ? "" : ` extends ${bases.join(", ")}`;
    return schema.properties === undefined
      ? `${comment(description)}export type ${title} =${alternatives(this.choices(schema))};\n`
      : `${comment(description)}export interface ${title}${from} {\n${this.members(schema, 1)}}\n`;
  }
}

const alternatives = (types) => types.map((each) => `\n  | ${each}`).join("");

function fail(message) {
  throw new Error(message);
}

const table = (name, description, rows) =>
  `${comment(description)}export const ${name} = {\n${rows.join("")}} as const;\n`;

/** The text of src/wire.ts. */
export function wire(schema = readSchema("host")) {
  const definitions = schema.$defs;
  const types = new Types(schema);
  const rpc = definitions.rpc_code.oneOf.map(
    (code) => `${comment(code.description, 1)}  ${code.title}: ${code.const},\n`,
  );
  const shapes = Object.entries(definitions.error_shapes).map(
    ([
      code,
      {
        properties: { status, type, code: fine },
      },
    ]) => `  ${code}: [${status.const}, ${literal(type.const)}, ${literal(fine.enum[0])}],\n`,
  );
  const version = definitions.protocol_version;
  const streams = Object.keys(definitions.notifications).map(literal).join(", ");
  const methods = Object.keys(definitions.methods).map((name) => `  | ${literal(name)}`);
  return [
    HEAD,
    `${comment(version.description)}export const PROTOCOL_VERSION = ${version.const};\n`,
    table("RPC_ERRORS", definitions.rpc_code.description, rpc),
    table("ERROR_SHAPES", "HTTP status, type and usual code that OpenAI's clients see for each code.", shapes),
    `${comment(STREAMS)}export const STREAM_NOTIFICATIONS = [${streams}] as const;\n`,
    `${comment("The methods of the helper.")}export type Method =\n${methods.join("\n")};\n`,
    ...Object.values(definitions)
      .filter((each) => each.title !== undefined)
      .map((each) => types.declaration(each)),
  ].join("\n");
}

/** The text of src/limits.ts: each limit is a separate constant, so that a bundle only has those that are used. */
export function limits({ $defs } = readSchema("host")) {
  const rows = Object.entries($defs.limits).map(
    ([name, limit]) => `${comment(limit.description)}export const ${name} = ${number(limit.const)};\n`,
  );
  return `${MADE}// What a host can run into (see "All limits" in PROTOCOL.md).\n\n${rows.join("")}`;
}

// ---- the documents

const grouped = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, ",");

/** The table of a schema's limits. */
export function limitsTable({ $defs: { limits } }) {
  const rows = Object.entries(limits).map(
    ([name, limit]) => `| \`${name}\` | ${grouped(limit.const)} | ${limit.description} |`,
  );
  return ["| Name | Value | Meaning |", "|---|---|---|", ...rows].join("\n");
}

/** A document, with the correct table between its two marks. */
export function withLimits(text, schema) {
  const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (begin < 0 || end < begin) fail(`no place for the limits: it begins with ${BEGIN} and ends with ${END}`);
  return `${text.slice(0, begin + BEGIN.length)}\n${limitsTable(schema)}\n${text.slice(end)}`;
}

/** The path and the correct text of every generated file. */
export function made() {
  const documents = Object.entries(DOCUMENTS).map(([document, name]) => {
    const path = join(protocol, document);
    return { path, text: withLimits(readFileSync(path, "utf8"), readSchema(name)) };
  });
  const sources = { "wire.ts": wire(), "limits.ts": limits() };
  return [...Object.entries(sources).map(([name, text]) => ({ path: join(shim, "src", name), text })), ...documents];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const { path, text } of made()) writeFileSync(path, text);
}
