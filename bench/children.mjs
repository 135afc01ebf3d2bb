// children.mjs - how busy the official CLI is kept: one run waits for 200 children, which compute.
//
//   node bench/children.mjs BUILD        BUILD: a Release build directory; needs npm ci in
//                                        tests/conformance/worker
//
// CHILDREN  how many (200)
// MS        CPU time of each (100)
// ROUNDS    how often; medians are printed (3)
//
//   family ──► child, child …      at most two per core at a time
//
// The project has processKeepAlive. Figures:
//
// wall   from the trigger of the family to its end, by the gateway's clock
// CPU    of the processes that execute, including their start (/proc). The CPU of the CLI, the
//        gateway and everything else on the machine is printed, too, as they share the cores:
//        if others use much, the figures say more about them
// gap    largest time from the end of a child to the next start while some are queued, by the
//        gateway's clock
//
// Exits with status 1 if a target is missed.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";

import { startCli, workerFolder } from "../tests/support/js/cli.mjs";
import { startGateway, until } from "../tests/support/js/gateway.mjs";

const [build = "build"] = process.argv.slice(2);
const count = Number(process.env.CHILDREN ?? 200), ms = Number(process.env.MS ?? 100), rounds = Number(process.env.ROUNDS ?? 3);
process.env.GATEWAY_BIN = process.env.GATEWAY_RELEASE_BIN = path.resolve(build, "runcast");
const cores = os.availableParallelism();
const TICK_MS = 10; // of /proc, on every common Linux

/** The fields of /proc/PID/stat after the name, from the state on; empty if the process has exited. */
function stat(pid) {
  try {
    const text = fs.readFileSync(`/proc/${pid}/stat`, "latin1");
    return text.slice(text.lastIndexOf(")") + 2).split(" ");
  } catch { return []; }
}
const [PARENT, OWN, REAPED] = [1, 11, 13];
const cpu = (fields, from) => TICK_MS * (Number(fields[from] ?? 0) + Number(fields[from + 1] ?? 0));

/** CPU in ms that a process and those that it started have used so far, even if they have exited. */
function used(pid) {
  const own = stat(pid);
  const started = fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name)).map(stat)
    .filter((fields) => Number(fields[PARENT]) === pid);
  return { own: cpu(own, OWN), started: cpu(own, REAPED) + started.reduce((sum, fields) => sum + cpu(fields, OWN), 0) };
}

/** CPU in ms that the whole machine has used so far. */
function usedByAll() {
  const [user, nice, system, , , irq, soft] = fs.readFileSync("/proc/stat", "latin1").split("\n")[0].split(/ +/).slice(1).map(Number);
  return TICK_MS * (user + nice + system + irq + soft);
}

async function children(gateway) {
  const all = [];
  for (let after = ""; after !== undefined;) {
    const { json } = await gateway.get(`/api/v1/runs?filter[taskIdentifier]=child&page[size]=100${after && `&page[after]=${after}`}`);
    all.push(...json.data);
    after = json.pagination.next;
  }
  return all;
}

/** The longest time in ms from an end to the next start, while some are queued. */
function largestGap(runs) {
  const starts = runs.map((run) => Date.parse(run.startedAt)).sort((a, b) => a - b);
  const last = starts.at(-1);
  let largest = 0;
  for (const end of runs.map((run) => Date.parse(run.finishedAt)))
    if (end < last) largest = Math.max(largest, starts.find((start) => start >= end) - end);
  return largest;
}

async function measure() {
  const gateway = await startGateway({ release: true });
  const cli = await startCli({ gateway, folder: path.join(workerFolder, "pace"), logLevel: "log" });
  const look = () => ({ cli: used(cli.child.pid), gateway: used(gateway.pid).own, all: usedByAll() });
  const before = look();
  const { id } = (await gateway.post("/api/v1/tasks/family/trigger", { payload: { children: count, ms } })).json;
  const run = await until(async () => {
    const { json } = await gateway.get(`/api/v3/runs/${id}`);
    return json.isCompleted && json;
  }, { timeoutMs: 600_000, everyMs: 500, what: "the family has ended" });
  const after = look(), runs = await children(gateway);
  await cli.stop();
  await gateway.stop();
  if (run.output !== count) throw new Error(`the family ended ${run.status} with ${run.output}`);

  const result = {
    wall: Date.parse(run.finishedAt) - Date.parse(run.createdAt),
    cpu: after.cli.started - before.cli.started, cli: after.cli.own - before.cli.own,
    gateway: after.gateway - before.gateway, gap: largestGap(runs),
  };
  const ours = result.cpu + result.cli + result.gateway;
  return { ...result, others: after.all - before.all - ours, ratio: result.wall * cores / result.cpu, ofOurs: result.wall * cores / ours };
}

const results = [];
for (let round = 0; round < rounds; round++) results.push(await measure());
const median = (name) => results.map((result) => result[name]).sort((a, b) => a - b)[results.length >> 1];

let missed = 0;
function row(label, name, unit, target) {
  const value = median(name), verdict = target ? value <= target ? "met" : "MISSED" : "";
  missed += verdict === "MISSED";
  console.log(`${label.padEnd(46)} ${value.toFixed(unit ? 0 : 2).padStart(12)} ${unit.padEnd(6)} ${target ? `<= ${target}` : ""}  ${verdict}`.trimEnd());
}
console.log(`${count} children of ${ms} ms of CPU, the CLI with processKeepAlive, ${cores} cores`);
row("wall", "wall", "ms");
row("CPU of the processes that execute", "cpu", "ms");
row("  of the CLI itself", "cli", "ms");
row("  of the gateway", "gateway", "ms");
row("  of everything else on the machine", "others", "ms");
row("wall / (CPU / cores)", "ratio", "", 1.2);
row("  with the CPU of CLI and gateway", "ofOurs", "");
row("largest gap between an end and the next start", "gap", "ms", 50);
process.exit(missed ? 1 : 0);
