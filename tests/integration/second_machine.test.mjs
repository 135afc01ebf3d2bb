// A supervise role on another machine: it has a worker token and an address, and fetches everything else from the
// gateway.
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { makeFakeBundle } from "../support/js/bundles.mjs";
import { Deployer } from "../support/js/deployments.mjs";
import { freePort, keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";
import { startProxy } from "../support/js/proxies.mjs";
import { Supervisor, versionsFolder } from "../support/js/supervisor.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

const tasks = [{ id: "task", retry: { maxAttempts: 3, minTimeoutInMs: 50, maxTimeoutInMs: 100, factor: 1, randomize: false } }];

function eventsFolder() {
  const top = temporaryFolder(), events = path.join(top, "events/");
  fs.chmodSync(top, 0o711);
  fs.mkdirSync(events);
  fs.chmodSync(events, 0o777);
  return events;
}

describe("a second machine", () => {
  let gateway, proxy, token, first, worker, id, deployed, events;
  const ended = (run, log) => until(async () => {
    const { run: now } = await worker.show(run);
    return now.finishedAt && now;
  }, { what: `the end of ${run}` }).catch((error) => { throw new Error(`${error.message}\n${log().slice(-3000)}`); });
  const trigger = (payload) => worker.trigger("task", {}, payload);
  const second = (options) => Supervisor.start({ url: proxy.url }, { token, options: ["--ca-file", proxy.certificate, ...options ?? []] });
  const told = (event) => fs.readdirSync(events).flatMap((name) => fs.readFileSync(path.join(events, name), "utf8").split("\n").filter((line) => line.includes(`"${event}"`)));

  before(async () => {
    events = eventsFolder();
    gateway = await startGateway({ options: ["--heartbeat-timeout", "10s", "--lease", "10s", "--dequeue-wait", "2s"] });
    token = (await runProgram(["worker-token", "create", "--data", gateway.data])).stdout.trim();
    first = await Supervisor.start(gateway, { token });
    deployed = await new Deployer(gateway).deploy({}, makeFakeBundle(tasks, { events }));
    assert.equal(deployed.status, 200, deployed.text);
    id = deployed.json.id;
    worker = new Worker(gateway, keys.prod);
    assert.equal((await ended(await trigger({ do: "finish" }), () => first.log)).status, "COMPLETED");
    await first.stop();
    proxy = await startProxy("nginx", { port: await freePort(), gateway: gateway.port });
  });
  after(async () => {
    proxy.stop();
    await gateway.stop();
  });

  test("builds a version that it does not have, once, and executes its runs", async () => {
    const other = await second();
    const runs = await Promise.all(Array.from({ length: 3 }, () => trigger({ do: "finish" })));
    for (const run of runs) assert.equal((await ended(run, () => other.log)).status, "COMPLETED");
    assert.equal(other.log.match(/event="fetching a version"/g).length, 1, other.log);
    const folder = path.join(other.folder, "versions", id), read = (name) => JSON.parse(fs.readFileSync(path.join(folder, name), "utf8"));
    assert.equal(read("index.json").configPath, `${folder}/trigger.config.mjs`);
    assert.deepEqual(fs.readdirSync(path.join(other.folder, "versions")), [id], "and nothing else");

    fs.rmSync(path.join(folder, "node_modules"), { recursive: true });
    assert.equal((await ended(await trigger({ do: "finish" }), () => other.log)).status, "COMPLETED", "a damaged version is built again");
    assert.equal(other.log.match(/event="fetching a version"/g).length, 2, other.log);
    assert.deepEqual(await other.stop(), { code: 0, signal: null }, other.log.slice(-3000));
  });

  test("continues while the gateway is killed, and recovers from a kill in the middle of building a version", async () => {
    const other = await second();
    const run = await trigger({ do: "sleep", ms: 2500 });
    const before = told("started").length;
    await until(() => told("started").length > before, { what: "its start" });
    await gateway.kill();
    await gateway.restart();
    const { status, output } = await ended(run, () => other.log);
    assert.deepEqual([status, output.attempt], ["COMPLETED", 1]);
    await other.kill();

    const third = await Supervisor.start({ url: proxy.url }, { token, folder: versionsFolder(), options: ["--ca-file", proxy.certificate] });
    const another = await trigger({ do: "finish" });
    await until(() => third.log.includes("fetching a version"), { what: "that it begins" });
    await third.kill();
    await third.begin();
    assert.equal((await ended(another, () => third.log)).status, "COMPLETED");
    assert.deepEqual(fs.readdirSync(path.join(third.folder, "versions")), [id]);
    assert.deepEqual(await third.stop(), { code: 0, signal: null }, third.log.slice(-3000));
  });

  test("gives back a run whose version is larger than its settings allow, with the reason", async () => {
    const narrow = await second(["--deploy-files", "5"]);
    const run = await trigger({ do: "finish" });
    await until(() => /cannot prepare a version.*too many files and folders \(max 5, setting deploy-files\)/.test(narrow.log), { what: "the reason" });
    await narrow.stop();
    const other = await second();
    assert.equal((await ended(run, () => other.log)).status, "COMPLETED");
    await other.stop();
  });

  test("reports what is wrong with an address, a certificate and a token", async () => {
    const wrong = await Supervisor.start({ url: proxy.url }, { token, options: ["--ca-file", "/etc/ssl/certs/ca-certificates.crt"], wait: false });
    await until(() => /request to the gateway failed.*certificate/.test(wrong.log), { what: "the reason" });
    await wrong.stop();

    const name = "rack 9", created = (await runProgram(["worker-token", "create", "--name", name, "--data", gateway.data])).stdout.trim();
    const other = await Supervisor.start({ url: proxy.url }, { token: created, options: ["--ca-file", proxy.certificate] });
    const revoked = await runProgram(["worker-token", "revoke", created, "--data", gateway.data]);
    assert.equal(revoked.code, 0, revoked.all);
    await until(() => /request to the gateway failed.*it rejects the worker token/.test(other.log), { what: "the reason" });
    assert.deepEqual(await other.stop(), { code: 0, signal: null }, other.log.slice(-3000));
  });

  test("reports that a gateway cannot serve, as during a takeover", async (t) => {
    const busy = http.createServer((_request, response) => response.writeHead(503).end("{}"));
    t.after(() => busy.close());
    await new Promise((resolve) => busy.listen(0, "127.0.0.1", resolve));
    const waiting = await Supervisor.start({ url: `http://127.0.0.1:${busy.address().port}` }, { token, wait: false });
    await until(() => /request to the gateway failed; retrying.*it cannot serve the call now/.test(waiting.log), { what: "the reason" });
    await waiting.stop();
  });
});
