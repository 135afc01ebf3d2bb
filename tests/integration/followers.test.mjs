// Gateways that follow the leader of one PostgreSQL: their memory keeps up with the leader's through kills, cuts and slow
// connections, and is the same as the leader's, by the sums that the leader sends.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Writers } from "../support/js/acknowledged.mjs";
import { agree, follows, startFollowers } from "../support/js/followers.mjs";
import { keys, temporaryFolder, until } from "../support/js/gateway.mjs";
import { HttpClient } from "../support/js/http.mjs";
import { RunsMirror, RunsSocket } from "../support/js/runs.mjs";
import { makeAuthority } from "../support/js/tls.mjs";

/** Triggers that many runs. */
async function write(gateway, count, { payload = 0, metadata = 0 } = {}) {
  const http = new HttpClient(gateway.url, keys.prod), text = (size) => ({ text: "x".repeat(size) });
  for (let n = 0; n < count; n++) {
    const body = { payload: text(payload), options: { tags: [`t${n % 7}`], metadata: text(metadata) } };
    assert.equal((await http.request("POST", "/api/v1/tasks/task/trigger", { body })).status, 200);
  }
  http.close();
}

test("followers keep up, and have the leader's memory", { timeout: 300_000 }, async (t) => {
  const { leader, others, gateways } = await startFollowers(t);
  assert.equal(await leader.metric("runcast_followers"), 2);
  assert.equal(await leader.metric("runcast_peer_listen"), 1);
  const writers = new Writers(leader.url);
  t.after(() => writers.giveUp());
  await until(() => writers.acknowledged.size > 100, { what: "runs" });

  // Changes of accounts, of a second environment, and of runs that end.
  const user = new HttpClient(leader.url, keys.pat);
  const dev = new HttpClient(leader.url, keys.dev);
  const { id } = (await dev.request("POST", "/api/v1/tasks/task/trigger", { body: { payload: "1" } })).json;
  assert.equal((await dev.request("POST", `/api/v2/runs/${id}/cancel`)).status, 200);
  const branch = await user.request("POST", `/api/v1/projects/${keys.ref}/branches`, { body: { env: "preview", branch: "followed" } });
  assert.equal(branch.status, 200, branch.text);
  const preview = new HttpClient(leader.url, keys.preview);
  assert.equal((await preview.request("POST", "/api/v1/tasks/task/trigger", { body: { payload: "1" }, headers: { "x-trigger-branch": "followed" } })).status, 200);

  await writers.stop();
  await agree(leader, others);
  for (const gateway of gateways) assert.equal(await gateway.metric("runcast_runs"), writers.acknowledged.size + 3);
  for (const gateway of gateways.reverse()) await gateway.stop();
  for (const { name, stderr } of others) {
    const at = (event) => Date.parse(JSON.parse(stderr.split("\n").find((line) => line.includes(`"event":"${event}"`))).time);
    assert.ok(at("stopped") - at("draining") >= 500, `${name} stays until proxies have noticed that it is not ready`);
  }
});

test("a follower that was cut off, killed or stopped catches up", { timeout: 300_000 }, async (t) => {
  const { leader, others: [b, c] } = await startFollowers(t);
  await write(leader, 50);
  leader.peers.cut();
  await until(async () => await leader.metric("runcast_followers") === 0, { what: "both are cut off" });
  await write(leader, 50);
  leader.peers.accept();
  await follows(b);
  await follows(c);
  await agree(leader, [b, c]);

  await b.kill();
  c.child.kill("SIGSTOP");
  await write(leader, 50);
  await b.restart({ ready: false });
  c.child.kill("SIGCONT");
  await follows(b);
  await follows(c);
  await agree(leader, [b, c]);
  for (const gateway of [c, b, leader]) await gateway.stop();
});

test("through TLS, a follower follows only a leader whose certificate it trusts", { timeout: 300_000 }, async (t) => {
  const folder = temporaryFolder(), authority = makeAuthority(folder, "authority");
  const certificate = authority.sign("peers", "IP:127.0.1.1,IP:127.0.1.2");
  const { leader, others: [b] } = await startFollowers(t, { names: ["a", "b"], certificate, options: ["--ca-file", authority.certificate] });
  await write(leader, 10);
  await agree(leader, [b]);
  await b.stop();
  assert.match(b.stderr, /"level":"info","event":"no longer follows","leader":"a","reason":"this gateway ends"/);
  await b.restart({ ready: false, options: b.options.filter((option) => option !== "--ca-file" && option !== authority.certificate) });
  await until(() => b.stderr.includes("cannot follow the leader"), { what: "the follower refuses the certificate" });
  assert.match(b.stderr, /cannot follow the leader[^\n]*certificate/);
  assert.equal(await b.metric("runcast_follows"), 0);
  await b.stop();
  await leader.stop();
});

test("the runs of archived branches leave the memory of followers, too", { timeout: 300_000 }, async (t) => {
  const { leader, others: [b, c], gateways } = await startFollowers(t, { options: ["--cancel-timeout", "1s"] });
  const user = new HttpClient(leader.url, keys.pat), preview = new HttpClient(leader.url, keys.preview);
  const branches = `/api/v1/projects/${keys.ref}/branches`, all = (name) => Promise.all(gateways.map((one) => one.metric(name)));
  const runs = () => all("runcast_runs"), [environments] = await all("runcast_environments");
  for (const branch of ["seen", "missed"]) {
    assert.equal((await user.request("POST", branches, { body: { env: "preview", branch } })).status, 200);
    for (let n = 0; n < 20; n++) assert.equal((await preview.request("POST", "/api/v1/tasks/task/trigger", { body: { payload: "1" }, headers: { "x-trigger-branch": branch } })).status, 200);
    await until(async () => (await runs()).every((count) => count === 20), { what: "the runs are in memory" });
    if (branch === "missed") leader.peers.cut();
    assert.equal((await user.request("POST", `${branches}/archive`, { body: { env: "preview", branch } })).status, 200);
    await until(async () => (await runs())[0] === 0, { what: "the branch leaves the leader" });
    leader.peers.accept();
    await until(async () => (await runs()).every((count) => count === 0), { what: "the branch leaves the followers" });
  }
  await until(async () => (await all("runcast_environments")).every((count) => count === environments), { what: "their environments, too" });
  await agree(leader, [b, c]);
  for (const gateway of gateways.reverse()) await gateway.stop();
});

test("credentials begin and end at a follower as at the leader", { timeout: 120_000 }, async (t) => {
  const { leader, others: [b] } = await startFollowers(t, { names: ["a", "b"], options: ["--cancel-timeout", "1s"] });
  const fresh = (await leader.post("/api/v1/sign-in", { code: keys.pat }, { key: null })).json.token; // to remove a key
  const user = new HttpClient(leader.url, fresh), keysOf = `/api/v1/projects/${keys.ref}/prod/keys`, branches = `/api/v1/projects/${keys.ref}/branches`;
  const open = async (token, headers = {}) => {
    const socket = await RunsSocket.open({ port: b.port, token, headers, hello: {} });
    t.after(() => socket.cut());
    await socket.next("welcome");
    return socket;
  };
  const { id, key } = (await user.request("POST", keysOf, { body: { name: "ci" } })).json;
  assert.equal((await user.request("POST", branches, { body: { env: "preview", branch: "short" } })).status, 200);
  const ofKey = await open(key), ofBranch = await open(keys.preview, { "x-trigger-branch": "short" }), other = await open(keys.prod);

  assert.equal((await user.request("DELETE", `${keysOf}/${id}`)).status, 200);
  assert.equal((await user.request("POST", `${branches}/archive`, { body: { env: "preview", branch: "short" } })).status, 200);
  for (const socket of [ofKey, ofBranch]) assert.equal((await socket.closed).code, 4001);
  await assert.rejects(open(key));
  assert.ok(!other.ws.isClosed);
  user.close();
  await b.stop();
  await leader.stop();
});

test("clients of a follower learn what retention removes", { timeout: 120_000 }, async (t) => {
  const { leader, others: [b] } = await startFollowers(t, { names: ["a", "b"], options: ["--retain", "1s"] });
  const mirror = new RunsMirror({ port: b.port, token: keys.dev });
  mirror.subscribe({ all: true });
  await mirror.connect();
  t.after(() => mirror.cut());
  const dev = new HttpClient(leader.url, keys.dev);
  const { id } = (await dev.request("POST", "/api/v1/tasks/task/trigger", { body: { payload: "1" } })).json;
  await until(() => mirror.runs.has(id), { what: "the client gets the run" });
  assert.equal((await dev.request("POST", `/api/v2/runs/${id}/cancel`)).status, 200);
  const ended = () => Date.parse(mirror.runs.get(id).fields.updatedAt);
  await until(() => mirror.errors.length || Date.parse(mirror.floor) > ended(), { what: "the client learns that the run was removed", timeoutMs: 60_000 });
  assert.deepEqual(mirror.errors, []);
  dev.close();
  await b.stop();
  await leader.stop();
});

// Payloads of 60,000 bytes travel as long as the follower reads them fast enough.
test("a follower on a slow network gets changes without payloads, and reads those from the database", { timeout: 300_000 }, async (t) => {
  const { leader, others: [b] } = await startFollowers(t, { names: ["a", "b"] }), PAYLOAD = 60_000;
  const mirror = new RunsMirror({ port: b.port, token: keys.prod });
  mirror.subscribe({ all: true });
  await mirror.connect();
  t.after(() => mirror.cut());
  leader.peers.limit(200_000);
  let written = 0;
  const writeSome = async () => { await Promise.all(Array.from({ length: 8 }, () => write(leader, 1, { payload: PAYLOAD }))); written += 8; };
  while (!leader.stderr.includes("a follower reads slowly")) await writeSome();
  await until(() => /"event":"a follower reads slowly; long packets are left out","gateway":"\d+","client":"127\.0\.0\.1","for_ms":"1000"/.test(leader.stderr), { what: "the line names the follower" });
  for (let n = 0; n < 10; n++) await writeSome();
  leader.peers.limit(Infinity);
  await agree(leader, [b]);
  await until(() => mirror.errors.length || mirror.runs.size === written + 1, { what: "the client has all runs", timeoutMs: 60_000 });
  assert.deepEqual(mirror.errors, []);
  assert.ok(await b.metric("runcast_replication_reads_total") > 0, "payloads were left out");
  assert.equal([...mirror.runs.values()].filter((run) => run.fields.payload?.text?.length === PAYLOAD).length, written);
  assert.doesNotMatch(leader.stderr, /a follower has left/);
  await b.stop();
  await leader.stop();
});

// Metadata cannot be left out of changes. Other environments' changes arrive while more of it is written than the network carries.
test("a follower on a slow network reads an environment with much metadata from the database, and gets the changes of others", { timeout: 300_000 }, async (t) => {
  const { leader, others: [b] } = await startFollowers(t, { names: ["a", "b"] });
  const mirror = new RunsMirror({ port: b.port, token: keys.dev });
  mirror.subscribe({ all: true });
  await mirror.connect();
  t.after(() => mirror.cut());
  const dev = new HttpClient(leader.url, keys.dev), writeSome = () => Promise.all(Array.from({ length: 8 }, () => write(leader, 1, { metadata: 200_000 })));
  leader.peers.limit(200_000);
  while (await b.metric("runcast_replication_environment_reads_total") === 0) await writeSome();
  const { id } = (await dev.request("POST", "/api/v1/tasks/task/trigger", { body: { payload: "1" } })).json;
  while (!mirror.runs.has(id) && !mirror.errors.length) await writeSome();
  leader.peers.limit(Infinity);
  assert.equal((await dev.request("POST", `/api/v2/runs/${id}/cancel`)).status, 200);
  await agree(leader, [b]);
  assert.deepEqual(mirror.errors, []);
  assert.doesNotMatch(leader.stderr, /a follower has left/);
  assert.match(b.stderr, /"event":"an environment is read again from the database","environment":"\w+","reason":"the leader has omitted/);
  dev.close();
  await b.stop();
  await leader.stop();
});

test("a follower that reads nothing loses its connection, and the leader does not wait for it", { timeout: 300_000 }, async (t) => {
  const { leader, others: [b] } = await startFollowers(t, { names: ["a", "b"] });
  leader.peers.pause();
  while (await leader.metric("runcast_followers")) await write(leader, 8, { metadata: 200_000 });
  leader.peers.resume();
  await follows(b);
  await write(leader, 10);
  await agree(leader, [b]);
  await b.stop();
  await leader.stop();
});

test("a follower takes the lead, and the others follow it", { timeout: 300_000 }, async (t) => {
  const { leader, gateways } = await startFollowers(t);
  await write(leader, 100);
  await agree(leader, gateways.slice(1));
  await leader.kill();
  const next = await until(async () => { for (const one of gateways.slice(1)) if (await one.leads()) return one; }, { what: "another one leads" });
  await leader.restart({ ready: false });
  const others = gateways.filter((one) => one !== next);
  for (const other of others) await follows(other);
  await write(next, 100);
  await agree(next, others);
  assert.equal(await next.metric("runcast_runs"), 202);

  // Handed over: the other one follows the next leader.
  await next.stop();
  const [last, other] = await until(async () => {
    const ready = await Promise.all(others.map((one) => one.leads()));
    return ready.includes(true) && [others[ready.indexOf(true)], others[ready.indexOf(false)]];
  }, { what: "one of the last two leads" });
  await follows(other);
  // Only a lead that was lost is a warning. The database may name the next leader before the former one does.
  const ended = (one) => one.stderr.split("\n").filter((line) => line.includes(`"event":"no longer follows"`)).map((line) => JSON.parse(line));
  for (const { level, reason, leader: name } of ended(other).filter((line) => line.leader === next.name))
    assert.equal(level, /^the lead was handed over/.test(reason) ? "info" : "warn", `${name}: ${reason}`);
  for (const { level } of ended(other).filter((line) => line.leader === leader.name)) assert.equal(level, "warn");
  await write(last, 10);
  await agree(last, [other]);
  await other.stop();
  await last.stop();
});

// The row of a run is away while a follower loads, so that its memory lacks the run.
test("a follower whose memory differs from the leader's loads it again, and its clients get snapshots", { timeout: 300_000 }, async (t) => {
  const { postgres, leader, others: [b] } = await startFollowers(t, { names: ["a", "b"] });
  await write(leader, 10);
  const row = "FROM runcast.run WHERE rev = (SELECT min(rev) FROM runcast.run)";
  postgres.query(`SET session_replication_role = replica; CREATE TABLE kept AS SELECT * ${row}; DELETE ${row}`);
  await b.stop();
  await b.restart({ ready: false });
  await follows(b);
  assert.equal(await b.metric("runcast_runs"), 9);
  const mirror = new RunsMirror({ port: b.port, token: keys.prod });
  mirror.subscribe({ all: true });
  await mirror.connect();
  const { socket } = mirror;
  t.after(() => mirror.cut());
  postgres.query("SET session_replication_role = replica; INSERT INTO runcast.run SELECT * FROM kept");
  await until(() => b.stderr.includes("memory differs from the leader's"), { what: "the sum differs" });
  await until(() => mirror.begunAgain, { what: "the client is welcomed again", timeoutMs: 60_000 });
  await follows(b);
  assert.equal(await b.metric("runcast_runs"), 10);
  await write(leader, 1);
  await until(() => mirror.errors.length || mirror.runs.size === 11, { what: "the client has all runs" });
  assert.deepEqual(mirror.errors, []);
  assert.equal(mirror.socket, socket, "its connection was not closed");
  await b.stop();
  await leader.stop();
});

test("a follower with another epoch than its leader follows once the leader has it, too", { timeout: 300_000 }, async (t) => {
  const { postgres, leader, others: [b] } = await startFollowers(t, { names: ["a", "b"] });
  await write(leader, 10);
  postgres.query("UPDATE runcast.meta SET value = 'ffffffffffffffff' WHERE name = 'epoch'");
  await b.stop();
  await b.restart({ ready: false });
  await until(() => b.stderr.includes("another epoch"), { what: "the follower sees another epoch" });
  assert.equal(await b.metric("runcast_follows").catch(() => 0), 0);
  await leader.kill();
  await until(() => b.leads(), { what: "the follower leads" });
  await leader.restart({ ready: false });
  await follows(leader);
  await agree(b, [leader]);
  await leader.stop();
  await b.stop();
});

test("a follower whose memory is of another epoch loads it again in place, and leads with the new epoch", { timeout: 120_000 }, async (t) => {
  const { postgres, leader, others: [b] } = await startFollowers(t, { names: ["a", "b"], options: ["--beat", "200ms", "--dead-after", "1s"] });
  await write(leader, 10);
  await agree(leader, [b]);
  b.child.kill("SIGSTOP");
  postgres.query("UPDATE runcast.meta SET value = 'ffffffffffffffff' WHERE name = 'epoch'");
  await leader.kill();
  await leader.restart();
  b.child.kill("SIGCONT");
  await until(() => b.stderr.includes("the database has another history"), { what: "the follower sees another epoch" });
  await leader.kill();
  await until(() => b.leads(), { what: "it leads", timeoutMs: 60_000 });
  const { headers } = await b.post("/api/v1/tasks/task/trigger", { payload: 1 }, { key: keys.prod });
  assert.match(headers["x-runs-seq"], /^ffffffffffffffff\./);
  assert.doesNotMatch(b.stderr, /restarting/);
  await b.stop();
});
