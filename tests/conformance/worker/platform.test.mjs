// Projects that use parts of Trigger.dev's platform that runcast lacks. The gateway does not refuse the declarations of the
// official CLI, nor the members that both SDKs send by themselves. Commands for missing parts fail with an error, and
// the README lists them.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import { copyOf, startCli, workerFolder } from "../../support/js/cli.mjs";
import { keys, startGateway, temporaryFolder, until } from "../../support/js/gateway.mjs";
import { absentCommands, routesOf, unknownRoutes } from "../../support/js/published.mjs";

const require = createRequire(new URL("../sdk-v4/x.js", import.meta.url));
const sdk = require("@trigger.dev/sdk");
const cliFolder = path.join(workerFolder, "node_modules/trigger.dev/dist/esm");
const FINAL = ["COMPLETED", "CANCELED", "FAILED", "CRASHED", "SYSTEM_FAILURE", "EXPIRED", "TIMED_OUT"];

test("a project with an invalid duration is refused; one with limits, prompts and an agent is not, and its version has warnings", async (t) => {
  const gateway = await startGateway({ t, options: ["--log-level", "debug"] }), folder = copyOf("platform");
  const file = path.join(folder, "src/trigger/tasks.ts"), valid = fs.readFileSync(file, "utf8");
  const current = async () => gateway.get(`/api/v1/projects/${keys.ref}/dev/workers/current`, { key: keys.pat });

  fs.writeFileSync(file, valid.replace('id: "greet",', 'id: "greet", ttl: "banana",'));
  const cli = await startCli({ t, gateway, folder, words: "].ttl: " });
  assert.match(cli.output.replace(/\s+/g, " "), /metadata\.tasks\[\d\]\.ttl: must be /);
  assert.equal((await current()).status, 404);
  await cli.rebuild(() => fs.writeFileSync(file, valid));

  const { json: { data } } = await gateway.get("/api/v1/concurrency-limits");
  assert.deepEqual(data.map(({ name, total, perKey }) => [name, total.base, perKey.base]), [["shared", 5, null], ["task/limited", 2, null]]);
  sdk.configure({ baseURL: gateway.url, accessToken: keys.dev });
  const options = { tags: ["outside"], metadata: { a: 1 }, concurrencyKey: "k", maxAttempts: 2, ttl: "1h", priority: 1, idempotencyKey: "once", maxDuration: 60, machine: "micro", queue: "line" };
  const handle = await sdk.tasks.trigger("parent", {}, { tags: ["outside"] });
  const alone = await sdk.tasks.trigger("greet", { name: "out" }, options);
  const batch = await sdk.batch.trigger([{ id: "greet", payload: { name: "a" }, options: { tags: ["b"] } }, { id: "greet", payload: { name: "b" } }]);
  const end = (id) => until(async () => { const run = await sdk.runs.retrieve(id); return FINAL.includes(run.status) && run; }, { timeoutMs: 90_000, everyMs: 100, what: id });
  const { status, output, error } = await end(handle.id);
  assert.deepEqual([status, output?.texts, error], ["COMPLETED", ["Hello, Ada!", "Hello, Bob!", "Hello, Eve!"], undefined]);
  const { text, refused } = (await end(alone.id)).output;
  assert.equal(text, "Hello, out!");
  assert.match(refused, /runcast does not have prompts/); // the feature that the task uses
  for (const id of (await sdk.batch.retrieve(batch.batchId)).runs) assert.equal((await end(id)).status, "COMPLETED");
  assert.doesNotMatch(gateway.stderr, /unknown members of a request ignored/);
  const { json: { worker } } = await current();
  assert.deepEqual(worker.warnings.map(({ feature, names }) => [feature, names]), [["prompts", ["greeting"]], ["sessions and agents that chat", ["assistant"]]]);
});

test("each route that the CLI calls exists, or is in the README's list of missing ones", async (t) => {
  const gateway = await startGateway({ t });
  const routes = routesOf(path.join(cliFolder, "apiClient.js"), "apiURL");
  assert.ok(routes.length > 40, `${routes.length} routes`);
  // The gateway has one route for each slug of an environment.
  const isPlace = (route) => route === "GET /api/v1/projects/{}/{}";
  assert.deepEqual(unknownRoutes(routes, (await gateway.get("/openapi.json", { key: null })).json).filter((route) => !isPlace(route)), []);
});

test("the commands of the README's list exit with an error, and no other command is missing", async (t) => {
  const gateway = await startGateway({ t });
  const folder = fs.mkdtempSync(path.join(workerFolder, "node_modules/.platform-"));
  t.after(() => fs.rmSync(folder, { recursive: true }));
  for (const file of ["package.json", "package-lock.json", "trigger.config.ts", "tsconfig.json"]) fs.copyFileSync(path.join(workerFolder, file), path.join(folder, file));
  const scratch = temporaryFolder(), stub = pathToFileURL(path.join(workerFolder, "stub-net.mjs")).href;
  const cli = (...words) => new Promise((resolve) => {
    execFile(process.execPath, ["--import", stub, path.join(cliFolder, "index.js"), ...words], {
      cwd: folder, timeout: 60_000,
      env: { ...process.env, HOME: scratch, TMPDIR: scratch, STUB_ANSWER: "1", NO_COLOR: "1", CI: "1", TRIGGER_API_URL: gateway.url, TRIGGER_ACCESS_TOKEN: keys.pat, TRIGGER_PROJECT_REF: keys.ref, TRIGGER_TELEMETRY_DISABLED: "1" },
    }, (error, stdout, stderr) => resolve({ code: error ? error.code : 0, output: stdout + stderr })).stdin.end();
  });
  for (const words of [["report", "health"], ["webhooks", "generate-secret", "x", "--print"]]) {
    const { code, output } = await cli(...words);
    assert.ok(code, `${words.join(" ")}: ${output}`);
    assert.match(output, /runcast does not have/, words.join(" "));
  }
  // The remaining commands fail earlier: they need a terminal or a build.
  const known = [..."init dev env deploy promote whoami mint-token login logout list-profiles switch update preview projects orgs runs tasks webhooks mcp report install-mcp skills help analyze".split(" ")];
  const { output } = await cli("--help");
  const commands = [...output.slice(output.indexOf("Commands:")).matchAll(/^ {2}([a-z-]+)/gm)].map(([, name]) => name);
  assert.deepEqual(commands.filter((name) => !known.includes(name)), [], "commands that are new");
  assert.ok(absentCommands().length > 0, "the README lists commands");
  for (const name of absentCommands()) assert.ok(known.includes(name.split(" ")[0]), name);
});
