// How users get tokens: one-time links of `runcast dashboard`, and logins of the CLI, which a user approves. Also
// what an attacker could try at each step.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { isSqlite, keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";

let gateway;
before(async () => { gateway = await startGateway(); });
after(() => gateway.stop());

const dashboard = async (...words) => runProgram(["dashboard", ...words, "--data", gateway.data]);
const link = async () => (await dashboard()).stdout.trim();
const codeOf = (text) => text.split("#signin=")[1];
const signIn = (code) => gateway.post("/api/v1/sign-in", { code }, { key: null });
const token = async () => (await runProgram(["token", "create", "--user", "admin@example.com", "--name", "short", "--data", gateway.data])).stdout.trim();
const revoke = (one) => runProgram(["token", "revoke", one, "--data", gateway.data]);
const whoami = async (key) => (await gateway.get("/api/v2/whoami", { key })).status;

describe("a one-time link", () => {
  test("signs in once, for 12 hours, as the first user or a named one", async () => {
    const text = await link();
    assert.ok(text.startsWith(`${gateway.url}/#signin=tr_link_`), text);
    const { status, json } = await signIn(codeOf(text));
    assert.equal(status, 200);
    assert.match(json.token, /^tr_pat_\w{40}$/);
    assert.equal(json.user.email, "admin@example.com");
    const hours = (new Date(json.expiresAt) - Date.now()) / 3_600_000;
    assert.ok(hours > 11.9 && hours < 12.1, `${hours} h`);
    assert.equal(await whoami(json.token), 200);
    const again = await signIn(codeOf(text));
    assert.deepEqual([again.status, again.json.error], [400, "This link was used or has expired; runcast dashboard prints another one"]);
    assert.equal((await dashboard("--user", "nobody@example.com")).code, 1);
    assert.equal((await dashboard("--user", "admin@example.com")).code, 0);
    assert.equal((await dashboard("nonsense")).code, 2);
  });

  test("can be used for nothing else, and its code is in no log", async () => {
    const code = codeOf(await link());
    assert.equal(await whoami(code), 401);
    assert.equal((await gateway.get("/api/v1/projects", { key: code })).status, 401);
    const { token } = (await signIn(code)).json;
    for (const secret of [code, token]) assert.ok(!gateway.stderr.includes(secret.slice(8)), "a secret is in the log");
    await until(() => gateway.stderr.includes('"/api/v1/sign-in"'), { what: "the audit" });
  });

  test("used twice at once works once", async () => {
    const code = codeOf(await link()), answers = await Promise.all(Array.from({ length: 8 }, () => signIn(code)));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, ...Array(7).fill(400)]);
  });

  test("and the token that it gave survive a restart, and end when they are revoked", async () => {
    const kept = codeOf(await link()), { token } = (await signIn(codeOf(await link()))).json;
    await gateway.stop();
    const refused = await dashboard();
    assert.equal(refused.code, 1);
    assert.match(refused.all, isSqlite ? /no gateway serves this data/ : /there is no runcast data in .+, and no gateway serves it; start its gateway/);
    await gateway.restart();
    assert.equal(await whoami(token), 200);
    assert.equal((await signIn(kept)).status, 200);
    const { data } = (await gateway.get("/api/v1/tokens", { key: token })).json, mine = data.find(({ isThis }) => isThis);
    assert.deepEqual([mine.name, Boolean(mine.expiresAt)], ["dashboard", true]);
    assert.equal((await runProgram(["token", "revoke", mine.id, "--data", gateway.data])).code, 0);
    assert.equal(await whoami(token), 401);
  });

  test("signs in a user who has fifty valid tokens, as any of these tokens does", async (t) => {
    const crowded = await startGateway();
    t.after(() => crowded.stop());
    const code = codeOf((await runProgram(["dashboard", "--data", crowded.data])).stdout.trim());
    for (let i = 0; i < 49; i++) await runProgram(["token", "create", "--user", "admin@example.com", "--name", `n${i}`, "--data", crowded.data]);
    const { data } = (await crowded.get("/api/v1/tokens", { key: keys.pat })).json;
    for (const one of [code, keys.pat]) assert.equal((await crowded.post("/api/v1/sign-in", { code: one }, { key: null })).status, 200);
    const refused = await crowded.post("/api/v1/tokens", { name: "more" }, { key: keys.pat });
    assert.deepEqual([refused.status, refused.json.error], [422, "You have too many valid tokens (50, max 50); revoke some"]);
    assert.equal((await runProgram(["token", "revoke", data.find(({ name }) => name === "n7").id, "--data", crowded.data])).code, 0);
    assert.equal((await crowded.post("/api/v1/tokens", { name: "more" }, { key: keys.pat })).status, 200);
  });

  test("and its token expire", async (t) => {
    const folder = temporaryFolder(), wall = path.join(folder, "wall"), monotonic = path.join(folder, "monotonic");
    const ahead = (file, ms) => { fs.writeFileSync(`${file}.new`, `${ms}`); fs.renameSync(`${file}.new`, file); };
    for (const file of [wall, monotonic]) ahead(file, 0);
    const other = await startGateway({ t, preload: "shim_clock", env: { SHIM_CLOCK: wall, SHIM_MONOTONIC: monotonic } });
    const link = async () => codeOf((await runProgram(["dashboard", "--data", other.data])).stdout.trim());
    const take = (code) => other.post("/api/v1/sign-in", { code }, { key: null });
    const [late, used] = [await link(), await link()], { token } = (await take(used)).json;
    const begun = (await other.post("/api/v1/authorization-code", { codeChallenge: "A".repeat(43), codeChallengeMethod: "S256" }, { key: null })).json;
    const login = async () => (await other.get(`/api/v1/authorization-code/${begun.authorizationCode}`, { key: keys.pat })).status;
    assert.equal(await login(), 200);
    ahead(wall, 5 * 60_000 + 1000);
    assert.equal((await take(late)).status, 400);
    ahead(monotonic, 10 * 60_000 + 1000);
    other.http.closeIdle();
    assert.equal(await login(), 404);
    assert.equal((await other.get("/api/v2/whoami", { key: token })).status, 200);
    ahead(wall, 12 * 3_600_000 + 1000);
    assert.equal((await other.get("/api/v2/whoami", { key: token })).status, 401);
    await other.post(`/api/v1/projects/${keys.ref}/dev/keys`, { name: "next" }, { key: keys.pat }); // any write on keys or tokens removes expired ones from the database
    const { stdout } = await runProgram(["token", "list", "--data", other.data]);
    assert.equal(stdout.trim().split("\n").length, 1, stdout);
    await other.stop();
  });

  test("with an invalid code is refused", async () => {
    for (const body of [{}, { code: 5 }, { code: "" }, { code: "tr_link_" }, { code: keys.dev }]) assert.equal((await gateway.post("/api/v1/sign-in", body, { key: null })).status, 400);
  });
});

/** Does what trigger.dev login does. */
class Login {
  verifier = randomBytes(32).toString("base64url");

  async begin({ callbackPort, key = null } = {}) {
    const codeChallenge = createHash("sha256").update(this.verifier).digest("base64url");
    const { status, json, text } = await gateway.post("/api/v1/authorization-code", { codeChallenge, codeChallengeMethod: "S256", callbackPort }, { key });
    assert.equal(status, 200, text);
    this.code = json.authorizationCode;
    return json;
  }

  look(key = keys.pat) { return gateway.get(`/api/v1/authorization-code/${this.code}`, { key }); }
  answer(verb, key = keys.pat) { return gateway.post(`/api/v1/authorization-code/${this.code}/${verb}`, {}, { key }); }
  async approve(key) { return (await this.answer("approve", key)).json.approvalCode; }
  token(approvalCode, codeVerifier = this.verifier) { return gateway.post("/api/v1/token", { authorizationCode: this.code, codeVerifier, approvalCode }, { key: null }); }
}

describe("a token that has ended", () => {
  /** Sends the head and one byte of a call, and the rest of the body after the token was revoked. */
  async function late(method, target, body, key, headers = {}) {
    const connection = await gateway.connect(), bytes = Buffer.from(JSON.stringify(body));
    const head = { host: `127.0.0.1:${gateway.port}`, authorization: `Bearer ${key}`, "content-type": "application/json", "content-length": bytes.length, ...headers };
    await connection.send(`${method} ${target} HTTP/1.1\r\n${Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`);
    await connection.send(bytes.subarray(0, 1));
    return { connection, end: async () => {
      await connection.send(bytes.subarray(1));
      return (await connection.read((text) => /\r\n\r\n/.test(text), { what: "an answer" })).split("\r\n", 1)[0];
    } };
  }

  test("has no effect any more when the body of its call arrives late", async () => {
    const login = new Login(), own = await token();
    await login.begin();
    const { json: { token: signed } } = await gateway.post(`/api/v1/projects/${keys.ref}/dev/jwt`, { claims: { scopes: ["admin"] } }, { key: own });
    const calls = [
      ["POST", `/api/v1/authorization-code/${login.code}/approve`, { a: 1 }, own],
      ["POST", "/api/v1/orgs/my-organization/projects", { name: "made too late" }, own],
      ["PATCH", `/api/v1/projects/${keys.ref}`, { name: "named too late" }, own],
      ["POST", "/api/v1/tasks/late-task/trigger", { payload: {} }, signed],
      ["POST", "/api/v2/tasks/batch", { items: [{ task: "late-task", payload: "{}" }] }, signed],
      ["PUT", "/api/v1/packets/late/packet.json", { a: 1 }, signed],
      ["POST", "/api/v1/queues/late/pause", { type: "custom", action: "pause" }, signed],
    ];
    const open = [];
    for (const call of calls) open.push(await late(...call));
    assert.equal((await gateway.get("/api/v1/runs?filter[taskIdentifier]=late-task", { key: signed })).status, 200, "all heads have been read");
    await revoke(own);
    for (const [index, { end }] of open.entries()) assert.match(await end(), /^HTTP\/1.1 401 /, calls[index][1]);
    assert.equal((await login.look()).json.isApproved, false);
    assert.deepEqual((await gateway.get("/api/v1/projects", { key: keys.pat })).json.map(({ name }) => name).filter((name) => /late/.test(name)), []);
    assert.deepEqual((await gateway.get("/api/v1/runs?filter[taskIdentifier]=late-task")).json.data, []);
  });

  test("also ends the tokens of runs that were triggered with a token it had signed", async () => {
    const own = await token(), { json: { token: signed } } = await gateway.post(`/api/v1/projects/${keys.ref}/dev/jwt`, { claims: { scopes: ["admin"] } }, { key: own });
    const { json: { id }, headers } = await gateway.post("/api/v1/tasks/a-task/trigger", { payload: "{}", options: {} }, { key: signed }), ofRun = headers["x-trigger-jwt"];
    const look = async () => (await gateway.get(`/api/v3/runs/${id}`, { key: ofRun })).status;
    assert.equal(await look(), 200);
    await revoke(own);
    assert.equal(await look(), 401);
  });
});

describe("a login of the CLI", () => {
  test("gives a token to the machine that started it, once", async () => {
    const login = new Login(), begun = await login.begin();
    assert.deepEqual([begun.url, begun.approval], [`${gateway.url}/account/authorization-code/${login.code}`, "paste"]);
    const { json: seen } = await login.look();
    assert.deepEqual([seen.machine, seen.approval, seen.isApproved], ["127.0.0.1", "paste", false]);
    assert.ok(Math.abs(new Date(seen.expiresAt) - new Date(seen.createdAt) - 600_000) < 1000);
    const approval = await login.approve();
    assert.match(approval, /^[A-Z]{4}-[A-Z]{4}-[A-Z]{4}$/);
    const { status, json } = await login.token(` ${approval}\n`);
    assert.equal(status, 200);
    assert.equal(await whoami(json.token.token), 200);
    assert.equal(json.token.obfuscatedToken, `tr_pat_…${json.token.token.slice(-4)}`);
    assert.equal((await login.token(approval)).status, 404);
    assert.equal((await login.look()).status, 404);
  });

  test("reveals the port only to the approving browser", async () => {
    const login = new Login();
    assert.equal((await login.begin({ callbackPort: 4321 })).approval, "callback");
    assert.equal((await login.look()).json.approval, "callback");
    assert.equal((await login.answer("approve")).json.callbackPort, 4321);
  });

  test("gives nothing to an attacker who knows only its link, or the code of the approval", async () => {
    const login = new Login();
    await login.begin();
    assert.equal((await login.token("BCDF-GHJK-LMNP")).status, 400, "before it is approved");
    const approval = await login.approve();
    assert.equal((await login.token(approval, randomBytes(32).toString("base64url"))).status, 400, "another verifier");
    assert.equal((await login.token("BCDF-GHJK-LMNP")).status, 400, "another approval code");
    for (const key of [null, keys.dev, "tr_pat_nobody"]) assert.equal((await login.look(key)).status, 401);
    for (const verb of ["approve", "refuse"]) assert.equal((await login.answer(verb, keys.dev)).status, 401);
    assert.equal((await login.answer("approve")).status, 409, "a second approval would give a second code");
    assert.equal((await login.token(approval)).status, 200);
  });

  test("ends after five wrong codes, and when it is refused", async () => {
    const login = new Login(), refused = new Login();
    await login.begin();
    const approval = await login.approve();
    for (let i = 0; i < 5; i++) assert.equal((await login.token("BCDF-GHJK-LMNP")).status, 400);
    assert.equal((await login.token(approval)).status, 404);
    await refused.begin();
    assert.equal((await refused.answer("refuse")).status, 200);
    assert.equal((await refused.answer("approve")).status, 404);
  });

  test("that is pending ends with the token that approved it", async () => {
    const login = new Login(), own = await token();
    await login.begin();
    const approval = await login.approve(own);
    await revoke(own);
    const late = await login.token(approval);
    assert.deepEqual([late.status, /unknown login/.test(late.json.error)], [400, true]);
    assert.equal((await login.token(approval)).status, 404);
  });

  test("cannot be started by a page of another origin, nor by one whose host name resolves to the gateway", async (t) => {
    const begin = (headers, of = gateway) => of.post("/api/v1/authorization-code", { codeChallenge: "A".repeat(43), codeChallengeMethod: "S256" }, { key: null, headers });
    const own = `127.0.0.1:${gateway.port}`, evil = `evil.example:${gateway.port}`;
    for (const [origin, host] of [["http://evil.example", own], ["null", own], [`http://${evil}`, evil], [`http://127.0.0.1:${gateway.port + 1}`, own], ["", own]]) {
      const { status, json } = await begin({ origin, host });
      assert.deepEqual([status, /A page of another origin/.test(json.error)], [403, true], `${origin} at ${host}`);
    }
    for (const headers of [{}, { origin: `http://${own}`, host: own }, { origin: `http://LOCALHOST:${gateway.port}`, host: `localhost:${gateway.port}` }]) assert.equal((await begin(headers)).status, 200, JSON.stringify(headers));
    for (const path of ["sign-in", "token"]) assert.equal((await gateway.post(`/api/v1/${path}`, { code: "x" }, { key: null, headers: { origin: "http://evil.example" } })).status, 403);
    const named = await startGateway({ t, options: ["--public-url", "https://runs.example.com"] });
    assert.equal((await begin({ origin: "https://runs.example.com", host: "runs.example.com" }, named)).status, 200);
  });

  test("links to the gateway's own address when the Host header has another name", async (t) => {
    const named = await startGateway({ t, options: ["--public-url", "https://runs.example.com"] });
    const link = async (host, of = gateway) => (await of.post("/api/v1/authorization-code", { codeChallenge: "A".repeat(43), codeChallengeMethod: "S256" }, { key: null, headers: { host } })).json.url.replace(/[^/]*$/, "");
    const evil = "evil.example", own = `localhost:${gateway.port}`, path = "/account/authorization-code/";
    assert.deepEqual([await link(evil), await link(own)], [`${gateway.url}${path}`, `http://${own}${path}`]);
    for (const host of [evil, "runs.example.com", `127.0.0.1:${named.port}`]) assert.equal(await link(host, named), `https://runs.example.com${path}`, host);
  });

  test("through an untrusted proxy says that its machine is unknown", async () => {
    const login = new Login(), codeChallenge = createHash("sha256").update(login.verifier).digest("base64url");
    const begun = await gateway.post("/api/v1/authorization-code", { codeChallenge, codeChallengeMethod: "S256" }, { key: null, headers: { "x-forwarded-for": "203.0.113.66" } });
    login.code = begun.json.authorizationCode;
    assert.equal((await login.look()).json.machine, null);
  });

  test("is always bound by PKCE", async () => {
    const begin = (body) => gateway.post("/api/v1/authorization-code", body, { key: null });
    const codeChallenge = "A".repeat(43);
    for (const body of [undefined, {}, { codeChallenge: "short", codeChallengeMethod: "S256" }, { codeChallenge, codeChallengeMethod: "plain" }, { codeChallenge }, { codeChallenge: `${"A".repeat(42)}=`, codeChallengeMethod: "S256" }, { codeChallenge, codeChallengeMethod: "S256", callbackPort: 70_000 }]) {
      const { status, json } = await begin(body);
      assert.equal(status, 400, JSON.stringify(body));
      assert.match(json.error, /codeChallenge|callbackPort/);
    }
  });

  test("of one address, or one IPv6 site, can be one of 32 pending ones", async (t) => {
    const behind = await startGateway({ t, options: ["--trusted-proxies", "127.0.0.1"] }), codeChallenge = "A".repeat(43);
    const begin = async (from) => (await behind.post("/api/v1/authorization-code", { codeChallenge, codeChallengeMethod: "S256" }, { key: null, headers: { "x-forwarded-for": from } })).status;
    for (let i = 0; i < 32; i++) assert.deepEqual([await begin("192.0.2.7"), await begin(`2001:db8:1:${i}::${i}`)], [200, 200]);
    for (const full of ["192.0.2.7", "2001:db8:1::1", "2001:db8:1:ffff::1"]) assert.equal(await begin(full), 429, full);
    for (const other of ["192.0.2.8", "2001:db8:2::1"]) assert.equal(await begin(other), 200, other);
  });

  test("through an untrusted proxy can be one of 512 pending ones, and the oldest unapproved one makes room", async (t) => {
    const behind = await startGateway({ t }), codeChallenge = "A".repeat(43);
    const begin = async (headers) => (await behind.post("/api/v1/authorization-code", { codeChallenge, codeChallengeMethod: "S256" }, { key: null, headers })).json.authorizationCode;
    const hidden = () => begin({ "x-forwarded-for": "203.0.113.66" }), look = async (code) => (await behind.get(`/api/v1/authorization-code/${code}`, { key: keys.pat })).status;
    const direct = await begin(), codes = [await hidden()];
    assert.equal((await behind.post(`/api/v1/authorization-code/${codes[0]}/approve`, {}, { key: keys.pat })).status, 200);
    while (codes.length < 512) codes.push(await hidden());
    assert.deepEqual(await Promise.all(codes.slice(0, 3).map(look)), [200, 200, 200]);
    codes.push(await hidden());
    assert.deepEqual(await Promise.all([direct, ...codes.slice(0, 3), codes[512]].map(look)), [200, 200, 404, 200, 200]);
  });
});
