// Worker versions pile up: a developer makes one with every file that is saved, an attacker as fast
// as he can. The oldest go, with their queues, for good; the others stay as they are.
import assert from "node:assert/strict";
import { test } from "node:test";

import { keys, startGateway } from "../support/gateway.mjs";

test("of versions whose tasks are too many the oldest go, with their queues, also across a restart", async (t) => {
  const gateway = await startGateway({ t });
  const register = async (n, count) => {
    const tasks = Array.from({ length: count }, (_, i) => ({ id: `t${i}`, filePath: "f", exportName: "e", queue: { name: "common" } }));
    const metadata = { packageVersion: "4.8.3", cliPackageVersion: "4.8.3", contentHash: `hash-${n}`, tasks, queues: [{ name: `queue-${n}` }] };
    const made = await gateway.post(`/api/v1/projects/${keys.ref}/background-workers`, { localOnly: true, metadata });
    assert.equal(made.status, 200, made.text);
    return made.json.version;
  };
  const knows = async (version) => {
    const made = await gateway.post("/api/v1/tasks/t1/trigger", { payload: 1, options: { lockToVersion: version } });
    assert.ok([200, 400, 404, 422].includes(made.status), made.text);
    return made.status === 200;
  };
  const versions = [await register(0, 2), await register(1, 2)];
  assert.deepEqual(await Promise.all(versions.map(knows)), [true, true]);
  for (let n = 2; n < 53; n++) versions.push(await register(n, 1000));
  const first = versions.length - 50;

  const look = async () => {
    assert.deepEqual(await Promise.all(versions.map(knows)), versions.map((_, n) => n >= first));
    const queues = (await gateway.get("/api/v1/queues?perPage=100")).json.data.map((queue) => queue.name);
    for (const n of versions.keys()) assert.equal(queues.includes(`queue-${n}`), n >= first, `queue-${n}`);
  };
  await look();
  await gateway.kill();
  await gateway.restart();
  await look();
  await gateway.stop();
});

test("of very many registrations at once each is taken, or told to come again", async (t) => {
  const gateway = await startGateway({ t });
  const made = await Promise.all(Array.from({ length: 60 }, (_, n) => gateway.post(`/api/v1/projects/${keys.ref}/background-workers`,
    { localOnly: true, metadata: { packageVersion: "4.8.3", cliPackageVersion: "4.8.3", contentHash: `hash-${n}`, tasks: [] } })));
  const versions = made.filter(({ status }) => status === 200).map(({ json }) => json.version);
  assert.ok(versions.length > 0);
  assert.equal(new Set(versions).size, versions.length);
  for (const { status, json } of made)
    if (status !== 200) assert.deepEqual([status, json.error], [409, "Too many versions are being registered at once: try again"]);
  await gateway.stop();
});
