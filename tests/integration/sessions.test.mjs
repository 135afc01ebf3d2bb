// A leader registers its session in PostgreSQL. If it is killed, another gateway takes over before dead-after expires. A
// session that ends while the leader lives moves no lead, and neither does a restart of the database.
//
//   KILLS=20 node sessions.test.mjs      how often the leader is killed; the times are printed
import assert from "node:assert/strict";
import { test } from "node:test";

import { Writers } from "../support/js/acknowledged.mjs";
import { sleep, startGateway, until } from "../support/js/gateway.mjs";
import { startPgBouncer } from "../support/js/pgbouncer.mjs";
import { onDatabase, startPostgres } from "../support/js/postgres.mjs";
import { follow, standsBy, startTwoGateways } from "../support/js/two_gateways.mjs";

const kills = Number(process.env.KILLS ?? 2), deadMs = 6000, options = ["--dead-after", `${deadMs / 1000}s`];
const WATCHING_BEAT_MS = 250; // as in leading.c

const beats = (postgres, name) => Number(postgres.query(`SELECT beat FROM runcast.gateway WHERE name = '${name}'`));
const registered = (postgres) => postgres.query("SELECT string_agg(session_pid::text, ' ') FROM runcast.gateway");
const term = (postgres) => postgres.query("SELECT term FROM runcast.realm");

/** Waits until the gateways have beaten as often as they do within the time. */
async function beat(postgres, ms, ...gateways) {
  const before = gateways.map(({ name }) => beats(postgres, name)), count = Math.ceil(ms / WATCHING_BEAT_MS) + 1;
  await until(() => gateways.every(({ name }, i) => beats(postgres, name) >= before[i] + count), { everyMs: 500, timeoutMs: 60_000, what: `${count} more beats` });
}

/** Waits until the standby counts sessions: its beats have been answered for dead-after, and the leader's is registered. */
async function watched(postgres, standby) {
  await until(() => registered(postgres), { everyMs: 100, timeoutMs: 60_000, what: "the leader's session is registered" });
  await beat(postgres, deadMs, standby);
}

test("a killed leader is replaced before dead-after expires, and nothing acknowledged is lost", { timeout: 120_000 + kills * 60_000 }, async (t) => {
  const { url, postgres, ...pair } = await startTwoGateways(t, { options }), writers = new Writers(url), took = [];
  let { leader, other } = pair;
  t.after(() => writers.giveUp());
  for (let i = 0; i < kills; i++) {
    await writers.untilServed();
    await watched(postgres, other);
    await leader.kill();
    took.push(await writers.untilServed(60_000));
    await leader.restart({ ready: false });
    await standsBy(leader);
    [leader, other] = [other, leader];
  }
  await writers.stop();
  writers.judge(postgres);
  t.diagnostic(`served again after ${took.sort((a, b) => a - b).join(", ")} ms`);
  assert.ok(took.at(-1) < deadMs);
  await other.stop();
  await leader.stop();
});

test("a leader whose session ends again and again keeps the lead and its clients", { timeout: 180_000 }, async (t) => {
  const { postgres, leader, other } = await startTwoGateways(t, { options }), mirror = await follow({ port: leader.port, filter: { all: true } });
  t.after(() => mirror.leave());
  await watched(postgres, other);
  const { socket } = mirror;
  for (let i = 0; i < 20; i++) {
    const pid = registered(postgres);
    postgres.query(`SELECT pg_terminate_backend(${pid})`);
    await until(() => ![pid, ""].includes(registered(postgres)), { everyMs: 100, what: "it registers another session" });
  }
  await beat(postgres, 3000, leader, other);
  assert.equal(term(postgres), "1");
  assert.equal(mirror.socket, socket);
  assert.doesNotMatch(leader.stderr, /lead lost/);
  await other.stop();
  await leader.stop();
});

test("a leader that cannot reconnect to the database is in doubt before another gateway leads", { timeout: 180_000 }, async (t) => {
  const { postgres, leader, other } = await startTwoGateways(t, { options });
  await watched(postgres, other);
  const states = [];
  let watches = true;
  const leads = async (gateway) => (await gateway.http.request("GET", "/readyz").catch(() => ({}))).status === 200;
  const watching = (async () => { for (; watches; await sleep(5)) states.push((await leads(other)) && (await leads(leader))); })();
  const began = Date.now();
  await leader.relay.refuse();
  await until(() => leads(other), { timeoutMs: 60_000, what: "the other one leads" });
  t.diagnostic(`another gateway led after ${Date.now() - began} ms`);
  leader.relay.accept();
  await standsBy(leader);
  watches = false;
  await watching;
  assert.deepEqual([...new Set(states)], [false]);
  assert.equal(term(postgres), "2");
  await other.stop();
  await leader.stop();
});

test("a crash of the database, which ends all sessions, leaves the lead where it is", { timeout: 180_000 }, async (t) => {
  const { postgres, leader, other } = await startTwoGateways(t, { options });
  await watched(postgres, other);
  process.kill(Number(registered(postgres)), "SIGKILL"); // the server ends all other sessions, too
  await until(() => { try { return registered(postgres); } catch { return false; } }, { what: "the leader's session is registered again" });
  await beat(postgres, 3000, leader, other);
  assert.equal(term(postgres), "1");
  await other.stop();
  await leader.stop();
});

test("a leader that ends with the database is replaced after the whole of dead-after", { timeout: 180_000 }, async (t) => {
  const { postgres, leader, other } = await startTwoGateways(t, { options });
  await watched(postgres, other);
  await leader.kill();
  await postgres.restart({ mode: "immediate" });
  const began = Date.now();
  await until(() => other.isReady(), { timeoutMs: 60_000, what: "the other one leads" });
  assert.ok(Date.now() - began > deadMs - 1000, `${Date.now() - began} ms`);
  await other.stop();
});

test("through PgBouncer no session is registered, and a killed leader is replaced after dead-after", { timeout: 180_000 }, async (t) => {
  const postgres = await startPostgres({ t }), pooler = await startPgBouncer(postgres, { t, connections: 8 }), gateways = [];
  for (const name of ["a", "b"])
    gateways.push(Object.assign(await startGateway({ t, ready: name === "a", ...onDatabase(postgres, name, { url: pooler.url, options }) }), { name }));
  const [leader, other] = gateways;
  await standsBy(other);
  await until(() => leader.stderr.includes("the session of heartbeats cannot be registered"), { timeoutMs: 60_000, what: "the leader logs that" });
  await until(() => beats(postgres, "b") > 10, { timeoutMs: 60_000, what: "the standby has beaten" });
  assert.equal(registered(postgres), "");
  await leader.kill();
  const began = Date.now();
  await until(() => other.isReady(), { timeoutMs: 60_000, what: "the other one leads" });
  assert.ok(Date.now() - began > deadMs - 2000, `${Date.now() - began} ms`);
  await other.stop();
});
