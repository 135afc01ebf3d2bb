// The official CLI as a worker, and the SDK, behind proxies that serve the gateway under a path of their host. The CLI opens
// its socket for notices at the root of the host: /socket.io/.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { startCli } from "../../support/js/cli.mjs";
import { until } from "../../support/js/gateway.mjs";
import { pathProxies, startUnderPath, underPath, withoutSockets } from "../../support/js/proxies.mjs";

const sdk = path.join(fileURLToPath(new URL("../sdk-v4", import.meta.url)), "node_modules/@trigger.dev/sdk/dist/esm/v3/index.js");

/** Executes a module with SDK 4.8.3 at the proxy, and returns the JSON that it prints. */
async function script(gateway, proxy, text) {
  const child = spawn(process.execPath, ["--input-type=module", "-e", `import { runs, tasks, wait } from ${JSON.stringify(sdk)};\n${text}`], { stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, TRIGGER_API_URL: proxy.url + underPath, TRIGGER_SECRET_KEY: gateway.keys.dev, NODE_EXTRA_CA_CERTS: proxy.certificate } });
  let out = "", wrong = "";
  child.stdout.setEncoding("utf8").on("data", (more) => { out += more; });
  child.stderr.setEncoding("utf8").on("data", (more) => { wrong += more; });
  const code = await new Promise((resolve) => child.on("close", resolve));
  assert.equal(code, 0, wrong);
  return JSON.parse(out);
}

async function start(t, how) {
  const { gateway, proxy, stop } = await startUnderPath(how);
  t.after(stop);
  const cli = await startCli({ t, url: proxy.url + underPath, env: { NODE_EXTRA_CA_CERTS: proxy.certificate } });
  return { gateway, proxy, cli, sockets: () => gateway.metric("runcast_notice_sockets") };
}

// By default the proxy that changes the paths of all calls; ../browser/prefix.test.mjs has every proxy.
const proxies = Object.entries(pathProxies).filter(([name]) => process.env.TESTS_IN_FULL || name === "nginx that removes the path");

for (const [name, how] of proxies)
  test(`behind ${name}, the CLI executes runs and receives notices, and the SDK follows, uploads and completes`, { timeout: 240_000 }, async (t) => {
    const { gateway, proxy, cli, sockets } = await start(t, how);
    await until(async () => await sockets() === 1, { what: "the CLI's socket" });
    const notices = await gateway.metric("runcast_notices_total");
    const { seen, output, url } = await script(gateway, proxy, `
      const { id } = await tasks.trigger("asks"), seen = [];
      let token, output;
      for await (const run of runs.subscribeToRun(id)) {
        if (seen.at(-1) !== run.status) seen.push(run.status);
        if (run.metadata?.token && !token) await wait.completeToken(token = run.metadata.token, { yes: true });
        output = run.output;
      }
      const { url } = await wait.createToken({ timeout: "10m" });
      if ((await fetch(url, { method: "POST", body: "{}" })).status !== 200) throw new Error(url);
      console.log(JSON.stringify({ seen, output, url }));`);
    assert.equal(seen.at(-1), "COMPLETED", `${seen}`);
    assert.deepEqual(output, { leaf: "one", answer: { yes: true }, batch: ["a", "b"] });
    assert.ok(url.startsWith(`${proxy.url}${underPath}/`), url);
    assert.ok(await gateway.metric("runcast_notices_total") > notices, "notices are sent");
    await until(() => cli.output.includes("Received run notification"), { what: "the CLI receives one" });

    const lengths = await script(gateway, proxy, `
      const { id } = await tasks.trigger("hello", { name: "x".repeat(700_000) });
      for await (const run of runs.subscribeToRun(id)) if (run.status === "COMPLETED") console.log(JSON.stringify([run.payload.name.length, run.output.greeting.length]));`);
    assert.deepEqual(lengths, [700_000, 700_008]);
    assert.equal(cli.end, undefined);
    await cli.stop();
  });

test("behind a proxy that does not pass /socket.io/ on, the CLI polls, and its runs still complete", { timeout: 240_000 }, async (t) => {
  const { gateway, proxy, cli, sockets } = await start(t, withoutSockets);
  const output = await script(gateway, proxy, `
    const { id } = await tasks.trigger("middle");
    for await (const run of runs.subscribeToRun(id)) if (run.status === "COMPLETED") console.log(JSON.stringify(run.output));`);
  assert.match(output.leaf, /^run_/);
  assert.equal(await sockets(), 0);
  await cli.stop();
});
