// Many clients of all kinds and generated writes, while sockets are slow or cut and the gateway is killed: a recorded
// history judges every guarantee of runs.v1 (runcast/protocol.h). Clients are WebSockets, event streams, and the long
// polls of the SDKs.
//
//   SEED=1 OPS=20000 node model.test.mjs      repeats the same writes, or makes more of them
import assert from "node:assert/strict";
import fs from "node:fs";
import { test } from "node:test";

import { keys, sleep, startGateway, until } from "../support/js/gateway.mjs";
import { Generator } from "../support/js/generator.mjs";
import { Recorder, Subscriber } from "../support/js/history.mjs";
import { EventSubscriber, PollSubscriber } from "../support/js/http_subscribers.mjs";
import { chooseSeed, Random } from "../support/js/random.mjs";
import { matches, RunsSocket } from "../support/js/runs.mjs";
import { publicToken } from "../support/js/tokens.mjs";

const operations = Number(process.env.OPS ?? (process.env.TESTS_IN_FULL ? 2400 : 1200));
const words = "2025-07-16"; // API version whose statuses SDKs 4.x know
const lives = 3; // of the gateway, which is killed between them
const filters = [{ all: true }, { tags: ["t0"] }, { tags: ["t1", "t2"] }, { tags: ["t3"], task: ["worked", "waiting"] }, { tags: ["t4"] }, { tags: ["t5"] }];

class World {
  constructor(gateway, random) {
    Object.assign(this, { gateway, random });
    this.generator = new Generator(gateway, random);
    this.recorder = new Recorder({ port: gateway.port, token: keys.dev });
    this.subscribers = [];
  }

  add(name, filtersOf, { protocol = "runs.v1.json", token = keys.dev, hello = {}, ...traits } = {}) {
    const subscriber = Object.assign(new Subscriber(name, { port: this.gateway.port, token, protocol, hello }), traits);
    for (const filter of filtersOf) subscriber.subscribe(filter);
    this.subscribers.push(subscriber);
  }

  /** Event streams and long polls of one filter, without changing subscriptions. */
  addEvents(name, filter, { hello, ...traits } = {}) {
    this.#addFixed(new EventSubscriber(name, { port: this.gateway.port, token: keys.dev, hello }), filter, traits);
  }
  addPolls(name, filter, { api, lossRate, gzip, ...traits } = {}) {
    this.#addFixed(new PollSubscriber(name, { port: this.gateway.port, token: keys.dev, random: this.random, api, lossRate, gzip }), filter, traits);
  }
  #addFixed(subscriber, filter, traits) {
    subscriber.subscribe(filter);
    this.subscribers.push(Object.assign(subscriber, traits, { fixed: true }));
  }

  get everybody() { return [this.recorder, ...this.subscribers]; }
  get present() { return this.subscribers.filter((one) => !one.absent); }
  get restless() { return this.subscribers.filter((one) => one.restless); }

  async connectAll() {
    for (const one of [this.recorder, ...this.present]) if (!one.socket) await one.connect();
  }

  /** Waits until nothing more happens, and every client has the last state. */
  async rest() {
    for (const one of this.subscribers) one.resume();
    await this.connectAll();
    let seq;
    await until(async () => {
      const before = seq;
      seq = await this.#position();
      return seq === before;
    }, { everyMs: 400, what: "an end of all timers" });
    const { history } = this.recorder;
    await until(() => history.changes.at(-1).rev >= this.generator.lastSeq && this.recorder.position.base >= history.changes.at(-1).rev, { what: "the recorder" });
    for (const one of this.present) {
      const filtersOf = [...one.subscriptions.values()].filter((sub) => !sub.ending).map(({ filter }) => filter);
      await one.synced(this.#newestOf(filtersOf), 30_000).catch((error) => { throw new Error(`${one.name}: ${error.message}`); });
    }
  }

  async #position() {
    const socket = await RunsSocket.open({ port: this.gateway.port, token: keys.dev, hello: {} });
    const { seq } = await socket.next("welcome");
    await socket.cut();
    return seq;
  }

  /** A client learns at once of what concerns it, and of the rest with a ping some time later. The recorder may see a
   *  change late, so a poll may be held to its end before it is in sync. */
  #newestOf(filtersOf) {
    let newest = 0;
    for (const [id, entries] of this.recorder.history.runs) {
      const { rev, fields } = entries.at(-1);
      if (rev > newest && filtersOf.some((filter) => matches(filter, id, fields))) newest = rev;
    }
    return newest;
  }

  judge() {
    const { history } = this.recorder;
    for (const one of this.present) {
      one.judge(history);
      one.judgeTable(history);
    }
    for (const { id, seq, what, holds } of this.generator.promises.splice(0)) {
      const last = history.runs.get(id)?.at(-1);
      assert.ok(last && holds(last.fields), `${id} ${what}, as was answered at ${seq}`);
      if (history.isKnownAt(seq)) assert.ok(holds(history.at(id, seq)?.fields ?? {}), `${id} ${what}, at ${seq} already`);
    }
  }

  /** Asserts that the rows are what GET /api/v3/runs returns. */
  async compareWithRest() {
    const same = ["id", "status", "taskIdentifier", "createdAt", "updatedAt", "payload", "output", "metadata", "startedAt",
      "delayedUntil", "ttl", "isTest", "durationMs", "idempotencyKey", "batchId", "version", "error"];
    for (const [id, { fields }] of this.recorder.runs) {
      const { status, json } = await this.gateway.get(`/api/v3/runs/${id}`);
      assert.equal(status, 200, id);
      for (const name of same) assert.deepEqual(fields[name] ?? undefined, json[name] ?? undefined, `${name} of ${id}`);
      assert.deepEqual([...fields.tags].sort(), [...json.tags].sort());
      assert.equal(fields.attemptCount ?? 0, json.attemptCount);
      assert.equal(json.finishedAt, fields.finishedAt ?? (json.isCompleted ? fields.updatedAt : undefined)); // canceled, not confirmed by its worker
    }
    for (const id of this.generator.ids) assert.ok(this.recorder.runs.has(id), id);
  }

  /** Versions between those that polls received: skipped while they were away, or because they were late. */
  jumped() { return this.subscribers.reduce((sum, one) => sum + (one.jumped ?? 0), 0); }
  skipped() { return this.everybody.reduce((sum, one) => sum + one.skipped, 0); }
}

/** Slow readers and large rows, until readers fall behind: they get the newest state, and how many they missed. */
async function fallBehind(world, count) {
  const { random, generator } = world;
  const slow = world.subscribers.filter((one) => one.slow);
  generator.padding = 60_000;
  for (const one of slow) one.pause();
  const writing = generator.work(count);
  let over = false;
  writing.finally(() => { over = true; }).catch(() => {});
  while (!over) {
    await sleep(150); // a reader is slow for that long
    const one = random.pick(slow);
    if (random.chance(0.3)) one.resume();
    else one.pause();
  }
  await writing;
  generator.padding = 0;
}

/** Cut connections, new and ended subscriptions, long absences. */
async function disturb(world, count) {
  const { random, generator, restless } = world;
  const writing = generator.work(count, { parallel: 3 });
  let over = false;
  writing.finally(() => { over = true; }).catch(() => {});
  while (!over) {
    await sleep(2); // a disturbance for each few writes
    const one = random.pick(restless);
    const more = one.fixed ? {} : { subscribe: 2, unsubscribe: 2, follow: 2 };
    switch (random.weighted({ cut: 4, connect: 6, ...more })) {
      case "cut": await one.cut(); break;
      case "connect": if (!one.socket) await one.connect().catch(() => {}); break;
      case "subscribe": if (one.subscriptions.size < 6) one.subscribe(random.pick(filters)); break;
      case "unsubscribe": {
        const ids = [...one.subscriptions].filter(([, sub]) => !sub.ending).map(([id]) => id);
        if (ids.length > 1) one.unsubscribe(random.pick(ids));
        break;
      }
      default: if (one.subscriptions.size < 6) one.subscribe(generator.batches.length && random.chance(0.3) ? { batch: random.pick(generator.batches) } : { run: random.pick(generator.ids) });
    }
  }
  await writing;
}

/** kill -9 in the middle of writes, and a restart on the same data. */
async function killAmidWrites(world, count) {
  const { gateway, random, generator } = world;
  const writing = generator.work(count);
  await sleep(50 + random.below(300)); // any moment
  await gateway.kill();
  await gateway.restart();
  await writing;
}

/** Adds subscribers of things that have names only once they exist: runs and a batch, by event stream and by poll. */
function followNames(world) {
  const { generator } = world;
  world.addEvents("events of a run", { run: generator.ids[0] });
  world.addPolls("polls of a run", { run: generator.ids[0] });
  world.addPolls("polls of another run, restless", { run: generator.ids[1] }, { restless: true, api: words });
  if (!generator.batches.length) return;
  world.addEvents("events of a batch, restless", { batch: generator.batches[0] }, { restless: true });
  world.addPolls("polls of a batch", { batch: generator.batches[0] }, { lossRate: 0.3 });
}

test("every guarantee of runs.v1 holds for every kind of subscriber", { timeout: 120_000 + operations * 20 }, async (t) => {
  const random = new Random(chooseSeed(t));
  const gateway = await startGateway({ t });
  const world = new World(gateway, random), { generator } = world;
  t.after(() => {
    generator.working = false;
    for (const one of world.everybody) one.cut();
  });
  const msgpack = { protocol: "runs.v1.msgpack" };
  const token = await publicToken(gateway, { scopes: ["read:tags:t5"], expiresInS: 3600 });
  world.add("all", [{ all: true }], msgpack);
  world.add("all, some fields", [{ all: true }], { hello: { fields: ["-payload", "-metadata"] } });
  world.add("all, every 100 ms", [{ all: true }], { ...msgpack, hello: { every: 100 }, conflates: true });
  world.add("a tag, every 30 ms", [{ tags: ["t0"] }], { hello: { every: 30 }, conflates: true });
  world.add("a tag, slow", [{ tags: ["t1"] }], { ...msgpack, slow: true });
  world.add("all, slow", [{ all: true }], { slow: true });
  world.add("three tags, slow", [{ tags: ["t2"] }, { tags: ["t3"] }, { tags: ["t2", "t4"] }], { slow: true });
  world.add("tags", [{ tags: ["t0", "t1"] }, { tags: ["t1", "t2"], task: ["worked"] }], msgpack);
  world.add("new words", [{ all: true }], { hello: { api: "2025-07-16" } });
  world.add("the newest ten", [{ tags: ["t4"], limit: 10 }]);
  world.add("a public token", [{ tags: ["t5"] }], { token });
  for (let i = 0; i < 5; i++) world.add(`restless ${i}`, [filters[i + 1]], { restless: true, ...(i % 2 && msgpack) });
  world.addEvents("events", { all: true }, { hello: { fields: ["-payload"] } });
  world.addEvents("events of a tag, slow", { tags: ["t1"] }, { slow: true });
  world.addPolls("polls", {}, { gzip: true });
  world.addPolls("polls of a tag, new words", { tags: ["t0"] }, { api: words });
  world.addPolls("polls of tags, slow", { tags: ["t1", "t2"] }, { slow: true, api: words });
  world.addPolls("polls of all, slow, losing answers", {}, { slow: true, lossRate: 0.2 });
  world.addEvents("restless events", { tags: ["t2"] }, { restless: true });
  world.addPolls("restless polls", { tags: ["t3"] }, { restless: true, lossRate: 0.1 });
  world.addPolls("restless polls of all", {}, { restless: true, gzip: true, api: words });
  world.add("asleep", [{ all: true }]);
  world.addEvents("events asleep", { tags: ["t0"] });
  world.addPolls("polls asleep", { tags: ["t4"] });

  await world.connectAll();
  const sleepers = world.subscribers.slice(-3);
  const share = Math.ceil(operations / lives / 3);
  let conflated = 0;
  for (let life = 0; life < lives; life++) {
    const skippedBefore = world.skipped();
    generator.startWorker();
    if (life === 0) {
      await generator.work(60);
      followNames(world);
      await world.connectAll();
    }
    await fallBehind(world, share >> 1);
    await generator.stopWorker();
    await world.rest();
    if (life === 0) { // until the end, over all restarts
      for (const one of sleepers) {
        await one.cut();
        one.absent = true;
      }
    }
    const metric = await gateway.metric("runcast_conflated_versions_total");
    const jumpedBefore = world.jumped();
    world.judge();
    // Polls receive no versions: of the skipped ones only those count for which the poll was late.
    const seen = world.skipped() - skippedBefore, unseen = world.jumped() - jumpedBefore;
    assert.ok(seen <= metric && metric <= seen + unseen, `clients saw ${seen} versions missing, polls missed ${unseen}, and ${metric} were counted`);
    conflated += metric;

    for (const one of world.subscribers) if (one.conflates || one.slow) await one.cut();
    generator.startWorker();
    await disturb(world, share * 2);
    if (life + 1 < lives) await killAmidWrites(world, share >> 1);
    await generator.stopWorker();
    await world.rest();
    world.judge();
  }
  for (const one of sleepers) one.absent = false;
  await world.rest();
  world.judge();
  await world.compareWithRest();
  const syncs = world.subscribers.reduce((sum, one) => sum + one.syncs, 0), states = world.subscribers.reduce((sum, one) => sum + one.states, 0);
  t.diagnostic(`${generator.ids.length} runs, ${world.recorder.history.changes.length} changes, ${states} states and ${syncs} syncs judged, ${conflated} versions conflated, ${generator.lost} writes without an answer`);
  assert.ok(conflated > 0 && syncs > 1000 && states > 1000, "the test has seen what it is about");
  assert.equal(sleepers[0].runs.size, world.recorder.runs.size);
  assert.ok(world.subscribers.some((one) => one.lost > 0) && world.jumped() > 0, "polls have lost answers, and missed states");
  for (const one of world.everybody) await one.cut();
  const left = async () => {
    const metrics = await gateway.metrics();
    return ['runcast_connections{kind="ws"}', "runcast_subscriptions", "runcast_connections_behind", "runcast_polls"].map((name) => metrics.get(name));
  };
  await until(async () => (await left()).join() === "0,0,0,0").catch(async () => assert.deepEqual(await left(), [0, 0, 0, 0]));
  await gateway.stop();
});

test("a subscriber that does not read costs the gateway next to nothing", { timeout: 240_000 }, async (t) => {
  const gateway = await startGateway({ t, release: true });
  const rss = () => Number(fs.readFileSync(`/proc/${gateway.pid}/status`, "latin1").match(/VmRSS:\s+(\d+)/)[1]) / 1024;
  const ids = [];
  for (let i = 0; i < 3; i++) ids.push((await gateway.post("/api/v1/tasks/big/trigger", { options: { delay: "1h" } })).json.id);
  const stalled = [];
  for (let i = 0; i < 40; i++) {
    const subscriber = new Subscriber(`stalled ${i}`, { port: gateway.port, token: keys.dev });
    subscriber.subscribe({ all: true });
    await subscriber.connect();
    await subscriber.synced(3);
    subscriber.pause();
    stalled.push(subscriber);
  }
  const write = (i) => gateway.put(`/api/v1/runs/${ids[i % 3]}/metadata`, { metadata: { i, pad: `${i}`.padEnd(100_000, "x") } });
  for (let i = 0; i < 60; i++) await write(i); // kernel buffers fill, and the ring is full
  const before = rss();
  let last;
  for (let i = 60; i < 360; i++) last = await write(i);
  const grown = rss() - before;
  assert.ok(grown < 48, `${grown} MiB more for 40 readers that missed 30 MB each`);
  for (const subscriber of stalled) subscriber.resume();
  for (const subscriber of stalled) {
    await subscriber.synced(Number(last.headers["x-runs-seq"].split(".")[1]), 60_000);
    assert.equal(subscriber.runs.get(ids[2]).fields.metadata.i, 359);
  }
  const missed = stalled.reduce((sum, one) => sum + one.skipped, 0);
  assert.equal(missed, await gateway.metric("runcast_conflated_versions_total"));
  assert.ok(missed > 1000, `${missed}`);
  t.diagnostic(`${grown.toFixed(1)} MiB, ${missed} versions conflated`);
  for (const subscriber of stalled) await subscriber.cut();
  await gateway.stop();
});
