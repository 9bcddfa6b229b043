// JSON schemas checked by ajv. The build puts ajv into this file.
import { Ajv, type ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import { FmError } from "./errors.js";
import type { JsonObject } from "./types.js";
import { isObject } from "./types.js";

/** Tells what is wrong with a value, in one sentence; null: nothing. */
export type Validator = (value: unknown) => string | null;

/** Validators, each with the text of the schema that it was made of: a host may change the object. */
const compiled = new WeakMap<JsonObject, { text: string; validator: Validator }>();

/** A validator for a schema of draft 7 or 2020-12. Throws an FmError (INVALID_REQUEST) for what is no schema. */
export function validatorOf(schema: JsonObject): Validator {
  if (!isObject(schema)) throw noSchema("it must be an object");
  const text = textOf(schema);
  const known = compiled.get(schema);
  if (known?.text === text) return known.validator;
  const validator = compile(schema);
  compiled.set(schema, { text, validator });
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

function compile(schema: JsonObject): Validator {
  const Draft = /draft-0[67]/.test(String(schema["$schema"] ?? "")) ? Ajv : Ajv2020;
  // ajv's own: such a schema answers with a Promise, whatever the value is.
  if (Boolean(schema["$async"])) throw noSchema("$async is not supported");
  let validate: ValidateFunction;
  try {
    validate = new Draft({ strict: false, validateFormats: false, logger: false }).compile(schema);
  } catch (error) {
    throw noSchema((error as Error).message, error);
  }
  return (value) => {
    if (validate(value)) return null;
    const { instancePath = "", message = "does not fit" } = validate.errors?.[0] ?? {};
    return `${instancePath === "" ? "The value" : `The value at ${instancePath}`} ${message}.`;
  };
}
