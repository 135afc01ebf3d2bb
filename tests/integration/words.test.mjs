// What the program says at its command line and at its end: help, errors once, the end of a terminal.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import path from "node:path";
import { test } from "node:test";

import { freePort, keys, startGateway, temporaryFolder, until } from "../support/gateway.mjs";
import { runProgram } from "../support/program.mjs";

const program = process.env.GATEWAY_BIN ?? path.resolve(import.meta.dirname, "../../build-asan/runcast");

test("help is there for everything and for each command, asked for in any way", async () => {
  const all = await runProgram(["help"]);
  assert.deepEqual([all.code, all.stdout], [0, (await runProgram(["--help"])).stdout]);
  for (const command of ["keys", "vault", "org", "project", "user", "token", "worker-token", "restored"]) {
    const one = await runProgram(["help", command]);
    assert.equal(one.code, 0, one.all);
    assert.match(one.stdout, new RegExp(`^  runcast ${command} `));
    assert.ok(one.stdout.split("\n").length < 15, one.stdout);
    assert.equal((await runProgram([command, "--help"])).stdout, one.stdout);
    const second = { vault: ["rotate"], restored: [] }[command] ?? ["create"];
    assert.equal((await runProgram([command, ...second, "--help"])).stdout, one.stdout);
  }
  assert.equal((await runProgram(["serve", "--help"])).stdout, all.stdout);
  const unknown = await runProgram(["help", "orgs"]);
  assert.deepEqual([unknown.code, unknown.stdout, unknown.stderr], [2, "", "runcast: orgs: not a command; runcast help shows them all\n"]);
});

test("a browser, and a link of the CLI, get a page that says where to look and shows nothing of the request", async (t) => {
  const gateway = await startGateway({ t });
  const root = await gateway.get("/", { key: null });
  assert.equal(root.status, 200);
  assert.match(root.headers["content-type"], /^text\/html/);
  assert.match(root.headers["content-security-policy"], /^default-src 'none';/);
  assert.doesNotMatch(root.text, /<script|<style|<img|<form|style=/);
  for (const target of [`/projects/v3/${keys.ref}/runs/run_abc`, `/projects/v3/${keys.ref}/test?environment=dev`, "/projects/v3/%3Cscript%3E?x=%22%3E"]) {
    const page = await gateway.get(target, { key: null });
    assert.deepEqual([page.status, page.text], [200, root.text], target);
  }
  assert.equal((await gateway.getAsAdmin("/")).status, 404);
  const { id } = (await gateway.post("/api/v1/tasks/hello/trigger", { payload: "1" })).json;
  for (const call of root.text.matchAll(/TRIGGER_API_URL(\/[^\s"<?]+)/g)) {
    const method = root.text.split("\n").find((line) => line.includes(call[0])).includes("-X POST") ? "POST" : "GET";
    if (call[1].startsWith("/realtime")) continue; // it goes on for ever
    const answer = await gateway.http.request(method, call[1].replace("run_…", id));
    assert.equal(answer.status, 200, `${call[1]}: ${answer.text}`);
  }
  await gateway.stop();
});

test("keys of one project", async (t) => {
  const gateway = await startGateway({ t });
  const run = (...words) => runProgram([...words, "--data", gateway.data]);
  await run("project", "create", "Second", "--ref", "proj_zzzzzzzzzzzzzzzzzzzz");
  const first = await run("keys", "--project", keys.ref);
  assert.match(first.stdout, new RegExp(keys.dev));
  assert.equal(first.stdout.trim().split("\n").length, 4);
  assert.equal((await run("keys")).stdout.trim().split("\n").length, 8);
  assert.match((await run("keys", "--project", "proj_x")).stderr, /there is no such project/);
  assert.match((await run("keys", "--project", keys.ref, "more")).stderr, /say runcast keys --project REF/);
  await gateway.stop();
});

test("why it did not start is said once: as a line of the log, or to a person", async (t) => {
  const gateway = await startGateway({ t });
  const args = ["--data", temporaryFolder(), "--listen", `127.0.0.1:${gateway.port}`];
  const failed = await runProgram(args);
  assert.equal(failed.code, 1);
  const lines = failed.stderr.trim().split("\n").map((line) => JSON.parse(line));
  assert.equal(lines.filter((line) => /address already in use/.test(JSON.stringify(line))).length, 1, failed.stderr);
  const { stdout: seen } = spawnSync("script", ["-qec", [program, ...args].join(" "), "/dev/null"], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  assert.equal(seen.match(/address already in use/g).length, 1, seen);
  assert.match(seen, /^runcast: .*address already in use/m);
  await gateway.stop();
});

test("SIGHUP drains what was started on a terminal, and is nothing to what was not", async (t) => {
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
