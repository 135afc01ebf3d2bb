// The worker API: start-up, registration, order and slots, attempts and their repetition.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";

import { keys, startGateway, until } from "../support/js/gateway.mjs";
import { internal, thrown, Worker } from "../support/js/worker_calls.mjs";

let gateway;
before(async () => { gateway = await startGateway(); });
after(() => gateway.stop());

const pat = { key: keys.pat };
const project = `/api/v1/projects/${keys.ref}`;

// ---- start-up ----

test("a personal token reads its user and the key of each environment", async () => {
  const who = (await gateway.get("/api/v2/whoami", pat)).json;
  assert.deepEqual((await gateway.get("/api/v1/platform-notifications", pat)).json, { notification: null });
  assert.ok(who.userId);
  assert.match(who.email, /.@./);
  assert.equal(who.dashboardUrl, gateway.url);
  const named = (await gateway.get(`/api/v2/whoami?projectRef=${keys.ref}`, pat)).json;
  for (const name of ["name", "url", "orgTitle"]) assert.equal(typeof named.project[name], "string");
  for (const slug of ["dev", "staging", "prod", "preview"]) {
    const { json } = await gateway.get(`${project}/${slug}`, pat);
    assert.equal(json.apiKey, keys[slug]);
    assert.equal(json.apiUrl, gateway.url);
    assert.ok(json.name && json.projectId);
  }
});

test("a secret key reads its own environment only", async () => {
  for (const slug of ["dev", "staging", "prod"])
    for (const named of ["dev", "staging", "prod", "preview"]) {
      const { status, json } = await gateway.get(`${project}/${named}`, { key: keys[slug] });
      assert.deepEqual([status, json.apiKey], named === slug ? [200, keys[slug]] : [400, undefined]);
    }
});

test("start-up calls refuse the wrong credential and the wrong project", async () => {
  for (const [target, key, status] of [
    ["/api/v2/whoami", keys.dev, 401], ["/api/v2/whoami", null, 401], ["/api/v2/whoami", "tr_pat_wrong", 401],
    ["/api/v1/projects/proj_other/dev", keys.pat, 404], ["/api/v1/projects/proj_other/dev", keys.dev, 400],
    ["/api/v1/projects/proj_other/envvars", keys.dev, 404], [`${project}/envvars`, keys.pat, 401],
    ["/engine/v1/dev/config", keys.pat, 401], ["/engine/v1/dev/presence", "tr_dev_wrong", 401],
  ]) {
    const reply = await gateway.get(target, { key });
    assert.equal(reply.status, status, `${target} ${reply.text}`);
    assert.equal(typeof reply.json.error, "string");
  }
  assert.equal((await gateway.get("/api/v1/projects/proj_other/dev", pat)).json.error, "Project not found");
});

test("the configuration and the variables contain the address of this gateway", async () => {
  const config = (await gateway.get("/engine/v1/dev/config")).json;
  assert.ok(config.environmentId);
  assert.equal(config.engineUrl, gateway.url);
  assert.deepEqual([config.dequeueIntervalWithRun, config.dequeueIntervalWithoutRun, config.maxConcurrentRuns], [0, 50, 1_000_000]);
  const { variables } = (await gateway.get(`${project}/envvars`)).json;
  assert.equal(variables.TRIGGER_API_URL, gateway.url);
  const telemetry = variables.TRIGGER_OTEL_EXPORTER_OTLP_ENDPOINT;
  assert.ok(telemetry.startsWith(`${gateway.url}/otel/${config.environmentId}/`), telemetry);
});

test("telemetry is accepted without a credential, debug logs with one", async () => {
  for (const signal of ["traces", "logs", "metrics"]) {
    const reply = await gateway.post(`/otel/v1/${signal}`, { data: "x".repeat(200_000) }, { key: null });
    assert.deepEqual([reply.status, reply.json], [200, {}]);
  }
  const reply = await gateway.post("/engine/v1/dev/runs/run_x/logs/debug", { time: 1, message: "m" });
  assert.equal(reply.status, 200);
});

test("presence starts at once and continues", async () => {
  const raw = await gateway.connect();
  await raw.send(`GET /engine/v1/dev/presence HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${keys.dev}\r\n\r\n`);
  const text = await raw.read((got) => got.includes("event: time"), { what: "a time event" });
  assert.match(text, /^HTTP\/1\.1 200 /);
  assert.match(text, /content-type: text\/event-stream/);
  assert.match(text, /event: start\r?\ndata: .+\n\n[^]*event: time\ndata: \d{4}-\d\d-\d\dT/);
  raw.destroy();
});

// ---- registration ----

test("the same build is the same worker version, another build is the next version", async () => {
  const worker = new Worker(gateway, keys.staging);
  const first = (await worker.registration({ tasks: ["a"], hash: "build-1" })).json;
  assert.match(first.version, /^\d{8}\.1$/);
  assert.equal(first.contentHash, "build-1");
  assert.deepEqual((await worker.registration({ tasks: ["a"], hash: "build-1" })).json, first);
  const second = (await worker.registration({ tasks: ["a"], hash: "build-2" })).json;
  assert.match(second.version, /^\d{8}\.2$/);
  assert.notEqual(second.id, first.id);
  const back = (await worker.registration({ tasks: ["a"], hash: "build-1" })).json;
  assert.match(back.version, /^\d{8}\.3$/, "only the newest build is compared");
});

test("simultaneous registrations get a version each, equal ones the same", async () => {
  const worker = new Worker(gateway, keys.staging);
  const hashes = ["p", "q", "r", "r", "r"];
  const replies = await Promise.all(hashes.map((hash) => worker.registration({ tasks: ["a"], hash })));
  for (const reply of replies) assert.equal(reply.status, 200, reply.text);
  assert.equal(new Set(replies.map(({ json }) => json.version)).size, new Set(replies.map(({ json }) => json.id)).size);
  assert.ok(new Set(replies.slice(0, 3).map(({ json }) => json.version)).size === 3);
});

test("an invalid registration is 400 with the place of the mistake", async () => {
  const worker = new Worker(gateway);
  const target = `${project}/background-workers`;
  for (const [body, text] of [
    ["", /empty/], ["{", /Invalid JSON/], ["[]", /must be a JSON object/], ["{}", /^metadata: must be an object/],
    ['{"metadata":{"contentHash":"h","tasks":[{}]}}', /^metadata\.tasks\[0\]\.id: /],
    ['{"metadata":{"contentHash":"h","tasks":[{"id":"a","queue":{"concurrencyLimit":0.5}}]}}', /^metadata\.tasks\[0\]\.queue\.concurrencyLimit: must be a whole number from 0 to 100000$/],
    ['{"metadata":{"contentHash":"h","tasks":[{"id":"a","machine":{"preset":"large-1X"}}]}}', /^metadata\.tasks\[0\]\.machine\.preset: must be micro, /],
    ['{"metadata":{"contentHash":"h","tasks":[],"queues":[{"name":"q","concurrencyLimit":1},{"name":"q","concurrencyLimit":5}]}}', /^metadata\.queues: the queue "q" is declared with the limits 1 and 5; give it one concurrencyLimit$/],
  ]) {
    const reply = await gateway.post(target, body);
    assert.equal(reply.status, 400, body);
    assert.match(reply.json.error, text);
  }
  const other = await worker.registration({ tasks: ["a"], hash: "h", ref: "proj_other" });
  assert.equal(other.status, 404);
});

// ---- order and slots ----

test("priority counts as seconds of waiting", async () => {
  const worker = await Worker.register(gateway, { tasks: ["ordered"] });
  const plain = await worker.trigger("ordered");
  const later = await worker.trigger("ordered");
  const urgent = await worker.trigger("ordered", { priority: 10 });
  for (const id of [urgent, plain, later]) await (await worker.take(id)).succeed(1);
});

test("a queue offers no more runs than its limit, per concurrency key", async () => {
  const worker = await Worker.register(gateway, {
    tasks: ["narrow", "free"],
    queues: [{ name: "one-lane", concurrencyLimit: 1 }],
  });
  const queue = { name: "one-lane" };
  const first = await worker.trigger("narrow", { queue });
  const second = await worker.trigger("narrow", { queue });
  const keyed = await worker.trigger("narrow", { queue, concurrencyKey: "k" });
  const other = await worker.trigger("free");

  const held = await worker.take(first);
  const free = await worker.take(other); // queues take turns
  const copy = await worker.take(keyed);
  assert.equal(await worker.status(second), "QUEUED");
  await copy.succeed(1); // frees a slot only in its own copy of the queue
  const marker = await worker.trigger("free");
  await (await worker.take(marker)).succeed(1);
  await held.succeed(1);
  await (await worker.take(second)).succeed(1);
  await free.succeed(1);
});

test("a limit of 0 blocks until a version raises it", async () => {
  const tasks = (limit) => [{ id: "blocked", queue: { concurrencyLimit: limit } }, "free"];
  const worker = await Worker.register(gateway, { tasks: tasks(0) });
  const blocked = await worker.trigger("blocked");
  const free = await worker.trigger("free");
  await (await worker.take(free)).succeed(1);
  const waiting = worker.dequeue();
  const newer = await Worker.register(gateway, { tasks: tasks(null) });
  assert.equal(await waiting, undefined); // its CLI dequeues again, with what it has now
  await (await newer.take(blocked)).succeed(1);
});

test("a held dequeue is answered with the run that is triggered meanwhile", async () => {
  const worker = await Worker.register(gateway);
  for (let i = 0; i < 5; i++) {
    const waiting = worker.dequeue();
    await until(async () => await gateway.metric("runcast_waiting_workers") === 1, { what: "it is held" });
    const id = await worker.trigger("hello");
    const run = await waiting; // without a run, the response would be empty
    assert.equal(run?.id, id);
    await (await run.start()).succeed(1);
  }
});

test("a worker that disconnects during a held dequeue takes no run with it", async () => {
  const worker = await Worker.register(gateway);
  const raw = await gateway.connect();
  await raw.send(`POST /engine/v1/dev/dequeue HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${keys.dev}\r\ncontent-length: 2\r\n\r\n{}`);
  raw.destroy();
  const id = await worker.trigger("hello");
  await (await worker.take(id)).succeed(1);
});

// ---- attempts ----

test("a start returns everything that its worker needs", async () => {
  const worker = await Worker.register(gateway, { tasks: [{ id: "told", retry: { maxAttempts: 3 }, maxDuration: 60 }] });
  const id = await worker.trigger("told", { tags: ["one"], metadata: { n: 1 }, test: true }, { a: [1, null] });
  const { message, started } = await worker.take(id);
  assert.equal(message.version, "1");
  assert.equal(message.snapshot.executionStatus, "PENDING_EXECUTING");
  assert.deepEqual([message.completedWaitpoints, message.deployment], [[], {}]);
  assert.equal(message.backgroundWorker.friendlyId, worker.id);
  assert.equal(message.backgroundWorker.version, worker.version);
  assert.equal(message.run.attemptNumber, 1);
  assert.equal(message.environment.type, "DEVELOPMENT");
  assert.equal(started.snapshot.executionStatus, "EXECUTING");
  assert.equal(started.run.status, "EXECUTING");
  assert.equal(started.envVars.TRIGGER_RUN_ID, id);
  const { execution } = started;
  assert.equal(execution.run.id, id);
  assert.deepEqual(JSON.parse(execution.run.payload), { a: [1, null] });
  assert.deepEqual([execution.run.tags, execution.run.isTest, execution.run.metadata], [["one"], true, { n: 1 }]);
  assert.deepEqual([execution.run.maxAttempts, execution.run.maxDuration], [3, 60]);
  assert.deepEqual([execution.task.id, execution.task.filePath], ["told", "src/tasks.ts"]);
  assert.equal(execution.queue.name, "task/told");
  assert.equal(execution.project.ref, keys.ref);
  assert.deepEqual(execution.attempt.number, 1);
});

test("a long payload arrives completely, and so does a long output", async () => {
  const worker = await Worker.register(gateway);
  const value = Array(60_000).fill({ text: 'é "quoted" \\ 😀 \u0000' });
  const attempt = await worker.take(await worker.trigger("hello", {}, value));
  assert.deepEqual(JSON.parse(attempt.started.execution.run.payload), value);
  await attempt.succeed(value);
  assert.deepEqual((await worker.show(attempt.id)).run.output, value);
});

test("a repeated start is one attempt", async () => {
  const worker = await Worker.register(gateway);
  const attempt = await (await worker.trigger("hello"), worker.dequeue());
  const id = randomUUID();
  const first = await attempt.startReply({ id }), again = await attempt.startReply({ id });
  assert.equal(again.status, 200, again.text);
  assert.deepEqual(again.json.snapshot, first.json.snapshot);
  assert.equal(again.json.execution.attempt.number, 1);
  const stranger = await attempt.startReply();
  assert.deepEqual([stranger.status, stranger.headers["x-should-retry"]], [409, "false"]);
});

test("a repeated start and complete get the same responses after a kill", async (t) => {
  const own = await startGateway({ t });
  const worker = await Worker.register(own);
  await worker.trigger("hello");
  const attempt = await worker.dequeue();
  const startId = randomUUID(), completeId = randomUUID();
  const first = await attempt.startReply({ id: startId });
  await own.kill();
  await own.restart();
  const again = await attempt.startReply({ id: startId });
  assert.equal(again.status, 200, again.text);
  assert.deepEqual(again.json.snapshot.id, first.json.snapshot.id);
  assert.equal(again.json.execution.attempt.number, 1);

  attempt.snapshot = first.json.snapshot.id;
  const completion = { ok: true, output: "1", outputType: "application/json" };
  const done = await attempt.completeReply(completion, { id: completeId });
  await own.kill();
  await own.restart();
  const repeated = await attempt.completeReply(completion, { id: completeId });
  assert.equal(repeated.status, 200, repeated.text);
  assert.deepEqual(repeated.json.result.snapshot.id, done.json.result.snapshot.id);
  assert.equal((await attempt.completeReply(completion)).status, 400);
  assert.equal((await worker.registration({ tasks: ["hello"], hash: worker.contentHash })).json.id, worker.id);
  await own.stop();
});

test("calls of an ended attempt are refused for good", async () => {
  const worker = await Worker.register(gateway);
  const attempt = await worker.take(await worker.trigger("hello"));
  const started = attempt.snapshot;
  await attempt.succeed({ n: 1 });
  for (const snapshot of [started, attempt.snapshot]) {
    assert.equal((await attempt.startReply({ snapshot })).status, 400);
    assert.equal((await attempt.completeReply({ ok: true }, { snapshot })).status, 400);
  }
  attempt.snapshot = started;
  await attempt.heartbeat(); // an old heartbeat changes nothing and is not an error
  const unknown = "/engine/v1/dev/runs/run_unknown1234567890123/snapshots";
  for (const reply of [
    await worker.post(`${unknown}/s/attempts/start`, {}),
    await worker.post(`${unknown}/s/attempts/complete`, { completion: { ok: true } }),
    await gateway.get(`${unknown}/latest`),
    await worker.post("/engine/v1/runs/run_unknown1234567890123/wait/duration", { date: new Date() }),
  ]) assert.equal(reply.status, 404, reply.text);
});

test("another environment's run is unknown", async () => {
  const worker = await Worker.register(gateway);
  const attempt = await worker.take(await worker.trigger("hello"));
  const thief = Object.assign(Object.create(attempt), { worker: new Worker(gateway, keys.prod) });
  assert.equal((await thief.completeReply({ ok: true })).status, 404);
  assert.equal((await thief.worker.latest(attempt.id)).status, 404);
  await attempt.succeed(1);
});

test("an output keeps its bytes, also a long one in pieces", async () => {
  const worker = await Worker.register(gateway);
  for (const output of ["12345678901234567890", "1e400", '{"json":{"s":"é\\u0000\\"\\\\"}}', JSON.stringify("x".repeat(2_000_000))]) {
    const attempt = await worker.take(await worker.trigger("hello"));
    await attempt.complete({ ok: true, output, outputType: "application/json", usage: { durationMs: 12 } });
    const { text } = await gateway.get(`/api/v3/runs/${attempt.id}`);
    assert.ok(text.includes(`"output":${output}`), output.slice(0, 80));
    assert.ok(text.includes('"durationMs":12'), text.slice(-300));
  }
});

test("metadata that was not sent yet arrives with the completion, also the parent's", async () => {
  const worker = await Worker.register(gateway);
  const set = (key, value) => [{ type: "set", key, value }];
  const flushed = (operations, text = JSON.stringify(operations)) => ({
    flushedMetadata: { dataType: "application/super+json", data: `{"json":${text}}` },
  });
  const parent = await worker.take(await worker.trigger("hello"));
  const child = await worker.take(await worker.trigger("hello", { parentRunId: parent.id }));
  const all = (who) => ({ operations: set("own", who), parentOperations: set("up", who), rootOperations: set("top", who) });
  await child.succeed(1, flushed(all("child")));
  assert.deepEqual((await worker.show(child.id)).run.metadata, { own: "child" });
  assert.deepEqual((await worker.show(parent.id)).run.metadata, { up: "child", top: "child" });
  await parent.succeed(1, flushed(all("parent"))); // without a parent, all operations are its own
  assert.deepEqual((await worker.show(parent.id)).run.metadata, { up: "parent", top: "parent", own: "parent" });
});

test("metadata whose response was lost is applied once, also the parent's", async () => {
  const worker = await Worker.register(gateway);
  const parent = await worker.take(await worker.trigger("hello"));
  const child = await worker.take(await worker.trigger("hello", { parentRunId: parent.id }));
  const one = [{ type: "increment", key: "n", value: 1 }];
  const put = (body, id) => gateway.put(`/api/v1/runs/${child.id}/metadata`, body, { headers: { "x-trigger-request-idempotency-key": id } });
  for (const [id, body] of [["a", { operations: one, parentOperations: one, rootOperations: one }], ["b", { parentOperations: one }]]) {
    const first = await put(body, `${child.id} ${id}`), again = await put(body, `${child.id} ${id}`);
    assert.deepEqual([first.status, again.status, again.json], [200, 200, first.json]);
  }
  assert.deepEqual((await worker.show(child.id)).run.metadata, { n: 1 });
  assert.deepEqual((await worker.show(parent.id)).run.metadata, { n: 3 });
  await child.succeed(1);
  await parent.succeed(1);
});

test("a disconnect interrupts the runs of the session", async () => {
  const worker = await Worker.register(gateway);
  const one = await worker.take(await worker.trigger("hello"));
  const two = await worker.take(await worker.trigger("hello"));
  await two.succeed(1);
  const reply = await worker.disconnect([one.id, two.id, "run_unknown"]);
  assert.deepEqual([reply.status, reply.json], [200, { cancelled: 1 }]);
  assert.equal(await worker.status(one.id), "INTERRUPTED");
  assert.equal((await worker.disconnect([])).json.cancelled, 0);
  assert.equal((await worker.disconnect(Array(501).fill("run_x"))).status, 400);
  assert.equal((await new Worker(gateway, keys.prod).disconnect([])).status, 400);
});

test("a run locked to a removed version can be failed by its worker", async () => {
  const worker = await Worker.register(gateway);
  const attempt = await worker.take(await worker.trigger("hello"));
  const { attemptStatus } = await attempt.fail(internal("COULD_NOT_FIND_EXECUTOR"));
  assert.equal(attemptStatus, "RUN_FINISHED");
  assert.equal(await worker.status(attempt.id), "SYSTEM_FAILURE");
});

test("a dequeue refused for its key tells only the CLI to retry, with growing pauses", async () => {
  for (const key of [null, "tr_dev_nobody", keys.pat]) {
    const { status, headers } = await gateway.post("/engine/v1/dev/dequeue", {}, { key });
    assert.deepEqual([status, headers["x-should-retry"]], [401, "true"]);
  }
  for (const path of ["/engine/v1/dev/config", "/api/v1/runs"])
    assert.equal((await gateway.get(path, { key: "tr_dev_nobody" })).headers["x-should-retry"], undefined, path);
});

test("a stop answers held dequeues and presence at once", async (t) => {
  const own = await startGateway({ t, options: ["--dequeue-wait", "5m", "--drain-timeout", "5m"] }); // longer than the test waits
  const worker = await Worker.register(own);
  const stream = own.get("/engine/v1/dev/presence");
  const waiting = worker.dequeue();
  await until(async () => await own.metric("runcast_waiting_workers") === 1, { what: "the dequeue is held" });
  own.child.kill("SIGTERM");
  assert.equal(await waiting, undefined);
  assert.equal((await stream).status, 200);
  assert.equal((await own.ended(40_000)).code, 0);
});
