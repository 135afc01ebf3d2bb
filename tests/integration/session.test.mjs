// Staying signed in to the dashboard: what the one cookie of the gateway opens, and the key that takes its place without
// TLS; what ends it, and what an attacker could try.
import assert from "node:assert/strict";
import { generateKeyPairSync, sign } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { freePort, keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { HttpClient } from "../support/js/http.mjs";
import { runProgram } from "../support/js/program.mjs";
import { makeCertificate, unwrap } from "../support/js/tls.mjs";

/** A gateway with a plain and a TLS listener; https is a client of the latter. */
async function startSecure({ t, options = [], ...more } = {}) {
  const own = makeCertificate(temporaryFolder(), "own"), plain = await freePort(), port = await freePort();
  const gateway = await startGateway({ t, port: plain, ...more,
    options: ["--listen", `127.0.0.1:${plain}`, "--listen", `127.0.0.1:${port},tls`, "--tls-cert", own.certificate, "--tls-key", own.key, ...options] });
  const front = await unwrap(port, own.certificate), https = new HttpClient(`http://127.0.0.1:${front.port}`, null);
  gateway.https = { client: https, host: `127.0.0.1:${port}`, origin: `https://127.0.0.1:${port}` };
  gateway.plain = { client: gateway.http, host: `127.0.0.1:${plain}`, origin: `http://127.0.0.1:${plain}` };
  const end = () => { https.close(); front.close(); };
  t?.after(end);
  return { gateway, stop: async () => { end(); await gateway.stop(); } };
}

let gateway, stop;
before(async () => { ({ gateway, stop } = await startSecure()); });
after(() => stop());

const run = async (of, ...words) => { const { code, stdout, all } = await runProgram([...words, "--data", of.data]); assert.equal(code, 0, all); return stdout.trim(); };
const link = async (of = gateway, ...words) => (await run(of, "dashboard", ...words)).split("#signin=")[1];
const session = "/dashboard/session", place = { project: keys.ref, environment: "dev" };
const cookieIn = ({ headers }) => headers["set-cookie"]?.[0];

/** A browser that stays signed in: `way` is the listener, gateway.https or gateway.plain. */
class Browser {
  constructor(of = gateway, way = of.https) { Object.assign(this, { of, way }); }

  /** The headers that a browser sends with a request of the page. */
  get headers() { return { host: this.way.host, origin: this.way.origin, "sec-fetch-site": "same-origin", "content-type": "application/json" }; }

  async post(target, body, { key = null, headers = {}, ...more } = {}) {
    const all = Object.fromEntries(Object.entries({ ...this.headers, ...headers }).filter(([, value]) => value !== undefined));
    return this.way.client.request("POST", target, { body, key, headers: all, ...more });
  }

  async signIn(code) {
    this.token = (await this.post("/api/v1/sign-in", { code: code ?? await link(this.of) })).json.token;
    return this;
  }

  async stay(body = {}, more) {
    const answer = await this.post("/api/v1/sign-in/stay", body, { key: this.token, ...more });
    this.take(answer);
    return answer;
  }

  take(answer) {
    const cookie = cookieIn(answer);
    if (cookie) [this.cookie] = cookie.split(";");
    return answer;
  }

  /** Uses the cookie, and keeps the next one. */
  async use(body = {}, { headers, ...more } = {}) { return this.take(await this.post(session, body, { headers: { cookie: this.cookie, ...headers }, ...more })); }

  static async staying(of = gateway) {
    const browser = await new Browser(of).signIn(), { status, text } = await browser.stay();
    assert.equal(status, 200, text);
    return browser;
  }
}

const ids = async (of = gateway) => (await run(of, "token", "list")).split("\n").filter((line) => line.endsWith("dashboard, stays signed in")).map((line) => line.split(" ")[0]);
const opens = async (key, of = gateway) => (await of.get("/api/v1/runs", { key })).status;
const refusal = ({ status, json }) => [status, json?.error];
const signedOut = [401, "You are not signed in any more; sign in again"];
const foreign = [403, "Only the dashboard of this gateway may call this"];

describe("the cookie", () => {
  test("gives names, and a token of one environment for 15 minutes, and is replaced by each use", async () => {
    const browser = await new Browser().signIn(), stays = await browser.stay(), first = browser.cookie;
    assert.deepEqual(Object.keys(stays.json), ["userId", "expiresAt"]);
    const [pair, ...attributes] = cookieIn(stays).split("; ");
    assert.match(pair, /^__Secure-runcast-[0-9a-f]{16}=tr_ses_\w{32}\.\w{40}$/);
    assert.deepEqual(attributes.filter((one) => !/^Max-Age/.test(one)), ["Path=/dashboard/session", "Secure", "HttpOnly", "SameSite=Strict"]);
    assert.match(attributes.join(), /Max-Age=4(3199|3200)/);

    const names = await browser.use();
    assert.equal(names.status, 200, names.text);
    assert.deepEqual(Object.keys(names.json), ["user", "projects", "expiresAt"]);
    assert.deepEqual([names.json.user.email, names.json.projects.map(({ externalRef }) => externalRef)], ["admin@example.com", [keys.ref]]);
    assert.ok(!/tr_(dev|stg|prod|preview|pat)/.test(names.text));
    assert.notEqual(browser.cookie, first);

    const { status, json: { token }, headers } = await browser.use(place), claims = JSON.parse(Buffer.from(token.split(".")[1], "base64url"));
    assert.deepEqual([status, claims.exp - claims.iat, claims.scopes, headers["access-control-allow-origin"]], [200, 900, ["admin"], undefined]);
    assert.deepEqual([headers["cache-control"], await opens(token)], ["no-store", 200]);
    for (const target of ["/api/v2/whoami", "/api/v1/projects", "/api/v1/tokens", `/api/v1/projects/${keys.ref}/dev/keys`]) assert.equal((await gateway.get(target, { key: token })).status, 401, target);
    assert.equal((await gateway.post("/api/v1/sign-in/stay", {}, { key: token })).status, 401);
    assert.equal((await gateway.get(`/api/v1/projects/${keys.ref}/dev/workers/current`, { key: token })).status, 404);
    for (const other of ["prod", "staging"]) assert.equal((await gateway.get(`/api/v1/projects/${keys.ref}/${other}/workers/current`, { key: token })).status, 400);
  });

  test("names the branches of preview, and opens one of them", async () => {
    const browser = await Browser.staying(), branch = "feature/page";
    await gateway.post(`/api/v1/projects/${keys.ref}/branches`, { env: "preview", branch }, { key: keys.pat });
    assert.deepEqual((await browser.use({ project: keys.ref })).json.branches, [branch]);
    assert.deepEqual(refusal(await browser.use({ ...place, environment: "preview" })), [404, "Branch not found"]);
    assert.equal(await opens((await browser.use({ ...place, environment: "preview", branch })).json.token), 200);
  });

  test("opens nothing but that call: not the API, not a socket, not the page", async () => {
    const browser = await Browser.staying(), [id] = browser.cookie.split("=")[1].split("."), code = browser.cookie.split("=")[1];
    const get = (target, headers) => browser.way.client.request("GET", target, { headers: { ...browser.headers, cookie: browser.cookie, ...headers } });
    for (const target of ["/api/v2/whoami", "/api/v1/projects", "/api/v1/runs", "/api/v1/tokens", `/api/v1/projects/${keys.ref}/dev/keys`]) assert.equal((await get(target)).status, 401, target);
    assert.equal((await browser.post(`/api/v1/projects/${keys.ref}/dev/jwt`, {}, { headers: { cookie: browser.cookie } })).status, 401);
    assert.equal((await browser.post("/api/v1/sign-in/stay", {}, { headers: { cookie: browser.cookie } })).status, 401);
    for (const secret of [id, code]) for (const target of ["/api/v2/whoami", "/api/v1/runs"]) assert.equal((await get(target, { authorization: `Bearer ${secret}` })).status, 401);
    for (const secret of [id, code]) assert.equal((await browser.post("/api/v1/sign-in", { code: secret })).status, 400);
    assert.equal((await get("/dashboard/session")).status, 405);
    assert.equal((await browser.use()).status, 200, "none of that has used it");
  });

  test("is taken from the gateway's own page only, with a body of JSON", async () => {
    const browser = await Browser.staying(), { host, origin } = browser.way, plain = gateway.plain;
    const refused = [
      { origin: undefined }, { origin: "null" }, { origin: "" }, { origin: "https://evil.example" }, { origin: origin.replace("https", "http") }, { origin: plain.origin },
      { origin: `https://localhost:${host.split(":")[1]}` }, { origin: `${origin}/` }, { origin: `${origin}.evil.example` },
      { host: "evil.example", origin: "https://evil.example" },
      { "sec-fetch-site": undefined }, { "sec-fetch-site": "same-site" }, { "sec-fetch-site": "cross-site" }, { "sec-fetch-site": "none" }, { "sec-fetch-site": "same-origin, cross-site" },
    ];
    for (const headers of refused) for (const target of [session, "/api/v1/sign-in/stay"]) {
      const answer = await browser.post(target, {}, { key: target === session ? null : browser.token, headers: { cookie: browser.cookie, ...headers } });
      assert.deepEqual([...refusal(answer), cookieIn(answer), answer.headers["access-control-allow-origin"]], [...foreign, undefined, undefined], `${target} ${JSON.stringify(headers)}`);
    }
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=a", "text/plain; application/json"]) {
      const answer = await browser.use("{}", { headers: { "content-type": type } });
      assert.deepEqual(refusal(answer), [415, "The body must be application/json"], type);
    }
    for (const target of [session, "/api/v1/sign-in/stay"]) {
      const { status, headers } = await browser.way.client.request("OPTIONS", target, { headers: { ...browser.headers, origin: "https://evil.example", "access-control-request-method": "POST", "access-control-request-headers": "content-type" } });
      assert.deepEqual([status, Object.keys(headers).filter((name) => /^access-control/.test(name))], [405, []]);
    }
    assert.deepEqual((await browser.use(" ")).status, 400);
    assert.equal((await browser.use("x".repeat(3000))).status, 413);
    assert.equal((await browser.use({}, { headers: { "content-type": "Application/JSON; charset=utf-8" } })).status, 200, "none of that has used it");
  });

  test("does not work without TLS, with another gateway's name, or malformed", async () => {
    const browser = await Browser.staying(), [name, code] = browser.cookie.split("=");
    const at = (cookie, way = gateway.https) => new Browser(gateway, way).post(session, {}, { headers: { cookie } });
    assert.deepEqual(refusal(await at(browser.cookie, gateway.plain)), signedOut);
    for (const cookie of [`${name}0=${code}`, `__Secure-runcast-0000000000000000=${code}`, `runcast=${code}`, `${name}=`, name, `${name}="${code}"`, `${name}=${code.slice(0, -1)}`,
      `${name}=${code.replace(".", "_")}`, `${name}=tr_pat_${code.slice(7)}`, `${name}=${"x".repeat(80)}`, `${name}=${keys.pat}`, ""]) assert.deepEqual(refusal(await at(cookie)), signedOut, cookie);
    assert.equal((await at(`a=1;  ${name}=${code} ; b="${name}=x"`)).status, 200, "none of that has used it");
  });

  test("of the same name from another server of the site does not keep the person out, and is never used for another user", async () => {
    await run(gateway, "user", "create", "Mallory", "--email", "mallory@example.com");
    const browser = await Browser.staying(), mallory = await new Browser().signIn(await link(gateway, "--user", "mallory@example.com"));
    const { json: { userId: theirs } } = await mallory.stay(), { json: { user: { id } } } = await browser.use();
    const [name, code] = browser.cookie.split("="), [, other] = mallory.cookie.split("="), send = (values, body) => browser.post(session, body, { headers: { cookie: values.map((value) => `${name}=${value}`).join("; ") } });
    for (const values of [[other, code], [code, other], ["", "x", other, code], [code, code]]) {
      const answer = await send(values, { user: id }); // a repeat gets the same next cookie
      assert.deepEqual([answer.status, answer.json.user?.id], [200, id], values.join());
      browser.take(answer);
    }
    assert.deepEqual(refusal(await send([code], { user: theirs })), signedOut);
    assert.equal((await browser.use({ user: id })).status, 200, "that was not a use of it");
    assert.equal((await send([...Array(8).fill("x"), browser.cookie.split("=")[1]], { user: id })).status, 401, "eight at most are read");
    assert.equal((await send([other, browser.cookie.split("=")[1]], { user: id, signOut: true })).status, 200);
    assert.deepEqual([(await browser.use()).status, (await mallory.use()).status], [401, 200]);
  });

  test("counts in the rate limit, on its own", async (t) => {
    const { gateway: other } = await startSecure({ t, options: ["--rate-limit", "20"] }), [browser, second] = [await Browser.staying(other), await Browser.staying(other)];
    const answers = [];
    do answers.push(await browser.use()); while (answers.at(-1).status === 200 && answers.length < 20);
    const { status, headers, json } = answers.at(-1);
    assert.deepEqual([status, headers["x-ratelimit-limit"], headers["set-cookie"], json.error], [429, "10", undefined, "Rate limit exceeded"]);
    assert.ok(answers.length >= 11);
    assert.equal((await second.use()).status, 200);
    await other.stop();
  });

  test("that was used before ends the sign-in, with what it has signed; a repeat within 30 seconds gets the same answer", async (t) => {
    const folder = temporaryFolder(), wall = path.join(folder, "wall");
    const ahead = (ms) => { fs.writeFileSync(`${wall}.new`, `${ms}`); fs.renameSync(`${wall}.new`, wall); };
    ahead(0);
    const { gateway: other } = await startSecure({ t, preload: "shim_clock", env: { SHIM_CLOCK: wall } });
    const browser = await Browser.staying(other), first = browser.cookie, { token } = (await browser.use(place)).json, second = browser.cookie;
    for (let i = 0; i < 3; i++) {
      const again = await browser.use(place, { headers: { cookie: first } });
      assert.deepEqual([again.status, browser.cookie], [200, second]);
    }
    assert.equal((await browser.use()).status, 200);
    const third = browser.cookie, thief = new Browser(other);
    ahead(31_000);
    assert.deepEqual([await opens(token, other), (await ids(other)).length], [200, 1]);
    const stolen = await thief.post(session, place, { headers: { cookie: second } });
    assert.deepEqual(refusal(stolen), signedOut);
    assert.match(cookieIn(stolen), /=; Path=\/dashboard\/session; Max-Age=0; Secure; HttpOnly; SameSite=Strict$/);
    assert.deepEqual([await opens(token, other), await ids(other)], [401, []]);
    assert.deepEqual(refusal(await browser.use({}, { headers: { cookie: third } })), signedOut);
    await until(() => /"audit".*ended: its code was used before/.test(other.stderr), { what: "the audit" });
    for (const secret of [first, second, third]) assert.ok(!other.stderr.includes(secret.slice(-40)), "a secret is in the log");
    await other.stop();
  });

  test("ends after 12 hours without use, and after 30 days; a use moves the first end only", async (t) => {
    const folder = temporaryFolder(), wall = path.join(folder, "wall"), hour = 3_600_000;
    const ahead = (ms) => { fs.writeFileSync(`${wall}.new`, `${ms}`); fs.renameSync(`${wall}.new`, wall); };
    ahead(0);
    const { gateway: other } = await startSecure({ t, preload: "shim_clock", env: { SHIM_CLOCK: wall } });
    const idle = await Browser.staying(other), busy = await Browser.staying(other);
    const use = (browser) => { other.https.client.closeIdle(); return browser.use(); };
    ahead(11 * hour);
    assert.equal((await use(busy)).status, 200);
    ahead(12 * hour + 1000);
    assert.deepEqual(refusal(await use(idle)), signedOut);
    for (let hours = 22; hours < 30 * 24; hours += 11) {
      ahead(hours * hour);
      const { status, json } = await use(busy);
      assert.equal(status, 200, `after ${hours} hours`);
      assert.ok(new Date(json.expiresAt) - Date.now() <= 30 * 24 * hour, json.expiresAt);
    }
    ahead(30 * 24 * hour + 1000);
    assert.deepEqual(refusal(await use(busy)), signedOut);
    await other.stop();
  });

  test("survives restarts, also one that lost the response to a use", async (t) => {
    const { gateway: other } = await startSecure({ t }), browser = await Browser.staying(other);
    await other.stop();
    await other.restart();
    const before = browser.cookie;
    assert.equal((await browser.use()).status, 200);
    const lost = browser.cookie;
    await other.kill();
    await other.restart();
    assert.equal((await browser.use({}, { headers: { cookie: before } })).status, 200);
    assert.notEqual(browser.cookie, lost);
    assert.equal((await browser.use(place)).status, 200);
    assert.deepEqual(refusal(await new Browser(other).post(session, {}, { headers: { cookie: lost } })), signedOut);
    assert.deepEqual(refusal(await browser.use()), signedOut, "two browsers had it");
    await other.stop();
  });

  test("works while the disk is full, is not replaced then, and survives a sync that fails", async (t) => {
    const control = path.join(temporaryFolder(), "control"), order = (what) => fs.writeFileSync(control, what);
    const { gateway: other } = await startSecure({ t, options: ["--io-uring", "off"], preload: "shim_sync", env: { SHIM_CONTROL: control } });
    const browser = await Browser.staying(other), code = browser.cookie;
    order("enospc");
    const answers = [await browser.use(place), await browser.use()];
    assert.deepEqual([answers.map(({ status }) => status), answers.map(cookieIn), await opens(answers[0].json.token, other)], [[200, 200], [undefined, undefined], 200]);
    assert.equal((await browser.use({ signOut: true })).status, 503, "that would be undone by a restart");
    const isReady = () => until(async () => (await other.get("/readyz")).status === 200, { what: "ready again" });
    order("ok");
    await isReady();
    order("eio");
    assert.equal((await browser.use()).status, 503);
    order("ok");
    await isReady();
    assert.equal((await browser.use({}, { headers: { cookie: code } })).status, 200);
    assert.equal((await browser.use()).status, 200);
    await other.stop();
  });

  test("used by many tabs at once keeps them signed in", async () => {
    const browser = await Browser.staying(), { cookie } = browser;
    const answers = await Promise.all(Array.from({ length: 8 }, () => browser.post(session, place, { headers: { cookie } })));
    assert.deepEqual([new Set(answers.map(({ status }) => status)), new Set(answers.map(cookieIn).map((text) => text.split(";")[0])).size], [new Set([200]), 1]);
    browser.take(answers[0]);
    assert.equal((await browser.use()).status, 200);
  });

  test("is removed by signing out, by token revoke, with the token that signed in, and with the user", async () => {
    const browser = await Browser.staying(), { json: { token } } = await browser.use(place), out = await browser.use({ signOut: true, ...place });
    assert.deepEqual([out.status, out.json, await opens(token)], [200, {}, 401]);
    assert.match(cookieIn(out), /Max-Age=0/);
    assert.equal((await gateway.get("/api/v2/whoami", { key: browser.token })).status, 200, "the sign-in of the tab is another");

    const had = await ids(), revoked = await Browser.staying(), [id] = (await ids()).filter((one) => !had.includes(one));
    assert.match(await run(gateway, "token", "revoke", id), /^revoked dashboard, stays signed in of admin@example.com$/);
    assert.deepEqual(refusal(await revoked.use()), signedOut);

    const pat = await run(gateway, "token", "create", "--user", "admin@example.com", "--name", "short"), made = await new Browser().signIn(pat);
    assert.equal((await made.stay()).status, 200);
    const signed = (await made.use(place)).json.token;
    await run(gateway, "token", "revoke", pat);
    assert.deepEqual([refusal(await made.use()), await opens(signed)], [signedOut, 401]);

    await run(gateway, "user", "create", "Grace", "--email", "grace@example.com");
    const grace = await new Browser().signIn(await link(gateway, "--user", "grace@example.com"));
    assert.equal((await grace.stay()).status, 200);
    await run(gateway, "user", "delete", "grace@example.com", "--confirm", "grace@example.com");
    assert.deepEqual(refusal(await grace.use()), signedOut);
  });

  test("shows its user nothing of another organization", async () => {
    await run(gateway, "org", "create", "Theirs");
    await run(gateway, "project", "create", "Other", "--org", "theirs", "--ref", "proj_theirsxxxxxxxxxxxxxx");
    await run(gateway, "user", "create", "Eve", "--org", "theirs", "--email", "eve@example.com");
    const eve = await new Browser().signIn(await link(gateway, "--user", "eve@example.com"));
    await eve.stay();
    const names = await eve.use();
    assert.deepEqual(names.json.projects.map(({ externalRef }) => externalRef), ["proj_theirsxxxxxxxxxxxxxx"]);
    const [ours, none] = [await eve.use(place), await eve.use({ ...place, project: "proj_nobody" })];
    assert.deepEqual([ours.status, ours.text], [none.status, none.text]);
    assert.deepEqual(refusal(ours), [404, "Project not found"]);
    for (const body of [{ ...place, environment: "nothing" }, { ...place, environment: "preview", branch: "nothing" }]) assert.equal((await eve.use({ ...body, project: "proj_theirsxxxxxxxxxxxxxx" })).status, 404);
    assert.equal((await eve.use()).status, 200);
  });

  test("is given to a fresh sign-in only, and ten at most by links", async (t) => {
    const folder = temporaryFolder(), wall = path.join(folder, "wall");
    const ahead = (ms) => { fs.writeFileSync(`${wall}.new`, `${ms}`); fs.renameSync(`${wall}.new`, wall); };
    ahead(0);
    const { gateway: other } = await startSecure({ t, preload: "shim_clock", env: { SHIM_CLOCK: wall } }), browser = await new Browser(other).signIn();
    assert.equal((await browser.stay({}, { key: keys.pat })).status, 403, "a token is not a sign-in");
    const oldest = await Browser.staying(other);
    ahead(1000);
    for (let i = 0; i < 9; i++) await browser.stay();
    assert.equal((await oldest.use()).status, 200);
    await browser.stay();
    assert.deepEqual([refusal(await oldest.use()), (await ids(other)).length], [signedOut, 10]);
    ahead(10 * 60_000 + 1000);
    other.https.client.closeIdle();
    assert.match((await browser.stay()).json.error, /^This needs a sign-in that is younger than 10 minutes/);
    await other.stop();
  });

  test("behind a proxy that ends TLS is bound to public-url, with its path", async (t) => {
    const behind = await startGateway({ t, options: ["--public-url", "https://runs.example.com/jobs"] });
    const way = { client: behind.http, host: "runs.example.com", origin: "https://runs.example.com" }, browser = await new Browser(behind, way).signIn();
    assert.match(cookieIn(await browser.stay()), /Path=\/jobs\/dashboard\/session; .*Secure/);
    assert.equal((await browser.use(place)).status, 200);
    assert.equal((await browser.post(`/jobs${session}`, place, { headers: { cookie: browser.cookie } })).status, 200);
    assert.deepEqual(refusal(await browser.use(place, { headers: { origin: "http://runs.example.com" } })), foreign);
  });
});

describe("signing out everywhere", () => {
  test("ends all sign-ins of the user, and needs a fresh one", async (t) => {
    const { gateway: other } = await startSecure({ t }), browsers = [await Browser.staying(other), await Browser.staying(other), await new Browser(other).signIn(keys.pat)];
    const everywhere = (key) => other.delete("/api/v1/sign-ins", { key });
    assert.equal((await everywhere(keys.pat)).status, 403);
    assert.equal((await everywhere(browsers[0].token)).status, 200);
    for (const browser of browsers) assert.equal((await other.get("/api/v2/whoami", { key: browser.token })).status, 401);
    for (const browser of browsers.slice(0, 2)) assert.deepEqual(refusal(await browser.use()), signedOut);
    assert.equal((await other.get("/api/v2/whoami", { key: keys.pat })).status, 200, "tokens stay");
    await until(() => /"audit".*sign-ins/.test(other.stderr), { what: "the audit" });
  });
});

describe("the key of a browser without TLS", () => {
  const makeKey = () => {
    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" }), { x, y } = publicKey.export({ format: "jwk" });
    return { privateKey, publicKey: Buffer.concat([Buffer.from([4]), Buffer.from(x, "base64url"), Buffer.from(y, "base64url")]).toString("base64url") };
  };
  const challenge = async (browser) => (await browser.post(session, { id: browser.id })).json.challenge;
  const signed = ({ key: { privateKey }, id, way }, text, { origin = way.origin, by = privateKey } = {}) => ({ id,
    signature: sign("sha256", Buffer.from(`runcast session\n${origin}\n${id}\n${text}`), { key: by, dsaEncoding: "ieee-p1363" }).toString("base64url") });
  const proof = async (browser, how) => signed(browser, await challenge(browser), how);
  async function staying() {
    const browser = await new Browser(gateway, gateway.plain).signIn(), key = makeKey(), { status, json, headers, text } = await browser.stay({ publicKey: key.publicKey });
    assert.equal(status, 200, text);
    assert.deepEqual([headers["set-cookie"], /^tr_ses_\w{32}$/.test(json.id)], [undefined, true]);
    return Object.assign(browser, { key, id: json.id });
  }
  const use = async (browser, body = {}, how) => browser.post(session, { ...body, ...await proof(browser, how) });

  test("gives the same by a signature as the cookie, and no cookie", async () => {
    const browser = await staying(), names = await use(browser), { json: { token }, status, headers } = await use(browser, place);
    assert.deepEqual([names.json.user.email, status, headers["set-cookie"], await opens(token)], ["admin@example.com", 200, undefined, 200]);
    assert.equal((await use(browser, { signOut: true })).status, 200);
    assert.deepEqual([refusal(await use(browser)), await opens(token)], [signedOut, 401]);
  });

  test("signs a challenge that counts once: a signature that was seen, altered, made elsewhere or too late gets another challenge", async () => {
    const browser = await staying(), seen = await proof(browser), other = await staying();
    assert.equal((await browser.post(session, { ...place, ...seen })).status, 200);
    const early = await proof(browser), isChallenged = ({ status, json }) => [status, Object.keys(json)].join();
    assert.notEqual(await challenge(browser), await challenge(browser));
    const wrong = [seen, early, signed(browser, ""), signed(browser, undefined), await proof(browser, { origin: "http://evil.example" }), await proof(browser, { origin: gateway.https.origin }), await proof(browser, { by: other.key.privateKey }),
      { ...await proof(browser), signature: (await proof(other)).signature }, { ...await proof(browser), signature: "A".repeat(86) }, { ...await proof(browser), signature: "A" }, { ...await proof(browser), signature: 5 }];
    for (const body of wrong) assert.equal(isChallenged(await browser.post(session, { ...place, signOut: true, ...body })), "200,challenge", JSON.stringify(body));
    for (const id of ["tr_ses_", `tr_ses_${"a".repeat(32)}`, 5, undefined, keys.pat]) assert.deepEqual(refusal(await browser.post(session, { ...place, ...await proof(browser), id })), signedOut, String(id));
    assert.equal((await use(browser)).status, 200);
    for (const way of [gateway.https]) assert.deepEqual(refusal(await new Browser(gateway, way).post(session, { ...place, ...await proof(browser, { origin: way.origin }) })), signedOut, "over TLS only the cookie counts");
  });

  test("must be a point of the curve", async () => {
    const browser = await new Browser(gateway, gateway.plain).signIn(), { publicKey } = makeKey(), bytes = Buffer.from(publicKey, "base64url");
    const off = Buffer.from(bytes);
    off[64] ^= 1;
    for (const value of [undefined, 5, "", publicKey.slice(1), off.toString("base64url"), Buffer.alloc(65).toString("base64url"), Buffer.concat([Buffer.from([2]), bytes.subarray(1)]).toString("base64url")])
      assert.equal((await browser.stay({ publicKey: value })).status, 400, String(value));
  });

  test("survives a restart of the gateway, which forgets challenges", async (t) => {
    const { gateway: other } = await startSecure({ t }), browser = await new Browser(other, other.plain).signIn(), key = makeKey();
    Object.assign(browser, { key, id: (await browser.stay({ publicKey: key.publicKey })).json.id });
    assert.equal((await use(browser)).status, 200);
    const unused = await proof(browser);
    await other.kill();
    await other.restart();
    assert.deepEqual(Object.keys((await browser.post(session, unused)).json), ["challenge"]);
    assert.equal((await use(browser, place)).status, 200);
    await other.stop();
  });

  test("is for the machine itself: over a network without TLS nobody stays signed in", async (t) => {
    const named = await startGateway({ t, options: ["--public-url", "http://runs.example.com"] });
    for (const host of ["runs.example.com", "192.0.2.1:3030"]) {
      const browser = await new Browser(named, { client: named.http, host, origin: `http://${host}` }).signIn();
      for (const answer of [await browser.stay({ publicKey: makeKey().publicKey }), await browser.use()]) assert.match(answer.json.error, /^Staying signed in needs https, or localhost/, host);
    }
    for (const host of [`localhost:${named.port}`, `127.0.0.1:${named.port}`, `[::1]:${named.port}`]) assert.equal((await (await new Browser(named, { client: named.http, host, origin: `http://${host}` }).signIn()).stay({ publicKey: makeKey().publicKey })).status, 200, host);
    const off = await startGateway({ t, options: ["--dashboard", "off"] });
    const sent = await new Browser(off, { client: off.http, host: `127.0.0.1:${off.port}`, origin: `http://127.0.0.1:${off.port}` }).post(session, {});
    assert.equal(sent.status, 404);
  });
});
