// Runs the commands about installing in README.md, and those of other chapters, in a shell as they are written, and
// compares the tables of the chapters with the program. tests/conformance/worker/readme.test.mjs runs the rest of
// README.md.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { getBySocket, keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";
import { Supervisor } from "../support/js/supervisor.mjs";
import { makeCertificate } from "../support/js/tls.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

const top = fileURLToPath(new URL("../..", import.meta.url));
const chapter = (name) => readFileSync(path.join(top, name), "utf8");
const operating = readdirSync(path.join(top, "deploy")).filter((name) => name.endsWith(".md")).map((name) => `deploy/${name}`);
const chapters = ["README.md", ...operating, "bench/README.md", "src/README.md",
  ...readdirSync(path.join(top, "src"), { withFileTypes: true }).filter((area) => area.isDirectory())
    .flatMap((area) => ["", ...readdirSync(path.join(top, "src", area.name))].map((room) => path.join("src", area.name, room, "README.md")))
    .filter((name) => existsSync(path.join(top, name)))];
const readme = chapter("README.md");

/** The indented block after the sentence that contains `words`. */
function block(words, text = readme) {
  const after = text.slice(text.indexOf(words)).split("\n\n");
  assert.ok(text.includes(words), `the chapter says: ${words}`);
  return after.find((text) => text.startsWith("    ")).replace(/^ {4}/gm, "");
}

/** A shell with the variables that the first start prints. */
function shell(gateway, script) {
  const PATH = `/usr/bin:${process.env.PATH}`; // Debian's python3, which has python3-websockets
  const env = { ...process.env, PATH, TRIGGER_API_URL: gateway.url, TRIGGER_SECRET_KEY: keys.dev,
    TRIGGER_PROJECT_REF: keys.ref, TRIGGER_ACCESS_TOKEN: keys.pat };
  const child = spawn("bash", ["-c", `set -e\n${script}`], { env });
  const output = { out: "", err: "" };
  child.stdout.on("data", (bytes) => { output.out += bytes; });
  child.stderr.on("data", (bytes) => { output.err += bytes; });
  const ended = new Promise((resolve) => child.on("close", (code) => resolve(code)));
  return { child, output, ended };
}

/** The rows (arrays of cells) of every table in deploy/*.md whose header row is `header`. */
function rows(header) {
  const found = operating.flatMap((name) => chapter(name).split(`\n${header}\n`).slice(1)).flatMap((after) => {
    const [, ...lines] = after.split("\n");
    return lines.slice(0, lines.findIndex((line) => !line.startsWith("|")));
  });
  assert.ok(found.length, `a chapter has a table with the header ${header}`);
  return found.map((row) => row.split("|").slice(1).map((cell) => cell.trim()));
}

/** Asserts that the chapters list what the program has, each thing once. */
function expectSame(listed, existing, chapters) {
  assert.deepEqual(existing.filter((one) => !listed.includes(one)), [], `missing in ${chapters}`);
  assert.deepEqual(listed.filter((one) => !existing.includes(one)), [], `in ${chapters}, but not in the program`);
  assert.deepEqual(listed.filter((one, i) => listed.indexOf(one) < i), [], `twice in ${chapters}`);
}

test("the chapters in deploy list every setting with its default and every metric with its type exactly once, and no other", async (t) => {
  const bare = (cell) => cell.replaceAll("`", ""), shown = { "": "none", false: "off" };
  const printed = (await runProgram(["--print-config"])).stdout.trim().split("\n").map((line) => /^(\S+)\s+= ?(.*?)\s+; default$/.exec(line).slice(1));
  const settings = rows("| name | default | unit or values | what it does |");
  expectSame(settings.map(([name]) => bare(name)), printed.map(([name]) => name), "deploy/settings.md or deploy/execution-settings.md");
  const defaults = new Map(printed.map(([name, value]) => [name, shown[value] ?? value]));
  for (const [name, value] of settings.filter(([, word]) => !word.includes(" "))) assert.equal(bare(value), defaults.get(bare(name)), name);

  const gateway = await startGateway({ t });
  const role = await Supervisor.start(gateway, { t, token: (await runProgram(["worker-token", "create", "--data", gateway.data])).stdout.trim() });
  const told = [await gateway.getAsAdmin("/metrics"), await getBySocket(path.join(role.folder, "metrics.sock"), "/metrics")];
  const metrics = told.flatMap(({ text }) => [...text.matchAll(/^# TYPE (\w+ \w+)/gm)].map((match) => match[1]));
  expectSame(rows("| metric | type | labels | what it shows |").map(([name, type]) => `${bare(name)} ${type}`), metrics, "deploy/metrics.md");
});

test("Reload in deploy/configuration.md lists the settings that a reload may change", () => {
  const folder = "src/server/config", names = new Map([...chapter(`${folder}/config.def`).matchAll(/^CONFIG_\w+\("([\w-]+)", (\w+)/gm)].map(([, name, field]) => [field, name]));
  const reloadable = [...chapter(`${folder}/config_reload.c`).matchAll(/case SETTING_(\w+):/g)].map(([, field]) => names.get(field));
  const list = chapter("deploy/configuration.md").split("\n## Reload\n")[1].split("\n\n").find((text) => text.startsWith("- "));
  expectSame([...list.matchAll(/`([a-z-]+)`/g)].map(([, name]) => name), reloadable, "Reload of deploy/configuration.md");
});

test("deploy/operations.md lists every subcommand", async () => {
  const listed = new Set(rows("| subcommand | what it does |").flatMap(([names]) => names.match(/[a-z-]+/g)));
  const { stdout } = await runProgram(["--help"]), names = [...stdout.matchAll(/^ {2}runcast \[?([a-z-]+)/gm)].map(([, name]) => name);
  assert.ok(names.length > 12, `${names.length} subcommands`);
  assert.deepEqual(names.filter((name) => name !== "help" && !listed.has(name)), [], "without a row in the table of deploy/operations.md");
});

test("files that the chapters name exist", () => {
  const named = chapters.flatMap((name) => [...chapter(name).matchAll(/`((?:tests|bench|deploy|include|src)\/[\w./-]+)`/g)].map((match) => match[1]));
  assert.ok(named.length > 40, `${named.length} files`);
  const ignored = readFileSync(path.join(top, ".gitignore"), "utf8").split("\n"); // what users make
  assert.deepEqual(named.filter((name) => !name.includes("_X.") && !ignored.includes(`/${name}`) && !existsSync(path.join(top, name))), []);
});

test("each limit has a value, a consequence, and an existing setting", async () => {
  const settings = (await runProgram(["--print-config"])).stdout.trim().split("\n").map((line) => line.split(/\s/)[0]);
  const limits = rows("| limit | value | when exceeded | setting |");
  assert.ok(limits.length > 200, `${limits.length} limits`);
  for (const [what, much, above, setting, ...more] of limits) {
    assert.deepEqual(more, [""], what);
    assert.ok(much && above, what);
    for (const [, name] of setting.matchAll(/`([a-z][a-z-]*)`/g)) assert.ok(settings.includes(name), name);
  }
  for (const [what, , project, gateway, setting, ...more] of rows("| limit | an environment | its project | the gateway | setting |")) {
    assert.deepEqual([more, Boolean(project || gateway)], [[""], true], what);
    for (const [, name] of setting.matchAll(/`([a-z][a-z-]*)`/g)) assert.ok(settings.includes(name), name);
  }
});

test("the settings of TLS work as they are written, for a shell and for the service", async () => {
  const folder = temporaryFolder(), { certificate, key } = makeCertificate(folder, "own");
  const here = (text) => text.replaceAll(/\S+\.(pem|key)\b/g, (file) => (/key/.test(file) ? key : certificate));
  const [, ...words] = here(block("An address of `--listen` that ends", chapter("deploy/proxies-and-tls.md"))).replaceAll("\\\n", " ").trim().split(/\s+/);
  const file = path.join(folder, "runcast.conf");
  writeFileSync(file, here(block("In `/etc/runcast/runcast.conf`:", chapter("deploy/proxies-and-tls.md"))));
  for (const args of [words, ["--config", file]]) {
    const { code, all } = await runProgram([...args, "--check-config"]);
    assert.deepEqual([code, all], [0, "runcast: the settings are fine\n"]);
  }
});

test("README.md has at most 1,200 words", () => {
  const words = readme.split(/\s+/).filter(Boolean).length;
  assert.ok(words <= 1200, `${words} words`);
});

test("a clone is installed, built and started as README.md says", () => {
  const folder = temporaryFolder(), origin = path.join(folder, "origin"), programs = path.join(folder, "programs");
  cpSync(path.join(top, "deploy"), path.join(origin, "deploy"), { recursive: true });
  const commit = spawnSync("bash", ["-ec", "git init -q && git add . && git -c user.name=a -c user.email=a commit -qm a"], { cwd: origin, encoding: "utf8" });
  assert.equal(commit.status, 0, commit.stderr);
  mkdirSync(programs); // stand-ins: packages count as installed, and the built program prints its arguments
  for (const [name, text] of Object.entries({
    "dpkg-query": "printf installed", cmake: "mkdir -p build && touch build/build.ninja",
    ninja: "printf '#!/bin/sh\\necho started \"$@\"\\n' >build/runcast && chmod +x build/runcast",
  })) writeFileSync(path.join(programs, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  const run = (lines) => spawnSync("bash", ["-ec", lines.replace("clone URL", `clone ${origin}`)], { cwd: folder, encoding: "utf8", env: { ...process.env, PATH: `${programs}:${process.env.PATH}` } });
  const first = run(block("## Install"));
  assert.deepEqual([first.status, first.stdout], [0, "started --print-keys\n"], first.stderr);
  const [, other] = /`(deploy\/run\.sh --listen [^`]+)`/.exec(readme);
  assert.equal(run(`cd runcast; ${other}`).stdout, "started --print-keys --listen 127.0.0.1:3031\n");
});

test("trigger, retrieve, watch for a minute and cancel by hand, as src/api/realtime/README.md says", async (t) => {
  const gateway = await startGateway({ t }), realtime = chapter("src/api/realtime/README.md");
  const first = shell(gateway, `${block("Trigger a run with a tag", realtime)}\necho; echo "id=$id"`);
  assert.equal(await first.ended, 0, first.output.err);
  const id = first.output.out.match(/^id=(run_\w+)$/m)[1];
  const run = JSON.parse(first.output.out.split("\n").find((line) => line.startsWith("{")));
  assert.deepEqual([run.id, run.payload, run.tags], [id, { name: "Ada" }, ["demo"]]);

  const [command, typed] = block("Subscribe to the tag", realtime).split("\n");
  const watching = shell(gateway, `exec ${command.replace("ws://127.0.0.1:3030", gateway.url.replace("http", "ws"))}`);
  t.after(() => watching.child.kill());
  await until(() => watching.output.out.includes("Connected"));
  watching.child.stdin.write(`${typed.replace("> ", "")}\n`);
  await until(() => watching.output.out.includes('"rows"') && watching.output.out.includes(id));

  const opened = Date.now();
  await until(() => Date.now() - opened > 60_000, { timeoutMs: 70_000 });
  assert.equal(watching.child.exitCode, null, "still connected after a minute");

  const cancel = shell(gateway, `id=${id}\n${block("Cancel the run in the first", realtime)}`);
  assert.equal(await cancel.ended, 0, cancel.output.err);
  assert.deepEqual(JSON.parse(cancel.output.out), { id });
  await until(() => /"patch".*CANCELED/.test(watching.output.out));
  watching.child.kill();
  await watching.ended;
  await gateway.stop();
});

test("the Python example follows a tag across a kill of the gateway, and ends when its key is invalid", async (t) => {
  const gateway = await startGateway({ t });
  const realtime = chapter("src/api/realtime/README.md");
  const lines = realtime.slice(realtime.indexOf("In Python, with")).split("\n").slice(2);
  const page = lines.slice(0, lines.findIndex((line) => line && !line.startsWith("    "))).map((line) => line.slice(4)).join("\n");
  const follow = (more) => {
    const following = shell(gateway, `${more}\nexec python3 -u - <<'END'\n${page}\nEND`);
    t.after(() => following.child.kill());
    return following;
  };
  const trigger = async () => (await gateway.post("/api/v1/tasks/hello/trigger", { options: { tags: ["demo"] } })).json.id;
  const first = await trigger(), following = follow("");
  const says = (text) => until(() => following.output.out.includes(text), { what: text }).catch((error) => { throw new Error(`${error.message}; ${following.output.err}`); });
  await says(`${first} QUEUED`);
  await gateway.kill();
  await gateway.restart();
  await gateway.post(`/api/v2/runs/${first}/cancel`, {});
  await says(`${first} CANCELED`);
  await says(`${await trigger()} QUEUED`);
  assert.equal(following.output.out.split(`${first} `).length, 3, "each state arrived once");
  following.child.kill();
  const refused = follow("TRIGGER_SECRET_KEY=tr_dev_nonsense");
  assert.notEqual(await refused.ended, 0);
  assert.match(refused.output.err, /4001/);
  await gateway.stop();
});

test("an environment variable is set as src/api/envvars/README.md says", async (t) => {
  const gateway = await startGateway({ t });
  const set = shell(gateway, block("# Environment variables", chapter("src/api/envvars/README.md")));
  assert.equal(await set.ended, 0, set.output.err);
  assert.deepEqual(JSON.parse(set.output.out), { success: true });
  const got = await gateway.get(`/api/v1/projects/${keys.ref}/envvars/prod/DATABASE_URL`, { key: keys.pat });
  assert.equal(got.json.value, "postgres://…");
  await gateway.stop();
});

/** The objects of an example with one JSON object a line; "…" stands for any value. */
const objects = (text) => text.trim().split("\n").map((line) => JSON.parse(line.replace(/ +\/\/.*/, "").replaceAll("…", "1")));

test("limits, gates, rates, singletons and debounce work as their chapters say", async (t) => {
  const gateway = await startGateway({ t, options: ["--dequeue-wait", "0"] }), router = chapter("src/api/router/README.md");
  const [declared, triggered] = objects(block("### Gates", router)), [debounced] = objects(block("### Debounce", router));
  const limits = [...block("### Concurrency limits", router).matchAll(/concurrencyLimit\((.*?)\)/g)].map(([, text]) => JSON.parse(text.replace(/(\w+):/g, '"$1":')));
  const worker = await Worker.register(gateway, { tasks: [declared, "free"], queues: ["gpu", "openai", "users", "emails", "sync"].map((name) => ({ name })), concurrencyLimits: limits });
  const trigger = async (task, body) => { const { status, json, text } = await gateway.post(`/api/v1/tasks/${task}/trigger`, body); assert.equal(status, 200, text); return json; };
  const read = async (path) => (await gateway.get(path)).json;

  const { id } = await trigger(declared.id, triggered);
  assert.deepEqual((await worker.show(id)).run.gates, triggered.options.gates);
  assert.deepEqual((await worker.show((await trigger(declared.id, {})).id)).run.gates, declared.gates);
  const first = await trigger("free", debounced);
  assert.deepEqual(await trigger("free", debounced), { ...first, isCached: true });

  const { configure, concurrencyLimits } = createRequire(new URL("../conformance/sdk-v4/x.js", import.meta.url))("@trigger.dev/sdk"), overridden = [];
  configure({ baseURL: gateway.url, accessToken: keys.dev });
  for (const line of block("A `reset` without a key", router).trim().split("\n")) {
    await new Function("concurrencyLimits", "user", `return (async () => { ${line}\n })()`)(concurrencyLimits, { id: "ann" });
    overridden.push([(await concurrencyLimits.retrieve("openai")).total.override, (await concurrencyLimits.retrieve("openai", { concurrencyKey: "ann" })).perKey.override]);
  }
  assert.deepEqual(overridden, [[20, null], [20, 5], [null, 5], [null, null]]);

  const rates = shell(gateway, block("### Rates", router));
  assert.equal(await rates.ended, 0, rates.output.err);
  assert.deepEqual([await read(`/api/v1/concurrency-limits/${limits[0].name}`), await read("/api/v1/queues/emails?type=custom")].map(({ rate }) => [rate?.total?.starts, rate?.perKey?.starts]), [[10, 2], [10, undefined]]);
  assert.equal((await read("/api/v1/queues/emails?type=custom&concurrencyKey=ann")).name, "emails");

  const singleton = shell(gateway, block("Its strategy decides", chapter("src/api/queues/README.md")));
  assert.equal(await singleton.ended, 0, singleton.output.err);
  const sync = () => trigger("free", { options: { queue: { name: "sync" }, concurrencyKey: "ann" } }), one = await sync();
  assert.deepEqual(await sync(), { id: one.id, isCached: true });
  assert.deepEqual((await read("/api/v1/queues/sync/usage?type=custom")).queued.map((run) => run.id), [one.id]);
  await gateway.stop();
});
