// The smallest worker for deployed versions: one process, no packages, one run at a time, for all environments of its
// token. The table `tasks` has what each task does. It prints events on stdout, one line of JSON each.
//
//   URL=http://127.0.0.1:3030 WORKER_TOKEN=tr_wgt_… HEARTBEAT_MS=200 node plain_worker.mjs
import { randomUUID } from "node:crypto";

const { URL: base, WORKER_TOKEN: token, HEARTBEAT_MS = "30000" } = process.env;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const printEvent = (event) => process.stdout.write(`${JSON.stringify(event)}\n`);

const tasks = {
  double: async (n) => n * 2,
  slow: async (ms) => { await sleep(ms); return "done"; },
  where: async (_, { envVars, execution }) => [execution.environment.type, envVars.TRIGGER_SECRET_KEY.split("_")[1]],
  dies: async (_, { execution }) => {
    if (execution.attempt.number === 1) process.kill(process.pid, "SIGKILL");
    return execution.attempt.number;
  },
};

/** Repeats a request until it gets a response other than 5xx. The idempotency key marks it as the same call. */
async function call(method, path, body) {
  const headers = { authorization: `Bearer ${token}`, "x-trigger-worker-instance-name": "plain", "x-trigger-request-idempotency-key": randomUUID() };
  for (;; await sleep(50)) {
    try {
      const response = await fetch(`${base}/engine/v1/worker-actions/${path}`, { method, headers, body: body && JSON.stringify(body) });
      const text = await response.text();
      if (response.status >= 500) continue;
      return { status: response.status, json: text ? JSON.parse(text) : undefined };
    } catch { /* the gateway is unreachable */ }
  }
}

async function execute(message) {
  const at = `runs/${message.run.friendlyId}/snapshots`;
  const start = await call("POST", `${at}/${message.snapshot.friendlyId}/attempts/start`, { isWarmStart: true });
  if (start.status !== 200) return printEvent({ event: "refused", run: message.run.friendlyId, status: start.status });
  const { execution, snapshot } = start.json;
  printEvent({ event: "started", run: execution.run.id, attempt: execution.attempt.number });
  const beat = setInterval(() => call("POST", `${at}/${snapshot.friendlyId}/heartbeat`, { cpu: 0, memory: 0 }), Number(HEARTBEAT_MS));
  const began = Date.now();
  let completion;
  try {
    const output = await tasks[execution.task.id](JSON.parse(execution.run.payload), start.json);
    completion = { ok: true, output: JSON.stringify(output), outputType: "application/json" };
  } catch (error) {
    completion = { ok: false, error: { type: "BUILT_IN_ERROR", name: error.name, message: error.message, stackTrace: error.stack } };
  }
  clearInterval(beat);
  const usage = { durationMs: Date.now() - began };
  const { status } = await call("POST", `${at}/${snapshot.friendlyId}/attempts/complete`, { completion: { id: execution.run.id, usage, ...completion } });
  printEvent({ event: "completed", run: execution.run.id, status });
}

const { json } = await call("POST", "connect", { metadata: {} });
printEvent({ event: "connected", as: json.workerGroup.name });
for (;;) {
  const { status, json: messages } = await call("POST", "dequeue", {});
  if (status !== 200) { printEvent({ event: "ended", status }); break; }
  for (const message of messages) await execute(message);
}
