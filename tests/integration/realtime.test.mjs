// runs.v1 feature by feature, as a client on the wire sees it.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { keys, sleep, startGateway, until } from "../support/gateway.mjs";
import { RunsSocket } from "../support/runs.mjs";
import { publicToken, signJwt } from "../support/tokens.mjs";
import { opcodes, UpgradeRefused } from "../support/websocket.mjs";
import { inMs, thrown, Worker } from "../support/worker_calls.mjs";

const alwaysSent = ["id", "taskIdentifier", "status", "createdAt", "updatedAt", "tags", "batchId"];
const everyField = [...alwaysSent, "payload", "output", "number", "durationMs", "costInCents", "baseCostInCents", "idempotencyKey",
  "expiredAt", "ttl", "finishedAt", "startedAt", "delayedUntil", "queuedAt", "metadata", "error", "isTest", "version", "attemptCount"];

let gateway, names = 0;
/** A name that no other test uses. */
const fresh = (what) => `${what}-${++names}`;

before(async () => { gateway = await startGateway(); });
after(() => gateway.stop());

/** An open socket that was welcomed; closed when the test ends. */
async function connect(t, { to = gateway, token = keys.dev, hello = {}, ...more } = {}) {
  const socket = await RunsSocket.open({ port: to.port, token, hello, ...more });
  t.after(() => socket.cut());
  if (hello) socket.welcome = await socket.next("welcome");
  return socket;
}

/** Subscribes and takes everything up to the frame that completes it. */
async function subscribe(socket, id, filter) {
  socket.send({ op: "sub", id, ...filter });
  const ok = await socket.next((message) => message.op === "ok" && message.id === id);
  const rows = [];
  for (;;) {
    const message = await socket.next((one) => one.op === "rows" && one.id === id);
    rows.push(...message.rows);
    if (!message.more) return { ok, rows, seq: message.seq };
  }
}

/** Triggers and gives { id, seq }. */
async function trigger(options = {}, { task = "task", payload, to = gateway, ...more } = {}) {
  const { status, json, headers, text } = await to.post(`/api/v1/tasks/${task}/trigger`, { payload, options }, more);
  assert.equal(status, 200, text);
  return { id: json.id, seq: Number(headers["x-runs-seq"].split(".")[1]) };
}

/** Sends and gives the position from which the write can be seen. */
async function write(method, target, body, more) {
  const { status, headers, text } = await gateway.http.request(method, target, { body, ...more });
  assert.ok(status < 300, `${method} ${target}: ${status} ${text}`);
  return Number(headers["x-runs-seq"].split(".")[1]);
}
const putMetadata = (id, metadata) => write("PUT", `/api/v1/runs/${id}/metadata`, { metadata });
const addTag = (id, tag) => write("POST", `/api/v1/runs/${id}/tags`, { tags: [tag] });

/** How the server ends the connection: { code, reason }. */
async function closing(socket, timeoutMs = 10_000) {
  let timer;
  const late = new Promise((_resolve, reject) => { timer = setTimeout(() => reject(new Error(`still open after ${timeoutMs} ms`)), timeoutMs); });
  return Promise.race([socket.closed, late]).finally(() => clearTimeout(timer));
}

const patch = (socket) => socket.next("patch");

describe("opening", () => {
  test("hello is answered with where one is and what one gets", async (t) => {
    const socket = await connect(t);
    const { epoch, seq, env, fields, limits } = socket.welcome;
    assert.match(epoch, /^[0-9a-f]+$/);
    assert.equal(typeof seq, "number");
    assert.match(env, /^env_/);
    assert.deepEqual(fields, everyField);
    assert.deepEqual(limits, { subscriptions: 256, tags: 16, messageBytes: 65536, messagesPerSecond: 50, burst: 200 });
    assert.equal(socket.welcome.expires, undefined);
  });

  test("hello may be left out when the upgrade brought the token", async (t) => {
    const socket = await connect(t, { hello: null });
    socket.send({ op: "sub", id: 1, all: true });
    assert.equal((await socket.next()).op, "welcome");
    assert.equal((await socket.next()).op, "ok");
  });

  for (const [asked, got, opcode] of [["runs.v1.json", "runs.v1.json", opcodes.text], ["runs.v1.msgpack", "runs.v1.msgpack", opcodes.binary],
    [undefined, undefined, opcodes.text], ["graphql-ws, runs.v1.msgpack, runs.v1.json", "runs.v1.msgpack", opcodes.binary]])
    test(`subprotocol ${asked ?? "none"} is answered with ${got ?? "none"}`, async (t) => {
      let seen;
      const headers = { "sec-websocket-protocol": asked };
      const socket = await connect(t, { protocol: asked?.split(", ").find((name) => name === got), headers, hello: null, onMessage: (_message, bytes) => { seen = bytes[0]; } });
      assert.equal(socket.ws.response.headers["sec-websocket-protocol"], got);
      socket.send({ op: "hello" });
      await until(() => seen !== undefined);
      assert.equal(socket.ws.kind, opcode);
    });

  test("an unknown subprotocol is refused with those that there are", async () => {
    const refused = await RunsSocket.open({ port: gateway.port, token: keys.dev, protocol: "runs.v2.json" }).catch((error) => error);
    assert.ok(refused instanceof UpgradeRefused);
    assert.equal(refused.status, 400);
    assert.match(JSON.parse(refused.body).error, /runs\.v1\.json.*runs\.v1\.msgpack/);
  });

  test("the token comes by header, by hello or by the query", async (t) => {
    const token = await publicToken(gateway, { scopes: ["read:runs"] });
    for (const way of [{ token }, { token: null, hello: { token } }, { token: null, query: `?token=${token}` }]) {
      const socket = await connect(t, way);
      assert.match(socket.welcome.expires, /^\d{4}-\d\d-\d\dT/);
    }
  });

  const now = Math.floor(Date.now() / 1000);
  const claims = { pub: true, iss: "https://id.trigger.dev", aud: "https://api.trigger.dev", iat: now, exp: now + 600, scopes: ["read:runs"] };
  const badTokens = {
    "an unknown key": () => "tr_dev_unknownunknownunknown",
    "a personal access token, which names no environment": () => keys.pat,
    "a token that has expired": () => publicToken(gateway, { scopes: ["read:runs"], expiresInS: -60 }),
    "a token signed with another environment's key": async () => {
      const { json } = await gateway.post("/api/v1/auth/jwt/claims");
      return signJwt(keys.prod, { ...claims, ...json });
    },
    "a token without a signature": async () => {
      const { json } = await gateway.post("/api/v1/auth/jwt/claims");
      return `${signJwt("", { ...claims, ...json }, { alg: "none" }).split(".").slice(0, 2).join(".")}.`;
    },
  };
  for (const [what, make] of Object.entries(badTokens))
    test(`${what} opens nothing: 401 on the upgrade, 4001 after hello`, async (t) => {
      const token = await make();
      for (const way of [{ token }, { query: `?token=${token}` }]) {
        const refused = await RunsSocket.open({ port: gateway.port, ...way }).catch((error) => error);
        assert.equal(refused.status, 401);
        assert.ok(!refused.body.includes(token));
      }
      const socket = await connect(t, { token: null, hello: null });
      socket.send({ op: "hello", token });
      const { code, reason } = await closing(socket);
      assert.equal(code, 4001);
      assert.ok(reason.length > 10 && !reason.includes(token), reason);
    });

  test("without a token the first message must be hello with one", async (t) => {
    for (const first of [{ op: "sub", id: 1, all: true }, { op: "hello" }, { op: "auth", token: keys.dev }]) {
      const socket = await connect(t, { token: null, hello: null });
      socket.send(first);
      assert.equal((await closing(socket)).code, 4001);
    }
  });

  test("browsers come from the gateway's own origin only, and cookies are never looked at", async (t) => {
    const attempt = (headers, more = {}) => RunsSocket.open({ port: gateway.port, token: keys.dev, headers, ...more })
      .then((socket) => { t.after(() => socket.cut()); return 101; }, (error) => error.status);
    const host = `127.0.0.1:${gateway.port}`;
    assert.equal(await attempt({ host, origin: `http://${host}` }), 101);
    assert.equal(await attempt({ host }), 101, "not a browser");
    for (const origin of ["https://evil.example", "null", "", `http://${host}.evil.example`, `http://evil.example/${host}`, "http://127.0.0.1", `ftp://${host}`, host])
      assert.equal(await attempt({ host, origin }), 403, origin);
    const cookie = `token=${keys.dev}; authorization=Bearer ${keys.dev}`;
    const socket = await connect(t, { token: null, headers: { host, origin: `http://${host}`, cookie }, hello: null });
    socket.send({ op: "hello" });
    assert.equal((await closing(socket)).code, 4001);
  });

  test("--allow-origin lets others in: those named, or all with *", async (t) => {
    const open = await startGateway({ t, options: ["--allow-origin", "https://app.example, http://localhost:5173"] });
    const attempt = (origin) => RunsSocket.open({ port: open.port, token: keys.dev, headers: { origin } })
      .then((socket) => { socket.cut(); return 101; }, (error) => error.status);
    for (const origin of ["https://app.example", "http://localhost:5173"]) assert.equal(await attempt(origin), 101);
    for (const origin of ["http://app.example", "https://app.example.evil.example", "https://app.example:444", "https://xapp.example"])
      assert.equal(await attempt(origin), 403, origin);
    await open.stop();
    await open.restart({ options: ["--allow-origin", "*"] });
    assert.equal(await attempt("https://any.example"), 101);
    await open.stop();
  });
});

describe("a subscription", () => {
  test("begins with a snapshot of whole runs, then tells what is new", async (t) => {
    const tag = fresh("tag");
    const { id, seq } = await trigger({ tags: [tag], metadata: { a: 1 }, idempotencyKey: tag, ttl: "1h" }, { payload: { x: [1, "ü"] } });
    const socket = await connect(t);
    const { ok, rows, seq: at } = await subscribe(socket, 7, { tags: [tag] });
    assert.deepEqual(ok, { op: "ok", id: 7, mode: "snapshot", count: 1 });
    assert.equal(rows.length, 1);
    const [rowId, version, fields, whole] = rows[0];
    assert.deepEqual([rowId, version, whole], [id, 1, 1]);
    assert.ok(at >= seq);
    const { createdAt, updatedAt, queuedAt, ...rest } = fields;
    for (const time of [createdAt, updatedAt, queuedAt]) assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert.deepEqual(rest, { id, taskIdentifier: "task", status: "QUEUED", tags: [tag], payload: { x: [1, "ü"] }, metadata: { a: 1 },
      number: rest.number, durationMs: 0, costInCents: 0, baseCostInCents: 0, idempotencyKey: tag, ttl: "1h", isTest: false });

    const second = await trigger({ tags: [tag] });
    const { seq: told, more, rows: [row] } = await patch(socket);
    assert.deepEqual([told, more, row[0], row[3]], [second.seq, undefined, second.id, 1]);
    assert.equal(row[2].payload, null, "a required field is there even when unset");
  });

  test("of nothing is complete with an empty frame", async (t) => {
    const socket = await connect(t);
    for (const filter of [{ tags: [fresh("none")] }, { run: "run_none" }, { batch: "batch_none" }]) {
      const { ok, rows } = await subscribe(socket, ++names, filter);
      assert.deepEqual([ok.mode, ok.count, rows], ["snapshot", 0, []]);
    }
  });

  test("gets exactly the fields that differ, at every step of a life", async (t) => {
    const task = fresh("lived");
    const worker = await Worker.register(gateway, { tasks: [{ id: task, retry: { maxAttempts: 3 } }] });
    const { id } = await trigger({ delay: "1h", ttl: "30m" }, { task });
    const live = await connect(t);
    const { rows: [[, , first]] } = await subscribe(live, 1, { run: id });
    const whole = async () => (await subscribe(await connect(t), 1, { run: id })).rows[0][2];
    let attempt, known = first, version = 1;
    const statuses = [];
    const steps = {
      "metadata is set": () => putMetadata(id, { n: 1 }),
      "it is rescheduled": () => write("POST", `/api/v1/runs/${id}/reschedule`, { delay: "2h" }),
      "metadata goes": () => putMetadata(id, {}),
      "it is due": () => write("POST", `/api/v1/runs/${id}/reschedule`, { delay: new Date(Date.now() + 50).toISOString() }),
      "it is queued": () => {},
      "it is dequeued": async () => { attempt = await until(() => worker.dequeue()); },
      "it starts": () => attempt.start(),
      "an attempt fails": () => attempt.fail(thrown, { retry: inMs(0) }),
      "the next one starts": () => attempt.start(),
      "it succeeds": () => attempt.succeed({ answer: 42 }),
    };
    for (const [step, act] of Object.entries(steps)) {
      await act();
      const { rows: [[rowId, newVersion, fields, isWhole]] } = await patch(live);
      assert.deepEqual([rowId, newVersion, isWhole], [id, ++version, undefined], step);
      const now = await whole();
      if (now.updatedAt !== fields.updatedAt) { // it went on meanwhile: no state to compare with
        known = { ...known, ...fields };
        continue;
      }
      const differing = everyField.filter((name) => JSON.stringify(known[name]) !== JSON.stringify(now[name]));
      assert.deepEqual(Object.keys(fields).sort(), [...new Set([...differing, "status", "updatedAt"])].sort(), step);
      for (const [name, value] of Object.entries(fields)) assert.deepEqual(value, now[name] ?? null, `${name} when ${step}`);
      statuses.push(now.status);
      known = now;
    }
    assert.deepEqual(known.output, { answer: 42 });
    assert.equal(known.attemptCount, 2);
    for (const status of ["DELAYED", "EXECUTING", "REATTEMPTING", "COMPLETED"]) assert.ok(statuses.includes(status), `${status} of ${statuses}`);
  });

  test("gets a run whole when it joins by a tag", async (t) => {
    const [tag, other] = [fresh("tag"), fresh("tag")];
    const { id } = await trigger({ tags: [other] }, { payload: "full" });
    const joining = await connect(t), holding = await connect(t);
    await subscribe(joining, 1, { tags: [tag] });
    await subscribe(holding, 1, { tags: [other] });
    await addTag(id, tag);
    for (const socket of [joining, holding]) {
      const { rows: [[rowId, version, fields, whole]] } = await patch(socket);
      assert.deepEqual([rowId, version, whole, fields.payload, fields.tags], [id, 2, 1, "full", [other, tag]]);
    }
    await putMetadata(id, { n: 1 });
    for (const socket of [joining, holding]) assert.equal((await patch(socket)).rows[0][3], undefined);
  });

  test("by several tags wants all of them", async (t) => {
    const [a, b] = [fresh("a"), fresh("b")];
    const both = await trigger({ tags: [b, "x", a] });
    await trigger({ tags: [a] });
    const socket = await connect(t);
    const { ok, rows } = await subscribe(socket, 1, { tags: [a, b] });
    assert.equal(ok.count, 1);
    assert.deepEqual(rows.map(([id]) => id), [both.id]);
    await trigger({ tags: [b] });
    const next = await trigger({ tags: [a, b] });
    assert.deepEqual((await patch(socket)).rows.map(([id]) => id), [next.id]);
  });

  test("by batch gets its runs", async (t) => {
    const items = [1, 2, 3].map((payload) => ({ task: "batched", payload }));
    const { status, json, text } = await gateway.post("/api/v1/tasks/batch", { items });
    assert.equal(status, 202, text);
    const socket = await connect(t);
    const { ok, rows } = await subscribe(socket, 1, { batch: json.id });
    assert.equal(ok.count, 3);
    assert.deepEqual(rows.map(([id]) => id).sort(), json.runs.map(({ id }) => id).sort());
    for (const [, , fields] of rows) assert.equal(fields.batchId, json.id);
    await gateway.post(`/api/v2/runs/${json.runs[1].id}/cancel`);
    const { rows: [[id, , fields]] } = await patch(socket);
    assert.deepEqual([id, fields.status], [json.runs[1].id, "CANCELED"]);
  });

  test("is narrowed by task", async (t) => {
    const tag = fresh("tag");
    for (const task of ["one", "two", "three"]) await trigger({ tags: [tag] }, { task });
    const socket = await connect(t);
    const { ok, rows } = await subscribe(socket, 1, { tags: [tag], task: ["one", "three"] });
    assert.equal(ok.count, 2);
    assert.deepEqual(rows.map(([, , fields]) => fields.taskIdentifier), ["one", "three"]);
    await trigger({ tags: [tag] }, { task: "two" });
    const { id } = await trigger({ tags: [tag] }, { task: "three" });
    assert.equal((await patch(socket)).rows[0][0], id);
  });

  test("is narrowed by the time of creation", async (t) => {
    const tag = fresh("tag");
    const old = await trigger({ tags: [tag] });
    const { json } = await gateway.get(`/api/v3/runs/${old.id}`);
    await until(() => Date.now() > Date.parse(json.createdAt) + 5);
    const since = new Date().toISOString();
    const young = await trigger({ tags: [tag] });
    const socket = await connect(t);
    const ids = async (filter) => (await subscribe(socket, ++names, { tags: [tag], ...filter })).rows.map(([id]) => id);
    assert.deepEqual(await ids({ since }), [young.id]);
    assert.deepEqual(await ids({ since: "1h" }), [old.id, young.id]);
    assert.deepEqual(await ids({ since: json.createdAt }), [old.id, young.id]);
    const quiet = await connect(t);
    await subscribe(quiet, 1, { tags: [tag], since });
    await putMetadata(old.id, { n: 1 });
    await putMetadata(young.id, { n: 1 });
    assert.equal((await patch(quiet)).rows[0][0], young.id, "an old run stays out, however young its change");
  });

  test("is narrowed to the newest so many, which becomes a floor that ok names", async (t) => {
    const tag = fresh("tag"), made = [];
    for (let i = 0; i < 5; i++) {
      made.push((await trigger({ tags: [tag] })).id);
      await sleep(2); // creation times differ
    }
    const socket = await connect(t);
    const { ok, rows } = await subscribe(socket, 1, { tags: [tag], limit: 2 });
    assert.deepEqual(rows.map(([id]) => id), made.slice(-2));
    assert.equal(ok.since, rows[0][2].createdAt);
    const { ok: all } = await subscribe(socket, 2, { tags: [tag], limit: 50 });
    assert.deepEqual([all.since, all.count], [undefined, 5]);
    const { rows: again } = await subscribe(socket, 3, { tags: [tag], since: ok.since });
    assert.deepEqual(again.map(([id]) => id), made.slice(-2));
  });

  test("ends with unsub, and its id is free again", async (t) => {
    const tag = fresh("tag");
    const socket = await connect(t);
    await subscribe(socket, 1, { tags: [tag] });
    socket.send({ op: "unsub", id: 1 });
    assert.deepEqual(await socket.next(), { op: "end", id: 1 });
    await trigger({ tags: [tag] });
    socket.send({ op: "unsub", id: 1 });
    const refused = await socket.next();
    assert.deepEqual([refused.op, refused.id, refused.code], ["error", 1, "unknown_id"], "nothing came of the trigger");
    const { rows } = await subscribe(socket, 1, { tags: [tag] });
    assert.equal(rows.length, 1);
  });

  test("beside others that match too brings each change once", async (t) => {
    const [a, b] = [fresh("a"), fresh("b")];
    const { id } = await trigger({ tags: [a, b] });
    const socket = await connect(t);
    for (const filter of [{ tags: [a] }, { tags: [b] }, { run: id }, { tags: [a, b] }]) await subscribe(socket, ++names, filter);
    await putMetadata(id, { n: 1 });
    await putMetadata(id, { n: 2 });
    assert.deepEqual((await patch(socket)).rows.map(([, version]) => version), [2]);
    assert.deepEqual((await patch(socket)).rows.map(([, version]) => version), [3]);
    assert.equal(socket.messages.length, 0);
  });

  test("with every gets the newest state in intervals, not each change", async (t) => {
    const tag = fresh("tag");
    const { id } = await trigger({ tags: [tag] });
    const socket = await connect(t, { hello: { every: 250 } });
    await subscribe(socket, 1, { tags: [tag] });
    await putMetadata(id, { n: 0 });
    const frames = [await patch(socket)], times = [Date.now()];
    for (let n = 1; n <= 40; n++) await putMetadata(id, { n });
    while (frames.at(-1).rows[0][2].metadata.n < 40) {
      frames.push(await patch(socket));
      times.push(Date.now());
    }
    assert.ok(frames.length < 10, `${frames.length} patches`);
    const least = 250 * (frames.length - 1) - 100; // the way here may take longer for one than for another
    assert.ok(times.at(-1) - times[0] >= least, `${frames.length} patches in ${times.at(-1) - times[0]} ms`);
    assert.equal(frames.at(-1).rows[0][1], 42);
  });

  test("with every gets news of many frames at once, not a frame per interval", async (t) => {
    const tag = fresh("tag");
    const ids = await Promise.all(Array.from({ length: 12 }, () => trigger({ tags: [tag] }).then(({ id }) => id)));
    const socket = await connect(t, { hello: { every: 1000 } });
    await subscribe(socket, 1, { tags: [tag] });
    const began = Date.now();
    await Promise.all(ids.map((id) => putMetadata(id, { pad: "x".repeat(60_000) })));
    const told = new Set();
    while (told.size < ids.length) (await patch(socket)).rows.forEach(([id]) => told.add(id));
    assert.ok(Date.now() - began < 4000, `${Date.now() - began} ms`);
  });
});

describe("a view", () => {
  test("leaves out or takes in fields, but for those that file a row", async (t) => {
    const tag = fresh("tag");
    const { id } = await trigger({ tags: [tag], metadata: { a: 1 } }, { payload: "big" });
    for (const [fields, wanted] of [
      [["-payload", "-output"], everyField.filter((name) => name !== "payload" && name !== "output")],
      [["metadata"], [...alwaysSent, "metadata"]],
      [[], alwaysSent],
      [["-status", "-tags", "-metadata"], everyField.filter((name) => name !== "metadata")],
    ]) {
      const socket = await connect(t, { hello: { fields } });
      assert.deepEqual([...socket.welcome.fields].sort(), [...wanted].sort());
      const { rows: [[, , row]] } = await subscribe(socket, 1, { tags: [tag] });
      assert.deepEqual(Object.keys(row).filter((name) => !wanted.includes(name)), []);
      assert.equal(row.payload, wanted.includes("payload") ? "big" : undefined);
      await putMetadata(id, { a: names++ });
      assert.equal("metadata" in (await patch(socket)).rows[0][2], wanted.includes("metadata"));
    }
  });

  test("of a field that there is not is refused by its name", async (t) => {
    const socket = await connect(t, { hello: null });
    socket.send({ op: "hello", fields: ["payload", "secret"] });
    const { code, message } = await socket.next("error");
    assert.equal(code, "bad_member");
    assert.match(message, /secret/);
    socket.send({ op: "hello", fields: ["payload"] });
    await socket.next("welcome");
  });

  test("without what the token skips, whatever is asked for", async (t) => {
    const tag = fresh("tag");
    const { id } = await trigger({ tags: [tag], metadata: { secret: 1 } }, { payload: "secret" });
    const token = await publicToken(gateway, { scopes: ["read:runs"], skipColumns: ["payload", "metadata", "status"] });
    const socket = await connect(t, { token, hello: { fields: ["payload", "metadata", "number"] } });
    assert.deepEqual([...socket.welcome.fields].sort(), [...alwaysSent, "number"].sort());
    const { rows } = await subscribe(socket, 1, { tags: [tag] });
    await putMetadata(id, { secret: 2 });
    await addTag(id, fresh("tag"));
    const patches = [await patch(socket), await patch(socket)];
    assert.equal(rows[0][2].status, "QUEUED", "what files a row cannot be skipped");
    assert.doesNotMatch(JSON.stringify([rows, patches]), /secret|"payload"|"metadata"/);
  });

  test("speaks the words of the API version", async (t) => {
    const task = fresh("words");
    const worker = await Worker.register(gateway, { tasks: [{ id: task, retry: { maxAttempts: 3 } }] });
    const { id } = await trigger({}, { task });
    const old = await connect(t), young = await connect(t, { hello: { api: "2025-07-16" } });
    for (const socket of [old, young]) await subscribe(socket, 1, { run: id });
    const attempt = await until(() => worker.dequeue());
    const words = async () => [(await patch(old)).rows[0][2].status, (await patch(young)).rows[0][2].status];
    assert.deepEqual(await words(), ["EXECUTING", "DEQUEUED"]);
    await attempt.start();
    assert.deepEqual(await words(), ["EXECUTING", "EXECUTING"]);
    await attempt.fail(thrown, { retry: inMs(0) });
    assert.deepEqual(await words(), ["REATTEMPTING", "EXECUTING"]);
    const wrong = await connect(t, { hello: null });
    wrong.send({ op: "hello", api: "2030-01-01" });
    assert.equal((await wrong.next("error")).code, "unknown_api");
  });

  test("in msgpack says the same as in JSON, with values as JSON text", async (t) => {
    const tag = fresh("tag");
    const numbers = '{"big":12345678901234567890,"inf":1e400,"neg":-0,"nul":"\\u0000"}';
    await gateway.post("/api/v1/tasks/task/trigger", `{"payload":${numbers},"options":{"tags":["${tag}"],"metadata":{"k":[1.0]},"delay":"1h"}}`);
    const raw = {};
    const open = (protocol) => RunsSocket.open({ port: gateway.port, token: keys.dev, protocol, hello: {},
      onMessage: (message, bytes) => { (raw[protocol] ??= []).push({ message, bytes: bytes.toString("latin1") }); } });
    for (const protocol of ["runs.v1.json", "runs.v1.msgpack"]) {
      const socket = await open(protocol);
      t.after(() => socket.cut());
      socket.send({ op: "sub", id: 1, tags: [tag] });
      await until(() => raw[protocol]?.some(({ message }) => message.op === "rows"));
    }
    const { id } = raw["runs.v1.json"].find(({ message }) => message.op === "rows").message.rows[0][2];
    await putMetadata(id, { k: 2 });
    await gateway.post(`/api/v2/runs/${id}/cancel`);
    await until(() => Object.values(raw).every((messages) => messages.length >= 5));
    assert.deepEqual(raw["runs.v1.msgpack"].map(({ message }) => message), raw["runs.v1.json"].map(({ message }) => message));
    for (const messages of Object.values(raw)) {
      const { bytes } = messages.find(({ message }) => message.op === "rows");
      assert.ok(bytes.includes(numbers), "byte for byte");
      assert.ok(bytes.includes('{"k":[1.0]}'));
    }
  });
});

describe("scopes", () => {
  const allowed = async (t, scopes, filter) => {
    const socket = await connect(t, { token: await publicToken(gateway, { scopes }) });
    socket.send({ op: "sub", id: 1, ...filter });
    const answer = await socket.next();
    if (answer.op === "ok") return true;
    assert.deepEqual([answer.op, answer.id, answer.code], ["error", 1, "forbidden"]);
    return false;
  };

  test("decide who may subscribe to what", async (t) => {
    const [mine, other] = [fresh("mine"), fresh("other")];
    const own = await trigger({ tags: [mine] }, { task: "scoped" });
    const foreign = await trigger({ tags: [other] }, { task: "elsewhere" });
    const batch = (await gateway.post("/api/v1/tasks/batch", { items: [{ task: "scoped" }] })).json;
    const cells = [
      [["read:runs"], { all: true }, true], [["admin"], { all: true }, true], [["*:all"], { all: true }, true],
      [["write:runs"], { all: true }, false], [["trigger:tasks:scoped"], { all: true }, false], [[], { all: true }, false], [undefined, { all: true }, false],
      [[`read:runs:${own.id}`], { run: own.id }, true], [[`read:runs:${own.id}`], { run: foreign.id }, false], [[`read:runs:${own.id}`], { all: true }, false],
      [[`read:tags:${mine}`], { run: own.id }, true], [[`read:tags:${mine}`], { run: foreign.id }, false],
      [["read:tasks:scoped"], { run: own.id }, true], [["read:tasks:scoped"], { run: foreign.id }, false],
      [[`read:batch:${batch.id}`], { run: batch.runs[0].id }, true], [[`read:batch:${batch.id}`], { run: own.id }, false],
      [[`read:tags:${mine}`], { tags: [mine] }, true], [[`read:tags:${mine}`], { tags: [other, mine] }, true], [[`read:tags:${mine}`], { tags: [other] }, false],
      [[`read:tags:${mine}`], { all: true }, false], [["read:tags"], { tags: [other] }, true],
      [[`read:batch:${batch.id}`], { batch: batch.id }, true], [[`read:batch:${batch.id}`], { batch: "batch_other" }, false],
      [[`read:runs:${own.id}`], { run: "run_that_is_not" }, false],
    ];
    for (const [scopes, filter, wanted] of cells)
      assert.equal(await allowed(t, scopes, filter), wanted, `${JSON.stringify(scopes)} ${JSON.stringify(filter)}`);
  });

  test("are checked again when a new token comes, and those no longer allowed end", async (t) => {
    const [a, b] = [fresh("a"), fresh("b")];
    const socket = await connect(t, { token: await publicToken(gateway, { scopes: [`read:tags:${a}`, `read:tags:${b}`] }) });
    await subscribe(socket, 1, { tags: [a] });
    await subscribe(socket, 2, { tags: [b] });
    socket.send({ op: "auth", token: await publicToken(gateway, { scopes: [`read:tags:${b}`] }) });
    assert.deepEqual(await socket.next(), { op: "end", id: 1, code: "forbidden" });
    await trigger({ tags: [a] });
    const { id } = await trigger({ tags: [b] });
    assert.equal((await patch(socket)).rows[0][0], id);
  });

  test("a token of another environment or with another view cannot take the place", async (t) => {
    const socket = await connect(t, { token: await publicToken(gateway, { scopes: ["read:runs"] }) });
    for (const token of [
      await publicToken(gateway, { key: keys.prod, scopes: ["read:runs"] }),
      await publicToken(gateway, { scopes: ["read:runs"], skipColumns: ["payload"] }),
      await publicToken(gateway, { scopes: ["read:runs"], expiresInS: -60 }),
      "nonsense",
    ]) {
      socket.send({ op: "auth", token });
      const { op, code, message } = await socket.next();
      assert.deepEqual([op, code], ["error", "bad_token"]);
      assert.ok(!message.includes(token));
    }
    await subscribe(socket, 1, { all: true });
  });
});

describe("limits", () => {
  test("256 subscriptions of a connection", async (t) => {
    const socket = await connect(t);
    for (let id = 0; id < 256; id++) {
      if (id === 190) await sleep(1500); // more than the burst would be too many at once
      socket.send({ op: "sub", id, tags: [`limit-${id}`] });
    }
    await socket.next((message) => message.op === "rows" && message.id === 255);
    socket.send({ op: "sub", id: 256, all: true });
    const refused = await socket.next((message) => message.id === 256);
    assert.deepEqual([refused.op, refused.code], ["error", "limit"]);
    socket.send({ op: "unsub", id: 3 });
    await socket.next("end");
    await subscribe(socket, 256, { all: true });
  });

  test("--subscriptions changes it, and welcome tells", async (t) => {
    const small = await startGateway({ t, options: ["--subscriptions", "2"] });
    const socket = await connect(t, { to: small });
    assert.equal(socket.welcome.limits.subscriptions, 2);
    for (const id of [1, 2]) await subscribe(socket, id, { all: true });
    socket.send({ op: "sub", id: 3, all: true });
    assert.equal((await socket.next("error")).code, "limit");
    assert.equal(await small.metric("runcast_subscriptions"), 2);
    await socket.cut();
    await until(async () => await small.metric("runcast_subscriptions") === 0);
    await small.stop();
  });

  test("more messages than the rate close with 4103", async (t) => {
    const socket = await connect(t);
    for (let i = 0; i < 300; i++) socket.send({ op: "unsub", id: i });
    const { code, reason } = await closing(socket);
    assert.equal(code, 4103);
    assert.match(reason, /\w+ \w+/);
  });

  test("a message of 64 KiB is taken, a larger one closes with 1009", async (t) => {
    const socket = await connect(t);
    const message = (length) => {
      const text = JSON.stringify({ op: "sub", id: 1, run: "r", pad: "" });
      return text.replace('"pad":""', `"pad":"${"x".repeat(length - text.length)}"`);
    };
    socket.send(message(65536));
    assert.equal((await socket.next()).op, "ok");
    socket.send(message(65537));
    assert.equal((await closing(socket)).code, 1009);
  });

  const bad = [
    ["not JSON", "{op:hello}", "bad_message", 4000], ["an array", "[]", "bad_message", 4000], ["a number", "7", "bad_message", 4000],
    ["nothing", "", "bad_message", 4000], ["a member named twice", '{"op":"unsub","id":1,"id":2}', "bad_message", 4000],
    ["nested too deep", `{"op":"sub","x":${"[".repeat(100)}${"]".repeat(100)}}`, "bad_message", 4000],
    ["an unknown op", '{"op":"publish"}', "unknown_op"], ["no op", "{}", "unknown_op"],
    ["no id", '{"op":"sub","all":true}', "bad_member"], ["an id that is a text", '{"op":"sub","id":"1","all":true}', "bad_member"],
    ["an id with a fraction", '{"op":"sub","id":1.5,"all":true}', "bad_member"], ["a negative id", '{"op":"sub","id":-1,"all":true}', "bad_member"],
    ["two filters at once", '{"op":"sub","id":1,"run":"r","all":true}', "bad_member"], ["no filter", '{"op":"sub","id":1}', "bad_member"],
    ["all that is not true", '{"op":"sub","id":1,"all":false}', "bad_member"], ["no tags", '{"op":"sub","id":1,"tags":[]}', "bad_member"],
    ["17 tags", JSON.stringify({ op: "sub", id: 1, tags: Array.from({ length: 17 }, (_, i) => `t${i}`) }), "bad_member"],
    ["a tag that is too long", JSON.stringify({ op: "sub", id: 1, tags: ["x".repeat(129)] }), "bad_member"],
    ["an unreadable since", '{"op":"sub","id":1,"all":true,"since":"yesterday"}', "bad_member"],
    ["a limit of 0", '{"op":"sub","id":1,"all":true,"limit":0}', "bad_member"],
    ["a position that is none", '{"op":"sub","id":1,"all":true,"from":["e",1]}', "bad_member"],
    ["a base above the position", '{"op":"sub","id":1,"all":true,"from":["e",1,2]}', "bad_member"],
    ["a second hello", '{"op":"hello"}', "bad_message", null],
  ];
  for (const [what, text, code, closes] of bad)
    test(`${what} is answered with ${code}${closes ? ` and ${closes}` : ", and the connection goes on"}`, async (t) => {
      const socket = await connect(t);
      socket.send(text);
      const error = await socket.next("error");
      assert.equal(error.code, code);
      assert.ok(error.message.length > 10, "a sentence that says what to do");
      if (closes) assert.equal((await closing(socket)).code, closes);
      else await subscribe(socket, 9, { run: "run_x" });
    });

  test("an id in use is refused", async (t) => {
    const socket = await connect(t);
    await subscribe(socket, 1, { all: true });
    socket.send({ op: "sub", id: 1, run: "run_x" });
    assert.deepEqual(await socket.next("error").then(({ id, code }) => [id, code]), [1, "duplicate_id"]);
  });

  test("binary messages close with 1003, text that is not UTF-8 with 1007", async (t) => {
    for (const [opcode, bytes, code] of [[opcodes.binary, "{}", 1003], [opcodes.text, Buffer.from([0x7b, 0xff, 0x7d]), 1007]]) {
      const socket = await connect(t);
      socket.ws.send(opcode, bytes);
      assert.equal((await closing(socket)).code, code);
    }
  });

  test("members that nobody knows are ignored, null stands for absent", async (t) => {
    const socket = await connect(t, { hello: { fields: null, every: null, later: { x: [1] } } });
    const { ok } = await subscribe(socket, 1, { all: true, run: null, tags: null, since: null, limit: null, from: null, color: "red" });
    assert.equal(ok.mode, "snapshot");
  });

  test("a view too many is served by a wider one, or 4004", async (t) => {
    const some = everyField.slice(7, 13);
    const sets = Array.from({ length: 31 }, (_, i) => some.filter((_name, bit) => (i + 1) >> bit & 1));
    const prod = { token: keys.prod };
    for (const fields of sets) await connect(t, { ...prod, hello: { fields } });
    await connect(t, { ...prod, hello: {} }); // all of them: the 32nd
    const wider = await connect(t, { ...prod, hello: { fields: ["isTest"] } });
    assert.ok(wider.welcome.fields.includes("isTest") && wider.welcome.fields.length > alwaysSent.length + 1);
    const other = await connect(t, { ...prod, protocol: "runs.v1.msgpack", hello: null });
    other.send({ op: "hello" });
    assert.equal((await closing(other)).code, 4004);
  });
});

describe("a position", () => {
  const from = (socket, { seq }) => ({ from: [socket.welcome.epoch, seq, seq] });

  test("brings what changed since, as deltas, and nothing else", async (t) => {
    const tag = fresh("tag");
    const changed = await trigger({ tags: [tag] }, { payload: "known" });
    await trigger({ tags: [tag] });
    const socket = await connect(t);
    const position = await subscribe(socket, 1, { tags: [tag] });
    await socket.cut();
    await putMetadata(changed.id, { n: 1 });
    await putMetadata(changed.id, { n: 2 });
    const born = await trigger({ tags: [tag] }, { payload: "new" });
    const back = await connect(t);
    const { ok, rows, seq } = await subscribe(back, 1, { tags: [tag], ...from(back, position) });
    assert.deepEqual([ok.mode, ok.count], ["resume", 2]);
    assert.deepEqual(rows.map(([id, version, fields, whole]) => [id, version, fields.metadata, fields.payload, whole]),
      [[changed.id, 3, { n: 2 }, undefined, undefined], [born.id, 1, undefined, "new", 1]]);
    const again = await connect(t);
    const quiet = await subscribe(again, 1, { tags: [tag], ...from(again, { seq }) });
    assert.deepEqual([quiet.ok.mode, quiet.ok.count, quiet.rows], ["resume", 0, []]);
  });

  test("of another history, or from the future, begins again", async (t) => {
    const socket = await connect(t);
    const { epoch, seq } = socket.welcome;
    for (const wrong of [["ffff", seq, seq], [epoch, seq + 1000, seq]]) {
      const { ok } = await subscribe(socket, ++names, { all: true, from: wrong });
      assert.equal(ok.mode, "snapshot");
    }
  });

  test("outlives a restart of the gateway", async (t) => {
    const own = await startGateway({ t });
    const { id } = await trigger({ tags: ["a"] }, { to: own, payload: 1 });
    const socket = await connect(t, { to: own });
    const position = await subscribe(socket, 1, { tags: ["a"] });
    await own.post(`/api/v1/runs/${id}/tags`, { tags: ["b"] });
    await own.kill();
    await own.restart();
    const other = await trigger({ tags: ["a"] }, { to: own });
    const back = await connect(t, { to: own });
    assert.equal(back.welcome.epoch, socket.welcome.epoch);
    const { ok, rows } = await subscribe(back, 1, { tags: ["a"], ...from(back, position) });
    assert.equal(ok.mode, "resume");
    assert.deepEqual(rows.map(([run, version, fields]) => [run, version, fields.tags]), [[id, 2, ["a", "b"]], [other.id, 1, ["a"]]]);
    assert.equal(await own.metric('runcast_resumes_total{result="honoured"}'), 1);
    await own.stop();
  });

  test("before what retention removed begins again, and the floor is told", async (t) => {
    const own = await startGateway({ t, options: ["--retain", "1s"] });
    const { id } = await trigger({ tags: ["a"] }, { to: own });
    const kept = await trigger({ tags: ["a"], delay: "1h" }, { to: own });
    await own.post(`/api/v2/runs/${id}/cancel`);
    const socket = await connect(t, { to: own });
    const position = await subscribe(socket, 1, { tags: ["a"] });
    await trigger({ tags: ["b"], delay: "1h" }, { to: own });
    await sleep(1100);
    await own.stop();
    await own.restart();
    await until(async () => await own.metric("runcast_purged_runs_total") === 1);
    assert.equal((await own.get(`/api/v3/runs/${id}`)).status, 404);
    const back = await connect(t, { to: own });
    const floor = await back.next("floor");
    assert.ok(Date.parse(floor.updatedAt) > position.rows.at(-1)[2].updatedAt.length);
    const stale = await subscribe(back, 1, { tags: ["a"], from: [back.welcome.epoch, 1, 1] });
    assert.equal(stale.ok.mode, "snapshot");
    assert.deepEqual(stale.rows.map(([run]) => run), [kept.id]);
    const { ok } = await subscribe(back, 2, { tags: ["a"], ...from(back, position) });
    assert.equal(ok.mode, "resume", "nothing after this position was removed");
    await own.stop();
  });

  test("a write tells the position from which everybody sees it", async (t) => {
    const tag = fresh("tag");
    const socket = await connect(t);
    await subscribe(socket, 1, { tags: [tag] });
    const { id, seq } = await trigger({ tags: [tag] });
    assert.equal((await patch(socket)).seq, seq);
    const again = await putMetadata(id, { n: 1 });
    assert.equal((await patch(socket)).seq, again);
    const { headers } = await gateway.get(`/api/v3/runs/${id}`);
    assert.equal(headers["x-runs-seq"], undefined, "a read is no write");
  });
});

describe("two environments", () => {
  test("with equal tags, tasks and keys never see each other", async (t) => {
    const sides = [{ name: "dev", key: keys.dev }, { name: "prod", key: keys.prod }];
    const tags = ["shared-1", "shared-2", "shared-3"];
    for (const side of sides) {
      side.ids = new Set();
      side.seen = new Map();
      side.sockets = [];
      for (const [i, filter] of [{ tags: [tags[0]] }, { tags: tags.slice(1) }, { all: true, since: "0s" }].entries()) {
        const socket = await RunsSocket.open({ port: gateway.port, token: side.key, protocol: i % 2 ? "runs.v1.msgpack" : "runs.v1.json", hello: {},
          onMessage: ({ op, rows }) => {
            if (op === "rows" || op === "patch") for (const [id, , fields] of rows) side.seen.set(id, { ...side.seen.get(id), ...fields });
          } });
        t.after(() => socket.cut());
        socket.send({ op: "sub", id: 1, ...filter });
        side.sockets.push(socket);
      }
    }
    let last = { dev: 0, prod: 0 };
    const one = async (side, other, i) => {
      const send = (method, target, body) => gateway.http.request(method, target, { body, key: side.key });
      const options = { tags: [tags[i % 3], tags[(i >> 2) % 3]], idempotencyKey: `key-${i >> 1}`, metadata: { of: side.name } };
      const { json } = await send("POST", "/api/v1/tasks/shared/trigger", { payload: { of: side.name }, options });
      side.ids.add(json.id);
      const foreign = [...other.ids].at(-1);
      if (!foreign) return;
      for (const [method, target, body] of [
        ["GET", `/api/v3/runs/${foreign}`], ["POST", `/api/v2/runs/${foreign}/cancel`], ["PUT", `/api/v1/runs/${foreign}/metadata`, { metadata: { of: side.name } }],
        ["POST", `/api/v1/runs/${foreign}/tags`, { tags: ["stolen"] }], ["POST", `/api/v1/runs/${foreign}/replay`], ["GET", `/api/v1/runs/${foreign}/result`],
      ].slice(i % 6, i % 6 + 1)) {
        const { status } = await send(method, target, body);
        assert.equal(status, 404, `${method} ${target}`);
      }
      const { headers } = await send("PUT", `/api/v1/runs/${json.id}/metadata`, { metadata: { of: side.name, i } });
      last[side.name] = Number(headers["x-runs-seq"].split(".")[1]);
    };
    for (let i = 0; i < 300; i += 10)
      await Promise.all(Array.from({ length: 10 }, (_, k) => k).flatMap((k) => [one(sides[0], sides[1], i + k), one(sides[1], sides[0], i + k)]));

    for (const [side, other] of [sides, [...sides].reverse()]) {
      await until(() => side.ids.size && [...side.ids].every((id) => side.seen.get(id)?.metadata?.i !== undefined));
      for (const [id, fields] of side.seen) {
        assert.ok(!other.ids.has(id), `${id} of ${other.name} was seen in ${side.name}`);
        if (side.ids.has(id)) assert.equal(fields.metadata.of, side.name);
        assert.ok(!fields.tags?.includes("stolen"));
      }
      const socket = await connect(t, { token: side.key });
      const { rows } = await subscribe(socket, 1, { run: [...other.ids][0] });
      assert.deepEqual(rows, []);
      const listed = await gateway.get("/api/v1/runs?filter[taskIdentifier]=shared&page[size]=100", { key: side.key });
      for (const { id } of listed.json.data) assert.ok(side.ids.has(id));
    }
    assert.equal([...sides[0].ids].filter((id) => sides[1].ids.has(id)).length, 0);
    assert.notEqual(sides[0].sockets[0].welcome, null);
    assert.ok(last.dev && last.prod);
  });
});

describe("what takes its time", { concurrency: true }, () => {
  const seconds = (from) => (Date.now() - from) / 1000;

  test("a token that runs out: expiring, then 4101", async (t) => {
    const began = Date.now();
    const socket = await connect(t, { token: await publicToken(gateway, { scopes: ["read:runs"], expiresInS: 3 }) });
    const expiring = await socket.next("expiring");
    assert.ok(expiring.in > 0 && expiring.in <= 3000, `${expiring.in}`);
    await subscribe(socket, 1, { all: true, since: "0s" });
    const { code, reason } = await closing(socket, 20_000);
    assert.equal(code, 4101);
    assert.match(reason, /token/);
    assert.ok(seconds(began) > 11 && seconds(began) < 16, `${seconds(began)} s`);
  });

  test("a token that is refreshed in time lives on", async (t) => {
    const socket = await connect(t, { token: await publicToken(gateway, { scopes: ["read:runs"], expiresInS: 2 }) });
    await subscribe(socket, 1, { tags: [fresh("tag")] });
    socket.send({ op: "auth", token: await publicToken(gateway, { scopes: ["read:runs"], expiresInS: 900 }) });
    await sleep(14_000);
    const tag = fresh("tag");
    const { id } = await trigger({ tags: [tag] });
    assert.deepEqual((await subscribe(socket, 2, { tags: [tag] })).rows.map(([run]) => run), [id]);
  });

  test("nothing said for 10 s without a token: 4001", async (t) => {
    const began = Date.now();
    const socket = await connect(t, { token: null, hello: null });
    assert.equal((await closing(socket, 20_000)).code, 4001);
    assert.ok(seconds(began) > 9 && seconds(began) < 13, `${seconds(began)} s`);
  });

  test("idle clients are told the position", async (t) => {
    const socket = await connect(t);
    const { seq } = await subscribe(socket, 1, { tags: [fresh("quiet")] });
    const other = await trigger();
    const ping = await socket.next("ping", 40_000);
    assert.ok(other.seq > seq && ping.seq >= other.seq);
  });

  test("who does not answer a ping is closed", async (t) => {
    const socket = await connect(t, { answerPings: false });
    let pings = 0;
    socket.ws.onPing = () => pings++;
    const { code } = await closing(socket, 50_000);
    assert.equal(code, 1008);
    assert.equal(pings, 1);
  });
});

