// GET /api/v1/environments/stats: statistics of an environment, in samples of ten seconds.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { RunsSocket } from "../support/js/runs.mjs";
import { publicToken } from "../support/js/tokens.mjs";

const stats = "/api/v1/environments/stats", interval = 10_000;

test("the samples and the figures of tasks survive a restart, and a kill except for the last quarter of an hour", async (t) => {
  const file = path.join(temporaryFolder(), "ahead");
  const gateway = await startGateway({ t, preload: "shim_clock", env: { SHIM_MONOTONIC: file, SHIM_CLOCK: file } });
  let ahead = 0;
  const pass = (ms) => { fs.writeFileSync(`${file}.new`, String(ahead += ms)); fs.renameSync(`${file}.new`, file); gateway.http.closeIdle(); };
  const ask = async () => (await gateway.get(stats)).json;
  const trigger = async () => gateway.post("/api/v1/tasks/hello/trigger", {});
  const triggers = async () => (await ask()).samples.reduce((all, sample) => all + sample.triggers, 0);
  for (let i = 0; i < 3; i++) await trigger();
  pass(interval);
  const before = await ask();
  assert.equal(await triggers(), 3);
  await gateway.stop();
  await gateway.restart();
  const after = await ask();
  assert.deepEqual([after.samples, after.tasks, after.from], [before.samples, before.tasks, before.from]);
  await trigger();
  pass(15 * 60_000);
  await until(async () => (await ask()).samples.length > before.samples.length, { what: "the sample of the fourth" });
  await trigger(); // is written after the figures, in which it is not counted
  await gateway.kill();
  await gateway.restart();
  assert.equal(await triggers(), 4);
  await gateway.stop();
});

test("samples count triggered, ended and waiting runs, and how long changes took", async (t) => {
  const file = path.join(temporaryFolder(), "ahead"), shown = { "x-trigger-api-version": "2025-07-16" };
  const gateway = await startGateway({ t, preload: "shim_clock", env: { SHIM_CLOCK: file } });
  let ahead = 0;
  const pass = (ms) => { fs.writeFileSync(`${file}.new`, String(ahead += ms)); fs.renameSync(`${file}.new`, file); };
  const ask = async (query = "", more) => {
    const { status, json, text } = await gateway.get(`${stats}${query}`, more);
    assert.equal(status, 200, text);
    return json;
  };
  const trigger = async () => (await gateway.post("/api/v1/tasks/hello/trigger", {})).json.id;

  const nothing = await ask();
  assert.deepEqual([nothing.intervalMs, nothing.samples], [interval, []]);
  const socket = await RunsSocket.open({ port: gateway.port, token: keys.dev, hello: {} });
  socket.send({ op: "sub", id: 1, all: true });
  await socket.next("rows");
  const first = await trigger();
  for (let i = 0; i < 4; i++) await trigger();
  await gateway.post(`/api/v2/runs/${first}/cancel`, {});
  await until(async () => (await gateway.metric("runcast_change_to_write_seconds_count")) > 0);
  pass(interval);
  const sum = (samples, of) => samples.reduce((all, sample) => all + of(sample), 0); // the clock may have passed a sample's border meanwhile
  const { samples, from, to } = await until(async () => { const all = await ask(); return sum(all.samples, ({ triggers }) => triggers) === 5 && all; });
  const last = samples.at(-1);
  assert.deepEqual([sum(samples, ({ ends }) => ends.total), sum(samples, ({ ends }) => ends.byStatus.CANCELED ?? 0), last.queued], [1, 1, 4]);
  assert.ok(last.oldestQueuedMs > 0 && last.oldestQueuedMs <= interval, `${last.oldestQueuedMs}`);
  const { p50, p99 } = samples.find(({ deliveryMs }) => deliveryMs).deliveryMs;
  assert.ok(p50 > 0 && p50 <= p99 && p99 < 3600_000, `${p50} ${p99}`);
  assert.ok(samples.every(({ at }) => Date.parse(at) % interval === 0) && Date.parse(to) >= Date.parse(last.at) + interval && from <= to);

  const known = await ask(`?since=${to}`);
  assert.deepEqual(known.samples, [], "they are known");
  assert.equal(known.before.queued, 4, "the queue is as at the end of the last of them");
  assert.ok(known.before.oldestQueuedMs > 0 && known.before.oldestQueuedMs <= known.now.oldestQueuedMs);
  assert.deepEqual((await ask(`?since=${Date.parse(last.at)}`)).samples, [last]);
  assert.deepEqual((await ask("?since=1h", { headers: shown })).samples.at(-1).ends, last.ends);
  assert.deepEqual((await ask("", { key: keys.prod })).samples, [], "another environment has its own");

  pass(3600_000);
  await gateway.post(`/api/v2/runs/${await trigger()}/cancel`, {});
  pass(interval);
  const later = await until(async () => { const all = await ask("?since=5m"); return sum(all.samples, ({ triggers }) => triggers) === 1 && all.samples; });
  assert.ok(later.at(-1).oldestQueuedMs > 3600_000, "what waits becomes older");
  pass(6 * 3600_000 + 2 * interval); // the clock may have passed a sample's border meanwhile
  assert.deepEqual((await ask()).samples, [], "six hours are kept");
  await socket.cut();
  await gateway.stop();
});

test("the current queue is reported right after a restart, and each task with its figures", async (t) => {
  const gateway = await startGateway({ t }), ask = async (key) => (await gateway.get(stats, { key })).json;
  const trigger = async (task, options) => (await gateway.post(`/api/v1/tasks/${task}/trigger`, { options })).json.id;
  const ids = [await trigger("mail"), await trigger("mail"), await trigger("report")];
  await gateway.post(`/api/v2/runs/${ids[0]}/cancel`, {});
  const { tasks, tasksAreCut, now } = await ask();
  assert.deepEqual([now.queued, now.executing, now.pendingVersion, tasksAreCut], [2, 0, 0, false]);
  assert.ok(now.oldestQueuedMs >= 0 && now.concurrencyLimit > 0);
  assert.deepEqual(tasks.map(({ from, ...task }) => [Date.parse(from) % 900_000, task]), [
    [0, { task: "mail", triggers: 2, completed: 0, failed: 0, canceled: 1, expired: 0, durationMs: null, lastFailure: null }],
    [0, { task: "report", triggers: 1, completed: 0, failed: 0, canceled: 0, expired: 0, durationMs: null, lastFailure: null }],
  ]);
  await gateway.kill();
  await gateway.restart();
  const later = await ask();
  assert.deepEqual([later.samples, later.before, later.tasks, later.now.queued], [[], null, [], 2], "nothing has happened since, and yet runs are queued");
  assert.ok(later.now.oldestQueuedMs > now.oldestQueuedMs);
  await gateway.post("/api/v1/tasks/mail/trigger", {}, { key: keys.prod });
  const { now: { queued, pendingVersion } } = await ask(keys.prod);
  assert.deepEqual([queued, pendingVersion], [0, 1], "another environment has its own queue; nothing is deployed to it");
  await gateway.stop();
});

test("stats require the scope of the list of all runs, and a valid time", async (t) => {
  const gateway = await startGateway({ t });
  const status = async (scopes) => (await gateway.get(stats, { key: await publicToken(gateway, { scopes }) })).status;
  assert.deepEqual([await status(["read:runs"]), await status(["read:tags:a"]), await status(["write:runs"])], [200, 403, 403]);
  assert.equal((await gateway.get(stats, { key: keys.pat })).status, 401);
  for (const since of ["soon", "-1", "1h1h", "99999999999999999999"]) {
    const { status: code, json } = await gateway.get(`${stats}?since=${since}`);
    assert.deepEqual([code, json.error], [400, "since: must be a time such as 2026-01-31T12:00:00Z, milliseconds since 1970, or a duration such as 1h"], since);
  }
  assert.equal((await gateway.get(`${stats}?from=1`)).headers["x-ignored-members"], "from");
  await gateway.stop();
});
