// Deployments when something fails: clients, builders and gateways that disappear, timeouts, a full disk.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { Builder, bundle, Deployer, form, KeptFiles } from "../support/js/deployments.mjs";
import { keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";

const options = ["--deploy-hold", "2s", "--dequeue-wait", "1s"];

async function start(t, more = [], settings = {}) {
  const gateway = await startGateway({ t, options: [...options, ...more], ...settings });
  return { gateway, cli: new Deployer(gateway), builder: await Builder.start(gateway) };
}

const current = (cli) => cli.get("/api/v1/deployments/current");
const files = (gateway, folder) => fs.readdirSync(path.join(gateway.data, folder)).sort();

test("a build continues when the CLI disappears, as by Ctrl-C, and a later call gets its result", async (t) => {
  const { gateway, cli, builder } = await start(t, ["--deploy-hold", "30s"]);
  const id = randomUUID(), body = cli.body(await cli.artifact()), left = new AbortController();
  const held = fetch(`${gateway.url}/api/v1/deployments`, { method: "POST", signal: left.signal, body: JSON.stringify(body), headers: { authorization: `Bearer ${keys.prod}`, "content-type": "application/json", "x-trigger-request-idempotency-key": id } }).catch(() => "left");
  const build = await builder.take(), connections = await gateway.metric("runcast_connections");
  left.abort();
  assert.equal(await held, "left");
  await until(async () => await gateway.metric("runcast_connections") < connections, { what: "the gateway sees that it has left" });
  assert.equal((await cli.show(build.deployment.id)).status, "INSTALLING");
  await builder.register(build);
  assert.equal((await builder.complete(build)).json.status, "DEPLOYED");
  assert.equal((await current(cli)).json.version, build.deployment.version);
  const again = await cli.initialize(body, { id });
  assert.deepEqual([again.status, again.json.id], [200, build.deployment.id]);
  await gateway.stop();
});

// ---- time ----

/** A clock that is set ahead, by the file of a preloaded shim. */
function clock(name) {
  const file = path.join(temporaryFolder(), "ahead");
  const settings = { preload: "shim_clock", env: { [name]: file } };
  const setAhead = (gateway, ms) => {
    fs.writeFileSync(`${file}.new`, String(ms));
    fs.renameSync(`${file}.new`, file);
    gateway.http.closeIdle();
  };
  return { settings, setAhead };
}
const minute = 60_000;

test("a deployment that no builder takes times out after a quarter of an hour", async (t) => {
  const { settings, setAhead } = clock("SHIM_MONOTONIC");
  const { gateway, cli } = await start(t, ["--deploy-hold", "20s"], settings);
  const answer = cli.deploy();
  const latest = async () => (await cli.get("/api/v1/deployments/latest")).json;
  await until(async () => (await latest()).status === "PENDING");
  setAhead(gateway, 14 * minute);
  assert.equal((await latest()).status, "PENDING");
  setAhead(gateway, 15.1 * minute);
  const { status, json } = await answer;
  const { version, errorData, status: state } = await latest();
  assert.deepEqual([status, json.error, state, errorData.name], [422, `Version ${version} timed out: no builder has taken it for 15 minutes`, "TIMED_OUT", "TimeoutError"]);
  await gateway.stop();
});

test("an upload that is too slow is ended, and its address can be used again", async (t) => {
  const { settings, setAhead } = clock("SHIM_MONOTONIC");
  const { gateway, cli } = await start(t, [], settings);
  const bytes = bundle(), { json } = await cli.offer(bytes.length), target = new URL(json.uploadUrl), { body, headers } = form(json.uploadFields, bytes);
  const raw = await gateway.connect();
  await raw.send(`POST ${target.pathname}${target.search} HTTP/1.1\r\nhost: x\r\ncontent-type: ${headers["content-type"]}\r\ncontent-length: ${body.length}\r\n\r\n`);
  await raw.send(body.subarray(0, body.length - 60));
  await until(() => files(gateway, "artifacts").some((name) => name.endsWith(".part")), { what: "some of it is written" });
  setAhead(gateway, 31_000);
  assert.match(await raw.read((text) => /KiB\/s/.test(text)), /^HTTP\/1\.1 408 .*slower than 16 KiB\/s/s);
  raw.destroy();
  assert.equal((await cli.upload(json, bytes)).status, 204);
  await gateway.stop();
});

test("a builder that is silent for a minute loses the deployment, and after a second silent builder it fails", async (t) => {
  const { settings, setAhead } = clock("SHIM_MONOTONIC");
  const { gateway, cli, builder } = await start(t, ["--deploy-hold", "20s"], settings);
  const answer = cli.deploy(), build = await builder.take();
  setAhead(gateway, 0.9 * minute);
  assert.equal((await builder.heartbeat(build)).status, 200);
  setAhead(gateway, 1.8 * minute);
  assert.equal((await cli.show(build.deployment.id)).status, "INSTALLING", "the builder called meanwhile");
  setAhead(gateway, 2 * minute);
  await until(async () => (await cli.show(build.deployment.id)).status === "PENDING");
  assert.deepEqual([(await builder.heartbeat(build)).status, (await builder.register(build)).status, (await builder.complete(build)).status], [409, 401, 409], "it comes too late");
  const second = await builder.take();
  assert.deepEqual([second.deployment.id, second.attempt], [build.deployment.id, 2]);
  assert.equal((await builder.heartbeat(build)).status, 409, "the first of the same token");
  setAhead(gateway, 4 * minute);
  const { status, json } = await answer;
  assert.deepEqual([status, json.error], [422, `Version ${build.deployment.version} failed: its builder ended while it was built`]);
  await gateway.stop();
});

test("upload addresses, and bundles that are not deployed, expire after a quarter of an hour; the id of a call after an hour", async (t) => {
  const { settings, setAhead } = clock("SHIM_CLOCK");
  const { gateway, cli, builder } = await start(t, [], settings);
  const id = randomUUID(), deployed = cli.body(await cli.artifact()), answer = cli.initialize(deployed, { id });
  await builder.build();
  assert.equal((await answer).status, 200);
  const bytes = bundle(), { json: offer } = await cli.offer(bytes.length), unused = await cli.artifact();
  setAhead(gateway, 16 * minute);
  assert.equal((await cli.upload(offer, bytes)).status, 403);
  assert.equal((await cli.initialize(cli.body(unused))).status, 400);
  assert.equal((await cli.offer(10)).status, 201);
  await until(() => files(gateway, "artifacts").length === 0, { what: "the bundle is removed" });
  setAhead(gateway, 59 * minute);
  assert.equal((await cli.initialize(deployed, { id })).status, 200);
  setAhead(gateway, 61 * minute);
  assert.equal((await cli.initialize(deployed, { id })).status, 400, "it is another call, whose bundle was used");
  await gateway.stop();
});

test("a forced deployment also cancels one requested a moment ago that is not written yet", async (t) => {
  const control = path.join(temporaryFolder(), "control");
  const { gateway, cli, builder } = await start(t, ["--deploy-hold", "20s"], { preload: "shim_sync", env: { SHIM_CONTROL: control } });
  const named = { externalId: "ci-1" };
  const [one, two] = [await cli.artifact(), await cli.artifact()];
  fs.writeFileSync(control, "delay 1000"); // each bundle is synced before its deployment is written
  const first = cli.initialize(cli.body(one, { ...named, buildEnvVars: { A: "of the first" } }));
  await until(() => /"action":"deploy"/.test(gateway.stderr), { what: "the first is taken" });
  const forced = cli.initialize(cli.body(two, { ...named, force: true }));
  await until(() => gateway.stderr.match(/"action":"deploy"/g).length === 2, { what: "the second is taken" });
  assert.deepEqual((await cli.get("/api/v1/deployments")).json.data, [], "neither is written");
  const { status, json } = await first;
  assert.deepEqual([status, /was canceled: another deployment with its external id was forced/.test(json.error)], [422, true], json.error);
  fs.rmSync(control);
  const build = await builder.build(), made = (await forced).json;
  assert.deepEqual([made.version, made.canceledDeployments.length], [build.deployment.version, 1]);
  const listed = async () => (await cli.get("/api/v1/deployments")).json.data.map(({ status }) => status);
  assert.deepEqual(await listed(), ["DEPLOYED", "CANCELED"]);
  await gateway.kill();
  await gateway.restart();
  assert.deepEqual(await listed(), ["DEPLOYED", "CANCELED"]);
  await until(() => new KeptFiles(gateway).archives().length === 1, { what: "one archive is left" });
  await gateway.stop();
  const stored = fs.readFileSync(path.join(gateway.data, "runcast.db"), "latin1");
  assert.ok(stored.includes(made.id) && !stored.includes('{"sealed":'), "of a build that never began no variables were written");
});

test("the log of a build is whole as soon as its deployment has ended, even if the disk is slow", async (t) => {
  const control = path.join(temporaryFolder(), "control");
  const { gateway, cli, builder } = await start(t, ["--deploy-hold", "20s"], { preload: "shim_sync", env: { SHIM_CONTROL: control } });
  const answer = cli.initialize(cli.body(await cli.artifact())), build = await builder.take(), { id } = build.deployment;
  assert.equal((await builder.heartbeat(build, { step: "BUILDING", log: "installing\n" })).status, 200);
  await builder.register(build, ["hello"]);
  fs.writeFileSync(control, "delay 400"); // the log is written after the status
  const completed = builder.complete(build);
  await until(async () => (await cli.show(id)).status === "DEPLOYED", { what: "its end" });
  assert.equal((await cli.get(`/api/v1/deployments/${id}/logs`)).text, "installing\n");
  assert.deepEqual([(await completed).status, (await answer).status], [200, 200]);
  await gateway.stop();
});

test("a deployment whose cancellation cannot be written is canceled when the disk has space again", async (t) => {
  const control = path.join(temporaryFolder(), "control");
  const { gateway, cli } = await start(t, [], { preload: "shim_sync", env: { SHIM_CONTROL: control } });
  const named = { externalId: "ci-1" };
  const [one, two] = [await cli.artifact(), await cli.artifact()];
  cli.initialize(cli.body(one, named)).catch(() => { /* it waits for a builder until the gateway exits */ });
  const listed = async () => (await cli.get("/api/v1/deployments")).json.data.map(({ status }) => status);
  await until(async () => (await listed())[0] === "PENDING", { what: "the first waits for a builder" });
  fs.writeFileSync(control, "enospc");
  const forced = await cli.initialize(cli.body(two, { ...named, force: true }));
  assert.equal(forced.status, 503, forced.text);
  assert.deepEqual(await listed(), ["PENDING"]);
  fs.rmSync(control);
  await until(async () => (await listed()).includes("CANCELED"), { what: "its end" });
  await gateway.kill();
});

// ---- no space ----

test("while the disk is full no upload is accepted, and what is there stays", async (t) => {
  const order = path.join(temporaryFolder(), "disk");
  const { gateway, cli, builder } = await start(t, [], { preload: "shim_disk", env: { SHIM_DISK: order } });
  const good = cli.deploy();
  await builder.build();
  const { json: { id } } = await good, before = (await current(cli)).json;
  fs.writeFileSync(order, "full /artifacts/");
  const { json: offer } = await cli.offer(bundle("b").length), refused = await cli.upload(offer, bundle("b"));
  assert.deepEqual([refused.status, refused.json.error], [503, "storage_full"]);
  fs.writeFileSync(order, "low");
  assert.equal((await cli.upload(offer, bundle("b"))).status, 204, "its address may be used again");
  const low = await cli.initialize(cli.body(offer.artifactKey));
  const unoffered = await cli.offer(1000);
  assert.deepEqual([unoffered.status, /^storage_full: .*less than 1 GiB/.test(unoffered.json.error)], [503, true], unoffered.text);
  assert.deepEqual([low.status, /^storage_full: .*less than 1 GiB/.test(low.json.error)], [503, true], low.text);
  assert.deepEqual([(await current(cli)).json, (await cli.get("/api/v1/deployments")).json.data.length], [before, 1]);
  fs.rmSync(order);
  const next = cli.initialize(cli.body(offer.artifactKey));
  await builder.build();
  assert.equal((await next).status, 200, "the bundle was kept for the next try");
  assert.ok(new KeptFiles(gateway).archives().includes(`${id}.tar.gz`));
  await gateway.stop();
});

// ---- the gateway exits in the middle ----

const states = {
  PENDING: async () => {},
  INSTALLING: async ({ builder }) => { await builder.take(); },
  BUILDING: async ({ builder }) => { const build = await builder.take(); await builder.heartbeat(build, { step: "BUILDING" }); },
  DEPLOYING: async ({ builder }) => { const build = await builder.take(); await builder.heartbeat(build, { step: "BUILDING" }); await builder.register(build); },
};
for (const [state, reach] of Object.entries(states))
  test(`a deployment whose gateway is killed while it is ${state} starts again, and the CLI's next try joins it`, async (t) => {
    const all = await start(t, ["--deploy-hold", "20s"]), { gateway, cli, builder } = all;
    const id = randomUUID(), body = cli.body(await cli.artifact(), { buildEnvVars: { A: "given" } });
    const cut = cli.initialize(body, { id }).catch(() => "cut");
    await until(async () => (await cli.get("/api/v1/deployments/latest")).status === 200);
    await reach(all);
    const { id: deployment, status, version } = (await cli.get("/api/v1/deployments/latest")).json;
    assert.equal(status, state);
    await gateway.kill();
    assert.equal(await cut, "cut");
    await gateway.restart();
    const next = cli.initialize(body, { id }), build = await builder.build();
    assert.deepEqual([build.deployment.id, build.deployment.version, build.attempt, build.buildEnvVars], [deployment, version, state === "PENDING" ? 1 : 2, { A: "given" }]);
    assert.deepEqual([(await next).status, (await next).json.id], [200, deployment]);
    assert.equal((await current(cli)).json.version, version);
    await gateway.stop();
  });

test("a deployment whose gateway is killed twice during the build fails, and the next one is another version", async (t) => {
  const { gateway, cli, builder } = await start(t, ["--deploy-hold", "20s"]);
  const id = randomUUID(), body = cli.body(await cli.artifact());
  cli.initialize(body, { id }).catch(() => {});
  const first = await builder.take();
  for (let i = 0; i < 2; i++) {
    await gateway.kill();
    await gateway.restart();
    if (!i) assert.equal((await builder.take()).attempt, 2);
  }
  const told = await cli.initialize(body, { id });
  assert.deepEqual([told.status, told.json.error], [422, `Version ${first.deployment.version} failed: the gateway ended while it was built`]);
  const next = cli.deploy(), build = await builder.build();
  assert.equal(Number(build.deployment.version.split(".")[1]), Number(first.deployment.version.split(".")[1]) + 1);
  assert.equal((await next).status, 200);
  await gateway.kill();
  await gateway.restart();
  assert.equal((await current(cli)).json.version, build.deployment.version);
  await gateway.stop();
});

test("after a kill, an uploaded bundle is there and half an upload is not", async (t) => {
  const { gateway, cli, builder } = await start(t);
  const artifactKey = await cli.artifact();
  await gateway.kill();
  fs.writeFileSync(path.join(gateway.data, "artifacts/3.9999999999.10.aaaaaaaaaaaaaaaaaaaaaaaa.part"), "x");
  fs.writeFileSync(path.join(gateway.data, "artifacts/3.9999999999.10.aaaaaaaaaaaaaaaaaaaaaaaa"), "short");
  const kept = new KeptFiles(gateway);
  kept.put("deployment_nobody.tar.gz", "x");
  await gateway.restart();
  assert.equal(files(gateway, "artifacts").length, 1);
  await until(() => kept.names().length === 0, { what: "what belongs to no deployment is removed" });
  const answer = cli.initialize(cli.body(artifactKey));
  await builder.build();
  assert.equal((await answer).status, 200);
  await gateway.stop();
});
