// The program as an operator sees it: options, first keys, files, signals, health.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import http from "node:http";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { describe, test } from "node:test";

import { freePort, keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { RawConnection } from "../support/js/http.mjs";
import { runProgram } from "../support/js/program.mjs";
import { RunsSocket } from "../support/js/runs.mjs";
import { publicToken } from "../support/js/tokens.mjs";

const modeOf = (file) => (fs.statSync(file).mode & 0o777).toString(8);
const inFolder = () => path.join(temporaryFolder(), "data");
const hex = (digit) => digit.repeat(64);

/** All bytes that a gateway left: its files and its output. */
function everyByte(gateway) {
  const files = fs.readdirSync(gateway.data).map((name) => path.join(gateway.data, name));
  const contents = files.filter((file) => fs.statSync(file).isFile()).map((file) => fs.readFileSync(file, "latin1"));
  return [...contents, gateway.stdout, gateway.stderr].join("\n");
}

describe("options", () => {
  test("--help names every option, --version the version", async () => {
    const help = await runProgram(["--help"]), settings = await runProgram(["--print-config"]);
    assert.equal(help.code, 0);
    const names = settings.stdout.trim().split("\n").map((line) => line.split(/\s/)[0]);
    assert.ok(names.includes("drain-timeout"));
    const secrets = ["metrics-token", "encryption-key", "next-encryption-key", "worker-token"]; // never flags
    for (const name of names) assert.match(help.stdout, new RegExp(secrets.includes(name) ? `  RUNCAST_${name.toUpperCase().replaceAll("-", "_")}\\b` : `--${name}\\b`));
    for (const command of ["serve", "supervise", "keys", "keys rotate", "vault rotate", "org", "project", "user", "token", "worker-token", "backup", "restore", "db check", "db stats", "copy"])
      assert.match(help.stdout, new RegExp(`runcast \\[?${command}\\b`));
    const version = await runProgram(["--version"]);
    assert.equal(version.code, 0);
    assert.match(version.stdout, /^runcast \d+\.\d+\.\d+\n$/);
  });

  test("--check-config checks the settings without starting", async () => {
    const data = inFolder();
    const good = await runProgram(["--check-config", "--data", data, "--retain", "1h"]);
    assert.equal(good.code, 0, good.all);
    const bad = await runProgram(["--check-config", "--data", data, "--retain", "soon"]);
    assert.equal(bad.code, 2);
    assert.match(bad.stderr, /^runcast: --retain: retain cannot be "soon"; give a time like 30s.*\n$/);
    assert.equal(fs.existsSync(data), false);
  });

  const wrong = [
    ["an unknown flag", ["--retian", "1h"], /--retian: unknown; did you mean --retain\?/],
    ["a word that is no command", ["server"], /server: not a command; did you mean serve\?/],
    ["a flag without its value", ["--listen"], /--listen: needs a value/],
    ["a secret as a flag", ["--encryption-key", "a".repeat(64)], /--encryption-key: .*RUNCAST_ENCRYPTION_KEY, or RUNCAST_ENCRYPTION_KEY_FILE.*--config/],
    ["the next key as a flag", [`--next-encryption-key=${"a".repeat(64)}`], /RUNCAST_NEXT_ENCRYPTION_KEY_FILE/],
    ["a token as a flag", ["--metrics-token"], /--metrics-token: .*RUNCAST_METRICS_TOKEN,/],
    ["an address that is none", ["--listen", "example.com:80"], /--listen: .*followed by ,proxy or ,tls/],
    ["a number out of bounds", ["--env-concurrency", "0"], /env-concurrency.*1 to/],
    ["a file that is not there", ["--config", "/nowhere/runcast.conf"], /\/nowhere\/runcast.conf: No such file/],
  ];
  for (const [what, args, said] of wrong)
    test(`${what} is an error with a reason`, async () => {
      const end = await runProgram([...args, ...(args.includes("--config") ? ["--check-config"] : [])]);
      assert.equal(end.code, 2, end.all);
      assert.match(end.stderr, said);
      assert.equal(end.stdout, "");
    });

  test("an unknown name in the file is an error with file and line", async () => {
    const file = path.join(temporaryFolder(), "runcast.conf");
    fs.writeFileSync(file, "retain = 1h\nlog-levle = debug\n");
    const end = await runProgram(["--check-config", "--config", file]);
    assert.equal(end.code, 2);
    assert.ok(end.stderr.includes(`${file}:2: log-levle: unknown; did you mean log-level?`), end.stderr);
  });

  test("an unknown RUNCAST_ variable is a warning", async () => {
    const end = await runProgram(["--check-config"], { env: { RUNCAST_RETIAN: "1h", RUNCAST_RETAIN: "2h" } });
    assert.equal(end.code, 0, end.all);
    assert.match(end.stderr, /warn.*RUNCAST_RETIAN/);
    assert.doesNotMatch(end.stderr, /RUNCAST_RETAIN"/);
  });

  test("flags win over variables, variables over the file, the file over defaults", async () => {
    const file = path.join(temporaryFolder(), "runcast.conf");
    fs.writeFileSync(file, "retain = 1h\nenv-concurrency = 7\nlease = 2m\n");
    const { stdout } = await runProgram(["--print-config", "--retain", "3h", "--config", file],
      { env: { RUNCAST_RETAIN: "2h", RUNCAST_ENV_CONCURRENCY: "8" } });
    const value = (name) => stdout.match(new RegExp(`^${name} += (\\S*)`, "m"))[1];
    assert.deepEqual(["retain", "env-concurrency", "lease", "queue-size"].map(value), ["3h", "8", "2m", "0"]);
    const told = (await runProgram(["--print-config", "--retain", "30d", "--lease", "90s", "--dev-ttl", "0"])).stdout;
    assert.match(told, /^retain += 30d .*\n[^]*^lease += 90s [^]*^dev-ttl += 0s /m);
  });

  test("--print-config hides secrets, whatever their source", async () => {
    const file = path.join(temporaryFolder(), "token");
    fs.writeFileSync(file, "CANARY_in_a_file\n");
    const { all } = await runProgram(["--print-config"],
      { env: { RUNCAST_ENCRYPTION_KEY: hex("a"), RUNCAST_METRICS_TOKEN_FILE: file, RUNCAST_DEV_SECRET_KEY: keys.dev } });
    assert.match(all, /metrics-token += \*\*\*/);
    assert.match(all, /encryption-key += \*\*\*/);
    for (const secret of ["CANARY", hex("a"), keys.dev]) assert.ok(!all.includes(secret), all);
  });
});

describe("the data directory", () => {
  const mode = (file) => fs.statSync(file).mode & 0o777;
  const serve = (data) => runProgram(["--data", data, "--listen", "127.0.0.1:0"]);
  const folder = (bits) => {
    const data = inFolder();
    fs.mkdirSync(data);
    fs.chmodSync(data, bits);
    return data;
  };

  test("is created for its owner alone, and closed to its group", async (t) => {
    const fresh = await startGateway({ t });
    assert.equal(mode(fresh.data), 0o700);
    await fresh.stop();
    const shared = await startGateway({ t, data: folder(0o775) });
    assert.equal(mode(shared.data), 0o755);
    assert.match(shared.stderr, /removed group write permission/);
    await shared.stop();
  });

  test("is refused when everybody can write in it, with what to do", async (t) => {
    for (const bits of [0o777, 0o1777, 0o703]) {
      const data = folder(bits), end = await serve(data);
      assert.equal(end.code, 1, end.all);
      assert.ok(end.stderr.includes(bits & 0o1000 ? `like ${data}/runcast` : `chmod 700 ${data}`), end.stderr); // /tmp must stay as it is
      assert.deepEqual(fs.readdirSync(data), [], "nothing was written");
    }
    const gateway = await startGateway({ t });
    await gateway.stop();
    fs.chmodSync(gateway.data, 0o777);
    const keys = await runProgram(["keys", "--data", gateway.data]);
    assert.deepEqual([keys.code, keys.stdout], [1, ""]);
    assert.match(keys.stderr, /chmod 700/);
  });

  test("is refused when another user owns it", async () => {
    if (process.getuid() !== 0) return; // only root can give a folder away
    const data = folder(0o700);
    fs.chownSync(data, 12345, 12345);
    const end = await serve(data);
    assert.equal(end.code, 1, end.all);
    assert.match(end.stderr, /belongs to user 12345.*sudo -u '#12345' …\), or .*chown 0 .*chmod 700/);
  });

  test("has no links in place of its files", async () => {
    for (const name of ["runcast.db.lock", "runcast.db", "encryption.key"]) {
      const data = folder(0o700), target = path.join(data, "elsewhere");
      fs.writeFileSync(target, "", { mode: 0o600 });
      fs.symlinkSync(target, path.join(data, name));
      const end = await serve(data);
      assert.equal(end.code, 1, end.all);
      assert.match(end.stderr, /symbolic link/, name);
      assert.equal(fs.readFileSync(target, "utf8"), "", name);
    }
  });
});

describe("first keys", () => {
  test("a first start prints keys and a line to paste, a second one does not, \"keys\" prints them again", async (t) => {
    const gateway = await startGateway({ t, withKeys: false });
    const first = await until(() => gateway.stdout);
    const [, url, key] = first.match(/export TRIGGER_API_URL=(\S+) TRIGGER_SECRET_KEY=(tr_dev_\w{24})\n  export TRIGGER_PROJECT_REF=proj_\w{20} TRIGGER_ACCESS_TOKEN=tr_pat_\w{40}\n/) ?? assert.fail(first);
    assert.equal(url, gateway.url);
    for (const form of [/tr_stg_\w{24}/, /tr_prod_\w{24}/, /tr_preview_\w{24}/, /tr_pat_\w{40}/, /proj_[a-z]{20}/]) assert.match(first, form);
    const triggered = await gateway.post("/api/v1/tasks/hello/trigger", { payload: 1 }, { key });
    assert.equal(triggered.status, 200, triggered.text);

    const asked = await runProgram(["keys", "--data", gateway.data]);
    assert.equal(asked.code, 0, asked.all);
    await gateway.stop();
    const read = await runProgram(["keys", "--data", gateway.data]);
    assert.equal(read.code, 0, read.all);
    assert.equal(read.stdout, asked.stdout, "the running gateway and the directory say the same");
    assert.equal(read.stdout.trim().split("\n").length, 4);
    for (const secret of first.match(/tr_(dev|stg|prod|preview)_\w{24}/g)) assert.ok(read.stdout.includes(secret));
    assert.doesNotMatch(read.stdout, /tr_pat_/, "only its hash is kept");
    assert.match(first, /The token is shown only now/);

    gateway.stdout = "";
    await gateway.restart();
    assert.equal((await gateway.get("/api/v1/runs", { key })).json.data[0].id, triggered.json.id);
    assert.doesNotMatch(gateway.stdout, /tr_/);
    await gateway.stop();
  });

  test("without a terminal only a line says how to get the keys", async (t) => {
    const gateway = await startGateway({ t, withKeys: false, env: { RUNCAST_PRINT_KEYS: "false" } });
    assert.match(await until(() => gateway.stdout), /^runcast made project proj_\w+ and its keys: runcast keys --new-personal-token --data \S+ prints them\.\n$/);
    const alone = async (...words) => (await runProgram(["keys", ...words, "--data", gateway.data]));
    const plain = await alone(), told = await alone("--new-personal-token");
    assert.equal(told.code, 0, told.all);
    assert.ok(told.stdout.startsWith(plain.stdout));
    const [, token] = told.stdout.slice(plain.stdout.length).match(/^(tr_pat_\w{40})\n$/) ?? assert.fail(told.stdout);
    assert.equal((await gateway.get("/api/v1/projects", { key: token })).status, 200);
    const dev = plain.stdout.match(/tr_dev_\w+/)[0];
    assert.equal((await gateway.get("/api/v1/runs", { key: dev })).status, 200);
    for (const [words, said, code] of [[["--user", "nobody@example.com"], /user not found/, 1], [["--name", "x"], /--name: not an option of runcast keys --new-personal-token/, 2]]) {
      const refused = await alone("--new-personal-token", ...words);
      assert.deepEqual([refused.code, refused.stdout], [code, ""], words.join(" "));
      assert.match(refused.stderr, said);
    }
    assert.doesNotMatch(gateway.stdout + gateway.stderr, /tr_/);
    await gateway.stop();
  });

  test("keys can come from the environment, and are not printed", async (t) => {
    const gateway = await startGateway({ t });
    for (const key of [keys.dev, keys.staging, keys.prod])
      assert.equal((await gateway.get("/api/v1/runs", { key })).status, 200);
    await gateway.stop();
    assert.doesNotMatch(gateway.stdout + gateway.stderr, /tr_/);
  });

  test("an invalid key is refused without being shown", async () => {
    const end = await runProgram(["--data", inFolder(), "--listen", "127.0.0.1:0"],
      { env: { RUNCAST_DEV_SECRET_KEY: "tr_dve_CANARY_CANARY_CANARY_CANARY" } });
    assert.notEqual(end.code, 0);
    assert.match(end.stderr, /RUNCAST_DEV_SECRET_KEY: must be tr_dev_/);
    assert.doesNotMatch(end.all, /CANARY/);
  });

  test("\"keys\" for a directory without data is an error", async () => {
    const data = inFolder();
    const end = await runProgram(["keys", "--data", data]);
    assert.equal(end.code, 1);
    assert.match(end.stderr, new RegExp(`no runcast data in ${data}, and no gateway serves it; start its gateway, or name another data directory with --data`));
    assert.equal(fs.existsSync(data), false);
  });
});

describe("the data directory", () => {
  test("belongs to one process; a second one is refused with a reason and does no harm", async (t) => {
    const gateway = await startGateway({ t });
    const second = await runProgram(["--data", gateway.data, "--listen", `127.0.0.1:${await freePort()}`]);
    assert.equal(second.code, 1, second.all);
    assert.match(second.stderr, /"reason":".*(in use|another)/);
    assert.equal((await gateway.post("/api/v1/tasks/a/trigger", {})).status, 200);
    assert.match((await runProgram(["keys", "--data", gateway.data])).stdout, new RegExp(keys.dev));
    await gateway.stop();
  });

  test("is readable only for its owner", async (t) => {
    const gateway = await startGateway({ t });
    await gateway.post("/api/v1/tasks/a/trigger", {});
    assert.equal(modeOf(gateway.data), "700");
    const names = fs.readdirSync(gateway.data);
    assert.ok(names.includes("encryption.key") && names.includes("admin.sock") && names.includes("runcast.db"), names.join(" "));
    for (const name of names) assert.equal(modeOf(path.join(gateway.data, name)), fs.statSync(path.join(gateway.data, name)).isDirectory() ? "700" : "600", name);
    await gateway.stop();
  });

  // Files of a process that leaves no core belong to root in /proc.
  test("is the only place of the keys: a crash leaves no core", async (t) => {
    const folder = temporaryFolder(), copy = path.join(folder, "copy"), binary = path.join(folder, "runcast"), data = path.join(folder, "data");
    const owner = (pid) => fs.statSync(`/proc/${pid}/status`).uid;
    const asNobody = process.getuid() === 0 ? "setpriv --reuid 65534 --clear-groups " : "";
    fs.copyFileSync(process.env.GATEWAY_BIN ?? path.resolve("build-asan/runcast"), copy);
    fs.writeFileSync(binary, `#!/bin/sh\nexec ${asNobody}${copy} "$@"\n`, { mode: 0o755 });
    fs.mkdirSync(data);
    if (asNobody) for (const one of [folder, data]) fs.chownSync(one, 65534, 65534);
    const gateway = await startGateway({ t, binary, data });
    const other = spawn("sh", ["-c", `exec ${asNobody}sleep 60`], { stdio: "ignore" });
    t.after(() => other.kill());
    await until(() => owner(other.pid) !== 0, { what: "a process that would leave one" });
    assert.equal(owner(gateway.pid), 0);
    await gateway.stop();
  });

  test("is refused with a wrong encryption key, and opens again with the right one", async (t) => {
    const gateway = await startGateway({ t, env: { RUNCAST_ENCRYPTION_KEY: hex("1") } });
    assert.equal(fs.existsSync(path.join(gateway.data, "encryption.key")), false);
    await gateway.stop();
    const listen = ["--listen", `127.0.0.1:${gateway.port}`];
    const wrong = await runProgram(["--data", gateway.data, ...listen], { env: { RUNCAST_ENCRYPTION_KEY: hex("2") } });
    assert.equal(wrong.code, 1, wrong.all);
    assert.match(wrong.stderr, /"event":"stopped","reason":".*encryption key/);
    const none = await runProgram(["keys", "--data", gateway.data]);
    assert.equal(none.code, 1, none.all);
    assert.doesNotMatch(none.all, /tr_/);
    fs.rmSync(path.join(gateway.data, "encryption.key"), { force: true });
    await gateway.restart();
    assert.equal((await gateway.get("/api/v1/runs")).status, 200);
    await gateway.stop();
  });

  test("contains no secret, nor do logs", async (t) => {
    const token = "CANARY_metrics_token";
    const gateway = await startGateway({ t, options: ["--log-level", "debug"],
      env: { RUNCAST_ENCRYPTION_KEY: hex("7"), RUNCAST_METRICS_TOKEN: token } });
    const jwt = await publicToken(gateway, { scopes: ["read:runs"] });
    await gateway.post("/api/v1/tasks/a/trigger", { payload: "seen" });
    await gateway.get("/api/v1/runs", { key: jwt });
    await gateway.get("/api/v1/runs", { key: `${keys.dev}CANARY` });
    await gateway.get("/metrics", { key: token });
    await gateway.get(`/api/v1/projects/${keys.ref}/runs`, { key: keys.pat });
    const socket = await RunsSocket.open({ port: gateway.port, query: `?token=${jwt}` });
    socket.send({ op: "sub", id: 1, all: true });
    await socket.next("ok");
    await assert.rejects(RunsSocket.open({ port: gateway.port, query: "?token=CANARY_wrong" }));
    const secrets = [...Object.values(keys).filter((key) => key.startsWith("tr_")), jwt, jwt.split(".")[2], token, "CANARY", hex("7")];
    const running = everyByte(gateway);
    await socket.close();
    await gateway.stop();
    for (const bytes of [running, everyByte(gateway)]) {
      assert.ok(bytes.includes("seen"), "these are the bytes of the database");
      for (const secret of secrets) assert.ok(!bytes.includes(secret), `found ${secret}`);
    }
  });

  test("has everything after a restart", async (t) => {
    const gateway = await startGateway({ t });
    const options = { tags: ["a", "ü"], metadata: { n: 1 }, idempotencyKey: "k", delay: "1h", ttl: "2h", queue: { name: "q" } };
    const { json: { id }, headers } = await gateway.post("/api/v1/tasks/keep/trigger", { payload: { deep: [1, 2] }, options });
    const other = (await gateway.post("/api/v1/tasks/keep/trigger", { payload: 2 })).json.id;
    await gateway.post(`/api/v2/runs/${other}/cancel`);
    const before = await Promise.all([id, other].map((one) => gateway.get(`/api/v3/runs/${one}`)));
    await gateway.stop();
    await gateway.restart();
    const after = await Promise.all([id, other].map((one) => gateway.get(`/api/v3/runs/${one}`)));
    assert.deepEqual(after.map(({ json }) => json), before.map(({ json }) => json));
    assert.equal(after[1].json.status, "CANCELED");
    const again = await gateway.post("/api/v1/tasks/keep/trigger", { options: { idempotencyKey: "k" } });
    assert.deepEqual(again.json, { id, isCached: true });
    const [epoch, seq] = headers["x-runs-seq"].split(".");
    const [epochNow, seqNow] = (await gateway.post("/api/v1/tasks/keep/trigger", {})).headers["x-runs-seq"].split(".");
    assert.equal(epochNow, epoch);
    assert.equal(Number(seqNow), Number(seq) + 4, "positions continue; the activity that is stored at a stop has one");
    await gateway.stop();
  });
});

describe("listening", () => {
  const anywhere = async (more = []) => ["--data", inFolder(), "--listen", `0.0.0.0:${await freePort()}`, ...more];

  test("on a public address requires keys that the operator chose, or --insecure", async (t) => {
    const refused = await runProgram(await anywhere());
    assert.equal(refused.code, 1, refused.all);
    assert.match(refused.stderr, /not a loopback address.*--insecure/);
    assert.doesNotMatch(refused.all, /tr_/);

    const port = await freePort();
    const open = ["--listen", `0.0.0.0:${port}`];
    const insecure = await startGateway({ t, port, withKeys: false, options: [...open, "--insecure"] });
    await insecure.stop();
    const chosen = await startGateway({ t, port, options: open });
    await chosen.stop();
  });

  test("on several addresses judges each by itself", async (t) => {
    const [one, two] = [await freePort(), await freePort()], socket = path.join(inFolder(), "http.sock");
    fs.mkdirSync(path.dirname(socket), { recursive: true });
    const refused = await runProgram(["--data", inFolder(), "--listen", `127.0.0.1:${one}`, "--listen", `0.0.0.0:${two}`]);
    assert.equal(refused.code, 1, refused.all);
    assert.match(refused.stderr, /0\.0\.0\.0 is not a loopback address/);
    const gateway = await startGateway({ t, port: one, options: ["--listen", `127.0.0.1:${one}`, "--listen", `[::1]:${two} unix:${socket}`] });
    assert.equal((await gateway.get("/api/v1/runs")).status, 200);
    assert.equal((await fetch(`http://[::1]:${two}/api/v1/runs`, { headers: { authorization: `Bearer ${keys.dev}` } })).status, 200);
    assert.equal(fs.statSync(socket).mode & 0o777, 0o660);
    const answer = await new Promise((resolve, reject) => http.get({ socketPath: socket, path: "/metrics", agent: false }, resolve).on("error", reject));
    assert.equal(answer.statusCode, 401, "a UNIX socket alone is not an admin listener");
    answer.resume();
    const second = await runProgram(["--data", inFolder(), "--listen", `unix:${socket}`]);
    assert.match(second.stderr, /cannot listen on .*http\.sock: address already in use/);
    await gateway.stop();
    assert.ok(!fs.existsSync(socket));
    fs.writeFileSync(socket, "somebody's");
    const third = await runProgram(["--data", inFolder(), "--listen", `unix:${socket}`]);
    assert.match(third.stderr, /http\.sock: the file is not a socket of this user/);
    assert.equal(fs.readFileSync(socket, "utf8"), "somebody's");
  });

  test("with the PROXY protocol an address has a limit of connections, and sockets count as long as they are open", async (t) => {
    const [plain, proxied] = [await freePort(), await freePort()];
    const gateway = await startGateway({ t, port: plain, options: ["--listen", `127.0.0.1:${plain} 127.0.0.1:${proxied},proxy`, "--connections-per-address", "2"] });
    const come = async (last, request) => {
      const connection = await RawConnection.open(proxied);
      const header = Buffer.from([13, 10, 13, 10, 0, 13, 10, 81, 85, 73, 84, 10, 0x21, 0x11, 0, 12, 198, 51, 100, last, 10, 0, 0, 1, 1, 1, 0, 80]);
      await connection.send(Buffer.concat([header, Buffer.from(request)]));
      return connection;
    };
    const upgrade = `GET /realtime/v1/ws HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${keys.dev}\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`;
    const health = "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";
    const sockets = [await come(1, upgrade), await come(1, upgrade)];
    for (const socket of sockets) await socket.read((text) => text.startsWith("HTTP/1.1 101 "));
    await (await come(1, health)).read((text) => text.startsWith("HTTP/1.1 503 "));
    await (await come(2, health)).read((text) => text.startsWith("HTTP/1.1 200 "));
    sockets[0].destroy();
    await until(async () => (await (await come(1, health)).read((text) => text.includes("\r\n\r\n"))).startsWith("HTTP/1.1 200 "), { what: "the place of a socket that has gone" });
    assert.match(gateway.stderr, /198\.51\.100\.1 has too many/);
    await gateway.stop();
  });

  test("on a port in use fails with a reason, and makes no keys", async (t) => {
    const server = net.createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => server.on("listening", resolve));
    t.after(() => server.close());
    const data = inFolder();
    const end = await runProgram(["--data", data, "--listen", `127.0.0.1:${server.address().port}`]);
    assert.deepEqual([end.code, end.stdout], [1, ""]);
    assert.match(end.stderr, /"reason":".*listen.*in use/);
    const again = await startGateway({ t, data, withKeys: false });
    assert.match(await until(() => again.stdout), /TRIGGER_ACCESS_TOKEN=tr_pat_/, "the first start that works shows them");
    await again.stop();
  });

  for (const listen of ["127.0.0.1:0", "0", ":0", "[::]:0"])
    test(`on ${listen} reports the address that it got`, async (t) => {
      const open = listen.startsWith(":") || listen.startsWith("[");
      const gateway = await startGateway({ t, withKeys: false, options: ["--listen", listen, ...open ? ["--insecure"] : []], ready: false });
      const told = await until(() => gateway.stdout.match(/TRIGGER_API_URL=(http:\S+:[1-9]\d*) /));
      await until(async () => (await fetch(`${told[1]}/readyz`)).status === 200);
      await until(() => gateway.stderr.includes(told[1]), { what: "the line that says ready" });
      await gateway.stop();
    });
});

describe("health", () => {
  test("healthz answers, readyz says ready, both without a credential", async (t) => {
    const gateway = await startGateway({ t });
    for (const target of ["/healthz", "/readyz"]) {
      const { status, json } = await gateway.get(target, { key: null });
      assert.equal(status, 200);
      assert.equal(typeof json.status, "string");
    }
    await gateway.stop();
  });

  test("metrics are readable in the data directory, and elsewhere only with the token, also from this machine", async (t) => {
    const own = Object.values(os.networkInterfaces()).flat().find((one) => one.family === "IPv4" && !one.internal)?.address;
    const port = await freePort(), hosts = ["127.0.0.1", own].filter(Boolean);
    const gateway = await startGateway({ t, port, options: ["--listen", `0.0.0.0:${port}`] });
    const from = (host, headers = {}) => fetch(`http://${host}:${port}/metrics`, { headers }).then(async (answer) => ({ status: answer.status, text: await answer.text() }));
    assert.equal(fs.statSync(path.join(gateway.data, "metrics.sock")).mode & 0o777, 0o600);
    assert.match((await gateway.getAsAdmin("/metrics")).text, /^# HELP runcast_/);
    for (const host of hosts) {
      const refused = await from(host);
      assert.equal(refused.status, 401);
      assert.match(JSON.parse(refused.text).error, /--admin-listen.*RUNCAST_METRICS_TOKEN/);
      assert.equal((await from(host, { authorization: "Bearer " })).status, 401, "no token is not an empty one");
    }
    await gateway.stop();
    assert.ok(!fs.existsSync(path.join(gateway.data, "metrics.sock")));
    await gateway.restart({ env: { RUNCAST_METRICS_TOKEN: "open-sesame" } });
    for (const host of hosts) {
      assert.equal((await from(host, { authorization: "Bearer open-sesame" })).status, 200);
      for (const wrong of ["Bearer open-sesam", "Bearer open-sesame!", "Bearer ", `Bearer ${keys.dev}`])
        assert.equal((await from(host, { authorization: wrong })).status, 401, wrong);
    }
    assert.equal((await gateway.getAsAdmin("/metrics")).status, 200);
    await gateway.kill();
    await gateway.restart(); // the old socket file is replaced
    assert.equal((await gateway.getAsAdmin("/metrics")).status, 200);
    await gateway.stop();
  });

  test("the admin listener serves health and metrics only, and nothing to a web page", async (t) => {
    const port = await freePort();
    const gateway = await startGateway({ t, options: ["--admin-listen", `127.0.0.1:${port}`], env: { RUNCAST_METRICS_TOKEN: "open-sesame" } });
    const ask = async (target, host, more = "", method = "GET") => {
      const connection = await RawConnection.open(port);
      await connection.send(`${method} ${target} HTTP/1.1\r\nhost: ${host}\r\norigin: http://${host}\r\n${more}connection: close\r\n\r\n`);
      const text = await connection.readToEnd();
      assert.doesNotMatch(text, /access-control/i);
      return Number(text.split(" ")[1]);
    };
    const address = `127.0.0.1:${port}`, token = "authorization: Bearer open-sesame\r\n";
    for (const target of ["/metrics", "/healthz", "/readyz"]) {
      for (const host of [address, "127.0.0.1", "localhost", `localhost:${port}`, "[::1]", "10.1.2.3:9"]) assert.equal(await ask(target, host), 200, host);
      for (const host of ["evil.example", `evil.example:${port}`, "127.0.0.1.evil.example", "localhost.", "1", "[evil]", "[127.0.0.1]", ""]) assert.ok([400, 403].includes(await ask(target, host)), host);
      assert.equal(await ask(target, "metrics.internal", token), 200, "a name, with the token");
    }
    const nameless = await RawConnection.open(port);
    await nameless.send("GET /metrics HTTP/1.0\r\n\r\n");
    assert.match(await nameless.readToEnd(), /^HTTP\/1\.1 403 /, "a missing name is not an address");
    assert.equal(await ask("/metrics", address, "", "OPTIONS"), 405);
    for (const target of ["/api/v1/runs", "/realtime/v1/ws", "/socket.io/?EIO=4&transport=websocket"])
      assert.equal(await ask(target, address, `authorization: Bearer ${keys.dev}\r\n`), 404, target);
    assert.equal((await gateway.get("/healthz")).status, 200);
    assert.ok(!fs.existsSync(path.join(gateway.data, "metrics.sock")));
    await gateway.stop();
  });
});

describe("SIGTERM", () => {
  const slowTrigger = "POST /api/v1/tasks/slow/trigger HTTP/1.1\r\nhost: x\r\n" +
    `authorization: Bearer ${keys.dev}\r\ncontent-type: application/json\r\ncontent-length: 13\r\n\r\n`;

  /** A draining gateway, and a request to it whose body has not arrived yet. */
  async function draining(t, options = []) {
    const gateway = await startGateway({ t, options: ["--drain-timeout", "20s", ...options] });
    const pending = await gateway.connect();
    await pending.send(slowTrigger);
    await gateway.get("/healthz"); // the head has arrived when this is answered
    return { gateway, pending };
  }

  test("lets requests finish, answers held polls, asks sockets to leave, and exits with 0", async (t) => {
    const { gateway, pending } = await draining(t);
    const socket = await RunsSocket.open({ port: gateway.port, token: keys.dev, hello: {} });
    await socket.next("welcome");
    socket.send({ op: "sub", id: 1, all: true });
    await socket.next("rows");
    await gateway.post(`/api/v1/projects/${keys.ref}/background-workers`, {
      localOnly: true, metadata: { packageVersion: "4.8.3", contentHash: "1", tasks: [{ id: "polled", filePath: "a.ts" }], queues: [] } });
    const poll = gateway.post("/engine/v1/dev/dequeue", { oldWorkers: [] });
    await until(() => gateway.metric("runcast_connections").then((count) => count >= 3));

    gateway.child.kill("SIGTERM");
    const drain = await socket.next("drain");
    assert.equal(typeof drain.in, "number");
    const { status, json } = await poll;
    assert.deepEqual([status, json], [200, { dequeuedMessages: [] }]);
    await pending.send('{"payload":1}'); // send it now: a drain does not wait long for a body
    gateway.http.close(); // idle connections were closed, so this client must open a new one
    const ready = await gateway.get("/readyz");
    assert.equal(ready.status, 503);
    assert.deepEqual(ready.json.reasons, ["draining"]);
    assert.equal((await gateway.get("/healthz")).status, 200);
    const late = await gateway.post("/api/v1/tasks/late/trigger", {});
    assert.equal(late.status, 503);
    assert.equal(late.headers["retry-after"], "1");

    const answer = await pending.readToEnd();
    assert.match(answer, /^HTTP\/1\.1 200 /);
    const id = answer.match(/run_\w+/)[0];
    const row = await socket.next((message) => message.op === "patch");
    assert.equal(row.rows[0][0], id, "changes are sent until the end");
    assert.deepEqual(await socket.closed, { code: 4200, reason: "the gateway is shutting down" });
    assert.deepEqual(await gateway.ended(), { code: 0, signal: null });
    await gateway.restart();
    assert.equal((await gateway.get(`/api/v3/runs/${id}`)).status, 200, "what was answered is there");
    await gateway.stop();
  });

  test("exits within --drain-timeout, whatever is left", async (t) => {
    const { gateway, pending } = await draining(t, ["--drain-timeout", "1s"]);
    const began = Date.now();
    gateway.child.kill("SIGTERM");
    assert.deepEqual(await gateway.ended(), { code: 0, signal: null });
    assert.ok(Date.now() - began >= 900);
    await pending.readToEnd();
  });

  test("does not wait for a silent client of the admin socket", async (t) => {
    const gateway = await startGateway({ t, options: ["--drain-timeout", "10m"] });
    const silent = net.connect(path.join(gateway.data, "admin.sock"));
    await once(silent, "connect");
    const closed = once(silent, "close");
    gateway.child.kill("SIGTERM");
    assert.deepEqual(await gateway.ended(), { code: 0, signal: null });
    await closed;
  });

  test("a second one exits at once", async (t) => {
    const { gateway } = await draining(t);
    gateway.child.kill("SIGTERM");
    await until(() => gateway.stderr.includes("draining"));
    gateway.child.kill("SIGTERM");
    const end = await gateway.ended();
    assert.notEqual(end.code, 0, "not by the end of the drain");
    await gateway.restart();
    await gateway.stop();
  });
});

describe("logs", () => {
  test("are JSON without a terminal, logfmt on request, one event per line", async (t) => {
    const gateway = await startGateway({ t });
    await gateway.stop();
    const events = gateway.stderr.trim().split("\n").map((line) => JSON.parse(line));
    for (const one of events) assert.match(one.time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert.deepEqual(events.map(({ event }) => event), ["the gateway is confined", "limits of long-lived connections", "audit", "ready", "draining", "stopped", "audit"]);
    gateway.stderr = "";
    await gateway.restart({ options: ["--log-format", "logfmt"] });
    await gateway.stop();
    assert.match(gateway.stderr, /^time=\S+ level=info event=ready url=/m);
  });
});
