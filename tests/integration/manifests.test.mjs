// The manifests of deploy/kubernetes and deploy/container agree with the program and the image. No cluster and no
// Compose is started here.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { temporaryFolder } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";

const top = fileURLToPath(new URL("../..", import.meta.url)), read = (file) => fs.readFileSync(path.join(top, file), "utf8");
const version = /^project\(runcast VERSION ([\d.]+)/m.exec(read("CMakeLists.txt"))[1];
/** Returns what kustomize makes of a folder, as { status, stderr, kinds: kind and name -> text }. The name of the program's
 *  own objects is left out. */
function build(folder) {
  const { status, stdout, stderr } = spawnSync("kubectl", ["kustomize", path.join(top, folder)], { encoding: "utf8" });
  const named = (text) => /^kind: (\w+)$/m.exec(text)?.[1] + (/^ {2}name: runcast(-peers)?$/m.exec(text)?.[1] ?? "");
  return { status, stderr, kinds: Object.fromEntries((stdout ?? "").split(/^---$/m).map((text) => [named(text), text])) };
}
const built = build("deploy/kubernetes"), { kinds } = built;
const cluster = build("deploy/kubernetes-cluster");

test("kustomize builds one gateway from them, with everything that it needs", () => {
  assert.equal(built.status, 0, built.stderr);
  assert.deepEqual(Object.keys(kinds).sort(), ["ConfigMap", "NetworkPolicy", "PodDisruptionBudget", "Service", "StatefulSet"]);
  assert.match(kinds.StatefulSet, /^ {2}replicas: 1$/m);
});

test("the policies select the gateway, and the name of its settings is the one that this build generates", () => {
  for (const kind of ["NetworkPolicy", "PodDisruptionBudget", "StatefulSet"])
    assert.match(kinds[kind], /matchLabels:\n +app\.kubernetes\.io\/name: runcast/, kind);
  const name = /^ {2}name: (runcast-\w+)$/m.exec(kinds.ConfigMap)[1];
  assert.ok(kinds.StatefulSet.includes(`name: ${name}`));
});

test("every version that they name is the current one", () => {
  for (const file of ["deploy/kubernetes/kustomization.yaml", "deploy/container/compose.yaml", "deploy/container/compose-cluster.yaml"]) {
    const named = [...read(file).matchAll(/(?:newTag: |runcast:|runcast-)(\d+\.\d+\.\d+)/g)].map(([, one]) => one);
    assert.ok(named.length, file);
    assert.deepEqual(new Set(named), new Set([version]), file);
  }
  assert.match(read("deploy/debian/changelog"), new RegExp(`^runcast \\(${version.replaceAll(".", "\\.")}-\\d+\\)`));
});

test("the settings are valid, and listen where probes and policies expect it", async () => {
  const named = [...read("deploy/kubernetes/kustomization.yaml").matchAll(/--from-literal=(RUNCAST_\w+)=(tr_\w+_)\$\(openssl rand -hex (\d+)\)/g)];
  const given = Object.fromEntries(named.map(([, name, begin, bytes]) => [name, begin + "0".repeat(2 * bytes)]));
  const { code, all } = await runProgram(["--config", path.join(top, "deploy/kubernetes/runcast.conf"), "--check-config"],
    { env: { RUNCAST_LISTEN: "0.0.0.0:3030", ...given } });
  assert.equal(code, 0, all);
  const admin = /^admin-listen = 0\.0\.0\.0:(\d+)$/m.exec(read("deploy/kubernetes/runcast.conf"))[1];
  const ports = [...kinds.StatefulSet.matchAll(/containerPort: (\d+)\n +name: (\w+)/g)].map(([, number, name]) => [name, number]);
  assert.deepEqual(Object.fromEntries(ports), { http: "3030", admin });
  assert.match(read("deploy/container/build.sh"), /RUNCAST_LISTEN=0\.0\.0\.0:3030/);
});

/** The settings of gateways that share a database, with values for everything that an operator sets. */
const check = (options, env) => runProgram([...options, "--check-config"], { env: { RUNCAST_LISTEN: "0.0.0.0:3030", RUNCAST_ENCRYPTION_KEY: "5e".repeat(32), RUNCAST_DATABASE: "postgresql://runcast@localhost/runcast", ...env } });

test("kustomize builds three gateways that follow each other, of which one at a time is drained", async () => {
  assert.equal(cluster.status, 0, cluster.stderr);
  assert.deepEqual(Object.keys(cluster.kinds).sort(), ["ConfigMap", "NetworkPolicy", "PodDisruptionBudget", "Service", "Service-peers", "StatefulSet"]);
  const { StatefulSet, PodDisruptionBudget, NetworkPolicy, ConfigMap } = cluster.kinds, peers = cluster.kinds["Service-peers"];
  assert.match(StatefulSet, /^ {2}replicas: 3$/m);
  assert.match(StatefulSet, /^ {2}serviceName: runcast-peers$/m);
  assert.doesNotMatch(StatefulSet, /volumeClaimTemplates/);
  assert.ok(StatefulSet.includes(`name: ${/^ {2}name: (runcast-\w+)$/m.exec(ConfigMap)[1]}`));
  assert.match(PodDisruptionBudget, /^ {2}maxUnavailable: 1$/m);
  assert.match(peers, /clusterIP: None/);
  assert.equal(NetworkPolicy.match(/port: peers/g).length, 2, "from and to each other");
  assert.match(NetworkPolicy, /port: 5432/);
  const port = /containerPort: (\d+)\n +name: peers/.exec(StatefulSet)[1];
  assert.match(peers, new RegExp(`port: ${port}\n`));
  const url = /value: (http:\S+)/.exec(StatefulSet)[1].replace("$(RUNCAST_GATEWAY_NAME)", "runcast-1");
  assert.equal(url, `http://runcast-1.runcast-peers:${port}`);
  assert.match(ConfigMap, new RegExp(`peer-listen = 0\\.0\\.0\\.0:${port}\n`));
  const keys = [...read("deploy/kubernetes-cluster/kustomization.yaml").matchAll(/(RUNCAST_\w+_KEY)=(tr_\w+_)\$\(openssl rand -hex (\d+)\)/g)];
  const { code, all } = await check(["--config", path.join(top, "deploy/kubernetes-cluster/runcast.conf")],
    { RUNCAST_GATEWAY_NAME: "runcast-1", RUNCAST_PEER_URL: url, ...Object.fromEntries(keys.map(([, name, begin, bytes]) => [name, begin + "0".repeat(2 * bytes)])) });
  assert.equal(code, 0, all);
});

test("the gateways of compose-cluster.yaml have valid settings, and HAProxy knows each of them", async () => {
  const text = read("deploy/container/compose-cluster.yaml"), settings = /^x-settings:[^]*?(?=^\S)/m.exec(`${text.slice(text.indexOf("x-settings"))}`)[0];
  const shared = Object.fromEntries([...settings.matchAll(/^ {2}(RUNCAST_\w+): "?([^"# ]+)"?/gm)].map(([, name, value]) => [name, value]));
  const own = [...text.matchAll(/RUNCAST_GATEWAY_NAME: (\S+), RUNCAST_PEER_URL: "(\S+)"/g)];
  assert.equal(own.length, 3);
  assert.equal(shared.RUNCAST_TRUSTED_PROXIES, /ipv4_address: (\S+)/.exec(text)[1]);
  for (const [, name, url] of own) {
    assert.equal(url, `http://${name}:${shared.RUNCAST_PEER_LISTEN.split(":")[1]}`);
    assert.equal(read("deploy/container/haproxy.cfg").split(`server ${name} ${name}:3030`).length, 3);
    const { RUNCAST_DATABASE, RUNCAST_ENCRYPTION_KEY, RUNCAST_NEXT_ENCRYPTION_KEY, ...rest } = shared;
    assert.ok(RUNCAST_DATABASE.startsWith("postgresql://runcast:$") && RUNCAST_ENCRYPTION_KEY);
    assert.equal(RUNCAST_NEXT_ENCRYPTION_KEY, "${RUNCAST_NEXT_ENCRYPTION_KEY:-}");
    const { code, all } = await check(["--insecure", "--print-keys"], { ...rest, RUNCAST_NEXT_ENCRYPTION_KEY: "", RUNCAST_GATEWAY_NAME: name, RUNCAST_PEER_URL: url });
    assert.equal(code, 0, all);
  }
});

test("the first lines of compose-cluster.yaml make each secret that it requires, and keep those of an earlier start", () => {
  const text = read("deploy/container/compose-cluster.yaml"), folder = temporaryFolder(), file = path.join(folder, "deploy/container/.env");
  const command = /^# {3}\(umask [^]*?\.env\)$/m.exec(text)[0].replace(/^# {3}/gm, "");
  fs.mkdirSync(path.dirname(file), { recursive: true });
  const make = () => spawnSync("sh", ["-c", command], { cwd: folder, encoding: "utf8" });
  assert.equal(make().status, 0);
  const made = fs.readFileSync(file, "utf8"), names = [...made.matchAll(/^(\w+)=[0-9a-f]{32,64}$/gm)].map(([, name]) => name);
  assert.deepEqual(new Set(names), new Set([...text.matchAll(/\$\{(\w+):\?\}/g)].map(([, name]) => name)));
  assert.equal(fs.statSync(file).mode & 0o777, 0o600);
  assert.notEqual(make().status, 0);
  assert.equal(fs.readFileSync(file, "utf8"), made);
});
