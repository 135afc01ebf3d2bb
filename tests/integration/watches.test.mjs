// Live lists of runs.v1: their rows, how runs join and leave, counts, credentials, limits.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { EventStream } from "../support/js/event_stream.mjs";
import { keys, until } from "../support/js/gateway.mjs";
import { begin, connect, end, fresh, gateway, subscribe, trigger, write } from "../support/js/realtime.mjs";
import { publicToken } from "../support/js/tokens.mjs";
import { WatchMirror } from "../support/js/watch_mirror.mjs";

before(begin);
after(() => end());

const delayed = { delay: "1h" };
const cancel = (id) => write("POST", `/api/v2/runs/${id}/cancel`);
const list = async (query) => (await gateway.get(encodeURI(`/api/v1/runs?${query}`))).json.data.map(({ id }) => id);
const counts = async (query, more) => (await gateway.get(encodeURI(`/api/v1/runs/counts?${query}`), more)).json;

/** A watch on a socket: { mirror, socket, synced(seq), counted(check), messages }. */
async function watch(socket, id, filter, { limit, counts } = {}) {
  const mirror = new WatchMirror(limit);
  socket.send({ op: "watch", id, filter, limit, counts });
  const ok = await socket.next((message) => message.id === id && message.op !== "counts");
  assert.equal(ok.op, "ok", JSON.stringify(ok));
  const take = async (done) => {
    for (;;) {
      const message = await socket.next((one) => one.id === id && (one.op === "list" || one.op === "counts"));
      if (done(mirror.take(message), message)) return mirror;
    }
  };
  const synced = (seq = 0) => (mirror.isSynced && mirror.seq >= seq ? mirror : take((isSync) => isSync && mirror.seq >= seq));
  const counted = (total) => (mirror.counts?.total === total ? mirror : take(() => mirror.counts?.total === total));
  return { mirror, ok, synced, counted };
}

describe("rows", () => {
  test("the newest matches arrive whole, newest first, and a run leaves when its status no longer matches", async (t) => {
    const tag = fresh("tag"), socket = await connect(t), ids = [];
    for (let i = 0; i < 5; i++) ids.unshift((await trigger({ tags: [tag], ...delayed }, { payload: `${i}` })).id);
    const { mirror, ok, synced } = await watch(socket, 1, { tag, status: "DELAYED" });
    assert.equal(ok.mode, "snapshot");
    await synced();
    assert.deepEqual(mirror.ids, ids);
    assert.deepEqual([...mirror.runs.values()].map(({ fields }) => fields.payload), ["4", "3", "2", "1", "0"]);
    const left = await cancel(ids[2]);
    await synced(left);
    assert.deepEqual(mirror.ids, ids.filter((id) => id !== ids[2]));
    const came = await trigger({ tags: [tag], ...delayed });
    await synced(came.seq);
    assert.deepEqual(mirror.ids, await list(`filter[tag]=${tag}&filter[status]=DELAYED`));
    assert.equal(mirror.begins, 1);
  });

  test("a run leaves the list of a tag that a trailing debounce takes from it", async (t) => {
    const tag = fresh("tag"), socket = await connect(t), options = { debounce: { key: tag, delay: "1h", mode: "trailing" } };
    const { id } = await trigger({ tags: [tag], ...options });
    const { mirror, synced } = await watch(socket, 1, { tag });
    await synced();
    assert.deepEqual(mirror.ids, [id]);
    const pushed = await trigger({ tags: [fresh("other")], ...options });
    await synced(pushed.seq);
    assert.deepEqual([pushed.id, mirror.ids], [id, []]);
  });

  test("with rootOnly, runs that other runs have triggered are left out of rows and counts", async (t) => {
    const tag = fresh("tag"), socket = await connect(t), { id } = await trigger({ tags: [tag], ...delayed });
    const { mirror, synced, counted } = await watch(socket, 1, { tag, rootOnly: true }, { counts: true });
    await synced();
    const below = await trigger({ tags: [tag], ...delayed, parentRunId: id }), next = await trigger({ tags: [tag], ...delayed });
    await synced(next.seq);
    assert.deepEqual(mirror.ids, [next.id, id]);
    assert.ok(!mirror.runs.has(below.id));
    await counted(2);
    socket.send({ op: "watch", id: 2, filter: { rootOnly: "yes" } });
    assert.match((await socket.next((message) => message.id === 2)).message, /filter\.rootOnly: must be true or false/);
  });

  test("a change of a run in the list arrives as a delta", async (t) => {
    const tag = fresh("tag"), socket = await connect(t), { id } = await trigger({ tags: [tag], ...delayed });
    const { mirror, synced } = await watch(socket, 1, { tag });
    await synced();
    socket.send({ op: "ping" }); // an unknown operation: messages that arrive before its answer were sent before
    const seq = await write("PUT", `/api/v1/runs/${id}/metadata`, { metadata: { step: 1 } });
    const message = await socket.next("list");
    assert.deepEqual(Object.keys(message.rows[0][2]).includes("payload"), false);
    assert.equal(message.rows[0].length, 3);
    mirror.take(message);
    assert.deepEqual(mirror.runs.get(id).fields.metadata, { step: 1 });
    assert.ok(mirror.seq >= seq);
  });

  test("a newer run replaces the oldest, and an older one returns when there is room", async (t) => {
    const tag = fresh("tag"), socket = await connect(t), ids = [];
    const add = async () => { const { id, seq } = await trigger({ tags: [tag], ...delayed }); ids.unshift(id); return seq; };
    for (let i = 0; i < 4; i++) await add();
    const { mirror, synced } = await watch(socket, 1, { tag, status: ["DELAYED"] }, { limit: 3 });
    await synced();
    assert.deepEqual(mirror.ids, ids.slice(0, 3));
    await synced(await add());
    assert.deepEqual(mirror.ids, ids.slice(0, 3));
    await synced(await cancel(ids[0]));
    await synced(await cancel(ids[1]));
    assert.deepEqual(mirror.ids, ids.slice(2, 5));
  });

  test("older runs are read from the store, as often as many leave", { timeout: 240_000 }, async (t) => {
    const tag = fresh("tag"), socket = await connect(t), items = Array.from({ length: 500 }, () => ({ task: "task", options: { tags: [tag], ...delayed } }));
    for (let i = 0; i < 2; i++) assert.equal((await gateway.post("/api/v2/tasks/batch", { items })).status, 202);
    const { mirror, synced } = await watch(socket, 1, { tag, status: "DELAYED" }, { limit: 200 });
    await synced();
    for (let round = 0; round < 4; round++) {
      const page = await list(`filter[tag]=${tag}&filter[status]=DELAYED&page[size]=100`);
      await synced(Math.max(...await Promise.all(page.map(cancel))));
      const first = await gateway.get(encodeURI(`/api/v1/runs?filter[tag]=${tag}&filter[status]=DELAYED&page[size]=100`));
      const rest = await gateway.get(encodeURI(`/api/v1/runs?filter[tag]=${tag}&filter[status]=DELAYED&page[size]=100&page[after]=${first.json.pagination.next}`));
      assert.deepEqual(mirror.ids, [...first.json.data, ...rest.json.data].map(({ id }) => id));
    }
  });

  test("an empty list is reported as empty", async (t) => {
    const socket = await connect(t), { mirror, synced } = await watch(socket, 7, { tag: fresh("nothing") }, { counts: true });
    await synced();
    assert.deepEqual(mirror.ids, []);
  });

  test("several lists and subscriptions of one connection do not mix", async (t) => {
    const [one, two] = [fresh("tag"), fresh("tag")], socket = await connect(t);
    await subscribe(socket, 9, { tags: [one] });
    const first = await watch(socket, 1, { tag: one }), second = await watch(socket, 2, { tag: [one, two] });
    const { id } = await trigger({ tags: [one], ...delayed }), { id: other, seq } = await trigger({ tags: [two], ...delayed });
    await second.synced(seq);
    assert.deepEqual(second.mirror.ids, [other, id]);
    await first.synced(seq - 1);
    assert.deepEqual(first.mirror.ids, [id]);
    const patch = await socket.next("patch");
    assert.deepEqual(patch.rows.map(([run]) => run), [id]);
    socket.send({ op: "unsub", id: 1 });
    assert.equal((await socket.next("end")).id, 1);
    const third = await trigger({ tags: [one], ...delayed });
    await second.synced(third.seq);
    assert.equal(socket.messages.filter(({ op, id: about }) => op === "list" && about === 1).length, 0);
  });

  test("msgpack has the same content", async (t) => {
    const tag = fresh("tag"), socket = await connect(t, { protocol: "runs.v1.msgpack" });
    const { mirror, synced } = await watch(socket, 1, { tag, status: "DELAYED" }, { counts: true });
    const { id, seq } = await trigger({ tags: [tag], ...delayed }, { payload: { a: 1 } });
    await synced(seq);
    assert.deepEqual(mirror.runs.get(id).fields.payload, { a: 1 });
    await synced(await cancel(id));
    assert.deepEqual(mirror.ids, []);
  });

  test("with \"every\" changes are merged", async (t) => {
    const tag = fresh("tag"), socket = await connect(t, { hello: { every: 200 } });
    const { mirror, synced } = await watch(socket, 1, { tag });
    await synced();
    let last;
    for (let i = 0; i < 20; i++) last = await trigger({ tags: [tag], ...delayed });
    await synced(last.seq);
    assert.equal(mirror.ids.length, 20);
    assert.ok(mirror.frames < 15, `${mirror.frames} frames`);
  });

  test("a client that does not read for a while gets what it missed, then continues", { timeout: 240_000 }, async (t) => {
    const tag = fresh("tag"), socket = await connect(t), { id } = await trigger({ tags: [tag], ...delayed });
    const { mirror, synced } = await watch(socket, 1, { tag }, { limit: 5 });
    await synced();
    socket.pause();
    const large = "x".repeat(200_000);
    let seq = 0;
    for (let i = 0; i < 60; i++) ({ seq } = await trigger({ tags: [tag], ...delayed }, { payload: large }));
    seq = Math.max(seq, await write("PUT", `/api/v1/runs/${id}/metadata`, { metadata: { large } }));
    socket.resume();
    await synced(seq);
    assert.deepEqual(mirror.ids, (await list(`filter[tag]=${tag}&page[size]=5`)));
  });

  test("a client that was away for longer than departures are kept gets the whole list again", { timeout: 240_000 }, async (t) => {
    const tag = fresh("tag"), socket = await connect(t), large = "x".repeat(300_000);
    const { mirror, synced } = await watch(socket, 1, { tag, status: "DELAYED" }, { limit: 10 });
    await synced();
    socket.pause();
    for (let i = 0; i < 60; i++) await trigger({ tags: [tag], ...delayed }, { payload: large });
    let seq;
    for (let i = 0; i < 260; i++) {
      const { id } = await trigger({ tags: [tag], ...delayed });
      seq = await cancel(id);
    }
    socket.resume();
    await synced(seq);
    assert.deepEqual(mirror.ids, await list(`filter[tag]=${tag}&filter[status]=DELAYED&page[size]=10`));
    assert.equal(mirror.begins, 2);
  });
});

describe("runs that are only in the store", () => {
  test("are in the list and in the counts: evicted ones, and those from before a restart", { timeout: 240_000 }, async (t) => {
    const tag = fresh("old"), ids = [], body = (i) => `${i}`.padEnd(100_000, "x");
    await gateway.stop();
    await gateway.restart({ options: ["--memory", "1m"] });
    for (let i = 0; i < 30; i++) {
      const { id } = await trigger({ tags: [tag], ...delayed }, { payload: body(i) });
      ids.unshift(id);
      await cancel(id);
    }
    await until(async () => (await gateway.metric("runcast_evicted_runs_total")) > 15);
    const expected = ids.slice(0, 20).map((_, i) => body(29 - i));
    for (const life of [1, 2]) {
      const socket = await connect(t), { mirror, synced, counted } = await watch(socket, 1, { tag }, { limit: 20, counts: true });
      await synced();
      assert.deepEqual(mirror.ids, ids.slice(0, 20), `life ${life}`);
      assert.ok([...mirror.runs.values()].every(({ fields }, i) => fields.payload === expected[i]));
      await counted(30);
      assert.deepEqual(mirror.counts.byStatus, { CANCELED: 30 });
      await synced(await write("POST", `/api/v1/runs/${ids[15]}/tags`, { tags: [fresh("late")] }));
      assert.equal(mirror.runs.get(ids[15]).fields.tags.length, 1 + life);
      await gateway.stop();
      await gateway.restart();
    }
  });
});

describe("counts", () => {
  test("agree with REST, for a list, a tag, a batch and all runs", async (t) => {
    const tag = fresh("tag"), socket = await connect(t);
    for (let i = 0; i < 3; i++) await trigger({ tags: [tag], ...delayed });
    await trigger({ tags: [tag, fresh("b")] });
    const made = (await gateway.post("/api/v2/tasks/batch", { items: Array.from({ length: 5 }, () => ({ task: "other", options: delayed })) })).json;
    const listed = await watch(socket, 1, { tag }, { counts: true });
    await listed.counted(4);
    assert.deepEqual(listed.mirror.counts.byStatus, { DELAYED: 3, QUEUED: 1 });
    assert.deepEqual(await counts(`filter[tag]=${tag}`), { byStatus: { DELAYED: 3, QUEUED: 1 }, total: 4 });
    for (const [id, filter, total] of [[2, { tags: [tag] }, 4], [3, { batch: made.id }, 5]]) {
      await subscribe(socket, id, { ...filter, counts: true });
      const message = await socket.next((one) => one.op === "counts" && one.id === id);
      assert.equal(message.total, total);
    }
    await subscribe(socket, 4, { all: true, counts: true });
    const all = await socket.next((one) => one.op === "counts" && one.id === 4);
    assert.deepEqual({ byStatus: all.byStatus, total: all.total }, await counts(""));
    const batch = (await gateway.get(`/api/v2/batches/${made.id}`)).json;
    assert.deepEqual(batch.counts, { byStatus: { DELAYED: 5 }, total: 5 });
    await cancel(batch.runs[0]);
    const message = await socket.next((one) => one.op === "counts" && one.id === 3);
    assert.deepEqual(message.byStatus, { DELAYED: 4, CANCELED: 1 });
    socket.send({ op: "unsub", id: 3 });
    await socket.next("end");
    await cancel(batch.runs[1]);
    await socket.next((one) => one.op === "counts" && one.id === 4);
    assert.equal(socket.messages.filter((one) => one.op === "counts" && one.id === 3).length, 0);
  });

  test("report a batch's progress in a few small messages", async (t) => {
    const socket = await connect(t), items = Array.from({ length: 500 }, () => ({ task: "task", options: delayed }));
    const { id: batch } = (await gateway.post("/api/v2/tasks/batch", { items })).json;
    await subscribe(socket, 1, { batch, counts: true });
    const { runs } = (await gateway.get(`/api/v2/batches/${batch}`)).json, began = Date.now();
    await Promise.all(runs.map(cancel));
    let messages = 0, last;
    do {
      last = await socket.next("counts");
      messages++;
    } while (last.byStatus.CANCELED !== 500);
    assert.ok(messages <= 3 + (Date.now() - began) / 250, `${messages} messages in ${Date.now() - began} ms`);
  });
});

describe("credentials", () => {
  const refusal = async (socket, message) => {
    socket.send({ op: "watch", id: 1, ...message });
    return socket.next((one) => one.op === "error" || one.op === "ok");
  };

  test("a token needs the same scope as for the same list over REST", async (t) => {
    const cases = [[["read:runs"], {}, true], [["read:tasks"], {}, true], [["read:tasks:a", "read:tasks:b"], { taskIdentifier: ["a", "b"] }, true],
      [["read:tasks:a"], { taskIdentifier: ["a", "b"] }, false], [["read:tasks:a"], {}, false], [["read:tags:x"], { tag: "x" }, false], [["write:tasks"], {}, false]];
    for (const [scopes, filter, may] of cases) {
      const token = await publicToken(gateway, { scopes }), socket = await connect(t, { token });
      const answer = await refusal(socket, { filter });
      assert.equal(answer.op, may ? "ok" : "error", `${scopes} ${JSON.stringify(filter)}`);
      if (!may) assert.equal(answer.code, "forbidden");
      const query = filter.taskIdentifier ? `?filter[taskIdentifier]=${filter.taskIdentifier}` : filter.tag ? `?filter[tag]=${filter.tag}` : "";
      for (const path of ["/api/v1/runs", "/api/v1/runs/counts"]) assert.equal((await gateway.get(encodeURI(path + query), { key: token })).status, may ? 200 : 403, `${path} ${scopes}`);
      await socket.cut();
    }
  });

  test("a new token that no longer allows a watch ends it", async (t) => {
    const wide = await publicToken(gateway, { scopes: ["read:runs"] }), narrow = await publicToken(gateway, { scopes: ["read:tags:x"] });
    const socket = await connect(t, { token: wide }), { synced } = await watch(socket, 1, { tag: fresh("tag") });
    await synced();
    socket.send({ op: "auth", token: narrow });
    assert.deepEqual(await socket.next("end"), { op: "end", id: 1, code: "forbidden" });
  });

  test("a list contains nothing of another environment", async (t) => {
    const tag = fresh("tag"), prod = await connect(t, { token: keys.prod });
    const { mirror, synced, counted } = await watch(prod, 1, { tag }, { counts: true });
    await trigger({ tags: [tag], ...delayed });
    const own = await trigger({ tags: [tag], ...delayed }, { key: keys.prod });
    await synced(own.seq);
    await counted(1);
    assert.deepEqual(mirror.ids, [own.id]);
  });

  test("an invalid watch is refused by the name of its fault", async (t) => {
    const socket = await connect(t);
    for (const [message, code, words] of [
      [{ filter: { status: "SLEEPING" } }, "bad_member", /filter\[status\]: "SLEEPING" is not a status/],
      ...[[], "", [""], null].map((tag) => [{ filter: { tag } }, "bad_member", /filter\.tag: empty, and without it the list would have more runs/]),
      [{ filter: { tags: ["x"] } }, "bad_member", /filter\.tags: unknown filter, and without it the list would have more runs/],
      [{ filter: { tag: 5 } }, "bad_member", /filter\.tag: must be a string or a list/],
      [{ filter: [] }, "bad_member", /filter: must be an object/],
      [{ filter: { period: "soon" } }, "bad_member", /duration/],
      [{ filter: { period: "1d", from: 5 } }, "bad_member", /filter\.period/],
      [{ limit: 201 }, "bad_member", /limit: not an integer from 1 to 200/],
      [{ limit: 0 }, "bad_member", /limit/],
      [{ counts: "yes" }, "bad_member", /counts: neither true nor false/],
      [{ id: undefined }, "bad_member", /id/],
    ]) {
      const answer = await refusal(socket, message);
      assert.equal(answer.code, code, JSON.stringify(answer));
      assert.match(answer.message, words);
    }
    socket.send({ op: "sub", id: 2, run: "run_x", counts: true });
    assert.match((await socket.next("error")).message, /counts: not for a single run/);
    assert.deepEqual((await refusal(socket, { limits: 5 })).ignored, ["limits"]);
  });

  test("a connection has at most sixteen, counts of subscriptions among them, and one per id", async (t) => {
    const socket = await connect(t), { watches, watchLimit } = socket.welcome.limits;
    assert.deepEqual([watches, watchLimit], [16, 200]);
    await watch(socket, 100, {});
    assert.equal((await refusal(socket, { id: 100 })).code, "duplicate_id");
    await subscribe(socket, 101, { all: true, counts: true });
    for (let id = 102; id < 116; id++) await watch(socket, id, { tag: fresh("tag") });
    assert.match((await refusal(socket, { id: 200 })).message, /too many watches/);
    socket.send({ op: "sub", id: 200, all: true, counts: true });
    assert.match((await socket.next("error")).message, /too many watches/);
    socket.send({ op: "unsub", id: 101 });
    await socket.next("end");
    await watch(socket, 201, {});
  });

  test("an environment has at most 1024 filters, and equal ones count once", { timeout: 180_000 }, async (t) => {
    const sockets = [];
    for (let i = 0; i < 64; i++) {
      const socket = await connect(t);
      sockets.push(socket);
      for (let k = 0; k < 16; k++) socket.send({ op: "watch", id: k, filter: { tag: `many-${i}-${k}` }, limit: 1 });
    }
    for (const socket of sockets) for (let k = 0; k < 16; k++) await socket.next("ok");
    const socket = await connect(t);
    assert.match((await refusal(socket, { filter: { tag: "one more" } })).message, /too many different filters/);
    assert.equal((await refusal(socket, { id: 2, filter: { tag: ["many-0-0", "many-0-0"] } })).op, "ok");
    await Promise.all(sockets.map((one) => one.cut()));
    await until(async () => (await gateway.metric("runcast_subscriptions")) <= 1);
    assert.equal((await refusal(socket, { id: 3, filter: { tag: "one more" } })).op, "ok");
  });

  test("a filter counts once for each sixteen values that it names", { timeout: 180_000 }, async (t) => {
    await until(async () => (await gateway.metric("runcast_subscriptions")) === 0);
    const long = (name, count = 100) => ({ version: Array.from({ length: count }, (_, i) => `${name}-${i}`) });
    for (let i = 0; i < 9; i++) {
      const socket = await connect(t);
      for (let k = 0; k < 16; k++) await watch(socket, k, long(`${i}-${k}`));
    }
    const socket = await connect(t);
    for (const id of [1, 2]) assert.equal((await refusal(socket, { id, filter: long(`last-${id}`) })).op, "ok"); // (9 * 16 + 2) * 7 = 1022
    assert.match((await refusal(socket, { id: 3, filter: long("more") })).message, /too many different filters .*counts as 7 because it names 100 values/);
    assert.equal((await refusal(socket, { id: 3, filter: long("shorter", 32) })).op, "ok");
    assert.equal((await refusal(socket, { id: 4, filter: long("0-0") })).op, "ok");
    assert.match((await refusal(socket, { id: 5, filter: { tag: "one more" } })).message, /too many different filters .*try again later, or narrow/);
  });
});

describe("an event stream", () => {
  const open = (query, more) => EventStream.open(`${gateway.url}/realtime/v1/events?${query}`, { headers: { authorization: `Bearer ${keys.dev}` }, ...more });

  test("watches with the parameters of a list, without a position", async () => {
    const tag = fresh("tag"), first = await trigger({ tags: [tag], ...delayed });
    const stream = await open(`watch=1&filter[tag]=${tag}&filter[status]=DELAYED&limit=5&counts=1`), mirror = new WatchMirror(5);
    const take = () => { for (; stream.taken < stream.events.length; stream.taken++) { const message = stream.events[stream.taken].data; if (["list", "counts"].includes(message.op)) mirror.take(message); } };
    await until(() => { take(); return mirror.ids.length === 1 && mirror.counts?.total === 1; });
    assert.deepEqual(mirror.ids, [first.id]);
    await cancel(first.id);
    await until(() => { take(); return mirror.ids.length === 0 && mirror.counts.total === 0; });
    assert.equal(stream.id, "");
    stream.controller.abort();
  });

  test("refuses what the list refuses", async () => {
    for (const [query, status, words] of [["watch=1&filter[status]=NO", 400, /not a status/], ["watch=2", 400, /watch: not 1/], ["watch=1&limit=900", 400, /limit/], ["watch=1&counts=0", 400, /counts: not 1/],
      ["watch=1&run=run_x", 400, /"run: a watch has none; use filter\[tag\]/], ["watch=1&all=1", 400, /"all: /], ["watch=1&since=1h", 400, /"since: /]]) {
      const { status: got, text } = await open(query);
      assert.equal(got, status, text);
      assert.match(text, words);
    }
    const token = await publicToken(gateway, { scopes: ["read:tags:x"] });
    assert.equal((await open("watch=1", { headers: { authorization: `Bearer ${token}` } })).status, 403);
  });
});
