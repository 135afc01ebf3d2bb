// deploy.mjs - the cost of production: a deploy by the official CLI, the start of a run, memory.
//
//   node bench/deploy.mjs BUILD          BUILD: a Release build directory; needs npm ci in
//                                        tests/conformance/deploy, and npm for one package
//
// RUNS      per figure of a start (7); medians are printed
//
//   CLI ──► bundle ──► builder ──► version ──► run: controller ──► task process
//
// deploy  of the conformance suite's sample project: the whole command, and the server's part of
//         it, from the call that deploys to DEPLOYED
// cold    from the trigger of an empty run to its end, by the gateway's clock. Two Node processes
//         start, which are the floor: `node -e 0`, twice
// warm    the same with a controller that was kept (--warm)
// rate    empty runs, one and eight at once
// memory  resident, of the supervise role without a run, and of the two processes of a run
//
// There are no targets, as most of it is Node's; the ratios show which part is not.
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

import { keys, startGateway, temporaryFolder, until } from "../tests/support/js/gateway.mjs";
import { isRoot, processesOf, runnerUid } from "../tests/support/js/supervisor.mjs";

const [build = "build"] = process.argv.slice(2);
const count = Number(process.env.RUNS ?? 7);
process.env.GATEWAY_BIN = process.env.GATEWAY_RELEASE_BIN = path.resolve(build, "runcast");
const project = path.join(path.dirname(fileURLToPath(import.meta.url)), "../tests/conformance/deploy");
const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

const top = temporaryFolder(), data = path.join(top, "data"), home = path.join(top, "home");
fs.chmodSync(top, 0o711);
fs.mkdirSync(home);
const user = isRoot ? ["--runner-user", String(runnerUid)] : ["--execute-unsafe"];
const gateway = await startGateway({ release: true, data, options: ["--execute", ...user] });
const prod = { key: keys.prod };
const builds = () => until(async () => (await gateway.get(`/api/v1/projects/${keys.ref}/prod/deploy-settings`, prod)).status === 200, { what: "a builder" });

async function startWith(...more) {
  await gateway.stop();
  await gateway.restart({ options: ["--execute", ...user, ...more] });
  await builds();
}

async function deploy() {
  const began = Date.now(), said = [];
  const child = spawn(process.execPath, ["--import", path.join(project, "stub-net.mjs"), path.join(project, "node_modules/trigger.dev/dist/esm/index.js"), "deploy", "--skip-update-check", "--skip-telemetry"], {
    cwd: project, stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, HOME: home, TMPDIR: home, TRIGGER_API_URL: gateway.url, TRIGGER_ACCESS_TOKEN: keys.pat, TRIGGER_PROJECT_REF: keys.ref, TRIGGER_TELEMETRY_DISABLED: "1", STUB_ANSWER: "1", NO_COLOR: "1", CI: "1" },
  });
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => said.push(text));
  const code = await new Promise((resolve) => child.on("close", resolve));
  if (code !== 0) throw new Error(`the deploy ended with ${code}: ${Buffer.concat(said)}`);
  const whole = Date.now() - began, { json } = await gateway.get("/api/v1/deployments/current", prod);
  return { whole, server: Date.parse(json.deployedAt) - Date.parse(json.createdAt) };
}

const trigger = async (task, payload = {}) => (await gateway.post(`/api/v1/tasks/${task}/trigger`, { payload }, prod)).json.id;
const show = async (id) => (await gateway.get(`/api/v3/runs/${id}`, prod)).json;
async function ended(id) {
  const run = await until(async () => { const run = await show(id); return run.isCompleted && run; }, { timeoutMs: 120_000, everyMs: 20, what: `the end of ${id}` });
  if (run.status !== "COMPLETED") throw new Error(`${id} ended ${run.status}`);
  return run;
}
const took = (run) => Date.parse(run.finishedAt) - Date.parse(run.createdAt);

async function startsOf(runs) {
  const all = [];
  for (let i = 0; i < runs; i++) all.push(took(await ended(await trigger("which"))));
  return median(all);
}

/** Runs per second, that many at once. */
async function rate(atOnce, runs) {
  await startWith("--supervise-runs", String(atOnce));
  await ended(await trigger("which"));
  const all = await Promise.all(Array.from({ length: runs }, () => trigger("which")));
  const done = [];
  for (const id of all) done.push(await ended(id));
  const from = Math.min(...done.map((run) => Date.parse(run.createdAt))), to = Math.max(...done.map((run) => Date.parse(run.finishedAt)));
  return runs / ((to - from) / 1000);
}

const resident = (pid) => Number(fs.readFileSync(`/proc/${pid}/status`, "latin1").match(/VmRSS:\s+(\d+)/)?.[1] ?? 0) / 1024;
const role = () => fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name)).find((pid) => {
  try { const words = fs.readFileSync(`/proc/${pid}/cmdline`, "latin1").split("\0"); return words.includes("supervise") && words.includes(data); } catch { return false; }
});
/** Memory of all processes of one run, while it is in that state. */
async function memoryOf(task, payload, status) {
  const id = await trigger(task, payload);
  await until(async () => (await show(id)).status === status, { timeoutMs: 30_000, what: status });
  await new Promise((resolve) => setTimeout(resolve, 1500)); // until it has settled
  const bytes = processesOf(`${data}-versions`).reduce((sum, pid) => sum + resident(pid), 0);
  await gateway.post(`/api/v2/runs/${id}/cancel`, {}, prod);
  await until(() => processesOf(`${data}-versions`).length === 0, { timeoutMs: 30_000, what: "its end" });
  return bytes;
}

const bare = median(Array.from({ length: count }, () => {
  const began = process.hrtime.bigint();
  execFileSync(process.execPath, ["-e", "0"]);
  return Number(process.hrtime.bigint() - began) / 1e6;
}));
await builds();
const first = await deploy(), second = await deploy();
await ended(await trigger("which"));
const cold = await startsOf(count), idle = resident(role());
const executing = await memoryOf("long", { seconds: 60 }, "EXECUTING"), waiting = await memoryOf("waits", { seconds: 60 }, "FROZEN");
await startWith("--warm", "2");
await ended(await trigger("which"));
const warm = await startsOf(count);
const one = await rate(1, 2 * count), eight = await rate(8, 6 * count);
await gateway.stop();

const row = (label, value, unit, ratio, of) => console.log(`${label.padEnd(46)} ${value.toFixed(value < 10 ? 2 : 0).padStart(12)} ${unit.padEnd(7)} ${ratio ? `${ratio.toFixed(2)} ${of}` : ""}`.trimEnd());
console.log(`production by the official CLI, ${os.availableParallelism()} cores, Node ${process.versions.node}`);
row("node -e 0", bare, "ms");
row("deploy, the first", first.whole, "ms");
row("  server's part", first.server, "ms", first.server / first.whole, "of it");
row("deploy, the second", second.whole, "ms");
row("  server's part", second.server, "ms", second.server / second.whole, "of it");
row("run, cold", cold, "ms", cold / (2 * bare), "of two bare starts of Node");
row("run, warm", warm, "ms", warm / cold, "of a cold one");
row("runs a second, 1 at once", one, "/s", (one * cold) / 1000, "of one after the other");
row("runs a second, 8 at once", eight, "/s", eight / one, "of 1 at once");
row("memory of an idle supervise role", idle, "MiB");
row("memory of a run that executes", executing, "MiB");
row("memory of a run that waits", waiting, "MiB");
