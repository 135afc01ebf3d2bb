// Gateway, supervise role and controllers are killed at random moments while runs of two versions execute. Each
// process logs to its own file, and the files are judged at the end: no acknowledged run is lost, no attempt is in
// two processes, no finished run starts again, and each attempt that was killed is followed by the next.
//
//   SEED=1 RUNS=1000 KILLS=20 node kills.test.mjs
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { makeFakeBundle } from "../support/js/bundles.mjs";
import { Deployer } from "../support/js/deployments.mjs";
import { keys, sleep, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";
import { chooseSeed, Random } from "../support/js/random.mjs";
import { processesOf, Supervisor } from "../support/js/supervisor.mjs";

const runs = Number(process.env.RUNS ?? 80), kills = Number(process.env.KILLS ?? 10);
const pauseMs = Math.max(1200, (runs / kills) * 120); // spreads the kills over the time that the runs take
const tasks = [{ id: "task", retry: { maxAttempts: 50, minTimeoutInMs: 50, maxTimeoutInMs: 100, factor: 1, randomize: false } }];

/** Repeats a request under one request key until it is answered. */
async function ask(gateway, method, target, body, id = randomUUID()) {
  for (;; await sleep(50)) {
    const reply = await gateway.http.request(method, target, { body, key: keys.prod, headers: { "x-trigger-request-idempotency-key": id } }).catch(() => ({ status: 0 }));
    if (reply.status && reply.status < 500) return reply;
  }
}

const payloads = {
  finish: () => ({ do: "finish" }),
  sleep: (random) => ({ do: "sleep", ms: random.below(1500) }),
  retry: (random) => ({ do: "retry", delay: random.below(200) }),
  wait: (random) => ({ do: "wait", ms: random.below(2000) }),
  parent: (random) => ({ do: "parent", depth: 1 + random.below(2) }),
};
const weights = { finish: 2, sleep: 4, retry: 2, wait: 2, parent: 2 };

/** The events of the controllers, one list for each run, in chronological order. */
function readEvents(folder) {
  const byRun = new Map();
  for (const name of fs.readdirSync(folder)) {
    let run;
    for (const line of fs.readFileSync(path.join(folder, name), "utf8").split("\n").filter(Boolean)) {
      const event = JSON.parse(line);
      run = event.run ?? run;
      if (!byRun.has(run)) byRun.set(run, []);
      byRun.get(run).push(event);
    }
  }
  for (const events of byRun.values()) events.sort((a, b) => a.at - b.at);
  return byRun;
}

function judge(id, run, events = []) {
  const starts = events.filter(({ event }) => event === "started"), said = JSON.stringify(events);
  assert.equal(run.status, "COMPLETED", `${id} ${said}`);
  assert.deepEqual(starts.map(({ attempt }) => attempt), [...new Set(starts.map(({ attempt }) => attempt))].sort((a, b) => a - b), `attempts of ${id} rise: ${said}`);
  const finished = events.findIndex(({ event, result }) => event === "completed" && result === "RUN_FINISHED");
  assert.ok(finished < 0 || !events.slice(finished).some(({ event }) => event === "started"), `${id} does not start again: ${said}`);
  assert.equal(starts.at(-1)?.attempt, run.attemptCount, `the last attempt of ${id} has ended it: ${said}`);
}

test("no kill loses a run, or makes an attempt execute twice", { timeout: 180_000 + runs * 5000 }, async (t) => {
  const random = new Random(chooseSeed(t));
  const top = temporaryFolder(), events = path.join(top, "events/"), folder = path.join(top, "versions");
  fs.chmodSync(top, 0o711);
  fs.mkdirSync(events);
  fs.chmodSync(events, 0o777);
  const gateway = await startGateway({ t, options: ["--heartbeat-timeout", "6s", "--lease", "8s", "--dequeue-wait", "2s"] });
  const token = (await runProgram(["worker-token", "create", "--data", gateway.data])).stdout.trim();
  const supervisor = await Supervisor.start(gateway, { t, token, folder, options: ["--supervise-runs", "6", "--supervise-waiting", "60"] });
  const versions = [];
  const deploy = async () => {
    const { status, json, text } = await new Deployer(gateway).deploy({}, makeFakeBundle(tasks, { events }));
    assert.equal(status, 200, text);
    versions.push(json.version);
  };
  await deploy();

  const ids = [], killed = { gateway: 0, role: 0, controller: 0 };
  let over = false;
  const triggering = (async () => {
    for (let i = 0; i < runs; i++) {
      const payload = payloads[random.weighted(weights)](random);
      const reply = await ask(gateway, "POST", "/api/v1/tasks/task/trigger", { payload });
      assert.equal(reply.status, 200, reply.text);
      ids.push(reply.json.id);
      if (i === runs >> 1) await deploy();
    }
    over = true;
  })();
  const kill = {
    gateway: async () => { await gateway.kill(); await gateway.restart(); },
    role: async () => { await supervisor.kill(); await supervisor.begin(); },
    controller: async () => {
      const pids = processesOf(path.join(folder, "versions"));
      if (!pids.length) return false;
      try { process.kill(random.pick(pids), "SIGKILL"); } catch { return false; } // it has exited by itself
    },
  };
  const remaining = async () => {
    const { json } = await ask(gateway, "GET", "/api/v1/runs?filter%5Bstatus%5D=QUEUED,EXECUTING,REATTEMPTING,FROZEN,DELAYED&page%5Bsize%5D=10");
    return !over || json.data.length > 0;
  };
  for (let i = 0; i < kills && await remaining();) {
    await sleep(random.below(pauseMs)); // any moment
    if (versions.length < 2 && ids.length > runs >> 1) { await sleep(50); continue; } // a build that is killed twice has failed
    const what = random.weighted({ gateway: 2, role: 2, controller: 5 });
    if (await kill[what]() === false) continue;
    killed[what]++;
    i++;
  }
  await triggering;
  await until(async () => !await remaining(), { what: "the end of all runs", timeoutMs: 60_000 + runs * 4000 })
    .catch((error) => assert.fail(`${error.message}\n${supervisor.log.slice(-3000)}`));
  assert.ok(Object.values(killed).reduce((a, b) => a + b) >= Math.min(kills, 3), "there was something to kill");

  assert.deepEqual(await supervisor.stop(), { code: 0, signal: null }, supervisor.log.slice(-3000));
  await until(() => processesOf(folder).length === 0, { what: "the end of all processes" });
  const told = readEvents(events);
  let attempts = 0, children = 0;
  for (const id of new Set([...ids, ...told.keys()])) {
    const { status, json } = await gateway.get(`/api/v3/runs/${id}`, { key: keys.prod });
    assert.equal(status, 200, id);
    judge(id, json, told.get(id));
    assert.ok(versions.includes(json.version), `${id} ${json.version}`);
    attempts += json.attemptCount;
    children += !ids.includes(id);
  }
  t.diagnostic(`${ids.length} runs and ${children} children, ${attempts} attempts, killed: ${JSON.stringify(killed)}`);
  assert.equal(ids.length, runs);
  await gateway.stop();
});
