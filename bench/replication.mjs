// replication.mjs - the leader's CPU for a change and each follower.
//
// Three gateways on one PostgreSQL: one leads, and runs are triggered there. The others follow it in turn.
//
//   node bench/replication.mjs BUILD        BUILD: a Release build directory; needs PostgreSQL
//
// ROUNDS   how often; the lowest figures are printed, since other work on the machine only adds to them (7)
// RUNS     that are triggered each time, with payloads of 512 bytes (10000)
// LARGE    the same, with payloads of 256 KiB (200)
//
// A round triggers the same number of runs with no follower, one and two. The cost of a follower is
// what the leader's CPU for a run grows by, divided by that CPU without followers. The first one
// also pays for what all share: encoding and sealing. Each has caught up before runs are triggered,
// and has read everything before the leader's CPU is read again.
//
// Exits with status 1 if a target is missed.
import { execFileSync } from "node:child_process";
import path from "node:path";

import { freePort, keys, startGateway, until } from "../tests/support/js/gateway.mjs";
import { onDatabase, startPostgres } from "../tests/support/js/postgres.mjs";
import { cpuUs } from "./cpu.mjs";

const [build = "build"] = process.argv.slice(2);
const { ROUNDS = 7, RUNS = 10_000, LARGE = 200 } = process.env;
process.env.GATEWAY_BIN = process.env.GATEWAY_RELEASE_BIN = path.resolve(build, "runcast");
// Longer packets are left out: SOURCE_PACKET_MAX in src/core/replication/source.h. A change without them has at least BARE bytes.
const LEFT_OUT = 64 << 10, BARE = 100;
const FOLLOWERS = 2, CONNECTIONS = 16, TARGET = 0.1, SENT = 'runcast_replication_bytes_total{direction="sent"}';
const loads = [{ payload: 512, runs: Number(RUNS) }, { payload: 256 << 10, runs: Number(LARGE) }];

const postgres = await startPostgres({ settings: { shared_buffers: "256MB", max_wal_size: "4GB", autovacuum: "off" } });

/** All gateways have one port for their peers, so each has an address of its own. */
const peerPort = await freePort();
async function start(number, ready) {
  const options = ["--peer-listen", `127.0.0.${number + 1}:${peerPort}`];
  return startGateway({ release: true, ready, ...onDatabase(postgres, `gateway-${number}`, { options }) });
}

/** CPU of the leader in µs for a run. */
async function trigger(leader, { payload, runs }, followers = []) {
  const before = cpuUs(leader.child.pid), sentBefore = await leader.metric(SENT);
  const said = execFileSync(path.resolve(build, "runcast-bench"), ["trigger", "--url", leader.url, "--concurrency", `${CONNECTIONS}`, "--count", `${runs}`,
    "--payload", `${payload}`, "--json"], { encoding: "utf8", env: { ...process.env, TRIGGER_SECRET_KEY: keys.prod } });
  if (JSON.parse(said).failed) throw new Error("triggers were refused");
  await read(followers);
  const us = cpuUs(leader.child.pid) - before, sent = await leader.metric(SENT) - sentBefore;
  if (sent < runs * (payload > LEFT_OUT ? BARE : payload) * followers.length) throw new Error(`a follower did not get all changes from the leader: ${sent} bytes for ${runs} runs`);
  return us / runs;
}

/** Waits until a gateway follows; it has caught up then. */
async function follows(gateway) {
  await until(async () => await gateway.metric("runcast_follows").catch(() => 0) === 1, { what: "it follows", timeoutMs: 60_000 });
}

/** Waits until followers have read everything that was sent to them: then the leader's CPU has all of its cost. */
async function read(followers) {
  for (const follower of followers) {
    const lag = async () => await follower.metric("runcast_replication_waiting_bytes") === 0 && await follower.metric("runcast_follows") === 1;
    await until(lag, { what: "it has read everything", timeoutMs: 60_000 });
  }
}

const leader = await start(0, true);
await trigger(leader, loads[0]);

const costs = new Map(); // by payload and followers
for (let round = 0; round < ROUNDS; round++) {
  const followers = [];
  for (let count = 0; count <= FOLLOWERS; count++) {
    if (count) {
      followers.push(await start(count, false));
      await follows(followers.at(-1));
    }
    for (const load of loads) {
      const key = `${load.payload} ${count}`, us = await trigger(leader, load, followers);
      costs.set(key, [...costs.get(key) ?? [], us]);
    }
  }
  for (const follower of followers) await follower.stop();
}
await leader.stop();
await postgres.stop();

let missed = 0;
for (const { payload } of loads) {
  const alone = Math.min(...costs.get(`${payload} 0`));
  console.log(`payload of ${payload} bytes, without followers: ${alone.toFixed(1)} µs of the leader's CPU for a run`);
  for (let count = 1; count <= FOLLOWERS; count++) {
    const us = Math.min(...costs.get(`${payload} ${count}`)), each = (us - alone) / count / alone, met = each <= TARGET;
    missed += !met;
    console.log(`  ${count} follower${count > 1 ? "s" : " "} ${us.toFixed(1).padStart(8)} µs   for each ${each.toFixed(3)} of that   <= ${TARGET}  ${met ? "met" : "MISSED"}`);
  }
}
process.exit(missed ? 1 : 0);
