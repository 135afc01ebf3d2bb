// Bulk actions: which runs they choose, what they count, how they are aborted, and that a restart neither loses nor
// repeats a run.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";

import { keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";

let gateway;
before(async () => { gateway = await startGateway(); });
after(() => gateway.stop());

const actions = "/api/v1/bulk-actions";
const show = async (id, on = gateway) => (await on.get(`${actions}/${id}`)).json;
const create = (body, more) => gateway.post(actions, body, more);

async function begin(body, on = gateway) {
  const reply = await on.post(actions, body);
  assert.equal(reply.status, 202, reply.text);
  assert.match(reply.json.id, /^bulk_[0-9a-z]{21}$/);
  return reply.json.id;
}

const end = (id, on = gateway) => until(async () => {
  const action = await show(id, on);
  return action.status !== "PENDING" && action;
}, { what: "the bulk action ends" });

/** Makes n runs with a tag, by batches; returns their ids. */
async function makeRuns(n, tag, { on = gateway, task = "hello", options = {}, payload = "{}" } = {}) {
  const ids = [];
  while (ids.length < n) {
    const items = Array.from({ length: Math.min(500, n - ids.length) }, (_, i) => ({
      task, payload: payload ?? String(i), options: { tags: [tag], ttl: "1h", ...options },
    }));
    const { status, json, text } = await on.post("/api/v1/tasks/batch", { items });
    assert.equal(status, 202, text);
    ids.push(...json.runs.map((run) => run.id ?? run));
  }
  return ids;
}

async function listed(query, on = gateway) {
  const all = [];
  for (let after = ""; ;) {
    const { status, json, text } = await on.get(`/api/v1/runs?page[size]=100&${query}${after}`);
    assert.equal(status, 200, text);
    all.push(...json.data);
    if (!json.pagination.next) return all;
    after = `&page[after]=${json.pagination.next}`;
  }
}

// ---- cancel ----

test("a cancel by filter ends every run that matches and no other", async () => {
  await makeRuns(230, "cancel-me");
  await makeRuns(3, "keep-me");
  const id = await begin({ action: "cancel", filter: { tag: "cancel-me" }, name: "spring cleaning" });
  const action = await end(id);
  assert.deepEqual([action.status, action.type, action.name, action.counts], ["COMPLETED", "CANCEL", "spring cleaning", { total: 230, success: 230, failure: 0 }]);
  assert.ok(Date.parse(action.completedAt) >= Date.parse(action.createdAt));
  const canceled = await listed("filter[tag]=cancel-me");
  assert.equal(canceled.length, 230);
  assert.ok(canceled.every((run) => run.status === "CANCELED"));
  assert.ok((await listed("filter[tag]=keep-me")).every((run) => run.status === "QUEUED"));
});

test("each id counts once, and an ended or unknown run counts as a failure", async () => {
  const [ended, ...ids] = await makeRuns(4, "by-id");
  await gateway.post(`/api/v2/runs/${ended}/cancel`);
  const id = await begin({ action: "cancel", runIds: [...ids, ids[0], ended, `run_${"z".repeat(21)}`] });
  assert.deepEqual((await end(id)).counts, { total: 5, success: 3, failure: 2 });
  const { json } = await gateway.get(`/api/v3/runs/${ids[0]}`);
  assert.equal(json.status, "CANCELED");
  assert.match(JSON.stringify(json.error), new RegExp(`Canceled by bulk action ${id}`));
  assert.deepEqual((await listed(`filter[bulkAction]=${id}`)).map((run) => run.id).sort(), ids.sort());
});

test("filters are those of the run list", async () => {
  const now = Date.now();
  for (const [i, [filter, expected]] of [
    [{ taskIdentifier: ["one", "none"] }, "11"], [{ queue: { type: "custom", name: "q" } }, "22"],
    [{ queue: [{ type: "task", name: "one" }] }, "11"], [{ machine: "micro" }, "22"], [{ machine: ["micro", "small-1x"] }, "1122"],
    [{ status: ["QUEUED"], isTest: false }, "1122"], [{ status: "DELAYED" }, ""], [{ period: "1h" }, "1122"],
    [{ from: now - 60_000, to: new Date(now + 600_000).toISOString() }, "1122"], [{ from: now + 3600_000 }, ""], [{ to: now - 3600_000 }, ""],
    [{ isTest: true }, ""], [{ bulkAction: "bulk_x" }, ""], [{ version: "1" }, ""], [{ batch: "batch_x" }, ""], [{ region: "eu", schedule: "s" }, ""],
  ].entries()) {
    const tag = `filter-${i}`, one = await makeRuns(2, tag, { task: "one" });
    await makeRuns(2, tag, { task: "two", options: { queue: { name: "q" }, machine: "micro" } });
    const { counts } = await end(await begin({ action: "cancel", filter: { tag, ...filter } }));
    const n = expected.length;
    assert.deepEqual(counts, { total: n, success: n, failure: 0 }, JSON.stringify(filter));
    const canceled = await listed(`filter[tag]=${tag}&filter[status]=CANCELED`);
    assert.equal(canceled.map((run) => (one.includes(run.id) ? 1 : 2)).sort().join(""), expected, JSON.stringify(filter));
  }
});

// ---- replay ----

test("a replay makes one new run of each, like the old one", async () => {
  const ids = await makeRuns(120, "again", { payload: null, options: { ttl: "1h", metadata: { step: 1 }, concurrencyKey: "k" } });
  const id = await begin({ action: "replay", filter: { tag: ["again"] }, targetRegion: "eu-1" });
  assert.deepEqual((await end(id)).counts, { total: 120, success: 120, failure: 0 });
  const made = (await listed("filter[tag]=again")).filter((run) => !ids.includes(run.id));
  assert.equal(made.length, 120);
  const payloads = new Set();
  for (const run of made.slice(0, 20)) {
    const { json } = await gateway.get(`/api/v3/runs/${run.id}`);
    payloads.add(json.payload);
    assert.deepEqual([json.metadata, json.taskIdentifier, json.region], [{ step: 1 }, "hello", "eu-1"]);
  }
  assert.equal(payloads.size, 20); // each run has its own
  assert.deepEqual(await listed(`filter[bulkAction]=${id}`), made);

  const undone = await end(await begin({ action: "cancel", filter: { bulkAction: id } }));
  assert.deepEqual(undone.counts, { total: 120, success: 120, failure: 0 });
  assert.deepEqual((await listed(`filter[bulkAction]=${undone.id}`)).map((run) => run.id), made.map((run) => run.id));
  assert.deepEqual(await listed(`filter[bulkAction]=${id}`), [], "the last action counts");
});

test("large payloads are replayed in smaller slices", async () => {
  const payload = JSON.stringify("x".repeat(400_000));
  const ids = [];
  for (let i = 0; i < 15; i++) ids.push(...await makeRuns(1, "large", { payload }));
  const { counts } = await end(await begin({ action: "replay", runIds: ids }));
  assert.deepEqual(counts, { total: 15, success: 15, failure: 0 });
  const made = (await listed("filter[tag]=large")).filter((run) => !ids.includes(run.id));
  assert.equal(made.length, 15);
  assert.equal((await gateway.get(`/api/v3/runs/${made[0].id}`)).json.payload, payload);
});

// ---- aborting, the list ----

test("an abort takes effect between slices, and only an unfinished action can be aborted", async () => {
  await makeRuns(1000, "many");
  const id = await begin({ action: "cancel", filter: { tag: "many" } });
  const reply = await gateway.post(`${actions}/${id}/abort`);
  assert.deepEqual([reply.status, reply.json], [200, { id }]);
  const { status, counts } = await show(id);
  assert.equal(status, "ABORTED");
  assert.ok(counts.success < 1000, "it was over before it was aborted");
  const left = (await listed("filter[tag]=many&filter[status]=QUEUED")).length;
  assert.equal(left, 1000 - counts.success);
  assert.equal((await gateway.post(`${actions}/${id}/abort`)).status, 200); // a second abort is not an error

  const completed = await begin({ action: "cancel", filter: { tag: "many" } });
  await end(completed);
  assert.equal((await gateway.post(`${actions}/${completed}/abort`)).status, 409);
});

test("the list is newest first and has cursors in both directions", async () => {
  const ids = [];
  for (let i = 0; i < 5; i++) ids.unshift((await end(await begin({ action: "cancel", filter: { tag: "nobody" }, name: `n${i}` }))).id);
  const page = async (query) => (await gateway.get(`${actions}?page[size]=2${query}`)).json;
  const first = await page("");
  assert.deepEqual(first.data.map((action) => action.id), ids.slice(0, 2));
  assert.equal(first.pagination.previous, undefined);
  const second = await page(`&page[after]=${first.pagination.next}`);
  assert.deepEqual(second.data.map((action) => action.id), ids.slice(2, 4));
  const back = await page(`&page[before]=${second.pagination.previous}`);
  assert.deepEqual([back.data, back.pagination], [first.data, first.pagination]);
  let last = second, seen = 4;
  while (last.pagination.next) { last = await page(`&page[after]=${last.pagination.next}`); seen += last.data.length; }
  assert.equal(seen, (await gateway.get(`${actions}?page[size]=100`)).json.data.length);
});

test("invalid requests are refused with a reason", async () => {
  const before = (await gateway.get(actions)).text;
  const filter = { tag: "x" }, one = [`run_${"a".repeat(21)}`];
  for (const [body, status, text] of [
    ["{", 400, "Invalid JSON"], ["[]", 400, "Validation error: the body must be a JSON object"], ["", 400, "Request body is empty"],
    [{}, 400, "action: must be cancel or replay"], [{ action: "delete", filter }, 400, "action: must be cancel or replay"],
    [{ action: "cancel" }, 400, "Exactly one of filter or runIds must be provided"],
    [{ action: "cancel", filter, runIds: one }, 400, "Exactly one of filter or runIds must be provided"],
    [{ action: "cancel", filter: {} }, 400, "At least one filter must be provided"],
    [{ action: "cancel", filter: { tag: " ", queue: [] } }, 400, "filter.queue: empty, and without it the action would reach more runs"],
    [{ action: "cancel", filter: { tag: "x", tags: "x" } }, 400, "filter.tags: unknown filter, and without it the action would reach more runs"],
    [{ action: "cancel", filter: { tag: 5 } }, 400, "filter.tag: must be a string or a list of them"],
    [{ action: "cancel", filter: { tag: "a,b" } }, 400, "filter.tag: a value cannot have a comma"],
    [{ action: "cancel", filter: { queue: "q" } }, 400, "filter.queue: must have a type, task or custom, and a name"],
    [{ action: "cancel", filter: { status: "HAPPY" } }, 400, 'filter[status]: "HAPPY" is not a status of a run'],
    [{ action: "cancel", filter: [] }, 400, "filter: must be an object"],
    [{ action: "cancel", runIds: [] }, 400, "runIds: must be a list of 1 to 1000 ids"],
    [{ action: "cancel", runIds: Array(1001).fill(one[0]) }, 400, "runIds: must be a list of 1 to 1000 ids"],
    [{ action: "cancel", runIds: [...one, "x"] }, 400, "runIds[1]: is not the id of a run"],
    [{ action: "cancel", filter, name: "x".repeat(256) }, 400, "name: must be a string of at most 255 characters"],
    [{ action: "cancel", filter, targetRegion: "eu" }, 400, "targetRegion: only a replay has one"],
  ]) {
    const reply = await create(body);
    assert.deepEqual([reply.status, reply.json?.error], [status, text], JSON.stringify(body));
  }
  for (const query of ["page[size]=0", "page[size]=101", "page[after]=x", "page[before]=bulk_!"])
    assert.equal((await gateway.get(`${actions}?${query}`)).status, 400, query);
  assert.equal((await gateway.get(actions)).text, before);
});

test("another environment sees neither the actions nor the runs", async () => {
  const production = { key: keys.prod };
  const [run] = await makeRuns(1, "mine");
  const id = await begin({ action: "cancel", filter: { tag: "nothing" } });
  assert.deepEqual((await gateway.get(actions, production)).json.data, []);
  const unknown = (await gateway.get(`${actions}/bulk_${"1".repeat(21)}`, production)).text;
  assert.equal((await gateway.get(`${actions}/${id}`, production)).text, unknown);
  assert.equal((await gateway.post(`${actions}/${id}/abort`, undefined, production)).status, 404);
  const foreign = (await create({ action: "cancel", runIds: [run] }, production)).json.id;
  const done = await until(async () => {
    const { json } = await gateway.get(`${actions}/${foreign}`, production);
    return json.status === "COMPLETED" && json;
  });
  assert.deepEqual(done.counts, { total: 1, success: 0, failure: 1 });
  assert.equal((await gateway.get(`/api/v3/runs/${run}`)).json.status, "QUEUED");
  assert.equal((await gateway.get(actions, { key: keys.pat })).status, 401);
});

// ---- bounds ----

test("20 actions at once is the limit, and when turns are short of time each run takes a turn of its own", async (t) => {
  const own = await startGateway({ t, preload: "shim_busy" }), count = 500;
  await makeRuns(count, "load", { on: own });
  const turns = () => own.metric("runcast_loop_turn_cpu_seconds_count"), before = await turns();
  const replies = await Promise.all(Array.from({ length: 30 }, () => own.post(actions, { action: "replay", filter: { tag: "load" } })));
  assert.equal(replies.filter((reply) => reply.status === 202).length, 20);
  assert.equal(replies.filter((reply) => reply.status === 429).length, 10);
  for (const reply of replies.filter(({ status }) => status === 202).slice(2)) await own.post(`${actions}/${reply.json.id}/abort`);
  const { json: { data } } = await until(async () => {
    const all = await own.get(actions);
    return all.json.data.every((action) => action.status !== "PENDING") && all;
  }, { timeoutMs: 60_000, what: "the end of all" });
  const made = data.reduce((sum, { counts }) => sum + counts.success, 0), taken = await turns() - before;
  assert.ok(made >= 2 * count && taken >= made, `${taken} turns for ${made} replays`);
  const begun = await turns(), { counts: { success: canceled } } = await end(await begin({ action: "cancel", filter: { tag: "load" } }, own), own);
  const needed = await turns() - begun;
  assert.ok(canceled >= made && needed >= canceled, `${needed} turns for ${canceled} cancels`);
  await own.stop();
});

test("an action that cannot be stored does not count against the limit", async (t) => {
  const control = path.join(temporaryFolder(), "control");
  const own = await startGateway({ t, preload: "shim_sync", env: { SHIM_CONTROL: control } });
  fs.writeFileSync(control, "enospc");
  for (let i = 0; i < 25; i++) {
    const { status, json } = await own.post(actions, { action: "cancel", filter: { tag: "none" } });
    assert.deepEqual([status, json.error], [503, "storage_full"]);
  }
  fs.writeFileSync(control, "ok");
  await until(async () => (await own.post(actions, { action: "cancel", filter: { tag: "none" } })).status === 202, { what: "room again" });
  assert.equal((await own.get(actions)).json.data.length, 1);
  await own.stop();
});

// ---- restarts ----

test("after a kill every selected run was replayed exactly once", async (t) => {
  const own = await startGateway({ t, release: true });
  const ids = await makeRuns(1500, "origin", { on: own, payload: null, options: { ttl: "2h" } });
  const replay = await begin({ action: "replay", filter: { tag: "origin" } }, own);
  for (const least of [1, 300, 800]) {
    await until(async () => (await show(replay, own)).counts.success >= least, { everyMs: 1 });
    await own.kill();
    await own.restart();
  }
  assert.deepEqual((await end(replay, own)).counts, { total: 1500, success: 1500, failure: 0 });
  const made = (await listed("filter[tag]=origin", own)).filter((run) => !ids.includes(run.id));
  assert.equal(made.length, 1500);

  const cancel = await begin({ action: "cancel", filter: { tag: "origin" } }, own);
  for (const least of [1, 1000]) {
    await until(async () => (await show(cancel, own)).counts.success >= least, { everyMs: 1 });
    await own.kill();
    await own.restart();
  }
  assert.deepEqual((await end(cancel, own)).counts, { total: 3000, success: 3000, failure: 0 });
  assert.equal((await listed("filter[tag]=origin&filter[status]=QUEUED", own)).length, 0);
  await own.stop();
});
