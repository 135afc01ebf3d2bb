// A run controller for a supervise role, without packages. The payload of its run names what the task does:
//
//   { "do": "finish" | "largeOutput" | "largeError" | "sleep" | "until" | "retry" | "wait" | "hang" | "die" | "parent" | "audit" | "reach" | "peek" | "leave", … }
//
// Tests copy it into a version's folder, with http.mjs and websocket.mjs. It logs events as lines of the file
// events/<runner id>, which tests read; a file events.path names a different folder for them. If the file "exit" exists
// there, the next controller exits at once. If the file "deaf" exists, a kept controller ignores the run that it
// gets.
//
// It does not call fetch, which costs each process a quarter of a second of CPU time when it is loaded.
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import fs from "node:fs";

import { HttpClient } from "./http.mjs";
import { opcodes, WebSocket } from "./websocket.mjs";

const env = process.env, fileNextToThis = (name) => new URL(name, import.meta.url).pathname;
const events = fs.existsSync(fileNextToThis("events.path")) ? fs.readFileSync(fileNextToThis("events.path"), "utf8") : fileNextToThis("events/");
const port = Number(env.TRIGGER_SUPERVISOR_API_PORT), base = `http://127.0.0.1:${port}`;
const ownHeaders = { "x-trigger-workload-deployment-id": env.TRIGGER_DEPLOYMENT_ID, "x-trigger-workload-runner-id": env.TRIGGER_RUNNER_ID };
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const logEvent = (event, more) => fs.appendFileSync(`${events}${env.TRIGGER_RUNNER_ID}`, `${JSON.stringify({ event, pid: process.pid, at: Date.now(), ...more })}\n`);
const internal = (code) => ({ type: "INTERNAL_ERROR", code });

let run = env.TRIGGER_RUN_ID, snapshot = env.TRIGGER_SNAPSHOT_ID, busy = false;
process.on("SIGTERM", () => { logEvent("SIGTERM", { busy }); if (!busy) process.exit(0); });
logEvent("spawned", { run });
if (fs.existsSync(`${events}exit`)) { fs.renameSync(`${events}exit`, `${events}exited`); process.exit(3); }

const clients = new Map();
/** Sends a request to an absolute URL: { status, text, json }. */
function request(method, url, options) {
  const { origin, pathname, search } = new URL(url);
  if (!clients.has(origin)) clients.set(origin, new HttpClient(origin));
  return clients.get(origin).request(method, pathname + search, options);
}
/** Calls the API with the variables of the run. */
const post = (path, body) => request("POST", `${variables.TRIGGER_API_URL}${path}`, { key: variables.TRIGGER_SECRET_KEY, body });

/** Repeats a call under the same key until the gateway answers. */
async function call(method, rest, body, { headers = ownHeaders, path = `/api/v1/workload-actions/runs/${run}/snapshots/${rest}`, once = false } = {}) {
  const key = randomUUID();
  for (;; await sleep(100)) {
    const reply = await request(method, base + path, { headers: { ...headers, "x-trigger-request-idempotency-key": key }, body }).catch((error) => ({ status: 0, text: String(error) }));
    if (once || (reply.status && reply.status < 500)) return reply;
  }
}

let onNotice = () => {};
const notices = [];
async function listen() {
  const ws = await WebSocket.open({ port, target: "/socket.io/?EIO=4&transport=websocket", headers: ownHeaders });
  const sendText = (text) => ws.send(opcodes.text, text);
  ws.listen((payload) => {
    const text = payload.toString();
    if (text.startsWith("0")) sendText("40/workload,");
    else if (text === "2") sendText("3");
    else if (text.startsWith("40/workload")) sendText(`42/workload,["run:start",${JSON.stringify({ version: "1", run: { friendlyId: run }, snapshot: { friendlyId: snapshot } })}]`);
    else if (text.includes("run:notify")) { notices.push(text); onNotice(); }
  });
}

/** Returns the newest snapshot that wanted() accepts. */
async function newest(wanted) {
  for (;;) {
    const { json } = await call("GET", `since/${snapshot}`);
    const last = json?.snapshots?.at(-1);
    if (last) snapshot = last.snapshot.friendlyId;
    if (last && wanted(last)) return last;
    await Promise.race([sleep(5000), new Promise((resolve) => { onNotice = resolve; })]);
  }
}

async function complete(completion) {
  const reply = await call("POST", `${snapshot}/attempts/complete`, { completion: { id: run, ...completion } });
  logEvent("completed", { status: reply.status, result: reply.json?.result?.attemptStatus });
  if (reply.json?.result) snapshot = reply.json.result.snapshot.friendlyId;
  return reply.json?.result?.attemptStatus;
}
const succeed = (output) => complete({ ok: true, output: JSON.stringify(output ?? null), outputType: "application/json" });

const textOf = (file) => { try { return fs.readFileSync(file, "utf8"); } catch { return ""; } };
const inspectSelf = () => ({
  uid: process.getuid(), groups: process.getgroups(), cwd: process.cwd(), names: Object.keys(env).sort(), values: Object.values(env),
  files: fs.readdirSync("/proc/self/fd").map((fd) => { try { return fs.readlinkSync(`/proc/self/fd/${fd}`); } catch { return ""; } }),
  status: Object.fromEntries(fs.readFileSync("/proc/self/status", "utf8").split("\n").filter(Boolean).map((line) => line.split(/:\s+/))),
  arguments: process.argv.slice(1), parent: textOf(`/proc/${process.ppid}/environ`),
});

const tasks = {
  finish: ({ output }) => succeed(output ?? { attempt: number, runner: env.TRIGGER_RUNNER_ID }),
  largeOutput: ({ bytes }) => succeed("o".repeat(bytes)),
  largeError: ({ bytes }) => complete({ ok: false, error: { type: "STRING_ERROR", raw: "é".repeat(bytes / 2) } }),
  sleep: async ({ ms }) => { await sleep(ms); return succeed({ attempt: number, runner: env.TRIGGER_RUNNER_ID }); },
  async until({ file }) { while (!fs.existsSync(file)) await sleep(50); return succeed({ attempt: number, runner: env.TRIGGER_RUNNER_ID }); },
  async retry({ delay }) {
    if (number > 1) return succeed({ attempt: number, runner: env.TRIGGER_RUNNER_ID });
    return complete({ ok: false, error: { type: "BUILT_IN_ERROR", name: "Error", message: "boom", stackTrace: "Error: boom" }, retry: { timestamp: Date.now() + delay, delay } });
  },
  async wait({ ms }) {
    const { status } = await post(`/engine/v1/runs/${run}/wait/duration`, { date: new Date(Date.now() + ms) });
    logEvent("waits", { status });
    await newest((one) => one.completedWaitpoints.length > 0);
    return succeed({ waited: true, notices: notices.length });
  },
  async parent({ depth }) {
    const payload = depth > 1 ? { do: "parent", depth: depth - 1 } : { do: "sleep", ms: 50 };
    const { status } = await post("/api/v1/tasks/task/trigger", { payload, options: { parentRunId: run, resumeParentOnCompletion: true } });
    logEvent("waits", { status });
    await newest((one) => one.completedWaitpoints.length > 0);
    return succeed({ depth });
  },
  async hang() {
    await newest((one) => one.snapshot.executionStatus === "PENDING_CANCEL");
    logEvent("canceled");
    return complete({ ok: false, error: internal("TASK_RUN_CANCELLED") });
  },
  async die() { if (number > 1) return succeed({ attempt: number }); await new Promise((resolve) => { process.stderr.write("last words\n", resolve); }); process.kill(process.pid, "SIGKILL"); return sleep(1000); },
  audit: () => succeed(inspectSelf()),
  /** Tries each access; its result is that of the call, or the code of its error. */
  async reach({ read = [], list = [], write = [], signal = [] }) {
    const attempt = (all, act) => Object.fromEntries(all.map((one) => { try { return [one, act(one) ?? "done"]; } catch (error) { return [one, error.code]; } }));
    return succeed({ ...inspectSelf(), read: attempt(read, (file) => fs.readFileSync(file, "latin1")), list: attempt(list, (folder) => fs.readdirSync(folder)),
      write: attempt(write, (file) => fs.writeFileSync(file, `by ${process.getuid()}`, { mode: 0o666 })), signal: attempt(signal, (pid) => process.kill(pid, 0) && "done"),
      score: textOf("/proc/self/oom_score_adj").trim(), limits: textOf("/proc/self/limits") });
  },
  async peek({ other }) {
    const requested = async (path, headers) => { const { status, text } = await call("GET", "", undefined, { path, headers, once: true }); return [status, text]; };
    const at = (id) => `/api/v1/workload-actions/runs/${id}/snapshots/since/${snapshot}`;
    return succeed({ own: (await requested(at(run), ownHeaders))[0], refused: [
      await requested(at(other), ownHeaders), await requested(at(run), {}), await requested(at(run), { ...ownHeaders, "x-trigger-workload-deployment-id": "x".repeat(43) }),
      await requested(at(run), { ...ownHeaders, "x-trigger-workload-runner-id": "runner-other" }), await requested("/nothing", ownHeaders), await requested(`/engine/v1/worker-actions/runs/${run}/snapshots/latest`, ownHeaders),
      await requested("/warm-start", { "x-trigger-workload-controller-id": env.TRIGGER_RUNNER_ID }),
    ] });
  },
  async leave() {
    const child = spawn("sleep", ["1000"], { detached: true, stdio: "inherit" });
    child.unref();
    logEvent("left", { child: child.pid });
    return succeed({ child: child.pid });
  },
};

let number, variables;
async function execute() {
  for (;;) {
    const start = await call("POST", `${snapshot}/attempts/start`, { isWarmStart: false });
    if (start.status !== 200) { logEvent("refused", { status: start.status, text: start.text }); process.exit(1); }
    busy = true;
    variables = start.json.envVars;
    number = start.json.execution.attempt.number;
    snapshot = start.json.snapshot.friendlyId;
    logEvent("started", { run, attempt: number });
    const beat = setInterval(() => call("POST", `${snapshot}/heartbeat`, {}, { once: true }), 300);
    const payload = JSON.parse(start.json.execution.run.payload);
    const result = await tasks[payload.do](payload);
    clearInterval(beat);
    busy = false;
    if (result !== "RETRY_IMMEDIATELY") return;
    await sleep(payload.delay);
  }
}

/** Waits for another run, in a kept controller. */
async function next() {
  if (!env.TRIGGER_WARM_START_URL) return false;
  const { connectionTimeoutMs, keepaliveMs } = (await request("GET", `${env.TRIGGER_WARM_START_URL}/connect`)).json;
  if (!connectionTimeoutMs) return false;
  const headers = { "x-trigger-workload-controller-id": env.TRIGGER_WORKLOAD_CONTROLLER_ID, "x-trigger-deployment-id": env.TRIGGER_DEPLOYMENT_ID, "x-trigger-deployment-version": env.TRIGGER_DEPLOYMENT_VERSION };
  for (const end = Date.now() + keepaliveMs; Date.now() < end;) {
    const reply = await request("GET", `${env.TRIGGER_WARM_START_URL}/warm-start`, { headers, timeoutMs: connectionTimeoutMs }).catch(() => null);
    if (reply && reply.status !== 200) return false;
    if (!reply) continue;
    const message = reply.json;
    if (fs.existsSync(`${events}deaf`)) { fs.renameSync(`${events}deaf`, `${events}deafened`); await sleep(1e9); }
    run = message.run.friendlyId;
    snapshot = message.snapshot.friendlyId;
    logEvent("kept", { run });
    return true;
  }
  return false;
}

await listen();
do await execute(); while (await next());
process.exit(0);
