// The official React hooks, EventSource and WebSocket in a real browser, on a page of another
// origin than the gateway's, with public access tokens.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { keys, startGateway, until } from "../../support/gateway.mjs";
import { publicToken } from "../../support/tokens.mjs";
import { Worker } from "../../support/worker_calls.mjs";
import { startBrowser } from "./tab.mjs";

let browser, gateway, worker;
before(async () => {
  browser = await startBrowser();
  gateway = await startGateway({ options: ["--allow-origin", browser.origin] });
  worker = await Worker.register(gateway, { tasks: ["hello"] });
});
after(async () => {
  await browser?.stop();
  await gateway?.stop();
});

let names = 0;
const fresh = (what) => `${what}-${++names}`;

/** What a hook is given: the address, and a token with these scopes. */
async function access(scopes, { to = gateway, ...claims } = {}) {
  return { baseURL: to.url, accessToken: await publicToken(to, { scopes, ...claims }) };
}

async function putMetadata(id, metadata, to = gateway) {
  const { status, text } = await to.put(`/api/v1/runs/${id}/metadata`, { metadata });
  assert.equal(status, 200, text);
}

/**
 * Takes the next of these runs through its life: what comes next comes when the page has shown
 * the state before. Gives the run as the page shows it.
 */
async function live(tab, ids, by = worker) {
  for (const id of ids) await tab.shows(id, { status: "QUEUED" });
  const attempt = await by.dequeue(), { id } = attempt;
  assert.ok(ids.includes(id), `${id} is one of ${ids}`);
  await tab.shows(id, { status: "DEQUEUED" });
  await attempt.start();
  await tab.shows(id, { status: "EXECUTING" });
  for (const step of [1, 2, 3]) {
    await putMetadata(id, { step }, by.gateway);
    await tab.shows(id, { metadata: { step } });
  }
  await attempt.succeed({ greeting: "héllo" });
  return tab.shows(id, { status: "COMPLETED", output: { greeting: "héllo" }, metadata: { step: 3 } });
}

describe("a hook sees every change to the final state:", () => {
  test("useRealtimeRun, which then calls onComplete", async (t) => {
    const tab = await browser.open(t);
    const id = await worker.trigger("hello", { tags: ["a", "b"] }, { name: "Ada" });
    await tab.show("Run", { id, ...await access([`read:runs:${id}`]) });
    const run = await live(tab, [id]);
    assert.deepEqual([run.taskIdentifier, run.payload, run.tags], ["hello", { name: "Ada" }, ["a", "b"]]);
    assert.ok(run.finishedAt && run.startedAt);
    await until(async () => (await tab.completed()).length, { what: "onComplete" });
    assert.deepEqual(await tab.completed(), [[id, "COMPLETED", null]]);
    const statuses = (await tab.seen()).filter(Boolean).map((one) => one.status);
    assert.deepEqual(statuses, ["QUEUED", "DEQUEUED", ...Array(4).fill("EXECUTING"), "COMPLETED"]);
    assert.equal(await tab.text("error"), "");
  });

  test("useRealtimeRunsWithTag, also of runs that come later", async (t) => {
    const tab = await browser.open(t);
    const tag = fresh("tag");
    const first = await worker.trigger("hello", { tags: [tag] });
    await tab.show("Tag", { tag, ...await access([`read:tags:${tag}`]) });
    await live(tab, [first]);
    const second = await worker.trigger("hello", { tags: [tag, "more"] });
    await live(tab, [second]);
    assert.deepEqual(JSON.parse(await tab.text("value")).map((run) => [run.id, run.status]), [[first, "COMPLETED"], [second, "COMPLETED"]]);
    assert.equal(await tab.text("error"), "");
  });

  test("useRealtimeBatch", async (t) => {
    const tab = await browser.open(t);
    const items = [1, 2, 3].map((n) => ({ task: "hello", payload: { n } }));
    const batch = (await gateway.post("/api/v1/tasks/batch", { items })).json;
    await tab.show("Batch", { id: batch.id, ...await access([`read:batch:${batch.id}`]) });
    for (const { id } of batch.runs) await live(tab, [id]);
    const runs = JSON.parse(await tab.text("value"));
    assert.deepEqual(runs.map((run) => run.status), Array(3).fill("COMPLETED"));
    assert.equal(await tab.text("error"), "");
  });

  test("useRealtimeTaskTrigger, with a token that triggers once and the token of the answer", async (t) => {
    const tab = await browser.open(t);
    const token = await access(["trigger:tasks:hello"], { otu: true });
    await tab.show("Trigger", { task: "hello", payload: { from: "the page" }, tags: ["web"], ...token });
    await tab.page.click("button");
    const id = await until(() => tab.text("handle"), { what: "the handle" });
    const run = await live(tab, [id]);
    assert.deepEqual([run.payload, run.tags], [{ from: "the page" }, ["web"]]);
    await until(async () => (await tab.completed()).length, { what: "onComplete" });
    assert.deepEqual(await tab.completed(), [[id, "COMPLETED", null]]);
    await tab.page.click("button");
    assert.match(await tab.error(), /^422 /);
    assert.equal(await tab.text("handle"), id);
  });
});
