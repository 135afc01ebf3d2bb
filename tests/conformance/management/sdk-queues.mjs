// queues.* of the official SDK 4.8.3, each call with what it gives back. See sdk-lib.mjs for the settings.
import { cfg, op, prepare, finish, fails, near, once, uniq, assert, sdkPath } from "./sdk-lib.mjs";
const { queues, tasks } = await import(sdkPath(process.env.SDK_DIR ?? process.cwd(), "sdk/dist/esm/v3/index.js"));

await prepare();
const name = `mails/${uniq}`, custom = { type: "custom", name };
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

await finish("queues of SDK 4.8.3");
