// Starts a gateway for each test: fixed keys, a free port, a data directory that is removed.
//
//   const gateway = await startGateway({ t, options: ["--retain", "1h"] });
//   const { id } = (await gateway.post("/api/v1/tasks/hello/trigger", { payload: "1" })).json;
//   await gateway.kill(); await gateway.restart(); await gateway.stop();
//
// t is the test's context: the gateway stops with the test, even if the test fails.
// Node 18 or later, no packages. The program is GATEWAY_BIN (with sanitizers), or GATEWAY_RELEASE_BIN for
// { release: true } and for a preloaded shim; shims are in SHIM_DIR. With GATEWAY_DATABASE (with_postgres.mjs) a gateway
// without the option --database gets a database in that server instead of SQLite.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { randomBytes, randomInt } from "node:crypto";
import fs from "node:fs";
import http from "node:http";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

import { HttpClient, RawConnection } from "./http.mjs";

const top = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../..");
const built = (folder, name) => path.join(top, folder, name);

export const keys = {
  ref: "proj_abcdefghijklmnopqrst",
  dev: "tr_dev_aaaaaaaaaaaaaaaaaaaaaaaa",
  staging: "tr_stg_cccccccccccccccccccccccc",
  prod: "tr_prod_bbbbbbbbbbbbbbbbbbbbbbbb",
  preview: "tr_preview_dddddddddddddddddddddddd",
  pat: "tr_pat_eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee",
};
const keySettings = {
  RUNCAST_PROJECT_REF: keys.ref,
  RUNCAST_DEV_SECRET_KEY: keys.dev,
  RUNCAST_STAGING_SECRET_KEY: keys.staging,
  RUNCAST_PROD_SECRET_KEY: keys.prod,
  RUNCAST_PREVIEW_SECRET_KEY: keys.preview,
  RUNCAST_PERSONAL_ACCESS_TOKEN: keys.pat,
};

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits until check() returns a truthy value, and returns it. Without everyMs it checks every 10 ms at first; later each
 *  pause is a tenth of the time that it has waited, at most 50 ms. */
export async function until(check, { timeoutMs = 60_000, everyMs, what = "condition" } = {}) {
  for (const began = Date.now(); ;) {
    const result = await check(), waited = Date.now() - began;
    if (result) return result;
    if (waited > timeoutMs) throw new Error(`${what}: not within ${timeoutMs} ms`);
    await sleep(everyMs ?? Math.min(Math.max(waited / 10, 10), 50));
  }
}

/** Returns a server that listens at the address until this process ends; undefined if another server does. */
function listens(address) {
  const server = net.createServer().unref();
  return new Promise((resolve) => { server.once("error", () => resolve(undefined)).listen(address, () => resolve(server)); });
}

const RESERVATIONS = 11_999; // the port at which a process that has reserved port N of 127.0.0.1 listens at address N of 127.88.0.0/16

/** A free port below those that the kernel gives to outgoing connections, so that a gateway can be restarted on it. No other
 *  process that calls this gets the same one while this process runs. */
export async function freePort() {
  for (;;) {
    const port = randomInt(12_000, 32_768);
    const reserved = await listens({ port: RESERVATIONS, host: `127.88.${port >> 8}.${port & 255}` });
    const server = reserved && await listens({ port, host: "127.0.0.1" });
    if (!server) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}

/** Waits until the child process accepts connections at its port. output() returns what it has printed. */
export async function untilAccepts(child, port, { what, output }) {
  const accepts = () => new Promise((resolve) => {
    const socket = net.connect(port, "127.0.0.1", () => { socket.destroy(); resolve(true); }).on("error", () => resolve(false));
  });
  while (!(await accepts())) {
    if (child.exitCode !== null || child.signalCode || !child.pid) throw new Error(`${what} does not start:\n${output()}`);
    await sleep(20);
  }
}

// When this process exits, its gateways are killed and its data directories removed.
const children = new Map(), folders = new Set();
process.on("exit", () => {
  for (const [child, signal] of children) child.kill(signal);
  for (const folder of folders) remove(folder);
});
for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => process.exit(1));

/** Sends the signal to the child when this process exits. */
export function killAtExit(child, signal) {
  children.set(child, signal);
  child.on("exit", () => children.delete(child));
}

/** Removes a folder in which a process that was just killed may still write. */
function remove(folder) {
  for (let tries = 100; ; tries--) {
    try { return fs.rmSync(folder, { recursive: true, force: true }); } catch (error) { if (!tries) throw error; }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100); // blocks for 100 ms: this also runs while the process exits
  }
}

export function temporaryFolder() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "runcast-test-"));
  folders.add(folder);
  return folder;
}

/** Returns true if GATEWAY_DATABASE applies to the gateway. It does not apply with a shim: shims stand between SQLite and
 *  the disk, or change the process's clock, and a gateway whose clock differs from the database's does not lead. */
const usesTestServer = ({ options, preload }) => process.env.GATEWAY_DATABASE && !preload && !options.includes("--database");

/** True if gateways use a SQLite file, which some tests require. */
export const isSqlite = !process.env.GATEWAY_DATABASE;

/** The database that belongs to a data directory: { options, env } of a gateway there. */
const databases = new Map();
function databaseOf(data) {
  const server = process.env.GATEWAY_DATABASE;
  if (!databases.has(data)) {
    const name = `runcast_${randomBytes(8).toString("hex")}`;
    execFileSync("psql", ["-Xq", "-d", `${server}/postgres`, "-c", `CREATE DATABASE ${name} OWNER runcast`], { stdio: "ignore" });
    databases.set(data, name);
  }
  return { options: ["--database", `${server.replace("postgres@", "runcast@")}/${databases.get(data)}`],
    env: { RUNCAST_ENCRYPTION_KEY: "5e".repeat(32) } };
}

/** Executes a statement in the database of a data directory, SQLite or PostgreSQL; returns its output. In the
 *  statement, $text(c) is a column of bytes as text, and $bytes(c) its length. $name(hex) and $blob(hex) are a text and
 *  bytes to be written. */
function onStore(data, sql, { rows }) {
  const database = databases.get(data);
  const translate = (words) => Object.entries(words).reduce((text, [word, as]) => text.replaceAll(new RegExp(`\\$${word}\\(([^)]*)\\)`, "g"), as), sql);
  if (!database) {
    const text = translate({ text: "CAST($1 AS TEXT)", bytes: "ifnull(length(CAST($1 AS BLOB)), 0)", name: "CAST(X'$1' AS TEXT)", blob: "X'$1'" });
    return execFileSync("sqlite3", ["-json", path.join(data, "runcast.db")], { input: text, encoding: "utf8" });
  }
  const text = translate({ text: "convert_from($1, 'UTF8')", bytes: "coalesce(octet_length($1), 0)", name: "'\\x$1'::bytea", blob: "'\\x$1'::bytea" });
  return execFileSync("psql", ["-XAtq", "-v", "ON_ERROR_STOP=1", "-d", `${process.env.GATEWAY_DATABASE}/${database}`],
    { input: `SET search_path = runcast; ${rows ? `SELECT coalesce(json_agg(x), '[]') FROM (${text}) x` : text};`, encoding: "utf8", maxBuffer: 1 << 28 });
}

/** Returns rows as objects with the names of the columns. */
export const queryStore = (data, sql) => JSON.parse(onStore(data, sql, { rows: true }) || "[]");
/** Executes a writing statement; the gateway may run or not. */
export const changeStore = (data, sql) => { onStore(data, sql, { rows: false }); };

/** The names of a table's columns that hold texts of clients. */
export const textColumns = (data, table) => queryStore(data, databases.has(data)
  ? `SELECT column_name AS name FROM information_schema.columns WHERE table_schema = 'runcast' AND table_name = '${table}' AND data_type = 'bytea'`
  : `SELECT name FROM pragma_table_info('${table}') WHERE type = 'TEXT'`).map(({ name }) => name);

/** The key that seals secrets in the data directory's database. */
export const encryptionKey = (data) => databases.has(data) ? databaseOf(data).env.RUNCAST_ENCRYPTION_KEY
  : fs.readFileSync(path.join(data, "encryption.key"), "utf8").trim();

/** The names of gateways that are of another version (tests/versions.sh). */
const others = process.env.GATEWAY_OTHERS?.split(",") ?? [];
const hasOther = (commit) => spawnSync("git", ["-C", top, "merge-base", "--is-ancestor", commit, process.env.GATEWAY_OTHER_COMMIT]).status === 0;

/** Options of a test of what gateways do since a commit: it is skipped if an earlier one takes part. */
export const since = (commit) => others.length && !hasOther(commit) ? { skip: `a gateway is earlier than ${commit}` } : {};

const isOfOtherVersion = (options) => others.includes(options[options.indexOf("--gateway-name") + 1]);

class Gateway {
  constructor({ options = [], env = {}, data, port, release = false, preload, binary, withKeys = true }) {
    Object.assign(this, { options, env, data, port, preload, withKeys, keys });
    this.url = `http://127.0.0.1:${port}`;
    this.http = new HttpClient(this.url, keys.dev);
    this.binary = binary ? binary : isOfOtherVersion(options) ? process.env.GATEWAY_OTHER_BIN : release || preload
      ? process.env.GATEWAY_RELEASE_BIN ?? built("build-gcc", "runcast")
      : process.env.GATEWAY_BIN ?? built("build-asan", "runcast");
    this.stdout = ""; // of all starts
    this.stderr = "";
  }

  /** The address of its PostgreSQL; undefined if it uses SQLite. */
  get database() {
    const { options } = usesTestServer(this) ? databaseOf(this.data) : this;
    const at = options.indexOf("--database");
    return at < 0 ? undefined : options[at + 1];
  }

  /** Starts the process and, unless ready is false, waits for GET /readyz 200. */
  async start({ ready = true } = {}) {
    const env = { ASAN_OPTIONS: "detect_leaks=1", UBSAN_OPTIONS: "print_stacktrace=1" };
    for (const [name, value] of Object.entries(process.env))
      if (!name.startsWith("RUNCAST_")) env[name] = value;
    if (this.withKeys) Object.assign(env, keySettings);
    else env.RUNCAST_PRINT_KEYS = "true"; // stdout is a pipe
    if (this.preload) env.LD_PRELOAD = path.resolve(
      process.env.SHIM_DIR ?? built("build-gcc", ""), `${this.preload}.so`);
    const server = usesTestServer(this) ? databaseOf(this.data) : { options: [], env: {} };
    Object.assign(env, server.env, this.env);

    const listens = this.options.some((option) => /^--listen(=|$)/.test(option));
    const settings = [...listens ? [] : ["--listen", `127.0.0.1:${this.port}`], "--data", this.data, ...server.options];
    const child = spawn(this.binary, [...settings, ...this.options],
      { env, stdio: ["ignore", "pipe", "pipe"] });
    killAtExit(child, "SIGKILL");
    for (const handle of [child, child.stdout, child.stderr]) handle?.unref();
    this.child = child;
    child.stdout.setEncoding("utf8").on("data", (text) => { this.stdout += text; });
    child.stderr.setEncoding("utf8").on("data", (text) => { this.stderr += text; });
    this.exited = new Promise((resolve) => {
      child.on("error", (error) => resolve({ error }));
      child.on("close", (code, signal) => resolve({ code, signal }));
    }).then((end) => { this.end = end; return end; });
    this.end = undefined;
    if (ready) await until(() => this.isReady(), { timeoutMs: 60_000, what: "readyz" });
    return this;
  }

  get pid() { return this.child.pid; }

  async isReady() {
    if (this.end)
      throw new Error(`the gateway ended: ${JSON.stringify(this.end)} ${this.end.error ?? ""}\n${this.stderr.slice(-3000)}`);
    return (await this.http.request("GET", "/readyz").catch(() => ({}))).status === 200;
  }

  /** Returns true if it leads, and has everything in memory. A gateway that follows is ready, too. */
  async leads() { return await this.metric("runcast_leads").catch(() => 0) === 1 && this.isReady(); }

  /** Sends SIGTERM. Throws unless the process exits with status 0; after a sanitizer report it does not. */
  async stop({ timeoutMs = 60_000 } = {}) {
    this.http.close();
    this.child.kill("SIGTERM");
    const end = await this.ended(timeoutMs);
    if (end.code !== 0)
      throw new Error(`after SIGTERM the gateway ended with ${JSON.stringify(end)}\n${this.stderr.slice(-3000)}`);
    return end;
  }

  /** Sends SIGKILL. */
  async kill() {
    this.http.close();
    this.child.kill("SIGKILL");
    return this.ended();
  }

  /** Stops, and starts the version of this tree. */
  async upgrade() {
    await this.stop();
    if (isOfOtherVersion(this.options)) this.binary = process.env.GATEWAY_BIN;
    return this.start({ ready: false });
  }

  /** Restarts on the same data and port, with other options if some are given. */
  async restart({ options = this.options, env = this.env, ready = true } = {}) {
    Object.assign(this, { options, env });
    return this.start({ ready });
  }

  /** Waits until the process has exited; returns { code, signal }. At the time limit, kills it and throws. */
  async ended(timeoutMs = 60_000) {
    let timer;
    const late = new Promise((resolve) => { timer = setTimeout(resolve, timeoutMs); });
    await Promise.race([this.exited, late]);
    clearTimeout(timer);
    if (!this.end) {
      this.child.kill("SIGKILL");
      await this.exited;
      throw new Error(`the gateway did not end within ${timeoutMs} ms\n${this.stderr.slice(-3000)}`);
    }
    return this.end;
  }

  get(target, more) { return this.http.request("GET", target, more); }
  post(target, body, more) { return this.http.request("POST", target, { body, ...more }); }
  put(target, body, more) { return this.http.request("PUT", target, { body, ...more }); }
  delete(target, more) { return this.http.request("DELETE", target, more); }

  /** Bytes on a TCP connection, see RawConnection. */
  connect() { return RawConnection.open(this.port); }

  /** GET by the admin listener in the data directory: { status, headers, text }. */
  getAsAdmin(target, headers = {}, method = "GET") { return getBySocket(path.join(this.data, "metrics.sock"), target, headers, method); }

  /** GET /metrics as a Map from `name` or `name{labels}` to a number. */
  async metrics() { return samplesOf(await this.getAsAdmin("/metrics")); }

  /** One sample; for a name with several label sets, their sum. */
  async metric(name) {
    const all = await this.metrics();
    if (all.has(name)) return all.get(name);
    const parts = [...all].filter(([sample]) => sample.startsWith(`${name}{`));
    if (!parts.length) throw new Error(`/metrics has no ${name}`);
    return parts.reduce((sum, [, value]) => sum + value, 0);
  }
}

/** GET through a UNIX socket: { status, headers, text }. */
export function getBySocket(socketPath, target, headers = {}, method = "GET") {
  return new Promise((resolve, reject) => {
    const request = http.request({ socketPath, path: target, method, headers, agent: false }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (more) => { text += more; });
      answer.on("end", () => resolve({ status: answer.statusCode, headers: answer.headers, text })).on("error", reject);
    });
    request.on("error", reject).end();
  });
}

/** A response of GET /metrics as a Map from `name` or `name{labels}` to a number. */
export function samplesOf({ status, text }) {
  if (status !== 200) throw new Error(`GET /metrics: ${status} ${text}`);
  const samples = text.split("\n").filter((line) => line && !line.startsWith("#"));
  return new Map(samples.map((line) => {
    const space = line.lastIndexOf(" ");
    return [line.slice(0, space), Number(line.slice(space + 1))];
  }));
}

/** { t, options, env, data, port, release, preload: "shim_x", binary, withKeys, ready } */
export async function startGateway({ t, ready = true, ...settings } = {}) {
  const data = settings.data ?? path.join(temporaryFolder(), "data");
  const port = settings.port ?? (await freePort());
  const gateway = new Gateway({ ...settings, data, port });
  t?.after(() => gateway.end || gateway.kill());
  return gateway.start({ ready });
}
