// Backups, made and put back by the own commands of deploy/README.md; and what a database says whose key is
// not beside it.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { keys, startGateway, temporaryFolder } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";
import { RunsSocket } from "../support/js/runs.mjs";

const readme = fs.readFileSync(new URL("../../deploy/README.md", import.meta.url), "utf8");
const binaries = path.resolve(process.env.GATEWAY_BIN ? path.dirname(process.env.GATEWAY_BIN) : new URL("../../build-asan", import.meta.url).pathname);
const variables = `/api/v1/projects/${keys.ref}/envvars/dev`;

/** Runs the indented block behind these words of the README in a folder that has data/. */
function runBlock(words, cwd) {
  assert.ok(readme.includes(words), `the README says: ${words}`);
  const script = readme.slice(readme.indexOf(words)).split("\n\n").find((text) => text.startsWith("    "));
  if (!fs.existsSync(path.join(cwd, "build"))) fs.symlinkSync(binaries, path.join(cwd, "build"));
  const end = spawnSync("bash", ["-ec", script], { cwd, encoding: "utf8" });
  assert.equal(end.status, 0, end.stderr);
}

async function startGatewayIn(t, folder, more = {}) {
  return startGateway({ t, data: path.join(folder, "data"), ...more });
}

async function setVariable(gateway, value) {
  const reply = await gateway.post(`${variables}/import`, { variables: { V: value }, override: true });
  assert.equal(reply.status, 200, reply.text);
}

async function checkVariable(gateway, value) {
  assert.equal((await gateway.get(`${variables}/V`)).json.value, value);
}

test("a database without its key is refused with the key's name, and no key is drawn in its place", async (t) => {
  const folder = temporaryFolder(), key = path.join(folder, "data/encryption.key");
  const gateway = await startGatewayIn(t, folder);
  await setVariable(gateway, "kept");
  await gateway.stop();
  fs.renameSync(key, path.join(folder, "safe"));

  const words = /there is a database, but not the encryption key that sealed it, which is [0-9a-f]{8}: put it back as \S+\/encryption\.key, or set it as RUNCAST_ENCRYPTION_KEY/;
  await gateway.restart({ ready: false });
  assert.equal((await gateway.ended()).code, 1);
  assert.match(gateway.stderr, words);
  const command = await runProgram(["keys", "--data", gateway.data]);
  assert.deepEqual([command.code, words.test(command.stderr)], [1, true], command.all);
  assert.deepEqual(fs.readdirSync(gateway.data).filter((name) => name.startsWith("encryption")), []);

  fs.renameSync(path.join(folder, "safe"), key);
  await gateway.restart();
  await checkVariable(gateway, "kept");
  await gateway.stop();
});

test("a backup made while the gateway runs is put back, also one from before the key was rotated", async (t) => {
  const folder = temporaryFolder(), data = path.join(folder, "data");
  let gateway = await startGatewayIn(t, folder);
  await setVariable(gateway, "before");
  const { id } = (await gateway.post("/api/v1/tasks/hello/trigger", { payload: "1" })).json;
  runBlock("While the gateway runs:", folder);
  const first = fs.readFileSync(path.join(data, "encryption.key"), "utf8");
  assert.equal((await runProgram(["vault", "rotate", "--data", data])).code, 0);
  await setVariable(gateway, "after");
  const kept = fs.readdirSync(data).filter((name) => /^encryption\.key\.[0-9a-f]{8}$/.test(name));
  assert.equal(kept.length, 1);
  assert.equal(fs.readFileSync(path.join(data, kept[0]), "utf8"), first);
  assert.equal((fs.statSync(path.join(data, kept[0])).mode & 0o777).toString(8), "600");
  await gateway.stop();

  // The whole of it elsewhere, as after the loss of a machine.
  const elsewhere = temporaryFolder();
  fs.cpSync(path.join(folder, "backup"), path.join(elsewhere, "backup"), { recursive: true });
  runBlock("To put it back", elsewhere);
  gateway = await startGatewayIn(t, elsewhere);
  await checkVariable(gateway, "before");
  assert.equal((await gateway.get(`/api/v3/runs/${id}`)).json.id, id);
  await gateway.stop();

  // The database alone, beside the keys of today: the one that sealed it is found, and no key lost.
  const today = fs.readFileSync(path.join(data, "encryption.key"), "utf8");
  for (const name of ["runcast.db", "runcast.db-wal", "runcast.db-shm"]) fs.rmSync(path.join(data, name), { force: true });
  fs.copyFileSync(path.join(folder, "backup/runcast.db"), path.join(data, "runcast.db"));
  fs.chmodSync(path.join(data, "runcast.db"), 0o644); // as a copy is that somebody makes with the usual umask
  gateway = await startGatewayIn(t, folder);
  for (const name of ["runcast.db", "runcast.db-wal", "runcast.db-shm"])
    assert.equal(fs.statSync(path.join(data, name)).mode & 0o007, 0, `${name} is nobody else's to read`);
  await checkVariable(gateway, "before");
  assert.match(gateway.stderr, /sealed with a key that was kept/);
  await gateway.stop();
  assert.equal(fs.readFileSync(path.join(data, "encryption.key"), "utf8"), first);
  const all = fs.readdirSync(data).filter((name) => name.startsWith("encryption.key."));
  assert.ok(all.some((name) => fs.readFileSync(path.join(data, name), "utf8") === today), all.join());
});

test("the files of a stopped gateway are a backup, with what a kill has left in the log", async (t) => {
  const folder = temporaryFolder();
  let gateway = await startGatewayIn(t, folder);
  await setVariable(gateway, "logged");
  await gateway.kill();
  runBlock("While it is stopped:", folder);
  const elsewhere = temporaryFolder();
  fs.cpSync(path.join(folder, "backup"), path.join(elsewhere, "backup"), { recursive: true });
  runBlock("To put it back", elsewhere);
  gateway = await startGatewayIn(t, elsewhere);
  await checkVariable(gateway, "logged");
  await gateway.stop();
});

test("who kept a position of the other life of a database that was put back begins anew", async (t) => {
  const folder = temporaryFolder(), headers = { "x-trigger-electric-version": "1.0.14" };
  const trigger = async (gateway) => (await gateway.post("/api/v1/tasks/hello/trigger", { payload: "1", options: { tags: ["x"] } })).json.id;
  const subscribe = async (gateway, from) => {
    const socket = await RunsSocket.open({ port: gateway.port, token: keys.dev, hello: {} });
    t.after(() => socket.cut());
    const { epoch } = await socket.next("welcome");
    socket.send({ op: "sub", id: 1, all: true, from });
    const { mode } = await socket.next("ok");
    const { seq, rows = [] } = mode === "snapshot" ? await socket.next("rows") : {};
    return { epoch, mode, seen: rows.map(([id]) => id), position: [epoch, seq, seq] };
  };
  const poll = (gateway, handle, offset) => gateway.get(`/realtime/v1/runs?tags=x&offset=${offset}${handle ? `&handle=${handle}` : ""}`, { headers });

  let gateway = await startGatewayIn(t, folder);
  const kept = await trigger(gateway);
  runBlock("While the gateway runs:", folder);
  const lost = await trigger(gateway);
  const before = await subscribe(gateway), shape = (await poll(gateway, "", "-1")).headers;
  assert.deepEqual([...before.seen].sort(), [kept, lost].sort());
  assert.equal((await runProgram(["restored", "--data", gateway.data])).code, 1, "not while it serves");
  await gateway.stop();

  const elsewhere = temporaryFolder();
  fs.cpSync(path.join(folder, "backup"), path.join(elsewhere, "backup"), { recursive: true });
  runBlock("To put it back", elsewhere);
  gateway = await startGatewayIn(t, elsewhere);
  const other = [await trigger(gateway), await trigger(gateway)]; // it is further than the position
  const after = await subscribe(gateway, before.position);
  assert.equal(after.mode, "snapshot");
  assert.notEqual(after.epoch, before.epoch);
  assert.deepEqual([...after.seen].sort(), [kept, ...other].sort());
  const answer = await poll(gateway, shape["electric-handle"], shape["electric-offset"]);
  assert.notEqual(answer.headers["electric-handle"], shape["electric-handle"]);
  for (const id of [kept, ...other]) assert.ok(answer.text.includes(id), "the poll begins anew, too");
  assert.equal((await subscribe(gateway, after.position)).mode, "resume", "the new epoch lasts");
  await gateway.stop();
  assert.match((await runProgram(["restored", "--data", path.join(elsewhere, "nothing")])).stderr, /there is no runcast data/);

  // Without its key, or with another, the data would not start: that is said here, and nothing is changed.
  const key = path.join(gateway.data, "encryption.key"), right = fs.readFileSync(key);
  const restored = (env) => runProgram(["restored", "--data", gateway.data], { env });
  fs.rmSync(key);
  const none = await restored(), wrong = await restored({ RUNCAST_ENCRYPTION_KEY: "ab".repeat(32) });
  assert.deepEqual([none.code, none.stdout, wrong.code, wrong.stdout], [1, "", 1, ""]);
  assert.match(none.stderr, /there is a database, but not the encryption key that sealed it, which is [0-9a-f]{8}: put it back/);
  assert.match(wrong.stderr, /this is not the encryption key that sealed it/);
  assert.equal(fs.existsSync(key), false);
  fs.writeFileSync(key, right, { mode: 0o600 });
  gateway = await startGatewayIn(t, elsewhere);
  assert.equal((await subscribe(gateway, after.position)).mode, "resume", "no new epoch");
  await gateway.stop();
  assert.match((await restored()).stdout, /begin a new epoch/);
});
