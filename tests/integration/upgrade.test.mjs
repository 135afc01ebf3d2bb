// Data directories of released gateways: opened by this one, everything reads as before.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";

import { asOfFixture, fixtureOptions, openFixture, polls } from "../support/fixture.mjs";
import { keys, startGateway, temporaryFolder } from "../support/gateway.mjs";
import { RunsSocket } from "../support/runs.mjs";

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

/** As it is shown today: then a run that waited was counted as running in its queue. */
function today(call, text) {
  if (!call.startsWith("/api/v1/queues")) return text;
  const waiting = { hello: 2, parent: 1 };
  return text.replace(/"name":"(\w+)","type":"task","running":(\d+)/g, (all, name, running) =>
    all.replace(/\d+$/, running - (waiting[name] ?? 0)));
}

/** Without what a signed URL has of the second in which it was asked for. */
const timeless = (text) => text.replace(/expires=\d+&signature=[\w-]+/g, "expires&signature");

/** Without what was not shown of a run then. In prod and preview, which have no version there,
 *  what was queued waits for one since the start. */
function asThen(key, text) {
  const shown = text.replace(/"number":\d+,|"queuedAt":"[^"]*",/g, "");
  if (![keys.prod, keys.preview].includes(key)) return shown;
  return shown.replace(/("status":)"(?:WAITING_FOR_DEPLOY|QUEUED)"/g, '$1"QUEUED"').replace(/"updatedAt":"[^"]*"/g, '"updatedAt"');
}

describe("a data directory of version 6", () => {
  test("every run, batch, token, schedule, variable and branch reads as before, also after the next start", async (t) => {
    const { gateway, seen } = await open(t, "data_6");
    for (const start of ["first", "second"]) {
      for (const { key, call, branch, status, text } of seen.answers) {
        const now = await asOfFixture(gateway, { key, call, branch });
        assert.deepEqual({ ...now, text: asThen(key, timeless(now.text)) }, { status, text: asThen(key, timeless(today(call, text))) }, `${start}: ${call}`);
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
    assert.match(sql(data, "PRAGMA user_version"), /\(8,\)/);
    fs.copyFileSync(copy, path.join(data, "runcast.db"));
    for (const text of ["PRAGMA user_version", "SELECT value FROM meta WHERE name = 'epoch'", "SELECT group_concat(id) FROM run", "SELECT sum(length(body)) FROM document"])
      assert.equal(sql(data, text), sql(old, text), text);
    assert.deepEqual(fs.readdirSync(data).filter((name) => name.endsWith(".part")), []);
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

test("a data directory of a version to come is refused in words", async (t) => {
  const { data } = openFixture("data_6");
  sql(data, "PRAGMA user_version = 99");
  const before = fs.readFileSync(path.join(data, "runcast.db"));
  const gateway = await startGateway({ t, data, ready: false });
  assert.equal((await gateway.ended()).code, 1);
  assert.match(gateway.stderr, /was written by a newer runcast \(schema 99, this one knows \d+\): run that version, or restore an older backup/);
  assert.deepEqual(fs.readFileSync(path.join(data, "runcast.db")), before);
});
