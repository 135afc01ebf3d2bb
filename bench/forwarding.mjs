// forwarding.mjs - the CPU of a call that a follower forwards.
//
// Two gateways on one PostgreSQL: one leads, the other follows. Runs are triggered at the leader, then at the follower.
//
//   node bench/forwarding.mjs BUILD         BUILD: a Release build directory; needs PostgreSQL
//
// ROUNDS       how often; the lowest figures are printed, since other work on the machine only adds to them (7)
// RUNS         that are triggered each time, with payloads of 512 bytes (10000)
// LARGE        the same, with payloads of 256 KiB (200)
// CONNECTIONS  of the clients, each with one call at a time (16)
//
// The follower applies each run in both cases. So the cost of forwarding there is what its CPU for a run grows by, divided
// by the leader's CPU for a run that was triggered at the leader.
//
// Exits with status 1 if a target is missed.
import { execFileSync } from "node:child_process";
import path from "node:path";

import { freePort, keys, startGateway, until } from "../tests/support/js/gateway.mjs";
import { onDatabase, startPostgres } from "../tests/support/js/postgres.mjs";
import { cpuUs } from "./cpu.mjs";

const [build = "build"] = process.argv.slice(2);
const { ROUNDS = 7, RUNS = 10_000, LARGE = 200, CONNECTIONS = 16 } = process.env;
process.env.GATEWAY_BIN = process.env.GATEWAY_RELEASE_BIN = path.resolve(build, "runcast");
const TARGET = 0.35;
const loads = [{ payload: 512, runs: Number(RUNS) }, { payload: 256 << 10, runs: Number(LARGE) }];

const postgres = await startPostgres({ settings: { shared_buffers: "256MB", max_wal_size: "4GB", autovacuum: "off" } });

/** All gateways have one port for their peers, so each has an address of its own. */
const peerPort = await freePort();
async function start(number, ready) {
  const options = ["--peer-listen", `127.0.0.${number + 1}:${peerPort}`];
  return startGateway({ release: true, ready, ...onDatabase(postgres, `gateway-${number}`, { options }) });
}

/** CPU of each gateway in µs for a run that is triggered at one of them. */
async function trigger(gateways, at, { payload, runs }) {
  const before = gateways.map(({ child }) => cpuUs(child.pid));
  const said = execFileSync(path.resolve(build, "runcast-bench"), ["trigger", "--url", at.url, "--concurrency", `${CONNECTIONS}`, "--count", `${runs}`,
    "--payload", `${payload}`, "--json"], { encoding: "utf8", env: { ...process.env, TRIGGER_SECRET_KEY: keys.prod } });
  if (JSON.parse(said).failed) throw new Error("triggers were refused");
  const [, last] = gateways;
  await until(async () => await last.metric("runcast_replication_waiting_bytes") === 0 && await last.metric("runcast_follows") === 1,
    { what: "the follower has read everything", timeoutMs: 60_000 });
  return gateways.map((gateway, i) => (cpuUs(gateway.child.pid) - before[i]) / runs);
}

const gateways = [await start(0, true), await start(1, true)];
for (const at of gateways) await trigger(gateways, at, loads[0]);

const lowest = new Map(); // by payload and the gateway at which runs are triggered: CPU of each gateway
for (let round = 0; round < ROUNDS; round++) {
  for (const load of loads) {
    for (const [number, at] of gateways.entries()) {
      const key = `${load.payload} ${number}`, costs = await trigger(gateways, at, load);
      lowest.set(key, costs.map((us, i) => Math.min(us, lowest.get(key)?.[i] ?? us)));
    }
  }
}
for (const gateway of [...gateways].reverse()) await gateway.stop();
await postgres.stop();

let missed = 0;
for (const { payload } of loads) {
  const [direct, forwarded] = [0, 1].map((number) => lowest.get(`${payload} ${number}`));
  const ratio = (forwarded[1] - direct[1]) / direct[0], met = ratio <= TARGET;
  missed += !met;
  console.log(`payload of ${payload} bytes: ${direct[0].toFixed(1)} µs of the leader's CPU for a run, ${direct[1].toFixed(1)} µs of the follower's`);
  console.log(`  forwarded: ${forwarded[0].toFixed(1)} µs of the leader's, ${forwarded[1].toFixed(1)} µs of the follower's   forwarding ${ratio.toFixed(3)} of the leader's  <= ${TARGET}  ${met ? "met" : "MISSED"}`);
}
process.exit(missed ? 1 : 0);
