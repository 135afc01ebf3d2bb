// Calls that are repeated after another call, as by a client whose response was lost: request keys k1,
// k2, k1 have two effects, and the third response equals the first.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import fs from "node:fs";
import { after, before, test } from "node:test";

import { Deployer } from "../support/js/deployments.mjs";
import { keys, startGateway } from "../support/js/gateway.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

const hold = { delay: "1h" };
let gateway;
before(async () => {
  gateway = await startGateway({ options: ["--user-projects", "10", "--user-organizations", "10", "--deploy-hold", "1s"] });
  await Worker.register(gateway, { tasks: [{ id: "nightly", triggerSource: "schedule" }] });
});
after(() => gateway.stop());

const asPerson = { key: keys.pat };
const increment = (key = "n") => [{ type: "increment", key, value: 1 }];
const count = async (target, more) => { const { json } = await gateway.get(target, more); return (json.data ?? json).length; };

async function trigger(options = {}) {
  const reply = await gateway.post("/api/v1/tasks/hello/trigger", { payload: 1, options: { ...hold, ...options } });
  assert.equal(reply.status, 200, reply.text);
  return reply.json.id;
}

/** Sends three calls with the keys k1, k2, k1; returns their responses. `send` gets { headers }, and 0, 1, 0. */
async function repeat(send) {
  const ids = [randomUUID(), randomUUID()], answers = [];
  for (const which of [0, 1, 0]) answers.push(await send({ headers: { "x-trigger-request-idempotency-key": ids[which] } }, which));
  return answers;
}

const changes = {
  trigger_task_v1: { send: (more, _which, tag) => gateway.post("/api/v1/tasks/hello/trigger", { payload: 1, options: { ...hold, tags: [tag] } }, more), count: (tag) => count(`/api/v1/runs?filter[tag]=${tag}`) },
  create_batch_v1: { send: (more, _which, tag) => gateway.post("/api/v1/tasks/batch", { items: [{ task: "hello", payload: 1, options: { ...hold, tags: [tag] } }] }, more), count: (tag) => count(`/api/v1/runs?filter[tag]=${tag}`) },
  create_batch_v2: { send: (more, _which, tag) => gateway.post("/api/v2/tasks/batch", { items: [{ task: "hello", payload: 1, options: { ...hold, tags: [tag] } }] }, more), count: (tag) => count(`/api/v1/runs?filter[tag]=${tag}`) },
  create_batch_v3: { send: (more) => gateway.post("/api/v3/batches", { runCount: 1 }, more) },
  replay_run_v1: { begin: (tag) => trigger({ tags: [tag] }), send: (more, _which, _tag, id) => gateway.post(`/api/v1/runs/${id}/replay`, { delay: "1h" }, more), count: async (tag) => await count(`/api/v1/runs?filter[tag]=${tag}`) - 1 },
  create_waitpoint_token_v1: { send: (more) => gateway.post("/api/v1/waitpoints/tokens", {}, more) },
  create_bulk_action_v1: { begin: (tag) => trigger({ tags: [tag] }), send: (more, _which, tag) => gateway.post("/api/v1/bulk-actions", { action: "replay", filter: { tag } }, more), count: () => count("/api/v1/bulk-actions") },
  create_schedule_v1: { send: (more, which) => gateway.post("/api/v1/schedules", { task: "nightly", cron: "0 9 * * *", deduplicationKey: `key-${which}` }, more), count: () => count("/api/v1/schedules") },
  create_org_v1: { send: (more) => gateway.post("/api/v1/orgs", { title: "Mine" }, { ...more, ...asPerson }), count: async () => await count("/api/v1/orgs", asPerson) - 1 },
  create_project_v1: { send: (more) => gateway.post("/api/v1/orgs/my-organization/projects", { name: "Again" }, { ...more, ...asPerson }), count: async () => (await gateway.get("/api/v1/projects", asPerson)).json.filter(({ name }) => name === "Again").length },
};

for (const [call, { begin, send, count: effects }] of Object.entries(changes))
  test(`${call} is executed once for each request key`, async () => {
    const made = await begin?.(call);
    const [first, other, again] = await repeat((more, which) => send(more, which, call, made));
    assert.ok(first.status < 300, first.text);
    assert.equal(again.status, first.status, again.text);
    assert.deepEqual(again.json, first.json);
    assert.notEqual(other.json.id ?? other.json.externalRef, first.json.id ?? first.json.externalRef);
    if (effects) assert.equal(await effects(call), 2);
  });

test("equal request keys of two calls, of two runs or of two environments are different requests", async () => {
  const headers = { "x-trigger-request-idempotency-key": randomUUID() }, [a, b] = [await trigger(), await trigger()];
  const ids = new Set([
    (await gateway.post(`/api/v1/runs/${a}/replay`, hold, { headers })).json.id,
    (await gateway.post(`/api/v1/runs/${b}/replay`, hold, { headers })).json.id,
    (await gateway.post("/api/v1/tasks/hello/trigger", { options: hold }, { headers })).json.id,
    (await gateway.post("/api/v1/tasks/hello/trigger", { options: hold }, { headers, key: keys.prod })).json.id,
  ]);
  assert.equal(ids.size, 4);
});

// A task may have any id: once, it could be spelled like the space of another call's keys.
test("equal request keys of a trigger and of another call are different requests, whatever the id of the task", async () => {
  const mine = () => ({ headers: { "x-trigger-request-idempotency-key": randomUUID() } });
  const post = async (path, body, more) => { const { status, json, text } = await gateway.post(path, body, more); assert.ok(status < 300, text); return json.id ?? json; };
  const start = (task, more) => post(`/api/v1/tasks/${encodeURIComponent(task)}/trigger`, { options: hold }, more);
  const run = await trigger();
  const others = {
    waitpoint: (more) => post("/api/v1/waitpoints/tokens", {}, more),
    "\nbulk": (more) => post("/api/v1/bulk-actions", { action: "replay", runIds: [run] }, more),
    [`\nreplay\n${run}`]: (more) => post(`/api/v1/runs/${run}/replay`, { delay: "1h" }, more),
    "\nbatch v1": (more) => post("/api/v1/tasks/batch", { items: [{ task: "hello", options: hold }] }, more),
    "\nbatch v2": (more) => post("/api/v2/tasks/batch", { items: [{ task: "hello", options: hold }] }, more),
    "\nbatch v3": (more) => post("/api/v3/batches", { runCount: 1 }, more),
  };
  for (const [task, send] of Object.entries(others)) {
    const more = mine(), other = await send(more);
    assert.match(await start(task, more), /^run_/, JSON.stringify(task));
    assert.deepEqual(await send(more), other, JSON.stringify(task));
  }
  const more = mine();
  await start(`metadata\n${run}`, more);
  assert.deepEqual((await gateway.put(`/api/v1/runs/${run}/metadata`, { operations: increment() }, more)).json, { metadata: { n: 1 } });
});

test("a change of metadata counts once in its run, its parent and its root, also after a restart", async (t) => {
  const own = await startGateway({ t }), make = (more) => own.post("/api/v1/tasks/hello/trigger", { options: { ...hold, ...more } });
  const root = (await make()).json.id, id = (await make({ parentRunId: root })).json.id;
  const key = randomUUID(), read = async (run) => (await own.get(`/api/v1/runs/${run}/metadata`)).json.metadata;
  const send = (request) => own.put(`/api/v1/runs/${id}/metadata`, { operations: increment(), parentOperations: increment("p"), rootOperations: increment("r") }, { headers: { "x-trigger-request-idempotency-key": request } });
  assert.deepEqual((await send(key)).json, { metadata: { n: 1 } });
  assert.deepEqual((await send(randomUUID())).json, { metadata: { n: 2 } });
  assert.deepEqual([(await send(key)).json, await read(root)], [{ metadata: { n: 2 } }, { p: 2, r: 2 }]);
  await own.kill();
  await own.restart();
  assert.deepEqual([(await send(key)).json, await read(root)], [{ metadata: { n: 2 } }, { p: 2, r: 2 }]);
  await own.stop();
});

test("simultaneous requests count once each, and their repetitions do not", async () => {
  const id = await trigger(), requests = Array.from({ length: 20 }, () => randomUUID());
  const send = (request) => gateway.put(`/api/v1/runs/${id}/metadata`, { operations: increment() }, { headers: { "x-trigger-request-idempotency-key": request } });
  for (let i = 0; i < 3; i++) for (const { status, text } of await Promise.all([...requests, ...requests].map(send))) assert.equal(status, 200, text);
  assert.deepEqual((await gateway.get(`/api/v1/runs/${id}/metadata`)).json.metadata, { n: 20 });
});

test("a deployment is created once for each request key", async () => {
  const cli = new Deployer(gateway), bodies = [cli.body(await cli.artifact()), cli.body(await cli.artifact())], ids = [randomUUID(), randomUUID()];
  for (const which of [0, 1, 0]) assert.equal((await cli.initialize(bodies[which], { id: ids[which] })).status, 503, "held, and not built");
  assert.equal((await cli.get("/api/v1/deployments")).json.data.length, 2);
});

test("parts and inputs of a stream are written once", async () => {
  const id = await trigger(), path = `/realtime/v1/streams/${id}`;
  for (const part of ["p1", "p2", "p1"]) {
    assert.equal((await gateway.post(`${path}/self/k/append`, part, { headers: { "content-type": "text/plain", "x-part-id": part } })).status, 200);
    assert.equal((await gateway.post(`${path}/input/chat`, { data: part }, { headers: { "x-trigger-request-idempotency-key": part } })).status, 200);
  }
  for (const name of ["k", "input/chat"]) {
    const reply = await fetch(`${gateway.url}${path}/${name}`, { headers: { authorization: `Bearer ${keys.dev}`, "timeout-seconds": "1" } });
    assert.equal((await reply.text()).match(/^data: /gm).length, 2, name);
  }
});

test("items of a batch are stored once", async () => {
  const { json } = await gateway.post("/api/v3/batches", { runCount: 2 });
  const item = (index) => `${JSON.stringify({ index, task: "hello", payload: String(index), options: hold })}\n`;
  const send = (text) => gateway.post(`/api/v3/batches/${json.id}/items`, text, { headers: { "content-type": "application/x-ndjson" } });
  for (const index of [0, 1, 0]) assert.equal((await send(item(index))).status, 200);
  assert.equal(await count(`/api/v1/runs?filter[batch]=${json.id}`), 2);
});

test("each call that is not a GET is in the table of repeated calls", async () => {
  const { json } = await gateway.get("/openapi.json");
  const calls = Object.values(json.paths).flatMap((path) => Object.entries(path).filter(([method]) => ["post", "put", "patch", "delete"].includes(method)).map(([, { operationId }]) => operationId));
  const table = fs.readFileSync(new URL("../../src/api/request/README.md", import.meta.url), "utf8").split("\n").filter((line) => line.startsWith("| `"));
  const listed = table.flatMap((row) => [...row.split("|")[1].matchAll(/`(\w+)`/g)].map(([, id]) => id));
  assert.deepEqual(calls.filter((id) => !listed.includes(id)), [], "calls without a row in the table of src/api/request/README.md");
  assert.deepEqual(listed.filter((id) => !calls.includes(id)), [], "rows of src/api/request/README.md without a call");
  assert.equal(new Set(listed).size, listed.length, "no call is in two rows");
});
