// takeover.mjs - how long no gateway serves after the leader has gone.
//
// Two gateways share one PostgreSQL behind HAProxy, as in deploy/failover.md, and 8 clients write.
//
//   node bench/takeover.mjs BUILD [WORD…]        BUILD: a Release build directory; needs PostgreSQL and HAProxy
//
// WORD      only faults whose name contains one of the words
//
// ROUNDS    how often the leader gets SIGTERM, and how often it is killed (20). It is also stopped (SIGSTOP), and cut
//           off from the database, a fifth as often, at least once each. The other gateway leads next
// RUNS      unfinished ones that each takeover loads (100000). Before they are made, the leader gets SIGTERM ROUNDS
//           times
//
//   it ends ──► dead after 5 s ──► taken, loaded ──► HAProxy finds it ready ──► a write is acknowledged
//   └──────────────── how long no write was acknowledged ────────────────────────┘
//
// Writes in flight finish first, so the longest time between two responses around the fault counts, of any client. At
// the end, the database is checked: every acknowledged run must be there exactly once.
//
// Exits with status 1 if a target is missed.
import os from "node:os";
import path from "node:path";

import { Writers } from "../tests/support/js/acknowledged.mjs";
import { until } from "../tests/support/js/gateway.mjs";
import { standsBy, startTwoGateways } from "../tests/support/js/two_gateways.mjs";
import { triggerWaiting } from "./waiting_runs.mjs";

const [build = "build", ...wanted] = process.argv.slice(2);
const runs = Number(process.env.RUNS ?? 100_000), rounds = Number(process.env.ROUNDS ?? 20), few = Math.max(1, Math.round(rounds / 5)), WRITERS = 8, TARGET_MS = 8000, PLANNED_MS = 500;
process.env.GATEWAY_BIN = process.env.GATEWAY_RELEASE_BIN = path.resolve(build, "runcast");

/** It drains for as long as its clients take. */
const toldToEnd = [(gateway) => gateway.child.kill("SIGTERM"), async (gateway) => { await gateway.ended(); await gateway.start({ ready: false }); }];

const faults = [
  ["told to end", rounds, ...toldToEnd],
  ["killed", rounds, (gateway) => gateway.kill(), (gateway) => gateway.restart({ ready: false })],
  ["stopped", few, (gateway) => gateway.child.kill("SIGSTOP"), (gateway) => gateway.child.kill("SIGCONT")],
  ["cut off from the database", few, (gateway) => gateway.relay.hold(), (gateway) => gateway.relay.pass()],
];

const loads = [os.loadavg()[0]];
const { postgres, leader, other, url } = await startTwoGateways(undefined, { release: true });
const writers = new Writers(url, { clients: WRITERS });
const gateways = [leader, other];

/** The longest time without an acknowledged write, from now until the other gateway has served for a while. */
async function pause(end) {
  const [leads, next] = gateways;
  let last = performance.now(), longest = 0, count = writers.count;
  const watch = setInterval(() => {
    const now = performance.now();
    if (writers.count !== count) last = now;
    count = writers.count;
    longest = Math.max(longest, now - last);
  }, 5);
  await end(leads);
  await until(() => next.isReady(), { timeoutMs: 60_000, what: "the other one serves" });
  await writers.untilServed(60_000);
  clearInterval(watch);
  return longest;
}

async function measure([, , end, comeBack]) {
  await writers.untilServed();
  const ms = await pause(end), [gone] = gateways;
  await comeBack(gone);
  await standsBy(gone);
  gateways.reverse();
  loads.push(os.loadavg()[0]);
  return ms;
}

const results = [];
async function measureAll(fault, target) {
  const times = [];
  if (wanted.length && !wanted.some((word) => fault[0].includes(word))) return;
  for (let round = 0; round < fault[1]; round++) times.push(await measure(fault));
  results.push([fault[0], times.sort((a, b) => a - b), target]);
}

await measureAll(["told to end, few runs", rounds, ...toldToEnd], PLANNED_MS);
await triggerWaiting(gateways[0], runs, 512);
for (const fault of faults) await measureAll(fault, TARGET_MS);
await writers.stop();
writers.judge(postgres);
await gateways[1].stop();
await gateways[0].stop();
await postgres.stop();

let missed = 0;
console.log(`two gateways, ${runs} unfinished runs, ${WRITERS} clients that write: how long no write was acknowledged when the one that leads is …`);
console.log(`load of the machine (${os.availableParallelism()} cores): ${Math.min(...loads).toFixed(1)} to ${Math.max(...loads).toFixed(1)}`);
for (const [what, times, target] of results) {
  const max = times.at(-1), met = max <= target;
  missed += !met;
  console.log(`${what.padEnd(28)} ${`${times.length}`.padStart(3)} times   p50 ${times[times.length >> 1].toFixed(0)} ms   max ${max.toFixed(0)} ms   <= ${target}  ${met ? "met" : "MISSED"}`);
}
console.log(`${writers.count} runs were acknowledged: all of them are stored, each once`);
process.exit(missed ? 1 : 0);
