// Generated writes, and clients of all kinds that go from one gateway to the next: a recorded history judges every guarantee
// of runs.v1 (runcast/protocol.h), while followers are late, are cut off from the leader, and have little memory. Each
// connection and each poll is at a gateway that is drawn, and so is each write.
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

const operations = Number(process.env.OPS ?? (process.env.TESTS_IN_FULL ? 3000 : 1200));
const filters = [{ all: true }, { tags: ["t0"] }, { tags: ["t1", "t2"] }, { tags: ["t3"], task: ["worked", "waiting"] }, { tags: ["t4"] }];

/** Lets the clients go to other gateways, and disturbs the replication, until the writes have ended. */
async function disturb({ random, clients, leader, writing }) {
  let over = false;
  writing.finally(() => { over = true; }).catch(() => {});
  while (!over) {
    await sleep(5); // a disturbance for each few writes
    const client = random.pick(clients);
    switch (random.weighted({ cut: 30, connect: 60, late: 3, apart: 1 })) {
      case "cut": await client.cut(); break;
      case "connect": if (!client.socket) await client.connect().catch(() => {}); break;
      case "late": leader.peers.delay(random.below(200), 1 + random.below(2)); break;
      default:
        leader.peers.cut();
        await sleep(random.below(1000)); // followers are in doubt that long, at least
        leader.peers.accept();
    }
  }
  await writing;
}

test("clients that go from gateway to gateway miss nothing, and see no older state", { timeout: 240_000 + operations * 50 }, async (t) => {
  const random = new Random(chooseSeed(t));
  const { leader, others, gateways } = await startFollowers(t, { options: ["--memory", "1m"] });
  const somewhere = { get port() { return random.pick(gateways).port; } };
  const options = (more) => Object.defineProperty({ token: keys.dev, ...more }, "port", { get: () => somewhere.port, enumerable: true });
  const generator = Object.assign(new Generator(leader, random), { padding: 8000 }), recorder = new Recorder({ port: leader.port, token: keys.dev }), clients = [];
  const add = (client, filter) => { client.subscribe(filter); clients.push(client); };
  for (const [at, filter] of filters.entries()) {
    add(new Subscriber(`socket ${at}`, options({ protocol: at % 2 ? "runs.v1.msgpack" : "runs.v1.json", hello: {} })), filter);
    add(new EventSubscriber(`events ${at}`, options()), filter);
    if (filter.task) continue;
    const polls = new PollSubscriber(`polls ${at}`, { port: 0, token: keys.dev, random });
    add(Object.defineProperty(polls, "port", { get: () => somewhere.port }), filter.all ? {} : filter);
  }
  t.after(() => { generator.working = false; for (const one of [recorder, ...clients]) one.cut(); });

  await recorder.connect();
  for (const client of clients) await client.connect();
  for (let round = 0; round < 3; round++) {
    generator.startWorker();
    await disturb({ random, clients, leader, writing: generator.work(Math.ceil(operations / 3), { parallel: 3 }) });
    await generator.stopWorker();
    leader.peers.delay(0);
    for (const other of others) await follows(other);
    for (const client of clients) await until(async () => client.socket ?? await client.connect().then(() => true, () => false), { what: `${client.name} connects` });
    await until(() => recorder.position.base >= generator.lastSeq, { what: "the recorder" });
    const { history } = recorder;
    for (const client of clients) {
      await until(() => client.judge(history) ?? (() => { try { client.judgeTable(history); return true; } catch { return false; } })(), { what: `${client.name} has the last states`, timeoutMs: 60_000 });
    }
  }
  const sum = (name) => clients.reduce((total, one) => total + (one[name] ?? 0), 0);
  t.diagnostic(`${recorder.runs.size} runs, ${recorder.history.changes.length} changes, ${sum("states")} states and ${sum("syncs")} syncs judged`);
  assert.ok(sum("syncs") > 300 && sum("states") > 1000, "the test has seen what it is about");
  for (const one of [recorder, ...clients]) await one.cut();
  for (const gateway of gateways.reverse()) await gateway.stop();
});
