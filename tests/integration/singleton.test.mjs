// Singleton queues, by REST and by the unmodified SDK 4.8.3: what a trigger does while an unfinished run has its queue
// and concurrencyKey, also while many come at once and the gateway is killed.
//
//   KILLS=100 node singleton.test.mjs      more kills
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { after, before, describe, test } from "node:test";

import { keys, sleep, startGateway, until } from "../support/js/gateway.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

const kills = Number(process.env.KILLS ?? 6);
const sdk = createRequire(new URL("../conformance/sdk-v4/x.js", import.meta.url))("@trigger.dev/sdk");
const asSdk = (call, to = gateway) => sdk.auth.withAuth({ baseURL: to.url, accessToken: keys.dev, secretKey: keys.dev }, call);
const strategies = ["queue", "skip", "cancel"];
const queues = [...strategies, "late"].map((name) => ({ name, concurrencyLimit: 5 }));

let gateway, worker;
before(async () => {
  gateway = await startGateway({ options: ["--dev-concurrency", "32"] });
  worker = await Worker.register(gateway, { tasks: ["hello", "parent"], queues });
  for (const strategy of strategies) await good(setStrategy(strategy, strategy));
});
after(() => gateway.stop());

const unique = () => `key-${randomUUID()}`;
const setStrategy = (queue, strategy, { to = gateway, type = "custom", key } = {}) => to.post(`/api/v1/queues/${queue}/singleton`, { type, strategy }, { key });
const show = async (queue, to = gateway) => (await to.get(`/api/v1/queues/${queue}?type=custom`)).json;
const retrieve = async (id, from = gateway) => (await from.get(`/api/v3/runs/${id}`)).json;
const isCanceled = async (id) => (await worker.show(id)).a === "CANCELED";
const send = (queue, concurrencyKey, { to = gateway, task = "hello", payload = 1, headers, key, ...options } = {}) =>
  to.post(`/api/v1/tasks/${task}/trigger`, { payload, options: { queue: { name: queue }, concurrencyKey, ...options } }, { headers, key });
const trigger = (queue, concurrencyKey, more) => good(send(queue, concurrencyKey, more));

async function good(promise) {
  const reply = await promise;
  assert.ok(reply.status === 200 || reply.status === 202, reply.text);
  return reply.json;
}

/** Starts the run; cancels others that are handed out first. */
async function start(id) {
  for (;;) {
    const attempt = await worker.dequeue();
    if (!attempt) { await sleep(20); continue; }
    if (attempt.id === id) return attempt.start();
    await worker.cancel(attempt.id);
  }
}

/** Waits until the run is in its queue because of its concurrencyKey. */
const heldBack = (id) => until(async () => (await retrieve(id)).waitingFor?.reason === "concurrency_key", { what: "the run waits for its key" });

/** All runs with the tag. */
async function runsOf(tag, from) {
  const all = [];
  for (let page = `/api/v1/runs?filter[tag]=${tag}&page[size]=100`; page;) {
    const { data, pagination } = await good(from.get(page));
    all.push(...data);
    page = pagination.next && `/api/v1/runs?filter[tag]=${tag}&page[size]=100&page[after]=${pagination.next}`;
  }
  return all;
}

describe("the setting of a queue", () => {
  test("is shown with the limit that it gives each key, and can be removed", async () => {
    const { singleton, concurrencyLimit, concurrency } = await show("skip");
    assert.deepEqual([singleton, concurrencyLimit, concurrency.current, concurrency.base], ["skip", 1, 1, 5]);
    assert.deepEqual([(await show("late")).singleton, (await show("late")).concurrencyLimit], [null, 5]);
    assert.equal((await good(setStrategy("late", "cancel"))).singleton, "cancel");
    const { singleton: none, concurrencyLimit: limit } = await good(setStrategy("late", null));
    assert.deepEqual([none, limit], [null, 5]);
  });

  test("concerns runs that were triggered before it", async () => {
    const key = unique(), { id } = await trigger("late", key);
    await good(setStrategy("late", "skip"));
    assert.deepEqual(await trigger("late", key), { id, isCached: true });
    await good(setStrategy("late", null));
    assert.notEqual((await trigger("late", key)).id, id);
  });

  test("survives a restart, and so do the keys", async (t) => {
    const own = await startGateway({ t }), key = unique();
    await Worker.register(own, { queues });
    await good(setStrategy("late", "skip", { to: own }));
    const { id } = await trigger("late", key, { to: own });
    await own.kill();
    await own.restart();
    assert.equal((await show("late", own)).singleton, "skip");
    assert.deepEqual(await trigger("late", key, { to: own }), { id, isCached: true });
    await own.stop();
  });

  test("is refused with what to do", async () => {
    for (const strategy of [undefined, "replace", 1, {}]) {
      const reply = await setStrategy("late", strategy);
      assert.deepEqual([reply.status, reply.json.error], [400, "strategy: must be queue, skip, cancel or null"]);
    }
    assert.equal((await setStrategy("nobody", "skip")).status, 404);
  });

  test("does not concern other environments", async () => {
    await Worker.register(gateway, { key: keys.prod, queues });
    const key = unique(), { id } = await trigger("skip", key), other = () => trigger("skip", key, { key: keys.prod });
    const [first, second] = [await other(), await other()];
    assert.equal(new Set([id, first.id, second.id]).size, 3);
    await good(setStrategy("skip", "skip", { key: keys.prod }));
    assert.equal((await other()).id, first.id);
  });
});

describe("skip", () => {
  test("leads to the run that has the key until that has ended", async () => {
    const key = unique(), first = await trigger("skip", key);
    assert.equal(first.isCached, false);
    assert.deepEqual(await trigger("skip", key, { task: "parent" }), { id: first.id, isCached: true }, "of any task");
    assert.notEqual((await trigger("skip", unique())).id, first.id);
    const attempt = await start(first.id);
    assert.equal((await trigger("skip", key)).id, first.id);
    await attempt.succeed(1);
    assert.notEqual((await trigger("skip", key)).id, first.id);
  });

  test("without a concurrencyKey, one run of the queue is unfinished", async () => {
    const { id } = await trigger("skip");
    assert.deepEqual(await trigger("skip"), { id, isCached: true });
    await worker.cancel(id);
  });

  test("of a parent that waits resumes it when the run has ended", async () => {
    const key = unique(), { id } = await trigger("skip", key), parent = await trigger("late", unique(), { task: "parent" });
    const attempt = await start(parent.id);
    const skipped = await trigger("skip", key, { parentRunId: attempt.id, resumeParentOnCompletion: true });
    assert.deepEqual(skipped, { id, isCached: true });
    assert.equal((await worker.show(attempt.id)).b, "WAITING");
    await worker.cancel(id);
    await until(async () => (await worker.show(attempt.id)).b === "EXECUTING", { what: "the parent" });
    await worker.cancel(attempt.id);
  });

  test("never makes a run wait for itself", async () => {
    const key = unique(), { id } = await trigger("skip", key), attempt = await start(id);
    const reply = await send("skip", key, { parentRunId: id, resumeParentOnCompletion: true });
    assert.equal(reply.status, 422);
    assert.match(reply.json.error, /use another concurrencyKey or queue/);
    assert.equal((await trigger("skip", key, { parentRunId: id })).id, id);
    await attempt.succeed(1);
  });

  test("1,000 triggers at once lead to one run", async () => {
    const key = unique(), all = await Promise.all(Array.from({ length: 1000 }, () => trigger("skip", key)));
    assert.equal(new Set(all.map(({ id }) => id)).size, 1);
    assert.equal(all.filter(({ isCached }) => !isCached).length, 1);
  });

  test("that is repeated gets the first answer, and an idempotency key is bound to that run", async () => {
    const key = unique(), headers = { "x-trigger-request-idempotency-key": randomUUID() }, idempotencyKey = unique();
    const { id } = await trigger("skip", key);
    for (let i = 0; i < 2; i++) assert.equal((await trigger("skip", key, { headers })).id, id);
    assert.equal((await trigger("skip", key, { idempotencyKey })).id, id);
    await worker.cancel(id);
    assert.equal((await trigger("skip", key, { headers })).id, id);
    assert.deepEqual(await trigger("skip", key, { idempotencyKey }), { id, isCached: true });
    assert.notEqual((await trigger("skip", key)).id, id);
  });

  test("a public token gets no rights to the older run", async () => {
    const key = unique(), { id } = await trigger("skip", key);
    const jwt = await asSdk(() => sdk.auth.createPublicToken({ scopes: { trigger: { tasks: ["hello"] } } }));
    const headers = { "x-trigger-request-idempotency-key": randomUUID() };
    for (const repeats of [false, true]) {
      const reply = await send("skip", key, { key: jwt, headers });
      assert.deepEqual([reply.status, reply.json], [200, { id, isCached: true }], reply.text);
      assert.equal((await gateway.get(`/api/v3/runs/${id}`, { key: reply.headers["x-trigger-jwt"] })).status, 403);
      if (!repeats) await worker.cancel(id); // no run has the key now, but the first answer stands
    }
  });

  test("a replay leads to it, too", async () => {
    const key = unique(), old = await trigger("skip", key);
    await worker.cancel(old.id);
    const { id } = await trigger("skip", key);
    assert.equal((await good(gateway.post(`/api/v1/runs/${old.id}/replay`, {}))).id, id);
  });
});

describe("cancel", () => {
  test("cancels the run that has not begun, and creates the new one", async () => {
    const key = unique(), first = await trigger("cancel", key), second = await trigger("cancel", key);
    assert.deepEqual([second.isCached, await isCanceled(first.id), (await retrieve(second.id)).status], [false, true, "QUEUED"]);
    assert.match(JSON.stringify((await retrieve(first.id)).error ?? {}), /newer run/);
    await worker.cancel(second.id);
  });

  test("cancels the run that executes if no other waits, and the new one starts after it", async () => {
    const key = unique(), first = await trigger("cancel", key), attempt = await start(first.id);
    const second = await trigger("cancel", key);
    assert.equal(await isCanceled(first.id), true);
    await heldBack(second.id);
    const third = await trigger("cancel", key);
    assert.equal(await isCanceled(second.id), true);
    await heldBack(third.id);
    await attempt.completeReply({ ok: false, error: { type: "INTERNAL_ERROR", code: "TASK_RUN_CANCELLED" } }, { snapshot: (await worker.latest(first.id)).json.execution?.snapshot?.friendlyId });
    await (await start(third.id)).succeed(1);
  });

  test("of 200 triggers at once, one run is left", async () => {
    const key = unique(), tag = unique();
    const all = await Promise.all(Array.from({ length: 200 }, () => trigger("cancel", key, { tags: [tag] })));
    assert.equal(new Set(all.map(({ id }) => id)).size, 200);
    const runs = await runsOf(tag, gateway);
    assert.deepEqual([runs.length, runs.filter(({ status }) => status === "CANCELED").length], [200, 199]);
  });

  test("a run that triggers its own key is refused, because it would be canceled with its parent", async () => {
    const key = unique(), { id } = await trigger("cancel", key), attempt = await start(id);
    assert.equal((await send("cancel", key, { parentRunId: id })).status, 422);
    assert.equal((await worker.show(id)).b, "EXECUTING");
    await attempt.succeed(1);
  });

  test("a repeated trigger cancels once", async () => {
    const key = unique(), headers = { "x-trigger-request-idempotency-key": randomUUID() };
    await trigger("cancel", key);
    const { id } = await trigger("cancel", key, { headers });
    assert.equal((await trigger("cancel", key, { headers })).id, id);
    assert.equal(await isCanceled(id), false);
  });
});

test("queue: runs of a key execute one after the other", async () => {
  const key = unique(), first = await trigger("queue", key), second = await trigger("queue", key);
  assert.notEqual(first.id, second.id);
  const attempt = await start(first.id);
  await heldBack(second.id);
  assert.equal((await retrieve(second.id)).waitingFor.message, "The singleton queue queue executes one run of its concurrencyKey at a time; the run starts when that one ends or waits");
  await attempt.succeed(1);
  await (await start(second.id)).succeed(1);
});

test("debounce is refused with skip and cancel, and goes with queue", async () => {
  const debounce = { key: "d", delay: "1m" };
  for (const queue of ["skip", "cancel"]) {
    const reply = await send(queue, unique(), { debounce });
    assert.deepEqual([reply.status, /singleton strategy (skip|cancel) of the queue/.test(reply.json.error)], [400, true], reply.text);
  }
  const key = unique(), { id } = await trigger("queue", key, { debounce: { ...debounce, key } });
  assert.equal((await trigger("queue", key, { debounce: { ...debounce, key } })).id, id);
});

describe("batches", () => {
  const ids = async (batch) => (await gateway.get(`/api/v2/batches/${batch}`)).json.runs;
  const item = (queue, concurrencyKey) => ({ task: "hello", payload: 1, options: { queue: { name: queue }, concurrencyKey } });

  test("skip and cancel item after item", async () => {
    const [a, b, c] = [unique(), unique(), unique()], held = await trigger("skip", a), old = await trigger("cancel", c);
    const items = [item("skip", a), item("skip", b), item("skip", b), item("cancel", c), item("cancel", c), item("queue", a)];
    const runs = await ids((await good(gateway.post("/api/v2/tasks/batch", { items }))).id);
    assert.deepEqual([runs[0], runs[2] === runs[1], new Set(runs).size], [held.id, true, 5]);
    assert.deepEqual(await Promise.all([old.id, runs[3], runs[4], runs[5]].map(isCanceled)), [true, true, false, false]);
    const again = await gateway.post("/api/v1/tasks/batch", { items: [item("skip", a)] });
    assert.deepEqual(again.json.runs.map((run) => [run.id, run.isCached]), [[held.id, true]]);
  });

  test("of the same keys at once end", async () => {
    const names = Array.from({ length: 5 }, unique);
    for (const queue of ["skip", "cancel"]) {
      const all = await Promise.all(Array.from({ length: 20 }, (_, i) =>
        good(gateway.post("/api/v2/tasks/batch", { items: names.map((_name, k) => item(queue, names[(i + k) % names.length])) }))));
      const runs = new Set((await Promise.all(all.map(({ id }) => ids(id)))).flat());
      assert.equal(runs.size, queue === "skip" ? 5 : 100);
      const canceled = await Promise.all([...runs].map(isCanceled));
      assert.equal(canceled.filter((is) => !is).length, 5);
    }
  });
});

describe("the SDK 4.8.3", () => {
  test("triggers and batches into a singleton queue by its concurrencyKey", async () => {
    const options = { queue: "skip", concurrencyKey: unique() };
    const first = await asSdk(() => sdk.tasks.trigger("hello", { n: 1 }, options));
    assert.equal((await asSdk(() => sdk.tasks.trigger("hello", { n: 2 }, options))).id, first.id);
    const batch = await asSdk(() => sdk.tasks.batchTrigger("hello", [{ payload: { n: 3 }, options }, { payload: { n: 4 }, options }]));
    assert.deepEqual((await asSdk(() => sdk.batch.retrieve(batch.batchId))).runs, [first.id, first.id]);
    assert.equal((await asSdk(() => sdk.queues.retrieve({ type: "custom", name: "skip" }))).concurrencyLimit, 1);
    const last = { queue: "cancel", concurrencyKey: unique() };
    const canceled = await asSdk(() => sdk.tasks.trigger("hello", {}, last));
    await asSdk(() => sdk.tasks.trigger("hello", {}, last));
    assert.equal((await asSdk(() => sdk.runs.retrieve(canceled.id))).status, "CANCELED");
  });
});

test(`${kills} kills under concurrent triggers: no key ever has two runs`, { timeout: 60_000 + kills * 10_000 }, async (t) => {
  const own = await startGateway({ t }), names = Array.from({ length: 3 }, unique), answered = new Map();
  const tag = unique(), lost = ["ECONNREFUSED", "ECONNRESET", "EPIPE"];
  await Worker.register(own, { queues });
  for (const strategy of ["skip", "cancel"]) await good(setStrategy(strategy, strategy, { to: own }));
  /** Triggers until the gateway is gone; every fourth request is sent twice, and every eighth cancels its run. */
  async function load(seed, state) {
    for (let i = seed; !state.over; i++) {
      const name = names[i % names.length], headers = { "x-trigger-request-idempotency-key": randomUUID() };
      try {
        const queue = i % 2 ? "skip" : "cancel", options = { to: own, headers, payload: `${queue} ${name}`, tags: [tag] };
        const reply = await send(queue, name, options);
        if (reply.status !== 200) { assert.equal(reply.status, 503, reply.text); return; }
        answered.set(headers["x-trigger-request-idempotency-key"], [reply.json.id, queue, name, options]);
        if (i % 4 === 0) assert.equal((await trigger(queue, name, options)).id, reply.json.id, "a repetition");
        if (i % 8 === 1) await own.post(`/api/v2/runs/${reply.json.id}/cancel`, {});
      } catch (error) {
        if (!lost.includes(error.code)) throw error;
        return;
      }
    }
  }
  for (let round = 0; round < kills; round++) {
    const state = { over: false }, writing = Promise.all(Array.from({ length: 24 }, (_, i) => load(i, state)));
    const enough = answered.size + 30;
    await until(() => answered.size >= enough, { everyMs: 1, what: "30 answers" });
    await sleep(20 * (round % 5)); // kills come at different times after the load began
    await own.kill();
    state.over = true;
    await writing;
    await own.restart();
    const counts = new Map(), known = new Set();
    for (const { id, status } of await runsOf(tag, own)) {
      known.add(id);
      if (status === "CANCELED") continue;
      const { payload } = await retrieve(id, own);
      counts.set(payload, (counts.get(payload) ?? 0) + 1);
    }
    for (const [name, count] of counts) assert.equal(count, 1, `${name} has ${count} unfinished runs`);
    for (const name of names) assert.equal(counts.get(`cancel ${name}`) ?? 0, 1, "a canceled run was replaced in its commit");
    for (const [id] of answered.values()) assert.ok(known.has(id), `${id} was acknowledged`);
    for (const [id, queue, name, options] of [...answered.values()].slice(-20))
      assert.equal((await trigger(queue, name, options)).id, id, "a repetition after the restart");
  }
  t.diagnostic(`${answered.size} answered triggers`);
  assert.ok(answered.size >= 30 * kills);
  await own.stop();
});
