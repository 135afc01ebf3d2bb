// The client's side of one watch of runs.v1. It keeps rows by id as runcast/protocol.h requires of clients, and throws when
// a guarantee is broken.
import assert from "node:assert/strict";

export class WatchMirror {
  constructor(limit = 100) {
    Object.assign(this, { limit, runs: undefined, counts: undefined, begins: 0, frames: 0, skipped: 0, seq: 0 });
  }

  /** Applies a list or counts message. Returns true if the mirror then equals the list at seq. */
  take(message) {
    if (message.op === "counts") {
      assert.ok(message.seq >= (this.counts?.seq ?? 0), "counts never go back");
      this.counts = message;
      return false;
    }
    assert.equal(message.op, "list");
    this.frames++;
    if (message.begin) {
      this.begins++;
      this.runs = new Map();
    }
    assert.ok(this.runs, "the first frame begins");
    for (const [id, version, fields, mark] of message.rows) this.row(id, version, fields, mark);
    this.isSynced = !message.more;
    if (message.more) return false;
    assert.ok(message.seq >= this.seq, "syncs never go back");
    assert.ok(this.runs.size <= this.limit, `${this.runs.size} rows, and the limit is ${this.limit}`);
    this.seq = message.seq;
    return true;
  }

  row(id, version, fields, mark) {
    const known = this.runs.get(id);
    if (mark === 2) {
      assert.equal(fields, null);
      this.runs.delete(id);
      return;
    }
    if (!mark) assert.ok(known, `a change of ${id}, which was never sent whole`);
    if (known && version < known.version) return;
    if (known) this.skipped += Math.max(0, version - known.version - 1);
    this.runs.set(id, { version, fields: mark ? fields : { ...known.fields, ...fields } });
  }

  get ids() { return [...(this.runs ?? new Map()).keys()].sort().reverse(); }
  statusOf(id) { return this.runs.get(id)?.fields.status; }
}
