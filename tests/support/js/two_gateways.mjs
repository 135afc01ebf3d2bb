// Two gateways on one PostgreSQL, each with its own relay, and HAProxy in front of them as in deploy/failover.md. The first
// one leads, the second one stands by.
//
//   const { url, leader, other, postgres, servers } = await startTwoGateways(t);
//   await leader.kill(); … await leader.restart({ ready: false }); await standsBy(leader);
//   (await servers()).gateways     the names of those that HAProxy takes for the leader
//   (await servers()).standbys     the names of those to which it sends calls if there is no leader
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";

import { startHaproxy } from "./cluster.mjs";
import { follows } from "./followers.mjs";
import { freePort, keys, sleep, startGateway, temporaryFolder, until } from "./gateway.mjs";
import { PgRelay } from "./pg_relay.mjs";
import { onDatabase, startPostgres } from "./postgres.mjs";
import { chapterSettings } from "./proxies.mjs";
import { RunsMirror } from "./runs.mjs";

const AT_SERVERS = "/servers-of-haproxy"; // answered by HAProxy itself

/** Returns a function that returns the servers that HAProxy counts as up, by backend. */
const serversOf = (url, gateways) => async () => {
  const up = await (await fetch(`${url}${AT_SERVERS}`)).json();
  return Object.fromEntries(Object.entries(up).map(([backend, of]) => [backend, gateways.filter((_, i) => of[i]).map(({ name }) => name)]));
};

/** Starts HAProxy, which passes connections on to the gateway that is ready. It counts every server as up until it has
 *  checked it, so this waits until it has found out which gateway stands by. */
async function startPairProxy(t, gateways) {
  const port = await freePort(), file = path.join(temporaryFolder(), "haproxy.conf");
  const up = ["gateways", "standbys"].map((backend) => `"${backend}":[${gateways.map((_, i) => `%[srv_is_up(${backend}/g${i})]`)}]`);
  const lines = gateways.map((gateway, i) => `  server g${i} 127.0.0.1:${gateway.port}`).join("\n");
  const backends = chapterSettings("failover.md", "backend gateways").split("\n").map((line) => line.replace(/^ *server a .*/, lines)).filter((line) => !/^ *server b /.test(line));
  fs.writeFileSync(file, `global
  maxconn 1000
defaults
  mode http
  timeout connect 1s
  timeout client 75s
  timeout server 75s
  timeout tunnel 1h
  retries 2
frontend runs
  bind 127.0.0.1:${port}
  http-request return status 200 content-type application/json lf-string '{${up}}' if { path ${AT_SERVERS} }
${chapterSettings("failover.md", "  use_backend standbys")}
${backends.join("\n")}
`);
  const child = spawn("haproxy", ["-db", "-f", file], { stdio: "ignore", env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` } });
  const end = () => child.kill("SIGKILL");
  t?.after(end);
  process.on("exit", end);
  const url = `http://127.0.0.1:${port}`, servers = serversOf(url, gateways);
  await until(async () => String((await servers().catch(() => ({}))).gateways) === String([gateways[0].name]), { what: "HAProxy has found the gateways" });
  return { port, url, servers };
}

/** isFollowed: the second gateway follows the first one, and the other way round. more: settings of both gateways, like those
 *  of startGateway. */
export async function startTwoGateways(t, { isFollowed = false, options = [], ...more } = {}) {
  const postgres = await startPostgres({ t }), port = await freePort();
  const gateways = [];
  for (const [at, name] of ["a", "b"].entries()) {
    const relay = await PgRelay.start(postgres, t), peer = `127.0.0.${at + 1}:${port}`;
    const peers = isFollowed ? ["--peer-listen", peer, "--peer-url", `http://${peer}`] : [];
    const gateway = await startGateway({ t, ready: name === "a", ...onDatabase(postgres, name, { url: relay.url, options: [...peers, ...options], ...more }) });
    gateways.push(Object.assign(gateway, { relay, name }));
  }
  const [leader, other] = gateways;
  await (isFollowed ? follows : standsBy)(other);
  return { postgres, gateways, leader, other, isFollowed, ...await (isFollowed ? startHaproxy : startPairProxy)(t, gateways) };
}

export async function standsBy(gateway) {
  let last = {};
  await until(async () => {
    last = await gateway.http.request("GET", "/readyz").catch(() => ({}));
    if (gateway.end) throw new Error(`${gateway.name} has ended: ${JSON.stringify(gateway.end)}`);
    return last.status === 503 && last.text.includes("standby");
  }, { what: `${gateway.name} stands by`, timeoutMs: 60_000 }).catch((error) => {
    throw new Error(`${error.message}; it answers ${last.status} ${last.text}\n${gateway.stderr.slice(-3000)}`);
  });
}

/** A subscriber behind the proxy, which reconnects by itself until leave() is called. */
export async function follow({ port, key = keys.prod, filter, everyMs = 50 }) {
  const mirror = new RunsMirror({ port, token: key });
  let stopped = false;
  mirror.subscribe(filter);
  await mirror.connect();
  const reconnecting = (async () => {
    for (; !stopped; await sleep(everyMs)) if (!mirror.socket) await mirror.connect().catch(() => {});
  })();
  mirror.leave = async () => { stopped = true; mirror.cut(); await reconnecting; };
  return mirror;
}
