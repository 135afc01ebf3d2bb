// SIGTERM: which clients can make a draining gateway wait, and which cannot.
import assert from "node:assert/strict";
import { test } from "node:test";

import { keys, startGateway } from "../support/js/gateway.mjs";
import { target as noticesTarget } from "../support/js/notices.mjs";
import { RunsSocket } from "../support/js/runs.mjs";
import { upgradeRequest } from "../support/js/websocket.mjs";

const options = ["--drain-timeout", "10m"];

test("an unauthenticated, silent WebSocket is closed before the known ones are asked to leave", async (t) => {
  const gateway = await startGateway({ t, options });
  const mute = await gateway.connect();
  await mute.send(upgradeRequest("/realtime/v1/ws"));
  await mute.read((text) => text.endsWith("\r\n\r\n"));
  mute.take();
  const known = await RunsSocket.open({ port: gateway.port, token: keys.dev, hello: {} });
  await known.next("welcome");
  const order = [];
  const closed = [mute.readToEnd({ timeoutMs: 60_000 }).then((text) => order.push(["mute", text.slice(4)])), known.closed.then(({ reason }) => order.push(["known", reason]))];
  gateway.child.kill("SIGTERM");
  await known.next("drain");
  assert.deepEqual(await gateway.ended(), { code: 0, signal: null });
  await Promise.all(closed);
  assert.deepEqual(order, ["mute", "known"].map((who) => [who, "the gateway is shutting down"]));
});

test("an unauthenticated notice socket that does not answer its close does not delay the stop", async (t) => {
  const gateway = await startGateway({ t, options: ["--drain-timeout", "6s"] }); // the known socket leaves after 2 s
  const mute = await gateway.connect();
  await mute.send(upgradeRequest(noticesTarget));
  await mute.read((text) => text.includes('0{"sid"'));
  mute.take();
  const known = await RunsSocket.open({ port: gateway.port, token: keys.dev, hello: {} });
  await known.next("welcome");
  const order = [];
  const closed = [mute.readToEnd({ timeoutMs: 60_000 }).then((text) => order.push(["mute", /the gateway is shutting down$/.test(text)])), known.closed.then(({ reason }) => order.push(["known", reason]))];
  gateway.child.kill("SIGTERM");
  assert.deepEqual(await gateway.ended(), { code: 0, signal: null });
  await Promise.all(closed);
  assert.deepEqual(order, [["mute", true], ["known", "the gateway is shutting down"]]);
});

test("half a body with a valid key is answered with 408, and a complete body is answered", async (t) => {
  const gateway = await startGateway({ t, options });
  const post = (path, more = "") => `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${keys.dev}\r\ncontent-type: application/json\r\ncontent-length: 13\r\n${more}\r\n{"payl`;
  const [half, stream, whole] = [await gateway.connect(), await gateway.connect(), await gateway.connect()];
  await half.send(post("/api/v1/tasks/half/trigger"));
  await stream.send(post("/realtime/v1/streams/run_1/self/a", "x-client-id: c\r\n"));
  await whole.send(post("/api/v1/tasks/whole/trigger"));
  await gateway.get("/healthz"); // the heads have arrived when this is answered
  gateway.child.kill("SIGTERM");
  await whole.send('oad":1}');
  assert.match(await whole.readToEnd(), /^HTTP\/1\.1 200 /);
  assert.match(await half.readToEnd(), /^HTTP\/1\.1 408 .*The body came too slowly/s);
  await stream.readToEnd();
  assert.deepEqual(await gateway.ended(), { code: 0, signal: null });
  assert.equal((gateway.stderr.match(/"event":"draining"/g) ?? []).length, 1);
});
