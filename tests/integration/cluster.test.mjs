// Three gateways behind HAProxy in round robin, as deploy/cluster.md describes: clients write, read and follow runs through
// HAProxy while the leader is killed, hangs, or all gateways are restarted one after the other. With --all, also with
// PgBouncer between the gateways and the database.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { Writers } from "../support/js/acknowledged.mjs";
import { startCluster } from "../support/js/cluster.mjs";
import { follows, startFollowers } from "../support/js/followers.mjs";
import { keys, startGateway, until } from "../support/js/gateway.mjs";
import { startPgBouncer } from "../support/js/pgbouncer.mjs";
import { onDatabase, startPostgres } from "../support/js/postgres.mjs";
import { runProgram } from "../support/js/program.mjs";
import { chapterSettings } from "../support/js/proxies.mjs";
import { RunsMirror } from "../support/js/runs.mjs";
import { follow, standsBy } from "../support/js/two_gateways.mjs";

const top = fileURLToPath(new URL("../..", import.meta.url));
const sdk = path.join(top, "tests/conformance/sdk-v4/node_modules/@trigger.dev/sdk/dist/esm/v3/index.js");

/** Triggers a run, follows it, cancels it when its first state has arrived, and requires that its states never go back; again
 *  and again. Each request may go to another gateway. */
const PROGRAM = `
  import { runs, tasks } from ${JSON.stringify(sdk)};
  let stopped = false;
  process.stdin.on("end", () => { stopped = true; }).resume();
  while (!stopped) {
    const { id } = await tasks.trigger("followed", { n: 1 });
    let updated = 0, ended = false, asked = null;
    for await (const run of runs.subscribeToRun(id)) {
      if (ended || run.updatedAt < updated) throw new Error(id + " went back to " + run.status);
      updated = run.updatedAt;
      ended = run.status === "CANCELED";
      asked ??= runs.cancel(id);
    }
    await asked;
    if (!ended) throw new Error(id + " has not ended");
    if ((await runs.retrieve(id)).status !== "CANCELED") throw new Error(id + " was not read");
    console.log(id);
  }`;

/** The unmodified SDK 4.8.3, which uses the proxy. */
class Sdk {
  constructor(url, t) {
    Object.assign(this, { output: "", errors: "" });
    this.child = spawn(process.execPath, ["--input-type=module", "-e", PROGRAM], { env: { ...process.env, TRIGGER_API_URL: url, TRIGGER_SECRET_KEY: keys.dev } });
    this.child.stdout.setEncoding("utf8").on("data", (text) => { this.output += text; });
    this.child.stderr.setEncoding("utf8").on("data", (text) => { this.errors += text; });
    this.ended = new Promise((resolve) => this.child.on("close", resolve));
    t.after(() => this.child.kill("SIGKILL"));
  }

  get count() { return this.output.split("\n").length - 1; }

  /** Waits until it has followed another run from its begin to its end. */
  async untilFollowed() {
    const before = this.count;
    await until(() => this.count >= before + 2 || this.child.exitCode !== null, { what: "the SDK follows a run", timeoutMs: 90_000 });
    assert.equal(this.child.exitCode, null, this.errors);
  }

  async stop() {
    this.child.stdin.end();
    assert.equal(await this.ended, 0, this.errors);
  }
}

/** Subscribers through the proxy, which do not reconnect, and how many of them each gateway has. On a busy machine, HAProxy may
 *  find a gateway late, so there may be more than `count`. */
async function subscribe(world, t, count) {
  const mirrors = [], at = new Map();
  await until(async () => {
    do {
      const mirror = new RunsMirror({ port: world.port, token: keys.prod });
      mirror.subscribe({ all: true });
      await mirror.connect();
      mirror.socket.closed.then(() => { mirror.isClosed = true; });
      t.after(() => mirror.cut());
      mirrors.push(mirror);
    } while (mirrors.length < count);
    await until(async () => {
      for (const gateway of world.gateways) at.set(gateway, await gateway.metric("runcast_subscriptions"));
      return [...at.values()].reduce((sum, n) => sum + n) === mirrors.length;
    }, { what: "all subscriptions have begun" });
    return [...at.values()].every((n) => n > 0);
  }, { what: "each gateway has some of the subscribers", everyMs: 500 });
  return { mirrors, at };
}

async function startPooled(t) {
  const postgres = await startPostgres({ t }), pooler = await startPgBouncer(postgres, { t, connections: 6 });
  return startCluster(t, { postgres, url: pooler.url });
}

const worlds = [["behind HAProxy", startCluster], ...process.env.TESTS_IN_FULL ? [["behind HAProxy and before PgBouncer", startPooled]] : []];

const leads = (gateways) => until(async () => { for (const one of gateways) if (await one.leads().catch(() => false)) return one; }, { what: "a gateway leads" });

for (const [where, start] of worlds) for (const [what, end, comesBack] of [
  ["is killed", (leader) => leader.kill(), (leader) => leader.restart({ ready: false })],
  ["hangs", (leader) => leader.child.kill("SIGSTOP"), (leader) => leader.child.kill("SIGCONT")],
]) {
  test(`${where} nothing is lost when the leader ${what}, and subscribers of the others stay connected`, { timeout: 300_000 }, async (t) => {
    const world = await start(t), { leader, others, postgres, url } = world;
    const { mirrors, at } = await subscribe(world, t, 6);
    const writers = new Writers(url), program = new Sdk(url, t);
    t.after(() => writers.giveUp());
    await writers.untilServed();
    await program.untilFollowed();

    await end(leader);
    const tookMs = await writers.untilServed(60_000);
    t.diagnostic(`served again after ${tookMs} ms; refused: ${JSON.stringify([...writers.refusals])}`);
    await program.untilFollowed();
    await until(async () => (await world.servers()).ready === 2, { what: "HAProxy uses the other two" });
    await until(() => mirrors.filter((one) => one.isClosed).length >= at.get(leader), { what: "subscribers of the lost gateway are closed" });

    await comesBack(leader);
    await until(async () => (await world.servers()).ready === 3, { what: "HAProxy uses all three again" });
    await writers.untilServed();
    await program.untilFollowed();
    await program.stop();
    await writers.stop();
    writers.judge(postgres);
    const open = mirrors.filter((one) => !one.isClosed);
    assert.equal(open.length, 6 - at.get(leader), "no other subscriber was closed");
    for (const one of open) await until(() => one.errors.length || one.runs.size >= writers.count, { what: "all runs at a subscriber" });
    for (const one of open) assert.deepEqual(one.errors, []);
    const next = await leads([...others, leader]);
    for (const one of world.gateways) if (one !== next) await one.stop();
    await next.stop();
  });
}

for (const [where, start] of worlds) test(`${where} nothing is lost when all gateways are restarted one after the other`, { timeout: 300_000 }, async (t) => {
  const world = await start(t), { gateways, postgres, url } = world;
  const mirror = await follow({ port: world.port, filter: { all: true } });
  t.after(() => mirror.leave());
  const writers = new Writers(url), program = new Sdk(url, t);
  t.after(() => writers.giveUp());
  await writers.untilServed();
  await program.untilFollowed();
  for (const gateway of [...gateways].reverse()) { // the leader is the last one
    await gateway.upgrade();
    await follows(gateway);
    await until(async () => (await world.servers()).ready === 3, { what: "HAProxy uses all three again" });
    await writers.untilServed();
  }
  await program.untilFollowed();
  await program.stop();
  await writers.stop();
  t.diagnostic(`the longest write took ${writers.longestMs} ms; refused: ${JSON.stringify([...writers.refusals])}`);
  writers.judge(postgres);
  await until(() => mirror.errors.length || mirror.runs.size >= writers.count, { what: "all runs at the subscriber" });
  assert.deepEqual(mirror.errors, []);
  const next = await leads(gateways);
  for (const one of gateways) if (one !== next) await one.stop();
  await next.stop();
});

test("the encryption key is replaced while clients write: with both keys, rotated, then with the new one alone", { timeout: 240_000 }, async (t) => {
  const { url, postgres, gateways, leader } = await startCluster(t), [old, next] = ["5e", "6f"].map((byte) => byte.repeat(32));
  const writers = new Writers(url);
  t.after(() => writers.giveUp());
  await writers.untilServed();
  const mirror = await follow({ port: new URL(url).port, filter: { all: true } });
  t.after(() => mirror.leave());
  /** Restarts one after the other, the leader last, as an upgrade does. */
  const restartAll = async (env) => {
    const last = await leads(gateways);
    for (const one of [...gateways.filter((one) => one !== last), last]) {
      await one.stop();
      await one.restart({ env, ready: false });
      await until(() => one.isReady(), { what: `${one.name} is ready again`, timeoutMs: 60_000 });
    }
  };
  const add = async () => (await (await leads(gateways)).post(`/api/v1/projects/${keys.ref}/prod/keys`, { name: "ci" }, { key: keys.pat })).json.key;

  await restartAll({ RUNCAST_ENCRYPTION_KEY: old, RUNCAST_NEXT_ENCRYPTION_KEY: next });
  const before = await add(), holder = await leads(gateways), followers = gateways.filter((one) => one !== holder);
  const { code, all } = await runProgram(["vault", "rotate", "--data", followers[0].data], { env: { RUNCAST_NEXT_ENCRYPTION_KEY: next } });
  assert.equal(code, 0, all);
  for (const one of gateways) assert.ok(!one.stderr.includes(next), "no log has the key");
  for (const one of followers) await until(() => one.stderr.includes("the encryption key was rotated"), { what: `${one.name} has the new key` });
  await until(() => postgres.query("SELECT count(*), min(key_ids) = max(key_ids) FROM runcast.gateway WHERE cardinality(key_ids) = 1") === "3|t", { what: "all show the new key only" });
  const after = await add();
  for (const one of followers) {
    for (const key of [before, after]) assert.equal((await one.get("/api/v1/runs", { key })).status, 200);
  }
  await restartAll({ RUNCAST_ENCRYPTION_KEY: next });
  assert.equal((await leader.get("/api/v1/runs", { key: after })).status, 200);
  await writers.untilServed();
  await writers.stop();
  writers.judge(postgres);
  await until(() => mirror.errors.length || mirror.runs.size >= writers.count, { what: "all runs at the subscriber" });
  assert.deepEqual(mirror.errors, []);
  t.diagnostic(`the longest write took ${writers.longestMs} ms`);

  const last = await leads(gateways), [stranger, follower] = gateways.filter((one) => one !== last);
  await stranger.stop();
  await stranger.restart({ env: { RUNCAST_ENCRYPTION_KEY: old }, ready: false });
  assert.equal((await stranger.ended()).code, 1);
  assert.match(stranger.stderr, /give all gateways of a database the same key/);
  await follows(follower); // one that does not follow yet would be refused, because of its key
  const rotated = await runProgram(["vault", "rotate", "--data", last.data], { env: { RUNCAST_NEXT_ENCRYPTION_KEY: "70".repeat(32) } });
  assert.equal(rotated.code, 0, rotated.all);
  await until(() => /will not lead.*encryption key/.test(follower.stderr), { what: "the follower without the new key refrains from leading" });
  const listed = async () => JSON.parse((await runProgram(["gateways", "--json", "--data", last.data])).stdout).gateways ?? [];
  await until(async () => (await listed()).some(({ name, reason }) => name === follower.name && /lead/.test(reason)), { what: "the leader knows" });
  assert.equal((await runProgram(["lead", follower.name, "--data", last.data])).code, 1);
  assert.ok(await last.leads());
  await stranger.restart({ env: { RUNCAST_ENCRYPTION_KEY: "70".repeat(32) } });
  assert.equal((await stranger.get("/api/v1/runs", { key: after })).status, 200, "a gateway with the leader's new key joins");
  await stranger.stop();
  await follower.stop();
  await last.stop();
});

test("a gateway that stands by returns 404 to a proxy that asks for it, and logs neither status", async (t) => {
  const postgres = await startPostgres({ t }), leader = await startGateway({ t, ...onDatabase(postgres, "a") });
  const other = Object.assign(await startGateway({ t, ready: false, ...onDatabase(postgres, "b") }), { name: "b" });
  await standsBy(other);
  const ask = async (gateway, query) => { const { status, json } = await gateway.http.request("GET", `/readyz${query}`); return [status, json]; };
  const standby = { status: "not ready", reasons: ["standby"], role: "stands by" };
  assert.deepEqual(await ask(other, "?unready=404"), [404, standby]);
  for (const query of ["", "?unready=405", "?unready="]) assert.deepEqual(await ask(other, query), [503, standby]);
  assert.deepEqual(await ask(leader, "?unready=404"), [200, { status: "ready", reasons: [], role: "leads" }]);
  assert.doesNotMatch(other.stderr, /readyz/);
  await other.stop();
  await leader.stop();
});

test("the chapter has the settings that Compose uses", () => {
  const settingsOf = (text) => text.split("\n").filter((line) => line && !/^(#|resolvers| {2}parse-resolv-conf| {2}hold| {2}bind)/.test(line))
    .map((line) => line.replace(" resolvers compose init-addr libc,none", "").replace(/^ {2}server .*/, "  server"));
  assert.deepEqual(settingsOf(chapterSettings("cluster.md", "global")), settingsOf(fs.readFileSync(path.join(top, "deploy/container/haproxy.cfg"), "utf8")));
});
