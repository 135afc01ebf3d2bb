// Strangers at the address for peers: whatever they send, they learn and change nothing, and no follower is disturbed.
import assert from "node:assert/strict";
import net from "node:net";
import { test } from "node:test";

import { freePort, keys, startGateway, until } from "../support/js/gateway.mjs";
import { HttpClient } from "../support/js/http.mjs";
import { ask, frame, hello, kinds, Peer, PROTOCOL, TARGET } from "../support/js/peer.mjs";
import { onDatabase, startPostgres } from "../support/js/postgres.mjs";
import { standsBy } from "../support/js/two_gateways.mjs";
import { opcodes, UpgradeRefused, WebSocket } from "../support/js/websocket.mjs";

const STRANGERS_MAX = 64;
const [NEEDS_NOTHING, NEEDS_KIND] = [0, 1]; // of a reader that does not know the kind of the frame

/** A leading gateway with an address for peers. */
async function start(t, postgres, name = "a", { ready = true } = {}) {
  const peerPort = await freePort();
  const gateway = await startGateway({ t, ready, ...onDatabase(postgres, name, { options: ["--peer-listen", `127.0.0.1:${peerPort}`] }) });
  return Object.assign(gateway, { peerPort, name });
}

const open = (gateway, more) => Peer.open({ port: gateway.peerPort, ...more });
const refused = (promise, status) => assert.rejects(promise, (error) => error instanceof UpgradeRefused && error.status === status);
const endsWith = async (peer, reason) => { const { code, reason: got } = await peer.closed; assert.deepEqual([code, got.includes(reason)], [1008, true], `${code} ${got}`); };

/** A peer that follows: it gets a beat for each ask. */
async function follow(gateway, id) {
  const peer = await open(gateway, { id });
  await peer.prove();
  peer.send(hello(id));
  const [, , leader] = await peer.frame(kinds.hello);
  assert.equal(BigInt(leader), peer.leader);
  let asked = 0;
  peer.beat = async () => {
    peer.send(ask(++asked));
    for (;;) { const beat = await peer.frame(kinds.beat); if (beat.includes(asked)) return beat; }
  };
  await peer.beat();
  return peer;
}

test("strangers at peer-listen", { timeout: 300_000 }, async (t) => {
  const postgres = await startPostgres({ t }), gateway = await start(t, postgres);
  const follower = await follow(gateway, 101);
  t.after(() => follower.ws.cut());
  const stranger = new HttpClient(`http://127.0.0.1:${gateway.peerPort}`, keys.dev);

  await t.test("no call of the API is there, and no peer at the API", async () => {
    for (const [method, target] of [["GET", "/"], ["GET", "/readyz"], ["GET", "/metrics"], ["GET", "/api/v1/runs"], ["POST", "/api/v1/tasks/task/trigger"], ["GET", TARGET]])
      assert.equal((await stranger.request(method, target, method === "POST" ? { body: {} } : {})).status, 404, target);
    const longer = { "sec-websocket-protocol": PROTOCOL, "content-length": "5" };
    await refused(WebSocket.open({ port: gateway.peerPort, target: TARGET, headers: longer }), 413);
    await refused(WebSocket.open({ port: gateway.peerPort, target: "/realtime/v1/runs", headers: { "sec-websocket-protocol": PROTOCOL } }), 404);
    await refused(WebSocket.open({ port: gateway.peerPort, target: TARGET }), 404);
    await refused(WebSocket.open({ port: gateway.port, target: TARGET, headers: { "sec-websocket-protocol": PROTOCOL } }), 404);
  });

  await t.test("bytes that are not HTTP get no more than an error", async () => {
    for (const bytes of ["\0\0\0", "x".repeat(100_000), "GET / HTTP/1.1\r\n", `GET ${TARGET} HTTP/1.1\r\nupgrade: websocket\r\n\r\n`]) {
      const socket = net.connect(gateway.peerPort, "127.0.0.1"), got = [];
      socket.on("data", (more) => got.push(more)).on("error", () => {});
      socket.write(bytes);
      await new Promise((resolve) => socket.on("close", resolve).on("end", () => socket.end()));
      assert.match(Buffer.concat(got).toString("latin1"), /^(HTTP\/1\.1 4|$)/);
    }
  });

  await t.test("a peer with another key, or a proof of another role, is refused, and gets no proof", async () => {
    for (const proofs of [(peer) => [peer.proof("leader")], (peer) => [peer.proof("session")], () => [Buffer.alloc(32)], () => [], (peer) => [peer.proof().subarray(1)],
      (peer) => [peer.proof(), peer.proof(), peer.proof()]]) {
      const peer = await open(gateway);
      assert.equal((await peer.opening()).length, 40);
      peer.sendText(peer.answer(...proofs(peer)));
      await endsWith(peer, "encryption key");
      assert.equal(peer.got.length, 0);
    }
    const other = await open(gateway, { key: "a1".repeat(32) });
    await assert.rejects(other.prove(), /encryption key/);
  });

  await t.test("an answer of another connection, and the leader's own words, are refused", async () => {
    const first = await open(gateway);
    await first.opening();
    const answer = first.answer(first.proof());
    const second = await open(gateway);
    await second.opening();
    second.sendText(answer);
    await endsWith(second, "encryption key");
    const third = await open(gateway);
    third.sendText(Buffer.concat([await third.opening(), first.proof()]));
    await endsWith(third, "encryption key");
    first.ws.cut();
  });

  await t.test("what is not an answer ends the connection", async () => {
    for (const text of ["", "hello", "A".repeat(10), "A".repeat(511), "{}"]) {
      const peer = await open(gateway);
      await peer.opening();
      peer.ws.send(opcodes.text, text);
      assert.equal((await peer.closed).code, 1008);
    }
    for (const [opcode, text, code] of [[opcodes.binary, "hello", 1003], [opcodes.text, "A".repeat(513), 1009]]) {
      const peer = await open(gateway);
      await peer.opening();
      peer.ws.send(opcode, text);
      assert.equal((await peer.closed).code, code);
    }
  });

  await t.test("after the proofs, a message that is changed, repeated, or sent back ends the connection", async () => {
    for (const send of [
      (peer) => { const sealed = peer.sealed(ask(1)); sealed[17] ^= 1; peer.sendText(sealed); },
      (peer) => peer.sendText(ask(1)),
      (peer) => { const sealed = peer.sealed(hello(peer.id)); peer.sendText(sealed); peer.sendText(sealed); },
      (peer) => { peer.sealed(ask(1)); peer.send(ask(2)); }, // the first one is left out
    ]) {
      const peer = await open(gateway);
      await peer.prove();
      send(peer);
      await endsWith(peer, "changed on the way");
    }
    const peer = await open(gateway);
    await peer.prove();
    peer.send(hello(peer.id));
    peer.sendText(await peer.raw());
    await endsWith(peer, "changed on the way");
  });

  await t.test("a frame that a follower must not send ends the connection", async () => {
    for (const bytes of [Buffer.from("c1", "hex"), Buffer.from([0xdd, 0xff, 0xff, 0xff, 0xff]), ask(1), hello(4712), hello(4711, { least: 99, newest: 99 })]) {
      const peer = await open(gateway);
      await peer.prove();
      peer.send(bytes);
      assert.equal((await peer.closed).code, 1008);
    }
  });

  await t.test("a follower of a later version gets the version of this one, and may say more", async () => {
    const peer = await open(gateway, { id: 103 });
    await peer.prove();
    peer.send(hello(peer.id, { least: 1, newest: 7, more: ["a later value"] }));
    assert.deepEqual((await peer.frame(kinds.hello)).slice(0, 2), [4, 4]);
    peer.send(frame(99, NEEDS_NOTHING, "of a later version"));
    peer.send(ask(1));
    await peer.frame(kinds.beat);
    peer.send(frame(99, NEEDS_KIND, "of a later version"));
    await endsWith(peer, "malformed frame");
  });

  await t.test("a peer that proves nothing for 5 s is closed, and the oldest one above 64: they keep no follower out", async () => {
    const before = await gateway.metric("runcast_peers_refused_total");
    const strangers = await Promise.all(Array.from({ length: STRANGERS_MAX }, () => open(gateway)));
    await Promise.all(strangers.map((peer) => peer.opening()));
    const next = await follow(gateway, 102);
    await follower.beat(); // it is not disturbed
    const ends = (await Promise.all(strangers.map((peer) => peer.closed))).map(({ reason }) => reason);
    assert.equal(ends.filter((reason) => reason.includes("too many have proved nothing")).length, 1);
    assert.equal(ends.filter((reason) => reason.includes("within 5 s")).length, STRANGERS_MAX - 1);
    assert.equal(await gateway.metric("runcast_peers_refused_total"), before + STRANGERS_MAX);
    next.ws.cut();
  });

  await follower.beat();
  assert.equal((await gateway.get("/api/v1/runs")).status, 200);
  assert.doesNotMatch(gateway.stderr, /"level":"error"/);
  follower.ws.cut();
  await until(async () => await gateway.metric("runcast_followers") === 0, { what: "no follower is left" });
  await gateway.stop();
});

test("a port in use is an error that names peer-listen", { timeout: 60_000 }, async (t) => {
  const postgres = await startPostgres({ t }), peerPort = await freePort(), other = net.createServer();
  await new Promise((resolve) => other.listen(peerPort, "127.0.0.1", resolve));
  t.after(() => other.close());
  const gateway = await startGateway({ t, ready: false, ...onDatabase(postgres, "a", { options: ["--peer-listen", `127.0.0.1:${peerPort}`] }) });
  assert.equal((await gateway.ended()).code, 1);
  assert.match(gateway.stderr, new RegExp(`port ${peerPort}: .*--peer-listen 127\\.0\\.0\\.1:${peerPort + 1}, and the same port at all gateways`));
});

test("an address of another machine is an error that names peer-listen", { timeout: 60_000 }, async (t) => {
  const postgres = await startPostgres({ t });
  const gateway = await startGateway({ t, ready: false, ...onDatabase(postgres, "a", { options: ["--peer-listen", `192.0.2.1:${await freePort()}`] }) });
  assert.equal((await gateway.ended()).code, 1);
  assert.match(gateway.stderr, /cannot listen on 192\.0\.2\.1 port \d+: address not available; give peer-listen an address of this machine/);
});

test("a gateway that stands by accepts no peer", { timeout: 120_000 }, async (t) => {
  const postgres = await startPostgres({ t }), leader = await start(t, postgres), other = await start(t, postgres, "b", { ready: false });
  await standsBy(other);
  await until(() => /"event":"stands by","leader":"a"/.test(other.stderr), { what: "the log names the leader" });
  await refused(open(other), 503);
  await other.stop();
  await leader.stop();
});
