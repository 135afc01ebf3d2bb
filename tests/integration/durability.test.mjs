// Acknowledged means stored on disk: kills under load, syncs that fail or take long, a full disk, and values that come
// back byte for byte.
//
//   ROUNDS=1000 node durability.test.mjs      more kills
//   POWERS=200 node durability.test.mjs       more losses of power
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { execFile, execFileSync } from "node:child_process";
import { describe, test } from "node:test";
import { promisify } from "node:util";

import { keys, sleep, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { everyRun, Load, trigger } from "../support/js/load.mjs";
import { chooseSeed, Random } from "../support/js/random.mjs";
import { RunsSocket } from "../support/js/runs.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

const rounds = Number(process.env.ROUNDS ?? 20), powers = Number(process.env.POWERS ?? 4);

// Each check reads everything: new data from time to time keep 1,000 rounds from taking hours.
const ROUNDS_OF_ONE = 100;

describe("kill -9 under load", () => {
  test(`${rounds} rounds: acknowledged writes are there, batches are complete or absent`, { timeout: 60_000 + rounds * 15_000 }, async (t) => {
    const random = new Random(chooseSeed(t));
    let slowest = 0, acknowledged = 0, sent = 0;
    for (let left = rounds; left > 0; left -= ROUNDS_OF_ONE) {
      const gateway = await startGateway({ t });
      const load = new Load(gateway, random);
      await load.begin();
      for (let round = 0; round < Math.min(left, ROUNDS_OF_ONE); round++) {
        const writing = load.run();
        await sleep(20 + random.below(200)); // any moment
        await gateway.kill();
        load.stopped = true;
        await writing;
        const began = Date.now();
        await gateway.restart();
        slowest = Math.max(slowest, Date.now() - began);
        await load.judge();
      }
      acknowledged += load.acknowledged.size;
      sent += load.sent.size;
      await gateway.stop();
    }
    t.diagnostic(`${acknowledged} acknowledged runs of ${sent} calls, slowest start ${slowest} ms`);
    assert.ok(acknowledged > rounds * 10);
  });
});

describe("with a shim between gateway and disk", () => {
  /** A gateway whose syncs are traced; order("eio") makes them fail, and so on. Without io_uring, which the shim cannot
   *  see: a response through it leaves at the end of the turn, later than without. */
  async function shimmed(t, options = []) {
    const folder = temporaryFolder();
    const trace = path.join(folder, "trace"), control = path.join(folder, "control");
    const gateway = await startGateway({ t, options: ["--io-uring", "off", ...options], preload: "shim_sync", env: { SHIM_TRACE: trace, SHIM_CONTROL: control } });
    gateway.order = (what) => fs.writeFileSync(control, what);
    /** [{ what: "begin" | "sync" | "failed" | "send", fd, path, good }] since the last forget(). */
    gateway.eventsNow = () => fs.readFileSync(trace, "latin1").trim().split("\n").filter(Boolean).map((line) => {
      const [what, fd, third, good] = line.split(" ");
      return what === "send" ? { what, fd, good: good === "1" } : { what, fd, path: third };
    });
    // A line is written after its event: when another request is answered, the line is there.
    const settle = () => gateway.get("/nothing-here", { key: null });
    gateway.trace = async () => { await settle(); return gateway.eventsNow(); };
    gateway.forget = async () => { await settle(); fs.truncateSync(trace); };
    return gateway;
  }
  const ofLog = ({ what, path: file, good }) => (what === "send" ? good : file.endsWith("-wal"));

  test("no 2xx of a trigger leaves before a sync that began after its request has returned", async (t) => {
    const gateway = await shimmed(t);
    await gateway.forget();
    let done = 0;
    await Promise.all(Array.from({ length: 16 }, async () => {
      for (let i = 0; i < 25; i++) if ((await trigger(gateway)).status === 200) done++;
    }));
    assert.equal(done, 400);
    const lastOf = new Map(); // fd -> index of its last response
    let begun = -1, covered = -1, judged = 0; // covered: the begin of the newest sync that returned
    for (const [place, { what, fd }] of (await gateway.trace()).filter(ofLog).entries()) {
      if (what === "begin") begun = place;
      else if (what === "sync") covered = begun;
      else {
        assert.ok(covered > (lastOf.get(fd) ?? -1), `answer ${judged} on ${fd} at ${place}: the last sync that returned began at ${covered}`);
        lastOf.set(fd, place);
        judged++;
      }
    }
    assert.equal(judged, 400);
    await gateway.stop();
  });

  test("writes that arrive during a sync wait for the next one", async (t) => {
    const gateway = await shimmed(t);
    await trigger(gateway); // the connection is open, and the log exists
    gateway.order("delay 400");
    await gateway.forget();
    const first = trigger(gateway);
    await until(() => gateway.eventsNow().some(({ what }) => what === "begin"));
    const second = trigger(gateway);
    await Promise.all([first, second]);
    const events = (await gateway.trace()).filter(ofLog);
    const syncsBefore = events.flatMap(({ what }, i) => (what === "send" ? events.slice(0, i).filter((one) => one.what === "sync").length : []));
    assert.deepEqual(syncsBefore, [1, 2]);
    gateway.order("ok");
    await gateway.stop();
  });

  test("a slow disk makes responses late, and nothing else", async (t) => {
    const gateway = await shimmed(t);
    const { json: { id } } = await trigger(gateway);
    gateway.order("delay 1000");
    const began = Date.now();
    let answered = false;
    const writing = trigger(gateway).then((reply) => { answered = true; return reply; });
    assert.equal((await gateway.get(`/api/v3/runs/${id}`)).status, 200);
    assert.equal((await gateway.get("/api/v1/runs")).status, 200);
    assert.equal((await gateway.get("/readyz")).status, 200);
    assert.equal(answered, false, "reads do not wait for the disk");
    assert.equal((await writing).status, 200);
    assert.ok(Date.now() - began >= 1000);
    gateway.order("ok");
    await gateway.stop();
  });

  /** Nothing is acknowledged while the order is in force; reads and feeds continue; the gateway recovers by itself. */
  async function outage(t, order, reason) {
    const gateway = await shimmed(t);
    const kept = (await trigger(gateway, { tags: ["kept"] })).json.id;
    const socket = await RunsSocket.open({ port: gateway.port, token: keys.dev, hello: {} });
    socket.send({ op: "sub", id: 1, tags: ["kept"] });
    await socket.next("rows");
    gateway.order(order);
    const refused = await trigger(gateway, { tags: ["refused"] }, "x".repeat(50_000));
    assert.equal(refused.status, 503, refused.text);
    assert.match(refused.json.error, new RegExp(reason));
    assert.ok(refused.headers["retry-after"]);
    for (let i = 0; i < 5; i++) assert.equal((await trigger(gateway, { tags: ["refused"] }, "x".repeat(50_000))).status, 503);
    assert.equal((await gateway.post(`/api/v1/runs/${kept}/tags`, { tags: ["never"] })).status, 503);
    const ready = await gateway.get("/readyz");
    assert.deepEqual([ready.status, ready.json.reasons], [503, [reason]]);
    assert.equal((await gateway.get("/healthz")).status, 200);
    assert.equal((await gateway.get(`/api/v3/runs/${kept}`)).status, 200);
    assert.equal((await gateway.get("/api/v1/runs?filter[tag]=kept")).json.data.length, 1);
    socket.send({ op: "sub", id: 2, run: kept });
    const { rows: [[, , fields]] } = await socket.next((message) => message.op === "rows" && message.id === 2);
    assert.deepEqual(fields.tags, ["kept"], "a refused write is not sent to subscribers");

    gateway.order("ok");
    await until(async () => (await gateway.get("/readyz")).status === 200, { what: "ready again" });
    const later = await trigger(gateway, { tags: ["kept"] });
    assert.equal(later.status, 200, later.text);
    const patch = await socket.next("patch");
    assert.deepEqual(patch.rows.map(([id]) => id), [later.json.id]);
    await gateway.kill();
    await gateway.restart();
    const runs = await everyRun(gateway);
    assert.ok(runs.has(kept) && runs.has(later.json.id));
    const { status, text } = await trigger(gateway, { tags: ["kept"] });
    assert.equal(status, 200, text);
    await gateway.stop();
    return runs;
  }

  test("a sync that fails: 503 and not ready, until syncs work again", async (t) => {
    await outage(t, "eio", "storage_unavailable");
  });

  test("no space: 503 storage_full, until there is space again", async (t) => {
    const runs = await outage(t, "enospc", "storage_full");
    assert.ok(![...runs.values()].some((tags) => tags.includes("refused") || tags.includes("never")), "nothing was written");
  });

  test("a failure in the middle of a load: each call is acknowledged and there, or refused", async (t) => {
    const gateway = await shimmed(t);
    const acknowledged = [], statuses = new Set();
    let over = false, refused = 0;
    const writing = Promise.all(Array.from({ length: 8 }, async () => {
      while (!over) {
        const { status, json } = await trigger(gateway);
        statuses.add(status);
        if (status === 503) refused++;
        if (status === 200) acknowledged.push(json.id);
        else await sleep(10); // before the next try
      }
    }));
    await until(() => acknowledged.length > 50);
    gateway.order("eio");
    await until(() => statuses.has(503));
    const count = acknowledged.length, before = refused;
    await until(() => refused >= before + 50, { what: "fifty more are refused" });
    assert.equal(acknowledged.length, count, "no acknowledgement without a sync");
    gateway.order("ok");
    await until(() => acknowledged.length > count + 50);
    over = true;
    await writing;
    assert.deepEqual([...statuses].sort(), [200, 503]);
    await gateway.kill();
    await gateway.restart();
    const runs = await everyRun(gateway);
    for (const id of acknowledged) assert.ok(runs.has(id), `${id} was acknowledged`);
    await gateway.stop();
  });
});

/** A program that mounts something, which only it sees, and then becomes the gateway; undefined without the right to
 * mount. */
function mounting(what, folder) {
  const mount = (then) => ["-m", "sh", "-c", `mount ${what} ${folder} && ${then}`];
  try {
    execFileSync("unshare", mount("true"), { stdio: "ignore" });
  } catch {
    return undefined;
  }
  const program = path.join(temporaryFolder(), "runcast"), binary = process.env.GATEWAY_BIN ?? path.resolve("build-asan/runcast");
  fs.writeFileSync(program, `#!/bin/sh\nexec unshare -m sh -c 'mount ${what} ${folder} && exec ${binary} "$@"' sh "$@"\n`, { mode: 0o755 });
  return program;
}

test("a full disk of a real file system behaves the same", async (t) => {
  const folder = path.join(temporaryFolder(), "disk");
  fs.mkdirSync(folder);
  const binary = mounting("-t tmpfs -o size=6m none", folder);
  if (!binary)
    return t.diagnostic("no right to mount a small disk here: the shim's ENOSPC stands for it");
  const gateway = await startGateway({ t, binary, data: path.join(folder, "data") });
  const ballast = path.join(`/proc/${gateway.pid}/root`, folder, "ballast");
  fs.writeFileSync(ballast, Buffer.alloc(2_500_000, 1));
  const there = [];
  let refused;
  for (let i = 0; i < 200 && !refused; i++) {
    const reply = await trigger(gateway, undefined, "x".repeat(100_000));
    if (reply.status === 200) there.push(reply.json.id);
    else refused = reply;
  }
  assert.equal(refused?.status, 503);
  assert.equal(refused.json.error, "storage_full");
  assert.ok(there.length > 5, `${there.length} fitted`);
  assert.deepEqual((await gateway.get("/readyz")).json.reasons, ["storage_full"]);
  for (const id of there) assert.equal((await gateway.get(`/api/v3/runs/${id}`)).status, 200);
  fs.rmSync(ballast);
  await until(async () => (await gateway.get("/readyz")).status === 200, { what: "recovery" });
  const reply = await trigger(gateway, undefined, "small");
  assert.equal(reply.status, 200, reply.text);
  await gateway.stop();
});

// The file system is shut down without writing what was not synced (FS_IOC_SHUTDOWN without the log): at the next mount
// it is as after a loss of power. A sync in progress at that moment returns success although nothing is written, so an
// answer given just then proves nothing.
test(`${powers} times the power is lost under load: what was acknowledged is there`, { timeout: 60_000 + powers * 20_000 }, async (t) => {
  const disk = temporaryFolder(), folder = path.join(disk, "mounted"), image = path.join(disk, "image");
  fs.mkdirSync(folder);
  fs.writeFileSync(image, "");
  fs.truncateSync(image, 256 << 20);
  const run = (program, ...args) => promisify(execFile)(program, args, { env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` } });
  await run("mkfs.ext4", "-q", "-F", image).catch(() => {});
  const binary = mounting(`-t ext4 -o loop ${image}`, folder);
  if (!binary)
    return t.diagnostic("no right to mount a disk here: the shim's syncs stand for it");
  const unmounted = () => until(async () => !(await run("losetup", "-j", image)).stdout, { what: "the end of the mount" });
  await unmounted();
  const random = new Random(chooseSeed(t));
  const gateway = await startGateway({ t, binary, data: path.join(folder, "data") });
  const load = new Load(gateway, random);

  async function losePower() {
    load.disk = "failing";
    await run("python3", "-c", `import fcntl, os, struct
fcntl.ioctl(os.open("/proc/${gateway.pid}/root${folder}", os.O_RDONLY), 0x8004587d, struct.pack("I", 2))`);
    load.disk = "failed";
    await sleep(random.below(50)); // without a disk for that long
    await gateway.kill();
    await unmounted();
  }
  await losePower(); // directly after the first start: keys, accounts and the database are there
  await gateway.restart();
  load.disk = "working";
  await load.begin();
  for (let i = 0; i < powers; i++) {
    const writing = load.run();
    await sleep(20 + random.below(200)); // any moment
    await losePower();
    load.stopped = true;
    await writing;
    await gateway.restart();
    load.disk = "working";
    await load.judge();
  }
  t.diagnostic(`${load.acknowledged.size} acknowledged runs of ${load.sent.size} calls`);
  assert.ok(load.acknowledged.size > powers * 5);
  await gateway.stop();
});

test("payload, output and metadata come back byte for byte, from memory and from disk", async (t) => {
  const gateway = await startGateway({ t, options: ["--memory", "1m"] });
  const worker = await Worker.register(gateway, { tasks: ["bytes"] });
  const values = ["12345678901234567890", "1e400", "-1e-400", "0.1", "-0", "0.10000000000000000000000001", '{"a":1,"a":2,"b":{"a":3}}', '"\\u0000"',
    '"\\/\\u00e9é\\n"', "[]", "{}", "null", "false", `[${"[".repeat(50)}${"]".repeat(50)}]`, '{"":0," ":[ 1 ]}', JSON.stringify("ü".repeat(100_000))];
  const runs = [];
  for (const value of values) {
    const { status, json, text } = await gateway.post("/api/v1/tasks/bytes/trigger", `{"payload":${value},"options":{"metadata":{"v":${value.slice(0, 1000) === value ? value : 1}}}}`);
    assert.equal(status, 200, `${value.slice(0, 60)}: ${text}`);
    const attempt = await worker.take(json.id);
    await attempt.complete({ ok: true, output: value, outputType: "application/json" });
    runs.push({ id: json.id, value });
  }
  const check = async () => {
    for (const { id, value } of runs) {
      const { text } = await gateway.get(`/api/v3/runs/${id}`);
      assert.ok(text.includes(`"payload":${value},`), `payload ${value.slice(0, 60)} in ${text.slice(0, 300)}`);
      assert.ok(text.includes(`"output":${value},`), `output ${value.slice(0, 60)}`);
      if (value.length <= 1000) assert.ok(text.includes(`"metadata":{"v":${value}}`), `metadata ${value.slice(0, 60)}`);
      const result = await gateway.get(`/api/v1/runs/${id}/result`);
      assert.equal(result.json.output, value);
    }
  };
  await check();
  for (let i = 0; i < 40; i++) { // finished runs have to leave memory
    await gateway.post("/api/v1/tasks/bytes/trigger", {});
    const attempt = await worker.take();
    await attempt.succeed("z".repeat(100_000));
  }
  await check();
  await gateway.kill();
  await gateway.restart();
  await check();
  await gateway.stop();
});
