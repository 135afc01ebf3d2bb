// A gateway with --execute: its supervise role starts with it, survives a kill of the gateway, and
// stops when the gateway stops.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";

import { makeFakeBundle } from "../support/js/bundles.mjs";
import { Deployer } from "../support/js/deployments.mjs";
import { freePort, keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";
import { isRoot, nodeOptions, processesOf, runnerUid, Supervisor } from "../support/js/supervisor.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

const user = isRoot ? ["--runner-user", String(runnerUid)] : ["--execute-unsafe"];
const tasks = [{ id: "task", retry: { maxAttempts: 3, minTimeoutInMs: 50, maxTimeoutInMs: 100, factor: 1, randomize: false } }];

const alive = (pid) => { try { process.kill(pid, 0); return true; } catch { return false; } };
const rolesIn = (folder) => fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name)).filter((pid) => {
  try {
    const words = fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    return words.includes("supervise") && words.includes(folder);
  } catch { return false; }
}).map(Number);

async function begin(t, options = [], { relative = false } = {}) {
  const top = temporaryFolder(), data = path.join(top, "data"), folder = `${data}-versions`;
  fs.chmodSync(top, 0o711);
  t.after(() => { for (const pid of rolesIn(data)) process.kill(pid, "SIGKILL"); });
  const gateway = await startGateway({ t, data: relative ? path.relative(process.cwd(), data) : data, options: ["--execute", ...user, ...nodeOptions(), "--heartbeat-timeout", "10s", "--lease", "10s", ...options] });
  const deployed = await new Deployer(gateway).deploy({}, makeFakeBundle(tasks));
  assert.equal(deployed.status, 200, deployed.text);
  const { id } = deployed.json, worker = new Worker(gateway, keys.prod);
  const version = path.join(folder, "versions", id);
  fs.chmodSync(version, 0o755);
  fs.mkdirSync(path.join(version, "events"));
  fs.chmodSync(path.join(version, "events"), 0o777);
  const view = Object.assign(new Supervisor(), { folder });
  const ended = (id) => until(async () => {
    const { run } = await worker.show(id);
    return run.finishedAt && run;
  }, { what: `the end of ${id}\n${gateway.stderr.slice(-2000)}` });
  return { gateway, worker, data, folder, version, ended, events: (wanted) => view.events(id, wanted), trigger: (payload) => worker.trigger("task", {}, payload), roles: () => rolesIn(data) };
}

test("a gateway without --execute executes nothing", async (t) => {
  const data = path.join(temporaryFolder(), "data"), gateway = await startGateway({ t, data });
  const offered = await gateway.get(`/api/v1/projects/${keys.ref}/prod/deploy-settings`, { key: keys.prod });
  assert.equal(offered.status, 404);
  assert.deepEqual([rolesIn(data), fs.existsSync(`${data}-versions`), fs.existsSync(path.join(data, "supervise.token"))], [[], false, false]);
  await gateway.stop();
});

describe("a gateway that executes", () => {
  test("executes what is triggered, with a token that only its owner can read", async (t) => {
    const world = await begin(t);
    const run = await world.ended(await world.trigger({ do: "audit" }));
    assert.deepEqual([run.status, run.output.uid], ["COMPLETED", runnerUid]);
    const token = path.join(world.data, "supervise.token"), secret = fs.readFileSync(token, "utf8");
    assert.equal(fs.statSync(token).mode & 0o777, 0o600);
    assert.match(secret, /^tr_wgt_\w{32,}$/);
    assert.ok(!JSON.stringify(run.output).includes(secret));
    const [role] = world.roles();
    const environment = fs.readFileSync(`/proc/${role}/environ`, "utf8");
    assert.ok(!Object.values(keys).some((key) => key.startsWith("tr_") && environment.includes(key)), "the role has none of the gateway's keys");
    await world.gateway.stop();
    assert.deepEqual([world.roles(), processesOf(world.version)], [[], []]);
  });

  test("does not execute runs of dev, and its token opens nothing else", async (t) => {
    const world = await begin(t);
    const dev = await Worker.register(world.gateway, { tasks });
    const id = await dev.trigger("task", {}, { do: "finish" });
    assert.equal((await world.ended(await world.trigger({ do: "finish" }))).status, "COMPLETED");
    assert.equal(await dev.status(id), "QUEUED");
    const secret = fs.readFileSync(path.join(world.data, "supervise.token"), "utf8");
    assert.equal((await world.gateway.get("/api/v1/runs", { key: secret })).status, 401);
    assert.equal((await world.gateway.post("/api/v1/tasks/task/trigger", { payload: 1 }, { key: secret })).status, 401);
    await world.gateway.stop();
  });

  test("that is killed leaves its role and run, which the next gateway takes over", async (t) => {
    const world = await begin(t);
    const id = await world.trigger({ do: "sleep", ms: 1500 });
    await until(() => world.events("started").length, { what: "the start" });
    const [role] = world.roles(), [{ runner }] = world.events("started");
    world.gateway.http.close();
    world.gateway.child.kill("SIGKILL");
    await until(() => world.gateway.child.signalCode, { what: "its end" }); // its pipes stay open: the role has them too
    assert.ok(alive(role));
    await world.gateway.restart();
    const run = await world.ended(id);
    assert.deepEqual([run.status, run.output.attempt, run.output.runner], ["COMPLETED", 1, runner]);
    assert.deepEqual(world.roles(), [role]);
    await world.gateway.stop();
    await until(() => !world.roles().length, { what: "its end: it has left its folder, for which the gateway waits" });
  });

  test("lets the CLI wait for the builder right after a start", async (t) => {
    const top = temporaryFolder(), data = path.join(top, "data");
    fs.chmodSync(top, 0o711);
    t.after(() => { for (const pid of rolesIn(data)) process.kill(pid, "SIGKILL"); });
    const gateway = await startGateway({ t, data, options: ["--execute", ...user, ...nodeOptions()] });
    const settings = (env = "prod") => gateway.get(`/api/v1/projects/${keys.ref}/${env}/deploy-settings`, { key: keys[env] });
    assert.equal((await settings()).status, 200, "asked when the role may not have connected yet");
    gateway.http.close();
    gateway.child.kill("SIGKILL");
    await until(() => gateway.child.signalCode, { what: "its end" });
    const roles = rolesIn(data);
    for (const pid of roles) process.kill(pid, "SIGSTOP");
    await gateway.restart();
    let status;
    const asked = settings().then((answer) => { status = answer.status; });
    assert.equal((await settings("dev")).status, 404, "nothing is deployed there");
    assert.equal(status, undefined, "held while the role is silent");
    for (const pid of roles) process.kill(pid, "SIGCONT");
    await asked;
    assert.equal(status, 200);
    await gateway.stop();
  });

  test("starts another role when one is killed, and the run is retried", async (t) => {
    const world = await begin(t);
    const id = await world.trigger({ do: "sleep", ms: 2500 });
    await until(() => world.events("started").length, { what: "the start" });
    const [role] = world.roles();
    process.kill(role, "SIGKILL");
    const run = await world.ended(id);
    assert.deepEqual([run.status, run.output.attempt], ["COMPLETED", 2]);
    assert.notEqual(world.roles()[0], role);
    await world.gateway.stop();
  });

  test("finishes its runs before it stops", async (t) => {
    const world = await begin(t);
    const id = await world.trigger({ do: "sleep", ms: 1000 });
    await until(() => world.events("started").length, { what: "the start" });
    await world.gateway.stop();
    assert.deepEqual(world.events("completed").map(({ result }) => result), ["RUN_FINISHED"]);
    await world.gateway.restart();
    assert.equal((await world.ended(id)).output.attempt, 1);
    await world.gateway.stop();
  });

  test("that cannot start ends its role too", async (t) => {
    const top = temporaryFolder(), data = path.join(top, "data");
    const port = await freePort();
    const first = await startGateway({ t, port, data: path.join(top, "other") });
    const { code, all } = await runProgram(["--data", data, "--listen", `127.0.0.1:${port}`, "--execute", ...user]);
    assert.equal(code, 1, all);
    assert.deepEqual(rolesIn(data), []);
    await first.stop();
  });
});

test("a gateway with a relative data path executes as well", async (t) => {
  const world = await begin(t, [], { relative: true });
  assert.equal((await world.ended(await world.trigger({ do: "finish" }))).status, "COMPLETED");
  await world.gateway.stop();
});

describe("is refused with the reason", () => {
  const start = (...words) => runProgram(["--data", path.join(temporaryFolder(), "data"), "--listen", "127.0.0.1:1", ...words]);

  test("without a user for tasks", async () => {
    const { code, all } = await start("--execute", "on");
    assert.equal(code, 2, all);
    assert.match(all, isRoot ? /--runner-user/ : /--execute-unsafe/);
    const checked = await start("--execute", "--check-config");
    assert.equal(checked.code, 2);
    assert.match(checked.stderr, isRoot ? /--runner-user/ : /--execute-unsafe/);
  });

  test("with a folder that the runner's user cannot enter", async () => {
    if (!isRoot) return; // only root executes as another user
    const top = temporaryFolder(); // mode 0700
    const { code, all } = await runProgram(["supervise", "--url", "http://127.0.0.1:9", "--versions", path.join(top, "versions"), ...user], { env: { RUNCAST_WORKER_TOKEN: "tr_wgt_x" } });
    assert.notEqual(code, 0);
    assert.match(all, new RegExp(`the users of tasks cannot enter ${top}.*--versions`));
  });

  test("with --url, or without an address that has a port", async () => {
    const { all } = await start("--execute", "--url", "http://127.0.0.1:9", ...user);
    assert.match(all, /execute and url are both set/);
    const folder = temporaryFolder();
    const lone = await runProgram(["--data", path.join(folder, "data"), "--listen", `unix:${folder}/socket`, "--execute", ...user]);
    assert.match(lone.all, /an address of the gateway with a port/);
  });

  test("where users can create organizations, unless that is allowed", async () => {
    const { all } = await start("--execute", "--user-organizations", "2", "--check-config", ...user);
    assert.match(all, /user-organizations lets users create organizations.*--execute-tenants/);
  });

  test("with several organizations, unless that is allowed", async (t) => {
    const world = await begin(t);
    const settings = (ref, key) => world.gateway.get(`/api/v1/projects/${ref}/prod/deploy-settings`, { key });
    assert.equal((await settings(keys.ref, keys.prod)).status, 200);
    assert.equal((await runProgram(["org", "create", "Another", "--data", world.data])).code, 0);
    const { stdout } = await runProgram(["project", "create", "Theirs", "--org", "another", "--data", world.data]);
    const [, ref] = /(proj_\w+)/.exec(stdout), [, theirs] = /(tr_prod_\w+)/.exec(stdout);
    assert.equal((await settings(ref, theirs)).status, 404, "a later one has no builder here");
    assert.equal((await world.ended(await world.trigger({ do: "finish" }))).status, "COMPLETED", "and changes nothing for the first");
    await world.gateway.stop();
    await world.gateway.restart({ ready: false });
    assert.equal((await world.gateway.ended()).code, 1);
    assert.match(world.gateway.stderr, /several organizations would share/);
    assert.deepEqual(world.roles(), []);
    await world.gateway.restart({ options: [...world.gateway.options, "--execute-tenants"], ready: false });
    assert.equal((await world.gateway.ended()).code, 2);
    assert.match(world.gateway.stderr, /a range of unused uids/, "nor by one user for both (tenants.test.mjs is the other way)");
  });
});
