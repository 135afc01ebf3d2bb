// Calls of the worker API one by one, for tests of that API. The functions *Reply return responses, also refusals.
//
//   const worker = await Worker.register(gateway, { tasks: ["hello"] });
//   const attempt = await worker.take(id);          // dequeue and start
//   await attempt.succeed({ n: 1 });
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import { keys } from "./gateway.mjs";

export const internal = (code) => ({ type: "INTERNAL_ERROR", code });
export const thrown = { type: "BUILT_IN_ERROR", name: "Error", message: "boom", stackTrace: "Error: boom\n    at x" };

/** The retry of a completion, as workers send it. */
export const inMs = (delay) => ({ timestamp: Date.now() + delay, delay });

export class Worker {
  /** { tasks: names or task objects, queues, hash, key, and other members of the metadata } */
  static async register(gateway, { tasks = ["hello"], queues = [], hash = randomUUID(), key = keys.dev, ref, ...more } = {}) {
    const worker = new Worker(gateway, key);
    const reply = await worker.registration({ tasks, queues, hash, ref, ...more });
    assert.equal(reply.status, 200, reply.text);
    return Object.assign(worker, reply.json);
  }

  constructor(gateway, key = keys.dev) {
    Object.assign(this, { gateway, key });
  }

  registration({ tasks, queues = [], hash, ref = keys.ref, ...more }) {
    const metadata = {
      packageVersion: "4.8.3", contentHash: hash, queues, ...more,
      tasks: tasks.map((task) => ({ filePath: "src/tasks.ts", ...(task.id ? task : { id: task }) })),
    };
    return this.post(`/api/v1/projects/${ref}/background-workers`, { localOnly: true, engine: "V2", metadata });
  }

  /** Sends the body as text/plain, like the official client. A call with the id of an earlier one repeats that one. */
  post(target, body, { id = randomUUID(), timeoutMs } = {}) {
    const headers = { "content-type": "text/plain;charset=UTF-8", "x-trigger-request-idempotency-key": id };
    return this.gateway.post(target, JSON.stringify(body), { key: this.key, headers, timeoutMs });
  }

  async trigger(task, options = {}, payload = {}) {
    const reply = await this.gateway.post(`/api/v1/tasks/${task}/trigger`, { payload, options }, { key: this.key });
    assert.equal(reply.status, 200, reply.text);
    return reply.json.id;
  }

  /** Returns { run, a, b }: the run, its status for SDK 3.x (a), and its status for SDK 4.x (b). */
  async show(id) {
    const older = await this.gateway.get(`/api/v3/runs/${id}`, { key: this.key });
    const newer = await this.gateway.get(`/api/v3/runs/${id}`, {
      key: this.key, headers: { "x-trigger-api-version": "2025-07-16" },
    });
    assert.equal(older.status, 200, older.text);
    return { run: older.json, a: older.json.status, b: newer.json.status };
  }

  async status(id) { return (await this.show(id)).a; }

  /** Dequeues a run; returns its attempt, or undefined if there was no run for 10 s. */
  async dequeue() {
    const reply = await this.post("/engine/v1/dev/dequeue", { currentWorker: this.id, oldWorkers: [] });
    assert.equal(reply.status, 200, reply.text);
    assert.ok(reply.json.dequeuedMessages.length <= 1);
    const [message] = reply.json.dequeuedMessages;
    return message && new Attempt(this, message);
  }

  /** Dequeues a run and starts it. If an id is given, the dequeued run must have it. */
  async take(id) {
    const attempt = await this.dequeue();
    assert.ok(attempt, "a run is ready");
    if (id) assert.equal(attempt.id, id);
    return attempt.start();
  }

  latest(id) { return this.gateway.get(`/engine/v1/dev/runs/${id}/snapshots/latest`, { key: this.key }); }
  cancel(id) { return this.gateway.post(`/api/v2/runs/${id}/cancel`, {}, { key: this.key }); }
  disconnect(ids) { return this.post("/engine/v1/dev/disconnect", { runFriendlyIds: ids }); }
}

/** A run that this worker has dequeued; snapshot is the newest one that it has received. */
export class Attempt {
  constructor(worker, message) {
    Object.assign(this, { worker, message, id: message.run.friendlyId, snapshot: message.snapshot.friendlyId });
  }

  call(what, body, { snapshot = this.snapshot, ...more } = {}) {
    return this.worker.post(`/engine/v1/dev/runs/${this.id}/snapshots/${snapshot}/${what}`, body, more);
  }

  startReply(more) { return this.call("attempts/start", { isWarmStart: true }, more); }
  completeReply(completion, more) { return this.call("attempts/complete", { completion: { id: this.id, ...completion } }, more); }

  async start() {
    const reply = await this.startReply();
    assert.equal(reply.status, 200, reply.text);
    this.started = reply.json;
    this.snapshot = reply.json.snapshot.friendlyId;
    return this;
  }

  /** Sends the result; returns { attemptStatus, snapshot, run }. */
  async complete(completion) {
    const reply = await this.completeReply(completion);
    assert.equal(reply.status, 200, reply.text);
    this.snapshot = reply.json.result.snapshot.friendlyId;
    return reply.json.result;
  }

  succeed(output, more) {
    return this.complete({ ok: true, output: JSON.stringify(output), outputType: "application/json", ...more });
  }

  fail(error = thrown, more) { return this.complete({ ok: false, error, ...more }); }

  async heartbeat() {
    const reply = await this.call("heartbeat", { cpu: 0, memory: 0 });
    assert.equal(reply.status, 200, reply.text);
    assert.deepEqual(reply.json, { ok: true });
  }

  waitReply(date) { return this.worker.post(`/engine/v1/runs/${this.id}/wait/duration`, { date }); }

  /** Requests the newest snapshot, and uses it from now on; returns the execution. */
  async refresh() {
    const reply = await this.worker.latest(this.id);
    assert.equal(reply.status, 200, reply.text);
    this.snapshot = reply.json.execution.snapshot.friendlyId;
    return reply.json.execution;
  }
}
