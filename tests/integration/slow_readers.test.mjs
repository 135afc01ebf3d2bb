// A slow reader is alive; a client that neither reads nor sends anything is not. In real time: the buffers that both
// kernels have for a reader do not follow a clock that we set.
import assert from "node:assert/strict";
import net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import test from "node:test";

import { keys, until } from "../support/js/gateway.mjs";
import { begin, end, fresh, gateway, putMetadata, trigger } from "../support/js/realtime.mjs";
import { frame, opcodes, parseFrames, upgradeRequest } from "../support/js/websocket.mjs";

const minutes = 3, steps = 4; // steps: reads per second

/** A WebSocket that reads that many bytes a second from its kernel, and answers pings when it reaches them. */
class SlowReader {
  constructor(target, rate, { headers, onMessage = () => {} } = {}) {
    Object.assign(this, { rest: Buffer.alloc(0), parts: [], taken: 0, onMessage, close: null });
    const buffer = Buffer.alloc(Math.max(1, Math.floor(rate / steps)));
    this.asked = buffer.length; // once by connecting
    this.socket = net.connect({ port: gateway.port, host: "127.0.0.1", noDelay: true,
      onread: { buffer, callback: (size) => { this.#take(Buffer.from(buffer.subarray(0, size))); return this.fast === true; } } });
    this.socket.on("error", () => {});
    this.socket.write(upgradeRequest(target, headers));
    this.timer = setInterval(() => { this.asked += buffer.length; this.socket.resume(); }, 1000 / steps);
    this.closed = new Promise((resolve) => this.socket.on("close", () => { clearInterval(this.timer); this.close ??= "cut"; resolve(this.close); }));
  }

  send(text) { this.socket.write(frame(opcodes.text, text)); }
  hurry() { this.fast = true; this.socket.resume(); }
  cut() { this.socket.destroy(); return this.closed; }

  #take(bytes) {
    this.taken += bytes.length;
    this.rest = Buffer.concat([this.rest, bytes]);
    if (!this.upgraded) {
      const head = this.rest.indexOf("\r\n\r\n");
      if (head < 0) return;
      this.upgraded = true;
      this.rest = this.rest.subarray(head + 4);
    }
    const [frames, rest] = parseFrames(this.rest);
    this.rest = rest;
    for (const { opcode, payload } of frames) {
      if (opcode === opcodes.ping) this.socket.write(frame(opcodes.pong, payload));
      else if (opcode === opcodes.close) this.close = `${payload.readUInt16BE(0)} ${payload.subarray(2)}`;
      else this.onMessage(payload.toString(), this);
    }
  }
}

/** Subscribes to a tag and keeps the newest metadata of each run. */
function mirror(tag, rate) {
  const runs = new Map();
  const reader = new SlowReader(`/realtime/v1/ws?token=${keys.dev}`, rate, { onMessage: (text) => {
    for (const [id, version, { metadata }] of JSON.parse(text).rows ?? []) {
      const known = runs.get(id);
      assert.ok(!known || version > known.version, `${id} goes from ${known?.version} to ${version}`);
      runs.set(id, { version, metadata: metadata ?? known?.metadata });
    }
  } });
  reader.send(JSON.stringify({ op: "sub", id: 1, tags: [tag] }));
  return Object.assign(reader, { runs, rate });
}

/** Changes runs of the tag until the time is up; returns their last metadata. */
async function goOn(ids, ms) {
  const newest = new Map();
  const text = "x".repeat(3000);
  for (let i = 0, over = Date.now() + ms; Date.now() < over || newest.size < ids.length; i++) {
    const id = ids[i % ids.length];
    newest.set(id, { i, text });
    await putMetadata(id, { i, text });
    await sleep(40); // many times as much as they read
  }
  return newest;
}

test("three minutes of changes", { timeout: 390_000 }, async (t) => {
  await begin();
  t.after(end);
  const tag = fresh("slow"), quiet = fresh("quiet");
  const ids = [];
  for (let i = 0; i < 40; i++) ids.push((await trigger({ tags: [tag] })).id);

  const slow = [4096, 1024].map((rate) => mirror(tag, rate));
  const silent = [mirror(tag, 0), mirror(quiet, 0)]; // these read nothing, one with many changes and one with none
  for (const one of silent) one.socket.on("connect", () => { clearInterval(one.timer); one.socket.pause(); });
  const notices = new SlowReader("/socket.io/?EIO=4&transport=websocket", 1024, {
    headers: { authorization: `Bearer ${keys.dev}` },
    onMessage: (text, reader) => {
      if (text === "2") reader.send("3");
      if (text.startsWith("3")) reader.send(`2${"x".repeat(40_000)}`); // so there is always a response to be read
    },
  });
  notices.send("40/dev-worker,");
  notices.send(`2${"x".repeat(40_000)}`);
  t.after(() => Promise.all([...slow, ...silent, notices].map((reader) => reader.cut())));
  const open = () => gateway.metric('runcast_connections{kind="ws"}');
  await until(async () => (await open()) >= 5, { what: "all are connected" });

  const began = Date.now();
  const over = until(async () => (await open()) <= 3, { timeoutMs: 300_000, what: "the silent ones are closed" })
    .then(() => Date.now() - began);
  const newest = await goOn(ids, minutes * 60_000);

  await t.test("do not cut readers of 4 KiB or 1 KiB a second", () => {
    for (const reader of [...slow, notices]) assert.equal(reader.close, null);
    for (const { asked, taken } of slow) // they had data to read all the time
      assert.ok(taken > asked * 2 / 3 && taken <= asked, `${taken} of ${asked} bytes in ${minutes} minutes`);
  });
  await t.test("end clients that read nothing and send nothing", async () => {
    const ms = await over;
    assert.ok(ms > 60_000, `closed after ${ms} ms`);
  });
  await t.test("leave slow readers with the same state as everyone", async () => {
    for (const reader of slow) {
      reader.hurry();
      await until(() => [...newest].every(([id, { i }]) => reader.runs.get(id)?.metadata?.i === i), { timeoutMs: 60_000, what: "the newest of all" });
    }
  });
});
