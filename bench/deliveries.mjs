// deliveries.mjs - the CPU of a frame at three gateways together, compared with one gateway alone.
//
// On one PostgreSQL, a leader and two followers share a third of the subscribers each; a gateway alone, in a schema of its own,
// has all of them. Each subscribes to all runs. Nearly all changes are written at the leader, or at the gateway alone.
//
//   node bench/deliveries.mjs BUILD        BUILD: a Release build directory; needs PostgreSQL
//
// ROUNDS       how often; the medians are compared (5)
// SUBSCRIBERS  of all gateways together (3000)
// SECONDS      of each measurement (6)
//
// The CPU is that of all gateways: changes, replication and fan-out. Exits with status 1 if the target is missed.
import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";

import { freePort, keys, startGateway, until } from "../tests/support/js/gateway.mjs";
import { onDatabase, startPostgres } from "../tests/support/js/postgres.mjs";
import { cpuUs } from "./cpu.mjs";

const [build = "build"] = process.argv.slice(2);
const { ROUNDS = 5, SUBSCRIBERS = 3000, SECONDS = 6 } = process.env;
process.env.GATEWAY_BIN = process.env.GATEWAY_RELEASE_BIN = path.resolve(build, "runcast");
const TARGET = 0.9, SHARES = 3, share = Math.floor(SUBSCRIBERS / SHARES);

const postgres = await startPostgres({ settings: { shared_buffers: "256MB" } }), port = await freePort();
const start = (name, ready, options) => startGateway({ release: true, ready, ...onDatabase(postgres, name, { options }) });
const alone = await start("alone", true, ["--database-schema", "alone"]), three = [];
for (let number = 1; number <= SHARES; number++) three.push(await start(`gateway-${number}`, number === 1, ["--peer-listen", `127.0.0.${number}:${port}`]));
for (const follower of three.slice(1)) await until(async () => await follower.metric("runcast_follows").catch(() => 0) === 1, { what: "it follows", timeoutMs: 60_000 });

/** Subscribes to all runs, and writes changes. */
function subscribers(gateway, rate, seconds) {
  const child = spawn(path.resolve(build, "runcast-bench"), ["fanout", "--url", gateway.url, "--topic", "all", "--subscribers", `${share}`, "--rate", `${rate}`,
    "--seconds", `${seconds}`, "--json"], { env: { ...process.env, TRIGGER_SECRET_KEY: keys.prod }, stdio: ["ignore", "ignore", "inherit"] });
  child.done = once(child, "exit");
  return child;
}

const framesOf = async (gateway) => await gateway.metric('runcast_frames_total{kind="shared"}') + await gateway.metric('runcast_frames_total{kind="walked"}');

async function used(gateways) {
  let cpu = 0, frames = 0;
  for (const gateway of gateways) [cpu, frames] = [cpu + cpuUs(gateway.child.pid), frames + await framesOf(gateway)];
  return { cpu, frames };
}

/** CPU in µs of all gateways for a frame. Nearly all changes are written at the first one. */
async function deliver(gateways) {
  const at = (number) => gateways[number % gateways.length], holders = [];
  for (let number = 1; number < SHARES; number++) holders.push(subscribers(at(number), 1, 600));
  for (const gateway of new Set([at(1), at(2)])) {
    const expected = share * (gateways.length === 1 ? SHARES - 1 : 1);
    await until(async () => await gateway.metric("runcast_subscriptions") >= expected, { what: "all subscribers are there", timeoutMs: 60_000 });
  }
  const before = await used(gateways), writer = subscribers(at(0), 50, SECONDS), [status] = await writer.done, after = await used(gateways);
  for (const holder of holders) { holder.kill(); await holder.done; }
  for (const gateway of gateways) await until(async () => await gateway.metric("runcast_subscriptions") === 0, { what: "all subscribers have left" });
  if (status) throw new Error("the fan-out failed");
  if (after.frames - before.frames < 40 * SECONDS * share * SHARES) throw new Error("frames are missing");
  return (after.cpu - before.cpu) / (after.frames - before.frames);
}

const figures = { one: [], three: [] }, median = (all) => [...all].sort((a, b) => a - b)[all.length >> 1];
for (let round = 0; round < Number(ROUNDS); round++) {
  figures.one.push(await deliver([alone]));
  figures.three.push(await deliver(three));
}
for (const gateway of [alone, ...[...three].reverse()]) await gateway.stop();
await postgres.stop();

const [one, all] = [median(figures.one), median(figures.three)], ratio = one / all;
console.log(`CPU for a frame: one gateway ${one.toFixed(2)} µs, three ${all.toFixed(2)} µs   deliveries for CPU: ratio ${ratio.toFixed(2)}   >= ${TARGET}  ${ratio >= TARGET ? "met" : "MISSED"}`);
process.exit(ratio >= TARGET ? 0 : 1);
