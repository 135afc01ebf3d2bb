// Preview branches: separate environments that share one key.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { RunsSocket } from "../support/js/runs.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const sdkPackage = path.join(here, "../conformance/sdk-v4/node_modules/@trigger.dev/sdk/dist/esm/v3/index.js");
const { auth, configure, runs, tasks } = await import(sdkPackage);
const once = { retry: { maxAttempts: 1 } };

let gateway;
before(async () => {
  gateway = await startGateway();
  configure({ baseURL: gateway.url, secretKey: keys.dev });
});
after(() => gateway.stop());

const branches = `/api/v1/projects/${keys.ref}/branches`;
const pat = { key: keys.pat };
const onBranch = (branch, key = keys.preview) => ({ key, headers: { "x-trigger-branch": branch } });
const make = (branch, env = "preview") => gateway.post(branches, { env, branch }, pat);
const archive = (branch) => gateway.post(`${branches}/archive`, { env: "preview", branch }, pat);
const trigger = (more) => gateway.post("/api/v1/tasks/t/trigger", { payload: 1 }, more);
const list = async (more) => (await gateway.get("/api/v1/runs", more)).json.data.map((run) => run.id);

async function open(t, settings) {
  const socket = await RunsSocket.open({ port: gateway.port, ...settings });
  t.after(() => socket.cut());
  return socket;
}

describe("preview branches", () => {
  test("a branch is made once, found again, listed, and gone when it is archived", async () => {
    const first = await make("feature/one");
    assert.equal(first.status, 200, first.text);
    assert.match(first.json.id, /^env_/);
    assert.equal((await make("refs/heads/feature/one")).json.id, first.json.id);
    const { json } = await gateway.get(branches, pat);
    const [shown] = json.branches.filter(({ name }) => name === "feature/one");
    assert.equal(shown.id, first.json.id);
    assert.equal(shown.isPaused, false);
    assert.ok(Date.now() - Date.parse(shown.createdAt) < 60_000);
    const gone = await archive("feature/one");
    assert.deepEqual([gone.status, gone.json.branch.id], [200, first.json.id]);
    assert.equal((await archive("feature/one")).status, 404);
    assert.ok(!(await gateway.get(branches, pat)).json.branches.some(({ name }) => name === "feature/one"));
    assert.notEqual((await make("feature/one")).json.id, first.json.id);
  });

  test("two simultaneous calls make one branch", async () => {
    const made = await Promise.all(Array.from({ length: 8 }, () => make("at-once")));
    assert.equal(new Set(made.map(({ json }) => json.id)).size, 1);
  });

  test("each branch has its own runs, and the preview key without a branch is refused", async () => {
    await make("left");
    await make("right");
    const run = (await trigger(onBranch("left"))).json.id;
    assert.ok(run);
    assert.deepEqual(await list(onBranch("left")), [run]);
    assert.deepEqual(await list(onBranch("refs/heads/left")), [run]);
    assert.deepEqual(await list(onBranch("right")), []);
    assert.equal((await gateway.get(`/api/v3/runs/${run}`, onBranch("left"))).status, 200);
    assert.equal((await gateway.get(`/api/v3/runs/${run}`, onBranch("right"))).status, 404);
    assert.equal((await gateway.get(`/api/v3/runs/${run}`)).status, 404);
    for (const [headers, text] of [[{}, "x-trigger-branch header required for preview env"],
      [{ "x-trigger-branch": "refs/notes/x" }, "x-trigger-branch header required for preview env"],
      [{ "x-trigger-branch": "nowhere" }, "No matching branch env"],
      [{ "x-trigger-branch": "x".repeat(4000) }, "No matching branch env"]]) {
      const refused = await gateway.get("/api/v1/runs", { key: keys.preview, headers });
      assert.deepEqual([refused.status, refused.json.error], [401, text]);
    }
  });

  test("a key reads its own environment on a branch, and a run of the branch gives the branch's name to its worker", async () => {
    await make("named");
    const more = onBranch("named"), get = (headers) => gateway.get(`/api/v1/projects/${keys.ref}/preview`, { key: keys.preview, headers });
    assert.equal((await get(more.headers)).json.apiKey, keys.preview);
    assert.equal((await get({})).status, 401);
    const post = async (target, body) => (await gateway.post(target, body, more)).json;
    const metadata = { packageVersion: "4.8.3", contentHash: "named", tasks: [{ id: "t", filePath: "t.ts" }] };
    await post(`/api/v1/projects/${keys.ref}/background-workers`, { localOnly: true, metadata });
    const { id } = await post("/api/v1/tasks/t/trigger", { payload: 1 });
    const [message] = (await post("/engine/v1/dev/dequeue", {})).dequeuedMessages;
    const started = await post(`/engine/v1/dev/runs/${id}/snapshots/${message.snapshot.friendlyId}/attempts/start`, {});
    assert.deepEqual([started.execution.run.id, started.execution.environment.branchName], [id, "named"]);
  });

  test("the branch header is ignored outside preview", async () => {
    for (const key of [keys.dev, keys.staging, keys.prod]) {
      const run = (await trigger({ key, headers: { "x-trigger-branch": "nowhere" } })).json.id;
      assert.ok((await list({ key })).includes(run));
    }
    const target = `/api/v1/projects/${keys.ref}/prod`;
    assert.equal((await gateway.get(target, onBranch("nowhere", keys.pat))).json.apiKey, keys.prod);
  });

  test("an archived branch is unknown to the preview key and to personal tokens, and connections that are open on it end", async () => {
    await make("ending");
    const claims = await gateway.post("/api/v1/auth/jwt", { claims: { scopes: ["read:runs"] } }, onBranch("ending"));
    const token = claims.json.token;
    assert.equal((await gateway.get("/api/v1/runs", { key: token })).status, 200);
    await archive("ending");
    assert.equal((await trigger(onBranch("ending"))).status, 401);
    assert.equal((await gateway.get("/api/v1/runs", { key: token })).status, 401);
    const page = `/api/v1/projects/${keys.ref}/runs?filter%5Benv%5D=preview`;
    const refused = await gateway.get(page, onBranch("ending", keys.pat));
    assert.deepEqual([refused.status, refused.json.error], [404, "Branch not found"]);
    assert.equal((await gateway.get(`/api/v1/projects/${keys.ref}/preview`, onBranch("ending", keys.pat))).status, 404);
  });

  test("a public token signed on a branch stays on it, whatever the header says", async (t) => {
    await make("public");
    const { id } = (await make("public")).json;
    const { headers, json: run } = await trigger(onBranch("public"));
    assert.equal(JSON.parse(headers["x-trigger-jwt-claims"]).sub, id);
    const token = headers["x-trigger-jwt"];
    assert.equal((await gateway.get(`/api/v3/runs/${run.id}`, onBranch("left", token))).status, 200);
    const socket = await open(t, { token });
    socket.send({ op: "sub", id: 1, run: run.id });
    assert.equal((await socket.next("rows")).rows[0][0], run.id);
  });

  test("a socket with a preview key is on the branch that its upgrade names", async (t) => {
    await make("socket");
    const run = (await trigger(onBranch("socket"))).json.id;
    const headers = { "x-trigger-branch": "socket" };
    for (const settings of [{ token: keys.preview, headers }, { headers, hello: { token: keys.preview } }]) {
      const socket = await open(t, settings);
      socket.send({ op: "sub", id: 1, all: true });
      assert.deepEqual((await socket.next("rows")).rows.map(([id]) => id), [run]);
    }
    const lost = await open(t, { hello: { token: keys.preview } });
    assert.equal((await lost.closed).code, 4001);
    await assert.rejects(open(t, { token: keys.preview }), { status: 401 });
  });

  test("branches survive a restart", async () => {
    const { id } = (await make("lasting")).json;
    const run = (await trigger(onBranch("lasting"))).json.id;
    await archive("left");
    await gateway.stop();
    await gateway.restart();
    assert.equal((await make("lasting")).json.id, id);
    assert.deepEqual(await list(onBranch("lasting")), [run]);
    assert.equal((await trigger(onBranch("left"))).status, 401);
  });

  test("invalid branch names are refused, and no branch is made", async () => {
    const before = (await gateway.get(branches, pat)).text;
    const bad = ["", " ", "a b", "a..b", "/a", "a/", "a//b", "a.lock", "a~b", "a^b", "a:b", "a?b", "a*b", "a[b", "a\\b", "@{", "a@{b",
      "a\u0007", "a\u007f", "x".repeat(256), "refs/notes/a", "refs/heads/"];
    const bodies = [...bad.map((branch) => ({ env: "preview", branch })), {}, [], { env: "preview" }, { branch: "a" }, { env: "preview", branch: 1 },
      { env: "preview", branch: null }, { env: "prod", branch: "a" }, { env: "development", branch: "a" }, { env: 1, branch: "a" }, "x", "", "{",
      Buffer.from('{"env":"preview","branch":"\xff"}', "latin1"), '{"env":"preview","env":"preview","branch":"a"}'];
    for (const target of [branches, `${branches}/archive`])
      for (const body of bodies) {
        const { status, json } = await gateway.post(target, body, pat);
        assert.equal(status, 400, `${target} ${JSON.stringify(body)}`);
        assert.equal(typeof json.error, "string");
      }
    for (const [key, status] of [[keys.dev, 401], [keys.preview, 401], ["tr_pat_nobody", 401], [null, 401]])
      assert.equal((await gateway.post(branches, { env: "preview", branch: "a" }, { key })).status, status);
    const unknown = await gateway.post("/api/v1/projects/proj_doesnotexistxxxxxxxx/branches", { env: "preview", branch: "a" }, pat);
    assert.deepEqual([unknown.status, unknown.json.error], [404, "Project not found"]);
    assert.equal((await gateway.get(branches, pat)).text, before);
  });

  test("the SDK works on a branch with key and previewBranch, and lists its runs with a token", async () => {
    await make("sdk");
    const handle = await auth.withAuth({ secretKey: keys.preview, accessToken: keys.preview, previewBranch: "sdk" }, async () => {
      const made = await tasks.trigger("t", 1, { tags: ["of-branch"] });
      assert.equal((await runs.retrieve(made.id)).id, made.id);
      return made;
    });
    await auth.withAuth({ accessToken: keys.pat, previewBranch: "sdk" }, async () => {
      const page = await runs.list(keys.ref, { env: "preview" });
      assert.deepEqual(page.data.map((run) => run.id), [handle.id]);
      const everywhere = await runs.list(keys.ref, { tag: "of-branch" });
      assert.deepEqual(everywhere.data.map((run) => run.id), [handle.id]);
    });
    await auth.withAuth({ accessToken: keys.pat, previewBranch: "nowhere" }, async () => {
      await assert.rejects(runs.list(keys.ref, { env: "preview" }, once), { status: 404 });
      const page = await runs.list(keys.ref, { env: "dev" }, once);
      assert.ok(!page.data.some((run) => run.id === handle.id));
    });
  });
});

test("a project has at most as many branches as the setting allows, archived ones not counted", async (t) => {
  const own = await startGateway({ t, options: ["--branches", "5"] });
  const ask = (what, branch) => own.post(branches + what, { env: "preview", branch }, pat);
  const made = await Promise.all(Array.from({ length: 6 }, (_, i) => ask("", `many-${i}`)));
  const refused = made.filter(({ status }) => status !== 200);
  assert.deepEqual(refused.map(({ status }) => status), [422]);
  assert.match(refused[0].json.error, /has too many preview branches \(5, max 5\); archive some .*, or raise the gateway's setting branches/);
  assert.equal((await own.get(branches, pat)).json.branches.length, 5);
  const { id } = (await ask("", "many-0")).json;
  assert.ok(id, "one that is there is found");
  for (let round = 0; round < 12; round++) {
    assert.equal((await ask("/archive", "many-0")).status, 200);
    assert.equal((await ask("", "many-0")).status, 200);
  }
  assert.equal((await ask("", "one-more")).status, 422);
  await own.stop();
});

test("a project has a limited number of archived branches, until retention removes them", async (t) => {
  const own = await startGateway({ t, options: ["--branches", "1"] });
  const ask = (what, branch) => own.post(branches + what, { env: "preview", branch }, pat);
  const isFull = ({ status, json }) => {
    assert.equal(status, 422);
    assert.match(json.error, /has too many archived preview branches that are still kept \(50, max 50\); wait until retention/);
  };
  for (let i = 0; i < 50; i++) {
    const made = await ask("", "again");
    assert.equal(made.status, 200, made.text);
    assert.equal((await ask("/archive", "again")).status, 200);
  }
  isFull(await ask("", "again"));
  await own.stop();
  await own.restart();
  isFull(await ask("", "again"));
  await own.stop();
  await own.restart({ options: ["--branches", "1", "--retain", "1s"] });
  await until(async () => (await ask("", "again")).status === 200, { everyMs: 100, what: "retention has removed some" });
  await own.stop();
});

test("archiving a branch cancels its unfinished runs, also when the gateway is killed meanwhile", async (t) => {
  const own = await startGateway({ t });
  const body = { env: "preview", branch: "gone" }, there = onBranch("gone");
  await own.post(branches, body, pat);
  const items = Array.from({ length: 500 }, () => ({ task: "t", payload: 1, options: { delay: "1h" } }));
  assert.equal((await own.post("/api/v2/tasks/batch", { items }, there)).status, 202);
  const kept = (await own.post("/api/v1/tasks/t/trigger", { payload: 1 })).json.id;
  assert.equal(await own.metric("runcast_runs"), 501);
  await own.post(`${branches}/archive`, body, pat);
  await own.kill();
  await own.restart();
  await until(async () => (await own.metric("runcast_runs")) === 1);
  assert.equal((await own.get(`/api/v3/runs/${kept}`)).json.status, "QUEUED");
  await own.stop();
});

test("after a write whose outcome is unknown, the next branch is decided by what is stored", async (t) => {
  const control = path.join(temporaryFolder(), "control");
  const failing = await startGateway({ t, preload: "shim_sync", env: { SHIM_CONTROL: control } });
  const ask = (branch) => failing.post(branches, { env: "preview", branch }, pat);
  const made = new Map();
  for (let round = 0; round < 3; round++) {
    fs.writeFileSync(control, "eio");
    assert.equal((await ask(`perhaps-${round}`)).status, 503);
    fs.writeFileSync(control, "ok");
    await until(() => failing.isReady());
    for (const name of [`sure-${round}`, `perhaps-${round}`]) {
      const { status, json, text } = await ask(name);
      assert.equal(status, 200, text);
      made.set(name, json.id);
    }
  }
  assert.equal(new Set(made.values()).size, 6);
  await failing.kill();
  await failing.restart();
  const { json } = await failing.get(branches, pat);
  assert.deepEqual(new Map(json.branches.map(({ name, id }) => [name, id])), made);
  await failing.stop();
});
