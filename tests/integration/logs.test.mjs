// Log lines about requests, and audit lines: which ones exist, and what none of them contains.
import assert from "node:assert/strict";
import { test } from "node:test";

import { keys, startGateway, until } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";
import { RawConnection } from "../support/js/http.mjs";

const lines = (gateway) => gateway.stderr.trim().split("\n").filter(Boolean).map((line) => JSON.parse(line));
const requests = (gateway) => lines(gateway).filter(({ event }) => event === "request");
const audits = (gateway) => lines(gateway).filter(({ event }) => event === "audit");

test("a failed request is a line with route, status and client, and nothing that the client wrote", async (t) => {
  const gateway = await startGateway({ t });
  await gateway.get("/api/v1/runs");
  await gateway.post("/api/v1/tasks/hello/trigger?secret=query1", { payload: "1", options: { delay: "secret2" } }, { headers: { "x-request-id": "req-77" } });
  await gateway.get("/api/v1/runs?secret=query3", { key: "tr_dev_secret4" });
  await gateway.get("/nothing/secret5");
  await gateway.get("/realtime/v1/runs/run_secret6");
  await gateway.get("/realtime/v1/ws?token=secret7", { key: null, headers: { connection: "upgrade", upgrade: "websocket", origin: "https://evil.example", "sec-websocket-version": "13", "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==" } });
  const raw = await RawConnection.open(gateway.port);
  raw.send("GET / HTTP/1.1\r\n\r\n");
  await until(() => requests(gateway).length >= 5, { what: "the lines" });
  await gateway.stop();
  const seen = requests(gateway);
  assert.deepEqual(seen.map(({ method, route, status }) => [method, route, status]), [
    ["POST", "/api/v1/tasks/{taskId}/trigger", "400"],
    ["GET", "/api/v1/runs", "401"],
    ["GET", "none", "404"],
    ["GET", "/realtime/v1/ws", "403"],
    ["GET", "none", "400"],
  ]);
  for (const one of seen) assert.equal(one.client, "127.0.0.1");
  assert.deepEqual([seen[0].project, seen[0].env, seen[0].request_id], [keys.ref, "dev", "req-77"]);
  assert.ok(Number(seen[0].us) > 0);
  assert.doesNotMatch(gateway.stderr, /secret\d|query\d|aaaaaaaa/);
});

test("a body that is refused while it arrives is one line, with its route and project", async (t) => {
  const gateway = await startGateway({ t });
  const head = (length) => `POST /api/v1/tasks/hello/trigger HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${keys.dev}\r\ncontent-type: application/json\r\n${length}\r\n\r\n`;
  for (const [request, status] of [[head("content-length: 99999999"), 413], [`${head("transfer-encoding: chunked")}not hex\r\n`, 400]]) {
    const raw = await RawConnection.open(gateway.port);
    raw.send(request);
    assert.match(await raw.readToEnd(), new RegExp(`^HTTP/1.1 ${status} `));
  }
  await gateway.stop();
  assert.deepEqual(requests(gateway).map(({ route, status, project, env }) => [route, status, project, env]),
    ["413", "400"].map((status) => ["/api/v1/tasks/{taskId}/trigger", status, keys.ref, "dev"]));
});

test("a flood of one kind is ten lines and a count, one of a single refused key is a line and a count, and other lines still get through", async (t) => {
  const gateway = await startGateway({ t });
  const flood = (ask) => Promise.all([...Array(8)].map(async () => { for (let i = 0; i < 50; i++) await ask(i); }));
  await flood(() => gateway.get("/api/v1/runs", { key: "wrong" }));
  await gateway.get("/api/v1/runs", { key: "another" });
  await flood((i) => gateway.get("/api/v1/queues", { key: `one of many ${i}` }));
  await flood(() => gateway.get("/nothing"));
  await gateway.get("/api/v3/runs/run_nobody");
  await gateway.stop();
  const counts = (all) => all.reduce((sum, { route, status, count = 1 }) => ({ ...sum, [`${status} ${route}`]: (sum[`${status} ${route}`] ?? 0) + Number(count) }), {});
  const written = counts(requests(gateway)), counted = counts(lines(gateway).filter(({ event }) => event === "similar requests"));
  assert.deepEqual(written, { "401 /api/v1/runs": 2, "401 /api/v1/queues": 10, "404 none": 10, "404 /api/v3/runs/{runId}": 1 });
  assert.deepEqual(counted, { "401 /api/v1/runs": 399, "401 /api/v1/queues": 390, "404 none": 390 });
});

test("with \"off\" no request is logged, with \"all\" each is", async (t) => {
  const gateway = await startGateway({ t, options: ["--log-requests", "off"] });
  await gateway.get("/api/v1/runs", { key: "wrong" });
  await gateway.stop();
  assert.equal(requests(gateway).length, 0);
  await gateway.restart({ options: ["--log-requests", "all"] });
  for (let i = 0; i < 30; i++) await gateway.get("/api/v1/runs");
  await gateway.get("/realtime/v1/runs/run_1");
  await gateway.stop();
  const routes = requests(gateway).map(({ route, status }) => `${route} ${status}`);
  assert.equal(routes.filter((one) => one === "/api/v1/runs 200").length, 30);
  assert.equal(routes.filter((one) => one === "/realtime/v1/runs/{runId} 404").length, 1);
});

test("audit lines of starts, stops and changes are written at every level, and contain no secret", async (t) => {
  const gateway = await startGateway({ t, options: ["--log-level", "error"] });
  const run = async (...words) => (await runProgram([...words, "--data", gateway.data])).stdout.trim();
  await run("org", "create", "Second");
  const token = await run("token", "create", "--user", (await run("user", "list")).split(/\s/)[0]);
  await run("token", "revoke", token);
  const key = await run("keys", "rotate", "dev");
  await run("org", "create", "Second");
  await run("org", "list");
  await run("vault", "rotate");
  const branch = await gateway.post(`/api/v1/projects/${keys.ref}/branches`, { env: "preview", branch: "topic" }, { key: keys.pat });
  assert.equal(branch.status, 200, branch.text);
  await gateway.stop();
  const seen = audits(gateway);
  assert.deepEqual(seen.map(({ action }) => action.replace(/--user \S+/, "--user U")), ["start", "org create Second",
    "token create --user U", "token revoke tr_…", "keys rotate dev", "org create Second", "vault rotate", "/api/v1/projects/{projectRef}/branches", "stop"]);
  for (const one of seen.slice(1, 7)) assert.match(one.by, new RegExp(`^uid ${process.getuid()}, pid \\d+$`));
  assert.deepEqual(seen.slice(1, 6).map(({ result }) => result === "ok"), [true, true, true, true, false]);
  assert.match(seen[7].by, /^token [0-9a-f]{12} of user user_\w+$/);
  assert.equal(seen[7].branch, "topic");
  assert.match(token, /^tr_pat_/);
  for (const secret of [token, key, keys.pat]) assert.ok(!gateway.stderr.includes(secret));
});
