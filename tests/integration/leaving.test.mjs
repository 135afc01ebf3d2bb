// Clients that leave in the middle of a call, a download or a live list: what they held is free, and others notice nothing.
import assert from "node:assert/strict";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { after, before, test } from "node:test";

import { Builder, bundle, Deployer, form, sha256 } from "../support/js/deployments.mjs";
import { keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { RawConnection } from "../support/js/http.mjs";
import { RunsSocket } from "../support/js/runs.mjs";
import { WatchMirror } from "../support/js/watch_mirror.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

let gateway;
before(async () => { gateway = await startGateway({ options: ["--deploy-hold", "2s", "--deploy-bundle", "100m"] }); });
after(() => gateway.stop());

const times = 40;

/** Sends a request and cuts the connection: at the first bytes of the response, or "at once". */
const leave = (request, when) => new Promise((resolve, reject) => {
  const socket = net.connect({ port: gateway.port, host: "127.0.0.1", noDelay: true });
  const cut = () => { socket.destroy(); resolve(); };
  socket.on("error", reject);
  socket.write(request, () => { if (when === "at once") cut(); });
  socket.once("data", cut);
});

const get = (target, key = keys.dev) => `GET ${target} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\n\r\n`;

/** Counts what clients hold at the gateway, including the connection of this call. */
async function held() {
  const metrics = await gateway.metrics();
  return ["process_open_fds", "runcast_subscriptions", "runcast_connections_behind", 'runcast_connections{kind="http"}', 'runcast_connections{kind="ws"}'].map((name) => metrics.get(name));
}

/** Calls fn, and waits until the gateway holds as little as before. */
async function afterwardsNothingIsHeld(fn) {
  await held();
  const before = await held();
  await fn();
  let now;
  await until(async () => { now = await held(); return now.every((count, i) => count <= before[i]); }, { what: "everything is free" })
    .catch((error) => { throw new Error(`${error.message}: ${before} before, ${now} now`); });
}

test("of a page of logs", async () => {
  const worker = await Worker.register(gateway, { tasks: ["hello"] }), attempt = await worker.take(await worker.trigger("hello"));
  const otlp = `${new URL(attempt.started.envVars.TRIGGER_OTEL_EXPORTER_OTLP_ENDPOINT).pathname}/v1/logs`;
  const record = (i) => ({ timeUnixNano: `${Date.now()}000000`, severityText: "info", body: { stringValue: `line ${i}` }, attributes: [
    { key: "$metadata.ctx.run.id", value: { stringValue: attempt.id } }, { key: "text", value: { stringValue: "x".repeat(300) } }] });
  for (let at = 0; at < 8000; at += 500) {
    const logRecords = Array.from({ length: 500 }, (_, i) => record(at + i));
    assert.equal((await gateway.post(otlp, { resourceLogs: [{ scopeLogs: [{ logRecords }] }] }, { key: null })).status, 200);
  }
  const target = `/api/v1/runs/${attempt.id}/events`, all = await gateway.get(target);
  assert.equal(all.json.events.length, 8000);
  await afterwardsNothingIsHeld(async () => {
    for (let i = 0; i < times; i++) await leave(get(target), i % 2 ? "at once" : "at the first bytes");
  });
  assert.equal((await gateway.get(target)).text, all.text);
  await attempt.succeed(1);
});

test("of an offer and an upload", async () => {
  const cli = new Deployer(gateway), bytes = bundle();
  const body = JSON.stringify({ type: "deployment_bundle", contentType: "application/gzip", contentLength: 10 });
  const head = `POST /api/v1/artifacts HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${keys.prod}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
  const { json } = await cli.offer(bytes.length), target = new URL(json.uploadUrl), file = form(json.uploadFields, bytes);
  const upload = Buffer.concat([Buffer.from(`POST ${target.pathname}${target.search} HTTP/1.1\r\nhost: x\r\ncontent-type: ${file.headers["content-type"]}\r\ncontent-length: ${file.body.length}\r\n\r\n`), file.body.subarray(0, -20)]);
  await afterwardsNothingIsHeld(async () => {
    for (let i = 0; i < times; i++) {
      await leave(head + body.slice(0, -5), "at once");
      await leave(upload, "at once");
    }
  });
  await until(async () => (await cli.upload(json, bytes)).status === 204, { what: "the upload of the same offer" });
  for (let i = 0; i < 3; i++) assert.equal((await cli.offer(10)).status, 201, "offers that were never complete do not count");
  assert.equal((await cli.offer(10)).status, 429);
});

test("of an offer that waits for the disk", async (t) => {
  const order = path.join(temporaryFolder(), "disk"), own = await startGateway({ t, preload: "shim_disk", env: { SHIM_DISK: order } });
  const cli = new Deployer(own), body = JSON.stringify({ type: "deployment_bundle", contentType: "application/gzip", contentLength: 10 });
  const request = `POST /api/v1/artifacts HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${keys.prod}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  const noticed = async () => { for (let i = 0; i < 3; i++) await own.metrics(); }; // what was sent before these calls
  fs.writeFileSync(order, "hold");
  const leaving = await Promise.all([1, 2, 3, 4].map(() => RawConnection.open(own.port)));
  await Promise.all(leaving.map((one) => one.send(request)));
  await noticed();
  assert.equal((await cli.offer(10)).status, 429, "four offers are open");
  await Promise.all(leaving.map(({ socket }) => new Promise((resolve) => { socket.once("close", resolve); socket.destroy(); })));
  await noticed();
  fs.rmSync(order);
  for (let i = 0; i < 4; i++) // in less than the minute after which an offer that is not used gives its place to the next one
    await until(async () => (await cli.offer(10)).status === 201, { timeoutMs: 40_000, what: `offer ${i}, for which the place of one that left is free` });
  await own.stop();
});

test("of a file, and of the log of a build", async () => {
  const cli = new Deployer(gateway, { key: keys.staging }), builder = await Builder.start(gateway), bytes = Buffer.alloc(40 << 20, "r\r\n--");
  bytes.set([0x1f, 0x8b]);
  const answer = cli.deploy({}, { bytes }), build = await builder.take();
  const target = `${builder.base}/deployments/${build.deployment.id}/archive`;
  const reader = fetch(`${gateway.url}${target}`, { headers: { authorization: `Bearer ${builder.token}` } });
  await afterwardsNothingIsHeld(async () => {
    for (let i = 0; i < times; i++) await leave(get(target, builder.token), i % 2 ? "at once" : "at the first bytes");
  });
  assert.equal(sha256(Buffer.from(await (await reader).arrayBuffer())), build.archive.sha256, "another reader of it");
  assert.equal((await builder.heartbeat(build, { step: "BUILDING", log: "installing\n" })).status, 200);
  await builder.fail(build);
  await answer;
  const log = `/api/v1/deployments/${build.deployment.id}/logs`;
  await afterwardsNothingIsHeld(async () => {
    for (let i = 0; i < times; i++) await leave(get(log, keys.staging), "at once");
  });
  assert.match((await cli.get(log)).text, /installing/);
});

test("of a live list that has not arrived, and of one that ends", async () => {
  const tag = "watched", payload = "x".repeat(20_000), open = () => RunsSocket.open({ port: gateway.port, token: keys.dev, hello: {} });
  const trigger = () => gateway.post("/api/v1/tasks/hello/trigger", { payload, options: { delay: "1h", tags: [tag] } });
  const watch = { op: "watch", id: 1, filter: { tag }, limit: 200, counts: true };
  for (let i = 0; i < 200; i++) assert.equal((await trigger()).status, 200);
  await afterwardsNothingIsHeld(async () => {
    const staying = await open(), mirror = new WatchMirror(200);
    const take = async (done) => { while (!done()) mirror.take(await staying.next(({ id, op }) => id === 1 && (op === "list" || op === "counts"))); };
    staying.send(watch);
    await take(() => mirror.isSynced && mirror.counts?.total === 200);
    const ending = await open();
    for (let id = 1; id <= 16; id++) ending.send({ ...watch, id, filter: { tag, from: id } });
    for (let i = 0; i < 10; i++) {
      const leaving = await open();
      for (let id = 1; id <= 16; id++) leaving.send({ ...watch, id, filter: { tag, from: id % 2 ? id : undefined } });
      if (i % 2) await leaving.next("list");
      await Promise.all([leaving.cut(), trigger()]);
    }
    for (let id = 1; id <= 16; id++) ending.send({ op: "unsub", id });
    for (let id = 1; id <= 16; id++) assert.equal((await ending.next((message) => message.op === "end" && message.id === id)).code, undefined);
    await until(async () => (await gateway.metric("runcast_subscriptions")) === 1, { what: "the list of the one that stays" });
    await take(() => mirror.isSynced && mirror.counts.total === 210);
    ending.send({ ...watch, id: 17 });
    await ending.next(({ op, id, more }) => op === "list" && id === 17 && !more);
    await Promise.all([staying.cut(), ending.cut()]);
  });
});
