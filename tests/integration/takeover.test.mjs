// Two gateways on one PostgreSQL behind HAProxy, and clients that write through it. The one that leads is
// killed, stopped, cut off from the database, or ended well: the other one serves within 8 s, and
// nothing acknowledged is lost or there twice; subscribers go on from where they were.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { Writers } from "../support/js/acknowledged.mjs";
import { freePort, keys, sleep, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { PgRelay } from "../support/js/pg_relay.mjs";
import { onDatabase, startPostgres } from "../support/js/postgres.mjs";
import { RunsMirror } from "../support/js/runs.mjs";
import { Service } from "../support/js/service.mjs";

const SERVES_WITHIN_MS = 8000;

/** Passes on to whichever gateway is ready. */
async function startHaproxy(t, gateways) {
  const port = await freePort(), file = path.join(temporaryFolder(), "haproxy.conf");
  fs.writeFileSync(file, `global
  maxconn 1000
defaults
  mode http
  timeout connect 1s
  timeout client 60s
  timeout server 60s
  timeout tunnel 1h
  option redispatch
  retries 2
frontend runs
  bind 127.0.0.1:${port}
  default_backend gateways
backend gateways
  balance leastconn
  option httpchk GET /readyz
  timeout check 1500ms
  default-server check inter 500ms fall 2 rise 1 on-marked-down shutdown-sessions
${gateways.map((gateway, i) => `  server g${i} 127.0.0.1:${gateway.port}`).join("\n")}
`);
  const child = spawn("haproxy", ["-db", "-f", file], { stdio: "ignore", env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` } });
  t.after(() => child.kill("SIGKILL"));
  process.on("exit", () => child.kill("SIGKILL"));
  const url = `http://127.0.0.1:${port}`;
  await until(async () => (await fetch(`${url}/readyz`).catch(() => ({}))).status === 200, { what: "HAProxy passes on", timeoutMs: 60_000 });
  return { port, url };
}

/** A database, two gateways each by a relay of its own, and the proxy before them; the first one leads. */
async function startWorld(t) {
  const postgres = await startPostgres({ t });
  const gateways = [];
  for (const name of ["a", "b"]) {
    const relay = await PgRelay.start(postgres, t);
    const gateway = await startGateway({ t, ready: name === "a", ...onDatabase(postgres, name, { url: relay.url }) });
    gateways.push(Object.assign(gateway, { relay }));
  }
  const [leader, other] = gateways;
  await standsBy(other);
  return { postgres, leader, other, ...await startHaproxy(t, gateways) };
}

const standsBy = (gateway) => until(async () => {
  const { status, text } = await gateway.http.request("GET", "/readyz").catch(() => ({}));
  return status === 503 && text.includes("standby");
}, { what: `${gateway.options[3]} stands by`, timeoutMs: 60_000 });

/** A subscriber that comes back by itself. */
async function follow(t, port) {
  const mirror = new RunsMirror({ port, token: keys.prod });
  let over = false;
  mirror.subscribe({ all: true });
  // The proxy takes both for ready until it has asked each one.
  await until(() => mirror.connect().then(() => true, () => false), { what: "a connection" });
  const coming = (async () => {
    for (; !over; await sleep(50)) if (!mirror.socket) await mirror.connect().catch(() => {});
  })();
  t.after(async () => { over = true; mirror.cut(); await coming; });
  return mirror;
}

test("a gateway that stands by says so and answers nothing else", async (t) => {
  const { leader, other } = await startWorld(t);
  const { status, headers, text } = await other.post("/api/v1/tasks/task/trigger", { payload: 1 });
  assert.equal(status, 503);
  assert.equal(headers["retry-after"], "1");
  assert.match(text, /standby/);
  assert.equal((await other.get("/healthz")).status, 200);
  assert.equal((await leader.post("/api/v1/tasks/task/trigger", { payload: 1 })).status, 200);
  await other.stop();
  await leader.stop();
});

for (const [what, end, comesBack] of [
  ["is killed", ({ leader }) => leader.kill(), async ({ leader }) => { await leader.restart({ ready: false }); }],
  ["is stopped and goes on", async ({ leader }) => leader.child.kill("SIGSTOP"), async ({ leader }) => { leader.child.kill("SIGCONT"); }],
  ["cannot be heard by the database", async ({ leader }) => leader.relay.hold("client"), async ({ leader }) => { leader.relay.pass(); }],
  ["does not hear the database", async ({ leader }) => leader.relay.hold("server"), async ({ leader }) => { leader.relay.pass(); }],
  ["loses every connection to the database", ({ leader }) => leader.relay.refuse(), ({ leader }) => leader.relay.accept()],
  ["ends well", ({ leader }) => leader.stop(), async ({ leader }) => { await leader.restart({ ready: false }); }],
]) {
  test(`the second one serves within 8 s when the first one ${what}`, { timeout: 180_000 }, async (t) => {
    const world = await startWorld(t), { postgres, leader, other } = world;
    const mirror = await follow(t, world.port);
    const writers = new Writers(world.url);
    await writers.served();

    await end(world);
    const tookMs = await writers.served(60_000);
    t.diagnostic(`served again after ${tookMs} ms; refused meanwhile: ${JSON.stringify([...writers.refusals])}`);
    assert.ok(tookMs <= SERVES_WITHIN_MS, `${tookMs} ms\n${other.stderr.slice(-3000)}`);
    assert.equal((await other.http.request("GET", "/readyz")).status, 200);

    await comesBack(world);
    await standsBy(leader);
    await writers.served();
    await writers.stop();
    writers.judge(postgres);
    await until(() => mirror.errors.length || mirror.runs.size === writers.count, { what: "all runs at the subscriber" });
    assert.deepEqual(mirror.errors, []);
    await other.stop();
    await leader.stop();
  });
}

test("one that stands by on a socket of the service manager says so there, and takes over", async (t) => {
  const postgres = await startPostgres({ t }), port = await freePort(), url = `http://127.0.0.1:${port}`;
  const leader = await startGateway({ t, ...onDatabase(postgres, "a") });
  const { options, env } = onDatabase(postgres, "b");
  const service = await new Service(t, { http: port }, ["--listen", "systemd:http", "--data", path.join(temporaryFolder(), "data"), ...options], env).start();
  const ready = async () => (await fetch(`${url}/readyz`)).status;
  assert.equal(await ready(), 503);
  await leader.kill();
  await until(async () => (await ready()) === 200, { timeoutMs: 60_000, what: "it serves" });
  assert.equal(await service.stop(), 0);
});

test("two gateways of one name: the older one ends and says why", async (t) => {
  const postgres = await startPostgres({ t });
  const older = await startGateway({ t, ...onDatabase(postgres, "same") });
  const newer = await startGateway({ t, ...onDatabase(postgres, "same") });
  const { code } = await older.ended();
  assert.equal(code, 1);
  assert.match(older.stderr, /--gateway-name/);
  await newer.stop();
});
