// Calls, event streams and sockets at a gateway that follows. Its memory is late, but no client sees less than the leader had
// when the client began, and no client that goes from one gateway to the next sees an older state.
import assert from "node:assert/strict";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { EventStream } from "../support/js/event_stream.mjs";
import { polls } from "../support/js/fixture.mjs";
import { follows, roundRobin, startFollowers } from "../support/js/followers.mjs";
import { keys, sleep, until } from "../support/js/gateway.mjs";
import { HttpClient } from "../support/js/http.mjs";
import { RunsSocket } from "../support/js/runs.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

const LATE_MS = 200, top = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const key = keys.dev, bearer = { authorization: `Bearer ${key}` };

async function trigger(gateway, { task = "task", ...options } = {}) {
  const { status, json, text } = await gateway.post(`/api/v1/tasks/${task}/trigger`, { payload: { text: "é" }, options }, { key });
  assert.equal(status, 200, text);
  return json.id;
}

async function triggerBatch(gateway) {
  const { status, json, text } = await gateway.post("/api/v2/tasks/batch", { items: [1, 2].map((payload) => ({ task: "task", payload })) }, { key });
  assert.ok(status < 300, text);
  return json.id;
}

const get = async (gateway, target, more = {}) => {
  const answer = await gateway.http.request("GET", target, { key, headers: polls, ...more });
  assert.equal(answer.status, 200, `${target}: ${answer.text}`);
  return answer.json;
};

/** A message with what differs between two calls left out. */
const shown = ({ op, rows, counts, runs, id }) => ({ op, rows, counts, runs, id });

/** The messages of a stream until it is in sync. */
async function streamed(gateway, query) {
  const stream = await EventStream.open(`${gateway.url}/realtime/v1/events?${query}`, { headers: bearer });
  assert.equal(stream.status, 200, stream.text);
  const rows = [];
  for (;;) {
    const { data } = await stream.next("rows");
    rows.push(...data.rows);
    if (!data.more) break;
  }
  stream.cut();
  return rows;
}

/** The rows of a subscription, and a live list with its counts. */
async function socketed(gateway, filter) {
  const socket = await RunsSocket.open({ port: gateway.port, token: key, hello: {} }), rows = [];
  await socket.next("welcome");
  socket.send({ op: "sub", id: 1, ...filter });
  for (;;) {
    const message = await socket.next("rows");
    rows.push(...message.rows);
    if (!message.more) break;
  }
  socket.send({ op: "watch", id: 2, filter: {}, limit: 5, counts: true });
  const list = await socket.next("list"), counts = await socket.next("counts");
  await socket.cut();
  return { rows, list: shown(list), counts: shown(counts) };
}

/** Each route that a follower serves, by its id; returns what a client gets. */
const routes = {
  list_runs_v1: (gateway) => get(gateway, "/api/v1/runs"),
  count_runs_v1: (gateway) => get(gateway, "/api/v1/runs/counts"),
  subscribe_run_v1: (gateway, { run }) => get(gateway, `/realtime/v1/runs/${run}?offset=-1`),
  subscribe_runs_v1: (gateway) => get(gateway, "/realtime/v1/runs?tags=watched&offset=-1"),
  subscribe_batch_v1: (gateway, { batch }) => get(gateway, `/realtime/v1/batches/${batch}?offset=-1`),
  stream_events_v1: async (gateway, { run }) => [await streamed(gateway, `run=${run}`), await streamed(gateway, "tags=watched")],
  open_socket_v1: (gateway, { run }) => Promise.all([socketed(gateway, { run }), socketed(gateway, { tags: ["watched"] })]),
};

test("the routes of this test are those that followers serve", () => {
  const sources = fs.readdirSync(path.join(top, "src/api"), { recursive: true }).filter((name) => name.endsWith(".c"));
  const rows = sources.flatMap((name) => fs.readFileSync(path.join(top, "src/api", name), "utf8").match(/\{ \.method[\s\S]*?\},\n/g) ?? []);
  const served = rows.filter((row) => /\.follows = true/.test(row)).map((row) => row.match(/\.id = "(\w+)"/)[1]);
  assert.deepEqual(served.sort(), Object.keys(routes).sort());
});

test("each route of a late follower has at least what the leader had before", { timeout: 300_000 }, async (t) => {
  const { leader, others: [b] } = await startFollowers(t, { names: ["a", "b"] });
  leader.peers.delay(LATE_MS);
  for (const [name, call] of Object.entries(routes)) {
    const made = { run: await trigger(leader, { tags: ["watched"] }), batch: await triggerBatch(leader) };
    const late = await call(b, made);
    assert.deepEqual(late, await call(leader, made), name);
  }
  assert.equal(leader.peers.delayed, 1, "it was the same connection all the time");

  // Other routes are the leader's.
  const run = await trigger(b), made = await get(b, `/api/v3/runs/${run}`);
  assert.deepEqual(made, await get(leader, `/api/v3/runs/${run}`));
  await b.stop();
  await leader.stop();
});

test("keys and branches can be used at followers at once, and not after they have ended", { timeout: 300_000 }, async (t) => {
  const { leader, others: [b] } = await startFollowers(t, { names: ["a", "b"] });
  const user = new HttpClient(leader.url, keys.pat), other = new HttpClient(b.url, keys.preview);
  const branches = `/api/v1/projects/${keys.ref}/branches`, headers = { "x-trigger-branch": "late", ...polls };
  leader.peers.delay(LATE_MS);
  for (const target of ["/api/v1/runs", "/realtime/v1/runs?tags=a&offset=-1"]) {
    assert.equal((await other.request("GET", target, { headers: { ...headers, "x-trigger-branch": "none" } })).status, 401);
    assert.equal((await user.request("POST", branches, { body: { env: "preview", branch: "late" } })).status, 200);
    assert.equal((await other.request("GET", target, { headers })).status, 200);
    assert.equal((await user.request("POST", `${branches}/archive`, { body: { env: "preview", branch: "late" } })).status, 200);
    // A list reads the accounts that are here. A poll without a position asks the leader first.
    if (target.startsWith("/realtime")) assert.equal((await other.request("GET", target, { headers })).status, 401);
    else await until(async () => (await other.request("GET", target, { headers })).status === 401, { what: "the branch is archived here, too" });
  }
  const stranger = new HttpClient(b.url, "tr_dev_unknown");
  for (let n = 0; n < 20; n++) assert.equal((await stranger.request("GET", "/api/v1/runs")).status, 401);
  await b.stop();
  await leader.stop();
});

test("in doubt, a follower is silent, and closes nothing", { timeout: 300_000 }, async (t) => {
  const { leader, others: [b] } = await startFollowers(t, { names: ["a", "b"] });
  const socket = await RunsSocket.open({ port: b.port, token: key, hello: {} });
  await socket.next("welcome");
  socket.send({ op: "sub", id: 1, all: true });
  await socket.next((message) => message.op === "rows" && !message.more);
  const stream = await EventStream.open(`${b.url}/realtime/v1/events?all=1`, { headers: bearer });
  await stream.next("rows");
  const { headers } = await b.http.request("GET", "/realtime/v1/runs?tags=a&offset=-1", { key, headers: polls });
  const held = b.http.request("GET", `/realtime/v1/runs?tags=a&offset=${headers["electric-offset"]}&handle=${headers["electric-handle"]}&live=true`, { key, headers: polls });
  await until(async () => await b.metric("runcast_polls") === 1, { what: "the poll is held" });

  socket.messages.length = 0; // those before the doubt
  leader.peers.cut();
  const ended = await held;
  assert.equal(ended.status, 503, ended.text);
  assert.equal(ended.headers["retry-after"], "1");
  const run = await trigger(leader, { tags: ["a"] });
  const began = Date.now(), early = new HttpClient(b.url, key);
  socket.send({ op: "sub", id: 2, tags: ["a"] });
  const waits = early.request("GET", "/realtime/v1/runs?tags=a&offset=-1", { headers: polls, timeoutMs: 60_000 });
  const error = await socket.next("error");
  assert.equal(error.code, "limit", JSON.stringify(error));
  assert.ok(Date.now() - began >= 5000, "it has waited");
  assert.equal((await waits).status, 503);
  await sleep(Math.max(0, began + 10_000 - Date.now())); // the time that a doubt lasts here
  assert.deepEqual(socket.messages, []);
  assert.ok(!socket.ws.isClosed && !stream.ended, "nothing was closed");
  const silent = stream.events.length;

  leader.peers.accept();
  await follows(b);
  await socket.next((message) => JSON.stringify(message).includes(run));
  await until(() => stream.events.slice(silent).some(({ data }) => JSON.stringify(data).includes(run)), { what: "the stream has the run" });
  socket.send({ op: "sub", id: 2, tags: ["a"] });
  await socket.next((message) => message.op === "ok" && message.id === 2);
  stream.cut();
  await socket.cut();
  await b.stop();
  await leader.stop();
});

test("a client whose question the leader does not answer is refused after 5 s", { timeout: 300_000 }, async (t) => {
  const { leader, others: [b] } = await startFollowers(t, { names: ["a", "b"] });
  const socket = await RunsSocket.open({ port: b.port, token: key, hello: {} });
  await socket.next("welcome");
  leader.peers.pause();
  const began = Date.now();
  const stranger = await RunsSocket.open({ port: b.port, hello: { token: "tr_dev_unknown" } });
  socket.send({ op: "sub", id: 1, all: true });
  const poll = b.http.request("GET", "/realtime/v1/runs?tags=a&offset=-1", { key, headers: polls, timeoutMs: 60_000 });
  const unknown = new HttpClient(b.url, "tr_dev_unknown").request("GET", "/api/v1/runs", { timeoutMs: 60_000 });
  assert.equal((await socket.next("error")).code, "limit");
  for (const { status, headers } of [await poll, await unknown]) assert.deepEqual([status, headers["retry-after"]], [503, "1"]);
  assert.equal((await stranger.closed).code, 4100);
  assert.ok(Date.now() - began >= 5000, "they have waited");
  assert.match(b.stderr, /"level":"warn","event":"answers of the leader are late; polls get 503","leader":"a"/);
  leader.peers.resume();
  await follows(b);
  await get(b, "/realtime/v1/runs?tags=a&offset=-1");
  await socket.cut();
  await b.stop();
  await leader.stop();
});

const ORDER = ["PENDING", "QUEUED", "DEQUEUED", "EXECUTING", "COMPLETED"];

/** Notes each state of a run that one client sees, and asserts that none is older than the one before. */
class Seen {
  constructor(what) { Object.assign(this, { what, states: [] }); }

  note({ status, updatedAt }) {
    const last = this.states.at(-1), now = { status, at: Number(new Date(updatedAt)) };
    assert.ok(ORDER.includes(status), status);
    if (last) {
      assert.ok(ORDER.indexOf(status) >= ORDER.indexOf(last.status), `${this.what}: ${status} after ${last.status}`);
      assert.ok(now.at >= last.at, `${this.what}: updatedAt goes back`);
    }
    this.states.push(now);
  }
}

for (const [name, folder, module] of [["SDK 4.8.3", "sdk-v4", "@trigger.dev/sdk"], ["SDK 3.3.17", "sdk-v3", "@trigger.dev/sdk/v3"]]) {
  test(`${name} in round robin over three gateways, one of them late, sees no run go back`, { timeout: 300_000 }, async (t) => {
    const { leader, gateways } = await startFollowers(t);
    const { url, counts } = await roundRobin(gateways, t);
    const { runs, tasks, auth } = createRequire(new URL(`../conformance/${folder}/x.js`, import.meta.url))(module);
    const worker = await Worker.register(leader, { tasks: ["task"] });
    await until(async () => leader.peers.pairs.size === 2, { what: "both follow" });
    leader.peers.delay(LATE_MS, 1);
    await auth.withAuth({ baseURL: url, accessToken: key, secretKey: key }, async () => {
      for (let n = 0; n < 3; n++) {
        const { id } = await tasks.trigger("task", { n }, { tags: [`tag-${n}`] });
        const done = [new Seen("subscribeToRun"), new Seen("subscribeToRunsWithTag"), new Seen("runs.list")];
        const read = async (subscription, seen, ended) => { for await (const run of subscription) { seen.note(run); if (run.status === "COMPLETED") ended(); } };
        /** Without unsubscribe, SDK 3 would poll for half a minute more. */
        const follow = (subscription, seen) => new Promise((ended, failed) => { read(subscription, seen, ended).catch(failed); }).finally(() => subscription.unsubscribe());
        const byRun = follow(runs.subscribeToRun(id), done[0]), byTag = follow(runs.subscribeToRunsWithTag(`tag-${n}`), done[1]);
        let listing = true;
        const byList = (async () => {
          while (listing) {
            const page = await runs.list({ tag: `tag-${n}`, limit: 1 });
            assert.equal(page.data.length, 1, "the run is in the list");
            done[2].note(page.data[0]);
          }
        })();
        const attempt = await worker.take(id);
        for (let at = 0; at < 5; at++) assert.equal((await leader.put(`/api/v1/runs/${id}/metadata`, { metadata: { at } }, { key })).status, 200);
        await attempt.succeed({ n });
        await Promise.all([byRun, byTag]);
        listing = false;
        await byList;
        for (const { what, states } of done.slice(0, 2)) assert.equal(states.at(-1).status, "COMPLETED", what);
      }
    });
    assert.equal(leader.peers.delayed, 1, "one follower was late all the time");
    assert.ok(counts.every((count) => count > 10), `each gateway had its turns: ${counts}`);
    for (const gateway of gateways.reverse()) await gateway.stop();
  });
}
