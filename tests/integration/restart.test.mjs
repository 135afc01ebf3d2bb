// An upgrade as clients see it: one process follows the other on a socket that the service manager keeps, while clients
// of all three kinds listen and others write. bench/upgrade.sh measures the same with ten thousand clients.
import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";

import { EventStream } from "../support/js/event_stream.mjs";
import { freePort, keys, sleep, temporaryFolder, until } from "../support/js/gateway.mjs";
import { HttpClient, RawConnection } from "../support/js/http.mjs";
import { RunsMirror, RunsSocket } from "../support/js/runs.mjs";
import { Service } from "../support/js/service.mjs";
import { upgradeRequest } from "../support/js/websocket.mjs";

const TAGS = 10, CLIENTS = 300, bearer = { authorization: `Bearer ${keys.prod}` };
const start = async (t, options = []) => {
  const port = await freePort();
  const service = await new Service(t, { http: port }, ["--listen", "systemd:http", "--data", path.join(temporaryFolder(), "data"), ...options]).start();
  return { port, service };
};

const clientOf = (port) => new HttpClient(`http://127.0.0.1:${port}`, keys.prod);

/** State of every kind of client: the last state of each run, how its connection ended, when to reconnect. */
class Listener {
  known = new Map(); // run -> n of its metadata
  returns = 0;
  failures = [];

  constructor(port, tag) { Object.assign(this, { port, tag }); }
  knows(run, metadata) { if (metadata) this.known.set(run, metadata.n); }
}

/** Like a page: reconnects when the gateway requests it, with the position. */
class Socket extends Listener {
  async listen() {
    const mirror = this.mirror = new RunsMirror({ port: this.port, token: keys.prod }), receive = mirror.receive.bind(mirror);
    mirror.receive = (message) => {
      if (message.op === "drain") Object.assign(this, { told: message.in, toldAt: performance.now() });
      if (this.told && message.op === "ok") assert.equal(message.mode, "resume");
      receive(message);
    };
    mirror.onRun = (run, _version, { metadata }) => this.knows(run, metadata);
    mirror.subscribe({ tags: [this.tag] });
    await this.#connect();
  }

  async #connect() {
    const { mirror } = this;
    await mirror.connect();
    mirror.socket.closed.then(({ code }) => this.#comeBack(code));
    await until(() => mirror.errors.length || [...mirror.subscriptions.values()].every(({ live }) => live), { what: "it is live" });
    if (mirror.errors.length) throw mirror.errors[0];
  }

  async #comeBack(code) {
    if (this.isOver) return;
    if (code !== 4200) this.failures.push(`closed with ${code}`);
    await sleep(Math.max(0, this.toldAt + this.told - performance.now())); // the time that the gateway announced
    await this.#connect().catch((error) => this.failures.push(error.message));
    this.returns++;
  }

  end() { this.isOver = true; return this.mirror.cut(); }
}

/** Like an EventSource: the last event id, and the last retry time. */
class Events extends Listener {
  cuts = 0;

  async listen() {
    const headers = { ...bearer, accept: "text/event-stream", ...(this.stream && { "last-event-id": this.stream.id }) };
    this.stream = await EventStream.open(`http://127.0.0.1:${this.port}/realtime/v1/events?tags=${this.tag}`, { headers });
    if (this.stream.status !== 200) throw new Error(`an event stream is ${this.stream.status}`);
    while (!this.#take((await this.stream.next()).data));
    this.#follow(this.stream);
  }

  /** Returns true if everything up to now has arrived. */
  #take(message) {
    if (this.returns && message.op === "ok") assert.equal(message.mode, "resume");
    for (const [run, , { metadata }] of message.rows ?? []) this.knows(run, metadata);
    return message.op === "rows" && !message.more;
  }

  async #follow(stream) {
    for (let event; (event = await stream.next(undefined, 120_000).catch(() => null));) this.#take(event.data);
    if (this.isOver) return;
    if (!stream.clean) this.failures.push(stream.error.message);
    for (let again = true; again;) {
      await sleep(Number(stream.retry)); // the time that the gateway announced
      again = await this.listen().then(() => false, (error) => this.#isCut(error) || (this.failures.push(error.message), false));
    }
    this.returns++;
  }

  /** The old process waits for a request on a new connection for a moment only; an EventSource then tries again. */
  #isCut({ cause }) { return ["ECONNRESET", "UND_ERR_SOCKET"].includes(cause?.code) && !!++this.cuts; }

  end() { this.isOver = true; this.stream.cut(); }
}

/** Like the ShapeStream of the SDKs: polls again at once, on the same connection if that stays open. */
class Poll extends Listener {
  position = { offset: "-1" };

  async listen() {
    this.http = clientOf(this.port);
    await this.#poll();
    this.#follow();
  }

  async #follow() {
    while (!this.isOver && !this.failures.length) await this.#poll({ live: "true", cursor: "1" }).catch((error) => { if (!this.isOver) this.failures.push(error.message); });
  }

  async #poll(live) {
    const query = new URLSearchParams({ tags: this.tag, ...this.position, ...live });
    const { status, headers, json } = await this.http.request("GET", `/realtime/v1/runs?${query}`, { headers: { "x-trigger-electric-version": "1" } });
    if (status !== 200) throw new Error(`a poll is ${status}`);
    if (headers.connection === "close") this.left = true;
    else if (this.left) this.returns = 1;
    for (const { key, value } of json.filter(({ key }) => key)) this.knows(key.replace(/.*\//, ""), value.metadata && JSON.parse(value.metadata));
    this.position = { offset: headers["electric-offset"], handle: headers["electric-handle"] };
  }

  end() { this.isOver = true; this.http.close(); }
}

test("three hundred clients reconnect by themselves, spread as announced, miss nothing, and no request is refused", async (t) => {
  const { port, service } = await start(t), tagOf = (i) => `tag${i % TAGS}`, client = clientOf(port);
  const runs = [], failures = [];
  let n = 0, isOver = false, written = 0;
  const write = async (call, target, body) => {
    const { status, json } = await client.request(call, target, { body });
    if (status !== 200) failures.push(`${call} ${target}: ${status}`);
    written++;
    return json;
  };
  const trigger = async (i) => runs.push((await write("POST", "/api/v1/tasks/any/trigger", { payload: 1, options: { delay: "1d", tags: [tagOf(i)], metadata: { n: ++n } } })).id);
  for (let i = 0; i < 2 * TAGS; i++) await trigger(i);
  const kinds = [Socket, Socket, Socket, Socket, Socket, Socket, Poll, Poll, Events, Events];
  const all = Array.from({ length: CLIENTS }, (_none, i) => new kinds[i % kinds.length](port, tagOf(Math.floor(i / kinds.length))));
  t.after(() => Promise.all(all.map((one) => one.end())));
  await Promise.all(all.map((one) => one.listen()));

  const writing = Array.from({ length: 4 }, async (_none, me) => { // each run has one writer
    for (let i = me; !isOver; i += 4) {
      try {
        if (i % 20 === me) await trigger(i);
        else await write("PUT", `/api/v1/runs/${runs[i % 20]}/metadata`, { metadata: { n: ++n } });
      } catch (error) { failures.push(error.message); }
      await sleep(20); // about 200 changes a second
    }
  });
  await until(() => written > 60, { what: "changes" });
  assert.equal(await service.stop(), 0, service.stderr.slice(-2000));
  await service.start();
  await until(() => all.every(({ returns, failures: own }) => returns === 1 || own.length), { timeoutMs: 60_000, what: "every client is back" });
  const after = written;
  await until(() => written > after + 60, { what: "changes" });
  isOver = true;
  await Promise.all(writing);
  assert.deepEqual([failures, all.flatMap((one) => one.failures)], [[], []]);
  t.diagnostic(`${all.reduce((sum, { cuts = 0 }) => sum + cuts, 0)} streams were cut on their way back`);

  const truth = new Map();
  for (const run of runs) truth.set(run, (await clientOf(port).request("GET", `/api/v3/runs/${run}`)).json);
  const missed = () => all.flatMap(({ tag, known, constructor }) => [...truth].filter(([id, { tags, metadata }]) => tags.includes(tag) && known.get(id) !== metadata.n).map(([id]) => `${constructor.name} ${id}`));
  await until(() => missed().length === 0, { what: "every client has everything" }).catch(() => assert.deepEqual(missed(), []));

  const told = all.filter((one) => one instanceof Socket).map((one) => one.told).sort((a, b) => a - b);
  assert.ok(told[0] > 0 && told.at(-1) < 5000, `${told[0]} to ${told.at(-1)} ms`);
  for (let i = 20; i < told.length; i++) assert.ok(told[i] - told[i - 20] > 200, `twenty of ${told.length} within ${told[i] - told[i - 20]} ms`);
  assert.equal(await service.stop(), 0);
});

test("clients that connect, send requests or subscribe while the old process drains are served by it, and asked to leave like the others", async (t) => {
  const { port, service } = await start(t);
  const open = await RawConnection.open(port), quiet = await RawConnection.open(port);
  const request = (target) => `GET ${target} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${keys.prod}\r\n\r\n`;
  await open.send(request("/api/v1/runs"));
  await open.read((text) => text.includes("\r\n\r\n"));
  open.take();
  const first = await RunsSocket.open({ port, token: keys.prod, hello: {} });
  await first.next("welcome");
  service.send("stop");
  await first.next("drain");
  await open.send(request("/api/v1/runs"));
  const kept = await open.readToEnd();
  assert.match(kept, /^HTTP\/1\.1 200 /);
  assert.match(kept, /connection: close/);
  const late = await RunsSocket.open({ port, token: keys.prod, hello: {} });
  const { in: told } = await late.next("drain");
  assert.ok(told >= 0 && told < 5000, `${told}`);
  for (const socket of [first, late]) assert.deepEqual(await socket.closed, { code: 4200, reason: "the gateway is shutting down" });
  quiet.destroy();
  await until(() => service.ends().length, { what: "the end" });
  assert.deepEqual(service.ends(), [0]);
  const waiting = clientOf(port).request("GET", "/api/v1/runs");
  await service.start();
  assert.equal((await waiting).status, 200, "clients that came in between are answered by the next process");
  assert.equal(await service.stop(), 0);
});

/** A client that takes no more of its responses than the kernels keep for it. */
async function openSlowReader(port) {
  const { json: { id } } = await clientOf(port).request("POST", "/api/v1/tasks/any/trigger", { body: { payload: "x".repeat(500_000), options: { delay: "1d" } } });
  const slow = await RawConnection.open(port);
  slow.pause();
  const request = `GET /api/v3/runs/${id} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${keys.prod}\r\n\r\n`;
  await slow.send(request.repeat(40));
  await clientOf(port).request("GET", "/api/v1/runs");
  return slow;
}

test("a client that vanished delays the next process less than one that reads a response slowly", async (t) => {
  const { port, service } = await start(t), other = await start(t), slow = await openSlowReader(other.port);
  const mute = await RawConnection.open(port);
  await mute.send(upgradeRequest("/realtime/v1/ws", bearer));
  await mute.read((text) => text.endsWith("\r\n\r\n"));
  let ended = false;
  const later = other.service.stop().then((status) => { ended = true; return status; }); // a slow reader has 5 s, as has any WebSocket that is closed
  assert.equal(await service.stop(), 0); // the peer never answers the close of its socket
  assert.equal(ended, false);
  assert.equal(await later, 0);
  mute.destroy();
  slow.destroy();
});

test("a client that reads a response slowly does not delay the next process", async (t) => {
  const { port, service } = await start(t, ["--drain-timeout", "10m"]), slow = await openSlowReader(port);
  const before = performance.now();
  assert.equal(await service.stop(), 0); // far before the 10 minutes
  const took = performance.now() - before;
  assert.ok(took > 4000, `ended after ${took} ms: it had its time`);
  slow.destroy();
  await service.start();
  assert.equal((await clientOf(port).request("GET", "/api/v1/runs")).status, 200);
  assert.equal(await service.stop(), 0);
});
