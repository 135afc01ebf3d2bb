// Changes leave through io_uring where the kernel has it, otherwise one by one, and arrive either way.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { startGateway, temporaryFolder } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";
import { connect, subscribe, trigger } from "../support/js/realtime.mjs";

const SOCKETS = 100;
const descriptors = ({ pid }) => fs.readdirSync(`/proc/${pid}/fd`).map((fd) => fs.readlinkSync(`/proc/${pid}/fd/${fd}`));
const hasRing = (gateway) => descriptors(gateway).some((name) => name.includes("io_uring"));
const told = (gateway) => gateway.stderr.split("\n").filter((line) => line.includes("io_uring is unavailable"));

/** Asserts that changes reach many sockets, each in order. */
async function use(t, gateway) {
  const sockets = await Promise.all(Array.from({ length: SOCKETS }, () => connect(t, { to: gateway })));
  for (const socket of sockets) await subscribe(socket, 1, { tags: ["all"] });
  const ids = [];
  for (let i = 0; i < 20; i++) ids.push((await trigger({ tags: ["all"] }, { to: gateway })).id);
  for (const socket of sockets)
    for (const id of ids) assert.equal((await socket.next("patch")).rows[0][0], id);
}

test("changes leave through a ring that is created before the sandbox", async (t) => {
  const gateway = await startGateway({ t, options: ["--sandbox", "auto"] });
  assert.ok(hasRing(gateway), "this machine has no io_uring");
  await use(t, gateway);
  assert.deepEqual(told(gateway), []);
  assert.equal(await gateway.metric("runcast_io_uring"), 1);
  await gateway.stop();
});

test("--io-uring off creates no ring, and an invalid value is refused", async (t) => {
  const gateway = await startGateway({ t, options: ["--io-uring", "off"] });
  assert.ok(!hasRing(gateway));
  await use(t, gateway);
  assert.deepEqual(told(gateway), []);
  await gateway.stop();
  const { code, stderr } = await runProgram(["--io-uring", "on", "--check-config"]);
  assert.equal(code, 2);
  assert.match(stderr, /--io-uring.*auto or off/);
});

test("a kernel without io_uring is logged once, and is not an error", async (t) => {
  const binary = path.join(temporaryFolder(), "runcast"), program = process.env.GATEWAY_BIN ?? path.resolve("build-asan/runcast");
  fs.writeFileSync(binary, `#!/bin/sh\nexec python3 -B ${fileURLToPath(new URL("../support/python/old_kernel.py", import.meta.url))} ${program} "$@"\n`, { mode: 0o755 });
  const gateway = await startGateway({ t, binary });
  assert.ok(!hasRing(gateway));
  await use(t, gateway);
  assert.equal(told(gateway).length, 1);
  assert.match(told(gateway)[0], /each frame costs one system call.*io_uring_setup: [^"]+: [^"]+/);
  assert.equal(await gateway.metric("runcast_io_uring"), 0);
  await gateway.stop();
});
