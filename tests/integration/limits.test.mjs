// Concurrency limits with names: declared by a version, named by a trigger, overridden and paused by the official SDK.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";

import { keys, startGateway, until } from "../support/js/gateway.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

const { configure, concurrencyLimits, queues, runs, tasks } = createRequire(new URL("../conformance/sdk-v4/x.js", import.meta.url))("@trigger.dev/sdk");
const key = keys.prod;

/** Starts a gateway with a worker whose version declares these tasks and limits. */
async function start(t, declared, limits = []) {
  const gateway = await startGateway({ t, options: ["--dequeue-wait", "0"] });
  configure({ baseURL: gateway.url, accessToken: key });
  const worker = await Worker.register(gateway, { key, tasks: declared, concurrencyLimits: limits });
  const look = async (id) => (await worker.show(id)).run.waitingFor;
  return { gateway, worker, look };
}

const openai = { name: "openai", total: 2 }, perUser = { name: "per-user", perKey: 1 };

test("a named limit holds for all tasks that need it, and says why a run waits", async (t) => {
  const { gateway, worker, look } = await start(t, [{ id: "a", concurrency: { limits: ["openai"] } }, { id: "b", concurrency: { limits: ["openai", "per-user"] } }, "c"], [openai, perUser]);
  const [one, two, three] = [await worker.trigger("a"), await worker.trigger("b"), await worker.trigger("a")];
  const first = await worker.take(one), second = await worker.take(two);
  assert.equal(await worker.dequeue(), undefined);
  const { reason, limitName, limit, running, message } = await look(three);
  assert.deepEqual([reason, limitName, limit, running], ["limit", "openai", 2, 2]);
  assert.equal(message, "The concurrency limit openai allows 2 in total, and 2 execute; the run starts when one ends or waits, or when you raise it");
  const free = await worker.take(await worker.trigger("c"));

  const listed = (await concurrencyLimits.list()).data;
  assert.deepEqual(listed.map(({ name, total, perKey, running, queued, paused }) => [name, total.current, perKey.current, running, queued, paused]),
    [["openai", 2, null, 2, 1, false], ["per-user", null, 1, 1, 0, false]]);
  await gateway.kill();
  await gateway.restart();
  assert.equal(await worker.dequeue(), undefined, "the slots that executing runs hold are known after a restart");
  assert.equal((await concurrencyLimits.retrieve("openai")).running, 2);
  await first.succeed(1);
  await (await worker.take(three)).succeed(1);
  for (const each of [second, free]) await each.succeed(1);
  await gateway.stop();
});

test("an inline limit has the name of its task; a key has a pool of its own", async (t) => {
  const { gateway, worker, look } = await start(t, [{ id: "a", queue: { name: "q" }, concurrency: { inline: { perKey: 1, total: 2 } } }]);
  const trigger = (concurrencyKey) => worker.trigger("a", { concurrencyKey });
  const [x, y, again, z] = [await trigger("x"), await trigger("y"), await trigger("x"), await trigger("z")];
  await worker.take(x);
  const holder = await worker.take(y);
  assert.equal(await worker.dequeue(), undefined);
  assert.equal((await look(z)).message, "The concurrency limit task/a allows 2 in total, and 2 execute; the run starts when one ends or waits, or when you raise it");
  await concurrencyLimits.override("task/a", { total: 5 });
  assert.equal((await look(again)).message, "The concurrency limit task/a allows 1 for the concurrencyKey x, and 1 executes; the run starts when one ends or waits, or when you raise it");
  await worker.take(z);
  const ofKey = await concurrencyLimits.override("task/a", { concurrencyKey: "x", perKey: 2, ttl: "1h" });
  assert.deepEqual([ofKey.concurrencyKey, ofKey.perKey.current, ofKey.perKey.base, ofKey.perKey.override, ofKey.running], ["x", 2, 1, 2, 1]);
  await worker.take(again);
  await gateway.kill();
  await gateway.restart();
  const kept = await concurrencyLimits.retrieve("task/a", { concurrencyKey: "x" });
  assert.deepEqual([kept.perKey.override, kept.running, kept.perKey.expiresAt], [2, 2, ofKey.perKey.expiresAt]);
  assert.equal((await concurrencyLimits.retrieve("task/a")).total.override, 5);
  assert.equal((await concurrencyLimits.reset("task/a", { concurrencyKey: "x" })).perKey.override, null);
  assert.equal((await concurrencyLimits.reset("task/a")).total.override, null);
  await holder.succeed(1);
  await gateway.stop();
});

test("an override of a key ends at its time", async (t) => {
  const { gateway, worker, look } = await start(t, [{ id: "a", concurrency: { inline: { perKey: 1 } } }]);
  await worker.take(await worker.trigger("a"));
  const ends = (ttl) => concurrencyLimits.override("task/a", { concurrencyKey: "k", perKey: 0, ttl });
  await ends("1h");
  const held = await worker.trigger("a", { concurrencyKey: "k" }), other = await worker.trigger("a");
  assert.equal(await worker.dequeue(), undefined);
  assert.equal((await look(other)).message, "The concurrency limit task/a allows 1 without a concurrencyKey, and 1 executes; the run starts when one ends or waits, or when you raise it");
  assert.equal((await look(held)).message, "The concurrency limit task/a allows 0 for the concurrencyKey k; raise it");
  await ends(1);
  await until(async () => (await concurrencyLimits.retrieve("task/a", { concurrencyKey: "k" })).perKey.override === null, { what: "the override ends" });
  await worker.take(held);
  await gateway.stop();
});

test("a paused limit starts nothing, a trigger names other limits, and a replay keeps them", async (t) => {
  const { gateway, worker, look } = await start(t, [{ id: "a", concurrency: { inline: { total: 9 }, limits: ["openai"] } }], [openai, perUser]);
  assert.equal((await concurrencyLimits.pause("openai")).paused, true);
  const held = await worker.trigger("a");
  assert.equal(await worker.dequeue(), undefined);
  assert.deepEqual([(await look(held)).reason, (await look(held)).message], ["limit_paused", "The concurrency limit openai is paused; resume it"]);
  const { id: other } = await tasks.trigger("a", 1, { concurrency: ["per-user"] });
  const executing = await worker.take(other);
  assert.deepEqual([(await concurrencyLimits.retrieve("per-user")).running, (await concurrencyLimits.retrieve("task/a")).running], [1, 1]);
  const { id: none } = await tasks.trigger("a", 1, { concurrency: [] });
  await (await worker.take(none)).succeed(1);
  await executing.succeed(1);
  const { id: replayed } = await runs.replay(other);
  const again = await worker.take(replayed);
  assert.equal((await concurrencyLimits.retrieve("per-user")).running, 1);
  await again.succeed(1);
  assert.equal((await concurrencyLimits.resume("openai")).paused, false);
  await (await worker.take(held)).succeed(1);
  await gateway.stop();
});

test("a run that waits holds no limit, and resumes when each of its limits has room", async (t) => {
  const { gateway, worker, look } = await start(t, [{ id: "a", concurrency: { limits: ["one"] } }], [{ name: "one", total: 1 }]);
  const [parent, child] = [await worker.trigger("a"), await worker.trigger("a")];
  await worker.take(parent);
  assert.equal(await worker.dequeue(), undefined);
  const { id: token } = (await gateway.post("/api/v1/waitpoints/tokens", { timeout: "1h" }, { key })).json;
  await worker.post(`/engine/v1/runs/${parent}/waitpoints/tokens/${token}/wait`, {});
  const second = await worker.take(child);
  await gateway.post(`/api/v1/waitpoints/tokens/${token}/complete`, { data: 1 }, { key });
  assert.equal((await until(async () => { const waiting = await look(parent); return waiting?.reason === "limit" && waiting; })).message,
    "The concurrency limit one allows 1 in total, and 1 executes; the run continues when one ends or waits, or when you raise it");
  await second.succeed(1);
  await until(async () => await worker.status(parent) === "EXECUTING", { what: "the run resumes" });
  assert.equal((await concurrencyLimits.retrieve("one")).running, 1);
  await gateway.stop();
});

test("a trigger that names a limit twice holds it once", async (t) => {
  const { gateway, worker } = await start(t, ["a"], [openai]);
  const { id } = await tasks.trigger("a", 1, { concurrency: ["openai", "openai"] });
  const executing = await worker.take(id);
  assert.equal((await concurrencyLimits.retrieve("openai")).running, 1);
  await executing.succeed(1);
  await gateway.stop();
});

test("neither a trigger nor a replay adds a set of limits when the runs of an environment need 1,000", async (t) => {
  const limits = Array.from({ length: 40 }, (_, i) => ({ name: `l${i}`, total: 1 }));
  const { gateway, worker } = await start(t, ["a"], limits);
  const pairs = limits.flatMap(({ name }) => limits.map((other) => [name, other.name])).filter(([one, other]) => one !== other);
  const batch = async (sets) => {
    const { status, json, text } = await gateway.post("/api/v1/tasks/batch", { items: sets.map((concurrency) => ({ task: "a", payload: 1, options: { concurrency } })) }, { key });
    assert.equal(status, 202, text);
    return json.runs.map((run) => run.id ?? run);
  };
  const [old] = await batch(pairs.slice(1000, 1001));
  await worker.cancel(old);
  const [first] = await batch(pairs.slice(0, 500));
  await batch(pairs.slice(500, 1000));
  const refused = { status: 422, message: /need 1000 different sets of concurrency limits and gates already; try again when some have ended/ };
  await assert.rejects(tasks.trigger("a", 1, { concurrency: pairs[1000] }), refused);
  await assert.rejects(runs.replay(old), refused);
  const bulk = await gateway.post("/api/v1/bulk-actions", { action: "replay", runIds: [old, first] }, { key });
  const end = await until(async () => { const { json } = await gateway.get(`/api/v1/bulk-actions/${bulk.json.id}`, { key }); return json.status !== "PENDING" && json; }, { what: "the bulk action" });
  assert.deepEqual([end.counts.success, end.counts.failure], [1, 1], "a set that is needed already can be needed again");
  await worker.cancel(first);
  await tasks.trigger("a", 1);
  await gateway.stop();
});

test("an override can be changed when no more keys can have one", async (t) => {
  const { gateway } = await start(t, ["a"], [perUser]);
  const override = (concurrencyKey, perKey) => concurrencyLimits.override("per-user", { concurrencyKey, perKey });
  for (let i = 0; i < 1000; i += 10) await Promise.all(Array.from({ length: 10 }, (_, n) => override(`k${i + n}`, 2)));
  await assert.rejects(override("one-more", 2), { status: 422, message: /At most 1000 keys of a concurrency limit/ });
  assert.equal((await override("k1", 5)).perKey.current, 5);
  await concurrencyLimits.reset("per-user", { concurrencyKey: "k1" });
  assert.equal((await override("one-more", 2)).perKey.current, 2);
  await gateway.stop();
});

for (const [what, which, before] of [["the first version", keys.dev, []], ["a new version", keys.prod, [{ id: "a" }]]])
  test(`runs that were triggered before take the limits of ${what}`, async (t) => {
    const gateway = await startGateway({ t, options: ["--dequeue-wait", "0"] });
    if (before.length) await Worker.register(gateway, { key: which, tasks: before });
    const trigger = async () => (await gateway.post("/api/v1/tasks/a/trigger", { payload: 1 }, { key: which })).json.id;
    const ids = [await trigger(), await trigger(), await trigger()];
    const worker = await Worker.register(gateway, { key: which, tasks: [{ id: "a", concurrency: { inline: { total: 1 } } }] });
    const queued = async () => (await gateway.get("/api/v1/concurrency-limits/task%2Fa", { key: which })).json.queued;
    await until(async () => await queued() === 3, { what: "each run needs the limit" });
    for (const id of ids) {
      const executing = await worker.take(id);
      assert.equal(await worker.dequeue(), undefined);
      await executing.succeed(1);
    }
    await gateway.stop();
  });

test("a limit shows the runs that hold it or wait for it, and its keys; a run shows its limits", async (t) => {
  const { gateway, worker } = await start(t, [{ id: "a", concurrency: { inline: { total: 5 }, limits: ["per-user"] } }, "c"], [perUser]);
  const get = async (path) => (await gateway.get(path, { key })).json, usage = (name) => get(`/api/v1/concurrency-limits/${name}/usage`), ids = (runs) => runs.map(({ id }) => id);
  const [first, second, other, free] = [await worker.trigger("a", { concurrencyKey: "ann" }), await worker.trigger("a", { concurrencyKey: "ann" }), await worker.trigger("a", { concurrencyKey: "bob" }), await worker.trigger("c")];
  const executing = new Map();
  for (let i = 0; i < 3; i++) { const attempt = await worker.take(); executing.set(attempt.id, attempt); }
  assert.deepEqual([...executing.keys()].sort(), [first, other, free].sort());
  await concurrencyLimits.override("per-user", { concurrencyKey: "eve", perKey: 7 });
  const { running, queued, keys: used } = await usage("per-user");
  assert.deepEqual([ids(running).sort(), ids(queued)], [[first, other].sort(), [second]]);
  const { status, taskIdentifier, queue, concurrencyKey, startedAt } = running.find(({ id }) => id === first);
  assert.deepEqual([status, taskIdentifier, queue, concurrencyKey, typeof startedAt], ["EXECUTING", "a", "task/a", "ann", "string"]);
  const figures = used.map((one) => [one.concurrencyKey, one.running, one.queued, one.perKey.current, one.perKey.override]);
  assert.deepEqual(figures.sort(), [["ann", 1, 1, 1, null], ["bob", 1, 0, 1, null], ["eve", 0, 0, 7, 7]]);
  assert.deepEqual(ids((await usage("task%2Fa")).queued), [second]);
  assert.deepEqual([(await worker.show(second)).run.concurrencyLimits, (await worker.show(free)).run.concurrencyLimits], [["task/a", "per-user"], undefined]);

  const { id: token } = (await gateway.post("/api/v1/waitpoints/tokens", { timeout: "1h" }, { key })).json;
  await worker.post(`/engine/v1/runs/${first}/waitpoints/tokens/${token}/wait`, {});
  await worker.take(second);
  assert.deepEqual(ids((await usage("per-user")).running), [other, second]);
  const third = await worker.trigger("a", { concurrencyKey: "ann" });
  await gateway.post(`/api/v1/waitpoints/tokens/${token}/complete`, { data: 1 }, { key });
  await until(async () => ids((await usage("per-user")).queued).join() === [first, third].join(), { what: "a run that resumes goes before one that has not started" });
  await gateway.kill();
  await gateway.restart();
  const after = await usage("per-user");
  assert.deepEqual([ids(after.running).sort(), ids(after.queued)], [[other, second].sort(), [first, third]]);
  await executing.get(other).succeed(1);
  assert.deepEqual(ids((await usage("per-user")).running), [second]);
  await gateway.stop();
});

test("a usage lists at most 100 runs of each kind", async (t) => {
  const { gateway } = await start(t, [{ id: "a", concurrency: { limits: ["openai"] } }], [openai]);
  await tasks.batchTrigger("a", Array.from({ length: 150 }, () => ({ payload: 1 })));
  const { queued } = (await gateway.get("/api/v1/concurrency-limits/openai/usage", { key })).json;
  assert.deepEqual([queued.length, (await concurrencyLimits.retrieve("openai")).queued], [100, 150]);
  await gateway.stop();
});

test("registering again replaces declared values, and overrides stay", async (t) => {
  const { gateway, worker } = await start(t, [{ id: "a", concurrency: { limits: ["openai"] } }], [openai]);
  await concurrencyLimits.override("openai", { total: 7 });
  await Worker.register(gateway, { key, tasks: [{ id: "a", concurrency: { limits: ["openai"] } }], concurrencyLimits: [{ name: "openai", total: 3, perKey: 2 }] });
  const { total, perKey } = await concurrencyLimits.retrieve("openai");
  assert.deepEqual([total.current, total.base, total.override, perKey.current], [7, 3, 7, 2]);
  assert.equal((await concurrencyLimits.reset("openai")).total.current, 3);
  const { version, concurrencyLimit, concurrency } = await queues.retrieve({ type: "task", name: "a" });
  assert.deepEqual([version, concurrencyLimit, concurrency], ["V2", null, undefined]);
  await worker.cancel(await worker.trigger("a"));
  await gateway.stop();
});

test("wrong declarations and changes are refused with a sentence that says what to do", async (t) => {
  const { gateway } = await start(t, [{ id: "a", concurrency: { limits: ["openai"] } }], [openai]);
  const declare = async (task, limits) => (await Worker.register(gateway, { key, tasks: [{ id: "a", ...task }], concurrencyLimits: limits }).catch((error) => error)).message;
  assert.match(await declare({ concurrency: { limits: ["missing"] } }), /names the concurrency limit \\?"missing\\?", which is not in metadata.concurrencyLimits/);
  assert.match(await declare({ concurrency: { limits: ["x", "y", "z"] } }), /concurrency.limits: must be an array of at most 2 names/);
  assert.match(await declare({ concurrency: { inline: { total: 0 } } }), /concurrency.inline.total: must be a whole number from 1 to 100000/);
  assert.match(await declare({}, [{ name: "no/slash" }]), /name: must be a string of 1 to 128 letters, digits, - and _/);
  assert.match(await declare({}, [openai, openai]), /two limits have the name \\?"openai/);

  const change = async (body, what = "override") => { const { status, json } = await gateway.post(`/api/v1/concurrency-limits/openai/${what}`, body, { key }); return [status, json.error]; };
  assert.deepEqual(await change({}), [400, "perKey, total: give at least one of them"]);
  assert.deepEqual(await change({ total: 1, concurrencyKey: "k", perKey: 1 }), [400, "total: is for all keys together; leave it out, or leave concurrencyKey out"]);
  assert.deepEqual(await change({ concurrencyKey: "k" }), [400, "perKey: is missing; an override of one concurrencyKey needs it"]);
  assert.deepEqual(await change({ total: 1, ttl: "1h" }), [400, "ttl: is only for an override of one concurrencyKey; name the key, or leave ttl out"]);
  for (const ttl of ["31d", 0, "soon", 1.5]) assert.equal((await change({ concurrencyKey: "k", perKey: 1, ttl }))[0], 400);
  assert.deepEqual(await change({ action: "stop" }, "pause"), [400, "action: must be pause or resume"]);
  await assert.rejects(concurrencyLimits.retrieve("missing"), { status: 404 });
  await assert.rejects(tasks.trigger("a", 1, { concurrency: ["missing"] }), { status: 422, message: /No version declares the concurrency limit 'missing'/ });
  assert.equal((await gateway.post("/api/v1/tasks/a/trigger", { payload: 1, options: { concurrency: ["a b"] } }, { key })).status, 400);
  await gateway.stop();
});

test("changes of one limit at the same time all succeed", async (t) => {
  const { gateway } = await start(t, [{ id: "a", concurrency: { inline: { perKey: 1 } } }]);
  const keysOfLimit = Array.from({ length: 60 }, (_, i) => `key-${i}`);
  await Promise.all(keysOfLimit.map((concurrencyKey) => concurrencyLimits.override("task/a", { concurrencyKey, perKey: 2 })));
  for (const concurrencyKey of keysOfLimit)
    assert.equal((await concurrencyLimits.retrieve("task/a", { concurrencyKey })).perKey.override, 2, concurrencyKey);
  await gateway.stop();
});
