// The life of a run over HTTP: every status in both vocabularies, the fields that change with each transition, and that
// every deadline survives a kill.
import assert from "node:assert/strict";
import fs from "node:fs";
import { after, before, test } from "node:test";

import { keys, startGateway, until } from "../support/js/gateway.mjs";
import { inMs, internal, thrown, Worker } from "../support/js/worker_calls.mjs";

const short = ["--lease", "4s", "--heartbeat-timeout", "4s", "--cancel-timeout", "4s"]; // for what happens when they end
const seen = new Set(); // words that clients were shown
const pairs = new Set(); // pairs of words, one of each vocabulary

let gateway, worker, hasty;
before(async () => {
  gateway = await startGateway();
  worker = await Worker.register(gateway);
  hasty = await Worker.register(await startGateway({ options: short }));
});
after(() => Promise.all([gateway.stop(), hasty.gateway.stop()]));

/** Asserts both words of the status and the fields; returns the run. */
async function shows(id, a, b, fields = {}, who = worker) {
  const now = await who.show(id);
  assert.deepEqual([now.a, now.b], [a, b]);
  seen.add(a);
  pairs.add(`${a} ${b}`);
  for (const [name, wanted] of Object.entries(fields)) {
    const value = now.run[name];
    if (wanted === "set") assert.ok(value, `${name} is set in ${JSON.stringify(now.run)}`);
    else assert.deepEqual(value, wanted, name);
  }
  return now.run;
}

const becomes = (id, status, who = worker) =>
  until(async () => (await who.status(id)) === status, { what: `${id} becomes ${status}` });

const execution = async (id, who = worker) => (await who.latest(id)).json.execution;
const settled = (id, who) =>
  until(async () => (await execution(id, who)).snapshot.executionStatus === "FINISHED", { what: "the cancel ends" });
const fresh = async (options, who = worker) => who.take(await who.trigger("hello", options));

test("QUEUED, EXECUTING and COMPLETED", async () => {
  const id = await worker.trigger("hello");
  await shows(id, "QUEUED", "QUEUED", { attemptCount: 0, startedAt: undefined, finishedAt: undefined, version: undefined });
  const attempt = await worker.dequeue();
  const { startedAt } = await shows(id, "EXECUTING", "DEQUEUED", { startedAt: "set", attemptCount: 0, version: worker.version });
  assert.deepEqual([(await execution(id)).run.attemptNumber, attempt.message.run.attemptNumber], [null, 1]);
  await attempt.start();
  await shows(id, "EXECUTING", "EXECUTING", { attemptCount: 1, startedAt });
  assert.equal((await attempt.succeed({ n: 1 }, { usage: { durationMs: 7 } })).attemptStatus, "RUN_FINISHED");
  await shows(id, "COMPLETED", "COMPLETED", { output: { n: 1 }, finishedAt: "set", durationMs: 7, startedAt, error: undefined });
  assert.equal((await execution(id)).snapshot.executionStatus, "FINISHED");
});

test("DELAYED until its time", async () => {
  const id = await worker.trigger("hello", { delay: "1s" });
  const { delayedUntil } = await shows(id, "DELAYED", "DELAYED", { delayedUntil: "set", startedAt: undefined });
  const attempt = await worker.take(id);
  assert.ok(Date.now() >= new Date(delayedUntil));
  await attempt.succeed(1);
  const run = await shows(id, "COMPLETED", "COMPLETED", { delayedUntil });
  assert.ok(run.startedAt >= delayedUntil);
});

test("WAITING_FOR_DEPLOY until a version has the task", async () => {
  const id = await worker.trigger("unheard-of");
  await shows(id, "WAITING_FOR_DEPLOY", "PENDING_VERSION", { version: undefined, startedAt: undefined });
  const newer = await Worker.register(gateway, { tasks: ["hello", "unheard-of"] });
  await (await newer.take(id)).succeed(1);
  await shows(id, "COMPLETED", "COMPLETED", { version: newer.version });
  worker = newer;
});

test("EXPIRED when no worker takes it in time", async () => {
  const id = await worker.trigger("hello", { ttl: "1s" });
  await becomes(id, "EXPIRED");
  await shows(id, "EXPIRED", "EXPIRED", { expiredAt: "set", finishedAt: "set", startedAt: undefined });
  assert.match((await worker.show(id)).run.error.message, /TTL \(1s\)/);
});

test("REATTEMPTING while a retry is due", async () => {
  const attempt = await fresh({ maxAttempts: 3 });
  const { startedAt } = (await worker.show(attempt.id)).run;
  const soon = await attempt.fail(thrown, { retry: inMs(50), usage: { durationMs: 5 } });
  assert.equal(soon.attemptStatus, "RETRY_IMMEDIATELY");
  assert.deepEqual([soon.run.attemptNumber, soon.run.status], [1, "RETRYING_AFTER_FAILURE"]);
  await shows(attempt.id, "REATTEMPTING", "EXECUTING", { attemptCount: 1, durationMs: 5, finishedAt: undefined, error: undefined });
  await attempt.start();
  await shows(attempt.id, "EXECUTING", "EXECUTING", { attemptCount: 2, startedAt });

  const late = await attempt.fail(thrown, { retry: inMs(40_000) });
  assert.equal(late.attemptStatus, "RETRY_QUEUED");
  await shows(attempt.id, "REATTEMPTING", "EXECUTING", { attemptCount: 2, finishedAt: undefined });
  const other = await fresh(); // the retry is not offered yet
  assert.notEqual(other.id, attempt.id);
  await other.succeed(1);
  await worker.cancel(attempt.id);
  await shows(attempt.id, "CANCELED", "CANCELED", { finishedAt: "set" });
});

test("a queued retry is offered when it is due", async () => {
  const retry = { maxAttempts: 2, minTimeoutInMs: 500, maxTimeoutInMs: 500, randomize: false };
  const own = await Worker.register(gateway, { tasks: [{ id: "exits", retry }], key: keys.prod });
  const attempt = await own.take(await own.trigger("exits"));
  const failed = Date.now();
  const { attemptStatus } = await attempt.fail(internal("TASK_PROCESS_EXITED_WITH_NON_ZERO_CODE"));
  assert.equal(attemptStatus, "RETRY_QUEUED"); // according to the settings of the version
  const again = await own.take(attempt.id);
  assert.ok(Date.now() - failed >= 490, `${Date.now() - failed} ms`);
  assert.equal(again.started.run.attemptNumber, 2);
  await again.fail(internal("TASK_PROCESS_EXITED_WITH_NON_ZERO_CODE"));
  await shows(attempt.id, "CRASHED", "CRASHED", { attemptCount: 2, finishedAt: "set" }, own);
});

test("FROZEN while it waits", async () => {
  const attempt = await fresh();
  const date = new Date(Date.now() + 1000).toISOString();
  const { status, json } = await attempt.waitReply(date);
  assert.deepEqual([status, json.waitUntil], [200, date]);
  await shows(attempt.id, "FROZEN", "WAITING", { attemptCount: 1, finishedAt: undefined });
  const blocked = await attempt.refresh();
  assert.equal(blocked.snapshot.executionStatus, "EXECUTING_WITH_WAITPOINTS");
  assert.deepEqual(blocked.completedWaitpoints, []);
  await becomes(attempt.id, "EXECUTING");
  const [waitpoint] = (await attempt.refresh()).completedWaitpoints;
  assert.deepEqual([waitpoint.id, waitpoint.friendlyId, waitpoint.type, waitpoint.outputIsError],
    [json.waitpoint.id, json.waitpoint.id, "DATETIME", false]);
  assert.equal(waitpoint.completedAfter, date);
  assert.ok(waitpoint.completedAt >= date);
  await attempt.succeed(1);
  assert.equal((await attempt.waitReply(date)).status, 400);
  assert.equal((await attempt.waitReply("never")).status, 400);
});

test("FAILED, CRASHED, SYSTEM_FAILURE, TIMED_OUT and INTERRUPTED by the error", async () => {
  for (const [error, a, b = a] of [
    [thrown, "FAILED"],
    [{ type: "STRING_ERROR", raw: "text" }, "FAILED"],
    [{ type: "CUSTOM_ERROR", raw: "{}" }, "FAILED"],
    [internal("TASK_INPUT_ERROR"), "FAILED"],
    [internal("TASK_PROCESS_SIGSEGV"), "CRASHED"],
    [internal("COULD_NOT_FIND_TASK"), "SYSTEM_FAILURE"],
    [internal("SOMETHING_NEW"), "SYSTEM_FAILURE"],
    [internal("MAX_DURATION_EXCEEDED"), "TIMED_OUT"],
    [internal("TASK_RUN_CANCELLED"), "INTERRUPTED", "FAILED"], // no client canceled it
  ]) {
    const attempt = await fresh();
    assert.equal((await attempt.fail(error)).attemptStatus, "RUN_FINISHED");
    const run = await shows(attempt.id, a, b, { finishedAt: "set", attemptCount: 1, output: undefined });
    assert.ok(run.error.message, error.code ?? error.type);
    assert.equal("name" in run.error, error.type === "BUILT_IN_ERROR");
  }
});

test("CANCELED at once, finished when its worker confirms it or stays silent", async () => {
  const queued = await worker.trigger("hello");
  await worker.cancel(queued);
  await shows(queued, "CANCELED", "CANCELED", { finishedAt: "set", startedAt: undefined });

  for (const confirms of [true, false]) {
    const who = confirms ? worker : hasty, attempt = await fresh({}, who);
    await who.cancel(attempt.id);
    await shows(attempt.id, "CANCELED", "CANCELED", {}, who);
    assert.equal((await attempt.startReply()).status, 400);
    assert.equal((await attempt.refresh()).snapshot.executionStatus, "PENDING_CANCEL");
    if (confirms) await attempt.fail(internal("TASK_RUN_CANCELLED"));
    await settled(attempt.id, who);
    await shows(attempt.id, "CANCELED", "CANCELED", { attemptCount: 1, finishedAt: "set" }, who);
  }
});

test("INTERRUPTED when the session stops its heartbeat", async () => {
  const silent = await fresh({}, hasty), attempt = await fresh({}, hasty);
  await until(async () => {
    await attempt.heartbeat();
    return await hasty.status(silent.id) === "INTERRUPTED";
  }, { everyMs: 100, what: "the end of another, which sends none" });
  assert.equal(await hasty.status(attempt.id), "EXECUTING");
  await becomes(attempt.id, "INTERRUPTED", hasty);
  await shows(attempt.id, "INTERRUPTED", "FAILED", { finishedAt: "set" }, hasty);
  assert.match((await hasty.show(attempt.id)).run.error.message, /TASK_RUN_STALLED_EXECUTING/);
});

test("a lease that expires puts the run back into the queue", async () => {
  const id = await hasty.trigger("hello");
  await hasty.dequeue();
  const { startedAt } = await shows(id, "EXECUTING", "DEQUEUED", {}, hasty);
  await becomes(id, "QUEUED", hasty);
  const attempt = await hasty.take(id);
  await shows(id, "EXECUTING", "EXECUTING", { startedAt, attemptCount: 1 }, hasty);
  await attempt.succeed(1);
});

test("children are canceled with their parent, and survive one that completes", async () => {
  const parent = await fresh(), done = await fresh();
  const child = await fresh({ parentRunId: parent.id });
  const orphan = await fresh({ parentRunId: done.id });
  await done.succeed(1);
  await worker.cancel(parent.id);
  await parent.refresh();
  await parent.fail(internal("TASK_RUN_CANCELLED"));
  await becomes(child.id, "CANCELED");
  await child.refresh();
  await child.fail(internal("TASK_RUN_CANCELLED"));
  await becomes(orphan.id, "EXECUTING");
  await orphan.succeed(1);
});

test("the README's table has exactly the pairs of words that were seen", () => {
  const readme = fs.readFileSync(new URL("../../src/api/router/README.md", import.meta.url), "utf8");
  const table = readme.split("| older (default) | `2025-07-16` | |")[1].split("\n\n")[0];
  const rows = table.split("\n").slice(2).map((line) => line.split("|").slice(1, 3));
  const words = (cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, word]) => word);
  const told = rows.flatMap(([older, newer]) => words(older).map((a) => `${a} ${words(newer)[0] ?? (assert.match(newer, /the same/), a)}`));
  assert.deepEqual(told.sort(), [...pairs].sort());
});

test("every status that a client may be shown was seen", () => {
  assert.deepEqual([...seen].sort(), [
    "CANCELED", "COMPLETED", "CRASHED", "DELAYED", "EXECUTING", "EXPIRED", "FAILED", "FROZEN",
    "INTERRUPTED", "QUEUED", "REATTEMPTING", "SYSTEM_FAILURE", "TIMED_OUT", "WAITING_FOR_DEPLOY",
  ]);
});

test("every deadline survives a kill", async (t) => {
  const own = await startGateway({ t, options: ["--lease", "4s", "--heartbeat-timeout", "10s", "--cancel-timeout", "2s", "--dev-concurrency", "5"] });
  const retry = { maxAttempts: 3, minTimeoutInMs: 1500, maxTimeoutInMs: 1500, randomize: false };
  const me = await Worker.register(own, { tasks: ["hello", { id: "exits", retry }] });
  const began = async (task = "hello") => me.take(await me.trigger(task));

  const silent = await began();
  const waiting = await began();
  const canceling = await began();
  const retrying = await began("exits");
  const leased = await me.trigger("hello");
  await me.dequeue();
  const date = new Date(Date.now() + 1500).toISOString();
  assert.equal((await waiting.waitReply(date)).status, 200);
  assert.equal((await retrying.fail(internal("TASK_PROCESS_EXITED_WITH_NON_ZERO_CODE"))).attemptStatus, "RETRY_QUEUED");
  await me.cancel(canceling.id);
  const expiring = await me.trigger("hello", { ttl: "2s" });
  const delayed = await me.trigger("hello", { delay: "2s", ttl: "1h" });
  const stays = await me.trigger("hello", { delay: "1h" });
  await own.kill();
  await own.restart();

  assert.equal(await me.status(stays), "DELAYED");
  await becomes(waiting.id, "EXECUTING", me);
  assert.equal((await waiting.refresh()).completedWaitpoints[0].completedAfter, date);
  await waiting.succeed(1);
  await becomes(expiring, "EXPIRED", me);
  await becomes(leased, "QUEUED", me);
  await settled(canceling.id, me);
  await becomes(delayed, "QUEUED", me);
  const left = new Set([leased, delayed, retrying.id]);
  while (left.size) {
    const attempt = await me.take();
    assert.ok(left.delete(attempt.id), `${attempt.id} was offered`);
    await attempt.succeed(1);
  }
  await becomes(silent.id, "INTERRUPTED", me);
  await own.stop();
});
