// run_list.js - the rows of the table of runs: a live list of the newest ones, and pages of older ones.
//
//   head  - rows of the live list, newest first; it moves while the table is at its top
//   tail  - older rows, loaded page by page while the user scrolls
//
// When the user has scrolled, no row moves (hold). The content of each row stays live, and new runs are
// counted until the table is at its top again. Unfinished rows outside the live list are followed one
// by one while they are on the screen.
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
  isWhole = false; // there are no older rows
  isLoading = false;
  newCount = 0;
  tailError;
  #place;
  #filter;
  #mirror;
  #followed = new Map(); // id -> mirror
  #fresh = new Map(); // id -> run: current state of followed rows
  #generation = 0; // of the tail: pages of an older one are discarded

  constructor(place, filter) {
    super();
    this.#place = place;
    this.#filter = filter;
    this.draw = perFrame(() => this.#take());
    this.#mirror = clientOf(place).watch(watchFilter(filter), { limit: headLimit, counts: true });
    this.ends = ["change", "synced", "state"].map((event) => this.#mirror.on(event, this.draw));
  }

  get state() { return this.#mirror.state; }
  get error() { return this.#mirror.error; }
  get counts() { return this.#mirror.counts; }
  get length() { return this.head.length + this.tail.length; }

  at(index) {
    const row = index < this.head.length ? this.head[index] : this.tail[index - this.head.length];
    return row && (this.#mirror.runs.get(row.id) ?? this.#fresh.get(row.id) ?? row);
  }

  ids() { return [...this.head, ...this.tail].map(({ id }) => id); }

  indexOf(id) {
    const at = this.head.findIndex((run) => run.id === id);
    if (at >= 0) return at;
    const older = this.tail.findIndex((run) => run.id === id);
    return older < 0 ? -1 : older + this.head.length;
  }

  #take() {
    const { runs } = this.#mirror;
    if (!this.isHeld) {
      this.head = [...runs.values()];
      this.newCount = 0;
      if (this.#mirror.state === "live") this.isWhole = this.head.length < headLimit;
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

  /** The table has left its top (true), or is there again. */
  hold(isHeld) {
    if (isHeld === this.isHeld) return;
    this.isHeld = isHeld;
    if (!isHeld) {
      this.#generation++;
      this.tail = [];
      this.isLoading = false;
      this.tailError = undefined;
      this.follow([]);
      this.#fresh.clear();
    }
    this.draw();
  }

  /** Loads one more page of older rows. */
  async loadOlder() {
    if (this.isLoading || this.isWhole || !this.isHeld || !this.head.length) return;
    const generation = this.#generation, last = this.tail.at(-1) ?? this.head.at(-1);
    this.isLoading = true;
    this.tailError = undefined;
    this.emit("change");
    try {
      const { data, pagination } = await session.ask(this.#place, "GET", `/api/v1/runs?${listQuery(this.#filter, { size: pageSize, after: cursorOf(last.id) })}`);
      if (generation !== this.#generation) return;
      this.tail = this.tail.concat(data);
      this.isWhole = !pagination?.next;
    } catch (error) {
      if (generation === this.#generation) this.tailError = error;
    }
    if (generation !== this.#generation) return;
    this.isLoading = false;
    this.emit("change");
  }

  /** Sets the rows that are on the screen. */
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
        if (run) this.#fresh.set(id, run);
        this.draw();
      });
    }
  }

  close() {
    this.#generation++;
    this.draw.cancel();
    for (const end of this.ends) end();
    this.follow([]);
    this.#mirror.close();
  }
}
