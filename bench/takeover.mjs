// takeover.mjs - how long no gateway serves after the leader has gone.
//
// Two gateways share one PostgreSQL behind HAProxy, as in deploy/failover.md, and 8 clients write. With FOLLOWERS=1, there
// are three which follow each other, in round robin, as in deploy/cluster.md.
//
//   node bench/takeover.mjs BUILD [WORD…]        BUILD: a Release build directory; needs PostgreSQL and HAProxy
//
// WORD      only faults whose name contains one of the words
//
// ROUNDS    how often the leader gets SIGTERM, and how often it is killed (20). It is also stopped (SIGSTOP), and cut
//           off from the database, a fifth as often, at least once each. Another gateway leads next
// RUNS      unfinished ones that each takeover loads (100000). Before they are made, the leader gets SIGTERM ROUNDS
//           times
//
//   it ends ──► dead after 5 s ──► taken, loaded ──► HAProxy finds it ready ──► a write is acknowledged
//   └──────────────── how long no write was acknowledged ────────────────────────┘
//
// Writes in flight finish first, so the longest time between two responses around the fault counts, of any client. At
// the end, the database is checked: every acknowledged run must be there exactly once. With FOLLOWERS=1, a subscriber of each
// gateway that remains must stay connected.
//
// Exits with status 1 if a target is missed.
import assert from "node:assert/strict";
import os from "node:os";
import path from "node:path";

import { Writers } from "../tests/support/js/acknowledged.mjs";
import { startCluster } from "../tests/support/js/cluster.mjs";
import { follows } from "../tests/support/js/followers.mjs";
import { sleep, until } from "../tests/support/js/gateway.mjs";
import { follow, standsBy, startTwoGateways } from "../tests/support/js/two_gateways.mjs";
import { triggerWaiting } from "./waiting_runs.mjs";

const [build = "build", ...wanted] = process.argv.slice(2), isFollowed = process.env.FOLLOWERS === "1";
const runs = Number(process.env.RUNS ?? 100_000), rounds = Number(process.env.ROUNDS ?? 20), few = Math.max(1, Math.round(rounds / 5)), WRITERS = 8;
const TARGET_MS = 8000, KILLED_MS = isFollowed ? 3000 : TARGET_MS, PLANNED_MS = 500, STEADY_MS = 6000;
process.env.GATEWAY_BIN = process.env.GATEWAY_RELEASE_BIN = path.resolve(build, "runcast");

/** It drains for as long as its clients take. */
const toldToEnd = [(gateway) => gateway.child.kill("SIGTERM"), async (gateway) => { await gateway.ended(); await gateway.start({ ready: false }); }];

const faults = [
  ["told to end", rounds, isFollowed ? PLANNED_MS : TARGET_MS, ...toldToEnd],
  ["killed", rounds, KILLED_MS, (gateway) => gateway.kill(), (gateway) => gateway.restart({ ready: false })],
  ["stopped", few, TARGET_MS, (gateway) => gateway.child.kill("SIGSTOP"), (gateway) => gateway.child.kill("SIGCONT")],
  ["cut off from the database", few, TARGET_MS, (gateway) => gateway.relay.hold(), (gateway) => gateway.relay.pass()],
];

const loads = [os.loadavg()[0]];
const { postgres, gateways, url } = await (isFollowed ? startCluster(undefined, { isRelayed: true, release: true }) : startTwoGateways(undefined, { release: true }));
const writers = new Writers(url, { clients: WRITERS, pauseMs: isFollowed ? 50 : 5 });
const mirrors = new Map();
for (const gateway of isFollowed ? gateways : []) mirrors.set(gateway, await follow({ port: gateway.port, filter: { tags: ["client-0"] } }));
let closed = 0;

const leaderOf = (all) => until(async () => { for (const one of all) if (await one.leads().catch(() => false)) return one; }, { timeoutMs: 60_000, what: "a gateway leads" });

/** The longest time without an acknowledged write, from now until another gateway has served for a while. */
async function pause(leads, end) {
  const others = gateways.filter((one) => one !== leads), sockets = others.map((one) => mirrors.get(one)?.socket);
  let last = performance.now(), longest = 0, count = writers.count;
  const watch = setInterval(() => {
    const now = performance.now();
    if (writers.count !== count) last = now;
    count = writers.count;
    longest = Math.max(longest, now - last);
  }, 5);
  await end(leads);
  await leaderOf(others);
  await writers.untilServed(60_000);
  clearInterval(watch);
  closed += others.filter((one, i) => mirrors.get(one)?.socket !== sockets[i]).length;
  return longest;
}

async function measure([, , , end, comeBack]) {
  const leads = await leaderOf(gateways);
  await writers.untilServed();
  if (isFollowed) await sleep(STEADY_MS); // a gateway watches the leader's session once it has had its own for dead-after
  const ms = await pause(leads, end);
  await comeBack(leads);
  await (isFollowed ? follows : standsBy)(leads);
  loads.push(os.loadavg()[0]);
  return ms;
}

const results = [];
async function measureAll(fault) {
  const times = [], [what, count, target] = fault;
  if (wanted.length && !wanted.some((word) => what.includes(word))) return;
  for (let round = 0; round < count; round++) times.push(await measure(fault));
  results.push([what, times.sort((a, b) => a - b), target]);
}

await measureAll(["told to end, few runs", rounds, PLANNED_MS, ...toldToEnd]);
await triggerWaiting(await leaderOf(gateways), runs, 512);
for (const fault of faults) await measureAll(fault);
await writers.stop();
writers.judge(postgres);
for (const mirror of mirrors.values()) { await mirror.leave(); assert.deepEqual(mirror.errors, []); }
const last = await leaderOf(gateways);
for (const gateway of [...gateways.filter((one) => one !== last), last]) await gateway.stop();
await postgres.stop();

let missed = closed > 0 ? 1 : 0;
console.log(`${gateways.length} gateways, ${runs} unfinished runs, ${WRITERS} clients that write: how long no write was acknowledged when the one that leads is …`);
console.log(`load of the machine (${os.availableParallelism()} cores): ${Math.min(...loads).toFixed(1)} to ${Math.max(...loads).toFixed(1)}`);
for (const [what, times, target] of results) {
  const max = times.at(-1), met = max <= target;
  missed += !met;
  console.log(`${what.padEnd(28)} ${`${times.length}`.padStart(3)} times   p50 ${times[times.length >> 1].toFixed(0)} ms   max ${max.toFixed(0)} ms   <= ${target}  ${met ? "met" : "MISSED"}`);
}
if (isFollowed) console.log(`${closed} subscribers of gateways that remained were closed`);
console.log(`${writers.count} runs were acknowledged: all of them are stored, each once`);
process.exit(missed ? 1 : 0);
