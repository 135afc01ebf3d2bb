// The long poll of the official SDKs, byte by byte: positions, columns, headers, refusals. tests/conformance/realtime
// tests what the SDKs make of it.
import assert from "node:assert/strict";
import fs from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { freePort, keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { addTag, begin, end, fresh, gateway, putMetadata, trigger } from "../support/js/realtime.mjs";
import { HttpClient } from "../support/js/http.mjs";
import { publicToken } from "../support/js/tokens.mjs";

const sdk = createRequire(new URL("../conformance/sdk-v4/x.js", import.meta.url))("@trigger.dev/sdk");

before(begin);
after(end);

const electric = { "x-trigger-electric-version": "1.0.0-beta.1" };
const v4 = { ...electric, "x-trigger-api-version": "2025-07-16" };
const current = { headers: { control: "up-to-date" } };

/** One request; position comes from the previous response. */
async function poll(path, { to = gateway, position, live = false, key = keys.dev, headers = v4, query = {}, signal } = {}) {
  const url = new URL(to.url + path);
  for (const [name, value] of Object.entries({ offset: "-1", ...position, ...query, ...(live && { live: "true", cursor: "1" }) }))
    url.searchParams.set(name, value);
  const answer = await fetch(url, { headers: { ...headers, ...(key && { authorization: `Bearer ${key}` }) }, signal });
  const text = await answer.text();
  const json = JSON.parse(text);
  const rows = Array.isArray(json) ? json.filter((message) => message.key) : [];
  return { status: answer.status, headers: answer.headers, text, json, rows,
    position: { offset: answer.headers.get("electric-offset"), handle: answer.headers.get("electric-handle") } };
}
const held = (to = gateway) => to.metric("runcast_polls");
const isHeld = (count, to = gateway) => until(async () => (await held(to)) === count, { what: `${count} held polls` });

/** A poll that is held when this returns. */
async function hold(path, more) {
  const before = await held(more?.to);
  const answer = poll(path, { live: true, ...more });
  await isHeld(before + 1, more?.to);
  return { answer };
}

const columns = ["id", "taskIdentifier", "createdAt", "updatedAt", "startedAt", "delayUntil", "queuedAt", "expiredAt", "completedAt",
  "friendlyId", "number", "isTest", "status", "usageDurationMs", "costInCents", "baseCostInCents", "ttl", "payload", "payloadType",
  "metadata", "metadataType", "output", "outputType", "runTags", "error", "realtimeStreams", "idempotencyKey"];

describe("a snapshot", () => {
  test("consists of whole rows, the types of their columns, and a position", async () => {
    const tag = fresh("tag");
    const { id, seq } = await trigger({ tags: [tag, "é\"}"], idempotencyKey: fresh("key") }, { payload: { a: 1 } });
    const answer = await poll(`/realtime/v1/runs/${id}`);
    assert.equal(answer.status, 200);
    assert.deepEqual(answer.json.at(-1), current);
    assert.equal(answer.rows.length, 1);
    const [{ value, headers }] = answer.rows;
    assert.deepEqual(headers, { operation: "insert" });
    assert.deepEqual(Object.keys(value), columns);
    assert.deepEqual(Object.keys(JSON.parse(answer.headers.get("electric-schema"))), columns);
    assert.deepEqual([value.id, value.friendlyId, value.status, value.isTest, value.payloadType], [id, id, "PENDING", "f", "application/json"]);
    assert.deepEqual([JSON.parse(value.payload), JSON.parse(value.runTags)], [{ a: 1 }, [tag, "é\"}"]]);
    assert.match(value.createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}$/);
    assert.match(answer.position.offset, /^\d+_\d+$/);
    assert.ok(Number(answer.position.offset.split("_")[0]) >= seq);
    assert.match(answer.position.handle, /^[^-]+-r-0$/);
    assert.equal(answer.headers.get("electric-up-to-date"), "");
    assert.equal(answer.headers.get("electric-cursor"), null);
    assert.equal(answer.headers.get("content-type"), "application/json");
    assert.equal(answer.headers.get("cache-control"), "no-store");
    assert.ok(Number(answer.headers.get("content-length")) > 0); // headers and body are one write
  });

  test("without matches is up to date", async () => {
    const answer = await poll("/realtime/v1/runs", { query: { tags: fresh("nobody") } });
    assert.deepEqual(answer.json, [current]);
    assert.equal(answer.headers.get("electric-up-to-date"), "");
  });

  test("that is large comes in pages, with each run once", async () => {
    const tag = fresh("many");
    const ids = [];
    for (let i = 0; i < 40; i++) ids.push((await trigger({ tags: [tag] }, { payload: "x".repeat(20000) })).id);
    const seen = [];
    let position, pages = 0;
    for (;;) {
      const answer = await poll("/realtime/v1/runs", { query: { tags: tag }, position });
      seen.push(...answer.rows.map((row) => row.key));
      position = answer.position;
      pages++;
      if (answer.headers.get("electric-up-to-date") === "") {
        assert.deepEqual(answer.json.at(-1), current);
        break;
      }
      assert.ok(answer.rows.length > 0 && answer.rows.length === answer.json.length);
      assert.ok(answer.text.length < 512 * 1024);
    }
    assert.ok(pages > 2);
    assert.deepEqual(seen.sort(), ids.sort());
  });

  test("is compressed for clients that accept it, when it is worth it", async () => {
    const { id } = await trigger({}, { payload: "y".repeat(5000) });
    const answer = await poll(`/realtime/v1/runs/${id}`, { headers: { ...v4, "accept-encoding": "gzip, deflate" } });
    assert.equal(answer.headers.get("content-encoding"), "gzip");
    assert.equal(JSON.parse(answer.rows[0].value.payload), "y".repeat(5000));
    const plain = await poll(`/realtime/v1/runs/${id}`, { headers: { ...v4, "accept-encoding": "identity" } });
    assert.equal(plain.headers.get("content-encoding"), null);
    assert.equal(plain.text, answer.text);
    const coding = async (accepted) => (await poll(`/realtime/v1/runs/${id}`, { headers: { ...v4, "accept-encoding": accepted } })).headers.get("content-encoding");
    for (const accepted of ["gzip;q=0.5", "deflate, gzip ; q=0.001", "br;q=1.0, gzip; q=1", "identity;q=0,gzip"]) assert.equal(await coding(accepted), "gzip", accepted);
    for (const refused of ["gzip;q=0", "gzip; q=0", "gzip ; q=0.000", "deflate", "x-gzip", "gzip;q=0, *"]) assert.equal(await coding(refused), null, refused);
    const large = await trigger({}, { payload: "z".repeat(1 << 20) }); // large enough to take a separate turn
    assert.equal((await poll(`/realtime/v1/runs/${large.id}`, { headers: { ...v4, "accept-encoding": "gzip" } })).headers.get("content-encoding"), null);
  });

  test("shows runs of the last day by default, or of createdAt, and the handle keeps the floor", async () => {
    const tag = fresh("floor");
    await trigger({ tags: [tag] });
    const floorOf = (answer) => Number(answer.position.handle.split("-")[2]);
    const day = await poll("/realtime/v1/runs", { query: { tags: tag } });
    const hour = await poll("/realtime/v1/runs", { query: { tags: tag, createdAt: "1h" } });
    const nonsense = await poll("/realtime/v1/runs", { query: { tags: tag, createdAt: "yesterday" } });
    const tooMuch = await poll("/realtime/v1/runs", { query: { tags: tag, createdAt: "7d" } });
    assert.equal(floorOf(hour) - floorOf(day), 23 * 3600_000);
    assert.equal(floorOf(hour) % 60_000, 0);
    for (const other of [nonsense, tooMuch]) assert.ok(Math.abs(floorOf(other) - floorOf(day)) <= 60_000);
    const next = await poll("/realtime/v1/runs", { query: { tags: tag, createdAt: "2h" }, position: hour.position });
    assert.equal(next.position.handle, hour.position.handle);
  });
});

describe("a live poll", () => {
  test("is held until something changes, and returns exactly the columns that did", async () => {
    const { id } = await trigger();
    const { position } = await poll(`/realtime/v1/runs/${id}`);
    const { answer } = await hold(`/realtime/v1/runs/${id}`, { position });
    await putMetadata(id, { step: 1 });
    const live = await answer;
    assert.deepEqual(live.rows.map((row) => [row.key, row.headers.operation, Object.keys(row.value).sort()]),
      [[id, "update", ["metadata", "status", "updatedAt"]]]);
    assert.deepEqual(live.json.at(-1), current);
    assert.equal(live.headers.get("electric-schema"), null);
    assert.ok(live.headers.get("electric-cursor"));
  });

  test("returns exactly the columns of changes made while the client was away for a moment", async () => {
    const { id } = await trigger();
    const { position } = await poll(`/realtime/v1/runs/${id}`);
    await putMetadata(id, { a: 1 });
    await addTag(id, fresh("late"));
    await putMetadata(id, { a: 2 });
    const live = await poll(`/realtime/v1/runs/${id}`, { position, live: true });
    assert.deepEqual(live.rows.map((row) => [row.headers.operation, row.value.metadata, Object.keys(row.value).length]),
      [["update", '{"a":1}', 3], ["insert", '{"a":1}', columns.length], ["update", '{"a":2}', 3]]);
  });

  test("repeated from the same position returns the change again: a lost response loses nothing", async () => {
    const { id } = await trigger();
    const { position } = await poll(`/realtime/v1/runs/${id}`);
    await putMetadata(id, { n: 1 });
    for (let i = 0; i < 3; i++) {
      const live = await poll(`/realtime/v1/runs/${id}`, { position, live: true });
      assert.equal(live.rows[0].value.metadata, '{"n":1}');
    }
  });

  test("returns a run whole when it joins the filter", async () => {
    const [a, b] = [fresh("a"), fresh("b")];
    const { id } = await trigger({ tags: [a] }, { payload: { all: "of it" } });
    const { position } = await poll("/realtime/v1/runs", { query: { tags: `${a},${b}` } });
    const { answer } = await hold("/realtime/v1/runs", { query: { tags: `${a},${b}` }, position });
    await trigger({ tags: [a] });
    await addTag(id, b);
    const live = await answer;
    assert.deepEqual(live.rows.map((row) => row.key), [id]);
    assert.deepEqual(Object.keys(live.rows[0].value), columns);
  });

  test("of a batch returns changes of its runs only", async () => {
    const batch = (await gateway.post("/api/v1/tasks/batch", { items: [{ task: "a" }, { task: "b" }] })).json;
    const snapshot = await poll(`/realtime/v1/batches/${batch.id}`);
    assert.equal(snapshot.rows.length, 2);
    const { answer } = await hold(`/realtime/v1/batches/${batch.id}`, { position: snapshot.position });
    await trigger();
    await putMetadata(batch.runs[1].id, { b: true });
    assert.deepEqual((await answer).rows.map((row) => row.key), [batch.runs[1].id]);
  });

  test("shares one body with all polls that wait for the same change", async () => {
    const tag = fresh("shared");
    const { id } = await trigger({ tags: [tag] });
    const { position } = await poll("/realtime/v1/runs", { query: { tags: tag } });
    const answers = [];
    for (let i = 0; i < 20; i++) answers.push((await hold("/realtime/v1/runs", { query: { tags: tag }, position })).answer);
    const frames = await gateway.metric("runcast_frames_total{kind=\"shared\"}");
    await putMetadata(id, { all: 20 });
    const texts = (await Promise.all(answers)).map((answer) => answer.text);
    assert.equal(new Set(texts).size, 1);
    assert.equal(await gateway.metric("runcast_frames_total{kind=\"shared\"}") - frames, 20);
  });

  test("is answered among hundreds, with many column sets and compressed, each in a turn of its own when turns are short of time", async (t) => {
    const own = await startGateway({ t, preload: "shim_busy" }), count = 240;
    const { id } = await trigger({ tags: ["busy"] }, { to: own });
    const skipped = columns.slice(10).filter((name) => !/status|metadata/.test(name));
    const { position } = await poll("/realtime/v1/runs", { to: own, query: { tags: "busy" } });
    const answers = Array.from({ length: count }, (_none, i) => poll("/realtime/v1/runs", { to: own, position, live: true,
      query: { tags: "busy", skipColumns: skipped[i % 12] }, headers: { ...v4, "accept-encoding": "gzip" } }));
    await isHeld(count, own);
    const noise = Array.from({ length: 120_000 }, () => Math.floor(Math.random() * 36).toString(36)).join("");
    const turns = () => own.metric("runcast_loop_turn_cpu_seconds_count"), before = await turns();
    await own.put(`/api/v1/runs/${id}/metadata`, { metadata: { noise } });
    for (const { headers, rows: [{ value }] } of await Promise.all(answers)) {
      assert.equal(headers.get("content-encoding"), "gzip");
      assert.equal(value.metadata.length, noise.length + 12);
    }
    const taken = await turns() - before;
    assert.ok(taken >= count, `${taken} turns for ${count} polls`);
    await own.stop();
  });

  test("that the client gave up frees its place", async () => {
    const { id } = await trigger();
    const { position } = await poll(`/realtime/v1/runs/${id}`);
    const before = await held(), leaving = new AbortController();
    const given = poll(`/realtime/v1/runs/${id}`, { position, live: true, signal: leaving.signal });
    await isHeld(before + 1);
    leaving.abort();
    await assert.rejects(given);
    await isHeld(before);
  });

  test("from another epoch gets every row, and a new handle", async () => {
    const { id } = await trigger();
    const { position } = await poll(`/realtime/v1/runs/${id}`);
    for (const handle of ["other-r-0", "zzz", position.handle.replace("-r-", "-t-")]) {
      const live = await poll(`/realtime/v1/runs/${id}`, { position: { ...position, handle }, live: true });
      assert.deepEqual(live.rows.map((row) => Object.keys(row.value).length), [columns.length]);
      assert.equal(live.position.handle, position.handle);
    }
  });

  test("of several runs, from another epoch, starts over", async () => {
    const tag = "epoch";
    const { id } = await trigger({ tags: [tag] });
    const { position } = await poll(`/realtime/v1/runs?tags=${tag}`);
    const handle = position.handle.replace(/^[0-9a-f]+/, "0123456789abcdef");
    const gone = await poll(`/realtime/v1/runs?tags=${tag}`, { position: { ...position, handle }, live: true });
    assert.deepEqual([gone.status, gone.json], [409, [{ headers: { control: "must-refetch" } }]]);
    assert.equal(gone.position.handle.split("-")[0], position.handle.split("-")[0]);
    const all = await poll(`/realtime/v1/runs?tags=${tag}`, { position: { handle: gone.position.handle } });
    assert.deepEqual(all.rows.map((row) => row.value.friendlyId), [id]);
  });

  test("continues from its position after the gateway was killed", async (t) => {
    const own = await startGateway({ t });
    const { id } = await trigger({}, { to: own, payload: { not: "again" } });
    const { position } = await poll(`/realtime/v1/runs/${id}`, { to: own });
    await own.put(`/api/v1/runs/${id}/metadata`, { metadata: { kept: true } });
    await own.kill();
    await own.restart();
    const live = await poll(`/realtime/v1/runs/${id}`, { to: own, position, live: true });
    assert.deepEqual(live.rows.map((row) => [row.headers.operation, row.value.metadata, row.value.payload]), [["update", '{"kept":true}', undefined]]);
    await own.stop();
  });

  test("is answered as up to date when the gateway drains", async (t) => {
    const own = await startGateway({ t });
    const { id } = await trigger({}, { to: own });
    const { position } = await poll(`/realtime/v1/runs/${id}`, { to: own });
    const { answer } = await hold(`/realtime/v1/runs/${id}`, { to: own, position });
    const stopped = own.stop();
    const idle = await answer;
    assert.deepEqual([idle.status, idle.json, idle.headers.get("connection")], [200, [current], "close"]);
    assert.equal(idle.position.handle, position.handle);
    await stopped;
  });

  test("is refused with 503, never 4xx, while the gateway starts and while it drains", async (t) => {
    const own = await startGateway({ t });
    for (let i = 0; i < 30; i++) await trigger({}, { to: own, payload: "x".repeat(10_000) });
    const { id } = await trigger({}, { to: own });
    const { position } = await poll(`/realtime/v1/runs/${id}`, { to: own });
    await own.kill();
    await own.restart({ ready: false });
    const seen = new Set();
    const live = await until(async () => {
      const answer = await poll(`/realtime/v1/runs/${id}`, { to: own, position }).catch(() => ({ status: "refused" }));
      seen.add(answer.status);
      return answer.status === 200 && answer;
    }, { everyMs: 1, what: "an answer" });
    assert.deepEqual(live.json, [current]);
    for (const status of ["refused", 503, 200]) seen.delete(status);
    assert.deepEqual([...seen], []);
    const slow = await own.connect(); // the gateway drains until its body has arrived
    await slow.send("POST /api/v1/tasks/slow/trigger HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n" +
      `authorization: Bearer ${keys.dev}\r\ncontent-length: 2\r\n\r\n`);
    await own.get("/healthz");
    own.child.kill("SIGTERM");
    await until(() => own.stderr.includes("draining"));
    for (const path of [`/realtime/v1/runs/${id}`, "/realtime/v1/runs/run_x", "/realtime/v1/runs?tags=a", "/realtime/v1/batches/batch_x"]) {
      const late = await poll(path, { to: own, position, live: true });
      assert.deepEqual([late.status, late.headers.get("access-control-allow-origin"), late.headers.get("connection")], [503, "*", "close"], path);
    }
    await slow.send("{}");
    assert.equal((await own.ended()).code, 0);
  });

  test("never shows an updatedAt older than the one before, whatever the clock does", async (t) => {
    const file = join(temporaryFolder(), "clock");
    const own = await startGateway({ t, preload: "shim_clock", env: { SHIM_CLOCK: file } });
    const { id } = await trigger({}, { to: own });
    let last = "";
    for (const ahead of [0, -3600_000, 60_000, -1000]) {
      fs.writeFileSync(`${file}.new`, String(ahead));
      fs.renameSync(`${file}.new`, file);
      await own.put(`/api/v1/runs/${id}/metadata`, { metadata: { ahead } });
      const [{ value }] = (await poll(`/realtime/v1/runs/${id}`, { to: own })).rows;
      assert.equal(value.metadata, JSON.stringify({ ahead }));
      assert.ok(value.updatedAt >= last, `${value.updatedAt} after ${last}`);
      last = value.updatedAt;
    }
    await own.stop();
  });

  test("above --realtime-connections is 429, and loses no change", async (t) => {
    const own = await startGateway({ t, options: ["--realtime-connections", "2"] });
    const { id } = await trigger({}, { to: own });
    const { position } = await poll(`/realtime/v1/runs/${id}`, { to: own });
    const leaving = new AbortController();
    const first = poll(`/realtime/v1/runs/${id}`, { to: own, position, live: true, signal: leaving.signal }).catch(() => {});
    await isHeld(1, own);
    const { answer } = await hold(`/realtime/v1/runs/${id}`, { to: own, position });
    const third = await poll(`/realtime/v1/runs/${id}`, { to: own, position, live: true });
    assert.deepEqual([third.status, third.json], [429, { error: "Too many concurrent requests" }]);
    assert.equal((await poll(`/realtime/v1/runs/${id}`, { to: own, position })).status, 200); // catching up does not count
    leaving.abort();
    await first;
    await isHeld(1, own);
    const { answer: fourth } = await hold(`/realtime/v1/runs/${id}`, { to: own, position });
    await own.put(`/api/v1/runs/${id}/metadata`, { metadata: { go: 1 } });
    assert.deepEqual([(await answer).rows.length, (await fourth).rows.length], [1, 1]);
    await own.stop();
  });

  test("counts for its environment only, and exactly, also after hundreds were given up", async (t) => {
    const own = await startGateway({ t, options: ["--realtime-connections", "20"] });
    const follow = async (key) => {
      const { id } = await trigger({ tags: ["a"] }, { to: own, key });
      const { position } = await poll("/realtime/v1/runs", { to: own, key, query: { tags: "a" } });
      return { id, live: (more) => poll("/realtime/v1/runs", { to: own, key, query: { tags: "a" }, position, live: true, ...more }) };
    };
    const { live } = await follow(keys.dev);
    for (let round = 0; round < 10; round++)
      await Promise.all(Array.from({ length: 40 }, async () => {
        const leaving = new AbortController();
        setTimeout(() => leaving.abort(), Math.random() * 30); // any moment of its life
        await live({ signal: leaving.signal }).catch(() => {});
      }));
    await isHeld(0, own);
    const { id, live: again } = await follow(keys.dev), statuses = [];
    const all = Array.from({ length: 25 }, async () => statuses.push((await again()).status));
    await until(() => statuses.length === 5, { what: "five refusals" });
    assert.deepEqual([statuses, await held(own)], [[429, 429, 429, 429, 429], 20]);
    const other = await follow(keys.prod), beside = other.live();
    await isHeld(21, own);
    await own.put(`/api/v1/runs/${id}/metadata`, { metadata: { go: 1 } });
    await own.put(`/api/v1/runs/${other.id}/metadata`, { metadata: { go: 1 } }, { key: keys.prod });
    await Promise.all(all);
    assert.deepEqual([statuses.filter((status) => status === 200).length, (await beside).status], [20, 200]);
    await own.stop();
  });

  test("must start again with a snapshot, and is told so by an array, only when retention has removed what it may have missed", async (t) => {
    const own = await startGateway({ t, options: ["--retain", "1s"] });
    const { id } = await trigger({}, { to: own });
    const path = "/realtime/v1/runs";
    const { position } = await poll(path, { to: own });
    const stays = await trigger({ delay: "1h" }, { to: own });
    const [ofOne, ofOther] = [await poll(`${path}/${stays.id}`, { to: own }), await poll(`${path}/${id}`, { to: own })];
    await own.post(`/api/v2/runs/${id}/cancel`);
    await until(async () => (await own.get(`/api/v3/runs/${id}`)).status === 404, { what: "retention removes the run" });
    const gone = await poll(path, { to: own, position, live: true });
    assert.deepEqual([gone.status, gone.json], [409, [{ headers: { control: "must-refetch" } }]]);
    assert.ok(gone.position.handle);
    const again = await poll(path, { to: own, position: { offset: "-1", handle: gone.position.handle } });
    assert.deepEqual([again.status, again.rows.map((row) => row.key)], [200, [stays.id]]);
    // A poll of one run cannot have missed others: it gets the current state, or 404.
    assert.deepEqual((await poll(`${path}/${stays.id}`, { to: own, position: ofOne.position })).json, [current]);
    assert.equal((await poll(`${path}/${id}`, { to: own, position: ofOther.position, live: true })).status, 404);
    const batch = { offset: ofOne.position.offset, handle: ofOne.position.handle.replace("-r-", "-b-") };
    assert.equal((await poll("/realtime/v1/batches/batch_x", { to: own, position: batch })).status, 404);
    await own.stop();
  });
});

describe("the SDK", () => {
  test("gets fewer columns, or all with their types when too many other polls skip different columns", async (t) => {
    const own = await startGateway({ t });
    const { id } = await trigger({ tags: ["narrow"] }, { to: own });
    const { position } = await poll("/realtime/v1/runs", { to: own, query: { tags: "narrow" } });
    const narrow = { to: own, query: { skipColumns: "number,isTest" } }, before = await poll(`/realtime/v1/runs/${id}`, { to: own });
    const others = Array.from({ length: 16 }, (_none, i) => poll("/realtime/v1/runs", { to: own, position, live: true,
      query: { tags: "narrow", skipColumns: ["payload", "output", "ttl", "error"].filter((_name, bit) => i >> bit & 1).concat("queuedAt").join() } }));
    await isHeld(16, own);
    const now = await poll(`/realtime/v1/runs/${id}`, narrow);
    assert.deepEqual(Object.keys(JSON.parse(now.headers.get("electric-schema"))), Object.keys(now.rows[0].value));
    assert.equal((await poll(`/realtime/v1/runs/${id}`, { ...narrow, position: before.position, live: true })).status, 429); // its client may not know the types of those columns
    const seen = await sdk.auth.withAuth({ baseURL: own.url, accessToken: keys.dev, secretKey: keys.dev }, async () => {
      for await (const run of sdk.runs.subscribeToRun(id, { skipColumns: ["number", "isTest"] })) return run;
    });
    assert.deepEqual([seen.id, seen.status, seen.isTest], [id, "QUEUED", false]);
    await own.put(`/api/v1/runs/${id}/metadata`, { metadata: { go: 1 } });
    await Promise.all(others);
    await own.stop();
  });

  test("starts again by itself when retention has removed what it may have missed", async (t) => {
    const own = await startGateway({ t, options: ["--retain", "1s"] }), known = own.port, elsewhere = await freePort();
    const at = async (port) => { await own.kill(); Object.assign(own, { port, url: `http://127.0.0.1:${port}`, http: new HttpClient(`http://127.0.0.1:${port}`, keys.dev) }); await own.restart(); };
    const { id } = await trigger({ tags: ["kept"], delay: "1h" }, { to: own });
    const seen = [];
    await sdk.auth.withAuth({ baseURL: own.url, accessToken: keys.dev, secretKey: keys.dev }, async () => {
      const subscription = sdk.runs.subscribeToRunsWithTag("kept");
      t.after(() => subscription.unsubscribe());
      void (async () => { for await (const run of subscription) seen.push(run.metadata?.n); })().catch((error) => seen.push(error));
      await until(() => seen.length === 1, { what: "the snapshot" });
    });
    await at(elsewhere); // an address that the SDK does not know
    const { id: gone } = await trigger({}, { to: own });
    await own.post(`/api/v2/runs/${gone}/cancel`);
    await until(async () => (await own.get(`/api/v3/runs/${gone}`)).status === 404, { what: "retention removes the run" });
    await own.put(`/api/v1/runs/${id}/metadata`, { metadata: { n: 1 } });
    await at(known);
    await until(() => seen.includes(1), { what: "what it missed" });
    assert.equal(await own.metric('runcast_resumes_total{result="purged"}'), 1);
    await own.put(`/api/v1/runs/${id}/metadata`, { metadata: { n: 2 } });
    await until(() => seen.includes(2), { what: "what comes then" });
    assert.deepEqual(seen, [undefined, 1, 2]);
    await own.stop();
  });
});

describe("clients", () => {
  test("before x-trigger-electric-version get the old header names", async () => {
    const { id } = await trigger();
    const answer = await poll(`/realtime/v1/runs/${id}`, { headers: {} });
    const shape = answer.headers.get("electric-shape-id"), offset = answer.headers.get("electric-chunk-last-offset");
    assert.ok(shape && offset);
    assert.equal(answer.headers.get("electric-handle"), null);
    const next = await poll(`/realtime/v1/runs/${id}`, { headers: {}, position: { offset, shape_id: shape } });
    assert.deepEqual(next.json, [current]);
  });

  test("can skip columns, except those that their SDK needs", async () => {
    const { id } = await trigger({}, { payload: "big" });
    const skipped = (answer) => columns.filter((name) => !(name in answer.rows[0].value));
    const everything = { skipColumns: columns.join(",") };
    const reserved = ["id", "taskIdentifier", "createdAt", "updatedAt", "friendlyId", "status"];
    const old = ["number", "isTest", "usageDurationMs", "costInCents", "baseCostInCents"];
    const without = (kept) => columns.filter((name) => !kept.includes(name));
    assert.deepEqual(skipped(await poll(`/realtime/v1/runs/${id}`, { query: { skipColumns: "payload, output,nonsense" } })), ["payload", "output"]);
    assert.deepEqual(skipped(await poll(`/realtime/v1/runs/${id}`, { query: everything })), without(reserved));
    const v3 = await poll(`/realtime/v1/runs/${id}`, { query: everything, headers: electric });
    assert.deepEqual(skipped(v3), without([...reserved, ...old]));
    assert.deepEqual(Object.keys(JSON.parse(v3.headers.get("electric-schema"))), Object.keys(v3.rows[0].value));
    const token = await publicToken(gateway, { scopes: ["read:runs"], skipColumns: ["metadata"] });
    assert.deepEqual(skipped(await poll(`/realtime/v1/runs/${id}`, { key: token, query: { skipColumns: "payload" } })), ["metadata"]);
  });

  test("can do what their scopes allow", async () => {
    const [tag, other] = [fresh("mine"), fresh("other")];
    const { id } = await trigger({ tags: [tag] }, { task: "scoped" });
    const batch = (await gateway.post("/api/v1/tasks/batch", { items: [{ task: "scoped" }] })).json;
    const paths = { run: `/realtime/v1/runs/${id}`, tag: `/realtime/v1/runs?tags=${other},${tag}`, all: "/realtime/v1/runs", batch: `/realtime/v1/batches/${batch.id}` };
    const cells = [
      ["read:runs", "run tag all batch"], ["read:all", "run tag all batch"], ["*:runs", "run tag all batch"], ["admin", "run tag all batch"],
      [`read:runs:${id}`, "run"], ["read:runs:run_other", ""], [`read:tags:${tag}`, "run tag"], ["read:tags", "run tag"],
      ["read:tags:zzz", ""], ["read:tasks:scoped", "run"], ["read:tasks:else", ""], [`read:batch:${batch.id}`, "batch"],
      ["read:batch:batch_other", ""], ["write:runs", ""], ["trigger:tasks:scoped", ""],
    ];
    for (const [scope, allowed] of cells) {
      const key = await publicToken(gateway, { scopes: [scope] });
      for (const [kind, path] of Object.entries(paths)) {
        const { status } = await poll(path, { key });
        assert.equal(status, allowed.split(" ").includes(kind) ? 200 : 403, `${scope} on ${kind}`);
      }
    }
  });

  test("are refused for the first fault: token, query, existence, scope; with CORS", async () => {
    const { id } = await trigger();
    const none = await publicToken(gateway, { scopes: ["write:runs"] });
    const cases = [
      ["/realtime/v1/runs/run_x?offset=bad", { key: "tr_dev_no" }, 401],
      ["/realtime/v1/runs/run_x", { key: keys.pat }, 401],
      ["/realtime/v1/runs?tags=a,,b", { key: none }, 400],
      ["/realtime/v1/runs?tags=", {}, 400],
      ["/realtime/v1/runs/run_x", { key: none, query: { offset: "12" } }, 400],
      ["/realtime/v1/runs/run_x", { key: none }, 404],
      ["/realtime/v1/batches/batch_x", { key: none }, 404],
      [`/realtime/v1/runs/${id}`, { key: none }, 403],
      ["/realtime/v1/runs", { key: none }, 403],
    ];
    for (const [path, more, status] of cases) {
      const answer = await poll(path, more);
      assert.equal(answer.status, status, `${path}: ${answer.text}`);
      assert.equal(answer.headers.get("access-control-allow-origin"), "*");
      assert.match(answer.headers.get("access-control-expose-headers"), /electric-offset.*electric-handle.*electric-schema.*electric-cursor.*electric-up-to-date/);
      if (status === 400) assert.match(answer.json.error, /^Query Error: /);
      if (status === 404) assert.equal(answer.headers.get("x-should-retry"), "false");
    }
  });

  test("of another environment get the same response as for a run that does not exist", async () => {
    const tag = fresh("same");
    const { id } = await trigger({ tags: [tag] });
    const batch = (await gateway.post("/api/v1/tasks/batch", { items: [{ task: "a" }] })).json;
    const { position } = await poll(`/realtime/v1/runs?tags=${tag}`);
    const strip = (answer) => [answer.status, answer.text];
    const foreign = { key: keys.prod };
    assert.deepEqual(strip(await poll(`/realtime/v1/runs/${id}`, foreign)), strip(await poll("/realtime/v1/runs/run_x", foreign)));
    assert.deepEqual(strip(await poll(`/realtime/v1/batches/${batch.id}`, foreign)), strip(await poll("/realtime/v1/batches/batch_x", foreign)));
    assert.deepEqual((await poll(`/realtime/v1/runs?tags=${tag}`, { ...foreign, position })).json, [current]);
    assert.deepEqual((await poll("/realtime/v1/runs", { ...foreign, position })).json, [current]);
  });
});
