// Runs the gateway like a service of systemd, on sockets that stay open while it restarts. service_manager.py acts as
// systemd.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

import { keys, until } from "./gateway.mjs";

const program = process.env.GATEWAY_BIN, manager = fileURLToPath(new URL("../python/service_manager.py", import.meta.url));
const clean = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("RUNCAST_")));

/** sockets: { NAME: port or path }. Notifications of the service are in `events`, its log is in `stderr`. */
export class Service {
  events = [];
  stderr = "";

  constructor(t, sockets, words, env = {}) {
    this.child = spawn("python3", ["-B", manager, ...(Array.isArray(sockets) ? sockets : Object.entries(sockets)).map(([name, address]) => `${name}=${address}`), "--", program, ...words],
      { env: { ...clean, RUNCAST_DEV_SECRET_KEY: keys.dev, RUNCAST_STAGING_SECRET_KEY: keys.staging, RUNCAST_PROD_SECRET_KEY: keys.prod, RUNCAST_PREVIEW_SECRET_KEY: keys.preview, RUNCAST_PROJECT_REF: keys.ref, ...env } });
    let rest = "";
    this.child.stdout.setEncoding("utf8").on("data", (text) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop();
      for (const line of lines) this.events.push(JSON.parse(line));
    });
    this.child.stderr.setEncoding("utf8").on("data", (text) => { this.stderr += text; });
    const gone = new Promise((resolve) => this.child.on("close", resolve));
    t.after(async () => { this.child.stdin.end("end\n"); await gone; });
  }

  send(order) { this.child.stdin.write(`${order}\n`); }
  count(message) { return this.events.filter((event) => event.notified === message).length; }
  ends() { return this.events.filter(({ ended }) => ended !== undefined).map(({ ended }) => ended); }
  async start() {
    const before = this.count("READY=1");
    this.send("start");
    await until(() => this.count("READY=1") > before, { timeoutMs: 60_000, what: "READY=1" });
    return this;
  }
  async stop(order = "stop") {
    const before = this.ends().length;
    this.send(order);
    await until(() => this.ends().length > before, { timeoutMs: 60_000, what: "the end" });
    return this.ends().at(-1);
  }
}
