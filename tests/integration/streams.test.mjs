// Streams of runs: what tasks write while they run and others read, and what others write to them.
import assert from "node:assert/strict";
import http from "node:http";
import { after, before, describe, test } from "node:test";

import { EventStream } from "../support/js/event_stream.mjs";
import { keys, sleep, startGateway, until } from "../support/js/gateway.mjs";
import { begin, end, fresh, gateway, trigger } from "../support/js/realtime.mjs";
import { publicToken } from "../support/js/tokens.mjs";

before(begin);
after(end);

const pathOf = (run, key) => `/realtime/v1/streams/${run}/${key}`;
const cancel = (id, to = gateway) => to.post(`/api/v2/runs/${id}/cancel`, {});
const append = (run, key, part, headers = {}, to = gateway) =>
  to.post(pathOf(run, `self/${key}/append`), part, { headers: { "content-type": "text/plain", ...headers } });

async function read(t, run, key, { to = gateway, token = keys.dev, last, headers = {} } = {}) {
  const stream = await EventStream.open(to.url + pathOf(run, key), { headers: {
    authorization: `Bearer ${token}`, ...(last !== undefined && { "last-event-id": String(last) }), ...headers } });
  t.after(() => stream.cut());
  return stream;
}

/** A body that is sent step by step: { send, end, cut, answer }. */
function pipe(run, key, { to = gateway, target = "self", headers = {} } = {}) {
  const request = http.request(to.url + pathOf(run, `${target}/${key}`), { method: "POST",
    headers: { authorization: `Bearer ${keys.dev}`, "content-type": "application/json", ...headers } });
  request.flushHeaders();
  const answer = new Promise((resolve, reject) => {
    request.on("error", reject);
    request.on("response", (response) => { response.resume(); response.on("end", () => resolve(response.statusCode)); });
  });
  answer.catch(() => {});
  return { send: (text) => request.write(text), end: (text) => { request.end(text); return answer; }, cut: () => request.destroy(), answer, request };
}
const lastChunk = async (run, key, client) => Number((await gateway.http.request("HEAD", pathOf(run, `self/${key}`),
  { headers: { ...(client && { "x-client-id": client }) } })).headers["x-last-chunk-index"]);
const row = async (id) => (await gateway.get(`/realtime/v1/runs/${id}?offset=-1`)).json[0].value;
const lines = (count, from = 0) => Array.from({ length: count }, (_, i) => `{"n":${from + i}}\n`).join("");
const numberOf = (event) => Number(event.id.split("-")[1]);

describe("writing", () => {
  test("lists the stream in the run, which changes the run, once", async (t) => {
    const { id } = await trigger();
    const changes = await EventStream.open(`${gateway.url}/realtime/v1/events?run=${id}&fields=realtimeStreams`, { headers: { authorization: `Bearer ${keys.dev}` } });
    t.after(() => changes.cut());
    await changes.next("rows");
    const made = await gateway.put(pathOf(id, "self/tokens"));
    assert.equal(made.status, 202);
    assert.deepEqual(made.json, { version: "v1" });
    assert.deepEqual((await changes.next("rows")).data.rows[0][2].realtimeStreams, ["tokens"]);
    assert.equal((await gateway.put(pathOf(id, "self/tokens"))).status, 202);
    assert.equal((await append(id, 'a"b', "x")).status, 200);
    const [, version, fields] = (await changes.next("rows")).data.rows[0];
    assert.equal(version, 3);
    assert.deepEqual(fields.realtimeStreams, ["tokens", 'a"b']);
    assert.equal((await row(id)).realtimeStreams, '["tokens","a\\"b"]');
  });

  test("shows every line of a body as soon as it is complete", async (t) => {
    const { id } = await trigger();
    const stream = await read(t, id, "k");
    const body = pipe(id, "k");
    body.send('{"a":1}\n');
    assert.deepEqual((await stream.next()).data, { a: 1 });
    body.send('"tw');
    body.send('o"\r\n\n 3 \n[4');
    assert.deepEqual([(await stream.next()).data, (await stream.next()).data], ["two", 3]);
    assert.equal(await body.end("]"), 200);
    assert.deepEqual((await stream.next()).data, [4]);
    assert.deepEqual(stream.events.map(numberOf), [0, 1, 2, 3]);
    assert.match(stream.events[0].id, /^1\d{12}-0$/);
    assert.deepEqual(JSON.parse((await row(id)).realtimeStreams), ["k"]);
  });

  test("accepts a part as one text, and the same part only once", async (t) => {
    const { id } = await trigger();
    assert.deepEqual((await append(id, "k", "one\ntwo", { "x-part-id": "p1" })).json, { ok: true });
    assert.deepEqual((await append(id, "k", "one\ntwo", { "x-part-id": "p1" })).json, { ok: true });
    assert.deepEqual((await append(id, "k", '{"a":1}')).json, { ok: true });
    const stream = await read(t, id, "k");
    assert.deepEqual([(await stream.next()).data, (await stream.next()).data], ["one\ntwo", '{"a":1}']);
  });

  test("reports to a writer how far it got, and accepts nothing twice", async (t) => {
    const { id } = await trigger();
    assert.equal(await lastChunk(id, "k"), -1);
    const first = pipe(id, "k", { headers: { "x-client-id": "w1" } });
    first.send(lines(3) + '{"n":3');
    await until(async () => await lastChunk(id, "k", "w1") === 2, { what: "three chunks" });
    first.cut();
    assert.equal(await lastChunk(id, "k", "w2"), -1);
    await until(() => gateway.metric('runcast_stream_connections{kind="writer"}').then((n) => n === 0), { what: "no writer" });
    assert.equal(await pipe(id, "k", { headers: { "x-client-id": "w1", "x-resume-from-chunk": "1" } }).end(lines(4, 1)), 200);
    assert.equal(await pipe(id, "k", { headers: { "x-client-id": "w2" } }).end(lines(1, 100)), 200);
    assert.deepEqual([await lastChunk(id, "k", "w1"), await lastChunk(id, "k", "w2")], [4, 0]);
    const stream = await read(t, id, "k");
    await until(() => stream.events.length === 6, { what: "six chunks" });
    assert.deepEqual(stream.events.map((event) => event.data.n), [0, 1, 2, 3, 4, 100]);
  });

  test("accepts everything from writers without a client id", async (t) => {
    const { id } = await trigger();
    const one = pipe(id, "k"), other = pipe(id, "k");
    one.send('"a"\n');
    other.send('"b"\n');
    await until(async () => (await gateway.metric('runcast_stream_connections{kind="writer"}')) === 2, { what: "two writers" });
    assert.deepEqual([await one.end(), await other.end()], [200, 200]);
    assert.equal(await pipe(id, "k").end('"c"\n"d"\n'), 200); // a second attempt of the task, by SDK 3.x
    const stream = await read(t, id, "k");
    await until(() => stream.events.length === 4, { what: "four chunks" });
    assert.deepEqual(stream.events.map((event) => event.data).sort(), ["a", "b", "c", "d"]);
    const counting = { "x-resume-from-chunk": "0" };
    for (let i = 0; i < 2; i++) assert.equal(await pipe(id, "counted", { headers: counting }).end(lines(3)), 200);
    assert.equal(await lastChunk(id, "counted"), 2);
    const counted = await read(t, id, "counted", { headers: { "timeout-seconds": "1" } });
    await counted.untilEnd();
    assert.equal(counted.events.length, 3);
  });

  test("can go to the parent or the root of the run", async (t) => {
    const root = await trigger(), parent = await trigger({ parentRunId: root.id }), child = await trigger({ parentRunId: parent.id });
    assert.equal((await gateway.put(pathOf(child.id, "parent/p"))).status, 202);
    assert.equal((await gateway.put(pathOf(child.id, "root/r"))).status, 202);
    assert.equal(await pipe(child.id, "p", { target: "parent" }).end("1\n"), 200);
    assert.deepEqual((await (await read(t, parent.id, "p")).next()).data, 1);
    assert.deepEqual([await row(root.id), await row(parent.id), await row(child.id)].map((one) => one.realtimeStreams), ['["r"]', '["p"]', "[]"]);
    assert.equal((await gateway.put(pathOf(root.id, "parent/own"))).status, 202);
    assert.equal((await row(root.id)).realtimeStreams, '["r","own"]');
  });

  test("ends with the run", async () => {
    const { id } = await trigger();
    await gateway.put(pathOf(id, "self/k"));
    await cancel(id);
    assert.equal((await gateway.put(pathOf(id, "self/k"))).status, 400);
    assert.match((await gateway.put(pathOf(id, "self/k"))).json.error, /completed run/);
    assert.equal((await append(id, "k", "x")).status, 400);
    assert.equal(await pipe(id, "k").end("1\n"), 400);
    assert.equal((await gateway.post(pathOf(id, "input/k"), { data: 1 })).status, 400);
  });

  test("refuses invalid chunks, keys, targets and numbers", async () => {
    const { id } = await trigger();
    assert.equal(await pipe(id, "k").end(Buffer.from([0x22, 0xff, 0x22, 0x0a])), 400);
    assert.equal(await pipe(id, "k").end(`"${"x".repeat(1 << 20)}"`), 413);
    assert.equal(await pipe(id, "k").end(`${"\r".repeat(1001)}1\n`), 400); // each would make a line of the event
    assert.equal(await pipe(id, "returns").end(`${"\r".repeat(1000)}1\r\n`), 200);
    assert.equal((await append(id, "k", "x".repeat((512 << 10) + 1))).status, 413);
    assert.equal((await append(id, "k", "x".repeat(512 << 10))).status, 200);
    assert.equal((await append(id, "k", "")).status, 400);
    assert.equal(await pipe(id, "k", { headers: { "x-resume-from-chunk": "-1" } }).end("1\n"), 400);
    assert.equal(await pipe(id, "k", { headers: { "x-client-id": "c".repeat(129) } }).end("1\n"), 400);
    assert.equal((await gateway.put(pathOf(id, "nobody/k"))).status, 400);
    for (const key of ["a%0ab", "k".repeat(257), "%7f"]) assert.equal((await gateway.put(pathOf(id, `self/${key}`))).status, 400);
    assert.equal((await gateway.get(pathOf(id, "self/k"))).status, 405);
    assert.deepEqual(JSON.parse((await row(id)).realtimeStreams), ["k", "returns"]);
  });

  test("cannot forge events with line breaks in a chunk", async (t) => {
    const { id } = await trigger();
    assert.equal(await pipe(id, "k").end('"a"\rid: 9-9\revent: error\r"b"\n'), 200);
    const answer = await fetch(gateway.url + pathOf(id, "k"), { headers: { authorization: `Bearer ${keys.dev}`, "timeout-seconds": "1" } });
    const text = await answer.text();
    assert.match(text, /^id: \d+-0\ndata: "a"\ndata: id: 9-9\ndata: event: error\ndata: "b"\n\n$/);
  });
});

describe("reading", () => {
  test("continues after the last chunk that was read", async (t) => {
    const { id } = await trigger();
    await pipe(id, "k").end(lines(5));
    const whole = await read(t, id, "k");
    await until(() => whole.events.length === 5, { what: "five chunks" });
    assert.equal(whole.headers.get("content-type"), "text/event-stream");
    assert.equal(whole.headers.get("x-stream-version"), null);
    const from = async (last, headers) => { const stream = await read(t, id, "k", { last, headers }); return (await stream.next()).data.n; };
    assert.equal(await from(whole.events[2].id), 3);
    assert.equal(await from(1), 2); // streams.read with startIndex: 2
    assert.equal(await from("1-3"), 0); // of an earlier life of the gateway
    assert.equal(await from(777), 0);
    assert.equal(await from("nonsense"), 0);
    const latest = await read(t, id, "k", { headers: { "x-trigger-stream-start": "latest" } });
    const resumed = await read(t, id, "k", { last: whole.events[4].id });
    await pipe(id, "k", { headers: { "x-client-id": "b" } }).end(lines(1, 5));
    for (const stream of [latest, resumed]) assert.deepEqual([(await stream.next()).data.n, stream.events.length], [5, 1]);
  });

  test("waits for a stream that does not exist yet", async (t) => {
    const { id } = await trigger();
    const stream = await read(t, id, "later");
    assert.equal((await row(id)).realtimeStreams, "[]");
    await append(id, "later", "x");
    assert.equal((await stream.next()).data, "x");
  });

  test("ends when no chunk arrives for the requested time", async (t) => {
    const { id } = await trigger();
    for (const seconds of ["0", "601", "x", "-1"])
      assert.equal((await read(t, id, "k", { headers: { "timeout-seconds": seconds } })).status, 400);
    const stream = await read(t, id, "k", { headers: { "timeout-seconds": "1" } });
    await stream.untilEnd();
    assert.ok(stream.clean);
  });

  test("ends with a terminator when the run has ended and everything was read", async (t) => {
    const { id } = await trigger();
    await append(id, "k", "x");
    const early = await read(t, id, "k");
    await early.next();
    await cancel(id);
    await early.untilEnd();
    const late = await read(t, id, "k");
    await late.untilEnd();
    assert.ok(early.clean && late.clean);
    assert.deepEqual(late.events.map((event) => event.data), ["x"]);
  });

  test("gets all of many short chunks", async (t) => {
    const { id } = await trigger();
    await pipe(id, "k").end(lines(5000));
    const stream = await read(t, id, "k");
    await until(() => stream.events.length === 5000, { what: "all chunks" });
    assert.deepEqual(stream.events.map((event) => event.data.n), Array.from({ length: 5000 }, (_, n) => n));
  });

  const chunk = (n) => `"${n}:${"x".repeat(20_000)}"\n`;
  const writeLong = async (id, count, to = gateway) => {
    for (let i = 0; i < count; i += 100)
      assert.equal(await pipe(id, "k", { to, headers: { "x-client-id": `w${i}` } }).end(Array.from({ length: 100 }, (_, j) => chunk(i + j)).join("")), 200);
  };

  test("is refused if its chunks were discarded, and can ask for those that are kept", async (t) => {
    const { id } = await trigger();
    await writeLong(id, 500);
    assert.ok(await gateway.metric("runcast_stream_bytes") < 8 << 20);
    const missed = await gateway.metric('runcast_stream_chunks_total{result="missed"}');
    const { status, json, headers } = await gateway.get(pathOf(id, "k"));
    const first = Number(headers["x-stream-first-chunk"]);
    assert.equal(status, 410);
    assert.ok(first > 250 && first < 350, `${first}`);
    assert.match(json.error, new RegExp(`before number ${first} were discarded .*Last-Event-ID: ${first - 1}`));
    assert.equal(await gateway.metric('runcast_stream_chunks_total{result="missed"}'), missed + first);
    for (const last of [0, first - 2, 5000]) assert.equal((await read(t, id, "k", { last })).status, 410, `${last}`);
    const rest = await read(t, id, "k", { last: first - 1 }), latest = await read(t, id, "k", { headers: { "x-trigger-stream-start": "latest" } });
    await until(() => rest.events.length === 500 - first, { what: "the rest" });
    assert.equal(numberOf(rest.events[0]), first);
    assert.equal(latest.events.length, 0);
  });

  test("slowly delays no other reader, and is cut where chunks are missing", async (t) => {
    const { id } = await trigger();
    const socket = await gateway.connect();
    t.after(() => socket.destroy());
    socket.pause();
    await socket.send(`GET ${pathOf(id, "k")} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${keys.dev}\r\n\r\n`);
    await until(() => gateway.metric('runcast_stream_connections{kind="reader"}').then((n) => n > 0), { what: "the reader" });
    await writeLong(id, 2000);
    assert.ok(await gateway.metric("runcast_stream_bytes") < 16 << 20);
    const gone = new Promise((resolve) => socket.socket.once("close", resolve));
    let text = "";
    socket.socket.on("data", (piece) => { text += piece; });
    socket.resume();
    await gone;
    const numbers = [...text.matchAll(/id: \d+-(\d+)\n/g)].map((match) => Number(match[1]));
    assert.deepEqual(numbers, numbers.map((_, i) => i), "without a gap");
    assert.ok(numbers.length < 2000);
    assert.doesNotMatch(text, /\r\n0\r\n\r\n$/, "not ended in order");
    assert.equal((await read(t, id, "k", { last: numbers.at(-1) })).status, 410);
  });

  test("that reads nothing causes no turns of the loop, also after the time for which it waits for a chunk", async (t) => {
    const own = await startGateway({ t, options: ["--stream-bytes", "16m"] });
    const { id } = await trigger({}, { to: own }), socket = await own.connect();
    t.after(() => socket.destroy());
    socket.pause();
    await socket.send(`GET ${pathOf(id, "k")} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${keys.dev}\r\ntimeout-seconds: 1\r\n\r\n`);
    await until(() => own.metric('runcast_stream_connections{kind="reader"}').then((n) => n > 0), { what: "the reader" });
    for (let i = 0; i < 30; i++) assert.equal((await append(id, "k", "x".repeat(500_000), {}, own)).status, 200);
    const turns = () => own.metric("runcast_loop_turn_cpu_seconds_count");
    await sleep(1500); // the reader's time
    const before = await turns();
    await sleep(1000); // few other timers expire
    const count = await turns() - before;
    assert.ok(count < 100, `${count} turns`);
    assert.equal(await own.metric('runcast_stream_connections{kind="reader"}'), 1);
    await own.stop();
  });

  test("of an ended run gets 410 for a stream that was lost", async (t) => {
    const own = await startGateway({ t });
    const { id } = await trigger({}, { to: own }), other = await trigger({}, { to: own });
    await append(id, "k", "x", {}, own);
    await cancel(id, own);
    assert.equal((await (await read(t, id, "k", { to: own })).next()).data, "x");
    await own.kill();
    await own.restart();
    const { status, json } = await own.get(pathOf(id, "k"));
    assert.deepEqual([status, /restart of the gateway/.test(json.error)], [410, true]);
    const never = await read(t, id, "never-written", { to: own });
    await never.untilEnd();
    assert.ok(never.clean && never.events.length === 0);
    const executes = await read(t, other.id, "later", { to: own });
    await append(other.id, "later", "y", {}, own);
    assert.equal((await executes.next()).data, "y");
    await own.stop();
  });
});

describe("input that is written to a run", () => {
  test("arrives in the second format, in order, and does not change the run", async (t) => {
    const { id } = await trigger();
    const before = (await row(id)).updatedAt;
    const stream = await read(t, id, "input/chat");
    assert.equal(stream.headers.get("x-stream-version"), "v2");
    const values = [{ text: "hi \"you\"\n" }, "5", 5, null, [1]];
    for (const data of values) assert.deepEqual((await gateway.post(pathOf(id, "input/chat"), { data })).json, { ok: true });
    for (const [n, value] of values.entries()) {
      const event = await stream.next("batch");
      const [record] = event.data.records;
      assert.equal(record.seq_num, n);
      assert.equal(event.id, String(n));
      const body = JSON.parse(record.body);
      assert.match(body.id, /^inp_/);
      assert.deepEqual(typeof value === "string" ? JSON.parse(body.data) : body.data, value);
    }
    const later = await read(t, id, "input/chat", { last: 3 });
    assert.equal((await later.next("batch")).data.records[0].seq_num, 4);
    assert.equal((await read(t, id, "chat", { headers: { "timeout-seconds": "1" } })).events.length, 0);
    const now = await row(id);
    assert.deepEqual([now.updatedAt, now.realtimeStreams], [before, "[]"]);
    for (const body of ["", "[1]", "{", '{"data":1,"data":2}']) assert.equal((await gateway.post(pathOf(id, "input/chat"), body)).status, 400);
    assert.equal((await gateway.post(pathOf(id, "input/chat"), { data: "x".repeat(128 << 10) })).status, 413);
  });
});

describe("credentials", () => {
  const calls = (id) => ({
    read: () => ["GET", pathOf(id, "k"), undefined, { "timeout-seconds": "1" }],
    readInput: () => ["GET", pathOf(id, "input/k"), undefined, { "timeout-seconds": "1" }],
    create: () => ["PUT", pathOf(id, "self/k")],
    append: () => ["POST", pathOf(id, "self/k/append"), "x"],
    pipe: () => ["POST", pathOf(id, "self/k"), "1\n"],
    probe: () => ["HEAD", pathOf(id, "self/k")],
    send: () => ["POST", pathOf(id, "input/k"), { data: 1 }],
  });
  const call = (key, [method, target, body, headers]) => gateway.http.request(method, target, { key, body, headers });

  test("reading needs the scopes of the run, sending its own scope, and writing the key", async () => {
    const tag = fresh("tag");
    const { id } = await trigger({ tags: [tag] });
    const all = calls(id);
    const readers = { read: 200, readInput: 200, create: 401, append: 401, pipe: 401, probe: 401, send: 403 };
    const senders = { ...readers, read: 403, readInput: 403, send: 200 };
    const cases = [
      [["read:runs"], readers], [[`read:runs:${id}`], readers], [[`read:tags:${tag}`], readers],
      [[`write:inputStreams:${id}`], senders], [["write:inputStreams"], senders],
      [["write:inputStreams:run_other", "read:runs:run_other", "write:runs"], { ...senders, send: 403 }],
    ];
    await cancel(id); // so that readers finish at once
    for (const [scopes, expected] of cases) {
      const key = await publicToken(gateway, { scopes });
      for (const [name, status] of Object.entries(expected)) {
        const answer = await call(key, all[name]());
        assert.equal(answer.status, name === "send" && status === 200 ? 400 : status, `${scopes} ${name}: ${answer.text}`);
      }
    }
    for (const key of ["tr_dev_wrong", null]) for (const one of Object.values(all)) assert.equal((await call(key, one())).status, 401);
    const expired = await publicToken(gateway, { scopes: ["read:runs"], expiresInS: -10 });
    assert.equal((await call(expired, all.read())).status, 401);
  });

  test("for another environment's run responses are the same as for one that never existed", async () => {
    const { id } = await trigger();
    await append(id, "k", "secret");
    await gateway.post(pathOf(id, "input/k"), { data: "secret" });
    const never = `${id.slice(0, -4)}zzzz`;
    for (const name of Object.keys(calls(id))) {
      const [foreign, unknown] = [await call(keys.prod, calls(id)[name]()), await call(keys.prod, calls(never)[name]())];
      assert.equal(foreign.status, 404, name);
      delete foreign.headers.date; delete unknown.headers.date;
      assert.deepEqual([foreign.text, foreign.headers], [unknown.text, unknown.headers], name);
    }
    const long = `run_${"a".repeat(60)}`;
    for (const name of Object.keys(calls(id))) assert.equal((await call(keys.dev, calls(long)[name]())).status, 404, name);
  });

  test("reading ends when the token expires, without a sign that this was the end", async (t) => {
    const { id } = await trigger();
    const stream = await read(t, id, "k", { token: await publicToken(gateway, { scopes: ["read:runs"], expiresInS: 2 }) });
    await stream.untilEnd();
    assert.ok(stream.error && !stream.clean);
  });
});

describe("limits", () => {
  test("keep an environment's streams within their memory: the oldest are discarded first", async (t) => {
    const own = await startGateway({ t, options: ["--stream-memory", "1m"] });
    const { id } = await trigger({}, { to: own });
    for (let i = 0; i < 100; i++) await append(id, `k${i}`, "x".repeat(50_000), {}, own);
    assert.ok(await own.metric("runcast_stream_bytes") <= 1 << 20);
    assert.ok(await own.metric("runcast_streams") < 25);
    assert.equal((await append(id, "one-more", "x", {}, own)).status, 422);
    await cancel(id, own);
    assert.equal((await read(t, id, "k0", { to: own })).status, 410);
    assert.equal((await (await read(t, id, "k99", { to: own })).next()).data.length, 50_000);
    await own.stop();
  });
});

describe("the limit of one stream", () => {
  test("is a setting, within the memory of its environment", async (t) => {
    const own = await startGateway({ t, options: ["--stream-bytes", "64k"] });
    const { id } = await trigger({}, { to: own });
    for (let i = 0; i < 20; i++) await append(id, "k", "x".repeat(10_000), {}, own);
    assert.ok(await own.metric("runcast_stream_bytes") <= 64 << 10);
    assert.equal((await own.get(pathOf(id, "k"))).headers["x-stream-first-chunk"], "14");
    await own.stop();
  });
});

describe("many environments", () => {
  test("of one project share twice the memory of one, and the largest makes room", async (t) => {
    const own = await startGateway({ t, options: ["--stream-memory", "1m"] });
    const all = [keys.dev, keys.staging, keys.prod].map((key) => ({ key }));
    for (const branch of ["a", "b"]) {
      const made = await own.post(`/api/v1/projects/${keys.ref}/branches`, { env: "preview", branch }, { key: keys.pat });
      assert.ok(made.status < 300, made.text);
      all.push({ key: keys.preview, headers: { "x-trigger-branch": branch } });
    }
    for (const env of all) {
      env.id = (await own.post("/api/v1/tasks/t/trigger", { payload: "1", options: {} }, env)).json.id;
      for (let i = 0; i < 22; i++)
        assert.equal((await own.post(pathOf(env.id, "self/k/append"), "x".repeat(50_000), env)).status, 200);
    }
    const bytes = await own.metric("runcast_stream_bytes");
    assert.ok(bytes > 1.8 * (1 << 20) && bytes <= 2 << 20, `${bytes} bytes`);
    await own.stop();
  });

  test("of two projects with many branches discard no stream of a third one, nor of their own prod", async (t) => {
    const own = await startGateway({ t, options: ["--stream-memory", "1m"] }), [{ slug }] = (await own.get("/api/v1/orgs", { key: keys.pat })).json;
    const projects = [];
    for (const name of ["Victim", "One", "Two"]) {
      const made = await own.post(`/api/v1/orgs/${slug}/projects`, { name }, { key: keys.pat });
      assert.equal(made.status, 200, made.text);
      const keyOf = async (env) => (await own.get(`/api/v1/projects/${made.json.externalRef}/${env}`, { key: keys.pat })).json.apiKey;
      projects.push({ ref: made.json.externalRef, prod: { key: await keyOf("prod") }, preview: await keyOf("preview") });
    }
    const write = async (env, parts) => {
      env.id ??= (await own.post("/api/v1/tasks/t/trigger", { payload: "1", options: {} }, env)).json.id;
      for (let i = 0; i < parts; i++) assert.equal((await own.post(pathOf(env.id, "self/k/append"), "x".repeat(45_000), env)).status, 200);
    };
    const statusOf = async (env) => { // a stream that has all its chunks is 200, and ends because its run has finished
      assert.equal((await own.post(`/api/v2/runs/${env.id}/cancel`, {}, env)).status, 200);
      return (await own.get(pathOf(env.id, "k"), env)).status;
    };
    const [{ prod: victim }, ...others] = projects;
    await write(victim, 18);
    for (const { prod } of others) await write(prod, 4);
    for (const { ref, preview } of others)
      for (let i = 0; i < 11; i++) {
        const headers = { "x-trigger-branch": `branch-${i}` };
        assert.equal((await own.post(`/api/v1/projects/${ref}/branches`, { env: "preview", branch: `branch-${i}` }, { key: keys.pat })).status, 200);
        await write({ key: preview, headers }, 4);
      }
    assert.ok(await own.metric("runcast_stream_bytes") <= 4 << 20);
    for (const { prod } of projects) assert.equal(await statusOf(prod), 200, "nothing of it was discarded");
    await own.stop();
  });
});

describe("a restart", () => {
  test("cuts readers and refuses writers, which come back: names are kept, contents are not", async (t) => {
    const own = await startGateway({ t });
    const { id } = await trigger({}, { to: own });
    const writer = pipe(id, "k", { to: own });
    const reader = await read(t, id, "k", { to: own });
    writer.send(lines(3));
    await until(() => reader.events.length === 3, { what: "three chunks" });
    const stopped = own.stop();
    assert.equal(await writer.answer, 503);
    await reader.untilEnd();
    assert.ok(reader.error && !reader.clean);
    await stopped;
    await own.restart();
    assert.deepEqual((await own.get(`/realtime/v1/runs/${id}?offset=-1`)).json[0].value.realtimeStreams, '["k"]');
    const again = await read(t, id, "k", { to: own, last: reader.id });
    await pipe(id, "k", { to: own }).end('"new"\n');
    assert.equal((await again.next()).data, "new");
    assert.equal(numberOf(again.events[0]), 0);
    await own.stop();
  });
});
