// The client for pages (src/web/client) against a real gateway, with faults between them: connections break and stall at
// random moments, subscriptions open and close, and the gateway is killed and restarted. Once no run changes, each
// mirror must equal what REST returns.
import assert from "node:assert/strict";
import { test } from "node:test";

import { WebSocket as Socket } from "ws";

import { connect } from "../../src/web/client/client.js";
import { ClientWorld, Path, watchOrder } from "../support/js/client_world.mjs";
import { keys, startGateway, until } from "../support/js/gateway.mjs";
import { chooseSeed, Random } from "../support/js/random.mjs";
import { publicToken } from "../support/js/tokens.mjs";

const WebSocket = globalThis.WebSocket ?? Socket; // Node 18 and 20 have none
const lives = 3;

/** Dispatches the events of a browser's window: "online" when the network is back. */
const network = new EventTarget();
globalThis.addEventListener = network.addEventListener.bind(network);
globalThis.removeEventListener = network.removeEventListener.bind(network);

/** A client with its own network path, for a ClientWorld. */
async function localClient(t, gateway, name, options) {
  const path = await Path.start(t, gateway.port), mirrors = new Map(), wrong = [];
  const client = connect(path.url, { token: keys.dev, WebSocket, silence: 500, ...options });
  t.after(() => client.close());
  client.on("error", (error) => wrong.push(`${error.code} ${error.message}`));
  const subscribe = (key, filter) => {
    mirrors.set(key, filter.watch ? client.watch(filter.watch, { limit: filter.limit, counts: true }) : client.subscribe(filter));
    watchOrder(mirrors.get(key), wrong);
  };
  const close = (key) => {
    mirrors.get(key).close();
    mirrors.delete(key);
  };
  const read = () => Object.fromEntries([...mirrors].map(([key, { runs, counts, state, error }]) => [key, { runs: [...runs.values()], counts, state, error: error?.message }]));
  const online = () => network.dispatchEvent(new Event("online"));
  return { name, path, client, wrong, subscribe, close, read, online };
}

test("each mirror equals what REST returns, through cuts, stalls, kills and restarts", { timeout: 240_000 }, async (t) => {
  const random = new Random(chooseSeed(t)), gateway = await startGateway({ t, options: ["--drain-timeout", "3s"] });
  const world = new ClientWorld(gateway, random);
  for (const [name, options] of [["plain", {}], ["paced", { every: 30 }], ["restless", {}]]) {
    world.add(await localClient(t, gateway, name, options));
    await world.open(world.clients.at(-1), { all: true });
  }
  for (let life = 0; life < lives; life++) {
    await world.disturb(250, { kills: 2 });
    await world.settle();
  }
  for (const { name, wrong } of world.clients) assert.deepEqual(wrong, [], name);
  t.diagnostic(`${world.generator.ids.length} runs, the gateway was ended ${world.kills} times`);
  for (const { client } of world.clients) client.close();
  await until(async () => (await gateway.metric("runcast_subscriptions")) === 0);
  await gateway.stop();
});

test("a token that expires after seconds is renewed, and the connection stays open", { timeout: 180_000 }, async (t) => {
  const gateway = await startGateway({ t }), states = [];
  let requests = 0;
  const getToken = () => {
    requests++;
    return publicToken(gateway, { scopes: ["read:runs"], expiresInS: 3 });
  };
  const client = connect(gateway.url, { getToken, WebSocket });
  t.after(() => client.close());
  client.on("error", (error) => states.push(error.message));
  const mirror = client.subscribe({ all: true });
  mirror.on("state", (state) => states.push(state));
  await until(() => requests === 4).catch((error) => { throw new Error(`${error.message}: ${requests} ${states}`); });
  assert.deepEqual(states, ["live"]);
  assert.equal(await gateway.metric('runcast_connections{kind="ws"}'), 1);
  client.close();
  await gateway.stop();
});

test("the client counts as many skipped states as the gateway", { timeout: 180_000 }, async (t) => {
  const gateway = await startGateway({ t });
  const client = connect(gateway.url, { token: keys.dev, WebSocket, every: 100 });
  t.after(() => client.close());
  const { json: { id } } = await gateway.post("/api/v1/tasks/hello/trigger", { options: { delay: "1h" } });
  const mirror = client.subscribe({ run: id });
  await until(() => mirror.state === "live");
  let changes = 0;
  mirror.on("change", () => { changes++; });
  for (let n = 1; n <= 300; n++) await gateway.put(`/api/v1/runs/${id}/metadata`, { metadata: { n } });
  await until(() => mirror.runs.get(id).metadata?.n === 300);
  assert.ok(mirror.gaps > 0 && changes > 1);
  assert.equal(mirror.gaps + changes, 300);
  assert.equal(mirror.gaps, await gateway.metric("runcast_conflated_versions_total"));
  client.close();
  await gateway.stop();
});
