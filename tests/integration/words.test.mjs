// Text of the command line and at exit: help, an error that is reported once, a terminal that closes.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { freePort, keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";

const program = process.env.GATEWAY_BIN ?? fileURLToPath(new URL("../../build-asan/runcast", import.meta.url));

test("help exists for everything and for each command, in every spelling of the request", async () => {
  const all = await runProgram(["help"]);
  assert.deepEqual([all.code, all.stdout], [0, (await runProgram(["--help"])).stdout]);
  for (const command of ["keys", "vault", "org", "project", "user", "token", "worker-token", "restored"]) {
    const one = await runProgram(["help", command]);
    assert.equal(one.code, 0, one.all);
    assert.match(one.stdout, new RegExp(`^  runcast ${command} `));
    assert.ok(one.stdout.split("\n").length < 15, one.stdout);
    assert.equal((await runProgram([command, "--help"])).stdout, one.stdout);
    const second = { keys: ["rotate"], vault: ["rotate"], restored: [] }[command] ?? ["create"];
    assert.equal((await runProgram([command, ...second, "--help"])).stdout, one.stdout);
    if (second.length) assert.equal((await runProgram(["help", command, ...second])).stdout, one.stdout);
  }
  assert.equal((await runProgram(["serve", "--help"])).stdout, all.stdout);
  assert.match((await runProgram(["help", "vault"])).stdout, /A gateway runs on it\.\n$/);
  const second = await runProgram(["help", "keys", "rotatee"]);
  assert.deepEqual([second.code, second.stderr], [2, "runcast: keys rotatee: not a command; did you mean keys rotate?\n"]);
  const unknown = await runProgram(["help", "orgs"]);
  assert.deepEqual([unknown.code, unknown.stdout, unknown.stderr], [2, "", "runcast: orgs: not a command; did you mean org?\n"]);
  for (const [typed, meant] of [["dashboards", "dashboard"], ["version", "versions"]])
    assert.equal((await runProgram([typed])).stderr, `runcast: ${typed}: not a command; did you mean ${meant}?\n`);
});

test("without the dashboard a browser, and a link of the CLI, get a page that says where to look and shows nothing of the request", async (t) => {
  const gateway = await startGateway({ t, options: ["--dashboard", "off"] });
  const root = await gateway.get("/", { key: null });
  assert.equal(root.status, 200);
  assert.match(root.headers["content-type"], /^text\/html/);
  assert.match(root.headers["content-security-policy"], /^default-src 'none';/);
  assert.doesNotMatch(root.text, /<script|<style|<img|<form|style=/);
  for (const target of [`/projects/v3/${keys.ref}/runs/run_abc`, `/projects/v3/${keys.ref}/test?environment=dev`, `/projects/${keys.ref}/ai-help?q=x`, "/projects/v3/%3Cscript%3E?x=%22%3E"]) {
    const page = await gateway.get(target, { key: null });
    assert.deepEqual([page.status, page.text], [200, root.text], target);
  }
  assert.equal((await gateway.getAsAdmin("/")).status, 404);
  const { id } = (await gateway.post("/api/v1/tasks/hello/trigger", { payload: "1" })).json;
  for (const call of root.text.matchAll(/TRIGGER_API_URL(\/[^\s"<?]+)/g)) {
    const method = root.text.split("\n").find((line) => line.includes(call[0])).includes("-X POST") ? "POST" : "GET";
    if (call[1].startsWith("/realtime")) continue; // this response never ends
    const answer = await gateway.http.request(method, call[1].replace("run_…", id));
    assert.equal(answer.status, 200, `${call[1]}: ${answer.text}`);
  }
  await gateway.stop();
});

test("\"keys\" can print one project", async (t) => {
  const gateway = await startGateway({ t });
  const run = (...words) => runProgram([...words, "--data", gateway.data]);
  await run("project", "create", "Second", "--ref", "proj_zzzzzzzzzzzzzzzzzzzz");
  const first = await run("keys", "--project", keys.ref);
  assert.match(first.stdout, new RegExp(keys.dev));
  assert.equal(first.stdout.trim().split("\n").length, 4);
  assert.equal((await run("keys")).stdout.trim().split("\n").length, 8);
  assert.match((await run("keys", "--project", "proj_x")).stderr, /project not found/);
  assert.match((await run("keys", "--project", keys.ref, "more")).stderr, /more: not for runcast keys;/);
  await gateway.stop();
});

test("an invalid command line exits with 2, a command that fails with 1, whether or not a gateway runs", async (t) => {
  const gateway = await startGateway({ t });
  const nowhere = path.join(temporaryFolder(), "nothing");
  for (const data of [gateway.data, nowhere]) {
    const run = async (...words) => (await runProgram([...words, "--data", data])).code;
    for (const words of [["org"], ["org", "remove"], ["org", "create"], ["org", "list", "--slug", "x"], ["org", "list", "--flag"], ["user", "create", "Ada"], ["token", "create"],
      ["project", "rename", keys.ref], ["keys", "show"], ["keys", "rotate"], ["vault"], ["vault", "turn"], ["nothing"], ["org", "create", "a", "b"], ["serve", "now"]])
      assert.equal(await run(...words), 2, words.join(" "));
    for (const words of [["org", "rename", "nobody", "--name", "x"], ["keys", "--project", "proj_nobody"], ["token", "revoke", "0123456789ab"], ["project", "delete", keys.ref], ["restored"]])
      assert.equal(await run(...words), 1, words.join(" "));
  }
  for (const words of [["keys", "rotate", "test"], ["keys", "rotate", "dev", "--grace", "soon"], ["user", "create", "Ada", "--email", "ada"], ["worker-token", "create", "--env", "dev"], ["org", "create", ""], ["project", "create", "a", "--ref", "x"]])
    assert.equal((await runProgram([...words, "--data", gateway.data])).code, 2, words.join(" "));
  await gateway.stop();
});

test("a wrong --confirm is refused with the right value, and a changed slug is reported", async (t) => {
  const gateway = await startGateway({ t });
  const run = (...words) => runProgram([...words, "--data", gateway.data]);
  assert.equal((await run("org", "create", "Second", "--slug", "My Slug")).stdout, "created organization my-slug: a slug has lower-case letters, digits and dashes between them\n");
  assert.equal((await run("org", "create", "Third", "--slug", "third")).stdout, "created organization third\n");
  await run("user", "create", "Ada", "--email", "ada@example.com", "--org", "third");
  for (const [noun, name] of [["project", keys.ref], ["org", "my-slug"], ["user", "ada@example.com"]]) {
    const { code, stderr } = await run(noun, "delete", name, "--confirm", "other");
    assert.deepEqual([code, stderr], [1, `runcast: --confirm names "other" instead of ${name}; nothing was deleted\n`]);
  }
  await gateway.stop();
});

test("--check-config refuses what a start would refuse", async () => {
  const check = (args, env = {}) => runProgram(["--check-config", ...args], { env });
  for (const [args, env, said] of [
    [[], { RUNCAST_DEV_SECRET_KEY: "secret" }, /RUNCAST_DEV_SECRET_KEY: must be tr_dev_/],
    [[], { RUNCAST_PROJECT_REF: "shop" }, /RUNCAST_PROJECT_REF: must be proj_/],
    [["--listen", ":3030"], {}, /0\.0\.0\.0 is not a loopback address/],
    [["--listen", "127.0.0.1:3030", "--listen", "localhost:3030"], {}, /--listen: listen repeats the address localhost:3030 of listen; give each address once/],
    [["--listen", "127.0.0.1:3030 :3030", "--insecure"], {}, /listen repeats the address :3030/],
    [["--listen", "unix:/run/a unix:/run/a"], {}, /listen repeats the address unix:\/run\/a/],
    [["--listen", "3030", "--admin-listen", "127.0.0.1:3030"], {}, /--admin-listen: admin-listen repeats the address 127\.0\.0\.1:3030/],
  ]) {
    const { code, stdout, stderr } = await check(args, env);
    assert.deepEqual([code, stdout], [2, ""], `${args} ${Object.keys(env)}`);
    assert.match(stderr, said);
    assert.doesNotMatch(stderr, /secret\b|shop/);
  }
  for (const args of [[], ["--listen", "127.0.0.1:0 127.0.0.1:0"], ["--listen", "127.0.0.1:3030 [::1]:3030 127.0.0.2:3030"], ["--listen", ":3030", "--insecure"]])
    assert.equal((await check(args)).code, 0, args.join(" "));
});

test("the reason why a start failed is written once: as a log line, or as text on a terminal", async (t) => {
  const gateway = await startGateway({ t });
  const args = ["--data", temporaryFolder(), "--listen", `127.0.0.1:${gateway.port}`];
  const failed = await runProgram(args);
  assert.equal(failed.code, 1);
  const lines = failed.stderr.trim().split("\n").map((line) => JSON.parse(line));
  assert.equal(lines.filter((line) => /address already in use/.test(JSON.stringify(line))).length, 1, failed.stderr);
  const { stdout: seen } = spawnSync("script", ["-qec", [program, ...args].join(" "), "/dev/null"], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  assert.equal(seen.match(/address already in use/g).length, 1, seen);
  const last = seen.trim().split(/\r?\n/).at(-1);
  assert.equal(last, `runcast: cannot listen on 127.0.0.1 port ${gateway.port}: address already in use; choose another port, for example --listen 127.0.0.1:${gateway.port + 1}`);
  const other = await freePort();
  const admin = await runProgram(["--data", temporaryFolder(), "--listen", `127.0.0.1:${other}`, "--admin-listen", `127.0.0.1:${gateway.port}`]);
  assert.match(admin.stderr, new RegExp(`in use; choose another port, for example --admin-listen 127\\.0\\.0\\.1:${gateway.port + 1}"`));
  await gateway.stop();
});

test("SIGHUP drains a gateway that was started on a terminal, and is ignored by others", async (t) => {
  const service = await startGateway({ t });
  service.child.kill("SIGHUP");
  assert.equal((await service.get("/api/v1/runs")).status, 200);
  service.child.kill("SIGHUP");
  assert.equal((await service.get("/api/v1/runs")).status, 200);
  await service.stop();

  const port = await freePort(), folder = temporaryFolder();
  const child = spawn("script", ["-qec", `echo pid=$$; exec ${program} --data ${folder}/data --listen 127.0.0.1:${port}`, "/dev/null"],
    { stdio: ["ignore", "pipe", "pipe"] });
  t.after(() => child.kill("SIGKILL"));
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (text) => { said += text; });
  const closed = new Promise((resolve) => child.on("close", resolve));
  await until(() => /event=ready/.test(said), { what: "ready", timeoutMs: 60_000 });
  process.kill(Number(said.match(/pid=(\d+)/)[1]), "SIGHUP");
  assert.equal(await closed, 0, said);
  assert.match(said, /event=draining[^]*event=stopped/);
});
