// The official CLI with more parents than may execute at once: waiting parents free their slots, so that their children can
// execute. Its project is the folder pace.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { startCli, workerFolder } from "../../support/js/cli.mjs";
import { startGateway, temporaryFolder, until } from "../../support/js/gateway.mjs";

async function trigger(gateway, task, payload) {
  const reply = await gateway.post(`/api/v1/tasks/${task}/trigger`, { payload });
  assert.equal(reply.status, 200, reply.text);
  return reply.json.id;
}

/** Triggers four runs of these tasks in turn, and checks that no two of them work at once. */
async function workInTurn(gateway, tasks) {
  const file = path.join(temporaryFolder(), "works");
  const ids = await Promise.all(Array.from({ length: 4 }, (_, i) => trigger(gateway, tasks[i % tasks.length], { file, ms: 400 })));
  const runs = await ended(gateway, ids, 120_000);
  assert.deepEqual(runs.map(({ status, output }) => [status, output]), ids.map(() => ["COMPLETED", "worked twice"]));
  const works = fs.readFileSync(file, "utf8").trim().split("\n").map((line) => line.split(" ").map(Number)).sort(([a], [b]) => a - b);
  assert.equal(works.length, 2 * ids.length);
  for (let i = 1; i < works.length; i++) assert.ok(works[i][0] >= works[i - 1][1], `two runs work at once: ${JSON.stringify(works)}`);
}

async function ended(gateway, ids, timeoutMs) {
  let runs;
  try {
    return await until(async () => {
      runs = await Promise.all(ids.map(async (id) => (await gateway.get(`/api/v3/runs/${id}`)).json));
      return runs.every(({ isCompleted }) => isCompleted) && runs;
    }, { timeoutMs, everyMs: 200 });
  } catch {
    const samples = [...await gateway.metrics()].filter(([name]) => name.startsWith("runcast_active_runs"));
    throw new Error(`not all have ended: ${runs.map(({ status }) => status)} ${samples.join(" ")}`);
  }
}

test("more parents than may execute at once, each waiting for a child that does the same", async (t) => {
  const gateway = await startGateway({ t, options: ["--dev-concurrency", "4"] });
  const cli = await startCli({ t, gateway, folder: path.join(workerFolder, "pace") });

  await t.test("20 of them, in queues without a limit", async () => {
    const ids = await Promise.all(Array.from({ length: 20 }, () => trigger(gateway, "parent", { depth: 2 })));
    const began = Date.now();
    const runs = await ended(gateway, ids, 300_000);
    t.diagnostic(`${Date.now() - began} ms`);
    assert.deepEqual(runs.map(({ status, output }) => [status, output]), ids.map(() => ["COMPLETED", 2]));
  });
  await t.test("in a queue that executes one run at a time", async () => {
    const ids = await Promise.all([1, 2].map(() => trigger(gateway, "nested", { depth: 3 })));
    const runs = await ended(gateway, ids, 60_000);
    assert.deepEqual(runs.map(({ status, output }) => [status, output]), ids.map(() => ["COMPLETED", 3]));
  });
  await t.test("in a queue that executes one run at a time: two parents whose waits have ended do not execute at once", () => workInTurn(gateway, ["solo"]));
  await t.test("of two tasks that share a limit of one: no two of them execute at once", () => workInTurn(gateway, ["left", "right"]));
  await cli.stop();
  await gateway.stop();
});
