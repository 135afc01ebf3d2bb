// The gateway as a service manager runs it: sockets that are handed over and stay bound, notifications about the
// service's state and its loop, and credentials. service_manager.py plays systemd.
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { test } from "node:test";

import { freePort, getBySocket, keys, temporaryFolder, until } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";
import { RunsSocket } from "../support/js/runs.mjs";
import { Service } from "../support/js/service.mjs";

const get = (port, target, headers = {}) => new Promise((resolve, reject) => {
  http.get({ port, path: target, headers, agent: false }, (answer) => { answer.resume().on("end", () => resolve(answer.statusCode)).on("error", reject); }).on("error", reject);
});

test("no connection to handed-over sockets is refused while the gateway restarts, also when it is killed", async (t) => {
  const folder = temporaryFolder(), port = await freePort(), admin = path.join(folder, "admin.sock");
  const service = await new Service(t, { http: port, admin }, ["--listen", "systemd:http", "--admin-listen", "systemd:admin", "--data", path.join(folder, "data"), "--drain-timeout", "5s"]).start();
  assert.equal(await get(port, "/api/v1/runs", { authorization: `Bearer ${keys.dev}` }), 200);
  assert.match((await getBySocket(admin, "/metrics")).text, /runcast_connections/);
  assert.match(service.stderr, new RegExp(`http://127.0.0.1:${port}`), "the log tells where it is");
  let isOver = false, isKilled = false, answered = 0;
  const failures = [], ask = async () => {
    while (!isOver) {
      try {
        const status = await get(port, "/api/v1/runs", { authorization: `Bearer ${keys.dev}` });
        if (status === 200) answered++;
        else failures.push(status);
      } catch (error) { if (!isKilled || error.code !== "ECONNRESET") failures.push(error.code); } // a connection that a killed process had accepted
    }
  };
  const askers = Array.from({ length: 8 }, ask);
  for (const order of ["stop", "stop", "kill"]) {
    const before = answered;
    await until(() => answered > before + 20, { what: "answers" });
    isKilled = order === "kill";
    assert.equal(await service.stop(order), order === "kill" ? -9 : 0, service.stderr.slice(-2000));
    await service.start();
  }
  const before = answered;
  await until(() => answered > before + 20, { what: "answers" });
  isOver = true;
  await Promise.all(askers);
  assert.deepEqual(failures, []);
  assert.equal(await service.stop(), 0);
  assert.ok(fs.existsSync(admin), "another process's socket file stays");
});

test("the service manager is notified when the gateway is ready, that its loop turns, and that it stops", async (t) => {
  const folder = temporaryFolder(), port = await freePort();
  const service = await new Service(t, { http: port }, ["--listen", "systemd:http", "--data", path.join(folder, "data")], { WATCHDOG_USEC: "200000" }).start();
  assert.equal(await get(port, "/readyz"), 200);
  const beats = () => service.count("WATCHDOG=1");
  await until(() => beats() > 3, { what: "signs of life" });
  const { started: pid } = service.events.find(({ started }) => started);
  process.kill(pid, "SIGSTOP"); // like a loop that hangs
  await until(() => /^State:\tT/m.test(fs.readFileSync(`/proc/${pid}/status`, "utf8")), { what: "it stands still" });
  const before = beats();
  process.kill(pid, "SIGCONT");
  await until(() => beats() > before + 5, { what: "more signs of life than can have been on their way" });
  assert.equal(await service.stop(), 0);
  assert.deepEqual([service.count("READY=1"), service.count("STOPPING=1")], [1, 1]);
});

test("SIGHUP rereads the settings file: limits and origins apply at once, and settings that require a restart do not change", async (t) => {
  const folder = temporaryFolder(), port = await freePort(), file = path.join(folder, "runcast.conf");
  const settings = (more) => { fs.writeFileSync(`${file}.new`, `listen = systemd:http\ndata = ${folder}/data\n${more}`); fs.renameSync(`${file}.new`, file); };
  settings("branches = 1\n");
  const service = await new Service(t, { http: port }, ["--config", file]).start();
  const { started: pid } = service.events.find(({ started }) => started);
  const reload = async () => {
    const before = [service.count("RELOADING=1"), service.count("READY=1")];
    process.kill(pid, "SIGHUP");
    await until(() => service.count("RELOADING=1") > before[0] && service.count("READY=1") > before[1], { what: "it has been reloaded" });
    await until(() => service.events.filter(({ notified }) => notified?.startsWith("STATUS=")).length >= service.count("READY=1"), { what: "its state" });
    return service.events.filter(({ notified }) => notified?.startsWith("STATUS=")).at(-1).notified;
  };
  const pat = (await runProgram(["token", "create", "--user", "admin@example.com", "--data", `${folder}/data`])).stdout.trim();
  const branch = async (name) => (await fetch(`http://127.0.0.1:${port}/api/v1/projects/${keys.ref}/branches`, { method: "POST", headers: { authorization: `Bearer ${pat}`, "content-type": "application/json" }, body: JSON.stringify({ env: "preview", branch: name }) })).status;
  assert.deepEqual([await branch("a"), await branch("b")], [200, 422]);
  settings("branches = 2\nallow-origin = https://app.example.com\nlog-requests = all\n");
  assert.equal(await reload(), "STATUS=serves, reloaded");
  assert.deepEqual([await branch("b"), await branch("c")], [200, 422]);
  await until(() => /branches.*422/.test(service.stderr), { what: "requests are in the log" });
  settings("branches = 3\nlease = 30s\n");
  assert.match(await reload(), /not reloaded: .*runcast\.conf:4: a reload cannot change lease, so nothing was changed; restart the gateway/);
  assert.equal(await branch("c"), 422, "nothing of it was taken");
  settings("branches = many\n");
  assert.match(await reload(), /not reloaded: .*runcast\.conf:3/);
  fs.rmSync(file);
  assert.match(await reload(), /not reloaded: /);
  assert.equal(await branch("c"), 422);
  settings("branches = 3\n");
  assert.equal(await reload(), "STATUS=serves, reloaded");
  assert.equal(await branch("c"), 200);
  assert.equal(await service.stop(), 0, service.stderr.slice(-2000));
});

test("limits that SIGHUP lowers refuse calls, and accept them again when it raises them", async (t) => {
  const folder = temporaryFolder(), port = await freePort(), file = path.join(folder, "runcast.conf");
  const write = (more) => { fs.writeFileSync(`${file}.new`, `listen = systemd:http\ndata = ${folder}/data\n${more}`); fs.renameSync(`${file}.new`, file); };
  write("");
  const service = await new Service(t, { http: port }, ["--config", file]).start(), { started: pid } = service.events.find(({ started }) => started);
  const reload = async (more) => {
    const before = service.count("STATUS=serves, reloaded");
    write(more);
    process.kill(pid, "SIGHUP");
    await until(() => service.count("STATUS=serves, reloaded") > before, { what: `a reload with ${more}` });
  };
  const trigger = async () => (await fetch(`http://127.0.0.1:${port}/api/v1/tasks/any/trigger`, { method: "POST", headers: { authorization: `Bearer ${keys.prod}`, "content-type": "application/json" }, body: '{"payload":{}}' })).status;
  const list = async () => (await fetch(`http://127.0.0.1:${port}/api/v1/runs`, { headers: { authorization: `Bearer ${keys.prod}` } })).status;
  const batch = async () => (await fetch(`http://127.0.0.1:${port}/api/v3/batches`, { method: "POST", headers: { authorization: `Bearer ${keys.prod}`, "content-type": "application/json" }, body: '{"runCount":1}' })).json();
  const item = async (id) => (await fetch(`http://127.0.0.1:${port}/api/v3/batches/${id}/items`, { method: "POST", headers: { authorization: `Bearer ${keys.prod}`, "content-type": "application/x-ndjson" }, body: `${JSON.stringify({ index: 0, task: "any", payload: "x".repeat(1500000) })}\n` })).status;
  const watch = () => new Promise((resolve) => {
    http.get({ port, path: "/realtime/v1/events?tags=a", agent: false, headers: { authorization: `Bearer ${keys.prod}`, accept: "text/event-stream" } }, (answer) => resolve({ status: answer.statusCode, answer }));
  });
  const connect = () => new Promise((resolve) => {
    const request = http.get({ port, path: "/healthz", agent: new http.Agent({ keepAlive: true }) }, (answer) => { answer.resume(); resolve({ status: answer.statusCode, close: () => request.destroy() }); });
    request.on("error", () => resolve({ status: 0, close() {} }));
  });

  assert.equal(await trigger(), 200);
  await reload("storage-quota = 1\n");
  assert.equal(await trigger(), 507);
  await reload("storage-quota = 0\n");
  assert.equal(await trigger(), 200);

  await reload("rate-limit = 2\n");
  assert.deepEqual([await list(), await list()], [200, 429]);
  await reload("rate-limit = 0\n");
  assert.deepEqual([await list(), await list()], [200, 200]);

  const { id } = await batch();
  await reload("batch-memory = 1m\n");
  assert.equal(await item(id), 503);
  await reload("batch-memory = 64m\n");
  assert.equal(await item(id), 200);

  await reload("realtime-connections = 1\n");
  const first = await watch(), second = await watch();
  assert.deepEqual([first.status, second.status], [200, 429]);
  await reload("realtime-connections = 2\n");
  const third = await watch();
  assert.equal(third.status, 200, "earlier connections count, too");
  for (const { answer } of [first, second, third]) answer.destroy();

  await reload("connections = 16\n");
  const most = [];
  for (let i = 0; i < 24; i++) most.push(await connect());
  const open = async () => Number(/^runcast_connections\{kind="http"\} (\d+)$/m.exec((await getBySocket(path.join(folder, "data/metrics.sock"), "/metrics")).text)[1]);
  assert.ok(await open() <= 16, "of twenty-four that stay open the idle ones were closed");
  most.forEach(({ close }) => close());
  assert.equal(await service.stop(), 0, service.stderr.slice(-2000));
});

test("each setting that SIGHUP changes applies to the next call that uses it", async (t) => {
  const folder = temporaryFolder(), port = await freePort(), file = path.join(folder, "runcast.conf"), app = "https://app.example.com";
  const write = (more) => { fs.writeFileSync(`${file}.new`, `listen = systemd:http\ndata = ${folder}/data\n${more}`); fs.renameSync(`${file}.new`, file); };
  write("dequeue-wait = 10m\n");
  const service = await new Service(t, { http: port }, ["--config", file]).start();
  const { started: pid } = service.events.find(({ started }) => started);
  const pat = (await runProgram(["token", "create", "--user", "admin@example.com", "--data", `${folder}/data`])).stdout.trim();
  const post = async (target, body, key = keys.dev) => (await fetch(`http://127.0.0.1:${port}${target}`, { method: "POST", headers: { authorization: `Bearer ${key}`, "content-type": "application/json" }, body: JSON.stringify(body) })).status;
  const upgrade = (headers) => new Promise((resolve, reject) => {
    http.get({ port, path: `/realtime/v1/ws?token=${keys.dev}`, agent: false, headers: { connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13", "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==", ...headers } }, (answer) => { answer.resume(); resolve(answer.statusCode); })
      .on("upgrade", (_answer, socket) => { socket.destroy(); resolve(101); }).on("error", reject);
  });
  const subscriptions = async () => {
    const socket = await RunsSocket.open({ port, token: keys.dev, hello: {} });
    const { limits } = await socket.next("welcome");
    socket.cut();
    return limits.subscriptions;
  };
  const schedule = () => post("/api/v1/schedules", { task: "hourly", cron: "0 * * * *", deduplicationKey: `${Math.random()}` });
  const project = () => post("/api/v1/orgs/my-organization/projects", { name: "One" }, pat), organization = () => post("/api/v1/orgs", { title: "One" }, pat);
  assert.equal(await post(`/api/v1/projects/${keys.ref}/background-workers`, { localOnly: true, engine: "V2", metadata: { packageVersion: "4.8.3", contentHash: "h", tasks: [{ id: "hourly", filePath: "a.ts", exportName: "hourly", triggerSource: "schedule" }] } }), 200);
  assert.deepEqual([await upgrade({ origin: app }), await subscriptions(), await schedule(), await project(), await organization()], [403, 256, 200, 200, 422]);
  write(`allow-origin = ${app}\nsubscriptions = 3\nschedules = 1\nuser-projects = 2\nuser-organizations = 2\nlog-level = warn\nlog-format = logfmt\ndequeue-wait = 0\ndrain-timeout = 1s\n`);
  process.kill(pid, "SIGHUP");
  await until(() => service.count("READY=1") === 2, { what: "it has been reloaded" });
  assert.deepEqual([await upgrade({ origin: app }), await upgrade({ origin: "https://evil.example" }), await subscriptions(), await schedule(), await project(), await organization()], [101, 403, 3, 422, 422, 200]);
  assert.equal(await post("/engine/v1/dev/dequeue", { currentWorker: "20991231.1", oldWorkers: [] }), 200, "a dequeue is not held for 10 minutes");
  write("misspelt = 1\n");
  process.kill(pid, "SIGHUP");
  await until(() => /level=error.*misspelt/.test(service.stderr), { what: "an unknown name is logged, as logfmt" });
  await RunsSocket.open({ port, token: keys.dev, hello: {} });
  assert.equal(await service.stop(), 0);
  assert.doesNotMatch(service.stderr, /level=info event="?(?!audit)/);
});

test("a handed-over socket that no setting names is logged, and a name that two have is refused", async (t) => {
  const folder = temporaryFolder(), words = ["--listen", "systemd:http", "--data", path.join(folder, "data")];
  const service = await new Service(t, { http: await freePort(), other: await freePort() }, words).start();
  await until(() => /no setting uses a socket/.test(service.stderr), { what: "a warning" });
  assert.equal(await service.stop(), 0);
  const twice = new Service(t, [["http", await freePort()], ["http", await freePort()]], words);
  twice.send("start");
  await until(() => twice.ends().length, { what: "it is refused" });
  assert.deepEqual(twice.ends(), [1]);
  assert.match(twice.stderr, /passed no socket named http, or several/);
});

test("a setting that names a missing socket is refused with its name and what to do", async () => {
  const { code, all } = await runProgram(["--listen", "systemd:http", "--data", path.join(temporaryFolder(), "data")]);
  assert.equal(code, 1);
  assert.match(all, /passed no socket named http, .*FileDescriptorName=http/);
  const twice = await runProgram(["--listen", "systemd:http", "--admin-listen", "systemd:http", "--check-config"]);
  assert.deepEqual([twice.code, /repeats the address systemd:http of listen/.test(twice.all)], [2, true]);
  for (const name of ["systemd:", "systemd:a:b", `systemd:${"x".repeat(64)}`]) assert.equal((await runProgram(["--listen", name, "--check-config"])).code, 2, name);
  assert.equal((await runProgram(["--listen", "systemd:http,proxy", "--check-config"])).code, 0);
});

test("SIGHUP ends no gateway that starts or stops: an early one is handled when the gateway is ready", async (t) => {
  const folder = temporaryFolder(), port = await freePort(), file = path.join(folder, "runcast.conf");
  fs.writeFileSync(file, `listen = systemd:http\ndata = ${folder}/data\nbranches = 1\n`);
  const service = new Service(t, { http: port }, ["--config", file]);
  const before = service.start();
  await until(() => service.events.some(({ started }) => started), { what: "it is started" });
  const { started: pid } = service.events.find(({ started }) => started);
  await until(() => (BigInt(`0x${/^SigCgt:\s*(\w+)/m.exec(fs.readFileSync(`/proc/${pid}/status`, "utf8"))[1]}`) & 1n) === 1n, { what: "it catches SIGHUP", everyMs: 1 });
  process.kill(pid, "SIGHUP");
  await before;
  await until(() => service.count("RELOADING=1") === 1 || service.count("READY=1") === 2, { what: "it has reloaded" });
  service.send("stop");
  while (!service.ends().length) {
    try { process.kill(pid, "SIGHUP"); } catch { /* the process has exited */ }
    await new Promise((resolve) => setTimeout(resolve, 1)); // a signal in each millisecond of the stop
  }
  assert.deepEqual(service.ends(), [0]);
});

test("secrets can come as credentials, after every other source", async () => {
  const folder = temporaryFolder(), write = (name, text) => fs.writeFileSync(path.join(folder, name), text, { mode: 0o400 });
  write("runcast_encryption-key", `${"ab".repeat(32)}\n`);
  write("runcast.metrics-token", "a-token-of-some-length\n");
  const shown = async (env = {}) => (await runProgram(["--print-config"], { env: { CREDENTIALS_DIRECTORY: folder, ...env } })).stdout;
  assert.match(await shown(), /encryption-key +=.*; runcast_encryption-key\n/);
  assert.match(await shown(), /metrics-token +=.*; runcast\.metrics-token\n/);
  assert.match(await shown({ RUNCAST_ENCRYPTION_KEY: "cd".repeat(32) }), /encryption-key +=.*; RUNCAST_ENCRYPTION_KEY\n/);
  assert.ok(!(await shown()).includes("abab"));
  write("runcast.encryption-key", "short");
  fs.rmSync(path.join(folder, "runcast_encryption-key"));
  const wrong = await runProgram(["--check-config"], { env: { CREDENTIALS_DIRECTORY: folder } });
  assert.deepEqual([wrong.code, /runcast\.encryption-key: /.test(wrong.all)], [2, true], wrong.all);
  fs.rmSync(path.join(folder, "runcast.encryption-key"));
  fs.symlinkSync("nowhere", path.join(folder, "runcast_encryption-key"));
  for (const directory of [folder, path.join(folder, "none")]) {
    const lost = await runProgram(["--check-config"], { env: { CREDENTIALS_DIRECTORY: directory } });
    assert.equal(lost.code, 2, `${directory}: ${lost.all}`);
  }
  fs.rmSync(path.join(folder, "runcast_encryption-key"));
  write("runcast_encryption_key", "ab".repeat(32));
  assert.match((await runProgram(["--check-config"], { env: { CREDENTIALS_DIRECTORY: folder } })).all, /credential matches no setting.*runcast_encryption_key/);
});
