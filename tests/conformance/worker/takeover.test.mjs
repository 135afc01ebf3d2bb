// The official clients on three gateways that follow each other, behind HAProxy in round robin, when the leader is killed,
// suspended, cut off from the database, or stopped:
//
//   SDK 4.8.3   ──┐                    ┌── a ── relay ──┐
//   SDK 3.3.17  ──┼──── HAProxy ───────┼── b ── relay ──┼── PostgreSQL
//   CLI 4.8.3   ──┤                    └── c ── relay ──┘
//   supervise   ──┘
//
// One world has all four faults, so that each client survives four takeovers without a restart (takeover/clients.mjs). In
// each round every client starts work, the leader fails, and the work must end well. With --all, there are a second CLI, of another
// project, and a second supervise role, and this is repeated on two gateways, of which one stands by.
// ../browser/takeover.test.mjs has the hooks.
import assert from "node:assert/strict";
import { test } from "node:test";

import { makeFakeBundle } from "../../support/js/bundles.mjs";
import { copyOf, startCli } from "../../support/js/cli.mjs";
import { startCluster } from "../../support/js/cluster.mjs";
import { Deployer } from "../../support/js/deployments.mjs";
import { keys } from "../../support/js/gateway.mjs";
import { runProgram } from "../../support/js/program.mjs";
import { Supervisor } from "../../support/js/supervisor.mjs";
import { startTwoGateways } from "../../support/js/two_gateways.mjs";
import { Executor, Front, surviveTakeovers, openFolder, SdkClient } from "./takeover/clients.mjs";

async function startSupervise(t, front, leader) {
  const notes = openFolder(), token = (await runProgram(["worker-token", "create", "--data", leader.data])).stdout.trim();
  const supervisors = [];
  for (let n = 0; n < (process.env.TESTS_IN_FULL ? 2 : 1); n++) supervisors.push(await Supervisor.start(front, { t, token }));
  const deployed = await new Deployer(leader).deploy({}, makeFakeBundle([{ id: "task", retry: { maxAttempts: 2 } }], { events: notes }));
  assert.equal(deployed.status, 200, deployed.text);
  const tasks = { computes: ["task", { do: "until" }], waits: ["task", { do: "wait", ms: 8000 }], retries: ["task", { do: "retry", delay: 8000 }] };
  return new Executor(front, { name: "supervise role", key: keys.prod, notes, tasks, alive: () => supervisors.every(({ end }) => !end), lastOutput: () => supervisors.map(({ log }) => log.slice(-3000)).join("\n\n") });
}

async function startDevelopment(t, front, { name = "CLI", ref = keys.ref, key = keys.dev } = {}) {
  const cli = await startCli({ t, url: front.url, folder: copyOf("takeover"), env: { TRIGGER_PROJECT_REF: ref } });
  const tasks = Object.fromEntries(["computes", "waits", "retries"].map((task) => [task, [task, {}]]));
  return new Executor(front, { name, key, notes: openFolder(), tasks, alive: () => !cli.end, lastOutput: () => cli.output.slice(-12_000) });
}

async function startSecondDevelopment(t, front, leader) {
  const { code, stdout, all } = await runProgram(["project", "create", "Second", "--data", leader.data]);
  assert.equal(code, 0, all);
  const [[ref], [key]] = [/proj_\w+/, /tr_dev_\w+/].map((one) => one.exec(stdout));
  return startDevelopment(t, front, { name: "second CLI", ref, key });
}

async function startClients(t, { url, leader }) {
  const front = new Front({ url });
  return [
    new SdkClient(t, { name: "SDK 4.8.3", folder: "sdk-v4", module: "@trigger.dev/sdk", url, key: keys.staging, mustNotThrow: true }),
    new SdkClient(t, { name: "SDK 3.3.17", folder: "sdk-v3", module: "@trigger.dev/sdk/v3", url, key: keys.staging }),
    await startSupervise(t, front, leader),
    await startDevelopment(t, front),
    ...process.env.TESTS_IN_FULL ? [await startSecondDevelopment(t, front, leader)] : [],
  ];
}

const worlds = [["of gateways that follow", (t, more) => startCluster(t, { isRelayed: true, ...more })],
  ...process.env.TESTS_IN_FULL ? [["with a standby", startTwoGateways]] : []];

for (const [what, start] of worlds) test(`official clients survive takeovers ${what}`, { timeout: 500_000 }, async (t) => {
  const world = await start(t);
  await surviveTakeovers(t, world, await startClients(t, world));
});
