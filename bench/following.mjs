// following.mjs - a fan-out to the subscribers of a gateway that follows, compared with one to those of its leader.
//
// Two gateways on one PostgreSQL. In each round, subscribers connect to the leader, then as many to the follower. Changes are
// written at the same gateway; the follower forwards them, so its times include the way to the leader and back.
//
//   node bench/following.mjs BUILD        BUILD: a Release build directory; needs PostgreSQL
//
// ROUNDS       how often; the medians are compared (5)
// SUBSCRIBERS  of one run's tag (1000)
// SECONDS      of each measurement (6)
//
// Exits with status 1 if a target is missed.
import { execFileSync } from "node:child_process";
import path from "node:path";

import { freePort, keys, startGateway, until } from "../tests/support/js/gateway.mjs";
import { onDatabase, startPostgres } from "../tests/support/js/postgres.mjs";

const [build = "build"] = process.argv.slice(2);
const { ROUNDS = 5, SUBSCRIBERS = 1000, SECONDS = 6 } = process.env;
process.env.GATEWAY_BIN = process.env.GATEWAY_RELEASE_BIN = path.resolve(build, "runcast");
const targets = { fanout_us_per_frame: 1.05, latency_p99_us: 1.3 };

const postgres = await startPostgres({ settings: { shared_buffers: "256MB" } }), port = await freePort();
const start = (number, ready) => startGateway({ release: true, ready, ...onDatabase(postgres, `gateway-${number}`, { options: ["--peer-listen", `127.0.0.${number}:${port}`] }) });
const leader = await start(1, true), follower = await start(2, false);
await until(async () => await follower.metric("runcast_follows").catch(() => 0) === 1, { what: "it follows", timeoutMs: 60_000 });

/** Half of the changes have no subscriber: what they cost is left out of the CPU for a frame. */
function fanOut(gateway) {
  const said = execFileSync(path.resolve(build, "runcast-bench"), ["fanout", "--url", gateway.url, "--pid", `${gateway.child.pid}`, "--subscribers", `${SUBSCRIBERS}`,
    "--seconds", `${SECONDS}`, "--interleave", "--json"], { encoding: "utf8", env: { ...process.env, TRIGGER_SECRET_KEY: keys.prod } });
  return JSON.parse(said);
}

const figures = { leader: [], follower: [] }, median = (all) => [...all].sort((a, b) => a - b)[all.length >> 1];
for (let round = 0; round < Number(ROUNDS); round++) {
  figures.leader.push(fanOut(leader));
  figures.follower.push(fanOut(follower));
}
await follower.stop();
await leader.stop();
await postgres.stop();

let missed = 0;
for (const [name, target] of Object.entries(targets)) {
  const [one, other] = [figures.leader, figures.follower].map((all) => median(all.map((each) => each[name]))), ratio = other / one;
  missed += ratio > target;
  console.log(`${name.padEnd(20)} leader ${one.toFixed(2)}, follower ${other.toFixed(2)}   ratio ${ratio.toFixed(2)}   <= ${target}  ${ratio <= target ? "met" : "MISSED"}`);
}
process.exit(missed ? 1 : 0);
