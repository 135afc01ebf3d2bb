// Live lists against a model. A client that receives every change knows which runs existed at each position. At each sync a
// watch must equal the list at that position, and its counts those of the list. Readers stall, both encodings are used,
// and the gateway is killed and evicts ended runs from memory.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";

import { Generator } from "../support/js/generator.mjs";
import { keys, sleep, startGateway, until } from "../support/js/gateway.mjs";
import { chooseSeed, Random } from "../support/js/random.mjs";
import { RunsSocket } from "../support/js/runs.mjs";
import { WatchMirror } from "../support/js/watch_mirror.mjs";

const lives = 4, operations = 300;

const filters = [
  {}, { status: ["QUEUED", "DELAYED"] }, { tag: ["t1", "t2"] }, { status: "CANCELED", tag: "t3" },
  { taskIdentifier: "worked", status: ["EXECUTING", "COMPLETED", "REATTEMPTING", "FROZEN"] }, { taskIdentifier: ["waiting", "worked-too"] },
  { queue: { type: "task", name: "worked" }, status: ["COMPLETED", "FAILED"] }, { isTest: false, period: "1h" }, { tag: "unknown" },
];

const among = (value, wanted) => wanted === undefined || [wanted].flat().includes(value);
const isWanted = (run, { status, tag, taskIdentifier, queue }) =>
  among(run.status, status) && among(run.taskIdentifier, taskIdentifier) && (!queue || run.taskIdentifier === queue.name) &&
  (tag === undefined || [tag].flat().some((one) => run.tags.includes(one)));

/** Every change between two restarts of the gateway, up to the first one that was skipped. */
class Chronicle {
  static async begin(gateway) {
    const chronicle = Object.assign(new Chronicle(), { first: new Map(), changes: [], until: Infinity });
    const socket = await RunsSocket.open({ port: gateway.port, token: keys.dev, hello: { fields: ["-payload", "-output", "-metadata", "-error"] },
      onMessage: (message) => chronicle.note(message) });
    socket.send({ op: "sub", id: 1, all: true });
    await until(() => chronicle.since !== undefined);
    return Object.assign(chronicle, { socket });
  }

  note({ op, seq, more, rows }) {
    if (op === "rows") {
      for (const [id, , fields] of rows) this.first.set(id, fields);
      if (!more) this.since = seq;
    } else if (op === "patch") {
      if (more || rows.length !== 1) this.until = Math.min(this.until, this.changes.at(-1)?.seq ?? this.since);
      for (const [id, , fields] of rows) this.changes.push({ seq, id, fields });
    }
  }

  /** Calls check(runs) for each of the moments, which are ordered by position, whose position it knows; returns how many. */
  replay(moments) {
    const runs = new Map(this.first);
    let at = 0, checked = 0;
    for (const { seq, check } of moments) {
      if (seq < this.since || seq > this.until) continue;
      for (; at < this.changes.length && this.changes[at].seq <= seq; at++) {
        const { id, fields } = this.changes[at];
        runs.set(id, { ...runs.get(id), ...fields });
      }
      check(runs);
      checked++;
    }
    return checked;
  }
}

/** A client with watches, which remembers their content at each sync. */
class Watcher {
  static async open(gateway, random, protocol, hello) {
    const watcher = Object.assign(new Watcher(), { watches: [], moments: [], random });
    watcher.socket = await RunsSocket.open({ port: gateway.port, token: keys.dev, protocol, hello, onMessage: (message) => watcher.take(message) });
    for (const [id, filter] of filters.entries()) {
      const limit = random.pick([3, 20, 100]), counts = random.chance(0.5);
      watcher.watches.push({ filter, limit, counts, mirror: new WatchMirror(limit) });
      watcher.socket.send({ op: "watch", id, filter, limit, counts });
    }
    return watcher;
  }

  take(message) {
    if (message.op === "error") throw new Error(JSON.stringify(message));
    if (message.op !== "list" && message.op !== "counts") return;
    const { filter, limit, mirror } = this.watches[message.id];
    const isSync = mirror.take(message), where = `watch of ${JSON.stringify(filter)}, limit ${limit}, at ${message.seq}`;
    const wanted = (runs) => [...runs].filter(([, run]) => isWanted(run, filter));
    if (message.op === "counts") {
      const { byStatus, total } = message;
      this.moments.push({ seq: message.seq, check: (runs) => {
        const expected = {};
        for (const [, { status }] of wanted(runs)) expected[status] = (expected[status] ?? 0) + 1;
        assert.deepEqual([byStatus, total], [expected, wanted(runs).length], `counts of the ${where}`);
      } });
    }
    if (!isSync) return;
    const shown = mirror.ids.map((id) => [id, mirror.statusOf(id)]);
    this.moments.push({ seq: message.seq, check: (runs) => {
      const expected = wanted(runs).map(([id, { status }]) => [id, status]).sort(([a], [b]) => (a < b ? 1 : -1)).slice(0, limit);
      assert.deepEqual(shown, expected, where);
    } });
  }
}

/** Asserts, once no run changes, that each watch equals the response of REST. */
async function assertRest(gateway, watcher) {
  for (const { filter, limit, counts, mirror } of watcher.watches) {
    const query = [`page[size]=${limit}`];
    for (const [name, value] of Object.entries(filter))
      query.push(name === "period" ? `filter[createdAt][period]=${value}` : name === "queue" ? `filter[queue]=task/${value.name}` : `filter[${name}]=${[value].flat()}`);
    const path = (what) => encodeURI(`/api/v1/runs${what}?${query.slice(what ? 1 : 0).join("&")}`);
    const agree = async (what, shown) => {
      let response;
      await until(async () => isDeepStrictEqual(response = (await gateway.get(path(what))).json, shown()) || isDeepStrictEqual(response.data?.map(({ id }) => id), shown()))
        .catch(() => assert.deepEqual(shown(), response, `${JSON.stringify(filter)} ${what}`));
    };
    await agree("", () => mirror.ids);
    if (counts) await agree("/counts", () => mirror.counts && { byStatus: mirror.counts.byStatus, total: mirror.counts.total });
  }
}

test("at each sync a watch equals the list, and at rest what REST returns", { timeout: 180_000 }, async (t) => {
  const random = new Random(chooseSeed(t));
  const gateway = await startGateway({ t, options: ["--memory", "1m"] });
  const generator = new Generator(gateway, random);
  let total = 0, evicted = 0;
  for (let life = 0; life < lives; life++) {
    const chronicle = await Chronicle.begin(gateway), watchers = [];
    for (const [protocol, hello] of [["runs.v1.json", {}], ["runs.v1.msgpack", {}], ["runs.v1.json", { every: 40, fields: ["-payload"] }]])
      watchers.push(await Watcher.open(gateway, random, protocol, hello));
    generator.padding = life % 2 ? 0 : 20_000;
    generator.startWorker();
    let working = true;
    const stalls = watchers.map(async ({ socket }, i) => {
      while (working && i) {
        await sleep(random.below(60)); // reads for that long
        socket.pause();
        await sleep(random.below(i * 120)); // does not read for that long
        socket.resume();
      }
    });
    await generator.work(operations, { parallel: 4 });
    working = false;
    await Promise.all(stalls);
    await generator.stopWorker();
    if (random.chance(0.5)) await generator.work(20);
    for (const watcher of watchers) await assertRest(gateway, watcher);
    const moments = watchers.flatMap(({ moments: all }) => all).sort((a, b) => a.seq - b.seq);
    const checked = chronicle.replay(moments);
    assert.ok(checked > 30, `${checked} of ${moments.length} syncs were judged`);
    total += checked;
    await Promise.all([chronicle, ...watchers].map(({ socket }) => socket.cut()));
    evicted += await gateway.metric("runcast_evicted_runs_total");
    await gateway.kill();
    await gateway.restart();
  }
  assert.ok(evicted > 0, "runs left memory");
  t.diagnostic(`${total} syncs and counts judged, ${generator.ids.length} runs, ${evicted} were evicted`);
  await gateway.stop();
});
