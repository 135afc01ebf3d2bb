// A client of every transport on one gateway. It asserts that a gateway which may have lost the lead sends no message that
// declares a client in sync.
//
//   const watch = await SyncWatch.open(gateway, t);
//   … the gateway doubts that it leads …
//   watch.mark(); … watch.assertSilent();
import assert from "node:assert/strict";

import { EventStream } from "./event_stream.mjs";
import { polls } from "./fixture.mjs";
import { keys, until } from "./gateway.mjs";
import { target as noticesAt, NoticeSocket } from "./notices.mjs";
import { RunsSocket } from "./runs.mjs";
import { UpgradeRefused, WebSocket } from "./websocket.mjs";

const key = keys.prod;
const authorization = { authorization: `Bearer ${key}` };

/** Returns true if a message of runs.v1 declares its client in sync, or answers a request. */
export const isInSync = ({ op, more }) => ["welcome", "ok", "ping", "counts"].includes(op) || (["rows", "patch", "list"].includes(op) && !more);

/** The status of a WebSocket's upgrade: 101, or the one with which it is refused. */
async function upgrade({ port }, target) {
  try {
    const ws = await WebSocket.open({ port, target, headers: authorization });
    ws.cut();
    return 101;
  } catch (error) {
    if (error instanceof UpgradeRefused) return error.status;
    throw error;
  }
}

const POLL = "/realtime/v1/runs?tags=watched";

/** A held poll at the newest position. */
async function beginPoll(gateway) {
  const first = await gateway.http.request("GET", `${POLL}&offset=-1`, { key, headers: polls });
  assert.equal(first.status, 200, first.text);
  const position = `&offset=${first.headers["electric-offset"]}&handle=${first.headers["electric-handle"]}`;
  const now = await gateway.http.request("GET", `${POLL}${position}`, { key, headers: polls });
  assert.equal(now.status, 200, now.text);
  return { target: `${POLL}${position}`, held: gateway.http.request("GET", `${POLL}${position}&live=true`, { key, headers: polls }) };
}

export class SyncWatch {
  static async open(gateway, t) {
    const watch = new SyncWatch(gateway);
    const { json: { id } } = await gateway.post("/api/v1/tasks/watched/trigger", { payload: 1, options: { tags: ["watched"] } }, { key });
    watch.run = id;
    for (const protocol of ["runs.v1.json", "runs.v1.msgpack"]) await watch.#openSocket(protocol, t);
    await watch.#openSilent(t);
    for (const query of ["all=1&counts=1", "watch=1&limit=10&counts=1"]) await watch.#openStream(query, t);
    watch.notices = await NoticeSocket.connect(gateway, { t });
    watch.poll = await beginPoll(gateway);
    watch.waiting = gateway.http.request("GET", `/api/v3/runs/${id}?wait=50s`, { key });
    for (const answer of [watch.poll.held, watch.waiting]) answer.then((reply) => { watch.answers.push(reply); }, () => {});
    return watch;
  }

  constructor(gateway) { Object.assign(this, { gateway, sockets: [], streams: [], answers: [], marks: new Map() }); }

  async #openSocket(protocol, t) {
    const messages = [];
    const socket = await RunsSocket.open({ port: this.gateway.port, token: key, protocol, hello: {}, onMessage: (message) => messages.push(message) });
    t.after(() => socket.cut());
    socket.send({ op: "sub", id: 1, all: true, counts: true });
    socket.send({ op: "watch", id: 2, filter: {}, limit: 10, counts: true });
    const complete = (op, id) => messages.some((one) => one.op === op && one.id === id && !one.more);
    await until(() => complete("rows", 1) && complete("list", 2) && complete("counts", 2), { what: `${protocol} is in sync` });
    this.sockets.push({ socket, messages, name: protocol });
  }

  /** A socket that has sent nothing yet. */
  async #openSilent(t) {
    const messages = [];
    this.silent = await RunsSocket.open({ port: this.gateway.port, onMessage: (message) => messages.push(message) });
    this.silent.messages = messages;
    t.after(() => this.silent.cut());
  }

  async #openStream(query, t) {
    const stream = await EventStream.open(`${this.gateway.url}/realtime/v1/events?${query}`, { headers: authorization });
    t.after(() => stream.cut());
    await until(() => stream.events.some(({ type, data }) => type === "rows" && isInSync(data)), { what: `${query} is in sync` });
    this.streams.push({ stream, name: query });
  }

  /** assertSilent() judges the messages after this call. */
  mark() {
    for (const { messages, name } of this.sockets) this.marks.set(name, messages.length);
    for (const { stream, name } of this.streams) this.marks.set(name, stream.events.length);
  }

  sinceMark(name) {
    const { messages } = this.sockets.find((one) => one.name === name) ?? {};
    if (messages) return messages.slice(this.marks.get(name));
    return this.streams.find((one) => one.name === name).stream.events.slice(this.marks.get(name)).map(({ data }) => data);
  }

  /** Sends a sub, a watch and a first hello, which must get no response. */
  sendRequests() {
    for (const { socket } of this.sockets) {
      socket.send({ op: "sub", id: 3, all: true, counts: true });
      socket.send({ op: "watch", id: 4, filter: {}, limit: 5, counts: true });
    }
    this.silent.send({ op: "hello", token: key });
  }

  assertSilent() {
    for (const { name } of [...this.sockets, ...this.streams])
      assert.deepEqual(this.sinceMark(name).filter(isInSync), [], name);
    assert.deepEqual(this.silent.messages, []);
  }

  /** Asserts that held calls ended with 503, and that new clients are refused. */
  async assertRefusing() {
    const { gateway } = this;
    await until(() => this.answers.length === 2, { what: "held calls end" });
    for (const { status, headers, text } of [...this.answers, await gateway.http.request("GET", this.poll.target, { key, headers: polls }),
      await gateway.http.request("GET", `/api/v3/runs/${this.run}`, { key }), await gateway.http.request("GET", "/api/v1/runs", { key })]) {
      assert.equal(status, 503, text);
      assert.match(headers["retry-after"], /^\d+$/);
      assert.equal(headers["electric-up-to-date"], undefined);
    }
    assert.equal(await upgrade(gateway, "/realtime/v1/ws"), 503);
    assert.equal(await upgrade(gateway, noticesAt), 503);
    assert.equal((await EventStream.open(`${gateway.url}/realtime/v1/events?all=1`, { headers: authorization })).status, 503);
    const source = await EventStream.open(`${gateway.url}/realtime/v1/events?all=1`, { headers: { ...authorization, accept: "text/event-stream" } });
    await source.untilEnd(); // it is not refused, since an EventSource that is refused never reconnects
    assert.deepEqual(source.events.map(({ type }) => type), ["drain"]);
  }

  assertOpen() {
    for (const { socket, name } of this.sockets) assert.ok(!socket.ws.isClosed, name);
    for (const { stream, name } of this.streams) assert.ok(!stream.ended, name);
    assert.ok(!this.notices.ws.isClosed);
  }

  /** Asserts that all clients were sent to another gateway: closed with 4201, or drained. */
  async assertMoved() {
    for (const { socket, name } of this.sockets) assert.equal((await socket.closed).code, 4201, name);
    for (const { stream, name } of this.streams) {
      await stream.untilEnd();
      assert.equal(stream.events.at(-1).type, "drain", name);
    }
    assert.equal((await this.notices.ws.closed).code, 4201);
  }
}
