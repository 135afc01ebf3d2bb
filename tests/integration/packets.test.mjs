// Packets and their signed URLs: long ones are read from the store while they are sent.
import assert from "node:assert/strict";
import crypto from "node:crypto";
import { test } from "node:test";

import { startGateway, until } from "../support/js/gateway.mjs";

const MIB = 1 << 20;
const target = ({ json: { presignedUrl } }) => presignedUrl.slice(new URL(presignedUrl).origin.length);

/** Uploads a packet; returns the target that reads it. */
async function store(gateway, name, bytes, headers = {}) {
  const upload = target(await gateway.put(`/api/v2/packets/${name}`));
  const answer = await fetch(new URL(upload, gateway.url), { method: "PUT", body: bytes, headers });
  assert.equal(answer.status, 200);
  return target(await gateway.get(`/api/v1/packets/${name}`));
}

/** A reader that has taken only the first bytes of the response. */
async function beginReading(gateway, t, url, { half = false } = {}) {
  const reader = await gateway.connect();
  t.after(() => reader.destroy());
  reader.socket.once("data", () => reader.pause());
  reader.send(`GET ${url} HTTP/1.1\r\nhost: x\r\n\r\n`);
  if (half) reader.end();
  await reader.read((text) => text.includes("\r\n\r\n"), { what: "the head" });
  return reader;
}

function split({ received }) {
  const at = received.indexOf("\r\n\r\n");
  return { head: received.subarray(0, at).toString(), body: received.subarray(at + 4) };
}

/** Reads until that much of the body is there, or to the end. */
async function readOn(reader, length) {
  reader.resume();
  await until(() => reader.ended || reader.received.length > length, { what: "the rest", timeoutMs: 60_000 });
  return split(reader);
}

test("packets of any length come back byte for byte, with their type", async (t) => {
  const gateway = await startGateway({ t });
  const types = ["", "application/json", "a/".padEnd(128, "x")];
  const lengths = [0, 1, 256 * 1024 - 1, 256 * 1024, ...[-130, -2, -1, 0, 1].map((more) => MIB + more), 2 * MIB, 10 * MIB];
  for (const [i, length] of lengths.entries()) {
    const bytes = crypto.randomBytes(length), type = types[i % types.length];
    const url = new URL(await store(gateway, `a/${i}`, bytes, type ? { "content-type": type } : {}), gateway.url);
    const head = await fetch(url, { method: "HEAD" });
    assert.equal(head.headers.get("content-length"), String(length));
    assert.equal(head.headers.get("content-type"), type || null);
    const answer = await fetch(url);
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get("content-length"), String(length));
    assert.equal(answer.headers.get("content-type"), type || null);
    assert.ok(Buffer.from(await answer.arrayBuffer()).equals(bytes), `${length} bytes`);
  }
  await gateway.stop();
});

test("a packet that is overwritten while it is read is cut, and never mixed", async (t) => {
  const gateway = await startGateway({ t });
  const url = await store(gateway, "p", Buffer.alloc(10 * MIB, "x"));
  const reader = await beginReading(gateway, t, url);
  await store(gateway, "p", Buffer.alloc(10 * MIB, "y"));
  const { head, body } = await readOn(reader, Infinity);
  assert.match(head, /content-length: 10485760/i);
  assert.ok(body.length < 10 * MIB, `${body.length} bytes came`);
  assert.ok(!body.includes("y"));
  assert.ok(Buffer.from(await (await fetch(new URL(url, gateway.url))).arrayBuffer()).equals(Buffer.alloc(10 * MIB, "y")));
  await gateway.stop();
});

test("a reader can close its sending half, leave in the middle, or request the next packet", async (t) => {
  const gateway = await startGateway({ t });
  const bytes = crypto.randomBytes(10 * MIB);
  const url = await store(gateway, "p", bytes);
  const half = await beginReading(gateway, t, url, { half: true });
  for (let i = 0; i < 5; i++) (await beginReading(gateway, t, url)).reset();
  for (let i = 0; i < 5; i++) (await beginReading(gateway, t, url, { half: true })).reset();
  assert.ok((await readOn(half, Infinity)).body.equals(bytes));

  const twice = await beginReading(gateway, t, url);
  const { head } = split(twice);
  twice.send(`GET ${url} HTTP/1.1\r\nhost: x\r\n\r\n`);
  const length = head.length + 4 + bytes.length;
  await readOn(twice, 2 * length - 1);
  assert.ok(twice.received.subarray(head.length + 4, length).equals(bytes));
  assert.ok(twice.received.subarray(-bytes.length).equals(bytes));
  await gateway.stop();
});

test("a packet that is being read is sent completely when the gateway drains", async (t) => {
  const gateway = await startGateway({ t });
  const bytes = crypto.randomBytes(10 * MIB);
  const reader = await beginReading(gateway, t, await store(gateway, "p", bytes));
  const left = await beginReading(gateway, t, target(await gateway.get("/api/v1/packets/p")));
  const stopped = gateway.stop();
  await until(async () => (await gateway.get("/readyz", { key: null })).status === 503, { what: "the drain" });
  left.destroy();
  assert.ok((await readOn(reader, Infinity)).body.equals(bytes));
  await stopped;
});
