// --storage-quota: what the environments of a project store together, and what makes room.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import path from "node:path";
import { test } from "node:test";

import { keys, startGateway, until } from "../support/gateway.mjs";
import { addSecondProject, otherKeys } from "../support/second_project.mjs";
import { Worker } from "../support/worker_calls.mjs";

const MIB = 1 << 20;
const onBranch = { key: keys.preview, headers: { "x-trigger-branch": "b" } };
const trigger = (gateway, bytes, who = {}, options = {}) => gateway.post("/api/v1/tasks/hello/trigger", { payload: "x".repeat(bytes), options }, who);

/** What the tables hold, of a gateway that does not run; minus what it counted. */
const miscounted = (data) => execFileSync("python3", ["-c", `
import sqlite3, sys
d = sqlite3.connect(sys.argv[1])
size = lambda table, *columns: d.execute("SELECT ifnull(sum(" + "+".join("ifnull(length(%s), 0)" % c for c in columns) + "), 0) FROM " + table).fetchone()[0]
print(size("run_payload", "body") + size("run_metadata", "body", "seed") + size("run_output", "body", "error") + size("document WHERE kind = 12", "body")
  - d.execute("SELECT sum(stored) FROM environment").fetchone()[0])`, path.join(data, "runcast.db")], { encoding: "utf8" }).trim();

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

test("environments and branches of a project share it; what executes completes; another project has its own", async (t) => {
  const gateway = await start(t);
  const worker = await Worker.register(gateway);
  const attempt = await worker.take(await worker.trigger("hello"));
  const offer = (await gateway.put("/api/v2/packets/early.json")).json.presignedUrl.replace(/^https?:\/\/[^/]+/, "");
  for (const who of [{}, { key: keys.prod }, onBranch]) assert.equal((await trigger(gateway, 300_000, who)).status, 200);
  for (const who of [{}, { key: keys.prod }, onBranch]) isOver(await trigger(gateway, 300_000, who));
  assert.equal((await trigger(gateway, 10, onBranch)).status, 200); // there is still some room
  assert.equal((await trigger(gateway, 900_000, { key: otherKeys.dev })).status, 200);

  const over = { metadata: { text: "y".repeat(200_000) } };
  isOver(await gateway.put(`/api/v1/runs/${attempt.id}/metadata`, over));
  isOver(await gateway.put(offer, "z".repeat(300_000), { key: null, headers: { "content-type": "application/json" } }));
  const items = Array.from({ length: 2 }, () => ({ task: "hello", payload: "x".repeat(100_000) }));
  isOver(await gateway.post("/api/v2/tasks/batch", { items }));
  const { id } = (await gateway.post("/api/v3/batches", { runCount: 1 })).json;
  const line = `${JSON.stringify({ index: 0, task: "hello", payload: "x".repeat(300_000) })}\n`;
  isOver(await gateway.post(`/api/v3/batches/${id}/items`, line, { headers: { "content-type": "application/x-ndjson" } }));

  await attempt.succeed("o".repeat(400_000)); // beyond it: what ran is not lost
  isOver(await trigger(gateway, 10));
  assert.equal((await gateway.get(`/api/v3/runs/${attempt.id}`)).json.status, "COMPLETED");
  assert.ok(await gateway.metric("runcast_over_quota_total") >= 8);
  await gateway.stop();
  assert.equal(miscounted(gateway.data), "0");
});

test("the count is the same after a stop and after a kill", async (t) => {
  const gateway = await start(t);
  for (let i = 0; i < 3; i++) assert.equal((await trigger(gateway, 300_000)).status, 200);
  isOver(await trigger(gateway, 300_000));
  const stored = await gateway.metric("runcast_stored_bytes");
  assert.ok(stored >= 900_000 && stored < MIB);
  for (const end of ["stop", "kill"]) {
    await gateway[end]();
    await gateway.restart();
    assert.equal(await gateway.metric("runcast_stored_bytes"), stored, end);
    isOver(await trigger(gateway, 300_000));
  }
  await gateway.kill();
  assert.equal(miscounted(gateway.data), "0");
});

test("retention makes room, of runs and of packets that nobody needs", async (t) => {
  const gateway = await start(t, ["--retain", "1s"]);
  const { json } = await trigger(gateway, 900_000);
  isOver(await trigger(gateway, 300_000));
  await gateway.post(`/api/v2/runs/${json.id}/cancel`, {});
  await until(async () => (await trigger(gateway, 300_000)).status === 200, { everyMs: 200, what: "room" });
  await until(async () => await gateway.metric("runcast_stored_bytes") < 400_000, { what: "less is stored" });
  await gateway.stop();
  assert.equal(miscounted(gateway.data), "0");
});
