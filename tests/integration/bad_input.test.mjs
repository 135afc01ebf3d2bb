// Invalid input, operation by operation: each mistake has its status and its text, and no effect.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { keys, startGateway } from "../support/js/gateway.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

let gateway, run, foreign, batch, foreignBatch;
before(async () => {
  gateway = await startGateway();
  await Worker.register(gateway, { tasks: ["hello"] });
  const trigger = async (key) => (await gateway.post("/api/v1/tasks/hello/trigger", { payload: "{}", options: { ttl: "1h", tags: ["a"] } }, { key })).json.id;
  const open = async (key) => (await gateway.post("/api/v3/batches", { runCount: 2 }, { key })).json.id;
  [run, foreign] = [await trigger(keys.dev), await trigger(keys.prod)];
  [batch, foreignBatch] = [await open(keys.dev), await open(keys.prod)];
});
after(() => gateway.stop());

/** Everything that a refused call might have changed, in both environments. */
async function everything() {
  const texts = [];
  for (const key of [keys.dev, keys.prod]) {
    for (const target of ["/api/v1/runs?page[size]=100", "/api/v1/queues", "/api/v1/bulk-actions"]) texts.push((await gateway.get(target, { key })).text);
    for (const id of [run, foreign]) texts.push((await gateway.get(`/api/v3/runs/${id}`, { key })).text);
    for (const id of [batch, foreignBatch]) texts.push((await gateway.get(`/api/v2/batches/${id}`, { key })).text);
  }
  return texts;
}

const notUtf8 = Buffer.from('{"a":"\xff\xfe"}', "latin1");
const nobody = `run_${"1".repeat(21)}`;
const item = { task: "hello", payload: "{}" };
const manyMembers = Object.fromEntries(Array.from({ length: 1001 }, (_, i) => [`m${i}`, 1]));

/** Requests that every operation with a JSON body refuses alike. */
const bodies = [["no body", ""], ["malformed JSON", "{"], ["invalid UTF-8", notUtf8], ["an array", "[]"], ["a string", '"x"'], ["cut short", '{"a":']];

const operations = () => [
  ["trigger", "POST", "/api/v1/tasks/hello/trigger", { body: true }, [
    ["tags of a wrong type", { options: { tags: 5 } }, 400], ["a tag too long", { options: { tags: ["x".repeat(129)] } }, 400],
    ["too many tags", { options: { tags: Array.from("0123456789x") } }, 422], ["a delay that is none", { options: { delay: "soon" } }, 400],
    ["a ttl that is none", { options: { ttl: "PT2S" } }, 400], ["a key's life that is none", { options: { idempotencyKey: "k", idempotencyKeyTTL: "1 day" } }, 400],
    ["an unknown machine", { options: { machine: "huge" } }, 400], ["a foreign parent", { options: { parentRunId: foreign } }, 422],
    ["an unknown parent", { options: { parentRunId: nobody } }, 422], ["a member twice", '{"options":{},"options":{}}', 400],
    ["an idempotency key too long", { options: { idempotencyKey: "k".repeat(2049) } }, 400],
  ]],
  ["batch of 3.x", "POST", "/api/v1/tasks/batch", { body: true }, [
    ["no items", {}, 400], ["items of a wrong type", { items: 5 }, 400], ["an empty list", { items: [] }, 400],
    ["an item without a task", { items: [item, {}] }, 400], ["too many items", { items: Array(1001).fill(item) }, 400],
    ["one bad item among good ones", { items: [item, { ...item, options: { tags: 5 } }] }, 400],
    ["an item with a ttl that is none", { items: [{ ...item, options: { ttl: "1 hour" } }] }, 400],
  ]],
  ["batch of 4.3", "POST", "/api/v3/batches", { body: true }, [
    ["no count", {}, 400], ["a count of 0", { runCount: 0 }, 400], ["a fraction", { runCount: 1.5 }, 400], ["a text", { runCount: "1" }, 400],
    ["too many", { runCount: 100_001 }, 400], ["a foreign parent", { runCount: 1, parentRunId: foreign }, 422],
    ["too many task ids", { runCount: 1, taskIdentifiers: Object.keys(manyMembers) }, 400],
    ["too many members", { ...manyMembers, runCount: 1 }, 400], ["too many members inside of one", { runCount: 1, other: [manyMembers] }, 400],
  ]],
  ["reschedule", "POST", `/api/v1/runs/${run}/reschedule`, { body: true }, [
    ["no delay", {}, 400], ["a wrong type", { delay: {} }, 400], ["no duration", { delay: "soon" }, 400], ["not delayed", { delay: "1h" }, 400],
  ]],
  ["tags", "POST", `/api/v1/runs/${run}/tags`, { body: true }, [
    ["no tags", {}, 400], ["a wrong type", { tags: 5 }, 400], ["too long", { tags: "x".repeat(129) }, 400], ["too many", { tags: Array.from("0123456789x") }, 422],
  ]],
  ["metadata", "PUT", `/api/v1/runs/${run}/metadata`, { body: true }, [
    ["a wrong type", { metadata: 5 }, 400], ["operations of a wrong type", { operations: {} }, 400], ["an unknown operation", { operations: [{ type: "explode", key: "a" }] }, 400],
    ["too large", { metadata: { a: "x".repeat(300_000) } }, 413],
  ]],
  ["replay", "POST", `/api/v1/runs/${run}/replay`, {}, [
    ["malformed JSON", "{", 400], ["invalid UTF-8", notUtf8, 400], ["an unknown member", { nothing: 1 }, 400], ["a wrong type", { tags: 5 }, 400],
    ["a ttl that is none", { ttl: "abc" }, 400], ["a key's life that is none", { idempotencyKey: "k", idempotencyKeyTTL: "5zz" }, 400],
    ["no attempts", { maxAttempts: 0 }, 400], ["fewer than none", { maxAttempts: -1 }, 400],
  ]],
  ["token", "POST", "/api/v1/waitpoints/tokens", {}, [
    ["a timeout that is none", { timeout: "soon" }, 400], ["a key's life that is none", { idempotencyKey: "k", idempotencyKeyTTL: "5zz" }, 400],
    ["a unit twice", { idempotencyKey: "k", idempotencyKeyTTL: "1s1s" }, 400],
  ]],
  ["input wait", "POST", `/api/v1/runs/${run}/input-streams/wait`, {}, [
    ["a key's life that is none", { streamId: "a", idempotencyKey: "k", idempotencyKeyTTL: "1 day" }, 400],
  ]],
  ["reset of a key", "POST", "/api/v1/idempotencyKeys/none/reset", { body: true }, [
    ["no task", {}, 400], ["a wrong type", { taskIdentifier: 5 }, 400], ["an unknown key", { taskIdentifier: "hello" }, 404],
  ]],
  ["list", "GET", "/api/v1/runs", {}, [
    ["a wrong size", "?page[size]=x", 400], ["an unknown status", "?filter[status]=HAPPY", 400], ["a bad cursor", "?page[after]=x", 400],
    ["a bad escape", "?filter[tag]=%zz", 400], ["invalid UTF-8", "?filter[tag]=%ff", 400], ["isTest of a wrong type", "?filter[isTest]=1", 400],
  ].map(([what, query, status]) => [what, undefined, status, query])],
  ["list of tokens", "GET", "/api/v1/waitpoints/tokens", {}, [
    ["an unknown status", undefined, 400, "?filter[status]=WAITED"], ["one among right ones", undefined, 400, "?filter[status]=WAITING,DONE"],
  ]],
  ["pause", "POST", "/api/v1/queues/hello/pause", { body: true }, [
    ["no action", { type: "task" }, 400], ["an unknown action", { type: "task", action: "stop" }, 400], ["an unknown type", { type: "x", action: "pause" }, 400],
    ["a name where an id is due", { action: "pause" }, 404], ["an unknown queue", { type: "custom", action: "pause" }, 404],
  ]],
  ["singleton", "POST", "/api/v1/queues/hello/singleton", { body: true }, [
    ["no strategy", { type: "task" }, 400], ["an unknown strategy", { type: "task", strategy: "replace" }, 400], ["a number", { type: "task", strategy: 1 }, 400],
    ["an unknown queue", { type: "custom", strategy: "skip" }, 404],
  ]],
  ["override", "POST", "/api/v1/queues/hello/concurrency/override", { body: true }, [
    ["no limit", { type: "task" }, 400], ["a text", { type: "task", concurrencyLimit: "5" }, 400], ["too many", { type: "task", concurrencyLimit: 1e6 }, 400],
  ]],
  ["bulk action", "POST", "/api/v1/bulk-actions", { body: true }, [
    ["no action", { runIds: [run] }, 400], ["nothing chosen", { action: "cancel" }, 400], ["no id", { action: "cancel", runIds: ["x"] }, 400],
    ["a body too large", { action: "cancel", runIds: Array(3000).fill(run) }, 413],
  ]],
];

test("each mistake is refused with a status and a text, and changes nothing", async (t) => {
  const untouched = await everything();
  for (const [name, method, target, { body }, mistakes] of operations()) {
    await t.test(name, async () => {
      const all = [...(body ? bodies.map(([what, text]) => [what, text, 400]) : []), ...mistakes];
      for (const [what, sent, status, query = ""] of all) {
        const reply = await gateway.http.request(method, target + query, { body: sent });
        assert.equal(reply.status, status, `${name}, ${what}: ${reply.text.slice(0, 300)}`);
        assert.ok(typeof reply.json?.error === "string" && reply.json.error.length > 3, `${name}, ${what}: ${reply.text}`);
      }
      assert.deepEqual(await everything(), untouched);
    });
  }
});

test("a body with too many members is refused before they are looked at", async () => {
  const many = (before, count, more = "") => `{${before}${Array.from({ length: count }, (_, i) => `,"m${i}":1`).join("")}${more}}`;
  const { id } = (await gateway.post("/api/v1/waitpoints/tokens", {})).json;
  const complete = (body) => gateway.post(`/api/v1/waitpoints/tokens/${id}/complete`, body);
  const attempt = (body) => gateway.post(`/engine/v1/dev/runs/${nobody}/snapshots/snapshot_${"1".repeat(21)}/attempts/complete`, body);
  const failed = '"ok":false,"error":{"type":"STRING_ERROR","raw":"x"}', said = (reply) => [reply.status, /members/.test(reply.text)];

  assert.deepEqual(said(await complete(many('"data":1', 1000))), [400, true]);
  assert.equal((await complete(many('"data":1', 999))).status, 200);
  assert.equal((await attempt(many(`"completion":{${failed}}`, 20_000))).status, 404, "a completion is never refused for its content");
  const long = await attempt(`{"completion":{"ok":true,"output":"${"x".repeat(2 << 20)}"}}`);
  assert.equal(long.status, 404, long.text);
});

test("things of another environment answer like ones that do not exist", async () => {
  const untouched = await everything();
  for (const [method, path, body] of [
    ["GET", (id) => `/api/v3/runs/${id}`], ["GET", (id) => `/api/v1/runs/${id}/result`], ["GET", (id) => `/api/v1/runs/${id}/metadata`],
    ["POST", (id) => `/api/v2/runs/${id}/cancel`, {}], ["POST", (id) => `/api/v1/runs/${id}/replay`, {}], ["POST", (id) => `/api/v1/runs/${id}/reschedule`, { delay: "1h" }],
    ["POST", (id) => `/api/v1/runs/${id}/tags`, { tags: "x" }], ["PUT", (id) => `/api/v1/runs/${id}/metadata`, { metadata: {} }],
  ]) {
    const [theirs, none] = [await gateway.http.request(method, path(foreign), { body }), await gateway.http.request(method, path(nobody), { body })];
    assert.deepEqual([theirs.status, theirs.text], [404, none.text], `${method} ${path("…")}`);
  }
  for (const version of ["v1", "v2"]) {
    const [theirs, none] = [await gateway.get(`/api/${version}/batches/${foreignBatch}`), await gateway.get(`/api/${version}/batches/batch_${"1".repeat(21)}`)];
    assert.deepEqual([theirs.status, theirs.text], [404, none.text]);
  }
  assert.deepEqual(await everything(), untouched);
});
