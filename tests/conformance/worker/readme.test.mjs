// Executes the lines of README.md as they are written: from an empty folder to runs in development, then to production.
// Packages that npm would fetch are linked from here instead; README_INSTALL=1 lets npm fetch them.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import { workerFolder } from "../../support/js/cli.mjs";
import { keys, startGateway, temporaryFolder, until } from "../../support/js/gateway.mjs";
import { isRoot, runnerUid } from "../../support/js/supervisor.mjs";

const readme = fs.readFileSync(new URL("../../../README.md", import.meta.url), "utf8");

/** The indented block after the sentence that contains `words`. */
function block(words) {
  const at = readme.indexOf(words);
  assert.ok(at >= 0, `README.md contains: ${words}`);
  const lines = readme.slice(at).split("\n"), begin = lines.findIndex((line) => line.startsWith("    "));
  const end = lines.findIndex((line, i) => i > begin && line && !line.startsWith("    "));
  return lines.slice(begin, end).map((line) => line.slice(4)).join("\n").trim();
}

/** Starts a shell in the folder, with the variables that the gateway prints at its first start. */
function shell(gateway, folder, script, env = {}) {
  const scratch = temporaryFolder(), stub = pathToFileURL(path.join(workerFolder, "stub-net.mjs")).href;
  const child = spawn("bash", ["-c", `set -e\n${script}`], {
    cwd: folder,
    detached: true, // its process group is killed with it
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...process.env, HOME: scratch, TMPDIR: scratch, STUB_ANSWER: "1", NODE_OPTIONS: `--import ${stub}`, NO_COLOR: "1",
      PATH: `${path.dirname(process.execPath)}:${process.env.PATH}`,
      TRIGGER_API_URL: gateway.url, TRIGGER_SECRET_KEY: keys.dev,
      TRIGGER_PROJECT_REF: keys.ref, TRIGGER_ACCESS_TOKEN: keys.pat, ...env,
    },
  });
  const one = { child, output: "" };
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => { one.output += text; });
  one.ended = new Promise((resolve) => child.on("close", (code) => { one.code = code ?? 1; resolve(one.code); }));
  return one;
}

async function run(...args) {
  const one = shell(...args);
  assert.equal(await one.ended, 0, one.output);
  return one.output.trim().split("\n");
}

/** A folder with a clone whose program is built, and a gateway that was started in it. */
async function startInClone(t, options = []) {
  const folder = fs.realpathSync(temporaryFolder()), clone = path.join(folder, "runcast");
  fs.mkdirSync(path.join(clone, "build"), { recursive: true });
  fs.chmodSync(folder, 0o711); // versions are kept next to the data
  fs.symlinkSync(path.resolve(process.env.GATEWAY_BIN), path.join(clone, "build/runcast"));
  const gateway = await startGateway({ t, data: path.join(clone, "data"), options });
  return { folder, clone, hello: path.join(folder, "hello"), gateway };
}

/** Creates the project of README.md. */
async function makeProject({ folder, hello, gateway }) {
  const [create, init, install, ...files] = block("Create a project with the task").split("\n");
  await run(gateway, folder, create);
  await run(gateway, hello, init);
  if (process.env.README_INSTALL) {
    await run(gateway, hello, install);
  } else {
    const { dependencies, devDependencies } = JSON.parse(fs.readFileSync(path.join(workerFolder, "package.json")));
    const wanted = Object.entries({ ...dependencies, ...devDependencies });
    assert.equal(install, `npm install ${wanted.map(([name, version]) => `${name}@${version}`).join(" ")}`);
    const file = path.join(hello, "package.json"), project = JSON.parse(fs.readFileSync(file, "utf8"));
    fs.writeFileSync(file, JSON.stringify({ ...project, dependencies: Object.fromEntries(wanted) })); // as npm does
    fs.symlinkSync(path.join(workerFolder, "node_modules"), path.join(hello, "node_modules"));
    fs.copyFileSync(path.join(workerFolder, "package-lock.json"), path.join(hello, "package-lock.json"));
  }
  await run(gateway, hello, files.join("\n"));
}

/** Changes the greeting in the task's file, like an editor. */
function edit(hello, from, to) {
  const file = path.join(hello, "src/trigger/hello.ts");
  fs.writeFileSync(file, fs.readFileSync(file, "utf8").replace(from, to));
}

test("the first task in README.md is the one that its first project contains", () => {
  assert.ok(block("Create a project with the task").includes(`<<'END'\n${block("A task:")}\nEND`));
});

test("from an empty folder to a run in the dashboard, then to a script that follows runs", async (t) => {
  const world = await startInClone(t), { folder, hello, gateway } = world;
  await makeProject(world);
  const cli = shell(gateway, hello, block("Execute it with the official CLI"));
  t.after(() => { if (cli.code === undefined) process.kill(-cli.child.pid, "SIGKILL"); });
  await until(() => cli.code !== undefined || cli.output.includes("Local worker ready"), { timeoutMs: 100_000, what: "the CLI is ready" });
  assert.equal(cli.code, undefined, cli.output);

  const lines = (await run(gateway, folder, block("Print a link that signs you in"))).join("\n");
  const link = /^http:\S+\/#signin=\w+$/m.exec(lines)?.[0];
  assert.ok(link?.startsWith(gateway.url), lines);
  const [, id] = /"id":"(run_\w+)"/.exec(lines);
  await until(async () => (await gateway.get(`/api/v3/runs/${id}`)).json.status === "COMPLETED", { timeoutMs: 60_000, everyMs: 100, what: "the run completes" });
  assert.equal((await gateway.get(`/api/v3/runs/${id}`)).json.output, "Hello, Ada!");

  const seen = await run(gateway, hello, block("Trigger a run from code"));
  assert.ok(seen.includes("WAITING undefined"), seen.join("\n"));
  assert.equal(seen.at(-1), "COMPLETED Hello, Ada!", seen.join("\n"));

  // A run finishes with the code that it began with.
  const earlier = shell(gateway, hello, "node watch.mjs");
  await until(() => earlier.output.includes("WAITING"), { timeoutMs: 40_000, what: "a run that waits" });
  edit(hello, "Hello,", "Good morning,");
  await until(() => /Local worker ready.*\.2\b/.test(cli.output), { timeoutMs: 60_000, what: "the second version" });
  assert.equal((await run(gateway, hello, "node watch.mjs")).at(-1), "COMPLETED Good morning, Ada!");
  assert.equal(await earlier.ended, 0, earlier.output);
  assert.equal(earlier.output.trim().split("\n").at(-1), seen.at(-1), earlier.output);

  process.kill(-cli.child.pid, "SIGTERM");
  await cli.ended;
  await gateway.stop();
});

/** Returns the arguments with which README.md starts the gateway of production. Its commands are replaced by ones that
 *  print their arguments. */
async function productionArguments() {
  const folder = temporaryFolder();
  fs.mkdirSync(path.join(folder, "deploy"));
  for (const name of ["useradd", "deploy/run.sh"]) fs.writeFileSync(path.join(folder, name), '#!/bin/sh\necho "$@"\n', { mode: 0o755 });
  const [made, words] = await run({ url: "" }, folder, `PATH=.:$PATH\n${block("As root, in the clone")}`);
  const user = /^-r (\S+)$/.exec(made)[1];
  assert.equal(words, `--execute --runner-user ${user}`);
  return words.replace(user, runnerUid).split(" ");
}

// Deployed versions need Node 20.
if (Number(process.versions.node.split(".")[0]) >= 20) {
  test("deploying, and going back to an earlier version", async (t) => {
    const words = await productionArguments();
    const world = await startInClone(t, isRoot ? words : ["--execute", "--execute-unsafe"]), { clone, hello, gateway } = world;
    await until(async () => (await gateway.get(`/api/v1/projects/${keys.ref}/prod/deploy-settings`, { key: keys.prod })).status === 200, { everyMs: 100, what: "a builder is ready" });
    await makeProject(world);
    fs.writeFileSync(path.join(hello, "watch.mjs"), block("Trigger a run from code").split("<<'END'\n")[1].split("\nEND")[0]);

    const key = (await run(gateway, clone, "build/runcast keys")).join("\n").match(/tr_prod_\w+/)[0];
    const follow = async () => (await run(gateway, hello, block("Trigger with the key of production").replace("tr_prod_…", key))).at(-1);
    const deploy = block("Deploy from the folder");
    await run(gateway, hello, deploy);
    assert.equal(await follow(), "COMPLETED Hello, Ada!");
    edit(hello, "Hello,", "Good morning,");
    await run(gateway, hello, deploy);
    assert.equal(await follow(), "COMPLETED Good morning, Ada!");

    const [list, rollback] = block("list the versions and return").split("\n"), env = { TRIGGER_SECRET_KEY: key };
    const versions = (await run(gateway, clone, list, env)).join("\n").match(/\b\d{8}\.\d+\b/g);
    const first = [...new Set(versions)].sort()[0];
    await run(gateway, clone, rollback.replace("VERSION", first), env);
    assert.equal(await follow(), "COMPLETED Hello, Ada!");
    await gateway.stop();
  });
}
