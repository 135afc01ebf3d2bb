// The maintainer scripts of the packages, as far as they need no package manager.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { temporaryFolder } from "../support/js/gateway.mjs";

const script = fs.readFileSync(new URL("../../deploy/debian/runcast.prerm", import.meta.url), "utf8");

test("removing the package ends the supervise role first, and succeeds also when that fails; an upgrade leaves it running", () => {
  const folder = temporaryFolder(), said = path.join(folder, "said"), stub = path.join(folder, "deb-systemd-invoke");
  fs.writeFileSync(stub, `#!/bin/sh\necho "$@" >>${said}\nexit 1\n`, { mode: 0o755 });
  const run = (word) => spawnSync("sh", ["-c", script.replaceAll("/run/systemd/system", folder), "prerm", word], { encoding: "utf8", env: { PATH: `${folder}:${process.env.PATH}` } });
  const upgraded = run("upgrade");
  assert.deepEqual([upgraded.status, fs.existsSync(said)], [0, false], upgraded.stderr);
  const removed = run("remove");
  assert.deepEqual([removed.status, fs.readFileSync(said, "utf8")], [0, "stop runcast-supervise.service\n"], removed.stderr);
});
