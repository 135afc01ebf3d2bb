// Clients of one address, for takeover.test.mjs here and in browser. Each has begin(round), which resolves when its work
// is in progress; pause(round), for work that must start shortly before the leader fails; end(round), which resolves
// when all work of the round has ended; and judge(postgres), after the last round.
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

import { storedRuns } from "../../../support/js/acknowledged.mjs";
import { follows } from "../../../support/js/followers.mjs";
import { keys, temporaryFolder, until } from "../../../support/js/gateway.mjs";
import { HttpClient } from "../../../support/js/http.mjs";
import { RunsMirror } from "../../../support/js/runs.mjs";
import { standsBy } from "../../../support/js/two_gateways.mjs";

const conformance = fileURLToPath(new URL("../..", import.meta.url));
export const WITHIN_MS = 60_000;

/** The gateways as their clients see them. Each call is repeated until it gets a response other than 5xx; a trigger keeps its
 *  idempotency key. */
export class Front {
  constructor({ url }) {
    this.url = url;
    this.http = new HttpClient(url);
  }

  get(target, more) { return this.http.request("GET", target, more); }
  post(target, body, more) { return this.http.request("POST", target, { body, ...more }); }

  async trigger(key, task, payload, options) {
    const body = { payload, options: { idempotencyKey: payload.name, ...options } };
    return (await this.#repeat(() => this.post(`/api/v1/tasks/${task}/trigger`, body, { key, timeoutMs: 10_000 }))).json.id;
  }

  cancel(key, id) { return this.#repeat(() => this.post(`/api/v2/runs/${id}/cancel`, undefined, { key, timeoutMs: 10_000 })); }

  putMetadata(key, id, metadata) { return this.#repeat(() => this.http.request("PUT", `/api/v1/runs/${id}/metadata`, { body: { metadata }, key, timeoutMs: 10_000 })); }

  async show(key, id) { return (await this.#repeat(() => this.get(`/api/v3/runs/${id}`, { key, timeoutMs: 10_000 }))).json; }

  #repeat(call) {
    return until(async () => {
      const reply = await call().catch(() => ({ status: 503 }));
      assert.ok(reply.status === 200 || reply.status >= 500, `${reply.status} ${reply.text}`);
      return reply.status === 200 && reply;
    }, { what: "an answer", everyMs: 50, timeoutMs: WITHIN_MS });
  }

  async settled(key, id, status) {
    let run;
    try {
      return await until(async () => { run = await this.show(key, id); return run.status === status && run; }, { everyMs: 100, timeoutMs: WITHIN_MS });
    } catch {
      throw new Error(`${id} is not ${status} within ${WITHIN_MS} ms: ${JSON.stringify(run)}`);
    }
  }
}

/** A process with an SDK: sdk_program.mjs. */
export class SdkClient {
  /** mustNotThrow: no call may throw, since the SDK's own retries suffice. */
  constructor(t, { name, folder, module, url, key, mustNotThrow = false }) {
    const env = { ...process.env, CLIENT: name, SDK_DIR: path.join(conformance, folder), SDK_MODULE: module, TRIGGER_API_URL: url, TRIGGER_SECRET_KEY: key,
      NODE_OPTIONS: "--experimental-global-webcrypto" }; // Node 18 has it as a global only on request
    Object.assign(this, { name, mustNotThrow, replies: {} });
    this.child = fork(fileURLToPath(new URL("sdk_program.mjs", import.meta.url)), { env, execArgv: [] });
    this.child.on("message", (message) => Object.assign(this.replies, message)).on("exit", (code) => { this.code = code; });
    t.after(() => this.child.kill("SIGKILL"));
  }

  begin(round) { return this.#request({ begin: round }, "begun"); }
  async pause() {}

  async end(round) {
    const { run, poll, batch } = await this.#request({ end: round }, "ended");
    assert.deepEqual([run, poll, ...batch], Array(4).fill("CANCELED"));
  }

  async judge(postgres, t) {
    const { acknowledged, longestMs, gaveUp } = await this.#request({ stop: true }, "stopped");
    t.diagnostic(`${Object.keys(acknowledged).length} runs; the longest call took ${longestMs} ms; errors that the SDK threw before the call was repeated: ${JSON.stringify(gaveUp)}`);
    if (this.mustNotThrow) assert.deepEqual(gaveUp, {}, "no call throws");
    const stored = storedRuns(postgres, `${this.name}-`);
    for (const [name, id] of Object.entries(acknowledged)) {
      assert.ok(stored.has(name), `${name}, which was acknowledged, is stored`);
      if (id) assert.equal(stored.get(name), id);
    }
    assert.equal(stored.size, Object.keys(acknowledged).length, "nothing else is stored");
  }

  /** Sends a message; returns the reply with that name. */
  async #request(message, name) {
    delete this.replies[name];
    if (this.code === undefined) this.child.send(message);
    const failure = () => this.replies.failed ?? (this.code === undefined ? undefined : `ended with ${this.code}`);
    await until(() => this.replies[name] || failure(), { what: `${this.name} replies ${name}`, timeoutMs: WITHIN_MS })
      .catch((error) => { throw new Error(`${error.message}; the last watch that ended: ${this.replies.watchEnded}`); });
    if (!this.replies[name]) throw new Error(failure());
    return this.replies[name];
  }
}

/** A folder that tasks of any user can write to. */
export function openFolder() {
  const top = temporaryFolder(), folder = path.join(top, "notes/");
  fs.chmodSync(top, 0o711);
  fs.mkdirSync(folder);
  fs.chmodSync(folder, 0o777);
  return folder;
}

/** A client that executes runs of tasks that compute, wait, and fail once. tasks: kind -> [task, payload]. The tasks write
 *  to the folder `notes`. alive() returns true while the client is the same process; lastOutput() returns its last output. */
export class Executor {
  constructor(front, { name, key, notes, tasks, alive, lastOutput }) {
    Object.assign(this, { front, name, key, notes, tasks, alive, lastOutput, attempts: new Map() });
  }

  async begin(round) {
    this.runs = [await this.#execute(round, "computes", 1), await this.#execute(round, "computes", 1, "-second")];
    await until(() => this.runs.every((id) => this.#noted().has(id)), { what: `${this.name} executes`, everyMs: 100, timeoutMs: WITHIN_MS })
      .catch((error) => this.#fail(error));
  }

  async pause(round) {
    const waiting = await this.#execute(round, "waits", 1), failing = await this.#execute(round, "retries", 2);
    this.runs.push(waiting, failing);
    await Promise.all([this.front.settled(this.key, waiting, "FROZEN"), this.front.settled(this.key, failing, "REATTEMPTING")]);
  }

  /** Triggers one more run while no gateway leads, and waits for all runs. */
  async end(round) {
    this.runs.push(await this.#execute(round, "computes", 1, "-later"));
    fs.writeFileSync(this.#file(round), "");
    await Promise.all(this.runs.map((id) => this.front.settled(this.key, id, "COMPLETED"))).catch((error) => this.#fail(error));
    assert.ok(this.alive(), `the same ${this.name}`);
  }

  #fail({ message }) { throw new Error(`${message}; runs ${this.runs}, started ${[...this.#noted().keys()]}; last output: ${this.lastOutput()}`); }

  /** Asserts that each run was executed once per attempt, and that its attempts did not overlap. */
  async judge() {
    const noted = this.#noted();
    for (const [id, count] of this.attempts) {
      const all = noted.get(id) ?? [], numbers = Array.from({ length: count }, (_, i) => i + 1);
      assert.deepEqual(all.map(({ attempt }) => attempt), numbers, `attempts of ${id}: ${JSON.stringify(all)}`);
      all.forEach((one, i) => assert.ok(one.begin >= (all[i - 1]?.end ?? 0), `${id} is in one process at a time: ${JSON.stringify(all)}`));
    }
    assert.equal(noted.size, this.attempts.size, "no other run");
  }

  #file(round) { return path.join(this.notes, `end-${round}`); }

  async #execute(round, kind, attempts, more = "") {
    const [task, payload] = this.tasks[kind], name = `${this.name}-${round}-${kind}${more}`;
    const id = await this.front.trigger(this.key, task, { ...payload, name, notes: this.notes, file: this.#file(round) });
    this.attempts.set(id, attempts);
    return id;
  }

  /** Reads the notes of the tasks' processes: run id -> its attempts, { attempt, begin, end }, ordered by time. */
  #noted() {
    const runs = new Map();
    for (const name of fs.readdirSync(this.notes)) { // the files that make tasks end are empty
      let open;
      for (const { event, run, attempt, at } of fs.readFileSync(path.join(this.notes, name), "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line))) {
        if (event === "started") {
          open = { attempt, begin: at, end: Infinity };
          runs.set(run, [...runs.get(run) ?? [], open]);
        }
        if (event === "completed") open.end = at;
      }
    }
    for (const all of runs.values()) all.sort((a, b) => a.begin - b.begin);
    return runs;
  }
}

/** Each fault: how the leader fails, and how it comes back. */
const faults = [
  ["is killed", (gateway) => gateway.kill(), (gateway) => gateway.restart({ ready: false })],
  ["is suspended and resumed", (gateway) => gateway.child.kill("SIGSTOP"), (gateway) => gateway.child.kill("SIGCONT")],
  ["is cut off from the database", (gateway) => gateway.relay.hold(), (gateway) => gateway.relay.pass()],
  ["is stopped", (gateway) => gateway.child.kill("SIGTERM"), async (gateway) => { await gateway.ended(); await gateway.restart({ ready: false }); }],
];

/** Calls act for all clients at once and waits for the results; returns settled promises, whose errors tests report. */
async function all(clients, act) {
  const acts = clients.map(act);
  await Promise.allSettled(acts);
  return acts;
}

const leaderOf = (gateways) => until(async () => { for (const one of gateways) if (await one.leads().catch(() => false)) return one; }, { timeoutMs: WITHIN_MS, what: "a gateway leads" });

/** Subscribers of the gateways, which do not reconnect. */
export async function subscribe(t, gateways) {
  const mirrors = new Map();
  for (const gateway of gateways) {
    const mirror = new RunsMirror({ port: gateway.port, token: keys.staging });
    mirror.subscribe({ all: true });
    await mirror.connect();
    t.after(() => mirror.cut());
    mirrors.set(gateway, mirror);
  }
  return mirrors;
}

/** Makes the leader of startTwoGateways or startCluster fail in each way. Each client has a test for each fault, and one at the
 *  end. If the gateways follow each other, subscribers of those that remain stay connected. */
export async function surviveTakeovers(t, { gateways, postgres, isFollowed }, clients) {
  for (const [round, [what, end, recover]] of faults.entries()) {
    await t.test(`the leader ${what}`, async (t) => {
      const leads = await leaderOf(gateways), others = gateways.filter((one) => one !== leads);
      const mirrors = await subscribe(t, isFollowed ? others : []);
      const begun = await all(clients, (client) => client.begin(round));
      const paused = await all(clients, async (client, i) => { await begun[i]; return client.pause(round); });
      await end(leads);
      const ended = await all(clients, async (client, i) => { await paused[i]; return client.end(round); });
      await leaderOf(others);
      for (const [i, { name }] of clients.entries()) await t.test(`${name} continues by itself`, () => ended[i]);
      for (const [gateway, { socket, errors }] of mirrors) assert.ok(socket && !errors.length, `the subscriber of ${gateway.name} stays connected: ${errors}`);
      await recover(leads);
      await (isFollowed ? follows : standsBy)(leads);
    });
  }
  for (const client of clients)
    await t.test(`${client.name}: every acknowledged run is stored once`, (t) => client.judge(postgres, t));
  const last = await leaderOf(gateways);
  for (const gateway of [...gateways.filter((one) => one !== last), last]) await gateway.stop();
}
