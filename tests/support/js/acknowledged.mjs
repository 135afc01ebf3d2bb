// Clients that trigger runs and remember the acknowledged ones, and the check afterwards: each acknowledged run exists
// exactly once, whatever happened to gateways and databases meanwhile.
//
//   const writers = new Writers(url, { clients: 4 });
//   … kill, cut, restart …
//   await writers.stop(); writers.judge(postgres);
//
// A call is repeated under its own key until it is answered, as SDKs do, but for longer. Several Writers can use one
// database, one after the other or at once, since each uses its own names.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import { keys, sleep } from "./gateway.mjs";
import { HttpClient } from "./http.mjs";

let writers = 0;

/** Returns the runs of a database whose payloads have names that begin with the prefix, as name -> id. Asserts that each
 *  name is stored once. */
export function storedRuns(postgres, prefix = "") {
  const stored = new Map();
  for (const line of postgres.query("SELECT encode(r.id, 'escape'), convert_from(p.body, 'UTF8') FROM runcast.run r JOIN runcast.run_payload p USING (env, id)").split("\n").filter(Boolean)) {
    const [id, body] = line.split("|"), payload = JSON.parse(body), { name } = payload.json ?? payload; // an SDK writes SuperJSON
    if (!name?.startsWith(prefix)) continue;
    assert.ok(!stored.has(name), `${name} is stored once, not as ${stored.get(name)} and ${id}`);
    stored.set(name, id);
  }
  assert.equal(postgres.query("SELECT count(*) FROM runcast.run r JOIN runcast.environment e USING (env) WHERE r.rev > e.seq"), "0");
  return stored;
}

export class Writers {
  constructor(url, { clients = 4, key = keys.prod, pauseMs = 5 } = {}) {
    Object.assign(this, { key, pauseMs, prefix: `${++writers}:`, stopped: false, gaveUp: false, acknowledged: new Map(), longestMs: 0, refusals: new Map(), lastMs: Date.now() });
    this.http = new HttpClient(url, key);
    this.work = Promise.all(Array.from({ length: clients }, (_, client) => this.#write(client)));
    this.work.catch(() => {}); // stop() reports it
  }

  async #write(client) {
    for (let n = 0; !this.stopped; n++, await sleep(this.pauseMs)) {
      const name = `${this.prefix}${client}-${n}`, began = Date.now();
      const { json } = await this.repeat("POST", "/api/v1/tasks/task/trigger", { payload: { name }, options: { tags: [`client-${client}`] } });
      if (!json) return;
      this.acknowledged.set(name, json.id);
      this.lastMs = Date.now();
      this.longestMs = Math.max(this.longestMs, this.lastMs - began);
    }
  }

  /** Repeats a call until it gets a response other than 5xx, or until giveUp() is called. */
  async repeat(method, target, body) {
    const headers = { "x-trigger-request-idempotency-key": randomUUID() };
    for (;; await sleep(50)) {
      const reply = await this.http.request(method, target, { body, headers, timeoutMs: 10_000 }).catch((error) => ({ status: 0, text: error.code ?? error.message }));
      if (reply.status === 200) return reply;
      if (this.gaveUp) return {};
      assert.ok(reply.status === 0 || reply.status >= 500, `${target}: ${reply.status} ${reply.text}`);
      const why = `${reply.status} ${reply.text.slice(0, 100)}`;
      this.refusals.set(why, (this.refusals.get(why) ?? 0) + 1);
    }
  }

  get count() { return this.acknowledged.size; }

  /** Resolves when a write that began after this call is acknowledged; returns how many ms that took. */
  async untilServed(timeoutMs = 30_000) {
    const began = Date.now(), count = this.count;
    while (this.count < count + 8) { // at most as many writes were in flight as there are clients
      if (Date.now() - began > timeoutMs) throw new Error(`no write was acknowledged for ${timeoutMs} ms: ${JSON.stringify([...this.refusals])}`);
      await sleep(10);
    }
    return Date.now() - began;
  }

  /** Stops without waiting for responses, after a test has failed. */
  giveUp() {
    this.stopped = this.gaveUp = true;
  }

  async stop() {
    this.stopped = true;
    await this.work;
    this.http.close();
  }

  /** Asserts that the database has exactly the acknowledged runs. */
  judge(postgres) {
    const stored = storedRuns(postgres, this.prefix);
    for (const [name, id] of this.acknowledged) assert.equal(stored.get(name), id, `${name}, which was acknowledged, is stored`);
    assert.equal(stored.size, this.acknowledged.size, "nothing else is stored");
  }
}
