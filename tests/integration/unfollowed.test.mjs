// A gateway that cannot follow the leader logs why, and where to correct it. Its address and the leader's are at one port.
import assert from "node:assert/strict";
import { test } from "node:test";

import { freePort, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { onDatabase, startPostgres } from "../support/js/postgres.mjs";
import { makeAuthority } from "../support/js/tls.mjs";

/** The line that reports why the gateway does not follow. */
function whyNot(gateway) {
  const line = gateway.stderr.split("\n").find((one) => one.includes("cannot follow the leader; retrying"));
  return line && JSON.parse(line);
}

/** Landlock knows connections since ABI 4. */
const limitsConnections = (gateway) => Number(/"landlock":"ABI (\d+)"/.exec(gateway.stderr)?.[1]) >= 4;

test("a gateway that cannot follow logs the reason and the address", { timeout: 300_000 }, async (t) => {
  const postgres = await startPostgres({ t }), port = await freePort(), other = await freePort();
  const start = (name, options, more) => startGateway({ t, ...onDatabase(postgres, name, { options, ...more }) });
  const certificate = makeAuthority(temporaryFolder(), "authority").sign("peers", "IP:127.0.0.1");
  const secure = ["--peer-listen", `127.0.0.1:${port},tls`, "--tls-cert", certificate.certificate, "--tls-key", certificate.key];
  const at = (url) => ["--peer-listen", `127.0.0.1:${port}`, "--peer-url", url];
  for (const [what, options, url, reason] of [
    ["no peer-listen", [], "", /has no peer-listen/],
    ["another port", ["--peer-listen", `127.0.0.1:${other}`], `http://127.0.0.1:${other}`, /Permission denied; the sandbox permits only/],
    ["the follower's own address", at(`http://127.0.0.2:${port}`), `http://127.0.0.2:${port}`, /does not lead/],
    ["a path", at(`http://127.0.0.1:${port}/path`), `http://127.0.0.1:${port}/path`, /is not that of a peer-listen; correct peer-url/],
    ["TLS", secure, `https://127.0.0.1:${port}`, /append ,tls/],
    ["a wrong name", at(`http://gateway.invalid:${port}`), `http://gateway.invalid:${port}`, /gateway\.invalid/],
  ]) {
    const leader = await start("a", options);
    if (what === "another port" && !limitsConnections(leader)) { await leader.stop(); continue; }
    const follower = await start("b", ["--peer-listen", `127.0.0.2:${port}`], { ready: false });
    const logged = await until(() => whyNot(follower), { what });
    assert.deepEqual([logged.level, logged.leader, logged.url], ["warn", "a", url], what);
    assert.match(logged.reason, reason, what);
    assert.equal(await follower.metric("runcast_follows"), 0);
    await follower.stop();
    await leader.stop();
  }
});

test("a gateway without peer-listen warns if the leader has it", { timeout: 60_000 }, async (t) => {
  const postgres = await startPostgres({ t }), url = `http://127.0.0.1:${await freePort()}`;
  await startGateway({ t, ...onDatabase(postgres, "a", { options: ["--peer-listen", url.slice("http://".length)] }) });
  const standby = await startGateway({ t, ...onDatabase(postgres, "b", { ready: false }) });
  const warned = () => standby.stderr.split("\n").find((line) => line.includes("cannot follow the leader"));
  const { level, event, leader, url: logged, reason } = JSON.parse(await until(warned, { what: "it warns" }));
  assert.deepEqual([level, event, leader, logged], ["warn", "cannot follow the leader", "a", url]);
  assert.match(reason, /this gateway has no peer-listen; set it here, too/);
});
