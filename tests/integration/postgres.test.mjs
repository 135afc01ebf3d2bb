// One gateway on a real PostgreSQL: it works as on SQLite. database_faults.test.mjs tests how it survives the loss of
// the database.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import path from "node:path";
import { before, test } from "node:test";

import { keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { PgRelay } from "../support/js/pg_relay.mjs";
import { onDatabase, startPostgres } from "../support/js/postgres.mjs";
import { runProgram } from "../support/js/program.mjs";
import { RunsMirror } from "../support/js/runs.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

const key = "5e".repeat(32);
let postgres;
before(async () => { postgres = await startPostgres(); });

/** The test's own schema. */
let schemas = 0;
const ownSchema = () => ["--database-schema", `test_${++schemas}`];

test("a run is triggered, executes, and is there after restarts", async (t) => {
  const gateway = await startGateway({ t, ...onDatabase(postgres, "only", { options: ownSchema() }) });
  const mirror = new RunsMirror({ port: gateway.port, token: keys.dev });
  mirror.subscribe({ all: true });
  await mirror.connect();
  const worker = await Worker.register(gateway, { tasks: ["hello"] });
  const id = await worker.trigger("hello", { tags: ["one"], idempotencyKey: "a\u0000b", metadata: { n: 1 } }, { text: "é\u0000" });
  const attempt = await worker.take(id);
  await attempt.succeed({ n: 2 });
  await until(() => mirror.runs.get(id)?.fields.status === "COMPLETED", { what: "the completed run at a subscriber" });
  const before = (await gateway.get(`/api/v3/runs/${id}`)).json;
  assert.equal(before.status, "COMPLETED");
  assert.deepEqual(before.output, { n: 2 });

  mirror.cut();
  await gateway.kill();
  await gateway.restart();
  const after = (await gateway.get(`/api/v3/runs/${id}`)).json;
  assert.deepEqual(after, before);
  assert.equal((await worker.trigger("hello", { idempotencyKey: "a\u0000b" })), id, "the key is known after a restart");
  const version = mirror.runs.get(id).version;
  await mirror.connect();
  const other = await worker.trigger("hello");
  await until(() => mirror.runs.has(other), { what: "a run after the restart at the same subscriber" });
  assert.equal(mirror.runs.get(id).version, version);
  assert.deepEqual(mirror.errors, []);
  mirror.cut();
  await gateway.stop();
});

test("a restart under the same name takes over at once, after a kill too", async (t) => {
  const patient = [...ownSchema(), "--dead-after", "5m"]; // longer than the test waits for a start
  const gateway = await startGateway({ t, ...onDatabase(postgres, "same", { options: patient }) });
  for (const end of ["kill", "stop", "kill"]) {
    await gateway[end]();
    await gateway.restart();
  }
  await gateway.stop();
});

test("commits find runs and documents by their keys, in a database that has no statistics, and in one that has", async (t) => {
  const server = await startPostgres({ t, settings: { autovacuum: "off", session_preload_libraries: "auto_explain",
    "auto_explain.log_min_duration": "0", "auto_explain.log_nested_statements": "on" } });
  const gateway = await startGateway({ t, ...onDatabase(server, "plans") });
  const worker = await Worker.register(gateway, { tasks: ["hello"] });
  /** The plans of commits since the last call: how each table was searched. */
  const searches = () => {
    const plans = server.output.split("LOG:").filter((plan) => plan.includes("PL/pgSQL function commit_v101"));
    server.output = "";
    const found = plans.flatMap((plan) => [...plan.matchAll(/(Seq|Index|Index Only|Bitmap Heap) Scan(?: using (\w+))? on (run|document|task_number|claim) /g)]);
    return new Set(found.map(([, kind, index, table]) => `${table}: ${index ?? kind}`));
  };
  const keysOnly = { run: "run_pkey", document: "document_pkey", task_number: "task_number_pkey", claim: "claim_key" };
  const judge = (when) => {
    const seen = searches();
    for (const table of ["run", "document", "claim"]) assert.ok(seen.has(`${table}: ${keysOnly[table]}`), `${table} ${when}: ${[...seen]}`);
    seen.delete("claim: claim_expiry"); // the search for expired claims
    for (const one of seen) assert.equal(one, `${one.split(":")[0]}: ${keysOnly[one.split(":")[0]]}`, when);
  };
  // More than five times each: from then on a session keeps one plan for all values.
  const work = async (count) => {
    for (let i = 0; i < count; i++) {
      const attempt = await worker.take(await worker.trigger("hello", { idempotencyKey: `key ${count} ${i}` }));
      await attempt.succeed({ i });
      assert.equal((await gateway.post(`/api/v1/projects/${keys.ref}/envvars/dev`, { name: `NAME_${count}_${i}`, value: `${i}` })).status, 200);
    }
  };
  server.output = "";
  await work(12);
  judge("without statistics");
  server.query("ANALYZE");
  await work(30);
  judge("with statistics of few runs");
  await gateway.stop();
});

test("a page deep in a tag reads only its own runs, in a database that has no statistics", async (t) => {
  const server = await startPostgres({ t, settings: { autovacuum: "off", session_preload_libraries: "auto_explain",
    "auto_explain.log_min_duration": "0", "auto_explain.log_analyze": "on", "auto_explain.log_timing": "off" } });
  const gateway = await startGateway({ t, ...onDatabase(server, "pages") });
  const items = Array.from({ length: 400 }, () => ({ task: "hello", options: { tags: ["one"] } }));
  const { runs } = (await gateway.post("/api/v1/tasks/batch", { items })).json;
  const ids = runs.map(({ id }) => id).sort().reverse();
  const read = async (size, query = "") => {
    server.output = "";
    const page = await gateway.get(`/api/v1/runs?filter[tag]=one&filter[createdAt][from]=1&page[size]=${size}${query}`);
    assert.equal(page.status, 200, page.text);
    return page.json;
  };
  let at = "";
  for (let i = 0; i < 3; i++) at = `&page[after]=${(await read(100, at)).pagination.next}`;
  for (const [query, expected] of [["", ids.slice(0, 10)], [at, ids.slice(300, 310)]]) {
    assert.deepEqual((await read(10, query)).data.map(({ id }) => id), expected);
    const plan = await until(() => server.output.split("LOG:").find((text) => text.includes("WITH page AS") && text.includes("loops=")), { what: "the plan" });
    const looked = [...plan.matchAll(/ on run(?:_tag)? \w+ .*actual rows=(\d+) loops=(\d+)/g)].map(([, rows, loops]) => rows * loops);
    assert.ok(looked.length >= 2 && Math.max(...looked) <= 130, `${looked} rows were looked at for ${query || "the first page"}`);
  }
  await gateway.stop();
});

test("a restored dump begins another epoch, a restart does not", async (t) => {
  const server = await startPostgres({ t }), gateway = await startGateway({ t, ...onDatabase(server, "dumped") });
  const epoch = () => server.query("SELECT value FROM runcast.meta WHERE name = 'epoch'");
  const before = epoch();
  await gateway.stop();
  await gateway.restart();
  assert.equal(epoch(), before);
  const { id } = (await gateway.post("/api/v1/tasks/hello/trigger", { payload: "1" })).json;
  await gateway.stop();
  const file = path.join(temporaryFolder(), "dump");
  execFileSync("pg_dump", ["-Fc", "-f", file, "-d", server.url]);
  server.query("DROP SCHEMA runcast CASCADE");
  execFileSync("pg_restore", ["-d", server.url, file]);
  assert.equal(epoch(), before, "the dump has it");
  await gateway.restart();
  assert.notEqual(epoch(), before);
  assert.equal((await gateway.get(`/api/v3/runs/${id}`)).status, 200);
  await gateway.stop();
});

test("a gateway with a different encryption key than the leader's neither stands by nor takes its name", async (t) => {
  const server = await startPostgres({ t }), gateway = await startGateway({ t, ...onDatabase(server, "leads") });
  const other = { RUNCAST_ENCRYPTION_KEY: "6f".repeat(32), RUNCAST_DATABASE: server.url };
  for (const name of ["other", "leads"]) {
    const { code, all } = await runProgram(["--gateway-name", name, "--data", temporaryFolder(), "--listen", "127.0.0.1:0"], { env: other });
    assert.equal(code, 1, all);
    assert.match(all, /the leading gateway \\?"leads\\?" has the encryption key [0-9a-f]+, but this one has [0-9a-f]{8}; give all gateways of a database the same key/);
  }
  assert.equal((await gateway.get("/readyz")).status, 200);
  await gateway.stop();
});

test("an existing schema needs no right to create one", async (t) => {
  const server = await startPostgres({ t });
  server.query("CREATE ROLE guest LOGIN; CREATE SCHEMA theirs AUTHORIZATION guest; REVOKE CREATE ON DATABASE runcast FROM PUBLIC");
  const gateway = await startGateway({ t, ...onDatabase(server, "guest", { url: server.url.replace("runcast@", "guest@"), options: ["--database-schema", "theirs"] }) });
  await gateway.stop();
});

test("an idle gateway sends one statement a second", async (t) => {
  const relay = await PgRelay.start(postgres, t);
  const gateway = await startGateway({ t, ...onDatabase(postgres, "idle", { url: relay.url, options: ownSchema() }) });
  const count = () => [...relay.connections].reduce((sum, { statements }) => sum + statements, 0);
  await until(async () => { // a start has its own statements
    const [began, before] = [Date.now(), count()];
    await until(() => count() - before >= 10, { timeoutMs: 60_000, what: "ten statements" });
    return Date.now() - began > 8000;
  }, { timeoutMs: 60_000, what: "ten statements take ten seconds" });
  await gateway.stop();
});

test("without an encryption key of its own a gateway refuses the database", async () => {
  const { code, all } = await runProgram(["--database", postgres.url]);
  assert.equal(code, 2);
  assert.match(all, /RUNCAST_ENCRYPTION_KEY/);
});

test("settings of a PostgreSQL are refused where no database is set", async () => {
  for (const more of [["--gateway-name", "a"], ["--commit-durability", "remote_apply"], ["--failover", "lossless"], ["--dead-after", "10s"], ["--database-readers", "4"]]) {
    const { code, all } = await runProgram(["--data", temporaryFolder(), "--listen", "127.0.0.1:0", ...more]);
    assert.equal(code, 2, all);
    assert.match(all, new RegExp(`${more[0]}: needs PostgreSQL, but database is not set`));
  }
});

test("an invalid address is refused without showing it, and --check-config finds it", async () => {
  for (const more of [[], ["--check-config"]]) {
    const { code, all } = await runProgram(["--database", "nonsense%%", ...more], { env: { RUNCAST_ENCRYPTION_KEY: key } });
    assert.notEqual(code, 0);
    assert.match(all, /(^runcast: |")database is not the address of a PostgreSQL; give one like postgresql:/);
    assert.doesNotMatch(all, /nonsense/, "it may hold a password");
  }
});

test("a password cannot be an argument, and is never shown", async () => {
  const url = "postgresql://runcast:s3cret@127.0.0.1:1/runcast";
  const flag = await runProgram(["--database", url, "--print-config"]);
  assert.equal(flag.code, 2);
  assert.match(flag.all, /RUNCAST_DATABASE_FILE/);
  const shown = await runProgram(["--print-config"], { env: { RUNCAST_DATABASE: url } });
  assert.equal(shown.code, 0, shown.all);
  assert.match(shown.stdout, /database += \*\*\*/);
  const away = await runProgram([], { env: { RUNCAST_DATABASE: url, RUNCAST_ENCRYPTION_KEY: key } });
  assert.equal(away.code, 1);
  assert.match(away.all, /cannot reach the database/);
  for (const { all } of [flag, shown, away]) assert.doesNotMatch(all, /s3cret/);
});

test("commands that copy or check a database file name the tools of PostgreSQL", async () => {
  for (const words of [["backup", "/nowhere"], ["db", "check"], ["restored"]]) {
    const { code, all } = await runProgram(words, { env: { RUNCAST_DATABASE: postgres.url } });
    assert.equal(code, 1, all);
    assert.match(all, /pg_dump/);
  }
});
