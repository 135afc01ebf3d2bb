// What `cmake --install` puts where, and what systemd's own tools say of it.
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

const at = (file) => path.join(root, file), unit = "usr/local/lib/systemd/system/runcast.service", doc = "usr/local/share/doc/runcast";

test("program, units, settings, user and folders are where a distribution has them", () => {
  const files = fs.readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).map((entry) => path.relative(root, path.join(entry.parentPath ?? entry.path, entry.name))).sort();
  const chapters = files.filter((file) => file.startsWith(doc) && !file.endsWith("/LICENSE"));
  assert.ok(chapters.includes(`${doc}/deploy/README.md`), `${chapters}`);
  assert.deepEqual(files.filter((file) => !chapters.includes(file)), [
    "usr/local/bin/runcast", "usr/local/etc/runcast/runcast.conf", "usr/local/etc/runcast/supervise.conf", "usr/local/lib/systemd/system/runcast-supervise.service", "usr/local/lib/systemd/system/runcast.service", "usr/local/lib/systemd/system/runcast.socket",
    "usr/local/lib/sysusers.d/runcast.conf", "usr/local/lib/tmpfiles.d/runcast.conf", "usr/local/share/bash-completion/completions/runcast", `${doc}/LICENSE`,
    "usr/local/share/fish/vendor_completions.d/runcast.fish", "usr/local/share/man/man1/runcast.1", "usr/local/share/man/man5/runcast.conf.5", "usr/local/share/man/man7/runcast-protocol.7",
    "usr/local/share/runcast/grafana/alerts.yaml", "usr/local/share/runcast/grafana/runcast.json", "usr/local/share/zsh/site-functions/_runcast",
  ]);
  for (const file of files.filter((one) => /systemd|etc|\.d\//.test(one))) assert.doesNotMatch(fs.readFileSync(at(file), "utf8"), /@\w+@/, file);
  assert.match(fs.readFileSync(at(unit), "utf8"), /^ExecStart=\/usr\/local\/bin\/runcast --config \/usr\/local\/etc\/runcast\/runcast\.conf$/m);
});

test("the chapters come along, and lead to each other", () => {
  const { status, all } = run("python3", "-B", path.join(top, "tests/lint/links.py"), at(doc));
  assert.equal(status, 0, all);
});

test("the settings that come along are right, and are what the units hand over", () => {
  const config = at("usr/local/etc/runcast/runcast.conf"), { status, all } = run(at("usr/local/bin/runcast"), "--config", config, "--check-config");
  assert.equal(status, 0, all);
  const name = /^listen = systemd:(\w+)$/m.exec(fs.readFileSync(config, "utf8"))[1];
  assert.match(fs.readFileSync(at("usr/local/lib/systemd/system/runcast.socket"), "utf8"), new RegExp(`^FileDescriptorName=${name}$`, "m"));
  assert.match(fs.readFileSync(at(unit), "utf8"), /^StateDirectory=runcast$/m);
});

test("so are those of the supervise role, whose unit hands over its token", () => {
  const config = at("usr/local/etc/runcast/supervise.conf");
  const { status, all } = run("env", "RUNCAST_WORKER_TOKEN=tr_pat_0123456789", at("usr/local/bin/runcast"), "supervise", "--config", config, "--check-config");
  assert.equal(status, 0, all);
  const text = fs.readFileSync(at("usr/local/lib/systemd/system/runcast-supervise.service"), "utf8");
  assert.match(text, /^LoadCredential=runcast:\/usr\/local\/etc\/runcast\/supervise$/m);
  assert.match(text, /^StateDirectory=runcast-supervise$/m);
  assert.match(fs.readFileSync(config, "utf8"), /^versions = \/var\/lib\/runcast-supervise$/m);
});

test("of what the supervise role may do at most 4.5 of 10 is left open", () => {
  const { status, all } = run("systemd-analyze", "security", "--offline=yes", "--threshold=45", at("usr/local/lib/systemd/system/runcast-supervise.service"));
  assert.equal(status, 0, all.slice(-300));
});

test("the service is confined: at most 2.0 of 10 of what a service could do is left open", () => {
  const { status, all } = run("systemd-analyze", "security", "--offline=yes", "--threshold=20", at(unit));
  assert.equal(status, 0, all.slice(-300));
  assert.match(all, /Overall exposure level for runcast.service: [01]\.\d OK/);
});
