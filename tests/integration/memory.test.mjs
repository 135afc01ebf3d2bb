// Failing allocations, anywhere: the gateway logs it and exits, or refuses the request that needed the memory and
// continues. It never does anything else, and every acknowledged write is there.
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
const first = 300; // earlier ones are in libcrypto, which does not survive a failure while its random numbers are set up

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
    const nth = random.chance(0.5) ? first + random.below(started - first) : started + random.below(all - started), ids = [];
    fs.rmSync(file); // otherwise it continues to count
    const gateway = await startGateway({ preload: "shim_alloc", env: { SHIM_ALLOC: file, SHIM_ALLOC_FAIL: String(nth) }, ready: false });
    t.after(() => gateway.end || gateway.kill());
    const what = (text) => `allocation ${nth} of ${all}: ${text}\n${gateway.stderr}`;
    await until(async () => gateway.end || (await gateway.get("/readyz").catch(() => ({}))).status === 200, { what: what("an end or a beginning") });
    let trouble = gateway.end ?? await use(gateway, ids).catch((error) => error);
    if (trouble) await until(() => gateway.end, { timeoutMs: 3000, what: what(trouble.stack) });
    else trouble = await gateway.stop().then(() => null, (error) => error); // the allocation may fail while it stops
    seen[trouble ? "ended" : "wentOn"]++;
    assert.match(`${gateway.end.code ?? gateway.end.signal}`, trouble ? /^(1|SIGABRT)$/ : /^0$/, what("how it ends"));
    if (trouble) assert.match(gateway.stderr.trim().split("\n").at(-1), /^runcast: \S.{10,}|"reason":"[^"]{10,}/, what("the last word"));
    if (!trouble || !ids.length) continue;
    await gateway.restart({ env: {} });
    for (const id of ids) assert.equal((await gateway.get(`/api/v3/runs/${id}`)).status, 200, what(id));
    await gateway.stop();
  }
  t.diagnostic(JSON.stringify(seen));
});
