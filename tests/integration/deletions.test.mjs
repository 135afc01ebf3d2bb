// Deleted organizations and projects: what must be confirmed, what ends at once, what has left the database at the
// end, and that another project is not affected.
import assert from "node:assert/strict";
import { test } from "node:test";

import { EventStream } from "../support/js/event_stream.mjs";
import { queryStore, isSqlite, keys, startGateway, until } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";
import { RunsSocket } from "../support/js/runs.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

const asked = (gateway) => async (...words) => runProgram([...words, "--data", gateway.data]);
const saying = (gateway) => async (...words) => {
  const end = await asked(gateway)(...words);
  assert.equal(end.code, 0, end.all);
  return end.stdout;
};
const ref = "proj_zzzzzzzzzzzzzzzzzzzz";

const tables = ["run", "run_tag", "run_payload", "run_metadata", "run_output", "document", "claim", "task_number"];

/** Rows of the database for each environment: { number: [rows, bytes that count as stored] }. */
const inStore = ({ data }) => Object.fromEntries(queryStore(data, `SELECT env, stored, ${tables.map((table) =>
  `(SELECT count(*) FROM ${table} t WHERE t.env = e.env)`).join(" + ")} AS n FROM environment e WHERE env > 0`).map(({ env, n, stored }) => [env, [n, stored]]));

/** Documents of the installation that contain the text. */
const documentsWith = ({ data }, text) => queryStore(data,
  `SELECT count(*) AS n FROM document WHERE env = 0 AND ($text(name) LIKE '%${text}%' OR $text(body) LIKE '%${text}%')`)[0].n;

/** Unix ms up to which retention has run in the first environment; 0: it has not. */
const floorOf = ({ data }) => queryStore(data, "SELECT floor FROM environment WHERE env = 1")[0]?.floor ?? 0;

async function makeProject(gateway, name = "Theirs") {
  const text = await saying(gateway)("project", "create", name, "--ref", ref);
  return Object.fromEntries([...text.matchAll(/^ +(\w+) +(tr_\w+)$/gm)].map(([, env, key]) => [env, key]));
}

const ok = (answer) => {
  assert.ok(answer.status < 300, `${answer.status} ${answer.text}`);
  return answer.json;
};

/** Makes something of each kind in the project: { attempt, token, worker, finished }. */
async function fill(gateway, project, { key, ref, preview }) {
  const there = { key }, worker = await Worker.register(gateway, { tasks: ["hello", { id: "cron", triggerSource: "schedule" }], key, ref });
  const finished = await worker.trigger("hello", { tags: ["a"], idempotencyKey: "once" });
  await (await worker.take(finished)).succeed({ n: 1 });
  await worker.trigger("hello", { tags: ["a"] });
  const attempt = await (await worker.dequeue()).start();
  for (let i = 0; i < 30; i++) await worker.trigger("hello", { delay: "1h", tags: ["a", `n${i}`] }, "x".repeat(1000));
  ok(await gateway.post("/api/v1/schedules", { task: "cron", cron: "0 0 1 1 *", deduplicationKey: "x" }, there));
  const { url } = ok(await gateway.post("/api/v1/waitpoints/tokens", { timeout: "1h" }, there));
  const upload = ok(await gateway.put("/api/v2/packets/large.json", "", there)).presignedUrl;
  assert.equal((await fetch(upload, { method: "PUT", body: JSON.stringify("y".repeat(5000)) })).status, 200);
  ok(await gateway.post("/api/v3/batches", { runCount: 2 }, there));
  ok(await gateway.post(`/api/v1/projects/${ref}/envvars/dev`, { name: "SECRET", value: "z" }, there));
  ok(await gateway.post(`/api/v1/projects/${ref}/branches`, { env: "preview", branch: "topic" }, { key: keys.pat }));
  await gateway.post("/api/v1/tasks/hello/trigger", { payload: 1 }, { key: preview, headers: { "x-trigger-branch": "topic" } });
  const token = ok(await gateway.post("/api/v1/auth/jwt", { claims: { scopes: ["read:runs"] } }, there)).token;
  const workers = (await saying(gateway)("worker-token", "create", "--project", ref)).trim();
  return { attempt, worker, finished, token, workers, callback: new URL(url).pathname };
}

async function openSome(gateway, t, key) {
  const socket = await RunsSocket.open({ port: gateway.port, token: key });
  t.after(() => socket.cut());
  socket.send({ op: "sub", id: 1, all: true });
  await socket.next("ok");
  const stream = await EventStream.open(`${gateway.url}/realtime/v1/events?all=1`, { headers: { authorization: `Bearer ${key}` } });
  t.after(() => stream.cut());
  await stream.next("ok");
  return { socket, stream };
}

test("a project ends when its deletion is acknowledged, and leaves the database soon, also after crashes", async (t) => {
  const gateway = await startGateway({ t, options: ["--cancel-timeout", "1s", "--retain", "0"] });
  const own = await makeProject(gateway), run = asked(gateway);
  const mine = await fill(gateway, "first", { key: keys.dev, ref: keys.ref, preview: keys.preview });
  const kept = inStore(gateway);
  const theirs = await fill(gateway, "second", { key: own.dev, ref, preview: own.preview });
  const open = await openSome(gateway, t, own.dev), bystander = await openSome(gateway, t, keys.dev);
  const held = gateway.post("/engine/v1/worker-actions/dequeue", {}, { key: theirs.workers, timeoutMs: 30_000 });
  const environments = await gateway.metric("runcast_environments");

  for (const [said, ...words] of [[/for good; confirm with --confirm proj_z{20}\n$/], [/instead of proj_z{20}; nothing was deleted\n$/, "--confirm", keys.ref], [/instead of proj_z{20}; nothing was deleted\n$/, "--confirm", "Theirs"]]) {
    const { code, stderr } = await run("project", "delete", ref, ...words);
    assert.deepEqual([code, said.test(stderr)], [1, true], stderr);
  }
  assert.match((await run("project", "delete", "proj_none", "--confirm", "proj_none")).stderr, /project not found/);
  ok(await gateway.get("/api/v1/runs", { key: own.dev }));

  assert.match(await saying(gateway)("project", "delete", ref, "--confirm", ref), /^deleted project proj_z{20}: /);
  for (const key of [own.dev, own.staging, own.prod, theirs.token, theirs.workers])
    assert.equal((await gateway.get(`/api/v3/runs/${theirs.finished}`, { key })).status, 401, key);
  assert.equal((await gateway.post("/api/v1/tasks/hello/trigger", { payload: 1 }, { key: own.preview, headers: { "x-trigger-branch": "topic" } })).status, 401);
  assert.equal((await gateway.get(`/api/v1/projects/${ref}/dev`, { key: keys.pat })).status, 404);
  assert.equal((await gateway.post(theirs.callback, {}, { key: "" })).status, 403);
  assert.equal((await theirs.attempt.completeReply({ ok: true, output: "1", outputType: "application/json" })).status, 401);
  assert.equal((await gateway.post("/engine/v1/worker-actions/dequeue", {}, { key: theirs.workers })).status, 401);
  for (const list of [["project", "list"], ["keys"], ["worker-token", "list"]]) assert.ok(!(await saying(gateway)(...list)).includes(ref));
  assert.equal((await open.socket.closed).code, 4001);
  await until(() => open.stream.ended, { what: "the stream ends" });
  await Promise.allSettled([held]);

  const rows = () => Object.entries(inStore(gateway)).filter(([number]) => !(number in kept));
  const left = () => rows().reduce((sum, [, [count]]) => sum + count, 0);
  for (let round = 0; round < 2; round++) { // kill it in the middle of the deletion
    await gateway.kill();
    assert.ok(round || left() > 0);
    await gateway.restart({ ready: round === 1 });
  }
  await until(() => left() === 0, { what: "nothing of it is stored", everyMs: 100 });
  await until(() => documentsWith(gateway, ref) === 0, { what: "nor the project", everyMs: 100 });
  assert.deepEqual(rows().map(([, [, stored]]) => stored).filter(Boolean), []);
  assert.deepEqual(Object.keys(kept).map((number) => inStore(gateway)[number][0]), Object.values(kept).map(([count]) => count));
  assert.equal(await gateway.metric("runcast_environments"), environments - 5);
  assert.equal(await gateway.metric("runcast_stored_bytes"), Object.values(inStore(gateway)).reduce((sum, [, stored]) => sum + stored, 0));

  await mine.attempt.succeed({ n: 2 });
  ok(await gateway.get(`/api/v3/runs/${mine.finished}`, { key: mine.token }));
  bystander.socket.cut();
  const numbers = Object.keys(inStore(gateway)).map(Number);
  const again = await makeProject(gateway, "Again");
  assert.notEqual(again.dev, own.dev);
  const fresh = await Worker.register(gateway, { tasks: ["hello"], key: again.dev, ref });
  await fresh.trigger("hello");
  const made = Object.keys(inStore(gateway)).map(Number).filter((number) => !numbers.includes(number));
  assert.deepEqual([made.length > 0, made.every((number) => number > Math.max(...numbers))], [true, true], `${numbers} ${made}`);
  assert.equal((await gateway.get("/api/v1/runs", { key: again.dev })).json.data.length, 1);
  assert.equal((await gateway.get(`/api/v3/runs/${theirs.finished}`, { key: again.dev })).status, 404);
  await gateway.stop();
  assert.match(gateway.stderr, new RegExp(`"action":"project delete ${ref} --confirm ${ref}","by":"uid \\d+, pid \\d+","result":"ok"`));
});

test("other environments are not purged more often while a deleted project waits for its runs", async (t) => {
  const gateway = await startGateway({ t, options: ["--cancel-timeout", "4s", "--retain", "1h"] });
  const own = await makeProject(gateway);
  const bystander = await Worker.register(gateway, { key: keys.dev });
  await (await bystander.take(await bystander.trigger("hello"))).succeed({});
  const worker = await Worker.register(gateway, { tasks: ["hello"], key: own.dev, ref });
  await worker.trigger("hello");
  await (await worker.dequeue()).start();
  await until(() => floorOf(gateway) > 0, { what: "the first pass of retention" });
  const before = floorOf(gateway);
  await saying(gateway)("project", "delete", ref, "--confirm", ref);
  await until(() => documentsWith(gateway, ref) === 0, { what: "it is forgotten", everyMs: 100 });
  const later = floorOf(gateway) - before; // passes are a minute apart
  assert.ok(later === 0 || later > 50_000, `another pass ${later} ms after the first`);
  await gateway.stop();
});

if (isSqlite) test("a deletion without a gateway is completed by the next start, and the first project can be deleted too", async (t) => {
  const gateway = await startGateway({ t, options: ["--retain", "1h"] });
  const own = await makeProject(gateway);
  const worker = await Worker.register(gateway, { key: keys.dev });
  await worker.trigger("hello", { tags: ["a"] });
  await worker.trigger("hello", { delay: "1h" });
  await gateway.stop();
  await saying(gateway)("project", "delete", keys.ref, "--confirm", keys.ref);
  assert.ok(!(await saying(gateway)("keys")).includes(keys.ref));
  assert.ok(inStore(gateway)[1][0] > 0);
  await gateway.restart();
  assert.equal((await gateway.get("/api/v1/runs", { key: keys.dev })).status, 401);
  await until(() => documentsWith(gateway, keys.ref) === 0, { what: "it is forgotten", everyMs: 100 });
  assert.deepEqual(inStore(gateway)[1], [0, 0]);
  ok(await gateway.get("/api/v1/runs", { key: own.dev }));
  await gateway.stop();
  await gateway.restart();
  ok(await gateway.get("/api/v1/runs", { key: own.dev }));
  assert.equal((await saying(gateway)("project", "list")).trim().split("\n").length, 1);
  await gateway.stop();
});

test("an organization without projects can be deleted with its users, but never the last organization", async (t) => {
  const gateway = await startGateway({ t });
  const run = asked(gateway), say = saying(gateway);
  const first = (await say("org", "list")).split(/\s/)[0];
  assert.match((await run("org", "delete", first, "--confirm", first)).stderr, new RegExp(`^runcast: ${first} still has 1 project \\(${keys.ref}\\); delete them first with runcast project delete REF`));
  await say("org", "create", "Second");
  await say("project", "create", "Theirs", "--org", "second", "--ref", ref);
  await say("user", "create", "Bob", "--email", "bob@example.com", "--org", "second");
  const token = (await say("token", "create", "--user", "bob@example.com")).trim();
  assert.match((await run("org", "delete", "second", "--confirm", "second")).stderr, /has 1 project \(proj_z{20}\)/);
  await say("project", "delete", ref, "--confirm", ref);
  assert.match((await run("org", "delete", "second")).stderr, /this deletes second \(Second\) with 1 user and 1 token; confirm with --confirm second\n$/);
  ok(await gateway.get("/api/v1/projects", { key: token }));
  assert.match(await say("org", "delete", "second", "--confirm", "second"), /users: 1, tokens revoked: 1/);
  assert.equal((await gateway.get("/api/v1/projects", { key: token })).status, 401);
  await gateway.kill(); // the remains of its project no longer have an organization
  await gateway.restart();
  await until(() => documentsWith(gateway, ref) === 0, { what: "the project is forgotten", everyMs: 100 });
  assert.equal((await gateway.get("/api/v1/projects", { key: token })).status, 401);
  assert.match(await say("org", "list"), new RegExp(`^${first} [^\n]+\n$`));
  assert.equal((await say("user", "list")).trim().split("\n").length, 1);
  await say("project", "delete", keys.ref, "--confirm", keys.ref);
  assert.match((await run("org", "delete", first, "--confirm", first)).stderr, /the last organization cannot be deleted/);
  assert.match((await run("org", "delete", "second", "--confirm", "second")).stderr, /organization not found/);
  assert.match((await run("keys", "rotate", "dev")).stderr, /there are no projects/);
  await gateway.stop();
});
