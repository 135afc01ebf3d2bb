// The cost of a run: --run-price once, --machine-prices for the time of its attempts; nothing in dev.
import assert from "node:assert/strict";
import { test } from "node:test";

import { keys, startGateway } from "../support/js/gateway.mjs";
import { inMs, thrown, Worker } from "../support/js/worker_calls.mjs";

const cheap = 0.00338 / 1000, dear = 0.5 / 1000; // cents per millisecond
const near = (actual, expected) => assert.ok(Math.abs(actual - expected) < 1e-9, `${actual} is not ${expected}`);
const costs = ({ baseCostInCents, costInCents }) => [baseCostInCents, costInCents];

async function changes(gateway, id) {
  const { status, json } = await gateway.get(`/realtime/v1/runs/${id}?offset=-1`, { key: keys.prod });
  assert.equal(status, 200);
  return costs(json[0].value).map(Number);
}

test("a run costs its first start and each attempt; the cost is shown everywhere and survives a restart", async (t) => {
  const gateway = await startGateway({ t, options: ["--machine-prices", "large-1x=0.5"] });
  const worker = await Worker.register(gateway, { key: keys.prod, tasks: [{ id: "small", retry: { maxAttempts: 3 } }, { id: "large", machine: { preset: "large-1x" } }] });
  const id = await worker.trigger("small");
  const show = async () => costs((await worker.show(id)).run);
  assert.deepEqual(await show(), [0, 0]);

  const attempt = await worker.dequeue();
  near(attempt.message.run.machine.centsPerMs, cheap);
  assert.deepEqual(await show(), [0, 0]);
  await attempt.start();
  near(attempt.started.execution.machine.centsPerMs, cheap);
  assert.deepEqual(costs(attempt.started.execution.run), [0.0025, 0]);
  await attempt.fail(thrown, { usage: { durationMs: 1000 }, retry: inMs(10) });
  near((await show())[1], 1000 * cheap);
  await attempt.start();
  near(attempt.started.execution.run.costInCents, 1000 * cheap);

  await gateway.kill();
  await gateway.restart();
  near((await show())[1], 1000 * cheap);
  await attempt.succeed(1, { usage: { durationMs: 500 } });
  const expected = [0.0025, 1500 * cheap];
  const trace = (await gateway.get(`/api/v1/runs/${id}/trace`, { key: keys.prod })).json.trace.rootSpan.data;
  for (const shown of [await show(), await changes(gateway, id), costs(trace)]) shown.forEach((cents, i) => near(cents, expected[i]));

  const large = await worker.trigger("large");
  await (await worker.take(large)).succeed(1, { usage: { durationMs: 20 } });
  near((await worker.show(large)).run.costInCents, 20 * dear);
  const listed = (await gateway.get("/api/v1/runs", { key: keys.prod })).json.data.find((run) => run.id === large);
  near(listed.costInCents, 20 * dear);
  assert.equal(listed.baseCostInCents, 0.0025);
  await gateway.stop();
});

test("nothing costs anything in dev, nor where prices are 0", async (t) => {
  const gateway = await startGateway({ t });
  const free = await startGateway({ t, options: ["--run-price", "0", "--machine-prices", "0"] });
  for (const [where, key] of [[gateway, keys.dev], [free, keys.prod]]) {
    const worker = await Worker.register(where, { key });
    const id = await worker.trigger("hello");
    const attempt = await worker.take(id);
    assert.equal(attempt.started.execution.machine.centsPerMs, 0);
    await attempt.succeed(1, { usage: { durationMs: 1000 } });
    const { run } = await worker.show(id);
    assert.deepEqual([...costs(run), run.durationMs], [0, 0, 1000]);
    await where.stop();
  }
});
