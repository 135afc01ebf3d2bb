// schema.js - uses the JSON schema of a task: makes an example, and finds problems of a payload.
//
// Only common keywords are evaluated, since the task itself validates its payload. Users deploy schemas, so a
// schema may be any value: keywords of a wrong type are ignored, and so is the rest after stepsMax steps.
const stepsMax = 2000, depthMax = 12, exampleMax = 50_000;

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const listOf = (value) => Array.isArray(value) ? value : [];
const membersOf = (value) => isObject(value) ? Object.entries(value) : [];
const textOf = (value) => typeof value === "string" ? value : "";
const numberOf = (value) => typeof value === "number" ? value : undefined;
const textsOf = (value) => listOf(value).filter((one) => typeof one === "string");
const typeOf = (value) => value === null ? "null" : Array.isArray(value) ? "array" : typeof value === "number" ? (Number.isInteger(value) ? "integer" : "number") : typeof value;
const typesOf = ({ type }) => textsOf([type].flat());

/** One walk through a schema. */
class Walk {
  steps = 0;

  constructor(root) { this.root = root; }

  /** Follows the references of a schema; returns undefined if the walk is too long or too deep. */
  enter(given, depth) {
    let schema = given;
    if (this.steps > stepsMax) return undefined;
    for (let hops = 0; isObject(schema) && typeof schema.$ref === "string" && schema.$ref.startsWith("#/") && hops < depthMax; hops++) {
      const path = schema.$ref.slice(2).split("/").map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
      schema = path.reduce((at, name) => at !== null && typeof at === "object" && Object.hasOwn(at, name) ? at[name] : undefined, this.root);
    }
    return ++this.steps <= stepsMax && isObject(schema) && depth <= depthMax ? schema : undefined;
  }
}

const examples = { email: "ada@example.com", uri: "https://example.com", uuid: "00000000-0000-4000-8000-000000000000", date: "2026-01-31", "date-time": "2026-01-31T12:00:00Z" };

function example(walk, given, depth) {
  const schema = walk.enter(given, depth);
  if (!schema) return undefined;
  for (const name of ["default", "const"]) if (schema[name] !== undefined) return schema[name];
  for (const name of ["examples", "enum"]) if (listOf(schema[name]).length) return schema[name][0];
  for (const name of ["anyOf", "oneOf", "allOf"]) if (listOf(schema[name]).length) return example(walk, schema[name][0], depth + 1);
  switch (typesOf(schema)[0] ?? (isObject(schema.properties) ? "object" : undefined)) {
    case "object": {
      const required = schema.required === undefined ? undefined : textsOf(schema.required);
      const members = [];
      for (const [name, member] of membersOf(schema.properties)) {
        if (required && !required.includes(name)) continue;
        if (walk.steps >= stepsMax) break;
        members.push([name, example(walk, member, depth + 1) ?? null]);
      }
      return Object.fromEntries(members);
    }
    case "array": return schema.items ? [example(walk, schema.items, depth + 1) ?? null] : [];
    case "string": return Object.hasOwn(examples, textOf(schema.format)) ? examples[schema.format] : "";
    case "number": case "integer": return numberOf(schema.minimum) ?? (numberOf(schema.exclusiveMinimum) ?? -1) + 1;
    case "boolean": return false;
    default: return null;
  }
}

function problems(walk, given, value, path, depth) {
  const schema = walk.enter(given, depth);
  if (!schema) return [];
  const choices = listOf(schema.anyOf ?? schema.oneOf);
  if (choices.length) return walk.steps > stepsMax || choices.some((one) => !problems(walk, one, value, path, depth + 1).length) ? [] : [`${path} matches none of the allowed schemas`];
  const type = typeOf(value), types = typesOf(schema);
  if (value === undefined) return [`${path} is missing`];
  if (types.length && !types.includes(type) && !(type === "integer" && types.includes("number"))) return [`${path} should be ${types.join(" or ")}, not ${type}`];
  const allowed = listOf(schema.enum);
  if (allowed.length && !allowed.some((one) => JSON.stringify(one) === JSON.stringify(value))) return [`${path} should be one of ${allowed.map((one) => JSON.stringify(one)).join(", ")}`];
  const found = [];
  if (type === "object") {
    const members = membersOf(schema.properties), known = new Set(members.map(([name]) => name));
    for (const name of textsOf(schema.required)) if (!Object.hasOwn(value, name)) found.push(`${path}.${name} is missing`);
    for (const [name, member] of members) if (Object.hasOwn(value, name)) found.push(...problems(walk, member, value[name], `${path}.${name}`, depth + 1));
    if (schema.additionalProperties === false) for (const name of Object.keys(value)) if (!known.has(name)) found.push(`${path}.${name} is not in the schema`);
  } else if (type === "array") {
    value.slice(0, 100).forEach((one, at) => found.push(...problems(walk, schema.items, one, `${path}[${at}]`, depth + 1)));
  } else if (type === "string") {
    if (numberOf(schema.minLength) > value.length) found.push(`${path} should have at least ${schema.minLength} characters`);
    if (numberOf(schema.maxLength) < value.length) found.push(`${path} should have at most ${schema.maxLength} characters`);
    if (schema.format === "email" && !/^[^@\s]+@[^@\s]+$/.test(value)) found.push(`${path} should be an email address`);
  } else if (type === "integer" || type === "number") {
    if (numberOf(schema.minimum) > value) found.push(`${path} should be at least ${schema.minimum}`);
    if (numberOf(schema.maximum) < value) found.push(`${path} should be at most ${schema.maximum}`);
  }
  return found;
}

/** A valid value for a schema; undefined if it would be too long to edit. */
export function exampleOf(schema) {
  const value = example(new Walk(schema), schema, 0);
  return JSON.stringify(value)?.length > exampleMax ? undefined : value;
}

/** Returns a sentence for each part of the payload that does not match. */
export const problemsOf = (schema, value) => problems(new Walk(schema), schema, value, "payload", 0);
