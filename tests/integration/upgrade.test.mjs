// Data directories of earlier versions: this gateway opens them, and everything reads as before. Those of development
// versions are refused and stay unchanged.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";

import { asOfFixture, fixtureOptions, openFixture, polls, withoutNewMembers, withoutReasons } from "../support/js/fixture.mjs";
import { keys, startGateway, temporaryFolder } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";
import { RunsSocket } from "../support/js/runs.mjs";

const sql = (data, text) => execFileSync("python3", ["-c",
  "import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); print(d.execute(sys.argv[2]).fetchone()); d.commit()", path.join(data, "runcast.db"), text], { encoding: "utf8" });

/** Opens a copy with the clock at the time when it was made, so that nothing is due. */
async function open(t, name) {
  const { data, seen } = openFixture(name);
  const clock = path.join(temporaryFolder(), "clock");
  fs.writeFileSync(clock, String(seen.madeAt - Date.now()));
  const gateway = await startGateway({ t, data, options: fixtureOptions, preload: "shim_clock", env: { SHIM_CLOCK: clock } });
  return { gateway, data, seen };
}

/** Removes what a signed URL contains of the second in which it was made. */
const timeless = (text) => text.replace(/expires=\d+&signature=[\w-]+/g, "expires&signature");

/** The names and contents of the files of a folder. */
const contents = (folder) => Object.fromEntries(fs.readdirSync(folder).sort().map((name) => [name, fs.readFileSync(path.join(folder, name), "base64")]));

describe("a data directory of version 100", () => {
  test("every run, batch, token, schedule, variable and branch reads as before, also after the next start", async (t) => {
    const { gateway, seen } = await open(t, "data_100");
    for (const start of ["first", "second"]) {
      for (const answer of seen.answers) {
        const { status, text } = await asOfFixture(gateway, answer);
        assert.deepEqual({ status, text: timeless(withoutNewMembers(withoutReasons(text))) }, { status: answer.status, text: timeless(answer.text) }, `${start}: ${answer.call}`);
      }
      await gateway.stop();
      if (start === "first") await gateway.restart();
    }
  });

  test("clients resume from their epochs and positions", async (t) => {
    const { gateway, seen } = await open(t, "data_100");
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

  test("can be backed up and checked, and a restore has an epoch of its own", async (t) => {
    const { data, seen } = openFixture("data_100"), folder = temporaryFolder(), backup = path.join(folder, "backup"), restored = path.join(folder, "data");
    for (const words of [["db", "check", "--data", data], ["db", "stats", "--data", data], ["backup", backup, "--data", data], ["restore", backup, "--data", restored], ["db", "check", "--data", restored]]) {
      const end = await runProgram(words);
      assert.equal(end.code, 0, `${words}: ${end.all}`);
    }
    assert.match(sql(restored, "PRAGMA user_version"), /\(100,\)/);
    for (const text of ["SELECT group_concat(id) FROM run", "SELECT sum(length(body)) FROM document"]) assert.equal(sql(restored, text), sql(data, text), text);
    const gateway = await startGateway({ t, data: restored, options: fixtureOptions });
    const socket = await RunsSocket.open({ port: gateway.port, token: keys.dev, hello: {} });
    assert.notEqual((await socket.next("welcome")).epoch, seen.position.epoch);
    socket.cut();
    await gateway.stop();
  });

  test("unfinished work continues", async (t) => {
    const { gateway } = await open(t, "data_100");
    const { json } = await gateway.post("/api/v1/tasks/hello/trigger", { payload: 1, options: { idempotencyKey: "fixture-key" } });
    assert.equal(json.isCached, true);
    const made = await gateway.post("/api/v1/tasks/hello/trigger", { payload: 1, options: { tags: ["fixture"] } });
    assert.equal(made.status, 200, made.text);
    assert.equal((await gateway.get("/api/v1/runs?filter[tag]=fixture&page[size]=1")).json.data[0].id, made.json.id);
    await gateway.stop();
  });
});

describe("a data directory of a development version", () => {
  const made = /made by a development version of runcast; this version cannot open it/;
  const oldest = () => {
    const data = path.join(temporaryFolder(), "data");
    fs.mkdirSync(data, { mode: 0o700 });
    for (const text of ["PRAGMA application_id = 1919115635", "CREATE TABLE meta (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID", "PRAGMA user_version = 1"]) sql(data, text);
    fs.chmodSync(path.join(data, "runcast.db"), 0o600);
    return data;
  };
  for (const [version, make] of [[1, oldest], [6, () => openFixture("data_6").data]]) {
    test(`of version ${version} is refused in one sentence, by the gateway and by subcommands, and nothing in it changes`, async (t) => {
      const data = make(), before = contents(data), folder = temporaryFolder();
      const gateway = await startGateway({ t, data, options: fixtureOptions, ready: false });
      assert.equal((await gateway.ended()).code, 1);
      assert.match(gateway.stderr, made);
      for (const words of [["db", "check", "--data", data], ["db", "stats", "--data", data], ["backup", path.join(folder, "backup"), "--data", data]]) {
        const end = await runProgram(words);
        assert.notEqual(end.code, 0, `${words}`);
        assert.match(end.all, made, `${words}`);
      }
      assert.deepEqual(contents(data), before);
    });
  }
});

test("a data directory of a newer version is refused with the reason", async (t) => {
  const { data } = openFixture("data_100");
  sql(data, "PRAGMA user_version = 1000");
  const before = fs.readFileSync(path.join(data, "runcast.db"));
  const gateway = await startGateway({ t, data, ready: false });
  assert.equal((await gateway.ended()).code, 1);
  assert.match(gateway.stderr, /was written by a newer runcast \(schema 1000, this one knows \d+\); run that version, or restore an older backup/);
  assert.deepEqual(fs.readFileSync(path.join(data, "runcast.db")), before);
});
