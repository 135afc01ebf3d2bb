// The gateway's own TLS: as clients and openssl see it, how its certificates are chosen and replaced while it runs, and
// what is refused.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import https from "node:https";
import net from "node:net";
import path from "node:path";
import { test } from "node:test";
import tls from "node:tls";

import { EventStream } from "../support/js/event_stream.mjs";
import { freePort, keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { HttpClient, RawConnection } from "../support/js/http.mjs";
import { runProgram } from "../support/js/program.mjs";
import { RunsSocket } from "../support/js/runs.mjs";
import { makeCertificate, unwrap } from "../support/js/tls.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

const top = path.resolve(path.dirname(new URL(import.meta.url).pathname), "../..");
const sdk = path.join(top, "tests/conformance/sdk-v4/node_modules/@trigger.dev/sdk/dist/esm/v3/index.js");

/** A gateway with a plain and a TLS listener: { gateway, port, folder, certificate, key, url, http, plainPort }; url and
 *  http use TLS. */
async function startSecure(t, { options = [], pairs, ...more } = {}) {
  const folder = temporaryFolder(), own = makeCertificate(folder, "own");
  const plain = await freePort(), port = await freePort();
  const files = (pairs?.(folder) ?? [own]).flatMap(({ certificate, key }) => ["--tls-cert", certificate, "--tls-key", key]);
  const gateway = await startGateway({ t, port: plain, ...more,
    options: ["--listen", `127.0.0.1:${plain}`, "--listen", `127.0.0.1:${port},tls`, ...files, ...options] });
  const front = await unwrap(port, own.certificate);
  const http = new HttpClient(`http://127.0.0.1:${front.port}`, keys.dev);
  t.after(() => { http.close(); front.close(); });
  return { gateway, port, folder, ...own, url: `https://127.0.0.1:${port}`, http, plainPort: front.port };
}

/** The output of openssl s_client, with `input` typed in once it is connected. */
function sClient(port, args, input = "") {
  return new Promise((resolve) => {
    const child = spawn("openssl", ["s_client", "-connect", `127.0.0.1:${port}`, ...args], { stdio: ["pipe", "pipe", "pipe"] });
    let said = "";
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => {
      said += text;
      if (/Verify return code|alert/.test(said)) child.stdin.end(input);
    });
    child.stdin.on("error", () => {});
    child.on("close", () => resolve(said));
  });
}

/** The name in the certificate that the gateway sends. */
const shownTo = (port, servername) => new Promise((resolve, reject) => {
  const socket = tls.connect({ port, host: "127.0.0.1", ...servername && { servername }, rejectUnauthorized: false }, () => {
    resolve(socket.getPeerCertificate().subject.CN);
    socket.destroy();
  }).on("error", reject);
});

const ask = (url, agent) => new Promise((resolve, reject) => {
  https.get(`${url}/api/v1/runs`, { agent, rejectUnauthorized: false, headers: { authorization: `Bearer ${keys.dev}` } }, (answer) => {
    answer.resume().on("end", () => resolve(answer.statusCode)).on("error", reject);
  }).on("error", reject);
});

test("the unmodified SDK triggers, uploads, polls and downloads over https", async (t) => {
  const { gateway, url, http, certificate } = await startSecure(t);
  const worker = await Worker.register({ post: (target, body, more) => http.request("POST", target, { body, ...more }) });
  const script = `
    import { runs, tasks } from ${JSON.stringify(sdk)};
    const { id } = await tasks.trigger("hello", { text: "x".repeat(700_000) });
    console.log(id);
    for await (const run of runs.subscribeToRun(id)) if (run.status === "COMPLETED")
      console.log(JSON.stringify([run.payload.text.length, run.output.length]));
    console.log(JSON.stringify((await runs.retrieve(id)).payload.text.length));`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, TRIGGER_API_URL: url, TRIGGER_SECRET_KEY: keys.dev, NODE_EXTRA_CA_CERTS: certificate } });
  let said = "", wrong = "";
  child.stdout.setEncoding("utf8").on("data", (text) => { said += text; });
  child.stderr.setEncoding("utf8").on("data", (text) => { wrong += text; });
  const ended = new Promise((resolve) => child.on("close", resolve));
  await until(() => said.includes("\n") || child.exitCode !== null, { what: "the trigger" });
  const [id] = said.split("\n");
  assert.match(id, /^run_/, wrong);
  const { json } = await http.request("GET", `/api/v3/runs/${id}`);
  assert.match(json.payloadPresignedUrl, /^https:\/\//, "links are of the scheme that was asked by");
  assert.match((await gateway.get(`/api/v3/runs/${id}`)).json.payloadPresignedUrl, /^http:\/\//);
  await until(() => gateway.metric("runcast_polls"), { what: "a held poll" });
  const attempt = await worker.take(id);
  await attempt.complete({ ok: true, output: JSON.stringify("y".repeat(100_000)), outputType: "application/json" });
  assert.equal(await ended, 0, wrong);
  assert.deepEqual(said.trim().split("\n").slice(1), ["[700000,100000]", "700000"]);
  await gateway.stop();
});

test("a WebSocket and an event stream receive every change, and end cleanly when the gateway stops", async (t) => {
  const { gateway, port, url, plainPort, http } = await startSecure(t);
  const own = { host: `127.0.0.1:${port}`, origin: url };
  const socket = await RunsSocket.open({ port: plainPort, token: keys.dev, hello: {}, headers: own });
  await socket.next("welcome");
  socket.send({ op: "sub", id: 1, all: true });
  await socket.next((message) => message.op === "rows" && !message.more);
  const stream = await EventStream.open(`http://127.0.0.1:${plainPort}/realtime/v1/events?all=1`, { headers: { authorization: `Bearer ${keys.dev}` } });
  await stream.next("rows");
  const ids = [];
  for (let i = 0; i < 20; i++)
    ids.push((await http.request("POST", "/api/v1/tasks/hello/trigger", { body: { payload: "x".repeat(10_000) } })).json.id);
  for (const id of ids) await socket.next((message) => message.rows?.some(([run]) => run === id));
  await until(() => ids.every((id) => JSON.stringify(stream.events).includes(id)), { what: "the stream has all" });
  await assert.rejects(RunsSocket.open({ port: plainPort, token: keys.dev, headers: { ...own, origin: "https://elsewhere.example" } }), { status: 403 });
  await gateway.stop();
});

test("a client gets the certificate for its name, an exact name before a wildcard, otherwise the first", async (t) => {
  const { gateway, port } = await startSecure(t, { pairs: (folder) => [
    makeCertificate(folder, "first", "DNS:first.example,IP:127.0.0.1"),
    makeCertificate(folder, "any", "DNS:*.b.example"),
    makeCertificate(folder, "one", "DNS:one.b.example,DNS:b.example"),
  ] });
  for (const [name, shown] of [["first.example", "first"], ["FIRST.example", "first"], ["x.b.example", "any"], ["one.b.example", "one"], ["b.example", "one"],
    ["x.y.b.example", "first"], ["elsewhere.example", "first"], ["one", "first"], [undefined, "first"]])
    assert.equal(await shownTo(port, name), shown, name);
  const metrics = await gateway.metrics();
  const dates = [...metrics].filter(([name]) => name.startsWith("runcast_tls_certificate_expires_seconds{"));
  assert.equal(dates.length, 3);
  for (const [, seconds] of dates) assert.ok(seconds > 86_400 && seconds <= 2 * 86_400, String(seconds));
});

test("TLS 1.2 and 1.3 work, with forward secrecy and HTTP/1.1, and nothing older", async (t) => {
  const { gateway, port } = await startSecure(t);
  const old = ["-cipher", "DEFAULT:@SECLEVEL=0"];
  for (const version of ["-tls1", "-tls1_1"])
    assert.match(await sClient(port, [version, ...old]), /alert protocol version/, version);
  assert.match(await sClient(port, ["-tls1_2"]), /Cipher is ECDHE-[^\n]*GCM/);
  assert.match(await sClient(port, ["-tls1_2", "-cipher", "AES128-GCM-SHA256"]), /alert handshake failure/);
  assert.match(await sClient(port, ["-tls1_3"]), /Cipher is TLS_/);
  assert.match(await sClient(port, ["-alpn", "h2,http/1.1"]), /ALPN protocol: http\/1\.1/);
  assert.match(await sClient(port, ["-alpn", "h2"]), /alert no application protocol/);
  const again = await sClient(port, ["-tls1_2"], "R\n");
  assert.match(again, /RENEGOTIATING/);
  assert.match(again, /no renegotiation/);
  const early = await sClient(port, ["-tls1_3"]);
  assert.doesNotMatch(early, /Max Early Data: [1-9]/);
  assert.equal(await gateway.isReady(), true);
});

test("a session ticket saves a returning client the full handshake", async (t) => {
  const { gateway, port } = await startSecure(t);
  let session;
  for (const resumed of [0, 1]) {
    const socket = tls.connect({ port, host: "127.0.0.1", rejectUnauthorized: false, session });
    socket.on("session", (ticket) => { session = ticket; });
    socket.write("GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await new Promise((resolve, reject) => { socket.once("data", resolve).once("error", reject); });
    assert.equal(socket.isSessionReused(), Boolean(resumed));
    await until(() => session, { what: "a ticket" });
    socket.end();
    assert.equal(await gateway.metric('runcast_tls_handshakes_total{result="resumed"}'), resumed);
  }
});

test("HTTP on the TLS port is answered as such, and TLS on an HTTP port is refused", async (t) => {
  const { gateway, port } = await startSecure(t);
  const wrong = await RawConnection.open(port);
  await wrong.send("PATCH / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  assert.match(await wrong.readToEnd(), /^HTTP\/1\.1 400 .*content-type: text\/plain.*https:\/\//s);
  const other = await RawConnection.open(gateway.port);
  const hello = net.connect(gateway.port, "127.0.0.1");
  tls.connect({ socket: hello, rejectUnauthorized: false }).on("error", () => {});
  await new Promise((resolve) => hello.on("close", resolve));
  await other.send("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03");
  assert.match(await other.readToEnd(), /^HTTP\/1\.1 400 /);
  assert.equal((await gateway.get("/readyz")).status, 200);
});

test("a stalled handshake is ended, and delays no other client", async (t) => {
  const { gateway, port, http } = await startSecure(t);
  const silent = [];
  for (let i = 0; i < 300; i++) {
    const socket = net.connect(port, "127.0.0.1").on("error", () => {});
    if (i % 3) socket.write(i % 3 === 1 ? "\x16\x03\x01\x02\x00\x01" : "\x16");
    silent.push(new Promise((resolve) => socket.on("close", () => resolve(Date.now()))));
  }
  const begun = Date.now();
  assert.equal((await http.request("GET", "/api/v1/runs")).status, 200);
  for (const ended of await Promise.all(silent)) assert.ok(ended - begun > 5_000, String(ended - begun));
  assert.equal((await http.request("GET", "/api/v1/runs")).status, 200);
  await gateway.stop();
});

test("after SIGHUP new connections get the new certificates, or none of them if one is invalid", async (t) => {
  const folder = temporaryFolder(), file = path.join(folder, "runcast.conf");
  fs.writeFileSync(file, "subscriptions = 7\n");
  const { gateway, port, url, certificate, key, plainPort } = await startSecure(t, { options: ["--config", file] });
  const keepAlive = new https.Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => keepAlive.destroy());
  const socket = await RunsSocket.open({ port: plainPort, token: keys.dev, hello: {} });
  await socket.next("welcome");
  socket.send({ op: "sub", id: 1, all: true });
  await socket.next((message) => message.op === "rows" && !message.more);
  assert.equal(await ask(url, keepAlive), 200);

  const failures = [];
  let isOver = false, answered = 0;
  const load = Array.from({ length: 4 }, async () => {
    while (!isOver) await ask(url, false).then((status) => { if (status === 200) answered++; else failures.push(status); }, (error) => failures.push(error.code));
  });
  const replace = (name) => {
    const next = makeCertificate(folder, name);
    fs.copyFileSync(next.certificate, certificate);
    fs.copyFileSync(next.key, key);
  };
  const reload = async (said) => {
    const before = gateway.stderr.length;
    process.kill(gateway.pid, "SIGHUP");
    await until(() => said.test(gateway.stderr.slice(before)), { what: String(said) });
    const answers = answered;
    await until(() => answered > answers + 4, { what: "connections behind it" });
    return gateway.stderr.slice(before);
  };
  for (const name of ["second", "third"]) {
    replace(name);
    await reload(/"action":"reload"|action=reload/);
    assert.equal(await shownTo(port), name);
  }
  fs.writeFileSync(file, "subscriptions = 8\n");
  fs.copyFileSync(makeCertificate(folder, "stranger").key, key);
  const why = await reload(/reload failed; settings unchanged/);
  assert.ok(why.includes(key) && why.includes(certificate), "both files are named");
  assert.equal(await shownTo(port), "third");
  fs.rmSync(key);
  assert.ok((await reload(/reload failed; settings unchanged/)).includes(key));
  assert.equal(await shownTo(port), "third");
  replace("fourth");
  await reload(/"action":"reload"|action=reload/);
  assert.equal(await shownTo(port), "fourth");

  isOver = true;
  await Promise.all(load);
  assert.deepEqual(failures, []);
  assert.equal(await ask(url, keepAlive), 200);
  const { json } = await gateway.post("/api/v1/tasks/hello/trigger", { payload: "1" });
  await socket.next((message) => message.rows?.some(([id]) => id === json.id));
  await gateway.stop();
});

test("unusable certificates are refused by --check-config with the files' names, and doubtful ones cause a warning", async (t) => {
  const folder = temporaryFolder(), own = makeCertificate(folder, "own"), other = makeCertificate(folder, "other");
  const sealed = path.join(folder, "sealed.key"), text = path.join(folder, "text"), pipe = path.join(folder, "pipe");
  execFileSync("openssl", ["pkey", "-in", own.key, "-aes256", "-passout", "pass:x", "-out", sealed]);
  fs.writeFileSync(text, "no PEM\n");
  execFileSync("mkfifo", [pipe]);
  const secure = ["--listen", "127.0.0.1:1,tls"], pair = (certificate, key) => [...secure, "--tls-cert", certificate, "--tls-key", key];
  for (const [words, ...parts] of [
    [secure, "--listen", ",tls needs a certificate"],
    [[...secure, "--tls-cert", own.certificate], "--tls-cert", "names 1 files but tls-key 0"],
    [["--tls-cert", own.certificate, "--tls-key", own.key], "--tls-cert", "no address of listen or peer-listen speaks TLS"],
    [pair(own.certificate, other.key), own.certificate, other.key, "does not match the certificate"],
    [pair("/nowhere", own.key), "/nowhere: No such file"],
    [pair(own.certificate, "/nowhere"), "/nowhere: No such file"],
    [pair(text, own.key), text, "certificate in PEM"],
    [pair(own.certificate, text), text, "private key in PEM"],
    [pair(own.certificate, sealed), sealed, "passphrase"],
    [pair(pipe, own.key), pipe, "not a regular file"],
    [["--listen", "127.0.0.1:1,tls,tls"], "127.0.0.1:1,tls,tls"],
    [["--admin-listen", "127.0.0.1:1,tls"], "admin-listen"],
  ]) {
    const { code, stderr } = await runProgram(["--check-config", ...words]);
    assert.equal(code, 2, words.join(" "));
    for (const part of parts) assert.ok(stderr.includes(part), `${part}: ${stderr}`);
  }
  assert.equal((await runProgram(["--check-config", ...pair(own.certificate, own.key)])).code, 0);

  execFileSync("openssl", ["x509", "-in", own.certificate, "-signkey", own.key, "-days", "-1", "-out", own.certificate], { stdio: "ignore" });
  fs.chmodSync(own.key, 0o644);
  const { gateway } = await startSecure(t, { pairs: () => [own] });
  assert.match(gateway.stderr, /certificate expired.*20\d\d-\d\d-\d\dT/);
  assert.match(gateway.stderr, /every user of this machine can read a private key/);
  assert.ok((await gateway.metric("runcast_tls_certificate_expires_seconds")) < 0);
});

test("a command says what to do when an address does not speak TLS, and when a certificate is not trusted", { timeout: 240_000 }, async (t) => {
  const { gateway, port, certificate, url } = await startSecure(t);
  const run = (address, ...words) => runProgram(["versions", ...words], { env: { TRIGGER_API_URL: address, TRIGGER_SECRET_KEY: keys.prod }, timeoutMs: 60_000 });
  const [plain, unknown, trusted] = await Promise.all([run(`https://127.0.0.1:${gateway.port}`), run(url), run(`https://localhost:${port}`, "--ca-file", certificate)]);
  assert.deepEqual([plain.code, plain.stderr], [1, "runcast: cannot read the current version: this address does not speak TLS; try http://\n"]);
  assert.equal(unknown.code, 1);
  assert.match(unknown.stderr, /^runcast: cannot read the current version: the certificate is not trusted: self-signed certificate; trust it with --ca-file FILE\n$/);
  assert.deepEqual([trusted.code, trusted.stdout], [0, "nothing was deployed to prod yet\n"], trusted.stderr);
  await gateway.stop();
});
