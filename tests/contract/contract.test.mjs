// The gateway does what /openapi.json says: the document passes a linter, and every operation in it is called, with
// responses checked against the documented schemas.
import assert from "node:assert/strict";
import http from "node:http";
import { after, before, test } from "node:test";

import { keys, startGateway } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";
import { Worker } from "../support/js/worker_calls.mjs";
import { calls, deploymentOptions, metricsToken } from "./calls.mjs";
import { Document, lint } from "./document.mjs";

/** More runs execute at once than dev would allow on a machine with two cores. */
const options = ["--user-organizations", "50", "--dev-concurrency", "100", ...deploymentOptions];
const gateway = await startGateway({ options, env: { RUNCAST_METRICS_TOKEN: metricsToken } });
const text = (await gateway.get("/openapi.json", { key: null })).text;
const document = new Document(JSON.parse(text));
const succeeded = new Set();
after(() => gateway.stop());

// ---- the document ----

test("the linter finds nothing", async () => {
  const problems = await lint(text);
  // A WebSocket begins with 101: it has no 2xx.
  const isSocket = ({ rule, where }) => rule === "operation-2xx-response" && /~1realtime~1v1~1ws\/|~1socket\.io~1\//.test(where);
  const isOfOthers = ({ rule, where }) => rule === "no-path-trailing-slash" && where === "#/paths/~1socket.io~1"; // Socket.IO's path
  assert.deepEqual(problems.filter((problem) => !isSocket(problem) && !isOfOthers(problem)), [],
    "an unresolved $ref is a type without a row in schemas of its area (src/api/request/route.h)");
});

test("version, names and paths are those that Trigger.dev has published", () => {
  const { info, openapi, paths, components } = document.json;
  assert.equal(openapi, "3.1.0");
  assert.equal(info.version, "2024-04");
  const { operationId, tags, responses } = paths["/api/v1/timezones"].get;
  assert.deepEqual([operationId, tags], ["get_timezones_v1", ["schedules"]]);
  assert.deepEqual(responses[200].content["application/json"].schema, { $ref: "#/components/schemas/GetTimezonesResult" });
  assert.ok(components.schemas.GetTimezonesResult);
  assert.ok(components.headers["x-ignored-members"]);
  for (const [path, method, status] of [["/api/v1/tasks/{taskId}/trigger", "post", 200], ["/api/v1/runs", "get", 200], ["/api/v3/batches/{batchId}/items", "post", 200]])
    assert.ok(paths[path][method].responses[status].headers["x-ignored-members"], path);
  const variables = "/api/v1/projects/{projectRef}/envvars/{env}", schedule = "/api/v1/schedules/{id}", queue = "/api/v1/queues/{queueParam}", limit = "/api/v1/concurrency-limits/{name}";
  const specified = {
    "/api/v1/tasks/{taskId}/trigger": "post", "/api/v1/tasks/batch": "post", "/api/v2/tasks/batch": "post", "/api/v3/batches": "post",
    "/api/v3/batches/{batchId}/items": "post", "/api/v1/batches/{batchId}": "get", "/api/v2/batches/{batchId}": "get", "/api/v1/batches/{batchId}/results": "get",
    "/api/v1/runs": "get", "/api/v1/projects/{projectRef}/runs": "get", "/api/v3/runs/{runId}": "get", "/api/v2/runs/{runId}/cancel": "post",
    "/api/v1/runs/{runId}/replay": "post", "/api/v1/runs/{runId}/reschedule": "post", "/api/v1/runs/{runId}/result": "get", "/api/v1/runs/{runId}/tags": "post",
    "/api/v1/runs/{runId}/metadata": "get put", "/api/v1/idempotencyKeys/{key}/reset": "post",
    [variables]: "get post", [`${variables}/import`]: "post", [`${variables}/{name}`]: "get put delete",
    "/api/v1/schedules": "get post", [schedule]: "get put delete", [`${schedule}/activate`]: "post", [`${schedule}/deactivate`]: "post", "/api/v1/timezones": "get",
    "/api/v1/queues": "get", [queue]: "get", [`${queue}/pause`]: "post", [`${queue}/concurrency/override`]: "post", [`${queue}/concurrency/reset`]: "post",
    "/api/v1/concurrency-limits": "get", [limit]: "get", [`${limit}/override`]: "post", [`${limit}/reset`]: "post", [`${limit}/pause`]: "post",
    "/api/v1/auth/jwt/claims": "post", "/api/v1/auth/public-tokens": "post", "/api/v2/packets/{name}": "put", "/api/v1/packets/{name}": "get put",
    "/api/v1/bulk-actions": "get post", "/api/v1/bulk-actions/{id}": "get", "/api/v1/bulk-actions/{id}/abort": "post",
  };
  for (const [path, methods] of Object.entries(specified))
    for (const method of methods.split(" ")) assert.ok(paths[path]?.[method], `${method} ${path}`);
});

test("every operation has a call in calls.mjs, and nothing else has one", () => {
  const ids = document.operations.map(({ operationId }) => operationId);
  assert.deepEqual(ids.filter((id) => !calls[id]), [], "operations without a call in tests/contract/calls.mjs");
  assert.deepEqual(Object.keys(calls).filter((id) => !ids.includes(id)), [], "calls without an operation");
  assert.equal(new Set(ids).size, ids.length, "no operation id is used twice");
  const tags = new Set(document.json.tags.map(({ name }) => name));
  assert.deepEqual(document.operations.flatMap((one) => one.tags).filter((tag) => !tags.has(tag)), [], "tags without a row in tags of src/api/router/openapi.c");
});

test("the credentials are those that the gateway requires", async () => {
  for (const { path, method, security, operationId } of document.operations) {
    if (method !== "GET" || !security.length) continue;
    const target = path.replaceAll(/\{\w+\}/g, "x");
    document.check(method, target, await gateway.http.request(method, target, { key: null }));
    assert.equal((await gateway.http.request(method, target, { key: "tr_dev_nonsense" })).status, 401, operationId);
  }
});

// ---- the calls ----

const w = { gateway, ref: keys.ref, pat: keys.pat, prod: keys.prod, staging: keys.staging };

async function call(method, target, body, { wrong, ...more } = {}) {
  if (typeof body !== "string" && !wrong) document.checkBody(method, target, body);
  const reply = await gateway.http.request(method, target, { body, ...more });
  const { operationId } = document.check(method, target, reply);
  if (reply.status < 300) succeeded.add(operationId);
  return reply;
}
/** The code of a one-time link. */
w.link = async () => (await runProgram(["dashboard", "--data", gateway.data])).stdout.trim().split("#signin=")[1];
for (const method of ["get", "head", "delete"]) w[method] = (target, more) => call(method.toUpperCase(), target, undefined, more);
for (const method of ["post", "put", "patch"]) w[method] = (target, body, more) => call(method.toUpperCase(), target, body, more);

/** Bytes, unchanged. */
w.send = async (method, target, body, more) => {
  const reply = await gateway.http.request(method, target, { body, ...more });
  const { operationId } = document.check(method, target, reply);
  if (reply.status < 300) succeeded.add(operationId);
};

/** Requests a response that never ends; resolves with its head. */
function begun(target, headers = {}) {
  return new Promise((resolve, reject) => {
    const request = http.get(gateway.url + target, { headers: { authorization: `Bearer ${keys.dev}`, ...headers } });
    const checked = (response) => {
      request.destroy();
      const { operationId } = document.check("GET", target, { status: response.statusCode, headers: response.headers });
      succeeded.add(operationId);
      resolve();
    };
    request.on("response", (response) => { try { checked(response); } catch (error) { reject(error); } });
    request.on("upgrade", (response, socket) => { socket.destroy(); try { checked(response); } catch (error) { reject(error); } });
    request.on("error", reject);
  });
}
w.begun = (target) => begun(target);
w.upgrade = (target) => begun(target, { connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13", "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==", "sec-websocket-protocol": "runs.v1.json" });

w.makeRun = async (options = {}, more) => (await w.post("/api/v1/tasks/hello/trigger", { payload: "{}", options: { tags: ["a"], ...options } }, more)).json.id;
w.dequeue = async () => { await w.makeRun(); const attempt = await w.worker.dequeue(); assert.ok(attempt); return attempt; };

before(async () => {
  w.worker = await Worker.register(gateway, { tasks: ["hello", { id: "tick", triggerSource: "schedule" }], concurrencyLimits: [{ name: "shared", total: 3 }] });
  await Worker.register(gateway, { tasks: ["hello"], key: keys.prod });
  w.workerToken = (await runProgram(["worker-token", "create", "--data", gateway.data])).stdout.trim();
  const completed = await (await w.dequeue()).start();
  await completed.succeed({ a: 1 });
  const failed = await (await w.dequeue()).start();
  await failed.fail();
  const canceled = await w.makeRun();
  await w.post(`/api/v2/runs/${canceled}/cancel`, {});
  const executing = await (await w.dequeue()).start();
  w.ends = [completed.id, failed.id, canceled];
  w.run = await w.makeRun({ metadata: { step: 1 }, ttl: "1h", concurrencyKey: "k" });
  const child = await w.post("/api/v1/tasks/hello/trigger", { options: { parentRunId: executing.id } });
  w.ends.push(executing.id, child.json.id);
  w.batch = (await w.post("/api/v1/tasks/batch", { items: [{ task: "hello", payload: "{}" }] })).json.id;
  for (const id of [w.run, child.json.id]) await w.get(`/api/v3/runs/${id}`);
});

for (const { operationId, summary } of document.operations)
  test(`${operationId} answers as documented`, async () => {
    assert.ok(calls[operationId], "no call in calls.mjs");
    await calls[operationId](w);
    assert.equal(succeeded.has(operationId), !summary.startsWith("Refused:"), "whether it ever succeeded");
  });
