// Nothing is ignored silently: members of a request that are not read are reported to the caller, and options that
// runcast lacks are refused by name. tests/contract/published.test.mjs walks the published schemas themselves.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { EventStream } from "../support/js/event_stream.mjs";
import { keys, startGateway, until } from "../support/js/gateway.mjs";
import { RunsSocket } from "../support/js/runs.mjs";

let gateway;
before(async () => { gateway = await startGateway({ options: ["--log-level", "debug"] }); });
after(() => gateway.stop());

const target = "/api/v1/tasks/silence/trigger";
const trigger = (body, call) => gateway.post(target, body, call);
const named = (reply) => reply.headers["x-ignored-members"];
const lines = { headers: { "content-type": "application/x-ndjson" } };

test("unknown members of a trigger are named, with their paths", async () => {
  for (const [body, names] of [
    [{ payload: 1, options: { tag: ["a"], tags: ["b"] } }, "options.tag"],
    [{ payload: 1, tags: ["a"], name: "Ada" }, "tags, name"],
    [{ options: { queue: { name: "q", limit: 1 }, idempotencyKey: "k1", idempotencyKeyOptions: { key: "k", scope: "run", for: 1 } } }, "options.queue.limit, options.idempotencyKeyOptions.for"],
    [{ payload: { tag: 1 }, context: { a: 1 }, options: { metadata: { tag: 1 } } }, undefined],
    [{}, undefined],
  ]) {
    const reply = await trigger(body);
    assert.equal(reply.status, 200, reply.text);
    assert.equal(named(reply), names, JSON.stringify(body));
    if (names) assert.match(reply.headers["access-control-expose-headers"], /(^|, )x-ignored-members(,|$)/);
  }
});

test("a body that is the payload itself is refused, with the right form", async () => {
  for (const body of [{ name: "Ada" }, { context: {}, to: 1 }]) {
    const { status, json } = await trigger(body);
    assert.equal(status, 400);
    assert.match(json.error, /"(name|to)" but neither payload nor options.*\{"payload": .*"options": /);
  }
});

test("names that a client chose cannot end the header, nor make it grow", async () => {
  const long = "l".repeat(600);
  const reply = await trigger({ payload: 1, "a\r\nx-evil: 1": 1, "b, c": 1, "d.e[]": 1, "\u017c%\"\u0000": 1, "\ud83d\ude80": 1, [long]: 1, [`${long}2`]: 1, ["x".repeat(5000)]: 1, short: 1 });
  assert.equal(reply.status, 200);
  assert.equal(reply.headers["x-evil"], undefined);
  assert.equal(named(reply), `a%0D%0Ax-evil%3A%201, b%2C%20c, d%2Ee%5B%5D, %C5%BC%25%22%00, %F0%9F%9A%80, ${long}, short`);
  const many = await trigger({ payload: 1, options: Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`no${i}`, 1])) });
  assert.equal(named(many).split(", ").length, 16);
  assert.ok(named(reply).length <= 1024);
});

test("an escaped spelling of a member is that member, and an unknown name is reported decoded", async () => {
  const reply = await trigger('{"p\\u0061yload":1,"options":{"t\\u0061gs":["a"],"t\\u0061g":1}}');
  assert.equal(named(reply), "options.tag");
  assert.deepEqual((await gateway.get(`/api/v3/runs/${reply.json.id}`)).json.tags, ["a"]);
});

test("items of batches name each path once", async () => {
  const items = Array.from({ length: 500 }, (_, i) => ({ task: "silence", foo: i, options: { tag: i, parentRunId: "run_x", delay: "1h" } }));
  for (const path of ["/api/v1/tasks/batch", "/api/v2/tasks/batch"]) {
    const reply = await gateway.post(path, { items, more: 1 });
    assert.equal(reply.status, 202, reply.text);
    assert.equal(named(reply), "items[].foo, items[].options.tag, items[].options.parentRunId, more");
  }
  const created = await gateway.post("/api/v3/batches", { runCount: 20, tasks: 1 });
  assert.equal(named(created), "tasks");
  const streamed = items.slice(0, 20).map((item, index) => `${JSON.stringify({ index, ...item })}\n`).join("");
  const reply = await gateway.post(`/api/v3/batches/${created.json.id}/items`, streamed, lines);
  assert.equal(reply.status, 200, reply.text);
  assert.equal(named(reply), "items[].foo, items[].options.tag, items[].options.parentRunId");
});

test("a run that names an external deployment waits for it where deployments exist", async () => {
  const ask = (key, options) => trigger({ options: { delay: "1h", ...options } }, { key });
  assert.equal((await ask(keys.dev, { externalDeploymentId: "abc" })).status, 200);
  assert.equal((await ask(keys.prod, { externalDeploymentId: " abc " })).status, 200);
  const { json: { id } } = await trigger({ options: { externalDeploymentId: " abc " } }, { key: keys.prod });
  const { json: run } = await gateway.get(`/api/v3/runs/${id}`, { key: keys.prod });
  assert.deepEqual([run.status, run.waitingFor.reason], ["WAITING_FOR_DEPLOY", "version"]);
  assert.match(run.waitingFor.message, /with the external id abc, which its trigger names/);
  for (const nothing of [null, "", "  "]) assert.equal((await ask(keys.prod, { externalDeploymentId: nothing })).status, 200);
  for (const key of [keys.dev, keys.prod]) for (const wrong of [5, "x".repeat(129)]) assert.equal((await ask(key, { externalDeploymentId: wrong })).status, 400);
  // With a version, which decides, the external id is ignored; here the version is missing.
  const locked = await ask(keys.prod, { externalDeploymentId: "abc", lockToVersion: "20990101.1" });
  assert.match(`${locked.status} ${locked.json.error}`, /^422 Task locked to version/);
});

test("members that SDKs send by themselves have no effect", async () => {
  const options = { parentAttempt: "attempt_x", dependentAttempt: "attempt_x", parentBatch: "batch_x", dependentBatch: "batch_x", bulkActionId: "bulk_x", region: "eu", payloadSize: 1, metadataType: "application/json" };
  const reply = await trigger({ payload: 1, context: [1], options });
  assert.equal(reply.status, 200, reply.text);
  assert.equal(named(reply), undefined);
  assert.equal((await gateway.get(`/api/v3/runs/${reply.json.id}`)).json.region, "eu");
});

test("a concurrency key of 5 is read as \"5\"", async () => {
  for (const concurrencyKey of [5, "5"]) assert.equal((await trigger({ options: { concurrencyKey } })).status, 200);
  for (const concurrencyKey of [true, ["5"], { a: 1 }]) assert.equal((await trigger({ options: { concurrencyKey } })).status, 400);
});

test("a replay refuses unknown members", async () => {
  const { id } = (await trigger({ options: { delay: "1h" } })).json;
  const { status, json } = await gateway.post(`/api/v1/runs/${id}/replay`, { tag: "a" });
  assert.match(`${status} ${json.error}`, /^400 .*Unrecognized key 'tag'/);
});

test("unknown parameters of a list are named", async () => {
  for (const [path, names, call] of [
    ["/api/v1/runs?filter[status]=QUEUED&page[size]=5&a%0d%0ab=1", "a%0D%0Ab"],
    ["/api/v1/schedules?page=1&perpage=2", "perpage"],
    ["/api/v1/queues?limit=1", "limit"],
    ["/api/v1/runs?filter[tag]=a", undefined],
  ]) {
    const reply = await gateway.get(path, call);
    assert.equal(reply.status, 200, reply.text);
    assert.equal(named(reply), names, path);
  }
  for (const path of ["/api/v1/runs?filter[isTest]=maybe", "/api/v1/runs?page[size]=x", "/api/v1/schedules?page=0", "/api/v1/queues?perPage=x", "/api/v1/waitpoints/tokens?page[size]=0"])
    assert.equal((await gateway.get(path)).status, 400, path);
});

test("an unknown filter is refused, since without it the call would match more", async () => {
  for (const [path, filter, call] of [
    ...["taskKind", "source", "errorId", "stat"].map((name) => [`/api/v1/runs?filter[${name}]=x&filter[status]=QUEUED`, `filter[${name}]`]),
    ["/api/v1/runs?filter%5Bstat%5D=QUEUED", "filter[stat]"], ["/api/v1/runs/counts?filter[stat]=QUEUED", "filter[stat]"],
    [`/api/v1/projects/${keys.ref}/runs?filter[env]=dev&filter[envs]=dev`, "filter[envs]", { key: keys.pat }],
    ["/api/v1/waitpoints/tokens?filter[tag]=a", "filter[tag]"], ["/api/v1/bulk-actions?filter[status]=PENDING", "filter[status]"],
  ]) {
    const { status, json } = await gateway.get(path, call);
    assert.deepEqual([status, json.error], [400, `Invalid query: unknown filter "${filter}"; without it, the call would match more than you mean`], path);
  }
});

test("filter[rootOnly] leaves out the runs that other runs have triggered", async () => {
  const options = { delay: "1h", tags: ["family"] };
  const { id } = (await trigger({ options })).json;
  const child = (await trigger({ options: { ...options, parentRunId: id } })).json;
  const listed = async (query) => (await gateway.get(`/api/v1/runs?filter[tag]=family${query}`)).json.data.map((run) => run.id);
  assert.deepEqual(await listed("&filter[rootOnly]=true"), [id]);
  for (const query of ["", "&filter[rootOnly]=false"]) assert.deepEqual(await listed(query), [child.id, id]);
  assert.equal((await gateway.get("/api/v1/runs/counts?filter[tag]=family&filter[rootOnly]=true")).json.total ?? 1, 1);
  assert.equal((await gateway.get("/api/v1/runs?filter[rootOnly]=maybe")).status, 400);
});

test("unknown parameters of other calls are named, too", async () => {
  const { id } = (await trigger({ options: { delay: "1h" } })).json;
  for (const [path, names, call] of [
    [`/api/v3/runs/${id}?foo=1`, "foo"],
    ["/api/v2/whoami?projectRef=x&project=y", "project", { key: keys.pat }],
    [`/realtime/v1/runs/${id}?offset=-1&column=id`, "column"],
    ["/realtime/v1/runs?offset=-1&tag=a&columns=id", "tag, columns"],
    // Parameters that the SDKs' Electric client sends by itself.
    ["/realtime/v1/runs?cursor=&expired_handle=x&handle=x&live=false&log=full&offset=-1&skipColumns=payload&tags=a&createdAt=1h", undefined],
  ]) {
    const reply = await gateway.get(path, call);
    assert.equal(reply.status, 200, reply.text);
    assert.equal(named(reply), names, path);
  }
});

test("a repeated parameter is refused, since one of the two would be ignored", async () => {
  for (const [path, name] of [
    ["/api/v1/runs?filter[tag]=a&filter%5Btag%5D=b", "filter[tag]"],
    ["/api/v1/schedules?page=1&page=1", "page"],
    ["/realtime/v1/runs?offset=-1&tags=a&tags=b", "tags"],
    ["/realtime/v1/events?tags=a&tags=b", "tags"],
  ]) {
    const { status, json } = await gateway.get(path);
    assert.equal(status, 400, path);
    assert.match(json.error, new RegExp(`"${name.replace(/[[\]]/g, "\\$&")}" occurs more than once; send it once, with commas`));
  }
  assert.equal(named(await gateway.get("/api/v1/runs?nobody=1&nobody=2")), "nobody");
});

test("unknown members of a metadata call are named", async () => {
  const { id } = (await trigger({ options: { delay: "1h" } })).json;
  const reply = await gateway.put(`/api/v1/runs/${id}/metadata`, { metadata: { free: 1 }, operation: [], parent: 1 });
  assert.equal(reply.status, 200, reply.text);
  assert.equal(named(reply), "operation, parent");
});

test("unknown members of a metadata operation are named, and so is metadata in the same body as operations", async () => {
  const { id } = (await trigger({ options: { delay: "1h" } })).json;
  const put = (body) => gateway.put(`/api/v1/runs/${id}/metadata`, body);
  const reply = await put({ operations: [{ type: "set", key: "a", value: { own: 1 }, ttl: 1 }], rootOperations: [{ type: "delete", key: "b", if: 1 }], metadata: { lost: 1 } });
  assert.deepEqual([reply.status, reply.json.metadata, named(reply)], [200, { a: { own: 1 } }, "metadata, operations[].ttl, rootOperations[].if"]);
  assert.equal(named(await put({ metadata: { type: 1, ttl: 2 } })), undefined);
  assert.equal(named(await put({ operations: [{ type: "increment", key: "n", value: 1 }], metadata: null })), undefined);
});

test("members of a body are named where no body is read", async () => {
  const { id } = (await trigger({ options: { delay: "1h" } })).json;
  for (const [body, names] of [[{ reason: "late", by: "me" }, "reason, by"], [{}, undefined], ["", undefined], ["[1]", undefined], ["no JSON", undefined]])
    assert.equal(named(await gateway.post(`/api/v2/runs/${id}/cancel`, body)), names, JSON.stringify(body));
  const { json: schedule } = await gateway.post("/api/v1/schedules", { task: "tick", cron: "0 9 * * *", deduplicationKey: "body" });
  assert.equal(named(await gateway.post(`/api/v1/schedules/${schedule.id}/deactivate`, { until: "tomorrow" })), "until");
});

test("a parameter whose value is ignored is named", async () => {
  const { id } = (await trigger({ payload: 1, options: { tags: "values" } })).json;
  for (const [path, names] of [
    ["/api/v1/timezones?excludeUtc=yes", "excludeUtc"],
    ["/api/v1/runs?filter[createdAt][period]=1h&filter[createdAt][from]=1&filter[createdAt][to]=2030-01-01", "filter[createdAt][from], filter[createdAt][to]"],
    ["/api/v1/runs?filter[createdAt][from]=1&filter[createdAt][to]=2030-01-01", undefined],
    ["/api/v1/timezones?excludeUtc=false", undefined],
    ["/realtime/v1/runs?offset=-1&tags=values&createdAt=yesterday", "createdAt"],
    ["/realtime/v1/runs?offset=-1&tags=values&createdAt=2d", "createdAt"],
    ["/realtime/v1/runs?offset=-1&tags=values&createdAt=1d", undefined],
    [`/realtime/v1/runs/${id}?offset=-1&skipColumns=payload,outptu`, "skipColumns"],
    [`/realtime/v1/runs/${id}?offset=-1&skipColumns=status`, "skipColumns"],
    [`/realtime/v1/runs/${id}?offset=-1&skipColumns=payload,output`, undefined],
  ]) {
    const reply = await gateway.get(path);
    assert.deepEqual([reply.status, named(reply)], [200, names], path);
  }
  const { token } = (await gateway.post("/api/v1/auth/jwt", { claims: { scopes: ["read:runs"], realtime: { skipColumns: ["payload"] } } })).json;
  for (const [column, names] of [["payload", undefined], ["output", "skipColumns"]])
    assert.equal(named(await gateway.get(`/realtime/v1/runs/${id}?offset=-1&skipColumns=${column}`, { key: token })), names, column);
});

test("a token that hides an unknown column is refused, since it would not hide what was meant", async () => {
  for (const column of ["payloa", "status", ""]) {
    const realtime = { skipColumns: ["payload", column] };
    for (const [path, body] of [["/api/v1/auth/public-tokens", { scopes: ["read:runs"], realtime }], ["/api/v1/auth/jwt", { claims: { realtime } }]]) {
      const { status, json } = await gateway.post(path, body);
      assert.match(`${status} ${json.error}`, new RegExp(`^400 .*realtime\\.skipColumns names '${column}'`));
    }
  }
  const { status } = await gateway.post("/api/v1/auth/public-tokens", { scopes: ["read:runs"], realtime: { skipColumns: ["payload", "runTags", "number"] } });
  assert.equal(status, 200);
});

test("parent variables outside a branch are named", async () => {
  const upload = (body) => gateway.post(`/api/v1/projects/${keys.ref}/envvars/dev/import`, body, { key: keys.pat });
  assert.equal(named(await upload({ variables: { OWN: "1" }, parentVariables: { ABOVE: "2" } })), "parentVariables");
  assert.equal(named(await upload({ variables: { OWN2: "1" }, parentVariables: {} })), undefined);
});

test("an event stream names its unknown parameters in its first event, too, and all=0 does not mean yes", async (t) => {
  const headers = { authorization: `Bearer ${keys.dev}` };
  const stream = await EventStream.open(`${gateway.url}/realtime/v1/events?all=1&tag=a&field=id`, { headers });
  t.after(() => stream.cut());
  assert.equal(stream.headers.get("x-ignored-members"), "tag, field");
  assert.deepEqual((await stream.next("ok")).data.ignored, ["tag", "field"]);
  const { status, json } = await gateway.get("/realtime/v1/events?all=0");
  assert.match(`${status} ${json.error}`, /^400 all: not true/);
});

test("a WebSocket names unknown members in its answers", async (t) => {
  for (const protocol of ["runs.v1.json", "runs.v1.msgpack"]) {
    const socket = await RunsSocket.open({ port: gateway.port, token: keys.dev, protocol, query: "?tags=a", hello: { field: ["id"], every: 0 } });
    t.after(() => socket.cut());
    assert.deepEqual((await socket.next("welcome")).ignored, ["tags", "field"]);
    socket.send({ op: "sub", id: 1, tags: ["a"], tag: ["b"], "o\u017c": 1 });
    assert.deepEqual((await socket.next("ok")).ignored, ["tag", "o\u017c"]);
    socket.send({ op: "sub", id: 2, all: true, task: ["a"], since: "1h", limit: 5, from: null });
    assert.equal("ignored" in await socket.next("ok"), false);
    socket.send({ op: "unsub", id: 1, why: 1 });
    assert.deepEqual((await socket.next("end")).ignored, ["why"]);
    socket.send({ op: "auth", token: keys.dev, until: 1, as: 2 });
    const { code, message } = await socket.next("error");
    assert.deepEqual([code, message], ["ignored", "auth: the token is in use; ignored members: until, as"]);
  }
});

test("a bulk action with an invalid filter is refused, since it would reach more runs than meant", async () => {
  const { json: { id } } = await trigger({ payload: 1, options: { delay: "1h", tags: "kept" } });
  for (const [filter, why] of [
    [{ tag: "kept", tga: "other" }, /^filter\.tga: unknown filter/], [{ tags: "kept" }, /^filter\.tags: unknown filter/],
    [{ tag: "kept", taskIdentifier: [] }, /^filter\.taskIdentifier: empty, and without it/], [{ queue: [], tag: "kept" }, /^filter\.queue: empty/],
    [{ tag: "kept", schedule: " " }, /^filter\.schedule: empty, and without it/], [{ tag: "kept", version: null }, /^filter\.version: empty, and without it/],
    [{ from: 1, period: "1h" }, /^filter\.period: would replace from and to/], [{ tag: [""] }, /^filter\.tag: empty, and without it/],
  ]) {
    const reply = await gateway.post("/api/v1/bulk-actions", { action: "cancel", filter });
    assert.equal(reply.status, 400, reply.text);
    assert.match(reply.json.error, why);
  }
  assert.equal((await gateway.get(`/api/v3/runs/${id}`)).json.status, "DELAYED");
  const told = await gateway.post("/api/v1/bulk-actions", { action: "cancel", filter: { tag: "nobody", queue: [{ type: "task", name: "a", of: 1 }] } });
  assert.equal(named(told), "filter.queue[].of");
});

test("the log names unknown members at debug, without values", async () => {
  await trigger({ payload: 1, loggedName: "secretValue" });
  await until(() => /unknown members of a request ignored.*loggedName/.test(gateway.stderr), { what: "the line" });
  assert.doesNotMatch(gateway.stderr, /secretValue/);
});

test("telemetry that runcast lacks is named once in the log", async (t) => {
  const other = await startGateway({ t });
  for (let i = 0; i < 2; i++) assert.equal((await other.post("/otel/v1/metrics", {}, { key: null })).status, 200);
  const said = () => [...other.stderr.matchAll(/worker sends an unsupported request.*?what\W+([\w ]+)/g)].map(([, what]) => what);
  await until(() => said().length >= 1, { what: "a line" });
  assert.deepEqual(said(), ["metrics of telemetry"]);
});

test("a page smaller than requested, and headers that have no effect, are reported", async (t) => {
  const branch = { "x-trigger-branch": "topic" }, version = { "x-trigger-api-version": "2025-07-17" };
  for (const path of ["/api/v1/queues", "/api/v1/schedules"]) {
    assert.equal(named(await gateway.get(`${path}?perPage=101`)), "perPage", path);
    assert.equal(named(await gateway.get(`${path}?perPage=100`)), undefined, path);
  }
  for (const key of [keys.dev, keys.staging, keys.prod]) assert.equal(named(await trigger({}, { key, headers: branch })), "x-trigger-branch");
  assert.equal(named(await gateway.get(`/api/v1/projects/${keys.ref}/envvars/dev`, { key: keys.pat, headers: branch })), "x-trigger-branch");
  assert.equal(named(await trigger({ options: { tag: 1 } }, { headers: { ...branch, ...version } })), "x-trigger-api-version, x-trigger-branch, options.tag");
  assert.equal(named(await gateway.get("/api/v1/runs", { headers: { "x-trigger-api-version": "2025-07-16" } })), undefined);
  const stream = await EventStream.open(`${gateway.url}/realtime/v1/events?all=1`, { headers: { authorization: `Bearer ${keys.dev}`, ...branch } });
  t.after(() => stream.cut());
  assert.deepEqual((await stream.next("ok")).data.ignored, ["x-trigger-branch"]);
});

test("an encoded body is refused with the name of its encoding", async () => {
  for (const encoding of ["gzip", "br", "deflate, gzip"]) {
    const { status, json } = await trigger({ payload: 1 }, { headers: { "content-encoding": encoding } });
    assert.deepEqual([status, json.error], [415, `Content-Encoding: ${encoding} is not supported; send the body uncompressed`]);
  }
  assert.equal((await trigger({ payload: 1 }, { headers: { "content-encoding": "identity" } })).status, 200);
});
