// The manifests of deploy/kubernetes and deploy/container agree with the program and the image. No cluster and no
// Compose is started here.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { runProgram } from "../support/js/program.mjs";

const top = fileURLToPath(new URL("../..", import.meta.url)), read = (file) => fs.readFileSync(path.join(top, file), "utf8");
const version = /^project\(runcast VERSION ([\d.]+)/m.exec(read("CMakeLists.txt"))[1];
const built = spawnSync("kubectl", ["kustomize", path.join(top, "deploy/kubernetes")], { encoding: "utf8" });
const kinds = Object.fromEntries((built.stdout ?? "").split(/^---$/m).map((text) => [/^kind: (\w+)$/m.exec(text)?.[1], text]));

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
