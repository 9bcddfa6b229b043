// Checks values against JSON schemas with @cfworker/json-schema. This library generates no code, which some hosts forbid. The
// build includes the library in the file, without its checks of `format`: that keyword is only an annotation.
import { dereference, validate, type Schema } from "@cfworker/json-schema";
import { FmError } from "./errors.js";
import { RULES } from "./schema-rules.js";
import { messageOf } from "./thrown.js";
import type { JsonObject } from "./types.js";
import { isObject } from "./types.js";

/** Says what is wrong with a value, in one sentence; null: nothing is wrong. */
export type Validator = (value: unknown) => string | null;

type Draft = keyof typeof RULES;
type Lookup = Record<string, Schema | boolean>;

const rulesOf = (draft: Draft): Schema => RULES[draft] as Schema;
const LOOKUPS: Record<Draft, Lookup> = { "7": dereference(rulesOf("7")), "2020-12": dereference(rulesOf("2020-12")) };

/** The validators of schemas. Each is stored with the schema's text, because a host may change the schema object. */
const made = new WeakMap<JsonObject, { text: string; validator: Validator }>();

/** Makes a validator for a schema of draft 7 or 2020-12. Throws an FmError (INVALID_REQUEST) for an invalid schema. */
export function validatorOf(schema: JsonObject): Validator {
  if (!isObject(schema)) throw noSchema("it must be an object");
  const text = textOf(schema);
  const known = made.get(schema);
  if (known?.text === text) return known.validator;
  // Makes a copy, because the library changes the schema.
  const validator = make(JSON.parse(text) as Schema);
  made.set(schema, { text, validator });
  return validator;
}

function textOf(schema: JsonObject): string {
  try {
    return JSON.stringify(schema);
  } catch (error) {
    throw noSchema("it is not JSON", error);
  }
}

function noSchema(why: string, cause?: unknown): FmError {
  const what = `The parameter 'schema' is not a JSON schema: ${why}.`;
  return new FmError("INVALID_REQUEST", what, { openai: { param: "schema" }, cause });
}

function make(schema: Schema): Validator {
  const draft = /draft-0[67]/.test(String(schema.$schema ?? "")) ? "7" : "2020-12";
  const wrong = whatIsWrong(schema, rulesOf(draft), "2020-12", LOOKUPS[draft]);
  if (wrong !== null) throw noSchema(`${wrong.place === "" ? "" : `at ${wrong.place}: `}${wrong.error}`);
  const lookup = resolve(schema);
  return (value) => {
    const fault = whatIsWrong(value, schema, draft, lookup);
    return fault && `The value${fault.place === "" ? "" : ` at ${fault.place}`} does not fit the schema: ${fault.error}.`;
  };
}

/** All subschemas, by their addresses. Throws for a reference to a schema that does not exist, and for an invalid pattern. */
function resolve(schema: Schema): Lookup {
  try {
    const lookup = dereference(schema);
    for (const each of Object.values(lookup)) {
      if (!isObject(each)) continue;
      const { pattern, patternProperties, $ref, __absolute_ref__: to } = each as Schema;
      for (const text of [pattern ?? "", ...Object.keys(patternProperties ?? {})]) new RegExp(text, "u");
      if (to !== undefined && lookup[to] === undefined) throw new Error(`there is nothing at $ref ${JSON.stringify($ref)}`);
    }
    return lookup;
  } catch (error) {
    throw noSchema(messageOf(error), error);
  }
}

/** Describes the innermost fault and its place, a JSON pointer. Throws for a schema with an endless reference to itself. */
function whatIsWrong(value: unknown, schema: Schema, draft: Draft, lookup: Lookup): { place: string; error: string } | null {
  try {
    const { valid, errors } = validate(value, schema, draft, lookup);
    if (valid) return null;
    const { instanceLocation = "#", keyword, error = "" } = errors.at(-1) ?? {};
    return { place: instanceLocation.slice(1), error: keyword === "false" ? "nothing may be there" : error.replace(/\.$/, "") };
  } catch (error) {
    throw noSchema(messageOf(error), error);
  }
}
