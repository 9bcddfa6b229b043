// A model that follows a script, and only does what a schema allows: it replaces the agents' models.

// The parameters from a model that follows `schema` and wants `wanted`: all required members, null for those that it does not
// want.
export function say(schema, wanted) {
  const left = new Set(Object.keys(wanted));
  const said = {};
  for (const [name, property] of Object.entries(schema.properties)) {
    if (left.delete(name)) said[name] = fit(property, wanted[name]);
    else if (schema.required?.includes(name)) said[name] = fit(property, null);
  }
  if (left.size > 0) throw new Error(`the schema has no ${[...left]}`);
  return said;
}

function fit(schema, value) {
  const forms = schema.anyOf ?? [schema];
  const form = forms.find(({ type }) => [type].flat().includes(typeOf(value)));
  if (form === undefined) throw new Error(`the schema lets nobody say ${JSON.stringify(value)}: ${JSON.stringify(schema)}`);
  if (form.enum && !form.enum.includes(value)) throw new Error(`${JSON.stringify(value)} is none of ${form.enum}`);
  if (Array.isArray(value)) return value.map((item) => fit(form.items, item));
  return typeOf(value) === "object" ? say(form, value) : value;
}

function typeOf(value) {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return Number.isInteger(value) ? "integer" : typeof value;
}

// The objects in a schema, and the schema itself.
export function objectsOf(schema) {
  if (schema === null || typeof schema !== "object") return [];
  const inner = Object.values(schema).flatMap(objectsOf);
  return schema.properties ? [schema, ...inner] : inner;
}
