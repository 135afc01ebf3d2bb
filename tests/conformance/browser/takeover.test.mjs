// The official React hooks, in a real browser, on gateways behind HAProxy when the leader is killed, suspended, cut off from
// the database, or stopped: on three that follow each other, in round robin. With --all, also on two of which one stands by, and
// when the database itself is lost, with changes. ../worker/takeover.test.mjs has the other clients.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";

import { startCluster } from "../../support/js/cluster.mjs";
import { keys, until } from "../../support/js/gateway.mjs";
import { publicToken } from "../../support/js/tokens.mjs";
import { startTwoGateways } from "../../support/js/two_gateways.mjs";
import { Front, subscribe, surviveTakeovers, WITHIN_MS } from "../worker/takeover/clients.mjs";
import { startBrowser } from "./tab.mjs";

/** Waits until the page shows these fields of a run. It checks rarely, since frequent checks would slow down the gateways. */
function showing(tab, id, fields) {
  return until(async () => {
    const run = [JSON.parse(await tab.text("value")) ?? []].flat().find((one) => one.id === id);
    return run && Object.entries(fields).every(([name, value]) => isDeepStrictEqual(run[name], value));
  }, { everyMs: 250, timeoutMs: WITHIN_MS, what: `the page shows ${JSON.stringify(fields)} of ${id}` });
}

/** Two pages with one hook each, for a run and for a tag. Both hooks stay mounted in all rounds. */
class Pages {
  static async open(t, front, leader, { browser, key }) {
    const pages = Object.assign(new Pages(), { name: "hooks", front, key, tag: await browser.open(t), run: await browser.open(t), ids: [] });
    const access = { baseURL: front.url, accessToken: await publicToken(leader, { key, scopes: ["read:tags", "read:runs"] }) };
    pages.long = await pages.#trigger("long");
    await pages.tag.show("Tag", { tag: pages.name, ...access });
    await pages.run.show("Run", { id: pages.long, ...access });
    return pages;
  }

  async begin(round) {
    this.id = await this.#trigger(round);
    await showing(this.tag, this.id, { status: "PENDING_VERSION" });
  }

  async pause() {}

  async end(round) {
    await this.front.cancel(this.key, this.id);
    await showing(this.tag, this.id, { status: "CANCELED" });
    await this.front.putMetadata(this.key, this.long, { round });
    await showing(this.run, this.long, { metadata: { round } });
  }

  async judge() {
    await this.front.cancel(this.key, this.long);
    await showing(this.run, this.long, { status: "CANCELED" });
    await until(async () => (await this.run.completed()).length === 1, { what: "onComplete" });
  }

  #trigger(name) { return this.front.trigger(this.key, "unknown-task", { name: `page-${name}` }, { tags: [this.name] }); }
}

const worlds = [["of gateways that follow", (t, more) => startCluster(t, { isRelayed: true, ...more })],
  ...process.env.TESTS_IN_FULL ? [["with a standby", startTwoGateways]] : []];

for (const [what, start] of worlds) test(`hooks survive takeovers ${what}`, { timeout: 500_000 }, async (t) => {
  const browser = await startBrowser();
  t.after(() => browser.stop());
  const world = await start(t, { options: ["--allow-origin", browser.origin] });
  await surviveTakeovers(t, world, [await Pages.open(t, new Front(world), world.leader, { browser, key: keys.staging })]);
});

if (process.env.TESTS_IN_FULL) test("hooks show what is left after a failover of the database that loses changes", { timeout: 300_000 }, async (t) => {
  const browser = await startBrowser(), key = keys.staging;
  t.after(() => browser.stop());
  const world = await startCluster(t, { hasStandby: true, options: ["--allow-origin", browser.origin] }), { postgres, standby, leader, others } = world;
  const front = new Front(world), pages = await Pages.open(t, front, leader, { browser, key }), mirrors = await subscribe(t, others);
  await pages.begin(0);
  standby.set("primary_conninfo", "");
  postgres.set("synchronous_standby_names", "");
  await until(() => postgres.query("SELECT count(*) FROM pg_stat_replication") === "0", { what: "the standby gets nothing any more" });
  const lost = await front.trigger(key, "unknown-task", { name: "lost" }, { tags: [pages.name] });
  await showing(pages.tag, lost, { status: "PENDING_VERSION" });
  await front.putMetadata(key, pages.long, { lost: true });
  await showing(pages.run, pages.long, { metadata: { lost: true } });

  await postgres.kill();
  standby.promote();
  await until(async () => (await front.get(`/api/v3/runs/${lost}`, { key }).catch(() => ({}))).status === 404, { what: "the run is lost", timeoutMs: WITHIN_MS });
  await pages.end(0);
  for (const [{ name }, { socket, errors, begunAgain }] of mirrors) assert.ok(socket && begunAgain && !errors.length, `the subscriber of ${name} is welcomed again`);
  await pages.judge();
  for (const gateway of world.gateways) await gateway.stop();
});
