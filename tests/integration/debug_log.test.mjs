// Each decision and its reason is logged at debug, and at no other level: each one is provoked, at debug and at
// another level.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";
import { RunsSocket } from "../support/js/runs.mjs";
import { publicToken } from "../support/js/tokens.mjs";
import { inMs, thrown, Worker } from "../support/js/worker_calls.mjs";

const levels = ["debug", "info"];
const tasks = ["hello", { id: "again", retry: { maxAttempts: 3, minTimeoutInMs: 60_000, maxTimeoutInMs: 60_000 } }, { id: "nightly", triggerSource: "schedule" }];
const quick = ["--lease", "4s", "--heartbeat-timeout", "8s"];
const start = (t, level, { options = [], ...more } = {}) => startGateway({ t, options: ["--log-level", level, ...options], ...more });

const good = ({ status, json, text }) => { assert.ok(status < 300, `${status} ${text}`); return json; };
const lines = (gateway) => gateway.stderr.trim().split("\n").filter(Boolean).map((line) => JSON.parse(line));
const fits = (line, wanted) => Object.entries(wanted).every(([name, value]) => value instanceof RegExp ? value.test(line[name]) : line[name] === value);

/** At debug each wanted line is logged once; at another level none is, nor any other debug line. */
function check(gateway, level, wanted) {
  const all = lines(gateway);
  for (const one of wanted) {
    const count = all.filter((line) => fits(line, one)).length;
    const seen = all.filter(({ event }) => event === one.event).map((line) => JSON.stringify(line)).join("\n");
    assert.equal(count, level === "debug" ? 1 : 0, `${Object.values(one).join(", ")}\n${seen}`);
  }
  if (level !== "debug") assert.deepEqual(all.filter((line) => line.level === "debug"), []);
}

const environmentOf = async (gateway) => good(await gateway.get("/engine/v1/dev/config")).environmentId;
const executing = (gateway, id, key) => until(async () => {
  const { status } = good(await gateway.get(`/api/v3/runs/${id}`, { key }));
  return !["QUEUED", "DEQUEUED", "EXECUTING"].includes(status) && status;
}, { what: "the end of its attempt" });

for (const level of levels) {
  test(`at ${level}: refused calls`, async (t) => {
    const gateway = await start(t, level);
    const environment = await environmentOf(gateway);
    const expired = await publicToken(gateway, { scopes: ["read:runs"], expiresInS: -100 });
    assert.equal((await gateway.get("/api/v1/runs", { key: "tr_dev_wrong" })).status, 401);
    assert.equal((await gateway.get("/api/v1/runs", { key: null })).status, 401);
    assert.equal((await gateway.get("/api/v1/runs", { key: expired })).json.error, "Public Access Token is invalid");
    assert.equal((await gateway.get("/api/v1/runs", { key: `${expired.slice(0, -8)}aaaaaaaa` })).status, 401);
    assert.equal((await gateway.get("/engine/v1/dev/config", { key: keys.pat })).status, 401);
    const socket = await RunsSocket.open({ port: gateway.port, hello: { token: "tr_dev_first_message" } });
    assert.equal((await socket.closed).code, 4001);
    await gateway.stop();
    const event = "credential refused", client = "127.0.0.1";
    check(gateway, level, [
      { event, client, reason: "No authorization header provided" },
      { event, client, environment, reason: /expired/ },
      { event, client, environment, reason: "the signature is wrong" },
      { event, client, reason: /kind/, route: "/engine/v1/dev/config" },
    ]);
    const unknown = lines(gateway).filter((line) => line.event === event && line.reason === "Invalid API key");
    assert.deepEqual(unknown.map((line) => line.client), level === "debug" ? [client, client] : []);
    for (const secret of ["tr_dev_wrong", "first_message", expired.split(".")[2], keys.pat]) assert.ok(!gateway.stderr.includes(secret));
  });

  test(`at ${level}: runs and their workers`, async (t) => {
    const gateway = await start(t, level, { options: quick });
    const environment = await environmentOf(gateway), worker = await Worker.register(gateway, { tasks });
    const asked = await worker.take(await worker.trigger("hello", { maxAttempts: 3 }));
    await asked.fail(thrown, { retry: inMs(50_000) });
    const left = await worker.take(await worker.trigger("hello"));
    good(await worker.disconnect([left.id]));
    const planned = await worker.take(await worker.trigger("again"));
    await planned.fail({ type: "INTERNAL_ERROR", code: "TASK_PROCESS_SIGSEGV" });

    const prod = await Worker.register(gateway, { tasks, key: keys.prod });
    const { code, stdout, all } = await runProgram(["worker-token", "create", "--name", "rack", "--data", gateway.data]);
    assert.equal(code, 0, all);
    const act = async (rest, body = {}) => good(await gateway.post(`/engine/v1/worker-actions/${rest}`, body, { key: stdout.trim() }));
    const dequeue = async (id) => {
      const [message] = await act("dequeue");
      assert.equal(message.run.friendlyId, id);
      return { at: `runs/${id}/snapshots/${message.snapshot.friendlyId}`, version: message.backgroundWorker.version };
    };
    const released = await prod.trigger("hello"), { at } = await dequeue(released);
    await act(`${at}/release`, { reason: "no room" });
    await prod.cancel(released);
    const never = await prod.trigger("hello"), { version } = await dequeue(never);
    await until(async () => (await prod.status(never)) === "QUEUED", { what: "its lease has expired" });
    await prod.cancel(never);
    const silent = await prod.trigger("again");
    await act(`${(await dequeue(silent)).at}/attempts/start`);
    await executing(gateway, silent, keys.prod);
    await gateway.stop();
    const inProd = { environment: /^env_/ };
    check(gateway, level, [
      { event: "run leased", environment, run: asked.id, reason: /worker/, version: worker.version },
      { event: "run leased", ...inProd, run: never, reason: /worker/, version },
      { event: "retry planned", environment, run: asked.id, reason: "its worker requested it", attempt: "1", delay_ms: /^[45]\d{4}$/ },
      { event: "retry planned", environment, run: planned.id, reason: "by the settings of its task", attempt: "1", delay_ms: /^\d{5,6}$/ },
      { event: "attempt lost", environment, run: left.id, reason: /./, attempt: "1" },
      { event: "lease over", ...inProd, run: released, reason: /gave it back/, failures: "1", delay_ms: /^\d+$/ },
      { event: "lease over", ...inProd, run: never, reason: /did not start it in time/, failures: "1" },
      { event: "attempt lost", ...inProd, run: silent, reason: /heartbeat/, attempt: "1" },
      { event: "retry planned", ...inProd, run: silent, reason: "its attempt was lost", attempt: "1" },
    ]);
  });

  test(`at ${level}: completed and sealed batches, and slow subscribers`, async (t) => {
    const gateway = await start(t, level);
    const environment = await environmentOf(gateway);
    const { id: waitpoint } = good(await gateway.post("/api/v1/waitpoints/tokens", {}));
    for (let i = 0; i < 2; i++) good(await gateway.post(`/api/v1/waitpoints/tokens/${waitpoint}/complete`, { data: i }));
    const { id: batch } = good(await gateway.post("/api/v3/batches", { runCount: 2 }));
    for (const index of [0, 1])
      good(await gateway.post(`/api/v3/batches/${batch}/items`, `${JSON.stringify({ index, task: "hello", payload: 1 })}\n`, { headers: { "content-type": "application/x-ndjson" } }));

    const socket = await RunsSocket.open({ port: gateway.port, token: keys.dev, onMessage() {} });
    t.after(() => socket.cut());
    socket.send({ op: "sub", id: 1, all: true });
    const behind = () => gateway.metric("runcast_connections_behind");
    const { id } = good(await gateway.post("/api/v1/tasks/hello/trigger", { payload: 1 }));
    await until(async () => (await gateway.metric("runcast_subscriptions")) === 1 && !(await behind()), { what: "the subscription" });
    socket.pause();
    for (let i = 0; !(await behind()); i++) good(await gateway.put(`/api/v1/runs/${id}/metadata`, { metadata: { i, text: "x".repeat(200_000) } }));
    socket.resume();
    await until(async () => !(await behind()), { what: "it has caught up" });
    await gateway.stop();
    check(gateway, level, [
      { event: "waitpoint completed", environment, reason: /completed/, waitpoint },
      { event: "batch sealed", environment, reason: /items/, batch, runs: "2" },
      { event: "drain step", step: "waiting ended", reason: /./ },
      { event: "drain step", step: "the server is closed", reason: /./ },
      { event: "drain step", step: "the store is closed", reason: /./ },
    ]);
    const told = lines(gateway).filter(({ event }) => /^subscriptions /.test(event));
    if (level === "debug") {
      assert.deepEqual(told.slice(0, 2).map(({ event, reason, environment: of }) => [event, reason, of]), [
        ["subscriptions behind", "the socket is full", environment], ["subscriptions back", "everything missed has been sent", environment]]);
      assert.ok(Number(told[0].newest) >= Number(told[0].seen) && Number(told[0].seen) > 0);
    } else {
      assert.deepEqual(told, []);
    }
  });

  test(`at ${level}: an archived branch`, async (t) => {
    const gateway = await start(t, level);
    const branches = `/api/v1/projects/${keys.ref}/branches`, pat = { key: keys.pat };
    const { id: environment } = good(await gateway.post(branches, { env: "preview", branch: "topic" }, pat));
    const headers = { "x-trigger-branch": "topic" };
    const { id: run } = good(await gateway.post("/api/v1/tasks/hello/trigger", { payload: 1 }, { key: keys.preview, headers }));
    const socket = await RunsSocket.open({ port: gateway.port, token: keys.preview, headers });
    const before = await gateway.metric("runcast_environments");
    good(await gateway.post(`${branches}/archive`, { env: "preview", branch: "topic" }, pat));
    assert.equal((await socket.closed).code, 4001);
    await until(async () => (await gateway.metric("runcast_environments")) === before - 1, { what: "the environment leaves" });
    await gateway.stop();
    check(gateway, level, [
      { event: "environment retired", environment, reason: /archived/ },
      { event: "credential ended", environment, reason: /archived/, connection: "WebSocket" },
      { event: "run evicted", environment, run, reason: /memory/ },
      { event: "environment dropped", environment, reason: /./ },
    ]);
  });

  test(`at ${level}: a slow disk`, async (t) => {
    const control = path.join(temporaryFolder(), "control");
    const gateway = await start(t, level, { preload: "shim_sync", env: { SHIM_CONTROL: control } });
    fs.writeFileSync(control, "delay 300");
    good(await gateway.post("/api/v1/tasks/hello/trigger", { payload: 1 }));
    fs.writeFileSync(control, "ok");
    await gateway.stop();
    const slow = lines(gateway).filter(({ event }) => event === "slow commit");
    assert.equal(slow.length > 0, level === "debug");
    for (const { ms, changes, reason } of slow) assert.ok(Number(ms) > 100 && Number(changes) >= 0 && reason);
  });

  test(`at ${level}: runs that a schedule fired, and those that it left out`, async (t) => {
    const file = path.join(temporaryFolder(), "clock"), minute = 60_000;
    const at = (time) => {
      fs.writeFileSync(`${file}.new`, String(time - Date.now()));
      fs.renameSync(`${file}.new`, file);
    };
    const begin = Math.ceil(Date.now() / minute) * minute;
    at(begin + 1000);
    const gateway = await start(t, level, { options: ["--dev-ttl", "0"], preload: "shim_clock", env: { SHIM_CLOCK: file } });
    const environment = await environmentOf(gateway);
    await Worker.register(gateway, { tasks });
    const { id: schedule } = good(await gateway.post("/api/v1/schedules", { task: "nightly", cron: "* * * * *", deduplicationKey: "one" }));
    at(begin + 5 * minute + 1000);
    const run = await until(async () => good(await gateway.get(`/api/v1/runs?filter[schedule]=${schedule}`)).data[0]?.id, { what: "it fires" });
    await gateway.stop();
    check(gateway, level, [
      { event: "schedule fired", environment, run, schedule, reason: "its time has come", nominal_ms: String(begin + 5 * minute) },
      { event: "schedule skipped", environment, schedule, reason: /only the latest/, first_ms: String(begin + minute) },
    ]);
  });
}
