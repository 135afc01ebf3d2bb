// Operators of several gateways: at each of them they see all gateways, and give the commands of the one that leads.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";

import { follows, startFollowers } from "../support/js/followers.mjs";
import { keys, startGateway, until } from "../support/js/gateway.mjs";
import { onDatabase } from "../support/js/postgres.mjs";
import { runProgram } from "../support/js/program.mjs";
import { standsBy } from "../support/js/two_gateways.mjs";

const metricsToken = "the-token-of-metrics";
const run = (gateway, ...words) => runProgram([...words, "--data", gateway.data]);

/** The output of a subcommand that must succeed. */
async function output(gateway, ...words) {
  const { code, stdout, all } = await run(gateway, ...words);
  assert.equal(code, 0, all);
  return stdout;
}

const listed = async (gateway) => JSON.parse((await gateway.getAsAdmin("/gateways")).text).gateways ?? [{}];
const roles = (list) => Object.fromEntries(list.map(({ name, role }) => [name, role]));

test("every gateway lists all of them, with their roles and lag", { timeout: 180_000 }, async (t) => {
  const { postgres, gateways, leader, others: [b, c] } = await startFollowers(t, { env: { RUNCAST_METRICS_TOKEN: metricsToken } });
  const d = await startGateway({ t, ready: false, ...onDatabase(postgres, "d") });
  await standsBy(d);
  const all = { a: "leads", b: "follows", c: "follows", d: "stands by" };
  for (const one of gateways) {
    const list = await until(async () => {
      const found = await listed(one);
      return isDeepStrictEqual(roles(found), all) && found.every(({ role, lag }) => role !== "follows" || lag) && found;
    }, { what: "all gateways, and the reports of followers" });
    for (const { name, role, reason, version, since, lag, peerUrl } of list) {
      assert.equal(reason, name === "d" ? "no peer-listen" : undefined);
      assert.equal(Boolean(version && since && peerUrl), name !== "d", name);
      assert.equal(Boolean(lag), role === "follows");
      if (lag) assert.ok(lag.ms < 5000 && lag.changes === 0, JSON.stringify(lag));
    }
    assert.deepEqual((await one.get("/gateways")).status, 401);
    assert.deepEqual(roles((await one.get("/gateways", { key: metricsToken })).json.gateways), all);
    const lines = (await output(one, "gateways")).trim().split("\n");
    assert.match(lines[0], /^NAME +ROLE +VERSION +SINCE +LAG +ADDRESS$/);
    assert.deepEqual(lines.slice(1).map((line) => line.split(/ {2,}/).slice(0, 2)).sort(), Object.entries(all));
    assert.match(lines.find((line) => line.startsWith("b ")), /0 changes, \d+ ms +http:/);
    const text = await output(one, "gateways", "--json");
    assert.deepEqual(roles(JSON.parse(text).gateways), all);
    assert.match(text, /^[^\n]+\n$/);
  }
  // A flood at a follower does not end its replication.
  const statuses = await Promise.all(Array.from({ length: 3000 }, async () => (await b.getAsAdmin("/gateways")).status));
  assert.ok(statuses.includes(200) && statuses.every((status) => status === 200 || status === 503), [...new Set(statuses)].join());
  assert.doesNotMatch(b.stderr, /no longer follows/);
  await d.kill();
  const lost = await until(async () => (await listed(b)).find(({ name, role }) => name === "d" && role === "down"), { what: "d is down" });
  assert.equal(lost.reason, "no heartbeat");

  // Users of the first organization see no address; tenants and tasks see nothing.
  await output(leader, "org", "create", "Tenant");
  await output(leader, "user", "create", "Eve", "--email", "eve@example.com", "--org", "tenant");
  const eve = (await output(leader, "token", "create", "--user", "eve@example.com")).match(/tr_pat_\w+/)[0];
  for (const one of gateways) {
    const { text, json } = await one.get("/api/v1/gateways", { key: keys.pat });
    assert.equal(roles(json.gateways).a, "leads", text);
    assert.doesNotMatch(text, /127\.0|peerUrl/);
    assert.deepEqual((await one.get("/api/v1/gateways", { key: eve })).json, { gateways: [] });
    assert.equal((await one.get("/api/v1/gateways", { key: keys.prod })).status, 401);
  }
  for (const one of [c, b, leader]) await one.stop();
});

test("a follower that is held back is listed with its lag", { timeout: 180_000 }, async (t) => {
  const { leader, others: [b] } = await startFollowers(t, { names: ["a", "b"] });
  leader.peers.delay(700);
  const lag = async () => (await listed(leader)).find(({ name }) => name === "b")?.lag;
  await until(async () => (await lag())?.ms >= 700, { what: "the lag of a late follower" });
  await until(async () => {
    for (let n = 0; n < 20; n++) await leader.post("/api/v1/tasks/task/trigger", { payload: "1" }, { key: keys.prod });
    return (await lag())?.changes > 0;
  }, { what: "changes that it lacks" });
  leader.peers.delay(0);
  await until(async () => { const { changes, ms } = await lag() ?? {}; return changes === 0 && ms < 700; }, { what: "it has caught up" });
  b.child.kill("SIGSTOP");
  await until(async () => (await listed(leader)).find(({ name }) => name === "b").role !== "follows", { what: "a follower that hangs" });
  b.child.kill("SIGCONT");
  await follows(b);
  await b.stop();
  await leader.stop();
});

test("a leader whose database does not respond is listed with that reason, and keeps its lead", { timeout: 180_000 }, async (t) => {
  const { postgres, leader, others: [b] } = await startFollowers(t, { names: ["a", "b"] });
  const list = async () => JSON.parse((await run(b, "gateways", "--json")).stdout || '{"gateways":[]}').gateways;
  await until(async () => (await list()).length === 2, { what: "the leader's next beat shows b" });
  postgres.freeze();
  const doubted = await until(async () => {
    const found = await list();
    return found.length === 2 && found.every(({ reason }) => reason) && found;
  }, { what: "both have a reason" });
  assert.deepEqual(doubted.map(({ role, reason }) => [role, reason]), [["leads", "the database does not respond"], ["stands by", "its leader is not confirmed"]]);
  const { code, all } = await run(b, "lead", "b");
  assert.equal(code, 1, all);
  assert.match(all, /the database does not respond to the leading gateway "a"; try again when it does/);
  postgres.resume();
  await until(async () => (await list()).every(({ reason }) => !reason), { what: "the lead is confirmed" });
  assert.deepEqual(roles(await list()), { a: "leads", b: "follows" });
  await b.stop();
  await leader.stop();
});

/** Collects the bytes between a gateway and its followers. */
function tap({ peers }) {
  const seen = [];
  for (const pair of peers.pairs) for (const socket of pair.slice(0, 2)) socket.on("data", (bytes) => seen.push(bytes));
  return () => Buffer.concat(seen).toString("latin1");
}

test("the leader learns of the last uses of keys and tokens at followers, and stores them", { timeout: 180_000 }, async (t) => {
  const { leader, others: [b] } = await startFollowers(t, { names: ["a", "b"] }), keysOf = `/api/v1/projects/${keys.ref}/prod/keys`;
  const { id, key } = (await leader.post(keysOf, { name: "ci" }, { key: keys.pat })).json;
  const lastUse = async (gateway) => (await gateway.get(keysOf, { key: keys.pat })).json.data.find((one) => one.id === id).lastUsedAt;
  assert.equal(await lastUse(leader), undefined);
  const begin = Date.now();
  await until(async () => (await b.get("/api/v1/runs", { key })).status === 200, { what: "b knows the key" });
  const end = Date.now();
  leader.peers.cut(); // the next connection begins with a report; one that lasts has another every 10 s
  leader.peers.accept();
  const at = await until(() => lastUse(leader), { what: "the report of b" });
  assert.ok(new Date(at) >= begin && new Date(at) <= end, at);
  await b.kill();
  await leader.stop();
  await leader.restart();
  assert.equal(await lastUse(leader), at);
  await leader.stop();
});

test("subcommands at a follower are carried out by the leader", { timeout: 180_000 }, async (t) => {
  const { leader, others: [b], gateways } = await startFollowers(t, { names: ["a", "b"] });
  const tapped = tap(leader);
  assert.equal(await output(b, "keys"), await output(leader, "keys"));
  const made = await output(b, "project", "create", "Second"), ref = made.match(/proj_\w+/)[0], key = made.match(/tr_prod_\w+/)[0];
  assert.ok(tapped().length > 1000 && !tapped().includes(key) && !tapped().includes(keys.prod), "keys are sealed between the gateways");
  for (const one of gateways) assert.equal((await one.get("/api/v1/runs", { key })).status, 200, "known at once");
  assert.match(await output(b, "project", "list"), new RegExp(ref));
  const token = (await output(b, "token", "create", "--user", "admin@example.com", "--name", "ci")).match(/tr_pat_\w+/)[0];
  assert.equal((await b.get("/api/v2/whoami", { key: token })).status, 200);
  const id = (await output(b, "token", "list")).split("\n").find((line) => line.includes("ci")).trim().split(/\s+/)[0];
  await output(b, "token", "revoke", id);
  for (const one of gateways) assert.equal((await one.get("/api/v2/whoami", { key: token })).status, 401);
  const rotated = (await output(b, "keys", "rotate", "prod", "--project", ref, "--grace", "0")).match(/tr_prod_\w+/)[0];
  assert.equal((await b.get("/api/v1/runs", { key: rotated })).status, 200);
  assert.equal((await b.get("/api/v1/runs", { key })).status, 401);
  assert.match(await output(b, "worker-token", "create", "--project", ref), /tr_/);

  // The same words are refused in the same way, and no log has a secret.
  for (const words of [["keys", "rotate", "nowhere"], ["token", "revoke", "none"], ["org", "delete", "none", "--confirm", "none"],
    ["project", "create", "N".repeat(3500)]]) {
    const [here, there] = [await run(leader, ...words), await run(b, ...words)];
    assert.notEqual(here.code, 0);
    assert.deepEqual([there.code, there.stderr.replaceAll(b.data, leader.data)], [here.code, here.stderr]);
  }
  assert.match(leader.stderr, /"action":"project create Second","by":"uid \d+, pid \d+ at b","result":"ok"/);
  for (const secret of [key, token, rotated])
    for (const one of gateways) assert.ok(!one.stderr.includes(secret));

  leader.peers.cut();
  await until(async () => (await run(b, "keys")).code !== 0, { what: "b has lost the leader" });
  const why = await until(async () => { const { stderr } = await run(b, "keys"); return stderr.includes("cannot reach") && stderr; }, { what: "the reason" });
  assert.match(why, /^runcast: cannot reach the leading gateway "a" at http:\S+: .+; run this on its machine, or try again in a few seconds if it is down$/m);
  assert.match(JSON.parse((await b.getAsAdmin("/gateways")).text).error, /^Cannot list the gateways: cannot reach the leading gateway "a"/);
  leader.peers.accept();
  await until(async () => (await run(b, "keys")).code === 0, { what: "b has the leader again" });
  let passed;
  await until(async () => { // the leader's next beat shows b; the response may be lost when the lead moves
    passed = await run(b, "lead", "b");
    return passed.code === 0 || /leads already/.test(passed.stderr);
  }, { what: "it is handed over" }).catch((error) => assert.fail(`${error.message}: ${passed.stderr}`));
  assert.match(passed.stdout + passed.stderr, /the lead is handed over to b|gateway "b" leads already/);
  await until(async () => (await listed(b))[0].name === "b", { what: "b leads" });
  await until(async () => (await run(leader, "keys")).code === 0, { what: "the former leader follows" });
  assert.equal(await output(leader, "keys"), await output(b, "keys"));
  await leader.stop();
  await b.stop();
});
