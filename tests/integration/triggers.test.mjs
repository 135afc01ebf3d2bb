// Triggers beyond what the official SDKs check: bodies in pieces, headers, parents, one-time tokens, tokens that the
// gateway signs; packets and their URLs.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, before, test } from "node:test";

import { RawConnection } from "../support/js/http.mjs";
import { keys, startGateway, until } from "../support/js/gateway.mjs";
import { publicToken } from "../support/js/tokens.mjs";

let gateway;
before(async () => { gateway = await startGateway(); });
after(() => gateway.stop());

const hold = { delay: "1h" };
const trigger = (body, call) => gateway.post("/api/v1/tasks/triggers/trigger", body, call);
const run = async (id) => (await gateway.get(`/api/v3/runs/${id}`)).json;

test("a body is read the same wherever it is cut", async () => {
  const text = JSON.stringify({ options: { payloadType: "text/plain", delay: "1h" }, payload: "ż\"\\\u{1F680}\n" });
  const body = Buffer.from(text.replace("ż", "\\u017c"));
  for (let cut = 1; cut < body.length; cut++) {
    const connection = await RawConnection.open(gateway.port);
    await connection.sendPieces(Buffer.concat([Buffer.from("POST /api/v1/tasks/triggers/trigger HTTP/1.1\r\nhost: x\r\n" +
      `authorization: Bearer ${keys.dev}\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n`), body.subarray(0, cut)]), []);
    await connection.send(body.subarray(cut));
    await until(() => connection.ended, { what: "the reply" });
    const { id } = JSON.parse(connection.received.toString().split("\r\n\r\n")[1]);
    assert.equal((await run(id)).payload, "ż\"\\\u{1F680}\n");
  }
});

test("invalid bodies are refused with the reason", async () => {
  for (const [body, status, said] of [
    ["", 400, /^Request body is empty$/], ["   ", 400, /empty/], ["{", 400, /^Invalid JSON/], [`{"payload":${"[".repeat(200)}`, 400, /^Invalid JSON: it ends too early$/], ["{nope}", 400, /^Invalid JSON/],
    ["[]", 400, /object/], ["null", 400, /object/], ['{"payload":1,"payload":2}', 400, /twice/],
    ['{"options":{"ttl":1,"ttl":2}}', 400, /twice/], [Buffer.from('{"payload":"\xff"}', "latin1"), 400, /^Invalid JSON/],
    ['{"payload":1}}', 400, /^Invalid JSON/], ['{"payload":"' + "x".repeat(3_145_728) + '"}', 413, /too large/],
  ]) {
    const reply = await trigger(body);
    assert.equal(reply.status, status, `${String(body).slice(0, 60)}: ${reply.text}`);
    assert.match(reply.json.error, said);
  }
  assert.equal((await trigger("{}")).status, 200);
});

test("headers override the key in the body", async () => {
  const headers = { "idempotency-key": "from-header", "idempotency-key-ttl": "1h" };
  const a = await trigger({ options: { ...hold, idempotencyKey: "x1" } }, { headers });
  const b = await trigger({ options: { ...hold, idempotencyKey: "x2" } }, { headers });
  assert.equal(b.json.id, a.json.id);
  assert.equal((await run(a.json.id)).idempotencyKey, "from-header");
});

test("a child knows its parent and root, and an ended parent gets no more children", async () => {
  const root = (await trigger({ options: hold })).json.id;
  const child = (await trigger({ options: { ...hold, parentRunId: root } })).json.id;
  const grandchild = await run((await trigger({ options: { ...hold, parentRunId: child, resumeParentOnCompletion: true } })).json.id);
  assert.equal(grandchild.depth, 2);
  assert.equal(grandchild.triggerFunction, "triggerAndWait");
  assert.deepEqual([grandchild.relatedRuns.parent.id, grandchild.relatedRuns.root.id], [child, root]);

  const foreign = (await trigger({ options: hold }, { key: keys.prod })).json.id;
  for (const parentRunId of ["run_unknown", foreign, "x".repeat(100)])
    assert.equal((await trigger({ options: { ...hold, parentRunId } })).status, 422, parentRunId);
  const key = await publicToken(gateway, { scopes: ["trigger:tasks:triggers"] });
  assert.equal((await trigger({ options: { ...hold, parentRunId: root } }, { key })).status, 403);
  await gateway.post(`/api/v2/runs/${root}/cancel`);
  const late = await trigger({ options: { ...hold, parentRunId: root } });
  assert.equal(late.status, 422);
  assert.match(late.json.error, /has finished/);
});

test("a one-time token triggers once, and a repeated request does not count", async () => {
  const key = await publicToken(gateway, { scopes: ["trigger:tasks:triggers"], otu: true });
  const headers = { "x-trigger-request-idempotency-key": "once-1" };
  const a = await trigger({ options: hold }, { key, headers }), b = await trigger({ options: hold }, { key, headers });
  assert.deepEqual(b.json, a.json);
  const c = await trigger({ options: hold }, { key });
  assert.equal(c.status, 422);
  assert.equal(c.json.error, "Cannot trigger triggers with a one-time use token as it has already been used.");
});

test("a request id that is too long to be stored is refused, whatever the call", async () => {
  const headers = { "x-trigger-request-idempotency-key": "k".repeat(256) };
  const snapshot = `/engine/v1/dev/runs/run_${"a".repeat(21)}/snapshots/snapshot_1/attempts/start`;
  for (const path of ["/api/v1/tasks/triggers/trigger", "/api/v2/tasks/batch", "/api/v1/waitpoints/tokens", snapshot]) {
    const { status, json } = await gateway.post(path, {}, { headers });
    assert.equal(status, 400, path);
    assert.equal(json.error, "Headers Error: x-trigger-request-idempotency-key must have at most 255 characters");
  }
  headers["x-trigger-request-idempotency-key"] = "k".repeat(255);
  assert.equal((await trigger({ options: hold }, { headers })).status, 200);
});

test("the token of a trigger can read its run and write its streams", async () => {
  const reply = await trigger({ options: hold });
  const claims = JSON.parse(reply.headers["x-trigger-jwt-claims"]), { id } = reply.json;
  assert.deepEqual(claims.scopes, [`read:runs:${id}`, `write:inputStreams:${id}`]);
  assert.match(reply.headers["x-runs-seq"], /^\w{16}\.\d+$/);
  const key = reply.headers["x-trigger-jwt"];
  assert.equal((await gateway.get(`/api/v3/runs/${id}`, { key })).status, 200);
  assert.equal((await gateway.post(`/api/v2/runs/${id}/cancel`, undefined, { key })).status, 403);
});

// ---- tokens that the gateway signs ----

test("public tokens that the gateway signs have the requested claims", async () => {
  const make = (body) => gateway.post("/api/v1/auth/public-tokens", body);
  const { json } = await make({ scopes: ["trigger:tasks:triggers"], expirationTime: "2 days", oneTimeUse: true, realtime: { skipColumns: ["payload"] } });
  const claims = JSON.parse(Buffer.from(json.token.split(".")[1], "base64url").toString());
  assert.deepEqual(claims.scopes, ["trigger:tasks:triggers"]);
  assert.deepEqual([claims.pub, claims.otu, claims.exp - claims.iat], [true, true, 172_800]);
  assert.deepEqual(claims.realtime, { skipColumns: ["payload"] });
  assert.equal((await trigger({ options: hold }, { key: json.token })).status, 200);
  assert.equal((await trigger({ options: hold }, { key: json.token })).status, 422);

  const now = Math.floor(Date.now() / 1000), scopes = ["read:runs"];
  for (const body of [{}, { scopes: [] }, { scopes: "x" }, { scopes: [1] }, { scopes, expirationTime: "soon" }, { scopes, expirationTime: "31d" },
    { scopes, expirationTime: now - 1 }, { scopes, expirationTime: now + 31 * 86400 }, { scopes, expirationTime: {} }, { scopes, oneTimeUse: 1 }, [1]])
    assert.equal((await make(body)).status, 400, JSON.stringify(body));
  for (const expirationTime of ["1h", "24hr", "90 seconds", "1.5 hours", now + 60])
    assert.equal((await make({ scopes, expirationTime })).status, 200, String(expirationTime));

  const plain = await gateway.post("/api/v1/auth/jwt", { claims: { scopes } });
  assert.equal((await gateway.get("/api/v1/runs", { key: plain.json.token })).status, 200);
  const key = plain.json.token;
  assert.equal((await gateway.post("/api/v1/auth/jwt", {}, { key })).status, 401);
});

test("claims that restrict a token are in it, whichever route signs it, or it is refused", async () => {
  const { id } = (await trigger({ payload: "secret", options: hold })).json;
  const own = (claims) => gateway.post("/api/v1/auth/jwt", { claims });
  const open = await own({ scopes: ["read:runs"] });
  const narrow = await own({ scopes: ["read:runs"], realtime: { skipColumns: ["payload"] } });
  const shown = async (key) => (await gateway.get(`/api/v3/runs/${id}`, { key })).json.payload;
  assert.deepEqual([await shown(open.json.token), await shown(narrow.json.token)], ["secret", undefined]);
  assert.equal(narrow.headers["x-ignored-members"], undefined);
  const once = { key: (await own({ scopes: ["trigger:tasks:triggers"], otu: true })).json.token };
  assert.deepEqual([(await trigger({ options: hold }, once)).status, (await trigger({ options: hold }, once)).status], [200, 422]);

  for (const realtime of [1, ["payload"], { skipColumns: "payload" }, { skipColumns: ["payload", 1] }, { skipColumns: null }])
    for (const { status, text } of [await own({ realtime }), await gateway.post("/api/v1/auth/public-tokens", { scopes: ["read:runs"], realtime })])
      assert.equal(status, 400, `${JSON.stringify(realtime)} ${text}`);
  assert.equal((await own({ otu: "true" })).status, 400);
});

// ---- packets ----

const at = (url) => new URL(url).pathname + new URL(url).search;
const put = (url, body, type) => gateway.http.request("PUT", at(url), { key: null, body, headers: { "content-type": type } });
const load = (url) => gateway.http.request("GET", at(url), { key: null });

test("a packet is served as it was stored", async () => {
  for (const [name, path] of [["trigger/packet_é x/payload.json", encodeURIComponent("trigger/packet_é x/payload.json")], ["a/b.txt", "a/b.txt"]]) {
    const { json } = await gateway.http.request("PUT", `/api/v2/packets/${path}`);
    assert.equal(json.storagePath, name);
    const stored = await put(json.presignedUrl, '{"json":"ż"}', "application/super+json");
    assert.equal(stored.status, 200, stored.text);
    const { json: { presignedUrl } } = await gateway.get(`/api/v1/packets/${path}`);
    const got = await load(presignedUrl);
    assert.deepEqual([got.status, got.text, got.headers["content-type"]], [200, '{"json":"ż"}', "application/super+json"]);
    await put(json.presignedUrl, "again", "text/plain");
    const over = await load(presignedUrl);
    assert.deepEqual([over.text, over.headers["content-type"]], ["again", "text/plain"]);
  }
});

test("a run with a packet returns the URL to read it from", async () => {
  const { json } = await gateway.http.request("PUT", "/api/v2/packets/p%2Fpayload.json");
  await put(json.presignedUrl, '{"json":{"a":1}}', "application/super+json");
  const { id } = (await trigger({ payload: json.storagePath, options: { ...hold, payloadType: "application/store" } })).json;
  const shown = await run(id);
  assert.equal(shown.payload, undefined);
  assert.equal((await load(shown.payloadPresignedUrl)).text, '{"json":{"a":1}}');
  const direct = await gateway.get(`/api/v1/runs/${id}/packets/payload`);
  assert.equal((await load(direct.json.presignedUrl)).text, '{"json":{"a":1}}');
  assert.equal((await gateway.get(`/api/v1/runs/${id}/packets/output`)).status, 404);
  assert.equal((await gateway.get(`/api/v1/runs/${id}/packets/else`)).status, 404);
});

test("a payload must name a stored packet, or no run is made", async () => {
  const wish = { payload: "p/nobody.json", options: { ...hold, payloadType: "application/store", tags: "of nobody" } };
  const item = { task: "hello", ...wish };
  const line = JSON.stringify({ index: 0, ...item });
  const open = async () => (await gateway.post("/api/v3/batches", { runCount: 1 })).json.id;
  const commits = (result) => gateway.metric(`runcast_store_commits_total{result="${result}"}`);
  const [missing, failed] = [await commits("missing"), await commits("failed")];
  const answers = [
    await trigger(wish),
    await gateway.post("/api/v1/tasks/batch", { items: [item] }),
    await gateway.post("/api/v2/tasks/batch", { items: [item, { task: "hello", payload: "1" }] }),
    await gateway.post(`/api/v3/batches/${await open()}/items`, line, { headers: { "content-type": "application/x-ndjson" } }),
  ];
  for (const answer of answers) {
    assert.equal(answer.status, 400, answer.text);
    assert.match(answer.json.error, /packet .* not stored; upload it first/);
  }
  assert.deepEqual((await gateway.get("/api/v1/runs?filter[tag]=of%20nobody")).json.data, []);
  assert.ok(await commits("missing") > missing, "what the caller forgot to store is counted");
  assert.equal(await commits("failed"), failed, "and is not a failure of the storage");
});

test("a URL is for one name, one method and one hour", async () => {
  const upload = (await gateway.http.request("PUT", "/api/v2/packets/u%2F1")).json.presignedUrl;
  const download = (await gateway.get("/api/v1/packets/u%2F1")).json.presignedUrl;
  assert.equal((await load(download)).status, 404);
  assert.equal((await put(upload, "x", "text/plain")).status, 200);
  assert.equal((await put(download, "y", "text/plain")).status, 403);
  assert.equal((await load(upload)).status, 403);
  assert.equal((await load(download.replace("/u/1", "/u/2"))).status, 403);
  const expires = Number(new URL(download).searchParams.get("expires"));
  assert.ok(Math.abs(expires - Date.now() / 1000 - 3600) < 60);
  assert.equal((await load(download.replace(String(expires), String(expires + 1)))).status, 403);
  assert.equal((await load(download.replace(/signature=.*/, ""))).status, 403);
  assert.equal((await load(download.replace(/expires=\d+/, "expires=x"))).status, 400);
  const [, , , env] = new URL(download).pathname.split("/");
  assert.equal((await load(download.replace(env, "nobody"))).status, 403);
  const signed = (seconds) => createHmac("sha256", keys.dev).update(["runcast-url", env, "GET", seconds, "u/1"].join("\0")).digest("base64url");
  assert.equal(new URL(download).searchParams.get("signature"), signed(expires), "this is how it is signed");
  const late = Math.floor(Date.now() / 1000) - 1;
  const over = await load(download.replace(/expires=.*/, `expires=${late}&signature=${signed(late)}`));
  assert.equal(over.status, 403);
  assert.match(over.text, /has expired/);
});

test("names and sizes of packets are limited", async () => {
  for (const name of ["a//b", "..%2Fb", "a%2F..%2Fb", "a%2F", "a%0Ab", "x".repeat(513)])
    assert.equal((await gateway.http.request("PUT", `/api/v2/packets/${name}`)).status, 400, name);
  const { presignedUrl } = (await gateway.http.request("PUT", "/api/v1/packets/sizes")).json;
  const most = Buffer.alloc((10 << 20) + (64 << 10), "m");
  assert.equal((await put(presignedUrl, most, "text/plain")).status, 200);
  const { json } = await gateway.get("/api/v1/packets/sizes");
  assert.equal((await load(json.presignedUrl)).text.length, most.length);
  assert.equal((await put(presignedUrl, Buffer.alloc(most.length + 1), "text/plain")).status, 413);
  assert.equal((await put(presignedUrl, "", "text/plain")).status, 200);
  assert.equal((await load(json.presignedUrl)).text, "");
  const chunked = await RawConnection.open(gateway.port);
  await chunked.send(`PUT ${at(presignedUrl)} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n`);
  await until(() => chunked.ended, { what: "the reply" });
  const got = await load(json.presignedUrl);
  assert.deepEqual([got.text, got.headers["content-type"]], ["abcde", undefined]);
});

test("packets are for secret keys and tokens of the run", async () => {
  const status = async (method, path, scopes) =>
    (await gateway.http.request(method, path, { key: await publicToken(gateway, { scopes }) })).status;
  assert.equal(await status("GET", "/api/v1/packets/a", ["read:runs"]), 200);
  assert.equal(await status("GET", "/api/v1/packets/a", ["read:runs:x"]), 403);
  assert.equal(await status("GET", "/api/v1/packets/a", ["trigger:tasks"]), 403);
  assert.equal(await status("PUT", "/api/v2/packets/a", ["admin"]), 401);
});
