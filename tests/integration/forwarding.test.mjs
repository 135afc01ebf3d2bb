// Calls that a gateway that follows forwards to the leader: bodies and responses of each kind, sockets, clients that leave,
// and a leader that is lost.
import assert from "node:assert/strict";
import crypto from "node:crypto";
import { after, before, describe, test } from "node:test";

import { storedRuns, Writers } from "../support/js/acknowledged.mjs";
import { startHaproxy } from "../support/js/cluster.mjs";
import { EventStream } from "../support/js/event_stream.mjs";
import { follows, startFollowers } from "../support/js/followers.mjs";
import { keys, since, sleep, until } from "../support/js/gateway.mjs";
import { HttpClient } from "../support/js/http.mjs";
import { NoticeSocket } from "../support/js/notices.mjs";
import { follow } from "../support/js/two_gateways.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

const MIB = 1 << 20;
const TRIGGER = "/api/v1/tasks/task/trigger";

describe("a follower", { timeout: 300_000 }, () => {
  let leader, follower, gateways;
  const cleanups = [];
  before(async () => {
    const all = await startFollowers({ after: (fn) => cleanups.push(fn) }, { names: ["a", "b"], options: ["--trusted-proxies", "127.0.0.1", "--log-requests", "all"] });
    ({ leader, gateways } = all);
    [follower] = all.others;
  });
  after(async () => {
    for (const gateway of [...gateways].reverse()) await gateway.stop();
    for (const fn of [...cleanups].reverse()) await fn();
  });

  const target = ({ json: { presignedUrl } }) => presignedUrl.slice(new URL(presignedUrl).origin.length);

  test("forwards writes and reads, which have the leader's responses", async () => {
    const { status, json, text, headers } = await follower.post(TRIGGER, { payload: { n: 1 }, options: { tags: ["a"] } });
    assert.equal(status, 200, text);
    assert.match(headers["x-runs-seq"], /\./);
    const [here, there] = await Promise.all([follower, leader].map((one) => one.get(`/api/v3/runs/${json.id}`)));
    assert.equal(here.status, 200);
    assert.equal(here.text, there.text);
    for (const name of Object.keys(there.headers).filter((one) => one !== "date")) assert.equal(here.headers[name], there.headers[name], name);
    const { json: batch } = await follower.post("/api/v1/tasks/batch", { items: [{ task: "task", payload: "1" }, { task: "task", payload: "2" }] });
    assert.equal(batch.runs.length, 2);
    assert.equal((await follower.put(`/api/v1/runs/${json.id}/metadata`, { metadata: { a: 1 } })).status, 200);
    assert.equal((await follower.post(`/api/v2/runs/${json.id}/cancel`, {})).status, 200);
    assert.equal((await leader.get(`/api/v3/runs/${json.id}`)).json.status, "CANCELED");
    assert.ok(await follower.metric("runcast_forwarded_calls_total") >= 5);
    assert.equal(await follower.metric("runcast_forwarded_calls"), 0);
  });

  test("forwards short calls of all kinds on one connection", since("7d6d8e93"), async () => {
    const { json: { id } } = await follower.post(TRIGGER, { payload: 1, options: { delay: "1h" } });
    const connections = leader.peers.pairs.size;
    const kinds = [() => follower.get(`/api/v3/runs/${id}`), () => follower.get("/api/v1/queues"), () => follower.post(`/api/v1/runs/${id}/tags`, { tags: ["short"] }),
      () => follower.post(`/api/v1/runs/${id}/reschedule`, { delay: "2h" }), () => follower.put(`/api/v1/runs/${id}/metadata`, { metadata: { a: 1 } })];
    const answers = await Promise.all(Array.from({ length: 200 }, (_, i) => kinds[i % kinds.length]()));
    for (const { status, text } of answers) assert.equal(status, 200, text);
    assert.ok(leader.peers.pairs.size <= connections, `${leader.peers.pairs.size - connections} more`);
  });

  test("lets the leader refuse: credentials, paths, methods, bodies", async () => {
    const calls = [["GET", "/api/v1/projects", { key: "tr_prod_wrong" }], ["GET", "/api/v1/nothing"], ["PATCH", "/api/v1/queues/a"],
      ["POST", TRIGGER, { body: "{" }], ["GET", "/api/v3/runs/run_missing"], ["POST", "/api/v1/nothing", { body: "x".repeat(1000) }], ["POST", "/api/v1/queues/a/pause", { body: "x".repeat(2 * MIB) }]];
    for (const [method, path, options] of calls) {
      const [here, there] = await Promise.all([follower, leader].map((one) => new HttpClient(one.url, keys.dev).request(method, path, options)));
      assert.deepEqual([path, here.status, here.text], [path, there.status, there.text]);
    }
  });

  test("responds as the leader does to requests that it cannot forward, and to HTTP/1.0", async () => {
    const key = `authorization: Bearer ${keys.dev}\r\n`;
    for (const head of [`GET /nothing HTTP/1.1\r\nhost: x\r\n`, `GET /peer/replication HTTP/1.1\r\nhost: x\r\n`, `TRACE /api/v1/queues HTTP/1.1\r\nhost: x\r\n${key}`,
      `PROPFIND /api/v1/nothing HTTP/1.1\r\nhost: x\r\n`, `GET /api/v1/queues HTTP/1.0\r\n${key}`]) {
      const [here, there] = await Promise.all([follower, leader].map(async (one) => {
        const client = await one.connect();
        client.send(`${head}connection: close\r\n\r\n`);
        return (await client.readToEnd()).replace(/^date: .*\r\n/im, "");
      }));
      assert.deepEqual([head, here], [head, there]);
    }
  });

  test("does not accept the header with which gateways forward", async () => {
    const headers = { "X-Runcast-Forwarded": "203.0.113.9 -- AAAAAAAAAAAAAAAAAAAAAA" };
    for (const gateway of gateways) {
      const { status, text } = await gateway.http.request("GET", "/api/v1/projects", { headers });
      assert.equal(status, 400);
      assert.match(text, /is not for clients/);
    }
  });

  test("names the client to the leader, as trusted proxies do to it", async () => {
    for (const [headers, client] of [[{}, "127.0.0.1"], [{ "x-forwarded-for": "198.51.100.1, 203.0.113.9" }, "203.0.113.9"]]) {
      const before = leader.stderr.length;
      assert.equal((await follower.get("/api/v1/queues/named", { headers })).status, 404);
      await until(() => leader.stderr.slice(before).includes('"event":"request"'), { what: "its line in the log" });
      const line = JSON.parse(leader.stderr.slice(before).split("\n").find((one) => one.includes('"event":"request"')));
      assert.deepEqual([line.route, line.client], ["/api/v1/queues/{queueParam}", client]);
    }
  });

  test("forwards long bodies and responses byte for byte", async () => {
    for (const length of [0, 1, 16 * 1024, 16 * 1024 + 1, MIB, 10 * MIB]) {
      const bytes = crypto.randomBytes(length);
      const upload = target(await follower.put(`/api/v2/packets/a/${length}`));
      assert.equal((await fetch(new URL(upload, follower.url), { method: "PUT", body: bytes })).status, 200);
      const url = new URL(target(await follower.get(`/api/v1/packets/a/${length}`)), follower.url);
      const head = await fetch(url, { method: "HEAD" });
      assert.equal(head.headers.get("content-length"), String(length));
      const answer = await fetch(url);
      assert.equal(answer.headers.get("content-length"), String(length));
      assert.ok(Buffer.from(await answer.arrayBuffer()).equals(bytes), `${length} bytes`);
    }
    const payload = "x".repeat(MIB);
    const { json: { id } } = await follower.post(TRIGGER, { payload });
    for (const { json } of await Promise.all(Array.from({ length: 8 }, () => follower.get(`/api/v3/runs/${id}`)))) assert.equal(json.payload, payload);
  });

  test("answers a client that has closed its sending half", async (t) => {
    const body = JSON.stringify({ payload: 1 }), client = await follower.connect();
    t.after(() => client.destroy());
    client.send(`POST ${TRIGGER} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${keys.prod}\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    client.end();
    assert.match(await client.readToEnd(), /^HTTP\/1\.1 200 [^]*"id":"run_/);
  });

  test("holds back the leader while a client does not read", async (t) => {
    const length = 10 * MIB;
    const upload = target(await leader.put("/api/v2/packets/long"));
    assert.equal((await fetch(new URL(upload, leader.url), { method: "PUT", body: Buffer.alloc(length, "x") })).status, 200);
    const reader = await follower.connect();
    t.after(() => reader.destroy());
    reader.socket.once("data", () => reader.pause());
    const before = await follower.metric("process_resident_memory_bytes");
    reader.send(`GET ${target(await follower.get("/api/v1/packets/long"))} HTTP/1.1\r\nhost: x\r\n\r\n`);
    await reader.read((text) => text.includes("\r\n\r\n"), { what: "the head" });
    assert.equal((await follower.post(TRIGGER, { payload: 1 })).status, 200);
    assert.ok(await follower.metric("process_resident_memory_bytes") - before < 5 * MIB);
    reader.resume();
    await until(() => reader.received.length > length, { what: "all of it" });
  });

  test("forwards a body that comes in pieces, and streams", async (t) => {
    const { json: { id } } = await follower.post(TRIGGER, { payload: "1" });
    const path = `/realtime/v1/streams/${id}/tokens`;
    const stream = await EventStream.open(follower.url + path, { headers: { authorization: `Bearer ${keys.dev}` } });
    t.after(() => stream.cut());
    assert.equal(stream.status, 200, stream.text);
    const append = (part) => follower.post(`/realtime/v1/streams/${id}/self/tokens/append`, part, { headers: { "content-type": "text/plain" } });
    for (const part of ["one", "two"]) {
      assert.equal((await append(part)).status, 200);
      await until(() => JSON.stringify(stream.events).includes(part), { what: part });
    }
    assert.ok(await follower.metric("runcast_forwarded_calls") >= 1);
    stream.cut();
    await until(async () => await follower.metric("runcast_forwarded_calls") === 0, { what: "its end" });
  });

  test("forwards sockets of workers, and their steps", async (t) => {
    const worker = await Worker.register(follower, { tasks: ["hello"] });
    const id = await worker.trigger("hello");
    const socket = await NoticeSocket.connect(follower, { t, runs: [id] });
    const attempt = await worker.take(id);
    await socket.notice(id);
    await attempt.complete({ ok: true, output: "1", outputType: "application/json" });
    assert.equal((await worker.show(id)).a, "COMPLETED");
    assert.equal(await leader.metric("runcast_notice_sockets"), 1);
    socket.ws.cut();
    await until(async () => await leader.metric("runcast_notice_sockets") === 0, { what: "the leader closes it" });
  });

  test("limits sockets of strangers by address, and keeps places for users", since("8a8b64c9"), async (t) => {
    const headers = (address) => ({ "x-forwarded-for": address });
    const open = (address, count) => Promise.all(Array.from({ length: count }, () => NoticeSocket.open(follower, { t, key: null, headers: headers(address) })));
    assert.equal((await follower.put(target(await follower.put("/api/v2/packets/mine")), {}, { key: null })).status, 200);
    const signed = target(await follower.get("/api/v1/packets/mine"));
    for (const address of ["198.51.100.1", "198.51.100.2"]) await open(address, 250);
    await assert.rejects(open("198.51.100.1", 1), (error) => error.status === 429);
    await open("198.51.100.3", 250);
    await assert.rejects(open("198.51.100.4", 1), (error) => error.status === 429);
    const { status, text } = await follower.get("/api/v1/projects", { key: keys.pat, headers: headers("198.51.100.5") });
    assert.equal(status, 200, text);
    assert.equal((await follower.get(signed, { key: null, headers: headers("198.51.100.1") })).status, 200, "a signed URL is one of its project");
    const wrong = signed.replace(/signature=./, (one) => one.slice(0, -1) + (one.endsWith("a") ? "b" : "a"));
    assert.equal((await follower.get(wrong, { key: null, headers: headers("198.51.100.1") })).status, 429);
  });

  test("ends calls of strangers that send slowly when others come, and refuses wrong keys before their bodies", since("fd9cbc85"), async (t) => {
    const begin = async (target, address, more = "") => {
      const client = await follower.connect();
      t.after(() => client.destroy());
      await client.send(`POST ${target} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-forwarded-for: ${address}\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n${more}\r\n`);
      return client;
    };
    const slow = [];
    for (const address of ["198.51.100.1", "198.51.100.2", "198.51.100.3", "198.51.100.4"]) {
      for (let n = 0; n < 250; n++) slow.push(await begin("/api/v1/sign-in", address));
      await until(async () => await follower.metric("runcast_forwarded_calls") === slow.length, { what: "they are in progress" });
    }
    const [first, second] = slow;
    await second.send(" ");
    await until(async () => await follower.metric("runcast_forwarded_calls") === slow.length, { what: "their bodies are awaited" });
    const { status, text } = await follower.post("/api/v1/sign-in", { code: "wrong" }, { key: null, headers: { "x-forwarded-for": "198.51.100.5" } });
    assert.deepEqual([status, JSON.parse(text).error], [400, "This link was used or has expired; runcast dashboard prints another one"]);
    assert.match(await first.read((received, ended) => ended || received.includes("\r\n\r\n"), { what: "its refusal" }), /^HTTP\/1.1 429 /);
    assert.equal(second.received.length, 0);
    const wrong = await begin(TRIGGER, "198.51.100.6", "authorization: Bearer tr_prod_wrong\r\n");
    assert.match(await wrong.read((received, ended) => ended || received.includes("\r\n\r\n"), { what: "its refusal" }), /^HTTP\/1.1 401 /);
    for (const client of slow) client.destroy();
    await until(async () => await follower.metric("runcast_forwarded_calls") === 0, { what: "their end" });
  });

  test("ends a held call at the leader when its client leaves", async () => {
    const worker = await Worker.register(follower, { tasks: ["held"] });
    const client = new HttpClient(follower.url, keys.dev);
    const held = client.request("POST", "/engine/v1/dev/dequeue", { body: { currentWorker: worker.id, oldWorkers: [] } });
    await until(async () => await follower.metric("runcast_forwarded_calls") === 1, { what: "it is held" });
    client.close();
    await assert.rejects(held);
    await until(async () => await follower.metric("runcast_forwarded_calls") === 0, { what: "its end" });
  });
});

// A network that loses packets ends no connection, and the leader may lead on.
test("calls that are in progress at a leader that has become silent end long before their time", { timeout: 120_000, ...since("ec329979") }, async (t) => {
  const { leader, others: [follower] } = await startFollowers(t, { names: ["a", "b"] }), clients = [new HttpClient(follower.url, keys.dev), new HttpClient(follower.url, keys.dev)];
  const name = "once", headers = { "x-trigger-request-idempotency-key": crypto.randomUUID() };
  const trigger = (http, more) => http.request("POST", TRIGGER, { body: { payload: { name } }, timeoutMs: 40_000, ...more }); // a leader has 90 s to respond
  const { json: { id } } = await trigger(clients[0]);
  leader.peers.pause();
  const [read, written] = await Promise.all([clients[0].request("GET", `/api/v3/runs/${id}`, { timeoutMs: 40_000 }), trigger(clients[1], { headers })]);
  for (const { status, headers: { "retry-after": after } } of [read, written]) assert.deepEqual([status, after], [503, "1"]);
  leader.peers.resume();
  await follows(follower);
  const again = await trigger(clients[1], { headers });
  assert.equal(again.status, 200, again.text);
  assert.equal((await leader.get("/api/v1/runs")).json.data.length, 2, "the call was executed once");
  for (const client of clients) client.close();
  await follower.stop();
  await leader.stop();
});

test("streams and sockets that a follower has forwarded end when another gateway leads", { timeout: 120_000, ...since("ed15644a") }, async (t) => {
  const { leader, others } = await startFollowers(t), streams = [], sockets = [];
  const { json: { id } } = await leader.post(TRIGGER, { payload: 1 }), path = `/realtime/v1/streams/${id}`;
  assert.equal((await leader.put(`${path}/self/chunks`)).status, 202);
  for (const other of others) {
    streams.push(await EventStream.open(`${other.url}${path}/chunks`, { headers: { authorization: `Bearer ${keys.dev}` } }));
    sockets.push(await NoticeSocket.connect(other, { t }));
  }
  leader.child.kill("SIGSTOP"); // its connections stay open
  const next = await until(async () => { for (const one of others) if (await one.leads()) return one; }, { what: "another one leads" });
  for (const [at, stream] of streams.entries()) await until(() => stream.ended, { what: `the stream at ${others[at].name} ends`, timeoutMs: 20_000 });
  for (const socket of sockets) await socket.ws.closed;
  leader.child.kill("SIGCONT");
  for (const one of others) if (one !== next) await one.stop();
  await next.stop();
});

test("a follower that is stopped answers its calls in progress, and the leader continues", { timeout: 300_000 }, async (t) => {
  const { leader, others: [follower] } = await startFollowers(t, { names: ["a", "b"], options: ["--drain-timeout", "60s"] });
  const worker = await Worker.register(follower, { tasks: ["hello"] });
  const socket = await NoticeSocket.connect(follower, { t });
  const held = new HttpClient(follower.url, keys.dev).request("POST", "/engine/v1/dev/dequeue", { body: { currentWorker: worker.id, oldWorkers: [] } });
  const { json: { presignedUrl } } = await leader.put("/api/v2/packets/p");
  const bytes = crypto.randomBytes(10 * MIB);
  await fetch(new URL(new URL(presignedUrl).pathname + new URL(presignedUrl).search, leader.url), { method: "PUT", body: bytes });
  const read = (await leader.get("/api/v1/packets/p")).json.presignedUrl;
  const reader = await follower.connect();
  t.after(() => reader.destroy());
  reader.socket.once("data", () => reader.pause());
  reader.send(`GET ${read.slice(new URL(read).origin.length)} HTTP/1.1\r\nhost: x\r\n\r\n`);
  await reader.read((text) => text.includes("\r\n\r\n"), { what: "the head" });
  await until(async () => await follower.metric("runcast_forwarded_calls") === 3, { what: "a socket and two calls are in progress" });

  const stopped = follower.stop();
  const { status, text } = await held;
  assert.deepEqual([status, status === 200 ? JSON.parse(text).dequeuedMessages : JSON.parse(text)], status === 200 ? [200, []] : [503, { error: "The gateway is not ready: draining" }]);
  reader.resume();
  await until(() => reader.ended || reader.received.length > bytes.length + 1000, { what: "the packet" });
  assert.ok(reader.received.subarray(-bytes.length).equals(bytes));
  await stopped;
  await socket.ws.closed;
  const id = await new Worker(leader).trigger("hello");
  assert.equal((await new Worker(leader).show(id)).b, "QUEUED");
  await leader.stop();
});

/** Calls that overlap, so that some are open at any moment, until the gateway refuses connections. Returns the
 *  statuses of those that began before it drained, and of later ones: { early, late }. 0: the connection was reset. */
async function keepCalling(gateway) {
  const body = JSON.stringify({ payload: "1" }), open = [], statuses = { early: [], late: [] };
  const head = `POST ${TRIGGER} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer ${keys.prod}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
  const complete = async ({ client, when }) => {
    await client.send(body.slice(-1));
    statuses[when].push(Number((await client.readToEnd()).split(" ")[1] ?? 0));
  };
  for (let client; (client = await gateway.connect().catch(() => null));) {
    open.push({ client, when: gateway.stderr.includes('"event":"draining"') ? "late" : "early" });
    await client.send(head + body.slice(0, -1));
    if (open.length > 4) await complete(open.shift());
  }
  for (const call of open) await complete(call);
  return statuses;
}

test("a gateway that is stopped ends although clients keep calling it", { timeout: 300_000 }, async (t) => {
  const { gateways } = await startFollowers(t, { options: ["--drain-timeout", "10m"] }), [a, b, c] = gateways;
  for (const one of [c, a]) { // a follower, and the leader
    const calls = keepCalling(one);
    await one.stop();
    const { early, late } = await calls, answered = late.filter(Boolean);
    assert.deepEqual([...new Set(answered)], [200]);
    assert.ok(late.length - answered.length <= 1, "at most a connection that was made while the socket closed is reset");
    const refused = early.filter((status) => status !== 200);
    assert.ok(refused.length === 0 || (one === a && new Set(refused).size === 1 && refused[0] === 503), "a leader waits only briefly for bodies before it hands over");
    assert.ok(one.stderr.includes('"event":"stopped"'));
  }
  await b.stop();
});

/** Triggers runs one after the other, each once and without a key, as curl does. stop() returns the names that were
 *  acknowledged, and the responses to others. */
function callOnce(url, prefix) {
  const http = new HttpClient(url, keys.prod), acknowledged = [], refused = [];
  let stopped = false;
  const work = (async () => {
    for (let n = 0; !stopped; n++, await sleep(5)) {
      const name = `${prefix}${n}`;
      const reply = await http.request("POST", TRIGGER, { body: { payload: { name } } }).catch((error) => ({ status: 0, text: error.code, headers: {} }));
      if (reply.status === 200) acknowledged.push(name); else refused.push({ name, ...reply });
    }
  })();
  return { stop: async () => { stopped = true; await work; http.close(); return { acknowledged, refused }; } };
}

for (const [what, end] of [["is killed", (leader) => leader.kill()], ["ends well", (leader) => leader.stop()], ["is suspended", (leader) => leader.child.kill("SIGSTOP")]]) {
  test(`calls at followers are executed once when the leader ${what}`, { timeout: 300_000 }, async (t) => {
    const { postgres, leader, others } = await startFollowers(t);
    const writers = others.map((other) => new Writers(other.url));
    t.after(() => { for (const one of writers) one.giveUp(); });
    for (const one of writers) await one.untilServed();
    const callers = others.map((other, at) => callOnce(other.url, `once-${at}:`));
    const reader = new HttpClient(others[0].url, keys.prod), reads = [];
    let reading = true;
    const read = (async () => { for (; reading; await sleep(5)) reads.push((await reader.request("GET", "/api/v1/queues")).status); })();

    await end(leader);
    const payload = { long: "x".repeat(MIB) };
    const long = others.map((other) => writers[0].repeat.call({ http: new HttpClient(other.url, keys.prod), refusals: new Map() }, "POST", TRIGGER, { payload }));
    for (const one of writers) t.diagnostic(`served again after ${await one.untilServed(60_000)} ms; refused: ${JSON.stringify([...one.refusals])}`);
    for (const { json: { id } } of await Promise.all(long)) assert.deepEqual((await others[0].get(`/api/v3/runs/${id}`, { key: keys.prod })).json.payload, payload);
    reading = false;
    await read;
    t.diagnostic(`statuses of ${reads.length} reads: ${[...new Set(reads)]}`);
    for (const one of writers) { await one.stop(); one.judge(postgres); }
    const once = await Promise.all(callers.map((caller) => caller.stop())), stored = storedRuns(postgres, "once-");
    for (const { acknowledged, refused } of once) {
      t.diagnostic(`${acknowledged.length} were acknowledged without a key; others: ${JSON.stringify(refused.map(({ name, status, text, headers }) => [name, status, text.slice(0, 80), headers["x-should-retry"]]))}`);
      for (const name of acknowledged) assert.ok(stored.has(name), `${name} is stored`);
    }
    for (const other of others) assert.doesNotMatch(other.stderr, /"level":"error"/);
    const [first] = others.filter((other) => other.stderr.includes('"event":"leads"'));
    for (const other of [...others].sort((x) => x === first ? 1 : -1)) await other.stop();
  });
}

test("a call that the lost leader has executed is not executed again by the follower that takes the lead", { timeout: 300_000 }, async (t) => {
  const { postgres, leader, others: [follower] } = await startFollowers(t, { names: ["a", "b"] });
  const stored = () => Number(postgres.query("SELECT count(*) FROM runcast.run"));
  const http = new HttpClient(follower.url, keys.prod), before = Array.from({ length: 8 }, (_, at) => ({ payload: { name: `before-${at}` } }));
  await Promise.all(before.map((body) => http.request("POST", TRIGGER, { body }))); // connections to the leader stay open
  leader.peers.pause(); // its responses are lost
  const bodies = ["none", "empty"].map((name) => ({ payload: { name } }));
  const calls = bodies.map((body, at) => http.request("POST", TRIGGER, { body, headers: at ? { "x-trigger-request-idempotency-key": "" } : {} }));
  await until(() => stored() === before.length + bodies.length, { what: "the leader has executed both" });
  await leader.kill();
  const replies = await Promise.all(calls);
  assert.deepEqual(replies.map(({ status }) => status), [200, 200], replies.map(({ text }) => text).join());
  assert.deepEqual(bodies.map(({ payload: { name } }) => storedRuns(postgres).get(name)), replies.map(({ json }) => json.id));
  assert.equal(await follower.metric("runcast_leads"), 1);
  http.close();
  await follower.stop();
});

test("a call without a key that the database may still store is not repeated by SDKs", { timeout: 300_000, ...since("97cb21f4") }, async (t) => {
  const { postgres, others: [follower] } = await startFollowers(t, { names: ["a", "b"] });
  const http = new HttpClient(follower.url, keys.prod), send = (payload, options = {}, headers = {}) => http.request("POST", TRIGGER, { body: { payload, options }, headers });
  assert.equal((await send(0)).status, 200);
  postgres.freeze();
  const replies = await Promise.all([send(1), send(2, { idempotencyKey: "a" }), send(3, {}, { "x-trigger-request-idempotency-key": "b" })]);
  postgres.resume();
  assert.deepEqual(replies.map(({ status, headers }) => [status, headers["x-should-retry"] ?? ""]), [[503, "false"], [503, ""], [503, ""]], replies.map(({ text }) => text).join());
  assert.match(replies[0].text, /it is unknown whether this was done/);
  for (const { headers } of replies) assert.equal(headers["x-runcast-unsure"], undefined);
  http.close();
});

test("a client may repeat a call whose fate is unknown if each of its runs has a key of its own", { timeout: 300_000, ...since("e049bd51") }, async (t) => {
  const { postgres, leader, others: [follower] } = await startFollowers(t, { names: ["a", "b"] });
  const stored = () => Number(postgres.query("SELECT count(*) FROM runcast.run")), http = new HttpClient(follower.url, keys.prod);
  const one = (payload, key) => ({ payload, options: key ? { idempotencyKey: key } : {} }), item = (...more) => ({ task: "task", ...one(...more) });
  const calls = [[TRIGGER, one(1)], [TRIGGER, one(2, "a")], ["/api/v1/tasks/batch", { items: [item("3", "b"), item("4", "c")] }], ["/api/v1/tasks/batch", { items: [item("5", "d"), item("6")] }]];
  await http.request("POST", TRIGGER, { body: one(0) });
  leader.peers.pause(); // its responses are lost
  const replies = calls.map(([path, body]) => http.request("POST", path, { body }));
  await until(() => stored() === 7, { what: "the leader has executed all" });
  leader.peers.cut();
  assert.deepEqual((await Promise.all(replies)).map(({ status, headers }) => [status, headers["x-should-retry"] ?? ""]), [[503, "false"], [503, ""], [503, ""], [503, "false"]]);
  leader.peers.accept();
  leader.peers.resume();
  for (const [path, body] of calls.slice(1, 3)) await until(async () => (await http.request("POST", path, { body })).status < 300, { what: "a response" });
  assert.equal(stored(), 7);
  http.close();
  await follower.stop();
  await leader.stop();
});

test("behind HAProxy, three gateways serve every call while each of them is killed or stopped in turn", { timeout: 300_000 }, async (t) => {
  const { postgres, gateways } = await startFollowers(t), world = await startHaproxy(t, gateways);
  const writers = new Writers(world.url, { clients: 6 }), mirror = await follow({ port: world.port, filter: { all: true } });
  t.after(() => writers.giveUp());
  t.after(() => mirror.leave());
  const worker = await Worker.register({ post: (path, body, more) => new HttpClient(world.url, keys.dev).request("POST", path, { body, ...more }) }, { tasks: ["hello"] });
  const ids = [];
  for (const gateway of gateways) {
    for (const end of ["kill", "stop"]) {
      await writers.untilServed();
      const leads = await gateway.leads();
      await gateway[end]();
      t.diagnostic(`${gateway.name}, which ${leads ? "leads" : "follows"}: ${end}; served after ${await writers.untilServed(60_000)} ms; refused: ${JSON.stringify([...writers.refusals])}`);
      ids.push(await worker.trigger("hello").catch((error) => error.message));
      await gateway.restart({ ready: false });
      await until(() => gateway.isReady(), { what: "it is back", timeoutMs: 60_000 });
    }
  }
  await writers.stop();
  writers.judge(postgres);
  await until(() => mirror.errors.length || mirror.runs.size === writers.count, { what: "all runs at the subscriber" });
  assert.deepEqual(mirror.errors, []);
  for (const gateway of gateways) assert.doesNotMatch(gateway.stderr, /"level":"error"/);
  const leader = (await Promise.all(gateways.map((gateway) => gateway.leads()))).indexOf(true);
  for (const gateway of [...gateways.filter((_, at) => at !== leader), gateways[leader]]) await gateway.stop();
});

test("calls that arrive at a leader that stops are carried out by the next one", { timeout: 120_000, ...since("19968160") }, async (t) => {
  const { postgres, gateways, leader } = await startFollowers(t), writers = new Writers(`http://127.0.0.1:${leader.port}`, { clients: 8 });
  t.after(() => writers.giveUp());
  await writers.untilServed();
  const answers = new Set();
  let reading = true;
  const readers = Array.from({ length: 8 }, async (_, at) => {
    const http = new HttpClient(leader.url, keys.prod), path = at % 2 ? "/api/v1/runs" : "/api/v1/runs/counts";
    for (let reply; reading; await sleep(reply.status > 0 ? 1 : 50)) {
      reply = await http.request("GET", path).catch((error) => ({ status: error.code, text: "" }));
      answers.add(reply.status === 200 ? "200" : `${reply.status} ${reply.text}`);
    }
    http.close();
  });
  await until(() => answers.has("200"), { what: "a list" });
  await leader.stop();
  await leader.restart({ ready: false });
  await writers.untilServed();
  reading = false;
  await Promise.all(readers);
  await writers.stop();
  writers.judge(postgres);
  assert.doesNotMatch([...answers, ...writers.refusals.keys()].join(), /draining/);
  t.diagnostic(`lists: ${[...answers].join(", ")}`);
  await follows(leader);
  for (const one of gateways) await one.stop();
});
