// Creates and changes runs over HTTP, from a seed. It remembers what each acknowledged write promised, so that tests can
// check it later.
//
//   const generator = new Generator(gateway, new Random(seed));
//   await generator.work(500, { parallel: 8 });       // writers
//   generator.startWorker(); …; await generator.stopWorker();
//   generator.promises                                // [{ id, seq, what, holds(fields) }]
import { Attempt, inMs, thrown, Worker } from "./worker_calls.mjs";
import { sleep } from "./gateway.mjs";

const tags = Array.from({ length: 8 }, (_, i) => `t${i}`);
const tasks = ["worked", "worked-too", "waiting"];
const final = ["CANCELED", "COMPLETED", "FAILED", "EXPIRED", "CRASHED", "SYSTEM_FAILURE", "TIMED_OUT", "INTERRUPTED"];

export class Generator {
  constructor(gateway, random) {
    Object.assign(this, { gateway, random });
    this.promises = [];
    this.ids = [];
    this.batches = [];
    this.busy = new Set(); // ids with a write in flight: one writer per run, so that promises have an order
    this.counts = new Map(); // id -> n of its metadata
    this.lastSeq = 0;
    this.lost = 0; // writes without a response: the gateway was killed
    this.padding = 0; // bytes that metadata writes add
  }

  /** Executes that many operations, by writers in parallel. */
  async work(count, { parallel = 8 } = {}) {
    let left = count;
    await Promise.all(Array.from({ length: parallel }, async () => { while (left-- > 0) await this.one(); }));
  }

  async one() {
    const { random } = this;
    const operation = this.ids.length < 10 ? "trigger"
      : random.weighted({ trigger: 20, batch: 3, tag: 18, metadata: 35, cancel: 5, reschedule: 5, replay: 2 });
    const id = operation === "trigger" || operation === "batch" ? null : random.pick(this.ids);
    if (id && this.busy.has(id)) return;
    if (id) this.busy.add(id);
    try {
      await this[operation](id);
    } catch (error) {
      if (!["ECONNREFUSED", "ECONNRESET", "EPIPE"].includes(error.code)) throw error;
      this.lost++;
      await sleep(5); // before the next try
    } finally {
      this.busy.delete(id);
    }
  }

  /** Sends a request. A 2xx response is a promise, which holds from its position on. */
  async #write(method, target, body, promise) {
    const { status, headers, json, text } = await this.gateway.http.request(method, target, { body });
    if (status === 503) return null; // draining, starting
    if (status >= 500 || status === 404) throw new Error(`${method} ${target}: ${status} ${text}`);
    if (status >= 300) return null; // the state of the run does not allow it
    const [, seq] = headers["x-runs-seq"]?.split(".") ?? [];
    if (seq === undefined) throw new Error(`${method} ${target}: no x-runs-seq`);
    this.lastSeq = Math.max(this.lastSeq, Number(seq));
    for (const one of promise(json)) this.promises.push({ seq: Number(seq), ...one });
    return json;
  }

  #options() {
    const { random } = this;
    const options = { metadata: { n: 0 } };
    if (random.chance(0.9)) options.tags = random.some(tags, 1 + random.below(3));
    if (random.chance(0.2)) options.delay = random.chance(0.7) ? "1h" : new Date(Date.now() + 200).toISOString();
    if (random.chance(0.1)) options.idempotencyKey = `key-${random.below(20)}`;
    if (random.chance(0.1)) options.ttl = "1h";
    return options;
  }

  #created(id) {
    if (!this.ids.includes(id)) this.ids.push(id);
    if (!this.counts.has(id)) this.counts.set(id, 0);
    return { id, what: "exists", holds: () => true };
  }

  trigger() {
    const task = this.random.pick(tasks), payload = { text: "x".repeat(this.random.below(200)), n: this.random.below(1e9) };
    return this.#write("POST", `/api/v1/tasks/${task}/trigger`, { payload, options: this.#options() }, ({ id }) => [this.#created(id)]);
  }

  async batch() {
    const items = Array.from({ length: 2 + this.random.below(5) }, (_, i) => ({ task: this.random.pick(tasks), payload: i, options: this.#options() }));
    const json = await this.#write("POST", "/api/v1/tasks/batch", { items }, ({ runs }) => runs.map(({ id }) => this.#created(id)));
    if (json) this.batches.push(json.id);
  }

  tag(id) {
    const tag = this.random.pick(tags);
    return this.#write("POST", `/api/v1/runs/${id}/tags`, { tags: [tag] }, () => [{ id, what: `has tag ${tag}`, holds: (fields) => fields.tags.includes(tag) }]);
  }

  metadata(id) {
    const n = this.counts.get(id) + 1;
    this.counts.set(id, n);
    const operations = [{ type: "set", key: "n", value: n }];
    if (this.padding) operations.push({ type: "set", key: "pad", value: `${n}:`.padEnd(this.padding, "abcdefgh") });
    else if (this.random.chance(0.3)) operations.push({ type: "delete", key: "pad" });
    return this.#write("PUT", `/api/v1/runs/${id}/metadata`, { operations }, () => [{ id, what: `metadata n >= ${n}`, holds: (fields) => fields.metadata?.n >= n }]);
  }

  cancel(id) {
    return this.#write("POST", `/api/v2/runs/${id}/cancel`, undefined, () => [{ id, what: "is final", holds: (fields) => final.includes(fields.status) }]);
  }

  reschedule(id) {
    return this.#write("POST", `/api/v1/runs/${id}/reschedule`, { delay: this.random.chance(0.5) ? "2h" : new Date(Date.now() + 150).toISOString() },
      () => [{ id, what: "has a time", holds: (fields) => fields.delayedUntil !== undefined }]);
  }

  replay(id) {
    return this.#write("POST", `/api/v1/runs/${id}/replay`, undefined, ({ id: copy }) => [this.#created(copy)]);
  }

  // ---- the worker's side, along with the writers ----

  startWorker() {
    this.working = true;
    this.workers = Promise.all([1, 2].map(() => this.#workOn()));
  }

  async stopWorker() {
    this.working = false;
    await this.workers;
  }

  async #workOn() {
    const described = tasks.slice(0, 2).map((id) => ({ id, retry: { maxAttempts: 3 } }));
    let worker;
    while (this.working) {
      try {
        worker ??= await Worker.register(this.gateway, { tasks: described, hash: "model" });
        // A dequeue that has timed out must be closed, so that its run goes to another worker.
        const { json } = await worker.post("/engine/v1/dev/dequeue", { oldWorkers: [] }, { timeoutMs: 400 });
        for (const message of json?.dequeuedMessages ?? []) await this.#execute(new Attempt(worker, message));
      } catch (error) {
        if (/no answer within/.test(error.message)) continue;
        if (!error.code?.startsWith("E")) throw error;
        await sleep(10); // killed, or canceled meanwhile: the run no longer belongs to this worker
      }
    }
  }

  async #execute(attempt) {
    const { random } = this;
    await attempt.start();
    for (let tries = 1; tries < 3 && random.chance(0.3); tries++) {
      const { attemptStatus } = await attempt.fail(thrown, { retry: inMs(0) });
      if (attemptStatus !== "RETRY_IMMEDIATELY") return;
      await attempt.start();
    }
    if (random.chance(0.8)) await attempt.succeed({ n: random.below(1000), text: "y".repeat(random.below(100)) });
    else await attempt.fail();
  }
}
