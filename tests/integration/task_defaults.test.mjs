// A run without a queue and ttl gets those that its worker registered for the task.
import assert from "node:assert/strict";
import { test } from "node:test";
import { startGateway } from "../support/js/gateway.mjs";
import { Worker } from "../support/js/worker_calls.mjs";
test("a run without a queue and ttl gets those of its task", async (t) => {
  const g = await startGateway({ t });
  const worker = await Worker.register(g, { tasks: [{ id: "narrow", ttl: "1h", queue: { name: "lane" } }, "free"], queues: [{ name: "lane", concurrencyLimit: 1 }] });
  const first = await worker.trigger("narrow"), second = await worker.trigger("narrow"), other = await worker.trigger("free");
  const held = await worker.take(first);
  await (await worker.take(other)).succeed(1);
  assert.equal((await worker.show(second)).run.ttl, "1h");
  await held.succeed(1);
  await (await worker.take(second)).succeed(1);
  await g.stop();
});
