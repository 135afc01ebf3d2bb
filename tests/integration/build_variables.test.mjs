// The variables of a build: handed to its builder, and hidden in every log and response about the build.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { Builder, Deployer } from "../support/js/deployments.mjs";
import { keys, startGateway, until } from "../support/js/gateway.mjs";

const options = ["--deploy-hold", "2s", "--dequeue-wait", "1s"];

async function start(t) {
  const gateway = await startGateway({ t, options });
  return { gateway, cli: new Deployer(gateway), builder: await Builder.start(gateway) };
}

test("no log and no response of a build contains the value of a variable", async (t) => {
  const { gateway, cli, builder } = await start(t);
  await gateway.post(`/api/v1/projects/${keys.ref}/envvars/prod/import`, { variables: { TOKEN: "the-secret-token" }, isSecret: true, override: true }, { key: keys.prod });
  const answer = cli.deploy({ buildEnvVars: { NPM_TOKEN: "npm-secret-value", SHORT: "x" } }), build = await builder.take();
  assert.deepEqual(build.buildEnvVars, { NPM_TOKEN: "npm-secret-value", SHORT: "x" });
  await builder.heartbeat(build, { log: "fetch npm-secr" });
  await builder.heartbeat(build, { log: "et-value with the-secret-token x\n" });
  await builder.fail(build, { name: "BuildError", message: "401 for npm-secret-value", stderr: "token the-secret-token" });
  const told = [(await answer).text, JSON.stringify(await cli.show(build.deployment.id)), (await until(async () => { const log = await cli.get(`/api/v1/deployments/${build.deployment.id}/logs`); return log.text && log; })).text, gateway.stderr];
  for (const text of told) assert.doesNotMatch(text, /secret-value|secret-token/);
  assert.equal(told[2], "fetch <redacted> with <redacted> x\n");
  await gateway.stop();
  const stored = ["runcast.db", "runcast.db-wal"].map((name) => path.join(gateway.data, name)).filter((file) => fs.existsSync(file)).map((file) => fs.readFileSync(file, "latin1")).join("");
  assert.doesNotMatch(stored, /npm-secret-value/);
});

test("a thousand variables with a common beginning are all hidden, wherever the log is cut", async (t) => {
  const { gateway, cli, builder } = await start(t);
  const values = Array.from({ length: 1000 }, (_, i) => `${"https://user:pass@".repeat(12)}${String(i).padStart(4, "0")}`);
  const answer = cli.deploy({ buildEnvVars: Object.fromEntries(values.map((value, i) => [`V${i}`, value])) }), build = await builder.take();
  assert.equal(Object.keys(build.buildEnvVars).length, 1000);
  const text = values.slice(0, 250).map((value, i) => `${i} ${value}\n`).join("");
  for (let at = 0; at < text.length; at += 7001) assert.equal((await builder.heartbeat(build, { log: text.slice(at, at + 7001) })).status, 200);
  await builder.fail(build, { name: "BuildError", message: `no ${values[999]}` });
  assert.match((await answer).json.error, /failed: no <redacted>$/);
  const log = await until(async () => { const { text: kept } = await cli.get(`/api/v1/deployments/${build.deployment.id}/logs`); return kept; });
  assert.equal(log, values.slice(0, 250).map((_, i) => `${i} <redacted>\n`).join(""));
  await gateway.stop();
});

test("a build that is canceled before a builder takes it gives nothing to the builder", async (t) => {
  const { gateway, cli, builder } = await start(t);
  const value = (i) => `${i}-${"secret".repeat(40)}`;
  const values = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`V${i}`, value(i)]));
  const answer = cli.deploy({ buildEnvVars: values });
  const { id } = await until(async () => (await cli.get("/api/v1/deployments")).json.data[0]);
  const taken = builder.dequeue(), canceled = cli.post(`/api/v1/deployments/${id}/cancel`, {});
  assert.equal((await canceled).status, 204);
  const build = await taken;
  if (build) assert.equal((await builder.heartbeat(build)).status, 409);
  assert.equal((await answer).status, 422);
  await gateway.stop();
});
