// How an attempt ends when its completion is too long, unknown or invalid: each row of the table in
// src/api/workers/README.md, "How an attempt ends when a call is refused".
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import fs from "node:fs";
import { after, before, test } from "node:test";

import { keys, startGateway, until } from "../support/js/gateway.mjs";
import { inMs, thrown, Worker } from "../support/js/worker_calls.mjs";

let gateway, worker;
before(async () => {
  gateway = await startGateway();
  worker = await Worker.register(gateway, { tasks: [{ id: "hello", retry: { maxAttempts: 3 } }] });
});
after(() => gateway.stop());

const MIB = 1024 * 1024;
const begin = async () => worker.take(await worker.trigger("hello"));
const show = async (id) => (await worker.show(id)).run;

/** Completes with a raw body, which must end the attempt. */
async function send(attempt, body, { headers = {}, query = "", status = 200, id = randomUUID() } = {}) {
  const target = `/engine/v1/dev/runs/${attempt.id}/snapshots/${attempt.snapshot}/attempts/complete${query}`;
  const reply = await gateway.post(target, body, { key: worker.key, headers: { "x-trigger-request-idempotency-key": id, ...headers } });
  assert.equal(reply.status, status, reply.text.slice(0, 300));
  return reply;
}
const failed = (error, more) => JSON.stringify({ completion: { ok: false, error, ...more } });

/** The run fails with an error that gives the reason, and is not retried. */
async function failsForGood(body, message, options) {
  const attempt = await begin();
  const { json } = await send(attempt, body, options);
  assert.equal(json.result.attemptStatus, "RUN_FINISHED");
  const run = await show(attempt.id);
  assert.deepEqual([run.status, run.attemptCount, run.output], ["FAILED", 1, undefined]);
  assert.match(run.error.message, /TASK_OUTPUT_ERROR\): /);
  assert.match(run.error.message, message);
  return run;
}
/** The run fails as the completion says; returns its error. */
async function fails(error, more) {
  const attempt = await begin();
  await send(attempt, failed(error, more));
  const run = await show(attempt.id);
  assert.match(run.status, /^(FAILED|SYSTEM_FAILURE)$/);
  return run.error;
}
async function succeeds(body, options) {
  const attempt = await begin();
  await send(attempt, body, options);
  const run = await show(attempt.id);
  assert.equal(run.status, "COMPLETED");
  return run;
}
/** The attempt continues, and ends with the next completion. */
async function goesOn(attempt) {
  assert.equal(await worker.status(attempt.id), "EXECUTING");
  await attempt.succeed(1);
}
/** The error as the parent's worker gets it. */
async function stored(error) {
  const parent = await begin();
  const id = await worker.trigger("hello", { parentRunId: parent.id, resumeParentOnCompletion: true });
  await send(await worker.take(id), failed(error));
  const { completedWaitpoints: [wait] } = await until(async () => { const now = await parent.refresh(); return now.completedWaitpoints.length && now; });
  await parent.succeed(1);
  assert.equal(wait.outputIsError, true);
  return JSON.parse(wait.output);
}

const done = { ok: true, output: '"x"', outputType: "application/json" };
const page = `Unexpected answer: ${"<p>é</p>\n".repeat(130_000)}`; // 1.3 MB

const completions = {
  async "a text of the error is longer than 256 KiB"() {
    const error = await fails({ ...thrown, message: page.slice(0, 1000), stackTrace: `Error: ${page}\n    at x` });
    assert.equal(error.message, page.slice(0, 1000));
    assert.ok(error.stackTrace.startsWith(`Error: ${page.slice(0, 100_000)}`));
    assert.match(error.stackTrace.slice(-100), /<p>.*… \(cut, 1\.3 MB\)$/s);
    assert.ok(Buffer.byteLength(error.stackTrace) <= 256 * 1024 + 30);
    const { raw } = await stored({ type: "STRING_ERROR", raw: `${"é".repeat(10 * MIB)}` });
    assert.match(raw.slice(-100), /é{10}… \(cut, 21\.0 MB\)$/);
    const { causes } = await stored({ ...thrown, causes: [{ name: "A", message: page, stackTrace: page }, { message: "b" }] });
    assert.match(causes[0].message, /^Unexpected answer: .*… \(cut, 1\.3 MB\)$/s);
    assert.deepEqual([causes[0].name, causes[1]], ["A", { message: "b" }]);
  },
  async "the text of a `CUSTOM_ERROR` is longer than 256 KiB"() {
    const value = { list: "y".repeat(300_000) };
    const { truncated, preview } = JSON.parse((await stored({ type: "CUSTOM_ERROR", raw: JSON.stringify(value) })).raw);
    assert.equal(truncated, true);
    assert.match(preview, /^\{"list":"y+… \(cut, 300\.0 kB\)$/);
    const short = JSON.stringify({ list: "z".repeat(200_000) });
    assert.equal((await stored({ type: "CUSTOM_ERROR", raw: short })).raw, short);
  },
  async "the error has more than 1,000 members"() {
    const many = Object.fromEntries(Array.from({ length: 1200 }, (_, i) => [`m${i}`, i]));
    const error = await stored({ type: "BUILT_IN_ERROR", ...many, name: "Error", message: "last", stackTrace: "s" });
    assert.deepEqual([error.name, error.message, error.stackTrace, error.m0, error.m900, error.m1199], ["Error", "last", "s", 0, 900, undefined]);
  },
  async "the error has an unknown type"() {
    const error = await fails({ type: "NEWER_ERROR", name: "N", message: "boom", stackTrace: "at y" });
    assert.equal(error.message, 'trigger.dev internal error (TASK_EXECUTION_FAILED): unknown error type "NEWER_ERROR": boom');
    assert.deepEqual(await stored({ type: "NEWER_ERROR", message: "boom", stackTrace: "at y" }), { type: "INTERNAL_ERROR", code: "TASK_EXECUTION_FAILED", message: 'unknown error type "NEWER_ERROR": boom', stackTrace: "at y" });
    assert.match((await fails({ type: "NEWER_ERROR", raw: "words" })).message, /: words$/);
    assert.match((await fails({ type: "NEWER_ERROR", detail: { a: 1 } })).message, /"detail":\{"a":1\}/);
    const attempt = await begin();
    const retried = await attempt.fail({ type: "NEWER_ERROR", message: "boom" }, { retry: inMs(0) });
    assert.equal(retried.attemptStatus, "RETRY_IMMEDIATELY", "a newer worker decides about its own retries");
    await (await attempt.start()).succeed(1);
  },
  async "the error is not an object"() {
    assert.match((await fails("boom")).message, /TASK_EXECUTION_FAILED\): .*: boom$/);
    assert.match((await fails(["boom"])).message, /: \["boom"\]$/);
  },
  async "`ok` is false and there is no error"() {
    assert.match((await fails(undefined)).message, /without an error/);
  },
  async "`retry` does not say when"() {
    const attempt = await begin();
    assert.equal((await attempt.fail(thrown, { retry: { delay: "1" } })).attemptStatus, "RETRY_IMMEDIATELY");
    await (await attempt.start()).succeed(1);
  },
  async "unknown members"() {
    const run = await succeeds(JSON.stringify({ completion: { newer: { a: ["b".repeat(100_000)] }, ...done }, other: 1 }));
    assert.equal(run.output, "x");
    const { more, deep } = await stored({ ...thrown, more: "m".repeat(100), deep: [{ a: 1 }] });
    assert.deepEqual([more, deep], ["m".repeat(100), [{ a: 1 }]]);
  },
  async "metadata that cannot be read"() {
    for (const data of [1, "{", `{"operations":[{"type":"set","key":"k","value":"${"v".repeat(600_000)}"}]}`]) {
      const run = await succeeds(JSON.stringify({ completion: { ...done, flushedMetadata: { data, dataType: "application/json" } } }));
      assert.deepEqual(run.metadata ?? {}, {});
    }
    const data = JSON.stringify({ operations: [{ type: "set", key: "k", value: "v".repeat(100_000) }] });
    const run = await succeeds(JSON.stringify({ completion: { ...done, flushedMetadata: { data, dataType: "application/json" } } }));
    assert.equal(run.metadata.k.length, 100_000, "a long one is read");
  },
  async "the output is longer than 16 MiB"() {
    const output = JSON.stringify("o".repeat(17_000_000));
    const body = JSON.stringify({ completion: { ok: true, output, outputType: "application/json", usage: { durationMs: 12 } } });
    const run = await failsForGood(body, /completion\.output: too large \(17\.0 MB, max 16 MiB\)/);
    assert.equal(run.durationMs, 12, "what stands after the output is read");
    await failsForGood(JSON.stringify({ completion: { ...done, output: JSON.stringify("é".repeat(30_000_000)) } }), /60\.0 MB/);
  },
  async "the output is not a string"() {
    await failsForGood(JSON.stringify({ completion: { ok: true, output: { a: "x".repeat(100_000) } } }), /completion\.output: must be a string/);
  },
  async "`outputType` is not a string of at most 255 bytes"() {
    for (const outputType of [1, "t".repeat(256), "t".repeat(100_000)])
      await failsForGood(JSON.stringify({ completion: { ...done, outputType } }), /completion\.outputType: /);
  },
  async "`ok` is neither true nor false, without an error"() {
    for (const ok of [1, undefined, "true"]) await failsForGood(JSON.stringify({ completion: { ...done, ok } }), /completion\.ok: /);
    const attempt = await begin();
    await send(attempt, JSON.stringify({ completion: { error: thrown } }));
    assert.equal((await show(attempt.id)).error.message, "boom");
  },
  async "there is no completion"() {
    for (const body of ["{}", '{"completion":[]}']) await failsForGood(body, /completion: must be an object/);
    await failsForGood("", /Request body is empty/);
  },
  async "the body is not JSON"() {
    for (const body of ['{"completion":{"ok":true,}}', "[]", '{"completion":{"ok":true', Buffer.from('{"completion":{"ok":true,"output":"\xff"}}', "latin1")])
      await failsForGood(body, /cannot read the completion of the attempt: /);
  },
  async "more than 1 MiB apart from long strings"() {
    await failsForGood(`{"completion":{"ok":true,"more":[${"[],".repeat(400_000)}1]}}`, /max 1 MiB without its output/);
  },
  async "a `content-encoding`"() {
    await failsForGood("\x1f\x8b", /content-encoding "gzip" is not supported/, { headers: { "content-encoding": "gzip" } });
  },
  async "a request id of more than 255 bytes, or any query"() {
    for (const query of ["?a=1&a=2", "?b=%zz", `?${"c&".repeat(1000)}`])
      await succeeds(JSON.stringify({ completion: done }), { id: "i".repeat(300), query });
  },
  async "the attempt was not started"() {
    await worker.trigger("hello");
    const attempt = await worker.dequeue();
    await send(attempt, JSON.stringify({ completion: done }));
    const run = await show(attempt.id);
    assert.deepEqual([run.status, run.attemptCount], ["COMPLETED", 1]);
    await worker.trigger("hello");
    const other = await worker.dequeue();
    assert.equal((await other.fail(thrown, { retry: inMs(0) })).attemptStatus, "RETRY_IMMEDIATELY");
    await send(other, failed(thrown)); // in the pause before the second attempt
    assert.deepEqual([(await show(other.id)).status, (await show(other.id)).attemptCount], ["FAILED", 2]);
  },
  async "the snapshot is not the newest"() {
    const attempt = await begin(), { snapshot } = attempt;
    attempt.snapshot = `${snapshot.slice(0, -1)}0`;
    await send(attempt, JSON.stringify({ completion: done }), { status: 400 });
    attempt.snapshot = snapshot;
    await goesOn(attempt);
  },
  async "the run has ended"() {
    const attempt = await begin();
    await attempt.succeed(1);
    await send(attempt, failed(thrown), { status: 400 });
    assert.equal((await show(attempt.id)).status, "COMPLETED");
  },
  async "the run is of another environment, or unknown"() {
    const attempt = await begin();
    const thief = Object.assign(Object.create(attempt), { worker: new Worker(gateway, keys.prod) });
    for (const body of [done, { ok: false }, { ok: true, output: {} }]) assert.equal((await thief.completeReply(body)).status, 404);
    await goesOn(attempt);
  },
  "the credential is a secret key, and a worker token has leased the run": "deployed.test.mjs",
  async "the credential is invalid"() {
    const attempt = await begin();
    const stranger = Object.assign(Object.create(attempt), { worker: new Worker(gateway, "tr_dev_wrong") });
    assert.equal((await stranger.completeReply(done)).status, 401);
    await goesOn(attempt);
  },
  async "the body is longer than 512 MiB"() {
    const attempt = await begin(), raw = await gateway.connect();
    await raw.send(`POST /engine/v1/dev/runs/${attempt.id}/snapshots/${attempt.snapshot}/attempts/complete HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${worker.key}\r\ncontent-length: ${512 * MIB + 1}\r\n\r\n`);
    await raw.read((got) => got.includes("HTTP/1.1 413 "), { what: "a refusal" });
    raw.destroy();
    await goesOn(attempt);
  },
};

const long = (kib) => JSON.stringify({ more: "x".repeat(kib * 1024) });
const others = {
  async "start, with a snapshot that is not the newest"() {
    await worker.trigger("hello");
    const attempt = await worker.dequeue();
    assert.equal((await attempt.startReply({ snapshot: `${attempt.snapshot.slice(0, -1)}9` })).status, 409);
    await (await attempt.start()).succeed(1);
  },
  async "start, with a body of more than 64 KiB"() {
    await worker.trigger("hello");
    const attempt = await worker.dequeue();
    assert.equal((await attempt.call("attempts/start", JSON.parse(long(65)))).status, 413);
    await (await attempt.start()).succeed(1);
  },
  async "heartbeat, with a snapshot that is not the newest"() {
    const attempt = await begin();
    assert.equal((await attempt.call("heartbeat", {}, { snapshot: `${attempt.snapshot.slice(0, -1)}0` })).status, 200);
    await goesOn(attempt);
  },
  "start or heartbeat with a secret key, when a worker token has leased the run": "deployed.test.mjs",
  async "heartbeat, with a body of more than 64 KiB"() {
    const attempt = await begin();
    assert.equal((await attempt.call("heartbeat", JSON.parse(long(65)))).status, 413);
    await goesOn(attempt);
  },
  async "debug log, with a body of more than 1 MiB"() {
    const attempt = await begin();
    assert.equal((await gateway.post(`/engine/v1/dev/runs/${attempt.id}/logs/debug`, long(1025))).status, 413);
    await goesOn(attempt);
  },
  "release, without a reason of 1 to 256 characters": "deployed.test.mjs",
  "suspend or continue": "deployed.test.mjs",
  async "waits, metadata, tags, triggers of a task"() {
    const attempt = await begin();
    for (const [method, target, body] of [
      ["POST", `/engine/v1/runs/${attempt.id}/wait/duration`, {}], ["PUT", `/api/v1/runs/${attempt.id}/metadata`, { metadata: 1 }],
      ["POST", `/api/v1/runs/${attempt.id}/tags`, { tags: 1 }], ["POST", "/api/v1/tasks/hello/trigger", { options: 1 }],
    ]) {
      const { status } = await gateway.http.request(method, target, { body });
      assert.ok(status >= 400 && status < 500, `${target}: ${status}`);
    }
    await goesOn(attempt);
  },
};

const readme = fs.readFileSync(new URL("../../src/api/workers/README.md", import.meta.url), "utf8");
const rows = (head) => readme.split(`| ${head} |`)[1].split("\n\n")[0].split("\n").slice(2).filter(Boolean).map((line) => line.split(" | ")[0].replace(/^\| /, ""));

test("the README has a row for each completion that is tested, and no other", () => {
  assert.deepEqual(rows("Completion"), Object.keys(completions));
  assert.deepEqual(rows("Other call"), Object.keys(others));
});

for (const [name, run] of Object.entries({ ...completions, ...others }))
  if (typeof run === "function") test(name, run);

test("discarded parts of a completion take no memory that others need", async () => {
  const attempts = [];
  while (attempts.length < 3) attempts.push(await begin()); // one at a time: each dequeues the run that it has triggered
  const body = JSON.stringify({ completion: { ...done, output: "o".repeat(60 * MIB) } });
  await Promise.all(attempts.map((attempt) => send(attempt, body)));
  for (const { id } of attempts) assert.equal((await show(id)).status, "FAILED");
});
