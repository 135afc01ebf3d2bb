// PgBouncer in front of a test's own PostgreSQL, in transaction mode: a statement uses any free connection, so clients
// cannot rely on anything that belongs to a session.
//
//   const pooler = await startPgBouncer(postgres, { t, connections: 3 });
//   pooler.url                       for the gateway
//   await pooler.restart();
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";

import { freePort, untilAccepts } from "./gateway.mjs";
import { asUser, ownFolder } from "./postgres.mjs";

class PgBouncer {
  constructor(postgres, port, connections) {
    this.folder = ownFolder();
    this.port = port;
    this.url = `postgresql://runcast@127.0.0.1:${port}/runcast`;
    // server_login_retry: how long it waits before it retries a server that was unreachable.
    fs.writeFileSync(path.join(this.folder, "pgbouncer.ini"), `[databases]
runcast = host=${postgres.host} port=${postgres.port} dbname=runcast user=runcast
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${connections}
server_login_retry = 1
`);
  }

  async start() {
    const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` };
    const [command, args] = asUser("pgbouncer", [path.join(this.folder, "pgbouncer.ini")]);
    this.output = "";
    const child = this.child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], cwd: "/", env });
    for (const handle of [child, child.stdout, child.stderr]) handle.unref();
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => { this.output += text; });
    this.exited = new Promise((resolve) => { child.on("error", (error) => { this.output += error; resolve(); }).on("exit", resolve); });
    await untilAccepts(child, this.port, { what: "PgBouncer", output: () => this.output });
    return this;
  }

  async stop() {
    this.child.ref();
    this.child.kill("SIGKILL");
    await this.exited;
  }

  async restart() {
    await this.stop();
    return this.start();
  }
}

/** { t, connections: how many it opens to the server } */
export async function startPgBouncer(postgres, { t, connections = 3 } = {}) {
  const pooler = new PgBouncer(postgres, await freePort(), connections);
  t?.after(() => pooler.stop());
  return pooler.start();
}
