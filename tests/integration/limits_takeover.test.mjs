// Concurrency limits, rates and debounce while the lead changes: two gateways on one PostgreSQL, workers that call through
// HAProxy, and limits that are overridden and paused. A run holds its limits from the response of its dequeue until its
// completion is sent, at least; so no run may be dequeued while those that hold a limit fill it. The tokens of a rate do not
// come back within the test, so a takeover that forgets one starts a run too many.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import { follows } from "../support/js/followers.mjs";
import { keys, sleep, until } from "../support/js/gateway.mjs";
import { HttpClient } from "../support/js/http.mjs";
import { standsBy, startTwoGateways } from "../support/js/two_gateways.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

const key = keys.prod, RUNS = 400, WORKERS = 8, KEYS = ["x", "y", "z"];
const tasks = [
  { id: "a", concurrency: { limits: ["shared"] } },
  { id: "b", concurrency: { limits: ["shared", "per-key"], inline: { total: 3 } } },
  { id: "c", queue: { name: "narrow" }, concurrency: { limits: ["per-key"] } },
  { id: "rated", concurrency: { limits: ["rated"] } },
  "pushed",
];
const concurrencyLimits = [{ name: "shared", total: 2 }, { name: "per-key", perKey: 1 }, { name: "rated", total: 50 }];
const queues = [{ name: "narrow", concurrencyLimit: 2 }];

/** The slots that a run of a task holds, as [slots, at most]; with the key where a limit is for each key. */
const needs = (task, concurrencyKey) => ({
  a: [["shared", 2]],
  b: [["shared", 2], [`per-key ${concurrencyKey}`, 1], ["task/b", 3]],
  c: [[`per-key ${concurrencyKey}`, 1], [`narrow ${concurrencyKey}`, 2]],
  rated: [],
})[task];

/** Calls through the proxy; each is repeated under its own key while no gateway serves, as SDKs do, but for longer. */
class Persistent {
  constructor(url, t) {
    this.http = new HttpClient(url, key);
    t.after(() => { this.isOver = true; this.http.close(); });
  }

  async call(method, target, { body, headers, ...more } = {}) {
    const all = { "x-trigger-request-idempotency-key": randomUUID(), ...headers };
    for (;; await sleep(20)) {
      const reply = await this.http.request(method, target, { body, headers: all, timeoutMs: 10_000, ...more }).catch(() => ({ status: 503 }));
      if (reply.status < 500) return reply;
      if (this.isOver) throw new Error("the test has ended");
    }
  }

  get(target, options) { return this.call("GET", target, options); }
  post(target, body, { timeoutMs, ...options } = {}) { return this.call("POST", target, { body, ...options }); }
}

/** How many slots a limit has had: while a change is sent, the larger of both values. */
class Bounds {
  constructor() { this.changes = new Map(); }

  set(name, bound) { this.changes.set(name, [...this.changes.get(name) ?? [], [performance.now(), bound]]); }

  /** The most since a time. */
  most(name, since, declared) {
    const changes = this.changes.get(name) ?? [];
    const before = changes.findLast(([at]) => at <= since)?.[1] ?? declared;
    return Math.max(before, ...changes.filter(([at]) => at > since).map(([, bound]) => bound));
  }
}

/** Runs of a limit that starts seven of them, and three of each key. Two more are triggered before each change of the lead:
 *  one of key x, and one of a new key. */
class Rated {
  constructor(gateway, worker) { Object.assign(this, { gateway, worker, keys: new Map(), started: [], rounds: 0 }); }

  async set(total, perKey) {
    const rate = (starts) => starts && { starts, period: "1d" };
    const reply = await this.gateway.post("/api/v1/concurrency-limits/rated/rate", { total: rate(total), perKey: rate(perKey) });
    assert.equal(reply.status, 200, reply.text);
  }

  /** Triggers further runs, and waits until those have started that the tokens allow. */
  async more() {
    for (const concurrencyKey of ["x", `k${this.rounds++}`]) this.keys.set(await this.worker.trigger("rated", { concurrencyKey }), concurrencyKey);
    const all = Math.min(Math.min(this.rounds, 3) + this.rounds, 7);
    await until(() => this.started.length >= all, { timeoutMs: 60_000, what: `${all} runs start` });
    this.check(all);
  }

  check(all) {
    const ofX = this.started.filter((id) => this.keys.get(id) === "x").length;
    assert.deepEqual([this.started.length, ofX], [all, Math.min(this.rounds, 3)], "each token starts one run");
  }
}

/** Pushes runs of a few keys again and again until told to stop, and cancels some of them, which frees their keys. A
 *  repeated push leads to the same run, whether it is repeated by its request key or by an idempotency key. */
class Pushes {
  constructor(gateway) { Object.assign(this, { gateway, answered: [], stopped: false }); }

  async send({ name, request, idempotencyKey }) {
    const options = { debounce: { key: name, delay: "1h", mode: "trailing" }, tags: ["pushed"], ...idempotencyKey && { idempotencyKey } };
    const reply = await this.gateway.post("/api/v1/tasks/pushed/trigger", { payload: name, options }, { headers: { "x-trigger-request-idempotency-key": request } });
    assert.equal(reply.status, 200, reply.text);
    return reply.json.id;
  }

  async repeat([push, id]) {
    assert.equal(await this.send(push), id, "repeated by its request key");
    if (push.idempotencyKey) assert.equal(await this.send({ ...push, request: randomUUID() }), id, "repeated by its idempotency key");
  }

  async pushOn(name) {
    for (let n = 0; !this.stopped && !this.gateway.isOver; n++) {
      const push = { name, request: randomUUID(), idempotencyKey: n % 2 ? randomUUID() : undefined }, answer = [push, await this.send(push)];
      this.answered.push(answer);
      if (n % 5 === 0) assert.equal((await this.gateway.post(`/api/v2/runs/${answer[1]}/cancel`, {})).status, 200);
      await this.repeat(answer);
      await sleep(10);
    }
  }

  /** Repeats the newest pushes. Each run is one that was answered, and a key has at most one that is delayed. */
  async check() {
    for (const answer of this.answered.slice(-40)) await this.repeat(answer);
    const delayed = (await this.gateway.get("/api/v1/runs?filter[tag]=pushed&filter[status]=DELAYED")).json.data;
    const keyOf = new Map(this.answered.map(([{ name }, id]) => [id, name]));
    assert.deepEqual(delayed.map(({ id }) => keyOf.get(id)).sort(), [...new Set(keyOf.values())].filter((name) => delayed.some(({ id }) => keyOf.get(id) === name)).sort());
  }
}

for (const isFollowed of [false, true]) {
  test(`while the lead changes to a gateway that ${isFollowed ? "follows" : "loads"}, no limit is exceeded, no token is granted twice, and a debounce key has at most one delayed run`, { timeout: 240_000 }, async (t) => {
    const { url, leader, other } = await startTwoGateways(t, { isFollowed, options: ["--dequeue-wait", "0"] });
    const gateway = new Persistent(url, t), worker = await Worker.register(gateway, { key, tasks, concurrencyLimits, queues });
    const held = new Map(), dequeued = new Map(), bounds = new Bounds(), excess = [];
    const triggered = new Map(), rated = new Rated(gateway, worker), pushes = new Pushes(gateway);
    await rated.set(7, 3);
    for (let n = 0; n < RUNS; n++) {
      const task = "abc"[n % 3], concurrencyKey = KEYS[Math.floor(n / 3) % KEYS.length];
      triggered.set(await worker.trigger(task, { concurrencyKey, tags: [concurrencyKey] }), [task, concurrencyKey]);
    }

    const count = (slots, change) => held.set(slots, (held.get(slots) ?? 0) + change);
    let ended = 0, longest = 0, isOver = false, rest = false;
    async function work() {
      while (!gateway.isOver && (ended < RUNS || !isOver)) { // also after a failure
        const began = performance.now(), attempt = !rest && await worker.dequeue();
        if (!attempt) { await sleep(20 + Math.random() * 20); continue; } // most ask in vain, and another may be the next
        const needed = needs(...triggered.get(attempt.id) ?? ["rated"]);
        for (const [slots, declared] of needed) {
          count(slots, 1);
          const most = bounds.most(slots, began, declared);
          if (held.get(slots) > most) excess.push(`${attempt.id} is number ${held.get(slots)} of ${slots}, which allows ${most}`);
        }
        dequeued.set(attempt.id, (dequeued.get(attempt.id) ?? 0) + 1);
        if (!needed.length) rated.started.push(attempt.id);
        await attempt.start();
        await sleep(Math.random() * 30);
        for (const [slots] of needed) count(slots, -1);
        await attempt.succeed(1);
        longest = Math.max(longest, performance.now() - began);
        if (needed.length) ended++;
      }
    }

    async function change(name, from, to, target, body) {
      bounds.set(name, Math.max(from, to));
      const reply = await gateway.post(`/api/v1/concurrency-limits/${encodeURIComponent(name)}/${target}`, body);
      assert.equal(reply.status, 200, reply.text);
      bounds.set(name, to);
    }
    async function changeLimits() {
      while (!gateway.isOver && ended < RUNS) {
        await change("shared", 2, 4, "override", { total: 4 });
        await sleep(50);
        await change("shared", 4, 1, "override", { total: 1 });
        await sleep(50);
        await change("shared", 1, 2, "reset", {});
        await change("task/b", 3, 0, "pause", { action: "pause" });
        await sleep(50);
        await change("task/b", 0, 3, "pause", { action: "resume" });
      }
    }

    /** Ends the lead in every way, and lets the workers execute runs in between. */
    async function changeLead() {
      // If no run were left, this would not show that a gateway leads, and one that restarts at once would lead again.
      const after = (n) => { const at = ended + n; assert.ok(at <= RUNS, "runs are left"); return until(() => ended >= at, { timeoutMs: 60_000, what: `${n} more runs end` }); };
      for (const [from, end, back] of [
        [leader, () => leader.kill(), () => leader.restart({ ready: false })],
        [other, () => other.stop(), () => other.restart({ ready: false })],
        [leader, () => leader.child.kill("SIGSTOP"), () => leader.child.kill("SIGCONT")],
        [other, () => other.kill(), () => other.restart({ ready: false })],
      ]) {
        await rated.more();
        await after(40);
        await end();
        await after(30);
        rest = true; // so that runs are left for the next change
        await back();
        await (isFollowed ? follows : standsBy)(from);
        rest = false;
      }
      await rated.more();
      isOver = pushes.stopped = true;
    }

    await Promise.all([changeLead(), changeLimits(), ...Array.from({ length: WORKERS }, work), ...KEYS.map((name) => pushes.pushOn(name))]);
    assert.deepEqual(excess, []);
    assert.deepEqual([...dequeued.values()].filter((times) => times !== 1), [], "each run is dequeued once");
    rated.check(7);
    assert.equal(dequeued.size, RUNS + 7);
    t.diagnostic(`the longest step of a worker took ${Math.round(longest)} ms`);
    const limits = (await gateway.get("/api/v1/concurrency-limits")).json.data;
    assert.deepEqual(limits.map(({ name, running, queued }) => [name, running, queued]).sort(), [["per-key", 0, 0], ["rated", 0, 3], ["shared", 0, 0], ["task/b", 0, 0]]);
    await rated.set(null, null);
    for (let n = 0; n < 3; n++) await (await worker.take()).succeed(1);

    await pushes.check();
    t.diagnostic(`${pushes.answered.length} pushes`);
    gateway.http.close();
    for (const each of [leader, other]) await each.stop();
  });
}
