// Builds: a real supervise role makes versions of bundles, whose index controllers are the test's.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { makeBundle } from "../support/js/bundles.mjs";
import { Builder, bundle as noArchive, Deployer, KeptFiles } from "../support/js/deployments.mjs";
import { keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { LossyProxy } from "../support/js/lossy_proxy.mjs";
import { fakeNode, isRoot, processesOf, runnerUid, Supervisor, versionsFolder } from "../support/js/supervisor.mjs";

const quick = ["--deploy-hold", "20s", "--dequeue-wait", "2s"];

/** A folder with an npm that executes the test's script. */
function fakeNpm(script) {
  const folder = path.join(versionsFolder(), "..", "bin");
  fs.mkdirSync(folder, { mode: 0o755 });
  fs.writeFileSync(path.join(folder, "npm"), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return folder;
}

async function begin({ t, options = [], npm = "exit 7", gatewayOptions = [], gatewaySettings = {}, preload, env = {} } = {}) {
  const gateway = await startGateway({ t, options: [...quick, ...gatewayOptions], ...gatewaySettings });
  const { token } = await Builder.start(gateway);
  const supervisor = await Supervisor.start(gateway, { t, token, options, preload, env: { PATH: `${fakeNpm(npm)}:${process.env.PATH}`, ...env } });
  const cli = new Deployer(gateway);
  const log = async (id) => (await cli.get(`/api/v1/deployments/${id}/logs`)).text;
  const newest = async () => (await cli.get("/api/v1/deployments")).json.data[0];
  const versions = () => fs.readdirSync(path.join(supervisor.folder, "versions")).sort();
  const refused = async (bundle, more) => {
    const { status, json } = await cli.deploy(more, bundle);
    assert.equal(status, 422, JSON.stringify(json));
    return json.error;
  };
  const end = async () => { await supervisor.stop(); await gateway.stop(); };
  return { gateway, token, supervisor, cli, log, newest, versions, refused, end };
}

describe("a bundle", () => {
  let world;
  before(async () => {
    world = await begin({ options: ["--builder-env", "SHOWN", "--deploy-packages", "curl"], env: { SHOWN: "to-builds", HIDDEN: "from-builds", RUNCAST_ENCRYPTION_KEY: "00".repeat(32) },
      npm: '[ -z "$REGISTRY_IS_AWAY" ] || { echo "npm ERR! network request to the registry failed" >&2; exit 1; }; echo "installs for $BUILD_TOKEN"; mkdir -p node_modules/ms; echo "module.exports = 1" > node_modules/ms/index.js' });
  });
  after(() => world.end());

  test("becomes the current version, in a folder that no other user can change", async () => {
    const { cli, supervisor } = world;
    const bundle = makeBundle({ dependencies: { ms: "2.1.3" }, commands: ["echo $BUILD_TOKEN > made.txt", "id -u \\\n  && pwd"],
      index: 'console.log("user", process.getuid(), "sees", Object.keys(process.env).sort().join()); console.log(Object.keys(await variables()).length); await register(["hello", "other"]);' });
    const { status, json } = await cli.deploy({ buildEnvVars: { BUILD_TOKEN: "build-token-value" } }, bundle);
    assert.equal(status, 200, JSON.stringify(json));
    const current = (await cli.get("/api/v1/deployments/current")).json;
    assert.deepEqual([current.version, current.status, current.runtimeVersion], [json.version, "DEPLOYED", process.versions.node]);
    assert.deepEqual((await cli.show(json.id)).worker.tasks.map(({ slug }) => slug), ["hello", "other"]);

    const folder = path.join(supervisor.folder, "versions", json.id);
    const read = (name) => JSON.parse(fs.readFileSync(path.join(folder, name), "utf8"));
    assert.equal(read("build.json").runControllerEntryPoint, `${folder}/node_modules/trigger.dev/entry/run-controller.mjs`);
    assert.equal(read("index.json").configPath, `${folder}/trigger.config.mjs`);
    assert.deepEqual([read("runcast.json").sha256, read("runcast.json").id, read("runcast.json").architecture], [bundle.hash, json.id, process.arch]);
    for (const name of [".", "index.json", "node_modules/ms/index.js", "made.txt", "node_modules"]) {
      const { uid, mode } = fs.statSync(path.join(folder, name));
      assert.equal(uid, process.getuid(), name);
      assert.equal(mode & 0o022, 0, name);
    }
    assert.equal(fs.readFileSync(path.join(folder, "made.txt"), "utf8"), "build-token-value\n");
    assert.deepEqual(world.versions(), [json.id], "neither archive nor what is unfinished");
    assert.deepEqual(await until(() => { const left = fs.readdirSync(path.join(supervisor.folder, "runners")); return left.length === 0 && left; }), [], "scratch");

    const kept = (await new Builder(world.gateway, world.token).get(`/deployments/${json.id}/index`)).json;
    assert.equal(kept.configPath, "/app/trigger.config.mjs", "other machines have other folders");
    const log = await world.log(json.id);
    assert.match(log, /installs for <redacted>/);
    assert.match(log, new RegExp(`user ${runnerUid} sees`));
    const names = /sees (\S+)/.exec(log)[1].split(",");
    assert.ok(names.includes("SHOWN") && names.includes("TRIGGER_SECRET_KEY"), log);
    assert.deepEqual(names.filter((name) => /^RUNCAST|HIDDEN|BUILD_TOKEN|WORKER/.test(name)), []);
    assert.ok(!log.includes("build-token-value"));
  });

  test("whose task throws at import fails with the error of the index, and changes nothing", async () => {
    const before = (await world.cli.get("/api/v1/deployments/current")).json;
    const stack = JSON.stringify([{ message: "thrown while indexing", file: "src/tasks.ts", stack: "", name: "Error" }]);
    const error = await world.refused(makeBundle({ index: `await fail({ name: "TaskIndexingImportError", message: "Failed to import some task files", stack: ${JSON.stringify(stack)} });` }));
    assert.match(error, /src\/tasks\.ts: thrown while indexing/);
    assert.deepEqual([(await world.newest()).status, (await world.newest()).error.name], ["FAILED", "TaskIndexingImportError"]);
    assert.deepEqual((await world.cli.get("/api/v1/deployments/current")).json, before);
    await until(() => world.versions().length === 1, { what: "its folder is removed" });
  });

  test("whose registration is refused fails, although its index exits with 0", async () => {
    const error = await world.refused(makeBundle({ index: 'await register([""]);' }));
    assert.match(error, /failed/);
    assert.equal((await world.newest()).status, "FAILED");
    await until(() => world.versions().length === 1, { what: "its folder is removed" });
    assert.match(await world.refused(makeBundle({ index: "writeIndex([]);" })), /without registering its tasks/);
    await until(() => world.versions().length === 1, { what: "its folder is removed" });
  });

  test("is refused with the reason when it cannot be built here", async () => {
    const cases = [
      [{ commands: ["echo the reason >&2; exit 3"] }, /the command "echo the reason >&2; exit 3" failed: it ended with exit code 3/],
      [{ commands: ["echo the reason >&2; exit 3"] }, /the reason/],
      [{ image: { pkgs: ["ffmpeg", "curl"] } }, /system packages ffmpeg; install them on the machine and list them in --deploy-packages/],
      [{ image: { base: "debian" } }, /--deploy-ignore-image/],
      [{ runtime: "bun" }, /this version needs bun, which is not configured/],
      [{ cli: "4.3.0" }, /upgrade to 4.4 or newer/],
      [{ without: ["build.json"] }, /the archive has no build.json/],
      [{ files: { Containerfile: "FROM scratch\n" } }, /unknown CLI version/],
      [{ index: "process.exit(5);" }, /indexing failed: it ended with exit code 5/],
      [{ index: "await variables();" }, /no index\.json/],
    ];
    for (const [options, reason] of cases) assert.match(await world.refused(makeBundle(options)), reason);
    assert.match(await world.refused({ bytes: Buffer.from("no archive") }), /not a gzip archive/);
    assert.match(await world.refused({ bytes: noArchive() }), /archive/);
    const away = await world.refused(makeBundle({ dependencies: { ms: "2.1.3" } }), { buildEnvVars: { REGISTRY_IS_AWAY: "yes" } });
    assert.match(away, /installing packages failed: it ended with exit code 1\nnpm ERR! network request to the registry failed$/);
    assert.equal((await world.newest()).error.name, "BuildError");
    await until(() => world.versions().length === 1, { what: "nothing is left of them" });
  });

  test("may name packages that are installed", async () => {
    assert.equal((await world.cli.deploy({}, makeBundle({ image: { pkgs: ["curl"] } }))).status, 200);
  });
});

test("a bundle is executed by a Node that is new enough, and a failure reports when that is not the one that the bundle names", async (t) => {
  const old = path.join(fakeNpm("exit 7"), "node18"), major = Math.max(20, Number(process.versions.node.split(".")[0]));
  fs.writeFileSync(old, "#!/bin/sh\necho v18.20.4\n", { mode: 0o755 });
  const { cli, log, refused, end } = await begin({ t, options: ["--node", `24=${old} 26=${fakeNode()}`] });
  const deployed = await cli.deploy({}, makeBundle({ runtime: "node-26", commands: ["echo built"] }));
  assert.equal(deployed.status, 200, deployed.text);
  assert.equal(await log(deployed.json.id), "$ echo built\nbuilt\n");
  assert.match(await refused(makeBundle({ runtime: "node-26", index: "process.exit(3)" })), new RegExp(`indexing failed: .*; the version asks for Node 26, but v${major}\\.\\S* executed it; name the right one with --node 26=PATH`));
  assert.match(await refused(makeBundle({ runtime: "node-24" })), /need Node 20 or newer, but .*node18 is v18\.20\.4; .*--node 24=/);
  await end();
});

test("a bundle is executed by the programs that --node names, Bun among them", async (t) => {
  const bun = path.join(fakeNpm("exit 7"), "bun");
  fs.writeFileSync(bun, `#!/bin/sh\necho "Bun $1 $2"; [ "$1" = install ] || { shift; exec ${fakeNode()} "$@"; }\n`, { mode: 0o755 });
  const { cli, log, refused, end } = await begin({ t, options: ["--node", `bun=${bun} 22=${fakeNode()} 24=/nowhere/node`] });
  const deployed = await cli.deploy({}, makeBundle({ runtime: "bun", dependencies: { ms: "2.1.3" } }));
  assert.equal(deployed.status, 200, deployed.text);
  assert.match(await log(deployed.json.id), /Bun install --production\n[^]*Bun run \//);
  const node = await cli.deploy({}, makeBundle({ runtime: "node-22", commands: ["echo built"] }));
  assert.equal(node.status, 200, node.text);
  assert.doesNotMatch(await log(node.json.id), /Bun/);
  assert.match(await refused(makeBundle({ runtime: "node-24" })), /\/nowhere\/node/);
  assert.match(await refused(makeBundle({ runtime: "bun-1.4" })), /this version needs bun-1\.4, which is not configured; name its program, as in --node bun-1\.4=/);
  await end();
});

test("a bundle with too many files, or too large ones, is refused with the reason", async (t) => {
  const { versions, cli, refused, end } = await begin({ t, options: ["--deploy-unpacked", "1m", "--deploy-files", "20"] });
  assert.match(await refused(makeBundle({ files: { "large.txt": "x".repeat(1 << 20) } })), /the files together are too large \(max 1048576 bytes, setting deploy-unpacked\)/);
  const many = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`file-${i}`, ""]));
  assert.match(await refused(makeBundle({ files: many })), /too many files and folders \(max 20, setting deploy-files\)/);
  await until(() => versions().length === 0, { what: "nothing is left of them" });
  assert.equal((await cli.deploy({}, makeBundle())).status, 200);
  await end();
});

test("a build fails with the reason when the disk is full, and the version before stays current", async (t) => {
  const order = path.join(temporaryFolder(), "disk");
  const { cli, newest, versions, refused, end } = await begin({ t, preload: "shim_disk", env: { SHIM_DISK: order } });
  const { json } = await cli.deploy({}, makeBundle()), before = (await cli.get("/api/v1/deployments/current")).json;
  for (const [where, reason] of [
    [".tar.gz.new", /cannot write the archive: the disk is full$/], // the unpacker runs with its own environment, without the shim
    [".new/build.json", /the disk is full: cannot write/], [".new/runcast.json", /the disk is full: cannot write runcast\.json/],
  ]) {
    fs.writeFileSync(order, `full ${where}`);
    assert.match(await refused(makeBundle({ files: { "src/tasks.mjs": "// something" } })), reason);
    assert.deepEqual([(await newest()).status, (await newest()).error.name], ["FAILED", "BuildError"]);
  }
  await until(() => versions().join() === json.id, { what: "nothing else is left" });
  assert.deepEqual((await cli.get("/api/v1/deployments/current")).json, before);
  fs.rmSync(order);
  assert.equal((await cli.deploy({}, makeBundle())).status, 200);
  await end();
});

test("a supervise role that is stopped in the middle of a build loses it, and builds the next one when it continues", async (t) => {
  const ahead = path.join(temporaryFolder(), "ahead"), minute = 60_000;
  const world = await begin({ t, gatewaySettings: { preload: "shim_clock", env: { SHIM_MONOTONIC: ahead } } });
  const { answer, id } = await atIndex(world);
  const setAhead = (ms) => { fs.writeFileSync(`${ahead}.new`, String(ms)); fs.renameSync(`${ahead}.new`, ahead); };
  const becomes = (status) => until(async () => (await world.cli.show(id).catch(() => ({}))).status === status, { what: status });
  world.supervisor.child.kill("SIGSTOP");
  setAhead(1.1 * minute);
  await becomes("PENDING");
  setAhead(17 * minute);
  await becomes("TIMED_OUT");
  assert.match((await world.cli.show(id)).errorData.message, /no builder has taken it for 15 minutes/);
  world.supervisor.child.kill("SIGCONT");
  await answer;
  await nothingLeft(world);
  const next = await world.cli.deploy({}, makeBundle());
  assert.equal(next.status, 200, next.text);
  await world.end();
});

test("the log of a build is whole even if an answer to one of its parts is lost", async (t) => {
  const gateway = await startGateway({ t, options: quick }), proxy = await LossyProxy.start(gateway.port, t);
  const { token } = await Builder.start(gateway), supervisor = await Supervisor.start({ url: proxy.url }, { t, token });
  const lost = proxy.lose(/\/builds\/.+\/heartbeat$/), cli = new Deployer(gateway);
  const index = `for (let i = 0; i < 2_000; i++) console.log("line", i, "${"x".repeat(80)}"); await register(["hello"]);`;
  const { status, json } = await cli.deploy({}, makeBundle({ index }));
  assert.equal(status, 200, JSON.stringify(json));
  await lost;
  const { text } = await cli.get(`/api/v1/deployments/${json.id}/logs`);
  assert.ok(text.includes("line 0 ") && text.includes("line 1999 "), text.slice(-200));
  await supervisor.stop();
  await gateway.stop();
});

test("versions that the gateway no longer keeps are removed where they were built", async (t) => {
  const world = await begin({ t, gatewayOptions: ["--keep-versions", "2"] });
  fs.mkdirSync(path.join(world.supervisor.folder, "versions/worker_of_somebody"));
  const made = [];
  for (let i = 0; i < 4; i++) made.push((await world.cli.deploy({}, makeBundle())).json.id);
  const kept = [...made.slice(2), "worker_of_somebody"].sort();
  await until(() => world.versions().join() === kept.join(), { what: "the first two are removed" });
  new KeptFiles(world.gateway).remove(`${made[3]}.tar.gz`);
  const { json: { id } } = await world.cli.deploy({}, makeBundle()), then = [made[3], id, "worker_of_somebody"].sort();
  await until(() => world.versions().join() === then.join(), { what: "the third is removed, but not the one whose archive was taken away" });
  await world.end();
});

/** A folder that builds may write to. */
function sharedFolder() {
  const folder = temporaryFolder();
  fs.chmodSync(folder, 0o777);
  return folder;
}
/** JavaScript for an index: hangs the first time, exits the second time. */
const hangsOnce = (folder) => `if (!fs.existsSync("${folder}/once")) { fs.writeFileSync("${folder}/once", ""); console.log("hangs"); await new Promise((resolve) => setTimeout(resolve, 1e9)); }`;
/** Returns true if a file of a process contains this text; false if the process has exited. */
function says(pid, file, text) {
  try { return fs.readFileSync(`/proc/${pid}/${file}`, "utf8").includes(text); } catch { return false; }
}
/** Processes of builds with this text among their arguments. */
const builders = (world, text) => processesOf(path.join(world.supervisor.folder, "versions")).filter((pid) => says(pid, "cmdline", text));
const hanging = makeBundle({ index: 'console.log("hangs"); setInterval(() => {}, 1000);' });
async function atIndex(world, bundle = hanging) {
  const answer = world.cli.deploy({}, { ...bundle, tries: 1 });
  const id = await until(async () => { const found = await world.newest(); return found?.status === "BUILDING" && found.id; }, { what: "a deployment" });
  await until(() => builders(world, "index-controller").length > 0, { what: "its index" });
  return { answer, id };
}
const nothingLeft = (world) => until(() => processesOf(path.join(world.supervisor.folder, "versions")).length === 0 && world.versions().length === 0, { what: "the end of its processes and its folder" });

describe("an archive", () => {
  const large = makeBundle({ files: { "src/noise": randomBytes(4 << 20), "src/zeros": Buffer.alloc(256 << 20) } });
  /** Deploys an archive that takes a moment to read, and stops the process that reads it. */
  async function atUnpacking(world) {
    const answer = world.cli.deploy({}, { ...large, tries: 1 });
    const pid = await until(() => builders(world, "--unpack").find((found) => says(found, "status", "\nSeccomp:\t2\n")), { what: "its reader", everyMs: 5 });
    process.kill(pid, "SIGSTOP");
    return { answer, pid, id: (await world.newest()).id };
  }

  test("is read by a process of the build's user, which is killed when the deployment is canceled", async (t) => {
    const world = await begin({ t });
    const { answer, pid, id } = await atUnpacking(world);
    const status = fs.readFileSync(`/proc/${pid}/status`, "utf8");
    assert.match(status, new RegExp(`^Uid:\\t${runnerUid}\\t${runnerUid}\\t`, "m"));
    assert.match(status, /^CapEff:\t0+$/m);
    assert.equal((await world.cli.post(`/api/v1/deployments/${id}/cancel`, { reason: "enough" })).status, 204);
    assert.equal((await answer).status, 422);
    await nothingLeft(world);
    assert.equal((await world.cli.show(id)).status, "CANCELED");
    assert.equal((await world.cli.deploy({}, makeBundle())).status, 200, "the next one is built");
    await world.end();
  });

  test("whose reader dies fails the deployment with the reason", async (t) => {
    const world = await begin({ t });
    const { answer, pid, id } = await atUnpacking(world);
    process.kill(pid, "SIGKILL");
    const { status, json } = await answer;
    assert.equal(status, 422);
    assert.match(json.error, /unpacking the archive failed: it was ended by signal 9 \(Killed\)/);
    await nothingLeft(world);
    assert.equal((await world.cli.show(id)).status, "FAILED");
    assert.equal((await world.cli.deploy({}, large)).status, 200, "the same archive is built when its reader lives");
    await world.end();
  });

  test("ends its reader when that needs more memory than it may have", () => { // the release build: a sanitizer has no such limit
    const read = (bytes, memory) => {
      const archive = path.join(temporaryFolder(), "archive.tar.gz");
      fs.writeFileSync(archive, bytes);
      return spawnSync(process.env.GATEWAY_RELEASE_BIN ?? "build-gcc/runcast", ["--unpack", `first 20000 1073741824 200 ${memory}`],
        { cwd: temporaryFolder(), stdio: [fs.openSync(archive), "pipe", "pipe"], maxBuffer: 64 << 20 });
    };
    const { bytes } = makeBundle({ files: { "build.json": "m".repeat(12 << 20) } });
    const { signal, stderr } = read(bytes, 4 << 20);
    assert.deepEqual([signal, stderr.toString()], ["SIGABRT", "runcast: out of memory\n"]);
    const { status, stdout } = read(bytes, 64 << 20);
    assert.deepEqual([status, stdout.subarray(0, 20).toString(), stdout.subarray(-7).toString()], [0, "build.json 12582912\n", "done 0\n"]);
  });

  test("whose reader makes no progress is killed at the deployment's deadline", async (t) => {
    const world = await begin({ t, gatewayOptions: ["--deploy-timeout", "15s"] });
    const { answer, id } = await atUnpacking(world);
    assert.equal((await answer).status, 422);
    await nothingLeft(world);
    assert.equal((await world.cli.show(id)).status, "TIMED_OUT");
    await world.end();
  });
});

describe("a build", () => {
  test("that is canceled is killed", async (t) => {
    const world = await begin({ t });
    const { answer, id } = await atIndex(world);
    assert.equal((await world.cli.post(`/api/v1/deployments/${id}/cancel`, { reason: "enough" })).status, 204);
    assert.equal((await answer).status, 422);
    await nothingLeft(world);
    assert.equal((await world.cli.show(id)).status, "CANCELED");
    assert.equal((await world.cli.deploy({}, makeBundle())).status, 200, "the next one is built");
    await world.end();
  });

  test("that takes too long is killed", async (t) => {
    const world = await begin({ t, gatewayOptions: ["--deploy-timeout", "15s"] });
    const { answer, id } = await atIndex(world);
    assert.equal((await answer).status, 422);
    await nothingLeft(world);
    assert.equal((await world.cli.show(id)).status, "TIMED_OUT");
    await world.end();
  });

  test("ends with its supervise role, and is started again by the next one", async (t) => {
    const ahead = path.join(temporaryFolder(), "ahead");
    const world = await begin({ t, gatewaySettings: { preload: "shim_clock", env: { SHIM_MONOTONIC: ahead } } });
    const folder = sharedFolder(), { answer, id } = await atIndex(world, makeBundle({ index: `${hangsOnce(folder)} await register(["hello"]);` }));
    await until(() => fs.existsSync(path.join(folder, "once")), { what: "it hangs" });
    await world.supervisor.kill();
    await until(() => processesOf(path.join(world.supervisor.folder, "versions")).length === 0, { what: "its processes end" });
    await world.supervisor.begin();
    await until(() => !world.versions().length, { what: "what was unfinished is removed" });
    fs.writeFileSync(ahead, "61000"); // the time after which a silent builder loses its build
    await answer;
    await until(async () => (await world.cli.show(id).catch(() => ({}))).status === "DEPLOYED", { what: "it is built all the same" });
    await until(() => world.versions().join() === id, { what: "its version is all that is left" });
    await world.end();
  });

  /** For a gateway that is killed in the middle: a bundle that hangs once in that state, and the npm for it. */
  const middles = {
    INSTALLING: (folder) => [makeBundle({ dependencies: { ms: "2.1.3" } }), `[ -e ${folder}/once ] || { : > ${folder}/once; sleep 1000; }; exit 0`],
    BUILDING: (folder) => [makeBundle({ commands: [`test -e ${folder}/once || { : > ${folder}/once; sleep 1000; }`] })],
    DEPLOYING: (folder) => [makeBundle({ index: `await register(["hello"]); ${hangsOnce(folder)}` })],
  };
  for (const [status, make] of Object.entries(middles))
    test(`starts again after the gateway is killed while it is ${status}, and the CLI's next try joins it`, async (t) => {
      const folder = sharedFolder(), [bundle, npm] = make(folder), world = await begin({ t, npm });
      const id = randomUUID(), body = world.cli.body(await world.cli.artifact(bundle.bytes));
      const cut = world.cli.initialize(body, { id }).catch(() => "cut");
      await until(() => fs.existsSync(path.join(folder, "once")), { what: "it hangs" });
      const before = await world.newest();
      await until(async () => (await world.cli.show(before.id)).status === status, { what: status });
      await world.gateway.kill();
      assert.equal(await cut, "cut");
      await world.gateway.restart();
      const { status: code, json, text } = await world.cli.initialize(body, { id });
      assert.deepEqual([code, json.version], [200, before.version], text);
      assert.equal((await world.cli.get("/api/v1/deployments/current")).json.version, before.version);
      await until(() => world.versions().join() === before.id, { what: "its version is all that is left" });
      assert.equal(world.supervisor.log.split("event=building").length - 1, 2);
      await world.end();
    });

  test("survives a kill of its gateway: what was made before is reported, or made again", async (t) => {
    const world = await begin({ t });
    const { id } = await atIndex(world);
    await world.gateway.kill();
    await world.gateway.restart();
    const attempts = () => world.supervisor.log.split("event=building").length - 1;
    await until(() => attempts() === 2, { what: "the second build" });
    await world.cli.post(`/api/v1/deployments/${id}/cancel`, {});
    await nothingLeft(world);
    await world.end();
  });
});
