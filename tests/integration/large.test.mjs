// Large values of every kind of text come back unchanged. bench/run.sh measures how long they occupy a turn of the
// loop.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { startGateway } from "../support/js/gateway.mjs";

let gateway;
before(async () => { gateway = await startGateway(); });
after(() => gateway.stop());

const tokens = "/api/v1/waitpoints/tokens";
const trigger = async (payload, options) => {
  const reply = await gateway.post("/api/v1/tasks/large/trigger", { payload, options });
  assert.equal(reply.status, 200, reply.text);
  return reply.json.id;
};

// The texts that take longest to escape, to read back and to scan.
const texts = { quotes: '"', "control characters": "\u0001", "what is not ASCII": "é字", "quotes between others": 'a"' };

test("a token is completed with a megabyte, and returned", async () => {
  for (const [what, unit] of Object.entries(texts)) {
    const size = Buffer.byteLength(JSON.stringify(unit)) - 2, text = unit.repeat(1_040_000 / size);
    const { id } = (await gateway.post(tokens, {})).json;
    assert.equal((await gateway.post(`${tokens}/${id}/complete`, { data: text })).status, 200);
    const { json } = await gateway.get(`${tokens}/${id}`);
    assert.deepEqual([json.status, JSON.parse(json.output) === text], ["COMPLETED", true], what);
  }
});

test("a run of 3 MiB is created and returned", async () => {
  for (const [what, unit] of Object.entries(texts)) {
    const size = Buffer.byteLength(JSON.stringify(unit)) - 2, text = unit.repeat(3_100_000 / size);
    const id = await trigger(text, {});
    assert.ok((await gateway.get(`/api/v3/runs/${id}`)).json.payload === text, what);
  }
});

test("a page of 100 runs with large metadata is listed", async () => {
  const metadata = { text: "x".repeat(250_000) };
  for (let i = 0; i < 100; i++) await trigger(i, { metadata, tags: ["metadata"] });
  const { status, json } = await gateway.get("/api/v1/runs?page[size]=100&filter[tag]=metadata");
  assert.equal(status, 200);
  assert.equal(json.data.length, 100);
  assert.ok(json.data.every((run) => run.metadata.text.length === 250_000));
  assert.deepEqual(Object.keys(json.pagination), []);
});
