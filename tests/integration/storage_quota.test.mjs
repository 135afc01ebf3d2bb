// --storage-quota: what the environments of a project store together, and what frees space.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";

import { queryStore, changeStore, keys, startGateway, textColumns, until } from "../support/js/gateway.mjs";
import { addSecondProject, otherKeys } from "../support/js/second_project.mjs";
import { thrown, Worker } from "../support/js/worker_calls.mjs";

const MIB = 1 << 20;
const onBranch = { key: keys.preview, headers: { "x-trigger-branch": "b" } };
const trigger = (gateway, bytes, who = {}, options = {}) => gateway.post("/api/v1/tasks/hello/trigger", { payload: "x".repeat(bytes), options }, who);

/** Adds up the size of the rows of every environment from the tables (include/runcast/store.h), for a gateway that does
 * not run. Returns those whose sum differs from the one that was stored. Leaves out the installation's rows:
 * addSecondProject writes there while the gateway runs. */
function miscounted(data) {
  const others = textColumns(data, "run").filter((column) => column !== "id" && column !== "tags");
  const counted = {
    run: ["1536", "2 * $bytes(tags)", ...others.map((column) => `$bytes(${column})`)],
    run_payload: ["$bytes(body)", "$bytes(type)"], run_metadata: ["$bytes(body)", "$bytes(seed)"], run_output: ["$bytes(body)", "$bytes(type)", "$bytes(error)"],
    document: ["128", "2 * $bytes(name)", "$bytes(body)"], claim: ["128", "2 * $bytes(key)"], task_number: ["128", "$bytes(task)"],
  };
  const rows = Object.entries(counted).map(([table, parts]) => `SELECT env, ${parts.join(" + ")} AS bytes FROM ${table} WHERE env > 0`).join(" UNION ALL ");
  const byEnv = (sql) => new Map(queryStore(data, sql).map(({ env, bytes }) => [env, Number(bytes)]));
  const kept = byEnv("SELECT env, stored AS bytes FROM environment WHERE env > 0 AND stored <> 0"), real = byEnv(`SELECT env, sum(bytes) AS bytes FROM (${rows}) r GROUP BY env`);
  return [...new Set([...kept.keys(), ...real.keys()])].filter((env) => kept.get(env) !== real.get(env)).map((env) => [env, kept.get(env), real.get(env)]);
}

function isOver({ status, headers, json }) {
  assert.deepEqual([status, headers["x-should-retry"]], [507, "false"], JSON.stringify(json));
  assert.match(json.error, /^storage_quota: the project stores \d+ of 1048576 bytes/);
}

async function start(t, more = []) {
  const gateway = await startGateway({ t, options: ["--storage-quota", "1m", ...more] });
  await gateway.stop();
  addSecondProject(gateway.data);
  await gateway.restart();
  assert.equal((await gateway.post(`/api/v1/projects/${keys.ref}/branches`, { env: "preview", branch: "b" }, { key: keys.pat })).status, 200);
  return gateway;
}

test("environments and branches of a project share it; executing runs can complete; another project has its own", async (t) => {
  const gateway = await start(t);
  const worker = await Worker.register(gateway);
  const attempt = await worker.take(await worker.trigger("hello"));
  const offer = (await gateway.put("/api/v2/packets/early.json")).json.presignedUrl.replace(/^https?:\/\/[^/]+/, "");
  for (const who of [{}, { key: keys.prod }, onBranch]) assert.equal((await trigger(gateway, 300_000, who)).status, 200);
  for (const who of [{}, { key: keys.prod }, onBranch]) isOver(await trigger(gateway, 300_000, who));
  assert.equal((await trigger(gateway, 10, onBranch)).status, 200); // there is still some space
  assert.equal((await trigger(gateway, 900_000, { key: otherKeys.dev })).status, 200);

  const over = { metadata: { text: "y".repeat(200_000) } };
  isOver(await gateway.put(`/api/v1/runs/${attempt.id}/metadata`, over));
  isOver(await gateway.put(offer, "z".repeat(300_000), { key: null, headers: { "content-type": "application/json" } }));
  const items = Array.from({ length: 2 }, () => ({ task: "hello", payload: "x".repeat(100_000) }));
  isOver(await gateway.post("/api/v2/tasks/batch", { items }));
  const { id } = (await gateway.post("/api/v3/batches", { runCount: 1 })).json;
  const line = `${JSON.stringify({ index: 0, task: "hello", payload: "x".repeat(300_000) })}\n`;
  isOver(await gateway.post(`/api/v3/batches/${id}/items`, line, { headers: { "content-type": "application/x-ndjson" } }));

  await attempt.succeed("o".repeat(400_000)); // above the quota: a result is not lost
  isOver(await trigger(gateway, 10));
  assert.equal((await gateway.get(`/api/v3/runs/${attempt.id}`)).json.status, "COMPLETED");
  assert.ok(await gateway.metric("runcast_over_quota_total") >= 8);
  await gateway.stop();
  assert.deepEqual(miscounted(gateway.data), []);
});

test("the stored size is the same after a stop and after a kill", async (t) => {
  const gateway = await start(t);
  for (let i = 0; i < 3; i++) assert.equal((await trigger(gateway, 300_000)).status, 200);
  isOver(await trigger(gateway, 300_000));
  await gateway.stop(); // stores the activity, too
  await gateway.restart();
  const stored = await gateway.metric("runcast_stored_bytes");
  assert.ok(stored >= 900_000 && stored < MIB);
  for (const end of ["stop", "kill"]) {
    await gateway[end]();
    await gateway.restart();
    assert.equal(await gateway.metric("runcast_stored_bytes"), stored, end);
    isOver(await trigger(gateway, 300_000));
  }
  await gateway.kill();
  assert.deepEqual(miscounted(gateway.data), []);
});

test("above it no queued run starts, so only executing runs add outputs; queued runs start when something is removed", async (t) => {
  const gateway = await start(t, ["--env-concurrency", "3", "--dequeue-wait", "30s"]), who = { key: keys.prod };
  const worker = await Worker.register(gateway, { key: keys.prod, tasks: ["hello", "waits"] });
  const variables = `/api/v1/projects/${keys.ref}/envvars/dev`;
  for (const name of ["A", "B", "C"]) assert.equal((await gateway.post(variables, { name, value: "v".repeat(5000) })).status, 200);
  const waiting = await worker.take(await worker.trigger("waits"));
  const { id: token } = (await gateway.post("/api/v1/waitpoints/tokens", {}, who)).json;
  await worker.post(`/engine/v1/runs/${waiting.id}/waitpoints/tokens/${token}/wait`, {});
  for (let i = 0; i < 60; i++) assert.equal((await trigger(gateway, 10, who)).status, 200);
  const executing = [await worker.take(), await worker.take(), await worker.take()];
  const before = await gateway.metric("runcast_stored_bytes"), leaves = (bytes) => "o".repeat(MIB - before + bytes);
  await executing[0].succeed(leaves(5000));
  await executing[1].succeed("o".repeat(100));

  const idle = worker.dequeue(), [first] = (await gateway.get("/api/v1/runs?filter[status]=QUEUED&page[size]=100", who)).json.data.slice(-1);
  const { run: { waitingFor: { reason, message, ahead } } } = await worker.show(first.id);
  assert.deepEqual([reason, ahead], ["storage_quota", 0]);
  assert.match(message, /^The project stores \d+ of 1048576 bytes; raise storage-quota, or remove/);
  isOver(await gateway.put(`/api/v1/runs/${executing[2].id}/metadata`, { metadata: { a: 1 } }));
  await gateway.post(`/api/v1/waitpoints/tokens/${token}/complete`, {}, who);
  await until(async () => (await worker.status(waiting.id)) === "EXECUTING", { what: "the run that waits in the middle continues" });
  assert.equal(await gateway.metric("runcast_dequeued_total"), 4);

  for (const name of ["A", "B", "C"]) assert.equal((await gateway.delete(`${variables}/${name}`)).status, 200);
  assert.equal((await idle).id, first.id);
  await executing[2].succeed("o".repeat(700_000));
  await gateway.stop();
  assert.deepEqual(miscounted(gateway.data), []);
});

test("in a full project only small outputs and errors are kept, and the run says so", async (t) => {
  const gateway = await start(t), worker = await Worker.register(gateway), attempts = [];
  for (let i = 0; i < 12; i++) {
    const attempt = await worker.take(await worker.trigger("hello"));
    assert.equal((await worker.post(`/engine/v1/runs/${attempt.id}/wait/duration`, { date: inAnHour() })).status, 200);
    attempts.push(attempt);
  }
  const [crossing, small, failing, stackless, telling, ...large] = attempts;
  for (const attempt of attempts) attempt.snapshot = (await worker.latest(attempt.id)).json.execution.snapshot.friendlyId;
  assert.equal((await trigger(gateway, 900_000)).status, 200);
  await crossing.succeed("o".repeat(400_000)); // the last output that is kept
  assert.equal((await gateway.get(`/api/v3/runs/${crossing.id}`)).json.output.length, 400_000);
  const stored = await gateway.metric("runcast_stored_bytes");
  assert.ok(stored > MIB);

  for (const attempt of large) assert.equal((await attempt.succeed("o".repeat(400_000))).attemptStatus, "RUN_FINISHED");
  const { status, error, output } = (await gateway.get(`/api/v3/runs/${large[0].id}`)).json;
  assert.deepEqual([status, output], ["FAILED", undefined]);
  assert.match(error.message, /^storage_quota: the output of 400002 bytes was discarded, because the project stores \d+ of 1048576 bytes; remove runs/);
  assert.equal((await small.succeed("o".repeat(4000))).attemptStatus, "RUN_FINISHED");
  assert.equal((await gateway.get(`/api/v3/runs/${small.id}`)).json.output.length, 4000);
  await failing.fail({ ...thrown, stackTrace: "s".repeat(200_000) });
  assert.match((await gateway.get(`/api/v3/runs/${failing.id}`)).json.error.message, /^storage_quota: the error of 200\d\d\d bytes was discarded/);
  await stackless.fail(thrown);
  assert.equal((await gateway.get(`/api/v3/runs/${stackless.id}`)).json.error.message, thrown.message);
  const metadata = { operations: [{ type: "set", key: "text", value: "m".repeat(100_000) }] };
  await telling.succeed(1, { flushedMetadata: { data: JSON.stringify(metadata), dataType: "application/json" } });
  const told = (await gateway.get(`/api/v3/runs/${telling.id}`)).json;
  assert.deepEqual([told.status, told.metadata?.text], ["COMPLETED", undefined]);
  assert.ok(await gateway.metric("runcast_stored_bytes") < stored + attempts.length * 5000);
  await gateway.stop();
  assert.deepEqual(miscounted(gateway.data), []);
});

test("metadata of a child does not make its parent longer in a full project", async (t) => {
  const gateway = await start(t), worker = await Worker.register(gateway);
  const parent = await worker.take(await worker.trigger("hello"));
  const child = await worker.take(await worker.trigger("hello", { parentRunId: parent.id }));
  assert.equal((await trigger(gateway, MIB - await gateway.metric("runcast_stored_bytes") - 2000)).status, 200);
  await (await worker.take()).succeed("o".repeat(3000));
  const parentOperations = [{ type: "set", key: "text", value: "m".repeat(100_000) }];
  await child.succeed(1, { flushedMetadata: { data: JSON.stringify({ parentOperations }), dataType: "application/json" } });
  assert.equal(await worker.status(child.id), "COMPLETED");
  assert.equal((await gateway.get(`/api/v3/runs/${parent.id}`)).json.metadata?.text, undefined);
});

test("in a full project a run can wait for one time after the other, but not collect waits", async (t) => {
  const gateway = await start(t), worker = await Worker.register(gateway), attempt = await worker.take(await worker.trigger("hello"));
  const { id } = (await gateway.post("/api/v1/waitpoints/tokens", {})).json;
  assert.equal((await trigger(gateway, MIB - await gateway.metric("runcast_stored_bytes") - 2000)).status, 200);
  await (await worker.take()).succeed("o".repeat(3000));
  const stored = await gateway.metric("runcast_stored_bytes"), run = `/engine/v1/runs/${attempt.id}`;
  const wait = () => worker.post(`${run}/wait/duration`, { date: inAnHour() });
  assert.equal((await wait()).status, 200);
  let refused;
  for (let i = 0; i < 30 && !refused; i++) refused = [await wait()].find(({ status }) => status !== 200);
  isOver(refused);
  isOver(await worker.post(`${run}/waitpoints/tokens/${id}/wait`, {}));
  assert.equal(await worker.status(attempt.id), "FROZEN");
  assert.ok(await gateway.metric("runcast_stored_bytes") <= stored + 1024);
});

test("retention frees the space of runs and unused packets, and queued runs start", async (t) => {
  const gateway = await start(t, ["--retain", "1s", "--dequeue-wait", "60s"]);
  const worker = await Worker.register(gateway), attempt = await worker.take(await worker.trigger("hello"));
  const queued = await worker.trigger("hello");
  await attempt.succeed("o".repeat(MIB));
  const next = await worker.take(queued); // the dequeue is held until the first run is removed
  assert.equal((await gateway.get(`/api/v3/runs/${attempt.id}`)).status, 404);
  await next.succeed(1);
  const { json } = await trigger(gateway, 900_000);
  isOver(await trigger(gateway, 300_000));
  await gateway.post(`/api/v2/runs/${json.id}/cancel`, {});
  await until(async () => (await trigger(gateway, 300_000)).status === 200, { everyMs: 200, what: "room" });
  await until(async () => await gateway.metric("runcast_stored_bytes") < 400_000, { what: "less is stored" });
  await gateway.stop();
  assert.deepEqual(miscounted(gateway.data), []);
});

/** Something of each kind that makes rows, each of about the given size: [what it is, a call that makes it]. */
function everything(gateway, { attempt, size, n = 0 }) {
  const text = "x".repeat(size), variables = `/api/v1/projects/${keys.ref}/envvars/dev`, stream = { headers: { "x-client-id": "c" } };
  return [
    ["a run", () => trigger(gateway, size, {}, { tags: [`tag ${n}`, "ü"], idempotencyKey: `key ${n}`, concurrencyKey: "lane", metadata: { n } })],
    ["a batch of runs", () => gateway.post("/api/v2/tasks/batch", { items: [{ task: `task ${n}`, payload: text }, { task: "hello", payload: 1 }] })],
    ["an open batch", () => gateway.post("/api/v3/batches", { runCount: 1, idempotencyKey: `batch ${n}` })],
    ["a token", () => gateway.post("/api/v1/waitpoints/tokens", { tags: ["a"], idempotencyKey: `token ${n}` })],
    ["a time to wait for", () => attempt.worker.post(`/engine/v1/runs/${attempt.id}/wait/duration`, { date: inAnHour(), idempotencyKey: `time ${n}` })],
    ["a schedule", () => gateway.post("/api/v1/schedules", { task: "tick", cron: "0 0 1 1 *", deduplicationKey: `schedule ${n}`, externalId: text.slice(0, 100) })],
    ["a variable", () => gateway.post(variables, { name: `V${n}`, value: text.slice(0, 1000) })],
    ["uploaded variables", () => gateway.post(`${variables}/import`, { variables: { [`U${n}`]: "1" }, override: true })],
    ["metadata", () => gateway.put(`/api/v1/runs/${attempt.id}/metadata`, { metadata: { text } })],
    ["tags", () => gateway.post(`/api/v1/runs/${attempt.id}/tags`, { tags: [`more ${n % 5}`] })],
    ["a stream", () => gateway.post(`/realtime/v1/streams/${attempt.id}/self/stream${n}`, `${text}\n`, stream)],
    ["a replay of many", () => gateway.post("/api/v1/bulk-actions", { action: "replay", runIds: [attempt.id], name: `bulk ${n}` })],
    ["a cancel of many", () => gateway.post("/api/v1/bulk-actions", { action: "cancel", runIds: Array.from({ length: 40 }, (_, i) => `run_${String(i).padStart(21, "a")}`) })],
    ["a version", () => attempt.worker.registration({ tasks: ["hello", { id: "tick", triggerSource: "schedule" }, `task ${n}`], hash: `hash ${n}` })],
  ];
}
const inAnHour = () => new Date(Date.now() + 3_600_000).toISOString();

/** A span of a run, as its worker sends it. */
const tell = (gateway, attempt, text) => gateway.post(`${new URL(attempt.started.envVars.TRIGGER_OTEL_EXPORTER_OTLP_ENDPOINT).pathname}/v1/traces`, { resourceSpans: [{ scopeSpans: [{ spans: [{
  traceId: randomBytes(16).toString("hex"), spanId: randomBytes(8).toString("hex"), name: text, kind: 1, startTimeUnixNano: `${Date.now()}000000`, endTimeUnixNano: `${Date.now() + 5}000000`,
  attributes: [{ key: "$metadata.ctx.run.id", value: { stringValue: attempt.id } }], events: [], status: { code: 0 } }] }] }] }, { key: null });

async function takeOne(gateway) {
  const worker = await Worker.register(gateway, { tasks: ["hello", { id: "tick", triggerSource: "schedule" }] });
  await worker.trigger("hello");
  return worker.take();
}

test("in a full project nothing that grows is made, and what frees space or ends runs still works", async (t) => {
  const gateway = await start(t), attempt = await takeOne(gateway);
  const [token, other] = await Promise.all(["1", "2"].map(async (key) => (await gateway.post("/api/v1/waitpoints/tokens", { idempotencyKey: key })).json));
  const callback = new URL((await gateway.get(`/api/v1/waitpoints/tokens/${other.id}`)).json.url).pathname;
  const schedule = (await gateway.post("/api/v1/schedules", { task: "tick", cron: "0 0 1 1 *", deduplicationKey: "s" })).json.id;
  const variable = `/api/v1/projects/${keys.ref}/envvars/dev`;
  assert.equal((await gateway.post(variable, { name: "OLD", value: "1" })).status, 200);
  const id = await attempt.worker.trigger("hello"), waiting = await attempt.worker.trigger("hello");
  const second = await attempt.worker.take(id);
  assert.equal((await trigger(gateway, 950_000)).status, 200);
  const big = { data: "x".repeat(100_000) };
  for (const call of [`/api/v1/waitpoints/tokens/${token.id}/complete`, callback]) isOver(await gateway.post(call, big, { key: call === callback ? null : undefined }));
  await second.succeed("o".repeat(100_000)); // now there is not one byte left

  const before = await gateway.metric("runcast_stored_bytes");
  for (const [what, call] of everything(gateway, { attempt, size: 4000 })) await t.test(`${what} is refused`, async () => isOver(await call()));
  isOver(await gateway.put(`/api/v1/schedules/${schedule}`, { task: "tick", cron: "0 0 2 1 *" }));
  isOver(await gateway.put(`${variable}/OLD`, { value: "2" }));
  const dropped = await gateway.metric('runcast_trace_events_total{result="dropped"}');
  assert.equal((await tell(gateway, attempt, "a span")).status, 200);
  assert.equal(await gateway.metric('runcast_trace_events_total{result="dropped"}'), dropped + 1);
  assert.equal(await gateway.metric("runcast_stored_bytes"), before);

  for (const call of [`/api/v1/waitpoints/tokens/${token.id}/complete`, callback])
    assert.equal((await gateway.post(call, { data: "yes" }, { key: call === callback ? null : undefined })).status, 200, call);
  assert.equal((await gateway.post("/api/v1/bulk-actions", { action: "cancel", runIds: [waiting] })).status, 202);
  assert.equal((await gateway.post("/api/v1/queues/hello/pause", { type: "task", action: "pause" })).status, 200);
  assert.equal((await gateway.delete(`${variable}/OLD`)).status, 200);
  assert.equal((await gateway.delete(`/api/v1/schedules/${schedule}`)).status, 200);
  await attempt.succeed("o".repeat(4000));
  assert.equal(await attempt.worker.status(attempt.id), "COMPLETED");
  await gateway.stop();
  assert.deepEqual(miscounted(gateway.data), []);
});

test("the stored size is that of the rows, after a kill in the middle of everything and after retention", async (t) => {
  const gateway = await startGateway({ t, options: ["--retain", "1s"] });
  for (let life = 0; life < 3; life++) {
    const attempt = await takeOne(gateway), calls = [];
    for (let n = 0; n < 12; n++) {
      calls.push(...everything(gateway, { attempt, size: 100 + 997 * n, n: 20 * life + n }).map(([, call]) => call()),
        tell(gateway, attempt, "s".repeat(n)), gateway.post(`/api/v2/runs/${attempt.id}/cancel`, {}));
      for (const call of calls) call.catch(() => {}); // some are cut by the kill
    }
    await (life === 2 ? Promise.allSettled(calls) : Promise.any(calls.slice(-50)));
    if (life === 2) await until(async () => await gateway.metric("runcast_purged_runs_total") > 0, { what: "retention" });
    await gateway.kill();
    await Promise.allSettled(calls);
    assert.deepEqual(miscounted(gateway.data), []);
    await gateway.restart();
  }
  const sum = () => Number(queryStore(gateway.data, "SELECT sum(stored) AS bytes FROM environment WHERE env > 0")[0].bytes);
  await until(async () => await gateway.metric("runcast_stored_bytes") === sum(), { everyMs: 100, what: "the gateway counts what the tables hold" });
  await gateway.stop();
});

test("a stored size that is too small does not stop the gateway when more than that is removed", async (t) => {
  const gateway = await startGateway({ t });
  const { id } = (await trigger(gateway, 100_000)).json;
  assert.equal((await gateway.post(`/api/v2/runs/${id}/cancel`, {})).status, 200);
  await gateway.stop();
  changeStore(gateway.data, "UPDATE environment SET stored = 0");
  await gateway.restart({ options: ["--retain", "1s"] });
  await until(async () => (await gateway.metric("runcast_purged_runs_total")) === 1, { what: "retention removes the run" });
  assert.ok((await gateway.metric("runcast_stored_bytes")) >= 0);
  assert.equal((await trigger(gateway, 10)).status, 200);
  await gateway.stop();
});
