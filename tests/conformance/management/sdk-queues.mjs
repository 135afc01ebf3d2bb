// queues.* of the official SDK 4.8.3, each call with what it returns. See sdk-lib.mjs for the settings.
import { cfg, op, prepare, finish, fails, near, once, uniq, assert, sdkPath } from "./sdk-lib.mjs";
const { queues, runs, tasks } = await import(sdkPath(process.env.SDK_DIR ?? process.cwd(), "sdk/dist/esm/v3/index.js"));

const name = `mails/${uniq}`, custom = { type: "custom", name };
const { version } = await prepare({ queues: [name] });
await tasks.trigger(cfg.task, 1, { queue: name, ttl: "1h" });

await op("queues.list", async () => {
  const all = [];
  for await (const queue of queues.list({ perPage: 1 })) all.push(queue.name);
  assert.ok(all.includes(name) && all.includes(cfg.task));
  assert.equal(new Set(all).size, all.length);
});
await op("queues.retrieve by type and name, and by id", async () => {
  const queue = await queues.retrieve(custom);
  assert.deepEqual([queue.name, queue.type, queue.queued, queue.running, queue.paused, queue.concurrencyLimit, queue.version], [name, "custom", 1, 0, false, null, "V1"]);
  assert.deepEqual(await queues.retrieve(queue.id), queue);
  assert.equal((await queues.retrieve({ type: "task", name: cfg.task })).type, "task");
  await fails(queues.retrieve({ type: "custom", name: "nope" }, once), 404);
  await fails(queues.retrieve("queue_nope", once), 404);
});
await op("queues.* and runs.list take ctx.queue.name of a task", async () => {
  const queue = { type: "task", name: `task/${cfg.task}` };
  assert.equal((await queues.retrieve(queue)).name, cfg.task);
  assert.equal((await queues.pause(queue)).paused, true);
  assert.equal((await queues.resume(queue)).paused, false);
  assert.equal((await queues.overrideConcurrencyLimit(queue, 5)).concurrencyLimit, 5);
  assert.equal((await queues.resetConcurrencyLimit(queue)).concurrencyLimit, null);
  const { id } = await tasks.trigger(cfg.task, 1, { tags: [`prefixed-${uniq}`], ttl: "1h" }), listed = [];
  for await (const run of runs.list({ tag: `prefixed-${uniq}`, queue })) listed.push(run.id);
  assert.deepEqual(listed, [id]);
  await runs.cancel(id);
});
await op("queues.pause and resume", async () => {
  const { id } = await queues.retrieve(custom);
  assert.equal((await queues.pause(custom)).paused, true);
  assert.equal((await queues.retrieve(id)).paused, true);
  assert.equal((await queues.resume(id)).paused, false);
});
await op("queues.overrideConcurrencyLimit and reset", async () => {
  const { concurrency, concurrencyLimit } = await queues.overrideConcurrencyLimit(custom, 5);
  assert.deepEqual([concurrencyLimit, concurrency.current, concurrency.base, concurrency.override, concurrency.overriddenBy], [5, 5, null, 5, null]);
  assert.ok(concurrency.overriddenAt instanceof Date);
  near(concurrency.overriddenAt, Date.now());
  assert.equal((await queues.resetConcurrencyLimit(custom)).concurrencyLimit, null);
  await fails(queues.resetConcurrencyLimit(custom, once), 400);
});

await op("a task or a queue that the locked version lacks is refused, and one that no version declares is waited for", async () => {
  assert.match((await fails(tasks.trigger("nope", 1, { version }, once), 422)).message, /Task 'nope' not found on locked version/);
  assert.match((await fails(tasks.trigger(cfg.task, 1, { version, queue: "nope" }, once), 422)).message, /Specified queue 'nope' not found or not associated/);
  const { id } = await tasks.trigger(cfg.task, 1, { queue: `later-${uniq}`, ttl: "1h" });
  assert.equal((await runs.retrieve(id)).status, "PENDING_VERSION");
  await runs.cancel(id);
});
await op("a queue in the form of SDK 3, of a trigger and of a batch's item", async () => {
  const queue = { name, concurrencyLimit: 1 };
  const { id } = await tasks.trigger(cfg.task, 1, { queue, ttl: "1h" });
  const batch = await tasks.batchTrigger(cfg.task, [{ payload: 1, options: { queue, ttl: "1h" } }]);
  const listed = [];
  for await (const run of runs.list({ queue: custom, batch: batch.batchId })) listed.push(run.id);
  assert.equal(listed.length, 1);
  for (const run of [id, ...listed]) await runs.cancel(run);
});

await finish("queues of SDK 4.8.3");
