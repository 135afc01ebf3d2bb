// Worker versions pile up: a developer makes one with every saved file, an attacker as fast as possible. The oldest are
// removed with their queues; the others stay as they are.
import assert from "node:assert/strict";
import { test } from "node:test";

import { keys, startGateway, until } from "../support/js/gateway.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

test("when versions have too many tasks the oldest are removed with their queues, also across a restart", async (t) => {
  const gateway = await startGateway({ t });
  const register = async (n, count) => {
    const tasks = Array.from({ length: count }, (_, i) => ({ id: `t${i}`, filePath: "f", exportName: "e", queue: { name: "common" } }));
    const metadata = { packageVersion: "4.8.3", cliPackageVersion: "4.8.3", contentHash: `hash-${n}`, tasks, queues: [{ name: `queue-${n}` }] };
    const made = await gateway.post(`/api/v1/projects/${keys.ref}/background-workers`, { localOnly: true, metadata });
    assert.equal(made.status, 200, made.text);
    return made.json.version;
  };
  const knows = async (version) => {
    const made = await gateway.post("/api/v1/tasks/t1/trigger", { payload: 1, options: { lockToVersion: version } });
    assert.ok([200, 400, 404, 422].includes(made.status), made.text);
    return made.status === 200;
  };
  const versions = [await register(0, 2), await register(1, 2)];
  assert.deepEqual(await Promise.all(versions.map(knows)), [true, true]);
  for (let n = 2; n < 53; n++) versions.push(await register(n, 1000));
  const first = versions.length - 50;

  const look = async () => {
    assert.deepEqual(await Promise.all(versions.map(knows)), versions.map((_, n) => n >= first));
    const queues = (await gateway.get("/api/v1/queues?perPage=100")).json.data.map((queue) => queue.name);
    for (const n of versions.keys()) assert.equal(queues.includes(`queue-${n}`), n >= first, `queue-${n}`);
  };
  await look();
  await gateway.kill();
  await gateway.restart();
  await look();
  await gateway.stop();
});

test("each of very many simultaneous registrations is accepted, or told to retry", async (t) => {
  const gateway = await startGateway({ t });
  const made = await Promise.all(Array.from({ length: 60 }, (_, n) => gateway.post(`/api/v1/projects/${keys.ref}/background-workers`,
    { localOnly: true, metadata: { packageVersion: "4.8.3", cliPackageVersion: "4.8.3", contentHash: `hash-${n}`, tasks: [] } })));
  const versions = made.filter(({ status }) => status === 200).map(({ json }) => json.version);
  assert.ok(versions.length > 0);
  assert.equal(new Set(versions).size, versions.length);
  for (const { status, json } of made)
    if (status !== 200) assert.deepEqual([status, json.error], [409, "Too many versions are being registered at once; try again"]);
  await gateway.stop();
});

const versioned = { headers: { "x-trigger-api-version": "2025-07-16" } };

for (const environment of ["prod", "staging"])
  test(`in ${environment} a run waits for a version from its beginning, and for each version that lacks its task`, async (t) => {
    const gateway = await startGateway({ t });
    const worker = new Worker(gateway, keys[environment]);
    const [plain, locked] = [await worker.trigger("a"), await worker.trigger("a", { delay: "1s" })];
    assert.deepEqual(await worker.show(plain).then(({ a, b }) => [a, b]), ["WAITING_FOR_DEPLOY", "PENDING_VERSION"]);
    const { run } = await worker.show(plain);
    assert.equal(run.queuedAt, run.createdAt);
    assert.equal(run.number, 1);
    const listed = await gateway.get("/api/v1/runs?filter[status]=PENDING_VERSION", { key: worker.key, ...versioned });
    assert.deepEqual(listed.json.data.map(({ id, number, queuedAt }) => [id, number, queuedAt]), [[plain, 1, run.queuedAt]]);
    await until(async () => await worker.status(locked) !== "DELAYED");
    assert.equal(await worker.status(locked), "WAITING_FOR_DEPLOY");
    assert.ok((await worker.show(locked)).run.queuedAt > run.queuedAt);

    await Worker.register(gateway, { tasks: ["b"], key: worker.key });
    assert.equal(await worker.status(plain), "WAITING_FOR_DEPLOY");
    const second = await Worker.register(gateway, { tasks: ["a"], key: worker.key });
    await until(async () => await worker.status(locked) === "QUEUED");
    await (await second.take(plain)).succeed(1);
    assert.equal((await worker.show(plain)).run.queuedAt, run.queuedAt);

    await Worker.register(gateway, { tasks: ["b"], key: worker.key });
    await until(async () => await worker.status(locked) === "WAITING_FOR_DEPLOY");
    const [old, fresh] = [await worker.trigger("a", { lockToVersion: second.version }), await worker.trigger("a", { ttl: "1s" })];
    assert.deepEqual([await worker.status(old), await worker.status(fresh)], ["QUEUED", "WAITING_FOR_DEPLOY"]);
    await gateway.kill();
    await gateway.restart();
    assert.equal(await worker.status(locked), "WAITING_FOR_DEPLOY");
    await (await second.take(old)).succeed(1);
    await until(async () => await worker.status(fresh) === "EXPIRED");
    const third = await Worker.register(gateway, { tasks: ["a"], key: worker.key });
    await (await third.take(locked)).succeed(1);
    assert.equal((await worker.show(locked)).run.version, third.version);
    await gateway.stop();
  });

test("two workers with different code in dev: each gets runs of its own tasks, also across a kill", async (t) => {
  const gateway = await startGateway({ t });
  const nightly = (id) => ({ id, triggerSource: "schedule", schedule: { cron: "0 3 * * *" } });
  const limited = (limit) => [{ name: "narrow", concurrencyLimit: limit }];
  const declared = async () => (await gateway.get("/api/v1/schedules")).json.data.map(({ task, id }) => `${task} ${id}`).sort();
  const limit = async () => (await gateway.get("/api/v1/queues/narrow?type=custom")).json.concurrencyLimit;

  const one = await Worker.register(gateway, { tasks: ["a", "both", nightly("ticks")], queues: limited(1) });
  await (await one.take(await one.trigger("a"))).succeed(1);
  const held = one.dequeue();
  const early = await one.trigger("b");
  assert.equal(await one.status(early), "WAITING_FOR_DEPLOY");
  const two = await Worker.register(gateway, { tasks: ["b", "both", nightly("tocks")], queues: limited(2) });
  assert.equal(await held, undefined); // it returns empty, so that each worker dequeues with what it has now
  const [first, second] = [one.dequeue(), two.dequeue()];
  assert.deepEqual([(await second).id, (await second).message.backgroundWorker.friendlyId], [early, two.id]);
  const a = await one.trigger("a");
  assert.deepEqual([(await first).id, (await first).message.backgroundWorker.friendlyId], [a, one.id]);
  const both = await one.trigger("both");
  const common = await two.take(both);
  assert.equal(common.message.backgroundWorker.version, two.version);
  await common.succeed(1);
  const schedules = await declared();
  assert.deepEqual(schedules.map((text) => text.split(" ")[0]), ["ticks", "tocks"]);
  assert.equal(await limit(), 2);

  const locked = await one.trigger("a", { lockToVersion: one.version });
  const none = await one.trigger("none");
  await gateway.kill();
  await gateway.restart();
  const later = await one.trigger("a");
  await (await two.take(await two.trigger("b"))).succeed(1);
  for (const id of [locked, later]) assert.equal(await one.status(id), "QUEUED"); // the other one may still be in flight
  assert.equal(await one.status(none), "WAITING_FOR_DEPLOY");
  for (const id of [locked, later]) {
    const attempt = await one.take(id);
    assert.equal(attempt.message.backgroundWorker.version, one.version);
    await attempt.succeed(1);
  }
  assert.deepEqual(await declared(), schedules);
  await gateway.stop();
});

for (const environment of ["dev", "prod"])
  test(`in ${environment} a run waits for a version that declares its queue, and a locked one without it is refused`, async (t) => {
    const gateway = await startGateway({ t });
    const key = keys[environment], named = { id: "b", queue: { name: "named" } };
    const first = await Worker.register(gateway, { tasks: ["a", named], queues: [{ name: "with a blank" }], key });
    const trigger = (task, options) => gateway.post(`/api/v1/tasks/${task}/trigger`, { payload: 1, options }, { key });
    const refusal = async (task, options) => {
      const { status, json } = await trigger(task, { lockToVersion: first.version, ...options });
      return [status, json.error];
    };
    assert.deepEqual(await refusal("nope"), [422, `Task 'nope' not found on locked version '${first.version}'.`]);
    assert.deepEqual(await refusal("a", { queue: { name: "later" } }),
      [422, `Specified queue 'later' not found or not associated with locked version '${first.version}'.`]);
    assert.deepEqual(await refusal("b", { queue: { name: "task/b" } }),
      [422, `Specified queue 'task/b' not found or not associated with locked version '${first.version}'.`]);
    for (const name of ["task/a", "named", "with a blank"])
      await (await first.take(await first.trigger("a", { lockToVersion: first.version, queue: { name } }))).succeed(1);
    await (await first.take(await first.trigger("b"))).succeed(1);

    const parked = await first.trigger("a", { queue: { name: "later" } });
    const { run, b } = await first.show(parked);
    assert.deepEqual([b, run.waitingFor.reason], ["PENDING_VERSION", "version"]);
    assert.match(run.waitingFor.message, /^The run was triggered for the queue later, which no version declares; /);
    await gateway.kill();
    await gateway.restart();
    assert.equal((await first.show(parked)).b, "PENDING_VERSION");
    const second = await Worker.register(gateway, { tasks: [{ id: "a", queue: { name: "later" } }], key });
    await (await second.take(parked)).succeed(1);

    const replayed = await gateway.post(`/api/v1/runs/${parked}/replay`, {}, { key });
    await (await second.take(replayed.json.id)).succeed(1);
    await gateway.stop();
  });

for (const environment of ["dev", "prod"])
  test(`in ${environment} a run that was triggered before its task was registered executes, whatever queue the task names`, async (t) => {
    const gateway = await startGateway({ t }), key = keys[environment];
    const { json: { id } } = await gateway.post("/api/v1/tasks/late/trigger", { payload: 1 }, { key });
    const worker = await Worker.register(gateway, { tasks: [{ id: "late", queue: { name: "named" } }], key });
    await (await worker.take(id)).succeed(1);
    await gateway.stop();
  });
