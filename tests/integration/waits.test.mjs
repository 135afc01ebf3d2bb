// Runs that wait: for a time, for the runs they triggered, for a token, for input.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";

import { keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { publicToken } from "../support/js/tokens.mjs";
import { thrown, Worker } from "../support/js/worker_calls.mjs";

let gateway, worker;
before(async () => {
  gateway = await startGateway();
  worker = await Worker.register(gateway, { tasks: ["parent", "child"] });
});
after(() => gateway.stop());

const tokens = "/api/v1/waitpoints/tokens";

async function executing(task = "parent") {
  const id = await worker.trigger(task);
  return worker.take(id);
}

/** Polls until the run continues, and returns its waitpoints. */
async function goesOn(attempt) {
  const execution = await until(async () => {
    const now = await attempt.refresh();
    return now.snapshot.executionStatus === "EXECUTING" && now;
  });
  return execution.completedWaitpoints;
}

async function token(body = {}) {
  const reply = await gateway.post(tokens, body);
  assert.equal(reply.status, 200, reply.text);
  return reply.json;
}

const waitFor = (attempt, id) => worker.post(`/engine/v1/runs/${attempt.id}/waitpoints/tokens/${id}/wait`, {});
const child = (attempt, options = {}) =>
  worker.trigger("child", { parentRunId: attempt.id, resumeParentOnCompletion: true, ...options });

// ---- runs ----

test("a parent that waits for its child continues with the child's result", async () => {
  const parent = await executing();
  const id = await child(parent);
  assert.deepEqual([(await worker.show(parent.id)).a, (await worker.show(parent.id)).b], ["FROZEN", "WAITING"]);
  assert.equal((await parent.refresh()).snapshot.executionStatus, "EXECUTING_WITH_WAITPOINTS");
  await (await worker.take(id)).succeed({ n: 42 });
  const [waitpoint, ...more] = await goesOn(parent);
  assert.equal(more.length, 0);
  assert.deepEqual([waitpoint.type, waitpoint.output, waitpoint.outputType, waitpoint.outputIsError],
    ["RUN", '{"n":42}', "application/json", false]);
  assert.deepEqual(waitpoint.completedByTaskRun, { id, friendlyId: id });
  assert.match(waitpoint.friendlyId, /^waitpoint_/);
  await parent.succeed(1);
});

test("a repeated request whose response was lost gets the same token, and the same wait", async () => {
  const parent = await executing(), date = new Date(Date.now() + 500).toISOString();
  const twice = async (path, body, id = `lost ${path}`) => [await worker.post(path, body, { id }), await worker.post(path, body, { id })].map(({ json }) => json);
  const [first, again] = await twice(tokens, { timeout: "1h" });
  assert.deepEqual(again, first);
  assert.notEqual((await token()).id, first.id);
  const waits = await twice(`/engine/v1/runs/${parent.id}/wait/duration`, { date });
  assert.deepEqual(waits.map(({ waitUntil }) => waitUntil), [date, date]);
  const ids = (await goesOn(parent)).map(({ id }) => id);
  for (const { waitpoint } of waits) assert.ok(ids.includes(waitpoint.id), "whichever answer arrived");
  await parent.succeed(1);
});

test("outputs beyond a megabyte are named in the response, and read like packets", async () => {
  const parent = await executing(), outputs = {}, reader = await publicToken(gateway, { scopes: ["read:runs"] });
  const large = (await token()).id;
  await waitFor(parent, large);
  for (const letter of "abcdefghijkl") {
    const id = await child(parent);
    await (await worker.take(id)).succeed(outputs[id] = letter.repeat(120_000));
  }
  await gateway.post(`${tokens}/${large}/complete`, { data: outputs[large] = "t".repeat(500_000) });
  const waitpoints = await goesOn(parent);
  assert.equal(waitpoints.length, 13);
  assert.ok(JSON.stringify(waitpoints).length < 1.1 * 2 ** 20);
  const named = waitpoints.filter(({ outputType }) => outputType === "application/store");
  assert.ok(named.length >= 4 && named.length < 13, `${named.length} are named`);
  for (const { output, outputType, completedByTaskRun, id } of waitpoints) {
    const expected = outputs[completedByTaskRun?.id ?? id];
    if (outputType !== "application/store") {
      assert.equal(JSON.parse(output), expected);
      continue;
    }
    const path = `/api/v1/packets/${encodeURIComponent(output)}`;
    const { presignedUrl } = (await gateway.get(path)).json;
    const packet = await fetch(presignedUrl);
    assert.deepEqual([packet.status, packet.headers.get("content-type")], [200, "application/json"]);
    assert.equal(JSON.parse(await packet.text()), expected);
    assert.equal((await gateway.put(`/api/v2/packets/${encodeURIComponent(output)}`)).status, 400);
    const foreign = (await gateway.get(path, { key: keys.staging })).json.presignedUrl;
    assert.equal((await fetch(foreign)).status, 404);
    assert.equal((await fetch(presignedUrl.replace(/[0-9a-z](?=[?])/, "_"))).status, 403);
    assert.equal((await gateway.get(path, { key: reader })).status, 403);
  }
  await parent.succeed(1);
});

test("a child that fails or is canceled passes its error to the parent", async () => {
  const parent = await executing();
  const failing = await child(parent, { maxAttempts: 1 });
  await (await worker.take(failing)).fail();
  let [waitpoint] = await goesOn(parent);
  assert.equal(waitpoint.outputIsError, true);
  assert.equal(JSON.parse(waitpoint.output).message, thrown.message);

  const canceled = await child(parent);
  await worker.cancel(canceled);
  [waitpoint] = await goesOn(parent);
  assert.equal(waitpoint.outputIsError, true);
  assert.match(waitpoint.output, /Canceled by user/);
  await parent.succeed(1);
});

test("an ended child that an idempotency key found lets its parent continue at once", async () => {
  const parent = await executing();
  const once = { idempotencyKey: "once" };
  const id = await child(parent, once);
  await (await worker.take(id)).succeed("first");
  await goesOn(parent);
  assert.equal(await child(parent, once), id);
  const [waitpoint] = await goesOn(parent);
  assert.equal(waitpoint.output, '"first"');
  await parent.succeed(1);
});

test("a parent that waits for a batch continues once, with every item in its place", async () => {
  const parent = await executing();
  const created = await worker.post("/api/v3/batches", { runCount: 3, parentRunId: parent.id, resumeParentOnCompletion: true });
  assert.equal(created.status, 202, created.text);
  const items = [0, 1, 2].map((index) => JSON.stringify({ index, task: "child", payload: { index } })).join("\n");
  const send = () => gateway.post(`/api/v3/batches/${created.json.id}/items`, items, { headers: { "content-type": "application/x-ndjson" } });
  assert.equal((await send()).json.sealed, true);
  assert.equal((await send()).json.sealed, true, "a repeated stream blocks no twice");
  const blocked = (await parent.refresh()).snapshot;
  assert.equal(blocked.executionStatus, "EXECUTING_WITH_WAITPOINTS");
  for (let i = 0; i < 3; i++) {
    assert.equal((await parent.refresh()).snapshot.id, blocked.id, "nothing is reported before the last one");
    const attempt = await worker.take();
    await attempt.succeed(JSON.parse(attempt.started.execution.run.payload).index * 10);
  }
  const waitpoints = await goesOn(parent);
  assert.deepEqual(waitpoints.map((w) => [w.index, w.output, w.completedByTaskRun.batch.friendlyId]).sort(),
    [0, 1, 2].map((index) => [index, String(index * 10), created.json.id]));
  await parent.succeed(1);
});

test("items too large to become runs fail in their places, and do not block the parent", async () => {
  const large = "x".repeat(3_200_000);
  const ndjson = { headers: { "content-type": "application/x-ndjson" } };
  for (const errors of [[0, 2], [0, 1, 2]]) {
    const parent = await executing();
    const { id } = (await worker.post("/api/v3/batches", { runCount: 3, parentRunId: parent.id, resumeParentOnCompletion: true })).json;
    const items = [0, 1, 2].map((index) => JSON.stringify({ index, task: "child", payload: errors.includes(index) ? large : "1" }));
    const send = () => gateway.post(`/api/v3/batches/${id}/items`, items.join("\n"), ndjson);
    const sealed = await send();
    assert.equal(sealed.json.sealed, true, sealed.text);
    if (errors.length < 3) {
      assert.equal((await parent.refresh()).snapshot.executionStatus, "EXECUTING_WITH_WAITPOINTS");
      assert.equal((await send()).json.sealed, true, "a repeated stream blocks no twice");
      await (await worker.take()).succeed("fine");
    }
    const waitpoints = (await goesOn(parent)).sort((a, b) => a.index - b.index);
    assert.deepEqual(waitpoints.map((w) => [w.type, w.index, w.completedByTaskRun.batch.friendlyId, w.outputIsError]),
      [0, 1, 2].map((index) => ["RUN", index, id, errors.includes(index)]));
    for (const index of errors) {
      assert.deepEqual(JSON.parse(waitpoints[index].output), { type: "STRING_ERROR", raw: "The item is larger than 3145728 bytes" });
      assert.match(waitpoints[index].completedByTaskRun.friendlyId, /^run_/);
    }
    await parent.succeed(1);
  }
});

test("a child that its parent waits for overtakes runs that were queued before it", async () => {
  const parent = await executing();
  const older = await worker.trigger("child");
  const id = await child(parent);
  await (await worker.take(id)).succeed(1);
  await (await worker.take(older)).succeed(1);
  await goesOn(parent);
  await parent.succeed(1);
});

// ---- tokens ----

test("a run that waits for a token continues when the token is completed", async () => {
  const attempt = await executing();
  const { id, isCached, url } = await token({ tags: ["user:1"] });
  assert.match(id, /^waitpoint_/);
  assert.equal(isCached, false);
  assert.deepEqual((await waitFor(attempt, id)).json, { success: true });
  assert.equal(await worker.status(attempt.id), "FROZEN");
  const listed = async () => (await gateway.get(`${tokens}?page[size]=100`)).json.data.find((one) => one.id === id), { waitingRun } = await listed();
  assert.deepEqual([waitingRun.id, waitingRun.taskIdentifier], [attempt.id, (await worker.show(attempt.id)).taskIdentifier ?? waitingRun.taskIdentifier]);
  assert.ok(Date.parse(waitingRun.since) <= Date.now());
  const data = '{"approved":true,"n":12345678901234567890}';
  const reply = await gateway.post(`${tokens}/${id}/complete`, `{"data":${data}}`);
  assert.deepEqual([reply.status, reply.json], [200, { success: true }]);
  const [waitpoint] = await goesOn(attempt);
  assert.deepEqual([waitpoint.friendlyId, waitpoint.type, waitpoint.output, waitpoint.outputIsError], [id, "MANUAL", data, false]);
  const shown = (await gateway.get(`${tokens}/${id}`)).json;
  assert.deepEqual([shown.status, shown.output, shown.tags, shown.url], ["COMPLETED", data, ["user:1"], url]);
  assert.equal((await listed()).waitingRun, undefined, "no run waits for it any more");
  assert.equal(reply.headers["x-ignored-members"], undefined);
  const again = await gateway.post(`${tokens}/${id}/complete`, { data: 2 });
  assert.deepEqual([again.status, again.headers["x-ignored-members"]], [200, "data"], "again: no change");
  assert.equal((await gateway.get(`${tokens}/${id}`)).json.output, data);
  await attempt.succeed(1);
});

test("a token completed before it is waited for lets the run continue at once", async () => {
  const attempt = await executing();
  const { id, url } = await token();
  const reply = await gateway.post(url.slice(gateway.url.length), { from: "a webhook" }, { key: null });
  assert.equal(reply.status, 200, reply.text);
  await waitFor(attempt, id);
  assert.equal((await goesOn(attempt))[0].output, '{"from":"a webhook"}');
  await attempt.succeed(1);
});

test("a webhook of any type completes a token by its URL", async () => {
  const form = new FormData();
  form.set("a", "1");
  form.set("file", new Blob(["x"]), "x.txt");
  for (const [body, type, output, more] of [
    ["a=1&b=x+y&a=2", "application/x-www-form-urlencoded", { a: ["1", "2"], b: "x y" }], [form, undefined, { a: "1" }],
    ["yes", "text/plain", "yes"], ["{\"a\":", "application/json", {}], ["<a>", "application/xml", {}], [undefined, undefined, {}], ["[1]", "text/plain", [1]],
    [gzipSync('{"a":1}'), "application/json", {}, { "content-encoding": "gzip" }],
  ]) {
    const attempt = await executing();
    const { id, url } = await token();
    const reply = await fetch(url, { method: "POST", body, headers: { ...type && { "content-type": type }, ...more } });
    assert.equal(reply.status, 200, await reply.text());
    await waitFor(attempt, id);
    assert.deepEqual(JSON.parse((await goesOn(attempt))[0].output), output);
    await attempt.succeed(1);
  }
});

test("a token that is not completed times out", async () => {
  const attempt = await executing();
  const { id } = await token({ timeout: "1s" });
  await waitFor(attempt, id);
  const [waitpoint] = await goesOn(attempt);
  assert.equal(waitpoint.outputIsError, true);
  assert.equal(JSON.parse(waitpoint.output).code, "TRIGGER_WAITPOINT_TIMEOUT");
  assert.equal((await gateway.get(`${tokens}/${id}`)).json.status, "TIMED_OUT");
  await attempt.succeed(1);
});

test("after a kill of the gateway every wait still ends", async () => {
  const attempt = await executing();
  const { id } = await token();
  await waitFor(attempt, id);
  const parent = await executing();
  const kid = await child(parent);
  await gateway.kill();
  await gateway.start();
  await gateway.post(`${tokens}/${id}/complete`, { data: 1 });
  assert.equal((await goesOn(attempt))[0].output, "1");
  await worker.cancel(kid);
  assert.equal((await goesOn(parent))[0].outputIsError, true);
  await attempt.succeed(1);
  await parent.succeed(1);
});

test("an idempotency key finds the same token, and the same wait", async () => {
  const first = await token({ idempotencyKey: "k" });
  assert.deepEqual(await token({ idempotencyKey: "k" }), { ...first, isCached: true });
  assert.equal((await token({ idempotencyKey: "é".repeat(2048) })).isCached, false, "characters count, not bytes");
  const attempt = await executing();
  const wait = () => worker.post(`/engine/v1/runs/${attempt.id}/wait/duration`,
    { date: new Date(Date.now() + 600).toISOString(), idempotencyKey: "t" });
  const one = (await wait()).json, two = (await wait()).json;
  assert.deepEqual(two, one);
  const [waitpoint] = await goesOn(attempt);
  assert.deepEqual([waitpoint.friendlyId, waitpoint.type], [one.waitpoint.id, "DATETIME"]);
  await attempt.succeed(1);
});

test("tokens are listed, newest first, by status, key, tag and page", async () => {
  const made = [];
  for (let i = 0; i < 5; i++) made.push((await token({ tags: ["listed", `n${i}`], idempotencyKey: `list${i}` })).id);
  made.reverse();
  const list = async (query) => (await gateway.get(`${tokens}?${query}`)).json;
  const ids = (page) => page.data.map((item) => item.id);
  assert.deepEqual(ids(await list("filter[tags]=listed")), made);
  assert.deepEqual(ids(await list("filter[tags]=n1,n3")), [made[1], made[3]]);
  assert.deepEqual(ids(await list("filter[idempotencyKey]=list4")), [made[0]]);
  await gateway.post(`${tokens}/${made[2]}/complete`, {});
  assert.deepEqual(ids(await list("filter[tags]=listed&filter[status]=COMPLETED,TIMED_OUT")), [made[2]]);
  const first = await list("filter[tags]=listed&page[size]=2");
  assert.deepEqual(ids(first), made.slice(0, 2));
  const second = await list(`filter[tags]=listed&page[size]=2&page[after]=${first.pagination.next}`);
  assert.deepEqual(ids(second), made.slice(2, 4));
  assert.deepEqual(ids(await list(`filter[tags]=listed&page[size]=2&page[before]=${second.pagination.previous}`)), made.slice(0, 2));
});

test("retention removes tokens that have ended or that no run waits for, and their keys are free again", async (t) => {
  const file = path.join(temporaryFolder(), "ahead");
  const own = await startGateway({ t, options: ["--retain", "4s"], preload: "shim_clock", env: { SHIM_CLOCK: file } });
  const its = await Worker.register(own, { tasks: ["parent"] });
  const make = async (body) => (await own.post(tokens, body)).json.id;
  const show = async (id) => (await own.get(`${tokens}/${id}`)).status;
  const over = await make({}), late = await make({ timeout: "1s" }), alone = await make({ idempotencyKey: "again" });
  const waited = await make({}), soon = await make({ timeout: "30d" });
  await own.post(`${tokens}/${over}/complete`, {});
  const attempt = await its.take(await its.trigger("parent"));
  assert.equal((await its.post(`/engine/v1/runs/${attempt.id}/waitpoints/tokens/${waited}/wait`, {})).status, 200);
  fs.writeFileSync(`${file}.new`, String(2 * 3600_000));
  fs.renameSync(`${file}.new`, file);
  for (const id of [over, late, alone]) await until(async () => (await show(id)) === 404);
  assert.deepEqual([await show(waited), await show(soon)], [200, 200]);
  assert.equal((await own.post(tokens, { idempotencyKey: "again" })).json.isCached, false);
  assert.equal((await own.post(tokens, { idempotencyKey: "again" })).json.isCached, true);
  assert.equal((await own.get(tokens)).json.data.length, 3);
});

test("a token is listed with its tags, whatever characters they and its output have", async () => {
  const tags = ["odd", '","output":"x"}', ',"output":'];
  const { id } = await token({ tags, idempotencyKey: '","output":"k' });
  for (const status of ["WAITING", "COMPLETED"]) {
    const [item] = (await gateway.get(`${tokens}?filter[tags]=odd`)).json.data;
    assert.deepEqual([item.id, item.status, item.tags, item.idempotencyKey], [id, status, tags, '","output":"k']);
    await gateway.post(`${tokens}/${id}/complete`, { data: ',"output":"y"' });
  }
  assert.equal((await gateway.get(`${tokens}/${id}`)).json.output, JSON.stringify(',"output":"y"'));
});

// ---- inputs ----

const send = (attempt, data, stream = "chat") => gateway.post(`/realtime/v1/streams/${attempt.id}/input/${stream}`, { data });
const create = (attempt, body = {}) => worker.post(`/api/v1/runs/${attempt.id}/input-streams/wait`, { streamId: "chat", ...body });
const stateOf = async (attempt) => (await attempt.refresh()).snapshot.executionStatus;

async function waitForInput(attempt, body) {
  const reply = await create(attempt, body);
  assert.equal(reply.status, 200, reply.text);
  assert.deepEqual(Object.keys(reply.json), ["waitpointId", "isCached"]);
  assert.deepEqual((await waitFor(attempt, reply.json.waitpointId)).json, { success: true });
  return reply.json.waitpointId;
}

/** The value with which the run continues; the SDK's output is the parsed value. */
async function input(attempt, id) {
  const [waitpoint, ...more] = await goesOn(attempt);
  assert.deepEqual([more.length, waitpoint.friendlyId, waitpoint.type, waitpoint.outputType, waitpoint.outputIsError],
    [0, id, "MANUAL", "application/json", false]);
  return JSON.parse(waitpoint.output);
}

test("a run that waits for an input continues with the next record, whatever it is", async () => {
  const attempt = await executing();
  for (const data of [{ approved: true, by: 'a "b"\n' }, "text", '"quoted"', 5, null, [1, "ü🎉"], false]) {
    const id = await waitForInput(attempt, { lastSeqNum: undefined, streamId: `of ${JSON.stringify(data)}` });
    assert.equal((await send(attempt, 1, "another")).status, 200);
    assert.equal(await stateOf(attempt), "EXECUTING_WITH_WAITPOINTS");
    assert.deepEqual((await send(attempt, data, encodeURIComponent(`of ${JSON.stringify(data)}`))).json, { ok: true });
    assert.deepEqual(await input(attempt, id), data);
  }
  await attempt.succeed(1);
});

test("a record that arrived before ends the wait at once, unless the run has seen it", async () => {
  const attempt = await executing();
  await send(attempt, "zero");
  await send(attempt, "one");
  const made = (await create(attempt)).json.waitpointId;
  assert.deepEqual([(await gateway.get(`${tokens}/${made}`)).json.status, (await gateway.get(`${tokens}/${made}`)).json.output], ["COMPLETED", '"zero"']);
  await waitFor(attempt, made);
  assert.equal(await input(attempt, made), "zero");
  assert.equal(await input(attempt, await waitForInput(attempt, { lastSeqNum: 0 })), "one");
  const next = await waitForInput(attempt, { lastSeqNum: 1 });
  assert.equal(await stateOf(attempt), "EXECUTING_WITH_WAITPOINTS");
  await send(attempt, "two");
  assert.equal(await input(attempt, next), "two");

  const between = (await create(attempt, { lastSeqNum: 2 })).json.waitpointId;
  await send(attempt, "three");
  await send(attempt, "four");
  await waitFor(attempt, between);
  assert.equal(await input(attempt, between), "three");
  await attempt.succeed(1);
});

test("an input that does not arrive times out, and a later one is kept for the next wait", async () => {
  const attempt = await executing();
  await waitForInput(attempt, { timeout: "1s" });
  const [waitpoint] = await goesOn(attempt);
  assert.equal(waitpoint.outputIsError, true);
  assert.equal(JSON.parse(waitpoint.output).code, "TRIGGER_WAITPOINT_TIMEOUT");
  await send(attempt, "late");
  assert.equal(await input(attempt, await waitForInput(attempt)), "late");
  await attempt.succeed(1);
});

test("one of several simultaneous records completes the wait, and the others come after it", async () => {
  const attempt = await executing();
  const all = Array.from({ length: 8 }, (_, n) => n);
  for (let round = 0; round < 10; round++) {
    const streamId = `round${round}`;
    const id = await waitForInput(attempt, { streamId });
    for (const reply of await Promise.all(all.map((n) => send(attempt, n, streamId)))) assert.equal(reply.status, 200);
    const got = [await input(attempt, id)];
    for (const lastSeqNum of all.slice(0, -1)) got.push(await input(attempt, await waitForInput(attempt, { streamId, lastSeqNum })));
    assert.deepEqual(got.sort(), all);
  }
  await attempt.succeed(1);
});

test("a repeated request sends its record once, and ends no later wait", async () => {
  const attempt = await executing();
  const repeat = (data, key) => gateway.post(`/realtime/v1/streams/${attempt.id}/input/chat`, { data }, { headers: { "x-trigger-request-idempotency-key": key } });
  const id = await waitForInput(attempt);
  for (let i = 0; i < 3; i++) assert.deepEqual((await repeat("zero", "a")).json, { ok: true });
  assert.equal(await input(attempt, id), "zero");
  const next = await waitForInput(attempt, { lastSeqNum: 0 });
  assert.deepEqual((await repeat("zero", "a")).json, { ok: true });
  assert.equal(await stateOf(attempt), "EXECUTING_WITH_WAITPOINTS", "it waits for another record");
  await repeat("one", "b");
  assert.equal(await input(attempt, next), "one");
  assert.equal((await repeat("two", "k".repeat(129))).status, 400);
  await attempt.succeed(1);
});

test("a wait for an input survives a restart, and its record follows the last one seen", async () => {
  const attempt = await executing();
  const early = (await create(attempt, { streamId: "other", lastSeqNum: 5 })).json.waitpointId;
  const id = await waitForInput(attempt, { lastSeqNum: 7, tags: ["approval"] });
  await gateway.kill();
  await gateway.start();
  assert.deepEqual((await send(attempt, { ok: 1 })).json, { ok: true });
  assert.deepEqual(await input(attempt, id), { ok: 1 });
  const next = await waitForInput(attempt, { lastSeqNum: 8 });
  assert.equal(await stateOf(attempt), "EXECUTING_WITH_WAITPOINTS", "it has seen that one");
  await send(attempt, "nine");
  assert.equal(await input(attempt, next), "nine");

  for (const n of [0, 1]) await send(attempt, n, "other"); // of a new life of the stream, so all are unseen
  await waitFor(attempt, early);
  assert.equal(await input(attempt, early), 0);
  await attempt.succeed(1);
});

test("an idempotency key finds the same wait, of its run and stream only", async () => {
  const attempt = await executing(), other = await executing();
  const key = { idempotencyKey: "input" };
  const { waitpointId } = (await create(attempt, key)).json;
  assert.deepEqual((await create(attempt, key)).json, { waitpointId, isCached: true });
  for (const reply of [await create(other, key), await create(attempt, { ...key, streamId: "else" })]) {
    assert.equal(reply.json.isCached, false);
    assert.notEqual(reply.json.waitpointId, waitpointId);
  }
  await waitFor(other, waitpointId); // a token of another kind: only its completion ends it
  await send(other, 1);
  assert.equal(await stateOf(other), "EXECUTING_WITH_WAITPOINTS");
  await waitFor(attempt, waitpointId);
  await send(attempt, 2);
  assert.equal(await input(other, waitpointId), 2);
  assert.equal(await input(attempt, waitpointId), 2);
  await attempt.succeed(1);
  await other.succeed(1);
});

test("an invalid wait for input is refused", async () => {
  const attempt = await executing();
  const over = await executing();
  await over.succeed(1);
  const foreign = (await gateway.post("/api/v1/tasks/parent/trigger", { payload: "1" }, { key: keys.prod })).json.id;
  for (const [what, reply, status] of [
    ["no stream", await create(attempt, { streamId: undefined }), 400],
    ["a stream without a name", await create(attempt, { streamId: "" }), 400],
    ["a stream that cannot be", await create(attempt, { streamId: "a\u0000b" }), 400],
    ["a name too long", await create(attempt, { streamId: "k".repeat(2000) }), 400],
    ["half a record", await create(attempt, { lastSeqNum: 0.5 }), 400],
    ["a record before the first", await create(attempt, { lastSeqNum: -2 }), 400],
    ["too many records", await create(attempt, { lastSeqNum: 2 ** 53 }), 400],
    ["a bad timeout", await create(attempt, { timeout: "soon" }), 400],
    ["a run that is over", await create(over), 400],
    ["an unknown run", await create({ id: "run_unknown" }), 404],
    ["another environment's run", await create({ id: foreign }), 404],
  ]) {
    assert.equal(reply.status, status, `${what}: ${reply.text}`);
    assert.equal(typeof reply.json.error, "string");
  }
  await attempt.succeed(1);
});

// ---- refusals ----

test("tokens can be filtered and paged among many, newest first, in both directions", async () => {
  const first = (await token({ tags: ["needle"] })).id, ids = [first];
  const since = Date.now();
  for (let i = 0; i < 12; i++)
    ids.push(...(await Promise.all(Array.from({ length: 20 }, () => token({ tags: ["hay"] })))).map((made) => made.id));
  const ask = async (query) => (await gateway.get(`${tokens}?${query}`)).json;
  assert.deepEqual((await ask("filter[tags]=needle")).data.map((item) => item.id), [first]);
  assert.deepEqual((await ask("filter[tags]=nobody")).data, []);
  assert.equal((await ask(`filter[createdAt][from]=${since + 3600e3}`)).data.length, 0);

  const downwards = [];
  let page = await ask("page[size]=100"), last;
  for (; ; page = await ask(`page[size]=100&page[after]=${page.pagination.next}`)) {
    downwards.push(...page.data.map((item) => item.id));
    last = page;
    if (!page.pagination.next) break;
  }
  assert.deepEqual(downwards, [...downwards].sort().reverse());
  assert.deepEqual(ids.filter((id) => !downwards.includes(id)), []);

  const upwards = last.data.map((item) => item.id);
  for (page = last; page.pagination.previous;) {
    page = await ask(`page[size]=100&page[before]=${page.pagination.previous}`);
    upwards.unshift(...page.data.map((item) => item.id));
  }
  assert.deepEqual(upwards, downwards);
});

test("a callback for an unknown environment is refused like one with a wrong signature", async () => {
  const { url } = await token();
  const path = new URL(url).pathname, [, , , , , id, , environment] = path.split("/");
  const wrong = await gateway.post(`${tokens}/${id}/callback/${environment}/${"A".repeat(43)}`, {}, { key: null });
  const nobody = await gateway.post(`${tokens}/${id}/callback/env_nobody/${"A".repeat(43)}`, {}, { key: null });
  assert.deepEqual([wrong.status, nobody.status], [403, 403]);
  assert.equal(nobody.text, wrong.text);
});

test("an invalid wait or completion is refused and changes nothing", async () => {
  const attempt = await executing();
  const foreign = (await gateway.post(tokens, {}, { key: keys.prod })).json.id;
  for (const [what, reply, status] of [
    ["unknown token", await waitFor(attempt, "waitpoint_unknown"), 404],
    ["another environment's token", await waitFor(attempt, foreign), 404],
    ["completing it", await gateway.post(`${tokens}/${foreign}/complete`, {}), 404],
    ["reading it", await gateway.get(`${tokens}/${foreign}`), 404],
    ["no credential", await gateway.post(`${tokens}/${foreign}/complete`, {}, { key: null }), 401],
    ["a wrong signature", await gateway.post(`${tokens}/${foreign}/callback/env_x/${"a".repeat(43)}`, {}, { key: null }), 403],
    ["no date", await worker.post(`/engine/v1/runs/${attempt.id}/wait/duration`, { date: "soon" }), 400],
    ["a bad timeout", await gateway.post(tokens, { timeout: "soon" }), 400],
    ["bad tags", await gateway.post(tokens, { tags: [1] }), 400],
    ["a key too long", await gateway.post(tokens, { idempotencyKey: "k".repeat(2049) }), 400],
    ["no JSON", await gateway.post(tokens, "{"), 400],
  ]) {
    assert.equal(reply.status, status, `${what}: ${reply.text}`);
    assert.equal(typeof reply.json.error, "string");
  }
  const mine = await token();
  const [host, path] = mine.url.split("/api/v1/");
  assert.equal(host, gateway.url);
  const forged = `/api/v1/${path.slice(0, -2)}xx`;
  assert.equal((await gateway.post(forged, {}, { key: null })).status, 403);
  const waiting = await worker.trigger("parent");
  assert.equal((await waitFor({ id: waiting }, mine.id)).status, 400, "it does not execute");
  assert.equal(await worker.status(attempt.id), "EXECUTING");
  await worker.cancel(waiting);
  await attempt.succeed(1);
});
