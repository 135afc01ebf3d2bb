// Faults of a PostgreSQL under a gateway that is written to all the time: it is restarted, crashes, is unreachable or
// read-only, is out of space, is replaced by its standby. Acknowledged writes are there, once. Requests in between are
// refused with a reason, and the gateway recovers by itself once the database is well again.
//
//   DATABASE_AWAY_S=120 node database_faults.test.mjs      how long it is unreachable
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import { after, before, test } from "node:test";

import { Writers } from "../support/js/acknowledged.mjs";
import { keys, sleep, startGateway, until } from "../support/js/gateway.mjs";
import { PgRelay } from "../support/js/pg_relay.mjs";
import { mayMount, onDatabase, startPostgres, urlOfBoth } from "../support/js/postgres.mjs";
import { RunsMirror } from "../support/js/runs.mjs";

const outageS = Number(process.env.DATABASE_AWAY_S ?? 30);

/** A gateway on the database, and a subscriber. */
async function startWorld(postgres, settings) {
  const gateway = await startGateway(onDatabase(postgres, "only", settings));
  const mirror = new RunsMirror({ port: gateway.port, token: keys.prod });
  mirror.subscribe({ all: true });
  await mirror.connect();
  return { postgres, gateway, mirror, epoch: mirror.epoch };
}

async function stopWorld({ gateway, mirror, postgres }) {
  mirror.cut();
  await gateway.stop();
  await postgres.stop("immediate");
}

async function write(t, { gateway }) {
  const writers = new Writers(gateway.url);
  t.after(() => writers.giveUp());
  await writers.untilServed();
  return writers;
}

/** The gateway has recovered by itself, and every acknowledged write is there. */
async function judge({ gateway, mirror, postgres }, writers, { stored = postgres } = {}) {
  const tookMs = await writers.untilServed(60_000);
  await writers.stop();
  writers.judge(stored);
  await until(() => mirror.errors.length || [...writers.acknowledged.values()].every((id) => mirror.runs.has(id)), { what: "all runs at the subscriber" });
  assert.deepEqual(mirror.errors, []);
  let reply;
  await until(async () => (reply = await gateway.get("/readyz")).status === 200, { what: "ready" }).catch((error) => assert.fail(`${error.message}: ${reply.text}`));
  return tookMs;
}

/** The subscriber was never cut, the epoch is the same, and the gateway kept the lead. */
function judgeUnmoved({ gateway, mirror, epoch }) {
  assert.ok(mirror.socket, "the subscriber was never cut");
  assert.equal(mirror.epoch, epoch);
  assert.doesNotMatch(gateway.stderr, /lead lost/);
}

const trigger = (gateway, payload = "refused", key = keys.dev) => gateway.post("/api/v1/tasks/refused/trigger", { payload }, { key });

function assertRefused({ status, headers, json, text }, reason = /^storage_unavailable$/) {
  assert.equal(status, 503, text);
  assert.match(headers["retry-after"] ?? "", /^\d+$/);
  assert.match(json.error, reason);
}

// One gateway goes through all faults that it survives without a restart, one after the other.
let shared;
before(async () => { shared = await startWorld(await startPostgres()); });
after(() => stopWorld(shared));

for (const [what, strike] of [
  ["is restarted", ({ postgres }) => postgres.restart({ downMs: 1000 })],
  ["crashes", ({ postgres }) => postgres.restart({ mode: "immediate", downMs: 1000 })],
  ["loses a process, and recovers", ({ postgres }) => // the process may be idle at the moment
    until(() => postgres.endBackends({ kill: true, holding: "commit_v101" }), { what: "a process that writes" })],
  ["ends every session, again and again", async ({ postgres }) => {
    for (let i = 0; i < 5; i++) await until(() => postgres.endBackends(), { what: "a session" });
  }],
]) {
  test(`acknowledged writes are there exactly once when the database ${what}`, { timeout: 240_000 }, async (t) => {
    const writers = await write(t, shared);
    await strike(shared);
    await judge(shared, writers);
    judgeUnmoved(shared);
  });
}

test(`the database is unreachable for ${outageS} s: writes are refused, subscribers stay, and the gateway recovers by itself`, { timeout: 150_000 + outageS * 2000 }, async (t) => {
  const { gateway, postgres } = shared, writers = await write(t, shared);
  const [id] = writers.acknowledged.values();
  const read = () => gateway.get(`/api/v3/runs/${id}`, { key: keys.prod });

  await postgres.stop("immediate");
  const beganMs = Date.now();
  assertRefused(await trigger(gateway));
  const refusedMs = Date.now() - beganMs;
  // After a longer time the gateway cannot know whether another one has taken over.
  const doubted = await until(() => read().then((reply) => reply.status === 503 && reply), { what: "the gateway doubts itself" });
  assert.match(doubted.headers["retry-after"], /^\d+$/);
  const { status, json } = await gateway.get("/readyz");
  assert.equal(status, 503);
  assert.ok(json.reasons.includes("storage_unavailable"), JSON.stringify(json));
  assert.equal((await gateway.get("/healthz")).status, 200);
  const { count } = writers;
  await sleep(beganMs + outageS * 1000 - Date.now()); // the length of the outage
  assert.equal(writers.count, count, "nothing is acknowledged");

  await postgres.start();
  const tookMs = await judge(shared, writers);
  t.diagnostic(`a write was refused after ${refusedMs} ms; served ${tookMs} ms after the database was back`);
  t.diagnostic(`refused meanwhile: ${JSON.stringify([...writers.refusals])}`);
  assert.equal((await read()).status, 200);
  judgeUnmoved(shared);
});

test("a write that was sent when the database stops answering is answered, continues, and is done once", { timeout: 240_000 }, async (t) => {
  const world = await startWorld(await startPostgres({ t }), { t }), { gateway, postgres } = world;
  const sent = { payload: "sent", options: { idempotencyKey: "once" } };
  const send = () => gateway.post("/api/v1/tasks/sent/trigger", sent);
  postgres.freeze();
  const answer = await send();
  assertRefused(answer, /it is unknown whether this was done/);
  assert.equal(answer.headers["access-control-allow-origin"], "*", "a browser can read it");
  assert.equal(answer.headers["x-should-retry"], undefined, "SDKs repeat it, because it has a key");
  assertRefused(await send());
  postgres.resume();
  await until(async () => (await gateway.get("/readyz")).status === 200, { what: "ready" });
  const again = await send();
  assert.equal(again.status, 200, again.text);
  const runs = (await gateway.get("/api/v1/runs?filter[taskIdentifier]=sent")).json.data;
  assert.deepEqual(runs.map(({ id }) => id), [again.json.id]);
  judgeUnmoved(world);
  await stopWorld(world);
});

test("writes that wait for a write in flight are refused, and are not done afterwards", { timeout: 240_000 }, async (t) => {
  const world = await startWorld(await startPostgres({ t }), { t }), { gateway, postgres } = world;
  const { id } = (await trigger(gateway)).json;
  const increment = () => gateway.put(`/api/v1/runs/${id}/metadata`, { operations: [{ type: "increment", key: "n", value: 1 }] });
  postgres.freeze();
  const first = increment(), others = [];
  await gateway.get("/healthz"); // sent after it, so the increment has left when this is answered
  for (let i = 0; i < 10; i++) others.push(increment());
  assertRefused(await first, /it is unknown whether this was done/);
  for (const answer of await Promise.all(others)) assertRefused(answer);
  postgres.resume();
  await until(async () => (await gateway.get("/readyz")).status === 200, { what: "ready" });
  assert.equal((await gateway.get(`/api/v3/runs/${id}`)).json.metadata.n, 1);
  judgeUnmoved(world);
  await stopWorld(world);
});

test("a gateway that receives SIGTERM while the database does not answer ends", { timeout: 240_000 }, async (t) => {
  const postgres = await startPostgres({ t }), gateway = await startGateway({ t, ...onDatabase(postgres, "ends", { options: ["--drain-timeout", "1s"] }) });
  postgres.freeze();
  const answer = await trigger(gateway);
  assertRefused(answer, /it is unknown whether this was done/);
  assert.equal(answer.headers["x-should-retry"], "false", "no SDK repeats it, because it has no key");
  gateway.child.kill("SIGTERM");
  await until(() => gateway.end, { timeoutMs: 60_000, what: "it ends" });
  assert.deepEqual(gateway.end, { code: 0, signal: null });
  postgres.resume();
});

test("while the database is read-only nothing is acknowledged, and writes are refused", { timeout: 240_000 }, async (t) => {
  const { gateway, postgres } = shared, writers = await write(t, shared);
  postgres.readOnly(true);
  await until(async () => (await gateway.get("/readyz")).status === 503, { what: "not ready" });
  assertRefused(await trigger(gateway));
  const { count } = writers, refused = () => [...writers.refusals.values()].reduce((sum, one) => sum + one, 0), before = refused();
  await until(() => refused() >= before + 50, { what: "fifty are refused" });
  assert.equal(writers.count, count, "nothing is acknowledged");
  postgres.readOnly(false);
  await judge(shared, writers);
  judgeUnmoved(shared);
});

test("a database that is out of space: writes are refused as such, reads continue, and free space alone ends it", { timeout: 240_000 }, async (t) => {
  if (!mayMount()) return t.diagnostic("no right to mount a small disk here");
  const postgres = await startPostgres({ t, diskSize: "32m" });
  const world = await startWorld(postgres, { t }), { gateway } = world, writers = await write(t, world);
  const ballast = postgres.onSmallDisk("ballast");
  const { bavail, bsize } = fs.statfsSync?.(postgres.onSmallDisk(".")) ?? { bavail: 16, bsize: 1 << 20 };
  fs.writeFileSync(ballast, Buffer.alloc(Math.max(0, bavail * bsize - (2 << 20)), 1));
  const big = Array.from({ length: 75_000 }, () => Math.random().toString(36).slice(2, 4)).join("");
  const there = [];
  let refused;
  for (let i = 0; i < 100 && !refused; i++) {
    const reply = await trigger(gateway, big);
    if (reply.status === 200) there.push(reply.json.id);
    else refused = reply;
  }
  assertRefused(refused, /^storage_full$/);
  assert.ok(there.length, "some found room");
  await until(async () => { // a small write of another client may have found space since
    await trigger(gateway, big);
    return (await gateway.get("/readyz")).json.reasons?.includes("storage_full");
  }, { what: "not ready" });
  for (const key of [keys.prod, keys.staging]) // each connection that writes finds no space; not all of them write later
    await until(async () => (await trigger(gateway, big, key)).json.error === "storage_full", { what: "another environment is refused" });
  for (const id of there) assert.equal((await gateway.get(`/api/v3/runs/${id}`)).status, 200);
  fs.rmSync(ballast);
  await until(async () => (await trigger(gateway)).status === 200, { what: "room again" });
  await judge(world, writers);
  judgeUnmoved(world);
  for (const id of there) assert.equal((await gateway.get(`/api/v3/runs/${id}`)).json?.payload, big);
  await stopWorld(world);
});

/** A database with a synchronous standby, and a gateway that is written to. */
async function startWithStandby(t, settings) {
  const postgres = await startPostgres({ t }), standby = await postgres.standby({ t });
  const world = await startWorld(postgres, { t, url: urlOfBoth(postgres, standby), ...settings });
  return { standby, world, writers: await write(t, world) };
}

test("a failover to a synchronous standby loses nothing acknowledged, and changes the epoch once", { timeout: 150_000 }, async (t) => {
  const { standby, world, writers } = await startWithStandby(t), { postgres, gateway, mirror, epoch } = world;
  await postgres.kill();
  standby.promote();
  await writers.untilServed(60_000);
  await until(() => mirror.connect().then(() => true, () => false), { what: "the subscriber comes again", everyMs: 200 });
  await judge(world, writers, { stored: standby });
  assert.notEqual(mirror.epoch, epoch, "it is not known whether the standby had everything");
  assert.equal(gateway.stderr.match(/"lead lost; restarting"/g)?.length, 1, gateway.stderr.slice(-3000));
  assert.match(gateway.stderr, /"event":"the store failed; no write is acknowledged","reason":"another server has become the primary one"/);
  assert.doesNotMatch(gateway.stderr, /another (process|gateway)/, "there is no other one");
  assert.equal(gateway.end, undefined, "the process is the same");
  await stopWorld(world);
});

test("after a failover that is lossless, the leader and its clients continue", { timeout: 150_000 }, async (t) => {
  const { standby, world, writers } = await startWithStandby(t, { options: ["--failover", "lossless"] });
  await world.postgres.kill();
  standby.promote();
  await judge(world, writers, { stored: standby });
  judgeUnmoved(world);
  assert.doesNotMatch(world.gateway.stderr, /but the database has no synchronous standby/);
  await world.gateway.stop();
  await world.gateway.start();
  await until(() => world.mirror.connect().then(() => true, () => false), { what: "the subscriber comes again", everyMs: 200 });
  assert.equal(world.mirror.epoch, world.epoch, "a restart keeps the epoch, too");
  await stopWorld(world);
});

test("a reading start resumes after a pause, and holds nothing in the database for long while its gateway is stopped", { timeout: 200_000 }, async (t) => {
  const postgres = await startPostgres({ t }), gateway = await startGateway({ t, ...onDatabase(postgres, "starts") });
  const items = Array(8).fill({ task: "waits", payload: "x".repeat(100_000) });
  for (let i = 0; i < 100; i++) assert.equal((await gateway.post("/api/v1/tasks/batch", { items })).status, 202);
  await gateway.stop();
  const session = (what) => postgres.query(`SELECT ${what} FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND state = 'active' AND query LIKE '%COPY (SELECT r.rev%'`);
  const standStill = async () => {
    await gateway.start({ ready: false });
    await until(() => session("pid"), { everyMs: 1, what: "it reads" });
    process.kill(gateway.pid, "SIGSTOP");
    await until(() => session("wait_event") === "ClientWrite", { what: "the server waits for it" });
  };
  const goOn = async () => {
    process.kill(gateway.pid, "SIGCONT");
    await until(() => gateway.isReady(), { timeoutMs: 60_000, what: "it serves" });
    assert.match((await gateway.get("/api/v1/runs/counts")).text, /\b800\b/, "all of them");
  };

  await standStill();
  session("pg_cancel_backend(pid)");
  await goOn();
  assert.match(gateway.stderr, /the database canceled a read of the start/);
  await gateway.stop();

  await standStill();
  await until(() => !session("pid"), { timeoutMs: 90_000, everyMs: 500, what: "the server gives it up" });
  await goOn();
  await gateway.stop();
});

test("at a database that is slow but answers, reads wait their turn for longer than a silent one is waited for", { timeout: 240_000 }, async (t) => {
  const postgres = await startPostgres();
  const relay = await PgRelay.start(postgres, t);
  const gateway = await startGateway(onDatabase(postgres, "only", { url: relay.url }));
  t.after(async () => { await gateway.stop(); await postgres.stop("immediate"); });
  relay.delayMs = 60;
  const began = performance.now();
  const reads = await Promise.all(Array.from({ length: 100 }, (_, i) => gateway.get(`/api/v3/runs/run_${String(i).padStart(25, "a")}`)));
  assert.ok(performance.now() - began > 6000, "the line is as long as it has to be");
  assert.deepEqual([...new Set(reads.map(({ status }) => status))], [404], reads.find(({ status }) => status !== 404)?.text);
  relay.delayMs = 0;
});

test("a read that waits for a lock is refused in time, and so is one that gets no answer on any connection", { timeout: 240_000 }, async (t) => {
  const postgres = await startPostgres({ t }), relay = await PgRelay.start(postgres, t);
  const gateway = await startGateway({ t, ...onDatabase(postgres, "only", { url: relay.url }) });
  const read = () => gateway.get(`/api/v3/runs/run_${"a".repeat(25)}`);
  const waiting = () => postgres.query("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'");
  const schema = postgres.query("SELECT schemaname FROM pg_tables WHERE tablename = 'run'");
  const locker = spawn("psql", ["-X", "-c", `BEGIN; LOCK TABLE ${schema}.run; SELECT pg_sleep(100)`, postgres.url]);
  t.after(() => locker.kill());
  await until(() => postgres.query("SELECT 1 FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted AND relation IS NOT NULL"), { what: "the lock" });
  assertRefused(await read(), /./);
  await until(() => waiting() === "0", { what: "nothing is left that waits" });
  postgres.endBackends({ holding: "pg_sleep" });
  assert.equal((await read()).status, 404);

  for (let i = 0; i < 20; i++) relay.order("stall", { from: "server", of: "lock_timeout" });
  assertRefused(await read(), /./);
  assert.equal((await gateway.get("/readyz")).status, 200, "it leads on");
  relay.forget();
  relay.pass();
  await until(async () => (await read()).status === 404, { what: "reads continue" });
});
