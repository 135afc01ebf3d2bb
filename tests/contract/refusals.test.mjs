// Every operation of the management API refuses requests that /openapi.json does not allow: with a status and an error, and
// without any effect.
// The requests are the valid ones of calls.mjs, each with one mistake derived from the document: a member that is missing
// or of another type, a body that is not JSON or too large, an id that is unknown or of another project.
//
// tests/integration has the tables of values for each operation.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { keys, startGateway } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";
import { Worker } from "../support/js/worker_calls.mjs";
import { calls } from "./calls.mjs";
import { Document } from "./document.mjs";

const gateway = await startGateway({ options: ["--user-organizations", "50"] });
const document = new Document((await gateway.get("/openapi.json", { key: null })).json);
after(() => gateway.stop());

const areas = new Set(["runs", "batches", "tokens", "packets", "schedules", "queues", "envvars", "projects", "waitpoints"]);
// The body of a token's own address completes it: any JSON.
const operations = document.operations.filter(({ path, tags }) => path.startsWith("/api/") && areas.has(tags[0]) && !path.includes("/callback/"));

/** Makes the valid requests of calls.mjs in a project: { w, good: by operation }. */
async function record({ ref, dev: key, prod, pat }) {
  const good = new Map(), w = { ref, pat, prod, gateway };
  const call = async (method, target, body, { wrong, ...more } = {}) => {
    const all = { key, ...more }, reply = await gateway.http.request(method, target, { body, ...all });
    const { operationId } = document.find(method, target);
    if (reply.status < 300 && !wrong) good.set(operationId, [...good.get(operationId) ?? [], { method, target, body, more: all }]);
    return reply;
  };
  for (const method of ["get", "delete"]) w[method] = (target, more) => call(method.toUpperCase(), target, undefined, more);
  for (const method of ["post", "put", "patch"]) w[method] = (target, body, more) => call(method.toUpperCase(), target, body, more);
  w.link = async () => (await runProgram(["dashboard", "--data", gateway.data])).stdout.trim().split("#signin=")[1];
  w.makeRun = async (options = {}, more) => (await w.post("/api/v1/tasks/hello/trigger", { payload: "{}", options: { tags: ["a"], ...options } }, more)).json.id;
  await Worker.register(gateway, { tasks: ["hello", { id: "tick", triggerSource: "schedule" }], key, ref });
  w.run = await w.makeRun({ metadata: { step: 1 }, ttl: "1h", concurrencyKey: "k" });
  w.done = await w.makeRun();
  await w.post(`/api/v2/runs/${w.done}/cancel`, {});
  w.ends = [w.done];
  w.batch = (await w.post("/api/v1/tasks/batch", { items: [{ task: "hello", payload: "{}" }] })).json.id;
  good.clear();
  for (const { operationId } of operations) await calls[operationId](w);
  return { w, good };
}

/** Another user's project: { ref, dev, prod, pat }. */
async function foreignProject() {
  const runCommand = async (...words) => {
    const { code, stdout, all } = await runProgram([...words, "--data", gateway.data]);
    assert.equal(code, 0, all);
    return stdout;
  };
  const ref = "proj_zzzzzzzzzzzzzzzzzzzz";
  await runCommand("org", "create", "Others");
  const made = await runCommand("project", "create", "Theirs", "--org", "others", "--ref", ref);
  await runCommand("user", "create", "Bob", "--email", "bob@example.com", "--org", "others");
  const pat = (await runCommand("token", "create", "--user", "bob@example.com")).trim();
  return { ref, pat, dev: /tr_dev_\w+/.exec(made)[0], prod: /tr_prod_\w+/.exec(made)[0] };
}

let ours, theirs, others;
before(async () => {
  others = await foreignProject();
  [theirs, ours] = [await record(others), await record(keys)];
});

/** Returns all state that a refused call might have changed, in both projects. */
async function everything() {
  const texts = [];
  for (const [{ ref, dev, prod, pat }, { w }] of [[keys, ours], [others, theirs]]) {
    const project = `/api/v1/projects/${ref}`, page = "page[size]=100";
    const asks = [dev, prod].flatMap((key) => [`runs?${page}`, "queues?perPage=100", `bulk-actions?${page}`, "schedules?perPage=100", `waitpoints/tokens?${page}`].map((what) => [key, `/api/v1/${what}`]));
    for (const env of ["dev", "staging", "prod", "preview"]) asks.push([pat, `${project}/envvars/${env}`]);
    for (const what of ["/branches", `/runs?${page}`, ""]) asks.push([pat, project + what]);
    for (const id of [w.run, w.done]) asks.push([dev, `/api/v3/runs/${id}`], [dev, `/api/v1/runs/${id}/events`]);
    for (const [key, target] of [...asks, [dev, `/api/v2/batches/${w.batch}`]]) {
      const { status, text } = await gateway.get(target, { key });
      assert.equal(status, 200, `${target}: ${text}`);
      texts.push(`${target} ${text.replace(/"waitingFor":\{[^{}]*\},/, "")}`); // its reason may change with time alone
    }
  }
  return texts;
}

// ---- mistakes ----

const notUtf8 = Buffer.from('{"a":"\xff\xfe"}', "latin1");
const bodies = [["an empty body", ""], ["malformed JSON", "{"], ["half an object", '{"a":'], ["invalid UTF-8", notUtf8], ["half a byte order mark", Buffer.from([0xef, 0xbb, 0x7b, 0x7d])],
  ["an array", "[]"], ["a string", '"x"'], ["null", "null"], ["a member twice", '{"a":1,"a":1}'], ["too deep", "[".repeat(2_000)]];
const wrongValues = [5, -1.5, true, "x\u0000", {}, [], [[]], null];

/** Each member of the body, also of nested objects, left out and as another type: [what, body]. */
function* changed(body, path = []) {
  const at = path.reduce((value, name) => value[name], body);
  if (typeof at !== "object" || at === null) return;
  for (const name of Object.keys(at)) {
    for (const other of [undefined, ...wrongValues]) {
      const copy = structuredClone(body), place = path.reduce((value, part) => value[part], copy);
      if (other === undefined) delete place[name]; else place[name] = other;
      yield [`${[...path, name].join(".")} ${other === undefined ? "missing" : `= ${JSON.stringify(other)}`}`, copy];
    }
    yield* changed(body, [...path, name]);
  }
}

/** The validator of the operation's body; undefined: it has no body, or one that is not JSON. */
function validator(operation) {
  const schema = operation.requestBody?.content?.["application/json"]?.schema;
  return schema && document.ajv.getSchema(`doc#${encodeURI(`${operation.pointer}/requestBody/content/application~1json/schema`)}`);
}

function* mistakesOfBody(operation, { body }) {
  const validate = validator(operation);
  if (!validate) return;
  for (const [what, text] of bodies) {
    if (text === "" && validate({})) continue;
    if (what === "a member twice" && operation.operationId === "update_run_metadata_v1") continue; // the body is too large to look for one
    yield [what, text, [400]];
  }
  const most = Number(/At most (\d+) bytes/.exec(operation.requestBody.description)[1]);
  yield ["too large", JSON.stringify({ a: "x".repeat(most) }), [413]];
  if (typeof body === "object") for (const [what, wrong] of changed(body)) if (!validate(wrong)) yield [what, wrong, [400, 413, 422]];
}

/** Each parameter of the path replaced by an unknown value: [what, target]. */
function* mistakesOfPath(operation, { target }) {
  const [path, query] = target.split("?"), names = operation.path.split("/"), parts = path.split("/");
  for (const [i, name] of names.entries()) {
    if (!name.startsWith("{") || ["{taskId}", "{name}"].includes(name)) continue; // any value is valid, or it has tests of its own
    for (const [what, wrong] of [["unknown", parts[i].replace(/[^_]{3,}$/, "1".repeat(21))], ["of another kind", "nothing"], ["with a zero byte", `${parts[i]}%00`],
      ["not UTF-8", "%ff"], ["empty", ""], ["too long", "1".repeat(3000)]]) {
      const changed = [...parts];
      changed[i] = wrong;
      yield [`${name} ${what}`, changed.join("/") + (query ? `?${query}` : "")];
    }
  }
}

function* mistakesOfQuery(operation, { target }) {
  for (const { in: where, name, schema } of operation.parameters ?? []) {
    if (where !== "query") continue;
    const values = ["%ff", "%zz"];
    if (schema.type === "integer" || schema.minimum !== undefined) values.push("x", "0", "-1", "1.5", "%00");
    if (schema.enum) values.push("nothing", "%00");
    for (const value of values) yield [`${name}=${value}`, `${target.split("?")[0]}?${encodeURIComponent(name)}=${value}`];
  }
}

/** The responses for ids of another project, and for unknown ones. */
async function foreignAndUnknown(operation, { method, target, body, more }) {
  const names = operation.path.split("/"), parts = target.split("?")[0].split("/");
  const other = theirs.good.get(operation.operationId).at(-1).target.split("?")[0].split("/");
  const drawn = parts.map((part, i) => names[i]?.startsWith("{") && /^[a-z]+_[a-z1-9]{20,21}$/.test(part));
  const say = async (ids) => {
    const { status, text } = await gateway.http.request(method, parts.map((part, i) => drawn[i] ? ids[i] : part).join("/"), { body, ...more });
    return ids.reduce((normalized, id, i) => drawn[i] ? normalized.replaceAll(id, "ID") : normalized, `${status} ${text}`);
  };
  if (!drawn.includes(true)) return [];
  return [await say(other), await say(parts.map((part) => part.replace(/[^_]+$/, (end) => "1".repeat(end.length))))];
}

async function refused(operation, { method, more }, what, target, body, statuses) {
  const reply = await gateway.http.request(method, target, { body, ...more });
  const description = `${operation.operationId}, ${what}: ${reply.status} ${reply.text.slice(0, 200)}`;
  assert.ok(statuses.includes(reply.status), description);
  assert.ok(typeof reply.json?.error === "string" && reply.json.error.length > 3, description);
}

for (const operation of operations)
  test(`${operation.operationId} refuses invalid requests, and they have no effect`, async () => {
    const requests = (ours.good.get(operation.operationId) ?? []).filter(({ body }) => (JSON.stringify(body) ?? "").length < 2000);
    assert.ok(requests.length, "no good call in calls.mjs");
    const before = await everything(), found = [], one = requests.at(-1);
    const check = (...all) => refused(operation, one, ...all).catch((error) => { found.push(error.message); });
    for (const [what, target] of mistakesOfPath(operation, one)) await check(what, target, one.body, [400, 401, 404, 405, 422]);
    for (const [what, target] of mistakesOfQuery(operation, one)) await check(what, target, one.body, [400]);
    const [foreign, unknown] = await foreignAndUnknown(operation, one);
    if (foreign !== unknown || foreign?.startsWith("2")) found.push(`of somebody else: ${foreign}, not ${unknown}`);
    const bodies = new Map(requests.map((request) => [JSON.stringify(request.body), request]));
    for (const request of bodies.values())
      for (const [what, body, statuses] of mistakesOfBody(operation, request)) await check(what, request.target, body, statuses);
    assert.deepEqual(found, []);
    assert.deepEqual(await everything(), before);
  });
