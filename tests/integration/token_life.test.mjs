// Lifetime of public access tokens: expiry, one-time use, restarts; and the columns that they hide.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";

import { EventStream } from "../support/js/event_stream.mjs";
import { startGateway, until } from "../support/js/gateway.mjs";
import { begin, connect, end, fresh, gateway, patch, subscribe, trigger } from "../support/js/realtime.mjs";
import { publicToken } from "../support/js/tokens.mjs";

before(begin);
after(end);

const poll = (path, { key, position = { offset: "-1" }, live, to = gateway } = {}) => to.get(`${path}?${new URLSearchParams({ ...position, ...(live && { live: "true" }) })}`,
  { key, headers: { "x-trigger-electric-version": "1.0.0-beta.1", "x-trigger-api-version": "2025-07-16" } });
const whereIs = ({ headers }) => ({ offset: headers["electric-offset"], handle: headers["electric-handle"] });
const held = (count) => until(async () => (await gateway.metric("runcast_polls")) === count, { what: `${count} held polls` });
const endless = (scopes, more) => publicToken(gateway, { scopes, ...more, exp: undefined });

describe("a token that expires", () => {
  test("ends the poll that is held for it, and is refused from then on, however often it was used", async () => {
    const { id } = await trigger();
    const lasting = await endless([`read:runs:${id}`]), start = await poll(`/realtime/v1/runs/${id}`, { key: lasting });
    let earlier = "held"; // until a change, or for 17 s and more
    const other = poll(`/realtime/v1/runs/${id}`, { key: lasting, position: whereIs(start), live: true }).then(() => { earlier = "answered"; });
    await held(1);
    const expires = Math.floor(Date.now() / 1000) + 6;
    const key = await publicToken(gateway, { scopes: [`read:runs:${id}`], exp: expires });
    const first = await poll(`/realtime/v1/runs/${id}`, { key });
    const answer = poll(`/realtime/v1/runs/${id}`, { key, position: whereIs(first), live: true });
    await held(2);
    assert.equal((await gateway.get(`/api/v3/runs/${id}`, { key })).status, 200);
    const { status, json } = await answer;
    assert.deepEqual([status, json], [200, [{ headers: { control: "up-to-date" } }]]);
    assert.ok(Date.now() >= expires * 1000 - 20, `${Date.now() - expires * 1000} ms after the end`);
    assert.equal(earlier, "held", "a poll that began before it and has another token");
    await until(() => Date.now() >= expires * 1000);
    for (const path of [`/realtime/v1/runs/${id}`, `/api/v3/runs/${id}`, "/realtime/v1/events?all=1"])
      assert.equal((await gateway.get(path, { key })).status, 401, path);
    await gateway.post(`/api/v1/runs/${id}/tags`, { tags: ["over"] });
    await other;
    await held(0);
  });

  test("in hours receives changes meanwhile", async () => {
    const { id } = await trigger();
    const key = await publicToken(gateway, { scopes: ["read:runs"], expiresInS: 7200 });
    const first = await poll(`/realtime/v1/runs/${id}`, { key });
    const answer = poll(`/realtime/v1/runs/${id}`, { key, position: whereIs(first), live: true });
    await held(1);
    await gateway.post(`/api/v1/runs/${id}/tags`, { tags: ["late"] });
    assert.match((await answer).text, /late/);
  });
});

describe("a token without exp", () => {
  test("is valid on every transport, and gets no expiry warning", async (t) => {
    const { id } = await trigger();
    const key = await endless(["read:runs"]);
    assert.equal((await gateway.get(`/api/v3/runs/${id}`, { key })).status, 200);
    const first = await poll(`/realtime/v1/runs/${id}`, { key });
    const answer = poll(`/realtime/v1/runs/${id}`, { key, position: whereIs(first), live: true });
    await held(1);
    const socket = await connect(t, { token: key });
    assert.equal(socket.welcome.expires, undefined);
    await subscribe(socket, 1, { run: id });
    const stream = await EventStream.open(`${gateway.url}/realtime/v1/events?run=${id}`, { headers: { authorization: `Bearer ${key}` } });
    t.after(() => stream.cut());
    await stream.next("rows");
    await gateway.post(`/api/v1/runs/${id}/tags`, { tags: ["news"] });
    assert.match((await answer).text, /news/);
    assert.deepEqual((await patch(socket)).rows[0][2].tags, ["news"]);
    assert.deepEqual((await stream.next("rows")).data.rows[0][2].tags, ["news"]);
  });

  test("and for one use is used up permanently", async (t) => {
    const own = await startGateway({ t });
    const key = await publicToken(own, { scopes: ["trigger:tasks:once"], otu: true, exp: undefined });
    assert.equal((await own.post("/api/v1/tasks/once/trigger", {}, { key })).status, 200);
    await own.kill();
    await own.restart();
    for (let i = 0; i < 80; i++) await own.post("/api/v1/tasks/other/trigger", {}); // each commit removes expired marks
    assert.equal((await own.post("/api/v1/tasks/once/trigger", {}, { key })).status, 422);
    await own.stop();
  });
});

describe("a token for one use", () => {
  const scopes = ["trigger:tasks:once", "batchTrigger:tasks:once", "batchTrigger:batch", "write:batch"];
  const once = (more) => publicToken(gateway, { scopes, otu: true, jti: randomUUID(), ...more });
  const use = (key, { task = "once", body = {}, ...more } = {}) => gateway.post(`/api/v1/tasks/${task}/trigger`, body, { key, ...more });
  const count = async () => (await gateway.get("/api/v1/runs?filter[taskIdentifier]=once&page[size]=100")).json.data.length;

  test("is used up by the first of two calls that arrive together", async () => {
    const key = await once(), before = await count();
    const connection = await gateway.connect();
    const call = `POST /api/v1/tasks/once/trigger HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}`;
    await connection.send(call.repeat(3));
    const text = await connection.read((seen) => (seen.match(/HTTP\/1\.1 /g) ?? []).length === 3 && seen.endsWith("}"), { what: "three answers" });
    connection.destroy();
    assert.deepEqual(text.match(/HTTP\/1\.1 \d+/g).map((line) => line.slice(9)), ["200", "422", "422"]);
    assert.match(text, /Cannot trigger once with a one-time use token as it has already been used\./);
    assert.equal(await count(), before + 1);
  });

  test("is used up by one of many simultaneous calls on their own connections", async () => {
    const key = await once(), before = await count();
    const connections = await Promise.all(Array.from({ length: 30 }, () => gateway.connect()));
    const call = `POST /api/v1/tasks/once/trigger HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}`;
    const texts = await Promise.all(connections.map(async (one) => { await one.send(call); return one.readToEnd(); }));
    assert.equal(texts.filter((text) => text.startsWith("HTTP/1.1 200")).length, 1);
    assert.equal(texts.filter((text) => text.startsWith("HTTP/1.1 422")).length, 29);
    assert.equal(await count(), before + 1);
  });

  test("can repeat the call that used it: the same request key gets the same run", async () => {
    const key = await once(), headers = { "x-trigger-request-idempotency-key": randomUUID() };
    const first = await use(key, { headers });
    const again = await use(key, { headers });
    assert.deepEqual([first.status, again.status, again.json.id], [200, 200, first.json.id]);
    assert.equal((await use(key, { headers: { "x-trigger-request-idempotency-key": randomUUID() } })).status, 422);
  });

  test("is not used up by a refused call", async () => {
    const key = await once();
    assert.equal((await use(key, { task: "another" })).status, 403);
    assert.equal((await use(key, { body: "{" })).status, 400);
    assert.equal((await use(key, { body: { options: { delay: "soon" } } })).status, 400);
    assert.equal((await use(key, { body: { options: { parentRunId: "run_nobody" } } })).status, 422);
    assert.equal((await gateway.get("/api/v1/runs", { key })).status, 403);
    assert.equal((await use(key)).status, 200);
    assert.equal((await use(key)).status, 422);
  });

  test("is for one trigger or one batch, and the batch can get its items", async () => {
    const triggered = await once(), batched = await once(), streamed = await once();
    const batch = (key) => gateway.post("/api/v1/tasks/batch", { items: [{ task: "once" }, { task: "once" }] }, { key });
    const create = (key) => gateway.post("/api/v3/batches", { runCount: 1 }, { key });
    const items = (key, id) => gateway.post(`/api/v3/batches/${id}/items`, JSON.stringify({ index: 0, task: "once" }), { key, headers: { "content-type": "application/x-ndjson" } });
    assert.equal((await use(triggered)).status, 200);
    assert.deepEqual([(await batch(triggered)).status, (await create(triggered)).status], [422, 422]);
    assert.equal((await batch(batched)).status, 202);
    assert.deepEqual([(await batch(batched)).status, (await use(batched)).status, (await create(batched)).status], [422, 422, 422]);
    const { status, json } = await create(streamed);
    assert.equal(status, 202);
    assert.equal((await items(await once(), json.id)).status, 422, "the items of another batch");
    assert.equal((await items(streamed, json.id)).status, 200);
    assert.deepEqual([(await create(streamed)).status, (await use(streamed)).status, (await batch(streamed)).status], [422, 422, 422]);
  });

  test("stays used after a crash, and until it expires", async (t) => {
    const own = await startGateway({ t });
    const expires = Math.floor(Date.now() / 1000) + 12;
    const key = await publicToken(own, { scopes, otu: true, exp: expires });
    assert.equal((await own.post("/api/v1/tasks/once/trigger", {}, { key })).status, 200);
    await own.kill();
    await own.restart();
    const { status, json } = await own.post("/api/v1/tasks/once/trigger", {}, { key });
    if (Date.now() < expires * 1000) assert.deepEqual([status, /already been used/.test(json.error)], [422, true]);
    await until(() => Date.now() >= expires * 1000);
    assert.equal((await own.post("/api/v1/tasks/once/trigger", {}, { key })).status, 401);
    await own.stop();
  });

  test("can also be made by the gateway, a different one each time", async () => {
    const made = await Promise.all(Array.from({ length: 5 }, () => gateway.post("/api/v1/auth/public-tokens", { scopes, oneTimeUse: true, expirationTime: "5m" })));
    assert.equal(new Set(made.map(({ json }) => json.token)).size, 5);
    for (const { json } of made) assert.deepEqual([(await use(json.token)).status, (await use(json.token)).status], [200, 422]);
  });
});

describe("the columns that a token skips", () => {
  const names = { // in the words of the long poll, and of runs.v1
    payload: "payload", metadata: "metadata", output: "output", error: "error", ttl: "ttl", idempotencyKey: "idempotencyKey",
    startedAt: "startedAt", delayUntil: "delayedUntil", queuedAt: "queuedAt", completedAt: "finishedAt", expiredAt: "expiredAt",
    number: "number", isTest: "isTest", usageDurationMs: "durationMs", costInCents: "costInCents", baseCostInCents: "baseCostInCents",
  };
  const shown = async (t, key, id) => {
    const rows = {};
    const answer = await poll(`/realtime/v1/runs/${id}`, { key });
    rows.poll = Object.keys(answer.json[0].value);
    assert.deepEqual(Object.keys(JSON.parse(answer.headers["electric-schema"])), rows.poll);
    for (const protocol of ["runs.v1.json", "runs.v1.msgpack"]) {
      const socket = await connect(t, { token: key, protocol, hello: { fields: Object.values(names) } });
      rows[protocol] = Object.keys((await subscribe(socket, 1, { run: id })).rows[0][2]);
    }
    const stream = await EventStream.open(`${gateway.url}/realtime/v1/events?run=${id}&fields=${Object.values(names)}`, { headers: { authorization: `Bearer ${key}` } });
    t.after(() => stream.cut());
    rows.sse = Object.keys((await stream.next("rows")).data.rows[0][2]);
    return rows;
  };

  for (const [vocabulary, skip] of [["the long poll", Object.keys(names)], ["runs.v1", Object.values(names)]])
    test(`are absent on every transport, named as ${vocabulary} names them`, async (t) => {
      const { id } = await trigger({ ttl: "1h", idempotencyKey: fresh("key"), metadata: { a: 1 } }, { payload: "secret" });
      const all = await shown(t, await endless(["read:runs"]), id);
      assert.ok(all.sse.includes("payload") && all["runs.v1.json"].includes("ttl") && all.poll.includes("completedAt"));
      const rows = await shown(t, await endless(["read:runs"], { skipColumns: skip }), id);
      for (const [transport, kept] of Object.entries(rows))
        assert.deepEqual(kept.filter((name) => name in names || Object.values(names).includes(name)), [], transport);
    });

  test("are passed on to the token that a trigger returns", async (t) => {
    const key = await publicToken(gateway, { scopes: ["trigger:tasks:handed"], skipColumns: ["payload"] });
    const { json, headers } = await gateway.post("/api/v1/tasks/handed/trigger", { payload: "secret" }, { key });
    const rows = await shown(t, headers["x-trigger-jwt"], json.id);
    for (const [transport, kept] of Object.entries(rows)) assert.ok(!kept.includes("payload"), transport);
  });
});

test("a subscription that waits for the store is judged by the token that is valid when it begins", async (t) => {
  const tag = fresh("tag");
  await trigger({ tags: [tag] }, { payload: "secret" });
  const [wide, narrow] = [await publicToken(gateway, { scopes: ["read:runs"] }), await publicToken(gateway, { scopes: ["read:tags:none"] })];
  for (let i = 0; i < 20; i++) {
    const socket = await connect(t, { token: wide });
    socket.ws.socket.cork();
    socket.send({ op: "sub", id: 1, tags: [tag], limit: 5 });
    socket.send({ op: "auth", token: narrow });
    socket.ws.socket.uncork();
    const answers = [await socket.next()];
    if (answers[0].op === "ok") answers.push(await socket.next((one) => one.op === "end"));
    assert.equal(answers.at(-1).code, "forbidden");
    await trigger({ tags: [tag] });
    socket.send({ op: "sub", id: 2, tags: ["none"] });
    const later = await socket.next((one) => one.op === "ok" || one.op === "patch");
    assert.equal(later.op, "ok");
    await socket.ws.cut();
  }
});
