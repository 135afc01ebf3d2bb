// Makes a fixture: a data directory with objects of every kind, and the responses of the gateway that wrote it.
// tests/integration/upgrade.test.mjs opens it with today's gateway.
//
//   GATEWAY_BIN=/a/released/runcast node tests/support/js/make_fixture.mjs tests/fixtures/data_100.tar.gz
//
// The number is the version of the database (PRAGMA user_version). Fixtures come from releases: each is made once and
// never changed.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";

import { asOfFixture, fixtureOptions, polls, withoutReasons } from "./fixture.mjs";
import { keys, startGateway, temporaryFolder, until } from "./gateway.mjs";
import { runProgram } from "./program.mjs";
import { RunsMirror } from "./runs.mjs";
import { inMs, internal, thrown, Worker } from "./worker_calls.mjs";

const target = path.resolve(process.argv[2]);
const gateway = await startGateway({ options: fixtureOptions });
const calls = new Set(); // [key, target, branch] as JSON
const ask = (call, key = keys.dev, branch = undefined) => calls.add(JSON.stringify([key, call, branch]));
const made = async (reply) => {
  const { status, json, text } = await reply;
  assert.ok(status < 300, text);
  return json;
};

// ---- runs in every state ----

const worker = await Worker.register(gateway, { tasks: ["hello", "parent", { id: "tick", triggerSource: "schedule" }], queues: [{ name: "narrow", concurrencyLimit: 1 }] });
const tags = ["fixture"];
const fresh = async (options = {}, payload = { n: 1 }) => worker.take(await worker.trigger("hello", { tags, ...options }, payload));
const states = {};
for (const [name, error] of Object.entries({ FAILED: thrown, CRASHED: internal("TASK_PROCESS_SIGSEGV"), SYSTEM_FAILURE: internal("COULD_NOT_FIND_TASK"),
  TIMED_OUT: internal("MAX_DURATION_EXCEEDED"), INTERRUPTED: internal("TASK_RUN_CANCELLED") })) {
  const attempt = await fresh();
  await attempt.fail(error);
  states[name] = attempt.id;
}
const completed = await fresh({ idempotencyKey: "fixture-key", metadata: { step: 1 } }, { text: "x".repeat(20_000) });
await completed.succeed({ text: "y".repeat(20_000) }, { usage: { durationMs: 7 } });
await made(gateway.put(`/api/v1/runs/${completed.id}/metadata`, { metadata: { step: 2, seen: ["a"] } }));
const parent = await worker.take(await worker.trigger("parent", { tags }));
const child = await worker.trigger("hello", { tags, parentRunId: parent.id, resumeParentOnCompletion: true, delay: "20h" });
const frozen = await fresh();
assert.equal((await frozen.waitReply(new Date(Date.now() + 20 * 3600e3).toISOString())).status, 200);
const retried = await fresh({ maxAttempts: 3 });
await retried.fail(thrown, { retry: inMs(20 * 3600e3) });
const expiring = await worker.trigger("hello", { tags, ttl: "1s" });
await until(async () => (await worker.status(expiring)) === "EXPIRED");
const canceled = await worker.trigger("hello", { tags });
await worker.cancel(canceled);
const executing = await fresh();
const token = await made(gateway.post("/api/v1/waitpoints/tokens", { timeout: "20h", tags }));
const waiting = await fresh();
await made(worker.post(`/engine/v1/runs/${waiting.id}/waitpoints/tokens/${token.id}/wait`, {}));
const completedToken = await made(gateway.post("/api/v1/waitpoints/tokens", { tags, idempotencyKey: "once" }));
await made(gateway.post(`/api/v1/waitpoints/tokens/${completedToken.id}/complete`, { data: { a: 1 } }));
const leased = await worker.trigger("hello", { tags });
await worker.dequeue();
Object.assign(states, { COMPLETED: completed.id, REATTEMPTING: retried.id, EXPIRED: expiring, CANCELED: canceled, EXECUTING: executing.id, FROZEN: frozen.id,
  DELAYED: await worker.trigger("hello", { tags, delay: "20h" }), QUEUED: await worker.trigger("hello", { tags, queue: { name: "narrow" }, concurrencyKey: "k", priority: 3 }) });
for (const [status, id] of Object.entries(states)) assert.equal(await worker.status(id), status);

// ---- batches, packets, streams of items ----

const items = Array.from({ length: 3 }, (_, i) => ({ task: "hello", payload: i, options: { tags, delay: "20h" } }));
const { id: batch } = await made(gateway.post("/api/v2/tasks/batch", { items }));
const { runs: ofBatch } = await made(gateway.get(`/api/v2/batches/${batch}`));
const streamed = await made(gateway.post("/api/v3/batches", { runCount: 2 }));
const ndjson = [0, 1].map((index) => JSON.stringify({ index, task: "hello", payload: "1", options: { tags, delay: "20h" } })).join("\n");
await made(gateway.post(`/api/v3/batches/${streamed.id}/items`, `${ndjson}\n`, { headers: { "content-type": "application/x-ndjson" } }));
const offer = await made(gateway.put("/api/v2/packets/fixture%2Flarge.json"));
const stored = await gateway.put(offer.presignedUrl.replace(/^https?:\/\/[^/]+/, ""), JSON.stringify("z".repeat(30_000)), { key: null, headers: { "content-type": "application/json" } });
assert.equal(stored.status, 200, stored.text);
const large = await made(gateway.post("/api/v1/tasks/hello/trigger", { payload: offer.storagePath, options: { payloadType: "application/store", tags, delay: "20h" } }));
for (const id of [...Object.values(states), parent.id, child, waiting.id, leased, large.id, ...ofBatch]) {
  ask(`/api/v3/runs/${id}`);
  ask(`/api/v1/runs/${id}/result`);
}
for (const id of [batch, streamed.id]) { ask(`/api/v2/batches/${id}`); ask(`/api/v1/batches/${id}/results`); }
ask(`/api/v1/runs/${completed.id}/metadata`);
for (const id of [token.id, completedToken.id]) ask(`/api/v1/waitpoints/tokens/${id}`);

// ---- schedules, variables, queues, bulk actions, branches, tokens ----

const yearly = { task: "tick", cron: "30 4 29 2 *", timezone: "Europe/Berlin", externalId: "x" };
for (const deduplicationKey of ["a", "b"]) {
  const schedule = await made(gateway.post("/api/v1/schedules", { ...yearly, deduplicationKey }));
  if (deduplicationKey === "b") await made(gateway.post(`/api/v1/schedules/${schedule.id}/deactivate`));
  ask(`/api/v1/schedules/${schedule.id}`);
}
const variables = `/api/v1/projects/${keys.ref}/envvars/dev`;
for (const name of ["ONE", "TWO"]) { await made(gateway.post(variables, { name, value: `value of ${name}` })); ask(`${variables}/${name}`); }
await made(gateway.post("/api/v1/queues/narrow/pause", { type: "custom", action: "pause" }));
const bulk = await made(gateway.post("/api/v1/bulk-actions", { action: "cancel", runIds: [await worker.trigger("hello", { delay: "20h" })] }));
await until(async () => (await gateway.get(`/api/v1/bulk-actions/${bulk.id}`)).json.status === "COMPLETED");
ask(`/api/v1/bulk-actions/${bulk.id}`);
for (const branch of ["kept", "archived"]) {
  await made(gateway.post(`/api/v1/projects/${keys.ref}/branches`, { env: "preview", branch }, { key: keys.pat }));
  const run = await made(gateway.post("/api/v1/tasks/hello/trigger", { payload: branch }, { key: keys.preview, headers: { "x-trigger-branch": branch } }));
  ask(`/api/v3/runs/${run.id}`, keys.preview, branch);
}
await made(gateway.post(`/api/v1/projects/${keys.ref}/branches/archive`, { env: "preview", branch: "archived" }, { key: keys.pat }));
ask("/api/v1/runs", keys.preview, "kept");
const prod = await made(gateway.post("/api/v1/tasks/hello/trigger", { payload: "of prod" }, { key: keys.prod }));
ask(`/api/v3/runs/${prod.id}`, keys.prod);
const workerToken = await runProgram(["worker-token", "create", "--data", gateway.data]);
assert.equal(workerToken.code, 0, workerToken.all);
for (const call of ["/api/v1/runs?page[size]=100", "/api/v1/runs?page[size]=100&filter[status]=COMPLETED", "/api/v1/schedules", variables, "/api/v1/waitpoints/tokens",
  "/api/v1/queues?perPage=100", "/api/v1/bulk-actions", "/realtime/v1/runs?tags=fixture&offset=-1"]) ask(call);
for (const call of [`/api/v1/projects/${keys.ref}/branches`, "/api/v1/orgs", "/api/v1/projects"]) ask(call, keys.pat);
ask("/engine/v1/worker-actions/connect", workerToken.stdout.trim());

// ---- a position to resume from, and what changed after it ----

const mirror = new RunsMirror({ port: gateway.port, token: keys.dev });
mirror.subscribe({ tags });
await mirror.connect();
await mirror.wait(() => mirror.position, "a position");
mirror.cut();
const polled = await gateway.get("/realtime/v1/runs?tags=fixture&offset=-1", { headers: polls });
const poll = { offset: polled.headers["electric-offset"], handle: polled.headers["electric-handle"] };
await made(gateway.put(`/api/v1/runs/${states.DELAYED}/metadata`, { metadata: { changed: "after the position" } }));

// ---- the gateway is restarted, its responses are recorded, and the database is packed ----

await gateway.stop();
await gateway.restart();
const answers = [];
for (const [key, call, branch] of [...calls].map((text) => JSON.parse(text))) {
  const { status, text } = await asOfFixture(gateway, { key, call, branch });
  answers.push({ key, call, branch, status, text: withoutReasons(text) });
}
await gateway.stop();

const folder = path.join(temporaryFolder(), "data");
fs.mkdirSync(folder);
for (const name of ["runcast.db", "encryption.key"]) fs.copyFileSync(path.join(gateway.data, name), path.join(folder, name));
execFileSync("python3", ["-c", "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('VACUUM')", path.join(folder, "runcast.db")]);
const seen = { madeAt: Date.now(), position: mirror.position, poll, changed: states.DELAYED, answers };
fs.writeFileSync(path.join(folder, "seen.json"), JSON.stringify(seen, null, 1));
execFileSync("tar", ["-czf", target, "-C", folder, "runcast.db", "encryption.key", "seen.json"]);
console.log(`${target}: ${fs.statSync(target).size} bytes, ${answers.length} responses; refused: ${JSON.stringify(answers.filter(({ status }) => status >= 400).map(({ call, status }) => [call, status]))}`);
process.exit(0);
