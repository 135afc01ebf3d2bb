// Workers outside a developer's session: worker tokens, the calls under worker-actions, and a plain worker process
// that serves prod.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

import { keys, startGateway, until } from "../support/js/gateway.mjs";
import { NoticeSocket } from "../support/js/notices.mjs";
import { runProgram } from "../support/js/program.mjs";
import { RunsMirror } from "../support/js/runs.mjs";
import { thrown, Worker } from "../support/js/worker_calls.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const core = path.join(here, "../conformance/sdk-v4/node_modules/@trigger.dev/core/dist/esm/v3/runEngineWorker/supervisor/http.js");
const { SupervisorHttpClient } = await import(pathToFileURL(core).href);
const tasks = ["double", "slow", "where", { id: "dies", retry: { maxAttempts: 3 } }];
const quick = ["--heartbeat-timeout", "5s", "--lease", "5s"]; // a busy machine keeps them, and lost runs are noticed soon

let gateway, token;
const registered = {};
const tell = async (to, ...words) => {
  const { code, stdout, all } = await runProgram([...words, "--data", to.data]);
  assert.equal(code, 0, `${words.join(" ")}: ${all}`);
  return stdout;
};
const makeToken = async (...more) => (await tell(gateway, "worker-token", "create", ...more)).trim();
const actions = "/engine/v1/worker-actions";
const ask = (method, rest, body, key = token, more) => gateway.http.request(method, `${actions}/${rest}`, { key, body, ...more });

before(async () => {
  gateway = await startGateway({ options: quick });
  token = await makeToken("--name", "rack 7");
  for (const env of ["dev", "staging", "prod"]) registered[env] = await Worker.register(gateway, { tasks, key: keys[env] });
});
after(() => gateway.stop());

// ---- the process ----

/** A worker process that stops with the test: its events, and a wait for the first of a kind. */
function startWorker(t, { to = gateway, key = token } = {}) {
  const child = spawn(process.execPath, [path.join(here, "../support/js/plain_worker.mjs")],
    { env: { ...process.env, URL: to.url, WORKER_TOKEN: key, HEARTBEAT_MS: "200" }, stdio: ["ignore", "pipe", "inherit"] });
  const events = [];
  let rest = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    events.push(...lines.map((line) => JSON.parse(line)));
  });
  const ended = new Promise((resolve) => child.on("close", (code, signal) => resolve({ code, signal })));
  t.after(() => { child.kill("SIGKILL"); return ended; });
  const of = (event) => events.filter((one) => one.event === event);
  return { child, events, ended, of, first: (event) => until(() => of(event)[0], { what: event }) };
}

const ended = (worker, id) => until(async () => {
  const { run } = await worker.show(id);
  return run.finishedAt && run;
}, { what: `the end of ${id}` });

describe("a plain worker", () => {
  test("serves prod, and subscribers see its run end", async (t) => {
    const mirror = new RunsMirror({ port: gateway.port, token: keys.prod }), seen = {};
    mirror.onRun = (id, _version, { status }) => { (seen[id] ??= []).push(status); };
    mirror.subscribe({ all: true });
    await mirror.connect();
    t.after(() => mirror.cut());
    const process = startWorker(t);
    assert.equal((await process.first("connected")).as, "rack 7");
    const id = await registered.prod.trigger("double", {}, 21);
    await until(() => seen[id]?.at(-1) === "COMPLETED", { what: "COMPLETED over the socket" });
    assert.deepEqual(seen[id].filter((status, i) => status !== seen[id][i - 1]), ["QUEUED", "EXECUTING", "COMPLETED"]);
    const { run } = await registered.prod.show(id);
    assert.deepEqual([run.output, run.attemptCount ?? run.attempts?.length], [42, 1]);
    assert.deepEqual(mirror.errors, []);
  });

  test("serves every environment except dev, each with its own key", async (t) => {
    const preview = await gateway.post(`/api/v1/projects/${keys.ref}/branches`, { env: "preview", branch: "b1" }, { key: keys.pat });
    assert.equal(preview.status, 200, preview.text);
    const headers = { "x-trigger-branch": "b1" };
    const metadata = { packageVersion: "4.8.3", contentHash: "b1", queues: [], tasks: [{ id: "where", filePath: "a.ts" }] };
    const made = await gateway.post(`/api/v1/projects/${keys.ref}/background-workers`, { metadata }, { key: keys.preview, headers });
    assert.equal(made.status, 200, made.text);
    const onBranch = (await gateway.post("/api/v1/tasks/where/trigger", { payload: 1 }, { key: keys.preview, headers })).json.id;
    const dev = await registered.dev.trigger("where", {}, 1);
    startWorker(t);
    for (const [env, expected] of [["staging", ["STAGING", "stg"]], ["prod", ["PRODUCTION", "prod"]]])
      assert.deepEqual((await ended(registered[env], await registered[env].trigger("where", {}, 1))).output, expected);
    const branch = await until(async () => {
      const { json } = await gateway.get(`/api/v3/runs/${onBranch}`, { key: keys.preview, headers });
      return json.status === "COMPLETED" && json;
    }, { what: "the run of the branch" });
    assert.deepEqual(branch.output, ["PREVIEW", "preview"]);
    assert.equal(await registered.dev.status(dev), "QUEUED");
    await (await registered.dev.take(dev)).succeed(1);
  });

  test("that is killed loses its run to another worker", async (t) => {
    const first = startWorker(t);
    await first.first("connected");
    const id = await registered.prod.trigger("dies", {}, 0);
    assert.equal((await first.ended).signal, "SIGKILL");
    assert.equal(await registered.prod.status(id), "EXECUTING");
    const second = startWorker(t);
    const run = await ended(registered.prod, id);
    assert.deepEqual([run.status, run.output], ["COMPLETED", 2]);
    assert.deepEqual(second.of("started"), [{ event: "started", run: id, attempt: 2 }]);
  });

  test("that loses a run without attempts left makes it fail as stalled", async (t) => {
    const first = startWorker(t);
    await first.first("connected");
    const id = await registered.prod.trigger("dies", { maxAttempts: 1 }, 0);
    await first.ended;
    const run = await ended(registered.prod, id);
    assert.equal(run.status, "FAILED");
    assert.match(run.error.message, /TASK_RUN_STALLED_EXECUTING/);
  });

  test("shares 60 runs with another one, and each is executed once", async (t) => {
    const workers = [startWorker(t), startWorker(t)];
    await Promise.all(workers.map((worker) => worker.first("connected")));
    const items = Array.from({ length: 60 }, (_, i) => ({ task: "double", payload: String(i) }));
    const batch = (await gateway.post("/api/v1/tasks/batch", { items }, { key: keys.prod })).json;
    const started = () => workers.flatMap((worker) => worker.of("completed"));
    await until(() => started().length >= 60, { what: "60 completions" });
    assert.equal(new Set(started().map(({ run }) => run)).size, 60);
    assert.ok(started().every(({ status }) => status === 200));
    for (const worker of workers) assert.ok(worker.of("completed").length > 0, "both have worked");
    for (const [i, { id }] of [...batch.runs.entries()].filter(([i]) => i % 20 === 0))
      assert.equal((await registered.prod.show(id)).run.output, i * 2);
  });

  test("continues where it was when the gateway is killed and restarted", async (t) => {
    const own = await startGateway({ t });
    const prod = await Worker.register(own, { tasks, key: keys.prod });
    const key = (await tell(own, "worker-token", "create")).trim();
    const process = startWorker(t, { to: own, key });
    const running = await prod.trigger("slow", {}, 400);
    await process.first("started");
    const waiting = await prod.trigger("double", {}, 4);
    await own.kill();
    await own.restart();
    const run = await ended(prod, running);
    assert.deepEqual([run.status, run.output], ["COMPLETED", "done"]);
    assert.equal((await ended(prod, waiting)).output, 8);
    assert.deepEqual(process.of("started").map(({ run: id, attempt }) => [id, attempt]), [[running, 1], [waiting, 1]]);
    await own.stop();
  });
});

// ---- the calls, as the published client makes them ----

describe("the supervisor's client of 4.8.3", () => {
  let client;
  before(() => { client = new SupervisorHttpClient({ apiUrl: gateway.url, workerToken: token, instanceName: "one", sendRunDebugLogs: true }); });
  const good = (result) => { assert.ok(result.success, String(result.error)); return result.data; };
  const take = async (id) => {
    const [message] = good(await client.dequeue({}));
    assert.equal(message.run.friendlyId, id);
    return [id, message.snapshot.friendlyId];
  };

  test("connects, sends heartbeats, and takes a run through its life", async () => {
    assert.deepEqual(good(await client.connect({ metadata: { a: 1 } })), { ok: true, workerGroup: { type: "UNMANAGED", name: "rack 7" } });
    good(await client.heartbeatWorker({ cpu: { used: 0, available: 4 }, memory: { used: 0, available: 8 }, tasks: [] }));
    const id = await registered.prod.trigger("double", {}, 1);
    const [, leased] = await take(id);
    const started = good(await client.startRunAttempt(id, leased, { isWarmStart: false }));
    assert.deepEqual([started.execution.run.id, started.envVars.TRIGGER_SECRET_KEY], [id, keys.prod]);
    const now = started.snapshot.friendlyId;
    good(await client.heartbeatRun(id, now, { cpu: 0, memory: 0 }));
    assert.equal(good(await client.getLatestSnapshot(id)).execution.snapshot.friendlyId, now);
    assert.deepEqual(good(await client.getSnapshotsSince(id, now)).snapshots, []);
    assert.deepEqual(good(await client.getSnapshotsSince(id, leased)).snapshots.map(({ snapshot }) => snapshot.friendlyId), [now]);
    await client.sendDebugLog(id, { time: new Date(), message: "m" });
    const done = good(await client.completeRunAttempt(id, now, { completion: { ok: true, id, output: "1", outputType: "application/json" } }));
    assert.equal(done.result.attemptStatus, "RUN_FINISHED");
    assert.equal(good(await client.getLatestSnapshot(id)).execution.snapshot.executionStatus, "FINISHED");
  });

  test("learns of a cancel, and of waits that have ended, by the newest snapshot", async () => {
    const [id, leased] = await take(await registered.prod.trigger("double", {}, 1));
    const { snapshot } = good(await client.startRunAttempt(id, leased, {}));
    await gateway.post(`/engine/v1/runs/${id}/wait/duration`, { date: new Date(Date.now() + 100) }, { key: keys.prod });
    const over = await until(async () => {
      const [newest] = good(await client.getSnapshotsSince(id, snapshot.friendlyId)).snapshots;
      return newest?.completedWaitpoints.length && newest;
    }, { what: "the end of the wait" });
    assert.equal(over.completedWaitpoints[0].type, "DATETIME");
    await registered.prod.cancel(id);
    const [canceled] = good(await client.getSnapshotsSince(id, over.snapshot.friendlyId)).snapshots;
    assert.equal(canceled.snapshot.executionStatus, "PENDING_CANCEL");
    good(await client.completeRunAttempt(id, canceled.snapshot.friendlyId, { completion: { ok: false, id, error: { type: "INTERNAL_ERROR", code: "TASK_RUN_CANCELLED" } } }));
  });

  test("gives back a run that it will not start, and a retry to another process", async () => {
    const [id, leased] = await take(await registered.prod.trigger("dies", {}, 1));
    assert.deepEqual(good(await client.releaseRun(id, leased, { reason: "no room" })), { ok: true, requeued: true });
    assert.equal(await registered.prod.status(id), "QUEUED");
    assert.equal((await client.releaseRun(id, leased, { reason: "again" })).statusCode, 409);
    assert.equal((await ask("POST", `runs/${id}/snapshots/${leased}/release`, {})).status, 400);
    const [, again] = await take(id); // after the pause that follows a failed dequeue
    const { snapshot } = good(await client.startRunAttempt(id, again, {}));
    const retry = { timestamp: Date.now() + 10, delay: 10 };
    const { result } = good(await client.completeRunAttempt(id, snapshot.friendlyId, { completion: { ok: false, id, error: thrown, retry }, forceRequeue: true }));
    assert.equal(result.attemptStatus, "RETRY_QUEUED");
    const [, third] = await take(id);
    const next = good(await client.startRunAttempt(id, third, {}));
    assert.equal(next.execution.attempt.number, 2);
    good(await client.completeRunAttempt(id, next.snapshot.friendlyId, { completion: { ok: true, id, output: "1", outputType: "application/json" } }));
  });

  test("gets the answer that there are no checkpoints", async () => {
    const [id, leased] = await take(await registered.prod.trigger("double", {}, 1));
    const { snapshot: { friendlyId: now } } = good(await client.startRunAttempt(id, leased, {}));
    good(await client.submitSuspendCompletion({ runId: id, snapshotId: now, body: { success: false, error: "no disk" } }));
    for (const [rest, body] of [["suspend", { success: true, checkpoint: { type: "DOCKER", location: "x" } }], ["restore-outcome", { outcome: "fail", reason: "x" }], ["continue"]]) {
      const { status, json } = await ask(body ? "POST" : "GET", `runs/${id}/snapshots/${now}/${rest}`, body);
      assert.equal(status, 400, rest);
      assert.match(json.error, /no checkpoints/);
    }
    good(await client.completeRunAttempt(id, now, { completion: { ok: true, id, outputType: "application/json" } }));
  });

  test("gets the same answer when it repeats a complete, also after a restart", async (t) => {
    const own = await startGateway({ t });
    const prod = await Worker.register(own, { tasks, key: keys.prod });
    const key = (await tell(own, "worker-token", "create")).trim();
    const id = await prod.trigger("double", {}, 1);
    const post = (rest, body, repeat) => own.http.request("POST", `${actions}/${rest}`, { key, body, headers: { "x-trigger-request-idempotency-key": repeat } });
    const [message] = (await post("dequeue", {}, "d")).json;
    const start = (await post(`runs/${id}/snapshots/${message.snapshot.id}/attempts/start`, {}, "s")).json;
    const body = { completion: { ok: true, id, output: "1", outputType: "application/json" } };
    const complete = () => post(`runs/${id}/snapshots/${start.snapshot.id}/attempts/complete`, body, "c");
    const first = await complete();
    assert.equal(first.status, 200, first.text);
    await own.kill();
    await own.restart();
    const again = await complete();
    assert.equal(again.status, 200, again.text);
    assert.equal(again.json.result.snapshot.id, first.json.result.snapshot.id);
    await own.stop();
  });
});

test("a dequeue is held for as long as the setting says", async (t) => {
  for (const [setting, least, most] of [["1s", 950, Infinity], ["0", 0, 9000]]) { // by default it is held for 10 s
    const own = await startGateway({ t, options: ["--dequeue-wait", setting] });
    const prod = await Worker.register(own, { tasks, key: keys.prod });
    const key = (await tell(own, "worker-token", "create")).trim();
    const dequeue = async () => (await own.http.request("POST", `${actions}/dequeue`, { key, body: {} })).json;
    const begun = Date.now();
    assert.deepEqual(await dequeue(), []);
    const took = Date.now() - begun;
    assert.ok(took >= least && took < most, `${setting}: ${took} ms`);
    const id = await prod.trigger("double", {}, 1);
    assert.deepEqual((await dequeue()).map(({ run }) => run.friendlyId), [id]);
    await own.stop();
  }
});

/** Dequeues on its own connection; got() returns true when the response has arrived. */
async function dequeueByItself(gateway, key) {
  const socket = net.connect(gateway.port, "127.0.0.1").on("error", () => {});
  let text = "";
  socket.setEncoding("utf8").on("data", (more) => { text += more; });
  socket.write(`POST ${actions}/dequeue HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-length: 2\r\n\r\n{}`);
  await until(async () => await gateway.metric("runcast_waiting_workers") > 0, { what: "it is held" });
  return { socket, got: () => text.includes("\r\n\r\n[{") && JSON.parse(text.slice(text.indexOf("\r\n\r\n"))) };
}

test("a run whose worker closes the connection while it is handed over goes to the next worker", { timeout: 240_000 }, async (t) => {
  const own = await startGateway({ t });
  const key = (await tell(own, "worker-token", "create")).trim();
  const worker = await Worker.register(own, { tasks, key: keys.prod });
  let lost = 0;
  for (let i = 0; i < 10; i++) {
    const { socket, got } = await dequeueByItself(own, key);
    const triggering = worker.trigger("double"), begin = process.hrtime.bigint();
    while (process.hrtime.bigint() - begin < BigInt(i) * 300_000n) await new Promise(setImmediate); // a different moment each time
    socket.destroy();
    const id = await triggering;
    if (got()) await worker.cancel(id); // the response arrived in time: the run is this worker's
    else await until(async () => await worker.status(id) === "QUEUED", { what: `${i}: it went back` }).then(() => { lost++; return worker.cancel(id); });
  }
  t.diagnostic(`${lost} of 10 went to the next worker`);
  assert.ok(lost > 0, "the first connection is closed before its run can be triggered");
});

test("a run stays with its worker when the connection is reset after the response, as proxies do", { timeout: 180_000 }, async (t) => {
  const own = await startGateway({ t });
  const key = (await tell(own, "worker-token", "create")).trim();
  const worker = await Worker.register(own, { tasks, key: keys.prod });
  for (const starts of [true, false]) {
    const { socket, got } = await dequeueByItself(own, key), id = await worker.trigger("double");
    await until(got, { what: "the answer" });
    const [{ snapshot }] = got(), open = await own.metric('runcast_connections{kind="http"}');
    socket.resetAndDestroy();
    await until(async () => await own.metric('runcast_connections{kind="http"}') < open, { what: "the gateway has seen it" });
    await worker.trigger("double", { delay: "1h" }); // so that the writes before it are committed
    const next = own.http.request("POST", `${actions}/dequeue`, { key, body: {} });
    if (starts) assert.equal((await own.http.request("POST", `${actions}/runs/${id}/snapshots/${snapshot.friendlyId}/attempts/start`, { key, body: {} })).status, 200);
    assert.deepEqual((await next).json.map(({ run }) => run.friendlyId), starts ? [] : [id]);
    if (starts) await worker.cancel(id);
  }
});

// ---- the tokens ----

describe("a worker's token", () => {
  test("makes the gateway read the store once for an unknown run, and not while memory has all runs", async (t) => {
    const small = await startGateway({ t, options: ["--memory", "1m"] });
    const key = (await tell(small, "worker-token", "create")).trim();
    const look = async (id, status) => {
      const before = await small.metric("runcast_store_reads_total");
      assert.equal((await small.http.request("GET", `${actions}/runs/${id}/snapshots/latest`, { key })).status, status);
      return await small.metric("runcast_store_reads_total") - before;
    };
    const unknown = `run_${"1".repeat(21)}`, first = {};
    assert.equal(await look(unknown, 404), 0);
    for (const env of ["staging", "prod"]) {
      const worker = await Worker.register(small, { tasks, key: keys[env] });
      for (let i = 0; i < 4; i++) {
        const id = await worker.trigger("double", {}, "x".repeat(400_000));
        first[env] ??= id;
        await worker.cancel(id);
      }
    }
    for (let i = 0; i < 5; i++) assert.equal(await look(unknown, 404), 1);
    for (const id of Object.values(first)) assert.ok(await look(id, 200) >= 1);
  });

  test("is notified of its runs although it subscribes to thousands of unknown ones", async (t) => {
    const socket = await NoticeSocket.connect(gateway, { t, key: token, space: "/worker" });
    const unknown = Array.from({ length: 2000 }, (_, i) => `run_${String(i).padStart(21, "a")}`);
    const id = await registered.prod.trigger("slow");
    socket.subscribe(...unknown, id);
    await socket.notice(id); /* sent because the run is not being executed */
    await registered.prod.cancel(id);
    await socket.notice(id);
  });

  test("of one environment serves no other, whose runs are unknown to it", async () => {
    const prodOnly = await makeToken("--env", "prod");
    const id = await registered.staging.trigger("double", {}, 1);
    const unknown = await ask("GET", "runs/run_unknown/snapshots/latest", undefined, prodOnly);
    assert.equal(unknown.status, 404);
    const calls = [["GET", "snapshots/latest"], ["GET", "snapshots/since/s"], ["POST", "snapshots/s/attempts/start", {}], ["POST", "snapshots/s/heartbeat", {}],
      ["POST", "snapshots/s/attempts/complete", { completion: { ok: true } }], ["POST", "snapshots/s/release", { reason: "r" }], ["POST", "snapshots/s/suspend", { success: true }], ["GET", "snapshots/s/continue"]];
    for (const [method, rest, body] of calls)
      for (const run of [id, "run_unknown"]) {
        const { status, text } = await ask(method, `runs/${run}/${rest}`, body, prodOnly);
        assert.deepEqual([status, text], [404, unknown.text], `${rest} of ${run}`);
      }
    const attempt = await registered.staging.take(id);
    await attempt.succeed(1);
  });

  test("closes the runs that it leases to the secret key, which the code of each task has", async (t) => {
    const own = await startGateway({ t });
    const prod = await Worker.register(own, { tasks, key: keys.prod });
    const key = (await tell(own, "worker-token", "create")).trim();
    const post = (rest, body) => own.http.request("POST", `${actions}/${rest}`, { key, body });
    const forged = { completion: { ok: true, output: '"forged"', outputType: "application/json" } };
    const unknown = await prod.latest("run_unknown");
    const refused = async (id, snapshot) => {
      const calls = [["attempts/start", {}], ["attempts/complete", forged], ["heartbeat", {}]].map(([what, body]) => prod.post(`/engine/v1/dev/runs/${id}/snapshots/${snapshot}/${what}`, body));
      for (const { status, text } of await Promise.all([prod.latest(id), ...calls])) assert.deepEqual([status, text], [404, unknown.text]);
    };
    assert.equal(unknown.status, 404);

    const id = await prod.trigger("dies", {}, 1);
    const [lease] = (await post("dequeue", {})).json;
    await refused(id, lease.snapshot.friendlyId);
    const started = (await post(`runs/${id}/snapshots/${lease.snapshot.friendlyId}/attempts/start`, {})).json;
    const now = started.snapshot.friendlyId;
    assert.equal(started.envVars.TRIGGER_SECRET_KEY, keys.prod);
    await refused(id, now);
    await own.kill();
    await own.restart();
    await refused(id, now);
    const retry = { timestamp: Date.now() + 100, delay: 100 };
    const { result } = (await post(`runs/${id}/snapshots/${now}/attempts/complete`, { completion: { ok: false, id, error: thrown, retry } })).json;
    assert.equal(result.attemptStatus, "RETRY_IMMEDIATELY");
    await refused(id, result.snapshot.friendlyId);
    assert.equal((await post(`runs/${id}/snapshots/${result.snapshot.friendlyId}/attempts/start`, {})).status, 200);
    await prod.cancel(id);
    const [canceled] = (await own.http.request("GET", `${actions}/runs/${id}/snapshots/since/${now}`, { key })).json.snapshots;
    assert.equal(canceled.snapshot.executionStatus, "PENDING_CANCEL");
    await refused(id, canceled.snapshot.friendlyId);
    assert.equal((await post(`runs/${id}/snapshots/${canceled.snapshot.friendlyId}/attempts/complete`, { completion: { ok: false, id, error: thrown } })).status, 200);
    assert.equal((await prod.show(id)).run.status, "CANCELED");

    // A worker with the secret key still has the runs that it leases itself.
    const plain = await prod.trigger("double", {}, 1);
    const attempt = await prod.take(plain);
    await attempt.heartbeat();
    assert.equal((await prod.latest(plain)).status, 200);
    await attempt.succeed(2);
    await own.stop();
  });

  test("is listed by a command, whose list is empty on a new gateway", async (t) => {
    const own = await startGateway({ t });
    const { code, all } = await runProgram(["worker-token", "list", "--data", own.data]);
    assert.deepEqual([code, all], [0, ""]);
    await own.stop();
  });

  test("is shown once, listed by the beginning of its hash, and nowhere on the disk", async () => {
    const made = await makeToken("--env", "staging", "--name", "listed");
    assert.match(made, /^tr_wgt_[0-9a-z]{40}$/);
    const line = (await tell(gateway, "worker-token", "list")).split("\n").find((one) => one.endsWith("listed"));
    assert.match(line, /^[0-9a-f]{12} {2}\d{4}-\d\d-\d\d {2}proj_\w+ +staging {2}listed$/);
    for (const file of fs.readdirSync(gateway.data).filter((name) => name.startsWith("runcast.db")))
      assert.equal(fs.readFileSync(path.join(gateway.data, file)).includes(made), false, file);
    assert.doesNotMatch(await tell(gateway, "token", "list"), /listed/);
  });

  test("that is revoked ends its held calls, and is refused from then on", async () => {
    const made = await makeToken("--name", "short lived", "--env", "preview");
    const own = await makeToken("--env", "preview");
    let earlier = "held";
    const other = ask("POST", "dequeue", {}, own).then(() => { earlier = "answered"; });
    await until(async () => await gateway.metric("runcast_waiting_workers") === 1, { what: "an earlier call is held" });
    const held = ask("POST", "dequeue", {}, made);
    await until(async () => await gateway.metric("runcast_waiting_workers") === 2, { what: "both are held" });
    assert.match(await tell(gateway, "worker-token", "revoke", made), /^revoked short lived of proj_/);
    assert.deepEqual((await held).json, []);
    assert.equal(earlier, "held", "a call of another token, which is held for 10 s, began before it");
    await other;
    assert.equal((await ask("POST", "dequeue", {}, made)).status, 401);
    assert.equal((await runProgram(["worker-token", "revoke", made, "--data", gateway.data])).code, 1);
  });

  test("can be made only for what exists", async () => {
    for (const [words, text] of [[["--env", "dev"], /unknown --env; use staging, prod or preview/], [["--env", "moon"], /unknown --env/], [["--project", "proj_nobody0000"], /project not found/], [["--user", "x"], /not an option/], [["--name", ""], /1 to 100 bytes/]]) {
      const { code, all } = await runProgram(["worker-token", "create", ...words, "--data", gateway.data]);
      assert.equal(code, words[0] === "--project" ? 1 : 2, words.join(" "));
      assert.match(all, text);
    }
  });
});
