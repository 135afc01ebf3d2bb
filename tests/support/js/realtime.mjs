// Shared by the tests of runs.v1: a gateway, and helpers for its messages.
import assert from "node:assert/strict";

import { keys, startGateway } from "./gateway.mjs";
import { RunsSocket } from "./runs.mjs";

export const alwaysSent = ["id", "taskIdentifier", "status", "createdAt", "updatedAt", "tags", "batchId"];
export const everyField = [...alwaysSent, "payload", "output", "number", "durationMs", "costInCents", "baseCostInCents", "idempotencyKey",
  "expiredAt", "ttl", "finishedAt", "startedAt", "delayedUntil", "queuedAt", "metadata", "error", "isTest", "version", "attemptCount"];

export let gateway;
let names = 0;
/** number() and fresh() return a number and a name that no other test uses. */
export const number = () => ++names;
export const fresh = (what) => `${what}-${number()}`;

export async function begin() { gateway = await startGateway(); }
export const end = () => gateway.stop();

/** Opens a socket and waits for its welcome. It is closed when the test ends. */
export async function connect(t, { to = gateway, token = keys.dev, hello = {}, ...more } = {}) {
  const socket = await RunsSocket.open({ port: to.port, token, hello, ...more });
  t.after(() => socket.cut());
  if (hello) socket.welcome = await socket.next("welcome");
  return socket;
}

/** Subscribes, and receives frames until the subscription is complete. */
export async function subscribe(socket, id, filter) {
  socket.send({ op: "sub", id, ...filter });
  const ok = await socket.next((message) => message.op === "ok" && message.id === id);
  const rows = [];
  for (;;) {
    const message = await socket.next((one) => one.op === "rows" && one.id === id);
    rows.push(...message.rows);
    if (!message.more) return { ok, rows, seq: message.seq };
  }
}

/** Triggers a run; returns { id, seq }. */
export async function trigger(options = {}, { task = "task", payload, to = gateway, ...more } = {}) {
  const { status, json, headers, text } = await to.post(`/api/v1/tasks/${task}/trigger`, { payload, options }, more);
  assert.equal(status, 200, text);
  return { id: json.id, seq: Number(headers["x-runs-seq"].split(".")[1]) };
}

/** Sends a write; returns the position at which it is visible. */
export async function write(method, target, body, more) {
  const { status, headers, text } = await gateway.http.request(method, target, { body, ...more });
  assert.ok(status < 300, `${method} ${target}: ${status} ${text}`);
  return Number(headers["x-runs-seq"].split(".")[1]);
}
export const putMetadata = (id, metadata) => write("PUT", `/api/v1/runs/${id}/metadata`, { metadata });
export const addTag = (id, tag) => write("POST", `/api/v1/runs/${id}/tags`, { tags: [tag] });

/** Waits until the server closes the connection; returns { code, reason }. */
export async function closing(socket, timeoutMs = 30_000) {
  let timer;
  const late = new Promise((_resolve, reject) => { timer = setTimeout(() => reject(new Error(`still open after ${timeoutMs} ms`)), timeoutMs); });
  return Promise.race([socket.closed, late]).finally(() => clearTimeout(timer));
}

export const patch = (socket) => socket.next("patch");
