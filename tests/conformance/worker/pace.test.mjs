// The official CLI with more parents than may execute at once: waiting parents free their slots, so that their children can
// execute. Its project is the folder pace. And CLIs whose tasks share a limit, while a supervise role executes a deployed version.
import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";

import { copyOf, project, startCli, workerFolder } from "../../support/js/cli.mjs";
import { deploy, startExecutingGateway } from "../../support/js/dashboard_world.mjs";
import { keys, startGateway, until } from "../../support/js/gateway.mjs";

const parents = process.env.TESTS_IN_FULL ? 20 : 8; // more than may execute at once

async function trigger(gateway, task, payload, key = keys.dev) {
  const reply = await gateway.post(`/api/v1/tasks/${task}/trigger`, { payload }, { key });
  assert.equal(reply.status, 200, reply.text);
  return reply.json.id;
}

/** Triggers four runs of these tasks in turn, and checks that no two of them work at once. */
async function workInTurn(gateway, tasks, key = keys.dev) {
  const ids = await Promise.all(Array.from({ length: 4 }, (_, i) => trigger(gateway, tasks[i % tasks.length], { ms: 400 }, key)));
  const runs = await ended(gateway, ids, 120_000, key);
  assert.deepEqual(runs.map(({ status, output }) => [status, output?.length]), ids.map(() => ["COMPLETED", 2]));
  const works = runs.flatMap(({ output }) => output).sort(([a], [b]) => a - b);
  for (let i = 1; i < works.length; i++) assert.ok(works[i][0] >= works[i - 1][1], `two runs work at once: ${JSON.stringify(works)}`);
}

async function ended(gateway, ids, timeoutMs, key = keys.dev) {
  let runs;
  try {
    return await until(async () => {
      runs = await Promise.all(ids.map(async (id) => (await gateway.get(`/api/v3/runs/${id}`, { key })).json));
      return runs.every(({ isCompleted }) => isCompleted) && runs;
    }, { timeoutMs, everyMs: 200 });
  } catch {
    const samples = [...await gateway.metrics()].filter(([name]) => name.startsWith("runcast_active_runs"));
    throw new Error(`not all have ended: ${runs.map(({ status }) => status)} ${samples.join(" ")}`);
  }
}

test("more parents than may execute at once, each waiting for a child that does the same", async (t) => {
  const gateway = await startGateway({ t, options: ["--dev-concurrency", "4"] });
  const cli = await startCli({ t, gateway, folder: copyOf("pace") });

  await t.test(`${parents} of them, in queues without a limit`, async () => {
    const ids = await Promise.all(Array.from({ length: parents }, () => trigger(gateway, "parent", { depth: 2 })));
    const began = Date.now();
    const runs = await ended(gateway, ids, 300_000);
    t.diagnostic(`${Date.now() - began} ms`);
    assert.deepEqual(runs.map(({ status, output }) => [status, output]), ids.map(() => ["COMPLETED", 2]));
  });
  for (const [what, task] of [["in a queue that executes one run at a time", "nested"], ["of a task whose concurrency limit is one", "limited"]]) {
    await t.test(what, async () => {
      const ids = await Promise.all([1, 2].map(() => trigger(gateway, task, { depth: 3 })));
      const runs = await ended(gateway, ids, 60_000);
      assert.deepEqual(runs.map(({ status, output }) => [status, output]), ids.map(() => ["COMPLETED", 3]));
    });
  }
  await t.test("in a queue that executes one run at a time: two parents whose waits have ended do not execute at once", () => workInTurn(gateway, ["solo"]));
  await t.test("of two tasks that share a limit of one: no two of them execute at once", () => workInTurn(gateway, ["left", "right"]));
  await t.test("a task that overrides the limit that it holds", async () => {
    const [{ status, output }] = await ended(gateway, [await trigger(gateway, "lifter", {})], 60_000);
    assert.deepEqual([status, output], ["COMPLETED", [2, 1]]);
  });
  await t.test("that push a delayed run wait for it, and so do both items of a batch that push one", async () => {
    const debounce = { key: "pushed", delay: "1h" };
    const pushed = (await gateway.post("/api/v1/tasks/said/trigger", { payload: "outside", options: { debounce } })).json.id;
    const waits = (id) => until(async () => (await gateway.get(`/api/v3/runs/${id}`)).json.status === "FROZEN", { timeoutMs: 60_000, what: "the parent waits" });
    const parents = await Promise.all([1, 2].map(() => trigger(gateway, "pusher", { key: "pushed" })));
    for (const id of parents) await waits(id);
    assert.equal((await gateway.post(`/api/v1/runs/${pushed}/reschedule`, { delay: "1s" })).status, 200);
    const runs = await ended(gateway, parents, 60_000);
    assert.deepEqual(runs.map(({ status, output }) => [status, output?.[0]]), parents.map(() => ["COMPLETED", [pushed, "alone"]]));
    for (const { output: [, first, last] } of runs) assert.deepEqual([first[1], last], ["last", first], "two items that pushed one run");
  });
  await cli.stop();
  await gateway.stop();
});

/** A task with a queue of its own and a limit of one that it shares with others of this name. */
const sharing = (id) => `import { concurrencyLimit, task } from "@trigger.dev/sdk";
import { setTimeout as sleep } from "node:timers/promises";
const shared = concurrencyLimit({ name: "shared", total: 1 });
export const child = task({ id: "child-of-${id}", run: async () => {} });
const work = async (ms: number) => { const from = Date.now(); await sleep(ms); return [from, Date.now()]; };
export const one = task({ id: "${id}", concurrency: shared, run: async ({ ms }: { ms: number }) => {
  const first = await work(ms);
  await child.triggerAndWait({}).unwrap();
  return [first, await work(ms)];
} });\n`;

if (Number(process.versions.node.split(".")[0]) >= 20) { // deployed versions need Node 20
  test("tasks of several CLIs share a limit of one, and those of a supervise role that of their environment", async (t) => {
    const gateway = await startExecutingGateway({ t }), tasks = ["first", "second", ...process.env.TESTS_IN_FULL ? ["third"] : []];
    const { code, out } = await deploy(gateway, path.join(workerFolder, "pace"));
    assert.equal(code, 0, out);
    const clis = [];
    for (const id of tasks) clis.push(await startCli({ t, gateway, folder: project(sharing(id)).folder }));
    await Promise.all([workInTurn(gateway, tasks), workInTurn(gateway, ["left", "right"], keys.prod)]);
    await Promise.all(clis.map((cli) => cli.stop()));
    await gateway.stop();
  });
}
