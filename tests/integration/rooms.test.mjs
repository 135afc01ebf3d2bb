// Memory that clients can make the gateway hold: quotas for unfinished bodies and unread responses, and which
// clients share them.
import assert from "node:assert/strict";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { test } from "node:test";

import { freePort, keys, sleep, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";
import { publicToken } from "../support/js/tokens.mjs";
import { frame, upgradeRequest } from "../support/js/websocket.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

const MIB = 1 << 20;

/** A request whose body has arrived except for its end: `begins`, then filled up with ones; returns the connection. */
async function begin(gateway, t, { method = "POST", target, key, length, sent = length - 100, type = "application/json", begins = "" }) {
  const connection = await gateway.connect();
  t.after(() => connection.destroy());
  const credential = key ? `authorization: Bearer ${key}\r\n` : "";
  connection.send(`${method} ${target} HTTP/1.1\r\nhost: x\r\n${credential}content-type: ${type}\r\ncontent-length: ${length}\r\n\r\n`);
  if (sent) connection.send(begins + "1".repeat(sent - begins.length));
  return connection;
}
/** A WebSocket that has sent the first half of a message of that many bytes, with or without a key. */
async function beginMessage(gateway, t, { length, key, sent = length - 1 }) {
  const connection = await gateway.connect();
  t.after(() => connection.destroy());
  const credential = key ? `authorization: Bearer ${key}\r\n` : "";
  connection.send(`GET /realtime/v1/ws HTTP/1.1\r\nhost: x\r\n${credential}connection: upgrade\r\nupgrade: websocket\r\n`
    + "sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
  await connection.read((text) => text.includes("\r\n\r\n"), { what: "the handshake" });
  connection.take();
  connection.send(Buffer.concat([Buffer.from([0x81, 0xfe, length >> 8, length & 255, 0, 0, 0, 0]), Buffer.alloc(sent, " ")]));
  return connection;
}
const closeCode = ({ received }) => received[0] === 0x88 ? received.readUInt16BE(2) : 0;
const statusOf = (connection) => Number(/^HTTP\/1\.1 (\d+)/.exec(connection.received.toString("latin1"))?.[1] ?? 0);

/** Stores a packet of that many bytes; returns the target that reads it. */
async function store(gateway, name, length) {
  const target = ({ json: { presignedUrl } }) => presignedUrl.slice(new URL(presignedUrl).origin.length);
  const upload = target(await gateway.put(`/api/v2/packets/${name}`));
  assert.equal((await gateway.put(upload, "x".repeat(length), { key: null })).status, 200);
  return target(await gateway.get(`/api/v1/packets/${name}`));
}

test("a URL with a false signature is refused before its body comes", async (t) => {
  const gateway = await startGateway({ t });
  const { json } = await gateway.post("/api/v1/waitpoints/tokens", {});
  const right = new URL(json.url).pathname, wrong = `${right.slice(0, -1)}${right.endsWith("A") ? "B" : "A"}`;
  const targets = [[wrong, MIB], ["/otel/env_x/sig/v1/traces", 200_000]];
  for (const [target, length] of targets)
    for (let i = 0; i < 20; i++) {
      const connection = await begin(gateway, t, { target, length, sent: length / 2 });
      await connection.read(() => statusOf(connection), { what: target });
      assert.equal(statusOf(connection), 403, target);
    }
  const upload = await begin(gateway, t, { method: "PUT", target: "/packets/v1/env_x/a?expires=9999999999&signature=x", length: MIB, sent: 1000 });
  await upload.read(() => statusOf(upload), { what: "the upload" });
  assert.equal(statusOf(upload), 403);

  // A body with the right signature is read to the end.
  assert.equal((await gateway.post(right, { done: true }, { key: null })).status, 200);
  await gateway.stop();
});

test("unfinished bodies of workers share a quota, and return it", async (t) => {
  const gateway = await startGateway({ t, release: true });
  const { stdout } = await runProgram(["worker-token", "create", "--name", "rack", "--data", gateway.data]);
  const { id } = (await gateway.post("/api/v1/tasks/a/trigger", {}, { key: keys.prod })).json;
  const target = `/engine/v1/worker-actions/runs/${id}/snapshots/snapshot_${id}-1/attempts/complete`; // the run's first attempt
  const bodies = [];
  for (let i = 0; i < 10; i++) bodies.push(await begin(gateway, t, { target, key: stdout.trim(), length: 15 * MIB, begins: '{"completion":{"ok":true,"output":"' }));
  await until(() => bodies.some(statusOf), { what: "a refusal" });
  assert.ok(bodies.filter(statusOf).every((one) => statusOf(one) === 503), "refused for want of room");
  assert.match(bodies.find(statusOf).received.toString(), /use all memory of/);

  // A secret key has its own quota.
  assert.equal((await gateway.post("/api/v1/tasks/a/trigger", { payload: "x".repeat(100_000) })).status, 200);
  for (const body of bodies) body.destroy();
  await until(async () => (await gateway.http.request("POST", target, { key: stdout.trim(), body: {} })).status !== 503, { what: "room" });
  assert.equal((await gateway.get("/api/v1/runs", { key: keys.dev })).status, 200);
  await gateway.stop();
});

test("unfinished bodies of one environment leave half of the quota to others of its project", async (t) => {
  const gateway = await startGateway({ t, release: true });
  const { id } = (await gateway.post("/api/v1/tasks/a/trigger", {})).json;
  const target = `/engine/v1/dev/runs/${id}/snapshots/snapshot_${id}-1/attempts/complete`, bodies = [];
  for (let i = 0; i < 10; i++) bodies.push(await begin(gateway, t, { target, key: keys.dev, length: 16 * MIB, begins: '{"completion":{"ok":true,"output":"' }));
  await until(() => bodies.some(statusOf), { what: "a refusal" });
  assert.ok(bodies.filter(statusOf).every((one) => statusOf(one) === 503), "refused for want of room");
  for (let i = 0; i < 20; i++) assert.equal((await gateway.post("/api/v1/tasks/a/trigger", { payload: "x".repeat(200_000) }, { key: keys.prod })).status, 200);
  await gateway.stop();
});

test("a completion that no attempt waits for takes no quota for bodies", async (t) => {
  const gateway = await startGateway({ t, release: true });
  const target = "/engine/v1/dev/runs/run_x/snapshots/snapshot_x/attempts/complete", bodies = [];
  for (let i = 0; i < 10; i++) bodies.push(await begin(gateway, t, { target, key: keys.dev, length: 16 * MIB, begins: '{"completion":{"ok":true,"output":"' }));
  for (let i = 0; i < 20; i++) assert.equal((await gateway.post("/api/v1/tasks/a/trigger", { payload: "x".repeat(200_000) })).status, 200);
  for (const body of bodies) body.send(`${"1".repeat(97)}"}}`);
  await until(() => bodies.every((body) => statusOf(body) === 404), { what: "the answer that the run is not found" });
  await gateway.stop();
});

test("unfinished lines of pipes share the quota for bodies, and return it", async (t) => {
  const gateway = await startGateway({ t, release: true });
  const { id } = (await gateway.post("/api/v1/tasks/a/trigger", { payload: "1" })).json;
  const target = `/realtime/v1/streams/${id}/self/tokens`, pipes = [];
  for (let i = 0; i < 80; i++) pipes.push(await begin(gateway, t, { target, key: keys.dev, length: 900 * MIB, sent: MIB - 100 }));
  await until(() => pipes.some(statusOf), { what: "a refusal" });
  const refused = pipes.filter(statusOf);
  assert.ok(refused.length < 30 && refused.every((one) => statusOf(one) === 503), `${refused.length} are refused`);
  assert.match(refused[0].received.toString(), /use all memory of/);
  for (const pipe of pipes.slice(1)) pipe.destroy();

  // A long line returns its quota when it has ended, although its pipe continues.
  if (!refused.includes(pipes[0])) pipes[0].send("\n2");
  const again = [];
  for (let i = 0; i < 50; i++) again.push(await begin(gateway, t, { target, key: keys.dev, length: 900 * MIB, sent: MIB - 100 }));
  assert.equal((await gateway.post(target, "3\n")).status, 200);
  assert.deepEqual(again.filter(statusOf), []);
  for (const pipe of again) pipe.destroy();
  await gateway.stop();
});

test("pipes count against --realtime-connections while they are open", async (t) => {
  const gateway = await startGateway({ t, options: ["--realtime-connections", "2"] });
  const { id } = (await gateway.post("/api/v1/tasks/a/trigger", { payload: "1" })).json;
  const target = `/realtime/v1/streams/${id}/self/tokens`, pipes = [];
  for (let i = 0; i < 2; i++) pipes.push(await begin(gateway, t, { target, key: keys.dev, length: 1000, sent: 10 }));
  await until(async () => await gateway.metric('runcast_stream_connections{kind="writer"}') === 2, { what: "two writers" });
  assert.equal((await gateway.post(target, "3\n")).status, 429);
  pipes[0].destroy();
  await until(async () => (await gateway.post(target, "3\n")).status === 200, { what: "a seat" });
  await gateway.stop();
});

test("unauthenticated clients with unfinished messages push out each other, and no other client", async (t) => {
  const gateway = await startGateway({ t, release: true });
  const known = await beginMessage(gateway, t, { length: 60_000, key: keys.dev });
  const strangers = [];
  for (let i = 0; i < 450; i++) strangers.push(await beginMessage(gateway, t, { length: 20_000 }));
  await until(() => closeCode(strangers[0]), { what: "the close of the first" });
  assert.equal(closeCode(strangers[0]), 4103);
  const closed = strangers.filter(closeCode).length;
  assert.ok(closed > 0 && closed < 100, `${closed} are closed`);
  assert.ok(strangers.slice(closed).every((one) => !closeCode(one)), "the oldest ones");

  await known.send(" "); // the message is complete now: spaces, which are not JSON
  await known.read((text) => text.includes("bad_message"), { what: "an answer" });
  const late = await beginMessage(gateway, t, { length: 21_000, sent: 0 });
  await late.read(() => closeCode(late), { what: "the close" });
  assert.equal(closeCode(late), 1009);
  await gateway.stop();
});

test("unread responses take a limited amount of memory", async (t) => {
  const gateway = await startGateway({ t, release: true });
  const url = await store(gateway, "large", 10 * MIB), readers = [];
  const { id } = (await gateway.post("/api/v1/tasks/a/trigger", { payload: "1" })).json;
  const open = async () => {
    const connection = await gateway.connect();
    t.after(() => connection.destroy());
    connection.socket.on("data", () => connection.pause()); // only the head
    connection.send(`GET ${url} HTTP/1.1\r\nhost: x\r\n\r\n`);
    await connection.read(() => statusOf(connection), { what: "a head" });
    readers.push(connection);
  };
  const resident = () => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${gateway.pid}/status`, "utf8"))[1]) / 1024;
  while (readers.length < 40) await open();
  assert.ok(readers.every((one) => statusOf(one) === 200));
  assert.ok(resident() < 120, `${resident()} MiB are resident`); // a piece of each
  while (readers.length < 250 && statusOf(readers.at(-1)) === 200) await open();
  assert.ok(resident() < 300, `${resident()} MiB are resident`);
  assert.equal(statusOf(readers.at(-1)), 503);
  assert.match(readers.at(-1).received.toString(), /retry-after: 1\r\n/i);

  // Lists are refused too, since they may be long; writes to runs continue.
  assert.equal((await gateway.get(`/api/v3/runs/${id}`)).status, 503);
  assert.equal((await gateway.post("/api/v1/tasks/a/trigger", { payload: "1" })).status, 200);
  for (const reader of readers) reader.destroy();
  await until(async () => (await gateway.get(`/api/v3/runs/${id}`)).status === 200, { what: "room" });
  assert.equal((await gateway.http.request("GET", url, { key: null })).text.length, 10 * MIB);
  await gateway.stop();
});

/** A gateway that has these finished runs only in its store, and a token that can read only the first. */
async function withEvictedRuns(t, { length, count = 1 }) {
  const gateway = await startGateway({ t, release: true, options: ["--memory", "32m"] });
  const worker = await Worker.register(gateway), ids = [];
  for (let i = 0; i < count + Math.ceil(36 * MIB / length); i++) {
    const attempt = await worker.take(ids[ids.push(await worker.trigger("hello")) - 1]);
    await attempt.succeed("x".repeat(length));
  }
  await until(async () => await gateway.metric("runcast_evicted_runs_total") >= count, { what: "they have left memory" });
  const memory = () => [...fs.readFileSync(`/proc/${gateway.pid}/smaps_rollup`, "utf8").matchAll(/Private_Dirty:\s+(\d+)/g)]
    .reduce((sum, [, kib]) => sum + kib / 1024, 0);
  return { gateway, ids: ids.slice(0, count), id: ids[0], token: await publicToken(gateway, { scopes: [`read:runs:${ids[0]}`] }), memory };
}

/** Connections that have sent a request at the same time and read only the first bytes of the responses. */
async function ask(gateway, t, count, text) {
  const all = await Promise.all(Array.from({ length: count }, () => gateway.connect()));
  for (const connection of all) {
    t.after(() => connection.destroy());
    connection.came = 0;
    connection.socket.removeAllListeners("data").on("data", (bytes) => {
      connection.first ??= bytes.toString("latin1");
      connection.came += bytes.length;
      if (!connection.reads) connection.pause();
    });
  }
  all.forEach((connection, i) => connection.send(text(i)));
  return all;
}
const readRun = (id, key, more = "") => `GET /api/v3/runs/${id} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\n${more}\r\n`;

test("unread responses of preview branches take half of what their project may have, however many branches there are", async (t) => {
  const gateway = await startGateway({ t, release: true }), names = Array.from({ length: 20 }, (_, i) => `branch-${i}`);
  const on = (name) => ({ key: keys.preview, headers: { "x-trigger-branch": name } });
  for (const branch of names) assert.equal((await gateway.post(`/api/v1/projects/${keys.ref}/branches`, { env: "preview", branch }, { key: keys.pat })).status, 200);
  const payload = "x".repeat(2 * MIB), ids = [];
  const branchOf = (i) => names[i % names.length];
  while (ids.length < 50) ids.push((await gateway.post("/api/v1/tasks/a/trigger", { payload }, on(branchOf(ids.length)))).json.id);
  const readers = [];
  const open = async (i) => {
    const [connection] = await ask(gateway, t, 1, () => readRun(ids[i], keys.preview, `x-trigger-branch: ${branchOf(i)}\r\n`));
    await until(() => connection.first, { what: "a response" });
    readers.push(connection);
    return connection.first.startsWith("HTTP/1.1 200");
  };
  while (await open(readers.length)) assert.ok(readers.length < ids.length, "responses are refused");
  assert.match(readers.at(-1).first, /^HTTP\/1\.1 503[^]*Too many of your responses are still unread/);
  for (const i of [0, 7, 19]) assert.equal((await gateway.get("/api/v1/runs", on(names[i]))).status, 503, names[i]);
  for (const key of [keys.dev, keys.prod]) assert.equal((await gateway.get("/api/v1/runs", { key })).status, 200, "the rest is for other environments");
  for (const reader of readers) reader.destroy();
  await until(async () => (await gateway.get("/api/v1/runs", on(names[0]))).status === 200, { what: "room" });
  await gateway.stop();
});

test("many simultaneous requests for a run that only the store has share one read of it", async (t) => {
  const { gateway, id, memory } = await withEvictedRuns(t, { length: 3 * MIB });
  const before = memory(), reads = await gateway.metric("runcast_store_reads_total");
  const readers = await ask(gateway, t, 50, () => readRun(id, keys.dev));
  await until(() => readers.every(({ first }) => first), { what: "answers" });
  assert.deepEqual(readers.filter(({ first }) => !first.startsWith("HTTP/1.1 200")).map(({ first }) => first), []);
  assert.ok(memory() - before < 60, `${memory() - before} MiB are taken`);
  // For each run that was on a worker its children are searched, too.
  assert.ok(await gateway.metric("runcast_store_reads_total") - reads < 75, "runs are read for many");
  for (const reader of readers) { reader.reads = true; reader.resume(); }
  await until(() => readers.every(({ came }) => came > 3 * MIB), { what: "all of the answers" });
  await gateway.stop();
});

test("runs that are read from the store for many clients at once stay within the quota for responses", async (t) => {
  const { gateway, ids, id, token, memory } = await withEvictedRuns(t, { length: 9 * MIB, count: 24 }), before = memory();
  const readers = await ask(gateway, t, ids.length, (i) => readRun(ids[i], keys.dev));
  await until(() => readers.every(({ first }) => first), { what: "answers" });
  assert.ok(memory() - before < 200, `${memory() - before} MiB are taken`);
  const shown = readers.filter(({ first }) => first.startsWith("HTTP/1.1 200")), refused = readers.filter((one) => !shown.includes(one));
  assert.ok(shown.length > 8, `${shown.length} are shown`);
  assert.ok(refused.length && refused.every(({ first }) => /^HTTP\/1.1 503[^]*retry-after: 1\r\n/i.test(first)));

  // Once they have been read, the quota is free again.
  for (const reader of readers) { reader.reads = true; reader.resume(); }
  await until(() => shown.every(({ came }) => came > 9 * MIB), { what: "all of the answers" });
  assert.equal((await gateway.get(`/api/v3/runs/${id}`, { key: token })).json.output.length, 9 * MIB);
  await gateway.stop();
});

test("sockets that read nothing hold rows within the quota for responses, and get them when they read", async (t) => {
  const { gateway, id, token, memory } = await withEvictedRuns(t, { length: 9 * MIB }), before = memory();
  const sockets = await ask(gateway, t, 40, () => Buffer.concat([Buffer.from(upgradeRequest("/realtime/v1/ws", { authorization: `Bearer ${token}` })),
    frame(1, '{"op":"hello"}'), frame(1, JSON.stringify({ op: "sub", id: 1, run: id }))]));
  await until(async () => await gateway.metric("runcast_connections_behind") === 40, { what: "all are behind" });
  let last = 0, same = 0;
  await until(() => { same = Math.abs(memory() - last) < 1 ? same + 1 : 0; last = memory(); return same === 10; }, { everyMs: 50, what: "no more is taken" });
  assert.ok(last - before < 200, `${last - before} MiB are taken`);
  for (const socket of sockets) { socket.reads = true; socket.resume(); }
  await until(() => sockets.every(({ came }) => came > 9 * MIB), { timeoutMs: 180_000, what: "the row of each" });
  await gateway.stop();
});

test("a client that reads 2 KiB a second gets a whole response", async (t) => {
  const clock = path.join(temporaryFolder(), "ahead");
  const gateway = await startGateway({ t, preload: "shim_clock", env: { SHIM_MONOTONIC: clock } });
  const url = await store(gateway, "slow", 10 * MIB);
  const reader = await gateway.connect();
  t.after(() => reader.destroy());
  let ahead = 0, came = 0;
  reader.socket.removeAllListeners("data").on("data", (bytes) => {
    reader.pause();
    came += bytes.length;
  });
  reader.send(`GET ${url} HTTP/1.1\r\nhost: x\r\n\r\n`);
  await until(() => came, { what: "the head" });
  for (let seen = 0; came < 10 * MIB;) {
    for (let left = (came - seen) / 2.048; left > 0; left -= 5000) {
      fs.writeFileSync(`${clock}.new`, String(ahead += Math.ceil(Math.min(left, 5000))));
      fs.renameSync(`${clock}.new`, clock);
      await gateway.get("/healthz", { key: null }); // the gateway notices the time
    }
    seen = came;
    reader.resume();
    await until(() => came > seen || reader.socket.destroyed, { what: "the next bytes" });
    assert.ok(came > seen, `cut after ${came} bytes`);
  }
  await gateway.stop();
});

test("unauthenticated connections hold little memory, whatever they leave unread and send in addition", async (t) => {
  const folder = temporaryFolder(), socket = path.join(folder, "s"), count = 400, port = await freePort();
  const gateway = await startGateway({ t, port, release: true, options: ["--listen", `127.0.0.1:${port} unix:${socket}`] });
  const resident = () => 1024 * Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${gateway.pid}/status`, "utf8"))[1]);
  const size = (await gateway.get("/openapi.json", { key: null })).text.length, request = "GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n";
  const before = resident(), accepted = await gateway.metric('runcast_connections{kind="http"}'), sent = [];
  for (let i = 0; i < count; i++) {
    const connection = net.connect(socket);
    t.after(() => connection.destroy());
    connection.on("error", () => {});
    connection.pause();
    sent.push(new Promise((resolve) => connection.once("connect", () => { connection.write(request.repeat(Math.ceil(4 * MIB / size) + 64 * 1024 / request.length)); resolve(); })));
  }
  await Promise.all(sent);
  await until(async () => await gateway.metric('runcast_connections{kind="http"}') >= accepted + count, { what: "all are there" });
  await until(async () => await gateway.metric("runcast_http_requests_total") >= count, { what: "all were answered" });
  let last = 0;
  await until(async () => { const now = await gateway.metric("runcast_http_requests_total"); return now - last < 10 || !(last = now); }, { everyMs: 100, what: "no client gets a response any more" });
  const each = (resident() - before) / count;
  assert.ok(each < 20_000, `${Math.round(each)} bytes for each`);
  assert.equal((await gateway.get("/api/v1/runs")).status, 200);
  await gateway.kill();
});
