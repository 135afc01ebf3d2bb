// A gateway whose turns have no time left when they begin, as under sustained load: work that is cut into units
// advances by one unit a turn, and finishes.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { EventStream } from "../support/js/event_stream.mjs";
import { keys, startGateway } from "../support/js/gateway.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

let gateway, worker;
before(async () => {
  gateway = await startGateway({ preload: "shim_busy" });
  worker = await Worker.register(gateway, { tasks: ["hello"] });
});
after(() => gateway.stop());

async function expect(status, reply) {
  const { text, json, status: got } = await reply;
  assert.equal(got, status, text);
  return json;
}
const numbers = (count) => Array.from({ length: count }, (_, i) => i);

test("a stream is written and read", async (t) => {
  const id = await worker.trigger("streamed"), at = `/realtime/v1/streams/${id}/tokens`;
  const reader = await EventStream.open(gateway.url + at, { headers: { authorization: `Bearer ${keys.dev}` } });
  t.after(() => reader.cut());
  const chunks = numbers(50).map((n) => `{"n":${n},"fill":"${"x".repeat(3000)}"}`);
  await expect(200, gateway.post(`/realtime/v1/streams/${id}/self/tokens`, chunks.join("\n") + "\n"));
  for (const n of numbers(50)) assert.equal((await reader.next()).data.n, n);
});

test("several versions of many tasks are registered at once, one task a turn, and each call gets its own version", async () => {
  const tasks = (hash) => numbers(300).map((n) => ({ id: `of-${hash}-${n}`, ...(n < 60 && { schedule: { cron: "0 0 * * *" } }) }));
  const register = async (hash) => expect(200, worker.registration({ hash, tasks: tasks(hash) }));
  const turns = async () => (await gateway.metrics()).get("runcast_loop_turn_cpu_seconds_count");
  const before = await turns(), versions = await Promise.all(["one", "two", "three"].map(register));
  const taken = (await turns()) - before;
  assert.ok(taken > 1800, `${taken} turns: 900 tasks to be read and to be written`);
  assert.deepEqual(versions.map(({ contentHash }) => contentHash), ["one", "two", "three"]);
  assert.equal(new Set(versions.map(({ version }) => version)).size, 3);
  Object.assign(worker, await expect(200, worker.registration({ hash: "again", tasks: ["hello"] })));
});

test("environment variables are written by several simultaneous requests", async () => {
  const at = `/api/v1/projects/${keys.ref}/envvars/dev`;
  const upload = (letter) => gateway.post(`${at}/import`, { variables: Object.fromEntries(numbers(20).map((n) => [`${letter}_${n}`, "value"])) }, { key: keys.pat });
  await Promise.all(["A", "B", "C"].map((letter) => expect(200, upload(letter))));
  const names = (await expect(200, gateway.get(at, { key: keys.pat }))).map(({ name }) => name);
  assert.equal(names.filter((name) => /^[ABC]_\d+$/.test(name)).length, 60);
});

test("runs and tokens are listed, and a batch is triggered", async () => {
  const items = numbers(60).map((n) => ({ task: "listed", payload: n }));
  await expect(202, gateway.post("/api/v2/tasks/batch", { items }));
  const runs = await expect(200, gateway.get("/api/v1/runs?filter[taskIdentifier]=listed&page[size]=60"));
  assert.equal(runs.data.length, 60);
  for (const n of numbers(12)) await expect(200, gateway.post("/api/v1/waitpoints/tokens", { tags: [`t${n}`] }));
  assert.equal((await expect(200, gateway.get("/api/v1/waitpoints/tokens?page[size]=12"))).data.length, 12);
});

test("a run is executed: its trace is stored, and it continues after several waits", async () => {
  const attempt = await worker.take(await worker.trigger("hello", {}, { text: "y".repeat(200_000) }));
  const attributes = [{ key: "$metadata.ctx.run.id", value: { stringValue: attempt.id } }];
  const logRecords = numbers(30).map((n) => ({ timeUnixNano: `${Date.now()}000000`, severityText: "info", body: { stringValue: `line ${n}` }, attributes }));
  const to = new URL(attempt.started.envVars.TRIGGER_OTEL_EXPORTER_OTLP_ENDPOINT).pathname;
  await expect(200, gateway.post(`${to}/v1/logs`, { resourceLogs: [{ resource: { attributes: [] }, scopeLogs: [{ scope: { name: "t" }, logRecords }] }] }, { key: null }));
  assert.equal((await expect(200, gateway.get(`/api/v1/runs/${attempt.id}/events`))).events.filter(({ message }) => /^line \d+$/.test(message)).length, 30);

  // The token blocks the run until all waits were begun, however long that takes here.
  const token = (await expect(200, gateway.post("/api/v1/waitpoints/tokens", {}))).id;
  await expect(200, worker.post(`/engine/v1/runs/${attempt.id}/waitpoints/tokens/${token}/wait`, {}));
  for (const wait of [50, 60, 70]) await expect(200, attempt.waitReply(new Date(Date.now() + wait).toISOString()));
  await expect(200, gateway.post(`/api/v1/waitpoints/tokens/${token}/complete`, {}));
  for (let latest; latest?.snapshot.executionStatus !== "EXECUTING";) latest = await attempt.refresh();
  assert.equal((await attempt.refresh()).completedWaitpoints.length, 4);
  await attempt.succeed("done");
  assert.equal(await worker.status(attempt.id), "COMPLETED");
});
