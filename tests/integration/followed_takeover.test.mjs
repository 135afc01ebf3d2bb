// Clients of gateways that follow, when the leader is killed, stopped or ends: whichever gateway takes the lead, the clients of
// those that remain stay connected, miss no state, and see what the next leader writes. Runs that wait get workers.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";

import { Writers } from "../support/js/acknowledged.mjs";
import { EventStream } from "../support/js/event_stream.mjs";
import { polls } from "../support/js/fixture.mjs";
import { agree, follows, startFollowers } from "../support/js/followers.mjs";
import { keys, since, until } from "../support/js/gateway.mjs";
import { HttpClient } from "../support/js/http.mjs";
import { startPostgres } from "../support/js/postgres.mjs";
import { runProgram } from "../support/js/program.mjs";
import { RunsMirror, RunsSocket } from "../support/js/runs.mjs";

const POLL = "/realtime/v1/runs?tags=watched", key = keys.prod;

const trigger = async (gateway, options = {}) => {
  const { status, json, text } = await gateway.post("/api/v1/tasks/task/trigger", { payload: 1, options: { tags: ["watched"], ...options } }, { key });
  assert.equal(status, 200, text);
  return json.id;
};

/** A client of each transport at one gateway. */
class Clients {
  static async open(gateway, t) {
    const clients = new Clients(gateway);
    clients.mirror = new RunsMirror({ port: gateway.port, token: key });
    clients.mirror.subscribe({ all: true });
    await clients.mirror.connect();
    clients.mirror.socket.closed.then((reason) => { clients.closed = reason; });
    clients.list = await RunsSocket.open({ port: gateway.port, token: key, hello: {} });
    await clients.list.next("welcome");
    clients.list.send({ op: "watch", id: 1, filter: {}, limit: 5, counts: true });
    await clients.list.next("list");
    clients.stream = await EventStream.open(`${gateway.url}/realtime/v1/events?all=1`, { headers: { authorization: `Bearer ${key}` } });
    await until(() => clients.stream.events.some(({ type }) => type === "ok"), { what: "the stream is live" });
    clients.poll = await clients.#ask("offset=-1");
    t.after(() => { clients.mirror.cut(); clients.list.cut(); clients.stream.cut(); });
    return clients;
  }

  constructor(gateway) { Object.assign(this, { gateway, closed: null, seen: new Set() }); }

  async #ask(query) {
    const answer = await this.gateway.http.request("GET", `${POLL}&${query}`, { key, headers: polls });
    for (const { value } of answer.status === 200 && answer.text ? JSON.parse(answer.text) : []) if (value?.friendlyId) this.seen.add(value.friendlyId);
    return answer;
  }

  /** Polls as SDKs do, with retries after 503, until the run was seen. After 409, they forget everything. */
  async untilPolled(run) {
    await until(async () => {
      const { "electric-offset": offset, "electric-handle": handle } = this.poll.headers;
      const answer = await this.#ask(`offset=${offset}&handle=${handle}`).catch(() => ({ status: 0 }));
      assert.ok([0, 200, 409, 503].includes(answer.status), `${answer.status} ${answer.text}`);
      if (answer.status === 409) { this.refetched = true; this.seen.clear(); this.poll = await this.#ask("offset=-1"); }
      if (answer.status === 200) this.poll = answer;
      return this.seen.has(run);
    }, { what: `a poll at ${this.gateway.name} gets ${run}`, timeoutMs: 60_000 });
  }

  /** Waits until every client has seen the run, and asserts that none was disconnected. */
  async untilSeen(run) {
    const { mirror, list, stream, gateway } = this, timeoutMs = 60_000;
    await until(() => mirror.errors.length || mirror.runs.has(run), { what: `a subscriber at ${gateway.name} gets ${run}`, timeoutMs });
    assert.deepEqual(mirror.errors, []);
    await list.next(({ op, ...rest }) => op === "list" && JSON.stringify(rest).includes(run), timeoutMs);
    await until(() => stream.events.some(({ data }) => JSON.stringify(data).includes(run)), { what: `a stream at ${gateway.name} gets ${run}`, timeoutMs });
    await this.untilPolled(run);
    assert.equal(this.closed, null, `the socket at ${gateway.name} stays open`);
    assert.ok(!list.ws.isClosed, `the list at ${gateway.name} stays open`);
    assert.equal(stream.ended, false, `the stream at ${gateway.name} stays open`);
  }
}

// A promoted server may lack commits. The memory of followers is then of another history.
test("clients of followers stay connected when a failover of the database loses commits", { timeout: 300_000, ...since("63d02c3d") }, async (t) => {
  const first = await startPostgres({ t }), standby = await first.standby({ t });
  const url = `postgresql://runcast@127.0.0.1:${first.port},127.0.0.1:${standby.port}/runcast?target_session_attrs=read-write`;
  const { gateways, leader, others } = await startFollowers(t, { postgres: first, url });
  const all = [];
  for (const other of others) all.push(await Clients.open(other, t));
  const kept = await trigger(leader);
  for (const clients of all) await clients.untilSeen(kept);
  const { epoch } = all[0].mirror;
  standby.set("primary_conninfo", "");
  first.set("synchronous_standby_names", "");
  await until(() => first.query("SELECT count(*) FROM pg_stat_replication") === "0", { what: "the standby gets nothing any more" });
  const lost = await trigger(leader);
  for (const clients of all) await clients.untilSeen(lost);
  await first.kill();
  standby.promote();
  const [next, last] = await until(async () => {
    for (const one of gateways) {
      const run = await one.leads() && await trigger(one).catch(() => null);
      if (run) return [one, run];
    }
  }, { what: "one leads at the promoted server", timeoutMs: 60_000 });
  for (const clients of all) {
    const { mirror, stream, gateway } = clients;
    if (gateway === next) continue;
    await clients.untilSeen(last);
    assert.notEqual(mirror.epoch, epoch);
    assert.ok(mirror.begunAgain, `the subscriber at ${gateway.name} was welcomed again`);
    await until(() => !mirror.runs.has(lost), { what: `the subscriber at ${gateway.name} forgets the lost run` });
    assert.ok(mirror.runs.has(kept));
    assert.equal(stream.events.filter(({ type, data }) => type === "ok" && data.mode === "snapshot").length, 2);
    assert.ok(clients.refetched && clients.seen.has(kept) && !clients.seen.has(lost), "the polls start over");
    assert.doesNotMatch(gateway.stderr, /lead lost|restarting/);
  }
  await follows(others.find((one) => one !== next));
  await agree(next, others.filter((one) => one !== next));
  for (const gateway of gateways) await gateway.stop();
});

const oneOf = (gateways) => until(async () => { for (const one of gateways) if (await one.leads()) return one; }, { what: "another one leads", timeoutMs: 60_000 });

for (const [what, end] of [
  ["is killed", (leader) => leader.kill()],
  ["is stopped", (leader) => leader.child.kill("SIGSTOP")],
  ["ends well", (leader) => leader.stop()],
]) {
  test(`clients of the other gateways stay connected when the leader ${what}`, { timeout: 300_000 }, async (t) => {
    const { postgres, leader, others } = await startFollowers(t);
    const all = [];
    for (const other of others) all.push(await Clients.open(other, t));
    const first = await trigger(leader);
    for (const clients of all) await clients.untilSeen(first);
    const writers = new Writers(leader.url);
    t.after(() => writers.giveUp());
    await until(() => writers.acknowledged.size > 50, { what: "runs" });
    writers.giveUp();
    await end(leader);
    const next = await oneOf(others);
    const last = await trigger(next);
    for (const clients of all) await clients.untilSeen(last);
    if (!since("6ba68aa6").skip) await until(async () => await next.metric("runcast_memory_comparisons_total{result=\"equal\"}") === 1, { what: "its memory was compared with the database" });
    const count = Number(postgres.query("SELECT count(*) FROM runcast.run"));
    for (const { mirror, gateway } of all) await until(() => mirror.runs.size === count, { what: `the subscriber at ${gateway.name} has all runs` });
    const [other] = others.filter((one) => one !== next);
    await follows(other);
    await agree(next, [other]);
    if (what === "is stopped") leader.child.kill("SIGCONT");
    await other.stop();
    await next.stop();
  });
}

test("a follower that takes the lead with memory that differs from the database gives it up, and reads everything", { timeout: 120_000, ...since("6ba68aa6") }, async (t) => {
  const { postgres, leader, others: [b] } = await startFollowers(t, { names: ["a", "b"] });
  const right = await trigger(leader), wrong = await trigger(leader);
  await agree(leader, [b]);
  await leader.kill();
  postgres.query(`UPDATE runcast.run SET version = version + 1 WHERE id = '${wrong}'`);
  await until(() => /"event":"lead lost","reason":"memory differs from the database"/.test(b.stderr), { what: "the difference is found", timeoutMs: 60_000 });
  assert.match(b.stderr, new RegExp(`"event":"memory differs from the database","env":"[^"]+","run":"${wrong}"`));
  assert.doesNotMatch(b.stderr, new RegExp(`"run":"${right}"`));
  await until(() => b.leads(), { what: "it leads again", timeoutMs: 60_000 });
  assert.equal((await b.get(`/api/v3/runs/${wrong}`, { key })).status, 200);
  await trigger(b);
  await b.stop();
});

// As if it had missed a revocation, which would then hold nowhere.
test("a follower that takes the lead with a key that the database does not have gives the lead up, and refuses the key", { timeout: 120_000, ...since("296dd799") }, async (t) => {
  const { postgres, leader, others: [b] } = await startFollowers(t, { names: ["a", "b"] }), keysOfProd = `/api/v1/projects/${keys.ref}/prod/keys`;
  const { json } = await leader.post(keysOfProd, { name: "ci" }, { key: keys.pat });
  await until(async () => (await b.get("/api/v1/runs", { key: json.key })).status === 200, { what: "the follower has the key" });
  await agree(leader, [b]);
  await leader.kill();
  const newest = "FROM runcast.document WHERE env = 0 AND kind = 4";
  postgres.query(`DELETE ${newest} AND seq = (SELECT max(seq) ${newest})`);
  await until(() => /"event":"lead lost","reason":"memory differs from the database"/.test(b.stderr), { what: "the difference is found", timeoutMs: 60_000 });
  assert.match(b.stderr, /"event":"accounts in memory differ from the database","document":"one that was removed"/);
  await until(() => b.leads(), { what: "it leads again", timeoutMs: 60_000 });
  assert.equal((await b.get("/api/v1/runs", { key: json.key })).status, 401);
  await trigger(b);
  await b.stop();
});

/** Makes and ends accounts of every kind at the gateway. */
async function changeAccounts(gateway, name) {
  const operator = async (...words) => { const { code, stdout, all } = await runProgram([...words, "--data", gateway.data]); assert.equal(code, 0, `${words.join(" ")}: ${all}`); return stdout.trim(); };
  const post = (target, body, more) => gateway.post(target, body, { key: keys.pat, ...more }), ok = ({ status, text, json }) => { assert.equal(status, 200, text); return json; };
  const email = (who) => `${who}@${name}.example`, project = (which) => `proj_${name}${which}`.padEnd(20, "0").slice(0, 20), mine = `/api/v1/projects/${keys.ref}`;
  for (const which of ["kept", "gone"]) {
    await operator("org", "create", `${name} ${which}`);
    await operator("user", "create", "Ada", "--email", email(which), "--org", `${name}-${which}`);
    await operator("token", "create", "--user", email(which), "--name", "one");
    await operator("project", "create", which, "--org", `${name}-kept`, "--ref", project(which));
    await operator("worker-token", "create", "--project", project(which), "--env", "prod");
    ok(await post(`${mine}/branches`, { env: "preview", branch: `${name}/${which}` }));
    ok(await post(`${mine}/prod/keys`, { name: `${name}-${which}` }));
  }
  const code = (await operator("dashboard", "--user", email("kept"))).split("#signin=")[1], page = { host: new URL(gateway.url).host, origin: gateway.url, "sec-fetch-site": "same-origin" };
  const { token } = ok(await post("/api/v1/sign-in", { code }, { headers: page }));
  const { x, y } = generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey.export({ format: "jwk" }), point = [Buffer.of(4), ...[x, y].map((part) => Buffer.from(part, "base64url"))];
  ok(await post("/api/v1/sign-in/stay", { publicKey: Buffer.concat(point).toString("base64url") }, { key: token, headers: page }));
  await operator("org", "rename", `${name}-kept`, "--name", "Renamed");
  await operator("project", "rename", project("kept"), "--name", "Renamed");
  await operator("user", "rename", email("kept"), "--name", "Renamed");
  await operator("keys", "rotate", "staging", "--project", project("kept"), "--grace", "0");
  await operator("keys", "rotate", "prod", "--project", project("kept"), "--grace", "1h");
  await operator("keys", "rotate", "preview", "--project", keys.ref, "--grace", "1h");
  ok(await post(`${mine}/branches/archive`, { env: "preview", branch: `${name}/gone` }));
  await operator("project", "delete", project("gone"), "--confirm", project("gone"));
  await operator("org", "delete", `${name}-gone`, "--confirm", `${name}-gone`);
}

test("a gateway that takes the lead has the accounts of the database, whatever has changed in them", { timeout: 180_000, ...since("296dd799") }, async (t) => {
  const { postgres, leader: a, others: [b] } = await startFollowers(t, { names: ["a", "b"], options: ["--retain", "1s"] });
  const count = async () => Number(await postgres.query("SELECT count(*) FROM runcast.document WHERE env = 0 AND kind IN (0, 1, 2, 3, 4, 5, 14)"));
  const compared = async (gateway, stored) => {
    const found = await until(() => /"event":"accounts in memory ([^}]*)/.exec(gateway.stderr)?.[1], { what: `${gateway.name} compares its accounts`, timeoutMs: 60_000 });
    assert.match(found, new RegExp(`^equal the database","documents":"?${stored}\\b`));
  };
  await changeAccounts(a, "first");
  await agree(a, [b]);
  await a.kill();
  await compared(b, await count()); // they came as changes
  await changeAccounts(b, "second");
  await a.restart({ ready: false });
  await follows(a);
  await changeAccounts(b, "third");
  await agree(b, [a]);
  await b.kill();
  await compared(a, await count()); // some were read
  await a.stop();
});

// The follower may have the runs as unfinished, and have retired the environment already.
test("a follower that takes the lead cancels the runs of a branch that was archived just before", { timeout: 120_000 }, async (t) => {
  const { postgres, leader, others: [b] } = await startFollowers(t, { names: ["a", "b"], options: ["--cancel-timeout", "1s"] });
  const user = new HttpClient(leader.url, keys.pat), preview = new HttpClient(leader.url, keys.preview), branches = `/api/v1/projects/${keys.ref}/branches`;
  const environments = await b.metric("runcast_environments");
  assert.equal((await user.request("POST", branches, { body: { env: "preview", branch: "old" } })).status, 200);
  for (let n = 0; n < 50; n++) assert.equal((await preview.request("POST", "/api/v1/tasks/task/trigger", { body: { payload: 1 }, headers: { "x-trigger-branch": "old" } })).status, 200);
  await until(async () => await b.metric("runcast_runs") === 50, { what: "the follower has the runs" });
  assert.equal((await user.request("POST", `${branches}/archive`, { body: { env: "preview", branch: "old" } })).status, 200);
  await leader.kill();
  await until(() => b.leads(), { what: "the follower leads", timeoutMs: 60_000 });
  await until(async () => await b.metric("runcast_environments") === environments, { what: "the environment leaves memory" });
  const [all, canceled] = postgres.query("SELECT count(*), count(*) FILTER (WHERE status >= 7 AND execution = 7) FROM runcast.run").split("|").map(Number);
  assert.deepEqual([all, canceled], [50, 50]);
  user.close();
  preview.close();
  await b.stop();
});

test("a follower that is stopped drains its own clients, and the leader leads on", { timeout: 120_000 }, async (t) => {
  const { leader, others: [b] } = await startFollowers(t, { names: ["a", "b"] });
  const clients = await Clients.open(b, t);
  await clients.untilSeen(await trigger(leader));
  const http = new HttpClient(b.url, key); // stop() closes the other one
  const held = http.request("GET", `${POLL}&offset=${clients.poll.headers["electric-offset"]}&handle=${clients.poll.headers["electric-handle"]}&live=true`, { headers: polls });
  await until(async () => await b.metric("runcast_polls") === 1, { what: "the poll is held" });
  const stopped = b.stop();
  assert.ok([200, 503].includes((await held).status));
  assert.equal((await clients.list.next("drain")).op, "drain");
  await until(() => clients.closed && clients.list.ws.isClosed && clients.stream.ended, { what: "all clients are gone" });
  assert.equal(clients.closed.code, 4200);
  http.close();
  await stopped;
  assert.doesNotMatch(b.stderr, /"level":"error"/);
  assert.doesNotMatch(b.stderr, /lead handed over/);
  await trigger(leader);
  assert.equal(leader.stderr.match(/"event":"leads"/g)?.length, 1);
  await leader.stop();
});
