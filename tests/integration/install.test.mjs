// Files that `cmake --install` installs, and how systemd's own tools rate it.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { temporaryFolder } from "../support/js/gateway.mjs";

const top = fileURLToPath(new URL("../..", import.meta.url)), root = temporaryFolder();
const build = process.env.GATEWAY_RELEASE_BIN ? path.dirname(path.resolve(process.env.GATEWAY_RELEASE_BIN)) : path.join(top, "build-gcc");
const run = (program, ...words) => {
  const { status, stdout, stderr, error } = spawnSync(program, words, { encoding: "utf8", env: { ...process.env, DESTDIR: root } });
  if (error) throw error;
  return { status, all: stdout + stderr };
};

before(() => {
  const { status, all } = run("cmake", "--install", build, "--prefix", "/usr/local", "--component", "service");
  assert.equal(status, 0, all);
});

/** Starts a bash script that sources deploy/packages.sh; programs: replacements for the machine's, by name. */
function packagesScript(script, programs) {
  const folder = temporaryFolder();
  for (const [name, text] of Object.entries(programs)) fs.writeFileSync(path.join(folder, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  const { status, stdout, stderr } = spawnSync("bash", ["-euc", `source "${top}/deploy/packages.sh"; ${script}`], { encoding: "utf8", env: { ...process.env, PATH: `${folder}:${process.env.PATH}`, FOLDER: folder } });
  return { status, all: stdout + stderr, calls: fs.existsSync(path.join(folder, "calls")) ? fs.readFileSync(path.join(folder, "calls"), "utf8").trim().split("\n") : [] };
}

const at = (file) => path.join(root, file), unit = "usr/local/lib/systemd/system/runcast.service", doc = "usr/local/share/doc/runcast";

test("program, units, settings, user and folders are installed where a distribution expects them", () => {
  const files = fs.readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).map((entry) => path.relative(root, path.join(entry.parentPath ?? entry.path, entry.name))).sort();
  const chapters = files.filter((file) => file.startsWith(doc) && !file.endsWith("/LICENSE"));
  for (const name of fs.readdirSync(path.join(top, "deploy")).filter((one) => one.endsWith(".md"))) assert.ok(chapters.includes(`${doc}/deploy/${name}`), name);
  assert.deepEqual(files.filter((file) => !chapters.includes(file)), [
    "usr/local/bin/runcast", "usr/local/etc/runcast/runcast.conf", "usr/local/etc/runcast/supervise.conf", "usr/local/lib/systemd/system/runcast-supervise.service", "usr/local/lib/systemd/system/runcast.service", "usr/local/lib/systemd/system/runcast.socket",
    "usr/local/lib/sysusers.d/runcast.conf", "usr/local/lib/tmpfiles.d/runcast.conf", "usr/local/share/bash-completion/completions/runcast", `${doc}/LICENSE`,
    "usr/local/share/fish/vendor_completions.d/runcast.fish", "usr/local/share/man/man1/runcast.1", "usr/local/share/man/man5/runcast.conf.5", "usr/local/share/man/man7/runcast-protocol.7",
    "usr/local/share/runcast/grafana/alerts.yaml", "usr/local/share/runcast/grafana/runcast.json", "usr/local/share/zsh/site-functions/_runcast",
  ]);
  for (const file of files.filter((one) => /systemd|etc|\.d\//.test(one))) assert.doesNotMatch(fs.readFileSync(at(file), "utf8"), /@\w+@/, file);
  assert.match(fs.readFileSync(at(unit), "utf8"), /^ExecStart=\/usr\/local\/bin\/runcast --config \/usr\/local\/etc\/runcast\/runcast\.conf$/m);
});

test("the chapters are installed, and their links lead to each other", () => {
  const { status, all } = run("python3", "-B", path.join(top, "tests/lint/links.py"), at(doc));
  assert.equal(status, 0, all);
});

test("the installed settings are valid, and are what the units pass", () => {
  const config = at("usr/local/etc/runcast/runcast.conf"), { status, all } = run(at("usr/local/bin/runcast"), "--config", config, "--check-config");
  assert.equal(status, 0, all);
  const name = /^listen = systemd:(\w+)$/m.exec(fs.readFileSync(config, "utf8"))[1];
  assert.match(fs.readFileSync(at("usr/local/lib/systemd/system/runcast.socket"), "utf8"), new RegExp(`^FileDescriptorName=${name}$`, "m"));
  assert.match(fs.readFileSync(at(unit), "utf8"), /^StateDirectory=runcast$/m);
});

test("the supervise role's installed settings are valid, and its unit passes its token", () => {
  const config = at("usr/local/etc/runcast/supervise.conf");
  const { status, all } = run("env", "RUNCAST_WORKER_TOKEN=tr_pat_0123456789", at("usr/local/bin/runcast"), "supervise", "--config", config, "--check-config");
  assert.equal(status, 0, all);
  const text = fs.readFileSync(at("usr/local/lib/systemd/system/runcast-supervise.service"), "utf8");
  assert.match(text, /^LoadCredential=runcast:\/usr\/local\/etc\/runcast\/supervise$/m);
  assert.match(text, /^StateDirectory=runcast-supervise$/m);
  assert.match(fs.readFileSync(config, "utf8"), /^versions = \/var\/lib\/runcast-supervise$/m);
});

test("the supervise role's unit is rated at most 4.5 of 10 by systemd-analyze security", () => {
  const { status, all } = run("systemd-analyze", "security", "--offline=yes", "--threshold=45", at("usr/local/lib/systemd/system/runcast-supervise.service"));
  assert.equal(status, 0, all.slice(-300));
});

test("the gateway's unit is rated at most 2.0 of 10 by systemd-analyze security", () => {
  const { status, all } = run("systemd-analyze", "security", "--offline=yes", "--threshold=20", at(unit));
  assert.equal(status, 0, all.slice(-300));
  assert.match(all, /Overall exposure level for runcast.service: [01]\.\d OK/);
});

test("a build without the bench can be installed, too", () => {
  const folder = temporaryFolder(), install = path.join(folder, "root");
  const made = run("cmake", "-S", top, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DTESTS=OFF", "--log-level=WARNING");
  assert.equal(made.status, 0, made.all);
  fs.copyFileSync(path.join(build, "runcast"), path.join(folder, "runcast")); // as deploy/run.sh does
  fs.cpSync(path.join(build, "describe.d"), path.join(folder, "describe.d"), { recursive: true });
  const { status, stdout, stderr } = spawnSync("cmake", ["--install", folder, "--prefix", install], { encoding: "utf8" });
  assert.equal(status, 0, stdout + stderr);
  assert.deepEqual(fs.readdirSync(path.join(install, "bin")), ["runcast"]);
});

const sudo = 'exec "$@"'; // for users other than root
const locked = (lock) => `echo "E: Could not get lock ${lock}. It is held by process 1234 (apt-get)" >&2; exit 100`;

test("installing packages waits for another apt, whichever lock that holds", () => {
  const apt = `echo "$*" >> "$FOLDER/calls"; n=$(wc -l < "$FOLDER/calls"); case $n in 1) ${locked("/var/lib/apt/lists/lock")};; 3) ${locked("/var/lib/dpkg/lock-frontend")};; 4) ${locked("/var/cache/apt/archives/lock")};; esac`;
  const { status, all, calls } = packagesScript("sleep() { :; }; without_main_cluster() { \"$@\"; }; install_missing no-such-package", { "apt-get": apt, sudo });
  assert.equal(status, 0, all);
  assert.deepEqual(calls.map((call) => / (update|install)/.exec(call)[1]), ["update", "update", "install", "install", "install"]);
  for (const call of calls) assert.match(call, /-o DPkg::Lock::Timeout=5 /); // otherwise apt itself would wait without a message
  assert.equal(all.match(/waiting for another apt/g).length, 2, all);
});

test("installing packages reports any other failure of apt at once", () => {
  const { status, all, calls } = packagesScript("without_main_cluster() { \"$@\"; }; install_missing no-such-package", { "apt-get": 'echo "$*" >> "$FOLDER/calls"; echo "E: Unable to locate package" >&2; exit 100', sudo });
  assert.equal(status, 1);
  assert.match(all, /E: Unable to locate package/);
  assert.equal(calls.length, 1);
});

test("the Debian package leaves chapters and pictures as they are", () => {
  const folder = temporaryFolder(), docs = path.join(folder, "debian/runcast/usr/share/doc/runcast");
  fs.mkdirSync(path.join(docs, "pictures"), { recursive: true });
  for (const name of ["control", "rules"]) fs.copyFileSync(path.join(top, "deploy/debian", name), path.join(folder, "debian", name));
  for (const name of ["README.md", "pictures/runs.webp", "changelog"]) fs.writeFileSync(path.join(docs, name), "x".repeat(20000));
  const { status, stdout, stderr } = spawnSync("make", ["-f", "debian/rules", "override_dh_compress"], { cwd: folder, encoding: "utf8" });
  assert.equal(status, 0, stdout + stderr);
  assert.deepEqual(fs.readdirSync(docs).sort(), ["README.md", "changelog.gz", "pictures"]);
  assert.deepEqual(fs.readdirSync(path.join(docs, "pictures")), ["runs.webp"]);
});
