// runs.v1 as text/event-stream, as curl -N and EventSource receive it.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { EventStream } from "../support/js/event_stream.mjs";
import { keys, startGateway, until } from "../support/js/gateway.mjs";
import { EventSubscriber } from "../support/js/http_subscribers.mjs";
import { addTag, begin, end, fresh, gateway, putMetadata, trigger } from "../support/js/realtime.mjs";
import { publicToken } from "../support/js/tokens.mjs";

before(begin);
after(end);

async function open(t, query, { to = gateway, key = keys.dev, last, headers = {} } = {}) {
  const url = new URL("/realtime/v1/events", to.url);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  const stream = await EventStream.open(url, { headers: {
    ...(key && { authorization: `Bearer ${key}` }), ...(last && { "last-event-id": last }), ...headers } });
  t.after(() => stream.cut());
  return stream;
}
const rowsOf = (event) => event.data.rows.map(([id, version, fields, whole]) => ({ id, version, fields, whole }));

describe("a stream", () => {
  test("starts with ok, then the snapshot, then every change, each with its position", async (t) => {
    const tag = fresh("tag");
    const { id } = await trigger({ tags: [tag] }, { payload: { a: 1 } });
    const stream = await open(t, { tags: tag });
    assert.equal(stream.headers.get("content-type"), "text/event-stream");
    assert.equal(stream.headers.get("cache-control"), "no-store");
    assert.equal(stream.headers.get("access-control-allow-origin"), "*");
    assert.deepEqual((await stream.next()).data, { op: "ok", id: 0, mode: "snapshot", count: 1 });
    const first = await stream.next();
    assert.equal(first.type, "rows");
    assert.deepEqual(rowsOf(first).map((row) => [row.id, row.version, row.whole, row.fields.payload]), [[id, 1, 1, { a: 1 }]]);
    assert.match(first.id, /^[0-9a-f]+\.(\d+)\.\1$/);
    const seq = await putMetadata(id, { step: 1 });
    const change = await stream.next();
    assert.equal(change.data.op, "patch");
    assert.deepEqual(rowsOf(change).map((row) => [row.id, row.version, Object.keys(row.fields).sort()]), [[id, 2, ["metadata", "status", "updatedAt"]]]);
    assert.equal(change.id.split(".")[1], String(seq));
  });

  test("selects a run, a batch, all of several tags, everything, or a task of these", async (t) => {
    const [a, b] = [fresh("a"), fresh("b")];
    const { id } = await trigger({ tags: [a, b] }, { task: "mail" });
    const other = await trigger({ tags: [a] }, { task: "print" });
    const batch = (await gateway.post("/api/v1/tasks/batch", { items: [{ task: "mail" }] })).json;
    const ids = async (query) => {
      const stream = await open(t, query);
      return rowsOf(await stream.next("rows")).map((row) => row.id);
    };
    assert.deepEqual(await ids({ run: id }), [id]);
    assert.deepEqual(await ids({ tags: `${a},${b}` }), [id]);
    assert.deepEqual(await ids({ tags: a }), [id, other.id]);
    assert.deepEqual(await ids({ tags: a, task: "print,fax" }), [other.id]);
    assert.deepEqual(await ids({ batch: batch.id }), [batch.runs[0].id]);
    assert.ok((await ids({ all: "1" })).includes(other.id));
    assert.deepEqual(await ids({ all: "1", since: "2999-01-01" }), []);
  });

  test("has the requested fields, without those that the token hides", async (t) => {
    const { id } = await trigger({}, { payload: 1 });
    const fields = async (query, more) => Object.keys(rowsOf(await (await open(t, { run: id, ...query }, more)).next("rows"))[0].fields);
    const key = await publicToken(gateway, { scopes: ["read:runs"], skipColumns: ["payload"] });
    assert.ok((await fields({})).includes("payload"));
    assert.ok(!(await fields({ fields: "-payload" })).includes("payload"));
    assert.deepEqual((await fields({ fields: "number" })).sort(), ["createdAt", "id", "number", "status", "tags", "taskIdentifier", "updatedAt"]);
    assert.ok(!(await fields({ fields: "payload,number" }, { key })).includes("payload"));
  });

  test("resumes at the last event id, across a kill", async (t) => {
    const own = await startGateway({ t });
    const { id } = await trigger({}, { to: own, payload: { not: "again" } });
    const stream = await open(t, { run: id }, { to: own });
    await stream.next("rows");
    await own.kill();
    await own.restart();
    await own.put(`/api/v1/runs/${id}/metadata`, { metadata: { kept: 1 } });
    const again = await open(t, { run: id }, { to: own, last: stream.id });
    assert.equal((await again.next("ok")).data.mode, "resume");
    const [row] = rowsOf(await again.next("rows"));
    assert.deepEqual([row.version, row.whole, row.fields.metadata, row.fields.payload], [2, undefined, { kept: 1 }, undefined]);
    const byQuery = await open(t, { run: id, from: stream.id }, { to: own });
    assert.equal((await byQuery.next("ok")).data.mode, "resume");
    await own.stop();
  });

  test("resumes in the middle of catching up: no row twice, and none counted as missed", async (t) => {
    const tag = fresh("halves"), ids = [];
    for (let i = 0; i < 12; i++) ids.push((await trigger({ tags: [tag] })).id);
    const reader = new EventSubscriber("reader", { port: gateway.port, token: keys.dev });
    t.after(() => reader.cut());
    const sub = reader.subscriptions.get(reader.subscribe({ tags: tag }));
    await reader.connect();
    await reader.wait(() => sub.live, "the snapshot");
    await reader.cut();

    const pad = "x".repeat(60_000); // one frame each
    let seq;
    for (const id of ids) seq = await putMetadata(id, { pad });
    const cutInTheMiddle = () => { if (!sub.live && sub.caughtUp.size > 2) reader.cut(); };
    reader.watchers.add(cutInTheMiddle);
    await reader.connect();
    await reader.wait(() => !reader.socket, "the middle");
    reader.watchers.delete(cutInTheMiddle);
    const half = sub.caughtUp.size;
    assert.ok(half < ids.length, "cut in the middle");

    await reader.connect();
    await reader.synced(seq);
    for (const id of ids) seq = await putMetadata(id, { n: 1 });
    await reader.synced(seq);
    assert.equal(reader.rows, 3 * ids.length);
    assert.equal(reader.skipped, 0);
    for (const id of ids) assert.deepEqual([reader.runs.get(id).version, reader.runs.get(id).fields.metadata], [3, { n: 1 }]);
  });

  test("starts with a snapshot if its position is not one of this history", async (t) => {
    const { id, seq } = await trigger();
    const first = await open(t, { run: id });
    const epoch = (await first.next("rows")).id.split(".")[0];
    for (const last of ["nonsense", "a.b.c", "0000.1.1", `${epoch}.${seq + 100000}.1`, `${epoch}.1.2`, `${epoch}.1`, `${epoch}.99999999999999999999.1`]) {
      const stream = await open(t, { run: id }, { last });
      assert.equal((await stream.next("ok")).data.mode, "snapshot", last);
      assert.equal(rowsOf(await stream.next("rows"))[0].whole, 1, last);
    }
  });

  test("delivers an event of megabytes whole, and continues", async (t) => {
    const tag = fresh("large"), text = "x".repeat(3_000_000);
    const { id } = await trigger({ tags: [tag] }, { payload: text });
    const stream = await open(t, { tags: tag });
    const first = await stream.next("rows");
    assert.ok(rowsOf(first)[0].fields.payload === text);
    assert.match(first.id, /^[0-9a-f]+\.(\d+)\.\1$/);
    const { seq } = await trigger({ tags: [tag] }, { payload: text });
    const live = await stream.next("rows");
    assert.ok(rowsOf(live)[0].fields.payload === text);
    assert.equal(live.id.split(".")[1], String(seq));
    await putMetadata(id, { step: 1 });
    assert.deepEqual(rowsOf(await stream.next("rows"))[0].fields.metadata, { step: 1 });
  });

  for (const [what, count] of [["a short value", 3], ["a long one", 20_000]])
    test(`delivers JSON unchanged, whatever line breaks are in ${what}`, async (t) => {
      const value = Array.from({ length: count }, (_none, i) => ({ "a\nb": i }));
      const pretty = JSON.stringify(value, null, 2);
      for (const end of ["\n", "\r\n", "\r"]) {
        const tag = fresh("lines"), live = await open(t, { tags: tag });
        await live.next("rows");
        const body = `{"payload":${pretty.replaceAll("\n", end)},"options":{"metadata":{${end}"a":${end}1},"tags":["${tag}"]}}`;
        const { status, json } = await gateway.post("/api/v1/tasks/lines/trigger", body);
        assert.equal(status, 200);
        for (const stream of [live, await open(t, { run: json.id })]) {
          const { fields } = rowsOf(await stream.next("rows"))[0];
          assert.deepEqual([fields.payload, fields.metadata], [value, { a: 1 }]);
        }
      }
    });

  test("skips states for a slow reader, but never the last one", async (t) => {
    const { id } = await trigger();
    const raw = await gateway.connect();
    t.after(() => raw.socket.destroy());
    await raw.send(`GET /realtime/v1/events?run=${id} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${keys.dev}\r\n\r\n`);
    raw.socket.pause();
    const pad = "x".repeat(100_000);
    const skipped = await gateway.metric("runcast_conflated_versions_total");
    for (let i = 1; i <= 150; i++) await putMetadata(id, { i, pad });
    raw.socket.resume();
    await until(() => raw.received.includes('"i":150'), { what: "the last state" });
    const text = raw.received.toString();
    const versions = [...text.matchAll(new RegExp(`\\["${id}",(\\d+),`, "g"))].map((match) => Number(match[1]));
    assert.equal(versions.at(-1), 151);
    assert.deepEqual(versions, [...versions].sort((x, y) => x - y));
    assert.ok(versions.length < 120, `${versions.length} of 151 versions were sent`);
    assert.equal(await gateway.metric("runcast_conflated_versions_total") - skipped, 151 - versions.length);
  });

  test("repeats its position while idle, so that it does not get old", async (t) => {
    const { id } = await trigger();
    const stream = await open(t, { run: id });
    const first = (await stream.next("rows")).id;
    const { seq } = await trigger();
    await until(() => stream.blocksWithoutData > 0, { timeoutMs: 20_000, what: "a bare id" });
    assert.ok(Number(stream.id.split(".")[1]) >= seq);
    assert.equal(stream.id.split(".")[0], first.split(".")[0]);
    assert.equal(stream.events.length, 2);
  });

  test("is notified when the gateway drains, and ends", async (t) => {
    const own = await startGateway({ t });
    const stream = await open(t, { all: "1" }, { to: own });
    await stream.next("rows");
    assert.equal(stream.retry, "1000");
    const stopped = own.stop();
    const { data } = await stream.next("drain");
    assert.deepEqual([data.op, stream.retry], ["drain", `${data.in}`]);
    assert.ok(data.in >= 0 && data.in < 4000, "each at a moment of its own");
    await stream.untilEnd();
    assert.ok(stream.clean);
    await stopped;
  });

  test("that is opened while the gateway drains gets a retry time if it is an EventSource, and is refused otherwise", async (t) => {
    const own = await startGateway({ t });
    const slow = await own.connect(); // the gateway drains until its body has arrived
    await slow.send("POST /api/v1/tasks/slow/trigger HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n" +
      `authorization: Bearer ${keys.dev}\r\ncontent-length: 2\r\n\r\n`);
    await own.get("/healthz");
    own.child.kill("SIGTERM");
    await until(() => own.stderr.includes("draining"));
    const source = await open(t, { all: "1" }, { to: own, headers: { accept: "text/event-stream" } });
    assert.equal(source.status, 200);
    assert.equal((await source.next("drain")).data.op, "drain");
    await source.untilEnd();
    assert.equal((await open(t, { all: "1" }, { to: own })).status, 503);
    await slow.send("{}");
    assert.equal((await own.ended()).code, 0);
  });

  test("is notified of what retention removed", async (t) => {
    const own = await startGateway({ t, options: ["--retain", "1s"] });
    const { id } = await trigger({}, { to: own });
    const stream = await open(t, { all: "1" }, { to: own });
    const { id: before } = await stream.next("rows");
    await own.post(`/api/v2/runs/${id}/cancel`);
    const floor = await stream.next("floor");
    assert.ok(Date.parse(floor.data.updatedAt) > 0);
    const again = await open(t, { all: "1" }, { to: own, last: before });
    assert.equal((await again.next("ok")).data.mode, "snapshot");
    await own.stop();
  });

  test("shares one encoding among all that see the same", async (t) => {
    const tag = fresh("shared");
    const { id } = await trigger({ tags: [tag] });
    const streams = [];
    for (let i = 0; i < 10; i++) streams.push(await open(t, { tags: tag }));
    for (const stream of streams) await stream.next("rows");
    const before = await gateway.metric('runcast_frames_total{kind="shared"}');
    await addTag(id, fresh("more"));
    const data = await Promise.all(streams.map(async (stream) => JSON.stringify((await stream.next("rows")).data)));
    assert.equal(new Set(data).size, 1);
    assert.equal(await gateway.metric('runcast_frames_total{kind="shared"}') - before, 10);
  });
});

describe("a token", () => {
  test("can be in the query, and is not in the log", async (t) => {
    const own = await startGateway({ t, options: ["--log-level", "debug"] });
    const stream = await open(t, { all: "1", token: keys.dev }, { to: own, key: null });
    await stream.next("rows");
    await own.stop();
    assert.ok(!own.stderr.includes(keys.dev) && !own.stdout.includes("token="));
  });

  test("that expires ends the stream with a reason", async (t) => {
    const key = await publicToken(gateway, { scopes: ["read:runs"], expiresInS: 3 });
    const stream = await open(t, { all: "1", token: key }, { key: null });
    await stream.next("rows");
    assert.equal((await stream.next("error")).data.code, "token_expired");
    await stream.untilEnd();
  });

  test("decides what can be watched", async (t) => {
    const [mine, other] = [fresh("mine"), fresh("other")];
    const { id } = await trigger({ tags: [mine] }, { task: "scoped" });
    const batch = (await gateway.post("/api/v1/tasks/batch", { items: [{ task: "scoped" }] })).json;
    const queries = { run: { run: id }, tag: { tags: `${mine},${other}` }, all: { all: "1" }, batch: { batch: batch.id } };
    const cells = [["read:runs", "run tag all batch"], ["admin", "run tag all batch"], [`read:runs:${id}`, "run"], [`read:tags:${mine}`, "run tag"],
      ["read:tasks:scoped", "run"], [`read:batch:${batch.id}`, "batch"], ["write:runs", ""], ["read:tags:zzz", ""]];
    for (const [scope, allowed] of cells) {
      const key = await publicToken(gateway, { scopes: [scope] });
      for (const [kind, query] of Object.entries(queries)) {
        const { status } = await open(t, query, { key });
        assert.equal(status, allowed.split(" ").includes(kind) ? 200 : 403, `${scope} on ${kind}`);
      }
    }
  });

  test("or a query that is invalid is refused before the stream begins, with the reason", async (t) => {
    const { id } = await trigger();
    const cases = [
      [{ all: "1" }, { key: null }, 401], [{ all: "1" }, { key: "tr_dev_no" }, 401], [{ all: "1" }, { key: keys.pat }, 401],
      [{}, {}, 400], [{ run: id, all: "1" }, {}, 400], [{ tags: "" }, {}, 400], [{ tags: "a,,b" }, {}, 400],
      [{ tags: Array.from({ length: 17 }, (_none, i) => `t${i}`).join(",") }, {}, 400], [{ all: "1", since: "soon" }, {}, 400],
      [{ all: "1", fields: "nonsense" }, {}, 400], [{ run: "run_that_is_not" }, {}, 404], [{ run: id }, { key: keys.prod }, 404],
    ];
    for (const [query, more, status] of cases) {
      const stream = await open(t, query, more);
      assert.equal(stream.status, status, `${JSON.stringify(query)} ${stream.text}`);
      assert.ok(stream.json.error.length > 5);
      assert.equal(stream.headers.get("access-control-allow-origin"), "*");
    }
    const [foreign, unknown] = [await open(t, { run: id }, { key: keys.prod }), await open(t, { run: "run_x" }, { key: keys.prod })];
    assert.equal(foreign.text, unknown.text);
  });
});
