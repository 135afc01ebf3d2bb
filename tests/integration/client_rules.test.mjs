// The client for pages (src/web/client) handles rows, positions and ends as "What a client does" in
// include/runcast/protocol.h says, frame by frame. Its connections are tested in client_connection.test.mjs, and
// against the gateway itself in tests/property/client.test.mjs.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { again, begin, recordEvents, ids, ok, patch, rows, run, settle, welcome, whole } from "../support/js/scripted_gateway.mjs";

describe("rows", () => {
  test("are merged by version: values are absolute, null clears, older versions change nothing", (t) => {
    const { client, socket } = begin(t);
    const mirror = client.subscribe({ all: true });
    socket.deliver(ok(1), rows(1, 1, [whole("run_1", 3, { startedAt: "x", payload: { deep: 1 } })]));
    const first = mirror.runs.get("run_1");
    socket.deliver(patch(2, [["run_1", 4, { status: "EXECUTING", startedAt: null, payload: null }]]));
    assert.deepEqual(mirror.runs.get("run_1"), run("run_1", { status: "EXECUTING", payload: null }));
    assert.equal(first.status, "QUEUED");
    const events = recordEvents(mirror, ["change"]);
    socket.deliver(patch(3, [["run_1", 4, { status: "FAILED" }], ["run_1", 2, { status: "FAILED" }], whole("run_1", 3)]));
    assert.deepEqual([mirror.runs.get("run_1").status, events], ["EXECUTING", []]);
    socket.deliver(patch(4, [whole("run_1", 4, { status: "COMPLETED" })]));
    assert.equal(mirror.runs.get("run_1").status, "COMPLETED");
    assert.equal(mirror.gaps, 0);
  });

  test("that jump report how many states were skipped", (t) => {
    const { client, socket } = begin(t);
    const mirror = client.subscribe({ all: true }), events = recordEvents(mirror, ["gap"]);
    socket.deliver(ok(1), rows(1, 1, [whole("run_1", 1)]), patch(2, [["run_1", 2, {}]]), patch(9, [["run_1", 6, { status: "EXECUTING" }]]));
    assert.deepEqual(events.map(([, { run: one, skipped }]) => [one.status, skipped]), [["EXECUTING", 3]]);
    socket.deliver(patch(12, [whole("run_1", 8), whole("run_2", 7)]));
    assert.equal(mirror.gaps, 4);
  });

  test("are filed under every subscription whose filter matches them", (t) => {
    const { client, socket } = begin(t);
    const filters = [{ all: true }, { run: "run_1" }, { tags: ["a", "b"] }, { batch: "batch_1" }, { all: true, task: ["one", "two"] },
      { all: true, since: "2026-01-02T00:00:00Z" }, { tags: ["b"], since: new Date("2026-01-01") }];
    const mirrors = filters.map((filter) => client.subscribe(filter));
    for (let id = 1; id <= filters.length; id++) socket.deliver(ok(id), rows(id, 1, []));
    socket.deliver(patch(4, [whole("run_1", 1), whole("run_2", 1, { tags: ["b", "a"] }), whole("run_3", 1, { tags: ["b"], batchId: "batch_1" }),
      whole("run_4", 1, { taskIdentifier: "two", createdAt: "2026-01-02T00:00:00.000Z" })]));
    assert.deepEqual(mirrors.map(ids), [["run_1", "run_2", "run_3", "run_4"], ["run_1"], ["run_2"], ["run_3"], ["run_4"], ["run_4"], ["run_2", "run_3"]]);
    socket.deliver(patch(5, [["run_1", 2, { tags: ["a", "b"] }]]));
    assert.deepEqual([ids(mirrors[2]), ids(mirrors[6])], [["run_2", "run_1"], ["run_2", "run_3", "run_1"]]);
  });

  test("\"since\" is a time for the gateway and for the mirror, and an invalid one is refused at once", (t) => {
    const { client, socket } = begin(t);
    client.subscribe({ all: true, since: "1d12h" });
    assert.deepEqual(socket.take(), [{ op: "sub", id: 1, all: true, since: "2025-12-30T12:00:00.000Z" }]);
    assert.throws(() => client.subscribe({ all: true, since: "yesterday" }), RangeError);
  });

  test("that contradict what was sent close the connection, and a new one asks for a snapshot", (t) => {
    const { script, client, socket } = begin(t);
    const mirror = client.subscribe({ all: true });
    socket.deliver(ok(1), rows(1, 5, [whole("run_1", 3)]), patch(6, [["run_2", 3, { status: "FAILED" }]]));
    assert.ok(socket.isClosed);
    assert.equal(client.error.message, "a change of run_2, which was never sent");
    script.reconnectDelay();
    const next = script.welcomed();
    assert.deepEqual(next.take().at(-1), { op: "sub", id: 1, all: true });
    next.deliver(ok(1), rows(1, 7, [whole("run_1", 3), whole("run_2", 3)]));
    assert.deepEqual([ids(mirror), mirror.state, mirror.gaps], [["run_1", "run_2"], "live", 0]);
  });

  test("older than the floor of retention are forgotten when they are final", (t) => {
    const { client, socket } = begin(t);
    const mirror = client.subscribe({ all: true }), events = recordEvents(mirror, ["change"]);
    socket.deliver(ok(1), rows(1, 1, [whole("run_1", 1), whole("run_2", 1, { status: "COMPLETED" }),
      whole("run_3", 1, { status: "FAILED", updatedAt: "2026-01-03T00:00:00.000Z" })]));
    socket.deliver({ op: "floor", updatedAt: "2026-01-02T00:00:00.000Z" });
    assert.deepEqual(ids(mirror), ["run_1", "run_3"]);
    assert.deepEqual(events.at(-1), ["change", { runs: [], removed: ["run_2"] }]);
  });
});

describe("the position", () => {
  test("is that of the last frame, and of the last frame without \"more\"", (t) => {
    const { script, client, socket } = begin(t);
    client.subscribe({ all: true });
    socket.deliver(ok(1), rows(1, 10, [whole("run_1", 1)]));
    assert.deepEqual(again(script).requests, [{ op: "sub", id: 1, all: true, from: ["e1", 10, 10] }]);
    script.socket().deliver(ok(1, { mode: "resume" }), rows(1, 10, []), patch(12, [["run_1", 2, {}]]), patch(14, [["run_1", 3, {}]], { more: true }));
    assert.deepEqual(again(script).requests[0].from, ["e1", 14, 12]);
    script.socket().deliver(ok(1, { mode: "resume" }), rows(1, 15, [["run_1", 4, {}]], { more: true }));
    assert.deepEqual(again(script).requests[0].from, ["e1", 14, 12]); // not live again
    script.socket().deliver(ok(1, { mode: "resume" }), rows(1, 16, []), { op: "ping", seq: 20 });
    assert.deepEqual(again(script).requests[0].from, ["e1", 20, 20]);
  });

  test("does not advance until everything that was complete is live again; what was not complete starts from the beginning", (t) => {
    const { script, client, socket } = begin(t);
    client.subscribe({ tags: ["a"] });
    client.subscribe({ tags: ["b"] });
    socket.deliver(ok(1), ok(2), rows(1, 5, []), rows(2, 6, []));
    client.subscribe({ tags: ["c"] });
    socket.deliver(ok(3), rows(3, 7, [whole("run_1", 1, { tags: ["c"] })], { more: true }));
    const { requests, socket: next } = again(script);
    assert.deepEqual(requests.map(({ id, from }) => [id, from]), [[1, ["e1", 6, 6]], [2, ["e1", 6, 6]], [3, undefined]]);
    next.deliver(ok(1, { mode: "resume" }), ok(2, { mode: "resume" }), ok(3), rows(1, 8, []), patch(9, [whole("run_2", 1)]), rows(3, 9, []));
    assert.deepEqual(again(script).requests.map(({ from }) => from), [["e1", 6, 6], ["e1", 6, 6], ["e1", 6, 6]]);
    script.socket().deliver(ok(1, { mode: "resume" }), ok(2, { mode: "resume" }), ok(3, { mode: "resume" }), rows(1, 9, []), rows(3, 9, []), rows(2, 10, []));
    assert.deepEqual(again(script).requests[1].from, ["e1", 10, 10]);
  });

  test("that the gateway no longer knows is not sent twice", (t) => {
    const { script, client, socket } = begin(t);
    client.subscribe({ all: true });
    socket.deliver(ok(1), rows(1, 5, []));
    const { socket: next } = again(script);
    next.deliver(ok(1, { mode: "snapshot" }), rows(1, 7, [whole("run_1", 1)], { more: true }));
    assert.deepEqual(again(script).requests, [{ op: "sub", id: 1, all: true }]);
  });

  test("is sent with the floor that the limit became", (t) => {
    const { script, client, socket } = begin(t);
    client.subscribe({ all: true, limit: 20 });
    assert.equal(socket.take()[0].limit, 20);
    const since = "2026-01-01T12:00:00.000Z";
    socket.deliver(ok(1, { since }), rows(1, 5, [], { more: true }));
    const { requests, socket: next } = again(script);
    assert.deepEqual(requests, [{ op: "sub", id: 1, all: true, limit: 20 }]); // the snapshot was not complete
    next.deliver(ok(1, { since }), rows(1, 5, []));
    assert.deepEqual(again(script).requests, [{ op: "sub", id: 1, all: true, since, from: ["e1", 5, 5] }]);
  });

  test("of a limited subscription not yet acknowledged takes no older run, also if another subscription has it", (t) => {
    const { client, socket } = begin(t);
    const all = client.subscribe({ all: true });
    socket.deliver(ok(1), rows(1, 5, [whole("run_1", 1)]));
    const newest = client.subscribe({ all: true, limit: 1 });
    socket.deliver(patch(6, [["run_1", 2, { status: "EXECUTING" }]]), ok(2, { since: "2026-01-02T00:00:00.000Z" }),
      rows(2, 7, [whole("run_2", 1, { createdAt: "2026-01-02T00:00:00.000Z" })]), patch(8, [["run_1", 3, { status: "COMPLETED" }]]));
    assert.deepEqual([ids(newest), ids(all)], [["run_2"], ["run_1", "run_2"]]);
  });

  test("of another epoch is not used any more, nor are versions", (t) => {
    const { script, client, socket } = begin(t);
    const mirror = client.subscribe({ all: true });
    socket.deliver(ok(1), rows(1, 50, [whole("run_1", 9, { status: "COMPLETED" }), whole("run_2", 9)]));
    const { socket: next } = again(script, 1006, { epoch: "e2" });
    next.deliver(ok(1), rows(1, 40, [whole("run_1", 2)]));
    assert.deepEqual([ids(mirror), mirror.runs.get("run_1").status, mirror.gaps], [["run_1"], "QUEUED", 0]);
    assert.deepEqual(again(script, 1006, { epoch: "e2" }).requests[0].from, ["e2", 40, 40]);
  });
});

describe("a snapshot", () => {
  test("forgets runs that it does not contain, unless another live filter holds them", (t) => {
    const { script, client, socket } = begin(t);
    const a = client.subscribe({ tags: ["a"] }), b = client.subscribe({ tags: ["b"] });
    const both = { tags: ["a", "b"] };
    socket.deliver(ok(1), ok(2), rows(1, 5, [whole("run_1", 1), whole("run_2", 1, both), whole("run_3", 1)]), rows(2, 5, [whole("run_2", 1, both)]));
    const events = recordEvents(a, ["change"]);
    const { socket: next } = again(script);
    next.deliver(ok(1), ok(2, { mode: "resume" }), rows(2, 6, []), rows(1, 7, [whole("run_3", 1)]));
    assert.deepEqual([ids(a), ids(b)], [["run_2", "run_3"], ["run_2"]]);
    assert.deepEqual(events.at(-1)[1].removed, ["run_1"]);
  });

  test("that follows another welcome on the same connection replaces everything, also in an earlier epoch", (t) => {
    const { script, client, socket } = begin(t);
    const a = client.subscribe({ tags: ["a"] }), b = client.subscribe({ tags: ["b"] }), both = { tags: ["a", "b"] };
    socket.deliver(ok(1), ok(2), rows(1, 50, [whole("run_1", 9, { status: "COMPLETED", ...both }), whole("run_2", 9, both)]), rows(2, 50, []), patch(51, [whole("run_2", 10, both)]));
    assert.deepEqual([ids(a), ids(b)], [["run_1", "run_2"], ["run_1", "run_2"]]);
    socket.take();
    socket.deliver(welcome({ epoch: "e2" }), ok(1), ok(2));
    assert.deepEqual([a.state, b.state, socket.take()], ["connecting", "connecting", []]);
    socket.deliver(rows(1, 40, [whole("run_1", 2, both)]), rows(2, 40, [whole("run_1", 2, both)]));
    assert.deepEqual([ids(a), ids(b), a.runs.get("run_1").status, a.state, b.state], [["run_1"], ["run_1"], "QUEUED", "live", "live"]);
    socket.deliver(patch(41, [["run_1", 3, { status: "EXECUTING" }]]));
    assert.deepEqual([a.runs.get("run_1").status, a.gaps], ["EXECUTING", 0]);
    socket.deliver(welcome({ epoch: "e2" }), ok(1), ok(2), rows(1, 42, []), rows(2, 42, []));
    assert.deepEqual([ids(a), ids(b)], [[], []]);
    assert.deepEqual(again(script, 1006, { epoch: "e2" }).requests.map(({ from }) => from), [["e2", 42, 42], ["e2", 42, 42]]);
  });
});

describe("a mirror that is closed", () => {
  test("is updated until its end, but reports no more events", (t) => {
    const { client, socket } = begin(t);
    const a = client.subscribe({ tags: ["a"] }), all = client.subscribe({ all: true });
    socket.deliver(ok(1), rows(1, 1, [whole("run_1", 1)]));
    const events = recordEvents(a);
    a.close();
    assert.deepEqual(events, [["state", "closed"]]);
    assert.deepEqual(socket.take().at(-1), { op: "unsub", id: 1 });
    socket.deliver(patch(2, [["run_1", 2, { status: "EXECUTING" }]]), ok(2), { op: "end", id: 1 }, rows(2, 3, [["run_1", 3, { status: "COMPLETED" }]]));
    assert.deepEqual([all.runs.get("run_1").status, all.state, events.length], ["COMPLETED", "live", 1]);
  });

  test("before the gateway has opened it is closed after that", (t) => {
    const { script, client, socket } = begin(t);
    const mirror = client.subscribe({ all: true, limit: 5 });
    mirror.close();
    socket.deliver({ op: "error", id: 1, code: "unknown_id", message: "no subscription has this id" }, ok(1));
    assert.deepEqual(socket.take().slice(-2), [{ op: "unsub", id: 1 }, { op: "unsub", id: 1 }]);
    socket.deliver(rows(1, 5, [whole("run_1", 1)], { more: true }), { op: "end", id: 1 });
    assert.deepEqual(again(script).requests, []);
  });

  test("is not subscribed again, nor does the position wait for it", (t) => {
    const { script, client, socket } = begin(t);
    const a = client.subscribe({ tags: ["a"] });
    client.subscribe({ tags: ["b"] });
    socket.deliver(ok(1), ok(2), rows(1, 5, []), rows(2, 5, []));
    socket.remoteClose(1006);
    a.close();
    script.reconnectDelay();
    const next = script.welcomed();
    assert.deepEqual(next.take().slice(1).map(({ id }) => id), [2]);
    next.deliver(ok(2, { mode: "resume" }), rows(2, 8, []));
    assert.deepEqual(again(script).requests[0].from, ["e1", 8, 8]);
  });
});

describe("errors of the gateway", () => {
  test("end the mirror that they name, with code and message", async (t) => {
    const { client, socket } = begin(t);
    const refused = client.subscribe({ all: true }), ended = client.subscribe({ run: "run_1" });
    socket.deliver({ op: "error", id: 1, code: "forbidden", message: "the token's scopes do not allow this" }, ok(2), rows(2, 1, []),
      { op: "end", id: 2, code: "forbidden" });
    assert.deepEqual([refused.state, refused.error.code, refused.error.message], ["closed", "forbidden", "the token's scopes do not allow this"]);
    assert.deepEqual([ended.state, ended.error.code], ["closed", "forbidden"]);
    await assert.rejects(async () => { for await (const one of ended) assert.fail(one); }, { code: "forbidden" });
    assert.equal(client.state, "live");
  });

  test("that may pass are reasons to try again, five times", (t) => {
    const { script, client, socket: first } = begin(t), refusal = { op: "error", id: 1, code: "limit", message: "try again later" };
    const mirror = client.subscribe({ all: true }), other = client.subscribe({ run: "run_1" });
    const refuse = (socket, from) => {
      socket.take();
      for (let time = 1; time <= 5; time++) {
        socket.deliver(refusal);
        assert.deepEqual([mirror.state, mirror.error.message, other.state], ["connecting", "try again later", "live"]);
        assert.deepEqual(socket.take().map((one) => [one.op, one.id, one.from]), [["sub", 1, from]]);
      }
    };
    first.deliver(ok(2), rows(2, 1, []));
    refuse(first);
    first.deliver(ok(1), rows(1, 5, [whole("run_1", 1)]));
    assert.deepEqual([mirror.state, mirror.error], ["live", undefined]);
    const { socket } = again(script);
    socket.deliver(ok(2, { mode: "resume" }), rows(2, 5, []));
    refuse(socket, ["e1", 5, 5]);
    socket.deliver(refusal);
    assert.deepEqual([mirror.state, mirror.error.message, other.state], ["closed", "try again later", "live"]);
    assert.deepEqual(socket.take(), []);
  });

  test("of a watch that has begun end it", (t) => {
    const { client, socket } = begin(t), watch = client.watch({ period: "90d" });
    socket.take();
    socket.deliver(ok(1), { op: "error", id: 1, code: "limit", message: "watch fewer days" }, { op: "end", id: 1, code: "limit" });
    assert.deepEqual([watch.state, watch.error.message, socket.take()], ["closed", "watch fewer days", []]);
  });

  test("that name no mirror are the client's", (t) => {
    const { client, socket } = begin(t);
    const events = [];
    client.on("error", (error) => events.push([error.code, error.message]));
    socket.deliver({ op: "error", code: "bad_token", message: "of another subject" });
    assert.deepEqual([events, client.state], [[["bad_token", "of another subject"]], "live"]);
  });

  test("and unknown members are named on the console", (t) => {
    const { socket } = begin(t);
    const said = [];
    t.mock.method(console, "warn", (text) => said.push(text));
    socket.deliver(welcome({ ignored: ["tag"] }));
    assert.deepEqual(said, ["runcast: the gateway does not know tag"]);
  });
});

describe("a watch", () => {
  const list = (seq, all, more) => ({ op: "list", id: 1, seq, rows: all, ...more });
  const watching = (t) => {
    const all = begin(t), watch = all.client.watch({ status: ["QUEUED"] }, { limit: 3 });
    all.socket.deliver(ok(1), list(5, [whole("run_b", 1), whole("run_a", 1)], { begin: true }));
    return { ...all, watch, events: recordEvents(watch) };
  };

  test("has the newest runs first, and drops the runs that leave", (t) => {
    const { socket, watch, events } = watching(t);
    assert.deepEqual(ids(watch), ["run_b", "run_a"]);
    socket.deliver(list(6, [whole("run_c", 1)]), list(7, [["run_a", 2, null, 2], ["run_b", 3, { metadata: 1 }]]));
    assert.deepEqual([ids(watch), watch.runs.get("run_b").metadata, watch.gaps], [["run_c", "run_b"], 1, 1]);
    const changes = events.filter(([event]) => event === "change").map(([, { runs, removed }]) => [runs.map(({ id }) => id), removed]);
    assert.deepEqual(changes, [[["run_c"], []], [["run_b"], ["run_a"]]]);
  });

  test("shows complete states: nothing of a frame that has \"more\" after it", (t) => {
    const { socket, watch } = watching(t);
    socket.deliver(list(9, [whole("run_z", 1)], { begin: true, more: true }));
    assert.deepEqual(ids(watch), ["run_b", "run_a"]);
    socket.deliver(list(9, [whole("run_y", 1)]));
    assert.deepEqual(ids(watch), ["run_z", "run_y"]);
  });

  test("is requested again on a new connection, without a position", (t) => {
    const { script, watch, events } = watching(t);
    const { socket, requests } = again(script);
    assert.deepEqual(requests, [{ op: "watch", id: 1, filter: { status: ["QUEUED"] }, limit: 3 }]);
    assert.deepEqual([watch.state, ids(watch)], ["connecting", ["run_b", "run_a"]]);
    socket.deliver(ok(1), list(2, [whole("run_a", 5)], { begin: true }));
    assert.deepEqual([watch.state, ids(watch), watch.gaps], ["live", ["run_a"], 0]);
    assert.deepEqual(events.at(-2)[1].removed, ["run_b"]);
  });

  test("keeps its rows apart from those of subscriptions", (t) => {
    const { client, socket, watch } = watching(t);
    const all = client.subscribe({ all: true });
    socket.deliver(ok(2), rows(2, 6, [whole("run_a", 7), whole("run_x", 1)]), patch(7, [["run_a", 8, { status: "EXECUTING" }]]));
    assert.deepEqual([ids(watch), watch.runs.get("run_a").status], [["run_b", "run_a"], "QUEUED"]);
    watch.close();
    assert.deepEqual(socket.take().at(-1), { op: "unsub", id: 1 });
    socket.deliver(list(8, [["run_a", 3, null, 2]]), { op: "end", id: 1 });
    assert.deepEqual(ids(all), ["run_a", "run_x"]);
  });

  test("may have counts, and so may a subscription", (t) => {
    const { socket, watch, events } = watching(t);
    socket.deliver({ op: "counts", id: 1, seq: 9, byStatus: { QUEUED: 2 }, total: 2 });
    assert.deepEqual(watch.counts, { byStatus: { QUEUED: 2 }, total: 2, seq: 9 });
    assert.deepEqual(events, [["change", { runs: [], removed: [] }]]);
  });
});

describe("iteration", () => {
  test("yields each run and its changes, and the newest state to a slow reader", async (t) => {
    const { client, socket } = begin(t);
    const mirror = client.subscribe({ all: true });
    socket.deliver(ok(1), rows(1, 1, [whole("run_1", 1), whole("run_2", 1)]));
    const given = [];
    const reading = (async () => {
      for await (const one of mirror) {
        given.push(`${one.id} ${one.status}`);
        if (given.length === 1) {
          socket.deliver(patch(2, [["run_1", 2, { status: "DEQUEUED" }], ["run_2", 2, { status: "DEQUEUED" }]]), patch(3, [["run_1", 3, { status: "EXECUTING" }]]));
          await settle();
        }
      }
    })();
    for (let i = 0; i < 5; i++) await settle();
    socket.deliver(patch(4, [["run_2", 3, { status: "COMPLETED" }]]));
    await settle();
    mirror.close();
    await reading;
    assert.deepEqual(given, ["run_1 QUEUED", "run_2 DEQUEUED", "run_1 EXECUTING", "run_2 COMPLETED"]);
  });
});

test("a listener that throws does not affect others, and its error is not lost", async (t) => {
  const { client, socket } = begin(t);
  const mirror = client.subscribe({ all: true }), thrown = [];
  const before = globalThis.queueMicrotask;
  globalThis.queueMicrotask = (call) => { try { call(); } catch (error) { thrown.push(error.message); } };
  t.after(() => { globalThis.queueMicrotask = before; });
  const end = mirror.on("change", () => { throw new Error("mine"); });
  const events = recordEvents(mirror, ["change"]);
  socket.deliver(ok(1), rows(1, 1, [whole("run_1", 1)]));
  assert.deepEqual([thrown, events.length, mirror.state], [["mine"], 1, "live"]);
  end();
  socket.deliver(patch(2, [["run_1", 2, {}]]));
  assert.deepEqual([thrown.length, events.length], [1, 2]);
});
