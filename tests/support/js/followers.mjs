// Several gateways on one PostgreSQL that follow each other. Others reach the peer-listen of each one through a relay, which
// can be cut, read slowly, or pass on late.
//
//   const { postgres, gateways, leader } = await startFollowers(t);
//   await follows(gateways[1], leader);
//   gateways[0].peers.cut(); gateways[0].peers.accept();
//   gateways[0].peers.pause(); gateways[0].peers.resume();
//   gateways[0].peers.limit(1e6);      passes on at most that many bytes a second to each of its followers
//   gateways[0].peers.delay(200);      its followers are held 200 ms behind; delay(200, 1): one of them
//   const { url, counts } = await roundRobin(gateways, t);
//
// A gateway in its sandbox connects to its own peer ports only, so all of them use one port: gateway n listens at
// 127.0.0.(n + 1), and its relay at 127.0.1.(n + 1).
import assert from "node:assert/strict";
import http from "node:http";
import net from "node:net";
import { Transform } from "node:stream";

import { freePort, keys, sleep, startGateway, until } from "./gateway.mjs";
import { PgRelay } from "./pg_relay.mjs";
import { onDatabase, startPostgres, urlOfBoth } from "./postgres.mjs";

/** Passes bytes on, each after this.ms, in their order, and at most this.rate in a second. */
class Late extends Transform {
  ms = 0;
  rate = Infinity;
  #last = Promise.resolve();

  _transform(bytes, _encoding, done) {
    const due = Date.now() + this.ms;
    this.#last = this.#last.then(() => this.ms || due > Date.now() ? sleep(Math.max(0, due - Date.now())) : undefined).then(() => { this.push(bytes); });
    if (this.rate === Infinity) done();
    else setTimeout(done, 1000 * bytes.length / this.rate);
  }

  _flush(done) { this.#last.then(() => done()); }
}

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
    this.server = net.createServer({ allowHalfOpen: true }, (client) => this.#connect(client));
  }

  #connect(client) {
    if (this.refuses) { client.destroy(); return; }
    const server = net.connect({ host: this.target, port: this.port, allowHalfOpen: true }), late = new Late(), pair = [client, server, late];
    this.pairs.add(pair);
    for (const [from, to] of [pair, [server, client]])
      from.setNoDelay(true).on("error", () => {}).on("close", () => { to.destroy(); this.pairs.delete(pair); });
    client.pipe(server);
    server.pipe(late).pipe(client);
    if (this.paused) this.#stopReading(pair);
  }

  #stopReading([, server]) { server.unpipe(); server.pause(); }

  /** Ends all connections, and refuses new ones until accept(). */
  cut() { this.refuses = true; for (const [client] of this.pairs) client.destroy(); }
  accept() { this.refuses = false; }

  /** Reads nothing from the gateway until resume(). */
  pause() { this.paused = true; for (const pair of this.pairs) this.#stopReading(pair); }
  resume() { this.paused = false; for (const [, server, late] of this.pairs) server.pipe(late); }

  /** Passes on what the gateway sends after this time, on the first connections. */
  delay(ms, count = Infinity) { [...this.pairs].slice(0, count).forEach(([, , late]) => { late.ms = ms; }); }
  limit(rate) { for (const [, , late] of this.pairs) late.rate = rate; }
  get delayed() { return [...this.pairs].filter(([, , late]) => late.ms > 0).length; }

  stop() { this.cut(); this.server.close(); }
}

/** postgres: a server that runs already. certificate: { certificate, key }, for the hosts of the relays: then peers use TLS.
 *  isRelayed: each gateway reaches the database through a relay of its own, gateway.relay. hasStandby: the database has a
 *  synchronous standby, to which gateways go when it is promoted. more: settings of all gateways, like those of startGateway. */
export async function startFollowers(t, { names = ["a", "b", "c"], options = [], certificate, postgres, isRelayed, hasStandby, ...more } = {}) {
  const secure = certificate ? ["--tls-cert", certificate.certificate, "--tls-key", certificate.key] : [];
  postgres ??= await startPostgres({ t });
  const port = await freePort(), gateways = [];
  const standby = hasStandby && await postgres.standby({ t }), both = standby && urlOfBoth(postgres, standby);
  for (const [at, name] of names.entries()) {
    const [host, target] = [`127.0.1.${at + 1}`, `127.0.0.${at + 1}`];
    const peers = await Relay.start({ host, target, port }, t);
    const relay = isRelayed && await PgRelay.start(postgres, t);
    const gateway = await startGateway({ t, ready: at === 0, ...onDatabase(postgres, name, { url: relay ? relay.url : both || postgres.url,
      options: ["--peer-listen", `${target}:${port}${certificate ? ",tls" : ""}`, "--peer-url", `http${certificate ? "s" : ""}://${host}:${port}`, ...secure, ...options], ...more }) });
    gateways.push(Object.assign(gateway, { name, peers, relay }));
  }
  const [leader, ...others] = gateways;
  for (const other of others) await follows(other);
  return { postgres, standby, gateways, leader, others };
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

/** A proxy that sends each request to the next gateway. Returns { url, counts }: how many requests each gateway got. */
export async function roundRobin(gateways, t) {
  const counts = gateways.map(() => 0), agent = new http.Agent({ keepAlive: true });
  let turn = 0;
  const server = http.createServer((request, response) => {
    const at = turn++ % gateways.length;
    counts[at]++;
    const { method, url: path, headers } = request;
    const passed = http.request({ host: "127.0.0.1", port: gateways[at].port, method, path, headers, agent }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    passed.on("error", () => response.destroy());
    response.on("close", () => passed.destroy());
    request.pipe(passed);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => { server.closeAllConnections(); server.close(); agent.destroy(); });
  return { url: `http://127.0.0.1:${server.address().port}`, counts };
}
