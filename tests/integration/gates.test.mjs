// Gates: other queues of which a run must hold a slot while it executes. SDK 4.8.3 sends and parses them in its client of
// the API; its task() and trigger() cannot name them yet.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";

import { keys, startGateway, until } from "../support/js/gateway.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

const require = createRequire(new URL("../conformance/sdk-v4/x.js", import.meta.url));
const { configure, queues, runs } = require("@trigger.dev/sdk"), { ApiClient } = require("@trigger.dev/core/v3");
const key = keys.prod;

/** Starts a gateway with a worker whose version declares these tasks and queues. */
async function start(t, declared, declaredQueues = [], more = {}) {
  const gateway = await startGateway({ t, options: ["--dequeue-wait", "0"] });
  configure({ baseURL: gateway.url, accessToken: key });
  const client = new ApiClient(gateway.url, key);
  const worker = await Worker.register(gateway, { key, tasks: declared, queues: declaredQueues, ...more });
  const look = async (id) => (await worker.show(id)).run.waitingFor;
  const trigger = async (task, options) => (await client.triggerTask(task, { payload: 1, options })).id;
  const running = async (name) => (await queues.retrieve({ type: "custom", name })).running;
  const queue = async (path, type = "custom") => (await gateway.get(`/api/v1/queues/${path}${path.includes("?") ? "&" : "?"}type=${type}`, { key })).json;
  return { gateway, client, worker, look, trigger, running, queue };
}

const gate = (concurrencyLimit, more) => ({ name: "gate", concurrencyLimit, ...more });
const openai = { queue: "gate" };

test("runs of several tasks hold a slot of a queue that is their gate, next to that queue's own runs", async (t) => {
  const { gateway, worker, look, trigger, running, queue } = await start(t, [{ id: "a", gates: [openai] }, { id: "b", gates: [openai] }, { id: "c", queue: { name: "gate" } }], [gate(2)]);
  const [one, two, three, four] = [await trigger("a"), await trigger("c"), await trigger("b"), await trigger("c")];
  const first = await worker.take(one), second = await worker.take(two);
  assert.equal(await worker.dequeue(), undefined);
  assert.equal(await running("gate"), 2);
  assert.equal((await queues.retrieve({ type: "custom", name: "gate" })).queued, 1, "runs of other queues do not wait in it");
  const { reason, limitName, limitKey, limit, running: held, message } = await look(three);
  assert.deepEqual([reason, limitName, limitKey, limit, held], ["gate", "gate", undefined, 2, 2]);
  assert.equal(message, "The gate gate allows 2, and 2 hold it; the run starts when one ends or waits, or when you raise that queue's limit");
  assert.equal((await look(four)).reason, "queue_limit");
  const ids = (all) => all.map(({ id }) => id), usage = await queue("gate/usage");
  assert.deepEqual([ids(usage.running).sort(), ids(usage.queued)], [[one, two].sort(), [three, four]]);
  assert.deepEqual(usage.running.map((run) => [run.taskIdentifier, run.queue]).sort(), [["a", "task/a"], ["c", "gate"]]);
  assert.deepEqual(usage.keys, [{ name: "gate", concurrencyKey: "", perKey: { current: 2, base: 2, override: null, expiresAt: null }, running: 2, reserved: 0, queued: 1, paused: false }]);
  const own = await queue("b/usage", "task");
  assert.deepEqual([own.running, ids(own.queued), own.keys], [[], [three], []]);
  await queues.overrideConcurrencyLimit({ type: "custom", name: "gate" }, 0);
  assert.equal((await look(three)).message, "The gate gate allows 0; raise that queue's limit");
  await queues.resetConcurrencyLimit({ type: "custom", name: "gate" });

  await gateway.kill();
  await gateway.restart();
  assert.equal(await worker.dequeue(), undefined, "the slots that executing runs hold are known after a restart");
  assert.equal(await running("gate"), 2);
  await first.succeed(1);
  const third = await worker.dequeue();
  assert.ok([three, four].includes(third.id));
  await (await third.start()).succeed(1);
  await second.succeed(1);
  await (await worker.take(third.id === three ? four : three)).succeed(1);
  assert.equal(await running("gate"), 0);
  await gateway.stop();
});

test("without a key the gate counts the run's own, and a declared key is one pool for all", async (t) => {
  const { gateway, worker, look, trigger } = await start(t, [{ id: "own", gates: [openai] }, { id: "shared", gates: [{ queue: "gate", concurrencyKey: "all" }] }], [gate(1)]);
  const ann = await trigger("own", { concurrencyKey: "ann" }), again = await trigger("own", { concurrencyKey: "ann" }), bob = await trigger("own", { concurrencyKey: "bob" });
  const executing = [await worker.take(ann), await worker.take(bob)];
  assert.equal(await worker.dequeue(), undefined);
  assert.deepEqual([(await look(again)).limitKey, (await look(again)).message], ["ann", "The gate gate allows 1 for the concurrencyKey ann, and 1 holds it; the run starts when one ends or waits, or when you raise that queue's limit"]);
  await gateway.kill();
  await gateway.restart();
  const [x, y] = [await trigger("shared", { concurrencyKey: "x" }), await trigger("shared", { concurrencyKey: "y" })];
  executing.push(await worker.take(x));
  assert.equal(await worker.dequeue(), undefined);
  assert.deepEqual([(await look(y)).reason, (await look(y)).limitKey], ["gate", "all"]);
  assert.deepEqual((await worker.show(y)).run.gates, [{ queue: "gate", concurrencyKey: "all" }], "as declared before the restart");
  for (const each of executing) await each.succeed(1);
  for (const id of [again, y]) await (await worker.take(id)).succeed(1);
  await gateway.stop();
});

test("a trigger replaces the gates of its task; each key that it names counts for itself; replays, batch items and delayed runs have them too", async (t) => {
  const { gateway, client, worker, look, trigger, running, queue } = await start(t, [{ id: "a", gates: [openai], concurrency: { limits: ["limit"] } }, "free"], [gate(1), { name: "users", concurrencyLimit: 1 }], { concurrencyLimits: [{ name: "limit", total: 9 }] });
  const user = (name) => ({ gates: [{ queue: "users", concurrencyKey: name }] });
  const one = await trigger("a", user("user-17")), two = await trigger("a", user("user-17")), other = await trigger("a", user("user-18"));
  const first = await worker.take(one), third = await worker.take(other);
  assert.equal(await worker.dequeue(), undefined);
  assert.deepEqual([(await look(two)).limitName, (await look(two)).limitKey], ["users", "user-17"]);
  assert.deepEqual([await running("gate"), await running("users")], [0, 2]);
  const ofNone = await queue("a?concurrencyKey=", "task");
  assert.deepEqual([ofNone.running, ofNone.queued], [2, 1], "runs without a key");
  assert.deepEqual((await queue("users/usage")).keys.map(({ concurrencyKey, running }) => [concurrencyKey, running]).sort(), [["user-17", 1], ["user-18", 1]]);
  assert.equal((await gateway.get("/api/v1/concurrency-limits/limit", { key })).json.running, 2, "its limits stay");
  const shown = async (id) => { const { run } = await worker.show(id); return [run.concurrencyLimits, run.gates]; };
  assert.deepEqual(await shown(one), [["limit"], [{ queue: "users", concurrencyKey: "user-17" }]]);

  const none = await trigger("a", { gates: [] });
  assert.deepEqual(await shown(none), [["limit"], []]);
  await (await worker.take(none)).succeed(1);
  const { id: replayed } = await runs.replay(one);
  assert.equal(await worker.dequeue(), undefined);
  assert.equal((await look(replayed)).limitKey, "user-17");
  const batch = await gateway.post("/api/v1/tasks/batch", { items: [{ task: "free", payload: 1, options: user("user-18") }, { task: "free", payload: 1, options: { gates: [], concurrency: ["limit"] } }] }, { key });
  const [held, free] = batch.json.runs.map((run) => run.id ?? run);
  await (await worker.take(free)).succeed(1);
  assert.equal((await look(held)).limitKey, "user-18");
  const { id: delayed } = await client.triggerTask("a", { payload: 1, options: { ...user("user-18"), delay: "1s" } });
  await until(async () => await worker.status(delayed) === "QUEUED", { what: "its time" });
  const bulk = await gateway.post("/api/v1/bulk-actions", { action: "replay", runIds: [other, none] }, { key });
  await until(async () => (await gateway.get(`/api/v1/bulk-actions/${bulk.json.id}`, { key })).json.status === "COMPLETED", { what: "the bulk action" });
  const { data } = (await gateway.get(`/api/v1/runs?filter[bulkAction]=${bulk.json.id}`, { key })).json;
  const [again, unbound] = await Promise.all([["user-18"], []].map(async (names) => {
    const states = await Promise.all(data.map(async ({ id }) => [id, await shown(id)]));
    return states.find(([, [, gates]]) => gates.map(({ concurrencyKey }) => concurrencyKey).join() === names.join())[0];
  }));
  assert.deepEqual(await shown(unbound), [["limit"], []], "a bulk replay keeps limits and gates");
  await (await worker.take(unbound)).succeed(1);
  assert.equal(await worker.dequeue(), undefined);
  for (const id of [delayed, again]) assert.deepEqual([(await look(id)).limitName, (await look(id)).limitKey], ["users", "user-18"]);
  await third.succeed(1);
  for (const id of [held, delayed, again]) await (await worker.take(id)).succeed(1);
  await first.succeed(1);
  for (const id of [two, replayed]) await (await worker.take(id)).succeed(1);
  await gateway.stop();
});

test("a gate may be the run's own queue, or named twice: it holds one slot", async (t) => {
  const { gateway, worker, trigger, running } = await start(t, [{ id: "a", queue: { name: "gate" }, gates: [openai, openai] }, { id: "b", gates: [{ queue: "task/b" }] }, { id: "c", queue: { name: "gate" }, gates: [{ queue: "gate", concurrencyKey: "other" }] }], [gate(1, { combinedConcurrencyLimit: 1 })]);
  for (const task of ["a", "b", "c"]) {
    const executing = await worker.take(await trigger(task));
    assert.equal(await running("gate"), task === "b" ? 0 : 1);
    await executing.succeed(1);
  }
  await gateway.stop();
});

test("pausing a gate, its override and its limit of all keys count", async (t) => {
  const { gateway, worker, look, trigger, queue } = await start(t, [{ id: "a", gates: [openai] }], [gate(2, { combinedConcurrencyLimit: 3 })]);
  const custom = { type: "custom", name: "gate" };
  const ids = [];
  for (const concurrencyKey of ["x", "x", "x", "y", "z"]) ids.push(await trigger("a", { concurrencyKey }));
  await queues.pause(custom);
  assert.equal(await worker.dequeue(), undefined);
  assert.deepEqual([(await look(ids[0])).reason, (await look(ids[0])).limitName, (await look(ids[0])).message], ["gate_paused", "gate", "The queue gate, a gate of the run, is paused; resume it"]);
  await queues.resume(custom);
  await queues.overrideConcurrencyLimit(custom, 1);
  const executing = [await worker.take(ids[0]), await worker.take(ids[3]), await worker.take(ids[4])];
  assert.equal(await worker.dequeue(), undefined);
  assert.equal((await look(ids[1])).message, "The gate gate allows 3 in total, and 3 hold it; the run starts when one ends or waits, or when you raise that queue's limit");
  const figures = ({ concurrencyKey, running, queued, perKey }) => [concurrencyKey, running, queued, perKey.current];
  assert.deepEqual((await queue("gate/usage")).keys.map(figures).sort(), [["x", 1, 0, 1], ["y", 1, 0, 1], ["z", 1, 0, 1]], "runs that need a gate are not queued there");
  assert.deepEqual((await Promise.all([queue("a?concurrencyKey=x", "task"), queue("gate?concurrencyKey=new")])).map(figures), [["x", 1, 2, null], ["new", 0, 0, 1]]);
  await executing.pop().succeed(1);
  assert.equal(await worker.dequeue(), undefined, "the override limits each key");
  await queues.resetConcurrencyLimit(custom);
  executing.push(await worker.take(ids[1]));
  for (const each of executing) await each.succeed(1);
  await (await worker.take(ids[2])).succeed(1);
  await gateway.stop();
});

test("a run that waits gives its gate back, and resumes before other runs start once the gate has a slot", async (t) => {
  const { gateway, worker, look, trigger, running } = await start(t, [{ id: "a", gates: [openai] }], [gate(1)]);
  const parent = await trigger("a"), child = await trigger("a"), last = await trigger("a");
  const first = await worker.take(parent);
  const { id: token } = (await gateway.post("/api/v1/waitpoints/tokens", { timeout: "1h" }, { key })).json;
  await worker.post(`/engine/v1/runs/${parent}/waitpoints/tokens/${token}/wait`, {});
  const second = await worker.take(child);
  await gateway.post(`/api/v1/waitpoints/tokens/${token}/complete`, { data: 1 }, { key });
  assert.match((await until(async () => { const waiting = await look(parent); return waiting?.reason === "gate" && waiting; })).message, /1 holds it; the run continues when one ends or waits/);
  await second.succeed(1);
  await until(async () => (await first.refresh()).snapshot.executionStatus === "EXECUTING", { what: "the run resumes" });
  assert.equal(await running("gate"), 1);
  assert.equal(await worker.dequeue(), undefined);
  await first.succeed(1);
  await (await worker.take(last)).succeed(1);
  await gateway.stop();
});

test("runs that were triggered before take the gates of a new version, but not those whose trigger named some", async (t) => {
  const { gateway, look } = await start(t, ["a"], [gate(1), { name: "other", concurrencyLimit: 1 }]);
  const trigger = async (options) => (await gateway.post("/api/v1/tasks/a/trigger", { payload: 1, options }, { key })).json.id;
  const ids = [await trigger(), await trigger({ gates: [] }), await trigger({ gates: [{ queue: "other" }], delay: "1h" })];
  const worker = await Worker.register(gateway, { key, tasks: [{ id: "a", gates: [openai], concurrency: { inline: { total: 3 } } }, { id: "b", queue: { name: "gate" } }], queues: [gate(1), { name: "other", concurrencyLimit: 1 }] });
  await until(async () => (await gateway.get("/api/v1/concurrency-limits/task%2Fa", { key })).json.queued === 2, { what: "queued runs have the limit of the task" });
  const holder = await worker.trigger("b");
  await queues.pause({ type: "task", name: "a" });
  const executing = await worker.take(holder);
  await queues.resume({ type: "task", name: "a" });
  await (await worker.take(ids[1])).succeed(1);
  assert.equal(await worker.dequeue(), undefined);
  assert.equal((await look(ids[0])).reason, "gate");
  await gateway.post(`/api/v1/runs/${ids[2]}/reschedule`, { delay: "1s" }, { key });
  const other = await until(() => worker.dequeue(), { what: "the delayed run is queued, with the limit of its task" });
  assert.equal(other.id, ids[2]);
  await (await other.start()).succeed(1);
  await executing.succeed(1);
  await (await worker.take(ids[0])).succeed(1);
  await gateway.stop();
});

test("wrong gates are refused with a sentence that says what to do", async (t) => {
  const { gateway, trigger } = await start(t, [{ id: "a", queue: { name: "q" } }], [gate(1)]);
  const declare = async (gates) => (await Worker.register(gateway, { key, tasks: [{ id: "a", gates }], queues: [gate(1)] }).catch((error) => error)).message;
  assert.match(await declare([{ queue: "missing" }]), /the task \\?"a\\?" has the gate \\?"missing\\?", which is not in metadata.queues; declare it with queue\(\)/);
  assert.match(await declare([openai, openai, openai]), /gates: must be an array of at most 2 gates/);
  assert.match(await declare([{ queue: "x".repeat(129) }]), /gates.queue: must be a string of 1 to 128 characters/);
  assert.match(await declare([{ queue: "gate", concurrencyKey: "" }]), /gates.concurrencyKey: must be a string of 1 to 128 characters/);
  assert.match(await declare([{ queue: "gate", slots: 2 }]), /gates: has a member besides queue and concurrencyKey/);
  assert.match(await declare({ queue: "gate" }), /gates: must be an array of at most 2 gates/);
  assert.equal(await declare([{ queue: "task/a" }, openai]), undefined);

  await assert.rejects(trigger("a", { gates: [{ queue: "missing" }] }), { status: 422, message: /No version declares the queue 'missing', which options.gates names; declare it with queue\(\)/ });
  await Worker.register(gateway, { key: keys.staging, queues: [{ name: "elsewhere" }] });
  await assert.rejects(trigger("a", { gates: [{ queue: "elsewhere" }] }), { status: 422, message: /No version declares the queue 'elsewhere'/ }, "a queue of another environment");
  for (const gates of [[openai, openai, openai, openai], [{}], ["gate"], {}, [{ queue: "" }], [{ queue: "gate", concurrencyKey: "" }], [{ queue: "gate", concurrencyKey: "x".repeat(129) }], [{ queue: "gate", concurrencyKey: 5 }]])
    await assert.rejects(trigger("a", { gates }), { status: 400, message: /options.gates/ }, JSON.stringify(gates));
  for (const [member, gate] of [["queue", { name: "gate" }], ["concurrencyKey", { queue: "gate", concurrencyKey: 5 }]])
    await assert.rejects(trigger("a", { gates: [gate] }), { message: new RegExp(`Expected string at .*options\\.gates\\[\\]\\.${member}`) });
  assert.ok(await trigger("a", { gates: [openai, { queue: "gate", concurrencyKey: "x".repeat(128) }, { queue: "task/a" }] }));
  await gateway.stop();
});
