// Values of users: whatever JSON.parse accepts is accepted, stored and returned byte for byte, wherever such a value
// travels. Half of a surrogate pair, as at the end of "I am 😀".slice(0, 6), is the value that UTF-8 cannot represent.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { createRequire } from "node:module";
import { after, before, describe, test } from "node:test";
import { isDeepStrictEqual } from "node:util";

import { EventStream } from "../support/js/event_stream.mjs";
import { keys, startGateway, until } from "../support/js/gateway.mjs";
import { chooseSeed, Random } from "../support/js/random.mjs";
import { RunsSocket } from "../support/js/runs.mjs";
import { publicToken } from "../support/js/tokens.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

const sdks = Object.fromEntries([["4.8.3", "sdk-v4", "@trigger.dev/sdk"], ["3.3.17", "sdk-v3", "@trigger.dev/sdk/v3"]].map(([version, folder, name]) =>
  [version, createRequire(new URL(`../conformance/${folder}/x.js`, import.meta.url))(name)]));
const signedIn = { accessToken: keys.dev, secretKey: keys.dev };
const through = (sdk, call, to = gateway) => sdk.auth.withAuth({ baseURL: to.url, ...signedIn }, call);

/** The first run that a subscription delivers. A subscription that is not ended polls forever. */
const first = (sdk, subscribe, to) => through(sdk, async () => {
  const subscription = subscribe();
  const read = async (resolve) => { for await (const run of subscription) resolve(run); };
  return new Promise((resolve, reject) => { read(resolve).catch(reject); }).finally(() => subscription.unsubscribe());
}, to);

const half = "I am 😀".slice(0, 6), low = "😀".slice(1);
const queue = `queue ${half}`;

let gateway, worker;
before(async () => {
  gateway = await startGateway();
  worker = await Worker.register(gateway, { tasks: ["hello", `task ${half}`], queues: [{ name: queue }] });
});
after(() => gateway.stop());

const answer = async (calling, status = 200) => {
  const reply = await calling;
  assert.equal(reply.status, status, reply.text);
  return reply.json;
};
const retrieve = async (id, version = 3) => answer(gateway.get(`/api/v${version}/runs/${id}`));
const list = async (query) => (await answer(gateway.get(`/api/v1/runs?${new URLSearchParams(query)}`))).data.map(({ id }) => id);
const triggered = async (payload, options, task = "hello") => (await answer(gateway.post(`/api/v1/tasks/${encodeURIComponent(task)}/trigger`, { payload, options }))).id;

/** Starts the run. Cancels other ready runs, which earlier tests left. */
async function take(id) {
  for (;;) {
    const attempt = await worker.dequeue();
    assert.ok(attempt, "a run is ready");
    if (attempt.id === id) return attempt.start();
    await answer(worker.cancel(attempt.id));
  }
}

describe("half of a surrogate pair", () => {
  test("is preserved in payload, tags, keys, queue and metadata of a run", async () => {
    const payload = { text: half, [half]: [low, "\u0000"] }, metadata = { [half]: low };
    const options = { tags: [half, `${low}"\\`], metadata, idempotencyKey: half, concurrencyKey: low, queue: { name: queue } };
    const id = await triggered(payload, options);
    assert.equal(await triggered(payload, options), id, "the key is known");
    assert.notEqual(await triggered(payload, { ...options, idempotencyKey: `I am \ufffd` }), id);
    const run = await retrieve(id);
    assert.deepEqual([run.payload, run.metadata, run.tags, run.idempotencyKey], [payload, metadata, [half, `${low}"\\`], half]);
    const attempt = await take(id);
    assert.deepEqual(JSON.parse(attempt.started.execution.run.payload), payload);
    assert.deepEqual(attempt.started.execution.run.tags, [half, `${low}"\\`]);
    assert.equal(attempt.started.execution.queue.name, queue);
    await attempt.succeed(1);
    await answer(worker.cancel(await triggered(payload, { ...options, idempotencyKey: "I am \ufffd" })));
  });

  test("is preserved in an output of text, of JSON, and of JSON that holds the character unescaped", async () => {
    for (const [output, outputType, expected] of [[half, "text/plain", half], [JSON.stringify({ half }), "application/json", { half }],
      [`{"a":"${half}"}`, "application/json", { a: half }], [`{"json":{"a":"${half}"}}`, "application/super+json", { a: half }],
      [`"${half}`, "application/json", `"${half}`], ["x".repeat(40_000) + half, "text/plain", "x".repeat(40_000) + half]]) {
      const attempt = await take(await triggered());
      await attempt.complete({ ok: true, output, outputType });
      const run = await retrieve(attempt.id);
      assert.deepEqual(run.output, expected);
      assert.equal(run.status, "COMPLETED");
      const result = await answer(gateway.get(`/api/v1/runs/${attempt.id}/result`));
      assert.deepEqual(outputType === "text/plain" || result.output[0] === '"' ? result.output : JSON.parse(result.output),
        outputType.includes("super") ? { json: expected } : outputType === "text/plain" ? expected : result.output[0] === '"' ? expected : expected);
      for (const sdk of Object.values(sdks)) assert.deepEqual((await through(sdk, () => sdk.runs.retrieve(attempt.id))).output, expected);
    }
  });

  test("is preserved in a payload of text, and of JSON that holds the character unescaped", async () => {
    for (const [payload, payloadType, expected] of [[half, "text/plain", half], [`"${half}"`, "text/plain", `"${half}"`], [`["${half}"]`, "application/json", [half]],
      [`{"json":["${half}"]}`, "application/super+json", [half]], [half, "application/json", half], [half, undefined, half]]) {
      const id = await triggered(payload, payloadType && { payloadType });
      assert.deepEqual((await retrieve(id)).payload, expected, `${payloadType} ${JSON.stringify(payload)}`);
      const attempt = await take(id);
      await attempt.succeed(1);
    }
  });

  test("is preserved in the error of a run that fails", async () => {
    const attempt = await take(await triggered({}, { maxAttempts: 1 }));
    await attempt.fail({ type: "BUILT_IN_ERROR", name: `Error${low}`, message: half, stackTrace: `Error: ${half}\n    at x` });
    const run = await retrieve(attempt.id);
    assert.equal(run.status, "FAILED");
    assert.deepEqual([run.error.name, run.error.message, run.error.stackTrace], [`Error${low}`, half, `Error: ${half}\n    at x`]);
  });

  test("is preserved in metadata that is put, changed by operations, and flushed with a completion", async () => {
    const attempt = await take(await triggered());
    const put = async (body) => (await answer(gateway.put(`/api/v1/runs/${attempt.id}/metadata`, body))).metadata;
    assert.deepEqual(await put({ metadata: { [half]: half } }), { [half]: half });
    const operations = [{ type: "set", key: low, value: half }, { type: "append", key: "list", value: half }, { type: "append", key: "list", value: low },
      { type: "remove", key: "list", value: half }, { type: "increment", key: `${half}${half}`, value: 2 }, { type: "increment", key: `$.${half}${half}`, value: 1 },
      { type: "delete", key: half }, { type: "set", key: "😀", value: 1 }];
    assert.deepEqual(await put({ operations }), { [low]: half, list: [low], [`${half}${half}`]: 3, "😀": 1 });
    const data = `{"operations":[{"type":"set","key":"flushed","value":"${half}"},{"type":"set","key":"escaped","value":${JSON.stringify(half)}}]}`;
    await attempt.succeed(1, { flushedMetadata: { data, dataType: "application/json" } });
    const { metadata } = await retrieve(attempt.id);
    assert.deepEqual([metadata.flushed, metadata.escaped], [half, half]);
  });

  test("is compared unchanged wherever tags are compared", async (t) => {
    const tag = `tag ${half}`, id = await triggered();
    await answer(gateway.post(`/api/v1/runs/${id}/tags`, { tags: [tag, tag] }));
    assert.deepEqual((await retrieve(id)).tags, [tag]);
    const socket = await RunsSocket.open({ port: gateway.port, token: keys.dev, hello: {} });
    t.after(() => socket.cut());
    for (const [n, tags] of [[1, [tag]], [2, ["tag I am \ufffd"]]]) {
      socket.send({ op: "sub", id: n, tags });
      const rows = await socket.next((one) => one.op === "rows" && one.id === n);
      assert.deepEqual(rows.rows.map(([run]) => run), n === 1 ? [id] : []);
      if (n === 1) assert.deepEqual(rows.rows[0][2].tags, [tag]);
    }
    const token = await publicToken(gateway, { scopes: [`read:tags:${tag}`] });
    assert.equal((await gateway.get(`/api/v3/runs/${id}`, { key: token })).status, 200);
    assert.equal((await gateway.get(`/api/v3/runs/${await triggered()}`, { key: token })).status, 403);
    const { token: made } = await answer(gateway.post("/api/v1/auth/public-tokens", { scopes: [`read:tags:${tag}`] }));
    assert.equal((await gateway.get(`/api/v3/runs/${id}`, { key: made })).status, 200);
    const action = await answer(gateway.post("/api/v1/bulk-actions", { action: "cancel", filter: { tag: [tag] } }), 202);
    await until(async () => (await retrieve(id)).status === "CANCELED", { what: `the bulk action ${JSON.stringify(action)}` });
  });

  test("is U+FFFD in msgpack, whose strings are UTF-8", async (t) => {
    const id = await triggered({}, { tags: [`packed${half}`] });
    const socket = await RunsSocket.open({ port: gateway.port, token: keys.dev, hello: {}, protocol: "runs.v1.msgpack" });
    t.after(() => socket.cut());
    socket.send({ op: "sub", id: 1, run: id });
    const { rows: [[, , fields]] } = await socket.next((one) => one.op === "rows" && one.id === 1);
    assert.deepEqual(fields.tags, ["packedI am \ufffd"]);
  });

  test("is preserved in items of batches, of one request and of a stream", async () => {
    const items = [{ task: "hello", payload: { half }, options: { tags: [half], metadata: { half } } }, { task: `task ${half}`, payload: JSON.stringify({ low }), options: { payloadType: "application/json" } }];
    const { runs } = await answer(gateway.post("/api/v1/tasks/batch", { items }), 202);
    assert.deepEqual((await retrieve(runs[0].id)).payload, { half });
    const second = await retrieve(runs[1].id);
    assert.deepEqual([second.payload, second.taskIdentifier], [{ low }, `task ${half}`]);
    const { id } = await answer(gateway.post("/api/v3/batches", { runCount: 1, idempotencyKey: `batch ${half}` }), 202);
    assert.equal((await answer(gateway.post("/api/v3/batches", { runCount: 1, idempotencyKey: `batch ${half}` }))).id, id);
    await answer(gateway.post(`/api/v3/batches/${id}/items`, `\ufeff${JSON.stringify({ index: 0, task: "hello", payload: { half }, options: {} })}\n`, { headers: { "content-type": "application/x-ndjson" } }));
    const [streamed] = (await answer(gateway.get(`/api/v1/batches/${id}`))).runs;
    assert.deepEqual((await retrieve(streamed)).payload, { half });
  });

  test("is preserved in tokens, by their calls and their URLs", async () => {
    const create = (body) => answer(gateway.post("/api/v1/waitpoints/tokens", body));
    const made = await create({ tags: [half], idempotencyKey: low });
    assert.equal((await create({ idempotencyKey: low })).id, made.id);
    await answer(gateway.post(`/api/v1/waitpoints/tokens/${made.id}/complete`, { data: { [half]: low } }));
    const token = await answer(gateway.get(`/api/v1/waitpoints/tokens/${made.id}`));
    assert.deepEqual([JSON.parse(token.output), token.tags], [{ [half]: low }, [half]]);
    const { id, url } = await create({});
    await answer(gateway.post(url.slice(gateway.url.length), `\ufeff${JSON.stringify([half])}`, { key: null }));
    assert.deepEqual(JSON.parse((await answer(gateway.get(`/api/v1/waitpoints/tokens/${id}`))).output), [half]);
  });

  test("is preserved in log lines, spans and their attributes, and loses no other line", async () => {
    const attempt = await take(await triggered());
    const to = new URL(attempt.started.envVars.TRIGGER_OTEL_EXPORTER_OTLP_ENDPOINT).pathname;
    const attributes = [{ key: "$metadata.ctx.run.id", value: { stringValue: attempt.id } }, { key: half, value: { stringValue: low } }];
    const line = (text) => ({ timeUnixNano: `${Date.now()}000000`, severityText: "info", body: { stringValue: text }, attributes });
    const span = { traceId: randomBytes(16).toString("hex"), spanId: randomBytes(8).toString("hex"), name: half, startTimeUnixNano: "1", endTimeUnixNano: "2", attributes };
    await answer(gateway.post(`${to}/v1/logs`, { resourceLogs: [{ scopeLogs: [{ logRecords: [line("before"), line(half), line("x".repeat(8189) + half)] }] }] }, { key: null }));
    await answer(gateway.post(`${to}/v1/traces`, { resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] }, { key: null }));
    const { events } = await answer(gateway.get(`/api/v1/runs/${attempt.id}/events`));
    const messages = events.map(({ message }) => message);
    for (const message of ["before", half]) assert.ok(messages.includes(message), JSON.stringify(messages.map((one) => one.slice(0, 40))));
    assert.ok(messages.some((one) => one.startsWith("x".repeat(8189)) && !/\p{Surrogate}/u.test(one)), "a long line is cut between characters");
    assert.equal(messages.filter((one) => one === half).length, 2, "the line and the span");
    assert.ok(JSON.stringify(events).includes(JSON.stringify(half).slice(1, -1)));
    await attempt.succeed(1);
  });

  test("is preserved in variables and streams", async () => {
    const at = `/api/v1/projects/${keys.ref}/envvars/dev`;
    await answer(gateway.post(at, { name: "HALF", value: half }));
    await answer(gateway.post(`${at}/import`, { variables: { LOW: low }, override: true }));
    const variables = Object.fromEntries((await answer(gateway.get(at))).map(({ name, value }) => [name, value]));
    assert.deepEqual([variables.HALF, variables.LOW], [half, low]);
    const id = await triggered();
    await answer(gateway.post(`/realtime/v1/streams/${id}/self/out`, `${JSON.stringify({ half })}\n`, { headers: { "content-type": "application/x-ndjson" } }));
    const stream = await EventStream.open(`${gateway.url}/realtime/v1/streams/${id}/out`, { headers: { authorization: `Bearer ${keys.dev}` } });
    const chunk = await until(() => stream.events.find(({ data }) => data), { what: "the chunk" });
    assert.deepEqual(chunk.data, { half });
    stream.controller.abort();
    await answer(worker.cancel(id));
  });
});

const oddTags = ['say "hi"', "back\\slash", "line\nbreak", "\u0001", "a\ttab", "a zero\u0000byte", "del\u007f", "per%cent & + ?", "😀"];

describe("a tag with a quote, a backslash or a control character", () => {
  test("can be followed by both SDKs, over WebSockets, event streams and long polls, and listed", async (t) => {
    const socket = await RunsSocket.open({ port: gateway.port, token: keys.dev, hello: {} });
    t.after(() => socket.cut());
    for (const [n, tag] of oddTags.entries()) {
      const id = await triggered({}, { tags: [tag] }), named = JSON.stringify(tag);
      for (const [version, sdk] of Object.entries(sdks))
        assert.equal((await first(sdk, () => sdk.runs.subscribeToRunsWithTag(tag))).id, id, `${version}: ${named}`);
      socket.send({ op: "sub", id: n, tags: [tag] });
      const { rows } = await socket.next((one) => one.op === "rows" && one.id === n);
      assert.deepEqual(rows.map(([run, , fields]) => [run, fields.tags]), [[id, [tag]]], named);
      const stream = await EventStream.open(`${gateway.url}/realtime/v1/events?tags=${encodeURIComponent(tag)}`, { headers: { authorization: `Bearer ${keys.dev}` } });
      await until(() => JSON.stringify(stream.events).includes(id), { what: `the event stream of ${named}` });
      stream.controller.abort();
      assert.deepEqual(await list({ "filter[tag]": tag }), [id], named);
      for (const sdk of Object.values(sdks)) assert.deepEqual((await through(sdk, () => sdk.runs.list({ tag }))).data.map((run) => run.id), [id], named);
      const token = await publicToken(gateway, { scopes: [`read:tags:${tag}`] });
      if (!tag.includes("\0")) assert.equal((await gateway.get(`/api/v3/runs/${id}`, { key: token })).status, 200, named);
      await answer(gateway.post("/api/v1/bulk-actions", { action: "cancel", filter: { tag: [tag] } }), 202);
      await until(async () => (await retrieve(id)).status === "CANCELED", { what: `the bulk action on ${named}` });
    }
  });

  test("can be added, and keys that contain one are found again", async () => {
    const id = await triggered();
    for (const tag of oddTags) await answer(gateway.post(`/api/v1/runs/${id}/tags`, { tags: [tag] }));
    assert.deepEqual((await retrieve(id)).tags.sort(), [...oddTags].sort());
    for (const key of oddTags) {
      const own = await triggered({}, { idempotencyKey: key, concurrencyKey: key });
      assert.equal(await triggered({}, { idempotencyKey: key, concurrencyKey: key }), own, JSON.stringify(key));
      assert.equal((await retrieve(own)).idempotencyKey, key);
      await answer(worker.cancel(own));
    }
    await answer(worker.cancel(id));
  });
});

const nested = (depth) => "[".repeat(depth) + '{"a":'.repeat(depth) + "1" + "}".repeat(depth) + "]".repeat(depth);

describe("a value that is nested deeply", () => {
  for (const depth of [150, 5_000, 100_000])
    test(`is preserved as JSON from ${2 * depth} levels`, async () => {
      const value = nested(depth);
      const { id } = await answer(gateway.post("/api/v1/tasks/hello/trigger", `{"payload":${value}}`));
      const attempt = await take(id);
      assert.equal(attempt.started.execution.run.payload, value);
      if (depth <= 5_000) {
        const { text } = await gateway.put(`/api/v1/runs/${id}/metadata`, `{"metadata":{"v":${value}}}`);
        assert.equal(text, `{"metadata":{"v":${value}}}`);
        const appended = await gateway.put(`/api/v1/runs/${id}/metadata`, `{"operations":[{"type":"append","key":"v","value":${value}},{"type":"remove","key":"v","value":1}]}`);
        assert.equal(appended.status, 200, appended.text.slice(0, 300));
      }
      await attempt.complete({ ok: true, output: value, outputType: "application/json" });
      const { text } = await gateway.get(`/api/v3/runs/${id}`);
      for (const name of ["payload", "output"]) assert.ok(text.includes(`"${name}":${value},`), `${name} in ${text.slice(0, 200)}`);
      const row = (await answer(gateway.get(`/realtime/v1/runs/${id}?offset=-1`)))[0].value;
      assert.deepEqual([row.payload, row.output, row.outputType], [value, value, "application/json"]);
      const token = await answer(gateway.post("/api/v1/waitpoints/tokens", {}));
      await answer(gateway.post(`/api/v1/waitpoints/tokens/${token.id}/complete`, `{"data":${value}}`));
      assert.equal((await answer(gateway.get(`/api/v1/waitpoints/tokens/${token.id}`))).output, value);
    });
});

describe("a byte order mark", () => {
  const mark = "\ufeff";
  test("before the body of a call changes nothing", async () => {
    const id = (await answer(gateway.post("/api/v1/tasks/hello/trigger", `${mark}{"payload":{"a":1}}`))).id;
    assert.deepEqual((await retrieve(id)).payload, { a: 1 });
    await answer(gateway.put(`/api/v1/runs/${id}/metadata`, `${mark}{"metadata":{"b":2}}`));
    await answer(gateway.post(`/api/v1/runs/${id}/tags`, `${mark}{"tags":["t"]}`));
    await answer(gateway.post("/api/v1/tasks/batch", `${mark}{"items":[]}`), 400).then(({ error }) => assert.doesNotMatch(error, /Invalid JSON/));
    await answer(gateway.post("/api/v1/auth/public-tokens", `${mark}{"scopes":["read:runs"]}`));
    await answer(gateway.post(`/api/v1/projects/${keys.ref}/envvars/dev`, `${mark}{"name":"MARKED","value":"1"}`));
    await answer(gateway.post(`/api/v1/runs/${id}/replay`, `${mark}{}`));
    await answer(gateway.post("/api/v1/queues/hello/pause", `${mark}{"type":"task","action":"resume"}`));
    const { id: token } = await answer(gateway.post("/api/v1/waitpoints/tokens", `${mark}{}`));
    await answer(gateway.post(`/api/v1/waitpoints/tokens/${token}/complete`, `${mark}{"data":7}`));
    const registered = JSON.stringify({ localOnly: true, engine: "V2", metadata: { packageVersion: "4.8.3", contentHash: "marked", tasks: [{ id: "hello", filePath: "x.ts" }] } });
    await answer(gateway.post(`/api/v1/projects/${keys.ref}/background-workers`, mark + registered));
  });

  test("may arrive byte by byte, and bytes that resemble it are not JSON", async () => {
    for (const [body, pieces, status] of [[`${mark}{"payload":1}`, [1, 2, 3], 200], [`${mark}{"payload":1}`, [4], 200], [Buffer.from([0xef, 0x7b, 0x7d]), [1], 400], [Buffer.from([0xef, 0xbb, 0x7b, 0x7d]), [1, 2], 400],
      [Buffer.from([0xef]), [], 400], [mark, [1], 400], [mark + mark + "{}", [3], 400], [`{}${mark}`, [2], 400]]) {
      const bytes = Buffer.from(body), connection = await gateway.connect();
      const head = Buffer.from(`POST /api/v1/tasks/hello/trigger HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${keys.dev}\r\ncontent-type: application/json\r\ncontent-length: ${bytes.length}\r\nconnection: close\r\n\r\n`);
      await connection.sendPieces(Buffer.concat([head, bytes]), [head.length, ...pieces.map((at) => head.length + at)]);
      const reply = await connection.read((_text, ended) => ended);
      assert.match(reply, new RegExp(`^HTTP/1.1 ${status} `), `${JSON.stringify(bytes.toString("latin1"))}: ${reply}`);
      connection.socket.destroy();
    }
  });
});

test("bytes that are not UTF-8 are refused, and values that JavaScript rounds keep their bytes", async () => {
  for (const bytes of [[0xed, 0xa0, 0xbd], [0xff], [0xc0, 0xaf], [0xf4, 0x90, 0x80, 0x80]]) {
    const body = Buffer.concat([Buffer.from('{"payload":"'), Buffer.from(bytes), Buffer.from('"}')]);
    assert.match((await answer(gateway.post("/api/v1/tasks/hello/trigger", body), 400)).error, /^Invalid JSON at byte 1[2-5]/);
  }
  const value = '{"big":1e400,"zero":-0,"__proto__":{"a":1},"b":1,"b":2,"h":"\\uD83D","l":"\\ude00\\uD83d"}';
  const { id } = await answer(gateway.post("/api/v1/tasks/hello/trigger", `{"payload":${value},"options":{"metadata":${value}}}`));
  const { text } = await gateway.get(`/api/v3/runs/${id}`);
  assert.ok(text.includes(`"payload":${value}`) && text.includes(`"metadata":${value}`), text);
  await answer(worker.cancel(id));
});

// ---- random values: 25,000, in full (tests/run.sh --all) 100,000 ----

const requests = process.env.TESTS_IN_FULL ? 200 : 50;

const letters = ["a", "key", "", " ", "é", "€", "😀", "한", "\u2028", "\u007f", "\\n", '\\"', "\\\\", "\\/", "\\b", "\\u0000", "\\u0041", "\\u00E9", "\\uD83D\\uDE00", "\\ud83d", "\\uDE00",
  "\\uDBFF\\uD800", "\uffff", "\ufeff", "__proto__", "toString", "/"];
const numbers = ["0", "-0", "1", "-1", "0.1", "1e400", "-1E-400", "12345678901234567890", "1.5e+3", "2e0", "0.10000000000000000000000001"];

function randomValue(random, depth) {
  const space = () => random.pick(["", "", "", " ", "\n", "\t", "\r\n"]);
  const string = () => `"${Array.from({ length: random.below(5) }, () => random.pick(letters)).join("")}"`;
  const number = () => random.chance(0.5) ? random.pick(numbers) : String((random.next() - 0.5) * 10 ** (random.below(40) - 20));
  const kind = random.below(depth > 0 ? 9 : 5);
  if (kind === 8) {
    const levels = random.chance(0.02) ? 200 + random.below(600) : random.below(20);
    return "[".repeat(levels) + randomValue(random, depth - 1) + "]".repeat(levels);
  }
  if (kind > 4) {
    const inner = Array.from({ length: random.below(5) }, () => randomValue(random, depth - 1));
    if (kind === 5) return `[${inner.map((one) => space() + one + space()).join(",")}]`;
    const members = inner.map((one) => `${space()}${string()}${space()}:${space()}${one}`);
    return `{${[...members, ...members.slice(0, random.below(2))].join(",")}}`;
  }
  return kind === 0 ? random.pick(["true", "false", "null"]) : kind < 3 ? string() : number();
}

test("random values are what JSON.parse makes of them, by REST, retrieve and subscribe", { timeout: 300_000 }, async (t) => {
  const random = new Random(chooseSeed(t));
  const own = await startGateway({ t, release: true }), workers = await Worker.register(own, { tasks: ["hello"] });
  const payloads = Array.from({ length: requests }, () => `[${Array.from({ length: 500 }, () => randomValue(random, random.below(5))).join(",")}]`);
  const runs = [];
  for (const text of payloads) {
    const { id } = await answer(own.post("/api/v1/tasks/hello/trigger", `{"payload":${text}}`));
    runs.push({ id, text, value: JSON.parse(text) });
    const attempt = await workers.take(id);
    await attempt.complete({ ok: true, output: text, outputType: "application/json" });
  }
  const same = (found, run, how) => {
    for (const name of ["payload", "output"])
      for (const [n, value] of run.value.entries())
        if (!isDeepStrictEqual(found[name][n], value)) // the text of the message takes longer than the comparison
          assert.fail(`${how}, ${name} of ${run.id}, value ${n}: ${JSON.stringify(value)} is ${JSON.stringify(found[name]?.[n])}`);
  };
  for (const run of runs) {
    const { text, json } = await own.get(`/api/v3/runs/${run.id}`);
    for (const name of ["payload", "output"]) assert.ok(text.includes(`"${name}":${run.text},`), `${name} of ${run.id}: its bytes`);
    same(json, run, "REST");
    for (const [version, sdk] of Object.entries(sdks)) {
      same(await through(sdk, () => sdk.runs.retrieve(run.id), own), run, `retrieve ${version}`);
      same(await first(sdk, () => sdk.runs.subscribeToRun(run.id), own), run, `subscribe ${version}`);
    }
  }
  await own.stop();
});
