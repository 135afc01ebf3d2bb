// A gateway for tests of src/web/client in which the test chooses every frame and every moment: it delivers frames on
// fake sockets, advances a fake clock, and hides a fake page.
//
//   const script = new Script(t);                 // replaces timers until the test ends
//   const client = connect("http://x", { token: "t", WebSocket: script.WebSocket });
//   const socket = script.socket(); socket.open(); socket.deliver(welcome()); script.advance(1000);
// or, with a welcomed connection, const { script, client, socket } = begin(t).

import assert from "node:assert/strict";

import { connect } from "../../../src/web/client/client.js";

export const welcome = (more) => ({ op: "welcome", epoch: "e1", seq: 0, env: "env_x", fields: [],
  limits: { subscriptions: 256, tags: 16, messageBytes: 65536, messagesPerSecond: 50, burst: 200 }, ...more });

export const run = (id, more) => ({ id, taskIdentifier: "task", status: "QUEUED", tags: ["a"], createdAt: "2026-01-01T00:00:00.000Z",
  updatedAt: "2026-01-01T00:00:00.000Z", payload: null, ...more });

export const whole = (id, version, more) => [id, version, run(id, more), 1];

export class Script {
  sockets = [];
  page = new EventTarget();
  #timers = new Map();
  #now = Date.parse("2026-01-01T00:00:00Z");
  #last = 0;

  constructor(t) {
    const script = this;
    this.WebSocket = class extends Socket {
      constructor(...address) {
        super(...address);
        script.sockets.push(this);
      }
    };
    const before = { setTimeout, clearTimeout, Date: Date.now, random: Math.random };
    globalThis.setTimeout = (call, ms) => { this.#timers.set(++this.#last, { call, at: this.#now + ms, ms }); return this.#last; };
    globalThis.clearTimeout = (id) => this.#timers.delete(id);
    Date.now = () => this.#now;
    Math.random = () => 1;
    globalThis.document = Object.assign(new EventTarget(), { hidden: false });
    globalThis.addEventListener = this.page.addEventListener.bind(this.page);
    globalThis.removeEventListener = this.page.removeEventListener.bind(this.page);
    t.after(() => {
      Object.assign(globalThis, { setTimeout: before.setTimeout, clearTimeout: before.clearTimeout });
      Date.now = before.Date;
      Math.random = before.random;
      for (const name of ["document", "addEventListener", "removeEventListener"]) delete globalThis[name];
    });
  }

  /** The newest connection. */
  socket() { return this.sockets.at(-1); }

  /** The newest connection, open and welcomed. */
  welcomed(more) {
    const socket = this.socket();
    socket.open();
    socket.deliver(welcome(more));
    return socket;
  }

  /** Advances the clock, and calls the timers that are due. */
  advance(ms) {
    for (const end = this.#now + ms; ;) {
      const [id, timer] = [...this.#timers].sort(([, a], [, b]) => a.at - b.at)[0] ?? [];
      if (!timer || timer.at > end) { this.#now = end; return; }
      this.#now = Math.max(this.#now, timer.at);
      this.#timers.delete(id);
      timer.call();
    }
  }

  /** Advances the clock until the client opens its next connection; returns how many ms that took. */
  reconnectDelay() {
    const before = this.sockets.length, begin = this.#now;
    for (let ms = 0; ms < 120_000; ms += 1) {
      if (this.sockets.length > before) return this.#now - begin;
      this.advance(1);
    }
    return undefined;
  }

  hide(hidden) {
    document.hidden = hidden;
    document.dispatchEvent(new Event("visibilitychange"));
  }

  dispatch(event) { this.page.dispatchEvent(new Event(event)); }
}

class Socket {
  readyState = 0;
  sent = [];

  constructor(url, protocol) { Object.assign(this, { url: String(url), protocol }); }

  send(text) { this.sent.push(JSON.parse(text)); }
  close() { this.readyState = 3; }
  get isClosed() { return this.readyState === 3; }

  open() {
    this.readyState = 1;
    this.onopen({});
  }

  deliver(...messages) { for (const message of messages) this.onmessage({ data: JSON.stringify(message) }); }

  remoteClose(code, reason = "") {
    this.readyState = 3;
    this.onerror({});
    this.onclose({ code, reason });
  }

  /** Returns and removes the messages that the client has sent. */
  take() { return this.sent.splice(0); }
}

/** Lets resolved promises run their continuations. */
export async function settle() { for (let i = 0; i < 10; i++) await null; }

/** A client that got its welcome, and its socket, without the messages that the client sent before. */
export function begin(t, options = {}) {
  const script = new Script(t);
  const client = connect("http://runs.test", { token: "secret", WebSocket: script.WebSocket, ...options });
  const socket = script.welcomed();
  socket.take();
  return { script, client, socket };
}

/** Returns a list to which each later event of a mirror is added as [event, value]. */
export function recordEvents(mirror, names = ["change", "gap", "synced", "state"]) {
  const events = [];
  for (const name of names) mirror.on(name, (value) => events.push([name, value]));
  return events;
}

export const ok = (id, more) => ({ op: "ok", id, mode: "snapshot", ...more });
export const rows = (id, seq, list, more) => ({ op: "rows", id, seq, rows: list, ...more });
export const patch = (seq, list, more) => ({ op: "patch", seq, rows: list, ...more });
export const ids = (mirror) => [...mirror.runs.keys()];

/** Breaks the connection; returns the next one, welcomed, and the requests that the client sent on it. */
export function again(script, code = 1006, more) {
  script.socket().remoteClose(code);
  assert.notEqual(script.reconnectDelay(), undefined);
  const socket = script.welcomed(more);
  return { socket, requests: socket.take().filter(({ op }) => op !== "hello") };
}
