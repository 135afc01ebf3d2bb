// Run calls beyond what the official SDKs check: bytes, pages in both directions, relatives, scopes, refusals.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { keys, startGateway, until } from "../support/js/gateway.mjs";
import { publicToken } from "../support/js/tokens.mjs";

let gateway;
before(async () => { gateway = await startGateway(); });
after(() => gateway.stop());

const hold = { delay: "1h" };

async function trigger(payload, options = hold, task = "calls") {
  const reply = await gateway.post(`/api/v1/tasks/${task}/trigger`, { payload, options });
  assert.equal(reply.status, 200, reply.text);
  return reply.json.id;
}

async function retrieve(id, more) {
  const reply = await gateway.get(`/api/v3/runs/${id}`, more);
  assert.equal(reply.status, 200, reply.text);
  return reply.json;
}

async function list(query, more) {
  const reply = await gateway.get(`/api/v1/runs?${new URLSearchParams(query)}`, more);
  assert.equal(reply.status, 200, reply.text);
  return { ids: reply.json.data.map((run) => run.id), ...reply.json.pagination };
}

test("payload and metadata come back byte for byte", async () => {
  for (const value of ["12345678901234567890", "1e400", "0.1", "-0", '{"a":1,"a":2}', '"\\u0000"', "null"]) {
    const body = `{"payload":${value},"options":{"delay":"1h","metadata":{"v":${value}}}}`;
    const { json } = await gateway.post("/api/v1/tasks/calls/trigger", body);
    const { text } = await gateway.get(`/api/v3/runs/${json.id}`);
    assert.ok(text.includes(`"payload":${value}`), `${value} in ${text}`);
    assert.ok(text.includes(`"metadata":{"v":${value}}`), `${value} in ${text}`);
  }
});

test("a payload of almost 3 MiB comes back whole", async () => {
  const payload = { text: "é".repeat(1_500_000) };
  assert.deepEqual((await retrieve(await trigger(payload))).payload, payload);
});

test("pages lead to the end and back, newest first", async () => {
  const tag = "pages", made = [];
  for (let i = 0; i < 7; i++) made.unshift(await trigger(i, { ...hold, tags: [tag] }));
  const query = { "filter[tag]": tag, "page[size]": 3 };

  const first = await list(query);
  assert.deepEqual(first.ids, made.slice(0, 3));
  assert.equal(first.previous, undefined);
  const second = await list({ ...query, "page[after]": first.next });
  assert.deepEqual(second.ids, made.slice(3, 6));
  const last = await list({ ...query, "page[after]": second.next });
  assert.deepEqual(last.ids, made.slice(6));
  assert.equal(last.next, undefined);

  // The SDK also sends page[after]; page[before] wins.
  const back = await list({ ...query, "page[after]": second.next, "page[before]": last.previous });
  assert.deepEqual(back.ids, made.slice(3, 6));
  assert.ok(back.previous && back.next);
  const start = await list({ ...query, "page[before]": back.previous });
  assert.deepEqual(start.ids, made.slice(0, 3));
  assert.equal(start.previous, undefined);
  assert.deepEqual((await list({ ...query, "page[after]": start.next })).ids, made.slice(3, 6));

  const whole = await list({ "filter[tag]": tag, "page[size]": 7 });
  assert.deepEqual(whole, { ids: made });
  assert.deepEqual(await list({ "filter[tag]": "no such" }), { ids: [] });
});

test("a user lists all environments of a project, or those that are named", async () => {
  const tag = "project", made = [];
  for (const key of [keys.dev, keys.staging, keys.prod, keys.dev, keys.prod]) {
    const reply = await gateway.post("/api/v1/tasks/calls/trigger",
      { payload: 1, options: { ...hold, tags: [tag] } }, { key });
    made.unshift({ id: reply.json.id, key });
  }
  const pages = async (more) => {
    const ids = [];
    for (let after; ;) {
      const query = { "filter[tag]": tag, "page[size]": 2, ...more, ...(after && { "page[after]": after }) };
      const reply = await gateway.get(`/api/v1/projects/${keys.ref}/runs?${new URLSearchParams(query)}`, { key: keys.pat });
      assert.equal(reply.status, 200, reply.text);
      for (const run of reply.json.data) ids.push(run.id);
      if (!(after = reply.json.pagination.next)) return ids;
    }
  };
  const of = (...wanted) => made.filter((run) => wanted.includes(run.key)).map((run) => run.id);
  assert.deepEqual(await pages({}), of(keys.dev, keys.staging, keys.prod));
  assert.deepEqual(await pages({ "filter[env]": "prod" }), of(keys.prod));
  assert.deepEqual(await pages({ "filter[env]": "staging,dev" }), of(keys.dev, keys.staging));
  assert.deepEqual(await pages({ "filter[env]": "preview" }), []);

  const get = (target, key) => gateway.get(target, { key });
  assert.equal((await get(`/api/v1/projects/${keys.ref}/runs?filter[env]=moon`, keys.pat)).status, 400);
  const unknown = await get("/api/v1/projects/proj_unknownunknownunknown/runs", keys.pat);
  assert.deepEqual([unknown.status, unknown.json.error], [404, "Project not found"]);
  assert.equal((await get(`/api/v1/projects/${keys.ref}/runs`, keys.dev)).status, 401);
});

test("lists name the user of a run in dev only", async () => {
  await gateway.post("/api/v1/tasks/calls/trigger", { payload: 1, options: hold }, { key: keys.prod });
  const prod = await gateway.get("/api/v1/runs", { key: keys.prod });
  assert.equal(prod.json.data[0].env.name, "prod");
  assert.ok(!("user" in prod.json.data[0].env));
  await trigger(1);
  assert.equal((await gateway.get("/api/v1/runs")).json.data[0].env.name, "dev");
});

test("parent and children are shown with each other", async () => {
  const root = await trigger(1), child = await trigger(2, { ...hold, parentRunId: root });
  const grandchild = await trigger(3, { ...hold, parentRunId: child });
  assert.deepEqual((await retrieve(root)).relatedRuns.children.map((run) => run.id), [child]);
  assert.equal((await retrieve(root)).relatedRuns.root, undefined);
  const { relatedRuns, depth } = await retrieve(grandchild);
  assert.deepEqual([relatedRuns.root.id, relatedRuns.parent.id, depth], [root, child, 2]);
  assert.deepEqual(relatedRuns.children, []);
  assert.equal(relatedRuns.parent.depth, 1);
});

test("metadata operations on parent and root reach them, or the run itself if it has none", async () => {
  const root = await trigger(1), child = await trigger(2, { ...hold, parentRunId: root });
  const grandchild = await trigger(3, { ...hold, parentRunId: child });
  const set = (key) => [{ type: "set", key, value: 1 }];
  const put = async (id, body) => (await gateway.put(`/api/v1/runs/${id}/metadata`, body)).json;
  assert.deepEqual(await put(grandchild,
    { operations: set("own"), parentOperations: set("parent"), rootOperations: set("root") }),
  { metadata: { own: 1 } });
  assert.deepEqual((await retrieve(child)).metadata, { parent: 1 });
  assert.deepEqual((await retrieve(root)).metadata, { root: 1 });
  assert.deepEqual(await put(root, { operations: [], parentOperations: set("a"), rootOperations: set("b") }),
    { metadata: { root: 1, a: 1, b: 1 } });
  assert.deepEqual(await put(root, { operations: [] }), { metadata: { root: 1, a: 1, b: 1 } });
  assert.deepEqual(await put(root, {}), { metadata: { root: 1, a: 1, b: 1 } });
  assert.deepEqual(await put(root, { metadata: {} }), { metadata: {} });
  assert.deepEqual((await gateway.get(`/api/v1/runs/${root}/metadata`)).json, { metadata: {} });
});

test("invalid or too large metadata changes nothing", async () => {
  const id = await trigger(1, { ...hold, metadata: { a: 1 } });
  const put = (body, target = id) => gateway.put(`/api/v1/runs/${target}/metadata`, body);
  for (const [body, status] of [
    ["", 400], ["{", 400], [[1], 400], [{ metadata: [] }, 400], [{ metadata: null }, 400],
    [{ operations: {} }, 400], [{ operations: [{ type: "set" }] }, 400],
    [{ operations: [{ type: "set", key: "b", value: 1 }], rootOperations: [{ type: "?" }] }, 400],
    [{ metadata: { big: "x".repeat(262144) } }, 413],
    [{ operations: [{ type: "set", key: "big", value: "x".repeat(262144) }] }, 413],
    [{ metadata: { big: "x".repeat(2 ** 21) } }, 413],
  ]) assert.equal((await put(body)).status, status, JSON.stringify(body).slice(0, 80));
  assert.deepEqual((await retrieve(id)).metadata, { a: 1 });
  const unknown = await put({ metadata: {} }, "run_000000000000000000000");
  assert.deepEqual([unknown.status, unknown.json.error], [404, "Task Run not found"]);
});

test("tokens can read and cancel what their scopes name", async () => {
  const id = await trigger(1, { ...hold, tags: ["scope:a"] }, "scoped");
  const status = async (method, target, ...scopes) =>
    (await gateway.http.request(method, target, { key: await publicToken(gateway, { scopes }) })).status;
  const run = `/api/v3/runs/${id}`;
  for (const [scope, expected] of [
    [`read:runs:${id}`, 200], ["read:runs", 200], ["read:tasks:scoped", 200], ["read:tags:scope:a", 200],
    ["admin", 200], ["*:all", 200], ["read:runs:other", 403], ["read:tags:scope", 403], ["write:runs", 403],
  ]) assert.equal(await status("GET", run, scope), expected, scope);
  for (const [query, scope, expected] of [
    ["", "read:runs", 200], ["", "read:tasks", 200], ["", `read:runs:${id}`, 403], ["", "read:tasks:scoped", 403],
    ["?filter[taskIdentifier]=scoped", "read:tasks:scoped", 200],
    ["?filter[taskIdentifier]=scoped,b", "read:tasks:scoped", 403],
  ]) assert.equal(await status("GET", `/api/v1/runs${query}`, scope), expected, `${query} ${scope}`);
  assert.equal(await status("POST", `/api/v2/runs/${id}/cancel`, "read:runs"), 403);
  assert.equal(await status("POST", "/api/v2/runs/run_000000000000000000000/cancel", "write:runs"), 404);
  assert.equal(await status("POST", `/api/v2/runs/${id}/cancel`, "write:tasks:scoped"), 200);
  assert.equal(await status("POST", `/api/v1/runs/${id}/replay`, "admin"), 401);
});

test("a replay accepts overrides and refuses unknown members", async () => {
  const id = await trigger({ a: 1 }, {
    ...hold, tags: ["x"], queue: { name: "q" }, metadata: { m: 1 }, machine: "micro", ttl: "5m", test: true,
  });
  await gateway.put(`/api/v1/runs/${id}/metadata`, { metadata: { later: 1 } });
  const replay = (body) => gateway.post(`/api/v1/runs/${id}/replay`, body);

  const plain = await retrieve((await replay(undefined)).json.id);
  assert.deepEqual([plain.payload, plain.tags, plain.metadata, plain.isTest], [{ a: 1 }, ["x"], { m: 1 }, true]);
  const other = await retrieve((await replay({
    payload: '{"json":[1]}', payloadType: "application/super+json", metadata: { n: 2 }, tags: "y", delay: "2h",
    ttl: 60, queue: "other", concurrencyKey: 7, machine: "large-1x", maxAttempts: 2, maxDuration: 60, priority: 1,
    idempotencyKey: "once", idempotencyKeyTTL: "1h",
  })).json.id);
  assert.deepEqual([other.payload, other.tags, other.metadata, other.status, other.ttl, other.idempotencyKey],
    [[1], ["y"], { n: 2 }, "DELAYED", "1m", "once"]);
  assert.equal((await replay({ idempotencyKey: "once" })).json.id, other.id);
  assert.deepEqual((await list({ "filter[queue]": "other", "filter[machine]": "large-1x" })).ids, [other.id]);
  assert.deepEqual((await list({ "filter[queue]": "q", "filter[machine]": "micro" })).ids, [plain.id, id]);
  const text = await retrieve((await replay({ payload: "[2]", payloadType: "application/json" })).json.id);
  assert.deepEqual(text.payload, [2], "of this type the string is the text, as in a trigger");

  for (const [body, status] of [
    ["{", 400], ["[]", 400], [{ nonsense: 1 }, 400], [{ tags: 1 }, 400], [{ machine: "huge" }, 400], [{ queue: {} }, 400],
    [{ version: "1.1" }, 422], [{ tags: Array.from({ length: 11 }, (_, i) => `t${i}`) }, 422], [{ delay: "soon" }, 400],
  ]) assert.equal((await replay(body)).status, status, JSON.stringify(body));
});

test("invalid reschedules and tags are refused with the reason", async () => {
  const id = await trigger(1, { ...hold, tags: ["a", "b"] }), queued = await trigger(1, {});
  const post = async (what, body, run = id) => {
    const { status, json } = await gateway.post(`/api/v1/runs/${run}/${what}`, body);
    return [status, json.error ?? json.message ?? json.delayedUntil];
  };
  assert.deepEqual(await post("reschedule", {}), [400, "Invalid request body: delay: Expected string"]);
  for (const delay of ["soon", "", "2001-01-01", "0s"])
    assert.match((await post("reschedule", { delay }))[1], /^Invalid delay: /, delay);
  assert.deepEqual(await post("reschedule", { delay: "1h" }, queued), [400, "Cannot reschedule a run that is not delayed"]);
  assert.deepEqual(await post("reschedule", { delay: "2100-01-01T00:00:00Z" }), [200, "2100-01-01T00:00:00.000Z"]);
  assert.deepEqual(await post("reschedule", { delay: "1h" }, "run_none"), [404, "Run not found"]);

  assert.deepEqual(await post("tags", { tags: ["c", "a", " ", "d"] }), [200, "Successfully set 2 new tags."]);
  assert.deepEqual(await post("tags", { tags: "d" }), [200, "No new tags to add"]);
  assert.deepEqual(await post("tags", { tags: [] }), [200, "No new tags to add"]);
  for (const body of [{}, { tags: 1 }, { tags: [1] }, { tags: "x".repeat(129) }])
    assert.match((await post("tags", body)).join(" "), /^400 Invalid request body: tags: \w.*/);
  const [status, text] = await post("tags", { tags: Array.from({ length: 7 }, (_, i) => `n${i}`) });
  assert.equal(status, 422);
  assert.match(text, /^Runs can only have 10 tags, you're trying to set 11. These tags have not been set: 'n0', /);
  assert.deepEqual((await retrieve(id)).tags, ["a", "b", "c", "d"]);
});

test("an idempotency key is free again after its reset", async () => {
  const options = { ...hold, idempotencyKey: "k" }, first = await trigger(1, options);
  const reset = (body) => gateway.post("/api/v1/idempotencyKeys/k/reset", body);
  assert.equal((await reset({ taskIdentifier: "" })).status, 400);
  assert.equal((await reset({})).status, 400);
  const other = await reset({ taskIdentifier: "other" });
  assert.deepEqual([other.status, other.json.error], [404, "No runs found with idempotency key: k and task: other"]);
  assert.deepEqual((await reset({ taskIdentifier: "calls" })).json, { id: "k" });
  assert.notEqual(await trigger(1, options), first);
});

test("every write returns its position in the order of changes", async () => {
  const id = await trigger(1);
  for (const [method, target, body] of [
    ["PUT", "v1/runs/ID/metadata", { metadata: {} }], ["POST", "v1/runs/ID/tags", { tags: "t" }],
    ["POST", "v1/runs/ID/tags", { tags: "t" }],
    ["POST", "v1/runs/ID/reschedule", { delay: "2h" }], ["POST", "v1/runs/ID/replay"],
    ["POST", "v2/runs/ID/cancel"], ["POST", "v2/runs/ID/cancel"],
  ]) {
    const reply = await gateway.http.request(method, `/api/${target.replace("ID", id)}`, { body });
    assert.equal(reply.status, 200, reply.text);
    assert.match(reply.headers["x-runs-seq"], /^[0-9a-f]+\.[1-9]\d*$/, target);
  }
  await gateway.stop();
  await gateway.restart();
  const { headers } = await gateway.post(`/api/v1/runs/${id}/tags`, { tags: "t" });
  assert.match(headers["x-runs-seq"], /^[0-9a-f]+\.[1-9]\d*$/, "nothing had to be written");
});

test("runs that only the store has are shown like runs in memory", async () => {
  const tag = "stored", id = await trigger({ a: "ü" }, { ...hold, tags: [tag], metadata: { m: 1 } });
  await gateway.post(`/api/v2/runs/${id}/cancel`);
  const was = await retrieve(id), listed = await list({ "filter[tag]": tag });
  await gateway.stop();
  await gateway.restart();
  assert.deepEqual(await retrieve(id), was);
  assert.deepEqual(await list({ "filter[tag]": tag }), listed);
  assert.deepEqual((await gateway.get(`/api/v1/runs/${id}/result`)).json, {
    ok: false, id, taskIdentifier: "calls", error: { type: "INTERNAL_ERROR", code: "TASK_RUN_CANCELLED" },
  });
  assert.notEqual((await gateway.post(`/api/v1/runs/${id}/replay`)).json.id, id);
});

test("a client that disconnects in the middle of its body leaves nothing", async () => {
  const id = await trigger(1), open = await gateway.metric('runcast_connections{kind="http"}');
  for (const call of [`POST /api/v1/runs/${id}/replay`, `PUT /api/v1/runs/${id}/metadata`]) {
    const connection = await gateway.connect();
    await connection.send(`${call} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${keys.dev}\r\n` +
      'content-type: application/json\r\ncontent-length: 100\r\n\r\n{"metadata":{"a":"');
    await until(async () => await gateway.metric('runcast_connections{kind="http"}') > open, { what: call });
    connection.reset();
    await until(async () => await gateway.metric('runcast_connections{kind="http"}') <= open, { what: call });
  }
  assert.equal((await retrieve(id)).metadata, undefined);
});
