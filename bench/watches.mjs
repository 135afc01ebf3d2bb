// What live lists cost a change that they do not want, and how soon counts are there.
//
//   node bench/watches.mjs BUILD        BUILD: a Release build directory
//
// WATCHES  with different filters, 16 a connection (1000)
// CHANGES  of one measurement (4000)
// ROUNDS   how often; the medians are printed (5)
// RUNS     that are counted (100000; FULL=1: a million)
//
// CPU of a change is what the gateway's process uses while it is made (utime and stime of
// /proc/PID/stat): once with connections that watch nothing, once with those that watch. The two
// take turns on one gateway, so that whatever else the machine does is in both. Of four filters one
// names a tag, one a task, one a queue, which the gateway has indices of, and one a version, by
// which each change is judged.
//
// Ends with status 1 if a target is missed.
import fs from "node:fs";
import path from "node:path";

import { keys, startGateway, until } from "../tests/support/js/gateway.mjs";
import { RunsSocket } from "../tests/support/js/runs.mjs";

const [build = "build"] = process.argv.slice(2);
const { WATCHES = 1000, CHANGES = 4000, ROUNDS = 5, FULL, RUNS = FULL ? 1_000_000 : 100_000 } = process.env;
process.env.GATEWAY_BIN = process.env.GATEWAY_RELEASE_BIN = path.resolve(build, "runcast");
const TICK_MS = 10; // of /proc, on every Linux that matters

const gateway = await startGateway({ release: true });

function cpuMs() {
  const text = fs.readFileSync(`/proc/${gateway.pid}/stat`, "latin1"), fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return TICK_MS * (Number(fields[11]) + Number(fields[12]));
}

const kinds = [(i) => ({ tag: `tag-${i}` }), (i) => ({ taskIdentifier: `task-${i}` }), (i) => ({ queue: `queue-${i}`, status: ["QUEUED", "EXECUTING"] }), (i) => ({ version: `2026.${i}` })];

/** Connections that watch so many filters, or nothing. */
async function open(watches) {
  const sockets = [];
  for (let i = 0; i < WATCHES; i++) {
    if (i % 16 === 0) sockets.push(await RunsSocket.open({ port: gateway.port, token: keys.dev, hello: {} }));
    if (i < watches) sockets.at(-1).send({ op: "watch", id: i, filter: kinds[i % kinds.length](i), limit: 50, counts: true });
  }
  for (let i = 0; i < watches; i++) await sockets[i >> 4].next((message) => message.op === "counts" && message.id === i);
  return sockets;
}

/** CPU in µs of one change of metadata, 32 under way at a time. */
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

// ---- what a change costs ----

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

// ---- how long a turn becomes when all want the same change ----

/** Turns of the loop that took more than 10 ms of CPU. */
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

// ---- how soon counts are there ----

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
