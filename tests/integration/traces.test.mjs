// Spans and logs of runs: what workers send as OTLP, and what the trace of a run contains.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { after, before, describe, test } from "node:test";

import { queryStore, keys, startGateway, until } from "../support/js/gateway.mjs";
import { thrown, Worker } from "../support/js/worker_calls.mjs";

let gateway, worker;
before(async () => {
  gateway = await startGateway();
  worker = await Worker.register(gateway, { tasks: ["hello"] });
});
after(() => gateway.stop());

const hex = (bytes = 8) => randomBytes(bytes).toString("hex");
const value = (one) => typeof one === "string" ? { stringValue: one } : typeof one === "boolean" ? { boolValue: one } : { intValue: one };
const attributes = (object) => Object.entries(object).map(([key, one]) => ({ key, value: value(one) }));
const nano = (ms) => `${ms}000000`;
const began = Date.now();

/** Attributes as the SDK writes them, the run among them. */
const span = (run, { id = hex(), parent, name = "work", at = began, ms = 5, more = {}, ...rest } = {}) => ({
  traceId: hex(16), spanId: id, parentSpanId: parent, name, kind: 1, startTimeUnixNano: nano(at), endTimeUnixNano: nano(at + ms),
  attributes: attributes({ "$metadata.ctx.run.id": run, "$metadata.ctx.attempt.number": 1, "$metadata.worker.version": "1", ...more }), events: [], status: { code: 0 }, ...rest });
const partial = (run, id, more) => span(run, { more: { "$span.partial": true, "$span.span_id": id }, ...more });
const log = (run, text, { parent, at = began, level = "info", more = {} } = {}) => ({
  timeUnixNano: nano(at), severityText: level, body: { stringValue: text }, spanId: parent, attributes: attributes({ "$metadata.ctx.run.id": run, ...more }) });
const spans = (...all) => ["traces", { resourceSpans: [{ resource: { attributes: [] }, scopeSpans: [{ scope: { name: "t" }, spans: all }] }] }];
const logs = (...all) => ["logs", { resourceLogs: [{ resource: { attributes: [] }, scopeLogs: [{ scope: { name: "t" }, logRecords: all }] }] }];

const take = async (own = worker) => own.take(await own.trigger("hello"));
const endpoint = (attempt) => new URL(attempt.started.envVars.TRIGGER_OTEL_EXPORTER_OTLP_ENDPOINT).pathname;
const send = (to, [kind, body], { type = "application/json", ...headers } = {}, own = gateway) =>
  own.post(`${to}/v1/${kind}`, body, { key: null, headers: { "content-type": type, ...headers } });
async function tell(attempt, what, own = gateway) {
  const reply = await send(endpoint(attempt), what, {}, own);
  assert.deepEqual([reply.status, reply.json], [200, {}]);
}
async function read(what, { key, own = gateway } = {}) {
  const reply = await own.get(`/api/v1/runs/${what}`, { key });
  assert.equal(reply.status, 200, reply.text);
  return reply.json;
}
const events = async (run, more) => (await read(`${run}/events`, more)).events;
const messages = async (run, more) => (await events(run, more)).map(({ message }) => message);
const counted = (result, own = gateway) => own.metric(`runcast_trace_events_total{result="${result}"}`);

describe("a run's trace", () => {
  test("has its spans and logs, each below its parent", async () => {
    const attempt = await take(), [outer, inner] = [hex(), hex()];
    await tell(attempt, spans(span(attempt.id, { id: inner, parent: outer, name: "fetch()", at: began + 10, ms: 20, more: { "http.status": 200 },
      status: { code: 2 }, events: [{ name: "exception", timeUnixNano: nano(began + 12), attributes: attributes({ "exception.message": "boom" }) }] })));
    await tell(attempt, logs(log(attempt.id, "hello, \"you\"", { parent: inner, at: began + 15, level: "warn", more: { n: 7 } })));
    await tell(attempt, spans(span(attempt.id, { id: outer, parent: hex(), name: "Attempt 1", at: began + 1, ms: 100 })));

    const { trace } = await read(`${attempt.id}/trace`);
    assert.match(trace.traceId, /^[0-9a-f]{32}$/);
    const { rootSpan } = trace, [first] = rootSpan.children, [fetched] = first.children, [said] = fetched.children;
    assert.deepEqual([rootSpan.runId, rootSpan.data.message, rootSpan.data.isPartial, rootSpan.data.taskSlug], [attempt.id, "hello", true, "hello"]);
    assert.deepEqual([first.id, first.parentId, first.data.message, first.data.duration, first.data.level], [outer, rootSpan.id, "Attempt 1", 100e6, "TRACE"]);
    assert.deepEqual([fetched.parentId, fetched.data.isError, fetched.data.properties], [outer, true, { "http.status": 200 }]);
    assert.deepEqual(fetched.data.events, [{ name: "exception", time: new Date(began + 12).toISOString(), properties: { "exception.message": "boom" } }]);
    assert.deepEqual([said.data.message, said.data.level, said.data.properties, said.children], ["hello, \"you\"", "WARN", { n: 7 }, []]);

    const all = await events(attempt.id);
    assert.deepEqual(all.map((one) => [one.message, one.startTime, one.duration]), [["Attempt 1", new Date(began + 1).toISOString(), 100e6],
      ["fetch()", new Date(began + 10).toISOString(), 20e6], ["hello, \"you\"", new Date(began + 15).toISOString(), 0]]);
    const one = await read(`${attempt.id}/spans/${inner}`);
    assert.deepEqual([one.spanId, one.parentId, one.runId, one.durationMs, one.isError], [inner, outer, attempt.id, 20, true]);
    assert.equal((await gateway.get(`/api/v1/runs/${attempt.id}/spans/${hex()}`)).status, 404);
    await attempt.succeed(1);
  });

  test("can be read page by page", async () => {
    const attempt = await take();
    await tell(attempt, logs(...["a", "b", "c", "d"].map((text, i) => log(attempt.id, text, { at: began + i }))));
    const seen = [];
    for (let after; ;) {
      const { data, attemptFailures, pagination } = await read(`${attempt.id}/trace?page[size]=2${after ? `&page[after]=${after}` : ""}`);
      assert.deepEqual(attemptFailures, []);
      seen.push(...data.map(({ message }) => message));
      if (!(after = pagination.next)) break;
      assert.equal(data.length, 2);
    }
    assert.deepEqual(seen, ["hello", "a", "b", "c", "d"]);
    for (const query of ["page[size]=0", "page[size]=x", "page[size]=5&page[after]=9"]) assert.equal((await gateway.get(`/api/v1/runs/${attempt.id}/trace?${query}`)).status, 400);
    await attempt.succeed(1);
  });

  test("names the attempts that failed, and counts in nanoseconds as the client reads it", async () => {
    const attempt = await take(), [failed, fine, inner] = [hex(), hex(), hex()];
    const bad = { status: { code: 2 }, ms: 7 };
    await tell(attempt, spans(span(attempt.id, { id: failed, name: "Attempt 1", ...bad }), span(attempt.id, { id: inner, parent: failed, at: began + 1, ...bad }),
      span(attempt.id, { id: fine, name: "Attempt 2", at: began + 2, more: { "$metadata.ctx.attempt.number": 2 } })));
    const { data, attemptFailures } = await read(`${attempt.id}/trace?page[size]=10`);
    assert.deepEqual(attemptFailures, [{ spanId: failed, attemptNumber: 1, runId: attempt.id }]);
    assert.deepEqual(data.map(({ duration }) => duration), [0, 7e6, 7e6, 5e6]);
    await attempt.succeed(1);
    const { duration } = (await read(`${attempt.id}/trace`)).trace.rootSpan.data;
    const { run } = await worker.show(attempt.id);
    assert.equal(duration, (new Date(run.finishedAt) - new Date(run.startedAt)) * 1e6);
  });

  test("shows unfinished spans as partial, until they end or the run does", async () => {
    const attempt = await take(), [ends, hangs] = [hex(), hex()];
    const state = async () => (await events(attempt.id)).map(({ spanId, isPartial, isCancelled }) => [spanId, isPartial, isCancelled]);
    await tell(attempt, spans(partial(attempt.id, ends), partial(attempt.id, hangs, { at: began + 1 })));
    assert.deepEqual(await state(), [[ends, true, false], [hangs, true, false]]);
    await tell(attempt, spans(span(attempt.id, { id: ends }), span(attempt.id, { id: ends, name: "twice" })));
    await tell(attempt, spans(partial(attempt.id, ends)));
    assert.deepEqual(await state(), [[ends, false, false], [hangs, true, false]]);
    assert.deepEqual(await messages(attempt.id), ["work", "work"]);
    await worker.cancel(attempt.id);
    assert.deepEqual(await state(), [[ends, false, false], [hangs, false, true]]);
    assert.deepEqual((await read(`${attempt.id}/trace`)).trace.rootSpan.data.isCancelled, true);
  });

  test("is a tree even if parents form a circle or are far too deep", async () => {
    const attempt = await take(), [a, b] = [hex(), hex()];
    await tell(attempt, spans(span(attempt.id, { id: a, parent: b }), span(attempt.id, { id: b, parent: a }), span(attempt.id, { id: "f".repeat(16), parent: "f".repeat(16) })));
    const chain = Array.from({ length: 200 }, () => hex());
    await tell(attempt, spans(...chain.map((id, i) => span(attempt.id, { id, parent: chain[i - 1], at: began + i }))));
    const count = ({ children }) => children.reduce((sum, child) => sum + 1 + count(child), 0);
    assert.equal(count((await read(`${attempt.id}/trace`)).trace.rootSpan), 203);
    await attempt.succeed(1);
  });

  test("without spans is the run alone", async () => {
    const id = await worker.trigger("hello");
    assert.deepEqual(await events(id), []);
    const { rootSpan } = (await read(`${id}/trace`)).trace;
    assert.deepEqual([rootSpan.children, rootSpan.data.isPartial, rootSpan.data.isError], [[], true, false]);
    await (await worker.take(id)).fail(thrown);
    assert.deepEqual([(await read(`${id}/trace`)).trace.rootSpan.data.isError], [true]);
  });
});

describe("a process that exits by itself", () => {
  const ended = (code) => ({ type: "INTERNAL_ERROR", code, message: "the process is gone" });
  const warnings = async (run) => (await events(run)).filter(({ level }) => level === "WARN").map(({ message }) => message);

  test("leaves a warning among its logs that its last lines may be missing", async () => {
    for (const code of ["TASK_PROCESS_EXITED_WITH_NON_ZERO_CODE", "TASK_PROCESS_OOM_KILLED", "TASK_PROCESS_SIGSEGV"]) {
      const attempt = await take();
      await tell(attempt, logs(log(attempt.id, "first")));
      await attempt.fail(ended(code));
      const [warning, ...more] = await warnings(attempt.id);
      assert.match(warning, /before it could send its last spans and logs/, code);
      assert.deepEqual(more, []);
      assert.ok((await messages(attempt.id)).includes("first"));
    }
  });

  test("together with its worker, which then stops answering, leaves a run that says it may be incomplete", async (t) => {
    const own = await startGateway({ t, options: ["--heartbeat-timeout", "6s"] }), late = await Worker.register(own, { tasks: ["hello"], key: keys.prod });
    const attempt = await late.take(await late.trigger("hello", { maxAttempts: 1 })), key = keys.prod;
    await tell(attempt, logs(log(attempt.id, "last words")), own);
    const whole = await read(`${attempt.id}/events`, { own, key });
    assert.equal(whole.mayBeIncomplete, undefined);
    await until(async () => (await own.get(`/api/v3/runs/${attempt.id}`, { key })).json.finishedAt, { what: "the run is given up" });
    const { events: [one], mayBeIncomplete } = await read(`${attempt.id}/events`, { own, key });
    assert.deepEqual([one.message, mayBeIncomplete, (await read(`${attempt.id}/trace`, { own, key })).trace.mayBeIncomplete], ["last words", true, true]);
    await own.stop();
  });

  test("is not assumed for an attempt that failed, or that its worker gave up properly", async () => {
    for (const error of [thrown, ended("TASK_RUN_CANCELLED")]) {
      const attempt = await take();
      await attempt.fail(error);
      assert.deepEqual(await warnings(attempt.id), []);
    }
  });
});

describe("telemetry stays in its environment", () => {
  test("an address reaches only the runs of its environment", async () => {
    const other = await Worker.register(gateway, { tasks: ["hello"], key: keys.prod });
    const [mine, theirs] = [await take(), await take(other)];
    assert.notEqual(endpoint(mine), endpoint(theirs));
    const before = await counted("dropped");
    await tell(theirs, logs(log(mine.id, "from outside"), log("run_unknown", "of nobody")));
    assert.equal(await counted("dropped"), before + 2);
    assert.deepEqual([await events(mine.id), await events(theirs.id, { key: keys.prod })], [[], []]);
    for (const what of ["events", "trace", `spans/${hex()}`]) {
      const [foreign, unknown] = [await gateway.get(`/api/v1/runs/${theirs.id}/${what}`), await gateway.get(`/api/v1/runs/run_unknown/${what}`)];
      assert.deepEqual([foreign.status, foreign.text], [404, unknown.text]);
    }
    await Promise.all([mine.succeed(1), theirs.succeed(1)]);
  });

  test("a wrong signature, an unknown environment and another's signature are refused alike", async () => {
    const attempt = await take(), [, , environment, signature] = endpoint(attempt).split("/");
    const other = (await gateway.get(`/api/v1/projects/${keys.ref}/envvars`, { key: keys.prod })).json.variables.TRIGGER_OTEL_EXPORTER_OTLP_ENDPOINT;
    const foreign = new URL(other).pathname.split("/")[3], what = logs(log(attempt.id, "x")), answers = [];
    for (const to of [`/otel/${environment}/${"A".repeat(43)}`, `/otel/env_unknown/${signature}`, `/otel/${environment}/${foreign}`, `/otel/${environment}/x`]) {
      const { status, text } = await send(to, what);
      answers.push(`${status} ${text}`);
    }
    assert.deepEqual(new Set(answers).size, 1);
    assert.match(answers[0], /^403 .*signature/);
    assert.deepEqual(await events(attempt.id), []);
    await attempt.succeed(1);
  });

  test("the address without an environment accepts everything and keeps nothing", async () => {
    const attempt = await take();
    for (const what of [spans(span(attempt.id)), logs(log(attempt.id, "x")), ["metrics", {}]]) {
      const reply = await send("/otel", what);
      assert.deepEqual([reply.status, reply.json], [200, {}]);
    }
    assert.deepEqual(await events(attempt.id), []);
    assert.equal((await send(endpoint(attempt), ["metrics", { resourceMetrics: [] }])).status, 200);
    await attempt.succeed(1);
  });

  test("an address expires with the key that signed it", async (t) => {
    const own = await startGateway({ t }), late = await Worker.register(own, { tasks: ["hello"] });
    const attempt = await take(late), what = logs(log(attempt.id, "x"));
    assert.equal((await send(endpoint(attempt), what, {}, own)).status, 200);
    const binary = process.env.GATEWAY_BIN ?? path.resolve("build-asan/runcast");
    execFileSync(binary, ["keys", "rotate", "dev", "--project", keys.ref, "--grace", "0", "--data", own.data]);
    assert.equal((await send(endpoint(attempt), what, {}, own)).status, 403);
    await own.stop();
  });
});

describe("telemetry", () => {
  test("must be plain JSON: other types, compressed, invalid and too long bodies are refused", async () => {
    const attempt = await take(), to = endpoint(attempt), what = spans(span(attempt.id)), before = await counted("kept");
    const raw = (body, headers) => gateway.post(`${to}/v1/traces`, body, { key: null, headers: { "content-type": "application/json", ...headers } });
    assert.equal((await send(to, what, { type: "application/x-protobuf" })).status, 415);
    assert.equal((await raw(gzipSync(JSON.stringify(what[1])), { "content-encoding": "gzip" })).status, 415);
    for (const body of ["", "{", "[]", "null", '{"a":1}x']) assert.equal((await raw(body)).status, 400, body);
    assert.equal((await raw(JSON.stringify({ a: "x".repeat(4_200_000) }))).status, 413);
    assert.equal(await counted("kept"), before);
    await attempt.succeed(1);
  });

  test("of an unexpected shape is skipped", async () => {
    const attempt = await take(), run = { "ctx.run.id": attempt.id };
    for (const body of [{}, { resourceSpans: 5 }, { resourceSpans: [null, [], { scopeSpans: [{ spans: [1, "a", [], {}, { attributes: 7 }] }] }] },
      { resourceSpans: [{ scopeSpans: [{ spans: [{ attributes: [{ key: 1 }, 5, ...attributes(run).map((one) => ({ ...one, value: 5 }))] }] }] }] }])
      assert.equal((await send(endpoint(attempt), ["traces", body])).status, 200);
    assert.deepEqual(await events(attempt.id), []);
    await tell(attempt, spans({ attributes: attributes(run), spanId: "no", parentSpanId: 5, startTimeUnixNano: "x", endTimeUnixNano: {}, status: 7, events: [5, {}], name: { a: 1 } }));
    const [kept] = await events(attempt.id);
    assert.match(kept.spanId, /^[0-9a-f]{16}$/);
    assert.deepEqual([kept.duration, kept.isError, kept.startTime], [0, false, "1970-01-01T00:00:00.000Z"]);
    await attempt.succeed(1);
  });

  test("beyond the limits of a run is dropped, counted, and reported with its trace", async (t) => {
    const own = await startGateway({ t, options: ["--run-log-rows", "1000", "--run-log-bytes", "256k"] });
    const late = await Worker.register(own, { tasks: ["hello"] }), [many, long] = [await take(late), await take(late)];
    let before = await counted("dropped", own);
    for (let i = 0; i < 11; i++) await tell(many, logs(...Array.from({ length: 100 }, (_, k) => log(many.id, `${i}-${k}`))), own);
    const all = await read(`${many.id}/events`, { own });
    assert.deepEqual([all.events.length, all.dropped], [1000, { count: 100, limit: 100, memory: 0, quota: 0, share: 0 }]);
    assert.equal((await counted("dropped", own)) - before, 100);
    before = await counted("dropped", own);
    for (let i = 0; i < 6; i++) await tell(long, spans(span(long.id, { more: { text: "x".repeat(60_000) } })), own);
    assert.equal((await events(long.id, { own })).length, 4);
    assert.equal((await counted("dropped", own)) - before, 2);
    await own.stop();
    await own.restart();
    for (const what of ["trace", "trace?page[size]=1"]) {
      const body = await read(`${many.id}/${what}`, { own });
      assert.equal((body.trace ?? body).dropped.count, 100, what);
    }
    await own.stop();
  });

  test("loses its attributes if it is longer than a record may be", async () => {
    const attempt = await take(), text = "x".repeat(140_000);
    await tell(attempt, spans(span(attempt.id, { name: "long", more: { text } }), span(attempt.id, { at: began + 1, name: "short", more: { text: "x" } })));
    const [long, short] = await events(attempt.id);
    assert.deepEqual([long.message, long.properties, short.properties], ["long", { cut: "the attributes were too long (max 128 KiB)" }, { text: "x" }]);
    await attempt.succeed(1);
  });

  test("ends a message or name above 8 KiB with a note that it was cut", async () => {
    const attempt = await take();
    await tell(attempt, logs(log(attempt.id, "é".repeat(10_000)), log(attempt.id, "x".repeat(8192), { at: began + 1 })));
    await tell(attempt, spans(span(attempt.id, { name: "n".repeat(1_500_000), at: began + 2 })));
    assert.deepEqual(await messages(attempt.id), [`${"é".repeat(4096)}… (cut, 20.0 kB)`, "x".repeat(8192), `${"n".repeat(8192)}… (cut, 1.5 MB)`]);
    await attempt.succeed(1);
  });

  test("of long lines arrives whole, and counts a line that is too long", async () => {
    const attempt = await take(), lines = Array.from({ length: 400 }, (_, i) => log(attempt.id, `${i} ${"x".repeat(30_000)}`, { at: began + i }));
    lines.splice(100, 0, log(attempt.id, "y".repeat(5_000_000)));
    await tell(attempt, logs(...lines)); // 17 MB
    const { events: all, dropped } = await read(`${attempt.id}/events`);
    assert.deepEqual(all.map(({ message }) => parseInt(message)), Array.from({ length: 400 }, (_, i) => i));
    assert.match(all[0].message, /x… \(cut, 30\.0 kB\)$/);
    assert.deepEqual([dropped.count, dropped.limit], [1, 1]);
    await attempt.succeed(1);
  });

  test("of telemetry that is not JSON is refused, and what came before stays", async () => {
    const attempt = await take(), [kind, body] = logs(...Array.from({ length: 100 }, (_, i) => log(attempt.id, `${i} ${"x".repeat(30_000)}`, { at: began + i })));
    for (const wrong of [JSON.stringify(body).slice(0, -1), "[]", "{", JSON.stringify(body).replace('"99 x', '"99 \u0001x')])
      assert.equal((await send(endpoint(attempt), [kind, wrong])).status, 400, wrong.slice(0, 5));
    assert.ok((await events(attempt.id)).length > 50);
    const early = `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{}${",{x}".repeat(800_000)}]}]}]}`; // wrong in its first part
    assert.equal((await send(endpoint(attempt), [kind, early])).status, 400);
    const around = { resourceLogs: [{ resource: { attributes: [{ key: "a", value: { stringValue: "z".repeat(5_000_000) } }] }, scopeLogs: [] }] };
    assert.equal((await send(endpoint(attempt), [kind, around])).status, 413);
    await attempt.succeed(1);
  });

  test("beyond 10,000 rows, and 10,000 items of a body, is dropped, and counted on its run", async () => {
    const [many, late, none] = [await take(), await take(), await take()], before = await counted("dropped");
    const short = (run) => ({ body: { stringValue: "x" }, attributes: attributes({ "ctx.run.id": run }) });
    await tell(many, logs(...Array.from({ length: 15_000 }, () => short(many.id))));
    const { events: all, dropped } = await read(`${many.id}/events`);
    assert.deepEqual([all.length, dropped.count, dropped.limit], [10_000, 5_000, 5_000]);
    assert.equal((await counted("dropped")) - before, 5_000);
    const empty = (count, records) => ["logs", { resourceLogs: [{ scopeLogs: [...Array.from({ length: count }, () => ({})), { logRecords: records }] }] }];
    await tell(late, empty(10_000, [short(late.id)]));
    assert.deepEqual([await events(late.id), (await read(`${late.id}/events`)).dropped.count], [[], 1]);
    await tell(none, empty(150_000, [short(none.id)]));
    assert.equal((await counted("dropped")) - before, 5_002);
    await Promise.all([many.succeed(1), late.succeed(1), none.succeed(1)]);
  });

  test("of 10,000 records arrives completely, and so does the end of each span that had begun", async () => {
    const attempt = await take(), id = hex(), line = (i) => log(attempt.id, `line ${i}`, { parent: id, at: began + i, more: { text: "x".repeat(200) } });
    await tell(attempt, spans(partial(attempt.id, id, { name: "Attempt 1" })));
    for (let i = 0; i < 10_000; i += 500) await tell(attempt, logs(...Array.from({ length: 500 }, (_, k) => line(i + k))));
    await tell(attempt, spans(span(attempt.id, { id, name: "Attempt 1", ms: 77 })));
    const { events: all, dropped } = await read(`${attempt.id}/events`);
    assert.deepEqual([all.length, dropped], [10_000, { count: 1, limit: 1, memory: 0, quota: 0, share: 0 }]);
    assert.deepEqual([all[0].message, all[0].duration, all[0].isPartial], ["Attempt 1", 77e6, false]);
    assert.deepEqual(all.slice(1).map(({ message }) => message), Array.from({ length: 9_999 }, (_, i) => `line ${i}`));
    const { trace } = await read(`${attempt.id}/trace`);
    assert.deepEqual([trace.rootSpan.children.length, trace.rootSpan.children[0].children.length, trace.dropped.count], [1, 9_999, 1]);
    await attempt.succeed(1);
  });
});

describe("the store", () => {
  test("is written once a second, and has everything after a restart; a later attempt adds to it", async (t) => {
    const own = await startGateway({ t }), late = await Worker.register(own, { tasks: ["hello"] });
    const attempt = await take(late), commits = () => own.metric('runcast_store_commits_total{result="ok"}');
    const before = await commits(), began = Date.now();
    for (let i = 0; i < 40; i++) await tell(attempt, logs(log(attempt.id, `${i}`, { at: 1000 + i })), own);
    await until(async () => (await commits()) > before, { what: "a write" });
    const made = (await commits()) - before, seconds = (Date.now() - began) / 1000; // more while the machine is busy
    assert.ok(made <= seconds + 2, `${made} commits in ${seconds} s`);
    const first = Array.from({ length: 40 }, (_, i) => `${i}`);
    await tell(attempt, logs(log(attempt.id, "last", { at: 2000 })), own); // written at the stop
    await own.stop();
    await own.restart();
    assert.deepEqual(await messages(attempt.id, { own }), [...first, "last"]);
    await own.stop();
    await own.restart();
    await tell(attempt, logs(log(attempt.id, "more", { at: 3000 })), own); // written before it was read
    assert.deepEqual(await messages(attempt.id, { own }), [...first, "last", "more"]);
    await until(async () => (await commits()) > 0, { what: "a write" });
    await own.kill();
    await own.restart();
    assert.deepEqual(await messages(attempt.id, { own }), [...first, "last", "more"]);
    await own.stop();
  });

  test("gets each record once, in pieces that are never rewritten", async (t) => {
    const own = await startGateway({ t }), late = await Worker.register(own, { tasks: ["hello"] }), attempt = await take(late);
    const rows = () => queryStore(own.data, "SELECT $text(name) AS name, version, length(body) AS bytes FROM document WHERE $text(name) LIKE 'run_%/%' ORDER BY name");
    for (let i = 0; i < 3; i++) {
      await tell(attempt, logs(...Array.from({ length: 200 }, (_, k) => log(attempt.id, `${i}-${k}`, { at: began + 200 * i + k, more: { text: "x".repeat(500) } }))), own);
      await until(() => rows().length > 2 * i, { everyMs: 100, what: "it is written" });
    }
    await until(async () => rows().reduce((sum, { bytes }) => sum + bytes, 0) > 600 * 500, { everyMs: 100 });
    const pieces = rows();
    assert.deepEqual(pieces.map(({ name }) => name), pieces.map((_, i) => `${attempt.id}/${(i + 1).toString(16).padStart(6, "0")}`));
    assert.ok(pieces.every(({ version, bytes }) => version === 1 && bytes <= 64 * 1024 + 20), JSON.stringify(pieces));
    await own.kill();
    await own.restart();
    assert.equal((await events(attempt.id, { own })).length, 600);
    await own.stop();
  });

  test("removes the trace with its run", async (t) => {
    const own = await startGateway({ t, options: ["--retain", "2s"] }), late = await Worker.register(own, { tasks: ["hello"] });
    const [goes, stays] = [await take(late), await take(late)];
    for (const attempt of [goes, stays]) await tell(attempt, logs(log(attempt.id, "kept")), own);
    const names = () => queryStore(own.data, "SELECT $text(name) AS name FROM document WHERE $text(name) LIKE 'run%' AND $text(name) NOT LIKE '%/%'").map(({ name }) => name);
    await until(() => names().length === 2, { everyMs: 100, what: "both are written" });
    await goes.succeed(1);
    await until(async () => (await own.get(`/api/v1/runs/${goes.id}/events`)).status === 404, { everyMs: 100 });
    await until(() => names().length === 1, { everyMs: 100 });
    assert.deepEqual([names(), await messages(stays.id, { own })], [[stays.id], ["kept"]]);
    await own.stop();
  });
});

describe("shares of log storage", () => {
  /** Sends logs of about that many bytes, in their own run. */
  async function logging(late, own, bytes) {
    const attempt = await take(late);
    for (let left = bytes; left > 0; left -= 100_000) await tell(attempt, logs(...Array.from({ length: 100 }, (_, k) => log(attempt.id, `${k}`, { more: { text: "x".repeat(1000) } }))), own);
    return attempt;
  }
  const missing = async (attempt, own, key) => { const { events: all, removed } = await read(`${attempt.id}/events`, { own, key }); return [all.length, removed?.count]; };

  test("beyond its share an environment loses the logs of its oldest ended runs, and the run says so", async (t) => {
    const own = await startGateway({ t, options: ["--log-share", "1m"] }), late = await Worker.register(own, { tasks: ["hello"] });
    const busy = await logging(late, own, 100_000), ended = [];
    for (let i = 0; i < 3; i++) { const attempt = await logging(late, own, 300_000); await attempt.succeed(1); ended.push(attempt); }
    assert.deepEqual(await Promise.all(ended.map((attempt) => missing(attempt, own))), [[300, undefined], [300, undefined], [300, undefined]]);
    await own.stop();
    await own.restart(); // logs that were just read are in memory, and a sweep leaves them
    await (await logging(late, own, 100_000)).succeed(1); // 1.1 MB in all; more would push out the next run, too
    await until(async () => await own.metric('runcast_trace_events_total{result="removed"}') > 0, { what: "the oldest is removed" });
    await until(async () => (await missing(ended[0], own))[0] === 0, { what: "it is gone" });
    assert.deepEqual(await missing(ended[0], own), [0, 300]);
    assert.ok(new Date((await read(`${ended[0].id}/events`, { own })).removed.at) <= new Date());
    assert.deepEqual(await missing(ended[2], own), [300, undefined]);
    assert.deepEqual(await missing(busy, own), [100, undefined], "a run that has not ended keeps its logs");
    const names = () => queryStore(own.data, `SELECT $text(name) AS name FROM document WHERE $text(name) LIKE '${ended[0].id}/%'`);
    assert.deepEqual(names(), []);
    await own.stop();
  });

  test("beyond the share of a project the environments with the most logs lose some first", async (t) => {
    const own = await startGateway({ t, options: ["--log-share", "0", "--project-log-share", "1m"] });
    const [dev, prod] = [await Worker.register(own, { tasks: ["hello"] }), await Worker.register(own, { tasks: ["hello"], key: keys.prod })];
    const little = await logging(prod, own, 100_000), much = [];
    await little.succeed(1);
    await until(async () => { const attempt = await logging(dev, own, 200_000); await attempt.succeed(1); much.push(attempt); return await own.metric('runcast_trace_events_total{result="removed"}') > 0; }, { what: "something is removed" });
    await until(async () => (await missing(much[0], own))[0] === 0, { what: "it is gone" });
    assert.deepEqual(await missing(little, own, keys.prod), [100, undefined]);
    await own.stop();
  });

  /** The gateway for calls of a preview branch, which is created. */
  async function branchOf(own, branch) {
    const made = await own.post(`/api/v1/projects/${keys.ref}/branches`, { env: "preview", branch }, { key: keys.pat });
    assert.equal(made.status, 200, made.text);
    const on = (more) => ({ ...more, headers: { ...more?.headers, "x-trigger-branch": branch } });
    return { get: (target, more) => own.get(target, on(more)), post: (target, body, more) => own.post(target, body, on(more)) };
  }

  test("preview branches count as one environment of their project, and take no logs from prod", async (t) => {
    const own = await startGateway({ t, options: ["--log-share", "0", "--project-log-share", "1m"] });
    const prod = await Worker.register(own, { tasks: ["hello"], key: keys.prod });
    const ended = await logging(prod, own, 100_000);
    await ended.succeed(1);
    const busy = await logging(prod, own, 100_000), branches = [];
    for (let i = 0; i < 10; i++) {
      const branch = await branchOf(own, `branch-${i}`);
      branches.push({ branch, attempt: await logging(await Worker.register(branch, { tasks: ["hello"], key: keys.preview }), own, 100_000) });
    }
    const [{ branch, attempt }] = branches;
    await until(async () => {
      await tell(attempt, logs(log(attempt.id, "again")), own);
      return (await read(`${attempt.id}/events`, { own: branch, key: keys.preview })).dropped?.share > 0;
    }, { everyMs: 500, what: "logs of a branch are dropped" });
    await tell(busy, logs(log(busy.id, "again")), own);
    assert.deepEqual(await missing(busy, own, keys.prod), [101, undefined], "a run of prod that executes keeps new logs");
    assert.deepEqual(await missing(ended, own, keys.prod), [100, undefined], "an ended one keeps its logs");
    assert.equal(await counted("removed", own), 0);
    await own.stop();
  });

  for (const [what, options] of [["its share", ["--log-share", "1m"]], ["the share of its project", ["--log-share", "0", "--project-log-share", "1m"]]])
    test(`an environment whose unfinished runs keep more than ${what} drops new logs until they end`, async (t) => {
      const own = await startGateway({ t, options: [...options, "--dev-concurrency", "20"] });
      const [dev, prod] = [await Worker.register(own, { tasks: ["hello"] }), await Worker.register(own, { tasks: ["hello"], key: keys.prod })];
      const large = [], dropped = async (attempt) => (await read(`${attempt.id}/events`, { own })).dropped?.share ?? 0;
      await until(async () => {
        large.push(await logging(dev, own, 400_000));
        return await dropped(large.at(-1)) > 0;
      }, { everyMs: 1100, what: "logs are dropped" });
      assert.ok(large.length <= 6, `${large.length} runs of 400 KB`);
      const late = await logging(dev, own, 100_000), little = await logging(prod, own, 100_000);
      assert.deepEqual([await missing(late, own), await dropped(late), await counted("removed", own)], [[0, undefined], 100, 0]);
      assert.deepEqual(await missing(little, own, keys.prod), [100, undefined], "another environment keeps its logs");
      assert.equal(own.stderr.match(/logs of unfinished runs exceed their share/g)?.length, 1);
      await Promise.all(large.map((attempt) => attempt.succeed(1)));
      await until(async () => { await tell(late, logs(log(late.id, "again")), own); return (await missing(late, own))[0] > 0; }, { everyMs: 500, what: "logs are kept again" });
      assert.ok(await counted("removed", own) > 0);
      await own.stop();
    });
});
