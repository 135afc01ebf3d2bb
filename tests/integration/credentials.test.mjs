// Keys and tokens that users make, show, rotate and revoke over the API, and the fresh sign-in that some of it needs.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";

let gateway;
before(async () => { gateway = await startGateway(); });
after(() => gateway.stop());

const run = async (...words) => { const { code, stdout, all } = await runProgram([...words, "--data", gateway.data]); assert.equal(code, 0, all); return stdout.trim(); };
const link = async (...words) => (await run("dashboard", ...words)).split("#signin=")[1];
const signIn = async (code) => { const { status, json, text } = await gateway.post("/api/v1/sign-in", { code: code ?? await link() }, { key: null }); assert.equal(status, 200, text); return json.token; };
const keysOf = (env, ref = keys.ref) => `/api/v1/projects/${ref}/${env}/keys`;
const list = async (env, key = keys.pat) => (await gateway.get(keysOf(env), { key })).json.data;
const call = async (method, target, body, key, status = 200) => {
  const answer = await gateway.http.request(method, target, { body, key });
  assert.equal(answer.status, status, `${method} ${target}: ${answer.text}`);
  return answer.json;
};
const opens = async (key, env = "dev") => (await gateway.get("/api/v1/runs", { key })).status === 200 && env;
const audited = (action) => gateway.stderr.split("\n").filter((line) => line.includes('"audit"') && line.includes(action)).map((line) => JSON.parse(line));

describe("a secret key", () => {
  test("is shown to a member of the organization, and the audit names who has seen it", async () => {
    const [main] = await list("dev");
    assert.deepEqual([main.isMain, main.isReplaced, main.label], [true, false, undefined]);
    assert.match(main.id, /^[0-9a-f]{12}$/);
    const shown = await call("POST", `${keysOf("dev")}/${main.id}/reveal`, undefined, keys.pat);
    assert.deepEqual(shown, { id: main.id, key: keys.dev });
    await until(() => audited("reveal").length, { what: "the audit" });
    const { by, key, environment, result } = audited("reveal")[0];
    assert.match(by, /^token [0-9a-f]{12} of user user_/);
    assert.deepEqual([key, environment.startsWith("env_"), result], [main.id, true, "ok"]);
  });

  test("of another environment, an unknown one and an ended one are equally not found", async () => {
    const [staging] = await list("staging"), fresh = await signIn();
    const made = await call("POST", keysOf("dev"), { name: "gone" }, fresh);
    await call("DELETE", `${keysOf("dev")}/${made.id}`, undefined, fresh);
    for (const id of [staging.id, "000000000000", made.id, "x", keys.dev, `${staging.id}0`]) for (const [method, rest] of [["POST", "/reveal"], ["POST", "/rotate"], ["DELETE", ""]])
      assert.deepEqual(await call(method, `${keysOf("dev")}/${id}${rest}`, method === "POST" ? {} : undefined, fresh, 404), { error: "Key not found" });
  });

  test("takes the public tokens along that it has obtained, when it is revoked", async () => {
    const fresh = await signIn(), { id, key } = await call("POST", keysOf("staging"), { name: "leaked" }, fresh);
    const { token } = await call("POST", "/api/v1/auth/public-tokens", { scopes: ["read:runs"], expirationTime: "30d" }, key);
    assert.equal(await opens(token), "dev", "it opens what it was made for");
    await call("DELETE", `${keysOf("staging")}/${id}`, undefined, fresh);
    assert.deepEqual([await opens(key), await opens(token)], [false, false]);
  });

  test("is replaced immediately, however many others there are", async () => {
    const fresh = await signIn();
    for (let status = 200, n = 0; status === 200; n++) ({ status } = await gateway.post(keysOf("preview"), { name: `k${n}` }, { key: fresh }));
    const main = (await list("preview")).find(({ isMain }) => isMain), rotate = (grace) => gateway.post(`${keysOf("preview")}/${main.id}/rotate`, { grace }, { key: fresh });
    assert.equal((await rotate("1h")).status, 422, "with a grace there would be one more");
    assert.equal((await rotate("0")).status, 200);
  });

  test("that a user makes has a label and an end, opens its environment, and signs public tokens", async () => {
    const { id, key } = await call("POST", keysOf("dev"), { name: "  web app ", expiresIn: "90d" }, keys.pat);
    assert.match(key, /^tr_dev_\w{20,}$/);
    assert.equal(await opens(key), "dev");
    const one = (await list("dev")).find((each) => each.id === id);
    assert.deepEqual([one.label, one.isMain, one.isReplaced, one.name], ["web app", false, false, `tr_dev_…${key.slice(-4)}`]);
    const days = (new Date(one.expiresAt) - Date.now()) / 86_400_000;
    assert.ok(days > 89.9 && days < 90.1, `${days} days`);
    assert.ok(one.lastUsedAt);
    assert.equal((await call("POST", `${keysOf("dev")}/${id}/reveal`, undefined, keys.pat)).key, key);
    const { token } = await call("POST", "/api/v1/auth/public-tokens", { scopes: ["read:runs"] }, key);
    assert.equal((await gateway.get("/api/v1/runs", { key: token })).status, 200);
    assert.equal((await gateway.get(`/api/v1/projects/${keys.ref}/dev`, { key: keys.pat })).json.apiKey, keys.dev, "the main key stays the one of tasks and the CLI");
    for (const body of [{}, { name: "" }, { name: "a\nb" }, { name: 5 }, { name: "x".repeat(101) }, { name: "x", expiresIn: "soon" }, { name: "x", expiresIn: 5 }, { name: "x", expiresIn: "9999d" }, { name: "x", expiresIn: "0" }, { name: "x", expiresIn: "1h\u0000x" }])
      await call("POST", keysOf("dev"), body, keys.pat, 400);
  });

  test("survives a restart and a rotation of the encryption key, with its label", async (t) => {
    const [before, next] = ["5e", "6f"].map((byte) => byte.repeat(32)), rotated = await startGateway({ t, env: { RUNCAST_ENCRYPTION_KEY: before } });
    const { id, key } = (await rotated.post(keysOf("prod"), { name: "ci" }, { key: keys.pat })).json;
    const { code, all } = await runProgram(["vault", "rotate", "--data", rotated.data], { env: { RUNCAST_ENCRYPTION_KEY: before, RUNCAST_NEXT_ENCRYPTION_KEY: next } });
    assert.equal(code, 0, all);
    await rotated.stop();
    await rotated.restart({ env: { RUNCAST_ENCRYPTION_KEY: next } });
    assert.equal((await rotated.get("/api/v1/runs", { key })).status, 200);
    const one = (await rotated.get(keysOf("prod"), { key: keys.pat })).json.data.find((each) => each.id === id);
    assert.deepEqual([one.label, one.isMain, one.expiresAt], ["ci", false, undefined]);
    assert.equal((await rotated.post(`${keysOf("prod")}/${id}/reveal`, undefined, { key: keys.pat })).json.key, key);
    assert.equal((await rotated.get(`/api/v1/projects/${keys.ref}/prod`, { key: keys.pat })).json.apiKey, keys.prod);
    await rotated.stop();
  });

  test("is made once by a repeated request", async () => {
    const options = { key: keys.pat, headers: { "x-trigger-request-idempotency-key": randomUUID() } };
    const [one, two] = [await gateway.post(keysOf("staging"), { name: "once" }, options), await gateway.post(keysOf("staging"), { name: "once" }, options)];
    assert.deepEqual([one.status, two.status, two.json], [200, 200, one.json]);
    assert.equal((await list("staging")).filter(({ label }) => label === "once").length, 1);
  });

  test("is rotated once: the old one stays valid for the grace period", async () => {
    const fresh = await signIn(), made = await call("POST", keysOf("staging"), { name: "worker", expiresIn: "30d" }, fresh);
    const next = await call("POST", `${keysOf("staging")}/${made.id}/rotate`, { grace: "1h" }, fresh);
    assert.notEqual(next.key, made.key);
    assert.ok(await opens(made.key) && await opens(next.key));
    const all = await list("staging"), [old, young] = [made, next].map(({ id }) => all.find((each) => each.id === id));
    assert.deepEqual([old.isReplaced, young.isReplaced, young.label], [true, false, "worker"]);
    assert.ok(new Date(old.expiresAt) - Date.now() <= 3_600_000);
    assert.ok(Math.abs(new Date(young.expiresAt) - new Date(old.createdAt) - 30 * 86_400_000) < 60_000, "the new key lives as long as the old one would have");
    await call("POST", `${keysOf("staging")}/${made.id}/rotate`, { grace: "1h" }, fresh, 409);
    await call("POST", `${keysOf("staging")}/${next.id}/rotate`, { grace: "0" }, fresh);
    assert.deepEqual([await opens(next.key), await opens(keys.staging)], [false, "dev"]);
    await call("POST", `${keysOf("staging")}/${next.id}/rotate`, {}, fresh, 404);
  });

  test("that is rotated twice leaves one old value valid at most", async () => {
    const fresh = await signIn(), rotate = (id) => call("POST", `${keysOf("staging")}/${id}/rotate`, { grace: "7d" }, fresh);
    const one = await call("POST", keysOf("staging"), { name: "twice" }, fresh), two = await rotate(one.id), three = await rotate(two.id);
    assert.deepEqual(await Promise.all([one, two, three].map(({ key }) => opens(key))), [false, "dev", "dev"]);
  });

  test("that is rotated without a grace stays valid for a day", async () => {
    const fresh = await signIn(), made = await call("POST", keysOf("staging"), { name: "a day" }, fresh);
    for (const grace of [5, "soon", "366d", "-1h", ""]) await call("POST", `${keysOf("staging")}/${made.id}/rotate`, { grace }, fresh, 400);
    await call("POST", `${keysOf("staging")}/${made.id}/rotate`, {}, fresh);
    const { expiresAt } = (await list("staging")).find(({ id }) => id === made.id), hours = (new Date(expiresAt) - Date.now()) / 3_600_000;
    assert.ok(hours > 23.9 && hours <= 24, `${hours} h`);
  });

  test("that is the main one is rotated, and cannot be revoked", async (t) => {
    const other = await startGateway({ t }), code = (await runProgram(["dashboard", "--data", other.data])).stdout.trim().split("#signin=")[1];
    const { token: key } = (await other.post("/api/v1/sign-in", { code }, { key: null })).json;
    const extra = (await other.post(keysOf("dev"), { name: "extra" }, { key })).json;
    const [main] = (await other.get(keysOf("dev"), { key })).json.data;
    const refused = await other.delete(`${keysOf("dev")}/${main.id}`, { key });
    assert.deepEqual([refused.status, refused.json.error], [422, 'The main key cannot be revoked: rotate it, with grace "0" to end it immediately']);
    const next = (await other.post(`${keysOf("dev")}/${main.id}/rotate`, { grace: "24h" }, { key })).json;
    assert.equal((await other.get(`/api/v1/projects/${keys.ref}/dev`, { key })).json.apiKey, next.key);
    assert.equal((await runProgram(["keys", "--data", other.data])).stdout.includes(next.key), true);
    for (const one of [keys.dev, next.key, extra.key]) assert.equal((await other.get("/api/v1/runs", { key: one })).status, 200);
    assert.equal((await other.delete(`${keysOf("dev")}/${main.id}`, { key })).status, 200, "a replaced main key can be revoked");
    assert.equal((await other.get("/api/v1/runs", { key: keys.dev })).status, 401);
    const rotated = await runProgram(["keys", "rotate", "dev", "--grace", "0", "--data", other.data]);
    assert.equal(rotated.code, 0, rotated.all);
    assert.deepEqual(await Promise.all([next.key, extra.key].map(async (one) => (await other.get("/api/v1/runs", { key: one })).status)), [401, 200], "the subcommand rotates the main key only");
    await other.stop();
  });

  test("that is revoked opens nothing any more", async () => {
    const fresh = await signIn(), { id, key } = await call("POST", keysOf("dev"), { name: "leaked" }, fresh);
    assert.equal(await opens(key), "dev");
    await call("DELETE", `${keysOf("dev")}/${id}`, undefined, fresh);
    assert.equal(await opens(key), false);
    await call("DELETE", `${keysOf("dev")}/${id}`, undefined, fresh, 404);
  });

  test("is not refused because of those that others made and revoked on the same day", async () => {
    const fresh = await signIn();
    for (let n = 0; n < 205; n++) await call("DELETE", `${keysOf("prod")}/${(await call("POST", keysOf("prod"), { name: "x" }, fresh)).id}`, undefined, fresh);
  });

  test("is one of twenty at most", async () => {
    const others = (await list("preview")).length;
    for (let n = others; n < 20; n++) await call("POST", keysOf("preview"), { name: `key ${n}` }, keys.pat);
    const { error } = await call("POST", keysOf("preview"), { name: "more" }, keys.pat, 422);
    assert.equal(error, "The environment has too many valid keys (20, max 20); revoke some");
  });

  test("that is the twentieth is returned to a repeated request, and others stay refused", async () => {
    const fresh = await signIn(), last = (await list("preview")).find(({ isMain }) => !isMain);
    await call("DELETE", `${keysOf("preview")}/${last.id}`, undefined, fresh);
    const make = (id, name) => gateway.post(keysOf("preview"), { name }, { key: keys.pat, headers: { "x-trigger-request-idempotency-key": id } }), [one, other] = [randomUUID(), randomUUID()];
    const first = await make(one, "twentieth"), again = await make(one, "another name");
    assert.deepEqual([first.status, again.status, again.json], [200, 200, first.json]);
    for (let n = 0; n < 2; n++) assert.equal((await make(other, "more")).status, 422);
    await call("DELETE", `${keysOf("preview")}/${first.json.id}`, undefined, fresh);
    assert.equal((await make(other, "more")).status, 200, "a refused request has claimed nothing");
    await until(() => audited("/keys").some(({ key, result }) => key === first.json.id && result === "repeated"), { what: "the audit" });
    assert.equal(audited("/keys").find(({ key, result }) => key === first.json.id && result === "repeated").name, "twentieth");
  });

  test("has a name that can be seen, and so has a token", async () => {
    for (const name of ["\u200b", "c\u200bi", "\ufeff", "\u3000", "a\u061cb", "a\u202eb", "c\u200di"]) for (const path of [keysOf("dev"), "/api/v1/tokens"])
      assert.deepEqual(await call("POST", path, { name }, keys.pat, 400), { error: "name: must be a string of 1 to 100 bytes without control or invisible characters" });
    await call("POST", keysOf("staging"), { name: "❤️ 日本" }, keys.pat);
  });

  test("has lines in the audit for refused attempts, and for both keys of a rotation", async () => {
    const fresh = await signIn(), { id } = await call("POST", keysOf("staging"), { name: "rotated" }, fresh), next = await call("POST", `${keysOf("staging")}/${id}/rotate`, {}, fresh);
    const [foreign] = await list("prod");
    await call("DELETE", `${keysOf("staging")}/${foreign.id}`, undefined, keys.pat, 404);
    await call("POST", `${keysOf("staging")}/${next.id}/rotate`, {}, keys.pat, 403);
    await call("DELETE", "/api/v1/tokens/no-id-at-all", undefined, keys.pat, 404);
    const line = (action, id, wanted) => until(() => audited(action).some((one) => (one.id ?? one.key) === id && Object.entries(wanted).every(([name, value]) => value.test(one[name]))), { what: `the audit of ${action}: ${id}` });
    await line("/rotate", id, { result: /^ok$/, replacement: new RegExp(`^${next.id}$`) });
    await line("/keys/{keyId}", foreign.id, { result: /^Key not found$/, by: /^token [0-9a-f]{12} of user/ });
    await line("/rotate", next.id, { result: /^This needs a sign-in/, environment: /^env_/ });
    await line("/tokens/{tokenId}", "", { result: /^Token not found$/ });
  });
});

describe("a personal access token", () => {
  test("has a name, is shown when it is made, and never again", async () => {
    const { id, name, token } = await call("POST", "/api/v1/tokens", { name: "laptop", expiresIn: "30d" }, keys.pat);
    assert.deepEqual([name, /^tr_pat_\w{40}$/.test(token)], ["laptop", true]);
    const answer = await gateway.get("/api/v1/tokens", { key: token }), mine = answer.json.data.find(({ isThis }) => isThis);
    assert.deepEqual([mine.id, mine.name, mine.isSignIn, Boolean(mine.expiresAt)], [id, "laptop", false, true]);
    assert.ok(!answer.text.includes(token.slice(8)));
    for (const body of [{}, { name: " " }, { name: "x", expiresIn: "-1d" }]) await call("POST", "/api/v1/tokens", body, keys.pat, 400);
    await until(() => audited("/api/v1/tokens").some(({ name, token }) => name === "laptop" && token === id), { what: "the audit" });
    assert.ok(!gateway.stderr.includes(token.slice(8)), "a token is in the log");
  });

  test("is revoked by its user only, at once, along with the sign-ins that it made", async () => {
    const fresh = await signIn(), { id, token } = await call("POST", "/api/v1/tokens", { name: "lost" }, fresh), tab = await signIn(token);
    assert.equal((await gateway.get("/api/v2/whoami", { key: tab })).status, 200);
    await run("user", "create", "Grace", "--email", "grace@example.com");
    const stranger = await signIn(await link("--user", "grace@example.com"));
    for (const one of [id, "000000000000"]) assert.deepEqual(await call("DELETE", `/api/v1/tokens/${one}`, undefined, stranger, 404), { error: "Token not found" });
    await call("DELETE", `/api/v1/tokens/${id}`, undefined, fresh);
    for (const one of [token, tab]) assert.equal((await gateway.get("/api/v2/whoami", { key: one })).status, 401);
    await call("DELETE", `/api/v1/tokens/${id}`, undefined, fresh, 404);
    await gateway.stop();
    await gateway.restart();
    for (const one of [token, tab]) assert.equal((await gateway.get("/api/v2/whoami", { key: one })).status, 401);
  });

  test("makes no token that outlives it, also through others and through its sign-ins, and takes them along", async () => {
    const make = async (key, expiresIn) => (await call("POST", "/api/v1/tokens", { name: "made", expiresIn }, key)), within = ({ expiresAt }) => assert.ok(new Date(expiresAt) - Date.now() <= 3_600_000, expiresAt);
    const first = await make(keys.pat, "1h"), second = await make(first.token), tab = await signIn(second.token), third = await make(tab, "30d"), short = await make(first.token, "10m");
    for (const one of [first, second, third]) within(one);
    assert.ok(new Date(short.expiresAt) - Date.now() <= 600_000, short.expiresAt);
    const stolen = await signIn();
    assert.equal((await gateway.post("/api/v1/sign-in/confirm", { code: first.token }, { key: stolen })).status, 200);
    within(await make(stolen));
    assert.equal((await make(await signIn())).expiresAt, undefined, "a one-time link sets no end");
    await call("DELETE", `/api/v1/tokens/${first.id}`, undefined, await signIn());
    const states = await Promise.all([first.token, second.token, tab, third.token, short.token].map(async (key) => (await gateway.get("/api/v2/whoami", { key })).status));
    assert.deepEqual(states, Array(5).fill(401));
  });

  test("is one of any number when its user is deleted", async () => {
    const email = "crowd@example.com", tokens = [];
    await run("user", "create", "Crowd", "--email", email);
    tokens.push(await run("token", "create", "--user", email));
    for (let n = 1; n < 13; n++) tokens.push((await call("POST", "/api/v1/tokens", { name: `n${n}` }, tokens[0])).token);
    for (const token of tokens) for (let n = 0; n < 10; n++) await signIn(token);
    assert.equal(await run("user", "delete", email, "--confirm", email), `removed ${email} from ${(await gateway.get("/api/v1/orgs", { key: keys.pat })).json[0].slug}; tokens revoked: 143`);
    for (const key of tokens) assert.equal((await gateway.get("/api/v2/whoami", { key })).status, 401);
    await gateway.stop();
    await gateway.restart();
    assert.equal((await gateway.get("/api/v2/whoami", { key: tokens[12] })).status, 401);
  });

  test("ends itself without a fresh sign-in: a page signs out", async () => {
    const { token, id } = await call("POST", "/api/v1/tokens", { name: "own" }, keys.pat);
    await call("DELETE", `/api/v1/tokens/${id}`, undefined, token);
    assert.equal((await gateway.get("/api/v2/whoami", { key: token })).status, 401);
  });
});

describe("a fresh sign-in", () => {
  const undone = async (key, status) => {
    const { id } = await call("POST", "/api/v1/tokens", { name: "short" }, keys.pat);
    return call("DELETE", `/api/v1/tokens/${id}`, undefined, key, status);
  };

  test("is required for what cannot be undone, and is ten minutes old at most", async (t) => {
    const folder = temporaryFolder(), wall = path.join(folder, "wall");
    const ahead = (ms) => { fs.writeFileSync(`${wall}.new`, `${ms}`); fs.renameSync(`${wall}.new`, wall); };
    ahead(0);
    const other = await startGateway({ t, preload: "shim_clock", env: { SHIM_CLOCK: wall } });
    const link = async () => (await runProgram(["dashboard", "--data", other.data])).stdout.trim().split("#signin=")[1];
    const { token: key } = (await other.post("/api/v1/sign-in", { code: await link() }, { key: null })).json;
    const { id } = (await other.post(keysOf("dev"), { name: "one" }, { key })).json, [main] = (await other.get(keysOf("dev"), { key })).json.data;
    const rotate = (grace) => other.post(`${keysOf("dev")}/${main.id}/rotate`, { grace }, { key });
    ahead(10 * 60_000 + 1000);
    const late = await other.delete(`${keysOf("dev")}/${id}`, { key });
    assert.deepEqual([late.status, late.json.error], [403, "This needs a sign-in that is younger than 10 minutes: confirm yours with POST /api/v1/sign-in/confirm"]);
    assert.equal((await rotate("1h")).status, 403);
    assert.equal((await other.post(keysOf("dev"), { name: "two" }, { key })).status, 200, "making a key needs none");
    assert.equal((await other.post("/api/v1/tokens", { name: "code" }, { key })).status, 403, "a token would confirm the sign-in that made it");
    const { json: login } = await other.post("/api/v1/authorization-code", { codeChallenge: "A".repeat(43), codeChallengeMethod: "S256" }, { key: null });
    assert.equal((await other.post(`/api/v1/authorization-code/${login.authorizationCode}/approve`, {}, { key })).status, 403, "and so would that of a login");
    const confirmed = await other.post("/api/v1/sign-in/confirm", { code: await link() }, { key });
    assert.equal(confirmed.status, 200, confirmed.text);
    assert.equal((await rotate("1h")).status, 200);
    assert.equal((await other.delete(`${keysOf("dev")}/${id}`, { key })).status, 200);
    ahead(21 * 60_000);
    assert.equal((await other.delete(`${keysOf("dev")}/${main.id}`, { key })).status, 403);
    await other.stop();
  });

  test("does not become fresh again when the clock is set back", async (t) => {
    const folder = temporaryFolder(), monotonic = path.join(folder, "monotonic");
    const ahead = (ms) => { fs.writeFileSync(`${monotonic}.new`, `${ms}`); fs.renameSync(`${monotonic}.new`, monotonic); };
    ahead(0);
    const other = await startGateway({ t, preload: "shim_clock", env: { SHIM_MONOTONIC: monotonic } });
    const { token: key } = (await other.post("/api/v1/sign-in", { code: keys.pat }, { key: null })).json;
    const remove = async () => (await other.delete(`/api/v1/tokens/${(await other.post("/api/v1/tokens", { name: "x" }, { key: keys.pat })).json.id}`, { key })).status;
    assert.equal(await remove(), 200);
    ahead(10 * 60_000 + 1000);
    other.http.closeIdle();
    assert.equal(await remove(), 403, "ten minutes have passed, which the wall clock does not show");
    await other.stop();
  });

  test("is confirmed by a link or a personal token of the same person, each link once", async () => {
    const key = await signIn(), code = await link();
    const confirm = (code, by = key) => gateway.post("/api/v1/sign-in/confirm", { code }, { key: by });
    assert.deepEqual([(await confirm(code)).status, (await confirm(code)).status], [200, 400]);
    assert.equal((await confirm(keys.pat)).status, 200);
    await run("user", "create", "Eve", "--email", "eve@example.com");
    const foreign = await confirm(await link("--user", "eve@example.com"));
    assert.deepEqual([foreign.status, foreign.json.error], [422, "This is a link or token of another user; sign out first to use it"]);
    for (const wrong of [{}, { code: 5 }, { code: "" }, { code: key }, { code: keys.dev }, { code: "tr_pat_" }]) assert.equal((await gateway.post("/api/v1/sign-in/confirm", wrong, { key })).status, 400);
    assert.equal((await confirm(keys.pat, keys.pat)).status, 400, "a token that is not a sign-in cannot be confirmed");
  });

  test("is not the token of a program, and a sign-in makes no other sign-in", async () => {
    const { error } = await undone(keys.pat, 403), key = await signIn();
    assert.equal(error, "This needs a sign-in that is younger than 10 minutes: POST /api/v1/sign-in makes one of this token");
    const again = await gateway.post("/api/v1/sign-in", { code: key }, { key: null });
    assert.deepEqual([again.status, again.json.error], [400, "Unknown or expired token"]);
    await undone(await signIn(keys.pat), 200);
  });

  test("ends when the page signs out; a token of a program does not", async () => {
    const key = await signIn();
    await call("DELETE", "/api/v1/sign-in", undefined, key);
    assert.equal((await gateway.get("/api/v2/whoami", { key })).status, 401);
    await call("DELETE", "/api/v1/sign-in", undefined, keys.pat, 400);
    assert.equal((await gateway.get("/api/v2/whoami", { key: keys.pat })).status, 200);
  });

  test("is one of ten by a token: the next one ends the oldest, and none by a link or another token", async () => {
    const [stolen, other] = await Promise.all(["stolen", "other"].map((name) => call("POST", "/api/v1/tokens", { name }, keys.pat))), whoami = async (key) => (await gateway.get("/api/v2/whoami", { key })).status;
    const safe = [await signIn(), await signIn(other.token)], tabs = [];
    for (let n = 0; n < 11; n++) tabs.push(await signIn(stolen.token));
    assert.deepEqual(await Promise.all([...tabs.slice(0, 2), tabs[10], ...safe].map(whoami)), [401, 200, 200, 200, 200]);
  });

  test("is not limited by how many tokens and sign-ins others made on a day, nor is another token", async () => {
    const { id, token } = await call("POST", "/api/v1/tokens", { name: "busy" }, keys.pat);
    for (let n = 0; n < 205; n++) await call("DELETE", `/api/v1/tokens/${(await call("POST", "/api/v1/tokens", { name: "x" }, token)).id}`, undefined, await signIn(token));
    await call("DELETE", `/api/v1/tokens/${id}`, undefined, await signIn());
  });

  test("by a token ends with the token at the latest", async () => {
    const { token } = await call("POST", "/api/v1/tokens", { name: "an hour", expiresIn: "1h" }, keys.pat);
    const { json } = await gateway.post("/api/v1/sign-in", { code: token }, { key: null });
    assert.ok(new Date(json.expiresAt) - Date.now() <= 3_600_000, json.expiresAt);
  });
});

describe("the last use", () => {
  test("of keys and tokens survives a restart, and also a later kill", async (t) => {
    const own = await startGateway({ t }), { id, key } = (await own.post(keysOf("prod"), { name: "ci" }, { key: keys.pat })).json;
    const uses = async () => {
      const [ofKeys, ofTokens] = await Promise.all([own.get(keysOf("prod"), { key: keys.pat }), own.get("/api/v1/tokens", { key: keys.pat })]);
      return { key: ofKeys.json.data.find((one) => one.id === id), token: ofTokens.json.data[0], all: ofTokens.json.data };
    };
    assert.equal((await uses()).key.lastUsedAt, undefined);
    const begin = Date.now(), { token } = (await own.post("/api/v1/sign-in", { code: keys.pat }, { key: null })).json;
    for (const one of [key, token]) assert.equal((await own.get(one === key ? "/api/v1/runs" : "/api/v2/whoami", { key: one })).status, 200);
    const end = Date.now();
    await own.stop();
    for (const stop of [() => own.kill(), () => own.stop()]) {
      await own.restart();
      const { key: found, all } = await uses(), signIn = all.find(({ isSignIn }) => isSignIn);
      for (const one of [found, signIn]) assert.ok(new Date(one.lastUsedAt) >= begin && new Date(one.lastUsedAt) <= end, one.lastUsedAt);
      assert.deepEqual([found.label, found.isReplaced, found.expiresAt, signIn.name], ["ci", false, undefined, "dashboard"]);
      await stop();
    }
    await own.restart();
    for (const one of [key, keys.prod]) assert.equal((await own.get("/api/v1/runs", { key: one })).status, 200);
    assert.equal((await own.get("/api/v2/whoami", { key: token })).status, 200);
    await own.stop();
  });
});
