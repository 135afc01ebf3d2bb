// Calls with ?wait=: answered when the run or batch has finished, or with its current state when the time is up.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";

import { keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";
import { publicToken } from "../support/js/tokens.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

let gateway, worker;
before(async () => {
  gateway = await startGateway();
  worker = await Worker.register(gateway, { tasks: ["hello"] });
});
after(() => gateway.stop());

const later = { delay: "1h" };
const run = (id, query = "") => `/api/v3/runs/${id}${query}`;
const result = (id, query = "") => `/api/v1/runs/${id}/result${query}`;
const batch = (id, query = "", version = 2) => `/api/v${version}/batches/${id}${query}`;
const isHeld = (count, to = gateway) => until(async () => (await to.metric("runcast_polls")) === count, { what: `${count} held calls` });
const cancel = (id, to = gateway) => to.post(`/api/v2/runs/${id}/cancel`);

async function trigger(options = {}, to = gateway) {
  const reply = await to.post("/api/v1/tasks/hello/trigger", { payload: 1, options });
  assert.equal(reply.status, 200, reply.text);
  return reply.json.id;
}

async function makeBatch(items, to = gateway) {
  const reply = await to.post("/api/v2/tasks/batch", { items: items.map((options) => ({ task: "hello", payload: 1, options })) });
  assert.equal(reply.status, 202, reply.text);
  return (await to.get(batch(reply.json.id))).json;
}

/** Starts calls and returns their responses once all of them are held. */
async function hold(targets, { to = gateway, method = "GET", ...more } = {}) {
  const before = await to.metric("runcast_polls");
  const answers = targets.map((target) => to.http.request(method, target, more));
  for (const answer of answers) answer.catch(() => {});
  await isHeld(before + targets.length, to);
  return answers;
}

test("a run is returned when a worker has ended it, to all calls that wait for it", async () => {
  const id = await trigger();
  const answers = await hold([run(id, "?wait=55s"), run(id, "?wait=30"), result(id, "?wait=30s&format=json"), result(id, "?wait=0m50s")]);
  const attempt = await worker.take(id);
  assert.equal(await gateway.metric("runcast_polls"), 4, "that it executes ends no wait");
  await attempt.succeed({ n: 1 });
  const [first, second, value, text] = await Promise.all(answers);
  for (const { status, json } of [first, second])
    assert.deepEqual([status, json.status, json.output], [200, "COMPLETED", { n: 1 }]);
  assert.deepEqual([value.json.output, text.json.output], [{ n: 1 }, '{"n":1}']);
  await isHeld(0);
  assert.equal((await gateway.get(run(id, "?wait=55s"))).json.status, "COMPLETED");
});

test("a run is returned when it is canceled, and when it has expired", async () => {
  const [canceled, expired] = [await trigger(later), await trigger({ ttl: 1 })];
  const [first, second] = await hold([run(canceled, "?wait=50s"), run(expired, "?wait=50s")]);
  await cancel(canceled);
  assert.equal((await first).json.status, "CANCELED");
  assert.equal((await second).json.status, "EXPIRED");
});

test("when the time is up the response is the same as without waiting", async () => {
  const { id, runs } = await makeBatch([later, later]);
  const began = Date.now();
  const [shown, ended, whole] = await Promise.all([run(runs[0], "?wait=1s"), result(runs[0], "?wait=1s"), batch(id, "?wait=1s")].map((target) => gateway.get(target)));
  assert.ok(Date.now() - began >= 990, `${Date.now() - began} ms`);
  assert.deepEqual([shown.status, shown.json.status], [200, "DELAYED"]);
  assert.deepEqual([ended.status, ended.json], [404, (await gateway.get(result(runs[0]))).json]);
  assert.deepEqual([whole.status, whole.json.status], [200, "PENDING"]);
  await isHeld(0);
  for (const none of ["0", "0s"]) assert.equal((await gateway.get(run(runs[0], `?wait=${none}`))).json.status, "DELAYED");
});

test("a batch is returned when the last of its runs has ended, in whatever order they end", async () => {
  for (const order of [[0, 1, 2], [2, 1, 0], [1, 2, 0]]) {
    const { id, runs } = await makeBatch([later, later, later]);
    const [newer, older] = await hold([batch(id, "?wait=50s"), batch(id, "?wait=50s", 1)]);
    for (const at of order) {
      assert.equal((await gateway.get(batch(id))).json.status, "PENDING");
      await cancel(runs[at]);
    }
    assert.deepEqual([(await newer).json.status, (await older).json.status], ["COMPLETED", "COMPLETED"]);
    assert.deepEqual((await newer).json.runs, runs);
    assert.equal((await gateway.get(batch(id, "?wait=50s"))).json.status, "COMPLETED");
  }
});

test("a batch can be waited for before it has its items, and some of its runs may be older", async () => {
  const older = await trigger({ ...later, idempotencyKey: "older" });
  const { id } = (await gateway.post("/api/v3/batches", { runCount: 2 })).json;
  const [answer] = await hold([batch(id, "?wait=50s")]);
  const items = [{ idempotencyKey: "older" }, later].map((options, index) => JSON.stringify({ index, task: "hello", payload: 1, options }) + "\n");
  const sent = await gateway.post(`/api/v3/batches/${id}/items`, items.join(""), { headers: { "content-type": "application/x-ndjson" } });
  assert.equal(sent.json.sealed, true, sent.text);
  const { runs } = (await gateway.get(batch(id))).json;
  assert.equal(runs[0], older);
  await cancel(runs[1]);
  await cancel(older);
  assert.deepEqual([(await answer).json.status, (await answer).json.runs], ["COMPLETED", runs]);
});

test("a batch of hundreds is returned when the last of them has ended, to many calls at once", async () => {
  const { id, runs } = await makeBatch(Array.from({ length: 300 }, () => later));
  const answers = await hold(Array.from({ length: 40 }, () => batch(id, "?wait=50s")));
  for (const one of runs.slice(1)) await cancel(one);
  assert.equal(await gateway.metric("runcast_polls"), 40);
  await cancel(runs[0]);
  for (const answer of await Promise.all(answers)) assert.equal(answer.json.status, "COMPLETED");
  await isHeld(0);
});

test("an unknown run is 404 at once, and an invalid duration is refused with what to do", async () => {
  const id = await trigger(later);
  for (const target of [run("run_nobody", "?wait=50s"), result("run_nobody", "?wait=50s"), batch("batch_nobody", "?wait=50s")])
    assert.equal((await gateway.get(target)).status, 404, target);
  assert.equal((await gateway.get(run(id, "?wait=50s"), { key: keys.prod })).status, 404);
  for (const wrong of ["", "soon", "-1", "1.5", "56", "56s", "1m", "99999999999999999999"])
    for (const target of [run(id), result(id), batch("batch_nobody"), batch("batch_nobody", "", 1)]) {
      const { status, json } = await gateway.get(`${target}?wait=${wrong}`);
      assert.deepEqual([status, json.error], [400, "wait must be a duration like 30s or seconds (max 55s); repeat the call to wait longer"], `${target} ${wrong}`);
    }
});

test("a HEAD waits like its GET", async () => {
  const id = await trigger(later);
  const [answer] = await hold([run(id, "?wait=50s")], { method: "HEAD" });
  await cancel(id);
  assert.deepEqual([(await answer).status, (await answer).text], [200, ""]);
});

test("a token waits only for what it may read, and not after it has expired", async () => {
  const id = await trigger({ ...later, tags: ["mine"] }), other = await trigger(later);
  const key = await publicToken(gateway, { scopes: ["read:tags:mine"] });
  assert.equal((await gateway.get(run(other, "?wait=50s"), { key })).status, 403);
  const short = await publicToken(gateway, { scopes: [`read:runs:${id}`], exp: Math.floor(Date.now() / 1000) + 6 });
  const [late] = await hold([run(id, "?wait=50s")], { key: short });
  assert.deepEqual([(await late).status, (await late).json.error], [401, "The credential expired or was revoked while the call waited"]);
  const [answer] = await hold([run(id, "?wait=50s")], { key });
  await cancel(id);
  assert.equal((await answer).json.status, "CANCELED");
});

test("a token that expires first ends the wait, although the wall clock was set back", async (t) => {
  const file = path.join(temporaryFolder(), "ahead");
  const own = await startGateway({ t, preload: "shim_clock", env: { SHIM_CLOCK: file } });
  const id = await trigger(later, own);
  const key = await publicToken(own, { scopes: ["read:runs"], exp: Math.floor(Date.now() / 1000) + 6 });
  const [answer] = await hold([run(id, "?wait=50s")], { key, to: own });
  fs.writeFileSync(`${file}.new`, "-5000");
  fs.renameSync(`${file}.new`, file);
  assert.equal((await answer).status, 401);
  await own.stop();
});

test("a run that has left memory when its end is reported is read from the store", async (t) => {
  const own = await startGateway({ t, options: ["--memory", "1m"] });
  const other = await Worker.register(own, { tasks: ["hello"] });
  const id = await trigger({}, own);
  const answers = await hold([run(id, "?wait=50s"), result(id, "?wait=50s")], { to: own });
  await (await other.take(id)).succeed("x".repeat(2 << 20));
  const [shown, ended] = await Promise.all(answers);
  assert.equal(shown.json.output.length, 2 << 20);
  assert.equal(JSON.parse(ended.json.output).length, 2 << 20);
  await until(async () => (await own.metric("runcast_evicted_runs_total")) > 0, { what: "the run has left memory" });
  assert.equal((await own.get(run(id, "?wait=50s"))).json.status, "COMPLETED");
  await own.stop();
});

test("held calls count against the same limit as held polls, and free their places", async (t) => {
  const own = await startGateway({ t, options: ["--realtime-connections", "2"] });
  const id = await trigger(later, own), { id: whole, runs } = await makeBatch([later], own);
  const held = await hold([run(id, "?wait=50s"), batch(whole, "?wait=50s")], { to: own });
  for (const target of [run(id, "?wait=50s"), result(id, "?wait=50s"), batch(whole, "?wait=50s")]) {
    const { status, json } = await own.get(target);
    assert.deepEqual([status, json], [429, { error: "Too many concurrent requests" }], target);
  }
  assert.equal((await own.get(run(id))).status, 200, "a call that does not wait needs no place");
  await cancel(runs[0], own);
  assert.equal((await held[1]).json.status, "COMPLETED");
  const connection = await own.connect();
  await connection.send(`GET ${run(id, "?wait=50s")} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${keys.dev}\r\n\r\n`);
  await isHeld(2, own);
  connection.destroy();
  await isHeld(1, own);
  const [again] = await hold([result(id, "?wait=50s")], { to: own });
  await cancel(id, own);
  assert.deepEqual([(await held[0]).status, (await again).status], [200, 200]);
  await own.stop();
});

test("a drain answers held calls with the current state", async (t) => {
  const own = await startGateway({ t });
  const id = await trigger(later, own), { id: whole } = await makeBatch([later], own);
  const answers = await hold([run(id, "?wait=50s"), batch(whole, "?wait=50s"), result(id, "?wait=50s")], { to: own });
  own.child.kill("SIGTERM");
  const [shown, all, none] = await Promise.all(answers);
  assert.deepEqual([shown.status, shown.json.status, shown.headers.connection], [200, "DELAYED", "close"]);
  assert.deepEqual([all.json.status, none.status], ["PENDING", 404]);
  assert.deepEqual(await own.ended(), { code: 0, signal: null });
});

test("when its credential ends, a held call is refused within seconds", async (t) => {
  const own = await startGateway({ t });
  const id = await trigger(later, own);
  const [answer] = await hold([run(id, "?wait=50s")], { to: own });
  const { code, all } = await runProgram(["keys", "rotate", "dev", "--project", keys.ref, "--grace", "0", "--data", own.data]);
  assert.equal(code, 0, all);
  assert.equal((await answer).status, 401);
  await isHeld(0, own);
  await own.stop();
});

test("calls held by a killed gateway are cut, and answered after the restart", async (t) => {
  const own = await startGateway({ t });
  const id = await trigger(later, own);
  const [answer] = await hold([run(id, "?wait=50s")], { to: own });
  await own.kill();
  await assert.rejects(answer);
  await own.restart();
  const [again] = await hold([run(id, "?wait=50s")], { to: own });
  await cancel(id, own);
  assert.equal((await again).json.status, "CANCELED");
  await own.stop();
});

test("the store is not read while a call is held", async () => {
  const id = await trigger(later), { id: whole } = await makeBatch([later, later]);
  const reads = await gateway.metric("runcast_store_reads_total");
  const answers = await hold([...Array.from({ length: 20 }, () => run(id, "?wait=5s")), ...Array.from({ length: 20 }, () => batch(whole, "?wait=5s"))]);
  for (const { status } of await Promise.all(answers)) assert.equal(status, 200);
  assert.equal(await gateway.metric("runcast_store_reads_total"), reads + 40, "each is read once");
});
