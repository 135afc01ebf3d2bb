// limits.mjs - the cost of concurrency limits and rates: CPU of a run by how many it holds, and memory while it waits.
//
//   node bench/limits.mjs BUILD          BUILD: a Release build directory
//
// RUNS    per kind and round (10000)
// ROUNDS  how often; medians are printed (5)
// FULL=1  a million waiting runs instead of a hundred thousand
//
//   trigger, with RUNS in the queue at the end ─► dequeue ─► start ─► complete
//
// All of it goes through HTTP, with 32 requests in flight, each synced. Measured is the CPU of the gateway's process (all
// threads), divided by RUNS. The kinds take turns in one gateway, so that other work on the machine affects all of
// them, and a ratio is that of one round. All limits have room, and rates have tokens. No bucket of a rate becomes full
// meanwhile, so each start is stored with its bucket.
//
// The second part fills two gateways, with 10,000 and with all waiting runs, and compares them, one request at a time:
// the next run of those that wait for a limit of 1, and a run without limits while the other runs wait for it. Memory is
// the difference of their Private_Dirty.
//
// Exits with status 1 if a target is missed.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";

import { keys, startGateway } from "../tests/support/js/gateway.mjs";
import { Worker } from "../tests/support/js/worker_calls.mjs";
import { triggerWaiting } from "./waiting_runs.mjs";
import { cpuUs } from "./cpu.mjs";

const [build = "build"] = process.argv.slice(2);
const RUNS = Number(process.env.RUNS ?? 10_000), ROUNDS = Number(process.env.ROUNDS ?? 5), many = process.env.FULL ? 1_000_000 : 100_000;
process.env.GATEWAY_BIN = process.env.GATEWAY_RELEASE_BIN = path.resolve(build, "runcast");
const IN_FLIGHT = 32, DIFFERENT_KEYS = 10_000, FEW = 10_000, TAKEN = 200, PAYLOAD_BYTES = 64, ROOM = 1000;

const five = { queue: { name: "bounded" }, concurrency: { inline: { perKey: ROOM, total: ROOM }, limits: ["first", "second"] } };
const declared = {
  tasks: [{ id: "none" }, { id: "one", concurrency: { limits: ["first"] } }, { id: "five", ...five }, { id: "rated", queue: { name: "rated" } }, { id: "behind", concurrency: { limits: ["narrow"] } }],
  queues: [{ name: "rated" }, { name: "bounded", concurrencyLimit: ROOM, combinedConcurrencyLimit: ROOM }],
  concurrencyLimits: [{ name: "first", perKey: ROOM, total: ROOM }, { name: "second", perKey: ROOM, total: ROOM }, { name: "narrow", total: 1 }],
};
const kinds = {
  "no limit": { task: "none" }, "1 limit": { task: "one" }, "5 limits": { task: "five" }, "a rate": { task: "rated" },
  "no limit, 10,000 keys": { task: "none", hasKeys: true }, "5 limits, 10,000 keys": { task: "five", hasKeys: true },
};

const dirtyBytes = (pid) => 1024 * Number(/^Private_Dirty: *(\d+)/m.exec(fs.readFileSync(`/proc/${pid}/smaps_rollup`, "latin1"))[1]);
const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

async function start() {
  const gateway = await startGateway({ release: true });
  const worker = await Worker.register(gateway, { key: keys.prod, ...declared });
  const { status, text } = await gateway.post("/api/v1/queues/rated/rate", { type: "custom", total: { starts: 100_000, period: "1d" } }, { key: keys.prod });
  if (status !== 200) throw new Error(text);
  return { gateway, worker };
}

/** Calls work(n) for each n below count, with some in flight at a time. */
async function severalAtOnce(count, width, work) {
  let next = 0;
  await Promise.all(Array.from({ length: width }, async () => { while (next < count) await work(next++); }));
}

async function complete(worker) {
  await (await worker.take()).complete({ ok: true });
}

/** Returns the gateway's CPU per run in µs, while `work` is done for `count` runs. */
async function cpuOf({ gateway }, count, width, work) {
  const before = cpuUs(gateway.pid);
  await severalAtOnce(count, width, work);
  return (cpuUs(gateway.pid) - before) / count;
}

async function measureKind(started, { task, hasKeys }) {
  const { worker } = started, payload = "x".repeat(PAYLOAD_BYTES);
  const trigger = await cpuOf(started, RUNS, IN_FLIGHT, (n) => worker.trigger(task, hasKeys ? { concurrencyKey: `k${n % DIFFERENT_KEYS}` } : {}, payload));
  const execute = await cpuOf(started, RUNS, IN_FLIGHT, () => complete(worker));
  return { trigger, execute, all: trigger + execute };
}

/** Starts a gateway and fills it with runs that wait. */
async function startFilled(size, options) {
  const started = await start();
  await triggerWaiting(started.gateway, size, PAYLOAD_BYTES, options);
  return { ...started, memory: dirtyBytes(started.gateway.pid) };
}

/** Compares two gateways, with few and with many waiting runs: the memory of one, and `look` at both in turn. */
async function measureWaiting(options, look) {
  const few = await startFilled(FEW, options), all = await startFilled(many, options), seen = [];
  for (let i = 0; look && i < ROUNDS; i++) {
    const [first, second] = i % 2 ? [all, few] : [few, all], looks = new Map([[first, await look(first)], [second, await look(second)]]);
    seen.push({ few: looks.get(few), all: looks.get(all) });
  }
  for (const { gateway } of [few, all]) await gateway.stop();
  return { bytes: (all.memory - few.memory) / (many - FEW), seen };
}

/** The CPU of a run that waited for the limit of 1, and of one that passes the others while that limit is full. */
async function lookBehind(started) {
  const { worker } = started;
  const next = await cpuOf(started, TAKEN, 1, () => complete(worker)), holder = await worker.take();
  const passing = await cpuOf(started, TAKEN, 1, async () => {
    const id = await worker.trigger("none");
    await (await worker.take(id)).complete({ ok: true });
  });
  await holder.complete({ ok: true });
  return { next, passing };
}

let missed = 0;
function row(label, value, unit, ratios, target) {
  const ratio = ratios && median(ratios), verdict = target ? ratio <= target ? "met" : "MISSED" : "";
  missed += verdict === "MISSED";
  const compared = ratios ? `${ratio.toFixed(2)} (${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})` : "";
  console.log(`${label.padEnd(52)} ${value.toFixed(1).padStart(8)} ${unit.padEnd(6)} ${compared.padEnd(22)} ${target ? `<= ${target}` : ""}  ${verdict}`.trimEnd());
}

const rounds = [], loads = [], started = await start(), names = Object.keys(kinds);
await measureKind(started, kinds["5 limits"]); // warm
for (let i = 0; i < ROUNDS; i++) {
  const round = {};
  for (const name of i % 2 ? [...names].reverse() : names) round[name] = await measureKind(started, kinds[name]);
  rounds.push(round);
  loads.push(os.loadavg()[0]);
}
await started.gateway.stop();

console.log(`${RUNS} runs at a time, ${IN_FLIGHT} in flight, ${ROUNDS} rounds; load of the machine (${os.availableParallelism()} cores): ${Math.min(...loads).toFixed(1)} to ${Math.max(...loads).toFixed(1)}`);
const targets = { "5 limits": 1.2, "5 limits, 10,000 keys": 1.2 };
for (const name of names) {
  const base = name.endsWith("keys") ? "no limit, 10,000 keys" : "no limit", ratios = (part) => rounds.map((round) => round[name][part] / round[base][part]);
  const of = (part) => median(rounds.map((round) => round[name][part])), isBase = name === base;
  row(name, of("all"), "µs CPU", isBase ? undefined : ratios("all"), targets[name]);
  row("  trigger", of("trigger"), "µs CPU", isBase ? undefined : ratios("trigger"));
  row("  dequeue, start, complete", of("execute"), "µs CPU", isBase ? undefined : ratios("execute"));
}

const without = await measureWaiting({ task: "none" });
const behind = await measureWaiting({ task: "behind" }, lookBehind);
const behindKeys = await measureWaiting({ task: "behind", differentKeys: DIFFERENT_KEYS }, lookBehind);
const withFive = await measureWaiting({ task: "five", differentKeys: DIFFERENT_KEYS });
console.log(`${many} waiting runs, compared with ${FEW}`);
for (const [name, { seen }] of [["", behind], [", 10,000 keys", behindKeys]])
  for (const [label, part] of [["the next run that waits for a limit of 1", "next"], ["a run that passes those that wait", "passing"]])
    row(`${label}${name}`, median(seen.map(({ all }) => all[part])), "µs CPU", seen.map(({ few, all }) => all[part] / few[part]), 1.5);
row("memory of a waiting run without limits", without.bytes, "bytes");
for (const [name, { bytes }] of [["with a limit of 1", behind], ["with a limit of 1, 10,000 keys", behindKeys], ["with 5 limits, 10,000 keys", withFive]])
  row(`  ${name}`, bytes, "bytes", [bytes / without.bytes]);
process.exit(missed ? 1 : 0);
