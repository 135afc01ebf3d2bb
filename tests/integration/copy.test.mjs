// runcast copy: a gateway's data move to a PostgreSQL, and clients notice nothing.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { before, test } from "node:test";
import { gzipSync } from "node:zlib";

import { Builder, Deployer } from "../support/js/deployments.mjs";
import { freePort, keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { PgRelay } from "../support/js/pg_relay.mjs";
import { onDatabase, startPostgres } from "../support/js/postgres.mjs";
import { runProgram } from "../support/js/program.mjs";
import { RunsMirror } from "../support/js/runs.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

let postgres;
before(async () => { postgres = await startPostgres(); });

/** The test's own schema. */
let schemas = 0;
const ownSchema = () => `test_${++schemas}`;

const key = "5e".repeat(32), sealed = { RUNCAST_ENCRYPTION_KEY: key };
const copy = (data, schema, { to = postgres.url, words = ["--to", to], env = sealed, ...more } = {}) =>
  runProgram(["copy", ...words, "--data", data, "--database-schema", schema], { env, timeoutMs: 120_000, ...more });
const startCopied = (t, schema, more = {}) => startGateway({ t, ...onDatabase(postgres, schema, { options: ["--database-schema", schema, ...more.options ?? []] }), ...more.port && { port: more.port } });

/* ---- what is stored ---- */

const tables = ["environment", "task_number", "run", "run_tag", "run_payload", "run_metadata", "run_output", "document", "claim"];
const sources = { claim: "(SELECT * FROM claim UNION ALL SELECT env, kind, key, owner, expires_at FROM brief_claim)" }; // two tables of SQLite
const leads = ["realm", "term"]; // the tables that say which gateway leads; SQLite has none
const sqlite = (data, sql) => execFileSync("sqlite3", [path.join(data, "runcast.db"), sql], { encoding: "utf8", maxBuffer: 1 << 28 }).trimEnd();

/** The rows of a table in either database, each a text in which every byte counts. */
function rowsOf({ data, schema, table }) {
  const columns = postgres.query(`SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = '${schema}' AND table_name = '${table}' ORDER BY 1`)
    .split("\n").map((line) => line.split("|")).filter(([name]) => !leads.includes(name));
  const shown = {
    bytea: ["CASE WHEN x IS NULL THEN '-' ELSE hex(CAST(x AS BLOB)) END", "coalesce(upper(encode(x, 'hex')), '-')"],
    "double precision": ["printf('%!.17g', x)", "x::text"],
  };
  const read = (side, ask, from) => ask(`SELECT ${columns.map(([name, type]) => (shown[type]?.[side] ?? "x").replace(/\bx\b/g, `"${name}"`)).join(", ")} FROM ${from}`)
    .split("\n").map((line) => line.split("|").map((value, i) => (columns[i]?.[1] === "double precision" ? Number(value) : value)).join("|")).sort();
  return [read(0, (sql) => sqlite(data, sql), sources[table] ?? table), read(1, (sql) => postgres.query(sql), `${schema}.${table}`)];
}

function assertSame(data, schema) {
  const all = sqlite(data, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name").split("\n");
  assert.deepEqual(all, [...tables, "brief_claim", "meta"].sort(), "every table is known here");
  for (const table of tables) {
    const [ours, theirs] = rowsOf({ data, schema, table });
    assert.equal(theirs.length, ours.length, table);
    for (let i = 0; i < ours.length; i++) assert.equal(theirs[i], ours[i], table);
  }
  assert.equal(postgres.query(`SELECT value FROM ${schema}.meta WHERE name = 'epoch'`), sqlite(data, "SELECT value FROM meta WHERE name = 'epoch'"));
}

const schemaIsThere = (schema) => postgres.query(`SELECT count(*) FROM information_schema.schemata WHERE schema_name = '${schema}'`) === "1";

/* ---- what clients see ---- */

/** A mirror that notes whether each of its subscriptions resumed. */
class Mirror extends RunsMirror {
  modes = [];
  receive(message) {
    if (message.op === "ok") this.modes.push(message.mode);
    super.receive(message);
  }
}

/** One request of a long poll. */
async function poll(gateway, { position = { offset: "-1" }, live = false } = {}) {
  const query = new URLSearchParams({ ...position, ...(live && { live: "true", cursor: "1" }) });
  const { status, headers, json } = await gateway.get(`/realtime/v1/runs?${query}`, { headers: { "x-trigger-electric-version": "1" } });
  return { status, isCurrent: "electric-up-to-date" in headers, rows: Array.isArray(json) ? json.filter(({ key: name }) => name) : [], position: { offset: headers["electric-offset"], handle: headers["electric-handle"] } };
}

/** The position of a client that has everything. */
async function catchUp(gateway) {
  for (let answer = await poll(gateway); ; answer = await poll(gateway, answer)) {
    assert.equal(answer.status, 200);
    if (answer.isCurrent) return answer;
  }
}

/** A call that counts once, however often it is repeated. */
const counted = [{ operations: [{ type: "increment", key: "n", value: 1 }] }, { headers: { "x-trigger-request-idempotency-key": "r-1" } }];

/** Makes runs in several states, and everything else that has documents. */
async function fill(gateway) {
  const worker = await Worker.register(gateway, { tasks: ["hello", "other", { id: "tick", triggerSource: "schedule" }], queues: [{ name: "narrow", concurrencyLimit: 1 }] });
  const call = async (method, target, body, more) => {
    const reply = await gateway.http.request(method, target, { body, ...more });
    assert.ok(reply.status < 300, `${method} ${target}: ${reply.status} ${reply.text}`);
    return reply.json;
  };
  const runs = {};
  runs.done = await worker.trigger("hello", { tags: ["one", "é\u0000\"}"], idempotencyKey: "a\u0000b", idempotencyKeyTTL: "30d", metadata: { n: 1.5, deep: ["\u0000"] } }, { text: "é\u0000😀" });
  await (await worker.take(runs.done)).succeed({ n: 2, text: "\u0000" });
  runs.failed = await worker.trigger("hello", { maxAttempts: 1, tags: ["one"] });
  await (await worker.take(runs.failed)).fail();
  runs.executing = await worker.trigger("hello", { concurrencyKey: "k\u0000" });
  const attempt = await worker.take(runs.executing);
  runs.delayed = await worker.trigger("other", { delay: "2h", ttl: "1d" });
  runs.canceled = await worker.trigger("other", { delay: "2h" });
  await worker.cancel(runs.canceled);
  runs.queued = await worker.trigger("other", { queue: { name: "narrow" }, priority: 3, machine: "large-1x", metadata: { later: true } }, "x".repeat(100_000));
  await call("PUT", `/api/v1/runs/${runs.executing}/metadata`, { metadata: { progress: 0.25 } });
  await call("PUT", `/api/v1/runs/${runs.delayed}/metadata`, ...counted);
  await call("POST", `/api/v1/runs/${runs.queued}/tags`, { tags: ["two"] });
  const batch = await call("POST", "/api/v2/tasks/batch", { items: Array.from({ length: 5 }, (_none, i) => ({ task: "hello", payload: `${i}`, options: { delay: "1h", tags: ["batch"] } })) });
  await call("POST", "/api/v1/schedules", { task: "tick", cron: "0 9 1 1 *", deduplicationKey: "d", externalId: "x", timezone: "Europe/Paris" });
  await call("POST", `/api/v1/projects/${keys.ref}/envvars/dev/import`, { variables: { PLAIN: "one", ODD: "é\n😀" } });
  await call("POST", "/api/v1/queues/narrow/pause", { type: "custom", action: "pause" });
  const token = await call("POST", "/api/v1/waitpoints/tokens", { tags: ["token"], idempotencyKey: "w" });
  await call("POST", "/api/v1/waitpoints/tokens", { timeout: "2h" });
  for (const name of ["prod", "staging"]) await call("POST", "/api/v1/tasks/elsewhere/trigger", { payload: 1, options: { tags: [name] } }, { key: keys[name] });
  return { worker, attempt, runs, batch: batch.id, token: token.id };
}

/** A response without momentary values: which workers the gateway has seen, when a key was last used. */
const settled = (name, value) => (["waitingFor", "lastUsedAt"].includes(name) ? undefined : value);

/** Every response that a client may request, by its address. */
async function answers(gateway, { batch, token }) {
  const all = new Map();
  const ask = async (target, key = keys.dev) => {
    const { status, text, json } = await gateway.get(target, { key });
    assert.equal(status, 200, `${target}: ${text}`);
    all.set(`${key} ${target}`, JSON.parse(text.replaceAll(gateway.url, "URL"), settled));
    return json;
  };
  for (const env of ["dev", "staging", "prod"]) {
    const list = await ask("/api/v1/runs?page[size]=100", keys[env]);
    for (const { id } of list.data) await ask(`/api/v3/runs/${id}`, keys[env]);
    for (const target of ["/api/v1/queues", "/api/v1/schedules", "/api/v1/batches", "/api/v1/waitpoints/tokens", "/api/v1/runs/counts", `/api/v1/projects/${keys.ref}/envvars/${env}`]) await ask(target, keys[env]);
  }
  for (const target of [`/api/v1/projects/${keys.ref}/envvars/dev/ODD`, `/api/v2/batches/${batch}`, `/api/v1/waitpoints/tokens/${token}`, "/api/v1/runs?filter[tag]=one"]) await ask(target);
  for (const env of ["dev", "prod"]) await ask(`/api/v1/projects/${keys.ref}/${env}/keys`, keys.pat);
  return all;
}

test("a gateway moves, and its clients continue as if nothing had happened", { timeout: 300_000 }, async (t) => {
  const schema = ownSchema(), port = await freePort();
  const old = await startGateway({ t, port, env: sealed });
  const made = await fill(old), { runs, worker } = made;
  const mirror = new Mirror({ port, token: keys.dev });
  mirror.subscribe({ all: true });
  await mirror.connect();
  await mirror.wait(() => mirror.runs.size === 11, "every run at the subscriber");
  const { position } = await catchUp(old);
  poll(old, { position, live: true }).catch(() => {}); // this poll will be cut off
  await until(async () => await old.metric("runcast_polls") === 1, { what: "a poll that is held" });
  const known = await answers(old, made), states = new Map([...mirror.runs].map(([id, { version }]) => [id, version]));

  await old.stop();
  await until(() => !mirror.socket, { what: "the subscriber has lost its gateway" });
  const { code, stdout, all } = await copy(old.data, schema);
  assert.equal(code, 0, all);
  assert.match(stdout, /^the data in \S+ are in the schema test_\d+ of the database, too: 13 runs, \d+ documents, 0 files of deployments, \d+ KiB; their epoch is still [0-9a-f]{16}\n/);
  assertSame(old.data, schema);

  const gateway = await startCopied(t, schema, { port });
  worker.gateway = gateway;
  const rows = mirror.rows;
  await mirror.connect();
  await mirror.wait(() => mirror.liveFilters().length === 1, "the subscriber is live again");
  assert.deepEqual(mirror.modes.length, 2);
  assert.notEqual(mirror.modes[1], "snapshot");
  assert.equal(mirror.rows, rows, "nothing came that was known");
  const live = poll(gateway, { position, live: true });
  await until(async () => await gateway.metric("runcast_polls") === 1, { what: "the poll is held again" });
  assert.deepEqual(await answers(gateway, made), known);

  // Work that was in progress is finished, and new changes come after the old ones.
  await made.attempt.succeed("after the move");
  await mirror.wait(() => mirror.runs.get(runs.executing).fields.status === "COMPLETED", "the end of the run");
  assert.ok(mirror.runs.get(runs.executing).version > states.get(runs.executing));
  const { status, rows: changed } = await live;
  assert.deepEqual([status, changed.map(({ key: name }) => name.replace(/.*\//, ""))], [200, [runs.executing]]);
  assert.equal(await worker.trigger("hello", { idempotencyKey: "a\u0000b", idempotencyKeyTTL: "30d" }), runs.done, "the key is known");
  assert.deepEqual((await gateway.put(`/api/v1/runs/${runs.delayed}/metadata`, ...counted)).json, { metadata: { n: 1 } }, "the request key is known");
  const next = await worker.trigger("hello");
  await mirror.wait(() => mirror.runs.has(next), "a new run");
  const numbers = [...mirror.runs.values()].map(({ fields }) => fields).filter(({ taskIdentifier }) => taskIdentifier === "hello").map(({ number }) => number);
  assert.equal(mirror.runs.get(next).fields.number, numbers.length, "runs are counted on");
  assert.equal(new Set(numbers).size, numbers.length);
  for (const [id, version] of states) assert.ok(mirror.runs.get(id).version >= version, id);
  assert.deepEqual(mirror.errors, []);
  mirror.cut();
  await gateway.stop();

  const again = await copy(old.data, schema);
  assert.equal(again.code, 1);
  assert.match(again.stderr, /already has data of runcast; choose another with --database-schema/);
});

test("5,000 runs are copied completely", { timeout: 300_000 }, async (t) => {
  const schema = ownSchema();
  const gateway = await startGateway({ t, env: sealed, release: Boolean(process.env.GATEWAY_RELEASE_BIN) });
  for (let i = 0; i < 10; i++) {
    const items = Array.from({ length: 500 }, (_none, n) => ({ task: `task-${n % 7}`, payload: "x".repeat(n), options: { tags: [`tag-${n % 50}`], idempotencyKey: `${i}-${n}`, metadata: { n } } }));
    const reply = await gateway.post("/api/v1/tasks/batch", { items });
    assert.equal(reply.status, 202, reply.text);
  }
  await gateway.stop();
  const began = Date.now(), { code, stdout, all } = await copy(gateway.data, schema);
  t.diagnostic(`${Date.now() - began} ms: ${stdout}`);
  assert.equal(code, 0, all);
  assert.match(stdout, / 5000 runs, /);
  assertSame(gateway.data, schema);
  const copied = await startCopied(t, schema);
  const { json } = await copied.get("/api/v1/runs/counts");
  assert.match(JSON.stringify(json), /5000/);
  await copied.stop();
});

/** A deployed version with an archive of about that many bytes. */
async function deploy(gateway, builder, { size, log, index }) {
  const cli = new Deployer(gateway), bytes = gzipSync(randomBytes(size), { level: 0 });
  const answer = cli.deploy({}, { bytes }), build = await builder.take();
  await builder.heartbeat(build, { log });
  await builder.register(build);
  assert.equal((await builder.complete(build, { index })).status, 200);
  assert.equal((await answer).status, 200);
  const { id } = build.deployment;
  await until(() => fs.existsSync(path.join(gateway.data, "deployments", `${id}.log`)), { what: "the log is written" });
  return id;
}

test("archives, indexes and logs of deployments are copied byte for byte, and missing ones are reported", { timeout: 300_000 }, async (t) => {
  const schema = ownSchema(), gateway = await startGateway({ t, env: sealed, options: ["--deploy-hold", "20s", "--dequeue-wait", "1s"] });
  const builder = await Builder.start(gateway), piece = 256 * 1024, made = [];
  const index = (bytes) => JSON.stringify({ tasks: [], text: "x".repeat(bytes) });
  for (const more of [{ size: 5 * piece, log: "\u0000é\n", index: index(piece) }, { size: 10, log: "x\n", index: "{}" }]) made.push(await deploy(gateway, builder, more));
  await gateway.stop();
  const folder = path.join(gateway.data, "deployments"), names = fs.readdirSync(folder).sort();
  assert.equal(names.length, 6);
  fs.rmSync(path.join(folder, `${made[1]}.tar.gz`));
  fs.rmSync(path.join(folder, `${made[1]}.log`)); // like a deployment that logged nothing
  fs.writeFileSync(path.join(folder, "nobody's.tar.gz"), "x");

  const { code, stdout, all } = await copy(gateway.data, schema);
  assert.equal(code, 0, all);
  assert.match(stdout, / documents, 4 files of deployments, /);
  assert.match(stdout, /^Files of deployments that were missing and not copied: 1; runcast db check, with no database in its settings, lists them\.$/m);
  assertSame(gateway.data, schema);
  const stored = new Map();
  for (const line of postgres.query(`SELECT convert_from(name, 'UTF8'), size, encode(body, 'hex') FROM ${schema}.deployed_file ORDER BY name, piece`).split("\n")) {
    const [name, size, hex] = line.split("|");
    stored.set(name, { size: Number(size), bytes: Buffer.concat([stored.get(name)?.bytes ?? Buffer.alloc(0), Buffer.from(hex, "hex")]) });
  }
  assert.deepEqual([...stored.keys()], names.filter((name) => !name.startsWith(made[1]) || name.endsWith(".json")));
  for (const [name, { size, bytes }] of stored) {
    assert.ok(bytes.equals(fs.readFileSync(path.join(folder, name))), name);
    assert.equal(size, bytes.length);
  }

  const copied = await startCopied(t, schema), ask = (id, what) => fetch(`${copied.url}/engine/v1/worker-actions/deployments/${id}/${what}`, { headers: { authorization: `Bearer ${builder.token}` } });
  const archive = await ask(made[0], "archive");
  assert.equal(archive.status, 200);
  assert.ok(Buffer.from(await archive.arrayBuffer()).equals(fs.readFileSync(path.join(folder, `${made[0]}.tar.gz`))));
  assert.equal(await (await ask(made[0], "index")).text(), index(piece));
  assert.equal((await ask(made[1], "archive")).status, 503, "it is not reported as removed");
  await copied.stop();
  assert.deepEqual(fs.readdirSync(folder).length, 5, "the data directory stays as it is");
});

/** A stopped gateway with a run; its key is in the data directory unless another one is given. */
async function stopped(t, { env } = {}) {
  const gateway = await startGateway({ t, env });
  assert.equal((await gateway.post("/api/v1/tasks/hello/trigger", { payload: 1 })).status, 200);
  assert.equal((await gateway.post(`/api/v1/projects/${keys.ref}/envvars/dev/import`, { variables: { V: "kept" } })).status, 200);
  await gateway.stop();
  return gateway;
}

test("a copy that was cut off leaves nothing, and can be repeated", { timeout: 300_000 }, async (t) => {
  const { data } = await stopped(t, { env: sealed }), schema = ownSchema();
  const relay = await PgRelay.start(postgres, t), to = relay.url;
  relay.order("cut", { from: "client", at: 3, of: "COPY run_tag" });
  const cut = await copy(data, schema, { to });
  assert.equal(cut.code, 1, cut.all);
  assert.match(cut.stderr, /cannot copy to the database|the database rejected/);
  await until(() => !schemaIsThere(schema), { what: "nothing of it" });
  const { code, all } = await copy(data, schema, { to });
  assert.equal(code, 0, all);
  assertSame(data, schema);
});

test("a signal ends the copy, and it leaves nothing", { timeout: 300_000 }, async (t) => {
  const { data } = await stopped(t, { env: sealed }), schema = ownSchema();
  postgres.query(`CREATE SCHEMA ${schema} AUTHORIZATION runcast`);
  const relay = await PgRelay.start(postgres, t);
  relay.hold("server"); // the copy waits in the middle
  const { code, stderr } = await copy(data, schema, { to: relay.url, onStart: (child) => void (async () => {
    await until(() => relay.connections.size > 0, { what: "it connects" });
    child.kill("SIGTERM");
    relay.pass();
  })() });
  assert.equal(code, 1, stderr);
  assert.match(stderr, /copy stopped; nothing was copied/);
  assert.equal(postgres.query(`SELECT count(*) FROM information_schema.tables WHERE table_schema = '${schema}'`), "0");
});

test("a copy that would not be complete is refused, with what to do", { timeout: 300_000 }, async (t) => {
  const gateway = await startGateway({ t }), { data } = gateway, none = {};
  assert.equal((await gateway.post(`/api/v1/projects/${keys.ref}/envvars/dev/import`, { variables: { V: "kept" } })).status, 200);
  const refused = async (pattern, schema, more = {}, code = 1) => {
    const end = await copy(data, schema, { env: none, ...more });
    assert.equal(end.code, code, end.all);
    assert.match(end.stderr, pattern);
    assert.ok(!schemaIsThere(schema), "no table was made");
  };
  await refused(/is in use by another runcast process; stop that one first/, ownSchema());
  await gateway.stop();

  const url = new URL(postgres.url), withPassword = `postgresql://runcast:s3cret@${url.host}/runcast`;
  await refused(/--to: every user of this machine can read the password .* RUNCAST_DATABASE_FILE/, ownSchema(), { to: withPassword }, 2);
  await refused(/use runcast copy --to postgresql:/, ownSchema(), { words: [] }, 2);
  await refused(/somewhere: not for runcast copy;/, ownSchema(), { words: ["somewhere"] }, 2);
  await refused(/cannot reach the database/, ownSchema(), { to: "postgresql://runcast@127.0.0.1:1/runcast" });

  const kept = path.join(data, "encryption.key"), safe = path.join(temporaryFolder(), "key");
  fs.renameSync(kept, safe);
  await refused(/encryption key missing|cannot decrypt/, ownSchema());
  await refused(/cannot decrypt/, ownSchema(), { env: { RUNCAST_ENCRYPTION_KEY: "77".repeat(32) } });
  fs.renameSync(safe, kept);

  const begun = ownSchema();
  postgres.query(`CREATE SCHEMA ${begun} AUTHORIZATION runcast`);
  const other = await startGateway({ t, ...onDatabase(postgres, begun, { options: ["--database-schema", begun] }) });
  const taken = await copy(data, begun, { env: none });
  assert.equal(taken.code, 1);
  assert.match(taken.stderr, /already has data of runcast/);
  assert.equal((await other.get("/readyz")).status, 200);
  await other.stop();
});

test("a copy finds the database where a gateway does, and names its key", { timeout: 300_000 }, async (t) => {
  const { data } = await stopped(t), schema = ownSchema();
  const file = path.join(temporaryFolder(), "database"), url = new URL(postgres.url);
  fs.writeFileSync(file, `postgresql://runcast:s3cret@${url.host}/runcast\n`, { mode: 0o600 });
  const { code, stdout, all } = await copy(data, schema, { words: [], env: { RUNCAST_DATABASE_FILE: file } });
  assert.equal(code, 0, all);
  assert.doesNotMatch(all, /s3cret/);
  const [, keyFile] = /RUNCAST_ENCRYPTION_KEY_FILE=(\S+),/.exec(stdout);
  const gateway = await startGateway({ t, ...onDatabase(postgres, schema, { options: ["--database-schema", schema], env: { RUNCAST_ENCRYPTION_KEY: "", RUNCAST_ENCRYPTION_KEY_FILE: keyFile } }) });
  assert.equal((await gateway.get(`/api/v1/projects/${keys.ref}/envvars/dev/V`)).json.value, "kept");
  await gateway.stop();
});
