// Debounced triggers, by REST and by the unmodified SDK 4.8.3: one delayed run for each key, which every further trigger
// pushes, also while many come at once and the gateway is killed.
//
//   KILLS=100 node debounce.test.mjs      more kills
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { after, before, describe, test } from "node:test";

import { EventStream } from "../support/js/event_stream.mjs";
import { keys, sleep, startGateway, until } from "../support/js/gateway.mjs";
import { publicToken } from "../support/js/tokens.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

const kills = Number(process.env.KILLS ?? 6);
const sdk = createRequire(new URL("../conformance/sdk-v4/x.js", import.meta.url))("@trigger.dev/sdk");
const asSdk = (call, to = gateway) => sdk.auth.withAuth({ baseURL: to.url, accessToken: keys.dev, secretKey: keys.dev }, call);

let gateway, worker;
before(async () => {
  gateway = await startGateway();
  worker = await Worker.register(gateway, { tasks: ["hello", "parent", "child"] });
});
after(() => gateway.stop());

const key = () => `key-${randomUUID()}`;
const retrieve = async (id, from = gateway) => (await from.get(`/api/v3/runs/${id}`)).json;
const delayed = async (id, from) => Date.parse((await retrieve(id, from)).delayedUntil);
const send = (debounce, { payload = 1, to = gateway, task = "hello", headers, ...options } = {}) =>
  to.post(`/api/v1/tasks/${task}/trigger`, { payload, options: { debounce, ...options } }, { headers });
async function push(debounce, more) {
  const reply = await send(debounce, more);
  assert.equal(reply.status, 200, reply.text);
  return reply.json;
}

describe("a key", () => {
  test("leads to one run while that is delayed, and each trigger delays it further", async () => {
    const debounce = { key: key(), delay: "1m" };
    const first = await push(debounce), at = await delayed(first.id);
    assert.equal(first.isCached, false);
    assert.ok(Math.abs(at - Date.now() - 60_000) < 5_000);
    await sleep(20);
    assert.deepEqual(await push(debounce), { id: first.id, isCached: true });
    const run = await retrieve(first.id);
    assert.deepEqual([run.status, Date.parse(run.delayedUntil) > at], ["DELAYED", true]);
    assert.notEqual((await push(debounce, { task: "child" })).id, first.id, "another task");
    assert.notEqual((await push({ ...debounce, key: key() })).id, first.id, "another key");
    await gateway.post(`/api/v2/runs/${first.id}/cancel`, {});
    assert.notEqual((await push(debounce)).id, first.id, "the run is canceled");
  });

  test("is free when its run is queued", async () => {
    const debounce = { key: key(), delay: "1s" }, { id } = await push(debounce, { task: "child" });
    await until(async () => (await retrieve(id)).status !== "DELAYED", { what: "its time" });
    assert.notEqual((await push(debounce, { task: "child" })).id, id);
  });

  test("in trailing mode the run gets the newest payload and options", async () => {
    const leading = { key: key(), delay: "1m" }, trailing = { ...leading, key: key(), mode: "trailing" };
    for (const [debounce, payload, tags] of [[leading, 1, ["a"]], [trailing, 3, ["c", "d"]]]) {
      const { id } = await push(debounce, { payload: 1, tags: ["a"], metadata: { n: 1 } });
      await push(debounce, { payload: 2, tags: ["b"] });
      await push(debounce, { payload: 3, tags: ["c", "d"] });
      const run = await retrieve(id);
      assert.deepEqual([run.payload, run.tags, run.metadata], [payload, tags, { n: 1 }]);
      const listed = async (tag) => (await gateway.get(`/api/v1/runs?filter[tag]=${tag}`)).json.data.some((one) => one.id === id);
      assert.deepEqual(await Promise.all(["a", "b", "d"].map(listed)), debounce === leading ? [true, false, false] : [false, false, true]);
    }
  });

  test("goes to a new run when the older one would exceed its maxDelay", async () => {
    const debounce = { key: key(), delay: "2s", maxDelay: "3s" }, first = await push(debounce, { task: "child" });
    await sleep(1300);
    const second = await push(debounce, { task: "child" });
    assert.notEqual(second.id, first.id);
    assert.equal((await push(debounce, { task: "child" })).id, second.id);
    await until(async () => (await retrieve(first.id)).status !== "DELAYED", { what: "the time of the first" });
    assert.equal((await retrieve(second.id)).status, "DELAYED");
  });

  test("of a rescheduled run still leads to it", async () => {
    const debounce = { key: key(), delay: "1m" }, { id } = await push(debounce);
    assert.equal((await gateway.post(`/api/v1/runs/${id}/reschedule`, { delay: "90d" })).status, 200);
    const at = await delayed(id);
    assert.equal((await push(debounce)).id, id);
    assert.equal(await delayed(id), at, "a push never shortens the delay");
  });

  test("is shown to subscribers by its moving delayedUntil", async () => {
    const debounce = { key: key(), delay: "1m" }, { id } = await push(debounce);
    const stream = await EventStream.open(`${gateway.url}/realtime/v1/events?run=${id}`, { headers: { authorization: `Bearer ${keys.dev}` } });
    const seen = new Set();
    for (let i = 0; seen.size < 3; i++) {
      assert.ok(i < 50);
      await sleep(10);
      await push(debounce);
      seen.add((await retrieve(id)).delayedUntil);
    }
    const text = () => JSON.stringify(stream.events);
    await until(() => text().includes([...seen].at(-1)), { what: "the last push" });
    assert.ok([...seen].filter((at) => text().includes(at)).length >= 2);
    stream.controller.abort();
  });
});

test("bad options are refused with what to do", async () => {
  const good = { key: "k", delay: "5s" };
  for (const [debounce, says] of [
    [null, /Expected object/], [{}, /"options.debounce.key"/], [{ ...good, key: "" }, /at least 1 character/], [{ ...good, key: "k".repeat(513) }, /at most 512/],
    [{ key: "k" }, /"options.debounce.delay"/], [{ ...good, delay: "2030-01-01T00:00:00Z" }, /must be a duration, not a date; send text like 30s/],
    [{ ...good, delay: "soon" }, /must be a duration; send text like/], [{ ...good, delay: "500ms" }, /with the units w, d, h, m and s/], [{ ...good, delay: "0s" }, /too short; send 1s or more/],
    [{ ...good, mode: "both" }, /leading or trailing/], [{ ...good, maxDelay: "5s" }, /must be longer than debounce.delay/],
  ]) {
    const reply = await send(debounce);
    assert.equal(reply.status, 400, reply.text);
    assert.match(reply.json.error, says);
    const item = await gateway.post("/api/v2/tasks/batch", { items: [{ task: "hello", payload: 1, options: { debounce } }] });
    assert.equal(item.status, 400, item.text);
    assert.match(item.json.error, says);
  }
  const reply = await send({ ...good, key: key(), delay: "1h", more: 1 });
  assert.equal(reply.headers["x-ignored-members"], "options.debounce.more");
});

describe("a push", () => {
  test("that is repeated gets the first answer and changes nothing", async () => {
    const debounce = { key: key(), delay: "1m", mode: "trailing" }, { id } = await push(debounce);
    const headers = { "x-trigger-request-idempotency-key": randomUUID() };
    await sleep(10);
    await push(debounce, { headers, payload: 2 });
    const at = await delayed(id);
    await push(debounce, { payload: 3 });
    const last = await delayed(id);
    assert.deepEqual(await Promise.all([1, 2, 3].map(async () => (await push(debounce, { headers, payload: 2 })).id)), [id, id, id]);
    assert.ok(last >= at);
    assert.deepEqual([await delayed(id), (await retrieve(id)).payload], [last, 3]);
    await gateway.post(`/api/v2/runs/${id}/cancel`, {});
    assert.equal((await push(debounce, { headers })).id, id, "although the key is free");
  });

  test("comes after an idempotency key, and takes one for its run", async () => {
    const debounce = { key: key(), delay: "1m" }, idempotencyKey = key(), { id } = await push(debounce);
    await push(debounce, { idempotencyKey });
    const at = await delayed(id);
    assert.deepEqual(await push({ ...debounce, delay: "1h" }, { idempotencyKey }), { id, isCached: true });
    assert.equal(await delayed(id), at);
    await gateway.post(`/api/v2/runs/${id}/cancel`, {});
    assert.equal((await push(debounce, { idempotencyKey })).id, id);
  });

  test("by a public token gets no rights to its run, also in a batch and when it is repeated", async () => {
    const debounce = { key: key(), delay: "1m" }, { id } = await push(debounce), headers = { "x-trigger-request-idempotency-key": randomUUID() };
    const jwt = await publicToken(gateway, { scopes: ["trigger:tasks:hello", "batchTrigger:tasks:hello"] });
    const refuses = async (token) => assert.equal((await gateway.get(`/api/v3/runs/${id}`, { key: token })).status, 403);
    for (const repeats of [false, true]) {
      const reply = await gateway.post("/api/v1/tasks/hello/trigger", { payload: 1, options: { debounce } }, { key: jwt, headers });
      assert.deepEqual([reply.status, reply.json], [200, { id, isCached: true }], reply.text);
      await refuses(reply.headers["x-trigger-jwt"]);
      if (!repeats) continue;
      const batch = await gateway.post("/api/v2/tasks/batch", { items: [{ task: "hello", payload: 1, options: { debounce } }] }, { key: jwt });
      assert.deepEqual((await gateway.get(`/api/v2/batches/${batch.json.id}`)).json.runs, [id]);
      await refuses(batch.headers["x-trigger-jwt"]);
    }
    const expired = await publicToken(gateway, { scopes: ["trigger:tasks:hello"], exp: Math.floor(Date.now() / 1000) - 1 }), other = await publicToken(gateway, { scopes: ["trigger:tasks:child"] }), at = await delayed(id);
    for (const [token, status] of [[expired, 401], [other, 403]])
      assert.equal((await gateway.post("/api/v1/tasks/hello/trigger", { payload: 1, options: { debounce } }, { key: token })).status, status);
    assert.equal(await delayed(id), at);
  });

  test("of a parent that waits resumes it when that run has ended", async () => {
    const attempt = await takeRun("parent");
    const debounce = { key: key(), delay: "2s" }, { id } = await push(debounce, { task: "child" });
    const pushed = await push(debounce, { task: "child", parentRunId: attempt.id, resumeParentOnCompletion: true });
    assert.equal(pushed.id, id);
    assert.equal((await worker.show(attempt.id)).b, "WAITING");
    await gateway.post(`/api/v2/runs/${id}/cancel`, {});
    await until(async () => (await worker.show(attempt.id)).b === "EXECUTING", { what: "the parent" });
    await worker.cancel(attempt.id);
  });
});

/** Triggers a run of the task and starts it; cancels runs that earlier tests left. */
async function takeRun(task) {
  const id = await worker.trigger(task);
  for (;;) {
    const attempt = await worker.dequeue();
    if (!attempt) { await sleep(20); continue; }
    if (attempt.id === id) return attempt.start();
    await worker.cancel(attempt.id);
  }
}

describe("batches", () => {
  const ids = async (batch) => (await gateway.get(`/api/v2/batches/${batch}`)).json.runs;
  test("push item after item, with the runs that they make", async () => {
    const old = key(), made = key(), { id } = await push({ key: old, delay: "1m" });
    const item = (name, payload) => ({ task: "hello", payload, options: { debounce: { key: name, delay: "1m", mode: "trailing" } } });
    const items = [item(old, "a"), item(made, "b"), item(old, "c"), item(made, "d"), { task: "hello", payload: "e", options: { delay: "1h" } }];
    const { json } = await gateway.post("/api/v2/tasks/batch", { items });
    const runs = await ids(json.id);
    assert.deepEqual([runs[0], runs[2], runs[3] === runs[1], new Set(runs).size], [id, id, true, 3]);
    assert.deepEqual(await Promise.all([runs[0], runs[1], runs[4]].map(async (run) => (await retrieve(run)).payload)), ["c", "d", "e"]);
    const reply = await gateway.post("/api/v1/tasks/batch", { items: [item(old, "x")] });
    assert.deepEqual(reply.json.runs.map((run) => [run.id, run.isCached]), [[id, true]]);
  });

  test("are repeated without effect", async () => {
    const name = key(), headers = { "x-trigger-request-idempotency-key": randomUUID() }, { id } = await push({ key: name, delay: "1m" });
    const items = [{ task: "hello", payload: 2, options: { debounce: { key: name, delay: "1m", mode: "trailing" } } }];
    const first = await gateway.post("/api/v2/tasks/batch", { items }, { headers });
    await push({ key: name, delay: "1m", mode: "trailing" }, { payload: 3 });
    const again = await gateway.post("/api/v2/tasks/batch", { items }, { headers });
    assert.deepEqual(again.json, first.json);
    assert.equal((await retrieve(id)).payload, 3);
  });

  test("of the same keys at once end, and share the runs", async () => {
    const names = Array.from({ length: 5 }, key);
    const all = await Promise.all(Array.from({ length: 20 }, (_, i) => gateway.post("/api/v2/tasks/batch", {
      items: names.map((_name, k) => ({ task: "hello", payload: i, options: { debounce: { key: names[(i + k) % names.length], delay: "1m", mode: "trailing" } } })),
    })));
    const runs = new Set();
    for (const { status, json, text } of all) {
      assert.equal(status, 202, text);
      for (const id of await ids(json.id)) runs.add(id);
    }
    assert.equal(runs.size, names.length);
  });
});

describe("the SDK 4.8.3", () => {
  test("debounces trigger, batchTrigger and the two-phase batch", async () => {
    const debounce = { key: key(), delay: "1m", mode: "trailing", maxDelay: "1h" };
    const first = await asSdk(() => sdk.tasks.trigger("hello", { n: 1 }, { debounce }));
    const again = await asSdk(() => sdk.tasks.trigger("hello", { n: 2 }, { debounce }));
    assert.equal(again.id, first.id);
    const batch = await asSdk(() => sdk.tasks.batchTrigger("hello", [{ payload: { n: 3 }, options: { debounce } }, { payload: { n: 4 }, options: { debounce } }]));
    assert.deepEqual((await asSdk(() => sdk.batch.retrieve(batch.batchId))).runs, [first.id, first.id]);
    const run = await asSdk(() => sdk.runs.retrieve(first.id));
    assert.deepEqual([run.status, run.payload], ["DELAYED", { n: 4 }]);
  });

  test("shows the refusal of a bad delay", async () => {
    const bad = asSdk(() => sdk.tasks.trigger("hello", {}, { debounce: { key: "k", delay: "2030-01-01" } }));
    await assert.rejects(bad, /must be a duration, not a date/);
  });
});

test("1,000 triggers at once lead to one run", async () => {
  const debounce = { key: key(), delay: "1m", mode: "trailing" };
  const all = await Promise.all(Array.from({ length: 1000 }, (_, payload) => push(debounce, { payload })));
  assert.equal(new Set(all.map(({ id }) => id)).size, 1);
  assert.equal(all.filter(({ isCached }) => !isCached).length, 1);
});

test(`${kills} kills under concurrent triggers: no key ever has two delayed runs`, { timeout: 60_000 + kills * 10_000 }, async (t) => {
  const own = await startGateway({ t }), names = Array.from({ length: 3 }, key), answered = new Map();
  const tag = key(), lost = ["ECONNREFUSED", "ECONNRESET", "EPIPE"];
  /** Triggers until the gateway is gone; every fourth request is sent twice, and every eighth cancels its run. */
  async function load(seed, state) {
    for (let i = seed; !state.over; i++) {
      const name = names[i % names.length], headers = { "x-trigger-request-idempotency-key": randomUUID() };
      try {
        const options = { to: own, headers, payload: name, tags: [tag] }, debounce = { key: name, delay: "1h", mode: "trailing" };
        const reply = await send(debounce, options);
        if (reply.status !== 200) { assert.equal(reply.status, 503, reply.text); return; }
        answered.set(headers["x-trigger-request-idempotency-key"], [reply.json.id, debounce, options]);
        if (i % 4 === 0) assert.equal((await push(debounce, options)).id, reply.json.id, "a repetition");
        if (i % 8 === 0) await own.post(`/api/v2/runs/${reply.json.id}/cancel`, {});
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
    await sleep(20 * (round % 5));
    await own.kill();
    state.over = true;
    await writing;
    await own.restart();
    const counts = new Map(), known = new Set();
    for (let page = `/api/v1/runs?filter[tag]=${tag}&page[size]=100`; page;) {
      const { json } = await own.get(page);
      for (const { id, status } of json.data) {
        known.add(id);
        if (status !== "DELAYED") continue;
        const { payload } = await retrieve(id, own);
        counts.set(payload, (counts.get(payload) ?? 0) + 1);
      }
      page = json.pagination.next && `/api/v1/runs?filter[tag]=${tag}&page[size]=100&page[after]=${json.pagination.next}`;
    }
    for (const [name, count] of counts) assert.equal(count, 1, `${name} has ${count} delayed runs`);
    for (const [id] of answered.values()) assert.ok(known.has(id), `${id} was acknowledged`);
    for (const [id, debounce, options] of [...answered.values()].slice(-20))
      assert.equal((await push(debounce, options)).id, id, "a repetition after the restart");
  }
  t.diagnostic(`${answered.size} answered triggers`);
  assert.ok(answered.size >= 30 * kills);
  await own.stop();
});
