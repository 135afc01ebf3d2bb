// runs.bulk.* of the official SDK 4.8.3, each call with what it returns. See sdk-lib.mjs for the settings.
import { cfg, op, prepare, finish, fails, near, once, uniq, assert, sdkPath } from "./sdk-lib.mjs";
const { runs, tasks } = await import(sdkPath(process.env.SDK_DIR ?? process.cwd(), "sdk/dist/esm/v3/index.js"));

await prepare();
const tag = `bulk-${uniq}`, poll = { pollIntervalMs: 20 };
const make = (n) => Promise.all(Array.from({ length: n }, (_, i) => tasks.trigger(cfg.task, { i }, { tags: tag, delay: "1h" })));
const handles = await make(12);
const tagged = async () => { const all = []; for await (const run of runs.list({ tag, limit: 100 })) all.push(run); return all; };

await op("runs.bulk.replay by filter, and poll", async () => {
  const { id } = await runs.bulk.replay({ filter: { tag, status: "DELAYED", taskIdentifier: cfg.task, from: new Date(Date.now() - 3600e3) }, name: "again", targetRegion: "eu" });
  assert.match(id, /^bulk_/);
  const action = await runs.bulk.poll(id, poll);
  assert.deepEqual([action.status, action.type, action.name, action.counts], ["COMPLETED", "REPLAY", "again", { total: 12, success: 12, failure: 0 }]);
  assert.ok(action.createdAt instanceof Date && action.completedAt instanceof Date);
  near(action.completedAt, Date.now());
  assert.equal((await tagged()).length, 24);
});
await op("runs.bulk.cancel by ids", async () => {
  const { id } = await runs.bulk.cancel({ runIds: handles.map((handle) => handle.id) });
  assert.deepEqual((await runs.bulk.poll(id, poll)).counts, { total: 12, success: 12, failure: 0 });
  for (const { id: run } of handles) assert.equal((await runs.retrieve(run)).status, "CANCELED");
});
await op("runs.bulk.list, retrieve and abort", async () => {
  const { id } = await runs.bulk.cancel({ filter: { tag, queue: { type: "task", name: cfg.task } } });
  await runs.bulk.poll(id, poll);
  const all = [];
  for await (const action of runs.bulk.list({ limit: 1 })) all.push(action);
  assert.ok(all.length >= 3 && all[0].id === id);
  assert.deepEqual(all[0], await runs.bulk.retrieve(id));
  await fails(runs.bulk.abort(id, once), 409);
  await make(400);
  const second = await runs.bulk.cancel({ filter: { tag } });
  assert.deepEqual(await runs.bulk.abort(second.id), second);
  assert.equal((await runs.bulk.retrieve(second.id)).status, "ABORTED");
});
await op("runs.bulk refuses what selects nothing", async () => {
  await fails(runs.bulk.cancel({ filter: {} }, once), 400);
  await fails(runs.bulk.cancel({ filter: { tag }, runIds: [handles[0].id] }, once), 400);
  await fails(runs.bulk.retrieve("bulk_nope", once), 404);
});

await finish("bulk actions of SDK 4.8.3");
