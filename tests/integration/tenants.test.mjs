// Two organizations on one machine (--execute-tenants): each has its own user, permanently, and can reach nothing of
// the other.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { makeFakeBundle } from "../support/js/bundles.mjs";
import { Deployer } from "../support/js/deployments.mjs";
import { keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";
import { isRoot, nodeOptions } from "../support/js/supervisor.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

const users = "710000-710009";

/** Not below /tmp, since each organization has its own /tmp. */
function place(t) {
  const top = fs.mkdtempSync("/var/lib/runcast-test-");
  t.after(() => fs.rmSync(top, { recursive: true, force: true }));
  fs.chmodSync(top, 0o711);
  for (const name of ["groups", "events"]) fs.mkdirSync(path.join(top, name));
  fs.chmodSync(path.join(top, "events"), 0o777);
  return top;
}

async function deploy(gateway, key, events, index) {
  const answer = await new Deployer(gateway, { key }).deploy({}, makeFakeBundle(["task"], { events, index }));
  assert.equal(answer.status, 200, answer.text);
  return answer.json.id;
}

/** The output of the run with that key. */
async function execute(gateway, key, payload) {
  const worker = new Worker(gateway, key), id = await worker.trigger("task", {}, payload);
  const run = await until(async () => {
    const { run } = await worker.show(id);
    return run.finishedAt && run;
  }, { what: `the end of ${id}\n${gateway.stderr.slice(-3000)}` });
  assert.equal(run.status, "COMPLETED", JSON.stringify(run.error));
  return run.output;
}

test("two organizations have users, versions and temporary files of their own", { skip: !isRoot && "only root executes as others" }, async (t) => {
  const top = place(t), events = path.join(top, "events/"), versions = path.join(top, "data-versions/versions");
  const gateway = await startGateway({ t, data: path.join(top, "data"), options: ["--execute", "--execute-tenants", "--runner-user", users, "--cgroup", path.join(top, "groups"), "--heartbeat-timeout", "10s", "--lease", "10s", ...nodeOptions(top)] });
  const ask = async (...words) => { const ended = await runProgram([...words, "--data", path.join(top, "data")]); assert.equal(ended.code, 0, ended.all); return ended.stdout; };
  await ask("org", "create", "Another");
  const theirs = /(tr_prod_\w+)/.exec(await ask("project", "create", "Theirs", "--org", "another"))[1];
  const mine = await deploy(gateway, keys.prod, events);
  const other = await deploy(gateway, theirs, events);

  const left = ["/tmp/left", "/var/tmp/left", "/dev/shm/left"].map((file) => `${file}-${process.pid}`);
  const first = await execute(gateway, keys.prod, { do: "reach", write: left });
  const entry = path.join(versions, mine, "build.json");
  const second = await execute(gateway, theirs, { do: "reach", read: [...left, entry], list: [versions, path.join(versions, mine), path.join(versions, other), "/proc"] });
  assert.deepEqual([first.uid, second.uid], [710000, 710001]);
  assert.deepEqual([first.groups, second.groups], [[710000], [710001]]);
  assert.deepEqual(Object.values(first.write), ["done", "done", "done"]);
  assert.deepEqual(left.map((file) => second.read[file]), ["ENOENT", "ENOENT", "ENOENT"], "temporary files of the other one");
  assert.ok(!left.some((file) => fs.existsSync(file)), "nor are they the machine's");
  assert.deepEqual([second.read[entry], second.list[versions], second.list[path.join(versions, mine)]], ["EACCES", "EACCES", "EACCES"]);
  assert.ok(second.list[path.join(versions, other)].includes("build.json"), "its own version it can read");
  assert.deepEqual(second.list["/proc"].filter((name) => /^\d+$/.test(name)).length <= 2, true, "it sees its own processes alone");

  gateway.http.close();
  gateway.child.kill("SIGKILL");
  await until(() => gateway.child.signalCode, { what: "its end" });
  await gateway.restart();
  assert.equal((await execute(gateway, theirs, { do: "audit" })).uid, 710001, "behind a restart it is the same user");
  assert.equal((await execute(gateway, keys.prod, { do: "audit" })).uid, 710000);

  // A world-readable version, as older releases made them, is closed before it executes.
  fs.chownSync(path.join(versions, mine), 0, 0);
  fs.chmodSync(path.join(versions, mine), 0o755);
  assert.equal((await execute(gateway, keys.prod, { do: "audit" })).uid, 710000);
  const { mode, gid } = fs.statSync(path.join(versions, mine));
  assert.deepEqual([mode & 0o777, gid], [0o750, 710000]);
  await gateway.stop();
});

test("no organization executes without the limits of a control group", { skip: !isRoot && "only root executes as others" }, async (t) => {
  const top = place(t), groups = path.join(top, "groups"), away = path.join(top, "away");
  const gateway = await startGateway({ t, data: path.join(top, "data"), options: ["--execute", "--execute-tenants", "--runner-user", users, "--cgroup", groups, "--lease", "10s", ...nodeOptions(top)] });
  const id = await deploy(gateway, keys.prod, path.join(top, "events/"), `console.log("GROUP " + JSON.stringify(fs.readdirSync(${JSON.stringify(groups)}).filter((name) => name.startsWith("build-")).map((name) => [name, fs.readdirSync(${JSON.stringify(`${groups}/`)} + name).sort()])))`);
  const log = await gateway.get(`/api/v1/deployments/${id}/logs`, { key: keys.prod });
  assert.deepEqual(JSON.parse(/GROUP (.*)/.exec(log.text)[1]), [[`build-${id}`, ["cgroup.procs", "cpu.weight", "memory.max", "pids.max"]]]);
  await until(() => !fs.readdirSync(groups).some((name) => name.startsWith("build-")), { what: "the end of its group" });

  fs.renameSync(groups, away);
  const worker = new Worker(gateway, keys.prod), run = await worker.trigger("task", {}, { do: "finish" });
  await until(() => /run given back.*cannot create the group/.test(gateway.stderr), { what: "the reason" });
  assert.ok(!fs.readdirSync(path.join(top, "events")).length, "no process was begun");
  const refused = await new Deployer(gateway).deploy({}, makeFakeBundle(["task"]));
  assert.equal(refused.status, 422);
  assert.match(refused.text, /cannot create the group/);
  fs.renameSync(away, groups);
  await until(async () => (await worker.show(run)).run.status === "COMPLETED", { what: "the end of the run" });
  await gateway.stop();
});

test("--execute-tenants says what it requires", { skip: !isRoot && "only root executes as others" }, async (t) => {
  const top = place(t), groups = path.join(top, "groups");
  const start = async (folder, ...words) => {
    const { code, all } = await runProgram(["supervise", "--url", "http://127.0.0.1:9", "--versions", path.join(folder, "versions"), "--execute-tenants", ...words], { env: { RUNCAST_WORKER_TOKEN: "tr_wgt_x" } });
    assert.notEqual(code, 0, all);
    return all;
  };
  assert.match(await start(top, "--runner-user", "54321"), /a range of unused uids/);
  assert.match(await start(top, "--runner-user", users, "--cgroup", "off"), /remove --cgroup off/);
  assert.match(await start(top, "--runner-user", users, "--cgroup", path.join(top, "none")), /folder not found/);
  const below = temporaryFolder();
  fs.chmodSync(below, 0o711);
  assert.match(await start(below, "--runner-user", users, "--cgroup", groups), /a private .*, which would hide .*--versions/);
});
