// HTTP/1.1 on the real program: what browsers, proxies and careless clients send. Tables of bytes, cut at every offset,
// and slow clients are unit tests.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { freePort, keys, startGateway, until } from "../support/js/gateway.mjs";

let gateway;
before(async () => { gateway = await startGateway(); });
after(() => gateway.stop());

const request = (method, target, more) => gateway.http.request(method, target, more);
const head = (text) => text.slice(0, text.indexOf("\r\n\r\n")).toLowerCase();

/** Sends bytes on a new connection and returns everything until the peer closes. */
async function raw(t, bytes) {
  const connection = await gateway.connect();
  t.after(() => connection.destroy());
  await connection.send(bytes);
  return connection.readToEnd({ timeoutMs: 10_000 });
}
const withKey = `host: x\r\nauthorization: Bearer ${keys.dev}\r\n`;

// Each with a method that it supports.
const known = [
  ["POST", "/api/v1/tasks/t/trigger"], ["POST", "/api/v1/tasks/batch"], ["POST", "/api/v2/tasks/batch"], ["POST", "/api/v3/batches"],
  ["POST", "/api/v3/batches/batch_x/items"], ["GET", "/api/v1/batches/batch_x"], ["GET", "/api/v2/batches/batch_x"],
  ["GET", "/api/v1/batches/batch_x/results"], ["GET", "/api/v1/runs"], ["GET", "/api/v3/runs/run_x"], ["POST", "/api/v2/runs/run_x/cancel"],
  ["POST", "/api/v1/runs/run_x/replay"], ["POST", "/api/v1/runs/run_x/reschedule"], ["GET", "/api/v1/runs/run_x/result"],
  ["POST", "/api/v1/runs/run_x/tags"], ["PUT", "/api/v1/runs/run_x/metadata"], ["GET", "/api/v1/runs/run_x/metadata"],
  ["POST", "/api/v1/idempotencyKeys/k/reset"], ["POST", "/api/v1/auth/jwt/claims"], ["PUT", "/api/v2/packets/p"],
  ["GET", "/api/v1/projects/p/runs"], ["POST", "/api/v1/projects/p/background-workers"], ["POST", "/engine/v1/dev/dequeue"],
  ["GET", "/engine/v1/dev/config"],
];
const unknown = ["/api", "/api/", "/api/v1", "/api/v9/x", "/api/v1/runs/", "/api/v1/runs/a/b/c/d/e/f/g", "/api//v1/runs", "/api/%2e%2e/metrics", "/api/v1/tasks//trigger"];

describe("credentials", () => {
  test("an unknown key is 401 on every path under /api, whether the path exists or not", async () => {
    for (const key of ["tr_dev_unknown", "tr_pat_unknown", "x", "eyJhbGciOiJIUzI1NiJ9.e30.x", `${keys.dev}x`, keys.dev.slice(0, -1)])
      for (const [method, target] of [...known, ...unknown.map((one) => ["GET", one]), ["DELETE", "/api/v1/runs"], ["PATCH", "/api/v9"]]) {
        const { status, json, headers } = await request(method, target, { key });
        assert.equal(status, 401, `${method} ${target} with ${key}`);
        assert.equal(typeof json.error, "string");
        assert.match(headers["content-type"], /^application\/json/);
      }
  });

  test("no credential is 401 with problem+json", async () => {
    for (const [method, target] of [...known.filter(([, one]) => one.startsWith("/api")), ...unknown.map((one) => ["GET", one])]) {
      const { status, json, headers } = await request(method, target, { key: null });
      assert.equal(status, 401, `${method} ${target}`);
      assert.match(headers["content-type"], /^application\/problem\+json/);
      assert.deepEqual([json.title, json.status, json.detail, json.error],
        ["Unauthorized", 401, "No authorization header provided", "No authorization header provided"]);
    }
  });

  test("with a valid key an unknown path is 404 and says so", async () => {
    for (const target of ["/api/v9/x", "/api", "/nowhere", "/projects", "/api/v1/runs/", "/engine/v1/other"]) {
      const { status, json } = await gateway.get(target);
      assert.equal(status, 404, target);
      assert.match(json.error, /not found/i);
    }
  });

  test("the scheme is optional and case-insensitive", async () => {
    for (const authorization of [`Bearer ${keys.dev}`, `bearer ${keys.dev}`, keys.dev, `Bearer   ${keys.dev}  `])
      assert.equal((await gateway.get("/api/v1/runs", { key: null, headers: { authorization } })).status, 200, authorization);
  });
});

describe("methods", () => {
  test("a method that a path does not support is 405 and lists those that it does", async () => {
    for (const [method, target, allow] of [["DELETE", "/api/v1/runs", "GET"], ["GET", "/api/v1/tasks/t/trigger", "POST"], ["PATCH", "/api/v1/runs/r/metadata", "PUT"],
      ["POST", "/healthz", "GET"], ["PUT", "/metrics", "GET"], ["GET", "/api/v3/batches/b/items", "POST"]]) {
      const { status, headers, json } = await request(method, target);
      assert.equal(status, 405, `${method} ${target}`);
      assert.ok(headers.allow.split(/, */).includes(allow), headers.allow);
      assert.equal(typeof json.error, "string");
    }
  });

  test("HEAD answers like GET, without a body", async (t) => {
    for (const target of ["/healthz", "/api/v1/runs", "/api/v3/runs/run_none"]) {
      const get = await gateway.get(target);
      const text = await raw(t, `HEAD ${target} HTTP/1.1\r\n${withKey}connection: close\r\n\r\n`);
      assert.match(text, new RegExp(`^HTTP/1\\.1 ${get.status} `));
      assert.ok(head(text).includes(`content-length: ${Buffer.byteLength(get.text)}`), text);
      assert.ok(text.endsWith("\r\n\r\n"), "nothing behind the head");
    }
  });

  test("unknown methods are refused as JSON", async (t) => {
    for (const method of ["TRACE", "CONNECT", "PROPFIND"]) {
      const text = await raw(t, `${method} /healthz HTTP/1.1\r\n${withKey}connection: close\r\n\r\n`);
      assert.match(text, /^HTTP\/1\.1 (400|405|501) /, method);
      assert.match(text, /\{"error":/);
    }
  });
});

describe("browsers", () => {
  test("can send a preflight request from any origin, without a credential", async () => {
    const asked = { origin: "https://app.example", "access-control-request-method": "PUT", "access-control-request-headers": "authorization,content-type,x-custom" };
    for (const target of ["/api/v1/runs", "/api/v1/tasks/t/trigger", "/api/v9/unknown", "/realtime/v1/runs"]) {
      const { status, headers, text } = await request("OPTIONS", target, { key: null, headers: asked });
      assert.equal(status, 204, target);
      assert.equal(text, "");
      assert.equal(headers["access-control-allow-origin"], "*");
      for (const method of ["GET", "POST", "PUT", "DELETE"]) assert.ok(headers["access-control-allow-methods"].includes(method));
      assert.equal(headers["access-control-allow-headers"], "authorization,content-type,x-custom");
      assert.equal(headers["access-control-allow-credentials"], undefined);
    }
  });

  test("can read every response, also a refusal, and the headers that clients need", async () => {
    for (const [method, target, key] of [["GET", "/api/v1/runs", keys.dev], ["GET", "/api/v1/runs", "wrong"], ["GET", "/api/v1/runs", null],
      ["GET", "/nowhere", keys.dev], ["DELETE", "/api/v1/runs", keys.dev], ["POST", "/api/v1/tasks/t/trigger", keys.dev]]) {
      const { headers } = await request(method, target, { key, headers: { origin: "https://app.example" } });
      assert.equal(headers["access-control-allow-origin"], "*", `${method} ${target}`);
      for (const name of ["x-trigger-jwt", "x-trigger-jwt-claims", "x-runs-seq", "retry-after"])
        assert.ok(headers["access-control-expose-headers"].includes(name), name);
    }
  });

  test("cannot inject lines into a response by what they request", async (t) => {
    const text = await raw(t, `OPTIONS /api HTTP/1.1\r\nhost: x\r\naccess-control-request-headers: a\tb\r\nconnection: close\r\n\r\n`);
    assert.match(text, /^HTTP\/1\.1 (204|400) /);
    assert.ok(!/\r\n\s*b/.test(text));
  });
});

describe("targets", () => {
  test("are split first and decoded afterwards", async () => {
    for (const task of ["a/b", "a b", "ü", "a%2Fb", "a+b", "100%", "a?b#c", "..", "x".repeat(100)]) {
      const { status, json, text } = await gateway.post(`/api/v1/tasks/${encodeURIComponent(task)}/trigger`, {});
      assert.equal(status, 200, `${task}: ${text}`);
      assert.equal((await gateway.get(`/api/v3/runs/${json.id}`)).json.taskIdentifier, task);
    }
  });

  test("with an invalid encoding are 400", async () => {
    for (const segment of ["%", "%4", "%zz", "%ff", "%c3%28", "%ed%a0%80", "a%00b"]) {
      const { status, json } = await gateway.post(`/api/v1/tasks/${segment}/trigger`, {});
      assert.equal(status, 400, segment);
      assert.equal(typeof json.error, "string");
    }
  });

  test("have queries in which + and %20 are spaces, and brackets need no encoding", async () => {
    const tag = "two words";
    const { json: { id } } = await gateway.post("/api/v1/tasks/t/trigger", { options: { tags: [tag] } });
    for (const query of ["filter[tag]=two+words", "filter%5Btag%5D=two%20words", "&&filter[tag]=two+words&"]) {
      const { status, json, text } = await gateway.get(`/api/v1/runs?${query}`);
      assert.equal(status, 200, text);
      assert.deepEqual(json.data.map((run) => run.id), [id], query);
    }
    assert.equal((await gateway.get("/api/v1/runs?filter[tag]=%zz")).status, 400);
  });
});

describe("sizes", () => {
  test("a trigger of 3 MiB is accepted, a larger one is refused before its body is sent", async (t) => {
    const body = (size) => { const text = '{"payload":""}'; return text.replace('""', `"${"x".repeat(size - text.length)}"`); };
    const { status } = await gateway.post("/api/v1/tasks/t/trigger", body(3 * 1024 * 1024));
    assert.equal(status, 200);
    const connection = await gateway.connect();
    t.after(() => connection.destroy());
    await connection.send(`POST /api/v1/tasks/t/trigger HTTP/1.1\r\n${withKey}content-length: ${3 * 1024 * 1024 + 1}\r\n\r\n`);
    const text = await connection.read((got) => got.includes("\r\n\r\n{"));
    assert.match(text, /^HTTP\/1\.1 413 /);
    assert.match(text, /\{"error":"/);
  });

  test("a chunked body that grows too large is refused, and the connection is closed", async (t) => {
    const connection = await gateway.connect();
    t.after(() => connection.destroy());
    connection.send(`POST /api/v1/runs/run_x/tags HTTP/1.1\r\n${withKey}transfer-encoding: chunked\r\n\r\n`);
    const piece = `10000\r\n${"x".repeat(65536)}\r\n`;
    for (let i = 0; i < 100 && !connection.ended && !connection.received.length; i++) await connection.send(piece);
    assert.match(await connection.readToEnd(), /^HTTP\/1\.1 413 /);
  });

  test("heads and targets have limits of their own", async (t) => {
    for (const [bytes, status] of [
      [`GET /${"x".repeat(9000)} HTTP/1.1\r\nhost: x\r\n\r\n`, 414],
      [`GET / HTTP/1.1\r\nhost: x\r\nx: ${"y".repeat(17_000)}\r\n\r\n`, 431],
      [`GET / HTTP/1.1\r\nhost: x\r\n${Array.from({ length: 101 }, (_, i) => `h${i}: 1\r\n`).join("")}\r\n`, 431],
    ]) {
      const text = await raw(t, bytes);
      assert.match(text, new RegExp(`^HTTP/1\\.1 ${status} `));
      assert.match(text, /\{"error":"/);
    }
  });
});

describe("bodies", () => {
  test("that are not JSON are 400, with the position", async () => {
    for (const body of ["{", "", "[]", "null", '"x"', '{"payload":}', '{"payload":1}x', "\u0000", '{"payload":"\u0001"}', "{'payload':1}", '{"payload":NaN}'])
      for (const target of ["/api/v1/tasks/t/trigger", "/api/v1/tasks/batch", "/api/v3/batches"]) {
        const { status, json, text } = await gateway.post(target, body);
        assert.equal(status, 400, `${target} ${body}: ${text}`);
        assert.equal(typeof json.error, "string");
      }
  });

  test("that are not UTF-8 are 400, and values of any depth are accepted", async () => {
    const deep = `{"payload":${"[".repeat(100_000)}${"]".repeat(100_000)}}`;
    for (const [body, expected] of [[Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), 400], [deep, 200]])
      assert.equal((await gateway.post("/api/v1/tasks/t/trigger", body)).status, expected);
  });

  test("get 100-continue only when they are wanted", async (t) => {
    const ask = (length, key = keys.dev) => `POST /api/v1/tasks/t/trigger HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\nexpect: 100-continue\r\ncontent-length: ${length}\r\n\r\n`;
    const connection = await gateway.connect();
    t.after(() => connection.destroy());
    await connection.send(ask(13));
    assert.equal(await connection.read((got) => got.endsWith("\r\n\r\n")), "HTTP/1.1 100 Continue\r\n\r\n");
    await connection.send('{"payload":1}');
    assert.match(await connection.read((got) => got.includes("run_")), /HTTP\/1\.1 200 /);
    for (const [bytes, status] of [[ask(4_000_000), 413], [ask(13, "wrong"), 401]]) {
      const refused = await gateway.connect();
      await refused.send(bytes);
      const text = await refused.read((got) => got.includes("\r\n\r\n"));
      assert.match(text, new RegExp(`^HTTP/1\\.1 ${status} `));
      refused.destroy();
    }
  });

  test("in chunks are read like others", async (t) => {
    const pieces = ['{"pay', 'load":', "[1]}"].map((text) => `${text.length.toString(16)}\r\n${text}\r\n`).join("");
    const text = await raw(t, `POST /api/v1/tasks/t/trigger HTTP/1.1\r\n${withKey}transfer-encoding: chunked\r\nconnection: close\r\n\r\n${pieces}0\r\n\r\n`);
    assert.match(text, /^HTTP\/1\.1 200 /);
    const { json } = await gateway.get(`/api/v3/runs/${text.match(/run_\w+/)[0]}`);
    assert.deepEqual(json.payload, [1]);
  });
});

describe("connections", () => {
  test("are kept open, and pipelined requests are answered in their order", async (t) => {
    const targets = ["/healthz", "/api/v1/runs", "/nowhere", "/readyz", "/healthz"];
    const asked = targets.map((target, i) => `GET ${target} HTTP/1.1\r\n${withKey}${i === targets.length - 1 ? "connection: close\r\n" : ""}\r\n`).join("");
    const text = await raw(t, asked);
    assert.deepEqual(text.match(/HTTP\/1\.1 \d+/g).map((line) => line.slice(-3)), ["200", "200", "404", "200", "200"]);
  });

  test("of HTTP/1.0 are closed after the response", async (t) => {
    const text = await raw(t, "GET /healthz HTTP/1.0\r\n\r\n");
    assert.match(text, /^HTTP\/1\.[01] 200 /);
  });

  test("with an ambiguous head are 400 and closed", async (t) => {
    const post = "POST /api/v1/tasks/t/trigger HTTP/1.1\r\n";
    for (const bytes of [
      `${post}${withKey}content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`, `${post}${withKey}content-length: 2\r\ncontent-length: 3\r\n\r\n{}`,
      `${post}${withKey}transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n`, `${post}${withKey}content-length: +2\r\n\r\n{}`,
      "GET /healthz HTTP/1.1\r\n\r\n", "GET /healthz HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n", "GET /healthz HTTP/1.1\r\nhost: x\r\na : b\r\n\r\n",
      "GET /healthz HTTP/1.1\r\nhost: x\r\n folded: 1\r\n\r\n", "GET  /healthz HTTP/1.1\r\nhost: x\r\n\r\n", "GET /health\0z HTTP/1.1\r\nhost: x\r\n\r\n",
    ]) {
      const text = await raw(t, `${bytes}GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n`);
      assert.match(text, /^HTTP\/1\.1 400 /, JSON.stringify(bytes));
      assert.equal(text.match(/^HTTP\/1\.1 \d/gm).length, 1, "nothing behind it is looked at");
    }
  });

  test("beyond --connections are 503, and places that are freed are used again", async (t) => {
    const small = await startGateway({ t, options: ["--connections", "16", "--realtime-connections", "16", "--dequeue-wait", "1m"] });
    small.http.close();
    const open = [], refused = [];
    const known = `GET /api/v1/runs HTTP/1.1\r\n${withKey}\r\n`, busy = `POST /engine/v1/dev/dequeue HTTP/1.1\r\n${withKey}content-length: 2\r\n\r\n{}`;
    for (let i = 0; i < 16; i++) {
      open.push(await small.connect());
      await open[i].send(known + busy);
      await open[i].read((text) => text.startsWith("HTTP/1.1 200 "), { what: "an answer" });
    }
    for (let i = 0; i < 24; i++) refused.push(await small.connect());
    await until(() => refused.every((one) => one.ended), { what: "the end of what is too much" });
    for (const one of refused) assert.match(one.take().toString(), /^HTTP\/1\.1 503 /);
    assert.ok(open.every((one) => !one.ended), "a connection in use stays");
    for (const one of open) one.destroy();
    await until(async () => (await small.get("/healthz")).status === 200, { what: "room for one more" });
    await small.stop();
  });

  test("that never sent a valid credential make room, and a client that has one gets in", async (t) => {
    const small = await startGateway({ t, options: ["--connections", "64"] });
    const strangers = [];
    for (let i = 0; i < 200; i++) {
      const one = await small.connect();
      strangers.push(one);
      if (i % 2) await one.send("GET /healthz HTTP/1.1\r\nhost: x\r\nauthorization: Bearer tr_dev_wrong\r\n\r\n");
    }
    await until(() => strangers.filter((one) => one.ended).length >= 200 - 64, { what: "the end of the older ones" });
    for (let i = 0; i < 10; i++) {
      const known = await small.connect();
      await known.send(`GET /api/v1/runs HTTP/1.1\r\n${withKey}connection: close\r\n\r\n`);
      assert.match(await known.readToEnd(), /^HTTP\/1\.1 200 /);
    }
    assert.ok(await small.metric("runcast_evicted_connections_total") > 100);
    for (const one of strangers) one.destroy();
    await small.stop();
  });
});

test("an admin listener that other machines can reach causes a warning", async (t) => {
  const open = await startGateway({ t, options: ["--admin-listen", `0.0.0.0:${await freePort()}`] });
  await until(() => /anyone who can connect to it can read the metrics/.test(open.stderr), { what: "the warning" });
  await open.stop();
  assert.doesNotMatch(gateway.stderr, /anyone who can connect/);
});
