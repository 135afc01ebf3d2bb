// Limits with 200 preview branches: the branches share half of each limit of their project, so that its other environments keep a part.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { Builder, Deployer } from "../support/js/deployments.mjs";
import { queryStore, changeStore, keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { RunsSocket } from "../support/js/runs.mjs";
import { isRoot, nodeOptions, runnerUid } from "../support/js/supervisor.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

const BRANCHES = 200;
const branch = (i) => `branch-${i}`;
const onBranch = (i) => ({ key: keys.preview, headers: { "x-trigger-branch": branch(i) } });

const user = isRoot ? ["--runner-user", String(runnerUid)] : ["--execute-unsafe"];
const pat = { key: keys.pat };

// The gateway executes, since the token of its supervise role serves all projects; the tests' builder uses it.
let gateway, builder, other;
before(async () => {
  const top = temporaryFolder(), data = path.join(top, "data");
  fs.chmodSync(top, 0o711);
  const options = ["--execute", ...user, ...nodeOptions(), "--builders", "0", "--schedules", "30", "--queue-size", "30", "--deploy-hold", "1s", "--dequeue-wait", "1s"];
  gateway = await startGateway({ data, options });
  const [{ slug }] = (await gateway.get("/api/v1/orgs", pat)).json, made = await gateway.post(`/api/v1/orgs/${slug}/projects`, { name: "Other" }, pat);
  assert.equal(made.status, 200, made.text);
  other = (await gateway.get(`/api/v1/projects/${made.json.externalRef}/prod`, pat)).json.apiKey;
  await Worker.register(gateway, { tasks: ["hello", { id: "nightly", triggerSource: "schedule" }] });
  for (let i = 0; i < BRANCHES; i++) assert.equal((await gateway.post(`/api/v1/projects/${keys.ref}/branches`, { env: "preview", branch: branch(i) }, pat)).status, 200);
  await gateway.stop();
  fill(data);
  gateway = await startGateway({ data, options });
  builder = new Builder(gateway, fs.readFileSync(path.join(data, "supervise.token"), "utf8").trim());
});
after(() => { cutSockets(); return gateway?.stop(); });

const DOC_ENVIRONMENT = 3, DOC_QUEUE = 7, DOC_BULK = 13, QUEUES = 20_000, LEFT = 100, KEPT = 4000;
const environments = (data) => queryStore(data, `SELECT $text(body) AS body FROM document WHERE kind = ${DOC_ENVIRONMENT}`).map(({ body }) => JSON.parse(body));
const bulkId = (i) => `bulk_${`${i}`.padStart(21, "0")}`;

/** Writes documents directly, since calls would take a minute: pauses queues of the branches up to their limit less 100, and
 *  has the branches keep as many bulk actions as their project may, the last branch one more than each other one. */
function fill(data) {
  const branches = environments(data).filter((one) => one.branch);
  assert.equal(branches.length, BRANCHES);
  const hex = (text) => Buffer.from(text).toString("hex"), rows = [];
  const add = (kind, at, name, body) => rows.push(`(${kind}, ${branches[at].number}, $name(${hex(name)}), 1, 0, 0, 0, $blob(${hex(body)}))`);
  for (let i = 0; i < QUEUES - LEFT; i++) add(DOC_QUEUE, i % BRANCHES, `paused-${i}`, '{"paused":true}');
  for (let i = 0; i < KEPT; i++) {
    const counts = { total: 0, success: 0, failure: 0 }, created = 1_700_000_000_000 + i;
    add(DOC_BULK, i ? i % BRANCHES : BRANCHES - 1, bulkId(i), JSON.stringify({ id: bulkId(i), type: 0, status: 1, counted: true, counts, createdAt: created, completedAt: created, from: 0, until: created, to: 0, after: "" }));
  }
  changeStore(data, `INSERT INTO document (kind, env, name, version, seq, written_at, stale_at, body) VALUES ${rows.join(", ")};`);
}

/** Registers a version in a branch, and pauses the queue of its task. */
async function pause(i) {
  const metadata = { packageVersion: "4.8.3", contentHash: branch(i), tasks: [{ id: "hello", filePath: "src/tasks.ts" }] };
  const made = await gateway.post(`/api/v1/projects/${keys.ref}/background-workers`, { localOnly: true, engine: "V2", metadata }, onBranch(i));
  assert.equal(made.status, 200, made.text);
  return gateway.post("/api/v1/queues/hello/pause", { type: "task", action: "pause" }, onBranch(i));
}

/** How many of the calls are accepted, one from each branch in turn; the first refusal gives the reason. */
async function taken(call, { ok = [200, 201], rounds = 1 } = {}) {
  let count = 0, refusal;
  for (let round = 0; round < rounds; round++)
    for (let i = 0; i < BRANCHES; i++) {
      const answer = await call(i, round);
      if (ok.includes(answer.status)) count++;
      else refusal ??= answer;
    }
  return { count, refusal };
}

/** Watches a different filter in a branch's environment; each socket has the sixteen that it may have. */
const sockets = new Map();
function cutSockets() {
  for (const socket of sockets.values()) socket.cut();
  sockets.clear();
}
async function open(i, name, hello) {
  const { key, headers } = onBranch(i), socket = await RunsSocket.open({ port: gateway.port, token: key, headers, hello });
  sockets.set(name, socket);
  return socket.next("welcome");
}
async function watch(i, round) {
  const name = `${i}-${Math.floor(round / 16)}`;
  if (!sockets.has(name)) await open(i, name, {});
  sockets.get(name).send({ op: "watch", id: round, filter: { tag: `tag-${round}` }, limit: 1 });
  const { op, code, message } = await sockets.get(name).next((one) => one.id === round && ["ok", "error"].includes(one.op));
  return { status: code ?? op, text: message };
}

/** Opens a socket in a branch with a different set of columns. */
async function columns(i, round) {
  const fields = ["payload", "output", "number", "durationMs"].filter((_name, bit) => (round + 1) >> bit & 1);
  const { fields: given } = await open(i, `${i}-${round}`, { fields });
  return { status: given.length === 7 + fields.length ? "ok" : "wider", text: given.join() };
}

const variables = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`NAME_${10 + i}`, "x"]));
const ofVariables = /The environments of a project hold together at most 20000 variables, and 5 MiB of names and values, its preview branches half of that/;
const limits = [
  { what: "uploads that are open", call: (i) => new Deployer(gateway, { key: keys.preview, branch: branch(i) }).offer(1000), prod: () => new Deployer(gateway).offer(1000), count: 8, status: 429, text: /The project's preview branches have 8 open uploads/ },
  { what: "filters that are watched", call: watch, rounds: 11, ok: ["ok"], count: 2 * 1024, status: "limit", text: /too many different filters are watched in this environment or its project/ },
  { what: "sets of columns, along with four for each branch", call: columns, rounds: 5, ok: ["ok"], count: 4 * BRANCHES, status: "wider", text: /costInCents/ },
  { what: "queues that are paused", call: pause, prod: () => gateway.post("/api/v1/queues/hello/pause", { type: "task", action: "pause" }), count: LEFT, status: 422, text: /At most 20000 queues of the preview branches of a project can be paused, have another limit, a singleton strategy or a rate at once/ },
  { what: "schedules", call: (i) => gateway.post("/api/v1/schedules", { task: "nightly", cron: "0 0 1 1 *", deduplicationKey: "yearly" }, onBranch(i)), prod: () => gateway.post("/api/v1/schedules", { task: "nightly", cron: "0 0 1 1 *", deduplicationKey: "yearly" }), count: 2 * 30, status: 422, text: /created 60\/60 schedules in the preview branches of this project/ },
  { what: "unfinished runs", call: (i) => gateway.post("/api/v1/tasks/hello/trigger", { payload: 1 }, onBranch(i)), prod: () => gateway.post("/api/v1/tasks/hello/trigger", { payload: 1 }), count: 2 * 30, status: 422, text: /the queue size limit for this project's preview branches has been reached. The maximum size is 60/ },
  { what: "variables", call: (i) => gateway.post(`/api/v1/projects/${keys.ref}/envvars/preview/import`, { variables }, onBranch(i)), prod: () => gateway.post(`/api/v1/projects/${keys.ref}/envvars/prod/import`, { variables }, { key: keys.prod }), count: 166, status: 400, text: ofVariables },
  { what: "bytes of variables", call: (i) => gateway.post(`/api/v1/projects/${keys.ref}/envvars/preview`, { name: "LARGE", value: "x".repeat(64_000) }, onBranch(i)), prod: () => gateway.post(`/api/v1/projects/${keys.ref}/envvars/prod`, { name: "LARGE", value: "x".repeat(64_000) }, { key: keys.prod }), count: Math.floor(((5 << 19) - 166 * 60 * "NAME_10x".length) / (64_000 + "LARGE".length)), status: 400, text: ofVariables },
];

/** A deployment that waits for a builder, or the response that refuses it. */
async function deploy(cli, key) {
  key ??= await until(() => cli.artifact().catch(() => null), { what: "an upload has been taken" });
  const pending = async () => (await cli.get("/api/v1/deployments?status=PENDING")).json.data.length, before = await pending();
  const answer = cli.initialize(cli.body(key)).then((reply) => reply.status === 503 ? null : reply); // held, and still pending
  const known = await Promise.race([answer, until(async () => await pending() > before && { status: 200 }, { what: "it is pending" })]);
  return { key, ...known ?? { status: 200 } };
}

async function cancelAll(clis) {
  for (const cli of clis)
    for (const { id } of (await cli.get("/api/v1/deployments?status=PENDING")).json.data) assert.equal((await cli.post(`/api/v1/deployments/${id}/cancel`, {})).status, 204);
}

test("projects take turns at builders, however many branches and deployments one of them has", async () => {
  const clis = [0, 1, 2].map((i) => new Deployer(gateway, { key: keys.preview, branch: branch(i) })), neighbor = new Deployer(gateway, { key: other });
  for (const cli of [...clis, clis[0], neighbor]) assert.equal((await deploy(cli)).status, 200);
  const order = [];
  while (order.length < 5) {
    const build = await builder.take();
    order.push(build.project.ref === keys.ref ? "branches" : "other");
    await builder.fail(build);
  }
  assert.deepEqual(order, ["branches", "other", "branches", "branches", "branches"]);
});

test("deployments in progress are limited per environment, and for the branches of a project together", async () => {
  const prod = new Deployer(gateway), clis = Array.from({ length: 31 }, (_, i) => new Deployer(gateway, { key: keys.preview, branch: branch(i + 10) }));
  for (let i = 0; i < 10; i++) assert.equal((await deploy(prod)).status, 200, `${i}`);
  const refused = await deploy(prod);
  assert.deepEqual([refused.status, /The environment has 10 deployments in progress \(max 10\)/.test(refused.json?.error)], [429, true], refused.text);
  const answers = [];
  for (const cli of clis.slice(0, 31)) answers.push(await deploy(cli));
  assert.deepEqual([answers.filter(({ status }) => status === 200).length, answers[30].status, /The preview branches of the project have 30 deployments in progress \(max 30\)/.test(answers[30].json?.error)], [30, 429, true], answers[30].text);
  assert.equal((await deploy(new Deployer(gateway, { key: other }))).status, 200);
  const all = [prod, ...clis, new Deployer(gateway, { key: other })];
  await cancelAll(all);
  assert.equal((await deploy(prod, refused.key)).status, 200);
  assert.equal((await deploy(clis[30], answers[30].key)).status, 200);
  await cancelAll(all);
});

describe("200 preview branches share half of their project's limit", () => {
  for (const { what, call, prod, count, status, text, ...more } of limits)
    test(`of ${what}`, async () => {
      const { count: found, refusal } = await taken(call, more);
      assert.equal(found, count);
      assert.deepEqual([refusal?.status, text.test(refusal?.text)], [status, true], refusal?.text);
      cutSockets();
      if (prod) assert.ok((await prod()).status < 300, "another environment of the project has a part of its own");
      assert.equal((await gateway.get("/api/v1/runs", { key: other })).status, 200);
    });
});

test("a project has at most 200 preview branches", async () => {
  const { status, json } = await gateway.post(`/api/v1/projects/${keys.ref}/branches`, { env: "preview", branch: "one-more" }, pat);
  assert.deepEqual([status, /has too many preview branches \(200, max 200\)/.test(json.error)], [422, true], json.error);
});

test("if a project keeps too many bulk actions, the branch that keeps the most loses its oldest one", async () => {
  const all = environments(gateway.data), numberOf = (i) => all.find((one) => one.branch === branch(i)).number;
  const kept = () => new Map(queryStore(gateway.data, `SELECT env, count(*) AS count FROM document WHERE kind = ${DOC_BULK} GROUP BY env`).map(({ env, count }) => [env, count]));
  const shows = async (i, id) => (await gateway.get(`/api/v1/bulk-actions/${id}`, onBranch(i))).status;
  const last = BRANCHES - 1, before = kept();
  assert.deepEqual([before.get(numberOf(0)), before.get(numberOf(last)), await shows(last, bulkId(0))], [19, 21, 200]);
  const act = async (key) => {
    const { status, json, text } = await gateway.post("/api/v1/bulk-actions", { action: "cancel", filter: { tag: "nobody" } }, { key });
    assert.equal(status, 202, text);
    return json.id;
  };
  const own = await act(keys.prod);
  await until(async () => await shows(last, bulkId(0)) === 404, { what: "the oldest one is removed" });
  assert.deepEqual([await shows(last, bulkId(last)), await shows(0, bulkId(BRANCHES))], [200, 200], "and no other one");
  assert.equal((await gateway.get(`/api/v1/bulk-actions/${own}`, { key: keys.prod })).status, 200);
  await until(() => [...kept().values()].reduce((sum, count) => sum + count, 0) === KEPT, { what: "the store has as many as before" });
  assert.deepEqual([kept().get(numberOf(0)), kept().get(numberOf(last))], [19, 20]);
  await act(other);
  assert.equal([...kept().values()].reduce((sum, count) => sum + count, 0), KEPT + 1, "another project has its own");
});
