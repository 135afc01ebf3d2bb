// repeats.mjs - the cost of a request's key, by which a repeated update of metadata takes effect once.
//
//   node bench/repeats.mjs BUILD [BEFORE]        Release build directories; BEFORE: of an earlier commit, to compare with
//
// CHANGES  per measurement (4000)
// ROUNDS   how often; medians are printed (11)
//
// A random key in each request becomes a claim, which the commit of the update stores. Measured are the CPU of the
// gateway's process (utime and stime of /proc/PID/stat) and the time of an update, with its commit, with and without
// a key, and with a key at the program of BEFORE. They take turns, so that other work on the machine affects all of
// them, and each ratio is that of one round.
//
// Exits with status 1 if an update with a key costs more than 1.1 times what it costs at BEFORE.
import { randomUUID } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";

import { startGateway } from "../tests/support/js/gateway.mjs";

const [build = "build", earlier] = process.argv.slice(2);
const { CHANGES = 4000, ROUNDS = 11 } = process.env;
const TICK_MS = 10, LANES = 32, TARGET = 1.1; // TICK_MS: of /proc, on every common Linux

/** Starts a gateway of a build, with a run for each lane. */
async function start(folder) {
  process.env.GATEWAY_BIN = process.env.GATEWAY_RELEASE_BIN = path.resolve(folder, "runcast");
  const gateway = await startGateway({ release: true }), ids = [];
  for (let i = 0; i < LANES; i++) ids.push((await gateway.post("/api/v1/tasks/changed/trigger", { options: { delay: "1h" } })).json.id);
  return { gateway, ids };
}

function cpuMs(pid) {
  const text = fs.readFileSync(`/proc/${pid}/stat`, "latin1"), fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return TICK_MS * (Number(fields[11]) + Number(fields[12]));
}

/** CPU and time of one update in µs, with one in flight for each run. */
async function measure({ gateway, ids }, hasKey) {
  const cpu = cpuMs(gateway.pid), began = performance.now();
  let left = CHANGES;
  await Promise.all(ids.map(async (id) => {
    while (left-- > 0) {
      const headers = hasKey ? { "x-trigger-request-idempotency-key": randomUUID() } : {};
      const { status, text } = await gateway.put(`/api/v1/runs/${id}/metadata`, { operations: [{ type: "increment", key: "n", value: 1 }] }, { headers });
      if (status !== 200) throw new Error(text);
    }
  }));
  return { cpu: 1000 * (cpuMs(gateway.pid) - cpu) / CHANGES, time: 1000 * (performance.now() - began) / CHANGES };
}

const now = await start(build), before = earlier && await start(earlier);
const kinds = { "without a key": [now, false], "with a key": [now, true], ...before && { "with a key, at BEFORE": [before, true] } };
const rounds = [], loads = [os.loadavg()[0]];
for (const kind of Object.values(kinds)) await measure(...kind); // warm
for (let i = 0; i < ROUNDS; i++) {
  const round = {}, names = Object.keys(kinds);
  for (const name of i % 2 ? names.reverse() : names) round[name] = await measure(...kinds[name]);
  rounds.push(round);
  loads.push(os.loadavg()[0]);
}
await now.gateway.stop();
await before?.gateway.stop();

const median = (values) => values.slice().sort((a, b) => a - b)[values.length >> 1];
console.log(`updates of metadata, ${LANES} in flight, ${CHANGES} at a time, ${ROUNDS} times; load of the machine (${os.availableParallelism()} cores): ${Math.min(...loads).toFixed(1)} to ${Math.max(...loads).toFixed(1)}`);
for (const name of Object.keys(kinds))
  console.log(`${name.padEnd(46)} ${median(rounds.map((round) => round[name].cpu)).toFixed(1).padStart(8)} µs CPU ${median(rounds.map((round) => round[name].time)).toFixed(1).padStart(8)} µs`);

/** Prints the ratio of an update with a key to another kind; returns true if a target is missed. */
function compare(name, target) {
  const of = (figure) => rounds.map((round) => round["with a key"][figure] / round[name][figure]), cpu = of("cpu"), missed = target && median(cpu) > target;
  const range = `${Math.min(...cpu).toFixed(2)} to ${Math.max(...cpu).toFixed(2)}`;
  console.log(`${`with a key, by ${name}`.padEnd(46)} ${median(cpu).toFixed(2).padStart(8)} of CPU (${range}), ${median(of("time")).toFixed(2)} of time${target ? `   CPU <= ${target}  ${missed ? "MISSED" : "met"}` : ""}`);
  return missed;
}
compare("without a key");
process.exit(before && compare("with a key, at BEFORE", TARGET) ? 1 : 0);
