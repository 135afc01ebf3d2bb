// The container image: what it contains, and a gateway that runs as a container engine would start it, with
// namespaces, a read-only root, and an unprivileged user.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { freePort, temporaryFolder, until } from "../support/js/gateway.mjs";

const top = fileURLToPath(new URL("../..", import.meta.url)), folder = temporaryFolder();
const image = path.join(folder, "image"), root = path.join(folder, "root"), data = path.join(folder, "data");
const asRoot = process.getuid() === 0 ? [] : ["sudo", "-n"];
/** The arguments that `docker run` of the README passes to the image of this version. */
const readme = fs.readFileSync(path.join(top, "README.md"), "utf8"), version = /^project\(runcast VERSION ([\d.]+)/m.exec(fs.readFileSync(path.join(top, "CMakeLists.txt"), "utf8"))[1];
const ofReadme = readme.split(`-p 127.0.0.1:3030:3030 -v runcast:/data runcast:${version} `)[1].split("\n")[0].split(" ");
const program = process.env.GATEWAY_RELEASE_BIN ?? path.join(top, "build-gcc/runcast");

function run(...words) {
  const [name, ...rest] = [...asRoot, ...words], { status, stdout, stderr, error } = spawnSync(name, rest, { encoding: "utf8" });
  if (error) throw error;
  assert.equal(status, 0, `${words.join(" ")}: ${stdout}${stderr}`);
  return stdout;
}

let archive, config;

before(() => {
  archive = /^\S+\.tar\.gz/m.exec(run(path.join(top, "deploy/container/build.sh"), folder, program))[0];
  assert.ok(readme.includes(`zcat build-container/runcast-${version}-image-`), "the README loads the archive of this version");
  for (const made of [image, root]) fs.mkdirSync(made);
  run("tar", "-C", image, "-xf", archive);
  const read = (file) => JSON.parse(fs.readFileSync(path.join(image, file), "utf8"));
  const [{ Config, Layers }] = read("manifest.json");
  ({ config } = read(Config));
  for (const layer of Layers) run("tar", "-C", root, "-xf", path.join(image, layer));
  run("cp", "-a", path.join(root, "data"), data); // an engine gives a new volume the owner and mode that its folder has in the image
});

test("the image is small, and has no shell and no package manager", () => {
  assert.ok(fs.statSync(archive).size <= 40e6);
  const programs = run("find", root, "-type", "f", "-perm", "/111", "-not", "-name", "*.so*").trim().split("\n").map((file) => path.relative(root, file));
  assert.deepEqual(programs, ["usr/bin/runcast"]);
  assert.equal(run("find", root, "-perm", "/6000").trim(), "");
});

test("the image names its version and its user", () => {
  assert.equal(config.User, "65532:65532");
  assert.deepEqual(config.Entrypoint, ["/usr/bin/runcast"]);
  assert.equal(config.StopSignal, "SIGTERM");
  assert.deepEqual(Object.keys(config.Volumes), ["/data"]);
  assert.deepEqual(config.Healthcheck.Test, ["CMD", "/usr/bin/runcast", "health"]);
});

/** A container engine in a few lines: a read-only root, the volume, its own processes and mounts. */
const engine = `mount --bind "$ROOT" "$ROOT"; mount --bind "$VOLUME" "$ROOT/data"; mount --bind /dev "$ROOT/dev"
  mount -t proc proc "$ROOT/proc"; mount -o remount,bind,ro "$ROOT"
  exec chroot --userspec="$RUN_AS" "$ROOT" "$@"`;

class Container {
  stdout = "";
  stderr = "";

  constructor(t, ...words) {
    const variables = [...config.Env.filter((one) => one.startsWith("RUNCAST_")), `ROOT=${root}`, `VOLUME=${data}`, `RUN_AS=${config.User}`];
    const [name, ...rest] = [...asRoot, "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", ...variables,
      "unshare", "--mount", "--pid", "--ipc", "--fork", "--kill-child", "sh", "-ec", engine, "engine", ...config.Entrypoint, ...words];
    this.child = spawn(name, rest, { stdio: ["ignore", "pipe", "pipe"] });
    this.child.stdout.setEncoding("utf8").on("data", (text) => { this.stdout += text; });
    this.child.stderr.setEncoding("utf8").on("data", (text) => { this.stderr += text; });
    this.ended = new Promise((resolve) => this.child.on("close", (code, signal) => resolve({ code, signal })));
    t.after(async () => {
      if (this.child.exitCode === null) this.signal("KILL");
      await this.ended;
    });
  }

  /** The first process of the namespace, below those that started it. */
  get pid() {
    let pid = this.child.pid;
    while (fs.readFileSync(`/proc/${pid}/comm`, "utf8") !== "runcast\n")
      pid = Number(fs.readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ")[0]);
    return pid;
  }

  signal(name) { run("kill", `-${name}`, String(this.pid)); }

  /** Does what `docker exec` and the health check do: starts another process in the container. */
  execute(...words) {
    const [name, ...rest] = [...asRoot, "nsenter", `--target=${this.pid}`, "--mount", "--pid", "--ipc", `--root=/proc/${this.pid}/root`, `--setuid=${config.User.split(":")[0]}`, `--setgid=${config.User.split(":")[1]}`,
      "--wd=/", ...config.Entrypoint, ...words, "--data", "/data"];
    return spawnSync(name, rest, { encoding: "utf8" });
  }

  ready() {
    return until(() => {
      if (this.child.exitCode !== null) throw new Error(this.stderr);
      return /"event":"ready"/.test(this.stderr);
    }, { what: "readiness" });
  }
}

test("the image starts with one command, unprivileged, on a read-only root, and keeps its runs", async (t) => {
  const port = await freePort(), words = ["--listen", `127.0.0.1:${port}`, ...ofReadme], url = `http://127.0.0.1:${port}`;
  const container = new Container(t, ...words);
  await container.ready();
  const key = await until(() => /tr_prod_\w+(?=\s)/.exec(container.stdout + container.stderr)?.[0], { what: "the keys, which follow once it is ready" }), authorization = `Bearer ${key}`;
  const answer = await fetch(`${url}/api/v1/tasks/hello/trigger`, { method: "POST", headers: { authorization, "content-type": "application/json" }, body: '{"payload":{}}' });
  assert.equal(answer.status, 200);
  const { id } = await answer.json();

  const status = fs.readFileSync(`/proc/${container.pid}/status`, "utf8");
  assert.match(status, /^Uid:\t65532\t65532/m);
  assert.match(status, /^CapEff:\t0000000000000000$/m);
  assert.match(status, /^NSpid:\t\d+\t1$/m);

  const health = container.execute(...config.Healthcheck.Test.slice(2));
  assert.equal(health.status, 0, health.stderr);

  container.signal("TERM");
  assert.deepEqual(await container.ended, { code: 0, signal: null });
  assert.match(container.stderr, /"event":"drained|"event":"stopped/);

  const again = new Container(t, ...words);
  await again.ready();
  assert.equal((await fetch(`${url}/api/v3/runs/${id}`, { headers: { authorization } })).status, 200);
});

test("the image does not execute deployed code, and says so", async (t) => {
  const container = new Container(t, "--listen", `127.0.0.1:${await freePort()}`, "--insecure", "--execute", "--execute-unsafe");
  await container.ready();
  await until(() => /"event":"stopped","reason":"cannot make the folder/.test(container.stderr), { what: "the end of the supervise role" });
  assert.equal(container.execute("health").status, 0);
});

test("time zones and host names work in the image", async (t) => {
  const port = await freePort(), container = new Container(t, "--listen", `127.0.0.1:${port}`, "--insecure");
  await container.ready();
  const key = /tr_prod_\w+/.exec(container.execute("keys").stdout)[0];
  const zones = await (await fetch(`http://127.0.0.1:${port}/api/v1/timezones`, { headers: { authorization: `Bearer ${key}` } })).json();
  assert.ok(zones.timezones.length > 400, JSON.stringify(zones).slice(0, 200));
});
