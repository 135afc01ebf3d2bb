// A database with one wrong bit, in each part of the file: the gateway reports it and does not start, or serves what
// it can read. It never crashes, and no response is late.
//
//   FLIPS=500 SEED=1 node damage.test.mjs      more bits
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { EventStream } from "../support/js/event_stream.mjs";
import { keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { chooseSeed, Random } from "../support/js/random.mjs";
import { RunsSocket } from "../support/js/runs.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

const flips = Number(process.env.FLIPS ?? 24);

/** A data directory that has something of every kind, and the paths that show it. */
async function fillDirectory(t) {
  const gateway = await startGateway({ t });
  const calls = ["/api/v1/runs?page[size]=100", "/api/v1/schedules", "/api/v1/queues", "/api/v1/bulk-actions", "/api/v1/waitpoints/tokens",
    `/api/v1/projects/${keys.ref}/envvars/dev`, "/realtime/v1/runs?tags=damage&offset=-1"];
  const worker = await Worker.register(gateway, { tasks: ["hello"] });
  for (let i = 0; i < 30; i++) {
    const { status, json, text } = await gateway.post("/api/v1/tasks/hello/trigger",
      { payload: { i, text: "x".repeat(i * 300) }, options: { tags: ["damage", `tag-${i}`], metadata: { i }, idempotencyKey: `key-${i}`, ...(i > 20 && { delay: "1h" }) } });
    assert.equal(status, 200, text);
    calls.push(`/api/v3/runs/${json.id}`);
    if (i >= 10) continue;
    const attempt = await worker.take(json.id);
    await attempt.succeed("y".repeat(i * 500));
  }
  for (let i = 0; i < 5; i++) {
    await gateway.post("/api/v1/schedules", { task: "hello", cron: "0 0 1 1 *", deduplicationKey: `s-${i}` });
    await gateway.post(`/api/v1/projects/${keys.ref}/envvars/dev`, { name: `NAME_${i}`, value: "v".repeat(1000) });
    await gateway.post("/api/v1/waitpoints/tokens", { tags: ["damage"] });
  }
  const { json } = await gateway.post("/api/v2/tasks/batch", { items: Array.from({ length: 20 }, (_, i) => ({ task: "hello", payload: i, options: { delay: "1h" } })) });
  calls.push(`/api/v2/batches/${json.id}`);
  await gateway.stop();
  return { data: gateway.data, calls };
}

function flipBit(folder, random, nth) {
  const file = path.join(folder, fs.readdirSync(folder).find((name) => name.endsWith(".db")));
  const bytes = fs.readFileSync(file), pages = Math.ceil(bytes.length / 4096);
  const at = (nth % pages) * 4096 + random.below(4096), bit = 1 << random.below(8);
  bytes[at] ^= bit;
  fs.writeFileSync(file, bytes);
  return `byte ${at} of ${bytes.length}, bit ${bit}`;
}

test(`a wrong bit in the database, ${flips} times: refused with a reason, or served`, { timeout: 120_000 + flips * 5_000 }, async (t) => {
  const random = new Random(chooseSeed(t));
  const { data, calls } = await fillDirectory(t);
  const seen = { refused: 0, served: 0 };
  const first = random.below(1000);
  for (let i = 0; i < flips; i++) {
    const folder = path.join(temporaryFolder(), "data");
    fs.cpSync(data, folder, { recursive: true, filter: (name) => !name.endsWith(".sock") });
    const what = flipBit(folder, random, first + i * 7);
    const gateway = await startGateway({ data: folder, ready: false });
    t.after(() => gateway.end || gateway.kill());
    await until(async () => gateway.end || (await gateway.get("/readyz").catch(() => ({}))).status === 200, { timeoutMs: 30_000, what: `${what}: an end or a beginning\n${gateway.stderr}` });
    if (gateway.end) {
      assert.deepEqual([gateway.end.code, gateway.end.signal], [1, null], `${what}\n${gateway.stderr}`);
      assert.match(gateway.stderr, /^runcast: .{10,}|"reason":"[^"]{10,}/m, what);
      seen.refused++;
    } else {
      for (const call of calls) {
        const { status, text } = await gateway.get(call, { timeoutMs: 10_000 }).catch((error) => { throw new Error(`${what}, ${call}: ${error}\n${gateway.stderr}`); });
        assert.ok([200, 404, 500, 503].includes(status), `${what}, ${call}: ${status} ${text}`);
      }
      const { status } = await gateway.post("/api/v1/tasks/hello/trigger", { payload: 1 }, { timeoutMs: 10_000 });
      assert.ok([200, 500, 503].includes(status), `${what}: ${status}`);
      gateway.child.kill("SIGTERM");
      const end = await gateway.ended();
      assert.equal(end.signal, null, what);
      assert.doesNotMatch(gateway.stderr, /Sanitizer|runtime error/, what);
      seen.served++;
    }
    fs.rmSync(folder, { recursive: true, force: true });
  }
  t.diagnostic(JSON.stringify(seen));
});

test("a database that can no longer be read: subscribers are disconnected, and everything else continues", async (t) => {
  const gateway = await startGateway({ t, options: ["--memory", "1m"] });
  const worker = await Worker.register(gateway, { tasks: ["hello"] });
  for (let i = 0; i < 30; i++) { // finished runs leave memory
    await worker.trigger("hello", { tags: ["old"] }, "x".repeat(50_000));
    await (await worker.take()).succeed("y".repeat(50_000));
  }
  await gateway.stop();
  await gateway.restart();
  const waiting = await worker.trigger("hello", { delay: "1h" });
  const file = path.join(gateway.data, "runcast.db"), bytes = fs.readFileSync(file);
  fs.writeFileSync(file, Buffer.concat([bytes.subarray(0, 4096), Buffer.alloc(bytes.length - 4096, 0x5a)]));
  t.after(() => gateway.end || gateway.kill());

  const socket = await RunsSocket.open({ port: gateway.port, token: keys.dev, hello: {} });
  await socket.next("welcome");
  socket.send({ op: "sub", id: 1, all: true });
  assert.equal((await socket.closed).code, 4102);
  const poll = await gateway.get("/realtime/v1/runs?tags=old&offset=-1", { headers: { "x-trigger-electric-version": "1.0.0-beta.1" } });
  assert.equal(poll.status, 503, poll.text);
  const stream = await EventStream.open(`${gateway.url}/realtime/v1/events?all=1`, { headers: { authorization: `Bearer ${keys.dev}` } });
  await stream.untilEnd();
  assert.equal((await gateway.get(`/api/v3/runs/${waiting}`)).status, 200, "what is in memory");
  assert.equal((await gateway.get("/healthz", { key: null })).status, 200);
});
