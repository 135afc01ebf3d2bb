// A world for tests of the client for pages (src/web/client), in Node and in a browser: a gateway that is killed and
// restarted, network paths that break and stall, and runs that change all the time. At the end each mirror must equal
// what REST returns.
//
//   const world = new ClientWorld(gateway, random);
//   world.add({ name, path, subscribe(key, filter), close(key), online(), read() → { key: content of the mirror },
//               hide(hidden) });          // hide is for pages
//   await world.disturb(300); await world.settle();
import assert from "node:assert/strict";
import net from "node:net";
import { isDeepStrictEqual } from "node:util";

import { Generator } from "./generator.mjs";
import { sleep, until } from "./gateway.mjs";
import { matches } from "./runs.mjs";

/** A network path to the gateway. cut() breaks its connections, stall() keeps them open and passes nothing on. */
export class Path {
  #open = new Map(); // socket -> the other end
  #stalled = false;

  static async start(t, port) {
    const path = new Path();
    const server = net.createServer((from) => {
      const to = net.connect(port, "127.0.0.1");
      path.#join(from, to);
      path.#join(to, from);
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    path.url = `http://127.0.0.1:${server.address().port}`;
    t.after(() => {
      server.close();
      path.cut();
    });
    return path;
  }

  #join(from, to) {
    this.#open.set(from, to);
    if (this.#stalled) from.pause();
    from.on("data", (bytes) => {
      if (to.write(bytes)) return;
      from.pause();
      to.once("drain", () => this.#stalled || from.resume());
    });
    from.on("end", () => to.end()).on("error", () => {}).on("close", () => {
      this.#open.delete(from);
      to.destroy();
    });
  }

  cut() { for (const socket of this.#open.keys()) socket.resetAndDestroy(); }

  stall(stalled = true) {
    this.#stalled = stalled;
    for (const socket of this.#open.keys()) socket[stalled ? "pause" : "resume"]();
  }
}

const filters = [{ all: true }, { tags: ["t0"] }, { tags: ["t1", "t2"] }, { all: true, task: ["worked", "waiting"] }, { tags: ["t3"], since: "1h" }, { all: true, limit: 7 }];

/** Live lists: { watch, limit }, which a client opens with watch(). */
const watches = [{ watch: {} }, { watch: { status: ["QUEUED", "DELAYED"] }, limit: 20 }, { watch: { tag: ["t1", "t2"], status: "CANCELED" }, limit: 5 }, { watch: { taskIdentifier: "waiting" }, limit: 3 }];
const among = (value, wanted) => wanted === undefined || [wanted].flat().includes(value);
const isListed = (run, { status, tag, taskIdentifier }) =>
  among(run.status, status) && among(run.taskIdentifier, taskIdentifier) && (!tag || run.tags.some((one) => tag.includes(one)));

/** The fields that are compared: a run has them in a mirror and in REST. */
const sharedFields = ["id", "status", "taskIdentifier", "createdAt", "updatedAt", "payload", "output", "metadata", "startedAt", "delayedUntil", "ttl",
  "isTest", "durationMs", "idempotencyKey", "batchId", "version", "error"];
const compared = (one) => Object.fromEntries([...sharedFields.map((name) => [name, one[name] ?? null]), ["tags", [...one.tags].sort()]]);

export class ClientWorld {
  clients = [];

  constructor(gateway, random) {
    Object.assign(this, { gateway, random, generator: new Generator(gateway, random) });
    this.kills = 0;
  }

  add(client) {
    this.clients.push(Object.assign(client, { filters: new Map(), count: 0 }));
  }

  async open(client, filter) {
    const key = `${client.name} ${++client.count}`;
    client.filters.set(key, filter);
    await client.subscribe(key, filter);
  }

  /** Changes runs; meanwhile paths break and stall, filters come and go, and the gateway is killed. */
  async disturb(count, { kills = 1 } = {}) {
    const { random, generator, gateway } = this, stalls = [];
    generator.startWorker();
    const writing = generator.work(count, { parallel: 3 });
    let isDone = false, killsLeft = kills;
    writing.finally(() => { isDone = true; }).catch(() => {});
    while (!isDone || killsLeft > 0) {
      await sleep(random.below(15)); // any moment
      const client = random.pick(this.clients);
      switch (random.weighted({ cut: 8, stall: 4, open: 4, leave: 4, hide: client.hide ? 2 : 0, end: killsLeft > 0 ? 1 : 0 })) {
        case "cut": client.path.cut(); break;
        case "stall":
          client.path.stall(); // for a time of its own
          stalls.push(sleep(random.chance(0.1) ? 1500 : random.below(150)).then(() => {
            if (random.chance(0.3)) client.path.cut();
            client.path.stall(false);
          }));
          break;
        case "hide":
          client.hidden = !client.hidden;
          await client.hide(client.hidden);
          break;
        case "open":
          if (client.filters.size < 6) await this.open(client, this.#filter());
          break;
        case "leave":
          if (client.filters.size > 1) {
            const key = random.pick([...client.filters.keys()]);
            client.filters.delete(key);
            await client.close(key);
          }
          break;
        default:
          killsLeft--;
          this.kills++;
          await (random.chance(0.7) ? gateway.kill() : gateway.stop());
          await gateway.restart();
      }
    }
    await writing;
    await Promise.all(stalls);
    await generator.stopWorker();
  }

  #filter() {
    const { random, generator } = this;
    if (generator.ids.length && random.chance(0.2)) return { run: random.pick(generator.ids) };
    if (generator.batches.length && random.chance(0.2)) return { batch: random.pick(generator.batches) };
    if (random.chance(0.4)) return random.pick(watches);
    return random.pick(filters);
  }

  /** All runs from REST, also those whose trigger got no response. */
  async #allRuns() {
    const runs = [];
    for (let after = ""; after !== undefined;) {
      const { json } = await this.gateway.get(`/api/v1/runs?page[size]=100${after}`);
      for (const { id } of json.data) runs.push((await this.gateway.get(`/api/v3/runs/${id}`)).json);
      after = json.pagination.next && `&page[after]=${json.pagination.next}`;
    }
    return runs;
  }

  /** Waits until every mirror equals what REST returns; otherwise reports the differences. */
  async settle() {
    let wrong;
    for (const client of this.clients) if (client.hidden) await client.hide(client.hidden = false);
    await until(async () => {
      const all = await this.#allRuns();
      wrong = undefined;
      for (const client of this.clients) {
        const shown = await client.read();
        if (Object.values(shown).some(({ state }) => state !== "live")) await client.online(); // makes it retry now
        for (const [key, filter] of client.filters) wrong ??= differs(shown[key], filter, all) && `${key} ${JSON.stringify(filter)}: ${differs(shown[key], filter, all)}`;
      }
      return !wrong;
    }, { everyMs: 100 }).catch((error) => { throw new Error(wrong ?? error.message); });
  }
}

/** Describes how a mirror differs from REST; undefined if it does not. */
function differs(shown, filter, all) {
  if (shown?.state !== "live") return `the mirror is ${JSON.stringify(shown)}`;
  if (filter.watch) return differsFromList(shown, filter, all);
  const own = all.filter((one) => matches({ ...filter, since: undefined }, one.id, one));
  const expected = new Map(own.map((one) => [one.id, compared(one)]));
  for (const one of shown.runs) {
    const wanted = expected.get(one.id);
    if (!isDeepStrictEqual(compared(one), wanted)) return `${JSON.stringify(compared(one))} instead of ${JSON.stringify(wanted)}`;
  }
  const newest = [...expected.keys()].sort().reverse().slice(0, filter.limit), has = new Set(shown.runs.map(({ id }) => id));
  const missing = newest.find((id) => !has.has(id));
  return missing && `${missing} is missing`;
}

/** The same for a live list: it has the newest runs of the REST list, and counts all runs that match. */
function differsFromList(shown, { watch, limit = 100 }, all) {
  const listed = all.filter((run) => isListed(run, watch)), counted = {};
  for (const { status } of listed) counted[status] = (counted[status] ?? 0) + 1;
  const expected = listed.map(compared).sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, limit);
  const wrong = expected.find((run, i) => !shown.runs[i] || !isDeepStrictEqual(compared(shown.runs[i]), run));
  if (wrong) return `${JSON.stringify(wrong)} is missing, or is not in its place`;
  if (shown.runs.length !== expected.length) return `${shown.runs.length} runs instead of ${expected.length}`;
  if (!isDeepStrictEqual(shown.counts?.byStatus, counted)) return `counts ${JSON.stringify(shown.counts)} instead of ${JSON.stringify(counted)}`;
}

/** Adds to `wrong` each state that is older than an earlier one of the same run. */
export function watchOrder(mirror, wrong) {
  const newest = new Map();
  mirror.on("change", ({ runs }) => {
    for (const { id, metadata } of runs) {
      const n = metadata?.n ?? 0;
      if (n < newest.get(id)) wrong.push(`${id} went back from ${newest.get(id)} to ${n}`);
      newest.set(id, n);
    }
  });
}
