// snippets.js - code that triggers the same run from a shell or a program.
import { gatewayUrl } from "./base.js";

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** JSON in Python's syntax. */
function python(value, indent = "") {
  if (value === null || value === undefined) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  const inner = `${indent}    `;
  if (Array.isArray(value)) return value.length ? `[\n${value.map((one) => `${inner}${python(one, inner)},\n`).join("")}${indent}]` : "[]";
  if (typeof value === "object") {
    const entries = Object.entries(value);
    return entries.length ? `{\n${entries.map(([name, one]) => `${inner}${JSON.stringify(name)}: ${python(one, inner)},\n`).join("")}${indent}}` : "{}";
  }
  return JSON.stringify(value);
}

/** Returns [name, text] for each language: code that triggers such a run. The task's own queue is its default. */
export function snippetsOf({ taskIdentifier, payload, tags, queue: itsQueue }, origin = gatewayUrl) {
  const queue = itsQueue === `task/${taskIdentifier}` ? undefined : itsQueue;
  const options = { ...tags?.length && { tags }, ...queue && { queue: { name: queue } } }, hasOptions = Object.keys(options).length > 0;
  const body = { payload, ...hasOptions && { options } }, path = `/api/v1/tasks/${encodeURIComponent(taskIdentifier)}/trigger`;
  const sdkOptions = { ...tags?.length && { tags }, ...queue && { queue } };
  return [
    ["curl", `curl "${origin}${path}" \\\n  -H "Authorization: Bearer $TRIGGER_SECRET_KEY" \\\n  -H "Content-Type: application/json" \\\n  -d ${quoted(JSON.stringify(body))}`],
    ["SDK", `import { tasks } from "@trigger.dev/sdk";\n\nawait tasks.trigger(${JSON.stringify(taskIdentifier)}, ${JSON.stringify(payload, null, 2) ?? "undefined"}${Object.keys(sdkOptions).length ? `, ${JSON.stringify(sdkOptions, null, 2)}` : ""});`],
    ["Python", `import json, os, urllib.request\n\nbody = ${python(body)}\nrequest = urllib.request.Request(\n    ${JSON.stringify(origin + path)},\n    json.dumps(body).encode(),\n    {"Authorization": f"Bearer {os.environ['TRIGGER_SECRET_KEY']}", "Content-Type": "application/json"},\n)\nprint(json.load(urllib.request.urlopen(request))["id"])`],
  ];
}

/** The command that deploys to an environment. */
export const deployCommand = ({ env, branch }) => `npx trigger.dev@4.8.3 deploy${env === "prod" ? "" : ` --env ${env}`}${branch ? ` --branch=${quoted(branch)}` : ""}`;
