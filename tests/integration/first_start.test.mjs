// The lines to paste that the first start prints.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import path from "node:path";
import { test } from "node:test";

import { freePort, temporaryFolder, until } from "../support/js/gateway.mjs";

/** All that the first start prints with generated keys, up to the next command and the link. */
async function printed(t, data, ...options) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("RUNCAST_")));
  const child = spawn(process.env.GATEWAY_BIN, ["--data", data, "--print-keys", ...options], { env, stdio: ["ignore", "pipe", "ignore"] });
  t.after(() => child.kill("SIGKILL"));
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (more) => { text += more; });
  await until(() => /trigger\.dev dev\n\n(?:[^]*#signin=\S+\n\n)?$/.test(text), { what: "the keys" });
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
  assert.match(text, /It listens only at unix:\S+, which the SDKs and the CLI cannot connect to\.\nPut a proxy in front of it/);
  assert.doesNotMatch(text, /#signin=/, "no browser opens it");
  assert.match(text, /\n  export TRIGGER_SECRET_KEY=tr_dev_\w+\n/);
  const named = await printed(t, path.join(folder, "other"), "--listen", `unix:${path.join(folder, "t")}`, "--public-url", "https://runs.example.com");
  assert.match(named, /\n  export TRIGGER_API_URL=https:\/\/runs\.example\.com TRIGGER_SECRET_KEY=/);
});

test("on a terminal the first start ends with the keys, the next command and a link that signs in once", async (t) => {
  const port = await freePort(), data = path.join(temporaryFolder(), "data"), seen = { text: "" };
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("RUNCAST_")));
  const child = spawn("script", ["-qec", `exec ${process.env.GATEWAY_BIN} --data ${data} --listen 127.0.0.1:${port}`, "/dev/null"], { env, stdio: ["ignore", "pipe", "pipe"] });
  t.after(() => child.kill("SIGKILL"));
  child.stdout.setEncoding("utf8").on("data", (more) => { seen.text += more.replaceAll("\r", ""); });
  const [, last, code] = await until(() => seen.text.match(/event=ready [^]*?\n\n(runcast made a project[^]*\/#signin=(\S+)\n\n)$/), { what: "the link" });
  assert.doesNotMatch(last, /event=/, "the log comes before");
  assert.match(last, new RegExp(`TRIGGER_ACCESS_TOKEN=\\S+\n\nThen execute your tasks, in the folder with trigger\\.config\\.ts:\n\n  npx trigger\\.dev dev\n\n[^]*\n  http://127\\.0\\.0\\.1:${port}/#signin=`));
  const signIn = async () => (await fetch(`http://127.0.0.1:${port}/api/v1/sign-in`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ code }) })).status;
  assert.deepEqual([await signIn(), await signIn()], [200, 400], "once");
  const without = await printed(t, path.join(temporaryFolder(), "data"), "--listen", `127.0.0.1:${await freePort()}`, "--dashboard", "off");
  assert.doesNotMatch(without, /#signin=/);
});
