// The gateway's own process is sandboxed: no thread of it can reach other files, programs or processes, and the
// gateway needs nothing that is refused. The processes that it starts for --execute are not in that sandbox.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { freePort, getBySocket, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";
import { isRoot, nodeOptions, runnerUid } from "../support/js/supervisor.mjs";

const executes = ["--execute", ...isRoot ? ["--runner-user", String(runnerUid)] : ["--execute-unsafe"], ...nodeOptions()];

const statusOf = (file) => Object.fromEntries(fs.readFileSync(file, "utf8").split("\n").map((line) => line.split(":\t")));
const threadsOf = (pid) => fs.readdirSync(`/proc/${pid}/task`).map(Number);
/** The kernel's state of each thread, without repetitions: "NoNewPrivs Seccomp". */
const marksOf = (pid) => [...new Set(threadsOf(pid).map((thread) => statusOf(`/proc/${pid}/task/${thread}/status`)).map((status) => `${status.NoNewPrivs} ${status.Seccomp}`))];
const eventsOf = (gateway) => gateway.stderr.split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
const told = (gateway, pattern) => eventsOf(gateway).filter(({ event }) => pattern.test(event));
const abiOf = (gateway) => Number(/^ABI (\d+)$/.exec(told(gateway, /is confined$/)[0].landlock)[1]);
const childrenOf = (pid) => threadsOf(pid).flatMap((thread) => fs.readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8").trim().split(" ").filter(Boolean).map(Number));
const isAlive = (pid) => { try { return !statusOf(`/proc/${pid}/status`).State.startsWith("Z"); } catch { return false; } };

/** Gives every thread something to do: the loop, the pool, the writer of the database. */
async function use(gateway) {
  await Promise.all(Array.from({ length: 20 }, () => gateway.post("/api/v1/tasks/hello/trigger", { payload: 1 }).then(({ status }) => assert.equal(status, 200))));
  assert.equal((await gateway.getAsAdmin("/metrics")).status, 200);
}

test("every thread of a gateway is sandboxed, and the log says by what", async (t) => {
  const gateway = await startGateway({ t });
  await use(gateway);
  assert.ok(threadsOf(gateway.pid).length > 1);
  assert.deepEqual(marksOf(gateway.pid), ["1 2"]);
  const said = told(gateway, /confined/);
  assert.equal(said.length, 1, gateway.stderr);
  assert.deepEqual([said[0].level, said[0].seccomp], ["info", "on"]);
  assert.ok(abiOf(gateway) >= 2);
  await gateway.stop();
});

test("--sandbox off turns it off, and an invalid value is refused", async (t) => {
  const gateway = await startGateway({ t, options: ["--sandbox", "off"] });
  await use(gateway);
  const own = statusOf("/proc/self/status");
  assert.deepEqual(marksOf(gateway.pid), [`${own.NoNewPrivs} ${own.Seccomp}`]);
  assert.deepEqual(told(gateway, /confined/), []);
  await gateway.stop();
  const { code, stderr } = await runProgram(["--sandbox", "on", "--check-config"]);
  assert.equal(code, 2);
  assert.match(stderr, /--sandbox.*auto or off/);
});

test("an attacker in any thread of a gateway is refused everything but the gateway's own work", async (t) => {
  const top = temporaryFolder(), data = path.join(top, "data"), outside = path.join(top, "outside"), report = path.join(top, "report");
  fs.mkdirSync(outside);
  fs.writeFileSync(path.join(outside, "victim"), "secret");
  const gateway = await startGateway({ t, data, preload: "shim_escape", env: { SHIM_ESCAPE: report, SHIM_DATA: data, SHIM_OUTSIDE: outside } });
  await use(gateway);
  const abi = abiOf(gateway), threads = threadsOf(gateway.pid);
  const since = new Map([["truncate a file outside", 3], ["bind another port", 4], ["connect", 4]]);
  const works = ["open sockets of TCP, UDP and UNIX", "work in the data directory", "read time zones", "read about itself", "use devices", "signal itself", "ask for its limits"];
  assert.ok(threads.length > 4, "loop, writer and pool");
  for (const thread of threads) {
    const { status, stderr } = spawnSync("python3", ["-c", `import ctypes; raise SystemExit(ctypes.CDLL(None).tgkill(${gateway.pid}, ${thread}, 12))`], { encoding: "utf8" });
    assert.equal(status, 0, stderr);
    const lines = await until(() => {
      const all = fs.readFileSync(report, "utf8").split("\n").filter((line) => line.startsWith(`${thread}\t`)).map((line) => line.split("\t").slice(1));
      return all.some(([name]) => name === "done") && all.slice(0, -1);
    }, { what: `what thread ${thread} could do` });
    assert.ok(lines.length > 45);
    for (const [name, error] of lines.filter(([name]) => abi >= (since.get(name) ?? 0))) {
      const right = works.includes(name) ? ["0"] : name === "clone3" ? ["38"] : ["1", "13"]; // ENOSYS; EPERM, EACCES
      assert.ok(right.includes(error), `${name} in thread ${thread}: errno ${error}`);
    }
  }
  assert.deepEqual([fs.readdirSync(outside), fs.readFileSync(path.join(outside, "victim"), "utf8")], [["victim"], "secret"]);
  await use(gateway);
  await gateway.stop();
});

test("a kernel without Landlock or seccomp filters is logged once each, and is not an error", async (t) => {
  const binary = path.join(temporaryFolder(), "runcast"), program = process.env.GATEWAY_BIN ?? path.resolve("build-asan/runcast");
  fs.writeFileSync(binary, `#!/bin/sh\nexec python3 -B ${fileURLToPath(new URL("../support/python/old_kernel.py", import.meta.url))} ${program} "$@"\n`, { mode: 0o755 });
  const gateway = await startGateway({ t, binary });
  await use(gateway);
  assert.deepEqual(told(gateway, /confined/).map(({ level, event }) => `${level} ${event.split(":")[0]}`), ["warn file access is not confined", "warn system calls are not confined"]);
  await gateway.stop();
});

test("files of settings and secrets are read again although they were replaced, also through links", async (t) => {
  const top = temporaryFolder(), mounted = path.join(top, "mounted"), secrets = path.join(top, "secrets");
  const fill = (version, text) => { // as Kubernetes mounts a ConfigMap
    fs.mkdirSync(path.join(mounted, version), { recursive: true });
    fs.writeFileSync(path.join(mounted, version, "runcast.conf"), text);
    fs.symlinkSync(version, path.join(mounted, "next"));
    fs.renameSync(path.join(mounted, "next"), path.join(mounted, "..data"));
  };
  fs.mkdirSync(secrets);
  const secret = path.join(secrets, "token"), setSecret = () => { fs.writeFileSync(`${secret}.new`, "a-metrics-token-of-some-length", { mode: 0o600 }); fs.renameSync(`${secret}.new`, secret); };
  setSecret();
  fill("..1", "log-requests = off\n");
  fs.symlinkSync("..data/runcast.conf", path.join(mounted, "runcast.conf"));
  const gateway = await startGateway({ t, data: path.join(top, "data"), options: ["--config", path.join(mounted, "runcast.conf")], env: { RUNCAST_METRICS_TOKEN_FILE: secret } });
  fill("..2", "log-requests = all\n");
  fs.rmSync(path.join(mounted, "..1"), { recursive: true });
  setSecret();
  gateway.child.kill("SIGHUP");
  await until(() => eventsOf(gateway).some(({ action, result }) => action === "reload" && result === "ok"), { what: "the reload" });
  await gateway.stop();
});

test("sockets outside of the data directory work, and stale ones are removed", async (t) => {
  const top = temporaryFolder(), socket = path.join(top, "run", "http.sock");
  fs.mkdirSync(path.dirname(socket));
  const gateway = await startGateway({ t, data: path.join(top, "data"), ready: false, options: ["--listen", `unix:${socket}`, "--admin-listen", `127.0.0.1:${await freePort()}`] });
  const answers = () => until(() => getBySocket(socket, "/readyz").then(({ status }) => status === 200, () => false), { what: "readyz" });
  await answers();
  await gateway.kill();
  await gateway.restart({ ready: false });
  await answers();
  await gateway.stop();
  assert.deepEqual(fs.readdirSync(path.dirname(socket)), []);
});

test("the supervise role and its keeper are not sandboxed, and the keeper ends with a gateway that is killed", async (t) => {
  const top = temporaryFolder();
  fs.chmodSync(top, 0o711);
  const gateway = await startGateway({ t, data: path.join(top, "data"), options: executes });
  const [keeper, ...others] = childrenOf(gateway.pid), own = statusOf("/proc/self/status"), free = [`${own.NoNewPrivs} ${own.Seccomp}`];
  assert.deepEqual(others, []);
  const [role] = await until(() => { const roles = childrenOf(keeper); return roles.length && roles; }, { what: "the role" });
  t.after(() => isAlive(role) && process.kill(role, "SIGKILL"));
  assert.deepEqual([marksOf(gateway.pid), marksOf(keeper), marksOf(role)], [["1 2"], free, free]);
  process.kill(keeper, "SIGTERM"); // as a service manager signals all processes
  gateway.http.close();
  gateway.child.kill("SIGKILL");
  await until(() => !isAlive(keeper), { what: "the keeper's end" });
  assert.ok(isAlive(role));
  await gateway.restart();
  await gateway.stop();
  await until(() => !isAlive(role), { what: "the role's end, by the next gateway" });
});

test("a killed keeper is logged, and the gateway continues and stops cleanly", async (t) => {
  const top = temporaryFolder();
  fs.chmodSync(top, 0o711);
  const gateway = await startGateway({ t, data: path.join(top, "data"), options: executes });
  const [keeper] = childrenOf(gateway.pid), [role] = await until(() => { const roles = childrenOf(keeper); return roles.length && roles; }, { what: "the role" });
  t.after(() => isAlive(role) && process.kill(role, "SIGKILL"));
  process.kill(keeper, "SIGKILL");
  await until(() => told(gateway, /keeper of the supervise role was killed/).length === 1, { what: "the log" });
  await use(gateway);
  process.kill(role, "SIGTERM");
  await until(() => !isAlive(role), { what: "the role's end" }); // it holds our output
  await gateway.stop();
});
