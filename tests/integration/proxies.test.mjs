// nginx, HAProxy and Caddy in front of a gateway, with the settings that the chapters give, copied from there:
// everything that clients do, over TLS; and requests that a proxy and the gateway might read differently.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import http2 from "node:http2";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { EventStream } from "../support/js/event_stream.mjs";
import { freePort, keys, startGateway, until } from "../support/js/gateway.mjs";
import { HttpClient, RawConnection } from "../support/js/http.mjs";
import { startProxy } from "../support/js/proxies.mjs";
import { RunsSocket } from "../support/js/runs.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

const top = path.resolve(path.dirname(new URL(import.meta.url).pathname), "../..");
const sdk = path.join(top, "tests/conformance/sdk-v4/node_modules/@trigger.dev/sdk/dist/esm/v3/index.js");

/** The requests of the unit tests that must be refused, as bytes: [[name, bytes]]. */
function refusedRequests() {
  const text = execFileSync("cpp", ["-P", path.join(top, "tests/unit/net/http/http_requests.def")], { encoding: "latin1" });
  const literal = /"((?:\\.|[^"\\])*)"|[,{}]/gs;
  const escapes = { r: "\r", n: "\n", t: "\t" };
  const bytes = (inner) => inner.replace(/\\(x[0-9a-f]{1,2}|[0-7]{1,3}|.)/gi, (_, code) =>
    code[0] === "x" ? String.fromCharCode(parseInt(code.slice(1), 16)) : escapes[code] ?? (/^[0-7]/.test(code) ? String.fromCharCode(parseInt(code, 8)) : code));
  const rows = [];
  for (const [token, inner] of text.matchAll(literal)) {
    if (token === "{") rows.push([""]);
    else if (token === ",") rows.at(-1)?.push("");
    else if (token !== "}") rows.at(-1)[rows.at(-1).length - 1] += bytes(inner);
  }
  return rows.filter(([, , statuses]) => /4\d\d$/.test(statuses ?? "")).map(([name, request]) => [name, request]);
}

for (const kind of ["nginx", "haproxy", "caddy"])
  describe(`behind ${kind}`, () => {
    let gateway, proxy, http, worker;
    const trigger = async (options, payload = {}) => {
      const { status, json, text } = await http.request("POST", "/api/v1/tasks/hello/trigger", { body: { payload, options } });
      assert.equal(status, 200, text);
      return json.id;
    };
    before(async () => {
      const port = await freePort(), front = await freePort();
      gateway = await startGateway({ port, options: ["--public-url", `https://127.0.0.1:${front}`, "--trusted-proxies", "127.0.0.1"] });
      proxy = await startProxy(kind, { port: front, gateway: port });
      http = new HttpClient(proxy.plainUrl, keys.dev);
      await until(async () => (await http.request("GET", "/readyz").catch(() => ({}))).status === 200, { what: `${kind} to be ready` });
      worker = await Worker.register({ post: (target, body, more) => http.request("POST", target, { body, ...more }) });
    });
    after(async () => {
      http.close();
      proxy.stop();
      await gateway.stop();
    });

    test("the unmodified SDK triggers, uploads, polls and downloads", async () => {
      const script = `
        import { runs, tasks } from ${JSON.stringify(sdk)};
        const { id } = await tasks.trigger("hello", { text: "x".repeat(700_000) });
        console.log(id);
        for await (const run of runs.subscribeToRun(id)) if (run.status === "COMPLETED")
          console.log(JSON.stringify([run.payload.text.length, run.output.length]));
        console.log(JSON.stringify((await runs.retrieve(id)).payload.text.length));`;
      const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "pipe", "pipe"],
        env: { ...process.env, TRIGGER_API_URL: proxy.url, TRIGGER_SECRET_KEY: keys.dev, NODE_EXTRA_CA_CERTS: proxy.certificate } });
      let said = "", wrong = "";
      child.stdout.setEncoding("utf8").on("data", (text) => { said += text; });
      child.stderr.setEncoding("utf8").on("data", (text) => { wrong += text; });
      const ended = new Promise((resolve) => child.on("close", resolve));
      await until(() => said.includes("\n") || child.exitCode !== null, { what: "the trigger" });
      const [id] = said.split("\n");
      assert.match(id, /^run_/, wrong);
      assert.match((await http.request("GET", `/api/v3/runs/${id}`)).json.payloadPresignedUrl, new RegExp(`^${proxy.url}/packets/`));
      await until(() => gateway.metric("runcast_polls"), { what: "a held poll" });
      const attempt = await worker.take(id);
      await attempt.complete({ ok: true, output: JSON.stringify("y".repeat(100_000)), outputType: "application/json" });
      assert.equal(await ended, 0, wrong);
      assert.deepEqual(said.trim().split("\n").slice(1), ["[700000,100000]", "700000"]);
    });

    test("a WebSocket receives every change, and pages come from the proxy's origin", async () => {
      const own = { host: `127.0.0.1:${proxy.port}`, origin: proxy.url };
      const socket = await RunsSocket.open({ port: proxy.plainPort, token: keys.dev, hello: {}, headers: own });
      await socket.next("welcome");
      socket.send({ op: "sub", id: 1, all: true });
      await socket.next((message) => message.op === "rows" && !message.more);
      const id = await trigger();
      await socket.next((message) => message.rows?.[0]?.[0] === id);
      await socket.cut();
      const foreign = { ...own, origin: "https://elsewhere.example" };
      await assert.rejects(RunsSocket.open({ port: proxy.plainPort, token: keys.dev, headers: foreign }), { status: 403 });
    });

    test("events arrive while their stream stays open, also over HTTP/2", async (t) => {
      const headers = { authorization: `Bearer ${keys.dev}` };
      const stream = await EventStream.open(`${proxy.plainUrl}/realtime/v1/events?all=1`, { headers });
      await stream.next("rows");
      const session = http2.connect(proxy.url, { ca: fs.readFileSync(proxy.certificate) });
      t.after(() => session.destroy());
      const second = session.request({ ":path": "/realtime/v1/events?all=1", ...headers });
      let heard = "";
      second.setEncoding("utf8").on("data", (text) => { heard += text; });
      await until(() => heard.includes("event: rows"));
      const id = await trigger();
      await until(() => stream.events.some(({ data }) => data.rows?.[0][0] === id) && heard.includes(id), { what: "the change" });
      assert.ok(!stream.ended);
      stream.controller.abort();
      await until(async () => (await gateway.metric("runcast_stream_connections")) <= 1, { what: "the end at the gateway" });
    });

    test("a line that is written is read while the body continues", async (t) => {
      const id = await trigger();
      const writer = await RawConnection.open(proxy.plainPort);
      t.after(() => writer.destroy());
      const head = `host: localhost\r\nauthorization: Bearer ${keys.dev}\r\n`;
      await writer.send(`POST /realtime/v1/streams/${id}/self/words HTTP/1.1\r\n${head}transfer-encoding: chunked\r\n\r\n8\r\n"first"\n\r\n`);
      const reader = await fetch(`${proxy.plainUrl}/realtime/v1/streams/${id}/words`, { headers: { authorization: `Bearer ${keys.dev}` } });
      const chunks = reader.body.getReader();
      let read = "";
      for (let line = "first"; !read.includes("second");) {
        const { value, done } = await chunks.read();
        assert.ok(!done, read);
        read += Buffer.from(value).toString();
        if (read.includes(line) && line === "first") await writer.send(`9\r\n"${line = "second"}"\n\r\n0\r\n\r\n`);
      }
      await writer.read((text) => /^HTTP\/1\.1 200 /.test(text));
      await chunks.cancel();
    });

    test("100-continue, chunks, and a body of 3 MiB pass", async () => {
      const connection = await RawConnection.open(proxy.plainPort);
      const head = `POST /api/v1/tasks/hello/trigger HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${keys.dev}\r\ncontent-type: application/json\r\n`;
      await connection.send(`${head}expect: 100-continue\r\ncontent-length: 13\r\n\r\n`);
      // Caddy sends it by itself, or passes on the gateway's with its own headers, or both.
      await connection.read((text) => /^HTTP\/1\.1 100 .*\r\n\r\n/s.test(text));
      connection.take();
      await connection.send('{"payload":1}');
      await connection.read((text) => /(^|\r\n\r\n)HTTP\/1\.1 200 .*"id":"run_/s.test(text));
      connection.take();
      await connection.send(`${head}transfer-encoding: chunked\r\nconnection: close\r\n\r\n5\r\n{"pay\r\n8\r\nload":1}\r\n0\r\n\r\n`);
      assert.match(await connection.readToEnd(), /^HTTP\/1\.1 200 /);
      await trigger({}, "x".repeat((3 << 20) - 1000));
      const refused = await http.request("POST", "/api/v1/tasks/hello/trigger", { body: "x".repeat((3 << 20) + (64 << 10)) }).catch(({ code }) => ({ status: code }));
      assert.ok([413, "ECONNRESET", "EPIPE"].includes(refused.status), refused.text);
    });

    test("connections to the gateway are reused", async () => {
      for (let i = 0; i < 60; i++) {
        const one = new HttpClient(proxy.plainUrl, keys.dev);
        assert.equal((await one.request("GET", "/api/v1/runs")).status, 200);
        one.close();
      }
      const open = await gateway.metric("runcast_connections");
      assert.ok(open < 30, `${open} connections`);
    });

    test("metrics are not public", async () => {
      assert.equal((await http.request("GET", "/metrics", { key: null })).status, 401);
      assert.equal((await gateway.getAsAdmin("/metrics")).status, 200);
    });

    test("the gateway receives no request that the proxy does not know of", { timeout: 240_000 }, async () => {
      const requests = refusedRequests();
      assert.ok(requests.length > 80, `${requests.length} were found`);
      const twin = "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
      const count = () => gateway.metric("runcast_http_requests_total");
      /** How many responses the proxy gives to the bytes and a valid request after them, and how many the gateway
       *  gave. */
      async function counted(bytes, patience = 300) { // a proxy that waits for more sends nothing
        const before = await count();
        const connection = await RawConnection.open(proxy.plainPort);
        await connection.send(Buffer.from(bytes + twin, "latin1"));
        await until(() => connection.ended, { timeoutMs: patience }).catch(() => {});
        const reached = (await count()) - before - 1;
        let text = "";
        const answers = () => (text += connection.take().toString("latin1")).match(/HTTP\/1\.[01] [2-5]\d\d /g)?.length ?? 0;
        await until(() => answers() >= reached, { timeoutMs: 5000 }).catch(() => {}); // responses may still be in flight
        connection.destroy();
        return { answers: answers(), reached };
      }
      // Caddy passes on no response before it has the whole body, so it waits if the body never comes.
      const unanswered = kind === "caddy" ? 1 : 0;
      let seen;
      for (let attempt = 0; attempt < 3; attempt++) { // HAProxy probes /readyz from time to time
        seen = await counted("", 10_000);
        if (seen.reached === 1) break;
      }
      assert.deepEqual(seen, { answers: 1, reached: 1 });
      for (const [name, bytes] of requests) {
        for (let attempt = 0; attempt < 3; attempt++) {
          seen = await counted(bytes);
          if (seen.reached <= Math.max(seen.answers, unanswered)) break;
        }
        assert.ok(seen.reached <= Math.max(seen.answers, unanswered), `${name}: ${JSON.stringify(seen)}`);
      }
    });

    /** Stops the gateway amid a call. Returns false if the proxy had not passed the call on yet. */
    const stopAmidCall = async () => {
      const slow = await RawConnection.open(proxy.plainPort);
      await slow.send(`POST /api/v1/tasks/hello/trigger HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${keys.dev}\r\ncontent-length: 13\r\n\r\n{"pay`);
      const socket = await RunsSocket.open({ port: proxy.plainPort, token: keys.dev, hello: {} });
      await socket.next("welcome");
      const before = await gateway.metric("runcast_connections");
      assert.ok(before >= 2);
      gateway.child.kill("SIGTERM");
      await socket.next("drain");
      await slow.send('load":1}');
      const text = await slow.read((text) => /^HTTP\/1\.1 (200 .*"id":"run_|503 .*not ready: draining)/s.test(text), { what: "the answer" });
      slow.destroy();
      assert.equal((await socket.closed).code, 4200);
      assert.deepEqual(await gateway.ended(), { code: 0, signal: null });
      const down = await http.request("GET", "/api/v1/runs");
      assert.ok([502, 503].includes(down.status), `${down.status}`);
      await gateway.restart();
      await until(async () => (await http.request("GET", "/api/v1/runs")).status === 200, { what: `${kind} to come back` });
      return text.startsWith("HTTP/1.1 200");
    };

    test("a stop lets requests in flight finish, and after the next start everything works", async () => {
      for (let tries = 1; !(await stopAmidCall()); tries++) assert.ok(tries < 5, "a call in flight is refused");
    });
  });

test("a connection without the required PROXY header is closed, and the log says why", async (t) => {
  const plain = await freePort(), proxied = await freePort();
  const gateway = await startGateway({ t, port: plain, options: ["--listen", `127.0.0.1:${plain} 127.0.0.1:${proxied},proxy`] });
  const bare = await RawConnection.open(proxied);
  await bare.send("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n");
  assert.equal(await bare.readToEnd(), "");
  await until(() => /PROXY protocol 2.*127\.0\.0\.1 sent none/.test(gateway.stderr));
  await gateway.stop();
});
