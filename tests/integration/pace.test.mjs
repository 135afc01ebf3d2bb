// How many runs execute at once: waiting runs do not count, and continue at once. Dequeues are not held here, so an
// empty one means that no run may begin.
import assert from "node:assert/strict";
import os from "node:os";
import { test } from "node:test";

import { keys, startGateway, until } from "../support/js/gateway.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

const start = (t, ...options) => startGateway({ t, options: ["--dequeue-wait", "0", ...options] });
const states = async (gateway) => {
  const samples = await gateway.metrics();
  return ["queued", "executing", "waiting"].map((state) => samples.get(`runcast_active_runs{state="${state}"}`));
};
const triggerMany = async (worker, count, task = "hello") => {
  for (let i = 0; i < count; i++) await worker.trigger(task);
};

async function takeAll(worker) {
  const taken = [];
  for (let attempt; (attempt = await worker.dequeue());) taken.push(await attempt.start());
  return taken;
}

test("a waiting run lets others execute, and continues when it has a slot again", async (t) => {
  const gateway = await start(t, "--dev-concurrency", "2");
  const worker = await Worker.register(gateway);
  await triggerMany(worker, 5);
  const [first, second, ...none] = await takeAll(worker);
  assert.equal(none.length, 0);
  assert.deepEqual(await states(gateway), [3, 2, 0]);

  const tokens = [];
  for (const attempt of [first, second]) {
    const { id } = (await gateway.post("/api/v1/waitpoints/tokens", {})).json;
    tokens.push(id);
    await worker.post(`/engine/v1/runs/${attempt.id}/waitpoints/tokens/${id}/wait`, {});
  }
  assert.deepEqual(await states(gateway), [3, 0, 2]);
  const more = await takeAll(worker);
  assert.equal(more.length, 2);
  for (const id of tokens) await gateway.post(`/api/v1/waitpoints/tokens/${id}/complete`, { data: 1 });
  const shown = async ({ id }) => (await worker.show(id)).run.waitingFor;
  for (const attempt of [first, second])
    await until(async () => (await shown(attempt))?.reason === "environment_limit");
  assert.deepEqual(await states(gateway), [1, 2, 2]);

  for (const [ended, resumed] of [[more[0], first], [more[1], second]]) {
    await ended.succeed(1);
    await until(async () => (await resumed.refresh()).snapshot.executionStatus === "EXECUTING");
    assert.equal(await worker.dequeue(), undefined, "a run that continues goes before one that has not started");
  }
  assert.deepEqual(await states(gateway), [1, 2, 0]);
  await first.succeed(1);
  assert.equal((await takeAll(worker)).length, 1);
  await gateway.stop();
});

test("a parent's slots in its queue and of its key are free for the children that it waits for", async (t) => {
  const gateway = await start(t, "--dev-concurrency", "1");
  const worker = await Worker.register(gateway, { tasks: [{ id: "nested", queue: { name: "narrow", concurrencyLimit: 1 } }],
    queues: [{ name: "narrow", concurrencyLimit: 1 }] });
  const depth = 4, stack = [await worker.trigger("nested", { concurrencyKey: "one" })];
  const attempts = [];
  for (;;) {
    const attempt = await worker.take(stack.at(-1));
    attempts.push(attempt);
    if (attempts.length === depth) break;
    stack.push(await worker.trigger("nested", { concurrencyKey: "one", parentRunId: attempt.id, resumeParentOnCompletion: true }));
  }
  assert.deepEqual(await states(gateway), [0, 1, depth - 1]);
  for (const attempt of attempts.reverse()) {
    await until(async () => (await attempt.refresh()).snapshot.executionStatus === "EXECUTING");
    await attempt.succeed(1);
  }
  for (const id of stack) assert.equal(await worker.status(id), "COMPLETED");
  await gateway.stop();
});

// The CLI keeps a run, and counts it, until it has finished, even while it waits.
test("however many parents wait, a worker that counts them as the CLI does reaches their children", async (t) => {
  const gateway = await start(t, "--dev-concurrency", "4");
  const worker = await Worker.register(gateway, { tasks: ["parent", "leaf"] });
  const { maxConcurrentRuns } = (await gateway.get("/engine/v1/dev/config")).json;
  const held = new Set(), ids = [], count = 120;
  const pauseLeaves = async (action) => assert.equal((await gateway.post("/api/v1/queues/leaf/pause", { type: "task", action })).status, 200);
  const take = async () => {
    for (let attempt; held.size <= maxConcurrentRuns && (attempt = await worker.dequeue()); held.add(attempt)) {
      await attempt.start();
      if (attempt.started.execution.task.id === "parent")
        ids.push(await worker.trigger("leaf", { parentRunId: attempt.id, resumeParentOnCompletion: true }));
    }
  };

  await pauseLeaves("pause");
  for (let i = 0; i < count; i++) ids.push(await worker.trigger("parent"));
  await take();
  assert.deepEqual(await states(gateway), [count, 0, count], "all parents wait, and no child has begun");
  await pauseLeaves("resume");
  await until(async () => {
    await take();
    for (const attempt of held)
      if ((await attempt.refresh()).snapshot.executionStatus === "EXECUTING") {
        await attempt.succeed(1);
        held.delete(attempt);
      }
    return !held.size;
  }, { timeoutMs: 90_000, what: "everything has ended" });
  assert.equal(ids.length, 2 * count);
  assert.deepEqual(await states(gateway), [0, 0, 0]);
  for (const id of ids) assert.equal(await worker.status(id), "COMPLETED");
  await gateway.stop();
});

test("a session that ends interrupts its waiting runs, too", async (t) => {
  const gateway = await start(t);
  const worker = await Worker.register(gateway);
  const attempt = await worker.take(await worker.trigger("hello"));
  await attempt.waitReply(new Date(Date.now() + 3600_000).toISOString());
  assert.equal((await worker.disconnect([attempt.id])).json.cancelled, 1);
  assert.equal(await worker.status(attempt.id), "INTERRUPTED");
  assert.deepEqual(await states(gateway), [0, 0, 0]);
  await gateway.stop();
});

test("dev executes two runs per core, others env-concurrency, and dev never more than that", async (t) => {
  const usual = Math.min(100, 2 * os.availableParallelism());
  for (const [options, key, limit] of [
    [[], keys.dev, usual],
    [[], keys.prod, 100],
    [["--dev-concurrency", "7", "--env-concurrency", "3"], keys.dev, 3],
    [["--dev-concurrency", "105", "--env-concurrency", "105"], keys.dev, 105],
  ]) {
    const gateway = await start(t, ...options);
    const worker = await Worker.register(gateway, { key });
    await triggerMany(worker, limit + 1);
    assert.equal((await takeAll(worker)).length, limit, `${options} ${key}`);
    await gateway.stop();
  }
});
