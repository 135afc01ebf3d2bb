// Features that a version declares and the gateway lacks: limits of a queue that only tasks have make the registration
// fail; prompts, agents and webhooks cause warnings of the version.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";

import { Builder, Deployer } from "../support/js/deployments.mjs";
import { keys, startGateway, until } from "../support/js/gateway.mjs";

let gateway;
before(async () => { gateway = await startGateway(); });
after(() => gateway.stop());

const task = (id, more) => ({ id, filePath: "a.ts", exportName: id, ...more });
const metadata = (tasks, more) => ({ packageVersion: "4.8.3", contentHash: randomUUID(), tasks, ...more });
const register = (tasks, more, key = keys.dev) => gateway.post(`/api/v1/projects/${keys.ref}/background-workers`, { localOnly: true, engine: "V2", metadata: metadata(tasks, more) }, { key });
const current = async (query = "", env = "dev") => (await gateway.get(`/api/v1/projects/${keys.ref}/${env}/workers/current${query}`, { key: keys.pat })).json.worker;

test("a registration whose queues declare limits of tasks is refused with a sentence that names each", async () => {
  const before = await register([task("early")]);
  const names = Array.from({ length: 30 }, (_, i) => `a-task-with-a-long-name-${i}`);
  for (const [tasks, more, offenders] of [
    [[task("a", { queue: { name: "q", gates: [{ queue: "q" }] } }), task("b", { queue: { name: "q", combinedConcurrencyLimit: 1 } })], {}, ['task "a" (queue.gates)']],
    [[task("a", { queue: { name: "q", concurrency: { total: 1 } } })], { queues: [{ name: "q", gates: [{ queue: "r" }] }] }, ['task "a" (queue.concurrency)', 'queue "q" (gates)']],
    [names.map((id) => task(id, { queue: { concurrency: { total: 1 } } })), {}, names.map((id) => `task "${id}" (queue.concurrency)`)],
  ]) {
    const reply = await register(tasks, more);
    assert.equal(reply.status, 400, reply.text);
    assert.equal(reply.json.error, `these limits are not supported and would be exceeded: ${offenders.join(", ")}; remove them, or use the concurrency and the gates of a task`);
  }
  assert.equal((await current()).version, before.json.version, "the version that was registered before stays current");
});

test("null or empty limits are not declarations", async () => {
  for (const empty of [null, [], {}, { inline: {}, limits: [] }, { inline: null }]) {
    const gates = Array.isArray(empty) || empty === null ? empty : [];
    const reply = await register([task("a", { concurrency: empty, gates, queue: { name: "q", combinedConcurrencyLimit: null } })], { concurrencyLimits: gates, queues: [{ name: "q", combinedConcurrencyLimit: null, concurrencyLimit: 1 }], prompts: gates, webhookEndpoints: gates, webhookSubscribers: empty && Object.keys(empty).length ? [] : empty });
    assert.equal(reply.status, 200, reply.text);
    assert.equal((await current()).warnings, undefined);
  }
});

test("prompts, agents and webhooks cause warnings of the version, also after a restart", async (t) => {
  const own = await startGateway({ t });
  const call = (path, options) => own.get(path, options);
  const reply = await own.post(`/api/v1/projects/${keys.ref}/background-workers`, { localOnly: true, engine: "V2", metadata: metadata(
    [task("plain"), task("chat", { agentConfig: { type: "ai-sdk-chat" }, triggerSource: "agent" }), task("hook", { triggerSource: "webhook" })],
    { prompts: [{ id: "greeting", filePath: "a.ts", content: "x".repeat(20_000) }], webhookEndpoints: [{ id: "stripe", filePath: "a.ts", source: "stripe", verifierArtifact: { kind: "preset" } }], webhookSubscribers: [{ endpointId: "stripe", target: { type: "task", taskId: "hook" } }] }) });
  assert.equal(reply.status, 200, reply.text);
  const path = `/api/v1/projects/${keys.ref}/dev/workers/current`;
  const shown = async (query = "") => (await call(path + query, { key: keys.pat })).json.worker;
  const { warnings, tasks } = await shown();
  assert.deepEqual(warnings.map(({ feature, names }) => [feature, names]), [["prompts", ["greeting"]], ["sessions and agents that chat", ["chat"]], ["endpoints for webhooks", ["hook", "stripe"]]]);
  for (const { message } of warnings) assert.match(message, /^This gateway does not have /);
  assert.deepEqual(tasks.map(({ slug }) => slug), ["chat", "hook", "plain"], "the other tasks are there");
  const lines = () => own.stderr.split("\n").filter((line) => /version declares unsupported features/.test(line));
  await until(() => lines().length === 3, { what: "a line for each" });
  for (const line of lines()) assert.match(line, /warn/i);

  // The error of a task that uses one names the feature like the warning.
  for (const [target, feature] of [["/api/v1/prompts/greeting", "prompts"], ["/api/v1/sessions", "sessions and agents that chat"], ["/api/v1/webhooks/endpoints", "endpoints for webhooks"]]) {
    const refused = await call(target);
    assert.equal(refused.status, 404);
    assert.match(refused.json.error, new RegExp(`runcast does not have ${feature}`));
    assert.ok(warnings.some((one) => one.feature === feature));
  }

  const { version } = reply.json;
  await own.post(`/api/v1/projects/${keys.ref}/background-workers`, { localOnly: true, engine: "V2", metadata: metadata([task("plain")]) });
  assert.equal((await shown()).warnings, undefined);
  await own.restart();
  assert.deepEqual((await shown(`?version=${version}`)).warnings, warnings);
  assert.equal((await call(`${path}?version=20200101.1`, { key: keys.pat })).status, 404);
});

test("a deployment that declares limits fails with the same sentence, and one with an agent shows its warning", async () => {
  const builder = await Builder.start(gateway);
  const deploy = async () => {
    const deploying = new Deployer(gateway).deploy(), build = await builder.take();
    for (const step of ["INSTALLING", "BUILDING"]) assert.equal((await builder.heartbeat(build, { step })).status, 200);
    return { build, deploying };
  };
  const show = async ({ deployment: { id } }) => (await gateway.get(`/api/v1/deployments/${id}`, { key: keys.prod })).json;
  const names = Array.from({ length: 20 }, (_, i) => `a-task-with-a-long-name-${i}`);

  const refused = await deploy();
  const reply = await builder.register(refused.build, names.map((id) => task(id, { queue: { gates: [{ queue: "q" }] } })));
  assert.equal(reply.status, 400);
  assert.match(reply.json.error, /^these limits are not supported .*"a-task-with-a-long-name-19" \(queue\.gates\); remove them/);
  const { status, errorData } = await show(refused.build);
  assert.deepEqual([status, errorData.message], ["FAILED", reply.json.error]);
  await refused.deploying;

  const made = await deploy();
  assert.equal((await builder.register(made.build, [task("a", { agentConfig: { type: "ai-sdk-chat" } })])).status, 200);
  assert.equal((await builder.complete(made.build)).status, 200);
  await made.deploying;
  const { worker } = await show(made.build);
  assert.deepEqual(worker.warnings.map(({ feature, names: declared }) => [feature, declared]), [["sessions and agents that chat", ["a"]]]);
});
