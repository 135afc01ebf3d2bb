// Archives, indexes and logs of deployments that gateways on one PostgreSQL keep in it: the next leader has them byte
// for byte; a file is there completely or not at all; and a lost database is reported.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import path from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

import { Builder, Deployer, KeptFiles, sha256 } from "../support/js/deployments.mjs";
import { startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { PgRelay } from "../support/js/pg_relay.mjs";
import { onDatabase, startPostgres } from "../support/js/postgres.mjs";
import { standsBy } from "../support/js/two_gateways.mjs";

const options = ["--deploy-hold", "20s", "--dequeue-wait", "1s"];
const PIECE = 256 * 1024;
/** Incompressible, so it is about that many bytes. */
const bundleOf = (bytes) => gzipSync(randomBytes(bytes), { level: 0 });

/** A gateway that leads, through its own relay, and clients that deploy to it. */
async function start(t) {
  const postgres = await startPostgres({ t }), relay = await PgRelay.start(postgres, t);
  const gateway = await startGateway({ t, ...onDatabase(postgres, "a", { url: relay.url, options }) });
  return { postgres, relay, gateway, cli: new Deployer(gateway), builder: await Builder.start(gateway), kept: new KeptFiles(gateway, postgres.url) };
}

/** The second gateway. */
async function startOther(t, postgres) {
  const other = await startGateway({ t, ready: false, ...onDatabase(postgres, "b", { options }) });
  await standsBy(Object.assign(other, { name: "b" }));
  return other;
}

const leads = (gateway) => until(async () => (await gateway.http.request("GET", "/readyz").catch(() => ({}))).status === 200, { timeoutMs: 60_000, what: "it leads" });

const ask = (gateway, builder, id, what) => fetch(`${gateway.url}/engine/v1/worker-actions/deployments/${id}/${what}`, { headers: { authorization: `Bearer ${builder.token}` } });
const bytesOf = async (gateway, builder, id, what) => {
  const answer = await until(async () => { // 503: the gateway is in doubt
    const answer = await ask(gateway, builder, id, what);
    return answer.status !== 503 && answer;
  }, { what });
  assert.equal(answer.status, 200, what);
  const bytes = Buffer.from(await answer.arrayBuffer());
  assert.equal(bytes.length, Number(answer.headers.get("content-length")), what);
  return bytes;
};

/** A deployed version, with an index and a log of several pieces. */
async function deploy({ cli, builder }, bytes) {
  const index = JSON.stringify({ tasks: [], text: "é".repeat(PIECE) }), answer = cli.deploy({}, { bytes });
  const build = await builder.take();
  for (let i = 0; i < 10; i++) assert.equal((await builder.heartbeat(build, { step: "BUILDING", log: `${i}: ${"x".repeat(40_000)}\n` })).status, 200);
  assert.equal((await builder.register(build)).status, 200);
  const done = await builder.complete(build, { index });
  assert.equal(done.status, 200, done.text);
  assert.equal((await answer).status, 200);
  const id = build.deployment.id, log = async () => (await cli.get(`/api/v1/deployments/${id}/logs`)).text;
  await until(async () => (await log()).length > PIECE, { what: "the log is kept" });
  return { id, build, index, log: await log() };
}

test("a builder that repeats a call while its result is being stored does not disturb it", { timeout: 240_000 }, async (t) => {
  const { postgres, gateway, cli, builder } = await start(t), index = JSON.stringify({ tasks: [], text: "x".repeat(3 * PIECE) });
  const answer = cli.deploy({}, { bytes: bundleOf(100) }), build = await builder.take();
  assert.equal((await builder.register(build)).status, 200);
  postgres.freeze();
  const first = builder.complete(build, { index });
  await until(async () => { // the first call is in the gateway, and its index is being stored
    const again = await builder.complete(build, { index });
    assert.equal(again.status, 503, again.text);
    return /already being stored/.test(again.text);
  }, { what: "the second one must retry" });
  assert.equal((await first).status, 503, "nobody knows yet");
  postgres.resume();
  await until(async () => (await builder.complete(build, { index })).status === 200, { timeoutMs: 60_000, what: "it is deployed" });
  assert.equal((await bytesOf(gateway, builder, build.deployment.id, "index")).toString(), index);
  const { status } = await answer; // 503 if the gateway was in doubt for longer than the call is held
  assert.ok([200, 503].includes(status), `${status}`);
  assert.equal((await cli.get(`/api/v1/deployments/${build.deployment.id}`)).json.status, "DEPLOYED");
  await gateway.stop();
});

test("a gateway that takes over has the archive, index and log of a deployment made at the other one", { timeout: 240_000 }, async (t) => {
  const world = await start(t), { postgres, gateway, builder, kept } = world, other = await startOther(t, postgres);
  const bytes = bundleOf(5 * PIECE + 17), { id, build, index, log } = await deploy(world, bytes);
  assert.equal(log.length > 400_000, true);
  assert.deepEqual(kept.names(), [".index.json", ".log", ".tar.gz"].map((ending) => id + ending));
  assert.equal(sha256(await bytesOf(gateway, builder, id, "archive")), sha256(bytes));
  await gateway.kill();
  await leads(other);
  assert.equal(build.archive.sha256, sha256(bytes));
  assert.ok((await bytesOf(other, builder, id, "archive")).equals(bytes));
  assert.equal((await bytesOf(other, builder, id, "index")).toString(), index);
  assert.equal((await new Deployer(other).get(`/api/v1/deployments/${id}/logs`)).text, log);
  const head = await fetch(`${other.url}/engine/v1/worker-actions/deployments/${id}/archive`, { method: "HEAD", headers: { authorization: `Bearer ${builder.token}` } });
  assert.deepEqual([head.status, Number(head.headers.get("content-length")), head.headers.get("etag")], [200, bytes.length, `"${sha256(bytes)}"`]);

  // It continues from there: the next deployment is stored, and a failed one is not.
  const there = { cli: new Deployer(other), builder: new Builder(other, builder.token) };
  const second = bundleOf(100), next = await deploy(there, second);
  assert.ok((await bytesOf(other, builder, next.id, "archive")).equals(second));
  const failing = there.cli.deploy({}, { bytes: bundleOf(2 * PIECE) });
  await there.builder.fail(await there.builder.take());
  assert.equal((await failing).status, 422);
  await until(() => kept.archives().length === 2, { what: "that of the failed one is removed" });
  assert.deepEqual(kept.archives(), [id, next.id].map((name) => `${name}.tar.gz`));
  await other.stop();
});

test("a dump by pg_dump contains the files, and they work where it is restored", { timeout: 240_000 }, async (t) => {
  const world = await start(t), { postgres, gateway, builder } = world, file = path.join(temporaryFolder(), "copy");
  const bytes = bundleOf(2 * PIECE), { id, index } = await deploy(world, bytes);
  await gateway.stop();
  const back = postgres.url.replace(/\/runcast$/, "/back");
  execFileSync("pg_dump", ["-Fc", "-f", file, "-d", postgres.url]);
  postgres.query("CREATE DATABASE back OWNER runcast");
  execFileSync("pg_restore", ["-d", back, file]);
  const again = await startGateway({ t, ...onDatabase(postgres, "a", { url: back, options }) });
  assert.ok((await bytesOf(again, builder, id, "archive")).equals(bytes));
  assert.equal((await bytesOf(again, builder, id, "index")).toString(), index);
  await again.stop();
});

test("an archive that a killed gateway was writing is not visible, and nothing of it is left", { timeout: 240_000 }, async (t) => {
  const { postgres, relay, gateway, cli, kept } = await start(t), other = await startOther(t, postgres);
  const { json: { artifactKey: none } } = await cli.offer(10);
  assert.ok(none);
  const rule = relay.order("stall", { from: "client", at: 16, of: '"runcast".put_piece_v101(' });
  cli.deploy({}, { bytes: bundleOf(20 * PIECE) }).catch(() => {});
  await rule.struck;
  await until(() => kept.archives().length === 1, { what: "some pieces are there" });
  assert.equal(kept.query("SELECT count(*) FROM deployed_file WHERE piece = 0"), "0");
  await gateway.kill();
  await leads(other);
  await until(() => kept.names().length === 0, { what: "they are removed", timeoutMs: 30_000 });
  assert.deepEqual((await new Deployer(other).get("/api/v1/deployments")).json.data, []);
  await other.stop();
});

test("a download whose database becomes unreachable ends incomplete, and one that has not begun is 503", { timeout: 240_000 }, async (t) => {
  const world = await start(t), { relay, gateway, builder } = world;
  const bytes = bundleOf(40 * PIECE), { id } = await deploy(world, bytes);
  relay.order("stall", { from: "server", at: 60, of: "deployed_file whole" });
  const answer = await ask(gateway, builder, id, "archive");
  assert.deepEqual([answer.status, Number(answer.headers.get("content-length"))], [200, bytes.length]);
  await assert.rejects(answer.arrayBuffer(), "it is not taken for whole");
  relay.refuse();
  await until(async () => {
    const refused = await ask(gateway, builder, id, "archive").catch(() => ({}));
    return refused.status === 503;
  }, { what: "503", timeoutMs: 60_000 });
  await relay.pass();
  relay.accept();
  await leads(gateway);
  await until(async () => (await ask(gateway, builder, id, "archive").catch(() => ({}))).status === 200, { what: "it is served again", timeoutMs: 60_000 });
  assert.ok((await bytesOf(gateway, builder, id, "archive")).equals(bytes));
  await gateway.stop();
});

test("a bundle that the database does not accept now is accepted by the next try", { timeout: 240_000 }, async (t) => {
  const { postgres, cli, builder, kept, gateway } = await start(t);
  const bytes = bundleOf(3 * PIECE), body = cli.body(await cli.artifact(bytes));
  postgres.query("ALTER TABLE runcast.deployed_file ADD CONSTRAINT no CHECK (piece <> 2)");
  const refused = await cli.initialize(body, { id: randomUUID() });
  assert.deepEqual([refused.status, /Cannot store the bundle/.test(refused.text)], [503, true], refused.text);
  assert.deepEqual((await cli.get("/api/v1/deployments")).json.data, []);
  await until(() => kept.names().length === 0, { what: "what it has taken of it is removed" });
  postgres.query("ALTER TABLE runcast.deployed_file DROP CONSTRAINT no");
  const answer = cli.initialize(body), { deployment: { id } } = await builder.build();
  assert.equal((await answer).status, 200);
  assert.ok((await bytesOf(gateway, builder, id, "archive")).equals(bytes));
  assert.deepEqual(kept.archives(), [`${id}.tar.gz`]);
  await gateway.kill();
  await gateway.restart();
  assert.ok((await bytesOf(gateway, builder, id, "archive")).equals(bytes));
  await gateway.stop();
});
