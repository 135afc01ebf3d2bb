// Runs that need slots of several limits: slots are reserved for one that others pass over, and a run that waits holds none.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";

import { keys, startGateway, until } from "../support/js/gateway.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

const { configure, concurrencyLimits } = createRequire(new URL("../conformance/sdk-v4/x.js", import.meta.url))("@trigger.dev/sdk");
const key = keys.prod, passesMax = 64;

async function start(t, tasks, limits) {
  const gateway = await startGateway({ t, options: ["--dequeue-wait", "0"] });
  configure({ baseURL: gateway.url, accessToken: key });
  const worker = await Worker.register(gateway, { key, tasks, concurrencyLimits: limits.map((name) => ({ name, total: 1 })) });
  const look = async (id) => (await worker.show(id)).run.waitingFor;
  const slots = async (name) => { const { running, reserved } = (await gateway.get(`/api/v1/concurrency-limits/${name}`, { key })).json; return [running, reserved]; };
  const isExecuting = async (attempt) => (await attempt.refresh()).snapshot.executionStatus === "EXECUTING";
  return { gateway, worker, look, slots, isExecuting };
}

/** Tasks whose runs need slots: many of them one, and one both. */
const pairOfStreams = ["a", "b", "pair"].map((id) => ({ id, concurrency: { limits: id === "pair" ? ["a", "b"] : [id] } }));

/** Triggers the next run of the task, then ends the attempt. Returns the id of that run and its attempt, if it may start. */
async function replace(worker, attempt, task) {
  const id = await worker.trigger(task);
  await attempt.succeed(1);
  const next = await worker.dequeue();
  if (next) assert.equal(next.id, id);
  return [id, await next?.start()];
}

/** Lets runs of a pass over another one until a slot is kept. Returns the id of the run that it holds up. */
async function passOver(worker, a) {
  for (let passes = 0, held; passes <= passesMax; passes++) {
    [held, a] = await replace(worker, a, "a");
    if (!a) return held;
  }
  assert.fail("no slot is kept");
}

test("a run of two limits starts among streams of runs of one", async (t) => {
  const { gateway, worker, look, slots } = await start(t, pairOfStreams, ["a", "b"]);
  let a = await worker.take(await worker.trigger("a")), b = await worker.take(await worker.trigger("b")), held, passes = 0;
  const pair = await worker.trigger("pair");
  for (let next; passes <= passesMax; passes++, a = next) {
    [held, next] = await replace(worker, a, "a");
    if (!next) break;
  }
  assert.equal(passes, passesMax, "the slot is kept for the run that was passed over");
  assert.deepEqual([await slots("a"), await slots("b")], [[0, 1], [1, 0]]);
  const { reason, limitName, limit, running, reserved, message } = await look(held);
  assert.deepEqual([reason, limitName, limit, running, reserved], ["limit", "a", 1, 0, 1]);
  assert.equal(message, "The concurrency limit a allows 1 in total, 0 execute, and 1 is reserved for a run that was passed over 64 times; the run starts when one ends or waits, or when you raise it");
  assert.equal((await look(pair)).limitName, "b");

  await concurrencyLimits.pause("b");
  assert.deepEqual(await slots("a"), [0, 0], "nothing is reserved while one of its limits is paused");
  a = await worker.take(held);
  await concurrencyLimits.resume("b");
  [held, a] = await replace(worker, a, "a");
  [held, a] = await replace(worker, a, "a");
  assert.equal(a, undefined);
  assert.deepEqual(await slots("a"), [0, 1]);

  await worker.trigger("b");
  await b.succeed(1);
  b = await worker.take(pair);
  assert.deepEqual([await slots("a"), await slots("b")], [[1, 0], [1, 0]]);
  await b.succeed(1);
  await gateway.stop();
});

test("a canceled run keeps no slot", async (t) => {
  const { gateway, worker, slots } = await start(t, pairOfStreams, ["a", "b"]);
  const a = await worker.take(await worker.trigger("a"));
  await worker.take(await worker.trigger("b"));
  const pair = await worker.trigger("pair"), held = await passOver(worker, a);
  assert.deepEqual(await slots("a"), [0, 1]);
  await worker.cancel(pair);
  assert.deepEqual(await slots("a"), [0, 0]);
  await worker.take(held);
  await gateway.stop();
});

test("slots that no worker takes are free for a run that resumes", async (t) => {
  const { gateway, worker, slots, isExecuting } = await start(t, pairOfStreams, ["a", "b"]);
  const waiting = await worker.take(await worker.trigger("a"));
  const { id: token } = (await gateway.post("/api/v1/waitpoints/tokens", { timeout: "1h" }, { key })).json;
  await worker.post(`/engine/v1/runs/${waiting.id}/waitpoints/tokens/${token}/wait`, {});
  const a = await worker.take(await worker.trigger("a")), b = await worker.take(await worker.trigger("b"));
  const pair = await worker.trigger("pair");
  await passOver(worker, a);
  await gateway.post(`/api/v1/waitpoints/tokens/${token}/complete`, { data: 1 }, { key });
  assert.deepEqual([await isExecuting(waiting), await slots("a")], [false, [0, 1]]);
  await b.succeed(1); // now the pair may start, but no worker requests a run
  await until(() => isExecuting(waiting), { what: "the run resumes" });
  await waiting.succeed(1);
  await worker.take(pair);
  await gateway.stop();
});

test("a parent and its child need the only slot of one limit: the parent holds nothing while it waits", async (t) => {
  const { gateway, worker, slots, isExecuting } = await start(t, [{ id: "nested", concurrency: { limits: ["one"] } }], ["one"]);
  const parent = await worker.take(await worker.trigger("nested"));
  const child = await worker.trigger("nested", { parentRunId: parent.id, resumeParentOnCompletion: true });
  assert.deepEqual(await slots("one"), [0, 0]);
  const executing = await worker.take(child);
  assert.deepEqual(await slots("one"), [1, 0]);
  assert.equal(await isExecuting(parent), false);
  await executing.succeed(1);
  await until(() => isExecuting(parent), { what: "the parent resumes" });
  assert.deepEqual(await slots("one"), [1, 0]);
  await parent.succeed(1);
  await gateway.stop();
});

test("two parents whose children end at once resume one after the other", async (t) => {
  const { gateway, worker, look, slots, isExecuting } = await start(t, [
    { id: "parent", concurrency: { limits: ["one", "two"] } }, { id: "other", concurrency: { limits: ["two", "one"] } }, "child",
  ], ["one", "two"]);
  const parents = [], children = [];
  for (const task of ["parent", "other"]) {
    const parent = await worker.take(await worker.trigger(task));
    const child = await worker.trigger("child", { parentRunId: parent.id, resumeParentOnCompletion: true });
    parents.push(parent);
    children.push(await worker.take(child));
  }
  await Promise.all(children.map((child) => child.succeed(1)));
  const states = () => Promise.all(parents.map(isExecuting));
  const first = await until(async () => { const at = (await states()).indexOf(true); return at >= 0 && parents[at]; }, { what: "one resumes" });
  const second = parents.find((parent) => parent !== first);
  await until(async () => (await look(second.id))?.reason === "limit", { what: "the other one waits for a slot" });
  assert.deepEqual([await isExecuting(second), await slots("one"), await slots("two")], [false, [1, 0], [1, 0]]);
  await first.succeed(1);
  await until(() => isExecuting(second), { what: "the other one resumes" });
  await second.succeed(1);
  await gateway.stop();
});
