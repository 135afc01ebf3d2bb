// Writers that a kill or a failing disk interrupts, and the check afterwards: acknowledged writes exist, batches are
// complete or absent, and keys and positions continue.
import assert from "node:assert/strict";

import { keys, sleep } from "./gateway.mjs";
import { RunsSocket } from "./runs.mjs";

export const trigger = (gateway, options, payload = 1) => gateway.post("/api/v1/tasks/durable/trigger", { payload, options });
export const seqOf = ({ headers }) => Number(headers["x-runs-seq"].split(".")[1]);

/** Every run of the environment: id -> its tags. */
export async function everyRun(gateway) {
  const socket = await RunsSocket.open({ port: gateway.port, token: keys.dev, hello: { fields: [] } });
  socket.send({ op: "sub", id: 1, all: true });
  const runs = new Map();
  for (let more = true; more;) {
    const message = await socket.next("rows", 30_000);
    for (const [id, , { tags }] of message.rows) runs.set(id, tags);
    more = message.more;
  }
  await socket.cut();
  return runs;
}

/** Writers that remember what they sent, and which writes were acknowledged. */
export class Load {
  /** disk: "working", "failing" (responses may be wrong) or "failed" (nothing is written). */
  constructor(gateway, random) {
    Object.assign(this, { gateway, random, disk: "working" });
    this.sent = new Map(); // tag -> number of runs in the request
    this.acknowledged = new Map(); // id -> tag
    this.keys = new Map(); // idempotency key -> id; null: unknown whether the run exists
    this.seq = 0;
  }

  /** Creates one run before the writers start. */
  async begin() {
    const first = await trigger(this.gateway, { tags: ["sent-0"] });
    this.sent.set("sent-0", 1);
    this.acknowledged.set(first.json.id, "sent-0");
  }

  async run() {
    this.stopped = false;
    await Promise.all(Array.from({ length: 12 }, (_, i) => this.#write(i < 2)));
  }

  async #write(batches) {
    while (!this.stopped) {
      const tag = `sent-${this.sent.size}`;
      try {
        if (batches) await this.#batch(tag);
        else await this.#trigger(tag);
      } catch (error) {
        if (!["ECONNREFUSED", "ECONNRESET", "EPIPE"].includes(error.code)) throw error;
        return; // killed
      }
    }
  }

  /** Returns true if a successful response means that the write is on disk. began: the state of the disk when the request
   *  was sent. */
  async #counts({ status, text }, success, began) {
    if (this.disk === "working") assert.equal(status, success, text);
    else if (began === "failed") assert.equal(status, 503, `without a disk: ${text}`);
    if (status === 503) await sleep(5); // before the next try
    return this.disk === "working";
  }

  #note(reply, ids, tag) {
    for (const id of ids) this.acknowledged.set(id, tag);
    this.seq = Math.max(this.seq, seqOf(reply));
    this.epoch ??= reply.headers["x-runs-seq"].split(".")[0];
  }

  // An expired run would free its key, so these runs do not expire during the test.
  async #trigger(tag) {
    const key = this.random.chance(0.3) ? tag : undefined;
    this.sent.set(tag, 1);
    if (key) this.keys.set(key, null);
    const began = this.disk;
    const reply = await trigger(this.gateway, { tags: [tag], idempotencyKey: key, ttl: "7d" }, "x".repeat(this.random.below(2000)));
    if (!await this.#counts(reply, 200, began)) return;
    this.#note(reply, [reply.json.id], tag);
    if (key) this.keys.set(key, reply.json.id);
  }

  async #batch(tag) {
    const items = Array.from({ length: 2 + this.random.below(30) }, (_, i) => ({ task: "durable", payload: i, options: { tags: [tag] } }));
    this.sent.set(tag, items.length);
    const began = this.disk;
    const reply = await this.gateway.post("/api/v1/tasks/batch", { items });
    if (!await this.#counts(reply, 202, began)) return;
    this.#note(reply, reply.json.runs.map(({ id }) => id), tag);
  }

  async judge() {
    const runs = await everyRun(this.gateway), counts = new Map();
    for (const [id, tag] of this.acknowledged) assert.deepEqual(runs.get(id), [tag], `${id} was acknowledged`);
    for (const [id, [tag]] of runs) {
      assert.ok(this.sent.has(tag), `${id} was never requested`);
      counts.set(tag, (counts.get(tag) ?? 0) + 1);
    }
    for (const [tag, count] of counts) assert.equal(count, this.sent.get(tag), `${tag}: whole or absent`);
    await this.#judgeKeys(runs, counts);
  }

  async #judgeKeys(runs, counts) {
    for (const key of this.random.some([...this.keys.keys()], 12)) {
      const reply = await trigger(this.gateway, { tags: [key], idempotencyKey: key, ttl: "7d" });
      const there = this.keys.get(key) ?? [...runs].find(([, tags]) => tags[0] === key)?.[0];
      assert.deepEqual([reply.json.isCached, there ? reply.json.id : null], [there !== undefined, there ?? null], `key ${key}`);
      this.keys.set(key, reply.json.id);
      this.#note(reply, [reply.json.id], key);
      counts.set(key, 1);
    }
    const before = this.seq;
    const reply = await trigger(this.gateway, { tags: ["sent-0"], idempotencyKey: "positions", ttl: "7d" });
    const [epoch] = reply.headers["x-runs-seq"].split(".");
    assert.equal(epoch, this.epoch, "the same history");
    assert.ok(seqOf(reply) >= before, `position ${seqOf(reply)} after ${before}`);
    this.sent.set("sent-0", 2);
    this.acknowledged.set(reply.json.id, "sent-0");
  }
}
