// Metrics for alerts: failing runs, missing workers, responses by class, the process.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { isSqlite, keys, startGateway, until } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";
import { promtool } from "../support/js/promtool.mjs";
import { RunsSocket } from "../support/js/runs.mjs";
import { thrown, Worker } from "../support/js/worker_calls.mjs";

const asPerson = { key: keys.pat };
/** A metric of one environment of the first project. */
const of = (name, environment, more = "") => `runcast_environment_${name}{environment="${keys.ref}/${environment}"${more}}`;
const status = (word) => `,status="${word}"`;
/** The samples of one name, by their labels. */
const family = (metrics, name) => [...metrics].filter(([sample]) => sample === name || sample.startsWith(`${name}{`));
const sum = (samples) => samples.reduce((all, [, value]) => all + value, 0);

async function expectPromtoolToBeSilent(gateway) {
  const { text } = await gateway.getAsAdmin("/metrics");
  assert.deepEqual(promtool(["check", "metrics"], text), { status: 0, output: "" });
}

test("ended runs are counted by status, once, and so is their time in the queue", async (t) => {
  const gateway = await startGateway({ t, options: ["--dequeue-wait", "20s"] });
  const ended = (status) => gateway.metric(`runcast_finished_runs_total{status="${status}"}`);
  const worker = await Worker.register(gateway, { tasks: ["hello"] });
  await worker.trigger("hello");
  const attempt = await worker.dequeue();
  await attempt.start();
  await attempt.fail(thrown);
  await worker.trigger("hello");
  const second = await worker.dequeue();
  await second.start();
  await second.succeed(1);
  const third = await worker.trigger("hello");
  assert.equal((await gateway.post(`/api/v2/runs/${third}/cancel`)).status, 200);
  assert.equal((await gateway.post(`/api/v2/runs/${third}/cancel`)).status, 200);
  for (const status of ["FAILED", "COMPLETED", "CANCELED"]) assert.equal(await ended(status), 1, status);
  for (const status of ["CRASHED", "EXPIRED", "TIMED_OUT"]) assert.equal(await ended(status), 0, status);
  assert.equal(await gateway.metric("runcast_queue_wait_seconds_count"), 2);

  assert.equal(await gateway.metric("runcast_waiting_workers"), 0);
  const held = worker.dequeue();
  await until(async () => await gateway.metric("runcast_waiting_workers") === 1, { what: "a held dequeue" });
  await worker.trigger("hello");
  await held;
  assert.equal(await gateway.metric("runcast_waiting_workers"), 0);
  await gateway.stop();
});

test("sessions and waiting workers are counted while they last, and the age of the oldest queued run is reported", async (t) => {
  const gateway = await startGateway({ t });
  const all = async (...names) => Promise.all(names.map((name) => gateway.metric(`runcast_${name}`)));
  const oldest = (type) => gateway.metric(`runcast_oldest_queued_seconds{type="${type}"}`);
  assert.deepEqual(await all("sessions", "unserved_environments", "waiting_workers"), [0, 0, 0]);
  const worker = await Worker.register(gateway, { tasks: ["hello"] });
  await worker.trigger("hello");
  const attempt = await worker.dequeue();
  await attempt.start();
  assert.deepEqual(await all("sessions", "unserved_environments", "waiting_workers"), [1, 0, 0], "it executes");
  assert.deepEqual([await oldest("dev"), await oldest("prod")], [0, 0]);

  // Outside of dev no worker dequeues: the older run counts, also when its queue is paused.
  const prod = await Worker.register(gateway, { tasks: ["hello"], key: keys.prod });
  const first = await prod.trigger("hello");
  assert.equal((await gateway.post("/api/v1/queues/hello/pause", { type: "task", action: "pause" }, { key: keys.prod })).status, 200);
  await until(async () => await oldest("prod") >= 1, { what: "it gets older" });
  await prod.trigger("hello", { priority: 3600 });
  assert.ok(await oldest("prod") >= 1 && await oldest("prod") < 600, "a priority makes no run older");
  assert.equal(await gateway.metric("runcast_unserved_environments"), 1);
  await gateway.kill();
  await gateway.restart();
  assert.ok(await oldest("prod") >= 1, "also after a restart");
  assert.equal((await gateway.post(`/api/v2/runs/${first}/cancel`, {}, { key: keys.prod })).status, 200);
  const { data } = (await gateway.get("/api/v1/runs", { key: keys.prod })).json;
  for (const { id } of data) await gateway.post(`/api/v2/runs/${id}/cancel`, {}, { key: keys.prod });
  assert.deepEqual([await oldest("prod"), await gateway.metric("runcast_unserved_environments")], [0, 0]);
  await gateway.stop();
});

test("responses are counted by class, and the process reports its version, memory and database", async (t) => {
  const gateway = await startGateway({ t });
  const answers = (code) => gateway.metric(`runcast_http_requests_total{code="${code}"}`);
  const before = [await answers("2xx"), await answers("4xx")];
  await gateway.get("/api/v1/runs");
  await gateway.get("/api/v1/runs", { key: "wrong" });
  await gateway.get("/nothing");
  assert.equal(await answers("4xx") - before[1], 2);
  assert.ok(await answers("2xx") - before[0] >= 1);
  const version = (await runProgram(["--version"])).stdout.trim().split(" ")[1];
  const build = [...await gateway.metrics()].find(([sample]) => sample.startsWith("runcast_build_info"));
  assert.match(build[0], new RegExp(`[{]version="${version.replaceAll(".", "[.]")}",dashboard="(yes|no)"[}]$`));
  assert.equal(build[1], 1);
  assert.ok(await gateway.metric("process_resident_memory_bytes") > 1e6);
  const started = await gateway.metric("process_start_time_seconds");
  assert.ok(Math.abs(Date.now() / 1000 - started) < 120, `${started}`);
  assert.ok(await gateway.metric("process_cpu_seconds_total") > 0);
  if (isSqlite) assert.equal(await gateway.metric("runcast_database_bytes"), fs.statSync(path.join(gateway.data, "runcast.db")).size);
  if (isSqlite) assert.equal(await gateway.metric("runcast_database_log_bytes"), fs.statSync(path.join(gateway.data, "runcast.db-wal")).size);
  await gateway.stop();
});

test("metrics of an environment agree with its runs", async (t) => {
  const gateway = await startGateway({ t, options: ["--dequeue-wait", "20s"] });
  const worker = await Worker.register(gateway, { tasks: ["hello"] });
  const socket = await RunsSocket.open({ port: gateway.port, token: keys.dev, hello: {} });
  socket.send({ op: "sub", id: 1, all: true });
  await socket.next("rows");

  const first = await worker.trigger("hello");
  for (let i = 0; i < 3; i++) await worker.trigger("hello");
  await until(async () => await gateway.metric(of("oldest_queued_seconds", "dev")) > 0.7, { what: "it gets older" });
  const attempt = await worker.take(first), taken = Date.now();
  await attempt.succeed(1);

  const shown = { "x-trigger-api-version": "2025-07-16" };
  const { data } = (await gateway.get("/api/v1/runs", { headers: shown })).json;
  const count = (word) => data.filter(({ status: is }) => is === word).length;
  assert.deepEqual([count("QUEUED"), count("COMPLETED")], [3, 1]);
  const asked = Date.now(), metrics = await gateway.metrics(), answered = Date.now();
  for (const word of ["DELAYED", "PENDING_VERSION", "QUEUED", "DEQUEUED", "EXECUTING", "REATTEMPTING", "WAITING"])
    assert.equal(metrics.get(of("runs", "dev", status(word))), count(word), word);
  for (const word of ["COMPLETED", "FAILED", "CANCELED"])
    assert.equal(metrics.get(of("finished_runs_total", "dev", status(word))), count(word), word);
  assert.equal(metrics.get(of("triggers_total", "dev")), data.length);
  assert.equal(metrics.get(of("sessions", "dev")), 1);
  assert.deepEqual(family(metrics, "runcast_environment_unserved_runs").filter(([, value]) => value), [], "the CLI would take all");

  const oldest = Math.min(...data.filter(({ status: is }) => is === "QUEUED").map(({ createdAt }) => Date.parse(createdAt)));
  const age = metrics.get(of("oldest_queued_seconds", "dev")) * 1000;
  assert.ok(age >= asked - oldest - 100 && age <= answered - oldest + 100, `${age}, asked for at ${asked - oldest}`);
  const { createdAt } = data.find(({ id }) => id === first);
  const waited = metrics.get(of("queue_wait_seconds_sum", "dev"));
  assert.ok(waited >= 0.7 && waited * 1000 <= taken - Date.parse(createdAt) + 100, `${waited}`);
  for (const le of ["0.1", "0.5", "1", "5", "15", "60", "300", "900", "3600", "+Inf"])
    assert.equal(metrics.get(of("queue_wait_seconds_bucket", "dev", `,le="${le}"`)), le === "+Inf" || waited <= Number(le) ? 1 : 0, le);
  assert.equal(metrics.get(of("queue_wait_seconds_count", "dev")), 1);
  assert.equal(metrics.get("runcast_queue_wait_seconds_count"), 1);

  await until(async () => await gateway.metric("runcast_delivery_seconds_count") > 0, { what: "a change at the socket" });
  const later = await gateway.metrics();
  assert.equal(later.get("runcast_delivery_seconds_count"), later.get("runcast_change_to_write_seconds_count"));
  assert.ok(later.get("runcast_delivery_seconds_sum") > later.get("runcast_change_to_write_seconds_sum"), "the way from the disk is part of it");
  assert.ok(later.get("runcast_delivery_seconds_sum") < 3600, "it is a time since the commit");
  await expectPromtoolToBeSilent(gateway);

  await socket.cut();
  for (const { id } of data) await gateway.post(`/api/v2/runs/${id}/cancel`);
  const end = await gateway.metrics();
  assert.deepEqual([end.get(of("runs", "dev", status("QUEUED"))), end.get(of("oldest_queued_seconds", "dev")), end.get(of("finished_runs_total", "dev", status("CANCELED")))], [0, 0, 3]);
  await gateway.stop();
});

test("runs that no worker can take are counted by what is missing, for as long as it is", async (t) => {
  const gateway = await startGateway({ t, options: ["--dequeue-wait", "20s"] });
  const worker = new Worker(gateway, keys.prod);
  const unserved = async (reason) => gateway.metric(of("unserved_runs", "prod", `,reason="${reason}"`));
  const both = async () => [await unserved("version"), await unserved("no_worker")];
  const id = await worker.trigger("hello");
  await worker.trigger("hello");
  assert.deepEqual(await both(), [2, 0]);
  assert.equal((await worker.show(id)).run.waitingFor.reason, "version");

  Object.assign(worker, await Worker.register(gateway, { tasks: ["hello"], key: keys.prod }));
  await until(async () => await unserved("no_worker") === 2, { what: "its version has come" });
  assert.equal(await unserved("version"), 0);
  assert.equal((await worker.show(id)).run.waitingFor.reason, "no_worker");

  const attempt = await worker.take();
  assert.deepEqual(await both(), [0, 0], "a worker is there, though it is busy");
  await attempt.succeed(1);
  await (await worker.take()).succeed(1);
  const waiting = worker.dequeue();
  await until(async () => await gateway.metric(of("waiting_workers", "prod")) === 1, { what: "a held dequeue" });
  assert.equal(await gateway.metric(of("waiting_workers", "dev")), 0);
  await worker.trigger("hello");
  assert.ok(await waiting);
  await gateway.stop();
});

test("the first fifty environments have metrics of their own, shared with their branches, and all others share one set", async (t) => {
  const gateway = await startGateway({ t, options: ["--user-projects", "100"] });
  const branch = await gateway.post(`/api/v1/projects/${keys.ref}/branches`, { env: "preview", branch: "feature/one" }, asPerson);
  assert.equal(branch.status, 200, branch.text);
  const trigger = async (key, headers) => {
    const { status: code, text } = await gateway.post("/api/v1/tasks/hello/trigger", {}, { key, headers });
    assert.equal(code, 200, text);
  };
  await trigger(keys.preview, { "x-trigger-branch": "feature/one" });
  assert.equal(await gateway.metric(of("triggers_total", "preview")), 1);

  const refs = [];
  for (let i = 0; i < 13; i++) {
    const { status: code, json, text } = await gateway.post("/api/v1/orgs/my-organization/projects", { name: `p${i}` }, asPerson);
    assert.equal(code, 200, text);
    refs.push(json.externalRef);
  }
  const keyOf = async (ref, env) => (await gateway.get(`/api/v1/projects/${ref}/${env}`, asPerson)).json.apiKey;
  await trigger(await keyOf(refs[0], "prod"));
  for (const env of ["dev", "prod"]) await trigger(await keyOf(refs[12], env));

  const check = async (triggered) => {
    const metrics = await gateway.metrics();
    const labels = family(metrics, "runcast_environment_triggers_total").map(([sample]) => /environment="([^"]*)"/.exec(sample)[1]);
    const expected = [keys.ref, ...refs].flatMap((ref) => ["dev", "staging", "prod", "preview"].map((slug) => `${ref}/${slug}`)).slice(0, 50);
    assert.deepEqual([...labels].sort(), [...expected, "other"].sort());
    const queued = (label) => sum(family(metrics, "runcast_environment_runs").filter(([sample]) => sample.includes(`"${label}"`)));
    assert.deepEqual([`${refs[0]}/prod`, `${keys.ref}/preview`, `${keys.ref}/prod`, "other"].map(queued), [1, 1, 0, 2]);
    assert.equal(metrics.get('runcast_environment_triggers_total{environment="other"}'), triggered);
    assert.equal(sum(family(metrics, "runcast_environment_unserved_runs").filter(([sample]) => sample.includes('"other"'))), 2);
    await expectPromtoolToBeSilent(gateway);
  };
  await check(2);
  await gateway.kill();
  await gateway.restart();
  await check(0); // counters begin at the start
  await gateway.stop();
});

test("metrics of a deleted project whose runs still end are kept apart from those of a new project with the same ref", async (t) => {
  const gateway = await startGateway({ t, options: ["--cancel-timeout", "1h"] });
  const ref = "proj_zzzzzzzzzzzzzzzzzzzz", project = async (...words) => {
    const { code, stdout, all } = await runProgram(["project", ...words, "--data", gateway.data]);
    assert.equal(code, 0, all);
    return stdout;
  };
  const make = async () => /^ +dev +(tr_\w+)$/m.exec(await project("create", "Theirs", "--ref", ref))[1];
  const labels = async () => family(await gateway.metrics(), "runcast_environment_sessions").map(([sample]) => /"(.*)"/.exec(sample)[1]).filter((label) => label.startsWith(ref));
  const slugs = ["dev", "staging", "prod", "preview"], after = (more) => slugs.map((slug) => `${ref}/${slug}${more}`).sort();
  const key = await make();
  assert.deepEqual((await labels()).sort(), after(""));
  const worker = await Worker.register(gateway, { tasks: ["hello"], key, ref });
  await worker.trigger("hello");
  await worker.take();
  await project("delete", ref, "--confirm", ref);
  const other = await make();
  await until(async () => (await labels()).length === 5, { what: "three of the four have nothing left that ends" });
  assert.deepEqual((await labels()).sort(), [...after(""), `${ref}/dev#5`].sort());
  await gateway.post("/api/v1/tasks/hello/trigger", {}, { key: other });
  const metrics = await gateway.metrics();
  assert.deepEqual(["dev", "dev#5"].map((slug) => metrics.get(`runcast_environment_triggers_total{environment="${ref}/${slug}"}`)), [1, 1]);
  await expectPromtoolToBeSilent(gateway);
  await gateway.kill();
});

test("each response counts for its route and for its class, also one without a route, and a WebSocket", async (t) => {
  const gateway = await startGateway({ t });
  const worker = await Worker.register(gateway, { tasks: ["hello"] });
  const id = await worker.trigger("hello");
  const route = (method, at, code) => `runcast_http_route_requests_total{method="${method}",route="${at}",code="${code}"}`;
  const before = await gateway.metrics();
  await gateway.get(`/api/v3/runs/${id}`);
  await gateway.get("/api/v3/runs/run_unknown0000000000000");
  await gateway.get(`/api/v3/runs/${id}`, { key: "wrong" });
  await gateway.get("/nothing");
  const socket = await RunsSocket.open({ port: gateway.port, token: keys.dev, hello: {} });
  const after = await gateway.metrics();
  const more = (name) => (after.get(name) ?? 0) - (before.get(name) ?? 0);
  const at = "/api/v3/runs/{runId}";
  assert.deepEqual([more(route("GET", at, "2xx")), more(route("GET", at, "4xx")), more(route("any", "none", "4xx")), more(route("GET", "/realtime/v1/ws", "1xx"))], [1, 2, 1, 1]);
  for (const code of ["1xx", "2xx", "4xx", "5xx"])
    assert.equal(sum(family(after, "runcast_http_route_requests_total").filter(([sample]) => sample.includes(`"${code}"`))), after.get(`runcast_http_requests_total{code="${code}"}`), code);
  assert.ok(![...after.keys()].some((sample) => sample.includes(id) || sample.includes("nothing")), "values of clients are not labels");
  await socket.cut();
  await gateway.stop();
});

test("the store reports the size of its groups and the latency of the disk, the process its open files", async (t) => {
  const gateway = await startGateway({ t });
  const before = await gateway.metrics();
  await Promise.all(Array.from({ length: 50 }, () => gateway.post("/api/v1/tasks/hello/trigger", {})));
  const after = await gateway.metrics(), more = (name) => after.get(name) - before.get(name);
  assert.equal(more("runcast_store_group_commits_sum"), more('runcast_store_commits_total{result="ok"}'));
  assert.ok(more("runcast_store_group_commits_sum") >= 50);
  assert.ok(more("runcast_store_group_commits_count") <= more("runcast_store_commit_groups_total"), "retention has transactions, too");
  assert.equal(more("runcast_store_sync_seconds_count"), more("runcast_store_commit_groups_total"));
  assert.ok(more("runcast_store_sync_seconds_sum") > 0 && more("runcast_store_sync_seconds_sum") < 60);
  const truth = () => fs.readdirSync(`/proc/${gateway.pid}/fd`).length;
  const open = async () => Math.abs(await gateway.metric("process_open_fds") - truth()) <= 2;
  await until(open, { what: "as many as the kernel lists" });
  const connections = await Promise.all(Array.from({ length: 100 }, () => gateway.connect()));
  await until(async () => await gateway.metric("runcast_connections{kind=\"http\"}") > 100 && truth() > 100 && await open(), { what: "connections count" });
  const limit = /Max open files\s+(\d+)/.exec(fs.readFileSync(`/proc/${gateway.pid}/limits`, "utf8"))[1];
  assert.equal(await gateway.metric("process_max_fds"), Number(limit));
  for (const connection of connections) connection.destroy();
  await gateway.stop();
});

test("the number of samples does not depend on tags, tasks, paths or keys", async (t) => {
  const gateway = await startGateway({ t });
  const names = async () => [...(await gateway.metrics()).keys()];
  const use = async (i) => {
    await gateway.post(`/api/v1/tasks/task-${i}/trigger`, { options: { tags: [`tag-${i}`], queue: { name: `q-${i}` } } });
    await gateway.get(`/api/v9/${i}`);
    await gateway.get("/api/v1/runs", { key: `tr_dev_${i}` });
  };
  await use(0); // a route and a class of statuses have a sample from their first request on
  await names();
  const before = await names();
  for (let i = 1; i < 50; i++) await use(i);
  assert.deepEqual(await names(), before);
  assert.equal(await gateway.metric("runcast_triggers_total"), 50);
  await gateway.stop();
});

test("a draining gateway reports that it is not ready", async (t) => {
  const gateway = await startGateway({ t, options: ["--drain-timeout", "30s"] });
  const socket = await RunsSocket.open({ port: gateway.port, token: keys.dev, hello: {} });
  await socket.next("welcome");
  assert.equal(await gateway.metric("runcast_ready"), 1);
  gateway.child.kill("SIGTERM");
  await socket.next("drain");
  assert.equal(await gateway.metric("runcast_ready"), 0);
  await socket.cut();
  assert.deepEqual(await gateway.ended(), { code: 0, signal: null });
});
