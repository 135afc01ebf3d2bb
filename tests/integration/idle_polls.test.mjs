// The cost of an idle poll and of a call with ?wait=: while it is held it allocates nothing after its start, and does
// not wake the gateway.
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";

import { keys, sleep, startGateway, until } from "../support/js/gateway.mjs";

const held = 400, whileMs = 1000;

/** A gateway that counts its allocations: get and quiet report what it does. */
async function start(t) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "runcast-alloc-"));
  t.after(() => fs.rmSync(folder, { recursive: true, force: true }));
  const file = path.join(folder, "calls");
  const gateway = await startGateway({ t, preload: "shim_alloc", env: { SHIM_ALLOC: file } });
  const agent = new http.Agent({ keepAlive: true, maxSockets: held });
  t.after(() => agent.destroy());
  const allocations = () => Number(fs.readFileSync(file).readBigUInt64LE());
  const turns = () => gateway.metric("runcast_loop_turn_cpu_seconds_count");
  const get = (path) => new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${keys.dev}`, "x-trigger-electric-version": "1.0.0-beta.1" };
    http.get({ port: gateway.port, host: "127.0.0.1", path, headers, agent },
      (response) => response.resume().on("end", () => resolve(response.headers))).on("error", reject);
  });

  /** Measures the gateway while no request arrives, for a time in which a timer would show. */
  async function quiet() {
    const before = await turns(), asked = allocations();
    await sleep(whileMs);
    const allocated = allocations() - asked;
    return { allocated, turned: await turns() - before };
  }
  return { gateway, agent, allocations, get, quiet };
}

/** Holds that many calls and compares what the gateway does meanwhile with what it does without them. Returns the
 *  headers of their responses, which end() causes. */
async function holdQuietly(t, { gateway, allocations, get, quiet }, target, end) {
  let alone;
  do alone = await quiet(); while (alone.allocated >= held / 10); // until the work that the start left is done
  const before = allocations();
  const answers = Array.from({ length: held }, () => get(target));
  for (const answer of answers) answer.catch(() => {});
  await until(async () => await gateway.metric("runcast_polls") === held, { what: "held calls" });
  assert.ok(allocations() - before >= held, "allocations are counted");
  let holding, tries = 0;
  do holding = await quiet(); while (holding.allocated - alone.allocated >= held / 10 && ++tries < 5); // the metric may still count the last responses
  t.diagnostic(`in ${whileMs} ms: ${JSON.stringify(alone)} without, ${JSON.stringify(holding)} with ${held} of them`);
  assert.ok(holding.allocated - alone.allocated < held / 10, JSON.stringify({ alone, holding }));
  assert.ok(holding.turned - alone.turned < held / 10, JSON.stringify({ alone, holding }));
  const { status, text } = await end();
  assert.equal(status, 200, text);
  return Promise.all(answers);
}

test("a held poll allocates nothing and causes no wake-up until it is answered", { timeout: 180_000 }, async (t) => {
  const world = await start(t), { gateway } = world;
  const first = await world.get("/realtime/v1/runs?offset=-1&tags=idle");
  const target = `/realtime/v1/runs?cursor=1&handle=${first["electric-handle"]}&live=true&offset=${first["electric-offset"]}&tags=idle`;
  const answers = await holdQuietly(t, world, target,
    () => gateway.post("/api/v1/tasks/task/trigger", { options: { tags: ["idle"] } }));
  assert.equal(new Set(answers.map((headers) => headers["electric-offset"])).size, 1);
  world.agent.destroy();
  await gateway.stop();
});

test("a held call with ?wait=, on a run or a batch, allocates nothing and causes no wake-up", { timeout: 180_000 }, async (t) => {
  const world = await start(t), { gateway } = world;
  const options = { delay: "1h" };
  const run = (await gateway.post("/api/v1/tasks/task/trigger", { options })).json.id;
  const batch = (await gateway.post("/api/v2/tasks/batch", { items: [{ task: "task", options }] })).json.id;
  const [child] = (await gateway.get(`/api/v2/batches/${batch}`)).json.runs;
  for (const [target, id] of [[`/api/v3/runs/${run}`, run], [`/api/v2/batches/${batch}`, child]])
    await holdQuietly(t, world, `${target}?wait=50s`, () => gateway.post(`/api/v2/runs/${id}/cancel`));
  world.agent.destroy();
  await gateway.stop();
});
