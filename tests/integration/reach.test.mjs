// The reach of user code, tried from inside: the machine, the gateway's files and processes, other versions. The
// operating system decides each attempt, so only root can try all of them.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { before, describe, test } from "node:test";

import { makeFakeBundle } from "../support/js/bundles.mjs";
import { Deployer } from "../support/js/deployments.mjs";
import { keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";
import { isRoot, nodeOptions, runnerUid } from "../support/js/supervisor.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

const skip = !isRoot && "only root executes as others";

/** Code of an index: its own attempts, which its log reports. */
const attempts = (files, pids) => `
const attempt = (act) => { try { act(); return "done"; } catch (error) { return error.code; } };
console.log("REACHED " + JSON.stringify({
  uid: process.getuid(), groups: process.getgroups(), score: fs.readFileSync("/proc/self/oom_score_adj", "utf8").trim(), names: Object.keys(process.env).sort(),
  read: ${JSON.stringify(files)}.map((file) => attempt(() => fs.readFileSync(file))), signal: ${JSON.stringify(pids)}.map((pid) => attempt(() => process.kill(pid, 0))),
  status: fs.readFileSync("/proc/self/status", "utf8"), limits: fs.readFileSync("/proc/self/limits", "utf8"),
}));`;

describe("user code", { skip }, () => {
  let top, data, gateway, secrets, pids, other;
  const inData = (...names) => names.map((name) => path.join(data, name)).filter((file) => fs.existsSync(file));

  before(async (t) => {
    top = temporaryFolder();
    data = path.join(top, "data");
    fs.chmodSync(top, 0o711);
    fs.mkdirSync(path.join(top, "events"));
    fs.chmodSync(path.join(top, "events"), 0o777);
    gateway = await startGateway({ data, options: ["--execute", "--runner-user", String(runnerUid), ...nodeOptions()] });
    const deployed = await new Deployer(gateway).deploy({}, makeFakeBundle(["task"], { events: path.join(top, "events/") }));
    assert.equal(deployed.status, 200, deployed.text);
    other = path.join(`${data}-versions`, "versions", deployed.json.id);
    secrets = [...inData(...fs.readdirSync(data)), `${data}-versions/supervise.lock`, `${data}-versions/supervise.pids`];
    assert.ok(secrets.some((file) => file.endsWith("supervise.token")) && secrets.some((file) => /\.(db|sqlite)/.test(file)), secrets.join());
    const role = fs.readdirSync("/proc").filter((pid) => { try { const words = fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0"); return words.includes("supervise") && words.includes(data); } catch { return false; } }).map(Number);
    assert.equal(role.length, 1);
    pids = [gateway.child.pid, role[0]];
  });

  test("of a run can reach its version and its own folder", async () => {
    const worker = new Worker(gateway, keys.prod), ofOthers = pids.flatMap((pid) => [`/proc/${pid}/environ`, `/proc/${pid}/fd/0`, `/proc/${pid}/mem`]);
    const write = [path.join(other, "build.json"), path.join(other, "new"), `${data}-versions/new`, `${data}-versions/runners/new`, "/etc/new"];
    const id = await worker.trigger("task", {}, { do: "reach", read: [...secrets, ...ofOthers], list: [data, `${data}-versions`, `${data}-versions/versions`, `${data}-versions/runners`], write, signal: pids });
    const { output } = await until(async () => { const { run } = await worker.show(id); return run.finishedAt && run; }, { what: "its end" });
    for (const file of secrets) assert.equal(output.read[file], "EACCES", file);
    for (const file of ofOthers) assert.ok(["ENOENT", "EACCES"].includes(output.read[file]), `${file}: ${output.read[file]}`);
    for (const [folder, found] of Object.entries(output.list)) assert.equal(found, "EACCES", folder);
    for (const [file, found] of Object.entries(output.write)) assert.equal(found, "EACCES", file);
    for (const [pid, found] of Object.entries(output.signal)) assert.ok(["ESRCH", "EPERM"].includes(found), `a signal to ${pid}: ${found}`);
    assert.deepEqual([output.uid, output.groups, output.status.CapEff, output.status.CapBnd === undefined], [runnerUid, [runnerUid], "0000000000000000", false]);
    assert.match(output.limits, /Max core file size +0 +0/);
    assert.match(output.limits, /Max open files +16384 +16384/);
    assert.match(output.limits, /Max processes +8192 +8192/);
    assert.equal(output.score, "500", "a run goes before the gateway when memory ends");
    assert.deepEqual(pids.map((pid) => fs.readFileSync(`/proc/${pid}/oom_score_adj`, "utf8").trim()), ["0", "0"]);
    assert.ok(!output.values.some((value) => value === keys.prod), "the secret key comes with the start of an attempt, not with the process");
  });

  test("of a build can reach no more, and is killed first when memory runs out", async () => {
    const bundle = makeFakeBundle(["task"], { index: attempts([...secrets, path.join(other, "new")], pids) });
    const deployed = await new Deployer(gateway).deploy({}, bundle);
    assert.equal(deployed.status, 200, deployed.text);
    const log = await gateway.get(`/api/v1/deployments/${deployed.json.id}/logs`, { key: keys.prod });
    const reached = JSON.parse(/REACHED (.*)/.exec(log.text)[1]);
    assert.deepEqual([...new Set(reached.read.slice(0, -1))], ["EACCES"]);
    for (const found of reached.signal) assert.ok(["ESRCH", "EPERM"].includes(found), found);
    assert.deepEqual([reached.uid, reached.groups, reached.score], [runnerUid, [runnerUid], "700"]);
    assert.match(reached.status, /NoNewPrivs:\t1/);
    for (const limit of [/Max core file size +0 +0/, /Max open files +16384 +16384/, /Max processes +8192 +8192/]) assert.match(reached.limits, limit);
    assert.deepEqual(reached.names.filter((name) => !name.startsWith("TRIGGER_") && !/^(NODE_|npm_|SSL_CERT_FILE)/.test(name)), ["HOME", "LANG", "PATH", "TMPDIR"]);
    assert.ok(!log.text.includes(keys.prod), "nor is a key in its log");
  });

  test("is not executed as the user who owns the gateway's data", async () => {
    await gateway.stop();
    fs.chownSync(data, runnerUid, runnerUid);
    const { code, all } = await runProgram(["--data", data, "--listen", "127.0.0.1:1", "--execute", "--runner-user", String(runnerUid)]);
    assert.equal(code, 2, all);
    assert.match(all, /this user owns the gateway's data/);
  });
});
