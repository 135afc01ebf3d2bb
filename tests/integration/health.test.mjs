// `runcast health`, with which a container or a supervisor checks whether the gateway is ready.
import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";

import { freePort, startGateway, temporaryFolder } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";

const ask = (...words) => runProgram(["health", ...words]);

test("a ready gateway is found by its data directory", async (t) => {
  const gateway = await startGateway({ t });
  assert.deepEqual(await ask("--data", gateway.data), { code: 0, signal: null, stdout: '{"status":"ready","reasons":[],"role":"leads"}\n', stderr: "", all: '{"status":"ready","reasons":[],"role":"leads"}\n' });
});

test("a ready gateway is found by its admin-listen address", async (t) => {
  const address = `127.0.0.1:${await freePort()}`, gateway = await startGateway({ t, options: ["--admin-listen", address] });
  const named = await ask("--data", gateway.data, "--admin-listen", address);
  assert.equal(named.code, 0, named.stderr);
  const elsewhere = await ask("--data", gateway.data);
  assert.equal(elsewhere.code, 1);
  assert.match(elsewhere.stderr, /no gateway responds at .*metrics\.sock: No such file or directory; start it, or name its --data or --config$/m);
  const nowhere = await ask("--data", gateway.data, "--admin-listen", "127.0.0.1:0");
  assert.equal(nowhere.code, 1);
  assert.match(nowhere.stderr, /admin-listen is 127\.0\.0\.1:0; set it to an address with a port/);
});

test("a missing gateway and one that hangs are not ready, and the reason is printed", async (t) => {
  const none = await ask("--data", path.join(temporaryFolder(), "nothing"));
  assert.equal(none.code, 1);
  assert.match(none.stderr, /^runcast: no gateway responds at /);
  const gateway = await startGateway({ t });
  process.kill(gateway.child.pid, "SIGSTOP");
  try {
    const hung = await ask("--data", gateway.data);
    assert.equal(hung.code, 1);
    assert.match(hung.stderr, /timed out/);
  } finally {
    process.kill(gateway.child.pid, "SIGCONT");
  }
});

test("health takes no arguments", async () => {
  const { code, stderr } = await ask("now");
  assert.equal(code, 2);
  assert.match(stderr, /now: not for runcast health;/);
});
