// A gateway that may not lead sends "in sync" on no transport, whatever the reason: it is cut off from the database, was
// stopped, stands by, loads runs, or drains. In doubt it is silent and closes nothing. When it knows that another gateway
// leads, it closes its sockets with 4201.
import assert from "node:assert/strict";
import { test } from "node:test";

import { keys, startGateway, until } from "../support/js/gateway.mjs";
import { PgRelay } from "../support/js/pg_relay.mjs";
import { onDatabase, startPostgres } from "../support/js/postgres.mjs";
import { SyncWatch, isInSync, newClients } from "../support/js/sync_watch.mjs";
import { RunsSocket } from "../support/js/runs.mjs";
import { standsBy, startTwoGateways } from "../support/js/two_gateways.mjs";
import { WebSocket } from "../support/js/websocket.mjs";

const trigger = (gateway) => gateway.post("/api/v1/tasks/watched/trigger", { payload: 2, options: { tags: ["watched"] } }, { key: keys.prod });
const doubts = (gateway) => until(async () => {
  const { status, text } = await gateway.http.request("GET", "/readyz");
  return status === 503 && text.includes("no_beat");
}, { timeoutMs: 30_000, what: "the leader doubts" });

test("a leader that is cut off from its database is silent on every transport, and closes with 4201 once it knows", { timeout: 180_000 }, async (t) => {
  const { leader, other } = await startTwoGateways(t);
  const watch = await SyncWatch.open(leader, t, { quietS: 15 });
  await leader.relay.hold();
  await doubts(leader);
  watch.mark();
  await watch.assertRefusing();
  await until(() => other.isReady(), { timeoutMs: 60_000, what: "the other one leads" });
  assert.equal((await trigger(other)).status, 200);
  watch.sendRequests();
  assert.equal((await watch.silent.closed).code, 4100, "a socket that was not welcomed is refused");
  for (const { name } of watch.sockets)
    await until(() => [3, 4].every((id) => watch.sinceMark(name).some((one) => one.op === "error" && one.code === "limit" && one.id === id)), { what: `${name}: sub and watch are refused` });
  await watch.untilQuiet();
  watch.assertSilent();
  watch.assertOpen();

  leader.relay.pass();
  await watch.assertMoved();
  watch.assertSilent();
  await standsBy(leader);
  await other.stop();
  await leader.stop();
});

test("a leader that was stopped while another one took over answers nothing when it continues, and closes with 4201", { timeout: 180_000 }, async (t) => {
  const { leader, other } = await startTwoGateways(t);
  const watch = await SyncWatch.open(leader, t, { quietS: 25 });
  watch.mark();
  leader.child.kill("SIGSTOP");
  await until(() => other.isReady(), { timeoutMs: 60_000, what: "the other one leads" });
  assert.equal((await trigger(other)).status, 200);
  watch.sendRequests(); // the request waits in the socket
  await watch.untilQuiet(); // timers of the stream's reader and of the poll expire before the leader continues
  const polled = leader.http.request("GET", watch.poll.target, { key: keys.prod }).catch(() => ({ status: 503 }));
  leader.child.kill("SIGCONT");
  await watch.assertMoved();
  assert.equal((await polled).status, 503);
  assert.deepEqual(watch.answers.filter(({ status }) => status !== 503), []);
  watch.assertSilent();
  await standsBy(leader);
  await other.stop();
  await leader.stop();
});

test("a doubt that ends without another leader closes nothing, and requests in between are answered", { timeout: 180_000 }, async (t) => {
  const postgres = await startPostgres({ t }), relay = await PgRelay.start(postgres, t);
  const gateway = await startGateway({ t, ...onDatabase(postgres, "only", { url: relay.url }) });
  const watch = await SyncWatch.open(gateway, t);
  relay.hold();
  await doubts(gateway);
  watch.mark();
  for (const { socket } of watch.sockets) {
    socket.send({ op: "sub", id: 3, all: true, counts: true });
    socket.send({ op: "watch", id: 4, filter: {}, limit: 5, counts: true });
    socket.send({ op: "sub", id: 5, all: true });
    socket.send({ op: "unsub", id: 5 });
  }
  for (const { name } of watch.sockets) await until(() => watch.sinceMark(name).some(({ op, id }) => op === "end" && id === 5), { what: "unsub is answered" });
  watch.assertSilent();
  relay.pass();
  for (const { name } of watch.sockets) {
    const has = (op, id) => watch.sinceMark(name).some((one) => one.op === op && one.id === id);
    await until(() => ["ok", "rows"].every((op) => has(op, 3)) && ["ok", "list"].every((op) => has(op, 4)), { what: `${name} is answered` });
    assert.ok(!has("ok", 5));
  }
  const { json: { id } } = await until(async () => { const reply = await trigger(gateway); return reply.status === 200 && reply; }, { what: "it serves" });
  for (const { name } of [...watch.sockets, ...watch.streams])
    await until(() => watch.sinceMark(name).some((one) => isInSync(one) && JSON.stringify(one).includes(id)), { what: `${name} sees the new run` });
  watch.assertOpen();
  await gateway.stop();
});

test("a leader that receives SIGTERM hands over the lead before its sockets leave, and is silent from then on", { timeout: 180_000 }, async (t) => {
  const { leader, other } = await startTwoGateways(t, { options: ["--drain-timeout", "20s"] });
  const watch = await SyncWatch.open(leader, t); // its sockets stay until they are closed
  const closes = Promise.all(watch.sockets.map(async ({ socket }) => ({ ...await socket.closed, at: Date.now() })));
  leader.child.kill("SIGTERM");
  await until(() => leader.stderr.includes("lead handed over"), { what: "the lead is handed over" });
  watch.mark();
  watch.sendRequests();
  await until(() => other.isReady(), { timeoutMs: 60_000, what: "the other one leads" });
  assert.equal((await trigger(other)).status, 200);
  const [, time] = leader.stderr.match(/"time":"([^"]+)"[^\n]*"event":"lead handed over"/), handedOver = Date.parse(time);
  for (const { code, at } of await closes) {
    assert.match(`${code}`, /^42/);
    assert.ok(at >= handedOver, `closed ${handedOver - at} ms before the lead was handed over`);
  }
  watch.assertSilent();
  assert.deepEqual(await leader.ended(), { code: 0, signal: null });
  await other.stop();
});

test("a body that arrives after the lead was handed over is refused, and none of it stays in memory", { timeout: 180_000 }, async (t) => {
  const { leader, other } = await startTwoGateways(t);
  const slow = await leader.connect();
  await slow.send(`POST /api/v1/tasks/late/trigger HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${keys.prod}\r\ncontent-type: application/json\r\ncontent-length: 13\r\n\r\n{"payl`);
  await leader.get("/healthz"); // the head and the first piece have arrived
  leader.child.kill("SIGTERM");
  await until(() => leader.stderr.includes("lead handed over"), { what: "the lead is handed over" });
  await slow.send('oad":1}');
  assert.match(await slow.readToEnd(), /^HTTP\/1\.1 503 .*The gateway is not ready/s);
  assert.deepEqual(await leader.ended(), { code: 0, signal: null }, leader.stderr);
  await other.stop();
});

test("a gateway that is alone on its database hands over to no other, and answers a body that arrives while it drains", { timeout: 240_000 }, async (t) => {
  const postgres = await startPostgres({ t }), gateway = await startGateway({ t, ...onDatabase(postgres, "only") });
  const slow = await gateway.connect();
  await slow.send(`POST /api/v1/tasks/late/trigger HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${keys.prod}\r\ncontent-type: application/json\r\ncontent-length: 13\r\n\r\n{"payl`);
  await gateway.get("/healthz"); // the head and the first piece have arrived
  gateway.child.kill("SIGTERM");
  await until(() => gateway.stderr.includes("draining"), { what: "it drains" });
  await slow.send('oad":1}');
  assert.match(await slow.readToEnd(), /^HTTP\/1\.1 200 /);
  assert.deepEqual(await gateway.ended(), { code: 0, signal: null }, gateway.stderr);
  assert.ok(!gateway.stderr.includes("lead handed over"));
});

test("a gateway that joined after the leader's last heartbeat gets the lead when the leader receives SIGTERM", { timeout: 180_000 }, async (t) => {
  const { leader, other } = await startTwoGateways(t, { options: ["--beat", "60s", "--dead-after", "5m"] });
  leader.child.kill("SIGTERM");
  await until(() => leader.stderr.includes("lead handed over"), { what: "the lead is handed over" });
  await until(() => other.isReady(), { what: "the other one leads without waiting for its next beat" });
  assert.equal((await trigger(other)).status, 200);
  assert.deepEqual(await leader.ended(), { code: 0, signal: null });
  await other.stop();
});

/** Starts a run with a stream, and returns its id. */
async function runWithStream(gateway) {
  const { json: { id } } = await trigger(gateway);
  assert.equal((await gateway.put(`/realtime/v1/streams/${id}/self/words`, undefined, { key: keys.prod })).status, 202);
  return id;
}

test("a standby holds new clients of every transport, and refuses them if it does not lead soon", { timeout: 180_000 }, async (t) => {
  const { leader, other } = await startTwoGateways(t);
  for (const { name, status, text } of await Promise.all(newClients(other, await runWithStream(leader), t))) assert.equal(status, 503, `${name}: ${text}`);
  await leader.stop();
  await other.stop();
});

test("a gateway that loads runs holds new clients of every transport, and answers them when it has loaded all", { timeout: 180_000 }, async (t) => {
  const { leader, other } = await startTwoGateways(t), id = await runWithStream(leader);
  const loading = other.relay.order("stall", { from: "server", of: "FROM run r" });
  leader.child.kill("SIGTERM");
  await loading.struck;
  assert.match((await other.http.request("GET", "/readyz")).text, /starting/);
  const refused = await Promise.all(newClients(other, id, t)); // after 8 s
  for (const { name, status, text } of refused) assert.equal(status, 503, `${name}: ${text}`);
  const answers = Promise.all(newClients(other, id, t)), opening = RunsSocket.open({ port: other.port, token: keys.prod, hello: {} });
  await until(async () => await other.metric('runcast_connections{kind="http"}') > refused.length, { what: "they are connected" });
  assert.match((await other.http.request("GET", "/readyz")).text, /starting/);
  other.relay.pass();
  for (const { name, status, text } of await answers) assert.ok(status < 300, `${name}: ${status} ${text}`);
  const socket = await opening;
  t.after(() => socket.cut());
  socket.send({ op: "sub", id: 1, all: true });
  for (let ids = []; !ids.includes(id);) {
    const { rows, more } = await socket.next("rows");
    ids = ids.concat(rows.map(([run]) => run));
    assert.ok(more || ids.includes(id), "it is in sync once it has the run");
  }
  await leader.ended();
  await other.stop();
});

test("a socket that is opened at a standby waits until that gateway leads", { timeout: 180_000 }, async (t) => {
  const { leader, other } = await startTwoGateways(t);
  leader.child.kill("SIGTERM");
  const ws = await WebSocket.open({ port: other.port, target: "/realtime/v1/ws", headers: { authorization: `Bearer ${keys.prod}` } });
  assert.equal((await other.http.request("GET", "/readyz")).status, 200);
  ws.cut();
  await leader.ended();
  await other.stop();
});
