// JSON schemas checked by ajv. The build puts ajv into this file.
import { Ajv, type ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import { FmError } from "./errors.js";
import type { JsonObject } from "./types.js";

/** Tells what is wrong with a value, in one sentence; null: nothing. */
export type Validator = (value: unknown) => string | null;

const compiled = new WeakMap<JsonObject, Validator>();

/** A validator for a schema of draft 7 or 2020-12. Throws an FmError (INVALID_REQUEST) for what is no schema. */
export function validatorOf(schema: JsonObject): Validator {
  const known = compiled.get(schema);
  if (known !== undefined) return known;
  const validator = compile(schema);
  compiled.set(schema, validator);
  return validator;
}

function compile(schema: JsonObject): Validator {
  const Draft = /draft-0[67]/.test(String(schema["$schema"] ?? "")) ? Ajv : Ajv2020;
  let validate: ValidateFunction;
  try {
    validate = new Draft({ strict: false, validateFormats: false, logger: false }).compile(schema);
  } catch (error) {
    const what = `The parameter 'schema' is not a JSON schema: ${(error as Error).message}.`;
    throw new FmError("INVALID_REQUEST", what, { openai: { param: "schema" }, cause: error });
  }
  return (value) => {
    if (validate(value)) return null;
    const { instancePath = "", message = "does not fit" } = validate.errors?.[0] ?? {};
    return `${instancePath === "" ? "The value" : `The value at ${instancePath}`} ${message}.`;
  };
}
