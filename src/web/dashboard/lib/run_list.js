// run_list.js - the rows of the table of runs: a live list of the newest ones, and pages of older ones.
//
//   head  - rows of the live list, newest first; it moves while the table is at its top
//   tail  - older rows, loaded page by page while the user scrolls
//
// While the table is scrolled down (held), no row moves. The content of each row stays live, and new runs are
// counted until the table is at its top again. Unfinished rows outside the live list have a subscription
// each while they are on the screen.
import { Emitter } from "./emitter.js";
import { listQuery, watchFilter } from "./filter.js";
import { clientOf, perFrame } from "./live.js";
import { cursorOf } from "./run_id.js";
import { session } from "./session.js";
import { isFinal } from "./status.js";

const headLimit = 200, pageSize = 100, followedLimit = 100;

export class RunList extends Emitter {
  head = [];
  tail = [];
  isHeld = false;
  hasAllRows = false; // no older rows exist
  isLoading = false;
  newCount = 0;
  tailError;
  #place;
  #filter;
  #mirror;
  #followed = new Map(); // id -> mirror of a row outside the live list
  #currentRuns = new Map(); // id -> current state of a followed row
  #generation = 0; // of the tail; pages that were requested for an earlier one are discarded

  constructor(place, filter) {
    super();
    this.#place = place;
    this.#filter = filter;
    this.draw = perFrame(() => this.#update());
    this.#mirror = clientOf(place).watch(watchFilter(filter), { limit: headLimit, counts: true });
    this.removeListeners = ["change", "synced", "state"].map((event) => this.#mirror.on(event, this.draw));
  }

  get state() { return this.#mirror.state; }
  get error() { return this.#mirror.error; }
  get counts() { return this.#mirror.counts; }
  get length() { return this.head.length + this.tail.length; }

  at(index) {
    const row = index < this.head.length ? this.head[index] : this.tail[index - this.head.length];
    return row && (this.#mirror.runs.get(row.id) ?? this.#currentRuns.get(row.id) ?? row);
  }

  ids() { return [...this.head, ...this.tail].map(({ id }) => id); }

  indexOf(id) {
    const at = this.head.findIndex((run) => run.id === id);
    if (at >= 0) return at;
    const older = this.tail.findIndex((run) => run.id === id);
    return older < 0 ? -1 : older + this.head.length;
  }

  #update() {
    const { runs } = this.#mirror;
    if (!this.isHeld) {
      this.head = [...runs.values()];
      this.newCount = 0;
      if (this.#mirror.state === "live") this.hasAllRows = this.head.length < headLimit;
    } else {
      const newest = this.head[0]?.id;
      this.newCount = 0;
      for (const id of runs.keys()) {
        if (id === newest) break;
        this.newCount++;
      }
    }
    this.emit("change");
  }

  /** Called with true when the table leaves its top, and with false when it returns there. */
  hold(isHeld) {
    if (isHeld === this.isHeld) return;
    this.isHeld = isHeld;
    if (!isHeld) {
      this.#generation++;
      this.tail = [];
      this.isLoading = false;
      this.tailError = undefined;
      this.follow([]);
      this.#currentRuns.clear();
    }
    this.draw();
  }

  /** Loads one more page of older rows. */
  async loadOlder() {
    if (this.isLoading || this.hasAllRows || !this.isHeld || !this.head.length) return;
    const generation = this.#generation, last = this.tail.at(-1) ?? this.head.at(-1);
    this.isLoading = true;
    this.tailError = undefined;
    this.emit("change");
    try {
      const { data, pagination } = await session.request(this.#place, "GET", `/api/v1/runs?${listQuery(this.#filter, { size: pageSize, after: cursorOf(last.id) })}`);
      if (generation !== this.#generation) return;
      this.tail = this.tail.concat(data);
      this.hasAllRows = !pagination?.next;
    } catch (error) {
      if (generation === this.#generation) this.tailError = error;
    }
    if (generation !== this.#generation) return;
    this.isLoading = false;
    this.emit("change");
  }

  /** Subscribes to the unfinished rows among these, which are on the screen, and unsubscribes from all others. */
  follow(rows) {
    const wanted = new Set();
    for (const row of rows)
      if (row && !isFinal(row) && !this.#mirror.runs.has(row.id) && wanted.size < followedLimit) wanted.add(row.id);
    for (const [id, mirror] of this.#followed) {
      if (wanted.has(id)) continue;
      mirror.close();
      this.#followed.delete(id);
    }
    for (const id of wanted) {
      if (this.#followed.has(id)) continue;
      const mirror = clientOf(this.#place).subscribe({ run: id });
      this.#followed.set(id, mirror);
      mirror.on("change", () => {
        const run = mirror.runs.get(id);
        if (run) this.#currentRuns.set(id, run);
        this.draw();
      });
    }
  }

  close() {
    this.#generation++;
    this.draw.cancel();
    for (const remove of this.removeListeners) remove();
    this.follow([]);
    this.#mirror.close();
  }
}
