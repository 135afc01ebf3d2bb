// Generated writes, and clients of all kinds that go from one gateway to the next: a recorded history judges every guarantee
// of runs.v1 (runcast/protocol.h), while followers are late, are cut off from the leader, and have little memory, and while
// leaders are killed. Each connection, each poll and each write is at a gateway that is drawn.
//
//   SEED=1 OPS=5000 node followed_model.test.mjs      repeats the same writes, or makes more of them
import assert from "node:assert/strict";
import { test } from "node:test";

import { follows, startFollowers } from "../support/js/followers.mjs";
import { keys, sleep, until } from "../support/js/gateway.mjs";
import { Generator } from "../support/js/generator.mjs";
import { Recorder, Subscriber } from "../support/js/history.mjs";
import { EventSubscriber, PollSubscriber } from "../support/js/http_subscribers.mjs";
import { chooseSeed, Random } from "../support/js/random.mjs";
import { RunsSocket } from "../support/js/runs.mjs";
import { WatchMirror } from "../support/js/watch_mirror.mjs";

const operations = Number(process.env.OPS ?? (process.env.TESTS_IN_FULL ? 3000 : 1200)), rounds = 3;
const filters = [{ all: true }, { tags: ["t0"] }, { tags: ["t1", "t2"] }, { tags: ["t3"], task: ["worked", "waiting"] }, { tags: ["t4"] }];

/** A live list with counts. Each connection begins with the whole list. A gateway that was in doubt for 5 s refuses the list; then
 *  this client reconnects. */
class Lister {
  constructor(name, options, request, wants) { Object.assign(this, { name, options, request, wants, notes: [], seqs: {}, last: {}, syncs: 0, errors: [] }); }

  async connect() {
    const { port, token } = this.options, mirror = new WatchMirror(this.request.limit);
    const socket = await RunsSocket.open({ port, token, hello: {}, onMessage: (message) => { if (this.socket === socket || !this.socket) this.#take(message, mirror); } });
    this.socket = socket;
    socket.closed.then(() => { if (this.socket === socket) this.socket = null; });
    socket.send({ op: "watch", id: 1, counts: true, ...this.request });
  }

  async cut() {
    const { socket } = this;
    this.socket = null;
    await socket?.cut();
  }

  #take(message, mirror) {
    if (message.op === "error" && message.code === "limit") return void this.cut();
    if (message.op === "error") this.errors.push(message);
    if (message.op !== "list" && message.op !== "counts") return;
    if (message.op === "list" && !mirror.take(message)) return;
    const shown = message.op === "counts" ? message.byStatus : [...mirror.runs].map(([id, { version }]) => `${id} ${version}`).sort();
    this.notes.push({ op: message.op, seq: message.seq, shown });
  }

  /** The content of a message of this kind at a position. */
  #at(history, op, seq) {
    const then = [...history.runs.keys()].map((id) => [id, history.at(id, seq)]).filter(([, entry]) => entry && this.wants(entry.fields));
    if (op === "list") return then.map(([id, { version }]) => `${id} ${version}`).sort().slice(-this.request.limit);
    const counts = {};
    for (const [, { fields: { status } }] of then) counts[status] = (counts[status] ?? 0) + 1;
    return counts;
  }

  judge(history) {
    for (const { op, seq, shown } of this.notes.splice(0)) {
      assert.ok(seq >= (this.seqs[op] ?? 0), `${this.name}: ${op} at ${seq} after ${this.seqs[op]}`);
      this.seqs[op] = seq;
      this.last[op] = shown;
      if (!history.isKnownAt(seq)) continue;
      assert.deepEqual(shown, this.#at(history, op, seq), `${this.name}: ${op} at ${seq}`);
      this.syncs++;
    }
  }

  judgeTable(history) {
    for (const op of ["list", "counts"]) assert.deepEqual(this.last[op], this.#at(history, op, history.seq), this.name);
  }
}

/** A gateway that was in doubt for 5 s refuses a subscription; then this client reconnects. */
function reconnecting(mirror) {
  const { receive } = mirror;
  mirror.receive = (message) => (message.op === "error" && message.code === "limit" ? void mirror.cut() : receive.call(mirror, message));
  return mirror;
}

/** The gateways as one that a generator writes to. */
class Anywhere {
  constructor(gateways, random) { Object.assign(this, { gateways, random }); }
  get one() { return this.random.pick(this.gateways.filter(({ end }) => !end)) ?? this.gateways[0]; }
  get port() { return this.one.port; }
  get http() { return this.one.http; }
  get(target, more) { return this.http.request("GET", target, more); }
  post(target, body, more) { return this.http.request("POST", target, { body, ...more }); }
}

class World {
  static async open(t) {
    const random = new Random(chooseSeed(t)), { gateways, postgres } = await startFollowers(t, { options: ["--memory", "1m"] });
    const world = new World(gateways, random, postgres);
    for (const [at, filter] of filters.entries()) {
      world.#add(reconnecting(new Subscriber(`socket ${at}`, world.#options({ protocol: at % 2 ? "runs.v1.msgpack" : "runs.v1.json", hello: {} }))), filter);
      world.#add(new EventSubscriber(`events ${at}`, world.#options()), filter);
      if (!filter.task) world.#add(world.#anywhere(new PollSubscriber(`polls ${at}`, { token: keys.dev, random })), filter.all ? {} : filter);
    }
    const lists = [[{ filter: {}, limit: 20 }, () => true], [{ filter: { tag: "t0" }, limit: 200 }, ({ tags }) => tags.includes("t0")],
      [{ filter: { status: "DELAYED" }, limit: 200 }, ({ status }) => status === "DELAYED"]];
    for (const [at, [request, wants]] of lists.entries()) world.clients.push(new Lister(`list ${at}`, world.#options(), request, wants));
    t.after(() => { world.generator.working = false; for (const one of world.everybody) one.cut(); });
    for (const one of world.everybody) await one.connect();
    return world;
  }

  constructor(gateways, random, postgres) {
    Object.assign(this, { gateways, random, postgres, somewhere: new Anywhere(gateways, random), leader: gateways[0], clients: [], kills: 0, reloads: 0 });
    this.generator = Object.assign(new Generator(this.somewhere, random), { padding: 8000 });
    this.recorder = reconnecting(new Recorder(this.#options({ hello: {} })));
  }

  get everybody() { return [this.recorder, ...this.clients]; }
  #anywhere(object) { return Object.defineProperty(object, "port", { get: () => this.somewhere.port, enumerable: true }); }
  #options(more) { return this.#anywhere({ token: keys.dev, ...more }); }
  #add(client, filter) {
    client.subscribe(filter);
    this.clients.push(client);
    let last = 0;
    const { onSync } = client;
    if (onSync) client.onSync = (seq) => { assert.ok(seq >= last, `in sync with ${seq} after ${last}`); last = seq; onSync.call(client, seq); };
  }

  /** Waits until the client is connected: a follower in doubt accepts none. */
  #connect(client) {
    return until(async () => client.socket ?? await client.connect().then(() => true, () => false), { what: `${client.name ?? "the recorder"} connects`, timeoutMs: 60_000 });
  }

  async #cutOff() {
    const { leader } = this;
    leader.peers.cut();
    await sleep(this.random.below(1000)); // followers are in doubt that long, at least
    leader.peers.accept();
  }

  /** Followers find that retention was at work while they were cut off, so they load their memory again. */
  async #reload() {
    const { leader, postgres } = this;
    leader.peers.cut();
    postgres.query("UPDATE runcast.environment SET purged = seq WHERE seq > 0");
    this.reloads++;
    leader.peers.accept();
  }

  async #kill() {
    const { leader, gateways } = this;
    await leader.kill();
    this.kills++;
    this.leader = await until(async () => {
      for (const one of gateways) if (one !== leader && await one.leads()) return one;
    }, { what: "another one leads", timeoutMs: 60_000 });
    await leader.restart({ ready: false });
  }

  /** Lets the clients go to other gateways, and disturbs replication, until the writes have ended. */
  async disturb(writing, { kills }) {
    const { random, clients, recorder } = this, killAt = kills ? 10 + random.below(40) : -1;
    let over = false;
    writing.finally(() => { over = true; }).catch(() => {});
    for (let at = 0; !over; at++) {
      await sleep(5); // a disturbance for each few writes
      if (at === killAt) await this.#kill();
      const client = random.pick(clients);
      if (!recorder.socket) await recorder.connect().catch(() => {});
      switch (random.weighted({ move: 40, cut: 15, connect: 45, late: 3, apart: 1, reload: 2 })) {
        case "move": await client.cut(); await client.connect().catch(() => {}); break;
        case "cut": await client.cut(); break;
        case "connect": if (!client.socket) await client.connect().catch(() => {}); break;
        case "late": this.leader.peers.delay(random.below(200), 1 + random.below(2)); break;
        case "reload": await this.#reload(); break;
        default: await this.#cutOff();
      }
    }
    await writing;
  }

  /** Waits until every client has the last states, and judges all that they have seen. */
  async judge() {
    const { recorder, generator, clients, gateways } = this;
    this.leader.peers.delay(0);
    for (const one of gateways) if (one !== this.leader) await follows(one);
    for (const one of this.everybody) await this.#connect(one);
    await until(() => recorder.position.base >= generator.lastSeq, { what: "the recorder" });
    const isDone = (client) => {
      assert.deepEqual(client.errors ?? [], [], client.name);
      client.judge(recorder.history);
      try { client.judgeTable(recorder.history); } catch { return false; }
      return true;
    };
    for (const client of clients) await until(async () => (await this.#connect(client), isDone(client)), { what: `${client.name} has the last states`, timeoutMs: 60_000 });
    for (const { id, seq, what, holds } of generator.promises.splice(0)) {
      const last = recorder.history.runs.get(id)?.at(-1);
      assert.ok(last && holds(last.fields), `${id} ${what}, as was answered at ${seq}`);
    }
  }

  async end(t) {
    const { clients, recorder } = this, sum = (name) => clients.reduce((total, one) => total + (one[name] ?? 0), 0);
    t.diagnostic(`${recorder.runs.size} runs, ${recorder.history.changes.length} changes, ${sum("states")} states and ${sum("syncs")} syncs judged, ${this.kills} kills, ${this.reloads} reloads, ${sum("begunAgain")} snapshots on the same connection, ${sum("refetches")} polls that start over`);
    assert.ok(sum("syncs") > 300 && sum("states") > 1000, "the test has seen what it is about");
    for (const one of this.everybody) await one.cut();
    for (const gateway of [...this.gateways.filter((one) => one !== this.leader), this.leader]) await gateway.stop();
  }
}

for (const [what, traits] of [["", {}], [", while leaders are killed", { kills: true }]]) {
  test(`clients that go from gateway to gateway miss nothing, and see no older state${what}`, { timeout: 240_000 + operations * 100 }, async (t) => {
    const world = await World.open(t), { generator } = world;
    for (let round = 0; round < rounds; round++) {
      generator.startWorker();
      await world.disturb(generator.work(Math.ceil(operations / rounds), { parallel: 3 }), traits);
      await generator.stopWorker();
      await world.judge();
    }
    await world.end(t);
  });
}
