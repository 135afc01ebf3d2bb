// runs.v1 feature by feature, as a client on the wire sees it: opening, subscribing, views.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { keys, startGateway, until } from "../support/js/gateway.mjs";
import { addTag, alwaysSent, begin, closing, connect, end, everyField, fresh, gateway, number, patch, putMetadata, subscribe, trigger, write } from "../support/js/realtime.mjs";
import { RunsSocket } from "../support/js/runs.mjs";
import { publicToken, signJwt } from "../support/js/tokens.mjs";
import { opcodes, UpgradeRefused } from "../support/js/websocket.mjs";
import { inMs, thrown, Worker } from "../support/js/worker_calls.mjs";

before(begin);
after(end);

describe("opening", () => {
  test("hello is answered with the epoch, the position, the environment, the fields and the limits", async (t) => {
    const socket = await connect(t);
    const { epoch, seq, env, fields, limits } = socket.welcome;
    assert.match(epoch, /^[0-9a-f]+$/);
    assert.equal(typeof seq, "number");
    assert.match(env, /^env_/);
    assert.deepEqual(fields, everyField);
    assert.deepEqual(limits, { subscriptions: 256, tags: 16, messageBytes: 65536, messagesPerSecond: 50, burst: 200, watches: 16, watchLimit: 200 });
    assert.equal(socket.welcome.expires, undefined);
  });

  test("hello can be left out when the upgrade carried the token", async (t) => {
    const socket = await connect(t, { hello: null });
    socket.send({ op: "sub", id: 1, all: true });
    assert.equal((await socket.next()).op, "welcome");
    assert.equal((await socket.next()).op, "ok");
  });

  for (const [asked, got, opcode] of [["runs.v1.json", "runs.v1.json", opcodes.text], ["runs.v1.msgpack", "runs.v1.msgpack", opcodes.binary],
    [undefined, undefined, opcodes.text], ["graphql-ws, runs.v1.msgpack, runs.v1.json", "runs.v1.msgpack", opcodes.binary],
    ["graphql-ws\r\nsec-websocket-protocol: runs.v1.msgpack\r\nsec-websocket-protocol: runs.v1.json", "runs.v1.msgpack", opcodes.binary]])
    test(`subprotocol ${asked ?? "none"} is answered with ${got ?? "none"}`, async (t) => {
      let seen;
      const headers = { "sec-websocket-protocol": asked };
      const socket = await connect(t, { protocol: asked?.split(/, |: |\r\n/).find((name) => name === got), headers, hello: null, onMessage: (_message, bytes) => { seen = bytes[0]; } });
      assert.equal(socket.ws.response.headers["sec-websocket-protocol"], got);
      socket.send({ op: "hello" });
      await until(() => seen !== undefined);
      assert.equal(socket.ws.kind, opcode);
    });

  test("an unknown subprotocol is refused with the list of known ones", async () => {
    const refused = await RunsSocket.open({ port: gateway.port, token: keys.dev, protocol: "runs.v2.json" }).catch((error) => error);
    assert.ok(refused instanceof UpgradeRefused);
    assert.equal(refused.status, 400);
    assert.match(JSON.parse(refused.body).error, /runs\.v1\.json.*runs\.v1\.msgpack/);
  });

  test("the token can come by header, by hello or in the query", async (t) => {
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
    test(`${what} is refused: 401 on the upgrade, 4001 after hello`, async (t) => {
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

  test("without a token the first message must be a hello that has one", async (t) => {
    for (const first of [{ op: "sub", id: 1, all: true }, { op: "hello" }, { op: "auth", token: keys.dev }]) {
      const socket = await connect(t, { token: null, hello: null });
      socket.send(first);
      assert.equal((await closing(socket)).code, 4001);
    }
  });

  test("browsers may connect from the gateway's own origin only, and cookies open nothing here", async (t) => {
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

  test("--allow-origin allows other origins: those named, or all with *", async (t) => {
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
  test("begins with a snapshot of whole runs, then receives changes", async (t) => {
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

  test("without matches is complete after an empty frame", async (t) => {
    const socket = await connect(t);
    for (const filter of [{ tags: [fresh("none")] }, { run: "run_none" }, { batch: "batch_none" }]) {
      const { ok, rows } = await subscribe(socket, number(), filter);
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
      "it is due": () => write("POST", `/api/v1/runs/${id}/reschedule`, { delay: "1s" }), // counted from this call
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
      if (now.updatedAt !== fields.updatedAt) { // it changed meanwhile, so there is no state to compare with
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

  test("gets a run whole when a tag makes it match", async (t) => {
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

  test("by several tags matches runs that have all of them", async (t) => {
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

  test("by batch gets the runs of the batch", async (t) => {
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

  test("can be narrowed by task", async (t) => {
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

  test("can be narrowed by the time of creation", async (t) => {
    const tag = fresh("tag");
    const old = await trigger({ tags: [tag] });
    const { json } = await gateway.get(`/api/v3/runs/${old.id}`);
    await until(() => Date.now() > Date.parse(json.createdAt) + 5);
    const since = new Date().toISOString();
    const young = await trigger({ tags: [tag] });
    const socket = await connect(t);
    const ids = async (filter) => (await subscribe(socket, number(), { tags: [tag], ...filter })).rows.map(([id]) => id);
    assert.deepEqual(await ids({ since }), [young.id]);
    assert.deepEqual(await ids({ since: "1h" }), [old.id, young.id]);
    assert.deepEqual(await ids({ since: json.createdAt }), [old.id, young.id]);
    const quiet = await connect(t);
    await subscribe(quiet, 1, { tags: [tag], since });
    await putMetadata(old.id, { n: 1 });
    await putMetadata(young.id, { n: 1 });
    assert.equal((await patch(quiet)).rows[0][0], young.id, "an old run stays out, however young its change");
  });

  test("can be narrowed to the n newest, which becomes a floor that ok names", async (t) => {
    const tag = fresh("tag"), made = [];
    for (let i = 0; i < 5; i++) {
      made.push((await trigger({ tags: [tag] })).id);
      const at = Date.now();
      await until(() => Date.now() > at + 1, { everyMs: 1, what: "another time of creation" });
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

  test("gets each change once, also if others on the connection match it", async (t) => {
    const [a, b] = [fresh("a"), fresh("b")];
    const { id } = await trigger({ tags: [a, b] });
    const socket = await connect(t);
    for (const filter of [{ tags: [a] }, { tags: [b] }, { run: id }, { tags: [a, b] }]) await subscribe(socket, number(), filter);
    await putMetadata(id, { n: 1 });
    await putMetadata(id, { n: 2 });
    assert.deepEqual((await patch(socket)).rows.map(([, version]) => version), [2]);
    assert.deepEqual((await patch(socket)).rows.map(([, version]) => version), [3]);
    assert.equal(socket.messages.length, 0);
  });

  test("with \"every\" gets the newest state in intervals, not each change", async (t) => {
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
    const least = 250 * (frames.length - 1) - 100; // one message may take longer to arrive than another
    assert.ok(times.at(-1) - times[0] >= least, `${frames.length} patches in ${times.at(-1) - times[0]} ms`);
    assert.equal(frames.at(-1).rows[0][1], 42);
  });

  test("with \"every\" gets all frames of an interval at once, not one frame per interval", async (t) => {
    const tag = fresh("tag");
    const ids = await Promise.all(Array.from({ length: 40 }, () => trigger({ tags: [tag] }).then(({ id }) => id)));
    const socket = await connect(t, { hello: { every: 1000 } });
    await subscribe(socket, 1, { tags: [tag] });
    const began = Date.now();
    await Promise.all(ids.map((id) => putMetadata(id, { pad: "x".repeat(60_000) })));
    const told = new Set();
    let frames = 0;
    for (; told.size < ids.length; frames++) (await patch(socket)).rows.forEach(([id]) => told.add(id));
    const intervals = (Date.now() - began) / 1000; // more while the machine is busy
    assert.ok(frames > 20 && frames > 2 * intervals, `${frames} patches in ${intervals} intervals`);
  });
});

describe("a view", () => {
  test("leaves out or includes fields, except those that file a row", async (t) => {
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
      await putMetadata(id, { a: number() });
      assert.equal("metadata" in (await patch(socket)).rows[0][2], wanted.includes("metadata"));
    }
  });

  test("with an unknown field is refused by the field's name", async (t) => {
    const socket = await connect(t, { hello: null });
    socket.send({ op: "hello", fields: ["payload", "secret"] });
    const { code, message } = await socket.next("error");
    assert.equal(code, "bad_member");
    assert.match(message, /secret/);
    socket.send({ op: "hello", fields: ["payload"] });
    await socket.next("welcome");
  });

  test("never has the fields that the token skips, whatever is requested", async (t) => {
    const tag = fresh("tag");
    const { id } = await trigger({ tags: [tag], metadata: { secret: 1 } }, { payload: "secret" });
    const token = await publicToken(gateway, { scopes: ["read:runs"], skipColumns: ["payload", "metadata", "status"] });
    const socket = await connect(t, { token, hello: { fields: ["payload", "metadata", "number"] } });
    assert.deepEqual([...socket.welcome.fields].sort(), [...alwaysSent, "number"].sort());
    const { rows } = await subscribe(socket, 1, { tags: [tag] });
    await putMetadata(id, { secret: 2 });
    await addTag(id, fresh("tag"));
    const patches = [await patch(socket), await patch(socket)];
    assert.equal(rows[0][2].status, (await gateway.get(`/api/v3/runs/${id}`)).json.status, "what files a row cannot be skipped");
    assert.doesNotMatch(JSON.stringify([rows, patches]), /secret|"payload"|"metadata"/);
  });

  test("uses the words of the API version", async (t) => {
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

  test("in msgpack has the same content as in JSON, with values as JSON text", async (t) => {
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
