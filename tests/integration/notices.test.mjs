// The notice socket of workers: names the run to look at, within the turn.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { NoticeSocket, target } from "../support/js/notices.mjs";
import { runProgram } from "../support/js/program.mjs";
import { addSecondProject, otherKeys } from "../support/js/second_project.mjs";
import { inMs, thrown, Worker } from "../support/js/worker_calls.mjs";

let gateway, worker;
before(async () => {
  gateway = await startGateway();
  await gateway.stop();
  addSecondProject(gateway.data);
  await gateway.restart();
  worker = await Worker.register(gateway, { tasks: ["parent", "child"] });
});
after(() => gateway.stop());

const executing = async (options) => worker.take(await worker.trigger("parent", options));
const status = async (attempt) => (await attempt.refresh()).snapshot.executionStatus;

test("dequeues, notice sockets and presence count against --realtime-connections, for keys and for worker tokens", async (t) => {
  const own = await startGateway({ t, options: ["--realtime-connections", "2", "--dequeue-wait", "1m"] });
  const made = await runProgram(["worker-token", "create", "--data", own.data, "--env", "prod"]);
  const token = made.stdout.match(/tr_wgt_\w+/)[0];
  const { id: currentWorker } = await Worker.register(own); // in dev, a dequeue that names no version is held only for 250 ms
  for (const [key, dequeue, space, body] of [[keys.dev, "/engine/v1/dev/dequeue", "/dev-worker", { currentWorker }], [token, "/engine/v1/worker-actions/dequeue", "/worker", {}]]) {
    const tooMany = { error: "Too many concurrent requests" };
    const sockets = [];
    for (let i = 0; i < 2; i++) sockets.push(await NoticeSocket.connect(own, { t, key, space }));
    const third = await NoticeSocket.open(own, { t, key });
    third.send(`40${space},`);
    assert.equal(await third.next(), `44${space},{"message":"Too many concurrent requests"}`);
    const late = await own.post(dequeue, body, { key });
    assert.deepEqual([late.status, late.json], [429, tooMany]);
    for (const socket of [...sockets, third]) await socket.ws.cut();
    await until(async () => (await own.metric("runcast_notice_sockets")) === 0, { what: "their end" });

    // With two places, one of three simultaneous ones is refused, and the others stay.
    const head = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    for (const [method, target] of [["POST", dequeue], ...key === keys.dev ? [["GET", "/engine/v1/dev/presence"]] : []]) {
      const leaving = new AbortController(), refused = [];
      const all = [1, 2, 3].map(() => fetch(own.url + target, { method, headers: head, body: method === "POST" ? JSON.stringify(body) : undefined, signal: leaving.signal })
        .then((answer) => answer.status === 429 ? refused.push(answer.status) : answer.text()).catch(() => {}));
      await until(() => refused.length, { what: `a refusal of ${target}` });
      assert.equal((await own.post(dequeue, body, { key })).status, 429, "both seats are taken");
      assert.equal(refused.length, 1);
      leaving.abort();
      await Promise.all(all);
      await until(async () => (await own.metric('runcast_connections')) <= 2, { what: "the end of the others" });
    }
  }
  await own.stop();
});

describe("a subscribed worker is notified", () => {
  test("of each cancel, without polling", async (t) => {
    const socket = await NoticeSocket.connect(gateway, { t });
    const took = [];
    for (let i = 0; i < 20; i++) {
      const attempt = await executing();
      socket.subscribe(attempt.id);
      await socket.notice(attempt.id); // it subscribed late, so it is notified at once
      const before = process.hrtime.bigint();
      const reply = worker.cancel(attempt.id);
      await socket.notice(attempt.id);
      took.push(Number(process.hrtime.bigint() - before) / 1e6);
      assert.equal((await reply).status, 200);
      assert.equal(await status(attempt), "PENDING_CANCEL");
    }
    took.sort((a, b) => a - b);
    t.diagnostic(`from the cancel's request to its notice: median ${took[10].toFixed(1)} ms, most ${took[19].toFixed(1)} ms`);
  });

  test("again when the cancel is repeated", async (t) => {
    const socket = await NoticeSocket.connect(gateway, { t });
    const attempt = await executing();
    socket.subscribe(attempt.id);
    await socket.notice(attempt.id); // it subscribed late, so it is notified at once
    for (let i = 0; i < 3; i++) {
      assert.equal((await worker.cancel(attempt.id)).status, 200);
      await socket.notice(attempt.id);
      assert.equal(await status(attempt), "PENDING_CANCEL");
    }
  });

  test("when a wait begins and when it ends", async (t) => {
    const attempt = await executing();
    const socket = await NoticeSocket.connect(gateway, { t });
    socket.subscribe(attempt.id);
    await socket.notice(attempt.id);
    const token = (await gateway.post("/api/v1/waitpoints/tokens", {})).json.id;
    await worker.post(`/engine/v1/runs/${attempt.id}/waitpoints/tokens/${token}/wait`, {});
    await socket.notice(attempt.id);
    assert.equal(await status(attempt), "EXECUTING_WITH_WAITPOINTS");
    await gateway.post(`/api/v1/waitpoints/tokens/${token}/complete`, { data: 7 });
    await socket.notice(attempt.id);
    const { snapshot, completedWaitpoints } = await attempt.refresh();
    assert.deepEqual([snapshot.executionStatus, completedWaitpoints[0].output], ["EXECUTING", "7"]);
    await attempt.succeed(1);
  });

  test("when the child that its run waits for has ended", async (t) => {
    const parent = await executing();
    const socket = await NoticeSocket.connect(gateway, { t });
    socket.subscribe(parent.id);
    await socket.notice(parent.id);
    const id = await worker.trigger("child", { parentRunId: parent.id, resumeParentOnCompletion: true });
    await socket.notice(parent.id);
    await (await worker.take(id)).succeed(1);
    await socket.notice(parent.id);
    assert.equal(await status(parent), "EXECUTING");
    await parent.succeed(1);
  });

  test("when something else ends the run: a session that disconnects, a cancel during a retry pause", async (t) => {
    const [gone, pausing] = [await executing(), await executing({ maxAttempts: 2 })];
    await pausing.fail(thrown, { retry: inMs(60_000) });
    const socket = await NoticeSocket.connect(gateway, { t, runs: [gone.id, pausing.id] });
    await socket.notice(gone.id);
    await socket.notice(pausing.id);
    await worker.disconnect([gone.id]);
    await socket.notice(gone.id);
    assert.equal(await status(gone), "FINISHED");
    await worker.cancel(pausing.id);
    await socket.notice(pausing.id);
    assert.equal(await status(pausing), "FINISHED");
  });

  test("on every socket that subscribed, and in the namespace of deployed workers", async (t) => {
    const attempt = await executing();
    const sockets = [await NoticeSocket.connect(gateway, { t }), await NoticeSocket.connect(gateway, { t, space: "/worker" })];
    for (const socket of sockets) socket.subscribe(attempt.id);
    await Promise.all(sockets.map((socket) => socket.notice(attempt.id)));
    await worker.cancel(attempt.id);
    await Promise.all(sockets.map((socket) => socket.notice(attempt.id)));
  });
});

describe("a worker is not notified", () => {
  test("of what it did itself", async (t) => {
    const id = await worker.trigger("parent", { maxAttempts: 2 });
    const attempt = await worker.dequeue();
    assert.equal(attempt.id, id);
    const socket = await NoticeSocket.connect(gateway, { t, runs: [id] });
    await attempt.start();
    await attempt.heartbeat();
    await attempt.fail(thrown, { retry: inMs(0) });
    await attempt.start();
    await gateway.put(`/api/v1/runs/${id}/metadata`, { metadata: { a: 1 } });
    await attempt.succeed(1);
    await socket.caughtUp();
    assert.deepEqual(socket.notices(), []);
  });

  test("after it unsubscribed, nor twice for two subscriptions", async (t) => {
    const attempt = await executing();
    const socket = await NoticeSocket.connect(gateway, { t, runs: [attempt.id, attempt.id] });
    socket.subscribe(attempt.id);
    await socket.notice(attempt.id);
    await attempt.waitReply(new Date(Date.now() + 60_000).toISOString());
    await socket.caughtUp();
    assert.equal(socket.notices().length, 1);
    await socket.notice(attempt.id);
    socket.unsubscribe(attempt.id, "run_nobody");
    await socket.caughtUp();
    await worker.cancel(attempt.id);
    await socket.caughtUp();
    assert.deepEqual(socket.notices(), []);
  });

  test("of runs of another environment or organization, and unknown ones behave the same", async (t) => {
    for (const key of [keys.prod, keys.staging, otherKeys.dev]) {
      const attempt = await executing();
      const socket = await NoticeSocket.connect(gateway, { t, key, runs: [attempt.id, "run_unknown"] });
      await worker.cancel(attempt.id);
      await socket.caughtUp();
      assert.deepEqual(socket.packets, [], key);
    }
  });

  test("before it is in a namespace, or through another one", async (t) => {
    const attempt = await executing();
    const socket = await NoticeSocket.open(gateway, { t });
    socket.space = "/dev-worker";
    socket.subscribe(attempt.id);
    socket.send("40/dev-worker,");
    await socket.next((packet) => packet.startsWith("40/dev-worker,"));
    socket.space = "/worker";
    socket.subscribe(attempt.id);
    await worker.cancel(attempt.id);
    await socket.caughtUp();
    assert.deepEqual(socket.packets, []);
  });
});

test("a worker token is notified of the runs of its environments, and of no others", async (t) => {
  const { code, stdout, all } = await runProgram(["worker-token", "create", "--project", keys.ref, "--name", "rack 7", "--data", gateway.data]);
  assert.equal(code, 0, all);
  const outside = await Worker.register(gateway, { tasks: ["parent"], key: keys.prod });
  const served = await outside.take(await outside.trigger("parent"));
  const foreign = await Worker.register(gateway, { tasks: ["parent"], key: otherKeys.prod, ref: otherKeys.ref });
  const [other, dev] = [await foreign.take(await foreign.trigger("parent")), await executing()];
  const socket = await NoticeSocket.connect(gateway, { t, key: stdout.trim(), space: "/worker", runs: [other.id, dev.id, served.id, "run_unknown"] });
  await socket.notice(served.id);
  for (const [by, attempt] of [[foreign, other], [worker, dev], [outside, served]]) await by.cancel(attempt.id);
  await socket.notice(served.id);
  await socket.caughtUp();
  assert.deepEqual(socket.notices(), []);
});

describe("the socket", () => {
  test("opens as Engine.IO 4 requires, and answers pings", async (t) => {
    const { opened, ...socket } = await NoticeSocket.open(gateway, { t });
    assert.deepEqual({ ...opened, sid: undefined }, { sid: undefined, upgrades: [], pingInterval: 25000, pingTimeout: 20000, maxPayload: 65536 });
    assert.equal(socket.ws.response.headers["sec-websocket-protocol"], undefined);
  });

  test("refuses invalid credentials in the namespace, with the reason", async (t) => {
    for (const [key, space, text] of [
      [null, "/dev-worker", /Authorization|API key|credential/i], ["tr_dev_zzzzzzzzzzzzzzzzzzzzzzzz", "/dev-worker", /API key/],
      [keys.pat, "/dev-worker", /API key/], [keys.dev, "/other", /^Invalid namespace$/], [keys.preview, "/worker", /x-trigger-branch/],
    ]) {
      const socket = await NoticeSocket.open(gateway, { t, key });
      socket.send(`40${space},`);
      const packet = await socket.next();
      assert.ok(packet.startsWith(`44${space},{`), packet);
      assert.match(JSON.parse(packet.slice(packet.indexOf(",") + 1)).message, text);
      assert.equal((await socket.ws.closed).code, 4003);
    }
  });

  test("supports no other version and no other transport", async () => {
    for (const [query, code] of [["EIO=3&transport=websocket", 5], ["EIO=4&transport=polling", 0], ["EIO=4", 0], ["", 5]]) {
      const reply = await gateway.get(`/socket.io/?${query}`, { key: keys.dev });
      assert.deepEqual([reply.status, reply.json.code], [400, code], query);
    }
    assert.equal((await gateway.get(target, { key: keys.dev })).status, 426);
  });

  test("is closed after an invalid packet, a message that is too long, and at the client's request", async (t) => {
    for (const [text, code] of [["x", 4000], ["42/dev-worker,[", 4000], ["451-[1]", 4000], [`42${"[".repeat(300)}`, 4000], ["1", 1000], ["41/dev-worker,", 1000], [`2${"x".repeat(70_000)}`, 1009]]) {
      const socket = await NoticeSocket.connect(gateway, { t });
      socket.send(text);
      assert.equal((await socket.ws.closed).code, code, text.slice(0, 20));
    }
  });

  test("accepts somewhat more subscriptions than the environment may execute runs, and no more", async (t) => {
    const own = await startGateway({ t, options: ["--env-concurrency", "2"] });
    const late = await Worker.register(own, { tasks: ["parent"] });
    const attempt = await late.take(await late.trigger("parent"));
    const runs = Array.from({ length: 258 }, (_, i) => `run_${String(i).padStart(21, "a")}`);
    const socket = await NoticeSocket.connect(own, { t, runs });
    socket.subscribe(attempt.id);
    await late.cancel(attempt.id);
    await socket.caughtUp();
    assert.deepEqual(socket.notices(), []);
    socket.unsubscribe(runs[7]);
    socket.subscribe(attempt.id);
    await socket.notice(attempt.id);
    await own.stop();
  });

  test("of a slow reader gets one notice per run when it can be sent, whatever happened meanwhile", async (t) => {
    const attempt = await executing(), pong = `3${"x".repeat(60_000)}`;
    const socket = await NoticeSocket.connect(gateway, { t, runs: [attempt.id] });
    await socket.notice(attempt.id);
    socket.ws.pause();
    let told = 0;
    const news = async () => {
      const before = await gateway.metric("runcast_notices_total");
      assert.equal((await attempt.waitReply(new Date(Date.now() + 60_000).toISOString())).status, 200);
      const more = (await gateway.metric("runcast_notices_total")) - before;
      told += more;
      return more;
    };
    do { // until the kernel takes no more
      const before = await gateway.metric("runcast_bytes_sent_total");
      socket.send(pong.replace("3", "2"));
      await until(async () => (await gateway.metric("runcast_bytes_sent_total")) >= before + pong.length);
    } while (await news());
    for (let i = 0; i < 3; i++) assert.equal(await news(), 0);
    socket.ws.resume();
    await socket.caughtUp();
    await until(() => socket.notices().length === told + 1, { what: "the held notice" });
    assert.equal(await gateway.metric("runcast_notice_sockets") > 0, true);
    await worker.cancel(attempt.id);
  });

  test("that does not read the answers to its messages is closed", async (t) => {
    const socket = await NoticeSocket.connect(gateway, { t });
    const open = await gateway.metric("runcast_notice_sockets");
    socket.ws.pause();
    for (let i = 0; i < 190; i++) socket.send(`2${"x".repeat(60_000)}`); // their answers fill the socket
    await until(async () => (await gateway.metric("runcast_notice_sockets")) < open, { what: "the socket is closed" });
  });

  test("ends with its key, and closes with 4200 on a drain", async (t) => {
    const own = await startGateway({ t });
    const [ending, staying] = [await NoticeSocket.connect(own, { t, key: keys.prod }), await NoticeSocket.connect(own, { t })];
    assert.equal(await own.metric("runcast_notice_sockets"), 2);
    const binary = process.env.GATEWAY_BIN ?? path.resolve("build-asan/runcast");
    execFileSync(binary, ["keys", "rotate", "prod", "--project", keys.ref, "--grace", "0", "--data", own.data]);
    assert.equal((await ending.ws.closed).code, 4001);
    await staying.caughtUp();
    await own.stop();
    assert.equal((await staying.ws.closed).code, 4200);
  });

  test("is pinged every 25 s, and closed when no answer arrives for 60 s", async (t) => {
    const file = path.join(temporaryFolder(), "ahead");
    const own = await startGateway({ t, preload: "shim_clock", env: { SHIM_MONOTONIC: file } });
    const socket = await NoticeSocket.connect(own, { t });
    let ahead = 0;
    const jump = async (ms) => {
      fs.writeFileSync(`${file}.new`, String(ahead += ms));
      fs.renameSync(`${file}.new`, file);
      await own.get("/healthz", { key: null });
    };
    const pass = async (ms) => { // in steps, so that the pings of WebSocket are answered in time
      for (let left = ms; left > 0; left -= 5000) {
        await jump(Math.min(left, 5000));
        for (let i = 0; i < 2; i++) await socket.caughtUp();
      }
    };
    const pings = () => socket.packets.filter((packet) => packet === "2").length;
    for (let i = 1; i <= 3; i++) {
      await pass(25_100);
      assert.equal(pings(), i);
      if (i < 3) socket.send("3");
    }
    await pass(45_000); // the time that the test itself takes counts too
    await jump(20_000);
    assert.equal((await socket.ws.closed).code, 4102);

    const idle = await NoticeSocket.open(own, { t });
    await jump(10_100);
    assert.equal((await idle.ws.closed).code, 4000);
    await own.stop();
  });
});

// The client of the official CLI, wherever its packages are installed (CLI_DIR, SDK_DIR or the tree's own).
const packages = [process.env.CLI_DIR, process.env.SDK_DIR, "tests/conformance/worker", "tests/conformance/sdk-v4"]
  .filter((folder) => folder && fs.existsSync(path.resolve(folder, "node_modules/socket.io-client")));

test("socket.io-client connects, is notified, is refused, and reconnects after a restart", async (t) => {
  assert.ok(packages.length, "socket.io-client is not installed: npm ci in tests/conformance/sdk-v4");
  const { io } = createRequire(path.resolve(packages[0], "package.json"))("socket.io-client");
  const own = await startGateway({ t });
  const late = await Worker.register(own, { tasks: ["parent"] });
  const options = (key) => ({ transports: ["websocket"], extraHeaders: { Authorization: `Bearer ${key}` }, reconnectionDelay: 50, reconnectionDelayMax: 100, forceNew: true });
  const told = (socket, event) => new Promise((resolve) => socket.once(event, resolve));

  const stranger = io(`${own.url}/dev-worker`, options("tr_dev_zzzzzzzzzzzzzzzzzzzzzzzz"));
  t.after(() => stranger.close());
  assert.match((await told(stranger, "connect_error")).message, /API key/);

  const socket = io(`${own.url}/dev-worker`, options(keys.dev));
  t.after(() => socket.close());
  await told(socket, "connect");
  const attempt = await late.take(await late.trigger("parent"));
  let notice = told(socket, "run:notify");
  socket.emit("run:subscribe", { version: "1", runFriendlyIds: [attempt.id] });
  assert.deepEqual(await notice, { version: "1", run: { friendlyId: attempt.id } });

  const left = told(socket, "disconnect");
  await own.stop();
  assert.equal(await left, "transport close");
  const back = told(socket, "connect");
  await own.restart();
  await back;
  notice = told(socket, "run:notify");
  socket.emit("run:subscribe", { version: "1", runFriendlyIds: [attempt.id] });
  await notice;
  await late.cancel(attempt.id);
  await told(socket, "run:notify");
  socket.close();
  await until(async () => (await own.metric("runcast_notice_sockets")) === 0);
  await own.stop();
});
