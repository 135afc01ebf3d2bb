// The reach of a public token: the packets of its runs, the waitpoints that it can complete, tokens for runs that
// another caller's key made, the columns that it leaves out. Also how long a signed URL lives.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { keys, startGateway } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";
import { publicToken } from "../support/js/tokens.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

let gateway, worker;
before(async () => {
  gateway = await startGateway();
  worker = await Worker.register(gateway, { tasks: ["parent", "child", "pay"] });
});
after(() => gateway.stop());

const token = (scopes, more) => publicToken(gateway, { scopes, ...more });
const at = (url) => new URL(url).pathname + new URL(url).search;
const load = (url) => gateway.get(at(url), { key: null });
const packet = (name, key) => gateway.get(`/api/v1/packets/${encodeURIComponent(name)}`, { key });
const reads = async (name, scopes, more) => (await packet(name, await token(scopes, more))).status;

async function upload(name, body, type = "application/json") {
  const { json } = await gateway.put(`/api/v2/packets/${encodeURIComponent(name)}`);
  const stored = await gateway.put(at(json.presignedUrl), body, { key: null, headers: { "content-type": type } });
  assert.equal(stored.status, 200, stored.text);
  return json.storagePath;
}

/** A run whose output the worker has stored as a packet, under the name that official workers use. */
async function ended(task, options, payload) {
  const attempt = await worker.take(await worker.trigger(task, options, payload));
  const output = await upload(`${attempt.id}-1/output.json`, `{"of":"${attempt.id}"}`);
  await attempt.complete({ ok: true, output, outputType: "application/store" });
  return { id: attempt.id, output };
}

// ---- packets ----

describe("packets by a token", () => {
  test("are those of the runs that it can read, whatever scope allows that", async () => {
    const one = await ended("child", { tags: ["tag:1"] }), other = await ended("parent");
    const ways = [["admin"], ["read:runs"], ["read:all"], [`read:runs:${one.id}`], ["read:tags:tag:1"], ["read:tasks:child"], ["write:runs", "read:runs:run_x", `read:runs:${one.id}`]];
    for (const scopes of ways) {
      const answer = await packet(one.output, await token(scopes));
      assert.equal(answer.status, 200, `${scopes}: ${answer.text}`);
      assert.equal((await load(answer.json.presignedUrl)).text, `{"of":"${one.id}"}`);
    }
    for (const scopes of ways.slice(3)) assert.equal(await reads(other.output, scopes), 403, String(scopes));
    for (const scopes of [["read:runs:run_x"], ["read:tags:tag"], ["read:tasks:chil"], ["write:runs"], [`write:runs:${one.id}`], ["trigger:tasks"], []])
      assert.equal(await reads(one.output, scopes), 403, String(scopes));
    assert.equal((await packet(one.output)).status, 200, "a secret key reads any");
    assert.equal((await load((await packet(one.output, keys.prod)).json.presignedUrl)).status, 404, "of its own environment");
  });

  test("are those of a run in a batch if it can read the batch, payloads as well as outputs", async () => {
    const payload = await upload("trigger/packet_abc/payload.json", "1");
    const batch = (await gateway.post("/api/v1/tasks/batch", { items: [{ task: "held", payload, options: { payloadType: "application/store", delay: "1h" } }] })).json;
    assert.equal(await reads(payload, [`read:batch:${batch.id}`]), 200);
    assert.equal(await reads(payload, [`read:runs:${batch.runs[0].id}`]), 200);
    assert.equal(await reads(payload, ["read:batch:batch_x"]), 403);
    assert.equal(await reads("trigger/packet_nobody/payload.json", [`read:batch:${batch.id}`]), 403);
  });

  test("cannot be reached by naming them as the payload of a new run", async () => {
    const { output } = await ended("parent");
    const body = { payload: output, options: { payloadType: "application/store", delay: "1h" } };
    const key = await token(["trigger:tasks:child", "batchTrigger:tasks:child"]);
    const refused = await gateway.post("/api/v1/tasks/child/trigger", body, { key });
    assert.equal(refused.status, 403, refused.text);
    assert.match(refused.json.error, /cannot name a stored packet/);
    for (const version of ["v1", "v2"]) assert.equal((await gateway.post(`/api/${version}/tasks/batch`, { items: [{ task: "child", ...body }] }, { key })).status, 403);
    const batch = await gateway.post("/api/v3/batches", { runCount: 1, taskIdentifiers: ["child"] }, { key });
    const line = JSON.stringify({ index: 0, task: "child", ...body });
    const streamed = await gateway.post(`/api/v3/batches/${batch.json.id}/items`, line, { key, headers: { "content-type": "application/x-ndjson" } });
    assert.equal(streamed.status, 422, streamed.text);
    assert.match(streamed.json.error, /cannot name a stored packet/);
    const all = await gateway.post("/api/v1/tasks/child/trigger", body, { key: await token(["trigger:tasks:child", "read:runs"]) });
    assert.equal(all.status, 200, "a token that reads every run can read it anyway");
  });
});

// ---- waitpoints ----

test("the URL that completes a waitpoint is shown to tokens that can complete it", async () => {
  const made = (await gateway.post("/api/v1/waitpoints/tokens", {})).json;
  const shown = async (scopes) => (await gateway.get(`/api/v1/waitpoints/tokens/${made.id}`, { key: scopes && await token(scopes) })).json.url;
  assert.equal(await shown(), made.url);
  assert.equal(await shown([`read:waitpoints:${made.id}`]), "");
  assert.equal(await shown([`read:waitpoints:${made.id}`, "write:waitpoints:waitpoint_x", "write:runs"]), "");
  assert.equal(await shown(["read:waitpoints", `write:waitpoints:${made.id}`]), made.url);
  assert.equal(await shown(["admin"]), made.url);
  const { data } = (await gateway.get("/api/v1/waitpoints/tokens")).json;
  assert.equal(data.find(({ id }) => id === made.id).url, made.url);
});

// ---- runs that an idempotency key found ----

const granted = (reply) => JSON.parse(Buffer.from(reply.headers["x-trigger-jwt"].split(".")[1], "base64url").toString()).scopes;
const trigger = (body, more) => gateway.post("/api/v1/tasks/pay/trigger", body, more);

describe("the token for a run that existed already", () => {
  const body = { payload: { card: "4111" }, options: { delay: "1h", idempotencyKey: "order-1" } };

  test("grants what the caller can do itself", async () => {
    const first = await trigger(body), { id } = first.json;
    const read = `read:runs:${id}`, write = `write:inputStreams:${id}`;
    assert.deepEqual(granted(first), [read, write]);
    const ask = async (...scopes) => {
      const reply = await trigger(body, { key: await token(["trigger:tasks:pay", ...scopes]) });
      assert.deepEqual(reply.json, { id, isCached: true });
      return reply;
    };
    for (const [scopes, expected] of [[[], []], [[read], [read]], [["read:runs"], [read]], [["read:tasks:pay"], [read]], [["read:tasks:pa", "read:runs:run_x"], []],
      [["write:inputStreams"], [write]], [["read:tags:x", "write:runs"], []]])
      assert.deepEqual(granted(await ask(...scopes)), expected, String(scopes));
    const powerless = (await ask()).headers["x-trigger-jwt"];
    assert.equal((await gateway.get(`/api/v3/runs/${id}`, { key: powerless })).status, 403);
    assert.deepEqual(granted(await trigger(body)), [read, write], "a secret key may everything");
    assert.deepEqual(granted(await trigger({ options: { delay: "1h" } }, { key: await token(["trigger:tasks:pay"]) })).map((scope) => scope.split(":").slice(0, 2).join(":")),
      ["read:runs", "write:inputStreams"], "and a new run is its maker's");
  });

  test("does the same for a batch", async () => {
    const make = (key) => gateway.post("/api/v3/batches", { runCount: 1, idempotencyKey: "orders-1", taskIdentifiers: ["pay"] }, { key });
    const first = await make(), { id } = first.json;
    assert.deepEqual(granted(first), [`read:batch:${id}`]);
    for (const [scopes, expected] of [[[], []], [[`read:batch:${id}`], [`read:batch:${id}`]]]) {
      const again = await make(await token(["batchTrigger:tasks:pay", ...scopes]));
      assert.deepEqual([again.json.id, again.json.isCached, granted(again)], [id, true, expected]);
    }
  });

  test("belongs to its caller: a request key of another caller is a different request", async () => {
    const headers = { "x-trigger-request-idempotency-key": "request-1" }, body = { options: { delay: "1h" } };
    const first = await trigger(body, { headers });
    const key = await token(["trigger:tasks:pay"]);
    const mine = await trigger(body, { headers, key }), again = await trigger(body, { headers, key });
    assert.notEqual(mine.json.id, first.json.id);
    assert.deepEqual([again.json.id, granted(again)], [mine.json.id, granted(mine)]);
    assert.equal((await trigger(body, { headers })).json.id, first.json.id);
  });
});

// ---- signed URLs ----

describe("a signed URL", () => {
  const rotate = async (env, grace) => {
    const { code, stdout, all } = await runProgram(["keys", "rotate", env, "--project", keys.ref, "--grace", grace, "--data", gateway.data]);
    assert.equal(code, 0, all);
    return stdout.trim();
  };
  /** One of each kind, as a call that uses it: callback, presigned PUT and GET, telemetry. */
  async function links(more) {
    const callback = (await gateway.post("/api/v1/waitpoints/tokens", {}, more)).json.url;
    const write = (await gateway.put("/api/v2/packets/signed", undefined, more)).json.presignedUrl;
    const read = (await gateway.get("/api/v1/packets/signed", more)).json.presignedUrl;
    return {
      callback: () => gateway.post(at(callback), { done: true }, { key: null }),
      write: () => gateway.put(at(write), "1", { key: null }),
      read: () => gateway.get(at(read), { key: null }),
    };
  }
  const statuses = async (all) => Object.fromEntries(await Promise.all(Object.entries(all).map(async ([name, call]) => [name, (await call()).status])));
  const good = { callback: 200, write: 200, read: 200 }, bad = { callback: 403, write: 403, read: 403 };

  test("survives the rotation of its key during the grace period, and not a rotation without one", async () => {
    const stagingWorker = await Worker.register(gateway, { tasks: ["t"], key: keys.staging });
    const attempt = await stagingWorker.take(await stagingWorker.trigger("t"));
    const telemetry = new URL(attempt.started.envVars.TRIGGER_OTEL_EXPORTER_OTLP_ENDPOINT).pathname;
    const report = () => gateway.post(`${telemetry}/v1/traces`, { resourceSpans: [] }, { key: null });
    const old = await links({ key: keys.staging });
    await old.write();
    keys.staging = await rotate("staging", "24h");
    assert.deepEqual(await statuses(old), good);
    assert.equal((await report()).status, 200);
    const young = await links({ key: keys.staging });
    keys.staging = await rotate("staging", "0");
    assert.deepEqual(await statuses(young), bad, "its key has ended");
    assert.deepEqual(await statuses(await links({ key: keys.staging })), good);
  });

  test("of a branch ends with the branch", async () => {
    const body = { env: "preview", branch: "short" }, branches = `/api/v1/projects/${keys.ref}/branches`;
    await gateway.post(branches, body, { key: keys.pat });
    const more = { key: keys.preview, headers: { "x-trigger-branch": "short" } };
    const old = await links(more), other = await links(more);
    assert.deepEqual(await statuses({ write: old.write, callback: other.callback }), { write: 200, callback: 200 });
    await gateway.post(`${branches}/archive`, body, { key: keys.pat });
    assert.deepEqual(await statuses(old), bad);
  });
});

// ---- columns ----

describe("a column that a token leaves out", () => {
  const hex = () => "0123456789abcdef";
  const text = (key, stringValue) => ({ key, value: { stringValue } });

  async function secretive() {
    const attempt = await worker.take(await worker.trigger("child", { tags: ["shown"], metadata: { secret: "metadata" }, idempotencyKey: "secret-key" }, { secret: "payload" }));
    const path = new URL(attempt.started.envVars.TRIGGER_OTEL_EXPORTER_OTLP_ENDPOINT).pathname;
    const span = { traceId: hex().repeat(2), spanId: hex(), name: "Attempt 1", kind: 1, startTimeUnixNano: `${Date.now()}000000`, endTimeUnixNano: `${Date.now()}000000`,
      attributes: [text("$metadata.ctx.run.id", attempt.id), text("$output.secret", "output")], events: [{ name: "exception", timeUnixNano: `${Date.now()}000000`, attributes: [text("exception.message", "secret")] }], status: { code: 0 } };
    await gateway.post(`${path}/v1/traces`, { resourceSpans: [{ resource: { attributes: [] }, scopeSpans: [{ scope: { name: "t" }, spans: [span] }] }] }, { key: null });
    await attempt.succeed({ secret: "output" });
    await gateway.post("/api/v1/idempotencyKeys/secret-key/reset", { taskIdentifier: "child" });
    return attempt.id;
  }
  const columns = ["payload", "output", "metadata", "error", "idempotencyKey", "runTags", "startedAt", "costInCents"];

  test("is left out of every response", async () => {
    const id = await secretive(), whole = await token(["read:runs"]), narrow = await token(["read:runs"], { skipColumns: columns });
    const targets = [`/api/v3/runs/${id}`, "/api/v1/runs?page[size]=1", `/api/v1/runs/${id}/events`, `/api/v1/runs/${id}/trace`, `/api/v1/runs/${id}/spans/${hex()}`];
    for (const target of targets) {
      const [all, some] = [await gateway.get(target, { key: whole }), await gateway.get(target, { key: narrow })];
      assert.deepEqual([all.status, some.status], [200, 200], `${target}: ${all.text} ${some.text}`);
      assert.match(all.text, /secret/, target);
      assert.doesNotMatch(some.text, /secret|shown/, target);
    }
    const run = (await gateway.get(targets[0], { key: narrow })).json;
    for (const name of ["payload", "output", "metadata", "idempotencyKey", "startedAt"]) assert.ok(!(name in run), name);
    assert.deepEqual([run.id, run.status, run.tags, run.costInCents], [id, "COMPLETED", [], 0]);
    const one = (await gateway.get(targets[0], { key: await token([`read:runs:${id}`], { skipColumns: ["payload"] }) })).json;
    assert.deepEqual([one.payload, one.output.secret, one.metadata.secret], [undefined, "output", "metadata"]);
  });

  test("cannot be read as a packet either", async () => {
    const name = await upload("trigger/packet_hidden/payload.json", "1");
    const { id, output } = await ended("child", { payloadType: "application/store" }, name);
    const key = await token(["read:runs"], { skipColumns: ["payload"] });
    const run = (await gateway.get(`/api/v3/runs/${id}`, { key })).json;
    assert.deepEqual([run.payloadPresignedUrl, typeof run.outputPresignedUrl], [undefined, "string"]);
    assert.equal((await gateway.get(`/api/v1/runs/${id}/packets/payload`, { key })).status, 403);
    assert.equal((await gateway.get(`/api/v1/runs/${id}/packets/output`, { key })).status, 200);
    for (const one of [name, output]) {
      const refused = await packet(one, key);
      assert.equal(refused.status, 403);
      assert.match(refused.json.error, /omits columns/);
    }
    assert.equal(await reads(name, ["read:runs"], { skipColumns: ["metadata"] }), 200);
  });
});
