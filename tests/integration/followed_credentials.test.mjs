// Credentials that end while clients use them at a gateway that follows, late: revoked keys, expired tokens, deleted projects.
// Every transport ends there as it does at the leader, and no new call is let in.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { EventStream } from "../support/js/event_stream.mjs";
import { polls } from "../support/js/fixture.mjs";
import { startFollowers } from "../support/js/followers.mjs";
import { keys, until } from "../support/js/gateway.mjs";
import { HttpClient } from "../support/js/http.mjs";
import { runProgram } from "../support/js/program.mjs";
import { RunsSocket } from "../support/js/runs.mjs";
import { publicToken } from "../support/js/tokens.mjs";

const LATE_MS = 200, POLL = "/realtime/v1/runs?tags=watched";

let leader, follower, user;
const ended = [];
before(async () => {
  const world = await startFollowers({ after: (end) => ended.push(end) }, { names: ["a", "b"], options: ["--cancel-timeout", "1s"] });
  leader = world.leader;
  follower = world.others[0];
  leader.peers.delay(LATE_MS);
  const fresh = (await leader.post("/api/v1/sign-in", { code: keys.pat }, { key: null })).json.token; // to remove a key
  user = new HttpClient(leader.url, fresh);
});
after(async () => {
  await follower?.stop();
  await leader?.stop();
  for (const end of ended.reverse()) await end();
});

const request = async (method, target, body) => {
  const { status, json, text } = await user.request(method, target, { body });
  assert.equal(status, 200, text);
  return json;
};

/** A client of each transport at one gateway. */
class Clients {
  static async open(gateway, key, run) {
    const clients = Object.assign(new Clients(), { gateway, key, run, http: new HttpClient(gateway.url, key) }), headers = { authorization: `Bearer ${key}` };
    clients.socket = await RunsSocket.open({ port: gateway.port, token: key, hello: {} });
    clients.socket.send({ op: "sub", id: 1, tags: ["watched"] });
    clients.socket.send({ op: "watch", id: 2, filter: {}, limit: 5, counts: true });
    for (const op of ["ok", "list"]) await clients.socket.next(op);
    clients.events = await EventStream.open(`${gateway.url}/realtime/v1/events?tags=watched`, { headers });
    await clients.events.next("ok");
    clients.chunks = await EventStream.open(`${gateway.url}/realtime/v1/streams/${run}/chunks`, { headers });
    assert.equal(clients.chunks.status, 200, clients.chunks.text);
    const { headers: { "electric-offset": offset, "electric-handle": handle } } = await clients.call(`${POLL}&offset=-1`);
    clients.polled = clients.call(`${POLL}&offset=${offset}&handle=${handle}&live=true`);
    return clients;
  }

  call(target) { return this.http.request("GET", target, { headers: polls, timeoutMs: 30_000 }); }

  /** Returns how each of them has ended. */
  async ends() {
    const { socket, events, chunks, polled } = this;
    const { code, reason } = await socket.closed;
    await until(() => events.ended && chunks.ended, { what: `the streams at ${this.gateway.name} end` });
    const { status, json } = await polled;
    return { socket: [code, reason], events: events.events.at(-1)?.data, poll: [status, json] };
  }

  /** Returns the status of a new call of each kind. */
  async calls() {
    const { run, gateway, key } = this, statuses = {};
    for (const target of [`${POLL}&offset=-1`, `/realtime/v1/runs/${run}?offset=-1`, "/realtime/v1/events?all=1", `/api/v3/runs/${run}`, `/realtime/v1/streams/${run}/chunks`])
      statuses[target] = (await this.call(target)).status;
    statuses.socket = await RunsSocket.open({ port: gateway.port, token: key }).then(() => 101, ({ status }) => status);
    return statuses;
  }

  close() { this.http.close(); }
}

/** Opens clients at both gateways, ends their credential, and requires that they end alike. */
async function endsAlike(key, run, end) {
  const all = [];
  for (const gateway of [leader, follower]) all.push(await Clients.open(gateway, key, run));
  for (const gateway of [leader, follower]) await until(async () => await gateway.metric("runcast_polls") === 1, { what: "the poll is held" });
  await end();
  const statuses = await all[1].calls(); // at once: the follower is late
  for (const [target, status] of Object.entries(statuses)) assert.equal(status, 401, target);
  const [here, there] = [await all[0].ends(), await all[1].ends()];
  assert.deepEqual(there, here);
  await until(async () => (await all[1].call("/api/v1/runs")).status === 401, { what: "a list, which reads the accounts that are there, is refused" });
  for (const one of all) one.close();
  return here;
}

async function trigger(key) {
  const { status, json, text } = await leader.post("/api/v1/tasks/task/trigger", { payload: 1, options: { tags: ["watched"] } }, { key });
  assert.equal(status, 200, text);
  assert.equal((await leader.http.request("PUT", `/realtime/v1/streams/${json.id}/self/chunks`, { key })).status, 202);
  return json.id;
}

test("a revoked key ends every transport", { timeout: 120_000 }, async () => {
  const keysOf = `/api/v1/projects/${keys.ref}/prod/keys`, { id, key } = await request("POST", keysOf, { name: "ci" });
  const { socket } = await endsAlike(key, await trigger(keys.prod), () => request("DELETE", `${keysOf}/${id}`));
  assert.equal(socket[0], 4001);
});

test("a public token ends with the key that signed it", { timeout: 120_000 }, async () => {
  const keysOf = `/api/v1/projects/${keys.ref}/prod/keys`, { id, key } = await request("POST", keysOf, { name: "ci" });
  const token = await publicToken(leader, { key, scopes: ["read:runs", "read:tags"] });
  const { socket } = await endsAlike(token, await trigger(keys.prod), () => request("DELETE", `${keysOf}/${id}`));
  assert.equal(socket[0], 4001);
});

test("a public token that expires ends every transport", { timeout: 120_000 }, async () => {
  const exp = Math.floor(Date.now() / 1000) + 5, token = await publicToken(leader, { key: keys.prod, scopes: ["read:runs", "read:tags"], exp });
  const { socket } = await endsAlike(token, await trigger(keys.prod), () => until(() => Date.now() >= exp * 1000, { what: "the token expires" }));
  assert.equal(socket[0], 4101);
});

test("the keys of a deleted project end every transport", { timeout: 120_000 }, async () => {
  const said = async (...words) => {
    const { code, stdout, all } = await runProgram([...words, "--data", leader.data]);
    assert.equal(code, 0, all);
    return stdout;
  };
  const ref = (await said("project", "create", "Theirs")).match(/proj_\w+/)[0];
  const key = (await said("keys", "--project", ref)).match(/tr_dev_\w+/)[0];
  const { socket } = await endsAlike(key, await trigger(key), () => said("project", "delete", ref, "--confirm", ref));
  assert.equal(socket[0], 4001);
});
