// Subscribers over plain HTTP for the model test, judged like those of history.mjs. EventSubscriber reads
// text/event-stream and reconnects with the last id, as EventSource does. PollSubscriber polls like the ShapeStream of
// the SDKs. Polled rows have no versions, so the history finds their states by their content.
import assert from "node:assert/strict";
import http from "node:http";
import zlib from "node:zlib";

import { sleep, until } from "./gateway.mjs";
import { digest, Subscriber } from "./history.mjs";
import { matches } from "./runs.mjs";

const queryOf = (filter) => Object.entries(filter).map(([name, value]) => [name, value === true ? "1" : String(value)]);

export class EventSubscriber extends Subscriber {
  subscribe(filter) {
    assert.equal(this.subscriptions.size, 0, "a stream has one subscription");
    this.lastId = -1; // the next id is 0, which the messages of event streams have
    return super.subscribe(filter);
  }

  async connect() {
    const { port, token } = this.options, sub = this.subscriptions.get(0);
    const query = new URLSearchParams(queryOf(sub.filter));
    if (this.options.hello?.fields) query.set("fields", String(this.options.hello.fields));
    const headers = { authorization: `Bearer ${token}`, accept: "text/event-stream", ...(this.lastEvent && { "last-event-id": this.lastEvent }) };
    const request = http.get({ port, host: "127.0.0.1", path: `/realtime/v1/events?${query}`, headers, agent: false });
    const response = await new Promise((resolve, reject) => request.on("response", resolve).on("error", reject));
    request.on("error", () => {});
    if (response.statusCode !== 200) {
      request.destroy();
      throw new Error(`${this.name}: ${response.statusCode}`);
    }
    const socket = { request, response };
    this.socket = socket;
    this.incomplete = new Set(sub.complete ? [0] : []);
    sub.live = false;
    let text = "";
    response.setEncoding("utf8").on("data", (piece) => {
      if (this.socket !== socket) return;
      text += piece;
      for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) this.#dispatch(text.slice(0, end));
      for (const watcher of this.watchers) watcher();
    });
    response.on("error", () => {}).on("close", () => {
      if (this.socket === socket) this.socket = null;
      for (const watcher of this.watchers) watcher();
    });
  }

  #dispatch(block) {
    const sub = this.subscriptions.get(0);
    let id, message;
    for (const line of block.split("\n")) {
      if (line.startsWith("id: ")) id = line.slice(4);
      else if (line.startsWith("data: ")) message = JSON.parse(line.slice(6));
    }
    if (id) {
      this.epoch = id.split(".")[0];
      this.lastEvent = id;
    }
    if (message?.op === "ok" && sub.live) { // the gateway has loaded its runs again
      this.begunAgain = (this.begunAgain ?? 0) + 1;
      sub.live = false;
    }
    try {
      if (message && message.op !== "drain") this.receive(message);
      if (id) this.#advance(sub); // what the id covers is not sent again
      const [, seq, base] = (id ?? "").split(".").map(Number);
      if (!id || !sub.live) return;
      assert.ok(seq >= this.position.seq, `${this.name}: ${id} is before ${this.position.seq}`);
      if (seq === base) this.receive({ op: "ping", seq }); // judges the state at a position from which the client may resume
    } catch (error) { this.errors.push(error); }
  }

  /** The position of a WebSocket does not advance while it catches up; an event id does. */
  #advance({ caughtUp }) {
    for (const run of caughtUp) this.delivered.set(run, this.runs.get(run).version);
  }

  async cut() {
    this.socket?.request.destroy();
    this.socket = null;
  }
  pause() { this.socket?.response.pause(); }
  resume() { this.socket?.response.resume(); }
}

const olderStatuses = { PENDING: "QUEUED", DEQUEUED: "EXECUTING", RETRYING_AFTER_FAILURE: "REATTEMPTING", WAITING_TO_RESUME: "FROZEN",
  PENDING_VERSION: "WAITING_FOR_DEPLOY", COMPLETED_SUCCESSFULLY: "COMPLETED", COMPLETED_WITH_ERRORS: "FAILED" };
const times = { createdAt: "createdAt", updatedAt: "updatedAt", startedAt: "startedAt", delayUntil: "delayedUntil", queuedAt: "queuedAt", expiredAt: "expiredAt" };
const same = ["id", "taskIdentifier", "ttl", "idempotencyKey"];
const json = ["payload", "metadata", "output"];
const final = ["COMPLETED", "CANCELED", "FAILED", "CRASHED", "INTERRUPTED", "SYSTEM_FAILURE", "EXPIRED", "TIMED_OUT"];

/** Converts a row into the form of the run object, for the fields that both have. */
function fieldsOf(row) {
  const fields = { status: olderStatuses[row.status] ?? row.status, tags: JSON.parse(row.runTags ?? "[]"), number: Number(row.number), isTest: row.isTest === "t" };
  for (const name of same) fields[name] = row[name];
  for (const [column, name] of Object.entries(times)) fields[name] = row[column] && `${row[column]}Z`;
  for (const name of json) fields[name] = row[name] && JSON.parse(row[name]);
  return fields;
}
const compared = new Set(["status", "tags", "number", "isTest", ...same, ...Object.values(times), ...json]);
const digestOf = (fields) => digest(Object.fromEntries(Object.entries(fields).filter(([name, value]) => compared.has(name) && (value ?? null) !== null)));

/** Returns true if the loss of a response tests anything. One without rows ends a held poll: its loss would cost 20 s. */
const hasRows = ({ body }) => body.length > '[{"headers":{"control":"up-to-date"}}]'.length;

export class PollSubscriber {
  constructor(name, { port, token, random, api, lossRate = 0, gzip = false }) {
    Object.assign(this, { name, port, token, random, api, lossRate, gzip });
    this.subscriptions = new Map();
    this.runs = new Map(); // key -> columns
    this.log = [];
    this.view = new Map(); // key -> { version, state }, as far as the log was judged
    this.position = { offset: "-1" };
    this.seq = -1; // in sync with
    Object.assign(this, { skipped: 0, syncs: 0, states: 0, lost: 0, jumped: 0, judgedTo: 0, errors: [], slowMs: 0 });
  }

  subscribe(filter) {
    assert.equal(this.subscriptions.size, 0, "a shape has one subscription");
    this.filter = filter;
    this.subscriptions.set(0, { filter });
  }

  async connect() {
    this.socket = {};
    this.current = false; // the first request of a client is not live
    this.agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    this.#follow(this.socket);
  }

  async cut() {
    this.socket = null;
    this.agent?.destroy();
  }
  pause() { this.slowMs = 400; }
  resume() { this.slowMs = 0; }

  async #follow(socket) {
    while (this.socket === socket && !this.errors.length) {
      try {
        const answer = await this.#ask();
        if (this.socket !== socket) return;
        if (hasRows(answer) && this.random.chance(this.lossRate)) this.lost++; // lost in flight
        else await this.#take(answer);
        if (this.slowMs) await sleep(this.random.below(this.slowMs));
      } catch (error) {
        if (this.socket !== socket) return;
        if (!["ECONNREFUSED", "ECONNRESET", "EPIPE"].includes(error.code)) this.errors.push(error);
        await sleep(20); // before the next try
      }
    }
  }

  #target() {
    const { run, batch, tags } = this.filter, { offset, handle } = this.position;
    const query = new URLSearchParams({ log: "full", offset, ...(handle && { handle }), ...(this.current && { live: "true", cursor: this.cursor ?? "" }) });
    if (tags) query.set("tags", String(tags));
    return `/realtime/v1/${run ? `runs/${run}` : batch ? `batches/${batch}` : "runs"}?${query}`;
  }

  #ask() {
    const headers = { authorization: `Bearer ${this.token}`, "x-trigger-electric-version": "1.0.0-beta.1",
      ...(this.api && { "x-trigger-api-version": this.api }), ...(this.gzip && { "accept-encoding": "gzip, deflate" }) };
    return new Promise((resolve, reject) => {
      const request = http.get({ port: this.port, host: "127.0.0.1", path: this.#target(), headers, agent: this.agent }, (response) => {
        const parts = [];
        response.on("data", (part) => parts.push(part)).on("error", reject);
        response.on("end", () => resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(parts) }));
      });
      request.on("error", reject);
    });
  }

  async #take({ status, headers, body }) {
    if (status === 503 || status === 429) return sleep(20);
    if (status === 409) return this.#refetch(headers);
    assert.equal(status, 200, `${this.name}: ${status} ${body}`);
    const packed = headers["content-encoding"] === "gzip";
    const messages = JSON.parse(packed ? zlib.gunzipSync(body) : body);
    for (const { key, value, headers: { operation } } of messages.filter((message) => message.key)) {
      const known = this.runs.get(key);
      assert.ok(known || operation === "insert", `${this.name}: ${key} is added by an ${operation}`);
      const row = operation === "insert" ? value : { ...known, ...value };
      this.runs.set(key, row);
      const fields = fieldsOf(row);
      const ended = final.includes(fields.status);
      assert.ok(row.completedAt ? ended : !ended || row.status === "CANCELED", `${this.name}: ${key} is ${row.status}, completed at ${row.completedAt}`);
      this.log.push({ id: key, state: digestOf(fields) });
    }
    const [seq, base] = headers["electric-offset"].split("_").map(Number);
    this.position = { offset: headers["electric-offset"], handle: headers["electric-handle"] };
    this.cursor = headers["electric-cursor"];
    this.current = headers["electric-up-to-date"] !== undefined;
    assert.equal(messages.at(-1)?.headers.control === "up-to-date", this.current, this.name);
    if (!this.current) return;
    assert.ok(seq === base && seq >= this.seq, `${this.name}: from ${this.seq} to ${seq}_${base}`);
    this.seq = seq;
    this.log.push({ seq });
  }

  /** The position means nothing any more: everything is fetched again. */
  #refetch(headers) {
    this.runs.clear();
    this.position = { offset: "-1", handle: headers["electric-handle"] };
    this.current = false;
    this.refetches = (this.refetches ?? 0) + 1;
  }

  async synced(seq, timeoutMs = 20_000) {
    await until(() => this.errors.length || this.seq >= seq, { timeoutMs, what: `in sync with ${seq}, is with ${this.seq}` });
    if (this.errors.length) throw this.errors[0];
  }

  /** Throws at the first logged state that is wrong. */
  judge(history) {
    if (this.errors.length) throw this.errors[0];
    let touched = new Set();
    const log = this.log;
    this.log = [];
    for (const entry of log) {
      if (entry.id) {
        this.#judgeState(history, entry);
        touched.add(entry.id);
      } else if (history.isKnownAt(entry.seq)) { // otherwise the next one repeats this and more
        const ids = this.judgedTo ? new Set([...history.changedBetween(this.judgedTo, entry.seq), ...touched]) : history.runs.keys();
        for (const id of ids) this.#judgeRun(history, id, entry.seq);
        this.judgedTo = entry.seq;
        touched = new Set();
        this.syncs++;
      }
    }
  }

  /** Asserts that the state is one of the run, and not older than the state before it. */
  #judgeState(history, { id, state }) {
    const entries = history.runs.get(id) ?? [], before = this.view.get(id)?.version ?? 0;
    const entry = entries.find(({ version, fields }, i) => version >= before && (entries[i].shape ??= digestOf(fields)) === state);
    const complete = entries[0]?.version === 1 && entries.every(({ version }, i) => version === i + 1);
    assert.ok(entry || !complete, `${this.name}: ${id} was never ${state}, or not after version ${before}`);
    if (entry && before) this.jumped += Math.max(0, entry.version - before - 1);
    this.view.set(id, { version: entry?.version ?? before, state });
    this.states++;
  }

  #judgeRun(history, id, seq) {
    const then = history.at(id, seq);
    if (!then || !matches(this.filter, id, then.fields)) return;
    assert.equal(this.view.get(id)?.state, then.shape ??= digestOf(then.fields), `${this.name}: ${id} when in sync with ${seq}`);
  }

  /** Asserts, when no run changes, that it has exactly the runs that its filter matches. */
  judgeTable(history) {
    const wanted = [], shown = [...this.runs].map(([id, row]) => `${id} ${digestOf(fieldsOf(row))}`);
    for (const [id, entries] of history.runs) {
      const { fields } = entries.at(-1);
      if (matches(this.filter, id, fields)) wanted.push(`${id} ${digestOf(fields)}`);
    }
    assert.deepEqual(shown.sort(), wanted.sort(), `the table of ${this.name}`);
  }
}
