// client.js - a live mirror of runs, for pages and Node: the client's half of runs.v1.
//
// The rules are in include/runcast/protocol.h; options and events are in client.d.ts.
//
//   Client - Mirrors, one for each subscribe or watch
//          - a Connection for all of them; while the gateway drains, also the next one
//
// Patches apply to all subscriptions at once: one table has their rows, and the filters of the mirrors
// decide which runs they show. A watch has its own table, since runs leave it.

const units = { w: 6048e5, d: 864e5, h: 36e5, m: 6e4, s: 1e3 };
const final = /^(COMPLETED|CANCELED|FAILED|CRASHED|INTERRUPTED|SYSTEM_FAILURE|EXPIRED|TIMED_OUT)$/;

const failure = (code, message) => Object.assign(new Error(message || `closed with ${code}`), { code });

/** Close codes after which to reconnect. */
const atOnce = /^(42..|1001|1012)$/, later = /^(41..|1006|1011|1013)$/;

/** Turns "24h" into a time, so that gateway and mirror mean the same. */
function timeOf(since) {
  if (!/^(\d+[wdhms])+$/.test(since)) return since && new Date(since).toISOString();
  let ms = Date.now();
  for (const [, count, unit] of since.matchAll(/(\d+)(.)/g)) ms -= count * units[unit];
  return new Date(ms).toISOString();
}

/** Merges a row into a table, unless it is outdated. A changed run is a new object. */
function merge(table, [id, version, fields, whole]) {
  const known = table.get(id);
  if (known && (version < known.version || (version === known.version && !whole))) return { run: known.run, skipped: 0 };
  if (!known && !whole) throw failure("unknown_run", `a change of ${id}, which was never sent`);
  const run = whole ? fields : { ...known.run, ...fields };
  for (const name in whole ? {} : fields) if (fields[name] === null && name !== "payload") delete run[name];
  table.set(id, { version, run });
  return { run, skipped: known?.version ? Math.max(version - known.version - 1, 0) : 0 };
}

class Emitter {
  #listeners = {};

  on(event, listener) {
    const all = (this.#listeners[event] ??= new Set());
    all.add(listener);
    return () => all.delete(listener);
  }

  emit(event, value) {
    for (const listener of this.#listeners[event] ?? [])
      try { listener(value); } catch (error) { queueMicrotask(() => { throw error; }); }
  }

  setState(state, error) {
    if (this.state === "closed") return;
    this.error = error;
    if (this.state === state) return;
    this.state = state;
    this.emit("state", state);
  }
}

class Mirror extends Emitter {
  runs = new Map();
  counts;
  gaps = 0;
  state = "connecting";
  error;
  complete = false; // once complete, it resumes from the position
  refusals = 0; // of its request

  constructor(request, close) {
    super();
    Object.assign(this, { request, close, isWatch: request.op === "watch" });
    this.setFloor();
  }

  /** Sets the floor, a time of creation; for a limit, the gateway sends it. */
  setFloor() {
    const { since = "", limit } = this.request;
    if (!this.complete) this.floor = limit ? undefined : since;
  }

  matches(run) {
    const { run: id, batch, tags, task } = this.request;
    return (!id || run.id === id) && (!batch || run.batchId === batch) && (!task || task.includes(run.taskIdentifier)) &&
      (!tags || tags.every((tag) => run.tags.includes(tag))) && run.createdAt >= this.floor;
  }

  emit(event, value) {
    if (this.state !== "closed" || event === "state") super.emit(event, value);
  }

  noteGap({ run, skipped }) {
    this.gaps += skipped;
    if (skipped) this.emit("gap", { run, skipped });
  }

  emitRuns(runs, removed) {
    if (runs.length + removed.length) this.emit("change", { runs, removed });
  }

  /** Yields each run, and again when it has changed. */
  async *[Symbol.asyncIterator]() {
    const waiting = new Map(this.runs);
    let wake;
    const ends = [this.on("change", ({ runs, removed }) => {
      for (const run of runs) waiting.set(run.id, run);
      for (const id of removed) waiting.delete(id);
      wake?.();
    }), this.on("state", () => wake?.())];
    try {
      for (;;) {
        for (const [id, run] of waiting) {
          waiting.delete(id);
          yield run;
        }
        if (this.state === "closed") break;
        await new Promise((resolve) => { wake = resolve; });
      }
      if (this.error) throw this.error;
    } finally {
      for (const end of ends) end();
    }
  }
}

/** A socket that keeps to the gateway's message rate. */
class Connection {
  live = new Set(); // mirrors that have everything up to the last frame
  seen = new Map(); // mirror -> ids that its snapshot has contained so far
  requested = new Set(); // ids of subscriptions and watches whose rows may arrive
  perSecond = 50; // until the gateway announces its limit
  #queue = [];
  #credit = 50;

  constructor(socket, silenceMs, onMessage, onLost) {
    Object.assign(this, { socket, silenceMs, onLost });
    socket.onopen = () => this.#pump();
    socket.onmessage = ({ data }) => {
      this.received = true;
      if (this.onLost) onMessage(data);
    };
    socket.onclose = ({ code, reason }) => this.lose(code, reason);
    socket.onerror = () => {}; // onclose follows
    this.#listen(true);
  }

  send(message) {
    this.#queue.push(JSON.stringify(message));
    this.#pump();
  }

  /** Sends fifty messages at once, then at half the allowed rate. */
  #pump() {
    if (this.socket.readyState !== 1) return;
    const texts = this.#queue.splice(0, this.#credit);
    for (const text of texts) this.socket.send(text);
    this.#credit -= texts.length;
    if (!this.#credit) this.pace ??= setTimeout(() => {
      this.pace = undefined;
      this.#credit = 50;
      this.#pump();
    }, 1e5 / this.perSecond);
  }

  /** Detects a broken path: after a silence, sends a message. */
  #listen(probed) {
    this.received = false;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      if (this.received) this.#listen();
      else if (probed) this.lose(1006, "the gateway does not respond");
      else this.probe();
    }, probed ? this.silenceMs / 2 : this.silenceMs);
  }

  probe() {
    this.send({ op: "unsub", id: 0 }); // unknown: the error is a sign of life
    this.#listen(true);
  }

  lose(code, reason) {
    const { onLost } = this;
    this.close();
    onLost?.(code, reason);
  }

  close() {
    this.onLost = undefined;
    for (const timer of [this.timer, this.pace, this.renewal]) clearTimeout(timer);
    this.socket.close();
  }
}

class Client extends Emitter {
  state = "connecting";
  error;
  #options;
  #mirrors = new Map(); // by id; a closed one stays until the gateway has ended it
  #rows = new Map(); // of all subscriptions: id -> { version, run }
  #epoch;
  #position; // [seq, base] of what was received
  #now; // the connection
  #next; // replaces it later
  #isOpening = false;
  #attempts = 0;
  #ids = 0;
  #page = new AbortController(); // removes the listeners of the page

  constructor(url, options) {
    super();
    const address = new URL("realtime/v1/ws", `${url}`.replace(/\/*$/, "/"));
    address.protocol = address.protocol.replace("http", "ws");
    this.#options = { WebSocket: globalThis.WebSocket, silence: 30_000, hiddenAfter: 60_000, address, ...options };
    if (!this.#options.WebSocket) throw new TypeError("no WebSocket here; pass one as an option");
    const { document, addEventListener } = globalThis, { signal } = this.#page;
    addEventListener?.("online", () => this.#reconnect(), { signal });
    addEventListener?.("offline", () => this.#now?.probe(), { signal });
    document?.addEventListener("visibilitychange", () => this.#onVisibility(), { signal });
    this.#open();
    if (document?.hidden) this.#onVisibility();
  }

  subscribe({ task, since, ...filter }) {
    return this.#add({ op: "sub", ...filter, task: task && [task].flat(), since: timeOf(since) });
  }

  watch(filter = {}, { limit, counts } = {}) {
    return this.#add({ op: "watch", filter, limit, counts });
  }

  close(error) {
    this.#page.abort();
    this.#disconnect("closed", error);
  }

  // ---- the page: online again, hidden, shown again ----

  #reconnect() {
    this.#attempts = 0;
    if (this.#now) this.#now.probe();
    else this.#open();
  }

  /** Disconnects a hidden tab: resuming is cheap. */
  #onVisibility() {
    const { hiddenAfter } = this.#options;
    clearTimeout(this.hiding);
    if (document.hidden) {
      if (hiddenAfter < Infinity) this.hiding = setTimeout(() => this.#disconnect("paused"), hiddenAfter);
      return;
    }
    if (this.state === "paused") this.setState("connecting");
    this.#update(this.error);
    this.#reconnect();
  }

  #disconnect(state, error) {
    const open = this.#connections();
    for (const timer of [this.timer, this.hiding]) clearTimeout(timer);
    this.#now = this.#next = undefined;
    for (const emitter of [this, ...this.#mirrors.values()]) emitter.setState(state, error);
    for (const connection of open) connection.close();
    this.#forgetClosed();
  }

  // ---- mirrors ----

  #add(request) {
    const id = ++this.#ids, mirror = new Mirror({ ...request, id }, () => this.#end(mirror));
    if (this.state === "closed") mirror.setState("closed", this.error);
    else this.#mirrors.set(id, mirror);
    for (const connection of this.#connections()) this.#request(connection, mirror);
    return mirror;
  }

  #request(connection, mirror) {
    const { request, complete, floor } = mirror, from = this.#position && [this.#epoch, ...this.#position];
    mirror.setFloor();
    connection.requested.add(request.id);
    connection.send(complete ? { ...request, limit: undefined, since: floor || undefined, from } : request);
  }

  #end(mirror, error) {
    const { id } = mirror.request;
    mirror.setState("closed", error);
    mirror.complete = false;
    for (const connection of this.#connections()) {
      connection.live.delete(mirror);
      if (connection.requested.has(id)) connection.send({ op: "unsub", id });
    }
    this.#forgetClosed();
  }

  /** Removes closed mirrors once the gateway has ended them. */
  #forgetClosed() {
    for (const [id, { state, runs }] of this.#mirrors) {
      if (state !== "closed" || this.#connections().some(({ requested }) => requested.has(id))) continue;
      this.#mirrors.delete(id);
      for (const run of runs.keys()) this.#release(run);
    }
  }

  #subscriptions() { return [...this.#mirrors.values()].filter(({ isWatch }) => !isWatch); }

  #release(id) {
    if (!this.#subscriptions().some(({ runs }) => runs.has(id))) this.#rows.delete(id);
  }

  // ---- connections ----

  #connections() { return [this.#now, this.#next].filter(Boolean); }

  #isInactive() { return this.state === "paused" || this.state === "closed"; }

  async #open() {
    clearTimeout(this.timer);
    if (this.#isOpening || this.#next || this.#isInactive()) return;
    this.#isOpening = true;
    const { getToken, fields, every, api, address, silence, WebSocket } = this.#options;
    try {
      const token = getToken ? await getToken() : this.#options.token;
      if (this.#isInactive()) return;
      const connection = new Connection(new WebSocket(address, "runs.v1.json"), silence * Math.min(2 ** this.#attempts, 8),
        (text) => this.#receive(connection, text), (code, reason) => this.#lost(connection, code, reason));
      this.#next = this.#now && connection;
      this.#now ??= connection;
      connection.send({ op: "hello", token, fields, every, api });
      for (const mirror of this.#mirrors.values()) if (mirror.state !== "closed") {
        mirror.refusals = 0;
        this.#request(connection, mirror);
      }
    } catch (error) {
      this.emit("error", error);
      if (this.#isInactive()) return;
      this.#update(error);
      this.#openLater();
    } finally {
      this.#isOpening = false;
    }
  }

  /** Exponential back-off with full jitter. */
  #openLater(ms = Math.random() * Math.min(30_000, 500 * 2 ** this.#attempts++)) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#open(), ms);
  }

  #lost(connection, code, reason) {
    const next = this.#next, error = failure(code, reason);
    if (connection === this.#now) this.#now = next;
    this.#next = undefined;
    this.#forgetClosed();
    if (!this.#now && !atOnce.test(code) && !later.test(code)) return this.close(error);
    if (next ? next === connection : !connection.isDraining) this.#openLater(atOnce.test(code) && !this.#attempts++ ? 0 : undefined);
    this.#update(error);
  }

  /** Switches to the next connection once it has all that this one has. */
  #switch() {
    const old = this.#now;
    if (![...old.live].every((mirror) => this.#next.live.has(mirror))) return;
    this.#now = this.#next;
    this.#next = undefined;
    old.close();
    this.#forgetClosed();
  }

  #update(error) {
    if (this.state === "paused") return;
    this.setState(this.#now?.isWelcome ? "live" : "connecting", error);
    for (const mirror of this.#mirrors.values())
      mirror.setState(this.#connections().some(({ live }) => live.has(mirror)) ? "live" : "connecting", error);
  }

  /** Invalidates everything that was received. */
  #restart() {
    this.#position = undefined;
    for (const row of this.#rows.values()) row.version = 0;
    for (const mirror of this.#mirrors.values()) mirror.complete = false;
  }

  // ---- messages of the gateway ----

  #receive(connection, text) {
    try {
      const message = JSON.parse(text), { op, id, ignored } = message, mirror = this.#mirrors.get(id);
      if (ignored) console.warn(`runcast: the gateway does not know ${ignored.join(", ")}`);
      if (mirror || id === undefined) this[`on_${op}`]?.(message, connection, mirror);
    } catch (error) { // not understood: request everything again
      this.#restart();
      connection.lose(1011, error.message);
    }
  }

  on_welcome({ epoch, limits }, connection) {
    connection.isWelcome = true;
    connection.perSecond = limits.messagesPerSecond;
    connection.live.clear(); // it may come again
    if (epoch !== this.#epoch) { // the database was replaced
      this.#epoch = epoch;
      this.#restart();
      this.#now.live.clear();
    }
    if (!this.#mirrors.size) this.#attempts = 0;
    if (connection === this.#next) this.#switch();
    this.#update();
  }

  on_ok({ id, mode, since }, connection, mirror) {
    if (mirror.state === "closed") connection.send({ op: "unsub", id }); // closed before it existed
    mirror.floor = since ?? mirror.request.since ?? "";
    mirror.refusals = 9;
    if (mode === "resume" || mirror.isWatch) return;
    mirror.complete = false;
    connection.seen.set(mirror, new Set());
  }

  on_rows({ rows, more, seq }, connection, mirror) {
    const seen = connection.seen.get(mirror), others = [...connection.live].filter((one) => one !== mirror && !one.isWatch);
    this.#apply(rows, mirror);
    for (const [id] of rows) seen?.add(id);
    if (more || mirror.state === "closed") return;
    connection.live.add(mirror);
    connection.seen.delete(mirror);
    mirror.complete = true;
    if (seen) this.#remove(mirror, (run) => !seen.has(run.id) && !(mirror.matches(run) && others.some(({ runs }) => runs.has(run.id))));
    this.#update();
    this.#advance(connection, seq);
  }

  on_patch({ rows, more, seq }, connection) {
    this.#apply(rows);
    this.#advance(connection, seq, more);
  }

  on_ping({ seq }, connection) { this.#advance(connection, seq); }

  /** A watch changes only when all frames of a list have arrived. */
  on_list({ begin, rows, more, seq }, connection, mirror) {
    if (begin) Object.assign(mirror, { table: new Map(), source: connection });
    if (mirror.source !== connection) return;
    const { table, runs } = mirror, before = new Map(runs);
    for (const row of rows) {
      if (row[3] === 2) table.delete(row[0]);
      else mirror.noteGap(merge(table, row));
    }
    if (more) return;
    runs.clear();
    for (const [id, { run }] of [...table].sort(([a], [b]) => (a < b ? 1 : -1))) runs.set(id, run);
    connection.live.add(mirror);
    this.#attempts = 0;
    if (connection === this.#next) this.#switch();
    this.#update();
    mirror.emitRuns([...runs.values()].filter((run) => before.get(run.id) !== run), [...before.keys()].filter((id) => !runs.has(id)));
    mirror.emit("synced", seq);
  }

  on_counts({ byStatus, total, seq }, _connection, mirror) {
    mirror.counts = { byStatus, total, seq };
    mirror.emit("change", { runs: [], removed: [] });
  }

  on_error({ id, code, message }, connection, mirror) {
    const error = failure(code, message ?? `ended by the gateway: ${code}`);
    if (!mirror) return this.emit("error", error);
    if (mirror.state === "closed" && code === "unknown_id") return;
    connection.requested.delete(id);
    if (code !== "limit" || mirror.state === "closed" || ++mirror.refusals > 5) return this.#end(mirror, error);
    mirror.setState("connecting", error); // a gateway in doubt takes 5 s to refuse
    this.#request(connection, mirror);
  }

  on_end = this.on_error;

  /** Retention: final runs that last changed before it are gone. */
  on_floor({ updatedAt }) {
    for (const mirror of this.#subscriptions()) this.#remove(mirror, (run) => run.updatedAt < updatedAt && final.test(run.status));
  }

  /** Renews the token after half of its remaining time. */
  on_expiring(message, connection) {
    const { getToken } = this.#options;
    if (getToken) connection.renewal = setTimeout(async () => {
      try {
        connection.send({ op: "auth", token: await getToken() });
      } catch (error) {
        this.emit("error", error);
      }
    }, message.in / 2);
  }

  /** Reconnects after message.in, even if the gateway closes earlier. */
  on_drain(message, connection) {
    if (connection !== this.#now || this.#next) return;
    connection.isDraining = true;
    this.#openLater(message.in);
  }

  // ---- rows ----

  /** owner: the mirror that requested the rows; undefined: all mirrors. */
  #apply(rows, owner) {
    const changes = rows.map((row) => merge(this.#rows, row));
    for (const mirror of this.#subscriptions()) {
      const { runs } = mirror;
      const own = changes.filter(({ run }) => runs.get(run.id) !== run && (mirror === owner || runs.has(run.id) || mirror.matches(run)));
      for (const change of own) {
        runs.set(change.run.id, change.run);
        mirror.noteGap(change);
      }
      mirror.emitRuns(own.map(({ run }) => run), []);
    }
  }

  #remove(mirror, isGone) {
    const ids = [...mirror.runs.values()].filter(isGone).map(({ id }) => id);
    for (const id of ids) {
      mirror.runs.delete(id);
      this.#release(id);
    }
    mirror.emitRuns([], ids);
  }

  /** Moves the position only while all mirrors that were complete are live again. */
  #advance(connection, seq, more) {
    if (connection === this.#next && !more) this.#switch();
    if (connection === this.#now && this.#subscriptions().every((one) => !one.complete || connection.live.has(one)))
      this.#position = [seq, more ? this.#position?.[1] ?? 0 : seq];
    if (more) return;
    this.#attempts = 0;
    for (const mirror of connection.live) if (!mirror.isWatch) mirror.emit("synced", seq);
  }
}

export const connect = (url, options) => new Client(url, options);
