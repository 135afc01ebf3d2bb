// Calls of the dashboard: batches, workers, previews of schedules, the oldest run of a queue, keys and tokens by name
// and last use.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { keys, startGateway, until } from "../support/js/gateway.mjs";

let gateway;
before(async () => { gateway = await startGateway(); });
after(() => gateway.stop());

const get = async (path, key = keys.dev, status = 200) => {
  const answer = await gateway.get(path, { key });
  assert.equal(answer.status, status, answer.text);
  return answer.json;
};
const batch = async (count) => (await gateway.post("/api/v2/tasks/batch", { items: Array.from({ length: count }, (_, n) => ({ task: "hello", payload: `${n}` })) })).json.id;

test("batches are listed newest first, page by page, with how many runs have ended", async () => {
  const ids = [];
  for (const count of [1, 2, 3]) ids.unshift(await batch(count));
  const first = await get("/api/v1/batches?page[size]=2");
  assert.deepEqual(first.data.map(({ id, runCount, endedCount }) => [id, runCount, endedCount]), [[ids[0], 3, 0], [ids[1], 2, 0]]);
  const [run] = (await get(`/api/v2/batches/${ids[2]}`)).runs;
  await gateway.post(`/api/v2/runs/${run}/cancel`, {});
  const second = await get(`/api/v1/batches?page[size]=2&page[after]=${first.pagination.next}`);
  assert.deepEqual(second.data.map(({ id, endedCount, status }) => [id, endedCount, status]), [[ids[2], 1, "COMPLETED"]]);
  assert.deepEqual(second.pagination, {});
  assert.deepEqual((await get("/api/v1/batches", keys.prod)).data, []);
  await get("/api/v1/batches?page[after]=run_x", keys.dev, 400);
  await get("/api/v1/batches?page[size]=101", keys.dev, 400);
});

test("a preview of a schedule returns when it fires, or what is wrong, and stores nothing", async () => {
  const preview = async (body, status = 200) => {
    const answer = await gateway.post("/api/v1/schedules/preview", body);
    assert.equal(answer.status, status, answer.text);
    return answer.json;
  };
  const { next, description, timezone } = await preview({ cron: "30 9 * * 1-5", timezone: "Europe/Berlin" });
  assert.equal(next.length, 5);
  assert.match(description, /09:30 AM/);
  assert.equal(timezone, "Europe/Berlin");
  const wall = new Intl.DateTimeFormat("en-GB", { timeZone: "Europe/Berlin", weekday: "short", hour: "2-digit", minute: "2-digit" });
  for (const time of next) assert.match(wall.format(new Date(time)), /^(Mon|Tue|Wed|Thu|Fri),? 09:30$/);
  assert.equal((await preview({ cron: "* * * * *", count: 10 })).next.length, 10);
  assert.deepEqual([...next].sort(), next);
  assert.equal((await preview({ cron: "0 0 29 2 1#5" })).next.length > 0, true);
  assert.match((await preview({ cron: "61 * * * *" }, 422)).error, /Invalid cron expression/);
  assert.match((await preview({ cron: "* * * * *", timezone: "Mars/Base" }, 422)).error, /Invalid IANA timezone/);
  for (const body of [{}, { cron: 5 }, { cron: "* * * * *", count: 11 }, { cron: "* * * * *", count: "2" }, { cron: "* * * * *", timezone: 1 }]) await preview(body, 400);
  assert.deepEqual((await get("/api/v1/schedules")).data, []);
});

test("a queue reports since when its oldest run waits", async () => {
  const queue = async () => (await get("/api/v1/queues/waits?type=task")).oldestQueuedAt;
  const trigger = async () => (await gateway.post("/api/v1/tasks/waits/trigger", {})).json.id;
  const first = await trigger(), second = await trigger();
  assert.equal(await queue(), (await get(`/api/v3/runs/${first}`)).queuedAt);
  await gateway.post(`/api/v2/runs/${first}/cancel`, {});
  assert.equal(await queue(), (await get(`/api/v3/runs/${second}`)).queuedAt);
  await gateway.post("/api/v1/queues/waits/pause", { type: "task", action: "pause" });
  await gateway.post(`/api/v2/runs/${second}/cancel`, {});
  assert.equal(await queue(), null);
});

test("the workers of an environment are listed: none, then a CLI's version, and in prod those that wait for a run", async () => {
  assert.deepEqual(await get("/api/v1/environments/workers"), { data: [] });
  const registered = await gateway.post(`/api/v1/projects/${keys.ref}/background-workers`, { localOnly: true, metadata: { packageVersion: "4.8.3", contentHash: "a", tasks: [{ id: "hello", filePath: "a.ts" }] } });
  assert.equal(registered.status, 200, registered.text);
  const asking = gateway.post("/engine/v1/dev/dequeue", { currentWorker: registered.json.id, oldWorkers: [] });
  const [worker] = await until(async () => { const { data } = await get("/api/v1/environments/workers"); return data.length && data; });
  assert.deepEqual([worker.kind, worker.version, worker.isConnected], ["cli", registered.json.version, true]);
  assert.ok(Date.now() - new Date(worker.lastHeardAt) < 60_000);
  assert.deepEqual(await get("/api/v1/environments/workers", keys.prod), { data: [] });
  await asking;
});

test("keys and tokens are listed with name and last use, and without their secrets", async () => {
  const { data } = await get("/api/v1/tokens", keys.pat);
  assert.equal(data.length, 1);
  assert.equal(data[0].isThis, true);
  assert.ok(Date.now() - new Date(data[0].lastUsedAt) < 60_000);
  const shown = await get(`/api/v1/projects/${keys.ref}/dev/keys`, keys.pat), staging = await get(`/api/v1/projects/${keys.ref}/staging/keys`, keys.pat);
  assert.equal(shown.data[0].name, `tr_dev_…${keys.dev.slice(-4)}`);
  assert.ok(shown.data[0].lastUsedAt);
  assert.equal(staging.data[0].lastUsedAt, undefined);
  for (const text of [JSON.stringify(data), JSON.stringify(shown)])
    for (const secret of [keys.pat, keys.dev]) assert.ok(!text.includes(secret.slice(7, -4)));
  await get("/api/v1/projects/proj_nobodysprojectaaaaaa/dev/keys", keys.pat, 404);
  await get("/api/v1/tokens", keys.dev, 401);
});
