// A client of the runs.v1 protocol. RunsSocket is one connection. RunsMirror is the table of runs that a client keeps
// across connections, and checks the guarantees.
import { decode } from "./msgpack.mjs";
import { opcodes, WebSocket } from "./websocket.mjs";

const JSON_TEXTS = ["payload", "output", "metadata", "error"]; // str in msgpack, values in JSON

/** Decodes a message of either encoding into the values that JSON would have. */
function parse(bytes, opcode) {
  if (opcode === opcodes.text) return JSON.parse(bytes.toString());
  const message = decode(bytes);
  for (const [, , fields] of message.rows ?? [])
    for (const name of JSON_TEXTS)
      if (typeof fields?.[name] === "string") fields[name] = JSON.parse(fields[name]);
  return message;
}

export class RunsSocket {
  /**
   * { port, token, protocol: "runs.v1.json" | "runs.v1.msgpack" | undefined, query: "?…",
   *   headers, hello: { …, token } sent as the first message, answerPings, onMessage }
   * Resolves when the connection is open; `await socket.next("welcome")` waits for the gateway's first message.
   */
  static async open({ port, token, protocol = "runs.v1.json", query = "", headers = {}, hello, answerPings, onMessage }) {
    const all = { "sec-websocket-protocol": protocol, ...(token && { authorization: `Bearer ${token}` }), ...headers };
    const ws = await WebSocket.open({ port, target: `/realtime/v1/ws${query}`, headers: all, answerPings });
    const socket = new RunsSocket(ws, onMessage);
    if (hello) socket.send({ op: "hello", ...hello });
    return socket;
  }

  constructor(ws, onMessage) {
    this.ws = ws;
    this.messages = []; // received and not yet taken by next()
    this.waiting = null;
    this.bytesReceived = 0;
    this.closed = ws.closed;
    ws.onClosed = () => this.waiting?.();
    ws.listen((bytes, opcode) => {
      this.bytesReceived += bytes.length;
      const message = parse(bytes, opcode);
      if (onMessage) return onMessage(message, bytes);
      this.messages.push(message);
      this.waiting?.();
    });
  }

  /** An object is sent as JSON text, a string unchanged. */
  send(message) {
    this.ws.send(opcodes.text, typeof message === "string" ? message : JSON.stringify(message));
  }

  /** The next message, or the next one of a kind: `next("ok")`, `next((m) => m.id === 2)`. Earlier messages stay for
   *  later calls. */
  async next(wanted = () => true, timeoutMs = 30_000) {
    const matches = typeof wanted === "string" ? (message) => message.op === wanted : wanted;
    let late = false;
    const timer = setTimeout(() => { late = true; this.waiting?.(); }, timeoutMs);
    try {
      for (;;) {
        const index = this.messages.findIndex(matches);
        if (index >= 0) return this.messages.splice(index, 1)[0];
        if (late || this.ws.isClosed) {
          const seen = JSON.stringify(this.messages).slice(0, 500);
          const why = late ? `not within ${timeoutMs} ms` : `closed with ${this.ws.closeCode} ${this.ws.closeReason}`;
          throw new Error(`waiting for ${wanted}: ${why}; received: ${seen}`);
        }
        await new Promise((resolve) => { this.waiting = resolve; });
      }
    } finally {
      clearTimeout(timer);
      this.waiting = null;
    }
  }

  pause() { this.ws.pause(); }
  resume() { this.ws.resume(); }
  close(code, reason) { return this.ws.close(code, reason); }
  cut() { return this.ws.cut(); }
}

/**
 * Mirrors a table of runs as runcast/protocol.h requires of clients: keeps the rows and the position to
 * resume from, and counts skipped versions. Throws when a promise is broken.
 *
 *   const mirror = new RunsMirror({ port, token });
 *   mirror.subscribe({ tags: ["a"] });
 *   await mirror.connect(); await mirror.synced(seq); mirror.cut(); await mirror.connect();
 */
export class RunsMirror {
  constructor(options) {
    this.options = options;
    this.runs = new Map(); // id -> { version, fields }
    this.subscriptions = new Map(); // id -> { filter, complete, live, ending, seen }
    this.lastId = 0;
    this.position = null; // { epoch, seq, base }
    this.skipped = 0; // versions that patches skipped
    this.delivered = new Map(); // id -> newest version that a patch, or a completed catch-up, has delivered
    this.rows = 0;
    this.errors = [];
    this.watchers = new Set();
  }

  async connect() {
    let welcomed, isWelcome = false;
    const welcome = new Promise((resolve) => { welcomed = resolve; });
    this.socket = await RunsSocket.open({ hello: {}, ...this.options,
      onMessage: (message) => {
        try { this.receive(message); } catch (error) { this.errors.push(error); }
        if (message.op === "welcome" && isWelcome) this.#beginAgain(message);
        else if (message.op === "welcome") welcomed(message);
        isWelcome ||= message.op === "welcome";
        for (const watcher of this.watchers) watcher();
      } });
    const socket = this.socket;
    socket.closed.then(() => {
      if (this.socket === socket) this.socket = null;
      for (const watcher of this.watchers) watcher();
    });
    const lost = socket.closed.then(({ code, reason }) => { throw new Error(`closed before welcome: ${code} ${reason}`); });
    lost.catch(() => {});
    this.welcome = await Promise.race([welcome, lost]);
    this.#begin(this.welcome);
    for (const [id, sub] of this.subscriptions) {
      if (sub.ending) { this.#drop(id); continue; }
      if (sub.complete && this.position) this.incomplete.add(id);
      sub.live = false;
      this.#sendSub(id, sub);
    }
    return this.welcome;
  }

  /** A welcome, also one that comes again on the same connection. */
  #begin({ epoch }) {
    if (this.position && this.position.epoch !== epoch) { // another epoch, whose versions are different
      this.position = null;
      this.delivered.clear();
      for (const run of this.runs.values()) run.version = 0;
    }
    this.epoch = epoch;
    this.incomplete = new Set(); // ids of subscriptions that were complete and are not live again yet
  }

  /** The gateway has loaded its runs again: no subscription is live, and an ok of each follows. */
  #beginAgain(message) {
    this.#begin(message);
    this.begunAgain = (this.begunAgain ?? 0) + 1;
    for (const [id, sub] of this.subscriptions) {
      if (sub.complete) this.incomplete.add(id);
      sub.live = false;
    }
  }

  subscribe(filter) {
    const id = ++this.lastId;
    const sub = { filter, complete: false, live: false, ending: false, seen: null, caughtUp: new Set() };
    this.subscriptions.set(id, sub);
    if (this.socket) this.#sendSub(id, sub);
    return id;
  }

  unsubscribe(id) {
    const sub = this.subscriptions.get(id);
    sub.ending = true;
    if (this.socket) this.socket.send({ op: "unsub", id });
    else this.#drop(id);
  }

  cut() { return this.socket?.cut(); }
  pause() { this.socket?.pause(); }
  resume() { this.socket?.resume(); }

  #sendSub(id, sub) {
    const { epoch, seq, base } = this.position ?? {};
    const from = sub.complete && this.position ? { from: [epoch, seq, base] } : {};
    const floor = sub.complete ? { since: sub.since ?? sub.filter.since, limit: undefined } : {}; // the gateway replaced the limit by a floor
    this.socket.send({ op: "sub", id, ...sub.filter, ...floor, ...from });
  }

  receive(message) {
    const sub = this.subscriptions.get(message.id);
    switch (message.op) {
      case "ok":
        sub.since = message.since ?? sub.since;
        sub.caughtUp.clear();
        sub.seen = message.mode === "snapshot" ? new Set() : null;
        if (message.mode === "snapshot") { sub.complete = false; this.incomplete.delete(message.id); }
        break;
      case "rows":
        for (const row of message.rows) { this.apply(row); sub?.seen?.add(row[0]); sub?.caughtUp.add(row[0]); }
        if (!message.more && sub) this.#complete(message.id, sub, message.seq);
        break;
      case "patch":
        for (const row of message.rows) { this.#countSkipped(row); this.apply(row); }
        this.#advance(message.seq, !message.more);
        break;
      case "ping": this.#advance(message.seq, true); break;
      case "end": this.#drop(message.id); break;
      case "floor": this.floor = message.updatedAt; break;
      case "error": this.errors.push(Object.assign(new Error(message.message), message)); break;
    }
  }

  apply([id, version, fields, whole]) {
    const known = this.runs.get(id);
    this.rows++;
    if (known && version <= known.version) return; // applied before: nothing changes
    if (!known && !whole) throw new Error(`${id}: a delta for a run that was never sent whole`);
    const merged = whole ? { ...fields } : { ...known.fields };
    if (!whole)
      for (const [name, value] of Object.entries(fields))
        if (value === null && name !== "payload") delete merged[name];
        else merged[name] = value;
    this.runs.set(id, { version, fields: merged });
    this.onRun(id, version, merged);
  }

  /** Hooks for subclasses: called with each state of a run, at its removal, and whenever the mirror is in sync. */
  onRun(_id, _version, _fields) {}
  onForget(_id) {}
  onSync(_seq) {}

  /** Counts the versions between two deltas. A whole row adds a run, and skips no version. */
  #countSkipped([id, version, , whole]) {
    const delivered = this.delivered.get(id);
    if (delivered !== undefined && !whole && version > delivered) this.skipped += version - delivered - 1;
    if (!(delivered > version)) this.delivered.set(id, version);
  }

  /** Filters of live subscriptions; a limit is replaced by the floor (since) that the gateway sent for it. */
  liveFilters() {
    return [...this.subscriptions.values()].filter((sub) => sub.live && !sub.ending).map(({ filter, since }) => (since ? { ...filter, since } : filter));
  }

  #isLive() { return [...this.subscriptions.values()].every((sub) => sub.live || sub.ending); }

  #complete(id, sub, seq) {
    if (sub.seen) this.#forgetUnseen(sub);
    for (const run of sub.caughtUp) this.delivered.set(run, this.runs.get(run)?.version);
    sub.caughtUp.clear();
    Object.assign(sub, { complete: true, live: true, seen: null });
    this.incomplete.delete(id);
    this.#advance(seq, true);
  }

  /** The position advances only while everything that was complete before is live again. */
  #advance(seq, sync) {
    if (sync) this.onSync(seq);
    if (this.incomplete.size) return;
    if (this.position && seq < this.position.seq) throw new Error(`seq went back from ${this.position.seq} to ${seq}`);
    this.position = { epoch: this.epoch, seq, base: sync ? seq : this.position?.base ?? 0 };
  }

  #forgetUnseen(sub) {
    for (const [id, run] of this.runs)
      if (!sub.seen.has(id) && matches(sub.filter, id, run.fields) && !this.#isHeldByOthers(sub, id, run)) this.#forget(id);
  }

  #isHeldByOthers(but, id, run) {
    return [...this.subscriptions.values()].some((sub) => sub !== but && sub.complete && matches(sub.filter, id, run.fields));
  }

  #drop(id) {
    const sub = this.subscriptions.get(id);
    this.subscriptions.delete(id);
    this.incomplete?.delete(id);
    if (!sub) return;
    const others = [...this.subscriptions.values()]; // also subscriptions that are catching up
    for (const [runId, run] of this.runs)
      if (!others.some(({ filter }) => matches(filter, runId, run.fields))) this.#forget(runId);
  }

  #forget(id) {
    this.runs.delete(id);
    this.onForget(id);
  }

  /** Waits until the mirror has everything up to seq. */
  synced(seq, timeoutMs = 60_000) {
    const done = () => this.#isLive() && this.position && this.position.base >= seq;
    return this.wait(done, `in sync with ${seq}`, timeoutMs);
  }

  wait(done, what, timeoutMs = 60_000) {
    return new Promise((resolve, reject) => {
      const finish = (error) => { clearTimeout(timer); this.watchers.delete(check); error ? reject(error) : resolve(); };
      const check = () => {
        if (this.errors.length) finish(this.errors[0]);
        else if (done()) finish();
      };
      const timer = setTimeout(() => finish(new Error(`${what}: not within ${timeoutMs} ms, position ${JSON.stringify(this.position)}`)), timeoutMs);
      this.watchers.add(check);
      check();
    });
  }
}

export function matches(filter, id, fields) {
  if (filter.run && id !== filter.run) return false;
  if (filter.batch && fields.batchId !== filter.batch) return false;
  if (filter.tags && !filter.tags.every((tag) => fields.tags.includes(tag))) return false;
  if (filter.since && fields.createdAt < filter.since) return false;
  return !filter.task || filter.task.includes(fields.taskIdentifier);
}
