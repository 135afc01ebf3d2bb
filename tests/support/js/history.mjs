// The state of the whole environment at every position, recorded by a subscriber that receives every change; and the
// check of other subscribers against it.
//
//   recorder ──► History: run ► [rev, version, facts, state]
//   subscriber ──► log: it received version v of a run; it was in sync with S, live on filters
//   judge: at each S all rows of live filters equal those of the history at S; a version is the
//          same state for every subscriber
//
// While the recorder is not connected (a restart), the history has an interval of which only the end is known. States
// that others received within it are judged at the next sync.
import assert from "node:assert/strict";
import crypto from "node:crypto";

import { matches, RunsMirror } from "./runs.mjs";

const alwaysSent = new Set(["id", "status", "tags", "batchId", "taskIdentifier", "createdAt", "updatedAt"]);

/** A short text that identifies a state, of the fields that a view has. */
export function digest(fields, wanted = () => true) {
  const text = JSON.stringify(Object.entries(fields).filter(([name]) => wanted(name)).sort(([a], [b]) => (a < b ? -1 : 1)));
  return text.length < 300 ? text : crypto.createHash("sha1").update(text).digest("hex");
}

export class History {
  constructor() {
    this.runs = new Map(); // id -> [{ rev, version, fields }], rising
    this.changes = []; // [{ rev, id }], rising
    this.unknown = []; // [after, untilSeq): intervals in which changes may be missing
    this.seq = 0;
  }

  /** A change of a run, which happened after `this.seq` and at or before seq. */
  note(id, version, fields, seq) {
    const entries = this.runs.get(id) ?? this.runs.set(id, []).get(id);
    const last = entries.at(-1);
    if (seq > this.seq + 1 || (last && version > last.version + 1)) this.unknown.push([this.seq, seq]);
    entries.push({ rev: seq, version, fields });
    this.changes.push({ rev: seq, id });
  }

  isKnownAt(seq) { return seq <= this.seq && !this.unknown.some(([after, untilSeq]) => seq > after && seq < untilSeq); }

  /** The run as it was at this position; undefined before its creation. */
  at(id, seq) { return this.runs.get(id)?.findLast(({ rev }) => rev <= seq); }

  state(id, version) { return this.runs.get(id)?.find((entry) => entry.version === version); }

  /** Runs changed after one position, up to another. */
  *changedBetween(after, untilSeq) {
    let low = 0, high = this.changes.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.changes[middle].rev <= after) low = middle + 1;
      else high = middle;
    }
    for (; low < this.changes.length && this.changes[low].rev <= untilSeq; low++) yield this.changes[low].id;
  }
}

/** Subscribes to everything, is never slow, and fills the history. */
export class Recorder extends RunsMirror {
  constructor(options) {
    super(options);
    this.history = new History();
    this.walked = []; // rows of a walk: their changes are known to be up to its end
    this.subscribe({ all: true });
  }

  receive(message) {
    super.receive(message);
    if ((message.op !== "patch" && message.op !== "rows") || message.more) return;
    for (const { id, version, fields } of this.walked.splice(0)) this.history.note(id, version, fields, message.seq);
    this.history.seq = message.seq;
  }

  onRun(id, version, fields) { this.walked.push({ id, version, fields }); }
}

/** A mirror that logs what it receives, to be judged when the history has the same changes. */
export class Subscriber extends RunsMirror {
  constructor(name, options) {
    super(options);
    this.name = name;
    this.log = [];
    this.view = new Map(); // id -> version, as far as the log was judged
    this.judgedTo = 0;
    this.syncs = 0;
    this.states = 0;
    const fields = options.hello?.fields;
    const minus = fields?.filter((field) => field.startsWith("-")).map((field) => field.slice(1));
    const has = !fields ? () => true : minus.length ? (field) => !minus.includes(field) : (field) => fields.includes(field);
    this.shows = (field) => (alwaysSent.has(field) || has(field)) && !(options.hello?.api && field === "status");
  }

  onRun(id, version, fields) { this.log.push({ id, version, state: digest(fields, this.shows) }); }

  onForget(id) { this.log.push({ forgotten: id }); }

  onSync(seq) {
    const live = this.liveFilters();
    if (live.length) this.log.push({ seq, live, key: JSON.stringify(live) });
  }

  /** Throws at the first logged state that is wrong. */
  judge(history) {
    let touched = new Set();
    const log = this.log;
    this.log = [];
    for (const entry of log) {
      if (entry.forgotten) {
        this.view.delete(entry.forgotten);
        continue;
      }
      if (entry.id) {
        this.#judgeState(history, entry);
        touched.add(entry.id);
        continue;
      }
      if (!history.isKnownAt(entry.seq)) continue; // the next sync repeats this and more
      const everything = entry.key !== this.liveKey || entry.seq < this.judgedTo;
      const ids = everything ? history.runs.keys() : new Set([...history.changedBetween(this.judgedTo, entry.seq), ...touched]);
      for (const id of ids) this.#judgeRun(history, id, entry);
      this.liveKey = entry.key;
      this.judgedTo = entry.seq;
      touched = new Set();
      this.syncs++;
    }
  }

  #judgeState(history, { id, version, state }) {
    const before = this.view.get(id) ?? 0;
    assert.ok(version > before, `${this.name}: ${id} went from version ${before} to ${version}`);
    this.view.set(id, version);
    const known = history.state(id, version);
    if (!known) return; // received in an interval that is not known
    assert.equal(state, digest(known.fields, this.shows), `${this.name}: ${id} at version ${version}`);
    this.states++;
  }

  #judgeRun(history, id, { seq, live }) {
    const then = history.at(id, seq);
    if (!then || !live.some((filter) => matches(filter, id, then.fields))) return;
    assert.equal(this.view.get(id), then.version, `${this.name}: the version of ${id} when in sync with ${seq}`);
  }

  /** Asserts, when no run changes, that the mirror has exactly the runs that its filters match. */
  judgeTable(history) {
    const live = this.liveFilters(), wanted = [], shown = [...this.runs].map(([id, run]) => `${id} ${run.version}`);
    for (const [id, entries] of history.runs) {
      const { version, fields } = entries.at(-1);
      if (live.some((filter) => matches(filter, id, fields))) wanted.push(`${id} ${version}`);
    }
    assert.deepEqual(shown.sort(), wanted.sort(), `the table of ${this.name}`);
  }
}
