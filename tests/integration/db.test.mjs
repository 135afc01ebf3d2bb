// runcast db check and runcast db stats: with a running gateway and without one, and what they find.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { Builder, Deployer } from "../support/js/deployments.mjs";
import { keys, startGateway, temporaryFolder } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";

const options = ["--deploy-hold", "2s", "--dequeue-wait", "1s"];
const sql = (data, ...texts) => execFileSync("python3", ["-c",
  "import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); [d.execute(text) for text in sys.argv[2:]]; d.commit()", path.join(data, "runcast.db"), ...texts]);
const hashOf = (file) => createHash("sha256").update(fs.readFileSync(file)).digest("hex");
const check = (data, more) => runProgram(["db", "check", "--data", data], { timeoutMs: 60_000, ...more });

/** Runs the program with a clock that is ahead. */
function later(ms) {
  const clock = path.join(temporaryFolder(), "clock");
  fs.writeFileSync(clock, String(ms));
  return { preload: "shim_clock", env: { SHIM_CLOCK: clock } };
}

/** A gateway with runs, a variable and a deployed version. */
async function begin(t) {
  const gateway = await startGateway({ t, options });
  for (let i = 0; i < 40; i++) assert.equal((await gateway.post("/api/v1/tasks/hello/trigger", { payload: "x".repeat(9000), options: { tags: ["a"] } })).status, 200);
  assert.equal((await gateway.post(`/api/v1/projects/${keys.ref}/envvars/dev/import`, { variables: { V: "kept" } })).status, 200);
  const builder = await Builder.start(gateway), answer = new Deployer(gateway).deploy();
  const { deployment } = await builder.build();
  await answer;
  return { gateway, data: gateway.data, archive: `deployments/${deployment.id}.tar.gz` };
}

/** Changes a copy of the data of a stopped gateway. */
function changed(data, change) {
  const copy = path.join(temporaryFolder(), "data");
  fs.cpSync(data, copy, { recursive: true });
  change(copy);
  return copy;
}

test("check reports nothing for sound data, with a running gateway and without one, and changes nothing", async (t) => {
  const { gateway, data } = await begin(t);
  const beside = await check(data);
  assert.deepEqual([beside.code, beside.stdout, beside.stderr], [0, `no damage was found in ${data}\n`, ""]);
  assert.equal((await gateway.post("/api/v1/tasks/hello/trigger", { payload: 1 })).status, 200);
  await gateway.kill();
  const left = fs.readdirSync(data).filter((name) => /^runcast\.db(-wal)?$|^encryption/.test(name)).map((name) => [name, hashOf(path.join(data, name))]);
  const alone = await check(data);
  assert.deepEqual([alone.code, alone.stdout], [0, `no damage was found in ${data}\n`], alone.all);
  assert.deepEqual(left.map(([name]) => [name, hashOf(path.join(data, name))]), left);
  await gateway.restart();
  await gateway.stop();
  const none = await check(path.join(temporaryFolder(), "nothing"));
  assert.equal(none.code, 1);
  assert.match(none.stderr, /there is no runcast data/);
  const loop = path.join(temporaryFolder(), "data");
  fs.symlinkSync(loop, loop);
  for (const words of [["keys"], ["db", "check"]])
    assert.match((await runProgram([...words, "--data", loop])).stderr, /cannot look for runcast data in .*: Too many levels of symbolic links/);
});

test("check names damaged, missing and orphaned data, one per line, with what to do", async (t) => {
  const { gateway, data, archive } = await begin(t);
  await gateway.stop();
  const stray = "deployments/deployment_123456789abcdefghijkm.log";
  const cases = {
    "a missing archive": [(copy) => fs.rmSync(path.join(copy, archive)), new RegExp(`^${archive} is missing; copy it from a backup, or deploy that version again\n$`)],
    "a damaged archive": [(copy) => fs.appendFileSync(path.join(copy, archive), "x"), new RegExp(`^${archive} is damaged; copy it from a backup, or deploy that version again\n$`)],
    "a missing index": [(copy) => fs.rmSync(path.join(copy, archive.replace(".tar.gz", ".index.json"))), /^deployments\/\S+\.index\.json is missing; copy it from a backup/],
    "a file of nobody": [(copy) => fs.writeFileSync(path.join(copy, stray), "x"), new RegExp(`^${stray} belongs to no deployment; the next start of the gateway removes it\n$`), later(120_000)],
    "another key": [(copy) => fs.writeFileSync(path.join(copy, "encryption.key"), `${"ab".repeat(32)}\n`), /^cannot decrypt .*: it is sealed with another encryption key, which is [0-9a-f]{8}, not with [0-9a-f]{8}; put the right one back as [^\n]*\/encryption\.key\n/],
    "no key": [(copy) => fs.rmSync(path.join(copy, "encryption.key")), /encryption key missing: the database is sealed with another one, which is [0-9a-f]{8}; put it back/],
    "a sealed value that was exchanged": [(copy) => sql(copy, "UPDATE document SET version = version + 1 WHERE kind = 11"), /^cannot decrypt variable V of environment \S+ although the encryption key is right: the database was changed or damaged; restore a backup\n$/],
    "rows of no run": [(copy) => sql(copy, "INSERT INTO run_payload (env, id) VALUES (1, 'run_x'), (1, 'run_y')"), /^2 rows of run_payload belong to no run and only use space; /],
    "an index that lacks a row": [(copy) => sql(copy, "PRAGMA writable_schema = ON", "DELETE FROM sqlite_schema WHERE name = 'run_task'"), /^the database is damaged: .*; restore a backup\n/],
  };
  for (const [what, [change, said, more]] of Object.entries(cases)) {
    const end = await check(changed(data, change), more);
    assert.equal(end.code, 1, `${what}: ${end.all}`);
    assert.match(end.stdout, said, what);
    assert.match(end.stderr, /^runcast: \d+ findings? in /, what);
  }
  // A young file may still get its row.
  assert.equal((await check(changed(data, (copy) => fs.writeFileSync(path.join(copy, stray), "x")))).code, 0);
  // Pages of the database are overwritten: check reports it, whatever the damage is.
  const broken = await check(changed(data, (copy) => {
    const file = fs.openSync(path.join(copy, "runcast.db"), "r+");
    for (let page = 3; page * 8192 < fs.fstatSync(file).size; page += 4) fs.writeSync(file, Buffer.alloc(200, 0xff), 0, 200, page * 8192);
    fs.closeSync(file);
  }));
  assert.equal(broken.code, 1, broken.all);
  assert.match(broken.all, /damaged|malformed/);
});

test("triggers, views and names in a database are neither executed nor passed to a terminal", async (t) => {
  const { gateway, data } = await begin(t);
  await gateway.stop();
  const trigger = changed(data, (copy) => sql(copy, "CREATE TRIGGER t AFTER UPDATE ON meta BEGIN INSERT INTO meta VALUES ('carried', 'out'); END"));
  assert.equal((await runProgram(["restored", "--data", trigger])).code, 0);
  const carried = execFileSync("python3", ["-c", "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute(\"SELECT count(*) FROM meta WHERE name = 'carried'\").fetchone()[0])",
    path.join(trigger, "runcast.db")], { encoding: "utf8" });
  assert.equal(carried.trim(), "0");

  const views = changed(data, (copy) => sql(copy, "ALTER TABLE document RENAME TO documents",
    `CREATE VIEW document AS SELECT 1 AS kind, 1 AS env, 'n' AS name, 1 AS version, x'7b7d' AS body FROM ${[..."abcdefgh"].map((one) => `documents ${one}`)}`));
  for (const words of [["db", "check"], ["db", "stats"], ["backup", path.join(temporaryFolder(), "backup")]]) {
    const end = await runProgram([...words, "--data", views], { timeoutMs: 60_000 });
    assert.equal(end.code, 1, words.join(" "));
    assert.match(end.stderr, /view/, words.join(" "));
  }

  const names = changed(data, (copy) => {
    sql(copy, 'CREATE TABLE "a\x1b[2Jb"(x)', 'CREATE TABLE "c"" WHERE 0 UNION SELECT 4242 --"(x)');
    fs.writeFileSync(path.join(copy, "deployments/\x1b]0;d\x07"), "x");
  });
  const stats = await runProgram(["db", "stats", "--data", names]);
  assert.equal(stats.code, 0, stats.all);
  assert.match(stats.stdout, /\n {2}a\?\[2Jb +0 rows/);
  assert.match(stats.stdout, /\n {2}c" WHERE 0 UNION SELECT 4242 -- +0 rows/);
  assert.equal(JSON.parse((await runProgram(["db", "stats", "--json", "--data", names])).stdout).tables.filter(({ name }) => name === "a\x1b[2Jb").length, 1);
  assert.match((await check(names, later(120_000))).stdout, /^deployments\/\?\]0;d\? belongs to no deployment/);
});

test("stats names an environment as paths of the API do", async (t) => {
  const { gateway, data } = await begin(t);
  assert.equal((await gateway.post("/api/v1/tasks/hello/trigger", {}, { key: keys.staging })).status, 200);
  const { environments } = JSON.parse((await runProgram(["db", "stats", "--json", "--data", data])).stdout);
  const names = environments.map(({ name }) => name), own = ["dev", "prod", "staging", "preview"].map((name) => `${keys.ref}/${name}`);
  assert.deepEqual(own.slice(0, 3).filter((name) => !names.includes(name)), []);
  assert.deepEqual(names.filter((name) => !own.includes(name)), []);
});

test("stats counts bytes, tables, runs by environment and status, and what retention removes", async (t) => {
  const { gateway, data } = await begin(t);
  const ids = (await gateway.get("/api/v1/runs?page[size]=3")).json.data.map(({ id }) => id);
  for (const id of ids) assert.equal((await gateway.post(`/api/v2/runs/${id}/cancel`)).status, 200);
  const stats = (words = [], more) => runProgram(["db", "stats", "--data", data, ...words], more);
  const asJson = async (words, more) => {
    const end = await stats(["--json", ...words ?? []], more);
    assert.equal(end.code, 0, end.all);
    return JSON.parse(end.stdout);
  };
  const beside = await asJson();
  const dev = beside.environments[0], table = (name) => beside.tables.find((one) => one.name === name);
  assert.equal(dev.name, `${keys.ref}/dev`);
  assert.deepEqual(dev.runs, { QUEUED: 37, CANCELED: 3 });
  assert.ok(dev.storedBytes > 40 * 9000, "as the quota counts");
  assert.deepEqual(beside.environments.map(({ storedBytes }) => storedBytes).sort((a, b) => b - a), beside.environments.map(({ storedBytes }) => storedBytes), "the largest first");
  assert.equal(table("run").rows, 40);
  assert.ok(table("run_payload").bytes > 40 * 9000);
  assert.equal(beside.tables.reduce((sum, { bytes }) => sum + bytes, 0) <= beside.fileBytes, true);
  assert.ok(beside.logBytes > 0);
  assert.deepEqual([beside.deploymentFiles, beside.endedRunsToRemove, beside.bytesToRemove], [2, 0, 0]);

  const month = await asJson([], later(31 * 24 * 3600_000));
  assert.equal(month.endedRunsToRemove, 3);
  assert.ok(month.bytesToRemove > 3 * 9000 && month.bytesToRemove < 3 * 9000 + 10_000, month.bytesToRemove);
  const kept = await asJson(["--retain", "0"], later(31 * 24 * 3600_000));
  assert.deepEqual([kept.retainMs, "endedRunsToRemove" in kept], [0, false]);

  const { code, stdout } = await stats();
  assert.equal(code, 0);
  assert.match(stdout, /^database +schema \d+, epoch [0-9a-f]{16}\n/);
  assert.match(stdout, new RegExp(`\n  ${keys.ref}/dev: [\\d.]+ KiB, (37 QUEUED, 3 CANCELED|3 CANCELED, 37 QUEUED)\n`));
  assert.match(stdout, /\nretention +0 ended runs are older than retain \(30d\), 0 B: /);
  await gateway.stop();
  assert.deepEqual((await asJson()).environments[0].runs, dev.runs, "and without a gateway");
  for (const [words, said] of [
    [["db"], "db: incomplete; use runcast db check or stats (runcast help db explains them)"], [["db", "vacuum"], "db vacuum: not a command; runcast help db lists its commands"],
    [["db", "check", "--json"], "--json: not an option of runcast db check; runcast help db lists them"], [["db", "stats", "more"], "more: not for runcast db stats; runcast help db explains it"],
  ]) {
    const end = await runProgram([...words, "--data", data]);
    assert.deepEqual([end.code, end.stderr], [2, `runcast: ${said}\n`]);
  }
});
