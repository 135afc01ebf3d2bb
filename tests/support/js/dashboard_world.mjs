// A world for tests of the dashboard: a gateway that executes deployed versions, and the official CLI as a worker of dev.
// deploy() deploys the same project to prod.
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

import { startCli, workerFolder } from "./cli.mjs";
import { keys, startGateway, temporaryFolder, until } from "./gateway.mjs";
import { isRoot, runnerUid } from "./supervisor.mjs";

export const shop = path.join(workerFolder, "shop");
const program = path.join(workerFolder, "node_modules/trigger.dev/dist/esm/index.js"), stub = path.join(workerFolder, "stub-net.mjs");

/** Runs the CLI to its end; returns { code, out }. Without home, it gets its own HOME. */
export function runCli(args, { folder = shop, home = temporaryFolder(), env = {}, onOutput } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ["--import", stub, program, ...args, "--skip-telemetry"], {
      cwd: folder, stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: process.env.PATH, HOME: home, TMPDIR: home, STUB_ANSWER: "1", NO_COLOR: "1", TRIGGER_TELEMETRY_DISABLED: "1", ...env },
    });
    const timer = setTimeout(() => child.kill("SIGKILL"), 120_000);
    let out = "";
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => { out += text; onOutput?.(out); });
    child.on("error", reject).on("close", (code) => { clearTimeout(timer); resolve({ code, out }); });
  });
}

export const deploy = (gateway, folder) => runCli(["deploy", "--skip-update-check"], { folder, env: { CI: "1", TRIGGER_API_URL: gateway.url, TRIGGER_ACCESS_TOKEN: keys.pat, TRIGGER_PROJECT_REF: keys.ref } });

/** Starts a gateway that executes deployed versions. */
export async function startExecutingGateway(settings = {}) {
  const top = temporaryFolder();
  fs.chmodSync(top, 0o711); // versions are kept in here, next to the data
  const gateway = await startGateway({ data: path.join(top, "data"), options: ["--execute", ...isRoot ? ["--runner-user", String(runnerUid)] : ["--execute-unsafe"], "--drain-timeout", "3s"], ...settings });
  await until(async () => (await gateway.get(`/api/v1/projects/${keys.ref}/prod/deploy-settings`, { key: keys.prod })).status === 200, { everyMs: 100, what: "a builder is connected" });
  return gateway;
}

export async function startWorld() {
  const gateway = await startExecutingGateway();
  const cli = await startCli({ gateway, folder: shop });
  const world = {
    gateway, cli,
    async trigger(task, payload, { key = keys.dev, ...options } = {}) {
      const { status, json, text } = await gateway.post(`/api/v1/tasks/${task}/trigger`, { payload: JSON.stringify(payload), options: { payloadType: "application/json", ...options } }, { key });
      if (status !== 200) throw new Error(text);
      return json.id;
    },
    run: async (id, key = keys.dev) => (await gateway.get(`/api/v3/runs/${id}`, { key, headers: { "x-trigger-api-version": "2025-07-16" } })).json,
    reaches: (id, status, key = keys.dev) => until(async () => [status].flat().includes((await world.run(id, key)).status), { timeoutMs: 60_000, everyMs: 50, what: `${id} is ${status}` }),
    async stop() { await cli.stop(); await gateway.stop(); },
  };
  return world;
}
