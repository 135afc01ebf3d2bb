// waitingFor: what a run that does not execute waits for, in GET /api/v3/runs/:id.
import assert from "node:assert/strict";
import { test } from "node:test";

import { keys, startGateway, until } from "../support/js/gateway.mjs";
import { publicToken } from "../support/js/tokens.mjs";
import { inMs, thrown, Worker } from "../support/js/worker_calls.mjs";

const key = keys.prod;
const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

test("each reason for which a run waits is reported, and the first one if there are several", async (t) => {
  const gateway = await startGateway({ t, options: ["--env-concurrency", "3", "--dequeue-wait", "0"] });
  const worker = new Worker(gateway, key);
  const look = async (id) => (await worker.show(id)).run.waitingFor;
  const settle = (name, what, body) => gateway.post(`/api/v1/queues/${name}/${what}`, { type: "task", ...body }, { key });

  const id = await worker.trigger("a");
  const { since, message, ...version } = await look(id);
  assert.deepEqual(version, { reason: "version", task: "a" });
  assert.match(since, iso);
  assert.match(message, /; register one that has the task a$/);

  const narrow = { id: "b", queue: { concurrencyLimit: 1 } };
  Object.assign(worker, await Worker.register(gateway, { key, tasks: ["a", narrow, { id: "c", retry: { maxAttempts: 3 } }] }));
  const { since: same, message: how, ...nobody } = await until(async () => {
    const waiting = await look(id);
    return waiting?.reason === "no_worker" && waiting;
  });
  assert.deepEqual(nobody, { reason: "no_worker", ahead: 0, task: "a" });
  assert.equal(same, since);
  assert.match(how, /start one/);

  assert.equal((await settle("a", "pause", { action: "pause" })).status, 200);
  assert.equal((await look(id)).reason, "no_worker", "no worker has dequeued yet");
  assert.equal(await worker.dequeue(), undefined);
  const paused = await look(id);
  assert.deepEqual([paused.reason, paused.ahead], ["queue_paused", 0]);
  await settle("a", "pause", { action: "resume" });

  const first = await worker.take(id);
  assert.equal(await look(id), undefined);
  const held = await worker.trigger("b");
  const limited = [await worker.trigger("b"), await worker.trigger("b")];
  const holding = await worker.take(held);
  const standing = async (run) => {
    const { reason, limit, running, ahead } = await look(run);
    return [reason, limit, running, ahead];
  };
  assert.deepEqual(await Promise.all(limited.map(standing)), [["queue_limit", 1, 1, 0], ["queue_limit", 1, 1, 1]]);

  const keyed = await worker.trigger("b", { concurrencyKey: "k" });
  const keyedToo = await worker.trigger("b", { concurrencyKey: "k" });
  const third = await worker.take(keyed);
  assert.deepEqual(await standing(keyedToo), ["concurrency_key", 1, 1, 0]);
  assert.equal((await look(keyedToo)).message, "The queue task/b allows 1 for the concurrencyKey k, and 1 executes; the run starts when one ends or waits, or when you raise it");
  const last = await worker.trigger("c");
  assert.deepEqual(await standing(last), ["environment_limit", 3, 3, 0]);
  await holding.succeed(1);
  assert.deepEqual(await standing(last), ["room", undefined, undefined, 0]);
  await third.succeed(1);

  const { id: token } = (await gateway.post("/api/v1/waitpoints/tokens", { timeout: "1h" }, { key })).json;
  await worker.post(`/engine/v1/runs/${id}/waitpoints/tokens/${token}/wait`, {});
  const blocked = await look(id);
  assert.deepEqual([blocked.reason, blocked.message.includes(token)], ["waitpoint", true]);
  assert.ok(Date.parse(blocked.until) > Date.now());
  await worker.cancel(id);
  assert.equal(await look(id), undefined);

  let failing;
  while (!failing) {
    const attempt = await (await worker.dequeue()).start();
    if (attempt.id === last) failing = attempt;
    else await attempt.succeed(1);
  }
  await failing.fail(thrown, { retry: inMs(3600_000) });
  const retry = await look(last);
  assert.deepEqual([retry.reason, Date.parse(retry.until) > Date.now()], ["retry", true]);

  const delayed = await worker.trigger("a", { delay: "1h" });
  const delay = await look(delayed);
  assert.deepEqual([delay.reason, delay.until], ["delay", (await worker.show(delayed)).run.delayedUntil]);
  await gateway.kill();
  await gateway.restart();
  assert.deepEqual([await look(delayed), await look(last)], [delay, retry]);
  assert.equal(first.id, id);
  await gateway.stop();
});

test("a queue's combined limit holds for all concurrency keys together, also after a restart and a resumption", async (t) => {
  const gateway = await startGateway({ t, options: ["--dequeue-wait", "0"] });
  const shared = { id: "a", queue: { name: "shared", concurrencyLimit: 1, combinedConcurrencyLimit: 2 } };
  const worker = await Worker.register(gateway, { key, tasks: [shared, { id: "b", queue: { name: "shared" } }] });
  const look = async (id) => (await worker.show(id)).run.waitingFor;
  const [first, second, third] = [await worker.trigger("a", { concurrencyKey: "x" }), await worker.trigger("b", { concurrencyKey: "y" }), await worker.trigger("a", { concurrencyKey: "z" })];
  const [one, two] = [await worker.take(first), await worker.take(second)];
  assert.equal(await worker.dequeue(), undefined);
  const { reason, limit, running, message } = await look(third);
  assert.deepEqual([reason, limit, running], ["queue_total", 2, 2]);
  assert.equal(message, "The queue shared allows 2 in total (combinedConcurrencyLimit), and 2 execute; the run starts when one ends or waits");
  const queue = async () => (await gateway.get("/api/v1/queues/shared?type=custom", { key })).json;
  assert.deepEqual([(await queue()).combinedConcurrencyLimit, (await queue()).concurrencyLimit], [2, 1]);
  await gateway.kill();
  await gateway.restart();
  assert.equal(await worker.dequeue(), undefined);

  const { id: token } = (await gateway.post("/api/v1/waitpoints/tokens", { timeout: "1h" }, { key })).json;
  await worker.post(`/engine/v1/runs/${first}/waitpoints/tokens/${token}/wait`, {});
  const three = await worker.take(third);
  await gateway.post(`/api/v1/waitpoints/tokens/${token}/complete`, { data: 1 }, { key });
  assert.match((await until(async () => { const waiting = await look(first); return waiting?.reason === "queue_total" && waiting; })).message, /the run continues when one ends or waits/);
  await three.succeed(1);
  await until(async () => await worker.status(first) === "EXECUTING", { what: "the run resumes" });
  await two.succeed(1);
  await Worker.register(gateway, { key, tasks: [{ id: "a", queue: { name: "shared", combinedConcurrencyLimit: 0 } }, "b"] });
  assert.equal((await look(await worker.trigger("a"))).message, "The queue shared allows 0 in total (combinedConcurrencyLimit); declare a higher value");
  await Worker.register(gateway, { key, tasks: [{ id: "a", queue: { name: "shared", combinedConcurrencyLimit: null } }, "b"] });
  await gateway.stop();
});

test("a token that cannot read all of a run does not see what it waits for", async (t) => {
  const gateway = await startGateway({ t });
  const { id } = (await gateway.post("/api/v1/tasks/a/trigger", { payload: 1 }, { key })).json;
  const shown = async (claims) => {
    const token = await publicToken(gateway, { key, scopes: [`read:runs:${id}`], ...claims });
    const { status, json } = await gateway.get(`/api/v3/runs/${id}`, { key: token });
    assert.equal(status, 200);
    return json.waitingFor?.reason;
  };
  assert.equal(await shown({}), "version");
  assert.equal(await shown({ skipColumns: ["queuedAt"] }), undefined);
  await gateway.stop();
});

test("after ten seconds without a worker the log says so, once", async (t) => {
  const gateway = await startGateway({ t });
  const { id } = (await gateway.post("/api/v1/tasks/a/trigger", { payload: 1 }, { key: keys.dev })).json;
  const lines = () => gateway.stderr.split("\n").filter((line) => line.includes("a run waits"));
  const [line] = await until(() => lines().length && lines(), { timeoutMs: 60_000 });
  const { level, reason, run, task, message } = JSON.parse(line);
  assert.deepEqual({ level, reason, run, task }, { level: "warn", reason: "no_worker", run: id, task: "a" });
  assert.match(message, /trigger dev/);
  await gateway.stop();
  assert.equal(lines().length, 1);
});
