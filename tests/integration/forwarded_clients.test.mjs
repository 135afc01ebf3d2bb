// The client of a call that a follower forwards: the leader logs and limits its address, and no header can change it.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";

import { follows, startFollowers } from "../support/js/followers.mjs";
import { keys, until } from "../support/js/gateway.mjs";

const LOGINS_MAX = 32; // that wait for an address
const login = { codeChallenge: createHash("sha256").update("a".repeat(43)).digest("base64url"), codeChallengeMethod: "S256" };
const logIn = async (gateway, headers) => (await gateway.post("/api/v1/authorization-code", login, { key: null, headers })).status;

/** The client that the leader logs for the next request of this route. */
async function clientOf(leader, route, call) {
  const before = leader.stderr.length, lines = () => leader.stderr.slice(before).split("\n").filter((line) => line.includes('"event":"request"') && line.includes(route));
  await call();
  await until(() => lines().length && lines()[0].endsWith("}"), { what: "its line in the log" });
  return JSON.parse(lines()[0]).client;
}

test("the leader logs and limits a forwarded call by the address of its client, which no header forges", { timeout: 180_000 }, async (t) => {
  const own = ["--log-requests", "all"], trusting = ["--trusted-proxies", "127.0.0.1"];
  const { leader, others: [b] } = await startFollowers(t, { names: ["a", "b"], options: [...own, ...trusting] });
  const queue = (headers) => clientOf(leader, "/api/v1/queues/", () => b.get("/api/v1/queues/named", { headers }));

  // A trusted proxy names the client: the last address that is not a proxy's.
  const proxied = { "x-forwarded-for": "198.51.100.1, 203.0.113.9, 127.0.0.1" };
  assert.equal(await queue(proxied), "203.0.113.9");
  assert.equal(await queue({ "x-forwarded-for": "2001:db8::7" }), "2001:db8::7");
  assert.equal(await queue({}), "127.0.0.1");
  for (let n = 0; n < LOGINS_MAX; n++) assert.equal(await logIn(n % 2 ? b : leader, proxied), 200, "both gateways count together");
  assert.deepEqual([await logIn(b, proxied), await logIn(leader, proxied)], [429, 429]);
  assert.equal(await logIn(b, { "x-forwarded-for": "198.51.100.1" }), 200, "another client");

  // Without a trusted proxy, a follower believes no header, although its leader would.
  const forged = [{ "x-forwarded-for": "192.0.2.1" }, { "X-FORWARDED-FOR": "192.0.2.1", "x-real-ip": "192.0.2.1", forwarded: "for=192.0.2.1" },
    { "x-forwarded-for": "192.0.2.1", connection: "x-runcast-forwarded" }, { "x-forwarded-for": "127.0.0.1, 192.0.2.1" }];
  await b.stop();
  b.options = b.options.filter((one) => !trusting.includes(one));
  await b.restart({ ready: false });
  await follows(b);
  await until(async () => (await b.get("/api/v1/queues/named")).status === 404, { what: "it forwards" });
  for (const headers of forged) assert.equal(await queue(headers), "127.0.0.1", JSON.stringify(headers));
  for (const name of ["x-runcast-forwarded", "X-Runcast-Forwarded"])
    assert.equal((await b.get("/api/v1/queues/named", { headers: { [name]: "192.0.2.1 -- AAAAAAAAAAAAAAAAAAAAAA" } })).status, 400);
  for (let n = 0; n < LOGINS_MAX; n++) assert.equal(await logIn(b, { "x-forwarded-for": "203.0.113.10" }), 200);
  assert.equal(await logIn(leader, { "x-forwarded-for": "203.0.113.10" }), 200, "forged addresses take no place of that address");
  for (let n = 0; n < LOGINS_MAX; n++) assert.equal(await logIn(n % 2 ? b : leader, {}), 200);
  assert.deepEqual([await logIn(b, {}), await logIn(leader, {})], [429, 429], "the client itself is limited");
  await b.stop();
  await leader.stop();
});
