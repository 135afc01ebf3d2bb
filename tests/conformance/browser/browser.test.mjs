// The official React hooks, EventSource and WebSocket in a real browser, on a page from a different origin than the
// gateway's, with public access tokens.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";

import { keys, startGateway, until } from "../../support/js/gateway.mjs";
import { publicToken, signJwt } from "../../support/js/tokens.mjs";
import { Worker } from "../../support/js/worker_calls.mjs";
import { startBrowser, startRelay } from "./tab.mjs";

const readme = readFileSync(new URL("../../../src/api/realtime/README.md", import.meta.url), "utf8");
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

/** Returns the access options of a hook: the gateway's address, and a token with these scopes. */
async function access(scopes, { to = gateway, ...claims } = {}) {
  return { baseURL: to.url, accessToken: await publicToken(to, { scopes, ...claims }) };
}

async function putMetadata(id, metadata, to = gateway) {
  const { status, text } = await to.put(`/api/v1/runs/${id}/metadata`, { metadata });
  assert.equal(status, 200, text);
}

/** Moves the next of these runs through all its states. Before each step, the page must show the state before. Returns the
 *  run as the page shows it. */
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

describe("a hook sees every change up to the final state:", () => {
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

  test("useRealtimeRunsWithTag, also of later runs", async (t) => {
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
    const waiting = new Set(batch.runs.map((run) => run.id));
    while (waiting.size) waiting.delete((await live(tab, [...waiting])).id);
    const runs = JSON.parse(await tab.text("value"));
    assert.deepEqual(runs.map((run) => run.status), Array(3).fill("COMPLETED"));
    assert.equal(await tab.text("error"), "");
  });

  test("useRealtimeTaskTrigger, with a token that triggers once and the token of the response", async (t) => {
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

/** Does what `streams.pipe` does in a task: creates the stream, then sends one chunk per line. */
async function pipe(id, key, chunks, to = gateway) {
  const target = `/realtime/v1/streams/${id}/self/${key}`;
  const { status, text } = await to.put(target);
  assert.equal(status, 202, text);
  const headers = { "x-client-id": randomUUID(), "x-resume-from-chunk": "0", "x-stream-version": "v1", "content-type": "application/json" };
  const sent = await to.post(target, chunks.map((chunk) => `${JSON.stringify(chunk)}\n`).join(""), { headers });
  assert.equal(sent.status, 200, sent.text);
}

/** Does what `streams.append` does: sends one part, which is text. */
async function append(id, key, part) {
  const { status, text } = await gateway.post(`/realtime/v1/streams/${id}/self/${key}/append`, part);
  assert.equal(status, 200, text);
}

/** Waits until the page shows exactly this value. Otherwise the error has the value that it shows. */
async function reads(tab, element, value) {
  const wanted = JSON.stringify(value);
  let text;
  await until(async () => (text = await tab.text(element)) === wanted, { timeoutMs: 60_000 }).catch(async () => {
    assert.fail(`${element} should be ${wanted} and is ${text}, ${await tab.text("error")}`);
  });
}

describe("a hook sees every chunk once:", () => {
  test("useRealtimeRunWithStreams, of two streams, along with the changes of the run", async (t) => {
    const tab = await browser.open(t);
    const id = await worker.trigger("hello");
    await tab.show("RunWithStreams", { id, ...await access([`read:runs:${id}`]) });
    await tab.shows(id, { status: "QUEUED" });
    const attempt = await worker.take(id);
    await pipe(id, "words", [{ word: "Good" }]);
    await reads(tab, "streams", { words: [{ word: "Good" }] });
    await append(id, "log", "begun");
    await reads(tab, "streams", { words: [{ word: "Good" }], log: ["begun"] });
    await pipe(id, "words", [{ word: "mörning" }, { word: "!" }]);
    await reads(tab, "streams", { words: [{ word: "Good" }, { word: "mörning" }, { word: "!" }], log: ["begun"] });
    await putMetadata(id, { step: 1 });
    await tab.shows(id, { status: "EXECUTING", metadata: { step: 1 } });
    await attempt.succeed(2);
    await tab.shows(id, { status: "COMPLETED", output: 2 });
    await until(async () => (await tab.completed()).length, { what: "onComplete" });
    assert.equal(await tab.text("error"), "");
  });

  test("useRealtimeStream, from the beginning, also when the connection is cut, and when the gateway is killed", async (t) => {
    const { own, by } = await another(t);
    const tab = await browser.open(t);
    const id = await by.trigger("hello");
    const attempt = await by.take(id);
    const parts = [];
    const writes = async (n) => {
      await pipe(id, "numbers", [{ n }], own);
      parts.push({ n });
    };
    const shows = () => reads(tab, "value", parts);
    await writes(1);
    await writes(2);
    const relay = await startRelay(t, own.port);
    await tab.show("Stream", { id, name: "numbers", ...await access([`read:runs:${id}`], { to: own }), baseURL: relay.url });
    await shows();
    await writes(3);
    await shows();
    relay.cut();
    await writes(4);
    await shows();
    await own.kill();
    await own.restart();
    await writes(5);
    await shows();
    await attempt.succeed();
    assert.equal(await tab.text("error"), "");
  });

  test("useRealtimeStream returns an error when the token cannot read the run", async (t) => {
    const tab = await browser.open(t);
    const id = await worker.trigger("hello");
    await (await worker.take(id)).succeed();
    for (const [status, token] of [[403, await access(["read:runs:run_other"])], [404, await access(["read:runs"], { key: keys.prod })]]) {
      await tab.reload();
      await tab.show("Stream", { id, name: "numbers", ...token });
      assert.match(await tab.error(), new RegExp(`^${status} `));
      assert.equal(await tab.text("value"), "[]");
    }
  });

  test("useRealtimeStream returns an error when the beginning of the stream was discarded", async (t) => {
    const tab = await browser.open(t);
    const id = await worker.trigger("hello");
    const attempt = await worker.take(id);
    for (let i = 0; i < 12; i++) await append(id, "large", "x".repeat(500_000));
    await tab.show("Stream", { id, name: "large", ...await access([`read:runs:${id}`]) });
    assert.match(await tab.error(), /^410 /);
    assert.equal(await tab.text("value"), "[]");
    await attempt.succeed();
  });
});

/** A gateway that the test can stop and restart, with a worker. */
async function another(t) {
  const own = await startGateway({ t });
  return { own, by: await Worker.register(own, { tasks: ["hello"] }) };
}
const offsets = (requests) => requests.map((request) => new URL(request.url()).searchParams).filter((query) => query.has("offset"))
  .map((query) => [query.get("offset") === "-1" ? "start" : "resume", query.get("live") === "true" ? "live" : "now"].join(" "));

describe("nothing is lost", () => {
  test("while the tab is hidden: it requests nothing, and when shown again it requests only what it missed", async (t) => {
    const tab = await browser.open(t);
    const id = await worker.trigger("hello");
    await tab.show("Run", { id, ...await access([`read:runs:${id}`]) });
    await tab.shows(id, { status: "QUEUED" });
    const attempt = await worker.take(id);
    await tab.shows(id, { status: "EXECUTING" });
    await until(async () => (await gateway.metric("runcast_polls")) === 1, { what: "the page polls" });
    await tab.setVisibility("hidden");
    await until(async () => (await gateway.metric("runcast_polls")) === 0, { what: "the page stops polling" });
    const before = tab.requests.length;
    for (const step of [1, 2, 3]) await putMetadata(id, { step });
    await attempt.succeed({ n: 1 });
    assert.equal((await tab.shows(id, { status: "EXECUTING" })).metadata ?? null, null);
    assert.equal(tab.requests.length, before);
    await tab.setVisibility("visible");
    await tab.shows(id, { status: "COMPLETED", metadata: { step: 3 }, output: { n: 1 } });
    assert.deepEqual(offsets(tab.requests.slice(before)), ["resume now"]);
    await until(async () => (await tab.completed()).length, { what: "onComplete" });
  });

  test("when the tab is hidden while the gateway is killed and restarted, and runs change, end and start", async (t) => {
    const { own, by } = await another(t);
    const tab = await browser.open(t);
    const ids = [await by.trigger("hello", { tags: ["demo"] }), await by.trigger("hello", { tags: ["demo"] })];
    await tab.show("Tag", { tag: "demo", ...await access(["read:tags:demo"], { to: own }) });
    for (const id of ids) await tab.shows(id, { status: "QUEUED" });
    const attempt = await by.take();
    await tab.shows(attempt.id, { status: "EXECUTING" });
    await tab.setVisibility("hidden");
    await putMetadata(attempt.id, { before: "the end" }, own);
    await own.kill();
    await own.restart();
    await attempt.succeed("done");
    ids.push(await by.trigger("hello", { tags: ["demo"] }));
    await tab.setVisibility("visible");
    await tab.shows(attempt.id, { status: "COMPLETED", metadata: { before: "the end" }, output: "done" });
    await tab.shows(ids[2], { status: "QUEUED" });
    const waiting = new Set(ids.filter((id) => id !== attempt.id));
    while (waiting.size) waiting.delete((await live(tab, [...waiting], by)).id);
    assert.equal(offsets(tab.requests).filter((what) => what.startsWith("start")).length, 1);
  });

  for (const how of ["kill", "stop"])
    test(`when the gateway is ended by ${how} and restarted while a hook is connected`, async (t) => {
      const { own, by } = await another(t);
      const tab = await browser.open(t);
      const id = await by.trigger("hello");
      await tab.show("Run", { id, ...await access([`read:runs:${id}`], { to: own }) });
      await tab.shows(id, { status: "QUEUED" });
      const attempt = await by.take(id);
      await tab.shows(id, { status: "EXECUTING" });
      await own[how]();
      await until(() => tab.requests.some((request) => request.failure()?.errorText.includes("CONNECTION_REFUSED")), { what: "a request of the page is refused" });
      await own.restart();
      await putMetadata(id, { step: 1 }, own);
      await tab.shows(id, { status: "EXECUTING", metadata: { step: 1 } });
      await attempt.succeed(how);
      await tab.shows(id, { status: "COMPLETED", output: how });
      assert.equal(await tab.text("error"), "");
      assert.equal(offsets(tab.requests).filter((what) => what.startsWith("start")).length, 1);
    });
});

/** Calls fetch() in the page; returns the status, the text, and the headers that the script may read. */
const fetchInPage = (tab, url, options) => tab.run(async ([target, how]) => {
  const answer = await fetch(target, how);
  return { status: answer.status, text: await answer.text(), headers: Object.fromEntries(answer.headers) };
}, [url, options]);

describe("a page of another origin", () => {
  const bearer = (token) => ({ authorization: `Bearer ${token}`, "trigger-version": "4.8.3", "x-trigger-api-version": "2025-07-16",
    "x-trigger-electric-version": "1.0.0-beta.1" });

  test("reads the headers that it needs, of polls, triggers and errors", async (t) => {
    const tab = await browser.open(t);
    const id = await worker.trigger("hello");
    const { accessToken } = await access([`read:runs:${id}`, "trigger:tasks:hello"]);
    const url = `${gateway.url}/realtime/v1/runs/${id}`;
    const first = await fetchInPage(tab, `${url}?offset=-1`, { headers: bearer(accessToken) });
    assert.equal(first.status, 200);
    for (const name of ["electric-offset", "electric-handle", "electric-schema", "electric-up-to-date"])
      assert.notEqual(first.headers[name], undefined, name);
    const { "electric-offset": offset, "electric-handle": handle } = first.headers;
    const poll = fetchInPage(tab, `${url}?offset=${offset}&handle=${handle}&live=true&cursor=`, { headers: bearer(accessToken) });
    await putMetadata(id, { step: 1 });
    assert.ok((await poll).headers["electric-cursor"]);

    const triggered = await fetchInPage(tab, `${gateway.url}/api/v1/tasks/hello/trigger`, { method: "POST", body: "{}",
      headers: { ...bearer(accessToken), "content-type": "application/json", "x-trigger-request-idempotency-key": fresh("request") } });
    assert.equal(triggered.status, 200, triggered.text);
    assert.match(triggered.headers["x-trigger-jwt"], /^\w+\.[\w-]+\.[\w-]+$/);
    assert.equal(JSON.parse(triggered.headers["x-trigger-jwt-claims"]).pub, true);
    for (const run of [id, JSON.parse(triggered.text).id]) await gateway.post(`/api/v2/runs/${run}/cancel`, {});

    const refused = await fetchInPage(tab, `${url}?offset=-1`, { headers: bearer("nothing") });
    assert.deepEqual([refused.status, JSON.parse(refused.text).error.length > 0], [401, true]);
  });

  /** Opens an EventSource in the page. */
  async function listen(tab, url) {
    await tab.run((target) => {
      window.received = [];
      const source = new EventSource(target);
      for (const type of ["ok", "rows", "drain", "error"])
        source.addEventListener(type, ({ data }) => window.received.push({ type, ...(data && JSON.parse(data)), state: source.readyState }));
    }, url);
    const received = (type) => tab.run((wanted) => window.received.filter((one) => one.type === wanted), type);
    const versions = async () => (await received("rows")).flatMap(({ rows }) => rows.map(([, version]) => version));
    const waitForVersion = (version) => until(async () => (await versions()).at(-1) === version, { what: `version ${version}` });
    return { received, versions, waitForVersion };
  }

  test("listens with EventSource, which resumes by itself across a kill and a long stop", async (t) => {
    const { own, by } = await another(t);
    const tab = await browser.open(t);
    const id = await by.trigger("hello");
    const { accessToken } = await access([`read:runs:${id}`], { to: own });
    const { received, versions, waitForVersion } = await listen(tab, `${own.url}/realtime/v1/events?run=${id}&fields=-payload&token=${accessToken}`);
    await waitForVersion(1);
    await putMetadata(id, { step: 1 }, own);
    await waitForVersion(2);

    await own.kill();
    await own.restart();
    await putMetadata(id, { step: 2 }, own);
    await waitForVersion(3);

    const slow = await own.connect(); // keeps the gateway draining until its body arrives
    await slow.send("POST /api/v1/tasks/slow/trigger HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n" +
      `authorization: Bearer ${keys.dev}\r\ncontent-length: 2\r\n\r\n`);
    await own.get("/healthz");
    own.child.kill("SIGTERM");
    await until(async () => (await received("drain")).length >= 2, { what: "a second drain event, sent while the gateway drains" });
    await slow.send("{}");
    await own.ended();
    await own.restart();
    await putMetadata(id, { step: 3 }, own);
    await waitForVersion(4);

    assert.deepEqual((await received("ok")).map(({ mode }) => mode), ["snapshot", "resume", "resume"]);
    assert.deepEqual(await versions(), [1, 2, 3, 4]);
  });

  test("opens a WebSocket as the README shows, when its origin is allowed", async (t) => {
    const tab = await browser.open(t);
    const { id, tag } = await demo();
    await snippet(tab, await publicToken(gateway, { scopes: [`read:tags:${tag}`] }), tag);
    const received = (op) => until(() => tab.run((wanted) => window.received.find((one) => one.op === wanted), op), { what: op });
    await received("welcome");
    assert.deepEqual((await received("rows")).rows.map(([run, version]) => [run, version]), [[id, 1]]);
    await gateway.post(`/api/v2/runs/${id}/cancel`, {});
    const { rows } = await received("patch");
    assert.deepEqual([rows[0][0], rows[0][1], rows[0][2].status], [id, 2, "CANCELED"]);
  });

  test("opens no WebSocket when its origin is not allowed, whatever its token", async (t) => {
    const tab = await browser.open(t, browser.otherOrigin);
    const { id, tag } = await demo();
    const answer = tab.page.waitForEvent("websocket").then((socket) => socket.waitForEvent("socketerror", { timeout: 60_000 }));
    await snippet(tab, await publicToken(gateway, { scopes: [`read:tags:${tag}`] }), tag);
    assert.match(await answer, /403/);
    await until(() => tab.run(() => window.socket.readyState === WebSocket.CLOSED), { what: "it is closed" });
    assert.deepEqual(await tab.run(() => window.received), []);
    await gateway.post(`/api/v2/runs/${id}/cancel`, {});
  });

  async function demo() {
    const tag = fresh("demo");
    return { tag, id: await worker.trigger("hello", { tags: [tag] }) };
  }

  /** Runs the README's own lines in the page; their log goes to `window.received`. */
  async function snippet(tab, token, tag) {
    const text = readme.slice(readme.indexOf("From a page")).split("\n\n").find((part) => part.startsWith("    "));
    const code = text.replace("ws://127.0.0.1:3030", gateway.url.replace("http", "ws")).replace('"demo"', `"${tag}"`);
    await tab.run(([lines, key]) => {
      window.received = [];
      const console = { log: (message) => window.received.push(message) };
      window.socket = new Function("token", "console", `${lines}; return socket;`)(key, console);
    }, [code, token]);
  }
});

describe("an insufficient token gives an error in the hook and reveals nothing:", () => {
  const secret = "only for holders of a valid token";
  let id, tag, batch, unknown;
  before(async () => {
    tag = fresh("private");
    batch = (await gateway.post("/api/v1/tasks/batch", { items: [{ task: "hello", payload: { secret }, options: { tags: [tag] } }] })).json;
    id = batch.runs[0].id;
    unknown = id.slice(0, -4) + "0000";
  });
  after(() => gateway.post(`/api/v2/runs/${id}/cancel`, {}));

  const all = ["read:runs", "read:tags", "read:batch"];
  const refused = {
    "expired": [401, () => ({ scopes: all, expiresInS: -5 })],
    "signed with another key": [401, () => ({ scopes: all, signedWith: keys.prod })],
    "for other runs, tags and batches": [403, () => ({ scopes: [`read:runs:${unknown}`, "read:tags:public", "read:batch:batch_0"] })],
    "that may only write": [403, () => ({ scopes: [`write:runs:${id}`, "trigger:tasks:hello"] })],
    "without scopes": [403, () => ({ scopes: [] })],
  };

  /** Asserts that the hook shows this status and no data, and that no response contains the secret. Returns the last response. */
  async function isRefused(tab, hook, options, status) {
    await tab.reload();
    await tab.show(hook, options);
    assert.match(await tab.error(), new RegExp(`^${status} `));
    assert.ok(["null", "[]"].includes(await tab.text("value")));
    const texts = await Promise.all(tab.answers.filter((one) => one.url().startsWith(gateway.url) && one.request().method() === "GET").map((one) => one.text()));
    assert.ok(texts.length > 0 && texts.every((text) => !text.includes(secret)));
    return texts.at(-1);
  }

  for (const [what, [status, claims]] of Object.entries(refused))
    test(what, async (t) => {
      const { signedWith, ...rest } = claims();
      const token = await access(rest.scopes, rest);
      if (signedWith) {
        const payload = JSON.parse(Buffer.from(token.accessToken.split(".")[1], "base64url"));
        token.accessToken = signJwt(signedWith, payload);
      }
      const tab = await browser.open(t);
      for (const [hook, options] of [["Run", { id }], ["Tag", { tag }], ["Batch", { id: batch.id }]])
        await isRefused(tab, hook, { ...options, ...token }, status);
    });

  test("of another environment, to which existing runs look like missing ones", async (t) => {
    const tab = await browser.open(t);
    const token = await access(all, { key: keys.prod });
    for (const [hook, existing, missing] of [["Run", id, unknown], ["Batch", batch.id, "batch_nothing"]]) {
      const texts = [];
      for (const one of [existing, missing]) texts.push(await isRefused(tab, hook, { id: one, ...token }, 404));
      assert.equal(texts[0], texts[1]);
    }
    await tab.reload();
    await tab.show("Tag", { tag, ...token });
    const { json } = await gateway.post("/api/v1/tasks/hello/trigger", { payload: 1, options: { tags: [tag] } }, { key: keys.prod });
    await tab.shows(json.id, { status: "PENDING_VERSION" });
    assert.deepEqual(JSON.parse(await tab.text("value")).map((run) => run.id), [json.id]);
  });

  test("that expires while the hook listens", async (t) => {
    const tab = await browser.open(t);
    const expiresInS = 2, late = Date.now() + expiresInS * 1000 + 1000;
    await tab.show("Run", { id, ...await access([`read:runs:${id}`], { expiresInS }) });
    await tab.shows(id, { status: "QUEUED" });
    await until(() => Date.now() > late);
    await putMetadata(id, { wakes: "the poll that is held" });
    assert.match(await tab.error(), /^401 /);
  });
});
