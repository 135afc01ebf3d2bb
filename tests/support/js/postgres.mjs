// A test's own PostgreSQL: the programs of Debian's package, a temporary folder, fsync on.
//
//   const postgres = await startPostgres({ t });
//   postgres.url                       postgresql://runcast@127.0.0.1:PORT/runcast
//   await postgres.stop("immediate"); await postgres.start();
//
// initdb runs once per process, or once for all programs of tests/run.sh, and each server gets a copy of its folder. The role `runcast` owns the database `runcast`
// and has no other rights; postgres.query() executes statements as the superuser. As root, it runs as another user, since
// PostgreSQL refuses root. Ends with the process.
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";

import { killAtExit, freePort, sleep, temporaryFolder, until } from "./gateway.mjs";

const packaged = "/usr/lib/postgresql";

/** The folder of the newest server's programs. */
function programs() {
  const versions = fs.existsSync(packaged) ? fs.readdirSync(packaged) : [];
  const found = versions.map(Number).sort((a, b) => b - a).map((version) => path.join(packaged, `${version}`, "bin"))
    .find((folder) => fs.existsSync(path.join(folder, "postgres")));
  if (!found) throw new Error(`no PostgreSQL in ${packaged}: install Debian's package postgresql`);
  return found;
}

/** The user that the server runs as: { name, uid, gid }; undefined for our own user. */
function otherUser() {
  if (process.getuid() !== 0) return undefined;
  const users = fs.readFileSync("/etc/passwd", "utf8").split("\n").map((line) => line.split(":"));
  const [name, , uid, gid] = users.find(([name]) => name === "postgres") ?? users.find(([name]) => name === "nobody");
  return { name, uid: Number(uid), gid: Number(gid) };
}

const user = otherUser();

/** [command, arguments] that execute a program as that user. It exits with this process, even if this process is
 * killed. */
export const asUser = (program, args) => ["setpriv", [
  ...user ? [`--reuid=${user.uid}`, `--regid=${user.gid}`, "--clear-groups"] : [],
  "--pdeathsig=QUIT", program, ...args]];

const captured = { encoding: "utf8", stdio: ["pipe", "pipe", "pipe"], cwd: "/", maxBuffer: 256 << 20 };

/** Executes a program that works on a server's files, as their user. */
function run(program, args, options = {}) {
  const [command, all] = asUser(path.join(programs(), program), args);
  return execFileSync(command, all, { ...captured, ...options });
}

/** Executes a client of a server. */
const runClient = (program, args) => execFileSync(path.join(programs(), program), args, captured);

export function ownFolder() {
  const folder = temporaryFolder();
  if (user) fs.chownSync(folder, user.uid, user.gid);
  return folder;
}

let template;

/** Copies the folder to a name that other processes look for, unless one of them was first. */
function share(data, name) {
  const own = `${name}.${process.pid}`;
  execFileSync("cp", ["-a", data, own]);
  try { fs.renameSync(own, name); } catch { fs.rmSync(own, { recursive: true }); }
}

/** The folder that each server's data are copied from. POSTGRES_TEMPLATE names one that processes share. */
function templateData() {
  if (template) return template;
  const shared = process.env.POSTGRES_TEMPLATE;
  if (shared && fs.existsSync(shared)) return template = shared;
  const data = path.join(ownFolder(), "template");
  run("initdb", ["--pgdata", data, "--username=postgres", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"]);
  run("postgres", ["--single", "-D", data, "postgres"],
    { input: "CREATE ROLE runcast LOGIN PASSWORD 'runcast';\nCREATE DATABASE runcast OWNER runcast;\n" });
  if (shared) share(data, shared);
  return template = data;
}

/** Returns true if we may mount a file system in a separate namespace. */
export function mayMount() {
  try { return !execFileSync("unshare", ["-m", "mount", "-t", "tmpfs", "none", "/mnt"], { stdio: "ignore" }); } catch { return false; }
}

class Postgres {
  constructor({ port, settings = {}, host = "127.0.0.1", diskSize, certificate }) {
    this.folder = ownFolder();
    this.data = path.join(this.folder, "data");
    if (certificate) {
      this.#placeCertificate(certificate);
      settings = { ssl: "on", ssl_cert_file: `${this.folder}/certificate`, ssl_key_file: `${this.folder}/key`, ...settings };
    }
    Object.assign(this, { port, settings, host, diskSize, output: "" });
    this.url = `postgresql://runcast@${host}:${port}/runcast`;
  }

  /** Starts the server and waits until it takes connections. */
  async start() {
    const settings = { port: this.port, listen_addresses: this.host, unix_socket_directories: this.folder,
      fsync: "on", max_connections: 100, shared_buffers: "32MB", max_wal_size: "256MB", ...this.settings };
    const args = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    for (const end = Date.now() + 60_000; ; await sleep(50)) {
      const before = this.output.length;
      this.#spawn(args);
      // Each check starts two processes, so it checks only when the log has the line, or four times a second.
      const isDue = (turn) => turn % 12 === 11 || this.output.indexOf("ready to accept", before) >= 0;
      for (let turn = 0; !this.end && !(isDue(turn) && this.#accepts()); turn++) await sleep(20);
      if (!this.end) return this;
      // A killed server may still have processes, which exit by themselves.
      if (Date.now() > end) throw new Error(`PostgreSQL does not start:\n${this.output.slice(-3000)}`);
    }
  }

  #spawn(args) {
    const words = asUser(path.join(programs(), "postgres"), ["-D", this.data, ...args]).flat();
    const [command, ...all] = this.diskSize ? [...this.#onPrivateDisk(), ...words] : words;
    const child = spawn(command, all, { stdio: ["ignore", "pipe", "pipe"], cwd: "/" });
    killAtExit(child, "SIGQUIT"); // with pdeathsig alone it would end after its folder was removed
    this.child = child;
    this.end = undefined;
    for (const handle of [child, child.stdout, child.stderr]) handle.unref();
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => { this.output += text; });
    this.exited = new Promise((resolve) => {
      child.on("error", (error) => { this.output += error; resolve(); }).on("exit", resolve);
    }).then(() => { this.end = true; });
  }

  /** The command that mounts a small disk, which only this server sees, for as long as it runs. */
  #onPrivateDisk() {
    const { uid, gid } = user, folder = path.join(this.folder, "small");
    fs.mkdirSync(folder);
    return ["unshare", "-m", "sh", "-c", `mount -t tmpfs -o size=${this.diskSize},uid=${uid},gid=${gid},mode=700 none "$0" && exec "$@"`, folder];
  }

  /** The path by which this process reaches a file on the small disk. */
  onSmallDisk(name) { return path.join(`/proc/${this.child.pid}/root`, this.folder, "small", name); }

  #accepts() {
    try { return runClient("pg_isready", ["-q", "-h", this.host, "-p", `${this.port}`]) === ""; } catch { return false; }
  }

  /** mode: fast ends sessions, immediate is like a loss of power, smart waits for all sessions. */
  async stop(mode = "fast") {
    if (this.end) return;
    if (this.frozen) this.resume(); // a stopped process does not exit
    this.child.kill({ smart: "SIGTERM", fast: "SIGINT", immediate: "SIGQUIT" }[mode]);
    await this.#ended();
  }

  /** Sends SIGKILL; the server's other processes notice it and end. */
  async kill() {
    this.child.kill("SIGKILL");
    await this.#ended();
  }

  /** Waits for the child, which is referenced meanwhile so that this process does not exit first. */
  async #ended() {
    this.child.ref();
    await this.exited;
  }

  async restart({ mode = "fast", downMs = 0 } = {}) {
    await this.stop(mode);
    await sleep(downMs);
    return this.start();
  }

  /** Stops all processes, without closing any connection, until resume(). */
  freeze() {
    this.frozen = true;
    this.#signal("SIGSTOP");
  }

  resume() {
    this.#signal("SIGCONT");
    this.frozen = false;
  }

  #signal(signal) {
    for (const pid of this.#processes()) try { process.kill(pid, signal); } catch { /* it has exited meanwhile */ }
  }

  #processes() {
    const children = execFileSync("ps", ["-o", "pid=", "--ppid", `${this.child.pid}`], { encoding: "utf8" });
    return [this.child.pid, ...children.split(/\s+/).filter(Boolean).map(Number)];
  }

  /** Executes a statement as the superuser; returns a line for each row, with `|` between columns. */
  query(sql, { database = "runcast" } = {}) {
    return runClient("psql", ["-XAtq", "-v", "ON_ERROR_STOP=1", "-h", this.host, "-p", `${this.port}`, "-U", "postgres",
      "-d", database, "-c", sql]).trimEnd();
  }

  /** Ends the backends whose newest statement contains a text: by pg_terminate_backend, or by SIGKILL, after which the
   *  server ends all other backends and recovers. Returns how many it ended. */
  endBackends({ holding = "", kill = false } = {}) {
    const rows = this.query(`SELECT pid FROM pg_stat_activity WHERE usename = 'runcast' AND position('${holding}' IN query) > 0`);
    const pids = rows.split("\n").filter(Boolean).map(Number);
    for (const pid of pids) {
      if (!kill) this.query(`SELECT pg_terminate_backend(${pid})`);
      else try { process.kill(pid, "SIGKILL"); } catch { /* it ended with another */ }
    }
    return pids.length;
  }

  /** Makes all sessions, also open ones, read-only or writable again. */
  readOnly(on = true) { this.set("default_transaction_read_only", on ? "on" : "off"); }

  /** { certificate, key }: for connections from now on. */
  useCertificate({ certificate, key }) {
    this.#placeCertificate({ certificate, key });
    this.query("SELECT pg_reload_conf()");
  }

  /** The server refuses a key that others could read. */
  #placeCertificate(files) {
    for (const [name, from] of Object.entries(files)) {
      const file = path.join(this.folder, name);
      fs.writeFileSync(file, fs.readFileSync(from), { mode: 0o600 });
      if (user) fs.chownSync(file, user.uid, user.gid);
    }
  }

  set(name, value) {
    this.query(`ALTER SYSTEM SET ${name} = '${value}'`);
    this.query("SELECT pg_reload_conf()");
  }

  /** Starts a second server that gets every commit before it is acknowledged here. */
  async standby({ t } = {}) {
    const standby = new Postgres({ port: await freePort(), settings: this.settings, host: this.host });
    t?.after(() => standby.stop("immediate"));
    run("pg_basebackup", ["-D", standby.data, "-R", "-X", "stream", "-c", "fast", "-d",
      `host=${this.host} port=${this.port} user=postgres application_name=standby`]);
    await standby.start();
    this.set("synchronous_standby_names", "standby");
    await until(() => this.query("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") === "1", { what: "the standby" });
    return standby;
  }

  /** Starts again as a server that was promoted, with a timeline of its own. */
  async restartPromoted() {
    const signal = path.join(this.data, "recovery.signal");
    for (const [name, value] of [["restore_command", "false"], ["hot_standby", "off"]]) this.set(name, value);
    await this.stop();
    fs.writeFileSync(signal, "");
    if (user) fs.chownSync(signal, user.uid, user.gid);
    await this.start();
  }

  /** Promotes this standby, and removes the setting that waits for a standby of its own. */
  promote() {
    this.query("ALTER SYSTEM RESET synchronous_standby_names");
    this.query("SELECT pg_promote()");
  }
}

/** { t; settings: { name: value } of postgresql.conf; hba: lines for the beginning of pg_hba.conf; diskSize: "24m", the
 *  size of a disk for the database without its log, which exists as long as the server runs and requires mayMount();
 *  certificate: { certificate, key } of the server } */
export async function startPostgres({ t, settings, hba = "", host, diskSize, certificate } = {}) {
  const postgres = new Postgres({ port: await freePort(), settings, host, diskSize, certificate });
  t?.after(() => postgres.stop("immediate"));
  execFileSync("cp", ["-a", templateData(), postgres.data]);
  const rules = path.join(postgres.data, "pg_hba.conf");
  if (hba) fs.writeFileSync(rules, `${hba}\n${fs.readFileSync(rules, "utf8")}`);
  await postgres.start();
  if (diskSize) {
    postgres.query(`CREATE TABLESPACE small LOCATION '${postgres.folder}/small'`);
    postgres.query("ALTER DATABASE runcast SET TABLESPACE small", { database: "postgres" });
  }
  return postgres;
}

/** The address of a server and its standby: connections go to the one that takes writes. */
export const urlOfBoth = (postgres, standby) => `postgresql://runcast@127.0.0.1:${postgres.port},127.0.0.1:${standby.port}/runcast?target_session_attrs=read-write`;

/** More arguments of startGateway for a gateway on this database; url: through a relay. */
export const onDatabase = (postgres, name, { url = postgres.url, options = [], env = {}, ...more } = {}) => ({
  ...more,
  options: ["--database", url, "--gateway-name", name, ...options],
  env: { RUNCAST_ENCRYPTION_KEY: "5e".repeat(32), ...env },
});
