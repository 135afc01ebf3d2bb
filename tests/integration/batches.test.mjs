// Batches beyond what the official SDKs check: streams that break off, restarts, limits, scopes, parents, and one
// commit for a whole batch.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";

import { RawConnection } from "../support/js/http.mjs";
import { keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { publicToken } from "../support/js/tokens.mjs";

let gateway;
before(async () => { gateway = await startGateway({ options: ["--batch-memory", "8m"] }); });
after(() => gateway.stop());

const hold = { delay: "1h" };
const ndjson = { "content-type": "application/x-ndjson" };

async function create(runCount, more = {}, call = {}) {
  const reply = await gateway.post("/api/v3/batches", { runCount, ...more }, call);
  assert.equal(reply.status, 202, reply.text);
  return reply.json.id;
}

const item = (index, payload = index, more = {}) => ({ index, task: "batches", payload, options: { ...hold, ...more } });
const lines = (items) => items.map((one) => (typeof one === "string" ? one : JSON.stringify(one)) + "\n").join("");
const send = (id, items, call = {}) =>
  gateway.post(`/api/v3/batches/${id}/items`, lines(items), { ...call, headers: { ...ndjson, ...call.headers } });

async function retrieve(id) {
  const reply = await gateway.get(`/api/v2/batches/${id}`);
  assert.equal(reply.status, 200, reply.text);
  return reply.json;
}

async function payloads(ids) {
  return Promise.all(ids.map(async (id) => (await gateway.get(`/api/v3/runs/${id}`)).json.payload));
}

test("items may arrive in any order, in parts and twice; the runs are in the order of the items", async () => {
  const id = await create(4);
  const first = await send(id, [item(3), item(1), item(3, "other")]);
  assert.deepEqual({ ...first.json, id: "" }, {
    id: "", itemsAccepted: 2, itemsDeduplicated: 1, sealed: false, runCount: 4, enqueuedCount: 2, expectedCount: 4,
  });
  assert.deepEqual((await retrieve(id)).runs, []);
  const second = await send(id, ["", item(0), "  ", item(1, "other"), item(2)]);
  assert.equal(second.json.sealed, true);
  assert.equal(second.json.itemsAccepted, 2);
  assert.equal(second.json.itemsDeduplicated, 1);
  const batch = await retrieve(id);
  assert.deepEqual(await payloads(batch.runs), [0, 1, 2, 3]);
  assert.ok(batch.processing.completedAt);
});

test("a batch created before a restart takes a complete stream after it", async (t) => {
  const other = await startGateway({ t });
  const id = (await other.post("/api/v3/batches", { runCount: 2 })).json.id;
  const url = `/api/v3/batches/${id}/items`;
  assert.equal((await other.post(url, lines([item(0)]), { headers: ndjson })).json.sealed, false);
  await other.kill();
  await other.restart();
  const all = await other.post(url, lines([item(0), item(1)]), { headers: ndjson });
  assert.deepEqual([all.json.sealed, all.json.itemsAccepted], [true, 2]);
  await other.kill();
  await other.restart();
  const again = await other.post(url, lines([item(0), item(1)]), { headers: ndjson });
  assert.deepEqual([again.json.sealed, again.json.itemsAccepted], [true, 0]);
  assert.equal((await other.get(`/api/v2/batches/${id}`)).json.runs.length, 2);
});

test("a refused line is named, and the lines before it stay", async () => {
  const id = await create(2);
  for (const [body, status, said] of [
    [lines([item(0)]) + "{nope\n", 400, /^Invalid JSON at line 2/],
    [lines([item(0)]) + '{"index":1,"task":"t"', 400, /^Invalid JSON at line 2/],
    [lines(["[1]"]), 400, /^Invalid JSON at line 1.*object/],
    [lines([{ index: -1, task: "t" }]), 422, /^Invalid item at index 0/],
    [lines([{ index: 1.5, task: "t" }]), 422, /^Invalid item/],
    [lines([{ index: 1 }]), 422, /^Invalid item at index 1.*task/],
    [lines([item(1, 1, { ttl: -1 })]), 422, /^Invalid item at index 1.*ttl/],
    [lines([item(2)]), 422, /^Item index 2 exceeds batch runCount 2/],
    [lines([item(5000)]), 422, /exceeds batch runCount/],
    ["\n \n", 400, /empty/],
  ]) {
    const reply = await gateway.post(`/api/v3/batches/${id}/items`, body, { headers: ndjson });
    assert.equal(reply.status, status, `${body} ${reply.text}`);
    assert.match(reply.json.error, said, body);
  }
  assert.equal((await send(id, [item(0), item(1)])).json.itemsAccepted, 2);
});

test("a line above 3 MiB fails its item and not the batch", async () => {
  const id = await create(2);
  const reply = await send(id, [item(0), item(1, "x".repeat(3_145_728))]);
  assert.equal(reply.status, 200, reply.text);
  assert.deepEqual([reply.json.sealed, reply.json.itemsAccepted], [true, 2]);
  const batch = await retrieve(id);
  assert.equal(batch.status, "PARTIAL_FAILED");
  assert.equal(batch.runs.length, 1);
  assert.deepEqual(batch.processing.errors.map(({ index, taskIdentifier, errorCode }) => [index, taskIdentifier, errorCode]),
    [[1, "batches", "PAYLOAD_TOO_LARGE"]]);
  assert.equal((await gateway.get(`/api/v1/batches/${id}`)).json.status, "PENDING");
  const bare = await create(1);
  assert.equal((await send(bare, [{ payload: "x".repeat(3_145_728), index: 0, task: "t" }])).status, 413);
});

test("items beyond the memory for streams are refused until some of it is freed", async () => {
  const big = "m".repeat(1_000_000), id = await create(20);
  const full = await send(id, Array.from({ length: 12 }, (_, i) => item(i, big)));
  assert.equal(full.status, 503, full.text);
  assert.equal(full.headers["x-should-retry"], "true");
  assert.ok(full.headers["retry-after"]);
  for (let round = 0; round < 5; round++) {
    const other = await create(4);
    const part = await send(other, [0, 1, 2].map((i) => item(i, big)));
    assert.equal(part.json?.sealed, false, part.text);
    const rest = await send(other, [0, 1, 2, 3].map((i) => item(i, big)));
    assert.equal(rest.json?.sealed, true, rest.text);
  }
  // Batches that were abandoned make room for others.
  for (let round = 0; round < 5; round++)
    assert.equal((await send(await create(4), [0, 1, 2].map((i) => item(i, big)))).status, 200);
});

test("a stream that breaks off leaves nothing but a pending batch", async () => {
  const id = await create(2), connection = await RawConnection.open(gateway.port);
  const body = lines([item(0)]);
  await connection.send(`POST /api/v3/batches/${id}/items HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${keys.dev}\r\n` +
    "content-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n" +
    `${body.length.toString(16)}\r\n${body}\r\n`);
  connection.socket.destroy();
  assert.equal((await send(id, [item(0), item(1)])).json.itemsAccepted, 2);
});

test("a stream that arrives while the batch is being written is answered \"try again\"", async (t) => {
  const control = path.join(temporaryFolder(), "control");
  const own = await startGateway({ t, preload: "shim_sync", env: { SHIM_CONTROL: control } });
  const { json: { id } } = await own.post("/api/v3/batches", { runCount: 2 });
  const write = (items) => own.post(`/api/v3/batches/${id}/items`, lines(items), { headers: ndjson });
  fs.writeFileSync(control, "delay 500");
  const first = write([item(0), item(1)]);
  let early;
  await until(async () => {
    early = await write([item(0)]);
    return early.status !== 200 || early.json.sealed;
  }, { what: "the batch to be on its way to the disk" });
  fs.writeFileSync(control, "ok");
  assert.deepEqual([early.status, early.headers["x-should-retry"]], [503, "true"], early.text);
  assert.equal((await first).json.sealed, true);
  assert.equal((await write([item(0)])).json.sealed, true);
  await own.stop();
});

test("a batch of 1,000 items in one stream, cut anywhere, is complete", async () => {
  const id = await create(1000);
  const body = Buffer.from(lines(Array.from({ length: 1000 }, (_, i) => item(i, { i, text: "ż\n".repeat(i % 7) }))));
  const connection = await RawConnection.open(gateway.port);
  await connection.send(`POST /api/v3/batches/${id}/items HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${keys.dev}\r\n` +
    `content-type: application/x-ndjson\r\ncontent-length: ${body.length}\r\n\r\n`);
  const cuts = Array.from({ length: 60 }, (_, i) => Math.floor((i + 1) * body.length / 61) + (i % 3));
  await connection.sendPieces(body, cuts);
  await until(() => connection.received.includes('"sealed":true'), { what: "sealed" });
  connection.socket.destroy();
  const batch = await retrieve(id);
  assert.equal(batch.runs.length, 1000);
  assert.deepEqual(await payloads([batch.runs[0], batch.runs[999]]),
    [{ i: 0, text: "" }, { i: 999, text: "ż\n".repeat(5) }]);
});

test("the idempotency key of a batch is scoped to its set of tasks", async () => {
  const call = (taskIdentifiers) => gateway.post("/api/v3/batches", { runCount: 1, idempotencyKey: "same", taskIdentifiers });
  const a = await call(["a", "b"]), b = await call(["b", "a"]), c = await call(["a"]), d = await call(undefined);
  assert.deepEqual([a.status, a.json.isCached], [202, false]);
  assert.deepEqual([b.status, b.json.isCached, b.json.id], [200, true, a.json.id]);
  assert.equal(b.json.idempotencyKey, "same");
  assert.equal(new Set([a.json.id, c.json.id, d.json.id]).size, 3);
});

test("a repeated HTTP request creates no second batch", async () => {
  const headers = { "x-trigger-request-idempotency-key": "5f0c" };
  const body = { items: [{ task: "batches", payload: 1, options: hold }] };
  for (const [path, sent] of [["/api/v3/batches", { runCount: 1 }], ["/api/v2/tasks/batch", body], ["/api/v1/tasks/batch", body]]) {
    const a = await gateway.post(path, sent, { headers }), b = await gateway.post(path, sent, { headers });
    assert.equal(a.status, 202, a.text);
    assert.deepEqual(b.json, a.json, path);
  }
});

test("the first phase refuses a bad count, list of tasks or key, and a large body", async () => {
  for (const [body, said] of [
    [{ runCount: 0 }, /runCount/], [{ runCount: "1" }, /runCount/], [{}, /runCount/],
    [{ runCount: 1001 }, /^Batch runCount of 1001 exceeds maximum allowed of 1000\.$/],
    [{ runCount: 1, taskIdentifiers: [] }, /taskIdentifiers/], [{ runCount: 1, taskIdentifiers: ["a", "a"] }, /taskIdentifiers/],
    [{ runCount: 1, taskIdentifiers: [""] }, /taskIdentifiers/], [{ runCount: 1, idempotencyKey: "k".repeat(2049) }, /idempotencyKey/],
    [[1], /object/],
  ]) {
    const reply = await gateway.post("/api/v3/batches", body);
    assert.equal(reply.status, 400, JSON.stringify(body).slice(0, 80));
    assert.match(reply.json.error, said);
  }
  assert.equal((await gateway.post("/api/v3/batches", { runCount: 1, x: "x".repeat(131_072) })).status, 413);
});

test("a public token creates and fills the batches that its scopes name", async () => {
  const may = async (scopes, path, body, headers = {}) =>
    (await gateway.post(path, body, { key: await publicToken(gateway, { scopes }), headers })).status;
  const phase1 = { runCount: 1, taskIdentifiers: ["batches"] };
  assert.equal(await may(["batchTrigger:tasks:batches"], "/api/v3/batches", phase1), 202);
  assert.equal(await may(["batchTrigger:tasks:other"], "/api/v3/batches", phase1), 403);
  assert.equal(await may(["batchTrigger:tasks:batches"], "/api/v3/batches", { runCount: 1 }), 403);
  assert.equal(await may(["batchTrigger:tasks"], "/api/v3/batches", { runCount: 1 }), 202);
  assert.equal(await may(["batchTrigger:batch"], "/api/v3/batches", { runCount: 1 }), 202);

  const id = await create(2), url = `/api/v3/batches/${id}/items`;
  assert.equal(await may(["read:batch"], url, lines([item(0)]), ndjson), 403);
  assert.equal(await may(["batchTrigger:tasks:other"], url, lines([item(0)]), ndjson), 403);
  assert.equal(await may(["batchTrigger:tasks:batches"], url, lines([item(0)]), ndjson), 200);
  assert.equal(await may([`write:batch:${id}`], url, lines([item(1)]), ndjson), 200);

  const body = { items: [{ task: "a", options: hold }, { task: "b", options: hold }] };
  assert.equal(await may(["batchTrigger:tasks:a"], "/api/v1/tasks/batch", body), 403);
  assert.equal(await may(["batchTrigger:tasks:a", "batchTrigger:tasks:b"], "/api/v1/tasks/batch", body), 202);

  const read = async (scopes) => (await gateway.get(`/api/v2/batches/${id}`, { key: await publicToken(gateway, { scopes }) })).status;
  assert.deepEqual([await read([`read:batch:${id}`]), await read(["read:runs"]), await read(["read:batch:batch_x"])], [200, 200, 403]);
  assert.equal((await gateway.get(`/api/v2/batches/${id}`, { key: keys.prod })).status, 404);
});

test("a one-time token creates one batch and fills only that one", async () => {
  const key = await publicToken(gateway, { scopes: ["batchTrigger:tasks"], otu: true });
  const other = await create(1);
  const id = await create(1, {}, { key });
  assert.equal((await gateway.post("/api/v3/batches", { runCount: 1 }, { key })).status, 422);
  assert.equal((await send(other, [item(0)], { key })).status, 422);
  assert.equal((await send(id, [item(0)], { key })).json.sealed, true);
  assert.equal((await gateway.post("/api/v1/tasks/batch", { items: [{ task: "t" }] }, { key })).status, 422);
});

test("children of a batch have its parent", async () => {
  const parent = (await gateway.post("/api/v1/tasks/batches/trigger", { options: hold })).json.id;
  const id = await create(1, { parentRunId: parent, resumeParentOnCompletion: true });
  await send(id, [item(0)]);
  const run = (await gateway.get(`/api/v3/runs/${(await retrieve(id)).runs[0]}`)).json;
  assert.equal(run.depth, 1);
  assert.equal(run.relatedRuns.parent.id, parent);
  assert.equal(run.triggerFunction, "batchTriggerAndWait");
  assert.equal((await gateway.post("/api/v3/batches", { runCount: 1, parentRunId: "run_unknown" })).status, 422);
  const late = await create(1, { parentRunId: parent });
  await gateway.post(`/api/v2/runs/${parent}/cancel`);
  assert.equal((await send(late, [item(0)])).status, 422);
});

test("the batch call of SDK 3.x honors the keys of batch and items, and reports results and completion", async () => {
  const old = (await gateway.post("/api/v1/tasks/batches/trigger", { options: { ...hold, idempotencyKey: "k1" } })).json.id;
  const body = { items: [
    { task: "batches", payload: 1, options: { ...hold, idempotencyKey: "k1" } },
    { task: "batches", payload: 2, options: { ...hold, idempotencyKey: "k2" } },
    { task: "batches", payload: 3, options: { ...hold, idempotencyKey: "k2" } },
  ] };
  const headers = { "idempotency-key": "whole", "idempotency-key-ttl": "1h" };
  const { json } = await gateway.post("/api/v1/tasks/batch", body, { headers });
  assert.equal(json.idempotencyKey, "whole");
  assert.deepEqual(json.runs.map((run) => run.isCached), [true, false, true]);
  assert.equal(json.runs[0].id, old);
  assert.equal(json.runs[2].id, json.runs[1].id);
  assert.deepEqual(json.runs.map((run) => run.idempotencyKey), ["k1", "k2", "k2"]);
  const again = (await gateway.post("/api/v1/tasks/batch", { items: [{ task: "else" }] }, { headers })).json;
  assert.deepEqual(again, { ...json, isCached: true, runs: json.runs.map((run) => ({ ...run, isCached: true })) });

  const status = async () => (await gateway.get(`/api/v1/batches/${json.id}`)).json.status;
  assert.equal(await status(), "PENDING");
  await gateway.post(`/api/v2/runs/${old}/cancel`);
  const results = (await gateway.get(`/api/v1/batches/${json.id}/results`)).json;
  assert.deepEqual(results.items.map((one) => one.id), [old]);
  await gateway.post(`/api/v2/runs/${json.runs[1].id}/cancel`);
  assert.equal(await status(), "COMPLETED");
  const cached = (await gateway.post("/api/v1/tasks/batch", { items: [body.items[0]] })).json;
  assert.equal((await gateway.get(`/api/v1/batches/${cached.id}`)).json.status, "COMPLETED");
});

test("the calls that carry their items refuse too many, too few, invalid and large ones", async () => {
  for (const [items, status, said] of [
    [[], 400, /^Batch cannot be triggered with no items$/],
    [Array.from({ length: 501 }, () => ({ task: "t" })), 400, /^Batch size of 501 is too large\. Maximum allowed batch size is 500\.$/],
    ["t", 400, /items/], [[1], 400, /items\[0\]/], [[{ task: "t" }, { payload: 1 }], 400, /items\[1\]\.task/],
    [[{ task: "t", options: { ttl: -1 } }], 400, /ttl.*items\[0\]/],
  ]) {
    const reply = await gateway.post("/api/v1/tasks/batch", { items });
    assert.equal(reply.status, status, reply.text);
    assert.match(reply.json.error, said);
  }
  assert.equal((await gateway.post("/api/v2/tasks/batch", { items: [{ task: "t", payload: "x".repeat(1_000_000) }] })).status, 413);
});
