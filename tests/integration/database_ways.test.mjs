// How a gateway connects to its PostgreSQL: through PgBouncer, which gives each statement any connection that is free,
// and by TLS, where a server that cannot prove its name is refused.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { before, test } from "node:test";

import { Writers } from "../support/js/acknowledged.mjs";
import { startGateway, temporaryFolder } from "../support/js/gateway.mjs";
import { startPgBouncer } from "../support/js/pgbouncer.mjs";
import { onDatabase, startPostgres } from "../support/js/postgres.mjs";
import { runProgram } from "../support/js/program.mjs";
import { makeAuthority } from "../support/js/tls.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

async function write(t, gateway) {
  const writers = new Writers(gateway.url);
  t.after(() => writers.giveUp());
  await writers.untilServed();
  return writers;
}

const tellsLoss = /lead lost/;

test("through PgBouncer in transaction mode everything works as without it, also when it or the server restarts", { timeout: 150_000 }, async (t) => {
  const postgres = await startPostgres({ t }), pooler = await startPgBouncer(postgres, { t, connections: 3 });
  const gateway = await startGateway({ t, ...onDatabase(postgres, "only", { url: pooler.url }) });
  const worker = await Worker.register(gateway, { tasks: ["hello"] });
  const id = await worker.trigger("hello", { tags: ["one"], idempotencyKey: "a\u0000b" }, { name: "é\u0000" });
  await (await worker.take(id)).succeed({ n: 2 });
  assert.deepEqual((await gateway.get("/api/v1/runs?filter[tag]=one")).json.data.map((run) => run.id), [id]);

  const writers = await write(t, gateway);
  assert.ok(Number(postgres.query("SELECT count(*) FROM pg_stat_activity WHERE usename = 'runcast'")) <= 3, "six connections share three");
  for (const strike of [() => postgres.restart({ downMs: 500 }), () => postgres.endBackends(), () => pooler.restart()]) {
    await strike();
    await writers.untilServed(60_000);
  }
  await writers.stop();
  writers.judge(postgres);
  assert.doesNotMatch(gateway.stderr, tellsLoss);
  await gateway.kill();
  await gateway.restart();
  assert.deepEqual((await gateway.get(`/api/v3/runs/${id}`)).json.output, { n: 2 });
  assert.deepEqual((await gateway.get("/api/v1/runs?filter[tag]=one")).json.data.map((run) => run.id), [id]);
  await gateway.stop();
});

let authority, foreign, secure;
before(async () => {
  [authority, foreign] = ["authority", "foreign"].map((name) => makeAuthority(temporaryFolder(), name));
  secure = await startPostgres({ hba: "hostnossl all runcast all reject", certificate: authority.sign("server", "DNS:localhost") });
});

const address = ({ host = "localhost", ca = authority.certificate } = {}) =>
  `postgresql://runcast@${host}:${secure.port}/runcast?sslmode=verify-full&sslrootcert=${ca}`;

test("TLS works with a server that proves its name, also from within the sandbox, and after its authority is replaced", { timeout: 240_000 }, async (t) => {
  const ca = path.join(temporaryFolder(), "ca.pem");
  fs.copyFileSync(authority.certificate, ca);
  const gateway = await startGateway({ t, ...onDatabase(secure, "only", { url: address({ ca }), options: ["--sandbox", "auto"] }) });
  assert.match(gateway.stderr, /"the gateway is confined","landlock":"ABI \d/);
  const writers = await write(t, gateway);
  const encrypted = () => secure.query("SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename = 'runcast'");
  assert.equal(encrypted(), "t");
  secure.endBackends(); // after this, it connects from within the sandbox
  await writers.untilServed();

  const bundle = [authority, foreign].map(({ certificate }) => fs.readFileSync(certificate)).join("");
  fs.writeFileSync(`${ca}.new`, bundle);
  fs.renameSync(`${ca}.new`, ca);
  secure.useCertificate(foreign.sign("server", "DNS:localhost"));
  secure.endBackends();
  await writers.untilServed();
  assert.equal(encrypted(), "t");
  secure.useCertificate(authority.sign("server", "DNS:localhost"));
  await writers.stop();
  writers.judge(secure);
  assert.doesNotMatch(gateway.stderr, tellsLoss);
  await gateway.stop();
});

for (const [what, url, words] of [
  ["of another name", () => address({ host: "127.0.0.1" }), /does not match host name .*the host in the address must be a name that the server's certificate has/],
  ["of a foreign authority", () => address({ ca: foreign.certificate }), /certificate verify failed.*sslrootcert in the address must be a file with the CA/],
  ["of whose authority there is no file", () => address({ ca: "/nowhere/ca.pem" }), /\/nowhere\/ca\.pem.*sslrootcert in the address must be a file with the CA/],
]) {
  test(`a server ${what} is refused, with what to do`, async () => {
    const { code, all } = await runProgram(["--listen", "127.0.0.1:0", "--data", path.join(temporaryFolder(), "data"), "--database", url()],
      { env: { RUNCAST_ENCRYPTION_KEY: "5e".repeat(32) }, timeoutMs: 90_000 });
    assert.equal(code, 1, all);
    assert.match(all, words);
  });
}

test("a remote server that is trusted without proof causes a warning", async () => {
  const settings = ["--listen", "127.0.0.1:0", "--data", path.join(temporaryFolder(), "data")], env = { RUNCAST_ENCRYPTION_KEY: "5e".repeat(32) };
  for (const [url, warned] of [["postgresql://runcast@192.0.2.1:1,127.0.0.1:1/x?connect_timeout=2", true], ["postgresql://runcast@127.0.0.1:1/x", false],
    ["postgresql://runcast@192.0.2.1:1/x?sslmode=verify-full&connect_timeout=2", false]]) {
    const { all } = await runProgram([...settings, "--database", url], { env, timeoutMs: 90_000 });
    assert.match(all, /cannot reach the database/);
    assert.equal(/sslmode=verify-full.*sslrootcert/.test(all), warned, all);
  }
});
