// Archived branches: whatever is open on one is closed, its runs are canceled, and it leaves memory.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import fs from "node:fs";
import { test } from "node:test";

import { EventStream } from "../support/js/event_stream.mjs";
import { queryStore, keys, startGateway, until } from "../support/js/gateway.mjs";
import { NoticeSocket } from "../support/js/notices.mjs";
import { RunsSocket } from "../support/js/runs.mjs";

const branches = `/api/v1/projects/${keys.ref}/branches`;
const pat = { key: keys.pat };
const on = (branch, more) => ({ key: keys.preview, ...more, headers: { "x-trigger-branch": branch, ...more?.headers } });
const make = (own, branch) => own.post(branches, { env: "preview", branch }, pat);
const archive = (own, branch) => own.post(`${branches}/archive`, { env: "preview", branch }, pat);
const environments = (own) => own.metric("runcast_environments");
const trigger = async (own, there, options = {}) => {
  const { status, json, text } = await own.post("/api/v1/tasks/hello/trigger", { payload: { n: 1 }, options }, there);
  assert.equal(status, 200, text);
  return json.id;
};

async function register(own, there) {
  const metadata = { packageVersion: "4.8.3", contentHash: randomUUID(), queues: [], tasks: [{ id: "hello", filePath: "a.ts" }, { id: "cron", filePath: "a.ts", triggerSource: "schedule" }] };
  const { status, text } = await own.post(`/api/v1/projects/${keys.ref}/background-workers`, { localOnly: true, engine: "V2", metadata }, there);
  assert.equal(status, 200, text);
}

/** Opens one of each kind that stays open on the branch or keeps something of it in memory. */
async function openAll(own, branch, t) {
  const there = on(branch), name = { "x-trigger-branch": branch };
  const bearer = { authorization: `Bearer ${keys.preview}`, ...name };
  await register(own, there);
  const run = await trigger(own, there, { tags: ["a"] });
  const dequeued = await own.post("/engine/v1/dev/dequeue", {}, there);
  assert.equal(dequeued.json.dequeuedMessages[0].run.friendlyId, run, dequeued.text);
  await trigger(own, there, { delay: "1h" });
  await trigger(own, there, { concurrencyKey: "k", tags: ["a"] });
  const version = { "x-trigger-electric-version": "1.0.0-beta.1" };
  const first = await own.get(`/realtime/v1/runs/${run}?offset=-1`, on(branch, { headers: version }));
  const position = new URLSearchParams({ offset: first.headers["electric-offset"], handle: first.headers["electric-handle"], live: "true" });
  const piece = { headers: { "content-type": "application/x-ndjson" } };
  const batch = (await own.post("/api/v3/batches", { runCount: 2 }, there)).json.id;
  await own.post(`/api/v3/batches/${batch}/items`, JSON.stringify({ index: 0, task: "hello" }), on(branch, piece));
  await own.put(`/realtime/v1/streams/${run}/self/out`, "", there);
  await own.post(`/realtime/v1/streams/${run}/self/out/append`, '"chunk"', there);
  const token = (await own.post("/api/v1/waitpoints/tokens", { timeout: "1h" }, there)).json;
  assert.equal((await own.post("/api/v1/schedules", { task: "cron", cron: "0 0 1 1 *", deduplicationKey: "x" }, there)).status, 200);
  assert.equal((await own.post(`/api/v1/projects/${keys.ref}/envvars/preview`, { name: "SECRET", value: "x" }, on(branch, { key: keys.pat }))).status, 200);
  assert.equal((await own.post("/api/v1/bulk-actions", { action: "replay", filter: { tag: "a" } }, there)).status, 202);
  const streams = [];
  for (const path of ["/realtime/v1/events?all=1", `/realtime/v1/streams/${run}/out`, "/engine/v1/dev/presence"]) {
    const stream = await EventStream.open(own.url + path, { headers: bearer });
    assert.equal(stream.status, 200, stream.text);
    t.after(() => stream.cut());
    streams.push(stream);
  }
  const socket = await RunsSocket.open({ port: own.port, token: keys.preview, headers: name });
  t.after(() => socket.cut());
  socket.send({ op: "sub", id: 1, all: true });
  await socket.next("rows");
  const notices = await NoticeSocket.connect(own, { t, key: keys.preview, headers: name, runs: [run] });
  const held = [own.get(`/realtime/v1/runs/${run}?${position}`, on(branch, { headers: version })), own.post("/engine/v1/dev/dequeue", {}, on(branch, { timeoutMs: 60_000 }))];
  return { run, token, streams, socket, notices, held };
}

async function hasEnded({ streams, socket, notices, held }) {
  assert.equal((await socket.closed).code, 4001);
  await until(() => streams.every((stream) => stream.ended), { what: "the streams end" });
  assert.equal((await notices.ws.closed).code, 4001);
  await Promise.allSettled(held);
}

test("an archived branch leaves memory with everything that was open on it, and its number is not used again", async (t) => {
  const own = await startGateway({ t, options: ["--cancel-timeout", "1s"] });
  const before = await environments(own);
  await make(own, "other");
  const kept = await trigger(own, on("other"));
  for (let round = 0; round < 3; round++) {
    const { id } = (await make(own, "gone")).json;
    const claims = await own.post("/api/v1/auth/jwt", { claims: { scopes: ["read:runs", "trigger:tasks"] } }, on("gone"));
    const open = await openAll(own, "gone", t);
    assert.equal(await environments(own), before + 2);
    assert.equal((await archive(own, "gone")).status, 200);
    await hasEnded(open);
    await until(async () => (await environments(own)) === before + 1, { what: "it leaves memory" });
    assert.equal(await own.metric("runcast_runs"), 1);
    const old = { key: claims.json.token };
    assert.equal((await own.get(`/api/v3/runs/${open.run}`, old)).status, 401);
    assert.equal((await own.post(new URL(open.token.url).pathname, {})).status, 403);
    assert.notEqual((await make(own, "gone")).json.id, id);
    assert.deepEqual((await own.get("/api/v1/runs", on("gone"))).json.data, []);
    assert.equal((await own.get(`/api/v3/runs/${open.run}`, on("gone"))).status, 404);
    assert.equal((await own.get("/api/v1/runs", old)).status, 401);
    await archive(own, "gone");
    await until(async () => (await environments(own)) === before + 1, { what: "the new one too" });
  }
  assert.equal((await own.get(`/api/v3/runs/${kept}`, on("other"))).json.status, "WAITING_FOR_DEPLOY");
  await own.stop();
});

test("after a kill, an archived branch's unfinished runs are canceled before it leaves memory; one without any is not loaded", async (t) => {
  const own = await startGateway({ t });
  const before = await environments(own);
  for (const branch of ["busy", "quiet"]) {
    await make(own, branch);
    await register(own, on(branch));
    const id = await trigger(own, on(branch), { delay: "1h" });
    if (branch === "quiet") assert.equal((await own.post(`/api/v2/runs/${id}/cancel`, {}, on(branch))).status, 200);
  }
  await Promise.all([archive(own, "busy"), archive(own, "quiet")]);
  await own.kill();
  await own.restart();
  await until(async () => (await environments(own)) === before, { what: "both are out of memory" });
  assert.equal(await own.metric("runcast_runs"), 0);
  await make(own, "busy");
  assert.deepEqual((await own.get("/api/v1/runs", on("busy"))).json.data, []);
  await own.stop();
});

test("archived branches cost next to no memory, however many there were", async (t) => {
  const own = await startGateway({ t, release: true });
  const resident = () => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${own.pid}/status`, "utf8"))[1]);
  const before = await environments(own);
  const use = async (branch) => {
    await make(own, branch);
    await register(own, on(branch));
    await trigger(own, on(branch), { delay: "1h", tags: ["a"] });
    await archive(own, branch);
  };
  const gone = () => until(async () => (await environments(own)) === before, { what: "they are out of memory" });
  for (let i = 0; i < 400; i++) await use(`first-${i}`); // after these, memory that grows only at first has grown
  await gone();
  const start = resident();
  for (let i = 0; i < 400; i++) await use(`later-${i}`);
  await gone();
  const each = (resident() - start) / 400;
  assert.ok(each < 8, `${each} KiB, most of it what SQLite remembers of the file; a branch in use costs 13`);
  await own.stop();
});

/** How many rows the store has for each branch: [[name, rows]]. */
const rowsOf = ({ data }) => {
  const branches = queryStore(data, "SELECT $text(body) AS body FROM document WHERE kind = 3").map(({ body }) => JSON.parse(body)).filter(({ branch }) => branch);
  const count = ({ number }) => ["run", "run_tag", "run_payload", "run_metadata", "run_output", "document"]
    .map((table) => queryStore(data, `SELECT count(*) AS n FROM ${table} WHERE env = ${number}`)[0].n).reduce((sum, n) => sum + n, 0);
  return branches.map((branch) => [branch.branch, count(branch)]);
};

/** The numbers of the environments that were written to. */
const positions = ({ data }) => queryStore(data, "SELECT env FROM environment ORDER BY env").map(({ env }) => env);

test("retention removes an archived branch from the store too, and the number of the newest is not used again", async (t) => {
  const own = await startGateway({ t, options: ["--retain", "2s", "--cancel-timeout", "1s"] });
  for (const branch of ["first", "second", "kept"]) {
    await make(own, branch);
    await register(own, on(branch));
    await trigger(own, on(branch), { delay: "1h", tags: ["a"] });
    await own.post("/api/v1/waitpoints/tokens", { timeout: "1h" }, on(branch));
    assert.equal((await own.post(`/api/v1/projects/${keys.ref}/envvars/preview`, { name: "SECRET", value: "x" }, on(branch, { key: keys.pat }))).status, 200);
  }
  const { id } = (await make(own, "newest")).json;
  await register(own, on("newest"));
  assert.ok(rowsOf(own).every(([, rows]) => rows > 0));
  for (const branch of ["first", "second", "newest"]) await archive(own, branch);
  const left = () => rowsOf(own).sort();
  await until(() => left().length === 1, { what: "only one is left", everyMs: 200 });
  assert.deepEqual(left().map(([branch]) => branch), ["kept"]);
  assert.ok(left()[0][1] >= 4);
  const before = positions(own);
  await own.kill();
  await own.restart();
  assert.notEqual((await make(own, "newest")).json.id, id);
  await register(own, on("newest"));
  assert.deepEqual(positions(own).slice(before.length), [before.at(-1) + 1], "a number that was never used");
  assert.deepEqual((await own.get("/api/v1/runs", on("newest"))).json.data, []);
  assert.equal((await own.get("/api/v1/runs", on("kept"))).json.data.length, 1);
  assert.equal((await own.get(`/api/v1/projects/${keys.ref}/envvars/preview/SECRET`, on("kept", { key: keys.pat }))).status, 200);
  await own.stop();
});
