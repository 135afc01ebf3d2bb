// Which version is current in an environment: one pointer on disk, and what follows from it (declared schedules, limits
// of queues, which runs wait), also when the gateway is killed in between.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

const key = keys.prod;
/** Version n has tasks, a schedule and a limit that no other version has. */
const body = (n) => ({
  key, hash: `build-${n}`, queues: [{ name: "common", concurrencyLimit: n }],
  tasks: ["both", `only-${n}`, { id: `ticks-${n}`, triggerSource: "schedule", schedule: { cron: `${n} 3 * * *` } }],
});

/** Asserts that only this version's runs are queued, that its limit is effective, and that its schedules exist: after a
 *  start schedules are updated while calls are answered already. */
async function current(gateway, known) {
  const worker = new Worker(gateway, key), queued = [];
  for (const n of known) if (await worker.status(await worker.trigger(`only-${n}`, { ttl: "1h" })) === "QUEUED") queued.push(n);
  assert.equal(queued.length, 1, `queued are runs of ${queued}`);
  const [n] = queued;
  assert.equal((await gateway.get("/api/v1/queues/common?type=custom", { key })).json.concurrencyLimit, n);
  const schedules = async () => (await gateway.get("/api/v1/schedules", { key })).json.data.map(({ task }) => task).join();
  await until(async () => await schedules() === `ticks-${n}`, { what: `the schedules of ${n}` });
  return n;
}

test("a gateway killed during a promotion has either the old version or the new one after it, completely", async (t) => {
  const control = path.join(temporaryFolder(), "control"), trace = path.join(temporaryFolder(), "trace");
  const gateway = await startGateway({ t, preload: "shim_sync", env: { SHIM_TRACE: trace, SHIM_CONTROL: control } });
  const commits = () => fs.readFileSync(trace, "latin1").split("\n").filter((line) => /^sync \d+ \S+-wal$/.test(line)).length;
  await Worker.register(gateway, body(1));
  assert.equal(await current(gateway, [1]), 1);
  const seen = new Set();
  let last = 1;
  for (let killedAfter = 0; killedAfter < 5; killedAfter++) {
    const n = killedAfter + 2;
    fs.writeFileSync(control, "delay 30");
    const begun = commits();
    const made = new Worker(gateway, key).registration(body(n)).then(({ status }) => status, () => 0);
    await Promise.race([made, until(() => commits() - begun >= killedAfter, { everyMs: 1 })]);
    await gateway.kill();
    const status = await made;
    fs.rmSync(control);
    await gateway.restart();
    const now = await current(gateway, Array.from({ length: n }, (_, i) => i + 1));
    assert.ok(now === n || now === last && status !== 200, `${now} of ${n} after ${killedAfter} commits, ${status}`);
    seen.add(now === n);
    last = now;
    // The client retries; it gets the same version if that was written before.
    await Worker.register(gateway, body(n));
    assert.equal(last = await current(gateway, [last, n].filter((one, i, all) => all.indexOf(one) === i)), n);
  }
  assert.deepEqual([...seen].sort(), [false, true]);
  await gateway.stop();
});

test("one build that several clients register at once is one version, which is current", async (t) => {
  const gateway = await startGateway({ t });
  for (const n of [1, 2]) {
    const made = await Promise.all(Array.from({ length: 6 }, () => Worker.register(gateway, body(n))));
    assert.deepEqual(made.map(({ version }) => version), made.map(() => made[0].version));
    assert.equal(await current(gateway, [1, n].filter((one, i, all) => all.indexOf(one) === i)), n);
  }
  await gateway.stop();
});

test("the highest version of several simultaneous builds is current, before and after a kill", async (t) => {
  const gateway = await startGateway({ t });
  const all = [1, 2, 3, 4, 5, 6];
  const made = await Promise.all(all.map(async (n) => ({ n, ...await Worker.register(gateway, body(n)) })));
  const number = ({ version }) => Number(version.split(".")[1]);
  const { n } = made.sort((a, b) => number(b) - number(a))[0];
  assert.equal(await current(gateway, all), n);
  await gateway.kill();
  await gateway.restart();
  assert.equal(await current(gateway, all), n);
  await gateway.stop();
});

test("a run that names a missing deployment waits for it, not for the current version", async (t) => {
  const gateway = await startGateway({ t });
  const worker = await Worker.register(gateway, body(1));
  const id = await worker.trigger("both", { externalDeploymentId: "ci-7" });
  await gateway.post("/api/v1/tasks/batch", { items: [{ task: "both", payload: "1", options: { externalDeploymentId: "ci-8", tags: "item" } }] }, { key });
  const item = (await gateway.get("/api/v1/runs?filter[tag]=item", { key })).json.data[0].id;
  const locked = await worker.trigger("both", { externalDeploymentId: "ci-7", lockToVersion: worker.version });
  assert.equal(await worker.status(locked), "QUEUED");
  const look = async () => {
    for (const [run, external] of [[id, "ci-7"], [item, "ci-8"]]) {
      const { run: { status, waitingFor } } = await worker.show(run);
      assert.deepEqual([status, waitingFor.reason], ["WAITING_FOR_DEPLOY", "version"]);
      assert.match(waitingFor.message, new RegExp(`No version is deployed with the external id ${external}, `));
    }
  };
  await look();
  await gateway.kill();
  await gateway.restart();
  await Worker.register(gateway, body(2));
  await look();
  const expired = await worker.trigger("both", { externalDeploymentId: "ci-7", ttl: "1s" });
  await until(async () => await worker.status(expired) === "EXPIRED");
  const dev = await Worker.register(gateway, { ...body(1), key: keys.dev });
  assert.equal(await dev.status(await dev.trigger("both", { externalDeploymentId: "ci-7" })), "QUEUED");
  await gateway.stop();
});
