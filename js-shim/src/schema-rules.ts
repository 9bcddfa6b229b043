// The schemas that check JSON schemas themselves, for draft 7 and for 2020-12.

/** References to this schema itself, for keywords that take one schema or several. */
const SCHEMA = { $ref: "#" };
const SCHEMAS = { type: "array", items: SCHEMA, minItems: 1 };
const NAMED_SCHEMAS = { type: "object", additionalProperties: SCHEMA };
const COUNT = { type: "integer", minimum: 0 };
const TEXT = { type: "string" };
const FLAG = { type: "boolean" };
const TEXTS = { type: "array", items: TEXT, uniqueItems: true };
const NUMBER = { type: "number" };
const TYPE = { enum: ["array", "boolean", "integer", "null", "number", "object", "string"] };
/** The rule that refuses keywords that this check does not support. They would change the meaning of a schema. */
const UNSUPPORTED = false;

const COMMON = {
  $id: TEXT,
  $schema: TEXT,
  $ref: TEXT,
  $async: { const: false },
  $dynamicRef: UNSUPPORTED,
  $recursiveRef: UNSUPPORTED,
  definitions: NAMED_SCHEMAS,
  type: { anyOf: [{ type: "array", items: TYPE, minItems: 1, uniqueItems: true }, TYPE] },
  enum: { type: "array" },
  allOf: SCHEMAS,
  anyOf: SCHEMAS,
  oneOf: SCHEMAS,
  not: SCHEMA,
  if: SCHEMA,
  then: SCHEMA,
  else: SCHEMA,
  properties: NAMED_SCHEMAS,
  patternProperties: NAMED_SCHEMAS,
  additionalProperties: SCHEMA,
  propertyNames: SCHEMA,
  dependencies: { type: "object", additionalProperties: { anyOf: [SCHEMA, TEXTS] } },
  required: TEXTS,
  minProperties: COUNT,
  maxProperties: COUNT,
  contains: SCHEMA,
  minItems: COUNT,
  maxItems: COUNT,
  uniqueItems: FLAG,
  minLength: COUNT,
  maxLength: COUNT,
  pattern: TEXT,
  format: TEXT,
  minimum: NUMBER,
  maximum: NUMBER,
  exclusiveMinimum: NUMBER,
  exclusiveMaximum: NUMBER,
  multipleOf: { type: "number", exclusiveMinimum: 0 },
};

const schemaOf = (properties: object) => ({ type: ["object", "boolean"], properties });

export const RULES = {
  "7": schemaOf({ ...COMMON, items: { anyOf: [SCHEMA, SCHEMAS] }, additionalItems: SCHEMA }),
  "2020-12": schemaOf({
    ...COMMON,
    $defs: NAMED_SCHEMAS,
    $anchor: TEXT,
    prefixItems: SCHEMAS,
    items: SCHEMA,
    unevaluatedItems: SCHEMA,
    unevaluatedProperties: SCHEMA,
    dependentSchemas: NAMED_SCHEMAS,
    dependentRequired: { type: "object", additionalProperties: TEXTS },
    minContains: COUNT,
    maxContains: COUNT,
  }),
} as const;
