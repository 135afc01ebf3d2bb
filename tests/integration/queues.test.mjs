// Queues: how they are listed, pausing, overridden limits, and that both survive a restart.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { keys, startGateway, until } from "../support/js/gateway.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

let gateway, worker;
before(async () => {
  gateway = await startGateway({ options: ["--env-concurrency", "50"] });
  const limited = { id: "limited", queue: { concurrencyLimit: 2 } };
  worker = await Worker.register(gateway, { tasks: ["hello", limited], queues: [{ name: "mails/out", concurrencyLimit: 3 }, { name: "later" }] });
});
after(() => gateway.stop());

const path = (name, rest = "") => `/api/v1/queues/${encodeURIComponent(name.replaceAll("/", "%2F"))}${rest}`;
const show = async (name, type = "task") => (await gateway.get(path(name, `?type=${type}`))).json;
const change = (name, what, body) => gateway.post(path(name, `/${what}`), body);
const pause = (name, action = "pause", type = "task") => change(name, "pause", { type, action });
const limit = (name, concurrencyLimit, type = "task") => change(name, "concurrency/override", { type, concurrencyLimit });
const reset = (name, type = "task") => change(name, "concurrency/reset", { type });

async function good(promise) {
  const reply = await promise;
  assert.equal(reply.status, 200, reply.text);
  return reply.json;
}

// ---- how they are listed ----

test("registered queues are listed with the limits that they were registered with", async () => {
  const hello = await show("hello"), mails = await show("mails/out", "custom");
  assert.deepEqual([hello.name, hello.type, hello.concurrencyLimit, hello.paused, hello.version], ["hello", "task", null, false, "V1"]);
  assert.deepEqual([mails.name, mails.type, mails.concurrencyLimit], ["mails/out", "custom", 3]);
  assert.deepEqual(mails.concurrency, { current: 3, base: 3, override: null, overriddenAt: null, overriddenBy: null });
  assert.match(hello.id, /^queue_/);
  for (const queue of [hello, mails]) assert.deepEqual(await good(gateway.get(`/api/v1/queues/${queue.id}?type=id`)), queue);
  assert.deepEqual((await gateway.get(`/api/v1/queues/${mails.id}`)).json, mails);
});

test("pages are ordered by name and end", async () => {
  const all = await good(gateway.get("/api/v1/queues"));
  assert.deepEqual(all.data.map((queue) => queue.name), ["later", "mails/out", "hello", "limited"]);
  assert.deepEqual(all.pagination, { currentPage: 1, totalPages: 1, count: 4 });
  const second = await good(gateway.get("/api/v1/queues?page=2&perPage=2"));
  assert.deepEqual([second.data.map((queue) => queue.name), second.pagination], [["hello", "limited"], { currentPage: 2, totalPages: 2, count: 4 }]);
  assert.deepEqual(await good(gateway.get("/api/v1/queues?perPage=1000")), all); // there are 100 of them
  assert.equal((await gateway.get("/api/v1/queues?perPage=1000")).headers["x-ignored-members"], "perPage");
  const far = await good(gateway.get("/api/v1/queues?page=4294967295&perPage=100"));
  assert.deepEqual(far.data, []);
});

test("waiting and executing runs are counted, and an undeclared queue is not found", async () => {
  const before = (await good(gateway.get("/api/v1/queues"))).pagination.count;
  const id = await worker.trigger("hello", { queue: { name: "mails/out" } });
  await worker.trigger("hello", { queue: { name: "mails/out" }, delay: "1h" });
  const parked = await worker.trigger("hello", { queue: { name: "passing" } });
  assert.deepEqual([(await show("mails/out", "custom")).queued, (await show("mails/out", "custom")).running], [1, 0]);
  const attempt = await worker.take(id);
  assert.deepEqual([(await show("mails/out", "custom")).queued, (await show("mails/out", "custom")).running], [0, 1]);
  await attempt.succeed(1);
  assert.equal((await good(gateway.get("/api/v1/queues"))).pagination.count, before);
  assert.equal((await gateway.get(path("passing", "?type=custom"))).status, 404);
  await worker.cancel(parked);
});

test("a task's queue is also found by the name that ctx.queue.name has", async () => {
  const hello = await show("hello");
  assert.deepEqual(await show("task/hello"), hello);
  assert.equal((await good(pause("task/hello"))).paused, true);
  assert.equal((await good(pause("task/hello", "resume"))).paused, false);
  assert.equal((await good(limit("task/hello", 7))).concurrencyLimit, 7);
  assert.equal((await good(reset("task/hello"))).concurrencyLimit, null);
  const id = await worker.trigger("hello", { tags: ["prefixed"], delay: "1h" });
  for (const queue of ["task/hello", "task/task/hello"])
    assert.deepEqual((await good(gateway.get(`/api/v1/runs?filter[tag]=prefixed&filter[queue]=${queue}`))).data.map((run) => run.id), [id]);
  await worker.cancel(id);
});

/** A held dequeue gets a run of another queue, which is triggered later, and not one that its queue keeps back. */
async function passesOver(id) {
  const taken = worker.dequeue(), later = await worker.trigger("hello", { queue: { name: "later" } });
  const attempt = await taken;
  assert.equal(attempt.id, later, `not ${id}`);
  await (await attempt.start()).succeed(1);
}

/** A dequeue that is held when this returns: { attempt }, a promise of what it gets. */
async function heldDequeue() {
  const attempt = worker.dequeue();
  await until(async () => await gateway.metric("runcast_waiting_workers") === 1, { what: "it is held" });
  return { attempt };
}

// ---- pausing ----

test("a paused queue starts no run, others continue, and resuming releases the run", async () => {
  const paused = await good(pause("hello"));
  assert.equal(paused.paused, true);
  assert.deepEqual(await good(pause("hello")), paused); // pausing twice is not an error
  const waiting = await worker.trigger("hello"), other = await worker.trigger("limited");
  await (await worker.take(other)).succeed(1);

  await passesOver(waiting);
  assert.deepEqual([(await show("hello")).queued, await worker.status(waiting)], [1, "QUEUED"]);
  const held = await heldDequeue();
  assert.equal((await good(pause("hello", "resume"))).paused, false);
  const attempt = await held.attempt;
  assert.equal(attempt?.id, waiting);
  await (await attempt.start()).succeed(1);
});

// ---- limits ----

test("an override replaces the registered limit until it is removed", async () => {
  const asked = Date.now(), { concurrency, concurrencyLimit } = await good(limit("limited", 1));
  assert.deepEqual([concurrencyLimit, concurrency.current, concurrency.base, concurrency.override], [1, 1, 2, 1]);
  assert.ok(Date.parse(concurrency.overriddenAt) >= asked - 100 && Date.parse(concurrency.overriddenAt) <= Date.now());

  const ids = [await worker.trigger("limited"), await worker.trigger("limited"), await worker.trigger("limited")];
  const first = await worker.take(ids[0]);
  await passesOver(ids[1]);
  const held = await heldDequeue();
  assert.equal((await good(reset("limited"))).concurrency.override, null);
  const second = await held.attempt; // base limit 2
  assert.equal(second?.id, ids[1]);
  assert.equal((await show("limited")).running, 2);
  const third = worker.dequeue();
  await first.succeed(1);
  await (await second.start()).succeed(1);
  await (await (await third).start()).succeed(1);
});

test("a limit of 0 blocks the queue", async () => {
  await good(limit("limited", 0));
  const id = await worker.trigger("limited");
  await passesOver(id);
  const held = await heldDequeue();
  await good(reset("limited"));
  await (await (await held.attempt).start()).succeed(1);
  assert.equal(await worker.status(id), "COMPLETED");
});

test("simultaneous changes are all applied", async () => {
  const overrides = [7, 8, 9]; // each uses its own connection: which one comes last is not known
  const [limits, pauses] = await Promise.all([
    Promise.all(overrides.map((override) => good(limit("hello", override)))),
    Promise.all(["pause", "pause"].map((action) => good(pause("hello", action)))),
  ]);
  assert.deepEqual(limits.map((queue) => queue.concurrency.override), overrides);
  assert.deepEqual(pauses.map((queue) => queue.paused), [true, true]);
  const queue = await show("hello");
  assert.equal(queue.paused, true);
  assert.ok(overrides.includes(queue.concurrency.override), `${queue.concurrency.override}`);
  await good(reset("hello"));
  assert.equal((await good(pause("hello", "resume"))).concurrencyLimit, null);
});

// ---- refusals ----

const notFound = {
  id: "queue-not-found: no queue has this id; to use a name, send type task or custom",
  task: "queue-not-found: no queue has the name task/<name>, which type task means; type custom means the name as it is",
  custom: "queue-not-found: no queue has this name; type task means task/<name>, the queue of a task",
};

test("invalid calls are refused with a reason and change nothing", async () => {
  const before = await good(gateway.get("/api/v1/queues"));
  for (const [reply, status, text] of [
    [await gateway.get(path("nope", "?type=custom")), 404, notFound.custom],
    [await gateway.get(path("hello", "?type=custom")), 404, notFound.custom],
    [await gateway.get(path("nope", "/usage?type=custom")), 404, notFound.custom],
    [await gateway.get("/api/v1/queues/queue_!!"), 404, notFound.id],
    [await gateway.get("/api/v1/queues/other"), 404, notFound.id],
    [await gateway.get("/api/v1/queues/other/usage"), 404, notFound.id],
    [await gateway.get(path("hello", "?type=kind")), 400, "type: must be id, task or custom"],
    [await gateway.get("/api/v1/queues?perPage=0"), 400, "perPage: must be a number from 1 to 4294967295"],
    [await gateway.get("/api/v1/queues?page=0"), 400, "page: must be a number from 1 to 4294967295"],
    [await pause("nope"), 404, notFound.task],
    [await pause("hello", "stop"), 400, "action: must be pause or resume"],
    [await change("hello", "pause", { type: 5, action: "pause" }), 400, "type: must be id, task or custom"],
    [await change("hello", "pause", "{"), 400, "Invalid JSON"],
    [await limit("hello", -1), 400, "concurrencyLimit: must be a whole number from 0 to 100000"],
    [await limit("hello", 1.5), 400, "concurrencyLimit: must be a whole number from 0 to 100000"],
    [await limit("hello", "5"), 400, "concurrencyLimit: must be a whole number from 0 to 100000"],
    [await limit("hello", 100_001), 400, "concurrencyLimit: must be a whole number from 0 to 100000"],
    [await reset("hello"), 400, "queue-not-overridden"],
  ]) {
    assert.deepEqual([reply.status, reply.json?.error], [status, text]);
  }
  assert.deepEqual(await good(gateway.get("/api/v1/queues")), before);
});

test("another environment has its own queues", async () => {
  const production = { key: keys.prod };
  assert.equal((await gateway.get(path("hello", "?type=task"), production)).status, 404);
  assert.equal((await gateway.post(path("hello", "/pause"), { type: "task", action: "pause" }, production)).status, 404);
  assert.equal((await gateway.get("/api/v1/queues", { key: keys.pat })).status, 401);
  assert.equal((await show("hello")).paused, false);
});

// ---- restarts ----

test("pauses and overrides survive a kill", async () => {
  const run = await worker.trigger("hello", { queue: { name: "later" } });
  await good(pause("later", "pause", "custom"));
  await good(limit("limited", 1));
  const before = [await show("later", "custom"), await show("limited"), await show("mails/out", "custom")];
  await gateway.kill();
  await gateway.restart();
  assert.deepEqual([await show("later", "custom"), await show("limited"), await show("mails/out", "custom")], before);
  assert.deepEqual([before[0].paused, before[0].queued, before[1].concurrencyLimit], [true, 1, 1]);

  await good(pause("later", "resume", "custom"));
  await good(reset("limited"));
  await gateway.kill();
  await gateway.restart();
  assert.deepEqual([(await show("later", "custom")).paused, (await show("limited")).concurrencyLimit], [false, 2]);
  await good(pause("later", "pause", "custom")); // its document had been removed
  await good(pause("later", "resume", "custom"));
  const attempt = await until(() => worker.dequeue(), { what: "the run is given out" });
  assert.equal(attempt.id, run);
  await (await attempt.start()).succeed(1);
});
