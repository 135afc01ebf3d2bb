// A client of every transport on one gateway. It asserts that a gateway which may have lost the lead sends no message that
// declares a client in sync, and ends no stream of a run as if it were complete.
//
//   const watch = await SyncWatch.open(gateway, t);
//   … the gateway doubts that it leads …
//   watch.mark(); … watch.assertSilent();
//
// newClients(gateway, run, t) calls a gateway by every transport, one that may not lead yet: each call returns { name, status }.
import assert from "node:assert/strict";

import { EventStream } from "./event_stream.mjs";
import { polls } from "./fixture.mjs";
import { keys, sleep, until } from "./gateway.mjs";
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

/** The status of an event stream, whose events are in `events`. Streams of runs send texts that are JSON. */
async function openStream({ url }, target, headers, t) {
  const stream = await EventStream.open(url + target, { headers: { ...authorization, ...headers } });
  t.after(() => stream.cut());
  return stream;
}

/** An EventSource is not refused, since one that is refused never reconnects: it is drained. */
async function openSource(gateway, t) {
  const source = await openStream(gateway, "/realtime/v1/events?all=1", { accept: "text/event-stream" }, t);
  await until(() => source.ended || source.events.some(({ type }) => type === "ok"), { what: "the end of the EventSource, or ok" });
  if (!source.ended) return { status: 200 };
  assert.deepEqual(source.events.map(({ type }) => type), ["drain"]);
  return { status: 503, headers: { "retry-after": "1" } };
}

const streamOf = (run, rest) => `/realtime/v1/streams/${run}/${rest}`;

/** Calls a gateway by every transport, all at once: returns promises of { name, status, text, headers } by name. */
export function newClients(gateway, run, t) {
  const call = (method, target, body) => gateway.http.request(method, target, { key, body, headers: polls });
  const calls = {
    "a WebSocket": () => upgrade(gateway, "/realtime/v1/ws"),
    "a socket for notices": () => upgrade(gateway, noticesAt),
    "an event stream": () => openStream(gateway, "/realtime/v1/events?all=1", {}, t),
    "an event stream of a list": () => openStream(gateway, "/realtime/v1/events?watch=1&limit=10&counts=1", {}, t),
    "an EventSource": () => openSource(gateway, t),
    "a poll": () => call("GET", `${POLL}&offset=-1`),
    "a run": () => call("GET", `/api/v3/runs/${run}`),
    "a run that is waited for": () => call("GET", `/api/v3/runs/${run}?wait=1s`),
    "a list": () => call("GET", "/api/v1/runs"),
    "a stream of a run": () => openStream(gateway, streamOf(run, "words"), {}, t),
    "an input stream of a run": () => openStream(gateway, streamOf(run, "input/answers"), {}, t),
    "a writer's place in a stream": () => call("HEAD", streamOf(run, "self/words")),
    "a new stream": () => call("PUT", streamOf(run, "self/other")),
    "a chunk of a stream": () => call("POST", streamOf(run, "self/words"), '"late"\n'),
    "a part of a stream": () => call("POST", streamOf(run, "self/words/append"), "late"),
    "a record for a run": () => call("POST", streamOf(run, "input/answers"), { data: "late" }),
  };
  return Object.entries(calls).map(async ([name, begin]) => {
    const answer = await begin();
    return { name, ...typeof answer === "number" ? { status: answer } : { status: answer.status, text: answer.text, headers: answer.headers } };
  });
}

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
  /** quietS: how long the reader of a stream of a run waits for a chunk. */
  static async open(gateway, t, { quietS = 600 } = {}) {
    const watch = new SyncWatch(gateway, t, quietS);
    const { json: { id } } = await gateway.post("/api/v1/tasks/watched/trigger", { payload: 1, options: { tags: ["watched"] } }, { key });
    watch.run = id;
    await watch.#openOutput(t);
    for (const protocol of ["runs.v1.json", "runs.v1.msgpack"]) await watch.#openSocket(protocol, t);
    await watch.#openSilent(t);
    for (const query of ["all=1&counts=1", "watch=1&limit=10&counts=1"]) await watch.#openStream(query, t);
    watch.notices = await NoticeSocket.connect(gateway, { t });
    watch.poll = await beginPoll(gateway);
    watch.waiting = gateway.http.request("GET", `/api/v3/runs/${id}?wait=50s`, { key });
    for (const answer of [watch.poll.held, watch.waiting]) answer.then((reply) => { watch.answers.push(reply); }, () => {});
    return watch;
  }

  constructor(gateway, t, quietS) { Object.assign(this, { gateway, t, quietS, sockets: [], streams: [], answers: [], marks: new Map() }); }

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

  /** A reader of a stream of the run, which would end normally quietS after the last chunk. */
  async #openOutput(t) {
    const written = await this.gateway.http.request("POST", streamOf(this.run, "self/words"), { key, body: '"first"\n' });
    assert.equal(written.status, 200, written.text);
    this.output = await openStream(this.gateway, streamOf(this.run, "words"), { "timeout-seconds": `${this.quietS}` }, t);
    await this.output.next();
    this.quietAt = Date.now() + this.quietS * 1000;
  }

  /** Resolves when the reader of the stream has had no chunk for as long as it wanted to wait. */
  untilQuiet() { return sleep(Math.max(0, this.quietAt + 1000 - Date.now())); }

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
    assert.ok(!this.output.clean, "the stream of the run is not complete");
  }

  /** Asserts that held calls ended with 503, and that new clients are refused. */
  async assertRefusing() {
    const { gateway } = this;
    await until(() => this.answers.length === 2, { what: "held calls end" });
    const polled = await gateway.http.request("GET", this.poll.target, { key, headers: polls });
    for (const { name, status, headers, text } of [...this.answers, polled, ...await Promise.all(newClients(gateway, this.run, this.t))]) {
      assert.equal(status, 503, `${name}: ${text}`);
      if (!headers) continue; // an upgrade
      const header = (one) => headers.get?.(one) ?? headers[one];
      assert.match(header("retry-after"), /^\d+$/, name);
      assert.equal(header("electric-up-to-date"), undefined);
    }
  }

  assertOpen() {
    for (const { socket, name } of this.sockets) assert.ok(!socket.ws.isClosed, name);
    for (const { stream, name } of this.streams) assert.ok(!stream.ended, name);
    assert.ok(!this.notices.ws.isClosed);
    assert.ok(!this.output.ended);
  }

  /** Asserts that all clients were sent to another gateway: closed with 4201, or drained. */
  async assertMoved() {
    for (const { socket, name } of this.sockets) assert.equal((await socket.closed).code, 4201, name);
    for (const { stream, name } of this.streams) {
      await stream.untilEnd();
      assert.equal(stream.events.at(-1).type, "drain", name);
    }
    assert.equal((await this.notices.ws.closed).code, 4201);
    await this.output.untilEnd();
    assert.ok(!this.output.clean, "the reader of the stream comes back");
  }
}
