// Rates of queues and of concurrency limits: how many runs may start per period. An extension of runcast: no SDK sets them.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";

import { keys, startGateway, until } from "../support/js/gateway.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

const { concurrencyLimits, configure, queues } = createRequire(new URL("../conformance/sdk-v4/x.js", import.meta.url))("@trigger.dev/sdk");
const key = keys.prod, limit = "/api/v1/concurrency-limits/openai", queue = "/api/v1/queues/shared";
const hourly = (starts) => ({ starts, period: "1h" });

/** Starts a gateway with tasks a and b, which need the limit openai, and share a queue. */
async function start(t, options = ["--dequeue-wait", "0"]) {
  const gateway = await startGateway({ t, options });
  configure({ baseURL: gateway.url, accessToken: key });
  const tasks = ["a", "b"].map((id) => ({ id, queue: { name: "shared" }, concurrency: { limits: ["openai"] } }));
  const worker = await Worker.register(gateway, { key, tasks, concurrencyLimits: [{ name: "openai", total: 50 }] });
  const set = async (path, body) => {
    const { status, text, json } = await gateway.post(`${path}/rate`, body, { key });
    assert.equal(status, 200, text);
    return json.rate;
  };
  const look = async (id) => (await worker.show(id)).run.waitingFor;
  const get = async (path) => (await gateway.get(path, { key })).json;
  return { gateway, worker, set, look, get };
}

test("a limit starts so many runs per period, says when the next one starts, and knows it after a kill", async (t) => {
  const { gateway, worker, set, look, get } = await start(t);
  assert.deepEqual(await set(limit, { total: hourly(2) }), { perKey: null, total: { starts: 2, period: "1h", available: 2, nextAt: null } });
  const [one, two, three] = [await worker.trigger("a"), await worker.trigger("b"), await worker.trigger("a")];
  await (await worker.take(one)).succeed(1);
  await (await worker.take(two)).succeed(1);
  const limited = async () => {
    assert.equal(await worker.dequeue(), undefined);
    const { reason, limitName, message, until: at } = await look(three), left = new Date(at) - Date.now();
    assert.deepEqual([reason, limitName], ["rate", "openai"]);
    assert.match(message, /^The concurrency limit openai starts 2 runs per 1h; the next one in \d+ s$/);
    assert.ok(left > 1700_000 && left <= 1801_000, `the next token comes half a period after the first start: ${left}`);
    const { total } = (await get(limit)).rate;
    assert.deepEqual([total.available, Math.abs(new Date(total.nextAt) - new Date(at)) <= 2], [0, true]);
  };
  await limited();
  for (let i = 0; i < 2; i++) {
    await gateway.kill();
    await gateway.restart();
    await limited();
  }
  assert.equal((await concurrencyLimits.retrieve("openai")).total.current, 50, "the SDK reads a limit that has a rate");
  assert.equal(await set(limit, { total: null }), undefined);
  await (await worker.take(three)).succeed(1);
  await gateway.stop();
});

test("each key of a queue has a rate of its own, which a kill does not reset", async (t) => {
  const { gateway, worker, set, look, get } = await start(t);
  assert.deepEqual(await set(queue, { type: "custom", perKey: hourly(1) }), { perKey: hourly(1), total: null });
  assert.equal((await queues.retrieve({ type: "custom", name: "shared" })).name, "shared", "the SDK reads a queue that has a rate");
  const trigger = (concurrencyKey) => worker.trigger("a", { concurrencyKey });
  const [x, again, y, none] = [await trigger("x"), await trigger("x"), await trigger('y"'), await worker.trigger("a")];
  for (const id of [x, y, none]) await (await worker.take(id)).succeed(1);
  assert.equal((await look(again)).message.replace(/\d+ s/, "n s"), "The queue shared starts 1 run per 1h for the concurrencyKey x; the next one in n s");
  await gateway.kill();
  await gateway.restart();
  const [second, none2] = [await trigger('y"'), await worker.trigger("a")];
  assert.equal(await worker.dequeue(), undefined);
  for (const id of [again, second, none2]) assert.equal((await look(id)).reason, "rate");
  assert.deepEqual([(await get(`${queue}?type=custom&concurrencyKey=x`)).rate.available, (await get(`${queue}?type=custom&concurrencyKey=new`)).rate.available], [0, 1]);
  assert.match((await look(none2)).message, /^The queue shared starts 1 run per 1h without a concurrencyKey; the next one in \d+ s$/);
  await (await worker.take(await trigger("z"))).succeed(1);

  await set(limit, { perKey: hourly(3) });
  await set(queue, { type: "custom", perKey: null });
  for (const id of [again, second, none2]) await (await worker.take(id)).succeed(1);
  assert.deepEqual([(await get(`${limit}?concurrencyKey=x`)).rate.available, (await get(`${limit}?concurrencyKey=new`)).rate.available], [2, 3]);
  await gateway.stop();
});

test("a held dequeue gets a run at the refill, and no window of a period exceeds the bound", async (t) => {
  const starts = 3, periodMs = 1000, runs = 12;
  const { gateway, worker, set } = await start(t, []);
  await set(limit, { total: { starts, period: "1s" } });
  for (let i = 0; i < runs; i++) await worker.trigger(i % 2 ? "a" : "b");
  const times = [];
  while (times.length < runs) {
    const attempt = await worker.dequeue();
    assert.ok(attempt, "a dequeue that is held for 10 s gets a run, because a token comes every 334 ms");
    await attempt.start();
    times.push(new Date((await worker.show(attempt.id)).run.startedAt).getTime());
    await attempt.succeed(1);
    if (times.length % 5) continue;
    await gateway.kill();
    await gateway.restart();
  }
  times.forEach((time, i) => assert.ok(times.slice(i).filter((other) => other < time + periodMs).length <= 2 * starts - 1, `${times}`));
  const last = (runs - starts) * periodMs / starts, rounding = 1; // times are whole ms
  assert.ok(times.at(-1) - times[0] >= last - rounding, `after the burst, tokens come at the rate: ${times}`);
  await gateway.stop();
});

test("each start from the queue takes a token; a run that resumes takes none", async (t) => {
  const { gateway, worker, set, get } = await start(t, ["--dequeue-wait", "0", "--lease", "1s"]);
  await set(limit, { total: hourly(3) });
  const available = async () => (await get(limit)).rate.total.available;
  const attempt = await worker.take(await worker.trigger("a"));
  assert.equal(await available(), 2);
  assert.equal((await attempt.waitReply(new Date(Date.now() + 10).toISOString())).status, 200);
  await until(async () => (await attempt.refresh()).snapshot.executionStatus === "EXECUTING", { what: "the run resumes" });
  assert.equal(await available(), 2);
  await attempt.succeed(1);

  const unused = await worker.trigger("b");
  assert.equal((await worker.dequeue()).id, unused);
  assert.equal(await available(), 1);
  const again = await until(() => worker.dequeue(), { what: "the lease ends, and the run is offered again" });
  assert.deepEqual([again.id, await available()], [unused, 0]);
  await gateway.stop();
});

test("rates are refused in words", async (t) => {
  const { gateway, get } = await start(t);
  const refused = async (path, body) => {
    const { status, json } = await gateway.post(`${path}/rate`, body, { key });
    assert.equal(status, 400, JSON.stringify(json));
    return json.error;
  };
  assert.equal(await refused(limit, {}), "perKey, total: give at least one of them");
  for (const starts of [0, -1, 1.5, 100001, "3", undefined])
    assert.equal(await refused(limit, { total: { starts, period: "1m" } }), "total.starts: must be a whole number from 1 to 100000");
  for (const period of ["0s", "25h", "soon", 60, "", undefined])
    assert.equal(await refused(limit, { perKey: { starts: 1, period } }), "perKey.period: must be a duration in whole seconds from 1s to 1d, such as 1m");
  assert.equal(await refused(queue, { type: "custom", total: 5 }), "total: must be an object with starts and period, or null");
  assert.equal((await gateway.post("/api/v1/concurrency-limits/nobody/rate", { total: null }, { key })).status, 404);
  assert.equal((await gateway.post("/api/v1/queues/nobody/rate", { type: "custom", total: null }, { key })).status, 404);
  assert.equal("rate" in (await get(limit)), false);
  await gateway.stop();
});
