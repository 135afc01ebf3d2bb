// hostile.mjs - valid but hostile requests: how much they slow down a victim in another environment.
//
// For each kind, the p99 of the victim's triggers is measured along with the attacker and alone.
//
//   node bench/hostile.mjs BUILD [NAME…]        BUILD: a Release build directory
//
//   alone ── with it ── alone ── with it …      ROUNDS times each; the medians are divided
//
// SECONDS  duration of each (1)
// ROUNDS   how often they take turns (9: a disk that is slow for two seconds changes no median)
// SENDERS  connections of the attacker (2)
//
// It prints one line per kind: its name, both figures in us, the ratio, the gateway's longest turn
// during the attack (thread CPU, the bound of its bucket), and whether it is too much. Ends with
// status 1 if one was.
//
// The kinds "with a large commit" write a transaction during which no other can be written. There,
// the victim may wait for its own time, one turn of 5 ms, and one such request, as long as the
// fastest of five takes alone.
//
// The attacker waits for each response before it sends again. It is a separate process that runs
// only on idle cores: its own work, which would be on another machine, takes nothing from the
// gateway and the victim.
import { spawn, spawnSync } from "node:child_process";
import { on, once } from "node:events";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { keys, startGateway } from "../tests/support/js/gateway.mjs";
import { HttpClient } from "../tests/support/js/http.mjs";
import { NoticeSocket } from "../tests/support/js/notices.mjs";
import { runProgram } from "../tests/support/js/program.mjs";
import { RunsSocket } from "../tests/support/js/runs.mjs";
import { Worker } from "../tests/support/js/worker_calls.mjs";

const [build = "build", ...wanted] = process.argv.slice(2);
const seconds = Number(process.env.SECONDS ?? 1), rounds = Number(process.env.ROUNDS ?? 9), senders = Number(process.env.SENDERS ?? 2);
const most = 2, turnUs = 5000;
const isLarge = (name) => name.startsWith("with a large commit");
process.env.GATEWAY_BIN = process.env.GATEWAY_RELEASE_BIN = path.resolve(build, "runcast");

let gateway, attacker, worker; // what the attacker's process knows about the gateway: url, port, data
const post = (target, body, more) => attacker.request("POST", target, { body, ...more });
const list = (count, fn) => Array.from({ length: count }, (_, i) => fn(i));
const json = JSON.stringify;
const plain = { "content-type": "text/plain;charset=UTF-8" };
const hour = { delay: "1h" };
const trigger = async (options = hour, payload = {}) => (await post("/api/v1/tasks/hello/trigger", json({ payload, options }))).json.id;

/** Opens 64 sockets with 16 different live lists each; returns a sender of 16 runs at a time. */
async function watchAndTrigger(filterOf) {
  const sockets = await Promise.all(list(64, () => RunsSocket.open({ port: gateway.port, token: keys.dev, hello: {} })));
  for (const [i, socket] of sockets.entries()) {
    for (let id = 1; id <= 16; id++) socket.send({ op: "watch", id, filter: filterOf(16 * i + id), limit: 200, counts: true });
  }
  return async () => {
    for (const socket of sockets) socket.messages.splice(0);
    return Promise.all(list(16, () => post("/api/v1/tasks/hello/trigger", json({ payload: {}, options: hour }))));
  };
}

/** Each function prepares once and returns what one sender does repeatedly. */
const kinds = {
  "nothing costly: runs that nobody has": async () => () => attacker.request("GET", "/api/v3/runs/run_nobody"),
  "nothing costly: 1 MB that nobody reads": async () => {
    const body = Buffer.alloc(1_000_000, "x");
    return () => post("/otel/v1/metrics", body, { key: null });
  },
  "metadata: remove from 700 objects": async () => {
    const id = await trigger({ ...hour, metadata: { a: list(700, () => ({})) } });
    const value = Object.fromEntries(list(1900, (i) => [`m${i}`, 0]));
    const body = json({ operations: [{ type: "remove", key: "a", value }] });
    return () => attacker.request("PUT", `/api/v1/runs/${id}/metadata`, { body });
  },
  "metadata: remove of deep objects": async () => {
    const deep = (left) => (left ? { b: 1, a: deep(left - 1), c: 2 } : 0);
    const id = await trigger({ ...hour, metadata: { a: list(200, () => deep(50)) } });
    const body = json({ operations: [{ type: "remove", key: "a", value: { ...deep(50), c: 3 } }] });
    return () => attacker.request("PUT", `/api/v1/runs/${id}/metadata`, { body });
  },
  "OTLP: 13,000 attributes, 20,000 records": async () => {
    const attempt = await worker.take(await worker.trigger("hello"));
    const { pathname } = new URL(attempt.started.envVars.TRIGGER_OTEL_EXPORTER_OTLP_ENDPOINT);
    const attributes = list(13_000, () => ({ key: "" }));
    const body = json({ resourceLogs: [{ resource: { attributes }, scopeLogs: [{ logRecords: list(20_000, () => ({})) }] }] });
    return () => post(`${pathname}/v1/logs`, body, { key: null, timeoutMs: 1000 });
  },
  "registration: 1,000 tasks with schemas, 8 MB": async () => {
    const payloadSchema = { enum: list(2700, () => []) };
    const tasks = list(1000, (i) => ({ id: `t${i}`, filePath: "t.ts", payloadSchema }));
    const metadata = { packageVersion: "4.8.3", contentHash: "h", queues: [], tasks };
    const body = json({ localOnly: true, engine: "V2", metadata });
    return () => post(`/api/v1/projects/${keys.ref}/background-workers`, body, { headers: plain });
  },
  "completion: 700,000 members, of no run": async () => {
    const body = `{"completion":{"id":"run_x","ok":true,${list(700_000, (i) => `"${i}":0`).join(",")}}}`;
    return () => post("/engine/v1/dev/runs/run_x/snapshots/snapshot_x/attempts/complete", body, { headers: plain });
  },
  "with a large commit: waitpoint of 100,000 members": async () => {
    const body = `{"data":{${list(100_000, (i) => `"${i}":0`).join(",")}}}`;
    return async () => {
      const { json: { id } } = await post("/api/v1/waitpoints/tokens", "{}");
      await post(`/api/v1/waitpoints/tokens/${id}/complete`, body);
    };
  },
  "notice socket: 10,000 ids a message": async () => {
    const token = (await runProgram(["worker-token", "create", "--data", gateway.data])).stdout.trim();
    for (let i = 0; i < 150; i++)
      await post(`/api/v1/projects/${keys.ref}/branches`, json({ env: "preview", branch: `b${i}` }), { key: keys.pat });
    const socket = await NoticeSocket.connect(gateway, { key: token, space: "/worker" });
    const ids = list(10_000, (i) => i.toString(36));
    return async () => { socket.emit("run:subscribe", { version: "1", runFriendlyIds: ids }); await sleep(20); };
  },
  "worker token: a run that nobody has": async () => {
    const token = (await runProgram(["worker-token", "create", "--data", gateway.data])).stdout.trim();
    return () => Promise.all(list(64, () => attacker.request("GET", "/engine/v1/worker-actions/runs/run_nobody/snapshots/since/x", { key: token })));
  },
  "token: forged, 9 KB": async () => {
    const part = (value) => Buffer.from(json(value)).toString("base64url");
    const key = `${part({ alg: "HS256", typ: "JWT" })}.${part({ sub: "env_x", pub: true, x: list(3300, () => 1) })}.${"A".repeat(43)}`;
    return () => Promise.all(list(16, () => attacker.request("GET", "/api/v3/runs/run_x", { key })));
  },
  "with a large commit: 3 MiB escaped, subscribed": async () => {
    const socket = await RunsSocket.open({ port: gateway.port, token: keys.dev, hello: {} });
    socket.send({ op: "sub", id: 1, tags: ["escaped"] });
    const body = json({ payload: "\"".repeat(1_570_000), options: { ...hour, tags: ["escaped"] } });
    return async () => { await post("/api/v1/tasks/hello/trigger", body); socket.messages?.splice(0); };
  },
  "with a large commit: batch of 500 items": async () => {
    const items = list(500, (index) => json({ index, task: "hello", payload: {}, options: hour })).join("\n");
    return async () => {
      const { json: { id } } = await post("/api/v3/batches", json({ runCount: 500 }));
      await post(`/api/v3/batches/${id}/items`, items, { headers: { "content-type": "application/x-ndjson" } });
    };
  },
  "live lists: 64 x 16 of every run": async () => watchAndTrigger((i) => ({ from: i })),
  "live lists: 64 x 16 of 2,000 versions": async () => {
    const version = list(2000, (i) => `v${i}`);
    return watchAndTrigger((i) => ({ from: i, version }));
  },
  "pages of 100 schedules": async () => {
    for (let i = 0; i < 100; i++)
      await post("/api/v1/schedules", json({ task: "hello", cron: "0 0 29 2 *", timezone: "Europe/Paris", deduplicationKey: `s${i}`, externalId: `s${i}` }));
    return () => attacker.request("GET", "/api/v1/schedules?perPage=100");
  },
};

/* ---- the attacker's process ---- */

async function prepare(name, where) {
  gateway ??= { ...where, post: (target, body, more) => post(target, body, more) };
  attacker ??= new HttpClient(gateway.url, keys.dev);
  worker ??= await Worker.register(gateway, { tasks: ["hello"] });
  return kinds[name]();
}

/** Carries out orders and answers each: prepare (returns the time of one request), begin, end. */
async function attack() {
  let send, over, sending, answers;
  const orders = {
    prepare: async ({ name, where }) => {
      send = await prepare(name, where);
      const times = [];
      for (let i = 0; i < 5 && isLarge(name); i++) {
        const start = performance.now();
        await send();
        times.push(1000 * (performance.now() - start));
      }
      return Math.min(...times);
    },
    begin: async () => {
      over = false, answers = {};
      sending = list(senders, async () => {
        while (!over) {
          const reply = await send().catch((error) => ({ status: error.code ?? "none" }));
          for (const one of [reply].flat()) answers[one?.status ?? "said"] = (answers[one?.status ?? "said"] ?? 0) + 1;
        }
      });
    },
    end: async () => { over = true; await Promise.all(sending); return answers; },
  };
  for await (const [order] of on(process, "message"))
    process.send(await orders[order.do](order).then((result) => ({ result }), (error) => ({ error: error.stack })));
}

/** Starts the attacker; returns a function that sends it orders. Without chrt it is only nice. */
function startAttacker() {
  const self = [fileURLToPath(import.meta.url), build], stdio = ["ignore", "inherit", "inherit", "ipc"];
  const idle = spawnSync("chrt", ["-i", "0", "true"]).status === 0;
  const child = idle ? spawn("chrt", ["-i", "0", process.execPath, ...self], { stdio }) : spawn(process.execPath, self, { stdio });
  if (!idle) os.setPriority(child.pid, 19);
  process.on("exit", () => child.kill("SIGKILL"));
  return async (order) => {
    child.send(order);
    const [{ result, error }] = await once(child, "message");
    if (error) throw new Error(error);
    return result;
  };
}

/* ---- the victim, and the comparison ---- */

/** The p99 of the victim's triggers, in us; if none was answered, the whole duration. */
function victim() {
  const { RUNCAST_METRICS_TOKEN: _ofAnotherGateway, ...others } = process.env, env = { ...others, TRIGGER_SECRET_KEY: keys.prod };
  const args = ["trigger", "--url", gateway.url, "--concurrency", "2", "--payload", "256", "--seconds", String(seconds), "--delay", "1h", "--json"];
  return new Promise((resolve, reject) => {
    const child = spawn(path.resolve(build, "runcast-bench"), args, { env, stdio: ["ignore", "pipe", "inherit"] });
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (more) => { text += more; });
    child.on("error", reject).on("close", () => {
      const p99 = /"latency_p99_us":([\d.]+)/.exec(text);
      p99 ? resolve(Number(p99[1]) || seconds * 1e6) : reject(new Error(`runcast-bench said: ${text}`));
    });
  });
}

const median = (values) => values.slice().sort((a, b) => a - b)[Math.floor(values.length / 2)];

/** The cumulative number of the gateway's turns by bound in seconds, shortest first. */
async function turns() {
  const found = [...await gateway.metrics()].map(([key, count]) => [/^runcast_loop_turn_cpu_seconds_bucket\{le="([^"]+)"\}$/.exec(key)?.[1], count]);
  return found.filter(([bound]) => bound).map(([bound, count]) => [bound === "+Inf" ? Infinity : Number(bound), count]).sort(([a], [b]) => a - b);
}

/** The bound in ms of the longest turn between two results of turns(). */
function longestTurn(before, after) {
  const added = after.map(([bound, count], i) => [bound, count - before[i][1]]);
  return 1000 * added.find(([, count]) => count === added.at(-1)[1])[0];
}

async function measure(name, tell) {
  const alone = [], near = [], answers = {};
  let turnMs = 0;
  const { url, port, data } = gateway;
  const onceUs = await tell({ do: "prepare", name, where: { url, port, data } });
  for (let i = 0; i < rounds; i++) {
    alone.push(await victim());
    await tell({ do: "begin" });
    await sleep(200);
    const before = await turns();
    near.push(await victim());
    turnMs = Math.max(turnMs, longestTurn(before, await turns()));
    for (const [status, count] of Object.entries(await tell({ do: "end" }))) answers[status] = (answers[status] ?? 0) + count;
  }
  return { alone: median(alone), near: median(near), onceUs, turnMs, answers };
}

async function judge() {
  let missed = 0;
  gateway = await startGateway({ release: true });
  const tell = startAttacker();
  console.log(`${"victim's trigger p99, beside".padEnd(50)} ${"alone us".padStart(9)} ${"beside us".padStart(9)} ${"ratio".padStart(6)} ${"turn ms".padStart(8)}  answers`);
  for (const name of Object.keys(kinds)) {
    if (wanted.length && !wanted.some((word) => name.includes(word))) continue;
    const { alone, near, onceUs, turnMs, answers } = await measure(name, tell);
    const ratio = near / alone, allowed = isLarge(name) ? Math.max(most * alone, alone + turnUs + onceUs) : most * alone;
    if (near > allowed) missed++;
    const verdict = near > allowed ? `  MISSED: the victim waits ${ratio.toFixed(1)} times as long, ${Math.round(allowed)} us are allowed`
      : near > most * alone ? `  above ${most}; ${Math.round(allowed)} us are allowed` : "";
    const said = Object.entries(answers).map(([status, count]) => `${count} x ${status}`).join(", ");
    console.log(`${name.padEnd(50)} ${String(Math.round(alone)).padStart(9)} ${String(Math.round(near)).padStart(9)} ${ratio.toFixed(2).padStart(6)} ${turnMs.toFixed(1).padStart(8)}  ${said}${verdict}`);
  }
  await gateway.kill();
  console.log(missed ? `\n${missed} targets missed` : "\nall targets met");
  process.exit(missed ? 1 : 0);
}

process.on("disconnect", () => process.exit());
await (process.send ? attack() : judge());
