// The outcome of a run as text and as a value, and the runs that it has triggered, page by page.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { keys, startGateway } from "../support/js/gateway.mjs";
import { publicToken } from "../support/js/tokens.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

let gateway, worker;
before(async () => {
  gateway = await startGateway();
  worker = await Worker.register(gateway, { tasks: ["hello"] });
});
after(() => gateway.stop());

const hold = { delay: "1h" };

async function trigger(options = {}, task = "hello") {
  const reply = await gateway.post(`/api/v1/tasks/${task}/trigger`, { payload: 1, options });
  assert.equal(reply.status, 200, reply.text);
  return reply.json.id;
}

const result = (id, query = "", more) => gateway.get(`/api/v1/runs/${id}/result${query}`, more);

async function ended(completion) {
  const id = await trigger();
  await (await worker.take(id)).complete(completion);
  return id;
}

test("an output is text, or with format=json the JSON value", async () => {
  for (const [outputType, output, value] of [
    ["application/json", '{"n":12345678901234567890,"a":[1,null]}', '{"n":12345678901234567890,"a":[1,null]}'],
    ["application/super+json", '{"json":{"when":"2024-01-01T00:00:00.000Z"},"meta":{"values":{"when":["Date"]}}}', '{"when":"2024-01-01T00:00:00.000Z"}'],
    ["text/plain", 'say "hi"', '"say \\"hi\\""'],
    ["application/json", "null", "null"],
  ]) {
    const id = await ended({ ok: true, output, outputType });
    const text = await result(id), json = await result(id, "?format=json");
    assert.deepEqual([text.json.output, text.json.outputType], [output, outputType]);
    assert.equal(json.text, `{"ok":true,"id":"${id}","taskIdentifier":"hello","output":${value},"outputType":"${outputType}"}`);
  }
  const nothing = await ended({ ok: true });
  assert.deepEqual((await result(nothing, "?format=json")).json, { ok: true, id: nothing, taskIdentifier: "hello", outputType: "application/json" });
});

test("an output that is stored as a packet is returned as the URL to read it from", async () => {
  const { presignedUrl } = (await gateway.put("/api/v2/packets/out/1.json")).json;
  await fetch(presignedUrl, { method: "PUT", body: '{"n":1}', headers: { "content-type": "application/json" } });
  const id = await ended({ ok: true, output: "out/1.json", outputType: "application/store" });
  const { json } = await result(id, "?format=json");
  assert.deepEqual([json.output, json.outputType], [undefined, "application/store"]);
  assert.deepEqual(await (await fetch(json.outputPresignedUrl)).json(), { n: 1 });
  assert.equal((await result(id)).json.outputPresignedUrl, undefined);
});

test("a failure is the same in both forms, and other formats are refused", async () => {
  const id = await trigger(hold);
  assert.equal((await result(id, "?format=json")).status, 404, "not finished");
  await gateway.post(`/api/v2/runs/${id}/cancel`);
  assert.deepEqual((await result(id, "?format=json")).json, (await result(id)).json);
  for (const format of ["xml", "JSON", ""]) {
    const { status, json } = await result(id, `?format=${format}`);
    assert.deepEqual([status, json.error], [400, "format must be json or omitted; without it, the output is a string"], format);
  }
});

test("children can be paged in both directions, with the filters of the list", async () => {
  const root = await trigger(hold), made = [];
  for (let i = 0; i < 5; i++)
    made.unshift(await trigger({ ...hold, parentRunId: root, tags: i % 2 ? ["odd"] : [] }, i < 2 ? "early" : "late"));
  const grandchild = await trigger({ ...hold, parentRunId: made[0] });
  await gateway.post(`/api/v2/runs/${made[4]}/cancel`);
  const children = async (query = {}, id = root) => {
    const reply = await gateway.get(`/api/v1/runs/${id}/children?${new URLSearchParams(query)}`);
    assert.equal(reply.status, 200, reply.text);
    return { ids: reply.json.data.map((run) => run.id), ...reply.json.pagination };
  };
  assert.deepEqual(await children(), { ids: made });
  assert.deepEqual(await children({}, made[0]), { ids: [grandchild] });
  assert.deepEqual(await children({}, grandchild), { ids: [] });

  const first = await children({ "page[size]": 2 });
  const second = await children({ "page[size]": 2, "page[after]": first.next });
  const last = await children({ "page[size]": 2, "page[after]": second.next });
  assert.deepEqual([first.ids, second.ids, last.ids, last.next], [made.slice(0, 2), made.slice(2, 4), made.slice(4), undefined]);
  assert.deepEqual((await children({ "page[size]": 2, "page[before]": second.previous })).ids, first.ids);

  assert.deepEqual((await children({ "filter[taskIdentifier]": "early" })).ids, made.slice(3));
  assert.deepEqual((await children({ "filter[tag]": "odd" })).ids, [made[1], made[3]]);
  assert.deepEqual((await children({ "filter[status]": "CANCELED" })).ids, made.slice(4));
  assert.deepEqual((await children({ "filter[status]": "DELAYED", "filter[taskIdentifier]": "early" })).ids, [made[3]]);
  assert.deepEqual((await children({ "filter[createdAt][to]": "2001-01-01" })).ids, []);

  const refused = await gateway.get(`/api/v1/runs/${root}/children?filter[status]=SOON`);
  assert.equal(refused.status, 400, refused.text);
  assert.equal((await gateway.get("/api/v1/runs/run_000000000000000000000/children")).status, 404);
});

test("a credential that can read a run can list its children, and others cannot", async () => {
  const root = await trigger({ ...hold, tags: ["family"] });
  const child = await trigger({ ...hold, parentRunId: root }, "elsewhere");
  const status = async (scope) => (await gateway.get(`/api/v1/runs/${root}/children`,
    { key: await publicToken(gateway, { scopes: [scope] }) })).status;
  for (const scope of [`read:runs:${root}`, "read:runs", "read:tags:family", "read:tasks:hello"]) assert.equal(await status(scope), 200, scope);
  for (const scope of [`read:runs:${child}`, "read:tasks:elsewhere", "write:runs"]) assert.equal(await status(scope), 403, scope);
  assert.equal((await gateway.get(`/api/v1/runs/${root}/children`, { key: keys.prod })).status, 404);
  const key = await publicToken(gateway, { scopes: ["read:runs"], skipColumns: ["metadata"] });
  assert.equal((await gateway.get(`/api/v1/runs/${root}/children`, { key })).json.data[0].metadata, undefined);
});
