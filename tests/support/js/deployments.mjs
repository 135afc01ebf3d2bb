// Both sides of a deployment, call by call: the calls of the CLI, and those of a fake builder, which registers the given
// tasks and builds nothing.
//
//   const cli = new Deployer(gateway), builder = await Builder.start(gateway);
//   const answer = cli.deploy();                       // the gateway holds this call
//   await builder.build();                             // dequeue, register, complete
//   (await answer).json.version
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { gzipSync } from "node:zlib";

import { keys } from "./gateway.mjs";
import { runProgram } from "./program.mjs";

export const bundle = (text = randomUUID()) => gzipSync(Buffer.from(text));

/** Returns the { body, headers } of a multipart form. */
export function form(fields, file, boundary = `----${randomUUID()}`) {
  const parts = [];
  for (const [name, value] of Object.entries(fields)) parts.push(`--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`);
  const body = Buffer.concat([
    Buffer.from(parts.join("")),
    ...file ? [Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="deployment.tar.gz"\r\nContent-Type: application/gzip\r\n\r\n`), file, Buffer.from("\r\n")] : [],
    Buffer.from(`--${boundary}--\r\n`),
  ]);
  return { body, headers: { "content-type": `multipart/form-data; boundary=${boundary}` } };
}

export class Deployer {
  constructor(gateway, { key = keys.prod, branch } = {}) {
    Object.assign(this, { gateway, key, headers: branch ? { "x-trigger-branch": branch } : {} });
  }

  get(target) { return this.gateway.get(target, { key: this.key, headers: this.headers }); }

  post(target, body, { headers, ...more } = {}) {
    return this.gateway.post(target, body, { key: this.key, headers: { ...this.headers, ...headers }, ...more });
  }

  offer(contentLength, more) { return this.post("/api/v1/artifacts", { type: "deployment_bundle", contentType: "application/gzip", contentLength, ...more }); }

  upload({ uploadUrl, uploadFields }, bytes, fields = uploadFields) {
    const { body, headers } = form(fields, bytes);
    return this.gateway.http.request("POST", new URL(uploadUrl).pathname + new URL(uploadUrl).search, { body, headers, key: null });
  }

  /** Uploads a bundle; returns its key. */
  async artifact(bytes = bundle()) {
    const offer = await this.offer(bytes.length);
    assert.equal(offer.status, 201, offer.text);
    const uploaded = await this.upload(offer.json, bytes);
    assert.equal(uploaded.status, 204, uploaded.text);
    return offer.json.artifactKey;
  }

  body(artifactKey, more) {
    return { contentHash: "hash", type: "MANAGED", runtime: "node-22", isNativeBuild: true, fromBundle: true, artifactKey, triggeredVia: "cli:manual", ...more };
  }

  initialize(body, { id = randomUUID() } = {}) { return this.post("/api/v1/deployments", body, { headers: { "x-trigger-request-idempotency-key": id } }); }

  /** Repeats the request like the CLI: after 503, with the same id, at most five times. */
  async deploy(more, { bytes, id = randomUUID(), tries = 5 } = {}) {
    const body = this.body(await this.artifact(bytes), more);
    for (let i = 1; ; i++) {
      const answer = await this.initialize(body, { id }).catch((error) => ({ status: 503, error, headers: {} }));
      if (answer.status !== 503 || i === tries) return answer;
    }
  }

  async show(id) { return (await this.get(`/api/v1/deployments/${id}`)).json; }
}

export class Builder {
  /** Serves all environments except dev; more: arguments of worker-token create. */
  static async start(gateway, ...more) {
    const { stdout } = await runProgram(["worker-token", "create", "--data", gateway.data, ...more]);
    return new Builder(gateway, stdout.trim());
  }

  constructor(gateway, token) {
    Object.assign(this, { gateway, token, base: "/engine/v1/worker-actions" });
  }

  post(rest, body) { return this.gateway.post(this.base + rest, body, { key: this.token }); }
  get(rest) { return this.gateway.get(this.base + rest, { key: this.token }); }

  /** Returns the next build; undefined if there was none while the gateway held the call. */
  async dequeue() {
    const reply = await this.post("/builds/dequeue", { instance: "fake", architecture: "x64", libc: "glibc" });
    assert.equal(reply.status, 200, reply.text);
    return reply.json[0];
  }

  /** Waits for the next build. */
  async take() {
    for (;;) {
      const build = await this.dequeue();
      if (build) return build;
    }
  }

  heartbeat(build, more = {}) { return this.post(`/builds/${build.deployment.id}/heartbeat`, { attempt: build.attempt, ...more }); }

  register(build, tasks = ["hello"], key = build.key) {
    const metadata = { packageVersion: "4.8.3", contentHash: build.deployment.contentHash, queues: [], tasks: tasks.map((task) => ({ filePath: "src/tasks.ts", ...(task.id ? task : { id: task }) })) };
    return this.gateway.post(`/api/v1/deployments/${build.deployment.id}/background-workers`, { localOnly: true, engine: "V2", metadata }, { key });
  }

  complete(build, more = {}) {
    const { sha256, bytes } = build.archive;
    return this.post(`/builds/${build.deployment.id}/complete`, { ok: true, index: "{\"tasks\":[]}", sha256, bytes, architecture: "x64", libc: "glibc", runtimeVersion: "22.1.0", attempt: build.attempt, ...more });
  }

  fail(build, error = { name: "BuildError", message: "npm failed" }) { return this.post(`/builds/${build.deployment.id}/complete`, { ok: false, attempt: build.attempt, error }); }

  /** Builds the next deployment, with these tasks. */
  async build(tasks) {
    const build = await this.take();
    for (const step of ["INSTALLING", "BUILDING"]) assert.equal((await this.heartbeat(build, { step })).status, 200);
    const registered = await this.register(build, tasks);
    assert.equal(registered.status, 200, registered.text);
    const done = await this.complete(build);
    assert.equal(done.status, 200, done.text);
    return build;
  }
}

/** The files of deployments where a gateway keeps them: in its data directory, or in its PostgreSQL (database: its
 *  address without a relay). In PostgreSQL, names() also lists incomplete files. */
export class KeptFiles {
  constructor(gateway, database = gateway.database) { Object.assign(this, { database, folder: path.join(gateway.data, "deployments") }); }

  query(sql) { return execFileSync("psql", ["-XAtq", "-d", this.database], { input: `SET search_path = runcast; ${sql}`, encoding: "utf8", maxBuffer: 1 << 28 }).trimEnd(); }
  static hasName(name) { return `name = convert_to('${name}', 'UTF8')`; }

  names() {
    if (!this.database) return fs.readdirSync(this.folder).sort();
    return this.query("SELECT DISTINCT convert_from(name, 'UTF8') FROM deployed_file").split("\n").filter(Boolean).sort();
  }

  archives() { return this.names().filter((name) => name.endsWith(".tar.gz")); }

  remove(name) {
    if (this.database) this.query(`DELETE FROM deployed_file WHERE ${KeptFiles.hasName(name)}`);
    else fs.rmSync(path.join(this.folder, name));
  }

  /** Stores a text as a file. */
  put(name, text) {
    if (!this.database) fs.writeFileSync(path.join(this.folder, name), text);
    else this.query(`INSERT INTO deployed_file (env, piece, size, name, body) SELECT coalesce((SELECT min(env) FROM deployed_file), 1), 0, ${text.length}, convert_to('${name}', 'UTF8'), convert_to('${text}', 'UTF8')`);
  }
}

export const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");
