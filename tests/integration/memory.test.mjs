// Failing allocations, anywhere, and threads that cannot be started: the gateway logs it and exits, or refuses the request
// that needed the memory and continues. It never does anything else, and every acknowledged write is there.
//
//   FAILURES=500 SEED=1 node memory.test.mjs      more of them
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { chooseSeed, Random } from "../support/js/random.mjs";
import { RunsSocket } from "../support/js/runs.mjs";

const failures = Number(process.env.FAILURES ?? 40);
const threads = 8; // those that the gateway starts first, among them one of the pool of libuv

/** Sends twenty requests of several kinds; adds the acknowledged runs to ids. */
async function use(gateway, ids) {
  const socket = await RunsSocket.open({ port: gateway.port, token: gateway.keys.dev, hello: {} });
  socket.send({ op: "sub", id: 1, all: true });
  const may = (statuses, { status, text }) => assert.ok([...statuses, 500, 503].includes(status), `${status} ${text}`);
  for (let i = 0; i < 10; i++) {
    const reply = await gateway.post("/api/v1/tasks/memory/trigger", { payload: "x".repeat(i * 1000), options: { tags: [`tag-${i}`], metadata: { i } } });
    may([200], reply);
    if (reply.status === 200) ids.push(reply.json.id);
  }
  for (const call of ["/api/v1/runs", `/api/v3/runs/${ids[0]}`, "/api/v1/queues", "/realtime/v1/runs?tags=tag-1&offset=-1", "/openapi.json"])
    may([200, 404], await gateway.get(call));
  may([200], await gateway.getAsAdmin("/metrics"));
  may([202, 200], await gateway.post("/api/v1/tasks/batch", { items: [{ task: "memory", payload: 1 }, { task: "memory", payload: 2 }] }));
  may([200], await gateway.post(`/api/v1/projects/${gateway.keys.ref}/envvars/dev`, { name: "A", value: "b" }));
  await socket.cut();
}

/** Starts a gateway in which something fails, uses it and stops it. Returns the error that ended it, if any. The last line
 *  of its log must then have a reason. */
async function outlive(t, env, what, ids) {
  const gateway = await startGateway({ preload: "shim_alloc", env, ready: false });
  t.after(() => gateway.end || gateway.kill());
  const about = (text) => `${what}: ${text}\n${gateway.stderr}`;
  await until(async () => gateway.end || (await gateway.get("/readyz").catch(() => ({}))).status === 200, { what: about("an end or a beginning") });
  let trouble = gateway.end ?? await use(gateway, ids).catch((error) => error);
  if (trouble) await until(() => gateway.end, { timeoutMs: 3000, what: about(trouble.stack) });
  else trouble = await gateway.stop().then(() => null, (error) => error); // it may fail while it stops
  assert.match(`${gateway.end.code ?? gateway.end.signal}`, trouble ? /^(1|SIGABRT)$/ : /^0$/, about("how it ends"));
  if (trouble) assert.match(gateway.stderr.trim().split("\n").at(-1), /^runcast: \S.{10,}|"reason":"[^"]{10,}/, about("the last word"));
  return { gateway, trouble, about };
}

test(`a failed allocation, ${failures} times: logged and exited, or refused and continued`, { timeout: 60_000 + failures * 5_000 }, async (t) => {
  const random = new Random(chooseSeed(t)), file = path.join(temporaryFolder(), "calls");
  const count = () => Number(fs.readFileSync(file).readBigUInt64LE());
  const whole = await startGateway({ t, preload: "shim_alloc", env: { SHIM_ALLOC: file } });
  const started = count();
  await use(whole, []);
  const all = count();
  await whole.stop();
  const seen = { started, all, ended: 0, wentOn: 0 };
  for (let i = 0; i < failures; i++) {
    const nth = random.chance(0.5) ? 1 + random.below(started) : started + random.below(all - started), ids = [];
    fs.rmSync(file); // otherwise it continues to count
    const { gateway, trouble, about } = await outlive(t, { SHIM_ALLOC: file, SHIM_ALLOC_FAIL: String(nth) }, `allocation ${nth} of ${all}`, ids);
    seen[trouble ? "ended" : "wentOn"]++;
    if (!trouble || !ids.length) continue;
    await gateway.restart({ env: {} });
    for (const id of ids) assert.equal((await gateway.get(`/api/v3/runs/${id}`)).status, 200, about(id));
    await gateway.stop();
  }
  t.diagnostic(JSON.stringify(seen));
});

test("a thread that cannot be started: logged and exited, or continued without it", { timeout: 120_000 }, async (t) => {
  for (let nth = 1; nth <= threads; nth++) await outlive(t, { SHIM_THREAD_FAIL: String(nth) }, `thread ${nth}`, []);
});

test("OpenSSL has no allocations of its own that could fail", async (t) => {
  const { trouble, about } = await outlive(t, { SHIM_ALLOC_REFUSE: "libcrypto" }, "an allocation of libcrypto", []);
  assert.equal(trouble, null, about("it serves"));
});
