// Runs a command with its own gateway and passes on its exit status:
//
//   node with_gateway.mjs [--worker | --execute] command args…
//
// The command finds the gateway in the variables that the conformance scripts use. --worker also starts the mini-worker
// and waits until it is registered. --execute lets the gateway build and execute deployed versions: under a user that owns
// nothing else if this is root, otherwise under our own user. After the command, the gateway must exit cleanly.
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

import { keys, startGateway, temporaryFolder, until } from "./gateway.mjs";
import { isRoot, runnerUid } from "./supervisor.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const args = process.argv.slice(2);
const withWorker = args[0] === "--worker" && args.shift();
const executes = args[0] === "--execute" && args.shift();

/** Some scripts hold more runs at once than a machine of two cores executes in dev. */
const options = ["--dev-concurrency", "100"], top = temporaryFolder();
if (executes) {
  options.push("--execute", ...isRoot ? ["--runner-user", String(runnerUid)] : ["--execute-unsafe"]);
  fs.chmodSync(top, 0o711); // versions are kept in here, next to the data
}
const gateway = await startGateway({ data: path.join(top, "data"), options });
if (executes)
  await until(async () => (await gateway.get(`/api/v1/projects/${keys.ref}/prod/deploy-settings`, { key: keys.prod })).status === 200, { everyMs: 100, what: "a builder is connected" });
const env = {
  ...process.env,
  API_URL: gateway.url, SECRET_KEY: keys.dev, PAT: keys.pat,
  TRIGGER_API_URL: gateway.url, TRIGGER_SECRET_KEY: keys.dev, TRIGGER_PAT: keys.pat,
  TRIGGER_PROJECT_REF: keys.ref, CONF_PROD_KEY: keys.prod, CONF_PREVIEW_KEY: keys.preview,
  ...executes && { SECRET_KEY: keys.prod, STAGING_KEY: keys.staging, PREVIEW_KEY: keys.preview, EXPECT_UID: String(runnerUid) },
};

function start(command, more, stdio) {
  const child = spawn(command, more, { env, stdio });
  const ended = new Promise((resolve) => {
    child.on("error", (error) => { console.error(String(error)); resolve(1); });
    child.on("close", (code) => resolve(code ?? 1));
  });
  return { child, ended };
}

let worker, failed = 1;
try {
  if (withWorker) {
    const script = path.join(here, "../../conformance/worker/mini-worker.mjs");
    worker = start(process.execPath, [script], ["ignore", "pipe", "inherit"]);
    let output = "", hasEnded = false;
    worker.child.stdout.on("data", (bytes) => { output += bytes; process.stderr.write(bytes); });
    worker.ended.then(() => { hasEnded = true; });
    await until(() => hasEnded || output.includes("registered"), { what: "the worker registers" });
    if (hasEnded) throw new Error("the worker ended before it was registered");
  }
  failed = await start(args[0], args.slice(1), "inherit").ended;
} finally {
  worker?.child.kill("SIGKILL");
  await worker?.ended;
  try {
    await gateway.stop();
    console.log("ok - the gateway ends with status 0 after SIGTERM");
  } catch (error) {
    failed ||= 1;
    console.log(`not ok - the gateway ends with status 0 after SIGTERM: ${error.message}`);
  }
}
process.exit(failed);
