// Limits of one project, however many preview branches it has: these share a half. Another project has its own.
import assert from "node:assert/strict";
import { test } from "node:test";

import { keys, startGateway } from "../support/js/gateway.mjs";
import { RawConnection } from "../support/js/http.mjs";
import { RunsSocket } from "../support/js/runs.mjs";
import { addSecondProject, otherKeys } from "../support/js/second_project.mjs";

const branch = (name) => ({ key: keys.preview, headers: { "x-trigger-branch": name } });
const other = { key: otherKeys.dev };

/** A gateway with two projects, and with branches a, b and c in the first. */
async function start(t, options) {
  const gateway = await startGateway({ t, options });
  await gateway.stop();
  addSecondProject(gateway.data);
  await gateway.restart();
  for (const name of ["a", "b", "c"])
    assert.equal((await gateway.post(`/api/v1/projects/${keys.ref}/branches`, { env: "preview", branch: name }, { key: keys.pat })).status, 200);
  return gateway;
}

test("long-lived connections: an environment's limit, twice that for all of a project's, and half of this for its branches", async (t) => {
  const gateway = await start(t, ["--realtime-connections", "2"]);
  const sockets = [];
  const open = async ({ key, headers }) => {
    const socket = await RunsSocket.open({ port: gateway.port, token: key, headers });
    t.after(() => socket.cut());
    sockets.push(socket);
  };
  for (const name of ["a", "b"]) await open(branch(name));
  for (const name of ["a", "b", "c"]) await assert.rejects(open(branch(name)), { status: 429 });
  await open({ key: keys.prod });
  await open({ key: keys.staging });
  for (const full of [{ key: keys.prod }, { key: keys.dev }]) await assert.rejects(open(full), { status: 429 });
  await open(other);
  await gateway.stop();
});

test("long-lived connections: without a setting one environment can have most of them, and a project leaves some for others", async (t) => {
  const gateway = await start(t, ["--connections", "40"]);
  const open = async ({ key, headers }) => {
    const socket = await RunsSocket.open({ port: gateway.port, token: key, headers });
    t.after(() => socket.cut());
  };
  assert.match(gateway.stderr, /"connections":"40","environment":"30","project":"35"/);
  for (let i = 0; i < 30; i++) await open({ key: keys.dev });
  await assert.rejects(open({ key: keys.dev }), { status: 429 });
  for (let i = 0; i < 5; i++) await open({ key: keys.prod });
  await assert.rejects(open({ key: keys.prod }), { status: 429 });
  await open(other);
  assert.equal((await gateway.post("/api/v1/tasks/hello/trigger", { payload: 1 })).status, 200);
  await gateway.stop();
});

test("incomplete batches: branches share half of the memory of their project, and prod keeps the rest", async (t) => {
  const gateway = await start(t, ["--batch-memory", "1m"]);
  const ndjson = (text) => ({ headers: { "content-type": "application/x-ndjson", ...text } });
  const stream = async (who, length = 50_000) => {
    const { json } = await gateway.post("/api/v3/batches", { runCount: 2 }, who);
    const line = `${JSON.stringify({ index: 0, task: "t", payload: "x".repeat(length) })}\n`;
    return gateway.post(`/api/v3/batches/${json.id}/items`, line, { ...who, ...ndjson(who.headers) });
  };
  for (let i = 0; i < 22; i++) assert.equal((await stream(branch("a"))).status, 200); // its oldest batches are discarded
  const refused = await stream(branch("b"), 200_000);
  assert.deepEqual([refused.status, refused.headers["x-should-retry"]], [503, "true"]);
  for (let i = 0; i < 22; i++) assert.equal((await stream({ key: keys.prod })).status, 200);
  assert.equal((await stream({ key: keys.staging }, 300_000)).status, 503, "the project is full");
  assert.equal((await stream(other)).status, 200);
  await gateway.stop();
});

test("streams: a project has twice the limit of an environment, and its largest stream makes room", async (t) => {
  const gateway = await start(t, ["--stream-memory", "1m"]);
  const fill = async (who) => {
    const { id } = (await gateway.post("/api/v1/tasks/t/trigger", { payload: "1" }, who)).json;
    for (let i = 0; i < 22; i++)
      assert.equal((await gateway.post(`/realtime/v1/streams/${id}/self/k/append`, "x".repeat(50_000), who)).status, 200);
  };
  await fill(other);
  for (const name of ["a", "b", "c"]) await fill(branch(name));
  const bytes = await gateway.metric("runcast_stream_bytes");
  assert.ok(bytes > 2 << 20 && bytes <= 3 << 20, `${bytes}`);
  await gateway.stop();
});

test("requests per minute: branches of one key share one limit", async (t) => {
  const gateway = await start(t, ["--rate-limit", "20"]);
  const list = (who) => gateway.get("/api/v1/runs", who);
  let last;
  for (let i = 0; i < 20; i++) last = await list(branch("a"));
  assert.equal(last.status, 429);
  assert.equal((await list(branch("b"))).status, 429);
  assert.equal((await list({ key: keys.prod })).status, 200);
  await gateway.stop();
});

/** Sends the head and all but the last byte of a completion of 15 MiB, and so holds quota for it. */
async function holdBody(t, gateway, { key, headers }) {
  const length = 15 << 20, body = Buffer.alloc(length - 1, "x");
  body.write('{"completion":{"id":"run_x","ok":true,"output":"'); // an output: other members may have at most 1 MiB
  const { json: { id } } = await gateway.post("/api/v1/tasks/t/trigger", { payload: 1 }, { key, headers });
  const connection = await RawConnection.open(gateway.port);
  t.after(() => connection.destroy());
  const lines = Object.entries({ host: "x", authorization: `Bearer ${key}`, ...headers, "content-type": "application/json", "content-length": length });
  await connection.send(`POST /engine/v1/dev/runs/${id}/snapshots/snapshot_${id}-1/attempts/complete HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}`).join("\r\n")}\r\n\r\n`);
  await connection.send(body);
  return connection;
}

/** The first response that any of these connections gets. */
const firstAnswer = (held) => Promise.race(held.map((connection) => connection.read((text) => text.includes("\r\n\r\n"), { timeoutMs: 30_000 })));

test("unfinished bodies: branches share half of the project's quota, as much as one environment may take", async (t) => {
  const gateway = await start(t, []);
  const held = [];
  for (const name of ["a", "b", "c", "a", "b"]) held.push(await holdBody(t, gateway, branch(name)));
  assert.match(await firstAnswer(held), /^HTTP\/1.1 503/);
  assert.equal((await gateway.post("/api/v1/tasks/t/trigger", { payload: "x".repeat(1 << 20) }, { key: keys.prod })).status, 200);
  for (const connection of held) connection.destroy();
  await gateway.stop();
});

test("unfinished bodies: all environments of a project share one quota", async (t) => {
  const gateway = await start(t, []);
  const held = []; // 48 of the 64 MiB that each environment may take, and together more than the project's 128
  for (const who of [branch("a"), branch("b"), branch("c"), ...Array(3).fill({ key: keys.dev }), ...Array(3).fill({ key: keys.prod })]) held.push(await holdBody(t, gateway, who));
  assert.match(await firstAnswer(held), /^HTTP\/1.1 503/);
  assert.equal((await gateway.post("/api/v1/tasks/t/trigger", { payload: "x".repeat(1 << 20) }, other)).status, 200);
  for (const connection of held) connection.destroy();
  await gateway.stop();
});
