// What an alert is made of: runs that fail, workers that do not come, answers by class, the process.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { keys, startGateway, until } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";
import { thrown, Worker } from "../support/js/worker_calls.mjs";

test("runs that end are counted by status, once, and so is their time in the queue", async (t) => {
  const gateway = await startGateway({ t, options: ["--dequeue-wait", "20s"] });
  const ended = (status) => gateway.metric(`runcast_finished_runs_total{status="${status}"}`);
  const worker = await Worker.register(gateway, { tasks: ["hello"] });
  await worker.trigger("hello");
  const attempt = await worker.dequeue();
  await attempt.start();
  await attempt.fail(thrown);
  await worker.trigger("hello");
  const second = await worker.dequeue();
  await second.start();
  await second.succeed(1);
  const third = await worker.trigger("hello");
  assert.equal((await gateway.post(`/api/v2/runs/${third}/cancel`)).status, 200);
  assert.equal((await gateway.post(`/api/v2/runs/${third}/cancel`)).status, 200);
  for (const status of ["FAILED", "COMPLETED", "CANCELED"]) assert.equal(await ended(status), 1, status);
  for (const status of ["CRASHED", "EXPIRED", "TIMED_OUT"]) assert.equal(await ended(status), 0, status);
  assert.equal(await gateway.metric("runcast_queue_wait_seconds_count"), 2);

  assert.equal(await gateway.metric("runcast_waiting_workers"), 0);
  const held = worker.dequeue();
  await until(async () => await gateway.metric("runcast_waiting_workers") === 1, { what: "a held dequeue" });
  await worker.trigger("hello");
  await held;
  assert.equal(await gateway.metric("runcast_waiting_workers"), 0);
  await gateway.stop();
});

test("who is there is counted while it executes, and the queued run that waits for longest", async (t) => {
  const gateway = await startGateway({ t });
  const all = async (...names) => Promise.all(names.map((name) => gateway.metric(`runcast_${name}`)));
  const oldest = (type) => gateway.metric(`runcast_oldest_queued_seconds{type="${type}"}`);
  assert.deepEqual(await all("sessions", "unserved_environments", "waiting_workers"), [0, 0, 0]);
  const worker = await Worker.register(gateway, { tasks: ["hello"] });
  await worker.trigger("hello");
  const attempt = await worker.dequeue();
  await attempt.start();
  assert.deepEqual(await all("sessions", "unserved_environments", "waiting_workers"), [1, 0, 0], "it executes");
  assert.deepEqual([await oldest("dev"), await oldest("prod")], [0, 0]);

  // Elsewhere than in dev nobody asks: the older one counts, also when its queue is paused.
  const prod = await Worker.register(gateway, { tasks: ["hello"], key: keys.prod });
  const first = await prod.trigger("hello");
  assert.equal((await gateway.post("/api/v1/queues/hello/pause", { type: "task", action: "pause" }, { key: keys.prod })).status, 200);
  await until(async () => await oldest("prod") >= 1, { what: "it gets older" });
  await prod.trigger("hello", { priority: 3600 });
  assert.ok(await oldest("prod") >= 1 && await oldest("prod") < 600, "a priority makes nobody older");
  assert.equal(await gateway.metric("runcast_unserved_environments"), 1);
  await gateway.kill();
  await gateway.restart();
  assert.ok(await oldest("prod") >= 1, "also after a restart");
  assert.equal((await gateway.post(`/api/v2/runs/${first}/cancel`, {}, { key: keys.prod })).status, 200);
  const { data } = (await gateway.get("/api/v1/runs", { key: keys.prod })).json;
  for (const { id } of data) await gateway.post(`/api/v2/runs/${id}/cancel`, {}, { key: keys.prod });
  assert.deepEqual([await oldest("prod"), await gateway.metric("runcast_unserved_environments")], [0, 0]);
  await gateway.stop();
});

test("answers are counted by class, and the process tells its version, memory and database", async (t) => {
  const gateway = await startGateway({ t });
  const answers = (code) => gateway.metric(`runcast_http_requests_total{code="${code}"}`);
  const before = [await answers("2xx"), await answers("4xx")];
  await gateway.get("/api/v1/runs");
  await gateway.get("/api/v1/runs", { key: "wrong" });
  await gateway.get("/nothing");
  assert.equal(await answers("4xx") - before[1], 2);
  assert.ok(await answers("2xx") - before[0] >= 1);
  const version = (await runProgram(["--version"])).stdout.trim().split(" ")[1];
  assert.equal(await gateway.metric(`runcast_build_info{version="${version}"}`), 1);
  assert.ok(await gateway.metric("process_resident_memory_bytes") > 1e6);
  assert.equal(await gateway.metric("runcast_database_bytes"), fs.statSync(path.join(gateway.data, "runcast.db")).size);
  assert.equal(await gateway.metric("runcast_database_log_bytes"), fs.statSync(path.join(gateway.data, "runcast.db-wal")).size);
  await gateway.stop();
});
