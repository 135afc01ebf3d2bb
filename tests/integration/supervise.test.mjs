// The supervise role: a real one with a real gateway, and controllers that the tests play.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { Builder, Deployer } from "../support/js/deployments.mjs";
import { freePort, getBySocket, keys, samplesOf, startGateway, until } from "../support/js/gateway.mjs";
import { RawConnection } from "../support/js/http.mjs";
import { runProgram } from "../support/js/program.mjs";
import { promtool } from "../support/js/promtool.mjs";
import { isRoot, prepareVersion, processesOf, runnerUid, Supervisor, versionsFolder } from "../support/js/supervisor.mjs";
import { WebSocket } from "../support/js/websocket.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

const tasks = [{ id: "task", retry: { maxAttempts: 3, minTimeoutInMs: 50, maxTimeoutInMs: 100, factor: 1, randomize: false } }];
// Only where a run must be lost soon: a controller of a busy machine may be silent for three seconds.
const quick = ["--heartbeat-timeout", "3s", "--lease", "5s"];

const makeToken = async (gateway) => {
  const { code, stdout, all } = await runProgram(["worker-token", "create", "--data", gateway.data]);
  assert.equal(code, 0, all);
  return stdout.trim();
};

/** A gateway with a version that a fake builder deployed, and a supervise role that has it. */
async function begin(t, { options = [], gatewayOptions = [], about } = {}) {
  const gateway = await startGateway({ t, options: gatewayOptions });
  const token = await makeToken(gateway);
  const deploying = new Deployer(gateway).deploy();
  await new Builder(gateway, token).build(tasks);
  const { id } = (await deploying).json;
  const worker = new Worker(gateway, keys.prod);
  const folder = versionsFolder();
  const version = prepareVersion(folder, id, { about });
  const supervisor = await Supervisor.start(gateway, { t, token, folder, options });
  const events = (wanted) => supervisor.events(id, wanted);
  const ended = (id, timeoutMs = 20_000) => until(async () => {
    const { run } = await worker.show(id);
    return run.finishedAt && run;
  }, { what: `the end of ${id}\n${supervisor.log.slice(-2000)}`, timeoutMs });
  const trigger = (payload, more = {}) => worker.trigger("task", more, payload);
  const when = (event, count = 1) => until(() => events(event).length >= count && events(event), { what: event });
  return { gateway, token, worker, folder, version, supervisor, events, ended, trigger, when };
}

/** A proxy that, like HAProxy by default, hides from the gateway when clients leave: { url, dropped };
 *  dropped: how many clients left that had sent a dequeue. */
async function startSilentProxy(t, port) {
  const open = new Set(), proxy = { dropped: 0 };
  const server = net.createServer({ allowHalfOpen: true }, (from) => {
    const to = net.connect(port, "127.0.0.1");
    let asks = false;
    for (const socket of [from, to]) open.add(socket.on("error", () => {}).on("close", () => open.delete(socket)));
    from.on("data", (bytes) => {
      asks = /^POST \S+\/dequeue /.test(bytes) || (asks && !/^[A-Z]+ \//.test(bytes));
      to.write(bytes);
    }).on("end", () => { proxy.dropped += asks; });
    to.on("data", (bytes) => from.write(bytes)).on("end", () => from.end());
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => { server.close(); for (const socket of open) socket.destroy(); });
  return Object.assign(proxy, { url: `http://127.0.0.1:${server.address().port}` });
}

describe("a run", () => {
  let world;
  before(async () => { world = await begin(); });
  after(async () => { await world.supervisor.kill(); await world.gateway.stop(); });

  test("executes in a process of its own, of which nothing remains", async () => {
    const run = await world.ended(await world.trigger({ do: "finish" }));
    assert.deepEqual([run.status, run.output.attempt], ["COMPLETED", 1]);
    await until(() => processesOf(world.version).length === 0, { what: "the end of its processes" });
    await until(() => fs.readdirSync(path.join(world.folder, "runners")).length === 0, { what: "its scratch is removed" });
    assert.equal(fs.readFileSync(path.join(world.folder, "supervise.pids"), "utf8"), "");
  });

  test("is retried in the same process after a short pause", async () => {
    const { output, status } = await world.ended(await world.trigger({ do: "retry", delay: 50 }));
    assert.deepEqual([status, output.attempt], ["COMPLETED", 2]);
    const starts = world.events("started").filter(({ runner }) => runner === output.runner);
    assert.deepEqual(starts.map(({ attempt }) => attempt), [1, 2]);
  });

  test("fails with an error that says so when its output is too long to pass on", async () => {
    for (const [bytes, how] of [[17_000_000, /completion: too large \(17\.0 MB, max 16 MiB\).*begins with \{"completion":\{.*"ok":true/], [16_700_000, undefined]]) {
      const { status, error, attemptCount } = await world.ended(await world.trigger({ do: "largeOutput", bytes }));
      assert.deepEqual([status, attemptCount], [how ? "FAILED" : "COMPLETED", 1]);
      if (how) assert.match(error.message, how);
    }
    const { error } = await world.ended(await world.trigger({ do: "largeError", bytes: 3_000_000 }));
    assert.match(error.message, /^é+… \(cut, 3\.0 MB\)$/);
  });

  test("waits, and is notified when the wait ends", async () => {
    const { output, status } = await world.ended(await world.trigger({ do: "wait", ms: 700 }));
    assert.equal(status, "COMPLETED");
    assert.ok(output.waited && output.notices > 0, JSON.stringify(output));
  });

  test("is canceled by a notice", async () => {
    const id = await world.trigger({ do: "hang" });
    await until(() => world.events("started").some(({ run }) => run === id), { what: "its start" });
    await world.worker.cancel(id);
    assert.equal((await world.ended(id)).status, "CANCELED");
    await world.when("canceled");
  });

  test("whose controller is killed is retried in another process", async () => {
    const id = await world.trigger({ do: "die" });
    const { output, status } = await world.ended(id);
    assert.deepEqual([status, output.attempt], ["COMPLETED", 2]);
    const starts = world.events("started").filter(({ run }) => run === id);
    assert.equal(new Set(starts.map(({ runner }) => runner)).size, 2);
  });

  test("whose controller ends before the start uses no attempt", async () => {
    fs.writeFileSync(path.join(world.version, "events/exit"), "");
    const { output, status } = await world.ended(await world.trigger({ do: "finish" }));
    assert.deepEqual([status, output.attempt], ["COMPLETED", 1]);
    assert.ok(fs.existsSync(path.join(world.version, "events/exited")));
  });

  test("leaves no process that it started, whatever its session", async () => {
    const { output } = await world.ended(await world.trigger({ do: "leave" }));
    assert.ok(output.child > 0);
    await until(() => processesOf(world.version).length === 0, { what: "the end of its child" });
  });

  test("cannot see the supervise role: environment, descriptors, user", async () => {
    const { output } = await world.ended(await world.trigger({ do: "audit" }));
    const own = output.names.filter((name) => !name.startsWith("TRIGGER_"));
    assert.deepEqual(own.filter((name) => !["NODE_EXTRA_CA_CERTS", "NODE_OPTIONS", "SSL_CERT_FILE"].includes(name)),
      ["HOME", "LANG", "NODE_ENV", "OTEL_EXPORTER_OTLP_ENDPOINT", "PATH", "TMPDIR", "UV_USE_IO_URING"]);
    assert.ok(!output.values.some((value) => value.includes(world.token)), "the worker token is nowhere");
    assert.ok(!output.parent.includes(world.token), "nor in what it sees of its parent");
    assert.equal(output.uid, runnerUid);
    if (isRoot) assert.ok(output.groups.every((group) => group !== 0), "none of root's groups");
    assert.equal(output.cwd, world.version);
    const foreign = output.files.filter((file) => !/^(pipe|socket|anon_inode|\/dev\/null|$|\/proc)/.test(file));
    assert.deepEqual(foreign, []);
    assert.equal(output.status.NoNewPrivs, "1");
    assert.equal(output.status.Umask, "0027");
  });

  test("can use its token for itself and nothing else", async () => {
    const other = await world.trigger({ do: "hang" });
    await until(() => world.events("started").some(({ run }) => run === other), { what: "the start of the other" });
    const { output } = await world.ended(await world.trigger({ do: "peek", other }));
    assert.equal(output.own, 200);
    for (const [status, text] of output.refused) assert.deepEqual([status, text], [404, '{"error":"Not found"}']);
    await world.worker.cancel(other);
    await world.ended(other);
  });
});

describe("gateway and supervise role", () => {
  test("a killed gateway changes nothing for a run: the same process completes it", async (t) => {
    const world = await begin(t);
    const id = await world.trigger({ do: "sleep", ms: 1500 });
    const [{ runner }] = await world.when("started");
    await world.gateway.kill();
    await world.gateway.restart();
    const run = await world.ended(id);
    assert.deepEqual([run.status, run.output.attempt, run.output.runner], ["COMPLETED", 1, runner]);
    assert.equal((await world.ended(await world.trigger({ do: "finish" }))).status, "COMPLETED", "and it continues to take runs");
    await world.supervisor.stop();
    await world.gateway.stop();
  });

  test("a dequeue dropped at a proxy that keeps its upstream connection takes no run", async (t) => {
    const world = await begin(t, { options: ["--supervise-cpu", "1"], gatewayOptions: ["--lease", "10m"] }), proxy = await startSilentProxy(t, world.gateway.port);
    await world.supervisor.stop();
    Object.assign(world.supervisor, { gateway: proxy });
    await world.supervisor.begin();
    await world.ended(await world.trigger({ do: "finish" }));
    await until(() => proxy.dropped > 0, { what: "it dequeues again, since there is more room" });
    assert.equal((await world.ended(await world.trigger({ do: "finish" }))).status, "COMPLETED");
    await world.supervisor.stop();
    await world.gateway.stop();
  });

  test("a killed supervise role leaves no process, and the next one reports its runs", async (t) => {
    const world = await begin(t), list = path.join(world.folder, "supervise.runs");
    const id = await world.trigger({ do: "sleep", ms: 2500 });
    await world.when("started");
    await until(() => fs.readFileSync(list, "utf8").startsWith(`${id} `), { what: "its line in the list" });
    await world.supervisor.kill();
    await until(() => processesOf(world.version).length === 0, { what: "the end of its processes" });
    await world.supervisor.begin();
    const run = await world.ended(id, 30_000); // long before its heartbeat timeout of five minutes
    assert.deepEqual([run.status, run.output.attempt], ["COMPLETED", 2]);
    assert.match(world.supervisor.log, new RegExp(`reporting a run of an earlier supervise role.*${id} attempt=1`));
    await until(() => fs.readFileSync(list, "utf8") === "", { what: "it has no run" });
    await world.supervisor.stop();
    await world.gateway.stop();
  });

  test("a clone of a machine's disk does not report the runs that the machine executes", async (t) => {
    const world = await begin(t), list = path.join(world.folder, "supervise.runs");
    const id = await world.trigger({ do: "sleep", ms: 2500 });
    await world.when("started");
    await until(() => / 1 [0-9a-f]{16}\n$/.test(fs.readFileSync(list, "utf8")), { what: "its line in the list" });
    await world.supervisor.kill();
    await until(() => processesOf(world.version).length === 0, { what: "the end of its processes" });
    fs.writeFileSync(list, fs.readFileSync(list, "utf8").replace(/[0-9a-f]{16}\n$/, "0123456789abcdef\n"));
    await world.supervisor.begin();
    await until(() => world.supervisor.log.includes("ignoring a run in the list of another machine"), { what: "it reads the list" });
    assert.equal((await world.ended(await world.trigger({ do: "finish" }))).status, "COMPLETED", "it executes other runs");
    assert.equal((await world.worker.show(id)).a, "EXECUTING");
    assert.doesNotMatch(world.supervisor.log, /reporting a run of an earlier supervise role/);
    await world.supervisor.stop();
    await world.gateway.stop();
  });

  test("a run whose last attempt ends with a killed supervise role fails with the reason", async (t) => {
    const world = await begin(t), id = await world.trigger({ do: "hang" }, { maxAttempts: 1 });
    await world.when("started");
    await until(() => fs.readFileSync(path.join(world.folder, "supervise.runs"), "utf8").includes(" 1 "), { what: "its line in the list" });
    await world.supervisor.kill();
    await world.supervisor.begin();
    const { status, error } = await world.ended(id, 30_000);
    assert.deepEqual([status, error.message], ["CRASHED", "trigger.dev internal error (TASK_PROCESS_EXITED_WITH_NON_ZERO_CODE): the supervise role that had the run ended"]);
    await world.supervisor.stop();
    await world.gateway.stop();
  });

  test("a drain lets runs finish, and kills those that do not", async (t) => {
    const world = await begin(t, { options: ["--supervise-drain-timeout", "2s"] });
    const [short, long] = [await world.trigger({ do: "sleep", ms: 700 }), await world.trigger({ do: "sleep", ms: 60_000 })];
    await world.when("started", 2);
    assert.deepEqual(await world.supervisor.stop(), { code: 0, signal: null }, world.supervisor.log.slice(-3000));
    assert.equal((await world.ended(short)).status, "COMPLETED");
    assert.equal((await world.worker.show(long)).a, "REATTEMPTING", "it was reported, and is due again");
    assert.deepEqual(processesOf(world.version), []);
    await world.gateway.stop();
  });

  test("a second signal kills the runs that a drain would wait for", async (t) => {
    const world = await begin(t, { options: ["--supervise-drain-timeout", "10m"] });
    const id = await world.trigger({ do: "sleep", ms: 600_000 });
    await world.when("started");
    world.supervisor.child.kill("SIGTERM");
    await world.when("SIGTERM");
    assert.equal((await world.worker.show(id)).a, "EXECUTING");
    world.supervisor.child.kill("SIGTERM");
    assert.deepEqual(await world.supervisor.exited, { code: 0, signal: null }, world.supervisor.log.slice(-3000));
    assert.deepEqual([(await world.worker.show(id)).a, processesOf(world.version)], ["REATTEMPTING", []]);
    await world.gateway.stop();
  });

  test("a stopped role takes no run and loses none", async (t) => {
    const world = await begin(t);
    assert.deepEqual(await world.supervisor.stop(), { code: 0, signal: null }, world.supervisor.log.slice(-3000));
    const id = await world.trigger({ do: "finish" });
    assert.equal(await world.worker.status(id), "QUEUED");
    await world.supervisor.begin();
    assert.equal((await world.ended(id)).output.attempt, 1);
    await world.supervisor.stop();
    await world.gateway.stop();
  });

  test("a second role in the same folder is refused", async (t) => {
    const world = await begin(t);
    const second = await Supervisor.start(world.gateway, { t, token: world.token, folder: world.folder, wait: false });
    assert.equal((await second.exited).code, 3);
    assert.match(second.log, /another supervise role uses/);
    await world.supervisor.stop();
    await world.gateway.stop();
  });
});

describe("capacity", () => {
  test("runs beyond the capacity wait in the queue", async (t) => {
    const world = await begin(t, { options: ["--supervise-runs", "2"] });
    const ids = await Promise.all(Array.from({ length: 5 }, () => world.trigger({ do: "sleep", ms: 300 })));
    await Promise.all(ids.map((id) => world.ended(id)));
    await world.when("completed", 5);
    let executing = 0, most = 0;
    for (const { event } of world.events()) {
      if (event === "spawned") most = Math.max(most, ++executing);
      if (event === "completed") executing--;
    }
    assert.equal(most, 2);
    await world.supervisor.stop();
    await world.gateway.stop();
  });

  test("a waiting run lets another execute", async (t) => {
    const world = await begin(t, { options: ["--supervise-runs", "1", "--supervise-waiting", "3"] });
    const waiting = await world.trigger({ do: "wait", ms: 8000 });
    await world.when("waits");
    const other = await world.ended(await world.trigger({ do: "finish" }));
    assert.equal(other.status, "COMPLETED");
    assert.notEqual(await world.worker.status(waiting), "COMPLETED");
    assert.equal((await world.ended(waiting)).status, "COMPLETED");
    await world.supervisor.stop();
    await world.gateway.stop();
  });

  test("parents with children and grandchildren all end, however little capacity there is", async (t) => {
    const world = await begin(t, { options: ["--supervise-runs", "4", "--supervise-waiting", "40"] });
    const ids = await Promise.all(Array.from({ length: 12 }, () => world.trigger({ do: "parent", depth: 2 })));
    for (const id of ids) assert.equal((await world.ended(id, 60_000)).status, "COMPLETED");
    assert.equal((await world.when("completed", 36)).length, 36);
    await world.supervisor.stop();
    await world.gateway.stop();
  });

  test("a run that cannot start because of waiting runs says so, and starts when one has ended", async (t) => {
    const world = await begin(t, { options: ["--supervise-runs", "1", "--supervise-waiting", "1"] });
    const waiting = await world.trigger({ do: "wait", ms: 8000 });
    await world.when("waits");
    const other = await world.trigger({ do: "finish" });
    const held = await until(async () => { const { run } = await world.worker.show(other); return run.waitingFor?.reason === "room" && run; }, { what: "the reason" });
    assert.match(held.waitingFor.message, /have no free capacity for a small-1x \(0\.5 cores, 0\.5 GB\).*supervise-waiting/);
    for (const id of [waiting, other]) assert.equal((await world.ended(id)).status, "COMPLETED");
    await world.supervisor.stop();
    await world.gateway.stop();
  });

  test("fifty waiting runs block no other run, and take no slot of their queue", async (t) => {
    const world = await begin(t, { options: ["--supervise-cpu", "2", "--supervise-memory", "2g", "--supervise-waiting", "60"], gatewayOptions: ["--env-concurrency", "4"] });
    const ids = await Promise.all(Array.from({ length: 50 }, () => world.trigger({ do: "wait", ms: 300_000 })));
    await until(() => world.events("waits").length === 50, { what: "all wait", timeoutMs: 240_000 });
    const other = await world.ended(await world.trigger({ do: "finish" }));
    assert.equal(other.status, "COMPLETED");
    for (const id of ids) assert.equal((await world.worker.show(id)).a, "FROZEN", "they wait still");
    await Promise.all(ids.map((id) => world.worker.cancel(id)));
    await world.supervisor.kill();
    await world.gateway.stop();
  });

  test("a run stays queued until its machine preset fits, and is not given back meanwhile", async (t) => {
    const world = await begin(t, { options: ["--supervise-cpu", "2", "--supervise-memory", "4g"] });
    const small = await world.trigger({ do: "hang" });
    await world.when("started");
    const large = await world.trigger({ do: "finish" }, { machine: "medium-2x" });
    const behind = await world.trigger({ do: "finish" });
    await until(async () => (await world.worker.show(large)).run.waitingFor?.reason === "room", { what: "the reason" });
    assert.equal(await world.worker.status(behind), "QUEUED", "it is not overtaken");
    await world.worker.cancel(small);
    for (const id of [large, behind]) assert.equal((await world.ended(id)).status, "COMPLETED");
    assert.doesNotMatch(world.supervisor.log, /given back/);
    await world.supervisor.stop();
    await world.gateway.stop();
  });

  test("a kept controller executes the next run, and ends with the role", async (t) => {
    const world = await begin(t, { options: ["--warm", "1"] });
    const first = await world.ended(await world.trigger({ do: "finish" }));
    await until(() => world.supervisor.log.includes("controller kept"), { what: "it asks for another" });
    const second = await world.ended(await world.trigger({ do: "finish" }));
    assert.equal(second.output.runner, first.output.runner);
    await world.when("kept", 1);
    assert.deepEqual(await world.supervisor.stop(), { code: 0, signal: null }, world.supervisor.log.slice(-3000));
    await world.gateway.stop();
  });
});

test("metrics count processes, how they started and why they ended", async (t) => {
  const world = await begin(t, { options: ["--warm", "1"] });
  const socket = path.join(world.folder, "metrics.sock");
  const figures = async () => Object.fromEntries(samplesOf(await getBySocket(socket, "/metrics")));
  const becomes = (wanted, what) => until(async () => { const now = await figures(); return Object.entries(wanted).every(([name, value]) => now[name] === value); }, { what });
  const name = { runners: "runcast_runners", cold: 'runcast_runner_starts_total{kind="cold"}', warm: 'runcast_runner_starts_total{kind="warm"}' };
  const exits = (cause) => `runcast_runner_exits_total{cause="${cause}"}`;
  assert.deepEqual(await figures(), { [name.runners]: 0, [name.cold]: 0, [name.warm]: 0, ...Object.fromEntries(["done", "exit", "signal", "memory", "killed", "not_started"].map((cause) => [exits(cause), 0])) });
  assert.equal(fs.statSync(socket).mode & 0o777, 0o600);
  assert.equal((await getBySocket(socket, "/metrics", { host: "runs.example.com" })).status, 403);
  for (const other of ["/", "/connect", "/warm-start", "/socket.io/"]) assert.equal((await getBySocket(socket, other)).status, 404, other);

  await world.ended(await world.trigger({ do: "finish" }));
  const kept = (times) => until(() => world.supervisor.log.split("controller kept").length > times, { what: "it asks for another" });
  await kept(1);
  await world.ended(await world.trigger({ do: "finish" }));
  await becomes({ [name.runners]: 1, [name.cold]: 1, [name.warm]: 1 }, "one process has executed two runs");
  await world.ended(await world.trigger({ do: "die" }));
  await becomes({ [exits("signal")]: 1 }, "a process that a signal killed");
  await kept(3);
  const started = (id) => until(() => world.events("started").some(({ run }) => run === id), { what: "its start" });
  fs.writeFileSync(path.join(world.version, "events/exit"), "");
  const hasExited = () => fs.existsSync(path.join(world.version, "events/exited"));
  while (!hasExited()) await started(await world.trigger({ do: "hang" })); // one of them in the kept controller
  await becomes({ [exits("exit")]: 1 }, "a process that ended before its run did");
  const sum = (now) => Object.entries(now).filter(([one]) => one.startsWith("runcast_runner_exits_total")).reduce((all, [, value]) => all + value, now[name.runners]);
  const now = await figures();
  assert.equal(now[name.cold], sum(now), "what began has ended, or is there");
  await world.supervisor.kill();
  await world.supervisor.begin();
  assert.equal((await figures())[exits("exit")], 0, "after a restart counters start at 0, at the socket that the first process left");

  const port = await freePort();
  await world.supervisor.kill();
  world.supervisor.options.push("--supervise-listen", `127.0.0.1:${port}`);
  await world.supervisor.begin();
  const answer = await fetch(`http://127.0.0.1:${port}/metrics`);
  const text = await answer.text();
  assert.match(text, /^runcast_runners \d+$/m);
  assert.deepEqual(promtool(["check", "metrics"], text), { status: 0, output: "" });
  await world.supervisor.kill();
  world.supervisor.options.push("--supervise-listen", `127.0.0.1:${world.gateway.port}`);
  await world.supervisor.begin(false);
  assert.deepEqual(await world.supervisor.exited, { code: 2, signal: null });
  assert.match(world.supervisor.log, new RegExp(`cannot listen|in use|${world.gateway.port}`));
  await world.gateway.stop();
});

describe("the server that the runs of a machine share", () => {
  const MIB = 1024 * 1024;

  /** A run that executes for the whole test, and what its own code could do with its token. */
  async function intruder(world) {
    const id = await world.trigger({ do: "hang" });
    await until(() => world.events("started").some(({ run }) => run === id), { what: "its start" });
    const [pid] = processesOf(world.version);
    const env = Object.fromEntries(fs.readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").map((entry) => entry.split(/=(.*)/s)));
    const port = Number(env.TRIGGER_SUPERVISOR_API_PORT);
    const headers = { "x-trigger-workload-deployment-id": env.TRIGGER_DEPLOYMENT_ID, "x-trigger-workload-runner-id": env.TRIGGER_RUNNER_ID };
    const complete = async (announced, sent) => {
      const lines = Object.entries({ host: "x", ...headers, "content-type": "application/json", "content-length": announced }).map(([name, value]) => `${name}: ${value}\r\n`);
      const connection = await RawConnection.open(port);
      await connection.send(`POST /api/v1/workload-actions/runs/${id}/snapshots/${env.TRIGGER_SNAPSHOT_ID}/attempts/complete HTTP/1.1\r\n${lines.join("")}\r\n`);
      await connection.send(Buffer.alloc(sent, 32));
      return connection;
    };
    return { port, headers, complete };
  }

  let world, own;
  before(async () => { world = await begin(); own = await intruder(world); });
  after(() => world.supervisor.kill().then(() => world.gateway.stop()));
  const othersGoOn = async () => assert.equal((await world.ended(await world.trigger({ do: "finish" }))).status, "COMPLETED");

  test("returns the quota of a body that was cut off", async () => {
    for (let i = 0; i < 20; i++) {
      const connection = await own.complete(16 * MIB, 15 * MIB);
      connection.socket.destroy();
      await until(() => connection.ended, { what: "it is closed" });
    }
    const whole = await own.complete(15 * MIB, 15 * MIB);
    assert.match(await whole.read((text) => text.includes("\r\n")), /^HTTP\/1\.1 4/, "there is quota for a body that is not a completion");
    whole.socket.destroy();
    await othersGoOn();
  });

  test("limits the bodies in flight and the sockets of one run", async () => {
    const bodies = await Promise.all(Array.from({ length: 4 }, () => own.complete(MIB, 1)));
    const fifth = await own.complete(MIB, 1);
    assert.match(await fifth.read((text) => text.includes("}")), /^HTTP\/1\.1 503 [^]*Too many calls of this run/);
    const open = () => WebSocket.open({ port: own.port, target: "/socket.io/?EIO=4&transport=websocket", headers: own.headers });
    const sockets = await Promise.all(Array.from({ length: 3 }, open)); // the controller has one more
    await assert.rejects(open(), /429 .*This run has too many sockets open/);
    await othersGoOn();
    for (const { socket } of [...bodies, fifth, ...sockets]) socket.destroy();
    await until(() => open().then(({ socket }) => socket.destroy() && true, () => false), { what: "the place of a socket that closed" });
  });

  test("cuts a body that trickles", async () => {
    const connection = await own.complete(MIB, 1000);
    assert.match(await connection.readToEnd({ timeoutMs: 20_000 }), /^HTTP\/1\.1 408 /);
  });

  test("is reachable from this machine only", () => {
    const port = own.port.toString(16).toUpperCase().padStart(4, "0");
    const listening = ["/proc/net/tcp", "/proc/net/tcp6"].filter((file) => fs.existsSync(file)).flatMap((file) => fs.readFileSync(file, "utf8").split("\n"))
      .map((line) => line.trim().split(/\s+/)).filter(([, local, , state]) => state === "0A" && local.endsWith(`:${port}`)).map(([, local]) => local);
    assert.deepEqual(listening, [`0100007F:${port}`]);
  });

  test("accepts no body without a token", async () => {
    const connection = await RawConnection.open(own.port);
    await connection.send(`GET /connect HTTP/1.1\r\nhost: x\r\ncontent-length: 60000\r\n\r\n`);
    assert.match(await connection.readToEnd(), /^HTTP\/1\.1 413 /);
  });

  test("does not keep the role from ending", async () => {
    const connection = await own.complete(MIB, 1000);
    world.supervisor.child.kill("SIGTERM"); // its run hangs: the second signal kills it
    connection.socket.destroy();
    await until(() => world.supervisor.log.includes("draining"), { what: "the drain" });
    assert.deepEqual(await world.supervisor.stop(), { code: 0, signal: null }, world.supervisor.log.slice(-3000));
  });
});

describe("a kept controller", () => {
  test("that does not start its run loses it to a new one, and no attempt is used", async (t) => {
    const world = await begin(t, { options: ["--warm", "1"] });
    const first = await world.ended(await world.trigger({ do: "finish" }));
    await until(() => world.supervisor.log.includes("controller kept"), { what: "it asks for another" });
    fs.writeFileSync(path.join(world.version, "events/deaf"), "");
    const { status, output } = await world.ended(await world.trigger({ do: "finish" }));
    assert.deepEqual([status, output.attempt, output.runner !== first.output.runner], ["COMPLETED", 1, true]);
    assert.ok(fs.existsSync(path.join(world.version, "events/deafened")), "it was given to the kept one first");
    assert.match(world.supervisor.log, /kept controller did not start its run; restarting the run/);
    await world.supervisor.stop();
    await world.gateway.stop();
  });

  test("of an older version ends when a run of the next one arrives", async (t) => {
    const world = await begin(t, { options: ["--warm", "2", "--builders", "0"] });
    await world.ended(await world.trigger({ do: "finish" }));
    await until(() => world.supervisor.log.includes("controller kept"), { what: "it asks for another" });
    const deploying = new Deployer(world.gateway).deploy();
    await new Builder(world.gateway, world.token).build(tasks);
    prepareVersion(world.folder, (await deploying).json.id);
    assert.equal((await world.ended(await world.trigger({ do: "finish" }))).status, "COMPLETED");
    await until(() => processesOf(world.version).length === 0, { what: "the end of the one that was kept" });
    await world.supervisor.stop();
    await world.gateway.stop();
  });
});

describe("runs and settings that cannot be executed", () => {
  test("a run of a plain registration waits for the worker that has its code", async (t) => {
    const gateway = await startGateway({ t });
    const token = await makeToken(gateway);
    const worker = await Worker.register(gateway, { tasks: ["double"], key: keys.prod });
    const supervisor = await Supervisor.start(gateway, { t, token });
    const id = await worker.trigger("double", {}, 4);
    await until(async () => /registered by a worker, not deployed/.test((await worker.show(id)).run.waitingFor?.message), { what: "the reason" });
    const program = new URL("../support/js/plain_worker.mjs", import.meta.url).pathname;
    const plain = spawn(process.execPath, [program], { env: { ...process.env, URL: gateway.url, WORKER_TOKEN: token }, stdio: "ignore" });
    t.after(() => plain.kill("SIGKILL"));
    const run = await until(async () => { const { run } = await worker.show(id); return run.finishedAt && run; }, { what: "its end" });
    assert.deepEqual([run.status, run.output], ["COMPLETED", 8]);
    assert.doesNotMatch(supervisor.log, /given back/);
    await supervisor.stop();
    await gateway.stop();
  });


  test("a run whose version is missing here and cannot be made is given back with the reason", async (t) => {
    const world = await begin(t);
    fs.rmSync(world.version, { recursive: true });
    const id = await world.trigger({ do: "finish" });
    await until(() => /cannot prepare a version.*reason="the archive.*\n.*run given back.*reason="the archive/.test(world.supervisor.log), { what: "the reason" });
    assert.ok(["QUEUED", "DEQUEUED", "EXECUTING"].includes(await world.worker.status(id)));
    await world.supervisor.stop();
    await world.gateway.stop();
  });

  for (const [about, reason] of [[{ libc: "musl" }, /built for libc musl, but this machine has glibc/], [{ architecture: "s390x" }, new RegExp(`built for architecture s390x, but this machine has ${process.arch}`)]])
    test(`a version of another machine is refused with the reason: ${Object.keys(about)}`, async (t) => {
      const world = await begin(t, { about });
      const id = await world.trigger({ do: "finish" });
      await until(() => /run given back/.test(world.supervisor.log) && reason.test(world.supervisor.log), { what: "the reason" });
      assert.deepEqual([world.events(), (await world.worker.show(id)).run.attemptCount ?? 0], [[], 0], "nothing of it was executed");
      await world.supervisor.stop();
      await world.gateway.stop();
    });

  test("settings that would endanger the data are refused with the reason", async () => {
    const run = (...words) => runProgram(["supervise", "--url", "http://127.0.0.1:9", ...words], { env: { RUNCAST_WORKER_TOKEN: "tr_wgt_x" } });
    const plain = await run();
    assert.equal(plain.code, 2);
    assert.match(plain.stderr, isRoot ? /--runner-user/ : /--execute-unsafe/);
    const missing = await runProgram(["supervise", "--url", "http://127.0.0.1:9"]);
    assert.match(missing.stderr, /--url needs a worker token of that gateway/);
    if (isRoot) assert.match((await run("--runner-user", "root")).stderr, /root/);
  });
});
