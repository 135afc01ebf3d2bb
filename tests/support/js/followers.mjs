// Several gateways on one PostgreSQL that follow each other. Others reach the peer-listen of each one through a relay, which
// can be cut, or read slowly.
//
//   const { postgres, gateways, leader } = await startFollowers(t);
//   await follows(gateways[1], leader);
//   gateways[0].peers.cut(); gateways[0].peers.accept();
//   gateways[0].peers.pause(); gateways[0].peers.resume();
//
// A gateway in its sandbox connects to its own peer ports only, so all of them use one port: gateway n listens at
// 127.0.0.(n + 1), and its relay at 127.0.1.(n + 1).
import assert from "node:assert/strict";
import net from "node:net";

import { freePort, keys, startGateway, until } from "./gateway.mjs";
import { onDatabase, startPostgres } from "./postgres.mjs";

/** Passes connections on, to a target with the same port. */
class Relay {
  static async start({ host, target, port }, t) {
    const relay = new Relay({ target, port });
    await new Promise((resolve, reject) => relay.server.on("error", reject).listen(port, host, resolve));
    t?.after(() => relay.stop());
    return relay;
  }

  constructor({ target, port }) {
    Object.assign(this, { target, port, pairs: new Set(), refuses: false, paused: false });
    this.server = net.createServer((client) => this.#connect(client));
  }

  #connect(client) {
    if (this.refuses) { client.destroy(); return; }
    const server = net.connect({ host: this.target, port: this.port }), pair = [client, server];
    this.pairs.add(pair);
    for (const [from, to] of [pair, [server, client]]) {
      from.setNoDelay(true).on("error", () => {}).on("close", () => { to.destroy(); this.pairs.delete(pair); });
      from.pipe(to);
    }
    if (this.paused) this.#stopReading(pair);
  }

  #stopReading([, server]) { server.unpipe(); server.pause(); }

  /** Ends all connections, and refuses new ones until accept(). */
  cut() { this.refuses = true; for (const [client] of this.pairs) client.destroy(); }
  accept() { this.refuses = false; }

  /** Reads nothing from the gateway until resume(). */
  pause() { this.paused = true; for (const pair of this.pairs) this.#stopReading(pair); }
  resume() { this.paused = false; for (const [client, server] of this.pairs) server.pipe(client); }

  stop() { this.cut(); this.server.close(); }
}

/** certificate: { certificate, key }, for the hosts of the relays: then peers use TLS. more: settings of all gateways, like
 *  those of startGateway. */
export async function startFollowers(t, { names = ["a", "b", "c"], options = [], certificate, ...more } = {}) {
  const secure = certificate ? ["--tls-cert", certificate.certificate, "--tls-key", certificate.key] : [];
  const postgres = await startPostgres({ t }), port = await freePort(), gateways = [];
  for (const [at, name] of names.entries()) {
    const [host, target] = [`127.0.1.${at + 1}`, `127.0.0.${at + 1}`];
    const peers = await Relay.start({ host, target, port }, t);
    const gateway = await startGateway({ t, ready: at === 0, ...onDatabase(postgres, name, {
      options: ["--peer-listen", `${target}:${port}${certificate ? ",tls" : ""}`, "--peer-url", `http${certificate ? "s" : ""}://${host}:${port}`, ...secure, ...options], ...more }) });
    gateways.push(Object.assign(gateway, { name, peers }));
  }
  const [leader, ...others] = gateways;
  for (const other of others) await follows(other);
  return { postgres, gateways, leader, others };
}

/** Waits until the gateway follows a leader, and its memory is current. */
export const follows = (gateway) => until(async () => await gateway.metric("runcast_follows").catch(() => 0) === 1,
  { what: `${gateway.name} follows`, timeoutMs: 60_000 });

const SAME = [/^runcast_runs$/, /^runcast_active_runs\{/];

/** The samples that are equal in the memory of all gateways. */
const memoryOf = async (gateway) => JSON.stringify([...await gateway.metrics()].filter(([name]) => SAME.some((one) => one.test(name))));

/** Triggers a run, so that the leader sends a sum. Waits until followers have as many runs in each state as the leader, and
 *  have compared the sum with their own, without a difference. */
export async function agree(leader, others) {
  const compared = await Promise.all(others.map((other) => other.metric("runcast_replication_sums_total{result=\"equal\"}")));
  assert.equal((await leader.post("/api/v1/tasks/task/trigger", { payload: "1" }, { key: keys.prod })).status, 200);
  for (const [at, other] of others.entries()) {
    await until(async () => await memoryOf(other) === await memoryOf(leader), { what: `the runs of ${other.name} are those of ${leader.name}` });
    await until(async () => await other.metric("runcast_replication_sums_total{result=\"equal\"}") > compared[at], { what: `${other.name} has compared a sum` });
    assert.equal(await other.metric("runcast_replication_sums_total{result=\"different\"}"), 0);
    assert.doesNotMatch(other.stderr, /"level":"error"/);
  }
}
