// Deployments, from the upload to the current version, with a builder that builds nothing.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { Builder, bundle, Deployer, form, KeptFiles, sha256 } from "../support/js/deployments.mjs";
import { keys, startGateway, until } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

const sdk = fileURLToPath(new URL("../conformance/sdk-v4/node_modules/@trigger.dev/sdk/dist/esm/v3/index.js", import.meta.url));
const options = ["--deploy-hold", "2s", "--dequeue-wait", "1s"];

async function start(t, more = [], settings = {}) {
  const gateway = await startGateway({ t, options: [...options, ...more], ...settings });
  return { gateway, cli: new Deployer(gateway), builder: await Builder.start(gateway) };
}

const current = (cli) => cli.get("/api/v1/deployments/current");
const files = (gateway, folder) => fs.readdirSync(path.join(gateway.data, folder)).sort();

test("a bundle is uploaded, built and current before the call is answered", async (t) => {
  const { gateway, cli, builder } = await start(t);
  const bytes = bundle("the bundle");
  assert.equal((await current(cli)).status, 404);
  const answer = cli.deploy({ gitMeta: { commitSha: "abc", dirty: false }, userId: "someone" }, { bytes });
  const build = await builder.take();
  const local = await cli.initialize({ ...cli.body("bundles/none.tar.gz"), isLocalBuild: true });
  assert.match(local.json.error, /deploy without --local-build and --depot-build/);
  assert.deepEqual([build.archive, build.attempt, build.environment.type, build.environment.slug, build.project.ref, build.buildEnvVars], [{ bytes: bytes.length, sha256: sha256(bytes) }, 1, "PRODUCTION", "prod", keys.ref, {}]);
  assert.match(build.key, /^tr_prod_\w{24}$/);
  const { id, version } = build.deployment;
  assert.equal((await cli.show(id)).status, "INSTALLING");
  assert.equal((await cli.get("/api/v1/deployments?status=BUILDING")).json.data[0].id, id, "the list has fewer words");
  const archive = await builder.get(`/deployments/${id}/archive`);
  assert.deepEqual([archive.status, archive.headers.etag, Number(archive.headers["content-length"])], [200, `"${sha256(bytes)}"`, bytes.length]);
  assert.equal((await builder.heartbeat(build, { step: "BUILDING", log: "installing\n" })).status, 200);
  assert.equal((await cli.get(`/api/v1/deployments/${id}/logs`)).text, "installing\n");
  const registered = await builder.register(build, ["hello"]);
  assert.equal(registered.json.version, version, registered.text);
  assert.deepEqual((await builder.register(build, ["hello"])).json, registered.json, "a second try");
  assert.equal((await cli.show(id)).status, "DEPLOYING");
  const done = await builder.complete(build);
  assert.deepEqual([done.status, done.json], [200, { ok: true, status: "DEPLOYED" }]);
  const { status, json } = await answer;
  assert.equal(status, 200);
  assert.deepEqual([json.id, json.version, json.outcome, json.imageTag, json.imagePlatform], [id, version, "created", `runcast/${keys.ref}:${version}`, "linux/amd64"]);
  const now = (await current(cli)).json;
  assert.deepEqual([now.id, now.status, now.runtime, now.runtimeVersion, now.git.commitSha], [id, "DEPLOYED", "node-22", "22.1.0", "abc"]);
  const whole = await cli.show(id);
  assert.deepEqual([whole.commitSHA, whole.worker.version, whole.worker.tasks[0].slug], ["abc", version, "hello"]);
  assert.deepEqual((await builder.complete(build)).json, { ok: true, status: "DEPLOYED" }, "its answer may be lost");
  assert.equal((await builder.get(`/deployments/${id}/index`)).text, "{\"tasks\":[]}");
  assert.equal((await cli.get(`/api/v1/deployments/${id}/logs`)).text, "installing\n");
  assert.equal((await gateway.get(`/api/v1/projects/${keys.ref}/envvars`, { key: build.key })).status, 401, "its key opens nothing any more");
  assert.deepEqual(files(gateway, "artifacts"), []);
  assert.deepEqual(new KeptFiles(gateway).names(), [`${id}.index.json`, `${id}.log`, `${id}.tar.gz`]);
  assert.equal(await gateway.metric('runcast_deployments_total{status="DEPLOYED"}'), 1);
  await gateway.stop();
  await gateway.restart();
  assert.deepEqual((await current(cli)).json, now);
  assert.deepEqual(await cli.show(id), whole);
  assert.equal(new KeptFiles(gateway).names().length, 3);
  await gateway.stop();
});

// ---- held calls ----

test("a call is held for a part of the build, and its next try joins the same build", async (t) => {
  const { gateway, cli, builder } = await start(t, ["--deploy-hold", "1s"]);
  const id = randomUUID(), body = cli.body(await cli.artifact());
  const first = await cli.initialize(body, { id });
  assert.deepEqual([first.status, first.headers["x-should-retry"]], [503, "true"]);
  const build = await builder.take(), next = cli.initialize(body, { id }), same = cli.initialize(body, { id });
  await builder.register(build);
  await builder.complete(build);
  for (const { status, json } of [await next, await same]) assert.deepEqual([status, json.id, json.outcome], [200, build.deployment.id, "created"]);
  assert.equal((await cli.initialize(body, { id })).json.id, build.deployment.id, "also later");
  assert.equal((await cli.initialize({ ...body, contentHash: "other" }, { id })).status, 400, "another body is another call");
  assert.equal((await new Deployer(gateway, { key: keys.staging }).initialize(body, { id })).status, 400, "and so is another environment's");
  assert.equal((await cli.get("/api/v1/deployments")).json.data.length, 1);
  await gateway.stop();
});

test("the fifth try is answered while the version is still being built", async (t) => {
  const { gateway, cli, builder } = await start(t, ["--deploy-hold", "1s"]);
  const answer = cli.deploy(), build = await builder.take();
  const { status, json } = await answer;
  assert.deepEqual([status, json.version], [200, build.deployment.version]);
  assert.equal((await cli.show(json.id)).status, "INSTALLING");
  await gateway.stop();
});

test("a drain answers held calls, and the next gateway continues the deployment", async (t) => {
  const { gateway, cli, builder } = await start(t, ["--deploy-hold", "30s", "--dequeue-wait", "30s"]);
  const id = randomUUID(), body = cli.body(await cli.artifact());
  /** Uses its own connection, which stays open while the gateway drains. */
  const ask = (target, key, body) => fetch(gateway.url + target, { method: "POST", headers: { authorization: `Bearer ${key}`, "content-type": "application/json", "x-trigger-request-idempotency-key": id }, body: JSON.stringify(body) });
  const held = ask("/api/v1/deployments", keys.prod, body);
  await builder.take();
  const waiting = ask(`${builder.base}/builds/dequeue`, builder.token, { architecture: "x64", libc: "glibc" });
  await until(async () => (await gateway.metric("runcast_connections")) >= 3);
  await gateway.stop();
  const { status, headers } = await held;
  assert.deepEqual([status, headers.get("x-should-retry")], [503, "true"]);
  assert.deepEqual(await (await waiting).json(), []);
  await gateway.restart();
  const again = cli.initialize(body, { id });
  assert.equal((await builder.build()).attempt, 2);
  assert.equal((await again).status, 200);
  await gateway.stop();
});

// ---- failures ----

const importError = { name: "TaskIndexingImportError", message: "Failed to import tasks", stack: JSON.stringify([{ message: "thrown while indexing", file: "/app/src/a.ts", name: "Error" }]) };

test("a failed build reports its reason, and changes nothing", async (t) => {
  const { gateway, cli, builder } = await start(t);
  const good = cli.deploy();
  await builder.build();
  const before = (await good, await current(cli)).json;
  for (const [error, text] of [
    [importError, "Version V failed: Failed to import tasks\n/app/src/a.ts: thrown while indexing"],
    [{ name: "BuildError", message: "npm failed", stderr: `${"x\n".repeat(100)}npm ERR! 404` }, `Version V failed: npm failed\n${"x\n".repeat(49)}npm ERR! 404`],
  ]) {
    const answer = cli.deploy(), build = await builder.take();
    await builder.register(build);
    assert.deepEqual((await builder.fail(build, error)).json, { ok: true, status: "FAILED" });
    const { status, json } = await answer;
    assert.deepEqual([status, json.error], [422, text.replace("Version V", `Version ${build.deployment.version}`)]);
    const whole = await cli.show(build.deployment.id);
    assert.deepEqual([whole.status, whole.errorData.name, whole.worker], ["FAILED", error.name, undefined]);
    assert.equal((await builder.get(`/deployments/${build.deployment.id}/archive`)).status, 404);
  }
  assert.equal((await cli.get("/api/v1/deployments?status=FAILED")).json.data[0].error.name, "BuildError");
  assert.deepEqual((await current(cli)).json, before);
  const silent = cli.deploy(), build = await builder.take();
  assert.equal((await builder.complete(build)).json.status, "FAILED", "an index that has registered nothing");
  assert.match((await silent).json.error, /without registering its tasks/);
  const wrong = cli.deploy(), cron = await builder.take();
  assert.equal((await builder.register(cron, [{ id: "a", triggerSource: "schedule", schedule: { cron: "nonsense", timezone: "UTC" } }])).status, 400);
  assert.equal((await wrong).status, 422);
  await until(() => new KeptFiles(gateway).archives().length === 1);
  await gateway.stop();
});

test("a build's variables are sealed with the new key after a rotation, and removed with the build", async (t) => {
  const encryptionKeys = ["5e", "6f", "7a", "8b"].map((byte) => byte.repeat(32));
  const { gateway, cli, builder } = await start(t, ["--deploy-hold", "20s"], { env: { RUNCAST_ENCRYPTION_KEY: encryptionKeys[0] } });
  const rotate = async () => {
    const { code, all } = await runProgram(["vault", "rotate", "--data", gateway.data], { env: { RUNCAST_NEXT_ENCRYPTION_KEY: encryptionKeys[1] } });
    assert.equal(code, 0, all);
    encryptionKeys.shift();
  };
  const first = cli.deploy({ buildEnvVars: { A: "of the first" } }), build = await builder.take();
  await rotate();
  await builder.register(build);
  assert.equal((await builder.complete(build)).status, 200);
  assert.equal((await first).status, 200);
  const id = randomUUID(), body = cli.body(await cli.artifact(), { buildEnvVars: { A: "of the second" } });
  cli.initialize(body, { id }).catch(() => {});
  await until(async () => (await cli.get("/api/v1/deployments/latest")).json.status === "PENDING");
  await rotate();
  await gateway.kill();
  await gateway.restart({ env: { RUNCAST_ENCRYPTION_KEY: encryptionKeys[0] } });
  const next = cli.initialize(body, { id });
  assert.deepEqual((await builder.build()).buildEnvVars, { A: "of the second" });
  assert.equal((await next).status, 200);
  await rotate();
  await gateway.stop();
});

test("a deployment that is canceled or takes too long is taken away from its builder", async (t) => {
  const { gateway, cli, builder } = await start(t, ["--deploy-timeout", "1s"]);
  const canceled = cli.deploy(), build = await builder.take();
  assert.equal((await cli.post(`/api/v1/deployments/${build.deployment.id}/cancel`, { reason: "never mind" })).status, 204);
  assert.equal((await canceled).json.error, `Version ${build.deployment.version} was canceled: never mind`);
  assert.equal((await builder.heartbeat(build)).status, 409);
  assert.equal((await builder.complete(build)).status, 409);
  assert.equal((await cli.post(`/api/v1/deployments/${build.deployment.id}/cancel`, {})).status, 409, "final");
  assert.deepEqual((await cli.post(`/api/v1/deployments/${build.deployment.id}/fail`, { error: { name: "E", message: "m" } })).json, { id: build.deployment.id });
  assert.equal((await cli.show(build.deployment.id)).canceledReason, "never mind");
  const slow = cli.deploy(), late = await builder.take();
  const { status, json } = await slow;
  assert.deepEqual([status, json.error], [422, `Version ${late.deployment.version} timed out: the build took longer than 1s (setting deploy-timeout)`]);
  assert.equal((await cli.show(late.deployment.id)).errorData.name, "TimeoutError");
  assert.equal(await gateway.metric('runcast_deployments_total{status="TIMED_OUT"}'), 1);
  await gateway.stop();
});

// ---- uploads, and what is refused ----

test("an upload address accepts what was announced, once", async (t) => {
  const { gateway, cli } = await start(t, ["--deploy-bundle", "1m"]);
  const big = await cli.offer(1e12);
  assert.deepEqual([big.status, /1000000000000 bytes.*1048576/.test(big.json.error)], [400, true], big.text);
  assert.equal((await cli.offer(undefined)).status, 400);
  assert.match((await cli.offer(10, { type: "deployment_context" })).json.error, /takes bundles: deploy without --native-build, or with --native-build --local-bundle/);
  const bytes = bundle(), { json } = await cli.offer(bytes.length);
  assert.match(json.artifactKey, /^bundles\//);
  const refused = async (what, address, ...more) => { const reply = await cli.upload(address, ...more); assert.ok([400, 403].includes(reply.status), `${what}: ${reply.status} ${reply.text}`); };
  await refused("another key", json, bytes, { ...json.uploadFields, key: "bundles/../../x" });
  await refused("no key", json, bytes, {});
  await refused("more", json, Buffer.concat([bytes, Buffer.alloc(500_000)]));
  await refused("fewer", json, bytes.subarray(1));
  await refused("no file", json, null);
  await refused("another length", { ...json, uploadUrl: json.uploadUrl.replace(/length=\d+/, "length=5") }, bytes);
  await refused("another environment", { ...json, uploadUrl: json.uploadUrl.replace(/env_\w+/, "env_other") }, bytes);
  const target = new URL(json.uploadUrl), { body, headers } = form(json.uploadFields, bytes);
  const raw = await gateway.connect();
  await raw.send(`POST ${target.pathname}${target.search} HTTP/1.1\r\nhost: x\r\ncontent-type: ${headers["content-type"]}\r\ncontent-length: ${body.length}\r\n\r\n`);
  await raw.send(body.subarray(0, body.length - 20));
  raw.socket.destroy();
  await until(async () => (await cli.upload(json, bytes)).status === 204, { what: "after one that was cut" });
  await refused("twice", json, bytes);
  assert.equal((await new Deployer(gateway, { key: keys.staging }).initialize(cli.body(json.artifactKey))).status, 400, "of another environment");
  assert.deepEqual(files(gateway, "artifacts").length, 1);
  for (let i = 0; i < 3; i++) assert.equal((await cli.offer(10)).status, 201);
  assert.equal((await cli.offer(10)).status, 429);
  await gateway.stop();
});

test("the log has nothing that would let a reader upload", async (t) => {
  const { gateway, cli } = await start(t, ["--log-level", "debug"]);
  const { json } = await cli.offer(bundle("x").length);
  assert.equal((await cli.upload(json, bundle("more than was announced"))).status, 403);
  assert.equal((await cli.upload(json, bundle("x"))).status, 204);
  await until(() => gateway.stderr.split("\n").filter((line) => line.includes("/artifacts/v1/")).length >= 2, { what: "both are logged" });
  await gateway.stop();
  const signature = new URL(json.uploadUrl).searchParams.get("signature"), [random] = /[0-9a-z]{24}/.exec(json.artifactKey);
  for (const secret of [signature, random]) assert.ok(!`${gateway.stderr}${gateway.stdout}`.includes(secret), secret);
});

test("a large bundle goes to the disk as it arrives", async (t) => {
  const { gateway, cli, builder } = await start(t, ["--deploy-bundle", "100m"]);
  const bytes = Buffer.alloc(40 << 20, "r\r\n--");
  bytes.set([0x1f, 0x8b]);
  const answer = cli.deploy({}, { bytes }), build = await builder.take();
  assert.deepEqual(build.archive, { bytes: bytes.length, sha256: sha256(bytes) });
  const got = await fetch(`${gateway.url}${builder.base}/deployments/${build.deployment.id}/archive`, { headers: { authorization: `Bearer ${builder.token}` } });
  assert.equal(sha256(Buffer.from(await got.arrayBuffer())), build.archive.sha256);
  await builder.fail(build);
  await answer;
  await gateway.stop();
});

test("a bundle that cannot be built is refused with the reason", async (t) => {
  const { gateway, cli } = await start(t);
  const garbage = await cli.artifact(Buffer.from("no gzip, but of some length"));
  const told = await cli.initialize(cli.body(garbage));
  assert.deepEqual([told.status, told.json.error], [422, "The bundle is not a gzip archive; deploy again"]);
  await until(() => !files(gateway, "artifacts").length, { what: "the bundle is removed" });
  assert.deepEqual(new KeptFiles(gateway).names(), []);
  assert.equal((await cli.get("/api/v1/deployments")).json.data.length, 0);
  for (const [more, text] of [
    [{ type: undefined }, /upgrade the CLI/], [{ type: "V1" }, /MANAGED/], [{ isLocalBuild: true }, /does not execute deployments; start it with --execute or start a supervise role/], [{ isNativeBuild: false }, /does not execute deployments/],
    [{ fromBundle: undefined }, /takes bundles/], [{ artifactKey: undefined }, /artifactKey/], [{ artifactKey: "bundles/none.tar.gz" }, /bundle not found/], [{ contentHash: "" }, /contentHash/],
    [{ skipPromotion: "true" }, /skipPromotion must be true or false/], [{ force: 1, externalId: "x" }, /force must be true or false/], [{ isNativeBuild: "yes" }, /isNativeBuild must be/], [{ fromBundle: 1 }, /fromBundle must be/],
    [{ force: true }, /force requires externalId/], [{ externalId: "x".repeat(129) }, /128/], [{ buildEnvVars: { A: 1 } }, /buildEnvVars/], [{ buildEnvVars: [] }, /buildEnvVars/], [{ gitMeta: 1 }, /gitMeta/],
  ]) {
    const reply = await cli.initialize(cli.body("bundles/none.tar.gz", more));
    assert.deepEqual([reply.status, text.test(reply.json.error)], [400, true], `${JSON.stringify(more)}: ${reply.text}`);
  }
  assert.match((await new Deployer(gateway, { key: keys.dev }).initialize(cli.body("x"))).json.error, /development environment/);
  await gateway.stop();
});

// ---- versions ----

test("an external id is built once, its deployment does not wait for others, and force makes room for it", async (t) => {
  const { gateway, cli, builder } = await start(t, ["--deploy-hold", "20s"]);
  const first = cli.deploy({ externalId: " ci-1 " }), build = await builder.take();
  const busy = await cli.deploy({ externalId: "ci-1" });
  assert.deepEqual([busy.status, busy.headers["x-should-retry"], busy.json.error.includes(build.deployment.version)], [409, "false", true]);
  const forced = cli.deploy({ externalId: "ci-1", force: true });
  assert.equal((await first).status, 422);
  const other = await builder.build();
  const { json } = await forced;
  assert.deepEqual([json.version, json.externalId, json.canceledDeployments], [other.deployment.version, "ci-1", [{ version: build.deployment.version, shortCode: build.deployment.shortCode }]]);
  const again = await cli.deploy({ externalId: "ci-1" });
  assert.deepEqual([again.status, again.json.outcome, again.json.version, again.json.isPromoted], [200, "existing", other.deployment.version, true]);
  assert.equal((await cli.show(json.id)).externalId, "ci-1");
  await gateway.stop();
});

test("versions can be promoted, deployed without promotion, and rolled back to", async (t) => {
  const { gateway, cli, builder } = await start(t);
  const deploy = async (more) => { const answer = cli.deploy(more); await builder.build(); return (await answer).json; };
  const one = await deploy(), two = await deploy({ skipPromotion: true });
  assert.equal((await current(cli)).json.version, one.version);
  const promote = (version, query = "") => cli.post(`/api/v1/deployments/${version}/promote${query}`);
  assert.deepEqual((await promote(two.version)).json, { id: two.id, version: two.version, shortCode: two.shortCode });
  assert.equal((await current(cli)).json.version, two.version);
  assert.deepEqual([(await promote(two.version)).status, (await promote(one.version)).status], [400, 400], "already current; older");
  assert.equal((await promote(one.version, "?allowRollbacks=true")).status, 200);
  assert.equal((await current(cli)).json.version, one.version);
  assert.equal((await promote("20200101.1")).status, 404);
  assert.equal((await new Deployer(gateway, { key: keys.staging }).post(`/api/v1/deployments/${one.version}/promote`)).status, 404);
  const worker = await gateway.get(`/api/v1/projects/${keys.ref}/prod/workers/current`, { key: keys.pat });
  assert.deepEqual([worker.json.worker.version, worker.json.worker.tasks[0].slug], [one.version, "hello"]);
  const failing = cli.deploy(), build = await builder.take();
  await builder.fail(build);
  await failing;
  assert.equal((await promote(build.deployment.version)).status, 400);
  const page = (await cli.get("/api/v1/deployments?page[size]=2")).json;
  assert.deepEqual([page.data.map(({ version }) => version), page.pagination.next], [[build.deployment.version, two.version], two.id]);
  assert.deepEqual((await cli.get(`/api/v1/deployments?page[size]=2&page[after]=${page.pagination.next}`)).json.data.map(({ version }) => version), [one.version]);
  await gateway.kill();
  await gateway.restart();
  assert.equal((await current(cli)).json.version, one.version);
  await gateway.stop();
});

test("a project builds one deployment at a time, the oldest first, and the later version is current", async (t) => {
  const { gateway, cli, builder } = await start(t, ["--deploy-hold", "20s"]);
  const staging = new Deployer(gateway, { key: keys.staging });
  const first = cli.deploy();
  await until(async () => (await cli.get("/api/v1/deployments/latest")).status === 200);
  const second = staging.deploy();
  await until(async () => (await staging.get("/api/v1/deployments/latest")).status === 200);
  const one = await builder.take();
  assert.equal(one.environment.slug, "prod");
  assert.equal(await builder.dequeue(), undefined);
  await builder.register(one);
  await builder.complete(one);
  const two = await builder.build();
  assert.equal(two.environment.slug, "staging");
  assert.deepEqual([(await first).status, (await second).status], [200, 200]);
  assert.equal((await current(staging)).json.version, (await second).json.version);
  await gateway.stop();
});

test("two simultaneous deployments in one environment are two versions, and the later one is current", async (t) => {
  const { gateway, cli, builder } = await start(t, ["--deploy-hold", "20s"]);
  const answers = [cli.deploy(), cli.deploy()], one = await builder.take();
  await until(async () => (await cli.get("/api/v1/deployments")).json.data.length === 2);
  assert.equal(await builder.dequeue(), undefined, "the other one waits");
  await builder.register(one);
  await builder.complete(one);
  const two = await builder.build(), number = ({ version }) => Number(version.split(".")[1]);
  const [older, later] = [one.deployment, two.deployment].sort((a, b) => number(a) - number(b)); // the one whose bundle was kept first is built first
  assert.equal(number(later), number(older) + 1);
  assert.deepEqual((await Promise.all(answers)).map(({ status }) => status), [200, 200]);
  assert.equal((await current(cli)).json.version, later.version);

  const late = cli.deploy(), build = await builder.take();
  const plain = await Worker.register(gateway, { tasks: ["plain"], key: keys.prod }), worker = async () => (await gateway.get(`/api/v1/projects/${keys.ref}/prod/workers/current`, { key: keys.pat })).json.worker.version;
  assert.equal(number(plain), number(build.deployment) + 1, "one count for deployments and registrations");
  await builder.register(build);
  assert.equal((await builder.complete(build)).json.status, "DEPLOYED");
  assert.deepEqual([(await late).status, await worker()], [200, plain.version], "ready last, and older");
  const newest = cli.deploy(), last = await builder.build();
  assert.deepEqual([(await newest).status, await worker(), number(last.deployment)], [200, last.deployment.version, number(plain) + 1]);
  await gateway.stop();
});

test("schedules follow the current version, not the one that was built last", async (t) => {
  const { gateway, cli, builder } = await start(t);
  const task = (id) => ({ id, triggerSource: "schedule", schedule: { cron: "0 3 * * *", timezone: "UTC" } });
  const deploy = async (tasks, more) => { const answer = cli.deploy(more); await builder.build(tasks); return (await answer).json; };
  const scheduled = async () => (await cli.get("/api/v1/schedules")).json.data.map(({ task }) => task).join();
  const one = await deploy([task("first")]);
  assert.equal(await scheduled(), "first");
  const two = await deploy([task("second")], { skipPromotion: true });
  const failing = cli.deploy(), build = await builder.take();
  await builder.register(build, [task("third")]);
  await builder.fail(build);
  await failing;
  assert.equal(await scheduled(), "first", "neither what was not promoted nor what has failed");
  assert.equal((await cli.post(`/api/v1/deployments/${two.version}/promote`)).status, 200);
  assert.equal(await scheduled(), "second");
  assert.equal((await cli.post(`/api/v1/deployments/${one.version}/promote?allowRollbacks=true`)).status, 200);
  assert.equal(await scheduled(), "first");
  await gateway.stop();
});

test("a run that names an external id gets that version when it is deployed, promoted or not", async (t) => {
  const { gateway, cli, builder } = await start(t);
  const deploy = async (more) => { const answer = cli.deploy(more); await builder.build(); return (await answer).json; };
  const one = await deploy(), worker = new Worker(gateway, keys.prod);
  const parked = await worker.trigger("hello", { externalDeploymentId: "ci-9" }), other = await worker.trigger("hello");
  assert.deepEqual([await worker.status(parked), await worker.status(other)], ["WAITING_FOR_DEPLOY", "QUEUED"]);
  const failing = cli.deploy({ externalId: "ci-9" });
  await builder.fail(await builder.take());
  await failing;
  assert.equal(await worker.status(parked), "WAITING_FOR_DEPLOY");
  const named = await deploy({ externalId: "ci-9", skipPromotion: true });
  await until(async () => await worker.status(parked) === "QUEUED", { what: "it is released" });
  const [messages, more] = [await builder.post("/dequeue", { maxResources: null }), await builder.post("/dequeue", { maxResources: null })];
  const taken = Object.fromEntries([...messages.json, ...more.json].map(({ run, backgroundWorker }) => [run.friendlyId, backgroundWorker.version]));
  assert.deepEqual(taken, { [parked]: named.version, [other]: one.version });
  await gateway.stop();
});

test("a version reports its machine architecture, also when its archive is no longer kept", async (t) => {
  const { gateway, cli, builder } = await start(t);
  const deploying = cli.deploy(), build = await builder.take();
  await builder.register(build);
  await builder.complete(build, { architecture: "arm64" });
  const { json } = await deploying;
  assert.deepEqual([json.imagePlatform, (await cli.show(json.id)).imagePlatform], ["linux/arm64", "linux/arm64"]);
  await gateway.kill();
  await gateway.restart();
  assert.equal((await cli.show(json.id)).imagePlatform, "linux/arm64");
  await gateway.stop();
});

test("versions that are no longer needed are not kept, and say so", async (t) => {
  const { gateway, cli, builder } = await start(t, ["--keep-versions", "2"]);
  const deploy = async () => { const answer = cli.deploy(); await builder.build(); return (await answer).json; };
  const lock = (version) => cli.post("/api/v1/tasks/hello/trigger", { payload: "{}", options: { lockToVersion: version } });
  const keptFiles = new KeptFiles(gateway), kept = () => keptFiles.archives().map((name) => name.slice(0, -7));
  const one = await deploy(), two = await deploy();
  const waiting = await lock(one.version);
  assert.equal(waiting.status, 200, waiting.text);
  const three = await deploy(), four = await deploy();
  await until(() => !kept().includes(two.id), { what: "the second version goes" });
  assert.deepEqual(kept(), [one, three, four].map(({ id }) => id).sort(), "the first has a run that waits");
  const gone = async () => {
    const promoted = await cli.post(`/api/v1/deployments/${two.version}/promote?allowRollbacks=true`), locked = await lock(two.version);
    assert.deepEqual([promoted.status, /no longer kept/.test(promoted.json.error), locked.status, /no longer kept/.test(locked.json.error)], [400, true, 422, true], `${promoted.text} ${locked.text}`);
    assert.deepEqual([(await cli.show(two.id)).status, (await cli.show(two.id)).worker], ["DEPLOYED", undefined]);
    assert.equal((await builder.get(`/deployments/${two.id}/archive`)).status, 404);
  };
  keptFiles.remove(`${three.id}.tar.gz`);
  const lost = await builder.get(`/deployments/${three.id}/archive`);
  assert.deepEqual([lost.status, /is missing/.test(lost.json.error)], [503, true], `what was removed by hand is not said to be kept no more: ${lost.text}`);
  keptFiles.put(`${three.id}.tar.gz`, "");
  await gone();
  await gateway.kill();
  await gateway.restart();
  await gone();
  assert.equal(kept().length, 3);
  await cli.post(`/api/v2/runs/${waiting.json.id}/cancel`, {});
  await deploy();
  await until(() => kept().length === 2, { what: "the first version goes with its run, and the third" });
  assert.equal(kept().includes(one.id), false);
  await gateway.stop();
});

test("archives and versions count against the storage quota of their project", async (t) => {
  const { gateway, cli, builder } = await start(t, ["--storage-quota", "1m"]);
  const answer = cli.deploy({}, { bytes: Buffer.concat([bundle(), Buffer.alloc(900_000)]) });
  const build = await builder.take();
  const full = await cli.offer(500_000);
  assert.deepEqual([full.status, /storage_quota/.test(full.json.error)], [507, true]);
  await builder.fail(build);
  await answer;
  assert.equal((await cli.offer(500_000)).status, 201, "a failed one gives it back");
  const deploying = cli.deploy(), second = await builder.take();
  await builder.register(second);
  assert.equal((await builder.complete(second, { bytes: -1 })).status, 400);
  await builder.complete(second, { bytes: 900_000 });
  assert.equal((await deploying).status, 200);
  for (const again of [false, true]) {
    if (again) { await gateway.kill(); await gateway.restart(); }
    assert.equal((await cli.offer(500_000)).status, 507, "what was made of an archive counts, too");
  }
  await gateway.stop();
});

test("open uploads count for their project, however many branches they are for", async (t) => {
  const { gateway, cli } = await start(t, ["--storage-quota", "1m"]);
  assert.equal((await gateway.post(`/api/v1/projects/${keys.ref}/branches`, { env: "preview", branch: "b" }, { key: keys.pat })).status, 200);
  const branch = new Deployer(gateway, { key: keys.preview, branch: "b" });
  assert.equal((await cli.offer(500_000)).status, 201);
  assert.equal((await branch.offer(600_000)).status, 507);
  assert.equal((await branch.offer(300_000)).status, 201);
  assert.equal((await cli.offer(400_000)).status, 507);
  assert.equal((await gateway.post("/api/v1/tasks/hello/trigger", { payload: "x".repeat(300_000) })).status, 200, "runs have their room: nothing is stored for an offer");
  await gateway.stop();
});

// ---- credentials ----

test("the CLI is told to send bundles only where a builder exists", async (t) => {
  const { gateway, cli, builder } = await start(t);
  const settings = (env, key) => gateway.get(`/api/v1/projects/${keys.ref}/${env}/deploy-settings`, { key });
  assert.equal((await settings("prod", keys.prod)).status, 404);
  await builder.dequeue();
  assert.deepEqual((await settings("prod", keys.prod)).json, { build_path: "native_local_bundle" });
  assert.deepEqual([(await settings("dev", keys.dev)).status, (await settings("staging", keys.prod)).status, (await settings("prod", "tr_prod_000000000000000000000000")).status], [404, 404, 401]);
  assert.equal((await cli.get("/api/v1/projects/proj_ofsomebodyelseaaaaaa/prod/deploy-settings")).status, 404);
  const deploying = cli.deploy();
  await builder.build();
  assert.equal((await deploying).status, 200);
  await gateway.kill();
  await gateway.restart();
  assert.equal((await settings("prod", keys.prod)).status, 200, "a builder that was there is expected to come back");
  assert.equal((await settings("staging", keys.staging)).status, 404, "without a builder there is none");
  await gateway.stop();
});

test("the key of a build is valid for the calls of that build, until it ends", async (t) => {
  const { gateway, cli, builder } = await start(t);
  const other = cli.deploy({ skipPromotion: true }), past = await builder.build();
  await other;
  const answer = cli.deploy(), build = await builder.take(), as = { key: build.key }, one = `/api/v1/deployments/${build.deployment.id}`;
  assert.equal((await gateway.get(`/api/v1/projects/${keys.ref}/envvars`, as)).status, 200);
  assert.doesNotMatch((await gateway.get(`/api/v1/projects/${keys.ref}/envvars`, as)).text, new RegExp(keys.prod));
  for (const target of ["/api/v1/runs", "/api/v1/deployments", one, `/api/v1/projects/${keys.ref}/prod`]) assert.equal((await gateway.get(target, as)).status, 401, target);
  assert.equal((await gateway.post("/api/v1/tasks/hello/trigger", {}, as)).status, 401);
  assert.equal((await builder.register(build, ["hello"], keys.prod)).status, 403, "a plain key");
  assert.equal((await builder.register(past, ["hello"], build.key)).status, 404, "another deployment");
  assert.equal((await gateway.post(`/api/v1/deployments/${past.deployment.id}/fail`, { error: { name: "E", message: "m" } }, as)).status, 404);
  assert.equal((await gateway.post(`${one}/fail`, { error: { name: "E", message: "m" } }, as)).status, 200);
  assert.equal((await gateway.post(`${one}/fail`, { error: { name: "E", message: "m" } }, as)).status, 401);
  assert.equal((await answer).status, 422);
  await gateway.stop();
});

test("another environment's deployments answer like ones that do not exist, byte for byte", async (t) => {
  const { gateway, cli, builder } = await start(t);
  const answer = cli.deploy();
  await builder.build();
  const { id, version } = (await answer).json, artifact = await cli.artifact();
  const staging = new Deployer(gateway, { key: keys.staging }), elsewhere = await Builder.start(gateway, "--env", "staging");
  const nobody = `deployment_${"z".repeat(21)}`, plain = ({ status, text, headers }) => [status, text.replaceAll(/deployment_\w+|\d{8}\.\d+/g, "X"), headers["x-should-retry"]];
  const same = async (ask, ...pair) => { const [there, not] = [await ask(pair[0]), await ask(pair[1])]; assert.deepEqual(plain(there), plain(not)); assert.ok(there.status >= 400, String(ask)); };
  for (const rest of ["", "/logs"]) await same((one) => staging.get(`/api/v1/deployments/${one}${rest}`), id, nobody);
  for (const rest of ["/cancel", "/fail", "/progress", "/background-workers", "/finalize", "/generate-registry-credentials"]) await same((one) => staging.post(`/api/v1/deployments/${one}${rest}`, { error: { name: "E", message: "m" }, metadata: { contentHash: "h", tasks: [] } }), id, nobody);
  await same((one) => staging.post(`/api/v1/deployments/${one}/promote?allowRollbacks=true`), version, "20200101.1");
  await same((one) => staging.initialize(staging.body(one)), artifact, "bundles/zzzzzzzzzzzzzzzzzzzzzzzz.tar.gz");
  for (const rest of ["archive", "index"]) await same((one) => elsewhere.get(`/deployments/${one}/${rest}`), id, nobody);
  for (const rest of ["heartbeat", "complete"]) await same((one) => elsewhere.post(`/builds/${one}/${rest}`, { ok: false, error: { name: "E", message: "m" } }), id, nobody);
  assert.deepEqual((await staging.get("/api/v1/deployments")).json.data, []);
  const pending = cli.deploy({}, { tries: 1 });
  assert.equal(await elsewhere.dequeue(), undefined, "nor is it handed to a builder that does not serve it");
  await pending;
  await gateway.stop();
});

test("archiving a branch ends its deployments", async (t) => {
  const { gateway, builder } = await start(t, ["--deploy-hold", "20s"]);
  const branch = (rest, name = "feat") => gateway.post(`/api/v1/projects/${keys.ref}/branches${rest}`, { env: "preview", branch: name }, { key: keys.pat });
  await branch("");
  const cli = new Deployer(gateway, { key: keys.preview, branch: "feat" }), answer = cli.deploy(), build = await builder.build();
  assert.deepEqual([(await answer).status, build.environment.branch, build.environment.type], [200, "feat", "PREVIEW"]);
  const pending = cli.deploy();
  await until(async () => (await cli.get("/api/v1/deployments")).json.data.length === 2);
  assert.equal((await branch("/archive")).status, 200);
  assert.match((await pending).json.error, /was canceled: its environment was archived/);
  await until(() => new KeptFiles(gateway).names().length === 0, { what: "its files are gone" });
  await gateway.stop();
});

test("the SDK lists deployments, and reads the current one", async (t) => {
  const { gateway, cli, builder } = await start(t);
  const { auth, configure, deployments } = await import(sdk);
  configure({ baseURL: gateway.url, secretKey: keys.prod });
  await assert.rejects(deployments.retrieveCurrent(), { status: 404 });
  const made = [];
  for (let i = 0; i < 3; i++) {
    const answer = cli.deploy({ gitMeta: { commitSha: "abc" }, externalId: `ci-${i}` });
    await builder.build();
    made.unshift((await answer).json);
  }
  const now = await deployments.retrieveCurrent();
  assert.deepEqual([now.id, now.version, now.status, now.externalId, now.deployedAt instanceof Date], [made[0].id, made[0].version, "DEPLOYED", "ci-2", true]);
  const listed = [];
  for await (const one of deployments.list({ limit: 5, status: "DEPLOYED", period: "1d" })) listed.push(one.id);
  assert.deepEqual(listed, made.map(({ id }) => id));
  const { token } = (await gateway.post("/api/v1/auth/public-tokens", { scopes: ["read:deployments"] }, { key: keys.prod })).json;
  await auth.withAuth({ baseURL: gateway.url, accessToken: token }, async () => assert.equal((await deployments.retrieveCurrent()).id, made[0].id));
  await gateway.stop();
});
