// Tokens of an environment that were signed for a user: their lifetime, what ends them, and what they can do that other
// public tokens cannot. tokens.table.mjs lists the routes that accept them.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { keys } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";
import { begin, closing, connect, end, fresh, gateway, subscribe, trigger } from "../support/js/realtime.mjs";
import { publicToken } from "../support/js/tokens.mjs";

before(begin);
after(end);

const jwt = (env, body, { key = keys.pat, ...more } = {}) => gateway.post(`/api/v1/projects/${keys.ref}/${env}/jwt`, body, { key, ...more });
const claimsOf = (token) => JSON.parse(Buffer.from(token.split(".")[1], "base64url"));
const admin = { claims: { scopes: ["admin"] } };
const sign = async (body = admin, more) => { const { status, json, text } = await jwt("dev", body, more); assert.equal(status, 200, text); return json.token; };
const run = async (...words) => { const { code, stdout, stderr } = await runProgram([...words, "--data", gateway.data]); assert.equal(code, 0, stderr); return stdout.trim(); };
const email = async () => (await gateway.get("/api/v2/whoami", { key: keys.pat })).json.email;
const tokenOf = async (name) => run("token", "create", "--user", await email(), "--name", name);
const idOf = async (name) => (await run("token", "list")).split("\n").find((line) => line.endsWith(name)).split(" ")[0];

test("a user's token lives for an hour, or less on request, and names its user", async () => {
  const now = Date.now() / 1000, claims = claimsOf(await sign());
  const { userId } = (await gateway.get("/api/v2/whoami", { key: keys.pat })).json;
  assert.ok(Math.abs(claims.exp - now - 3600) < 10, `${claims.exp - now} s`);
  assert.equal(claims.act.sub, userId);
  assert.match(claims.act.pat, /^[0-9a-f]{12}$/);
  assert.ok(Math.abs(claimsOf(await sign({ ...admin, expirationTime: "5m" })).exp - now - 300) < 10);
  for (const expirationTime of ["61m", "2 days", Math.floor(now) + 3700]) {
    const { status, json } = await jwt("dev", { ...admin, expirationTime });
    assert.deepEqual([status, json.error], [400, "expirationTime is too large (max an hour)"]);
  }
});

test("it is valid for the branch that it was signed for, without the branch header", async () => {
  const headers = { "x-trigger-branch": "page" };
  assert.match((await jwt("preview", admin)).json.error, /name one in x-trigger-branch/);
  assert.equal((await jwt("preview", admin, { headers })).status, 404);
  await gateway.post(`/api/v1/projects/${keys.ref}/branches`, { env: "preview", branch: "page" }, { key: keys.pat });
  const key = (await jwt("preview", admin, { headers })).json.token;
  const { id } = (await gateway.post("/api/v1/tasks/t/trigger", {}, { key })).json;
  assert.equal((await gateway.get(`/api/v1/runs/${id}/metadata`, { key })).status, 200);
  assert.equal((await gateway.get(`/api/v3/runs/${id}`, { key: keys.preview, headers })).status, 200);
  assert.equal((await gateway.get(`/api/v3/runs/${id}`, { key: keys.dev })).status, 404);
});

test("it ends with the personal token that requested it, and so do its connections", async (t) => {
  const name = fresh("page"), pat = await tokenOf(name), key = await sign(admin, { key: pat });
  const socket = await connect(t, { token: key });
  await subscribe(socket, 1, { all: true });
  assert.equal((await gateway.get("/api/v1/queues", { key })).status, 200);
  assert.equal(claimsOf(key).act.pat, await idOf(name));
  await run("token", "revoke", await idOf(name));
  const { status, json } = await gateway.get("/api/v1/queues", { key });
  assert.deepEqual([status, json.error], [401, "Public Access Token is invalid"]);
  assert.equal((await closing(socket)).code, 4001);
  assert.equal((await gateway.get("/api/v1/queues", { key: await sign() })).status, 200); // the token of another personal token stays valid
});

test("it ends when its user leaves the organization", async () => {
  const pat = (await run("user", "create", "Guest", "--email", "guest@example.com"), await run("token", "create", "--user", "guest@example.com"));
  const key = await sign(admin, { key: pat });
  assert.equal((await gateway.get("/api/v1/runs", { key })).status, 200);
  await run("user", "delete", "guest@example.com", "--confirm", "guest@example.com");
  assert.equal((await gateway.get("/api/v1/runs", { key })).status, 401);
});

test("with write:tasks it can trigger, as the MCP server of the CLI requests, and other tokens cannot", async () => {
  const scopes = ["write:tasks"], body = { payload: "1" };
  const key = await sign({ claims: { scopes } });
  assert.equal((await gateway.post("/api/v1/tasks/t/trigger", body, { key })).status, 200);
  assert.equal((await gateway.post("/api/v1/tasks/t/trigger", body, { key: await publicToken(gateway, { scopes }) })).status, 403);
});

test("it can replay the run that write:runs names, and no other", async () => {
  const [one, other] = [(await trigger()).id, (await trigger()).id], key = await sign({ claims: { scopes: [`write:runs:${one}`] } });
  assert.equal((await gateway.post(`/api/v1/runs/${one}/replay`, {}, { key })).status, 200);
  assert.equal((await gateway.post(`/api/v1/runs/${other}/replay`, {}, { key })).status, 403);
});

test("no scope extends a token that a key signed without a user", async () => {
  const { id } = await trigger();
  const key = await publicToken(gateway, { scopes: ["admin", "*:all", "write:all", "write:queues", "write:runs"], act: { sub: (await gateway.get("/api/v2/whoami", { key: keys.pat })).json.userId } });
  for (const [path, body] of [[`/api/v1/runs/${id}/replay`, {}], ["/api/v1/queues/task%2Ft/pause", { action: "pause" }], ["/api/v1/bulk-actions", { action: "cancel", runIds: [id] }]])
    assert.equal((await gateway.post(path, body, { key })).status, 401, path);
});

test("it can write variables, but gets neither secrets in clear nor tokens that live longer", async () => {
  const key = await sign(), variables = `/api/v1/projects/${keys.ref}/envvars`;
  assert.equal((await gateway.post(`${variables}/dev`, { name: "A", value: "1" }, { key })).status, 200);
  assert.equal((await gateway.get(`${variables}/dev/A`, { key })).json.value, "1");
  assert.equal((await gateway.post(`${variables}/prod`, { name: "A", value: "1" }, { key })).status, 400); // the path names another environment
  assert.equal((await gateway.get(variables, { key })).status, 401);
  for (const path of ["/api/v1/auth/jwt", "/api/v1/auth/public-tokens"]) assert.equal((await gateway.post(path, { scopes: ["admin"] }, { key })).status, 401, path);
});
