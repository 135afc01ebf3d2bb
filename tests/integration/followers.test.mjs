// Gateways that follow the leader of one PostgreSQL: their memory keeps up with the leader's through kills, cuts and slow
// connections, and is the same as the leader's, by the sums that the leader sends.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Writers } from "../support/js/acknowledged.mjs";
import { agree, follows, startFollowers } from "../support/js/followers.mjs";
import { keys, until } from "../support/js/gateway.mjs";
import { HttpClient } from "../support/js/http.mjs";
import { standsBy } from "../support/js/two_gateways.mjs";

/** Triggers that many runs. */
async function write(gateway, count, { size = 0 } = {}) {
  const http = new HttpClient(gateway.url, keys.prod), payload = { text: "x".repeat(size) };
  for (let n = 0; n < count; n++)
    assert.equal((await http.request("POST", "/api/v1/tasks/task/trigger", { body: { payload, options: { tags: [`t${n % 7}`] } } })).status, 200);
  http.close();
}

test("followers keep up, and have the leader's memory", { timeout: 300_000 }, async (t) => {
  const { leader, others, gateways } = await startFollowers(t);
  assert.equal(await leader.metric("runcast_followers"), 2);
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

test("a follower that reads too slowly is cut off, and the leader does not wait for it", { timeout: 300_000 }, async (t) => {
  const { leader, others: [b] } = await startFollowers(t, { names: ["a", "b"] });
  leader.peers.pause();
  for (let sent = 0; !leader.stderr.includes("it reads too slowly"); sent++) {
    assert.ok(sent < 200, "96 MiB were sent, of which at most 64 may wait");
    await write(leader, 1, { size: 500_000 });
  }
  assert.equal(await leader.metric("runcast_followers"), 0);
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
  const next = await until(async () => { for (const one of gateways.slice(1)) if (await one.isReady()) return one; }, { what: "another one leads" });
  await leader.restart({ ready: false });
  const others = gateways.filter((one) => one !== next);
  for (const other of others) await follows(other);
  await write(next, 100);
  await agree(next, others);
  assert.equal(await next.metric("runcast_runs"), 202);

  // Handed over: the others follow the next leader at once, and the former one after its restart.
  await next.stop();
  const last = await until(async () => { for (const one of others) if (await one.isReady()) return one; }, { what: "the last one leads" });
  const [other] = others.filter((one) => one !== last);
  await standsBy(other);
  await follows(other);
  await write(last, 10);
  await agree(last, [other]);
  await other.stop();
  await last.stop();
});
