// Backups and restores: what a backup contains, when it is refused, and what remains of a failed one. Also how a
// database without its encryption key is refused.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { Builder, bundle, Deployer, sha256 } from "../support/js/deployments.mjs";
import { keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { everyRun } from "../support/js/load.mjs";
import { runProgram } from "../support/js/program.mjs";
import { RunsMirror, RunsSocket } from "../support/js/runs.mjs";

const variables = `/api/v1/projects/${keys.ref}/envvars/dev`;

/** The two ways to back up, each a script in the folder that has data/ or gets it: the commands, and the copy by hand
 *  that was used before there were commands and can still be restored. */
const ways = {
  "by runcast backup and restore": { running: "$RUNCAST backup backup --data data", stopped: "$RUNCAST backup backup --data data", back: "$RUNCAST restore backup --data data" },
  "by hand": {
    running: "mkdir -m 700 backup; sqlite3 data/runcast.db \"VACUUM INTO 'backup/runcast.db'\"; cp -p data/encryption.key* backup/",
    stopped: "mkdir -m 700 backup; cp -p data/runcast.db* data/encryption.key* backup/",
    back: "mkdir -m 700 data; cp -p backup/runcast.db* backup/encryption.key* data/; $RUNCAST restored --data data",
  },
};

function run(script, cwd) {
  const RUNCAST = path.resolve(process.env.GATEWAY_BIN ?? new URL("../../build-asan/runcast", import.meta.url).pathname);
  const end = spawnSync("bash", ["-ec", script], { cwd, encoding: "utf8", env: { ...process.env, RUNCAST } });
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

test("a database without its encryption key is refused with the key's name, and no new key is made", async (t) => {
  const folder = temporaryFolder(), key = path.join(folder, "data/encryption.key");
  const gateway = await startGatewayIn(t, folder);
  await setVariable(gateway, "kept");
  await gateway.stop();
  fs.renameSync(key, path.join(folder, "safe"));

  const words = /encryption key missing: the database is sealed with another one, which is [0-9a-f]{8}; put it back as \S+\/encryption\.key, or set it as RUNCAST_ENCRYPTION_KEY/;
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

for (const [how, way] of Object.entries(ways)) {
test(`a backup of a running gateway can be restored, also one from before a key rotation, ${how}`, async (t) => {
  const folder = temporaryFolder(), data = path.join(folder, "data");
  let gateway = await startGatewayIn(t, folder);
  await setVariable(gateway, "before");
  const { id } = (await gateway.post("/api/v1/tasks/hello/trigger", { payload: "1" })).json;
  run(way.running, folder);
  const first = fs.readFileSync(path.join(data, "encryption.key"), "utf8");
  assert.equal((await runProgram(["vault", "rotate", "--data", data])).code, 0);
  await setVariable(gateway, "after");
  const kept = fs.readdirSync(data).filter((name) => /^encryption\.key\.[0-9a-f]{8}$/.test(name));
  assert.equal(kept.length, 1);
  assert.equal(fs.readFileSync(path.join(data, kept[0]), "utf8"), first);
  assert.equal((fs.statSync(path.join(data, kept[0])).mode & 0o777).toString(8), "600");
  await gateway.stop();

  // Restore everything on another machine, as after the loss of this one.
  const elsewhere = temporaryFolder();
  fs.cpSync(path.join(folder, "backup"), path.join(elsewhere, "backup"), { recursive: true });
  run(way.back, elsewhere);
  gateway = await startGatewayIn(t, elsewhere);
  await checkVariable(gateway, "before");
  assert.equal((await gateway.get(`/api/v3/runs/${id}`)).json.id, id);
  await gateway.stop();

  // Restore only the database, with the keys of today: the gateway finds the one that sealed it, and loses no key.
  const today = fs.readFileSync(path.join(data, "encryption.key"), "utf8");
  for (const name of ["runcast.db", "runcast.db-wal", "runcast.db-shm"]) fs.rmSync(path.join(data, name), { force: true });
  fs.copyFileSync(path.join(folder, "backup/runcast.db"), path.join(data, "runcast.db"));
  fs.chmodSync(path.join(data, "runcast.db"), 0o644); // as a copy made with the usual umask
  gateway = await startGatewayIn(t, folder);
  for (const name of ["runcast.db", "runcast.db-wal", "runcast.db-shm"])
    assert.equal(fs.statSync(path.join(data, name)).mode & 0o007, 0, `${name} is nobody else's to read`);
  await checkVariable(gateway, "before");
  assert.match(gateway.stderr, /the database is sealed with an earlier key/);
  await gateway.stop();
  assert.equal(fs.readFileSync(path.join(data, "encryption.key"), "utf8"), first);
  const all = fs.readdirSync(data).filter((name) => name.startsWith("encryption.key."));
  assert.ok(all.some((name) => fs.readFileSync(path.join(data, name), "utf8") === today), all.join());
});

test(`a backup of a killed gateway includes what the write-ahead log holds, ${how}`, async (t) => {
  const folder = temporaryFolder();
  let gateway = await startGatewayIn(t, folder);
  await setVariable(gateway, "logged");
  await gateway.kill();
  run(way.stopped, folder);
  const elsewhere = temporaryFolder();
  fs.cpSync(path.join(folder, "backup"), path.join(elsewhere, "backup"), { recursive: true });
  run(way.back, elsewhere);
  gateway = await startGatewayIn(t, elsewhere);
  await checkVariable(gateway, "logged");
  await gateway.stop();
});

test(`a client whose position is from before a restore starts again with a snapshot, ${how}`, async (t) => {
  const folder = temporaryFolder(), headers = { "x-trigger-electric-version": "1.0.14" };
  const trigger = async (gateway) => (await gateway.post("/api/v1/tasks/hello/trigger", { payload: "1", options: { tags: ["x"] } })).json.id;
  const subscribe = async (gateway, from) => {
    const socket = await RunsSocket.open({ port: gateway.port, token: keys.dev, hello: {} });
    const { epoch } = await socket.next("welcome");
    socket.send({ op: "sub", id: 1, all: true, from });
    const { mode } = await socket.next("ok");
    const { seq, rows = [] } = mode === "snapshot" ? await socket.next("rows") : {};
    socket.cut(); // otherwise the gateway waits for it when it stops
    return { epoch, mode, seen: rows.map(([id]) => id), position: [epoch, seq, seq] };
  };
  const poll = (gateway, handle, offset) => gateway.get(`/realtime/v1/runs?tags=x&offset=${offset}${handle ? `&handle=${handle}` : ""}`, { headers });

  let gateway = await startGatewayIn(t, folder);
  const kept = await trigger(gateway);
  run(way.running, folder);
  const lost = await trigger(gateway);
  const before = await subscribe(gateway), shape = (await poll(gateway, "", "-1")).headers;
  assert.deepEqual([...before.seen].sort(), [kept, lost].sort());
  for (const words of [["restored"], ["restore", path.join(folder, "backup")]])
    assert.equal((await runProgram([...words, "--data", gateway.data])).code, 1, "not while it serves");
  await gateway.stop();

  const elsewhere = temporaryFolder();
  fs.cpSync(path.join(folder, "backup"), path.join(elsewhere, "backup"), { recursive: true });
  run(way.back, elsewhere);
  gateway = await startGatewayIn(t, elsewhere);
  const other = [await trigger(gateway), await trigger(gateway)]; // the restored database is now further than the client's position
  const after = await subscribe(gateway, before.position);
  assert.equal(after.mode, "snapshot");
  assert.notEqual(after.epoch, before.epoch);
  assert.deepEqual([...after.seen].sort(), [kept, ...other].sort());
  const answer = await poll(gateway, shape["electric-handle"], shape["electric-offset"]);
  assert.equal(answer.status, 409);
  assert.match(answer.text, /must-refetch/);
  assert.notEqual(answer.headers["electric-handle"], shape["electric-handle"]);
  const again = await poll(gateway, answer.headers["electric-handle"], "-1");
  for (const id of [kept, ...other]) assert.ok(again.text.includes(id), "the poll starts over, too");
  assert.equal((await subscribe(gateway, after.position)).mode, "resume", "the new epoch lasts");
  await gateway.stop();
  assert.match((await runProgram(["restored", "--data", path.join(elsewhere, "nothing")])).stderr, /there is no runcast data/);

  // Without its key, or with a different one, the data could not be opened: the restore reports that and changes
  // nothing.
  const key = path.join(gateway.data, "encryption.key"), right = fs.readFileSync(key);
  const restored = (env) => runProgram(["restored", "--data", gateway.data], { env });
  fs.rmSync(key);
  const none = await restored(), wrong = await restored({ RUNCAST_ENCRYPTION_KEY: "ab".repeat(32) });
  assert.deepEqual([none.code, none.stdout, wrong.code, wrong.stdout], [1, "", 1, ""]);
  assert.match(none.stderr, /encryption key missing: the database is sealed with another one, which is [0-9a-f]{8}; put it back/);
  assert.match(wrong.stderr, /it is sealed with another encryption key/);
  assert.equal(fs.existsSync(key), false);
  fs.writeFileSync(key, right, { mode: 0o600 });
  gateway = await startGatewayIn(t, elsewhere);
  assert.equal((await subscribe(gateway, after.position)).mode, "resume", "no new epoch");
  await gateway.stop();
  assert.match((await restored()).stdout, /subscribers reload everything .*\(epoch /);
});
}

// ---- under load, and on another machine ----

const command = (words, more) => runProgram(words, { timeoutMs: 120_000, ...more });

/** Clients that trigger until they are stopped; acknowledged: the ids, in the order of the responses. */
class Clients {
  constructor(gateway, count = 6) {
    Object.assign(this, { gateway, acknowledged: [], over: false });
    this.all = Array.from({ length: count }, () => this.#trigger());
  }

  async #trigger() {
    while (!this.over) {
      const { json } = await this.gateway.post("/api/v1/tasks/hello/trigger", { payload: "x".repeat(3000), options: { tags: ["load"] } });
      this.acknowledged.push(json.id);
    }
  }

  end() {
    this.over = true;
    return Promise.all(this.all);
  }
}

const manifestOf = (folder) => JSON.parse(fs.readFileSync(path.join(folder, "manifest.json"), "utf8"));
const modeOf = (file) => (fs.lstatSync(file).mode & 0o777).toString(8);
const filesIn = (folder) => fs.readdirSync(folder, { recursive: true, withFileTypes: true }).map((entry) => ({ name: path.join(entry.parentPath ?? entry.path, entry.name), folder: entry.isDirectory() }));

test("a backup under load has every run acknowledged before it and the files of versions, and can be restored on another machine", { timeout: 200_000 }, async (t) => {
  const options = ["--deploy-hold", "2s", "--dequeue-wait", "1s"], bytes = bundle();
  const gateway = await startGateway({ t, options });
  const cli = new Deployer(gateway), builder = await Builder.start(gateway);
  const answer = cli.deploy({}, { bytes });
  const { deployment } = await builder.build();
  assert.equal((await answer).status, 200);
  const mirror = new RunsMirror({ port: gateway.port, token: keys.dev });
  t.after(() => mirror.cut());
  await mirror.connect();
  mirror.subscribe({ tags: ["load"] });

  const clients = new Clients(gateway);
  await until(() => clients.acknowledged.length > 100, { what: "runs before the backup" });
  const folder = temporaryFolder(), backup = path.join(folder, "nightly"), before = [...clients.acknowledged];
  const made = await command(["backup", backup, "--data", gateway.data]);
  assert.equal(made.code, 0, made.all);
  assert.match(made.stdout, /is a backup of .* as of [\dTZ:.-]+: \d+ [KM]iB, 4 files\nIt contains the encryption key/);
  const then = clients.acknowledged.length;
  assert.ok(then > before.length, "triggers went on meanwhile");
  await until(() => clients.acknowledged.length > then + 20, { what: "runs behind the backup" });
  await clients.end();
  await mirror.wait(() => mirror.runs.size === clients.acknowledged.length, "every run of the load");
  await gateway.kill();

  // The backup is complete, readable by its owner alone, and the only thing in its folder.
  assert.deepEqual(fs.readdirSync(folder), ["nightly"]);
  for (const { name, folder: isFolder } of [{ name: backup, folder: true }, ...filesIn(backup)]) assert.equal(modeOf(name), isFolder ? "700" : "600", name);
  const manifest = manifestOf(backup);
  assert.deepEqual(manifest.files.map(({ name }) => name).sort(), [`deployments/${deployment.id}.index.json`, `deployments/${deployment.id}.tar.gz`, "encryption.key", "runcast.db"]);
  for (const { name, bytes: size, sha256: hash } of manifest.files) {
    const content = fs.readFileSync(path.join(backup, name));
    assert.deepEqual([content.length, createHash("sha256").update(content).digest("hex")], [size, hash], name);
  }
  assert.notEqual(manifest.epoch, mirror.epoch);

  // The restored data have every acknowledged run and the version with its archive, and accept no old position.
  const elsewhere = path.join(temporaryFolder(), "data");
  const restored = await command(["restore", backup, "--data", elsewhere]);
  assert.equal(restored.code, 0, restored.all);
  assert.equal(modeOf(elsewhere), "700");
  const checked = await command(["db", "check", "--data", elsewhere]);
  assert.deepEqual([checked.code, checked.stdout], [0, `no damage was found in ${elsewhere}\n`], checked.all);
  const other = await startGateway({ t, options, data: elsewhere });
  const runs = await everyRun(other);
  for (const id of before) assert.ok(runs.has(id), `${id} was acknowledged before the backup`);
  const all = new Set(clients.acknowledged);
  for (const id of runs.keys()) assert.ok(all.has(id), `${id} was made by nobody`);
  assert.equal((await new Deployer(other).get("/api/v1/deployments/current")).json.version, deployment.version);
  const archive = await other.http.request("GET", `/engine/v1/worker-actions/deployments/${deployment.id}/archive`, { key: builder.token });
  assert.equal(archive.status, 200, archive.text);
  assert.equal(fs.readFileSync(path.join(elsewhere, "deployments", `${deployment.id}.tar.gz`)).equals(bytes), true, sha256(bytes));

  // A client that knew runs which are gone forgets them, and receives each new run once.
  mirror.options.port = other.port;
  const welcome = await mirror.connect();
  assert.ok(![manifest.epoch].includes(welcome.epoch), "the data that were put back have an epoch of their own");
  await mirror.wait(() => mirror.position, "in sync with the data that were put back");
  assert.deepEqual([...mirror.runs.keys()].sort(), [...runs.keys()].sort());
  const next = (await other.post("/api/v1/tasks/hello/trigger", { payload: 1, options: { tags: ["load"] } })).json.id;
  await mirror.wait(() => mirror.runs.has(next), "what comes after it");
  assert.equal(mirror.runs.size, runs.size + 1);
  assert.deepEqual(mirror.errors, []);
  await other.stop();
});

test("a backup has every file that its database names, although versions and keys come and go meanwhile", { timeout: 200_000 }, async (t) => {
  const gateway = await startGateway({ t, options: ["--deploy-hold", "2s", "--dequeue-wait", "1s", "--keep-versions", "1"] });
  const cli = new Deployer(gateway), builder = await Builder.start(gateway), folder = temporaryFolder();
  const order = path.join(temporaryFolder(), "order"); // slows syncs down, so that versions come and go during a backup
  fs.writeFileSync(order, "delay 40");
  const slowly = { preload: "shim_sync", env: { SHIM_CONTROL: order } }, rotate = () => command(["vault", "rotate", "--data", gateway.data]);
  let over = false, deployed = 0, most = 0; // most: archives in one backup; each costs it a sync
  const deploying = (async () => {
    for (; !over; deployed++) {
      await until(() => over || deployed < most, { what: "the next backup", timeoutMs: 120_000 });
      const answer = cli.deploy();
      await builder.build();
      await answer;
    }
  })();
  for (let i = 0; i < 4; i++) {
    const backup = path.join(folder, `backup-${i}`), data = path.join(folder, `data-${i}`), before = deployed;
    most = deployed + 20;
    await until(() => deployed > before, { what: "another version" });
    const [made, rotated] = await Promise.all([command(["backup", backup, "--data", gateway.data], slowly), rotate()]);
    assert.deepEqual([made.code, made.stderr, rotated.code], [0, "", 0], made.all);
    for (const words of [["restore", backup, "--data", data], ["db", "check", "--data", data]]) {
      const end = await command(words);
      assert.equal(end.code, 0, `${words}: ${end.all}`);
    }
    assert.equal(manifestOf(backup).holdsKey, true);
    assert.ok(manifestOf(backup).files.some(({ name }) => name.endsWith(".tar.gz")));
  }
  over = true;
  await deploying;
  await gateway.stop();
});

test("root can back up another user's data, and restores for the owner of the data directory", async (t) => {
  if (process.getuid() !== 0) return; // only root can change the owner of files
  const user = 12345, gateway = await startGateway({ t }), folder = temporaryFolder(), backup = path.join(folder, "backup"), data = path.join(folder, "data");
  await gateway.stop();
  for (const { name } of [{ name: gateway.data }, ...filesIn(gateway.data)]) fs.lchownSync(name, user, user);
  assert.equal((await command(["backup", backup, "--data", gateway.data])).code, 0);
  for (const { name } of filesIn(backup)) assert.equal(fs.lstatSync(name).uid, 0, name);
  for (const { name } of filesIn(gateway.data)) assert.equal(fs.lstatSync(name).uid, user, `${name} is still its owner's`);
  fs.mkdirSync(data);
  fs.chownSync(data, user, user);
  const restored = await command(["restore", backup, "--data", data]);
  assert.equal(restored.code, 0, restored.all);
  for (const { name } of filesIn(data)) assert.equal(fs.lstatSync(name).uid, user, name);
});

test("restoring a backup twice begins a different epoch each time", async (t) => {
  const gateway = await startGateway({ t }), folder = temporaryFolder(), backup = path.join(folder, "b");
  assert.equal((await command(["backup", backup, "--data", gateway.data])).code, 0);
  await gateway.stop();
  const epochs = [];
  for (const name of ["one", "two"]) epochs.push((await command(["restore", backup, "--data", path.join(folder, name)])).stdout.match(/\(epoch ([0-9a-f]{16})\)\n/)[1]);
  assert.equal(new Set([...epochs, manifestOf(backup).epoch]).size, 3);
});

// ---- refusals ----

/** A stopped gateway with a variable, a deployed version, and a backup; more: { env, … }. */
async function backedUp(t, more = {}) {
  const options = ["--deploy-hold", "2s", "--dequeue-wait", "1s"];
  const gateway = await startGateway({ t, options, ...more });
  await setVariable(gateway, "kept");
  const builder = await Builder.start(gateway), answer = new Deployer(gateway).deploy();
  const { deployment } = await builder.build();
  await answer;
  const folder = temporaryFolder(), backup = path.join(folder, "backup");
  const made = await command(["backup", backup, "--data", gateway.data]);
  assert.equal(made.code, 0, made.all);
  await gateway.stop();
  return { gateway, folder, backup, made, archive: `deployments/${deployment.id}.tar.gz` };
}

test("a backup without its key, or with a different one, is refused before anything is written", async (t) => {
  const key = "cd".repeat(32), env = { RUNCAST_ENCRYPTION_KEY: key };
  const { folder, backup, made } = await backedUp(t, { env });
  const [, id] = made.stdout.match(/It does not contain the encryption key, which is ([0-9a-f]{8}): keep/);
  assert.deepEqual([manifestOf(backup).holdsKey, manifestOf(backup).key], [false, id]);
  for (const { name, folder: isFolder } of filesIn(backup)) if (!isFolder) assert.ok(!fs.readFileSync(name, "latin1").includes(key), name);

  const data = path.join(folder, "data"), restore = (more) => command(["restore", backup, "--data", data], more);
  const none = await restore(), wrong = await restore({ env: { RUNCAST_ENCRYPTION_KEY: "ab".repeat(32) } });
  assert.deepEqual([none.code, wrong.code], [1, 1]);
  assert.match(none.stderr, new RegExp(`the backup contains no encryption key; set RUNCAST_ENCRYPTION_KEY .* to the key that sealed it, which is ${id}`));
  assert.match(wrong.stderr, new RegExp(`it is sealed with another encryption key, which is ${id}, not with [0-9a-f]{8}`));
  assert.equal(fs.existsSync(data), false);
  const right = await restore({ env });
  assert.equal(right.code, 0, right.all);
  const gateway = await startGateway({ t, data, env });
  await checkVariable(gateway, "kept");
  await gateway.stop();
});

const flip = (file) => {
  const bytes = fs.readFileSync(file);
  bytes[bytes.length >> 1] ^= 1;
  fs.writeFileSync(file, bytes);
};
const rewrite = (file, change) => fs.writeFileSync(file, change(fs.readFileSync(file, "utf8")));

test("a damaged or changed backup is refused with the name of the file, and nothing is written", async (t) => {
  const { backup, folder, archive } = await backedUp(t), data = path.join(folder, "data");
  const outside = path.join(folder, "outside");
  fs.writeFileSync(outside, "x");
  const cases = {
    "a bit of the database": [(b) => flip(path.join(b, "runcast.db")), /runcast\.db of the backup is damaged: its hash/],
    "the end of the database": [(b) => fs.truncateSync(path.join(b, "runcast.db"), 8192), /runcast\.db of the backup is damaged: it has 8192 bytes instead of \d+/],
    "an archive": [(b) => flip(path.join(b, archive)), new RegExp(`${archive} of the backup is damaged`)],
    "no archive": [(b) => fs.rmSync(path.join(b, archive)), new RegExp(`${archive} of the backup is missing`)],
    "no folder of archives": [(b) => fs.rmSync(path.join(b, "deployments"), { recursive: true }), /deployments\/\S+ of the backup is missing/],
    "a key that was exchanged": [(b) => fs.writeFileSync(path.join(b, "encryption.key"), `${"ab".repeat(32)}\n`), /encryption\.key of the backup is damaged/],
    "no manifest": [(b) => fs.rmSync(path.join(b, "manifest.json")), /has no manifest\.json, so it is not a complete backup/],
    "half a manifest": [(b) => fs.truncateSync(path.join(b, "manifest.json"), 200), /manifest\.json is damaged/],
    "a manifest of the future": [(b) => rewrite(path.join(b, "manifest.json"), (text) => text.replace('"format":1', '"format":2')), /made by a newer runcast/],
    "a way out": [(b) => rewrite(path.join(b, "manifest.json"), (text) => text.replace("encryption.key", "../outside")), /names "\.\.\/outside", which is not a file of a backup/],
    "a link instead of the database": [(b) => { fs.rmSync(path.join(b, "runcast.db")); fs.symlinkSync(outside, path.join(b, "runcast.db")); }, /runcast\.db is a symbolic link/],
    "a link instead of the folder": [(b) => { fs.renameSync(path.join(b, "deployments"), path.join(folder, "moved")); fs.symlinkSync(path.join(folder, "moved"), path.join(b, "deployments")); }, /deployments is not a folder/],
  };
  for (const [what, [damage, said]] of Object.entries(cases)) {
    const copy = path.join(temporaryFolder(), "backup");
    fs.cpSync(backup, copy, { recursive: true });
    damage(copy);
    const end = await command(["restore", copy, "--data", data]);
    assert.deepEqual([end.code, end.stdout], [1, ""], `${what}: ${end.all}`);
    assert.match(end.stderr, said, what);
    assert.equal(fs.existsSync(data), false, what);
  }
  assert.equal(fs.readFileSync(outside, "utf8"), "x");
});

test("a backup refuses a folder where other users could replace its files or read them", async (t) => {
  const gateway = await startGateway({ t }), folder = temporaryFolder(), shared = path.join(folder, "shared");
  await gateway.stop();
  fs.mkdirSync(shared);
  const backUp = () => command(["backup", path.join(shared, "backup"), "--data", gateway.data]);
  const refuse = async (what) => {
    const end = await backUp();
    assert.deepEqual([end.code, end.stdout, fs.readdirSync(shared)], [1, "", []], what);
    assert.match(end.stderr, /other users can rename files in \S+shared\/? \(owner \d+, mode \d{4}\)/, what);
  };
  for (const mode of [0o777, 0o770]) {
    fs.chmodSync(shared, mode);
    await refuse(`mode ${mode.toString(8)}`);
  }
  fs.chmodSync(shared, 0o700);
  if (process.getuid() === 0) {
    fs.chownSync(shared, 12345, 12345);
    await refuse("another user's");
    fs.chownSync(shared, 0, 0);
  }
  fs.chmodSync(shared, 0o1777); // as /tmp is: only the owner may rename a file
  assert.equal((await backUp()).code, 0);
});

test("a backup goes into a missing or empty folder, and a restore into an empty data directory", async (t) => {
  const { gateway, backup, folder } = await backedUp(t), full = path.join(folder, "full");
  fs.mkdirSync(full);
  fs.writeFileSync(path.join(full, "mine"), "mine");
  const refused = {
    [full]: /full is not empty; choose a name that does not exist yet/,
    [path.join(full, "mine")]: /exists and is not a folder/,
    [path.join(folder, "nowhere/x")]: /cannot open .*nowhere/,
    [path.join(gateway.data, "backup")]: /is in the data directory; choose a folder outside of it/,
    [`${folder}/..`]: /is not a folder name/,
  };
  for (const [target, said] of Object.entries(refused)) {
    const end = await command(["backup", target, "--data", gateway.data]);
    assert.deepEqual([end.code, end.stdout], [1, ""], target);
    assert.match(end.stderr, said);
  }
  fs.mkdirSync(path.join(folder, "empty"));
  assert.equal((await command(["backup", `${path.join(folder, "empty")}/`, "--data", gateway.data])).code, 0);
  assert.deepEqual(fs.readdirSync(folder).sort(), ["backup", "empty", "full"]);
  assert.match((await command(["backup", path.join(folder, "x"), "--data", path.join(folder, "empty2")])).stderr, /there is no runcast data/);

  const into = await command(["restore", backup, "--data", full]);
  assert.equal(into.code, 1);
  assert.match(into.stderr, /the data directory \S+ is not empty \(mine\); stop its gateway and move/);
  assert.deepEqual(fs.readdirSync(full), ["mine"]);
  const misused = await command(["restore"]);
  assert.deepEqual([misused.code, misused.stderr], [2, "runcast: DIR is missing; use runcast restore DIR (runcast help restore explains it)\n"]);
});

// ---- interrupted ----

test("a full disk leaves nothing of a backup or a restore, whenever it fills up", async (t) => {
  const gateway = await startGateway({ t }), folder = temporaryFolder(), order = path.join(folder, "order"), backup = path.join(folder, "backup");
  const env = { SHIM_DISK: order }, preload = "shim_disk";
  for (const full of ["runcast.db", "encryption.key", "manifest.json"]) {
    fs.writeFileSync(order, `full ${full}`);
    const end = await command(["backup", backup, "--data", gateway.data], { preload, env });
    assert.equal(end.code, 1, end.all);
    assert.match(end.stderr, /[Nn]o space left/, full);
    assert.deepEqual(fs.readdirSync(folder), ["order"], full);
  }
  assert.equal((await gateway.post("/api/v1/tasks/hello/trigger", { payload: 1 })).status, 200, "the gateway has not noticed");
  fs.rmSync(order);
  assert.equal((await command(["backup", backup, "--data", gateway.data], { preload, env })).code, 0);
  for (const full of ["runcast.db", "encryption.key"]) {
    fs.writeFileSync(order, `full ${full}`);
    const end = await command(["restore", backup, "--data", path.join(folder, "data")], { preload, env });
    assert.equal(end.code, 1, end.all);
    assert.match(end.stderr, /[Nn]o space left/, full);
    assert.deepEqual(fs.readdirSync(folder).sort(), ["backup", "order"], full);
  }
  await gateway.stop();
});

/** Starts a command whose syncs take long, and signals it as soon as begun() returns true. */
async function interrupted(words, signal, begun) {
  const order = path.join(temporaryFolder(), "order");
  fs.writeFileSync(order, "delay 1000");
  let child;
  const end = command(words, { preload: "shim_sync", env: { SHIM_CONTROL: order }, onStart: (started) => { child = started; } });
  await until(begun, { everyMs: 1, what: "it has begun" });
  child.kill(signal);
  return end;
}

test("a signal ends a backup or a restore without a trace, and what a kill leaves is not taken for a backup", async (t) => {
  const gateway = await startGateway({ t }), folder = temporaryFolder(), backup = path.join(folder, "backup");
  const partial = () => fs.readdirSync(folder).find((name) => name.startsWith("backup.partial-"));
  for (const signal of ["SIGINT", "SIGTERM"]) {
    const end = await interrupted(["backup", backup, "--data", gateway.data], signal, partial);
    assert.deepEqual([end.code, end.stderr], [1, "runcast: backup stopped; its files were removed\n"]);
    assert.deepEqual(fs.readdirSync(folder), []);
  }
  assert.equal((await interrupted(["backup", backup, "--data", gateway.data], "SIGKILL", partial)).signal, "SIGKILL");
  assert.equal(fs.existsSync(backup), false);
  assert.equal((await command(["restore", path.join(folder, partial()), "--data", path.join(folder, "data")])).code, 1, "half a backup is none");
  assert.equal((await command(["backup", backup, "--data", gateway.data])).code, 0, "the next one is not in its way");
  fs.rmSync(path.join(folder, partial()), { recursive: true });

  const data = path.join(folder, "data"), begun = () => fs.existsSync(path.join(data, "restore.partial/runcast.db"));
  const stopped = await interrupted(["restore", backup, "--data", data], "SIGINT", begun);
  assert.deepEqual([stopped.code, stopped.stderr], [1, "runcast: restore stopped; nothing was restored\n"]);
  assert.deepEqual(fs.readdirSync(folder), ["backup"]);
  assert.equal((await interrupted(["restore", backup, "--data", data], "SIGKILL", begun)).signal, "SIGKILL");
  assert.equal(fs.existsSync(path.join(data, "runcast.db")), false, "nothing that a gateway would start on");
  const again = await command(["restore", backup, "--data", data]);
  assert.equal(again.code, 0, again.all);
  assert.deepEqual(fs.readdirSync(data).sort(), ["deployments", "encryption.key", "runcast.db", "runcast.db.lock"]);
  await gateway.stop();
});
