// Two gateways on one PostgreSQL behind HAProxy, and clients that write through it. The leader is killed, suspended,
// cut off from the database, or stopped: the other one serves soon, nothing acknowledged is lost or duplicated, and
// subscribers resume.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { generateKeyPairSync, sign } from "node:crypto";
import path from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

import { Writers } from "../support/js/acknowledged.mjs";
import { follows } from "../support/js/followers.mjs";
import { freePort, keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { onDatabase, startPostgres } from "../support/js/postgres.mjs";
import { runProgram } from "../support/js/program.mjs";
import { Service } from "../support/js/service.mjs";
import { follow, standsBy, startTwoGateways } from "../support/js/two_gateways.mjs";

/** Ways in which a leader ends, and comes back. */
const ends = [
  ["is killed", ({ leader }) => leader.kill(), async ({ leader }) => { await leader.restart({ ready: false }); }],
  ["is stopped and goes on", async ({ leader }) => leader.child.kill("SIGSTOP"), async ({ leader }) => { leader.child.kill("SIGCONT"); }],
  ["cannot be heard by the database", async ({ leader }) => leader.relay.hold("client"), async ({ leader }) => { leader.relay.pass(); }],
  ["does not hear the database", async ({ leader }) => leader.relay.hold("server"), async ({ leader }) => { leader.relay.pass(); }],
  ["loses every connection to the database", ({ leader }) => leader.relay.refuse(), ({ leader }) => leader.relay.accept()],
  ["ends well", ({ leader }) => leader.stop(), async ({ leader }) => { await leader.restart({ ready: false }); }],
];

/** Writes through the proxy while the lead changes, and requires that a subscriber gets every run. isBack: waits until the
 *  gateway that led is the second one. */
async function changeLead(t, world, mirror, [, end, comesBack], isBack) {
  const { postgres, leader, other } = world;
  t.after(() => mirror.leave());
  const writers = new Writers(world.url);
  t.after(() => writers.giveUp());
  await writers.untilServed();

  await end(world);
  const tookMs = await writers.untilServed(60_000);
  t.diagnostic(`served again after ${tookMs} ms; refused meanwhile: ${JSON.stringify([...writers.refusals])}`);
  assert.equal((await other.http.request("GET", "/readyz")).status, 200);

  await comesBack(world);
  await isBack(leader);
  await writers.untilServed();
  await writers.stop();
  writers.judge(postgres);
  await until(() => mirror.errors.length || mirror.runs.size === writers.count, { what: "all runs at the subscriber" });
  assert.deepEqual(mirror.errors, []);
}

for (const way of ends) {
  test(`the second gateway serves when the leader ${way[0]}`, { timeout: 180_000 }, async (t) => {
    const world = await startTwoGateways(t), { leader, other } = world;
    await changeLead(t, world, await follow({ port: world.port, filter: { all: true } }), way, standsBy);
    await other.stop();
    await leader.stop();
  });

  test(`a subscriber of the gateway that follows stays connected when the leader ${way[0]}`, { timeout: 180_000 }, async (t) => {
    const world = await startTwoGateways(t, { isFollowed: true }), { leader, other } = world;
    const mirror = await follow({ port: other.port, filter: { all: true } }), { socket } = mirror;
    await changeLead(t, world, mirror, way, follows);
    assert.equal(mirror.socket, socket, "it has not reconnected");
    await other.stop();
    await leader.stop();
  });
}

test("a gateway that receives SIGTERM just when it has lost the lead exits cleanly", async (t) => {
  const { leader, other } = await startTwoGateways(t);
  leader.child.kill("SIGSTOP");
  await until(() => other.isReady(), { timeoutMs: 60_000, what: "the other one leads" });
  leader.child.stderr.on("data", (text) => { if (text.includes("lead lost")) leader.child.kill("SIGTERM"); });
  leader.child.kill("SIGCONT");
  assert.deepEqual(await leader.ended(), { code: 0, signal: null });
  await other.stop();
});

test("a standby on a socket of the service manager reports that, and takes over", async (t) => {
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

// A transaction holds the row of the lead, so both standbys are sure to wait for it at once.
test("of two standbys that take a free lead at once, one leads", { timeout: 120_000 }, async (t) => {
  const postgres = await startPostgres({ t }), gateways = [];
  for (const name of ["a", "b", "c"]) gateways.push(await startGateway({ t, ready: name === "a", ...onDatabase(postgres, name) }));
  const [leader, ...others] = gateways, waiting = () => postgres.query("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND position('lead_v102' IN query) > 0");
  for (const other of others) await standsBy(other);
  const locker = spawn("psql", ["-X", postgres.url], { stdio: ["pipe", "ignore", "ignore"] });
  t.after(() => locker.kill());
  locker.stdin.write("BEGIN; SELECT 1 FROM runcast.realm FOR UPDATE;\n");
  await until(() => postgres.query("SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' AND position('FOR UPDATE' IN query) > 0") === "1", { what: "the row is held" });
  const stopped = leader.stop();
  await until(() => waiting() === "2", { what: "both wait" });
  locker.stdin.end("COMMIT;\n");
  await stopped;
  const leads = (one) => one.stderr.includes('"event":"leads"');
  await until(() => others.some(leads), { what: "one leads" });
  await until(() => waiting() === "0", { what: "the other one has its answer" });
  await until(async () => (await Promise.all(others.map((one) => one.isReady()))).includes(true), { what: "one is ready" });
  const term = postgres.query("SELECT term FROM runcast.realm");
  assert.equal(term, "2");
  for (const other of others.sort((x, y) => leads(x) - leads(y))) await other.stop();
  assert.equal(others.filter(leads).length, 1);
});

test("a beat that the leader sends while another gateway takes the lead is not overlooked", { timeout: 120_000 }, async (t) => {
  const postgres = await startPostgres({ t });
  await (await startGateway({ t, ...onDatabase(postgres, "first") })).stop(); // creates the functions
  const join = (name) => postgres.query(`SELECT runcast.join_v101('${name}', '', '', 102, '{}', 2)`), leader = join("leader"), other = join("other");
  const take = (me, dead, beat) => `SELECT count(*) > 0 FROM runcast.lead_v102(${me}, '{0}', '{}', '{}', '{${dead}}', '{${beat}}')`;
  assert.equal(postgres.query(take(leader, "", "")), "t");
  const beating = spawn("psql", ["-X", postgres.url], { stdio: ["pipe", "ignore", "ignore"] });
  t.after(() => beating.kill());
  beating.stdin.write(`BEGIN; SELECT runcast.beat_v102(${leader}, 0, 0);\n`);
  await until(() => postgres.query("SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' AND position('beat_v102' IN query) > 0") === "1", { what: "the beat is in flight" });
  const taking = promisify(execFile)("psql", ["-XAtc", take(other, leader, 0), postgres.url]);
  await until(() => postgres.query("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND position('lead_v102' IN query) > 0") === "1", { what: "the other one waits" });
  beating.stdin.end("COMMIT;\n");
  assert.equal((await taking).stdout, "f\n");
  assert.equal(postgres.query(take(other, leader, 1)), "t");
});

test("a leader that is stopped stores the last uses of keys before it hands the lead over", { timeout: 120_000 }, async (t) => {
  const { leader, other } = await startTwoGateways(t), keysOf = `/api/v1/projects/${keys.ref}/prod/keys`;
  const { id, key } = (await leader.post(keysOf, { name: "ci" }, { key: keys.pat })).json;
  assert.equal((await leader.get("/api/v1/runs", { key })).status, 200);
  await leader.stop();
  assert.match(leader.stderr, /"event":"lead handed over"/);
  assert.doesNotMatch(leader.stderr, /"level":"error"|cannot store/);
  await until(() => other.isReady(), { timeoutMs: 60_000, what: "the other one leads" });
  const { data } = (await other.get(keysOf, { key: keys.pat })).json;
  assert.ok(data.find((one) => one.id === id).lastUsedAt);
  await other.stop();
});

test("`runcast lead NAME` hands the lead over to that gateway, and the former leader stands by", { timeout: 120_000 }, async (t) => {
  const { postgres, leader, other, url } = await startTwoGateways(t), lead = (name, { data }) => runProgram(["lead", name, "--data", data]);
  const writers = new Writers(url);
  t.after(() => writers.giveUp());
  await writers.untilServed();
  for (const [name, at, why] of [["c", leader, /no gateway "c" can take the lead; name another one that runcast gateways lists/], ["a", leader, /gateway "a" leads already/], ["a", other, /on the machine of the leading gateway/]]) {
    const { code, all } = await lead(name, at);
    assert.equal(code, 1, all);
    assert.match(all, why);
  }
  for (const words of [["keys"], ["vault", "rotate"], ["lead", "b"]]) {
    const { code, stderr } = await runProgram([...words, "--data", other.data]);
    assert.deepEqual([code, stderr], [1, `runcast: the gateway of ${other.data} does not lead; run this on the machine of the leading gateway, which its log names, or give all gateways a peer-listen\n`]);
  }
  const { all } = await until(async () => { // the leader's next beat shows b
    const end = await lead("b", leader);
    return end.code === 0 && end;
  }, { what: "it is handed over" });
  assert.match(all, /the lead is handed over to b/);
  await until(() => other.isReady(), { timeoutMs: 60_000, what: "the other one leads" });
  await standsBy(leader);
  assert.match(leader.stderr, /"event":"lead handed over"/);
  assert.match(leader.stderr, /"event":"restarting","reason":"the lead was handed over to another gateway"/);
  assert.doesNotMatch(leader.stderr, /"level":"(error|warn)","event":"(?!request"|the database does not respond)/, "a planned handover is neither an error nor a warning");
  await writers.untilServed();
  await writers.stop();
  writers.judge(postgres);
  await other.stop();
  await leader.stop();
});

test("two gateways with one name: the older one exits and says why", async (t) => {
  const postgres = await startPostgres({ t });
  const older = await startGateway({ t, ...onDatabase(postgres, "same") });
  const newer = await startGateway({ t, ...onDatabase(postgres, "same") });
  const { code } = await older.ended();
  assert.equal(code, 1);
  assert.match(older.stderr, /--gateway-name/);
  await newer.stop();
});

test("a user who stays signed in stays so when the second gateway takes over, by a cookie and by a key", { timeout: 120_000 }, async (t) => {
  const { leader, other } = await startTwoGateways(t, { options: ["--public-url", "https://runs.example.com"] });
  const session = "/dashboard/session", place = { project: keys.ref, environment: "dev" };
  const post = (gateway, { origin }, target, body, { key = null, cookie } = {}) => gateway.post(target, body, { key, headers: { host: new URL(origin).host, origin, "sec-fetch-site": "same-origin", "content-type": "application/json", ...cookie && { cookie } } });
  const isIn = (answer) => { assert.deepEqual([answer.status, answer.json?.user?.email], [200, "admin@example.com"], answer.text); return answer; };
  const token = async () => (await leader.post("/api/v1/sign-in", { code: keys.pat }, { key: null })).json.token;

  const secure = { origin: "https://runs.example.com" }, cookieOf = ({ headers }) => headers["set-cookie"][0].split(";")[0];
  let cookie = cookieOf(await post(leader, secure, "/api/v1/sign-in/stay", {}, { key: await token() }));
  const before = cookie, use = (gateway) => post(gateway, secure, session, place, { cookie });
  cookie = cookieOf(isIn(await use(leader)));

  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" }), local = { origin: "http://localhost:3030" };
  const point = Buffer.from(publicKey.export({ format: "der", type: "spki" })).subarray(-65).toString("base64url");
  const { id } = (await post(leader, local, "/api/v1/sign-in/stay", { publicKey: point }, { key: await token() })).json;
  const proof = async (gateway) => {
    const { challenge } = (await post(gateway, local, session, { id })).json, text = `runcast session\n${local.origin}\n${id}\n${challenge}`;
    return { id, signature: sign("sha256", Buffer.from(text), { key: privateKey, dsaEncoding: "ieee-p1363" }).toString("base64url") };
  };
  isIn(await post(leader, local, session, { ...place, ...await proof(leader) }));
  const unused = await proof(leader), opened = (await use(leader)).json.token;

  await leader.kill();
  await until(() => other.isReady(), { timeoutMs: 60_000, what: "the other one leads" });
  isIn(await post(other, local, session, { ...place, ...await proof(other) }));
  assert.deepEqual(Object.keys((await post(other, local, session, unused)).json), ["challenge"], "the leader's challenge went with it");
  assert.equal((await other.get("/api/v1/runs", { key: opened })).status, 200);
  cookie = cookieOf(isIn(await use(other))); // the response of the last use before was lost
  isIn(await use(other));
  assert.equal((await post(other, secure, session, {}, { cookie: before })).status, 401, "two browsers had it");
  assert.equal((await use(other)).status, 401);
  isIn(await post(other, local, session, await proof(other)));
  await other.stop();
});
