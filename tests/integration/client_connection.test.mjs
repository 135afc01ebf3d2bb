// The client for pages (src/web/client) makes and keeps its connection: its pace, its retries, its token, a drain, a
// page that is hidden or off the network.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { connect } from "../../src/web/client/client.js";
import { again, begin, recordEvents, ids, ok, patch, rows, Script, settle, whole } from "../support/js/scripted_gateway.mjs";

describe("a connection", () => {
  test("has the address of the gateway and the subprotocol, and sends hello before everything else", (t) => {
    const script = new Script(t);
    for (const [url, address] of [["http://runs.test", "ws://runs.test/realtime/v1/ws"], ["https://runs.test:8/", "wss://runs.test:8/realtime/v1/ws"],
      ["https://runs.test/behind/a/proxy", "wss://runs.test/behind/a/proxy/realtime/v1/ws"]]) {
      const client = connect(url, { token: "secret", fields: ["-payload"], every: 50, WebSocket: script.WebSocket });
      client.subscribe({ tags: ["a"], task: "one" });
      const socket = script.socket();
      assert.deepEqual([socket.url, socket.protocol], [address, "runs.v1.json"]);
      socket.open();
      assert.deepEqual(socket.take(), [{ op: "hello", token: "secret", fields: ["-payload"], every: 50 }, { op: "sub", id: 1, tags: ["a"], task: ["one"] }]);
      client.close();
    }
  });

  test("is shared by all subscriptions and watches, also later ones", (t) => {
    const { script, client, socket } = begin(t);
    client.subscribe({ all: true, counts: true });
    client.watch({ status: "EXECUTING" }, { limit: 5, counts: true });
    assert.deepEqual(socket.take(), [{ op: "sub", id: 1, all: true, counts: true },
      { op: "watch", id: 2, filter: { status: "EXECUTING" }, limit: 5, counts: true }]);
    assert.equal(script.sockets.length, 1);
  });

  test("sends no more at once, and each second, than the gateway allows", (t) => {
    const script = new Script(t);
    const client = connect("http://runs.test", { token: "secret", WebSocket: script.WebSocket });
    for (let i = 0; i < 256; i++) client.subscribe({ run: `run_${i}` });
    const socket = script.welcomed();
    const first = socket.take().length;
    assert.ok(first <= 200, `${first} at once`);
    for (let seconds = 2, left = 257 - first; left > 0; seconds += 2) {
      script.advance(2000);
      const count = socket.take().length;
      assert.ok(count > 0 && count <= 100, `${count} in two seconds`);
      left -= count;
    }
  });

  test("that is silent is pinged, and given up when it does not answer", (t) => {
    const { script, client, socket } = begin(t);
    const lost = [];
    client.on("state", (state) => lost.push([state, client.error?.message]));
    script.advance(25_000);
    socket.deliver({ op: "ping", seq: 1 });
    assert.deepEqual(socket.take(), []);
    script.advance(61_000);
    assert.deepEqual(socket.take(), [{ op: "unsub", id: 0 }]);
    socket.deliver({ op: "error", id: 0, code: "unknown_id", message: "no subscription has this id" });
    script.advance(20_000);
    assert.equal(socket.isClosed, false);
    script.advance(60_000);
    assert.equal(socket.isClosed, true);
    assert.deepEqual(lost, [["connecting", "the gateway does not respond"]]);
    assert.notEqual(script.reconnectDelay(), undefined);
  });

  test("is patient with a slow network, but not forever", (t) => {
    const { script } = begin(t);
    for (let i = 0; i < 40; i++) {
      script.socket().remoteClose(1006);
      script.reconnectDelay();
    }
    script.advance(100_000);
    assert.equal(script.socket().isClosed, false);
    script.advance(21_000);
    assert.equal(script.sockets[40].isClosed, true);
  });

  test("that never opens is given up", (t) => {
    const script = new Script(t);
    connect("http://runs.test", { token: "secret", WebSocket: script.WebSocket });
    script.advance(16_000);
    assert.ok(script.sockets[0].isClosed);
    assert.equal(script.sockets.length, 2);
  });
});

describe("close codes", () => {
  const never = [1000, 1002, 1003, 1005, 1008, 1009, 1010, 4000, 4001, 4003, 4004, 4005, 3000];
  for (const code of never)
    test(`${code} is final, and an error`, async (t) => {
      const { script, client, socket } = begin(t);
      const mirror = client.subscribe({ all: true });
      socket.remoteClose(code, "a reason");
      assert.equal(script.reconnectDelay(), undefined);
      assert.deepEqual([client.state, mirror.state, mirror.error.code, mirror.error.message], ["closed", "closed", code, "a reason"]);
      await assert.rejects(async () => { for await (const one of mirror) assert.fail(one); }, { code });
      const late = client.subscribe({ all: true });
      assert.deepEqual([late.state, late.error.code], ["closed", code]);
    });

  for (const code of [1006, 1011, 1013, 4100, 4101, 4102, 4103])
    test(`${code} is retried with a growing random delay`, (t) => {
      const { script } = begin(t);
      const waited = [];
      for (let i = 0; i < 9; i++) {
        script.socket().remoteClose(code);
        waited.push(script.reconnectDelay());
      }
      assert.deepEqual(waited.slice(0, 8), [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
      Math.random = () => 0.1;
      script.socket().remoteClose(code);
      assert.equal(script.reconnectDelay(), 3000);
      script.welcomed();
      Math.random = () => 1;
      script.socket().remoteClose(code);
      assert.equal(script.reconnectDelay(), 500);
    });

  for (const code of [1001, 1012, 4200, 4201])
    test(`${code} is retried at once, but not at once forever`, (t) => {
      const { script } = begin(t);
      script.socket().remoteClose(code);
      assert.ok(script.reconnectDelay() <= 1);
      script.socket().remoteClose(code);
      assert.ok(script.reconnectDelay() >= 500);
    });
});

describe("tokens", () => {
  const start = async (t, options) => {
    const script = new Script(t), client = connect("http://runs.test", { WebSocket: script.WebSocket, ...options });
    await settle();
    return { script, client };
  };

  test("are fetched for each connection, and when they are about to expire", async (t) => {
    let count = 0;
    const { script } = await start(t, { getToken: async () => `token ${++count}` });
    const socket = script.welcomed();
    assert.equal(socket.take()[0].token, "token 1");
    socket.deliver({ op: "expiring", in: 30_000 });
    script.advance(14_999);
    assert.equal(count, 1);
    script.advance(1);
    await settle();
    assert.deepEqual(socket.take(), [{ op: "auth", token: "token 2" }]);
    socket.remoteClose(4101);
    script.advance(500);
    await settle();
    assert.equal(script.welcomed().take()[0].token, "token 3");
  });

  test("that cannot be fetched are an error of the client, and fetched again later", async (t) => {
    let count = 0;
    const events = [];
    const script = new Script(t);
    const client = connect("http://runs.test", { WebSocket: script.WebSocket, getToken: async () => {
      if (++count < 3) throw new Error(`no token ${count}`);
      return "token";
    } });
    client.on("error", (error) => events.push(error.message));
    await settle();
    assert.deepEqual([client.state, client.error.message], ["connecting", "no token 1"]);
    for (const ms of [500, 1000]) {
      script.advance(ms);
      await settle();
    }
    assert.deepEqual([events, script.welcomed().take()[0].token], [["no token 1", "no token 2"], "token"]);
  });

  test("that arrive after the client was closed are not used", async (t) => {
    let give;
    const { script, client } = await start(t, { getToken: () => new Promise((resolve) => { give = resolve; }) });
    client.close();
    give("token");
    await settle();
    assert.equal(script.sockets.length, 0);
  });
});

describe("a drain", () => {
  const live = (t) => {
    const all = begin(t), { client, socket } = all;
    const mirror = client.subscribe({ all: true }), watch = client.watch({});
    socket.deliver(ok(1), rows(1, 5, [whole("run_1", 1)]), ok(2), { op: "list", id: 2, seq: 5, begin: true, rows: [whole("run_1", 1)] });
    socket.take();
    return { ...all, mirror, watch, events: recordEvents(mirror), seen: recordEvents(watch) };
  };

  test("opens a second connection, and ends the first when the second has everything", (t) => {
    const { script, mirror, watch, socket, events } = live(t);
    socket.deliver({ op: "drain", in: 3000 });
    script.advance(2990);
    assert.equal(script.sockets.length, 1);
    script.advance(20);
    const next = script.welcomed();
    assert.deepEqual(next.take().slice(1), [{ op: "sub", id: 1, all: true, from: ["e1", 5, 5] }, { op: "watch", id: 2, filter: {} }]);
    socket.deliver(patch(6, [["run_1", 2, { status: "DEQUEUED" }]]));
    next.deliver(ok(1, { mode: "resume" }), ok(2), { op: "list", id: 2, seq: 6, begin: true, rows: [whole("run_1", 2)] });
    socket.deliver({ op: "list", id: 2, seq: 6, rows: [["run_1", 1, null, 2]] });
    assert.deepEqual([socket.isClosed, ids(watch)], [false, ["run_1"]]);
    next.deliver(rows(1, 7, [["run_1", 2, { status: "DEQUEUED" }], whole("run_2", 1)]));
    assert.equal(socket.isClosed, true);
    socket.deliver(patch(8, [["run_1", 3, { status: "FAILED" }]]));
    next.deliver(patch(8, [["run_1", 3, { status: "EXECUTING" }]]));
    assert.deepEqual([ids(mirror), mirror.runs.get("run_1").status, mirror.gaps, mirror.state], [["run_1", "run_2"], "EXECUTING", 0, "live"]);
    assert.deepEqual(events.filter(([event]) => event === "state"), []);
    assert.deepEqual(events.filter(([event]) => event === "change").flatMap(([, { runs }]) => runs.map((one) => `${one.id} ${one.status}`)),
      ["run_1 DEQUEUED", "run_2 QUEUED", "run_1 EXECUTING"]);
    assert.deepEqual(again(script).requests[0].from, ["e1", 8, 8]);
  });

  test("whose connection closes early still waits for the time that was announced", (t) => {
    const { script, mirror, socket } = live(t);
    socket.deliver({ op: "drain", in: 3000 });
    script.advance(500);
    socket.remoteClose(4200);
    assert.equal(mirror.state, "connecting");
    script.advance(2490);
    assert.equal(script.sockets.length, 1);
    script.advance(20);
    const next = script.welcomed();
    assert.deepEqual(next.take()[1].from, ["e1", 5, 5]);
    next.deliver(ok(1, { mode: "resume" }), rows(1, 6, []));
    assert.equal(mirror.state, "live");
    next.remoteClose(4200); // without a drain
    assert.equal(script.reconnectDelay(), 1, "at once");
  });

  test("keeps trying while the first connection lives, and continues with the second when the first ends", (t) => {
    const { script, mirror, socket } = live(t);
    socket.deliver({ op: "drain", in: 0 });
    script.advance(1);
    script.socket().remoteClose(1006);
    assert.equal(mirror.state, "live");
    assert.equal(script.reconnectDelay(), 500);
    const next = script.welcomed();
    socket.remoteClose(4200);
    assert.deepEqual([mirror.state, script.sockets.length], ["connecting", 3]);
    next.deliver(ok(1, { mode: "resume" }), rows(1, 9, [["run_1", 2, {}]]));
    assert.equal(mirror.state, "live");
    assert.deepEqual(again(script).requests[0].from, ["e1", 9, 9]);
  });

  test("to another epoch leaves the first connection at once", (t) => {
    const { script, mirror, socket } = live(t);
    socket.deliver({ op: "drain", in: 0 });
    script.advance(1);
    const next = script.welcomed({ epoch: "e2" });
    assert.ok(socket.isClosed);
    next.deliver(ok(1), rows(1, 2, [whole("run_3", 1)]));
    assert.deepEqual(ids(mirror), ["run_3"]);
  });
});

describe("a page", () => {
  test("that is hidden for a minute drops its connection, and resumes when it is shown", (t) => {
    const { script, client, socket } = begin(t);
    const mirror = client.subscribe({ all: true });
    socket.deliver(ok(1), rows(1, 5, []));
    const events = recordEvents(mirror, ["state"]);
    script.hide(true);
    script.advance(30_000);
    script.hide(false);
    assert.deepEqual(events, []);
    socket.deliver({ op: "ping", seq: 5 });
    script.hide(true);
    script.advance(59_000);
    socket.deliver({ op: "ping", seq: 6 });
    script.advance(2000);
    assert.deepEqual([socket.isClosed, client.state, mirror.state], [true, "paused", "paused"]);
    script.dispatch("online");
    assert.equal(script.reconnectDelay(), undefined);
    script.hide(false);
    assert.deepEqual([mirror.state, script.sockets.length], ["connecting", 2]);
    assert.deepEqual(script.welcomed().take()[1].from, ["e1", 6, 6]);
  });

  test("keeps the connection while it is hidden if it asks for that", (t) => {
    const { script, socket } = begin(t, { hiddenAfter: Infinity });
    script.hide(true);
    for (let i = 0; i < 100; i++) {
      script.advance(20_000);
      socket.deliver({ op: "ping", seq: i });
    }
    assert.equal(socket.isClosed, false);
  });

  test("that is back on the network retries at once, and pings when it believes to be connected", (t) => {
    const { script, socket } = begin(t);
    for (let i = 0; i < 5; i++) {
      script.socket().remoteClose(1006);
      if (i < 4) script.reconnectDelay();
    }
    script.dispatch("online");
    assert.equal(script.sockets.length, 6);
    script.welcomed().take();
    for (const event of ["offline", "online"]) {
      script.dispatch(event);
      assert.deepEqual(script.socket().take(), [{ op: "unsub", id: 0 }]);
    }
    script.advance(16_000);
    assert.ok(script.sockets[5].isClosed && socket.isClosed);
  });

  test("that closes its client gets no more events", (t) => {
    const { script, client, socket } = begin(t);
    const mirror = client.subscribe({ all: true });
    client.close();
    assert.deepEqual([socket.isClosed, client.state, client.error, mirror.state, mirror.error], [true, "closed", undefined, "closed", undefined]);
    for (const event of ["online", "offline"]) script.dispatch(event);
    script.hide(true);
    script.hide(false);
    assert.equal(script.reconnectDelay(), undefined);
  });
});

test("without a global WebSocket the client asks for one", (t) => {
  const script = new Script(t), before = globalThis.WebSocket;
  globalThis.WebSocket = undefined;
  t.after(() => { globalThis.WebSocket = before; });
  assert.throws(() => connect("http://runs.test", { token: "secret" }), /WebSocket/);
  assert.equal(script.sockets.length, 0);
});
