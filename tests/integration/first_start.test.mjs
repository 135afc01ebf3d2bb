// The lines to paste that the first start prints.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import path from "node:path";
import { test } from "node:test";

import { freePort, temporaryFolder, until } from "../support/js/gateway.mjs";

/** All that the first start prints with generated keys, up to the last line to paste. */
async function printed(t, data, ...options) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("RUNCAST_")));
  const child = spawn(process.env.GATEWAY_BIN, ["--data", data, "--print-keys", ...options], { env, stdio: ["ignore", "pipe", "ignore"] });
  t.after(() => child.kill("SIGKILL"));
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (more) => { text += more; });
  await until(() => /TRIGGER_ACCESS_TOKEN=\S+\n\n$/.test(text), { what: "the keys" });
  return text;
}

test("the lines to paste name the address for the SDKs", async (t) => {
  const port = await freePort();
  const text = await printed(t, path.join(temporaryFolder(), "data"), "--listen", `127.0.0.1:${port}`);
  assert.match(text, new RegExp(`\\n  export TRIGGER_API_URL=http://127\\.0\\.0\\.1:${port} TRIGGER_SECRET_KEY=tr_dev_\\w+\\n`));
});

test("with only UNIX sockets the first start says that there is no address, and what to do; a public URL is one", async (t) => {
  const folder = temporaryFolder(), listen = ["--listen", `unix:${path.join(folder, "s")}`];
  const text = await printed(t, path.join(folder, "data"), ...listen);
  assert.doesNotMatch(text, /TRIGGER_API_URL=/);
  assert.match(text, /It listens at unix:\S+ alone, which SDKs and CLI cannot be told: have a\nproxy pass on to it/);
  assert.match(text, /\n  export TRIGGER_SECRET_KEY=tr_dev_\w+\n/);
  const named = await printed(t, path.join(folder, "other"), "--listen", `unix:${path.join(folder, "t")}`, "--public-url", "https://runs.example.com");
  assert.match(named, /\n  export TRIGGER_API_URL=https:\/\/runs\.example\.com TRIGGER_SECRET_KEY=/);
});
