// watches.mjs - the cost of live lists for changes that they do not contain, and the delay of counts.
//
//   node bench/watches.mjs BUILD        BUILD: a Release build directory
//
// WATCHES  with different filters, 16 per connection (1000)
// CHANGES  per measurement (4000)
// ROUNDS   how often; medians are printed (5)
// RUNS     to count (100000; FULL=1: a million)
//
// The CPU of a change is that of the gateway's process (utime and stime of /proc/PID/stat): once with
// connections without watches, once with watches. The two take turns on one gateway, so that other
// work on the machine affects both. Three of four filters name a tag, a task or a queue, for which
// the gateway has indices; one names a version, and is evaluated for each change.
//
// Exits with status 1 if a target is missed.
import fs from "node:fs";
import path from "node:path";

import { keys, startGateway, until } from "../tests/support/js/gateway.mjs";
import { RunsSocket } from "../tests/support/js/runs.mjs";

const [build = "build"] = process.argv.slice(2);
const { WATCHES = 1000, CHANGES = 4000, ROUNDS = 5, FULL, RUNS = FULL ? 1_000_000 : 100_000 } = process.env;
process.env.GATEWAY_BIN = process.env.GATEWAY_RELEASE_BIN = path.resolve(build, "runcast");
const TICK_MS = 10; // of /proc, on every common Linux

const gateway = await startGateway({ release: true });

function cpuMs() {
  const text = fs.readFileSync(`/proc/${gateway.pid}/stat`, "latin1"), fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return TICK_MS * (Number(fields[11]) + Number(fields[12]));
}

const kinds = [(i) => ({ tag: `tag-${i}` }), (i) => ({ taskIdentifier: `task-${i}` }), (i) => ({ queue: `queue-${i}`, status: ["QUEUED", "EXECUTING"] }), (i) => ({ version: `2026.${i}` })];

/** Opens connections that watch this many filters, or none. */
async function open(watches) {
  const sockets = [];
  for (let i = 0; i < WATCHES; i++) {
    if (i % 16 === 0) sockets.push(await RunsSocket.open({ port: gateway.port, token: keys.dev, hello: {} }));
    if (i < watches) sockets.at(-1).send({ op: "watch", id: i, filter: kinds[i % kinds.length](i), limit: 50, counts: true });
  }
  for (let i = 0; i < watches; i++) await sockets[i >> 4].next((message) => message.op === "counts" && message.id === i);
  return sockets;
}

/** CPU in µs of one change of metadata, with 32 in flight. */
async function costOfChanges(ids) {
  const before = cpuMs();
  let left = CHANGES;
  await Promise.all(Array.from({ length: 32 }, async (_, lane) => {
    while (left-- > 0) {
      const { status, text } = await gateway.put(`/api/v1/runs/${ids[lane]}/metadata`, { metadata: { left } });
      if (status !== 200) throw new Error(text);
    }
  }));
  return 1000 * (cpuMs() - before) / CHANGES;
}

const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
let missed = 0;
function row(label, value, unit, target) {
  const verdict = target ? value <= target ? "met" : "MISSED" : "";
  missed += verdict === "MISSED";
  console.log(`${label.padEnd(46)} ${value.toFixed(unit === "µs" || unit === "ms" || Number.isInteger(value) ? 0 : 2).padStart(12)} ${unit.padEnd(6)} ${target ? `<= ${target}` : ""}  ${verdict}`.trimEnd());
}

// ---- the cost of a change ----

const ids = [];
for (let i = 0; i < 32; i++) ids.push((await gateway.post("/api/v1/tasks/changed/trigger", { options: { tags: ["changed"], delay: "1h" } })).json.id);
const without = [], beside = [], ratios = [];
await costOfChanges(ids); // warm
for (let round = 0; round < ROUNDS; round++) {
  for (const [watches, costs] of [[0, without], [Number(WATCHES), beside]]) {
    const sockets = await open(watches);
    costs.push(await costOfChanges(ids));
    await Promise.all(sockets.map((socket) => socket.cut()));
    await until(async () => (await gateway.metric("runcast_subscriptions")) === 0);
  }
  ratios.push(beside.at(-1) / without.at(-1));
}
console.log(`${WATCHES} watches with different filters, ${CHANGES} changes of runs that none of them wants`);
row("CPU of a change, nobody watches", median(without), "µs");
row("CPU of a change beside them", median(beside), "µs");
row("the second by the first, of one round", median(ratios), "", 1.2);

// ---- long turns if all lists contain the same change ----

/** How many turns of the loop took more than 10 ms of CPU. */
async function longTurns() {
  const [all, short] = await Promise.all(["+Inf", "0.01"].map((le) => gateway.metric(`runcast_loop_turn_cpu_seconds_bucket{le="${le}"}`)));
  return all - short;
}

const wanting = [], before = await longTurns();
for (let i = 0; i < WATCHES; i++) {
  if (i % 16 === 0) wanting.push(await RunsSocket.open({ port: gateway.port, token: keys.dev, hello: {} }));
  wanting.at(-1).send({ op: "watch", id: i, filter: { from: 1000 + i }, limit: 200, counts: true });
}
for (let i = 0; i < WATCHES; i++) await wanting[i >> 4].next((message) => message.op === "counts" && message.id === i);
const items = Array.from({ length: 250 }, () => ({ task: "wanted", options: { tags: ["wanted"], delay: "1h" } }));
for (let i = 0; i < 4; i++) await gateway.post("/api/v2/tasks/batch", { items });
await gateway.post("/api/v1/bulk-actions", { action: "cancel", filter: { tag: "wanted" } });
await until(async () => (await gateway.get("/api/v1/runs/counts?filter[tag]=wanted")).json.byStatus.CANCELED === 1000, { timeoutMs: 60_000 });
row("turns > 10 ms, each list wants 1,000 runs", await longTurns() - before, "", 2);
await Promise.all(wanting.map((socket) => socket.cut()));

// ---- the delay of counts ----

for (let made = 0; made < RUNS;) {
  const items = Array.from({ length: 500 }, (_, i) => ({ task: `counted-${i % 7}`, options: { tags: ["counted"], delay: "1h" } }));
  const answers = await Promise.all(Array.from({ length: 8 }, () => gateway.post("/api/v2/tasks/batch", { items })));
  for (const { status, text } of answers) if (status !== 202) throw new Error(text);
  made += 4000;
}
const socket = await RunsSocket.open({ port: gateway.port, token: keys.dev, hello: {} });
await socket.next("welcome");
for (const [id, what, filter] of [[1, "of everything", {}], [2, "of one task of seven", { taskIdentifier: "counted-3" }], [3, "of a tag", { tag: "counted" }]]) {
  const began = performance.now();
  socket.send({ op: "watch", id, filter, limit: 1, counts: true });
  const { total } = await socket.next("counts", 60_000);
  row(`first counts ${what}, ${total} runs`, performance.now() - began, "ms", 1000);
}
await socket.cut();
await gateway.stop();
process.exit(missed ? 1 : 0);
