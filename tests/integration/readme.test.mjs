// The README's first minute, run as it is written: its own lines, in a shell, against a
// gateway; and a live subscriber that stays open for a minute.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { getBySocket, keys, startGateway, until } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";
import { Supervisor } from "../support/js/supervisor.mjs";

const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");

/** The indented block behind the sentence that contains `words`. */
function block(words) {
  const after = readme.slice(readme.indexOf(words)).split("\n\n");
  assert.ok(readme.includes(words), `the README says: ${words}`);
  return after.find((text) => text.startsWith("    ")).replace(/^ {4}/gm, "");
}

/** A shell with the variables that the first start prints. */
function shell(gateway, script) {
  const PATH = `/usr/bin:${process.env.PATH}`; // Debian's python3, which has python3-websockets
  const env = { ...process.env, PATH, TRIGGER_API_URL: gateway.url, TRIGGER_SECRET_KEY: keys.dev,
    TRIGGER_PROJECT_REF: keys.ref, TRIGGER_ACCESS_TOKEN: keys.pat };
  const child = spawn("bash", ["-c", `set -e\n${script}`], { env });
  const said = { out: "", err: "" };
  child.stdout.on("data", (bytes) => { said.out += bytes; });
  child.stderr.on("data", (bytes) => { said.err += bytes; });
  const ended = new Promise((resolve) => child.on("close", (code) => resolve(code)));
  return { child, said, ended };
}

test("the README has every setting and every metric, and no other", async (t) => {
  const rows = (from, to) => readme.slice(readme.indexOf(from), readme.indexOf(to)).split("\n").filter((line) => line.startsWith("| "));
  const words = (cells) => cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1])).sort();
  const settings = (await runProgram(["--print-config"])).stdout.trim().split("\n").map((line) => line.split(/\s/)[0]);
  const table = rows("## Configuration", "## Environment variables").map((row) => row.split("|"));
  assert.deepEqual(words(table.map((row) => row[1])), settings.sort());

  const gateway = await startGateway({ t });
  const role = await Supervisor.start(gateway, { t, token: (await runProgram(["worker-token", "create", "--data", gateway.data])).stdout.trim() });
  const told = [await gateway.getAsAdmin("/metrics"), await getBySocket(path.join(role.folder, "metrics.sock"), "/metrics")];
  const metrics = told.flatMap(({ text }) => [...text.matchAll(/^# TYPE (\w+)/gm)].map((match) => match[1]));
  assert.deepEqual(words(rows("### Metrics", "### Another")).filter((word) => word !== "/metrics"), metrics.sort());
});

test("the files that the README names are there", () => {
  const named = [...readme.matchAll(/`((?:tests|bench|deploy|include|src)\/[\w./-]+)`/g)].map((match) => match[1]);
  assert.deepEqual(named.filter((name) => !existsSync(new URL(`../../${name}`, import.meta.url))), []);
});

test("trigger, retrieve, watch for a minute and cancel, as the README says", async (t) => {
  const gateway = await startGateway({ t });
  const first = shell(gateway, `${block("Trigger a run and look at it")}\necho; echo "id=$id"`);
  assert.equal(await first.ended, 0, first.said.err);
  const id = first.said.out.match(/^id=(run_\w+)$/m)[1];
  const run = JSON.parse(first.said.out.split("\n").find((line) => line.startsWith("{")));
  assert.deepEqual([run.id, run.payload, run.tags], [id, { name: "Ada" }, ["demo"]]);

  const [command, typed] = block("Watch everything that carries the tag").split("\n");
  const watching = shell(gateway, `exec ${command.replace("ws://127.0.0.1:3030", gateway.url.replace("http", "ws"))}`);
  t.after(() => watching.child.kill());
  await until(() => watching.said.out.includes("Connected"));
  watching.child.stdin.write(`${typed.replace("> ", "")}\n`);
  await until(() => watching.said.out.includes('"rows"') && watching.said.out.includes(id));

  const opened = Date.now();
  await until(() => Date.now() - opened > 60_000, { timeoutMs: 70_000 });
  assert.equal(watching.child.exitCode, null, "still connected after a minute");

  const cancel = shell(gateway, `id=${id}\n${block("Cancel the run")}`);
  assert.equal(await cancel.ended, 0, cancel.said.err);
  assert.deepEqual(JSON.parse(cancel.said.out), { id });
  await until(() => /"patch".*CANCELED/.test(watching.said.out));
  watching.child.kill();
  await watching.ended;
  await gateway.stop();
});

test("a page of Python follows a tag across a kill of the gateway, and ends when its key is none", async (t) => {
  const gateway = await startGateway({ t });
  const lines = readme.slice(readme.indexOf("In Python, with")).split("\n").slice(2);
  const page = lines.slice(0, lines.findIndex((line) => line && !line.startsWith("    "))).map((line) => line.slice(4)).join("\n");
  const follow = (more) => {
    const following = shell(gateway, `${more}\nexec python3 -u - <<'END'\n${page}\nEND`);
    t.after(() => following.child.kill());
    return following;
  };
  const trigger = async () => (await gateway.post("/api/v1/tasks/hello/trigger", { options: { tags: ["demo"] } })).json.id;
  const first = await trigger(), following = follow("");
  const says = (text) => until(() => following.said.out.includes(text), { what: text }).catch((error) => { throw new Error(`${error.message}; ${following.said.err}`); });
  await says(`${first} QUEUED`);
  await gateway.kill();
  await gateway.restart();
  await gateway.post(`/api/v2/runs/${first}/cancel`, {});
  await says(`${first} CANCELED`);
  await says(`${await trigger()} QUEUED`);
  assert.equal(following.said.out.split(`${first} `).length, 3, "each state was told once");
  following.child.kill();
  const refused = follow("TRIGGER_SECRET_KEY=tr_dev_nonsense");
  assert.notEqual(await refused.ended, 0);
  assert.match(refused.said.err, /4001/);
  await gateway.stop();
});

test("an environment variable is set as the README says", async (t) => {
  const gateway = await startGateway({ t });
  const set = shell(gateway, block("## Environment variables"));
  assert.equal(await set.ended, 0, set.said.err);
  assert.deepEqual(JSON.parse(set.said.out), { success: true });
  const got = await gateway.get(`/api/v1/projects/${keys.ref}/envvars/prod/DATABASE_URL`, { key: keys.pat });
  assert.equal(got.json.value, "postgres://…");
  await gateway.stop();
});
