// A gateway ends although no name server responds for the name of its leader (shim_names.c). The test would not end otherwise.
import assert from "node:assert/strict";
import { test } from "node:test";

import { freePort, startGateway, until } from "../support/js/gateway.mjs";
import { onDatabase, startPostgres } from "../support/js/postgres.mjs";

test("a gateway ends while it looks up a name without an answer", { timeout: 300_000 }, async (t) => {
  const postgres = await startPostgres({ t }), port = await freePort();
  const start = (name, at, ready) => startGateway({ t, ready, preload: "shim_names",
    ...onDatabase(postgres, name, { url: postgres.url, options: ["--peer-listen", `127.0.0.${at}:${port}`, "--peer-url", `http://${name}.hangs:${port}`] }) });
  const looksUp = (gateway) => until(() => gateway.stderr.includes("looks up a.hangs"), { what: "it looks up its leader" });
  const leader = await start("a", 1, true), standby = await start("b", 2, false);
  await looksUp(standby);
  await standby.stop();

  // The lookup is still in progress when this one leads, and when it ends.
  const next = await start("c", 3, false);
  await looksUp(next);
  await leader.stop();
  await until(() => next.leads(), { what: "the next one leads" });
  await next.stop();
  assert.match(next.stderr, /"event":"stopped"/);
});
