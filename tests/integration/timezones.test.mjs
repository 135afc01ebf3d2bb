// The list of time zones: readable without a credential, with and without UTC.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { startGateway } from "../support/js/gateway.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

const path = "/api/v1/timezones";
let gateway;
before(async () => { gateway = await startGateway(); });
after(() => gateway.stop());

const ask = (query, options) => gateway.http.request("GET", path + query, options);

test("UTC comes first, the others are sorted, and none comes twice", async () => {
  const { status, json } = await ask("", { key: null });
  assert.equal(status, 200);
  assert.deepEqual(Object.keys(json), ["timezones"]);
  const [first, ...others] = json.timezones;
  assert.equal(first, "UTC");
  assert.ok(others.length > 400);
  assert.deepEqual(others, [...new Set(others)].sort());
  for (const name of ["Africa/Cairo", "America/New_York", "Asia/Calcutta", "Europe/Berlin"])
    assert.ok(others.includes(name), name);
});

test("every name in the list can be used", async () => {
  await Worker.register(gateway, { tasks: [{ id: "tick", triggerSource: "schedule" }] });
  for (const timezone of (await ask("")).json.timezones) {
    const body = { task: "tick", cron: "0 9 * * *", deduplicationKey: "one", timezone };
    const { status, json } = await gateway.post("/api/v1/schedules", body);
    assert.equal(status, 200, `${timezone}: ${JSON.stringify(json)}`);
    assert.equal(json.timezone, timezone);
  }
});

test("only excludeUtc=true leaves UTC out", async () => {
  const all = (await ask("", { key: null })).json.timezones;
  assert.deepEqual((await ask("?excludeUtc=true", { key: null })).json.timezones, all.slice(1));
  for (const value of ["false", "1", "", "TRUE"])
    assert.deepEqual((await ask(`?excludeUtc=${value}`, { key: null })).json.timezones, all, value);
});

test("a credential does not matter, not even an invalid one", async () => {
  for (const key of ["tr_dev_nonsense", "tr_pat_nonsense", ""])
    assert.equal((await ask("", { key })).status, 200, key);
});

test("the list cannot be written", async () => {
  const { status, headers } = await gateway.http.request("POST", path, { body: {} });
  assert.equal(status, 405);
  assert.equal(headers.allow, "GET");
});
