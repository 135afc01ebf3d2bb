// The delivery rules of runs.v1 as a model, after tests/conformance/realtime/ws-model.mjs, which serves clients through
// sockets of scripted_gateway.mjs: a random generator decides which frames are sent, when, and which of them arrive. A gateway that drains keeps
// its connections while new ones exist, as if there were several gateways.
import assert from "node:assert/strict";

const columns = ["status", "durationMs", "metadata", "output"];
const maxRecent = 6, maxFrames = 3;

export class ModelGateway {
  constructor(random) {
    Object.assign(this, { random, epoch: "e1", seq: 0, runs: new Map(), recent: [], dropped: 0, links: new Set() });
    this.lists = new Map(); // seq and request of a watch -> its content at that seq
  }

  create(tags) {
    const id = `run_${String(this.runs.size + 1).padStart(5, "0")}`, born = this.seq + 1;
    const run = { id, version: 0, rev: 0, born, fields: {}, revs: {}, tags: Object.fromEntries(tags.map((tag) => [tag, born])), wholeRev: 0 };
    this.runs.set(id, run);
    this.change(run, Object.fromEntries(columns.map((name) => [name, 0])));
    return run;
  }

  change(run, fields, tag) {
    const seq = ++this.seq;
    run.version++;
    run.rev = seq;
    for (const name of Object.keys(fields)) run.revs[name] = seq;
    Object.assign(run.fields, fields);
    if (tag && !run.tags[tag]) {
      run.tags[tag] = seq;
      run.wholeRev = seq;
    }
    if (run.version === 1) run.wholeRev = seq;
    const row = run.wholeRev === seq ? this.whole(run) : [run.id, run.version, { ...fields }];
    this.recent.push({ seq, id: run.id, tags: { ...run.tags }, row });
    while (this.recent.length > maxRecent) this.dropped = this.recent.shift().seq;
  }

  whole(run) {
    const time = new Date(run.born * 1000).toISOString();
    return [run.id, run.version, { id: run.id, taskIdentifier: "task", createdAt: time, updatedAt: time, tags: Object.keys(run.tags), ...run.fields }, 1];
  }

  /** The newest runs of a watch: here a status is a number, and a filter selects even or odd ones. */
  listed({ filter, limit }) {
    return [...this.runs.values()].reverse().filter(({ fields }) => fields.status % 2 === filter.odd).slice(0, limit);
  }

  /** The row of a run for a client that was complete at base. */
  since(run, base) {
    if (run.wholeRev > base || base === 0) return this.whole(run);
    const fields = { status: run.fields.status, durationMs: run.fields.durationMs };
    for (const name of ["metadata", "output"]) if (run.revs[name] > base) fields[name] = run.fields[name];
    return [run.id, run.version, fields];
  }

  accept(socket) { this.links.add(new Link(this, socket)); }

  /** Ends all connections like a kill and a restart: on the same data, or on older data in a new epoch. */
  restart(epoch = this.epoch) {
    for (const link of [...this.links]) link.end(1006);
    Object.assign(this, { recent: [], dropped: this.seq, epoch });
  }

  /** Asserts that the mirror of a filter, in sync up to seq, has the runs as they were at seq. */
  check(filter, mirror, seq) {
    for (const run of this.runs.values()) {
      if (!fits(filter, run.id, run.tags) || joined(filter, run) > seq) continue;
      const shown = mirror.get(run.id);
      assert.ok(shown, `${run.id} is missing at ${seq}`);
      for (const name of columns)
        if (run.revs[name] <= seq) assert.equal(shown[name], run.fields[name], `${name} of ${run.id} at ${seq}`);
    }
  }
}

const fits = (filter, id, tags) => (filter.run ? filter.run === id : filter.all || filter.tags.every((tag) => tags[tag]));
const joined = (filter, run) => Math.max(run.born, ...(filter.tags ?? []).map((tag) => run.tags[tag]));

/** The gateway's side of a connection. */
class Link {
  live = new Map();
  catching = new Map();
  watches = new Map();
  frames = [];
  visits = 0;

  constructor(gateway, socket) {
    Object.assign(this, { gateway, socket, seen: gateway.seq, base: gateway.seq });
    socket.send = (text) => this.#read(JSON.parse(text));
    const { close } = socket;
    socket.close = () => {
      gateway.links.delete(this);
      close.call(socket);
    };
  }

  #read({ op, id, from, ...filter }) {
    if (op === "hello") return this.#queue({ op: "welcome", epoch: this.gateway.epoch, seq: this.gateway.seq, limits: { burst: 200, messagesPerSecond: 50 } });
    if (op === "watch") {
      this.watches.set(id, { request: filter, seq: 0, has: undefined });
      return this.#queue({ op: "ok", id, mode: "snapshot" });
    }
    if (op === "unsub") {
      const known = this.live.delete(id) || this.catching.delete(id) || this.watches.delete(id);
      return this.#queue(known ? { op: "end", id } : { op: "error", id, code: "unknown_id", message: "none" });
    }
    const resumes = from && from[0] === this.gateway.epoch && from[1] <= this.gateway.seq;
    this.catching.set(id, { filter, seen: resumes ? from[1] : 0, base: resumes ? from[2] : 0 });
    return this.#queue({ op: "ok", id, mode: resumes ? "resume" : "snapshot" });
  }

  #queue(message) { this.frames.push(message); }

  /** Delivers the next frame. */
  deliver() {
    const message = this.frames.shift();
    if (this.socket.readyState === 0) this.socket.open();
    if (message) this.socket.deliver(message);
  }

  /** Closes the connection; frames in flight are lost. */
  end(code) {
    this.gateway.links.delete(this);
    this.socket.remoteClose(code);
  }

  drain() { this.#queue({ op: "drain", in: 0 }); }

  visit(most) {
    const { gateway } = this;
    if (this.socket.readyState !== 1 || this.frames.length >= maxFrames) return;
    for (const [id, watch] of this.watches) this.#visitWatch(id, watch, most);
    if (!this.live.size) this.seen = this.base = gateway.seq;
    const clean = this.#visitLive(most);
    if (this.frames.length >= maxFrames) return;
    for (const [id, one] of this.catching) {
      const changed = this.#changedSince(one.seen, [one.filter]);
      if (changed.length <= most && !clean) return;
      const part = changed.slice(0, most), more = changed.length > most;
      one.seen = more ? part.at(-1).rev : gateway.seq;
      this.#queue({ op: "rows", id, seq: one.seen, more, rows: part.map((run) => gateway.since(run, one.base)) });
      if (more) return;
      this.catching.delete(id);
      this.live.set(id, one.filter);
      this.seen = this.base = gateway.seq;
      return;
    }
    if (clean && this.live.size && gateway.random.chance(0.1)) this.#queue({ op: "ping", seq: gateway.seq });
  }

  /** The changes of a list; the whole list at first, and for a client that fell behind. */
  #visitWatch(id, watch, most) {
    const { gateway } = this, { request, has, seq } = watch, list = gateway.listed(request);
    const begin = !has || gateway.random.chance(0.05), rows = [];
    for (const run of list) {
      if (begin || !has.has(run.id)) rows.push(gateway.whole(run));
      else if (run.rev > seq) rows.push(gateway.since(run, seq));
    }
    for (const run of begin ? [] : has) if (!list.some((one) => one.id === run)) rows.push([run, gateway.runs.get(run).version, null, 2]);
    Object.assign(watch, { has: new Set(list.map((run) => run.id)), seq: gateway.seq });
    if (!begin && !rows.length) return;
    gateway.lists.set(`${gateway.seq} ${JSON.stringify(request)}`, list.map((run) => gateway.whole(run)[2]));
    for (let at = 0; at === 0 || at < rows.length; at += most)
      this.#queue({ op: "list", id, seq: gateway.seq, ...(begin && at === 0 && { begin }), more: at + most < rows.length, rows: rows.slice(at, at + most) });
  }

  #changedSince(seq, filters) {
    return [...this.gateway.runs.values()].filter((run) => run.rev > seq && filters.some((filter) => fits(filter, run.id, run.tags)))
      .sort((a, b) => a.rev - b.rev);
  }

  #visitLive(most) {
    const { gateway } = this, filters = [...this.live.values()];
    if (this.seen === gateway.seq && this.seen === this.base) return true;
    if (this.seen === this.base && this.seen >= gateway.dropped) {
      for (const { seq, id, tags, row } of gateway.recent)
        if (seq > this.seen && filters.some((filter) => fits(filter, id, tags))) this.#queue({ op: "patch", seq, rows: [row] });
      this.seen = this.base = gateway.seq;
      return true;
    }
    const changed = this.#changedSince(this.seen, filters), more = changed.length > most;
    const newest = more && ++this.visits % 8 === 0, part = newest ? changed.slice(-most) : changed.slice(0, most);
    if (!newest) this.seen = more ? part.at(-1).rev : gateway.seq;
    this.#queue({ op: "patch", seq: this.seen, more, rows: part.map((run) => gateway.since(run, this.base)) });
    if (!more) this.base = this.seen;
    return !more;
  }
}
