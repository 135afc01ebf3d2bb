// A real supervise role for a gateway, with a version whose controller is fake_controller.mjs.
//
//   const supervisor = await Supervisor.start(gateway, { t, worker, token });   // preload: "shim_x", as of a gateway
//   const id = await worker.trigger("task", {}, { do: "finish" });
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

import { temporaryFolder, until } from "./gateway.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const built = (folder, name) => path.join(here, "../../..", folder, name);
const binary = (release) => release ? process.env.GATEWAY_RELEASE_BIN ?? built("build-gcc", "runcast") : process.env.GATEWAY_BIN ?? built("build-asan", "runcast");
export const isRoot = process.getuid() === 0;
export const runnerUid = isRoot ? 54321 : process.getuid();

/** The path of a program that executes fakes: this Node, or a script that reports version 20 if this Node is older, since
 *  deployed versions need Node 20 and the fakes need only Node 18. The script is in the folder. */
export function fakeNode(folder = temporaryFolder()) {
  if (Number(process.versions.node.split(".")[0]) >= 20) return process.execPath;
  const program = path.join(folder, "node");
  fs.chmodSync(folder, 0o711);
  fs.writeFileSync(program, `#!/bin/sh\nif [ "$1" = --version ]; then echo v20.0.0; else unset PWD OLDPWD; exec ${process.execPath} "$@"; fi\n`, { mode: 0o755 });
  return program;
}
/** The options of a gateway or supervise role for fakeNode(folder). */
export const nodeOptions = (folder) => Number(process.versions.node.split(".")[0]) < 20 ? ["--node", `22=${fakeNode(folder)}`] : [];

/** A folder for versions, which other users can enter. */
export function versionsFolder() {
  const folder = temporaryFolder();
  fs.chmodSync(folder, 0o711);
  return path.join(folder, "versions");
}

/** Creates a version in the folder, as a builder would; returns the version's folder. */
export function prepareVersion(folder, id, { about = {} } = {}) {
  const target = path.join(folder, "versions", id);
  fs.mkdirSync(path.join(target, "events"), { recursive: true });
  fs.chmodSync(folder, 0o711);
  fs.chmodSync(path.join(folder, "versions"), 0o711);
  fs.chmodSync(target, 0o755);
  fs.chmodSync(path.join(target, "events"), 0o777);
  for (const name of ["fake_controller.mjs", "http.mjs", "websocket.mjs"]) {
    fs.copyFileSync(path.join(here, name), path.join(target, name));
    fs.chmodSync(path.join(target, name), 0o644);
  }
  fs.writeFileSync(path.join(target, "build.json"), JSON.stringify({ runControllerEntryPoint: path.join(target, "fake_controller.mjs"), contentHash: "hash", runtime: "node-22" }));
  fs.writeFileSync(path.join(target, "runcast.json"), JSON.stringify({ id, architecture: process.arch, libc: "glibc", ...about }));
  return target;
}

export class Supervisor {
  static async start(gateway, { t, token, folder = versionsFolder(), options = [], env = {}, preload, wait = true }) {
    const shim = preload && { LD_PRELOAD: path.resolve(process.env.SHIM_DIR ?? built("build-gcc", ""), `${preload}.so`) };
    const supervisor = Object.assign(new Supervisor(), { gateway, token, folder, options, env: { ...shim, ...env }, preload, log: "" });
    t?.after(() => supervisor.kill());
    return supervisor.begin(wait);
  }

  async begin(wait = true) {
    const user = isRoot ? ["--runner-user", String(runnerUid)] : ["--execute-unsafe"];
    const clean = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("RUNCAST_")));
    const from = this.log.length;
    this.child = spawn(binary(this.preload), ["supervise", "--url", this.gateway.url, "--versions", this.folder, "--log-format", "logfmt", "--log-level", "debug", ...user, ...nodeOptions(), ...this.options],
      { env: { ...clean, ASAN_OPTIONS: "detect_leaks=1", RUNCAST_WORKER_TOKEN: this.token, ...this.env }, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.child.stdout, this.child.stderr]) stream.setEncoding("utf8").on("data", (text) => { this.log += text; });
    this.end = undefined;
    this.exited = new Promise((resolve) => this.child.on("close", (code, signal) => resolve(this.end = { code, signal })));
    if (wait) await until(() => this.log.slice(from).includes("the gateway responds") || this.fail(), { what: "the supervise role" });
    return this;
  }

  fail() { if (this.end) throw new Error(`the supervise role ended: ${JSON.stringify(this.end)} ${this.log.slice(-3000)}`); }
  async kill() { this.child.kill("SIGKILL"); return this.exited; }
  async stop() { this.child.kill("SIGTERM"); return this.exited; }

  /** The events of all controllers of a version, ordered by time; only those named `wanted`, if given. */
  events(id, wanted) {
    const folder = path.join(this.folder, "versions", id, "events");
    return fs.readdirSync(folder).filter((name) => name.startsWith("runner-"))
      .flatMap((name) => fs.readFileSync(path.join(folder, name), "utf8").split("\n").filter(Boolean).map((line) => ({ runner: name, ...JSON.parse(line) })))
      .sort((a, b) => a.at - b.at).filter((one) => !wanted || one.event === wanted);
  }
}

/** The ids of processes whose working directory is in the folder. */
export function processesOf(folder) {
  return fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name)).filter((pid) => {
    try { return fs.readlinkSync(`/proc/${pid}/cwd`).startsWith(folder); } catch { return false; }
  }).map(Number);
}
