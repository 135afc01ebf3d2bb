// Schedules over HTTP: created, shown, changed, removed, declared in code; credentials and invalid calls; and that they
// fire once, also when the gateway is killed at that very moment.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";

import { keys, sleep, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { publicToken } from "../support/js/tokens.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

const all = "/api/v1/schedules";
const nightly = { id: "nightly", triggerSource: "schedule" };
const mails = { id: "mails", triggerSource: "schedule", queue: { name: "mail" }, concurrency: { inline: { total: 1 }, limits: ["smtp"] }, gates: [{ queue: "gate", concurrencyKey: "all" }] };
const tasks = ["hello", nightly, mails], queues = [{ name: "mail" }, { name: "gate", concurrencyLimit: 2 }], concurrencyLimits = [{ name: "smtp", total: 1 }];
const minutes = 60_000;

let gateway;
before(async () => {
  gateway = await startGateway();
  for (const key of [keys.dev, keys.staging, keys.prod]) await Worker.register(gateway, { tasks, queues, concurrencyLimits, key });
});
after(() => gateway.stop());

async function good(promise) {
  const reply = await promise;
  assert.equal(reply.status, 200, reply.text);
  return reply.json;
}

let made = 0;
const body = (more = {}) => ({ task: "nightly", cron: "0 9 * * *", deduplicationKey: `key-${++made}`, ...more });
const create = (more, on = gateway, key) => good(on.post(all, body(more), { key }));
const one = (id, rest = "") => `${all}/${encodeURIComponent(id)}${rest}`;
const list = async (query = "", key = undefined) => good(gateway.get(all + query, { key }));

// ---- the calls ----

test("a schedule is shown as it was created", async () => {
  const schedule = await create({ deduplicationKey: "shown", externalId: "user_1", timezone: "America/New_York", window: "30m" });
  const { id, nextRun, nextRunEffectiveAt, environments, ...rest } = schedule;
  assert.match(id, /^sched_[1-9a-z]{21}$/);
  assert.deepEqual(rest, {
    type: "IMPERATIVE", task: "nightly", active: true, deduplicationKey: "shown", externalId: "user_1",
    generator: { type: "CRON", expression: "0 9 * * *", description: "At 09:00 AM" }, timezone: "America/New_York", window: "30m",
  });
  assert.equal(new Date(nextRun).toLocaleTimeString("en-US", { timeZone: "America/New_York" }), "9:00:00 AM");
  assert.ok(new Date(nextRun) > new Date());
  assert.equal(nextRunEffectiveAt, nextRun);
  assert.deepEqual(environments.map(({ type, slug }) => [type, slug]), [["DEVELOPMENT", "dev"]]);
  for (const name of [id, "shown"]) assert.deepEqual(await good(gateway.get(one(name))), schedule);
});

test("an update replaces what it names and clears what it leaves out", async () => {
  const { id, deduplicationKey } = await create({ externalId: "user_1", timezone: "Asia/Tokyo", window: "50%" });
  const now = await good(gateway.put(one(id), { task: "mails", cron: "*/5 * * * *" }));
  assert.deepEqual([now.task, now.generator.description, now.timezone, now.deduplicationKey], ["nightly", "Every 5 minutes", "UTC", deduplicationKey]);
  assert.ok(!("externalId" in now) && !("window" in now));
});

test("activate and deactivate can be repeated, and nextRun is null while the schedule is inactive", async () => {
  const { id } = await create();
  for (const [what, active] of [["deactivate", false], ["deactivate", false], ["activate", true], ["activate", true]]) {
    const now = await good(gateway.post(one(id, `/${what}`)));
    assert.equal(now.active, active);
    assert.equal(now.nextRun === null, !active);
    assert.deepEqual(await good(gateway.get(one(id))), now);
  }
});

test("a deduplication key names one schedule of its environment", async () => {
  const first = await create({ deduplicationKey: "moving", externalId: "a" });
  const second = await create({ deduplicationKey: "moving", cron: "30 5 * * *" });
  assert.deepEqual([second.id, second.generator.expression, second.externalId], [first.id, "30 5 * * *", undefined]);
  const other = await create({ deduplicationKey: "moving" }, gateway, keys.prod);
  assert.deepEqual([other.id === first.id, other.environments[0].type], [false, "PRODUCTION"]);
  assert.equal((await good(gateway.get(one("moving")))).id, first.id);
  assert.equal((await good(gateway.get(one("moving"), { key: keys.prod }))).id, other.id);
  assert.equal((await create({ deduplicationKey: "moving" }, gateway, keys.prod)).id, other.id);
  const [a, b] = await Promise.all([create({ deduplicationKey: "both" }), create({ deduplicationKey: "both" }, gateway, keys.staging)]);
  assert.notEqual(a.id, b.id);
  const [c, d] = [await create({ deduplicationKey: "" }), await create({ deduplicationKey: "" })];
  assert.notEqual(c.id, d.id);
  assert.equal(c.deduplicationKey, undefined);
});

test("a deleted schedule is gone", async () => {
  const { id, deduplicationKey } = await create();
  assert.deepEqual(await good(gateway.delete(one(deduplicationKey))), { id });
  for (const name of [id, deduplicationKey]) {
    const replies = await Promise.all([
      gateway.get(one(name)), gateway.delete(one(name)), gateway.put(one(name), body()),
      gateway.post(one(name, "/activate")), gateway.post(one(name, "/deactivate")),
    ]);
    for (const { status, json, headers } of replies)
      assert.deepEqual([status, json.error, headers["x-should-retry"]], [404, "Schedule not found", "false"]);
  }
});

test("pages are newest first and end", async () => {
  const key = keys.staging, ids = [];
  await Promise.all((await list("?perPage=100", key)).data.map(({ id }) => gateway.delete(one(id), { key })));
  for (let i = 0; i < 5; i++) ids.unshift((await create({}, gateway, key)).id);
  const pages = [await list("?perPage=2", key), await list("?perPage=2&page=2", key), await list("?perPage=2&page=3", key), await list("?perPage=2&page=4", key)];
  assert.deepEqual(pages.map((page) => page.data.map(({ id }) => id)), [ids.slice(0, 2), ids.slice(2, 4), ids.slice(4), []]);
  assert.deepEqual(pages[1].pagination, { currentPage: 2, totalPages: 3, count: 5 });
  assert.equal((await list("?perPage=1000&page=18446744073709551615", key)).data.length, 0);
});

// ---- invalid calls ----

test("an invalid schedule is refused with its reason and has no effect", async () => {
  const { id } = await create({ deduplicationKey: "stays" });
  const before = await list("?perPage=100");
  const long = "x".repeat(2000);
  const cases = [
    // body, status, error, member of issues
    [{ task: undefined }, 400, "Invalid request body", "task"], [{ cron: undefined }, 400, "Invalid request body", "cron"],
    [{ task: 5 }, 400, "Invalid request body", "task"], [{ task: null }, 400, "Invalid request body", "task"],
    [{ task: long }, 400, "Invalid request body", "task"], [{ cron: ["* * * * *"] }, 400, "Invalid request body", "cron"],
    [{ externalId: {} }, 400, "Invalid request body", "externalId"], [{ externalId: long }, 400, "Invalid request body", "externalId"],
    [{ timezone: 1 }, 400, "Invalid request body", "timezone"], [{ window: true }, 400, "Invalid request body", "window"],
    [{ cron: "rubbish" }, 422, /^Invalid cron expression: /], [{ cron: "61 * * * *" }, 422, /^Invalid cron expression: .*minute/],
    [{ cron: "0 24 * * *" }, 422, /^Invalid cron expression: .*hour/], [{ cron: "0 0 31 2 *" }, 422, /^Invalid cron expression: /],
    [{ cron: "* * * * * *" }, 422, /CRON expressions with seconds are not allowed/], [{ cron: "* ".repeat(500) }, 422, /^Invalid cron expression: /],
    [{ timezone: "Mars/Base" }, 422, `Invalid IANA timezone: 'Mars/Base'. View the list of valid timezones at ${gateway.url}/api/v1/timezones`],
    [{ timezone: "UTC\u0000" }, 422, /^Invalid IANA timezone/], [{ timezone: "Europe/Paris\u0000" }, 422, /^Invalid IANA timezone/],
    [{ timezone: "" }, 422, /^Invalid IANA timezone/], [{ timezone: "../../etc/passwd" }, 422, /^Invalid IANA timezone/],
    [{ timezone: long }, 422, /^Invalid IANA timezone: 'x{100}'\./], [{ window: "25h" }, 422, /^Invalid window: '25h'/],
    [{ window: "101%" }, 422, /^Invalid window/], [{ window: "01m" }, 422, /^Invalid window/], [{ window: "soon" }, 422, /^Invalid window/],
    [{ task: "missing" }, 422, "Task with identifier missing not found in project."],
    [{ task: "hello" }, 422, "Task with identifier hello is not a scheduled task."],
    [{ task: "hello", cron: "x", timezone: "Mars/Base" }, 422, /^Invalid cron expression/], // the first of several mistakes
  ];
  const raw = [
    ["", 400, "Request body is empty"], ["{", 400, "Invalid JSON"], ["[]", 400, /must be a JSON object/], ["\"x\"", 400, /must be a JSON object/],
    ['{"task":"a","task":"b"}', 400, /names a member twice/], [Buffer.from('{"task":"\xff\xfe","cron":"* * * * *","deduplicationKey":"k"}', "latin1"), 400, "Invalid JSON"],
    [JSON.stringify(body({ externalId: "x".repeat(70_000) })), 413, /^The body is too large/],
  ];
  const calls = [(sent) => gateway.post(all, sent), (sent) => gateway.put(one(id), sent)];
  for (const call of calls) {
    for (const [sent, status, error, member] of [...cases.map(([more, ...rest]) => [body(more), ...rest]), ...raw]) {
      const { status: got, json, text } = await call(sent);
      const what = `${JSON.stringify(sent).slice(0, 100)}: ${text}`;
      assert.equal(got, status, what);
      if (error instanceof RegExp) assert.match(json.error, error, what); else assert.equal(json.error, member ? `${error}: ${member}: ${json.issues[0].message}` : error, what);
      if (member) assert.deepEqual(json.issues.map((issue) => issue.path), [[member]], what);
    }
  }
  for (const [more, member] of [[{ deduplicationKey: undefined }, "deduplicationKey"], [{ deduplicationKey: 7 }, "deduplicationKey"], [{ deduplicationKey: long }, "deduplicationKey"]]) {
    const { status, json } = await gateway.post(all, body(more));
    assert.deepEqual([status, json.issues[0].path], [400, [member]]);
  }
  for (const query of ["page=0", "page=x", "page=", "page=-1", "page=1.5", "perPage=0", "perPage=x"]) {
    const { status, json } = await gateway.get(`${all}?${query}`);
    assert.deepEqual([status, json.issues[0].path], [400, [query.split("=")[0]]], query);
    assert.match(json.error, /^Invalid request parameters: (page|perPage): \w/, query);
  }
  assert.deepEqual(await list("?perPage=100"), before);
});

test("another environment's schedules answer like ones that do not exist", async () => {
  const { id, deduplicationKey } = await create({}, gateway, keys.prod);
  const never = "sched_999999999999999999999";
  const calls = (name) => [
    gateway.get(one(name)), gateway.delete(one(name)), gateway.put(one(name), body()),
    gateway.post(one(name, "/activate")), gateway.post(one(name, "/deactivate")),
  ];
  const [foreign, unknown, byKey] = await Promise.all([id, never, deduplicationKey].map((name) => Promise.all(calls(name))));
  for (const [i, reply] of unknown.entries()) {
    assert.equal(reply.status, 404);
    for (const other of [foreign[i], byKey[i]]) assert.deepEqual([other.status, other.text], [404, reply.text]);
  }
  assert.equal((await list("?perPage=100")).data.some((schedule) => schedule.id === id), false);
  assert.equal((await good(gateway.get(one(id), { key: keys.prod }))).active, true);
});

test("only secret keys are accepted", async () => {
  const { id } = await create();
  const token = await publicToken(gateway, { scopes: ["admin", "read:all", "write:all"] });
  const calls = [["GET", all], ["POST", all, body()], ["GET", one(id)], ["PUT", one(id), body()], ["DELETE", one(id)], ["POST", one(id, "/activate")], ["POST", one(id, "/deactivate")]];
  for (const [method, target, sent] of calls) {
    for (const key of [null, token, keys.pat, "tr_dev_wrong"])
      assert.equal((await gateway.http.request(method, target, { body: sent, key })).status, 401, `${method} ${target} ${key}`);
  }
  assert.equal((await good(gateway.get(one(id)))).active, true);
});

test("an environment has a limited number of schedules", async (t) => {
  const small = await startGateway({ t, options: ["--schedules", "2"] });
  await Worker.register(small, { tasks, queues, concurrencyLimits });
  const [first] = [await create({}, small), await create({}, small)];
  const { status, json } = await small.post(all, body());
  assert.deepEqual([status, json.error], [422, "You have created 2/2 schedules so you'll need to increase your limits or delete some schedules."]);
  await create({ deduplicationKey: first.deduplicationKey }, small); // an update does not add one
  await good(small.delete(one(first.id)));
  await create({}, small);
});

// ---- declared in code ----

test("declared schedules are created, changed and removed with the code", async (t) => {
  const own = await startGateway({ t });
  const declared = async () => (await good(own.get(all))).data.map(({ id, type, task, active, timezone, generator }) => ({ id, type, task, active, timezone, cron: generator.expression }));
  const code = (cron, timezone, more) => ({ ...nightly, schedule: { cron, timezone, ...more } });
  const hash = (await Worker.register(own, { tasks: [code("0 3 * * *")] })).contentHash;
  const [first] = await declared();
  assert.deepEqual(first, { id: first.id, type: "DECLARATIVE", task: "nightly", active: true, timezone: "UTC", cron: "0 3 * * *" });

  await good(own.post(one(first.id, "/deactivate")));
  await Worker.register(own, { tasks: [code("0 4 * * *", "Asia/Tokyo"), "hello"] });
  const second = { ...first, active: false, timezone: "Asia/Tokyo", cron: "0 4 * * *" };
  assert.deepEqual(await declared(), [second]);
  await own.kill();
  await own.restart();
  assert.deepEqual(await declared(), [second]);

  for (const [method, error, sent] of [["PUT", "Cannot update a declarative schedule", body()], ["DELETE", "Cannot delete a declarative schedule"]]) {
    const { status, json } = await own.http.request(method, one(first.id), { body: sent });
    assert.deepEqual([status, json.error], [422, error]);
  }
  const other = { ...nightly, id: "other", schedule: { cron: "0 5 * * *", environments: ["PRODUCTION", "STAGING"] } };
  await Worker.register(own, { tasks: [other], hash });
  assert.deepEqual(await declared(), [], "the task has gone, the other one is not for this environment");
  await Worker.register(own, { tasks: [{ ...other, schedule: { ...other.schedule, environments: ["DEVELOPMENT"] } }] });
  assert.deepEqual((await declared()).map(({ task }) => task), ["other"]);
});

test("a registration with an invalid schedule is refused as a whole", async () => {
  const worker = new Worker(gateway);
  const before = await list("?perPage=100");
  for (const [schedule, error] of [
    [{ cron: "61 * * * *" }, /the schedule of 'nightly': Invalid cron expression/], [{ cron: "* * * * *", timezone: "Mars/Base" }, /Invalid IANA timezone: 'Mars\/Base'/],
    [{ cron: "* * * * *", window: "x" }, /Invalid window: 'x'/], [{}, /schedule\.cron: must be/], [{ cron: 5 }, /schedule\.cron: must be/],
    ["* * * * *", /schedule: must be an object/], [{ cron: "* * * * *", environments: "PRODUCTION" }, /environments: must be an array/],
    [{ cron: "* * * * *", environments: ["MARS"] }, /environments: must be names/],
  ]) {
    const { status, json } = await worker.registration({ tasks: [{ ...nightly, schedule }], hash: `bad-${++made}` });
    assert.equal(status, 400, JSON.stringify(schedule));
    assert.match(json.error, error);
  }
  assert.deepEqual(await list("?perPage=100"), before);
});

// ---- they fire ----

/** A gateway whose wall clock the test sets; at(time) sets it. */
async function clockwork(t) {
  const file = path.join(temporaryFolder(), "clock");
  const at = (time) => {
    fs.writeFileSync(`${file}.new`, String(time - Date.now()));
    fs.renameSync(`${file}.new`, file);
  };
  const begin = Math.ceil(Date.now() / minutes) * minutes;
  at(begin + 1000);
  const own = await startGateway({ t, options: ["--dev-ttl", "0"], preload: "shim_clock", env: { SHIM_CLOCK: file } });
  const worker = await Worker.register(own, { tasks, queues, concurrencyLimits });
  return { own, at, begin, worker };
}

/** The nominal times of a schedule's runs, oldest first. */
async function fired(own, id) {
  const { data } = await good(own.get(`/api/v1/runs?filter[schedule]=${id}&page[size]=100`));
  const runs = await Promise.all(data.map((run) => good(own.get(`/api/v3/runs/${run.id}`))));
  return runs.map(({ payload }) => Date.parse(payload.timestamp)).sort((a, b) => a - b);
}

test("a run of a schedule has its payload, and the queue, limits and gates of its task, and names the schedule", async (t) => {
  const { own, at, begin, worker } = await clockwork(t);
  const schedule = await create({ task: "mails", cron: "* * * * *", externalId: "user_1", timezone: "Europe/Berlin" }, own);
  for (const minute of [1, 2]) {
    at(begin + minute * minutes - 100);
    await until(async () => (await fired(own, schedule.id)).length === minute, { what: "it fires" });
  }
  const { data } = await good(own.get(`/api/v1/runs?filter[schedule]=${schedule.id}`));
  const run = await good(own.get(`/api/v3/runs/${data[0].id}`));
  const iso = (minute) => new Date(begin + minute * minutes).toISOString();
  assert.deepEqual(run.payload, {
    type: "IMPERATIVE", timestamp: iso(2), lastTimestamp: iso(1), timezone: "Europe/Berlin", scheduleId: schedule.id, externalId: "user_1",
    upcoming: Array.from({ length: 10 }, (_, i) => iso(3 + i)),
  });
  const { id, externalId, deduplicationKey, generator } = schedule;
  assert.deepEqual(run.schedule, { id, externalId, deduplicationKey, generator });
  assert.equal((await good(own.get("/api/v1/queues/mail?type=custom"))).queued, 2);
  assert.equal((await good(own.get("/api/v1/runs?filter[schedule]=sched_999999999999999999999"))).data.length, 0);
  assert.equal(await own.metric("runcast_scheduled_runs_total"), 2);

  assert.deepEqual([run.concurrencyLimits, run.gates], [["task/mails", "smtp"], [{ queue: "gate", concurrencyKey: "all" }]]);
  const first = await worker.take(data[1].id);
  const figures = async (name) => { const { running, queued } = await good(own.get(`/api/v1/concurrency-limits/${encodeURIComponent(name)}`)); return [running, queued]; };
  assert.deepEqual(await Promise.all(["task/mails", "smtp"].map(figures)), [[1, 1], [1, 1]]);
  assert.equal((await good(own.get("/api/v1/queues/gate?type=custom"))).running, 1);
  assert.equal((await good(own.get(`/api/v3/runs/${run.id}`))).waitingFor.reason, "limit");
  await first.succeed(1);
  await (await worker.take(run.id)).succeed(1);
});

test("kill -9 around the moment: each of many schedules fires once every minute", async (t) => {
  const { own, at, begin } = await clockwork(t);
  const rounds = 8, count = 40;
  const made = await Promise.all(Array.from({ length: count }, () => create({ cron: "* * * * *" }, own)));
  const restartAt = async (time) => { await own.kill(); at(time); await own.restart(); };
  for (let round = 1; round <= rounds; round++) {
    const moment = Date.now() + 300;
    await restartAt(begin + round * minutes - 300);
    await sleep(moment + round * 4 - 12 - Date.now()); // before the firing, during it, or after it
    await restartAt(begin + round * minutes + 1000);
    await until(async () => (await good(own.get("/api/v1/queues/nightly?type=task"))).queued >= round * count, { what: "the rest fires" });
  }
  const due = Array.from({ length: rounds }, (_, i) => begin + (i + 1) * minutes);
  for (const { id } of made) assert.deepEqual(await fired(own, id), due);
});

test("a clock that is set forward and back fires nothing twice", async (t) => {
  const { own, at, begin } = await clockwork(t);
  const { id } = await create({ cron: "*/10 * * * *" }, own);
  const ten = Math.ceil((begin + 1001) / (10 * minutes)) * 10 * minutes;
  at(ten + 60 * minutes + 5000);
  await until(async () => (await fired(own, id)).length === 1, { what: "the latest missed one fires" });
  at(ten - 50);
  await create({}, own);
  at(ten + 60 * minutes - 50);
  await own.kill();
  await own.restart();
  at(ten + 70 * minutes - 50);
  await until(async () => (await fired(own, id)).length === 2, { what: "the next one fires" });
  assert.deepEqual(await fired(own, id), [ten + 60 * minutes, ten + 70 * minutes]);
});

test("a schedule that waits for a time far ahead, after the clock was set back, fires again with a new cron", async (t) => {
  const { own, at, begin } = await clockwork(t);
  const { id } = await create({ cron: "* * * * *" }, own);
  const far = begin + 3000 * 24 * 60 * minutes;
  at(far + 1000);
  await until(async () => (await good(own.get(one(id)))).nextRun > new Date(far).toISOString() && (await own.metric("runcast_scheduled_runs_total")) === 1, { what: "it fires" });
  at(begin + 1000);
  assert.equal(Date.parse((await good(own.get(one(id)))).nextRun), far + minutes);
  const renewed = await good(own.put(one(id), { task: "nightly", cron: "*/2 * * * *" }));
  const next = Date.parse(renewed.nextRun);
  assert.ok(next <= begin + 2 * minutes, renewed.nextRun);
  at(next - 50);
  await until(async () => (await own.metric("runcast_scheduled_runs_total")) === 2, { what: "it fires again" });
});

test("an archived branch fires no more", async (t) => {
  const { own, at, begin } = await clockwork(t);
  const branches = `/api/v1/projects/${keys.ref}/branches`, topic = { env: "preview", branch: "topic" };
  const there = { key: keys.preview, headers: { "x-trigger-branch": "topic" } };
  await good(own.post(branches, topic, { key: keys.pat }));
  const { environments } = await good(own.post(all, body({ cron: "* * * * *" }), there));
  assert.deepEqual(environments.map(({ type, branchName }) => [type, branchName]), [["PREVIEW", "topic"]]);
  at(begin + minutes - 100);
  await until(async () => (await good(own.get("/api/v1/runs", there))).data.length === 1, { what: "it fires" });
  await good(own.post(`${branches}/archive`, topic, { key: keys.pat }));
  const { id } = await create({ cron: "* * * * *" }, own);
  for (const minute of [2, 3]) {
    at(begin + minute * minutes - 100);
    await until(async () => (await fired(own, id)).length === minute - 1, { what: "another one fires" });
    assert.equal(await own.metric("runcast_scheduled_runs_total"), minute === 2 ? 2 : 1);
    await own.kill();
    await own.restart();
  }
});
