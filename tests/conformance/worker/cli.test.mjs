// The official CLI in cases that e2e.mjs lacks: its exits, kills of the gateway, lost responses, and subscribers. Its
// project is a copy of the folder cases.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";

import { startCli } from "../../support/js/cli.mjs";
import { keys, sleep, startGateway, until } from "../../support/js/gateway.mjs";
import { LossyProxy } from "../../support/js/lossy_proxy.mjs";
import { runProgram } from "../../support/js/program.mjs";
import { RunsMirror } from "../../support/js/runs.mjs";
import { Worker } from "../../support/js/worker_calls.mjs";

const require = createRequire(new URL("../sdk-v4/x.js", import.meta.url));
const sdk = require("@trigger.dev/sdk");

const FINAL = ["COMPLETED", "CANCELED", "FAILED", "CRASHED", "SYSTEM_FAILURE", "EXPIRED", "TIMED_OUT", "INTERRUPTED"];

async function trigger(gateway, task, payload = {}, options = {}) {
  const reply = await gateway.post(`/api/v1/tasks/${task}/trigger`, { payload, options });
  assert.equal(reply.status, 200, reply.text);
  return reply.json.id;
}
const show = async (gateway, id) => (await gateway.get(`/api/v3/runs/${id}`)).json;

/** Waits until wanted(run) is true, by default until the run has finished; returns the run. */
async function settled(gateway, id, wanted = ({ status }) => FINAL.includes(status), timeoutMs = 40_000) {
  let run;
  try {
    return await until(async () => { run = await show(gateway, id); return wanted(run) && run; }, { timeoutMs, everyMs: 50 });
  } catch {
    throw new Error(`${id} is not as wanted within ${timeoutMs} ms: ${JSON.stringify(run)}`);
  }
}
const executing = (gateway, id) => settled(gateway, id, ({ status, attemptCount }) => status === "EXECUTING" && attemptCount > 0);

test("one session: versions, relatives, failures, cancels, and subscribers", async (t) => {
  const gateway = await startGateway({ t });
  const other = await Worker.register(gateway, { tasks: ["other"], hash: "other" });
  const early = await trigger(gateway, "hello", { name: "early" });
  const offered = other.dequeue();
  await settled(gateway, early, ({ status }) => status === "WAITING_FOR_DEPLOY");
  const first = await other.trigger("other"); // ends the held dequeue
  await (await offered).startReply();
  assert.equal((await other.disconnect([first])).json.cancelled, 1);
  const cli = await startCli({ t, gateway });

  await t.test("a run that waited for a version is released by the registration", async () => {
    const run = await settled(gateway, early);
    assert.deepEqual([run.status, run.output], ["COMPLETED", { greeting: "Hello, early!" }]);
    assert.match(other.version, /^\d{8}\.1$/);
    assert.equal(run.version, other.version.replace(/1$/, "2"));
  });

  await t.test("a WebSocket and runs.subscribeToRun see every state of a run", async () => {
    const states = [], seen = [];
    const mirror = new RunsMirror({ port: gateway.port, token: keys.dev });
    mirror.onRun = (_id, version, { status, metadata }) => states.push({ version, status, step: metadata?.step, at: Date.now() });
    mirror.subscribe({ tags: ["watched"] });
    await mirror.connect();
    const id = await trigger(gateway, "everything", {}, { tags: ["watched"], delay: "2s" });
    await sdk.auth.withAuth({ baseURL: gateway.url, accessToken: keys.dev }, async () => {
      for await (const { status, metadata } of sdk.runs.subscribeToRun(id)) seen.push({ status, step: metadata?.step });
    });
    await until(() => FINAL.includes(mirror.runs.get(id)?.fields.status), { what: "the socket sees the end" });
    mirror.cut();
    assert.deepEqual([mirror.errors, mirror.skipped], [[], 0]);
    const text = (all) => all.map(({ status, step }) => [status, step].filter(Boolean).join(" "));
    assert.deepEqual(text(states), [
      "DELAYED", "QUEUED", "EXECUTING", "EXECUTING", "REATTEMPTING", "EXECUTING", "EXECUTING before",
      "FROZEN before", "EXECUTING before", "EXECUTING after", "COMPLETED after",
    ]); // the first EXECUTING is the lease
    assert.deepEqual(states.map(({ version }) => version), states.map((_, i) => i + 1));
    const newer = { REATTEMPTING: "EXECUTING", FROZEN: "WAITING" };
    const lease = states.findIndex(({ status }) => status === "EXECUTING");
    const wanted = states.map(({ status, step }, i) => ({ status: i === lease ? "DEQUEUED" : newer[status] ?? status, step }));
    // The SDK sees one state for all changes between two of its polls, so it sees the states that last.
    const all = text(wanted), got = text(seen);
    for (let i = 0, next = 0; i < got.length; i++, next++) {
      next = all.indexOf(got[i], next);
      assert.ok(next >= 0, `${got[i]} in its place: ${got}`);
    }
    const lasting = all.filter((_, i) => i === all.length - 1 || states[i + 1].at - states[i].at > 300);
    for (const state of lasting) assert.ok(got.includes(state), `${state} is seen: ${got}`);
  });

  await t.test("metadata reaches parent and root, also from tasks that end at once", async () => {
    const top = await settled(gateway, await trigger(gateway, "root"));
    const middle = await show(gateway, top.output.middle), leaf = await show(gateway, middle.output.leaf);
    top.metadata.seen.sort(); // a waiting run flushes each second; one that finishes at once does not
    assert.deepEqual(top.metadata, { alone: true, child: "middle", seen: ["leaf", "middle"] });
    assert.deepEqual(middle.metadata, { mine: "middle", children: ["leaf"], count: 1 });
    assert.deepEqual(leaf.metadata, { mine: "leaf" });
    assert.deepEqual([leaf.depth, leaf.relatedRuns.parent.id, leaf.relatedRuns.root.id], [2, middle.id, top.id]);
  });

  await t.test("an output that is SuperJSON is shown as plain JSON", async () => {
    const { at, list, set, big, text } = (await settled(gateway, await trigger(gateway, "rich"))).output;
    assert.deepEqual({ at, list, set, big, text }, {
      at: "2026-01-02T03:04:05.678Z", list: [1, null, { deep: true }], set: ["x"], big: "12345678901234567890", text: "ünï",
    });
  });

  await t.test("a process that dies is retried as the task's settings say, then the run has crashed", async () => {
    const run = await settled(gateway, await trigger(gateway, "dies"));
    assert.deepEqual([run.status, run.attemptCount], ["CRASHED", 2]);
    assert.match(run.error.message, /TASK_PROCESS_EXITED_WITH_NON_ZERO_CODE/);
  });

  await t.test("a run whose error or output has megabytes ends", async () => {
    const error = await settled(gateway, await trigger(gateway, "quotes", { how: "error" }));
    assert.deepEqual([error.status, error.attemptCount], ["FAILED", 1]);
    assert.match(error.error.message, /^Unexpected answer: <p>/);
    assert.match(error.error.stackTrace, /^Error: Unexpected answer: (<p>[^<]*<\/p>\n)+.*… \(cut, 1\.3 MB\)$/s);
    const string = await settled(gateway, await trigger(gateway, "quotes", { how: "string" }));
    assert.match(string.error.message, /^x+\.\.\.\[truncated\]$/, "the SDK has truncated it");
    const output = await settled(gateway, await trigger(gateway, "quotes", { how: "output" }));
    t.diagnostic(`an output of 17 MB: ${output.status} ${JSON.stringify(output.error)?.slice(0, 300)}`);
    assert.deepEqual([output.status, output.attemptCount], ["FAILED", 1], "SDKs upload the output, and the limit of packets is 10 MiB");
    assert.match(output.error.message, /TASK_OUTPUT_ERROR\): .*The body is too large/);
  });

  await t.test("a cancel while the worker waits for a retry is final at once and frees the queue", async () => {
    const id = await trigger(gateway, "pauses");
    const next = await trigger(gateway, "serial-user");
    await settled(gateway, id, ({ status }) => status === "REATTEMPTING");
    await gateway.post(`/api/v2/runs/${id}/cancel`, {});
    const run = await show(gateway, id);
    assert.deepEqual([run.status, run.attemptCount, !!run.finishedAt], ["CANCELED", 1, true]);
    assert.equal((await settled(gateway, next)).status, "COMPLETED");
    const pause = cli.output.length;
    await until(() => /Failed to start run/.test(cli.output.slice(pause - 1000)), { what: "the worker gives the run up" });
    assert.equal((await show(gateway, id)).status, "CANCELED");
  });

  let version;
  await t.test("a graceful end of the CLI interrupts the runs that it executes", async () => {
    const id = await trigger(gateway, "lasts", { seconds: 30 });
    ({ version } = await executing(gateway, id));
    await sleep(1000); // its task has begun; if not, the end only comes earlier
    const began = Date.now();
    await cli.stop("SIGTERM");
    const run = await settled(gateway, id);
    t.diagnostic(`${run.status} ${Date.now() - began} ms after SIGTERM: ${JSON.stringify(run.error)}`);
    assert.equal(run.status, "INTERRUPTED");
  });

  const again = await startCli({ t, gateway, folder: cli.folder }); // the same build is the same version
  await t.test("a gateway that is killed and restarted continues with the runs of the CLI", async () => {
    const long = await trigger(gateway, "lasts", { seconds: 6 });
    const waiting = await trigger(gateway, "everything");
    const pausing = await trigger(gateway, "pauses");
    const queued = await trigger(gateway, "serial-user");
    const delayed = await trigger(gateway, "hello", {}, { delay: "1m" });
    await executing(gateway, long);
    await settled(gateway, pausing, ({ status }) => status === "REATTEMPTING");
    await settled(gateway, waiting, ({ status }) => status === "FROZEN");
    assert.equal((await show(gateway, queued)).status, "QUEUED");
    await gateway.post(`/api/v1/runs/${delayed}/reschedule`, { delay: "1s" });
    await gateway.kill();
    const last = await trigger(await gateway.restart(), "hello", { name: "Ada" });
    const ends = {};
    for (const [name, id] of Object.entries({ long, waiting, pausing, queued, delayed, last })) {
      const run = await settled(gateway, id, undefined, 70_000);
      assert.equal(run.version, version);
      ends[name] = [run.status, run.attemptCount, run.output];
    }
    assert.deepEqual(ends, {
      long: ["COMPLETED", 1, { lasted: 6 }],
      waiting: ["COMPLETED", 2, { done: true }],
      pausing: ["COMPLETED", 2, { attempt: 2 }],
      queued: ["COMPLETED", 1, { done: true }],
      delayed: ["COMPLETED", 1, { greeting: "Hello, world!" }],
      last: ["COMPLETED", 1, { greeting: "Hello, Ada!" }],
    });
    assert.equal(again.end, undefined, "the same CLI");
  });

  await t.test("a killed CLI interrupts the runs that it executes", async () => {
    const id = await trigger(gateway, "lasts", { seconds: 30 });
    assert.equal((await executing(gateway, id)).version, version);
    const began = Date.now();
    await again.kill();
    const run = await settled(gateway, id);
    t.diagnostic(`${run.status} ${Date.now() - began} ms after SIGKILL`);
    assert.equal(run.status, "INTERRUPTED");
  });
  assert.doesNotMatch(cli.output, /validation error|poll failed|Failed to submit|Failed to get/i, "the CLI understands every response");
  await gateway.stop();
});

test("heartbeats keep a run; without them it is interrupted", async (t) => {
  const gateway = await startGateway({ t, options: ["--heartbeat-timeout", "10s"] });
  const variable = { name: "HEARTBEAT_INTERVAL_MS", value: "500" };
  assert.equal((await gateway.post(`/api/v1/projects/${keys.ref}/envvars/dev`, variable)).status, 200);
  const cli = await startCli({ t, gateway });
  const kept = await settled(gateway, await trigger(gateway, "lasts", { seconds: 13 }));
  assert.deepEqual([kept.status, kept.output], ["COMPLETED", { lasted: 13 }]);

  const id = await trigger(gateway, "lasts", { seconds: 60 });
  await executing(gateway, id);
  cli.killWatchdog(); // as when the machine fails: no process reports the end of the session
  await cli.kill();
  const run = await settled(gateway, id);
  assert.equal(run.status, "INTERRUPTED");
  assert.match(run.error.message, /TASK_RUN_STALLED_EXECUTING/);
  await gateway.stop();
});

test("a response that is lost with a killed gateway is sent again, and an expired key is retried with growing pauses", async (t) => {
  const gateway = await startGateway({ t });
  const proxy = await LossyProxy.start(gateway.port, t);
  const cli = await startCli({ t, url: proxy.url });
  const restart = async () => { await gateway.kill(); await gateway.restart(); };

  /** Loses one response of that kind during a run; returns both responses. */
  async function lose(path, task, holding) {
    const began = proxy.answers.length;
    const losing = proxy.lose(path, { holding, meanwhile: restart });
    const id = await trigger(gateway, task);
    await losing;
    const run = await settled(gateway, id);
    const lost = proxy.answers.slice(began).find((answer) => answer.lost);
    // While the gateway starts it responds with 503, and the CLI retries.
    const again = await until(() => proxy.answers.find((answer) => answer.key === lost.key && !answer.lost && answer.status !== 503), { what: `${path} is repeated` });
    assert.equal(again.status, 200, again.body);
    return { run, lost: JSON.parse(lost.body), again: JSON.parse(again.body) };
  }

  await t.test("the run that a dequeue got", async () => {
    const { run, lost, again } = await lose(/\/dequeue$/, "hello", "run_");
    for (const { dequeuedMessages } of [lost, again]) delete dequeuedMessages[0].dequeuedAt;
    assert.deepEqual(again, lost);
    assert.deepEqual([run.status, run.attemptCount], ["COMPLETED", 1]);
  });
  await t.test("the attempt that a start began", async () => {
    const { run, lost, again } = await lose(/\/attempts\/start$/, "hello");
    assert.deepEqual(again, lost);
    assert.deepEqual([run.status, run.attemptCount], ["COMPLETED", 1]);
  });
  await t.test("the result of a completion", async () => {
    const { run, lost, again } = await lose(/\/attempts\/complete$/, "hello");
    assert.equal(lost.result.attemptStatus, "RUN_FINISHED");
    assert.deepEqual(again, lost);
    assert.deepEqual([run.status, run.attemptCount], ["COMPLETED", 1]);
  });
  await t.test("calls of an executing task: a child, a wait, a token, a batch", async () => {
    const paths = [/\/tasks\/leaf\/trigger$/, /\/wait\/duration$/, /\/waitpoints\/tokens$/, /\/tokens\/[^/]+\/wait$/, /\/v3\/batches$/, /\/items$/];
    const losing = Promise.all(paths.map((path) => proxy.lose(path)));
    const id = await trigger(gateway, "asks");
    const { token } = (await settled(gateway, id, ({ metadata }) => metadata?.token)).metadata;
    await gateway.post(`/api/v1/waitpoints/tokens/${token}/complete`, { data: { yes: true } });
    await losing;
    const run = await settled(gateway, id);
    assert.deepEqual([run.status, run.output], ["COMPLETED", { leaf: "one", answer: { yes: true }, batch: ["a", "b"] }]);
    assert.equal(run.attemptCount, 1);
    assert.deepEqual(run.relatedRuns.children.length, 3, "each child once");
  });
  await t.test("the retry that a completion began", async () => {
    const { run, lost, again } = await lose(/\/attempts\/complete$/, "pauses");
    assert.equal(lost.result.attemptStatus, "RETRY_IMMEDIATELY");
    assert.deepEqual(again, lost);
    assert.deepEqual([run.status, run.attemptCount], ["COMPLETED", 2]);
  });
  await t.test("a key that has expired: the CLI keeps retrying with growing pauses, and causes one line of the log", async () => {
    const logged = gateway.stderr.length, answered = proxy.answers.length;
    assert.equal((await runProgram(["keys", "rotate", "dev", "--grace", "0", "--data", gateway.data])).code, 0);
    const refused = () => proxy.answers.slice(answered).filter(({ path, status }) => path === "/engine/v1/dev/dequeue" && status === 401);
    await until(() => refused().length >= 6, { everyMs: 50, what: "six dequeues are refused" });
    // One request, repeated by the CLI's own rule after 0.5, 1, 2 and 4 s, and then the next one.
    const asked = refused().map(({ key }) => key);
    assert.deepEqual(asked.slice(0, 6), [...Array(5).fill(asked[0]), asked[5]]);
    assert.notEqual(asked[5], asked[0]);
    await cli.stop();
    await gateway.stop();
    const lines = gateway.stderr.slice(logged).split("\n").filter((line) => line.includes("/engine/v1/dev/dequeue") && line.includes('"event":"request"'));
    assert.equal(lines.length, 1, lines.join("\n"));
  });
});
