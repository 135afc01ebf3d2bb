// Calls that reach a standby gateway: they wait, unread, until it leads, and are answered then.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import { storedRuns } from "../support/js/acknowledged.mjs";
import { keys, sleep, until } from "../support/js/gateway.mjs";
import { HttpClient, RawConnection } from "../support/js/http.mjs";
import { standsBy, startTwoGateways } from "../support/js/two_gateways.mjs";

const key = keys.prod;
const AT = "/api/v1/tasks/early/trigger";
const HELD_MS = 7900; // a standby holds a call for 8 s, by a clock that it reads once a turn
const CONNECT_MS = 200; // HAProxy tries for 250 ms to connect to a standby

/** Adds to a response whether a standby refused it, how long it took, and whether a standby or HAProxy refused it
 * earlier than allowed. */
async function judged(call) {
  const began = performance.now(), reply = await call(), ms = performance.now() - began;
  const refused = reply.status === 503 && /standby/.test(reply.text);
  return { ...reply, refused, ms, atOnce: reply.status === 503 && ms < (refused ? HELD_MS : CONNECT_MS) };
}

/** Repeats a call that a standby has held for as long as it may, until it is answered. */
async function untilAnswered(call) {
  for (;;) {
    const reply = await judged(call);
    assert.ok(!reply.atOnce, `refused at once: ${reply.text}`);
    if (!reply.refused) return reply;
  }
}

const head = (length) => `POST ${AT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\nexpect: 100-continue\r\n\r\n`;

/** A call whose body is sent when `late` has resolved. */
async function callWithLateBody(port, body, late) {
  const connection = await RawConnection.open(port), status = /HTTP\/1\.1 (?!100)(\d+)/;
  await connection.send(head(body.length));
  await late;
  await connection.send(body);
  const text = await connection.read((received) => status.test(received), { what: "a response", timeoutMs: 60_000 });
  connection.destroy();
  return { status: Number(status.exec(text)[1]), text };
}

test("calls to a standby gateway are answered when it leads", { timeout: 180_000 }, async (t) => {
  const { leader, other } = await startTwoGateways(t);
  const { json: { id } } = await leader.post(AT, { payload: 1 }, { key });
  let end;
  const ended = new Promise((resolve) => { end = resolve; });
  const calls = [
    () => other.post(AT, { payload: 2 }, { key }), () => other.post(AT, { payload: "x".repeat(300_000) }, { key }),
    () => other.get(`/api/v3/runs/${id}`, { key }), () => other.get("/realtime/v1/runs?tags=early&offset=-1", { key }),
    () => callWithLateBody(other.port, JSON.stringify({ payload: "late" }), ended),
  ].map(untilAnswered);
  const stranger = untilAnswered(() => other.post(AT, { payload: 3 }, { key: "tr_prod_nobody_has_this_key" }));
  await leader.kill();
  end();
  for (const { status, text } of await Promise.all(calls)) assert.equal(status, 200, text);
  assert.equal((await stranger).status, 401);
  assert.equal((await other.get("/api/v1/runs?filter[taskIdentifier]=early", { key })).json.data.length, 4);
  await other.stop();
});

test("a standby gateway answers 503 as JSON after some seconds, and forgets a client that leaves", { timeout: 240_000 }, async (t) => {
  const { leader, other } = await startTwoGateways(t);
  const gone = await RawConnection.open(other.port);
  await gone.send(`GET /api/v1/runs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\n\r\n`);
  gone.socket.destroy();
  const { status, headers, json, atOnce } = await judged(() => other.post(AT, { payload: 1 }, { key }));
  assert.equal(status, 503);
  assert.equal(headers["retry-after"], "1");
  assert.match(json.error, /standby/);
  assert.ok(!atOnce, "it was held before");
  assert.equal((await other.get("/healthz")).status, 200);
  await leader.stop();
});

test("a standby gateway that is stopped refuses the calls that it holds", { timeout: 180_000 }, async (t) => {
  const { leader, other } = await startTwoGateways(t);
  const open = () => other.metric('runcast_connections{kind="http"}'), before = await open();
  const held = await RawConnection.open(other.port);
  await held.send(`GET /api/v1/runs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\n\r\n`);
  await until(async () => await open() > before, { what: "the call's connection" });
  await other.stop();
  assert.match(await held.readToEnd(), /^HTTP\/1\.1 503 [^]*\r\nretry-after: 1\r\n[^]*\{"error":"/);
  await leader.stop();
});

/** Sends 300 calls of one address, of which a standby holds 250, and one more. Begins again if it has held some of them for
 *  as long as it may before the last one came. */
async function fillPlaces(other, clients) {
  for (;;) {
    const answers = [];
    const calls = Array.from({ length: 300 }, (_, i) => judged(() => clients[i % clients.length].request("GET", "/api/v1/runs")).then((reply) => answers.push(reply)));
    await until(() => answers.length >= 50, { what: "those above the limit are refused" });
    const last = await judged(() => other.get("/api/v1/runs", { key }));
    if (!last.refused || last.atOnce && answers.every(({ atOnce }) => atOnce)) return { answers, calls, last };
    await Promise.all(calls);
  }
}

test("one client's calls cannot take all the places of a standby gateway", { timeout: 240_000 }, async (t) => {
  const { leader, other } = await startTwoGateways(t);
  const clients = Array.from({ length: 5 }, () => new HttpClient(other.url, key));
  t.after(() => clients.forEach((client) => client.close()));
  const { answers, calls, last } = await fillPlaces(other, clients);
  assert.ok(last.atOnce, "so is one more");
  assert.equal(answers.length, 50, "the others wait");
  leader.child.kill("SIGTERM");
  await Promise.all(calls);
  assert.equal(answers.filter(({ atOnce }) => atOnce).length, 50, "no other one is refused at once");
  for (const { status, refused, text } of answers) assert.ok(status === 200 || refused, `${status} ${text}`);
  await leader.ended();
  await other.stop();
});

test("through HAProxy a poll that a standby held ends when that gateway, which leads by then, is stopped", { timeout: 180_000 }, async (t) => {
  const { leader, other, url } = await startTwoGateways(t);
  const client = new HttpClient(url, key);
  t.after(() => client.close());
  // Longer than the test waits for HAProxy, which without a check ends a poll after `timeout server`.
  const more = { timeoutMs: 170_000, headers: { "x-trigger-electric-version": "1.0.0-beta.1" } };
  const { status, headers, text } = await client.request("GET", "/realtime/v1/runs?tags=early&offset=-1", more);
  assert.equal(status, 200, text);
  const at = `/realtime/v1/runs?tags=early&offset=${headers["electric-offset"]}&handle=${headers["electric-handle"]}&live=true`;
  await leader.kill();
  let stopped = false, isOpen = true;
  const repeats = (async () => {
    for (; isOpen; await sleep(50)) {
      await client.request("GET", at, more).catch(() => {});
      isOpen &&= !stopped;
    }
  })();
  t.after(() => { isOpen = false; });
  await until(async () => await other.isReady() && await other.metric("runcast_polls") >= 1, { what: "it leads, and holds the poll" });
  stopped = other.child.kill("SIGSTOP");
  t.after(() => other.child.kill("SIGCONT"));
  await until(() => !isOpen, { what: "HAProxy ends the poll" });
  await repeats;
  other.child.kill("SIGCONT");
  await other.stop();
});

/** Clients that begin a connection for each call, since HAProxy closes one that was used before instead of answering. They
 *  repeat a call under its key until it is acknowledged, and note every response. */
class RawClients {
  calls = []; // { sent: its place in the order of all calls, status: 0 for none, … }
  sent = 0;
  acknowledged = new Map(); // name -> id of the run
  stopped = false; // the call in flight is still repeated, unless the test has failed
  gaveUp = false;

  constructor(url, count) {
    this.http = new HttpClient(url, key);
    this.work = Promise.all(Array.from({ length: count }, (_, client) => this.#write(client)));
    this.work.catch(() => {}); // stop() reports it
  }

  async #write(client) {
    for (let n = 0; !this.stopped; n++) {
      const name = `raw-${client}-${n}`, headers = { connection: "close", "x-trigger-request-idempotency-key": randomUUID() };
      let reply;
      do {
        await sleep(20); // the pace of a client
        reply = await this.#send({ body: { payload: { name } }, headers });
      } while (reply.status !== 200 && !this.gaveUp);
      if (reply.status === 200) this.acknowledged.set(name, reply.json.id);
    }
  }

  async #send(more) {
    const sent = this.sent++;
    const reply = await judged(() => this.http.request("POST", AT, more).catch((error) => ({ status: 0, text: error.message })));
    this.calls.push({ sent, ...reply });
    return reply;
  }

  /** Resolves when a call that is sent after this one has been acknowledged. */
  async untilServed() {
    const from = this.sent;
    await until(() => this.calls.some(({ sent, status }) => sent >= from && status === 200), { what: "a call is acknowledged" });
  }

  /** Returns the calls that were sent after `from` and refused. */
  refusedSince(from) { return this.calls.filter(({ sent, status }) => sent >= from && status !== 200); }

  giveUp() { this.stopped = this.gaveUp = true; }

  async stop() {
    this.stopped = true;
    await this.work;
    this.http.close();
  }
}

const ends = {
  "has got SIGTERM": (gateway) => gateway.child.kill("SIGTERM"),
  "was killed": (gateway) => gateway.kill(),
};
for (const [what, end] of Object.entries(ends))
  test(`through HAProxy a client that does not retry sees JSON with retry-after, and only until HAProxy notices that the leader ${what}`, { timeout: 240_000 }, async (t) => {
    const world = await startTwoGateways(t), { leader, other, postgres } = world;
    const clients = new RawClients(world.url, 6);
    t.after(() => clients.giveUp());
    await clients.untilServed();
    await end(leader);
    await until(async () => !Object.values(await world.servers()).flat().includes(leader.name), { what: "HAProxy sends the leader no more calls" });
    const noticed = clients.sent;
    await until(() => clients.sent > noticed, { what: "a call that comes later" });
    await until(async () => (await world.servers()).gateways.includes(other.name), { what: "the other one leads" });
    await clients.untilServed();

    for (const { status, headers, json, text } of clients.refusedSince(0)) {
      if (!status) continue; // HAProxy may close a connection instead of answering what was in flight
      assert.ok([502, 503].includes(status), `${status} ${text}`);
      assert.match(headers["retry-after"], /^\d+$/);
      assert.equal(typeof json?.error, "string", text);
    }
    // A standby may refuse a later one after it has held it, and HAProxy after it could not connect for as long as it tries.
    for (const { atOnce, status, text, ms } of clients.refusedSince(noticed)) assert.ok(status === 503 && !atOnce, `${status} ${text} after ${ms} ms`);
    await leader.ended();
    await clients.stop();
    const stored = storedRuns(postgres, "raw-");
    for (const [name, id] of clients.acknowledged) assert.equal(stored.get(name), id, `${name} is stored once, as it was acknowledged`);
    assert.equal(stored.size, clients.acknowledged.size, "nothing else is stored");
    await other.stop();
  });
