// Calls that reach a standby gateway: they wait, unread, until it leads, and are answered then.
import assert from "node:assert/strict";
import { test } from "node:test";

import { keys, sleep, until } from "../support/js/gateway.mjs";
import { HttpClient, RawConnection } from "../support/js/http.mjs";
import { standsBy, startTwoGateways } from "../support/js/two_gateways.mjs";

const key = keys.prod;
const AT = "/api/v1/tasks/early/trigger";

test("calls to a standby gateway are answered when it leads", { timeout: 180_000 }, async (t) => {
  const { leader, other } = await startTwoGateways(t);
  const { json: { id } } = await leader.post(AT, { payload: 1 }, { key });
  const large = { payload: "x".repeat(300_000) };
  const slow = await RawConnection.open(other.port); // its body arrives later than its head
  const body = JSON.stringify({ payload: "late" });
  await slow.send(`POST ${AT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\nexpect: 100-continue\r\n\r\n`);
  const calls = [
    other.post(AT, { payload: 2 }, { key }), other.post(AT, large, { key }), other.get(`/api/v3/runs/${id}`, { key }),
    other.get("/realtime/v1/runs?tags=early&offset=-1", { key }),
  ];
  const strangers = [other.post(AT, { payload: 3 }, { key: "tr_prod_nobody_has_this_key" })];
  await leader.kill();
  await slow.send(body);
  for (const call of calls) {
    const { status, text } = await call;
    assert.equal(status, 200, text);
  }
  for (const call of strangers) assert.equal((await call).status, 401);
  await until(() => /HTTP\/1.1 200 OK/.test(slow.received.toString()), { what: "the late body is answered" });
  assert.equal((await other.get("/api/v1/runs?filter[taskIdentifier]=early", { key })).json.data.length, 4);
  await other.stop();
});

test("a standby gateway answers 503 as JSON after some seconds, and forgets a client that leaves", { timeout: 240_000 }, async (t) => {
  const { leader, other } = await startTwoGateways(t);
  const gone = await RawConnection.open(other.port);
  await gone.send(`GET /api/v1/runs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\n\r\n`);
  gone.socket.destroy();
  const { status, headers, json } = await other.post(AT, { payload: 1 }, { key });
  assert.equal(status, 503);
  assert.equal(headers["retry-after"], "1");
  assert.match(json.error, /standby/);
  assert.equal((await other.get("/healthz")).status, 200);
  await other.stop(); // while it holds a call
  await leader.stop();
});

test("one client's calls cannot take all the places of a standby gateway", { timeout: 240_000 }, async (t) => {
  const { leader, other } = await startTwoGateways(t);
  const clients = Array.from({ length: 5 }, () => new HttpClient(other.url, key));
  t.after(() => clients.forEach((client) => client.close()));
  let answered = 0, refused = 0;
  const calls = Array.from({ length: 300 }, (_, i) => clients[i % 5].request("GET", "/api/v1/runs").then(({ status }) => { answered++; refused += status === 503; }));
  await until(() => answered === 50, { what: "those above the limit are refused at once" });
  assert.equal((await other.get("/api/v1/runs", { key })).status, 503, "so is one more");
  assert.deepEqual([answered, refused], [50, 50], "the others wait");
  leader.child.kill("SIGTERM");
  await Promise.all(calls);
  assert.deepEqual([answered, refused], [300, 50]);
  await leader.ended();
  await other.stop();
});

test("through HAProxy a poll that a standby held ends when that gateway, which leads by then, is stopped", { timeout: 180_000 }, async (t) => {
  const { leader, other, url } = await startTwoGateways(t);
  const client = new HttpClient(url, key);
  t.after(() => client.close());
  const more = { timeoutMs: 60_000, headers: { "x-trigger-electric-version": "1.0.0-beta.1" } };
  const { headers } = await client.request("GET", "/realtime/v1/runs?tags=early&offset=-1", more);
  const at = `/realtime/v1/runs?tags=early&offset=${headers["electric-offset"]}&handle=${headers["electric-handle"]}&live=true`;
  await leader.kill();
  let stopped = false, isOpen = true;
  const repeats = (async () => {
    for (; isOpen; await sleep(50)) {
      await client.request("GET", at, more).catch(() => {});
      isOpen &&= !stopped;
    }
  })();
  t.after(() => { isOpen = false; });
  await until(async () => await other.isReady() && await other.metric("runcast_polls") >= 1, { timeoutMs: 60_000, what: "it leads, and holds the poll" });
  stopped = other.child.kill("SIGSTOP");
  t.after(() => other.child.kill("SIGCONT"));
  await until(() => !isOpen, { what: "HAProxy ends the poll" });
  await repeats;
  other.child.kill("SIGCONT");
  await other.stop();
});

test("through HAProxy a client that does not retry sees JSON with retry-after, and only for calls in flight", { timeout: 180_000 }, async (t) => {
  const { leader, other, url } = await startTwoGateways(t);
  // On a connection that was used before, HAProxy does not answer but closes the connection.
  const client = new HttpClient(url, key), headers = { connection: "close" }, answers = [];
  t.after(() => client.close());
  let stopped = false;
  const work = Promise.all(Array.from({ length: 6 }, async () => {
    for (; !stopped; await sleep(20)) answers.push({ at: Date.now(), ...await client.request("POST", AT, { body: { payload: 1 }, headers }).catch((error) => ({ status: 0, text: error.message })) });
  }));
  const ends = [(gateway) => gateway.child.kill("SIGTERM"), (gateway) => gateway.kill()];
  for (const [leads, next, end] of [[leader, other, ends[0]], [other, leader, ends[1]]]) {
    await until(() => answers.at(-1)?.status === 200, { what: "writes" });
    const from = answers.length;
    await end(leads);
    await until(() => next.isReady(), { timeoutMs: 60_000, what: "the other one leads" });
    const count = answers.length;
    await until(() => answers.length > count + 20, { what: "writes again" });
    const refused = answers.slice(from).filter(({ status }) => status !== 200);
    for (const { status, headers, json, text } of refused) {
      assert.ok([502, 503].includes(status), `${status} ${text}`);
      assert.match(headers["retry-after"], /^\d+$/);
      assert.equal(typeof json?.error, "string", text);
    }
    t.diagnostic(`${refused.length} refused, within ${refused.length ? refused.at(-1).at - refused[0].at : 0} ms`);
    await leads.ended();
    await leads.start({ ready: false });
    await standsBy(leads);
  }
  stopped = true;
  await work;
  await other.stop();
  await leader.stop();
});
