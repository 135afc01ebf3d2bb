// Data directories of released gateways: opened by this one, everything reads as before.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";

import { asOfFixture, fixtureOptions, openFixture, polls, withoutReasons } from "../support/js/fixture.mjs";
import { keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";
import { RunsSocket } from "../support/js/runs.mjs";

const sql = (data, text) => execFileSync("python3", ["-c",
  "import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); print(d.execute(sys.argv[2]).fetchone()); d.commit()", path.join(data, "runcast.db"), text], { encoding: "utf8" });

/** Opens a copy at the time at which it was made: nothing is due. */
async function open(t, name) {
  const { data, seen } = openFixture(name);
  const clock = path.join(temporaryFolder(), "clock");
  fs.writeFileSync(clock, String(seen.madeAt - Date.now()));
  const gateway = await startGateway({ t, data, options: fixtureOptions, preload: "shim_clock", env: { SHIM_CLOCK: clock } });
  return { gateway, data, seen };
}

/** The text as it is today. Then a run that waited was counted as running in its queue, and what
 *  was queued in prod and preview, which have no version there, did not say that it waits for one:
 *  it does since the start. */
function today({ key, call, text }, now) {
  if (call.startsWith("/api/v1/queues")) {
    const waiting = { hello: 2, parent: 1 };
    return text.replace(/"name":"(\w+)","type":"task","running":(\d+)/g, (all, name, running) =>
      all.replace(/\d+$/, running - (waiting[name] ?? 0)));
  }
  if (![keys.prod, keys.preview].includes(key) || !text.includes('"status":"QUEUED"')) return text;
  const update = /"updatedAt":"([^"]*)"/, [then] = text.match(update).slice(1), [since] = now.match(update).slice(1);
  assert.ok(since > then, "its status was changed at the start");
  return text.replace('"status":"QUEUED"', '"status":"WAITING_FOR_DEPLOY"').replace(update, `"updatedAt":"${since}"`);
}

/** The answer to the same call, once the start has judged which runs wait for a version. */
function now(gateway, answer) {
  const judged = [keys.prod, keys.preview].includes(answer.key);
  return until(async () => {
    const said = await asOfFixture(gateway, answer);
    return judged && said.text.includes('"status":"QUEUED"') ? null : said;
  }, { what: `${answer.call} without a run that is queued and has no version` });
}

/** Without what a signed URL has of the second in which it was asked for. */
const timeless = (text) => text.replace(/expires=\d+&signature=[\w-]+/g, "expires&signature");

const reasons = { DELAYED: "delay", FROZEN: "waitpoint", REATTEMPTING: "retry", QUEUED: "no_worker", WAITING_FOR_DEPLOY: "version" };

/** The text without what runs and batches did not show in REST then: of a run it must be what
 *  realtime showed, or, of one that no row is there of, always the same. */
function asThen({ call }, text, rows) {
  if (/^\/api\/v\d\/batches\/[^/]+$/.test(call)) {
    const { runCount, counts } = JSON.parse(text);
    assert.equal(counts.total, runCount, call);
    return text.replace(`"counts":${JSON.stringify(counts)},`, "");
  }
  if (/^\/api\/v1\/queues/.test(call)) return text.replace(/"oldestQueuedAt":(null|"[^"]*"),/g, "");
  if (!/^\/api\/v\d\/runs(\?|$|\/[^/]+$)/.test(call)) return text;
  JSON.parse(text, (_key, run) => {
    if (!/^run_/.test(run?.id)) return run;
    const { number, queuedAt = null } = run;
    if (!rows.has(run.id)) rows.set(run.id, { number: String(number), queuedAt: queuedAt?.slice(0, -1) ?? null });
    const row = rows.get(run.id);
    assert.deepEqual([number, queuedAt], [Number(row.number), row.queuedAt && `${row.queuedAt}Z`], run.id);
    assert.ok(number > 0 && (queuedAt || /^(DELAYED|CANCELED)$/.test(run.status)), run.id);
    if (call.endsWith(`/${run.id}`) && run.attempts) assert.equal(run.waitingFor?.reason, reasons[run.status], run.id);
    return run;
  });
  const young = /^\/api\/v1\/runs(\?|$)/.test(call) ? /"(number|queuedAt|queue|batchId|attemptCount)":("[^"]*"|\d+),/g : /"(number|queuedAt|queue)":("[^"]*"|\d+),/g;
  return withoutReasons(text).replace(young, "");
}

describe("a data directory of version 6", () => {
  test("every run, batch, token, schedule, variable and branch reads as before, also after the next start", async (t) => {
    const { gateway, seen } = await open(t, "data_6");
    const rows = new Map(JSON.parse(seen.answers.find(({ call }) => call.startsWith("/realtime/")).text).map(({ key, value }) => [key, value]));
    for (const start of ["first", "second"]) {
      for (const answer of seen.answers) {
        const said = await now(gateway, answer);
        assert.deepEqual({ ...said, text: timeless(asThen(answer, said.text, rows)) }, { status: answer.status, text: timeless(today(answer, said.text)) }, `${start}: ${answer.call}`);
      }
      await gateway.stop();
      if (start === "first") await gateway.restart();
    }
  });

  test("clients resume from the epoch and the positions that they have", async (t) => {
    const { gateway, seen } = await open(t, "data_6");
    const { epoch, seq, base } = seen.position;
    const socket = await RunsSocket.open({ port: gateway.port, token: keys.dev, hello: {} });
    assert.equal((await socket.next("welcome")).epoch, epoch);
    socket.send({ op: "sub", id: 1, tags: ["fixture"], from: [epoch, seq, base] });
    assert.equal((await socket.next("ok")).mode, "resume");
    const { rows, more } = await socket.next("rows");
    assert.deepEqual([rows.map(([id, , fields]) => [id, fields.metadata]), !!more], [[[seen.changed, { changed: "after the position" }]], false]);
    socket.cut();

    const { status, json } = await gateway.get(`/realtime/v1/runs?tags=fixture&offset=${seen.poll.offset}&handle=${seen.poll.handle}`, { headers: polls });
    assert.equal(status, 200);
    assert.deepEqual(json.filter(({ key }) => key).map(({ key, headers }) => [key, headers.operation]), [[seen.changed, "update"]]);
    await gateway.stop();
  });

  test("is kept as it was beside what it became", async (t) => {
    const { gateway, data } = await open(t, "data_6");
    const old = openFixture("data_6").data, copy = path.join(data, "runcast.db.schema-6");
    await gateway.stop();
    assert.equal(fs.statSync(copy).mode & 0o777, 0o600);
    assert.match(sql(data, "PRAGMA user_version"), /\(13,\)/);
    fs.copyFileSync(copy, path.join(data, "runcast.db"));
    for (const text of ["PRAGMA user_version", "SELECT value FROM meta WHERE name = 'epoch'", "SELECT group_concat(id) FROM run", "SELECT sum(length(body)) FROM document"])
      assert.equal(sql(data, text), sql(old, text), text);
    assert.deepEqual(fs.readdirSync(data).filter((name) => name.endsWith(".part")), []);
  });

  test("is backed up and checked as it is, and put back with an epoch of its own", async (t) => {
    const { data, seen } = openFixture("data_6"), folder = temporaryFolder(), backup = path.join(folder, "backup"), restored = path.join(folder, "data");
    for (const words of [["db", "check", "--data", data], ["db", "stats", "--data", data], ["backup", backup, "--data", data], ["restore", backup, "--data", restored], ["db", "check", "--data", restored]]) {
      const end = await runProgram(words);
      assert.equal(end.code, 0, `${words}: ${end.all}`);
    }
    assert.match(sql(restored, "PRAGMA user_version"), /\(6,\)/);
    for (const text of ["SELECT group_concat(id) FROM run", "SELECT sum(length(body)) FROM document"]) assert.equal(sql(restored, text), sql(data, text), text);
    const gateway = await startGateway({ t, data: restored, options: fixtureOptions });
    const socket = await RunsSocket.open({ port: gateway.port, token: keys.dev, hello: {} });
    assert.notEqual((await socket.next("welcome")).epoch, seen.position.epoch);
    socket.cut();
    await gateway.stop();
  });

  test("what was under way goes on", async (t) => {
    const { gateway } = await open(t, "data_6");
    const { json } = await gateway.post("/api/v1/tasks/hello/trigger", { payload: 1, options: { idempotencyKey: "fixture-key" } });
    assert.equal(json.isCached, true);
    const made = await gateway.post("/api/v1/tasks/hello/trigger", { payload: 1, options: { tags: ["fixture"] } });
    assert.equal(made.status, 200, made.text);
    assert.equal((await gateway.get("/api/v1/runs?filter[tag]=fixture&page[size]=1")).json.data[0].id, made.json.id);
    await gateway.stop();
  });
});

test("of an upgrade that stopped between two steps one copy is kept, of what was there before the first", async (t) => {
  const { data } = openFixture("data_6"), old = openFixture("data_6").data;
  const copies = () => fs.readdirSync(data).filter((name) => name.includes(".schema-"));
  sql(data, "CREATE TABLE moved (in_the_way)");
  const stopped = await startGateway({ t, data, options: fixtureOptions, ready: false });
  assert.equal((await stopped.ended()).code, 1);
  assert.match(stopped.stderr, /table moved already exists/);
  assert.match(sql(data, "PRAGMA user_version"), /\(8,\)/);
  sql(data, "DROP TABLE moved");
  const gateway = await startGateway({ t, data, options: fixtureOptions });
  await gateway.stop();
  assert.match(sql(data, "PRAGMA user_version"), /\(13,\)/);
  assert.deepEqual(copies(), ["runcast.db.schema-6"]);
  fs.copyFileSync(path.join(data, "runcast.db.schema-6"), path.join(data, "runcast.db"));
  assert.equal(sql(data, "SELECT group_concat(id) FROM run"), sql(old, "SELECT group_concat(id) FROM run"));
  sql(data, "DROP TABLE moved");
  fs.rmSync(path.join(data, "runcast.db.schema-6"));
  await gateway.restart();
  await gateway.stop();
  assert.deepEqual(copies(), ["runcast.db.schema-6"], "who went back to it has one again");
});

test("a data directory of a version to come is refused in words", async (t) => {
  const { data } = openFixture("data_6");
  sql(data, "PRAGMA user_version = 99");
  const before = fs.readFileSync(path.join(data, "runcast.db"));
  const gateway = await startGateway({ t, data, ready: false });
  assert.equal((await gateway.ended()).code, 1);
  assert.match(gateway.stderr, /was written by a newer runcast \(schema 99, this one knows \d+\): run that version, or restore an older backup/);
  assert.deepEqual(fs.readFileSync(path.join(data, "runcast.db")), before);
});
