// The official CLI, unmodified, as a worker: `trigger.dev dev` in a project's folder.
//
//   const cli = await startCli({ t, gateway, folder });     // ready: its build is registered
//   await cli.stop(); cli.kill(); cli.output
//
// It has its own HOME and TMPDIR, and no network except the gateway: stub-net.mjs responds in place of the
// one other host, for which the CLI would wait.
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

import { keys, temporaryFolder, until } from "./gateway.mjs";

export const workerFolder = fileURLToPath(new URL("../../conformance/worker", import.meta.url));

const running = new Set();
process.on("exit", () => { for (const cli of running) cli.endGroup(); });

class Cli {
  constructor({ url, folder, env, logLevel }) {
    const scratch = temporaryFolder();
    const stub = pathToFileURL(path.join(workerFolder, "stub-net.mjs")).href;
    const program = path.join(workerFolder, "node_modules/trigger.dev/dist/esm/index.js");
    const flags = ["--skip-update-check", "--skip-telemetry", "--skip-platform-notifications", "--log-level", logLevel];
    this.folder = folder;
    this.output = "";
    this.child = spawn(process.execPath, ["--import", stub, program, "dev", ...flags], {
      cwd: folder,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true, // its process group is killed with it, along with processes that it leaves behind
      env: {
        ...process.env, HOME: scratch, TMPDIR: scratch, STUB_ANSWER: "1", NO_COLOR: "1", FORCE_COLOR: "0",
        TRIGGER_API_URL: url, TRIGGER_ACCESS_TOKEN: keys.pat, TRIGGER_PROJECT_REF: keys.ref,
        TRIGGER_TELEMETRY_DISABLED: "1", ...env,
      },
    });
    for (const stream of [this.child.stdout, this.child.stderr])
      stream.setEncoding("utf8").on("data", (text) => { this.output += text; });
    running.add(this);
    this.exited = new Promise((resolve) => this.child.on("exit", (code, signal) => {
      this.end = { code, signal };
      this.endGroup();
      resolve(this.end);
    }));
  }

  endGroup() {
    running.delete(this);
    try { process.kill(-this.child.pid, "SIGKILL"); } catch { /* the group is empty */ }
  }

  /** Waits until its output contains these words; by default, until its build is registered. */
  async ready(words = "Local worker ready") {
    await until(() => this.end || this.output.includes(words), { timeoutMs: 100_000, everyMs: 50, what: "the CLI is ready" });
    if (this.end) throw new Error(`the CLI ended with ${JSON.stringify(this.end)}: ${this.output.slice(-3000)}`);
    return this;
  }

  /** Changes the project's code, and waits until its new build is registered. */
  async rebuild(change, words = "Local worker ready") {
    const builds = () => this.output.split(words).length, before = builds();
    change();
    await until(() => this.end || builds() > before, { timeoutMs: 100_000, everyMs: 50, what: "the CLI has built the change" });
  }

  /** Sends the signal; kills the CLI if it has not exited after 20 s. */
  async stop(signal = "SIGTERM") {
    if (!this.end) this.child.kill(signal);
    const late = setTimeout(() => this.child.kill("SIGKILL"), 20_000);
    await this.exited;
    clearTimeout(late);
    return this.end;
  }

  /** Kills the process that would report the CLI's death to the gateway. */
  killWatchdog() {
    const [, pid] = fs.readFileSync(path.join(this.folder, ".trigger/watchdog.pid"), "utf8").split(":");
    process.kill(Number(pid), "SIGKILL");
  }

  kill() { return this.stop("SIGKILL"); }
}

/** { t, gateway or url, folder, env, logLevel, words: the output that means ready }
 *
 * A CLI that starts empties .trigger of its folder, which would break the build of another one there. So without a folder, it gets a copy of the project cases. */
export async function startCli({ t, gateway, url = gateway.url, folder = copyOf("cases"), env = {}, logLevel = "debug", words }) {
  const cli = new Cli({ url, folder, env, logLevel });
  t?.after(() => cli.stop());
  return cli.ready(words);
}

/** A temporary copy of a project in the folder of the worker's tests. */
export function copyOf(name) {
  const folder = fs.realpathSync(temporaryFolder());
  fs.cpSync(path.join(workerFolder, name), folder, { recursive: true, filter: (file) => path.basename(file) !== ".trigger" });
  fs.copyFileSync(path.join(workerFolder, "package-lock.json"), path.join(folder, "package-lock.json"));
  fs.symlinkSync(path.join(workerFolder, "node_modules"), path.join(folder, "node_modules"));
  return folder;
}

/** A project with this code: { folder, write }. */
export function project(code) {
  const folder = copyOf("cases"), tasks = path.join(folder, "src/trigger");
  fs.rmSync(tasks, { recursive: true });
  fs.mkdirSync(tasks);
  const write = (text) => fs.writeFileSync(path.join(tasks, "tasks.ts"), text);
  write(code);
  return { folder, write };
}
