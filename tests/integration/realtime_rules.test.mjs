// runs.v1 on the wire: scopes, limits, positions, isolation of environments, and timeouts.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { EventStream } from "../support/js/event_stream.mjs";
import { keys, sleep, startGateway, until } from "../support/js/gateway.mjs";
import { alwaysSent, begin, closing, connect, end, everyField, fresh, gateway, number, patch, putMetadata, subscribe, trigger, write } from "../support/js/realtime.mjs";
import { RunsSocket } from "../support/js/runs.mjs";
import { publicToken } from "../support/js/tokens.mjs";
import { opcodes } from "../support/js/websocket.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

before(begin);
after(end);

describe("scopes", () => {
  const allowed = async (t, scopes, filter) => {
    const socket = await connect(t, { token: await publicToken(gateway, { scopes }) });
    socket.send({ op: "sub", id: 1, ...filter });
    const answer = await socket.next();
    if (answer.op === "ok") return true;
    assert.deepEqual([answer.op, answer.id, answer.code], ["error", 1, "forbidden"]);
    return false;
  };

  test("decide which subscriptions are allowed", async (t) => {
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

  test("are checked again when a new token arrives, and subscriptions that it does not allow end", async (t) => {
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

  test("a token of another environment or with another view is not accepted in place of the first", async (t) => {
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
  test("256 KiB of tags and tasks in the subscriptions of a connection", async (t) => {
    const socket = await connect(t);
    const long = (name, i) => `${name}-${i}-`.padEnd(120, "x");
    let refused;
    for (let id = 0; id < 60 && !refused; id++) {
      socket.send({ op: "sub", id, tags: Array.from({ length: 16 }, (_, i) => long(`tag-${id}`, i)), task: Array.from({ length: 64 }, (_, i) => long(`task-${id}`, i)) });
      const answer = await socket.next((message) => message.id === id && message.op !== "rows");
      if (answer.op === "error") refused = answer;
    }
    assert.equal(refused.code, "limit");
    assert.match(refused.message, /256 KiB; send unsub/);
    assert.ok(refused.id >= 15 && refused.id < 30, `the one with id ${refused.id}`);
    socket.send({ op: "unsub", id: 0 });
    await socket.next("end");
    await subscribe(socket, 100, { tags: [long("other", 0)] });
  });

  test("256 subscriptions of a connection", async (t) => {
    const socket = await connect(t);
    for (let id = 0; id < 256; id++) {
      if (id === 190) await sleep(1500); // a burst has 200 messages; this is the time of 75 more
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

  test("--subscriptions changes that limit, and welcome reports it", async (t) => {
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

  test("--realtime-connections limits an environment, over all transports", async (t) => {
    const full = await startGateway({ t, options: ["--realtime-connections", "3"] });
    const { id } = await trigger({}, { to: full });
    const headers = { authorization: `Bearer ${keys.dev}` };
    const events = () => EventStream.open(new URL(`/realtime/v1/events?run=${id}`, full.url), { headers });
    const chunks = () => EventStream.open(new URL(`/realtime/v1/streams/${id}/words`, full.url), { headers });
    const socket = () => connect(t, { to: full }); // with the token in the upgrade
    const open = [await events(), await chunks(), await socket()];
    for (const refused of [events, chunks]) assert.equal((await refused()).status, 429);
    await assert.rejects(socket(), { status: 429 });
    const late = await connect(t, { to: full, token: null, hello: null });
    late.send({ op: "hello", token: keys.dev });
    assert.deepEqual(await closing(late), { code: 4103, reason: "Too many concurrent requests" });
    await connect(t, { to: full, token: keys.prod }); // of another environment

    const greeted = () => connect(t, { to: full, token: null, hello: { token: keys.dev } });
    for (const way of [chunks, socket, greeted, events, greeted, socket]) {
      await open.shift().cut();
      await until(async () => { // the gateway has noticed the end
        const next = await way().catch(() => null);
        if (next && next.status !== 429) open.push(next);
        return open.length === 3;
      }, { what: "a seat that was left" });
      assert.equal((await events()).status, 429);
    }
    for (const one of open) await one.cut();
    await full.stop();
  });

  test("more messages than the rate allows close with 4103", async (t) => {
    const socket = await connect(t);
    for (let i = 0; i < 300; i++) socket.send({ op: "unsub", id: i });
    const { code, reason } = await closing(socket);
    assert.equal(code, 4103);
    assert.match(reason, /\w+ \w+/);
  });

  describe("for unread data", () => {
    /** Makes runs too large for the buffers of the kernel; returns their tag. */
    const makeLarge = async (to) => {
      const tag = fresh("large"), worker = await Worker.register(to, { tasks: ["large"] });
      for (let i = 0; i < 3; i++) {
        const attempt = await worker.take(await worker.trigger("large", { tags: [tag] }));
        await attempt.completeReply({ ok: true, output: JSON.stringify("x".repeat(9 << 20)), outputType: "application/json" });
      }
      return tag;
    };
    /** Stops reading in the middle of catching up. */
    const stall = async (socket, to, tag) => {
      const walked = () => to.metric('runcast_frames_total{kind="walked"}'), before = await walked();
      socket.pause();
      socket.send({ op: "sub", id: 1, tags: [tag] });
      await until(async () => await walked() > before, { what: "a frame" });
    };

    test("rows do not count: another sub is answered", async (t) => {
      const [tag, other] = [await makeLarge(gateway), await trigger()];
      const socket = await connect(t);
      await stall(socket, gateway, tag);
      const before = await gateway.metric("runcast_subscriptions");
      socket.send({ op: "sub", id: 2, run: other.id });
      await until(async () => await gateway.metric("runcast_subscriptions") > before, { what: "the subscription" });
      socket.resume();
      for (const id of [1, 1, 1, 2]) assert.equal((await socket.next((one) => one.op === "rows" && one.id === id)).rows.length, 1);
    });

    test("a drain does not count, and ends like every drain", async (t) => {
      const own = await startGateway({ t });
      const tag = await makeLarge(own), socket = await connect(t, { to: own });
      await stall(socket, own, tag);
      own.child.kill("SIGTERM");
      await until(() => own.stderr.includes("draining"));
      socket.resume();
      await socket.next("drain");
      assert.deepEqual(await closing(socket, 60_000), { code: 4200, reason: "the gateway is shutting down" });
      assert.equal((await own.ended()).code, 0);
    });

    test("256 KiB of unread answers close with 4103, also on a connection with live subscriptions", async (t) => {
      const tag = await makeLarge(gateway), socket = await connect(t);
      await subscribe(socket, 0, { tags: [fresh("live")] });
      await stall(socket, gateway, tag);
      const unknown = Object.fromEntries(Array.from({ length: 16 }, (_none, i) => [`${"x".repeat(60)}${i}`, 1])); // each answer names them
      for (let i = 0; i < 300; i++) {
        if (i === 190) await sleep(2500); // a burst has 200 messages; this is the time of 125 more
        socket.send({ op: i % 2 ? "unsub" : "sub", id: 2, ...(i % 2 ? {} : { tags: ["none"] }), ...unknown });
      }
      socket.resume();
      assert.deepEqual(await closing(socket), { code: 4103, reason: "too many unread responses" });
    });
  });

  test("a message of 64 KiB is accepted, a larger one closes with 1009", async (t) => {
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
    test(`${what} is answered with ${code}${closes ? ` and ${closes}` : ", and the connection continues"}`, async (t) => {
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

  test("unknown members are ignored, and null stands for absent", async (t) => {
    const socket = await connect(t, { hello: { fields: null, every: null, later: { x: [1] } } });
    const { ok } = await subscribe(socket, 1, { all: true, run: null, tags: null, since: null, limit: null, from: null, color: "red" });
    assert.equal(ok.mode, "snapshot");
  });

  test("when there are too many views a new one gets a wider view, and other environments' views do not keep a client away", async (t) => {
    const some = everyField.slice(7, 13);
    const sets = Array.from({ length: 40 }, (_, i) => some.filter((_name, bit) => (i + 1) >> bit & 1));
    const prod = { token: keys.prod };
    for (const [i, fields] of sets.entries()) {
      const { welcome } = await connect(t, { ...prod, hello: { fields } });
      for (const field of fields) assert.ok(welcome.fields.includes(field), field);
      if (i < 16) assert.equal(welcome.fields.length, alwaysSent.length + fields.length);
      else assert.ok(welcome.fields.length > everyField.length - 3, welcome.fields.join());
    }
    for (const protocol of ["runs.v1.json", "runs.v1.msgpack"]) {
      const other = await connect(t, { ...prod, protocol, hello: {} });
      for (const field of everyField) assert.ok(other.welcome.fields.includes(field), `${protocol}: ${field}`);
    }
  });
});

describe("a position", () => {
  const from = (socket, { seq }) => ({ from: [socket.welcome.epoch, seq, seq] });

  test("brings changes since then, as deltas, and nothing else", async (t) => {
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

  test("of another epoch, or from the future, starts with a snapshot", async (t) => {
    const socket = await connect(t);
    const { epoch, seq } = socket.welcome;
    for (const wrong of [["ffff", seq, seq], [epoch, seq + 1000, seq]]) {
      const { ok } = await subscribe(socket, number(), { all: true, from: wrong });
      assert.equal(ok.mode, "snapshot");
    }
  });

  test("survives a restart of the gateway", async (t) => {
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

  test("older than what retention removed starts with a snapshot, and the floor is sent", async (t) => {
    const own = await startGateway({ t, options: ["--retain", "1s"] });
    const { id } = await trigger({ tags: ["a"] }, { to: own });
    const kept = await trigger({ tags: ["a"], delay: "1h" }, { to: own });
    await own.post(`/api/v2/runs/${id}/cancel`);
    const socket = await connect(t, { to: own });
    const position = await subscribe(socket, 1, { tags: ["a"] });
    await socket.cut();
    await trigger({ tags: ["b"], delay: "1h" }, { to: own });
    const canceledAt = Date.parse((await own.get(`/api/v3/runs/${id}`)).json.finishedAt);
    await until(() => Date.now() > canceledAt + 1000, { what: "the end of what is kept" });
    await own.stop();
    await own.restart();
    const live = await connect(t, { to: own }); // before the first purge, a second after the start
    await until(async () => await own.metric("runcast_purged_runs_total") === 1);
    assert.equal((await own.get(`/api/v3/runs/${id}`)).status, 404);
    const back = await connect(t, { to: own });
    const floor = await back.next("floor");
    await live.next((message) => message.op === "floor" && message.updatedAt === floor.updatedAt); // connected clients received it too
    const canceled = position.rows.find(([run]) => run === id)[2];
    assert.ok(floor.updatedAt > canceled.updatedAt, `${floor.updatedAt} is not above ${canceled.updatedAt}`);
    const stale = await subscribe(back, 1, { tags: ["a"], from: [back.welcome.epoch, 1, 1] });
    assert.equal(stale.ok.mode, "snapshot");
    assert.deepEqual(stale.rows.map(([run]) => run), [kept.id]);
    const { ok } = await subscribe(back, 2, { tags: ["a"], ...from(back, position) });
    assert.equal(ok.mode, "resume", "nothing after this position was removed");
    for (const one of [live, back]) await one.cut();
    await own.stop();
  });

  test("a write returns the position from which every subscriber sees it", async (t) => {
    const tag = fresh("tag");
    const socket = await connect(t);
    await subscribe(socket, 1, { tags: [tag] });
    const { id, seq } = await trigger({ tags: [tag] });
    assert.equal((await patch(socket)).seq, seq);
    const again = await putMetadata(id, { n: 1 });
    assert.equal((await patch(socket)).seq, again);
    const { headers } = await gateway.get(`/api/v3/runs/${id}`);
    assert.equal(headers["x-runs-seq"], undefined, "a read is not a write");
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

describe("timeouts", { concurrency: true }, () => {
  const seconds = (from) => (Date.now() - from) / 1000;

  test("a token that expires: expiring, then 4101", async (t) => {
    const began = Date.now();
    const socket = await connect(t, { token: await publicToken(gateway, { scopes: ["read:runs"], expiresInS: 8 }) });
    const expiring = await socket.next("expiring");
    assert.ok(expiring.in > 0 && expiring.in <= 8000, `${expiring.in}`);
    await subscribe(socket, 1, { all: true, since: "0s" });
    const { code, reason } = await closing(socket, 60_000);
    assert.equal(code, 4101);
    assert.match(reason, /token/);
    assert.ok(seconds(began) > 16, `${seconds(began)} s`);
  });

  test("a token that is refreshed in time stays valid", async (t) => {
    const short = await publicToken(gateway, { scopes: ["read:runs"], expiresInS: 8 });
    const socket = await connect(t, { token: short }), other = await connect(t, { token: short });
    await subscribe(socket, 1, { tags: [fresh("tag")] });
    socket.send({ op: "auth", token: await publicToken(gateway, { scopes: ["read:runs"], expiresInS: 900 }) });
    assert.equal((await closing(other, 60_000)).code, 4101, "one that is not refreshed");
    const tag = fresh("tag");
    const { id } = await trigger({ tags: [tag] });
    assert.deepEqual((await subscribe(socket, 2, { tags: [tag] })).rows.map(([run]) => run), [id]);
  });

  test("10 s without a message and without a token: 4001", async (t) => {
    const began = Date.now();
    const socket = await connect(t, { token: null, hello: null });
    assert.equal((await closing(socket, 60_000)).code, 4001);
    assert.ok(seconds(began) > 9, `${seconds(began)} s`);
  });

  test("idle clients receive the position", async (t) => {
    const socket = await connect(t);
    const { seq } = await subscribe(socket, 1, { tags: [fresh("quiet")] });
    const other = await trigger();
    const ping = await socket.next("ping", 90_000);
    assert.ok(other.seq > seq && ping.seq >= other.seq);
  });

  test("a client that answers no ping and sends nothing is closed", async (t) => {
    const socket = await connect(t, { answerPings: false });
    let pings = 0;
    socket.ws.onPing = () => pings++;
    const { code } = await closing(socket, 180_000);
    assert.equal(code, 1008);
    assert.ok(pings >= 1);
  });
});
